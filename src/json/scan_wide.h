/* Strings read with wider instructions than every machine of this kind has, chosen when it runs. Private to json/ and its
 * tests. */
#ifndef WEFT_SCAN_WIDE_H
#define WEFT_SCAN_WIDE_H

#include <weft/base.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(WEFT_PORTABLE)
#define WEFT_SCAN_WIDE 1

/* Asks a word that the compiler's runtime has filled in: no state of ours, and cheaper than a pointer to a function. */
static inline bool weft__has_avx2(void) {
    return __builtin_cpu_supports("avx2");
}

/* As weft__scan_string_rest(); only where weft__has_avx2(). */
const char *weft__scan_string_rest_avx2(const char *p, bool *ret_escaped);
#endif

/* What every machine can do. */
const char *weft__scan_string_rest_base(const char *p, bool *ret_escaped);

#endif

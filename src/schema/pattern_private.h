/* The two halves of a pattern. */
#ifndef WEFT_PATTERN_PRIVATE_H
#define WEFT_PATTERN_PRIVATE_H

#include "buf.h"
#include "pattern.h"

/* Some characters of ASCII, so many times. */
typedef struct simple_piece {
    uint64_t set[2];
    uint32_t least, most; /* UINT32_MAX: any number */
} simple_piece;

#define SIMPLE_PIECES 16

typedef struct simple_pattern {
    simple_piece pieces[SIMPLE_PIECES];
    size_t count;
    bool to_end; /* closes with $ */
} simple_pattern;

/* True if the pattern is one that begins with ^ and never has to go back. */
bool weft__simple_parse(weft_bytes text, simple_pattern *ret);
bool weft__simple_matches(const simple_pattern *simple, const char *text, size_t len);

/* The same pattern for PCRE2. -EBADMSG and a sentence: ECMA-262 does not know it; -ENOMEM. */
int weft__pattern_translate(weft_bytes text, const weft_alloc *alloc, weft_buf *out, const char **ret_why);

#endif

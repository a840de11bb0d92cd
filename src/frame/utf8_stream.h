/* Is this UTF-8 (RFC 3629)? Whole or a piece at a time, and as early as the bytes allow: a prefix that nothing can make
 * valid any more is refused at the very byte that spoils it. Nothing is decoded. */
#ifndef WEFT_UTF8_STREAM_H
#define WEFT_UTF8_STREAM_H

#include <weft/base.h>

/* Where a text that came in pieces has stopped. Zero it at the start of each text. */
typedef struct weft_utf8 {
    uint8_t need;      /* bytes of a begun code point that are still to come */
    uint8_t low, high; /* what the first of those may be */
} weft_utf8;

/* Go on with n more bytes. False: the text is invalid, whatever may follow. */
bool weft__utf8_feed(weft_utf8 *state, const char *data, size_t n);
/* May the text end here? */
static inline bool weft__utf8_whole(const weft_utf8 *state) {
    return state->need == 0;
}
/* All at once. */
bool weft__utf8_valid(const char *data, size_t n);

#endif

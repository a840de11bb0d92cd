/* The end of what a terminal printed, as text: valid UTF-8 without NUL, never more than a limit. Older text is dropped from
 * the front, between two characters.
 *
 * Bytes that are not UTF-8 and NULs become U+FFFD; a character that was split between two reads does not. Control sequences
 * stay. There is no descriptor and no clock in here. */
#ifndef WEFT_SCROLLBACK_H
#define WEFT_SCROLLBACK_H

#include "buf.h"
#include "utf8.h"
#include "utf8_stream.h"

typedef struct weft_scrollback {
    const weft_alloc *alloc;
    size_t limit;
    weft_buf kept;  /* up to twice as much, so that each byte is moved once */
    bool truncated; /* there was more */
    weft_utf8 state;
    char split[WEFT_UTF8_MAX]; /* a character that has begun */
    size_t split_len;
} weft_scrollback;

static inline void weft__scrollback_init(weft_scrollback *it, const weft_alloc *alloc, size_t limit) {
    *it = (weft_scrollback){.alloc = alloc, .limit = limit};
}
/* More came. What there is no memory for is lost, and truncated says so. */
void weft__scrollback_feed(weft_scrollback *it, const char *data, size_t n);
/* No more will come: a character that has begun stays broken. */
void weft__scrollback_end(weft_scrollback *it);
/* The last characters of it that fit into max bytes; borrowed until it changes. ret_truncated may be NULL. */
weft_bytes weft__scrollback_text(const weft_scrollback *it, size_t max, bool *ret_truncated);
void weft__scrollback_done(weft_scrollback *it);

#endif

/* Cleaning what a terminal printed and keeping the end of it. See scrollback.h. */
#include "scrollback.h"

#define REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */
#define REPLACEMENT_LEN 3
/* How much may wait to be dropped, at least: a small limit does not mean that every character is moved. */
#define LEAST_SLACK ((size_t) 4096)

/* A text cannot be kept with a hole in it: what is before the hole goes. */
static void lose_text(weft_scrollback *it) {
    it->truncated = true;
    weft__buf_done(&it->kept, it->alloc);
}

/* So that n more bytes fit, and memory is moved only when as much was dropped as is kept. */
static void drop_oldest_text(weft_scrollback *it, size_t n) {
    size_t len = weft__buf_len(&it->kept), slack = it->limit > LEAST_SLACK ? it->limit : LEAST_SLACK;
    it->truncated |= len + n > it->limit;
    if (len + n > it->limit + slack)
        weft__buf_take(&it->kept, it->alloc, weft__utf8_from(weft__buf_head(&it->kept), len, len + n - it->limit));
}

/* Whole characters. */
static void put_clean(weft_scrollback *it, const char *text, size_t n) {
    if (n > it->limit) {
        size_t from = weft__utf8_from(text, n, n - it->limit);
        lose_text(it);
        text += from;
        n -= from;
    }
    drop_oldest_text(it, n);
    if (n && weft__buf_put(&it->kept, it->alloc, text, n) < 0)
        lose_text(it);
}

static void put_broken(weft_scrollback *it) {
    it->split_len = 0;
    it->state = (weft_utf8){0};
    put_clean(it, REPLACEMENT, REPLACEMENT_LEN);
}

static size_t plain_run(const char *data, size_t n) {
    size_t run = 0;
    while (run < n && (unsigned char) (data[run] - 1) < 0x7F)
        run++;
    return run;
}

/* One byte that is not plain, or comes within a character. The bytes it took: 0 when it ends a broken character and must be
 * looked at again. */
static size_t feed_byte(weft_scrollback *it, char byte) {
    bool begun = it->split_len > 0;
    if ((!begun && !byte) || !weft__utf8_feed(&it->state, &byte, 1)) {
        put_broken(it);
        return begun ? 0 : 1;
    }
    it->split[it->split_len++] = byte;
    if (weft__utf8_whole(&it->state)) {
        put_clean(it, it->split, it->split_len);
        it->split_len = 0;
    }
    return 1;
}

void weft__scrollback_feed(weft_scrollback *it, const char *data, size_t n) {
    while (n) {
        size_t run = it->split_len ? 0 : plain_run(data, n);
        if (run)
            put_clean(it, data, run);
        else
            run = feed_byte(it, *data);
        data += run;
        n -= run;
    }
}

void weft__scrollback_end(weft_scrollback *it) {
    if (it->split_len)
        put_broken(it);
}

weft_bytes weft__scrollback_text(const weft_scrollback *it, size_t max, bool *ret_truncated) {
    size_t len = weft__buf_len(&it->kept), most = max < it->limit ? max : it->limit;
    const char *text = len ? weft__buf_head(&it->kept) : "";
    size_t from = len > most ? weft__utf8_from(text, len, len - most) : 0;
    if (ret_truncated)
        *ret_truncated = it->truncated || from > 0;
    return (weft_bytes){text + from, len - from};
}

void weft__scrollback_done(weft_scrollback *it) {
    weft__buf_done(&it->kept, it->alloc);
}

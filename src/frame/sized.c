/* Heads that end in the length of what follows them, and the small text helpers of reading such heads. Knows no framing by
 * name. */
#include <errno.h>

#include "lines.h"

#define TAIL "\r\n\r\n"
#define TAIL_LEN (sizeof TAIL - 1)
/* SIZE_MAX has 20 digits. */
#define MAX_DIGITS 20

bool weft__same_text(const char *text, size_t len, const char *lower) {
    for (size_t i = 0; i < len; i++) {
        char c = weft__lower(text[i]);
        /* A NUL in text must not meet the one that ends lower. */
        if (c != lower[i] || !c)
            return false;
    }
    return lower[len] == '\0';
}

int weft__parse_length(const char *text, size_t len, int64_t *ret) {
    int64_t value = 0;
    if (len == 0)
        return -EPROTO;
    for (size_t i = 0; i < len; i++) {
        int digit = text[i] - '0';
        if (digit < 0 || digit > 9 || value > (INT64_MAX - digit) / 10)
            return -EPROTO;
        value = value * 10 + digit;
    }
    *ret = value;
    return 0;
}

static unsigned count_digits(size_t value) {
    unsigned count = 1;
    for (; value > 9; value /= 10)
        count++;
    return count;
}

int weft__sized_begin(weft_buf *out, const weft_alloc *alloc, weft_bytes head, size_t hint, unsigned *digits,
                      size_t *ret_mark) {
    unsigned guess = count_digits(hint);
    size_t room = head.len + guess + TAIL_LEN;
    size_t mark = weft__buf_len(out);
    if (hint > SIZE_MAX / 2)
        return -ENOMEM;
    int r = weft__buf_reserve(out, alloc, room + hint);
    if (r < 0)
        return r;
    memcpy(weft__buf_tail(out), head.data, head.len);
    out->end += room;
    *digits = guess;
    *ret_mark = mark;
    return 0;
}

int weft__sized_end(weft_buf *out, const weft_alloc *alloc, size_t head_len, unsigned digits, size_t mark) {
    size_t body_at = mark + head_len + digits + TAIL_LEN;
    size_t len = weft__buf_len(out) - body_at;
    unsigned needed = count_digits(len);
    if (needed != digits) {
        int r = weft__buf_reserve(out, alloc, MAX_DIGITS);
        if (r < 0)
            return r;
        char *body = weft__buf_head(out) + body_at;
        memmove(body - digits + needed, body, len);
        out->end = out->end - digits + needed;
    }
    char *at = weft__buf_head(out) + mark + head_len + needed;
    memcpy(at, TAIL, TAIL_LEN);
    for (; needed; needed--, len /= 10)
        *--at = (char) ('0' + len % 10);
    return 0;
}

/* The writer: a weft_val onto a buffer. What it writes is valid JSON in valid UTF-8 whatever strings it is given (a raw
 * value is the caller's word), and strings come out as RFC 8785 wants them, so that the canonical form can use the same
 * function. */
#include "write.h"

#include "flat.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "plain.h"
#include "scan.h"
#include "utf8.h"

#define MAX_INT_TEXT 20    /* of an int64_t with its sign, or of a uint64_t */
#define MAX_DOUBLE_TEXT 32 /* what weft__print_double() promises */

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* What a failed function does before it returns, given the length it began with. */
static int undo_write(weft_buf *out, size_t len, int r) {
    if (r < 0)
        out->end = out->start + len;
    return r;
}

static bool is_plain_char(char c) {
    return (unsigned char) c >= ' ' && (unsigned char) c < 0x80 && c != '"' && c != '\\';
}

#define EACH(byte) (0x0101010101010101u * (byte))

/* Is each of the eight bytes plain? Below ' ' the first difference sets the top bit, a quote or a backslash sets it in its
 * own, other bytes have it already. A carry begins only at a byte that is not plain, so the answer for all is right. */
static bool all_plain(uint64_t word) {
    uint64_t special = (word - EACH(0x20)) | ((word ^ EACH(0x22)) - EACH(1)) | ((word ^ EACH(0x5C)) - EACH(1)) | word;
    return !(special & EACH(0x80));
}

/* Most names and ids are shorter than a vector: two words that overlap take one of 4 to 15 bytes. */
static bool copy_short(char *out, const char *text, size_t len) {
    uint64_t head, tail;
    uint32_t a, b;
    if (len >= 8) {
        memcpy(&head, text, 8), memcpy(&tail, text + len - 8, 8);
        memcpy(out, &head, 8), memcpy(out + len - 8, &tail, 8);
        return all_plain(head) && all_plain(tail);
    }
    memcpy(&a, text, 4), memcpy(&b, text + len - 4, 4);
    memcpy(out, &a, 4), memcpy(out + len - 4, &b, 4);
    return all_plain((uint64_t) a << 32 | b);
}

/* Copy the bytes at the start that need no escape and no check; how many. Reads and writes nothing behind len, because the
 * text has no slack; out has room for all of it. */
static size_t copy_plain(char *out, const char *text, size_t len) {
    size_t n = 0;
    if (len < WEFT_STEP && len >= 4 && copy_short(out, text, len))
        return len;
    while (len - n >= WEFT_STEP) {
        memcpy(out + n, text + n, WEFT_STEP);
        size_t plain = weft__plain(text + n);
        n += plain;
        if (plain < WEFT_STEP)
            return n;
    }
    /* The rest is shorter than a vector. One that ends where the text ends takes it, with plain bytes once more. */
    if (n > 0) {
        n = len - WEFT_STEP;
        memcpy(out + n, text + n, WEFT_STEP);
        return n + weft__plain(text + n);
    }
    for (; n < len && is_plain_char(text[n]); n++)
        out[n] = text[n];
    return n;
}

/* The escape of an ASCII character that needs one; its length. RFC 8785 section 3.2.2.2. */
static size_t escape_ascii(unsigned char c, char ret[6]) {
    static const char letters[] = "btn\0fr", hex[] = "0123456789abcdef";
    ret[0] = '\\';
    if (c == '"' || c == '\\') {
        ret[1] = (char) c;
        return 2;
    }
    if (c >= '\b' && c <= '\r' && c != '\v') {
        ret[1] = letters[c - '\b'];
        return 2;
    }
    memcpy(ret + 1, "u00", 3);
    ret[4] = hex[c >> 4];
    ret[5] = hex[c & 15];
    return 6;
}

/* One character that is not plain; *p moves behind it. A byte that begins no valid sequence is replaced by itself, so one
 * bad byte costs no good ones. */
static int put_special(weft_buf *out, const weft_alloc *alloc, const char **p, const char *end) {
    char text[6];
    if ((unsigned char) **p < 0x80)
        return weft__buf_put(out, alloc, text, escape_ascii((unsigned char) *(*p)++, text));
    size_t len = weft__utf8_len(*p, (size_t) (end - *p));
    const char *sequence = len ? *p : replacement;
    *p += len ? len : 1;
    return weft__buf_put(out, alloc, sequence, len ? len : sizeof replacement - 1);
}

/* A string; or the name of a member, with what comes before its quote and the colon behind it. */
static int put_quoted_text(weft_buf *out, const weft_alloc *alloc, char before, const char *p, const char *end) {
    /* With room for all of it, most strings are done in one turn. */
    int r = weft__buf_reserve(out, alloc, (size_t) (end - p) + 4);
    if (r < 0)
        return r;
    if (before)
        out->data[out->end++] = before;
    out->data[out->end++] = '"';
    for (;;) {
        size_t plain = copy_plain(weft__buf_tail(out), p, (size_t) (end - p));
        out->end += plain;
        p += plain;
        if (p == end)
            break;
        while (r >= 0 && p < end && !is_plain_char(*p))
            r = put_special(out, alloc, &p, end);
        if (r < 0 || (r = weft__buf_reserve(out, alloc, (size_t) (end - p) + 2)) < 0)
            return r;
    }
    out->data[out->end++] = '"';
    if (before)
        out->data[out->end++] = ':';
    return 0;
}

static int put_string(weft_buf *out, const weft_alloc *alloc, const char *p, const char *end) {
    return put_quoted_text(out, alloc, '\0', p, end);
}

static int put_uint(weft_buf *out, const weft_alloc *alloc, uint64_t u, bool negative) {
    char text[MAX_INT_TEXT], *p = text + sizeof text;
    do {
        *--p = (char) ('0' + u % 10);
        u /= 10;
    } while (u);
    if (negative)
        *--p = '-';
    return weft__buf_put(out, alloc, p, (size_t) (text + sizeof text - p));
}

static int put_double(weft_buf *out, const weft_alloc *alloc, double d) {
    char text[MAX_DOUBLE_TEXT];
    if (!isfinite(d))
        return weft__buf_put(out, alloc, "null", 4);
    return weft__buf_put(out, alloc, text, weft__print_double(d, text));
}

static int put_any_value(weft_buf *out, const weft_alloc *alloc, const weft_val *value, int depth);

static int put_array(weft_buf *out, const weft_alloc *alloc, const weft_val *value, int depth) {
    if (!value->as.items && value->len)
        return -EINVAL;
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < value->len; i++) {
        if (i > 0)
            r = weft__buf_put(out, alloc, ",", 1);
        if (r >= 0)
            r = put_any_value(out, alloc, &value->as.items[i], depth);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static int put_member(weft_buf *out, const weft_alloc *alloc, bool first, const weft_member *member, int depth) {
    if (!member->name)
        return -EINVAL;
    int r = put_quoted_text(out, alloc, first ? '{' : ',', member->name, member->name + strlen(member->name));
    return r < 0 ? r : put_any_value(out, alloc, &member->value, depth);
}

static int put_object(weft_buf *out, const weft_alloc *alloc, const weft_val *value, int depth) {
    bool first = true;
    int r = !value->as.members && value->len ? -EINVAL : 0;
    for (size_t i = 0; r >= 0 && i < value->len; i++) {
        const weft_member *member = &value->as.members[i];
        if (member->value.kind == WEFT_VAL_NONE)
            continue;
        r = put_member(out, alloc, first, member, depth);
        first = false;
    }
    if (r < 0)
        return r;
    return first ? weft__buf_put(out, alloc, "{}", 2) : weft__buf_put(out, alloc, "}", 1);
}

/* depth is how many containers may still be opened; nobody would read a text that nests deeper. */
static int put_raw_text(weft_buf *out, const weft_alloc *alloc, const char *text, size_t len) {
    int r = text && len ? weft__buf_reserve(out, alloc, len) : -EINVAL; /* nothing is no JSON */
    if (r < 0)
        return r;
    weft__copy_flat(weft__buf_tail(out), text, len);
    out->end += len;
    return 0;
}

static int put_any_value(weft_buf *out, const weft_alloc *alloc, const weft_val *value, int depth) {
    switch (value->kind) {
    case WEFT_VAL_BOOL:
        return value->as.b ? weft__buf_put(out, alloc, "true", 4) : weft__buf_put(out, alloc, "false", 5);
    case WEFT_VAL_INT:
        return weft__write_int(out, alloc, value->as.i);
    case WEFT_VAL_UINT:
        return put_uint(out, alloc, value->as.u, false);
    case WEFT_VAL_NUM:
        return put_double(out, alloc, value->as.d);
    case WEFT_VAL_STR:
        return put_string(out, alloc, value->as.s, value->as.s + value->len);
    case WEFT_VAL_RAW:
        return put_raw_text(out, alloc, value->as.s, value->len);
    case WEFT_VAL_ARR:
        return depth ? put_array(out, alloc, value, depth - 1) : -EINVAL;
    case WEFT_VAL_OBJ:
        return depth ? put_object(out, alloc, value, depth - 1) : -EINVAL;
    case WEFT_VAL_NONE:
    case WEFT_VAL_NULL:
        break;
    }
    return weft__buf_put(out, alloc, "null", 4);
}

int weft__write_val(weft_buf *out, const weft_alloc *alloc, const weft_val *value) {
    size_t len = weft__buf_len(out);
    return undo_write(out, len, put_any_value(out, alloc, value, WEFT_MAX_DEPTH));
}

int weft__write_str(weft_buf *out, const weft_alloc *alloc, const char *text, size_t text_len) {
    size_t len = weft__buf_len(out);
    return undo_write(out, len, put_string(out, alloc, text, text + text_len));
}

int weft__write_int(weft_buf *out, const weft_alloc *alloc, int64_t i) {
    return put_uint(out, alloc, i < 0 ? -(uint64_t) i : (uint64_t) i, i < 0);
}

int weft__write_raw(weft_buf *out, const weft_alloc *alloc, const char *text, size_t len) {
    return weft__buf_put(out, alloc, text, len);
}

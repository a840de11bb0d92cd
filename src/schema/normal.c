/* The normal form. A string is its length and its decoded bytes, a number its digits and exponent, so no form is the
 * beginning of another. Recursion is as deep as the text, which the scanner has held to WEFT_MAX_DEPTH.
 *
 * Two lone surrogates become the same character, as everywhere where a string is decoded. */
#include "normal.h"

#include <errno.h>

#include "decimal.h"
#include "doc.h"
#include "escape.h"
#include "scan.h"

/* What is compared at a time: a message of 32 MiB must not take a gigabyte. */
#define MAX_FORMS ((size_t) 1000000)
#define MAX_TEXT ((size_t) 64 << 20)

/* A piece of the buffer. */
struct span {
    size_t at, name_len, len;
};

/* A number in as few bytes as it takes, seven bits in each; all but the last have the eighth. */
static size_t length_bytes(uint64_t n, unsigned char bytes[10]) {
    size_t count = 0;
    for (; n >= 0x80; n >>= 7)
        bytes[count++] = (unsigned char) (n | 0x80);
    bytes[count++] = (unsigned char) n;
    return count;
}

static int write_length(weft_buf *out, const weft_alloc *alloc, uint64_t n) {
    unsigned char bytes[10];
    return weft__buf_put(out, alloc, bytes, length_bytes(n, bytes));
}

static size_t decoded_length(const char *raw, size_t len) {
    const char *end = raw + len;
    size_t count = 0;
    while (raw < end) {
        char bytes[WEFT_ESCAPE_MAX];
        count += weft__next_piece(&raw, end, bytes);
    }
    return count;
}

static int write_string(weft_buf *out, const weft_alloc *alloc, const char *raw, size_t len) {
    int r = weft__buf_put(out, alloc, "s", 1);
    if (r >= 0)
        r = write_length(out, alloc, memchr(raw, '\\', len) ? decoded_length(raw, len) : len);
    if (r >= 0)
        r = weft__buf_reserve(out, alloc, len + 1);
    if (r >= 0)
        out->end += weft__unescape(raw, len, weft__buf_tail(out));
    return r;
}

/* Exponents near zero, of either sign, are short. */
static uint64_t fold_sign(int64_t i) {
    return i < 0 ? ~((uint64_t) i << 1) : (uint64_t) i << 1;
}

static int write_number(weft_buf *out, const weft_alloc *alloc, const char *p, const char *end) {
    schema_decimal d;
    weft__decimal_read(p, (size_t) (end - p), &d);
    if (d.count == 0)
        return weft__buf_put(out, alloc, "0", 1);
    int r = weft__buf_put(out, alloc, d.negative ? "-" : "+", 1);
    const char *digit = d.first;
    if (r >= 0)
        r = write_length(out, alloc, d.count);
    if (r >= 0)
        r = write_length(out, alloc, fold_sign(d.exponent));
    for (size_t i = 0; r >= 0 && i < d.count; i++, digit++) {
        digit += *digit == '.';
        r = weft__buf_put(out, alloc, digit, 1);
    }
    return r;
}

static int write_items(weft_buf *out, const weft_alloc *alloc, const char *p, const char **ret_end) {
    int r = weft__buf_put(out, alloc, "[", 1);
    p = weft__scan_ws(p + 1);
    while (r >= 0 && *p != ']') {
        r = weft__normal_write(out, alloc, p, &p);
        if (r < 0)
            return r;
        p = weft__scan_ws(p);
        if (*p == ',')
            p = weft__scan_ws(p + 1);
    }
    *ret_end = p + 1;
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

/* ---- sorting ---- */

static int compare_spans(const char *text, const struct span *a, const struct span *b) {
    size_t least = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = least ? memcmp(text + a->at, text + b->at, least) : 0;
    return order ? order : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

/* Those of one name stay in the order of the text. */
static bool is_before(const char *text, const struct span *a, const struct span *b) {
    int order = compare_spans(text, a, b);
    return order ? order < 0 : a->at < b->at;
}

static void sift_down(const char *text, struct span *spans, size_t i, size_t count) {
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && is_before(text, &spans[child], &spans[child + 1]))
            child++;
        if (!is_before(text, &spans[i], &spans[child]))
            return;
        struct span larger = spans[child];
        spans[child] = spans[i];
        spans[i] = larger;
    }
}

/* A heap sort: no memory, and no input that makes it slow. */
static void sort_spans(const char *text, struct span *spans, size_t count) {
    for (size_t i = count / 2; i-- > 0;)
        sift_down(text, spans, i, count);
    for (size_t i = count; i-- > 1;) {
        struct span largest = spans[0];
        spans[0] = spans[i];
        spans[i] = largest;
        sift_down(text, spans, 0, i);
    }
}

/* ---- objects ---- */

/* The members as they come, each a name and a value. */
static int write_unsorted(weft_buf *out, const weft_alloc *alloc, const char *p, weft_buf *spans, const char **ret_end) {
    int r = 0;
    p = weft__scan_ws(p + 1);
    while (r >= 0 && *p != '}') {
        const char *name = p;
        struct span span = {.at = weft__buf_len(out)};
        p = weft__scan_any_string(p);
        r = write_string(out, alloc, name + 1, (size_t) (p - name) - 2);
        span.name_len = weft__buf_len(out) - span.at;
        if (r >= 0)
            r = weft__normal_write(out, alloc, weft__scan_ws(weft__scan_ws(p) + 1), &p);
        span.len = weft__buf_len(out) - span.at;
        if (r >= 0)
            r = weft__buf_put(spans, alloc, &span, sizeof span);
        if (r < 0)
            return r;
        p = weft__scan_ws(p);
        if (*p == ',')
            p = weft__scan_ws(p + 1);
    }
    *ret_end = p + 1;
    return 0;
}

/* What lies in the buffer from at on, in the order of the spans and without those that a later one replaces. */
static int reorder_members(weft_buf *out, const weft_alloc *alloc, size_t at, struct span *spans, size_t count) {
    weft_buf sorted = {0};
    int r = weft__buf_reserve(&sorted, alloc, weft__buf_len(out) - at + 1);
    const char *text = weft__buf_head(out);
    sort_spans(text, spans, count);
    for (size_t i = 0; r >= 0 && i < count; i++)
        if (i + 1 == count || compare_spans(text, &spans[i], &spans[i + 1]) != 0)
            r = weft__buf_put(&sorted, alloc, text + spans[i].at, spans[i].len);
    if (r >= 0) {
        out->end = out->start + at;
        r = weft__buf_put(out, alloc, weft__buf_head(&sorted), weft__buf_len(&sorted));
    }
    weft__buf_done(&sorted, alloc);
    return r;
}

static int write_members(weft_buf *out, const weft_alloc *alloc, const char *p, const char **ret_end) {
    weft_buf spans = {0};
    int r = weft__buf_put(out, alloc, "{", 1);
    size_t at = weft__buf_len(out);
    if (r >= 0)
        r = write_unsorted(out, alloc, p, &spans, ret_end);
    size_t count = weft__buf_len(&spans) / sizeof(struct span);
    if (r >= 0 && count > 1)
        r = reorder_members(out, alloc, at, (struct span *) (void *) weft__buf_head(&spans), count);
    weft__buf_done(&spans, alloc);
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 1);
}

int weft__normal_write(weft_buf *out, const weft_alloc *alloc, const char *p, const char **ret_end) {
    if (*p == '[')
        return write_items(out, alloc, p, ret_end);
    if (*p == '{')
        return write_members(out, alloc, p, ret_end);
    const char *end = weft__scan_value(p, WEFT_MAX_DEPTH);
    *ret_end = end;
    if (*p == '"')
        return write_string(out, alloc, p + 1, (size_t) (end - p) - 2);
    if (*p == '-' || (*p >= '0' && *p <= '9'))
        return write_number(out, alloc, p, end);
    return weft__buf_put(out, alloc, p, 1); /* n, t or f */
}

/* ---- many ---- */

int weft__forms_add(schema_forms *forms, const char *p, const char **ret_end) {
    if (weft__buf_len(&forms->text) > MAX_TEXT || weft__buf_len(&forms->ends) >= MAX_FORMS * sizeof(size_t))
        return -E2BIG;
    int r = weft__normal_write(&forms->text, forms->alloc, p, ret_end);
    size_t end = weft__buf_len(&forms->text);
    return r < 0 ? r : weft__buf_put(&forms->ends, forms->alloc, &end, sizeof end);
}

int weft__forms_distinct(schema_forms *forms, size_t *ret) {
    size_t count = weft__buf_len(&forms->ends) / sizeof(size_t), at = 0, distinct = 0;
    const size_t *ends = (const size_t *) (const void *) weft__buf_head(&forms->ends);
    const char *text = weft__buf_head(&forms->text);
    struct span *spans = count ? weft__alloc(forms->alloc, count * sizeof *spans) : NULL;
    if (count && !spans)
        return -ENOMEM;
    for (size_t i = 0; i < count; at = ends[i++])
        spans[i] = (struct span){at, ends[i] - at, ends[i] - at};
    if (count)
        sort_spans(text, spans, count);
    for (size_t i = 0; i < count; i++)
        distinct += i + 1 == count || compare_spans(text, &spans[i], &spans[i + 1]) != 0;
    weft__free(forms->alloc, spans);
    *ret = distinct;
    return 0;
}

void weft__forms_done(schema_forms *forms) {
    weft__buf_done(&forms->text, forms->alloc);
    weft__buf_done(&forms->ends, forms->alloc);
}

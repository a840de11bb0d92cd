/* The canonical form of a value, RFC 8785: one spelling for every string and number, members sorted, no white space.
 *
 * The reader walks, the writer writes; what is added here is the order of the members. Recursion is as deep as the text,
 * which the scanner has held to WEFT_MAX_DEPTH. */
#include <errno.h>
#include <string.h>

#include "doc.h"
#include "escape.h"
#include "number.h"
#include "scan.h"
#include "write.h"

#define MAX_DOUBLE_TEXT 32

struct member {
    weft_bytes name; /* decoded */
    weft_json value;
};

struct canon {
    weft_buf out;
    weft_arena names; /* and other decoded strings, until the end */
    const weft_alloc *alloc;
};

/* The decoded inside of a string: in place when there is nothing to decode. -EBADMSG: a lone surrogate. */
static int decode_canon_string(struct canon *canon, const weft_json *string, weft_bytes *ret) {
    const char *inside = string->text + 1;
    size_t len = string->len - 2;
    if (!memchr(inside, '\\', len)) {
        *ret = (weft_bytes){inside, len};
        return 0;
    }
    char *text = weft__arena_alloc(&canon->names, len + 1);
    if (!text)
        return -ENOMEM;
    bool lone;
    *ret = (weft_bytes){text, weft__unescape_strict(inside, len, text, &lone)};
    return lone ? -EBADMSG : 0;
}

/* Section 3.2.3 sorts by UTF-16 code units. Bytes of UTF-8 sort by code point, which differs in one thing: the surrogates
 * that UTF-16 uses above U+FFFF come before U+E000, whose sequences begin with EE or EF. */
static int utf16_weight(char c) {
    unsigned char byte = (unsigned char) c;
    return byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte;
}

static int compare_names(const weft_bytes *a, const weft_bytes *b) {
    size_t len = a->len < b->len ? a->len : b->len;
    for (size_t i = 0; i < len; i++)
        if (a->data[i] != b->data[i])
            return utf16_weight(a->data[i]) - utf16_weight(b->data[i]);
    return (a->len > b->len) - (a->len < b->len);
}

/* Members of one name stay in the order of the text, so that the last one is the last. */
static bool is_before(const struct member *a, const struct member *b) {
    int order = compare_names(&a->name, &b->name);
    return order ? order < 0 : a->value.text < b->value.text;
}

static void sift_member_down(struct member *members, size_t root, size_t count) {
    struct member moving = members[root];
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && is_before(&members[child], &members[child + 1]))
            child++;
        if (!is_before(&moving, &members[child]))
            break;
        members[root] = members[child];
    }
    members[root] = moving;
}

/* Heapsort, because qsort() may allocate behind our allocator's back and need not be n log n for names chosen with ill will.
 */
static void sort_members(struct member *members, size_t count) {
    for (size_t i = count / 2; i-- > 0;)
        sift_member_down(members, i, count);
    for (size_t i = count; i-- > 1;) {
        struct member largest = members[0];
        members[0] = members[i];
        members[i] = largest;
        sift_member_down(members, 0, i);
    }
}

static int write_value(struct canon *canon, const weft_json *value);

static int write_string(struct canon *canon, const weft_bytes *text) {
    return weft__write_str(&canon->out, canon->alloc, text->data, text->len);
}

static int write_number(struct canon *canon, const weft_json *value) {
    char text[MAX_DOUBLE_TEXT];
    double d;
    if (weft__number_double(value->text, value->len, &d) < 0)
        return -EBADMSG;
    return weft__write_raw(&canon->out, canon->alloc, text, weft__print_double(d, text));
}

static int write_array(struct canon *canon, const weft_json *array) {
    int r = weft__write_raw(&canon->out, canon->alloc, "[", 1);
    bool first = true;
    for (weft_iter it = weft_iterate(array); r >= 0 && weft_next(&it); first = false) {
        if (!first)
            r = weft__write_raw(&canon->out, canon->alloc, ",", 1);
        if (r >= 0)
            r = write_value(canon, &it.value);
    }
    return r < 0 ? r : weft__write_raw(&canon->out, canon->alloc, "]", 1);
}

static int collect_members(struct canon *canon, const weft_json *object, weft_buf *ret_members) {
    int r = 0;
    for (weft_iter it = weft_iterate(object); r >= 0 && weft_next(&it);) {
        struct member member = {.value = it.value};
        r = decode_canon_string(canon, &it.name, &member.name);
        if (r >= 0)
            r = weft__buf_put(ret_members, canon->alloc, &member, sizeof member);
    }
    return r;
}

static int write_canon_member(struct canon *canon, const struct member *member) {
    int r = write_string(canon, &member->name);
    if (r >= 0)
        r = weft__write_raw(&canon->out, canon->alloc, ":", 1);
    return r < 0 ? r : write_value(canon, &member->value);
}

static int write_members(struct canon *canon, const struct member *members, size_t count) {
    int r = weft__write_raw(&canon->out, canon->alloc, "{", 1);
    bool first = true;
    for (size_t i = 0; r >= 0 && i < count; i++) {
        if (i + 1 < count && compare_names(&members[i].name, &members[i + 1].name) == 0)
            continue;
        if (!first)
            r = weft__write_raw(&canon->out, canon->alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = write_canon_member(canon, &members[i]);
    }
    return r < 0 ? r : weft__write_raw(&canon->out, canon->alloc, "}", 1);
}

static int write_object(struct canon *canon, const weft_json *object) {
    weft_buf buf = {0};
    int r = collect_members(canon, object, &buf);
    if (r >= 0) {
        struct member *members = (struct member *) (void *) buf.data;
        size_t count = weft__buf_len(&buf) / sizeof *members;
        sort_members(members, count);
        r = write_members(canon, members, count);
    }
    weft__buf_done(&buf, canon->alloc);
    return r;
}

static int write_value(struct canon *canon, const weft_json *value) {
    weft_bytes text;
    int r;
    switch (weft_typeof(value)) {
    case WEFT_STRING:
        r = decode_canon_string(canon, value, &text);
        return r < 0 ? r : write_string(canon, &text);
    case WEFT_NUMBER:
        return write_number(canon, value);
    case WEFT_ARRAY:
        return write_array(canon, value);
    case WEFT_OBJECT:
        return write_object(canon, value);
    default:
        return weft__write_raw(&canon->out, canon->alloc, value->text, value->len);
    }
}

int weft_to_canonical(const weft_json *value, const weft_alloc *alloc, char **ret, size_t *ret_len) {
    if (weft_typeof(value) == WEFT_ABSENT)
        return -EINVAL;
    struct canon canon = {.names.alloc = alloc, .alloc = alloc};
    int r = weft__buf_reserve(&canon.out, alloc, value->len);
    if (r >= 0)
        r = write_value(&canon, value);
    weft__arena_done(&canon.names);
    if (r < 0) {
        weft__buf_done(&canon.out, alloc);
        return r;
    }
    *weft__buf_tail(&canon.out) = '\0';
    *ret = canon.out.data;
    if (ret_len)
        *ret_len = weft__buf_len(&canon.out);
    return 0;
}

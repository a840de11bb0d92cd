/* Describing values: the constructors of weft_val, how long their text will be, and the text as a C string. */
#include <string.h>

#include "write.h"

#define SCALAR_HINT 24 /* the longest number; literals are shorter */
#define QUOTES 2
#define HINT_DEPTH 8 /* deeper, a guess is not worth the walk */

weft_val weft_none(void) {
    return (weft_val){.kind = WEFT_VAL_NONE};
}

weft_val weft_null(void) {
    return (weft_val){.kind = WEFT_VAL_NULL};
}

weft_val weft_bool(bool b) {
    return (weft_val){.kind = WEFT_VAL_BOOL, .as.b = b};
}

weft_val weft_int(int64_t i) {
    return (weft_val){.kind = WEFT_VAL_INT, .as.i = i};
}

weft_val weft_uint(uint64_t u) {
    return (weft_val){.kind = WEFT_VAL_UINT, .as.u = u};
}

weft_val weft_num(double d) {
    return (weft_val){.kind = WEFT_VAL_NUM, .as.d = d};
}

weft_val weft_str(const char *s) {
    return s ? weft_strn(s, strlen(s)) : weft_null();
}

weft_val weft_strn(const char *s, size_t len) {
    return s ? (weft_val){.kind = WEFT_VAL_STR, .len = len, .as.s = s} : weft_null();
}

weft_val weft_copy(const weft_json *value) {
    return value && value->text ? weft_raw(value->text, value->len) : weft_null();
}

weft_val weft_raw(const char *json, size_t len) {
    return (weft_val){.kind = WEFT_VAL_RAW, .len = len, .as.s = json};
}

weft_val weft_arr(const weft_val *items, size_t count) {
    return (weft_val){.kind = WEFT_VAL_ARR, .len = count, .as.items = items};
}

weft_val weft_obj(const weft_member *members, size_t count) {
    return (weft_val){.kind = WEFT_VAL_OBJ, .len = count, .as.members = members};
}

static size_t hint(const weft_val *value, int depth) {
    size_t sum = QUOTES; /* or brackets */
    switch (value->kind) {
    case WEFT_VAL_RAW:
        return value->len;
    case WEFT_VAL_STR:
        return value->len + QUOTES;
    case WEFT_VAL_ARR:
        for (size_t i = 0; depth && i < value->len; i++)
            sum += 1 + hint(&value->as.items[i], depth - 1);
        return sum;
    case WEFT_VAL_OBJ:
        for (size_t i = 0; depth && i < value->len; i++)
            sum += strlen(value->as.members[i].name) + QUOTES + 2 + hint(&value->as.members[i].value, depth - 1);
        return sum;
    default:
        return SCALAR_HINT;
    }
}

size_t weft__val_hint(const weft_val *value) {
    return hint(value, HINT_DEPTH);
}

int weft_to_text(weft_val value, const weft_alloc *alloc, char **ret, size_t *ret_len) {
    weft_buf out = {0};
    int r = weft__buf_reserve(&out, alloc, weft__val_hint(&value) + 1); /* there is memory for the NUL even without a text */
    if (r >= 0)
        r = weft__write_val(&out, alloc, &value);
    if (r < 0) {
        weft__buf_done(&out, alloc);
        return r;
    }
    *weft__buf_tail(&out) = '\0';
    *ret = out.data;
    *ret_len = weft__buf_len(&out);
    return 0;
}

void weft_text_free(char *text, const weft_alloc *alloc) {
    weft__free(alloc, text);
}

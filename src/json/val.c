/* Values going out: how long their text will be, and the text as a C string. */
#include <string.h>

#include "write.h"

#define SCALAR_HINT 24 /* the longest number; literals are shorter */
#define QUOTES 2
#define HINT_DEPTH 8 /* deeper, a guess is not worth the walk */

static size_t text_len_hint(const weft_val *value, int depth);

static size_t member_len_hint(const weft_member *member, int depth) {
    size_t name = member->name ? strlen(member->name) : 0; /* writing it refuses that */
    return name + QUOTES + 2 + text_len_hint(&member->value, depth - 1);
}

static size_t text_len_hint(const weft_val *value, int depth) {
    size_t sum = QUOTES; /* or brackets */
    switch (value->kind) {
    case WEFT_VAL_RAW:
        return value->len;
    case WEFT_VAL_STR:
        return value->len + QUOTES;
    case WEFT_VAL_ARR:
        for (size_t i = 0; depth && value->as.items && i < value->len; i++) /* writing none refuses that */
            sum += 1 + text_len_hint(&value->as.items[i], depth - 1);
        return sum;
    case WEFT_VAL_OBJ:
        for (size_t i = 0; depth && value->as.members && i < value->len; i++)
            sum += member_len_hint(&value->as.members[i], depth);
        return sum;
    default:
        return SCALAR_HINT;
    }
}

size_t weft__val_hint(const weft_val *value) {
    return text_len_hint(value, HINT_DEPTH);
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
    if (ret_len)
        *ret_len = weft__buf_len(&out);
    return 0;
}

char *weft_text_free(char *text, const weft_alloc *alloc) {
    return weft__free(alloc, text);
}

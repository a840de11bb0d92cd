/* JSON Pointer, RFC 6901. A pointer that is not well-formed points nowhere. */
#include <string.h>

#include "doc.h"
#include "escape.h"

/* An index has no sign and no leading zero (section 4), and "-" is the item that does not exist. */
static weft_json item_at_token(const weft_json *array, const char *token, size_t len) {
    size_t index = 0;
    if (len == 0 || (len > 1 && token[0] == '0'))
        return (weft_json){0};
    for (size_t i = 0; i < len; i++) {
        if (token[i] < '0' || token[i] > '9' || index > SIZE_MAX / 10 - 1)
            return (weft_json){0};
        index = index * 10 + (size_t) (token[i] - '0');
    }
    return weft_at(array, index);
}

/* The byte at *token, "~0" and "~1" decoded; *token moves behind it. */
static char token_byte(const char **token) {
    char c = *(*token)++;
    if (c == '~')
        c = *(*token)++ == '0' ? '~' : '/';
    return c;
}

/* Does the raw inside of a name say what the token says? Both may have escapes, each of its own kind. */
static bool name_matches_token(const char *p, const char *end, const char *token, const char *token_end) {
    while (p < end) {
        char bytes[WEFT_ESCAPE_MAX];
        size_t len = weft__next_piece(&p, end, bytes);
        for (size_t i = 0; i < len; i++)
            if (token == token_end || token_byte(&token) != bytes[i])
                return false;
    }
    return token == token_end;
}

static weft_json member_at_token(const weft_json *object, const char *token, size_t len) {
    weft_json found = {0};
    for (weft_iter it = weft_iterate(object); weft_next(&it);)
        if (name_matches_token(it.name.text + 1, it.name.text + it.name.len - 1, token, token + len))
            found = it.value;
    return found;
}

static bool well_formed(const char *pointer) {
    if (*pointer && *pointer != '/')
        return false;
    for (const char *p = pointer; (p = strchr(p, '~')); p++)
        if (p[1] != '0' && p[1] != '1')
            return false;
    return true;
}

weft_json weft_pointer(const weft_json *value, const char *pointer) {
    weft_json here = value && pointer && well_formed(pointer) ? *value : (weft_json){0};
    while (here.text && *pointer == '/') {
        const char *token = pointer + 1;
        size_t len = strcspn(token, "/");
        weft_type type = weft_typeof(&here);
        if (type == WEFT_OBJECT)
            here = member_at_token(&here, token, len);
        else if (type == WEFT_ARRAY)
            here = item_at_token(&here, token, len);
        else
            here = (weft_json){0};
        pointer = token + len;
    }
    return here;
}

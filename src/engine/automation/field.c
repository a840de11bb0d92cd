/* Walking down an event. */
#include "field.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAME 255 /* bytes of one part of a path: nothing an event has is longer */

/* The part between two dots, NUL-terminated; false: it is too long to be anything. */
static bool next_part(weft_bytes *path, char part[MAX_NAME + 1]) {
    const char *dot = memchr(path->data, '.', path->len);
    size_t len = dot ? (size_t) (dot - path->data) : path->len;
    if (len > MAX_NAME)
        return false;
    memcpy(part, path->data, len);
    part[len] = '\0';
    size_t used = len + (dot != NULL);
    *path = (weft_bytes){path->data + used, path->len - used};
    return true;
}

static weft_json item_at_index(const weft_json *array, const char *index) {
    char *end;
    if (*index < '0' || *index > '9' || strlen(index) > 9)
        return (weft_json){0};
    unsigned long i = strtoul(index, &end, 10);
    if (*end)
        return (weft_json){0};
    return weft_at(array, i);
}

static weft_json walk_path(const weft_json *from, weft_bytes path) {
    weft_json value = *from;
    char part[MAX_NAME + 1];
    while (path.len && value.text) {
        if (!next_part(&path, part))
            return (weft_json){0};
        value = weft_typeof(&value) == WEFT_ARRAY ? item_at_index(&value, part) : weft_get(&value, part);
    }
    return value;
}

weft_json weft__field(const weft_json *event, weft_bytes path) {
    if (!path.len)
        return (weft_json){0};
    weft_json found = walk_path(event, path);
    if (found.text)
        return found;
    weft_json payload = weft_get(event, "payload");
    return payload.text ? walk_path(&payload, path) : payload;
}

weft_json weft__field_exact(const weft_json *event, weft_bytes path) {
    return path.len ? walk_path(event, path) : (weft_json){0};
}

int weft__field_text(const weft_json *value, const char **ret) {
    weft_bytes bytes;
    *ret = weft_str_of(value, NULL);
    if (*ret || weft_typeof(value) != WEFT_STRING)
        return 0;
    return weft_bytes_of(value, &bytes) == 0 && memchr(bytes.data, '\0', bytes.len) ? 0 : -ENOMEM;
}

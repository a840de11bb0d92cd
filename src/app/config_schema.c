/* The JSON Schema of a configuration file, made from the rows, for editors. Unknown members are not allowed there, so that
 * an editor marks them; the daemon only warns. */
#include <errno.h>
#include <string.h>

#include "config.h"
#include "write.h"

/* A name and whether a comma belongs before it. */
static int put_name(weft_buf *out, const weft_alloc *alloc, const char *name, size_t len) {
    char last = out->data[out->end - 1];
    int r = last == '{' ? 0 : weft__write_raw(out, alloc, ",", 1);
    if (r >= 0)
        r = weft__write_str(out, alloc, name, len);
    return r < 0 ? r : weft__write_raw(out, alloc, ":", 1);
}

static int put_raw(weft_buf *out, const weft_alloc *alloc, const char *text) {
    return weft__write_raw(out, alloc, text, strlen(text));
}

static size_t choices_of(const weft_key *key, weft_val ret[8]) {
    size_t count = 0;
    for (const char *at = key->choices; at && *at && count < 8; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        ret[count++] = weft_strn(at, len);
        at += len;
    }
    return count;
}

static const char *type_of(const weft_key *key) {
    static const char *const types[] = {
        [WEFT_KEY_text] = "string",  [WEFT_KEY_flag] = "boolean", [WEFT_KEY_number] = "integer",
        [WEFT_KEY_size] = "integer", [WEFT_KEY_texts] = "array",  [WEFT_KEY_urls] = "array",
    };
    return types[key->kind];
}

static int put_key(weft_buf *out, const weft_alloc *alloc, const weft_key *key) {
    bool number = key->kind == WEFT_KEY_number || key->kind == WEFT_KEY_size;
    bool list = key->kind == WEFT_KEY_texts || key->kind == WEFT_KEY_urls;
    bool text = key->kind == WEFT_KEY_text && !key->choices;
    weft_val choices[8];
    size_t count = choices_of(key, choices);
    weft_val items = WEFT_OBJ({"type", weft_str("string")}, {"minLength", weft_int(1)});
    weft_val schema = WEFT_OBJ(
        {"description", weft_str(key->help)}, {"type", weft_str(type_of(key))},
        {"enum", count ? weft_arr(choices, count) : weft_none()}, {"minLength", text ? weft_int(1) : weft_none()},
        {"minimum", number ? weft_int(key->min) : weft_none()}, {"maximum", number ? weft_int(key->max) : weft_none()},
        {"items", list ? items : weft_none()}, {"maxItems", list ? weft_int(WEFT_MAX_TEXTS) : weft_none()},
        {"default", key->fallback ? weft_raw(key->fallback, strlen(key->fallback)) : weft_none()});
    return weft__write_val(out, alloc, &schema);
}

/* The rows of an object stand together. Behind the last of them, or NULL: there was no memory. */
static const weft_key *put_group(weft_buf *out, const weft_alloc *alloc, const weft_key *key) {
    const char *path = key->path;
    size_t len = (size_t) (strchr(path, '.') - path) + 1;
    int r = put_name(out, alloc, path, len - 1);
    if (r >= 0)
        r = put_raw(out, alloc, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    for (; r >= 0 && key->path && strncmp(key->path, path, len) == 0; key++) {
        r = put_name(out, alloc, key->path + len, strlen(key->path + len));
        if (r >= 0)
            r = put_key(out, alloc, key);
    }
    return r >= 0 && put_raw(out, alloc, "}}") >= 0 ? key : NULL;
}

static const weft_key *put_row(weft_buf *out, const weft_alloc *alloc, const weft_key *key) {
    if (strchr(key->path, '.'))
        return put_group(out, alloc, key);
    int r = put_name(out, alloc, key->path, strlen(key->path));
    return r >= 0 && put_key(out, alloc, key) >= 0 ? key + 1 : NULL;
}

int weft__config_schema(weft_buf *ret, const weft_alloc *alloc) {
    const weft_key *key = weft__keys;
    weft_buf out = {0};
    int r = put_raw(&out, alloc,
                    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"title\":\"Configuration of Weft\","
                    "\"description\":\"A project's .weft/config.json, or a user's weft/config.json below "
                    "$XDG_CONFIG_HOME\",\"type\":\"object\",\"allowComments\":true,\"allowTrailingCommas\":true,"
                    "\"additionalProperties\":false,\"properties\":{\"$schema\":{\"type\":\"string\"}");
    while (r >= 0 && key && key->path)
        key = put_row(&out, alloc, key);
    if (r >= 0 && key)
        r = put_raw(&out, alloc, "}}");
    if (r >= 0 && key) {
        *ret = out;
        return 0;
    }
    weft__buf_done(&out, alloc);
    return -ENOMEM;
}

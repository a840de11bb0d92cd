/* The JSON Schema of a configuration file, made from the rows, for editors. Unknown members are not allowed there, so that
 * an editor marks them; the daemon only warns. */
#include <errno.h>
#include <string.h>

#include "config.h"
#include "write.h"

/* A name and whether a comma belongs before it. */
static int put_schema_name(weft_buf *out, const weft_alloc *alloc, const char *name, size_t len) {
    char last = out->data[out->end - 1];
    int r = last == '{' ? 0 : weft__write_raw(out, alloc, ",", 1);
    if (r >= 0)
        r = weft__write_str(out, alloc, name, len);
    return r < 0 ? r : weft__write_raw(out, alloc, ":", 1);
}

static int put_raw(weft_buf *out, const weft_alloc *alloc, const char *text) {
    return weft__write_raw(out, alloc, text, strlen(text));
}

static const char *type_of(const weft_key *key) {
    static const char *const types[] = {
        [WEFT_KEY_text] = "string",  [WEFT_KEY_flag] = "boolean", [WEFT_KEY_number] = "integer", [WEFT_KEY_size] = "integer",
        [WEFT_KEY_texts] = "array",  [WEFT_KEY_urls] = "array",   [WEFT_KEY_named] = "object",   [WEFT_KEY_list] = "array",
        [WEFT_KEY_money] = "string", [WEFT_KEY_argvs] = "object",
    };
    return types[key->kind];
}

/* An object of objects, or an array of them. The members of one are all that is not simple about it. */
static int put_structured(weft_buf *out, const weft_alloc *alloc, const weft_key *key) {
    bool named = key->kind == WEFT_KEY_named;
    weft_val max = weft_int(WEFT_MAX_ITEMS);
    weft_val simple = WEFT_OBJ({"description", weft_str(key->help)}, {"type", weft_str(type_of(key))},
                               {"maxProperties", named ? max : weft_none()}, {"maxItems", named ? weft_none() : max},
                               {"default", key->fallback ? weft_raw(key->fallback, strlen(key->fallback)) : weft_none()});
    int r = weft__write_val(out, alloc, &simple);
    if (r < 0)
        return r;
    out->end--; /* the brace: it goes on */
    r = put_raw(out, alloc, named ? ",\"additionalProperties\":{" : ",\"items\":{");
    if (r >= 0)
        r = weft__config_put_shape(out, alloc, key->shape);
    return r < 0 ? r : put_raw(out, alloc, "}}");
}

static int put_schema_key(weft_buf *out, const weft_alloc *alloc, const weft_key *key) {
    bool number = key->kind == WEFT_KEY_number || key->kind == WEFT_KEY_size;
    bool list = key->kind == WEFT_KEY_texts || key->kind == WEFT_KEY_urls;
    weft_val choices[WEFT_MAX_CHOICES];
    if (key->shape)
        return put_structured(out, alloc, key);
    size_t count = weft__choices_values(&key->choices, choices);
    bool text = key->kind == WEFT_KEY_text && !count;
    weft_val items = WEFT_OBJ({"type", weft_str("string")}, {"minLength", weft_int(1)});
    bool argvs = key->kind == WEFT_KEY_argvs;
    weft_val argv = WEFT_OBJ({"type", weft_str("array")}, {"items", WEFT_OBJ({"type", weft_str("string")})},
                             {"minItems", weft_int(1)}, {"maxItems", weft_int(WEFT_MAX_TEXTS)});
    weft_val schema = WEFT_OBJ(
        {"description", weft_str(key->help)}, {"type", weft_str(type_of(key))},
        {"enum", count ? weft_arr(choices, count) : weft_none()}, {"minLength", text ? weft_int(1) : weft_none()},
        {"pattern", key->kind == WEFT_KEY_money ? weft_str("^[0-9.]+ +[!-~]+$") : weft_none()},
        {"minimum", number ? weft_int(key->min) : weft_none()}, {"maximum", number ? weft_int(key->max) : weft_none()},
        {"items", list ? items : weft_none()}, {"maxItems", list ? weft_int(WEFT_MAX_TEXTS) : weft_none()},
        {"additionalProperties", argvs ? argv : weft_none()},
        {"maxProperties", argvs ? weft_int(WEFT_MAX_ITEMS) : weft_none()},
        {"default", key->fallback ? weft_raw(key->fallback, strlen(key->fallback)) : weft_none()});
    return weft__write_val(out, alloc, &schema);
}

/* The rows of an object stand together. Behind the last of them, or NULL: there was no memory. */
static const weft_key *put_group(weft_buf *out, const weft_alloc *alloc, const weft_key *key) {
    const char *path = key->path;
    size_t len = (size_t) (strchr(path, '.') - path) + 1;
    int r = put_schema_name(out, alloc, path, len - 1);
    if (r >= 0)
        r = put_raw(out, alloc, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    for (; r >= 0 && key->path && strncmp(key->path, path, len) == 0; key++) {
        r = put_schema_name(out, alloc, key->path + len, strlen(key->path + len));
        if (r >= 0)
            r = put_schema_key(out, alloc, key);
    }
    return r >= 0 && put_raw(out, alloc, "}}") >= 0 ? key : NULL;
}

static const weft_key *put_schema_row(weft_buf *out, const weft_alloc *alloc, const weft_key *key) {
    if (strchr(key->path, '.'))
        return put_group(out, alloc, key);
    int r = put_schema_name(out, alloc, key->path, strlen(key->path));
    return r >= 0 && put_schema_key(out, alloc, key) >= 0 ? key + 1 : NULL;
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
        key = put_schema_row(&out, alloc, key);
    if (r >= 0 && key)
        r = put_raw(&out, alloc, "}}");
    if (r >= 0 && key) {
        *ret = out;
        return 0;
    }
    weft__buf_done(&out, alloc);
    return -ENOMEM;
}

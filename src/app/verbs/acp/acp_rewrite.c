#include "acp_rewrite.h"

#include <string.h>

#include "write.h"

static int put_words(weft_buf *out, const char *text) {
    return weft__buf_put(out, NULL, text, strlen(text));
}

/* The members of an object but this one; *count: how many there are before. */
static int put_members_but(weft_buf *out, const weft_json *object, const char *but, size_t *count) {
    int r = 0;
    for (weft_iter it = weft_iterate(object); r >= 0 && weft_next(&it);) {
        if (weft_name_is(&it, but))
            continue;
        r = (*count)++ ? put_words(out, ",") : 0;
        if (r >= 0)
            r = weft__buf_put(out, NULL, it.name.text, it.name.len);
        if (r >= 0)
            r = put_words(out, ":");
        if (r >= 0)
            r = weft__buf_put(out, NULL, it.value.text, it.value.len);
    }
    return r;
}

int weft__acp_put_with_meta(weft_buf *out, const weft_json *object, const char *name, weft_val value) {
    weft_json meta = weft_get(object, "_meta");
    size_t count = 0, inner = 0;
    int r = put_words(out, "{");
    if (r >= 0 && weft_typeof(object) == WEFT_OBJECT)
        r = put_members_but(out, object, "_meta", &count);
    if (r >= 0)
        r = put_words(out, count ? ",\"_meta\":{" : "\"_meta\":{");
    if (r >= 0 && weft_typeof(&meta) == WEFT_OBJECT)
        r = put_members_but(out, &meta, name, &inner);
    if (r >= 0 && inner)
        r = put_words(out, ",");
    if (r >= 0)
        r = weft__write_str(out, NULL, name, strlen(name));
    if (r >= 0)
        r = put_words(out, ":");
    if (r >= 0)
        r = weft__write_val(out, NULL, &value);
    return r < 0 ? r : put_words(out, "}}");
}

int weft__acp_put_request(weft_buf *out, const weft_msg *msg, const weft_buf *params) {
    weft_val value = WEFT_OBJ({"jsonrpc", weft_str("2.0")}, {"id", weft_raw(msg->id.data, msg->id.len)},
                              {"method", weft_strn(msg->method.data, msg->method.len)},
                              {"params", weft_raw(weft__buf_head(params), weft__buf_len(params))});
    return weft__write_val(out, NULL, &value);
}

int weft__acp_put_initialize(weft_buf *out, const weft_json *params) {
    weft_json able = weft_get(params, "clientCapabilities");
    size_t count = 0;
    int r = put_words(out, "{");
    if (r >= 0)
        r = put_members_but(out, params, "clientCapabilities", &count);
    if (r >= 0)
        r = put_words(out, count ? ",\"clientCapabilities\":" : "\"clientCapabilities\":");
    if (r >= 0)
        r = weft__acp_put_with_meta(out, &able, "weft/positions", weft_bool(true));
    return r < 0 ? r : put_words(out, "}");
}

/* Writing messages. Order of members: jsonrpc, id, then the rest, so that a reader knows early what it is reading. */
#include "encode.h"

#include <errno.h>
#include <string.h>

#include "write.h"

#define PUT(out, alloc, text) weft__buf_put((out), (alloc), (text), sizeof(text) - 1)

static int write_id_head(weft_buf *out, const weft_alloc *alloc, weft_bytes id) {
    int r = PUT(out, alloc, WEFT_OPEN_ID);
    if (r < 0)
        return r;
    return id.len ? weft__buf_put(out, alloc, id.data, id.len) : PUT(out, alloc, "null");
}

/* Undo what a half-written message left behind. */
static int undo_message(weft_buf *out, size_t len, int r) {
    if (r < 0)
        out->end = out->start + len;
    return r;
}

int weft__write_any_result(weft_buf *out, const weft_alloc *alloc, weft_bytes id, const weft_val *result) {
    size_t len = weft__buf_len(out);
    int r = write_id_head(out, alloc, id);
    if (r >= 0)
        r = PUT(out, alloc, WEFT_OPEN_RESULT);
    if (r >= 0)
        r = weft__write_val(out, alloc, result);
    if (r >= 0)
        r = PUT(out, alloc, "}");
    return undo_message(out, len, r);
}

int weft__write_error(weft_buf *out, const weft_alloc *alloc, weft_bytes id, int code, const char *message,
                      const weft_val *data) {
    size_t len = weft__buf_len(out);
    weft_val error =
        WEFT_OBJ({"code", weft_int(code)}, {"message", weft_str(message)}, {"data", data ? *data : weft_none()});
    int r = write_id_head(out, alloc, id);
    if (r >= 0)
        r = PUT(out, alloc, ",\"error\":");
    if (r >= 0)
        r = weft__write_val(out, alloc, &error);
    if (r >= 0)
        r = PUT(out, alloc, "}");
    return undo_message(out, len, r);
}

/* ---- params with extras ---- */

#define MAX_EXTRAS 3

static size_t meta_members(const weft_extras *extras, weft_member ret[MAX_EXTRAS]) {
    size_t n = 0;
    if (extras->progress_token && !extras->token_in_params)
        ret[n++] = (weft_member){"progressToken", weft_int(extras->progress_token)};
    if (extras->deadline_ms)
        ret[n++] = (weft_member){"weft/deadlineMs", weft_int(extras->deadline_ms)};
    if (extras->idempotency_key)
        ret[n++] = (weft_member){"weft/idempotencyKey", weft_str(extras->idempotency_key)};
    return n;
}

/* One member of an object. *first says whether a comma is needed before it. */
static int write_params_member(weft_buf *out, const weft_alloc *alloc, bool *first, const weft_val *name,
                               const weft_val *value) {
    if (value->kind == WEFT_VAL_NONE)
        return 0;
    int r = *first ? 0 : PUT(out, alloc, ",");
    *first = false;
    if (r >= 0)
        r = weft__write_val(out, alloc, name);
    if (r >= 0)
        r = PUT(out, alloc, ":");
    return r < 0 ? r : weft__write_val(out, alloc, value);
}

static int write_named(weft_buf *out, const weft_alloc *alloc, bool *first, const char *name, const weft_val *value) {
    weft_val text = weft_str(name);
    return write_params_member(out, alloc, first, &text, value);
}

/* Everything in the caller's params but _meta, whose value comes back in *ret_meta for merging. */
static int write_own_members(weft_buf *out, const weft_alloc *alloc, const weft_val *params, bool *first,
                             weft_val *ret_meta) {
    int r = 0;
    *ret_meta = weft_none();
    if (params->kind == WEFT_VAL_OBJ) {
        for (size_t i = 0; i < params->len && r >= 0; i++)
            if (strcmp(params->as.members[i].name, "_meta") == 0)
                *ret_meta = params->as.members[i].value;
            else
                r = write_named(out, alloc, first, params->as.members[i].name, &params->as.members[i].value);
        return r;
    }
    const weft_json copied = {.text = params->as.s, .len = params->len};
    for (weft_iter it = weft_iterate(&copied); r >= 0 && weft_next(&it);) {
        weft_val name = weft_copy(&it.name), value = weft_copy(&it.value);
        if (weft_name_is(&it, "_meta"))
            *ret_meta = value;
        else
            r = write_params_member(out, alloc, first, &name, &value);
    }
    return r;
}

static int write_meta(weft_buf *out, const weft_alloc *alloc, bool *first, const weft_val *own, const weft_extras *extras) {
    weft_member added[MAX_EXTRAS];
    size_t count = meta_members(extras, added);
    bool inner_first = true;
    weft_val ignored;
    if (!count && own->kind == WEFT_VAL_NONE)
        return 0;
    int r = *first ? 0 : PUT(out, alloc, ",");
    *first = false;
    if (r >= 0)
        r = PUT(out, alloc, "\"_meta\":{");
    if (r >= 0 && (own->kind == WEFT_VAL_OBJ || own->kind == WEFT_VAL_RAW))
        r = write_own_members(out, alloc, own, &inner_first, &ignored);
    for (size_t i = 0; i < count && r >= 0; i++)
        r = write_named(out, alloc, &inner_first, added[i].name, &added[i].value);
    return r < 0 ? r : PUT(out, alloc, "}");
}

static bool is_by_name(const weft_val *params) {
    return params->kind == WEFT_VAL_NONE || params->kind == WEFT_VAL_OBJ ||
           (params->kind == WEFT_VAL_RAW && params->len && params->as.s[0] == '{');
}

static int write_call_params(weft_buf *out, const weft_alloc *alloc, const weft_val *params, const weft_extras *extras) {
    bool first = true;
    weft_val own_meta;
    if (!is_by_name(params))
        return -EINVAL;
    int r = PUT(out, alloc, "{");
    if (r >= 0)
        r = write_own_members(out, alloc, params, &first, &own_meta);
    if (r >= 0 && extras->progress_token && extras->token_in_params) {
        weft_val token = weft_int(extras->progress_token);
        r = write_named(out, alloc, &first, "partialResultToken", &token);
    }
    if (r >= 0)
        r = write_meta(out, alloc, &first, &own_meta, extras);
    return r < 0 ? r : PUT(out, alloc, "}");
}

static bool has_extras(const weft_extras *extras) {
    return extras && (extras->progress_token || extras->deadline_ms || extras->idempotency_key);
}

/* What we would refuse ourselves is not sent: params are an object, an array or not there (section 4.2). 1 they are there, 0
 * not, -EINVAL. */
static int are_there(const weft_val *params) {
    const char *text = params->as.s;
    size_t n = 0;
    switch (params->kind) {
    case WEFT_VAL_NONE:
    case WEFT_VAL_NULL:
        return 0;
    case WEFT_VAL_ARR:
    case WEFT_VAL_OBJ:
        return 1;
    case WEFT_VAL_RAW:
        while (n < params->len && (text[n] == ' ' || (text[n] >= '\t' && text[n] <= '\r')))
            n++;
        if (n < params->len && (text[n] == '{' || text[n] == '['))
            return 1;
        return params->len - n >= 4 && memcmp(text + n, "null", 4) == 0 ? 0 : -EINVAL;
    default:
        return -EINVAL;
    }
}

int weft__request_fits(const char *method, const weft_val *params) {
    return method && *method && are_there(params) >= 0 ? 0 : -EINVAL;
}

int weft__write_request(weft_buf *out, const weft_alloc *alloc, int64_t id, const char *method, const weft_val *params,
                        const weft_extras *extras) {
    static const weft_val none = {.kind = WEFT_VAL_NONE};
    size_t len = weft__buf_len(out);
    if (!method)
        return -EINVAL;
    if (are_there(params) == 0)
        params = &none;
    int r;
    if (id) {
        r = PUT(out, alloc, WEFT_OPEN_ID);
        if (r >= 0)
            r = weft__write_int(out, alloc, id);
        if (r >= 0)
            r = PUT(out, alloc, ",\"method\":");
    } else
        r = PUT(out, alloc, "{\"jsonrpc\":\"2.0\",\"method\":");
    if (r >= 0)
        r = weft__write_str(out, alloc, method, strlen(method));
    if (r >= 0 && (params->kind != WEFT_VAL_NONE || has_extras(extras)))
        r = PUT(out, alloc, ",\"params\":");
    if (r >= 0 && has_extras(extras))
        r = write_call_params(out, alloc, params, extras);
    else if (r >= 0 && params->kind != WEFT_VAL_NONE)
        r = weft__write_val(out, alloc, params);
    if (r >= 0)
        r = PUT(out, alloc, "}");
    return undo_message(out, len, r);
}

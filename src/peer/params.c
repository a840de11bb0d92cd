/* Params by table: checked, and put into a struct. The first field that does not fit is named in the answer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "distance.h"
#include "request.h"
#include "row_schemas.h"
#include "utf8.h"

/* A longer name of an unknown member is cut in the answer. */
#define MAX_SHOWN 64
/* Which rows were seen is a bit set. */
#define MAX_ROWS 64

static const struct {
    const char *must_be;
    weft_type type;
} kinds[] = {
    [WEFT_PARAM_any] = {"anything", WEFT_ABSENT},     [WEFT_PARAM_str] = {"a string", WEFT_STRING},
    [WEFT_PARAM_int] = {"an integer", WEFT_NUMBER},   [WEFT_PARAM_num] = {"a number", WEFT_NUMBER},
    [WEFT_PARAM_bool] = {"true or false", WEFT_BOOL}, [WEFT_PARAM_obj] = {"an object", WEFT_OBJECT},
    [WEFT_PARAM_arr] = {"an array", WEFT_ARRAY},
};

/* JSON Pointer of a member (RFC 6901 section 3). */
static void pointer_to(const char *name, char *ret, size_t size) {
    size_t n = 0;
    ret[n++] = '/';
    for (; *name && n + 3 < size; name++) {
        if (*name == '~' || *name == '/') {
            ret[n++] = '~';
            ret[n++] = *name == '~' ? '0' : '1';
        } else
            ret[n++] = *name;
    }
    ret[n] = '\0';
}

static int refuse_params(weft_req *req, const char *path, const char *sentence) {
    char message[320];
    snprintf(message, sizeof message, "Invalid params: %s", sentence);
    weft_fail(req, WEFT_INVALID_PARAMS, message, WEFT_OBJ({"reason", weft_str("invalidParams")}, {"path", weft_str(path)}));
    return -EINVAL;
}

static int refuse_field(weft_req *req, const weft_param *row, const char *what) {
    char path[160], sentence[256];
    pointer_to(row->name, path, sizeof path);
    snprintf(sentence, sizeof sentence, "%s %s", row->name, what);
    return refuse_params(req, path, sentence);
}

static int must_be(weft_req *req, const weft_param *row) {
    char what[64];
    snprintf(what, sizeof what, "must be %s", kinds[row->type].must_be);
    return refuse_field(req, row, what);
}

static int read_str(weft_req *req, const weft_param *row, const weft_json *value, void *field) {
    weft_bytes text;
    int r = weft_text(value, &text);
    if (r < 0)
        return r;
    if ((row->flags & WEFT_NONEMPTY) && !text.len)
        return refuse_field(req, row, "must not be empty");
    if (memchr(text.data, '\0', text.len))
        return refuse_field(req, row, "must not contain a NUL");
    if (!field)
        return 0;
    const char *copy = weft_str_of(value, NULL);
    if (!copy)
        return -ENOMEM;
    *(const char **) field = copy;
    return 0;
}

static int read_int(weft_req *req, const weft_param *row, const weft_json *value, void *field) {
    int64_t low = weft_int_of(value, 0);
    if (low == 0 && weft_int_of(value, 1) == 1)
        return must_be(req, row); /* 1.5, or beyond 64 bits */
    if (field)
        *(int64_t *) field = low;
    return 0;
}

static int read_field(weft_req *req, const weft_param *row, const weft_json *value, void *field) {
    weft_type type = weft_typeof(value);
    if (row->type != WEFT_PARAM_any && type != kinds[row->type].type)
        return must_be(req, row);
    switch (row->type) {
    case WEFT_PARAM_str:
        return read_str(req, row, value, field);
    case WEFT_PARAM_int:
        return read_int(req, row, value, field);
    case WEFT_PARAM_num:
        if (field)
            *(double *) field = weft_num_of(value, 0);
        return 0;
    case WEFT_PARAM_bool:
        if (field)
            *(bool *) field = weft_bool_of(value, false);
        return 0;
    case WEFT_PARAM_arr:
        if ((row->flags & WEFT_NONEMPTY) && !weft_count(value))
            return refuse_field(req, row, "must not be empty");
        break;
    case WEFT_PARAM_any:
    case WEFT_PARAM_obj:
        break;
    }
    if (field)
        *(weft_json *) field = *value;
    return 0;
}

static int bind_param(weft_req *req, const weft_param *row, const weft_json *value, void *base, uint64_t *seen,
                      size_t index) {
    if ((row->flags & WEFT_NULLABLE) && weft_typeof(value) == WEFT_NULL)
        return 0;
    *seen |= 1ULL << index;
    return read_field(req, row, value, base ? (char *) base + row->offset : NULL);
}

static size_t find_param_row(const weft_param *table, const weft_iter *it) {
    size_t i = 0;
    while (i < MAX_ROWS && table[i].name && !weft_name_is(it, table[i].name))
        i++;
    return i;
}

/* ---- members that no row has ---- */

/* The library reads these out of the params of any method. */
static bool is_for_the_library(const weft_iter *it) {
    return weft_name_is(it, "_meta") || weft_name_is(it, "partialResultToken") || weft_name_is(it, "workDoneToken");
}

static const char *nearest_row(const weft_param *table, const char *typed) {
    const char *best = NULL;
    size_t least = weft__word_mistakes(typed) + 1;
    for (size_t i = 0; i < MAX_ROWS && table[i].name; i++) {
        size_t d = weft__word_distance(typed, table[i].name);
        if (d < least) {
            least = d;
            best = table[i].name;
        }
    }
    return best;
}

static int refuse_unknown_member(weft_req *req, const weft_param *table, const weft_json *name) {
    char shown[MAX_SHOWN + 1], path[2 * MAX_SHOWN + 8], message[2 * MAX_SHOWN + 200];
    weft_bytes text;
    int r = weft_text(name, &text);
    if (r < 0)
        return r;
    snprintf(shown, sizeof shown, "%.*s", (int) weft__utf8_fit(text.data, text.len, MAX_SHOWN), text.data);
    pointer_to(shown, path, sizeof path);
    const char *meant = nearest_row(table, shown);
    int n = snprintf(message, sizeof message, "unknown param \"%s\"", shown);
    if (meant)
        snprintf(message + n, sizeof message - (size_t) n, "; did you mean \"%s\"?", meant);
    weft_fail(req, WEFT_INVALID_PARAMS, message, WEFT_OBJ({"reason", weft_str("unknownParam")}, {"path", weft_str(path)}));
    return -EINVAL;
}

/* ---- binding ---- */

/* The last of duplicate members wins, as it does in weft_get(): those before it are not even looked at. */
static int bind_named(weft_req *req, const weft_param *table, const weft_json *params, bool strict, void *base,
                      uint64_t *seen) {
    weft_json last[MAX_ROWS];
    uint64_t there = 0, named = 0;
    int r = 0;
    for (weft_iter it = weft_iterate(params); weft_next(&it);) {
        size_t i = find_param_row(table, &it);
        if (i == MAX_ROWS || !table[i].name) {
            if (strict && !is_for_the_library(&it))
                return refuse_unknown_member(req, table, &it.name);
            continue;
        }
        last[i] = it.value;
        there |= 1ULL << i;
    }
    for (size_t i = 0, owner = 0; r >= 0 && i < MAX_ROWS && table[i].name; i++) {
        bool alias = table[i].flags & WEFT_ALIAS;
        owner = alias ? owner : i;
        if ((there >> i & 1) && !(alias && (named >> owner & 1)))
            r = bind_param(req, &table[i], &last[i], base, seen, owner);
        named |= alias ? 0 : *seen & 1ULL << i;
    }
    return r;
}

static int bind_positional(weft_req *req, const weft_param *table, const weft_json *params, void *base, uint64_t *seen) {
    size_t i = 0, place = 0;
    for (weft_iter it = weft_iterate(params); weft_next(&it); i++, place++) {
        while (i < MAX_ROWS && table[i].name && (table[i].flags & WEFT_ALIAS))
            i++;
        if (i == MAX_ROWS || !table[i].name) {
            char path[24], sentence[64];
            snprintf(path, sizeof path, "/%zu", place);
            snprintf(sentence, sizeof sentence, "there are at most %zu", place);
            return refuse_params(req, path, sentence);
        }
        int r = bind_param(req, &table[i], &it.value, base, seen, i);
        if (r < 0)
            return r;
    }
    return 0;
}

static int bind_table(weft_req *req, const weft_param *table, const weft_json *params, bool strict, void *base) {
    uint64_t seen = 0;
    int r = 0;
    if (weft_typeof(params) == WEFT_OBJECT)
        r = bind_named(req, table, params, strict, base, &seen);
    else if (weft_typeof(params) == WEFT_ARRAY)
        r = bind_positional(req, table, params, base, &seen);
    for (size_t i = 0; r >= 0 && i < MAX_ROWS && table[i].name; i++)
        if ((table[i].flags & WEFT_REQUIRED) && !(seen & 1ULL << i))
            r = refuse_field(req, &table[i], "is missing");
    return r;
}

int weft_bind(weft_req *req, const weft_param *table, const weft_json *params, void *ret_struct) {
    return bind_table(req, table, params, false, ret_struct);
}

size_t weft__params_size(const weft_param *table) {
    size_t i = 0;
    while (table && i < MAX_ROWS && table[i].name)
        i++;
    return table && i < MAX_ROWS ? table[i].offset : 0;
}

int weft__params_bind(weft_req *req, const weft_method *row, const weft_json *params, void *memory) {
    size_t size = weft__params_size(row->params);
    req->bound = NULL;
    if (!row->params)
        return row->params_schema ? weft__row_schemas_params(req, row, params) : 0;
    if (size && row->defaults)
        memcpy(memory, row->defaults, size);
    else if (size)
        memset(memory, 0, size);
    int r = bind_table(req, row->params, params, row->flags & WEFT_STRICT, size ? memory : NULL);
    if (r >= 0 && row->params_schema)
        r = weft__row_schemas_params(req, row, params);
    if (r >= 0 && size)
        req->bound = memory;
    return r;
}

void *weft_req_params(weft_req *req) {
    return req->bound;
}

int weft_req_pass_on(weft_req *req, const weft_method *row, const weft_json *params, void *ctx) {
    weft_params_memory memory;
    req->form = row;
    if (row->timeout_ms > 0)
        weft__req_limit(req, row->timeout_ms);
    int r = weft__params_bind(req, row, params, &memory);
    if (r >= 0)
        r = row->handler(req, params, ctx);
    req->bound = NULL;
    return r;
}

/* Params by table: checked, and put into a struct. The first field that does not fit is named in the answer. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "distance.h"
#include "error_row.h"
#include "request.h"
#include "row_schemas.h"
#include "utf8.h"

/* A longer name of an unknown member is cut in the answer. */
#define MAX_SHOWN 64
/* Of a sentence about a field, and of the path to it. */
#define MAX_SENTENCE 400
#define MAX_PATH 320

static const struct {
    const char *must_be;
    weft_type type;
} kinds[] = {
    [WEFT_PARAM_any] = {"anything", WEFT_ABSENT},     [WEFT_PARAM_str] = {"a string", WEFT_STRING},
    [WEFT_PARAM_int] = {"an integer", WEFT_NUMBER},   [WEFT_PARAM_num] = {"a number", WEFT_NUMBER},
    [WEFT_PARAM_bool] = {"true or false", WEFT_BOOL}, [WEFT_PARAM_obj] = {"an object", WEFT_OBJECT},
    [WEFT_PARAM_arr] = {"an array", WEFT_ARRAY},
};

/* One table being read: where its values lie, and where they go. */
typedef struct binding {
    weft_req *req;
    const weft_param *table;
    const char *at; /* JSON Pointer of the value whose members these are; "" the params themselves */
    bool strict;
    void *base;    /* of the struct; NULL: only checked */
    uint64_t seen; /* rows */
    int place;     /* of a positional one that is being read; -1: it has a name */
} binding;

/* JSON Pointer of a member (RFC 6901 section 3), or of an item. */
static void pointer_to(const binding *b, const char *name, char *ret, size_t size) {
    int begun = b->place >= 0 ? snprintf(ret, size, "%s/%d", b->at, b->place) : snprintf(ret, size, "%s/", b->at);
    size_t n = begun < 0 || (size_t) begun >= size ? size - 1 : (size_t) begun;
    for (; b->place < 0 && *name && n + 3 < size; name++) {
        if (*name == '~' || *name == '/') {
            ret[n++] = '~';
            ret[n++] = *name == '~' ? '0' : '1';
        } else
            ret[n++] = *name;
    }
    ret[n] = '\0';
}

static int fail_params(weft_req *handle, const char *message, const char *reason, const char *path) {
    const weft_req *req = weft__req_of(handle);
    const char *name = req ? weft__row_name(req->row, "invalidParams") : NULL;
    weft_fail(
        handle, WEFT_INVALID_PARAMS, message,
        WEFT_OBJ({"reason", weft_str(reason)}, {"code", name ? weft_str(name) : weft_none()}, {"path", weft_str(path)}));
    return -EINVAL;
}

static int refuse_params(weft_req *req, const char *path, const char *sentence) {
    char message[MAX_SENTENCE + 32];
    snprintf(message, sizeof message, "Invalid params: %s", sentence);
    return fail_params(req, message, "invalidParams", path);
}

/* The sentence names the field, also where the caller gave it by its position. */
static int refuse_field(const binding *b, const weft_param *row, const char *what) {
    char path[MAX_PATH], sentence[MAX_SENTENCE];
    pointer_to(b, row->name, path, sizeof path);
    const char *at = *b->at ? b->at + 1 : "";
    snprintf(sentence, sizeof sentence, "%s%s%s %s", at, *at ? "/" : "", row->name, what);
    return refuse_params(b->req, path, sentence);
}

/* A text that must be there and is empty counts as missing where errors are named. */
static int refuse_absent(const binding *b, const weft_param *row, const char *what) {
    char path[MAX_PATH], message[MAX_SENTENCE];
    if (!weft__req_of(b->req)->service->named_errors || !(row->flags & WEFT_REQUIRED))
        return refuse_field(b, row, what);
    pointer_to(b, row->name, path, sizeof path);
    snprintf(message, sizeof message, "Missing required parameter: %s", row->name);
    return fail_params(b->req, message, "invalidParams", path);
}

static int must_be(const binding *b, const weft_param *row) {
    char what[64];
    snprintf(what, sizeof what, "must be %s", kinds[row->type].must_be);
    return refuse_field(b, row, what);
}

/* ---- limits ---- */

static int refuse_range(const binding *b, const weft_param *row) {
    char what[128];
    const char *of = row->type == WEFT_PARAM_str ? " characters" : row->type == WEFT_PARAM_arr ? " items" : "";
    const char *verb = *of ? "have" : "be";
    if (row->max == INT64_MAX)
        snprintf(what, sizeof what, "must %s at least %" PRId64 "%s", verb, row->min, of);
    else if (row->min == INT64_MIN)
        snprintf(what, sizeof what, "must %s at most %" PRId64 "%s", verb, row->max, of);
    else
        snprintf(what, sizeof what, "must %s %" PRId64 " to %" PRId64 "%s", verb, row->min, row->max, of);
    return refuse_field(b, row, what);
}

static int check_count(const binding *b, const weft_param *row, int64_t is) {
    bool fits = !(row->flags & WEFT_RANGE) || (is >= row->min && is <= row->max);
    return fits ? 0 : refuse_range(b, row);
}

/* Characters as JSON Schema counts them: code points. */
static int64_t count_characters(weft_bytes text) {
    int64_t n = 0;
    for (size_t i = 0; i < text.len; i++)
        n += ((unsigned char) text.data[i] & 0xC0) != 0x80;
    return n;
}

static int check_words(const binding *b, const weft_param *row, weft_bytes text) {
    char what[MAX_SENTENCE];
    int n = snprintf(what, sizeof what, "must be one of");
    for (const char *const *word = row->one_of; *word; word++) {
        if (strlen(*word) == text.len && memcmp(*word, text.data, text.len) == 0)
            return 0;
        if (n >= 0 && (size_t) n < sizeof what)
            n += snprintf(what + n, sizeof what - (size_t) n, "%s \"%s\"", word == row->one_of ? "" : ",", *word);
    }
    return refuse_field(b, row, what);
}

/* ---- one field ---- */

static int check_str(const binding *b, const weft_param *row, weft_bytes text) {
    if ((row->flags & WEFT_NONEMPTY) && !text.len)
        return refuse_absent(b, row, "must not be empty");
    if (memchr(text.data, '\0', text.len))
        return refuse_field(b, row, "must not contain a NUL");
    int r = row->one_of ? check_words(b, row, text) : 0;
    return r < 0 || !(row->flags & WEFT_RANGE) ? r : check_count(b, row, count_characters(text));
}

static int read_str(const binding *b, const weft_param *row, const weft_json *value, void *field) {
    weft_bytes text;
    int r = weft_bytes_of(value, &text);
    if (r >= 0)
        r = check_str(b, row, text);
    if (r < 0 || !field)
        return r;
    const char *copy = weft_str_of(value, NULL);
    if (!copy)
        return -ENOMEM;
    *(const char **) field = copy;
    return 0;
}

static int read_int(const binding *b, const weft_param *row, const weft_json *value, void *field) {
    int64_t low = weft_int_of(value, 0);
    if (low == 0 && weft_int_of(value, 1) == 1)
        return must_be(b, row); /* 1.5, or beyond 64 bits */
    if (field)
        *(int64_t *) field = low;
    return check_count(b, row, low);
}

static int read_num(const binding *b, const weft_param *row, const weft_json *value, void *field) {
    double low = weft_num_of(value, 0);
    if (low == 0 && weft_num_of(value, 1) != 0)
        return must_be(b, row); /* beyond the largest double */
    if (field)
        *(double *) field = low;
    bool under = row->min != INT64_MIN && low < (double) row->min, over = row->max != INT64_MAX && low > (double) row->max;
    return (row->flags & WEFT_RANGE) && (under || over) ? refuse_range(b, row) : 0;
}

static int check_items(const binding *b, const weft_param *row, const weft_json *value) {
    if ((row->flags & WEFT_NONEMPTY) && !weft_count(value))
        return refuse_absent(b, row, "must not be empty");
    return row->flags & WEFT_RANGE ? check_count(b, row, (int64_t) weft_count(value)) : 0;
}

static int read_field(const binding *b, const weft_param *row, const weft_json *value, void *field) {
    weft_type type = weft_typeof(value);
    if (row->type != WEFT_PARAM_any && type != kinds[row->type].type)
        return must_be(b, row);
    int r = 0;
    switch (row->type) {
    case WEFT_PARAM_str:
        return read_str(b, row, value, field);
    case WEFT_PARAM_int:
        return read_int(b, row, value, field);
    case WEFT_PARAM_num:
        return read_num(b, row, value, field);
    case WEFT_PARAM_bool:
        if (field)
            *(bool *) field = weft_bool_of(value, false);
        return 0;
    case WEFT_PARAM_arr:
        r = check_items(b, row, value);
        break;
    case WEFT_PARAM_any:
    case WEFT_PARAM_obj:
        break;
    }
    if (r >= 0 && field)
        *(weft_json *) field = *value;
    return r;
}

static int bind_param(binding *b, const weft_param *row, const weft_json *value, size_t index) {
    if ((row->flags & WEFT_NULLABLE) && weft_typeof(value) == WEFT_NULL)
        return 0;
    b->seen |= 1ULL << index;
    return read_field(b, row, value, b->base ? (char *) b->base + row->offset : NULL);
}

static size_t find_param_row(const weft_param *table, const weft_iter *it) {
    size_t i = 0;
    while (i < WEFT_PARAMS_ROWS && table[i].name && !weft_name_is(it, table[i].name))
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
    for (size_t i = 0; i < WEFT_PARAMS_ROWS && table[i].name; i++) {
        size_t d = weft__word_distance(typed, table[i].name);
        if (d < least) {
            least = d;
            best = table[i].name;
        }
    }
    return best;
}

static int refuse_unknown_member(const binding *b, const weft_json *name) {
    char shown[MAX_SHOWN + 1], path[MAX_PATH], message[2 * MAX_SHOWN + 200];
    weft_bytes text;
    int r = weft_bytes_of(name, &text);
    if (r < 0)
        return r;
    snprintf(shown, sizeof shown, "%.*s", (int) weft__utf8_fit(text.data, text.len, MAX_SHOWN), text.data);
    pointer_to(b, shown, path, sizeof path);
    const char *meant = nearest_row(b->table, shown);
    int n = snprintf(message, sizeof message, "unknown param \"%s\"", shown);
    if (meant)
        snprintf(message + n, sizeof message - (size_t) n, "; did you mean \"%s\"?", meant);
    return fail_params(b->req, message, "unknownParam", path);
}

/* ---- binding ---- */

/* The last of duplicate members wins, as it does in weft_get(): those before it are not even looked at. */
static int bind_named(binding *b, const weft_json *params) {
    weft_json last[WEFT_PARAMS_ROWS];
    const weft_param *table = b->table;
    uint64_t there = 0, named = 0;
    int r = 0;
    for (weft_iter it = weft_iterate(params); weft_next(&it);) {
        size_t i = find_param_row(table, &it);
        if (i == WEFT_PARAMS_ROWS || !table[i].name) {
            if (b->strict && !is_for_the_library(&it))
                return refuse_unknown_member(b, &it.name);
            continue;
        }
        last[i] = it.value;
        there |= 1ULL << i;
    }
    for (size_t i = 0, owner = 0; r >= 0 && i < WEFT_PARAMS_ROWS && table[i].name; i++) {
        bool alias = table[i].flags & WEFT_ALIAS;
        owner = alias ? owner : i;
        if ((there >> i & 1) && !(alias && (named >> owner & 1)))
            r = bind_param(b, &table[i], &last[i], owner);
        named |= alias ? 0 : b->seen & 1ULL << i;
    }
    return r;
}

static int refuse_more(const binding *b, int count) {
    char path[MAX_PATH], sentence[64];
    snprintf(path, sizeof path, "%s/%d", b->at, count);
    snprintf(sentence, sizeof sentence, "there are at most %d", count);
    return refuse_params(b->req, path, sentence);
}

static int bind_positional(binding *b, const weft_json *params) {
    const weft_param *table = b->table;
    size_t i = 0;
    int r = 0;
    b->place = 0;
    for (weft_iter it = weft_iterate(params); r >= 0 && weft_next(&it); i++, b->place++) {
        while (i < WEFT_PARAMS_ROWS && table[i].name && (table[i].flags & WEFT_ALIAS))
            i++;
        if (i == WEFT_PARAMS_ROWS || !table[i].name)
            return refuse_more(b, b->place);
        r = bind_param(b, &table[i], &it.value, i);
    }
    return r;
}

/* Where a row that is missing would have been. */
static int refuse_missing(binding *b, size_t index) {
    int place = 0;
    for (size_t i = 0; i < index; i++)
        place += !(b->table[i].flags & WEFT_ALIAS);
    b->place = b->place >= 0 ? place : -1;
    return refuse_absent(b, &b->table[index], "is missing");
}

static int bind_table(binding *b, const weft_json *params) {
    int r = 0;
    b->place = -1;
    if (weft_typeof(params) == WEFT_OBJECT)
        r = bind_named(b, params);
    else if (weft_typeof(params) == WEFT_ARRAY)
        r = bind_positional(b, params);
    for (size_t i = 0; r >= 0 && i < WEFT_PARAMS_ROWS && b->table[i].name; i++)
        if ((b->table[i].flags & WEFT_REQUIRED) && !(b->seen & 1ULL << i))
            r = refuse_missing(b, i);
    return r;
}

int weft_bind(weft_req *req, const weft_param *table, const weft_json *params, void *ret_struct) {
    return weft_bind_at(req, "", table, params, ret_struct);
}

int weft_bind_at(weft_req *req, const char *at, const weft_param *table, const weft_json *value, void *ret_struct) {
    weft_type type = weft_typeof(value);
    char sentence[MAX_SENTENCE];
    if (!table)
        return -EINVAL;
    at = at ? at : "";
    if (type == WEFT_OBJECT || type == WEFT_ARRAY || type == WEFT_ABSENT)
        return bind_table(&(binding){.req = req, .table = table, .at = at, .base = ret_struct}, value);
    snprintf(sentence, sizeof sentence, "%s must be an object", *at ? at + 1 : "this");
    return refuse_params(req, at, sentence);
}

size_t weft__params_size(const weft_param *table) {
    size_t i = 0;
    while (table && i < WEFT_PARAMS_ROWS && table[i].name)
        i++;
    return table && i < WEFT_PARAMS_ROWS ? table[i].offset : 0;
}

static int bind_row(weft_req *req, const weft_method *row, const weft_json *params, const char *at, void *memory) {
    size_t size = weft__params_size(row->params);
    req->bound = NULL;
    if (!row->params)
        return row->params_schema ? weft__row_schemas_params(req, row, params) : 0;
    if (size && row->defaults)
        memcpy(memory, row->defaults, size);
    else if (size)
        memset(memory, 0, size);
    binding b = {
        .req = req, .table = row->params, .at = at, .strict = row->flags & WEFT_ROW_STRICT, .base = size ? memory : NULL};
    int r = bind_table(&b, params);
    if (r >= 0 && row->params_schema)
        r = weft__row_schemas_params(req, row, params);
    if (r >= 0 && size)
        req->bound = memory;
    return r;
}

int weft__params_bind(weft_req *req, const weft_method *row, const weft_json *params, void *memory) {
    return bind_row(req, row, params, "", memory);
}

void *weft_req_params(weft_req *handle) {
    weft_req *req = weft__req_of(handle);
    return req ? req->bound : NULL;
}

int weft__req_pass_on_at(weft_req *handle, const weft_method *row, const weft_json *params, const char *at, void *ctx) {
    weft_params_memory memory;
    weft_req *req = weft__req_of(handle);
    if (!req)
        return -EALREADY;
    if (!row || !row->handler)
        return -EINVAL;
    req->form = row;
    if (row->timeout_ms > 0)
        weft__req_limit(req, row->timeout_ms);
    int r = bind_row(req, row, params, at, &memory);
    if (r >= 0)
        r = row->handler(handle, params, ctx);
    req->bound = NULL; /* inside the handler of the row that handed it on: it is still there */
    return r;
}

int weft_req_pass_on(weft_req *handle, const weft_method *row, const weft_json *params, void *ctx) {
    return weft__req_pass_on_at(handle, row, params, "", ctx);
}

/* Rows and their compiled schemas, sorted by the row's address: there are few, and they are looked up by halves. */
#include "row_schemas.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weft/schema.h>

#include "write.h"

#define MAX_SENTENCE 512
#define MAX_PATH 256

typedef struct row_schema {
    const weft_method *row;
    weft_schema *params, *result; /* NULL: it has none */
    size_t uses;                  /* by how many methods: itself, and those that have it among their forms */
} row_schema;

struct weft_row_schemas {
    row_schema *rows;
    size_t count, cap;
};

/* ---- the table ---- */

/* The first that is not before row. */
static size_t place_of_row(const struct weft_row_schemas *all, const weft_method *row) {
    size_t low = 0, high = all->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t) all->rows[middle].row < (uintptr_t) row)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static row_schema *find_row_schema(const weft_service *service, const weft_method *row) {
    const struct weft_row_schemas *all = service->schemas;
    size_t i = all ? place_of_row(all, row) : 0;
    return all && i < all->count && all->rows[i].row == row ? &all->rows[i] : NULL;
}

static int make_room_for_row(weft_service *service) {
    struct weft_row_schemas *all = service->schemas;
    if (!all && !(all = service->schemas = weft__zalloc(service->alloc, sizeof *all)))
        return -ENOMEM;
    if (all->count < all->cap)
        return 0;
    size_t cap = all->cap ? all->cap * 2 : 16;
    row_schema *rows = weft__resize(service->alloc, all->rows, cap * sizeof *rows);
    if (!rows)
        return -ENOMEM;
    all->rows = rows;
    all->cap = cap;
    return 0;
}

static void insert_row(struct weft_row_schemas *all, const row_schema *added) {
    size_t i = place_of_row(all, added->row);
    memmove(all->rows + i + 1, all->rows + i, (all->count - i) * sizeof *all->rows);
    all->rows[i] = *added;
    all->count++;
}

/* ---- compiling ---- */

static int compile_text(const weft_service *service, const char *text, bool formats, weft_schema **ret) {
    if (!text)
        return 0;
    weft_schema_opts opts = {.alloc = service->alloc, .check_formats = formats};
    int r = weft_schema_compile(text, strlen(text), &opts, ret, NULL);
    return r < 0 && r != -ENOMEM ? -EINVAL : r;
}

static int compile_row(const weft_service *service, const weft_method *row, row_schema *ret) {
    *ret = (row_schema){.row = row, .uses = 1};
    int r = compile_text(service, row->params_schema, false, &ret->params);
    if (r >= 0 && service->check_results)
        r = compile_text(service, row->result, true, &ret->result);
    if (r < 0)
        ret->params = weft_schema_free(ret->params);
    return r;
}

static bool has_schema(const weft_service *service, const weft_method *row) {
    return row->params_schema || (service->check_results && row->result);
}

static int add_row(weft_service *service, const weft_method *row) {
    row_schema *there = find_row_schema(service, row), added;
    if (!has_schema(service, row))
        return 0;
    if (there) {
        there->uses++;
        return 0;
    }
    int r = make_room_for_row(service);
    if (r >= 0)
        r = compile_row(service, row, &added);
    if (r >= 0)
        insert_row(service->schemas, &added);
    return r;
}

static void remove_row(weft_service *service, const weft_method *row) {
    row_schema *there = find_row_schema(service, row);
    if (!there || --there->uses)
        return;
    struct weft_row_schemas *all = service->schemas;
    weft_schema_free(there->params);
    weft_schema_free(there->result);
    all->count--;
    memmove(there, there + 1, (size_t) (all->rows + all->count - there) * sizeof *there);
}

int weft__row_schemas_add(weft_service *service, const weft_method *row) {
    int r = add_row(service, row);
    if (r < 0)
        return r;
    for (const weft_form *form = row->forms; form && form->name; form++) {
        r = add_row(service, form->row);
        if (r >= 0)
            continue;
        for (const weft_form *done = row->forms; done < form; done++)
            remove_row(service, done->row);
        remove_row(service, row);
        return r;
    }
    return 0;
}

void weft__row_schemas_remove(weft_service *service, const weft_method *row) {
    remove_row(service, row);
    for (const weft_form *form = row->forms; form && form->name; form++)
        remove_row(service, form->row);
}

void weft__row_schemas_done(weft_service *service) {
    struct weft_row_schemas *all = service->schemas;
    for (size_t i = 0; all && i < all->count; i++) {
        weft_schema_free(all->rows[i].params);
        weft_schema_free(all->rows[i].result);
    }
    if (all)
        weft__free(service->alloc, all->rows);
    service->schemas = weft__free(service->alloc, all);
}

/* ---- what is checked ---- */

/* The library reads these out of the params of any method; a schema need not know them. */
static bool is_ours(const weft_iter *it) {
    return weft_name_is(it, "_meta") || weft_name_is(it, "partialResultToken") || weft_name_is(it, "workDoneToken");
}

static int put_member(weft_buf *out, const weft_alloc *alloc, const weft_json *value) {
    int r = weft__write_raw(out, alloc, ":", 1);
    return r < 0 ? r : weft__write_raw(out, alloc, value->text, value->len);
}

static int put_comma(weft_buf *out, const weft_alloc *alloc) {
    return weft__buf_len(out) > 1 ? weft__write_raw(out, alloc, ",", 1) : 0;
}

/* Positional params by the names of the table, which has been found to have enough of them. */
static int write_named(weft_buf *out, const weft_alloc *alloc, const weft_param *table, const weft_json *params) {
    int r = weft__write_raw(out, alloc, "{", 1);
    for (weft_iter it = weft_iterate(params); r >= 0 && table->name && weft_next(&it); table++) {
        while (table->name && (table->flags & WEFT_ALIAS))
            table++;
        if (!table->name)
            break;
        r = put_comma(out, alloc);
        if (r >= 0)
            r = weft__write_str(out, alloc, table->name, strlen(table->name));
        if (r >= 0)
            r = put_member(out, alloc, &it.value);
    }
    return r < 0 ? r : weft__write_raw(out, alloc, "}", 1);
}

/* Named params without what is the library's. *ret_ours: there was some. */
static int write_theirs(weft_buf *out, const weft_alloc *alloc, const weft_json *params, bool *ret_ours) {
    int r = weft__write_raw(out, alloc, "{", 1);
    *ret_ours = false;
    for (weft_iter it = weft_iterate(params); r >= 0 && weft_next(&it);) {
        if (is_ours(&it)) {
            *ret_ours = true;
            continue;
        }
        r = put_comma(out, alloc);
        if (r >= 0)
            r = weft__write_raw(out, alloc, it.name.text, it.name.len);
        if (r >= 0)
            r = put_member(out, alloc, &it.value);
    }
    return r < 0 ? r : weft__write_raw(out, alloc, "}", 1);
}

static int check_text(const weft_schema *schema, weft_buf *text, weft_schema_report *report) {
    *weft__buf_tail(text) = '\0';
    weft_json value = {weft__buf_head(text), weft__buf_len(text), NULL};
    return weft_schema_check(schema, &value, report);
}

static int check_written(const weft_service *service, const weft_schema *schema, const weft_method *row,
                         const weft_json *params, weft_schema_report *report) {
    weft_buf text = {0};
    bool ours = true;
    int r = weft_typeof(params) == WEFT_ARRAY ? write_named(&text, service->alloc, row->params, params)
                                              : write_theirs(&text, service->alloc, params, &ours);
    bool same = !ours && weft_typeof(params) == WEFT_OBJECT; /* as what was checked before */
    if (r >= 0)
        r = same ? -EBADMSG : check_text(schema, &text, report);
    weft__buf_done(&text, service->alloc);
    return r;
}

/* Absent params are an empty object. What does not fit with the library's own members may fit without. */
static int check_params(const weft_service *service, const weft_schema *schema, const weft_method *row,
                        const weft_json *params, weft_schema_report *report) {
    weft_type type = weft_typeof(params);
    if (type == WEFT_ABSENT || (type == WEFT_ARRAY && row->params))
        return check_written(service, schema, row, params, report);
    int r = weft_schema_check(schema, params, report);
    if (r == -EBADMSG && type == WEFT_OBJECT) {
        WEFT_SCHEMA_REPORT again = {0};
        int second = check_written(service, schema, row, params, &again);
        r = second == 0 || second == -ENOMEM ? second : r;
    }
    return r;
}

/* ---- what is said ---- */

/* Where a value is that was checked by its name but given by its position: "/zip/0" is "/1/0". NULL table: where it says. */
static const char *given_path(const weft_param *table, const char *path, char ret[MAX_PATH]) {
    size_t len = *path ? strcspn(path + 1, "/") : 0;
    int place = 0;
    for (; table && table->name; table++) {
        if (table->flags & WEFT_ALIAS)
            continue;
        if (strlen(table->name) == len && memcmp(table->name, path + 1, len) == 0) {
            snprintf(ret, MAX_PATH, "/%d%s", place, path + 1 + len);
            return ret;
        }
        place++;
    }
    return path;
}

/* All that was found, for a caller who wants to mend all of it. */
static int fail_with(weft_req *req, int code, const char *what, const char *reason, const weft_schema_report *report,
                     const weft_param *given) {
    char sentence[MAX_SENTENCE], paths[WEFT_SCHEMA_ERRORS][MAX_PATH];
    weft_member members[WEFT_SCHEMA_ERRORS][3];
    weft_val errors[WEFT_SCHEMA_ERRORS];
    const weft_schema_error *first = &report->errors[0];
    for (size_t i = 0; i < report->count; i++) {
        members[i][0] = (weft_member){"path", weft_str(given_path(given, report->errors[i].instance, paths[i]))};
        members[i][1] = (weft_member){"keywordLocation", weft_str(report->errors[i].keyword)};
        members[i][2] = (weft_member){"message", weft_str(report->errors[i].message)};
        errors[i] = weft_obj(members[i], 3);
    }
    snprintf(sentence, sizeof sentence, "Invalid %s: %s %s", what, *first->instance ? first->instance : what,
             first->message);
    return weft_fail(req, code, sentence,
                     WEFT_OBJ({"reason", weft_str(reason)}, members[0][0], {"keywordLocation", weft_str(first->keyword)},
                              {"errors", report->count > 1 ? weft_arr(errors, report->count) : weft_none()}));
}

int weft__row_schemas_params(weft_req *req, const weft_method *row, const weft_json *params) {
    const row_schema *known = find_row_schema(req->service, row);
    WEFT_SCHEMA_REPORT report = {0};
    weft_schema *own = NULL;
    /* One that was handed a request without having been added. */
    int r = known ? 0 : compile_text(req->service, row->params_schema, false, &own);
    if (r >= 0)
        r = check_params(req->service, known ? known->params : own, row, params, &report);
    weft_schema_free(own);
    if (r == -EBADMSG && report.count)
        fail_with(req, WEFT_INVALID_PARAMS, "params", "invalidParams", &report,
                  weft_typeof(params) == WEFT_ARRAY ? row->params : NULL);
    else if (r == -E2BIG)
        weft_refuse(req, WEFT_INVALID_PARAMS, "The params are too much to check", "paramsTooComplex");
    return r == -EBADMSG ? -EINVAL : r;
}

static int check_result(const weft_service *service, const weft_schema *schema, const weft_val *result,
                        weft_schema_report *report) {
    char *text = NULL;
    size_t len = 0;
    weft_doc *doc = NULL;
    int r = weft_to_text(*result, service->alloc, &text, &len);
    if (r >= 0)
        r = weft_doc_parse(text, len, service->alloc, &doc);
    if (r >= 0)
        r = weft_schema_check(schema, weft_doc_root(doc), report);
    weft_doc_free(doc);
    weft_text_free(text, service->alloc);
    return r;
}

bool weft__row_schemas_misfit(weft_req *req, const weft_val *result) {
    const weft_method *row = req->form ? req->form : req->row;
    const row_schema *known = row ? find_row_schema(req->service, row) : NULL;
    WEFT_SCHEMA_REPORT report = {0};
    if (!known || !known->result || (req->flags & (REQ_ANSWERED | REQ_NOTIFICATION)))
        return false;
    if (check_result(req->service, known->result, result, &report) != -EBADMSG || !report.count)
        return false;
    fail_with(req, WEFT_INTERNAL_ERROR, "result", "invalidResult", &report, NULL);
    return true;
}

/* rpc.discover: the OpenRPC 1.2.6 document, written from the method rows.
 *
 * 1.2.6 because every tool reads it; the test-coverage tool accepts nothing newer. Methods are sorted by name, so that the
 * document does not change when nothing else did. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "peer_private.h"
#include "write.h"

typedef struct writer {
    weft_buf out;
    const weft_alloc *alloc;
    int r; /* the first failure; later writes do nothing */
} writer;

static void doc_raw(writer *w, const char *text) {
    if (w->r >= 0)
        w->r = weft__buf_put(&w->out, w->alloc, text, strlen(text));
}

static void doc_str(writer *w, const char *text) {
    text = text ? text : "";
    if (w->r >= 0)
        w->r = weft__write_str(&w->out, w->alloc, text, strlen(text));
}

static void doc_number(writer *w, int64_t i) {
    if (w->r >= 0)
        w->r = weft__write_int(&w->out, w->alloc, i);
}

/* null counts as absent: what is required must be there. */
static bool takes_null(const weft_param *param) {
    return (param->flags & WEFT_NULLABLE) && !(param->flags & WEFT_REQUIRED);
}

static void words_of(writer *w, const weft_param *param) {
    doc_raw(w, ",\"enum\":");
    for (const char *const *word = param->one_of; *word; word++) {
        doc_raw(w, word == param->one_of ? "[" : ",");
        doc_str(w, *word);
    }
    doc_raw(w, takes_null(param) ? ",null]" : "]");
}

static void limit_of(writer *w, const char *name, int64_t limit) {
    doc_raw(w, ",\"");
    doc_raw(w, name);
    doc_raw(w, "\":");
    doc_number(w, limit);
}

/* What the table accepts, and nothing else: an integer has 64 bits. */
static void limits_of(writer *w, const weft_param *param) {
    static const char *const names[][2] = {
        [WEFT_PARAM_str] = {"minLength", "maxLength"},
        [WEFT_PARAM_int] = {"minimum", "maximum"},
        [WEFT_PARAM_num] = {"minimum", "maximum"},
        [WEFT_PARAM_arr] = {"minItems", "maxItems"},
        [WEFT_PARAM_obj] = {NULL, NULL},
    };
    bool range = param->flags & WEFT_RANGE, integer = param->type == WEFT_PARAM_int;
    int64_t min = range ? param->min : INT64_MIN, max = range ? param->max : INT64_MAX;
    if (!names[param->type][0])
        return;
    if ((param->flags & WEFT_NONEMPTY) && !integer && min < 1)
        min = 1;
    if (min != INT64_MIN || integer)
        limit_of(w, names[param->type][0], min);
    if (max != INT64_MAX || integer)
        limit_of(w, names[param->type][1], max);
}

static void schema_of(writer *w, const weft_param *param) {
    static const char *const types[] = {
        [WEFT_PARAM_any] = "",       [WEFT_PARAM_str] = "string",   [WEFT_PARAM_int] = "integer",
        [WEFT_PARAM_num] = "number", [WEFT_PARAM_bool] = "boolean", [WEFT_PARAM_obj] = "object",
        [WEFT_PARAM_arr] = "array",
    };
    doc_raw(w, "{");
    if (*types[param->type]) {
        bool nullable = takes_null(param);
        doc_raw(w, nullable ? "\"type\":[\"" : "\"type\":\"");
        doc_raw(w, types[param->type]);
        doc_raw(w, nullable ? "\",\"null\"]" : "\"");
    }
    if (param->one_of)
        words_of(w, param);
    else if (param->type == WEFT_PARAM_str)
        doc_raw(w, ",\"pattern\":\"^[^\\u0000]*$\"");
    limits_of(w, param);
    if (param->type == WEFT_PARAM_arr)
        doc_raw(w, ",\"items\":{}"); /* some tools make no values without it */
    doc_raw(w, "}");
}

static void write_param(writer *w, const weft_param *param) {
    doc_raw(w, "{\"name\":");
    doc_str(w, param->name);
    if (param->help) {
        doc_raw(w, ",\"description\":");
        doc_str(w, param->help);
    }
    doc_raw(w, param->flags & WEFT_REQUIRED ? ",\"required\":true,\"schema\":" : ",\"required\":false,\"schema\":");
    schema_of(w, param);
    doc_raw(w, "}");
}

/* Is the order of the document, required params before the others, that of the table, which positional params have? */
static bool are_required_first(const weft_param *table) {
    bool optional = false;
    for (const weft_param *param = table; param && param->name; param++) {
        if ((param->flags & WEFT_REQUIRED) && optional)
            return false;
        optional |= !(param->flags & (WEFT_REQUIRED | WEFT_ALIAS));
    }
    return true;
}

/* OpenRPC wants required params before the others. */
static void write_params_doc(writer *w, const weft_param *table) {
    bool first = true;
    for (int required = 1; required >= 0; required--)
        for (const weft_param *param = table; param && param->name; param++)
            if (!(param->flags & WEFT_ALIAS) && !(param->flags & WEFT_REQUIRED) == !required) {
                if (!first)
                    doc_raw(w, ",");
                first = false;
                write_param(w, param);
            }
}

/* ---- a name that stands for several rows ---- */

static const weft_param *find_shown(const weft_method *row, const char *name) {
    for (const weft_param *param = row->params; param && param->name; param++)
        if (!(param->flags & WEFT_ALIAS) && strcmp(param->name, name) == 0)
            return param;
    return NULL;
}

static bool is_required_by_all(const weft_form *forms, const char *name) {
    for (; forms->name; forms++) {
        const weft_param *param = find_shown(forms->row, name);
        if (!param || !(param->flags & WEFT_REQUIRED))
            return false;
    }
    return true;
}

/* The first of the forms before this one that has it. */
static bool was_shown(const weft_form *forms, const weft_form *before, const char *name) {
    for (; forms < before; forms++)
        if (find_shown(forms->row, name))
            return true;
    return false;
}

static bool is_same_schema(const weft_param *a, const weft_param *b) {
    unsigned shown = WEFT_NONEMPTY | WEFT_RANGE;
    bool same = a->type == b->type && (a->flags & shown) == (b->flags & shown) && takes_null(a) == takes_null(b);
    return same && a->one_of == b->one_of && (!(a->flags & WEFT_RANGE) || (a->min == b->min && a->max == b->max));
}

/* Whether those that have it agree, with the first of them. */
static bool is_one_schema(const weft_form *forms, const weft_param *first) {
    for (; forms->name; forms++) {
        const weft_param *param = find_shown(forms->row, first->name);
        if (param && !is_same_schema(param, first))
            return false;
    }
    return true;
}

static void schema_of_all(writer *w, const weft_form *forms, const weft_param *first) {
    const char *between = "{\"anyOf\":[";
    if (is_one_schema(forms, first)) {
        schema_of(w, first);
        return;
    }
    for (; forms->name; forms++) {
        const weft_param *param = find_shown(forms->row, first->name);
        if (!param)
            continue;
        doc_raw(w, between);
        schema_of(w, param);
        between = ",";
    }
    doc_raw(w, "]}");
}

static void write_shared_param(writer *w, const weft_form *forms, const weft_param *param, bool required) {
    doc_raw(w, "{\"name\":");
    doc_str(w, param->name);
    if (param->help) {
        doc_raw(w, ",\"description\":");
        doc_str(w, param->help);
    }
    doc_raw(w, required ? ",\"required\":true,\"schema\":" : ",\"required\":false,\"schema\":");
    schema_of_all(w, forms, param);
    doc_raw(w, "}");
}

/* All of their params: what only some need is not required. */
static void write_shared_params(writer *w, const weft_form *forms) {
    bool first = true;
    for (int required = 1; required >= 0; required--)
        for (const weft_form *form = forms; form->name; form++)
            for (const weft_param *param = form->row->params; param && param->name; param++) {
                bool other = (param->flags & WEFT_ALIAS) || was_shown(forms, form, param->name);
                if (other || is_required_by_all(forms, param->name) != required)
                    continue;
                if (!first)
                    doc_raw(w, ",");
                first = false;
                write_shared_param(w, forms, param, required);
            }
}

static void write_shared_result(writer *w, const weft_form *forms) {
    doc_raw(w, "{\"anyOf\":[");
    for (const weft_form *form = forms; form->name; form++) {
        if (form != forms)
            doc_raw(w, ",");
        doc_raw(w, form->row->result ? form->row->result : "{}");
    }
    doc_raw(w, "]}");
}

/* And each for itself, by its name. */
static void write_forms(writer *w, const weft_form *forms) {
    doc_raw(w, ",\"x-dialects\":{");
    for (const weft_form *form = forms; form->name; form++) {
        if (form != forms)
            doc_raw(w, ",");
        doc_str(w, form->name);
        doc_raw(w, ":{\"summary\":");
        doc_str(w, form->row->help ? form->row->help : "");
        doc_raw(w, ",\"params\":[");
        write_params_doc(w, form->row->params);
        doc_raw(w, "],\"result\":");
        doc_raw(w, form->row->result ? form->row->result : "{}");
        if (form->row->params_schema) {
            doc_raw(w, ",\"x-paramsSchema\":");
            doc_raw(w, form->row->params_schema);
        }
        doc_raw(w, "}");
    }
    doc_raw(w, "}");
}

/* ---- a method ---- */

static void write_errors(writer *w, const weft_error_row *errors) {
    doc_raw(w, ",\"errors\":[");
    for (const weft_error_row *error = errors; error->code; error++) {
        doc_raw(w, error == errors ? "{\"code\":" : ",{\"code\":");
        doc_number(w, error->code);
        doc_raw(w, ",\"message\":");
        doc_str(w, error->message);
        if (error->reason) {
            doc_raw(w, ",\"data\":{\"reason\":");
            doc_str(w, error->reason);
            doc_raw(w, "}");
        }
        doc_raw(w, "}");
    }
    doc_raw(w, "]");
}

static void write_text_member(writer *w, const char *name, const char *text) {
    if (!text)
        return;
    doc_raw(w, name);
    doc_str(w, text);
}

/* One param of an example: OpenRPC wants them by name, each in an object. */
static void write_example_value(writer *w, const char *name, const weft_json *value) {
    doc_raw(w, "{\"name\":");
    doc_str(w, name);
    doc_raw(w, ",\"value\":");
    if (w->r >= 0)
        w->r = weft__write_raw(&w->out, w->alloc, value->text, value->len);
    doc_raw(w, "}");
}

static const char *example_name(writer *w, const weft_json *name, const weft_param **row) {
    while (*row && (*row)->name && ((*row)->flags & WEFT_ALIAS))
        (*row)++;
    const char *named = name->text ? weft_str_of(name, NULL) : NULL;
    if (name->text && !named && w->r >= 0)
        w->r = -ENOMEM;
    const char *place = *row && (*row)->name ? ((*row)++)->name : "param";
    return named ? named : place;
}

static void write_example_params(writer *w, const weft_method *row, const char *text) {
    weft_doc *doc = NULL;
    const weft_param *table = row->params;
    bool first = true;
    if (!text || w->r < 0 || (w->r = weft_doc_parse(text, strlen(text), w->alloc, &doc)) < 0)
        return;
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); weft_next(&it); first = false) {
        doc_raw(w, first ? "" : ",");
        write_example_value(w, example_name(w, &it.name, &table), &it.value);
    }
    weft_doc_free(doc);
}

static void write_examples(writer *w, const weft_method *row) {
    doc_raw(w, ",\"examples\":[");
    for (const weft_example *example = row->examples; example->name; example++) {
        doc_raw(w, example == row->examples ? "{\"name\":" : ",{\"name\":");
        doc_str(w, example->name);
        write_text_member(w, ",\"summary\":", example->help);
        doc_raw(w, ",\"params\":[");
        write_example_params(w, row, example->params);
        doc_raw(w, "]");
        if (example->result) {
            doc_raw(w, ",\"result\":{\"name\":\"result\",\"value\":");
            doc_raw(w, example->result);
            doc_raw(w, "}");
        }
        doc_raw(w, "}");
    }
    doc_raw(w, "]");
}

/* ---- what we tell ---- */

static void write_notification_doc(writer *w, const weft_method *row) {
    doc_raw(w, "{\"name\":");
    doc_str(w, row->name);
    write_text_member(w, ",\"summary\":", row->help);
    write_text_member(w, ",\"description\":", row->description);
    doc_raw(w, ",\"params\":[");
    write_params_doc(w, row->params);
    doc_raw(w, "]");
    if (row->params_schema) {
        doc_raw(w, ",\"x-paramsSchema\":");
        doc_raw(w, row->params_schema);
    }
    if (row->examples)
        write_examples(w, row);
    doc_raw(w, "}");
}

/* OpenRPC knows only what is called. */
static void write_notifications(writer *w, const weft_method *rows) {
    doc_raw(w, ",\"x-notifications\":[");
    for (const weft_method *row = rows; row->name; row++) {
        doc_raw(w, row == rows ? "" : ",");
        write_notification_doc(w, row);
    }
    doc_raw(w, "]");
}

/* ---- all of it ---- */

static void write_method_doc(writer *w, const weft_method *row) {
    doc_raw(w, "{\"name\":");
    doc_str(w, row->name);
    write_text_member(w, ",\"summary\":", row->help);
    write_text_member(w, ",\"description\":", row->description);
    bool by_name_only = row->forms || !are_required_first(row->params);
    doc_raw(w,
            by_name_only ? ",\"paramStructure\":\"by-name\",\"params\":[" : ",\"paramStructure\":\"either\",\"params\":[");
    if (row->forms)
        write_shared_params(w, row->forms);
    else
        write_params_doc(w, row->params);
    doc_raw(w, "],\"result\":{\"name\":\"result\",\"schema\":");
    if (row->forms)
        write_shared_result(w, row->forms);
    else
        doc_raw(w, row->result ? row->result : "{}");
    doc_raw(w, "}");
    if (row->errors)
        write_errors(w, row->errors);
    if (row->examples)
        write_examples(w, row);
    if (row->scope) {
        doc_raw(w, ",\"x-scope\":");
        doc_str(w, row->scope);
    }
    if (row->timeout_ms > 0) {
        doc_raw(w, ",\"x-timeoutMs\":");
        doc_number(w, row->timeout_ms);
    }
    if (row->params_schema) {
        doc_raw(w, ",\"x-paramsSchema\":");
        doc_raw(w, row->params_schema);
    }
    if (row->forms)
        write_forms(w, row->forms);
    else if (!row->params)
        doc_raw(w, ",\"x-params\":\"any\"");
    doc_raw(w, "}");
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const weft_method *const *) a)->name, (*(const weft_method *const *) b)->name);
}

static size_t visible_rows(const weft_service *service, const weft_method **rows) {
    size_t count = 0, at = 0;
    const weft_method *row;
    while ((row = weft__methods_next(&service->methods, &at)))
        if (!(row->flags & WEFT_ROW_HIDDEN))
            rows[count++] = row;
    qsort(rows, count, sizeof *rows, by_name);
    return count;
}

int weft_service_discover(weft_service *service, char **ret, size_t *ret_len) {
    writer w = {.alloc = service->alloc};
    const weft_method **rows = weft__alloc(service->alloc, (service->methods.count + 1) * sizeof *rows);
    if (!rows)
        return -ENOMEM;
    size_t count = visible_rows(service, rows);
    doc_raw(&w, "{\"openrpc\":\"1.2.6\",\"info\":{\"title\":");
    doc_str(&w, service->title);
    doc_raw(&w, ",\"version\":");
    doc_str(&w, service->version);
    write_text_member(&w, ",\"description\":", service->description);
    doc_raw(&w, "},\"methods\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            doc_raw(&w, ",");
        write_method_doc(&w, rows[i]);
    }
    doc_raw(&w, "]");
    if (service->notifications && service->notifications->name)
        write_notifications(&w, service->notifications);
    doc_raw(&w, "}");
    weft__free(service->alloc, rows);
    if (w.r < 0) {
        weft__buf_done(&w.out, service->alloc);
        return w.r;
    }
    *weft__buf_tail(&w.out) = '\0';
    *ret = weft__buf_head(&w.out); /* nothing was taken from it: the block begins here */
    if (ret_len)
        *ret_len = weft__buf_len(&w.out);
    return 0;
}

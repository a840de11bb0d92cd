/* The protocol reference as Markdown: every method, notification, event and error of the hub, from the rows that it works
 * with. docs/protocol.md has it behind what people wrote; tests/cli/protocol.py compares the two. */
#include <stdlib.h>
#include <string.h>

#include "event_rows.h"
#include "failure.h"
#include "man.h"
#include "relay.h"
#include "sample.h"
#include "serve_pair.h"
#include "serve_reload.h"
#include "serve_tokens.h"
#include "serve_web.h"
#include "told_rows.h"
#include "wiring.h"

/* More methods than there will be. */
#define MOST_METHODS 1024

static const char *const types[] = {
    [WEFT_PARAM_any] = "any",      [WEFT_PARAM_str] = "string", [WEFT_PARAM_int] = "integer", [WEFT_PARAM_num] = "number",
    [WEFT_PARAM_bool] = "boolean", [WEFT_PARAM_obj] = "object", [WEFT_PARAM_arr] = "array",
};

typedef struct page {
    FILE *to;
    const weft_method *rows[MOST_METHODS];
    size_t count;
} page;

/* ---- text ---- */

/* A vertical bar would end the cell of a table. */
static void put_cell(FILE *to, const char *text) {
    for (; text && *text; text++) {
        if (*text == '|')
            fputc('\\', to);
        fputc(*text, to);
    }
}

static void put_sentence(FILE *to, const char *text) {
    if (!text || !*text)
        return;
    fputc(*text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text, to);
    fputs(text + 1, to);
    fputs(strchr(".!?", text[strlen(text) - 1]) ? "\n" : ".\n", to);
}

/* ---- one method ---- */

static void put_param_rows(FILE *to, const weft_param *table) {
    if (!table || !table->name)
        return;
    fputs("\n| param | type | | meaning |\n|---|---|---|---|\n", to);
    for (const weft_param *param = table; param->name; param++) {
        if (param->flags & WEFT_ALIAS)
            continue;
        fprintf(to, "| `%s` | %s | %s | ", param->name, types[param->type], param->flags & WEFT_REQUIRED ? "required" : "");
        put_cell(to, param->help);
        for (const char *const *word = param->one_of; word && *word; word++)
            fprintf(to, "%s`%s`", word == param->one_of ? (param->help ? "; one of " : "one of ") : ", ", *word);
        fputs(" |\n", to);
    }
}

static void put_subject(char subject[32], const char *name) {
    size_t len = strcspn(name, "./_");
    snprintf(subject, 32, "%.*s", (int) (name[len] ? len : 0), name);
}

/* What is in a row's schema alone, made readable by its own example. */
static void put_example_params(FILE *to, const weft_method *row, const char *name, const char *subject) {
    weft_doc *doc = NULL;
    const char *written = weft__sample_of_method(name);
    if (written)
        fputs(written, to);
    else if (row->examples && row->examples->name && row->examples->params)
        fputs(row->examples->params, to);
    else if (row->params_schema && !(row->params && row->params->name) &&
             weft_doc_parse(row->params_schema, strlen(row->params_schema), NULL, &doc) >= 0)
        weft__sample_schema(to, weft_doc_root(doc), "", subject);
    else
        weft__sample_params(to, row->params, subject);
    weft_doc_free(doc);
}

static void put_example_result(FILE *to, const weft_method *row, const char *name, const char *subject) {
    weft_doc *doc = NULL;
    const char *written = weft__sample_of_result(name);
    if (written)
        fputs(written, to);
    else if (row->examples && row->examples->name && row->examples->result)
        fputs(row->examples->result, to);
    else if (row->result && weft_doc_parse(row->result, strlen(row->result), NULL, &doc) >= 0)
        weft__sample_schema(to, weft_doc_root(doc), "result", subject);
    else
        fputs("null", to);
    weft_doc_free(doc);
}

static void put_form(FILE *to, const weft_method *row, const char *name) {
    char subject[32];
    put_subject(subject, name);
    put_param_rows(to, row->params);
    fprintf(to, "\n```json\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":", name);
    put_example_params(to, row, name, subject);
    fputs("}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":", to);
    put_example_result(to, row, name, subject);
    fputs("}\n```\n", to);
    for (const weft_error_row *error = row->errors; error && error->code; error++)
        fprintf(to, "%s`%d %s`", error == row->errors ? "\nErrors: " : ", ", error->code,
                error->reason ? error->reason : error->message);
    fputs(row->errors && row->errors->code ? "\n" : "", to);
}

static void put_method(FILE *to, const weft_method *row) {
    fprintf(to, "\n### %s\n\n", row->name);
    put_sentence(to, row->help);
    if (row->description)
        fprintf(to, "%s\n", row->description);
    if (row->scope)
        fprintf(to, "Scope: `%s`.%s\n", row->scope, row->flags & WEFT_FOR_PEOPLE ? " Not for agents." : "");
    for (const weft_form *form = row->forms; form && form->name; form++) {
        fprintf(to, "\nSpoken in `%s`: ", form->name);
        put_sentence(to, form->row->help ? form->row->help : row->help);
        put_form(to, form->row, row->name);
    }
    if (!row->forms)
        put_form(to, row, row->name);
}

/* ---- all of them ---- */

static void add_row(page *self, const weft_method *row) {
    if (!(row->flags & WEFT_ROW_HIDDEN) && self->count < MOST_METHODS)
        self->rows[self->count++] = row;
}

static void add_rows(page *self, const weft_method *rows) {
    for (; rows->name; rows++)
        add_row(self, rows);
}

static int by_method_name(const void *a, const void *b) {
    return strcmp((*(const weft_method *const *) a)->name, (*(const weft_method *const *) b)->name);
}

static void put_methods_part(page *self) {
    fputs("\n## Methods\n", self->to);
    for (size_t i = 0; i < self->count; i++)
        put_method(self->to, self->rows[i]);
}

/* ---- what the hub tells ---- */

static void put_told(FILE *to, bool requests) {
    for (const weft_told_row *row = weft__told_rows; row->name; row++) {
        if (row->request != requests)
            continue;
        fprintf(to, "\n### %s (%s)\n\n%s\n\n```json\n{\"jsonrpc\":\"2.0\",%s\"method\":\"%s\",\"params\":%s}\n```\n",
                row->name, row->dialect, row->help, requests ? "\"id\":1," : "", row->name, row->params);
    }
}

static void put_events_part(FILE *to) {
    const char *stream = "";
    fputs("\n## Events\n\nThe `data` of each type of event. Members that may be absent are named below the example.\n", to);
    for (const weft_event_row *row = weft__event_rows; row->type; row++) {
        if (strcmp(stream, row->stream) != 0)
            fprintf(to, "\n**Stream `%s`**\n", stream = row->stream);
        fprintf(to, "\n### Event %s\n\n%s\n\n```json\n%s\n```\n", row->type, row->help, row->data);
        if (!row->may)
            continue;
        fputs("\nMay be absent: ", to);
        for (const char *word = row->may; *word; word += strspn(word, " ")) {
            size_t len = strcspn(word, " ");
            fprintf(to, "%s`%.*s`", word == row->may ? "" : ", ", (int) len, word);
            word += len;
        }
        fputs(".\n", to);
    }
}

/* ---- errors ---- */

typedef struct refusal {
    const weft_error_row *row;
    const char *method; /* the first that has it */
    size_t methods;
} refusal;

static void add_refusals(refusal *all, size_t *count, const weft_error_row *errors, const char *method) {
    for (; errors && errors->code; errors++) {
        size_t i = 0;
        while (i < *count &&
               (all[i].row->code != errors->code || strcmp(all[i].row->reason ? all[i].row->reason : all[i].row->message,
                                                           errors->reason ? errors->reason : errors->message) != 0))
            i++;
        if (i == MOST_METHODS)
            return;
        if (i == *count)
            all[(*count)++] = (refusal){errors, method, 0};
        all[i].methods++;
    }
}

static int by_code(const void *a, const void *b) {
    const refusal *x = a, *y = b;
    if (x->row->code != y->row->code)
        return x->row->code < y->row->code ? -1 : 1;
    return strcmp(x->row->reason ? x->row->reason : "", y->row->reason ? y->row->reason : "");
}

static void put_errors_part(const page *self) {
    static refusal all[MOST_METHODS];
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++) {
        const weft_method *row = self->rows[i];
        add_refusals(all, &count, row->errors, row->name);
        for (const weft_form *form = row->forms; form && form->name; form++)
            add_refusals(all, &count, form->row->errors, row->name);
    }
    qsort(all, count, sizeof *all, by_code);
    fputs("\n## Errors of methods\n\n| code | `data.reason` | message | methods |\n|---|---|---|---|\n", self->to);
    for (size_t i = 0; i < count; i++) {
        fprintf(self->to, "| %d | %s%s%s | ", all[i].row->code, all[i].row->reason ? "`" : "",
                all[i].row->reason ? all[i].row->reason : "", all[i].row->reason ? "`" : "");
        put_cell(self->to, all[i].row->message);
        if (all[i].methods > 1)
            fprintf(self->to, " | %zu |\n", all[i].methods);
        else
            fprintf(self->to, " | `%s` |\n", all[i].method);
    }
}

weft_exit weft__man_protocol(const weft_app *app) {
    static page self;
    weft_hub nobody = {0}; /* the rows are looked at, not called */
    weft_dialects *dialects;
    int r = weft__dialects_new(weft__dialect_list, &nobody, NULL, &dialects);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    self = (page){.to = app->out.file};
    add_rows(&self, weft__dialects_methods(dialects));
    add_rows(&self, weft__token_rows);
    add_rows(&self, weft__pair_rows);
    add_rows(&self, weft__web_rows);
    add_row(&self, &weft__reload_row);
    add_row(&self, &weft__relay_hello_row);
    add_row(&self, &weft__relay_known_row);
    qsort(self.rows, self.count, sizeof self.rows[0], by_method_name);
    put_methods_part(&self);
    fputs("\n## Notifications of the hub\n", self.to);
    put_told(self.to, false);
    fputs("\n## Requests of the hub\n\nWhat the hub asks a client, which answers with a result.\n", self.to);
    put_told(self.to, true);
    put_events_part(self.to);
    put_errors_part(&self);
    weft__dialects_free(dialects);
    return WEFT_DONE;
}

/* weft methods: what an endpoint offers, from its rpc.discover. */
#include <string.h>

#include "app.h"
#include "buf.h"
#include "connection.h"
#include "failure.h"
#include "write.h"

/* A longer name gets a line of its own before its help. */
#define MAX_COLUMN 32

static int column_of(const weft_json *methods, const char *member) {
    int width = 0;
    for (weft_iter it = weft_iterate(methods); weft_next(&it);) {
        int n = (int) strlen(weft_get_str(&it.value, member, ""));
        if (n > width && n <= MAX_COLUMN)
            width = n;
    }
    return width;
}

/* What a caller needs; nothing at all where no method of the endpoint needs anything. */
static void put_scope_column(const weft_app *app, const weft_json *method, int width) {
    const char *scope = weft_get_str(method, "x-scope", "");
    int gap = width - (int) strlen(scope);
    if (!width)
        return;
    weft__put_text(&app->out, scope, strlen(scope));
    fprintf(app->out.file, "%*s", gap > 0 ? gap + 2 : 2, "");
}

static void put_methods_table(const weft_app *app, const weft_json *methods) {
    int width = column_of(methods, "name"), scope_width = column_of(methods, "x-scope");
    for (weft_iter it = weft_iterate(methods); weft_next(&it);) {
        const char *name = weft_get_str(&it.value, "name", "");
        const char *help = weft_get_str(&it.value, "summary", weft_get_str(&it.value, "description", ""));
        int gap = width - (int) strlen(name);
        weft__ink(&app->out, WEFT_INK_BOLD);
        weft__put_text(&app->out, name, strlen(name));
        weft__plain(&app->out);
        if (*help || scope_width)
            fprintf(app->out.file, "%*s", gap > 0 ? gap + 2 : 2, "");
        put_scope_column(app, &it.value, scope_width);
        weft__put_text(&app->out, help, strcspn(help, "\n"));
        fputc('\n', app->out.file);
    }
}

static int write_method_row(weft_buf *out, const weft_json *method) {
    weft_json name = weft_get(method, "name"), summary = weft_get(method, "summary");
    weft_json scope = weft_get(method, "x-scope");
    weft_val value = WEFT_OBJ({"name", weft_copy(&name)}, {"summary", weft_copy(&summary)},
                              {"scope", scope.text ? weft_copy(&scope) : weft_none()});
    int r = weft__buf_len(out) > 1 ? weft__write_raw(out, NULL, ",", 1) : 0;
    return r < 0 ? r : weft__write_val(out, NULL, &value);
}

static void put_methods_json(const weft_app *app, const weft_json *document, const weft_json *methods) {
    weft_buf out = {0};
    weft_json title = weft_pointer(document, "/info/title"), version = weft_pointer(document, "/info/version");
    int r = weft__write_raw(&out, NULL, "[", 1);
    for (weft_iter it = weft_iterate(methods); r >= 0 && weft_next(&it);)
        r = write_method_row(&out, &it.value);
    if (r >= 0)
        r = weft__write_raw(&out, NULL, "]", 1);
    if (r >= 0)
        weft__put_line(&app->out, WEFT_OBJ({"title", weft_copy(&title)}, {"version", weft_copy(&version)},
                                           {"methods", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, NULL);
}

static weft_exit list_methods(weft_connection *connection, weft_app *app) {
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__connection_call(connection, "rpc.discover", weft_none(), &answer);
    if (status)
        return status;
    weft_json methods = weft_get(answer.result, "methods");
    if (weft_typeof(&methods) != WEFT_ARRAY)
        return weft__fail(app, WEFT_FAILED, NULL, "%s: its rpc.discover is not an OpenRPC document",
                          connection->target.shown);
    if (app->common.json)
        put_methods_json(app, answer.result, &methods);
    else
        put_methods_table(app, &methods);
    return WEFT_DONE;
}

static weft_exit run_methods(weft_app *app) {
    weft_connection connection = {0};
    weft_exit status = weft__only_url_check(app);
    if (status == WEFT_DONE)
        status = weft__connection_open(app, &connection);
    if (status == WEFT_DONE)
        status = list_methods(&connection, app);
    weft__connection_done(&connection);
    return status;
}

static const char *const examples[] = {
    "weft methods",
    "what the hub of this folder offers",
    "weft methods unix:/run/echo.sock --json",
    "what another offers, as JSON",
    NULL,
};

const weft_verb weft__methods_verb = {
    .name = "methods",
    .help = "list the methods of an endpoint",
    .usage = "[URL]",
    .examples = examples,
    .about = "Asks with rpc.discover (OpenRPC). The word between a name and its help is the scope that a caller must have.\n"
             "\"weft describe METHOD\" tells more about one of them.\n",
    .reaches = true,
    .run = run_methods,
};

/* weft describe: one method's params, result and errors, from rpc.discover. */
#include <string.h>

#include "app.h"
#include "connection.h"
#include "failure.h"

static void put_str(const weft_app *app, const char *text) {
    weft__put_text(&app->out, text, strlen(text));
}

static void put_types(const weft_app *app, const weft_json *types) {
    const char *before = "";
    for (weft_iter it = weft_iterate(types); weft_next(&it); before = " or ") {
        fputs(before, app->out.file);
        put_str(app, weft_str_of(&it.value, "?"));
    }
}

/* What a schema says about the type, in a word if it can be said in one. */
static void put_type(const weft_app *app, const weft_json *schema) {
    weft_json type = weft_get(schema, "type");
    if (weft_typeof(&type) == WEFT_STRING)
        put_str(app, weft_str_of(&type, ""));
    else if (weft_typeof(&type) == WEFT_ARRAY)
        put_types(app, &type);
    else if (weft_count(schema) == 0)
        put_str(app, "any");
    else
        weft__put_compact(&app->out, schema);
}

static void put_params(const weft_app *app, const weft_json *method) {
    weft_json params = weft_get(method, "params");
    if (weft_count(&params) == 0) {
        bool any = strcmp(weft_get_str(method, "x-params", ""), "any") == 0;
        fprintf(app->out.file, "params: %s\n", any ? "any" : "none");
        return;
    }
    fputs("params:\n", app->out.file);
    for (weft_iter it = weft_iterate(&params); weft_next(&it);) {
        weft_json schema = weft_get(&it.value, "schema");
        const char *help = weft_get_str(&it.value, "description", weft_get_str(&it.value, "summary", ""));
        fputs("    ", app->out.file);
        weft__ink(&app->out, WEFT_INK_NAME);
        put_str(app, weft_get_str(&it.value, "name", "?"));
        weft__plain(&app->out);
        fputs("  ", app->out.file);
        put_type(app, &schema);
        fputs(weft_get_bool(&it.value, "required", false) ? ", required" : ", optional", app->out.file);
        fputs(*help ? ": " : "", app->out.file);
        put_str(app, help);
        fputc('\n', app->out.file);
    }
}

/* What the params must fit besides, and what those of each dialect must. */
static void put_params_schema(const weft_app *app, const weft_json *method) {
    weft_json schema = weft_get(method, "x-paramsSchema"), dialects = weft_get(method, "x-dialects");
    if (schema.text) {
        fputs("params must fit: ", app->out.file);
        weft__put_pretty(&app->out, &schema);
        fputc('\n', app->out.file);
    }
    for (weft_iter it = weft_iterate(&dialects); dialects.text && weft_next(&it);) {
        schema = weft_get(&it.value, "x-paramsSchema");
        if (!schema.text)
            continue;
        fputs("params in ", app->out.file);
        put_str(app, weft_str_of(&it.name, "?"));
        fputs(" must fit: ", app->out.file);
        weft__put_pretty(&app->out, &schema);
        fputc('\n', app->out.file);
    }
}

static void put_result_schema(const weft_app *app, const weft_json *method) {
    weft_json schema = weft_pointer(method, "/result/schema");
    fputs("result: ", app->out.file);
    if (weft_count(&schema) == 0)
        fputs("any", app->out.file);
    else
        weft__put_pretty(&app->out, &schema);
    fputc('\n', app->out.file);
}

static void put_method_errors(const weft_app *app, const weft_json *method) {
    weft_json errors = weft_get(method, "errors");
    if (weft_count(&errors))
        fputs("errors:\n", app->out.file);
    for (weft_iter it = weft_iterate(&errors); weft_next(&it);) {
        weft_json data = weft_get(&it.value, "data");
        const char *reason = weft_get_str(&data, "reason", "");
        fprintf(app->out.file, "    %lld  ", (long long) weft_get_int(&it.value, "code", 0));
        put_str(app, weft_get_str(&it.value, "message", ""));
        fputs(*reason ? "  " : "", app->out.file);
        put_str(app, reason);
        fputc('\n', app->out.file);
    }
}

static void put_method_scope(const weft_app *app, const weft_json *method) {
    const char *scope = weft_get_str(method, "x-scope", "");
    if (!*scope)
        return;
    fputs("scope: ", app->out.file);
    put_str(app, scope);
    fputc('\n', app->out.file);
}

static void put_described_method(const weft_app *app, const weft_json *method) {
    const char *help = weft_get_str(method, "summary", weft_get_str(method, "description", ""));
    weft__ink(&app->out, WEFT_INK_BOLD);
    put_str(app, weft_get_str(method, "name", ""));
    weft__plain(&app->out);
    fputs(*help ? ": " : "", app->out.file);
    put_str(app, help);
    fputc('\n', app->out.file);
    put_method_scope(app, method);
    put_params(app, method);
    put_params_schema(app, method);
    put_result_schema(app, method);
    put_method_errors(app, method);
}

static weft_exit not_there(const weft_app *app, const weft_json *methods, const char *name) {
    char next[256] = "\"weft methods\" lists what there is.";
    weft_suggestion suggestion = {.typed = name};
    for (weft_iter it = weft_iterate(methods); weft_next(&it);)
        weft__suggest(&suggestion, weft_get_str(&it.value, "name", ""));
    if (suggestion.best)
        snprintf(next, sizeof next, "Did you mean %s?", suggestion.best);
    return weft__fail(app, WEFT_NOT_FOUND, next, "there is no method %s", name);
}

static weft_exit describe_method(weft_connection *connection, weft_app *app, const char *name) {
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__connection_call(connection, "rpc.discover", weft_none(), &answer);
    if (status)
        return status;
    weft_json methods = weft_get(answer.result, "methods");
    for (weft_iter it = weft_iterate(&methods); weft_next(&it);) {
        if (strcmp(weft_get_str(&it.value, "name", ""), name) != 0)
            continue;
        if (app->common.json)
            weft__put_line(&app->out, weft_copy(&it.value));
        else
            put_described_method(app, &it.value);
        return WEFT_DONE;
    }
    return not_there(app, &methods, name);
}

static weft_exit run_describe(weft_app *app) {
    weft_connection connection = {0};
    bool has_url = app->arg_count && weft__is_url(app->args[0]);
    if (app->arg_count != 1U + has_url)
        return weft__misused(app, app->arg_count <= has_url ? "which method?" : "one method at a time");
    weft_exit status = weft__connection_open(app, &connection);
    if (status == WEFT_DONE)
        status = describe_method(&connection, app, app->args[0]);
    weft__connection_done(&connection);
    return status;
}

static const char *const examples[] = {
    "weft describe ping",
    "its params with their types, its result, its errors",
    NULL,
};

const weft_verb weft__describe_verb = {
    .name = "describe",
    .help = "explain one method of an endpoint",
    .usage = "[URL] METHOD",
    .examples = examples,
    .reaches = true,
    .run = run_describe,
};

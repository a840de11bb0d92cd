/* weft call: one request, its result on standard output. */
#include "app.h"
#include "connection.h"
#include "failure.h"
#include "params.h"

static void put_call_result(const weft_app *app, const weft_json *result) {
    if (app->out.terminal && !app->common.json)
        weft__put_pretty(&app->out, result);
    else
        weft__put_compact(&app->out, result);
    fputc('\n', app->out.file);
}

static weft_exit call_method(weft_connection *connection, weft_app *app, const weft_doc *params) {
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__connection_call(connection, app->args[0], weft__params_val(params), &answer);
    if (status == WEFT_DONE)
        put_call_result(app, answer.result);
    return status;
}

static weft_exit run_call(weft_app *app) {
    return weft__params_run(app, call_method);
}

static const char *const examples[] = {
    "weft call ping",
    "the hub of this folder",
    "weft call echo text=hi n=3 tags='[\"a\",\"b\"]'",
    "params by name; numbers, true, false, null, objects and arrays are JSON, the rest are strings",
    "weft call ws://127.0.0.1:8080/ subtract '[42,23]'",
    "any endpoint, params by position",
    "weft call 'exec:my-server --stdio' initialize @params.json --content-length",
    "a program's stdio, params from a file (- for standard input)",
    NULL,
};

const weft_verb weft__call_verb = {
    .name = "call",
    .help = "call a method and print its result",
    .begins = "any JSON-RPC",
    .usage = "[URL] METHOD [name=value... | '{...}' | '[...]' | @FILE | -]",
    .examples = examples,
    .about = "How params are written:\n\n"
             "    name=value   JSON if it is a number, true, false, null, an object or\n"
             "                 an array; otherwise a string\n"
             "    name:=json   always JSON\n"
             "    name==text   always a string\n",
    .reaches = true,
    .run = run_call,
};

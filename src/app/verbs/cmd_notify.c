/* weft notify: one notification, sent and not answered. */
#include "app.h"
#include "connection.h"
#include "failure.h"
#include "params.h"

#define FLUSH_MS (10 * 1000)

static weft_exit notify(weft_connection *connection, weft_app *app, const weft_doc *params) {
    int64_t timeout = app->reach.timeout_ms ? app->reach.timeout_ms : FLUSH_MS;
    int r = weft_notify(connection->peer, app->args[0], weft__params_val(params));
    if (r >= 0)
        r = weft_flush(connection->peer, timeout);
    if (r < 0)
        return weft__connection_fail(connection, app->args[0], r);
    if (app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"sent", weft_bool(true)}));
    weft__remark(app, "sent");
    return WEFT_DONE;
}

static weft_exit run(weft_app *app) {
    return weft__params_run(app, notify);
}

static const char *const examples[] = {
    "weft notify tcp://127.0.0.1:4000 log level=info text='it works'",
    "tell a server something; there is no answer, so success means that it was sent",
    NULL,
};

const weft_verb weft__notify_verb = {
    .name = "notify",
    .help = "send a notification",
    .usage = "[URL] METHOD [name=value... | '{...}' | '[...]' | @FILE | -]",
    .examples = examples,
    .about = "Params are written as for \"weft call\".\n",
    .reaches = true,
    .run = run,
};

/* Asking the hub, and what its refusals mean to people. */
#include "hub_call.h"

#include <string.h>

#include "alloc.h"
#include "failure.h"
#include "hubs_file.h"

/* One of the hubs that this person knows by name: its URL, and how to get in unless it was typed. What is no name: itself.
 */
static weft_exit look_up_hub(weft_app *app, const char *url, weft_hub_rows **ret_rows, const char **ret_url) {
    *ret_rows = NULL;
    *ret_url = url;
    if (!url || weft__is_url(url))
        return WEFT_DONE;
    weft_hub_rows *rows = *ret_rows = weft__zalloc(NULL, sizeof *rows);
    weft_exit status = rows ? weft__hubs_load(app, rows) : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    const weft_hub_row *row = status == WEFT_DONE ? weft__hubs_find(rows, url) : NULL;
    if (row) {
        *ret_url = row->url;
        weft__hubs_reach(row, &app->reach);
    } else if (status == WEFT_DONE)
        status = weft__misused(app, "\"%s\" is neither a URL nor a hub that \"weft hubs\" lists", url);
    return status;
}

/* The arguments are not for weft__target_take(): the first may look like a URL and is none here. */
weft_exit weft__hub_call_target(weft_app *app, const char *url, weft_target *ret) {
    const weft_reach typed = app->reach;
    size_t count = app->arg_count;
    weft_hub_rows *rows;
    *ret = (weft_target){0};
    weft_exit status = look_up_hub(app, url, &rows, &url);
    app->arg_count = 0;
    if (status == WEFT_DONE)
        status = url ? weft__target_of(app, url, ret) : weft__target_take(app, ret);
    app->arg_count = count;
    app->reach = typed;
    weft__free(NULL, rows);
    return status;
}

weft_exit weft__hub_call_open(weft_app *app, const char *url, weft_connection *ret) {
    *ret = (weft_connection){.app = app};
    weft_exit status = weft__hub_call_target(app, url, &ret->target);
    return status ? status : weft__connection_open_target(ret);
}

/* By data.reason, which is the same in every dialect. */
static const char *next_after_error(const weft_error *error) {
    static const struct {
        const char *reason, *next;
    } rows[] = {
        {"taskNotFound", "\"weft task list\" shows which there are."},
        {"taskNotEnded", "Wait for its end (\"weft task watch ID\"), or cancel it."},
        {"taskNotCancellable", "It has ended already: \"weft task get ID\" shows how."},
        {"queueFull", "Wait until some have ended (\"weft task list\"), or cancel one."},
        {"subsystemUnavailable", "\"weft status\" and \"weft logs\" say what did not start."},
        {"planNotFound", "\"weft plan list\" shows which there are."},
        {"planHasRun", "\"weft plan show ID\" shows what became of it; plan it again to run it again."},
        {"planEnded", "\"weft plan show ID\" shows how."},
        {"tooManyPlans", "Wait until one has ended (\"weft plan list\"), or cancel one."},
        {"mcpServerNotFound", "\"weft mcp\" shows which there are."},
        {"agentNotFound", "\"weft agents\" shows which there are."},
        {"sessionNotFound", "\"weft session list\" shows which there are."},
        {"sessionBusy", "One message at a time: wait for its task, or cancel it."},
        {"questionNotFound", "\"weft answer\" shows which are open."},
        {"questionResolved",
         "Somebody else answered first, or no answer is needed any more: \"weft answer\" shows which are open."},
        {"streamNotFound", "\"weft sub -h\" names the streams."},
        {"tokenNotFound", "\"weft token list\" shows which there are."},
        {"tokenExists", "\"weft token revoke NAME\" takes it back."},
        {"ruleNotFound", "\"weft automation\" shows which there are."},
        {"shuttingDown", "The hub is stopping; \"weft start\" starts it again."},
        {"storeBusy", "The disk cannot keep up. Nothing was stored: try again in a moment."},
        {"hubAnswers", "Stop it where it runs; or --force, and make sure that nobody uses it any more."},
        {"noCopy", "\"weft status\" shows how far it is."},
        {"standby", "\"weft status\" shows how far it is."},
        {"storageFailed", "The disk refused it: \"weft doctor\" looks at it. Nothing was stored."},
    };
    const char *reason = weft_get_str(&error->data, "reason", "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].reason, reason) == 0)
            return rows[i].next;
    const char *path = weft_get_str(&error->data, "path", "");
    if (strcmp(path, "/agent") == 0)
        return "\"weft agents\" shows which there are.";
    if (strcmp(path, "/sessionId") == 0)
        return "\"weft session list\" shows which there are.";
    if (error->code == WEFT_METHOD_NOT_FOUND)
        return "What answers there is not a hub, or an older one: \"weft methods\" lists what it has.";
    return NULL;
}

weft_exit weft__hub_call_refused(const weft_app *app, const char *method, const weft_error *error) {
    return weft__fail_plainly(app, method, error, next_after_error(error));
}

weft_exit weft__hub_call(weft_connection *connection, const char *method, weft_val params, weft_answer *ret) {
    int r = weft__connection_try(connection, method, params, ret);
    if (r < 0)
        return weft__connection_fail(connection, method, r);
    return ret->error ? weft__hub_call_refused(connection->app, method, ret->error) : WEFT_DONE;
}

weft_exit weft__hub_call_once(weft_app *app, const char *url, const char *method, weft_val params, weft_answer *ret) {
    weft_connection connection;
    weft_exit status = weft__hub_call_open(app, url, &connection);
    if (status == WEFT_DONE)
        status = weft__hub_call(&connection, method, params, ret);
    weft__connection_done(&connection);
    return status;
}

weft_exit weft__hub_call_check_relay(weft_connection *connection, const char *typed) {
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call(connection, "daemon.status", weft_none(), &answer);
    if (status || weft_pointer(answer.result, "/weft/relay").text)
        return status;
    return weft__fail(connection->app, WEFT_USAGE, "\"--url NAME\" asks one of the hubs that \"weft hubs\" has.",
                      "%s is for relays, and this is a hub itself", typed);
}

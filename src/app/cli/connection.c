/* Connecting and calling for verbs that wait. */
#include "connection.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "clock.h"
#include "debug.h"
#include "failure.h"
#include "progress.h"

/* Asking what methods there are, to say which one was meant, must not make a mistake slow. */
#define SUGGEST_MS 2000
/* The rest of a second, and some more. */
#define MAX_SIGN_WAIT_MS 1500

static int64_t time_left_ms(const weft_connection *connection) {
    if (connection->until_ns == INT64_MAX)
        return 0;
    int64_t left = (connection->until_ns - weft__clock_ns()) / 1000000;
    return left > 1 ? left : 1;
}

/* An open call only hears that the connection was lost; why it was is told here. */
static void on_line_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    weft_connection *connection = data;
    (void) peer;
    if (state == WEFT_PEER_CLOSED || state == WEFT_PEER_DISCONNECTED)
        connection->why = why;
}

weft_exit weft__connection_fail(const weft_connection *connection, const char *method, int r) {
    bool lost = r == -ECONNRESET || r == -ENOTCONN;
    if (r == -ETIMEDOUT)
        return weft__fail(connection->app, WEFT_TOO_LATE, "Wait longer with --timeout, for example --timeout 60s.",
                          "%s: no answer in time", method);
    return weft__fail_at(connection->app, connection->target.shown, lost && connection->why < 0 ? connection->why : r,
                         weft_peer_trouble(connection->peer));
}

static weft_exit show_token(weft_connection *connection) {
    WEFT_ANSWER answer = {0};
    if (!weft__target_shows_by_call(&connection->target))
        return WEFT_DONE;
    int r = weft__connection_try(connection, "weft.auth", WEFT_OBJ({"token", weft_str(connection->target.token)}), &answer);
    if (r < 0)
        return weft__connection_fail(connection, "weft.auth", r);
    /* A server that asks for no token does not know the method. */
    if (!answer.error || answer.error->code == WEFT_METHOD_NOT_FOUND)
        return WEFT_DONE;
    return weft__fail_refused(connection->app, "weft.auth", answer.error, "The server refused the token.");
}

static weft_exit connect_line(weft_connection *connection) {
    const weft_app *app = connection->app;
    weft_connect_opts opts = weft__target_opts(app, &connection->target, connection->service);
    opts.data = connection;
    opts.on_state = on_line_state;
    weft__spinner_start(app, connection->target.shown);
    int r = weft_connect_with(connection->target.url, &opts, &connection->peer, &connection->target.trouble);
    weft__spinner_stop();
    if (r < 0)
        return weft__target_fail(app, &connection->target, r, connection->target.trouble.text);
    weft__remark(app, "connected to %s", connection->target.shown);
    return show_token(connection);
}

weft_exit weft__connection_open_target(weft_connection *connection) {
    int64_t timeout = connection->app->reach.timeout_ms;
    connection->until_ns = timeout ? weft__clock_ns() + timeout * 1000000 : INT64_MAX;
    int r = weft__debug_service(&connection->service);
    return r < 0 ? weft__fail(connection->app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : connect_line(connection);
}

weft_exit weft__connection_open(weft_app *app, weft_connection *ret) {
    *ret = (weft_connection){.app = app};
    weft_exit status = weft__target_take(app, &ret->target);
    return status ? status : weft__connection_open_target(ret);
}

void weft__connection_done(weft_connection *connection) {
    connection->peer = weft_peer_free(connection->peer);
    connection->service = weft_service_unref(connection->service);
    weft__target_done(&connection->target);
}

int weft__connection_try(weft_connection *connection, const char *method, weft_val params, weft_answer *ret) {
    weft_call_opts opts = {.timeout_ms = time_left_ms(connection)};
    weft__spinner_start(connection->app, method);
    int r = weft_call_with(connection->peer, method, params, &opts, ret);
    weft__spinner_stop();
    return r;
}

/* On a method that is not there: the nearest one that is. The name lives in the document. */
static const char *nearest_method(weft_connection *connection, const char *method, weft_answer *document) {
    weft_call_opts opts = {.timeout_ms = SUGGEST_MS};
    weft_suggestion suggestion = {.typed = method};
    if (weft_call_with(connection->peer, "rpc.discover", weft_none(), &opts, document) < 0 || document->error)
        return NULL;
    weft_json methods = weft_get(document->result, "methods");
    for (weft_iter it = weft_iterate(&methods); weft_next(&it);)
        weft__suggest(&suggestion, weft_get_str(&it.value, "name", ""));
    return suggestion.best;
}

static weft_exit explain_refusal(weft_connection *connection, const char *method, const weft_error *error) {
    WEFT_ANSWER document = {0};
    char next[256] = "\"weft methods\" lists what there is.";
    if (error->code != WEFT_METHOD_NOT_FOUND)
        return weft__fail_refused(connection->app, method, error, NULL);
    const char *nearest = nearest_method(connection, method, &document);
    if (nearest)
        snprintf(next, sizeof next, "Did you mean %s?", nearest);
    return weft__fail_refused(connection->app, method, error, next);
}

/* A daemon accepts no signature that was stamped in the second in which it started. How long to wait for the next one; <0:
 * the refusal is another. */
static int wait_to_sign(const weft_connection *connection, const weft_answer *answer) {
    if (!connection->target.secret || !answer->error)
        return -1;
    int64_t wait = weft_get_int(&answer->error->data, "retryAfterMs", -1);
    bool old = strcmp(weft_get_str(&answer->error->data, "reason", ""), "signatureTooOld") == 0;
    return old && wait <= MAX_SIGN_WAIT_MS ? (int) wait : -1;
}

weft_exit weft__connection_call(weft_connection *connection, const char *method, weft_val params, weft_answer *ret) {
    int64_t begun = weft__clock_ns();
    int r = weft__connection_try(connection, method, params, ret);
    int wait = r < 0 ? -1 : wait_to_sign(connection, ret);
    if (wait >= 0) {
        weft_answer_done(ret);
        *ret = (weft_answer){0};
        poll(NULL, 0, wait);
        r = weft__connection_try(connection, method, params, ret);
    }
    if (r < 0)
        return weft__connection_fail(connection, method, r);
    weft__remark(connection->app, "answered in %.3f ms", (double) (weft__clock_ns() - begun) / 1e6);
    return ret->error ? explain_refusal(connection, method, ret->error) : WEFT_DONE;
}

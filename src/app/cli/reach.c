/* Connecting and calling for verbs that wait. */
#include "reach.h"

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "debug.h"
#include "progress.h"
#include "say.h"

/* Asking what methods there are, to say which one was meant, must not make a mistake slow. */
#define SUGGEST_MS 2000

static int64_t time_left_ms(const weft_line *line) {
    if (line->until_ns == INT64_MAX)
        return 0;
    int64_t left = (line->until_ns - weft__clock_ns()) / 1000000;
    return left > 1 ? left : 1;
}

/* An open call only hears that the connection was lost; why it was is told here. */
static void on_line_state(weft_peer *peer, weft_state state, int why, void *data) {
    weft_line *line = data;
    (void) peer;
    if (state == WEFT_CLOSED || state == WEFT_DISCONNECTED)
        line->why = why;
}

weft_exit weft__line_fail(const weft_line *line, const char *method, int r) {
    bool lost = r == -ECONNRESET || r == -ENOTCONN;
    if (r == -ETIMEDOUT)
        return weft__fail(line->app, WEFT_TOO_LATE, "Wait longer with --timeout, for example --timeout 60s.",
                          "%s: no answer in time", method);
    return weft__fail_at(line->app, line->target.shown, lost && line->why < 0 ? line->why : r,
                         weft_peer_trouble(line->peer));
}

static weft_exit show_token(weft_line *line) {
    WEFT_ANSWER answer = {0};
    if (!weft__target_shows_by_call(&line->target))
        return WEFT_DONE;
    int r = weft__line_try(line, "weft.auth", WEFT_OBJ({"token", weft_str(line->target.token)}), &answer);
    if (r < 0)
        return weft__line_fail(line, "weft.auth", r);
    /* A server that asks for no token does not know the method. */
    if (!answer.error || answer.error->code == WEFT_METHOD_NOT_FOUND)
        return WEFT_DONE;
    return weft__fail_refused(line->app, "weft.auth", answer.error, "The server refused the token.");
}

static weft_exit connect_line(weft_line *line) {
    const weft_app *app = line->app;
    weft_connect_opts opts = weft__target_opts(app, &line->target, line->service);
    opts.data = line;
    opts.on_state = on_line_state;
    weft__spinner_start(app, line->target.shown);
    int r = weft_connect_with(line->target.url, &opts, &line->peer);
    weft__spinner_stop();
    if (r < 0)
        return weft__target_fail(app, &line->target, r, line->target.trouble);
    weft__remark(app, "connected to %s", line->target.shown);
    return show_token(line);
}

weft_exit weft__line_open(weft_app *app, weft_line *ret) {
    int64_t timeout = app->reach.timeout_ms;
    *ret = (weft_line){.app = app, .until_ns = timeout ? weft__clock_ns() + timeout * 1000000 : INT64_MAX};
    weft_exit status = weft__target_take(app, &ret->target);
    if (status)
        return status;
    int r = weft__debug_service(&ret->service);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : connect_line(ret);
}

void weft__line_done(weft_line *line) {
    line->peer = weft_peer_free(line->peer);
    line->service = weft_service_unref(line->service);
    weft__target_done(&line->target);
}

int weft__line_try(weft_line *line, const char *method, weft_val params, weft_answer *ret) {
    weft_call_opts opts = {.timeout_ms = time_left_ms(line)};
    weft__spinner_start(line->app, method);
    int r = weft_call_with(line->peer, method, params, &opts, ret);
    weft__spinner_stop();
    return r;
}

/* On a method that is not there: the nearest one that is. The name lives in the document. */
static const char *nearest_method(weft_line *line, const char *method, weft_answer *document) {
    weft_call_opts opts = {.timeout_ms = SUGGEST_MS};
    weft_suggestion suggestion = {.typed = method};
    if (weft_call_with(line->peer, "rpc.discover", weft_none(), &opts, document) < 0 || document->error)
        return NULL;
    weft_json methods = weft_get(document->result, "methods");
    for (weft_iter it = weft_iterate(&methods); weft_next(&it);)
        weft__suggest(&suggestion, weft_get_str(&it.value, "name", ""));
    return suggestion.best;
}

static weft_exit explain_refusal(weft_line *line, const char *method, const weft_error *error) {
    WEFT_ANSWER document = {0};
    char next[256] = "\"weft methods\" lists what there is.";
    if (error->code != WEFT_METHOD_NOT_FOUND)
        return weft__fail_refused(line->app, method, error, NULL);
    const char *nearest = nearest_method(line, method, &document);
    if (nearest)
        snprintf(next, sizeof next, "Did you mean %s?", nearest);
    return weft__fail_refused(line->app, method, error, next);
}

weft_exit weft__line_call(weft_line *line, const char *method, weft_val params, weft_answer *ret) {
    int64_t begun = weft__clock_ns();
    int r = weft__line_try(line, method, params, ret);
    if (r < 0)
        return weft__line_fail(line, method, r);
    weft__remark(line->app, "answered in %.3f ms", (double) (weft__clock_ns() - begun) / 1e6);
    return ret->error ? explain_refusal(line, method, ret->error) : WEFT_DONE;
}

/* What only a runner knows of a task that ran there: it has the files and their snapshots. It is asked over its connection,
 * and what it says goes on to who asked, under our names. */
#include "hub_methods_there.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "hub_methods.h"
#include "reply.h"
#include "runners.h"
#include "stamp.h"

/* As long as a diff may take there; a connection that is gone ends it sooner. */
#define ASKED_MS 120000
#define MOST_MEMBERS 32

/* The clients may go before the runner answers: then nobody is told. */
typedef struct there_call {
    weft_hub_wait wait;
    const weft_alloc *alloc;
    weft__there_done *done; /* NULL: nobody waits any more */
    void *ctx;
} there_call;

static void end_there_call(weft_hub_wait *wait) {
    WEFT_CONTAINER(wait, there_call, wait)->done = NULL;
}

static void on_there_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    there_call *call = ctx;
    weft__there_done *done = call->done;
    void *of = call->ctx;
    (void) peer;
    if (done)
        weft__hub_wait_over(&call->wait);
    weft__free(call->alloc, call);
    if (done)
        done(of, r, answer);
}

static const char *task_of(const weft_hub *hub, const char *id, bool session) {
    const weft_session *found = session ? weft__session_find(hub->engine, id) : NULL;
    return session ? found ? found->task : NULL : id;
}

int weft__hub_ask_there(const weft_hub *hub, const char *id, bool session, const char *method, weft_val params,
                        weft__there_done *done, void *ctx) {
    weft_runner_place place;
    const char *task = task_of(hub, id, session);
    if (!task || !weft__runner_of_task(hub->engine, task, &place))
        return -ENODATA;
    if (!place.peer)
        return -ENOTCONN;
    there_call *call = weft__zalloc(hub->alloc, sizeof *call);
    if (!call)
        return -ENOMEM;
    *call = (there_call){.wait.on_end = end_there_call, .alloc = hub->alloc, .done = done, .ctx = ctx};
    weft__hub_wait(hub->clients, &call->wait);
    int r = weft_call_start(place.peer, "runner.ask",
                            WEFT_OBJ({"lease", weft_uint(place.lease)}, {"taskId", weft_str(place.task)},
                                     {"ofSession", session ? weft_bool(true) : weft_none()}, {"method", weft_str(method)},
                                     {"params", params}),
                            &(weft_call_opts){.on_answer = on_there_answer, .ctx = call, .timeout_ms = ASKED_MS}, NULL);
    if (r < 0) {
        weft__hub_wait_over(&call->wait);
        weft__free(hub->alloc, call);
    }
    return r;
}

bool weft__hub_is_there(const weft_hub *hub, const char *id, bool session) {
    weft_runner_place place;
    const char *task = task_of(hub, id, session);
    return task && weft__runner_of_task(hub->engine, task, &place);
}

int weft__hub_refuse_there(weft_req *req, const weft_hub *hub, const char *id, bool session, int r) {
    weft_runner_place place;
    const char *task = task_of(hub, id, session);
    char since[WEFT_STAMP];
    if (!task || !weft__runner_of_task(hub->engine, task, &place))
        return weft__reply_error(req, 404, session ? "sessionNotFound" : "taskNotFound", "there is no such %s",
                                 session ? "session" : "task");
    if (r == -ENOMEM)
        return weft__reply_failure(req, r);
    if (r == -ETIMEDOUT)
        return weft__reply_error(req, 504, "changesTimedOut", "%s has the files, and did not answer in time", place.name);
    if (r == -ENOBUFS)
        return weft__reply_error(req, 429, "changesBusy", "%s has the files, and too much is asked of it; try again",
                                 place.name);
    if (place.peer)
        return weft__reply_error(req, 503, "runnerAway", "%s has the files, and did not answer: %s", place.name,
                                 weft_strerror(r));
    if (!place.since_ms)
        return weft__reply_error(req, 503, "runnerAway", "%s has the files, and was not seen since the hub was started",
                                 place.name);
    weft__stamp(place.since_ms, since);
    return weft__reply_error(req, 503, "runnerAway", "%s has the files, and is away since %s", place.name, since);
}

/* Its ids are its own. */
static int pass_result(weft_req *req, const weft_json *result, const char *id, bool session) {
    static const char *const own[] = {"taskId", "sessionId", "others"};
    char names[MOST_MEMBERS][32];
    weft_member members[MOST_MEMBERS + 1] = {{session ? "sessionId" : "taskId", weft_str(id)}};
    size_t n = 1;
    for (weft_iter it = weft_iterate(result); n <= MOST_MEMBERS && weft_next(&it);) {
        weft_bytes name;
        bool ours = weft_bytes_of(&it.name, &name) < 0 || name.len >= sizeof names[0];
        for (size_t i = 0; !ours && i < sizeof own / sizeof own[0]; i++)
            ours = weft_name_is(&it, own[i]);
        if (ours)
            continue;
        memcpy(names[n - 1], name.data, name.len);
        names[n - 1][name.len] = '\0';
        members[n] = (weft_member){names[n - 1], weft_copy(&it.value)};
        n++;
    }
    return weft__reply_val(req, weft_obj(members, n));
}

int weft__hub_pass_there(weft_req *req, const weft_hub *hub, const char *id, bool session, int r,
                         const weft_answer *answer) {
    if (r < 0)
        return weft__hub_refuse_there(req, hub, id, session, r);
    if (answer->error && (answer->error->code == WEFT_METHOD_NOT_FOUND ||
                          strcmp(weft_get_str(&answer->error->data, "reason", ""), "noLease") == 0))
        return weft__reply_error(req, 409, "changesElsewhere", "the machine that it worked on does not know of it any more");
    if (answer->error && answer->error->code != WEFT_INVALID_PARAMS &&
        (answer->error->code < 400 || answer->error->code > 599))
        return weft__reply_error(req, 500, "changesFailed", "the machine that it worked on says: %.300s",
                                 answer->error->message ? answer->error->message : "no");
    if (answer->error)
        return weft_fail(req, answer->error->code, answer->error->message ? answer->error->message : "it refused",
                         weft_copy(&answer->error->data));
    if (weft_typeof(answer->result) != WEFT_OBJECT)
        return weft__reply_error(req, 500, "changesFailed",
                                 "what the machine that it worked on says is nothing of that kind");
    return pass_result(req, answer->result, id, session);
}

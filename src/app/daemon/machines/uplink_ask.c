/* What a hub asks about the files of a task that it gave us: the same methods as people have here, for its own tasks alone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hub.h"
#include "uplink_private.h"

#define MOST_MEMBERS 8

struct ask_params {
    int64_t lease;
    const char *taskId, *method;
    bool ofSession;
    weft_json params;
};
const weft_param weft__uplink_ask_params[] = {
    WEFT_MUST_IN(struct ask_params, lease, int, 1, INT64_MAX, "which lease, over or not"),
    WEFT_MUST(struct ask_params, taskId, str, "the hub's task"),
    WEFT_MUST(struct ask_params, method, str, "task.changes, task.diff or task.undo"),
    WEFT_MAY(struct ask_params, ofSession, bool, "about all tasks of its session instead"),
    WEFT_MAY(struct ask_params, params, obj, "its params, without ids"),
    WEFT_END(struct ask_params),
};

/* Of each method, the params that it gets. */
static const struct askable {
    const char *method, *params[MOST_MEMBERS];
    bool of_session;
} askable[] = {
    {"task.changes", {"path", "skip", "limit"}, true},
    {"task.diff", {"path", "context", "offset", "maxBytes"}, true},
    {"task.undo", {"redo", "shared"}, false},
};

static const struct askable *find_askable(const char *method) {
    for (size_t i = 0; i < sizeof askable / sizeof askable[0]; i++)
        if (strcmp(askable[i].method, method) == 0)
            return &askable[i];
    return NULL;
}

/* The task that was made for this lease, also when it has ended and the hub has let it go. */
static const weft_task *task_of_lease(const weft_uplink *self, uint64_t lease, const char *hub_task) {
    char key[WEFT_UPLINK_KEY], hub[WEFT_EPOCH + 1], task[WEFT_UPLINK_ID];
    uint64_t number;
    weft__uplink_key(self, lease, key);
    const weft_task *found = weft__task_find_key(self->opts.engine, key);
    bool same = found && weft__uplink_read_lease(found, &number, hub, task) && number == lease &&
                strcmp(hub, self->epoch) == 0 && strcmp(task, hub_task) == 0;
    return same ? found : NULL;
}

static void on_asked(void *ctx, int r, const weft_answer *answer) {
    weft_req *req = ctx;
    if (r < 0)
        weft_refuse(req, 503, "it was given up", "shuttingDown");
    else if (answer->error)
        weft_fail(req, answer->error->code, answer->error->message, weft_copy(&answer->error->data));
    else
        weft_reply(req, weft_copy(answer->result));
}

int weft__uplink_ask(weft_req *req, const weft_json *params, void *ctx) {
    weft_uplink *self = ctx;
    const struct ask_params *in = weft_req_params(req);
    const struct askable *what = find_askable(in->method);
    const weft_task *task = task_of_lease(self, (uint64_t) in->lease, in->taskId);
    weft_member members[MOST_MEMBERS + 1];
    size_t n = 0;
    (void) params;
    if (!self->up || !what || (in->ofSession && !what->of_session))
        return weft_refuse(req, 403, "that is not answered here", "refused");
    if (!task)
        return weft_refuse(req, 404, "there is no such lease here", "noLease");
    members[n++] =
        in->ofSession ? (weft_member){"sessionId", weft_str(task->session)} : (weft_member){"taskId", weft_str(task->id)};
    for (size_t i = 0; i < MOST_MEMBERS && what->params[i]; i++) {
        weft_json member = weft_get(&in->params, what->params[i]);
        if (member.text)
            members[n++] = (weft_member){what->params[i], weft_copy(&member)};
    }
    const weft_identity who = {.transport = "ws",
                               .dialect = "",
                               .name = self->shown,
                               .scopes = WEFT_READ " " WEFT_WORK,
                               .address = "",
                               .uid = -1,
                               .pid = -1,
                               .authenticated = true,
                               .local = true,
                               .endpoint = ""};
    int r = self->opts.service
                ? weft_service_call(self->opts.service, &who, what->method, weft_obj(members, n), on_asked, req, NULL)
                : -ESHUTDOWN;
    return r < 0 ? weft_failf(req, r == -ENOBUFS ? 429 : 503, WEFT_OBJ({"reason", weft_str("changesBusy")}),
                              "it cannot be asked: %s", weft_strerror(r))
                 : 0;
}

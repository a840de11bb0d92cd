/* Runners: other machines that dial this hub and run its tasks. runner.hello, runner.deliver and runner.list; what the hub
 * calls on a runner is in engine/agents/driver_runner.c, and what a runner does with it in app/daemon/machines/uplink.c. */
#include "runners.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "hub_clients.h"
#include "hub_methods.h"
#include "link.h"
#include "reply.h"
#include "write.h"

/* Events of one runner.deliver: what one append may hold, with room for what goes with them. */
#define MOST_EVENTS 256
#define MOST_KNOWN 4096 /* leases that a runner may speak of when it comes */

/* A connection that is a runner's. */
struct runner_part {
    weft_client_part part;
    const weft_alloc *alloc;
    weft_peer *peer;
    weft_runner *runner;
};

static void on_runner_gone(weft_client_part *part) {
    struct runner_part *mine = WEFT_CONTAINER(part, struct runner_part, part);
    weft__runner_left(mine->runner, mine->peer);
    weft__free(mine->alloc, mine);
}

static struct runner_part *part_of(const weft_hub *hub, weft_req *req) {
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    weft_client_part *part = client ? weft__hub_client_part(client, on_runner_gone) : NULL;
    return part ? WEFT_CONTAINER(part, struct runner_part, part) : NULL;
}

/* ---- runner.hello ---- */

struct hello {
    const char *name, *host, *instance, *epoch;
    weft_json agents, labels, folders, leases;
    int64_t slots;
};
const weft_param weft__hub_hello_params[] = {
    WEFT_MUST(struct hello, instance, str, "which journal it keeps: another one has none of the leases"),
    WEFT_MUST(struct hello, agents, arr, "the names of the agents that it runs, the usual one first"),
    WEFT_MUST(struct hello, folders, arr, "the projects that it has, by the names of their folders; \"*\": any"),
    WEFT_MUST_IN(struct hello, slots, int, 1, WEFT_RUNNER_SLOTS, "how many tasks it runs at a time"),
    {"name", WEFT_PARAM_str, offsetof(struct hello, name), WEFT_NULLABLE | WEFT_NONEMPTY,
     "what to call it, for who may administer the hub; who shows a token or a certificate has the name of that"},
    {"host", WEFT_PARAM_str, offsetof(struct hello, host), WEFT_NULLABLE | WEFT_NONEMPTY,
     "the name of the machine, where nothing else gives one"},
    {"labels", WEFT_PARAM_arr, offsetof(struct hello, labels), WEFT_NULLABLE, "what it can be chosen by"},
    {"epoch", WEFT_PARAM_str, offsetof(struct hello, epoch), WEFT_NULLABLE, "the journal of the hub that the leases are of"},
    {"leases", WEFT_PARAM_arr, offsetof(struct hello, leases), WEFT_NULLABLE,
     "the leases that it has something of: lease, taskId, and the questions that are open"},
    WEFT_END(struct hello),
};

/* Strings only. False: there is something else in it, or too much. */
static bool read_names(const weft_json *list, const char *ret[WEFT_RUNNER_LIST + 1]) {
    size_t n = 0;
    for (weft_iter it = weft_iterate(list); list->text && weft_next(&it); n++) {
        const char *text = weft_str_of(&it.value, NULL);
        if (!text || n == WEFT_RUNNER_LIST)
            return false;
        ret[n] = text;
    }
    ret[n] = NULL;
    return true;
}

/* Who shows a token or a certificate has its name, and so cannot speak for another one's leases. Who may administer the hub
 * is trusted with any; the first start's token names nobody. */
static const char *name_of(weft_req *req, const struct hello *in) {
    const weft_identity *who = weft_req_identity(req);
    const char *shown = *who->name ? who->name : NULL;
    if (!weft_has_scope(who, WEFT_ADMIN))
        return shown;
    return in->name ? in->name : shown && strcmp(shown, "token") != 0 ? shown : in->host;
}

static int refuse_hello(weft_req *req, int r) {
    switch (r) {
    case -EBUSY:
        return weft__reply_error(req, 409, "runnerConnected",
                                 "Another machine is connected as this runner: give each a token "
                                 "of its own");
    case -ENOSPC:
        return weft__reply_error(req, 429, "tooManyRunners", "%d runners are known already", WEFT_RUNNERS);
    case -E2BIG:
    case -EINVAL:
        return weft__reply_error(req, WEFT_INVALID_PARAMS, "invalidParams",
                                 "names must be 1 to %d bytes without blanks and \"@\", at most %d of each kind",
                                 WEFT_RUNNER_NAME, WEFT_RUNNER_LIST);
    default:
        return weft__reply_failure(req, r == -EAGAIN ? -ESHUTDOWN : r);
    }
}

static int write_states(weft_buf *out, const weft_alloc *alloc, const weft_runner *runner, const weft_json *leases,
                        bool ours) {
    size_t n = 0;
    int r = weft__buf_put(out, alloc, "[", 1);
    for (weft_iter it = weft_iterate(leases); r >= 0 && leases->text && n < MOST_KNOWN && weft_next(&it); n++) {
        uint64_t at = 0, lease = (uint64_t) weft_get_int(&it.value, "lease", 0);
        const char *task = weft_get_str(&it.value, "taskId", "");
        weft_lease_state state = ours ? weft__runner_lease(runner, lease, task, &at) : WEFT_LEASE_GONE;
        weft_val value = WEFT_OBJ({"lease", weft_uint(lease)}, {"taskId", weft_str(task)},
                                  {"state", weft_str(weft__lease_states[state])}, {"at", weft_uint(at)});
        r = n ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static int add_part(const weft_hub *hub, weft_hub_client *client, weft_runner *runner) {
    weft_client_part *before = weft__hub_client_part(client, on_runner_gone);
    if (before) {
        WEFT_CONTAINER(before, struct runner_part, part)->runner = runner;
        return 0;
    }
    struct runner_part *made = weft__zalloc(hub->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->part.on_gone = on_runner_gone;
    made->alloc = hub->alloc;
    made->peer = weft__hub_client_peer(client);
    made->runner = runner;
    weft__hub_client_add(client, &made->part);
    return 0;
}

int weft__hub_runner_hello(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct hello *in = weft_req_params(req);
    const char *agents[WEFT_RUNNER_LIST + 1], *labels[WEFT_RUNNER_LIST + 1], *folders[WEFT_RUNNER_LIST + 1];
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    const char *name = name_of(req, in);
    weft_runner *runner;
    weft_buf states = {0};
    (void) params;
    if (!client)
        return weft__reply_error(req, WEFT_INVALID_REQUEST, "cannotListen",
                                 "Nothing can be asked of this connection: use a socket or a WebSocket");
    if (!name)
        return weft__reply_invalid(req, "/name", "a runner must have a name");
    if (!read_names(&in->agents, agents) || !read_names(&in->labels, labels) || !read_names(&in->folders, folders))
        return refuse_hello(req, -E2BIG);
    const struct runner_part *mine = part_of(hub, req);
    if (mine && strcmp(weft__runner_name(mine->runner), name) != 0)
        return weft__reply_error(req, 409, "runnerConnected", "This connection is another runner's already");
    weft_runner_spec spec = {.name = name,
                             .instance = in->instance,
                             .agents = agents,
                             .labels = labels,
                             .folders = folders,
                             .slots = (size_t) in->slots};
    int r = weft__runner_join(hub->engine, &spec, &runner);
    if (r >= 0)
        r = add_part(hub, client, runner);
    if (r < 0)
        return refuse_hello(req, r);
    /* Numbers of another journal are not ours, even where they are the same. */
    const char *epoch = weft__store_epoch(weft__engine_store(hub->engine));
    bool ours = in->epoch && strcmp(in->epoch, epoch) == 0;
    r = write_states(&states, hub->alloc, runner, &in->leases, ours);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"runner", weft_str(name)}, {"epoch", weft_str(epoch)},
                                     {"leaseMs", weft_int(weft__engine_limits(hub->engine)->lease_ms)},
                                     {"maxBytes", weft_uint(weft__peer_max_body(weft_req_peer(req)))},
                                     {"leases", weft_raw(weft__buf_head(&states), weft__buf_len(&states))}));
    weft__buf_done(&states, hub->alloc);
    /* Behind the answer: what it is asked to do comes after it knows that it may. */
    if (r >= 0)
        weft__runner_up(runner, weft_req_peer(req), ours ? &in->leases : &(weft_json){0});
    return r < 0 ? r : 0;
}

/* ---- runner.deliver ---- */

struct deliver {
    int64_t lease;
    const char *taskId;
    weft_json events;
};
const weft_param weft__hub_deliver_params[] = {
    WEFT_MUST_IN(struct deliver, lease, int, 1, INT64_MAX, "which lease"),
    WEFT_MUST(struct deliver, taskId, str, "of which task"),
    WEFT_MUST(struct deliver, events, arr, "what happened in it: seq, type and data of each, in order, at most 256"),
    WEFT_END(struct deliver),
};

static weft_val delivered_val(weft_lease_state state) {
    return weft_str(weft__lease_states[state]);
}

static void on_late_kept(void *ctx, int r) {
    if (r == -ENOENT)
        weft__reply_val(ctx, WEFT_OBJ({"state", delivered_val(WEFT_LEASE_GONE)}));
    else if (r < 0)
        weft__reply_failure(ctx, r);
    else
        weft__reply_val(ctx, WEFT_OBJ({"state", delivered_val(WEFT_LEASE_OVER)}));
}

int weft__hub_runner_deliver(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct deliver *in = weft_req_params(req);
    const struct runner_part *mine = part_of(hub, req);
    int r;
    (void) params;
    if (!mine || !weft__runner_is(mine->runner, mine->peer))
        return weft__reply_error(req, 409, "notARunner", "This connection has not said which runner it is: runner.hello");
    if (weft_count(&in->events) > MOST_EVENTS)
        return weft__reply_invalid(req, "/events", "events must be at most %d", MOST_EVENTS);
    weft_req *kept = weft__req_keep(req);
    weft_lease_state state =
        weft__runner_hear(mine->runner, (uint64_t) in->lease, in->taskId, &in->events, on_late_kept, kept, &r);
    if (r == 0)
        return 0;
    return r < 0 ? weft__reply_failure(kept, r) : weft__reply_val(kept, WEFT_OBJ({"state", delivered_val(state)}));
}

/* ---- runner.list ---- */

static size_t list_vals(const char *const *from, weft_val ret[WEFT_RUNNER_LIST]) {
    size_t n = 0;
    for (; from[n]; n++)
        ret[n] = weft_str(from[n]);
    return n;
}

static int write_runner(weft_buf *out, const weft_alloc *alloc, const weft_runner_view *view) {
    weft_val agents[WEFT_RUNNER_LIST], labels[WEFT_RUNNER_LIST], folders[WEFT_RUNNER_LIST];
    char since[WEFT_STAMP];
    size_t agent_count = list_vals(view->agents, agents), label_count = list_vals(view->labels, labels);
    size_t folder_count = list_vals(view->folders, folders);
    weft_val value = WEFT_OBJ({"name", weft_str(view->name)}, {"connected", weft_bool(view->connected)},
                              {"hasProject", weft_bool(view->here)}, {"agents", weft_arr(agents, agent_count)},
                              {"labels", weft_arr(labels, label_count)}, {"folders", weft_arr(folders, folder_count)},
                              {"slots", weft_uint(view->slots)}, {"running", weft_uint(view->running)},
                              {"since", weft__stamp_val(view->since_ms, since)});
    return weft__write_val(out, alloc, &value);
}

int weft__hub_runners(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    weft_runner_view view;
    weft_buf out = {0};
    (void) params;
    int r = weft__buf_put(&out, hub->alloc, "[", 1);
    for (size_t n = 0; r >= 0 && weft__runner_nth(hub->engine, n, &view); n++) {
        r = n ? weft__buf_put(&out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_runner(&out, hub->alloc, &view);
    }
    if (r >= 0)
        r = weft__buf_put(&out, hub->alloc, "]", 1);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"runners", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* Subscribing to the events themselves. A position is an epoch and a gseq, both from an earlier answer or notification;
 * either everything after it follows, or the answer says why it cannot and nothing is subscribed. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "hub_methods.h"
#include "reply.h"

struct subscribe {
    weft_json after;
    const char *epoch;
    weft_json types;
    const char *taskId, *sessionId, *id, *stream, *class;
};
const weft_param weft__hub_subscribe_params[] = {
    {"after", WEFT_PARAM_any, offsetof(struct subscribe, after), WEFT_NULLABLE,
     "the gseq that was seen last; 0: everything that is kept; absent: only what happens from now on"},
    {"epoch", WEFT_PARAM_str, offsetof(struct subscribe, epoch), WEFT_NULLABLE, "of that position; absent: the present one"},
    {"types", WEFT_PARAM_arr, offsetof(struct subscribe, types), WEFT_NULLABLE,
     "only events whose type begins with one of these, such as \"task.\""},
    {"taskId", WEFT_PARAM_str, offsetof(struct subscribe, taskId), WEFT_NULLABLE, "only events about this task"},
    {"sessionId", WEFT_PARAM_str, offsetof(struct subscribe, sessionId), WEFT_NULLABLE, "only events about this session"},
    {"id", WEFT_PARAM_str, offsetof(struct subscribe, id), WEFT_NULLABLE | WEFT_NONEMPTY,
     "your name for this subscription, which its events carry; absent: the one without a name"},
    {"stream", WEFT_PARAM_str, offsetof(struct subscribe, stream), WEFT_NULLABLE | WEFT_NONEMPTY,
     "only this stream; after and head are its seq then"},
    {"class", WEFT_PARAM_str, offsetof(struct subscribe, class), WEFT_NULLABLE,
     "log: every event, the default; state: after a pause only the latest one"},
    WEFT_END(struct subscribe),
};

struct unsubscribe {
    const char *id;
};
const weft_param weft__hub_unsubscribe_params[] = {
    {"id", WEFT_PARAM_str, offsetof(struct unsubscribe, id), WEFT_NULLABLE | WEFT_NONEMPTY,
     "which; absent: the one without a name"},
    WEFT_END(struct unsubscribe),
};

/* A request that waits for the store's word. */
struct subscribing {
    const weft_hub *hub;
    weft_hub_client *client; /* it hears of its own end first */
    weft_req *req;
};

static int say_subscribed(const weft_hub *hub, weft_req *req, int r, uint64_t head) {
    return weft__reply_val(req,
                           WEFT_OBJ({"resumed", weft_bool(r == 0)},
                                    {"epoch", weft_str(weft__store_epoch(weft__engine_store(hub->engine)))},
                                    {"head", weft_uint(head)}, {"reason", r ? weft_str(weft__gap_name(r)) : weft_none()}));
}

static void on_hub_subscribed(void *ctx, int r, uint64_t head) {
    struct subscribing *subscribing = ctx;
    const weft_hub *hub = subscribing->hub;
    weft_req *req = subscribing->req;
    /* When memory was short it has been told that this failed, before or now, and not how. Neither this subscription nor the
     * one before it is what the client believes to have: it must come back. */
    bool failed = req && !weft_req_peer(req);
    if (r == -ECANCELED)
        weft__reply_error(req, WEFT_CANCELLED, "superseded", "Something else was subscribed meanwhile");
    else if (r < 0)
        failed |= weft__reply_error(req, 507, "storageFailed", "The events cannot be read: %s", weft_strerror(r)) < 0;
    else
        failed |= say_subscribed(hub, req, r, head) < 0;
    if (failed && r != -ECANCELED)
        weft__hub_client_lose(subscribing->client);
    weft__free(hub->alloc, subscribing);
}

/* The list of types as C strings; owned. <0 after an answer. */
static int read_types(weft_req *req, const weft_hub *hub, const weft_json *types, const char ***ret, size_t *ret_count) {
    size_t count = weft_count(types), n = 0;
    *ret = NULL;
    *ret_count = count;
    if (count > WEFT_CLIENT_WATCHES)
        return weft__reply_invalid(req, "/types", "there may be at most %d types", WEFT_CLIENT_WATCHES), -EINVAL;
    if (!count)
        return 0;
    const char **list = weft__alloc(hub->alloc, count * sizeof *list);
    if (!list)
        return -ENOMEM;
    for (weft_iter it = weft_iterate(types); weft_next(&it); n++)
        if (!(list[n] = weft_str_of(&it.value, NULL))) {
            weft_bytes text;
            bool is_short = weft_typeof(&it.value) == WEFT_STRING && weft_bytes_of(&it.value, &text) >= 0 &&
                            !memchr(text.data, '\0', text.len);
            weft__free(hub->alloc, (void *) list);
            return is_short ? -ENOMEM : (weft__reply_invalid(req, "/types", "types must be strings"), -EINVAL);
        }
    *ret = list;
    return 0;
}

/* gseq is an unsigned number of 64 bits, but nobody has seen one above 2^63 yet. */
static bool read_after(const weft_json *after, weft_subscription_spec *spec) {
    int64_t value = weft_int_of(after, -1);
    spec->live = !after->text;
    spec->after = value > 0 ? (uint64_t) value : 0;
    return spec->live || value >= 0;
}

static int start_subscribing(weft_req *req, const weft_hub *hub, weft_hub_client *client,
                             const weft_subscription_spec *spec) {
    struct subscribing *subscribing = weft__alloc(hub->alloc, sizeof *subscribing);
    if (!subscribing)
        return -ENOMEM;
    *subscribing = (struct subscribing){hub, client, weft__req_keep(req)};
    int r = weft__hub_client_subscribe(client, spec, on_hub_subscribed, subscribing);
    if (r < 0)
        weft__free(hub->alloc, subscribing);
    return r;
}

static int refuse_subscription(weft_req *req, int r) {
    switch (r) {
    case -ENOMEM:
        return r;
    case -EMFILE:
        return weft__reply_error(req, 429, "tooManySubscriptions", "A connection may have %d subscriptions; end one of them",
                                 WEFT_CLIENT_SUBSCRIPTIONS);
    case -EINVAL:
        return weft__reply_invalid(req, "/id", "id must not be longer than %d bytes, and stream not than %d",
                                   WEFT_SUBSCRIPTION_ID, WEFT_STORE_NAME);
    default:
        return weft__reply_failure(req, r);
    }
}

static bool read_class(const char *class, weft_subscription_spec *spec) {
    spec->class = class && strcmp(class, "state") == 0 ? WEFT_CLASS_STATE : WEFT_CLASS_LOG;
    return !class || spec->class == WEFT_CLASS_STATE || strcmp(class, "log") == 0;
}

int weft__hub_subscribe(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct subscribe *in = weft_req_params(req);
    const char **types;
    size_t count;
    (void) params;
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    if (!client)
        return weft__reply_error(req, WEFT_INVALID_REQUEST, "cannotListen",
                                 "Events cannot be delivered here; connect by socket or WebSocket, or read GET /events");
    /* A longer text is no epoch of any journal: "" answers epochChanged, as any other does that is not the present one. */
    const char *epoch = in->epoch && strlen(in->epoch) > WEFT_EPOCH ? "" : in->epoch;
    weft_subscription_spec spec = {
        .id = in->id, .epoch = epoch, .stream = in->stream, .task = in->taskId, .session = in->sessionId};
    if (!read_after(&in->after, &spec))
        return weft__reply_invalid(req, "/after", "after must be an integer, 0 or more");
    if (!read_class(in->class, &spec))
        return weft__reply_invalid(req, "/class", "class must be \"log\" or \"state\"");
    int r = read_types(req, hub, &in->types, &types, &count);
    if (r < 0)
        return r;
    spec.types = types;
    spec.type_count = count;
    r = start_subscribing(req, hub, client, &spec);
    weft__free(hub->alloc, (void *) types);
    return r < 0 ? refuse_subscription(req, r) : r;
}

int weft__hub_unsubscribe(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct unsubscribe *in = weft_req_params(req);
    (void) params;
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    bool found = client && weft__hub_client_unsubscribe(client, in->id);
    if (in->id && !found)
        return weft__reply_error(req, 404, "subscriptionNotFound", "There is no subscription \"%.256s\"", in->id);
    int r = weft_reply(req, weft_obj(NULL, 0));
    if (r < 0 && client)
        weft__hub_client_lose(client); /* it was told that this failed */
    return r;
}

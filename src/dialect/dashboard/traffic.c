/* traffic.watch and traffic.unwatch: the messages of other connections, for an administrator who looks for a mistake.
 *
 * The service is tapped only while somebody watches. What goes by is written down at once, without secrets (redact.h) and
 * cut, into a buffer with a limit; what does not fit is counted. The watchers are told before the loop waits again, all
 * frames of a turn in one notification. What watchers themselves say and hear is left out, or each notification would cause
 * the next. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "dashboard_methods.h"
#include "redact.h"
#include "reply.h"
#include "service.h"
#include "utf8.h"
#include "write.h"

#define WATCHERS 8 /* windows of a few people */
/* Of one turn: what is more is not read by anybody. */
#define FRAMES 512
#define FRAME_BYTES ((size_t) 1 << 20)
#define SHOWN_BYTES ((size_t) 16 << 10) /* of one message */
#define PARSED_BYTES ((size_t) 1 << 20) /* a longer one is not looked into */
#define REMEMBERED 256                  /* requests whose answers are awaited, to say how long they took */
#define ID_BYTES 40
#define METHOD_BYTES 64

typedef struct watcher {
    uint64_t client; /* 0: none here */
    bool body;
    uint64_t dropped; /* frames that it was not told */
} watcher;

typedef struct asked_request {
    const weft_peer *peer; /* NULL: none here. Only compared */
    bool outgoing;
    int64_t since_ms;
    char id[ID_BYTES], method[METHOD_BYTES];
} asked_request;

struct weft_traffic {
    weft_hub *hub;
    weft_hub_wait wait; /* ends it with the clients */
    weft_later tell;
    watcher watchers[WATCHERS];
    weft_buf plain, whole; /* the frames of this turn as items of an array: without texts, and with them */
    size_t frames;
    uint64_t dropped;
    asked_request asked[REMEMBERED];
    size_t next; /* the place in it that is used next */
};

/* ---- who watches ---- */

static size_t count_watchers(const struct weft_traffic *self, bool body) {
    size_t count = 0;
    for (size_t i = 0; i < WATCHERS; i++)
        count += self->watchers[i].client && (!body || self->watchers[i].body);
    return count;
}

static watcher *find_watcher(struct weft_traffic *self, uint64_t client) {
    for (size_t i = 0; i < WATCHERS; i++)
        if (self->watchers[i].client == client)
            return &self->watchers[i];
    return NULL;
}

static void end_traffic(struct weft_traffic *self) {
    weft_hub *hub = self->hub;
    hub->traffic = NULL;
    if (hub->service)
        weft__service_tap(hub->service, NULL, NULL);
    weft__later_cancel(&self->tell);
    weft__buf_done(&self->plain, hub->alloc);
    weft__buf_done(&self->whole, hub->alloc);
    weft__free(hub->alloc, self);
}

static void clients_gone(weft_hub_wait *wait) {
    end_traffic(WEFT_CONTAINER(wait, struct weft_traffic, wait));
}

static void stop_traffic(struct weft_traffic *self) {
    weft__hub_wait_over(&self->wait);
    end_traffic(self);
}

/* ---- how long an answer took ---- */

/* The text of an id, or "" of one that is too long to be remembered. */
static void copy_id(const weft_json *id, char ret[ID_BYTES]) {
    size_t len = id->text && id->len < ID_BYTES ? id->len : 0;
    if (len)
        memcpy(ret, id->text, len);
    ret[len] = '\0';
}

static void remember_request(struct weft_traffic *self, const weft_peer *peer, bool outgoing, const weft_json *id,
                             const char *method, int64_t now) {
    asked_request *row = &self->asked[self->next++ % REMEMBERED];
    *row = (asked_request){.peer = peer, .outgoing = outgoing, .since_ms = now};
    copy_id(id, row->id);
    size_t len = weft__utf8_fit(method, strlen(method), METHOD_BYTES - 1);
    memcpy(row->method, method, len);
    row->method[len] = '\0';
    if (!*row->id)
        row->peer = NULL;
}

/* The request that this answers, which went the other way. */
static asked_request *find_request(struct weft_traffic *self, const weft_peer *peer, bool outgoing, const weft_json *id) {
    char text[ID_BYTES];
    copy_id(id, text);
    for (size_t i = 0; *text && i < REMEMBERED; i++) {
        asked_request *row = &self->asked[(self->next + REMEMBERED - 1 - i) % REMEMBERED];
        if (row->peer == peer && row->outgoing != outgoing && strcmp(row->id, text) == 0)
            return row;
    }
    return NULL;
}

/* ---- one frame ---- */

typedef struct frame_facts {
    const char *kind, *method;
    weft_json id;
    int64_t ms; /* <0: not known */
} frame_facts;

static void learn_frame(struct weft_traffic *self, const weft_peer *peer, bool outgoing, const weft_json *root, int64_t now,
                        frame_facts *ret) {
    const char *method = weft_get_str(root, "method", NULL);
    weft_json id = weft_get(root, "id");
    bool object = weft_typeof(root) == WEFT_OBJECT;
    *ret = (frame_facts){.kind = weft_typeof(root) == WEFT_ARRAY ? "batch" : "other", .method = method, .id = id, .ms = -1};
    if (object && method) {
        ret->kind = id.text ? "request" : "notification";
        if (id.text)
            remember_request(self, peer, outgoing, &id, method, now);
        return;
    }
    bool error = object && weft_get(root, "error").text;
    if (!error && !(object && weft_get(root, "result").text))
        return;
    asked_request *request = find_request(self, peer, outgoing, &id);
    ret->kind = error ? "error" : "answer";
    ret->method = request ? request->method : NULL;
    ret->ms = request ? now - request->since_ms : -1;
    if (request)
        request->peer = NULL;
}

/* Behind its secrets it may be longer than what is shown. */
static int put_frame(struct weft_traffic *self, weft_peer *peer, bool outgoing, size_t size, const frame_facts *facts,
                     weft_val text, weft_buf *out) {
    const weft_alloc *alloc = self->hub->alloc;
    const weft_identity *who = weft_peer_identity(peer);
    const weft_hub_client *client = weft__hub_client_of(self->hub->clients, peer);
    char name[WEFT_WHO];
    weft_val frame =
        WEFT_OBJ({"conn", client ? weft_uint(weft__hub_client_number(client)) : weft_none()},
                 {"client", weft_str(weft__who(who, name))}, {"transport", weft_str(who->transport)},
                 {"dir", weft_str(outgoing ? "out" : "in")}, {"time", weft_int(weft__engine_now(self->hub->engine))},
                 {"size", weft_uint(size)}, {"kind", weft_str(facts->kind)}, {"method", weft_str_or_none(facts->method)},
                 {"rpcId", facts->id.text ? weft_raw(facts->id.text, facts->id.len) : weft_none()},
                 {"ms", facts->ms >= 0 ? weft_int(facts->ms) : weft_none()}, {"text", text});
    int r = weft__buf_len(out) ? weft__buf_put(out, alloc, ",", 1) : 0;
    return r < 0 ? r : weft__write_val(out, alloc, &frame);
}

static int put_shown(struct weft_traffic *self, weft_peer *peer, bool outgoing, size_t size, const frame_facts *facts,
                     const weft_json *root) {
    const weft_alloc *alloc = self->hub->alloc;
    weft_buf text = {0};
    int r = count_watchers(self, true) && root ? weft__redact(&text, alloc, root) : 0;
    size_t len = weft__buf_len(&text), shown = weft__utf8_fit(weft__buf_head(&text), len, SHOWN_BYTES);
    weft_val said = len ? weft_strn(weft__buf_head(&text), shown) : weft_none();
    if (r >= 0 && len)
        r = put_frame(self, peer, outgoing, size, facts, said, &self->whole);
    else if (r >= 0 && count_watchers(self, true))
        r = put_frame(self, peer, outgoing, size, facts, weft_none(), &self->whole);
    if (r >= 0)
        r = put_frame(self, peer, outgoing, size, facts, weft_none(), &self->plain);
    weft__buf_done(&text, alloc);
    return r;
}

/* Of the service; nothing is sent from here. */
static void on_frame(void *ctx, weft_peer *peer, bool outgoing, weft_bytes text) {
    struct weft_traffic *self = ctx;
    const weft_hub_client *client = weft__hub_client_of(self->hub->clients, peer);
    frame_facts facts = {.kind = "other", .ms = -1};
    weft_doc *doc = NULL;
    if (client && find_watcher(self, weft__hub_client_number(client)))
        return;
    if (self->frames >= FRAMES || weft__buf_len(&self->whole) + weft__buf_len(&self->plain) >= FRAME_BYTES) {
        self->dropped++;
        return;
    }
    if (text.len <= PARSED_BYTES && weft_doc_parse(text.data, text.len, self->hub->alloc, &doc) >= 0)
        learn_frame(self, peer, outgoing, weft_doc_root(doc), weft__engine_now(self->hub->engine), &facts);
    /* Without memory for one frame the others are shown. */
    int r = put_shown(self, peer, outgoing, text.len, &facts, doc ? weft_doc_root(doc) : NULL);
    self->frames += r >= 0;
    self->dropped += r < 0;
    weft_doc_free(doc);
    weft__later(weft__engine_loop(self->hub->engine), &self->tell);
}

/* ---- telling ---- */

static void tell_watcher(const struct weft_traffic *self, watcher *to) {
    weft_hub_client *client = weft__hub_clients_find(self->hub->clients, to->client);
    weft_peer *peer = client ? weft__hub_client_peer(client) : NULL;
    const weft_buf *frames = to->body ? &self->whole : &self->plain;
    weft_buf list = {0};
    if (!peer) {
        *to = (watcher){0};
        return;
    }
    to->dropped += self->dropped;
    int r = weft_peer_full(peer) ? -EAGAIN : weft__buf_put(&list, self->hub->alloc, "[", 1);
    if (r >= 0)
        r = weft__buf_put(&list, self->hub->alloc, weft__buf_head(frames), weft__buf_len(frames));
    if (r >= 0)
        r = weft__buf_put(&list, self->hub->alloc, "]", 1);
    if (r >= 0)
        r = weft_notify(peer, "traffic",
                        WEFT_OBJ({"frames", weft_raw(weft__buf_head(&list), weft__buf_len(&list))},
                                 {"dropped", weft_uint(to->dropped)}));
    to->dropped = r >= 0 ? 0 : to->dropped + self->frames;
    weft__buf_done(&list, self->hub->alloc);
}

static void tell_watchers(weft_later *later) {
    struct weft_traffic *self = WEFT_CONTAINER(later, struct weft_traffic, tell);
    weft_hub *hub = self->hub;
    for (size_t i = 0; i < WATCHERS; i++)
        if (self->watchers[i].client)
            tell_watcher(self, &self->watchers[i]);
    weft__buf_done(&self->plain, hub->alloc);
    weft__buf_done(&self->whole, hub->alloc);
    self->frames = 0;
    self->dropped = 0;
    if (!count_watchers(self, false))
        stop_traffic(self);
}

/* ---- the methods ---- */

struct watch {
    bool body;
};
const weft_param weft__dashboard_watch_params[] = {
    {"body", WEFT_PARAM_bool, offsetof(struct watch, body), WEFT_NULLABLE,
     "also the messages themselves, without secrets, 16 KiB of each"},
    WEFT_END(struct watch),
};

static int start_traffic(weft_hub *hub) {
    struct weft_traffic *self = hub->traffic ? hub->traffic : weft__zalloc(hub->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    if (hub->traffic)
        return 0;
    self->hub = hub;
    self->wait.on_end = clients_gone;
    weft__hub_wait(hub->clients, &self->wait);
    weft__later_init(&self->tell, tell_watchers);
    hub->traffic = self;
    weft__service_tap(hub->service, on_frame, self);
    return 0;
}

/* Those who have gone without a word make room. */
static void forget_gone_watchers(struct weft_traffic *self) {
    for (size_t i = 0; i < WATCHERS; i++)
        if (self->watchers[i].client && !weft__hub_clients_find(self->hub->clients, self->watchers[i].client))
            self->watchers[i] = (watcher){0};
}

int weft__dashboard_watch(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    const struct watch *in = weft_req_params(req);
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    (void) params;
    if (!client || !hub->service)
        return weft__reply_error(req, 501, "notHere", "messages are watched over a connection that can be told of them");
    int r = start_traffic(hub);
    if (r < 0)
        return r;
    forget_gone_watchers(hub->traffic);
    watcher *place = find_watcher(hub->traffic, weft__hub_client_number(client));
    place = place ? place : find_watcher(hub->traffic, 0);
    if (!place)
        return weft__reply_error(req, 429, "tooManyWatchers", "%d others watch already", WATCHERS);
    *place = (watcher){.client = weft__hub_client_number(client), .body = in->body};
    return weft_reply(req, WEFT_OBJ({"watching", weft_bool(true)}));
}

int weft__dashboard_unwatch(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    const weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    watcher *place = hub->traffic && client ? find_watcher(hub->traffic, weft__hub_client_number(client)) : NULL;
    (void) params;
    if (place)
        *place = (watcher){0};
    if (place && !count_watchers(hub->traffic, false))
        stop_traffic(hub->traffic);
    return weft_reply(req, WEFT_OBJ({"watching", weft_bool(false)}));
}

/* Delivering: the journal is read by pages, from what the hub has; what a page has of a lease goes out in one message. The
 * next page is read when not too many messages wait for their answers, so that a slow hub costs no memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "uplink_private.h"
#include "write.h"

#define PAGE_EVENTS 256
#define PAGE_BYTES ((size_t) 512 * 1024)
#define MESSAGE_EVENTS 128
#define MESSAGE_BYTES ((size_t) 256 * 1024)
#define FRAME_BYTES 1024 /* of a message, besides its events; and of each event, besides its data */
#define MOST_IN_FLIGHT 8
#define AGAIN_MS 1000
/* Between two pages: what an agent says in this time goes out together. */
#define PACE_MS 2

/* A runner.deliver that waits for its answer. */
typedef struct delivery {
    weft_uplink *uplink;
    uint64_t lease, last;
    char hub_task[WEFT_UPLINK_ID];
} delivery;

static void read_more(weft_uplink *self);

static void deliver_again(weft_uplink *self) {
    weft__timer_set(self->opts.loop, &self->again, weft__loop_fresh_now(self->opts.loop) + AGAIN_MS);
}

/* ---- sending ---- */

static void take_delivered(weft_uplink *self, const delivery *sent, const char *state) {
    weft_uplink_lease *lease = weft__uplink_lease(self, sent->lease, sent->hub_task);
    bool over = strcmp(state, "over") == 0;
    if (!lease)
        return;
    if (!over && strcmp(state, "held") != 0) {
        weft__uplink_release(self, lease);
        return;
    }
    lease->heard = sent->last > lease->heard ? sent->last : lease->heard;
    if (over) {
        weft__uplink_lease_over(self, lease);
        lease->kept = sent->last > lease->kept ? sent->last : lease->kept;
    }
    if (lease->over && weft__uplink_lease_told(lease))
        weft__uplink_release(self, lease);
}

static void on_delivered(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    delivery *sent = ctx;
    weft_uplink *self = sent->uplink;
    (void) peer;
    if (self->in_flight)
        self->in_flight--;
    if (r >= 0 && answer->result)
        take_delivered(self, sent, weft_get_str(answer->result, "state", ""));
    else if (r >= 0 && self->up)
        deliver_again(self);
    weft__free(NULL, sent);
    if (self->up)
        weft__later(self->opts.loop, &self->later);
}

static void drop_open(weft_uplink_lease *lease) {
    weft__buf_done(&lease->open, NULL);
    lease->count = 0;
}

static int send_open(weft_uplink *self, weft_uplink_lease *lease) {
    delivery *sent = weft__alloc(NULL, sizeof *sent);
    int r = sent ? weft__buf_put(&lease->open, NULL, "]", 1) : -ENOMEM;
    if (r >= 0) {
        *sent = (delivery){.uplink = self, .lease = lease->number, .last = lease->last};
        memcpy(sent->hub_task, lease->hub_task, sizeof sent->hub_task);
        r = weft_call_start(self->peer, "runner.deliver",
                            WEFT_OBJ({"lease", weft_uint(lease->number)}, {"taskId", weft_str(lease->hub_task)},
                                     {"events", weft_raw(weft__buf_head(&lease->open), weft__buf_len(&lease->open))}),
                            &(weft_call_opts){.on_answer = on_delivered, .ctx = sent, .timeout_ms = -1}, NULL);
    }
    if (r < 0)
        weft__free(NULL, sent);
    else
        self->in_flight++;
    drop_open(lease);
    return r;
}

/* r < 0: nothing of it goes out; it is read again. */
static int send_all_open(weft_uplink *self, int r) {
    for (weft_link *link = self->leases.next; link != &self->leases; link = link->next) {
        weft_uplink_lease *lease = WEFT_CONTAINER(link, weft_uplink_lease, link);
        if (r >= 0 && lease->count)
            r = send_open(self, lease);
        else
            drop_open(lease);
    }
    return r;
}

/* ---- what is told ---- */

static bool is_told(const char *type) {
    static const char *const types[] = {
        "session.output", "session.update", "session.usage",     "session.elicited", "session.state",
        "task.started",   "question.asked", "question.answered", "question.expired", "question.withdrawn",
        "task.completed", "task.failed",    "task.cancelled",    "task.changed",
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return false;
}

static bool is_end(const char *type) {
    return strcmp(type, "task.completed") == 0 || strcmp(type, "task.failed") == 0 || strcmp(type, "task.cancelled") == 0;
}

/* What holds for a session is told to the task that has its turn. */
static weft_uplink_lease *lease_of_event(weft_uplink *self, const weft_json *data) {
    const char *task = weft_get_str(data, "taskId", NULL), *session = weft_get_str(data, "sessionId", NULL);
    if (task)
        return weft__uplink_lease_of(self, task);
    const weft_session *known = session ? weft__session_find(self->opts.engine, session) : NULL;
    return known && known->turn ? weft__uplink_lease_of(self, known->turn) : NULL;
}

/* One that is over already needs no person: it was answered here. */
static bool is_answered_here(const weft_uplink *self, const char *type, const weft_json *data) {
    const weft_question *question = weft__question_find(self->opts.engine, weft_get_str(data, "questionId", ""));
    return strcmp(type, "question.asked") == 0 && (!question || question->state != WEFT_QUESTION_OPEN);
}

/* ---- what a hub does not take ---- */

static weft_val member_of(const weft_json *data, const char *name) {
    weft_json member = weft_get(data, name);
    return member.text ? weft_copy(&member) : weft_none();
}

static int put_told(weft_uplink_lease *lease, const weft_event *event, const char *type, weft_val data) {
    weft_val value = WEFT_OBJ({"seq", weft_uint(event->gseq)}, {"type", weft_str(type)}, {"data", data});
    return weft__write_val(&lease->open, NULL, &value);
}

/* A message that is too large would end every connection. Questions and ends are told without what goes with them, of
 * everything else it is told how large it was. */
static int put_short(weft_uplink_lease *lease, const weft_event *event, const weft_json *data) {
    char line[120];
    if (strcmp(event->type, "question.asked") == 0)
        return put_told(lease, event, event->type,
                        WEFT_OBJ({"questionId", member_of(data, "questionId")}, {"kind", member_of(data, "kind")},
                                 {"title", member_of(data, "title")}, {"options", member_of(data, "options")},
                                 {"detail", weft_raw("{}", 2)}));
    if (is_end(event->type))
        return put_told(lease, event, event->type,
                        WEFT_OBJ({"reason", member_of(data, "reason")}, {"error", member_of(data, "error")},
                                 {"stopReason", member_of(data, "stopReason")}, {"exitCode", member_of(data, "exitCode")},
                                 {"signal", member_of(data, "signal")}, {"outputTruncated", weft_bool(true)}));
    snprintf(line, sizeof line, "%.60s of %zu bytes is larger than the hub takes\n", event->type, event->data.len);
    return put_told(lease, event, "session.output", WEFT_OBJ({"stream", weft_str("stderr")}, {"text", weft_str(line)}));
}

static int put_event(const weft_uplink *self, weft_uplink_lease *lease, const weft_event *event, const weft_json *data) {
    bool fits = event->data.len + 2 * FRAME_BYTES <= self->largest;
    return fits ? put_told(lease, event, event->type, weft_copy(data)) : put_short(lease, event, data);
}

static int add_event(const weft_uplink *self, weft_uplink_lease *lease, const weft_event *event, const weft_json *data) {
    int r = weft__buf_put(&lease->open, NULL, lease->count ? "," : "[", 1);
    if (r >= 0)
        r = put_event(self, lease, event, data);
    lease->count++;
    lease->last = event->gseq;
    return r;
}

static int tell_event(weft_uplink *self, const weft_event *event) {
    WEFT_AUTO(weft_doc) doc = NULL;
    int r = is_told(event->type) ? weft_doc_parse(event->data.data, event->data.len, NULL, &doc) : -ENOENT;
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    const weft_json *data = weft_doc_root(doc);
    weft_uplink_lease *lease = lease_of_event(self, data);
    if (!lease || event->gseq <= lease->kept || is_answered_here(self, event->type, data))
        return 0;
    size_t room = self->largest < MESSAGE_BYTES + FRAME_BYTES ? self->largest - FRAME_BYTES : MESSAGE_BYTES;
    bool full = lease->count >= MESSAGE_EVENTS ||
                (lease->count && weft__buf_len(&lease->open) + event->data.len + FRAME_BYTES > room);
    if (full && (r = send_open(self, lease)) < 0)
        return r;
    if (is_end(event->type))
        lease->ended = event->gseq;
    return add_event(self, lease, event, data);
}

/* ---- reading ---- */

static void on_deliver_page(void *ctx, int r, const weft_page *page) {
    struct uplink_read *read = ctx;
    weft_uplink *self = read->uplink;
    weft__free(NULL, read);
    if (!self)
        return;
    uint64_t back = self->back;
    self->read = NULL;
    self->back = UINT64_MAX;
    if (!self->up)
        return;
    if (back != UINT64_MAX) {
        self->cursor = back;
        read_more(self);
        return;
    }
    for (size_t i = 0; r >= 0 && i < page->count; i++)
        r = tell_event(self, &page->events[i]);
    if (send_all_open(self, r) < 0) {
        deliver_again(self);
        return;
    }
    self->cursor = page->last > self->cursor ? page->last : self->cursor;
    read_more(self);
}

static void read_more(weft_uplink *self) {
    if (!self->up || self->read || self->in_flight >= MOST_IN_FLIGHT || weft__list_empty(&self->leases) ||
        self->cursor >= weft__store_head(weft__engine_store(self->opts.engine)))
        return;
    int64_t now = weft__loop_fresh_now(self->opts.loop);
    if (now < self->next_at) {
        weft__timer_set(self->opts.loop, &self->pace, self->next_at);
        return;
    }
    self->next_at = now + PACE_MS;
    struct uplink_read *read = weft__zalloc(NULL, sizeof *read);
    weft_query query = {.after = self->cursor, .oldest = true, .max_events = PAGE_EVENTS, .max_bytes = PAGE_BYTES};
    if (!read || weft__store_read(weft__engine_store(self->opts.engine), &query, on_deliver_page, read) < 0) {
        weft__free(NULL, read);
        deliver_again(self);
        return;
    }
    read->uplink = self;
    self->read = read;
}

static void on_pace_due(weft_timer *timer) {
    read_more(WEFT_CONTAINER(timer, weft_uplink, pace));
}

static void on_deliver_later(weft_later *later) {
    read_more(WEFT_CONTAINER(later, weft_uplink, later));
}

static void read_from(weft_uplink *self, uint64_t after) {
    if (self->read)
        self->back = after;
    else
        self->cursor = after;
    weft__later(self->opts.loop, &self->later);
}

void weft__uplink_rewind(weft_uplink *self) {
    uint64_t least = weft__store_head(weft__engine_store(self->opts.engine));
    for (weft_link *link = self->leases.next; link != &self->leases; link = link->next) {
        weft_uplink_lease *lease = WEFT_CONTAINER(link, weft_uplink_lease, link);
        lease->heard = 0; /* it is told again */
        least = lease->kept < least ? lease->kept : least;
    }
    read_from(self, least);
}

/* Others that say nothing for hours hold nothing up: what was read for them is not read again. A page that is under way is
 * from behind the cursor, so it has all of this one's too. */
void weft__uplink_deliver(weft_uplink *self, const weft_uplink_lease *lease) {
    uint64_t from = self->back < self->cursor ? self->back : self->cursor;
    if (lease->kept < from)
        read_from(self, lease->kept);
    else
        weft__later(self->opts.loop, &self->later);
}

static void on_own_event(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    weft_uplink *self = WEFT_CONTAINER(listener, weft_uplink, listener);
    (void) event, (void) data;
    if (self->up && !weft__list_empty(&self->leases))
        weft__later(self->opts.loop, &self->later);
}

void weft__uplink_deliver_init(weft_uplink *self) {
    self->back = UINT64_MAX;
    weft__later_init(&self->later, on_deliver_later);
    weft__timer_init(&self->pace, on_pace_due);
    self->listener.on_event = on_own_event;
    weft__engine_listen(self->opts.engine, &self->listener);
}

void weft__uplink_deliver_done(weft_uplink *self) {
    weft__engine_unlisten(&self->listener);
    weft__later_cancel(&self->later);
    weft__timer_stop(self->opts.loop, &self->pace);
}

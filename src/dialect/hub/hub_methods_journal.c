/* The journal for a standby on another machine, which copies it: journal.follow says from where, journal.page gives what is
 * there, journal.changes what happened since, and the notification journal.changed that there is more. All of it is raw:
 * events with their keys, documents as they are kept. What the standby does with it is in app/daemon/machines/standby.c. */
#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "change_log.h"
#include "hub_clients.h"
#include "hub_methods.h"
#include "loop.h"
#include "reply.h"
#include "utf8.h"
#include "write.h"

#define MOST_FOLLOWERS 16
/* Changes that are kept for one that was away; without anybody who could come back they are not kept at all. */
#define LOG_BYTES ((size_t) 32 << 20)
#define LOG_IDLE_MS (10 * 60 * 1000)
#define CHANGES_BYTES ((size_t) 1 << 20)
/* What an answer may hold as one piece. A single event may be larger: that is asked for piece by piece. */
#define WHOLE_BYTES ((size_t) 4 << 20)
#define PIECE_BYTES ((size_t) 512 << 10)

struct weft_journal_share {
    weft_hub *hub;
    weft_change_log *log;
    weft_link followers;
    size_t count;
    weft_timer idle;
};

typedef struct follower {
    weft_client_part part;
    weft_link link;
    struct weft_journal_share *share;
    weft_peer *peer;
    bool waits; /* it has everything, and is told when there is more */
    weft_buf text;
} follower;

/* ---- who follows ---- */

static void on_log_idle(weft_timer *timer) {
    struct weft_journal_share *share = WEFT_CONTAINER(timer, struct weft_journal_share, idle);
    if (!share->count)
        share->log = weft__change_log_free(share->log);
}

static void on_follower_gone(weft_client_part *part) {
    follower *self = WEFT_CONTAINER(part, follower, part);
    struct weft_journal_share *share = self->share;
    weft_loop *loop = weft__engine_loop(share->hub->engine);
    weft__list_remove(&self->link);
    if (--share->count == 0)
        weft__timer_set(loop, &share->idle, weft_loop_now(loop) + LOG_IDLE_MS);
    weft__buf_done(&self->text, share->hub->alloc);
    weft__free(share->hub->alloc, self);
}

static void on_log_change(void *ctx) {
    struct weft_journal_share *share = ctx;
    for (weft_link *link = share->followers.next; link != &share->followers; link = link->next) {
        follower *self = WEFT_CONTAINER(link, follower, link);
        if (!self->waits)
            continue;
        self->waits = false;
        weft_notify(self->peer, "journal.changed", WEFT_OBJ({"last", weft_uint(weft__change_log_last(share->log))}));
    }
}

static int begin_log(weft_hub *hub) {
    struct weft_journal_share *share = hub->journal;
    if (!share) {
        share = weft__zalloc(hub->alloc, sizeof *share);
        if (!share)
            return -ENOMEM;
        share->hub = hub;
        weft__list_init(&share->followers);
        weft__timer_init(&share->idle, on_log_idle);
        hub->journal = share;
    }
    weft_change_log_opts opts = {.alloc = hub->alloc,
                                 .store = weft__engine_store(hub->engine),
                                 .max_bytes = LOG_BYTES,
                                 .on_change = on_log_change,
                                 .ctx = share};
    int r = share->log ? 0 : weft__change_log_new(&opts, &share->log);
    if (r < 0 && !share->count)
        weft__hub_journal_free(hub);
    return r;
}

void weft__hub_journal_free(weft_hub *hub) {
    struct weft_journal_share *share = hub->journal;
    if (!share)
        return;
    weft__timer_stop(weft__engine_loop(hub->engine), &share->idle);
    weft__change_log_free(share->log);
    hub->journal = weft__free(hub->alloc, share);
}

static follower *follower_of(const weft_hub *hub, weft_req *req) {
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    weft_client_part *part = client ? weft__hub_client_part(client, on_follower_gone) : NULL;
    return part ? WEFT_CONTAINER(part, follower, part) : NULL;
}

static int add_follower(weft_hub *hub, weft_req *req) {
    struct weft_journal_share *share = hub->journal;
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    if (follower_of(hub, req))
        return 0;
    if (!client || share->count == MOST_FOLLOWERS)
        return client ? -EMFILE : -ENOTSUP;
    follower *self = weft__zalloc(hub->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->part.on_gone = on_follower_gone;
    self->share = share;
    self->peer = weft_req_peer(req);
    weft__list_init(&self->link);
    weft__list_push(&share->followers, &self->link);
    share->count++;
    weft__hub_client_add(client, &self->part);
    return 0;
}

/* ---- journal.follow ---- */

struct follow {
    const char *epoch, *log;
    int64_t after;
};
const weft_param weft__hub_journal_follow_params[] = {
    WEFT_MAY(struct follow, epoch, str, "of the journal that the copy is of"),
    WEFT_MAY(struct follow, log, str, "the log of changes that it followed last"),
    WEFT_MAY_IN(struct follow, after, int, 0, INT64_MAX, "the number of the last change that it has"),
    WEFT_END(struct follow),
};

static int refuse_follow(weft_req *req, int r) {
    switch (r) {
    case -ENOTSUP:
        return weft__reply_error(req, 409, "cannotFollow",
                                 "Only a journal that is a file can be copied, over a socket or a WebSocket; PostgreSQL has "
                                 "standbys of its own");
    case -EMFILE:
        return weft__reply_error(req, 429, "tooManyStandbys", "%d standbys follow already", MOST_FOLLOWERS);
    default:
        return weft__reply_failure(req, r);
    }
}

int weft__hub_journal_follow(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    const struct follow *in = weft_req_params(req);
    const weft_store *store = weft__engine_store(hub->engine);
    uint64_t before_head;
    (void) params;
    int r = begin_log(hub);
    if (r >= 0)
        r = add_follower(hub, req);
    if (r < 0)
        return refuse_follow(req, r);
    const weft_change_log *log = hub->journal->log;
    const char *before = weft__store_before(store, &before_head);
    bool same = in->epoch && strcmp(in->epoch, weft__store_epoch(store)) == 0;
    bool resumed = same && in->log && strcmp(in->log, weft__change_log_name(log)) == 0 &&
                   weft__change_log_has(log, (uint64_t) in->after);
    return weft_reply(req,
                      WEFT_OBJ({"epoch", weft_str(weft__store_epoch(store))}, {"log", weft_str(weft__change_log_name(log))},
                               {"last", weft_uint(weft__change_log_last(log))}, {"head", weft_uint(weft__store_head(store))},
                               {"resumed", weft_bool(resumed)},
                               {"before", before ? WEFT_OBJ({"epoch", weft_str(before)}, {"head", weft_uint(before_head)})
                                                 : weft_none()}));
}

/* ---- answers of any size ---- */

/* text is taken; self is NULL when the connection has gone. */
static int answer_text(weft_req *req, follower *self, const weft_alloc *alloc, weft_buf *text) {
    size_t len = weft__buf_len(text);
    int r = 0;
    if (len <= WHOLE_BYTES)
        r = weft__reply_val(req, weft_raw(weft__buf_head(text), len));
    else if (self) {
        weft__buf_done(&self->text, alloc);
        self->text = *text;
        *text = (weft_buf){0};
        r = weft__reply_val(req, WEFT_OBJ({"size", weft_uint(len)}));
    } else
        r = weft__reply_failure(req, -ECANCELED);
    weft__buf_done(text, alloc);
    return r;
}

struct piece {
    int64_t at;
};
const weft_param weft__hub_journal_piece_params[] = {
    WEFT_MUST_IN(struct piece, at, int, 0, INT64_MAX, "how much of it there is already, in bytes"),
    WEFT_END(struct piece),
};

static int refuse_stranger(weft_req *req) {
    return weft__reply_error(req, 409, "notFollowing", "This connection has not said what it has: journal.follow");
}

int weft__hub_journal_piece(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct piece *in = weft_req_params(req);
    follower *self = follower_of(hub, req);
    (void) params;
    if (!self)
        return refuse_stranger(req);
    size_t len = weft__buf_len(&self->text), at = (size_t) in->at;
    if (at >= len)
        return weft__reply_error(req, 409, "noPiece", "There is no such piece: journal.page or journal.changes comes first");
    const char *text = weft__buf_head(&self->text) + at;
    size_t size = len - at <= PIECE_BYTES ? len - at : PIECE_BYTES;
    while (size < len - at && size > 1 && ((unsigned char) text[size] & 0xC0) == 0x80) /* not within a character */
        size--;
    int r = weft_reply(req, WEFT_OBJ({"text", weft_strn(text, size)}));
    if (at + size == len)
        weft__buf_done(&self->text, hub->alloc);
    return r;
}

/* ---- journal.changes ---- */

struct changes {
    int64_t after;
};
const weft_param weft__hub_journal_changes_params[] = {
    WEFT_MUST_IN(struct changes, after, int, 0, INT64_MAX, "the number of the last change that is stored"),
    WEFT_END(struct changes),
};

int weft__hub_journal_changes(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    const struct changes *in = weft_req_params(req);
    follower *self = follower_of(hub, req);
    weft_buf text = {0};
    char end[160];
    uint64_t last;
    (void) params;
    if (!self || !hub->journal || !hub->journal->log)
        return refuse_stranger(req);
    const weft_change_log *log = hub->journal->log;
    int r = weft__buf_put_text(&text, hub->alloc, "{\"changes\":");
    if (r >= 0)
        r = weft__change_log_read(log, (uint64_t) in->after, CHANGES_BYTES, &text, &last);
    if (r >= 0) {
        snprintf(end, sizeof end, ",\"current\":%llu,\"head\":%llu}", (unsigned long long) weft__change_log_last(log),
                 (unsigned long long) weft__store_head(weft__engine_store(hub->engine)));
        r = weft__buf_put_text(&text, hub->alloc, end);
    }
    if (r < 0) {
        weft__buf_done(&text, hub->alloc);
        return r == -ERANGE ? weft__reply_error(req, 409, "changesGone",
                                                "Changes after this number are not kept any more: journal.follow again")
                            : weft__reply_failure(req, r);
    }
    self->waits = last == weft__change_log_last(log);
    return answer_text(req, self, hub->alloc, &text);
}

/* ---- journal.page ---- */

struct page {
    const char *part;
    int64_t after;
};
const weft_param weft__hub_journal_page_params[] = {
    WEFT_MUST_BE(struct page, part, weft__copy_parts,
                 "what is asked for: events, streams that were trimmed, events whose content was taken out, documents"),
    WEFT_MUST_IN(struct page, after, int, 0, INT64_MAX, "the position behind which it begins"),
    WEFT_END(struct page),
};

/* A page that is being read. */
typedef struct asked {
    weft_hub_wait wait;
    weft_hub *hub;
    weft_req *req;
    uint64_t client;
    weft_copy_part part;
    bool over; /* the clients have gone */
} asked;

static void on_clients_gone(weft_hub_wait *wait) {
    WEFT_CONTAINER(wait, asked, wait)->over = true;
}

static void say_page(asked *self, const weft_page *page) {
    const weft_alloc *alloc = self->hub->alloc;
    weft_buf text = {0};
    weft_hub_client *client = weft__hub_clients_find(self->hub->clients, self->client);
    weft_client_part *part = client ? weft__hub_client_part(client, on_follower_gone) : NULL;
    int r = weft__copy_write_page(&text, alloc, self->part, page);
    if (r >= 0)
        answer_text(self->req, part ? WEFT_CONTAINER(part, follower, part) : NULL, alloc, &text);
    else
        weft__reply_failure(self->req, r);
    weft__buf_done(&text, alloc);
}

static void on_page(void *ctx, int r, const weft_page *page) {
    asked *self = ctx;
    if (!self->over)
        weft__hub_wait_over(&self->wait);
    if (self->over || r < 0)
        weft__reply_failure(self->req, r < 0 ? r : -ECANCELED);
    else if (r > 0)
        weft__reply_error(self->req, 409, weft__gap_name(r), "There is no such position in this journal");
    else
        say_page(self, page);
    weft__free(self->hub->alloc, self);
}

int weft__hub_journal_page(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    const struct page *in = weft_req_params(req);
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    (void) params;
    if (!client || !follower_of(hub, req))
        return refuse_stranger(req);
    asked *self = weft__zalloc(hub->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->hub = hub;
    self->client = weft__hub_client_number(client);
    while (strcmp(weft__copy_parts[self->part], in->part) != 0)
        self->part++;
    weft_query query = weft__copy_query(self->part, (uint64_t) in->after);
    self->req = weft__req_keep(req);
    int r = weft__store_read(weft__engine_store(hub->engine), &query, on_page, self);
    if (r < 0) {
        weft__free(hub->alloc, self);
        return r == -ENOTSUP ? refuse_follow(req, r) : weft__reply_failure(req, r);
    }
    self->wait.on_end = on_clients_gone;
    weft__hub_wait(hub->clients, &self->wait);
    return 0;
}

/* Answers kept for a retry: a method that changes something, called again with the same key by the same client, is not run
 * again; the answer of the first run is given again, or waited for when it is not there yet.
 *
 * Kept in the order of arrival, for a time, up to a number and a size; the oldest goes first, one that is still running
 * never. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gate.h"
#include "hash.h"

#define ROWS 1024
#define MAX_KEY 256
#define MAX_BYTES ((size_t) 16 * 1024 * 1024)

typedef struct weft_kept {
    weft_link age;
    struct weft_kept *next; /* in its row */
    int64_t expires;
    weft_req *waiters; /* retries that came before the answer */
    char *outcome;     /* NULL: still running */
    size_t len;
    uint32_t hash;
    uint64_t params; /* what was asked, so that a key is not used for something else */
    size_t name_len;
    char name[]; /* client, method and key, a NUL behind each */
} weft_kept;

struct weft_idempotent {
    weft_link oldest;
    size_t count, bytes;
    weft_kept *rows[ROWS];
};

struct name {
    char text[3 * MAX_KEY + 64];
    size_t len;
    uint32_t hash;
};

static bool add_to_name(struct name *name, const char *text, size_t len) {
    if (len > MAX_KEY || name->len + len + 1 > sizeof name->text)
        return false;
    memcpy(name->text + name->len, text, len);
    name->text[name->len + len] = '\0';
    name->len += len + 1;
    return true;
}

/* Keys belong to a client: nobody is given another's answer. */
static bool make_name(weft_req *req, const weft_json *key, struct name *ret) {
    const weft_identity *who = weft_req_identity(req);
    weft_bytes text;
    char uid[24];
    int n = snprintf(uid, sizeof uid, "%lld", (long long) who->uid);
    ret->len = 0;
    const char *client = *who->name ? who->name : who->address;
    if (weft_bytes_of(key, &text) < 0 || !add_to_name(ret, uid, (size_t) n) || !add_to_name(ret, client, strlen(client)) ||
        !add_to_name(ret, req->row->name, strlen(req->row->name)) || !add_to_name(ret, text.data, text.len))
        return false;
    ret->hash = weft__hash_more(WEFT_HASH, ret->text, ret->len);
    return true;
}

/* Without _meta, which may differ from try to try. Members may come in any order. Whoever chooses params to collide here
 * deceives only themselves: keys belong to a client. */
static uint64_t hash_params(const weft_req *req) {
    const uint64_t begin = WEFT_HASH64;
    weft_json params = {req->params.data, req->params.len, req->doc};
    uint64_t all = begin;
    if (weft_typeof(&params) != WEFT_OBJECT)
        return weft__hash64_more(begin, req->params.data ? req->params.data : "", req->params.len);
    for (weft_iter it = weft_iterate(&params); weft_next(&it);)
        if (!weft_name_is(&it, "_meta"))
            all += weft__hash64_more(weft__hash64_more(begin, it.name.text, it.name.len), it.value.text, it.value.len);
    return all;
}

static void drop_kept(weft_service *service, weft_kept *kept) {
    struct weft_idempotent *all = service->answers;
    weft_kept **at = &all->rows[kept->hash % ROWS];
    while (*at != kept)
        at = &(*at)->next;
    *at = kept->next;
    weft__list_remove(&kept->age);
    all->count--;
    all->bytes -= kept->len;
    weft__free(service->alloc, kept->outcome);
    weft__free(service->alloc, kept);
}

/* Drop what is too old, and the oldest until no more than so many are left. Before a key is looked up only age counts: a
 * retry that takes no room must not cost an answer, least of all its own. */
static void make_room(weft_service *service, int64_t now, size_t most) {
    struct weft_idempotent *all = service->answers;
    for (weft_link *at = all->oldest.next; at != &all->oldest;) {
        weft_kept *kept = WEFT_CONTAINER(at, weft_kept, age);
        at = at->next;
        bool over = all->count > most || all->bytes > MAX_BYTES;
        if (!over && kept->expires > now)
            break;
        if (kept->outcome)
            drop_kept(service, kept);
    }
}

static weft_kept *find_kept(struct weft_idempotent *all, const struct name *name) {
    weft_kept *kept = all->rows[name->hash % ROWS];
    while (kept && (kept->name_len != name->len || memcmp(kept->name, name->text, name->len) != 0))
        kept = kept->next;
    return kept;
}

static weft_kept *create_kept(weft_service *service, const struct name *name, int64_t now) {
    struct weft_idempotent *all = service->answers;
    if (all->count >= service->limits.max_idempotent) /* all of them still running */
        return NULL;
    weft_kept *kept = weft__zalloc(service->alloc, sizeof *kept + name->len);
    if (!kept)
        return NULL;
    kept->expires = weft__after(now, service->limits.idempotent_ms);
    kept->hash = name->hash;
    kept->name_len = name->len;
    memcpy(kept->name, name->text, name->len);
    kept->next = all->rows[name->hash % ROWS];
    all->rows[name->hash % ROWS] = kept;
    weft__list_push(&all->oldest, &kept->age);
    all->count++;
    return kept;
}

static int need_table(weft_service *service) {
    if (service->answers)
        return 0;
    service->answers = weft__zalloc(service->alloc, sizeof *service->answers);
    if (!service->answers)
        return -ENOMEM;
    weft__list_init(&service->answers->oldest);
    return 0;
}

int weft__idempotent_begin(weft_req *req) {
    struct name name;
    weft_service *service = req->service;
    weft_json key = weft_req_meta(req, "weft/idempotencyKey");
    if (!key.text || (req->flags & REQ_NOTIFICATION))
        return 0;
    if (!make_name(req, &key, &name)) {
        weft_fail(req, WEFT_INVALID_PARAMS, "weft/idempotencyKey must be a string of at most 256 bytes",
                  WEFT_OBJ({"reason", weft_str("invalidParams")}, {"path", weft_str("/_meta/weft~1idempotencyKey")}));
        return 1;
    }
    if (need_table(service) < 0)
        return weft__req_finish(req, &(weft_outcome){.code = WEFT_INTERNAL_ERROR, .message = "Out of memory"}), 1;
    make_room(service, req->peer->now, SIZE_MAX);
    weft_kept *kept = find_kept(service->answers, &name);
    uint64_t params = hash_params(req);
    if (kept && kept->params != params) {
        weft_refuse(req, 409, "The idempotency key was used before, with other params", "idempotencyKeyReused");
        return 1;
    }
    if (kept && kept->outcome) {
        weft__req_finish_kept(req, (weft_bytes){kept->outcome, kept->len});
        return 1;
    }
    if (kept) {
        if (weft__req_defer(req, false) < 0)
            return weft__req_release(req), 1; /* answered already */
        req->next_waiter = kept->waiters;
        kept->waiters = req;
        return 1;
    }
    make_room(service, req->peer->now, service->limits.max_idempotent - 1);
    req->idempotent = create_kept(service, &name, req->peer->now);
    if (req->idempotent) {
        req->flags |= REQ_KEYED;
        req->idempotent->params = params;
        return 0;
    }
    /* Running it without keeping its answer would break the promise that a retry is safe. */
    weft_refuse(req, 503, "No room to keep the answer for a retry", "idempotencyFull");
    return 1;
}

static weft_req *take_waiters(weft_req *req, weft_kept *kept) {
    weft_req *waiters = kept->waiters;
    kept->waiters = NULL;
    req->idempotent = NULL;
    req->flags &= ~(unsigned) REQ_KEYED;
    return waiters;
}

void weft__idempotent_store(weft_req *req, weft_bytes outcome) {
    weft_kept *kept = req->idempotent;
    weft_service *service = req->service;
    weft_req *waiters = take_waiters(req, kept);
    kept->outcome =
        weft__alloc(service->alloc, outcome.len + WEFT_SLACK); /* an error is taken apart with the reader again */
    if (kept->outcome) {
        memcpy(kept->outcome, outcome.data, outcome.len);
        memset(kept->outcome + outcome.len, 0, WEFT_SLACK);
        kept->len = outcome.len;
        service->answers->bytes += outcome.len;
    } else
        drop_kept(service, kept);
    while (waiters) {
        weft_req *next = waiters->next_waiter;
        weft__req_finish_kept(waiters, outcome);
        waiters = next;
    }
}

void weft__idempotent_forget(weft_req *req) {
    weft_service *service = req->service;
    weft_kept *kept = req->idempotent;
    weft_req *waiters = take_waiters(req, kept);
    drop_kept(service, kept);
    while (waiters) {
        weft_req *next = waiters->next_waiter;
        weft__req_finish(waiters, &(weft_outcome){.code = WEFT_INTERNAL_ERROR, .message = "Out of memory"});
        waiters = next;
    }
}

void weft__idempotent_done(weft_service *service) {
    if (!service->answers)
        return;
    while (!weft__list_empty(&service->answers->oldest))
        drop_kept(service, WEFT_CONTAINER(service->answers->oldest.next, weft_kept, age));
    service->answers = weft__free(service->alloc, service->answers);
}

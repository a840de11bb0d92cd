/* Requests that are done once: those under way, and those that are remembered.
 *
 *     begun ──its append is stored──▶ remembered       mutations
 *     begun ──request.begun──▶ acting ──request.done──▶ remembered       actions
 *
 * What is remembered is folded from events, like everything the engine knows: request.begun, request.done, and the member
 * "request" of the events of collections. It is saved in pieces of SEGMENT requests, one document each, so that a save
 * writes only the last of them, and the oldest are forgotten a piece at a time. */
#include "once.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "engine_private.h"
#include "write.h"

#define SEGMENT 64
#define DIGEST 32 /* hexadecimal digits of a SHA-256 that are kept: who guesses one does not find another */

struct request_segment {
    weft_link link;
    saved_mark saved;
    uint64_t number;
    size_t count;
    struct known_request *requests[SEGMENT];
};

/* One that is remembered. */
typedef struct known_request {
    weft_node node;
    request_segment *segment;
    uint64_t gseq;
    bool begun;    /* an action, and its end is not known */
    bool is_error; /* what it was answered with */
    char *answer;  /* JSON; NULL: begun */
    size_t len;
    char key[DIGEST + 1], digest[DIGEST + 1];
    char text[]; /* its answer, if that was known from the beginning */
} known_request;

typedef struct request_waiter {
    weft_link link;
    weft_request_done *done;
    void *ctx;
    char key[DIGEST + 1]; /* of one that is over already */
} request_waiter;

struct weft_request {
    weft_engine *engine;
    weft_node node;
    weft_link link;
    weft_request_done *done; /* whoever began it, */
    void *ctx;
    weft_link waiters; /* and those who asked for the same meanwhile */
    void (*on_begun)(void *ctx, int r);
    void *begun_ctx;
    char store_key[8 + DIGEST + 1]; /* "request/" and the key */
    char digest[DIGEST + 1];
    const char *by, *id, *name;
    char text[];
};

/* ---- what is remembered ---- */

static known_request *find_known(const weft_engine *engine, const char *key) {
    weft_node *node = weft__map_find(&engine->known_requests, key);
    return node ? WEFT_CONTAINER(node, known_request, node) : NULL;
}

static known_request *free_known(weft_engine *engine, known_request *old) {
    weft__map_remove(&engine->known_requests, &old->node);
    engine->request_count--;
    engine->request_bytes -= old->len;
    if (old->answer != old->text)
        weft__free(engine->alloc, old->answer);
    return weft__free(engine->alloc, old);
}

static void drop_segment(weft_engine *engine, request_segment *segment) {
    char id[ENGINE_ID];
    snprintf(id, sizeof id, "%" PRIu64, segment->number);
    weft__saved_forget(engine, &segment->saved, id);
    for (size_t i = 0; i < segment->count; i++)
        free_known(engine, segment->requests[i]);
    weft__list_remove(&segment->link);
    weft__free(engine->alloc, segment);
}

/* In the order of their numbers. */
static request_segment *add_segment(weft_engine *engine, uint64_t number) {
    weft_link *all = &engine->request_segments, *before = all->prev;
    while (before != all && WEFT_CONTAINER(before, request_segment, link)->number > number)
        before = before->prev;
    request_segment *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return NULL;
    made->number = number;
    weft__saved_init(&made->saved, SAVED_REQUESTS);
    weft__list_push(before->next, &made->link);
    if (number >= engine->next_segment)
        engine->next_segment = number + 1;
    return made;
}

/* The one that takes the next request; NULL: no memory. */
static request_segment *last_segment(weft_engine *engine) {
    weft_link *last = engine->request_segments.prev;
    request_segment *segment = last == &engine->request_segments ? NULL : WEFT_CONTAINER(last, request_segment, link);
    return segment && segment->count < SEGMENT ? segment : add_segment(engine, engine->next_segment);
}

static known_request *add_known(weft_engine *engine, request_segment *segment, const char key[DIGEST + 1],
                                const char digest[DIGEST + 1], size_t room) {
    known_request *made = weft__zalloc(engine->alloc, sizeof *made + room);
    if (!made)
        return NULL;
    memcpy(made->key, key, sizeof made->key);
    memcpy(made->digest, digest, sizeof made->digest);
    made->segment = segment;
    segment->requests[segment->count++] = made;
    engine->request_count++;
    weft__map_put(&engine->known_requests, &made->node, made->key);
    return made;
}

static bool too_many_known(const weft_engine *engine) {
    return engine->request_count > engine->limits.max_requests || engine->request_bytes > engine->limits.max_request_bytes;
}

void weft__requests_tidy(weft_engine *engine) {
    while (too_many_known(engine) && engine->request_segments.next->next != &engine->request_segments)
        drop_segment(engine, WEFT_CONTAINER(engine->request_segments.next, request_segment, link));
}

void weft__requests_forget_until(weft_engine *engine, uint64_t gseq) {
    while (!weft__list_empty(&engine->request_segments)) {
        request_segment *first = WEFT_CONTAINER(engine->request_segments.next, request_segment, link);
        if (first->count < SEGMENT || first->requests[SEGMENT - 1]->gseq > gseq)
            return;
        drop_segment(engine, first);
    }
}

/* A digest or key of ours: DIGEST characters. */
static const char *read_digest(const weft_json *value, char ret[DIGEST + 1]) {
    weft_bytes text;
    if (weft_bytes_of(value, &text) < 0 || text.len != DIGEST)
        return NULL;
    memcpy(ret, text.data, DIGEST);
    ret[DIGEST] = '\0';
    return ret;
}

/* What is said of a request, in an event, or in the document of a segment. */
static int take_known(weft_engine *engine, request_segment *segment, const weft_json *said, uint64_t gseq) {
    bool saved = segment != NULL;
    char key[DIGEST + 1], digest[DIGEST + 1];
    enum { KEY, SUM, RESULT, ERROR };
    static const char *const names[] = {"request", "digest", "result", "error"};
    weft_json of[4];
    weft__get_all(said, names, 4, of);
    if (!read_digest(&of[KEY], key) || !read_digest(&of[SUM], digest))
        return -EBADMSG;
    const weft_json *answer = of[RESULT].text ? &of[RESULT] : &of[ERROR];
    known_request *known = find_known(engine, key);
    if (known && (known->answer || !answer->text))
        return 0; /* said again, at a start */
    char *place = known ? weft__alloc(engine->alloc, answer->len) : NULL;
    if (known && !place)
        return -ENOMEM;
    if (!known && (segment || (segment = last_segment(engine))))
        known = add_known(engine, segment, key, digest, answer->len);
    if (!known)
        return -ENOMEM;
    known->answer = !answer->text ? NULL : memcpy(place ? place : known->text, answer->text, answer->len);
    known->len = answer->len;
    known->begun = !answer->text;
    known->is_error = !of[RESULT].text;
    known->gseq = gseq;
    engine->request_bytes += known->len;
    if (!saved)
        weft__saved_changed(engine, &known->segment->saved);
    if (too_many_known(engine))
        weft__later(engine->loop, &engine->tidy);
    return 0;
}

int weft__request_note(weft_engine *engine, const weft_event *event, const weft_json *request) {
    return request->text ? take_known(engine, NULL, request, event->gseq) : 0;
}

int weft__request_apply(weft_engine *engine, const weft_event *event, const weft_json *data) {
    return take_known(engine, NULL, data, event->gseq);
}

/* ---- saved ---- */

static int write_known(const known_request *known, const weft_alloc *alloc, weft_buf *out) {
    weft_val answer = known->answer ? weft_raw(known->answer, known->len) : weft_none();
    weft_val value =
        WEFT_OBJ({"request", weft_str(known->key)}, {"digest", weft_str(known->digest)}, {"gseq", weft_uint(known->gseq)},
                 {"result", known->is_error ? weft_none() : answer}, {"error", known->is_error ? answer : weft_none()});
    return weft__write_val(out, alloc, &value);
}

int weft__requests_write(const request_segment *segment, const weft_alloc *alloc, weft_buf *out) {
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < segment->count; i++) {
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_known(segment->requests[i], alloc, out);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

uint64_t weft__requests_number(const request_segment *segment) {
    return segment->number;
}

saved_mark *weft__requests_mark(request_segment *segment) {
    return &segment->saved;
}

request_segment *weft__requests_of_mark(saved_mark *mark) {
    return WEFT_CONTAINER(mark, request_segment, saved);
}

request_segment *weft__requests_next(const weft_engine *engine, request_segment *after) {
    weft_link *next = after ? after->link.next : engine->request_segments.next;
    return next == &engine->request_segments ? NULL : WEFT_CONTAINER(next, request_segment, link);
}

static request_segment *find_segment(const weft_engine *engine, uint64_t number) {
    for (weft_link *link = engine->request_segments.prev; link != &engine->request_segments; link = link->prev) {
        request_segment *segment = WEFT_CONTAINER(link, request_segment, link);
        if (segment->number <= number)
            return segment->number == number ? segment : NULL;
    }
    return NULL;
}

/* The document that was written last comes last, whatever its number. One that was read in part, for want of memory, is read
 * again. */
int weft__requests_restore(weft_engine *engine, const weft_json *data) {
    uint64_t number = (uint64_t) weft__int_between(data, "number", -1, -1, INT64_MAX - 1);
    weft_json list = weft_get(data, "requests");
    if (number > INT64_MAX || weft_typeof(&list) != WEFT_ARRAY)
        return -EBADMSG;
    request_segment *segment = find_segment(engine, number);
    if (!segment)
        segment = add_segment(engine, number);
    if (!segment)
        return -ENOMEM;
    segment->saved.saved = true;
    int r = 0;
    for (weft_iter it = weft_iterate(&list); r >= 0 && segment->count < SEGMENT && weft_next(&it);)
        r = take_known(engine, segment, &it.value, (uint64_t) weft__int_between(&it.value, "gseq", 0, 0, INT64_MAX));
    return r;
}

/* ---- telling ---- */

static void run_done(request_waiter *old, const weft_alloc *alloc, const weft_request_outcome *outcome) {
    weft_request_done *done = old->done;
    void *ctx = old->ctx;
    weft__list_remove(&old->link);
    weft__free(alloc, old);
    if (done)
        done(ctx, outcome);
}

/* What is known of it by now, as an outcome; ret_doc is what that lies in. */
static weft_request_outcome known_outcome(const weft_engine *engine, const char *key, weft_doc **ret_doc) {
    const known_request *known = find_known(engine, key);
    weft_request_outcome outcome = {.r = !known ? -EEXIST : known->begun ? -EOWNERDEAD : 0};
    if (outcome.r < 0)
        return outcome;
    outcome.r = weft_doc_keep(&(weft_json){known->answer, known->len, NULL}, engine->alloc, ret_doc);
    if (outcome.r < 0)
        return outcome;
    outcome.r = known->is_error;
    *(known->is_error ? &outcome.error : &outcome.result) = *weft_doc_root(*ret_doc);
    return outcome;
}

/* Answers to repeats of what was done before, each in a later turn of the loop. */
static void answer_repeats(weft_engine *engine, int r) {
    while (!weft__list_empty(&engine->request_repeats)) {
        request_waiter *first = WEFT_CONTAINER(engine->request_repeats.next, request_waiter, link);
        weft_doc *doc = NULL;
        weft_request_outcome outcome = {.r = r};
        if (r >= 0)
            outcome = known_outcome(engine, first->key, &doc);
        outcome.repeat = true;
        engine->request_waiting--;
        run_done(first, engine->alloc, &outcome);
        weft_doc_free(doc);
    }
}

static void repeats_due(weft_later *later) {
    answer_repeats(WEFT_CONTAINER(later, weft_engine, request_later), 0);
}

static void free_request(weft_request *request) {
    weft_engine *engine = request->engine;
    weft__map_remove(&engine->requests, &request->node);
    weft__list_remove(&request->link);
    engine->request_under_way--;
    weft__free(engine->alloc, request);
}

/* It is out of the map first: what is called may begin the same again. */
static void end_request(weft_request *request, const weft_request_outcome *first_outcome) {
    weft_engine *engine = request->engine;
    weft_request_outcome outcome = *first_outcome;
    weft_request_done *done = request->done;
    void *ctx = request->ctx;
    weft_link waiters;
    weft__list_push(&request->waiters, &waiters);
    weft__list_remove(&request->waiters);
    free_request(request);
    engine->request_waiting--;
    if (done)
        done(ctx, &outcome);
    outcome.repeat = true;
    while (!weft__list_empty(&waiters)) {
        engine->request_waiting--;
        run_done(WEFT_CONTAINER(waiters.next, request_waiter, link), engine->alloc, &outcome);
    }
}

static const char *key_of(const weft_request *request) {
    return request->store_key + sizeof "request/" - 1;
}

void weft__request_settle(weft_request *request, int r) {
    weft_doc *doc = NULL;
    weft_request_outcome outcome = {.r = r};
    if (r >= 0)
        outcome = known_outcome(request->engine, key_of(request), &doc);
    end_request(request, &outcome);
    weft_doc_free(doc);
}

void weft__request_refuse(weft_request *request, weft_val error) {
    weft_engine *engine = request->engine;
    weft_buf text = {0};
    weft_doc *doc = NULL;
    int r = weft__write_val(&text, engine->alloc, &error);
    if (r >= 0)
        r = weft_doc_parse(weft__buf_head(&text), weft__buf_len(&text), engine->alloc, &doc);
    weft_request_outcome outcome = {.r = r < 0 ? r : 1};
    if (r >= 0)
        outcome.error = *weft_doc_root(doc);
    weft__buf_done(&text, engine->alloc);
    end_request(request, &outcome);
    weft_doc_free(doc);
}

/* ---- beginning ---- */

/* Of these texts, one behind the other. What it is made with is kept: to look it up takes longer than a short text. */
static int make_digest(weft_engine *engine, const weft_bytes *texts, size_t count, char ret[DIGEST + 1]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[SHA256_DIGEST_LENGTH];
    if (!engine->sha256)
        engine->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!engine->hashing)
        engine->hashing = EVP_MD_CTX_new();
    bool done = engine->sha256 && engine->hashing && EVP_DigestInit_ex2(engine->hashing, engine->sha256, NULL) == 1;
    for (size_t i = 0; done && i < count; i++)
        done = EVP_DigestUpdate(engine->hashing, texts[i].data, texts[i].len) == 1;
    if (!done || EVP_DigestFinal_ex(engine->hashing, digest, NULL) != 1)
        return -ENOMEM;
    for (size_t i = 0; i < DIGEST / 2; i++) {
        ret[2 * i] = digits[digest[i] >> 4];
        ret[2 * i + 1] = digits[digest[i] & 15];
    }
    ret[DIGEST] = '\0';
    return 0;
}

/* With the NUL between them, which neither has, so that no caller can write another's name into its id. */
static int digest_id(weft_engine *engine, const weft_request_spec *spec, char ret[DIGEST + 1]) {
    const weft_bytes texts[] = {{spec->by, strlen(spec->by) + 1}, {spec->id, strlen(spec->id)}};
    return make_digest(engine, texts, 2, ret);
}

/* What has no canonical form (a number beyond all doubles) is the same only if it is the same text. */
static int digest_body(weft_engine *engine, const weft_request_spec *spec, char ret[DIGEST + 1]) {
    char *canonical = NULL;
    size_t len = 0;
    int r = spec->args.text ? weft_to_canonical(&spec->args, engine->alloc, &canonical, &len) : 0;
    if (r < 0 && r != -EBADMSG)
        return r;
    const weft_bytes args = canonical ? (weft_bytes){canonical, len} : (weft_bytes){spec->args.text, spec->args.len};
    const weft_bytes texts[] = {{spec->name, strlen(spec->name) + 1}, args};
    r = make_digest(engine, texts, args.len ? 2 : 1, ret);
    weft_text_free(canonical, engine->alloc);
    return r;
}

static int add_request_waiter(weft_engine *engine, weft_link *list, const char key[DIGEST + 1], weft_request_done *done,
                              void *ctx) {
    if (engine->request_waiting >= 2 * (size_t) WEFT_REQUESTS_AT_ONCE)
        return -EUSERS;
    request_waiter *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->done = done;
    made->ctx = ctx;
    memcpy(made->key, key, sizeof made->key);
    weft__list_push(list, &made->link);
    engine->request_waiting++;
    return 0;
}

static weft_request *new_request(weft_engine *engine, const weft_request_spec *spec, const char key[DIGEST + 1],
                                 const char digest[DIGEST + 1]) {
    static const char prefix[] = "request/";
    size_t by = strlen(spec->by) + 1, id = strlen(spec->id) + 1, name = strlen(spec->name) + 1;
    weft_request *made = weft__zalloc(engine->alloc, sizeof *made + by + id + name);
    if (!made)
        return NULL;
    made->engine = engine;
    made->by = memcpy(made->text, spec->by, by);
    made->id = memcpy(made->text + by, spec->id, id);
    made->name = memcpy(made->text + by + id, spec->name, name);
    memcpy(made->store_key, prefix, sizeof prefix - 1);
    memcpy(made->store_key + sizeof prefix - 1, key, DIGEST + 1);
    memcpy(made->digest, digest, sizeof made->digest);
    weft__list_init(&made->waiters);
    return made;
}

static int begin_new(weft_engine *engine, const weft_request_spec *spec, const char *key, const char *digest,
                     weft_request_done *done, void *ctx, weft_request **ret) {
    if (engine->request_under_way >= WEFT_REQUESTS_AT_ONCE || engine->request_waiting >= 2 * (size_t) WEFT_REQUESTS_AT_ONCE)
        return -EUSERS;
    weft_request *made = new_request(engine, spec, key, digest);
    if (!made)
        return -ENOMEM;
    made->done = done;
    made->ctx = ctx;
    engine->request_waiting++;
    weft__map_put(&engine->requests, &made->node, key_of(made));
    weft__list_push(&engine->all_requests, &made->link);
    engine->request_under_way++;
    *ret = made;
    return 0;
}

static int repeat_known(weft_engine *engine, const known_request *known, const char *digest, weft_request_done *done,
                        void *ctx) {
    if (strcmp(known->digest, digest) != 0)
        return -ENOTUNIQ;
    int r = add_request_waiter(engine, &engine->request_repeats, known->key, done, ctx);
    weft__later(engine->loop, &engine->request_later);
    return r < 0 ? r : 1;
}

static bool is_short(const char *text, size_t least) {
    size_t len = text ? strnlen(text, WEFT_REQUEST_ID + 1) : 0;
    return text && len >= least && len <= WEFT_REQUEST_ID;
}

int weft__request_begin(weft_engine *engine, const weft_request_spec *spec, weft_request_done *done, void *ctx,
                        weft_request **ret) {
    char key[DIGEST + 1], digest[DIGEST + 1];
    if (engine->phase != READY || engine->past_unread)
        return engine->phase <= READY ? -EAGAIN : -ESHUTDOWN;
    if (!is_short(spec->by, 0) || !is_short(spec->id, 1) || !is_short(spec->name, 1))
        return -EINVAL;
    int r = digest_id(engine, spec, key);
    if (r >= 0)
        r = digest_body(engine, spec, digest);
    if (r < 0)
        return r;
    weft_node *node = weft__map_find(&engine->requests, key);
    if (node) {
        weft_request *same = WEFT_CONTAINER(node, weft_request, node);
        if (strcmp(same->digest, digest) != 0)
            return -ENOTUNIQ;
        r = add_request_waiter(engine, &same->waiters, key, done, ctx);
        return r < 0 ? r : 1;
    }
    const known_request *known = find_known(engine, key);
    return known ? repeat_known(engine, known, digest, done, ctx) : begin_new(engine, spec, key, digest, done, ctx, ret);
}

/* ---- storing ---- */

weft_val weft__request_data(const weft_request *request, weft_val result, weft_val error, weft_member members[7]) {
    const weft_member all[7] = {
        {"request", weft_str(key_of(request))},
        {"requestId", weft_str(request->id)},
        {"by", weft_str(request->by)},
        {"name", weft_str(request->name)},
        {"digest", weft_str(request->digest)},
        {"result", result},
        {"error", error},
    };
    memcpy(members, all, sizeof all);
    return weft_obj(members, 7);
}

const char *weft__request_key(const weft_request *request) {
    return request ? request->store_key : NULL;
}

void weft__request_add(const weft_request *request, struct draft *draft, weft_val result) {
    weft_member members[7];
    if (request)
        weft__draft_add(draft, WEFT_STREAM_HUB, "request.done", weft__request_data(request, result, weft_none(), members));
}

/* The store knew the key: done before, and forgotten here. */
static void request_stored(void *ctx, int r) {
    weft__request_settle(ctx, r > 0 ? -EEXIST : r);
}

void weft__request_store(weft_request *request, weft_val result) {
    struct draft draft = {.engine = request->engine};
    weft__request_add(request, &draft, result);
    int r = weft__draft_send(&draft, request->store_key, request_stored, request);
    if (r < 0)
        weft__request_settle(request, r);
}

/* ---- actions ---- */

static void begin_stored(void *ctx, int r) {
    weft_request *request = ctx;
    request->on_begun(request->begun_ctx, r > 0 ? -EEXIST : r);
}

int weft__request_act(weft_request *request, void (*on_begun)(void *ctx, int r), void *ctx) {
    struct draft draft = {.engine = request->engine};
    weft_member members[7];
    request->on_begun = on_begun;
    request->begun_ctx = ctx;
    weft__draft_add(&draft, WEFT_STREAM_HUB, "request.begun",
                    weft__request_data(request, weft_none(), weft_none(), members));
    return weft__draft_send(&draft, request->store_key, begin_stored, request);
}

/* Without a key: the one of its beginning is in the store. */
void weft__request_acted(weft_request *request, weft_val result, weft_val error) {
    struct draft draft = {.engine = request->engine};
    weft_member members[7];
    weft__draft_add(&draft, WEFT_STREAM_HUB, "request.done", weft__request_data(request, result, error, members));
    int r = weft__draft_send(&draft, NULL, request_stored, request);
    if (r < 0)
        weft__request_settle(request, r);
}

/* ---- life ---- */

void weft__requests_init(weft_engine *engine) {
    weft__list_init(&engine->request_segments);
    weft__list_init(&engine->request_repeats);
    weft__list_init(&engine->all_requests);
    engine->requests.alloc = engine->known_requests.alloc = engine->alloc;
    weft__later_init(&engine->request_later, repeats_due);
}

/* Those whose command is not one of the engine's end here. */
void weft__requests_drop(weft_engine *engine) {
    weft__later_cancel(&engine->request_later);
    answer_repeats(engine, -ECANCELED);
    while (!weft__list_empty(&engine->all_requests))
        weft__request_settle(WEFT_CONTAINER(engine->all_requests.next, weft_request, link), -ECANCELED);
    while (!weft__list_empty(&engine->request_segments))
        drop_segment(engine, WEFT_CONTAINER(engine->request_segments.next, request_segment, link));
    weft__map_done(&engine->requests);
    weft__map_done(&engine->known_requests);
    EVP_MD_CTX_free(engine->hashing);
    EVP_MD_free(engine->sha256);
}

/* Subscriptions of a client: asking, taking values, asking again after a loss. The pieces of a value are chunks.c, the file
 * is position_file.c.
 *
 * IDLE      ──connected──▶ ASKING       ask_sub()
 * ASKING    ──answer─────▶ FOLLOWING    take_subscribed()
 *           ──"later"────▶ IDLE         ask_again(): a timer
 * FOLLOWING ──lost───────▶ IDLE         lose_sub()
 *           ──no memory──▶ IDLE         ask_again()
 * any       ──refused────▶ ENDED        end_sub()
 *
 * A value that comes while it does not follow is of a subscription before this one and is dropped: what it has not taken is
 * behind its position, and comes again. At most one call is open at a time, and it holds a reference. */
#include <weft/subscribe.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chunks.h"
#include "client.h"
#include "position_file.h"

#define MAX_VALUE ((size_t) 32 << 20)
#define SAVE_MS 1000
#define ID_PREFIX "weft-sub-"
#define ID_SIZE 40

typedef enum sub_phase { IDLE, ASKING, FOLLOWING, ENDED } sub_phase;

struct weft_sub {
    weft_link link;      /* in client->subs */
    size_t refs;         /* its owner's, the open call's, each callback's under way */
    weft_client *client; /* NULL: the peer is gone */
    const weft_alloc *alloc;
    weft_sub_opts opts; /* file and journal are not used from here */
    char *name, *params, *file;
    uint64_t number, round;
    sub_phase phase;
    bool freed;        /* by its owner: nothing is told any more */
    bool positioned;   /* position counts */
    bool asked_behind; /* the open call has a position */
    bool first;        /* the next value has any seq: it has begun anew */
    bool state;        /* not a log */
    bool damaged;      /* the file was, and nobody has been told yet */
    bool was_lost;
    bool unsaved, save_failed;
    weft_position position;
    weft_chunks chunks;
    weft_backoff backoff;
    weft_timer again, save;
};

/* ---- telling the owner ---- */

static void unref_sub(weft_sub *sub) {
    const weft_alloc *alloc = sub->alloc;
    if (--sub->refs)
        return;
    weft__chunks_drop(&sub->chunks, alloc);
    weft__free(alloc, sub->name);
    weft__free(alloc, sub->params);
    weft__free(alloc, sub->file);
    weft__free(alloc, sub);
}

/* The caller holds a reference; the owner may free the subscription and the peer. */
static void tell_sub(weft_sub *sub, weft_sub_state state, const char *reason, int why, const weft_error *error) {
    weft_sub_news news = {.state = state, .reason = reason, .why = why, .error = error};
    if (!sub->freed && sub->client && sub->opts.on_state)
        sub->opts.on_state(sub, &news, sub->opts.ctx);
}

/* ---- the file ---- */

int weft_sub_save(weft_sub *sub) {
    if (!sub->file || !sub->unsaved)
        return 0;
    int r = weft__position_save(sub->file, sub->name, sub->params, &sub->position, sub->alloc);
    if (r >= 0)
        sub->unsaved = false;
    return r;
}

static void save_and_tell(weft_sub *sub) {
    int r = weft_sub_save(sub);
    bool told = sub->save_failed;
    sub->save_failed = r < 0;
    if (r < 0 && !told)
        tell_sub(sub, WEFT_SUB_UNSAVED, "", r, NULL);
}

/* The position has changed. */
static void save_later(weft_sub *sub) {
    int64_t save_ms = sub->opts.save_ms ? sub->opts.save_ms : SAVE_MS;
    if (!sub->file || !sub->client || sub->freed)
        return;
    if (save_ms < 0)
        save_and_tell(sub);
    else if (sub->save.due == INT64_MAX)
        weft__timer_set(sub->client->loop, &sub->save, weft__after(weft__loop_fresh_now(sub->client->loop), save_ms));
}

static void on_save_due(weft_timer *timer) {
    weft_sub *sub = WEFT_CONTAINER(timer, weft_sub, save);
    sub->refs++;
    save_and_tell(sub);
    if (sub->unsaved)
        save_later(sub);
    unref_sub(sub);
}

/* ---- ending, and trying again ---- */

static void format_sub_id(const weft_sub *sub, char id[ID_SIZE]) {
    snprintf(id, ID_SIZE, ID_PREFIX "%" PRIu64, sub->number);
}

/* Where it cannot be told, for want of memory, the other side goes on until the connection ends, and nobody listens. */
static void send_unsubscribe(const weft_sub *sub) {
    char id[ID_SIZE];
    format_sub_id(sub, id);
    if (sub->client && sub->client->state == WEFT_PEER_CONNECTED && (sub->phase == ASKING || sub->phase == FOLLOWING))
        weft_notify(sub->client->peer, "tinyvex/unsubscribe", WEFT_OBJ({"subId", weft_str(id)}));
}

static void end_sub(weft_sub *sub, int why, const char *reason, const weft_error *error) {
    if (sub->phase == FOLLOWING)
        send_unsubscribe(sub);
    sub->phase = ENDED;
    weft__chunks_drop(&sub->chunks, sub->alloc);
    save_and_tell(sub);
    tell_sub(sub, WEFT_SUB_ENDED, reason, why, error);
}

/* Nothing comes at the moment. */
static void lose_sub(weft_sub *sub, int why, const char *reason) {
    bool told = sub->was_lost;
    sub->phase = IDLE;
    sub->was_lost = true;
    weft__chunks_drop(&sub->chunks, sub->alloc);
    save_and_tell(sub);
    if (!told)
        tell_sub(sub, WEFT_SUB_LOST, reason, why, NULL);
}

/* Behind the same position, on this connection or the next. */
static void ask_again(weft_sub *sub, int why, const char *reason) {
    lose_sub(sub, why, reason);
    if (sub->client && !sub->freed && sub->phase == IDLE)
        weft__timer_set(
            sub->client->loop, &sub->again,
            weft__after(weft__loop_fresh_now(sub->client->loop), weft__backoff_next(&sub->backoff, weft__any_number())));
}

/* ---- the position ---- */

static int set_journal(weft_sub *sub, const weft_json *journal) {
    const char *text;
    weft_bytes bytes;
    int r = journal->text ? weft_bytes_of(journal, &bytes) : 0;
    if (r < 0 || !journal->text)
        return r == -EINVAL ? -EBADMSG : r;
    if (bytes.len > WEFT_SUB_JOURNAL || memchr(bytes.data, '\0', bytes.len))
        return -EBADMSG;
    text = weft_str_of(journal, NULL);
    if (!text)
        return -ENOMEM;
    memcpy(sub->position.journal, text, bytes.len + 1);
    return 0;
}

static void change_position(weft_sub *sub, uint64_t seq) {
    sub->position.seq = seq;
    sub->positioned = true;
    sub->unsaved = true;
}

/* ---- the answer ---- */

/* Nothing is known of a state before its first value: with a position it might be taken for one that has it. */
static bool asks_behind(const weft_sub *sub) {
    return sub->positioned && !(sub->state && sub->first);
}

static void tell_subscribed(weft_sub *sub, bool resumed, const char *reason) {
    bool damaged = sub->damaged, again = sub->asked_behind;
    sub->damaged = sub->was_lost = false;
    weft__backoff_reset(&sub->backoff);
    if (resumed)
        tell_sub(sub, WEFT_SUB_RESUMED, "", 0, NULL);
    else if (again || damaged)
        tell_sub(sub, WEFT_SUB_SNAPSHOT, again ? reason : "positionDamaged", 0, NULL);
    else
        tell_sub(sub, WEFT_SUB_LIVE, "", 0, NULL);
}

static void take_subscribed(weft_sub *sub, const weft_json *result) {
    bool resumed = sub->asked_behind && weft_get_bool(result, "resumed", false);
    int64_t start = weft_get_int(result, "startSeq", -1);
    weft_json journal = weft_get(result, "journal"), mode = weft_get(result, "mode");
    bool state = mode.len == sizeof "\"state\"" - 1 && memcmp(mode.text, "\"state\"", mode.len) == 0;
    int r = start < 0 ? -EBADMSG : resumed ? 0 : set_journal(sub, &journal);
    if (r == -ENOMEM) {
        ask_again(sub, r, "");
        return;
    }
    if (r < 0) {
        end_sub(sub, r, "", NULL);
        return;
    }
    sub->phase = FOLLOWING;
    sub->state = state;
    sub->first = !resumed;
    if (!resumed) {
        change_position(sub, (uint64_t) start);
        /* The file keeps no position of a state that has no value yet. */
        sub->unsaved = !state;
    }
    tell_subscribed(sub, resumed, weft_get_str(result, "reason", ""));
    if (sub->unsaved)
        save_later(sub);
}

/* What may be otherwise in a moment. */
static bool is_temporary(const weft_error *error) {
    static const char *const reasons[] = {"timeout", "storageFailed", "tooManyStreams"};
    const char *reason = weft_get_str(&error->data, "reason", "");
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (strcmp(reason, reasons[i]) == 0)
            return true;
    return error->code == 503 || error->code == 429;
}

static void take_refusal(weft_sub *sub, const weft_error *error) {
    const char *reason = weft_get_str(&error->data, "reason", "");
    if (is_temporary(error))
        ask_again(sub, 0, *reason ? reason : error->message);
    else
        end_sub(sub, 0, reason, error);
}

static void on_sub_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_sub *sub = ctx;
    (void) peer;
    if (sub->freed || !sub->client || sub->phase != ASKING || r == -ECONNRESET || r == -ENOTCONN)
        ; /* nobody waits for it, or weft__subs_lost() says more */
    else if (r == -ETIMEDOUT || r == -ENOMEM || r == -ECANCELED)
        ask_again(sub, r, "");
    else if (r < 0)
        end_sub(sub, r, "", NULL);
    else if (answer->error)
        take_refusal(sub, answer->error);
    else
        take_subscribed(sub, answer->result);
    unref_sub(sub);
}

static int send_subscribe(weft_sub *sub) {
    char id[ID_SIZE];
    const weft_position *at = &sub->position;
    bool behind = asks_behind(sub);
    format_sub_id(sub, id);
    weft_val params = WEFT_OBJ({"subId", weft_str(id)}, {"name", weft_str(sub->name)},
                               {"params", *sub->params ? weft_raw(sub->params, strlen(sub->params)) : weft_none()},
                               {"lastSeq", behind ? weft_uint(at->seq) : weft_none()},
                               {"journal", behind && *at->journal ? weft_str(at->journal) : weft_none()});
    int r = weft_call_start(sub->client->peer, "tinyvex/subscribe", params,
                            &(weft_call_opts){.on_answer = on_sub_answer, .ctx = sub}, NULL);
    if (r < 0)
        return r;
    sub->refs++;
    sub->phase = ASKING;
    sub->asked_behind = behind;
    return 0;
}

static void ask_sub(weft_sub *sub) {
    weft__timer_stop(sub->client->loop, &sub->again);
    int r = send_subscribe(sub);
    if (r < 0)
        ask_again(sub, r, "");
    else if (sub->asked_behind && sub->was_lost)
        tell_sub(sub, WEFT_SUB_CATCHING_UP, "", 0, NULL);
}

static void on_again_due(weft_timer *timer) {
    weft_sub *sub = WEFT_CONTAINER(timer, weft_sub, again);
    sub->refs++;
    if (sub->phase == IDLE && sub->client->state == WEFT_PEER_CONNECTED)
        ask_sub(sub);
    unref_sub(sub);
}

/* ---- values ---- */

static void hand_over(weft_sub *sub, const weft_json *value, uint64_t seq) {
    weft_sub_value told = {.value = value, .seq = seq, .journal = sub->position.journal};
    sub->first = false;
    change_position(sub, seq);
    sub->opts.on_value(sub, &told, sub->opts.ctx);
    save_later(sub);
}

/* A piece or a value that it has already; seq -1: it has none, which is no value either. */
static bool is_double(const weft_sub *sub, int64_t seq) {
    return seq >= 0 && !sub->first && (uint64_t) seq <= sub->position.seq;
}

/* Where memory is short the value is asked for again; whatever else is wrong would be wrong again. */
static void reject_value(weft_sub *sub, int r) {
    if (r == -ENOMEM)
        ask_again(sub, r, "");
    else
        end_sub(sub, r, "", NULL);
}

static void take_data(weft_sub *sub, const weft_json *params) {
    int64_t seq = weft_get_int(params, "seq", -1);
    weft_json value = weft_get(params, "value"), journal = weft_get(params, "journal");
    if (is_double(sub, seq))
        return;
    int r = seq < 0 || !value.text ? -EBADMSG : set_journal(sub, &journal);
    if (r < 0) {
        reject_value(sub, r);
        return;
    }
    weft__chunks_drop(&sub->chunks, sub->alloc); /* superseded */
    hand_over(sub, &value, (uint64_t) seq);
}

static int join_value(weft_sub *sub, const weft_json *params, weft_doc **ret) {
    weft_json journal = weft_get(params, "journal");
    size_t max = sub->opts.max_value ? sub->opts.max_value : MAX_VALUE;
    int r = weft__chunks_add(&sub->chunks, params, max, sub->alloc);
    if (r > 0) {
        const weft_buf *text = &sub->chunks.text;
        r = weft_doc_parse(weft__buf_len(text) ? weft__buf_head(text) : "", weft__buf_len(text), sub->alloc, ret);
        if (r >= 0) {
            r = set_journal(sub, &journal);
            if (r < 0)
                *ret = weft_doc_free(*ret);
        }
        if (r >= 0)
            r = 1;
    }
    return r;
}

static void take_chunk(weft_sub *sub, const weft_json *params) {
    int64_t seq = weft_get_int(params, "seq", -1);
    weft_doc *doc = NULL;
    if (is_double(sub, seq))
        return;
    int r = join_value(sub, params, &doc);
    if (r == 0)
        return;
    weft__chunks_drop(&sub->chunks, sub->alloc);
    if (r < 0) {
        reject_value(sub, r);
        return;
    }
    hand_over(sub, weft_doc_root(doc), (uint64_t) seq);
    weft_doc_free(doc);
}

/* What they say about it while it goes on. */
static void take_notice(weft_sub *sub, const weft_json *params) {
    weft_error said = {.message = weft_get_str(params, "message", ""), .data = weft_get(params, "data")};
    tell_sub(sub, WEFT_SUB_NOTICE, weft_get_str(params, "code", ""), 0, &said);
}

static weft_sub *find_sub(const weft_client *client, const weft_json *params) {
    weft_json id = weft_get(params, "subId");
    char own[ID_SIZE + 2];
    for (weft_link *at = client->subs.next; at != &client->subs; at = at->next) {
        weft_sub *sub = WEFT_CONTAINER(at, weft_sub, link);
        int n = snprintf(own, sizeof own, "\"" ID_PREFIX "%" PRIu64 "\"", sub->number);
        if (id.len == (size_t) n && memcmp(id.text, own, id.len) == 0)
            return sub;
    }
    return NULL;
}

bool weft__subs_take(weft_client *client, const char *method, const weft_json *params) {
    static const char prefix[] = "tinyvex/";
    if (weft__list_empty(&client->subs) || strncmp(method, prefix, sizeof prefix - 1) != 0)
        return false;
    weft_sub *sub = find_sub(client, params);
    if (!sub)
        return false;
    method += sizeof prefix - 1;
    sub->refs++;
    if (sub->phase == FOLLOWING && strcmp(method, "data") == 0)
        take_data(sub, params);
    else if (sub->phase == FOLLOWING && strcmp(method, "transitionChunk") == 0)
        take_chunk(sub, params);
    else if (sub->phase == FOLLOWING && strcmp(method, "error") == 0)
        take_notice(sub, params);
    unref_sub(sub);
    return true;
}

/* ---- the connection ---- */

/* The next that has not been told in this round: any callback may free any of them. */
static weft_sub *next_in_round(const weft_client *client) {
    for (weft_link *at = client->subs.next; at != &client->subs; at = at->next) {
        weft_sub *sub = WEFT_CONTAINER(at, weft_sub, link);
        if (sub->round != client->sub_round) {
            sub->round = client->sub_round;
            return sub;
        }
    }
    return NULL;
}

void weft__subs_connected(weft_client *client) {
    uint64_t round = ++client->sub_round;
    weft_sub *sub;
    while (client->peer && client->sub_round == round && (sub = next_in_round(client))) {
        sub->refs++;
        if (sub->phase == IDLE)
            ask_sub(sub);
        unref_sub(sub);
    }
}

void weft__subs_lost(weft_client *client, int why, bool for_good) {
    uint64_t round = ++client->sub_round;
    weft_sub *sub;
    while (client->peer && client->sub_round == round && (sub = next_in_round(client))) {
        sub->refs++;
        weft__timer_stop(client->loop, &sub->again);
        if (sub->phase != ENDED && for_good)
            end_sub(sub, why, "", NULL);
        else if (sub->phase != ENDED)
            lose_sub(sub, why, "");
        unref_sub(sub);
    }
}

static void leave_client(weft_sub *sub) {
    if (!sub->client)
        return;
    weft__timer_stop(sub->client->loop, &sub->again);
    weft__timer_stop(sub->client->loop, &sub->save);
    weft__list_remove(&sub->link);
    weft_sub_save(sub);
    sub->client = NULL;
    sub->phase = ENDED;
}

void weft__subs_leave(weft_client *client) {
    while (!weft__list_empty(&client->subs))
        leave_client(WEFT_CONTAINER(client->subs.next, weft_sub, link));
}

/* ---- making and freeing ---- */

static int load_position(weft_sub *sub) {
    int r = weft__position_load(sub->file, sub->name, sub->params, sub->alloc, &sub->position);
    sub->damaged = r == -EBADMSG;
    sub->positioned = sub->positioned || r >= 0;
    return r == -ENOENT || r == -EBADMSG ? 0 : r;
}

/* "" when they are left out. */
static int copy_sub_params(weft_sub *sub, weft_val params) {
    size_t len;
    int r = weft_to_text(params, sub->alloc, &sub->params, &len);
    if (r < 0)
        return r;
    if (strcmp(sub->params, "null") == 0) {
        *sub->params = '\0'; /* as of calls */
        return 0;
    }
    if (sub->params[strspn(sub->params, " \t\r\n")] != '{')
        return -EINVAL;
    return len > WEFT_SUB_PARAMS ? -EMSGSIZE : 0;
}

static int copy_sub_texts(weft_sub *sub, const char *name, weft_val params, const weft_sub_opts *opts) {
    sub->name = weft__strndup(sub->alloc, name, strlen(name));
    if (!sub->name)
        return -ENOMEM;
    int r = copy_sub_params(sub, params);
    return r < 0 ? r : weft__copy_or_null(sub->alloc, opts->file, &sub->file);
}

static int prepare_sub(weft_sub *sub, const char *name, weft_val params, const weft_sub_opts *opts) {
    int r = copy_sub_texts(sub, name, params, opts);
    if (r < 0)
        return r;
    if (opts->journal) {
        if (strlen(opts->journal) > WEFT_SUB_JOURNAL)
            return -EMSGSIZE;
        memcpy(sub->position.journal, opts->journal, strlen(opts->journal) + 1);
        sub->position.seq = opts->last_seq;
        sub->positioned = true;
    }
    return sub->file ? load_position(sub) : 0;
}

int weft_subscribe(weft_peer *peer, const char *name, weft_val params, const weft_sub_opts *opts, weft_sub **ret) {
    weft_client *client = weft__client_of(peer);
    if (!client || !name || !*name || !opts || !opts->on_value)
        return -EINVAL;
    if (client->state == WEFT_PEER_CLOSED)
        return -ENOTCONN;
    if (strlen(name) > WEFT_SUB_NAME)
        return -EMSGSIZE;
    weft_sub *sub = weft__zalloc(client->loop->alloc, sizeof *sub);
    if (!sub)
        return -ENOMEM;
    sub->refs = 1;
    sub->alloc = client->loop->alloc;
    sub->opts = *opts;
    sub->round = client->sub_round;
    weft__list_init(&sub->link);
    weft__timer_init(&sub->again, on_again_due);
    weft__timer_init(&sub->save, on_save_due);
    int r = prepare_sub(sub, name, params, opts);
    if (r >= 0) {
        sub->number = ++client->sub_count;
        sub->client = client;
        r = client->state == WEFT_PEER_CONNECTED ? send_subscribe(sub) : 0;
    }
    if (r < 0) {
        unref_sub(sub);
        return r;
    }
    weft__list_push(&client->subs, &sub->link);
    *ret = sub;
    return 0;
}

weft_sub *weft_sub_free(weft_sub *sub) {
    if (!sub)
        return NULL;
    send_unsubscribe(sub);
    sub->freed = true;
    leave_client(sub);
    unref_sub(sub);
    return NULL;
}

void weft_sub_freep(weft_sub **sub) {
    *sub = weft_sub_free(*sub);
}

uint64_t weft_sub_seq(const weft_sub *sub) {
    return sub->position.seq;
}

const char *weft_sub_journal(const weft_sub *sub) {
    return sub->position.journal;
}

bool weft_sub_is_state(const weft_sub *sub) {
    return sub->state;
}

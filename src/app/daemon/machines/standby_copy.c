/* Following a hub: what is asked of it, and what becomes of the answers. The file is only ever changed in transactions that
 * leave it as the hub's journal was at one moment; a copy that has not come so far lies beside it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "failure.h"
#include "peek.h"
#include "standby_private.h"
#include "trust.h"

#define CALL_MS 20000
#define PACE_MS                                                                                                             \
    15 /* between questions, so that a hub's limit of requests is not reached: what came meanwhile comes together */
#define POLL_MS 2000                   /* between signs of life, when nothing happens */
#define AGAIN_MS 5000                  /* after something went wrong here: a disk that is full */
#define SAVE_MS 30000                  /* how old may what is stored of the hub's last sign of life be */
#define LAST_LOOK 256                  /* the last events of a journal that is here */
#define MOST_TEXT ((size_t) 192 << 20) /* of one answer: the largest event there is, quoted */

int64_t weft__standby_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void ask_next(weft_standby *self);
static void greet(weft_standby *self);

static void set_timer(weft_standby *self, int64_t ms) {
    weft__timer_set(self->loop, &self->timer, weft__loop_fresh_now(self->loop) + ms);
}

/* ---- the files ---- */

static void remove_copy(weft_standby *self) {
    static const char *const ends[] = {"", "-wal", "-shm", "-mark"};
    char path[PATH_MAX + 8];
    self->copy = weft__replica_close(self->copy);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(path, sizeof path, "%s%s", self->copy_path, ends[i]);
        unlink(path);
    }
}

/* What is there now is ours, as the record is to have it. */
static void put_on_record(weft_standby *self) {
    char why[WEFT_TRUST_WHY] = "";
    const char *epoch = self->journal ? weft__replica_state(self->journal)->epoch : NULL;
    if (weft__trust_open_end(self->opts.app->layout, self->opts.path, epoch, why) < 0)
        weft__warn(self->opts.app, "weft serve: %s", why);
}

static int open_journal_copy(weft_standby *self, char *why) {
    int r = weft__replica_open(NULL, self->opts.path, NULL, &self->journal, why);
    if (r >= 0)
        put_on_record(self);
    return r;
}

/* What is said of the hub's own process is nobody's loss: an old primary that was stopped has said so behind the last event
 * that others have. */
struct last_look {
    bool done;
    uint64_t last;
};

static void on_last_page(void *ctx, int r, const weft_page *page) {
    struct last_look *look = ctx;
    look->done = true;
    for (size_t i = 0; r == 0 && i < page->count; i++)
        if (strncmp(page->events[i].type, "hub.", 4) != 0)
            look->last = page->events[i].gseq;
}

/* The last event that would be missed; it waits for the store. */
static uint64_t last_that_counts(weft_store *store) {
    uint64_t head = weft__store_head(store);
    struct last_look look = {.last = head > LAST_LOOK ? head - LAST_LOOK : 0};
    weft_query query = {.after = look.last, .oldest = true, .max_events = LAST_LOOK};
    if (weft__store_read(store, &query, on_last_page, &look) < 0)
        return head;
    while (!look.done) {
        struct pollfd ready = {.fd = weft__store_fd(store), .events = POLLIN};
        poll(&ready, 1, -1);
        weft__store_dispatch(store);
    }
    return look.last;
}

/* The journal of a hub that ran here: an old primary, perhaps. */
static int know_own(weft_standby *self, char *why) {
    weft_store_opts opts = {.path = self->opts.path};
    weft_store *store;
    int r = weft__store_open(&weft__sqlite, &opts, &store, why);
    if (r < 0)
        return r;
    self->own.here = true;
    self->own.head = weft__store_head(store);
    self->own.counts = last_that_counts(store);
    memcpy(self->own.epoch, weft__store_epoch(store), sizeof self->own.epoch);
    weft__store_close(store);
    *why = '\0';
    return 0;
}

static int discard_own(weft_standby *self, char *why) {
    int r = weft__replica_discard(self->opts.path, why);
    if (r >= 0)
        weft__warn(self->opts.app, "weft serve: %s", why);
    self->own.here = r < 0;
    return r;
}

weft_exit weft__standby_open(weft_standby *self) {
    char why[WEFT_STORE_WHY] = "", expected[WEFT_EPOCH + 1], trouble[WEFT_TRUST_WHY] = "";
    const weft_layout *layout = self->opts.app->layout;
    snprintf(self->copy_path, sizeof self->copy_path, "%s-copy", self->opts.path);
    int r = weft__trust_open_begin(layout, self->opts.path, expected, trouble);
    if (r < 0)
        return weft__fail(self->opts.app, r == -EKEYREJECTED ? WEFT_UNAUTHORISED : WEFT_FAILED,
                          r == -EKEYREJECTED ? WEFT_TRUST_NEXT : WEFT_TRUST_PLACE, "%s", trouble);
    r = access(self->opts.path, F_OK) == 0 ? open_journal_copy(self, why) : 0;
    if (r == -EEXIST)
        r = know_own(self, why);
    if (r >= 0 && access(self->copy_path, F_OK) == 0 &&
        weft__replica_open(NULL, self->copy_path, NULL, &self->copy, why) < 0)
        remove_copy(self);
    if (r < 0)
        return weft__fail(self->opts.app, r == -EBUSY ? WEFT_BUSY : WEFT_FAILED,
                          r == -EUCLEAN ? "Remove it, and everything is copied again." : NULL, "%s: %s", self->opts.path,
                          *why ? why : weft_strerror(r));
    if (self->journal) {
        self->said_head = weft__replica_state(self->journal)->said_head;
        self->heard_ms = weft__replica_state(self->journal)->heard_ms;
    }
    return WEFT_DONE;
}

/* ---- when something is wrong ---- */

static void roll_back(weft_standby *self) {
    if (self->open)
        weft__replica_rollback(self->at);
    self->open = false;
    weft__buf_done(&self->text, NULL);
    self->size = 0;
}

static void tell_trouble(weft_standby *self, const char *text) {
    if (strcmp(self->trouble, text) != 0)
        weft__warn(self->opts.app, "weft serve: standby of %s: %s", self->target.shown, text);
    snprintf(self->trouble, sizeof self->trouble, "%s", text);
    self->settled = true;
}

void weft__standby_refuse(weft_standby *self, const char *why, const char *next) {
    weft__warn(self->opts.app, "weft serve: standby of %s: %s%s%s", self->target.shown, why, next ? ". " : "",
               next ? next : "");
    self->refused = self->settled = true;
    roll_back(self);
    weft_loop_stop(self->loop);
}

/* What the hub said does not go on from what is here. A copy that was begun is begun again; a whole one stays until another
 * one is. */
static void begin_anew(weft_standby *self, const char *why) {
    char text[200];
    roll_back(self);
    snprintf(text, sizeof text, "%.150s; all of it is copied again", why);
    if (self->at == self->copy)
        remove_copy(self);
    self->anew = true;
    self->at = NULL;
    tell_trouble(self, text);
    self->phase = WEFT_STANDBY_GREETING;
    set_timer(self, AGAIN_MS);
}

/* Whoever starts it is told at once that it cannot follow. Later that is no reason to end: while the hub is gone another
 * program may answer at its address, or a proxy in its place. */
static void turned_away(weft_standby *self, const char *why) {
    char line[256];
    if (!self->followed) {
        weft__standby_refuse(self, why, NULL);
        return;
    }
    snprintf(line, sizeof line, "%.200s; it is tried again", why);
    roll_back(self);
    tell_trouble(self, line);
    self->phase = WEFT_STANDBY_AWAY;
    self->redial = true;
    set_timer(self, AGAIN_MS);
}

static void fail_step(weft_standby *self, int r) {
    const char *why = self->at ? weft__replica_why(self->at) : "";
    if (r == -EPROTO || r == -EUCLEAN) {
        begin_anew(self, *why ? why : weft_strerror(r));
        return;
    }
    char text[200];
    snprintf(text, sizeof text, "%.100s; it is tried again", weft_strerror(r));
    roll_back(self);
    tell_trouble(self, text);
    self->phase = WEFT_STANDBY_GREETING;
    set_timer(self, AGAIN_MS);
}

/* ---- asking ---- */

typedef void take_answer(weft_standby *self, const weft_json *result);
static take_answer take_follow, take_page, take_changes;

static void on_followed(weft_peer *peer, int r, const weft_answer *answer, void *ctx);
static void on_answered(weft_peer *peer, int r, const weft_answer *answer, void *ctx);
static void on_piece(weft_peer *peer, int r, const weft_answer *answer, void *ctx);

static void ask(weft_standby *self, const char *method, weft_val params, weft_on_answer *on_answer) {
    weft_call_opts opts = {.on_answer = on_answer, .ctx = self, .timeout_ms = CALL_MS};
    self->asked = weft_call_start(self->peer, method, params, &opts, NULL) >= 0;
    if (!self->asked)
        set_timer(self, AGAIN_MS);
}

static void ask_piece(weft_standby *self) {
    ask(self, "journal.piece", WEFT_OBJ({"at", weft_uint(weft__buf_len(&self->text))}), on_piece);
}

static void ask_next(weft_standby *self) {
    self->asked_at = weft__loop_fresh_now(self->loop);
    if (self->size)
        ask_piece(self);
    else if (self->phase == WEFT_STANDBY_PAGES)
        ask(self, "journal.page",
            WEFT_OBJ({"part", weft_str(weft__copy_parts[self->part])}, {"after", weft_uint(self->after)}), on_answered);
    else
        ask(self, "journal.changes", WEFT_OBJ({"after", weft_uint(weft__replica_state(self->at)->change)}), on_answered);
}

static void ask_in_time(weft_standby *self) {
    int64_t due = self->asked_at + PACE_MS, now = weft__loop_fresh_now(self->loop);
    if (now >= due)
        ask_next(self);
    else
        weft__timer_set(self->loop, &self->timer, due);
}

static void greet(weft_standby *self) {
    weft_replica *known = self->anew ? NULL : self->journal;
    const weft_replica_state *state = known ? weft__replica_state(known) : NULL;
    self->phase = WEFT_STANDBY_GREETING;
    roll_back(self);
    if (state)
        ask(self, "journal.follow",
            WEFT_OBJ({"epoch", weft_str(state->epoch)}, {"log", weft_str(state->log)}, {"after", weft_uint(state->change)}),
            on_followed);
    else
        ask(self, "journal.follow", weft_none(), on_followed);
}

void weft__standby_on_timer(weft_timer *timer) {
    weft_standby *self = WEFT_CONTAINER(timer, weft_standby, timer);
    if (self->redial && !self->stopping) {
        weft__standby_hang_up(self);
        weft__standby_dial(self);
        return;
    }
    if (self->asked || self->stopping || self->phase == WEFT_STANDBY_AWAY)
        return;
    if (self->phase == WEFT_STANDBY_GREETING)
        greet(self);
    else
        ask_next(self);
}

/* 1 it is an answer to work on; 0 something was done about it. */
static int check_answer(weft_standby *self, int r, const weft_answer *answer) {
    self->asked = false;
    if (self->stopping || self->refused || self->phase == WEFT_STANDBY_AWAY)
        return 0;
    if (r == -ETIMEDOUT) { /* nobody is there any more, and the connection does not know */
        weft__standby_hang_up(self);
        weft__standby_dial(self);
        return 0;
    }
    if (r < 0)
        return 0; /* it is lost, and made again */
    self->heard_ms = weft__standby_now();
    if (!answer->error)
        return 1;
    const char *reason = weft_get_str(&answer->error->data, "reason", "");
    if (strcmp(reason, "rateLimited") == 0) { /* nothing is wrong: the same again, later */
        int64_t wait_ms = weft_get_int(&answer->error->data, "retryAfterMs", 1000);
        set_timer(self, wait_ms < PACE_MS ? PACE_MS : wait_ms < CALL_MS ? wait_ms : CALL_MS);
    } else if (strcmp(reason, "changesGone") == 0 || strcmp(reason, "notFollowing") == 0) {
        tell_trouble(self, "changes are missing; what is in the journal is compared");
        greet(self);
    } else if (strcmp(reason, "futureSeq") == 0)
        begin_anew(self, "the hub's journal has lost what is here");
    else {
        char text[200];
        snprintf(text, sizeof text, "%.190s", answer->error->message);
        roll_back(self);
        tell_trouble(self, text);
        self->phase = WEFT_STANDBY_GREETING;
        set_timer(self, AGAIN_MS);
    }
    return 0;
}

/* ---- journal.follow ---- */

/* Is everything that the hub here had also at the new one? Only now, when there surely is one, may it be moved aside. */
static bool settle_own(weft_standby *self, const weft_json *result) {
    char why[WEFT_STORE_WHY] = "", text[300];
    weft_json before = weft_get(result, "before");
    uint64_t had = (uint64_t) weft_get_int(&before, "head", 0);
    bool same = strcmp(weft_get_str(&before, "epoch", ""), self->own.epoch) == 0;
    if (!self->own.here)
        return true;
    if (self->opts.discard || (same && self->own.counts <= had)) {
        int r = discard_own(self, why);
        if (r < 0)
            weft__standby_refuse(self, why, NULL);
        return r >= 0;
    }
    unsigned long long more = self->own.head - (same ? had : 0);
    if (same)
        snprintf(text, sizeof text, "the journal here has %llu event%s that this hub does not have (after event %llu)", more,
                 more == 1 ? "" : "s", (unsigned long long) had);
    else
        snprintf(text, sizeof text, "there is a journal here with %llu event%s, which this hub does not know of", more,
                 more == 1 ? "" : "s");
    weft__standby_refuse(self, text, "--discard moves it aside");
    return false;
}

static bool goes_on(weft_replica *replica, const char *epoch, uint64_t head) {
    return replica && strcmp(weft__replica_state(replica)->epoch, epoch) == 0 && weft__replica_state(replica)->head <= head;
}

static int choose_file(weft_standby *self, const char *epoch, uint64_t head) {
    char why[WEFT_STORE_WHY] = "";
    if (!self->anew && goes_on(self->journal, epoch, head)) {
        self->at = self->journal;
        return 0;
    }
    if (self->journal && !self->anew)
        tell_trouble(self, "the hub has another journal than before; all of it is copied");
    self->anew = self->journal != NULL;
    if (!goes_on(self->copy, epoch, head)) {
        remove_copy(self);
        int r = weft__replica_open(NULL, self->copy_path, NULL, &self->copy, why);
        if (r < 0)
            return r;
    }
    self->at = self->copy;
    return 0;
}

static void take_follow(weft_standby *self, const weft_json *result) {
    const char *epoch = weft_get_str(result, "epoch", ""), *log = weft_get_str(result, "log", "");
    uint64_t head = (uint64_t) weft_get_int(result, "head", 0);
    if (strlen(epoch) != WEFT_EPOCH || strlen(log) != WEFT_EPOCH || head >= INT64_MAX) {
        begin_anew(self, "this is no hub whose journal can be copied");
        return;
    }
    if (!settle_own(self, result))
        return;
    self->followed = true;
    int r = choose_file(self, epoch, head);
    if (r < 0) {
        self->at = NULL;
        fail_step(self, r);
        return;
    }
    weft_replica_state *state = weft__replica_state(self->at);
    self->said_head = head;
    snprintf(self->log, sizeof self->log, "%s", log);
    self->log_last = (uint64_t) weft_get_int(result, "last", 0);
    if (self->at == self->journal && weft_get_bool(result, "resumed", false)) {
        self->phase = WEFT_STANDBY_CHANGES;
        ask_next(self);
        return;
    }
    r = weft__replica_begin(self->at);
    if (r < 0) {
        fail_step(self, r);
        return;
    }
    self->open = true;
    *state->log = '\0'; /* until it is whole */
    state->change = 0;
    snprintf(state->epoch, sizeof state->epoch, "%s", epoch);
    snprintf(state->source, sizeof state->source, "%s", self->target.shown);
    self->phase = WEFT_STANDBY_PAGES;
    self->part = WEFT_COPY_EVENTS;
    self->after = state->head;
    self->goal = 0;
    ask_next(self);
}

static void on_followed(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_standby *self = ctx;
    (void) peer;
    self->asked = false;
    if (r >= 0 && answer->error &&
        (answer->error->code == WEFT_METHOD_NOT_FOUND || answer->error->code == 401 || answer->error->code == 403)) {
        turned_away(self, answer->error->code == WEFT_METHOD_NOT_FOUND ? "this hub has no standbys"
                                                                       : "the token must have the scope \"standby\"");
        return;
    }
    if (check_answer(self, r, answer))
        take_follow(self, answer->result);
}

/* ---- journal.page ---- */

static void next_part(weft_standby *self) {
    weft_replica_state *state = weft__replica_state(self->at);
    self->after = 0;
    if (++self->part < WEFT_COPY_PARTS)
        return;
    memcpy(state->log, self->log, sizeof state->log);
    state->change = self->log_last;
    self->phase = WEFT_STANDBY_CHANGES;
}

/* A copy that is not whole may be stored as far as it is: its events are the beginning of the others. */
static int store_so_far(weft_standby *self) {
    int r = weft__replica_commit(self->at);
    self->open = false;
    if (r >= 0)
        r = weft__replica_begin(self->at);
    self->open = r >= 0;
    return r;
}

static void take_page(weft_standby *self, const weft_json *result) {
    uint64_t last = 0;
    bool more = false, events = self->part == WEFT_COPY_EVENTS;
    int r = weft__replica_take_page(self->at, (int) self->part, self->after, result, &last, &more);
    self->after = last;
    if (r >= 0 && events && self->at == self->copy)
        r = store_so_far(self);
    if (r < 0) {
        fail_step(self, r);
        return;
    }
    if (!more)
        next_part(self);
    ask_next(self);
}

/* ---- journal.changes ---- */

static int install_copy(weft_standby *self) {
    char why[WEFT_STORE_WHY] = "";
    weft_replica *copy = self->copy;
    self->journal = weft__replica_close(self->journal);
    self->copy = self->at = NULL;
    int r = weft__replica_install(copy, self->opts.path, why);
    if (r >= 0 || access(self->opts.path, F_OK) == 0) {
        int opened = open_journal_copy(self, why);
        r = r < 0 ? r : opened;
    }
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: %s: %s", self->opts.path, why);
    self->at = self->journal;
    return r;
}

/* It has what the hub had at one moment. */
static int store_whole(weft_standby *self) {
    weft_replica_state *state = weft__replica_state(self->at);
    bool copy = self->at == self->copy;
    state->whole = true;
    state->said_head = self->said_head;
    state->heard_ms = self->heard_ms;
    int r = weft__replica_commit(self->at);
    self->open = false;
    if (r >= 0 && copy)
        r = install_copy(self);
    if (r >= 0) {
        self->anew = false;
        self->saved_ms = self->heard_ms;
    }
    return r;
}

static void note_level(weft_standby *self, uint64_t current) {
    const weft_replica_state *state = weft__replica_state(self->at);
    if (state->change < current)
        return;
    self->level_ms = self->heard_ms;
    if (*self->trouble || !self->told)
        weft__remark(self->opts.app, "%s is copied up to event %llu, and followed", self->target.shown,
                     (unsigned long long) state->head);
    self->told = self->settled = true;
    *self->trouble = '\0';
}

static void take_changes(weft_standby *self, const weft_json *result) {
    weft_json changes = weft_get(result, "changes");
    uint64_t current = (uint64_t) weft_get_int(result, "current", 0);
    bool catching = self->open, any = weft_count(&changes) > 0;
    int r = 0;
    self->said_head = (uint64_t) weft_get_int(result, "head", 0);
    if (!catching && (any || self->heard_ms - self->saved_ms > SAVE_MS)) {
        r = weft__replica_begin(self->at);
        self->open = r >= 0;
    }
    if (r >= 0)
        r = weft__replica_take_changes(self->at, &changes);
    if (r >= 0 && catching && !self->goal)
        self->goal = current ? current : 1;
    bool whole = !catching || !current || weft__replica_state(self->at)->change >= self->goal;
    if (r >= 0 && self->open && whole)
        r = store_whole(self);
    if (r < 0) {
        fail_step(self, r);
        return;
    }
    uint64_t has = weft__replica_state(self->at)->change;
    if (has < current && !any) { /* it said that there is more, and gave none */
        begin_anew(self, "the hub gives no changes");
        return;
    }
    note_level(self, current);
    if (has < current)
        ask_in_time(self);
    else
        set_timer(self, POLL_MS);
}

/* ---- answers of any size ---- */

static void take_result(weft_standby *self, const weft_json *result) {
    if (self->phase == WEFT_STANDBY_PAGES)
        take_page(self, result);
    else if (self->phase == WEFT_STANDBY_CHANGES)
        take_changes(self, result);
}

static void take_whole_text(weft_standby *self) {
    WEFT_AUTO(weft_doc) doc = NULL;
    int r = weft_doc_parse(weft__buf_head(&self->text), weft__buf_len(&self->text), NULL, &doc);
    weft__buf_done(&self->text, NULL);
    self->size = 0;
    if (r < 0)
        fail_step(self, r == -ENOMEM ? r : -EPROTO);
    else
        take_result(self, weft_doc_root(doc));
}

static void on_piece(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_standby *self = ctx;
    weft_bytes piece = {0};
    (void) peer;
    if (!check_answer(self, r, answer))
        return;
    weft_json text = weft_get(answer->result, "text");
    if (weft_bytes_of(&text, &piece) < 0 || !piece.len || piece.len > self->size - weft__buf_len(&self->text)) {
        fail_step(self, -EPROTO);
        return;
    }
    r = weft__buf_put(&self->text, NULL, piece.data, piece.len);
    if (r < 0)
        fail_step(self, r);
    else if (weft__buf_len(&self->text) < self->size)
        ask_piece(self);
    else
        take_whole_text(self);
}

static void on_answered(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_standby *self = ctx;
    (void) peer;
    if (!check_answer(self, r, answer))
        return;
    int64_t size = weft_get_int(answer->result, "size", 0);
    if (!size) {
        take_result(self, answer->result);
        return;
    }
    if (size < 0 || (size_t) size > MOST_TEXT) {
        fail_step(self, -EPROTO);
        return;
    }
    weft__buf_done(&self->text, NULL);
    self->size = (size_t) size;
    ask_piece(self);
}

/* ---- connecting ---- */

static void on_shown(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_standby *self = ctx;
    (void) peer;
    if (r >= 0 && answer->error && answer->error->code != WEFT_METHOD_NOT_FOUND)
        turned_away(self, answer->error->message);
    else if (r >= 0)
        greet(self);
}

static void on_hub_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    weft_standby *self = data;
    const char *text = *weft_peer_trouble(peer) ? weft_peer_trouble(peer) : weft_strerror(why);
    char line[256];
    if (self->stopping || self->refused)
        return;
    if (state != WEFT_PEER_CONNECTED) {
        roll_back(self);
        self->phase = WEFT_STANDBY_AWAY;
        self->asked = false;
        weft__timer_stop(self->loop, &self->timer);
    }
    if (state == WEFT_PEER_CONNECTED && weft__target_shows_by_call(&self->target))
        weft__target_show(peer, &self->target, on_shown, self);
    else if (state == WEFT_PEER_CONNECTED)
        greet(self);
    else if (state == WEFT_PEER_CLOSED)
        turned_away(self, text);
    else if (state == WEFT_PEER_DISCONNECTED) {
        snprintf(line, sizeof line, "%.200s; it is tried again", text);
        tell_trouble(self, line);
    }
}

static void on_hub_says(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    weft_standby *self = data;
    (void) peer, (void) params;
    if (strcmp(method, "journal.changed") == 0 && self->phase == WEFT_STANDBY_CHANGES && !self->asked)
        ask_in_time(self);
}

void weft__standby_dial(weft_standby *self) {
    weft_trouble trouble = {""};
    weft_connect_opts opts = weft__target_opts(&self->dialling, &self->target, NULL);
    opts.reconnect = true;
    opts.data = self;
    opts.on_state = on_hub_state;
    opts.on_notification = on_hub_says;
    int r = weft_connect_on(self->loop, self->target.url, &opts, &self->peer, &trouble);
    self->redial = false;
    if (r < 0)
        turned_away(self, *trouble.text ? trouble.text : weft_strerror(r));
}

void weft__standby_hang_up(weft_standby *self) {
    roll_back(self);
    self->phase = WEFT_STANDBY_AWAY;
    self->peer = weft_peer_free(self->peer);
    self->asked = false;
    weft__timer_stop(self->loop, &self->timer);
}

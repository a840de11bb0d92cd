/* The way of a runner to its hub, see uplink.h. This file has the connection and the leases; uplink_deliver.c reads the
 * journal and delivers it, uplink_take.c answers what the hub asks.
 *
 *     reads the journal's marks ──▶ dials ──connected──▶ says hello ──accepted──▶ up ──lost──▶ dials */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "endpoint.h"
#include "failure.h"
#include "uplink_private.h"
#include "write.h"

#define LARGEST (32 << 20) /* message, to a hub that does not say */
#define SMALLEST 8192
#define REDIAL_MS 5000 /* after somebody at the hub's address has turned us away */
#define MOST_SAID 4096 /* leases that are spoken of in a hello: the newest, and as many as a hub reads */

/* ---- leases ---- */

weft_uplink_lease *weft__uplink_lease(weft_uplink *self, uint64_t number, const char *task) {
    for (weft_link *link = self->leases.next; link != &self->leases; link = link->next) {
        weft_uplink_lease *lease = WEFT_CONTAINER(link, weft_uplink_lease, link);
        if (lease->number == number && strcmp(lease->hub_task, task) == 0)
            return lease;
    }
    return NULL;
}

weft_uplink_lease *weft__uplink_lease_of(weft_uplink *self, const char *task) {
    for (weft_link *link = self->leases.next; task && link != &self->leases; link = link->next)
        if (strcmp(WEFT_CONTAINER(link, weft_uplink_lease, link)->task, task) == 0)
            return WEFT_CONTAINER(link, weft_uplink_lease, link);
    return NULL;
}

weft_uplink_lease *weft__uplink_lease_add(weft_uplink *self, uint64_t number, const char *hub_task, const weft_task *task) {
    weft_uplink_lease *made = weft__zalloc(NULL, sizeof *made);
    if (!made)
        return NULL;
    made->number = number;
    snprintf(made->hub_task, sizeof made->hub_task, "%s", hub_task);
    snprintf(made->task, sizeof made->task, "%s", task->id);
    snprintf(made->session, sizeof made->session, "%s", task->session);
    made->kept = task->gseq ? task->gseq - 1 : 0;
    weft__list_push(&self->leases, &made->link);
    return made;
}

static void forget_lease(weft_uplink_lease *lease) {
    weft__list_remove(&lease->link);
    weft__buf_done(&lease->open, NULL);
    weft__free(NULL, lease);
}

/* The hub waits for nothing of it any more; that is remembered, so that it is not spoken of after a restart. */
void weft__uplink_release(weft_uplink *self, weft_uplink_lease *lease) {
    const weft_task *task = weft__task_find(self->opts.engine, lease->task);
    if (task && task->state < WEFT_TASK_COMPLETED)
        weft__task_cancel(self->opts.engine, lease->task, self->shown, NULL, NULL);
    weft__engine_append(
        self->opts.engine, WEFT_STREAM_UPLINK, "lease.released",
        WEFT_OBJ({"hub", weft_str(self->epoch)}, {"lease", weft_uint(lease->number)}, {"taskId", weft_str(lease->task)}),
        NULL, NULL);
    forget_lease(lease);
}

/* Somebody else may have it by now: what runs of it ends. */
void weft__uplink_lease_over(weft_uplink *self, weft_uplink_lease *lease) {
    const weft_task *task = weft__task_find(self->opts.engine, lease->task);
    if (lease->over)
        return;
    lease->over = true;
    weft__warn(self->opts.app, "weft runner: %s: the hub did not wait for it any longer", lease->hub_task);
    if (task && task->state < WEFT_TASK_COMPLETED)
        weft__task_cancel(self->opts.engine, lease->task, self->shown, NULL, NULL);
}

bool weft__uplink_lease_told(const weft_uplink_lease *lease) {
    return lease->ended && (lease->heard >= lease->ended || lease->kept >= lease->ended);
}

/* ---- hello ---- */

static int put_value(weft_buf *out, const char *before, weft_val value) {
    int r = weft__buf_put(out, NULL, before, strlen(before));
    return r < 0 ? r : weft__write_val(out, NULL, &value);
}

static int put_questions(weft_buf *out, const weft_uplink *self, const weft_uplink_lease *lease) {
    size_t n = 0;
    int r = weft__buf_put(out, NULL, "[", 1);
    for (const weft_question *q = weft__question_first(self->opts.engine, false); q && r >= 0;
         q = weft__question_next(self->opts.engine, q, false)) {
        if (!q->task || strcmp(q->task, lease->task) != 0)
            continue;
        r = put_value(out, n++ ? "," : "",
                      WEFT_OBJ({"questionId", weft_str(q->id)}, {"kind", weft_str(q->kind)}, {"title", weft_str(q->title)},
                               {"options", weft_raw(q->options, strlen(q->options))},
                               {"detail", weft_raw(q->detail, strlen(q->detail))}));
    }
    return r < 0 ? r : weft__buf_put(out, NULL, "]", 1);
}

static int put_leases(weft_buf *out, const weft_uplink *self) {
    size_t n = 0;
    int r = weft__buf_put(out, NULL, "[", 1);
    for (weft_link *link = self->leases.prev; r >= 0 && n < MOST_SAID && link != &self->leases; link = link->prev) {
        const weft_uplink_lease *lease = WEFT_CONTAINER(link, weft_uplink_lease, link);
        weft_buf questions = {0};
        r = put_questions(&questions, self, lease);
        if (r >= 0)
            r = put_value(out, n++ ? "," : "",
                          WEFT_OBJ({"lease", weft_uint(lease->number)}, {"taskId", weft_str(lease->hub_task)},
                                   {"questions", weft_raw(weft__buf_head(&questions), weft__buf_len(&questions))}));
        weft__buf_done(&questions, NULL);
    }
    return r < 0 ? r : weft__buf_put(out, NULL, "]", 1);
}

static weft_val texts_val(const weft_texts *texts, weft_val room[WEFT_MAX_TEXTS]) {
    for (size_t i = 0; i < texts->count; i++)
        room[i] = weft_str(texts->items[i]);
    return weft_arr(room, texts->count);
}

int weft__uplink_about(const weft_uplink *self, char **ret, size_t *ret_len) {
    weft_val agents[WEFT_MAX_TEXTS], folders[WEFT_MAX_TEXTS];
    uint64_t head = weft__store_head(weft__engine_store(self->opts.engine)), least = head;
    size_t leases = 0;
    for (weft_link *link = self->leases.next; link != &self->leases; link = link->next, leases++) {
        const weft_uplink_lease *lease = WEFT_CONTAINER(link, weft_uplink_lease, link);
        least = lease->kept < least ? lease->kept : least;
    }
    return weft_to_text(
        WEFT_OBJ({"hub", weft_str(self->shown)}, {"name", *self->called ? weft_str(self->called) : weft_none()},
                 {"connected", weft_bool(self->up)}, {"why", !self->up && *self->why ? weft_str(self->why) : weft_none()},
                 {"agents", texts_val(&self->opts.agents, agents)}, {"folders", texts_val(&self->opts.folders, folders)},
                 {"slots", weft_uint(self->opts.slots)}, {"leases", weft_uint(leases)}, {"behind", weft_uint(head - least)}),
        NULL, ret, ret_len);
}

/* Another journal than the leases came from knows nothing of them. */
static void take_epoch(weft_uplink *self, const char *epoch) {
    if (strcmp(self->epoch, epoch) == 0)
        return;
    while (!weft__list_empty(&self->leases))
        weft__uplink_release(self, WEFT_CONTAINER(self->leases.next, weft_uplink_lease, link));
    snprintf(self->epoch, sizeof self->epoch, "%s", epoch);
}

static void take_states(weft_uplink *self, const weft_json *states) {
    for (weft_iter it = weft_iterate(states); weft_next(&it);) {
        const char *state = weft_get_str(&it.value, "state", "");
        weft_uplink_lease *lease =
            weft__uplink_lease(self, (uint64_t) weft_get_int(&it.value, "lease", 0), weft_get_str(&it.value, "taskId", ""));
        if (!lease)
            continue;
        uint64_t at = (uint64_t) weft_get_int(&it.value, "at", 0);
        if (strcmp(state, "held") == 0)
            lease->kept = at ? at : lease->kept;
        else if (strcmp(state, "over") == 0)
            weft__uplink_lease_over(self, lease);
        else
            weft__uplink_release(self, lease);
    }
}

static void say_trouble(weft_uplink *self, const char *why) {
    size_t said = strlen(self->shown); /* it may begin with the URL */
    bool twice = strncmp(why, self->shown, said) == 0 && strncmp(why + said, ": ", 2) == 0;
    if (strcmp(self->told, why) != 0)
        weft__warn(self->opts.app, "weft runner: %s: %s. Tasks go on; trying again", self->shown,
                   twice ? why + said + 2 : why);
    snprintf(self->told, sizeof self->told, "%s", why);
}

/* Whoever starts it is told at once that the hub does not take it. Later that is no reason to end what runs here: while the
 * hub is gone another program may answer at its address, or a proxy in its place. */
static void turned_away(weft_uplink *self, const char *why) {
    if (!self->greeted) {
        weft__warn(self->opts.app, "weft runner: %s: %s", self->shown, why);
        self->refused = true;
        self->opts.on_refused(self->opts.ctx);
        return;
    }
    say_trouble(self, why);
    snprintf(self->why, sizeof self->why, "%s", why);
    self->redial = true;
    weft__timer_set(self->opts.loop, &self->again, weft__loop_fresh_now(self->opts.loop) + REDIAL_MS);
}

static void say_hello_later(weft_uplink *self, const char *why) {
    weft__warn(self->opts.app, "weft runner: %s: %s", self->shown, why);
    snprintf(self->why, sizeof self->why, "%s", why);
    weft__timer_set(self->opts.loop, &self->again, weft__loop_fresh_now(self->opts.loop) + 2000);
}

/* It goes into our journal with each lease. */
static bool is_epoch(const char *text) {
    return strlen(text) == WEFT_EPOCH && strspn(text, "0123456789abcdef") == WEFT_EPOCH;
}

static void on_hello(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_uplink *self = ctx;
    (void) peer;
    if (r < 0)
        return; /* it is lost, and tried again */
    if (answer->error) {
        int code = answer->error->code;
        const char *reason = weft_get_str(&answer->error->data, "reason", "");
        if (code == 503 || code == 507 || strcmp(reason, "runnerConnected") == 0)
            say_hello_later(self, answer->error->message);
        else
            turned_away(self, code == WEFT_METHOD_NOT_FOUND ? "this hub takes no runners"
                              : code == 403 || code == 401  ? "the token must have the scope \"runner\""
                                                            : answer->error->message);
        return;
    }
    weft_json states = weft_get(answer->result, "leases");
    const char *epoch = weft_get_str(answer->result, "epoch", "");
    if (!is_epoch(epoch)) {
        say_hello_later(self, "its answer to runner.hello cannot be understood");
        return;
    }
    take_epoch(self, epoch);
    take_states(self, &states);
    int64_t largest = weft_get_int(answer->result, "maxBytes", 0);
    self->largest = largest <= 0 || largest > LARGEST ? LARGEST : largest < SMALLEST ? SMALLEST : (size_t) largest;
    self->up = self->greeted = true;
    *self->why = *self->told = '\0';
    snprintf(self->called, sizeof self->called, "%s", weft_get_str(answer->result, "runner", ""));
    weft__warn(self->opts.app, "weft runner: %s runs tasks of %s", weft_get_str(answer->result, "runner", ""), self->shown);
    weft__uplink_rewind(self);
}

static void say_hello(weft_uplink *self) {
    weft_val agents[WEFT_MAX_TEXTS], labels[WEFT_MAX_TEXTS], folders[WEFT_MAX_TEXTS], any[] = {weft_str("*")};
    weft_buf leases = {0};
    int r = put_leases(&leases, self);
    weft_val params =
        WEFT_OBJ({"name", weft_str_or_none(self->opts.name)}, {"host", weft_str(self->host)},
                 {"instance", weft_str(weft__store_epoch(weft__engine_store(self->opts.engine)))},
                 {"agents", texts_val(&self->opts.agents, agents)}, {"labels", texts_val(&self->opts.labels, labels)},
                 {"folders", self->opts.folders.count ? texts_val(&self->opts.folders, folders) : weft_arr(any, 1)},
                 {"slots", weft_uint(self->opts.slots)}, {"epoch", weft_str(self->epoch)},
                 {"leases", weft_raw(weft__buf_head(&leases), weft__buf_len(&leases))});
    if (r >= 0)
        r = weft_call_start(self->peer, "runner.hello", params, &(weft_call_opts){.on_answer = on_hello, .ctx = self}, NULL);
    if (r < 0)
        weft__warn(self->opts.app, "weft runner: %s: %s", self->shown, weft_strerror(r));
    weft__buf_done(&leases, NULL);
}

static int dial(weft_uplink *self);

static void on_again(weft_timer *timer) {
    weft_uplink *self = WEFT_CONTAINER(timer, weft_uplink, again);
    if (self->redial)
        dial(self);
    else if (self->connected && !self->up)
        say_hello(self);
    else if (self->up)
        weft__uplink_rewind(self);
}

/* ---- connecting ---- */

static void on_shown(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    weft_uplink *self = ctx;
    (void) peer;
    if (r >= 0 && answer->error && answer->error->code != WEFT_METHOD_NOT_FOUND)
        turned_away(self, answer->error->message);
    else if (r >= 0)
        say_hello(self);
}

static void on_uplink_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    weft_uplink *self = data;
    self->connected = state == WEFT_PEER_CONNECTED;
    if (!self->connected) {
        const char *trouble = *weft_peer_trouble(peer) ? weft_peer_trouble(peer) : why ? weft_strerror(why) : "";
        if (*trouble)
            snprintf(self->why, sizeof self->why, "%s", trouble);
        self->up = false;
        self->in_flight = 0;
        weft__timer_stop(self->opts.loop, &self->again);
    }
    if (state == WEFT_PEER_CONNECTED && weft__target_shows_by_call(&self->target))
        weft__target_show(peer, &self->target, on_shown, self);
    else if (state == WEFT_PEER_CONNECTED)
        say_hello(self);
    else if (state == WEFT_PEER_CLOSED && !self->refused)
        turned_away(self, *weft_peer_trouble(peer) ? weft_peer_trouble(peer) : weft_strerror(why));
    else if (state == WEFT_PEER_DISCONNECTED)
        say_trouble(self, *weft_peer_trouble(peer) ? weft_peer_trouble(peer) : weft_strerror(why));
}

static int dial(weft_uplink *self) {
    weft_trouble trouble = {""};
    self->redial = self->connected = self->up = false;
    self->peer = weft_peer_free(self->peer);
    weft_connect_opts opts = weft__target_opts(self->opts.app, &self->target, self->service);
    opts.reconnect = true;
    opts.data = self;
    opts.on_state = on_uplink_state;
    int r = weft_connect_on(self->opts.loop, self->target.url, &opts, &self->peer, &trouble);
    if (r < 0)
        turned_away(self, *trouble.text ? trouble.text : weft_strerror(r));
    return r;
}

/* ---- what an earlier run left ---- */

bool weft__uplink_read_lease(const weft_task *task, uint64_t *ret_number, char hub[WEFT_EPOCH + 1],
                             char hub_task[WEFT_UPLINK_ID]) {
    WEFT_AUTO(weft_doc) doc = NULL;
    if (!task->metadata || !strstr(task->metadata, WEFT_LEASE_MEMBER) ||
        weft_doc_parse(task->metadata, strlen(task->metadata), NULL, &doc) < 0)
        return false;
    weft_json lease = weft_get(weft_doc_root(doc), WEFT_LEASE_MEMBER);
    *ret_number = (uint64_t) weft_get_int(&lease, "number", 0);
    snprintf(hub, WEFT_EPOCH + 1, "%s", weft_get_str(&lease, "hub", ""));
    snprintf(hub_task, WEFT_UPLINK_ID, "%s", weft_get_str(&lease, "task", ""));
    return *ret_number != 0;
}

void weft__uplink_key(const weft_uplink *self, uint64_t lease, char ret[WEFT_UPLINK_KEY]) {
    snprintf(ret, WEFT_UPLINK_KEY, "lease/%s/%llu", self->epoch, (unsigned long long) lease);
}

/* The newest says which hub it is about; older hubs are forgotten. Most of them were released: an old one that was not may
 * lie behind any number of those. */
static void find_leases(weft_uplink *self) {
    char hub[WEFT_EPOCH + 1], hub_task[WEFT_UPLINK_ID];
    uint64_t number;
    for (const weft_task *task = weft__task_newest(self->opts.engine); task;
         task = weft__task_older(self->opts.engine, task)) {
        if (!weft__uplink_read_lease(task, &number, hub, hub_task))
            continue;
        if (!*self->epoch)
            snprintf(self->epoch, sizeof self->epoch, "%s", hub);
        if (strcmp(self->epoch, hub) != 0)
            continue;
        weft_uplink_lease *lease = weft__uplink_lease_add(self, number, hub_task, task);
        if (!lease)
            continue;
        weft__list_remove(&lease->link); /* the oldest comes first, as those that are added later */
        weft__list_push(self->leases.next, &lease->link);
    }
}

static void forget_released(weft_uplink *self, const weft_page *page) {
    for (size_t i = 0; i < page->count; i++) {
        WEFT_AUTO(weft_doc) doc = NULL;
        if (weft_doc_parse(page->events[i].data.data, page->events[i].data.len, NULL, &doc) < 0)
            continue;
        const weft_json *data = weft_doc_root(doc);
        weft_uplink_lease *lease = weft__uplink_lease_of(self, weft_get_str(data, "taskId", NULL));
        if (!lease || (uint64_t) weft_get_int(data, "lease", 0) != lease->number)
            continue;
        forget_lease(lease);
    }
}

static int read_marks(weft_uplink *self, uint64_t after);

static void on_marks(void *ctx, int r, const weft_page *page) {
    struct uplink_read *read = ctx;
    weft_uplink *self = read->uplink;
    weft__free(NULL, read);
    if (!self)
        return;
    self->read = NULL;
    if (r == 0)
        forget_released(self, page);
    if (r == 0 && page->more && read_marks(self, page->last) >= 0)
        return;
    dial(self);
}

static int read_marks(weft_uplink *self, uint64_t after) {
    struct uplink_read *read = weft__zalloc(NULL, sizeof *read);
    if (!read)
        return -ENOMEM;
    read->uplink = self;
    weft_query query = {.stream = WEFT_STREAM_UPLINK, .after = after, .oldest = true};
    int r = weft__store_read(weft__engine_store(self->opts.engine), &query, on_marks, read);
    if (r < 0)
        weft__free(NULL, read);
    else
        self->read = read;
    return r;
}

static void begin_uplink(weft_uplink *self) {
    find_leases(self);
    if (read_marks(self, 0) < 0)
        dial(self);
}

static void on_uplink_past(weft_past_waiter *waiter, int r) {
    weft_uplink *self = WEFT_CONTAINER(waiter, weft_uplink, past);
    (void) r;
    begin_uplink(self);
}

/* ---- life ---- */

static weft_exit choose_agents(weft_uplink *self) {
    const weft_agents *agents = weft__engine_agents(self->opts.engine);
    const weft_agent *usual = weft__agent_default(self->opts.engine);
    for (size_t i = 0; i < self->opts.agents.count; i++)
        if (!weft__agent_find(agents, self->opts.agents.items[i]))
            return weft__fail(self->opts.app, WEFT_USAGE, "\"weft agents\" shows those that are configured here.",
                              "there is no agent %s", self->opts.agents.items[i]);
    if (!self->opts.agents.count && usual)
        self->opts.agents = (weft_texts){.items = {usual->name}, .count = 1};
    return self->opts.agents.count ? WEFT_DONE
                                   : weft__fail(self->opts.app, WEFT_USAGE, NULL, "no agent is configured: --agent NAME");
}

weft_exit weft__uplink_new(const weft_uplink_opts *opts, weft_uplink **ret) {
    weft_uplink *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return weft__fail(opts->app, WEFT_FAILED, NULL, "out of memory");
    self->opts = *opts;
    weft__list_init(&self->leases);
    weft__list_init(&self->starts);
    weft__list_init(&self->past.link);
    weft__timer_init(&self->again, on_again);
    weft__uplink_deliver_init(self);
    if (gethostname(self->host, sizeof self->host - 1) < 0)
        snprintf(self->host, sizeof self->host, "runner");
    self->host[strcspn(self->host, ".@ ")] = '\0';
    weft_exit status = choose_agents(self);
    if (status == WEFT_DONE)
        status = weft__target_of(opts->app, opts->url, &self->target);
    if (status == WEFT_DONE && weft__uplink_service(self) < 0)
        status = weft__fail(opts->app, WEFT_FAILED, NULL, "out of memory");
    if (status) {
        weft__uplink_free(self);
        return status;
    }
    self->shown = self->target.shown;
    *ret = self;
    if (weft__engine_past(opts->engine) == -EAGAIN) {
        self->past.on_past = on_uplink_past;
        weft__engine_await_past(opts->engine, &self->past);
    } else
        begin_uplink(self);
    return WEFT_DONE;
}

weft_uplink *weft__uplink_free(weft_uplink *self) {
    if (!self)
        return NULL;
    self->refused = true;
    self->up = self->connected = false;
    self->peer = weft_peer_free(self->peer);
    weft__uplink_deliver_done(self);
    weft__timer_stop(self->opts.loop, &self->again);
    weft__list_remove(&self->past.link);
    if (self->read)
        self->read->uplink = NULL;
    while (!weft__list_empty(&self->starts)) {
        struct uplink_start *start = WEFT_CONTAINER(self->starts.next, struct uplink_start, link);
        weft__list_remove(&start->link);
        start->uplink = NULL;
    }
    while (!weft__list_empty(&self->leases))
        forget_lease(WEFT_CONTAINER(self->leases.next, weft_uplink_lease, link));
    weft_service_unref(self->service);
    weft__target_done(&self->target);
    return weft__free(NULL, self);
}

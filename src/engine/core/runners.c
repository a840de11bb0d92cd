/* Who of the other machines runs what, see runners.h: joining and leaving, choosing one, and what becomes of leases. */
#include "runners.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent_pool_private.h"
#include "driver_runner.h"
#include "engine_private.h"
#include "run.h"
#include "texts.h"
#include "write.h"

/* What the hub has of an agent between two turns is little. */
#define LENT_IDLE_MS 300000
/* Leases that are over and whose runner may still say something: as many as are remembered of one runner. */
#define MOST_OVER 256
#define INSTANCE 64

/* An agent that it offers, or offered. It stays, because what ran on it may be asked for. */
typedef struct runner_agent {
    bool offered;
    weft_agent agent;
    char name[2 * WEFT_RUNNER_NAME + 2]; /* "agent@runner" */
} runner_agent;

typedef struct over_lease {
    uint64_t lease, late_at;
    char task[ENGINE_ID];
} over_lease;

struct weft_runner {
    weft_link link;
    weft_engine *engine;
    weft_runner_link wire;
    bool connected, here;
    weft_link checks;  /* whether something late is its own */
    weft_link keeping; /* of something late, until it is stored */
    bool news;         /* what it offers is not in the journal yet */
    size_t slots, agent_count, late;
    int64_t since_ms;
    weft_timer lease; /* it is away: then its leases are over */
    over_lease over[MOST_OVER];
    size_t over_next;
    char name[WEFT_RUNNER_NAME + 1], instance[INSTANCE + 1];
    runner_agent agents[WEFT_RUNNER_LIST * 2];
    const char *shown[WEFT_RUNNER_LIST + 1]; /* of agents, those that it offers now */
    char label_text[WEFT_RUNNER_LIST][WEFT_RUNNER_NAME + 1], folder_text[WEFT_RUNNER_LIST][WEFT_RUNNER_NAME + 1],
        agent_text[WEFT_RUNNER_LIST][WEFT_RUNNER_NAME + 1];
    const char *labels[WEFT_RUNNER_LIST + 1], *folders[WEFT_RUNNER_LIST + 1];
};

const char *const weft__lease_states[] = {"held", "done", "over", "gone"};

static weft_runner *runner_at(const weft_link *link) {
    return WEFT_CONTAINER(link, weft_runner, link);
}

static weft_runner *find_runner(const weft_engine *engine, const char *name, size_t len) {
    for (weft_link *link = engine->runners.next; link != &engine->runners; link = link->next)
        if (strlen(runner_at(link)->name) == len && memcmp(runner_at(link)->name, name, len) == 0)
            return runner_at(link);
    return NULL;
}

/* ---- its agents ---- */

static runner_agent *find_offer(weft_runner *runner, const char *name, size_t len) {
    for (size_t i = 0; i < runner->agent_count; i++) {
        runner_agent *each = &runner->agents[i];
        if (strncmp(each->name, name, len) == 0 && each->name[len] == '@')
            return each;
    }
    return NULL;
}

const weft_agent *weft__runner_agent(const weft_engine *engine, const char *name) {
    const char *at = strrchr(name, '@');
    weft_runner *runner = at ? find_runner(engine, at + 1, strlen(at + 1)) : NULL;
    const runner_agent *offer = runner ? find_offer(runner, name, (size_t) (at - name)) : NULL;
    return offer ? &offer->agent : NULL;
}

static runner_agent *add_offer(weft_runner *runner, const char *name, size_t len) {
    runner_agent *made = find_offer(runner, name, len);
    if (!made && runner->agent_count == sizeof runner->agents / sizeof runner->agents[0])
        return NULL;
    if (!made) {
        made = &runner->agents[runner->agent_count++];
        snprintf(made->name, sizeof made->name, "%.*s@%s", (int) len, name, runner->name);
    }
    made->agent = (weft_agent){
        .name = made->name,
        .driver = "runner",
        .max_running = runner->slots,
        .max_turns = runner->slots,
        .idle_ms = LENT_IDLE_MS,
        .about = "on another machine",
        .runner = &runner->wire,
    };
    return made;
}

static const weft_runner *runner_of(const weft_agent *agent) {
    return WEFT_CONTAINER(agent->runner, const weft_runner, wire);
}

/* ---- choosing ---- */

static size_t slots_of(const weft_runner *runner) {
    size_t n = 0, len = strlen(runner->name);
    for (weft_link *link = runner->engine->slots.next; link != &runner->engine->slots; link = link->next) {
        const known_task *task = WEFT_CONTAINER(link, known_task, slot);
        const char *at = weft__task_is_lent(task) ? strrchr(task->pub.runs_on, '@') : NULL;
        n += at && strlen(at + 1) == len && memcmp(at + 1, runner->name, len) == 0;
    }
    return n;
}

bool weft__runner_has_slot(const weft_engine *engine, const weft_agent *agent) {
    const weft_runner *runner = runner_of(agent);
    (void) engine;
    return runner->connected && runner->here && slots_of(runner) < runner->slots;
}

static bool list_has(const char *const *list, const char *name) {
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* NULL: it does not offer that one. */
static const weft_agent *agent_of(weft_runner *runner, const char *agent) {
    const char *name = agent ? agent : runner->shown[0];
    const runner_agent *offer = name ? find_offer(runner, name, strlen(name)) : NULL;
    return offer && offer->offered ? &offer->agent : NULL;
}

const weft_agent *weft__runner_pick(const weft_engine *engine, const char *name, const char *label, const char *agent,
                                    const char *avoid, bool any) {
    const weft_agent *best = NULL;
    double best_share = 0;
    for (weft_link *link = engine->runners.next; link != &engine->runners; link = link->next) {
        weft_runner *runner = runner_at(link);
        const weft_agent *here = agent_of(runner, agent);
        if (!here || !runner->here || (name && strcmp(name, runner->name) != 0) ||
            (label && !list_has(runner->labels, label)))
            continue;
        bool has_slot = weft__runner_has_slot(engine, here);
        double share = (double) slots_of(runner) / (double) runner->slots + (has_slot ? 0 : 4) +
                       (avoid && strcmp(avoid, here->name) == 0 ? 2 : 0);
        if ((any || has_slot) && (!best || share < best_share)) {
            best = here;
            best_share = share;
        }
    }
    return best;
}

/* ---- leases ---- */

static over_lease *find_over(weft_runner *runner, uint64_t lease, const char *task) {
    for (size_t i = 0; i < MOST_OVER; i++)
        if (runner->over[i].lease == lease && strcmp(runner->over[i].task, task) == 0)
            return &runner->over[i];
    return NULL;
}

static over_lease *add_over(weft_runner *runner, uint64_t lease, const char *task) {
    over_lease *at = find_over(runner, lease, task);
    if (at)
        return at;
    at = &runner->over[runner->over_next++ % MOST_OVER];
    *at = (over_lease){.lease = lease};
    snprintf(at->task, sizeof at->task, "%s", task);
    return at;
}

static void on_lease_due(weft_timer *timer) {
    weft_runner *runner = WEFT_CONTAINER(timer, weft_runner, lease);
    weft__runner_link_over(&runner->wire, runner->engine->limits.lease_ms);
}

static void begin_lease_time(weft_runner *runner) {
    weft_engine *engine = runner->engine;
    weft__timer_set(engine->loop, &runner->lease, weft__add_ms(weft__loop_fresh_now(engine->loop), engine->limits.lease_ms));
}

/* Did its runner say that it ended so? */
static bool ended_by_itself(const weft_event *event, const weft_json *data) {
    static const char *const ours[] = {"leaseOver",   "timedOut",   "costLimit", "daemonStopped",
                                       "outOfMemory", "runnerLost", "refused",   "notOnRunner"};
    const char *reason = weft_get_str(data, "reason", "");
    if (strcmp(event->type, "task.cancelled") == 0)
        return false;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (strcmp(reason, ours[i]) == 0)
            return false;
    return true;
}

void weft__runner_task_over(weft_engine *engine, const known_task *task, const weft_event *event, const weft_json *data) {
    const char *at = task && weft__task_is_lent(task) && task->lease ? strrchr(task->pub.runs_on, '@') : NULL;
    weft_runner *runner = at ? find_runner(engine, at + 1, strlen(at + 1)) : NULL;
    if (!runner)
        return;
    bool done = ended_by_itself(event, data);
    if (!done)
        add_over(runner, task->lease, task->pub.id);
    weft__runner_link_release(&runner->wire, task->lease, task->pub.id, !done);
}

/* Of a task that has ended, or is queued again. */
static bool is_done(const known_task *task) {
    const weft_task *pub = &task->pub;
    weft_event event = {.type = pub->state == WEFT_TASK_CANCELLED ? "task.cancelled" : "task.failed"};
    if (pub->state == WEFT_TASK_COMPLETED)
        return true;
    if (pub->state < WEFT_TASK_COMPLETED || !pub->reason || event.type[5] == 'c')
        return false;
    return strcmp(pub->reason, "leaseOver") != 0 && strcmp(pub->reason, "timedOut") != 0 &&
           strcmp(pub->reason, "runnerLost") != 0;
}

/* The number of an attempt before the last one: which are remembered only of this run, so the journal is asked. */
static bool may_be_earlier(const known_task *task, uint64_t lease) {
    return task->stored && weft__task_is_lent(task) && lease > task->pub.gseq && lease < task->lease;
}

/* Nothing more is kept of what a session that is deleted has done. */
static bool may_be_kept(const weft_engine *engine, const char *id) {
    const known_task *task = weft__task_known(engine, id);
    return task && weft__session_stays(engine, task->pub.session);
}

weft_lease_state weft__runner_lease(const weft_runner *runner, uint64_t lease, const char *id, uint64_t *ret_at) {
    *ret_at = 0;
    if (weft__runner_link_holds(&runner->wire, lease, id, ret_at))
        return WEFT_LEASE_HELD;
    if (!may_be_kept(runner->engine, id))
        return WEFT_LEASE_GONE;
    const known_task *task = weft__task_known(runner->engine, id);
    if (find_over((weft_runner *) runner, lease, id))
        return WEFT_LEASE_OVER;
    const char *at = task->stored && weft__task_is_lent(task) ? strrchr(task->pub.runs_on, '@') : NULL;
    if (may_be_earlier(task, lease))
        return WEFT_LEASE_OVER;
    if (!at || strcmp(at + 1, runner->name) != 0 || task->lease != lease)
        return WEFT_LEASE_GONE;
    *ret_at = task->lease_at;
    if (task->pub.state == WEFT_TASK_RUNNING) /* it is about to be taken up */
        return WEFT_LEASE_HELD;
    return is_done(task) ? WEFT_LEASE_DONE : WEFT_LEASE_OVER;
}

#define MOST_LATE 256 /* events of one append, which is as many as one message has */

/* Something late is being stored. Outlives the runner. */
typedef struct late_keep {
    weft_link link;
    weft_runner *runner; /* NULL: it is gone */
    const weft_alloc *alloc;
    uint64_t lease, before;
    char task[ENGINE_ID];
    size_t count;
    void (*done)(void *ctx, int r);
    void *ctx;
} late_keep;

/* What was not stored is told again, with all behind it: rather twice than not at all. */
static void end_keep(late_keep *keep, int r) {
    weft_runner *runner = keep->runner;
    over_lease *over = runner && r < 0 ? find_over(runner, keep->lease, keep->task) : NULL;
    if (over && over->late_at > keep->before)
        over->late_at = keep->before;
    if (runner && r < 0)
        runner->late -= keep->count;
    weft__list_remove(&keep->link);
    weft__free(keep->alloc, keep);
}

static void on_late_stored(void *ctx, int r) {
    late_keep *keep = ctx;
    void (*done)(void *, int) = keep->done;
    void *of = keep->ctx;
    end_keep(keep, r);
    if (done)
        done(of, r);
}

/* They change nothing. Those that were kept before are passed over. */
static int keep_late(weft_runner *runner, over_lease *over, const weft_json *events, void (*done)(void *ctx, int r),
                     void *ctx) {
    struct draft draft = {.engine = runner->engine};
    late_keep *keep = weft__zalloc(runner->engine->alloc, sizeof *keep);
    if (!keep)
        return -ENOMEM;
    *keep = (late_keep){.runner = runner,
                        .alloc = runner->engine->alloc,
                        .lease = over->lease,
                        .before = over->late_at,
                        .done = done,
                        .ctx = ctx};
    memcpy(keep->task, over->task, sizeof keep->task);
    weft__list_push(&runner->keeping, &keep->link);
    for (weft_iter it = weft_iterate(events); keep->count < MOST_LATE && weft_next(&it);) {
        uint64_t seq = (uint64_t) weft_get_int(&it.value, "seq", 0);
        weft_json data = weft_get(&it.value, "data");
        if (seq <= over->late_at || runner->late >= WEFT_RUNNER_LATE)
            continue;
        over->late_at = seq;
        runner->late++;
        keep->count++;
        weft__draft_add(&draft, WEFT_STREAM_RUNNERS, "runner.late",
                        WEFT_OBJ({"runner", weft_str(runner->name)}, {"taskId", weft_str(over->task)},
                                 {"lease", weft_uint(over->lease)}, {"seq", weft_uint(seq)},
                                 {"type", weft_str(weft_get_str(&it.value, "type", ""))}, {"data", weft_copy(&data)}));
    }
    int r = keep->count ? weft__draft_send(&draft, NULL, on_late_stored, keep) : 1;
    if (r != 0)
        end_keep(keep, r);
    return r;
}

/* Whose lease that was is being read in the journal. Outlives the runner. */
typedef struct late_check {
    weft_link link;
    weft_runner *runner; /* NULL: it is gone */
    const weft_alloc *alloc;
    uint64_t lease;
    char task[ENGINE_ID];
    weft_doc *events;
    void (*done)(void *ctx, int r);
    void *ctx;
} late_check;

static void end_check(late_check *check) {
    weft__list_remove(&check->link);
    weft_doc_free(check->events);
    weft__free(check->alloc, check);
}

/* It is the start of an attempt of this task, on this runner. */
static bool is_start_of(const late_check *check, const weft_page *page) {
    const weft_event *event = page->count ? &page->events[0] : NULL;
    weft_doc *doc = NULL;
    if (!event || event->gseq != check->lease || strcmp(event->type, "task.started") != 0 ||
        weft_doc_parse(event->data.data, event->data.len, check->alloc, &doc) < 0)
        return false;
    const char *at = strrchr(weft_get_str(weft_doc_root(doc), "agent", ""), '@');
    bool is = at && strcmp(at + 1, check->runner->name) == 0 &&
              strcmp(weft_get_str(weft_doc_root(doc), "taskId", ""), check->task) == 0;
    weft_doc_free(doc);
    return is;
}

static void on_late_checked(void *ctx, int r, const weft_page *page) {
    late_check *check = ctx;
    weft_runner *runner = check->runner;
    void (*done)(void *, int) = check->done;
    void *of = check->ctx;
    if (runner && r >= 0)
        r = !may_be_kept(runner->engine, check->task) || !is_start_of(check, page)
                ? -ENOENT
                : keep_late(runner, add_over(runner, check->lease, check->task), weft_doc_root(check->events), done, of);
    else if (!runner)
        r = -ESHUTDOWN;
    end_check(check);
    if (r != 0 && done) /* 0: keep_late() will call it */
        done(of, r);
}

static int check_late(weft_runner *runner, uint64_t lease, const char *task, const weft_json *events,
                      void (*done)(void *ctx, int r), void *ctx) {
    const weft_alloc *alloc = runner->engine->alloc;
    late_check *check = weft__zalloc(alloc, sizeof *check);
    if (!check)
        return -ENOMEM;
    *check = (late_check){.runner = runner, .alloc = alloc, .lease = lease, .done = done, .ctx = ctx};
    snprintf(check->task, sizeof check->task, "%s", task);
    weft__list_push(&runner->checks, &check->link);
    weft_query query = {.after = lease - 1, .until = lease, .oldest = true, .max_events = 1};
    int r = weft_doc_keep(events, alloc, &check->events);
    if (r >= 0)
        r = weft__store_read(runner->engine->store, &query, on_late_checked, check);
    if (r < 0)
        end_check(check);
    return r < 0 ? r : 0;
}

weft_lease_state weft__runner_hear(weft_runner *runner, uint64_t lease, const char *task, const weft_json *events,
                                   void (*done)(void *ctx, int r), void *ctx, int *ret_r) {
    uint64_t at;
    *ret_r = 1; /* done does not run */
    if (weft__runner_link_hear(&runner->wire, lease, task, events))
        return WEFT_LEASE_HELD;
    weft_lease_state state = weft__runner_lease(runner, lease, task, &at);
    const known_task *known = weft__task_known(runner->engine, task);
    if (state == WEFT_LEASE_HELD)
        *ret_r = -EAGAIN;
    else if (state == WEFT_LEASE_OVER && !find_over(runner, lease, task) && known && may_be_earlier(known, lease))
        *ret_r = check_late(runner, lease, task, events, done, ctx);
    else if (state == WEFT_LEASE_OVER)
        *ret_r = keep_late(runner, add_over(runner, lease, task), events, done, ctx);
    return state;
}

int weft__runner_apply_kept(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_task *task = weft__task_of(engine, data);
    uint64_t lease = (uint64_t) weft__int_between(data, "lease", 0, 0, INT64_MAX);
    uint64_t at = (uint64_t) weft__int_between(data, "at", 0, 0, INT64_MAX);
    (void) event;
    if (task && task->pub.state == WEFT_TASK_RUNNING && task->lease == lease && at > task->lease_at)
        task->lease_at = at;
    return 0;
}

/* ---- joining and leaving ---- */

static int check_list(const char *const *list, size_t most) {
    size_t n = 0;
    for (; list && list[n]; n++) {
        size_t len = strnlen(list[n], WEFT_RUNNER_NAME + 1);
        if (n == most || len > WEFT_RUNNER_NAME)
            return -E2BIG;
        for (size_t i = 0; i < len; i++)
            if ((unsigned char) list[n][i] <= ' ' || list[n][i] == 0x7f || list[n][i] == '@')
                return -EINVAL;
        if (!len)
            return -EINVAL;
    }
    return 0;
}

static int check_offer(const weft_runner_spec *spec) {
    const char *const name[] = {spec->name, NULL};
    int r = check_list(name, 1);
    if (r >= 0)
        r = check_list(spec->agents, WEFT_RUNNER_LIST);
    if (r >= 0)
        r = check_list(spec->labels, WEFT_RUNNER_LIST);
    return r < 0 ? r : check_list(spec->folders, WEFT_RUNNER_LIST);
}

static int check_spec(const weft_engine *engine, const weft_runner_spec *spec) {
    if (engine->phase != READY)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    int r = check_offer(spec);
    if (r >= 0 && (!spec->instance || !*spec->instance || strlen(spec->instance) > INSTANCE || spec->slots < 1 ||
                   spec->slots > WEFT_RUNNER_SLOTS))
        r = -EINVAL;
    return r;
}

static void drop_runner(weft_runner *runner);

/* One that has nothing of ours, and was not here since the start. */
static bool forget_one(weft_engine *engine) {
    for (weft_link *link = engine->runners.next; link != &engine->runners; link = link->next) {
        weft_runner *runner = runner_at(link);
        if (*runner->instance || !weft__list_empty(&runner->wire.turns) || !weft__list_empty(&runner->wire.processes) ||
            slots_of(runner))
            continue;
        drop_runner(runner);
        return true;
    }
    return false;
}

static int new_runner(weft_engine *engine, const char *name, size_t len, weft_runner **ret) {
    if (engine->runner_count >= WEFT_RUNNERS && !forget_one(engine))
        return -ENOSPC;
    weft_runner *made = len <= WEFT_RUNNER_NAME ? weft__zalloc(engine->alloc, sizeof *made) : NULL;
    if (!made)
        return len <= WEFT_RUNNER_NAME ? -ENOMEM : -E2BIG;
    made->engine = engine;
    made->slots = 1;
    made->since_ms = weft__engine_now(engine);
    memcpy(made->name, name, len);
    weft__runner_link_init(&made->wire, made->name);
    weft__list_init(&made->checks);
    weft__list_init(&made->keeping);
    weft__timer_init(&made->lease, on_lease_due);
    weft__list_push(&engine->runners, &made->link);
    engine->runner_count++;
    *ret = made;
    return 0;
}

static void copy_list(const char *const *from, char text[][WEFT_RUNNER_NAME + 1], const char **to) {
    size_t n = 0;
    for (; from && from[n]; n++) {
        snprintf(text[n], WEFT_RUNNER_NAME + 1, "%s", from[n]);
        to[n] = text[n];
    }
    to[n] = NULL;
}

/* The name of the project is that of its folder. */
static bool has_project(const weft_runner *runner) {
    const char *slash = strrchr(runner->engine->folder, '/');
    const char *project = slash ? slash + 1 : runner->engine->folder;
    return list_has(runner->folders, WEFT_RUNNER_ANY) || list_has(runner->folders, project);
}

static size_t texts_of(const char *const *list, weft_val ret[WEFT_RUNNER_LIST]) {
    size_t n = 0;
    for (; list[n]; n++)
        ret[n] = weft_str(list[n]);
    return n;
}

/* What it offers, as the first members of an event. */
#define OFFER_MEMBERS 5
typedef struct offer_parts {
    weft_val labels[WEFT_RUNNER_LIST], agents[WEFT_RUNNER_LIST], folders[WEFT_RUNNER_LIST];
    weft_member members[OFFER_MEMBERS + 2];
} offer_parts;

static weft_val offer_val(const weft_runner *runner, offer_parts *parts) {
    const weft_member members[] = {{"runner", weft_str(runner->name)},
                                   {"labels", weft_arr(parts->labels, texts_of(runner->labels, parts->labels))},
                                   {"agents", weft_arr(parts->agents, texts_of(runner->shown, parts->agents))},
                                   {"folders", weft_arr(parts->folders, texts_of(runner->folders, parts->folders))},
                                   {"slots", weft_uint(runner->slots)}};
    memcpy(parts->members, members, sizeof members);
    return weft_obj(parts->members, OFFER_MEMBERS);
}

static void tell_of_runner(weft_runner *runner, const char *type) {
    offer_parts parts;
    bool joined = strcmp(type, "runner.joined") == 0;
    weft_val data = offer_val(runner, &parts);
    if (joined && runner->news)
        runner->news = weft__engine_append(runner->engine, WEFT_STREAM_HUB, "runner.known", data, NULL, NULL) < 0;
    size_t n = joined ? OFFER_MEMBERS : 1;
    parts.members[n++] = (weft_member){"running", weft_uint(weft__runner_link_count(&runner->wire))};
    parts.members[n++] = (weft_member){"leaseMs", weft_int(runner->engine->limits.lease_ms)};
    weft__engine_append(runner->engine, WEFT_STREAM_RUNNERS, type, weft_obj(parts.members, n), NULL, NULL);
}

static bool is_same_list(const char *const *a, const char *const *b) {
    size_t n = 0;
    for (; a[n] && b && b[n]; n++)
        if (strcmp(a[n], b[n]) != 0)
            return false;
    return !a[n] && (!b || !b[n]);
}

static int take_offer(weft_runner *runner, const weft_runner_spec *spec) {
    bool same = runner->slots == spec->slots && is_same_list(runner->labels, spec->labels) &&
                is_same_list(runner->folders, spec->folders) && is_same_list(runner->shown, spec->agents);
    runner->news |= !same;
    runner->slots = spec->slots;
    for (size_t i = 0; i < runner->agent_count; i++)
        runner->agents[i].offered = false;
    copy_list(spec->labels, runner->label_text, runner->labels);
    copy_list(spec->folders, runner->folder_text, runner->folders);
    copy_list(spec->agents, runner->agent_text, runner->shown);
    for (const char *const *name = runner->shown; *name; name++) {
        runner_agent *offer = add_offer(runner, *name, strlen(*name));
        if (!offer)
            return -E2BIG;
        offer->offered = true;
    }
    runner->here = has_project(runner);
    return 0;
}

int weft__runner_join(weft_engine *engine, const weft_runner_spec *spec, weft_runner **ret) {
    int r = check_spec(engine, spec);
    weft_runner *runner = r < 0 ? NULL : find_runner(engine, spec->name, strlen(spec->name));
    if (r < 0)
        return r;
    if (runner && runner->connected && strcmp(runner->instance, spec->instance) != 0)
        return -EBUSY;
    if (!runner)
        r = new_runner(engine, spec->name, strlen(spec->name), &runner);
    if (r < 0)
        return r;
    if ((r = take_offer(runner, spec)) < 0)
        return r;
    snprintf(runner->instance, sizeof runner->instance, "%s", spec->instance);
    *ret = runner;
    return 0;
}

void weft__runner_up(weft_runner *runner, weft_peer *peer, const weft_json *known) {
    weft_engine *engine = runner->engine;
    bool again = runner->connected && weft__runner_is(runner, peer); /* said twice is no news */
    if (runner->connected) /* it comes again before we saw that the old connection is gone */
        weft__runner_link_down(&runner->wire);
    runner->connected = true;
    runner->since_ms = weft__engine_now(engine);
    weft__timer_stop(engine->loop, &runner->lease);
    if (!again)
        tell_of_runner(runner, "runner.joined");
    weft__runner_link_up(&runner->wire, peer, known);
    weft__queue_run(engine);
}

bool weft__runner_is(const weft_runner *runner, const weft_peer *peer) {
    return runner->wire.peer == peer;
}

const char *weft__runner_name(const weft_runner *runner) {
    return runner->name;
}

void weft__runner_left(weft_runner *runner, const weft_peer *peer) {
    if (!weft__runner_is(runner, peer))
        return;
    runner->connected = false;
    runner->since_ms = weft__engine_now(runner->engine);
    weft__runner_link_down(&runner->wire);
    tell_of_runner(runner, "runner.left");
    begin_lease_time(runner);
}

bool weft__runner_nth(const weft_engine *engine, size_t n, weft_runner_view *ret) {
    const weft_link *link = engine->runners.next;
    while (n-- > 0 && link != &engine->runners)
        link = link->next;
    if (link == &engine->runners)
        return false;
    const weft_runner *runner = runner_at(link);
    *ret = (weft_runner_view){
        .name = runner->name,
        .agents = runner->shown,
        .labels = runner->labels,
        .folders = runner->folders,
        .slots = runner->slots,
        .running = slots_of(runner),
        .connected = runner->connected,
        .here = runner->here,
        .since_ms = runner->since_ms,
    };
    return true;
}

bool weft__runner_of_task(const weft_engine *engine, const char *id, weft_runner_place *ret) {
    const known_task *task = weft__task_known(engine, id);
    const char *at =
        task && task->stored && weft__task_is_lent(task) && task->lease ? strrchr(task->pub.runs_on, '@') : NULL;
    const weft_runner *runner = at ? find_runner(engine, at + 1, strlen(at + 1)) : NULL;
    if (!at)
        return false;
    *ret = (weft_runner_place){.name = at + 1, .task = task->pub.id, .lease = task->lease};
    if (runner) {
        ret->peer = runner->wire.peer;
        ret->since_ms = *runner->instance ? runner->since_ms : 0;
    }
    return true;
}

static bool may_take(weft_runner *runner, const weft_task *pub) {
    return agent_of(runner, pub->agent) && runner->here && (!pub->runner || strcmp(pub->runner, runner->name) == 0) &&
           (!pub->label || list_has(runner->labels, pub->label));
}

const char *weft__runner_waits(const weft_engine *engine, const char *id, char ret[WEFT_RUNNER_WAITS]) {
    const known_task *task = weft__task_known(engine, id);
    const weft_runner *away = NULL, *there = NULL;
    if (!task || task->pub.state != WEFT_TASK_QUEUED || !weft__task_is_lent(task))
        return NULL;
    for (weft_link *link = engine->runners.next; link != &engine->runners; link = link->next)
        if (may_take(runner_at(link), &task->pub))
            *(runner_at(link)->connected ? &there : &away) = runner_at(link);
    if (there && weft__runner_pick(engine, task->pub.runner, task->pub.label, task->pub.agent, NULL, false))
        return NULL;
    if (there)
        snprintf(ret, WEFT_RUNNER_WAITS, "all places of %s are taken",
                 task->pub.runner ? there->name : "machines with this label");
    else if (away)
        snprintf(ret, WEFT_RUNNER_WAITS, *away->instance ? "%s is away" : "%s was not here since the hub was started",
                 away->name);
    else
        snprintf(ret, WEFT_RUNNER_WAITS, "no machine that is known takes it now: \"weft runner list\"");
    return ret;
}

/* ---- over restarts of the hub ---- */

static size_t read_list(const weft_json *data, const char *name, const char *ret[WEFT_RUNNER_LIST + 2]) {
    weft_json list = weft_get(data, name);
    size_t n = 0;
    for (weft_iter it = weft_iterate(&list); list.text && n <= WEFT_RUNNER_LIST && weft_next(&it); n++)
        ret[n] = weft_str_of(&it.value, "");
    ret[n] = NULL;
    return n;
}

/* One that is connected says so itself. What cannot be is passed over, as other events are. */
int weft__runner_apply_known(weft_engine *engine, const weft_event *event, const weft_json *data) {
    const char *labels[WEFT_RUNNER_LIST + 2], *agents[WEFT_RUNNER_LIST + 2], *folders[WEFT_RUNNER_LIST + 2];
    weft_runner_spec spec = {.name = weft_get_str(data, "runner", ""),
                             .agents = agents,
                             .labels = labels,
                             .folders = folders,
                             .slots = (size_t) weft__int_between(data, "slots", 1, 1, WEFT_RUNNER_SLOTS)};
    (void) event;
    read_list(data, "labels", labels);
    read_list(data, "agents", agents);
    read_list(data, "folders", folders);
    int r = check_offer(&spec);
    weft_runner *runner = r < 0 ? NULL : find_runner(engine, spec.name, strlen(spec.name));
    if (r < 0)
        return -EBADMSG;
    if (runner && runner->connected)
        return 0;
    if (!runner)
        r = new_runner(engine, spec.name, strlen(spec.name), &runner);
    if (r >= 0)
        r = take_offer(runner, &spec);
    if (r >= 0)
        runner->news = false;
    return r == -ENOMEM ? r : 0;
}

int weft__runners_write(const weft_engine *engine, weft_buf *out) {
    size_t n = 0;
    int r = weft__buf_put(out, engine->alloc, "[", 1);
    for (weft_link *link = engine->runners.next; r >= 0 && link != &engine->runners; link = link->next) {
        offer_parts parts;
        if (!*runner_at(link)->shown) /* expected, because it has a task, and never seen */
            continue;
        weft_val data = offer_val(runner_at(link), &parts);
        r = n++ ? weft__buf_put(out, engine->alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, engine->alloc, &data);
    }
    return r < 0 ? r : weft__buf_put(out, engine->alloc, "]", 1);
}

int weft__runners_restore(weft_engine *engine, const weft_json *list) {
    int r = 0;
    for (weft_iter it = weft_iterate(list); list->text && r >= 0 && weft_next(&it);) {
        r = weft__runner_apply_known(engine, NULL, &it.value);
        r = r == -EBADMSG ? 0 : r;
    }
    return r;
}

int weft__runner_expect(weft_engine *engine, const char *agent) {
    const char *at = strrchr(agent, '@');
    weft_runner *runner = at ? find_runner(engine, at + 1, strlen(at + 1)) : NULL;
    int r = 0;
    if (!at || at == agent || !at[1] || at - agent > WEFT_RUNNER_NAME)
        return -EINVAL;
    if (!runner)
        r = new_runner(engine, at + 1, strlen(at + 1), &runner);
    if (r < 0)
        return r;
    if (!runner->connected)
        begin_lease_time(runner);
    return add_offer(runner, agent, (size_t) (at - agent)) ? 0 : -E2BIG;
}

void weft__runners_take_up(weft_engine *engine) {
    for (weft_link *link = engine->slots.next, *next; link != &engine->slots; link = next) {
        known_task *task = WEFT_CONTAINER(link, known_task, slot);
        next = link->next;
        if (task->pub.state == WEFT_TASK_RUNNING && weft__task_is_lent(task) && !task->run) {
            weft__runner_expect(engine, task->pub.runs_on); /* without it the attempt ends as one that cannot start */
            weft__run_start(engine, task);
        }
    }
}

void weft__runners_let_go(weft_engine *engine) {
    for (weft_link *link = engine->slots.next, *next; link != &engine->slots; link = next) {
        known_task *task = WEFT_CONTAINER(link, known_task, slot);
        next = link->next;
        if (task->run && weft__task_is_lent(task))
            weft__run_let_go(task->run);
    }
}

void weft__runners_init(weft_engine *engine) {
    weft__list_init(&engine->runners);
}

static void drop_runner(weft_runner *runner) {
    weft_engine *engine = runner->engine;
    weft__timer_stop(engine->loop, &runner->lease);
    while (!weft__list_empty(&runner->checks)) {
        late_check *check = WEFT_CONTAINER(runner->checks.next, late_check, link);
        weft__list_remove(&check->link);
        check->runner = NULL;
    }
    while (!weft__list_empty(&runner->keeping)) {
        late_keep *keep = WEFT_CONTAINER(runner->keeping.next, late_keep, link);
        weft__list_remove(&keep->link);
        keep->runner = NULL;
    }
    weft__list_remove(&runner->link);
    engine->runner_count--;
    weft__free(engine->alloc, runner);
}

void weft__runners_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->runners))
        drop_runner(runner_at(engine->runners.next));
}

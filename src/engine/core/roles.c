/* Who holds a role, and who of them is the least busy. Guests are agents that registered: they are known by name as the
 * configured ones are, until nothing of theirs runs any more. */
#include "roles.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent_pool_private.h"
#include "engine_private.h"
#include "pack.h"
#include "run.h"
#include "texts.h"

/* What is kept of a connection between two turns is little, and to make it anew for each costs as much as the turn. */
#define GUEST_IDLE_MS 300000

struct weft_guest {
    weft_link link;
    weft_engine *engine;
    weft_agent agent;
    bool left; /* it is kept for what still runs on it */
    const char *role;
    const char *types[WEFT_TASK_TYPES + 1];
    char name[ENGINE_ID];
    char text[];
};

static const char *const roles[] = {WEFT_ROLE_PLANNER, WEFT_ROLE_EXECUTOR};

bool weft__role_exists(const char *role) {
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (strcmp(roles[i], role) == 0)
            return true;
    return false;
}

/* ---- holders ---- */

static weft_guest *guest_at(const weft_link *link) {
    return WEFT_CONTAINER(link, weft_guest, link);
}

const weft_agent *weft__agent_known(const weft_engine *engine, const char *name) {
    const weft_agent *agent = weft__agent_find(engine->agents, name);
    for (weft_link *link = engine->guests.next; !agent && name && link != &engine->guests; link = link->next)
        if (!guest_at(link)->left && strcmp(guest_at(link)->name, name) == 0)
            agent = &guest_at(link)->agent;
    return agent || !name ? agent : weft__runner_agent(engine, name);
}

/* NULL: the configuration says nothing about it. */
static const char *const *configured_for(const weft_engine *engine, const char *role) {
    for (const weft_agent_role *row = engine->agents ? engine->agents->roles : NULL; row && row->role; row++)
        if (strcmp(row->role, role) == 0)
            return row->agents;
    return NULL;
}

static void show_holder(const weft_engine *engine, const weft_agent *agent, weft_holder *ret) {
    *ret = (weft_holder){.agent = agent, .busy = weft__slots_taken(engine, agent->name), .concurrency = agent->max_running};
}

static bool nth_configured(const weft_engine *engine, const char *role, size_t *n, weft_holder *ret) {
    for (const char *const *name = configured_for(engine, role); name && *name; name++) {
        const weft_agent *agent = weft__agent_find(engine->agents, *name);
        if (agent && (*n)-- == 0) {
            show_holder(engine, agent, ret);
            return true;
        }
    }
    return false;
}

static bool nth_guest(const weft_engine *engine, const char *role, size_t *n, bool *ret_any, weft_holder *ret) {
    *ret_any = false;
    for (weft_link *link = engine->guests.next; link != &engine->guests; link = link->next) {
        const weft_guest *guest = guest_at(link);
        if (guest->left || strcmp(guest->role, role) != 0)
            continue;
        *ret_any = true;
        if ((*n)-- > 0)
            continue;
        show_holder(engine, &guest->agent, ret);
        ret->guest = true;
        ret->task_types = guest->types[0] ? guest->types : NULL;
        return true;
    }
    return false;
}

bool weft__role_holder(const weft_engine *engine, const char *role, size_t n, weft_holder *ret) {
    bool any = false;
    if (nth_configured(engine, role, &n, ret) || nth_guest(engine, role, &n, &any, ret))
        return true;
    const weft_agent *usual = any || n || configured_for(engine, role) ? NULL : weft__agent_default(engine);
    if (usual)
        show_holder(engine, usual, ret);
    return usual != NULL;
}

static bool takes_type(const weft_holder *holder, const char *task_type) {
    if (!holder->task_types || !task_type)
        return true;
    for (const char *const *type = holder->task_types; *type; type++)
        if (strcmp(*type, task_type) == 0)
            return true;
    return false;
}

/* By the share of what it may have: one of two is busier than one of eight. */
static bool is_less_busy(const weft_engine *engine, const weft_holder *a, const weft_holder *b) {
    size_t most = engine->limits.max_running;
    size_t of_a = a->concurrency && a->concurrency < most ? a->concurrency : most;
    size_t of_b = b->concurrency && b->concurrency < most ? b->concurrency : most;
    return (double) a->busy * (double) of_b < (double) b->busy * (double) of_a;
}

/* Free before busy, then another one than the one to avoid, then the least busy, then the first. */
static bool is_better(const weft_engine *engine, const weft_holder *a, const weft_holder *b, const char *avoid) {
    bool free_a = weft__slot_free(engine, a->agent->name), free_b = weft__slot_free(engine, b->agent->name);
    if (free_a != free_b)
        return free_a;
    bool again_a = avoid && strcmp(a->agent->name, avoid) == 0, again_b = avoid && strcmp(b->agent->name, avoid) == 0;
    return again_a != again_b ? again_b : is_less_busy(engine, a, b);
}

/* ---- behind a start ---- */

/* "executor@7": no agent of the configuration is called so. */
static bool is_guest_of(const char *name, const char *role) {
    size_t len = strlen(role);
    return name && strncmp(name, role, len) == 0 && name[len] == '@';
}

/* The newest task of this role that has begun. */
static bool ran_on_guest(const weft_engine *engine, const char *role) {
    const known_task *newest = NULL;
    for (const weft_link *link = engine->all_tasks.next; link != &engine->all_tasks; link = link->next) {
        const known_task *task = WEFT_CONTAINER(link, known_task, all);
        bool ran = task->pub.role && task->pub.attempt && strcmp(task->pub.role, role) == 0;
        if (ran && (!newest || task->pub.number > newest->pub.number))
            newest = task;
    }
    return newest && is_guest_of(newest->pub.runs_on, role);
}

void weft__guests_look(weft_engine *engine) {
    bool late = weft_loop_now(engine->loop) >= engine->guests_due;
    for (size_t i = 0; !late && !engine->guests_known && i < sizeof roles / sizeof roles[0]; i++)
        engine->guests_before[i] = ran_on_guest(engine, roles[i]);
    engine->guests_known = late || !engine->past_unread;
}

/* Who had registered connects again in a moment; the default agent would do something else. */
static bool waits_for_guests(const weft_engine *engine, const char *role) {
    size_t n = 0, i = strcmp(role, roles[0]) != 0;
    bool any;
    weft_holder holder;
    return engine->guests_before[i] && weft_loop_now(engine->loop) < engine->guests_due && !configured_for(engine, role) &&
           !nth_guest(engine, role, &n, &any, &holder);
}

int64_t weft__roles_due(const weft_engine *engine) {
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
        if (waits_for_guests(engine, roles[i]))
            return engine->guests_due;
    return INT64_MAX;
}

const weft_agent *weft__role_pick(const weft_engine *engine, const char *role, const char *task_type, const char *avoid,
                                  bool any) {
    weft_holder best = {0}, each;
    if (!any && waits_for_guests(engine, role))
        return NULL;
    for (size_t n = 0; weft__role_holder(engine, role, n, &each); n++)
        if (takes_type(&each, task_type) && (!best.agent || is_better(engine, &each, &best, avoid)))
            best = each;
    return best.agent && (any || weft__slot_free(engine, best.agent->name)) ? best.agent : NULL;
}

int weft__role_ask(weft_engine *engine, const char *agent, const char *method, const weft_json *params,
                   weft_driver_done *done, void *ctx) {
    const weft_agent *known = weft__agent_known(engine, agent);
    if (engine->phase != READY)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    return known ? weft__pool_ask(engine, known, method, params, done, ctx) : -ENOENT;
}

/* ---- guests ---- */

void weft__roles_init(weft_engine *engine) {
    weft__list_init(&engine->guests);
}

static void free_guest(weft_guest *guest) {
    weft_engine *engine = guest->engine;
    weft__list_remove(&guest->link);
    weft__free(engine->alloc, guest);
}

static bool is_used(const weft_engine *engine, const weft_guest *guest) {
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next)
        if (WEFT_CONTAINER(link, pool_process, link)->agent == &guest->agent)
            return true;
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next) {
        const known_task *task = WEFT_CONTAINER(link, known_task, slot);
        if (task->run && task->run->agent == &guest->agent)
            return true;
    }
    return false;
}

void weft__guests_tidy(weft_engine *engine) {
    for (weft_link *link = engine->guests.next, *next; link != &engine->guests; link = next) {
        next = link->next;
        if (guest_at(link)->left && !is_used(engine, guest_at(link)))
            free_guest(guest_at(link));
    }
}

void weft__guests_drop(weft_engine *engine) {
    while (!weft__list_empty(&engine->guests))
        free_guest(guest_at(engine->guests.next));
}

static int check_types(const char *const *types, size_t *ret_size) {
    size_t count = weft__texts_count(types);
    *ret_size = 0;
    for (size_t i = 0; i < count; i++) {
        if (strnlen(types[i], WEFT_TASK_TYPE + 1) > WEFT_TASK_TYPE)
            return -E2BIG;
        *ret_size += strlen(types[i]) + 1;
    }
    return count > WEFT_TASK_TYPES ? -E2BIG : 0;
}

static void fill_guest(weft_guest *guest, const weft_guest_spec *spec, uint64_t number) {
    char *at = guest->text;
    size_t concurrency = spec->concurrency ? spec->concurrency : 1;
    guest->role = weft__pack(&at, spec->role);
    for (size_t i = 0; spec->task_types && spec->task_types[i]; i++)
        guest->types[i] = weft__pack(&at, spec->task_types[i]);
    snprintf(guest->name, sizeof guest->name, "%s@%" PRIu64, guest->role, number);
    guest->agent = (weft_agent){
        .name = guest->name,
        .driver = "planner",
        .max_running = concurrency,
        .max_turns = concurrency,
        .idle_ms = GUEST_IDLE_MS,
        .about = "somebody connected",
        .wire = spec->wire,
    };
}

int weft__role_join(weft_engine *engine, const weft_guest_spec *spec, weft_guest **ret) {
    size_t size;
    int r = !weft__role_exists(spec->role) ? -EINVAL : check_types(spec->task_types, &size);
    if (r < 0)
        return r;
    if (engine->phase != READY)
        return engine->phase < READY ? -EAGAIN : -ESHUTDOWN;
    if (engine->guest_count >= WEFT_GUESTS)
        return -ENOSPC;
    weft_guest *guest = weft__zalloc(engine->alloc, sizeof *guest + strlen(spec->role) + 1 + size);
    if (!guest)
        return -ENOMEM;
    guest->engine = engine;
    fill_guest(guest, spec, ++engine->guest_number);
    weft__list_push(&engine->guests, &guest->link);
    engine->guest_count++;
    weft__queue_run(engine);
    *ret = guest;
    return 0;
}

weft_guest *weft__role_leave(weft_guest *guest) {
    if (!guest)
        return NULL;
    weft_engine *engine = guest->engine;
    guest->left = true;
    engine->guest_count--;
    weft__pool_recheck(engine);
    weft__guests_tidy(engine);
    return NULL;
}

const char *weft__guest_name(const weft_guest *guest) {
    return guest->name;
}

const char *weft__guest_role(const weft_guest *guest) {
    return guest->role;
}

/* What is asked of agents besides turns, see agent_pool.h: lists of sessions, deletions, settings, and openings without a
 * turn. A request keeps its process until it is over. */
#include <errno.h>
#include <string.h>

#include "agent_pool_private.h"

/* Processes that are asked for something besides a turn at a time: whoever asks may start one each time. */
#define MOST_ASKED 8

/* ---- requests ---- */

static void free_pool_request(pool_request *old) {
    const weft_alloc *alloc = old->engine->alloc;
    weft__list_remove(&old->link);
    weft__free(alloc, old->name);
    weft__free(alloc, old->option);
    weft__free(alloc, old->error);
    weft_doc_free(old->value);
    weft_doc_free(old->result);
    weft__free(alloc, old);
}

static pool_request *new_pool_request(pool_process *process, pool_session *session, weft_driver_done *done, void *ctx) {
    pool_request *made = weft__zalloc(process->engine->alloc, sizeof *made);
    if (!made)
        return NULL;
    made->engine = process->engine;
    made->process = process;
    made->session = session;
    made->done = done;
    made->ctx = ctx;
    process->requests++;
    weft__list_push(&process->engine->pool_requests, &made->link);
    return made;
}

/* It was not made after all. */
static void drop_pool_request(pool_request *old) {
    old->process->requests--;
    free_pool_request(old);
}

void weft__pool_request_end(pool_request *old, int r, const weft_json *result, const char *error) {
    pool_process *process = old->process;
    old->r = r;
    if (result && weft_doc_keep(result, old->engine->alloc, &old->result) < 0)
        old->r = -ENOMEM;
    old->error = error ? weft__strndup(old->engine->alloc, error, strlen(error)) : NULL;
    old->process = NULL;
    old->session = NULL;
    process->requests--;
    weft__later(old->engine->loop, &old->engine->pool_later);
}

/* The agent took it: so it has it. */
static void note_setting(const pool_request *old) {
    pool_session *session = old->session;
    const weft_alloc *alloc = old->engine->alloc;
    weft_session_setting setting = {old->name, old->option, *weft_doc_root(old->value)};
    char *settings;
    if (weft__settings_put(session->settings, &setting, alloc, &settings) < 0) {
        session->stale = true;
        return;
    }
    weft__free(alloc, session->settings);
    session->settings = settings;
}

static void on_request_done(void *ctx, int r, const weft_json *result, const char *error) {
    pool_request *old = ctx;
    pool_process *process = old->process;
    if (r >= 0 && old->session && old->name)
        note_setting(old);
    weft__pool_request_end(old, r, result, error);
    weft__pool_process_settle(process);
}

void weft__pool_requests_end(pool_process *process, const pool_session *session, int r) {
    weft_link *all = &process->engine->pool_requests;
    for (weft_link *link = all->next; link != all; link = link->next) {
        pool_request *one = WEFT_CONTAINER(link, pool_request, link);
        if (one->process == process && (!session || one->session == session))
            weft__pool_request_end(one, r, NULL, NULL);
    }
}

void weft__pool_requests_tell(weft_engine *engine) {
    weft_link *all = &engine->pool_requests;
    for (weft_link *link = all->next, *next; link != all; link = next) {
        pool_request *one = WEFT_CONTAINER(link, pool_request, link);
        next = link->next;
        if (one->process)
            continue;
        weft__list_remove(&one->link);
        one->done(one->ctx, one->r, one->result ? weft_doc_root(one->result) : NULL, one->error);
        free_pool_request(one);
        next = all->next; /* whoever was told may have asked for more, or ended some */
    }
}

static void pool_requests_due(weft_later *later) {
    weft__pool_requests_tell(WEFT_CONTAINER(later, weft_engine, pool_later));
}

void weft__pool_requests_init(weft_engine *engine) {
    weft__list_init(&engine->pool_requests);
    weft__later_init(&engine->pool_later, pool_requests_due);
}

void weft__pool_set_waiting(pool_session *session) {
    weft_link *all = &session->process->engine->pool_requests;
    for (weft_link *link = all->next; link != all; link = link->next) {
        pool_request *one = WEFT_CONTAINER(link, pool_request, link);
        if (one->session != session || !one->waits)
            continue;
        one->waits = false;
        weft_session_setting setting = {one->name, one->option, *weft_doc_root(one->value)};
        int r = session->process->driver->set(session->handle, &setting, on_request_done, one);
        if (r < 0)
            weft__pool_request_end(one, r, NULL, NULL);
    }
}

void weft__pool_end_waiting(const pool_session *session) {
    weft_link *all = &session->process->engine->pool_requests;
    for (weft_link *link = all->next; link != all; link = link->next) {
        pool_request *one = WEFT_CONTAINER(link, pool_request, link);
        if (one->session == session && one->waits)
            weft__pool_request_end(one, -ENOTCONN, NULL, NULL);
    }
}

/* ---- what is not a turn ---- */

/* Settings are for processes that are there already. */
static bool asks_too_many(const weft_engine *engine) {
    size_t count = 0;
    for (weft_link *link = engine->pool_requests.next; link != &engine->pool_requests; link = link->next) {
        const pool_request *one = WEFT_CONTAINER(link, pool_request, link);
        count += one->process && !one->name;
    }
    return count >= MOST_ASKED;
}

static bool is_usable(const pool_process *process, const weft_agent *agent) {
    return !process->ending && !process->retired && weft__pool_same_agent(process->agent, agent);
}

/* Any that lives, however many turns it has, or a new one. */
static int process_for(weft_engine *engine, const weft_agent *agent, pool_process **ret) {
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        if (is_usable(process, agent)) {
            *ret = process;
            return 0;
        }
    }
    return weft__pool_process_open(engine, agent, NULL, false, ret);
}

/* Whoever asks may be the only reason for the process to live. */
static int ask_process(weft_engine *engine, const weft_agent *agent, weft_driver_done *done, void *ctx,
                       int (*ask)(pool_process *process, pool_request *made, const void *what), const void *what) {
    pool_process *process;
    int r = asks_too_many(engine) ? -EUSERS : process_for(engine, agent, &process);
    if (r < 0)
        return r;
    pool_request *made = new_pool_request(process, NULL, done, ctx);
    r = made ? ask(process, made, what) : -ENOMEM;
    if (r >= 0) {
        weft__timer_set(engine->loop, &process->idle, INT64_MAX);
        return 0;
    }
    if (made)
        drop_pool_request(made);
    weft__pool_process_settle(process);
    return r;
}

struct listing {
    const char *folder, *cursor;
};

static int ask_list(pool_process *process, pool_request *made, const void *what) {
    const struct listing *listing = what;
    return process->driver->list(process->handle, listing->folder, listing->cursor, on_request_done, made);
}

static int ask_remove(pool_process *process, pool_request *made, const void *what) {
    return process->driver->remove(process->handle, what, on_request_done, made);
}

int weft__pool_list(weft_engine *engine, const weft_agent *agent, const char *folder, const char *cursor,
                    weft_driver_done *done, void *ctx) {
    const weft_driver *driver = weft__pool_driver(engine, agent);
    if (!driver || !driver->list)
        return -EOPNOTSUPP;
    return ask_process(engine, agent, done, ctx, ask_list, &(struct listing){folder, cursor});
}

int weft__pool_remove(weft_engine *engine, const weft_agent *agent, const char *agent_session, weft_driver_done *done,
                      void *ctx) {
    const weft_driver *driver = weft__pool_driver(engine, agent);
    if (!driver || !driver->remove)
        return -EOPNOTSUPP;
    return ask_process(engine, agent, done, ctx, ask_remove, agent_session);
}

static int ask_logout(pool_process *process, pool_request *made, const void *what) {
    (void) what;
    return process->driver->logout(process->handle, on_request_done, made);
}

int weft__pool_logout(weft_engine *engine, const weft_agent *agent, weft_driver_done *done, void *ctx) {
    const weft_driver *driver = weft__pool_driver(engine, agent);
    if (!driver || !driver->logout)
        return -EOPNOTSUPP;
    return ask_process(engine, agent, done, ctx, ask_logout, NULL);
}

struct asking {
    const char *method;
    const weft_json *params;
};

static int ask_anything(pool_process *process, pool_request *made, const void *what) {
    const struct asking *asking = what;
    return process->driver->ask(process->handle, asking->method, asking->params, on_request_done, made);
}

int weft__pool_ask(weft_engine *engine, const weft_agent *agent, const char *method, const weft_json *params,
                   weft_driver_done *done, void *ctx) {
    const weft_driver *driver = weft__pool_driver(engine, agent);
    if (!driver || !driver->ask)
        return -EOPNOTSUPP;
    return ask_process(engine, agent, done, ctx, ask_anything, &(struct asking){method, params});
}

static pool_session *session_anywhere(const weft_engine *engine, const char *id) {
    for (weft_link *link = engine->processes.next; link != &engine->processes; link = link->next) {
        pool_process *process = WEFT_CONTAINER(link, pool_process, link);
        for (weft_link *at = process->sessions.next; at != &process->sessions; at = at->next) {
            pool_session *session = WEFT_CONTAINER(at, pool_session, link);
            if (!process->ending && strcmp(session->id, id) == 0)
                return session;
        }
    }
    return NULL;
}

static int keep_setting(pool_request *made, const weft_session_setting *setting) {
    const weft_alloc *alloc = made->engine->alloc;
    made->name = weft__strndup(alloc, setting->name, strlen(setting->name));
    made->option = setting->option ? weft__strndup(alloc, setting->option, strlen(setting->option)) : NULL;
    if (!made->name || (setting->option && !made->option))
        return -ENOMEM;
    return weft_doc_keep(&setting->value, alloc, &made->value);
}

int weft__pool_set(weft_engine *engine, const char *session, const weft_session_setting *setting, weft_driver_done *done,
                   void *ctx) {
    pool_session *found = session_anywhere(engine, session);
    if (!found || found->leaving)
        return -ENOTCONN;
    const weft_driver *driver = found->process->driver;
    pool_request *made = driver->set ? new_pool_request(found->process, found, done, ctx) : NULL;
    if (!made)
        return driver->set ? -ENOMEM : -EOPNOTSUPP;
    int r = keep_setting(made, setting);
    if (r >= 0)
        r = driver->set(found->handle, setting, on_request_done, made);
    made->waits = r == -EAGAIN;
    if (made->waits)
        return 0;
    if (r < 0)
        drop_pool_request(made);
    /* It will be opened anew, with what it is to have then. */
    if (r == -ENOTCONN && !found->run && !found->opening)
        weft__pool_session_close(found);
    return r;
}

static int begin_opening(pool_process *process, pool_session *session, weft_driver_done *done, void *ctx) {
    pool_request *made = new_pool_request(process, session, done, ctx);
    if (!made)
        return -ENOMEM;
    session->opening = made;
    weft__pool_turn_begin(session, NULL);
    int r = process->driver->prompt(session->handle, &(weft_turn_spec){.task = session->id});
    if (r < 0) {
        session->opening = NULL;
        process->turns--;
        drop_pool_request(made);
    }
    return r;
}

static int open_in_process(pool_process *process, const known_session *known, bool must_exist, weft_driver_done *done,
                           void *ctx) {
    pool_session *session;
    weft__pool_close(process->engine, known->pub.id);
    int r = weft__pool_session_open(process, known, known->pub.id, must_exist, &session);
    if (r < 0)
        return r;
    r = begin_opening(process, session, done, ctx);
    if (r < 0)
        weft__pool_session_close(session);
    return r;
}

int weft__pool_open(weft_engine *engine, const weft_agent *agent, const known_session *known, bool must_exist,
                    weft_driver_done *done, void *ctx) {
    const weft_driver *driver = weft__pool_driver(engine, agent);
    pool_session *there = session_anywhere(engine, known->pub.id);
    if (!driver || driver->one_turn)
        return -EOPNOTSUPP;
    if (there && (there->run || there->opening))
        return -EBUSY;
    if (asks_too_many(engine))
        return -EUSERS;
    pool_process *process = weft__pool_process_find(engine, agent);
    if (process)
        process->talks = true;
    if (there && weft__pool_has_place(there->process, agent))
        return begin_opening(there->process, there, done, ctx);
    int r = process ? open_in_process(process, known, must_exist, done, ctx) : -EPIPE;
    if (r != -EPIPE)
        return r;
    if (process)
        weft__pool_process_retire(process);
    r = weft__pool_process_open(engine, agent, NULL, true, &process);
    if (r < 0)
        return r;
    r = open_in_process(process, known, must_exist, done, ctx);
    if (r < 0)
        weft__pool_process_free(process);
    return r;
}

static void make_stale(pool_session *session) {
    session->stale = true;
    if (!session->run && !session->opening)
        weft__pool_session_close(session);
}

void weft__pool_refresh(weft_engine *engine, const known_session *session) {
    pool_session *found = session_anywhere(engine, session->pub.id);
    if (found && !weft__texts_equal(found->settings, session->pub.settings))
        make_stale(found);
}

void weft__pool_reopen(weft_engine *engine, const char *session) {
    pool_session *found = session_anywhere(engine, session);
    if (found)
        make_stale(found);
}

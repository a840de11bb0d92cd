/* Agents that live: several turns in a process, one after the other and side by side. Each turn is a run as in sim_driver.c,
 * with this between it and the engine. What is asked of an agent besides is answered in a later step, or when its process
 * dies. */
#include "sim_driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIVING 16
#define MAX_PLACES 64
#define MAX_WANTED 64

struct weft_driver_process {
    const weft_process_host *host;
    void *ctx;
    weft_loop *loop;
    int64_t grace_ms;
    bool used, named, ending, over;
    unsigned turns; /* so far */
    weft_later end_later;
    weft_timer end_timer;
};

struct weft_driver_session {
    bool used;
    weft_driver_process *process;
    const weft_session_host *host;
    void *ctx;
    char own[SIM_NAME], mode[16];
    bool open, must_exist;
    bool was_set;  /* since it was opened, so that the engine may not know yet */
    bool opening;  /* it has a turn without a prompt */
    weft_run *run; /* NULL: no turn with one */
};

typedef struct wanted {
    weft_driver_process *process; /* NULL: none */
    weft_driver_session *session;
    char mode[16];
    weft_driver_done *done;
    void *ctx;
} wanted;

static struct {
    weft_driver_process processes[MAX_LIVING];
    weft_driver_session places[MAX_PLACES];
    wanted wanted[MAX_WANTED];
    unsigned names;
} living;

size_t sim_living_count(void) {
    size_t n = 0;
    for (size_t i = 0; i < MAX_LIVING; i++)
        n += living.processes[i].used;
    return n;
}

static size_t turns_of(const weft_driver_process *process) {
    size_t n = 0;
    for (size_t i = 0; i < MAX_PLACES; i++)
        n += living.places[i].used && living.places[i].process == process &&
             (living.places[i].run || living.places[i].opening);
    return n;
}

size_t driver_waiting(void) {
    size_t n = 0;
    for (size_t i = 0; i < MAX_WANTED; i++)
        n += living.wanted[i].process != NULL;
    for (size_t i = 0; i < MAX_PLACES; i++)
        n += living.places[i].used && living.places[i].opening;
    return n;
}

/* ---- the end of a process ---- */

static weft_driver_session *any_with_turn(const weft_driver_process *process) {
    for (size_t i = 0; i < MAX_PLACES; i++) {
        weft_driver_session *session = &living.places[i];
        if (session->used && session->process == process && (session->run || session->opening))
            return session;
    }
    return NULL;
}

static void drop_run(weft_driver_session *session) {
    weft_run *run = session->run;
    session->run = NULL;
    if (run)
        sim_run_dropped(run);
}

static void answer_wanted(wanted *one, int r) {
    wanted now = *one;
    static const char text[] = "{\"sessions\":[]}";
    weft_doc *doc = NULL;
    one->process = NULL;
    if (weft_doc_parse(text, sizeof text - 1, NULL, &doc) < 0)
        abort();
    if (r >= 0 && now.session) {
        snprintf(now.session->mode, sizeof now.session->mode, "%s", now.mode);
        now.session->was_set = true;
        sim_saw(SAW_SET_LIVE);
    }
    now.done(now.ctx, r, r < 0 ? NULL : weft_doc_root(doc), r < 0 ? "no" : NULL);
    weft_doc_free(doc);
}

static void drop_wanted(const weft_driver_process *process, const weft_driver_session *session) {
    for (size_t i = 0; i < MAX_WANTED; i++)
        if (living.wanted[i].process == process && (!session || living.wanted[i].session == session))
            living.wanted[i].process = NULL;
}

/* Its turns first, then what else was asked of it, then itself. */
static void die(weft_driver_process *process) {
    weft_driver_session *session;
    if (process->over)
        return;
    sim_say("process %td dies with %zu turns", process - living.processes, turns_of(process));
    if (turns_of(process) > 1)
        sim_saw(SAW_DEATH);
    process->over = process->ending = true;
    weft__later_cancel(&process->end_later);
    weft__timer_stop(process->loop, &process->end_timer);
    while (process->used && (session = any_with_turn(process))) {
        session->opening = false;
        drop_run(session);
        session->host->on_turn_end(
            session->ctx,
            &(weft_turn_end){
                .reason = "exited", .error = "its process died", .retryable = true, .gone = true, .exit_code = 3});
    }
    for (size_t i = 0; process->used && i < MAX_WANTED; i++)
        if (living.wanted[i].process == process)
            answer_wanted(&living.wanted[i], -EPIPE);
    if (process->used)
        process->host->on_end(process->ctx, 3, 0);
}

static void die_later(weft_later *later) {
    die(WEFT_CONTAINER(later, weft_driver_process, end_later));
}

static void die_due(weft_timer *timer) {
    die(WEFT_CONTAINER(timer, weft_driver_process, end_timer));
}

/* ---- what a turn tells ---- */

static void tell_process(weft_driver_process *process) {
    if (process->named)
        return;
    process->named = true;
    process->host->on_process(process->ctx, sim_next_pid());
}

static void tell_session(weft_driver_session *session) {
    session->open = true;
    session->host->on_session(session->ctx, &(weft_session_info){.agent_session = session->own});
}

static void live_on_process(void *ctx, pid_t pid) {
    (void) pid;
    tell_process(((weft_driver_session *) ctx)->process);
}

static void live_on_session(void *ctx, const char *agent_session) {
    weft_driver_session *session = ctx;
    (void) agent_session;
    if (!session->open)
        tell_session(session);
}

static void live_on_output(void *ctx, weft_run_stream stream, weft_bytes text) {
    const weft_driver_session *session = ctx;
    session->host->on_output(session->ctx, stream, text);
}

/* Sometimes what holds for the session changes as well. */
static void live_on_update(void *ctx, const weft_json *update) {
    const weft_driver_session *session = ctx;
    session->host->on_update(session->ctx, update);
    if (session->used && sim_chance(50))
        session->host->on_state(session->ctx, sim_chance(50) ? "commands" : "modes", update);
}

static void live_on_ask(void *ctx, const char *key, weft_val question) {
    const weft_driver_session *session = ctx;
    session->host->on_ask(session->ctx, key, question);
}

static void live_on_unask(void *ctx, const char *key) {
    const weft_driver_session *session = ctx;
    session->host->on_unask(session->ctx, key);
}

/* An error is a crash, and so is, sometimes, the end of one that was cancelled and did not obey. */
static void live_on_end(void *ctx, const weft_run_end *end) {
    weft_driver_session *session = ctx;
    weft_driver_process *process = session->process;
    bool cancelled = session->run->cancelled, crash = end->reason && strcmp(end->reason, "exited") == 0;
    if (crash || (end->reason && cancelled && sim_chance(30))) {
        die(process);
        return;
    }
    weft_turn_end told = *end;
    told.exit_code = -1;
    told.signal = 0;
    if (end->reason && cancelled)
        told.reason = "cancelled";
    drop_run(session);
    session->host->on_turn_end(session->ctx, &told);
}

static const weft_run_host live_host = {
    .on_process = live_on_process,
    .on_session = live_on_session,
    .on_output = live_on_output,
    .on_update = live_on_update,
    .on_ask = live_on_ask,
    .on_unask = live_on_unask,
    .on_end = live_on_end,
};

/* ---- what else is asked of it ---- */

static void end_live_opening(weft_driver_session *session) {
    weft_turn_end end = {.ok = true, .exit_code = -1};
    uint32_t how = sim_below(10);
    tell_process(session->process);
    if (how == 0 || (session->must_exist && how < 4))
        end = (weft_turn_end){.reason = how ? "sessionNotFound" : "agentError", .error = "no", .exit_code = -1};
    else if (!session->open)
        tell_session(session);
    session->opening = false;
    session->host->on_turn_end(session->ctx, &end);
}

/* One of those that wait, the first. */
bool sim_living_step(void) {
    for (size_t i = 0; i < MAX_PLACES; i++)
        if (living.places[i].used && living.places[i].opening) {
            end_live_opening(&living.places[i]);
            return true;
        }
    for (size_t i = 0; i < MAX_WANTED; i++)
        if (living.wanted[i].process) {
            answer_wanted(&living.wanted[i], sim_chance(20) ? -EREMOTEIO : 0);
            return true;
        }
    return false;
}

static int want(weft_driver_process *process, weft_driver_session *session, const char *mode, weft_driver_done *done,
                void *ctx) {
    if (process->ending)
        return -EPIPE;
    for (size_t i = 0; i < MAX_WANTED; i++)
        if (!living.wanted[i].process) {
            living.wanted[i] = (wanted){.process = process, .session = session, .done = done, .ctx = ctx};
            snprintf(living.wanted[i].mode, sizeof living.wanted[i].mode, "%s", mode);
            return 0;
        }
    return -EBUSY;
}

/* ---- the driver ---- */

static int live_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    size_t i = 0;
    while (i < MAX_LIVING && living.processes[i].used)
        i++;
    if (i == MAX_LIVING)
        return -ENOMEM;
    weft_driver_process *process = &living.processes[i];
    *process = (weft_driver_process){.host = host, .ctx = ctx, .loop = spec->loop, .grace_ms = spec->grace_ms, .used = true};
    weft__later_init(&process->end_later, die_later);
    weft__timer_init(&process->end_timer, die_due);
    sim_say("process %zu starts", i);
    *ret = process;
    return 0;
}

/* Ours are plain, and a plain string is read without memory. */
static void copy_word(char *into, size_t size, const weft_json *value) {
    weft_bytes text;
    into[0] = '\0';
    if (weft_bytes_of(value, &text) >= 0)
        snprintf(into, size, "%.*s", (int) text.len, text.data);
}

static int live_session(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host,
                        void *ctx, weft_driver_session **ret) {
    size_t i = 0;
    while (i < MAX_PLACES && living.places[i].used)
        i++;
    if (process->ending || i == MAX_PLACES)
        return process->ending ? -EPIPE : -ENOMEM;
    weft_driver_session *session = &living.places[i];
    *session =
        (weft_driver_session){.used = true, .process = process, .host = host, .ctx = ctx, .must_exist = spec->must_exist};
    if (spec->agent_session)
        snprintf(session->own, sizeof session->own, "%s", spec->agent_session);
    else
        snprintf(session->own, sizeof session->own, "live-%u", ++living.names);
    weft_json mode = spec->settings ? weft_get(spec->settings, "mode") : (weft_json){0};
    copy_word(session->mode, sizeof session->mode, &mode);
    if (*session->mode)
        sim_saw(SAW_SET_AGAIN);
    *ret = session;
    return 0;
}

/* It must run as was chosen: what the engine knows now, or what the agent was told since. */
static void check_mode(const weft_driver_session *session, const char *task) {
    const truth_task *known = truth_find(task);
    const char *mode = known ? hub_session_mode(known->session) : NULL;
    if (mode && !session->was_set && strcmp(mode, session->mode) != 0)
        sim_broken("wrong mode: %s runs with \"%s\", and \"%s\" was chosen", task, session->mode, mode);
}

static int live_prompt(weft_driver_session *session, const weft_turn_spec *spec) {
    weft_driver_process *process = session->process;
    if (session->run || session->opening)
        return -EBUSY;
    if (process->ending)
        return -EPIPE;
    session->opening = !spec->prompt;
    if (!spec->prompt)
        return 0;
    check_mode(session, spec->task);
    int r = sim_run_start(&(weft_run_spec){.loop = process->loop, .task = spec->task, .grace_ms = process->grace_ms},
                          &live_host, session, &session->run);
    if (r < 0)
        session->run = NULL;
    else if (++process->turns > 1)
        sim_saw(SAW_SECOND_TURN);
    if (turns_of(process) > 1)
        sim_saw(SAW_NEIGHBOURS);
    return r;
}

static int live_answer(weft_driver_session *session, const char *key, const char *option) {
    return session->run ? sim_run_answer(session->run, key, option) : -ENOENT;
}

static void live_stop(weft_driver_process *process, weft_driver_session *session, bool force) {
    if (process->over)
        return;
    if (session && session->run && !force) {
        sim_run_cancel(session->run, false);
        return;
    }
    process->ending = true;
    if (force || sim_chance(50))
        weft__later(process->loop, &process->end_later);
    else if (process->end_timer.due == INT64_MAX)
        weft__timer_set(process->loop, &process->end_timer,
                        weft_loop_now(process->loop) + sim_below((uint32_t) process->grace_ms));
}

static int live_set(weft_driver_session *session, const weft_session_setting *setting, weft_driver_done *done, void *ctx) {
    if (session->process->ending)
        return -EPIPE;
    if (!session->open)
        return session->run || session->opening ? -EAGAIN : -ENOTCONN;
    char mode[sizeof session->mode];
    copy_word(mode, sizeof mode, &setting->value);
    return want(session->process, session, mode, done, ctx);
}

static int live_list(weft_driver_process *process, const char *folder, const char *cursor, weft_driver_done *done,
                     void *ctx) {
    (void) folder, (void) cursor;
    return want(process, NULL, "", done, ctx);
}

static int live_remove(weft_driver_process *process, const char *own, weft_driver_done *done, void *ctx) {
    for (size_t i = 0; i < MAX_PLACES; i++)
        if (living.places[i].used && living.places[i].open && strcmp(living.places[i].own, own) == 0)
            sim_broken("deleted too soon: %s is open", own);
    return want(process, NULL, "", done, ctx);
}

static void live_pause(weft_driver_process *process, bool paused) {
    for (size_t i = 0; i < MAX_PLACES; i++)
        if (living.places[i].used && living.places[i].process == process && living.places[i].run)
            living.places[i].run->paused = paused;
}

static weft_driver_session *live_close(weft_driver_session *session) {
    drop_wanted(session->process, session);
    drop_run(session);
    session->used = false;
    return NULL;
}

static weft_driver_process *live_free(weft_driver_process *process) {
    for (size_t i = 0; i < MAX_PLACES; i++)
        if (living.places[i].used && living.places[i].process == process)
            live_close(&living.places[i]);
    drop_wanted(process, NULL);
    weft__later_cancel(&process->end_later);
    weft__timer_stop(process->loop, &process->end_timer);
    process->used = false;
    return NULL;
}

const weft_driver sim_living = {
    .name = "living",
    .open = live_open,
    .session = live_session,
    .prompt = live_prompt,
    .answer = live_answer,
    .stop = live_stop,
    .set = live_set,
    .list = live_list,
    .remove = live_remove,
    .pause = live_pause,
    .close = live_close,
    .free = live_free,
};

void sim_living_open(void) {
    memset(&living, 0, sizeof living);
}

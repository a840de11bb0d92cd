/* Agents that do what the seed says: they talk, ask, take a question back, end well or badly, crash, do not start, and when
 * they are asked to end they do so at once, soon, or only when their grace time is over. The only file that knows the
 * interface of drivers. */
#include "driver_single.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"
#include "sim.h"

#define MAX_RUNS 32
#define MAX_ASKS 4    /* of one run */
#define MAX_LINE 600  /* bytes of one output, about */
#define POLITE_MS 300 /* how long an agent that ends when it is asked to takes for it */

typedef struct ask {
    char key[SIM_NAME], title[64];
    bool open;
} ask;

struct weft_run {
    const weft_run_host *host;
    void *ctx;
    weft_loop *loop;
    int64_t grace_ms;
    char task[SIM_NAME];
    ask asks[MAX_ASKS];
    size_t ask_count;
    unsigned lines;
    bool named, ended, cancelled, paused;
    weft_timer end_timer;
    weft_later end_later;
};

/* What the agent of a task has said in the present attempt, and how much of it is stored. */
typedef struct said {
    char task[SIM_NAME];
    char *text;
    size_t len, stored;
    bool whole; /* it came to its end under this daemon */
    bool holed; /* memory was short when it said something */
} said;

static struct {
    weft_run *runs[MAX_RUNS];
    size_t count;
    said *said;
    size_t said_count;
    pid_t next_pid;
} agents;

/* ---- what was said ---- */

static said *said_by(const char *task) {
    for (size_t i = 0; i < agents.said_count; i++)
        if (strcmp(agents.said[i].task, task) == 0)
            return &agents.said[i];
    return NULL;
}

void driver_begin(const char *task) {
    said *found = said_by(task);
    if (!found) {
        agents.said = realloc(agents.said, (agents.said_count + 1) * sizeof *agents.said);
        if (!agents.said)
            abort();
        found = &agents.said[agents.said_count++];
        *found = (said){0};
        snprintf(found->task, sizeof found->task, "%s", task);
    }
    found->len = found->stored = 0;
    found->whole = found->holed = false;
}

void driver_check_output(const char *task, const char *text, size_t len) {
    said *by = said_by(task);
    if (by && by->holed)
        return;
    if (!by || len > by->len - by->stored || memcmp(by->text + by->stored, text, len) != 0)
        sim_broken("wrong output: %s said something else than was stored: %.80s", task, text);
    else
        by->stored += len;
}

void driver_check_end(const char *task, const char *reason) {
    const said *by = said_by(task);
    if (by && by->whole && !by->holed && by->stored < by->len && strcmp(reason, "daemonRestarted") != 0 &&
        strcmp(reason, "outOfMemory") != 0)
        sim_broken("lost output: %s ended, %zu of %zu bytes it said are stored", task, by->stored, by->len);
}

/* ---- ending ---- */

static void forget_run(const weft_run *run) {
    for (size_t i = 0; i < agents.count; i++)
        if (agents.runs[i] == run)
            agents.runs[i] = agents.runs[--agents.count];
}

static void end_run(weft_run *run, const weft_run_end *end) {
    if (run->ended)
        return;
    sim_say("agent   %s ends: %s", run->task, end->ok ? "ok" : end->reason);
    run->ended = true;
    said_by(run->task)->whole = true;
    weft__timer_stop(run->loop, &run->end_timer);
    weft__later_cancel(&run->end_later);
    run->host->on_end(run->ctx, end);
}

static void end_badly(weft_run *run, const char *reason, bool retryable) {
    end_run(run, &(weft_run_end){.reason = reason,
                                 .error = "it went wrong",
                                 .retryable = retryable,
                                 .exit_code = retryable ? 1 : -1,
                                 .signal = retryable ? 0 : 9});
}

static void end_well(weft_run *run) {
    end_run(run, &(weft_run_end){.ok = true, .stop_reason = "end_turn"});
}

static void end_due(weft_timer *timer) {
    end_badly(WEFT_CONTAINER(timer, weft_run, end_timer), "signalled", false);
}

static void end_soon(weft_later *later) {
    weft_run *run = WEFT_CONTAINER(later, weft_run, end_later);
    if (sim_chance(30))
        end_well(run);
    else
        end_badly(run, "signalled", false);
}

/* ---- what it does ---- */

static void say_line(weft_run *run) {
    char text[MAX_LINE + 64];
    said *by = said_by(run->task);
    int n = snprintf(text, sizeof text, "%s line %u ", run->task, run->lines++);
    size_t len = (size_t) n + sim_below(sim_chance(20) ? MAX_LINE : 20);
    memset(text + n, 'x', len - (size_t) n);
    text[len++] = '\n';
    by->text = realloc(by->text, by->len + len);
    if (!by->text)
        abort();
    memcpy(by->text + by->len, text, len);
    by->len += len;
    run->host->on_output(run->ctx, sim_chance(80) ? WEFT_RUN_STDOUT : WEFT_RUN_STDERR, (weft_bytes){text, len});
    by->holed |= sim_memory_failed();
}

static void say_update(weft_run *run) {
    static const char text[] = "{\"sessionUpdate\":\"plan\",\"entries\":[]}";
    weft_doc *doc;
    if (weft_doc_parse(text, sizeof text - 1, NULL, &doc) < 0)
        abort();
    run->host->on_update(run->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
}

/* The title is the same in every attempt, so that a question of an earlier daemon's is found again. */
static void ask_something(weft_run *run) {
    if (run->ask_count == MAX_ASKS)
        return;
    ask *made = &run->asks[run->ask_count];
    snprintf(made->key, sizeof made->key, "key-%zu", run->ask_count);
    snprintf(made->title, sizeof made->title, "%s asks %zu", run->task, run->ask_count);
    made->open = true;
    run->ask_count++;
    sim_say("agent   %s", made->title);
    run->host->on_ask(
        run->ctx, made->key,
        WEFT_OBJ({"kind", weft_str("permission")}, {"title", weft_str(made->title)},
                 {"options",
                  WEFT_ARR(WEFT_OBJ({"id", weft_str("yes")}, {"name", weft_str("Yes")}, {"kind", weft_str("allow_once")}),
                           WEFT_OBJ({"id", weft_str("no")}, {"name", weft_str("No")}, {"kind", weft_str("reject_once")}))},
                 {"detail", WEFT_OBJ({"toolCallId", weft_str("call")})}));
}

static void take_back(weft_run *run) {
    for (size_t i = 0; i < run->ask_count; i++)
        if (run->asks[i].open) {
            sim_say("agent   %s no longer asks %zu", run->task, i);
            run->asks[i].open = false;
            run->host->on_unask(run->ctx, run->asks[i].key);
            return;
        }
}

static void name_itself(weft_run *run) {
    char session[SIM_NAME + 8];
    if (run->named)
        return;
    run->named = true;
    snprintf(session, sizeof session, "own-%s", run->task);
    run->host->on_process(run->ctx, ++agents.next_pid);
    run->host->on_session(run->ctx, session);
}

static void act(weft_run *run) {
    uint32_t what = sim_below(100);
    if (what < 45) {
        if (!run->paused)
            say_line(run);
    } else if (what < 50)
        say_update(run);
    else if (what < 58)
        name_itself(run);
    else if (what < 76)
        ask_something(run);
    else if (what < 80)
        take_back(run);
    else if (what < 92)
        end_well(run);
    else
        end_badly(run, what < 97 ? "exited" : "refused", what < 97);
}

static weft_run *any_run(void) {
    weft_run *running[MAX_RUNS];
    size_t count = 0;
    for (size_t i = 0; i < agents.count; i++)
        if (!agents.runs[i]->ended)
            running[count++] = agents.runs[i];
    return count ? running[sim_below((uint32_t) count)] : NULL;
}

static bool living_step(void);

void driver_step(void) {
    if (driver_waiting() && sim_chance(50) && living_step())
        return;
    weft_run *run = any_run();
    if (run)
        act(run);
}

void driver_finish(void) {
    while (living_step())
        ;
    weft_run *run = any_run();
    if (run)
        end_well(run);
}

size_t driver_runs(void) {
    size_t count = 0;
    for (size_t i = 0; i < agents.count; i++)
        count += !agents.runs[i]->ended;
    return count;
}

static size_t living_count(void);

void driver_killed(void) {
    if (agents.count || living_count())
        sim_broken("left behind: %zu runs and %zu processes are there after the engine has gone", agents.count,
                   living_count());
}

/* ---- the driver ---- */

static void check_start(const weft_run_spec *spec) {
    const truth_task *task = truth_find(spec->task);
    if (!task || task->state != TRUTH_RUNNING)
        sim_broken("started too soon: %s runs, and the disk does not know it", spec->task);
    for (size_t i = 0; i < agents.count; i++)
        if (!agents.runs[i]->ended && strcmp(agents.runs[i]->task, spec->task) == 0)
            sim_broken("two runs: %s runs already", spec->task);
    if (driver_runs() >= hub_max_running(NULL))
        sim_broken("too many run: %s was started while %zu do", spec->task, driver_runs());
}

static int start_run(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret) {
    check_start(spec);
    if (sim_chance(4)) {
        int r = sim_chance(50) ? -ENOENT : -EAGAIN;
        sim_say("agent   %s does not start: %d", spec->task, r);
        return r;
    }
    weft_run *run = agents.count < MAX_RUNS ? calloc(1, sizeof *run) : NULL;
    if (!run)
        return -ENOMEM;
    run->host = host;
    run->ctx = ctx;
    run->loop = spec->loop;
    run->grace_ms = spec->grace_ms;
    snprintf(run->task, sizeof run->task, "%s", spec->task);
    weft__timer_init(&run->end_timer, end_due);
    weft__later_init(&run->end_later, end_soon);
    agents.runs[agents.count++] = run;
    sim_say("agent   %s starts", run->task);
    *ret = run;
    return 0;
}

static void check_answer(const weft_run *run, const ask *asked, const char *option) {
    const truth_question *question = truth_question_titled(run->task, asked->title);
    if (!option)
        return;
    if (!question || strcmp(question->end, "answered") != 0 || strcmp(question->option, option) != 0)
        sim_broken("two winners: %s was told %s, and the disk says %s %s", asked->title, option,
                   question ? question->end : "nothing", question ? question->option : "");
}

static int answer_run(weft_run *run, const char *key, const char *option) {
    for (size_t i = 0; i < run->ask_count; i++) {
        ask *asked = &run->asks[i];
        if (strcmp(asked->key, key) != 0)
            continue;
        sim_say("agent   %s is told %s", asked->title, option ? option : "nothing");
        if (!asked->open)
            return -ENOENT;
        asked->open = false;
        check_answer(run, asked, option);
        return 0;
    }
    sim_broken("wrong answer: %s did not ask %s", run->task, key);
    return -ENOENT;
}

static void cancel_run(weft_run *run, bool force) {
    uint32_t how = sim_below(3);
    sim_say("agent   %s is asked to end%s", run->task, force ? " now" : "");
    if (run->ended)
        return;
    run->cancelled = true;
    if (force || how == 0)
        weft__later(run->loop, &run->end_later); /* in this turn */
    else if (run->end_timer.due == INT64_MAX)
        weft__timer_set(run->loop, &run->end_timer,
                        weft_loop_now(run->loop) + (how == 1 ? sim_below(POLITE_MS) : (uint32_t) run->grace_ms));
}

static void pause_run(weft_run *run, bool paused) {
    run->paused = paused;
}

static weft_run *free_run(weft_run *run) {
    weft__timer_stop(run->loop, &run->end_timer);
    weft__later_cancel(&run->end_later);
    forget_run(run);
    free(run);
    return NULL;
}

static const weft_single sim_runs = {
    .start = start_run,
    .answer = answer_run,
    .cancel = cancel_run,
    .pause = pause_run,
    .free = free_run,
};

static int open_sim(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    return weft__single_open(&sim_runs, spec, host, ctx, ret);
}

const weft_driver sim_driver = {.name = "sim", .open = open_sim, WEFT_SINGLE};

/* ---- agents that live ---- */

/* Several turns in a process, one after the other and side by side. Each turn is a run as above, with this between it and
 * the engine. What is asked of an agent besides is answered in a later step, or when its process dies. */

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

static size_t living_count(void) {
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
    if (run && !run->ended)
        said_by(run->task)->whole = true;
    if (run)
        free_run(run);
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
    process->host->on_process(process->ctx, ++agents.next_pid);
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
static bool living_step(void) {
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
    if (weft_text(value, &text) >= 0)
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
    int r = start_run(&(weft_run_spec){.loop = process->loop, .task = spec->task, .grace_ms = process->grace_ms}, &live_host,
                      session, &session->run);
    if (r < 0)
        session->run = NULL;
    else if (++process->turns > 1)
        sim_saw(SAW_SECOND_TURN);
    if (turns_of(process) > 1)
        sim_saw(SAW_NEIGHBOURS);
    return r;
}

static int live_answer(weft_driver_session *session, const char *key, const char *option) {
    return session->run ? answer_run(session->run, key, option) : -ENOENT;
}

static void live_stop(weft_driver_process *process, weft_driver_session *session, bool force) {
    if (process->over)
        return;
    if (session && session->run && !force) {
        cancel_run(session->run, false);
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

/* ---- life ---- */

void driver_open(void) {
    memset(&agents, 0, sizeof agents);
    memset(&living, 0, sizeof living);
}

void driver_forget(void) {
    for (size_t i = 0; i < agents.said_count; i++)
        free(agents.said[i].text);
    free(agents.said);
    agents.said = NULL;
    agents.said_count = 0;
}

void driver_close(void) {
    driver_killed();
    driver_forget();
    memset(&agents, 0, sizeof agents);
}

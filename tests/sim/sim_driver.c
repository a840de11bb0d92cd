/* Agents that do what the seed says: they talk, ask, take a question back, end well or badly, crash, do not start, and when
 * they are asked to end they do so at once, soon, or only when their grace time is over. This file and sim_living.c are the
 * only ones that know the interface of drivers. */
#include "sim_driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RUNS 32
#define MAX_LINE 600  /* bytes of one output, about */
#define POLITE_MS 300 /* how long an agent that ends when it is asked to takes for it */

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

void driver_step(void) {
    if (driver_waiting() && sim_chance(50) && sim_living_step())
        return;
    weft_run *run = any_run();
    if (run)
        act(run);
}

void driver_finish(void) {
    while (sim_living_step())
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

void driver_killed(void) {
    if (agents.count || sim_living_count())
        sim_broken("left behind: %zu runs and %zu processes are there after the engine has gone", agents.count,
                   sim_living_count());
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

int sim_run_start(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret) {
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

int sim_run_answer(weft_run *run, const char *key, const char *option) {
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

void sim_run_cancel(weft_run *run, bool force) {
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

weft_run *sim_run_free(weft_run *run) {
    weft__timer_stop(run->loop, &run->end_timer);
    weft__later_cancel(&run->end_later);
    forget_run(run);
    free(run);
    return NULL;
}

void sim_run_dropped(weft_run *run) {
    if (!run->ended)
        said_by(run->task)->whole = true;
    sim_run_free(run);
}

pid_t sim_next_pid(void) {
    return ++agents.next_pid;
}

static const weft_single sim_runs = {
    .start = sim_run_start,
    .answer = sim_run_answer,
    .cancel = sim_run_cancel,
    .pause = pause_run,
    .free = sim_run_free,
};

static int open_sim(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    return weft__single_open(&sim_runs, spec, host, ctx, ret);
}

const weft_driver sim_driver = {.name = "sim", .open = open_sim, WEFT_SINGLE};

/* ---- life ---- */

void driver_open(void) {
    memset(&agents, 0, sizeof agents);
    sim_living_open();
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

/* One turn of an agent, for one attempt of a task: started when task.started was delivered, over when the event of its end
 * was. What the driver tells goes to the outbox in the order it came; the end is stored after everything else was, or in
 * one append with the last of it.
 *
 *     starts ──on_end, or it never started──▶ ended ──outbox empty, or goes with it──▶ closing ──stored──▶ freed
 *
 * A run that is asked to end (cancel, timeout, stop) ends the same way; what it was asked for decides how the task ends,
 * whatever the driver says of it. */
#include "run.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "context.h"

#define RETRY_MAX_MS 60000
#define USAGE_BYTES 4096                 /* of one event */
#define UPDATE_BYTES ((size_t) 24 << 20) /* of one update: it must fit into an event with its frame */

void weft__run_soon(struct run *run) {
    weft__later(run->engine->loop, &run->later);
}

bool weft__run_is_ending(const struct run *run) {
    return run->ended;
}

/* ---- ending it ---- */

static void stop_turn(struct run *run, run_stop why, bool force) {
    if (run->ended)
        return;
    if (run->stop == GOES_ON)
        run->stop = why;
    weft__run_stop_terminals(run);
    if (run->turn)
        weft__pool_cancel(run->turn, force);
    else if (weft__run_worktree_stop(run) || weft__run_changes_stop(run))
        weft__run_ended(run, &(weft_turn_end){.exit_code = -1});
}

void weft__run_cancel(struct run *run) {
    stop_turn(run, CANCELLED, false);
}

void weft__run_stop(struct run *run, bool force) {
    run->task->pub.stopping = true;
    stop_turn(run, DAEMON_STOPS, force);
    if (force)
        weft__run_changes_give_up(run);
}

static void on_run_timeout(weft_timer *timer) {
    struct run *run = WEFT_CONTAINER(timer, struct run, timeout);
    run->task->pub.stopping = true;
    stop_turn(run, TIMED_OUT, false);
}

/* ---- saying nothing ---- */

static void heard_something(struct run *run) {
    weft_engine *engine = run->engine;
    if (run->task->pub.quiet_ms && !run->ended)
        weft__timer_set(engine->loop, &run->quiet,
                        weft__add_ms(weft__loop_fresh_now(engine->loop), run->task->pub.quiet_ms));
}

/* A person is asked, and may take as long as it takes. */
static bool waits_for_person(const struct run *run) {
    const weft_engine *engine = run->engine;
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        const known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->run == run && question->pub.state == WEFT_QUESTION_OPEN)
            return true;
    }
    return false;
}

/* Nor is it silent when nobody reads what it says. */
static void on_run_quiet(weft_timer *timer) {
    struct run *run = WEFT_CONTAINER(timer, struct run, quiet);
    if (run->paused || waits_for_person(run)) {
        heard_something(run);
        return;
    }
    run->fell_quiet = run->stop == GOES_ON;
    run->task->pub.stopping = true;
    stop_turn(run, TIMED_OUT, false);
}

/* Something it said could not be kept: better no run than one with a hole. */
void weft__run_kept(struct run *run, int r) {
    if (r < 0) {
        weft__note(run->engine, "%s: out of memory, it is being ended", run->task->id);
        run->stop = run->stop == GOES_ON ? MEMORY_SHORT : run->stop;
        run->deaf = weft__task_is_lent(run->task);
        run->kill = true; /* not from within the driver's own call */
        weft__run_soon(run);
    }
}

/* ---- what the driver tells ---- */

void weft__run_process(struct run *run, pid_t pid) {
    weft__run_kept(run,
                   weft__outbox_event(run, true, "task.process",
                                      WEFT_OBJ({"taskId", weft_str(run->task->id)},
                                               {"sessionId", weft_str(run->task->pub.session)}, {"pid", weft_int(pid)})));
}

/* That a session which had no name for its agent still has none is no news. */
void weft__run_session(struct run *run, const weft_session_info *info) {
    const known_session *session = run->task->session;
    if (!info->agent_session && session && !session->pub.agent_session)
        return;
    weft__run_kept(run, weft__outbox_event(run, true, "session.agent",
                                           WEFT_OBJ({"sessionId", weft_str(run->task->pub.session)},
                                                    {"agentSessionId", weft_str_or_none(info->agent_session)})));
}

void weft__run_output(struct run *run, weft_run_stream stream, weft_bytes text) {
    heard_something(run);
    weft__run_kept(run, weft__outbox_output(run, stream, text));
}

int weft__run_put_update(struct run *run, weft_val update) {
    return weft__outbox_event(run, false, "session.update",
                              WEFT_OBJ({"sessionId", weft_str(run->task->pub.session)}, {"taskId", weft_str(run->task->id)},
                                       {"attempt", weft__later_attempt(run)}, {"update", update}));
}

void weft__task_note(weft_engine *engine, const char *id, const char *line) {
    const known_task *task = weft__task_known(engine, id);
    if (task && task->run && !task->run->ended)
        weft__run_output(task->run, WEFT_RUN_STDERR, (weft_bytes){line, strlen(line)});
}

/* Not from within the driver's own call. */
static void check_cost(struct run *run) {
    if (run->stop != GOES_ON || *run->over || !run->cost_now.currency[0])
        return;
    if (weft__cost_task_is_over(run, run->over, sizeof run->over) ||
        weft__cost_day_is_over(run->engine, run->over, sizeof run->over))
        weft__run_soon(run);
}

void weft__run_update(struct run *run, const weft_json *update) {
    if (update->len > UPDATE_BYTES) {
        char line[120];
        run->cut = true;
        int n = snprintf(line, sizeof line, "an update of %zu bytes is too large to be kept\n", update->len);
        weft__run_kept(run, weft__outbox_output(run, WEFT_RUN_STDERR, (weft_bytes){line, (size_t) n}));
        return;
    }
    heard_something(run);
    weft__usage_of_update(run, update);
    check_cost(run);
    weft_buf shown = {0};
    int r = weft__run_show_terminals(run, update, &shown);
    if (r >= 0)
        r = weft__run_put_update(run, r ? weft_raw(weft__buf_head(&shown), weft__buf_len(&shown)) : weft_copy(update));
    weft__buf_done(&shown, run->engine->alloc);
    weft__run_kept(run, r);
}

void weft__run_usage(struct run *run, const weft_json *usage) {
    if (usage->len > USAGE_BYTES)
        return;
    weft__usage_of_turn(run, usage);
    weft__run_kept(run, weft__outbox_event(run, false, "session.usage",
                                           WEFT_OBJ({"sessionId", weft_str(run->task->pub.session)},
                                                    {"taskId", weft_str(run->task->id)}, {"usage", weft_copy(usage)})));
}

void weft__run_result(struct run *run, const weft_json *result) {
    const known_task *task = run->task;
    if (result->len > UPDATE_BYTES) {
        run->cut = true;
        return;
    }
    weft__run_kept(run,
                   weft__outbox_event(run, false, "session.result",
                                      WEFT_OBJ({"sessionId", weft_str(task->pub.session)}, {"taskId", weft_str(task->id)},
                                               {"attempt", weft_int(task->pub.attempt)}, {"result", weft_copy(result)})));
}

void weft__run_told(struct run *run, uint64_t at) {
    if (weft__outbox_mark(run, at) && run->turn)
        weft__pool_kept(run->turn, at);
}

void weft__run_elicited(struct run *run, const char *elicitation) {
    weft__run_kept(
        run, weft__outbox_event(run, false, "session.elicited",
                                WEFT_OBJ({"sessionId", weft_str(run->task->pub.session)},
                                         {"taskId", weft_str(run->task->id)}, {"elicitationId", weft_str(elicitation)})));
}

static void copy_end(struct run *run, const weft_turn_end *end) {
    const char *from[] = {end->reason, end->error, end->stop_reason};
    const char **to[] = {&run->reason, &run->error, &run->stop_reason};
    size_t size = 1;
    for (size_t i = 0; i < 3; i++)
        size += from[i] ? strlen(from[i]) + 1 : 0;
    char *at = run->end_text = weft__alloc(run->engine->alloc, size);
    for (size_t i = 0; at && i < 3; i++) {
        if (!from[i])
            continue;
        *to[i] = memcpy(at, from[i], strlen(from[i]) + 1);
        at += strlen(from[i]) + 1;
    }
    run->ok = end->ok;
    run->retryable = end->retryable;
    run->cut = run->cut || end->cut;
    run->exit_code = end->exit_code;
    run->signal = end->signal;
}

static void end_run(struct run *run) {
    weft__run_end_terminals(run);
    run->turn = NULL;
    run->ended = true;
    weft__timer_stop(run->engine->loop, &run->timeout);
    weft__timer_stop(run->engine->loop, &run->quiet);
    weft__run_soon(run);
}

void weft__run_ended(struct run *run, const weft_turn_end *end) {
    copy_end(run, end);
    end_run(run);
}

void weft__run_leaves(struct run *run, const weft_turn_end *end) {
    weft__run_end_terminals(run);
    copy_end(run, end);
}

void weft__run_left(struct run *run, int exit_code, int signal) {
    run->exit_code = exit_code;
    run->signal = signal;
    end_run(run);
}

/* ---- start ---- */

/* It never ran: an end like any other. */
static void not_started(struct run *run, int r) {
    char error[600];
    const weft_agent *agent = run->agent;
    const char *name = run->task->pub.runs_on;
    bool left = run->task->pub.role && (!agent || r == -EPIPE); /* between its choice and its start */
    bool full = run->task->pub.role && r == -ENOBUFS;           /* its connection, or what was sent to it waits */
    if (left)
        snprintf(error, sizeof error, "%s has left before it began.", name);
    else if (full)
        snprintf(error, sizeof error, "%s does not read what it is sent.", name);
    else if (!agent)
        snprintf(error, sizeof error, "The agent %s is no longer configured.", name);
    else if (r == -ENOTSUP)
        snprintf(error, sizeof error, "The agent %s needs the driver %s, which is not there.", name, agent->driver);
    else if (r == -ENOTDIR)
        snprintf(error, sizeof error, "The folder of its session is not there any more, or leads elsewhere.");
    else if (r == -ENOENT)
        snprintf(error, sizeof error, "%s is not installed.%s%s",
                 agent->argv && agent->argv[0] && !agent->preset ? agent->argv[0] : name, agent->advice ? " " : "",
                 agent->advice ? agent->advice : "");
    else
        snprintf(error, sizeof error, "%s could not be started: %s", name, weft_strerror(r));
    bool passing = left || full || r == -EAGAIN || r == -ENOMEM || r == -EMFILE || r == -ENFILE;
    weft__run_ended(run, &(weft_turn_end){.retryable = passing, .reason = "spawnFailed", .error = error, .exit_code = -1});
}

/* Behind the prompt, so that it is right also for an agent that has lost the conversation after all. */
static const char go_on[] =
    "\n\n(The hub was restarted while you worked on this, and you were interrupted. What was said and "
    "done before is in this conversation. Look at what is done already, and go on with the rest.)";

static int start_turn(struct run *run) {
    weft_engine *engine = run->engine;
    const weft_task *task = &run->task->pub;
    char *told = NULL;
    weft_buf longer = {0};
    if (!run->agent)
        return -ENOTSUP;
    int r = task->role && task->prompt ? weft__context_prompt(engine, task->prompt, &told) : 0;
    const char *prompt = told ? told : task->prompt;
    if (r >= 0 && run->task->resumes && prompt) {
        r = weft__buf_put(&longer, engine->alloc, prompt, strlen(prompt));
        if (r >= 0)
            r = weft__buf_put(&longer, engine->alloc, go_on, sizeof go_on);
        prompt = weft__buf_head(&longer);
    }
    if (r >= 0)
        r = weft__pool_prompt(
            engine, run,
            &(weft_turn_spec){
                .task = task->id,
                .prompt = prompt,
                .persona = task->agent && !weft__agent_find(engine->agents, task->agent) ? task->agent : NULL,
                .metadata = task->metadata,
                .traceparent = task->traceparent,
                .tracestate = task->tracestate,
                .lease = run->task->lease,
                .lease_at = run->task->lease_at,
            },
            &run->turn);
    weft__buf_done(&longer, engine->alloc);
    weft__free(engine->alloc, told);
    return r;
}

static void look_after_run(weft_later *later);
static void on_run_retry(weft_timer *timer) {
    weft__run_soon(WEFT_CONTAINER(timer, struct run, again));
}

static struct run *new_run(weft_engine *engine, known_task *task) {
    struct run *made = weft__zalloc(engine->alloc, sizeof *made);
    if (!made)
        return NULL;
    made->engine = engine;
    made->task = task;
    made->agent = weft__agent_known(engine, task->pub.runs_on);
    made->exit_code = -1;
    weft__list_init(&made->outbox);
    weft__list_init(&made->sent);
    weft__list_init(&made->refusals);
    weft__timer_init(&made->timeout, on_run_timeout);
    weft__timer_init(&made->quiet, on_run_quiet);
    weft__timer_init(&made->again, on_run_retry);
    weft__later_init(&made->later, look_after_run);
    return task->run = made;
}

/* It is running as far as anybody knows, so it is tried again until there is memory. */
static void start_again(weft_engine *engine) {
    weft__again(engine, &engine->again, -ENOMEM);
}

void weft__run_start(weft_engine *engine, known_task *task) {
    struct run *run = new_run(engine, task);
    if (!run) {
        start_again(engine);
        return;
    }
    if (task->pub.stopping) {
        run->stop = weft__list_empty(&task->waiters) ? DAEMON_STOPS : CANCELLED;
        weft__run_ended(run, &(weft_turn_end){.exit_code = -1});
        return;
    }
    if (weft__cost_task_is_over(run, run->over, sizeof run->over) ||
        weft__cost_day_is_over(engine, run->over, sizeof run->over)) {
        run->stop = COST_LIMIT;
        weft__run_ended(run, &(weft_turn_end){.exit_code = -1});
        return;
    }
    if (weft__task_is_lent(task)) /* its files are elsewhere */
        weft__run_go_on(run);
    else if (!weft__run_worktree_begin(run))
        weft__run_begin(run);
}

void weft__run_begin(struct run *run) {
    if (!weft__run_changes_begin(run))
        weft__run_go_on(run);
}

void weft__run_go_on(struct run *run) {
    weft_engine *engine = run->engine;
    const known_task *task = run->task;
    /* Who was to do it may have left while the snapshot was taken. */
    run->agent = weft__agent_known(engine, task->pub.runs_on);
    if (weft__task_is_lent(task) && run->agent && !run->agent->runner)
        run->agent = NULL; /* what was to run elsewhere does not run here, whatever the journal says */
    int r = start_turn(run);
    if (r == -ENOMEM) {
        weft__run_free(run);
        start_again(engine);
        return;
    }
    if (r < 0) {
        not_started(run, r);
        return;
    }
    if (task->pub.timeout_ms >= 0)
        weft__timer_set(engine->loop, &run->timeout, weft__add_ms(weft__loop_fresh_now(engine->loop), task->pub.timeout_ms));
    heard_something(run);
}

struct run *weft__run_free(struct run *run) {
    if (!run)
        return NULL;
    weft_engine *engine = run->engine;
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->run == run)
            question->run = NULL;
    }
    if (run->turn)
        weft__pool_forget_run(run->turn);
    run->turn = NULL;
    weft__snapshot_cancel(&run->changes.wait);
    weft__setup_drop(run);
    weft__timer_stop(engine->loop, &run->timeout);
    weft__timer_stop(engine->loop, &run->quiet);
    weft__timer_stop(engine->loop, &run->again);
    weft__later_cancel(&run->later);
    weft__run_drop_terminals(run);
    weft__outbox_drop(run);
    weft__run_tell_refusals(run);
    run->task->run = NULL;
    weft__usage_done(run);
    weft__free(engine->alloc, run->end_text);
    weft__free(engine->alloc, run);
    weft__guests_tidy(engine);
    return NULL;
}

/* ---- the end ---- */

typedef struct outcome {
    const char *type, *reason;
    char error[200];
    const char *error_text;
    int64_t delay_ms;
} outcome;

static void failed_with(outcome *ret, const char *reason, const char *error) {
    ret->type = "task.failed";
    ret->reason = reason;
    ret->error_text = error;
}

static void took_too_long(const struct run *run, outcome *ret) {
    int64_t ms = run->fell_quiet ? run->task->pub.quiet_ms : run->task->pub.timeout_ms;
    snprintf(ret->error, sizeof ret->error, "%s %lld %s.", run->fell_quiet ? "It said nothing for" : "It took longer than",
             (long long) (ms >= 1000 ? ms / 1000 : ms), ms >= 1000 ? "s" : "ms");
    failed_with(ret, "timedOut", ret->error);
}

/* Of tasks for a role many may fail at once, because a holder has gone: each waits between half of the time and all of it,
 * so that they do not come back together. It follows from the task, so that a simulation can repeat it. */
static int64_t jitter(const weft_task *task, int64_t ms) {
    uint64_t x = (task->number << 8) + (uint64_t) task->attempt;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ms - (int64_t) ((x ^ (x >> 31)) % (uint64_t) (ms / 2 + 1));
}

static int64_t delay_of(const struct run *run) {
    int64_t ms = run->engine->limits.retry_ms;
    for (int64_t i = 1; i < run->task->pub.attempt && ms < RETRY_MAX_MS; i++)
        ms *= 2;
    ms = ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS;
    return run->task->pub.role ? jitter(&run->task->pub, ms) : ms;
}

static void decide_outcome(const struct run *run, outcome *ret) {
    *ret = (outcome){.type = "task.completed"};
    if (run->stop == CANCELLED)
        ret->type = "task.cancelled";
    else if (run->stop == TIMED_OUT)
        took_too_long(run, ret);
    else if (run->stop == COST_LIMIT)
        failed_with(ret, "costLimit", run->over);
    else if (run->stop == DAEMON_STOPS) {
        failed_with(ret, "daemonStopped", "The daemon stopped while it ran.");
        if (weft__task_survives(run->task)) /* it waits for the next start, as after a crash */
            ret->type = "task.retrying";
    } else if (run->stop == MEMORY_SHORT)
        failed_with(ret, "outOfMemory", "Out of memory.");
    else if (!run->ok && *run->denied && run->reason && strcmp(run->reason, "cancelled") == 0)
        failed_with(ret, run->no_reason, run->denied);
    else if (!run->ok)
        failed_with(ret, run->reason ? run->reason : "failed", run->error && *run->error ? run->error : "It failed.");
    if (run->stop == GOES_ON && !run->ok && run->retryable && run->task->pub.attempt <= run->task->pub.retries) {
        ret->type = "task.retrying";
        ret->delay_ms = delay_of(run);
    }
}

static void draft_end(struct draft *draft, const struct run *run, const outcome *end, const run_said *said) {
    const known_task *task = run->task;
    bool completed = strcmp(end->type, "task.completed") == 0, failed = strcmp(end->type, "task.failed") == 0;
    bool cancelled = !completed && !failed;
    const char *text = weft__buf_head(&said->text);
    weft_bytes tail = weft__text_end(text ? text : "", weft__buf_len(&said->text), WEFT_TASK_TAIL);
    usage_parts usage;
    weft__draft_add(
        draft, WEFT_STREAM_HUB, end->type,
        WEFT_OBJ({"taskId", weft_str(task->pub.id)}, {"sessionId", weft_str(task->pub.session)},
                 {"by", cancelled ? weft_str_or_none(task->by) : weft_none()}, {"error", weft_str_or_none(end->error_text)},
                 {"reason", weft_str_or_none(end->reason)}, {"stopReason", weft_str_or_none(run->stop_reason)},
                 {"exitCode", run->exit_code >= 0 ? weft_int(run->exit_code) : weft_none()},
                 {"signal", failed && run->signal ? weft_int(run->signal) : weft_none()},
                 {"usage", weft__usage_val(run, &usage)}, {"output", weft_strn(tail.data, tail.len)},
                 {"outputBytes", weft_uint(said->bytes)}, {"outputFrom", said->from ? weft_uint(said->from) : weft_none()},
                 {"outputTo", said->from ? weft_uint(said->to) : weft_none()},
                 {"outputTruncated", run->cut || task->pub.output_cut ? weft_bool(true) : weft_none()}));
}

/* The task runs again at the next start. What it asks stays open until then, and is its own when it asks the same. */
static bool asks_again(const struct run *run) {
    return run->stop == DAEMON_STOPS && weft__task_survives(run->task);
}

/* An answer that is given before the next start is kept for it. */
static void draft_orphans(struct draft *draft, const struct run *run) {
    weft_engine *engine = run->engine;
    for (weft_link *link = engine->all_questions.next; link != &engine->all_questions; link = link->next) {
        const known_question *question = WEFT_CONTAINER(link, known_question, link);
        if (question->run == run && question->stored && question->pub.state == WEFT_QUESTION_OPEN)
            weft__draft_add(draft, WEFT_STREAM_HUB, "question.orphaned", WEFT_OBJ(WEFT_OF_QUESTION(question)));
    }
}

static void draft_retry(struct draft *draft, const struct run *run, const outcome *end, const run_said *said) {
    (void) said;
    usage_parts usage;
    weft__draft_add(draft, WEFT_STREAM_HUB, end->type,
                    WEFT_OBJ({"taskId", weft_str(run->task->id)}, {"sessionId", weft_str(run->task->pub.session)},
                             {"attempt", weft_int(run->task->pub.attempt)}, {"delayMs", weft_int(end->delay_ms)},
                             {"error", weft_str_or_none(end->error_text)}, {"reason", weft_str_or_none(end->reason)},
                             {"resumes", asks_again(run) && weft__task_resumes(run->task) ? weft_bool(true) : weft_none()},
                             {"usage", weft__usage_val(run, &usage)}));
}

/* The event is stored and applied: the task is over, or queued again, and the run is done with. */
static void on_outcome_stored(void *ctx, int r) {
    struct run *run = ctx;
    weft_engine *engine = run->engine;
    known_task *task = run->task;
    engine->ends--;
    run->closing = false;
    if (engine->phase == GONE)
        return;
    if (r < 0 && engine->phase != STOPPING) {
        weft__again(engine, &run->again, r);
        return;
    }
    if (r < 0) {
        /* It is running as far as the journal knows: the next start will tell the truth. */
        weft__note(engine, "%s: its end could not be stored: %s", task->id, weft_strerror(r));
        weft__list_remove(&task->slot);
    }
    weft__run_free(run);
    if (r < 0)
        weft__waiters_run(engine, &task->waiters, r, NULL);
    weft__task_settle(engine, task);
    /* Somebody asked for its end between two attempts. The next one may be about to start already. */
    if (r >= 0 && task->pub.state == WEFT_TASK_QUEUED && !weft__list_empty(&task->waiters))
        weft__task_cancel_waiting(engine, task);
    weft__queue_run(engine);
    weft__stop_check(engine);
}

static void on_rest_stored(void *ctx, int r) {
    struct run *run = ctx;
    weft_engine *engine = run->engine;
    weft__outbox_closed(run, r);
    if (r >= 0) {
        on_outcome_stored(run, 0);
        return;
    }
    engine->ends--;
    run->closing = false;
}

/* What the task has said up to now, as far as it is stored, and then with what waits. */
static void draft_rest(struct draft *draft, struct run *run, bool together, run_said *said) {
    const known_task *task = run->task;
    *said = (run_said){.bytes = task->pub.output_bytes, .from = task->output_from, .to = task->output_to};
    if (task->pub.tail.len)
        draft->r = weft__buf_put(&said->text, run->engine->alloc, task->pub.tail.data, task->pub.tail.len);
    if (together)
        weft__outbox_close(run, draft, said);
}

static void close_run(struct run *run) {
    weft_engine *engine = run->engine;
    struct draft draft = {.engine = engine};
    bool together = !weft__outbox_empty(run);
    run_said said;
    outcome end;
    if (run->lost < 0) {
        /* An end would say that what is stored is all it said. The next start fails it or queues it again. */
        run->closing = true;
        engine->ends++;
        on_outcome_stored(run, run->lost);
        return;
    }
    draft_rest(&draft, run, together, &said);
    decide_outcome(run, &end);
    bool retries = strcmp(end.type, "task.retrying") == 0;
    (retries ? draft_retry : draft_end)(&draft, run, &end, &said);
    if (asks_again(run))
        draft_orphans(&draft, run);
    run->closing = true;
    engine->ends++;
    int r = weft__draft_send(&draft, NULL, together ? on_rest_stored : on_outcome_stored, run);
    weft__buf_done(&said.text, engine->alloc);
    if (r >= 0)
        return;
    if (together) {
        on_rest_stored(run, r);
        return;
    }
    engine->ends--;
    run->closing = false;
    weft__again(engine, &run->again, r);
}

/* Nothing of it is on its way, and no failure is waited out. */
static bool may_close(const struct run *run) {
    return !run->closing && run->again.due == INT64_MAX && (weft__outbox_empty(run) || weft__outbox_may_close(run));
}

void weft__run_let_go(struct run *run) {
    run->task->letting_go = true;
    weft__run_soon(run);
}

/* What is not stored yet is told again by its runner. An end that came is stored first. */
static bool let_go_now(struct run *run) {
    weft_engine *engine = run->engine;
    if (!run->task->letting_go || run->ended || run->closing)
        return false;
    if (run->sending)
        return true;
    if (run->turn)
        weft__pool_let_go(run->turn);
    run->turn = NULL;
    weft__run_free(run);
    weft__stop_check(engine);
    return true;
}

/* A flat list of steps; each is harmless when there is nothing to do. */
static void look_after_run(weft_later *later) {
    struct run *run = WEFT_CONTAINER(later, struct run, later);
    if (let_go_now(run))
        return;
    if (run->ended && !run->withdrawn) {
        run->withdrawn = true;
        if (!asks_again(run))
            weft__question_withdraw_all(run->engine, run->task->id);
    }
    if (*run->over && run->stop == GOES_ON && !run->ended) {
        run->task->pub.stopping = true;
        stop_turn(run, COST_LIMIT, false);
    }
    if (run->kill && run->turn)
        weft__pool_cancel(run->turn, true);
    run->kill = false;
    weft__run_tell_refusals(run);
    bool settled = !run->ended || weft__run_changes_end(run);
    if (run->ended && settled && may_close(run))
        close_run(run);
    else
        weft__outbox_flush(run);
}

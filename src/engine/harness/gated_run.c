/* What happens next in a gated task. Everything goes through look_at_gated(): it sees what has become of the iteration's
 * task or of a gate, stores that in one append, and when that is durable and nothing new has come, it acts: submits the next
 * iteration, runs the next gate, or ends what must end.
 *
 *     prompting ──its task has completed──▶ gating ──all have passed──▶ completed
 *               ──it failed or refused──▶ failed  ──one has not──▶ prompting, with what was found, or failed
 *     either ──cancelled, and all of it has ended──▶ cancelled
 *
 * An iteration is submitted with a key of its own. If the daemon dies before it is stored that it is queued, the next one
 * finds the task by the key and does not make another. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "gated_private.h"
#include "option.h"
#include "utf8.h"
#include "write.h"

#define TURN_KEY (WEFT_GATED_ID + 32)

static void turn_key(const gated_task *task, int64_t iteration, char ret[TURN_KEY]) {
    snprintf(ret, TURN_KEY, "gated/%s/%" PRId64, task->id, iteration);
}

static void copy_words(char *ret, size_t size, const char *words) {
    size_t len = weft__utf8_fit(words, strlen(words), size - 1);
    memcpy(ret, words, len);
    ret[len] = '\0';
}

/* ---- when ---- */

void weft__gated_look(gated_task *task) {
    weft__later(task->of->loop, &task->look);
}

/* Memory comes back soon, a disk that is full or broken does not. */
static void look_again(gated_task *task, int r) {
    weft_gated_tasks *tasks = task->of;
    int64_t wait = r == -ENOMEM ? GATED_MEMORY_MS : weft__engine_limits(tasks->engine)->again_ms;
    weft__timer_set(tasks->loop, &task->again, weft__add_ms(weft_loop_now(tasks->loop), wait));
}

void weft__gated_again_due(weft_timer *timer) {
    weft__gated_look(WEFT_CONTAINER(timer, gated_task, again));
}

/* ---- what is heard ---- */

static void keep_seen(gated_task *task, const weft_task *is) {
    gated_seen *seen = &task->seen;
    if (seen->ended || is->state < WEFT_TASK_COMPLETED)
        return;
    seen->ended = true;
    seen->state = is->state;
    copy_words(seen->reason, sizeof seen->reason, is->reason ? is->reason : "");
    copy_words(seen->stop_reason, sizeof seen->stop_reason, is->stop_reason ? is->stop_reason : "");
    copy_words(seen->error, sizeof seen->error, is->error ? is->error : "");
}

static gated_task *find_by_task(const weft_gated_tasks *tasks, const char *id) {
    for (weft_link *link = tasks->all.prev; link != &tasks->all; link = link->prev) {
        gated_task *task = WEFT_CONTAINER(link, gated_task, link);
        if (task->now.state == WEFT_GATED_STATE_RUNNING &&
            (strcmp(task->now.task, id) == 0 || strcmp(task->submitted, id) == 0))
            return task;
    }
    return NULL;
}

/* Was it a permission, and denied? */
static void see_answer(gated_task *task, const weft_json *data) {
    const weft_question *question = weft__question_find(task->of->engine, weft_get_str(data, "questionId", ""));
    weft_doc *options = NULL;
    if (!question || strcmp(question->kind, "permission") != 0 || !question->option)
        return;
    if (weft_doc_parse(question->options, strlen(question->options), task->of->alloc, &options) < 0)
        return;
    task->denied = !*question->option || weft__option_rejects(weft_doc_root(options), question->option);
    weft_doc_free(options);
}

static void hear_deleted(const weft_gated_tasks *tasks, const weft_json *data) {
    const char *session = weft_get_str(data, "sessionId", "");
    for (weft_link *link = tasks->all.next; *session && link != &tasks->all; link = link->next) {
        gated_task *task = WEFT_CONTAINER(link, gated_task, link);
        if (strcmp(task->now.session, session) != 0)
            continue;
        task->want_removed = true;
        weft__gated_look(task);
    }
}

void weft__gated_hear(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    weft_gated_tasks *tasks = WEFT_CONTAINER(listener, weft_gated_tasks, listener);
    bool answered = strcmp(event->type, "question.answered") == 0;
    weft_bytes text;
    char id[32];
    if (strcmp(event->type, "session.deleted") == 0)
        hear_deleted(tasks, data);
    if (!tasks->running || (!answered && strncmp(event->type, "task.", 5) != 0))
        return;
    weft_json member = weft_get(data, "taskId");
    if (weft_bytes_of(&member, &text) < 0 || text.len >= sizeof id)
        return;
    memcpy(id, text.data, text.len);
    id[text.len] = '\0';
    gated_task *task = find_by_task(tasks, id);
    if (!task)
        return;
    const weft_task *is = weft__task_find(tasks->engine, id);
    if (answered)
        see_answer(task, data);
    else if (is)
        keep_seen(task, is);
    weft__gated_look(task);
}

/* ---- what has become of it ---- */

static void end_gated(gated_task *task, weft_gated_state state, const char *reason, const char *error) {
    gated_now *next = &task->next;
    next->state = state;
    next->gating = false;
    next->ended_ms = weft__engine_now(task->of->engine);
    copy_words(next->reason, sizeof next->reason, reason);
    copy_words(next->error, sizeof next->error, error);
}

static void fail_turn(gated_task *task, const gated_seen *seen) {
    if (task->denied)
        end_gated(task, WEFT_GATED_STATE_FAILED, "permissionDenied", "A permission that the agent asked for was denied.");
    else
        end_gated(task, WEFT_GATED_STATE_FAILED, *seen->reason ? seen->reason : "taskFailed",
                  *seen->error ? seen->error : "The agent failed.");
}

static void see_turn_end(gated_task *task, const gated_seen *seen) {
    if (seen->state == WEFT_TASK_CANCELLED && task->denied && !task->want_stop)
        fail_turn(task, seen);
    else if (seen->state == WEFT_TASK_CANCELLED)
        end_gated(task, WEFT_GATED_STATE_CANCELLED, "cancelled", "");
    else if (seen->state == WEFT_TASK_FAILED)
        fail_turn(task, seen);
    else if (strcmp(seen->stop_reason, "max_tokens") == 0)
        end_gated(task, WEFT_GATED_STATE_FAILED, "contextOverflow", "The agent's context is full.");
    else if (strcmp(seen->stop_reason, "refusal") == 0 && !task->denied)
        end_gated(task, WEFT_GATED_STATE_FAILED, "refused", "The agent refused.");
    else if (strcmp(seen->stop_reason, "refusal") == 0)
        fail_turn(task, seen);
    else if (task->want_stop)
        end_gated(task, WEFT_GATED_STATE_CANCELLED, "cancelled", "");
    else
        task->next.gating = true;
}

static void see_turn(gated_task *task) {
    const weft_task *is = weft__task_find(task->of->engine, task->next.task);
    if (is) {
        keep_seen(task, is);
        copy_words(task->next.session, sizeof task->next.session, is->session);
    }
    if (task->seen.ended)
        see_turn_end(task, &task->seen);
    else if (!is)
        end_gated(task, WEFT_GATED_STATE_FAILED, "forgotten", "What became of its task is no longer known.");
}

/* No task yet: it was submitted just now, cannot be, or need not be any more. */
static void see_unsubmitted(gated_task *task) {
    gated_now *next = &task->next;
    char why[WEFT_GATED_WHY];
    if (*task->submitted) {
        memcpy(next->task, task->submitted, sizeof next->task);
        see_turn(task);
    } else if (task->refused == -EOVERFLOW)
        end_gated(task, WEFT_GATED_STATE_FAILED, "contextOverflow",
                  "The prompt with its findings is longer than the agent's context_limit.");
    else if (task->refused < 0) {
        snprintf(why, sizeof why, "The next iteration could not be queued: %s.", weft_strerror(task->refused));
        end_gated(task, WEFT_GATED_STATE_FAILED, "notQueued", why);
    } else if (task->want_stop && !task->submitting)
        end_gated(task, WEFT_GATED_STATE_CANCELLED, "cancelled", "");
}

/* The gate that runs next, or does; gate_count: all have run. */
static size_t next_gate(const gated_task *task) {
    uint32_t ran = task->now.iteration ? task->turns[task->now.iteration - 1].ran : 0;
    size_t i = 0;
    while (i < task->pub.gate_count && (ran & 1u << i))
        i++;
    return i;
}

static void see_gates_end(gated_task *task, uint32_t passed) {
    size_t failed = 0;
    while (failed < task->pub.gate_count && (passed & 1u << failed))
        failed++;
    if (failed == task->pub.gate_count)
        end_gated(task, WEFT_GATED_STATE_COMPLETED, "", "");
    else if (task->next.iteration >= task->pub.max_iterations) {
        char why[WEFT_GATED_WHY];
        snprintf(why, sizeof why, "The gate %s has not passed after %" PRId64 " iteration%s.", task->gates[failed],
                 task->next.iteration, task->next.iteration == 1 ? "" : "s");
        end_gated(task, WEFT_GATED_STATE_FAILED, "gateFailed", why);
        task->next.failed_gate = (int) failed;
    } else {
        task->next.iteration++;
        task->next.gating = false;
        *task->next.task = '\0';
    }
}

static void see_gates(gated_task *task) {
    const weft_gated_turn *turn = &task->turns[task->now.iteration - 1];
    const gate_pending *pending = &task->pending;
    char why[WEFT_GATED_WHY];
    if (pending->failed < 0) {
        snprintf(why, sizeof why, "The gate %s cannot be run: %s.", task->gates[pending->gate],
                 pending->failed == -ENOENT ? "it is not configured, or its program is not there"
                                            : weft_strerror(pending->failed));
        end_gated(task, WEFT_GATED_STATE_FAILED, "gateUnavailable", why);
        task->next.failed_gate = (int) pending->gate;
    } else if (task->want_stop) {
        if (!task->gate_runs)
            end_gated(task, WEFT_GATED_STATE_CANCELLED, "cancelled", "");
    } else if (pending->there) {
        uint32_t bit = 1u << pending->gate, all = (1u << task->pub.gate_count) - 1;
        if ((turn->ran | bit) == all)
            see_gates_end(task, turn->passed | (pending->result.passed ? bit : 0));
    }
}

static void see_changes(gated_task *task) {
    task->next = task->now;
    task->next.stopping = task->want_stop;
    if (!task->next.iteration)
        task->next.iteration = 1;
    if (task->next.gating)
        see_gates(task);
    else if (!*task->next.task)
        see_unsubmitted(task);
    else
        see_turn(task);
}

/* ---- storing it ---- */

#define MOST_CHANGES 4
typedef struct gated_changes {
    const char *types[MOST_CHANGES];
    weft_val data[MOST_CHANGES];
    size_t count;
    weft_member iteration[5], gate[10], stopping[3], finished[7];
} gated_changes;

static void add_change(gated_changes *changes, const char *type, const weft_member *members, size_t count) {
    changes->types[changes->count] = type;
    changes->data[changes->count++] = weft_obj(members, count);
}

/* What is of its session, unless that is being deleted: nobody would take it out again. */
static weft_val stays_of(const gated_task *task, const char *text) {
    return text && weft__session_stays(task->of->engine, task->next.session) ? weft__text_or_none(text) : weft_none();
}

static void add_iteration(const gated_task *task, gated_changes *changes) {
    const weft_member members[5] = {{"gatedId", weft_str(task->id)},
                                    {"iteration", weft_int(task->next.iteration)},
                                    {"maxIterations", weft_int(task->pub.max_iterations)},
                                    {"taskId", stays_of(task, task->next.task)},
                                    {"sessionId", stays_of(task, task->next.session)}};
    memcpy(changes->iteration, members, sizeof members);
    add_change(changes, "gated.iteration", changes->iteration, 5);
}

static void add_gate(const gated_task *task, gated_changes *changes) {
    const weft_gate_result *result = &task->pending.result;
    bool failed = !result->passed && weft__session_stays(task->of->engine, task->next.session);
    const weft_member members[10] = {
        {"gatedId", weft_str(task->id)},
        {"sessionId", stays_of(task, task->next.session)},
        {"iteration", weft_int(result->iteration)},
        {"gate", weft_str(task->gates[task->pending.gate])},
        {"passed", weft_bool(result->passed)},
        {"exitCode", result->exit_code >= 0 ? weft_int(result->exit_code) : weft_none()},
        {"durationMs", weft_int(result->ms)},
        {"why", stays_of(task, result->why)},
        {"output", failed ? weft_str(result->output) : weft_none()},
        {"diagnostics", failed ? weft_raw(result->diagnostics, strlen(result->diagnostics)) : weft_none()},
    };
    memcpy(changes->gate, members, sizeof members);
    add_change(changes, "gated.gate", changes->gate, 10);
}

static void add_end(const gated_task *task, gated_changes *changes) {
    const gated_now *next = &task->next;
    const weft_member members[7] = {
        {"gatedId", weft_str(task->id)},
        {"sessionId", stays_of(task, next->session)},
        {"state", weft_str(weft__gated_states[next->state])},
        {"iterations", weft_int(next->iteration)},
        {"reason", weft__text_or_none(next->reason)},
        {"error", stays_of(task, next->error)},
        {"gate", next->failed_gate >= 0 ? weft_str(task->gates[next->failed_gate]) : weft_none()},
    };
    memcpy(changes->finished, members, sizeof members);
    add_change(changes, "gated.finished", changes->finished, 7);
}

static void add_changes(const gated_task *task, gated_changes *changes) {
    changes->count = 0;
    if (task->next.stopping && !task->now.stopping) {
        changes->stopping[0] = (weft_member){"gatedId", weft_str(task->id)};
        changes->stopping[1] = (weft_member){"sessionId", stays_of(task, task->next.session)};
        changes->stopping[2] = (weft_member){"by", weft__text_or_none(task->stop_by)};
        add_change(changes, "gated.stopping", changes->stopping, 3);
    }
    if (*task->next.task && strcmp(task->now.task, task->next.task) != 0)
        add_iteration(task, changes);
    if (task->pending.there)
        add_gate(task, changes);
    if (task->next.state != WEFT_GATED_STATE_RUNNING)
        add_end(task, changes);
}

static void take_pending(gated_task *task) {
    gate_pending *pending = &task->pending;
    weft_gated_turn *turn = &task->turns[pending->result.iteration - 1];
    turn->ran |= 1u << pending->gate;
    turn->passed |= pending->result.passed ? 1u << pending->gate : 0;
    weft__gate_result_done(&task->results[pending->gate], task->of->alloc);
    task->results[pending->gate] = pending->result;
    *pending = (gate_pending){0};
}

/* What came while it was being stored, a task that was submitted or a gate that ended, is for the next append. */
static void take_changes(gated_task *task) {
    if (task->pending.sent)
        take_pending(task);
    task->now = task->next;
    if (*task->now.task)
        memcpy(task->turns[task->now.iteration - 1].task, task->now.task, sizeof task->now.task);
    if (strcmp(task->now.task, task->submitted) == 0)
        *task->submitted = '\0';
    if (!*task->now.task && !*task->submitted) { /* another iteration begins */
        task->seen = (gated_seen){0};
        task->denied = false;
    }
    weft__gated_publish(task);
    if (task->now.state == WEFT_GATED_STATE_RUNNING) {
        weft__gated_look(task);
        return;
    }
    task->of->running--;
    weft__timer_set(task->of->loop, &task->again, INT64_MAX);
    weft__gated_look(task);
    weft__gated_tell(task);
}

static void on_changes_stored(void *ctx, int r) {
    gated_task *task = weft__gated_op_end(ctx);
    if (!task)
        return;
    task->sending = false;
    if (r >= 0)
        take_changes(task);
    else {
        task->pending.sent = false;
        look_again(task, r);
    }
}

static int send_changes(gated_task *task, const gated_changes *changes) {
    weft_gated_tasks *tasks = task->of;
    char fixed[GATED_KEY], state[GATED_KEY];
    weft_buf text = {0};
    gated_op *op = weft__gated_op(task);
    int r = op ? weft__gated_write_state(task, &text) : -ENOMEM;
    weft__gated_keys(task, fixed, state);
    if (r >= 0)
        r = weft__engine_change(
            tasks->engine,
            &(weft_engine_change){.stream = WEFT_STREAM_GATED,
                                  .types = changes->types,
                                  .data = changes->data,
                                  .count = changes->count,
                                  .documents = &(weft_document){state, {weft__buf_head(&text), weft__buf_len(&text)}},
                                  .document_count = 1},
            on_changes_stored, op);
    weft__buf_done(&text, tasks->alloc);
    if (r < 0 && op)
        weft__gated_op_end(op);
    return r;
}

/* 1: an append is under way; 0: there is nothing new. That the agent has ended and the gates begin is not told, and needs no
 * event: a restart sees the same task. */
static int store_changes(gated_task *task) {
    gated_changes changes;
    see_changes(task);
    add_changes(task, &changes);
    if (!changes.count) {
        task->now = task->next;
        weft__gated_publish(task);
        return 0;
    }
    int r = send_changes(task, &changes);
    task->sending = r >= 0;
    task->pending.sent = r >= 0 && task->pending.there;
    return r < 0 ? r : 1;
}

/* ---- the next iteration ---- */

/* It will never be a task. Everything else may pass: the queue is full, the disk is. */
static bool is_refused(int r) {
    return r == -EINVAL || r == -EMSGSIZE || r == -ENOENT || r == -ENOTUNIQ || r == -EEXIST || r == -EOVERFLOW ||
           r == -ESRCH || r == -ESTALE || r == -ENODEV || r == -EOPNOTSUPP;
}

static void on_submitted(void *ctx, int r, const weft_task *is) {
    gated_task *task = weft__gated_op_end(ctx);
    if (!task)
        return;
    task->submitting = false;
    if (r >= 0)
        copy_words(task->submitted, sizeof task->submitted, is->id);
    else if (is_refused(r))
        task->refused = r;
    else
        look_again(task, r);
    if (r >= 0 || is_refused(r))
        weft__gated_look(task);
}

static int submit_prompt(gated_task *task, const char *prompt) {
    char key[TURN_KEY], metadata[160];
    bool first = !*task->now.session;
    turn_key(task, task->now.iteration, key);
    snprintf(metadata, sizeof metadata, "{\"source\":\"gated\",\"gatedId\":\"%s\",\"iteration\":%" PRId64 "}", task->id,
             task->now.iteration);
    gated_op *op = weft__gated_op(task);
    if (!op)
        return -ENOMEM;
    weft_task_spec spec = {.prompt = prompt,
                           .agent = first ? task->agent : NULL,
                           .session = first ? NULL : task->now.session,
                           .isolation = first ? task->pub.isolation : WEFT_ISOLATION_NONE,
                           .permission = task->pub.permission,
                           .metadata = metadata,
                           .key = key};
    int r = weft__task_submit(task->of->engine, &spec, on_submitted, op);
    if (r < 0)
        weft__gated_op_end(op);
    return r;
}

static void submit_iteration(gated_task *task) {
    weft_buf prompt = {0};
    int r = weft__gated_prompt(task, task->now.iteration, weft__gated_limit(task), &prompt);
    if (r >= 0)
        r = submit_prompt(task, weft__buf_head(&prompt));
    weft__buf_done(&prompt, task->of->alloc);
    task->submitting = r >= 0;
    if (r >= 0)
        return;
    if (is_refused(r)) {
        task->refused = r;
        weft__gated_look(task);
    } else
        look_again(task, r);
}

/* ---- the next gate ---- */

static int keep_outcome(gated_task *task, size_t gate, const weft_gate_report *outcome) {
    const weft_alloc *alloc = task->of->alloc;
    weft_gate_result *result = &task->pending.result;
    const char *why = outcome->r == -ETIMEDOUT ? "it took too long and was ended" : "";
    weft_buf found = {0};
    int r = outcome->diagnostics ? weft__diagnostics_write(outcome->diagnostics, WEFT_GATE_DIAGNOSTICS, alloc, &found)
                                 : weft__buf_put(&found, alloc, "[]", 2);
    weft__gate_result_done(result, alloc);
    *result = (weft_gate_result){.known = true,
                                 .passed = outcome->passed,
                                 .iteration = task->now.iteration,
                                 .exit_code = outcome->r < 0 ? -1 : outcome->exit_code,
                                 .ms = outcome->ms};
    if (r >= 0) {
        result->why = weft__strndup(alloc, why, strlen(why));
        result->output = weft__strndup(alloc, outcome->output.data, outcome->output.len);
        result->diagnostics = weft__strndup(alloc, weft__buf_head(&found), weft__buf_len(&found));
    }
    weft__buf_done(&found, alloc);
    if (r < 0 || !result->why || !result->output || !result->diagnostics)
        return -ENOMEM;
    task->pending.there = true;
    task->pending.gate = gate;
    return 0;
}

static void on_gate_run(void *ctx, const weft_gate_report *outcome) {
    gated_task *task = weft__gated_op_end(ctx);
    if (!task)
        return;
    task->gate_runs = false;
    size_t gate = next_gate(task);
    int r = outcome->r;
    if (r == 0 || r == -ETIMEDOUT)
        r = task->want_stop ? 0 : keep_outcome(task, gate, outcome);
    else if (r != -ECANCELED && r != -ENOMEM && r != -EAGAIN) {
        task->pending.failed = r;
        task->pending.gate = gate;
        r = 0;
    }
    if (r == -ENOMEM || r == -EAGAIN)
        look_again(task, r);
    else
        weft__gated_look(task);
}

/* Where the session works: the project's folder, or its worktree. */
static bool gate_folder(const gated_task *task, char ret[PATH_MAX]) {
    const weft_engine *engine = task->of->engine;
    const weft_session *session = weft__session_find(engine, task->now.session);
    const char *root = session && session->path ? session->path : weft__engine_folder(engine);
    bool beneath = session && !session->path && *session->folder;
    int n = snprintf(ret, PATH_MAX, "%s%s%s", root, beneath ? "/" : "", beneath ? session->folder : "");
    return n > 0 && n < PATH_MAX;
}

static void run_next_gate(gated_task *task) {
    const weft_gate_runner *runner = &task->of->opts.gates;
    char folder[PATH_MAX];
    size_t gate = next_gate(task);
    gated_op *op = weft__gated_op(task);
    int r = !op ? -ENOMEM : gate_folder(task, folder) ? 0 : -ENAMETOOLONG;
    if (r >= 0)
        r = runner->run(runner->ctx, task->gates[gate], folder, on_gate_run, op, &task->gate_run);
    task->gate_runs = r >= 0;
    if (r >= 0)
        return;
    if (op)
        weft__gated_op_end(op);
    if (r == -ENOMEM || r == -EAGAIN) {
        look_again(task, r);
        return;
    }
    task->pending.failed = r;
    task->pending.gate = gate;
    weft__gated_look(task);
}

/* ---- ending it ---- */

static void on_turn_cancelled(void *ctx, int r, const weft_task *is) {
    gated_task *task = weft__gated_op_end(ctx);
    (void) is;
    if (!task)
        return;
    task->cancelling = false;
    if (r >= 0 || r == -EALREADY)
        weft__gated_look(task);
    else
        look_again(task, r);
}

static void stop_gated(gated_task *task) {
    const weft_gate_runner *runner = &task->of->opts.gates;
    if (task->gate_runs) {
        runner->cancel(runner->ctx, task->gate_run);
        return;
    }
    if (!*task->now.task || task->now.gating || task->cancelling)
        return;
    gated_op *op = weft__gated_op(task);
    const char *by = task->stop_by ? task->stop_by : "gated";
    int r = op ? weft__task_cancel(task->of->engine, task->now.task, by, on_turn_cancelled, op) : -ENOMEM;
    task->cancelling = r >= 0;
    if (r < 0 && op)
        weft__gated_op_end(op);
    if (r < 0 && r != -EALREADY && r != -ENOENT)
        look_again(task, r);
}

/* ---- its session is gone ---- */

static void on_removal_stored(void *ctx, int r) {
    gated_task *task = weft__gated_op_end(ctx);
    if (!task)
        return;
    task->sending = task->leaving = false;
    if (r >= 0)
        weft__gated_drop(task);
    else
        look_again(task, r);
}

static void remove_gated(gated_task *task) {
    static const char *const type = "gated.removed";
    weft_val data = WEFT_OBJ({"gatedId", weft_str(task->id)});
    char keys[2][GATED_KEY];
    gated_op *op = weft__gated_op(task);
    weft__gated_keys(task, keys[0], keys[1]);
    const weft_document documents[2] = {{.key = keys[0]}, {.key = keys[1]}};
    int r = op ? weft__engine_change(task->of->engine,
                                     &(weft_engine_change){.stream = WEFT_STREAM_GATED,
                                                           .types = &type,
                                                           .data = &data,
                                                           .count = 1,
                                                           .documents = documents,
                                                           .document_count = 2},
                                     on_removal_stored, op)
               : -ENOMEM;
    task->sending = task->leaving = r >= 0;
    if (r < 0 && op)
        weft__gated_op_end(op);
    if (r < 0)
        look_again(task, r);
}

/* ---- all of it ---- */

static void look_at_gated(gated_task *task) {
    if (task->want_removed && task->stored && !task->sending && !task->leaving &&
        task->now.state != WEFT_GATED_STATE_RUNNING) {
        remove_gated(task);
        return;
    }
    if (!task->stored || task->leaving || task->sending || !task->resumed || task->now.state != WEFT_GATED_STATE_RUNNING)
        return;
    int r = store_changes(task);
    if (r < 0)
        look_again(task, r);
    if (r != 0)
        return;
    if (task->now.stopping)
        stop_gated(task);
    else if (task->now.gating && !task->gate_runs && !task->pending.there && task->pending.failed == 0)
        run_next_gate(task);
    else if (!task->now.gating && !*task->now.task && !*task->submitted && !task->submitting && !task->refused)
        submit_iteration(task);
}

void weft__gated_look_due(weft_later *later) {
    look_at_gated(WEFT_CONTAINER(later, gated_task, look));
}

/* The iteration may have been submitted when the daemon died before it was stored which task it is. */
void weft__gated_resume(gated_task *task) {
    char key[TURN_KEY];
    if (task->now.state != WEFT_GATED_STATE_RUNNING)
        return;
    turn_key(task, task->now.iteration ? task->now.iteration : 1, key);
    const weft_task *is = *task->now.task ? NULL : weft__task_find_key(task->of->engine, key);
    if (is)
        copy_words(task->submitted, sizeof task->submitted, is->id);
    task->resumed = true;
    weft__gated_look(task);
}

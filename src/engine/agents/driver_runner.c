/* Turns on other machines, see driver_runner.h. A process of this driver is what the hub has of one agent of one runner; a
 * session has one turn.
 *
 *     idle ──prompt──▶ leased ──its end came, refused, cancelled, over──▶ decided ──told──▶ idle
 *
 * While it is leased it does not matter whether the runner is connected. */
#include "driver_runner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "loop.h"
#include "sum.h"
#include "write.h"

#define SENTENCE 1024
#define TASK_ID 32 /* bytes of a task's id */
/* What a runner gets to say how a cancelled turn ended, besides the grace time of the agent. */
#define CANCEL_MS 3000
/* Answers of people that it has not taken yet: as many as questions of one turn. */
#define MOST_ANSWERS 1000

struct weft_driver_process {
    weft_link at_link;
    weft_loop *loop;
    const weft_alloc *alloc;
    const weft_agent *agent;
    weft_runner_link *runner;
    const weft_process_host *host;
    void *ctx;
    char *folder;
    int64_t grace_ms;
    unsigned calls; /* callbacks that are under way: what is freed or closed within one goes behind it */
    bool freed, ending, over, paused;
    weft_later later; /* tell the end */
    weft_link sessions, closed;
};

/* Sent, and not answered yet. session NULL: nobody waits for it any more. */
typedef struct runner_call {
    weft_link link;
    const weft_alloc *alloc;
    weft_driver_session *session;
    struct runner_answer *answer; /* of a person; NULL: it is the start, or a cancel */
    bool starts;
} runner_call;

typedef struct runner_answer {
    weft_link link;
    bool sent;
    weft_buf params;
} runner_answer;

struct weft_driver_session {
    weft_link link;    /* of its process */
    weft_link at_link; /* among the runner's turns */
    weft_driver_process *process;
    const weft_session_host *host;
    void *ctx;
    bool closed, busy, servers;
    char *beneath, *own, *settings; /* where it works; the runner's name for it; what was chosen. NULL: none */
    weft_buf order;                 /* the params of runner.start */
    char task[TASK_ID];
    uint64_t lease, told;
    uint64_t asked;  /* questions up to this number were asked */
    bool offered;    /* the order was sent on this connection */
    bool cancelling; /* the runner was, or will be, told so */
    weft_link calls, answers;
    size_t answer_count;
    bool decided;
    weft_turn_end end;
    char *error, *reason, *stop_reason;
    weft_later later; /* tell it */
    weft_timer timer; /* it has had its time to cancel */
};

/* ---- memory ---- */

static void hold_runner_process(weft_driver_process *process) {
    process->calls++;
}

static void free_turn(weft_driver_session *session) {
    const weft_alloc *alloc = session->process->alloc;
    weft__list_remove(&session->at_link);
    weft__later_cancel(&session->later);
    weft__timer_stop(session->process->loop, &session->timer);
    while (!weft__list_empty(&session->calls)) {
        runner_call *call = WEFT_CONTAINER(session->calls.next, runner_call, link);
        weft__list_remove(&call->link);
        call->session = NULL;
        call->answer = NULL;
    }
    while (!weft__list_empty(&session->answers)) {
        runner_answer *answer = WEFT_CONTAINER(session->answers.next, runner_answer, link);
        weft__list_remove(&answer->link);
        weft__buf_done(&answer->params, alloc);
        weft__free(alloc, answer);
    }
    weft__buf_done(&session->order, alloc);
    weft__free(alloc, session->error);
    weft__free(alloc, session->reason);
    weft__free(alloc, session->stop_reason);
    session->error = session->reason = session->stop_reason = NULL;
    session->answer_count = 0;
    session->busy = session->decided = session->offered = session->cancelling = false;
}

static void free_runner_session(weft_driver_session *session) {
    const weft_alloc *alloc = session->process->alloc;
    weft__list_remove(&session->link);
    weft__free(alloc, session->beneath);
    weft__free(alloc, session->own);
    weft__free(alloc, session->settings);
    weft__free(alloc, session);
}

static void release_runner_process(weft_driver_process *process) {
    const weft_alloc *alloc = process->alloc;
    if (--process->calls)
        return;
    while (!weft__list_empty(&process->closed))
        free_runner_session(WEFT_CONTAINER(process->closed.next, weft_driver_session, link));
    if (!process->freed)
        return;
    weft__free(alloc, process->folder);
    weft__free(alloc, process);
}

static weft_driver_session *runner_close(weft_driver_session *session) {
    if (!session || session->closed)
        return NULL;
    weft_driver_process *process = session->process;
    hold_runner_process(process);
    session->closed = true;
    free_turn(session);
    weft__list_remove(&session->link);
    weft__list_push(&process->closed, &session->link);
    release_runner_process(process);
    return NULL;
}

/* ---- its end ---- */

/* reason NULL: well. The first to say so is right. */
static void decide_lease(weft_driver_session *session, bool retryable, const char *reason, const char *format, ...)
    WEFT_PRINTF(4, 5);
static void decide_lease(weft_driver_session *session, bool retryable, const char *reason, const char *format, ...) {
    const weft_alloc *alloc = session->process->alloc;
    char text[SENTENCE];
    va_list args;
    if (session->decided || !session->busy)
        return;
    session->decided = true;
    session->end = (weft_turn_end){.ok = !reason, .retryable = retryable, .exit_code = -1};
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    session->reason = reason ? weft__strndup(alloc, reason, strlen(reason)) : NULL;
    session->error = reason ? weft__strndup(alloc, text, strlen(text)) : NULL;
    weft__later(session->process->loop, &session->later);
}

static void on_lease_decided(weft_later *later) {
    weft_driver_session *session = WEFT_CONTAINER(later, weft_driver_session, later);
    weft_driver_process *process = session->process;
    weft_turn_end end = session->end;
    char *error = session->error, *reason = session->reason, *stop = session->stop_reason;
    session->error = session->reason = session->stop_reason = NULL;
    end.error = end.ok ? NULL : error ? error : "out of memory";
    end.reason = end.ok ? NULL : reason ? reason : "failed";
    end.stop_reason = stop;
    end.gone = process->over;
    hold_runner_process(process);
    free_turn(session);
    session->host->on_turn_end(session->ctx, &end);
    weft__free(process->alloc, error);
    weft__free(process->alloc, reason);
    weft__free(process->alloc, stop);
    release_runner_process(process);
}

static void on_cancel_due(weft_timer *timer) {
    weft_driver_session *session = WEFT_CONTAINER(timer, weft_driver_session, timer);
    decide_lease(session, false, "cancelled", "It was cancelled; %s did not say how it ended.",
                 session->process->runner->name);
}

static void on_process_over(weft_later *later) {
    weft_driver_process *process = WEFT_CONTAINER(later, weft_driver_process, later);
    hold_runner_process(process);
    process->over = true;
    for (bool again = true; again && !process->freed;) {
        again = false;
        for (weft_link *link = process->sessions.next; !again && link != &process->sessions; link = link->next) {
            weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
            if (!session->busy)
                continue;
            decide_lease(session, true, "agentEnded", "%s is not used any more", process->agent->name);
            on_lease_decided(&session->later);
            again = true; /* the list may have changed */
        }
    }
    if (!process->freed)
        process->host->on_end(process->ctx, -1, 0);
    release_runner_process(process);
}

/* ---- calling the runner ---- */

/* A refusal is a sentence of the runner's, and says why by its reason. */
static void start_refused(weft_driver_session *session, const weft_error *error) {
    const char *reason = weft_get_str(&error->data, "reason", "refused");
    bool passing = strcmp(reason, "runnerBusy") == 0 || strcmp(reason, "runnerStopping") == 0;
    decide_lease(session, passing, passing ? "runnerBusy" : "refused", "%s: %.900s", session->process->runner->name,
                 error->message ? error->message : "it refused");
}

static void on_runner_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    runner_call *call = ctx;
    weft_driver_session *session = call->session;
    (void) peer;
    weft__list_remove(&call->link);
    if (session && call->starts && r >= 0 && answer->error)
        start_refused(session, answer->error);
    else if (session && call->starts && r < 0)
        session->offered = false; /* what became of it is seen when it is back */
    else if (session && call->answer && r >= 0) {
        weft__list_remove(&call->answer->link);
        weft__buf_done(&call->answer->params, call->alloc);
        weft__free(call->alloc, call->answer);
        session->answer_count--;
    } else if (session && call->answer)
        call->answer->sent = false;
    weft__free(call->alloc, call);
}

static int call_runner(weft_driver_session *session, const char *method, weft_val params, runner_answer *answer,
                       bool starts) {
    weft_driver_process *process = session->process;
    weft_peer *peer = process->runner->peer;
    runner_call *call = peer ? weft__zalloc(process->alloc, sizeof *call) : NULL;
    int64_t id;
    if (!call)
        return peer ? -ENOMEM : -ENOTCONN;
    *call = (runner_call){.alloc = process->alloc, .session = session, .answer = answer, .starts = starts};
    weft__list_push(&session->calls, &call->link);
    int r = weft_call_start(peer, method, params,
                            &(weft_call_opts){.on_answer = on_runner_answer, .ctx = call, .timeout_ms = -1}, &id);
    if (r < 0) {
        weft__list_remove(&call->link);
        weft__free(process->alloc, call);
    }
    return r;
}

static void offer_lease(weft_driver_session *session) {
    int r = call_runner(session, "runner.start", weft_raw(weft__buf_head(&session->order), weft__buf_len(&session->order)),
                        NULL, true);
    session->offered = r >= 0;
    if (r < 0 && r != -ENOTCONN)
        decide_lease(session, true, "runnerBusy", "%s cannot be sent anything now: %s", session->process->runner->name,
                     weft_strerror(r));
}

static void send_runner_answers(weft_driver_session *session) {
    for (weft_link *link = session->answers.next; link != &session->answers; link = link->next) {
        runner_answer *answer = WEFT_CONTAINER(link, runner_answer, link);
        weft_val params = weft_raw(weft__buf_head(&answer->params), weft__buf_len(&answer->params));
        if (!answer->sent)
            answer->sent = call_runner(session, "runner.answer", params, answer, false) >= 0;
    }
}

static void send_runner_cancel(weft_driver_session *session, bool force) {
    call_runner(
        session, "runner.cancel",
        WEFT_OBJ({"lease", weft_uint(session->lease)}, {"taskId", weft_str(session->task)}, {"force", weft_bool(force)}),
        NULL, false);
}

/* ---- what a runner says ---- */

static uint64_t question_number(const char *id) {
    const char *digits = strrchr(id, '-');
    return digits ? strtoull(digits + 1, NULL, 10) : 0;
}

/* Each is asked once, also when it is told again. */
static void hear_question(weft_driver_session *session, const weft_json *question) {
    const char *id = weft_get_str(question, "questionId", "");
    uint64_t number = question_number(id);
    if (number < session->asked || number == UINT64_MAX || !*id || strlen(id) > 64)
        return;
    session->asked = number + 1;
    session->host->on_ask(session->ctx, id, weft_copy(question));
}

static void hear_lease_end(weft_driver_session *session, const char *type, const weft_json *data) {
    const weft_alloc *alloc = session->process->alloc;
    const char *reason = weft_get_str(data, "reason", "failed"), *stop = weft_get_str(data, "stopReason", NULL);
    if (strcmp(type, "task.completed") == 0)
        decide_lease(session, false, NULL, "%s", "");
    else if (strcmp(type, "task.cancelled") == 0)
        decide_lease(session, false, "cancelled", "It was cancelled at %s.", session->process->runner->name);
    else {
        bool again = strcmp(reason, "daemonRestarted") == 0 || strcmp(reason, "daemonStopped") == 0 ||
                     strcmp(reason, "signalled") == 0 || strcmp(reason, "exited") == 0;
        decide_lease(session, again, reason, "%.1000s", weft_get_str(data, "error", "It failed."));
    }
    session->stop_reason = stop && !session->stop_reason ? weft__strndup(alloc, stop, strlen(stop)) : session->stop_reason;
    session->end.exit_code = (int) weft_get_int(data, "exitCode", -1);
    session->end.signal = (int) weft_get_int(data, "signal", 0);
    session->end.cut = weft_get_bool(data, "outputTruncated", false);
}

/* Within the hold of its process. What it says otherwise is not for us. */
static void hear_lease_event(weft_driver_session *session, const char *type, const weft_json *data) {
    const weft_session_host *host = session->host;
    weft_json member;
    weft_bytes text;
    if (strcmp(type, "session.output") == 0) {
        bool err = strcmp(weft_get_str(data, "stream", "stdout"), "stderr") == 0;
        member = weft_get(data, "text");
        if (weft_bytes_of(&member, &text) >= 0 && text.len)
            host->on_output(session->ctx, err ? WEFT_RUN_STDERR : WEFT_RUN_STDOUT, text);
    } else if (strcmp(type, "session.update") == 0) {
        member = weft_get(data, "update");
        if (weft_typeof(&member) == WEFT_OBJECT)
            host->on_update(session->ctx, &member);
    } else if (strcmp(type, "session.usage") == 0 && host->on_usage) {
        member = weft_get(data, "usage");
        if (weft_typeof(&member) == WEFT_OBJECT)
            host->on_usage(session->ctx, &member);
    } else if (strcmp(type, "task.changed") == 0 && host->on_changed)
        host->on_changed(session->ctx, data);
    else if (strcmp(type, "session.elicited") == 0 && host->on_elicited)
        host->on_elicited(session->ctx, weft_get_str(data, "elicitationId", ""));
    else if (strcmp(type, "session.state") == 0 && host->on_state) {
        member = weft_get(data, "value");
        host->on_state(session->ctx, weft_get_str(data, "name", ""), &member);
    } else if (strcmp(type, "task.started") == 0)
        host->on_session(session->ctx, &(weft_session_info){.agent_session = weft_get_str(data, "sessionId", NULL)});
    else if (strcmp(type, "question.asked") == 0)
        hear_question(session, data);
    else if (strcmp(type, "question.answered") == 0 || strcmp(type, "question.expired") == 0 ||
             strcmp(type, "question.withdrawn") == 0)
        host->on_unask(session->ctx, weft_get_str(data, "questionId", ""));
    else if (strcmp(type, "task.completed") == 0 || strcmp(type, "task.failed") == 0 || strcmp(type, "task.cancelled") == 0)
        hear_lease_end(session, type, data);
}

static weft_driver_session *find_lease(const weft_runner_link *runner, uint64_t lease, const char *task) {
    for (weft_link *link = runner->turns.next; link != &runner->turns; link = link->next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, at_link);
        if (session->lease == lease && strcmp(session->task, task) == 0)
            return session;
    }
    return NULL;
}

bool weft__runner_link_hear(weft_runner_link *runner, uint64_t lease, const char *task, const weft_json *events) {
    weft_driver_session *session = find_lease(runner, lease, task);
    if (!session)
        return false;
    weft_driver_process *process = session->process;
    hold_runner_process(process);
    for (weft_iter it = weft_iterate(events); !session->closed && !process->freed && session->busy && weft_next(&it);) {
        int64_t seq = weft_get_int(&it.value, "seq", -1);
        weft_json data = weft_get(&it.value, "data");
        if (session->decided || seq < 0 || (uint64_t) seq <= session->told)
            continue;
        session->told = (uint64_t) seq;
        hear_lease_event(session, weft_get_str(&it.value, "type", ""), &data);
        if (!session->closed && !process->freed && session->busy && !session->decided && session->host->on_told)
            session->host->on_told(session->ctx, session->told);
    }
    release_runner_process(process);
    return true;
}

bool weft__runner_link_holds(const weft_runner_link *runner, uint64_t lease, const char *task, uint64_t *ret_at) {
    const weft_driver_session *session = find_lease(runner, lease, task);
    if (!session || session->decided)
        return false;
    *ret_at = session->told;
    return true;
}

size_t weft__runner_link_count(const weft_runner_link *runner) {
    size_t count = 0;
    for (weft_link *link = runner->turns.next; link != &runner->turns; link = link->next)
        count++;
    return count;
}

/* ---- there and away ---- */

void weft__runner_link_init(weft_runner_link *runner, const char *name) {
    *runner = (weft_runner_link){.name = name};
    weft__list_init(&runner->processes);
    weft__list_init(&runner->turns);
}

static bool find_known(const weft_json *known, const weft_driver_session *session, weft_json *ret) {
    for (weft_iter it = weft_iterate(known); weft_next(&it);)
        if ((uint64_t) weft_get_int(&it.value, "lease", 0) == session->lease &&
            strcmp(weft_get_str(&it.value, "taskId", ""), session->task) == 0) {
            *ret = it.value;
            return true;
        }
    return false;
}

/* It has the lease still: it is told what it may have missed, and asks again what was not asked here. */
static void go_on_with_lease(weft_driver_session *session, const weft_json *known) {
    weft_driver_process *process = session->process;
    weft_json questions = weft_get(known, "questions");
    session->offered = true;
    hold_runner_process(process);
    if (session->cancelling)
        send_runner_cancel(session, false);
    send_runner_answers(session);
    for (weft_iter it = weft_iterate(&questions); !session->closed && !process->freed && session->busy && weft_next(&it);)
        hear_question(session, &it.value);
    release_runner_process(process);
}

void weft__runner_link_up(weft_runner_link *runner, weft_peer *peer, const weft_json *known) {
    weft_json of;
    runner->peer = peer;
    if (runner->pauses)
        weft_peer_pause(peer, true);
    for (weft_link *link = runner->turns.next, *next; link != &runner->turns; link = next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, at_link);
        next = link->next;
        if (session->decided)
            continue;
        if (find_known(known, session, &of))
            go_on_with_lease(session, &of);
        else if (session->told)
            decide_lease(session, true, "runnerLost", "%s has lost what it knew of this task.", runner->name);
        else if (session->cancelling)
            decide_lease(session, false, "cancelled", "It was cancelled before it began.");
        else
            offer_lease(session);
    }
}

void weft__runner_link_down(weft_runner_link *runner) {
    runner->peer = NULL;
    for (weft_link *link = runner->turns.next; link != &runner->turns; link = link->next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, at_link);
        session->offered = false;
        for (weft_link *at = session->answers.next; at != &session->answers; at = at->next)
            WEFT_CONTAINER(at, runner_answer, link)->sent = false;
        for (weft_link *at = session->calls.next; at != &session->calls; at = at->next)
            WEFT_CONTAINER(at, runner_call, link)->answer = NULL; /* it will be sent again */
    }
}

void weft__runner_link_over(weft_runner_link *runner, int64_t waited_ms) {
    for (weft_link *link = runner->turns.next; link != &runner->turns; link = link->next)
        decide_lease(WEFT_CONTAINER(link, weft_driver_session, at_link), true, "leaseOver",
                     "%s was not heard of for %" PRId64 " s.", runner->name, (waited_ms + 999) / 1000);
}

void weft__runner_link_release(weft_runner_link *runner, uint64_t lease, const char *task, bool late) {
    if (runner->peer)
        weft_notify(runner->peer, "runner.released",
                    WEFT_OBJ({"lease", weft_uint(lease)}, {"taskId", weft_str(task)}, {"late", weft_bool(late)}));
}

/* ---- the table ---- */

static int runner_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    weft_runner_link *runner = spec->agent->runner;
    if (!runner)
        return -EINVAL;
    weft_driver_process *process = weft__zalloc(spec->alloc, sizeof *process);
    if (!process || !(process->folder = weft__strndup(spec->alloc, spec->folder, strlen(spec->folder)))) {
        weft__free(spec->alloc, process);
        return -ENOMEM;
    }
    process->loop = spec->loop;
    process->alloc = spec->alloc;
    process->agent = spec->agent;
    process->runner = runner;
    process->host = host;
    process->ctx = ctx;
    process->grace_ms = spec->grace_ms ? spec->grace_ms : 5000;
    weft__list_init(&process->sessions);
    weft__list_init(&process->closed);
    weft__later_init(&process->later, on_process_over);
    weft__list_push(&runner->processes, &process->at_link);
    *ret = process;
    return 0;
}

/* Beneath the project's folder, which is another one on the runner. NULL: that itself. */
static const char *folder_beneath(const weft_driver_process *process, const char *folder) {
    size_t len = strlen(process->folder);
    bool inside = folder && strncmp(folder, process->folder, len) == 0 && folder[len] == '/';
    return inside && folder[len + 1] ? folder + len + 1 : NULL;
}

static int copy_or_null(const weft_alloc *alloc, const char *text, size_t len, char **ret) {
    *ret = text ? weft__strndup(alloc, text, len) : NULL;
    return text && !*ret ? -ENOMEM : 0;
}

static int runner_session(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host,
                          void *ctx, weft_driver_session **ret) {
    const weft_alloc *alloc = process->alloc;
    const char *beneath = folder_beneath(process, spec->folder);
    weft_driver_session *session = weft__zalloc(alloc, sizeof *session);
    if (!session)
        return -ENOMEM;
    session->process = process;
    session->host = host;
    session->ctx = ctx;
    session->servers = spec->mcp_servers && weft_count(spec->mcp_servers);
    weft__list_init(&session->at_link);
    weft__list_init(&session->calls);
    weft__list_init(&session->answers);
    weft__later_init(&session->later, on_lease_decided);
    weft__timer_init(&session->timer, on_cancel_due);
    weft__list_push(&process->sessions, &session->link);
    if (copy_or_null(alloc, beneath, beneath ? strlen(beneath) : 0, &session->beneath) < 0 ||
        copy_or_null(alloc, spec->agent_session, spec->agent_session ? strlen(spec->agent_session) : 0, &session->own) < 0 ||
        copy_or_null(alloc, spec->settings ? spec->settings->text : NULL, spec->settings ? spec->settings->len : 0,
                     &session->settings) < 0) {
        free_runner_session(session);
        return -ENOMEM;
    }
    *ret = session;
    return 0;
}

/* The name that the agent has there: it is "agent@runner" here. */
static weft_val agent_there(const weft_agent *agent) {
    const char *at = strrchr(agent->name, '@');
    return weft_strn(agent->name, at ? (size_t) (at - agent->name) : strlen(agent->name));
}

static int write_order(weft_driver_session *session, const weft_turn_spec *spec) {
    const char *settings = session->settings;
    weft_val order =
        WEFT_OBJ({"lease", weft_uint(spec->lease)}, {"taskId", weft_str(spec->task)},
                 {"agent", agent_there(session->process->agent)}, {"prompt", weft_str(spec->prompt)},
                 {"sessionId", weft_str_or_none(session->own)}, {"folder", weft_str_or_none(session->beneath)},
                 {"settings", settings ? weft_raw(settings, strlen(settings)) : weft_none()},
                 {"traceparent", weft_str_or_none(spec->traceparent)}, {"tracestate", weft_str_or_none(spec->tracestate)});
    return weft__write_val(&session->order, session->process->alloc, &order);
}

static int runner_prompt(weft_driver_session *session, const weft_turn_spec *spec) {
    weft_driver_process *process = session->process;
    if (session->busy)
        return -EBUSY;
    if (process->ending || process->over)
        return -EPIPE;
    if (!spec->prompt || !spec->lease || strlen(spec->task) >= TASK_ID)
        return -ENOTSUP;
    int r = write_order(session, spec);
    if (r < 0) {
        weft__buf_done(&session->order, process->alloc);
        return r;
    }
    session->busy = true;
    session->lease = spec->lease;
    session->told = spec->lease_at;
    session->asked = 0;
    memcpy(session->task, spec->task, strlen(spec->task) + 1);
    weft__list_push(&process->runner->turns, &session->at_link);
    if (session->servers)
        decide_lease(session, false, "notOnRunner",
                     "Its session has MCP servers of its own. They are not started on other machines: name them in the "
                     "configuration of %s.",
                     process->runner->name);
    else if (!spec->lease_at && process->runner->peer)
        offer_lease(session);
    return 0;
}

static int add_runner_answer(weft_driver_session *session, const char *key, weft_val option, weft_val content) {
    const weft_alloc *alloc = session->process->alloc;
    if (!session->busy || session->decided)
        return -ENOENT;
    runner_answer *answer = session->answer_count < MOST_ANSWERS ? weft__zalloc(alloc, sizeof *answer) : NULL;
    weft_val params = WEFT_OBJ({"lease", weft_uint(session->lease)}, {"taskId", weft_str(session->task)},
                               {"questionId", weft_str(key)}, {"option", option}, {"content", content});
    if (!answer)
        return -ENOMEM;
    int r = weft__write_val(&answer->params, alloc, &params);
    if (r < 0) {
        weft__buf_done(&answer->params, alloc);
        weft__free(alloc, answer);
        return r;
    }
    weft__list_push(&session->answers, &answer->link);
    session->answer_count++;
    send_runner_answers(session);
    return 0;
}

static int runner_answer_question(weft_driver_session *session, const char *key, const char *option) {
    return add_runner_answer(session, key, option ? weft_str(option) : weft_null(), weft_none());
}

static int runner_accept(weft_driver_session *session, const char *key, const weft_json *content) {
    return add_runner_answer(session, key, weft_none(), content ? weft_copy(content) : weft_raw("{}", 2));
}

static void cancel_lease(weft_driver_session *session, bool force) {
    weft_driver_process *process = session->process;
    if (!session->busy || session->decided)
        return;
    session->cancelling = true;
    send_runner_cancel(session, force);
    if (force || !process->runner->peer)
        decide_lease(session, false, "cancelled", "It was cancelled; %s was not there to say how it ended.",
                     process->runner->name);
    else
        weft__timer_set(process->loop, &session->timer,
                        weft__add_ms(weft__loop_fresh_now(process->loop), process->grace_ms + CANCEL_MS));
}

static void runner_stop(weft_driver_process *process, weft_driver_session *session, bool force) {
    if (process->freed || process->over)
        return;
    if (session) {
        cancel_lease(session, force);
        return;
    }
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next)
        cancel_lease(WEFT_CONTAINER(link, weft_driver_session, link), true);
    process->ending = true;
    weft__later(process->loop, &process->later);
}

static void runner_kept(weft_driver_session *session, uint64_t at) {
    weft_peer *peer = session->process->runner->peer;
    if (peer && session->busy)
        weft_notify(
            peer, "runner.kept",
            WEFT_OBJ({"lease", weft_uint(session->lease)}, {"taskId", weft_str(session->task)}, {"at", weft_uint(at)}));
}

static void runner_pause(weft_driver_process *process, bool paused) {
    weft_runner_link *runner = process->runner;
    if (process->paused == paused)
        return;
    process->paused = paused;
    runner->pauses += paused ? 1 : (size_t) -1;
    if (runner->peer && runner->pauses == (paused ? 1 : 0))
        weft_peer_pause(runner->peer, paused);
}

static weft_driver_process *runner_free(weft_driver_process *process) {
    if (!process || process->freed)
        return NULL;
    hold_runner_process(process);
    runner_pause(process, false);
    process->freed = true;
    weft__later_cancel(&process->later);
    while (!weft__list_empty(&process->sessions))
        runner_close(WEFT_CONTAINER(process->sessions.next, weft_driver_session, link));
    weft__list_remove(&process->at_link);
    release_runner_process(process);
    return NULL;
}

const weft_driver weft__driver_runner = {
    .name = "runner",
    .open = runner_open,
    .session = runner_session,
    .prompt = runner_prompt,
    .answer = runner_answer_question,
    .accept = runner_accept,
    .stop = runner_stop,
    .kept = runner_kept,
    .pause = runner_pause,
    .close = runner_close,
    .free = runner_free,
};

/* Turns of holders that speak the planner's protocol: a call, what is streamed meanwhile, and its answer.
 *
 *     idle ──prompt──▶ called ──answered, cancelled, gone──▶ decided ──told──▶ idle
 *
 * What is streamed is told as it comes. What the result has behind it is told then, so that all that was told is its code;
 * a result that says something else than what was streamed is none. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doc.h"
#include "planner_private.h"

#define SENTENCE 2048
/* What is asked besides turns is answered soon. */
#define ASK_MS 30000

struct planner_call {
    weft_link link; /* of those that are no turn: in process->asks */
    const weft_alloc *alloc;
    weft_driver_session *session; /* NULL: it is no turn, or nobody waits for it any more */
    weft_driver_process *process; /* of one that is no turn; NULL: likewise */
    weft_driver_done *done;
    void *ctx;
    int64_t id;
};

/* ---- its end ---- */

/* A child is not heard of before its process is. */
static bool may_be_heard(const weft_driver_process *process) {
    return process->started || !weft__planner_is_child(process);
}

void weft__planner_session_soon(weft_driver_session *session) {
    const weft_driver_process *process = session->process;
    if (may_be_heard(process))
        weft__later(process->loop, &session->later);
}

void weft__planner_decide(weft_driver_session *session, bool retryable, const char *reason, const char *format, ...) {
    char text[SENTENCE];
    va_list args;
    if (session->decided || !session->busy)
        return;
    session->decided = true;
    session->end = (weft_turn_end){.ok = !reason, .retryable = retryable, .reason = reason, .exit_code = -1};
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    session->error = reason ? weft__strndup(session->process->alloc, text, strlen(text)) : NULL;
    if (!session->process->leaving)
        weft__planner_session_soon(session);
}

void weft__planner_decide_others(weft_driver_process *process, const weft_driver_session *but, const char *why) {
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        if (session != but)
            weft__planner_decide(session, true, "agentEnded", "the process of %s was ended %s", process->agent->name, why);
    }
}

/* Nobody waits for its answer any more. Somebody connected is told so; a child has no word for it. */
static void give_up_call(weft_driver_session *session) {
    struct planner_call *call = session->call;
    const weft_driver_process *process = session->process;
    if (!call)
        return;
    session->call = NULL;
    call->session = NULL;
    if (!weft__planner_is_child(process) && process->wire && process->wire->peer)
        weft_cancel(process->wire->peer, call->id);
}

static void tell_turn_end(weft_driver_session *session, bool gone) {
    weft_driver_process *process = session->process;
    weft__later_cancel(&session->later);
    give_up_call(session);
    weft_turn_end end = session->end;
    char *error = session->error;
    end.error = end.reason && !error ? "out of memory" : error;
    end.gone = gone;
    if (gone) {
        end.exit_code = process->process_end.error < 0 ? -1 : process->process_end.exit_code;
        end.signal = process->stopped ? 0 : process->process_end.signal;
    }
    session->busy = session->decided = false;
    session->error = NULL;
    weft__buf_done(&session->said, process->alloc);
    session->host->on_turn_end(session->ctx, &end);
    weft__free(process->alloc, error);
}

/* It has no name for its sessions: none can be gone on with. */
static void tell_opened(weft_driver_session *session) {
    if (session->opened)
        return;
    session->opened = true;
    session->host->on_session(session->ctx, &(weft_session_info){0});
}

static void tell_turn(weft_driver_session *session) {
    weft_driver_process *process = session->process;
    weft__planner_hold(process);
    tell_opened(session);
    if (!session->closed && session->decided && !process->leaving)
        tell_turn_end(session, false);
    weft__planner_release(process);
}

static void on_turn_due(weft_later *later) {
    tell_turn(WEFT_CONTAINER(later, weft_driver_session, later));
}

/* How the process ended says why. */
static void decide_gone(weft_driver_session *session) {
    const weft_driver_process *process = session->process;
    const weft_process_end *end = &process->process_end;
    weft_bytes tail = weft__planner_stderr_tail(process);
    const char *name = process->agent->name, *colon = tail.len ? "\n" : "";
    int len = (int) tail.len;
    if (!weft__planner_is_child(process))
        weft__planner_decide(session, true, "agentEnded", "%s has left in the middle of this turn", name);
    else if (end->error < 0)
        weft__planner_decide(session, false, "spawnFailed", "%s could not be started: %s", name, weft_strerror(end->error));
    else if (end->signal)
        weft__planner_decide(session, true, "signalled", "%s was ended by signal %d%s%.*s", name, end->signal, colon, len,
                             tail.data);
    else
        weft__planner_decide(session, true, "exited", "%s exited with status %d before its turn was over%s%.*s", name,
                             end->exit_code, colon, len, tail.data);
}

void weft__planner_finish_turns(weft_driver_process *process) {
    for (bool again = true; again && !process->freed;) {
        again = false;
        for (weft_link *link = process->sessions.next; !again && link != &process->sessions; link = link->next) {
            weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
            if (!session->busy)
                continue;
            decide_gone(session);
            tell_turn_end(session, true);
            again = true; /* the list may have changed */
        }
    }
    while (!process->freed && !weft__list_empty(&process->asks)) {
        struct planner_call *call = WEFT_CONTAINER(process->asks.next, struct planner_call, link);
        weft__list_remove(&call->link);
        call->process = NULL;
        call->done(call->ctx, -EPIPE, NULL, "it has ended");
    }
}

/* ---- what it says ---- */

static void say_text(weft_driver_session *session, weft_bytes text) {
    if (text.len)
        session->host->on_output(session->ctx, WEFT_RUN_STDOUT, text);
}

static void say_unreadable(weft_driver_session *session, const char *what) {
    weft__planner_decide(session, false, "protocolError", "%s answered what cannot be read: %s",
                         session->process->agent->name, what);
}

/* The rest of the code that was not streamed. False: what was streamed is not its beginning. */
static bool say_rest(weft_driver_session *session, weft_bytes code) {
    size_t len = weft__buf_len(&session->said);
    if (len > code.len || (len && memcmp(code.data, weft__buf_head(&session->said), len) != 0))
        return false;
    say_text(session, (weft_bytes){code.data + len, code.len - len});
    return true;
}

static void tell_usage(weft_driver_session *session, const weft_json *result) {
    weft_json tokens = weft_pointer(result, "/metadata/tokens_used");
    if (!tokens.text)
        tokens = weft_pointer(result, "/metrics/tokens_used");
    char text[64];
    weft_doc *doc = NULL;
    int64_t count = weft_int_of(&tokens, -1);
    int n = snprintf(text, sizeof text, "{\"totalTokens\":%lld}", (long long) count);
    if (count < 0 || !session->host->on_usage || weft_doc_parse(text, (size_t) n, session->process->alloc, &doc) < 0)
        return;
    session->host->on_usage(session->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
}

/* A result that says "failure" is one: the caller gets it as it is, and the task has failed. */
static void decide_by_status(weft_driver_session *session, const weft_json *result) {
    const char *status = weft_get_str(result, "status", "");
    if (strcmp(status, "success") == 0 || strcmp(status, "partial") == 0) {
        weft__planner_decide(session, false, NULL, "%s", "");
        return;
    }
    weft_json why = weft_pointer(result, "/error/message"), explanation = weft_pointer(result, "/output/explanation");
    const char *text = weft_str_of(&why, weft_str_of(&explanation, ""));
    weft__planner_decide(session, false, "refused", "%s: %.1000s", status, *text ? text : "it did not say why");
}

static void take_executed(weft_driver_session *session, const weft_json *result) {
    weft_json code = weft_pointer(result, "/output/code");
    weft_bytes text = {"", 0};
    char why[WEFT_SHAPE_WHY] = "out of memory";
    if (weft__shape_check(session->process->executed, result, why) < 0 || (code.text && weft_bytes_of(&code, &text) < 0)) {
        say_unreadable(session, why);
        return;
    }
    if (memchr(text.data, '\0', text.len)) {
        say_unreadable(session, "/output/code has a NUL in it");
        return;
    }
    if (code.text && !say_rest(session, text)) {
        say_unreadable(session, "output.code is not what it streamed");
        return;
    }
    if (!session->closed)
        tell_usage(session, result);
    if (!session->closed && session->host->on_result)
        session->host->on_result(session->ctx, result);
    if (!session->closed)
        decide_by_status(session, result);
}

static void take_other(weft_driver_session *session, const weft_json *result) {
    if (weft_typeof(result) != WEFT_OBJECT) {
        say_unreadable(session, "it is not an object");
        return;
    }
    say_text(session, (weft_bytes){result->text, result->len});
    if (!session->closed && session->host->on_result)
        session->host->on_result(session->ctx, result);
    if (!session->closed)
        weft__planner_decide(session, false, NULL, "%s", "");
}

/* What it marks as worth another attempt. */
static bool is_retryable(const weft_error *error) {
    weft_json marked = weft_get(&error->data, "retryable"), after = weft_get(&error->data, "retryAfterMs");
    return weft_bool_of(&marked, false) || weft_typeof(&after) == WEFT_NUMBER;
}

static void take_error(weft_driver_session *session, const weft_error *error) {
    char *text = NULL;
    size_t len = 0;
    weft_doc *doc = NULL;
    const char *details = weft_get_str(&error->data, "details", "");
    weft_val value = WEFT_OBJ({"error", WEFT_OBJ({"code", weft_int(error->code)}, {"message", weft_str(error->message)},
                                                 {"data", error->data.text ? weft_copy(&error->data) : weft_none()})});
    if (session->host->on_result && weft_to_text(value, session->process->alloc, &text, &len) >= 0 &&
        weft_doc_parse(text, len, session->process->alloc, &doc) >= 0)
        session->host->on_result(session->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
    weft_text_free(text, session->process->alloc);
    if (!session->closed)
        weft__planner_decide(session, is_retryable(error), "refused", "%.500s%s%.1000s (%d)", error->message,
                             *details ? ": " : "", details, error->code);
}

/* Without a connection, how the process ended says more. */
static void take_failure(weft_driver_session *session, int r) {
    const weft_driver_process *process = session->process;
    bool child = weft__planner_is_child(process);
    if (r == -EBADMSG)
        say_unreadable(session, "it is not an answer");
    else if (r == -EMSGSIZE)
        say_unreadable(session, "it is over the size limit of a message");
    else if (!child || (r != -ECONNRESET && r != -ENOTCONN))
        weft__planner_decide(session, true, "agentEnded", "%s has left in the middle of this turn", process->agent->name);
}

static void on_turn_answered(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    struct planner_call *call = ctx;
    weft_driver_session *session = call->session;
    (void) peer;
    if (session) {
        weft_driver_process *process = session->process;
        weft__planner_hold(process);
        session->call = NULL;
        if (r < 0)
            take_failure(session, r);
        else if (answer->error)
            take_error(session, answer->error);
        else if (session->executes)
            take_executed(session, answer->result);
        else
            take_other(session, answer->result);
        /* At once, so that what it answered and its end can be stored together. */
        if (r >= 0 && !session->closed && may_be_heard(process))
            tell_turn(session);
        weft__planner_release(process);
    }
    weft__free(call->alloc, call);
}

/* ---- streams ---- */

static bool is_stream(const weft_driver_session *session, const char *id) {
    return session->streams && strcmp(session->stream_id, id) == 0;
}

/* Which call it names: the seed's task_id is the id of the request. */
static bool is_for_call(const weft_driver_session *session, const weft_json *task_id) {
    char id[32];
    weft_bytes text = {task_id->text, task_id->len};
    int n = snprintf(id, sizeof id, "%lld", (long long) session->call->id);
    if (weft_typeof(task_id) == WEFT_STRING && weft_bytes_of(task_id, &text) < 0)
        return false;
    return text.len == (size_t) n && memcmp(text.data, id, text.len) == 0;
}

static bool may_stream(const weft_driver_session *session) {
    return session->busy && !session->decided && session->call;
}

size_t weft__planner_unnamed(const weft_driver_process *process) {
    size_t count = 0;
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next) {
        const weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        count += may_stream(session) && !session->streams;
    }
    return count;
}

static weft_driver_session *session_of_stream(const weft_driver_process *process, const weft_json *params, bool only) {
    weft_driver_session *alone = NULL, *named = NULL;
    const char *id = weft_get_str(params, "stream_id", "");
    weft_json task_id = weft_get(params, "task_id");
    size_t without = 0;
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        if (!may_stream(session))
            continue;
        if (is_stream(session, id))
            return session;
        if (session->streams)
            continue;
        without++;
        alone = session;
        if (task_id.text && is_for_call(session, &task_id))
            named = session;
    }
    return named ? named : only && without == 1 ? alone : NULL;
}

static void take_chunk(weft_driver_session *session, const weft_json *params) {
    weft_json chunk = weft_get(params, "chunk"), sequence = weft_get(params, "sequence");
    const weft_alloc *alloc = session->process->alloc;
    weft_bytes text;
    session->chunks++;
    if (session->stream_over)
        say_unreadable(session, "stream_data came behind stream_end");
    else if (sequence.text && weft_int_of(&sequence, -1) != (int64_t) session->chunks)
        say_unreadable(session, "the sequence of its stream has a gap");
    else if (weft_typeof(&chunk) != WEFT_STRING || weft_bytes_of(&chunk, &text) < 0 || memchr(text.data, '\0', text.len))
        say_unreadable(session, "a chunk of its stream is not a string");
    else if (weft__buf_len(&session->said) + text.len > PLANNER_SAID)
        say_unreadable(session, "it streamed more than 16 MiB");
    else if (weft__buf_put(&session->said, alloc, text.data, text.len) < 0)
        weft__planner_decide(session, true, "outOfMemory", "Out of memory.");
    else
        say_text(session, text);
}

static void take_stream_end(weft_driver_session *session, const weft_json *params) {
    weft_json total = weft_get(params, "total_chunks");
    session->stream_over = true;
    if (total.text && weft_int_of(&total, -1) != (int64_t) session->chunks)
        say_unreadable(session, "total_chunks is not the number of its chunks");
}

bool weft__planner_hear(weft_driver_process *process, const char *method, const weft_json *params, bool only) {
    weft_driver_session *session = session_of_stream(process, params, only);
    if (!session)
        return false;
    weft__planner_hold(process);
    if (!session->streams) {
        session->streams = true;
        snprintf(session->stream_id, sizeof session->stream_id, "%s", weft_get_str(params, "stream_id", ""));
    }
    if (strcmp(method, "stream_data") == 0)
        take_chunk(session, params);
    else if (strcmp(method, "stream_end") == 0)
        take_stream_end(session, params);
    weft__planner_release(process);
    return true;
}

/* ---- calling ---- */

static struct planner_call *new_call(weft_driver_process *process) {
    struct planner_call *call = weft__zalloc(process->alloc, sizeof *call);
    if (!call)
        return NULL;
    weft__list_init(&call->link);
    call->alloc = process->alloc;
    return call;
}

static int call_turn(weft_driver_session *session, const char *method, weft_val params) {
    struct planner_call *call = new_call(session->process);
    if (!call)
        return -ENOMEM;
    weft_call_opts opts = {.on_answer = on_turn_answered, .ctx = call, .timeout_ms = -1};
    int r = weft_call_start(session->process->wire->peer, method, params, &opts, &call->id);
    if (r < 0) {
        weft__free(call->alloc, call);
        return r;
    }
    call->session = session;
    session->call = call;
    return 0;
}

/* As the task's metadata has it, or what its prompt makes. The members are the seed's and no others: its server hands them
 * to a function by their names. */
static int call_by_spec(weft_driver_session *session, const weft_turn_spec *spec) {
    weft_doc *doc = NULL;
    int r = spec->metadata ? weft_doc_parse(spec->metadata, strlen(spec->metadata), session->process->alloc, &doc) : 0;
    if (r < 0)
        return r;
    weft_json params = doc ? weft_get(weft_doc_root(doc), "params") : (weft_json){0};
    const char *method = doc ? weft_get_str(weft_doc_root(doc), "method", "execute_task") : "execute_task";
    session->executes = strcmp(method, "execute_task") == 0;
    if (weft_typeof(&params) == WEFT_OBJECT)
        r = call_turn(session, method, weft_copy(&params));
    else
        r = call_turn(session, "execute_task",
                      WEFT_OBJ({"task_type", weft_str("code_generation")}, {"prompt", weft_str(spec->prompt)},
                               {"context", weft_obj(NULL, 0)}, {"options", weft_obj(NULL, 0)}));
    weft_doc_free(doc);
    return r;
}

static bool takes_turns(const weft_driver_process *process) {
    return !process->ending && !process->gone && process->wire && process->wire->peer;
}

int weft__planner_prompt_turn(weft_driver_session *session, const weft_turn_spec *spec) {
    weft_driver_process *process = session->process;
    if (session->busy)
        return -EBUSY;
    if (!takes_turns(process))
        return -EPIPE;
    session->streams = session->stream_over = session->decided = false;
    session->chunks = 0;
    session->busy = true;
    int r = 0;
    if (spec->prompt)
        r = call_by_spec(session, spec);
    else
        weft__planner_decide(session, false, NULL, "%s", "");
    session->busy = r >= 0;
    if (r >= 0)
        weft__planner_session_soon(session);
    return r == -ENOTCONN ? -EPIPE : r;
}

/* ---- what is no turn ---- */

static void on_ask_answered(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    struct planner_call *call = ctx;
    weft_driver_process *process = call->process;
    (void) peer;
    weft__list_remove(&call->link);
    if (process) {
        weft__planner_hold(process);
        if (r < 0)
            call->done(call->ctx, r == -ETIMEDOUT ? r : -EPIPE, NULL, weft_strerror(r));
        else if (answer->error)
            call->done(call->ctx, answer->error->code == WEFT_METHOD_NOT_FOUND ? -EOPNOTSUPP : -EREMOTEIO, NULL,
                       answer->error->message);
        else
            call->done(call->ctx, 0, answer->result, NULL);
        weft__planner_release(process);
    }
    weft__free(call->alloc, call);
}

int weft__planner_ask(weft_driver_process *process, const char *method, const weft_json *params, weft_driver_done *done,
                      void *ctx) {
    if (!takes_turns(process))
        return -EPIPE;
    struct planner_call *call = new_call(process);
    if (!call)
        return -ENOMEM;
    call->process = process;
    call->done = done;
    call->ctx = ctx;
    weft_call_opts opts = {.on_answer = on_ask_answered, .ctx = call, .timeout_ms = ASK_MS};
    int r = weft_call_start(process->wire->peer, method, weft_copy(params), &opts, &call->id);
    if (r < 0) {
        weft__free(call->alloc, call);
        return r == -ENOTCONN ? -EPIPE : r;
    }
    weft__list_push(&process->asks, &call->link);
    return 0;
}

/* ---- sessions ---- */

int weft__planner_session(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host,
                          void *ctx, weft_driver_session **ret) {
    (void) spec; /* a task knows nothing of the one before it */
    if (!takes_turns(process))
        return -EPIPE;
    weft_driver_session *session = weft__zalloc(process->alloc, sizeof *session);
    if (!session)
        return -ENOMEM;
    session->process = process;
    session->host = host;
    session->ctx = ctx;
    weft__later_init(&session->later, on_turn_due);
    weft__list_push(&process->sessions, &session->link);
    *ret = session;
    return 0;
}

void weft__planner_cancel(weft_driver_session *session) {
    weft__planner_decide(session, false, "cancelled", "It was cancelled.");
    give_up_call(session);
}

/* A callback of the session's may be under way: its memory stays until that is over. */
weft_driver_session *weft__planner_close(weft_driver_session *session) {
    if (!session || session->closed)
        return NULL;
    weft_driver_process *process = session->process;
    bool goes = session->busy && session->call && weft__planner_is_child(process) && !process->freed;
    weft__planner_hold(process);
    session->closed = true;
    session->busy = false;
    give_up_call(session);
    weft__later_cancel(&session->later);
    weft__list_remove(&session->link);
    weft__buf_done(&session->said, process->alloc);
    session->error = weft__free(process->alloc, session->error);
    weft__list_push(&process->closed, &session->link);
    if (goes) { /* it has no word for giving up a turn */
        process->leaving = true;
        weft__planner_decide_others(process, NULL, "because another turn in it was given up");
        weft__planner_end_child(process, false);
    }
    weft__planner_release(process);
    return NULL;
}

void weft__planner_drop_turns(weft_driver_process *process) {
    while (!weft__list_empty(&process->sessions))
        weft__planner_close(WEFT_CONTAINER(process->sessions.next, weft_driver_session, link));
    while (!weft__list_empty(&process->asks)) {
        struct planner_call *call = WEFT_CONTAINER(process->asks.next, struct planner_call, link);
        weft__list_remove(&call->link);
        call->process = NULL;
    }
}

/* Holders of a role that speak the planner's protocol, see driver_planner.h. This file has the life of a child's process,
 * and the table. The end of a child is told when its process is gone and everything that it wrote was read.
 *
 *     starts ──on_start──▶ runs ──stopped, its output has ended──▶ ending ──gone──▶ over */
#include "driver_planner.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "connect_fds.h"
#include "doc.h"
#include "planner_private.h"
#include "sum.h"
#include "utf8.h"

/* What a child gets to leave by itself after its input was closed, before it is asked to by signal. */
#define LEAVE_MS 500
/* When its process is gone, its pipe ends as soon as what is in it was read. */
#define LAST_WORDS_MS 500
/* Reads of what is left in its standard error. */
#define MOST_READS 16
/* A message: an answer may hold as much as a turn may say, escaped. */
#define LARGEST (32 * 1024 * 1024)

/* ---- memory ---- */

void weft__planner_hold(weft_driver_process *process) {
    process->calls++;
}

void weft__planner_release(weft_driver_process *process) {
    const weft_alloc *alloc = process->alloc;
    if (--process->calls)
        return;
    while (!weft__list_empty(&process->closed)) {
        weft_link *first = process->closed.next;
        weft__list_remove(first);
        weft__free(alloc, WEFT_CONTAINER(first, weft_driver_session, link));
    }
    if (!process->freed)
        return;
    weft__output_done(&process->err);
    weft__buf_done(&process->err_tail, alloc);
    weft_schema_free(process->executed);
    weft__free(alloc, process);
}

/* ---- wires ---- */

void weft__planner_wire_init(weft_planner_wire *wire, weft_peer *peer) {
    *wire = (weft_planner_wire){.peer = peer};
    weft__list_init(&wire->processes);
}

static void leave_wire(weft_driver_process *process) {
    weft_planner_wire *wire = process->wire;
    weft__list_remove(&process->at_wire);
    process->wire = NULL;
    if (wire && process->paused && --wire->pauses == 0 && wire->peer)
        weft_peer_pause(wire->peer, false);
}

void weft__planner_wire_lost(weft_planner_wire *wire) {
    wire->peer = NULL;
    while (!weft__list_empty(&wire->processes)) {
        weft_driver_process *process = WEFT_CONTAINER(wire->processes.next, weft_driver_process, at_wire);
        leave_wire(process);
        process->ending = true;
        for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next)
            weft__planner_decide(WEFT_CONTAINER(link, weft_driver_session, link), true, "agentEnded",
                                 "%s has left in the middle of this turn", process->agent->name);
    }
}

bool weft__planner_wire_hear(weft_planner_wire *wire, const char *method, const weft_json *params) {
    size_t unnamed = 0;
    for (weft_link *link = wire->processes.next; link != &wire->processes; link = link->next)
        unnamed += weft__planner_unnamed(WEFT_CONTAINER(link, weft_driver_process, at_wire));
    for (weft_link *link = wire->processes.next, *next; link != &wire->processes; link = next) {
        next = link->next;
        if (weft__planner_hear(WEFT_CONTAINER(link, weft_driver_process, at_wire), method, params, unnamed == 1))
            return true;
    }
    return false;
}

/* ---- its standard error ---- */

static void keep_err_tail(weft_driver_process *process, weft_bytes text) {
    if (text.len > PLANNER_TAIL)
        text = (weft_bytes){text.data + text.len - PLANNER_TAIL, PLANNER_TAIL};
    size_t len = weft__buf_len(&process->err_tail) + text.len;
    if (len > PLANNER_TAIL)
        weft__buf_take(&process->err_tail, process->alloc, len - PLANNER_TAIL);
    weft__buf_put(&process->err_tail, process->alloc, text.data, text.len); /* without memory there is less to say */
}

weft_bytes weft__planner_stderr_tail(const weft_driver_process *process) {
    weft_bytes tail = {weft__buf_head(&process->err_tail), weft__buf_len(&process->err_tail)};
    if (!tail.data)
        return (weft_bytes){"", 0};
    size_t from = weft__utf8_from(tail.data, tail.len, 0);
    tail = (weft_bytes){tail.data + from, tail.len - from};
    while (tail.len && (tail.data[tail.len - 1] == '\n' || tail.data[tail.len - 1] == '\r'))
        tail.len--;
    return tail;
}

/* To every session that has a turn: it belongs to the process. */
static void on_err_text(void *ctx, weft_bytes text) {
    weft_driver_process *process = ctx;
    bool changed = false;
    keep_err_tail(process, text);
    for (weft_link *link = process->sessions.next; !changed && link != &process->sessions; link = link->next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        if (session->busy && !session->decided)
            session->host->on_output(session->ctx, WEFT_RUN_STDERR, text);
        changed = session->closed || process->freed;
    }
}

static void close_err(weft_driver_process *process) {
    process->err_watch = weft__watch_free(process->err_watch);
    if (process->err_fd >= 0)
        close(process->err_fd);
    process->err_fd = -1;
}

static void read_err(weft_driver_process *process) {
    ssize_t n = read(process->err_fd, process->loop->read, WEFT_LOOP_READ);
    if (n > 0)
        weft__output_feed(&process->err, process->loop->read, (size_t) n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        weft__output_end(&process->err);
        close_err(process);
    }
}

static void on_err_ready(void *ctx, unsigned what) {
    weft_driver_process *process = ctx;
    (void) what;
    weft__planner_hold(process);
    read_err(process);
    weft__planner_release(process);
}

static void drain_err(weft_driver_process *process) {
    for (int i = 0; i < MOST_READS && !process->freed && process->err_fd >= 0; i++) {
        struct pollfd one = {.fd = process->err_fd, .events = POLLIN};
        if (poll(&one, 1, 0) != 1)
            break;
        read_err(process);
    }
    if (!process->freed)
        weft__output_end(&process->err);
}

/* ---- its end ---- */

static void hang_up(weft_driver_process *process) {
    weft_peer *peer = process->own.peer;
    process->own.peer = NULL;
    weft_peer_free(peer);
}

static void finish_child(weft_driver_process *process) {
    const weft_process_end *end = &process->process_end;
    if (process->over || process->freed)
        return;
    weft__timer_stop(process->loop, &process->timer);
    process->ending = true;
    hang_up(process);
    drain_err(process);
    if (process->freed)
        return;
    process->over = true;
    weft__planner_finish_turns(process);
    if (!process->freed)
        process->host->on_end(process->ctx, end->error < 0 ? -1 : end->exit_code, process->stopped ? 0 : end->signal);
}

static void finish_guest(weft_driver_process *process) {
    process->over = true;
    weft__planner_finish_turns(process);
    if (!process->freed)
        process->host->on_end(process->ctx, -1, 0);
}

static void on_end_due(weft_later *later) {
    weft_driver_process *process = WEFT_CONTAINER(later, weft_driver_process, later);
    weft__planner_hold(process);
    if (!process->over && !process->freed)
        (weft__planner_is_child(process) ? finish_child : finish_guest)(process);
    weft__planner_release(process);
}

static void wait_ms(weft_driver_process *process, int64_t ms) {
    weft__timer_set(process->loop, &process->timer, weft__add_ms(weft__loop_fresh_now(process->loop), ms));
}

static void stop_child(weft_driver_process *process, bool force) {
    if (process->gone || !process->process)
        return;
    process->stopped = true;
    weft__process_stop(process->process, force);
}

/* It has had its time: to leave, or to say its last words. */
static void on_planner_due(weft_timer *timer) {
    weft_driver_process *process = WEFT_CONTAINER(timer, weft_driver_process, timer);
    if (process->gone && process->paused && !process->silent && !process->ending)
        wait_ms(process, LAST_WORDS_MS); /* what it said last is read when somebody wants to hear it */
    else if (process->gone)
        weft__later(process->loop, &process->later);
    else
        stop_child(process, false);
}

void weft__planner_end_child(weft_driver_process *process, bool force) {
    bool first = !process->ending;
    process->ending = true;
    if (first) {
        hang_up(process);
        if (process->gone)
            weft__later(process->loop, &process->later);
        else
            wait_ms(process, LEAVE_MS);
    }
    if (force)
        stop_child(process, true);
}

static void on_child_start(void *ctx, pid_t pid) {
    weft_driver_process *process = ctx;
    weft__planner_hold(process);
    process->started = true;
    if (process->own.peer)
        weft_peer_pause(process->own.peer, process->paused);
    if (process->err_watch)
        weft__watch_set(process->err_watch, process->paused ? 0 : WEFT_WATCH_READ);
    process->host->on_process(process->ctx, pid);
    for (weft_link *link = process->sessions.next; !process->freed && link != &process->sessions; link = link->next)
        if (WEFT_CONTAINER(link, weft_driver_session, link)->busy)
            weft__planner_session_soon(WEFT_CONTAINER(link, weft_driver_session, link));
    weft__planner_release(process);
}

static void on_child_end(void *ctx, const weft_process_end *end) {
    weft_driver_process *process = ctx;
    process->gone = true;
    process->process_end = *end;
    if (process->own.peer && process->started && !process->silent)
        wait_ms(process, LAST_WORDS_MS); /* on_child_state() comes when all of it was read */
    else
        weft__later(process->loop, &process->later);
}

/* Its output has ended. */
static void on_child_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    weft_driver_process *process = data;
    (void) peer, (void) why;
    if (state != WEFT_PEER_CLOSED || process->freed || process->over)
        return;
    process->silent = true;
    if (process->gone)
        weft__later(process->loop, &process->later);
    else if (!process->ending) {
        process->ending = true;
        wait_ms(process, LEAVE_MS);
    }
}

/* ---- what it says ---- */

static int take_stream(weft_req *req, const weft_json *params, void *ctx) {
    weft__planner_hear(ctx, weft_req_method(req), params, true);
    return weft_reply(req, weft_null());
}

static const weft_method child_methods[] = {
    {.name = "stream_start", .handler = take_stream, .help = ""},
    {.name = "stream_data", .handler = take_stream, .help = ""},
    {.name = "stream_end", .handler = take_stream, .help = ""},
    {0},
};

/* A line that is neither a request nor an answer was not meant for us. An error in return would only confuse a child that
 * takes every line for a request, as the seed's does. Nor is an answer of its to nothing, with the id null. */
static bool is_message(const weft_json *line) {
    weft_json method = weft_get(line, "method"), id = weft_get(line, "id");
    weft_json result = weft_get(line, "result"), error = weft_get(line, "error");
    return weft_typeof(&method) == WEFT_STRING || (weft_typeof(&id) == WEFT_NUMBER && (result.text || error.text));
}

static bool on_child_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    weft_driver_process *process = data;
    WEFT_AUTO(weft_doc) doc = NULL;
    (void) peer, (void) binary;
    int r = weft_doc_parse(body.data, body.len, process->alloc, &doc);
    if (r == -ENOMEM || (r == 0 && is_message(weft_doc_root(doc))))
        return false;
    process->noise++;
    return true;
}

/* ---- starting ---- */

static int talk_to_child(weft_driver_process *process, int in, int out) {
    weft_service_opts service = {
        .methods = child_methods,
        .ctx = process,
        .alloc = process->alloc,
        .limits = {.max_body = LARGEST, .out_hard = 2 * LARGEST},
    };
    weft_connect_opts opts = {
        .no_batch = true, .lenient = true, .data = process, .on_state = on_child_state, .on_raw = on_child_raw};
    int r = weft_service_new(&service, &process->service);
    opts.service = process->service;
    if (r < 0) {
        close(in);
        close(out);
        return r;
    }
    r = weft__connect_fds(process->loop, in, out, &opts, &process->own.peer);
    if (r >= 0)
        weft_peer_pause(process->own.peer, true); /* until the host knows of the process */
    return r;
}

static int start_child(weft_driver_process *process, const weft_process_spec *spec) {
    int fds[3];
    weft_process_opts opts = {
        .loop = spec->loop,
        .alloc = spec->alloc,
        .guard = spec->program,
        .argv = spec->agent->argv,
        .env = spec->agent->env,
        .folder = spec->folder,
        .grace_ms = spec->grace_ms,
        .ctx = process,
        .on_start = on_child_start,
        .on_end = on_child_end,
    };
    int r = weft__process_start(&opts, &process->process, fds);
    if (r < 0)
        return r;
    process->err_fd = fds[2];
    r = weft__watch_new(process->loop, fds[2], on_err_ready, process, &process->err_watch);
    if (r < 0) {
        close(fds[0]);
        close(fds[1]);
        return r;
    }
    return talk_to_child(process, fds[1], fds[0]);
}

static weft_driver_process *planner_free(weft_driver_process *process) {
    if (!process || process->freed)
        return NULL;
    weft__planner_hold(process);
    process->freed = true;
    weft__planner_drop_turns(process);
    weft__timer_stop(process->loop, &process->timer);
    weft__later_cancel(&process->later);
    if (process->wire)
        leave_wire(process);
    hang_up(process);
    close_err(process);
    process->service = weft_service_unref(process->service);
    process->process = weft__process_free(process->process);
    weft__planner_release(process);
    return NULL;
}

static int planner_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    weft_planner_wire *wire = spec->agent->wire;
    if (!wire && (!spec->agent->argv || !spec->agent->argv[0]))
        return -EINVAL;
    if (wire && !wire->peer)
        return -EPIPE;
    weft_driver_process *process = weft__zalloc(spec->alloc, sizeof *process);
    if (!process)
        return -ENOMEM;
    process->loop = spec->loop;
    process->alloc = spec->alloc;
    process->agent = spec->agent;
    process->host = host;
    process->ctx = ctx;
    process->err_fd = -1;
    weft__list_init(&process->at_wire);
    weft__list_init(&process->sessions);
    weft__list_init(&process->closed);
    weft__list_init(&process->asks);
    weft__timer_init(&process->timer, on_planner_due);
    weft__later_init(&process->later, on_end_due);
    weft__output_init(&process->err, spec->alloc, on_err_text, process);
    weft__planner_wire_init(&process->own, NULL);
    process->wire = wire ? wire : &process->own;
    weft__list_push(&process->wire->processes, &process->at_wire);
    int r = weft__shape_new(weft__executed_shape, spec->alloc, &process->executed);
    if (r >= 0 && !wire)
        r = start_child(process, spec);
    if (r < 0) {
        planner_free(process);
        return r;
    }
    *ret = process;
    return 0;
}

/* ---- the table ---- */

static int planner_answer(weft_driver_session *session, const char *key, const char *option) {
    (void) session, (void) key, (void) option;
    return -ENOENT;
}

/* A child has no word for giving up, so it goes; somebody connected is told. */
static void planner_stop(weft_driver_process *process, weft_driver_session *session, bool force) {
    bool child = weft__planner_is_child(process);
    if (process->freed || process->over)
        return;
    if (session && !session->busy)
        return;
    process->leaving |= child;
    if (session)
        weft__planner_cancel(session);
    if (session && !child)
        return;
    weft__planner_decide_others(process, session,
                                session ? "because another turn in it was cancelled" : "in the middle of this turn");
    if (child) {
        weft__planner_end_child(process, force);
        if (session)
            stop_child(process, force);
        return;
    }
    process->ending = true;
    weft__later(process->loop, &process->later);
}

static void planner_pause(weft_driver_process *process, bool paused) {
    weft_planner_wire *wire = process->wire;
    if (process->paused == paused)
        return;
    process->paused = paused;
    if (wire) {
        wire->pauses += paused ? 1 : (size_t) -1;
        if (wire->peer && wire->pauses == (paused ? 1 : 0) && (process->started || !weft__planner_is_child(process)))
            weft_peer_pause(wire->peer, paused);
    }
    if (process->err_watch && process->started)
        weft__watch_set(process->err_watch, paused ? 0 : WEFT_WATCH_READ);
}

const weft_driver weft__driver_planner = {
    .name = "planner",
    .never_asks = true,
    .open = planner_open,
    .session = weft__planner_session,
    .prompt = weft__planner_prompt_turn,
    .answer = planner_answer,
    .stop = planner_stop,
    .ask = weft__planner_ask,
    .pause = planner_pause,
    .close = weft__planner_close,
    .free = planner_free,
};

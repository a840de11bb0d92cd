/* The standard error of an ACP agent: free text, passed on in whole lines, of which the end is kept for the error text. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "acp_private.h"
#include "utf8.h"

/* A line that does not go on for so long is handed over as it is: it may be all that there is to see. */
#define SILENCE_MS 200
/* When the process is gone, a pipe's worth is left in the pipe, unless somebody who is not ours goes on writing. */
#define MOST_READS 16

static void keep_tail(weft_driver_process *process, weft_bytes text) {
    if (text.len > WEFT_ACP_TAIL)
        text = (weft_bytes){text.data + text.len - WEFT_ACP_TAIL, WEFT_ACP_TAIL};
    size_t len = weft__buf_len(&process->err_tail) + text.len;
    if (len > WEFT_ACP_TAIL)
        weft__buf_take(&process->err_tail, process->alloc, len - WEFT_ACP_TAIL);
    weft__buf_put(&process->err_tail, process->alloc, text.data, text.len); /* without memory there is less to say */
}

/* The process is everybody's. Nobody else hears a text in which one of them closed its session: the list has changed. */
static void tell_turns(weft_driver_process *process, weft_bytes text) {
    bool closed = false;
    weft_link *link = process->sessions.next;
    while (!closed && link != &process->sessions) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        weft__acp_session_hold(session);
        if (session->turn != WEFT_ACP_IDLE)
            session->host->on_output(session->ctx, WEFT_RUN_STDERR, text);
        closed = session->closed || process->freed;
        link = link->next;
        weft__acp_session_release(session);
    }
}

static void on_text(void *ctx, weft_bytes text) {
    weft_driver_process *process = ctx;
    keep_tail(process, text);
    tell_turns(process, text);
}

/* Read what is there, a buffer at a time, so that one agent does not keep the loop to itself. What is lost for want of
 * memory is lost. */
static void read_some(weft_driver_process *process) {
    ssize_t n = read(process->err_fd, process->loop->read, WEFT_LOOP_READ);
    if (n > 0)
        weft__output_feed(&process->err, process->loop->read, (size_t) n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        weft__output_end(&process->err);
        weft__acp_stderr_close(process);
    }
    if (!process->freed)
        weft__timer_set(process->loop, &process->err_timer,
                        weft__output_holds(&process->err) ? weft_loop_now(process->loop) + SILENCE_MS : INT64_MAX);
}

static void on_ready(void *ctx, unsigned what) {
    weft_driver_process *process = ctx;
    (void) what;
    weft__acp_hold(process);
    read_some(process);
    weft__acp_release(process);
}

static void on_silence(weft_timer *timer) {
    weft_driver_process *process = WEFT_CONTAINER(timer, weft_driver_process, err_timer);
    weft__acp_hold(process);
    weft__output_flush(&process->err);
    weft__acp_release(process);
}

void weft__acp_stderr_init(weft_driver_process *process) {
    process->err_fd = -1;
    weft__timer_init(&process->err_timer, on_silence);
    weft__output_init(&process->err, process->alloc, on_text, process);
}

int weft__acp_stderr_open(weft_driver_process *process, int fd) {
    process->err_fd = fd;
    return weft__watch_new(process->loop, fd, on_ready, process, &process->err_watch);
}

void weft__acp_stderr_heed(weft_driver_process *process, bool now) {
    if (process->err_watch)
        weft__watch_set(process->err_watch, now ? WEFT_WATCH_READ : 0);
}

void weft__acp_stderr_drain(weft_driver_process *process) {
    for (int i = 0; i < MOST_READS && !process->freed && process->err_fd >= 0; i++) {
        struct pollfd one = {.fd = process->err_fd, .events = POLLIN};
        if (poll(&one, 1, 0) != 1)
            break;
        read_some(process);
    }
}

void weft__acp_stderr_end(weft_driver_process *process) {
    if (!process->freed)
        weft__output_end(&process->err);
}

void weft__acp_stderr_close(weft_driver_process *process) {
    weft__timer_stop(process->loop, &process->err_timer);
    process->err_watch = weft__watch_free(process->err_watch);
    if (process->err_fd >= 0)
        close(process->err_fd);
    process->err_fd = -1;
}

weft_bytes weft__acp_stderr_tail(const weft_driver_process *process) {
    weft_bytes tail = {weft__buf_head(&process->err_tail), weft__buf_len(&process->err_tail)};
    if (!tail.data)
        return tail; /* C does not define NULL + 0 */
    size_t from = weft__utf8_from(tail.data, tail.len, 0);
    tail = (weft_bytes){tail.data + from, tail.len - from};
    while (tail.len && (tail.data[tail.len - 1] == '\n' || tail.data[tail.len - 1] == '\r'))
        tail.len--;
    return tail;
}

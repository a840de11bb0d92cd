/* The standard error of an ACP agent: free text, passed on in whole lines, of which the end is kept for the error text. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "acp_run.h"
#include "utf8.h"

/* A line that does not go on for so long is handed over as it is: it may be all that there is to see. */
#define SILENCE_MS 200
/* When the process is gone, a pipe's worth is left in the pipe, unless somebody who is not ours goes on writing. */
#define MOST_READS 16

static void keep_tail(weft_run *run, weft_bytes text) {
    if (text.len > WEFT_ACP_TAIL)
        text = (weft_bytes){text.data + text.len - WEFT_ACP_TAIL, WEFT_ACP_TAIL};
    size_t len = weft__buf_len(&run->err_tail) + text.len;
    if (len > WEFT_ACP_TAIL)
        weft__buf_take(&run->err_tail, run->alloc, len - WEFT_ACP_TAIL);
    weft__buf_put(&run->err_tail, run->alloc, text.data, text.len); /* without memory there is less to say */
}

static void on_text(void *ctx, weft_bytes text) {
    weft_run *run = ctx;
    keep_tail(run, text);
    if (!run->freed)
        run->host.on_output(run->ctx, WEFT_RUN_STDERR, text);
}

/* Read what is there, a buffer at a time, so that one agent does not keep the loop to itself. What is lost for want of
 * memory is lost. */
static void read_some(weft_run *run) {
    ssize_t n = read(run->err_fd, run->loop->read, WEFT_LOOP_READ);
    if (n > 0)
        weft__output_feed(&run->err, run->loop->read, (size_t) n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        weft__output_end(&run->err);
        weft__acp_stderr_close(run);
    }
    if (!run->freed)
        weft__timer_set(run->loop, &run->err_timer,
                        weft__output_holds(&run->err) ? weft_loop_now(run->loop) + SILENCE_MS : INT64_MAX);
}

static void on_ready(void *ctx, unsigned what) {
    weft_run *run = ctx;
    (void) what;
    weft__acp_hold(run);
    read_some(run);
    weft__acp_release(run);
}

static void on_silence(weft_timer *timer) {
    weft_run *run = WEFT_CONTAINER(timer, weft_run, err_timer);
    weft__acp_hold(run);
    weft__output_flush(&run->err);
    weft__acp_release(run);
}

void weft__acp_stderr_init(weft_run *run) {
    run->err_fd = -1;
    weft__timer_init(&run->err_timer, on_silence);
    weft__output_init(&run->err, run->alloc, on_text, run);
}

int weft__acp_stderr_open(weft_run *run, int fd) {
    run->err_fd = fd;
    return weft__watch_new(run->loop, fd, on_ready, run, &run->err_watch);
}

void weft__acp_stderr_heed(weft_run *run, bool now) {
    if (run->err_watch)
        weft__watch_set(run->err_watch, now ? WEFT_WATCH_READ : 0);
}

void weft__acp_stderr_drain(weft_run *run) {
    for (int i = 0; i < MOST_READS && !run->freed && run->err_fd >= 0; i++) {
        struct pollfd one = {.fd = run->err_fd, .events = POLLIN};
        if (poll(&one, 1, 0) != 1)
            break;
        read_some(run);
    }
    if (!run->freed)
        weft__output_end(&run->err);
}

void weft__acp_stderr_close(weft_run *run) {
    weft__timer_stop(run->loop, &run->err_timer);
    run->err_watch = weft__watch_free(run->err_watch);
    if (run->err_fd >= 0)
        close(run->err_fd);
    run->err_fd = -1;
}

weft_bytes weft__acp_stderr_tail(const weft_run *run) {
    weft_bytes tail = {weft__buf_head(&run->err_tail), weft__buf_len(&run->err_tail)};
    if (!tail.data)
        return tail; /* C does not define NULL + 0 */
    size_t from = weft__utf8_from(tail.data, tail.len, 0);
    tail = (weft_bytes){tail.data + from, tail.len - from};
    while (tail.len && (tail.data[tail.len - 1] == '\n' || tail.data[tail.len - 1] == '\r'))
        tail.len--;
    return tail;
}

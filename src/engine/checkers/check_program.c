/* One program that checks: started under a guard, its output collected, its time measured. */
#include <errno.h>
#include <unistd.h>

#include "check_private.h"
#include "process.h"
#include "watch.h"

/* Memory that a checker may have of its own, and a file that it may write: more than any needs for a text of 1 MiB, and less
 * than would hurt the machine. */
#define MAX_DATA ((uint64_t) 2 << 30)
#define MAX_FILE ((uint64_t) 64 << 20)
/* Between asking it to end and killing it. It has nothing to lose. */
#define GRACE_MS 500
/* Reads at the end, of what the pipes hold. */
#define LAST_READS 32

typedef struct said {
    weft_check_program *program;
    int fd; /* -1: it has ended */
    weft_watch *watch;
    weft_buf text;
} said;

struct weft_check_program {
    weft_check_program_opts opts;
    weft_process *process;
    said streams[2];
    weft_timer late;
    weft_later over;
    weft_process_end end;
    int r; /* why it was ended */
};

static void close_said(said *stream) {
    stream->watch = weft__watch_free(stream->watch);
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

static void end_early(weft_check_program *self, int r) {
    if (self->r == 0)
        self->r = r;
    if (self->process)
        weft__process_stop(self->process, true);
}

/* 1: there may be more. */
static int read_said(said *stream) {
    weft_check_program *self = stream->program;
    weft_loop *loop = self->opts.loop;
    ssize_t n = read(stream->fd, loop->read, WEFT_LOOP_READ);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) {
        close_said(stream);
        return 0;
    }
    size_t had = weft__buf_len(&self->streams[0].text) + weft__buf_len(&self->streams[1].text);
    if (had + (size_t) n > WEFT_CHECK_OUTPUT) {
        end_early(self, -EFBIG);
        return 1;
    }
    if (self->r == 0 && weft__buf_put(&stream->text, self->opts.alloc, loop->read, (size_t) n) < 0)
        end_early(self, -ENOMEM);
    return 1;
}

static void on_said(void *ctx, unsigned what) {
    (void) what;
    read_said(ctx);
}

static weft_bytes text_of(const said *stream) {
    return (weft_bytes){weft__buf_len(&stream->text) ? weft__buf_head(&stream->text) : "", weft__buf_len(&stream->text)};
}

static void on_over(weft_later *later) {
    weft_check_program *self = WEFT_CONTAINER(later, weft_check_program, over);
    for (int i = 0; i < 2; i++)
        for (int left = LAST_READS; left && self->streams[i].fd >= 0 && read_said(&self->streams[i]) > 0;)
            left--;
    weft_check_output output = {
        .out = text_of(&self->streams[0]), .err = text_of(&self->streams[1]), .exit_code = self->end.exit_code};
    int r = self->r < 0 ? self->r : self->end.error;
    self->opts.on_end(self->opts.ctx, r, r < 0 ? NULL : &output);
}

static void on_program_end(void *ctx, const weft_process_end *end) {
    weft_check_program *self = ctx;
    self->end = *end;
    weft__timer_stop(self->opts.loop, &self->late);
    weft__later(self->opts.loop, &self->over);
}

static void on_late(weft_timer *timer) {
    end_early(WEFT_CONTAINER(timer, weft_check_program, late), -ETIMEDOUT);
}

static int watch_said(weft_check_program *self) {
    int r = 0;
    for (int i = 0; i < 2 && r >= 0; i++) {
        said *stream = &self->streams[i];
        r = weft__watch_new(self->opts.loop, stream->fd, on_said, stream, &stream->watch);
        if (r >= 0)
            r = weft__watch_set(stream->watch, WEFT_WATCH_READ);
    }
    return r;
}

static int start_program(weft_check_program *self) {
    const weft_check_program_opts *opts = &self->opts;
    int fds[3];
    weft_process_bounds bounds = {.confined = opts->confined,
                                  .max_data = opts->confined ? MAX_DATA : 0,
                                  .max_file = opts->confined ? MAX_FILE : 0,
                                  .bare = true};
    weft_process_opts process = {.loop = opts->loop,
                                 .alloc = opts->alloc,
                                 .guard = opts->guard,
                                 .argv = opts->argv,
                                 .env = opts->env,
                                 .folder = opts->folder,
                                 .grace_ms = GRACE_MS,
                                 .bounds = &bounds,
                                 .ctx = self,
                                 .on_end = on_program_end};
    int r = weft__process_start(&process, &self->process, fds);
    if (r < 0)
        return r;
    close(fds[0]); /* it has nothing to read there */
    self->streams[0].fd = fds[1];
    self->streams[1].fd = fds[2];
    weft__timer_set(opts->loop, &self->late, weft__add_ms(weft__loop_fresh_now(opts->loop), opts->within_ms));
    return watch_said(self);
}

int weft__check_program_start(const weft_check_program_opts *opts, weft_check_program **ret) {
    weft_check_program *self = weft__zalloc(opts->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->opts = *opts;
    weft__timer_init(&self->late, on_late);
    weft__later_init(&self->over, on_over);
    for (int i = 0; i < 2; i++)
        self->streams[i] = (said){.program = self, .fd = -1};
    int r = start_program(self);
    if (r < 0)
        weft__check_program_free(self);
    else
        *ret = self;
    return r;
}

void weft__check_program_stop(weft_check_program *self, int r) {
    end_early(self, r);
}

weft_check_program *weft__check_program_free(weft_check_program *self) {
    if (!self)
        return NULL;
    weft__process_free(self->process);
    weft__timer_stop(self->opts.loop, &self->late);
    weft__later_cancel(&self->over);
    for (int i = 0; i < 2; i++) {
        close_said(&self->streams[i]);
        weft__buf_done(&self->streams[i].text, self->opts.alloc);
    }
    return weft__free(self->opts.alloc, self);
}

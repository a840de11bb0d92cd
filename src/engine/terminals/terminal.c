/* A pty, its reader and its process. See terminal.h.
 *
 * A terminal's end of output is the error EIO, and it comes when the last process has closed it. A program may close it, go
 * on, and open it again by its name, so only the end of the process is the end of the terminal: then everything that could
 * print has gone, and what is left to be read is read at once. */
#include "terminal.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "watch.h"

/* One read gives at most a page of a pty. So many are made before the loop looks after the others. */
#define READ_BYTES 16384
#define READS 16
/* What a terminal holds when its programs have gone is a few pages. Whoever else has it open could go on for ever. */
#define LAST_READS 1024
/* How often we look whether somebody has opened it again. */
#define LOOK_AGAIN_MS 200

struct weft_terminal {
    weft_loop *loop;
    const weft_alloc *alloc;
    void *ctx;
    void (*on_start)(void *ctx);
    void (*on_end)(void *ctx);
    weft_process *process;
    int fd; /* -1: it has ended */
    weft_watch *watch;
    bool silent; /* nobody has it open but us: there is nothing to wait for */
    weft_timer look;
    bool started, ended;
    pid_t pid;
    weft_process_end end;
    weft_process_size size;
    weft_buf input;
    weft_scrollback output;
};

/* ---- reading and writing ---- */

static void heed_terminal(weft_terminal *terminal) {
    unsigned what = terminal->silent ? 0 : WEFT_WATCH_READ | (weft__buf_len(&terminal->input) ? WEFT_WATCH_WRITE : 0u);
    if (terminal->watch && weft__watch_set(terminal->watch, what) < 0)
        weft__process_stop(terminal->process, true); /* a terminal that is not read stands still for ever */
    if (terminal->silent)
        weft__timer_set(terminal->loop, &terminal->look, weft__loop_fresh_now(terminal->loop) + LOOK_AGAIN_MS);
}

static void read_terminal(weft_terminal *terminal, int times) {
    char data[READ_BYTES];
    while (times-- > 0) {
        ssize_t n = read(terminal->fd, data, sizeof data);
        if (n > 0)
            weft__scrollback_feed(&terminal->output, data, (size_t) n);
        else if (n == 0 || errno != EINTR) {
            terminal->silent = n == 0 || errno != EAGAIN;
            return;
        }
    }
}

static void write_terminal(weft_terminal *terminal) {
    weft_buf *input = &terminal->input;
    while (weft__buf_len(input)) {
        ssize_t n = write(terminal->fd, weft__buf_head(input), weft__buf_len(input));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            weft__buf_done(input, terminal->alloc);
        if (n <= 0)
            return;
        weft__buf_take(input, terminal->alloc, (size_t) n);
    }
}

static void on_terminal_ready(void *ctx, unsigned what) {
    weft_terminal *terminal = ctx;
    if (what & WEFT_WATCH_READ)
        read_terminal(terminal, READS);
    if (what & WEFT_WATCH_WRITE && !terminal->silent)
        write_terminal(terminal);
    heed_terminal(terminal);
}

static void look_at_terminal(weft_timer *timer) {
    weft_terminal *terminal = WEFT_CONTAINER(timer, weft_terminal, look);
    read_terminal(terminal, READS);
    heed_terminal(terminal);
}

/* ---- its process ---- */

static void on_terminal_start(void *ctx, pid_t pid) {
    weft_terminal *terminal = ctx;
    terminal->started = true;
    terminal->pid = pid;
    terminal->on_start(terminal->ctx);
}

static void close_terminal(weft_terminal *terminal) {
    weft__timer_stop(terminal->loop, &terminal->look);
    terminal->watch = weft__watch_free(terminal->watch);
    if (terminal->fd >= 0)
        close(terminal->fd);
    terminal->fd = -1;
    weft__buf_done(&terminal->input, terminal->alloc);
}

static void on_terminal_end(void *ctx, const weft_process_end *end) {
    weft_terminal *terminal = ctx;
    bool started = terminal->started;
    read_terminal(terminal, LAST_READS);
    weft__scrollback_end(&terminal->output);
    close_terminal(terminal);
    terminal->end = *end;
    terminal->ended = terminal->started = true;
    (started ? terminal->on_end : terminal->on_start)(terminal->ctx);
}

/* ---- the terminal ---- */

static weft_terminal *new_terminal(const weft_terminal_opts *opts) {
    weft_terminal *made = weft__zalloc(opts->alloc, sizeof *made);
    if (!made)
        return NULL;
    made->loop = opts->loop;
    made->alloc = opts->alloc;
    made->ctx = opts->ctx;
    made->on_start = opts->on_start;
    made->on_end = opts->on_end;
    made->fd = -1;
    weft__timer_init(&made->look, look_at_terminal);
    made->size.cols = opts->size.cols ? opts->size.cols : WEFT_TERMINAL_COLS;
    made->size.rows = opts->size.rows ? opts->size.rows : WEFT_TERMINAL_ROWS;
    weft__scrollback_init(&made->output, opts->alloc,
                          opts->limit < WEFT_TERMINAL_OUTPUT ? opts->limit : WEFT_TERMINAL_OUTPUT);
    return made;
}

static int start_terminal(weft_terminal *terminal, const weft_terminal_opts *opts) {
    int fds[3];
    int r = weft__process_start(
        &(weft_process_opts){
            .loop = opts->loop,
            .alloc = opts->alloc,
            .guard = opts->guard,
            .argv = opts->argv,
            .env = opts->env,
            .folder = opts->folder,
            .grace_ms = opts->grace_ms,
            .terminal = &terminal->size,
            .ctx = terminal,
            .on_start = on_terminal_start,
            .on_end = on_terminal_end,
        },
        &terminal->process, fds);
    if (r < 0)
        return r;
    terminal->fd = fds[0];
    r = weft__watch_new(opts->loop, terminal->fd, on_terminal_ready, terminal, &terminal->watch);
    return r < 0 ? r : weft__watch_set(terminal->watch, WEFT_WATCH_READ);
}

int weft__terminal_start(const weft_terminal_opts *opts, weft_terminal **ret) {
    weft_terminal *made = new_terminal(opts);
    int r = made ? start_terminal(made, opts) : -ENOMEM;
    if (r < 0) {
        weft__terminal_free(made);
        return r;
    }
    *ret = made;
    return 0;
}

weft_bytes weft__terminal_text(const weft_terminal *terminal, size_t max, bool *ret_truncated) {
    return weft__scrollback_text(&terminal->output, max, ret_truncated);
}

const weft_process_end *weft__terminal_end(const weft_terminal *terminal) {
    return terminal->ended ? &terminal->end : NULL;
}

pid_t weft__terminal_pid(const weft_terminal *terminal) {
    return terminal->pid;
}

int weft__terminal_type(weft_terminal *terminal, weft_bytes input) {
    if (terminal->fd < 0 || terminal->silent)
        return -EPIPE;
    if (input.len > WEFT_TERMINAL_INPUT - weft__buf_len(&terminal->input))
        return -ENOBUFS;
    int r = weft__buf_put(&terminal->input, terminal->alloc, input.data, input.len);
    if (r < 0)
        return r;
    write_terminal(terminal);
    heed_terminal(terminal);
    return 0;
}

int weft__terminal_resize(weft_terminal *terminal, weft_process_size size) {
    struct winsize window = {.ws_col = size.cols, .ws_row = size.rows};
    if (terminal->fd < 0)
        return -EPIPE;
    if (ioctl(terminal->fd, TIOCSWINSZ, &window) < 0)
        return -errno;
    terminal->size = size;
    return 0;
}

weft_process_size weft__terminal_size(const weft_terminal *terminal) {
    return terminal->size;
}

void weft__terminal_kill(weft_terminal *terminal, bool force) {
    if (!terminal->ended)
        weft__process_stop(terminal->process, force);
}

weft_terminal *weft__terminal_free(weft_terminal *terminal) {
    if (!terminal)
        return NULL;
    terminal->process = weft__process_free(terminal->process);
    close_terminal(terminal);
    weft__scrollback_done(&terminal->output);
    return weft__free(terminal->alloc, terminal);
}

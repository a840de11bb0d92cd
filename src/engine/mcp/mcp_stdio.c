/* A server that is a program, under a guard like an agent: lines on its standard input and output, and a log on its standard
 * error. It ends when its input does; what does not is told to by signals. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "connect_fds.h"
#include "mcp_private.h"
#include "output.h"
#include "process.h"
#include "watch.h"

/* What it gets to leave by itself after its input was closed. */
#define LEAVE_MS 1000

typedef struct program {
    weft_link link; /* in mcp->leaving, when the server has let it go */
    weft_mcp *mcp;
    weft_mcp_server *server; /* NULL: it was let go */
    weft_process *process;
    weft_timer timer;
    int err_fd;
    weft_watch *err_watch;
    weft_output err;
} program;

static void free_program(program *self) {
    weft__list_remove(&self->link);
    weft__timer_stop(self->mcp->loop, &self->timer);
    weft__watch_free(self->err_watch);
    if (self->err_fd >= 0)
        close(self->err_fd);
    weft__output_done(&self->err);
    weft__process_free(self->process);
    weft__free(self->mcp->alloc, self);
}

/* ---- its standard error ---- */

static void on_program_text(void *ctx, weft_bytes text) {
    program *self = ctx;
    while (self->server && text.len) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t) (end + 1 - text.data) : text.len;
        weft__mcp_log(self->server, text.data, len);
        text = (weft_bytes){text.data + len, text.len - len};
    }
}

static void on_program_error(void *ctx, unsigned what) {
    program *self = ctx;
    (void) what;
    ssize_t n = read(self->err_fd, self->mcp->loop->read, WEFT_LOOP_READ);
    if (n > 0)
        weft__output_feed(&self->err, self->mcp->loop->read, (size_t) n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        weft__output_end(&self->err);
        self->err_watch = weft__watch_free(self->err_watch);
    }
}

/* ---- its life ---- */

static void on_program_start(void *ctx, pid_t pid) {
    program *self = ctx;
    if (self->server)
        self->server->pid = pid;
}

static void say_program_end(const weft_process_end *end, char *ret, size_t size) {
    if (end->error < 0)
        snprintf(ret, size, "could not be started: %s%s", end->folder ? "its folder: " : "", strerror(-end->error));
    else if (end->signal)
        snprintf(ret, size, "was ended by signal %d (%s)", end->signal, strsignal(end->signal));
    else
        snprintf(ret, size, "exited with status %d", end->exit_code);
}

/* One that ends when it is asked for what only the modern era has is of the older one. */
static void on_program_end(void *ctx, const weft_process_end *end) {
    program *self = ctx;
    weft_mcp_server *server = self->server;
    char what[200];
    if (!server) {
        free_program(self);
        return;
    }
    say_program_end(end, what, sizeof what);
    if (server->state == WEFT_MCP_STARTING && server->era == WEFT_MCP_UNKNOWN && end->error >= 0) {
        server->era = WEFT_MCP_IS_LEGACY;
        weft__mcp_begin_again(server);
    } else
        weft__mcp_failed(server, end->error < 0 ? -ECONNREFUSED : -ECONNRESET, "%s %s", server->spec->name, what);
    self->process = weft__process_free(self->process);
    free_program(self);
}

static void on_leave_due(weft_timer *timer) {
    program *self = WEFT_CONTAINER(timer, program, timer);
    if (self->server) /* its output has ended, and it has not */
        weft__mcp_failed(self->server, -ECONNRESET, "%s closed its standard output", self->server->spec->name);
    weft__process_stop(self->process, false);
}

static void wait_for_end(program *self) {
    weft__timer_set(self->mcp->loop, &self->timer, weft__add_ms(weft__loop_fresh_now(self->mcp->loop), LEAVE_MS));
}

/* Its output has ended. How it ended itself says more, if it does. */
static void on_program_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    program *self = data;
    (void) peer, (void) why;
    if (state == WEFT_PEER_CLOSED && self->server)
        wait_for_end(self);
}

/* Lines that are no messages are its log: many programs greet. */
static bool on_program_line(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    program *self = data;
    size_t i = 0;
    (void) peer, (void) binary;
    while (i < body.len && (body.data[i] == ' ' || body.data[i] == '\t'))
        i++;
    if (i < body.len && (body.data[i] == '{' || body.data[i] == '['))
        return false;
    if (self->server)
        weft__mcp_log(self->server, body.data, body.len);
    return true;
}

static int start_program(program *self, int ret_fds[3]) {
    const weft_mcp_spec *spec = self->server->spec;
    weft_process_opts opts = {
        .loop = self->mcp->loop,
        .alloc = self->mcp->alloc,
        .guard = self->mcp->opts.program,
        .argv = spec->argv,
        .env = spec->env,
        .folder = self->mcp->opts.folder,
        .grace_ms = self->mcp->opts.grace_ms,
        .ctx = self,
        .on_start = on_program_start,
        .on_end = on_program_end,
    };
    return weft__process_start(&opts, &self->process, ret_fds);
}

static int connect_program(program *self, const int fds[3]) {
    weft_connect_opts opts = {.style = WEFT_STYLE_MCP,
                              .no_batch = true,
                              .data = self,
                              .service = self->server->service,
                              .on_state = on_program_state,
                              .on_raw = on_program_line};
    self->err_fd = fds[2];
    int r = weft__watch_new(self->mcp->loop, self->err_fd, on_program_error, self, &self->err_watch);
    if (r >= 0)
        r = weft__watch_set(self->err_watch, WEFT_WATCH_READ);
    if (r < 0) {
        close(fds[0]);
        close(fds[1]);
        return r;
    }
    return weft__connect_fds(self->mcp->loop, fds[1], fds[0], &opts, &self->server->peer);
}

static int stdio_open(weft_mcp_server *server) {
    int fds[3];
    program *self = weft__zalloc(server->mcp->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->mcp = server->mcp;
    self->server = server;
    self->err_fd = -1;
    weft__list_init(&self->link);
    weft__timer_init(&self->timer, on_leave_due);
    weft__output_init(&self->err, server->mcp->alloc, on_program_text, self);
    int r = start_program(self, fds);
    if (r >= 0)
        r = connect_program(self, fds);
    if (r < 0) {
        free_program(self);
        return r;
    }
    server->line = self;
    return weft__mcp_negotiate(server);
}

/* Its input is closed with the peer, which is freed next. */
static void stdio_close(weft_mcp_server *server) {
    program *self = server->line;
    self->server = NULL;
    weft__list_push(&self->mcp->leaving, &self->link);
    wait_for_end(self);
}

void weft__mcp_stdio_kill(weft_mcp *mcp) {
    while (!weft__list_empty(&mcp->leaving))
        free_program(WEFT_CONTAINER(mcp->leaving.next, program, link));
}

const weft_mcp_wire weft__mcp_stdio = {.name = "stdio", .open = stdio_open, .close = stdio_close};

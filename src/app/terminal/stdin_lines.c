/* Reading lines without making standard input non-blocking for everybody who shares it. */
#include "stdin_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 4096

bool weft__stdin_is_person(void) {
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

/* Hand out the first line of the buffer, or the rest of it at the end. false: there is none. */
static bool deliver(weft_stdin_lines *self) {
    size_t len = weft__buf_len(&self->buf);
    char *head = weft__buf_head(&self->buf), *end = len ? memchr(head, '\n', len) : NULL;
    bool cut = !end && (self->ended || len >= WEFT_STDIN_LINE);
    weft_on_line *on_line = self->on_line;
    if (!end && !cut)
        return false;
    self->on_line = NULL;
    if (self->watch)
        weft__watch_set(self->watch, 0);
    if (len == 0) {
        on_line(self->ctx, NULL);
        return true;
    }
    size_t used = end ? (size_t) (end - head) : len;
    char *line = weft__strndup(NULL, head, used && head[used - 1] == '\r' ? used - 1 : used);
    weft__buf_take(&self->buf, NULL, used + (end != NULL));
    on_line(self->ctx, line ? line : "");
    weft__free(NULL, line);
    return true;
}

/* 1 there may be more, 0 not now. */
static int read_some(weft_stdin_lines *self) {
    if (weft__buf_reserve(&self->buf, NULL, BLOCK) < 0) {
        self->ended = true;
        return 0;
    }
    ssize_t n = read(self->fd, weft__buf_tail(&self->buf), BLOCK);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0)
        self->ended = true;
    else
        self->buf.end += (size_t) n;
    return n > 0;
}

static void on_ready(void *ctx, unsigned what) {
    weft_stdin_lines *self = ctx;
    (void) what;
    if (!self->on_line)
        return;
    read_some(self);
    deliver(self);
}

static void on_later(weft_later *later) {
    weft_stdin_lines *self = (weft_stdin_lines *) ((char *) later - offsetof(weft_stdin_lines, later));
    if (!self->on_line || deliver(self))
        return;
    if (self->watch) {
        weft__watch_set(self->watch, WEFT_WATCH_READ);
        return;
    }
    while (!deliver(self))
        read_some(self);
}

int weft__stdin_lines_open(weft_stdin_lines *self, weft_loop *loop) {
    *self = (weft_stdin_lines){.loop = loop, .flags = -1, .open = true};
    weft__later_init(&self->later, on_later);
    self->fd = open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (self->fd < 0) {
        self->flags = fcntl(STDIN_FILENO, F_GETFL);
        self->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    }
    if (self->fd < 0) {
        self->ended = true; /* there is no standard input */
        return 0;
    }
    int r = weft__watch_new(loop, self->fd, on_ready, self, &self->watch);
    return r == -EPERM || r >= 0 ? 0 : r;
}

void weft__stdin_lines_want(weft_stdin_lines *self, weft_on_line *on_line, void *ctx) {
    self->on_line = on_line;
    self->ctx = ctx;
    if (on_line)
        weft__later(self->loop, &self->later);
    else if (self->watch)
        weft__watch_set(self->watch, 0);
}

void weft__stdin_lines_close(weft_stdin_lines *self) {
    if (!self->open)
        return;
    self->watch = weft__watch_free(self->watch);
    weft__later_cancel(&self->later);
    if (self->fd >= 0)
        close(self->fd);
    if (self->flags >= 0)
        fcntl(STDIN_FILENO, F_SETFL, self->flags);
    weft__buf_done(&self->buf, NULL);
    self->open = false;
}

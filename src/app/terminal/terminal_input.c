/* Reading keys without waiting for them, and giving the terminal back. */
#include "terminal_input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loop.h"

#define BLOCK 4096
#define CTRL_D 4

bool weft__terminal_can_edit(void) {
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* ---- the terminal's own settings ---- */

/* Keys as they are pressed, without echo. Ctrl-C and Ctrl-Z stay signals. */
static void make_raw(weft_terminal_input *self) {
    struct termios raw;
    if (self->raw || tcgetattr(STDIN_FILENO, &self->before) < 0)
        return;
    raw = self->before;
    raw.c_lflag &= ~(tcflag_t) (ICANON | ECHO | IEXTEN);
    raw.c_iflag &= ~(tcflag_t) (ICRNL | INLCR | IXON);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    self->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
    self->typed_before = true;
    fputs("\x1b[?2004h", self->terminal->app->err.file); /* what is pasted is said to be */
    fflush(self->terminal->app->err.file);
}

static void make_usual(weft_terminal_input *self) {
    if (!self->raw)
        return;
    fputs("\x1b[?2004l", self->terminal->app->err.file);
    fflush(self->terminal->app->err.file);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &self->before);
    self->raw = false;
}

/* The shell has put the terminal into its own state meanwhile. */
static void on_continued(weft_signal *signal, int number, void *ctx) {
    weft_terminal_input *self = ctx;
    (void) signal, (void) number;
    if (!self->raw)
        return;
    self->raw = false;
    make_raw(self);
    weft__terminal_edit(self->terminal);
}

/* ---- keys ---- */

/* The message stays on the screen, whole; the callback may close this. */
static void finish_message(weft_terminal_input *self) {
    char *message = strdup(weft__line_editor_text(&self->editor));
    weft__line_editor_next(&self->editor);
    if (!message)
        return;
    weft__terminal_said(self->terminal, message);
    self->on_message(self->ctx, message);
    free(message);
}

static void take_key(weft_terminal_input *self, unsigned char byte) {
    switch (weft__line_editor_byte(&self->editor, byte)) {
    case WEFT_EDIT_LINE:
        finish_message(self);
        break;
    case WEFT_EDIT_END:
        weft__terminal_clear(self->terminal);
        self->on_message(self->ctx, NULL);
        break;
    case WEFT_EDIT_CLEAR:
        fputs("\x1b[H\x1b[2J", self->terminal->app->err.file);
        self->terminal->drawn = false;
        break;
    case WEFT_EDIT_MORE:
        break;
    }
}

static void on_keys(void *ctx, unsigned what) {
    weft_terminal_input *self = ctx;
    unsigned char keys[BLOCK];
    (void) what;
    ssize_t n = read(self->fd, keys, sizeof keys);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        weft__watch_set(self->watch, 0);
        self->on_message(self->ctx, NULL);
        return;
    }
    /* The terminal has marked a Ctrl-D that was pressed before it was ours, and the mark reads as NUL now. */
    bool typed_before = self->typed_before;
    self->typed_before = false;
    for (ssize_t i = 0; i < n && self->raw; i++)
        take_key(self, typed_before && !keys[i] ? CTRL_D : keys[i]);
    if (self->raw)
        weft__terminal_edit(self->terminal);
}

/* ---- beginning and ending ---- */

int weft__terminal_input_open(weft_terminal_input *self, weft_loop *loop, weft_terminal *terminal,
                              weft_on_message *on_message, void *ctx) {
    self->loop = loop;
    self->terminal = terminal;
    self->on_message = on_message;
    self->ctx = ctx;
    self->fd = open("/proc/self/fd/0", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (self->fd < 0)
        return -errno;
    int r = weft__watch_new(loop, self->fd, on_keys, self, &self->watch);
    if (r >= 0)
        r = weft_signal_new(loop, SIGCONT, on_continued, self, &self->continued);
    if (r < 0)
        weft__terminal_input_close(self);
    return r;
}

void weft__terminal_input_resume(weft_terminal_input *self) {
    if (!self->watch || self->raw)
        return;
    make_raw(self);
    self->terminal->editor = &self->editor;
    weft__watch_set(self->watch, WEFT_WATCH_READ);
    weft__terminal_edit(self->terminal);
}

void weft__terminal_input_suspend(weft_terminal_input *self) {
    if (!self->watch || !self->raw)
        return;
    weft__terminal_clear(self->terminal);
    self->terminal->editor = NULL;
    weft__watch_set(self->watch, 0);
    make_usual(self);
}

void weft__terminal_input_close(weft_terminal_input *self) {
    if (!self->loop)
        return;
    weft__terminal_input_suspend(self);
    self->watch = weft__watch_free(self->watch);
    self->continued = weft_signal_free(self->continued);
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
    self->loop = NULL;
}

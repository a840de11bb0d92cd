/* Commands that wait and run. */
#include "project_commands.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "buf.h"
#include "clock.h"
#include "list.h"
#include "process.h"
#include "texts.h"
#include "watch.h"

#define GRACE_MS 2000 /* between asking it to end and killing it: make removes half-written files */
#define LAST_READS 64 /* at the end, of what the pipes hold */

typedef struct printed {
    struct project_command *command;
    int fd; /* -1: it has ended */
    weft_watch *watch;
} printed;

typedef struct project_command {
    weft_link link;
    weft_commands *of;
    uint64_t id;
    weft_command_order order; /* argv and folder are owned */
    weft_process *process;
    printed streams[2];
    weft_buf head, tail;
    uint64_t bytes;
    int64_t begun_ns;
    weft_timer late;
    weft_later over; /* it has ended, or never began */
    weft_process_end end;
    int r; /* why it was ended */
    bool running;
} project_command;

struct weft_commands {
    weft_commands_opts opts;
    char *guard;
    weft_link all; /* those that run and those that wait, in the order in which they came */
    size_t waiting, running;
    uint64_t next_id;
    weft_later next;
};

/* ---- output ---- */

static void close_printed(printed *stream) {
    stream->watch = weft__watch_free(stream->watch);
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

static void end_command_early(project_command *self, int r) {
    if (self->r == 0)
        self->r = r;
    if (self->process)
        weft__process_stop(self->process, r == -ENOMEM);
}

/* The first bytes stay, and the last ones move along. */
static int keep_printed(project_command *self, const char *text, size_t len) {
    const weft_alloc *alloc = self->of->opts.alloc;
    size_t room = WEFT_COMMANDS_HEAD - weft__buf_len(&self->head), first = len < room ? len : room;
    int r = weft__buf_put(&self->head, alloc, text, first);
    if (r < 0 || first == len)
        return r;
    r = weft__buf_put(&self->tail, alloc, text + first, len - first);
    size_t has = weft__buf_len(&self->tail);
    if (r >= 0 && has > 2 * WEFT_COMMANDS_TAIL)
        weft__buf_take(&self->tail, alloc, has - WEFT_COMMANDS_TAIL);
    return r;
}

/* 1: there may be more. */
static int read_printed(printed *stream) {
    project_command *self = stream->command;
    weft_loop *loop = self->of->opts.loop;
    ssize_t n = read(stream->fd, loop->read, WEFT_LOOP_READ);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return errno == EINTR;
    if (n <= 0) {
        close_printed(stream);
        return 0;
    }
    self->bytes += (uint64_t) n;
    if (keep_printed(self, loop->read, (size_t) n) < 0)
        end_command_early(self, -ENOMEM);
    else if (self->order.on_text)
        self->order.on_text(self->order.ctx, (weft_bytes){loop->read, (size_t) n});
    return 1;
}

static void on_printed(void *ctx, unsigned what) {
    (void) what;
    read_printed(ctx);
}

static weft_bytes kept_text(const weft_buf *buf, size_t most) {
    size_t len = weft__buf_len(buf), skip = len > most ? len - most : 0;
    return len ? (weft_bytes){weft__buf_head(buf) + skip, len - skip} : (weft_bytes){"", 0};
}

/* ---- the end ---- */

static void free_command(project_command *self) {
    weft_commands *of = self->of;
    const weft_alloc *alloc = of->opts.alloc;
    weft__list_remove(&self->link);
    of->running -= self->running;
    of->waiting -= !self->running;
    weft__process_free(self->process);
    weft__timer_stop(of->opts.loop, &self->late);
    weft__later_cancel(&self->over);
    for (int i = 0; i < 2; i++)
        close_printed(&self->streams[i]);
    weft__buf_done(&self->head, alloc);
    weft__buf_done(&self->tail, alloc);
    for (size_t i = 0; self->order.argv && self->order.argv[i]; i++)
        weft__free(alloc, (char *) (uintptr_t) self->order.argv[i]);
    weft__free(alloc, (void *) (uintptr_t) self->order.argv);
    weft__free(alloc, (char *) (uintptr_t) self->order.folder);
    weft__free(alloc, self);
}

static void on_command_over(weft_later *later) {
    project_command *self = WEFT_CONTAINER(later, project_command, over);
    weft_commands *of = self->of;
    for (int i = 0; i < 2; i++)
        for (int left = LAST_READS; left && self->streams[i].fd >= 0 && read_printed(&self->streams[i]) > 0;)
            left--;
    weft_command_report report = {.r = self->r < 0 ? self->r : self->end.error,
                                  .exit_code = self->end.exit_code,
                                  .signal = self->end.signal,
                                  .head = kept_text(&self->head, WEFT_COMMANDS_HEAD),
                                  .tail = kept_text(&self->tail, WEFT_COMMANDS_TAIL),
                                  .bytes = self->bytes,
                                  .ms = self->begun_ns ? (weft__clock_ns() - self->begun_ns) / 1000000 : 0};
    void (*on_end)(void *ctx, const weft_command_report *report) = self->order.on_end;
    void *ctx = self->order.ctx;
    /* It is in no list any more, so that whoever hears of its end may cancel and start others. */
    weft__list_remove(&self->link);
    on_end(ctx, &report);
    free_command(self);
    weft__later(of->opts.loop, &of->next);
}

static void on_command_end(void *ctx, const weft_process_end *end) {
    project_command *self = ctx;
    self->end = *end;
    weft__timer_stop(self->of->opts.loop, &self->late);
    weft__later(self->of->opts.loop, &self->over);
}

static void on_command_late(weft_timer *timer) {
    end_command_early(WEFT_CONTAINER(timer, project_command, late), -ETIMEDOUT);
}

/* ---- the beginning ---- */

static int watch_printed(project_command *self) {
    int r = 0;
    for (int i = 0; i < 2 && r >= 0; i++) {
        printed *stream = &self->streams[i];
        r = weft__watch_new(self->of->opts.loop, stream->fd, on_printed, stream, &stream->watch);
        if (r >= 0)
            r = weft__watch_set(stream->watch, WEFT_WATCH_READ);
    }
    return r;
}

static int start_command(project_command *self) {
    /* Nobody looks at a terminal: without colours, and nothing asks. */
    static const char *const env[] = {"NO_COLOR=1", "CARGO_TERM_COLOR=never", "TERM=dumb", "CI=true", NULL};
    weft_commands *of = self->of;
    int fds[3];
    weft_process_opts process = {.loop = of->opts.loop,
                                 .alloc = of->opts.alloc,
                                 .guard = of->guard,
                                 .argv = self->order.argv,
                                 .env = env,
                                 .folder = self->order.folder,
                                 .grace_ms = GRACE_MS,
                                 .ctx = self,
                                 .on_end = on_command_end};
    int r = weft__process_start(&process, &self->process, fds);
    if (r < 0)
        return r;
    close(fds[0]); /* it has nothing to read there */
    self->streams[0].fd = fds[1];
    self->streams[1].fd = fds[2];
    self->begun_ns = weft__clock_ns();
    weft__timer_set(of->opts.loop, &self->late, weft__add_ms(weft__loop_fresh_now(of->opts.loop), self->order.within_ms));
    return watch_printed(self);
}

static void begin_command(project_command *self) {
    weft_commands *of = self->of;
    self->running = true;
    of->running++;
    of->waiting--;
    int r = start_command(self);
    if (r >= 0 && self->order.on_begin)
        self->order.on_begin(self->order.ctx);
    if (r >= 0)
        return;
    self->process = weft__process_free(self->process);
    self->r = r;
    weft__later(of->opts.loop, &self->over);
}

static bool is_folder_busy(const weft_commands *self, const char *folder) {
    for (weft_link *link = self->all.next; link != &self->all; link = link->next) {
        const project_command *other = WEFT_CONTAINER(link, project_command, link);
        if (other->running && strcmp(other->order.folder, folder) == 0)
            return true;
    }
    return false;
}

static void begin_commands(weft_later *later) {
    weft_commands *self = WEFT_CONTAINER(later, weft_commands, next);
    for (weft_link *link = self->all.next; link != &self->all && self->running < WEFT_COMMANDS_AT_ONCE; link = link->next) {
        project_command *command = WEFT_CONTAINER(link, project_command, link);
        if (!command->running && command->r == 0 && !is_folder_busy(self, command->order.folder))
            begin_command(command);
    }
}

static int copy_order(project_command *self, const weft_command_order *order, size_t count) {
    const weft_alloc *alloc = self->of->opts.alloc;
    char **argv = weft__zalloc(alloc, (count + 1) * sizeof *argv);
    self->order = *order;
    self->order.argv = (const char *const *) argv;
    self->order.folder = weft__strndup(alloc, order->folder, strlen(order->folder));
    if (!argv || !self->order.folder)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (!(argv[i] = weft__strndup(alloc, order->argv[i], strlen(order->argv[i]))))
            return -ENOMEM;
    return 0;
}

int weft__commands_run(weft_commands *self, const weft_command_order *order, uint64_t *ret_id) {
    size_t count = weft__texts_count(order->argv);
    if (!count || !*order->argv[0])
        return -EINVAL;
    if (count > WEFT_COMMANDS_ARGS)
        return -E2BIG;
    if (self->waiting >= WEFT_COMMANDS_WAITING)
        return -EAGAIN;
    project_command *made = weft__zalloc(self->opts.alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->of = self;
    made->id = ++self->next_id;
    for (int i = 0; i < 2; i++)
        made->streams[i] = (printed){.command = made, .fd = -1};
    weft__timer_init(&made->late, on_command_late);
    weft__later_init(&made->over, on_command_over);
    weft__list_push(&self->all, &made->link);
    self->waiting++;
    int r = copy_order(made, order, count);
    if (r < 0) {
        free_command(made);
        return r;
    }
    *ret_id = made->id;
    weft__later(self->opts.loop, &self->next);
    return 0;
}

void weft__commands_cancel(weft_commands *self, uint64_t id) {
    for (weft_link *link = self->all.next; link != &self->all; link = link->next) {
        project_command *command = WEFT_CONTAINER(link, project_command, link);
        if (command->id != id)
            continue;
        bool waits = !command->running && command->r == 0;
        end_command_early(command, -ECANCELED);
        if (waits)
            weft__later(self->opts.loop, &command->over);
        return;
    }
}

int weft__commands_new(const weft_commands_opts *opts, weft_commands **ret) {
    weft_commands *self = weft__zalloc(opts->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->opts = *opts;
    weft__list_init(&self->all);
    weft__later_init(&self->next, begin_commands);
    int r = weft__copy_or_null(opts->alloc, opts->guard, &self->guard);
    if (r < 0)
        weft__free(opts->alloc, self);
    else
        *ret = self;
    return r;
}

weft_commands *weft__commands_free(weft_commands *self) {
    if (!self)
        return NULL;
    while (!weft__list_empty(&self->all))
        free_command(WEFT_CONTAINER(self->all.next, project_command, link));
    weft__later_cancel(&self->next);
    weft__free(self->opts.alloc, self->guard);
    return weft__free(self->opts.alloc, self);
}

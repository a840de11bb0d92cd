/* The files by which others find a running daemon: what somebody removes is made again, at once where the system tells of
 * it, otherwise after a moment. Never in place of something that another process has put there. */
#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "alloc.h"
#include "daemon.h"
#include "failure.h"
#include "loop.h"
#include "watch.h"

#define KEEP_POLL_MS 2000
/* Somebody who removes several files is let finish. */
#define KEEP_SETTLE_MS 50

struct weft_daemon_keep {
    weft_daemon *daemon;
    weft_loop *loop;
    bool (*publish)(void *ctx);
    void *ctx;
    int inotify;
    weft_watch *watch;
    weft_timer timer;
    bool said; /* that the socket is somebody else's */
};

static bool is_missing(const char *path) {
    return access(path, F_OK) < 0 && errno == ENOENT;
}

static void say_made(const weft_daemon_keep *self, const char *path) {
    weft__warn(self->daemon->app, "weft serve: %s was removed, and is made again", path);
}

static void renew_socket(weft_daemon_keep *self) {
    int r = weft_server_renew(self->daemon->server);
    if (r > 0)
        say_made(self, self->daemon->app->layout->socket);
    else if (r == -EAGAIN)
        weft__timer_set(self->loop, &self->timer, weft__loop_fresh_now(self->loop) + KEEP_SETTLE_MS);
    else if (r < 0 && !self->said)
        weft__warn(self->daemon->app, "weft serve: %s: %s", self->daemon->app->layout->socket, weft_strerror(r));
    self->said = r < 0 && r != -EAGAIN;
}

static void look_after_files(weft_daemon_keep *self) {
    const weft_layout *layout = self->daemon->app->layout;
    renew_socket(self);
    if (weft__daemon_aiwg_relock(layout))
        say_made(self, layout->foreign_lock);
    if (is_missing(layout->endpoint) && self->publish(self->ctx))
        say_made(self, layout->endpoint);
    if (is_missing(layout->pid) && weft__daemon_write_pid(layout) >= 0)
        say_made(self, layout->pid);
}

static void on_keep_due(weft_timer *timer) {
    weft_daemon_keep *self = WEFT_CONTAINER(timer, weft_daemon_keep, timer);
    if (self->inotify < 0)
        weft__timer_set(self->loop, timer, weft__loop_fresh_now(self->loop) + KEEP_POLL_MS);
    look_after_files(self);
}

static void on_removed(void *ctx, unsigned what) {
    weft_daemon_keep *self = ctx;
    char events[4096];
    (void) what;
    while (read(self->inotify, events, sizeof events) > 0)
        continue;
    weft__timer_set(self->loop, &self->timer, weft__loop_fresh_now(self->loop) + KEEP_SETTLE_MS);
}

/* < 0: it must be looked for now and then. */
static int watch_folders(weft_daemon_keep *self) {
    const weft_layout *layout = self->daemon->app->layout;
    self->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    int r = self->inotify < 0 ? -errno : 0;
    if (r == 0 && (inotify_add_watch(self->inotify, layout->home, IN_DELETE | IN_MOVED_FROM) < 0 ||
                   inotify_add_watch(self->inotify, layout->pid_folder, IN_DELETE | IN_MOVED_FROM) < 0))
        r = -errno;
    if (r == 0)
        r = weft__watch_new(self->loop, self->inotify, on_removed, self, &self->watch);
    if (r == 0)
        r = weft__watch_set(self->watch, WEFT_WATCH_READ);
    if (r == 0)
        weft__watch_quiet(self->watch);
    return r;
}

int weft__daemon_keep_new(weft_daemon *daemon, weft_loop *loop, bool (*publish)(void *ctx), void *ctx,
                          weft_daemon_keep **ret) {
    weft_daemon_keep *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return -ENOMEM;
    *self = (weft_daemon_keep){.daemon = daemon, .loop = loop, .publish = publish, .ctx = ctx, .inotify = -1};
    weft__timer_init(&self->timer, on_keep_due);
    if (watch_folders(self) < 0) {
        weft__watch_free(self->watch);
        self->watch = NULL;
        if (self->inotify >= 0)
            close(self->inotify);
        self->inotify = -1;
        weft__timer_set(loop, &self->timer, weft__loop_fresh_now(loop) + KEEP_POLL_MS);
    }
    *ret = self;
    return 0;
}

weft_daemon_keep *weft__daemon_keep_free(weft_daemon_keep *self) {
    if (!self)
        return NULL;
    weft__timer_stop(self->loop, &self->timer);
    weft__watch_free(self->watch);
    if (self->inotify >= 0)
        close(self->inotify);
    return weft__free(NULL, self);
}

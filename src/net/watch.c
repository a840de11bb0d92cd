/* Watching one descriptor: a uv_poll_t that is freed when libuv lets go of it. */
#include "watch.h"

#include <errno.h>

struct weft_watch {
    uv_poll_t poll;
    const weft_alloc *alloc;
    weft_on_ready *on_ready;
    void *ctx;
    unsigned what;
};

static void on_watch_ready(uv_poll_t *poll, int status, int events) {
    weft_watch *watch = poll->data;
    unsigned what = 0;
    if (events & UV_READABLE)
        what |= WEFT_WATCH_READ;
    if (events & UV_WRITABLE)
        what |= WEFT_WATCH_WRITE;
    watch->on_ready(watch->ctx, status < 0 ? watch->what : what & watch->what);
}

static void on_watch_closed(uv_handle_t *handle) {
    weft_watch *watch = handle->data;
    weft__free(watch->alloc, watch);
}

int weft__watch_new(weft_loop *loop, int fd, weft_on_ready *on_ready, void *ctx, weft_watch **ret) {
    weft_watch *watch = weft__zalloc(loop->alloc, sizeof *watch);
    if (!watch)
        return -ENOMEM;
    int r = uv_poll_init(&loop->uv, &watch->poll, fd);
    if (r < 0) {
        weft__free(loop->alloc, watch);
        return r;
    }
    watch->alloc = loop->alloc;
    watch->poll.data = watch;
    watch->on_ready = on_ready;
    watch->ctx = ctx;
    *ret = watch;
    return 0;
}

int weft__watch_set(weft_watch *watch, unsigned what) {
    int events = 0;
    if (what == watch->what)
        return 0;
    if (what & WEFT_WATCH_READ)
        events |= UV_READABLE;
    if (what & WEFT_WATCH_WRITE)
        events |= UV_WRITABLE;
    int r = events ? uv_poll_start(&watch->poll, events, on_watch_ready) : uv_poll_stop(&watch->poll);
    if (r >= 0)
        watch->what = what;
    return r;
}

void weft__watch_quiet(weft_watch *watch) {
    uv_unref((uv_handle_t *) &watch->poll);
}

weft_watch *weft__watch_free(weft_watch *watch) {
    if (!watch)
        return NULL;
    /* epoll forgets the descriptor here, not when the handle is closed: the caller may close it right away. */
    uv_poll_stop(&watch->poll);
    uv_close((uv_handle_t *) &watch->poll, on_watch_closed);
    return NULL;
}

/* Signals, as callbacks of the loop. */
#include <errno.h>

#include "loop.h"

struct weft_signal {
    uv_signal_t handle;
    weft_loop *loop;
    weft_on_signal *on_signal;
    void *ctx;
};

static void on_uv_signal(uv_signal_t *handle, int number) {
    weft_signal *self = handle->data;
    self->on_signal(self, number, self->ctx);
}

static void on_signal_closed(uv_handle_t *handle) {
    weft_signal *self = handle->data;
    weft_loop *loop = self->loop;
    weft__free(loop->alloc, self);
    weft__loop_leave(loop);
}

int weft_signal_new(weft_loop *loop, int number, weft_on_signal *on_signal, void *ctx, weft_signal **ret) {
    if (!on_signal)
        return -EINVAL;
    weft_signal *self = weft__zalloc(loop->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->loop = loop;
    self->on_signal = on_signal;
    self->ctx = ctx;
    int r = uv_signal_init(&loop->uv, &self->handle);
    if (r < 0) {
        weft__free(loop->alloc, self);
        return r;
    }
    self->handle.data = self;
    weft__loop_join(loop);
    r = uv_signal_start(&self->handle, on_uv_signal, number);
    if (r < 0) {
        weft_signal_free(self);
        return r;
    }
    uv_unref((uv_handle_t *) &self->handle);
    *ret = self;
    return 0;
}

weft_signal *weft_signal_free(weft_signal *signal) {
    if (!signal || uv_is_closing((uv_handle_t *) &signal->handle))
        return NULL;
    weft_loop *loop = signal->loop;
    uv_close((uv_handle_t *) &signal->handle, on_signal_closed);
    weft__loop_settle(loop);
    return NULL;
}

void weft_signal_freep(weft_signal **signal) {
    *signal = weft_signal_free(*signal);
}

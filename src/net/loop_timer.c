/* Timers of the library's user: one of the loop's own, with a callback that has a context, and the memory for it. */
#include <errno.h>

#include "loop.h"

typedef struct user_timer {
    weft_timer timer; /* first: the user's pointer is to this one */
    weft_loop *loop;
    weft_on_due *on_due;
    void *ctx;
    int64_t every_ms;
    bool on; /* and the loop is held */
} user_timer;

static user_timer *user_timer_of(weft_timer *timer) {
    return WEFT_CONTAINER(timer, user_timer, timer);
}

static void hold_while_on(user_timer *self, bool on) {
    if (on && !self->on)
        weft_loop_hold(self->loop);
    else if (!on && self->on)
        weft_loop_release(self->loop);
    self->on = on;
}

/* The callback may start, stop or free it: nothing is done with it afterwards. */
static void on_user_timer(weft_timer *timer) {
    user_timer *self = user_timer_of(timer);
    if (self->every_ms)
        weft__timer_set(self->loop, timer, weft__after(weft_loop_now(self->loop), self->every_ms));
    else
        hold_while_on(self, false);
    self->on_due(timer, self->ctx);
}

int weft_timer_new(weft_loop *loop, weft_on_due *on_due, void *ctx, weft_timer **ret) {
    if (!on_due)
        return -EINVAL;
    user_timer *self = weft__zalloc(loop->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    weft__timer_init(&self->timer, on_user_timer);
    self->loop = loop;
    self->on_due = on_due;
    self->ctx = ctx;
    weft__loop_join(loop);
    *ret = &self->timer;
    return 0;
}

void weft_timer_start(weft_timer *timer, int64_t after_ms, int64_t every_ms) {
    user_timer *self = user_timer_of(timer);
    self->every_ms = every_ms > 0 ? every_ms : 0;
    hold_while_on(self, true);
    weft__timer_set(self->loop, timer, weft__after(weft__loop_fresh_now(self->loop), after_ms > 0 ? after_ms : 0));
}

void weft_timer_stop(weft_timer *timer) {
    user_timer *self = user_timer_of(timer);
    hold_while_on(self, false);
    weft__timer_stop(self->loop, timer);
}

weft_timer *weft_timer_free(weft_timer *timer) {
    if (!timer)
        return NULL;
    user_timer *self = user_timer_of(timer);
    weft_loop *loop = self->loop;
    weft_timer_stop(timer);
    weft__free(loop->alloc, self);
    weft__loop_leave(loop);
    weft__loop_settle(loop);
    return NULL;
}

void weft_timer_freep(weft_timer **timer) {
    *timer = weft_timer_free(*timer);
}

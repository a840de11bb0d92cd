/* Sending what must be recorded, again and again. */
#include "kept_event.h"

static void on_event_kept(void *ctx, int r) {
    kept_event *self = ctx;
    weft_engine *engine = self->engine;
    self->sending = false;
    if (engine->phase == GONE)
        return;
    if (r < 0 && engine->phase != STOPPING)
        weft__again(engine, &self->again, r);
    else
        self->on_over(self, r < 0 ? r : 0);
}

static void keep_again(weft_timer *timer) {
    weft__kept_event_send(WEFT_CONTAINER(timer, kept_event, again));
}

void weft__kept_event_init(kept_event *self, weft_engine *engine, void (*add)(const kept_event *, struct draft *),
                           void (*on_over)(kept_event *, int r)) {
    *self = (kept_event){.engine = engine, .add = add, .on_over = on_over};
    weft__timer_init(&self->again, keep_again);
}

void weft__kept_event_done(kept_event *self) {
    weft__timer_stop(self->engine->loop, &self->again);
}

void weft__kept_event_send(kept_event *self) {
    struct draft draft = {.engine = self->engine};
    if (!self->due || self->sending || self->engine->phase < READY)
        return;
    self->add(self, &draft);
    self->sending = true;
    int r = weft__draft_send(&draft, NULL, on_event_kept, self);
    if (r < 0)
        on_event_kept(self, r);
}

/* An event about what is done already: it is sent until it is stored, whatever the disk says meanwhile, or the engine stops.
 * Then whoever asked for what was done is answered. */
#ifndef WEFT_KEPT_EVENT_H
#define WEFT_KEPT_EVENT_H

#include "engine_private.h"

typedef struct kept_event {
    weft_engine *engine;
    weft_timer again;
    bool due; /* it is done, and to be recorded */
    bool sending;
    /* Put it into the draft. */
    void (*add)(const struct kept_event *self, struct draft *draft);
    /* It is stored (0), or the engine stops before that (<0). It may free what it is a part of. */
    void (*on_over)(struct kept_event *self, int r);
} kept_event;

void weft__kept_event_init(kept_event *self, weft_engine *engine, void (*add)(const kept_event *, struct draft *),
                           void (*on_over)(kept_event *, int r));
/* Before it is freed. */
void weft__kept_event_done(kept_event *self);
/* If it is due and the engine is ready; otherwise nothing. */
void weft__kept_event_send(kept_event *self);

#endif

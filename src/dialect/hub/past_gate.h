/* The gate of requests that may be about the past: while the engine is still reading it (weft__engine_past()), they wait
 * here, in their order, and then go on. So nobody is told that something is not there because it has not been read yet.
 *
 * Rows with WEFT_EARLY need nothing old and pass, unless their params name a session or have a key, or somebody waits
 * already, whom they might overtake. How many wait is limited by what a connection may have open. */
#ifndef WEFT_PAST_GATE_H
#define WEFT_PAST_GATE_H

#include "hub.h"

typedef struct weft_past_gate {
    weft_gate gate;
    const weft_hub *hub;
    weft_method *rows; /* flagged WEFT_ASKS_PAST while the gate stands; ends with a NULL name */
    weft_link parked;
    weft_past_waiter waiter;
    bool resuming;
} weft_past_gate;

/* rows are borrowed; the hub's engine may come later. */
void weft__past_gate_init(weft_past_gate *gate, const weft_hub *hub, weft_method *rows);
void weft__past_gate_done(weft_past_gate *gate);

#endif

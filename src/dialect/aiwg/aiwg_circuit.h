/* The circuit breaker of AIWG's supervisor. It has no clock: times are arguments, monotonic milliseconds.
 *
 *   closed ──threshold failures──▶ open ──cooldown──▶ half-open ──success──▶ closed
 *                                  open ◀──failure─── half-open                        */
#ifndef WEFT_AIWG_CIRCUIT_H
#define WEFT_AIWG_CIRCUIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct weft_aiwg_circuit {
    int64_t threshold, cooldown_ms;
    int64_t failures; /* in a row */
    int64_t opened;   /* when it last opened */
    bool open, probing;
} weft_aiwg_circuit;

/* May something be started now? An open one becomes half-open when its time is over; then one may, until it is known what
 * came of it. */
bool weft__aiwg_circuit_allows(weft_aiwg_circuit *circuit, int64_t now);
/* That one is started. */
void weft__aiwg_circuit_begin(weft_aiwg_circuit *circuit, int64_t now);
/* true: it has opened now. */
bool weft__aiwg_circuit_failed(weft_aiwg_circuit *circuit, int64_t now);
/* true: it has closed now. */
bool weft__aiwg_circuit_succeeded(weft_aiwg_circuit *circuit);
/* What was probed came to nothing, neither well nor badly. */
void weft__aiwg_circuit_dropped(weft_aiwg_circuit *circuit);
const char *weft__aiwg_circuit_name(const weft_aiwg_circuit *circuit, int64_t now);
/* How long it stays open: 0 when it is not. */
int64_t weft__aiwg_circuit_left(const weft_aiwg_circuit *circuit, int64_t now);

#endif

/* What "weft top" shows: made of one answer of metrics.get, or of two, and then it is what came in between. No connection
 * and no screen is known here. */
#ifndef WEFT_TOP_FIGURES_H
#define WEFT_TOP_FIGURES_H

#include <weft/json.h>

/* More than fit on a screen; those with the highest rates. */
#define WEFT_TOP_METHODS 256
#define WEFT_TOP_TRANSPORTS 16

/* Seconds; <0: nothing happened that could be measured. */
typedef struct weft_top_quantiles {
    double p50, p95, p99;
} weft_top_quantiles;

typedef struct weft_top_method {
    const char *name;    /* borrowed from the answer */
    double rate, errors; /* a second */
    double total;        /* since the hub's start */
    weft_top_quantiles took;
} weft_top_method;

typedef struct weft_top_figures {
    double seconds; /* that all this is about */
    double uptime;
    double requests, errors, notifications_out, appends; /* a second */
    double processor;                                    /* of one core, 0 to 1 */
    double open, clients, subscriptions, replaying;
    double queued, running, questions, processes, turns;
    double together; /* appends of a commit, in the mean; 0: there was none */
    double store_queue, memory;
    weft_top_quantiles sync, wait, loop;
    weft_top_method methods[WEFT_TOP_METHODS];
    size_t method_count;
    struct {
        const char *name;
        double count;
    } transports[WEFT_TOP_TRANSPORTS];
    size_t transport_count;
} weft_top_figures;

/* before: an earlier answer, or NULL: then it is about the time since the hub's start, as it is when that is another hub's.
 */
void weft__top_figures(const weft_json *before, const weft_json *now, weft_top_figures *ret);

#endif

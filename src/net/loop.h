/* The loop: libuv's, plus what every connection on it shares, so that an idle connection costs almost nothing.
 *
 *   memory   one buffer to read into and one scratch area for output, lent to a peer while it is being fed
 *   later    work to be done once before the loop waits again: flushing what was written outside of a read, mostly
 *   timers   one uv_timer for all; setting a deadline later than before costs one store and is corrected when it fires
 *
 * Callbacks never run the loop. Nothing here is thread-safe. */
#ifndef WEFT_LOOP_H
#define WEFT_LOOP_H

#include <uv.h>

#include <weft/net.h>

#include "alloc.h"
#include "histogram.h"
#include "list.h"
#include "sum.h"

/* A message that lies in it whole is decoded where it lies; one that does not is copied. So it is somewhat larger than the
 * largest messages that are common: with 64 KiB, a message of 64 KiB cost 1.7 times as much. */
#define WEFT_LOOP_READ (256 * 1024)
/* Answers to one full read rarely exceed it; when they do, the peer moves to memory of its own. */
#define WEFT_LOOP_SCRATCH (256 * 1024)

/* Work to be done soon, once. Embedded in its owner. */
typedef struct weft_later {
    weft_link link;
    void (*run)(struct weft_later *later);
} weft_later;

/* A deadline. Embedded in its owner, which must stop it before it goes. */
struct weft_timer {
    int64_t due;                            /* when it really is due; INT64_MAX: never */
    int64_t at;                             /* where it lies in the heap, at or before due; INT64_MAX: it does not */
    struct weft_timer *child, *next, *prev; /* pairing heap; prev is the parent for a first child */
    void (*on_due)(struct weft_timer *timer);
};

struct weft_loop {
    uv_loop_t uv;
    const weft_alloc *alloc;
    char *read;    /* WEFT_LOOP_READ, WEFT_SLACK bytes behind */
    char *scratch; /* WEFT_LOOP_SCRATCH in all */
    weft_link later;
    const struct weft_transport *const *transports; /* besides libweft's own (transport.h); NULL: none. Borrowed */
    weft_link mem;                                  /* the mem: endpoints (mem.h); zero until the first */
    weft_timer *timers;                             /* the earliest */
    int64_t armed;                                  /* for when uv_timer is set; INT64_MAX: it is not */
    int64_t virtual_ms;                             /* the time, while it is virtual; <0: it is the system's */
    size_t holds;
    weft_histogram *delays; /* NULL: nobody asked for them */
    weft_errand *posted;    /* newest first; written by any thread */
    size_t things;          /* on it, that their users have not freed or that are still closing */
    size_t lingering;       /* of these, clients that were freed and wait for the other side's end */
    bool turning;           /* callbacks may be running: it must not go now */
    bool doomed;            /* freed while it was turning or had things on it: goes with the last of them */
    uv_async_t wake;
    uv_timer_t timer;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
};

/* Initialise with the function; may be queued from then on. */
void weft__later_init(weft_later *later, void (*run)(weft_later *later));
/* Run it before the loop waits again; once, however often it is asked for. What is queued keeps the loop alive. */
void weft__later(weft_loop *loop, weft_later *later);
/* Likewise, and before what was queued earlier. */
void weft__later_first(weft_loop *loop, weft_later *later);
void weft__later_cancel(weft_later *later);

void weft__timer_init(weft_timer *timer, void (*on_due)(weft_timer *timer));
/* Call on_due once when weft_loop_now() has reached due; INT64_MAX: not at all. Replaces what was set before. Timers alone
 * do not keep the loop alive. */
void weft__timer_set(weft_loop *loop, weft_timer *timer, int64_t due);
/* Off, and out of the loop's memory: the owner may be freed afterwards. */
void weft__timer_stop(weft_loop *loop, weft_timer *timer);

/* Something with a life of its own is on the loop, until it leaves. Its memory, and its handles, must be gone by then. */
void weft__loop_join(weft_loop *loop);
void weft__loop_leave(weft_loop *loop);
/* At the end of every function by which a user frees something: the loop may have been waiting for that. */
void weft__loop_settle(weft_loop *loop);
/* Around what runs callbacks, from a turn or not: one of them may free the loop, and it goes when the outermost is over. */
bool weft__loop_enter(weft_loop *loop);
void weft__loop_exit(weft_loop *loop, bool inner);
void weft__loop_run_posted(weft_loop *loop);

/* weft_loop_now() stands still while a program is busy or drives another loop. What begins now is measured from this. */
int64_t weft__loop_fresh_now(weft_loop *loop);
/* From now on, count how long turns of the loop take: what becomes readable meanwhile waits so long. -ENOMEM. */
int weft__loop_measure(weft_loop *loop);
/* In milliseconds, because a turn is counted from the time that the loop has anyway; NULL: not measured. Borrowed. */
const weft_histogram *weft__loop_delays(const weft_loop *loop);
/* What is left on it is names being looked up, which nobody can call off. */
bool weft__loop_only_lookups(const weft_loop *loop);

#endif

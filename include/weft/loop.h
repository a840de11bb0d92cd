/* The loop: what waits for sockets, timers and signals, and runs the callbacks of everything that is on it.
 *
 * What may be called from where:
 *   - A loop and all that is on it (servers, peers, requests, timers, subscriptions) belong to one thread: the one that runs
 *     the loop. Several loops in several threads have nothing to do with each other; a service belongs to one of them.
 *   - From any thread, and from a signal handler: weft_loop_post(), and nothing else.
 *   - From a callback: everything, also freeing the object whose callback it is, except weft_loop_run(), weft_loop_once(),
 *     the functions that wait (weft_connect(), weft_call(), weft_wait(), weft_flush(), weft_server_run()) and
 *     weft_peer_feed(), weft_peer_tick() and weft_peer_sent() of a peer without a transport.
 *   - A callback never runs inside the call that asked for it. */
#ifndef WEFT_LOOP_PUBLIC_H
#define WEFT_LOOP_PUBLIC_H

#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_loop weft_loop;
WEFT_API int weft_loop_new(const weft_alloc *alloc, weft_loop **ret);
/* Free what is on it first. If something still is, the loop goes with the last of it; it is not turned any more. A client
 * that was freed just before sends its last words and waits for the other side to end, here, for two seconds at most. A name
 * that is still being looked up cannot be called off: after a tenth of a second what that needs is left to it. */
WEFT_API weft_loop *weft_loop_free(weft_loop *loop);
WEFT_API void weft_loop_freep(weft_loop **loop);
/* Until weft_loop_stop() or until nothing is left to wait for. -EDEADLK from a callback of this loop. */
WEFT_API int weft_loop_run(weft_loop *loop);
/* One turn; waits for something to happen when wait is true. 1 there is more to come, 0 nothing left. -EDEADLK from a
 * callback of this loop. */
WEFT_API int weft_loop_once(weft_loop *loop, bool wait);
WEFT_API void weft_loop_stop(weft_loop *loop);
/* To drive it from another loop: call weft_loop_once(loop, false), then poll this descriptor for input and wait at most the
 * timeout (-1 for ever), again and again. What was begun since the last turn is not watched before the next. */
WEFT_API int weft_loop_fd(const weft_loop *loop);
WEFT_API int weft_loop_timeout_ms(const weft_loop *loop);
/* Monotonic milliseconds, as of this turn. */
WEFT_API int64_t weft_loop_now(const weft_loop *loop);
/* Keep weft_loop_run() going although nothing is on it, because threads will post. Counted; releasing what is not held does
 * nothing. */
WEFT_API void weft_loop_hold(weft_loop *loop);
WEFT_API void weft_loop_release(weft_loop *loop);

/* Virtual time, for tests: from the first call on, the loop's time is what was said last and stands still in between. It
 * cannot go back. weft_loop_once() then runs the timers that are due by it, and never waits. */
WEFT_API void weft_loop_set_now(weft_loop *loop, int64_t now_ms);
/* The time to which a test may move on when nothing else is to be done: nothing is due before. INT64_MAX: nothing is. */
WEFT_API int64_t weft_loop_deadline(const weft_loop *loop);

/* ---- from other threads, and from signal handlers ---- */

/* Something to be run by the loop. It lies in the caller's memory, usually inside what it is about, so posting cannot fail
 * and needs neither memory nor a lock. */
typedef struct weft_errand {
    void (*run)(weft_loop *loop, void *ctx);
    void *ctx;
    struct weft_errand *next_; /* ours; zero at first */
    int waiting_;
    WEFT_ROOM(2);
} weft_errand;
/* Have run() called by the thread of the loop, once, in the order of the calls. From the moment it runs the errand may be
 * posted again, or freed, also by run() itself; before, it must stay. 1 queued; 0 it is waiting already, and runs once. What
 * one thread wrote before posting, run() sees. What waits when the loop is freed runs then: so first the threads are joined,
 * then the loop is freed, and nothing is lost. */
WEFT_API int weft_loop_post(weft_loop *loop, weft_errand *errand);

/* ---- timers ---- */

typedef struct weft_timer weft_timer;
typedef void weft_on_due(weft_timer *timer, void *ctx);
/* A timer that is off. */
WEFT_API int weft_timer_new(weft_loop *loop, weft_on_due *on_due, void *ctx, weft_timer **ret);
/* Call on_due after so many milliseconds, and then every so many (0: only once). Replaces what was set before. While it is
 * on, the loop goes on running. */
WEFT_API void weft_timer_start(weft_timer *timer, int64_t after_ms, int64_t every_ms);
WEFT_API void weft_timer_stop(weft_timer *timer);
WEFT_API weft_timer *weft_timer_free(weft_timer *timer);
WEFT_API void weft_timer_freep(weft_timer **timer);

/* ---- signals ---- */

typedef struct weft_signal weft_signal;
typedef void weft_on_signal(weft_signal *signal, int number, void *ctx);
/* From now on this signal calls on_signal, from the loop, in place of what it did before. Several may watch one. It does not
 * keep the loop running. -EINVAL: a signal that cannot be handled. */
WEFT_API int weft_signal_new(weft_loop *loop, int number, weft_on_signal *on_signal, void *ctx, weft_signal **ret);
WEFT_API weft_signal *weft_signal_free(weft_signal *signal);
WEFT_API void weft_signal_freep(weft_signal **signal);

#ifdef __cplusplus
}
#endif
#endif

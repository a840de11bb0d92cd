/* The loop: shared memory, work for later, and one timer for all deadlines. It knows nothing of sockets or peers. */
#include "loop.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>

#include "buf.h"

/* Turns that weft_loop_free() gives to handles that are closing already. Each needs one, what their callbacks close another.
 */
#define CLOSING_TURNS 16
/* What a weft_loop_stop() that nobody has obeyed yet keeps from turning is the first of two. */
#define LAST_TURNS 2
/* And how long it waits for names that are being looked up: only the resolver ends that, in its own time. */
#define LOOKUP_MS 100
/* And for clients that were freed, until the other side has ended too: closing at once could throw away what they said last.
 * Their streams give up sooner (WEFT_STREAM_LINGER_MS). */
#define LINGER_MS 2500

/* ---- later ---- */

void weft__later_init(weft_later *later, void (*run)(weft_later *later)) {
    weft__list_init(&later->link);
    later->run = run;
}

/* An active idle handle keeps the loop from waiting and from ending, which is all it is for. */
static void on_idle(uv_idle_t *idle) {
    (void) idle;
}

static void queue_later(weft_loop *loop, weft_link *before, weft_later *later) {
    if (!weft__list_empty(&later->link))
        return;
    weft__list_push(before, &later->link);
    uv_idle_start(&loop->idle, on_idle);
}

void weft__later(weft_loop *loop, weft_later *later) {
    queue_later(loop, &loop->later, later);
}

void weft__later_first(weft_loop *loop, weft_later *later) {
    queue_later(loop, loop->later.next, later);
}

void weft__later_cancel(weft_later *later) {
    weft__list_remove(&later->link);
}

/* What is queued meanwhile waits for the next time: otherwise two that queue each other would never let the loop wait. */
static void run_later(weft_loop *loop) {
    weft_link now;
    weft__list_push(&loop->later, &now); /* becomes the head of what is there */
    weft__list_remove(&loop->later);
    while (!weft__list_empty(&now)) {
        weft_later *later = WEFT_CONTAINER(now.next, weft_later, link);
        weft__list_remove(&later->link);
        later->run(later);
    }
    if (weft__list_empty(&loop->later))
        uv_idle_stop(&loop->idle);
}

/* libuv's time is that of when the poll returned, or the turn began, unless somebody has asked for a fresh one since: a turn
 * is never shown longer than it was. */
static void count_delay(weft_loop *loop) {
    uint64_t now = uv_hrtime() / 1000000, then = uv_now(&loop->uv);
    weft__histogram_add(loop->delays, now > then ? now - then : 0);
}

/* After the poll for what reads caused, before it for what timers and closing handles did. */
static void on_check(uv_check_t *check) {
    weft_loop *loop = check->data;
    run_later(loop);
    if (loop->delays)
        count_delay(loop);
}

static void on_prepare(uv_prepare_t *prepare) {
    run_later(prepare->data);
}

/* ---- timers: a pairing heap, because it needs no memory of its own and so cannot fail ---- */

static weft_timer *meld_timers(weft_timer *a, weft_timer *b) {
    if (!a || !b)
        return a ? a : b;
    if (b->at < a->at) {
        weft_timer *earlier = b;
        b = a;
        a = earlier;
    }
    b->prev = a;
    b->next = a->child;
    if (b->next)
        b->next->prev = b;
    a->child = b;
    return a;
}

/* Two passes: pairs from left to right, then the pairs into one from right to left. This order is what makes it O(log n). */
static weft_timer *meld_all(weft_timer *first) {
    weft_timer *pairs = NULL;
    while (first) {
        weft_timer *a = first, *b = a->next;
        first = b ? b->next : NULL;
        a->next = a->prev = NULL;
        if (b)
            b->next = b->prev = NULL;
        weft_timer *pair = meld_timers(a, b);
        pair->next = pairs;
        pairs = pair;
    }
    weft_timer *all = NULL;
    while (pairs) {
        weft_timer *next = pairs->next;
        pairs->next = NULL;
        all = meld_timers(all, pairs);
        pairs = next;
    }
    return all;
}

static void heap_put(weft_loop *loop, weft_timer *timer, int64_t at) {
    assert(timer->at == INT64_MAX);
    timer->at = at;
    timer->child = timer->next = timer->prev = NULL;
    loop->timers = meld_timers(loop->timers, timer);
}

static void heap_remove(weft_loop *loop, weft_timer *timer) {
    weft_timer *children = meld_all(timer->child);
    if (timer == loop->timers)
        loop->timers = children;
    else {
        if (timer->prev->child == timer)
            timer->prev->child = timer->next;
        else
            timer->prev->next = timer->next;
        if (timer->next)
            timer->next->prev = timer->prev;
        loop->timers = meld_timers(loop->timers, children);
    }
    timer->at = INT64_MAX;
}

static void on_loop_timer(uv_timer_t *handle);

static bool is_virtual(const weft_loop *loop) {
    return loop->virtual_ms >= 0;
}

static void arm_timer(weft_loop *loop) {
    if (!loop->timers || loop->timers->at >= loop->armed || is_virtual(loop))
        return;
    int64_t wait = loop->timers->at - weft_loop_now(loop);
    loop->armed = loop->timers->at;
    uv_timer_start(&loop->timer, on_loop_timer, wait > 0 ? (uint64_t) wait : 0, 0);
}

static void run_due_timers(weft_loop *loop) {
    int64_t now = weft_loop_now(loop);
    while (loop->timers && loop->timers->at <= now) {
        weft_timer *timer = loop->timers;
        heap_remove(loop, timer);
        if (timer->due <= now) {
            timer->due = INT64_MAX;
            timer->on_due(timer);
        } else if (timer->due != INT64_MAX)
            heap_put(loop, timer, timer->due);
    }
}

static void on_loop_timer(uv_timer_t *handle) {
    weft_loop *loop = handle->data;
    loop->armed = INT64_MAX;
    run_due_timers(loop);
    if (loop->delays)
        count_delay(loop);
    arm_timer(loop);
}

void weft__timer_init(weft_timer *timer, void (*on_due)(weft_timer *timer)) {
    *timer = (weft_timer){.due = INT64_MAX, .at = INT64_MAX, .on_due = on_due};
}

void weft__timer_set(weft_loop *loop, weft_timer *timer, int64_t due) {
    timer->due = due;
    if (timer->at == INT64_MAX ? due == INT64_MAX : due >= timer->at)
        return;
    if (timer->at != INT64_MAX)
        heap_remove(loop, timer);
    /* Never at once: a timer that sets itself to the past must not keep on_loop_timer() for ever. */
    int64_t soonest = weft_loop_now(loop) + 1;
    heap_put(loop, timer, due > soonest ? due : soonest);
    arm_timer(loop);
}

void weft__timer_stop(weft_loop *loop, weft_timer *timer) {
    timer->due = INT64_MAX;
    if (timer->at != INT64_MAX)
        heap_remove(loop, timer);
}

/* ---- the loop ---- */

void weft_loop_hold(weft_loop *loop) {
    if (loop->holds++ == 0)
        uv_ref((uv_handle_t *) &loop->check);
}

void weft_loop_release(weft_loop *loop) {
    if (loop->holds && --loop->holds == 0)
        uv_unref((uv_handle_t *) &loop->check);
}

void weft__loop_join(weft_loop *loop) {
    loop->things++;
}

void weft__loop_leave(weft_loop *loop) {
    assert(loop->things > 0);
    loop->things--;
}

void weft__loop_settle(weft_loop *loop) {
    if (loop->doomed && !loop->turning)
        weft_loop_free(loop);
}

static void on_wake(uv_async_t *wake) {
    weft__loop_run_posted(wake->data);
}

static void start_handles(weft_loop *loop) {
    uv_timer_init(&loop->uv, &loop->timer);
    uv_prepare_init(&loop->uv, &loop->prepare);
    uv_check_init(&loop->uv, &loop->check);
    uv_idle_init(&loop->uv, &loop->idle);
    loop->timer.data = loop->prepare.data = loop->check.data = loop->idle.data = loop->wake.data = loop;
    uv_prepare_start(&loop->prepare, on_prepare);
    uv_check_start(&loop->check, on_check);
    uv_unref((uv_handle_t *) &loop->timer);
    uv_unref((uv_handle_t *) &loop->prepare);
    uv_unref((uv_handle_t *) &loop->check);
    uv_unref((uv_handle_t *) &loop->wake);
}

static weft_loop *free_loop_memory(weft_loop *loop) {
    weft__free(loop->alloc, loop->delays);
    weft__free(loop->alloc, loop->read);
    weft__free(loop->alloc, loop->scratch);
    return weft__free(loop->alloc, loop);
}

int weft_loop_new(const weft_alloc *alloc, weft_loop **ret) {
    weft_loop *loop = weft__zalloc(alloc, sizeof *loop);
    if (!loop)
        return -ENOMEM;
    loop->alloc = alloc;
    loop->armed = INT64_MAX;
    loop->virtual_ms = -1;
    weft__list_init(&loop->later);
    loop->read = weft__alloc(alloc, WEFT_LOOP_READ + WEFT_SLACK);
    loop->scratch = weft__alloc(alloc, WEFT_LOOP_SCRATCH);
    int r = loop->read && loop->scratch ? uv_loop_init(&loop->uv) : -ENOMEM;
    if (r >= 0 && (r = uv_async_init(&loop->uv, &loop->wake, on_wake)) < 0)
        uv_loop_close(&loop->uv);
    if (r < 0) {
        free_loop_memory(loop);
        return r;
    }
    start_handles(loop);
    *ret = loop;
    return 0;
}

bool weft__loop_only_lookups(const weft_loop *loop) {
    return loop->uv.active_reqs.count && !loop->uv.active_handles && !loop->uv.closing_handles;
}

static bool looks_up(const weft_loop *loop) {
    return loop->uv.active_reqs.count > 0;
}

/* All that is left are clients that nobody holds any more. */
static bool only_lingers(const weft_loop *loop) {
    return loop->lingering && loop->lingering == loop->things && !looks_up(loop);
}

/* Turn the loop while this is so, in the system's time, whatever the loop's is. */
static void turn_while(weft_loop *loop, bool (*is_so)(const weft_loop *loop), uint64_t most_ms) {
    uv_update_time(&loop->uv);
    uint64_t until = uv_now(&loop->uv) + most_ms;
    while (is_so(loop) && uv_now(&loop->uv) < until) {
        struct pollfd ready = {.fd = uv_backend_fd(&loop->uv), .events = POLLIN};
        poll(&ready, 1, 10);
        uv_run(&loop->uv, UV_RUN_NOWAIT);
        uv_update_time(&loop->uv);
    }
}

static void close_own_handles(weft_loop *loop) {
    uv_close((uv_handle_t *) &loop->timer, NULL);
    uv_close((uv_handle_t *) &loop->prepare, NULL);
    uv_close((uv_handle_t *) &loop->check, NULL);
    uv_close((uv_handle_t *) &loop->idle, NULL);
    uv_close((uv_handle_t *) &loop->wake, NULL);
    for (int turn = 0; turn < LAST_TURNS && uv_loop_alive(&loop->uv); turn++)
        uv_run(&loop->uv, UV_RUN_NOWAIT);
}

weft_loop *weft_loop_free(weft_loop *loop) {
    if (!loop)
        return NULL;
    loop->doomed = true;
    if (loop->turning)
        return NULL;
    loop->turning = true;
    weft__loop_run_posted(loop); /* nothing may keep the loop, and then it does not look */
    for (int turn = 0; turn < CLOSING_TURNS && uv_loop_alive(&loop->uv); turn++)
        uv_run(&loop->uv, UV_RUN_NOWAIT);
    turn_while(loop, only_lingers, LINGER_MS);
    turn_while(loop, looks_up, LOOKUP_MS); /* in threads that nobody can stop */
    bool looked_up = !looks_up(loop);
    loop->turning = false;
    /* A thread will write into this loop when its answer comes: then it stays, without what is only for turning it. */
    if (!looked_up) {
        loop->read = weft__free(loop->alloc, loop->read);
        loop->scratch = weft__free(loop->alloc, loop->scratch);
        loop->delays = weft__free(loop->alloc, loop->delays);
        return NULL;
    }
    if (loop->things)
        return NULL; /* weft__loop_settle() comes back */
    close_own_handles(loop);
    int r = uv_loop_close(&loop->uv);
    assert(r == 0); /* something of ours on it was not closed: all that a user can leave there has joined it */
    return r == 0 ? free_loop_memory(loop) : NULL;
}

void weft_loop_freep(weft_loop **loop) {
    *loop = weft_loop_free(*loop);
}

/* Signals and errands do not keep a loop, but are there when somebody looks; libuv does not even look where nothing keeps
 * it. */
static bool look_once(weft_loop *loop) {
    weft_loop_hold(loop);
    uv_run(&loop->uv, UV_RUN_NOWAIT);
    weft_loop_release(loop);
    return uv_loop_alive(&loop->uv);
}

bool weft__loop_enter(weft_loop *loop) {
    bool inner = loop->turning;
    loop->turning = true;
    return inner;
}

void weft__loop_exit(weft_loop *loop, bool inner) {
    loop->turning = inner;
    weft__loop_settle(loop);
}

static int turn_loop(weft_loop *loop, uv_run_mode mode) {
    bool inner = weft__loop_enter(loop);
    bool more = mode == UV_RUN_NOWAIT ? look_once(loop) : uv_run(&loop->uv, mode) != 0;
    weft__loop_exit(loop, inner);
    return more;
}

int weft_loop_run(weft_loop *loop) {
    if (loop->turning)
        return -EDEADLK; /* whatever would end it is called from the turn that waits for it */
    turn_loop(loop, UV_RUN_DEFAULT);
    return 0;
}

int weft_loop_once(weft_loop *loop, bool wait) {
    if (loop->turning)
        return -EDEADLK; /* what the turn under way is about to use may go in another */
    if (is_virtual(loop)) {
        run_due_timers(loop);
        wait = false;
    }
    return turn_loop(loop, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);
}

void weft_loop_stop(weft_loop *loop) {
    uv_stop(&loop->uv);
}

int weft_loop_fd(const weft_loop *loop) {
    return uv_backend_fd(&loop->uv);
}

/* Where nothing keeps the loop libuv says 0, as it would not wait either. A foreign loop has more to wait for. */
int weft_loop_timeout_ms(const weft_loop *loop) {
    weft_loop *held = (weft_loop *) loop;
    weft_loop_hold(held);
    int timeout = uv_backend_timeout(&held->uv);
    weft_loop_release(held);
    return timeout;
}

int64_t weft_loop_now(const weft_loop *loop) {
    return is_virtual(loop) ? loop->virtual_ms : (int64_t) uv_now(&loop->uv);
}

int weft__loop_measure(weft_loop *loop) {
    if (!loop->delays)
        loop->delays = weft__zalloc(loop->alloc, sizeof *loop->delays);
    return loop->delays ? 0 : -ENOMEM;
}

const weft_histogram *weft__loop_delays(const weft_loop *loop) {
    return loop->delays;
}

int64_t weft__loop_fresh_now(weft_loop *loop) {
    uv_update_time(&loop->uv);
    return weft_loop_now(loop);
}

void weft_loop_set_now(weft_loop *loop, int64_t now_ms) {
    assert(now_ms >= 0 && now_ms >= loop->virtual_ms);
    uv_timer_stop(&loop->timer);
    loop->armed = INT64_MAX;
    loop->virtual_ms = now_ms;
}

int64_t weft_loop_deadline(const weft_loop *loop) {
    return loop->timers ? loop->timers->at : INT64_MAX;
}

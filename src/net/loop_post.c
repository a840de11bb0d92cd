/* Work from other threads and from signal handlers. A stack without a lock, because a signal handler may interrupt anybody,
 * also somebody who is posting; it is turned around when it is taken, so that work is done in the order it came. */
#include "loop.h"

int weft_loop_post(weft_loop *loop, weft_errand *errand) {
    if (__atomic_exchange_n(&errand->waiting_, 1, __ATOMIC_ACQ_REL))
        return 0;
    errand->next_ = __atomic_load_n(&loop->posted, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&loop->posted, &errand->next_, errand, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
    uv_async_send(&loop->wake); /* writes to a descriptor, which a signal handler may do */
    return 1;
}

static weft_errand *take_posted(weft_loop *loop) {
    weft_errand *newest = __atomic_exchange_n(&loop->posted, NULL, __ATOMIC_ACQUIRE), *oldest = NULL;
    while (newest) {
        weft_errand *next = newest->next_;
        newest->next_ = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

/* Nothing of an errand is looked at once it may be posted again or freed. */
void weft__loop_run_posted(weft_loop *loop) {
    for (weft_errand *errand = take_posted(loop), *next; errand; errand = next) {
        void (*run)(weft_loop * loop, void *ctx) = errand->run;
        void *ctx = errand->ctx;
        next = errand->next_;
        __atomic_exchange_n(&errand->waiting_, 0, __ATOMIC_ACQ_REL); /* sees what those wrote who found it waiting */
        run(loop, ctx);
    }
}

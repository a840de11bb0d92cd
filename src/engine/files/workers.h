/* A few threads for work that may wait for a disk or for a program, so that the loop does not. Work is given by the loop's
 * thread, run by any of the threads, and finished on the loop's thread again.
 *
 * Threads are started when there is work for them and live as long as the workers. They have all signals blocked. */
#ifndef WEFT_WORKERS_H
#define WEFT_WORKERS_H

#include "loop.h"

#define WEFT_WORKERS_MAX 8 /* threads */

/* Embedded in its owner, which may not move or free it before done. */
typedef struct weft_work {
    weft_link link;
    /* On a thread: no loop, no engine. The allocator may be used, descriptors may be. */
    void (*run)(struct weft_work *work);
    /* On the loop's thread, once; never inside weft__workers_give(). May free the work and give other work. lost: the
     * workers are being freed, and run may not have been called: give the memory back and call nobody. */
    void (*done)(struct weft_work *work, bool lost);
} weft_work;

typedef struct weft_workers weft_workers;

typedef struct weft_workers_opts {
    weft_loop *loop;
    const weft_alloc *alloc; /* is used from the threads too */
    unsigned threads;        /* at most; 0: 2 */
    size_t max_waiting;      /* work that no thread has begun; 0: 256 */
    bool set_umask; /* the threads, and programs that they start, have this umask instead of the process's, where the
                       system lets a thread have its own */
    mode_t umask;
} weft_workers_opts;

int weft__workers_new(const weft_workers_opts *opts, weft_workers **ret);
/* Waits for what is being run. Returns NULL. */
weft_workers *weft__workers_free(weft_workers *workers);
/* Work keeps the loop alive until it is done. -EAGAIN: too much is waiting, or no thread can be started. */
int weft__workers_give(weft_workers *workers, weft_work *work);

#endif

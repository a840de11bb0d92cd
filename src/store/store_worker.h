/* A thread of a store with a queue of jobs: the owner gives and never waits, the thread takes what has come while it was
 * busy. */
#ifndef WEFT_STORE_WORKER_H
#define WEFT_STORE_WORKER_H

#include "store_kind.h"

typedef struct weft_store_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    weft_link jobs;
    bool sleeping, stop, poked;
} weft_store_worker;

int weft__store_worker_start(weft_store_worker *worker, void *(*main)(void *), void *ctx);
/* more: another job follows at once, which wakes the thread. */
void weft__store_worker_give(weft_store_worker *worker, weft_job *job, bool more);
/* Wake it without a job: its next take without jobs returns 0 at once. */
void weft__store_worker_poke(weft_store_worker *worker);
/* Wait for jobs and take them up to so many bytes, at least one. 1 some, 0 none in wait_ms (-1: for ever) or poked,
 * -ECANCELED: told to stop, and the queue is empty. */
int weft__store_worker_take(weft_store_worker *worker, int wait_ms, size_t max_bytes, weft_link *ret_jobs);
bool weft__store_worker_stopping(weft_store_worker *worker);
/* Have it end when its queue is empty, and wait for that. */
void weft__store_worker_stop(weft_store_worker *worker);

#endif

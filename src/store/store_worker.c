/* A thread with a queue: the owner gives jobs and never waits, the thread takes what has come while it was busy. */
#include <errno.h>
#include <time.h>

#include "store_worker.h"

int weft__store_worker_start(weft_store_worker *worker, void *(*main)(void *), void *ctx) {
    pthread_condattr_t attr;
    weft__list_init(&worker->jobs);
    pthread_mutex_init(&worker->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&worker->wake, &attr);
    pthread_condattr_destroy(&attr);
    int r = pthread_create(&worker->thread, NULL, main, ctx);
    if (r != 0) {
        pthread_cond_destroy(&worker->wake);
        pthread_mutex_destroy(&worker->lock);
    }
    return -r;
}

void weft__store_worker_give(weft_store_worker *worker, weft_job *job, bool more) {
    pthread_mutex_lock(&worker->lock);
    weft__list_push(&worker->jobs, &job->link);
    bool wake = worker->sleeping && !more;
    pthread_mutex_unlock(&worker->lock);
    if (wake)
        pthread_cond_signal(&worker->wake);
}

void weft__store_worker_poke(weft_store_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    worker->poked = true;
    pthread_mutex_unlock(&worker->lock);
    pthread_cond_signal(&worker->wake);
}

static struct timespec time_from_now(int ms) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000L;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000L;
    }
    return at;
}

/* With the lock held. */
static void await_jobs(weft_store_worker *worker, int wait_ms) {
    struct timespec until = time_from_now(wait_ms > 0 ? wait_ms : 0);
    int r = 0;
    worker->sleeping = true;
    while (weft__list_empty(&worker->jobs) && !worker->stop && !worker->poked && r != ETIMEDOUT)
        r = wait_ms < 0 ? pthread_cond_wait(&worker->wake, &worker->lock)
                        : pthread_cond_timedwait(&worker->wake, &worker->lock, &until);
    worker->sleeping = worker->poked = false;
}

int weft__store_worker_take(weft_store_worker *worker, int wait_ms, size_t max_bytes, weft_link *ret_jobs) {
    size_t bytes = 0;
    weft__list_init(ret_jobs);
    pthread_mutex_lock(&worker->lock);
    await_jobs(worker, wait_ms);
    int r = worker->stop ? -ECANCELED : 0;
    while (!weft__list_empty(&worker->jobs) && bytes < max_bytes) {
        weft_job *job = WEFT_CONTAINER(worker->jobs.next, weft_job, link);
        weft__list_remove(&job->link);
        weft__list_push(ret_jobs, &job->link);
        bytes += job->bytes;
        r = 1;
    }
    pthread_mutex_unlock(&worker->lock);
    return r;
}

bool weft__store_worker_stopping(weft_store_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    bool stop = worker->stop;
    pthread_mutex_unlock(&worker->lock);
    return stop;
}

void weft__store_worker_stop(weft_store_worker *worker) {
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_mutex_unlock(&worker->lock);
    pthread_cond_signal(&worker->wake);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->lock);
}

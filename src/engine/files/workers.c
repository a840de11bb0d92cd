/* Threads with one queue in front and one behind; see workers.h. The descriptor is readable while something is finished. */
#include "workers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "watch.h"

#define THREADS 2
#define MAX_WAITING 256
#define STACK (512 * 1024) /* some paths of PATH_MAX; what is large is allocated */

struct weft_workers {
    weft_loop *loop;
    const weft_alloc *alloc;
    weft_watch *watch;
    int fd;
    unsigned max_threads, threads; /* the loop's */
    size_t max_waiting, unfinished;
    bool set_umask;
    mode_t umask;
    pthread_t thread[WEFT_WORKERS_MAX];

    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t wake;
    weft_link waiting, finished;
    size_t waiting_count;
    unsigned idle;
    bool stop;
};

/* ---- the threads ---- */

/* With the lock held. NULL: it is over. */
static weft_work *next_work(weft_workers *workers) {
    workers->idle++;
    while (weft__list_empty(&workers->waiting) && !workers->stop)
        pthread_cond_wait(&workers->wake, &workers->lock);
    workers->idle--;
    if (workers->stop)
        return NULL;
    weft_link *first = workers->waiting.next;
    weft__list_remove(first);
    workers->waiting_count--;
    return WEFT_CONTAINER(first, weft_work, link);
}

static void *worker_main(void *ctx) {
    weft_workers *workers = ctx;
    /* A daemon in the background has 077, which is right for its own files. What git makes for the user is the user's. */
    if (workers->set_umask && unshare(CLONE_FS) == 0)
        umask(workers->umask);
    pthread_mutex_lock(&workers->lock);
    for (weft_work *work; (work = next_work(workers));) {
        pthread_mutex_unlock(&workers->lock);
        work->run(work);
        pthread_mutex_lock(&workers->lock);
        if (weft__list_empty(&workers->finished))
            (void) eventfd_write(workers->fd, 1);
        weft__list_push(&workers->finished, &work->link);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

static int start_thread(weft_workers *workers) {
    pthread_attr_t attr;
    sigset_t all, before;
    int r = pthread_attr_init(&attr);
    if (r != 0)
        return -r;
    pthread_attr_setstacksize(&attr, STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&workers->thread[workers->threads], &attr, worker_main, workers);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    workers->threads += r == 0;
    return -r;
}

/* ---- the loop's side ---- */

/* NULL: nothing is finished. */
static weft_work *take_finished(weft_workers *workers) {
    eventfd_t count;
    pthread_mutex_lock(&workers->lock);
    weft_link *first = workers->finished.next;
    bool none = first == &workers->finished;
    weft__list_remove(first);
    if (weft__list_empty(&workers->finished))
        (void) eventfd_read(workers->fd, &count);
    pthread_mutex_unlock(&workers->lock);
    return none ? NULL : WEFT_CONTAINER(first, weft_work, link);
}

static void finish_work(weft_workers *workers, weft_work *work, bool lost) {
    workers->unfinished--;
    weft_loop_release(workers->loop);
    work->done(work, lost);
}

/* One a turn: what is done with a result may take its time, and the loop has other things to do. */
static void on_finished(void *ctx, unsigned what) {
    (void) what;
    weft_workers *workers = ctx;
    weft_work *work = take_finished(workers);
    if (work)
        finish_work(workers, work, false);
}

int weft__workers_give(weft_workers *workers, weft_work *work) {
    pthread_mutex_lock(&workers->lock);
    bool full = workers->waiting_count >= workers->max_waiting, busy = workers->idle <= workers->waiting_count;
    pthread_mutex_unlock(&workers->lock);
    if (full)
        return -EAGAIN;
    if (busy && workers->threads < workers->max_threads && start_thread(workers) < 0 && !workers->threads)
        return -EAGAIN;
    workers->unfinished++;
    weft_loop_hold(workers->loop);
    pthread_mutex_lock(&workers->lock);
    weft__list_push(&workers->waiting, &work->link);
    workers->waiting_count++;
    pthread_mutex_unlock(&workers->lock);
    pthread_cond_signal(&workers->wake);
    return 0;
}

static int watch_finished(weft_workers *workers) {
    workers->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (workers->fd < 0)
        return -errno;
    int r = weft__watch_new(workers->loop, workers->fd, on_finished, workers, &workers->watch);
    if (r == 0)
        r = weft__watch_set(workers->watch, WEFT_WATCH_READ);
    if (r == 0)
        weft__watch_quiet(workers->watch);
    return r;
}

int weft__workers_new(const weft_workers_opts *opts, weft_workers **ret) {
    weft_workers *workers = weft__zalloc(opts->alloc, sizeof *workers);
    if (!workers)
        return -ENOMEM;
    workers->loop = opts->loop;
    workers->alloc = opts->alloc;
    workers->max_threads = opts->threads ? opts->threads : THREADS;
    if (workers->max_threads > WEFT_WORKERS_MAX)
        workers->max_threads = WEFT_WORKERS_MAX;
    workers->max_waiting = opts->max_waiting ? opts->max_waiting : MAX_WAITING;
    workers->set_umask = opts->set_umask;
    workers->umask = opts->umask;
    weft__list_init(&workers->waiting);
    weft__list_init(&workers->finished);
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->wake, NULL);
    int r = watch_finished(workers);
    if (r < 0) {
        weft__workers_free(workers);
        return r;
    }
    *ret = workers;
    return 0;
}

static void finish_as_lost(weft_workers *workers, weft_link *list) {
    while (!weft__list_empty(list)) {
        weft_link *first = list->next;
        weft__list_remove(first);
        finish_work(workers, WEFT_CONTAINER(first, weft_work, link), true);
    }
}

weft_workers *weft__workers_free(weft_workers *workers) {
    if (!workers)
        return NULL;
    pthread_mutex_lock(&workers->lock);
    workers->stop = true;
    pthread_mutex_unlock(&workers->lock);
    pthread_cond_broadcast(&workers->wake);
    for (unsigned i = 0; i < workers->threads; i++)
        pthread_join(workers->thread[i], NULL);
    finish_as_lost(workers, &workers->waiting);
    finish_as_lost(workers, &workers->finished);
    weft__watch_free(workers->watch);
    if (workers->fd >= 0)
        close(workers->fd);
    pthread_cond_destroy(&workers->wake);
    pthread_mutex_destroy(&workers->lock);
    return weft__free(workers->alloc, workers);
}

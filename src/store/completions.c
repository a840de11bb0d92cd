/* Finished jobs cross from the store's threads to the owner's here. The descriptor is readable while something lies on the
 * tray; it is written once for the first job, not for each. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "histogram.h"
#include "store_kind.h"

/* Move a whole list behind another. */
static void splice_list(weft_link *to, weft_link *from) {
    if (weft__list_empty(from))
        return;
    from->next->prev = to->prev;
    from->prev->next = to;
    to->prev->next = from->next;
    to->prev = from->prev;
    weft__list_init(from);
}

int weft__completions_init(weft_completions *completions) {
    weft__list_init(&completions->jobs);
    completions->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (completions->fd < 0)
        return -errno;
    int r = pthread_mutex_init(&completions->lock, NULL);
    if (r != 0)
        close(completions->fd);
    return -r;
}

void weft__completions_done(weft_completions *completions) {
    pthread_mutex_destroy(&completions->lock);
    close(completions->fd);
}

void weft__completions_put(weft_completions *completions, weft_link *jobs) {
    if (weft__list_empty(jobs))
        return;
    pthread_mutex_lock(&completions->lock);
    bool first = weft__list_empty(&completions->jobs);
    splice_list(&completions->jobs, jobs);
    pthread_mutex_unlock(&completions->lock);
    /* Outside the lock, which the owner takes as soon as it wakes. If it has taken all meanwhile, it looks once more for
     * nothing. Cannot fail: the counter is nowhere near its end. */
    if (first)
        (void) eventfd_write(completions->fd, 1);
}

void weft__completions_note(weft_completions *completions, uint64_t sync_us, uint64_t appends) {
    pthread_mutex_lock(&completions->lock);
    weft__histogram_add(&completions->sync_us, sync_us);
    if (appends) /* otherwise something was trimmed */
        weft__histogram_add(&completions->group, appends);
    pthread_mutex_unlock(&completions->lock);
}

void weft__completions_take(weft_completions *completions, weft_link *ret_jobs) {
    eventfd_t count;
    /* First: whatever is put there from now on makes it readable again. */
    (void) eventfd_read(completions->fd, &count);
    pthread_mutex_lock(&completions->lock);
    weft__list_init(ret_jobs);
    splice_list(ret_jobs, &completions->jobs);
    pthread_mutex_unlock(&completions->lock);
}

/* Finished jobs cross from the store's threads to the owner's here. The descriptor is readable while something lies on the
 * tray; it is written once for the first job, not for each. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "store_kind.h"

/* Move a whole list behind another. */
static void splice(weft_link *to, weft_link *from) {
    if (weft__list_empty(from))
        return;
    from->next->prev = to->prev;
    from->prev->next = to;
    to->prev->next = from->next;
    to->prev = from->prev;
    weft__list_init(from);
}

int weft__tray_init(weft_tray *tray) {
    weft__list_init(&tray->jobs);
    tray->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (tray->fd < 0)
        return -errno;
    int r = pthread_mutex_init(&tray->lock, NULL);
    if (r != 0)
        close(tray->fd);
    return -r;
}

void weft__tray_done(weft_tray *tray) {
    pthread_mutex_destroy(&tray->lock);
    close(tray->fd);
}

void weft__tray_put(weft_tray *tray, weft_link *jobs) {
    if (weft__list_empty(jobs))
        return;
    pthread_mutex_lock(&tray->lock);
    bool first = weft__list_empty(&tray->jobs);
    splice(&tray->jobs, jobs);
    pthread_mutex_unlock(&tray->lock);
    /* Outside the lock, which the owner takes as soon as it wakes. If it has emptied the tray meanwhile, it looks once more
     * for nothing. Cannot fail: the counter is nowhere near its end. */
    if (first)
        (void) eventfd_write(tray->fd, 1);
}

void weft__tray_take(weft_tray *tray, weft_link *ret_jobs) {
    eventfd_t count;
    /* First: whatever is put there from now on makes it readable again. */
    (void) eventfd_read(tray->fd, &count);
    pthread_mutex_lock(&tray->lock);
    weft__list_init(ret_jobs);
    splice(ret_jobs, &tray->jobs);
    pthread_mutex_unlock(&tray->lock);
}

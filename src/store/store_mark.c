/* The mark of a journal that is not in files here: the last acknowledged gseq, in a small file of ours, as SQLite's has one
 * beside it (sqlite_mark.c). A database that was restored from a backup, or that failed over to a machine which did not have
 * everything, looks like one that never had more. The mark is written before anybody is told of an event, so it is never
 * ahead of what was durable; a journal that ends before it has lost something that was acknowledged. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sqlite_store.h"

static int check_mark(const weft_store *store, const char *path, char *ret_why) {
    char epoch[WEFT_EPOCH + 1];
    uint64_t gseq;
    struct stat info;
    int known = weft__sq_mark_read(store->mark, epoch, &gseq);
    if (!known && fstat(store->mark, &info) == 0 && info.st_size == 0)
        return 0; /* the first time */
    if (!known)
        snprintf(ret_why, WEFT_STORE_WHY,
                 "the file that says how far the journal had come is damaged. To go on without it, remove %.200s-mark",
                 path);
    else if (gseq && strcmp(epoch, store->epoch) != 0)
        snprintf(ret_why, WEFT_STORE_WHY,
                 "this is another journal than the one that was served here and had %llu events. If that is on purpose, "
                 "remove %.200s-mark",
                 (unsigned long long) gseq, path);
    else if (gseq > store->told)
        snprintf(
            ret_why, WEFT_STORE_WHY,
            "the journal has lost its end: event %llu was acknowledged, and the last one there is %llu. Bring back what "
            "is missing; or, if this is an older copy on purpose, remove %.200s-mark",
            (unsigned long long) gseq, (unsigned long long) store->told, path);
    else
        return 0;
    return -EUCLEAN;
}

int weft__store_mark_open(weft_store *store, const char *path, char *ret_why) {
    int r = weft__sq_mark_open(path, &store->mark);
    if (r < 0) {
        store->mark = -1;
        snprintf(ret_why, WEFT_STORE_WHY, "%.300s-mark: %s", path,
                 r == -EBUSY ? "the journal is in use by another process" : weft_strerror(r));
        return r;
    }
    r = check_mark(store, path, ret_why);
    if (r == 0)
        r = weft__sq_mark_write(store->mark, store->epoch, store->told);
    if (r == 0 && fdatasync(store->mark) < 0)
        r = -errno;
    return r;
}

/* One that cannot be written is an older one, which proves less. */
void weft__store_mark_note(weft_store *store, const weft_link *jobs) {
    uint64_t last = 0;
    for (const weft_link *link = jobs->next; link != jobs; link = link->next) {
        const weft_job *job = WEFT_CONTAINER(link, weft_job, link);
        if (job->type == WEFT_JOB_DELIVERY && ((const weft_delivery *) (const void *) job)->upto > last)
            last = ((const weft_delivery *) (const void *) job)->upto;
    }
    if (last > store->marked) {
        (void) weft__sq_mark_write(store->mark, store->epoch, last);
        store->marked = last;
    }
}

void weft__store_mark_close(weft_store *store) {
    if (store->mark < 0)
        return;
    (void) fdatasync(store->mark);
    close(store->mark);
    store->mark = -1;
}

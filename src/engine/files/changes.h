/* Changes of files on their way to whoever wants to know: no faster than some hundreds a second, and when there are too many
 * at once, their number instead. A checkout of another branch is one thing that happened, not ten thousand. */
#ifndef WEFT_CHANGES_H
#define WEFT_CHANGES_H

#include "list.h"
#include "loop.h"

#define WEFT_CHANGES_RATE 300    /* a second, and at once */
#define WEFT_CHANGES_MAX 1000    /* waiting; more are a burst */
#define WEFT_CHANGES_CALM_MS 500 /* without a change: a burst is over */

typedef enum weft_change_kind { WEFT_FILE_CREATE, WEFT_FILE_MODIFY, WEFT_FILE_DELETE } weft_change_kind;

typedef struct weft_change {
    weft_change_kind kind;
    uint64_t size; /* not of one that was deleted */
    const char *path;
} weft_change;

typedef struct weft_changes {
    weft_loop *loop;
    const weft_alloc *alloc;
    void (*on_change)(void *ctx, const weft_change *change);
    void (*on_burst)(void *ctx, uint64_t count); /* that many paths have changed and are not told one by one */
    void *ctx;
    weft_link waiting;
    size_t count;
    uint64_t burst; /* so many until now; 0: there is none */
    int64_t tokens, filled_at;
    weft_timer timer;
} weft_changes;

/* The callbacks, which run from the loop, and loop, alloc and ctx are set by the caller before. */
void weft__changes_init(weft_changes *changes);
/* Forget what waits. */
void weft__changes_done(weft_changes *changes);
void weft__changes_put(weft_changes *changes, const weft_change *change);

#endif

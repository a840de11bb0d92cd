/* The guards of this process, and what is left of those that were killed. A daemon calls weft__guards_adopt(): it becomes a
 * subreaper, so that whatever loses its guard becomes its child, and can be found and ended here.
 *
 * State of the whole process, as being somebody's parent is. Used from the thread of the loop only, but for helpers. */
#ifndef WEFT_GUARDS_H
#define WEFT_GUARDS_H

#include <sys/types.h>

#include "loop.h"

/* From now on: inherit what loses its guard, hear at once of a guard that is stopped, and give every program the mark, an
 * environment variable NAME=VALUE. Processes that bear the mark already are left over from an earlier daemon whose guards
 * were killed with it: they are killed. mark is copied. The number that were killed, or a negative errno. */
int weft__guards_adopt(const char *mark);
/* NAME=VALUE; NULL: this process has adopted nothing. */
const char *weft__guards_mark(void);

/* A guard lives. Embedded in its owner. */
typedef struct weft_guard_entry {
    weft_link link;
    pid_t pid;
    int stops;
} weft_guard_entry;

void weft__guards_add(weft_loop *loop, weft_guard_entry *entry, pid_t pid);
/* It was collected. */
void weft__guards_remove(weft_guard_entry *entry);
/* It has lost us, and is about to go: it is collected when it has. */
void weft__guards_leave(weft_guard_entry *entry);
/* Collect those that have gone. */
void weft__guards_collect(void);

/* A helper is a program of ours without a guard, because we wait for it and it ends by itself: git. It is our child as an
 * orphan is, and must not be taken for one. start() starts it; nothing is killed meanwhile. From any thread. -EAGAIN: there
 * are too many, or what start() says. */
int weft__guards_start_helper(int (*start)(void *ctx, pid_t *ret), void *ctx, pid_t *ret);
/* It was collected. From any thread. */
void weft__guards_helper_gone(pid_t pid);

/* Kill what has lost its guard. The number that were left before it; 0: none, or this process has adopted nothing. Call
 * again until then. */
int weft__guards_kill_orphans(void);
/* The daemon ends: wait until nothing is left of guards and of what they guarded, but not longer than this. */
void weft__guards_finish(int64_t within_ms);

#endif

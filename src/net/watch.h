/* A descriptor that is not a connection, watched by the loop: a store's eventfd, an inotify queue, a pipe of a child. */
#ifndef WEFT_WATCH_H
#define WEFT_WATCH_H

#include "loop.h"

enum { WEFT_WATCH_READ = 1 << 0, WEFT_WATCH_WRITE = 1 << 1 };

typedef struct weft_watch weft_watch;
/* what: the ready ones of WEFT_WATCH_READ and _WRITE; an error or a hang-up shows as all that were asked for. */
typedef void weft_on_ready(void *ctx, unsigned what);

/* Watch a descriptor, which stays the caller's, for nothing yet. A descriptor that epoll cannot watch (a file): -EPERM. */
int weft__watch_new(weft_loop *loop, int fd, weft_on_ready *on_ready, void *ctx, weft_watch **ret);
/* Watch for these from now on; 0 for none. A watch for something keeps the loop alive, unless it is quiet. */
int weft__watch_set(weft_watch *watch, unsigned what);
/* Do not keep the loop alive. */
void weft__watch_quiet(weft_watch *watch);
/* No callback runs afterwards; also from its own. The descriptor may be closed at once. Returns NULL. */
weft_watch *weft__watch_free(weft_watch *watch);

#endif

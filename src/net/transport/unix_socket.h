/* A listening Unix socket in the file system: private from the first instant, never in the way of a living one, and cleaned
 * up only if it is still ours. */
#ifndef WEFT_UNIX_SOCKET_H
#define WEFT_UNIX_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

#include "alloc.h"

/* Bursts of short connections are what the command line makes of a daemon; the kernel cuts it to somaxconn. */
#define WEFT_BACKLOG 511

typedef struct weft_unix_socket {
    char *path; /* NULL: none */
    dev_t dev;
    ino_t ino;
} weft_unix_socket;

/* A socket that is connected to this path, of any length; non-blocking. -EAGAIN: the backlog of who listens there is full.
 */
int weft__unix_dial(const char *path, int *ret_fd);

/* Has the process that connected ended? Its number may be another's then. false also where the kernel cannot say (before
 * Linux 6.5). */
bool weft__unix_peer_gone(int fd);

/* Bind and listen, mode 0600; a socket whose owner has died is replaced. The listening descriptor is in *ret_fd,
 * non-blocking. -EADDRINUSE: somebody answers there. -ENOENT: the folder does not exist. -ENOTSOCK: there is a file that is
 * no socket. */
int weft__unix_listen(weft_unix_socket *self, const char *path, const weft_alloc *alloc, int *ret_fd);
/* Remove it, if it is still the one we made. */
void weft__unix_unlink(weft_unix_socket *self, const weft_alloc *alloc);

#endif

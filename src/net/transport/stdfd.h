/* Our own stdin and stdout as something a loop can wait for, whatever they are: pipes, terminals, sockets, files, /dev/null.
 *
 * The descriptors handed out are not 0 and 1 themselves. Where the kernel allows it they are reopened, so that making them
 * non-blocking does not change what the shell, or another process at the same terminal, sees; where it does not (sockets),
 * the old flags come back at the end. What epoll cannot watch (files) is carried by a thread. */
#ifndef WEFT_STDFD_H
#define WEFT_STDFD_H

#include <uv.h>

#include <weft/base.h>

/* One direction. */
typedef struct weft_stdio_end {
    int original; /* 0 or 1 */
    int fd;       /* pollable, non-blocking, close-on-exec; -1 once taken */
    int flags;    /* of the original, to be put back; -1: they were not changed */
    int carried;  /* the thread's end of a socket pair; -1: no thread */
    bool writes;
    uv_thread_t thread;
} weft_stdio_end;

typedef struct weft_stdio {
    weft_stdio_end in, out;
} weft_stdio;

/* Open both; in is usually 0 and out 1. On success io->in.fd and io->out.fd belong to the caller, who hands them to libuv
 * and calls weft__stdio_done() after both were closed. io must not move in between. */
int weft__stdio_open(weft_stdio *io, int in, int out);
/* Put the flags back and wait until what was written has reached a file. */
void weft__stdio_done(weft_stdio *io);

#endif

/* mem:NAME, endpoints inside one loop: a server that its own program calls, a test without a port or a file.
 *
 * A connection is a socket pair, so that everything above, down to the system calls, is what every other transport runs:
 * limits, back-pressure and half-closing are the real ones. */
#ifndef WEFT_MEM_H
#define WEFT_MEM_H

#include "loop.h"

/* An endpoint waiting for connections; embedded in its owner. */
typedef struct weft_mem {
    weft_link link;
    const char *name; /* borrowed */
    /* Somebody connects: fd is taken (connected, non-blocking, close-on-exec). Runs inside weft__mem_connect(), so it must
     * not call back to the one who connects. */
    void (*on_connect)(struct weft_mem *mem, int fd);
} weft_mem;

/* -EADDRINUSE: the name is taken on this loop. */
int weft__mem_listen(weft_loop *loop, weft_mem *mem, const char *name);
/* Harmless when it does not listen, if it was zeroed. */
void weft__mem_close(weft_mem *mem);
/* The client's end, as above; owned. -ECONNREFUSED: nobody listens under this name. */
int weft__mem_connect(weft_loop *loop, const char *name, int *ret_fd);

#endif

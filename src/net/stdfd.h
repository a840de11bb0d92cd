/* Our own stdin and stdout as descriptors that may be made non-blocking and closed, whatever they are: pipes, terminals,
 * sockets, files, /dev/null.
 *
 * What is handed out is not 0 and 1 themselves. Where the kernel allows it they are reopened, so that the shell, or another
 * process at the same terminal, does not see them change; where it does not (sockets, files), the old flags come back at the
 * end. */
#ifndef WEFT_STDFD_H
#define WEFT_STDFD_H

/* One direction. */
typedef struct weft_stdio_end {
    int original; /* usually 0 or 1 */
    int fd;       /* close-on-exec; the caller's */
    int flags;    /* of the original, to be put back; -1: it is not affected */
} weft_stdio_end;

typedef struct weft_stdio {
    weft_stdio_end in, out;
} weft_stdio;

/* On success in.fd and out.fd belong to the caller, who calls weft__stdio_done() after closing them. */
int weft__stdio_open(weft_stdio *io, int in, int out);
void weft__stdio_done(weft_stdio *io);

#endif

/* stdin and stdout for a loop: a description of our own through /proc (pipes, terminals), else a duplicate whose flags are put
 * back later (sockets, files). Reads and writes nothing. */
#include "stdfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int reopen(int original, int mode) {
    char path[64];
    struct stat st;
    if (fstat(original, &st) < 0)
        return -errno;
    /* A file reopened would start at its beginning again. */
    if (!S_ISFIFO(st.st_mode) && !isatty(original))
        return -ENOTSUP;
    snprintf(path, sizeof path, "/proc/self/fd/%d", original);
    int fd = open(path, mode | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

static int open_end(weft_stdio_end *end, int original, int mode) {
    *end = (weft_stdio_end){.original = original, .flags = -1};
    end->fd = reopen(original, mode);
    if (end->fd >= 0)
        return 0;
    end->flags = fcntl(original, F_GETFL);
    end->fd = fcntl(original, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return end->fd < 0 ? -errno : 0;
}

static void close_end(const weft_stdio_end *end) {
    if (end->flags >= 0)
        (void) fcntl(end->original, F_SETFL, end->flags);
}

int weft__stdio_open(weft_stdio *io, int in, int out) {
    int r = open_end(&io->in, in, O_RDONLY);
    if (r < 0)
        return r;
    r = open_end(&io->out, out, O_WRONLY);
    if (r < 0)
        close(io->in.fd);
    return r;
}

void weft__stdio_done(weft_stdio *io) {
    close_end(&io->in);
    close_end(&io->out);
}

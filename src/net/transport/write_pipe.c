/* Writing to a pipe without SIGPIPE. */
#include "write_pipe.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* A pipe knows no MSG_NOSIGNAL. Hold SIGPIPE back, and take away the one we caused, but none that was there before. */
ssize_t weft__write_pipe(int fd, const char *data, size_t len) {
    sigset_t pipe_only, before, pending;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    ssize_t n = write(fd, data, len);
    int error = errno;
    if (n < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe_only, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return n;
}

/* stdin and stdout for a loop. Tries, in this order: a description of our own through /proc (pipes, terminals), the given
 * one with its flags put back later (sockets), a thread in between (files and devices, which epoll refuses). */
#include "stdfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the thread carries at a time: a pipe's usual capacity. */
#define CARRY (64 * 1024)

static bool can_wait_for(int fd) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    bool can = epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
    if (epoll >= 0)
        close(epoll);
    return can;
}

/* ---- the thread, for files ---- */

static void carry_in(void *arg) {
    const weft_stdio_end *end = arg;
    char bytes[CARRY];
    ssize_t n;
    while ((n = read(end->original, bytes, sizeof bytes)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        /* MSG_NOSIGNAL: the loop's side may be closed already. */
        for (ssize_t done = 0, m; n > 0 && done < n; done += m)
            if ((m = send(end->carried, bytes + done, (size_t) (n - done), MSG_NOSIGNAL)) < 0)
                n = -1;
        if (n < 0)
            break;
    }
    shutdown(end->carried, SHUT_RDWR);
}

static void copy_to_original(void *arg) {
    const weft_stdio_end *end = arg;
    char bytes[CARRY];
    ssize_t n;
    while ((n = read(end->carried, bytes, sizeof bytes)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        for (ssize_t done = 0, m; n > 0 && done < n; done += m)
            if ((m = write(end->original, bytes + done, (size_t) (n - done))) < 0)
                n = -1;
        if (n < 0)
            break;
    }
    shutdown(end->carried, SHUT_RDWR);
}

static int carry_by_thread(weft_stdio_end *end) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    fcntl(pair[0], F_SETFL, fcntl(pair[0], F_GETFL) | O_NONBLOCK);
    end->carried = pair[1];
    int r = uv_thread_create(&end->thread, end->writes ? copy_to_original : carry_in, end);
    if (r < 0) {
        close(pair[0]);
        close(pair[1]);
        end->carried = -1;
        return r;
    }
    end->fd = pair[0];
    return 0;
}

/* ---- one direction ---- */

/* A description of our own for the same pipe or terminal. */
static int reopen_description(const weft_stdio_end *end) {
    char path[64];
    struct stat st;
    if (fstat(end->original, &st) < 0)
        return -errno;
    if (!S_ISFIFO(st.st_mode) && !(S_ISCHR(st.st_mode) && isatty(end->original)))
        return -ENOTSUP;
    snprintf(path, sizeof path, "/proc/self/fd/%d", end->original);
    int fd = open(path, (end->writes ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

static int borrow_description(weft_stdio_end *end) {
    int fd = fcntl(end->original, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return -errno;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && !(flags & O_NONBLOCK)) {
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
        end->flags = flags;
    }
    end->fd = fd;
    return 0;
}

static int open_end(weft_stdio_end *end, int original, bool writes) {
    *end = (weft_stdio_end){.original = original, .fd = -1, .flags = -1, .carried = -1, .writes = writes};
    if (fcntl(original, F_GETFD) < 0)
        return -errno;
    end->fd = reopen_description(end);
    if (end->fd >= 0)
        return 0;
    return can_wait_for(original) ? borrow_description(end) : carry_by_thread(end);
}

static void close_end(weft_stdio_end *end) {
    if (end->flags >= 0)
        fcntl(end->original, F_SETFL, end->flags);
    if (end->carried < 0)
        return;
    /* The loop's side is closed, so the thread is at its end of file, or about to fail with EPIPE. */
    uv_thread_join(&end->thread);
    close(end->carried);
    end->carried = -1;
}

int weft__stdio_open(weft_stdio *io, int in, int out) {
    int r = open_end(&io->in, in, false);
    if (r < 0)
        return r;
    r = open_end(&io->out, out, true);
    if (r < 0) {
        close(io->in.fd);
        close_end(&io->in);
    }
    return r;
}

void weft__stdio_done(weft_stdio *io) {
    close_end(&io->in);
    close_end(&io->out);
}

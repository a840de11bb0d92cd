/* Listening Unix sockets. Two programs that start at once must end with one of them serving, and nobody may unlink a socket
 * that somebody is answering on: looking and binding happen under a lock on PATH.lock. */
#include "unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define LOCK_SUFFIX ".lock"
/* SO_PEERPIDFD is newer than some headers. */
#define PEER_PIDFD 77
#define SOCKET_FLAGS (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)

static int open_socket_folder(const char *path, const char *last) {
    char folder[4096];
    size_t len = (size_t) (last - path);
    if (len >= sizeof folder)
        return -ENAMETOOLONG;
    memcpy(folder, path, len);
    folder[len] = '\0';
    int fd = open(len ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* The address of a path of any length: one that does not fit goes through the descriptor of its folder, *ret_dir, which must
 * stay open until bind or connect is done (-1: it was not needed). -ENAMETOOLONG: even the last part does not fit. */
static int find_address(const char *path, struct sockaddr_un *ret, socklen_t *ret_len, int *ret_dir) {
    int dir = -1;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) < sizeof ret->sun_path)
        memcpy(ret->sun_path, path, strlen(path) + 1);
    else {
        const char *slash = strrchr(path, '/');
        const char *last = slash ? slash + 1 : path;
        if (strlen(last) > sizeof ret->sun_path - sizeof "/proc/self/fd/2147483647/")
            return -ENAMETOOLONG;
        dir = open_socket_folder(path, last);
        if (dir < 0)
            return dir;
        snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", dir, last);
    }
    *ret_len = sizeof *ret;
    *ret_dir = dir;
    return 0;
}

int weft__unix_dial(const char *path, int *ret_fd) {
    struct sockaddr_un address;
    socklen_t len;
    int dir;
    int r = find_address(path, &address, &len, &dir);
    if (r < 0)
        return r;
    int fd = socket(AF_UNIX, SOCKET_FLAGS, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *) &address, len) < 0)
        r = -errno;
    if (dir >= 0)
        close(dir);
    if (r < 0 && fd >= 0)
        close(fd);
    else if (r >= 0)
        *ret_fd = fd;
    return r;
}

bool weft__unix_peer_gone(int fd) {
    int process = -1;
    socklen_t len = sizeof process;
    if (getsockopt(fd, SOL_SOCKET, PEER_PIDFD, &process, &len) < 0)
        return errno == ESRCH || errno == EINVAL; /* it was collected already */
    bool gone = syscall(SYS_pidfd_send_signal, process, 0, NULL, 0) < 0 && errno == ESRCH;
    close(process);
    return gone;
}

/* 0 nobody is there, -EADDRINUSE somebody answers. A full backlog (EAGAIN) belongs to somebody alive, and so does anything
 * else that is not a clear refusal. */
static int look_for_owner(const struct sockaddr_un *address, socklen_t len) {
    int fd = socket(AF_UNIX, SOCKET_FLAGS, 0);
    if (fd < 0)
        return -errno;
    int r = connect(fd, (const struct sockaddr *) address, len) < 0 ? -errno : -EADDRINUSE;
    close(fd);
    if (r == -ECONNREFUSED || r == -ENOENT)
        return 0;
    return r == -EACCES || r == -ENOMEM ? r : -EADDRINUSE;
}

/* A file that is no socket is somebody's data, not a leftover of ours. */
static int remove_stale(const struct sockaddr_un *address) {
    struct stat info;
    if (lstat(address->sun_path, &info) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISSOCK(info.st_mode))
        return -ENOTSOCK;
    return unlink(address->sun_path) < 0 && errno != ENOENT ? -errno : 0;
}

/* The mode given to an unbound socket's descriptor is the mode its file is born with, so there is no instant at which others
 * could connect, and no umask to change for the whole process. */
static int bind_private(int fd, const struct sockaddr_un *address, socklen_t len) {
    if (fchmod(fd, 0600) < 0)
        return -errno;
    if (bind(fd, (const struct sockaddr *) address, len) < 0)
        return -errno;
    return listen(fd, WEFT_BACKLOG) < 0 ? -errno : 0;
}

static int listen_at_socket(const struct sockaddr_un *address, socklen_t len, struct stat *ret_info, int *ret_fd) {
    int r = look_for_owner(address, len);
    if (r >= 0)
        r = remove_stale(address);
    if (r < 0)
        return r;
    int fd = socket(AF_UNIX, SOCKET_FLAGS, 0);
    if (fd < 0)
        return -errno;
    r = bind_private(fd, address, len);
    if (r >= 0 && lstat(address->sun_path, ret_info) < 0)
        r = -errno;
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

/* What lies there may have come with a clone or an archive: a pipe that would let us wait, or a second name of another file.
 */
static int open_lock(const char *path) {
    struct stat info;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return -errno;
    int r = fstat(fd, &info) < 0 ? -errno : !S_ISREG(info.st_mode) || info.st_nlink > 1 ? -ENOTSOCK : 0;
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

/* Another may be looking at the same socket right now; it will not take long. The lock file stays: removing it would let a
 * third lock a file that a second is still waiting for. */
static int lock_socket(const struct sockaddr_un *address) {
    char path[sizeof address->sun_path + sizeof LOCK_SUFFIX];
    snprintf(path, sizeof path, "%s" LOCK_SUFFIX, address->sun_path);
    int fd = open_lock(path);
    if (fd < 0)
        return fd;
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR) {
            int r = -errno;
            close(fd);
            return r;
        }
    return fd;
}

static int listen_locked(const char *path, struct stat *ret_info, int *ret_fd) {
    struct sockaddr_un address;
    socklen_t len;
    int dir;
    int r = find_address(path, &address, &len, &dir);
    if (r < 0)
        return r;
    int held = lock_socket(&address);
    r = held < 0 ? held : listen_at_socket(&address, len, ret_info, ret_fd);
    if (held >= 0)
        close(held);
    if (dir >= 0)
        close(dir);
    return r;
}

int weft__unix_listen(weft_unix_socket *self, const char *path, const weft_alloc *alloc, int *ret_fd) {
    struct stat info;
    char *copy = weft__strndup(alloc, path, strlen(path));
    if (!copy)
        return -ENOMEM;
    int r = listen_locked(path, &info, ret_fd);
    if (r < 0) {
        weft__free(alloc, copy);
        return r;
    }
    *self = (weft_unix_socket){.path = copy, .dev = info.st_dev, .ino = info.st_ino};
    return 0;
}

/* Under the lock: between looking and unlinking, another could have put its own socket there. */
static void unlink_ours(const weft_unix_socket *self) {
    struct sockaddr_un address;
    socklen_t len;
    struct stat info;
    int dir;
    if (find_address(self->path, &address, &len, &dir) < 0)
        return;
    int held = lock_socket(&address);
    if (lstat(address.sun_path, &info) == 0 && info.st_dev == self->dev && info.st_ino == self->ino)
        unlink(address.sun_path);
    if (held >= 0)
        close(held);
    if (dir >= 0)
        close(dir);
}

void weft__unix_unlink(weft_unix_socket *self, const weft_alloc *alloc) {
    if (!self->path)
        return;
    unlink_ours(self);
    self->path = weft__free(alloc, self->path);
}

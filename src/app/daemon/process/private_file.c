/* Walking to a file without following a link, and looking at what was opened before it is used. */
#include "private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/base.h>

#include "read_all.h"

#define FOLDER_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A link opened with O_DIRECTORY | O_NOFOLLOW gives ENOTDIR, which says too little. */
static int open_private_folder(int at, const char *name) {
    struct stat info;
    int fd = openat(at, name, FOLDER_FLAGS);
    if (fd >= 0)
        return fd;
    int r = -errno;
    return r == -ENOTDIR && fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode) ? -ELOOP : r;
}

/* Where the part of an absolute path begins that is not the user's own way to the project: its last folder. */
static char *last_folder(char *path) {
    char *slash = strrchr(path, '/');
    while (slash > path && slash[-1] != '/')
        slash--;
    return slash;
}

/* The folder of the file; *ret_name is the file's name in it. path is changed. */
static int walk_to_folder(char *path, const char **ret_name) {
    int at = AT_FDCWD;
    if (*path == '/') {
        char *rest = last_folder(path), first = *rest;
        *rest = '\0';
        at = open(*path ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        *rest = first;
        path = rest;
        if (at < 0)
            return -errno;
    }
    for (char *slash; (slash = strchr(path, '/')); path = slash + 1) {
        *slash = '\0';
        int next = *path ? open_private_folder(at, path) : at;
        if (at != AT_FDCWD && next != at)
            close(at);
        if (next < 0 && next != AT_FDCWD)
            return next;
        at = next;
    }
    *ret_name = path;
    return at;
}

static int check_opened(int fd, bool writes) {
    struct stat info;
    if (fstat(fd, &info) < 0)
        return -errno;
    if (!S_ISREG(info.st_mode))
        return -EISDIR;
    if (info.st_uid != geteuid())
        return -EPERM;
    if (info.st_nlink > 1)
        return -EMLINK;
    return writes && (info.st_mode & 077) && fchmod(fd, 0600) < 0 ? -errno : 0;
}

/* ENXIO is what a pipe or a socket says to somebody who wants to write, and EISDIR what a folder says. */
static int open_private(int folder, const char *name, int flags) {
    bool writes = (flags & O_ACCMODE) != O_RDONLY;
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno == ENXIO ? -EISDIR : -errno;
    int r = check_opened(fd, writes);
    if (r >= 0)
        return fd;
    close(fd);
    return r;
}

int weft__private_open(const char *path, int flags) {
    char copy[PATH_MAX];
    const char *name = NULL;
    if (strlen(path) >= sizeof copy)
        return -ENAMETOOLONG;
    memcpy(copy, path, strlen(path) + 1);
    int folder = walk_to_folder(copy, &name);
    if (folder < 0 && folder != AT_FDCWD)
        return folder;
    int fd = open_private(folder, name, flags);
    if (folder != AT_FDCWD)
        close(folder);
    return fd;
}

int weft__private_read(const char *path, char *ret, size_t size) {
    size_t len = 0;
    int fd = weft__private_open(path, O_RDONLY);
    if (fd < 0)
        return fd;
    int r = weft__read_all(fd, ret, size, &len);
    close(fd);
    if (r < 0 || len == size)
        return r < 0 ? r : -EFBIG;
    ret[len] = '\0';
    return (int) len;
}

int weft__private_write(int fd, const char *text, size_t len) {
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            text += n;
            len -= (size_t) n;
        }
    }
    return 0;
}

int weft__private_write_synced(int fd, const char *text, size_t len) {
    int r = weft__private_write(fd, text, len);
    return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

/* What was taken back stays so, also when the power goes. */
static int sync_folder_of(const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int) (slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

int weft__private_replace(const char *path, const char *text, size_t len) {
    char beside[PATH_MAX + 8];
    snprintf(beside, sizeof beside, "%s.new", path);
    unlink(beside); /* of one that was killed between the two steps */
    int fd = weft__private_open(beside, O_WRONLY | O_CREAT | O_EXCL);
    int r = fd < 0 ? fd : weft__private_write_synced(fd, text, len);
    if (fd >= 0)
        close(fd);
    if (r >= 0 && rename(beside, path) < 0)
        r = -errno;
    return r < 0 ? r : sync_folder_of(path);
}

const char *weft__private_why(int r) {
    switch (r) {
    case -ELOOP:
        return "it is a link, or its folder is one, and links are not followed there";
    case -EISDIR:
        return "this is not a regular file";
    case -EPERM:
        return "it belongs to another user";
    case -EMLINK:
        return "the file has a second name (a hard link), so it may be somebody else's";
    default:
        return weft_strerror(r);
    }
}

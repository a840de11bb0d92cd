/* Finding a folder beneath another, see beneath.h. The kernel does it where it can (openat2); where that is refused, each
 * part is opened without following links, which then finds less, but never something outside. */
#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOW (O_PATH | O_DIRECTORY | O_CLOEXEC)

/* An absolute path is one beneath root only if it is written so. */
static const char *relative(const char *root, const char *path) {
    size_t len = strlen(root);
    while (len > 1 && root[len - 1] == '/')
        len--;
    if (*path != '/')
        return path;
    if (strncmp(path, root, len) != 0 || (path[len] != '/' && path[len] != '\0' && len > 1))
        return NULL;
    path += len;
    while (*path == '/')
        path++;
    return path;
}

static int open_by_kernel(int root, const char *path, bool links) {
    struct open_how how = {.flags = HOW,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (links ? 0 : RESOLVE_NO_SYMLINKS)};
    int fd = (int) syscall(SYS_openat2, root, path, &how, sizeof how);
    return fd < 0 ? -errno : fd;
}

static int open_by_parts(int root, const char *path) {
    char part[NAME_MAX + 1];
    int fd = fcntl(root, F_DUPFD_CLOEXEC, 0);
    while (fd >= 0 && *path) {
        size_t len = strcspn(path, "/");
        if (len > NAME_MAX || (len == 2 && memcmp(path, "..", 2) == 0)) {
            close(fd);
            return len > NAME_MAX ? -ENAMETOOLONG : -EXDEV;
        }
        snprintf(part, sizeof part, "%.*s", (int) len, path);
        int next = openat(fd, len ? part : ".", HOW | O_NOFOLLOW);
        int r = next < 0 ? -errno : 0;
        close(fd);
        if (r < 0)
            return r;
        fd = next;
        path += len + (path[len] == '/');
    }
    return fd < 0 ? -errno : fd;
}

static int name_of(int fd, char ret[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, ret, PATH_MAX - 1);
    if (n < 0)
        return -errno;
    ret[n] = '\0';
    return n == PATH_MAX - 1 ? -ENAMETOOLONG : 0;
}

/* What both are called now, without links. */
static int compare(int root, int fd, char ret[WEFT_BENEATH_PATH]) {
    char above[PATH_MAX], below[PATH_MAX];
    int r = name_of(root, above);
    if (r >= 0)
        r = name_of(fd, below);
    const char *found = r < 0 ? NULL : relative(above, below);
    if (r < 0 || !found)
        return r < 0 ? r : -EXDEV;
    if (strlen(found) >= WEFT_BENEATH_PATH)
        return -ENAMETOOLONG;
    memcpy(ret, found, strlen(found) + 1);
    return 0;
}

int weft__beneath(const char *root, const char *path, bool links, char ret[WEFT_BENEATH_PATH]) {
    const char *below = relative(root, path);
    if (!below)
        return -EXDEV;
    int top = open(root, HOW);
    if (top < 0)
        return -errno;
    int fd = open_by_kernel(top, *below ? below : ".", links);
    if (fd == -ENOSYS || fd == -EPERM)
        fd = open_by_parts(top, below);
    int r = fd < 0 ? fd : compare(top, fd, ret);
    if (fd >= 0)
        close(fd);
    close(top);
    return r;
}

/* Removing a folder with all that is in it, whatever an agent has left there: folders that may not be written, and folders
 * in folders until their path is longer than a path may be. No link is followed, and no path is made. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshots_private.h"

#define DEPTH 64 /* folders that are open at once; what lies deeper is brought up first */

typedef struct removing {
    int top;
    unsigned lifted; /* folders that were brought up into top */
} removing;

/* Caches of packages have folders that their owner may not write. */
static int open_to_empty(int in, const char *name) {
    struct stat st;
    int fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == EACCES && fstatat(in, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
        fchmodat(in, name, 0700, 0) == 0)
        fd = openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
        (void) !fchmod(fd, (st.st_mode & 07777) | 0700);
    return fd;
}

static int empty_folder(removing *r, int folder, int depth);

static int remove_name(removing *r, int folder, const char *name, int depth) {
    char as[32];
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -errno;
    if (depth == DEPTH) {
        snprintf(as, sizeof as, "weft-lifted-%u", r->lifted++);
        return renameat(folder, name, r->top, as) < 0 ? -errno : 0;
    }
    int inner = open_to_empty(folder, name);
    if (inner < 0)
        return inner;
    int e = empty_folder(r, inner, depth + 1);
    return e < 0 ? e : unlinkat(folder, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* The folder is taken. */
static int empty_folder(removing *r, int folder, int depth) {
    DIR *dir = fdopendir(folder);
    int e = 0;
    if (!dir) {
        close(folder);
        return -ENOMEM;
    }
    bool more = true; /* what was brought up may be in this folder */
    while (e == 0 && more) {
        unsigned had = r->lifted;
        for (struct dirent *entry; e == 0 && (entry = readdir(dir));)
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                e = remove_name(r, dirfd(dir), entry->d_name, depth);
        more = depth == 0 && r->lifted != had;
        rewinddir(dir);
    }
    closedir(dir);
    return e;
}

int weft__snap_remove_tree(const char *path) {
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    removing r = {.top = open_to_empty(AT_FDCWD, path)};
    if (r.top < 0)
        return r.top;
    int folder = openat(r.top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int e = folder < 0 ? -errno : empty_folder(&r, folder, 0);
    close(r.top);
    return e < 0 ? e : rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

bool weft__snap_remove_whole(snap *s, const char *path) {
    int r = weft__snap_remove_tree(path);
    return r == 0 || weft__snap_refuse(s, -EIO, "%s cannot be removed: %s", path, weft_strerror(r));
}

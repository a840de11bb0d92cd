/* Writing a file as a whole: another file beside it takes its name when it is complete and on the disk. Whoever reads
 * meanwhile has the old content or the new. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "files.h"

#define TRIES 16 /* at a name that nobody has */

/* What is there under the name. 1: a file we may replace, 0: nothing. */
static int look_at_old(int folder, const char *name, struct stat *ret) {
    if (fstatat(folder, name, ret, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(ret->st_mode))
        return S_ISLNK(ret->st_mode) ? -ELOOP : S_ISDIR(ret->st_mode) ? -EISDIR : -EINVAL;
    /* A rename would not ask. Who made it read-only meant it. */
    return faccessat(folder, name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0 ? -EACCES : 1;
}

static int make_beside(int folder, char name[32]) {
    for (int i = 0; i < TRIES; i++) {
        uint64_t number = 0;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return -EIO;
        snprintf(name, 32, ".weft-%016llx.tmp", (unsigned long long) number);
        int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? -errno : fd;
    }
    return -EEXIST;
}

static int write_content(int fd, weft_bytes content) {
    for (size_t done = 0; done < content.len;) {
        ssize_t n = write(fd, content.data + done, content.len - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t) n : 0;
    }
    return 0;
}

/* The group first: who gives a file away loses its special permissions. A group that we are not in stays ours. */
static int fill_new_file(int fd, const weft_file_write *write, const struct stat *old) {
    mode_t mode = old ? old->st_mode & 07777 : 0666 & ~write->umask;
    int r = write_content(fd, write->content);
    if (r == 0 && old)
        (void) !fchown(fd, old->st_uid == geteuid() ? (uid_t) -1 : old->st_uid, old->st_gid);
    if (r == 0 && fchmod(fd, mode) < 0)
        r = -errno;
    return r == 0 && fdatasync(fd) < 0 ? -errno : r;
}

static int replace_file(int folder, const char *name, const weft_file_write *write, bool *ret_created) {
    struct stat old;
    char beside[32];
    int there = look_at_old(folder, name, &old);
    if (there < 0)
        return there;
    int fd = make_beside(folder, beside);
    if (fd < 0)
        return fd;
    int r = fill_new_file(fd, write, there ? &old : NULL);
    close(fd);
    if (r == 0 && renameat(folder, beside, folder, name) < 0)
        r = -errno;
    if (r < 0)
        unlinkat(folder, beside, 0);
    else
        *ret_created = !there;
    return r;
}

/* The daemon's own umask is stricter than the user's, and belongs to all threads. */
static int make_folder(int parent, const char *name, mode_t umask) {
    if (mkdirat(parent, name, 0777 & ~umask) < 0)
        return -errno;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 || fchmod(fd, 0777 & ~umask) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

/* Each folder is made in its parent, which was opened beneath the root. */
static int make_folders(int root, char *path, unsigned how, mode_t umask) {
    for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        char name[NAME_MAX + 1];
        *slash = '\0';
        size_t len = strlen(path);
        bool plain = len && path[len - 1] != '/' && path[len - 1] != '.';
        int parent = plain ? weft__beneath_parent(root, path, how, name) : -EINVAL;
        int r = parent < 0 ? parent : make_folder(parent, name, umask);
        if (parent >= 0)
            close(parent);
        *slash = '/';
        if (r < 0 && r != -EEXIST && r != -EINVAL)
            return r;
    }
    return 0;
}

int weft__file_write(int root, const weft_file_write *write, unsigned how, bool *ret_created) {
    char path[PATH_MAX], name[NAME_MAX + 1];
    if (write->content.len > WEFT_FILE_WRITE_MAX)
        return -EFBIG;
    int r = weft__beneath_check(write->path, path);
    int folder = r < 0 ? r : weft__beneath_parent(root, path, how, name);
    if (folder == -ENOENT && write->folders) {
        r = make_folders(root, path, how, write->umask);
        folder = r < 0 ? r : weft__beneath_parent(root, path, how, name);
    }
    if (folder < 0)
        return folder;
    bool created = false;
    r = replace_file(folder, name, write, &created);
    close(folder);
    if (r == 0)
        *ret_created = created;
    return r;
}

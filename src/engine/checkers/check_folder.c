/* The folder of a check: made for it alone, with one file in it, and gone with everything in it afterwards. Nothing is
 * followed: what a checker leaves behind may be links. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check_private.h"

/* Folders in folders that a checker may leave behind: a cache has two or three. What is deeper stays until somebody looks.
 */
#define DEPTH 16

static bool is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Everything in the folder; the descriptor is taken. */
static void empty_folder(int fd, int depth) {
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (is_dots(entry->d_name) || unlinkat(dirfd(dir), entry->d_name, 0) == 0)
            continue;
        int below = depth ? openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (below >= 0)
            empty_folder(below, depth - 1);
        unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

int weft__check_folder_sweep(const char *folder) {
    struct stat st;
    if (mkdir(folder, 0700) < 0 && errno != EEXIST)
        return -errno;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fstat(fd, &st) < 0 ? -errno : st.st_uid != geteuid() ? -EPERM : 0;
    if (r == 0 && (st.st_mode & 077) && fchmod(fd, 0700) < 0)
        r = -errno;
    if (r < 0)
        close(fd);
    else
        empty_folder(fd, DEPTH);
    return r;
}

static int write_all(int fd, weft_bytes text) {
    for (size_t done = 0; done < text.len;) {
        ssize_t n = write(fd, text.data + done, text.len - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t) n : 0;
    }
    return 0;
}

static int write_copy(const char *folder, const char *file, weft_bytes code) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (n < 0 || (size_t) n >= sizeof path)
        return -ENAMETOOLONG;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, code);
    return close(fd) < 0 && r == 0 ? -errno : r;
}

int weft__check_folder_make(const char *folder, const char *file, weft_bytes code, char ret[PATH_MAX]) {
    int n = snprintf(ret, PATH_MAX, "%s/check-XXXXXX", folder);
    if (n < 0 || n >= PATH_MAX)
        return -ENAMETOOLONG;
    if (!mkdtemp(ret))
        return -errno;
    int r = write_copy(ret, file, code);
    if (r < 0)
        weft__check_folder_remove(ret);
    return r;
}

void weft__check_folder_remove(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        empty_folder(fd, DEPTH);
    rmdir(path);
}

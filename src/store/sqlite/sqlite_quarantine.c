/* What becomes of a damaged journal when it is to be set aside: everything is kept, under names that are free. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sqlite_store.h"

#define MAX_QUARANTINED 1000 /* damaged journals beside one another; by then somebody should have looked */
#define MARK_BYTES 4096      /* of a mark that are kept; a right one is much shorter */

/* The log first: a database without its log is noticed and moved next time, a log without its database would be thrown away
 * by SQLite. */
static const char *const moved[] = {"-wal", "-shm", ""};
static const char *const kept[] = {"-wal", "-shm", "", "-mark"};

static int join_suffix(char ret[4096], const char *path, const char *suffix) {
    return snprintf(ret, 4096, "%s%s", path, suffix) < 4096 ? 0 : -ENAMETOOLONG;
}

static int move_aside(const char *path, const char *suffix, const char *aside) {
    char from[4096], to[4096];
    if (join_suffix(from, path, suffix) < 0 || join_suffix(to, aside, suffix) < 0)
        return -ENAMETOOLONG;
    return rename(from, to) == 0 || errno == ENOENT ? 0 : -errno;
}

/* A copy, because the mark itself is the lock, and stays. */
static int copy_mark(int mark, const char *aside) {
    char to[4096], text[MARK_BYTES];
    if (join_suffix(to, aside, "-mark") < 0)
        return -ENAMETOOLONG;
    ssize_t n = pread(mark, text, sizeof text, 0);
    if (n <= 0)
        return n < 0 ? -errno : 0;
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = write(fd, text, (size_t) n) != n ? -EIO : fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return r;
}

static bool name_is_free(const char *aside) {
    char name[4096];
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (join_suffix(name, aside, kept[i]) < 0 || access(name, F_OK) == 0)
            return false;
    return true;
}

static int find_name(const char *path, char ret_aside[4096], int *ret_number) {
    for (int n = 1; n <= MAX_QUARANTINED; n++) {
        if (snprintf(ret_aside, 4096, "%s.damaged-%d", path, n) >= 4096)
            return -ENAMETOOLONG;
        if (name_is_free(ret_aside)) {
            *ret_number = n;
            return 0;
        }
    }
    return -EMFILE;
}

int weft__sq_quarantine(const char *path, int mark, char *ret_why) {
    char aside[4096], what[WEFT_STORE_WHY];
    int n = 0, r = find_name(path, aside, &n);
    if (r >= 0)
        r = copy_mark(mark, aside);
    for (size_t i = 0; r >= 0 && i < sizeof moved / sizeof moved[0]; i++)
        r = move_aside(path, moved[i], aside);
    /* Last: until then the mark shows that something is missing here. */
    if (r >= 0 && (ftruncate(mark, 0) < 0 || fdatasync(mark) < 0))
        r = -errno;
    if (r < 0)
        return r;
    memcpy(what, ret_why, sizeof what);
    snprintf(ret_why, WEFT_STORE_WHY, "%.400s; it was kept as *.damaged-%d and a new one begun", what, n);
    return 0;
}

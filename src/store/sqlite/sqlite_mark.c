/* The mark: the last acknowledged gseq, in a small file beside the database.
 *
 * A log that lost its end looks to SQLite like a log that ends there, and an old copy of a database looks like a database.
 * The mark is written after each commit and before anybody is told, so it is never ahead of what is durable; a database that
 * ends before it has lost something that was acknowledged. It is not synced with each commit: a crash of the machine can
 * leave an older mark, which proves less and never says anything wrong.
 *
 * The file is also the lock that keeps a second process out. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crc32.h"
#include "sqlite_store.h"

#define MAGIC "weft-mark"
#define LOCK_TRIES 50 /* for a second in all */
#define LOCK_MS 20
#define SIZE (sizeof MAGIC + WEFT_EPOCH + 1 + 20 + 1 + 8 + 1) /* "weft-mark EPOCH GSEQ CRC\n", always as long */

/* A daemon that was killed while it started a program has left a child that is no program yet, and holds what its parent
 * held. It is gone in a moment. */
static int lock_mark(int fd) {
    for (int tries = LOCK_TRIES; flock(fd, LOCK_EX | LOCK_NB) < 0; tries--) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -errno;
        if (tries == 0)
            return -EBUSY;
        (void) poll(NULL, 0, LOCK_MS);
    }
    return 0;
}

int weft__sq_mark_open(const char *path, int *ret_fd) {
    char name[4096];
    if (snprintf(name, sizeof name, "%s-mark", path) >= (int) sizeof name)
        return -ENAMETOOLONG;
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return -errno;
    int r = lock_mark(fd);
    if (r == 0 && fchmod(fd, 0600) < 0)
        r = -errno;
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

/* For each group, so without a format. */
static char *put_digits(char *at, uint64_t number, unsigned base, int count) {
    static const char digits[] = "0123456789abcdef";
    for (int i = count; i > 0; number /= base)
        at[--i] = digits[number % base];
    return at + count;
}

static void print_mark(char text[SIZE + 1], const char *epoch, uint64_t gseq) {
    char *at = text + sizeof MAGIC;
    memcpy(text, MAGIC " ", sizeof MAGIC);
    memcpy(at, epoch, WEFT_EPOCH);
    at[WEFT_EPOCH] = ' ';
    at = put_digits(at + WEFT_EPOCH + 1, gseq, 10, 20);
    *at++ = ' ';
    at = put_digits(at, weft__crc32(0, text, (size_t) (at - text)), 16, 8);
    memcpy(at, "\n", 2);
}

int weft__sq_mark_read(int fd, char ret_epoch[WEFT_EPOCH + 1], uint64_t *ret_gseq) {
    char text[SIZE + 1] = {0}, again[SIZE + 1], epoch[WEFT_EPOCH + 1] = {0};
    if (pread(fd, text, SIZE, 0) != (ssize_t) SIZE || memcmp(text, MAGIC " ", sizeof MAGIC) != 0)
        return 0;
    memcpy(epoch, text + sizeof MAGIC, WEFT_EPOCH);
    uint64_t gseq = strtoull(text + sizeof MAGIC + WEFT_EPOCH, NULL, 10);
    print_mark(again, epoch, gseq);
    if (memcmp(text, again, SIZE) != 0)
        return 0;
    memcpy(ret_epoch, epoch, sizeof epoch);
    *ret_gseq = gseq;
    return 1;
}

int weft__sq_mark_write(int fd, const char *epoch, uint64_t gseq) {
    char text[SIZE + 1];
    print_mark(text, epoch, gseq);
    ssize_t n = pwrite(fd, text, SIZE, 0);
    return n == (ssize_t) SIZE ? 0 : n < 0 ? -errno : -EIO;
}

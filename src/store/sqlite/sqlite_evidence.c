/* What the files prove before SQLite opens them.
 *
 * SQLite makes a database where there is none, takes one without pages for new, and deletes the log of an empty one. All of
 * that would turn a loss into a fresh start. So the files are looked at first, and the mark says what must be in them.
 * Nothing is changed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sqlite_store.h"

/* 0 also where there is no such file. */
static int size_of_file(const char *path, const char *suffix, off_t *ret) {
    char name[4096];
    struct stat info;
    if (snprintf(name, sizeof name, "%s%s", path, suffix) >= (int) sizeof name)
        return -ENAMETOOLONG;
    if (stat(name, &info) < 0) {
        if (errno != ENOENT)
            return -errno;
        info.st_size = 0;
    }
    *ret = info.st_size;
    return 0;
}

static int explain_loss(const weft_sq_proof *proof, const char *what, char *ret_why) {
    if (proof->known)
        snprintf(ret_why, WEFT_STORE_WHY,
                 "%s, although %llu events were stored in it. Put it back if it was moved, or a copy of it", what,
                 (unsigned long long) proof->gseq);
    else
        snprintf(ret_why, WEFT_STORE_WHY, "%s, although the files beside it say that events were stored in it", what);
    return -EUCLEAN;
}

static bool is_proof_of_events(const weft_sq_proof *proof) {
    return proof->unreadable || proof->gseq > 0;
}

static int examine_sizes(const char *path, weft_sq_proof *proof, char *ret_why) {
    off_t database = 0, log = 0;
    int r = size_of_file(path, "", &database);
    if (r >= 0)
        r = size_of_file(path, "-wal", &log);
    proof->log = log > 0;
    if (r < 0 || database > 0)
        return r;
    return is_proof_of_events(proof) || proof->log ? explain_loss(proof, "the database is missing or empty", ret_why) : 0;
}

/* Two bytes of the header say who may write. Other values than 1 and 2 make SQLite open it read-only, which would be told as
 * a fault of the disk. */
static int examine_header(const char *path, char *ret_why) {
    unsigned char header[20];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    ssize_t n = pread(fd, header, sizeof header, 0);
    close(fd);
    if (n < (ssize_t) sizeof header || memcmp(header, "SQLite format 3", 16) != 0)
        return 0; /* SQLite says it itself */
    if (header[18] - 1u <= 1 && header[19] - 1u <= 1)
        return 0;
    snprintf(ret_why, WEFT_STORE_WHY, "the journal is damaged: the header of the database is not as written");
    return -EUCLEAN;
}

int weft__sq_examine(const char *path, int mark, weft_sq_proof *ret, char *ret_why) {
    weft_sq_proof proof = {0};
    struct stat info;
    proof.known = weft__sq_mark_read(mark, proof.epoch, &proof.gseq) > 0;
    proof.unreadable = !proof.known && fstat(mark, &info) == 0 && info.st_size > 0;
    int r = examine_sizes(path, &proof, ret_why);
    if (r >= 0)
        r = examine_header(path, ret_why);
    /* With the mark it is known how far the log must reach; without it, only the log itself can tell. */
    if (r >= 0)
        r = weft__sq_log_check(path, !proof.known);
    if (r == -EUCLEAN && !*ret_why)
        snprintf(ret_why, WEFT_STORE_WHY, "the journal is damaged: its log (the file that ends in -wal) is not as written");
    if (r >= 0)
        *ret = proof;
    return r;
}

int weft__sq_examine_fresh(const weft_sq_proof *proof, char *ret_why) {
    return is_proof_of_events(proof) ? explain_loss(proof, "the database holds nothing", ret_why) : 0;
}

/* SQLite's log, read by ourselves before SQLite does.
 *
 * SQLite takes a log whose header is damaged for an empty one, and a damaged frame for the end of the log. It says nothing
 * in either case, and overwrites what it did not read. Here both are told apart from what a crash leaves behind. Nothing is
 * changed. The format: https://www.sqlite.org/fileformat2.html#walformat */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sqlite_store.h"

#define LOG_HEADER 32
#define FRAME_HEADER 24
#define MAX_PAGE 65536
#define MAGIC 0x377f0682u /* the lowest bit says that checksums are made of big-endian words */

struct log {
    int fd;
    bool big;
    uint32_t page;
    unsigned char header[LOG_HEADER];
};

static uint32_t big_word(const unsigned char *at) {
    return (uint32_t) at[0] << 24 | (uint32_t) at[1] << 16 | (uint32_t) at[2] << 8 | at[3];
}

static uint32_t little_word(const unsigned char *at) {
    return (uint32_t) at[3] << 24 | (uint32_t) at[2] << 16 | (uint32_t) at[1] << 8 | at[0];
}

static void add_to_checksum(const struct log *log, const unsigned char *data, size_t len, uint32_t sum[2]) {
    for (size_t i = 0; i + 8 <= len; i += 8) {
        sum[0] += (log->big ? big_word(data + i) : little_word(data + i)) + sum[1];
        sum[1] += (log->big ? big_word(data + i + 4) : little_word(data + i + 4)) + sum[0];
    }
}

static bool checksum_is(const uint32_t sum[2], const unsigned char *stored) {
    return sum[0] == big_word(stored) && sum[1] == big_word(stored + 4);
}

/* 1 it is right, 0 there is none, -EUCLEAN. The header is synced before the first frame is written, so a log with more than
 * a header has a right one, whatever crashed. */
static int read_log_header(struct log *log) {
    uint32_t sum[2] = {0};
    ssize_t n = pread(log->fd, log->header, LOG_HEADER, 0);
    if (n < 0)
        return -errno;
    if (n < LOG_HEADER || lseek(log->fd, 0, SEEK_END) <= LOG_HEADER)
        return 0;
    uint32_t magic = big_word(log->header);
    log->big = magic & 1;
    log->page = big_word(log->header + 8);
    add_to_checksum(log, log->header, 24, sum);
    bool right = (magic & ~1u) == MAGIC && log->page >= 512 && log->page <= MAX_PAGE && checksum_is(sum, log->header + 24);
    return right ? 1 : -EUCLEAN;
}

/* Each frame's checksum goes on from the one before it, so a frame shows by itself that it once followed its neighbour. A
 * crash can spoil the last transaction only, because a commit is synced before the next one begins. So a frame that is
 * whole, belongs to this log, and lies behind the commit that ends the spoilt transaction, shows that something was lost
 * which had been synced. */
static int walk_frames(const struct log *log) {
    unsigned char frame[FRAME_HEADER + MAX_PAGE];
    unsigned char before[8];
    size_t size = FRAME_HEADER + log->page;
    bool broken = false, committed = false;
    memcpy(before, log->header + 24, sizeof before);
    for (off_t at = LOG_HEADER; pread(log->fd, frame, size, at) == (ssize_t) size; at += (off_t) size) {
        uint32_t sum[2] = {big_word(before), big_word(before + 4)};
        add_to_checksum(log, frame, 8, sum);
        add_to_checksum(log, frame + FRAME_HEADER, log->page, sum);
        bool ours = memcmp(frame + 8, log->header + 16, 8) == 0;
        bool whole = ours && checksum_is(sum, frame + 16);
        if (broken && committed && whole)
            return -EUCLEAN;
        broken |= !whole;
        committed = broken && (committed || (ours && big_word(frame + 4) != 0));
        memcpy(before, frame + 16, sizeof before);
    }
    return 0;
}

int weft__sq_log_check(const char *path, bool frames) {
    char name[4096];
    if (snprintf(name, sizeof name, "%s-wal", path) >= (int) sizeof name)
        return -ENAMETOOLONG;
    struct log log = {.fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (log.fd < 0)
        return errno == ENOENT ? 0 : -errno;
    int r = read_log_header(&log);
    if (r > 0)
        r = frames ? walk_frames(&log) : 0;
    close(log.fd);
    return r;
}

/* One file, or some lines of it. It may grow, shrink or be replaced while it is read: what is given is what was read. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "files.h"
#include "utf8.h"

#define PIECE (64 * 1024)

/* O_NONBLOCK: opening a pipe does not wait for its other end. */
static int open_regular(int root, const char *path, unsigned how, struct stat *ret) {
    int fd = weft__beneath_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, how);
    if (fd < 0)
        return fd == -ENXIO ? -EINVAL : fd; /* a socket */
    int r = fstat(fd, ret) < 0 ? -errno : S_ISDIR(ret->st_mode) ? -EISDIR : S_ISREG(ret->st_mode) ? 0 : -EINVAL;
    if (r < 0)
        close(fd);
    return r < 0 ? r : fd;
}

/* What of the bytes belongs to the lines that were asked for. */
typedef struct lines {
    uint64_t skip, take; /* lines still to be left out, and still to be taken */
} lines;

static size_t skip_lines(lines *l, const char *data, size_t len) {
    size_t at = 0;
    while (l->skip && at < len) {
        const char *end = memchr(data + at, '\n', len - at);
        at = end ? (size_t) (end - data) + 1 : len;
        l->skip -= end != NULL;
    }
    return at;
}

static size_t take_lines(lines *l, const char *data, size_t len) {
    size_t at = 0;
    while (l->take && at < len) {
        const char *end = memchr(data + at, '\n', len - at);
        at = end ? (size_t) (end - data) + 1 : len;
        l->take -= end != NULL;
    }
    return at;
}

/* 1 there may be more to read, 0 that was all. */
static int read_piece(int fd, size_t room, lines *l, const weft_alloc *alloc, weft_file_content *ret) {
    weft_buf *buf = &ret->content;
    int r = weft__buf_reserve(buf, alloc, room < PIECE ? room : PIECE);
    if (r < 0)
        return r;
    char *to = weft__buf_tail(buf);
    ssize_t n = read(fd, to, room < PIECE ? room : PIECE);
    if (n < 0)
        return errno == EINTR ? 1 : -errno;
    size_t from = skip_lines(l, to, (size_t) n), len = take_lines(l, to + from, (size_t) n - from);
    memmove(to, to + from, len);
    buf->end += len;
    return n > 0 && l->take;
}

static bool is_text(const char *data, size_t len) {
    for (size_t i = 0; i < len;) {
        size_t n = (unsigned char) data[i] < 0x80 ? data[i] != '\0' : weft__utf8_len(data + i, len - i);
        if (!n)
            return false;
        i += n;
    }
    return true;
}

/* Of a text that was cut, the last character may be cut too. Up to three bytes are given up if the rest is a text. */
static void see_text(weft_file_content *content) {
    const char *data = weft__buf_head(&content->content);
    size_t len = weft__buf_len(&content->content), whole = len;
    content->text = is_text(data, len);
    for (int i = 0; !content->text && content->truncated && i < WEFT_UTF8_MAX - 1 && whole; i++) {
        whole--;
        content->text = is_text(data, whole);
    }
    if (content->text)
        content->content.end -= len - whole;
}

/* One byte more than was asked for is read, in order to know whether there is one. */
static int read_to_limit(int fd, size_t max, lines *l, const weft_alloc *alloc, weft_file_content *ret) {
    size_t scanned = 0;
    int r = 1;
    while (r > 0 && weft__buf_len(&ret->content) <= max && scanned < WEFT_FILE_SCAN) {
        bool skipping = l->skip;
        size_t room = max + 1 - weft__buf_len(&ret->content);
        r = read_piece(fd, skipping ? PIECE : room, l, alloc, ret);
        scanned += skipping ? PIECE : 0;
    }
    if (r < 0)
        return r;
    ret->truncated = r > 0 || weft__buf_len(&ret->content) > max;
    if (weft__buf_len(&ret->content) > max)
        ret->content.end = ret->content.start + max;
    return 0;
}

int weft__file_read(int root, const weft_file_read *read, unsigned how, const weft_alloc *alloc, weft_file_content *ret) {
    char path[PATH_MAX];
    struct stat st;
    lines l = {read->line ? read->line - 1 : 0, read->limit ? read->limit : UINT64_MAX};
    size_t max = read->max ? read->max : WEFT_FILE_READ;
    weft_file_content content = {0};
    int r = weft__beneath_check(read->path, path);
    int fd = r < 0 ? r : open_regular(root, path, how, &st);
    if (fd < 0)
        return fd;
    r = read_to_limit(fd, max < WEFT_FILE_READ_MAX ? max : WEFT_FILE_READ_MAX, &l, alloc, &content);
    close(fd);
    if (r < 0) {
        weft__file_content_done(&content, alloc);
        return r;
    }
    see_text(&content);
    content.size = (uint64_t) st.st_size;
    content.mtime_ms = (int64_t) st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    content.mode = st.st_mode & 07777;
    *ret = content;
    return 0;
}

void weft__file_content_done(weft_file_content *content, const weft_alloc *alloc) {
    weft__buf_done(&content->content, alloc);
}

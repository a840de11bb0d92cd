/* Reading and replacing the file of a position. What is in it may be anything: it is used if all of it fits together. */
#include "position_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "hash.h"
#include "read_all.h"

#define HEX 17 /* 64 bits and a NUL */

static void write_hex(uint64_t number, char ret[HEX]) {
    snprintf(ret, HEX, "%016" PRIx64, number);
}

/* Over everything, each with its NUL, so that a changed digit is noticed. */
static void write_check(const char *name, const char *stream, const weft_position *position, char ret[HEX]) {
    char seq[24];
    snprintf(seq, sizeof seq, "%" PRIu64, position->seq);
    uint64_t hash = weft__hash64_more(WEFT_HASH64, name, strlen(name) + 1);
    hash = weft__hash64_more(hash, stream, strlen(stream) + 1);
    hash = weft__hash64_more(hash, position->journal, strlen(position->journal) + 1);
    write_hex(weft__hash64_more(hash, seq, strlen(seq)), ret);
}

int weft__position_write(const char *name, const char *params, const weft_position *position, const weft_alloc *alloc,
                         char **ret, size_t *ret_len) {
    char stream[HEX], check[HEX];
    write_hex(weft__hash64_more(WEFT_HASH64, params, strlen(params)), stream);
    write_check(name, stream, position, check);
    return weft_to_text(WEFT_OBJ({"name", weft_str(name)}, {"params", weft_str(stream)},
                                 {"journal", weft_str(position->journal)}, {"seq", weft_uint(position->seq)},
                                 {"check", weft_str(check)}),
                        alloc, ret, ret_len);
}

/* Without memory nothing is known about the file: it must not pass for a damaged one. */
static int read_position_text(const weft_json *root, const char *name, const char **ret) {
    weft_json value = weft_get(root, name);
    weft_bytes bytes;
    int r = weft_bytes_of(&value, &bytes);
    if (r < 0)
        return r == -ENOMEM ? r : -EBADMSG;
    if (memchr(bytes.data, '\0', bytes.len))
        return -EBADMSG;
    const char *text = weft_str_of(&value, NULL);
    if (!text)
        return -ENOMEM;
    *ret = text;
    return 0;
}

static int check_position(const weft_json *root, const char *name, const char *stream, weft_position *position) {
    char check[HEX];
    const char *said = "";
    write_check(name, stream, position, check);
    int r = read_position_text(root, "check", &said);
    return r < 0 ? r : strcmp(said, check) == 0 ? 0 : -EBADMSG;
}

static int take_position(const weft_json *root, const char *name, const char *params, weft_position *ret) {
    char expected[HEX];
    const char *file_name, *stream, *journal;
    weft_position position = {.seq = 0};
    int64_t seq = weft_get_int(root, "seq", -1);
    int r = read_position_text(root, "name", &file_name);
    if (r >= 0)
        r = read_position_text(root, "params", &stream);
    if (r >= 0)
        r = read_position_text(root, "journal", &journal);
    if (r < 0)
        return r;
    if (seq < 0 || strlen(journal) > WEFT_SUB_JOURNAL)
        return -EBADMSG;
    position.seq = (uint64_t) seq;
    memcpy(position.journal, journal, strlen(journal) + 1);
    r = check_position(root, file_name, stream, &position);
    if (r < 0)
        return r;
    write_hex(weft__hash64_more(WEFT_HASH64, params, strlen(params)), expected);
    if (strcmp(file_name, name) != 0 || strcmp(stream, expected) != 0)
        return -EEXIST;
    *ret = position;
    return 0;
}

int weft__position_parse(const char *text, size_t len, const char *name, const char *params, const weft_alloc *alloc,
                         weft_position *ret) {
    weft_doc *doc;
    int r = weft_doc_parse(text, len, alloc, &doc);
    if (r < 0)
        return r;
    r = take_position(weft_doc_root(doc), name, params, ret);
    weft_doc_free(doc);
    return r;
}

static int check_position_file(int fd) {
    struct stat info;
    if (fstat(fd, &info) < 0)
        return -errno;
    if (!S_ISREG(info.st_mode))
        return -EISDIR;
    return info.st_uid == geteuid() ? 0 : -EPERM;
}

int weft__position_load(const char *path, const char *name, const char *params, const weft_alloc *alloc,
                        weft_position *ret) {
    char text[WEFT_POSITION_TEXT];
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = check_position_file(fd);
    if (r >= 0)
        r = weft__read_all(fd, text, sizeof text, &len);
    close(fd);
    if (r < 0)
        return r;
    return len == sizeof text ? -EBADMSG : weft__position_parse(text, len, name, params, alloc, ret);
}

static int write_whole(int fd, const char *text, size_t len) {
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        text += n > 0 ? n : 0;
        len -= n > 0 ? (size_t) n : 0;
    }
    return 0;
}

/* mkostemp() makes it with mode 0600 and a name that nobody has. */
static int replace_file(const char *path, char *other, const char *text, size_t len) {
    int fd = mkostemp(other, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = write_whole(fd, text, len);
    if (r >= 0)
        r = write_whole(fd, "\n", 1);
    if (r >= 0 && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r >= 0)
        r = -errno;
    if (r >= 0 && rename(other, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(other);
    return r;
}

int weft__position_save(const char *path, const char *name, const char *params, const weft_position *position,
                        const weft_alloc *alloc) {
    size_t len, size = strlen(path) + sizeof ".XXXXXX";
    char *text, *other = weft__alloc(alloc, size);
    if (!other)
        return -ENOMEM;
    snprintf(other, size, "%s.XXXXXX", path);
    int r = weft__position_write(name, params, position, alloc, &text, &len);
    if (r >= 0) {
        r = replace_file(path, other, text, len);
        weft_text_free(text, alloc);
    }
    weft__free(alloc, other);
    return r;
}

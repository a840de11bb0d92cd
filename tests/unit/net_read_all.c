/* Reading until the end: every size around the pieces it reads in, the limit, an error, and no memory. */
#include "read_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"

#define PIECE (64 * 1024)

/* A file of so many bytes, each of which says where it is. */
static int file_of(size_t size) {
    int fd = memfd_create("read-all", MFD_CLOEXEC);
    char *bytes = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char) (i % 251);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t) size || lseek(fd, 0, SEEK_SET) != 0)
        abort();
    free(bytes);
    return fd;
}

static bool is_whole(const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != (char) (i % 251))
            return false;
    return true;
}

TEST(sizes) {
    static const size_t sizes[] = {0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 7};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        weft_buf text = {0};
        int fd = file_of(sizes[i]);
        CHECK_INT(weft__read_text(fd, 4 * PIECE, NULL, &text), 0);
        CHECK_INT((int) weft__buf_len(&text), (int) sizes[i]);
        CHECK(is_whole(weft__buf_head(&text), weft__buf_len(&text)));
        weft__buf_done(&text, NULL);
        close(fd);
    }
}

TEST(limit) {
    for (size_t more = 0; more < 2; more++) {
        weft_buf text = {0};
        int fd = file_of(1000 + more);
        CHECK_INT(weft__read_text(fd, 1000, NULL, &text), more ? -EFBIG : 0);
        weft__buf_done(&text, NULL);
        close(fd);
    }
}

TEST(room_that_is_full) {
    char room[8];
    size_t len = 0;
    int fd = file_of(9);
    CHECK_INT(weft__read_all(fd, room, sizeof room, &len), 0);
    CHECK_INT((int) len, 8);
    CHECK_INT(weft__read_all(fd, room, sizeof room, &len), 0);
    CHECK_INT((int) len, 1);
    close(fd);
}

TEST(failures) {
    weft_buf text = {0};
    size_t len = 4711;
    char room[8];
    test_memory memory;
    int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(weft__read_all(folder, room, sizeof room, &len), -EISDIR);
    CHECK_INT((int) len, 4711);
    CHECK_INT(weft__read_text(folder, 1000, NULL, &text), -EISDIR);
    weft__buf_done(&text, NULL);
    close(folder);
    int fd = file_of(10);
    test_memory_init(&memory, 1);
    text = (weft_buf){0};
    CHECK_INT(weft__read_text(fd, 1000, &memory.alloc, &text), -ENOMEM);
    weft__buf_done(&text, &memory.alloc);
    CHECK_INT(memory.live, 0);
    close(fd);
}

TEST_MAIN(CASE(sizes) CASE(limit) CASE(room_that_is_full) CASE(failures))

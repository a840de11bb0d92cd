/* stdin and stdout of every kind, and that they are afterwards as they were. */
#include "stdfd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"

#define IN "build/tests/stdfd-in"
#define OUT "build/tests/stdfd-out"

static ssize_t read_soon(int fd, char *ret, size_t size) {
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    poll(&wait, 1, -1);
    return read(fd, ret, size);
}

static void check_non_blocking(const weft_stdio *io) {
    CHECK(io->in.fd > 2 && io->out.fd > 2);
    CHECK(fcntl(io->in.fd, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(io->out.fd, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(io->in.fd, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(io->out.fd, F_GETFL) & O_NONBLOCK);
}

static void finish(weft_stdio *io) {
    close(io->in.fd);
    close(io->out.fd);
    weft__stdio_done(io);
}

TEST(pipes_do_not_change) {
    int in[2], out[2];
    char got[16];
    weft_stdio io;
    REQUIRE(pipe(in) == 0 && pipe(out) == 0);
    REQUIRE(weft__stdio_open(&io, in[0], out[1]) == 0);
    check_non_blocking(&io);
    CHECK_INT(fcntl(in[0], F_GETFL) & O_NONBLOCK, 0);
    CHECK_INT(fcntl(out[1], F_GETFL) & O_NONBLOCK, 0);
    CHECK_INT(write(in[1], "ping", 4), 4);
    CHECK_INT(read_soon(io.in.fd, got, sizeof got), 4);
    CHECK_INT(write(io.out.fd, "pong!", 5), 5);
    CHECK_INT(read(out[0], got, sizeof got), 5);
    close(in[1]);
    CHECK_INT(read_soon(io.in.fd, got, sizeof got), 0);
    finish(&io);
    close(in[0]), close(out[0]), close(out[1]);
}

TEST(sockets_are_put_back) {
    int pair[2];
    char got[16];
    weft_stdio io;
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    REQUIRE(weft__stdio_open(&io, pair[0], pair[0]) == 0);
    check_non_blocking(&io);
    CHECK_INT(write(io.out.fd, "hi", 2), 2);
    CHECK_INT(read(pair[1], got, sizeof got), 2);
    finish(&io);
    CHECK_INT(fcntl(pair[0], F_GETFL) & O_NONBLOCK, 0);
    close(pair[0]), close(pair[1]);
}

/* epoll refuses files: both directions go through something it does not refuse, whole and in order. */
TEST(files_are_carried) {
    static char text[300000], got[sizeof text];
    size_t len = 0;
    weft_stdio io;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char) ('a' + i % 26);
    int in = open(IN, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int out = open(OUT, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(in >= 0 && out >= 0);
    CHECK_INT(write(in, text, sizeof text), sizeof text);
    lseek(in, 0, SEEK_SET);
    REQUIRE(weft__stdio_open(&io, in, out) == 0);
    check_non_blocking(&io);
    for (ssize_t n; (n = read_soon(io.in.fd, got + len, sizeof got - len)) > 0;)
        len += (size_t) n;
    CHECK(len == sizeof text && memcmp(got, text, len) == 0);
    for (size_t done = 0; done < sizeof text;) {
        struct pollfd wait = {.fd = io.out.fd, .events = POLLOUT};
        poll(&wait, 1, -1);
        ssize_t n = write(io.out.fd, text + done, sizeof text - done);
        done += n > 0 ? (size_t) n : 0;
    }
    finish(&io);
    CHECK_INT(pread(out, got, sizeof got, 0), sizeof text);
    CHECK(memcmp(got, text, sizeof text) == 0);
    close(in), close(out);
}

/* We leave before the file has been read: nobody waits for ever, and no signal is raised. */
TEST(leaving_early) {
    static char text[1 << 20];
    weft_stdio io;
    int in = open(IN, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK_INT(write(in, text, sizeof text), sizeof text);
    lseek(in, 0, SEEK_SET);
    REQUIRE(weft__stdio_open(&io, in, out) == 0);
    finish(&io);
    close(in), close(out);
}

TEST(a_closed_descriptor) {
    weft_stdio io;
    int fd = 900; /* nobody has opened that many */
    CHECK_INT(weft__stdio_open(&io, fd, 1), -EBADF);
    CHECK_INT(weft__stdio_open(&io, 0, fd), -EBADF);
}

TEST_MAIN(CASE(pipes_do_not_change) CASE(sockets_are_put_back) CASE(files_are_carried) CASE(leaving_early)
              CASE(a_closed_descriptor))

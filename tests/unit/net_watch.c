/* Watching a descriptor: what is told and when, from inside the callback too, and that nothing of it stays. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "watch.h"

typedef struct seen {
    weft_watch *watch;
    unsigned what;
    int times;
    bool ends; /* frees itself when told */
} seen;

static void on_ready(void *ctx, unsigned what) {
    seen *self = ctx;
    self->what |= what;
    self->times++;
    if (self->ends)
        self->watch = weft__watch_free(self->watch);
}

static void turn(weft_loop *loop) {
    weft_loop_once(loop, false);
    weft_loop_once(loop, false);
}

TEST(a_watch_tells_only_what_was_asked_for) {
    weft_loop *loop = NULL;
    seen self = {0};
    int pipe_fd[2];
    CHECK_INT(pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    CHECK_INT(weft__watch_new(loop, pipe_fd[0], on_ready, &self, &self.watch), 0);
    CHECK_INT(write(pipe_fd[1], "x", 1), 1);
    turn(loop);
    CHECK_INT(self.times, 0); /* it watches for nothing yet */
    CHECK_INT(weft__watch_set(self.watch, WEFT_WATCH_READ), 0);
    turn(loop);
    CHECK_INT(self.what, WEFT_WATCH_READ);
    CHECK_INT(weft__watch_set(self.watch, 0), 0);
    int before = self.times;
    turn(loop);
    CHECK_INT(self.times, before);
    self.watch = weft__watch_free(self.watch);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    while (weft_loop_once(loop, false) > 0)
        continue;
    weft_loop_free(loop);
}

TEST(a_hang_up_is_told_and_a_watch_may_end_itself) {
    weft_loop *loop = NULL;
    seen self = {.ends = true};
    int pipe_fd[2];
    CHECK_INT(pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    CHECK_INT(weft__watch_new(loop, pipe_fd[0], on_ready, &self, &self.watch), 0);
    CHECK_INT(weft__watch_set(self.watch, WEFT_WATCH_READ), 0);
    close(pipe_fd[1]);
    turn(loop);
    CHECK_INT(self.times, 1);
    CHECK_INT(self.what, WEFT_WATCH_READ);
    CHECK(self.watch == NULL);
    close(pipe_fd[0]);
    CHECK_INT(weft_loop_once(loop, false), 0); /* nothing keeps the loop */
    weft_loop_free(loop);
}

TEST(a_file_cannot_be_watched) {
    weft_loop *loop = NULL;
    weft_watch *watch = NULL;
    int fd = open("README.md", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    CHECK_INT(weft__watch_new(loop, fd, on_ready, NULL, &watch), -EPERM);
    close(fd);
    weft_loop_free(loop);
}

TEST(a_quiet_watch_does_not_keep_the_loop) {
    weft_loop *loop = NULL;
    seen self = {0};
    int pipe_fd[2];
    CHECK_INT(pipe2(pipe_fd, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    CHECK_INT(weft__watch_new(loop, pipe_fd[0], on_ready, &self, &self.watch), 0);
    CHECK_INT(weft__watch_set(self.watch, WEFT_WATCH_READ), 0);
    CHECK_INT(weft_loop_once(loop, false), 1);
    weft__watch_quiet(self.watch);
    CHECK_INT(weft_loop_once(loop, false), 0);
    weft__watch_free(self.watch);
    while (weft_loop_once(loop, false) > 0)
        continue;
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    weft_loop_free(loop);
}

TEST_MAIN(CASE(a_watch_tells_only_what_was_asked_for) CASE(a_hang_up_is_told_and_a_watch_may_end_itself)
              CASE(a_file_cannot_be_watched) CASE(a_quiet_watch_does_not_keep_the_loop))

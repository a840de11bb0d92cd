/* The harness itself: a check that fails always ends in a count and a status, wherever it stands. Each row plays a small
 * test program in a process of its own. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

TEST(good) {
    CHECK(true);
}

TEST(bad) {
    CHECK(false);
}

TEST(good_rows) {
    test_row("a");
    test_row("b");
    CHECK(true);
}

TEST(bad_row) {
    test_row("a");
    CHECK(false);
    test_row("b");
}

TEST(bad_before_its_rows) {
    CHECK(false);
    test_row("a");
    test_row("b");
}

TEST(bad_behind_its_rows) {
    test_row("a");
    test_row(NULL);
    CHECK_INT(1, 2);
}

TEST(skipped) {
    test_skip("because");
}

TEST(bad_and_skipped) {
    CHECK(false);
    test_skip("because");
}

/* The exit status of a program with this one test; its last line is in ret. */
static int play(const test_case *one, char *ret, size_t size) {
    static char argv0[] = "play", *argv[] = {argv0, NULL};
    char text[4096];
    size_t len = 0;
    ssize_t n;
    int ends[2], status = -1;
    fflush(stdout);
    if (pipe(ends) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        _exit(test_main(1, argv, one, 1));
    }
    close(ends[1]);
    while (len < sizeof text - 1 && (n = read(ends[0], text + len, sizeof text - 1 - len)) > 0)
        len += (size_t) n;
    close(ends[0]);
    waitpid(pid, &status, 0);
    while (len && text[len - 1] == '\n')
        len--;
    text[len] = '\0';
    const char *last = strrchr(text, '\n');
    snprintf(ret, size, "%.200s", last ? last + 1 : text);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv) {
    static const struct {
        test_case one;
        int status;
        const char *last;
    } rows[] = {
        {CASE(good) 0, "1 passed, 0 failed, 0 skipped"},
        {CASE(bad) 1, "0 passed, 1 failed, 0 skipped"},
        {CASE(good_rows) 0, "2 passed, 0 failed, 0 skipped"},
        {CASE(bad_row) 1, "1 passed, 1 failed, 0 skipped"},
        {CASE(bad_before_its_rows) 1, "2 passed, 1 failed, 0 skipped"},
        {CASE(bad_behind_its_rows) 1, "1 passed, 1 failed, 0 skipped"},
        {CASE(skipped) 0, "0 passed, 0 failed, 1 skipped"},
        {CASE(bad_and_skipped) 1, "0 passed, 1 failed, 0 skipped"},
    };
    long failed = 0;
    (void) argc, (void) argv;
    /* What is tested does not count itself. */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char last[256];
        int status = play(&rows[i].one, last, sizeof last);
        if (status == rows[i].status && strcmp(last, rows[i].last) == 0)
            continue;
        failed++;
        printf("FAIL %s\n  is   %d: %s\n  want %d: %s\n", rows[i].one.name, status, last, rows[i].status, rows[i].last);
    }
    printf("%zu passed, %ld failed, 0 skipped\n", sizeof rows / sizeof rows[0] - (size_t) failed, failed);
    return failed != 0;
}

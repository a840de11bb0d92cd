/* A small test harness. A test program is a list of TESTs and TEST_MAIN(); it closes with "N passed, N failed, N skipped".
 *
 *     TEST(adds) { CHECK_INT(1 + 1, 2); }
 *     TEST_MAIN(adds)
 *
 * A failed check reports and goes on, so that one run shows everything that is wrong; REQUIRE leaves the test. */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <weft/base.h>

typedef struct test_case {
    const char *name;
    void (*run)(void);
} test_case;

#define TEST(name) static void test_##name(void)
#define CASE(name) {#name, test_##name},

/* Run the cases whose name contains argv[1], or all. The exit status. */
int test_main(int argc, char **argv, const test_case *cases, size_t count);
#define TEST_MAIN(...)                                                                                                      \
    int main(int argc, char **argv) {                                                                                       \
        static const test_case cases[] = {__VA_ARGS__};                                                                     \
        return test_main(argc, argv, cases, sizeof cases / sizeof cases[0]);                                                \
    }

/* The checks. Each returns whether it held. */
bool test_check(bool ok, const char *file, int line, const char *what);
bool test_check_int(int64_t is, int64_t want, const char *file, int line, const char *what);
bool test_check_text(const char *is, size_t is_len, const char *want, size_t want_len, const char *file, int line,
                     const char *what);

#define CHECK(x) test_check((x), __FILE__, __LINE__, #x)
#define CHECK_INT(is, want) test_check_int((int64_t) (is), (int64_t) (want), __FILE__, __LINE__, #is)
#define CHECK_STR(is, want) test_check_text((is), (is) ? strlen(is) : 0, (want), strlen(want), __FILE__, __LINE__, #is)
#define CHECK_TEXT(is, n, want) test_check_text((is), (n), (want), strlen(want), __FILE__, __LINE__, #is)
#define REQUIRE(x)                                                                                                          \
    do {                                                                                                                    \
        if (!CHECK(x))                                                                                                      \
            return;                                                                                                         \
    } while (0)

/* Count this test as skipped and say why; return from the test afterwards. */
void test_skip(const char *why);
/* In a table test: what the following checks are about. Printed with a failure; NULL ends it. Each call counts as one passed
 * row if no check fails until the next. */
void test_row(const char *name);

/* An allocator whose n-th allocation fails (1 the first; 0 none), and that counts what is not freed. Threads may share it.
 */
typedef struct test_memory {
    weft_alloc alloc;
    long fail_at;
    long count;
    long live;
} test_memory;
void test_memory_init(test_memory *memory, long fail_at);

/* Does this machine know the name localhost? A bare container may have no /etc/hosts. If not, the test has been skipped. */
bool test_needs_localhost(void);
/* The same without skipping: the name if it is known, else 127.0.0.1. */
const char *test_localhost(void);

/* ../shared/data/PATH whole, NUL-terminated; owned (free()). NULL if it is not there: test_skip() then. */
char *test_data(const char *path, size_t *ret_len);
/* The folder itself, or NULL. */
const char *test_data_dir(void);
/* A file whole; owned; NULL if it cannot be read. */
char *test_file(const char *path, size_t *ret_len);
/* Remove a file, or a folder with all that is in it; a failed check if it is there and stays. */
void test_remove(const char *path);
/* A port of 127.0.0.1 that refuses: it is bound, so that nobody else can take it, and nobody listens. Close *ret_fd when it
 * is not needed any more. */
int test_closed_port(int *ret_fd);

#endif

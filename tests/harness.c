/* A small test harness; see harness.h. */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

static struct {
    long passed, failed, skipped;
    bool test_failed, test_skipped;
    const char *test;
    char row[160];
    bool row_open, row_failed;
    bool outside_failed; /* a check of this test that is in no row */
    long rows;
} run;

static void fail(const char *file, int line, const char *what) {
    run.test_failed = run.row_failed = true;
    run.outside_failed |= !run.row_open;
    printf("FAIL %s%s%s\n  %s:%d: %s\n", run.test, run.row_open ? ": " : "", run.row_open ? run.row : "", file, line, what);
}

bool test_check(bool ok, const char *file, int line, const char *what) {
    if (!ok)
        fail(file, line, what);
    return ok;
}

bool test_check_int(int64_t is, int64_t want, const char *file, int line, const char *what) {
    if (is == want)
        return true;
    fail(file, line, what);
    printf("  is   %lld\n  want %lld\n", (long long) is, (long long) want);
    return false;
}

bool test_check_text(const char *is, size_t is_len, const char *want, size_t want_len, const char *file, int line,
                     const char *what) {
    if (is && is_len == want_len && memcmp(is, want, want_len) == 0)
        return true;
    fail(file, line, what);
    printf("  is   %.*s\n  want %.*s\n", is ? (int) is_len : 6, is ? is : "(null)", (int) want_len, want);
    return false;
}

void test_skip(const char *why) {
    run.test_skipped = true;
    printf("skip %s: %s\n", run.test, why);
}

const char *test_localhost(void) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    if (getaddrinfo("localhost", NULL, &hints, &list) != 0)
        return "127.0.0.1";
    freeaddrinfo(list);
    return "localhost";
}

bool test_needs_localhost(void) {
    if (strcmp(test_localhost(), "localhost") == 0)
        return true;
    test_skip("this machine does not know the name localhost: add the line \"127.0.0.1 localhost\" to /etc/hosts");
    return false;
}

static void close_row(void) {
    if (run.row_open) {
        run.rows++;
        if (run.row_failed)
            run.failed++;
        else
            run.passed++;
    }
    run.row_open = run.row_failed = false;
}

void test_row(const char *name) {
    close_row();
    if (!name)
        return;
    run.row_open = true;
    snprintf(run.row, sizeof run.row, "%s", name);
}

static void *counting_resize(void *ctx, void *ptr, size_t size) {
    test_memory *memory = ctx;
    if (size == 0) {
        __atomic_sub_fetch(&memory->live, ptr != NULL, __ATOMIC_RELAXED);
        free(ptr);
        return NULL;
    }
    if (__atomic_add_fetch(&memory->count, 1, __ATOMIC_RELAXED) == memory->fail_at)
        return NULL;
    void *moved = realloc(ptr, size);
    __atomic_add_fetch(&memory->live, moved && !ptr, __ATOMIC_RELAXED);
    return moved;
}

void test_memory_init(test_memory *memory, long fail_at) {
    *memory = (test_memory){.alloc = {counting_resize, memory}, .fail_at = fail_at};
}

char *test_file(const char *path, size_t *ret_len) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *data = NULL;
    long size = -1;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0)
        data = calloc(1, (size_t) size + 1);
    if (data && fread(data, 1, (size_t) size, file) != (size_t) size) {
        free(data);
        data = NULL;
    }
    fclose(file);
    if (data)
        *ret_len = (size_t) size;
    return data;
}

const char *test_data_dir(void) {
    const char *dir = getenv("WEFT_TEST_DATA");
    struct stat info;
    if (!dir)
        dir = "../shared/data";
    return stat(dir, &info) == 0 ? dir : NULL;
}

char *test_data(const char *path, size_t *ret_len) {
    char full[4096];
    const char *dir = test_data_dir();
    if (!dir)
        return NULL;
    snprintf(full, sizeof full, "%s/%s", dir, path);
    return test_file(full, ret_len);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at) {
    (void) info, (void) kind, (void) at;
    return remove(path);
}

void test_remove(const char *path) {
    int r = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    CHECK(r == 0 || errno == ENOENT);
}

int test_main(int argc, char **argv, const test_case *cases, size_t count) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < count; i++) {
        if (argc > 1 && !strstr(cases[i].name, argv[1]))
            continue;
        run.test = cases[i].name;
        run.test_failed = run.test_skipped = run.outside_failed = false;
        run.rows = 0;
        cases[i].run();
        close_row();
        if (run.outside_failed) /* whatever its rows say, and also if the rest was skipped */
            run.failed++;
        else if (run.test_skipped)
            run.skipped++;
        else if (run.rows == 0)
            run.passed++;
    }
    printf("%ld passed, %ld failed, %ld skipped\n", run.passed, run.failed, run.skipped);
    return run.failed != 0;
}

int test_closed_port(int *ret_fd) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *) &address, len) < 0 || getsockname(fd, (struct sockaddr *) &address, &len) < 0)
        abort();
    *ret_fd = fd;
    return ntohs(address.sin_port);
}

/* Files beneath a folder: what is reached and what is not, by the kernel's way and by our own, also while somebody swaps
 * folders and links. Every test of beneath runs both ways. What is in files is in files_content.c. */
#include "files.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "file_world.h"

#define RACES 3000

/* ---- what is reached ---- */

static const struct {
    const char *path;
    int r;
    const char *content;
    int strict; /* without following links, where it differs; 1: it does not */
} readable[] = {
    {"a", 0, "A", 1},
    {"d/b", 0, "B", 1},
    {"./d//b", 0, "B", 1},
    {"d/../a", 0, "A", 1},
    {"d/e/../../a", 0, "A", 1},
    {"to-a", 0, "A", -ELOOP},
    {"d/to-a", 0, "A", -ELOOP},
    {"to-d/b", 0, "B", -ELOOP},
    {"to-to-d/b", 0, "B", -ELOOP},
    {"to-d/../a", 0, "A", -ELOOP},
    {"a/", -ENOTDIR, "", 1},
    {"a/x", -ENOTDIR, "", 1},
    {"to-a/", -ENOTDIR, "", -ELOOP},
    {"d", -EISDIR, "", 1},
    {"to-d", -EISDIR, "", -ELOOP},
    {".", -EISDIR, "", 1},
    {"nothing", -ENOENT, "", 1},
    {"A", -ENOENT, "", 1},
    {"to-nothing", -ENOENT, "", -ELOOP},
    {"..", -EXDEV, "", 1},
    {"../outside/secret", -EXDEV, "", 1},
    {"d/../../outside/secret", -EXDEV, "", 1},
    {"d/e/../../../root/a", -EXDEV, "", 1},
    {"to-outside/secret", -EXDEV, "", -ELOOP},
    {"to-secret", -EXDEV, "", -ELOOP},
    {"d/up/outside/secret", -EXDEV, "", -ELOOP},
    {"to-absolute", -EXDEV, "", -ELOOP},
    {"to-self", -ELOOP, "", 1},
    {"/etc/passwd", -EXDEV, "", 1},
    {"", -EINVAL, "", 1},
    {"pipe", -EINVAL, "", 1},
    {"to-pipe", -EINVAL, "", -ELOOP},
    {"socket", -EINVAL, "", 1},
    {".git/config", -EACCES, "", 1},
    {".GIT/config", -EACCES, "", 1},
    {"d/.weft/token", -EACCES, "", 1},
    {".Weft", -EACCES, "", 1},
    {"to-git/config", -EACCES, "", -ELOOP},
    {"to-token", -EACCES, "", -ELOOP},
    {".aiwg/daemon/token", -EACCES, "", 1},
    {".aiwg/./Daemon//token", -EACCES, "", 1},
    {".aiwg/notes/../daemon/token", -EACCES, "", 1},
    {"d/../.aiwg/daemon/token", -EACCES, "", 1},
    {"to-aiwg/daemon/token", -EACCES, "", -ELOOP},
    {"to-aiwg/notes/../daemon/token", -EACCES, "", -ELOOP},
    {".aiwg/notes/to-token", -EACCES, "", -ELOOP},
    {".aiwg/notes/n", 0, "N", 1},
    {"daemon", 0, "D", 1},
    {".gitignore", 0, "I", 1},
    {"-rf", 0, "R", 1},
    {"\xff\xfe", 0, "X", 1},
    {"hard", 0, "A", 1},
};

static void check_readable(unsigned how) {
    place p;
    char text[256];
    make_readable(&p);
    for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++) {
        test_row(readable[i].path);
        CHECK_INT(read_path(&p, readable[i].path, how | WEFT_BENEATH_LINKS, text), readable[i].r);
        CHECK_TEXT(text, strlen(text), readable[i].content);
        int strict = readable[i].strict == 1 ? readable[i].r : readable[i].strict;
        CHECK_INT(read_path(&p, readable[i].path, how, text), strict);
    }
    test_row(NULL);
    end(&p);
}

TEST(reads_by_the_kernel) {
    check_readable(0);
}

TEST(reads_by_walking) {
    check_readable(WEFT_BENEATH_WALK);
}

/* A filter of system calls, as containers have them, for this thread alone. */
static int refuse_openat2(unsigned with) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | with),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0 ? -1 : 0;
}

typedef struct refused_thread {
    unsigned with;
    bool ran;
} refused_thread;

static void *read_without_openat2(void *ctx) {
    refused_thread *thread = ctx;
    thread->ran =
        refuse_openat2(thread->with) == 0 && syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno == (int) thread->with;
    if (thread->ran)
        check_readable(0);
    return NULL;
}

TEST(reads_where_openat2_is_refused) {
    static const unsigned errors[] = {ENOSYS, EPERM};
    for (size_t i = 0; i < 2; i++) {
        refused_thread refused = {errors[i], false};
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, read_without_openat2, &refused) == 0);
        pthread_join(thread, NULL);
        if (!refused.ran) {
            test_skip("this system has no filters of system calls");
            return;
        }
    }
}

TEST(both_ways_leave_no_descriptor) {
    place p;
    char text[256];
    make_readable(&p);
    int before = dup(p.root);
    for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++)
        for (unsigned how = 0; how < 4; how++)
            read_path(&p, readable[i].path, how, text);
    int after = dup(p.root);
    CHECK_INT(after, before + 1);
    close(before);
    close(after);
    end(&p);
}

TEST(odd_paths) {
    place p;
    char path[PATH_MAX + 10], text[256];
    weft_file_content content;
    begin(&p);
    CHECK_INT(weft__file_read(p.root, &(weft_file_read){.path = {"a\0b", 3}}, 0, NULL, &content), -EINVAL);
    for (unsigned how = 0; how < 4; how++) {
        memset(path, 'x', sizeof path);
        path[NAME_MAX + 1] = '\0';
        CHECK_INT(read_path(&p, path, how, text), -ENAMETOOLONG);
        path[NAME_MAX + 1] = 'x';
        path[PATH_MAX] = '\0';
        CHECK_INT(read_path(&p, path, how, text), -ENAMETOOLONG);
        for (int i = 0; i < PATH_MAX - 2; i += 2)
            memcpy(path + i, "./", 2);
        path[PATH_MAX - 2] = 'a';
        path[PATH_MAX - 1] = '\0';
        put(&p, "a", "A");
        CHECK_INT(read_path(&p, path, how, text), 0);
        CHECK_TEXT(text, strlen(text), "A");
    }
    end(&p);
}

/* The walk holds a descriptor for every folder on its way, so it has an end; so have links that lead to links. */
TEST(deep_paths_and_many_links) {
    place p;
    char path[PATH_MAX] = "", text[256], name[32], target[32];
    begin(&p);
    for (int i = 0; i < WEFT_BENEATH_DEPTH - 1; i++) {
        strcat(path, i ? "/f" : "f");
        dir(&p, path);
    }
    strcat(path, "/x");
    put(&p, path, "deep");
    CHECK_INT(read_path(&p, path, WEFT_BENEATH_WALK, text), 0);
    CHECK_TEXT(text, strlen(text), "deep");
    path[strlen(path) - 1] = '\0';
    strcat(path, "f");
    dir(&p, path);
    strcat(path, "/x");
    put(&p, path, "too deep");
    CHECK_INT(read_path(&p, path, WEFT_BENEATH_WALK, text), -ENAMETOOLONG);
    CHECK_INT(read_path(&p, path, 0, text), 0);

    put(&p, "l0", "end");
    for (int i = 1; i <= WEFT_BENEATH_LINKS_MAX + 1; i++) {
        snprintf(name, sizeof name, "l%d", i);
        snprintf(target, sizeof target, "l%d", i - 1);
        link_to(&p, target, name);
    }
    for (unsigned how = WEFT_BENEATH_LINKS; how < 4; how += WEFT_BENEATH_WALK) {
        snprintf(name, sizeof name, "l%d", WEFT_BENEATH_LINKS_MAX);
        CHECK_INT(read_path(&p, name, how, text), 0);
        snprintf(name, sizeof name, "l%d", WEFT_BENEATH_LINKS_MAX + 1);
        CHECK_INT(read_path(&p, name, how, text), -ELOOP);
    }
    end(&p);
}

/* ---- somebody swaps a folder and a link to the outside, all the time ---- */

typedef struct swapper {
    char folder[PATH_MAX], link[PATH_MAX];
    bool stop;
} swapper;

static void *swap_all_the_time(void *ctx) {
    swapper *s = ctx;
    while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
        if (renameat2(AT_FDCWD, s->folder, AT_FDCWD, s->link, RENAME_EXCHANGE) < 0)
            return "the swap failed";
    return NULL;
}

static void race(unsigned how) {
    place p;
    swapper s = {0};
    pthread_t thread;
    void *why = NULL;
    char text[256], full[PATH_MAX];
    int inside = 0, refused = 0, escaped = 0, wrote = 0, odd = 0;
    struct stat st;
    begin(&p);
    dir(&p, "d");
    dir(&p, "d/sub");
    put(&p, "d/secret", "inside");
    link_to(&p, "../outside", "l");
    full_path(&p, "d", s.folder);
    full_path(&p, "l", s.link);
    REQUIRE(pthread_create(&thread, NULL, swap_all_the_time, &s) == 0);
    /* A busy machine may give one of the two threads most of the time: go on until both have been in each other's way. */
    for (int i = 0; i < RACES || ((inside < 10 || !wrote || !refused) && i < 100 * RACES); i++) {
        int r = read_path(&p, i % 2 ? "d/secret" : "d/sub/../secret", how, text);
        inside += r == 0 && strcmp(text, "inside") == 0;
        escaped += r == 0 && strcmp(text, "inside") != 0;
        refused += r == -EXDEV || r == -ELOOP;
        odd += r < 0 && r != -EXDEV && r != -ELOOP && r != -ENOENT && r != -ENOTDIR;
        wrote += i % 32 == 0 && write_path(&p, "d/new", "written", how) == 0;
    }
    __atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, &why);
    CHECK(why == NULL);
    CHECK_INT(escaped, 0);
    CHECK_INT(odd, 0);
    CHECK(inside >= 10);
    CHECK(wrote > 0);
    CHECK(refused > 0);
    full_path(&p, "../outside/new", full);
    CHECK(lstat(full, &st) < 0);
    CHECK_INT(count_of(&p, "../outside"), 1);
    end(&p);
}

TEST(races_by_the_kernel) {
    race(WEFT_BENEATH_LINKS);
}

TEST(races_by_walking) {
    race(WEFT_BENEATH_LINKS | WEFT_BENEATH_WALK);
}

TEST(absolute_paths) {
    static const struct {
        const char *path, *relative;
        int r;
    } rows[] = {
        {"/root/a/b", "a/b", 0},   {"/root//a", "a", 0}, {"/root", ".", 0},      {"/root/", ".", 0},
        {"/rooted/a", "", -EXDEV}, {"/", "", -EXDEV},    {"a/b", "a/b", 0},      {"/roo", "", -EXDEV},
        {"/root/../x", "../x", 0}, {"", "", 0},          {"/other", "", -EXDEV},
    };
    place p;
    weft_loop *loop;
    weft_files *files;
    char path[PATH_MAX], folder[PATH_MAX];
    begin(&p);
    snprintf(folder, sizeof folder, "%s/root", p.folder);
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    CHECK_INT(weft__files_new(&(weft_files_opts){.loop = loop, .folder = folder}, &files), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_bytes ret = {"", 0};
        test_row(rows[i].path);
        snprintf(path, sizeof path, "%s%s", *rows[i].path == '/' ? p.folder : "", rows[i].path);
        CHECK_INT(weft__files_relative(files, bytes(path), &ret), rows[i].r);
        CHECK_TEXT(ret.data, ret.len, rows[i].relative);
    }
    test_row(NULL);
    weft__files_free(files);
    weft_loop_free(loop);
    end(&p);
}

TEST_MAIN(CASE(reads_by_the_kernel) CASE(reads_by_walking) CASE(reads_where_openat2_is_refused)
              CASE(both_ways_leave_no_descriptor) CASE(odd_paths) CASE(deep_paths_and_many_links) CASE(races_by_the_kernel)
                  CASE(races_by_walking) CASE(absolute_paths))

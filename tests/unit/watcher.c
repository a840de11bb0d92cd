/* The watcher on real files in a folder of its own. Nothing sleeps: the loop is run until what must come has come, and that
 * nothing else came is seen by something that comes after it. */
#include "watcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "net_world.h"
#include "tree.h"

typedef struct scene {
    weft_loop *loop;
    weft_watcher *watcher;
    char folder[64];
    char told[1 << 16]; /* "+a *b -c " */
    size_t len;
    char note[256];
    int notes, count, bursts;
    uint64_t burst;
    bool ready;
} scene;

static void on_change(void *ctx, const weft_change *change) {
    static const char marks[] = "+*-";
    scene *s = ctx;
    s->count++;
    if (s->len < sizeof s->told - PATH_MAX)
        s->len += (size_t) sprintf(s->told + s->len, "%c%s ", marks[change->kind], change->path);
}

static void on_burst(void *ctx, uint64_t count) {
    scene *s = ctx;
    s->bursts++;
    s->burst += count;
}

static void on_ready(void *ctx) {
    ((scene *) ctx)->ready = true;
}

static void on_note(void *ctx, const char *line) {
    scene *s = ctx;
    s->notes++;
    snprintf(s->note, sizeof s->note, "%s", line);
}

static void turn(scene *s) {
    struct pollfd p = {.fd = weft_loop_fd(s->loop), .events = POLLIN};
    int timeout = weft_loop_timeout_ms(s->loop);
    poll(&p, 1, timeout < 0 || timeout > 50 ? 50 : timeout);
    weft_loop_once(s->loop, false);
}

#define UNTIL(s, condition)                                                                                                 \
    do {                                                                                                                    \
        int64_t until_ = world_ms() + WORLD_PATIENCE_MS;                                                                    \
        while (!(condition) && world_ms() < until_)                                                                         \
            turn(s);                                                                                                        \
        if (!CHECK(condition))                                                                                              \
            fprintf(stderr, "    told: %.300s\n", (s)->told);                                                               \
    } while (0)

static void in(const scene *s, const char *path, char full[PATH_MAX]) {
    snprintf(full, PATH_MAX, "%s/%s", s->folder, path);
}

static void put(const scene *s, const char *path, const char *text) {
    char full[PATH_MAX];
    in(s, path, full);
    int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (CHECK(fd >= 0)) {
        CHECK_INT(write(fd, text, strlen(text)), strlen(text));
        close(fd);
    }
}

static void dir(const scene *s, const char *path) {
    char full[PATH_MAX];
    in(s, path, full);
    CHECK_INT(mkdir(full, 0755), 0);
}

static void move(const scene *s, const char *from, const char *to) {
    char a[PATH_MAX], b[PATH_MAX];
    in(s, from, a);
    in(s, to, b);
    CHECK_INT(rename(a, b), 0);
}

static void drop(const scene *s, const char *path) {
    char full[PATH_MAX];
    in(s, path, full);
    test_remove(full);
}

static void begin(scene *s) {
    *s = (scene){0};
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
    weft_loop_hold(s->loop); /* a watcher alone does not keep a loop */
    snprintf(s->folder, sizeof s->folder, "/tmp/weft-watch-XXXXXX");
    CHECK(mkdtemp(s->folder) != NULL);
}

static void watch_with(scene *s, weft_watcher_opts opts) {
    opts.loop = s->loop;
    opts.folder = s->folder;
    opts.on_change = on_change;
    opts.on_burst = on_burst;
    opts.on_ready = on_ready;
    opts.on_note = on_note;
    opts.ctx = s;
    CHECK_INT(weft__watcher_new(&opts, &s->watcher), 0);
    UNTIL(s, s->ready);
    CHECK_INT(s->count, 0);
}

static void watch(scene *s) {
    watch_with(s, (weft_watcher_opts){0});
}

/* After a loop was there: libuv keeps a pipe from the first on. */
static int open_files(void) {
    int count = 0;
    weft_loop *loop;
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    weft_loop_free(loop);
    DIR *d = opendir("/proc/self/fd");
    while (readdir(d))
        count++;
    closedir(d);
    return count;
}

static void end(scene *s) {
    s->watcher = weft__watcher_free(s->watcher);
    weft_loop_release(s->loop);
    weft_loop_free(s->loop);
    drop(s, "");
}

/* What was told so far, without order; and forget it. */
static bool told(scene *s, const char *what) {
    return strstr(s->told, what) != NULL;
}

static void forget(scene *s) {
    s->told[0] = '\0';
    s->len = 0;
    s->count = 0;
}

TEST(create_modify_delete) {
    scene s;
    int before = open_files();
    begin(&s);
    put(&s, "there", "x");
    watch(&s);
    put(&s, "a", "1");
    UNTIL(&s, told(&s, "+a "));
    put(&s, "a", "22");
    UNTIL(&s, told(&s, "*a "));
    drop(&s, "a");
    UNTIL(&s, told(&s, "-a "));
    CHECK_STR(s.told, "+a *a -a ");
    CHECK_INT(weft__watcher_stats(s.watcher).told, 3);
    CHECK_INT(weft__watcher_stats(s.watcher).files, 1);
    end(&s);
    CHECK_INT(open_files(), before);
}

/* Within the time to settle: written ten times is one change, come and gone is none, replaced by a rename is one. */
TEST(settles) {
    scene s;
    begin(&s);
    put(&s, "a", "0");
    put(&s, "replaced", "0");
    watch(&s);
    put(&s, "ghost", "boo");
    for (int i = 0; i < 10; i++)
        put(&s, "a", "123");
    put(&s, "new.tmp", "new");
    move(&s, "new.tmp", "replaced");
    drop(&s, "ghost");
    put(&s, "z", "last");
    UNTIL(&s, told(&s, "+z "));
    CHECK_INT(s.count, 3);
    CHECK(told(&s, "*a ") && told(&s, "*replaced "));
    end(&s);
}

/* Files that are in a folder before its watch is; and folders in folders. */
TEST(new_folders) {
    scene s;
    begin(&s);
    watch(&s);
    dir(&s, "d");
    dir(&s, "d/e");
    dir(&s, "d/e/f");
    put(&s, "d/1", "x");
    put(&s, "d/e/f/2", "x");
    UNTIL(&s, told(&s, "+d/1 ") && told(&s, "+d/e/f/2 "));
    forget(&s);
    put(&s, "d/e/f/3", "x");
    UNTIL(&s, told(&s, "+d/e/f/3 "));
    CHECK_INT(s.count, 1);
    CHECK_INT(weft__watcher_stats(s.watcher).watches, 4);
    end(&s);
}

TEST(folders_move_and_go) {
    scene s;
    begin(&s);
    dir(&s, "d");
    dir(&s, "d/e");
    put(&s, "d/1", "x");
    put(&s, "d/e/2", "x");
    watch(&s);
    move(&s, "d", "m");
    UNTIL(&s, s.count == 4);
    CHECK(told(&s, "-d/1 ") && told(&s, "-d/e/2 ") && told(&s, "+m/1 ") && told(&s, "+m/e/2 "));
    forget(&s);
    put(&s, "m/e/2", "changed");
    UNTIL(&s, told(&s, "*m/e/2 "));
    CHECK_INT(s.count, 1);
    forget(&s);
    /* Another folder in its place at once. */
    move(&s, "m", "../weft-watch-away");
    dir(&s, "m");
    put(&s, "m/9", "x");
    UNTIL(&s, s.count == 3);
    CHECK(told(&s, "-m/1 ") && told(&s, "-m/e/2 ") && told(&s, "+m/9 "));
    forget(&s);
    /* What happens outside is nobody's business any more. */
    put(&s, "../weft-watch-away/1", "xyz");
    drop(&s, "m");
    UNTIL(&s, told(&s, "-m/9 "));
    CHECK_INT(s.count, 1);
    CHECK_INT(weft__watcher_stats(s.watcher).folders, 1);
    CHECK_INT(weft__watcher_stats(s.watcher).watches, 1);
    drop(&s, "../weft-watch-away");
    end(&s);
}

TEST(moves_of_files) {
    scene s;
    begin(&s);
    put(&s, "a", "x");
    watch(&s);
    move(&s, "a", "b");
    UNTIL(&s, s.count == 2);
    CHECK(told(&s, "-a ") && told(&s, "+b "));
    end(&s);
}

/* Links are not followed, and are files; pipes and sockets are nothing. A file becomes a folder. */
TEST(kinds) {
    scene s;
    char path[PATH_MAX];
    begin(&s);
    dir(&s, "d");
    put(&s, "d/x", "x");
    put(&s, "turns", "x");
    watch(&s);
    in(&s, "loop", path);
    CHECK_INT(symlink(".", path), 0);
    in(&s, "pipe", path);
    CHECK_INT(mkfifo(path, 0600), 0);
    drop(&s, "turns");
    dir(&s, "turns");
    put(&s, "turns/in", "x");
    UNTIL(&s, s.count == 3);
    CHECK(told(&s, "+loop ") && told(&s, "-turns ") && told(&s, "+turns/in "));
    end(&s);
}

TEST(ignores) {
    static const char *const given[] = {"*.log", "node_modules", NULL};
    scene s;
    begin(&s);
    dir(&s, ".git");
    dir(&s, ".weft");
    dir(&s, "sub");
    dir(&s, "sub/.aiwg");
    dir(&s, "node_modules");
    dir(&s, "sub/build");
    put(&s, ".gitignore", "*.o\n/sub/build/\n");
    put(&s, "sub/.gitignore", "!keep.o\n");
    watch_with(&s, (weft_watcher_opts){.ignore = given});
    CHECK_INT(weft__watcher_stats(s.watcher).watches, 2);
    put(&s, ".git/x", "x");
    put(&s, ".weft/x", "x");
    put(&s, "sub/.aiwg/x", "x");
    put(&s, "node_modules/x", "x");
    put(&s, "sub/build/x", "x");
    put(&s, "a.log", "x");
    put(&s, "a.o", "x");
    put(&s, "sub/b.o", "x");
    put(&s, "sub/keep.o", "x");
    put(&s, "sub/y", "x");
    UNTIL(&s, told(&s, "+sub/y ") && told(&s, "+sub/keep.o "));
    CHECK_INT(s.count, 2);
    end(&s);
}

/* A .gitignore that changes brings files into sight and out of it; neither is a change of theirs. */
TEST(ignore_changes) {
    scene s;
    begin(&s);
    put(&s, ".gitignore", "*.a\n");
    dir(&s, "d");
    put(&s, "d/1.a", "x");
    put(&s, "d/1.b", "x");
    watch(&s);
    put(&s, ".gitignore", "*.b\n");
    UNTIL(&s, told(&s, "*.gitignore "));
    UNTIL(&s, weft__watcher_stats(s.watcher).files == 2);
    for (int i = 0; i < 20; i++)
        turn(&s);
    put(&s, "d/1.b", "xx");
    put(&s, "d/1.a", "xx");
    UNTIL(&s, told(&s, "*d/1.a "));
    CHECK_STR(s.told, "*.gitignore *d/1.a ");
    forget(&s);
    drop(&s, ".gitignore");
    UNTIL(&s, told(&s, "-.gitignore "));
    UNTIL(&s, weft__watcher_stats(s.watcher).files == 2);
    CHECK_INT(s.count, 1);
    end(&s);
}

TEST(only_some_paths) {
    static const char *const paths[] = {"./src/", "docs/*.md", "later/on", NULL};
    scene s;
    begin(&s);
    dir(&s, "src");
    dir(&s, "src/deep");
    dir(&s, "docs");
    dir(&s, "other");
    watch_with(&s, (weft_watcher_opts){.paths = paths});
    put(&s, "top", "x");
    put(&s, "other/x", "x");
    put(&s, "docs/x.txt", "x");
    put(&s, "docs/x.md", "x");
    dir(&s, "later");
    put(&s, "later/x", "x");
    put(&s, "later/on", "x");
    put(&s, "src/deep/x", "x");
    UNTIL(&s, s.count == 3);
    CHECK(told(&s, "+docs/x.md ") && told(&s, "+later/on ") && told(&s, "+src/deep/x "));
    end(&s);
}

/* Without watches left, and without any: it looks again by itself, and says so once. */
static void polls(size_t max_watches, size_t watches) {
    scene s;
    begin(&s);
    dir(&s, "a");
    dir(&s, "b");
    dir(&s, "b/c");
    put(&s, "b/c/1", "x");
    watch_with(&s, (weft_watcher_opts){.max_watches = max_watches, .poll_ms = 20});
    CHECK_INT(weft__watcher_stats(s.watcher).watches, watches);
    CHECK(weft__watcher_stats(s.watcher).polling);
    CHECK_INT(s.notes, 1);
    put(&s, "b/c/2", "x");
    UNTIL(&s, told(&s, "+b/c/2 "));
    put(&s, "b/c/1", "changed");
    UNTIL(&s, told(&s, "*b/c/1 "));
    dir(&s, "a/n");
    put(&s, "a/n/3", "x");
    UNTIL(&s, told(&s, "+a/n/3 "));
    drop(&s, "b/c");
    UNTIL(&s, told(&s, "-b/c/1 ") && told(&s, "-b/c/2 "));
    CHECK_INT(s.count, 5);
    CHECK_INT(s.notes, 1);
    CHECK(strstr(s.note, "inotify") != NULL);
    end(&s);
}

TEST(polls_without_enough_watches) {
    polls(2, 2);
}

TEST(polls_without_any) {
    polls(SIZE_MAX, 0);
}

/* More than can be told one by one are told as a number, and afterwards it goes on as before. */
TEST(bursts) {
    scene s;
    begin(&s);
    watch(&s);
    dir(&s, "many");
    for (int i = 0; i < 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/%04d", i);
        put(&s, name, "x");
    }
    UNTIL(&s, s.bursts > 0 && weft__watcher_stats(s.watcher).files == 3000);
    CHECK_INT((int64_t) s.burst + s.count, 3000);
    CHECK(s.burst > 1000);
    CHECK(s.count < 1500);
    forget(&s);
    put(&s, "after", "x");
    UNTIL(&s, told(&s, "+after "));
    CHECK_INT(s.count, 1);
    end(&s);
}

/* Hundreds are told one by one, however long that takes. */
TEST(tells_hundreds) {
    scene s;
    begin(&s);
    watch(&s);
    for (int i = 0; i < 700; i++) {
        char name[32];
        snprintf(name, sizeof name, "%04d", i);
        put(&s, name, "x");
    }
    UNTIL(&s, s.count == 700);
    CHECK_INT(s.bursts, 0);
    end(&s);
}

/* More hints than are kept (or than the system's queue holds) mean looking at everything: nothing is missed. */
TEST(overflow) {
    scene s;
    char name[64];
    begin(&s);
    for (int i = 0; i < 1200; i++) {
        snprintf(name, sizeof name, "%04d", i);
        put(&s, name, "x");
    }
    dir(&s, "d");
    watch(&s);
    for (int i = 0; i < 1200; i++) {
        char full[PATH_MAX];
        snprintf(name, sizeof name, "%04d", i);
        in(&s, name, full);
        CHECK_INT(chmod(full, 0600), 0); /* a hint, but no change */
    }
    put(&s, "d/new", "x");
    drop(&s, "0007");
    put(&s, "0008", "changed");
    UNTIL(&s, s.count == 3);
    CHECK(told(&s, "+d/new ") && told(&s, "-0007 ") && told(&s, "*0008 "));
    end(&s);
}

TEST(unreadable) {
    scene s;
    char path[PATH_MAX];
    if (geteuid() == 0) {
        test_skip("root may read everything");
        return;
    }
    begin(&s);
    dir(&s, "closed");
    put(&s, "closed/x", "x");
    in(&s, "closed", path);
    CHECK_INT(chmod(path, 0), 0);
    watch(&s);
    put(&s, "a", "x");
    UNTIL(&s, told(&s, "+a "));
    CHECK_INT(s.notes, 0);
    CHECK(!weft__watcher_stats(s.watcher).polling);
    CHECK_INT(chmod(path, 0755), 0);
    put(&s, "closed/y", "x");
    UNTIL(&s, told(&s, "+closed/y "));
    end(&s);
}

TEST(too_many_files) {
    scene s;
    begin(&s);
    put(&s, "a", "x");
    put(&s, "b", "x");
    put(&s, "c", "x");
    watch_with(&s, (weft_watcher_opts){.max_nodes = 3});
    CHECK_INT(s.notes, 1);
    CHECK(strstr(s.note, "too many files") != NULL);
    CHECK_INT(weft__watcher_stats(s.watcher).files, 2);
    end(&s);
}

TEST(refuses) {
    scene s;
    weft_watcher *watcher = NULL;
    begin(&s);
    CHECK_INT(weft__watcher_new(&(weft_watcher_opts){.loop = s.loop, .folder = "/nowhere/at/all"}, &watcher), -ENOENT);
    CHECK_INT(weft__watcher_new(&(weft_watcher_opts){.loop = s.loop, .folder = "/etc/passwd"}, &watcher), -ENOTDIR);
    CHECK(watcher == NULL);
    end(&s);
}

/* The folder itself goes: said once, and nothing breaks. */
TEST(root_goes) {
    scene s;
    begin(&s);
    put(&s, "a", "x");
    watch(&s);
    drop(&s, "");
    UNTIL(&s, weft__watcher_stats(s.watcher).failed == -ENOENT && told(&s, "-a "));
    CHECK_INT(s.notes, 1);
    end(&s);
}

/* Freed at any time, also in the middle of a scan. */
TEST(freed_early) {
    scene s;
    int before = open_files();
    for (int turns = 0; turns < 8; turns++) {
        begin(&s);
        for (int i = 0; i < 600; i++) {
            char name[32];
            snprintf(name, sizeof name, "%04d", i);
            put(&s, name, "x");
        }
        weft_watcher_opts opts = {.loop = s.loop, .folder = s.folder, .on_change = on_change, .ctx = &s};
        CHECK_INT(weft__watcher_new(&opts, &s.watcher), 0);
        for (int i = 0; i < turns; i++)
            weft_loop_once(s.loop, false);
        if (turns > 3)
            put(&s, "changed", "x");
        end(&s);
    }
    CHECK_INT(open_files(), before);
}

TEST(every_allocation) {
    for (long n = 1; n < 60; n++) {
        test_memory memory;
        scene s;
        begin(&s);
        dir(&s, "d");
        put(&s, "d/a", "x");
        put(&s, ".gitignore", "b\n");
        test_memory_init(&memory, n);
        weft_watcher_opts opts = {.loop = s.loop,
                                  .alloc = &memory.alloc,
                                  .folder = s.folder,
                                  .on_change = on_change,
                                  .on_burst = on_burst,
                                  .on_ready = on_ready,
                                  .on_note = on_note,
                                  .ctx = &s};
        int r = weft__watcher_new(&opts, &s.watcher);
        CHECK(r == 0 || r == -ENOMEM);
        if (r == 0)
            UNTIL(&s, s.ready);
        end(&s);
        CHECK_INT(memory.live, 0);
        if (memory.count < n)
            break;
    }
}

TEST(folders_that_are_ignored_unless_they_are_named) {
    static const char *const paths[] = {".aiwg/docs", "src", NULL};
    scene s;
    begin(&s);
    dir(&s, ".aiwg");
    dir(&s, ".aiwg/docs");
    dir(&s, ".aiwg/other");
    dir(&s, "src");
    dir(&s, "src/.aiwg");
    watch_with(&s, (weft_watcher_opts){.paths = paths});
    put(&s, ".aiwg/other/a", "x");
    put(&s, "src/.aiwg/b", "x");
    put(&s, ".aiwg/docs/c", "x");
    UNTIL(&s, s.count == 1);
    CHECK_STR(s.told, "+.aiwg/docs/c ");
    put(&s, "src/d", "x");
    UNTIL(&s, s.count == 2);
    CHECK_STR(s.told, "+.aiwg/docs/c +src/d ");
    end(&s);
}

TEST_MAIN(CASE(folders_that_are_ignored_unless_they_are_named) CASE(create_modify_delete) CASE(settles) CASE(new_folders)
              CASE(folders_move_and_go) CASE(moves_of_files) CASE(kinds) CASE(ignores) CASE(ignore_changes)
                  CASE(only_some_paths) CASE(polls_without_enough_watches) CASE(polls_without_any) CASE(bursts)
                      CASE(tells_hundreds) CASE(overflow) CASE(unreadable) CASE(too_many_files) CASE(refuses) CASE(root_goes)
                          CASE(freed_early) CASE(every_allocation))

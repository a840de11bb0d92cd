/* Hints that a project has changed, on real repositories. Nothing sleeps: each test runs the loop until the hint has come,
 * and that nothing else came is seen by what comes after it. */
#include "git_watch.h"

#include <errno.h>

#include "git_world.h"

typedef struct scene {
    git_world w;
    weft_git_watch *watch;
    unsigned what; /* since it was last looked at */
    int told, files;
} scene;

static void on_changed(void *ctx, unsigned what) {
    scene *s = ctx;
    s->what |= what;
    s->told++;
}

static void on_file(void *ctx, const weft_change *change) {
    scene *s = ctx;
    (void) change;
    s->files++;
}

static void watch_with(scene *s, const char *folder, const weft_alloc *alloc) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", at(&s->w, folder));
    weft_loop_hold(s->w.loop); /* a watcher alone does not keep a loop */
    weft_git_watch_opts opts = {.loop = s->w.loop,
                                .alloc = alloc,
                                .folder = path,
                                .settle_ms = 50,
                                .rest_ms = 60,
                                .look_ms = 20,
                                .on_file = on_file,
                                .on_changed = on_changed,
                                .ctx = s};
    CHECK_INT(weft__git_watch_new(&opts, &s->watch), 0);
    GIT_UNTIL(&s->w, weft__git_watch_ready(s->watch));
    CHECK_INT(s->told, 0);
}

static void end_watch(scene *s) {
    s->watch = weft__git_watch_free(s->watch);
    weft_loop_release(s->w.loop);
}

static void begin(scene *s) {
    *s = (scene){0};
    git_world_begin(&s->w);
    put(&s->w, "repo/a", "1\n");
    put(&s->w, "repo/.gitignore", "*.o\n");
    GIT(&s->w, "add", ".");
    GIT(&s->w, "commit", "-qm", "first");
}

static void end(scene *s) {
    end_watch(s);
    git_world_end(&s->w);
}

/* Until one of these was told, and nothing waits to be told behind it. */
static unsigned next_hint(scene *s, unsigned want) {
    GIT_UNTIL(&s->w, s->what & want);
    unsigned what = s->what;
    s->what = 0;
    return what;
}

TEST(files_and_git) {
    scene s;
    begin(&s);
    watch_with(&s, "repo", NULL);
    CHECK(weft__git_watch_has_repository(s.watch));
    put(&s.w, "repo/ignored.o", "x");
    put(&s.w, "repo/a", "12\n");
    CHECK_INT(next_hint(&s, WEFT_CHANGED_FILES), WEFT_CHANGED_FILES);
    CHECK_INT(s.files, 1);
    GIT(&s.w, "add", "a");
    CHECK_INT(next_hint(&s, WEFT_CHANGED_INDEX), WEFT_CHANGED_INDEX);
    GIT(&s.w, "commit", "-qm", "second");
    CHECK(next_hint(&s, WEFT_CHANGED_REFS) & WEFT_CHANGED_REFS);
    GIT(&s.w, "branch", "side/deep");
    CHECK(next_hint(&s, WEFT_CHANGED_REFS) & WEFT_CHANGED_REFS);
    GIT(&s.w, "checkout", "-q", "side/deep");
    CHECK(next_hint(&s, WEFT_CHANGED_HEAD) & WEFT_CHANGED_HEAD);
    GIT(&s.w, "pack-refs", "--all");
    CHECK(next_hint(&s, WEFT_CHANGED_REFS) & WEFT_CHANGED_REFS);
    CHECK_INT(s.files, 1);
    end(&s);
}

/* What looking causes would never end. */
TEST(reading_is_no_change) {
    scene s;
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    begin(&s);
    CHECK_INT(utimensat(AT_FDCWD, at(&s.w, "repo/a"), times, 0), 0);
    watch_with(&s, "repo", NULL);
    CHECK_INT(git_world_open(&s.w, "repo", (weft_git_opts){0}), 0);
    CHECK_INT(git_world_ask(&s.w, (weft_git_request){WEFT_GIT_STATUS}), WEFT_GIT_OK);
    CHECK_INT(git_world_ask(&s.w, (weft_git_request){WEFT_GIT_DIFF_OF}), WEFT_GIT_OK);
    CHECK_INT(git_world_ask(&s.w, (weft_git_request){WEFT_GIT_LOG_OF}), WEFT_GIT_OK);
    GIT(&s.w, "update-ref", "refs/weft/0123", "HEAD"); /* nor are snapshots */
    put(&s.w, "repo/last", "x");
    CHECK_INT(next_hint(&s, WEFT_CHANGED_FILES), WEFT_CHANGED_FILES);
    CHECK_INT(s.told, 1);
    end(&s);
}

TEST(a_worktree) {
    scene s;
    begin(&s);
    GIT(&s.w, "worktree", "add", "-q", "-b", "side", at(&s.w, "tree"));
    watch_with(&s, "tree", NULL);
    CHECK(weft__git_watch_has_repository(s.watch));
    put(&s.w, "tree/a", "changed");
    CHECK_INT(next_hint(&s, WEFT_CHANGED_FILES), WEFT_CHANGED_FILES);
    CHECK_INT(git_in(&s.w, "tree", "add", ".", NULL), 0);
    CHECK_INT(next_hint(&s, WEFT_CHANGED_INDEX), WEFT_CHANGED_INDEX);
    GIT(&s.w, "branch", "from-the-other-side");
    CHECK(next_hint(&s, WEFT_CHANGED_REFS) & WEFT_CHANGED_REFS);
    end(&s);
}

TEST(a_repository_comes_and_goes) {
    scene s;
    begin(&s);
    dir(&s.w, "plain");
    put(&s.w, "plain/x", "x");
    watch_with(&s, "plain", NULL);
    CHECK(!weft__git_watch_has_repository(s.watch));
    CHECK_INT(git_in(&s.w, "plain", "init", "-q", NULL), 0);
    CHECK_INT(next_hint(&s, WEFT_CHANGED_HEAD), WEFT_CHANGED_GIT);
    CHECK(weft__git_watch_has_repository(s.watch));
    GIT_UNTIL(&s.w, weft__git_watch_ready(s.watch));
    CHECK_INT(git_in(&s.w, "plain", "add", ".", NULL), 0);
    CHECK(next_hint(&s, WEFT_CHANGED_INDEX) & WEFT_CHANGED_INDEX);
    test_remove(at(&s.w, "plain/.git"));
    GIT_UNTIL(&s.w, !weft__git_watch_has_repository(s.watch));
    CHECK(next_hint(&s, WEFT_CHANGED_HEAD) & WEFT_CHANGED_HEAD);
    CHECK_INT(git_in(&s.w, "plain", "init", "-q", NULL), 0);
    GIT_UNTIL(&s.w, weft__git_watch_has_repository(s.watch));
    end(&s);
}

/* Thousands of changes are one hint, and the next comes when the rest is over: here after a day. That nothing came before is
 * seen by another watch, which has told of what came last. */
TEST(rests_between_hints) {
    scene s, slow = {0};
    char folder[PATH_MAX];
    begin(&s);
    watch_with(&s, "repo", NULL);
    snprintf(folder, sizeof folder, "%s", at(&s.w, "repo"));
    weft_git_watch_opts opts = {.loop = s.w.loop,
                                .folder = folder,
                                .settle_ms = 1,
                                .rest_ms = 24 * 3600 * 1000,
                                .on_file = on_file,
                                .on_changed = on_changed,
                                .ctx = &slow};
    CHECK_INT(weft__git_watch_new(&opts, &slow.watch), 0);
    GIT_UNTIL(&s.w, weft__git_watch_ready(slow.watch));
    for (int i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof name, "repo/%d", i);
        put(&s.w, name, "x");
    }
    GIT_UNTIL(&s.w, slow.told == 1);
    CHECK_INT(slow.what, WEFT_CHANGED_FILES);
    GIT(&s.w, "add", ".");
    next_hint(&s, WEFT_CHANGED_INDEX);
    CHECK_INT(slow.told, 1);
    weft__git_watch_free(slow.watch);
    end(&s);
}

TEST(memory_fails) {
    scene s;
    begin(&s);
    weft_loop_hold(s.w.loop);
    for (long n = 1;; n++) {
        test_memory memory;
        test_memory_init(&memory, n);
        weft_git_watch_opts opts = {
            .loop = s.w.loop, .alloc = &memory.alloc, .folder = at(&s.w, "repo"), .on_changed = on_changed, .ctx = &s};
        int r = weft__git_watch_new(&opts, &s.watch);
        CHECK(r == 0 || r == -ENOMEM);
        if (r == 0)
            GIT_UNTIL(&s.w, weft__git_watch_ready(s.watch));
        s.watch = weft__git_watch_free(s.watch);
        CHECK_INT(memory.live, 0);
        if (memory.count < n)
            break;
    }
    weft_git_watch_opts opts = {.loop = s.w.loop, .folder = "/nonexistent", .on_changed = on_changed};
    CHECK_INT(weft__git_watch_new(&opts, &s.watch), -ENOENT);
    end(&s);
}

TEST_MAIN(CASE(files_and_git) CASE(reading_is_no_change) CASE(a_worktree) CASE(a_repository_comes_and_goes)
              CASE(rests_between_hints) CASE(memory_fails))

/* kill -9 at every rename of an undo: the next start finishes it. Between programs of git it is done to the real daemon, in
 * tests/faults/changes.py. */
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "snapshot_world.h"

/* The rename of this number is not done any more: the process is killed instead. behind: just after it. */
static long kill_at, renames;
static bool behind;

/* The C library's, with a look at renames. */
long syscall(long number, ...) {
    static long (*real)(long, ...);
    long args[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (!real)
        *(void **) &real = dlsym(RTLD_NEXT, "syscall");
    bool last = number == SYS_renameat2 && ++renames == kill_at;
    if (last && !behind)
        kill(getpid(), SIGKILL);
    long r = real(number, args[0], args[1], args[2], args[3], args[4], args[5]);
    if (last)
        kill(getpid(), SIGKILL);
    return r;
}

static void do_task(snapshot_world *s) {
    put(&s->w, "repo/a", "by the task\n");
    dir(&s->w, "repo/made");
    put(&s->w, "repo/made/new", "new\n");
    unlink(at(&s->w, "repo/sub/b"));
    rmdir(at(&s->w, "repo/sub"));
    put(&s->w, "repo/sub", "a file now\n");
    CHECK_INT(symlink("a", at(&s->w, "repo/link")), 0);
}

/* In a process of its own, which is killed. true: it was not. */
static bool undo_elsewhere(snapshot_world *s, const char *before, const char *after, long n) {
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        weft_loop_new(NULL, &s->w.loop);
        snapshot_world_open(s, "repo", (weft_snapshots_opts){0});
        kill_at = n;
        renames = 0;
        int before_it = s->answers;
        weft__snapshots_undo(s->snapshots, &(weft_undo){.owner = "task-0001", .before = before, .after = after},
                             snapshot_world_undid, s);
        while (s->answers == before_it)
            weft_loop_once(s->w.loop, true);
        _exit(s->r == 0 && !s->conflicts ? 0 : 1);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    return WIFEXITED(status);
}

/* What it finds, it finishes. */
static void start_again(snapshot_world *s, const char *before) {
    int answers = s->answers;
    CHECK_INT(snapshot_world_open(s, "repo", (weft_snapshots_opts){0}), 0);
    GIT_UNTIL(&s->w, s->answers > answers);
    CHECK_INT(s->left, 0);
    weft__snapshots_undo_recorded(s->snapshots);
    CHECK_INT(COMPARE(s, .from = before), 0);
    CHECK_SNAP_SAID(s, "");
    s->snapshots = weft__snapshots_free(s->snapshots);
}

static long kill_at_every_rename(void) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
    bool over = false;
    long n = 0;
    snapshot_world_begin(&s);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    while (!over && n < 50) {
        do_task(&s);
        if (!s.snapshots)
            CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){0}), 0);
        CHECK_INT(snapshot_world_take(&s, "task-0001.after", after), 0);
        s.snapshots = weft__snapshots_free(s.snapshots);
        over = undo_elsewhere(&s, before, after, ++n);
        start_again(&s, before);
    }
    CHECK(over);
    snapshot_world_end(&s);
    return n;
}

TEST(before_a_rename) {
    behind = false;
    CHECK_INT(kill_at_every_rename(), 6); /* five paths */
}

TEST(behind_a_rename) {
    behind = true;
    CHECK_INT(kill_at_every_rename(), 6);
}

TEST_MAIN(CASE(before_a_rename) CASE(behind_a_rename))

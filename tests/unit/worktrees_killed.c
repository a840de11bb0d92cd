/* kill -9 at every name that a merge, a merge with conflicts or a removal of a worktree changes: each link, rename and
 * removal of our own, before it and behind it. The next start finishes it or leaves it. Between programs of git it is done
 * to the real daemon, in tests/faults/worktree_merge.py. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "snapshot_world.h"
#include "worktrees.h"

#define TREE "state/worktrees/task-0001"

/* The change of a name of this number is not done any more: the process is killed instead. behind: just after it. */
static long kill_at, changes_made;
static bool behind;

static bool is_last(void) {
    bool last = kill_at && __atomic_add_fetch(&changes_made, 1, __ATOMIC_SEQ_CST) == kill_at;
    if (last && !behind)
        kill(getpid(), SIGKILL);
    return last;
}

/* The C library's, with a look at each. */
#define LOOKED_AT(name, params, ...)                                                                                        \
    int name params {                                                                                                       \
        static int(*real) params;                                                                                           \
        if (!real)                                                                                                          \
            *(void **) &real = dlsym(RTLD_NEXT, #name);                                                                     \
        bool last = is_last();                                                                                              \
        int r = real(__VA_ARGS__);                                                                                          \
        if (last)                                                                                                           \
            kill(getpid(), SIGKILL);                                                                                        \
        return r;                                                                                                           \
    }
LOOKED_AT(rename, (const char *from, const char *to), from, to)
LOOKED_AT(link, (const char *from, const char *to), from, to)
LOOKED_AT(unlink, (const char *path), path)
LOOKED_AT(remove, (const char *path), path)
LOOKED_AT(unlinkat, (int folder, const char *path, int flags), folder, path, flags)

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
    bool last = number == SYS_renameat2 && is_last();
    long r = real(number, args[0], args[1], args[2], args[3], args[4], args[5]);
    if (last)
        kill(getpid(), SIGKILL);
    return r;
}

/* ---- one world ---- */

typedef struct killed_world {
    snapshot_world s;
    char said[512];
    bool in_worktree;
    size_t count, merged; /* of a list; told at a start */
    weft_worktree_info info;
    int turn;
} killed_world;

static void on_made(void *ctx, const weft_worktree *made) {
    killed_world *k = ctx;
    k->s.answers++;
    k->s.r = made->r;
}

static void on_merged(void *ctx, const weft_merge_result *result) {
    killed_world *k = ctx;
    k->s.answers++;
    k->s.r = result->r;
    snprintf(k->said, sizeof k->said, "%s", result->listed ? result->conflicts[0].path : "");
    snprintf(k->s.message, sizeof k->s.message, "%s", result->message);
    k->in_worktree = result->in_worktree;
}

static void on_merged_again(void *ctx, const weft_merged *merged) {
    (void) merged;
    ((killed_world *) ctx)->merged++;
}

static void on_listed(void *ctx, const weft_worktree_list *list) {
    killed_world *k = ctx;
    k->s.answers++;
    k->s.r = list->r;
    k->count = list->count;
    k->info = list->count ? *list->list[0] : (weft_worktree_info){0};
}

static void open_world(killed_world *k) {
    CHECK_INT(snapshot_world_open(&k->s, "repo", (weft_snapshots_opts){.on_merged = on_merged_again}), 0);
}

static void close_world(killed_world *k) {
    k->s.snapshots = weft__snapshots_free(k->s.snapshots);
}

static int merge(killed_world *k) {
    weft_merge what = {.owner = "task-0001", .name = "task-0001", .branch = "weft/task-0001", .message = "agent\n"};
    int before = k->s.answers, r = weft__worktree_merge(k->s.snapshots, &what, on_merged, k);
    while (r >= 0 && k->s.answers == before)
        weft_loop_once(k->s.w.loop, true);
    return r < 0 ? r : k->s.r;
}

static int prune(killed_world *k, weft_prune how) {
    int before = k->s.answers, r = weft__worktree_prune(k->s.snapshots, &how, on_listed, k);
    while (r >= 0 && k->s.answers == before)
        weft_loop_once(k->s.w.loop, true);
    return r < 0 ? r : k->s.r;
}

static int discard(killed_world *k) {
    return prune(k, (weft_prune){.name = "task-0001", .force = true});
}

static void make_tree(killed_world *k) {
    weft_worktree_order order = {.owner = "task-0001", .asker = "x"};
    int before = k->s.answers;
    CHECK_INT(weft__worktree_make(k->s.snapshots, &order, on_made, k), 0);
    GIT_UNTIL(&k->s.w, k->s.answers > before);
    CHECK_INT(k->s.r, 0);
}

static const char *text_at(const killed_world *k, const char *path) {
    static char text[256];
    return small_file(at(&k->s.w, path), text, sizeof text);
}

static void begin_killed(killed_world *k) {
    memset(k, 0, sizeof *k);
    snapshot_world_begin(&k->s);
    close_world(k);
    open_world(k);
    make_tree(k);
    put(&k->s.w, "repo/mine", "mine\n");
}

/* In a process of its own, which is killed. true: it was not. */
static bool do_elsewhere(killed_world *k, long n, int (*work)(killed_world *)) {
    int status = 0;
    close_world(k);
    pid_t pid = fork();
    if (pid == 0) {
        weft_loop_new(NULL, &k->s.w.loop);
        open_world(k);
        kill_at = n;
        work(k);
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    open_world(k);
    k->merged = 0;
    return WIFEXITED(status);
}

static bool is_status(const killed_world *k, const char *folder) {
    return git_in(&k->s.w, folder, "diff", "--quiet", NULL) == 0 &&
           git_in(&k->s.w, folder, "diff", "--quiet", "--cached", NULL) == 0;
}

static void no_locks(const killed_world *k) {
    CHECK(!is_there(&k->s.w, "repo/.git/index.lock"));
    CHECK(!is_there(&k->s.w, "repo/.git/index.weft"));
    CHECK(!is_there(&k->s.w, "state/changes/index.lock"));
}

/* Some names change more often than once for a file; there are never as many as this. */
#define MOST 200

/* ---- a merge ---- */

static void work_in_tree(killed_world *k) {
    char text[64];
    k->turn++;
    snprintf(text, sizeof text, "agent %d\n1\n2\n3\n", k->turn);
    put(&k->s.w, TREE "/a", text);
    snprintf(text, sizeof text, TREE "/new%d", k->turn);
    put(&k->s.w, text, "new\n");
    snprintf(text, sizeof text, "other %d\n", k->turn);
    put(&k->s.w, "repo/other", text);
    GIT(&k->s.w, "add", "other");
    GIT(&k->s.w, "commit", "-qm", "other");
}

/* Behind the start it is merged, or it is as it was: the same call merges it then. */
static void merged_after_all(killed_world *k) {
    char text[64];
    CHECK_INT(prune(k, (weft_prune){.rest = true}), 0); /* waits for what the start does */
    CHECK(is_status(k, "repo"));
    no_locks(k);
    CHECK(k->merged <= 1);
    weft__worktree_merge_recorded(k->s.snapshots);
    int r = merge(k);
    CHECK(r == 0 || r == -EALREADY);
    if (k->merged)
        CHECK_INT(r, -EALREADY);
    CHECK_STR(k->said, "");
    weft__worktree_merge_recorded(k->s.snapshots);
    snprintf(text, sizeof text, "agent %d\n1\n2\n3\n", k->turn);
    CHECK_STR(text_at(k, "repo/a"), text);
    snprintf(text, sizeof text, "repo/new%d", k->turn);
    CHECK_STR(text_at(k, text), "new\n");
    snprintf(text, sizeof text, "other %d\n", k->turn);
    CHECK_STR(text_at(k, "repo/other"), text);
    CHECK_STR(text_at(k, "repo/mine"), "mine\n");
    CHECK(is_status(k, "repo"));
    CHECK(is_status(k, TREE));
    no_locks(k);
}

static void kill_in_merges(void) {
    killed_world k;
    bool over = false;
    long n = 0;
    begin_killed(&k);
    while (!over && n < MOST) {
        work_in_tree(&k);
        over = do_elsewhere(&k, ++n, merge);
        merged_after_all(&k);
    }
    CHECK(over && n > 10);
    GIT(&k.s.w, "fsck", "--strict");
    snapshot_world_end(&k.s);
}

TEST(before_a_name_of_a_merge) {
    behind = false;
    kill_in_merges();
}

TEST(behind_a_name_of_a_merge) {
    behind = true;
    kill_in_merges();
}

/* ---- conflicts ---- */

static void conflict_in_tree(killed_world *k) {
    char text[64];
    work_in_tree(k);
    snprintf(text, sizeof text, "person %d\n1\n2\n3\n", k->turn);
    put(&k->s.w, "repo/a", text);
    GIT(&k->s.w, "commit", "-qam", "person");
}

static void conflicted_after_all(killed_world *k) {
    char text[64], head[64];
    snprintf(head, sizeof head, "person %d\n1\n2\n3\n", k->turn);
    CHECK_INT(prune(k, (weft_prune){.rest = true}), 0);
    CHECK_STR(text_at(k, "repo/a"), head);
    CHECK(is_status(k, "repo"));
    CHECK_INT(merge(k), 0);
    CHECK_STR(k->said, "a");
    CHECK(k->in_worktree);
    CHECK(strstr(text_at(k, TREE "/a"), "<<<<<<< worktree") != NULL);
    snprintf(text, sizeof text, "other %d\n", k->turn);
    CHECK_STR(text_at(k, TREE "/other"), text);
    CHECK_INT(git_in(&k->s.w, TREE, "rev-parse", "-q", "--verify", "MERGE_HEAD", NULL), 0);
    snprintf(text, sizeof text, "agent %d\n1\n2\n3\n", k->turn);
    put(&k->s.w, TREE "/a", text);
    merged_after_all(k);
}

static void kill_in_conflicts(void) {
    killed_world k;
    bool over = false;
    long n = 0;
    begin_killed(&k);
    while (!over && n < MOST) {
        conflict_in_tree(&k);
        over = do_elsewhere(&k, ++n, merge);
        conflicted_after_all(&k);
    }
    CHECK(over && n > 10);
    snapshot_world_end(&k.s);
}

TEST(before_a_name_of_conflicts) {
    behind = false;
    kill_in_conflicts();
}

TEST(behind_a_name_of_conflicts) {
    behind = true;
    kill_in_conflicts();
}

/* ---- a removal ---- */

/* Somebody has said that it may go: it goes whole, at the next start or with the same call. */
static void removed_after_all(killed_world *k) {
    CHECK_INT(prune(k, (weft_prune){.rest = true}), 0);
    bool begun = k->count && k->info.removed;
    CHECK_INT(discard(k), 0);
    CHECK(begun || !k->count || k->info.removed);
    CHECK(!is_there(&k->s.w, TREE));
    CHECK_INT(git_in(&k->s.w, "repo", "rev-parse", "--verify", "-q", "weft/task-0001", NULL), 1);
    CHECK_STR(text_at(k, "repo/mine"), "mine\n");
    CHECK(is_status(k, "repo"));
    weft__worktree_forget(k->s.snapshots, "task-0001");
    make_tree(k);
}

static void kill_in_removals(void) {
    killed_world k;
    bool over = false;
    long n = 0;
    begin_killed(&k);
    while (!over && n < MOST) {
        put(&k.s.w, TREE "/a", "work\n");
        dir(&k.s.w, TREE "/deep");
        put(&k.s.w, TREE "/deep/x", "x\n");
        over = do_elsewhere(&k, ++n, discard);
        removed_after_all(&k);
    }
    CHECK(over && n > 5);
    GIT(&k.s.w, "fsck", "--strict");
    snapshot_world_end(&k.s);
}

TEST(before_a_name_of_a_removal) {
    behind = false;
    kill_in_removals();
}

TEST(behind_a_name_of_a_removal) {
    behind = true;
    kill_in_removals();
}

TEST_MAIN(CASE(before_a_name_of_a_merge) CASE(behind_a_name_of_a_merge) CASE(before_a_name_of_conflicts)
              CASE(behind_a_name_of_conflicts) CASE(before_a_name_of_a_removal) CASE(behind_a_name_of_a_removal))

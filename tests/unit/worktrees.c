/* Worktrees for tasks: what is made, what is left alone, and beginning anew after each way of being interrupted. */
#include "worktrees.h"

#include <errno.h>

#include "snapshot_world.h"

typedef struct tree_world {
    snapshot_world s;
    char name[64], branch[96], base[WEFT_SNAPSHOT_HEX];
} tree_world;

static void on_made(void *ctx, const weft_worktree *made) {
    tree_world *t = ctx;
    t->s.answers++;
    t->s.r = made->r;
    snprintf(t->s.message, sizeof t->s.message, "%s", made->message);
    snprintf(t->name, sizeof t->name, "%s", made->name);
    snprintf(t->branch, sizeof t->branch, "%s", made->branch);
    snprintf(t->base, sizeof t->base, "%s", made->base);
}

static int make(tree_world *t, const char *owner, bool changes) {
    weft_worktree_order order = {.owner = owner, .asker = owner, .changes = changes};
    int before = t->s.answers;
    int r = weft__worktree_make(t->s.snapshots, &order, on_made, t);
    if (r < 0)
        return r;
    GIT_UNTIL(&t->s.w, t->s.answers > before);
    return t->s.r;
}

static const char *text_at(const tree_world *t, const char *path) {
    static char text[256];
    return small_file(at(&t->s.w, path), text, sizeof text);
}

TEST(made_once) {
    tree_world t;
    char path[PATH_MAX];
    snapshot_world_begin(&t.s);
    CHECK_INT(weft__worktree_path(t.s.snapshots, "task-0001", path), -ENOENT);
    CHECK_INT(make(&t, "task-0001", false), 0);
    CHECK_STR(t.name, "task-0001");
    CHECK_STR(t.branch, "weft/task-0001");
    CHECK_STR(text_at(&t, "state/worktrees/task-0001/sub/b"), "b\n");
    CHECK_INT(git_in(&t.s.w, "state/worktrees/task-0001", "diff", "--quiet", "HEAD", NULL), 0);
    CHECK_INT(weft__worktree_path(t.s.snapshots, "task-0001", path), 0);
    put(&t.s.w, "state/worktrees/task-0001/a", "work\n");
    CHECK_INT(make(&t, "task-0001", false), 0);
    CHECK_STR(text_at(&t, "state/worktrees/task-0001/a"), "work\n");
    CHECK_STR(text_at(&t, "repo/a"), "1\n2\n3\n");
    CHECK_INT(make(&t, "../x", false), -EINVAL);
    CHECK_INT(make(&t, "", false), -EINVAL);
    CHECK_INT(weft__worktree_path(t.s.snapshots, "../repo", path), -ENOENT);
    snapshot_world_end(&t.s);
}

TEST(with_changes) {
    tree_world t;
    snapshot_world_begin(&t.s);
    put(&t.s.w, "repo/a", "changed\n");
    put(&t.s.w, "repo/new", "new\n");
    CHECK_INT(make(&t, "task-0001", true), 0);
    CHECK_STR(text_at(&t, "state/worktrees/task-0001/a"), "changed\n");
    CHECK_STR(text_at(&t, "state/worktrees/task-0001/new"), "new\n");
    CHECK_INT(git_in(&t.s.w, "state/worktrees/task-0001", "diff", "--quiet", "--cached", "HEAD", NULL), 0);
    CHECK_INT(git_in(&t.s.w, "state/worktrees/task-0001", "diff", "--quiet", NULL), 1);
    snapshot_world_end(&t.s);
}

/* A branch, a folder or a record of somebody else's is left alone. */
TEST(names_that_are_taken) {
    tree_world t;
    snapshot_world_begin(&t.s);
    GIT(&t.s.w, "branch", "weft/task-0001");
    CHECK_INT(mkdir(at(&t.s.w, "state/worktrees"), 0700), 0);
    CHECK_INT(mkdir(at(&t.s.w, "state/worktrees/task-0001-2"), 0700), 0);
    put(&t.s.w, "state/worktrees/task-0001-2/mine", "mine\n");
    CHECK_INT(mkdir(at(&t.s.w, "state/worktrees/task-0001-3.state"), 0700), 0);
    put(&t.s.w, "state/worktrees/task-0001-3.state/record", "another\ntask-0001\nmaking\nweft/x\n");
    CHECK_INT(make(&t, "task-0001", false), 0);
    CHECK_STR(t.name, "task-0001-4");
    CHECK_STR(t.branch, "weft/task-0001-4");
    CHECK_STR(text_at(&t, "state/worktrees/task-0001-2/mine"), "mine\n");
    CHECK_INT(make(&t, "task-0001", false), 0);
    CHECK_STR(t.name, "task-0001-4");
    snapshot_world_end(&t.s);
}

/* As if the daemon had ended: the record says that it was only begun. */
static void unmake(const tree_world *t) {
    char text[512];
    snprintf(text, sizeof text, "-\ntask-0001\nmaking\n%s\n%s\n", t->branch, t->base);
    put(&t->s.w, "state/worktrees/task-0001.state/record", text);
}

TEST(begun_anew) {
    tree_world t;
    snapshot_world_begin(&t.s);
    CHECK_INT(make(&t, "task-0001", false), 0);
    unmake(&t);
    put(&t.s.w, "state/worktrees/task-0001/half", "x\n");
    CHECK_INT(make(&t, "task-0001", false), 0);
    CHECK_STR(t.name, "task-0001");
    CHECK(!is_there(&t.s.w, "state/worktrees/task-0001/half"));
    unmake(&t);
    test_remove(at(&t.s.w, "state/worktrees/task-0001"));
    CHECK_INT(make(&t, "task-0001", false), 0);
    CHECK_STR(text_at(&t, "state/worktrees/task-0001/a"), "1\n2\n3\n");
    /* Somebody has committed to the branch: it is not ours to remove. */
    CHECK_INT(git_in(&t.s.w, "state/worktrees/task-0001", "commit", "-q", "--allow-empty", "-m", "theirs", NULL), 0);
    unmake(&t);
    CHECK_INT(make(&t, "task-0001", false), -EREMOTEIO);
    CHECK_INT(git_in(&t.s.w, "repo", "rev-parse", "--verify", "weft/task-0001^", NULL), 0);
    snapshot_world_end(&t.s);
}

TEST(gone_is_refused) {
    tree_world t;
    snapshot_world_begin(&t.s);
    CHECK_INT(make(&t, "task-0001", false), 0);
    test_remove(at(&t.s.w, "state/worktrees/task-0001"));
    CHECK_INT(make(&t, "task-0001", false), -EREMOTEIO);
    CHECK(strstr(t.s.message, "was removed") != NULL);
    snapshot_world_end(&t.s);
}

/* Snapshots of its own, and a limit. */
TEST(snapshots_of_its_own) {
    tree_world t;
    weft_snapshots *one = NULL, *again = NULL;
    snapshot_world_begin(&t.s);
    CHECK_INT(weft__worktree_snapshots(t.s.snapshots, "task-0001", &one), -ENOENT);
    CHECK_INT(make(&t, "task-0001", false), 0);
    CHECK_INT(weft__worktree_snapshots(t.s.snapshots, "task-0001", &one), 0);
    CHECK_INT(weft__worktree_snapshots(t.s.snapshots, "task-0001", &again), 0);
    CHECK(one == again && one != t.s.snapshots);
    for (int i = 2; i <= WEFT_WORKTREES; i++) {
        char name[64], path[128];
        snprintf(name, sizeof name, "t-%d", i);
        snprintf(path, sizeof path, "state/worktrees/t-%d", i);
        CHECK_INT(mkdir(at(&t.s.w, path), 0700), 0);
        snprintf(path, sizeof path, "state/worktrees/t-%d.state", i);
        CHECK_INT(mkdir(at(&t.s.w, path), 0700), 0);
        CHECK_INT(weft__worktree_snapshots(t.s.snapshots, name, &again), 0);
    }
    CHECK_INT(mkdir(at(&t.s.w, "state/worktrees/more"), 0700), 0);
    CHECK_INT(weft__worktree_snapshots(t.s.snapshots, "more", &again), -EMFILE);
    snapshot_world_end(&t.s);
}

TEST_MAIN(CASE(made_once) CASE(with_changes) CASE(names_that_are_taken) CASE(begun_anew) CASE(gone_is_refused)
              CASE(snapshots_of_its_own))

/* Bringing the work of worktrees into real repositories: what is merged, what is in the way, what is nowhere else, and that
 * nothing of the repository runs. */
#include <errno.h>
#include <fcntl.h>

#include "merge_world.h"

#define TREE "state/worktrees/task-0001"

static void make_tree(merge_world *m) {
    merge_world_make(m, "task-0001", false);
}

static int merge(merge_world *m, weft_merge_how how) {
    return merge_world_merge(m, "task-0001", how);
}

static void on_listed(void *ctx, const weft_worktree_list *list) {
    merge_world *m = ctx;
    m->s.answers++;
    m->s.r = list->r;
    m->count = list->count;
    snprintf(m->s.message, sizeof m->s.message, "%s", list->r < 0 ? list->message : "");
    if (list->count == 1) {
        m->info = *list->list[0];
        snprintf(m->s.message, sizeof m->s.message, "%s", m->info.why_not ? m->info.why_not : "");
    }
}

static int look(merge_world *m) {
    int before = m->s.answers;
    CHECK_INT(weft__worktree_list(m->s.snapshots, on_listed, m), 0);
    GIT_UNTIL(&m->s.w, m->s.answers > before);
    return m->s.r;
}

static bool prune(merge_world *m, weft_prune how) {
    int before = m->s.answers;
    CHECK_INT(weft__worktree_prune(m->s.snapshots, &how, on_listed, m), 0);
    GIT_UNTIL(&m->s.w, m->s.answers > before);
    return m->s.r == 0 && m->count == 1 && m->info.removed;
}

static const char *text_at(const merge_world *m, const char *path) {
    static char text[256];
    return small_file(at(&m->s.w, path), text, sizeof text);
}

static void begin_merge(merge_world *m) {
    memset(m, 0, sizeof *m);
    snapshot_world_begin(&m->s);
    make_tree(m);
}

#define IS_CLEAN(m, folder)                                                                                                 \
    do {                                                                                                                    \
        CHECK_INT(git_in(&(m)->s.w, folder, "diff", "--quiet", NULL), 0);                                                   \
        CHECK_INT(git_in(&(m)->s.w, folder, "diff", "--quiet", "--cached", NULL), 0);                                       \
    } while (0)

/* ---- what is merged ---- */

TEST(merged_each_way) {
    for (weft_merge_how how = 0; how < WEFT_MERGE_HOWS; how++)
        for (int moved = 0; moved < 2; moved++) {
            merge_world m;
            test_row(weft__merge_hows[how]);
            begin_merge(&m);
            put(&m.s.w, TREE "/a", "1\n2\n3\nagent\n");
            put(&m.s.w, TREE "/new", "new\n");
            put(&m.s.w, TREE "/with\nline", "odd\n");
            CHECK_INT(symlink("nowhere", at(&m.s.w, TREE "/link")), 0);
            CHECK_INT(chmod(at(&m.s.w, TREE "/sub/b"), 0755), 0);
            if (moved) {
                put(&m.s.w, "repo/other", "other\n");
                GIT(&m.s.w, "add", "other");
                GIT(&m.s.w, "commit", "-qm", "other");
            }
            put(&m.s.w, "repo/mine", "mine\n");
            put(&m.s.w, "repo/staged", "staged\n");
            GIT(&m.s.w, "add", "staged");
            CHECK_INT(merge(&m, how), 0);
            CHECK_STR(m.said, "");
            CHECK_INT(m.committed, true);
            CHECK_INT((int) m.files, 5);
            CHECK_STR(text_at(&m, "repo/a"), "1\n2\n3\nagent\n");
            CHECK_STR(text_at(&m, "repo/new"), "new\n");
            CHECK_STR(text_at(&m, "repo/with\nline"), "odd\n");
            CHECK_INT(access(at(&m.s.w, "repo/sub/b"), X_OK), 0);
            CHECK_INT(git_in(&m.s.w, "repo", "diff", "--quiet", NULL), 0);
            CHECK_INT(git_in(&m.s.w, "repo", "diff", "--quiet", "--cached", "--", ":!staged", NULL), 0);
            CHECK_INT(git_in(&m.s.w, "repo", "diff", "--quiet", "--cached", "--", "staged", NULL), 1);
            CHECK_STR(text_at(&m, "repo/mine"), "mine\n");
            IS_CLEAN(&m, TREE);
            CHECK_INT(merge(&m, how), -EALREADY);
            CHECK_INT(look(&m), 0);
            CHECK(!weft__worktree_holds(&m.info));
            CHECK(prune(&m, (weft_prune){0}));
            CHECK(!is_there(&m.s.w, TREE));
            CHECK_INT(git_in(&m.s.w, "repo", "rev-parse", "--verify", "-q", "weft/task-0001", NULL), 1);
            snapshot_world_end(&m.s);
        }
    test_row(NULL);
}

/* The branch's own commits stay; a merge in it is not for a rebase. */
TEST(commits_of_the_agent) {
    merge_world m;
    begin_merge(&m);
    put(&m.s.w, TREE "/a", "first\n");
    CHECK_INT(git_in(&m.s.w, TREE, "commit", "-qam", "one", NULL), 0);
    put(&m.s.w, "repo/other", "other\n");
    GIT(&m.s.w, "add", "other");
    GIT(&m.s.w, "commit", "-qm", "other");
    CHECK_INT(git_in(&m.s.w, TREE, "merge", "-q", "main", NULL), 0);
    CHECK_INT(merge(&m, WEFT_MERGE_REBASE), -EREMOTEIO);
    CHECK(strstr(m.s.message, "has merges in it"));
    CHECK_INT(merge(&m, WEFT_MERGE_SQUASH), 0);
    CHECK_INT(m.committed, false);
    CHECK_STR(text_at(&m, "repo/a"), "first\n");
    snapshot_world_end(&m.s);
}

/* What git tracks though it ignores it, what it no longer tracks, and the hub's own files that are tracked. */
TEST(what_git_would_commit) {
    merge_world m;
    memset(&m, 0, sizeof m);
    snapshot_world_begin(&m.s);
    put(&m.s.w, "repo/.gitignore", "*.o\n");
    put(&m.s.w, "repo/secret", "s\n");
    put(&m.s.w, "repo/old.o", "old\n");
    dir(&m.s.w, "repo/.weft");
    put(&m.s.w, "repo/.weft/config.json", "{}\n");
    GIT(&m.s.w, "add", "-f", ".");
    GIT(&m.s.w, "commit", "-qm", "more");
    make_tree(&m);
    char tree[WEFT_SNAPSHOT_HEX];
    CHECK_INT(snapshot_world_take(&m.s, NULL, tree), 0);
    weft_snapshots *project = m.s.snapshots;
    CHECK_INT(weft__worktree_snapshots(project, "task-0001", &m.s.snapshots), 0);
    CHECK_INT(snapshot_world_take(&m.s, NULL, tree), 0);
    m.s.snapshots = project;
    put(&m.s.w, TREE "/new.o", "new\n");
    put(&m.s.w, TREE "/staged.o", "staged\n");
    put(&m.s.w, TREE "/not.o", "not\n");
    put(&m.s.w, TREE "/.gitignore", "*.o\nsecret\n");
    CHECK_INT(git_in(&m.s.w, TREE, "add", "-f", "new.o", NULL), 0);
    CHECK_INT(git_in(&m.s.w, TREE, "rm", "-q", "--cached", "secret", NULL), 0);
    CHECK_INT(git_in(&m.s.w, TREE, "commit", "-qm", "by the agent", NULL), 0);
    CHECK_INT(git_in(&m.s.w, TREE, "add", "-f", "staged.o", NULL), 0);
    CHECK_INT(git_in(&m.s.w, TREE, "rm", "-q", "--cached", "old.o", NULL), 0);
    put(&m.s.w, TREE "/a", "agent\n");
    CHECK_INT(merge(&m, WEFT_MERGE_MERGE), 0);
    CHECK_STR(m.said, "");
    CHECK_STR(text_at(&m, "repo/a"), "agent\n");
    CHECK_STR(text_at(&m, "repo/new.o"), "new\n");
    CHECK_STR(text_at(&m, "repo/staged.o"), "staged\n");
    CHECK(!is_there(&m.s.w, "repo/not.o") && !is_there(&m.s.w, "repo/secret") && !is_there(&m.s.w, "repo/old.o"));
    CHECK_STR(text_at(&m, "repo/.weft/config.json"), "{}\n");
    CHECK_INT(git_in(&m.s.w, "repo", "cat-file", "-e", "HEAD:.weft/config.json", NULL), 0);
    CHECK_INT(git_in(&m.s.w, "repo", "cat-file", "-e", "HEAD:secret", NULL), 128);
    IS_CLEAN(&m, "repo");
    /* What the agent does to the hub's own is not for Weft to bring in. */
    put(&m.s.w, TREE "/.weft/config.json", "{\"agents\":{}}\n");
    CHECK_INT(git_in(&m.s.w, TREE, "commit", "-qam", "by the agent", NULL), 0);
    CHECK_INT(merge(&m, WEFT_MERGE_MERGE), 0);
    CHECK_STR(m.said, ".weft/config.json closed");
    CHECK_STR(text_at(&m, "repo/.weft/config.json"), "{}\n");
    snapshot_world_end(&m.s);
}

/* ---- a worktree that is none any more ---- */

static void remove_dot_git(merge_world *m) {
    unlink(at(&m->s.w, TREE "/.git"));
}
static void make_another(merge_world *m) {
    remove_dot_git(m);
    CHECK_INT(git_in(&m->s.w, TREE, "init", "-q", NULL), 0);
}
static void put_link(merge_world *m) {
    CHECK_INT(rename(at(&m->s.w, TREE), at(&m->s.w, "moved")), 0);
    CHECK_INT(symlink("../../outside", at(&m->s.w, TREE)), 0);
}
static void remove_it(merge_world *m) {
    test_remove(at(&m->s.w, TREE));
}

/* It lies in the project's folder: without a .git of its own, git would take it for a part of that. */
TEST(not_a_worktree_any_more) {
    static const struct {
        const char *name, *said;
        void (*set)(merge_world *m);
    } rows[] = {
        {"no .git", "not the worktree any more", remove_dot_git},
        {"another repository", "not the worktree any more", make_another},
        {"a link", "something else in the place of the worktree", put_link},
        {"gone", "is not there any more", remove_it},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        merge_world m;
        char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
        test_row(rows[i].name);
        begin_merge(&m);
        dir(&m.s.w, "outside");
        weft_snapshots *project = m.s.snapshots;
        CHECK_INT(weft__worktree_snapshots(project, "task-0001", &m.s.snapshots), 0);
        CHECK_INT(snapshot_world_take(&m.s, "task-0001.before", before), 0);
        put(&m.s.w, TREE "/a", "agent\n");
        CHECK_INT(snapshot_world_take(&m.s, "task-0001.after", after), 0);
        rows[i].set(&m);
        CHECK_INT(snapshot_world_take(&m.s, NULL, NULL), -EREMOTEIO);
        CHECK(strstr(m.s.message, rows[i].said));
        CHECK_INT(UNDO(&m.s, .before = before, .after = after), -EREMOTEIO);
        m.s.snapshots = project;
        CHECK_INT(merge(&m, WEFT_MERGE_MERGE), -EREMOTEIO);
        CHECK(strstr(m.s.message, rows[i].said));
        CHECK(!is_there(&m.s.w, "outside/a"));
        CHECK_STR(text_at(&m, "repo/a"), "1\n2\n3\n");
        CHECK_INT(git_in(&m.s.w, "repo", "fsck", "--no-dangling", NULL), 0);
        snapshot_world_end(&m.s);
    }
    test_row(NULL);
}

/* ---- what is in the way ---- */

typedef struct way {
    const char *name, *said;
    void (*set)(merge_world *m);
} way;

static void change_it(merge_world *m) {
    put(&m->s.w, "repo/a", "mine\n");
}
static void stage_it(merge_world *m) {
    put(&m->s.w, "repo/a", "mine\n");
    GIT(&m->s.w, "add", "a");
    put(&m->s.w, "repo/a", "1\n2\n3\n");
}
static void delete_it(merge_world *m) {
    unlink(at(&m->s.w, "repo/a"));
}
static void have_it(merge_world *m) {
    put(&m->s.w, "repo/new", "mine\n");
}
static void ignore_it(merge_world *m) {
    put(&m->s.w, "repo/.gitignore", "new\n.gitignore\n");
    put(&m->s.w, "repo/new", "mine\n");
}
static void have_a_folder(merge_world *m) {
    dir(&m->s.w, "repo/new");
    put(&m->s.w, "repo/new/inner", "mine\n");
}

static const way ways[] = {
    {"changed", "a changed", change_it}, {"staged", "a staged", stage_it},       {"deleted", "a deleted", delete_it},
    {"exists", "new exists", have_it},   {"ignored", "new inTheWay", ignore_it}, {"a folder", "new inTheWay", have_a_folder},
};

TEST(work_of_the_person_is_in_the_way) {
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        merge_world m;
        test_row(ways[i].name);
        begin_merge(&m);
        put(&m.s.w, TREE "/a", "agent\n");
        put(&m.s.w, TREE "/new", "new\n");
        put(&m.s.w, TREE "/z", "z\n");
        ways[i].set(&m);
        CHECK_INT(merge(&m, WEFT_MERGE_MERGE), 0);
        CHECK_STR(m.said, ways[i].said);
        CHECK(!m.in_worktree);
        CHECK(!is_there(&m.s.w, "repo/z"));
        CHECK(!is_there(&m.s.w, "repo/.git/index.lock"));
        CHECK(!is_there(&m.s.w, "repo/.git/index.weft"));
        CHECK_INT(git_in(&m.s.w, "repo", "merge-base", "--is-ancestor", "weft/task-0001", "main", NULL), 1);
        CHECK_INT(git_in(&m.s.w, "repo", "log", "-1", "--grep=first", "--exit-code", NULL) > 1, false);
        snapshot_world_end(&m.s);
    }
    test_row(NULL);
}

/* What is so already is not in the way. */
TEST(the_same_on_both_sides) {
    merge_world m;
    begin_merge(&m);
    put(&m.s.w, TREE "/a", "same\n");
    put(&m.s.w, "repo/a", "same\n");
    CHECK_INT(merge(&m, WEFT_MERGE_MERGE), 0);
    CHECK_STR(m.said, "");
    IS_CLEAN(&m, "repo");
    snapshot_world_end(&m.s);
}

static void refused(merge_world *m, const char *words) {
    CHECK_INT(merge(m, WEFT_MERGE_MERGE), -EREMOTEIO);
    CHECK(strstr(m->s.message, words) != NULL);
}

TEST(refused_in_words) {
    merge_world m;
    begin_merge(&m);
    put(&m.s.w, TREE "/a", "agent\n");
    put(&m.s.w, "repo/.git/index.lock", "");
    refused(&m, "another git is at work");
    CHECK(is_there(&m.s.w, "repo/.git/index.lock"));
    unlink(at(&m.s.w, "repo/.git/index.lock"));
    /* Logs that lead elsewhere: git would write there. */
    static const char *const logs[] = {"repo/.git/logs/HEAD", "repo/.git/logs/refs/heads/main",
                                       "repo/.git/logs/refs/heads/weft/task-0001", "repo/.git/logs/refs"};
    put(&m.s.w, "outside", "");
    dir(&m.s.w, "repo/.git/logs/refs/heads/weft");
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        put(&m.s.w, TREE "/a", logs[i]); /* to be committed */
        CHECK(rename(at(&m.s.w, logs[i]), at(&m.s.w, "log")) == 0 || errno == ENOENT);
        CHECK_INT(symlink(at(&m.s.w, "outside"), at(&m.s.w, logs[i])), 0);
        refused(&m, "links to somewhere else");
        unlink(at(&m.s.w, logs[i]));
        CHECK(rename(at(&m.s.w, "log"), at(&m.s.w, logs[i])) == 0 || errno == ENOENT);
    }
    CHECK_STR(text_at(&m, "outside"), "");
    dir(&m.s.w, "repo/.git/rebase-merge");
    refused(&m, "a rebase is under way in the project's folder");
    rmdir(at(&m.s.w, "repo/.git/rebase-merge"));
    GIT(&m.s.w, "checkout", "-q", "--detach");
    refused(&m, "no branch is checked out in the project's folder");
    GIT(&m.s.w, "checkout", "-q", "main");
    CHECK_INT(git_in(&m.s.w, TREE, "checkout", "-q", "-b", "elsewhere", NULL), 0);
    refused(&m, "the branch elsewhere is checked out in the worktree");
    CHECK_INT(git_in(&m.s.w, TREE, "checkout", "-q", "weft/task-0001", NULL), 0);
    dir(&m.s.w, TREE "/inner");
    CHECK_INT(git_in(&m.s.w, TREE "/inner", "init", "-q", NULL), 0);
    CHECK_INT(git_in(&m.s.w, TREE "/inner", "commit", "-q", "--allow-empty", "-m", "x", NULL), 0);
    refused(&m, "a repository of its own");
    CHECK_STR(text_at(&m, "repo/a"), "1\n2\n3\n");
    snapshot_world_end(&m.s);
}

/* ---- conflicts ---- */

TEST(conflicts_are_left_in_the_worktree) {
    merge_world m;
    begin_merge(&m);
    put(&m.s.w, TREE "/a", "1\nagent\n3\n");
    put(&m.s.w, TREE "/sub/b", "agent\n");
    put(&m.s.w, "repo/a", "1\nperson\n3\n");
    GIT(&m.s.w, "rm", "-q", "sub/b");
    put(&m.s.w, "repo/c", "c\n");
    GIT(&m.s.w, "add", ".");
    GIT(&m.s.w, "commit", "-qm", "person");
    CHECK_INT(merge(&m, WEFT_MERGE_MERGE), 0);
    CHECK_STR(m.said, "a conflict|sub/b conflict");
    CHECK(m.in_worktree);
    CHECK_STR(text_at(&m, TREE "/a"), "1\n<<<<<<< worktree\nagent\n=======\nperson\n>>>>>>> project\n3\n");
    CHECK_STR(text_at(&m, TREE "/c"), "c\n");
    CHECK_STR(text_at(&m, "repo/a"), "1\nperson\n3\n");
    IS_CLEAN(&m, "repo");
    CHECK_INT(merge(&m, WEFT_MERGE_MERGE), 0);
    CHECK_STR(m.said, "a marked");
    CHECK_INT(look(&m), 0);
    CHECK(m.info.merging);
    CHECK(!prune(&m, (weft_prune){0}));
    put(&m.s.w, TREE "/a", "1\nboth\n3\n");
    CHECK_INT(merge(&m, WEFT_MERGE_SQUASH), 0);
    CHECK_STR(m.said, "");
    CHECK_STR(text_at(&m, "repo/a"), "1\nboth\n3\n");
    CHECK_STR(text_at(&m, "repo/sub/b"), "agent\n");
    IS_CLEAN(&m, "repo");
    IS_CLEAN(&m, TREE);
    snapshot_world_end(&m.s);
}

/* A session goes on behind a merge, and conflicts once more: what was solved then is merged, too. */
TEST(conflicts_a_second_time) {
    static const weft_merge_how hows[] = {WEFT_MERGE_MERGE, WEFT_MERGE_SQUASH};
    for (size_t i = 0; i < 2; i++) {
        merge_world m;
        test_row(weft__merge_hows[hows[i]]);
        begin_merge(&m);
        for (int turn = 1; turn <= 3; turn++) {
            char text[64], solved[64];
            snprintf(text, sizeof text, "agent %d\n2\n3\n", turn);
            put(&m.s.w, TREE "/a", text);
            snprintf(text, sizeof text, "person %d\n2\n3\n", turn);
            put(&m.s.w, "repo/a", text);
            GIT(&m.s.w, "commit", "-qam", "person");
            CHECK_INT(merge(&m, hows[i]), 0);
            CHECK_STR(m.said, "a conflict");
            snprintf(solved, sizeof solved, "both %d\n2\n3\n", turn);
            put(&m.s.w, TREE "/a", solved);
            CHECK_INT(merge(&m, hows[i]), 0);
            CHECK_STR(m.said, "");
            CHECK_STR(text_at(&m, "repo/a"), solved);
            IS_CLEAN(&m, "repo");
        }
        snapshot_world_end(&m.s);
    }
    test_row(NULL);
}

/* ---- what is nowhere else ---- */

TEST(never_removed_with_work) {
    merge_world m;
    begin_merge(&m);
    CHECK_INT(look(&m), 0);
    CHECK_INT((int) m.count, 1);
    CHECK(!weft__worktree_holds(&m.info));
    CHECK(m.info.bytes > 0 && m.info.files == 3);
    put(&m.s.w, TREE "/a", "work\n");
    CHECK(!prune(&m, (weft_prune){0}));
    CHECK_INT((int) m.info.changed, 1);
    /* Not even if the agent has told git not to look. */
    CHECK_INT(git_in(&m.s.w, TREE, "update-index", "--assume-unchanged", "a", NULL), 0);
    CHECK(!prune(&m, (weft_prune){0}));
    CHECK_INT(git_in(&m.s.w, TREE, "update-index", "--no-assume-unchanged", "a", NULL), 0);
    CHECK_INT(git_in(&m.s.w, TREE, "checkout", "-q", "a", NULL), 0);
    put(&m.s.w, TREE "/new", "new\n");
    CHECK(!prune(&m, (weft_prune){0}));
    CHECK_INT((int) m.info.unknown, 1);
    CHECK_INT(git_in(&m.s.w, TREE, "add", "new", NULL), 0);
    CHECK_INT(git_in(&m.s.w, TREE, "commit", "-qm", "new", NULL), 0);
    CHECK(!prune(&m, (weft_prune){0}));
    CHECK_INT((int) m.info.commits, 1);
    /* On a commit that no branch has. */
    CHECK_INT(git_in(&m.s.w, TREE, "checkout", "-q", "--detach", NULL), 0);
    CHECK_INT(git_in(&m.s.w, TREE, "commit", "-q", "--allow-empty", "-m", "more", NULL), 0);
    GIT(&m.s.w, "branch", "-q", "keeps", "weft/task-0001");
    CHECK(!prune(&m, (weft_prune){0}));
    CHECK_INT((int) m.info.commits, 1);
    CHECK_INT(git_in(&m.s.w, TREE, "branch", "-q", "-f", "keeps", "HEAD", NULL), 0);
    static const char *const busy[] = {"task-0001", NULL};
    CHECK(!prune(&m, (weft_prune){.busy = busy}));
    CHECK(!prune(&m, (weft_prune){.dry = true}));
    /* A cache that nobody may write, and that git ignores. */
    put(&m.s.w, "repo/.git/info/exclude", "cache\n");
    dir(&m.s.w, TREE "/cache");
    put(&m.s.w, TREE "/cache/x", "x\n");
    CHECK_INT(chmod(at(&m.s.w, TREE "/cache"), 0500), 0);
    /* Folders in folders, beyond what a path can name. */
    int in = open(at(&m.s.w, TREE "/cache"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_INT(fchmod(in, 0700), 0);
    for (int i = 0; i < 500; i++) {
        CHECK_INT(mkdirat(in, "a-folder-in-a-folder", 0700), 0);
        int inner = openat(in, "a-folder-in-a-folder", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(in);
        in = inner;
    }
    close(in);
    CHECK_INT(chmod(at(&m.s.w, TREE "/cache"), 0500), 0);
    CHECK(is_there(&m.s.w, TREE));
    CHECK(prune(&m, (weft_prune){0}));
    CHECK(!is_there(&m.s.w, TREE));
    snapshot_world_end(&m.s);
}

/* What another journal, or a clone, brought is left alone. */
TEST(not_ours) {
    merge_world m;
    begin_merge(&m);
    put(&m.s.w, TREE ".state/record",
        "somebody\ntask-0001\nmade\nweft/task-0001\n"
        "0123456789012345678901234567890123456789\n");
    CHECK_INT(look(&m), 0);
    CHECK_INT((int) m.count, 0);
    CHECK(!prune(&m, (weft_prune){0}));
    CHECK(is_there(&m.s.w, TREE));
    CHECK_INT(weft__worktree_prune(m.s.snapshots, &(weft_prune){.name = "../x"}, on_listed, &m), -EINVAL);
    snapshot_world_end(&m.s);
}

/* ---- repositories that mean harm ---- */

TEST(nothing_of_theirs_runs) {
    static const char *const hooks[] = {
        "pre-commit",   "commit-msg",    "post-commit",           "pre-merge-commit",  "post-merge",        "pre-rebase",
        "post-rewrite", "post-checkout", "reference-transaction", "post-index-change", "prepare-commit-msg"};
    char text[512], name[64];
    merge_world m;
    begin_merge(&m);
    snprintf(text, sizeof text, "#!/bin/sh\nprintf x >'%s/ran'\nexit 0\n", m.s.w.folder);
    script(&m.s.w, "evil", text);
    for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++) {
        snprintf(name, sizeof name, "repo/.git/hooks/%s", hooks[i]);
        script(&m.s.w, name, text);
    }
    const char *evil = at(&m.s.w, "evil");
    char program[PATH_MAX];
    snprintf(program, sizeof program, "%s", evil);
    put(&m.s.w, "repo/.git/info/attributes", "* merge=evil filter=evil diff=evil\n");
    GIT(&m.s.w, "config", "merge.evil.driver", program);
    GIT(&m.s.w, "config", "filter.evil.clean", program);
    GIT(&m.s.w, "config", "filter.evil.smudge", program);
    GIT(&m.s.w, "config", "diff.evil.textconv", program);
    GIT(&m.s.w, "config", "core.fsmonitor", program);
    GIT(&m.s.w, "config", "gpg.program", program);
    GIT(&m.s.w, "config", "commit.gpgSign", "true");
    GIT(&m.s.w, "config", "core.editor", program);
    put(&m.s.w, TREE "/.gitattributes", "* merge=evil filter=evil\n");
    put(&m.s.w, TREE "/a", "0\n1\n2\n3\n");
    unlink(at(&m.s.w, "repo/.git/hooks/reference-transaction"));
    put(&m.s.w, "repo/a", "1\n2\n3\n4\n");
    GIT(&m.s.w, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false", "-c",
        "filter.evil.clean=cat", "commit", "-qam", "person");
    script(&m.s.w, "repo/.git/hooks/reference-transaction", text);
    unlink(at(&m.s.w, "ran"));
    CHECK_INT(merge(&m, WEFT_MERGE_MERGE), 0);
    CHECK_STR(m.said, "");
    CHECK(!is_there(&m.s.w, "ran"));
    CHECK_STR(text_at(&m, "repo/a"), "0\n1\n2\n3\n4\n");
    put(&m.s.w, TREE "/a", "9\n0\n1\n2\n3\n");
    CHECK_INT(merge(&m, WEFT_MERGE_REBASE), 0);
    CHECK_STR(m.said, "");
    CHECK(!is_there(&m.s.w, "ran"));
    put(&m.s.w, TREE "/a", "work\n");
    CHECK_INT(look(&m), 0);
    CHECK(!prune(&m, (weft_prune){0}));
    CHECK(prune(&m, (weft_prune){.name = "task-0001", .force = true}));
    CHECK(!is_there(&m.s.w, "ran"));
    git_in(&m.s.w, "repo", "status", NULL);
    CHECK(is_there(&m.s.w, "ran"));
    snapshot_world_end(&m.s);
}

/* ---- odd repositories ---- */

/* The project is a worktree of another checkout, and a shallow clone. */
TEST(the_project_is_a_worktree) {
    merge_world m = {0};
    git_world_begin(&m.s.w);
    put(&m.s.w, "repo/a", "1\n2\n3\n");
    GIT(&m.s.w, "add", ".");
    GIT(&m.s.w, "commit", "-qm", "first");
    GIT(&m.s.w, "worktree", "add", "-q", "-b", "side", at(&m.s.w, "side"));
    CHECK_INT(snapshot_world_open(&m.s, "side", (weft_snapshots_opts){0}), 0);
    make_tree(&m);
    put(&m.s.w, TREE "/a", "agent\n");
    CHECK_INT(merge(&m, WEFT_MERGE_SQUASH), 0);
    CHECK_STR(m.said, "");
    CHECK_STR(text_at(&m, "side/a"), "agent\n");
    CHECK_STR(text_at(&m, "repo/a"), "1\n2\n3\n");
    IS_CLEAN(&m, "side");
    snapshot_world_end(&m.s);
}

TEST(a_shallow_clone) {
    merge_world m = {0};
    char url[PATH_MAX + 16];
    git_world_begin(&m.s.w);
    for (int i = 0; i < 3; i++) {
        put(&m.s.w, "repo/a", i == 0 ? "1\n" : i == 1 ? "2\n" : "3\n");
        GIT(&m.s.w, "add", ".");
        GIT(&m.s.w, "commit", "-qm", "more");
    }
    snprintf(url, sizeof url, "file://%s", at(&m.s.w, "repo"));
    GIT(&m.s.w, "clone", "-q", "--depth", "1", url, at(&m.s.w, "clone"));
    CHECK_INT(snapshot_world_open(&m.s, "clone", (weft_snapshots_opts){0}), 0);
    make_tree(&m);
    put(&m.s.w, TREE "/b", "agent\n");
    put(&m.s.w, "clone/c", "person\n");
    CHECK_INT(git_in(&m.s.w, "clone", "add", ".", NULL), 0);
    CHECK_INT(git_in(&m.s.w, "clone", "commit", "-qm", "person", NULL), 0);
    CHECK_INT(merge(&m, WEFT_MERGE_MERGE), 0);
    CHECK_STR(m.said, "");
    CHECK_STR(text_at(&m, "clone/b"), "agent\n");
    CHECK_INT(look(&m), 0);
    CHECK(!weft__worktree_holds(&m.info));
    snapshot_world_end(&m.s);
}

TEST_MAIN(CASE(merged_each_way) CASE(commits_of_the_agent) CASE(what_git_would_commit) CASE(not_a_worktree_any_more)
              CASE(work_of_the_person_is_in_the_way) CASE(the_same_on_both_sides) CASE(refused_in_words)
                  CASE(conflicts_are_left_in_the_worktree) CASE(conflicts_a_second_time) CASE(never_removed_with_work)
                      CASE(not_ours) CASE(nothing_of_theirs_runs) CASE(the_project_is_a_worktree) CASE(a_shallow_clone))

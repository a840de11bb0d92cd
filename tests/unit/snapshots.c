/* Snapshots of real folders: what they hold, what differs between two, and that the repository is left as it was. Putting
 * files back is in snapshots_undo.c, repositories that mean harm are in git_hostile.c. */
#include "snapshots.h"

#include <dirent.h>
#include <errno.h>
#include <utime.h>

#include "snapshot_world.h"

TEST(what_differs) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX], same[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    put(&s.w, "repo/.gitignore", "*.o\n");
    put(&s.w, "repo/long", "1\n2\n3\n4\n5\n6\n7\n8\n");
    put(&s.w, "repo/run", "#!/bin/sh\n");
    put(&s.w, "repo/crlf", "a\r\nb\r\n");
    put(&s.w, "repo/-dash", "x\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    CHECK_INT(snapshot_world_take(&s, NULL, same), 0);
    CHECK(strcmp(same, before) == 0);
    put(&s.w, "repo/a", "1\n2 more\n3\n");
    put(&s.w, "repo/b.o", "ignored");
    put(&s.w, "repo/new \"q\"\n\xff", "x\ny\n");
    CHECK_INT(rename(at(&s.w, "repo/long"), at(&s.w, "repo/longer")), 0);
    CHECK_INT(chmod(at(&s.w, "repo/run"), 0755), 0);
    CHECK_INT(unlink(at(&s.w, "repo/sub/b")), 0);
    CHECK_INT(symlink("nowhere", at(&s.w, "repo/sub/link")), 0);
    put(&s.w, "repo/crlf", "a\nb\n");
    unlink(at(&s.w, "repo/-dash"));
    CHECK_INT(symlink("a", at(&s.w, "repo/-dash")), 0);
    int fd = open(at(&s.w, "repo/bin"), O_WRONLY | O_CREAT, 0644);
    CHECK_INT(write(fd, "\0\1\2", 3), 3);
    close(fd);
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "T -dash 100644>120000 +1-1|M a +1-1|A bin binary|M crlf +2-2|R longer<long|A new \"q\"\n\xff +2-0|"
                        "M run 100644>100755|D sub/b +0-1|A sub/link +1-0");
    CHECK_INT(s.list.of[WEFT_CHANGED_ADDED], 3);
    CHECK_INT(s.list.of[WEFT_CHANGED_RENAMED], 1);
    CHECK_INT(snapshot_world_take(&s, "task-0001.after", after), 0);
    CHECK_INT(COMPARE(&s, .from = before, .to = after, .text = true, .path = "a", .context = 1), 0);
    CHECK(strstr(s.text, "@@ -1,3 +1,3 @@\n 1\n-2\n+2 more\n 3\n") != NULL);
    CHECK(!s.truncated);
    CHECK_INT(COMPARE(&s, .from = before, .to = after, .text = true, .max = 10), 0);
    CHECK_SNAP_SAID(&s, "diff --git");
    CHECK(s.truncated);
    CHECK_INT(COMPARE(&s, .from = before, .to = after, .text = true, .skip = 5, .max = 5), 0);
    CHECK_SNAP_SAID(&s, "--git");
    CHECK_INT(COMPARE(&s, .from = before, .to = after, .path = "../x"), -EINVAL);
    CHECK_INT(COMPARE(&s, .from = "HEAD", .to = after), -EINVAL);
    CHECK_INT(COMPARE(&s, .from = "0123456789012345678901234567890123456789", .to = after), -ESTALE);
    snapshot_world_end(&s);
}

/* The user's index, branch, stash and logs are bytes as before; one ref is new. */
TEST(the_repository_is_left_alone) {
    static const char *const files[] = {"index", "HEAD", "config", "logs/HEAD", "refs/heads/main", NULL};
    snapshot_world s;
    char was[5][4096] = {{0}}, is[4096];
    snapshot_world_begin(&s);
    GIT(&s.w, "config", "core.logAllRefUpdates", "always");
    put(&s.w, "repo/staged", "x");
    GIT(&s.w, "add", "staged");
    for (int i = 0; files[i]; i++) {
        char path[64];
        snprintf(path, sizeof path, "repo/.git/%s", files[i]);
        small_file(at(&s.w, path), was[i], sizeof was[i]);
    }
    put(&s.w, "repo/a", "other\n");
    put(&s.w, "repo/n", "new\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", NULL), 0);
    for (int i = 0; files[i]; i++) {
        char path[64];
        snprintf(path, sizeof path, "repo/.git/%s", files[i]);
        memset(is, 0, sizeof is);
        small_file(at(&s.w, path), is, sizeof is);
        if (!CHECK(*is && memcmp(is, was[i], sizeof is) == 0))
            printf("  %s\n", files[i]);
    }
    CHECK(is_there(&s.w, "repo/.git/refs/weft"));
    CHECK(!is_there(&s.w, "repo/.git/logs/refs/weft"));
    CHECK(!is_there(&s.w, "repo/.git/refs/stash"));
    GIT(&s.w, "fsck", "--strict");
    snapshot_world_end(&s);
}

/* What is kept survives git's own tidying, and what is forgotten does not. */
TEST(kept_and_forgotten) {
    snapshot_world s;
    char one[WEFT_SNAPSHOT_HEX], two[WEFT_SNAPSHOT_HEX], three[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    put(&s.w, "repo/a", "one\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", one), 0);
    put(&s.w, "repo/a", "two\n");
    CHECK_INT(snapshot_world_take(&s, "task-0002.before", two), 0);
    put(&s.w, "repo/a", "three\n");
    CHECK_INT(snapshot_world_take(&s, "task-0900.before", three), 0);
    GIT(&s.w, "gc", "-q", "--prune=now");
    CHECK_INT(COMPARE(&s, .from = one, .to = two), 0);
    CHECK_SNAP_SAID(&s, "M a +1-1");
    CHECK_INT(weft__snapshots_forget(s.snapshots, "task-0001"), 0);
    CHECK_INT(snapshot_world_take(&s, NULL, NULL), 0); /* behind it */
    GIT(&s.w, "gc", "-q", "--prune=now");
    CHECK_INT(COMPARE(&s, .from = one, .to = two), -ESTALE);
    CHECK_INT(COMPARE(&s, .from = two, .to = three), 0);
    CHECK_SNAP_SAID(&s, "M a +1-1");
    snapshot_world_end(&s);
}

static bool knows_two(void *ctx, const char *owner) {
    ++*(int *) ctx;
    return strcmp(owner, "task-0002") == 0;
}

TEST(a_start_sweeps) {
    snapshot_world s;
    char one[WEFT_SNAPSHOT_HEX], two[WEFT_SNAPSHOT_HEX];
    int asked = 0;
    snapshot_world_begin(&s);
    put(&s.w, "repo/a", "one\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", one), 0);
    put(&s.w, "repo/a", "two\n");
    CHECK_INT(snapshot_world_take(&s, "task-0002.before", two), 0);
    s.snapshots = weft__snapshots_free(s.snapshots);
    CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){0}), 0);
    CHECK_INT(weft__snapshots_sweep(s.snapshots, knows_two, &asked), 0);
    GIT_UNTIL(&s.w, asked == 2);
    CHECK_INT(snapshot_world_take(&s, NULL, NULL), 0);
    GIT(&s.w, "gc", "-q", "--prune=now");
    CHECK_INT(COMPARE(&s, .from = one, .to = two), -ESTALE);
    CHECK_INT(COMPARE(&s, .from = two), 0);
    snapshot_world_end(&s);
}

TEST(without_a_repository) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    s.snapshots = weft__snapshots_free(s.snapshots);
    dir(&s.w, "plain");
    dir(&s.w, "plain/.weft");
    put(&s.w, "plain/.weft/token", "secret");
    put(&s.w, "plain/x", "x\n");
    CHECK_INT(snapshot_world_open(&s, "plain", (weft_snapshots_opts){.max_file = 100}), 0);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "plain/x", "y\n");
    put(&s.w, "plain/.weft/token", "other");
    char large[200];
    memset(large, 'l', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    put(&s.w, "plain/large", large);
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "A large large|M x +1-1");
    CHECK(!is_there(&s.w, "plain/.git"));
    /* It becomes a repository meanwhile. */
    CHECK_INT(git_in(&s.w, "plain", "init", "-q", NULL), 0);
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "A large large|M x +1-1");
    snapshot_world_end(&s);
}

TEST(large_files) {
    snapshot_world s;
    char one[WEFT_SNAPSHOT_HEX], two[WEFT_SNAPSHOT_HEX], large[300];
    snapshot_world_begin(&s);
    s.snapshots = weft__snapshots_free(s.snapshots);
    CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){.max_file = 100}), 0);
    memset(large, 'l', sizeof large);
    large[200] = '\0';
    put(&s.w, "repo/a", large);
    put(&s.w, "repo/l", large);
    CHECK_INT(snapshot_world_take(&s, NULL, one), 0);
    CHECK_INT(snapshot_world_take(&s, NULL, two), 0);
    CHECK(strcmp(one, two) == 0);
    large[200] = 'm';
    large[250] = '\0';
    put(&s.w, "repo/l", large);
    put(&s.w, "repo/a", "small\n");
    CHECK_INT(COMPARE(&s, .from = one), 0);
    CHECK_SNAP_SAID(&s, "M a large|M l large");
    CHECK_INT(s.list.count, 2);
    snapshot_world_end(&s);
}

/* No commit yet; beneath the repository's top; a worktree, whose .git is a file; in the middle of a merge. */
TEST(kinds_of_repositories) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    s.snapshots = weft__snapshots_free(s.snapshots);
    /* no commit */
    dir(&s.w, "fresh");
    CHECK_INT(git_in(&s.w, "fresh", "init", "-q", NULL), 0);
    put(&s.w, "fresh/f", "f\n");
    CHECK_INT(snapshot_world_open(&s, "fresh", (weft_snapshots_opts){0}), 0);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "fresh/f", "g\n");
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "M f +1-1");
    s.snapshots = weft__snapshots_free(s.snapshots);
    test_remove(at(&s.w, "state"));
    /* beneath */
    CHECK_INT(snapshot_world_open(&s, "repo/sub", (weft_snapshots_opts){0}), 0);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "repo/a", "not ours\n");
    put(&s.w, "repo/sub/c", "c\n");
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "A c +1-0");
    s.snapshots = weft__snapshots_free(s.snapshots);
    test_remove(at(&s.w, "state"));
    /* worktree */
    GIT(&s.w, "worktree", "add", "-q", at(&s.w, "tree"));
    CHECK_INT(snapshot_world_open(&s, "tree", (weft_snapshots_opts){0}), 0);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "tree/a", "tree\n");
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "M a +1-3");
    s.snapshots = weft__snapshots_free(s.snapshots);
    test_remove(at(&s.w, "state"));
    /* merge */
    CHECK_INT(git_in(&s.w, "tree", "commit", "-qam", "tree", NULL), 0);
    GIT(&s.w, "commit", "-qam", "main");
    CHECK_INT(git_in(&s.w, "repo", "merge", "-q", "tree", NULL), 1);
    CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){0}), 0);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "repo/a", "merged\n");
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK(strncmp(s.text, "M a +1-", 7) == 0);
    CHECK_INT(git_in(&s.w, "repo", "diff", "--quiet", "--diff-filter=U", NULL), 1); /* still in the middle */
    snapshot_world_end(&s);
}

static void set_split_index(git_world *w) {
    GIT(w, "update-index", "--split-index");
}

static void set_sparse_index(git_world *w) {
    GIT(w, "sparse-checkout", "set", "--cone", "--sparse-index", "nothing");
}

static void set_index_v4(git_world *w) {
    GIT(w, "update-index", "--index-version", "4");
}

static void set_intent_to_add(git_world *w) {
    put(w, "repo/intended", "x\n");
    GIT(w, "add", "-N", "intended");
}

static void set_rebase(git_world *w) {
    GIT(w, "commit", "-q", "--allow-empty", "-m", "second");
    CHECK_INT(git_in(w, "repo", "rebase", "-q", "--exec", "false", "HEAD^", NULL), 1);
}

static void set_unreadable(git_world *w) {
    put(w, "repo/secret", "x\n");
    CHECK_INT(chmod(at(w, "repo/secret"), 0), 0);
}

static void set_pipe(git_world *w) {
    CHECK_INT(mkfifo(at(w, "repo/pipe"), 0600), 0);
    CHECK_INT(mkfifo(at(w, "repo/.git/info/exclude.new"), 0600), 0);
    CHECK_INT(rename(at(w, "repo/.git/info/exclude.new"), at(w, "repo/.git/info/exclude")), 0);
}

static void set_packed_refs(git_world *w) {
    GIT(w, "pack-refs", "--all");
    GIT(w, "gc", "-q");
}

/* However a repository is kept, the change of one file shows as that. */
TEST(formats) {
    static void (*const sets[])(git_world *) = {set_split_index, set_sparse_index, set_index_v4, set_intent_to_add,
                                                set_rebase,      set_unreadable,   set_pipe,     set_packed_refs};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        snapshot_world s;
        char before[WEFT_SNAPSHOT_HEX];
        snapshot_world_begin(&s);
        sets[i](&s.w);
        if (!CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0))
            printf("  %zu: %s\n", i, s.message);
        put(&s.w, "repo/a", "changed\n");
        CHECK_INT(COMPARE(&s, .from = before), 0);
        CHECK_SNAP_SAID(&s, "M a +1-3");
        CHECK_INT(UNDO(&s, .before = before, .after = s.tree), 0);
        CHECK_INT(COMPARE(&s, .from = before), 0);
        CHECK_SNAP_SAID(&s, "");
        snapshot_world_end(&s);
    }
}

/* Names of 64 digits. */
/* git reads these in every folder, and waits for ever for what is a pipe. */
TEST(pipes_that_git_reads) {
    static const char *const names[] = {"repo/.gitignore", "repo/sub/.gitignore", "repo/sub/.gitattributes"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snapshot_world s;
        char before[WEFT_SNAPSHOT_HEX];
        snapshot_world_begin(&s);
        CHECK_INT(mkfifo(at(&s.w, names[i]), 0600), 0);
        put(&s.w, "repo/sub/new", "new\n");
        CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), -ENOTSUP);
        if (!CHECK(strstr(s.message, names[i] + strlen("repo/")) && strstr(s.message, "pipe")))
            printf("  %s: %s\n", names[i], s.message);
        CHECK_INT(unlink(at(&s.w, names[i])), 0);
        CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
        snapshot_world_end(&s);
    }
}

TEST(sha256) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], large[200];
    snapshot_world_begin(&s);
    s.snapshots = weft__snapshots_free(s.snapshots);
    dir(&s.w, "new");
    if (git_in(&s.w, "new", "init", "-q", "--object-format=sha256", NULL) != 0) {
        test_skip("this git has no sha256");
        snapshot_world_end(&s);
        return;
    }
    put(&s.w, "new/a", "a\n");
    CHECK_INT(snapshot_world_open(&s, "new", (weft_snapshots_opts){.max_file = 100}), 0);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    CHECK_INT(strlen(before), 64);
    memset(large, 'l', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    put(&s.w, "new/large", large);
    put(&s.w, "new/a", "b\n");
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "M a +1-1|A large large");
    snapshot_world_end(&s);
}

/* Somebody else's repository is refused in words, and nothing is written to it. */
TEST(dubious_ownership) {
    snapshot_world s;
    snapshot_world_begin(&s);
    if (geteuid() != 0) {
        test_skip("only root can give files away");
        snapshot_world_end(&s);
        return;
    }
    CHECK_INT(chown(at(&s.w, "repo"), 12345, 12345), 0);
    CHECK_INT(chown(at(&s.w, "repo/.git"), 12345, 12345), 0);
    CHECK_INT(snapshot_world_take(&s, NULL, NULL), -EREMOTEIO);
    CHECK(strstr(s.message, "dubious ownership") != NULL);
    CHECK(!is_there(&s.w, "repo/.git/refs/weft"));
    snapshot_world_end(&s);
}

/* Other repositories are not entered; a commit in one shows. */
TEST(repositories_inside) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    CHECK_INT(git_in(&s.w, ".", "clone", "-q", "repo", "other", NULL), 0);
    GIT(&s.w, "submodule", "--quiet", "add", at(&s.w, "other"), "module");
    GIT(&s.w, "commit", "-qm", "module");
    CHECK_INT(git_in(&s.w, ".", "clone", "-q", "other", "repo/nested", NULL), 0);
    dir(&s.w, "repo/empty");
    CHECK_INT(git_in(&s.w, "repo/empty", "init", "-q", NULL), 0);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "repo/module/a", "inside\n");
    put(&s.w, "repo/nested/a", "inside\n");
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "");
    CHECK_INT(git_in(&s.w, "repo/module", "commit", "-qam", "inside", NULL), 0);
    CHECK_INT(git_in(&s.w, "repo/nested", "commit", "-qam", "inside", NULL), 0);
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "M module submodule|M nested submodule");
    snapshot_world_end(&s);
}

/* Marks that hide changes from git do not hide them here. */
TEST(hidden_files) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    GIT(&s.w, "update-index", "--assume-unchanged", "a");
    GIT(&s.w, "update-index", "--skip-worktree", "sub/b");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "repo/a", "seen\n");
    put(&s.w, "repo/sub/b", "seen\n");
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "M a +1-3|M sub/b +1-1");
    snapshot_world_end(&s);
}

/* A file becomes a folder, a folder a file, a folder a link to somewhere else. */
/* Ignored, but in git's index: whenever that came to be. */
TEST(tracked_though_ignored) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    put(&s.w, "repo/.gitignore", "*.o\n");
    put(&s.w, "repo/one.o", "1\n");
    put(&s.w, "repo/two.o", "2\n");
    GIT(&s.w, "add", "-f", "one.o");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "repo/one.o", "1 changed\n");
    GIT(&s.w, "add", "-f", "two.o");
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "M one.o +1-1|A two.o +1-0");
    CHECK_INT(snapshot_world_take(&s, "task-0001.after", before), 0);
    put(&s.w, "repo/two.o", "2 changed\n");
    unlink(at(&s.w, "repo/one.o"));
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "D one.o +0-1|M two.o +1-1");
    snapshot_world_end(&s);
}

TEST(kinds_of_names_change) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    dir(&s.w, "repo/d");
    put(&s.w, "repo/d/x", "x\n");
    dir(&s.w, "outside");
    put(&s.w, "outside/x", "secret\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    unlink(at(&s.w, "repo/a"));
    dir(&s.w, "repo/a");
    put(&s.w, "repo/a/in", "in\n");
    test_remove(at(&s.w, "repo/sub"));
    put(&s.w, "repo/sub", "file\n");
    test_remove(at(&s.w, "repo/d"));
    CHECK_INT(symlink("../outside", at(&s.w, "repo/d")), 0);
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "D a +0-3|A a/in +1-0|A d +1-0|D d/x +0-1|A sub +1-0|D sub/b +0-1");
    snapshot_world_end(&s);
}

/* An index that was damaged, or whose objects are gone, is made anew. */
TEST(a_damaged_index) {
    snapshot_world s;
    char one[WEFT_SNAPSHOT_HEX], two[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    put(&s.w, "repo/n", "n\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", one), 0);
    put(&s.w, "state/changes/sha1/index", "DIRCnonsense");
    CHECK_INT(snapshot_world_take(&s, NULL, two), 0);
    CHECK(strcmp(one, two) == 0);
    put(&s.w, "state/changes/sha1/index.lock", "");
    s.snapshots = weft__snapshots_free(s.snapshots);
    CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){0}), 0);
    CHECK_INT(snapshot_world_take(&s, NULL, two), 0);
    CHECK(strcmp(one, two) == 0);
    snapshot_world_end(&s);
}

/* What a clone brought, or an earlier journal left, is not read. */
/* An agent can write into our git folder, remove it, or spoil our ref: nothing runs, and the next snapshot is as good. */
TEST(our_git_folder) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], text[PATH_MAX + 200], program[PATH_MAX];
    snapshot_world_begin(&s);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    snprintf(text, sizeof text, "#!/bin/sh\nprintf x >'%s/ran'\ncat\n", s.w.folder);
    script(&s.w, "evil", text);
    snprintf(program, sizeof program, "%s", at(&s.w, "evil"));
    snprintf(text, sizeof text, "[core]\n\tbare = true\n[filter \"evil\"]\n\tclean = %s\n", program);
    dir(&s.w, "other");
    dir(&s.w, "other/info");
    for (int i = 0; i < 4; i++) {
        put(&s.w, i % 2 ? "other/config" : "state/changes/sha1/config", text);
        put(&s.w, i % 2 ? "other/info/attributes" : "state/changes/sha1/info/attributes", "* filter=evil\n");
        if (i % 2)
            put(&s.w, "state/changes/sha1/commondir", "../../../other\n");
        put(&s.w, "repo/a", i % 2 ? "one\n" : "other\n");
        if (i == 2) { /* found so by another start */
            s.snapshots = weft__snapshots_free(s.snapshots);
            CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){0}), 0);
        }
        CHECK_INT(COMPARE(&s, .from = before), 0);
        CHECK_SNAP_SAID(&s, "M a +1-3");
        CHECK(!is_there(&s.w, "ran"));
    }
    test_remove(at(&s.w, "state/changes"));
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "M a +1-3");
    char path[PATH_MAX] = "";
    DIR *refs = opendir(at(&s.w, "repo/.git/refs/weft"));
    for (struct dirent *entry; refs && (entry = readdir(refs));)
        if (*entry->d_name != '.')
            snprintf(path, sizeof path, "repo/.git/refs/weft/%s", entry->d_name);
    CHECK(refs && *path);
    closedir(refs);
    put(&s.w, path, "");
    put(&s.w, "repo/new", "new\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.after", NULL), 0);
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "M a +1-3|A new +1-0");
    CHECK_INT(git_in(&s.w, "repo", "rev-parse", "--verify", "-q", path + strlen("repo/.git/"), NULL), 0);
    snapshot_world_end(&s);
}

TEST(folders_of_somebody_else) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    s.snapshots = weft__snapshots_free(s.snapshots);
    put(&s.w, "state/changes/sha1/config", "[include]\n\tpath = /dev/zero\n");
    put(&s.w, "state/changes/undo.plan", "nonsense");
    for (int i = 0; i < 2; i++) {
        CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){.mark = "of this journal"}), 0);
        CHECK(!is_there(&s.w, "state/changes/undo.plan"));
        CHECK_INT(snapshot_world_take(&s, "task-0001.before", NULL), 0);
        CHECK(!is_there(&s.w, "state/changes.gone"));
        CHECK(is_there(&s.w, "state/changes/kept") == (i == 1));
        put(&s.w, "state/changes/kept", "");
        s.snapshots = weft__snapshots_free(s.snapshots);
    }
    CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){.mark = "of another"}), 0);
    CHECK(!is_there(&s.w, "state/changes/kept"));
    snapshot_world_end(&s);
}

TEST(no_git) {
    snapshot_world s;
    snapshot_world_begin(&s);
    s.snapshots = weft__snapshots_free(s.snapshots);
    CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){.program = "/nonexistent/git"}), 0);
    CHECK_INT(snapshot_world_take(&s, NULL, NULL), -ENOENT);
    CHECK_TEXT(s.message, strlen(s.message), "git is not installed");
    snapshot_world_end(&s);
}

/* Everybody who asks while one is being taken shares the next; who does not want it any more is not told. */
TEST(many_share_one) {
    snapshot_world s;
    snapshot_asked asked[8];
    snapshot_world_begin(&s);
    for (int i = 0; i < 8; i++) {
        char name[32];
        snprintf(name, sizeof name, "task-%04d.before", i);
        asked[i] = (snapshot_asked){.wait.on_taken = snapshot_world_taken, .s = &s};
        CHECK_INT(weft__snapshots_take(s.snapshots, name, 60000, &asked[i].wait), 0);
    }
    weft__snapshot_cancel(&asked[3].wait);
    GIT_UNTIL(&s.w, s.answers == 7);
    CHECK_INT(s.r, 0);
    CHECK_INT(weft__snapshots_take(s.snapshots, "no such/name", 1, &asked[0].wait), -EINVAL);
    snapshot_world_end(&s);
}

static void sleep_git(snapshot_world *s) {
    script(&s->w, "slow", "#!/bin/sh\nexec sleep 100\n");
    s->snapshots = weft__snapshots_free(s->snapshots);
    CHECK_INT(snapshot_world_open(s, "repo", (weft_snapshots_opts){.program = at(&s->w, "slow")}), 0);
}

TEST(who_waits_does_not_wait_for_ever) {
    snapshot_world s;
    snapshot_asked asked = {.wait.on_taken = snapshot_world_taken, .s = &s};
    snapshot_world_begin(&s);
    sleep_git(&s);
    CHECK_INT(weft__snapshots_take(s.snapshots, NULL, 1, &asked.wait), 0);
    GIT_UNTIL(&s.w, s.answers == 1);
    CHECK_INT(s.r, -ETIMEDOUT);
    snapshot_world_end(&s); /* ends the program */
}

static long memory_scene(snapshot_world *s, const char *before, long fail_at) {
    test_memory memory;
    test_memory_init(&memory, fail_at);
    int r = snapshot_world_open(s, "repo", (weft_snapshots_opts){.alloc = &memory.alloc});
    if (r == 0)
        r = snapshot_world_take(s, "task-0002.before", NULL);
    if (r == 0)
        r = COMPARE(s, .from = before);
    if (r == 0)
        r = weft__snapshots_forget(s->snapshots, "task-0002");
    CHECK(r == -ENOMEM || (r == 0 && strcmp(s->text, "M n +1-1") == 0));
    s->snapshots = weft__snapshots_free(s->snapshots);
    CHECK_INT(memory.live, 0);
    return memory.count;
}

/* At the limit nobody else may wait. */
TEST(too_many_wait) {
    static snapshot_asked asked[WEFT_SNAPSHOT_WAITING + 1];
    snapshot_world s;
    snapshot_world_begin(&s);
    sleep_git(&s);
    for (int i = 0; i <= WEFT_SNAPSHOT_WAITING; i++) {
        asked[i] = (snapshot_asked){.wait.on_taken = snapshot_world_taken, .s = &s};
        CHECK_INT(weft__snapshots_take(s.snapshots, NULL, 60000, &asked[i].wait), i < WEFT_SNAPSHOT_WAITING ? 0 : -EAGAIN);
    }
    snapshot_world_end(&s);
    CHECK_INT(s.answers, 0);
}

/* Too much that is new is refused before any of it is read. */
TEST(too_much) {
    snapshot_world s;
    snapshot_world_begin(&s);
    for (int i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof name, "repo/sparse%d", i);
        put(&s.w, name, "");
        CHECK_INT(truncate(at(&s.w, name), 60 << 20), 0);
    }
    CHECK_INT(snapshot_world_take(&s, NULL, NULL), -EFBIG);
    CHECK(strstr(s.message, "too much is new at once: 40 files of 2400 MiB") != NULL);
    snapshot_world_end(&s);
}

/* Every allocation fails once, but those of the many lists of variables only now and then. */
TEST(memory_that_is_short) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    put(&s.w, "repo/n", "n\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "repo/n", "m\n");
    s.snapshots = weft__snapshots_free(s.snapshots);
    long count = memory_scene(&s, before, 0);
    for (long n = 1; n <= count; n += n < 20 ? 1 : 17)
        memory_scene(&s, before, n);
    snapshot_world_end(&s);
}

TEST_MAIN(CASE(what_differs) CASE(the_repository_is_left_alone) CASE(kept_and_forgotten) CASE(a_start_sweeps)
              CASE(without_a_repository) CASE(large_files) CASE(kinds_of_repositories) CASE(formats)
                  CASE(pipes_that_git_reads) CASE(sha256) CASE(dubious_ownership) CASE(repositories_inside)
                      CASE(hidden_files) CASE(tracked_though_ignored) CASE(kinds_of_names_change) CASE(a_damaged_index)
                          CASE(our_git_folder) CASE(folders_of_somebody_else) CASE(no_git) CASE(many_share_one)
                              CASE(who_waits_does_not_wait_for_ever) CASE(too_many_wait) CASE(too_much)
                                  CASE(memory_that_is_short))

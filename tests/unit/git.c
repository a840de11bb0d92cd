/* git through the engine, on real repositories: what is read, what is written, arguments. How it runs is in git_running.c,
 * repositories that mean harm are in git_hostile.c, the parsers in git_parse.c. */
#include "git.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "git_world.h"

/* ---- reading ---- */

TEST(status) {
    git_world w;
    git_world_begin(&w);
    git_world_open_repo(&w);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main");
    CHECK(w.status.is_clean && !w.status.head && !w.status.upstream);
    put(&w, "repo/a", "one\ntwo\nthree\nfour\n");
    put(&w, "repo/gone", "x");
    put(&w, "repo/both", "x");
    put(&w, "repo/with \"quotes\"\n\xff", "x");
    GIT(&w, "add", "a", "gone", "both");
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|A. a|A. both|A. gone|?? with \"quotes\"\n\xff");
    CHECK_INT(w.status.staged, 3);
    CHECK_INT(w.status.untracked, 1);
    GIT(&w, "commit", "-qm", "first");
    GIT(&w, "mv", "a", "b");
    unlink(at(&w, "repo/gone"));
    put(&w, "repo/both", "xy");
    GIT(&w, "add", "both");
    put(&w, "repo/both", "xyz");
    dir(&w, "repo/new");
    put(&w, "repo/new/1", "");
    put(&w, "repo/new/2", "");
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|R. b<a|MM both|.D gone|?? new/|?? with \"quotes\"\n\xff");
    CHECK_INT(w.status.staged, 2);
    CHECK_INT(w.status.unstaged, 2);
    CHECK(!w.status.is_clean);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS, .untracked = true), WEFT_GIT_OK);
    CHECK(strstr(w.text, "|?? new/1|?? new/2|") != NULL);
    GIT(&w, "checkout", "-q", "--detach");
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK(strncmp(w.text, "(none)|", 7) == 0);
    git_world_end(&w);
}

static void look_upstream(void *ctx, const weft_git_result *result) {
    git_world *w = ctx;
    git_world_done(w, result);
    if (!CHECK(result->status != NULL))
        return;
    CHECK_STR(result->status->upstream, "other/main");
    CHECK_STR(result->status->name, "repo");
    CHECK_STR(result->status->root, at(w, "repo"));
    CHECK_INT(result->status->ahead, 2);
    CHECK_INT(result->status->behind, 1);
    CHECK(result->status->compared && result->status->head && strlen(result->status->head) == 40);
}

TEST(status_and_its_upstream) {
    git_world w;
    git_world_begin_with_commit(&w);
    CHECK_INT(git_in(&w, ".", "clone", "-q", "--bare", "repo", "other", NULL), 0);
    GIT(&w, "commit", "-q", "--allow-empty", "-m", "theirs");
    GIT(&w, "remote", "add", "other", at(&w, "other"));
    GIT(&w, "push", "-q", "other", "main");
    GIT(&w, "reset", "-q", "--hard", "HEAD^");
    GIT(&w, "commit", "-q", "--allow-empty", "-m", "mine");
    GIT(&w, "commit", "-q", "--allow-empty", "-m", "mine");
    GIT(&w, "branch", "-q", "-u", "other/main");
    CHECK_INT(weft__git_ask(w.git, &(weft_git_request){WEFT_GIT_STATUS}, look_upstream, &w, NULL), 0);
    GIT_UNTIL(&w, w.answers == 1);
    git_world_end(&w);
}

TEST(conflicts) {
    git_world w;
    git_world_begin_with_commit(&w);
    GIT(&w, "checkout", "-qb", "side");
    put(&w, "repo/a", "side\n");
    GIT(&w, "commit", "-qam", "side");
    GIT(&w, "checkout", "-q", "main");
    put(&w, "repo/a", "main\n");
    GIT(&w, "commit", "-qam", "main");
    CHECK_INT(git_in(&w, "repo", "merge", "-q", "side", NULL), 1);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|UU a");
    CHECK_INT(w.status.conflicted, 1);
    CHECK_INT(w.status.staged, 0);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = "a"), WEFT_GIT_OK);
    CHECK(strstr(w.text, "diff --cc a") != NULL);
    CHECK_INT(w.diff.files, 1);
    git_world_end(&w);
}

TEST(diff) {
    git_world w;
    git_world_begin_with_commit(&w);
    put(&w, "repo/a", "1\n2 changed\n3\nmore\n");
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = "a"), WEFT_GIT_OK);
    CHECK(strncmp(w.text, "diff --git a/a b/a\nindex ", 25) == 0);
    CHECK(strstr(w.text, "\n-2\n+2 changed\n") != NULL);
    CHECK_INT(w.diff.additions, 2);
    CHECK_INT(w.diff.deletions, 1);
    CHECK_INT(w.diff.files, 1);
    CHECK(!w.diff.is_new && !w.diff.truncated);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = "a", .side = WEFT_GIT_STAGED), WEFT_GIT_OK);
    CHECK_SAID(&w, "");
    put(&w, "repo/n", "new\n");
    GIT(&w, "add", ".");
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = "n", .side = WEFT_GIT_STAGED), WEFT_GIT_OK);
    CHECK(w.diff.is_new && w.diff.additions == 1);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF), WEFT_GIT_OK);
    CHECK_SAID(&w, "");
    put(&w, "repo/sub/b", "B\n");
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .side = WEFT_GIT_BOTH), WEFT_GIT_OK);
    CHECK_INT(w.diff.files, 3);
    CHECK(!w.diff.is_new); /* of one file only */
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .side = WEFT_GIT_BOTH, .max = 40), WEFT_GIT_OK);
    CHECK(w.diff.truncated);
    CHECK_INT(strlen(w.text), 40);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = "nothing"), WEFT_GIT_OK);
    CHECK_SAID(&w, "");
    git_world_end(&w);
}

/* Whatever the user likes to see in a terminal. */
TEST(diff_does_not_depend_on_taste) {
    git_world w;
    git_world_begin_with_commit(&w);
    put(&w, "repo/a", "1\n2 changed\n3\n");
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF), WEFT_GIT_OK);
    char *plain = strdup(w.text);
    static const char *const tastes[][2] = {
        {"color.ui", "always"},
        {"color.diff", "always"},
        {"diff.noprefix", "true"},
        {"diff.mnemonicPrefix", "true"},
        {"diff.context", "0"},
        {"diff.relative", "true"},
        {"diff.colorMoved", "zebra"},
        {"core.quotePath", "true"},
        {"status.short", "true"},
        {"status.relativePaths", "true"},
        {"status.branch", "true"},
        {"status.showStash", "true"},
        {"status.showUntrackedFiles", "no"},
        {"log.decorate", "full"},
        {"log.showRoot", "true"},
        {"format.pretty", "oneline"},
        {"log.date", "iso"},
        {"log.follow", "true"},
        {"column.ui", "always"},
        {"branch.sort", "refname"},
        {"core.abbrev", "12"},
    };
    for (size_t i = 0; i < sizeof tastes / sizeof tastes[0] - 1; i++)
        GIT(&w, "config", tastes[i][0], tastes[i][1]);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF), WEFT_GIT_OK);
    CHECK_SAID(&w, plain);
    put(&w, "repo/new", "");
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.M a|?? new");
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF), WEFT_GIT_OK);
    CHECK_SAID(&w, "first");
    CHECK_INT(ASK(&w, WEFT_GIT_LIST_BRANCHES), WEFT_GIT_OK);
    CHECK_SAID(&w, "*refs/heads/main");
    free(plain);
    git_world_end(&w);
}

TEST(diff_of_new_files) {
    static const struct {
        const char *name, *path, *content, *diff;
    } rows[] = {
        {"lines", "n", "1\n2\n",
         "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+1\n+2\n"},
        {"without an end", "n", "1",
         "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+1\n\\ No newline at end of "
         "file\n"},
        {"empty", "n", "", "diff --git a/n b/n\nnew file mode 100644\n"},
        {"binary", "n", "\xff", "diff --git a/n b/n\nnew file mode 100644\nBinary files /dev/null and b/n differ\n"},
        {"a name to quote", "n\n\"", "", "diff --git \"a/n\\012\\\"\" \"b/n\\012\\\"\"\nnew file mode 100644\n"},
    };
    git_world w;
    char path[64];
    git_world_begin(&w);
    git_world_open_repo(&w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        snprintf(path, sizeof path, "repo/%s", rows[i].path);
        put(&w, path, rows[i].content);
        CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = rows[i].path, .side = WEFT_GIT_NEW), WEFT_GIT_OK);
        CHECK_SAID(&w, rows[i].diff);
        CHECK(w.diff.is_new);
        CHECK_INT(w.diff.files, 1);
        CHECK_INT(w.diff.is_binary, strstr(rows[i].diff, "Binary") != NULL);
    }
    test_row(NULL);
    /* Never what a link leads to. */
    CHECK_INT(symlink("/etc", at(&w, "repo/link")), 0);
    CHECK_INT(symlink("/etc/passwd", at(&w, "repo/passwd")), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = "link/passwd", .side = WEFT_GIT_NEW), WEFT_GIT_REFUSED);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = "passwd", .side = WEFT_GIT_NEW), WEFT_GIT_REFUSED);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = ".git/config", .side = WEFT_GIT_NEW), WEFT_GIT_REFUSED);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .side = WEFT_GIT_NEW), -1000);
    git_world_end(&w);
}

static void look_log(void *ctx, const weft_git_result *result) {
    git_world *w = ctx;
    git_world_done(w, result);
    if (!CHECK(result->log && result->log->count == 2))
        return;
    const weft_git_commit *commit = &result->log->commits[0];
    CHECK_STR(commit->subject, "second \xC3\xA4");
    CHECK_STR(commit->body, "Why.\n\nAnd how.");
    CHECK_STR(commit->author, "A Person");
    CHECK_STR(commit->email, "a@example.org");
    CHECK_STR(commit->parents, result->log->commits[1].hash);
    CHECK(strstr(commit->refs, "HEAD -> main") != NULL);
    CHECK(commit->author_time > 1600000000 && commit->commit_time >= commit->author_time);
    CHECK_STR(result->log->commits[1].parents, "");
}

TEST(log) {
    git_world w;
    git_world_begin(&w);
    git_world_open_repo(&w);
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF), WEFT_GIT_OK);
    CHECK_INT(w.count, 0);
    put(&w, "repo/a", "1");
    GIT(&w, "add", ".");
    GIT(&w, "commit", "-qm", "first");
    GIT(&w, "commit", "-q", "--allow-empty", "-m", "second \xC3\xA4\n\nWhy.\n\nAnd how.\n");
    CHECK_INT(weft__git_ask(w.git, &(weft_git_request){WEFT_GIT_LOG_OF}, look_log, &w, NULL), 0);
    GIT_UNTIL(&w, w.answers == 2);
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF, .max = 1), WEFT_GIT_OK);
    CHECK_SAID(&w, "second \xC3\xA4");
    CHECK(w.truncated);
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF, .max = 1, .skip = 1), WEFT_GIT_OK);
    CHECK_SAID(&w, "first");
    CHECK(!w.truncated);
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF, .path = "a"), WEFT_GIT_OK);
    CHECK_SAID(&w, "first");
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF, .ref = "main"), WEFT_GIT_OK);
    CHECK_INT(w.count, 2);
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF, .ref = "nothing"), WEFT_GIT_REFUSED);
    CHECK(strstr(w.message, "nothing") != NULL);
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF, .skip = SIZE_MAX), WEFT_GIT_OK);
    CHECK_INT(w.count, 0);
    git_world_end(&w);
}

TEST(branches) {
    git_world w;
    git_world_begin(&w);
    git_world_open_repo(&w);
    CHECK_INT(ASK(&w, WEFT_GIT_LIST_BRANCHES), WEFT_GIT_OK);
    CHECK_INT(w.count, 0);
    put(&w, "repo/a", "1");
    GIT(&w, "add", ".");
    GIT(&w, "commit", "-qm", "first");
    GIT(&w, "branch", "side");
    GIT(&w, "update-ref", "refs/remotes/origin/main", "HEAD");
    GIT(&w, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main");
    CHECK_INT(ASK(&w, WEFT_GIT_LIST_BRANCHES), WEFT_GIT_OK);
    CHECK_SAID(&w, "*refs/heads/main|refs/heads/side");
    CHECK_INT(ASK(&w, WEFT_GIT_LIST_BRANCHES, .remotes = true), WEFT_GIT_OK);
    CHECK_SAID(&w, "*refs/heads/main|refs/heads/side|refs/remotes/origin/main");
    CHECK_INT(ASK(&w, WEFT_GIT_LIST_BRANCHES, .max = 1), WEFT_GIT_OK);
    CHECK_INT(w.count, 1);
    CHECK(w.truncated);
    git_world_end(&w);
}

/* A read leaves the repository as it was, also where git would refresh its index. */
TEST(reading_writes_nothing) {
    git_world w;
    struct stat before, after;
    git_world_begin_with_commit(&w);
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK_INT(utimensat(AT_FDCWD, at(&w, "repo/a"), old, 0), 0);
    CHECK_INT(stat(at(&w, "repo/.git/index"), &before), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK(w.status.is_clean);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF), WEFT_GIT_OK);
    CHECK_SAID(&w, "");
    CHECK_INT(w.diff.files, 0);
    CHECK_INT(stat(at(&w, "repo/.git/index"), &after), 0);
    CHECK_INT(after.st_ino, before.st_ino);
    CHECK_INT(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
    git_world_end(&w);
}

/* ---- a folder below the top ---- */

TEST(only_the_folder) {
    git_world w;
    const char *paths[] = {"b", NULL};
    git_world_begin_with_commit(&w);
    git_world_close(&w);
    CHECK_INT(git_world_open(&w, "repo/sub", (weft_git_opts){.may_write = true}), 0);
    put(&w, "repo/a", "changed outside of the folder\n");
    put(&w, "repo/sub/b", "changed\n");
    put(&w, "repo/sub/new", "n");
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.M b|?? new");
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF), WEFT_GIT_OK);
    CHECK(strncmp(w.text, "diff --git a/b b/b\n", 19) == 0);
    CHECK_INT(w.diff.files, 1);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = "b"), WEFT_GIT_OK);
    CHECK_INT(w.diff.additions, 1);
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .paths = paths), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|M. b|?? new");
    CHECK_INT(ASK(&w, WEFT_GIT_UNSTAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = paths), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|A. new");
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF), WEFT_GIT_OK);
    CHECK_SAID(&w, "first");
    dir(&w, "repo/fresh");
    put(&w, "repo/fresh/x", "x");
    git_world_close(&w);
    CHECK_INT(git_world_open(&w, "repo/fresh", (weft_git_opts){0}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|?? ./");
    git_world_close(&w);
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){0}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.M a|A. sub/new|?? fresh/");
    git_world_end(&w);
}

/* ---- writing ---- */

TEST(stage_unstage_discard) {
    git_world w;
    const char *a[] = {"a", NULL}, *both[] = {"gone", "new", NULL}, *new[] = {"new", "folder", NULL}, *no[] = {"no", NULL};
    git_world_begin_with_commit(&w);
    put(&w, "repo/gone", "x");
    GIT(&w, "add", "gone");
    GIT(&w, "commit", "-qm", "second");
    put(&w, "repo/a", "changed\n");
    put(&w, "repo/new", "n");
    unlink(at(&w, "repo/gone"));
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .paths = both), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.M a|D. gone|A. new");
    CHECK_INT(ASK(&w, WEFT_GIT_UNSTAGE, .paths = both), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.M a|.D gone|?? new");
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|M. a|D. gone|A. new");
    CHECK_INT(ASK(&w, WEFT_GIT_UNSTAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = a), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.D gone|?? new");
    /* What git does not know is deleted only when that was asked for. */
    CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = both), WEFT_GIT_REFUSED);
    CHECK(strstr(w.message, "new") != NULL && is_there(&w, "repo/new"));
    dir(&w, "repo/folder");
    put(&w, "repo/folder/x", "x");
    CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = new, .untracked = true), WEFT_GIT_OK);
    CHECK(!is_there(&w, "repo/new") && !is_there(&w, "repo/folder") && is_there(&w, "repo/a"));
    CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = a, .untracked = true), WEFT_GIT_OK);
    CHECK(is_there(&w, "repo/a"));
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .paths = no), WEFT_GIT_REFUSED);
    CHECK(strstr(w.message, "did not match") != NULL);
    git_world_end(&w);
}

TEST(commit) {
    static const char message[] = "A subject\n\n# not a comment\n--amend\n";
    git_world w;
    git_world_begin(&w);
    git_world_open_repo(&w);
    weft_bytes text = {message, strlen(message)};
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = text), WEFT_GIT_NOTHING);
    put(&w, "repo/a", "1");
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = text), WEFT_GIT_NOTHING);
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .side = WEFT_GIT_BOTH), WEFT_GIT_OK);
    CHECK(w.diff.is_new);
    CHECK_INT(ASK(&w, WEFT_GIT_UNSTAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = text), WEFT_GIT_OK);
    CHECK_INT(strlen(w.commit), 40);
    CHECK_INT(git_in(&w, "repo", "cat-file", "-e", w.commit, NULL), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = text), WEFT_GIT_NOTHING);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {"Better", 6}, .amend = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF), WEFT_GIT_OK);
    CHECK_SAID(&w, "Better");
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {"", 0}), -1000);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {" \n\t", 3}), -1000);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {"a\0b", 3}), -1000);
    CHECK_INT(w.r, -EINVAL);
    char *large = calloc(1, WEFT_GIT_MESSAGE + 1);
    memset(large, 'x', WEFT_GIT_MESSAGE + 1);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {large, WEFT_GIT_MESSAGE + 1}), -1000);
    CHECK_INT(w.r, -E2BIG);
    put(&w, "repo/a", "2");
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {large, WEFT_GIT_MESSAGE}), WEFT_GIT_OK);
    free(large);
    git_world_end(&w);
}

static void *try_unshare(void *ctx) {
    *(int *) ctx = unshare(CLONE_FS);
    return NULL;
}

/* A daemon's own umask is not for the user's files, and stays as it is. */
TEST(umask_of_the_user) {
    git_world w;
    struct stat st;
    pthread_t thread;
    int allowed = -1;
    const char *paths[] = {"a", NULL};
    if (pthread_create(&thread, NULL, try_unshare, &allowed) == 0)
        pthread_join(thread, NULL);
    if (allowed < 0) {
        test_skip("this container does not let a thread have its own umask");
        return;
    }
    git_world_begin_with_commit(&w);
    git_world_close(&w);
    CHECK_INT(unlink(at(&w, "repo/a")), 0);
    mode_t before = umask(077);
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){.may_write = true, .set_umask = true, .umask = 022}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = paths), WEFT_GIT_OK);
    CHECK_INT(umask(before), 077);
    CHECK(stat(at(&w, "repo/a"), &st) == 0 && (st.st_mode & 0777) == 0644);
    git_world_end(&w);
}

/* The user's own hooks count, and what they say is told, without control characters. */
TEST(hooks_of_the_user) {
    git_world w;
    git_world_begin_with_commit(&w);
    dir(&w, "hooks");
    script(&w, "hooks/pre-commit", "#!/bin/sh\nprintf 'no\\033[31m and \\377 no\\n' >&2\nexit 1\n");
    CHECK_INT(git_in(&w, "repo", "config", "--global", "core.hooksPath", at(&w, "hooks"), NULL), 0);
    put(&w, "repo/a", "changed");
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {"x", 1}), WEFT_GIT_REFUSED);
    CHECK_TEXT(w.message, strlen(w.message), "no?[31m and ? no");
    script(&w, "hooks/pre-commit", "#!/bin/sh\nprintf 'ok' > \"$HOME/ran\"\n");
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {"x", 1}), WEFT_GIT_OK);
    CHECK(is_there(&w, "home/ran"));
    git_world_end(&w);
}

/* A hook that leaves something behind which holds our pipes does not hold us. */
TEST(hook_that_leaves_something_behind) {
    git_world w;
    git_world_begin_with_commit(&w);
    script(&w, "repo/.git/hooks/post-commit", "#!/bin/sh\ntail -f /dev/null &\necho $! > \"$HOME/pid\"\n");
    put(&w, "repo/a", "changed");
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {"x", 1}), WEFT_GIT_OK);
    char pid[32];
    if (CHECK(atoi(small_file(at(&w, "home/pid"), pid, sizeof pid)) > 1))
        CHECK_INT(kill((pid_t) atoi(pid), SIGKILL), 0);
    git_world_end(&w);
}

TEST(untrusted_repositories_are_read_only) {
    static const weft_git_what writes[] = {WEFT_GIT_STAGE, WEFT_GIT_UNSTAGE, WEFT_GIT_DISCARD, WEFT_GIT_COMMIT};
    git_world w;
    const char *paths[] = {"a", NULL};
    git_world_begin_with_commit(&w);
    put(&w, "repo/a", "changed");
    weft__git_set_may_write(w.git, false);
    for (size_t i = 0; i < 4; i++)
        CHECK_INT(ASK(&w, writes[i], .paths = paths, .message = {"x", 1}), WEFT_GIT_UNTRUSTED);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.M a");
    weft__git_set_may_write(w.git, true);
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .paths = paths), WEFT_GIT_OK);
    git_world_end(&w);
}

/* ---- arguments ---- */

TEST(arguments_that_look_like_options) {
    static const char *const names[] = {"--help", "-f", ":(top)a", ":!a", "*", "--output=x", "a b", "\\"};
    static const char *const bad_paths[] = {"", "/etc/passwd", "../x", "a/../../x", "..", "a/.."};
    static const char *const bad_refs[] = {"--output=/tmp/weft-x",
                                           "-p",
                                           "",
                                           "main..side",
                                           "HEAD^",
                                           "a b",
                                           "@{1}",
                                           "HEAD:a",
                                           "x.lock",
                                           "main~1",
                                           "/x",
                                           ".x",
                                           "x/.y",
                                           "@"};
    git_world w;
    git_world_begin_with_commit(&w);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];
        const char *paths[] = {names[i], NULL};
        test_row(names[i]);
        put(&w, "repo/other", "o");
        snprintf(path, sizeof path, "repo/%s", names[i]);
        put(&w, path, "x\n");
        CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .paths = paths), WEFT_GIT_OK);
        CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = names[i], .side = WEFT_GIT_STAGED), WEFT_GIT_OK);
        CHECK(w.diff.is_new && w.diff.files == 1 && w.diff.additions == 1);
        CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF, .path = names[i]), WEFT_GIT_OK);
        CHECK_INT(w.count, 0);
        CHECK_INT(ASK(&w, WEFT_GIT_UNSTAGE, .paths = paths), WEFT_GIT_OK);
        CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = paths, .untracked = true), WEFT_GIT_OK);
        CHECK(!is_there(&w, path) && is_there(&w, "repo/other") && is_there(&w, "repo/a"));
    }
    test_row(NULL);
    for (size_t i = 0; i < sizeof bad_paths / sizeof bad_paths[0]; i++) {
        const char *paths[] = {"a", bad_paths[i], NULL};
        test_row(bad_paths[i]);
        CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .paths = paths), -1000);
        CHECK_INT(w.r, -EINVAL);
        CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = paths), -1000);
        CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .path = bad_paths[i]), -1000);
        CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF, .path = bad_paths[i]), -1000);
    }
    test_row(NULL);
    for (size_t i = 0; i < sizeof bad_refs / sizeof bad_refs[0]; i++) {
        test_row(bad_refs[i]);
        CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF, .ref = bad_refs[i]), -1000);
    }
    test_row(NULL);
    CHECK_INT(ASK(&w, (weft_git_what) 99), -1000);
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE), -1000);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .side = (weft_git_side) 9), -1000);
    git_world_end(&w);
}

TEST(many_paths) {
    git_world w;
    git_world_begin(&w);
    git_world_open_repo(&w);
    const char **paths = calloc(2001, sizeof *paths);
    char(*names)[24] = calloc(2000, sizeof *names);
    for (int i = 0; i < 2000; i++) {
        char path[40];
        snprintf(names[i], sizeof names[i], "%05d", i);
        snprintf(path, sizeof path, "repo/%s", names[i]);
        put(&w, path, "");
        paths[i] = names[i];
    }
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .paths = paths), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_INT(w.status.staged, 2000);
    CHECK_INT(ASK(&w, WEFT_GIT_UNSTAGE, .paths = paths), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = paths, .untracked = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK(w.status.is_clean);
    char *longest = malloc(4001);
    memset(longest, 'x', 4000);
    longest[4000] = '\0';
    for (int i = 0; i < 2000; i++)
        paths[i] = longest;
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .paths = paths), -1000);
    CHECK_INT(w.r, -E2BIG);
    free(longest);
    free(names);
    free(paths);
    git_world_end(&w);
}

/* ---- where there is none ---- */

TEST(no_repository) {
    git_world w;
    git_world_begin(&w);
    dir(&w, "plain");
    CHECK_INT(git_world_open(&w, "plain", (weft_git_opts){0}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_NO_REPOSITORY);
    CHECK(*w.message);
    dir(&w, "plain/.git"); /* an empty one is none */
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_NO_REPOSITORY);
    git_world_close(&w);
    CHECK_INT(git_world_open(&w, "nothing", (weft_git_opts){0}), -ENOENT);
    CHECK_INT(git_world_open(&w, "home/.gitconfig", (weft_git_opts){0}), -ENOTDIR);
    git_world_end(&w);
}

TEST(no_git) {
    git_world w;
    char *path = strdup(getenv("PATH"));
    git_world_begin_with_commit(&w);
    git_world_close(&w);
    /* One that the project brings is none. */
    dir(&w, "repo/bin");
    script(&w, "repo/bin/git", "#!/bin/sh\nprintf x > \"$HOME/ran\"\n");
    setenv("PATH", at(&w, "repo/bin"), 1);
    git_world_open_repo(&w);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), -ENOENT);
    CHECK(!is_there(&w, "home/ran"));
    setenv("PATH", path, 1);
    free(path);
    git_world_end(&w);
}

TEST(dubious_ownership) {
    git_world w;
    if (geteuid() != 0) {
        test_skip("only root can give a folder away");
        return;
    }
    git_world_begin_with_commit(&w);
    CHECK_INT(chown(at(&w, "repo"), 12345, 12345), 0);
    CHECK_INT(chown(at(&w, "repo/.git"), 12345, 12345), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_DUBIOUS);
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_DUBIOUS);
    CHECK_INT(git_in(&w, ".", "config", "--global", "safe.directory", at(&w, "repo"), NULL), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    git_world_end(&w);
}

TEST(worktrees_and_submodules) {
    git_world w;
    git_world_begin_with_commit(&w);
    GIT(&w, "worktree", "add", "-q", "-b", "side", at(&w, "tree"));
    GIT(&w, "-c", "protocol.file.allow=always", "submodule", "add", "-q", at(&w, "repo"), "module");
    GIT(&w, "commit", "-qm", "module");
    git_world_close(&w);
    put(&w, "tree/a", "changed");
    CHECK_INT(git_world_open(&w, "tree", (weft_git_opts){.may_write = true}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "side|.M a");
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {"x", 1}), WEFT_GIT_OK);
    git_world_close(&w);
    put(&w, "repo/module/a", "changed");
    CHECK_INT(git_world_open(&w, "repo/module", (weft_git_opts){.may_write = true}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.M a");
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {"x", 1}), WEFT_GIT_OK);
    git_world_close(&w);
    /* From above: the new commit is seen, what lies in its files is not looked at. */
    git_world_open_repo(&w);
    put(&w, "repo/module/a", "changed again");
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.M module");
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF), WEFT_GIT_OK);
    CHECK(strstr(w.text, "+Subproject commit ") != NULL && !strstr(w.text, "dirty"));
    git_world_end(&w);
}

TEST_MAIN(CASE(status) CASE(status_and_its_upstream) CASE(conflicts) CASE(diff) CASE(diff_does_not_depend_on_taste)
              CASE(diff_of_new_files) CASE(log) CASE(branches) CASE(reading_writes_nothing) CASE(only_the_folder)
                  CASE(stage_unstage_discard) CASE(commit) CASE(umask_of_the_user) CASE(hooks_of_the_user)
                      CASE(hook_that_leaves_something_behind) CASE(untrusted_repositories_are_read_only)
                          CASE(arguments_that_look_like_options) CASE(many_paths) CASE(no_repository) CASE(no_git)
                              CASE(dubious_ownership) CASE(worktrees_and_submodules))

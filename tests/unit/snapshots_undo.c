/* Putting back what lies between two snapshots, on real files: all of it or nothing, whatever was done meanwhile. */
#include <errno.h>

#include "snapshot_world.h"

static bool check_file(const snapshot_world *s, const char *path, const char *want) {
    char is[4096];
    small_file(at(&s->w, path), is, sizeof is);
    bool right = CHECK(strcmp(is, want) == 0 && is_there(&s->w, path) == (*want != '\0'));
    if (!right)
        printf("  %s is \"%s\"\n", path, is);
    return right;
}

static unsigned mode_at(const snapshot_world *s, const char *path) {
    struct stat st;
    return lstat(at(&s->w, path), &st) == 0 ? st.st_mode & 0777 : 0;
}

/* A task adds, changes, deletes, renames, makes a link and something that can be run. */
static void do_task(snapshot_world *s) {
    put(&s->w, "repo/a", "1\n2 by the task\n3\n");
    dir(&s->w, "repo/made");
    dir(&s->w, "repo/made/deep");
    put(&s->w, "repo/made/deep/new", "new\n");
    unlink(at(&s->w, "repo/sub/b"));
    rmdir(at(&s->w, "repo/sub"));
    rename(at(&s->w, "repo/long"), at(&s->w, "repo/longer"));
    chmod(at(&s->w, "repo/run"), 0755);
    CHECK_INT(symlink("a", at(&s->w, "repo/link")), 0);
    put(&s->w, "repo/crlf", "a\nb\n");
    put(&s->w, "repo/-\n\xff", "odd\n");
}

static void begin_task(snapshot_world *s, char before[WEFT_SNAPSHOT_HEX], char after[WEFT_SNAPSHOT_HEX]) {
    snapshot_world_begin(s);
    put(&s->w, "repo/long", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    put(&s->w, "repo/run", "#!/bin/sh\n");
    chmod(at(&s->w, "repo/run"), 0644);
    put(&s->w, "repo/crlf", "a\r\nb\r\n");
    put(&s->w, "repo/bystander", "x\n");
    CHECK_INT(snapshot_world_take(s, "task-0001.before", before), 0);
    do_task(s);
    CHECK_INT(snapshot_world_take(s, "task-0001.after", after), 0);
}

static void check_undone(const snapshot_world *s) {
    check_file(s, "repo/a", "1\n2\n3\n");
    check_file(s, "repo/sub/b", "b\n");
    check_file(s, "repo/long", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    check_file(s, "repo/longer", "");
    check_file(s, "repo/crlf", "a\r\nb\r\n");
    check_file(s, "repo/bystander", "x\n");
    CHECK(!is_there(&s->w, "repo/made") && !is_there(&s->w, "repo/link") && !is_there(&s->w, "repo/-\n\xff"));
    CHECK_INT(mode_at(s, "repo/run"), 0644);
}

TEST(back_and_forth) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX], from[WEFT_SNAPSHOT_HEX], to[WEFT_SNAPSHOT_HEX];
    begin_task(&s, before, after);
    CHECK_INT(UNDO(&s, .before = before, .after = after), 0);
    CHECK_SNAP_SAID(&s, "");
    CHECK_INT(s.files, 9);
    check_undone(&s);
    CHECK(strcmp(s.from, after) == 0);
    memcpy(from, s.from, sizeof from);
    memcpy(to, s.to, sizeof to);
    CHECK_INT(COMPARE(&s, .from = to), 0); /* the goal is what is there */
    CHECK_SNAP_SAID(&s, "");
    CHECK_INT(COMPARE(&s, .from = before), 0);
    CHECK_SNAP_SAID(&s, "");
    CHECK_INT(UNDO(&s, .before = from, .after = to, .redo = true), 0);
    CHECK_INT(COMPARE(&s, .from = after), 0);
    CHECK_SNAP_SAID(&s, "");
    CHECK_INT(mode_at(&s, "repo/run"), 0755);
    CHECK(is_there(&s.w, "repo/made/deep/new"));
    snapshot_world_end(&s);
}

/* A person changed other lines, other files, and made a new one. */
TEST(what_others_did_stays) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    put(&s.w, "repo/a", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "repo/a", "1 task\n2\n3\n4\n5\n6\n7\n8\n9\n");
    put(&s.w, "repo/mine", "task\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.after", after), 0);
    put(&s.w, "repo/a", "1 task\n2\n3\n4\n5\n6\n7\n8\n9 person\n");
    put(&s.w, "repo/sub/b", "person\n");
    chmod(at(&s.w, "repo/a"), 0755);
    CHECK_INT(UNDO(&s, .before = before, .after = after), 0);
    CHECK_SNAP_SAID(&s, "");
    check_file(&s, "repo/a", "1\n2\n3\n4\n5\n6\n7\n8\n9 person\n");
    check_file(&s, "repo/sub/b", "person\n");
    check_file(&s, "repo/mine", "");
    CHECK_INT(mode_at(&s, "repo/a"), 0755);
    snapshot_world_end(&s);
}

/* Each of these is refused, and nothing else is touched either. */
TEST(conflicts) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX], now[WEFT_SNAPSHOT_HEX];
    begin_task(&s, before, after);
    put(&s.w, "repo/a", "1\n2 by a person\n3\n");       /* the same line */
    put(&s.w, "repo/made/deep/new", "changed\n");       /* what would be deleted */
    dir(&s.w, "repo/sub");                              /* */
    put(&s.w, "repo/sub/b", "somebody made it anew\n"); /* what would come back */
    unlink(at(&s.w, "repo/crlf"));                      /* what would change */
    CHECK_INT(snapshot_world_take(&s, NULL, now), 0);
    CHECK_INT(UNDO(&s, .before = before, .after = after), 0);
    CHECK_SNAP_SAID(&s, "a: changed|crlf: deleted|made/deep/new: changed|sub/b: exists");
    CHECK_INT(s.conflicts, 4);
    CHECK_INT(COMPARE(&s, .from = now), 0);
    CHECK_SNAP_SAID(&s, "");
    CHECK(!is_there(&s.w, "state/changes/undo.plan"));
    snapshot_world_end(&s);
}

/* What is in the way is found only when files change places: those before it are put back. */
TEST(something_in_the_way) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX], now[WEFT_SNAPSHOT_HEX];
    begin_task(&s, before, after);
    put(&s.w, "repo/.gitignore", "long/\n");
    dir(&s.w, "repo/long");
    put(&s.w, "repo/long/ignored", "kept\n");
    CHECK_INT(snapshot_world_take(&s, NULL, now), 0);
    CHECK_INT(UNDO(&s, .before = before, .after = after), 0);
    CHECK_SNAP_SAID(&s, "long: inTheWay");
    CHECK_INT(COMPARE(&s, .from = now), 0);
    CHECK_SNAP_SAID(&s, "");
    check_file(&s, "repo/long/ignored", "kept\n");
    check_file(&s, "repo/made/deep/new", "new\n");
    CHECK_INT(mode_at(&s, "repo/run"), 0755);
    snapshot_world_end(&s);
}

/* A folder on the way was replaced by a link to somewhere else: nothing is written there. */
TEST(links_are_not_followed) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    dir(&s.w, "outside");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    unlink(at(&s.w, "repo/sub/b"));
    CHECK_INT(snapshot_world_take(&s, "task-0001.after", after), 0);
    rmdir(at(&s.w, "repo/sub"));
    CHECK_INT(symlink("../outside", at(&s.w, "repo/sub")), 0);
    CHECK_INT(UNDO(&s, .before = before, .after = after), 0);
    CHECK_SNAP_SAID(&s, "sub/b: inTheWay");
    CHECK(!is_there(&s.w, "outside/b"));
    snapshot_world_end(&s);
}

/* A file became a folder and comes back, and the other way round. */
TEST(folders_and_files) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    unlink(at(&s.w, "repo/a"));
    dir(&s.w, "repo/a");
    put(&s.w, "repo/a/in", "in\n");
    test_remove(at(&s.w, "repo/sub"));
    put(&s.w, "repo/sub", "file\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.after", after), 0);
    CHECK_INT(UNDO(&s, .before = before, .after = after), 0);
    CHECK_SNAP_SAID(&s, "");
    check_file(&s, "repo/a", "1\n2\n3\n");
    check_file(&s, "repo/sub/b", "b\n");
    CHECK_INT(UNDO(&s, .before = after, .after = before), 0);
    CHECK_SNAP_SAID(&s, "");
    check_file(&s, "repo/a/in", "in\n");
    check_file(&s, "repo/sub", "file\n");
    snapshot_world_end(&s);
}

/* The task lets git see what it ignored: that was there before, and is nobody's to delete. */
TEST(ignored_before) {
    static const char *const ways[] = {"#\n", "", "!*\n"};
    for (size_t i = 0; i < 3; i++) {
        snapshot_world s;
        char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
        test_row(ways[i]);
        snapshot_world_begin(&s);
        dir(&s.w, "repo/:deps");
        put(&s.w, "repo/:deps/x", "x\n");
        put(&s.w, "repo/.env", "secret\n");
        put(&s.w, "repo/.gitignore", ".env\n");
        put(&s.w, "repo/.git/info/exclude", "*.log\n");
        put(&s.w, "repo/sub/.gitignore", "");
        put(&s.w, "repo/sub/old.log", "old\n");
        put(&s.w, "repo/:deps/.gitignore", "x\n");
        CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
        put(&s.w, "repo/.gitignore", ways[i]);
        put(&s.w, "repo/sub/.gitignore", "!*.log\n");
        if (*ways[i])
            put(&s.w, "repo/:deps/.gitignore", ways[i]);
        else
            unlink(at(&s.w, "repo/:deps/.gitignore"));
        put(&s.w, "repo/made", "made\n");
        CHECK_INT(snapshot_world_take(&s, "task-0001.after", after), 0);
        CHECK_INT(UNDO(&s, .before = before, .after = after), 0);
        CHECK_SNAP_SAID(&s, "");
        check_file(&s, "repo/.env", "secret\n");
        check_file(&s, "repo/:deps/x", "x\n");
        check_file(&s, "repo/sub/old.log", "old\n");
        check_file(&s, "repo/.gitignore", ".env\n");
        check_file(&s, "repo/made", "");
        snapshot_world_end(&s);
    }
    test_row(NULL);
}

/* Likewise by the rules that are in no folder of the project: the repository's own, and those of the user's file. */
TEST(ignored_before_outside_of_the_tree) {
    static const struct {
        const char *exclude, *later; /* in .git/info/exclude */
        bool edits;                  /* a .gitignore, too */
        const char *said;            /* of what changed */
        const char *new;             /* what the task made, afterwards */
    } rows[] = {
        {".env\n", ".env\n", false, "A made +1-0", ""},
        {".env\n", "# none\n", false, "A .env +1-0|A made +1-0", ""},
        {".env\n", NULL, false, "A .env +1-0|A made +1-0", ""},
        {"/.env", "", true, "A .env +1-0|M .gitignore +1-1|A made +1-0", ""},
        {"*\n!/made\n!/sub\n", "x\n", false, "A .env +1-0|A made +1-0", ""},
        {".env\n", ".env\nmade\n", false, "", "made\n"}, /* it is ignored now, so it is no change */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snapshot_world s;
        char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
        snapshot_world_begin(&s);
        put(&s.w, "excludes", "*.key\n");
        GIT(&s.w, "config", "core.excludesFile", at(&s.w, "excludes"));
        put(&s.w, "repo/.gitignore", "*.o\n");
        GIT(&s.w, "add", "-f", ".gitignore");
        put(&s.w, "repo/.env", "secret\n");
        put(&s.w, "repo/a.key", "key\n");
        put(&s.w, "repo/.git/info/exclude", rows[i].exclude);
        CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
        put(&s.w, "repo/made", "made\n");
        if (rows[i].edits)
            put(&s.w, "repo/.gitignore", "*.obj\n");
        if (rows[i].later)
            put(&s.w, "repo/.git/info/exclude", rows[i].later);
        else
            unlink(at(&s.w, "repo/.git/info/exclude"));
        CHECK_INT(snapshot_world_take(&s, "task-0001.after", after), 0);
        CHECK_INT(COMPARE(&s, .from = before, .to = after), 0);
        bool right = CHECK_SNAP_SAID(&s, rows[i].said);
        CHECK_INT(UNDO(&s, .before = before, .after = after), 0);
        right &= CHECK_SNAP_SAID(&s, "");
        right &= check_file(&s, "repo/.env", "secret\n");
        right &= check_file(&s, "repo/a.key", "key\n");
        right &= check_file(&s, "repo/.gitignore", "*.o\n");
        right &= check_file(&s, "repo/made", rows[i].new);
        if (!right)
            printf("  row %zu\n", i);
        snapshot_world_end(&s);
    }
}

/* A link, or another folder, in the place of the project's: nothing is written where it leads. */
TEST(another_folder_in_its_place) {
    for (int i = 0; i < 3; i++) {
        snapshot_world s;
        char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
        begin_task(&s, before, after);
        dir(&s.w, "outside");
        CHECK_INT(rename(at(&s.w, "repo"), at(&s.w, "moved")), 0);
        if (i == 0)
            CHECK_INT(symlink("outside", at(&s.w, "repo")), 0);
        else if (i == 1)
            dir(&s.w, "repo");
        CHECK_INT(UNDO(&s, .before = before, .after = after), -EREMOTEIO);
        CHECK(strstr(s.message, i < 2 ? "something else in the place of the project's folder" : "is not there any more"));
        CHECK_INT(snapshot_world_take(&s, NULL, NULL), -EREMOTEIO);
        CHECK(!is_there(&s.w, "outside/a") && (i == 2 || !is_there(&s.w, "repo/a")));
        snapshot_world_end(&s);
    }
}

TEST(what_is_not_stored_is_refused) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX], large[200];
    snapshot_world_begin(&s);
    CHECK_INT(git_in(&s.w, ".", "clone", "-q", "repo", "repo/nested", NULL), 0);
    s.snapshots = weft__snapshots_free(s.snapshots);
    CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){.max_file = 100}), 0);
    memset(large, 'l', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "repo/a", large);
    put(&s.w, "repo/sub/b", "other\n");
    CHECK_INT(git_in(&s.w, "repo/nested", "commit", "-q", "--allow-empty", "-m", "x", NULL), 0);
    CHECK_INT(snapshot_world_take(&s, "task-0001.after", after), 0);
    CHECK_INT(UNDO(&s, .before = before, .after = after), 0);
    CHECK_SNAP_SAID(&s, "a: tooLarge|nested: submodule");
    check_file(&s, "repo/sub/b", "other\n");
    snapshot_world_end(&s);
}

/* git keeps other bytes than are in the files: line ends, an identity, what a filter makes of it. Ours are the files'. */
TEST(converted_files) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    script(&s.w, "clean", "#!/bin/sh\nsed s/plain/stored/\n");
    script(&s.w, "smudge", "#!/bin/sh\nsed s/stored/plain/\n");
    GIT(&s.w, "config", "filter.f.clean", at(&s.w, "clean"));
    GIT(&s.w, "config", "filter.f.smudge", at(&s.w, "smudge"));
    put(&s.w, "repo/.gitattributes", "*.crlf text eol=crlf\n*.id ident\n*.f filter=f\n");
    put(&s.w, "repo/x.crlf", "one\r\ntwo\r\n");
    put(&s.w, "repo/x.id", "$Id$\n");
    put(&s.w, "repo/x.f", "plain\n");
    GIT(&s.w, "add", ".");
    GIT(&s.w, "commit", "-qm", "converted");
    GIT(&s.w, "rm", "-q", "--cached", "x.id");
    unlink(at(&s.w, "repo/x.id"));
    GIT(&s.w, "reset", "-q", "--hard");
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "repo/x.crlf", "one\r\nthree\r\n");
    put(&s.w, "repo/x.f", "other\n");
    char id[256];
    small_file(at(&s.w, "repo/x.id"), id, sizeof id);
    CHECK(strstr(id, "$Id: ") != NULL);
    put(&s.w, "repo/x.id", "changed\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.after", after), 0);
    CHECK_INT(COMPARE(&s, .from = before, .to = after), 0);
    CHECK_SNAP_SAID(&s, "M x.crlf +1-1|M x.f +1-1|M x.id +1-1");
    CHECK_INT(UNDO(&s, .before = before, .after = after), 0);
    CHECK_SNAP_SAID(&s, "");
    check_file(&s, "repo/x.crlf", "one\r\ntwo\r\n");
    check_file(&s, "repo/x.f", "plain\n");
    check_file(&s, "repo/x.id", id);
    CHECK_INT(git_in(&s.w, "repo", "diff", "--quiet", NULL), 0);
    snapshot_world_end(&s);
}

/* What also changed while others worked may be theirs. */
TEST(shared_changes) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], middle[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
    snapshot_world_begin(&s);
    CHECK_INT(snapshot_world_take(&s, "task-0001.before", before), 0);
    put(&s.w, "repo/mine", "mine\n");
    CHECK_INT(snapshot_world_take(&s, "task-0002.before", middle), 0);
    put(&s.w, "repo/whose", "?\n");
    CHECK_INT(snapshot_world_take(&s, "task-0001.after", after), 0);
    const char *const shared[] = {middle, after, NULL};
    CHECK_INT(UNDO(&s, .before = before, .after = after, .shared = shared), 0);
    CHECK_SNAP_SAID(&s, "whose: shared");
    CHECK(is_there(&s.w, "repo/mine"));
    CHECK_INT(UNDO(&s, .before = before, .after = after, .shared = shared, .allow_shared = true), 0);
    CHECK(!is_there(&s.w, "repo/mine") && !is_there(&s.w, "repo/whose"));
    snapshot_world_end(&s);
}

/* An undo that has not been recorded is told again; one that was interrupted is finished, but for what changed since. */
TEST(interrupted) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX], *plan;
    size_t len = 0;
    begin_task(&s, before, after);
    int answers = s.answers;
    CHECK_INT(weft__snapshots_undo(s.snapshots, &(weft_undo){.owner = "task-0001", .before = before, .after = after},
                                   snapshot_world_undid, &s),
              0);
    GIT_UNTIL(&s.w, s.answers > answers);
    plan = test_file(at(&s.w, "state/changes/undo.plan"), &len);
    REQUIRE(plan != NULL);
    check_undone(&s);
    /* As it would be if it had been killed in the middle. */
    rename(at(&s.w, "repo/long"), at(&s.w, "repo/longer"));
    unlink(at(&s.w, "repo/crlf"));
    put(&s.w, "repo/a", "a person was quicker\n");
    put(&s.w, "state/changes/undo/3", "left over");
    s.snapshots = weft__snapshots_free(s.snapshots);
    answers = s.answers;
    CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){0}), 0);
    GIT_UNTIL(&s.w, s.answers > answers);
    CHECK_INT(s.left, 1);
    check_file(&s, "repo/long", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    check_file(&s, "repo/crlf", "a\r\nb\r\n");
    check_file(&s, "repo/a", "a person was quicker\n");
    CHECK(!is_there(&s.w, "repo/longer"));
    CHECK(!is_there(&s.w, "state/changes/undo/3"));
    weft__snapshots_undo_recorded(s.snapshots);
    CHECK(!is_there(&s.w, "state/changes/undo.plan"));
    free(plan);
    snapshot_world_end(&s);
}

static void check_not_undone(const snapshot_world *s) {
    check_file(s, "repo/a", "1\n2 by the task\n3\n");
    check_file(s, "repo/made/deep/new", "new\n");
    check_file(s, "repo/long", "");
    CHECK(!is_there(&s->w, "repo/sub") && is_there(&s->w, "repo/link"));
    CHECK_INT(mode_at(s, "repo/run"), 0755);
}

/* All or nothing, whichever allocation fails. */
static long memory_scene(snapshot_world *s, const char *before, const char *after, long fail_at) {
    test_memory memory;
    test_memory_init(&memory, fail_at);
    int r = snapshot_world_open(s, "repo", (weft_snapshots_opts){.alloc = &memory.alloc});
    if (r == 0)
        r = UNDO(s, .before = before, .after = after);
    CHECK(r == 0 || r == -ENOMEM);
    CHECK_INT(s->conflicts, 0);
    s->snapshots = weft__snapshots_free(s->snapshots);
    CHECK_INT(memory.live, 0);
    if (r == 0) {
        check_undone(s);
        do_task(s);
    } else
        check_not_undone(s);
    return memory.count;
}

TEST(memory_that_is_short) {
    snapshot_world s;
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
    begin_task(&s, before, after);
    s.snapshots = weft__snapshots_free(s.snapshots);
    long count = memory_scene(&s, before, after, 0);
    for (long n = 1; n <= count; n += n < 10 ? 3 : count / 40 + 1)
        memory_scene(&s, before, after, n);
    snapshot_world_end(&s);
}

TEST_MAIN(CASE(back_and_forth) CASE(what_others_did_stays) CASE(conflicts) CASE(something_in_the_way)
              CASE(links_are_not_followed) CASE(folders_and_files) CASE(ignored_before)
                  CASE(ignored_before_outside_of_the_tree) CASE(another_folder_in_its_place)
                      CASE(what_is_not_stored_is_refused) CASE(converted_files) CASE(shared_changes) CASE(interrupted)
                          CASE(memory_that_is_short))

/* Repositories that mean harm: each would have a program run, or show files from elsewhere, when somebody looks at it with
 * git. For each there is proof that plain git does so; through the engine nothing happens. */
#include <errno.h>
#include <signal.h>

#include "git_world.h"
#include "snapshot_world.h"
#include "worktrees.h"

static void begin_evil(git_world *w) {
    char text[512];
    git_world_begin(w);
    snprintf(text, sizeof text, "#!/bin/sh\nprintf x > '%s/ran'\nexit 1\n", w->folder);
    script(w, "evil", text);
    snprintf(text, sizeof text, "#!/bin/sh\nprintf x > '%s/ran'\ncat\n", w->folder);
    script(w, "filter", text);
    put(w, "repo/a.x", "one\n");
    put(w, "repo/b", "b\n");
    GIT(w, "add", ".");
    GIT(w, "commit", "-qm", "first");
}

/* Of the same size, so that git has to read it. The other file is as it was, but git has to look. */
static void change(git_world *w) {
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    put(w, "repo/a.x", "two\n");
    CHECK_INT(utimensat(AT_FDCWD, at(w, "repo/a.x"), times, 0), 0);
    CHECK_INT(utimensat(AT_FDCWD, at(w, "repo/b"), times, 0), 0);
}

static bool ran(git_world *w) {
    bool yes = is_there(w, "ran");
    unlink(at(w, "ran"));
    return yes;
}

/* ---- programs ---- */

static void set_fsmonitor(git_world *w) {
    GIT(w, "config", "core.fsmonitor", at(w, "evil"));
}

static void set_textconv(git_world *w) {
    put(w, "repo/.gitattributes", "*.x diff=evil\n");
    GIT(w, "config", "diff.evil.textconv", at(w, "filter"));
}

static void set_diff_command(git_world *w) {
    put(w, "repo/.gitattributes", "*.x diff=evil\n");
    GIT(w, "config", "diff.evil.command", at(w, "evil"));
}

static void set_external_diff(git_world *w) {
    GIT(w, "config", "diff.external", at(w, "evil"));
}

static void set_clean(git_world *w) {
    put(w, "repo/.gitattributes", "*.x filter=evil\n");
    GIT(w, "config", "filter.evil.clean", at(w, "filter"));
    GIT(w, "config", "filter.evil.smudge", at(w, "filter"));
    GIT(w, "config", "filter.evil.required", "true");
}

static void set_filter_process(git_world *w) {
    put(w, "repo/.git/info/attributes", "*.x filter=evil\n");
    GIT(w, "config", "filter.evil.process", at(w, "evil"));
    GIT(w, "config", "filter.evil.clean", at(w, "filter"));
}

/* A name that "-c NAME=VALUE" could not say. */
static void set_odd_filter(git_world *w) {
    char text[512];
    put(w, "repo/.git/info/attributes", "*.x filter=a=b.\"c\n");
    snprintf(text, sizeof text, "[core]\n\trepositoryformatversion = 0\n[filter \"a=b.\\\"c\"]\n\tclean = %s\n",
             at(w, "filter"));
    put(w, "repo/.git/config", text);
}

static void set_nameless_filter(git_world *w) {
    char text[512];
    put(w, "repo/.gitattributes", "*.x filter=\n");
    snprintf(text, sizeof text, "[core]\n\trepositoryformatversion = 0\n[filter \"\"]\n\tclean = %s\n", at(w, "filter"));
    put(w, "repo/.git/config", text);
}

/* A filter that the user's own configuration has, for files that the repository chooses. */
static void set_global_filter(git_world *w) {
    put(w, "repo/.gitattributes", "*.x filter=own\n");
    GIT(w, "config", "--global", "filter.own.clean", at(w, "filter"));
}

static void set_hook(git_world *w) {
    char text[512];
    snprintf(text, sizeof text, "#!/bin/sh\nprintf x > '%s/ran'\n", w->folder);
    script(w, "repo/.git/hooks/post-index-change", text);
}

static void set_hooks_path(git_world *w) {
    char text[512];
    dir(w, "repo/hooks");
    snprintf(text, sizeof text, "#!/bin/sh\nprintf x > '%s/ran'\n", w->folder);
    script(w, "repo/hooks/post-index-change", text);
    GIT(w, "config", "core.hooksPath", "hooks");
}

static void set_include(git_world *w) {
    char text[512];
    snprintf(text, sizeof text, "[core]\n\tfsmonitor = %s\n[filter \"inc\"]\n\tclean = %s\n", at(w, "evil"),
             at(w, "filter"));
    put(w, "repo/shared.config", text);
    put(w, "repo/.gitattributes", "*.x filter=inc\n");
    GIT(w, "config", "include.path", "../shared.config");
}

static void set_worktree_config(git_world *w) {
    GIT(w, "config", "core.repositoryformatversion", "1");
    GIT(w, "config", "extensions.worktreeConfig", "true");
    GIT(w, "config", "--worktree", "core.fsmonitor", at(w, "evil"));
}

/* An object is missing, and the remote that promised it is reached by a program. */
static void set_promised_object(git_world *w) {
    GIT(w, "config", "core.repositoryformatversion", "1");
    GIT(w, "config", "extensions.partialClone", "origin");
    GIT(w, "config", "remote.origin.url", "ssh://nowhere.invalid/x");
    GIT(w, "config", "remote.origin.promisor", "true");
    GIT(w, "config", "core.sshCommand", at(w, "evil"));
    CHECK_INT(unlink(at(w, "repo/.git/objects/56/26abf0f72e58d7a153368ba57db4c673c0e171")), 0); /* "one\n" */
}

static void set_promised_helper(git_world *w) {
    char url[PATH_MAX];
    set_promised_object(w);
    snprintf(url, sizeof url, "ext::%s", at(w, "evil"));
    GIT(w, "config", "remote.origin.url", url);
    GIT(w, "config", "protocol.ext.allow", "always");
}

/* A commit that looks signed, and a program that is to check it. */
static void set_signature(git_world *w) {
    script(w, "signer",
           "#!/bin/sh\ncat > /dev/null\nprintf '\\n[GNUPG:] SIG_CREATED x\\n' >&2\n"
           "printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'\n");
    GIT(w, "config", "gpg.program", at(w, "signer"));
    GIT(w, "commit", "-q", "-S", "--allow-empty", "-m", "signed");
    GIT(w, "config", "gpg.program", at(w, "evil"));
    GIT(w, "config", "log.showSignature", "true");
}

static void set_submodule(git_world *w) {
    CHECK_INT(git_in(w, ".", "clone", "-q", "repo", "other", NULL), 0);
    GIT(w, "submodule", "add", "-q", at(w, "other"), "module");
    GIT(w, "commit", "-qm", "module");
    CHECK_INT(git_in(w, "repo/module", "config", "core.fsmonitor", at(w, "evil"), NULL), 0);
    put(w, "repo/module/b", "changed\n");
}

static void set_aliases(git_world *w) {
    char text[PATH_MAX + 2];
    static const char *const names[] = {"alias.status", "alias.diff", "alias.log", "alias.config", "alias.for-each-ref"};
    snprintf(text, sizeof text, "!%s", at(w, "evil"));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        GIT(w, "config", names[i], text);
}

static void set_pagers(git_world *w) {
    static const char *const names[] = {"core.pager",
                                        "pager.status",
                                        "pager.diff",
                                        "pager.log",
                                        "pager.config",
                                        "core.editor",
                                        "core.askPass",
                                        "credential.helper",
                                        "core.gitProxy",
                                        "interactive.diffFilter",
                                        "sequence.editor",
                                        "gpg.ssh.program",
                                        "core.alternateRefsCommand",
                                        "uploadpack.packObjectsHook"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        GIT(w, "config", names[i], at(w, "evil"));
}

static const struct {
    const char *name;
    void (*set)(git_world *w);
    const char *proof; /* the verb with which plain git runs it; NULL: it does not either, today */
} programs[] = {
    {"fsmonitor", set_fsmonitor, "status"},
    {"textconv", set_textconv, "diff"},
    {"a diff driver's command", set_diff_command, "diff"},
    {"diff.external", set_external_diff, "diff"},
    {"clean and smudge", set_clean, "status"},
    {"a filter's process", set_filter_process, "status"},
    {"a filter with an odd name", set_odd_filter, "status"},
    {"a filter without a name", set_nameless_filter, "status"},
    {"a filter of the user's", set_global_filter, "status"},
    {"a hook", set_hook, "status"},
    {"core.hooksPath", set_hooks_path, "status"},
    {"include.path", set_include, "status"},
    {"a worktree's configuration", set_worktree_config, "status"},
    {"core.sshCommand", set_promised_object, "diff"},
    {"a remote helper", set_promised_helper, "diff"},
    {"a submodule", set_submodule, "status"},
    {"a signature", set_signature, "log"},
    {"aliases", set_aliases, NULL},
    {"pagers and others", set_pagers, NULL},
};

/* A snapshot writes objects and a ref; still nothing of the repository's runs, and the change is seen. */
static void look_at_snapshots(git_world *w) {
    snapshot_world s = {.w = *w};
    char before[WEFT_SNAPSHOT_HEX] = "";
    CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){0}), 0);
    if (snapshot_world_take(&s, "task-0001.before", before) == 0) {
        put(w, "repo/seen", "x\n");
        CHECK_INT(snapshot_world_take(&s, "task-0001.after", NULL), 0);
        CHECK_INT(COMPARE(&s, .from = before), 0);
        CHECK_SNAP_SAID(&s, "A seen +1-0");
        CHECK_INT(COMPARE(&s, .from = before, .text = true), 0);
        CHECK_INT(UNDO(&s, .before = before, .after = s.tree), 0);
        CHECK(!is_there(w, "repo/seen"));
    }
    weft__snapshots_free(s.snapshots);
}

static void on_worktree(void *ctx, const weft_worktree *made) {
    snapshot_world *s = ctx;
    s->answers++;
    s->r = made->r;
    snprintf(s->message, sizeof s->message, "%s", made->message);
}

/* A worktree writes a branch and git's own folder for it; it is made, or refused in words, and nothing runs. */
static void look_at_worktrees(git_world *w) {
    snapshot_world s = {.w = *w};
    CHECK_INT(snapshot_world_open(&s, "repo", (weft_snapshots_opts){0}), 0);
    for (int i = 0; i < 2; i++) {
        weft_worktree_order order = {.owner = i ? "task-0002" : "task-0001", .asker = "x", .changes = i};
        int before = s.answers;
        CHECK_INT(weft__worktree_make(s.snapshots, &order, on_worktree, &s), 0);
        GIT_UNTIL(&s.w, s.answers > before);
        CHECK(s.r == 0 || (s.r == -EREMOTEIO && *s.message));
        CHECK_INT(is_there(w, i ? "state/worktrees/task-0002/.git" : "state/worktrees/task-0001/.git"), s.r == 0);
    }
    weft__snapshots_free(s.snapshots);
}

static void look_at_everything(git_world *w) {
    static const weft_git_request requests[] = {
        {WEFT_GIT_STATUS, .untracked = true},
        {WEFT_GIT_DIFF_OF},
        {WEFT_GIT_DIFF_OF, .side = WEFT_GIT_STAGED},
        {WEFT_GIT_DIFF_OF, .side = WEFT_GIT_BOTH},
        {WEFT_GIT_DIFF_OF, .side = WEFT_GIT_NEW, .path = "a.x"},
        {WEFT_GIT_LOG_OF, .path = "a.x"},
        {WEFT_GIT_LIST_BRANCHES, .remotes = true},
    };
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        git_world_ask(w, requests[i]);
    look_at_snapshots(w);
    look_at_worktrees(w);
}

TEST(programs_do_not_run) {
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        git_world w;
        test_row(programs[i].name);
        begin_evil(&w);
        programs[i].set(&w);
        change(&w);
        ran(&w);
        CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){0}), 0);
        look_at_everything(&w);
        CHECK(!ran(&w));
        CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
        CHECK(strstr(w.text, "|.M a.x") != NULL);
        CHECK(!ran(&w));
        if (programs[i].proof) {
            change(&w);
            git_in(&w, "repo", programs[i].proof, NULL);
            CHECK(ran(&w));
        }
        git_world_end(&w);
    }
    test_row(NULL);
}

/* ---- the environment of the daemon ---- */

TEST(variables_of_another_repository) {
    static const char *const names[] = {
        "GIT_DIR",        "GIT_INDEX_FILE",          "GIT_WORK_TREE",         "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR", "GIT_NAMESPACE",           "GIT_CONFIG_PARAMETERS", "GIT_EXEC_PATH",
        "GIT_TRACE",      "GIT_CEILING_DIRECTORIES", "GIT_SSH_COMMAND",       "GIT_PREFIX"};
    git_world w;
    begin_evil(&w);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        setenv(names[i], "/nonexistent", 1);
    setenv("GIT_EXTERNAL_DIFF", at(&w, "evil"), 1);
    setenv("GIT_PAGER", at(&w, "evil"), 1);
    int r = git_world_open(&w, "repo", (weft_git_opts){.may_write = true});
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    unsetenv("GIT_EXTERNAL_DIFF");
    unsetenv("GIT_PAGER");
    REQUIRE(r == 0);
    change(&w);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.M a.x");
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF), WEFT_GIT_OK);
    CHECK_INT(w.diff.files, 1);
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_COMMIT, .message = {"x", 1}), WEFT_GIT_OK);
    CHECK(!ran(&w));
    git_world_end(&w);
}

/* ---- files from elsewhere ---- */

/* A repository of the user's that has nothing to do with the one that is looked at. */
static void make_private(git_world *w) {
    dir(w, "private");
    put(w, "private/secret", "secret\n");
    CHECK_INT(git_in(w, "private", "init", "-q", NULL), 0);
    CHECK_INT(git_in(w, "private", "add", ".", NULL), 0);
    CHECK_INT(git_in(w, "private", "commit", "-qm", "private history", NULL), 0);
}

TEST(core_worktree_is_overruled) {
    git_world w;
    const char *paths[] = {"b", NULL};
    begin_evil(&w);
    make_private(&w);
    put(&w, "private/b", "private b\n");
    GIT(&w, "config", "core.worktree", at(&w, "private"));
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){.may_write = true}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS, .untracked = true), WEFT_GIT_OK);
    CHECK_SAID(&w, "main");
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF), WEFT_GIT_OK);
    CHECK_SAID(&w, "");
    put(&w, "repo/b", "changed\n");
    CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = paths), WEFT_GIT_OK);
    char text[64];
    CHECK_STR(small_file(at(&w, "private/b"), text, sizeof text), "private b\n");
    CHECK_STR(small_file(at(&w, "repo/b"), text, sizeof text), "b\n");
    git_world_end(&w);
}

static void refuse_everything(git_world *w, weft_git_refusal want) {
    const char *paths[] = {"secret", NULL};
    CHECK_INT(git_world_open(w, "archive", (weft_git_opts){.may_write = true}), 0);
    CHECK_INT(ASK(w, WEFT_GIT_STATUS), want);
    CHECK_INT(ASK(w, WEFT_GIT_LOG_OF), want);
    CHECK_INT(ASK(w, WEFT_GIT_DIFF_OF, .side = WEFT_GIT_BOTH), want);
    CHECK_INT(ASK(w, WEFT_GIT_LIST_BRANCHES), want);
    CHECK_INT(ASK(w, WEFT_GIT_STAGE, .paths = paths), want);
    CHECK_INT(ASK(w, WEFT_GIT_COMMIT, .message = {"x", 1}), want);
    CHECK(*w->message);
    git_world_close(w);
}

TEST(git_file_that_leads_elsewhere) {
    git_world w;
    char text[PATH_MAX];
    begin_evil(&w);
    make_private(&w);
    dir(&w, "archive");
    snprintf(text, sizeof text, "gitdir: %s\n", at(&w, "private/.git"));
    put(&w, "archive/.git", text);
    refuse_everything(&w, WEFT_GIT_ELSEWHERE);
    put(&w, "archive/.git", "gitdir: ../private/.git");
    refuse_everything(&w, WEFT_GIT_ELSEWHERE);
    put(&w, "archive/.git", "nonsense");
    refuse_everything(&w, WEFT_GIT_ELSEWHERE);
    /* Another worktree of the user's. */
    CHECK_INT(git_in(&w, "private", "worktree", "add", "-q", at(&w, "tree"), NULL), 0);
    put(&w, "archive/.git", "gitdir: ../private/.git/worktrees/tree\n");
    refuse_everything(&w, WEFT_GIT_ELSEWHERE);
    /* A link. */
    unlink(at(&w, "archive/.git"));
    CHECK_INT(symlink("../private/.git", at(&w, "archive/.git")), 0);
    refuse_everything(&w, WEFT_GIT_ELSEWHERE);
    /* A pipe is nothing, and nobody waits for it. */
    unlink(at(&w, "archive/.git"));
    CHECK_INT(mkfifo(at(&w, "archive/.git"), 0600), 0);
    refuse_everything(&w, WEFT_GIT_NO_REPOSITORY);
    unlink(at(&w, "archive/.git"));
    /* A folder that borrows all but its head. */
    dir(&w, "archive/.git");
    put(&w, "archive/.git/HEAD", "ref: refs/heads/main\n");
    put(&w, "archive/.git/commondir", "../../private/.git\n");
    refuse_everything(&w, WEFT_GIT_ELSEWHERE);
    /* The owner says that it is meant. */
    test_remove(at(&w, "archive/.git"));
    put(&w, "archive/.git", "gitdir: ../private/.git\n");
    CHECK_INT(git_in(&w, "private", "config", "core.worktree", at(&w, "archive"), NULL), 0);
    CHECK_INT(git_world_open(&w, "archive", (weft_git_opts){0}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|.D secret");
    git_world_end(&w);
}

/* A folder of the project that is itself laid out as a repository: git would take it for one. */
TEST(repository_within_the_files) {
    git_world w;
    char text[512];
    begin_evil(&w);
    dir(&w, "repo/data");
    CHECK_INT(git_in(&w, "repo/data", "init", "-q", "--bare", ".", NULL), 0);
    snprintf(text, sizeof text, "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = %s\n",
             at(&w, "evil"));
    put(&w, "repo/data/config", text);
    CHECK_INT(git_world_open(&w, "repo/data", (weft_git_opts){0}), 0);
    look_at_everything(&w);
    CHECK(!ran(&w));
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|?? ./");
    CHECK(!ran(&w));
    git_in(&w, "repo/data", "status", NULL);
    CHECK(ran(&w));
    git_world_end(&w);
}

/* Links in the place of folders that git knows: nothing outside is read or written. */
TEST(folders_that_became_links) {
    git_world w;
    const char *paths[] = {"d/secret", NULL};
    begin_evil(&w);
    make_private(&w);
    dir(&w, "repo/d");
    put(&w, "repo/d/secret", "other\n");
    GIT(&w, "add", ".");
    GIT(&w, "commit", "-qm", "d");
    test_remove(at(&w, "repo/d"));
    CHECK_INT(symlink("../private", at(&w, "repo/d")), 0);
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){.may_write = true}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF), WEFT_GIT_OK);
    CHECK(!strstr(w.text, "+secret"));
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .paths = paths), WEFT_GIT_REFUSED);
    CHECK_INT(ASK(&w, WEFT_GIT_DISCARD, .paths = paths, .untracked = true), WEFT_GIT_OK);
    ASK(&w, WEFT_GIT_DISCARD, .paths = paths);
    char text[64];
    CHECK_STR(small_file(at(&w, "private/secret"), text, sizeof text), "secret\n");
    git_world_end(&w);
}

/* A hub's own files among those of the repository: their content is not shown. */
TEST(tokens_are_not_shown_nor_restored) {
    static const char *const paths[] = {".weft/token", "sub/.Weft/token", ".aiwg/daemon/token", "sub/.aiwg/daemon/x"};
    static const weft_git_side sides[] = {WEFT_GIT_UNSTAGED, WEFT_GIT_BOTH, WEFT_GIT_STAGED};
    git_world w;
    char path[64];
    begin_evil(&w);
    dir(&w, "repo/sub");
    dir(&w, "repo/.weft");
    dir(&w, "repo/sub/.Weft");
    dir(&w, "repo/.aiwg");
    dir(&w, "repo/.aiwg/daemon");
    dir(&w, "repo/sub/.aiwg");
    dir(&w, "repo/sub/.aiwg/daemon");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 4; i++) {
            snprintf(path, sizeof path, "repo/%s", paths[i]);
            put(&w, path, round ? "secret\n" : "bait\n");
        }
        if (!round) {
            GIT(&w, "add", ".");
            GIT(&w, "commit", "-qm", "bait");
        }
    }
    change(&w);
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){0}), 0);
    for (size_t k = 0; k < 3; k++) {
        if (sides[k] == WEFT_GIT_STAGED)
            GIT(&w, "add", ".");
        CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .side = sides[k]), WEFT_GIT_OK);
        CHECK(strstr(w.text, "+two") && !strstr(w.text, "secret"));
        CHECK_INT(w.diff.files, 1);
        for (size_t i = 0; i < 4; i++) {
            CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .side = sides[k], .path = paths[i]), WEFT_GIT_OK);
            CHECK_SAID(&w, "");
        }
        CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF, .side = sides[k], .path = "sub"), WEFT_GIT_OK);
        CHECK_SAID(&w, "");
    }
    /* With the repository's own content in its place, its author would know the token. */
    GIT(&w, "reset", "-q");
    weft__git_set_may_write(w.git, true);
    for (size_t i = 0; i < 4; i++) {
        const char *one[] = {paths[i], NULL}, *all[] = {".", "sub", NULL};
        char text[16];
        ASK(&w, WEFT_GIT_DISCARD, .paths = one);
        ASK(&w, WEFT_GIT_DISCARD, .paths = all);
        ASK(&w, WEFT_GIT_DISCARD, .paths = one, .untracked = true);
        ASK(&w, WEFT_GIT_STAGE, .paths = one);
        snprintf(path, sizeof path, "repo/%s", paths[i]);
        CHECK_STR(small_file(at(&w, path), text, sizeof text), "secret\n");
    }
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_INT(w.status.staged, 0); /* a.x was restored, the others stay as they are */
    CHECK_INT(w.status.unstaged, 4);
    git_world_end(&w);
}

/* ---- things that hang or are too many ---- */

TEST(pipes_in_the_configuration) {
    git_world w;
    begin_evil(&w);
    CHECK_INT(mkfifo(at(&w, "repo/pipe"), 0600), 0);
    GIT(&w, "config", "core.excludesFile", at(&w, "repo/pipe"));
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){.read_ms = 500}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), -ETIMEDOUT);
    git_world_close(&w);
    GIT(&w, "config", "--unset", "core.excludesFile");
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){0}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    git_world_end(&w);
}

TEST(too_many_filters) {
    git_world w;
    char *text = calloc(1, 1 << 20);
    begin_evil(&w);
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){0}), 0);
    size_t len = (size_t) sprintf(text, "[core]\n\trepositoryformatversion = 0\n");
    for (int i = 0; i < WEFT_GIT_FILTERS; i++)
        len += (size_t) sprintf(text + len, "[filter \"f%d\"]\n\tclean = %s\n\tsmudge = x\n", i, at(&w, "filter"));
    put(&w, "repo/.git/config", text);
    put(&w, "repo/.gitattributes", "*.x filter=f255\n");
    change(&w);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK(!ran(&w));
    sprintf(text + len, "[filter \"one more\"]\n\tclean = x\n");
    put(&w, "repo/.git/config", text);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_REFUSED);
    CHECK(strstr(w.message, "too many filters") != NULL);
    put(&w, "repo/.git/config", "[broken\n");
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_REFUSED);
    free(text);
    git_world_end(&w);
}

TEST_MAIN(CASE(programs_do_not_run) CASE(variables_of_another_repository) CASE(core_worktree_is_overruled)
              CASE(git_file_that_leads_elsewhere) CASE(repository_within_the_files) CASE(folders_that_became_links)
                  CASE(tokens_are_not_shown_nor_restored) CASE(pipes_in_the_configuration) CASE(too_many_filters))

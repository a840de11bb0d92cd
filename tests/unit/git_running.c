/* How git runs: cancelling, time limits, the queue, programs that are not git at all, memory that is short. */
#include "git.h"

#include <errno.h>
#include <signal.h>

#include "git_world.h"
#include "guards.h"

/* A git that answers the first question and then hangs, with a child that hangs too. */
static void begin_hanging(git_world *w, weft_git_opts opts) {
    char program[PATH_MAX];
    git_world_begin(w);
    script(w, "hang",
           "#!/bin/sh\ncase \"$*\" in *config*--list*) exit 0;; esac\n"
           "tail -f /dev/null &\necho $! > \"$HOME/pid.tmp\"\nmv \"$HOME/pid.tmp\" \"$HOME/pid\"\nwait\n");
    snprintf(program, sizeof program, "%s", at(w, "hang"));
    opts.program = program;
    opts.may_write = true;
    CHECK_INT(git_world_open(w, "repo", opts), 0);
}

static pid_t child_of_hanging(git_world *w) {
    GIT_UNTIL(w, is_there(w, "home/pid"));
    char text[32];
    pid_t pid = (pid_t) atoi(small_file(at(w, "home/pid"), text, sizeof text));
    unlink(at(w, "home/pid"));
    return pid;
}

/* Killed, whether or not somebody has collected it yet. */
static bool is_dead(pid_t pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
    const char *state = strrchr(small_file(path, text, sizeof text), ')');
    return !state || state[2] == 'Z' || state[2] == 'X';
}

TEST(cancel) {
    git_world w;
    uint64_t id = 0, second = 0;
    begin_hanging(&w, (weft_git_opts){0});
    weft_git_request commit = {WEFT_GIT_COMMIT, .message = {"x", 1}};
    CHECK_INT(weft__git_ask(w.git, &commit, git_world_done, &w, &id), 0);
    CHECK_INT(weft__git_ask(w.git, &commit, git_world_done, &w, &second), 0);
    CHECK(id != second);
    pid_t child = child_of_hanging(&w);
    REQUIRE(child > 0);
    CHECK_INT(w.answers, 0);
    weft__git_cancel(w.git, second); /* it waits for the first */
    GIT_UNTIL(&w, w.answers == 1);
    CHECK_INT(w.r, -ECANCELED);
    weft__git_cancel(w.git, id);
    weft__git_cancel(w.git, id);
    GIT_UNTIL(&w, w.answers == 2);
    CHECK_INT(w.r, -ECANCELED);
    GIT_UNTIL(&w, is_dead(child));
    weft__git_cancel(w.git, id); /* it has gone: nothing happens */
    git_world_end(&w);
}

TEST(time_out) {
    git_world w;
    begin_hanging(&w, (weft_git_opts){.read_ms = 300});
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), -ETIMEDOUT);
    git_world_end(&w);
}

/* One that does not hear SIGTERM is killed. */
TEST(deaf_programs) {
    git_world w;
    char program[PATH_MAX];
    git_world_begin(&w);
    script(&w, "deaf",
           "#!/bin/sh\ncase \"$*\" in *config*--list*) exit 0;; esac\ntrap '' TERM\nwhile :; do tail -f /dev/null; done\n");
    snprintf(program, sizeof program, "%s", at(&w, "deaf"));
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){.program = program, .read_ms = 300}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), -ETIMEDOUT);
    git_world_end(&w);
}

TEST(queue) {
    git_world w;
    weft_git_request status = {WEFT_GIT_STATUS};
    uint64_t ids[WEFT_GIT_AT_ONCE + WEFT_GIT_WAITING];
    int asked = 0;
    begin_hanging(&w, (weft_git_opts){0});
    for (; asked < WEFT_GIT_AT_ONCE; asked++)
        CHECK_INT(weft__git_ask(w.git, &status, git_world_done, &w, &ids[asked]), 0);
    CHECK(child_of_hanging(&w) > 0);
    for (; asked < WEFT_GIT_AT_ONCE + WEFT_GIT_WAITING; asked++)
        CHECK_INT(weft__git_ask(w.git, &status, git_world_done, &w, &ids[asked]), 0);
    CHECK_INT(weft__git_ask(w.git, &status, git_world_done, &w, NULL), -EAGAIN);
    for (int i = 0; i < asked; i++)
        weft__git_cancel(w.git, ids[i]);
    GIT_UNTIL(&w, w.answers == asked);
    CHECK_INT(w.r, -ECANCELED);
    git_world_end(&w);
}

/* Freed while programs run and calls wait: all end, nobody is told. */
TEST(free_while_running) {
    git_world w;
    begin_hanging(&w, (weft_git_opts){0});
    for (int i = 0; i < 10; i++)
        CHECK_INT(weft__git_ask(w.git, &(weft_git_request){WEFT_GIT_STATUS}, git_world_done, &w, NULL), 0);
    pid_t child = child_of_hanging(&w);
    git_world_close(&w);
    GIT_UNTIL(&w, is_dead(child));
    CHECK_INT(w.answers, 0);
    git_world_end(&w);
}

/* Writes do not meet each other's lock; reads go on beside them. */
TEST(writes_take_turns) {
    git_world w;
    char names[12][8];
    git_world_begin(&w);
    git_world_open_repo(&w);
    for (int i = 0; i < 12; i++) {
        char path[128];
        snprintf(names[i], sizeof names[i], "f%d", i);
        snprintf(path, sizeof path, "repo/%s", names[i]);
        put(&w, path, "x");
        const char *paths[] = {names[i], NULL};
        CHECK_INT(weft__git_ask(w.git, &(weft_git_request){WEFT_GIT_STAGE, .paths = paths}, git_world_done, &w, NULL), 0);
        CHECK_INT(weft__git_ask(w.git, &(weft_git_request){WEFT_GIT_STATUS}, git_world_done, &w, NULL), 0);
    }
    for (int i = 1; i <= 24; i++) {
        GIT_UNTIL(&w, w.answers >= i);
        CHECK_INT(w.r, 0);
        CHECK_INT(w.refusal, WEFT_GIT_OK);
    }
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_INT(w.status.staged, 12);
    git_world_end(&w);
}

TEST(a_read_does_not_wait_for_a_hook) {
    git_world w;
    uint64_t id = 0;
    git_world_begin_with_commit(&w);
    script(&w, "repo/.git/hooks/pre-commit", "#!/bin/sh\nprintf x > \"$HOME/began\"\nexec tail -f /dev/null\n");
    put(&w, "repo/a", "changed");
    CHECK_INT(ASK(&w, WEFT_GIT_STAGE, .all = true), WEFT_GIT_OK);
    weft_git_request commit = {WEFT_GIT_COMMIT, .message = {"x", 1}};
    CHECK_INT(weft__git_ask(w.git, &commit, git_world_done, &w, &id), 0);
    GIT_UNTIL(&w, is_there(&w, "home/began"));
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), WEFT_GIT_OK);
    CHECK_SAID(&w, "main|M. a");
    weft__git_cancel(w.git, id);
    GIT_UNTIL(&w, w.answers == 3);
    CHECK_INT(w.r, -ECANCELED);
    CHECK(!is_there(&w, "repo/.git/index.lock"));
    CHECK_INT(ASK(&w, WEFT_GIT_UNSTAGE, .all = true), WEFT_GIT_OK);
    git_world_end(&w);
}

/* Output that has no end, and output that is nonsense. */
TEST(strange_programs) {
    git_world w;
    char program[PATH_MAX];
    git_world_begin(&w);
    script(&w, "flood", "#!/bin/sh\ncase \"$*\" in *config*--list*) exit 0;; esac\nexec cat /dev/zero\n");
    snprintf(program, sizeof program, "%s", at(&w, "flood"));
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){.program = program}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_DIFF_OF), WEFT_GIT_OK);
    CHECK(w.diff.truncated && w.diff.text.len == WEFT_GIT_DIFF);
    CHECK_INT(ASK(&w, WEFT_GIT_LOG_OF), -EBADMSG);
    git_world_close(&w);
    script(&w, "odd", "#!/bin/sh\ncase \"$*\" in *config*--list*) exit 0;; esac\necho odd\n");
    snprintf(program, sizeof program, "%s", at(&w, "odd"));
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){.program = program}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), -EBADMSG);
    CHECK_INT(ASK(&w, WEFT_GIT_LIST_BRANCHES), -EBADMSG);
    git_world_close(&w);
    script(&w, "killed", "#!/bin/sh\ncase \"$*\" in *config*--list*) exit 0;; esac\nkill -9 $$\n");
    snprintf(program, sizeof program, "%s", at(&w, "killed"));
    CHECK_INT(git_world_open(&w, "repo", (weft_git_opts){.program = program}), 0);
    CHECK_INT(ASK(&w, WEFT_GIT_STATUS), -EIO);
    git_world_end(&w);
}

/* ---- memory ---- */

static long memory_scene(git_world *w, weft_git_request request, long fail_at) {
    test_memory memory;
    test_memory_init(&memory, fail_at);
    int r = git_world_open(w, "repo", (weft_git_opts){.alloc = &memory.alloc, .may_write = true});
    if (r == 0) {
        int said = git_world_ask(w, request);
        if (!fail_at)
            CHECK_INT(said, WEFT_GIT_OK);
        else
            CHECK(said == WEFT_GIT_OK || w->r == -ENOMEM);
    } else
        CHECK_INT(r, -ENOMEM);
    git_world_close(w);
    CHECK_INT(memory.live, 0);
    return memory.count;
}

TEST(every_allocation_fails_once) {
    static const char *const paths[] = {"a", NULL};
    static const weft_git_request requests[] = {
        {WEFT_GIT_STATUS},        {WEFT_GIT_DIFF_OF, .path = "new", .side = WEFT_GIT_NEW}, {WEFT_GIT_LOG_OF},
        {WEFT_GIT_LIST_BRANCHES}, {WEFT_GIT_DISCARD, .paths = paths, .untracked = true},
    };
    git_world w;
    git_world_begin_with_commit(&w);
    git_world_close(&w);
    put(&w, "repo/new", "1\n2\n");
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        long count = memory_scene(&w, requests[i], 0);
        CHECK(count > 10);
        /* The first hundreds copy variables; each of those is like the others. */
        for (long n = 1; n <= count; n += n > 8 && n < count - 40 ? 7 : 1)
            memory_scene(&w, requests[i], n);
    }
    git_world_end(&w);
}

/* ---- beside guards ---- */

/* A daemon that looks for what lost its guard does not take a git that it waits for. Last: it changes this process. */
TEST(a_running_git_is_no_orphan) {
    git_world w;
    char mark[64];
    uint64_t id = 0;
    begin_hanging(&w, (weft_git_opts){0});
    snprintf(mark, sizeof mark, "WEFT_TEST_GIT=%d", (int) getpid());
    CHECK(weft__guards_adopt(mark) >= 0);
    CHECK_INT(weft__git_ask(w.git, &(weft_git_request){WEFT_GIT_STATUS}, git_world_done, &w, &id), 0);
    pid_t child = child_of_hanging(&w);
    CHECK_INT(weft__guards_kill_orphans(), 0);
    CHECK(!is_dead(child));
    CHECK_INT(w.answers, 0);
    weft__git_cancel(w.git, id);
    GIT_UNTIL(&w, w.answers == 1);
    git_world_end(&w);
}

TEST_MAIN(CASE(cancel) CASE(time_out) CASE(deaf_programs) CASE(queue) CASE(free_while_running) CASE(writes_take_turns)
              CASE(a_read_does_not_wait_for_a_hook) CASE(strange_programs) CASE(every_allocation_fails_once)
                  CASE(a_running_git_is_no_orphan))

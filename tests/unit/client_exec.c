/* Child processes: how they are found, what they inherit, and that they are gone in the end. */
#include "exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "find_program.h"
#include "harness.h"

/* ---- finding ---- */

#define FOLDER "build/tests/exec-path"

static void make_file(const char *path, mode_t mode) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
    CHECK(fd >= 0);
    fchmod(fd, mode);
    close(fd);
}

TEST(finds_programs) {
    char here[2048], only_here[4096], two[8192];
    CHECK(getcwd(here, sizeof here) != NULL);
    mkdir(FOLDER, 0700);
    mkdir(FOLDER "/folder", 0700);
    make_file(FOLDER "/program", 0755);
    make_file(FOLDER "/text", 0644);
    snprintf(only_here, sizeof only_here, "%s/" FOLDER, here);
    snprintf(two, sizeof two, "/nowhere:%s", only_here);
    const struct {
        const char *what, *name, *path;
        int want;
    } rows[] = {
        {"in PATH", "program", only_here, 0},
        {"in the second folder", "program", two, 0},
        {"not there", "nobody", only_here, -ENOENT},
        {"not executable", "text", only_here, -EACCES},
        {"a folder", "folder", only_here, -EACCES},
        {"relative folders are not searched", "program", FOLDER, -ENOENT},
        {"nor empty ones", FOLDER "x", "::", -ENOENT},
        {"no PATH", "program", NULL, -ENOENT},
        {"an empty name", "", only_here, -ENOENT},
        {"with a slash PATH does not matter", FOLDER "/program", "/nowhere", 0},
        {"with a slash, not there", "./nobody", only_here, -ENOENT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char found[4096];
        test_row(rows[i].what);
        CHECK_INT(weft__find_program(rows[i].name, rows[i].path, found, sizeof found), rows[i].want);
    }
    test_row(NULL);
    CHECK_INT(chdir(FOLDER), 0);
    char found[4096];
    CHECK_INT(weft__find_program("program", ".:", found, sizeof found), -ENOENT);
    CHECK_INT(chdir(here), 0);
}

/* ---- running ---- */

typedef struct scene {
    uv_loop_t loop;
    weft_child *child;
    int fd, exits, status;
    bool gone;
} scene;

static void on_exit_told(void *ctx, int status) {
    scene *s = ctx;
    s->exits++;
    s->status = status;
}

static void on_gone(void *ctx) {
    ((scene *) ctx)->gone = true;
}

static bool begin(scene *s, const char *script) {
    const char *argv[] = {"sh", "-c", script, NULL};
    *s = (scene){.fd = -1};
    uv_loop_init(&s->loop);
    int r = weft__child_new(&s->loop, argv, true, NULL, &s->child, &s->fd);
    if (r == 0)
        weft__child_on_exit(s->child, on_exit_told, s);
    return CHECK_INT(r, 0);
}

/* What the child writes, up to its end or the end of the room. */
static void read_all(const scene *s, char *ret, size_t size) {
    size_t len = 0;
    ssize_t n = 1;
    while (n > 0 && len + 1 < size) {
        struct pollfd wait = {.fd = s->fd, .events = POLLIN};
        poll(&wait, 1, -1);
        n = read(s->fd, ret + len, size - len - 1);
        len += n > 0 ? (size_t) n : 0;
        if (memchr(ret, '\n', len))
            break;
    }
    ret[len] = '\0';
}

static void end(scene *s) {
    close(s->fd);
    weft__child_end(s->child, on_gone, s);
    while (!s->gone && uv_run(&s->loop, UV_RUN_ONCE))
        ;
    CHECK(s->gone);
    CHECK_INT(uv_loop_close(&s->loop), 0);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), -1); /* no zombie is left */
    CHECK_INT(errno, ECHILD);
}

TEST(tells_the_exit_status) {
    static const struct {
        const char *script;
        int status;
    } rows[] = {{"exit 0", 0}, {"exit 7", 7 << 8}, {"kill -9 $$", 9}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        test_row(rows[i].script);
        if (!begin(&s, rows[i].script))
            continue;
        while (!s.exits && uv_run(&s.loop, UV_RUN_ONCE))
            ;
        CHECK_INT(s.status, rows[i].status);
        end(&s);
        CHECK_INT(s.exits, 1);
    }
}

TEST(is_a_clean_place) {
    scene s;
    char said[256];
    sigset_t blocked, before;
    int leak = dup(2); /* without close-on-exec, as a careless library would */
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    signal(SIGPIPE, SIG_IGN);
    REQUIRE(begin(
        &s, "set -- /proc/$$/fd/*; n=$#; while read k v; do case $k in SigBlk:|SigIgn:) m=$m${v#?????????};; esac; done "
            "</proc/$$/status; read a b c d g rest </proc/$$/stat; echo $m $(test $g = $$ && echo leader) $n"));
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    read_all(&s, said, sizeof said);
    /* Signals up to 28, those from 32 on may be libc's own; the fourth descriptor is the shell's, looking at the folder. */
    CHECK_TEXT(said, strlen(said), "00000000000000 leader 4\n");
    close(leak);
    end(&s);
}

TEST(leaves_when_its_input_ends) {
    scene s;
    REQUIRE(begin(&s, "cat >/dev/null"));
    end(&s);
    CHECK_INT(s.exits, 0); /* we ended it, nobody needs to be told */
}

/* Tests do not wait: what a timer is set for is due now. */
static void make_due(uv_handle_t *handle, void *ctx) {
    (void) ctx;
    if (handle->type == UV_TIMER && uv_is_active(handle))
        uv_timer_start((uv_timer_t *) handle, ((uv_timer_t *) handle)->timer_cb, 0, 0);
}

TEST(is_terminated_then_killed) {
    scene s;
    char said[16];
    REQUIRE(begin(&s, "trap '' TERM; echo ready; while :; do read x || sleep 100; done"));
    read_all(&s, said, sizeof said);
    close(s.fd);
    weft_child *child = s.child;
    weft__child_end(child, on_gone, &s);
    uv_walk(&s.loop, make_due, NULL);
    uv_run(&s.loop, UV_RUN_NOWAIT); /* SIGTERM, which it ignores */
    CHECK(!s.gone);
    uv_walk(&s.loop, make_due, NULL);
    while (!s.gone && uv_run(&s.loop, UV_RUN_ONCE))
        ;
    CHECK(s.gone);
    CHECK_INT(uv_loop_close(&s.loop), 0);
}

/* The pipe is held by the grandchild only: its end says that the grandchild has gone. */
TEST(takes_its_group_along) {
    scene s;
    char said[64];
    REQUIRE(begin(&s, "sleep 1000 & echo $!; exit 0"));
    read_all(&s, said, sizeof said);
    pid_t grandchild = (pid_t) strtol(said, NULL, 10);
    CHECK(grandchild > 1);
    struct pollfd hangup = {.fd = s.fd, .events = POLLIN};
    while (!s.exits && uv_run(&s.loop, UV_RUN_ONCE))
        ;
    poll(&hangup, 1, -1);
    CHECK_INT(read(s.fd, said, sizeof said), 0);
    end(&s);
}

TEST(says_why_it_cannot_start) {
    const char *argv[] = {"there-is-no-such-program", NULL};
    uv_loop_t loop;
    weft_child *child;
    int fd;
    uv_loop_init(&loop);
    CHECK_INT(weft__child_new(&loop, argv, true, NULL, &child, &fd), -ENOENT);
    CHECK_INT(uv_loop_close(&loop), 0);
}

TEST_MAIN(CASE(finds_programs) CASE(tells_the_exit_status) CASE(is_a_clean_place) CASE(leaves_when_its_input_ends)
              CASE(is_terminated_then_killed) CASE(takes_its_group_along) CASE(says_why_it_cannot_start))

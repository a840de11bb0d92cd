/* Programs under a guard (F11, F12): what they inherit, that their end is told truthfully, and that nothing of them stays.
 */
#include "process.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "agents/kit.h"
#include "confine.h"
#include "guards.h"

typedef struct scene {
    weft_loop *loop;
    weft_process *process;
    int fds[3];
    const char *mark;
    pid_t pid;
    int starts, ends;
    weft_process_end end;
    char said[4096];
    size_t len;
} scene;

static void on_start(void *ctx, pid_t pid) {
    scene *s = ctx;
    s->starts++;
    s->pid = pid;
    CHECK_INT(s->ends, 0);
}

static void on_end(void *ctx, const weft_process_end *end) {
    scene *s = ctx;
    s->ends++;
    s->end = *end;
    CHECK_INT(kit_marked(s->mark), 0); /* the end means that nothing is left */
}

static int try_start(scene *s, const char *const *argv, int64_t grace_ms, const weft_alloc *alloc) {
    const char *env[] = {s->mark, "NAUGHTY=yes", NULL};
    weft_process_opts opts = {
        .loop = s->loop,
        .alloc = alloc,
        .guard = kit_weft(),
        .argv = argv,
        .env = env,
        .folder = "/usr",
        .grace_ms = grace_ms,
        .ctx = s,
        .on_start = on_start,
        .on_end = on_end,
    };
    return weft__process_start(&opts, &s->process, s->fds);
}

static void open_scene(scene *s) {
    *s = (scene){.fds = {-1, -1, -1}, .mark = kit_mark()};
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
}

static bool begin(scene *s, int64_t grace_ms, const char *const *argv) {
    open_scene(s);
    return CHECK_INT(try_start(s, argv, grace_ms, NULL), 0);
}
#define BEGIN(s, grace_ms, ...) begin((s), (grace_ms), (const char *const[]){kit_naughty(), __VA_ARGS__, NULL})

static bool hear(scene *s) {
    ssize_t n = read(s->fds[1], s->said + s->len, sizeof s->said - 1 - s->len);
    s->len += n > 0 ? (size_t) n : 0;
    s->said[s->len] = '\0';
    return n == 0;
}

/* Until it has said this. */
static void expect(scene *s, const char *text) {
    KIT_UNTIL(s->loop, (hear(s), strstr(s->said, text) != NULL));
}

static void close_fds(scene *s) {
    for (int i = 0; i < 3; i++)
        if (s->fds[i] >= 0)
            close(s->fds[i]);
}

static void finish(scene *s) {
    KIT_UNTIL(s->loop, s->ends);
    s->process = weft__process_free(s->process);
    close_fds(s);
    weft_loop_free(s->loop);
    CHECK_INT(s->ends, 1);
    CHECK_INT(kit_marked(s->mark), 0);
    CHECK(kit_no_children());
}

/* ---- how it is told ---- */

TEST(tells_how_it_ended) {
    static const struct {
        const char *mode;
        int exit_code, signal;
    } rows[] = {{"exit=0", 0, 0}, {"exit=7", 7, 0}, {"crash", -1, SIGSEGV}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        test_row(rows[i].mode);
        if (!BEGIN(&s, 0, rows[i].mode))
            continue;
        finish(&s);
        CHECK_INT(s.starts, 1);
        CHECK(s.pid > 1);
        CHECK_INT(s.end.exit_code, rows[i].exit_code);
        CHECK_INT(s.end.signal, rows[i].signal);
        CHECK_INT(s.end.error, 0);
    }
    test_row(NULL);
}

TEST(tells_why_it_did_not_start) {
    static const struct {
        const char *what, *program;
        int error;
    } rows[] = {{"not there", "there-is-no-such-program", -ENOENT},
                {"no such path", "/nowhere/at/all", -ENOENT},
                {"a folder", "/usr", -EACCES},
                {"not executable", "/etc/passwd", -EACCES}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        test_row(rows[i].what);
        if (!begin(&s, 0, (const char *const[]){rows[i].program, NULL}))
            continue;
        finish(&s);
        CHECK_INT(s.starts, 0);
        CHECK_INT(s.end.error, rows[i].error);
        CHECK(!s.end.folder);
        CHECK_INT(s.end.exit_code, -1);
    }
    test_row(NULL);
}

TEST(tells_that_the_folder_is_not_there) {
    scene s;
    open_scene(&s);
    const char *argv[] = {kit_naughty(), "exit=0", NULL};
    weft_process_opts opts = {
        .loop = s.loop, .guard = kit_weft(), .argv = argv, .folder = "/nowhere/at/all", .ctx = &s, .on_end = on_end};
    REQUIRE(CHECK_INT(weft__process_start(&opts, &s.process, s.fds), 0));
    finish(&s);
    CHECK_INT(s.end.error, -ENOENT);
    CHECK(s.end.folder);
}

TEST(refuses_a_guard_that_is_not_there) {
    scene s;
    open_scene(&s);
    const char *argv[] = {kit_naughty(), NULL};
    weft_process_opts opts = {.loop = s.loop, .guard = "/nowhere/weft", .argv = argv, .folder = "/", .on_end = on_end};
    int before = kit_open_fds();
    CHECK_INT(weft__process_start(&opts, &s.process, s.fds), -ENOENT);
    CHECK_INT(kit_open_fds(), before);
    CHECK(kit_no_children());
    weft_loop_free(s.loop);
}

TEST(a_program_is_found_in_its_own_path) {
    scene s;
    char path[4200] = "PATH=";
    open_scene(&s);
    kit_program("", path + 5, sizeof path - 5);
    const char *argv[] = {"agent_naughty", "inherit", NULL}, *env[] = {path, "NAUGHTY=other", NULL};
    weft_process_opts opts = {
        .loop = s.loop, .guard = kit_weft(), .argv = argv, .env = env, .folder = "/", .ctx = &s, .on_end = on_end};
    setenv("NAUGHTY", "ours", 1);
    REQUIRE(CHECK_INT(weft__process_start(&opts, &s.process, s.fds), 0));
    unsetenv("NAUGHTY");
    expect(&s, "env other\n");
    finish(&s);
    CHECK_INT(s.end.exit_code, 0);
}

/* ---- what it inherits ---- */

/* What we found when we were started, although it was changed since; no signal blocked or ignored, three descriptors. */
TEST(is_a_clean_place) {
    scene s;
    struct rlimit found, other;
    char want[256];
    getrlimit(RLIMIT_NOFILE, &found);
    mode_t mask = umask(027);
    weft__process_remember();
    umask(077);
    other = (struct rlimit){found.rlim_cur - 1, found.rlim_max};
    setrlimit(RLIMIT_NOFILE, &other);
    signal(SIGPIPE, SIG_IGN);
    sigset_t usr1, before;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, &before);
    int careless = dup(2); /* without close-on-exec */
    bool begun = BEGIN(&s, 0, "inherit");
    close(careless);
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGPIPE, SIG_DFL);
    setrlimit(RLIMIT_NOFILE, &found);
    umask(mask);
    weft__process_remember();
    REQUIRE(begun);
    snprintf(want, sizeof want, "umask 027 files %llu leader 1 fds 3 signals 0 folder /usr env yes\n",
             (unsigned long long) found.rlim_cur);
    expect(&s, "\n");
    CHECK_TEXT(s.said, s.len, want);
    finish(&s);
}

/* It reads and writes where it was told, has no environment but its own, and no more memory than that. */
TEST(can_be_kept_to_some_folders) {
    scene s;
    char place[] = "/tmp/weft-confined-XXXXXX", own[64], other[64], script[512];
    open_scene(&s);
    if (!weft__confine_possible()) {
        test_skip("this kernel has no Landlock");
        weft_loop_free(s.loop);
        return;
    }
    REQUIRE(mkdtemp(place) != NULL);
    snprintf(own, sizeof own, "w%s/own", place);
    snprintf(other, sizeof other, "%s/other", place);
    REQUIRE(mkdir(own + 1, 0700) == 0 && mkdir(other, 0700) == 0);
    snprintf(script, sizeof script,
             "exec 2>/dev/null; echo x >own/f && echo wrote; ls own >/dev/null && echo listed; ls other && echo LISTED; "
             "(echo x >other/f) && echo WROTE; cat /etc/passwd; echo ${NAUGHTY-none} ${HOME-none}; ulimit -d");
    const char *argv[] = {"/bin/sh", "-c", script, NULL}, *env[] = {s.mark, NULL};
    const char *list[] = {"r/usr", "r/bin", "r/lib", "r/lib64", "r/etc/ld.so.cache", "w/dev/null", "r/nowhere", own, NULL};
    weft_process_bounds bounds = {.confined = list, .max_data = 64 << 20, .max_file = 1 << 20, .bare = true};
    weft_process_opts opts = {.loop = s.loop,
                              .guard = kit_weft(),
                              .argv = argv,
                              .env = env,
                              .folder = place,
                              .bounds = &bounds,
                              .ctx = &s,
                              .on_end = on_end};
    setenv("NAUGHTY", "ours", 1);
    REQUIRE(CHECK_INT(weft__process_start(&opts, &s.process, s.fds), 0));
    unsetenv("NAUGHTY");
    KIT_UNTIL(s.loop, hear(&s));
    CHECK_TEXT(s.said, s.len, "wrote\nlisted\nnone none\n65536\n");
    finish(&s);
    test_remove(place);
}

TEST(has_its_own_stdio) {
    scene s;
    REQUIRE(BEGIN(&s, 0, "warn=trouble\n", "stdin"));
    CHECK(fcntl(s.fds[0], F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(s.fds[1], F_GETFD) & FD_CLOEXEC);
    CHECK_INT(write(s.fds[0], "hello\n", 6), 6);
    expect(&s, "hello\n");
    close(s.fds[0]);
    s.fds[0] = -1;
    KIT_UNTIL(s.loop, hear(&s));
    char text[16] = "";
    CHECK_INT(read(s.fds[2], text, sizeof text - 1), 8);
    CHECK_TEXT(text, strlen(text), "trouble\n");
    finish(&s);
}

static pid_t parent_of(pid_t pid) {
    char path[64], text[512] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int) pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return 0;
    close(fd);
    const char *rest = strrchr(text, ')');
    return rest && sscanf(rest, ") %*c %d", &parent) == 1 ? parent : 0;
}

static int fds_of(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int) pid);
    DIR *dir = opendir(path);
    int count = -2;
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

/* Both of its processes: three that lead nowhere, the connection to us, and the one that tells of children. */
TEST(the_guard_holds_nothing) {
    scene s;
    int careless[3] = {dup(2), dup(2), dup(2)};
    REQUIRE(BEGIN(&s, 0, "linger"));
    KIT_UNTIL(s.loop, s.starts);
    pid_t guard = parent_of(s.pid), keeper = parent_of(guard);
    CHECK(parent_of(keeper) == getpid());
    if (geteuid() == 0) { /* nobody else may look into a guard */
        KIT_UNTIL(s.loop, fds_of(guard) == 5);
        KIT_UNTIL(s.loop, fds_of(keeper) == 5);
    } else
        CHECK_INT(fds_of(guard), -2);
    for (int i = 0; i < 3; i++)
        close(careless[i]);
    weft__process_stop(s.process, true);
    finish(&s);
}

/* The guard does not keep the program's descriptors, or nobody would see it close them. */
TEST(its_end_of_output_is_seen) {
    scene s;
    REQUIRE(BEGIN(&s, 0, "say=x", "silent", "linger"));
    KIT_UNTIL(s.loop, hear(&s));
    CHECK_INT(s.ends, 0);
    weft__process_stop(s.process, false);
    finish(&s);
    CHECK_INT(s.end.signal, SIGTERM);
}

/* ---- how it is ended ---- */

static void ends_all(const char *first, const char *said, bool force, int64_t grace_ms, int signal) {
    scene s;
    REQUIRE(BEGIN(&s, grace_ms, first, "linger"));
    expect(&s, said);
    KIT_UNTIL(s.loop, s.starts == 1);
    weft__process_stop(s.process, force);
    finish(&s);
    CHECK_INT(s.end.signal, signal);
    CHECK_INT(s.end.exit_code, -1);
}

TEST(ends_a_family_that_listens) {
    ends_all("family", "family\n", false, 20000, SIGTERM);
}

TEST(kills_a_family_at_once) {
    ends_all("family", "family\n", true, 20000, SIGKILL);
}

TEST(kills_what_ignores_sigterm_after_the_grace_time) {
    ends_all("ignore", "ignore\n", false, 50, SIGKILL);
}

TEST(ends_what_was_stopped) {
    ends_all("stop", "stop\n", false, 100000, SIGTERM);
    ends_all("stopped", "stopped\n", false, 20000, SIGTERM);
}

TEST(kills_a_fork_bomb) {
    ends_all("bomb=100", "bomb\n", true, 20000, SIGKILL);
}

TEST(kills_what_is_never_where_it_was) {
    ends_all("hop", "hop\n", true, 20000, SIGKILL);
}

/* A signal to that group would end the guard. */
TEST(ends_what_has_joined_the_guards_group) {
    ends_all("joinguard", "joined\n", false, 20000, SIGTERM);
}

TEST(a_second_stop_may_be_harder) {
    scene s;
    REQUIRE(BEGIN(&s, 100000, "ignore", "linger"));
    expect(&s, "ignore\n");
    weft__process_stop(s.process, false);
    weft__process_stop(s.process, false);
    weft__process_stop(s.process, true);
    finish(&s);
    CHECK_INT(s.end.signal, SIGKILL);
}

/* It exits; what it leaves behind ignores SIGTERM and holds its stdout. on_end checks that it is gone. */
TEST(what_it_leaves_behind_goes) {
    scene s;
    REQUIRE(BEGIN(&s, 20000, "left", "family", "exit=3"));
    KIT_UNTIL(s.loop, s.ends);
    CHECK(strstr((hear(&s), s.said), "left\nfamily\n") != NULL);
    CHECK(hear(&s)); /* nobody holds it any more */
    finish(&s);
    CHECK_INT(s.end.exit_code, 3);
    CHECK_INT(s.end.signal, 0);
}

TEST(is_ended_before_it_has_started) {
    scene s;
    REQUIRE(BEGIN(&s, 20000, "linger"));
    weft__process_stop(s.process, true);
    finish(&s);
    CHECK_INT(s.end.signal, SIGKILL);
}

TEST(is_forgotten_in_the_middle) {
    scene s;
    REQUIRE(BEGIN(&s, 100000, "ignore", "family", "linger"));
    expect(&s, "family\n");
    s.process = weft__process_free(s.process);
    close_fds(&s);
    weft_loop_free(s.loop); /* at once: nothing of it is on the loop */
    CHECK_INT(kit_wait_gone(s.mark, PATIENCE_MS), 0);
    CHECK_INT(s.ends, 0);
    kit_await_exit(); /* the guard goes behind what it guarded */
    scene next;       /* collects it */
    REQUIRE(BEGIN(&next, 0, "exit=0"));
    finish(&next);
}

static void free_it(void *ctx, pid_t pid) {
    scene *s = ctx;
    (void) pid;
    s->starts++;
    s->process = weft__process_free(s->process);
}

static void free_at_end(void *ctx, const weft_process_end *end) {
    scene *s = ctx;
    s->ends++;
    s->end = *end;
    s->process = weft__process_free(s->process);
}

TEST(is_freed_by_its_own_callbacks) {
    for (int at_start = 0; at_start < 2; at_start++) {
        scene s;
        open_scene(&s);
        const char *argv[] = {kit_naughty(), at_start ? "linger" : "exit=0", NULL}, *env[] = {s.mark, NULL};
        weft_process_opts opts = {.loop = s.loop, .guard = kit_weft(), .argv = argv, .env = env, .folder = "/", .ctx = &s};
        opts.on_start = at_start ? free_it : NULL;
        opts.on_end = free_at_end;
        REQUIRE(CHECK_INT(weft__process_start(&opts, &s.process, s.fds), 0));
        KIT_UNTIL(s.loop, at_start ? s.starts : s.ends);
        CHECK(!s.process);
        CHECK_INT(kit_wait_gone(s.mark, PATIENCE_MS), 0);
        weft_loop_free(s.loop);
        close_fds(&s);
        kit_await_exit(); /* a guard that was let go, for the next start to collect */
    }
}

/* ---- when the guard is attacked ---- */

static void loses_its_guard(const char *how) {
    scene s;
    REQUIRE(BEGIN(&s, 20000, "family", "left", "ignore", how, "linger"));
    finish(&s);
    CHECK_INT(s.end.signal, SIGKILL);
    CHECK_INT(s.end.exit_code, -1);
}

/* What it guarded is its keeper's, which ends it. */
TEST(the_guard_may_be_killed) {
    loses_its_guard("killguard");
}

/* From here on this process is a subreaper. */
TEST(what_has_lost_its_guard_is_adopted) {
    CHECK(weft__guards_adopt("NAUGHTY_HUB=process-test") >= 0);
    for (int i = 0; i < 20; i++) {
        loses_its_guard("killguard");
        loses_its_guard("killkeeper");
        loses_its_guard("killboth");
    }
}

/* Children that are none of ours, and children of guards that live, have nothing to do with it. */
TEST(others_are_not_ended_with_it) {
    scene quiet;
    REQUIRE(BEGIN(&quiet, 20000, "family", "linger"));
    expect(&quiet, "family\n");
    int family = 1 + 6; /* itself, and what stays of those that it forks */
    CHECK_INT(kit_wait_marked(quiet.mark, family, PATIENCE_MS), family);
    scene s;
    char mark[64];
    snprintf(mark, sizeof mark, "%s", quiet.mark);
    REQUIRE(BEGIN(&s, 20000, "family", "killboth", "linger"));
    KIT_UNTIL(s.loop, s.ends);
    CHECK_INT(kit_wait_marked(mark, family, PATIENCE_MS), family);
    quiet.mark = mark;
    s.process = weft__process_free(s.process);
    close_fds(&s);
    weft_loop_free(s.loop);
    weft__process_stop(quiet.process, true);
    finish(&quiet);
}

/* Noticed at once: its end is told, although nobody speaks to the guard. */
TEST(a_stopped_guard_is_continued) {
    for (int both = 0; both < 2; both++) {
        scene s;
        REQUIRE(BEGIN(&s, 20000, both ? "stopboth" : "stopguard", "exit=4"));
        finish(&s);
        CHECK_INT(s.end.exit_code, 4);
    }
}

/* An earlier daemon with the same mark was killed with its guards. We are marked too, if an agent started us. */
TEST(leftovers_are_killed_by_their_mark) {
    int ready[2];
    char byte, mark[64];
    snprintf(mark, sizeof mark, "NAUGHTY_HUB=process-test-%d", (int) getpid()); /* the same test may run beside this one */
    REQUIRE(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        char *argv[] = {(char *) (uintptr_t) kit_naughty(), "say=r", "linger", NULL};
        char *env[] = {mark, NULL};
        dup2(ready[1], STDOUT_FILENO);
        execve(argv[0], argv, env);
        _exit(9);
    }
    CHECK_INT(read(ready[0], &byte, 1), 1);
    CHECK_INT(weft__guards_adopt("NAUGHTY_HUB=process"), 0); /* a mark is compared whole */
    CHECK_INT(weft__guards_adopt(mark), 1);
    int status = 0;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(ready[0]);
    close(ready[1]);
}

TEST(the_guard_may_be_stopped) {
    scene s;
    REQUIRE(BEGIN(&s, 20000, "stopguard", "linger"));
    expect(&s, "stopguard\n");
    weft__process_stop(s.process, false);
    finish(&s);
    CHECK_INT(s.end.signal, SIGTERM);
}

/* ---- when memory or descriptors are short ---- */

TEST(every_allocation_may_fail) {
    test_memory memory;
    int before = 0;
    for (long fail_at = 1;; fail_at++) {
        scene s;
        open_scene(&s);
        before = kit_open_fds();
        test_memory_init(&memory, fail_at);
        int r = try_start(&s, (const char *const[]){kit_naughty(), "exit=0", NULL}, 0, &memory.alloc);
        if (r == 0) {
            finish(&s);
            CHECK_INT(memory.live, 0);
            CHECK(fail_at > 1);
            return;
        }
        CHECK_INT(r, -ENOMEM);
        CHECK_INT(memory.live, 0);
        CHECK_INT(kit_open_fds(), before);
        weft_loop_free(s.loop);
    }
}

TEST(descriptors_may_be_short) {
    struct rlimit found, low;
    getrlimit(RLIMIT_NOFILE, &found);
    for (int room = 0; room < 64; room++) {
        scene s;
        open_scene(&s);
        int before = kit_open_fds(), next = dup(0);
        close(next);
        low = (struct rlimit){(rlim_t) (next + room), found.rlim_max};
        setrlimit(RLIMIT_NOFILE, &low);
        int r = try_start(&s, (const char *const[]){kit_naughty(), "exit=0", NULL}, 0, NULL);
        setrlimit(RLIMIT_NOFILE, &found);
        if (r == 0) {
            finish(&s);
            CHECK_INT(s.end.exit_code, 0);
            return;
        }
        CHECK_INT(kit_open_fds(), before);
        weft_loop_free(s.loop);
    }
    CHECK(false);
}

/* ---- F11 ---- */

#define HOSTED 3

/* A daemon in small: starts families under guards, says when all of them are there, and waits for its death. */
static _Noreturn void be_host(const char *mark, int ready) {
    scene s[HOSTED];
    weft_loop *loop;
    static const char *const modes[HOSTED][5] = {
        {"family", "linger"}, {"ignore", "family", "left", "linger"}, {"stopped", "family", "left", "linger"}};
    putenv((char *) (uintptr_t) mark); /* in the guards too */
    if (weft_loop_new(NULL, &loop) < 0)
        _exit(1);
    for (int i = 0; i < HOSTED; i++) {
        s[i] = (scene){.loop = loop, .mark = mark};
        const char *argv[8] = {kit_naughty()};
        memcpy(argv + 1, modes[i], sizeof modes[i]);
        if (try_start(&s[i], argv, 100000, NULL) < 0)
            _exit(1);
        expect(&s[i], i ? "left\n" : "family\n");
        if (i == 2)
            expect(&s[i], "stopped\n");
    }
    if (write(ready, "r", 1) != 1)
        _exit(1);
    weft_loop_run(loop);
    _exit(1);
}

TEST(nothing_outlives_a_killed_daemon) {
    int ready[2];
    char byte;
    const char *mark = kit_mark();
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    pid_t host = fork();
    if (host == 0)
        be_host(mark, ready[1]);
    close(ready[1]);
    CHECK_INT(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    /* 3 programs, 3 families of six that stay, two left behind, one stopped; and 3 guards and their keepers, into which only
     * root may look. Who forked twice may be about to go. */
    int wanted = 3 + 3 * 6 + 2 + 1 + (geteuid() == 0 ? 2 * 3 : 0);
    CHECK_INT(kit_wait_marked(mark, wanted, PATIENCE_MS), wanted);
    kill(host, SIGKILL);
    waitpid(host, NULL, 0);
    CHECK_INT(kit_wait_gone(mark, PATIENCE_MS), 0);
}

/* ---- all of it ---- */

TEST(leaks_no_descriptor) {
    scene s;
    int before = kit_open_fds();
    for (int i = 0; i < 10; i++) {
        REQUIRE(BEGIN(&s, 0, "exit=0"));
        finish(&s);
    }
    CHECK_INT(kit_open_fds(), before);
}

TEST_MAIN(CASE(tells_how_it_ended) CASE(tells_why_it_did_not_start) CASE(tells_that_the_folder_is_not_there)
              CASE(refuses_a_guard_that_is_not_there) CASE(a_program_is_found_in_its_own_path) CASE(is_a_clean_place)
                  CASE(can_be_kept_to_some_folders) CASE(has_its_own_stdio) CASE(the_guard_holds_nothing)
                      CASE(its_end_of_output_is_seen) CASE(ends_a_family_that_listens) CASE(kills_a_family_at_once)
                          CASE(kills_what_ignores_sigterm_after_the_grace_time) CASE(ends_what_was_stopped)
                              CASE(kills_a_fork_bomb) CASE(kills_what_is_never_where_it_was)
                                  CASE(ends_what_has_joined_the_guards_group) CASE(a_second_stop_may_be_harder)
                                      CASE(what_it_leaves_behind_goes) CASE(is_ended_before_it_has_started)
                                          CASE(is_forgotten_in_the_middle) CASE(is_freed_by_its_own_callbacks)
                                              CASE(the_guard_may_be_killed) CASE(the_guard_may_be_stopped)
                                                  CASE(every_allocation_may_fail) CASE(descriptors_may_be_short)
                                                      CASE(nothing_outlives_a_killed_daemon) CASE(leaks_no_descriptor)
                                                          CASE(what_has_lost_its_guard_is_adopted)
                                                              CASE(others_are_not_ended_with_it)
                                                                  CASE(a_stopped_guard_is_continued)
                                                                      CASE(leftovers_are_killed_by_their_mark))

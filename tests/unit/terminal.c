/* Programs in a terminal: that it is one, what is read of it, what is typed into it, and that nothing of it stays. */
#include "terminal.h"

#include <stdlib.h>

#include "agents/kit.h"

typedef struct scene {
    weft_loop *loop;
    weft_terminal *terminal;
    const char *mark;
    int starts, ends;
} scene;

static void on_start(void *ctx) {
    scene *s = ctx;
    s->starts++;
    CHECK_INT(s->ends, 0);
}

static void on_end(void *ctx) {
    scene *s = ctx;
    s->ends++;
    CHECK_INT(kit_marked(s->mark), 0); /* the end means that nothing is left */
}

static int try_start(scene *s, const weft_alloc *alloc, size_t limit, const char *const *argv) {
    const char *env[] = {s->mark, "TERM=dumb", NULL};
    return weft__terminal_start(&(weft_terminal_opts){.loop = s->loop,
                                                      .alloc = alloc,
                                                      .guard = kit_weft(),
                                                      .argv = argv,
                                                      .env = env,
                                                      .folder = "/usr",
                                                      .limit = limit,
                                                      .grace_ms = 300,
                                                      .ctx = s,
                                                      .on_start = on_start,
                                                      .on_end = on_end},
                                &s->terminal);
}

static int fds_before;

static void open_scene(scene *s) {
    *s = (scene){.mark = kit_mark()};
    weft_loop *first; /* libuv opens some descriptors once */
    CHECK_INT(weft_loop_new(NULL, &first), 0);
    weft_loop_free(first);
    fds_before = kit_open_fds();
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
}

static bool begin(scene *s, const char *line) {
    open_scene(s);
    return CHECK_INT(try_start(s, NULL, SIZE_MAX, (const char *const[]){"/bin/sh", "-c", line, NULL}), 0);
}

static weft_bytes text_of(const scene *s) {
    return weft__terminal_text(s->terminal, SIZE_MAX, NULL);
}

static bool has(const scene *s, const char *text) {
    return memmem(text_of(s).data, text_of(s).len, text, strlen(text)) != NULL;
}

static void type(scene *s, const char *text) {
    CHECK_INT(weft__terminal_type(s->terminal, (weft_bytes){text, strlen(text)}), 0);
}

static void close_scene(scene *s) {
    s->terminal = weft__terminal_free(s->terminal);
    weft_loop_free(s->loop);
    CHECK_INT(kit_wait_gone(s->mark, PATIENCE_MS), 0);
    CHECK(kit_children_go());
    CHECK_INT(kit_open_fds(), fds_before);
}

static void finish(scene *s) {
    KIT_UNTIL(s->loop, s->ends);
    CHECK_INT(s->ends, 1);
    CHECK_INT(s->starts, 1);
    close_scene(s);
}

#define CHECK_PRINTED(s, want) CHECK_TEXT(text_of(s).data, text_of(s).len, (want))

/* ---- what it is ---- */

TEST(it_is_a_terminal_of_its_size) {
    scene s;
    if (!begin(&s, "test -t 0 && test -t 1 && test -t 2 && stty size && test \"$(tty)\" != 'not a tty' && echo yes"))
        return;
    KIT_UNTIL(s.loop, s.ends);
    CHECK_PRINTED(&s, "40 120\nyes\n");
    CHECK_INT(weft__terminal_end(s.terminal)->exit_code, 0);
    finish(&s);
}

/* A session and a group of its own, and it is in the foreground: /dev/tty is this terminal. */
TEST(it_is_the_controlling_terminal) {
    scene s;
    if (!begin(&s, "read -r a b c d pgrp session tty tpgid rest </proc/$$/stat; test $$ = $pgrp && test $$ = $session && "
                   "test $$ = $tpgid && echo mine >/dev/tty"))
        return;
    KIT_UNTIL(s.loop, s.ends);
    CHECK_PRINTED(&s, "mine\n");
    finish(&s);
}

TEST(no_other_descriptor_is_open_in_it) {
    scene s;
    int extra = fcntl(0, F_DUPFD, 40); /* not close-on-exec, as a library might leave one */
    if (!begin(&s, "ls -1 /proc/$$/fd"))
        return;
    KIT_UNTIL(s.loop, s.ends);
    CHECK_PRINTED(&s, "0\n1\n2\n");
    close(extra);
    fds_before--;
    finish(&s);
}

TEST(it_can_be_resized) {
    scene s;
    if (!begin(&s, "trap 'stty size; exit' WINCH; echo ready; while :; do read -r line; done"))
        return;
    KIT_UNTIL(s.loop, has(&s, "ready"));
    CHECK_INT(weft__terminal_resize(s.terminal, (weft_process_size){.cols = 77, .rows = 11}), 0);
    KIT_UNTIL(s.loop, has(&s, "11 77"));
    CHECK_INT(weft__terminal_size(s.terminal).cols, 77);
    KIT_UNTIL(s.loop, s.ends);
    CHECK_INT(weft__terminal_resize(s.terminal, (weft_process_size){.cols = 1, .rows = 1}), -EPIPE);
    finish(&s);
}

/* ---- typing ---- */

TEST(what_is_typed_is_read) {
    scene s;
    if (!begin(&s, "read -r line; echo \"got $line\""))
        return;
    type(&s, "h\xC3\xA9llo\n");
    KIT_UNTIL(s.loop, s.ends);
    CHECK_PRINTED(&s, "h\xC3\xA9llo\ngot h\xC3\xA9llo\n");
    CHECK_INT(weft__terminal_type(s.terminal, (weft_bytes){"x", 1}), -EPIPE);
    finish(&s);
}

TEST(control_c_interrupts_what_runs_in_the_foreground) {
    scene s;
    if (!begin(&s, "trap 'echo interrupted; exit 5' INT; echo ready; while :; do read -r line; done"))
        return;
    KIT_UNTIL(s.loop, has(&s, "ready"));
    type(&s, "\x03");
    KIT_UNTIL(s.loop, s.ends);
    CHECK(has(&s, "interrupted"));
    CHECK_INT(weft__terminal_end(s.terminal)->exit_code, 5);
    finish(&s);
}

/* A program that does not read: what it did not take is bounded, and it can be ended. */
TEST(typing_has_a_limit) {
    scene s;
    char *much = malloc(WEFT_TERMINAL_INPUT + 1);
    memset(much, 'x', WEFT_TERMINAL_INPUT + 1);
    if (!begin(&s, "stty raw -echo; echo ready; kill -STOP $$"))
        return;
    KIT_UNTIL(s.loop, has(&s, "ready"));
    CHECK_INT(weft__terminal_type(s.terminal, (weft_bytes){much, WEFT_TERMINAL_INPUT + 1}), -ENOBUFS);
    int r = 0, times = 0;
    while (r == 0 && times++ < 100)
        r = weft__terminal_type(s.terminal, (weft_bytes){much, 4096});
    CHECK_INT(r, -ENOBUFS);
    weft__terminal_kill(s.terminal, true);
    finish(&s);
    free(much);
}

/* ---- printing ---- */

TEST(much_output_is_read_to_its_end_and_bounded) {
    scene s;
    bool truncated;
    open_scene(&s);
    static const char *const argv[] = {"/bin/sh", "-c", "head -c 67108864 /dev/zero | tr '\\0' x; echo; echo the end", NULL};
    if (!CHECK_INT(try_start(&s, NULL, 5000, argv), 0))
        return;
    while (!s.ends) /* it takes as long as the machine is busy; what is kept of a gigabyte, tests/unit/scrollback.c knows */
        weft_loop_once(s.loop, true);
    weft_bytes text = weft__terminal_text(s.terminal, SIZE_MAX, &truncated);
    CHECK_INT(text.len, 5000);
    CHECK(truncated);
    CHECK_TEXT(text.data + text.len - 11, 11, "xx\nthe end\n");
    finish(&s);
}

TEST(broken_bytes_are_replaced) {
    scene s;
    if (!begin(&s, "printf 'a\\377b\\342\\202'"))
        return;
    KIT_UNTIL(s.loop, s.ends);
    CHECK_PRINTED(&s, "a\xEF\xBF\xBD"
                      "b\xEF\xBF\xBD");
    finish(&s);
}

/* It closes its terminal, goes on, and opens it again by its name. */
TEST(a_closed_terminal_is_not_the_end) {
    scene s;
    if (!begin(&s,
               "echo one; exec <&- >&- 2>&-; while ! test -e /dev/tty; do :; done; head -c 200000 /dev/zero | tr '\\0' x "
               ">/dev/tty; echo two >/dev/tty; exit 4"))
        return;
    KIT_UNTIL(s.loop, s.ends);
    CHECK(has(&s, "one\n"));
    CHECK(has(&s, "xtwo\n"));
    CHECK_INT(weft__terminal_end(s.terminal)->exit_code, 4);
    finish(&s);
}

/* ---- ending ---- */

TEST(how_it_ended_is_told) {
    static const struct {
        const char *line;
        int exit_code, signal;
    } rows[] = {{"exit 0", 0, 0}, {"exit 7", 7, 0}, {"kill -TERM $$", -1, SIGTERM}, {"kill -KILL $$", -1, SIGKILL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        test_row(rows[i].line);
        if (!begin(&s, rows[i].line))
            continue;
        KIT_UNTIL(s.loop, s.ends);
        CHECK_INT(weft__terminal_end(s.terminal)->exit_code, rows[i].exit_code);
        CHECK_INT(weft__terminal_end(s.terminal)->signal, rows[i].signal);
        finish(&s);
    }
    test_row(NULL);
}

TEST(a_program_that_is_not_there_is_told) {
    scene s;
    open_scene(&s);
    CHECK_INT(try_start(&s, NULL, 100, (const char *const[]){"there-is-no-such-program", NULL}), 0);
    KIT_UNTIL(s.loop, s.starts);
    CHECK_INT(weft__terminal_end(s.terminal)->error, -ENOENT);
    CHECK_INT(s.ends, 0);
    close_scene(&s);
}

/* Deaf, in another session, forked twice: all of it. */
#define STAYS                                                                                                               \
    "trap '' HUP TERM INT; (setsid sh -c 'trap \"\" HUP TERM; (sleep 1000 & sleep 1000) & sleep 1000' &) ; echo ready; "

TEST(everything_goes_when_it_is_killed) {
    for (int force = 0; force < 2; force++) {
        scene s;
        if (!begin(&s, STAYS "while :; do sleep 1000; done"))
            return;
        KIT_UNTIL(s.loop, has(&s, "ready"));
        KIT_UNTIL(s.loop, kit_marked(s.mark) > 1); /* a process that is between two programs has no environment to be read */
        weft__terminal_kill(s.terminal, force);
        weft__terminal_kill(s.terminal, true);
        KIT_UNTIL(s.loop, s.ends);
        CHECK_INT(weft__terminal_end(s.terminal)->signal, SIGKILL);
        finish(&s);
    }
}

TEST(everything_goes_when_it_is_freed_while_it_prints) {
    scene s;
    if (!begin(&s, STAYS "while :; do echo more and more; done"))
        return;
    KIT_UNTIL(s.loop, has(&s, "more and more"));
    close_scene(&s);
    CHECK_INT(s.ends, 0);
}

TEST(what_its_shell_left_behind_goes_with_it) {
    scene s;
    if (!begin(&s, "(trap '' HUP; sleep 1000) & (setsid sleep 1000 &); exit 3"))
        return;
    KIT_UNTIL(s.loop, s.ends);
    CHECK_INT(weft__terminal_end(s.terminal)->exit_code, 3);
    finish(&s);
}

/* The kill and the program's own end, in either order: one end, and it is one of the two. */
TEST(a_kill_may_come_with_its_own_end) {
    for (int i = 0; i < 20; i++) {
        scene s;
        if (!begin(&s, "exit 3"))
            return;
        KIT_UNTIL(s.loop, s.starts || s.ends);
        kit_turn(s.loop, i % 5);
        weft__terminal_kill(s.terminal, i % 2);
        KIT_UNTIL(s.loop, s.ends);
        const weft_process_end *end = weft__terminal_end(s.terminal);
        CHECK(end->exit_code == 3 || end->signal == SIGKILL || end->signal == SIGTERM);
        finish(&s);
    }
}

TEST(every_allocation_may_fail) {
    for (long fail_at = 1;; fail_at++) {
        scene s;
        test_memory memory;
        test_memory_init(&memory, fail_at);
        open_scene(&s);
        int r = try_start(&s, &memory.alloc, 1000, (const char *const[]){"/bin/sh", "-c", "echo hello", NULL});
        CHECK(r == 0 || r == -ENOMEM);
        if (r == 0) {
            KIT_UNTIL(s.loop, s.ends);
            CHECK(text_of(&s).len == 0 || has(&s, "hello"));
        }
        bool whole = memory.count < fail_at;
        if (whole)
            CHECK_PRINTED(&s, "hello\n");
        close_scene(&s);
        CHECK_INT(memory.live, 0);
        if (whole)
            return;
    }
}

TEST_MAIN(CASE(it_is_a_terminal_of_its_size) CASE(it_is_the_controlling_terminal) CASE(no_other_descriptor_is_open_in_it)
              CASE(it_can_be_resized) CASE(what_is_typed_is_read) CASE(control_c_interrupts_what_runs_in_the_foreground)
                  CASE(typing_has_a_limit) CASE(much_output_is_read_to_its_end_and_bounded) CASE(broken_bytes_are_replaced)
                      CASE(a_closed_terminal_is_not_the_end) CASE(how_it_ended_is_told)
                          CASE(a_program_that_is_not_there_is_told) CASE(everything_goes_when_it_is_killed)
                              CASE(everything_goes_when_it_is_freed_while_it_prints)
                                  CASE(what_its_shell_left_behind_goes_with_it) CASE(a_kill_may_come_with_its_own_end)
                                      CASE(every_allocation_may_fail))

/* The driver of command line agents (F12): what they are started with, what is heard of them, how their end is told. */
#include "agents/one_run.h"

#include <sys/resource.h>

#include "agents/kit.h"
#include "cli_argv.h"
#include "output.h"
#include "utf8_stream.h"

typedef struct scene {
    weft_loop *loop;
    one_run *run;
    weft_agent agent;
    const char *argv[12], *env[2];
    char mark[64];
    int processes, ends;
    bool cut, ok, retryable;
    char reason[32], error[8192];
    int exit_code, signal;
    char *text[2]; /* of each stream, NUL-terminated */
    size_t len[2], calls[2];
    bool bad;
    int free_in; /* 1: on_process, 2: on_output, 3: on_end */
    bool pause_in;
} scene;

static void maybe_free(scene *s, int where) {
    if (s->free_in == where)
        s->run = one_run_free(s->run);
}

static void on_process(void *ctx, pid_t pid) {
    scene *s = ctx;
    s->processes++;
    CHECK(pid > 1);
    CHECK(!s->ends && !s->len[0] && !s->len[1]);
    maybe_free(s, 1);
}

static void on_output(void *ctx, weft_run_stream stream, weft_bytes text) {
    scene *s = ctx;
    s->bad = s->bad || s->ends || !text.len || !weft__utf8_valid(text.data, text.len) || memchr(text.data, 0, text.len);
    s->text[stream] = realloc(s->text[stream], s->len[stream] + text.len + 1);
    memcpy(s->text[stream] + s->len[stream], text.data, text.len);
    s->len[stream] += text.len;
    s->text[stream][s->len[stream]] = '\0';
    s->calls[stream]++;
    if (s->pause_in)
        one_run_pause(s->run, true);
    maybe_free(s, 2);
}

static void on_end(void *ctx, const weft_run_end *end) {
    scene *s = ctx;
    s->ends++;
    s->ok = end->ok;
    s->cut = end->cut;
    s->retryable = end->retryable;
    CHECK(end->ok == !end->reason && end->ok == !end->error);
    snprintf(s->reason, sizeof s->reason, "%s", end->reason ? end->reason : "");
    snprintf(s->error, sizeof s->error, "%s", end->error ? end->error : "");
    s->exit_code = end->exit_code;
    s->signal = end->signal;
    CHECK_INT(kit_marked(s->mark), 0);
    maybe_free(s, 3);
}

static const weft_run_host host = {.on_process = on_process, .on_output = on_output, .on_end = on_end};

static void open_scene(scene *s, const char *const *argv) {
    *s = (scene){0};
    snprintf(s->mark, sizeof s->mark, "%s", kit_mark());
    for (size_t i = 0; argv[i]; i++)
        s->argv[i] = argv[i];
    s->env[0] = s->mark;
    s->agent = (weft_agent){.name = "naughty", .driver = "cli", .argv = s->argv, .env = s->env};
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
}
#define OPEN(s, ...) open_scene((s), (const char *const[]){kit_naughty(), __VA_ARGS__, NULL})

static int start_with(scene *s, const char *prompt, const weft_alloc *alloc) {
    weft_run_spec spec = {
        .loop = s->loop,
        .alloc = alloc,
        .agent = &s->agent,
        .program = kit_weft(),
        .folder = "/",
        .task = "task_1",
        .prompt = prompt,
        .grace_ms = 200,
    };
    return one_run_start(&weft__driver_cli, &spec, &host, s, &s->run);
}

static void close_scene(scene *s) {
    s->run = one_run_free(s->run);
    weft_loop_free(s->loop);
    free(s->text[0]);
    free(s->text[1]);
    CHECK(!s->bad);
}

/* Start it, wait for its end. The scene is still open. */
static void run_it(scene *s, const char *prompt) {
    REQUIRE(CHECK_INT(start_with(s, prompt, NULL), 0));
    KIT_UNTIL(s->loop, s->ends);
    CHECK_INT(s->ends, 1);
    CHECK(!s->bad);
}

#define SAID(s, want) CHECK_STR((s)->text[0], want)
#define WARNED(s, want) CHECK_STR((s)->text[1], want)

/* ---- the command line ---- */

static void joined(const char *const *list, char *ret, size_t size) {
    *ret = '\0';
    for (; *list; list++)
        snprintf(ret + strlen(ret), size - strlen(ret), "[%s]", *list);
}

TEST(fills_in_its_template) {
    static const struct {
        const char *name;
        const char *argv[5], *persona_argv[4];
        bool on_stdin;
        const char *prompt, *persona, *want;
    } rows[] = {
        {"last", {"a", "-p"}, {0}, false, "do it", NULL, "[a][-p][do it]"},
        {"in its place", {"a", "{prompt}", "-x"}, {0}, false, "do it", NULL, "[a][do it][-x]"},
        {"inside and twice", {"a", "--p={prompt};{prompt}"}, {0}, false, "x", NULL, "[a][--p=x;x]"},
        {"not looked at again", {"a", "{prompt}"}, {0}, false, "{prompt}{agent}", NULL, "[a][{prompt}{agent}]"},
        {"no option", {"a", "{prompt}"}, {0}, false, "--danger", NULL, "[a][ --danger]"},
        {"no option at the end", {"a"}, {0}, false, "-d", NULL, "[a][ -d]"},
        {"inside it cannot be one", {"a", "--p={prompt}"}, {0}, false, "-d", NULL, "[a][--p=-d]"},
        {"on stdin", {"a", "-p", "{prompt}"}, {0}, true, "do it", NULL, "[a][-p]"},
        {"a name", {"a", "-p", "{prompt}"}, {"--agent", "{agent}"}, false, "x", "qa", "[a][-p][x][--agent][qa]"},
        {"a name before the last", {"a"}, {"--agent={agent}"}, false, "x", "qa", "[a][--agent=qa][x]"},
        {"no name", {"a"}, {"--agent={agent}"}, false, "x", NULL, "[a][x]"},
        {"empty", {"a"}, {0}, false, "", NULL, "[a][]"},
        {"white space", {"a"}, {0}, false, "a\tb\r\n\xc3\xa9", NULL, "[a][a\tb\r\n\xc3\xa9]"},
        {"steers nothing",
         {"a"},
         {0},
         false,
         "\x1b[2J\x7f \xc2\x9b\a",
         NULL,
         "[a][\xef\xbf\xbd[2J\xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd]"},
        {"a name that is an option", {"a"}, {"{agent}"}, false, "x", "-f", NULL},
        {"a name nobody takes", {"a"}, {0}, false, "x", "qa", NULL},
        {"no command", {0}, {0}, false, "x", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_agent agent = {.argv = rows[i].argv, .prompt_on_stdin = rows[i].on_stdin};
        agent.persona_argv = rows[i].persona_argv[0] ? rows[i].persona_argv : NULL;
        weft_run_spec spec = {.agent = &agent, .prompt = rows[i].prompt, .persona = rows[i].persona, .task = "t1"};
        weft_cli_argv argv;
        char text[256];
        test_row(rows[i].name);
        int r = weft__cli_argv_init(&argv, &spec);
        CHECK_INT(r, rows[i].want ? 0 : -EINVAL);
        if (r < 0)
            continue;
        joined(argv.argv, text, sizeof text);
        CHECK_TEXT(text, strlen(text), rows[i].want);
        joined(argv.env, text, sizeof text);
        CHECK_TEXT(text, strlen(text), "[WEFT_TASK_ID=t1]");
        weft__cli_argv_done(&argv);
    }
    test_row(NULL);
}

TEST(a_long_prompt_goes_to_stdin) {
    size_t len = 900 * 1024; /* more than a pipe holds */
    char *prompt = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        prompt[i] = i % 1000 == 999 ? '\n' : 'p';
    prompt[len] = '\0';
    scene s;
    OPEN(&s, "stdin", "exit=0", "{prompt}");
    run_it(&s, prompt);
    CHECK(s.ok);
    CHECK_INT(s.len[0], len);
    CHECK(s.len[0] == len && memcmp(s.text[0], prompt, len) == 0);
    close_scene(&s);
    free(prompt);
}

/* Nobody reads it: no signal for us, and the agent's own end is what counts. */
TEST(a_prompt_may_be_ignored) {
    size_t len = 900 * 1024;
    char *prompt = malloc(len + 1);
    memset(prompt, 'p', len);
    prompt[len] = '\0';
    scene s;
    OPEN(&s, "say=no\n", "exit=0");
    run_it(&s, prompt);
    CHECK(s.ok);
    SAID(&s, "no\n");
    close_scene(&s);
    free(prompt);
}

TEST(stdin_is_empty_otherwise) {
    scene s;
    OPEN(&s, "stdin", "say=done\n", "exit=0");
    run_it(&s, "x");
    CHECK(s.ok);
    SAID(&s, "done\n");
    close_scene(&s);
}

TEST(knows_its_task) {
    scene s;
    open_scene(&s, (const char *const[]){"sh", "-c", "echo $WEFT_TASK_ID; pwd; echo \"$0\"", NULL});
    run_it(&s, "$(id) `id` \"'");
    SAID(&s, "task_1\n/\n$(id) `id` \"'\n");
    close_scene(&s);
}

/* ---- how it ends ---- */

TEST(tells_how_it_ended) {
    static const struct {
        const char *name, *modes[4];
        bool ok;
        const char *reason, *error;
        int exit_code, signal;
    } rows[] = {
        {"well", {"say=x\n", "exit=0"}, true, "", "", 0, 0},
        {"well, though it warned", {"warn=careful\n", "exit=0"}, true, "", "", 0, 0},
        {"an error", {"say=x\n", "exit=3"}, false, "exited", "exited with status 3", 3, 0},
        {"an error it explains", {"warn=first\n", "warn=no key\n\n", "exit=1"}, false, "exited", "first\nno key\n\n", 1, 0},
        {"blanks explain nothing", {"warn= \n", "exit=1"}, false, "exited", "exited with status 1", 1, 0},
        {"a crash", {"crash"}, false, "signalled", "ended by signal 11 (Segmentation fault)", -1, SIGSEGV},
        {"a crash it explains", {"warn=ouch", "crash"}, false, "signalled", "ouch", -1, SIGSEGV},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        test_row(rows[i].name);
        OPEN(&s, rows[i].modes[0], rows[i].modes[1], rows[i].modes[2], rows[i].modes[3]);
        run_it(&s, "x");
        CHECK(s.ok == rows[i].ok);
        CHECK(s.retryable == !rows[i].ok);
        CHECK_TEXT(s.reason, strlen(s.reason), rows[i].reason);
        CHECK_TEXT(s.error, strlen(s.error), rows[i].error);
        CHECK_INT(s.exit_code, rows[i].exit_code);
        CHECK_INT(s.signal, rows[i].signal);
        CHECK_INT(s.processes, 1);
        close_scene(&s);
    }
    test_row(NULL);
}

TEST(tells_what_is_not_there) {
    scene s;
    open_scene(&s, (const char *const[]){"there-is-no-such-agent", NULL});
    run_it(&s, "x");
    CHECK(!s.ok && !s.retryable);
    CHECK_TEXT(s.reason, strlen(s.reason), "spawnFailed");
    CHECK_TEXT(s.error, strlen(s.error), "there-is-no-such-agent: there is no such program");
    CHECK_INT(s.processes, 0);
    close_scene(&s);
}

/* The last 4 KiB, from the beginning of a line. */
TEST(of_a_long_complaint_the_end_is_told) {
    scene s;
    open_scene(&s, (const char *const[]){"sh", "-c",
                                         "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo line $i >&2; done; exit 2", NULL});
    run_it(&s, "x");
    size_t len = strlen(s.error);
    CHECK(len > 4000 && len <= 4096);
    CHECK(strncmp(s.error, "line ", 5) == 0);
    CHECK(len > 10 && strcmp(s.error + len - 10, "line 1000\n") == 0);
    close_scene(&s);
}

/* ---- what is heard ---- */

TEST(hears_both_streams_in_lines) {
    scene s;
    OPEN(&s, "say=one\ntwo\n", "warn=hm\n", "say=end", "exit=0");
    run_it(&s, "x");
    SAID(&s, "one\ntwo\nend");
    WARNED(&s, "hm\n");
    close_scene(&s);
}

TEST(hears_a_question_without_a_newline) {
    scene s;
    OPEN(&s, "say=continue? ", "linger");
    REQUIRE(CHECK_INT(start_with(&s, "x", NULL), 0));
    KIT_UNTIL(s.loop, s.len[0]);
    SAID(&s, "continue? ");
    CHECK_INT(s.ends, 0);
    one_run_cancel(s.run, false);
    KIT_UNTIL(s.loop, s.ends);
    CHECK_INT(s.signal, SIGTERM);
    CHECK(!s.ok);
    close_scene(&s);
}

TEST(cleans_what_it_hears) {
    scene s;
    OPEN(&s, "bytes", "exit=0");
    run_it(&s, "x");
#define FFFD "\xEF\xBF\xBD"
    SAID(&s, "a" FFFD "b" FFFD FFFD "(\xE2\x82\xAC" FFFD FFFD FFFD "\n" FFFD);
    close_scene(&s);
}

static long memory_kib(void) {
    char text[4096] = "";
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    const char *row = n > 0 ? strstr(text, "VmRSS:") : NULL;
    return row ? atol(row + 6) : -1;
}

/* Sanitizers keep what is freed for a while. */
#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* 1 GB without a newline: cut, and our memory stays as it was. */
TEST(a_gigabyte_without_a_newline_is_cut) {
    scene s;
    OPEN(&s, "flood=1000000000", "say=\nnext\n", "exit=0");
    long before = memory_kib();
    run_it(&s, "x");
    CHECK(s.ok && s.cut);
    CHECK(before > 0);
    CHECK(SANITIZED || memory_kib() - before < 4096);
    char want[64];
    snprintf(want, sizeof want, "\xE2\x80\xA6 (%zu bytes cut)\nnext\n", (size_t) 1000000000 - WEFT_OUTPUT_LINE);
    CHECK_INT(s.len[0], WEFT_OUTPUT_LINE + strlen(want));
    if (s.len[0] > WEFT_OUTPUT_LINE)
        CHECK_STR(s.text[0] + WEFT_OUTPUT_LINE, want);
    close_scene(&s);
}

/* Paused after the first piece, it waits: what we hear stays what it is. Then all of it comes, and the end last. */
TEST(waits_while_paused) {
    scene s;
    open_scene(&s,
               (const char *const[]){"sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); echo line $i; done", NULL});
    s.pause_in = true;
    REQUIRE(CHECK_INT(start_with(&s, "x", NULL), 0));
    KIT_UNTIL(s.loop, s.len[0]);
    size_t heard = s.len[0];
    KIT_UNTIL(s.loop, kit_unread() >= 4096); /* there is more, and nobody takes it */
    kit_turn(s.loop, 50);
    CHECK(kit_unread() >= 4096);
    CHECK_INT(s.len[0], heard);
    CHECK_INT(s.ends, 0);
    int turns = 0;
    while (!s.ends && turns++ < 100000) {
        one_run_pause(s.run, false);
        size_t calls = s.calls[0];
        KIT_UNTIL(s.loop, s.calls[0] > calls || s.ends);
    }
    CHECK(s.ok);
    CHECK(s.len[0] > 300000 && strcmp(s.text[0] + s.len[0] - 11, "line 30000\n") == 0);
    close_scene(&s);
}

/* The process is gone, its last words are not yet read. */
TEST(the_end_waits_while_paused) {
    scene s;
    OPEN(&s, "say=last words\n", "exit=0");
    REQUIRE(CHECK_INT(start_with(&s, "x", NULL), 0));
    one_run_pause(s.run, true);
    KIT_UNTIL(s.loop, s.processes);
    KIT_UNTIL(s.loop, kit_all_collected()); /* it and its guard */
    kit_turn(s.loop, 50);
    CHECK(kit_unread() > 0);
    CHECK_INT(s.ends, 0);
    CHECK_INT(s.len[0], 0);
    one_run_pause(s.run, false);
    CHECK_INT(s.ends, 0); /* not inside the call */
    KIT_UNTIL(s.loop, s.ends);
    SAID(&s, "last words\n");
    CHECK(s.ok);
    close_scene(&s);
}

/* ---- F12: how it is ended ---- */

TEST(is_ended_when_its_output_is) {
    static const char *const ways[] = {"silent", "mute"};
    for (int i = 0; i < 2; i++) {
        scene s;
        OPEN(&s, "say=bye\n", ways[i], "linger");
        run_it(&s, "x");
        CHECK(!s.ok);
        CHECK_INT(s.signal, SIGTERM);
        SAID(&s, "bye\n");
        close_scene(&s);
    }
}

TEST(is_killed_though_it_ignores_sigterm) {
    scene s;
    OPEN(&s, "ignore", "family", "linger");
    REQUIRE(CHECK_INT(start_with(&s, "x", NULL), 0));
    KIT_UNTIL(s.loop, s.len[0] && strstr(s.text[0], "family\n"));
    one_run_cancel(s.run, false);
    KIT_UNTIL(s.loop, s.ends);
    CHECK_INT(s.signal, SIGKILL);
    CHECK_TEXT(s.reason, strlen(s.reason), "signalled");
    close_scene(&s);
}

TEST(is_killed_at_once) {
    scene s;
    OPEN(&s, "bomb=60");
    REQUIRE(CHECK_INT(start_with(&s, "x", NULL), 0));
    KIT_UNTIL(s.loop, s.len[0]);
    one_run_cancel(s.run, false);
    one_run_cancel(s.run, true);
    KIT_UNTIL(s.loop, s.ends);
    CHECK_INT(s.signal, SIGKILL);
    close_scene(&s);
}

/* A grandchild holds its stdout: the end does not wait for it longer than the guard does. */
TEST(ends_though_somebody_holds_its_output) {
    scene s;
    OPEN(&s, "left", "exit=0");
    run_it(&s, "x");
    CHECK(s.ok);
    SAID(&s, "left\n");
    close_scene(&s);
}

TEST(never_asks) {
    scene s;
    OPEN(&s, "exit=0");
    REQUIRE(CHECK_INT(start_with(&s, "x", NULL), 0));
    CHECK_INT(one_run_answer(s.run, "1", "yes"), -ENOENT);
    KIT_UNTIL(s.loop, s.ends);
    one_run_cancel(s.run, true); /* too late, and harmless */
    one_run_pause(s.run, true);
    close_scene(&s);
}

/* ---- being freed, and short memory ---- */

TEST(is_freed_in_every_callback) {
    for (int where = 1; where <= 3; where++)
        for (int cut = 0; cut < 2; cut++) {
            scene s;
            OPEN(&s, cut ? "flood=1000000" : "say=a\nb\nc", "warn=d\n", where == 3 ? "exit=1" : "linger");
            s.free_in = where;
            REQUIRE(CHECK_INT(start_with(&s, "x", NULL), 0));
            KIT_UNTIL(s.loop, !s.run);
            CHECK_INT(kit_wait_gone(s.mark, PATIENCE_MS), 0);
            CHECK_INT(s.ends, where == 3);
            close_scene(&s);
        }
}

TEST(every_allocation_may_fail) {
    int failures = 0;
    for (long fail_at = 1;; fail_at++) {
        test_memory memory;
        scene s;
        OPEN(&s, "warn=hm\n", "say=one\ntwo", "exit=0");
        s.agent.prompt_on_stdin = true;
        test_memory_init(&memory, fail_at);
        int before = kit_open_fds();
        int r = start_with(&s, "x", &memory.alloc);
        if (r < 0) {
            CHECK_INT(r, -ENOMEM);
            CHECK_INT(kit_open_fds(), before);
            CHECK_INT(memory.live, 0);
            failures++;
            close_scene(&s);
            continue;
        }
        KIT_UNTIL(s.loop, s.ends);
        bool whole = s.ok;
        if (!whole)
            CHECK_TEXT(s.reason, strlen(s.reason), "outOfMemory");
        close_scene(&s);
        CHECK_INT(memory.live, 0);
        if (whole)
            break;
        failures++;
    }
    CHECK(failures > 5);
}

TEST(leaves_nothing) {
    scene s;
    int before = kit_open_fds();
    for (int i = 0; i < 5; i++) {
        OPEN(&s, "say=x\n", "exit=0");
        run_it(&s, "x");
        close_scene(&s);
    }
    CHECK_INT(kit_open_fds(), before);
    CHECK(kit_no_children());
}

TEST_MAIN(CASE(fills_in_its_template) CASE(a_long_prompt_goes_to_stdin) CASE(a_prompt_may_be_ignored)
              CASE(stdin_is_empty_otherwise) CASE(knows_its_task) CASE(tells_how_it_ended) CASE(tells_what_is_not_there)
                  CASE(of_a_long_complaint_the_end_is_told) CASE(hears_both_streams_in_lines)
                      CASE(hears_a_question_without_a_newline) CASE(cleans_what_it_hears)
                          CASE(a_gigabyte_without_a_newline_is_cut) CASE(waits_while_paused) CASE(the_end_waits_while_paused)
                              CASE(is_ended_when_its_output_is) CASE(is_killed_though_it_ignores_sigterm)
                                  CASE(is_killed_at_once) CASE(ends_though_somebody_holds_its_output) CASE(never_asks)
                                      CASE(is_freed_in_every_callback) CASE(every_allocation_may_fail) CASE(leaves_nothing))

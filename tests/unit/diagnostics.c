/* Diagnostics: what compilers print, as it is read, first from texts and then from the compilers that are here; and the
 * runner of the project's commands: limits, order, cancelling, and that nothing of a command stays. */
#include "diagnostics.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "agents/kit.h"
#include "guards.h"
#include "project_commands.h"

static void put_found(char *to, size_t size, const weft_diagnostics *found) {
    *to = '\0';
    for (size_t i = 0; i < found->count; i++) {
        const weft_diagnostic *one = &found->items[i];
        size_t len = strlen(to);
        snprintf(to + len, size - len, "%s:%d:%d %s%s%s %s\n", one->file, (int) one->line, (int) one->column,
                 weft__severities[one->severity], *one->code ? " " : "", one->code, one->message);
    }
}

static weft_diagnostics *read_text(const weft_alloc *alloc, const char *text, int *ret) {
    weft_diagnostics *found = calloc(1, sizeof *found);
    char *copy = strndup(text, strlen(text));
    found->arena.alloc = alloc;
    *ret = weft__diagnostics_read(found, (weft_bytes){copy, strlen(text)}, "/home/me/project");
    free(copy);
    return found;
}

/* What the tools printed when they were asked, without changes. */
static const struct {
    const char *name, *text, *want;
} rows[] = {
    {"gcc",
     "a.c: In function 'main':\n"
     "a.c:4:12: warning: implicit declaration of function 'foo' [-Wimplicit-function-declaration]\n"
     "    4 |     return foo(1) + \"x\";\n      |            ^~~\n"
     "src/b.c:9:1: error: expected ';' before '}' token\n",
     "a.c:4:12 warning implicit-function-declaration implicit declaration of function 'foo'\n"
     "src/b.c:9:1 error expected ';' before '}' token\n"},
    {"gcc -Werror", "a.c:3:9: error: unused variable 'x' [-Werror=unused-variable]\n",
     "a.c:3:9 error unused-variable unused variable 'x'\n"},
    {"gcc, an include",
     "In file included from d.c:1:\nc.h:1:10: fatal error: nothere.h: No such file or directory\n    1 | #include "
     "\"nothere.h\"\n      |          ^~~~~~~~~~~\ncompilation terminated.\n",
     "c.h:1:10 error nothere.h: No such file or directory\n"},
    {"clang",
     "./c.h:1:10: fatal error: 'nothere.h' file not found\n#include \"nothere.h\"\n         ^~~~~~~~~~~\n"
     "a.c:4:19: note: use array indexing to silence this warning\n1 error generated.\n",
     "c.h:1:10 error 'nothere.h' file not found\na.c:4:19 info use array indexing to silence this warning\n"},
    {"the folder is left out", "/home/me/project/src/a.c:1:2: error: no\n/home/me/projects/a.c:1:2: error: no\n",
     "src/a.c:1:2 error no\n/home/me/projects/a.c:1:2 error no\n"},
    {"a name with blanks", "my file.c:1:2: error: no\n", "my file.c:1:2 error no\n"},
    {"make says what it does", "make: *** [Makefile:2: all] Error 1\nmake[1]: Entering directory '/x'\n12:30:45: starting\n",
     ""},
    {"a linker",
     "/usr/bin/ld: /tmp/cctbRZUs.o: in function `main':\nb.c:(.text+0x5): undefined reference to `foo'\ncollect2: error: ld "
     "returned 1 exit status\n",
     "b.c:0:0 error undefined reference to `foo'\n"},
    {"tsc",
     "src/c.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'.\n"
     "error TS6053: File 'src/none.ts' not found.\n",
     "src/c.ts:1:7 error TS2322 Type 'string' is not assignable to type 'number'.\n"
     ":0:0 error TS6053 File 'src/none.ts' not found.\n"},
    {"tsc --pretty",
     "\033[96msrc/c.ts\033[0m:\033[93m1\033[0m:\033[93m7\033[0m - \033[91merror\033[0m\033[90m TS2322: \033[0mType 'string' "
     "is not assignable to type 'number'.\n\n\033[7m1\033[0m const n: number = \"x\";\n",
     "src/c.ts:1:7 error TS2322 Type 'string' is not assignable to type 'number'.\n"},
    {"esbuild",
     "\xE2\x96\xB2 [WARNING] Comparison with NaN using the \"===\" operator here is always false [equals-nan]\n\n"
     "    src/b.ts:2:27:\n      2 \xE2\x94\x82 let a: number = NaN;\n        \xE2\x95\xB5                            ~~~\n\n"
     "  Floating-point equality is defined such that NaN is never equal to anything.\n\n"
     "\xE2\x9C\x98 [ERROR] Could not resolve \"./nothere\"\n\n    src/b.ts:1:16:\n      1 \xE2\x94\x82 import {x} from "
     "\"./nothere\";\n        \xE2\x95\xB5                 ~~~~~~~~~~~\n\n2 warnings and 1 error\n",
     "src/b.ts:2:28 warning equals-nan Comparison with NaN using the \"===\" operator here is always false\n"
     "src/b.ts:1:17 error Could not resolve \"./nothere\"\n"},
    {"esbuild without a place", "\xE2\x9C\x98 [ERROR] Must use \"outdir\" when there are multiple input files\n\n1 error\n",
     ":0:0 error Must use \"outdir\" when there are multiple input files\n"},
    {"cargo",
     "   Compiling x v0.1.0 (/tmp/rs)\nwarning: unused variable: `y`\n --> src/main.rs:2:9\n  |\n2 |     let y = 1;\n"
     "  |         ^ help: if this is intentional, prefix it with an underscore: `_y`\n  |\n"
     "  = note: `#[warn(unused_variables)]` on by default\n\n"
     "error[E0308]: mismatched types\n --> src/main.rs:3:17\n  |\n3 |     let x: u8 = \"a\";\n  |            --   ^^^ "
     "expected "
     "`u8`, found `&str`\n\nFor more information about this error, try `rustc --explain E0308`.\n"
     "warning: `x` (bin \"x\") generated 1 warning\n"
     "error: could not compile `x` (bin \"x\") due to 1 previous error; 1 warning emitted\n",
     "src/main.rs:2:9 warning unused variable: `y`\nsrc/main.rs:3:17 error E0308 mismatched types\n"},
    {"cargo as JSON",
     "{\"reason\":\"compiler-message\",\"message\":{\"$message_type\":\"diagnostic\",\"children\":[],\"level\":\"error\","
     "\"message\":\"mismatched types\",\"spans\":[{\"column_start\":12,\"file_name\":\"src/main.rs\",\"is_primary\":false,"
     "\"line_start\":3},{\"column_start\":17,\"file_name\":\"src/main.rs\",\"is_primary\":true,\"line_start\":3}],"
     "\"code\":{\"code\":\"E0308\",\"explanation\":\"x\"}}}\n"
     "{\"reason\":\"compiler-message\",\"message\":{\"level\":\"failure-note\",\"message\":\"For more "
     "information\",\"spans\":[]"
     ",\"code\":null}}\n{\"reason\":\"build-finished\",\"success\":false}\n",
     "src/main.rs:3:17 error E0308 mismatched types\n"},
    {"rustc --error-format=json",
     "{\"$message_type\":\"diagnostic\",\"message\":\"unused\",\"code\":{\"code\":\"unused_variables\"},\"level\":"
     "\"warning\","
     "\"spans\":[{\"file_name\":\"a.rs\",\"line_start\":1,\"column_start\":2,\"is_primary\":true}]}\n",
     "a.rs:1:2 warning unused_variables unused\n"},
    {"go build", "# example.com/x\n./main.go:4:2: undefined: foo\nmain.go:7:5: declared and not used: y\n",
     "main.go:4:2 error undefined: foo\nmain.go:7:5 error declared and not used: y\n"},
    {"go vet", "vet: ./main.go:4:2: undefined: foo\n", "main.go:4:2 error undefined: foo\n"},
    {"go test", "--- FAIL: TestAdd (0.00s)\n    add_test.go:7: got 3, want 4\nFAIL\nFAIL\texample.com/x\t0.002s\n",
     "add_test.go:7:0 error got 3, want 4\n"},
    {"a name without a dot", "Makefile:3:1: error: no\n12:30:45: error: no\n", "Makefile:3:1 error no\n"},
    {"the same twice", "a.h:1:1: error: x\na.h:1:1: error: x\n", "a.h:1:1 error x\n"},
    {"CRLF", "a.c:1:1: error: x\r\nb.c:2:2: error: y\r\n", "a.c:1:1 error x\nb.c:2:2 error y\n"},
    {"no UTF-8, and control characters", "a.c:1:1: error: x\x01\xff y\n", "a.c:1:1 error x ? y\n"},
    {"numbers that are none", "a.c:99999999999999999999:1: error: x\n", "a.c:0:1 error x\n"},
    {"addresses", "http://localhost:3000:1: error: x\n", ""},
    {"half of it", "a.c:1:", ""},
    {"nothing", "", ""},
};

TEST(forms) {
    char is[8192];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int r;
        test_row(rows[i].name);
        weft_diagnostics *found = read_text(NULL, rows[i].text, &r);
        CHECK_INT(r, 0);
        put_found(is, sizeof is, found);
        CHECK_TEXT(is, strlen(is), rows[i].want);
        weft__diagnostics_done(found);
        free(found);
    }
    test_row(NULL);
}

TEST(limits_of_diagnostics) {
    char *text = calloc(1, 1 << 20);
    size_t len = 0;
    int r;
    for (int i = 0; i < WEFT_DIAGNOSTICS + 50; i++)
        len += (size_t) snprintf(text + len, 64, "a.c:%d:1: error: x\n", i + 1);
    len += (size_t) snprintf(text + len, 64, "a.c:1:1: warning: ");
    memset(text + len, 'y', 5000);
    weft_diagnostics *found = read_text(NULL, text, &r);
    CHECK_INT(found->count, WEFT_DIAGNOSTICS);
    CHECK_INT(found->errors, WEFT_DIAGNOSTICS + 50);
    CHECK_INT(found->warnings, 1);
    CHECK(found->truncated);
    weft__diagnostics_done(found);
    free(found);
    found = read_text(NULL, text + len - 18, &r);
    CHECK_INT(strlen(found->items[0].message), WEFT_DIAGNOSTIC_MESSAGE);
    weft__diagnostics_done(found);
    free(found);
    free(text);
}

TEST(memory_of_diagnostics) {
    test_memory memory;
    for (long at = 1; at < 100; at++) {
        int r;
        test_memory_init(&memory, at);
        weft_diagnostics *found = read_text(&memory.alloc, rows[0].text, &r);
        CHECK(r == 0 || r == -ENOMEM);
        weft__diagnostics_done(found);
        free(found);
        CHECK_INT(memory.live, 0);
        if (r == 0)
            return;
    }
    CHECK(false);
}

/* ---- running ---- */

typedef struct scene {
    weft_loop *loop;
    weft_commands *commands;
    char place[64];
    int begun;
    size_t texts;
} scene;

typedef struct ran {
    scene *s;
    int ends, r, exit_code, signal, order; /* order: how many had begun when it ended */
    uint64_t bytes;
    size_t head, tail;
    char text[16384];
} ran;

static bool open_scene(scene *s, const weft_alloc *alloc) {
    *s = (scene){.place = "/tmp/weft-diagnostics-XXXXXX"};
    if (!CHECK(mkdtemp(s->place) != NULL))
        return false;
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
    return CHECK_INT(
        weft__commands_new(&(weft_commands_opts){.loop = s->loop, .alloc = alloc, .guard = kit_weft()}, &s->commands), 0);
}

static void close_scene(scene *s) {
    weft__commands_free(s->commands);
    weft__guards_finish(PATIENCE_MS);
    weft_loop_free(s->loop);
    test_remove(s->place);
}

static void on_begin(void *ctx) {
    ((ran *) ctx)->s->begun++;
}

static void on_text(void *ctx, weft_bytes text) {
    ((ran *) ctx)->s->texts += text.len;
}

static void on_end(void *ctx, const weft_command_report *report) {
    ran *run = ctx;
    run->ends++;
    run->r = report->r;
    run->exit_code = report->exit_code;
    run->signal = report->signal;
    run->bytes = report->bytes;
    run->head = report->head.len;
    run->tail = report->tail.len;
    run->order = run->s->begun;
    snprintf(run->text, sizeof run->text, "%.*s", (int) report->head.len, report->head.data);
}

static int run_in(scene *s, ran *run, const char *folder, int64_t within_ms, const char *const *argv, uint64_t *ret_id) {
    uint64_t id;
    *run = (ran){.s = s};
    return weft__commands_run(s->commands,
                              &(weft_command_order){.argv = argv,
                                                    .folder = folder,
                                                    .within_ms = within_ms,
                                                    .on_begin = on_begin,
                                                    .on_text = on_text,
                                                    .on_end = on_end,
                                                    .ctx = run},
                              ret_id ? ret_id : &id);
}

static void wait_end(scene *s, const ran *run) {
    int64_t until = kit_now() + 2 * PATIENCE_MS;
    while (!run->ends && kit_now() < until)
        weft_loop_once(s->loop, true);
    CHECK_INT(run->ends, 1);
}

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(a_command) {
    scene s;
    ran run;
    if (!open_scene(&s, NULL))
        return;
    CHECK_INT(run_in(&s, &run, s.place, PATIENCE_MS, ARGV("sh", "-c", "echo out; echo err >&2; exit 3"), NULL), 0);
    CHECK_INT(run.ends, 0);
    wait_end(&s, &run);
    CHECK_INT(run.r, 0);
    CHECK_INT(run.exit_code, 3);
    CHECK(strstr(run.text, "out\n") && strstr(run.text, "err\n"));
    CHECK_INT(s.texts, 8);
    CHECK_INT(run_in(&s, &run, s.place, PATIENCE_MS, ARGV("no-such-program-anywhere"), NULL), 0);
    wait_end(&s, &run);
    CHECK_INT(run.r, -ENOENT);
    CHECK_INT(run_in(&s, &run, s.place, PATIENCE_MS, ARGV(""), NULL), -EINVAL);
    close_scene(&s);
}

TEST(limits_of_commands) {
    scene s;
    ran run, second;
    if (!open_scene(&s, NULL))
        return;
    const char *mark = kit_mark();
    char slow[256];
    snprintf(slow, sizeof slow, "%s sleep 1000 & sleep 1000", mark);
    CHECK_INT(run_in(&s, &run, s.place, 300, ARGV("sh", "-c", slow), NULL), 0);
    wait_end(&s, &run);
    CHECK_INT(run.r, -ETIMEDOUT);
    CHECK_INT(kit_wait_gone(mark, PATIENCE_MS), 0);
    /* 3 MiB: the beginning and the end are kept, and it goes on to its end. */
    CHECK_INT(run_in(&s, &run, s.place, 2 * PATIENCE_MS, ARGV("sh", "-c", "echo first; head -c 3145728 /dev/zero"), NULL),
              0);
    wait_end(&s, &run);
    CHECK_INT(run.exit_code, 0);
    CHECK_INT(run.bytes, 3145728 + 6);
    CHECK_INT(run.head, WEFT_COMMANDS_HEAD);
    CHECK_INT(run.tail, WEFT_COMMANDS_TAIL);
    CHECK(strncmp(run.text, "first\n", 6) == 0);
    const char *many[WEFT_COMMANDS_ARGS + 2];
    for (size_t i = 0; i <= WEFT_COMMANDS_ARGS; i++)
        many[i] = "true";
    many[WEFT_COMMANDS_ARGS + 1] = NULL;
    CHECK_INT(run_in(&s, &second, s.place, 1, many, NULL), -E2BIG);
    for (int i = 0; i < WEFT_COMMANDS_WAITING; i++)
        CHECK_INT(run_in(&s, &run, s.place, PATIENCE_MS, ARGV("true"), NULL), 0);
    CHECK_INT(run_in(&s, &second, s.place, PATIENCE_MS, ARGV("true"), NULL), -EAGAIN);
    close_scene(&s);
}

TEST(one_at_a_time_in_a_folder) {
    scene s;
    ran first, second, elsewhere;
    if (!open_scene(&s, NULL))
        return;
    CHECK_INT(
        run_in(&s, &first, s.place, PATIENCE_MS, ARGV("sh", "-c", "test ! -e busy && touch busy; sleep 0.1; rm busy"), NULL),
        0);
    CHECK_INT(run_in(&s, &second, s.place, PATIENCE_MS, ARGV("sh", "-c", "test ! -e busy"), NULL), 0);
    CHECK_INT(run_in(&s, &elsewhere, "/", PATIENCE_MS, ARGV("true"), NULL), 0);
    wait_end(&s, &first);
    CHECK_INT(first.exit_code, 0);
    CHECK_INT(first.order, 2); /* the one elsewhere did not wait */
    wait_end(&s, &second);
    CHECK_INT(second.exit_code, 0);
    wait_end(&s, &elsewhere);
    close_scene(&s);
}

TEST(cancelling_a_command) {
    scene s;
    ran runs, waits;
    uint64_t id, waiting;
    if (!open_scene(&s, NULL))
        return;
    const char *mark = kit_mark();
    char slow[256];
    snprintf(slow, sizeof slow, "%s sleep 1000", mark);
    CHECK_INT(run_in(&s, &runs, s.place, 2 * PATIENCE_MS, ARGV("sh", "-c", slow), &id), 0);
    CHECK_INT(run_in(&s, &waits, s.place, PATIENCE_MS, ARGV("true"), &waiting), 0);
    while (!s.begun)
        weft_loop_once(s.loop, true);
    weft__commands_cancel(s.commands, waiting);
    CHECK_INT(waits.ends, 0);
    wait_end(&s, &waits);
    CHECK_INT(waits.r, -ECANCELED);
    weft__commands_cancel(s.commands, id);
    wait_end(&s, &runs);
    CHECK_INT(runs.r, -ECANCELED);
    weft__commands_cancel(s.commands, id);
    CHECK_INT(kit_wait_gone(mark, PATIENCE_MS), 0);
    close_scene(&s);
}

TEST(freed_while_it_runs) {
    scene s;
    ran run;
    if (!open_scene(&s, NULL))
        return;
    const char *mark = kit_mark();
    char slow[256];
    snprintf(slow, sizeof slow, "%s sleep 1000", mark);
    CHECK_INT(run_in(&s, &run, s.place, 2 * PATIENCE_MS, ARGV("sh", "-c", slow), NULL), 0);
    while (!s.begun)
        weft_loop_once(s.loop, true);
    close_scene(&s);
    CHECK_INT(run.ends, 0);
    CHECK_INT(kit_wait_gone(mark, PATIENCE_MS), 0);
}

TEST(memory_of_commands) {
    test_memory memory;
    for (long at = 1; at < 100; at++) {
        scene s;
        ran run;
        test_memory_init(&memory, 0);
        if (!open_scene(&s, &memory.alloc))
            return;
        memory.fail_at = memory.count + at;
        int r = run_in(&s, &run, s.place, PATIENCE_MS, ARGV("echo", "x"), NULL);
        if (r >= 0)
            wait_end(&s, &run);
        r = r < 0 ? r : run.r;
        CHECK(r == 0 || r == -ENOMEM);
        close_scene(&s);
        CHECK_INT(memory.live, 0);
        if (r == 0)
            return;
    }
    CHECK(false);
}

/* ---- the tools that are here ---- */

static void write_file(const scene *s, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", s->place, name);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs(text, file);
    fclose(file);
}

/* Run it there; true: it could be started. The text of what was found is in ret. */
static bool look_with(scene *s, const char *const *argv, char *ret, size_t size) {
    ran run;
    CHECK_INT(run_in(s, &run, s->place, 2 * PATIENCE_MS, argv, NULL), 0);
    wait_end(s, &run);
    if (run.r == -ENOENT)
        return false;
    CHECK_INT(run.r, 0);
    CHECK(run.exit_code != 0);
    weft_diagnostics *found = calloc(1, sizeof *found);
    CHECK_INT(weft__diagnostics_read(found, (weft_bytes){run.text, strlen(run.text)}, s->place), 0);
    put_found(ret, size, found);
    CHECK(found->errors > 0);
    if (!found->errors)
        fprintf(stderr, "%s\n", run.text);
    weft__diagnostics_done(found);
    free(found);
    return true;
}

static const char *find_tool(const char *name, char *ret, size_t size) {
    char *cwd = getcwd(NULL, 0); /* the root of the source */
    snprintf(ret, size, "%s/build/tools/node_modules/.bin/%s", cwd, name);
    free(cwd);
    return access(ret, X_OK) == 0 ? ret : NULL;
}

static void compare_real(const char *name, bool there, const char *is, const char *want) {
    if (!there)
        test_skip(name);
    else if (!CHECK(strstr(is, want) != NULL))
        fprintf(stderr, "%s: %s", name, is);
}

TEST(real_c_compilers) {
    static const char *const names[] = {"gcc", "clang"};
    char is[8192];
    scene s;
    if (!open_scene(&s, NULL))
        return;
    write_file(&s, "a.c", "int main(void) {\n    int unused;\n    return nothing;\n}\n");
    for (int i = 0; i < 2; i++) {
        bool there = look_with(&s, ARGV(names[i], "-Wall", "-c", "./a.c", "-o", "/dev/null"), is, sizeof is);
        compare_real(names[i], there, is, "a.c:3:12 error ");
        compare_real(names[i], there, is, there ? "" : "x");
    }
    write_file(&s, "b.c", "int foo(void);\nint main(void) {\n    return foo();\n}\n");
    bool there = look_with(&s, ARGV("gcc", "b.c", "-o", "b"), is, sizeof is);
    compare_real("gcc", there, is, "b.c:0:0 error undefined reference to");
    close_scene(&s);
}

TEST(real_esbuild) {
    char path[4096], is[8192];
    scene s;
    if (!find_tool("esbuild", path, sizeof path)) {
        test_skip("needs esbuild");
        return;
    }
    if (!open_scene(&s, NULL))
        return;
    write_file(&s, "a.ts", "import {x} from \"./nothere\";\nif (x === NaN) console.log(x);\n");
    bool there = look_with(&s, ARGV(path, "a.ts", "--bundle", "--outfile=o.js"), is, sizeof is);
    compare_real("esbuild", there, is, "a.ts:1:17 error Could not resolve \"./nothere\"");
    compare_real("esbuild", there, is, "a.ts:2:7 warning equals-nan ");
    close_scene(&s);
}

TEST(real_tsc) {
    char path[4096], is[8192];
    scene s;
    if (!find_tool("tsc", path, sizeof path)) {
        test_skip("needs tsc");
        return;
    }
    if (!open_scene(&s, NULL))
        return;
    write_file(&s, "a.ts", "const n: number = \"x\";\n");
    bool there = look_with(&s, ARGV(path, "--noEmit", "a.ts"), is, sizeof is);
    compare_real("tsc", there, is, "a.ts:1:7 error TS2322 Type 'string' is not assignable");
    there = look_with(&s, ARGV(path, "--noEmit", "--pretty", "true", "a.ts"), is, sizeof is);
    compare_real("tsc --pretty", there, is, "a.ts:1:7 error TS2322 Type 'string' is not assignable");
    close_scene(&s);
}

TEST(real_cargo) {
    char is[8192], folder[128];
    scene s;
    if (!open_scene(&s, NULL))
        return;
    snprintf(folder, sizeof folder, "%s/src", s.place);
    mkdir(folder, 0700);
    write_file(&s, "Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    write_file(&s, "src/main.rs", "fn main() {\n    let x: u8 = \"a\";\n}\n");
    bool there = look_with(&s, ARGV("cargo", "build", "--offline"), is, sizeof is);
    compare_real("cargo", there, is, "src/main.rs:2:17 error E0308 mismatched types\n");
    there = look_with(&s, ARGV("cargo", "build", "--offline", "--message-format=json"), is, sizeof is);
    compare_real("cargo as JSON", there, is, "src/main.rs:2:17 error E0308 mismatched types\n");
    close_scene(&s);
}

TEST_MAIN(CASE(forms) CASE(limits_of_diagnostics) CASE(memory_of_diagnostics) CASE(a_command) CASE(limits_of_commands)
              CASE(one_at_a_time_in_a_folder) CASE(cancelling_a_command) CASE(freed_while_it_runs) CASE(memory_of_commands)
                  CASE(real_c_compilers) CASE(real_esbuild) CASE(real_tsc) CASE(real_cargo))

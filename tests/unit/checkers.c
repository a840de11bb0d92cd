/* Checkers: what they find, that rules are names, that nothing of the code runs or reads what it should not, and that
 * nothing of a check stays. */
#include "checkers.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "agents/kit.h"
#include "check_private.h"
#include "confine.h"
#include "guards.h"

#define FOUND 4096

typedef struct scene {
    weft_loop *loop;
    weft_checkers *checkers;
    char place[64], folder[96], project[96];
    int ends, r;
    bool valid;
    size_t issues;
    char found[FOUND]; /* rule/severity/line:column message, a line each */
    char ran[256], unsupported[1024], why[256];
} scene;

static void append_text(char *to, size_t size, const char *format, ...) {
    va_list args;
    size_t len = strlen(to);
    va_start(args, format);
    vsnprintf(to + len, size - len, format, args);
    va_end(args);
}

static void on_checked(void *ctx, const weft_check_result *result) {
    scene *s = ctx;
    s->ends++;
    s->r = result->r;
    s->valid = result->valid;
    s->issues = result->issue_count;
    *s->found = *s->ran = *s->unsupported = '\0';
    snprintf(s->why, sizeof s->why, "%s", result->why);
    for (size_t i = 0; i < result->issue_count; i++) {
        const weft_issue *issue = &result->issues[i];
        append_text(s->found, sizeof s->found, "%s/%s/%d:%d %s\n", issue->rule, weft__severities[issue->severity],
                    (int) issue->line, (int) issue->column, issue->message);
    }
    for (size_t i = 0; i < result->checker_count; i++)
        append_text(s->ran, sizeof s->ran, "%s%s", i ? " " : "", result->checkers[i]);
    for (size_t i = 0; i < result->unsupported_count; i++)
        append_text(s->unsupported, sizeof s->unsupported, "%s%s", i ? " " : "", result->unsupported[i]);
}

static int open_with(scene *s, const weft_alloc *alloc, int64_t within_ms, size_t waiting) {
    return weft__checkers_new(&(weft_checkers_opts){.loop = s->loop,
                                                    .alloc = alloc,
                                                    .guard = kit_weft(),
                                                    .folder = s->folder,
                                                    .project = s->project,
                                                    .check_ms = within_ms,
                                                    .max_waiting = waiting},
                              &s->checkers);
}

static bool open_scene(scene *s) {
    *s = (scene){.place = "/tmp/weft-checkers-XXXXXX"};
    if (!CHECK(mkdtemp(s->place) != NULL))
        return false;
    snprintf(s->folder, sizeof s->folder, "%s/checks", s->place);
    snprintf(s->project, sizeof s->project, "%s/project", s->place);
    mkdir(s->project, 0700);
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
    return CHECK_INT(open_with(s, NULL, 0, 0), 0);
}

static int count_entries(const char *folder) {
    DIR *dir = opendir(folder);
    int count = dir ? -2 : -1;
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static void close_scene(scene *s) {
    weft__checkers_free(s->checkers);
    CHECK_INT(count_entries(s->folder), 0); /* nothing of any check is left */
    CHECK(kit_no_children());
    weft_loop_free(s->loop);
    weft__check_folder_remove(s->place);
    CHECK(access(s->place, F_OK) < 0);
}

static int ask(scene *s, const char *language, const char *code, const char *const *rules) {
    return weft__check(s->checkers, &(weft_check_spec){.code = {code, strlen(code)}, .language = language, .rules = rules},
                       on_checked, s, NULL);
}

static bool check_code(scene *s, const char *language, const char *code, const char *const *rules) {
    int before = s->ends;
    if (!CHECK_INT(ask(s, language, code, rules), 0))
        return false;
    CHECK_INT(s->ends, before); /* never inside of the call */
    KIT_UNTIL(s->loop, s->ends > before);
    if (s->r)
        CHECK_TEXT(s->why, strlen(s->why), "");
    return CHECK_INT(s->r, 0);
}

static bool is_here(scene *s, const char *program) {
    char path[PATH_MAX];
    return weft__check_find(program, s->project, path) == 0;
}

static void says(const scene *s, const char *text) {
    if (!strstr(s->found, text))
        CHECK_TEXT(s->found, strlen(s->found), text);
}

#define RULES(...)                                                                                                          \
    (const char *const[]) {                                                                                                 \
        __VA_ARGS__, NULL                                                                                                   \
    }

/* ---- what they find ---- */

TEST(each_language_tells_good_from_bad) {
    static const struct {
        const char *language, *program, *good, *bad, *issue;
    } rows[] = {
        {"c", "gcc", "int main(void) { return 0; }\n", "int main(void) {\n  return x;\n}\n", "syntax/error/2:10 "},
        {"C++", "g++", "#include <vector>\nstd::vector<int> v;\n", "int f() { return }\n", "syntax/error/1:18 "},
        {"python", "python3", "print('a')\n", "def f(:\n  pass\n", "SyntaxError/error/1:7 "},
        {"js", "node", "var a = 1;\n", "var a = ;\n", "syntax/error/1:9 Unexpected token ';'"},
        {"javascript", "node", "import a from 'b';\nexport default a;\n", "export default = 1;\n", "syntax/error/1:16 "},
        {"js", "node", "const a = await import('b');\nawait a;\n", "with (import.meta) {}\n", "syntax/error/1:1 "},
        {"mjs", "node", "if (1) {\n  await 1;\n}\n", "with (a) {}\n", "syntax/error/1:1 "},
        {"cjs", "node", "with (a) {}\n", "export default 1;\n", "syntax/error/1:1 "},
        {"python", "python3", "# coding: latin-1\na = 1\n", "# coding: nope\na = 1\n",
         "SyntaxError/error/1:1 unknown encoding"},
        {"sh", "sh", "echo a\n", "if true; then\n", "syntax/error/2:0 "},
        {"bash", "bash", "a=(1 2)\necho \"${a[@]}\"\n", "fi\n", "syntax/error/1:0 "},
        {"json", "sh", "{\"a\": [1, 2]}\n", "{\"a\":\n  [1, 2,]}\n", "syntax/error/2:9 "},
        {"yaml", "python3", "a: 1\nb: [1, 2]\n", "a: [1\nb: 2\n", "syntax/error/2:"},
    };
    scene s;
    REQUIRE(open_scene(&s));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].language);
        if (!is_here(&s, rows[i].program))
            continue; /* this language cannot be tried on this machine */
        if (check_code(&s, rows[i].language, rows[i].good, NULL))
            CHECK(s.valid);
        if (!check_code(&s, rows[i].language, rows[i].bad, NULL))
            continue;
        CHECK(!s.valid);
        says(&s, rows[i].issue);
        CHECK(*s.ran);
        CHECK(!strstr(s.found, s.place));
    }
    test_row(NULL);
    close_scene(&s);
}

TEST(a_linter_comes_behind_the_syntax) {
    scene s;
    REQUIRE(open_scene(&s));
    if (!is_here(&s, "shellcheck")) {
        test_skip("shellcheck is not installed");
        close_scene(&s);
        return;
    }
    if (check_code(&s, "shell", "#!/bin/sh\ncd $1\n", NULL)) {
        CHECK_STR(s.ran, "sh shellcheck");
        says(&s, "SC2086/info/2:4 ");
        CHECK(s.valid); /* nobody said that this matters */
    }
    if (check_code(&s, "shell", "#!/bin/sh\ncd $1\n", RULES("SC2086"))) {
        CHECK_INT(s.issues, 1);
        CHECK(!s.valid);
    }
    if (check_code(&s, "shell", "#!/bin/sh\ncd $1\n", RULES("SC1000", "quotes"))) {
        CHECK_INT(s.issues, 0);
        CHECK(s.valid);
        CHECK_STR(s.unsupported, "quotes");
    }
    /* The syntax is wrong already; its rules are known nevertheless. */
    if (check_code(&s, "bash", "fi\n", RULES("SC2086"))) {
        CHECK_STR(s.ran, "bash");
        CHECK_STR(s.unsupported, "");
    }
    close_scene(&s);
}

TEST(rules_of_a_compiler_are_its_warnings) {
    static const char code[] = "int f(int a) {\n  int unused;\n  return a == 1 ? 2 : a;\n}\n";
    scene s;
    REQUIRE(open_scene(&s));
    if (is_here(&s, "gcc") && check_code(&s, "c", code, RULES("unused-variable"))) {
        CHECK_INT(s.issues, 1);
        says(&s, "unused-variable/warning/2:7 ");
        CHECK(!s.valid);
        CHECK_STR(s.unsupported, "");
        /* One that is not known, one that is no warning's name, one of another language, and one that is kept. */
        if (check_code(&s, "c", code, RULES("nobody-knows-this", "no-console", "@scope/rule", "unused-variable"))) {
            CHECK_STR(s.unsupported, "nobody-knows-this no-console @scope/rule");
            CHECK_INT(s.issues, 1);
        }
        if (check_code(&s, "c", code, RULES("nobody-1", "nobody-2", "nobody-3", "nobody-4", "nobody-5", "nobody-6"))) {
            CHECK_STR(s.unsupported, "nobody-1 nobody-2 nobody-3 nobody-4 nobody-5 nobody-6");
            CHECK_INT(s.issues, 0);
        }
    }
    close_scene(&s);
}

/* ---- rules are names ---- */

TEST(a_rule_is_no_option) {
    static const char *const bad[] = {"-fplugin=/tmp/x.so",
                                      "--rulesdir",
                                      "",
                                      "a b",
                                      "p,-include,/etc/passwd",
                                      "a=b",
                                      "a\nb",
                                      "$(id)",
                                      "../x,",
                                      "\"",
                                      ".x",
                                      "/x",
                                      "a/../b",
                                      "a//b",
                                      "a@b"};
    scene s;
    REQUIRE(open_scene(&s));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        test_row(bad[i]);
        CHECK_INT(ask(&s, "json", "1", RULES(bad[i])), -EINVAL);
    }
    test_row(NULL);
    char longest[WEFT_CHECK_RULE + 2];
    memset(longest, 'a', sizeof longest);
    longest[WEFT_CHECK_RULE] = '\0';
    CHECK(weft__check_is_rule(longest));
    longest[WEFT_CHECK_RULE] = 'a';
    longest[WEFT_CHECK_RULE + 1] = '\0';
    CHECK(!weft__check_is_rule(longest));
    const char *many[WEFT_CHECK_RULES + 2];
    for (size_t i = 0; i <= WEFT_CHECK_RULES; i++)
        many[i] = "x";
    many[WEFT_CHECK_RULES + 1] = NULL;
    CHECK_INT(ask(&s, "json", "1", many), -E2BIG);
    many[WEFT_CHECK_RULES] = NULL;
    CHECK(check_code(&s, "json", "1", many));
    close_scene(&s);
}

/* ---- nothing runs, nothing leaks ---- */

TEST(nothing_of_the_code_is_run) {
    static const struct {
        const char *language, *program, *code;
    } rows[] = {
        {"python", "python3", "import os\nopen('RAN', 'w')\nos.system('touch RAN')\n"},
        {"js", "node", "require('fs').writeFileSync('RAN', '');\n"},
        {"js", "node", "import fs from 'fs';\nfs.writeFileSync('RAN', '');\n"},
        {"sh", "sh", "touch RAN\n"},
        {"bash", "bash", "touch RAN\n: $(touch RAN) `touch RAN`\n"},
        {"yaml", "python3", "a: !!python/object/apply:os.system ['touch RAN']\n"},
        {"c", "gcc", "__attribute__((constructor)) void f(void) { __builtin_trap(); }\n"},
    };
    scene s;
    char code[512], mark[128];
    REQUIRE(open_scene(&s));
    snprintf(mark, sizeof mark, "%s/project/RAN", s.place);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].code);
        if (!is_here(&s, rows[i].program))
            continue;
        *code = '\0';
        const char *from = rows[i].code;
        for (const char *at; (at = strstr(from, "RAN")); from = at + 3)
            append_text(code, sizeof code, "%.*s%s", (int) (at - from), from, mark);
        append_text(code, sizeof code, "%s", from);
        check_code(&s, rows[i].language, code, NULL);
        CHECK(access(mark, F_OK) < 0);
    }
    test_row(NULL);
    close_scene(&s);
}

static void write_secret(const scene *s, const char *text, char ret[160]) {
    snprintf(ret, 160, "%s/project/secret.h", s->place);
    FILE *file = fopen(ret, "we");
    if (CHECK(file != NULL)) {
        fputs(text, file);
        fclose(file);
    }
}

/* What the compiler says of a file that the code names must not tell what is in it. */
TEST(an_include_does_not_show_a_file) {
    static const char *const compilers[] = {"c", "c++"};
    scene s;
    char secret[160], code[512];
    REQUIRE(open_scene(&s));
    write_secret(&s, "hunter2 is the word\n#define WORD \"hunter3\"\n", secret);
    for (size_t i = 0; i < 2 && is_here(&s, i ? "g++" : "gcc"); i++) {
        test_row(compilers[i]);
        snprintf(code, sizeof code, "#include \"%s\"\nint a;\n", secret);
        if (check_code(&s, compilers[i], code, NULL)) {
            CHECK(!s.valid);
            CHECK(!strstr(s.found, "hunter"));
        }
        snprintf(code, sizeof code, "#define S \"%s\"\n#include S\n#include WORD\n", secret);
        if (check_code(&s, compilers[i], code, NULL))
            CHECK(!strstr(s.found, "hunter"));
        if (!weft__confine_possible())
            continue;
        snprintf(code, sizeof code, "#include \"%s\"\n", secret);
        check_code(&s, compilers[i], code, NULL);
        CHECK(strstr(s.found, "No such file") != NULL);
        snprintf(code, sizeof code, "#if __has_include(\"%s\")\n#error readable\n#endif\n", secret);
        check_code(&s, compilers[i], code, NULL);
        CHECK(!strstr(s.found, "readable"));
    }
    test_row(NULL);
    close_scene(&s);
}

/* Where the kernel does not keep the compiler from reading it, its own list of what it read does. */
TEST(a_foreign_header_silences_the_compiler) {
    weft_findings *found = calloc(1, sizeof *found);
    REQUIRE(found != NULL);
    found->file = "code.c";
    static const char said[] = ". /usr/include/../../etc/passwd\n/etc/passwd:1:5: error: unknown type name 'root'\n"
                               "code.c:1:9: error: 'root' undeclared\n";
    weft__parse_compiler(found, &(weft_check_output){.err = {said, sizeof said - 1}, .exit_code = 1});
    if (CHECK_INT(found->count, 1)) {
        CHECK_STR(found->issues[0].rule, "include");
        CHECK(!strstr(found->issues[0].message, "root"));
    }
    weft__arena_done(&found->arena);
    *found = (weft_findings){.file = "code.c"};
    static const char fine[] = ". code.c\n. /usr/include/stdio.h\ncode.c:1:9: error: 'x' undeclared [-Wx]\n";
    struct stat st;
    if (stat("/usr/include/stdio.h", &st) == 0) {
        weft__parse_compiler(found, &(weft_check_output){.err = {fine, sizeof fine - 1}, .exit_code = 1});
        CHECK(!found->foreign);
        CHECK_INT(found->count, 1);
    }
    weft__arena_done(&found->arena);
    free(found);
}

/* Their arguments are fixed, and some programs are only used where another is not installed: each is run with them here. */
static int run_row(const weft_checker *row, const char *program, const char *folder, char *ret, size_t size) {
    const char *argv[16] = {program};
    size_t count = 1, len = 0;
    int fds[2], status = -1;
    for (const char *const *arg = row->args; *arg && count < 15; arg++) {
        bool rules = strcmp(*arg, CHECK_RULES) == 0;
        if (!rules || row->usual)
            argv[count++] = rules ? row->usual : strcmp(*arg, CHECK_FILE) == 0 ? row->file : *arg;
    }
    if (!CHECK_INT(pipe(fds), 0))
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], 1);
        dup2(fds[1], 2);
        close(fds[0]);
        if (chdir(folder) == 0)
            execv(program, (char *const *) (uintptr_t) argv);
        _exit(127);
    }
    close(fds[1]);
    for (ssize_t n; (n = read(fds[0], ret + len, size - 1 - len)) > 0;)
        len += (size_t) n;
    ret[len] = '\0';
    close(fds[0]);
    CHECK_INT(waitpid(pid, &status, 0), pid);
    return status;
}

TEST(each_program_takes_its_arguments) {
    static const struct {
        const char *language, *good, *bad;
    } codes[] = {
        {"c", "int main(void) { return 0; }\n", "int main(void) {\n  return x;\n}\n"},
        {"c++", "int main() { return 0; }\n", "int main() {\n  return x;\n}\n"},
        {"python", "print(1)\n", NULL},
        {"javascript", "var a = 1; module.exports = a;\n", NULL},
        {"typescript", "export const a: number = 1;\n", NULL},
        {"sh", "echo a\n", NULL},
        {"bash", "echo a\n", NULL},
        {"yaml", "a: 1\n", NULL},
    };
    scene s;
    char program[PATH_MAX], folder[PATH_MAX], said[8192];
    REQUIRE(open_scene(&s));
    for (const weft_checker *row = weft__checker_rows; row->language; row++) {
        size_t i = 0;
        test_row(row->name);
        while (i < sizeof codes / sizeof codes[0] && strcmp(codes[i].language, row->language) != 0)
            i++;
        if (!row->args || weft__check_find(row->program ? row->program : row->name, s.project, program) < 0 ||
            (row->probe && access(row->probe, F_OK) < 0))
            continue; /* this one cannot be tried on this machine */
        if (!CHECK(i < sizeof codes / sizeof codes[0]))
            continue;
        const char *texts[] = {codes[i].good, codes[i].bad};
        for (size_t bad = 0; bad < 2 && texts[bad]; bad++) {
            REQUIRE(weft__check_folder_make(s.folder, row->file, (weft_bytes){texts[bad], strlen(texts[bad])}, folder) >= 0);
            int status = run_row(row, program, folder, said, sizeof said);
            if (row->too_old && strstr(said, row->too_old)) {
                weft__check_folder_remove(folder);
                break; /* so is this one: it is passed over */
            }
            if (!bad && status)
                CHECK_TEXT(said, strlen(said), "");
            weft_findings *found = calloc(1, sizeof *found);
            REQUIRE(found != NULL);
            found->file = row->file;
            row->parse(found, &(weft_check_output){.out = {said, strlen(said)}, .err = {said, strlen(said)}});
            CHECK(found->error == (bad == 1));
            if (bad && CHECK(found->count > 0))
                CHECK_INT(found->issues[0].line, 2);
            weft__arena_done(&found->arena);
            free(found);
            weft__check_folder_remove(folder);
        }
    }
    test_row(NULL);
    close_scene(&s);
}

/* What a compiler says of another file: of a template of the library, with the place that leads there, and of code that
 * has another name. */
TEST(errors_elsewhere_are_errors_of_the_code) {
    static const struct {
        const char *said, *issue;
        bool error;
    } rows[] = {
        {"/usr/include/c++/12/vector: In instantiation of 'class std::vector<int&>':\n"
         "code.cc:2:19:   required from here\n"
         "/usr/include/c++/12/vector:63:26: error: forming pointer to reference type 'int&'\n",
         "syntax/error/2:19 /usr/include/c++/12/vector:63:26: forming pointer", true},
        {"code.cc:2:19:   required from here\nx.h: In function 'f':\nx.h:5:9: error: 'y' undeclared\n",
         "syntax/error/0:0 x.h:5:9: 'y' undeclared", true},
        {"parser.y:5:9: warning: unused variable 'x' [-Wunused-variable]\n",
         "unused-variable/warning/0:0 parser.y:5:9: unused variable 'x'", false},
        {"/usr/include/x.h:1:1: note: declared here\ncc1: all warnings\n:: error: x\n12: error\n", "", false},
        {"code.cc:2:19: warning: format [-Wformat=]\n", "format/warning/2:19 format", false},
        {"code.cc:2:19: candidate 1\n", "syntax/info/2:19 candidate 1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_findings *found = calloc(1, sizeof *found);
        char shown[512] = "";
        REQUIRE(found != NULL);
        test_row(rows[i].said);
        found->file = "code.cc";
        weft__parse_compiler(found, &(weft_check_output){.err = {rows[i].said, strlen(rows[i].said)}, .exit_code = 1});
        if (CHECK_INT(found->count, *rows[i].issue != '\0') && found->count)
            snprintf(shown, sizeof shown, "%s/%s/%d:%d %s", found->issues[0].rule,
                     weft__severities[found->issues[0].severity], (int) found->issues[0].line, (int) found->issues[0].column,
                     found->issues[0].message);
        if (strncmp(shown, rows[i].issue, strlen(rows[i].issue)) != 0)
            CHECK_TEXT(shown, strlen(shown), rows[i].issue);
        CHECK(found->error == rows[i].error);
        weft__arena_done(&found->arena);
        free(found);
    }
    test_row(NULL);
}

TEST(messages_are_cleaned_and_cut) {
    weft_findings *found = calloc(1, sizeof *found);
    REQUIRE(found != NULL);
    found->file = "code.py";
    found->folder = "/private/check-1";
    static const char said[] = "/private/check-1/code.py:3:4: error: in /private/check-1/code.py \033[31mred\n"
                               "code.py:99999999999999999999:1: far\n"
                               "code.py:7:1: error: //private/check-1/private/check-1 again\n"
                               "other.py:1:1: error: not ours\n"
                               "code.py:1\n";
    weft__parse_lines(found, &(weft_check_output){.out = {said, sizeof said - 1}});
    if (CHECK_INT(found->count, 3)) {
        CHECK_STR(found->issues[0].message, "in code.py  [31mred");
        CHECK_INT(found->issues[0].line, 3);
        CHECK_INT(found->issues[1].line, 0);
        CHECK_STR(found->issues[2].message, ""); /* what makes the folder's name anew is not shown */
    }
    char longest[5000] = "code.py:1:1: error: ";
    size_t at = strlen(longest);
    while (at + 2 < sizeof longest) {
        memcpy(longest + at, "\xC3\xA4", 2);
        at += 2;
    }
    weft__parse_lines(found, &(weft_check_output){.out = {longest, at}});
    CHECK_INT(strlen(found->issues[3].message), 2048);
    char line[] = "code.py:1:1: error: x\n";
    while (found->count < WEFT_CHECK_ISSUES)
        weft__parse_lines(found, &(weft_check_output){.out = {line, sizeof line - 1}});
    CHECK(!found->truncated);
    weft__parse_lines(found, &(weft_check_output){.out = {line, sizeof line - 1}});
    CHECK(found->truncated);
    CHECK_INT(found->count, WEFT_CHECK_ISSUES);
    weft__arena_done(&found->arena);
    free(found);
}

TEST(what_other_checkers_say_is_read) {
    static const struct {
        const char *file, *said, *issue, *refused;
        weft_check_parser *parse;
    } rows[] = {
        {"code.ts", "code.ts(2,7): error TS2322: Type 'string' is not assignable to type 'number'.\n",
         "TS2322/error/2:7 Type", NULL, weft__parse_typescript},
        {"code.ts", "code.ts(1,15): error TS2307: Cannot find module 'x'.\n", "", NULL, weft__parse_typescript},
        {"code.cjs",
         "[{\"messages\":[{\"ruleId\":\"no-console\",\"severity\":2,\"message\":\"Unexpected\",\"line\":1,\"column\":1},"
         "{\"ruleId\":\"nope\",\"message\":\"Definition for rule 'nope' not found.\"}]}]",
         "no-console/error/1:1 Unexpected", "nope", weft__parse_eslint},
        {"code.py",
         "[{\"code\":\"F401\",\"message\":\"`os` imported\",\"location\":{\"row\":1,\"column\":8}},"
         "{\"code\":null,\"message\":\"SyntaxError: x\",\"location\":{\"row\":2,\"column\":1}}]",
         "F401/warning/1:8 `os`", NULL, weft__parse_ruff},
        {"code.yaml", "code.yaml:1:1: [warning] missing document start \"---\" (document-start)\n",
         "document-start/warning/1:1 missing", NULL, weft__parse_lines},
        {"code.c", "code.c:1:2: error: x [\033[31m]\n", "syntax/error/1:2 x", NULL, weft__parse_lines},
        {"code.py", "code.py:1:1 'os' imported but unused\n", "syntax/warning/1:1 'os'", NULL, weft__parse_lines},
        {"code.cjs", "[{\"messages\":7},3,\"", "", NULL, weft__parse_eslint},
        {"code.sh", "{\"comments\":{\"a\":[1]}}", "", NULL, weft__parse_shellcheck},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weft_findings *found = calloc(1, sizeof *found);
        weft_named_rule rule = {.name = "nope"};
        char shown[512] = "";
        REQUIRE(found != NULL);
        test_row(rows[i].said);
        found->file = rows[i].file;
        found->rules = &rule;
        found->rule_count = 1;
        rows[i].parse(found, &(weft_check_output){.out = {rows[i].said, strlen(rows[i].said)}, .err = {"", 0}});
        if (found->count)
            snprintf(shown, sizeof shown, "%s/%s/%d:%d %s", found->issues[0].rule,
                     weft__severities[found->issues[0].severity], (int) found->issues[0].line, (int) found->issues[0].column,
                     found->issues[0].message);
        if (!*rows[i].issue || strncmp(shown, rows[i].issue, strlen(rows[i].issue)) != 0)
            CHECK_TEXT(shown, strlen(shown), rows[i].issue);
        CHECK(rule.refused == (rows[i].refused != NULL));
        weft__arena_done(&found->arena);
        free(found);
    }
    test_row(NULL);
}

/* ---- checkers of the user's own ---- */

static bool configure(scene *s, const char *json) {
    weft_doc *doc = NULL;
    if (!CHECK_INT(weft_doc_parse(json, strlen(json), NULL, &doc), 0))
        return false;
    bool ok = CHECK_INT(weft__checkers_set(s->checkers, weft_doc_root(doc)), 0);
    weft_doc_free(doc);
    return ok;
}

TEST(a_configured_checker_replaces_ours) {
    scene s;
    REQUIRE(open_scene(&s));
    CHECK_INT(ask(&s, "cobol", "x", NULL), -ENOENT);
    REQUIRE(configure(&s, "{\"cobol\":[\"sh\",\"-c\",\"echo $0:3:4: error: bad thing [my-rule]; exit 1\"],"
                          "\"json\":[\"sh\",\"-c\",\"cat {file} >&2; exit 3\"],\"c\":[\"true\"]}"));
    if (check_code(&s, "cobol", "x", RULES("my-rule", "other"))) {
        CHECK_STR(s.ran, "sh");
        says(&s, "my-rule/error/3:4 bad thing");
        CHECK_STR(s.unsupported, "my-rule other"); /* nobody knows what it would take */
    }
    if (check_code(&s, "json", "not json", NULL)) {
        CHECK(!s.valid);
        says(&s, "sh/error/0:0 not json");
    }
    if (check_code(&s, "c", "not c", NULL))
        CHECK(s.valid);
    /* However it is called; the word that was configured is before another one for the same. */
    REQUIRE(configure(&s, "{\"c\":[\"true\"],\"Cobol\":[\"true\"],\"h\":[\"false\"],\"cc\":[\"true\"]}"));
    static const char *const same[] = {"C", "c", "COBOL", "c++"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        test_row(same[i]);
        if (check_code(&s, same[i], "neither c nor cobol", NULL)) {
            CHECK_STR(s.ran, "true");
            CHECK(s.valid);
        }
    }
    test_row(NULL);
    if (check_code(&s, "h", "", NULL))
        CHECK(!s.valid);
    REQUIRE(configure(&s, "{}"));
    CHECK_INT(ask(&s, "cobol", "x", NULL), -ENOENT);
    close_scene(&s);
}

/* It says nothing about the code. */
TEST(a_configured_checker_that_dies_has_no_opinion) {
    scene s;
    REQUIRE(open_scene(&s));
    REQUIRE(configure(&s, "{\"cobol\":[\"sh\",\"-c\",\"kill -9 $$\"]}"));
    CHECK_INT(ask(&s, "cobol", "x", NULL), 0);
    KIT_UNTIL(s.loop, s.ends > 0);
    CHECK_INT(s.r, -EIO);
    CHECK_STR(s.why, "sh was ended by a signal");
    close_scene(&s);
}

TEST(the_environment_is_small) {
    scene s;
    REQUIRE(open_scene(&s));
    setenv("WEFT_TEST_SECRET", "hunter2", 1);
    REQUIRE(configure(&s, "{\"env\":[\"sh\",\"-c\",\"env; exit 1\"]}"));
    check_code(&s, "env", "x", NULL);
    unsetenv("WEFT_TEST_SECRET");
    CHECK(!strstr(s.found, "hunter2"));
    says(&s, "LC_ALL=C.UTF-8");
    close_scene(&s);
}

/* ---- limits ---- */

TEST(a_checker_that_hangs_is_ended) {
    scene s;
    REQUIRE(open_scene(&s));
    weft__checkers_free(s.checkers);
    REQUIRE(CHECK_INT(open_with(&s, NULL, 50, 0), 0));
    REQUIRE(configure(&s, "{\"slow\":[\"sh\",\"-c\",\"sleep 1000 & sleep 1000\"]}"));
    CHECK_INT(ask(&s, "slow", "x", NULL), 0);
    KIT_UNTIL(s.loop, s.ends);
    CHECK_INT(s.r, -ETIMEDOUT);
    CHECK_STR(s.why, "sh took too long");
    close_scene(&s);
}

TEST(a_checker_that_talks_is_ended) {
    scene s;
    REQUIRE(open_scene(&s));
    REQUIRE(configure(&s, "{\"loud\":[\"sh\",\"-c\",\"while :; do echo loud; done\"]}"));
    CHECK_INT(ask(&s, "loud", "x", NULL), 0);
    KIT_UNTIL(s.loop, s.ends);
    CHECK_INT(s.r, -EFBIG);
    close_scene(&s);
}

TEST(so_many_wait_and_no_more) {
    scene s;
    uint64_t ids[6];
    REQUIRE(open_scene(&s));
    weft__checkers_free(s.checkers);
    REQUIRE(CHECK_INT(open_with(&s, NULL, 0, 4), 0));
    REQUIRE(configure(&s, "{\"slow\":[\"sh\",\"-c\",\"sleep 1000\"]}"));
    weft_check_spec spec = {.code = {"x", 1}, .language = "slow"};
    for (int i = 0; i < 2; i++)
        CHECK_INT(weft__check(s.checkers, &spec, on_checked, &s, &ids[i]), 0);
    KIT_UNTIL(s.loop, count_entries(s.folder) == WEFT_CHECKS_AT_ONCE);
    for (int i = 2; i < 6; i++)
        CHECK_INT(weft__check(s.checkers, &spec, on_checked, &s, &ids[i]), 0);
    CHECK_INT(weft__check(s.checkers, &spec, on_checked, &s, NULL), -EAGAIN);
    for (int i = 5; i >= 0; i--) { /* those that wait and those that run */
        int before = s.ends;
        weft__check_cancel(s.checkers, ids[i]);
        CHECK_INT(s.ends, before);
        KIT_UNTIL(s.loop, s.ends > before);
        CHECK_INT(s.r, -ECANCELED);
    }
    weft__check_cancel(s.checkers, ids[0]); /* it is not there any more */
    CHECK_INT(s.ends, 6);
    close_scene(&s);
}

TEST(code_has_a_length) {
    scene s;
    REQUIRE(open_scene(&s));
    char *code = malloc(WEFT_CHECK_CODE + 1);
    REQUIRE(code != NULL);
    memset(code, ' ', WEFT_CHECK_CODE + 1);
    code[0] = '1';
    weft_check_spec spec = {.code = {code, WEFT_CHECK_CODE + 1}, .language = "json"};
    CHECK_INT(weft__check(s.checkers, &spec, on_checked, &s, NULL), -EMSGSIZE);
    spec.code.len = WEFT_CHECK_CODE;
    CHECK_INT(weft__check(s.checkers, &spec, on_checked, &s, NULL), 0);
    KIT_UNTIL(s.loop, s.ends);
    CHECK(s.valid);
    free(code);
    close_scene(&s);
}

TEST(a_sweep_removes_what_a_killed_daemon_left) {
    scene s;
    char path[256];
    REQUIRE(open_scene(&s));
    weft__checkers_free(s.checkers);
    snprintf(path, sizeof path, "%s/check-left/deep", s.folder);
    for (char *at = path + strlen(s.folder) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    mkdir(path, 0700);
    append_text(path, sizeof path, "/code.c");
    fclose(fopen(path, "we"));
    snprintf(path, sizeof path, "%s/link", s.folder);
    CHECK_INT(symlink(s.project, path), 0);
    snprintf(path, sizeof path, "%s/keep", s.project);
    fclose(fopen(path, "we"));
    chmod(s.folder, 0755);
    REQUIRE(CHECK_INT(open_with(&s, NULL, 0, 0), 0));
    CHECK_INT(count_entries(s.folder), 0);
    CHECK_INT(access(path, F_OK), 0); /* what a link led to is not ours */
    struct stat st;
    CHECK_INT(stat(s.folder, &st), 0);
    CHECK_INT(st.st_mode & 0777, 0700);
    close_scene(&s);
}

TEST(freed_while_it_runs) {
    scene s;
    REQUIRE(open_scene(&s));
    REQUIRE(configure(&s, "{\"slow\":[\"sh\",\"-c\",\"sleep 1000\"]}"));
    for (int i = 0; i < 3; i++)
        CHECK_INT(ask(&s, "slow", "x", NULL), 0);
    KIT_UNTIL(s.loop, count_entries(s.folder) == WEFT_CHECKS_AT_ONCE);
    weft__checkers_free(s.checkers);
    s.checkers = NULL;
    CHECK_INT(s.ends, 0);
    weft__guards_finish(PATIENCE_MS);
    close_scene(&s);
}

TEST(every_allocation_may_fail) {
    scene s;
    REQUIRE(open_scene(&s));
    weft__checkers_free(s.checkers);
    bool done = false;
    for (long n = 1; !done && n < 400; n++) {
        test_memory memory;
        test_memory_init(&memory, n);
        s.checkers = NULL;
        s.ends = 0;
        s.r = -ENOMEM;
        if (open_with(&s, &memory.alloc, 0, 0) == 0) {
            int r = ask(&s, "sh", "if\n", RULES("SC1000", "x"));
            CHECK(r == 0 || r == -ENOMEM);
            if (r == 0)
                KIT_UNTIL(s.loop, s.ends);
        }
        CHECK(s.r == 0 || s.r == -ENOMEM);
        done = s.r == 0 && memory.count < n;
        s.checkers = weft__checkers_free(s.checkers);
        CHECK_INT(memory.live, 0);
    }
    CHECK(done);
    REQUIRE(CHECK_INT(open_with(&s, NULL, 0, 0), 0));
    close_scene(&s);
}

TEST_MAIN(CASE(each_language_tells_good_from_bad) CASE(a_linter_comes_behind_the_syntax)
              CASE(rules_of_a_compiler_are_its_warnings) CASE(a_rule_is_no_option) CASE(nothing_of_the_code_is_run)
                  CASE(an_include_does_not_show_a_file) CASE(a_foreign_header_silences_the_compiler)
                      CASE(each_program_takes_its_arguments) CASE(errors_elsewhere_are_errors_of_the_code)
                          CASE(messages_are_cleaned_and_cut) CASE(what_other_checkers_say_is_read)
                              CASE(a_configured_checker_replaces_ours) CASE(a_configured_checker_that_dies_has_no_opinion)
                                  CASE(the_environment_is_small) CASE(a_checker_that_hangs_is_ended)
                                      CASE(a_checker_that_talks_is_ended) CASE(so_many_wait_and_no_more)
                                          CASE(code_has_a_length) CASE(a_sweep_removes_what_a_killed_daemon_left)
                                              CASE(freed_while_it_runs) CASE(every_allocation_may_fail))

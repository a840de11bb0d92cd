/* The checkers that Weft knows. Each of them reads the code and runs nothing of it:
 *
 *   gcc, clang     -fsyntax-only: neither assembler nor linker. What an #include names is read: see confine.h and
 *                  weft__parse_compiler().
 *   python3        compile() makes code and does not run it; -I keeps the folder and the environment out of its path
 *   pyflakes, ruff read only; ruff with --isolated, without the configuration of any folder
 *   node           --check compiles only
 *   eslint         without configuration, plug-ins and comments that configure it
 *   tsc            --noResolve: no other file is read, whatever the code imports
 *   sh, bash       -n; BASH_ENV and ENV are not set
 *   shellcheck     without .shellcheckrc; it follows "source" only with -x
 *   yamllint       with the configuration that is given; python3's yaml makes events, no objects
 *
 * Arguments are fixed. A rule is the end of an argument whose beginning is ours, so it can never be an option. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "check_private.h"
#include "fault.h"
#include "plain_name.h"

#define PYTHON_CHECK                                                                                                        \
    "import sys\n"                                                                                                          \
    "f = sys.argv[1]\n"                                                                                                     \
    "try:\n"                                                                                                                \
    "    compile(open(f, 'rb').read(), f, 'exec', dont_inherit=True)\n"                                                     \
    "except SyntaxError as e:\n"                                                                                            \
    "    print(f'{f}:{max(e.lineno or 1, 1)}:{max(e.offset or 1, 1)}: error: {e.msg} [{type(e).__name__}]')\n"              \
    "except (ValueError, OverflowError, RecursionError, MemoryError) as e:\n"                                               \
    "    print(f'{f}:1:1: error: {e or type(e).__name__}')\n"

#define YAML_CHECK                                                                                                          \
    "import sys, yaml\n"                                                                                                    \
    "f = sys.argv[1]\n"                                                                                                     \
    "try:\n"                                                                                                                \
    "    for event in yaml.parse(open(f, 'rb'), Loader=yaml.SafeLoader):\n"                                                 \
    "        pass\n"                                                                                                        \
    "except yaml.YAMLError as e:\n"                                                                                         \
    "    m = getattr(e, 'problem_mark', None)\n"                                                                            \
    "    s = getattr(e, 'problem', None) or getattr(e, 'reason', None) or 'it cannot be read'\n"                            \
    "    print(f'{f}:{m.line + 1 if m else 1}:{m.column + 1 if m else 1}: error: {s}')\n"                                   \
    "except RecursionError:\n"                                                                                              \
    "    print(f'{f}:1:1: error: nested too deeply')\n"

/* What says nothing about the meaning is no error: a piece of YAML may end without a newline. */
#define YAMLLINT_CONFIG                                                                                                     \
    "--config-data={extends: relaxed, rules: {new-line-at-end-of-file: disable, new-lines: {level: warning}, "              \
    "trailing-spaces: {level: warning}}}"

/* ---- rules ---- */

static bool has_only(const char *text, const char *extra) {
    for (; *text; text++)
        if (!isalnum((unsigned char) *text) && !strchr(extra, *text))
            return false;
    return true;
}

bool weft__check_is_rule(const char *rule) {
    size_t len = strnlen(rule, WEFT_CHECK_RULE + 1);
    return len <= WEFT_CHECK_RULE && !weft__name_wrong((weft_bytes){rule, len}, WEFT_NAME_RULE);
}

/* -Wno-x says nothing about x when there is no x, and -Werror is no warning. */
static bool is_warning(const char *rule) {
    return strncmp(rule, "no-", 3) != 0 && strncmp(rule, "error", 5) != 0 && strcmp(rule, "fatal-errors") != 0 &&
           strlen(rule) > 1 && has_only(rule, "+-");
}

static bool is_eslint_rule(const char *rule) {
    return islower((unsigned char) *rule) && has_only(rule, "-"); /* with a slash it is a plug-in's */
}

static bool is_shellcheck_rule(const char *rule) {
    return strncmp(rule, "SC", 2) == 0 && strlen(rule) == 6 && strspn(rule + 2, "0123456789") == 4;
}

static bool is_ruff_rule(const char *rule) {
    size_t letters = strspn(rule, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    return letters && letters + strspn(rule + letters, "0123456789") == strlen(rule);
}

/* ---- the rows ---- */

/* without_code: the option by which it shows no lines of the code, which could look like something it said. */
#define COMPILER_ARGS(language, without_code)                                                                               \
    (const char *const[]) {                                                                                                 \
        "-x", language, "-fsyntax-only", "-H", without_code, "-fdiagnostics-color=never", CHECK_RULES, CHECK_FILE, NULL     \
    }
#define ARGS(...)                                                                                                           \
    (const char *const[]) {                                                                                                 \
        __VA_ARGS__, NULL                                                                                                   \
    }
#define COMPILER(name_, language_, file_, without_code)                                                                     \
    {                                                                                                                       \
        .language = language_, .name = name_, .file = file_, .args = COMPILER_ARGS(language_, without_code),                \
        .rule_prefix = "-W", .is_rule = is_warning, .usual = "-Wall", .fails_for_errors = true,                             \
        .parse = weft__parse_compiler                                                                                       \
    }
#define GCC(name, language, file) COMPILER(name, language, file, "-fno-diagnostics-show-caret")
#define CLANG(name, language, file) COMPILER(name, language, file, "-fno-caret-diagnostics")

const weft_checker weft__checker_rows[] = {
    GCC("gcc", "c", "code.c"),
    CLANG("clang", "c", "code.c"),
    GCC("g++", "c++", "code.cc"),
    CLANG("clang++", "c++", "code.cc"),
    {.language = "python",
     .name = "python3",
     .file = "code.py",
     .args = ARGS("-I", "-B", "-c", PYTHON_CHECK, CHECK_FILE),
     .parse = weft__parse_lines},
    {.language = "python",
     .name = "ruff",
     .file = "code.py",
     .args = ARGS("check", "--isolated", "--no-cache", "--quiet", "--output-format=json", CHECK_RULES, CHECK_FILE),
     .lint = true,
     .rule_prefix = "--select=",
     .joined = true,
     .is_rule = is_ruff_rule,
     .parse = weft__parse_ruff},
    {.language = "python",
     .name = "pyflakes",
     .file = "code.py",
     .args = ARGS(CHECK_FILE),
     .lint = true,
     .parse = weft__parse_lines},
    {.language = "python", /* as Debian calls it */
     .name = "pyflakes3",
     .file = "code.py",
     .args = ARGS(CHECK_FILE),
     .lint = true,
     .parse = weft__parse_lines},
    {.language = "javascript",
     .name = "node",
     .file = "code.cjs",
     .args = ARGS("--check", CHECK_FILE),
     .parse = weft__parse_node},
    {.language = "javascript",
     .name = "eslint",
     .file = "code.cjs",
     .args = ARGS("--no-config-lookup", "--no-inline-config", "--format=json", CHECK_RULES, CHECK_FILE),
     .lint = true,
     .rule_prefix = "--rule=",
     .rule_suffix = ": 2",
     .is_rule = is_eslint_rule,
     .usual = "--rule=no-unused-vars: 1",
     .too_old = "Invalid option '--config-lookup'", /* such as Debian 12 installs with npm */
     .parse = weft__parse_eslint},
    {.language = "typescript",
     .name = "tsc",
     .file = "code.ts",
     .args = ARGS("--noEmit", "--noResolve", "--pretty", "false", "--target", "esnext", "--module", "esnext",
                  "--skipLibCheck", CHECK_FILE),
     .parse = weft__parse_typescript},
    {.language = "sh", .name = "sh", .file = "code.sh", .args = ARGS("-n", CHECK_FILE), .parse = weft__parse_shell},
    {.language = "sh",
     .name = "shellcheck",
     .file = "code.sh",
     .args = ARGS("--norc", "--format=json1", "--shell=sh", CHECK_RULES, CHECK_FILE),
     .lint = true,
     .rule_prefix = "--include=",
     .joined = true,
     .is_rule = is_shellcheck_rule,
     .parse = weft__parse_shellcheck},
    {.language = "bash", .name = "bash", .file = "code.sh", .args = ARGS("-n", CHECK_FILE), .parse = weft__parse_shell},
    {.language = "bash",
     .name = "shellcheck",
     .file = "code.sh",
     .args = ARGS("--norc", "--format=json1", "--shell=bash", CHECK_RULES, CHECK_FILE),
     .lint = true,
     .rule_prefix = "--include=",
     .joined = true,
     .is_rule = is_shellcheck_rule,
     .parse = weft__parse_shellcheck},
    {.language = "json", .name = "weft", .file = "code.json"},
    {.language = "yaml",
     .name = "yamllint",
     .file = "code.yaml",
     .args = ARGS("--format=parsable", YAMLLINT_CONFIG, CHECK_FILE),
     .parse = weft__parse_lines},
    {.language = "yaml",
     .name = "python3-yaml",
     .program = "python3",
     .file = "code.yaml",
     .args = ARGS("-I", "-B", "-c", YAML_CHECK, CHECK_FILE),
     .parse = weft__parse_lines,
     .probe = "/usr/lib/python3/dist-packages/yaml/__init__.py"},
    {0},
};

/* ---- languages ---- */

static bool first_line_has(weft_bytes code, const char *word) {
    const char *end = memchr(code.data, '\n', code.len);
    size_t len = end ? (size_t) (end - code.data) : code.len;
    return len > 2 && memcmp(code.data, "#!", 2) == 0 && memmem(code.data, len, word, strlen(word));
}

const char *weft__check_language(const char *name, weft_bytes code) {
    static const char *const names[][2] = {
        {"c", "c"},
        {"h", "c"},
        {"c++", "c++"},
        {"cpp", "c++"},
        {"cxx", "c++"},
        {"cc", "c++"},
        {"hpp", "c++"},
        {"python", "python"},
        {"python3", "python"},
        {"py", "python"},
        {"javascript", "javascript"},
        {"js", "javascript"},
        {"mjs", "javascript"},
        {"cjs", "javascript"},
        {"node", "javascript"},
        {"typescript", "typescript"},
        {"ts", "typescript"},
        {"sh", "sh"},
        {"dash", "sh"},
        {"bash", "bash"},
        {"json", "json"},
        {"yaml", "yaml"},
        {"yml", "yaml"},
    };
    if (strcasecmp(name, "shell") == 0)
        return first_line_has(code, "/sh") || first_line_has(code, "dash") ? "sh" : "bash";
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(names[i][0], name) == 0)
            return names[i][1];
    return NULL;
}

static bool line_begins(const char *at, const char *end, const char *word) {
    size_t len = strlen(word);
    return (size_t) (end - at) > len && memcmp(at, word, len) == 0 && strchr(" \t{*\"'", at[len]);
}

/* "await" outside of every function, which begins a line, or what a declaration at the beginning of a line waits for. */
static bool line_awaits(const char *at, const char *end) {
    static const char awaited[] = "= await ";
    const char *newline = memchr(at, '\n', (size_t) (end - at));
    size_t len = (size_t) ((newline ? newline : end) - at);
    bool declares = line_begins(at, end, "const") || line_begins(at, end, "let") || line_begins(at, end, "var");
    return line_begins(at, end, "await") ||
           (declares && memmem(at, len, awaited, sizeof awaited - 1) && !memmem(at, len, "async", 5));
}

/* Node asks for a name that says so. A line in a comment or a text may look like one: then a script is read as a module,
 * which differs little for a check. */
bool weft__check_is_module(const char *name, weft_bytes code) {
    const char *end = code.data + code.len;
    if (strcasecmp(name, "mjs") == 0 || strcasecmp(name, "cjs") == 0)
        return tolower((unsigned char) *name) == 'm';
    if (memmem(code.data, code.len, "import.meta", 11))
        return true;
    for (const char *at = code.data; at && at < end;) {
        if (line_begins(at, end, "import") || line_begins(at, end, "export") || line_awaits(at, end))
            return true;
        at = memchr(at, '\n', (size_t) (end - at));
        at = at ? at + 1 : NULL;
    }
    return false;
}

/* ---- JSON ---- */

/* code has the scanner's slack behind it. */
void weft__check_json(weft_findings *findings, weft_bytes code) {
    weft_fault fault = weft__fault_find(code.data, code.len);
    if (!fault.why)
        return;
    weft_place place = weft__place_of(code.data, fault.at);
    weft__findings_add(findings, &(weft_found){.severity = WEFT_SEVERITY_ERROR,
                                               .line = (int64_t) place.line,
                                               .column = (int64_t) place.column,
                                               .message = {fault.why, strlen(fault.why)}});
}

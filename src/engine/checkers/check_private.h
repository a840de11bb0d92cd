/* What the files of the checkers share: the rows, what is found, one program, the folder.
 *
 *   checkers.c      checks that wait and run, one program after the other     check_rows.c    the programs and their
 * arguments check_program.c one program: its output, its time, its end                check_parse.c   what they say
 *   check_find.c    where the programs are, and what they may read            check_folder.c  the copy */
#ifndef WEFT_CHECK_PRIVATE_H
#define WEFT_CHECK_PRIVATE_H

#include <limits.h>

#include "arena.h"
#include "buf.h"
#include "checkers.h"

/* ---- what is found: check_parse.c ---- */

typedef struct weft_named_rule {
    const char *name;
    bool known;   /* a checker took it */
    bool refused; /* the checker that runs now does not know it */
} weft_named_rule;

typedef struct weft_findings {
    weft_arena arena;
    const char *file;   /* what the copy is called, */
    const char *folder; /* and where it is, which nobody is told */
    weft_issue issues[WEFT_CHECK_ISSUES];
    size_t count;
    bool truncated, error;
    bool foreign; /* it had a file read that is none of the compiler's: nothing that was said is shown */
    bool no_memory;
    weft_named_rule *rules;
    size_t rule_count;
    size_t refused; /* rules that the program which has just run does not know */
} weft_findings;

typedef struct weft_found {
    const char *rule; /* NULL or "": "syntax" */
    size_t rule_len;
    weft_severity severity;
    int64_t line, column;
    weft_bytes message;
} weft_found;
void weft__findings_add(weft_findings *findings, const weft_found *found);

/* What a program said, and how it ended. */
typedef struct weft_check_output {
    weft_bytes out, err;
    int exit_code; /* -1: by a signal */
} weft_check_output;
typedef void weft_check_parser(weft_findings *findings, const weft_check_output *output);
weft_check_parser weft__parse_lines;      /* FILE:LINE:COLUMN: severity: message [rule], and what is close to it */
weft_check_parser weft__parse_compiler;   /* the same of gcc and clang, with -H */
weft_check_parser weft__parse_node;       /* node --check */
weft_check_parser weft__parse_shell;      /* sh -n */
weft_check_parser weft__parse_typescript; /* tsc --pretty false */
weft_check_parser weft__parse_shellcheck, weft__parse_eslint, weft__parse_ruff; /* JSON */

/* ---- the rows: check_rows.c ---- */

typedef struct weft_checker {
    const char *language;    /* NULL ends the table */
    const char *name;        /* as it is told; also that of the program, unless that has another */
    const char *program;     /* NULL: its name */
    const char *file;        /* what the copy is called */
    const char *const *args; /* CHECK_RULES stands for the rules, CHECK_FILE for the file */
    bool lint;               /* runs behind the first of its language that is none, if that found no error */
    /* How a rule becomes an argument: its name behind this. joined: all of them in one argument, with commas. NULL: it has
     * none. */
    const char *rule_prefix, *rule_suffix;
    bool joined;
    bool fails_for_errors; /* only they make it exit with another status than 0: warnings do not explain that */
    bool (*is_rule)(const char *rule);
    const char
        *too_old;      /* what a version says that does not know these arguments; it counts as not installed. May be NULL */
    const char *usual; /* the argument instead, where nobody named a rule; NULL: none */
    weft_check_parser *parse;
    const char *probe; /* a file that must be there as well; NULL: none */
} weft_checker;
#define CHECK_RULES "\1"
#define CHECK_FILE "\2"
extern const weft_checker weft__checker_rows[];
/* The language that people call so, as the rows have it. NULL: none. The code says which shell it is for. */
const char *weft__check_language(const char *name, weft_bytes code);
/* Is this JavaScript a module? By what it was called, or because only a module can be so. */
bool weft__check_is_module(const char *name, weft_bytes code);
/* JSON, which we read ourselves. */
void weft__check_json(weft_findings *findings, weft_bytes code);

/* ---- where things are: check_find.c ---- */

/* As an absolute path, in a folder of the system or of PATH, but none of the project's. -ENOENT. */
int weft__check_find(const char *program, const char *project, char ret[PATH_MAX]);
/* What a program of our rows may read and write: a list for weft_process_bounds, in the arena. NULL: no memory. */
const char *const *weft__check_bounds(weft_arena *arena, const char *program, const char *folder, const char *project);
/* Is this one of the files that a compiler reads for everybody? A path as it printed it. */
bool weft__check_is_system(const char *path);

/* ---- the folder: check_folder.c ---- */

/* Make it (0700) if it is not there, and remove what is in it. -EPERM: it is not ours alone. */
int weft__check_folder_sweep(const char *folder);
/* A new one in it, with the code in a file of this name. ret: where. */
int weft__check_folder_make(const char *folder, const char *file, weft_bytes code, char ret[PATH_MAX]);
void weft__check_folder_remove(const char *path);

/* ---- one program: check_program.c ---- */

typedef struct weft_check_program weft_check_program;
typedef struct weft_check_program_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    const char *guard;
    const char *const *argv, *const *env;
    const char *folder;
    const char *const *confined; /* NULL: it is the user's own */
    int64_t within_ms;
    /* Once, never inside of the start; not when it is freed before. r: -ETIMEDOUT, -EFBIG, -ENOMEM, or why it could not be
     * started; output is there with 0. It may be freed here. */
    void (*on_end)(void *ctx, int r, const weft_check_output *output);
    void *ctx;
} weft_check_program_opts;
int weft__check_program_start(const weft_check_program_opts *opts, weft_check_program **ret);
/* End it: on_end follows, with this r. */
void weft__check_program_stop(weft_check_program *program, int r);
weft_check_program *weft__check_program_free(weft_check_program *program);

/* ---- checkers.c ---- */
char *weft__check_text(weft_arena *arena, const char *format, ...) WEFT_PRINTF(2, 3);

#endif

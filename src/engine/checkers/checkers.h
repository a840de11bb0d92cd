/* Checking a piece of code that somebody sends: compilers and linters that are installed here look at a copy of it and say
 * what is wrong. Nothing of the code is run.
 *
 * A checker is a row of check_rows.c: a language, a program, its arguments and how its output is read; or a command line of
 * the user's configuration for a language. The copy lies in a folder of its own (0700), which is removed afterwards; what a
 * killed daemon left there is removed by the next one. A program runs under a guard, as agents do, with a small environment,
 * and may take so much time, memory and output. Those of our own rows read the system's folders, where they themselves are
 * and the copy, and nothing else, where the kernel can see to that (confine.h). */
#ifndef WEFT_CHECKERS_H
#define WEFT_CHECKERS_H

#include "loop.h"

#define WEFT_CHECK_CODE ((size_t) 1 << 20)   /* bytes of it: as long as a message of the planner's may be */
#define WEFT_CHECKS_AT_ONCE 2                /* more would only make each of them slower */
#define WEFT_CHECKS_WAITING 32               /* that have not begun */
#define WEFT_CHECK_MS 20000                  /* for one program; a large C++ header takes some seconds */
#define WEFT_CHECK_OUTPUT ((size_t) 1 << 20) /* bytes that one program may say */
#define WEFT_CHECK_ISSUES 500                /* of one check; the first are shown */
#define WEFT_CHECK_RULES 64                  /* that one check may name */
#define WEFT_CHECK_RULE 64                   /* bytes of a rule's name */

typedef enum weft_severity { WEFT_SEVERITY_ERROR, WEFT_SEVERITY_WARNING, WEFT_SEVERITY_INFO } weft_severity;
extern const char *const weft__severities[]; /* "error", ... */

typedef struct weft_issue {
    const char *rule, *message; /* rule: "syntax" where the checker has no name for it */
    weft_severity severity;
    int64_t line, column; /* from 1; 0: the checker does not say */
} weft_issue;

/* Borrowed until the callback returns. */
typedef struct weft_check_result {
    int r;           /* 0; or -ECANCELED, -ETIMEDOUT, -EFBIG it said too much, -EIO a checker failed, -ENOMEM, ... */
    const char *why; /* for people, where r is below 0; "" */
    bool valid;      /* there is no error, and none of the rules that were named is broken */
    bool truncated;  /* there are more issues */
    const weft_issue *issues;
    size_t issue_count;
    const char *const *checkers; /* those that looked at it */
    size_t checker_count;
    const char *const *unsupported; /* rules that none of them knows */
    size_t unsupported_count;
} weft_check_result;

/* Once for each check that was accepted, never inside of weft__check(); not when the checkers are freed before. */
typedef void weft_check_done(void *ctx, const weft_check_result *result);

typedef struct weft_checkers weft_checkers;

typedef struct weft_checkers_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    const char *guard;   /* as in process.h */
    const char *folder;  /* for the copies: absolute, and nobody else's. It is made, and what is in it is removed */
    const char *project; /* absolute; no checker of our own rows comes from there */
    int64_t check_ms;    /* 0: WEFT_CHECK_MS */
    size_t max_waiting;  /* 0: WEFT_CHECKS_WAITING */
} weft_checkers_opts;

int weft__checkers_new(const weft_checkers_opts *opts, weft_checkers **ret);
/* Programs that run are killed. Returns NULL. */
weft_checkers *weft__checkers_free(weft_checkers *checkers);
/* The user's own: an object of languages, each an array of a program and its arguments, in which "{file}" is the copy; where
 * none has it, it is the last argument. They replace our rows. Copied; absent: none. -ENOMEM. */
int weft__checkers_set(weft_checkers *checkers, const weft_json *configured);

typedef struct weft_check_spec {
    weft_bytes code;
    const char *language;     /* as people call it: "js", "C++" */
    const char *const *rules; /* NULL: the checkers' usual ones. Ends with NULL */
} weft_check_spec;

/* Everything is copied. ret_id, if not NULL, is for weft__check_cancel(). -ENOENT: no checker of this language is installed,
 * or nobody here knows the language; -EMSGSIZE the code is too long; -E2BIG there are too many rules; -EINVAL a rule that is
 * no name; -EAGAIN too many checks wait; -ENOMEM. */
int weft__check(weft_checkers *checkers, const weft_check_spec *spec, weft_check_done *done, void *ctx, uint64_t *ret_id);
/* It completes with -ECANCELED, unless it is done already. */
void weft__check_cancel(weft_checkers *checkers, uint64_t id);

/* What a rule may be called at all (plain_name.h), in so many bytes. */
bool weft__check_is_rule(const char *rule);
/* A sentence on what can be checked here now, and with what: for people who asked for something else. */
#define WEFT_CHECK_SENTENCE 512
void weft__checkers_tell(const weft_checkers *checkers, const char *language, char ret[WEFT_CHECK_SENTENCE]);

#endif

/* One call of git, between the loop's thread (git.c) and the thread that runs it (git_run.c, git_reads.c, git_writes.c). */
#ifndef WEFT_GIT_PRIVATE_H
#define WEFT_GIT_PRIVATE_H

#include "git.h"
#include "git_parse.h"
#include "repository.h"
#include "workers.h"

/* The variables every program gets, made once; see git_env.c. */
typedef struct weft_git_env {
    const weft_alloc *alloc;
    char **read, **write; /* end with NULL */
} weft_git_env;

int weft__git_env_init(weft_git_env *env, const char *folder, const weft_alloc *alloc);
void weft__git_env_done(weft_git_env *env);

/* What one program gets: the above, where to look for the repository, and the settings that go before its own. Owned, in one
 * list of owned texts that ends with NULL; NULL: no memory. */
char **weft__git_env_make(const weft_git_env *env, const weft_repository *repository, const weft_git_settings *settings,
                          bool write);
char **weft__git_env_free(const weft_git_env *env, char **made);

struct weft_git {
    weft_loop *loop;
    const weft_alloc *alloc;
    char *folder;   /* without links */
    int root;       /* the same, open */
    char *program;  /* NULL: there is none */
    int no_program; /* why */
    weft_git_env env;
    bool may_write;
    int64_t read_ms, write_ms;
    weft_workers *workers;
    weft_link waiting, running;
    size_t waiting_count, running_count;
    bool writing;
    uint64_t last_id;
    weft_later pump;
};

typedef struct weft_git_call weft_git_call;

/* A call, as a row of the table in git.c. */
typedef struct weft_git_op {
    bool write;
    /* Before it is accepted. -EINVAL, -E2BIG. */
    int (*check)(const weft_git_request *request);
    /* On a thread. Sets the result. */
    void (*run)(weft_git_call *call);
} weft_git_op;

extern const weft_git_op weft__git_status, weft__git_diff, weft__git_log, weft__git_branches;
extern const weft_git_op weft__git_stage, weft__git_unstage, weft__git_discard, weft__git_commit;

struct weft_git_call {
    weft_work work;
    weft_link link; /* waiting or running */
    weft_git *git;
    const weft_git_op *op;
    uint64_t id;
    weft_git_request request; /* its texts are in room */
    weft_git_done *done;
    void *ctx;
    int cancel; /* an eventfd; -1: not running */
    bool cancelled;
    /* Of the thread. */
    weft_repository repository;
    int top; /* the repository's top, open; -1: not yet */
    weft_git_settings settings;
    weft_buf settings_text;
    weft_command_end end; /* of the last program; the result points into it */
    weft_git_result result;
    weft_git_status status;
    weft_git_diff diff;
    weft_git_log log;
    weft_git_branches branches;
    char message[WEFT_COMMAND_ERRORS + 1];
    char commit[72];
    char room[];
};

/* ---- for the rows, on a thread ---- */

/* Pathspecs, ending with NULL: a hub's own files, if a repository has them among its own. Their content is not shown,
 * because it is the token; nor are they restored, because then the token would be what the repository says. */
extern const char *const weft__git_closed[];
#define WEFT_GIT_CLOSED 2 /* so many */

typedef struct weft_git_run {
    const char *const *argv; /* what follows "git" and the options that all have */
    weft_bytes input;
    size_t max_output;
    bool write, read_on;
    bool magic; /* its paths are pathspecs; else they mean themselves */
} weft_git_run;

/* Find the repository and read its settings. false: the result says why not. */
bool weft__git_prepare(weft_git_call *call);
/* Run git in the repository's top; call->end is its end. false: there is none, and the result says why. What git says by its
 * exit code is for the caller. */
bool weft__git_run(weft_git_call *call, const weft_git_run *run);
/* The same, and anything but exit code 0 (or an end because of too much output) is refused by the result. */
bool weft__git_run_well(weft_git_call *call, const weft_git_run *run);
/* Refuse with the program's standard error, or with text if not NULL. Returns false. */
bool weft__git_refuse(weft_git_call *call, weft_git_refusal refusal, const char *text);
/* What the last program printed. */
weft_git_text weft__git_output(weft_git_call *call);
/* A path in the repository's top, in room. */
const char *weft__git_in_top(const weft_git_call *call, const char *path, char room[2 * PATH_MAX]);
/* Our failure. */
void weft__git_fail(weft_git_call *call, int r);

#define WEFT_GIT_ARGS 24 /* of one program, where they are not paths */

/* The program: the given one, or one of the machine's, never one that came with the project in folder. *ret_why < 0: there
 * is none, which is said when it is needed. -ENOMEM. */
int weft__git_find(const char *program, const char *folder, const weft_alloc *alloc, char **ret, int *ret_why);

#endif

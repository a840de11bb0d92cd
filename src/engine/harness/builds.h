/* Builds of the project, by the command lines of the user's configuration: one for what browsers get, one for a backend. Of
 * each kind one runs at a time; whoever asks for one that runs gets its result too. What came of the last one of each kind
 * is stored, so that a client that comes later, also after a restart, sees it. */
#ifndef WEFT_BUILDS_H
#define WEFT_BUILDS_H

#include "engine.h"
#include "gates.h"

#define WEFT_BUILD_MS 600000     /* unless configured otherwise */
#define WEFT_BUILD_WARNINGS 20   /* that are told one by one; the result has all that are kept */
#define WEFT_BUILD_WAITERS 256   /* who wait for one */
#define WEFT_BUILD_PROGRESS 1000 /* ms between two lines of progress that are stored */

typedef enum weft_build_kind { WEFT_BUILD_FRONTEND, WEFT_BUILD_BACKEND, WEFT_BUILD_KINDS } weft_build_kind;
extern const char *const weft__build_kinds[WEFT_BUILD_KINDS]; /* "frontend", "backend" */

typedef enum weft_build_state {
    WEFT_BUILD_NONE, /* there never was one */
    WEFT_BUILD_RUNNING,
    WEFT_BUILD_OK,
    WEFT_BUILD_FAILED,
    WEFT_BUILD_STATES,
} weft_build_state;
extern const char *const weft__build_states[WEFT_BUILD_STATES]; /* "none", "running", "ok", "failed" */

/* Borrowed until the next turn of the loop. */
typedef struct weft_build {
    weft_build_kind kind;
    weft_build_state state;
    uint64_t number; /* "build-0001" */
    int64_t started_ms, ended_ms;
    int64_t duration_ms;
    int exit_code;   /* -1: it did not exit by itself */
    const char *why; /* it did not run to its end; "" */
    const char *by;  /* "": unknown */
    uint64_t errors, warnings;
    const char *diagnostics; /* JSON, an array */
    bool truncated;          /* there were more of them */
    const char *output;      /* the end of what it printed; "" */
} weft_build;
#define WEFT_BUILD_ID 24
const char *weft__build_id(const weft_build *build, char ret[WEFT_BUILD_ID]);

typedef struct weft_builds weft_builds;

typedef struct weft_builds_opts {
    weft_engine *engine;
    weft_commands *commands;
    void (*on_note)(void *ctx, const char *line); /* may be NULL */
    void *ctx;
} weft_builds_opts;

/* After the engine is ready. What was stored is read; until then builds are refused with -EAGAIN. */
int weft__builds_new(const weft_builds_opts *opts, weft_builds **ret);
/* Has it been read, or could it not be? That is tried again by itself. */
bool weft__builds_read(const weft_builds *builds);
/* After the commands are freed, and before the engine. Who waits is told -ECANCELED. Returns NULL. */
weft_builds *weft__builds_free(weft_builds *builds);
/* The command lines, each ends with NULL; NULL or empty: none. Copied. -ENOMEM. */
int weft__builds_set(weft_builds *builds, const char *const *const lines[WEFT_BUILD_KINDS], int64_t within_ms);

/* r 0: it has ended, whether it is ok or not; <0: it could not be stored, or -ECANCELED. build NULL with r < 0. */
typedef void weft_build_done(void *ctx, int r, const weft_build *build);
/* Start one, or join the one that runs. -ENOENT none is configured; -EAGAIN what was stored is not read yet; -EUSERS too
 * many wait for it; -ENOMEM, -ESHUTDOWN. */
int weft__builds_start(weft_builds *builds, weft_build_kind kind, const char *by, weft_build_done *done, void *ctx);
bool weft__builds_configured(const weft_builds *builds, weft_build_kind kind);
const weft_build *weft__builds_last(const weft_builds *builds, weft_build_kind kind);

#endif

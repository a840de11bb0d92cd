/* What a dialect has before it: the engine, who is connected, and a few facts about the daemon. Every handler of every
 * dialect gets the hub as its ctx. */
#ifndef WEFT_HUB_H
#define WEFT_HUB_H

#include "automation.h"
#include "builds.h"
#include "checkers.h"
#include "engine.h"
#include "files.h"
#include "gated.h"
#include "git.h"
#include "mcp.h"
#include "plans.h"
#include "url.h"

typedef struct weft_hub weft_hub;
typedef struct weft_dialect weft_dialect;
typedef struct weft_hub_clients weft_hub_clients;
typedef struct weft_rendering weft_rendering; /* hub_clients.h */

/* What the gates of the configuration have let pass and refused, notifications too. */
typedef struct weft_gate_counts {
    uint64_t good_signatures, bad_signatures; /* bad: those that are missing too */
    uint64_t rates, sizes, methods;           /* refused: too often, too large, not in a list */
} weft_gate_counts;

/* What only the program knows. Borrowed for the hub's life. */
typedef struct weft_hub_host {
    const char *version;
    const char *started_at; /* ISO 8601 */
    int64_t (*uptime_s)(void *ctx);
    /* daemon.status's own member "weft"; adds nothing when NULL. Owned text. */
    int (*about)(void *ctx, char **ret, size_t *ret_len);
    /* Somebody asked the daemon to stop. The answer has not been sent yet: stop later. */
    void (*stop)(void *ctx, bool force);
    /* Does this caller belong to an agent? NULL: nobody does. */
    bool (*is_agent)(void *ctx, const weft_identity *who);
    /* A client shows the project: its files are watched from now on. NULL: nobody watches them. */
    void (*show)(void *ctx);
    /* A flag of the configuration, by its name there: how a dialect reads what is set for it alone. NULL: none is set. */
    bool (*flag)(void *ctx, const char *name);
    /* Bytes of the journal's files; NULL: it has none. */
    uint64_t (*store_size)(void *ctx);
    /* NULL: there are no such gates. */
    void (*gates)(void *ctx, weft_gate_counts *ret);
    /* May this caller have by a path what this method gives? 0; -EACCES: a list does not have it; -ENOKEY: it must be
     * signed, which no GET is; -EBUSY: too often, and not before *ret_wait_ms. NULL: nobody asks. */
    int (*path)(void *ctx, const weft_identity *who, const char *method, int64_t *ret_wait_ms);
    void *ctx;
} weft_hub_host;

#define WEFT_PREVIEW_ROOT 512

struct weft_hub {
    weft_engine *engine;
    weft_automation *automation; /* NULL: not started */
    int automation_failed;       /* a negative errno: it should have been */
    weft_plans *plans;           /* NULL: not started */
    weft_gated_tasks *gated;     /* NULL: not started; so the next two */
    weft_gates *gates;
    weft_builds *builds;
    char preview_root[WEFT_PREVIEW_ROOT]; /* beneath the project's folder; "": it is looked for */
    struct {
        int64_t at_ms, room; /* of the loop's time: how much pages may say now */
        uint64_t dropped;    /* what they said beyond that */
    } preview;
    weft_mcp *mcp; /* the MCP servers; NULL: not started */
    weft_server *server;
    weft_service *service;
    weft_hub_clients *clients;
    weft_files *files;     /* NULL: the project's files are not served */
    weft_git *git;         /* NULL: nor is git */
    bool git_found;        /* the project is in a repository, */
    int64_t git_looked_ms; /* as it was at this time of the loop's */
    const weft_hub_host *host;
    const weft_alloc *alloc;
    struct weft_traffic *traffic;           /* the messages that somebody watches (traffic.h); NULL: nobody does */
    struct weft_health *health;             /* figures of the last minutes (health.h); NULL: none are kept */
    struct weft_journal_share *journal;     /* standbys that copy the journal; NULL: there were none */
    struct weft_hub_metrics *metrics;       /* what is counted of tasks (metrics.h); NULL: nothing is */
    size_t passage_files, passage_bytes;    /* what agents read and write now, see passages.h */
    size_t histories;                       /* that are being read for tinyvex */
    size_t chunk_bytes;                     /* of a value of tinyvex that are sent at a time; 0: the usual 65536 */
    struct weft_tinyvex_late *tinyvex_late; /* what tinyvex's callers have not been told yet; NULL: nothing */
    weft_checkers *checkers;                /* NULL: code is not checked here */
    struct weft_aiwg_loops *loops;          /* AIWG's supervisor; NULL: none */
    bool watching;                          /* the project's files are watched for clients that show them */
    bool stopping;
};

/* ---- dialects ---- */

/* What a row needs of its caller; every row of a dialect names one. A token has what it was given, an agent WEFT_READ and
 * WEFT_WORK. Exact words: who administers and also reads has both. */
#define WEFT_READ "read"       /* look at tasks, sessions, questions, events */
#define WEFT_WORK "work"       /* submit, cancel, answer */
#define WEFT_ADMIN "admin"     /* stop the daemon, switch rules and agents */
#define WEFT_METRICS "metrics" /* read the figures */
#define WEFT_RUNNER "runner"   /* run tasks on another machine */
#define WEFT_STANDBY "standby" /* copy the journal */

/* A row's flag: not for agents. They may read and submit work; answering questions, ending work and changing the daemon is
 * for people and their programs. */
enum { WEFT_FOR_PEOPLE = WEFT_ROW_OWN_FLAGS };

/* Another: this row decides which dialect a connection speaks (initialize). It goes to the dialect that claims its params,
 * and from then on the connection speaks that one. */
enum { WEFT_DECIDES = WEFT_ROW_OWN_FLAGS << 1 };

/* Another: it needs nothing of the past (weft__engine_past()), unless its params name a session or have a key. */
enum { WEFT_EARLY = WEFT_ROW_OWN_FLAGS << 2 };
/* And the one by which the gate of all others knows them; no dialect sets it. */
enum { WEFT_ASKS_PAST = WEFT_ROW_OWN_FLAGS << 3 };

/* One vocabulary: a table in its own file, with its handlers beside it, and a row in the wiring. */
struct weft_dialect {
    const char *name;           /* as in weft_identity.dialect */
    const weft_method *methods; /* ends with a NULL name; may be NULL */
    /* Do connections of this endpoint speak it until something decides otherwise? path of a URL, "" where there is
     * none. Of several the first of the list has it. May be NULL: none do. */
    bool (*endpoint)(const weft_scheme *scheme, const char *path);
    /* Are these the params of its row that decides? Of several the first of the list has it; where nobody claims them it is
     * the connection's present dialect, if that has the row. May be NULL: never. */
    bool (*claims)(const weft_json *params);
    /* Say an event in this vocabulary: weft__render_notify() any number of times. Called once for all who listen live, and
     * again for each who catches up, with the same outcome. data is the event's. May be NULL. */
    void (*render)(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data);
    /* The names of the ways in which it says the same, the usual one first; ends with NULL, at most WEFT_VARIANTS. A client
     * has one of them. May be NULL: there is one way. */
    const char *const *variants;
    /* Every so many milliseconds, to all live connections of this dialect (cdev's heartbeat); 0: never. */
    int64_t beat_ms;
    void (*beat)(const weft_hub *hub, weft_rendering *rendering);
    /* A dialect whose rows and words its connections have as well, where they have none of their own, and which of that
     * one's variants unless the connection chose another: tinyvex has ACP's. NULL: none; the usual variant. */
    const char *also, *also_variant;
    /* What its protocol says about messages: under which names a call is withdrawn, and whether batches are refused. */
    weft_style style;
    bool no_batch;
    /* It may be spoken beside any other: where one was decided before, its row that decides leaves that as it is. */
    bool joins;
};

extern const weft_dialect weft__aiwg, weft__cdev, weft__acp, weft__tinyvex, weft__planner, weft__wiggum, weft__mcp_rows,
    weft__hub_methods, weft__dashboard_methods;

/* The rows of all dialects as one table: a name that several have becomes one row that asks the connection which it speaks,
 * and takes the first of the list when that is none of them. The wiring gives the list; NULL-terminated, at most
 * WEFT_DIALECTS, borrowed. Every row has the hub as its ctx; it need not be filled in yet. -EINVAL: rows of one name need
 * different scopes or not all of them decide, or a dialect has too many variants. */
#define WEFT_DIALECTS 16
#define WEFT_VARIANTS 4
typedef struct weft_dialects weft_dialects;
int weft__dialects_new(const weft_dialect *const *list, weft_hub *hub, const weft_alloc *alloc, weft_dialects **ret);
weft_dialects *weft__dialects_free(weft_dialects *dialects);
const weft_method *weft__dialects_methods(const weft_dialects *dialects);
/* What a service with these methods must have as its gates: agents are kept from the rows of people. */
const weft_gate *const *weft__dialects_gates(const weft_dialects *dialects);
/* What connections of an endpoint speak; "": nothing in particular. */
const char *weft__dialects_endpoint(const weft_dialects *dialects, const weft_scheme *scheme, const char *path);
/* In the order of the list; NULL past the end. */
const weft_dialect *weft__dialects_at(const weft_dialects *dialects, size_t index);

#endif

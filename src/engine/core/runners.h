/* Runners: other machines that run tasks of this hub (docs/machines.md). A runner has a name, labels, agents, folders and
 * slots, as it says when it connects. It is known as long as the engine lives, also while it is away: its tasks are its
 * until it has been away for limits.lease_ms.
 *
 * A lease is one attempt of a task on a runner; its number is the gseq of the attempt's task.started. */
#ifndef WEFT_RUNNERS_H
#define WEFT_RUNNERS_H

#include "engine.h"

#define WEFT_RUNNERS 64        /* that are known at a time */
#define WEFT_RUNNER_LIST 32    /* agents, labels and folders that each names */
#define WEFT_RUNNER_NAME 64    /* bytes of each of these names, and of its own */
#define WEFT_RUNNER_SLOTS 1024 /* tasks at a time */
#define WEFT_RUNNER_ANY "*"    /* as a folder: whatever the hub's project is called */
/* Events of leases that are over which are kept of one runner, since the hub was started; the rest is refused. */
#define WEFT_RUNNER_LATE 10000

typedef struct weft_runner weft_runner;

/* Lists end with NULL. Copied. */
typedef struct weft_runner_spec {
    const char *name;
    const char *instance; /* of its journal: another one has none of its leases */
    const char *const *agents, *const *labels, *const *folders;
    size_t slots; /* at least 1 */
} weft_runner_spec;

/* It is connected; peer is borrowed until weft__runner_left(). What it had before is its still, if its journal is the same:
 * known is what it says it has (driver_runner.h), and is told after on_joined, so that the answer comes first. -ENOSPC too
 * many are known; -E2BIG a list or a name is too long; -EINVAL a name is none; -EBUSY another machine of that name is
 * connected; -EAGAIN, -ESHUTDOWN. */
int weft__runner_join(weft_engine *engine, const weft_runner_spec *spec, weft_runner **ret);
void weft__runner_up(weft_runner *runner, weft_peer *peer, const weft_json *known);
/* This connection is gone; nothing happens if another has taken its place. */
void weft__runner_left(weft_runner *runner, const weft_peer *peer);
/* Is this the connection that it has? */
bool weft__runner_is(const weft_runner *runner, const weft_peer *peer);
const char *weft__runner_name(const weft_runner *runner);

typedef enum weft_lease_state {
    WEFT_LEASE_HELD,
    WEFT_LEASE_DONE, /* it ended as the runner said */
    WEFT_LEASE_OVER, /* it ended otherwise: what comes is late */
    WEFT_LEASE_GONE, /* nobody knows of it, or it is another's */
} weft_lease_state;
extern const char *const weft__lease_states[]; /* "held", ... */
weft_lease_state weft__runner_lease(const weft_runner *runner, uint64_t lease, const char *task, uint64_t *ret_at);
/* Events of a lease, [{seq, type, data}]. Held: they were told, or with -EAGAIN in ret_r cannot be yet. Over: they are
 * stored as late, and done runs if 0 is in ret_r, with 1 where there was nothing new, with r < 0 where they could not be:
 * -ENOENT, it was never this runner's. */
weft_lease_state weft__runner_hear(weft_runner *runner, uint64_t lease, const char *task, const weft_json *events,
                                   void (*done)(void *ctx, int r), void *ctx, int *ret_r);

/* Where the files of a task are that ran on a runner, or of the last task of a session. Borrowed likewise. */
typedef struct weft_runner_place {
    const char *name, *task; /* of the runner; the hub's task */
    uint64_t lease;          /* of its last attempt */
    weft_peer *peer;         /* NULL: it is away */
    int64_t since_ms;        /* for so long; wall clock. 0: it was not seen since this engine was started */
} weft_runner_place;
/* False: it is here, or there is none. */
bool weft__runner_of_task(const weft_engine *engine, const char *task, weft_runner_place *ret);

/* Why a task that waits in the queue for a machine waits, for people; NULL: it does not, or for its turn. */
#define WEFT_RUNNER_WAITS 256
const char *weft__runner_waits(const weft_engine *engine, const char *task, char ret[WEFT_RUNNER_WAITS]);
/* queue.c: the same of any task that is queued here: why it does not run yet, in words. NULL: it will in a moment, or what
 * it waits for is not ours to say. */
const char *weft__task_waits(const weft_engine *engine, const char *task, char ret[WEFT_RUNNER_WAITS]);

/* For lists. Borrowed until the next turn of the loop. */
typedef struct weft_runner_view {
    const char *name;
    const char *const *agents, *const *labels, *const *folders;
    size_t slots, running;
    bool connected, here; /* it has the project's folder */
    int64_t since_ms;     /* connected, or away; wall clock */
} weft_runner_view;
bool weft__runner_nth(const weft_engine *engine, size_t n, weft_runner_view *ret);

#endif

/* Agents on other machines. A runner is a hub that dialled this one (docs/machines.md); each agent that it offers is an
 * agent here, with this driver. A turn is a lease: it has a number, the runner submits it to its own engine as a task, and
 * what happens to that task comes back as events with numbers that rise.
 *
 * A lease outlives the connection: a runner that is away keeps what happens and tells it when it is back. Events that were
 * told already are passed over. weft__runner_link_over() ends what nobody waits for any longer. */
#ifndef WEFT_DRIVER_RUNNER_H
#define WEFT_DRIVER_RUNNER_H

#include "driver.h"
#include "list.h"

/* Of one runner: the same one as long as the hub knows of it, whatever becomes of its connections. */
typedef struct weft_runner_link {
    weft_peer *peer;     /* NULL: it is away */
    weft_link processes; /* of the driver's, that use it */
    weft_link turns;     /* that it has */
    size_t pauses;       /* so many processes do not want to hear anything now */
    const char *name;    /* for people */
} weft_runner_link;

void weft__runner_link_init(weft_runner_link *link, const char *name);
/* It is connected, and knows these leases: [{lease, taskId, questions: [{questionId, kind, title, options, detail}]}], as it
 * says. What it should know and does not is sent again, or ends (runnerLost). */
void weft__runner_link_up(weft_runner_link *link, weft_peer *peer, const weft_json *known);
/* The connection is gone; its leases go on. */
void weft__runner_link_down(weft_runner_link *link);
/* Nobody waits for it any longer: every turn that it has ends, and may be tried again. */
void weft__runner_link_over(weft_runner_link *link, int64_t waited_ms);
/* Events of a lease, [{seq, type, data}]. False: it does not have this lease. */
bool weft__runner_link_hear(weft_runner_link *link, uint64_t lease, const char *task, const weft_json *events);
/* Does it have this lease? Then up to which number was everything told. */
bool weft__runner_link_holds(const weft_runner_link *link, uint64_t lease, const char *task, uint64_t *ret_at);
/* The lease is over for the hub. late: it did not end as the runner said. */
void weft__runner_link_release(weft_runner_link *link, uint64_t lease, const char *task, bool late);
size_t weft__runner_link_count(const weft_runner_link *link);

#endif

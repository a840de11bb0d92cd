/* Jobs that fire when their schedule says so, by the wall clock, which may be set and may stand still while a machine
 * sleeps: the scheduler looks at it at least once a minute. A job that was missed fires once, late; what was missed while
 * nothing ran is not made up for. */
#ifndef WEFT_SCHEDULER_H
#define WEFT_SCHEDULER_H

#include <weft/net.h>

#include "cron.h"

#define WEFT_SCHEDULER_JOBS 1000

typedef struct weft_scheduler weft_scheduler;

typedef struct weft_scheduler_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    int64_t (*now_ms)(void *ctx); /* the wall clock */
    /* From the loop; it may not free the scheduler. The strings are borrowed. */
    void (*on_fire)(void *ctx, const char *job, const char *schedule);
    void *ctx;
} weft_scheduler_opts;

int weft__scheduler_new(const weft_scheduler_opts *opts, weft_scheduler **ret);
weft_scheduler *weft__scheduler_free(weft_scheduler *scheduler);
/* -EEXIST there is one of that name, -E2BIG too many, -ENOMEM. */
int weft__scheduler_add(weft_scheduler *scheduler, const char *job, const char *schedule, const weft_cron *cron);
size_t weft__scheduler_jobs(const weft_scheduler *scheduler);
/* When it fired last, in the order of adding; false: not yet, or there is no such job. */
bool weft__scheduler_last(const weft_scheduler *scheduler, size_t index, const char **ret_job, int64_t *ret_ms);
/* Look at the clock now. The scheduler does so itself; for tests whose clock is their own. */
void weft__scheduler_look(weft_scheduler *scheduler);

#endif

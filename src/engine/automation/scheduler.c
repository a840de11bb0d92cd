/* A list of jobs and one timer. */
#include "scheduler.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "list.h"
#include "loop.h"

#define LOOK_MS 60000 /* between looks at the clock, at most */
#define BACK_MS 60000 /* set back by more than this, everything is computed anew; less is an adjustment */

typedef struct job {
    weft_link link;
    weft_cron cron;
    int64_t due_ms, last_ms; /* 0: never */
    const char *schedule;
    char id[];
} job;

struct weft_scheduler {
    weft_scheduler_opts opts;
    weft_link jobs;
    size_t count;
    int64_t looked_ms;
    weft_timer timer;
};

static int64_t now_ms(const weft_scheduler *scheduler) {
    return scheduler->opts.now_ms(scheduler->opts.ctx);
}

static void compute_due(job *j, int64_t now) {
    int64_t next;
    j->due_ms = weft__cron_next(&j->cron, now / 1000, &next) < 0 ? INT64_MAX : next * 1000;
}

static void set_timer(weft_scheduler *scheduler, int64_t now) {
    int64_t wait = LOOK_MS;
    if (!scheduler->count)
        return;
    for (weft_link *link = scheduler->jobs.next; link != &scheduler->jobs; link = link->next) {
        int64_t due = WEFT_CONTAINER(link, job, link)->due_ms;
        if (due - now < wait)
            wait = due > now ? due - now : 0;
    }
    weft__timer_set(scheduler->opts.loop, &scheduler->timer, weft__loop_fresh_now(scheduler->opts.loop) + wait);
}

void weft__scheduler_look(weft_scheduler *scheduler) {
    int64_t now = now_ms(scheduler);
    bool back = now < scheduler->looked_ms - BACK_MS;
    scheduler->looked_ms = now;
    for (weft_link *link = scheduler->jobs.next; link != &scheduler->jobs; link = link->next) {
        job *j = WEFT_CONTAINER(link, job, link);
        bool due = now >= j->due_ms;
        if (due || back)
            compute_due(j, now);
        if (!due)
            continue;
        j->last_ms = now;
        scheduler->opts.on_fire(scheduler->opts.ctx, j->id, j->schedule);
    }
    set_timer(scheduler, now);
}

static void on_job_due(weft_timer *timer) {
    weft__scheduler_look(WEFT_CONTAINER(timer, weft_scheduler, timer));
}

int weft__scheduler_new(const weft_scheduler_opts *opts, weft_scheduler **ret) {
    weft_scheduler *scheduler = weft__zalloc(opts->alloc, sizeof *scheduler);
    if (!scheduler)
        return -ENOMEM;
    scheduler->opts = *opts;
    scheduler->looked_ms = now_ms(scheduler);
    weft__list_init(&scheduler->jobs);
    weft__timer_init(&scheduler->timer, on_job_due);
    *ret = scheduler;
    return 0;
}

weft_scheduler *weft__scheduler_free(weft_scheduler *scheduler) {
    if (!scheduler)
        return NULL;
    weft__timer_stop(scheduler->opts.loop, &scheduler->timer);
    while (!weft__list_empty(&scheduler->jobs)) {
        job *j = WEFT_CONTAINER(scheduler->jobs.next, job, link);
        weft__list_remove(&j->link);
        weft__free(scheduler->opts.alloc, j);
    }
    return weft__free(scheduler->opts.alloc, scheduler);
}

int weft__scheduler_add(weft_scheduler *scheduler, const char *id, const char *schedule, const weft_cron *cron) {
    size_t id_len = strlen(id), len = strlen(schedule);
    if (scheduler->count == WEFT_SCHEDULER_JOBS)
        return -E2BIG;
    for (weft_link *link = scheduler->jobs.next; link != &scheduler->jobs; link = link->next)
        if (strcmp(WEFT_CONTAINER(link, job, link)->id, id) == 0)
            return -EEXIST;
    job *j = weft__zalloc(scheduler->opts.alloc, sizeof *j + id_len + 1 + len + 1);
    if (!j)
        return -ENOMEM;
    memcpy(j->id, id, id_len);
    memcpy(j->id + id_len + 1, schedule, len);
    j->schedule = j->id + id_len + 1;
    j->cron = *cron;
    weft__list_push(&scheduler->jobs, &j->link);
    scheduler->count++;
    compute_due(j, now_ms(scheduler));
    set_timer(scheduler, now_ms(scheduler));
    return 0;
}

size_t weft__scheduler_jobs(const weft_scheduler *scheduler) {
    return scheduler->count;
}

bool weft__scheduler_last(const weft_scheduler *scheduler, size_t index, const char **ret_job, int64_t *ret_ms) {
    const weft_link *link = scheduler->jobs.next;
    while (index-- && link != &scheduler->jobs)
        link = link->next;
    if (link == &scheduler->jobs)
        return false;
    const job *j = WEFT_CONTAINER(link, job, link);
    *ret_job = j->id;
    *ret_ms = j->last_ms;
    return j->last_ms != 0;
}

/* What the files of "weft plan" share. */
#ifndef WEFT_PLAN_VERB_H
#define WEFT_PLAN_VERB_H

#include "app.h"

typedef struct weft_plan_settings {
    const char *url;
    bool run;
    int64_t max_tasks, time_limit_ms, timeout_ms, limit;
} weft_plan_settings;

/* ---- plan_text.c ---- */

/* A plan as plan.get has it: its request, its tasks in a table, and a line that sums it up. ran: with how far each is. */
int weft__plan_put(const weft_app *app, const weft_json *plan, bool ran);
/* "4 tasks, about 2 min", "3 of 4 tasks completed, 1 failed, 12 s". */
#define WEFT_PLAN_SUM 160
const char *weft__plan_sum(char ret[WEFT_PLAN_SUM], const weft_json *plan);
/* What a script should know of a plan that has ended. */
weft_exit weft__plan_exit(const weft_json *plan);

/* ---- plan_follow.c ---- */

/* Let a request be planned, and with --run, or when the person says yes, run it. */
weft_exit weft__plan_request(weft_app *app);
/* Run a plan that is there, and stay until it has ended. */
weft_exit weft__plan_run_word(weft_app *app);

#endif

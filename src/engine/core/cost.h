/* What turns have cost, by day and agent, for a task and for a session; and the limits of it. A turn counts for the day on
 * which it ended, in the hub's local time. */
#ifndef WEFT_COST_H
#define WEFT_COST_H

#include "engine.h"
#include "spent.h"

#define WEFT_COST_DAY 12   /* "2026-11-16" and its NUL; "": before all the days that are kept */
#define WEFT_COST_AGENT 64 /* of its name, with the NUL */
#define WEFT_COST_ROWS 120 /* a day and an agent each; with more the oldest day becomes a part of "before" */

typedef struct weft_cost_row {
    char day[WEFT_COST_DAY];
    char agent[WEFT_COST_AGENT];
    weft_spent spent;
} weft_cost_row;

/* The oldest day first; count of them. Borrowed until the next turn of the loop. */
const weft_cost_row *weft__cost_rows(const weft_engine *engine, size_t *count);
void weft__cost_day(int64_t wall_ms, char ret[WEFT_COST_DAY]);
/* Of all turns that ended today. */
void weft__cost_today(const weft_engine *engine, weft_spent *ret);
/* What is known of; NULL: there is no such task, no such session. Of a task over all its attempts. */
const weft_spent *weft__cost_of_task(const weft_engine *engine, const char *id);
const weft_spent *weft__cost_of_session(const weft_engine *engine, const char *id);

#endif

/* Plans in the planner's words, for the files of this room that are about them. */
#ifndef WEFT_PLANNER_PLAN_H
#define WEFT_PLANNER_PLAN_H

#include "buf.h"
#include "hub.h"

/* ---- planner_plan.c ---- */

/* A whole number in an object, from 1 on, at most the most; 0: it is absent; <0: it is none. */
int64_t weft__planner_number(const weft_json *object, const char *name, int64_t most);
/* weft__plan_read(), with limits; the files that its tasks name must also lie in the project. */
int weft__planner_read_plan(const weft_hub *hub, const weft_json *value, const weft_plan_limits *limits, weft_plan **ret,
                            char why[WEFT_PLAN_WHY]);

/* ---- planner_run.c ---- */

/* {plan: {plan_id, user_request, tasks, estimated_time_seconds, explanation, created_at}}. req is taken. */
int weft__planner_reply_plan(weft_req *req, const weft_hub *hub, const weft_planned *planned);

#endif

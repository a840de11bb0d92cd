/* tasks.json, in which AIWG's daemon keeps its tasks: {version:1, updatedAt, tasks:[...]}, each as task.get shows it. What
 * it has is taken over when a hub takes the daemon's place, and what the hub did since is there when it goes back.
 *
 * The file is the project's, and a clone may bring any: what is in it is history, and nothing of it ever runs. */
#ifndef WEFT_AIWG_TASKS_FILE_H
#define WEFT_AIWG_TASKS_FILE_H

#include "hub.h"

#define WEFT_AIWG_TASKS_FILE (64 * 1024 * 1024) /* bytes of one that is read */
#define WEFT_AIWG_TASKS 1000                    /* tasks that are taken over, and written: the newest */

/* Take over the tasks whose numbers are beyond those of the journal, so that each is taken over once. Those that were queued
 * or ran have failed. done, later: how many were stored, or < 0. Returns 0 and never calls done when there is nothing to
 * take over, 1 when it will; <0. */
int weft__aiwg_tasks_import(const weft_hub *hub, const weft_json *file, void (*done)(void *ctx, int r), void *ctx);
/* The file as it should be now. */
int weft__aiwg_tasks_write(const weft_hub *hub, weft_buf *out);

#endif

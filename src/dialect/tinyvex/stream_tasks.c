/* The stream "tasks": what is queued, runs and has ended. */
#include <string.h>

#include "reply.h"
#include "tinyvex_stream.h"
#include "utf8.h"

#define MOST_TASKS 500    /* the newest; a list that people look at */
#define PROMPT_BYTES 1024 /* of each; task.get has all of it */

static const weft_param params[] = {{0}};

/* The tasks of a session that is deleted go with it. */
static weft_event_source *tasks_source(const weft_json *of, const weft_alloc *alloc) {
    static const char *const types[] = {"task.", "session.deleted"};
    (void) of;
    return weft__source_new(&(weft_subscription_spec){.types = types, .type_count = sizeof types / sizeof types[0]}, alloc);
}

/* Nothing that changes without an event of a task: not its output, nor whether it is asked to end. */
static int write_task(weft_buf *out, const weft_alloc *alloc, const weft_task *task, bool *first) {
    char created[WEFT_STAMP], started[WEFT_STAMP], completed[WEFT_STAMP];
    size_t len = strlen(task->prompt), shown = weft__utf8_fit(task->prompt, len, PROMPT_BYTES);
    return weft__stream_item(
        out, alloc, first,
        WEFT_OBJ({"id", weft_str(task->id)}, {"threadId", weft_str(task->session)},
                 {"state", weft_str(weft__task_states[task->state])}, {"prompt", weft_strn(task->prompt, shown)},
                 {"promptTruncated", shown < len ? weft_bool(true) : weft_none()}, {"agent", weft_str(task->agent)},
                 {"priority", weft_int(task->priority)}, {"attempt", weft_int(task->attempt)},
                 {"createdAt", weft__stamp_val(task->created_ms, created)},
                 {"startedAt", weft__stamp_val(task->started_ms, started)},
                 {"completedAt", weft__stamp_val(task->completed_ms, completed)}, {"error", weft_str_or_none(task->error)},
                 {"reason", weft_str_or_none(task->reason)}, {"stopReason", weft__early_stop(task->stop_reason)}));
}

static void compute_tasks(const weft_hub *hub, const weft_json *of, weft_computing *computing) {
    weft_buf *out = weft__computing_out(computing);
    size_t left = MOST_TASKS;
    bool first = true;
    (void) of;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (const weft_task *task = weft__task_newest(hub->engine); r >= 0 && task && left--;
         task = weft__task_older(hub->engine, task))
        r = write_task(out, hub->alloc, task, &first);
    weft__computing_done(computing, r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1));
}

const weft_stream_kind weft__stream_tasks = {.name = "tasks",
                                             .help = "the tasks, the newest first",
                                             .params = params,
                                             .class = WEFT_CLASS_STATE,
                                             .source = tasks_source,
                                             .compute = compute_tasks};

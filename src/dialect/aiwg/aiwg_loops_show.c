/* What is shown of loops: JSON in the shapes of AIWG's daemon. */
#include <stdio.h>
#include <string.h>

#include "aiwg_loops_private.h"
#include "buf.h"
#include "stamp.h"
#include "write.h"

static int put_item(weft_buf *out, const weft_alloc *alloc, weft_val value) {
    int r = out->data[out->end - 1] == '[' ? 0 : weft__write_raw(out, alloc, ",", 1);
    return r < 0 ? r : weft__write_val(out, alloc, &value);
}

static int write_running_loop(const weft_aiwg_loops *loops, weft_buf *out, const aiwg_loop *loop, bool marked) {
    char since[WEFT_STAMP];
    const weft_task *task = *loop->task ? weft__task_find(loops->engine, loop->task) : NULL;
    int64_t elapsed = weft__engine_now(loops->engine) - loop->since_ms;
    return put_item(out, loops->alloc,
                    WEFT_OBJ({"loopId", weft_str(loop->id)}, {"pid", task && task->pid ? weft_int(task->pid) : weft_null()},
                             {"status", marked ? weft_str("running") : weft_none()},
                             {"startedAt", weft_str(weft__stamp(loop->since_ms, since))},
                             {"elapsed", marked ? weft_int(elapsed > 0 ? elapsed : 0) : weft_none()},
                             {"taskId", *loop->task ? weft_str(loop->task) : weft_null()}));
}

static int write_queued_loop(const weft_aiwg_loops *loops, weft_buf *out, const aiwg_loop *loop, int64_t position,
                             bool marked) {
    char since[WEFT_STAMP];
    return put_item(out, loops->alloc,
                    WEFT_OBJ({"loopId", weft_str(loop->id)}, {"status", marked ? weft_str("queued") : weft_none()},
                             {"position", weft_int(position)}, {"priority", weft_int(loop->priority)},
                             {"enqueuedAt", weft_str(weft__stamp(loop->since_ms, since))}));
}

int weft__aiwg_loops_write(const weft_aiwg_loops *loops, weft_buf *out, unsigned kinds, bool marked) {
    int64_t position = 0;
    int r = weft__write_raw(out, loops->alloc, "[", 1);
    for (const weft_link *link = loops->running.next; kinds & WEFT_AIWG_RUNNING && r >= 0 && link != &loops->running;
         link = link->next)
        r = write_running_loop(loops, out, WEFT_CONTAINER(link, const aiwg_loop, link), marked);
    for (const weft_link *link = loops->queued.next; kinds & WEFT_AIWG_QUEUED && r >= 0 && link != &loops->queued;
         link = link->next)
        r = write_queued_loop(loops, out, WEFT_CONTAINER(link, const aiwg_loop, link), ++position, marked);
    for (size_t i = 0; kinds & WEFT_AIWG_FAILED && r >= 0 && i < loops->lost_count; i++)
        r = put_item(out, loops->alloc,
                     WEFT_OBJ({"loopId", weft_str(loops->lost[i])}, {"status", weft_str("permanently-failed")}));
    return r < 0 ? r : weft__write_raw(out, loops->alloc, "]", 1);
}

int weft__aiwg_loops_write_history(const weft_aiwg_loops *loops, weft_buf *out, int64_t limit) {
    int r = weft__write_raw(out, loops->alloc, "[", 1);
    for (size_t i = loops->history_count; r >= 0 && i > 0 && limit > 0; limit--) {
        const ended_loop *end = &loops->history[--i];
        char at[WEFT_STAMP];
        r = put_item(out, loops->alloc,
                     WEFT_OBJ({"loopId", weft_str(end->id)}, {"taskId", *end->task ? weft_str(end->task) : weft_none()},
                              {"outcome", weft_str(end->outcome)},
                              {"error", end->failed ? weft_str(end->error) : weft_none()},
                              {"reason", !end->failed     ? weft_none()
                                         : end->permanent ? weft_str("restart intensity exceeded")
                                                          : weft_null()},
                              {"completedAt", weft_str(weft__stamp(end->time_ms, at))}));
    }
    return r < 0 ? r : weft__write_raw(out, loops->alloc, "]", 1);
}

int weft__aiwg_loops_write_jobs(const weft_aiwg_loops *loops, weft_buf *out) {
    int r = weft__write_raw(out, loops->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < loops->job_count; i++) {
        const job_run *run = &loops->jobs[i];
        char at[WEFT_STAMP];
        r = put_item(out, loops->alloc,
                     WEFT_OBJ({"jobId", weft_str(run->job)}, {"action", weft_str(run->action)},
                              {"lastRun", weft_str(weft__stamp(run->last_ms, at))}, {"runCount", weft_uint(run->count)}));
    }
    return r < 0 ? r : weft__write_raw(out, loops->alloc, "]", 1);
}

int weft__aiwg_loops_write_circuit(weft_aiwg_loops *loops, weft_buf *out) {
    weft_aiwg_loops_state state;
    char at[WEFT_STAMP];
    weft__aiwg_loops_state(loops, &state);
    weft_val value =
        WEFT_OBJ({"state", weft_str(state.circuit)}, {"consecutiveFailures", weft_int(state.failures)},
                 {"lastFailureAt", state.last_failure_ms ? weft_str(weft__stamp(state.last_failure_ms, at)) : weft_null()},
                 {"cooldownRemainingMs", weft_int(state.cooldown_left_ms)});
    return weft__write_val(out, loops->alloc, &value);
}

/* Equal ones lie side by side. */
static int write_priorities(const weft_aiwg_loops *loops, weft_buf *out) {
    int r = weft__write_raw(out, loops->alloc, "{", 1);
    for (const weft_link *link = loops->queued.next; r >= 0 && link != &loops->queued;) {
        int64_t priority = WEFT_CONTAINER(link, const aiwg_loop, link)->priority, count = 0;
        char text[64];
        bool first = link == loops->queued.next;
        for (; link != &loops->queued && WEFT_CONTAINER(link, const aiwg_loop, link)->priority == priority;
             link = link->next)
            count++;
        int n = snprintf(text, sizeof text, "%s\"%lld\":%lld", first ? "" : ",", (long long) priority, (long long) count);
        r = weft__write_raw(out, loops->alloc, text, (size_t) n);
    }
    return r < 0 ? r : weft__write_raw(out, loops->alloc, "}", 1);
}

int weft__aiwg_loops_write_queue(const weft_aiwg_loops *loops, weft_buf *out) {
    weft_buf priorities = {0};
    int64_t oldest = 0;
    char at[WEFT_STAMP];
    for (const weft_link *link = loops->queued.next; link != &loops->queued; link = link->next) {
        int64_t since = WEFT_CONTAINER(link, const aiwg_loop, link)->since_ms;
        oldest = !oldest || since < oldest ? since : oldest;
    }
    int r = write_priorities(loops, &priorities);
    if (r >= 0) {
        weft_val value =
            WEFT_OBJ({"depth", weft_uint(loops->queued_count)}, {"maxDepth", weft_int(loops->opts.limits.max_queue)},
                     {"oldest", oldest ? weft_str(weft__stamp(oldest, at)) : weft_null()},
                     {"priorityDistribution", weft_raw(weft__buf_head(&priorities), weft__buf_len(&priorities))},
                     {"estimatedWaitMs", weft_null()});
        r = weft__write_val(out, loops->alloc, &value);
    }
    weft__buf_done(&priorities, loops->alloc);
    return r;
}

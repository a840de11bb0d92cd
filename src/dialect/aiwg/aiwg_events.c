/* What happens, in AIWG's words: event.task* notifications. They are made of the event alone, and of what of a task never
 * changes, so that who catches up is told the same. */
#include <errno.h>
#include <string.h>

#include "aiwg.h"
#include "hub_clients.h"
#include "reply.h"

static weft_val copy_or_null(const weft_json *data, const char *name) {
    weft_json value = weft_get(data, name);
    return weft_copy(&value);
}

static const weft_task *task_of(const weft_hub *hub, weft_rendering *rendering, const weft_json *data) {
    return weft__task_find(hub->engine, weft__render_text(rendering, data, "taskId", ""));
}

static void render_queued(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) event;
    weft__render_notify(rendering, NULL, "event.taskQueued",
                        WEFT_OBJ({"taskId", copy_or_null(data, "taskId")}, {"prompt", copy_or_null(data, "prompt")},
                                 {"agent", copy_or_null(data, "agent")}, {"priority", copy_or_null(data, "priority")},
                                 {"state", weft_str("queued")}));
}

/* It waits for its next attempt: queued once more. */
static void render_retrying(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    const weft_task *task = task_of(hub, rendering, data);
    (void) event;
    weft__render_notify(
        rendering, NULL, "event.taskQueued",
        WEFT_OBJ({"taskId", copy_or_null(data, "taskId")}, {"prompt", task ? weft_str(task->prompt) : weft_null()},
                 {"agent", task ? weft_str(task->agent) : weft_null()}, {"priority", weft_int(task ? task->priority : 0)},
                 {"state", weft_str("queued")}, {"attempt", copy_or_null(data, "attempt")},
                 {"retryAfterMs", copy_or_null(data, "delayMs")}, {"error", copy_or_null(data, "error")}));
}

static void render_started(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    const weft_task *task = task_of(hub, rendering, data);
    char time[WEFT_STAMP];
    weft__render_notify(rendering, NULL, "event.taskStarted",
                        WEFT_OBJ({"taskId", copy_or_null(data, "taskId")},
                                 {"agent", task ? weft_str(task->agent) : weft_null()},
                                 {"startedAt", weft_str(weft__stamp(event->time_ms, time))}));
}

static void render_output(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) event;
    weft__render_notify(rendering, NULL, "event.taskOutput",
                        WEFT_OBJ({"taskId", copy_or_null(data, "taskId")}, {"stream", copy_or_null(data, "stream")},
                                 {"output", copy_or_null(data, "text")}));
}

/* Of what an agent says only its message is output; the rest is for those who subscribe. */
static void render_update(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    weft_json update = weft_get(data, "update");
    weft_json text = weft_pointer(&update, "/content/text");
    (void) hub, (void) event;
    if (strcmp(weft__render_text(rendering, &update, "sessionUpdate", ""), "agent_message_chunk") != 0 ||
        weft_typeof(&text) != WEFT_STRING)
        return;
    weft__render_notify(
        rendering, NULL, "event.taskOutput",
        WEFT_OBJ({"taskId", copy_or_null(data, "taskId")}, {"stream", weft_str("stdout")}, {"output", weft_copy(&text)}));
}

static void render_missed(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) event;
    weft__render_notify(rendering, NULL, "event.taskOutput",
                        WEFT_OBJ({"taskId", copy_or_null(data, "taskId")}, {"stream", weft_str("stdout")},
                                 {"output", weft_str("")}, {"missing", weft_bool(true)}));
}

/* The event has the end of it, at most WEFT_TASK_TAIL bytes; task.get has all that is kept. */
static bool is_output_cut(weft_rendering *rendering, const weft_json *data) {
    weft_json output = weft_get(data, "output");
    weft_bytes text = {"", 0};
    int r = weft_bytes_of(&output, &text);
    if (r == -ENOMEM)
        weft__render_fail(rendering, r);
    if (r < 0)
        return true;
    return weft_get_bool(data, "outputTruncated", false) || weft_get_int(data, "outputBytes", 0) > (int64_t) text.len;
}

static void render_completed(const weft_hub *hub, weft_rendering *rendering, const weft_event *event,
                             const weft_json *data) {
    char time[WEFT_STAMP];
    (void) hub;
    weft__render_notify(rendering, NULL, "event.taskCompleted",
                        WEFT_OBJ({"taskId", copy_or_null(data, "taskId")}, {"result", copy_or_null(data, "output")},
                                 {"completedAt", weft_str(weft__stamp(event->time_ms, time))},
                                 {"resultTruncated", is_output_cut(rendering, data) ? weft_bool(true) : weft_none()},
                                 {"stopReason", weft__early_stop(weft__render_text(rendering, data, "stopReason", NULL))}));
}

static void render_failed(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) event;
    weft__render_notify(rendering, NULL, "event.taskFailed",
                        WEFT_OBJ({"taskId", copy_or_null(data, "taskId")}, {"error", copy_or_null(data, "error")},
                                 {"reason", copy_or_null(data, "reason")},
                                 {"stopReason", weft__early_stop(weft__render_text(rendering, data, "stopReason", NULL))}));
}

static void render_cancelled(const weft_hub *hub, weft_rendering *rendering, const weft_event *event,
                             const weft_json *data) {
    (void) hub, (void) event;
    weft__render_notify(rendering, NULL, "event.taskCancelled", WEFT_OBJ({"taskId", copy_or_null(data, "taskId")}));
}

static const struct {
    const char *type;
    void (*render)(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data);
} renderers[] = {
    {"session.output", render_output},    {"session.update", render_update},    {"task.queued", render_queued},
    {"task.started", render_started},     {"task.completed", render_completed}, {"task.failed", render_failed},
    {"task.cancelled", render_cancelled}, {"task.retrying", render_retrying},   {WEFT_MISSED, render_missed},
};

void weft__aiwg_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    for (size_t i = 0; i < sizeof renderers / sizeof renderers[0]; i++)
        if (strcmp(renderers[i].type, event->type) == 0) {
            renderers[i].render(hub, rendering, event, data);
            return;
        }
}

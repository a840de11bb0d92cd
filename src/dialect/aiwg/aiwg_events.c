/* What happens, in AIWG's words: event.task* notifications. They are made of the event alone, and of what of a task never
 * changes, so that who catches up is told the same. */
#include <string.h>

#include "aiwg.h"
#include "reply.h"

static weft_val copy(const weft_json *data, const char *name) {
    weft_json value = weft_get(data, name);
    return weft_copy(&value);
}

static const weft_task *task_of(const weft_hub *hub, const weft_json *data) {
    return weft__task_find(hub->engine, weft_get_str(data, "taskId", ""));
}

static void queued(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) event;
    weft__render_notify(rendering, NULL, "event.taskQueued",
                        WEFT_OBJ({"taskId", copy(data, "taskId")}, {"prompt", copy(data, "prompt")},
                                 {"agent", copy(data, "agent")}, {"priority", copy(data, "priority")},
                                 {"state", weft_str("queued")}));
}

/* It waits for its next attempt: queued once more. */
static void retrying(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    const weft_task *task = task_of(hub, data);
    (void) event;
    weft__render_notify(rendering, NULL, "event.taskQueued",
                        WEFT_OBJ({"taskId", copy(data, "taskId")}, {"prompt", task ? weft_str(task->prompt) : weft_null()},
                                 {"agent", task ? weft_str(task->agent) : weft_null()},
                                 {"priority", weft_int(task ? task->priority : 0)}, {"state", weft_str("queued")},
                                 {"attempt", copy(data, "attempt")}, {"retryAfterMs", copy(data, "delayMs")},
                                 {"error", copy(data, "error")}));
}

static void started(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    const weft_task *task = task_of(hub, data);
    char time[WEFT_STAMP];
    weft__render_notify(rendering, NULL, "event.taskStarted",
                        WEFT_OBJ({"taskId", copy(data, "taskId")}, {"agent", task ? weft_str(task->agent) : weft_null()},
                                 {"startedAt", weft_str(weft__stamp(event->time_ms, time))}));
}

static void output(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) event;
    weft__render_notify(
        rendering, NULL, "event.taskOutput",
        WEFT_OBJ({"taskId", copy(data, "taskId")}, {"stream", copy(data, "stream")}, {"output", copy(data, "text")}));
}

/* Of what an agent says only its message is output; the rest is for those who subscribe. */
static void update(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    weft_json update = weft_get(data, "update");
    weft_json text = weft_pointer(&update, "/content/text");
    (void) hub, (void) event;
    if (strcmp(weft_get_str(&update, "sessionUpdate", ""), "agent_message_chunk") != 0 || weft_typeof(&text) != WEFT_STRING)
        return;
    weft__render_notify(
        rendering, NULL, "event.taskOutput",
        WEFT_OBJ({"taskId", copy(data, "taskId")}, {"stream", weft_str("stdout")}, {"output", weft_copy(&text)}));
}

/* The event has the end of it, at most WEFT_TASK_TAIL bytes; task.get has all that is kept. */
static bool is_cut(const weft_json *data) {
    weft_json output = weft_get(data, "output");
    weft_bytes text = {"", 0};
    if (weft_text(&output, &text) < 0)
        return true;
    return weft_get_bool(data, "outputTruncated", false) || weft_get_int(data, "outputBytes", 0) > (int64_t) text.len;
}

static void completed(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    char time[WEFT_STAMP];
    (void) hub;
    weft__render_notify(rendering, NULL, "event.taskCompleted",
                        WEFT_OBJ({"taskId", copy(data, "taskId")}, {"result", copy(data, "output")},
                                 {"completedAt", weft_str(weft__stamp(event->time_ms, time))},
                                 {"resultTruncated", is_cut(data) ? weft_bool(true) : weft_none()},
                                 {"stopReason", weft__early_stop(weft_get_str(data, "stopReason", NULL))}));
}

static void failed(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) event;
    weft__render_notify(rendering, NULL, "event.taskFailed",
                        WEFT_OBJ({"taskId", copy(data, "taskId")}, {"error", copy(data, "error")},
                                 {"reason", copy(data, "reason")},
                                 {"stopReason", weft__early_stop(weft_get_str(data, "stopReason", NULL))}));
}

static void cancelled(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) event;
    weft__render_notify(rendering, NULL, "event.taskCancelled", WEFT_OBJ({"taskId", copy(data, "taskId")}));
}

static const struct {
    const char *type;
    void (*render)(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data);
} renderers[] = {
    {"session.output", output},    {"session.update", update}, {"task.queued", queued},       {"task.started", started},
    {"task.completed", completed}, {"task.failed", failed},    {"task.cancelled", cancelled}, {"task.retrying", retrying},
};

void weft__aiwg_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    for (size_t i = 0; i < sizeof renderers / sizeof renderers[0]; i++)
        if (strcmp(renderers[i].type, event->type) == 0) {
            renderers[i].render(hub, rendering, event, data);
            return;
        }
}

/* The stream "taskOutput": what a task's agent says, from the beginning of what is kept, and how the task ends. */
#include <string.h>

#include "tinyvex_stream.h"

static const weft_param params[] = {
    {"taskId", WEFT_PARAM_str, 0, WEFT_REQUIRED, "which task"},
    {0},
};

static weft_event_source *output_source(const weft_json *of, const weft_alloc *alloc) {
    static const char *const types[] = {"session.output", "session.update", "task.retrying",
                                        "task.completed", "task.failed",    "task.cancelled"};
    const char *task;
    if (weft__stream_param(of, "taskId", &task) < 0)
        return NULL;
    return weft__source_new(
        &(weft_subscription_spec){.types = types, .type_count = sizeof types / sizeof types[0], .task = task}, alloc);
}

static int write_piece(weft_buf *out, const weft_alloc *alloc, weft_val value) {
    int r = weft__write_val(out, alloc, &value);
    return r < 0 ? r : 1;
}

/* Of what an agent says its message is output; the rest is in sessionUpdates. */
static int show_update(const weft_json *data, weft_val task, weft_buf *out, const weft_alloc *alloc) {
    weft_json update = weft_get(data, "update"), text = weft_pointer(&update, "/content/text");
    weft_json kind = weft_get(&update, "sessionUpdate");
    if (!weft__json_is(&kind, "agent_message_chunk") || weft_typeof(&text) != WEFT_STRING)
        return 0;
    return write_piece(out, alloc, WEFT_OBJ({"taskId", task}, {"stream", weft_str("stdout")}, {"text", weft_copy(&text)}));
}

static int show_output(const weft_hub *hub, const weft_json *of, const weft_event *event, const weft_json *data,
                       weft_buf *out) {
    weft_json task = weft_get(of, "taskId"), text = weft_get(data, "text"), stream = weft_get(data, "stream");
    const char *type = event->type;
    if (strcmp(type, "session.update") == 0)
        return show_update(data, weft_copy(&task), out, hub->alloc);
    if (strcmp(type, "session.output") == 0)
        return write_piece(
            out, hub->alloc,
            WEFT_OBJ({"taskId", weft_copy(&task)}, {"stream", weft_copy(&stream)}, {"text", weft_copy(&text)}));
    const char *state = strcmp(type, "task.retrying") == 0 ? "queued" : type + strlen("task.");
    return write_piece(out, hub->alloc, WEFT_OBJ({"taskId", weft_copy(&task)}, {"state", weft_str(state)}));
}

const weft_stream_kind weft__stream_output = {.name = "taskOutput",
                                              .help = "what a task says, from the beginning, and how it ends",
                                              .params = params,
                                              .class = WEFT_CLASS_LOG,
                                              .whole = true,
                                              .source = output_source,
                                              .show = show_output};

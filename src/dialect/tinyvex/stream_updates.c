/* The stream "sessionUpdates": what happens in a session, as the params of ACP's session/update. Each value follows from its
 * event alone, so that it is the same whenever it is read: a prompt stands where it was queued. The last value of a session
 * that is deleted says so. Who began with the older form of ACP gets them in that. */
#include <string.h>

#include "acp.h"
#include "tinyvex_stream.h"

static const weft_param params[] = {
    {"sessionId", WEFT_PARAM_str, 0, WEFT_REQUIRED, "which session"},
    {0},
};

static weft_event_source *updates_source(const weft_json *of, const weft_alloc *alloc) {
    static const char *const types[] = {"session.output", "session.update", "session.state", "session.deleted",
                                        "task.queued"};
    const char *session;
    if (weft__stream_param(of, "sessionId", &session) < 0)
        return NULL;
    return weft__source_new(
        &(weft_subscription_spec){.types = types, .type_count = sizeof types / sizeof types[0], .session = session}, alloc);
}

struct shown {
    const weft_hub *hub;
    weft_json session, task;
    weft_buf *out;
    bool old;
};

static const char *session_name(const struct shown *to) {
    return to->old ? "session_id" : "sessionId";
}

static int write_item(const struct shown *to, weft_val update) {
    weft_val meta = to->task.text ? WEFT_OBJ({"weft/taskId", weft_copy(&to->task)}) : weft_none();
    weft_val value = WEFT_OBJ({session_name(to), weft_copy(&to->session)}, {"update", update}, {"_meta", meta});
    int r = weft__write_val(to->out, to->hub->alloc, &value);
    return r < 0 ? r : 1;
}

static int write_update(const struct shown *to, weft_val update) {
    weft_buf text = {0};
    if (!to->old)
        return write_item(to, update);
    int r = weft__acp_put_old(to->hub->alloc, weft__acp_old_update, update, &text);
    if (r >= 0)
        r = write_item(to, weft_raw(weft__buf_head(&text), weft__buf_len(&text)));
    weft__buf_done(&text, to->hub->alloc);
    return r;
}

/* What an agent says in the older form itself stays as it is. */
static int show_said(const struct shown *to, const weft_json *update) {
    return weft__acp_is_old_update(update) ? write_item(to, weft_copy(update)) : write_update(to, weft_copy(update));
}

static int write_text(const struct shown *to, const char *kind, const weft_json *text) {
    if (weft_typeof(text) != WEFT_STRING)
        return 0;
    return write_update(to, WEFT_OBJ({"sessionUpdate", weft_str(kind)},
                                     {"content", WEFT_OBJ({"type", weft_str("text")}, {"text", weft_copy(text)})}));
}

static int show_state(const struct shown *to, const weft_json *data) {
    weft_json name = weft_get(data, "name"), value = weft_get(data, "value");
    const char *text;
    int r = weft__field_text(&name, &text);
    const acp_state *state = r >= 0 && text ? weft__acp_state(text) : NULL;
    if (r < 0 || !state)
        return r;
    return write_update(to, WEFT_OBJ({"sessionUpdate", weft_str(state->kind)}, {state->member, weft_copy(&value)}));
}

/* Nothing follows. */
static int show_deleted(const struct shown *to) {
    weft_val value = WEFT_OBJ({session_name(to), weft_copy(&to->session)}, {"deleted", weft_bool(true)});
    int r = weft__write_val(to->out, to->hub->alloc, &value);
    return r < 0 ? r : 1;
}

static int show_session_update(const weft_hub *hub, const weft_json *of, const weft_event *event, const weft_json *data,
                               weft_buf *out) {
    struct shown to = {hub, weft_get(of, "sessionId"), weft_get(data, "taskId"), out, weft_get(of, "form").text != NULL};
    weft_json update = weft_get(data, "update"), text = weft_get(data, "text"), prompt = weft_get(data, "prompt");
    weft_json stream = weft_get(data, "stream");
    if (strcmp(event->type, "session.update") == 0)
        return update.text ? show_said(&to, &update) : 0;
    if (strcmp(event->type, "session.output") == 0)
        return write_text(&to, weft__json_is(&stream, "stderr") ? "agent_thought_chunk" : "agent_message_chunk", &text);
    if (strcmp(event->type, "task.queued") == 0)
        return write_text(&to, "user_message_chunk", &prompt);
    return strcmp(event->type, "session.deleted") == 0 ? show_deleted(&to) : show_state(&to, data);
}

const weft_stream_kind weft__stream_updates = {.name = "sessionUpdates",
                                               .help = "what happens in a session, as ACP has it, from the beginning",
                                               .params = params,
                                               .class = WEFT_CLASS_LOG,
                                               .whole = true,
                                               .acp = true,
                                               .source = updates_source,
                                               .show = show_session_update};

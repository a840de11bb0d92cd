/* What happens, in cdev's words: claude_log for those who watch the session, claude_status for everybody. */
#include <string.h>

#include "cdev.h"
#include "reply.h"

static weft_val copy(const weft_json *data, const char *name) {
    weft_json value = weft_get(data, name);
    return value.text ? weft_copy(&value) : weft_none();
}

/* In the seed's words, or as cdev's server names them: docs/decisions/0046-subscriptions.md. */
const char *const weft__cdev_variants[] = {"plain", "event", NULL};

static const char *name_for(const weft_rendering *rendering, const char *plain, const char *event) {
    return weft__render_variant(rendering) ? event : plain;
}

/* ---- logs ---- */

/* Notifications of one event. A notification of an empty line is 180 bytes, so 64 KiB of line ends would be more than a
 * connection may have in its queue: of so many lines several go into one. */
#define MOST_LINES 4096

struct log {
    const weft_hub *hub;
    weft_rendering *rendering;
    const char *session, *agent;
    const char *stream;
    const char *time;
};

static void tell_line(const struct log *log, weft_val line, weft_val parsed) {
    weft__render_notify(log->rendering, log->session, name_for(log->rendering, "claude_log", "event/claude_log"),
                        WEFT_OBJ({"line", line}, {"stream", weft_str(log->stream)}, {"parsed", parsed},
                                 {"session_id", weft_str(log->session)}, {"agent_type", weft_str_or_none(log->agent)},
                                 {"timestamp", weft_str(log->time)}));
}

/* A line that is an object or an array is shown as what it is, too. */
static void log_line(const struct log *log, const char *line, size_t len) {
    weft_doc *doc = NULL;
    if (len && (*line == '{' || *line == '['))
        if (weft_doc_parse(line, len, log->hub->alloc, &doc) < 0)
            doc = NULL;
    tell_line(log, weft_strn(line, len), doc ? weft_copy(weft_doc_root(doc)) : weft_none());
    weft_doc_free(doc);
}

/* Where the n-th line from here ends, its line end not included. */
static const char *end_of(const char *from, const char *end, size_t n) {
    const char *at = from;
    for (; (at = memchr(at, '\n', (size_t) (end - at))); at++)
        if (--n == 0)
            return at;
    return end;
}

static size_t count_lines(weft_bytes text) {
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '\n';
    return count;
}

static void log_text(const struct log *log, const weft_json *value) {
    weft_bytes text;
    if (weft_text(value, &text) < 0)
        return;
    size_t at_once = 1 + count_lines(text) / MOST_LINES;
    for (const char *line = text.data, *end = text.data + text.len; line < end;) {
        const char *stop = end_of(line, end, at_once);
        size_t len = (size_t) (stop - line);
        log_line(log, line, len && line[len - 1] == '\r' ? len - 1 : len);
        line = stop + 1;
    }
}

/* What an agent writes is lines; whatever else it does is said as the update itself. */
static void log_update(const struct log *log, const weft_json *update) {
    weft_json text = weft_pointer(update, "/content/text");
    if (strcmp(weft_get_str(update, "sessionUpdate", ""), "agent_message_chunk") == 0 && weft_typeof(&text) == WEFT_STRING)
        log_text(log, &text);
    else if (update->text)
        tell_line(log, weft_strn(update->text, update->len), weft_copy(update));
}

static void tell_log(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    const char *session = weft_get_str(data, "sessionId", "");
    char time[WEFT_STAMP];
    if (!weft__render_wanted(rendering, session))
        return;
    const weft_session *known_session = weft__session_find(hub->engine, session);
    weft_json text = weft_get(data, "text"), update = weft_get(data, "update");
    struct log log = {.hub = hub,
                      .rendering = rendering,
                      .session = session,
                      .agent = known_session ? known_session->agent : NULL,
                      .stream = strcmp(weft_get_str(data, "stream", ""), "stderr") == 0 ? "stderr" : "stdout",
                      .time = weft__stamp(event->time_ms, time)};
    if (strcmp(event->type, "session.output") == 0)
        log_text(&log, &text);
    else
        log_update(&log, &update);
}

/* ---- status ---- */

/* A state for each event that changes it. */
static const struct {
    const char *type, *state;
} states[] = {
    {"task.started", "starting"}, {"task.process", "running"}, {"task.retrying", "starting"},
    {"task.completed", "idle"},   {"task.failed", "idle"},     {"task.cancelled", "idle"},
};

static void tell_status(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data,
                        const char *state) {
    const weft_task *task = weft__task_find(hub->engine, weft_get_str(data, "taskId", ""));
    char time[WEFT_STAMP], started[WEFT_STAMP];
    bool runs = strcmp(state, "running") == 0;
    weft__render_notify(
        rendering, NULL, name_for(rendering, "claude_status", "event/claude_status"),
        WEFT_OBJ({"state", weft_str(state)}, {"prompt", task ? weft_str(task->prompt) : weft_none()},
                 {"pid", copy(data, "pid")},
                 {"started_at",
                  runs && task && task->started_ms ? weft_str(weft__stamp(task->started_ms, started)) : weft_none()},
                 {"error", copy(data, "error")}, {"exit_code", copy(data, "exitCode")},
                 {"stop_reason", weft__early_stop(weft_get_str(data, "stopReason", NULL))},
                 {"session_id", weft_str_or_none(task ? task->session : NULL)},
                 {"agent_type", weft_str_or_none(task ? task->runs_on : NULL)},
                 {"timestamp", weft_str(weft__stamp(event->time_ms, time))}));
}

void weft__cdev_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    if (strcmp(event->type, "session.output") == 0 || strcmp(event->type, "session.update") == 0) {
        tell_log(hub, rendering, event, data);
        return;
    }
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (strcmp(states[i].type, event->type) == 0) {
            tell_status(hub, rendering, event, data, states[i].state);
            return;
        }
}

/* What happens, in cdev's words: a row for each type of event that it has a word for. Logs and errors are for those who
 * watch the session, everything else is for every cdev connection. */
#include <string.h>

#include "cdev.h"
#include "reply.h"

/* In the words of cdev's plan, as its server names them, or as the events of the protocol before JSON-RPC:
 * docs/decisions/0065-cdev-whole.md. */
const char *const weft__cdev_variants[] = {"plain", "event", "old", NULL};

const char *const weft__cdev_notifications[] = {
    "claude_log",
    "claude_status",
    "claude_waiting",
    "claude_permission",
    "claude_permission_resolved",
    "claude_session_info",
    "file_changed",
    "git_diff",
    "git_status_changed",
    "session_start",
    "session_end",
    "error",
    "heartbeat",
    NULL,
};

/* ---- saying it ---- */

static bool has_member(const weft_member *members, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(members[i].name, name) == 0)
            return true;
    return false;
}

#define MOST_NAME 64

static void tell_named(const cdev_note *note, const char *name, weft_val payload, const char *time) {
    char prefixed[MOST_NAME] = "event/";
    switch (weft__render_variant(note->rendering)) {
    case CDEV_OLD:
        /* There was one session, and everybody heard of it. */
        weft__render_message(note->rendering, NULL,
                             WEFT_OBJ({"event", weft_str(name)}, {"timestamp", weft_str(time)}, {"payload", payload}));
        break;
    case CDEV_EVENT:
        strncat(prefixed, name, sizeof prefixed - strlen(prefixed) - 1);
        weft__render_notify(note->rendering, note->only, prefixed, payload);
        break;
    default:
        weft__render_notify(note->rendering, note->only, name, payload);
    }
}

void weft__cdev_tell(const cdev_note *note, const char *name, const weft_member *payload, size_t count) {
    char time[WEFT_STAMP], workspace[CDEV_WORKSPACE];
    weft_member all[CDEV_PAYLOAD + 5];
    bool named = has_member(payload, count, "session_id");
    memcpy(all, payload, count * sizeof *all);
    all[count++] = (weft_member){"workspace_id", weft_str(weft__cdev_workspace(note->hub, workspace))};
    all[count++] = (weft_member){"session_id", named ? weft_none() : weft_str_or_none(note->session)};
    all[count++] = (weft_member){"agent_type", weft_str_or_none(note->agent)};
    all[count++] = (weft_member){"timestamp", weft_str(weft__stamp(note->time_ms, time))};
    all[count++] = (weft_member){"seq", note->seq ? weft_uint(note->seq) : weft_none()};
    tell_named(note, name, weft_obj(all, count), time);
}

static weft_val copy_member_or_none(const weft_json *data, const char *name) {
    weft_json value = weft_get(data, name);
    return value.text ? weft_copy(&value) : weft_none();
}

/* ---- status ---- */

static void tell_status(const cdev_note *note, const weft_json *data, const char *state) {
    const weft_task *task = weft__task_find(note->hub->engine, weft__render_text(note->rendering, data, "taskId", ""));
    char started[WEFT_STAMP];
    bool runs = strcmp(state, "running") == 0;
    cdev_note own = *note;
    own.session = task ? task->session : weft__render_text(note->rendering, data, "sessionId", NULL);
    own.agent = task ? task->runs_on : NULL;
    CDEV_TELL(
        &own, "claude_status", {"state", weft_str(state)}, {"prompt", task ? weft_str(task->prompt) : weft_none()},
        {"pid", copy_member_or_none(data, "pid")},
        {"started_at", runs && task && task->started_ms ? weft_str(weft__stamp(task->started_ms, started)) : weft_none()},
        {"error", copy_member_or_none(data, "error")}, {"exit_code", copy_member_or_none(data, "exitCode")},
        {"stop_reason", weft__early_stop(weft__render_text(note->rendering, data, "stopReason", NULL))});
}

static void tell_starting(const cdev_note *note, const weft_event *event, const weft_json *data) {
    (void) event;
    tell_status(note, data, "starting");
}

static void tell_running(const cdev_note *note, const weft_event *event, const weft_json *data) {
    (void) event;
    tell_status(note, data, "running");
}

static void tell_idle(const cdev_note *note, const weft_event *event, const weft_json *data) {
    (void) event;
    tell_status(note, data, "idle");
}

/* Who watches the session is also told in the word for errors. */
static void tell_failed(const cdev_note *note, const weft_event *event, const weft_json *data) {
    const weft_task *task = weft__task_find(note->hub->engine, weft__render_text(note->rendering, data, "taskId", ""));
    cdev_note own = *note;
    own.only = own.session = task ? task->session : weft__render_text(note->rendering, data, "sessionId", "");
    own.agent = task ? task->runs_on : NULL;
    tell_idle(note, event, data);
    CDEV_TELL(&own, "error", {"code", weft_str("CLAUDE_ERROR")},
              {"message", weft_str(weft__render_text(note->rendering, data, "error", ""))},
              {"details", WEFT_OBJ({"reason", copy_member_or_none(data, "reason")},
                                   {"exit_code", copy_member_or_none(data, "exitCode")})});
}

static void tell_missed(const cdev_note *note, const weft_event *event, const weft_json *data) {
    cdev_note own = *note;
    (void) event;
    own.only = own.session = weft__render_text(note->rendering, data, "sessionId", "");
    CDEV_TELL(
        &own, "error", {"code", weft_str("OUTPUT_MISSED")},
        {"message", weft_str("Part of what was said is missing here: this client read too slowly, and it is not kept any "
                             "more")},
        {"details", WEFT_OBJ({"reason", weft_str("trimmed")})});
}

/* ---- sessions ---- */

static void tell_session_start(const cdev_note *note, const weft_json *data, const char *agent) {
    cdev_note own = *note;
    own.agent = agent;
    CDEV_TELL(&own, "session_start", {"session_id", copy_member_or_none(data, "sessionId")},
              {"repo_path", weft_str(weft__engine_folder(note->hub->engine))},
              {"repo_name", weft_str(weft__cdev_repo_name(note->hub))},
              {"agent_version", weft_str(note->hub->host->version)});
}

/* One that was made by itself has a number of its own. One that came with a task, perhaps only to wait, begins when that
 * does. */
static void tell_created(const cdev_note *note, const weft_event *event, const weft_json *data) {
    (void) event;
    if (weft_get(data, "number").text)
        tell_session_start(note, data, weft__render_text(note->rendering, data, "agent", NULL));
}

/* A session and the task that it came with have the same number. */
static bool is_first_of_session(const char *task, const char *session) {
    const char *task_number = strrchr(task, '-'), *session_number = strrchr(session, '-');
    return task_number && session_number && strcmp(task_number, session_number) == 0;
}

static void tell_started(const cdev_note *note, const weft_event *event, const weft_json *data) {
    const char *id = weft__render_text(note->rendering, data, "taskId", "");
    const weft_task *task = weft__task_find(note->hub->engine, id);
    (void) event;
    if (weft_get_int(data, "attempt", 1) == 1 &&
        is_first_of_session(id, weft__render_text(note->rendering, data, "sessionId", "")))
        tell_session_start(note, data, task ? task->runs_on : NULL);
    tell_status(note, data, "starting");
}

static void tell_session_info(const cdev_note *note, const weft_event *event, const weft_json *data) {
    (void) event;
    CDEV_TELL(note, "claude_session_info", {"session_id", copy_member_or_none(data, "sessionId")},
              {"agent_session_id", copy_member_or_none(data, "agentSessionId")});
}

static void tell_session_end(const cdev_note *note, const weft_event *event, const weft_json *data) {
    CDEV_TELL(note, "session_end", {"session_id", copy_member_or_none(data, "sessionId")},
              {"reason", weft_str(strcmp(event->type, "session.deleted") == 0 ? "deleted" : "closed")});
}

/* ---- questions ---- */

/* The original has its input as a text. */
static void tell_question(const cdev_note *note, const weft_event *event, const weft_json *data) {
    bool permission =
        strcmp(weft__render_text(note->rendering, data, "kind", ""), "permission") == 0 || weft_get(data, "ruleId").text;
    weft_json input = weft_pointer(data, "/detail/rawInput"), kind = weft_pointer(data, "/detail/kind"),
              call = weft_pointer(data, "/detail/toolCallId"), detail = weft_get(data, "detail");
    cdev_note own = *note;
    (void) event;
    input = input.text ? input : detail;
    own.session = weft__render_text(note->rendering, data, "sessionId", NULL);
    CDEV_TELL(
        &own, permission ? "claude_permission" : "claude_waiting", {"tool_use_id", copy_member_or_none(data, "questionId")},
        {"tool_name", kind.text ? weft_copy(&kind) : copy_member_or_none(data, "kind")},
        {"input", input.text ? weft_strn(input.text, input.len) : weft_str("")},
        {"description", copy_member_or_none(data, "title")}, {"tool_call_id", call.text ? weft_copy(&call) : weft_none()},
        {"options", copy_member_or_none(data, "options")});
}

/* The rest are told: somebody has answered, or nobody needs to any more. */
static void tell_resolved(const cdev_note *note, const weft_event *event, const weft_json *data) {
    cdev_note own = *note;
    own.session = weft__render_text(note->rendering, data, "sessionId", NULL);
    weft_json name = weft_get(data, "name");
    CDEV_TELL(&own, "claude_permission_resolved", {"tool_use_id", copy_member_or_none(data, "questionId")},
              {"state", weft_str(strchr(event->type, '.') + 1)},
              {"response", name.text ? weft_copy(&name) : copy_member_or_none(data, "option")},
              {"answered_by", copy_member_or_none(data, "by")}, {"reason", copy_member_or_none(data, "reason")});
}

/* ---- the table ---- */

static const struct {
    const char *type;
    void (*tell)(const cdev_note *note, const weft_event *event, const weft_json *data);
} words[] = {
    {"session.output", weft__cdev_tell_log},
    {"session.update", weft__cdev_tell_log},
    {"task.started", tell_started},
    {"task.process", tell_running},
    {"task.retrying", tell_starting},
    {"task.completed", tell_idle},
    {"task.failed", tell_failed},
    {"task.cancelled", tell_idle},
    {"session.created", tell_created},
    {"session.agent", tell_session_info},
    {"session.closed", tell_session_end},
    {"session.deleted", tell_session_end},
    {WEFT_MISSED, tell_missed},
    {"question.asked", tell_question},
    {"question.answered", tell_resolved},
    {"question.expired", tell_resolved},
    {"question.withdrawn", tell_resolved},
};

void weft__cdev_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    cdev_note note = {.hub = hub, .rendering = rendering, .time_ms = event->time_ms, .seq = event->gseq};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (*words[i].type == *event->type && strcmp(words[i].type, event->type) == 0) {
            words[i].tell(&note, event, data);
            return;
        }
}

/* Who hears nothing for 45 seconds believes that the connection is gone. */
void weft__cdev_beat(const weft_hub *hub, weft_rendering *rendering) {
    int64_t now = weft__engine_now(hub->engine);
    char time[WEFT_STAMP];
    cdev_note note = {.hub = hub, .rendering = rendering, .time_ms = now};
    CDEV_TELL(&note, "heartbeat", {"server_time", weft_str(weft__stamp(now, time))},
              {"sequence", weft_uint(weft__render_beat(rendering))}, {"claude_status", weft_str(weft__cdev_state(hub))},
              {"uptime_seconds", weft_int(hub->host->uptime_s(hub->host->ctx))});
}

/* See event_text.h. What each type says is a row; what an agent says of itself (session.update) has rows of its own, by the
 * kind of update. A type without a row has no words, and is shown as it is. */
#include "event_text.h"

#include <string.h>

#include "stop_reason.h"
#include "text_width.h"

typedef struct event_row {
    const char *type;
    const char *who;  /* the member that names whom it is about; NULL: nobody */
    const char *what; /* for people */
    const char *more; /* JSON Pointers to what else matters, a blank between; the first that is there counts; NULL: none */
    const char *ink;
} event_row;

static const event_row event_rows[] = {
    {"hub.started", NULL, "the hub started", "/version", WEFT_INK_BOLD},
    {"hub.stopped", NULL, "the hub stopped", NULL, WEFT_INK_BOLD},
    {"hub.recovered", NULL, "the hub can store again", "/error", WEFT_INK_WARN},
    {"task.queued", "taskId", "queued", "/prompt", WEFT_INK_BOLD},
    {"task.started", "taskId", "started", NULL, WEFT_INK_BOLD},
    {"task.process", "taskId", "has process", "/pid", WEFT_INK_DIM},
    {"task.snapshot", "taskId", "began with a snapshot", "/why", WEFT_INK_DIM},
    {"task.changed", "taskId", "changed files", "/files", WEFT_INK_DIM},
    {"task.undone", "taskId", "undone", NULL, WEFT_INK_BOLD},
    {"task.retrying", "taskId", "tries again", "/error", WEFT_INK_WARN},
    {"task.completed", "taskId", "completed", NULL, WEFT_INK_BOLD},
    {"task.failed", "taskId", "failed", "/error /reason", WEFT_INK_BAD},
    {"task.cancelled", "taskId", "cancelled", "/by", WEFT_INK_BOLD},
    {"worktree.made", "taskId", "works on a branch", "/branch", WEFT_INK_DIM},
    {"session.created", "sessionId", "created", "/agent", NULL},
    {"session.opened", "sessionId", "opened", NULL, WEFT_INK_DIM},
    {"session.agent", "sessionId", "has the agent's own id", "/agentSessionId", WEFT_INK_DIM},
    {"session.state", "sessionId", "has", "/name", WEFT_INK_DIM},
    {"session.set", "sessionId", "set", "/name", NULL},
    {"session.closed", "sessionId", "closed", NULL, NULL},
    {"session.resumed", "sessionId", "resumed", NULL, NULL},
    {"session.deleted", "sessionId", "deleted", NULL, NULL},
    {"session.output", "taskId", "says", "/text", NULL},
    {"session.usage", "taskId", "used tokens", "/usage/tokens/totalTokens", WEFT_INK_DIM},
    {"question.asked", "questionId", "asked", "/title", WEFT_INK_WARN},
    {"question.answered", "questionId", "answered", "/name /option", WEFT_INK_WARN},
    {"question.expired", "questionId", "expired", NULL, WEFT_INK_WARN},
    {"question.withdrawn", "questionId", "withdrawn", "/reason", WEFT_INK_WARN},
    {"question.orphaned", "questionId", "waits for its agent", NULL, WEFT_INK_WARN},
    {"question.adopted", "questionId", "is asked again", NULL, WEFT_INK_WARN},
    {"approval.given", "approvalId", "given", "/title /toolKind", WEFT_INK_WARN},
    {"approval.revoked", "approvalId", "revoked", "/by", WEFT_INK_WARN},
    {"agent.chosen", NULL, "the default agent is now", "/agent", NULL},
    {"automation.switched", "ruleId", "rules switched", NULL, NULL},
    {"rule.fired", "ruleId", "fired", "/status", NULL},
    {"notice", NULL, "notice", "/message", WEFT_INK_WARN},
    {"file.create", NULL, "created", "/path", WEFT_INK_DIM},
    {"file.modify", NULL, "modified", "/path", WEFT_INK_DIM},
    {"file.delete", NULL, "deleted", "/path", WEFT_INK_DIM},
    {"cron.fired", "job", "fired", "/schedule", NULL},
    {"plan.created", "planId", "created", "/request", WEFT_INK_BOLD},
    {"plan.started", "planId", "started", NULL, WEFT_INK_BOLD},
    {"plan.task", "id", "step", "/state", NULL},
    {"plan.stopping", "planId", "stopping", "/reason", WEFT_INK_WARN},
    {"plan.finished", "planId", "finished", "/state", WEFT_INK_BOLD},
    {"plan.forgotten", "planId", "steps forgotten", NULL, NULL},
    {"plan.removed", "planId", "removed", NULL, NULL},
    {"gated.created", "gatedId", "created", NULL, WEFT_INK_BOLD},
    {"gated.iteration", "gatedId", "iteration", "/iteration", NULL},
    {"gated.gate", "gatedId", "gate", "/gate", NULL},
    {"gated.stopping", "gatedId", "stopping", NULL, WEFT_INK_WARN},
    {"gated.removed", "gatedId", "removed", NULL, NULL},
    {"gated.finished", "gatedId", "finished", "/state", WEFT_INK_BOLD},
    {"gated.seen", "gatedId", "seen", NULL, NULL},
    {"build.started", "buildId", "started", "/kind", WEFT_INK_BOLD},
    {"build.progress", "buildId", "running", "/line", NULL},
    {"build.warning", "buildId", "warning", "/diagnostic/message", WEFT_INK_WARN},
    {"build.finished", "buildId", "finished", "/kind", WEFT_INK_BOLD},
    {"preview.console", NULL, "console", "/message", NULL},
    {"preview.error", NULL, "page error", "/message", WEFT_INK_WARN},
    {"preview.state", NULL, "page is at", "/url", NULL},
    {"preview.navigate", NULL, "navigate", "/url", NULL},
    {"preview.refresh", NULL, "refresh", NULL, NULL},
    {0},
};

static const event_row update_rows[] = {
    {"agent_message_chunk", "taskId", "says", "/update/content/text", NULL},
    {"agent_thought_chunk", "taskId", "thinks", "/update/content/text", WEFT_INK_DIM},
    {"user_message_chunk", "taskId", "was told", "/update/content/text", NULL},
    {"tool_call", "taskId", "uses a tool", "/update/title /update/toolCallId", NULL},
    {"tool_call_update", "taskId", "tool", "/update/status", WEFT_INK_DIM},
    {"plan", "taskId", "has a plan", NULL, WEFT_INK_DIM},
    {"usage_update", "taskId", "used tokens", "/update/used", WEFT_INK_DIM},
    {0},
};

static const event_row *find_row(const event_row *rows, const char *type) {
    for (; rows->type; rows++)
        if (strcmp(rows->type, type) == 0)
            return rows;
    return NULL;
}

/* A string as it is, anything else as JSON; in one line. */
static void copy_value(char *ret, size_t size, const weft_json *value) {
    weft_bytes text = {value->text, value->len}, decoded;
    if (weft_bytes_of(value, &decoded) >= 0)
        text = decoded;
    size_t n = text.len < size ? text.len : size - 1;
    memcpy(ret, text.data, n);
    ret[n] = '\0';
    for (char *c = ret; *c; c++)
        if (*c == '\n' || *c == '\r' || *c == '\t')
            *c = ' ';
}

static void copy_more(const event_row *row, const weft_json *data, weft_event_words *ret) {
    for (const char *at = row->more; at && *at;) {
        char pointer[64];
        size_t len = strcspn(at, " ");
        snprintf(pointer, sizeof pointer, "%.*s", (int) len, at);
        weft_json value = weft_pointer(data, pointer);
        if (value.text && weft_typeof(&value) != WEFT_NULL) {
            copy_value(ret->more, sizeof ret->more, &value);
            return;
        }
        at += len + (at[len] == ' ');
    }
}

/* Why an agent stopped says more than that it did. */
static void copy_stop_reason(const weft_json *data, weft_event_words *ret) {
    const char *why = weft__stop_reason_text(weft_get_str(data, "stopReason", NULL));
    if (why && !*ret->more)
        snprintf(ret->more, sizeof ret->more, "%s", why);
}

void weft__event_words(const weft_json *event, weft_event_words *ret) {
    weft_json data = weft_get(event, "data"), kind = weft_pointer(&data, "/update/sessionUpdate");
    const char *type = weft_get_str(event, "type", "");
    bool update = strcmp(type, "session.update") == 0;
    const event_row *row = find_row(update ? update_rows : event_rows, update ? weft_str_of(&kind, "") : type);
    *ret = (weft_event_words){0};
    if (!row)
        return;
    ret->what = row->what;
    ret->ink = row->ink;
    if (row->who)
        snprintf(ret->who, sizeof ret->who, "%s", weft_get_str(&data, row->who, ""));
    copy_more(row, &data, ret);
    copy_stop_reason(&data, ret);
}

void weft__event_words_put(const weft_screen *screen, const weft_event_words *words, size_t room) {
    size_t used = strlen(words->what) + 2;
    if (words->ink)
        weft__ink(screen, words->ink);
    if (*words->who) {
        weft__put_text(screen, words->who, strlen(words->who));
        fputc(' ', screen->file);
        used += weft__text_width(words->who) + 1;
    }
    fputs(words->what, screen->file);
    if (words->ink)
        weft__plain(screen);
    if (!*words->more)
        return;
    size_t left = room > used ? room - used : 0, fits = weft__text_fit(words->more, left);
    fputs(": ", screen->file);
    bool whole = !words->more[fits];
    weft__put_text(screen, words->more, whole ? fits : weft__text_fit(words->more, left ? left - 1 : 0));
    if (!whole)
        fputs("…", screen->file);
}

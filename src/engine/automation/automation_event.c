/* Which events mean which rules: files, schedules and tasks, as they are stored, by whomever. */
#include <errno.h>
#include <string.h>

#include "automation_private.h"
#include "stamp.h"
#include "utf8.h"

#define SUMMARY 200 /* characters */

/* ---- the depth of causes ---- */

static void add_deep(weft_automation *automation, const weft_task *task) {
    int64_t now = weft_loop_now(automation->loop);
    size_t kept = 0;
    for (size_t i = 0; i < automation->deep_count; i++)
        if (automation->deep[i].until > now && strcmp(automation->deep[i].id, task->id) != 0)
            automation->deep[kept++] = automation->deep[i];
    automation->deep_count = kept;
    if (kept == AUTOMATION_DEEP || strlen(task->id) >= sizeof automation->deep[0].id)
        return;
    deep_task *deep = &automation->deep[automation->deep_count++];
    memcpy(deep->id, task->id, strlen(task->id) + 1);
    deep->depth = task->depth;
    deep->until = INT64_MAX;
}

static void end_deep(weft_automation *automation, const char *id) {
    for (size_t i = 0; i < automation->deep_count; i++)
        if (strcmp(automation->deep[i].id, id) == 0)
            automation->deep[i].until = weft_loop_now(automation->loop) + AUTOMATION_LINGER_MS;
}

static void follow_task(weft_automation *automation, const char *type, const weft_task *task) {
    if (!task || task->depth <= 0)
        return;
    if (strcmp(type, "task.started") == 0)
        add_deep(automation, task);
    else if (strcmp(type, "task.queued") != 0)
        end_deep(automation, task->id);
}

int64_t weft__automation_depth(weft_automation *automation) {
    int64_t now = weft_loop_now(automation->loop), depth = 0;
    for (size_t i = 0; i < automation->deep_count; i++)
        if (automation->deep[i].until > now && automation->deep[i].depth > depth)
            depth = automation->deep[i].depth;
    return depth;
}

void weft__automation_find_deep(weft_automation *automation) {
    const weft_engine *engine = automation->engine;
    for (const weft_task *task = weft__task_newest(engine); task; task = weft__task_older(engine, task))
        if (task->state == WEFT_TASK_RUNNING && task->depth > 0)
            add_deep(automation, task);
}

/* ---- an event as rules see it ---- */

/* NULL: rules do not wait for such. */
static const char *source_of(const weft_event *event) {
    if (strcmp(event->stream, WEFT_STREAM_FILES) == 0)
        return "watcher";
    if (strcmp(event->stream, WEFT_STREAM_CRON) == 0)
        return "scheduler";
    return strcmp(event->stream, WEFT_STREAM_HUB) == 0 ? weft__rule_type_source(event->type) : NULL;
}

typedef struct seen {
    const weft_event *event;
    const weft_json *data;
    const char *source;
    const weft_task *task;         /* NULL: it is about none */
    const weft_question *question; /* NULL: it is no question's */
    int64_t depth;
} seen;

/* What is wanted of a task's event beyond what is in it: the task. */
static int write_task(const seen *what, const weft_alloc *alloc, char **ret, size_t *ret_len) {
    static const char *const copied[] = {"attempt", "delayMs",    "error",  "reason",      "exitCode",
                                         "signal",  "stopReason", "output", "outputBytes", "by"};
    enum { COPIED = sizeof copied / sizeof copied[0] };
    const weft_task *task = what->task;
    weft_member members[COPIED + 8];
    weft_json values[COPIED];
    size_t n = 0;
    members[n++] = (weft_member){"taskId", weft_str(task->id)};
    members[n++] = (weft_member){"state", weft_str(weft__task_states[task->state])};
    members[n++] = (weft_member){"prompt", weft_str(task->prompt)};
    members[n++] = (weft_member){"agent", weft_str(task->agent)};
    members[n++] = (weft_member){"priority", weft_int(task->priority)};
    members[n++] = (weft_member){"sessionId", weft_str(task->session)};
    members[n++] = (weft_member){"metadata", weft_raw(task->metadata, strlen(task->metadata))};
    for (size_t i = 0; i < COPIED; i++) {
        values[i] = weft_get(what->data, copied[i]);
        if (values[i].text)
            members[n++] = (weft_member){copied[i], weft_copy(&values[i])};
    }
    return weft_to_text(weft_obj(members, n), alloc, ret, ret_len);
}

/* As much of a title as a phone shows, and as every service takes. */
static weft_val first_line(const char *title) {
    size_t line = strcspn(title, "\r\n"), most = weft__utf8_first(title, SUMMARY);
    return weft_strn(title, line < most ? line : most);
}

/* What is asked, and of whose work. Not what exactly a tool would do, nor what was filled in: a webhook goes to strangers.
 */
static int write_question(const seen *what, const weft_alloc *alloc, char **ret, size_t *ret_len) {
    const weft_question *q = what->question;
    const weft_task *task = what->task;
    char expires[WEFT_STAMP];
    weft_json reason = weft_get(what->data, "reason");
    return weft_to_text(WEFT_OBJ({"questionId", weft_str(q->id)}, {"kind", weft_str(q->kind)}, {"title", weft_str(q->title)},
                                 {"summary", first_line(q->title)}, {"state", weft_str(weft__question_states[q->state])},
                                 {"options", weft_raw(q->options, strlen(q->options))}, {"taskId", weft_str(q->task)},
                                 {"sessionId", weft_str(q->session)}, {"ruleId", weft_str(q->rule)},
                                 {"prompt", task ? weft_str(task->prompt) : weft_null()},
                                 {"agent", task ? weft_str(task->agent) : weft_null()},
                                 {"expiresAt", q->expires_ms ? weft_str(weft__stamp(q->expires_ms, expires)) : weft_null()},
                                 {"option", weft_str(q->option)}, {"by", weft_str(q->by)},
                                 {"reason", reason.text ? weft_copy(&reason) : weft_null()}),
                        alloc, ret, ret_len);
}

/* Files and jobs: what is in the event, and the same in AIWG's words (event_type; job_id), which its rules use. */
static int write_plain(const seen *what, const weft_alloc *alloc, char **ret, size_t *ret_len) {
    static const char *const copied[] = {"path", "size", "depth", "job", "schedule", "action"};
    enum { COPIED = sizeof copied / sizeof copied[0] };
    weft_member members[COPIED + 1];
    weft_json values[COPIED], job = weft_get(what->data, "job");
    const char *kind = strchr(what->event->type, '.');
    size_t n = 0;
    for (size_t i = 0; i < COPIED; i++) {
        values[i] = weft_get(what->data, copied[i]);
        if (values[i].text)
            members[n++] = (weft_member){copied[i], weft_copy(&values[i])};
    }
    members[n++] =
        job.text ? (weft_member){"job_id", weft_copy(&job)} : (weft_member){"event_type", weft_str(kind ? kind + 1 : "")};
    return weft_to_text(weft_obj(members, n), alloc, ret, ret_len);
}

static int make_doc(weft_automation *automation, const seen *what, weft_doc **ret) {
    char iso[WEFT_STAMP], *payload = NULL, *text = NULL;
    size_t payload_len = 0, len;
    const weft_alloc *alloc = automation->alloc;
    int r = (what->question ? write_question : what->task ? write_task : write_plain)(what, alloc, &payload, &payload_len);
    if (r == 0)
        r = weft_to_text(WEFT_OBJ({"type", weft_str(what->event->type)},
                                  {"source", weft_str(weft__rule_source(what->source, automation->aiwg))},
                                  {"timestamp", weft_str(weft__stamp(what->event->time_ms, iso))},
                                  {"payload", weft_raw(payload, payload_len)}, {"depth", weft_int(what->depth)}),
                         alloc, &text, &len);
    if (r == 0)
        r = weft_doc_parse(text, len, alloc, ret);
    weft_text_free(payload, alloc);
    weft_text_free(text, alloc);
    return r;
}

static bool rule_hears(const weft_automation *automation, size_t i, const seen *what) {
    const known_rule *known = &automation->rules[i];
    return known->enabled && weft__rule_listens(known->rule, what->event->type, what->source);
}

static void consider_rule(weft_automation *automation, known_rule *known, const weft_rule_event *event, const seen *what) {
    int64_t now = weft_loop_now(automation->loop);
    int r = weft__rule_matches(known->rule, event);
    if (r > 0)
        weft__automation_fire(automation, known, event, what->depth);
    else if (r < 0 && now >= known->quiet_until) {
        known->quiet_until = now + AUTOMATION_SAID_MS;
        weft__automation_record(automation, known->rule->id, event->type, "failed", NULL, NULL,
                                r == -EOVERFLOW ? "the regular expression takes too long" : weft_strerror(r));
    }
}

static void consider_rules(weft_automation *automation, const seen *what) {
    weft_doc *doc = NULL;
    if (!automation->enabled)
        return;
    for (size_t i = 0; i < automation->rule_count; i++) {
        if (!rule_hears(automation, i, what))
            continue;
        if (!doc && make_doc(automation, what, &doc) < 0)
            return;
        weft_rule_event event = {what->event->type, what->source, weft_doc_root(doc)};
        consider_rule(automation, &automation->rules[i], &event, what);
    }
    weft_doc_free(doc);
}

/* ---- hearing ---- */

static bool is_question_over(const char *type) {
    return *type == 'q' && (strcmp(type, "question.answered") == 0 || strcmp(type, "question.expired") == 0 ||
                            strcmp(type, "question.withdrawn") == 0);
}

static const weft_question *find_asked(const weft_automation *automation, const weft_event *event, const weft_json *data) {
    char room[32];
    const char *id =
        strncmp(event->type, "question.", 9) == 0 ? weft__automation_text(data, "questionId", room, sizeof room) : NULL;
    return id ? weft__question_find(automation->engine, id) : NULL;
}

/* An agent's is as deep as its task, a rule's as what the rule was asked about. */
static int64_t depth_of_question(const weft_automation *automation, const seen *what) {
    const weft_question *question = what->question;
    int64_t depth = what->task ? what->task->depth : 0;
    weft_doc *doc;
    if (question->rule && weft_doc_parse(question->detail, strlen(question->detail), automation->alloc, &doc) >= 0) {
        depth = weft_get_int(weft_doc_root(doc), "depth", 0);
        weft_doc_free(doc);
    }
    return depth;
}

static void take_hub_event(weft_automation *automation, const weft_event *event, const weft_json *data, const char *source) {
    seen what = {.event = event, .data = data, .source = source};
    char room[32];
    const weft_question *question = find_asked(automation, event, data);
    if (strcmp(event->type, "rule.fired") == 0)
        weft__automation_executed(automation, event->time_ms, data);
    else if (strcmp(event->type, "automation.switched") == 0)
        weft__automation_switched(automation, event, data);
    else if (question && is_question_over(event->type))
        weft__automation_answered(automation, question);
    /* Without rules nobody asks how deep a task is. Where there are rules later, those that run are found then. */
    if (!source || !automation->rule_count)
        return;
    if (strcmp(source, "queue") == 0) {
        const char *id = weft__automation_text(data, "taskId", room, sizeof room);
        what.task = id ? weft__task_find(automation->engine, id) : NULL;
        what.depth = what.task ? what.task->depth : 0;
        follow_task(automation, event->type, what.task);
    } else if (strcmp(source, "question") == 0) {
        what.question = question;
        what.task = question && question->task ? weft__task_find(automation->engine, question->task) : NULL;
        what.depth = question ? depth_of_question(automation, &what) : 0;
        if (!question)
            return;
    } else
        what.depth = weft_get_int(data, "depth", 0);
    consider_rules(automation, &what);
}

void weft__automation_hear(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    weft_automation *automation = WEFT_CONTAINER(listener, weft_automation, listener);
    bool ours = strcmp(event->type, "rule.fired") == 0 || strcmp(event->type, "automation.switched") == 0 ||
                is_question_over(event->type);
    const char *source = ours || automation->rule_count ? source_of(event) : NULL;
    if (source || ours)
        take_hub_event(automation, event, data, source);
}

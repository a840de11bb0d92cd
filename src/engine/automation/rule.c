/* Reading a rule, matching it, filling in its action. */
#include "rule_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "field.h"
#include "template.h"

const char *const weft__rule_kinds[WEFT_RULE_KINDS] = {"agent", "notify", "webhook"};

/* The member of an action that is its text. */
static const char *const text_names[WEFT_RULE_KINDS] = {"prompt", "message", "url"};

static const char *const sources[] = {"watcher", "scheduler", "queue", "question"};

/* What rules can wait for. A type that is none of these is a slip of the hand and would wait for ever. */
const weft_rule_type weft__rule_types[] = {
    {"file.create", "watcher"},       {"file.modify", "watcher"},         {"file.delete", "watcher"},
    {"cron.fired", "scheduler"},      {"task.queued", "queue"},           {"task.started", "queue"},
    {"task.retrying", "queue"},       {"task.failed", "queue"},           {"task.completed", "queue"},
    {"task.cancelled", "queue"},      {"question.asked", "question"},     {"question.answered", "question"},
    {"question.expired", "question"}, {"question.withdrawn", "question"}, {0},
};

const char *weft__rule_type_source(const char *type) {
    for (const weft_rule_type *row = weft__rule_types; row->type; row++)
        if (strcmp(row->type, type) == 0)
            return row->source;
    return NULL;
}

/* ---- reading ---- */

int weft__rule_wrong(weft_rule *rule, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(rule->error, sizeof rule->error, format, args);
    va_end(args);
    return -EINVAL;
}

/* What is read now, so that an error can be found in the file. */
void weft__rule_place(weft_rule *rule, const char *at) {
    snprintf(rule->at, sizeof rule->at, "%s", at);
}

/* A member that is a text or not there. */
int weft__rule_text(weft_rule *rule, const weft_json *object, const char *name, const char **ret) {
    weft_json value = weft_get(object, name);
    *ret = NULL;
    if (weft_typeof(&value) == WEFT_ABSENT || weft_typeof(&value) == WEFT_NULL)
        return 0;
    int r = weft__field_text(&value, ret);
    if (r < 0)
        return r;
    return *ret ? 0 : weft__rule_wrong(rule, "\"%s\" must be a text", name);
}

static int read_bool(weft_rule *rule, const weft_json *object, const char *name, bool fallback, bool *ret) {
    weft_json value = weft_get(object, name);
    *ret = weft_bool_of(&value, fallback);
    if (value.text && weft_typeof(&value) != WEFT_BOOL)
        return weft__rule_wrong(rule, "\"%s\" must be true or false", name);
    return 0;
}

static int read_int(weft_rule *rule, const weft_json *object, const char *name, int64_t fallback, int64_t *ret) {
    weft_json value = weft_get(object, name);
    *ret = weft_int_of(&value, INT64_MIN);
    if (value.text && *ret == INT64_MIN)
        return weft__rule_wrong(rule, "\"%s\" must be a whole number", name);
    *ret = value.text ? *ret : fallback;
    return 0;
}

static bool type_matches(const char *pattern, const char *type) {
    size_t len = strlen(pattern);
    if (len && pattern[len - 1] == '*')
        return strncmp(pattern, type, len - 1) == 0;
    return strcmp(pattern, type) == 0;
}

/* Does an event of this type come from there? Either may be NULL: any. */
static bool is_sent(const char *type, const char *source) {
    for (const weft_rule_type *row = weft__rule_types; row->type; row++)
        if ((!type || type_matches(type, row->type)) && (!source || strcmp(source, row->source) == 0))
            return true;
    return false;
}

static int check_type(weft_rule *rule) {
    weft__rule_place(rule, "/trigger/type");
    if (rule->aiwg && strchr(weft_get_str(&rule->shown, "type", ""), '*'))
        return weft__rule_wrong(
            rule, "a type of AIWG's has no \"*\": the rule never fires; leave the type out to mean every event");
    if (is_sent(rule->type, NULL))
        return 0;
    return weft__rule_wrong(
        rule,
        "there are no events of type \"%.60s\"; there are file.create, file.modify, file.delete, cron.fired, "
        "task.queued, .started, .retrying, .completed, .failed, .cancelled, and "
        "question.asked, .answered, .expired, .withdrawn",
        rule->type);
}

static int check_source(weft_rule *rule) {
    weft__rule_place(rule, "/trigger/source");
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (strcmp(rule->source, sources[i]) == 0)
            return 0;
    return weft__rule_wrong(rule, "there is no source \"%.60s\"; there are watcher, scheduler, queue and question",
                            rule->source);
}

static int read_pattern(weft_rule *rule, const char *pattern) {
    weft__rule_place(rule, "/trigger/pattern");
    int r = weft__glob_new(pattern, rule->alloc, &rule->pattern);
    if (r == -EINVAL)
        return weft__rule_wrong(rule, "the pattern \"%.100s\" has a brace that is not closed", pattern);
    return r == -E2BIG ? weft__rule_wrong(rule, "the pattern \"%.100s\" has too many alternatives", pattern) : r;
}

static int read_schedule(weft_rule *rule) {
    const char *why;
    weft__rule_place(rule, "/trigger/schedule");
    if (rule->type && !type_matches(rule->type, "cron.fired"))
        return weft__rule_wrong(rule, "a schedule is for cron.fired, not for %.60s", rule->type);
    if (weft__cron_parse(rule->schedule, &rule->cron, &why) < 0)
        return weft__rule_wrong(rule, "the schedule \"%.60s\" is not valid: %s", rule->schedule, why);
    rule->type = "cron.fired";
    return 0;
}

/* What is right by itself may still not go together. */
static int check_trigger(weft_rule *rule, const char *pattern) {
    char job[WEFT_RULE_ID + 8];
    weft__rule_place(rule, "/trigger/source");
    if (rule->source && !is_sent(rule->type, rule->source))
        return weft__rule_wrong(rule, "no event of type %.60s comes from the source %s", rule->type, rule->source);
    weft__rule_place(rule, "/trigger/pattern");
    weft__rule_job(rule, job);
    if (rule->schedule && pattern && !weft__glob_says(rule->pattern, (weft_bytes){job, strlen(job)}))
        return weft__rule_wrong(rule, "the pattern \"%.60s\" does not fit the rule's own job, which is called %.100s",
                                pattern, job);
    return 0;
}

static int read_trigger(weft_rule *rule) {
    const char *pattern = NULL;
    weft__rule_place(rule, "/trigger");
    if (weft_typeof(&rule->trigger) != WEFT_OBJECT)
        return weft__rule_wrong(rule, "it has no trigger");
    int r = weft__rule_text(rule, &rule->trigger, "type", &rule->type);
    if (r == 0)
        r = weft__rule_text(rule, &rule->trigger, "source", &rule->source);
    if (r == 0)
        r = weft__rule_text(rule, &rule->trigger, "pattern", &pattern);
    if (r == 0)
        r = weft__rule_text(rule, &rule->trigger, "schedule", &rule->schedule);
    if (r == 0 && !rule->type && !rule->source && !pattern && !rule->schedule)
        r = weft__rule_wrong(rule, "its trigger names neither a type nor a source, a pattern or a schedule");
    if (r == 0 && rule->type)
        r = check_type(rule);
    if (r == 0 && rule->source)
        r = check_source(rule);
    if (r == 0 && pattern)
        r = read_pattern(rule, pattern);
    if (r == 0 && rule->schedule)
        r = read_schedule(rule);
    /* A pattern alone means files. */
    if (r == 0 && pattern && !rule->type && !rule->source)
        rule->source = sources[0];
    return r == 0 ? check_trigger(rule, pattern) : r;
}

static int read_kind(weft_rule *rule) {
    const char *type;
    weft__rule_place(rule, "/action");
    if (weft_typeof(&rule->action) != WEFT_OBJECT)
        return weft__rule_wrong(rule, "it has no action");
    int r = weft__rule_text(rule, &rule->action, "type", &type);
    if (r < 0)
        return r;
    for (rule->kind = 0; type && rule->kind < WEFT_RULE_KINDS; rule->kind++)
        if (strcmp(weft__rule_kinds[rule->kind], type) == 0)
            return 0;
    weft__rule_place(rule, type ? "/action/type" : "/action");
    return type ? weft__rule_wrong(rule, "there is no action \"%.60s\"; there are agent, notify and webhook", type)
                : weft__rule_wrong(rule, "its action has no type");
}

static int read_action(weft_rule *rule) {
    int r = read_kind(rule);
    if (r == 0)
        r = weft__rule_text(rule, &rule->action, text_names[rule->kind], &rule->text);
    if (r == 0 && (!rule->text || !*rule->text))
        r = weft__rule_wrong(rule, "its action needs \"%s\"", text_names[rule->kind]);
    if (r == 0)
        r = weft__rule_text(rule, &rule->action, "agent", &rule->agent);
    if (r == 0)
        r = read_int(rule, &rule->action, "priority", 0, &rule->priority);
    return r == 0 && rule->kind == WEFT_RULE_WEBHOOK ? weft__rule_read_webhook(rule) : r;
}

static int read_conditions(weft_rule *rule, const weft_json *list) {
    int r = 0;
    weft__rule_place(rule, "/conditions");
    if (!list->text)
        return 0;
    if (weft_typeof(list) != WEFT_ARRAY)
        return weft__rule_wrong(rule, "\"conditions\" must be a list");
    for (weft_iter it = weft_iterate(list); r == 0 && weft_next(&it);) {
        if (rule->condition_count == WEFT_RULE_CONDITIONS)
            return weft__rule_wrong(rule, "it has more than %d conditions", WEFT_RULE_CONDITIONS);
        snprintf(rule->at, sizeof rule->at, "/conditions/%zu", rule->condition_count);
        r = weft__condition_new(&it.value, rule->alloc, &rule->conditions[rule->condition_count], rule->error);
        if (r == 0 && rule->aiwg)
            weft__condition_as_aiwg(rule->conditions[rule->condition_count]);
        rule->condition_count += r == 0;
    }
    return r;
}

static int read_id(weft_rule *rule, const weft_json *value) {
    const char *id;
    if (weft_typeof(value) != WEFT_OBJECT)
        return weft__rule_wrong(rule, "a rule is an object");
    int r = weft__rule_text(rule, value, "id", &id);
    if (r < 0)
        return r;
    if (!id || !*id)
        return weft__rule_wrong(rule, "it has no id");
    weft__rule_place(rule, "/id");
    if (strlen(id) > WEFT_RULE_ID)
        return weft__rule_wrong(rule, "its id is longer than %d bytes", WEFT_RULE_ID);
    rule->id = id;
    return 0;
}

/* A rule of AIWG's, translated (aiwg_config.c): what it was before is in "aiwg". */
static void read_manners(weft_rule *rule, const weft_json *value) {
    weft_json aiwg = weft_get(value, "aiwg"), trigger = weft_get(&aiwg, "trigger");
    rule->aiwg = weft_typeof(&aiwg) == WEFT_OBJECT;
    rule->shown = trigger.text ? trigger : rule->trigger;
}

/* Waits it for questions alone? */
static int check_approval(weft_rule *rule) {
    bool questions = (rule->source && strcmp(rule->source, "question") == 0) ||
                     (rule->type && strncmp(rule->type, "question.", strlen("question.")) == 0);
    weft__rule_place(rule, "/requiresApproval");
    return rule->approval && questions ? weft__rule_wrong(rule, "a rule that waits for questions cannot ask one itself") : 0;
}

static int read_rule(weft_rule *rule, const weft_json *value) {
    weft_json conditions = weft_get(value, "conditions");
    rule->trigger = weft_get(value, "trigger");
    rule->action = weft_get(value, "action");
    read_manners(rule, value);
    int r = read_id(rule, value);
    if (r == 0)
        r = read_bool(rule, value, "enabled", true, &rule->enabled);
    if (r == 0)
        r = read_int(rule, value, "cooldownMs", WEFT_RULE_COOLDOWN_MS, &rule->cooldown_ms);
    if (r == 0 && rule->cooldown_ms < 0)
        r = weft__rule_wrong(rule, "\"cooldownMs\" must not be negative");
    if (r == 0)
        r = read_bool(rule, value, "requiresApproval", false, &rule->approval);
    if (r == 0)
        r = read_trigger(rule);
    if (r == 0)
        r = check_approval(rule);
    if (r == 0)
        r = read_action(rule);
    return r < 0 ? r : read_conditions(rule, &conditions);
}

int weft__rule_new(const weft_json *value, const weft_alloc *alloc, weft_rule **ret) {
    weft_rule *rule = weft__zalloc(alloc, sizeof *rule);
    if (!rule)
        return -ENOMEM;
    rule->alloc = alloc;
    rule->id = "";
    rule->cooldown_ms = WEFT_RULE_COOLDOWN_MS;
    int r = weft_doc_keep(value, alloc, &rule->doc);
    if (r == 0)
        r = read_rule(rule, weft_doc_root(rule->doc));
    if (r < 0 && r != -EINVAL) {
        weft__rule_free(rule);
        return r;
    }
    *ret = rule;
    return 0;
}

weft_rule *weft__rule_free(weft_rule *rule) {
    if (!rule)
        return NULL;
    for (size_t i = 0; i < rule->condition_count; i++)
        weft__condition_free(rule->conditions[i]);
    weft__glob_free(rule->pattern);
    weft_doc_free(rule->hidden);
    weft_doc_free(rule->doc);
    return weft__free(rule->alloc, rule);
}

/* ---- matching ---- */

const char *weft__rule_source(const char *source, bool aiwg) {
    if (aiwg && strcmp(source, "watcher") == 0)
        return "watch";
    return aiwg && strcmp(source, "scheduler") == 0 ? "schedule" : source;
}

void weft__rule_job(const weft_rule *rule, char ret[WEFT_RULE_ID + 8]) {
    snprintf(ret, WEFT_RULE_ID + 8, "rule:%s", rule->id);
}

bool weft__rule_listens(const weft_rule *rule, const char *type, const char *source) {
    if (*rule->error || (rule->type && !type_matches(rule->type, type)))
        return false;
    /* It would ask about its own question. */
    if (rule->approval && strcmp(source, "question") == 0)
        return false;
    return !rule->source || strcmp(rule->source, source) == 0;
}

/* The path of a file, the name of a job, the title of a question, the prompt of a task. */
static bool pattern_matches(const weft_rule *rule, const weft_json *payload) {
    const char *path = weft_get_str(payload, "path", NULL);
    if (path)
        return weft__glob_matches(rule->pattern, path);
    weft_bytes text;
    weft_json main = weft_get(payload, "job");
    if (!main.text)
        main = weft_get(payload, "title");
    if (!main.text)
        main = weft_get(payload, "prompt");
    return weft_bytes_of(&main, &text) == 0 && weft__glob_says(rule->pattern, text);
}

int weft__rule_matches(const weft_rule *rule, const weft_rule_event *event) {
    char job[WEFT_RULE_ID + 8];
    weft_json payload = weft_get(event->json, "payload");
    if (!weft__rule_listens(rule, event->type, event->source))
        return 0;
    weft__rule_job(rule, job);
    if (rule->schedule && strcmp(weft_get_str(&payload, "job", ""), job) != 0)
        return 0;
    if (rule->pattern && !pattern_matches(rule, &payload))
        return 0;
    int r = 1;
    for (size_t i = 0; i < rule->condition_count && r > 0; i++)
        r = weft__condition_holds(rule->conditions[i], event->json);
    return r;
}

/* ---- what it does ---- */

int weft__rule_render(const weft_rule *rule, const weft_rule_event *event, char **ret, size_t *ret_len) {
    static const size_t max[] = {WEFT_RULE_MAX_PROMPT, WEFT_RULE_MAX_TEXT};
    weft_template_use use = rule->aiwg ? WEFT_TEMPLATE_AIWG : WEFT_TEMPLATE_TEXT;
    bool agent = rule->kind == WEFT_RULE_AGENT;
    char *text;
    if (rule->kind == WEFT_RULE_WEBHOOK)
        return weft__rule_render_webhook(rule, event, ret, ret_len);
    int r = weft__template_fill(rule->text, event->json, use, max[rule->kind], rule->alloc, &text);
    if (r < 0)
        return r;
    r = weft_to_text(WEFT_OBJ({"type", weft_str(weft__rule_kinds[rule->kind])}, {text_names[rule->kind], weft_str(text)},
                              {"agent", weft_str_or_none(agent ? rule->agent : NULL)},
                              {"priority", agent ? weft_int(rule->priority) : weft_none()}),
                     rule->alloc, ret, ret_len);
    weft__free(rule->alloc, text);
    return r;
}

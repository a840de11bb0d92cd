/* Translating AIWG's configuration. Its rules name their sources "watch" and "schedule", and a pattern of theirs is a
 * regular expression for TYPE:SOURCE, where ours is for the path. */
#include "aiwg_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "condition.h"
#include "write.h"

/* What AIWG has when its file says nothing. */
#define USUAL_PARALLEL 3
#define USUAL_MINUTES 120
/* The bounds of the keys they become. */
#define MAX_PARALLEL 1000
#define MAX_MINUTES (31 * 24 * 60)
#define MAX_ITEMS 32

/* AIWG's agent. The name of another one in a task is its persona. */
#define AGENTS                                                                                                              \
    "\"agents\":{\"claude\":{\"driver\":\"cli\",\"command\":[\"claude\",\"-p\",\"{prompt}\"],\"persona\":[\"--agent\","     \
    "\"{agent}\"],\"about\":\"AIWG's agent: claude -p\"}},\"default_agent\":\"claude\""

typedef struct translation {
    weft_buf out;
    const weft_alloc *alloc;
    int r; /* the first failure */
} translation;

static void put(translation *self, const char *text) {
    if (self->r >= 0)
        self->r = weft__write_raw(&self->out, self->alloc, text, strlen(text));
}

static void put_val(translation *self, weft_val value) {
    if (self->r >= 0)
        self->r = weft__write_val(&self->out, self->alloc, &value);
}

/* A comma, unless it is the first. */
static void next(translation *self) {
    char last = self->r < 0 || !weft__buf_len(&self->out) ? '{' : self->out.data[self->out.end - 1];
    if (last != '{' && last != '[')
        put(self, ",");
}

static void put_name(translation *self, const weft_json *name) {
    next(self);
    put_val(self, weft_copy(name));
    put(self, ":");
}

/* ---- tasks ---- */

/* As JavaScript's "value || fallback" for a number, within bounds. */
static double number_of(const weft_json *file, const char *pointer, double fallback, double max) {
    weft_json value = weft_pointer(file, pointer);
    double number = weft_num_of(&value, 0);
    return number > 0 ? (number < max ? number : max) : fallback;
}

static void put_tasks(translation *self, const weft_json *file) {
    int64_t parallel = (int64_t) number_of(file, "/daemon/max_parallel_actions", USUAL_PARALLEL, MAX_PARALLEL);
    double minutes = number_of(file, "/daemon/action_timeout_minutes", USUAL_MINUTES, MAX_MINUTES);
    int64_t timeout_ms = (int64_t) (minutes * 60 * 1000);
    put(self, "\"tasks\":");
    put_val(self, WEFT_OBJ({"max_running", weft_int(parallel > 0 ? parallel : 1)},
                           {"timeout_ms", weft_int(timeout_ms > 0 ? timeout_ms : 1)}));
}

/* ---- files ---- */

/* AIWG writes "src/"; the folder is meant. */
static weft_val path_of(const weft_json *entry) {
    weft_json path = weft_get(entry, "path");
    const char *text = weft_str_of(&path, "");
    size_t len = strlen(text);
    while (len > 1 && text[len - 1] == '/')
        len--;
    return len ? weft_strn(text, len) : weft_none();
}

static bool is_here(weft_val path) {
    return path.len == 1 && *path.as.s == '.';
}

/* AIWG looks for it below the folder of the entry, git's rules from the project's; without a slash it is the same. */
static void put_pattern_to_ignore(translation *self, const weft_json *entry, const char *pattern) {
    char whole[512];
    weft_val path = path_of(entry);
    bool tied = strchr(pattern, '/') && path.kind != WEFT_VAL_NONE && !is_here(path);
    snprintf(whole, sizeof whole, "%.*s%s%s", tied ? (int) path.len : 0, tied ? path.as.s : "", tied ? "/" : "", pattern);
    next(self);
    put_val(self, weft_str(whole));
}

static void put_ignored(translation *self, const weft_json *paths) {
    size_t count = 2;
    put(self, ",\"ignore\":[\".aiwg/daemon\",\".aiwg/daemon.pid*\""); /* ours */
    for (weft_iter entry = weft_iterate(paths); weft_next(&entry);) {
        weft_json ignore = weft_get(&entry.value, "ignore");
        for (weft_iter it = weft_iterate(&ignore); count < MAX_ITEMS && weft_next(&it);) {
            const char *pattern = weft_str_of(&it.value, "");
            if (!*pattern)
                continue;
            put_pattern_to_ignore(self, &entry.value, pattern);
            count++;
        }
    }
    put(self, "]");
}

/* A folder of which only files with some endings matter is as many paths with wildcards. */
static void put_path(translation *self, const weft_json *entry, size_t *count) {
    weft_json extensions = weft_get(entry, "extensions");
    weft_val path = path_of(entry);
    if (path.kind == WEFT_VAL_NONE)
        return;
    if (weft_count(&extensions) == 0 && (*count)++ < MAX_ITEMS) {
        next(self);
        put_val(self, path);
    }
    for (weft_iter it = weft_iterate(&extensions); weft_next(&it) && (*count)++ < MAX_ITEMS;) {
        char wild[512];
        snprintf(wild, sizeof wild, "%.*s%s**/*%s", is_here(path) ? 0 : (int) path.len, path.as.s, is_here(path) ? "" : "/",
                 weft_str_of(&it.value, ""));
        next(self);
        put_val(self, weft_str(wild));
    }
}

static void put_watch(translation *self, const weft_json *watch) {
    weft_json paths = weft_get(watch, "paths");
    size_t count = 0;
    next(self);
    put(self, weft_get_bool(watch, "enabled", false) ? "\"watch\":true" : "\"watch\":false");
    put(self, ",\"watch_paths\":[");
    for (weft_iter it = weft_iterate(&paths); weft_next(&it);)
        put_path(self, &it.value, &count);
    put(self, "]");
    put_ignored(self, &paths);
}

static void add(char *to, size_t size, const char *text) {
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%s", text);
}

/* ---- rules ---- */

static void put_condition(translation *self, const char *field, const char *op, const char *value) {
    next(self);
    put_val(self, WEFT_OBJ({"field", weft_str(field)}, {"operator", weft_str(op)}, {"value", weft_str(value)}));
}

/* "equals" and "not_equals" are AIWG's second names for two operators, and its jobs are called by job_id. */
static void put_old_condition(translation *self, const weft_json *condition) {
    next(self);
    if (weft_typeof(condition) != WEFT_OBJECT) {
        put_val(self, weft_copy(condition));
        return;
    }
    put(self, "{");
    for (weft_iter it = weft_iterate(condition); weft_next(&it);) {
        const char *text = weft_str_of(&it.value, "");
        put_name(self, &it.name);
        if (weft_name_is(&it, "operator") && strcmp(text, "equals") == 0)
            put(self, "\"eq\"");
        else if (weft_name_is(&it, "operator") && strcmp(text, "not_equals") == 0)
            put(self, "\"neq\"");
        else if (weft_name_is(&it, "field") && strcmp(text, "payload.job_id") == 0)
            put(self, "\"payload.job\"");
        else
            put_val(self, weft_copy(&it.value));
    }
    put(self, "}");
}

/* The events of AIWG that its rules can be about. */
static const char *const events[][2] = {
    {"file.create:watch", "file\\.create"},
    {"file.modify:watch", "file\\.modify"},
    {"file.delete:watch", "file\\.delete"},
    {"cron.fired:schedule", "cron\\.fired"},
};

/* The types that an expression for TYPE:SOURCE matches, as one for TYPE. -EINVAL: it is none. */
static int match_types(const weft_condition *pattern, const weft_alloc *alloc, char *ret, size_t size) {
    snprintf(ret, size, "^(?:");
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        char text[64];
        weft_doc *doc;
        snprintf(text, sizeof text, "{\"event\":\"%s\"}", events[i][0]);
        int r = weft_doc_parse(text, strlen(text), alloc, &doc);
        if (r < 0)
            return r;
        r = weft__condition_holds(pattern, weft_doc_root(doc));
        weft_doc_free(doc);
        if (r == -ENOMEM)
            return r;
        if (r > 0) {
            add(ret, size, ret[4] ? "|" : "");
            add(ret, size, events[i][1]);
        }
    }
    add(ret, size, ret[4] ? ")$" : "(?!))$"); /* none: it never fires */
    return 0;
}

static int translate_pattern(const weft_json *pattern, const weft_alloc *alloc, char *ret, size_t size) {
    char *text, why[WEFT_RULE_WHY];
    size_t len;
    weft_doc *doc = NULL;
    weft_condition *condition = NULL;
    int r = weft_to_text(
        WEFT_OBJ({"field", weft_str("event")}, {"operator", weft_str("matches")}, {"value", weft_copy(pattern)}), alloc,
        &text, &len);
    if (r < 0)
        return r;
    r = weft_doc_parse(text, len, alloc, &doc);
    weft_text_free(text, alloc);
    if (r >= 0)
        r = weft__condition_new(weft_doc_root(doc), alloc, &condition, why);
    if (r >= 0)
        r = match_types(condition, alloc, ret, size);
    weft__condition_free(condition);
    weft_doc_free(doc);
    return r;
}

/* An expression that is none stays as it is, in a place where it is reported. */
static void put_pattern(translation *self, const weft_json *pattern) {
    char types[128];
    int r = self->r < 0 ? self->r : translate_pattern(pattern, self->alloc, types, sizeof types);
    if (r == -ENOMEM)
        self->r = r;
    next(self);
    put_val(self, WEFT_OBJ({"field", weft_str("type")}, {"operator", weft_str("matches")},
                           {"value", r < 0 ? weft_copy(pattern) : weft_str(types)}));
}

static void put_conditions(translation *self, const weft_json *rule) {
    weft_json conditions = weft_get(rule, "conditions"), trigger = weft_get(rule, "trigger");
    put(self, ",\"conditions\":[");
    for (weft_iter it = weft_iterate(&conditions); weft_next(&it);)
        put_old_condition(self, &it.value);
    weft_json pattern = weft_get(&trigger, "pattern");
    if (pattern.text)
        put_pattern(self, &pattern);
    else if (weft_typeof(&trigger) == WEFT_OBJECT && weft_count(&trigger) == 0)
        put_condition(self, "source", "neq", "queue"); /* AIWG's tasks are no events for its rules */
    put(self, "]");
}

/* A trigger that names nothing means everything. The pattern has become a condition. */
static void put_trigger(translation *self, const weft_json *trigger) {
    const char *source = weft_get_str(trigger, "source", NULL);
    if (weft_typeof(trigger) != WEFT_OBJECT) {
        put_val(self, weft_copy(trigger));
        return;
    }
    put(self, "{");
    for (weft_iter it = weft_iterate(trigger); weft_next(&it);) {
        if (weft_name_is(&it, "pattern"))
            continue;
        put_name(self, &it.name);
        if (weft_name_is(&it, "source") && source && strcmp(source, "watch") == 0)
            put(self, "\"watcher\"");
        else if (weft_name_is(&it, "source") && source && strcmp(source, "schedule") == 0)
            put(self, "\"scheduler\"");
        else
            put_val(self, weft_copy(&it.value));
    }
    if (!source && !weft_get(trigger, "type").text) {
        next(self);
        put(self, "\"type\":\"*\"");
    }
    put(self, "}");
}

static void put_rule(translation *self, const weft_json *rule) {
    next(self);
    if (weft_typeof(rule) != WEFT_OBJECT) {
        put_val(self, weft_copy(rule)); /* it will be reported */
        return;
    }
    put(self, "{\"trigger\":");
    weft_json trigger = weft_get(rule, "trigger");
    put_trigger(self, &trigger);
    for (weft_iter it = weft_iterate(rule); weft_next(&it);) {
        if (weft_name_is(&it, "trigger") || weft_name_is(&it, "conditions"))
            continue;
        put_name(self, &it.name);
        put_val(self, weft_copy(&it.value));
    }
    put_conditions(self, rule);
    put(self, "}");
}

static void put_rules(translation *self, const weft_json *rules) {
    for (weft_iter it = weft_iterate(rules); weft_next(&it);)
        put_rule(self, &it.value);
}

static void put_jobs(translation *self, const weft_json *schedule) {
    weft_json jobs = weft_get(schedule, "jobs");
    put(self, ",\"jobs\":[");
    for (weft_iter it = weft_iterate(&jobs); weft_get_bool(schedule, "enabled", false) && weft_next(&it);) {
        weft_json action = weft_get(&it.value, "action");
        next(self);
        put_val(self, WEFT_OBJ({"id", weft_str(weft_get_str(&it.value, "id", ""))},
                               {"schedule", weft_str(weft_get_str(&it.value, "cron", ""))},
                               {"action", weft_typeof(&action) == WEFT_STRING ? weft_copy(&action) : weft_none()}));
    }
    put(self, "]");
}

static void put_automation(translation *self, const weft_json *file) {
    weft_json automation = weft_get(file, "automation"), watch = weft_get(file, "watch"), rules = weft_get(file, "rules"),
              more = weft_get(&automation, "rules"), schedule = weft_get(file, "schedule");
    put(self, ",\"automation\":{\"enabled\":");
    put(self, weft_get_bool(&automation, "enabled", true) ? "true" : "false");
    put(self, ",\"rules\":[");
    put_rules(self, &rules);
    put_rules(self, &more);
    put(self, "]");
    put_jobs(self, &schedule);
    if (watch.text)
        put_watch(self, &watch);
    put(self, "}");
}

int weft__aiwg_config(const weft_json *file, const weft_alloc *alloc, weft_doc **ret) {
    translation self = {.alloc = alloc};
    put(&self, "{" AGENTS ",");
    put_tasks(&self, file);
    put_automation(&self, file);
    put(&self, "}");
    if (self.r >= 0)
        self.r = weft_doc_parse(weft__buf_head(&self.out), weft__buf_len(&self.out), alloc, ret);
    weft__buf_done(&self.out, alloc);
    return self.r;
}

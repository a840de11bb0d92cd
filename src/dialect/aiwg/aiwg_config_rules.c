/* Translating AIWG's rules. They name their sources "watch" and "schedule", and a pattern of theirs is a regular expression
 * for TYPE:SOURCE, where ours is for the path. What people wrote stays beside the translation, to be shown. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "aiwg_translate.h"
#include "condition.h"

#define MAX_COOLDOWN_MS (31.0 * 24 * 3600 * 1000)

static void add_words(char *to, size_t size, const char *text) {
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%s", text);
}

static void put_condition(weft_translation *self, const char *field, const char *op, const char *value) {
    weft__translate_separator(self);
    weft__translate_val(self, WEFT_OBJ({"field", weft_str(field)}, {"operator", weft_str(op)}, {"value", weft_str(value)}));
}

/* "equals" and "not_equals" are AIWG's second names for two operators, and its jobs are called by job_id. */
static void put_old_condition(weft_translation *self, const weft_json *condition) {
    weft__translate_separator(self);
    if (weft_typeof(condition) != WEFT_OBJECT) {
        weft__translate_val(self, weft_copy(condition));
        return;
    }
    weft__translate_raw(self, "{");
    for (weft_iter it = weft_iterate(condition); weft_next(&it);) {
        const char *text = weft_str_of(&it.value, "");
        weft__translate_name(self, &it.name);
        if (weft_name_is(&it, "operator") && strcmp(text, "equals") == 0)
            weft__translate_raw(self, "\"eq\"");
        else if (weft_name_is(&it, "operator") && strcmp(text, "not_equals") == 0)
            weft__translate_raw(self, "\"neq\"");
        else if (weft_name_is(&it, "field") && strcmp(text, "payload.job_id") == 0)
            weft__translate_raw(self, "\"payload.job\"");
        else
            weft__translate_val(self, weft_copy(&it.value));
    }
    weft__translate_raw(self, "}");
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
            add_words(ret, size, ret[4] ? "|" : "");
            add_words(ret, size, events[i][1]);
        }
    }
    add_words(ret, size, ret[4] ? ")$" : "(?!))$"); /* none: it never fires */
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
static void put_pattern(weft_translation *self, const weft_json *pattern) {
    char types[128];
    int r = self->r < 0 ? self->r : translate_pattern(pattern, self->alloc, types, sizeof types);
    if (r == -ENOMEM)
        self->r = r;
    weft__translate_separator(self);
    weft__translate_val(self, WEFT_OBJ({"field", weft_str("type")}, {"operator", weft_str("matches")},
                                       {"value", r < 0 ? weft_copy(pattern) : weft_str(types)}));
}

static void put_conditions(weft_translation *self, const weft_json *rule) {
    weft_json conditions = weft_get(rule, "conditions"), trigger = weft_get(rule, "trigger");
    weft__translate_raw(self, ",\"conditions\":[");
    for (weft_iter it = weft_iterate(&conditions); weft_next(&it);)
        put_old_condition(self, &it.value);
    weft_json pattern = weft_get(&trigger, "pattern");
    if (pattern.text)
        put_pattern(self, &pattern);
    else if (weft_typeof(&trigger) == WEFT_OBJECT && weft_count(&trigger) == 0) {
        put_condition(self, "source", "neq", "queue"); /* AIWG's tasks are no events for its rules, nor are questions */
        put_condition(self, "source", "neq", "question");
    }
    weft__translate_raw(self, "]");
}

/* A trigger that names nothing means everything. The pattern has become a condition. */
static void put_trigger(weft_translation *self, const weft_json *trigger) {
    const char *source = weft_get_str(trigger, "source", NULL);
    if (weft_typeof(trigger) != WEFT_OBJECT) {
        weft__translate_val(self, weft_copy(trigger));
        return;
    }
    weft__translate_raw(self, "{");
    for (weft_iter it = weft_iterate(trigger); weft_next(&it);) {
        if (weft_name_is(&it, "pattern"))
            continue;
        weft__translate_name(self, &it.name);
        if (weft_name_is(&it, "source") && source && strcmp(source, "watch") == 0)
            weft__translate_raw(self, "\"watcher\"");
        else if (weft_name_is(&it, "source") && source && strcmp(source, "schedule") == 0)
            weft__translate_raw(self, "\"scheduler\"");
        else
            weft__translate_val(self, weft_copy(&it.value));
    }
    if (!source && !weft_get(trigger, "type").text) {
        weft__translate_separator(self);
        weft__translate_raw(self, "\"type\":\"*\"");
    }
    weft__translate_raw(self, "}");
}

/* What is said in other words, or left out by whoever wrote it. */
static bool is_translated(const weft_iter *member) {
    static const char *const names[] = {"trigger", "conditions", "enabled", "cooldownMs", "requiresApproval", "aiwg"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (weft_name_is(member, names[i]))
            return true;
    return false;
}

static void put_rule(weft_translation *self, const weft_json *rule) {
    weft__translate_separator(self);
    if (weft_typeof(rule) != WEFT_OBJECT) {
        weft__translate_val(self, weft_copy(rule)); /* it will be reported */
        return;
    }
    weft_json trigger = weft_get(rule, "trigger");
    weft__translate_raw(self, "{\"aiwg\":");
    weft__translate_val(self, WEFT_OBJ({"trigger", trigger.text ? weft_copy(&trigger) : weft_none()}));
    weft__translate_raw(self, ",\"trigger\":");
    put_trigger(self, &trigger);
    for (weft_iter it = weft_iterate(rule); weft_next(&it);) {
        if (is_translated(&it))
            continue;
        weft__translate_name(self, &it.name);
        weft__translate_val(self, weft_copy(&it.value));
    }
    weft__translate_raw(self, weft_get_bool(rule, "enabled", true) ? ",\"enabled\":true" : ",\"enabled\":false");
    weft__translate_raw(self, weft_get_bool(rule, "requiresApproval", false) ? ",\"requiresApproval\":true" : "");
    weft__translate_raw(self, ",\"cooldownMs\":");
    weft__translate_val(self, weft_int((int64_t) weft__translate_number(rule, "/cooldownMs", 0, MAX_COOLDOWN_MS)));
    put_conditions(self, rule);
    weft__translate_raw(self, "}");
}

void weft__translate_rules(weft_translation *self, const weft_json *rules) {
    for (weft_iter it = weft_iterate(rules); weft_next(&it);)
        put_rule(self, &it.value);
}

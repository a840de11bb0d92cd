/* Can a rule ever fire? What is looked for are slips of the hand that would make it wait for ever: conditions that
 * contradict each other, and fields that no event has. Where it cannot be told, the rule is believed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "rule.h"

/* What payloads have, by source; what is below one of these names is believed. */
static const struct {
    const char *source;
    const char *names[20];
} payloads[] = {
    {"watcher", {"path", "size", "depth", "event_type", NULL}},
    {"scheduler", {"job", "job_id", "schedule", "action", "depth", NULL}},
    {"queue",
     {"taskId", "state", "prompt", "agent", "priority", "sessionId", "metadata", "attempt", "delayMs", "error", "reason",
      "exitCode", "signal", "stopReason", "output", "outputBytes", "by", NULL}},
    {"question",
     {"questionId", "kind", "title", "summary", "state", "options", "taskId", "sessionId", "ruleId", "prompt", "agent",
      "expiresAt", "option", "by", "reason", NULL}},
};

/* What every event has. */
static const char *const always[] = {"type", "source", "timestamp", "payload", "depth", NULL};

/* What is known of an event before it happens. */
static const weft_json absent = {0};

static bool is_first_part(weft_bytes field, const char *name) {
    size_t len = strlen(name);
    return field.len >= len && memcmp(field.data, name, len) == 0 && (field.len == len || field.data[len] == '.');
}

static bool is_field_in_list(const char *const *names, weft_bytes field) {
    for (; *names; names++)
        if (is_first_part(field, *names))
            return true;
    return false;
}

static bool is_known_to_source(const char *source, weft_bytes field) {
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++)
        if (strcmp(payloads[i].source, source) == 0 && is_field_in_list(payloads[i].names, field))
            return true;
    return is_field_in_list(always, field);
}

static bool is_known_to_condition(const char *source, const weft_condition *condition) {
    weft_bytes field = weft__condition_field(condition);
    return weft__condition_is_bare(condition) ? is_field_in_list(always, field) : is_known_to_source(source, field);
}

static bool is_field(const weft_condition *condition, const char *name) {
    weft_bytes field = weft__condition_field(condition);
    return field.len == strlen(name) && memcmp(field.data, name, field.len) == 0;
}

/* An expression that takes too long says nothing. */
static int may_say(const weft_condition *condition, const weft_json *field) {
    int r = weft__condition_says(condition, field);
    return r == -EOVERFLOW ? 1 : r;
}

/* ---- one condition and one type of event ---- */

/* 1 it may hold, 0 it never does. */
static int says_of_text(const weft_condition *condition, const char *text) {
    char json[128];
    snprintf(json, sizeof json, "\"%s\"", text);
    return may_say(condition, &(weft_json){json, strlen(json), NULL});
}

static int may_hold(const weft_rule *rule, const weft_condition *condition, const weft_rule_type *event) {
    if (is_field(condition, "type"))
        return says_of_text(condition, event->type);
    if (is_field(condition, "source"))
        return says_of_text(condition, weft__rule_source(event->source, rule->aiwg));
    if (is_field(condition, "event_type") && strcmp(event->source, "watcher") == 0)
        return says_of_text(condition, strchr(event->type, '.') + 1);
    return is_known_to_condition(event->source, condition) ? 1 : may_say(condition, &absent);
}

static bool waits_for(const weft_rule *rule, const weft_rule_type *event) {
    return weft__rule_listens(rule, event->type, event->source);
}

/* May it hold for an event that the rule waits for? */
static int may_ever_hold(const weft_rule *rule, const weft_condition *condition) {
    int r = 0;
    for (const weft_rule_type *event = weft__rule_types; event->type && r == 0; event++)
        if (waits_for(rule, event))
            r = may_hold(rule, condition, event);
    return r;
}

static bool is_known_to_rule(const weft_rule *rule, const weft_condition *condition) {
    for (const weft_rule_type *event = weft__rule_types; event->type; event++)
        if (waits_for(rule, event) && is_known_to_condition(event->source, condition))
            return true;
    return false;
}

/* ---- two conditions on one field ---- */

static bool is_operator(const weft_condition *condition, const char *name) {
    return strcmp(weft__condition_operator(condition), name) == 0;
}

static bool is_lower(const weft_condition *condition) {
    return is_operator(condition, "gt") || is_operator(condition, "gte");
}

static bool is_upper(const weft_condition *condition) {
    return is_operator(condition, "lt") || is_operator(condition, "lte");
}

/* Can b hold when a does? 1 perhaps, 0 never. */
static int allows_condition(const weft_condition *a, const weft_condition *b) {
    if (is_operator(a, "eq"))
        return may_say(b, weft__condition_value(a));
    if (is_operator(a, "not_exists"))
        return may_say(b, &absent);
    /* Each bound must lie on the right side of the other: "gt 5" and "lte 5" leave nothing. */
    if ((is_lower(a) && is_upper(b)) || (is_upper(a) && is_lower(b)))
        return may_say(b, weft__condition_value(a));
    return 1;
}

static bool is_same_field(const weft_condition *a, const weft_condition *b) {
    weft_bytes x = weft__condition_field(a), y = weft__condition_field(b);
    return x.len == y.len && memcmp(x.data, y.data, x.len) == 0;
}

static int go_together(const weft_condition *a, const weft_condition *b) {
    int r = is_same_field(a, b) ? allows_condition(a, b) : 1;
    return r > 0 && is_same_field(a, b) ? allows_condition(b, a) : r;
}

/* ---- the rule ---- */

static int explain_never_holds(const weft_rule *rule, size_t i, char why[WEFT_RULE_WHY], char at[WEFT_RULE_AT]) {
    weft_bytes field = weft__condition_field(rule->conditions[i]);
    int len = field.len < 60 ? (int) field.len : 60;
    snprintf(at, WEFT_RULE_AT, "/conditions/%zu", i);
    if (is_known_to_rule(rule, rule->conditions[i]))
        snprintf(why, WEFT_RULE_WHY, "this condition on \"%.*s\" does not hold for any event that the trigger lets through",
                 len, field.data);
    else
        snprintf(why, WEFT_RULE_WHY, "no event that the trigger lets through has the field \"%.*s\"", len, field.data);
    return 0;
}

static int explain_contradiction(const weft_rule *rule, size_t i, size_t j, char why[WEFT_RULE_WHY], char at[WEFT_RULE_AT]) {
    weft_bytes field = weft__condition_field(rule->conditions[i]);
    snprintf(at, WEFT_RULE_AT, "/conditions/%zu", j);
    snprintf(why, WEFT_RULE_WHY, "conditions %zu and %zu on \"%.*s\" cannot both hold", i + 1, j + 1,
             field.len < 60 ? (int) field.len : 60, field.data);
    return 0;
}

/* Is there one type of event for which all of them may hold? */
static int is_any_left(const weft_rule *rule) {
    int r = 0;
    for (const weft_rule_type *event = weft__rule_types; event->type && r == 0; event++) {
        r = waits_for(rule, event);
        for (size_t i = 0; i < rule->condition_count && r > 0; i++)
            r = may_hold(rule, rule->conditions[i], event);
    }
    return r;
}

int weft__rule_sense(const weft_rule *rule, char why[WEFT_RULE_WHY], char at[WEFT_RULE_AT]) {
    for (size_t i = 0; i < rule->condition_count; i++) {
        int r = may_ever_hold(rule, rule->conditions[i]);
        if (r <= 0)
            return r < 0 ? r : explain_never_holds(rule, i, why, at);
        for (size_t j = 0; j < i; j++) {
            r = go_together(rule->conditions[j], rule->conditions[i]);
            if (r <= 0)
                return r < 0 ? r : explain_contradiction(rule, j, i, why, at);
        }
    }
    int r = is_any_left(rule);
    if (r != 0)
        return r;
    snprintf(at, WEFT_RULE_AT, "/conditions");
    snprintf(why, WEFT_RULE_WHY, "there is no type of event for which all conditions can hold");
    return 0;
}

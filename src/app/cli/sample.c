/* Making examples. What is not in the table of names gets a plain value of its type. */
#include "sample.h"

#include <string.h>

/* Deeper objects are shown empty: an example should fit on a page. */
#define SAMPLE_DEPTH 6

static const struct {
    const char *name, *value; /* JSON */
} samples[] = {
    {"agent", "\"demo\""},
    {"agent_type", "\"demo\""},
    {"default", "\"demo\""},
    {"name", "\"demo\""},
    {"toolKind", "\"edit\""},
    {"approvalId", "\"approval-0001\""},
    {"branch", "\"weft/task-0003\""},
    {"buildId", "\"build-0001\""},
    {"by", "\"ann\""},
    {"code", "\"int main(void) { return 0; }\""},
    {"collection", "\"notes\""},
    {"command", "\"make\""},
    {"content", "\"hello\""},
    {"createdAt", "\"2026-01-01T12:00:00.000Z\""},
    {"currency", "\"USD\""},
    {"cwd", "\"/home/ann/project\""},
    {"diff", "\"@@ -1 +1 @@\\n-old\\n+new\\n\""},
    {"driver", "\"demo\""},
    {"epoch", "\"0f0e0d0c0b0a09080706050403020100\""},
    {"expiresAt", "\"2026-01-01T13:00:00.000Z\""},
    {"folder", "\"/home/ann/project\""},
    {"gate", "\"test\""},
    {"gatedId", "\"gated-0001\""},
    {"head", "42"},
    {"journal", "\"0f0e0d0c.7.9f2c\""},
    {"key", "\"a\""},
    {"kind", "\"permission\""},
    {"language", "\"c\""},
    {"message", "\"hello\""},
    {"method", "\"task.list\""},
    {"option", "\"allow\""},
    {"output", "\"hello\\n\""},
    {"path", "\"src/main.c\""},
    {"pid", "4711"},
    {"planId", "\"plan-0001\""},
    {"plan_id", "\"plan-0001\""},
    {"priority", "0"},
    {"prompt", "\"fix the tests\""},
    {"protocolVersion", "1"},
    {"questionId", "\"question-0001\""},
    {"reason", "\"trimmed\""},
    {"requestId", "\"1\""},
    {"ruleId", "\"on-change\""},
    {"schedule", "\"0 3 * * *\""},
    {"scopes", "\"read work\""},
    {"server", "\"files\""},
    {"sessionId", "\"session-0003\""},
    {"session_id", "\"session-0003\""},
    {"state", "\"queued\""},
    {"status", "\"ok\""},
    {"subId", "\"t\""},
    {"taskId", "\"task-0003\""},
    {"task_id", "\"task_001\""},
    {"terminalId", "\"terminal-0001\""},
    {"threadId", "\"session-0003\""},
    {"timestamp", "\"2026-01-01T12:00:00.000Z\""},
    {"title", "\"Write notes.txt\""},
    {"token", "\"SECRET\""},
    {"tool_use_id", "\"question-0001\""},
    {"updatedAt", "\"2026-01-01T12:00:00.000Z\""},
    {"uri", "\"file:///notes.txt\""},
    {"url", "\"http://127.0.0.1:16180/\""},
    {"version", "\"0.1.0\""},
    {"worktree", "\"task-0003\""},
};

static const char *find_sample(const char *name, char type) {
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        if (strcmp(samples[i].name, name) == 0)
            return (*samples[i].value == '"') == (type == 's') ? samples[i].value : NULL;
    return NULL;
}

static void put_sample_text(FILE *to, const char *name, const char *subject) {
    const char *known = find_sample(name, 's');
    if (known)
        fputs(known, to);
    else if (strcmp(name, "id") == 0 && *subject)
        fprintf(to, "\"%s-0003\"", subject);
    else
        fprintf(to, "\"%s\"", *name && strcmp(name, "id") != 0 ? name : "1");
}

static void put_sample_number(FILE *to, const char *name) {
    const char *known = find_sample(name, 'n');
    fputs(known ? known : "1", to);
}

/* ---- params ---- */

static void put_sample_param(FILE *to, const weft_param *param, const char *subject) {
    switch (param->type) {
    case WEFT_PARAM_str:
        if (param->one_of)
            fprintf(to, "\"%s\"", param->one_of[0]);
        else
            put_sample_text(to, param->name, subject);
        break;
    case WEFT_PARAM_int:
    case WEFT_PARAM_num:
        put_sample_number(to, param->name);
        break;
    case WEFT_PARAM_bool:
        fputs("true", to);
        break;
    case WEFT_PARAM_arr:
        fputs("[]", to);
        break;
    case WEFT_PARAM_any:
    case WEFT_PARAM_obj:
        fputs("{}", to);
        break;
    }
}

void weft__sample_params(FILE *to, const weft_param *table, const char *subject) {
    const char *before = "{";
    for (const weft_param *param = table; param && param->name; param++) {
        if ((param->flags & WEFT_ALIAS) || !(param->flags & WEFT_REQUIRED))
            continue;
        fprintf(to, "%s\"%s\":", before, param->name);
        put_sample_param(to, param, subject);
        before = ",";
    }
    fputs(*before == '{' ? "{}" : "}", to);
}

/* ---- schemas ---- */

static void sample_value(FILE *to, const weft_json *schema, const char *name, const char *subject, int depth);

static bool is_required_member(const weft_json *schema, const char *name) {
    weft_json required = weft_get(schema, "required");
    if (!required.text)
        return true; /* nothing is said: all of them are shown */
    for (weft_iter it = weft_iterate(&required); weft_next(&it);)
        if (strcmp(weft_str_of(&it.value, ""), name) == 0)
            return true;
    return false;
}

static void sample_object(FILE *to, const weft_json *schema, const char *subject, int depth) {
    weft_json properties = weft_get(schema, "properties");
    const char *before = "{";
    for (weft_iter it = weft_iterate(&properties); depth && weft_next(&it);) {
        const char *name = weft_str_of(&it.name, "");
        if (!is_required_member(schema, name))
            continue;
        fprintf(to, "%s\"%s\":", before, name);
        sample_value(to, &it.value, name, subject, depth - 1);
        before = ",";
    }
    fputs(*before == '{' ? "{}" : "}", to);
}

/* The items of "tasks" are about a task. */
static void sample_array(FILE *to, const weft_json *schema, const char *name, int depth) {
    char one[32];
    size_t len = strlen(name);
    weft_json items = weft_get(schema, "items");
    snprintf(one, sizeof one, "%.*s", (int) (len && name[len - 1] == 's' ? len - 1 : len), name);
    fputc('[', to);
    if (items.text && weft_count(&items) && depth)
        sample_value(to, &items, one, one, depth - 1);
    fputc(']', to);
}

static weft_json first_choice(const weft_json *schema) {
    static const char *const names[] = {"anyOf", "oneOf", "allOf"};
    weft_json list = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !list.text; i++)
        list = weft_get(schema, names[i]);
    return list.text ? weft_at(&list, 0) : list;
}

static void sample_value(FILE *to, const weft_json *schema, const char *name, const char *subject, int depth) {
    weft_json fixed = weft_get(schema, "const"), words = weft_get(schema, "enum"), choice = first_choice(schema);
    weft_json types = weft_get(schema, "type");
    if (!fixed.text && words.text)
        fixed = weft_at(&words, 0);
    bool nullable = weft_typeof(&types) == WEFT_ARRAY;
    if (nullable)
        types = weft_at(&types, 0);
    const char *type = types.text ? weft_str_of(&types, "") : "";
    if (fixed.text)
        fprintf(to, "%.*s", (int) fixed.len, fixed.text);
    else if (choice.text)
        sample_value(to, &choice, name, subject, depth);
    else if (strcmp(type, "object") == 0)
        sample_object(to, schema, subject, depth);
    else if (strcmp(type, "array") == 0)
        sample_array(to, schema, name, depth);
    else if (nullable && !find_sample(name, 's') && !find_sample(name, 'n'))
        fputs("null", to);
    else if (strcmp(type, "string") == 0 && strcmp(weft_get_str(schema, "format", ""), "date-time") == 0)
        fputs("\"2026-01-01T12:00:00.000Z\"", to);
    else if (strcmp(type, "string") == 0)
        put_sample_text(to, name, subject);
    else if (strcmp(type, "boolean") == 0)
        fputs("true", to);
    else if (strcmp(type, "integer") == 0 || strcmp(type, "number") == 0)
        put_sample_number(to, name);
    else
        fputs("null", to);
}

void weft__sample_schema(FILE *to, const weft_json *schema, const char *name, const char *subject) {
    sample_value(to, schema, name, subject, SAMPLE_DEPTH);
}

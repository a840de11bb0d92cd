/* Reading, checking and writing plans. */
#include "plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "write.h"

#define MAX_TIMEOUT_S (24 * 3600) /* of one step */

const char *const weft__plan_types[] = {"code_generation", "refactoring", "analysis",      "testing", "code_refactoring",
                                        "code_analysis",   "bug_fix",     "documentation", NULL};

static int say_wrong(char *why, const char *format, ...) WEFT_PRINTF(2, 3);
static int say_wrong(char *why, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, WEFT_PLAN_WHY, format, args);
    va_end(args);
    return -EINVAL;
}

bool weft__plan_is_name(const char *name) {
    size_t len = strnlen(name, WEFT_PLAN_NAME + 1);
    if (!len || len > WEFT_PLAN_NAME || !isalnum((unsigned char) name[0]))
        return false;
    for (size_t i = 1; i < len; i++)
        if (!isalnum((unsigned char) name[i]) && !strchr("_-.", name[i]))
            return false;
    return true;
}

/* ---- members ---- */

/* The string; NULL when it is none or has a NUL in it. -ENOMEM, which weft_str_of() does not tell from that. */
static int read_string(const weft_json *value, const char **ret) {
    weft_bytes text;
    *ret = weft_str_of(value, NULL);
    if (*ret || weft_typeof(value) != WEFT_STRING)
        return 0;
    return weft_bytes_of(value, &text) == -ENOMEM ? -ENOMEM : memchr(text.data, '\0', text.len) ? 0 : -ENOMEM;
}

/* A text of people's or an agent's. NULL: it is absent. */
static int read_text(const weft_json *object, const char *name, const char *of, const char **ret, char *why) {
    weft_json value = weft_get(object, name);
    weft_type type = weft_typeof(&value);
    *ret = NULL;
    if (type == WEFT_ABSENT || type == WEFT_NULL)
        return 0;
    if (read_string(&value, ret) < 0)
        return -ENOMEM;
    if (!*ret)
        return say_wrong(why, "%s: %s is not a text", of, name);
    if (strlen(*ret) > WEFT_PLAN_TEXT)
        return say_wrong(why, "%s: %s is longer than %zu bytes", of, name, WEFT_PLAN_TEXT);
    return 0;
}

/* A whole number; absent: 0. */
static int read_number(const weft_json *object, const char *name, const char *of, int64_t low, int64_t high, int64_t *ret,
                       char *why) {
    weft_json value = weft_get(object, name);
    weft_type type = weft_typeof(&value);
    *ret = 0;
    if (type == WEFT_ABSENT || type == WEFT_NULL)
        return 0;
    int64_t number = type == WEFT_NUMBER ? weft_int_of(&value, INT64_MIN) : INT64_MIN;
    if (number < low || number > high)
        return say_wrong(why, "%s: %s is not a whole number from %lld to %lld", of, name, (long long) low, (long long) high);
    *ret = number;
    return 0;
}

/* How long it will take is only shown: what is no sensible number is unknown. */
static int64_t read_estimate(const weft_json *plan) {
    static const char *const names[] = {"estimated_time_seconds", "estimated_duration"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        double seconds = weft_get_num(plan, names[i], -1);
        if (seconds > 0 && seconds <= WEFT_PLAN_SECONDS)
            return (int64_t) (seconds + 0.5);
    }
    return 0;
}

/* ---- the graph ---- */

static size_t find_step(const weft_plan *plan, const char *id) {
    size_t i = 0;
    while (i < plan->count && strcmp(plan->steps[i].id, id) != 0)
        i++;
    return i;
}

static bool has_need(const weft_plan_step *step, size_t need) {
    for (size_t i = 0; i < step->need_count; i++)
        if (step->needs[i] == need)
            return true;
    return false;
}

/* The needs of one step lie together; those before it have theirs. */
static int add_need(weft_plan *plan, size_t *total, weft_plan_step *step, const weft_json *value, char *why) {
    const char *id;
    if (read_string(value, &id) < 0)
        return -ENOMEM;
    if (!id)
        return say_wrong(why, "%s: a dependency is not the id of a task", step->id);
    size_t need = find_step(plan, id);
    if (need == plan->count)
        return say_wrong(why, "%s depends on %.*s, and there is no such task", step->id, WEFT_PLAN_NAME, id);
    if (has_need(step, need))
        return 0;
    if (*total == WEFT_PLAN_NEEDS)
        return say_wrong(why, "there are more than %d dependencies", WEFT_PLAN_NEEDS);
    step->needs[step->need_count++] = need;
    ++*total;
    return 0;
}

static int add_needs(weft_plan *plan, size_t *total, weft_plan_step *step, const weft_json *list, char *why) {
    weft_type type = weft_typeof(list);
    int r = 0;
    if (type == WEFT_ABSENT || type == WEFT_NULL)
        return 0;
    if (type != WEFT_ARRAY)
        return say_wrong(why, "%s: dependencies is not a list", step->id);
    for (weft_iter it = weft_iterate(list); r >= 0 && weft_next(&it);)
        r = add_need(plan, total, step, &it.value, why);
    return r;
}

/* The map beside the steps names only steps that there are. */
static int check_map(const weft_plan *plan, const weft_json *map, char *why) {
    weft_type type = weft_typeof(map);
    if (type == WEFT_ABSENT || type == WEFT_NULL)
        return 0;
    if (type != WEFT_OBJECT)
        return say_wrong(why, "dependencies is not an object of lists");
    for (weft_iter it = weft_iterate(map); weft_next(&it);) {
        bool known = false;
        for (size_t i = 0; i < plan->count && !known; i++)
            known = weft_name_is(&it, plan->steps[i].id);
        if (!known)
            return say_wrong(why, "dependencies names %.*s, and there is no such task",
                             (int) (it.name.len < WEFT_PLAN_NAME ? it.name.len : WEFT_PLAN_NAME), it.name.text);
    }
    return 0;
}

static int read_needs(weft_plan *plan, const weft_json *tasks, const weft_json *map, char *why) {
    size_t total = 0;
    weft_plan_step *step = plan->steps;
    int r = check_map(plan, map, why);
    for (weft_iter it = weft_iterate(tasks); r >= 0 && weft_next(&it); step++) {
        weft_json own = weft_get(&it.value, "dependencies"), also = weft_get(map, step->id);
        step->needs = plan->needs + total;
        r = add_needs(plan, &total, step, &own, why);
        if (r >= 0)
            r = add_needs(plan, &total, step, &also, why);
    }
    return r;
}

static bool is_placed(const weft_plan *plan, size_t placed, size_t step) {
    for (size_t i = 0; i < placed; i++)
        if (plan->order[i] == step)
            return true;
    return false;
}

/* The step that could be next and has the highest priority, the first in the plan among equals; plan->count: none. */
static size_t next_in_order(const weft_plan *plan, size_t placed) {
    size_t best = plan->count;
    for (size_t i = 0; i < plan->count; i++) {
        const weft_plan_step *step = &plan->steps[i];
        bool free = !is_placed(plan, placed, i);
        for (size_t n = 0; free && n < step->need_count; n++)
            free = is_placed(plan, placed, step->needs[n]);
        if (free && (best == plan->count || step->priority > plan->steps[best].priority))
            best = i;
    }
    return best;
}

/* A step that cannot be placed needs another that cannot: whoever follows these comes round. The circle is said from its
 * first step in the plan on. */
static int say_circle(const weft_plan *plan, size_t placed, char *why) {
    size_t at = 0, n = 0, len = 0;
    bool seen[WEFT_PLAN_STEPS] = {false};
    while (is_placed(plan, placed, at))
        at++;
    while (!seen[at]) {
        seen[at] = true;
        n = 0;
        while (is_placed(plan, placed, plan->steps[at].needs[n]))
            n++;
        at = plan->steps[at].needs[n];
    }
    size_t first = at;
    len += (size_t) snprintf(why, WEFT_PLAN_WHY, "the tasks depend on each other in a circle: %s", plan->steps[first].id);
    do {
        for (n = 0; is_placed(plan, placed, plan->steps[at].needs[n]);)
            n++;
        at = plan->steps[at].needs[n];
        if (len < WEFT_PLAN_WHY)
            len += (size_t) snprintf(why + len, WEFT_PLAN_WHY - len, " -> %s", plan->steps[at].id);
    } while (at != first);
    return -EINVAL;
}

static int put_in_order(weft_plan *plan, char *why) {
    for (size_t placed = 0; placed < plan->count; placed++) {
        size_t next = next_in_order(plan, placed);
        if (next == plan->count)
            return say_circle(plan, placed, why);
        plan->order[placed] = next;
    }
    return 0;
}

/* ---- steps ---- */

static int read_name(const weft_json *task, const char *name, size_t number, const char **ret, char *why) {
    weft_json value = weft_get(task, name);
    if (read_string(&value, ret) < 0)
        return -ENOMEM;
    if (!*ret && weft_typeof(&value) == WEFT_ABSENT)
        return say_wrong(why, "task %zu has no %s", number, name);
    if (!*ret || !weft__plan_is_name(*ret))
        return say_wrong(why, "task %zu: its %s is not 1 to %d letters, digits, \"_\", \"-\" and \".\"", number, name,
                         WEFT_PLAN_NAME);
    return 0;
}

static int read_texts(const weft_json *task, weft_plan_step *step, char *why) {
    int r = read_text(task, "description", step->id, &step->title, why);
    if (r >= 0)
        r = read_text(task, "prompt", step->id, &step->prompt, why);
    if (r < 0)
        return r;
    step->title = step->title && *step->title ? step->title : step->prompt;
    step->prompt = step->prompt && *step->prompt ? step->prompt : step->title;
    if (!step->prompt || !step->prompt[strspn(step->prompt, " \t\r\n")])
        return say_wrong(why, "%s has neither a description nor a prompt", step->id);
    return 0;
}

static int read_context(weft_plan *plan, const weft_json *task, weft_plan_step *step, char *why) {
    weft_json context = weft_get(task, "context");
    weft_type type = weft_typeof(&context);
    if (type == WEFT_ABSENT || type == WEFT_NULL)
        return 0;
    if (type != WEFT_OBJECT)
        return say_wrong(why, "%s: context is not an object", step->id);
    if (context.len > WEFT_PLAN_TEXT)
        return say_wrong(why, "%s: context is longer than %zu bytes", step->id, WEFT_PLAN_TEXT);
    char *copy = weft__strndup(plan->alloc, context.text, context.len);
    step->context = copy;
    return copy ? 0 : -ENOMEM;
}

static int read_step(weft_plan *plan, const weft_json *task, char *why) {
    weft_plan_step *step = &plan->steps[plan->count];
    weft_json constraints = weft_get(task, "constraints");
    int64_t seconds = 0;
    if (weft_typeof(task) != WEFT_OBJECT)
        return say_wrong(why, "task %zu is not an object", plan->count + 1);
    int r = read_name(task, "id", plan->count + 1, &step->id, why);
    if (r >= 0 && find_step(plan, step->id) < plan->count)
        r = say_wrong(why, "there are two tasks %s", step->id);
    if (r >= 0)
        r = read_name(task, "type", plan->count + 1, &step->type, why);
    if (r >= 0)
        r = read_texts(task, step, why);
    if (r >= 0)
        r = read_number(task, "priority", step->id, 0, WEFT_PLAN_PRIORITY, &step->priority, why);
    if (r >= 0)
        r = read_number(&constraints, "timeout", step->id, 1, MAX_TIMEOUT_S, &seconds, why);
    if (r >= 0)
        r = read_context(plan, task, step, why);
    step->timeout_ms = seconds * 1000;
    if (r >= 0)
        plan->count++;
    else
        weft__free(plan->alloc, (char *) step->context);
    return r;
}

static int read_steps(weft_plan *plan, const weft_json *tasks, int64_t max_tasks, char *why) {
    size_t count = weft_typeof(tasks) == WEFT_ARRAY ? weft_count(tasks) : 0;
    if (weft_typeof(tasks) != WEFT_ARRAY || !count)
        return say_wrong(why, weft_typeof(tasks) == WEFT_ARRAY ? "it has no tasks" : "it has no list of tasks");
    if (count > WEFT_PLAN_STEPS || (int64_t) count > max_tasks)
        return say_wrong(why, "it has %zu tasks, and max_tasks is %lld", count, (long long) max_tasks);
    size_t size = count * (sizeof *plan->steps + sizeof *plan->order) + WEFT_PLAN_NEEDS * sizeof *plan->needs;
    plan->steps = weft__zalloc(plan->alloc, count * sizeof *plan->steps);
    plan->order = weft__zalloc(plan->alloc, count * sizeof *plan->order);
    plan->needs = weft__zalloc(plan->alloc, WEFT_PLAN_NEEDS * sizeof *plan->needs);
    if (!plan->steps || !plan->order || !plan->needs)
        return -ENOMEM;
    plan->bytes += size;
    int r = 0;
    for (weft_iter it = weft_iterate(tasks); r >= 0 && weft_next(&it);)
        r = read_step(plan, &it.value, why);
    return r;
}

/* ---- the whole ---- */

static int64_t narrower(int64_t a, int64_t b) {
    return !a ? b : !b ? a : a < b ? a : b;
}

static int read_constraints(weft_plan *plan, const weft_json *value, const weft_plan_limits *limits, char *why) {
    weft_json constraints = weft_get(value, "constraints");
    int r = read_number(&constraints, "max_tasks", "constraints", 1, INT32_MAX, &plan->max_tasks, why);
    if (r >= 0)
        r = read_number(&constraints, "time_limit_seconds", "constraints", 1, WEFT_PLAN_SECONDS, &plan->time_limit_s, why);
    if (limits) {
        plan->max_tasks = narrower(plan->max_tasks, limits->max_tasks);
        plan->time_limit_s = narrower(plan->time_limit_s, limits->time_limit_s);
    }
    return r;
}

static int read_words(weft_plan *plan, const weft_json *value, char *why) {
    int r = read_text(value, "user_request", "the plan", &plan->request, why);
    return r < 0 ? r : read_text(value, "explanation", "the plan", &plan->explanation, why);
}

static int read_whole(weft_plan *plan, const weft_json *value, const weft_plan_limits *limits, char *why) {
    weft_json tasks = weft_get(value, "tasks"), map = weft_get(value, "dependencies");
    int r = read_words(plan, value, why);
    if (r >= 0)
        r = read_constraints(plan, value, limits, why);
    if (r >= 0)
        r = read_steps(plan, &tasks, plan->max_tasks ? plan->max_tasks : WEFT_PLAN_STEPS, why);
    if (r >= 0)
        r = read_needs(plan, &tasks, &map, why);
    if (r >= 0)
        r = put_in_order(plan, why);
    plan->estimated_s = read_estimate(value);
    return r;
}

/* The request goes into the document, so that it lives as long. */
static int keep_plan(weft_plan *plan, const weft_json *value, const weft_plan_limits *limits) {
    weft_json own = weft_get(value, "user_request");
    const char *request = limits && limits->request && weft_typeof(&own) != WEFT_STRING ? limits->request : NULL;
    char *text = NULL;
    size_t len = 0;
    if (!request)
        return weft_doc_keep(value, plan->alloc, &plan->doc);
    int r =
        weft_to_text(WEFT_OBJ({"user_request", weft_str(request)}, {"plan", weft_copy(value)}), plan->alloc, &text, &len);
    if (r >= 0)
        r = weft_doc_parse(text, len, plan->alloc, &plan->doc);
    weft_text_free(text, plan->alloc);
    return r == -EBADMSG ? -EINVAL : r;
}

static int fill_plan(weft_plan *plan, const weft_json *value, const weft_plan_limits *limits, char *why) {
    int r = keep_plan(plan, value, limits);
    if (r < 0)
        return r == -EINVAL ? say_wrong(why, "it nests too deeply") : r;
    plan->bytes = sizeof *plan + 2 * value->len;
    const weft_json *root = weft_doc_root(plan->doc);
    weft_json inner = weft_get(root, "plan"), tasks = weft_get(root, "tasks");
    bool wrapped = weft_typeof(&inner) == WEFT_OBJECT && weft_typeof(&tasks) == WEFT_ABSENT;
    r = read_whole(plan, wrapped ? &inner : root, limits, why);
    if (r >= 0 && wrapped && !plan->request)
        r = read_text(root, "user_request", "the plan", &plan->request, why);
    plan->request = plan->request ? plan->request : "";
    return r;
}

/* A plan in a member "plan" is unwrapped first, so that its own constraints and request are found. */
int weft__plan_read(const weft_json *value, const weft_plan_limits *limits, const weft_alloc *alloc, weft_plan **ret,
                    char why[WEFT_PLAN_WHY]) {
    weft_json inner = weft_get(value, "plan"), tasks = weft_get(value, "tasks");
    *why = '\0';
    if (weft_typeof(value) != WEFT_OBJECT)
        return say_wrong(why, "it is not an object");
    if (value->len > WEFT_PLAN_BYTES && !(limits && limits->written))
        return say_wrong(why, "it is longer than %zu bytes", WEFT_PLAN_BYTES);
    if (weft_typeof(&inner) == WEFT_OBJECT && weft_typeof(&tasks) == WEFT_ABSENT)
        value = &inner;
    weft_plan *plan = weft__zalloc(alloc, sizeof *plan);
    if (!plan)
        return -ENOMEM;
    plan->alloc = alloc;
    int r = fill_plan(plan, value, limits, why);
    if (r < 0)
        weft__plan_free(plan);
    else
        *ret = plan;
    return r;
}

weft_plan *weft__plan_free(weft_plan *plan) {
    if (!plan)
        return NULL;
    for (size_t i = 0; i < plan->count; i++)
        weft__free(plan->alloc, (char *) plan->steps[i].context);
    weft__free(plan->alloc, plan->steps);
    weft__free(plan->alloc, plan->order);
    weft__free(plan->alloc, plan->needs);
    weft_doc_free(plan->doc);
    return weft__free(plan->alloc, plan);
}

/* ---- writing ---- */

static int write_step(const weft_plan *plan, const weft_plan_step *step, const weft_alloc *alloc, weft_buf *out) {
    weft_val needs[WEFT_PLAN_STEPS];
    for (size_t i = 0; i < step->need_count; i++)
        needs[i] = weft_str(plan->steps[step->needs[i]].id);
    weft_val timeout = WEFT_OBJ({"timeout", weft_int(step->timeout_ms / 1000)});
    weft_val value =
        WEFT_OBJ({"id", weft_str(step->id)}, {"type", weft_str(step->type)}, {"description", weft_str(step->title)},
                 {"prompt", step->prompt == step->title ? weft_none() : weft_str(step->prompt)},
                 {"dependencies", weft_arr(needs, step->need_count)}, {"priority", weft_int(step->priority)},
                 {"context", step->context ? weft_raw(step->context, strlen(step->context)) : weft_none()},
                 {"constraints", step->timeout_ms ? timeout : weft_none()});
    return weft__write_val(out, alloc, &value);
}

static int write_steps(const weft_plan *plan, const weft_alloc *alloc, weft_buf *out) {
    int r = weft__write_raw(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < plan->count; i++) {
        if (i)
            r = weft__write_raw(out, alloc, ",", 1);
        if (r >= 0)
            r = write_step(plan, &plan->steps[i], alloc, out);
    }
    return r < 0 ? r : weft__write_raw(out, alloc, "]", 1);
}

/* An object without its braces. */
static int write_rest(const weft_plan *plan, const weft_alloc *alloc, weft_buf *out) {
    weft_buf text = {0};
    bool constrained = plan->max_tasks || plan->time_limit_s;
    weft_val constraints = WEFT_OBJ({"max_tasks", plan->max_tasks ? weft_int(plan->max_tasks) : weft_none()},
                                    {"time_limit_seconds", plan->time_limit_s ? weft_int(plan->time_limit_s) : weft_none()});
    weft_val rest = WEFT_OBJ({"estimated_time_seconds", weft_int(plan->estimated_s)},
                             {"explanation", weft_str_or_none(plan->explanation)},
                             {"constraints", constrained ? constraints : weft_none()});
    int r = weft__write_val(&text, alloc, &rest);
    if (r >= 0)
        r = weft__write_raw(out, alloc, ",", 1);
    if (r >= 0)
        r = weft__write_raw(out, alloc, weft__buf_head(&text) + 1, weft__buf_len(&text) - 2);
    weft__buf_done(&text, alloc);
    return r;
}

int weft__plan_write(const weft_plan *plan, const weft_alloc *alloc, weft_buf *out) {
    static const char request[] = "\"user_request\":", tasks[] = ",\"tasks\":";
    int r = weft__write_raw(out, alloc, request, sizeof request - 1);
    if (r >= 0)
        r = weft__write_str(out, alloc, plan->request, strlen(plan->request));
    if (r >= 0)
        r = weft__write_raw(out, alloc, tasks, sizeof tasks - 1);
    if (r >= 0)
        r = write_steps(plan, alloc, out);
    return r < 0 ? r : write_rest(plan, alloc, out);
}

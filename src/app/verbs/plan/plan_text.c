/* Plans as people read them. */
#include <string.h>

#include "plan_verb.h"
#include "table.h"
#include "terminal_status.h"
#include "time_text.h"

#define NEEDS 256 /* bytes of a list of ids in a cell */

static const char *needs_text(char ret[NEEDS], const weft_json *task) {
    weft_json needs = weft_get(task, "dependencies");
    size_t used = 0;
    *ret = '\0';
    for (weft_iter it = weft_iterate(&needs); weft_next(&it) && used < NEEDS;)
        used += (size_t) snprintf(ret + used, NEEDS - used, "%s%s", used ? ", " : "", weft_str_of(&it.value, ""));
    return ret;
}

static const char *step_took(char ret[WEFT_TIME_TEXT], const weft_json *task) {
    int64_t from = weft__time_get(task, "startedAt"), to = weft__time_get(task, "endedAt");
    return from ? weft__duration(ret, (to ? to : weft__time_now()) - from) : "";
}

static int add_step(weft_table *table, const weft_json *task, bool ran) {
    char needs[NEEDS], took[WEFT_TIME_TEXT];
    const char *error = weft_get_str(task, "error", "");
    const char *planned[] = {weft_get_str(task, "id", ""), weft_get_str(task, "type", ""), needs_text(needs, task),
                             weft_get_str(task, "description", "")};
    const char *done[] = {
        planned[0], weft_get_str(task, "state", ""), step_took(took, task), weft_get_str(task, "taskId", ""),
        planned[2], *error ? error : planned[3]};
    const char *const *cells = ran ? done : planned;
    size_t count = ran ? sizeof done / sizeof done[0] : sizeof planned / sizeof planned[0];
    int r = 0;
    for (size_t i = 0; i < count && r >= 0; i++)
        r = weft__table_add(table, cells[i]);
    return r;
}

static void put_words(const weft_app *app, const weft_json *plan) {
    const char *request = weft_get_str(plan, "request", ""), *explanation = weft_get_str(plan, "explanation", "");
    weft__ink(&app->out, WEFT_INK_BOLD);
    weft__put_text(&app->out, weft_get_str(plan, "id", ""), strlen(weft_get_str(plan, "id", "")));
    weft__plain(&app->out);
    fputs(*request ? "  " : "", app->out.file);
    weft__put_text(&app->out, request, strcspn(request, "\r\n"));
    fputc('\n', app->out.file);
    if (*explanation) {
        weft__put_prose(&app->out, explanation, strlen(explanation));
        fputc('\n', app->out.file);
    }
    fputc('\n', app->out.file);
}

int weft__plan_put(const weft_app *app, const weft_json *plan, bool ran) {
    static const char *const planned[] = {"TASK", "TYPE", "NEEDS", "WHAT", NULL};
    static const char *const done[] = {"TASK", "STATE", "TOOK", "AS", "NEEDS", "WHAT", NULL};
    weft_table table = {.heads = ran ? done : planned};
    weft_json tasks = weft_get(plan, "tasks");
    char sum[WEFT_PLAN_SUM];
    int r = 0;
    for (weft_iter it = weft_iterate(&tasks); r >= 0 && weft_next(&it);)
        r = add_step(&table, &it.value, ran);
    if (r >= 0) {
        put_words(app, plan);
        weft__table_put(&table, &app->out);
        fprintf(app->out.file, "\n%s\n", weft__plan_sum(sum, plan));
        fflush(app->out.file);
    }
    weft__table_done(&table);
    return r;
}

static int add_count(char *ret, int used, const weft_json *counts, const char *state) {
    int64_t n = weft_get_int(counts, state, 0);
    if (n && used < WEFT_PLAN_SUM)
        used += snprintf(ret + used, WEFT_PLAN_SUM - (size_t) used, ", %lld %s", (long long) n, state);
    return used;
}

static void sum_planned(char *ret, const weft_json *plan, int64_t count) {
    char about[WEFT_TIME_TEXT];
    int64_t seconds = weft_get_int(plan, "estimatedSeconds", 0);
    int n = snprintf(ret, WEFT_PLAN_SUM, "%lld task%s", (long long) count, count == 1 ? "" : "s");
    if (seconds > 0)
        snprintf(ret + n, WEFT_PLAN_SUM - (size_t) n, ", about %s", weft__duration(about, seconds * 1000));
}

const char *weft__plan_sum(char ret[WEFT_PLAN_SUM], const weft_json *plan) {
    static const char *const others[] = {"running", "queued", "waiting", "failed", "cancelled", "skipped"};
    weft_json counts = weft_get(plan, "counts");
    int64_t count = weft_get_int(plan, "taskCount", 0), from = weft__time_get(plan, "startedAt"),
            to = weft__time_get(plan, "endedAt");
    char took[WEFT_TIME_TEXT];
    if (!from) {
        sum_planned(ret, plan, count);
        return ret;
    }
    int n = snprintf(ret, WEFT_PLAN_SUM, "%lld of %lld task%s completed", (long long) weft_get_int(&counts, "completed", 0),
                     (long long) count, count == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        n = add_count(ret, n, &counts, others[i]);
    if (n < WEFT_PLAN_SUM)
        snprintf(ret + n, WEFT_PLAN_SUM - (size_t) n, ", %s", weft__duration(took, (to ? to : weft__time_now()) - from));
    return ret;
}

weft_exit weft__plan_exit(const weft_json *plan) {
    const char *state = weft_get_str(plan, "state", "");
    if (strcmp(state, "completed") == 0)
        return WEFT_DONE;
    return strcmp(weft_get_str(plan, "stopping", ""), "timeLimit") == 0 ? WEFT_TOO_LATE : WEFT_FAILED;
}

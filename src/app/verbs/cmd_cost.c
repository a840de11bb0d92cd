/* weft cost: what turns have cost, by day and agent, or of one task or session. */
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "table.h"

typedef struct settings {
    const char *url;
    int64_t days;
} settings;

#define CELL 160

static const char *money_words(const weft_json *spent, char room[CELL]) {
    weft_json cost = weft_get(spent, "cost");
    int64_t unknown = weft_get_int(spent, "costUnknown", 0);
    size_t used = 0;
    *room = '\0';
    for (weft_iter it = weft_iterate(&cost); weft_next(&it) && used < CELL;)
        used += (size_t) snprintf(room + used, CELL - used, "%s%.2f %.12s", used ? " + " : "",
                                  weft_get_num(&it.value, "amount", 0), weft_get_str(&it.value, "currency", ""));
    if (unknown && used < CELL)
        snprintf(room + used, CELL - used, used ? " and %lld unknown" : "unknown", (long long) unknown);
    return room;
}

static const char *token_words(const weft_json *spent, const char *name, char room[CELL]) {
    weft_json tokens = weft_get(spent, "tokens");
    int64_t unknown = weft_get_int(spent, "tokensUnknown", 0);
    if (weft_typeof(&tokens) != WEFT_OBJECT)
        return weft_get_int(spent, "turns", 0) ? "unknown" : "0";
    int64_t sum = weft_get_int(&tokens, name, -1);
    if (sum < 0)
        return "unknown";
    snprintf(room, CELL, "%lld%s", (long long) sum, unknown ? "+" : "");
    return room;
}

static int add_spent_row(weft_table *table, const char *day, const char *agent, const weft_json *spent) {
    char turns[24], rooms[3][CELL], money[CELL];
    snprintf(turns, sizeof turns, "%lld", (long long) weft_get_int(spent, "turns", 0));
    const char *cells[] = {day,
                           agent,
                           turns,
                           token_words(spent, "total", rooms[0]),
                           token_words(spent, "input", rooms[1]),
                           token_words(spent, "output", rooms[2]),
                           money_words(spent, money)};
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
        r = weft__table_add(table, cells[i]);
    return r;
}

static void put_limit(const weft_app *app, const weft_json *limits, const char *name, const char *words) {
    weft_json limit = weft_get(limits, name);
    if (weft_typeof(&limit) == WEFT_OBJECT)
        fprintf(app->err.file, "  %s: %.2f %.12s\n", words, weft_get_num(&limit, "amount", 0),
                weft_get_str(&limit, "currency", ""));
    else if (weft_typeof(&limit) == WEFT_NUMBER)
        fprintf(app->err.file, "  %s: %lld tokens\n", words, (long long) weft_int_of(&limit, 0));
}

static bool is_incomplete(const weft_json *spent) {
    return weft_get_int(spent, "costUnknown", 0) || weft_get_int(spent, "tokensUnknown", 0);
}

static void put_notes(const weft_app *app, const weft_json *result, const weft_json *spent) {
    weft_json limits = weft_get(result, "limits");
    put_limit(app, &limits, "task", "a task may cost (cost.task)");
    put_limit(app, &limits, "day", "a day may cost (cost.day)");
    put_limit(app, &limits, "taskTokens", "a task may use (cost.task_tokens)");
    put_limit(app, &limits, "dayTokens", "a day may use (cost.day_tokens)");
    if (is_incomplete(spent))
        weft__say(app, "  \"unknown\", or a + behind a sum: the agent did not report all of it. The true sum is higher.");
}

static int add_days(weft_table *table, const weft_json *result) {
    weft_json days = weft_get(result, "days");
    char last[24] = "";
    int r = 0;
    for (weft_iter it = weft_iterate(&days); r >= 0 && weft_next(&it);) {
        weft_json spent = weft_get(&it.value, "spent");
        const char *day = weft_get_str(&it.value, "day", "");
        r = add_spent_row(table, strcmp(day, last) == 0 ? "" : day, weft_get_str(&it.value, "agent", ""), &spent);
        snprintf(last, sizeof last, "%.20s", day);
    }
    return r;
}

static weft_exit put_cost(weft_app *app, const weft_json *result) {
    static const char *const heads[] = {"DAY", "AGENT", "TURNS", "TOKENS", "IN", "OUT", "COST", NULL};
    weft_table table = {.heads = heads};
    weft_json one = weft_get(result, "spent"), total = weft_get(result, "total"), days = weft_get(result, "days");
    const weft_json *sum = one.text ? &one : &total;
    int r = one.text ? 0 : add_days(&table, result);
    if (one.text || weft_count(&days) > 1)
        r = r < 0 ? r : add_spent_row(&table, "total", "", sum);
    if (r >= 0 && weft_get_int(sum, "turns", 0))
        weft__table_put(&table, &app->out);
    else if (r >= 0)
        fputs("no turn has ended yet\n", app->err.file);
    weft__table_done(&table);
    if (r >= 0)
        put_notes(app, result, sum);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

static weft_exit run_cost(weft_app *app) {
    const settings *how = app->settings;
    const char *id = app->arg_count ? app->args[0] : NULL;
    bool session = id && strncmp(id, "session", 7) == 0;
    WEFT_ANSWER answer = {0};
    if (app->arg_count > 1)
        return weft__misused(app, "one task or one session");
    weft_exit status = weft__hub_call_once(app, how->url, "cost.get",
                                           WEFT_OBJ({"taskId", id && !session ? weft_str(id) : weft_none()},
                                                    {"sessionId", session ? weft_str(id) : weft_none()},
                                                    {"days", !id && how->days ? weft_int(how->days) : weft_none()}),
                                           &answer);
    if (status)
        return status;
    if (!app->common.json)
        return put_cost(app, answer.result);
    weft__put_line(&app->out, weft_copy(answer.result));
    return WEFT_DONE;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, days, number, "days", 'd', "N", "how many days, today included (default 30)"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft cost",
    "the last 30 days, by day and agent",
    "weft cost task-0003",
    "one task, over all its attempts",
    "weft cost session-0003 --json | jq .spent.tokens.total",
    "one conversation",
    NULL,
};

const weft_verb weft__cost_verb = {
    .name = "cost",
    .help = "what agents have used: tokens and money, by day",
    .usage = "[TASK | SESSION]",
    .examples = examples,
    .about = "Tokens and money are what agents report. One that reports nothing is shown as unknown, never as nothing.\n"
             "Days are the hub's, in its local time. cost.task, cost.day, cost.task_tokens and cost.day_tokens in the\n"
             "configuration are limits: a turn that reaches one is ended, and says so.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_cost,
};

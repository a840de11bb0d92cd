/* The ledger: what turns have cost, by day and agent, read from the events that end them. It is saved in the hub's document,
 * and knows up to which event it has read: events that are read again are not counted again. */
#include "cost.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine_private.h"
#include "run.h"
#include "utf8.h"
#include "write.h"

static void put_two_digits(char *at, int number) {
    at[0] = (char) ('0' + number / 10 % 10);
    at[1] = (char) ('0' + number % 10);
}

void weft__cost_day(int64_t wall_ms, char ret[WEFT_COST_DAY]) {
    struct tm day;
    time_t seconds = (time_t) (wall_ms / 1000);
    if (!localtime_r(&seconds, &day))
        memset(&day, 0, sizeof day);
    int year = (day.tm_year + 1900) % 10000;
    memcpy(ret, "0000-00-00", sizeof "0000-00-00");
    put_two_digits(ret, year / 100);
    put_two_digits(ret + 2, year % 100);
    put_two_digits(ret + 5, day.tm_mon + 1);
    put_two_digits(ret + 8, day.tm_mday);
}

/* ---- rows ---- */

static weft_cost_row *find_row(weft_engine *engine, const char *day, const char *agent) {
    for (size_t i = engine->cost_count; i-- > 0;) {
        weft_cost_row *row = &engine->cost_rows[i];
        if (strcmp(row->day, day) == 0 && strcmp(row->agent, agent) == 0)
            return row;
    }
    return NULL;
}

/* What the oldest day says becomes a part of what was before: the sums stay right. */
static void fold_oldest_day(weft_engine *engine) {
    weft_cost_row *rows = engine->cost_rows;
    size_t count = engine->cost_count, oldest = 0;
    while (oldest < count && !*rows[oldest].day)
        oldest++;
    if (oldest == count)
        return;
    char day[WEFT_COST_DAY];
    memcpy(day, rows[oldest].day, sizeof day);
    for (size_t i = oldest; i < count && strcmp(rows[i].day, day) == 0;) {
        weft_cost_row *before = find_row(engine, "", rows[i].agent);
        if (!before) {
            *rows[i++].day = '\0';
            continue;
        }
        weft__spent_add(&before->spent, &rows[i].spent);
        memmove(&rows[i], &rows[i + 1], (--count - i) * sizeof *rows);
        engine->cost_count = count;
    }
}

/* Days in their order; what ended today is almost always the last. */
static weft_cost_row *add_row(weft_engine *engine, const char *day, const char *agent) {
    if (!engine->cost_rows)
        engine->cost_rows = weft__zalloc(engine->alloc, WEFT_COST_ROWS * sizeof *engine->cost_rows);
    if (!engine->cost_rows)
        return NULL;
    size_t full = engine->cost_count;
    if (full == WEFT_COST_ROWS)
        fold_oldest_day(engine);
    /* Nothing but agents of long ago: the last of them makes room. */
    if (engine->cost_count == WEFT_COST_ROWS) {
        weft_cost_row *last = &engine->cost_rows[--engine->cost_count];
        weft__spent_add(&engine->cost_rows[0].spent, &last->spent);
    }
    size_t at = engine->cost_count;
    while (at > 0 && strcmp(engine->cost_rows[at - 1].day, day) > 0)
        at--;
    weft_cost_row *row = &engine->cost_rows[at];
    memmove(row + 1, row, (engine->cost_count++ - at) * sizeof *row);
    *row = (weft_cost_row){0};
    snprintf(row->day, sizeof row->day, "%s", day);
    snprintf(row->agent, sizeof row->agent, "%s", agent);
    return row;
}

static weft_cost_row *need_row(weft_engine *engine, const char *day, const char *name) {
    char agent[WEFT_COST_AGENT];
    snprintf(agent, sizeof agent, "%.*s", (int) weft__utf8_fit(name, strlen(name), sizeof agent - 1), name);
    weft_cost_row *row = find_row(engine, day, agent);
    return row ? row : add_row(engine, day, agent);
}

/* ---- events ---- */

/* The sum that a session's agent has told, up to now: the next turn costs what comes on top of it. */
static void take_session_cost(known_session *session, const weft_json *usage) {
    weft_json told = weft_get(usage, "sessionCost");
    weft_money money;
    if (weft__money_read(&told, &money))
        session->cost_told = money;
}

static void spend_session(known_session *session, const weft_event *event, const weft_json *usage) {
    if (!session || event->gseq <= session->spent_at)
        return;
    weft__spent_turn(&session->spent, usage);
    if (usage->text)
        take_session_cost(session, usage);
    session->spent_at = event->gseq;
}

/* A task that was never started has cost nothing, nor has one whose agent was not. */
static bool has_run(const known_task *task, const weft_json *data, const weft_json *usage) {
    if (usage->text || !task)
        return usage->text;
    return task->pub.started_ms && !weft__field_is(data, "reason", "spawnFailed") &&
           !weft__field_is(data, "reason", "costLimit");
}

int weft__cost_apply(weft_engine *engine, const weft_event *event, const weft_json *data) {
    known_task *task = weft__task_of(engine, data);
    weft_json usage = weft_get(data, "usage");
    char id[ENGINE_ID], day[WEFT_COST_DAY];
    if (!has_run(task, data, &usage))
        return 0;
    known_session *session = weft__session_known(engine, weft__id(data, "sessionId", id));
    if (event->gseq > engine->cost_at) {
        weft__cost_day(event->time_ms, day);
        weft_cost_row *row = need_row(engine, day, task ? task->pub.runs_on : session ? session->pub.agent : "");
        if (!row)
            return -ENOMEM;
        weft__spent_turn(&row->spent, &usage);
        engine->cost_at = event->gseq;
    }
    spend_session(session && session->stored ? session : NULL, event, &usage);
    if (task && event->gseq > task->spent_at) {
        weft__spent_turn(&task->spent, &usage);
        task->spent_at = event->gseq;
    }
    return 0;
}

/* ---- saved ---- */

int weft__cost_write(const weft_engine *engine, weft_buf *out) {
    int r = weft__buf_put(out, engine->alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < engine->cost_count; i++) {
        const weft_cost_row *row = &engine->cost_rows[i];
        weft_buf spent = {0};
        r = i ? weft__buf_put(out, engine->alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__spent_write(&row->spent, engine->alloc, &spent);
        weft_val value = WEFT_OBJ({"day", weft_str(row->day)}, {"agent", weft_str(row->agent)},
                                  {"spent", weft_raw(weft__buf_head(&spent), weft__buf_len(&spent))});
        if (r >= 0)
            r = weft__write_val(out, engine->alloc, &value);
        weft__buf_done(&spent, engine->alloc);
    }
    return r < 0 ? r : weft__buf_put(out, engine->alloc, "]", 1);
}

int weft__cost_restore(weft_engine *engine, const weft_json *rows, uint64_t at) {
    engine->cost_at = at;
    for (weft_iter it = weft_iterate(rows); weft_next(&it) && engine->cost_count < WEFT_COST_ROWS;) {
        const char *day = weft_get_str(&it.value, "day", NULL), *agent = weft_get_str(&it.value, "agent", NULL);
        weft_json spent = weft_get(&it.value, "spent");
        if (!day || !agent || strlen(day) >= WEFT_COST_DAY)
            continue;
        weft_cost_row *row = need_row(engine, day, agent);
        if (!row)
            return -ENOMEM;
        weft__spent_read(&row->spent, &spent);
    }
    return 0;
}

void weft__cost_drop(weft_engine *engine) {
    engine->cost_rows = weft__free(engine->alloc, engine->cost_rows);
    engine->cost_count = 0;
}

/* ---- limits ---- */

/* What the runs of now have cost so far is not in the ledger yet. */
static int64_t running_cost(const weft_engine *engine, const char *currency) {
    int64_t sum = 0;
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next) {
        const known_task *task = WEFT_CONTAINER(link, known_task, slot);
        weft_money cost;
        if (task->run && weft__usage_cost(task->run, &cost) && strcmp(cost.currency, currency) == 0)
            sum = weft__add_ms(sum, cost.nano);
    }
    return sum;
}

static bool say_money(char *ret, size_t size, int64_t nano, const weft_money *limit, const char *what, const char *key) {
    char is[WEFT_MONEY_TEXT], most[WEFT_MONEY_TEXT];
    snprintf(ret, size, "%s cost %s %s; the limit is %s %s (%s).", what, weft__money_text(nano, is), limit->currency,
             weft__money_text(limit->nano, most), limit->currency, key);
    return true;
}

static bool say_tokens(char *ret, size_t size, int64_t tokens, int64_t limit, const char *what, const char *key) {
    snprintf(ret, size, "%s used %lld tokens; the limit is %lld (%s).", what, (long long) tokens, (long long) limit, key);
    return true;
}

bool weft__cost_day_is_over(const weft_engine *engine, char *ret, size_t size) {
    const weft_cost_limits *limits = &engine->limits.cost;
    weft_spent today;
    if (!*limits->day.currency && !limits->day_tokens)
        return false; /* it is asked before each run, and most have no limit */
    weft__cost_today(engine, &today);
    int64_t nano = weft__add_ms(weft__spent_in(&today, limits->day.currency), running_cost(engine, limits->day.currency));
    if (*limits->day.currency && nano >= limits->day.nano)
        return say_money(ret, size, nano, &limits->day, "Today's tasks have", "cost.day");
    if (limits->day_tokens && today.tokens[WEFT_TOKENS_TOTAL] >= limits->day_tokens)
        return say_tokens(ret, size, today.tokens[WEFT_TOKENS_TOTAL], limits->day_tokens, "Today's tasks have",
                          "cost.day_tokens");
    return false;
}

bool weft__cost_task_is_over(const struct run *run, char *ret, size_t size) {
    const weft_cost_limits *limits = &run->engine->limits.cost;
    const weft_spent *before = &run->task->spent;
    weft_money now = {0};
    weft__usage_cost(run, &now);
    int64_t nano = weft__spent_in(before, limits->task.currency);
    if (strcmp(now.currency, limits->task.currency) == 0)
        nano = weft__add_ms(nano, now.nano);
    if (*limits->task.currency && nano >= limits->task.nano)
        return say_money(ret, size, nano, &limits->task, "It has", "cost.task");
    if (limits->task_tokens && before->tokens[WEFT_TOKENS_TOTAL] >= limits->task_tokens)
        return say_tokens(ret, size, before->tokens[WEFT_TOKENS_TOTAL], limits->task_tokens, "It has", "cost.task_tokens");
    return false;
}

/* ---- for everybody ---- */

const weft_cost_row *weft__cost_rows(const weft_engine *engine, size_t *count) {
    *count = engine->cost_count;
    return engine->cost_rows;
}

void weft__cost_today(const weft_engine *engine, weft_spent *ret) {
    char today[WEFT_COST_DAY];
    weft__cost_day(weft__engine_now(engine), today);
    *ret = (weft_spent){0};
    for (size_t i = engine->cost_count; i-- > 0;)
        if (strcmp(engine->cost_rows[i].day, today) == 0)
            weft__spent_add(ret, &engine->cost_rows[i].spent);
}

const weft_spent *weft__cost_of_task(const weft_engine *engine, const char *id) {
    const known_task *task = weft__task_known(engine, id);
    return task && task->stored ? &task->spent : NULL;
}

const weft_spent *weft__cost_of_session(const weft_engine *engine, const char *id) {
    const known_session *session = weft__session_known(engine, id);
    return session && session->stored ? &session->spent : NULL;
}

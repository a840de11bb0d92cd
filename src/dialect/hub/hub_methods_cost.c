/* cost.get: what turns have cost, by day and agent, or of one task or session; and what may be spent. */
#include <string.h>

#include "cost.h"
#include "hub_methods.h"
#include "reply.h"
#include "write.h"

#define DAY_MS ((int64_t) 24 * 3600 * 1000)

struct cost_query {
    const char *taskId, *sessionId;
    int64_t days;
};
const weft_param weft__hub_cost_params[] = {
    WEFT_MAY(struct cost_query, taskId, str, "of this task alone, over all its attempts"),
    WEFT_MAY(struct cost_query, sessionId, str, "of this session alone"),
    WEFT_MAY(struct cost_query, days, int, "how many days, today included (default 30)"),
    WEFT_END(struct cost_query),
};

static weft_val raw_of(const weft_buf *text) {
    return weft_raw(weft__buf_head(text), weft__buf_len(text));
}

/* ---- of one ---- */

static int reply_spent(weft_req *req, const weft_hub *hub, const char *name, const char *id, const weft_spent *spent) {
    weft_buf text = {0};
    int r = weft__spent_write(spent, hub->alloc, &text);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({name, weft_str(id)}, {"spent", raw_of(&text)}));
    weft__buf_done(&text, hub->alloc);
    return r;
}

/* ---- of all ---- */

static int write_row(weft_buf *out, const weft_hub *hub, bool first, const char *day, const char *agent,
                     const weft_spent *spent) {
    weft_buf text = {0};
    int r = first ? 0 : weft__buf_put(out, hub->alloc, ",", 1);
    if (r >= 0)
        r = weft__spent_write(spent, hub->alloc, &text);
    weft_val row = WEFT_OBJ({"day", weft_str_or_none(day)}, {"agent", weft_str(agent)}, {"spent", raw_of(&text)});
    if (r >= 0)
        r = weft__write_val(out, hub->alloc, &row);
    weft__buf_done(&text, hub->alloc);
    return r;
}

typedef struct report {
    weft_buf days, agents, total, today;
    weft_spent sum;
    char since[WEFT_COST_DAY];
} report;

static void done_report(report *self, const weft_alloc *alloc) {
    weft__buf_done(&self->days, alloc);
    weft__buf_done(&self->agents, alloc);
    weft__buf_done(&self->total, alloc);
    weft__buf_done(&self->today, alloc);
}

/* The newest day first. */
static int write_days(report *self, const weft_hub *hub, const weft_cost_row *rows, size_t count) {
    int r = weft__buf_put(&self->days, hub->alloc, "[", 1);
    bool first = true;
    for (size_t i = count; r >= 0 && i-- > 0;) {
        if (strcmp(rows[i].day, self->since) < 0)
            break;
        r = write_row(&self->days, hub, first, rows[i].day, rows[i].agent, &rows[i].spent);
        weft__spent_add(&self->sum, &rows[i].spent);
        first = false;
    }
    return r < 0 ? r : weft__buf_put(&self->days, hub->alloc, "]", 1);
}

static bool is_listed(const weft_cost_row *rows, size_t from, size_t at) {
    for (size_t i = from; i < at; i++)
        if (strcmp(rows[i].agent, rows[at].agent) == 0)
            return true;
    return false;
}

/* Each agent once, with the same days. */
static int write_agents(report *self, const weft_hub *hub, const weft_cost_row *rows, size_t count) {
    size_t from = 0;
    bool first = true;
    int r = weft__buf_put(&self->agents, hub->alloc, "[", 1);
    while (from < count && strcmp(rows[from].day, self->since) < 0)
        from++;
    for (size_t at = from; r >= 0 && at < count; at++) {
        weft_spent sum = {0};
        if (is_listed(rows, from, at))
            continue;
        for (size_t i = at; i < count; i++)
            if (strcmp(rows[i].agent, rows[at].agent) == 0)
                weft__spent_add(&sum, &rows[i].spent);
        r = write_row(&self->agents, hub, first, NULL, rows[at].agent, &sum);
        first = false;
    }
    return r < 0 ? r : weft__buf_put(&self->agents, hub->alloc, "]", 1);
}

static weft_val money_limit(const weft_money *money, weft_member members[2], char text[WEFT_MONEY_TEXT]) {
    weft__money_text(money->nano, text);
    members[0] = (weft_member){"amount", weft_raw(text, strlen(text))};
    members[1] = (weft_member){"currency", weft_str(money->currency)};
    return *money->currency ? weft_obj(members, 2) : weft_null();
}

static weft_val token_limit(int64_t tokens) {
    return tokens ? weft_int(tokens) : weft_null();
}

static int reply_report(weft_req *req, const weft_hub *hub, const report *self) {
    const weft_cost_limits *limits = &weft__engine_limits(hub->engine)->cost;
    weft_member task[2], day[2];
    char texts[2][WEFT_MONEY_TEXT];
    return weft_reply(req, WEFT_OBJ({"since", weft_str(self->since)}, {"days", raw_of(&self->days)},
                                    {"agents", raw_of(&self->agents)}, {"total", raw_of(&self->total)},
                                    {"today", raw_of(&self->today)},
                                    {"limits", WEFT_OBJ({"task", money_limit(&limits->task, task, texts[0])},
                                                        {"day", money_limit(&limits->day, day, texts[1])},
                                                        {"taskTokens", token_limit(limits->task_tokens)},
                                                        {"dayTokens", token_limit(limits->day_tokens)})}));
}

static int report_days(weft_req *req, const weft_hub *hub, int64_t days) {
    size_t count;
    report made = {.days = {0}};
    weft_spent today;
    const weft_cost_row *rows = weft__cost_rows(hub->engine, &count);
    weft__cost_day(weft__engine_now(hub->engine) - (days - 1) * DAY_MS, made.since);
    weft__cost_today(hub->engine, &today);
    int r = write_days(&made, hub, rows, count);
    if (r >= 0)
        r = write_agents(&made, hub, rows, count);
    if (r >= 0)
        r = weft__spent_write(&made.sum, hub->alloc, &made.total);
    if (r >= 0)
        r = weft__spent_write(&today, hub->alloc, &made.today);
    if (r >= 0)
        r = reply_report(req, hub, &made);
    done_report(&made, hub->alloc);
    return r;
}

int weft__hub_cost(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct cost_query *in = weft_req_params(req);
    (void) params;
    if (in->taskId && in->sessionId)
        return weft__reply_invalid(req, "/sessionId", "taskId and sessionId exclude each other");
    const char *gated = in->taskId ? weft__session_of_gated(hub, in->taskId) : NULL;
    if (gated) {
        const weft_spent *spent = weft__cost_of_session(hub->engine, gated);
        if (spent)
            return reply_spent(req, hub, "taskId", in->taskId, spent);
    }
    if (in->taskId) {
        const weft_spent *spent = weft__cost_of_task(hub->engine, in->taskId);
        return spent ? reply_spent(req, hub, "taskId", in->taskId, spent)
                     : weft__reply_error(req, 404, "taskNotFound", "There is no task %.64s", in->taskId);
    }
    if (in->sessionId) {
        const weft_spent *spent = weft__cost_of_session(hub->engine, in->sessionId);
        return spent ? reply_spent(req, hub, "sessionId", in->sessionId, spent)
                     : weft__reply_error(req, 404, "sessionNotFound", "There is no session %.64s", in->sessionId);
    }
    int64_t days = in->days ? in->days : 30;
    if (days < 1 || days > 36500)
        return weft__reply_invalid(req, "/days", "days must be from 1 to 36500");
    return report_days(req, hub, days);
}

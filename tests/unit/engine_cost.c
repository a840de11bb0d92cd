/* What turns have cost: added up by task, session, agent and day, over attempts and restarts; unknown is not nothing; and
 * the limits of it. */
#include "cost.h"
#include "engine/world.h"

#define NOON INT64_C(1794830400000) /* 2026-11-16T12:00:00Z */
#define DAY_MS INT64_C(86400000)

static void tell(weft_run *run, const char *update) {
    weft_doc *doc;
    REQUIRE(weft_doc_parse(update, strlen(update), NULL, &doc) == 0);
    run->host->on_update(run->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
}

static void tell_cost(weft_run *run, const char *amount, const char *currency) {
    char update[200];
    snprintf(update, sizeof update,
             "{\"sessionUpdate\":\"usage_update\",\"used\":1,\"size\":2,\"cost\":{\"amount\":%s,\"currency\":\"%s\"}}",
             amount, currency);
    tell(run, update);
}

static weft_run *run_of(engine_world *w, const char *task) {
    ENGINE_UNTIL(w, play_of(task) != NULL);
    return play_of(task);
}

static void end_with_cost(engine_world *w, const char *task, const char *amount) {
    weft_run *run = run_of(w, task);
    if (amount)
        tell_cost(run, amount, "USD");
    play_end(run, true);
    ENGINE_UNTIL(w, state_of(w, task) == WEFT_TASK_COMPLETED);
}

static void open_world(engine_world *w, const weft_store_kind *kind) {
    setenv("TZ", "UTC", 1);
    tzset();
    engine_open(w, kind);
    w->wall = NOON;
}

static bool has_usd(const weft_spent *spent, int64_t cents) {
    return CHECK_INT(weft__spent_in(spent, "USD"), cents * (WEFT_NANO / 100));
}

/* The agent tells what the whole conversation has cost; a turn has cost what came on top. */
TEST(a_turn_costs_what_the_session_grew_by) {
    engine_world w;
    task_outcome a, b, c;
    weft_spent today;
    open_world(&w, play_store());
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "a", &a), 0);
    tell_cost(run_of(&w, a.id), "0.25", "USD");
    end_with_cost(&w, a.id, "0.50");
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "b", .session = a.session}, &b), 0);
    end_with_cost(&w, b.id, "0.75");
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "c", .session = a.session}, &c), 0);
    end_with_cost(&w, c.id, "0.10"); /* it began to count anew */
    has_usd(weft__cost_of_task(w.engine, a.id), 50);
    has_usd(weft__cost_of_task(w.engine, b.id), 25);
    has_usd(weft__cost_of_task(w.engine, c.id), 10);
    has_usd(weft__cost_of_session(w.engine, a.session), 85);
    weft__cost_today(w.engine, &today);
    has_usd(&today, 85);
    CHECK_INT(today.turns, 3);
    CHECK_INT(today.cost_unknown, 0);
    CHECK_INT(today.tokens_unknown, 3);
    CHECK(strstr(weft__task_find(w.engine, b.id)->usage, "\"cost\":{\"amount\":0.25,\"currency\":\"USD\"}") != NULL);
    CHECK(!weft__cost_of_task(w.engine, "nobody") && !weft__cost_of_session(w.engine, "nobody"));
    engine_end(&w);
}

/* Another conversation of the agent's behind the same session has a sum of its own, also a larger one. */
TEST(a_new_conversation_begins_with_nothing) {
    engine_world w;
    task_outcome a, b;
    open_world(&w, play_store());
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "a", &a), 0);
    run_of(&w, a.id)->host->on_session(run_of(&w, a.id)->ctx, "first");
    end_with_cost(&w, a.id, "1.00");
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "b", .session = a.session}, &b), 0);
    weft_run *run = run_of(&w, b.id);
    run->host->on_session(run->ctx, "second");
    ENGINE_UNTIL(&w, strcmp(weft__session_find(w.engine, a.session)->agent_session, "second") == 0);
    end_with_cost(&w, b.id, "3.00");
    has_usd(weft__cost_of_task(w.engine, b.id), 300);
    engine_end(&w);
}

TEST(unknown_is_not_nothing) {
    engine_world w;
    task_outcome a, b, c, gone = {0};
    weft_spent today;
    open_world(&w, play_store());
    w.opts.limits.max_running = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "a", &a), 0);
    CHECK_INT(submit(&w, "never started", &b), 0);
    CHECK_INT(weft__task_cancel(w.engine, b.id, "ann", task_done, &gone), 0);
    CHECK(engine_wait(&w, &gone.times, 1));
    tell_cost(run_of(&w, a.id), "-1", "USD");
    tell_cost(run_of(&w, a.id), "1e300", "USD");
    tell_cost(run_of(&w, a.id), "1", "a currency with a very long name");
    end_with_cost(&w, a.id, NULL);
    plays.refuse = -ENOENT;
    CHECK_INT(submit(&w, "not installed", &c), 0);
    ENGINE_UNTIL(&w, state_of(&w, c.id) == WEFT_TASK_FAILED);
    weft__cost_today(w.engine, &today);
    CHECK(today.turns == 1 && today.cost_unknown == 1 && today.tokens_unknown == 1);
    CHECK(!*today.cost[0].currency);
    CHECK_INT(weft__cost_of_task(w.engine, b.id)->turns, 0);
    engine_end(&w);
}

TEST(attempts_add_up) {
    engine_world w;
    task_outcome a;
    open_world(&w, play_store());
    w.opts.limits.retry_ms = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "a", .retries = 1}, &a), 0);
    weft_run *first = run_of(&w, a.id);
    tell_cost(first, "0.20", "USD");
    play_end(first, false);
    ENGINE_UNTIL(&w, play_of(a.id) != first);
    end_with_cost(&w, a.id, "0.30");
    CHECK_INT(weft__cost_of_task(w.engine, a.id)->turns, 2);
    has_usd(weft__cost_of_task(w.engine, a.id), 30);
    has_usd(weft__cost_of_session(w.engine, a.session), 30);
    engine_end(&w);
}

/* Each day has its own row, what is saved is read again, and nothing is counted twice. */
static void spend_over_days(const weft_store_kind *kind, bool clean) {
    engine_world w;
    task_outcome t;
    size_t count;
    open_world(&w, kind);
    CHECK_INT(world_start(&w), 0);
    for (int day = 0; day < 3; day++) {
        w.wall = NOON + day * DAY_MS;
        CHECK_INT(submit(&w, "a", &t), 0);
        end_with_cost(&w, t.id, "0.50");
        CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "b", .agent = "two"}, &t), 0);
        end_with_cost(&w, t.id, "0.25");
        if (clean) {
            int before = w.stopped;
            weft__engine_stop(w.engine, false, world_stopped, &w);
            CHECK(engine_wait(&w, &w.stopped, before + 1));
        }
        engine_restart(&w);
    }
    const weft_cost_row *rows = weft__cost_rows(w.engine, &count);
    CHECK_INT(count, 6);
    for (size_t i = 0; i < count; i++) {
        static const char *const days[] = {"2026-11-16", "2026-11-17", "2026-11-18"};
        CHECK_STR(rows[i].day, days[i / 2]);
        CHECK_STR(rows[i].agent, i % 2 ? "two" : "one");
        CHECK_INT(rows[i].spent.turns, 1);
        has_usd(&rows[i].spent, i % 2 ? 25 : 50);
    }
    has_usd(weft__cost_of_task(w.engine, t.id), 25);
    has_usd(weft__cost_of_session(w.engine, t.session), 25);
    /* The session's sum is remembered too. */
    task_outcome more;
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "c", .session = t.session}, &more), 0);
    end_with_cost(&w, more.id, "0.30");
    has_usd(weft__cost_of_task(w.engine, more.id), 5);
    engine_end(&w);
}
TEST(days_over_kills) {
    spend_over_days(&weft__sqlite, false);
}
TEST(days_over_clean_stops) {
    spend_over_days(&weft__sqlite, true);
}

/* Long ago, as one: the sums stay right. */
TEST(old_days_become_one) {
    engine_world w;
    task_outcome t;
    size_t count;
    weft_spent sum = {0};
    open_world(&w, play_store());
    CHECK_INT(world_start(&w), 0);
    for (int day = 0; day < WEFT_COST_ROWS + 10; day++) {
        w.wall = NOON + day * DAY_MS;
        CHECK_INT(submit(&w, "a", &t), 0);
        end_with_cost(&w, t.id, "0.01");
    }
    const weft_cost_row *rows = weft__cost_rows(w.engine, &count);
    CHECK_INT(count, WEFT_COST_ROWS);
    CHECK_STR(rows[0].day, "");
    CHECK_INT(rows[0].spent.turns, 11);
    for (size_t i = 0; i < count; i++)
        weft__spent_add(&sum, &rows[i].spent);
    CHECK_INT(sum.turns, WEFT_COST_ROWS + 10);
    has_usd(&sum, WEFT_COST_ROWS + 10);
    engine_end(&w);
}

/* ---- limits ---- */

static void set_limit(engine_world *w, const char *task, const char *day) {
    weft_cost_limits *limits = &w->opts.limits.cost;
    CHECK(!task || weft__money_parse(task, &limits->task));
    CHECK(!day || weft__money_parse(day, &limits->day));
}

TEST(a_task_that_costs_too_much_is_ended) {
    engine_world w;
    task_outcome a, b;
    open_world(&w, play_store());
    set_limit(&w, "2.50 USD", NULL);
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "a", .retries = 3}, &a), 0);
    weft_run *run = run_of(&w, a.id);
    tell_cost(run, "2.49", "USD");
    tell_cost(run, "99", "EUR"); /* nobody knows how much that is */
    engine_settle(&w);
    CHECK_INT(run->cancels, 0);
    tell_cost(run, "2.5", "USD");
    ENGINE_UNTIL(&w, run->cancels == 1);
    play_end(run, false);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, a.id)->reason, "costLimit");
    CHECK_STR(weft__task_find(w.engine, a.id)->error, "It has cost 2.5 USD; the limit is 2.5 USD (cost.task).");
    has_usd(weft__cost_of_task(w.engine, a.id), 250);
    CHECK_INT(submit(&w, "b", &b), 0); /* the next one may */
    end_with_cost(&w, b.id, "1");
    engine_end(&w);
}

TEST(nothing_starts_when_the_day_has_cost_enough) {
    engine_world w;
    task_outcome a, b, c;
    open_world(&w, play_store());
    set_limit(&w, NULL, "1 USD");
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "a", &a), 0);
    CHECK_INT(submit(&w, "beside it", &b), 0);
    tell_cost(run_of(&w, b.id), "0.40", "USD");
    tell_cost(run_of(&w, a.id), "0.60", "USD"); /* together */
    ENGINE_UNTIL(&w, play_of(a.id)->cancels == 1);
    CHECK_INT(play_of(b.id)->cancels, 0);
    play_end(play_of(a.id), false);
    end_with_cost(&w, b.id, NULL);
    CHECK_INT(submit(&w, "c", &c), 0);
    ENGINE_UNTIL(&w, state_of(&w, c.id) == WEFT_TASK_FAILED);
    CHECK(!play_of(c.id));
    CHECK_STR(weft__task_find(w.engine, c.id)->reason, "costLimit");
    CHECK_STR(weft__task_find(w.engine, c.id)->error, "Today's tasks have cost 1 USD; the limit is 1 USD (cost.day).");
    CHECK_INT(weft__cost_of_task(w.engine, c.id)->turns, 0);
    w.wall = NOON + DAY_MS;
    CHECK_INT(submit(&w, "tomorrow", &c), 0);
    end_with_cost(&w, c.id, "0.1");
    engine_end(&w);
}

/* ---- sums ---- */

static void add_usages(weft_spent *spent, const char *const usages[]) {
    for (; *usages; usages++) {
        weft_doc *doc;
        REQUIRE(weft_doc_parse(*usages, strlen(*usages), NULL, &doc) == 0);
        weft__spent_turn(spent, weft_doc_root(doc));
        weft_doc_free(doc);
    }
}

TEST(sums_and_what_is_missing_from_them) {
    static const char *const usages[] = {
        "{\"tokens\":{\"totalTokens\":12,\"inputTokens\":10,\"outputTokens\":2},\"cost\":{\"amount\":0.000001,\"currency\":"
        "\"USD\"}}",
        "{\"tokens\":{\"inputTokens\":10,\"outputTokens\":2,\"cachedReadTokens\":7,\"thoughtTokens\":null}}",
        "{\"tokens\":{\"inputTokens\":10},\"cost\":{\"amount\":1,\"currency\":\"EUR\"}}",
        "{\"tokens\":{\"totalTokens\":-5},\"cost\":{\"amount\":1,\"currency\":\"GBP\"}}",
        "{\"tokens\":[],\"cost\":{\"amount\":1,\"currency\":\"JPY\"}}",
        NULL};
    static const char shown[] =
        "{\"turns\":5,\"tokens\":{\"total\":24,\"input\":20,\"output\":4,\"thought\":null,\"cachedRead\":7,\"cachedWrite\":"
        "null},"
        "\"tokensUnknown\":3,\"cost\":[{\"amount\":0.000001,\"currency\":\"USD\"},{\"amount\":1,\"currency\":\"EUR\"},"
        "{\"amount\":1,\"currency\":\"GBP\"}],\"costUnknown\":2}";
    weft_spent spent = {0}, again;
    weft_buf text = {0};
    weft_doc *doc;
    add_usages(&spent, usages);
    CHECK_INT(weft__spent_write(&spent, NULL, &text), 0);
    CHECK_TEXT(weft__buf_head(&text), weft__buf_len(&text), shown);
    REQUIRE(weft_doc_parse(weft__buf_head(&text), weft__buf_len(&text), NULL, &doc) == 0);
    weft__spent_read(&again, weft_doc_root(doc));
    CHECK(memcmp(&spent, &again, sizeof spent) == 0);
    weft_doc_free(doc);
    weft__buf_done(&text, NULL);
}

TEST(amounts_as_people_write_them) {
    static const char *const bad[] = {"",
                                      "USD",
                                      "2.50",
                                      "2.50USD",
                                      "-1 USD",
                                      "1e3 USD",
                                      ". USD",
                                      "1 ",
                                      "1 a b",
                                      "1 US\nD",
                                      "99999999999999999999999999 USD",
                                      "1 averylongcurrency",
                                      "1.2.3 USD"};
    weft_money money;
    char text[WEFT_MONEY_TEXT];
    CHECK(weft__money_parse("2.50 USD", &money));
    CHECK_STR(weft__money_text(money.nano, text), "2.5");
    CHECK_STR(money.currency, "USD");
    CHECK(weft__money_parse("20  EUR", &money));
    CHECK_STR(weft__money_text(money.nano, text), "20");
    CHECK_STR(weft__money_text(0, text), "0");
    CHECK_STR(weft__money_text(1, text), "0.000000001");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (!CHECK(!weft__money_parse(bad[i], &money)))
            fprintf(stderr, "  \"%s\"\n", bad[i]);
}

/* clang-format off */
TEST_MAIN(
    CASE(a_turn_costs_what_the_session_grew_by)
    CASE(a_new_conversation_begins_with_nothing)
    CASE(unknown_is_not_nothing)
    CASE(attempts_add_up)
    CASE(days_over_kills)
    CASE(days_over_clean_stops)
    CASE(old_days_become_one)
    CASE(a_task_that_costs_too_much_is_ended)
    CASE(nothing_starts_when_the_day_has_cost_enough)
    CASE(sums_and_what_is_missing_from_them)
    CASE(amounts_as_people_write_them)
)

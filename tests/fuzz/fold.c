/* The engine started on a forged journal: events of every type with wrong, missing, doubled and huge members, in any order,
 * and text that is no JSON. Then commands, runs that talk and ask, stops and restarts on the same journal.
 *
 * The first byte chooses the options. Then come events, one byte for the type and one for each member, up to the byte 0xFF;
 * what is behind it are commands, one byte each. What must hold: no crash, the engine is ready after every start, the lists
 * agree with the counts, no question is open for a task that has ended, and nothing is left allocated. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

#include "collections.h"
#include "driver_single.h"
#include "engine.h"
#include "fuzz_memory.h"
#include "loop.h"

#define MAX_EVENTS 100
#define MAX_COMMANDS 24
#define MAX_DATA (64 * 1024)

/* ---- input ---- */

typedef struct input {
    const unsigned char *at, *end;
} input;

static unsigned char next_byte(input *in) {
    return in->at < in->end ? *in->at++ : 0;
}

/* ---- a driver that the commands play ---- */

struct weft_run {
    const weft_run_host *host;
    void *ctx;
    bool ended, cancelled;
    struct weft_run *next;
};
static weft_run *runs;

static int fuzz_start(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret) {
    weft_run *run = calloc(1, sizeof *run);
    require(run && spec->prompt && spec->task && strlen(spec->task) < 32);
    run->host = host;
    run->ctx = ctx;
    run->next = runs;
    *ret = runs = run;
    return 0;
}

static int fuzz_answer(weft_run *run, const char *key, const char *option) {
    (void) run, (void) option;
    require(strcmp(key, "key") == 0);
    return 0;
}

static void end_run(weft_run *run, bool ok) {
    if (run->ended)
        return;
    run->ended = true;
    run->host->on_end(run->ctx, &(weft_run_end){.ok = ok, .exit_code = ok ? 0 : 1, .retryable = !ok});
}

static void fuzz_cancel(weft_run *run, bool force) {
    (void) force;
    run->cancelled = true; /* on_end does not run inside this call */
}

static void end_cancelled(void) {
    for (weft_run *run = runs; run; run = run->next)
        if (run->cancelled)
            end_run(run, false);
}

static void fuzz_pause(weft_run *run, bool paused) {
    (void) run, (void) paused;
}

static weft_run *fuzz_free(weft_run *run) {
    for (weft_run **at = &runs; *at; at = &(*at)->next)
        if (*at == run) {
            *at = run->next;
            free(run);
            return NULL;
        }
    abort();
}

static const weft_single fuzz_runs = {fuzz_start, fuzz_answer, fuzz_cancel, fuzz_pause, fuzz_free};
static int fuzz_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    return weft__single_open(&fuzz_runs, spec, host, ctx, ret);
}
static const weft_driver fuzz_driver = {.name = "fuzz", .open = fuzz_open, WEFT_SINGLE};
static const weft_driver *const fuzz_drivers[] = {&fuzz_driver, NULL};
static const weft_agent fuzz_agents[] = {{.name = "one", .driver = "fuzz"},
                                         {.name = "two", .driver = "fuzz", .max_running = 1},
                                         {.name = "allow", .driver = "fuzz", .permission = WEFT_PERMISSION_ALLOW}};
static const weft_agents all_agents = {fuzz_agents, 3, "one"};

/* ---- forged events ---- */

#define MEMBERS 20
/* What a member is when it is right: # stands for a small number. */
static const struct type {
    const char *name;
    const char *members[MEMBERS][2];
} types[] = {
    {"task.queued",
     {{"taskId", "\"task-000#\""},
      {"number", "#"},
      {"prompt", "\"do it\""},
      {"agent", "null"},
      {"runsOn", "\"one\""},
      {"priority", "#"},
      {"sessionId", "\"session-000#\""},
      {"metadata", "{\"a\":#}"},
      {"timeoutMs", "100#"},
      {"retries", "#"},
      {"depth", "#"},
      {"key", "\"key-#\""},
      {"alone", "true"},
      {"role", "\"executor\""},
      {"taskType", "\"type-#\""},
      {"quietMs", "100#"},
      {"runner", "\"box-#\""},
      {"label", "\"gpu\""}}},
    {"task.started", {{"taskId", "\"task-000#\""}, {"attempt", "#"}, {"agent", "\"two\""}}},
    {"task.started", {{"taskId", "\"task-000#\""}, {"attempt", "#"}, {"agent", "\"one@box-#\""}}},
    {"runner.known",
     {{"runner", "\"box-#\""}, {"labels", "[\"a\",\"@#\"]"}, {"agents", "[\"fuzz\",\"#\"]"}, {"slots", "#"}}},
    {"runner.kept", {{"taskId", "\"task-000#\""}, {"lease", "#"}, {"at", "#"}}},
    {"task.process", {{"taskId", "\"task-000#\""}, {"pid", "123#"}}},
    {"task.retrying",
     {{"taskId", "\"task-000#\""}, {"attempt", "#"}, {"delayMs", "#"}, {"error", "\"no\""}, {"reason", "\"exited\""}}},
    {"task.completed",
     {{"taskId", "\"task-000#\""},
      {"stopReason", "\"end_turn\""},
      {"exitCode", "#"},
      {"output", "\"done #\""},
      {"outputBytes", "6"},
      {"outputFrom", "#"},
      {"outputTo", "#"}}},
    {"task.failed",
     {{"taskId", "\"task-000#\""},
      {"error", "\"no\""},
      {"reason", "\"exited\""},
      {"exitCode", "#"},
      {"signal", "#"},
      {"output", "\"\""},
      {"outputBytes", "#"},
      {"outputFrom", "#"},
      {"outputTo", "#"}}},
    {"task.cancelled", {{"taskId", "\"task-000#\""}, {"by", "\"ann\""}, {"output", "\"x\""}, {"outputBytes", "#"}}},
    {"question.asked",
     {{"questionId", "\"question-000#\""},
      {"number", "#"},
      {"taskId", "\"task-000#\""},
      {"sessionId", "\"session-000#\""},
      {"ruleId", "\"rule\""},
      {"kind", "\"permission\""},
      {"title", "\"may I?\""},
      {"options", "[{\"id\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]"},
      {"detail", "{\"n\":#}"},
      {"digest", "\"d#\""},
      {"timeoutMs", "#"}}},
    {"question.answered",
     {{"questionId", "\"question-000#\""},
      {"option", "\"yes\""},
      {"name", "\"Yes\""},
      {"by", "\"ann\""},
      {"text", "\"t\""}}},
    {"question.expired", {{"questionId", "\"question-000#\""}}},
    {"question.withdrawn", {{"questionId", "\"question-000#\""}, {"reason", "\"taskEnded\""}}},
    {"question.orphaned", {{"questionId", "\"question-000#\""}}},
    {"question.adopted", {{"questionId", "\"question-000#\""}}},
    {"session.created",
     {{"sessionId", "\"session-000#\""},
      {"agent", "\"one\""},
      {"folder", "\"/\""},
      {"beneath", "\"a/b\""},
      {"number", "#"},
      {"title", "\"title #\""},
      {"settings", "{\"mode\":\"m#\"}"}}},
    {"session.state", {{"sessionId", "\"session-000#\""}, {"name", "\"commands\""}, {"value", "[#]"}}},
    {"session.set", {{"sessionId", "\"session-000#\""}, {"name", "\"mode\""}, {"value", "\"m#\""}}},
    {"session.set", {{"sessionId", "\"session-000#\""}, {"name", "\"option\""}, {"option", "\"o#\""}, {"value", "true"}}},
    {"session.closed", {{"sessionId", "\"session-000#\""}, {"by", "\"ann\""}}},
    {"session.resumed", {{"sessionId", "\"session-000#\""}}},
    {"session.deleted", {{"sessionId", "\"session-000#\""}}},
    {"session.agent", {{"sessionId", "\"session-000#\""}, {"agentSessionId", "\"theirs-#\""}}},
    {"session.output",
     {{"sessionId", "\"session-000#\""}, {"taskId", "\"task-000#\""}, {"stream", "\"stdout\""}, {"text", "\"line #\\n\""}}},
    {"session.update",
     {{"sessionId", "\"session-000#\""},
      {"taskId", "\"task-000#\""},
      {"update", "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"said #\"}}"}}},
    {"agent.chosen", {{"agent", "\"two\""}}},
    {"automation.switched", {{"enabled", "false"}, {"ruleId", "\"rule-#\""}}},
    {"hub.counted", {{"tasks", "#"}, {"questions", "#"}, {"totals", "{\"completed\":#,\"failed\":-1,\"cancelled\":9}"}}},
    {"hub.started", {{"pid", "#"}, {"version", "\"9.9.9\""}}},
    {"hub.from.tomorrow", {{"taskId", "\"task-000#\""}, {"v", "#"}}},
    {"rule.fired", {{"ruleId", "\"rule-#\""}, {"status", "\"approved\""}, {"questionId", "\"question-000#\""}}},
    {"doc.put",
     {{"collection", "\"c#\""},
      {"key", "\"k#\""},
      {"version", "#"},
      {"request",
       "{\"request\":\"0123456789012345678901234567890#\",\"digest\":\"01234567890123456789012345678901\",\"result\":{}}"}}},
    {"doc.deleted", {{"collection", "\"c#\""}, {"key", "\"k#\""}, {"version", "#"}}},
    {"context.changed",
     {{"version", "#"},
      {"action", "\"add\""},
      {"contextType", "\"state\""},
      {"changes", "[{\"key\":\"k#\",\"data\":{\"n\":#}},{\"key\":\"l#\"}]"}}},
    {"request.begun",
     {{"request", "\"0123456789012345678901234567890#\""}, {"digest", "\"01234567890123456789012345678901\""}}},
    {"request.done",
     {{"request", "\"0123456789012345678901234567890#\""},
      {"digest", "\"01234567890123456789012345678901\""},
      {"result", "{\"n\":#}"},
      {"error", "{\"code\":#}"}}},
    {"removed", {{"x", "#"}}},
};
#define TYPES (sizeof types / sizeof types[0])

static const char *const odd[] = {
    NULL,
    "null",
    "true",
    "0",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e300",
    "0.5",
    "\"\"",
    "\"task-0001\"",
    "\"session-0001\"",
    "\"question-0001\"",
    "\"1234567890123456789012345678901\"",
    "\"12345678901234567890123456789012\"",
    "\"a\\u0000b\"",
    "\"\\ud83d\\ude00\"",
    "[]",
    "{}",
    "[{}]",
    "[{\"id\":\"\"}]",
    "[{\"id\":\"a\"},{\"id\":\"a\"}]",
    "{\"taskId\":\"task-0001\"}",
    "4611686018427387904",
    "\"long\"",
};
#define ODD (sizeof odd / sizeof odd[0])

typedef struct text {
    char data[MAX_DATA];
    size_t len;
} text;

static void put(text *out, const char *string) {
    size_t len = strlen(string);
    if (out->len + len < sizeof out->data) {
        memcpy(out->data + out->len, string, len);
        out->len += len;
    }
}

static void put_right(text *out, const char *pattern, unsigned number) {
    char digit[2] = {(char) ('0' + number % 4), '\0'}, one[2] = {0};
    for (; *pattern; pattern++) {
        one[0] = *pattern;
        put(out, *pattern == '#' ? digit : one);
    }
}

static void put_value(text *out, const char *pattern, unsigned char how) {
    const char *value = how < 0x80 ? NULL : odd[how % ODD];
    if (how < 0x80)
        put_right(out, pattern, how);
    else if (strcmp(value, "\"long\"") == 0) {
        put(out, "\"");
        for (int i = 0; i < 1200; i++)
            put(out, "\xc3\xa4 0123456789abcdef");
        put(out, "\"");
    } else
        put(out, value);
}

/* With 0x80 in how some member is said twice, the second time as the next byte says. */
static void put_data(text *out, const struct type *type, unsigned char how, input *in) {
    size_t doubled = how & 0x80 ? next_byte(in) % MEMBERS : MEMBERS;
    const char *comma = "";
    put(out, "{");
    for (size_t i = 0; i < MEMBERS && type->members[i][0]; i++)
        for (int times = 0; times < 1 + (i == doubled); times++) {
            unsigned char is = next_byte(in);
            if (is >= 0x80 && !odd[is % ODD])
                continue;
            put(out, comma);
            put(out, "\"");
            put(out, type->members[i][0]);
            put(out, "\":");
            put_value(out, type->members[i][1], is);
            comma = ",";
        }
    put(out, "}");
}

static void put_raw(text *out, input *in) {
    for (unsigned char n = next_byte(in); n > 0 && in->at < in->end; n--)
        out->data[out->len++] = (char) next_byte(in);
}

/* 0x40: wrapped into hub.kept. 0x20: in another stream than it belongs. The data of the store is any bytes. */
static void forge(weft_store *store, unsigned char how, input *in, int64_t time_ms) {
    static text data;
    const struct type *type = &types[(how & 0x1f) % TYPES];
    const char *name = type->name;
    char stream[32] = WEFT_STREAM_HUB;
    data.len = 0;
    if (strncmp(name, "session.out", 11) == 0 || strncmp(name, "session.upd", 11) == 0)
        snprintf(stream, sizeof stream, "session/session-000%u", how & 3u);
    if (how & 0x20)
        snprintf(stream, sizeof stream, "%s", next_byte(in) % 2 ? WEFT_STREAM_HUB : "session/session-0001");
    unsigned char more = next_byte(in);
    if (how & 0x40) {
        put(&data, "{\"type\":\"");
        put(&data, name);
        put(&data, more & 1 ? "\",\"time\":9223372036854775807,\"data\":" : "\",\"time\":1,\"data\":");
        name = "hub.kept";
    }
    if ((more & 0x7f) == 0x7f)
        put_raw(&data, in);
    else
        put_data(&data, type, more, in);
    if (how & 0x40)
        put(&data, "}");
    weft_event event = {.stream = stream, .type = name, .data = {data.data, data.len}, .time_ms = time_ms};
    weft__store_append(store, &(weft_append){&event, 1, NULL}, NULL, NULL);
    weft__store_dispatch(store);
}

/* ---- the engine ---- */

typedef struct world {
    weft_loop *loop;
    weft_store *store;
    weft_engine *engine;
    weft_engine_opts opts;
    int ready, stopped;
    int waits; /* commands that are not answered yet */
} world;

static int64_t wall_ms(void *ctx) {
    (void) ctx;
    return 1700000000000;
}

static int64_t steady_ms(void *ctx) {
    (void) ctx;
    return 1000000;
}

static void on_ready(void *ctx, int r) {
    world *w = ctx;
    w->ready++;
    require(r == 0 || r == -ESHUTDOWN);
}

static void on_stopped(void *ctx) {
    ((world *) ctx)->stopped++;
}

static void turn(world *w, int turns) {
    for (int i = 0; i < turns; i++) {
        end_cancelled();
        weft_loop_once(w->loop, false);
    }
}

static void check_models(const world *w) {
    weft_task_counts counts = weft__task_counts(w->engine);
    uint64_t queued = 0, running = 0, waiting = 0;
    for (const weft_task *task = weft__task_newest(w->engine); task; task = weft__task_older(w->engine, task)) {
        queued += task->state == WEFT_TASK_QUEUED;
        running += task->state == WEFT_TASK_RUNNING;
        require(task->prompt && task->runs_on && task->session && task->metadata && (task->tail.data || !task->tail.len));
        require(weft__task_find(w->engine, task->id) == task);
    }
    while (weft__task_waiting(w->engine, waiting))
        waiting++;
    require(counts.of[WEFT_TASK_QUEUED] == queued && counts.of[WEFT_TASK_RUNNING] == running && waiting == queued);
    for (const weft_question *q = weft__question_first(w->engine, true); q; q = weft__question_next(w->engine, q, true))
        require(weft__question_find(w->engine, q->id) == q && q->kind && q->title && q->options && q->detail);
}

/* An end that was stored may still have to be told to its questions. */
static void check_settled(const world *w) {
    for (const weft_question *q = weft__question_first(w->engine, false); q; q = weft__question_next(w->engine, q, false)) {
        const weft_task *task = q->task ? weft__task_find(w->engine, q->task) : NULL;
        require(!q->task || (task && task->state < WEFT_TASK_COMPLETED));
    }
}

static void start(world *w) {
    w->ready = w->stopped = 0;
    require(weft__engine_new(&w->opts, &w->engine) == 0);
    require(weft__engine_start(w->engine, on_ready, w) == 0);
    for (int i = 0; i < 10000 && !w->ready; i++)
        turn(w, 1);
    require(w->ready == 1);
    check_models(w);
    for (int i = 0; i < 10000 && weft__engine_past(w->engine) == -EAGAIN; i++)
        turn(w, 1);
    require(weft__engine_past(w->engine) == 0);
    check_models(w);
    turn(w, 20);
    check_settled(w);
}

static void on_task(void *ctx, int r, const weft_task *task) {
    world *w = ctx;
    require((r == 0) == (task != NULL) || r == -EALREADY);
    w->waits--;
}

static void on_question(void *ctx, int r, const weft_question *question) {
    world *w = ctx;
    (void) r, (void) question;
    w->waits--;
}

static void on_output(void *ctx, int r, weft_bytes output) {
    world *w = ctx;
    (void) r, (void) output;
    w->waits--;
}

static void on_item(void *ctx, int r, uint64_t version) {
    world *w = ctx;
    (void) r, (void) version;
    w->waits--;
}

static void on_session(void *ctx, int r, const weft_session *session, const char *error) {
    world *w = ctx;
    (void) r, (void) session, (void) error;
    w->waits--;
}

/* A value is put or deleted, or a session goes with everything that was said of it. */
static void change(world *w, unsigned char how) {
    char key[8], id[32];
    weft_item_change made = {.collection = how & 8 ? "c0" : "c1", .key = key, .expect = how & 16 ? how % 4 : -1};
    snprintf(key, sizeof key, "k%u", how % 4u);
    snprintf(id, sizeof id, "session-000%u", how % 4u);
    if (how & 4)
        made.value = (weft_json){"[1]", 3, NULL};
    w->waits++;
    int r = how & 32 ? weft__session_remove(w->engine, id, "bob", on_session, w)
                     : weft__item_change(w->engine, &made, on_item, w);
    if (r != 0)
        w->waits--;
}

static void play(unsigned char how) {
    static const char options[] = "[{\"id\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]";
    if (!runs)
        return;
    if (how % 4 == 0)
        runs->host->on_output(runs->ctx, WEFT_RUN_STDOUT, (weft_bytes){"words\n", 6});
    else if (how % 4 == 1)
        end_run(runs, how & 0x10);
    else if (!runs->ended)
        runs->host->on_ask(
            runs->ctx, "key",
            WEFT_OBJ({"kind", weft_str("permission")}, {"title", weft_str(how % 4 == 2 ? "may I?" : "or this?")},
                     {"options", weft_raw(options, sizeof options - 1)}, {"detail", weft_raw("{\"n\":1}", 7)}));
}

static void command(world *w, unsigned char how, input *in) {
    char id[32], key[8];
    unsigned char arg = next_byte(in);
    snprintf(key, sizeof key, "key-%u", arg % 4u);
    switch (how % 8) {
    case 0:
        snprintf(id, sizeof id, "session-000%u", arg % 4u);
        w->waits++;
        if (weft__task_submit(w->engine,
                              &(weft_task_spec){.prompt = "go",
                                                .agent = arg & 0x40 ? "two" : NULL,
                                                .session = arg & 0x20 ? id : NULL,
                                                .key = arg & 0x10 ? key : NULL,
                                                .priority = arg & 0x80 ? INT64_MAX : 0,
                                                .timeout_ms = arg & 0x80 ? INT64_MAX
                                                              : arg & 8  ? 1
                                                                         : 0,
                                                .retries = arg & 4 ? 1 : 0},
                              on_task, w) < 0)
            w->waits--;
        break;
    case 1:
        snprintf(id, sizeof id, "task-000%u", arg % 8u);
        w->waits++;
        if (weft__task_cancel(w->engine, id, "bob", on_task, w) < 0)
            w->waits--;
        break;
    case 2:
        snprintf(id, sizeof id, "question-000%u", arg % 8u);
        w->waits++;
        if (weft__question_answer(w->engine, id, "yes", "bob", NULL, on_question, w) < 0)
            w->waits--;
        break;
    case 3:
        snprintf(id, sizeof id, "task-000%u", arg % 8u);
        w->waits++;
        if (weft__task_output(w->engine, id, arg & 0x80 ? 1 << 20 : 10, on_output, w) < 0)
            w->waits--;
        break;
    case 4:
        play(arg);
        break;
    case 5:
        if (arg & 0x80)
            change(w, arg);
        else
            play(arg);
        break;
    case 6: /* killed */
        w->engine = weft__engine_free(w->engine);
        start(w);
        break;
    default: /* stopped */
        weft__engine_stop(w->engine, arg & 1, on_stopped, w);
        for (int i = 0; i < 10000 && !w->stopped; i++) {
            turn(w, 1);
            if (runs && i % 4 == 3)
                end_run(runs, true);
        }
        require(w->stopped == 1);
        w->engine = weft__engine_free(w->engine);
        start(w);
    }
    turn(w, 1 + (how & 8));
    check_models(w);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size) {
    input in = {bytes, bytes + size};
    static weft_loop *loop;
    char why[WEFT_STORE_WHY];
    world w = {0};
    unsigned char options = next_byte(&in);
    live = 0;
    if (!loop) /* one for all inputs, because it is most of the work */
        require(weft_loop_new(NULL, &loop) == 0);
    w.loop = loop;
    require(weft__store_open(&weft__memory, &(weft_store_opts){.alloc = &counting}, &w.store, why) == 0);
    w.opts = (weft_engine_opts){.loop = w.loop,
                                .store = w.store,
                                .alloc = &counting,
                                .agents = &all_agents,
                                .drivers = fuzz_drivers,
                                .folder = "/",
                                .early = true,
                                .requeue = options & 1,
                                .wall_ms = wall_ms,
                                .steady_ms = steady_ms,
                                .ctx = &w};
    if (options & 2) /* so that what ended is forgotten soon */
        w.opts.limits.max_tasks = w.opts.limits.max_sessions = 1;
    if (options & 4)
        w.opts.limits.max_running = SIZE_MAX;
    if (options & 8)
        w.opts.limits.question_ms = INT64_MAX;
    if (options & 16)
        w.opts.limits.retry_ms = w.opts.limits.timeout_ms = w.opts.limits.drain_ms = INT64_MAX;
    int64_t time_ms = options & 32 ? INT64_MAX - 5 : 1600000000000;
    for (int n = 0; n < MAX_EVENTS && in.at < in.end; n++) {
        unsigned char how = next_byte(&in);
        if (how == 0xff)
            break;
        forge(w.store, how, &in, time_ms);
    }
    start(&w);
    for (int n = 0; n < MAX_COMMANDS && in.at < in.end; n++)
        command(&w, next_byte(&in), &in);
    weft__engine_free(w.engine);
    require(w.waits == 0 && !runs);
    weft__store_close(w.store);
    turn(&w, 1);
    require(live == 0);
    return 0;
}

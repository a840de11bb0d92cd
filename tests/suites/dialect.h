/* What every dialect must do, whatever its words are. Joining it is one line, and its name in the list of cases:
 *
 *     DIALECT_SUITE(aiwg)
 *     TEST_MAIN(CASE(dialect_aiwg))
 *
 * Each part plays the same story in a hub of its own: a task that runs, talks, asks and ends, one that fails and one that is
 * cancelled, while clients of the dialect and of another one listen. */
#ifndef SUITES_DIALECT_H
#define SUITES_DIALECT_H

#include "hub_client.h"
#include "hub_clients_private.h"

#define DIALECT_SUITE(suite)                                                                                                \
    TEST(dialect_##suite) {                                                                                                 \
        dialect_suite(&weft__##suite);                                                                                      \
    }

/* ---- the other one ---- */

static void bystander_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event,
                             const weft_json *data) {
    (void) hub, (void) data;
    weft__render_notify(rendering, NULL, "bystander", WEFT_OBJ({"type", weft_str(event->type)}));
}

static const weft_dialect dialect_bystander = {.name = "bystander", .render = bystander_render};

/* ---- the story ---- */

typedef struct dialect_world {
    hub_world hub;
    const weft_dialect *list[3];
    test_memory memory;
    char task[64], session[64];
    hub_client clients[4]; /* that are read from, or not, as the test wants */
    char *words[4];        /* what each was told in its dialect, line by line */
} dialect_world;

static void dialect_open(dialect_world *w, const weft_dialect *dialect, long fail_at) {
    *w = (dialect_world){.list = {dialect, &dialect_bystander, NULL}};
    test_memory_init(&w->memory, fail_at);
    hub_opts opts = {.alloc = &w->memory.alloc, .dialects = w->list, .service.out_soft = 65536};
    int r = hub_init(&w->hub, &opts);
    CHECK(r >= 0 || fail_at);
}

static void dialect_close(dialect_world *w) {
    for (size_t i = 0; i < 4; i++) {
        hub_disconnect(&w->clients[i]);
        free(w->words[i]);
    }
    hub_done(&w->hub);
    CHECK_INT(w->memory.live, 0);
}

/* Allocations fail, so there may be no hub at all. */
static void dialect_connect(dialect_world *w, size_t index, const char *dialect) {
    if (w->hub.hub.clients)
        hub_connect(&w->hub, dialect, &w->clients[index]);
}

static weft_hub_client *dialect_client(const dialect_world *w, size_t index) {
    weft_peer *peer = w->clients[index].peer;
    return peer && w->hub.hub.clients ? weft__hub_client_of(w->hub.hub.clients, peer) : NULL;
}

/* A call of the hub, and its withdrawal: who reads late is not asked what others have answered. */
static bool dialect_is_call(const char *line) {
    return strstr(line, "\"method\":\"$/") || strncmp(line, "{\"jsonrpc\":\"2.0\",\"id\":", 22) == 0;
}

/* Read all that a client was told. What it subscribed to is not its dialect's. */
static void dialect_read(dialect_world *w, size_t index) {
    hub_settle(&w->hub);
    for (const char *line; (line = hub_take(&w->clients[index])); hub_turn(&w->hub, 0)) {
        if (!strstr(line, "\"method\":") || strstr(line, "\"method\":\"event\",") || dialect_is_call(line))
            continue;
        size_t had = w->words[index] ? strlen(w->words[index]) : 0, len = strlen(line);
        w->words[index] = realloc(w->words[index], had + len + 2);
        memcpy(w->words[index] + had, line, len);
        memcpy(w->words[index] + had + len, "\n", 2);
    }
}

static void dialect_submitted(void *ctx, int r, const weft_task *task) {
    dialect_world *w = ctx;
    CHECK(r >= 0 || r == -ESHUTDOWN || r == -ECANCELED);
    if (r < 0)
        return;
    snprintf(w->task, sizeof w->task, "%s", task->id);
    snprintf(w->session, sizeof w->session, "%s", task->session);
}

static weft_run *dialect_submit(dialect_world *w) {
    weft_task_spec spec = {.prompt = "tell", .session = *w->session ? w->session : NULL};
    CHECK_INT(weft__task_submit(w->hub.engine, &spec, dialect_submitted, w), 0);
    hub_settle(&w->hub);
    weft_run *run = hub_run(&w->hub, w->task);
    CHECK(run != NULL);
    /* All watch the session, from the same event on. */
    for (size_t i = 0; i < 4; i++) {
        weft_hub_client *client = dialect_client(w, i);
        if (client)
            (void) weft__hub_client_started(client, w->session);
    }
    if (run)
        run->host->on_process(run->ctx, 4321);
    hub_settle(&w->hub);
    return run;
}

static void dialect_update(weft_run *run, const char *json) {
    weft_doc *doc = NULL;
    if (CHECK(weft_doc_parse(json, strlen(json), NULL, &doc) >= 0))
        run->host->on_update(run->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
}

static void dialect_ignore(void *ctx, int r, const weft_task *task) {
    (void) ctx, (void) r, (void) task;
}

static void dialect_first_task(dialect_world *w) {
    static const char question[] =
        "{\"kind\":\"permission\",\"title\":\"may I?\",\"options\":[{\"id\":\"y\",\"name\":\"Yes\","
        "\"kind\":\"allow_once\"}],\"detail\":{}}";
    weft_run *run = dialect_submit(w);
    REQUIRE(run != NULL);
    run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){"one\n{\"two\":2}\n", 14});
    hub_settle(&w->hub);
    dialect_update(run,
                   "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"three\\nfour\"}}");
    dialect_update(run, "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c1\",\"title\":\"look\"}");
    run->host->on_ask(run->ctx, "k", weft_raw(question, strlen(question)));
    hub_settle(&w->hub);
    CHECK_INT(weft__question_answer(w->hub.engine, "question-0000", "y", "suite", NULL, NULL, NULL), 0);
    hub_settle(&w->hub);
    run->host->on_output(run->ctx, WEFT_RUN_STDERR, (weft_bytes){"five \xc3\xa9\n", 8});
    hub_end(run, &(weft_run_end){.ok = true});
    hub_settle(&w->hub);
}

static void dialect_story(dialect_world *w) {
    dialect_first_task(w);
    weft_run *run = dialect_submit(w);
    REQUIRE(run != NULL);
    hub_end(run, &(weft_run_end){.reason = "exited", .error = "it broke", .exit_code = 1});
    hub_settle(&w->hub);
    run = dialect_submit(w);
    REQUIRE(run != NULL);
    CHECK_INT(weft__task_cancel(w->hub.engine, w->task, "suite", dialect_ignore, NULL), 0);
    hub_end(run, &(weft_run_end){.reason = "signalled", .error = "ended", .signal = 15, .exit_code = -1});
    /* And a page of the preview says something. */
    CHECK_INT(weft__engine_append(w->hub.engine, WEFT_STREAM_PREVIEW, "preview.console",
                                  WEFT_OBJ({"level", weft_str("log")}, {"message", weft_str("hello")}), NULL, NULL),
              0);
    hub_settle(&w->hub);
}

/* From here on this client's connection is full until it is read from. */
static void dialect_fill(dialect_world *w, size_t index) {
    static const char *const types[] = {"filler"};
    static char much[8192];
    weft_hub_client *client = dialect_client(w, index);
    weft_subscription_spec spec = {.id = "filler", .live = true, .types = types, .type_count = 1};
    if (!client || weft__hub_client_subscribe(client, &spec, NULL, NULL) < 0)
        return;
    memset(much, 'x', sizeof much - 1);
    hub_settle(&w->hub);
    for (int i = 0; i < 20 && w->clients[index].peer && !weft_peer_full(w->clients[index].peer); i++) {
        hub_happen(&w->hub, "filler", much);
        hub_settle(&w->hub);
    }
    CHECK(w->memory.fail_at || weft_peer_full(w->clients[index].peer));
}

/* ---- rows ---- */

static void dialect_check_json(const char *text, size_t len) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(text, len, NULL, &doc), 0);
    CHECK_INT(doc ? weft_typeof(weft_doc_root(doc)) : 0, WEFT_OBJECT);
    weft_doc_free(doc);
}

static bool dialect_has_scope(const weft_method *row, const char *scope) {
    return row->scope && strcmp(row->scope, scope) == 0;
}

/* Every row names one. Who may only look changes nothing; what changes the daemon itself is not for agents. */
static void dialect_check_scope(const weft_method *row) {
    static const char *const scopes[] = {WEFT_READ, WEFT_WORK, WEFT_ADMIN, "metrics", WEFT_RUNNER, WEFT_STANDBY, NULL};
    const char *const *scope = scopes;
    while (*scope && !dialect_has_scope(row, *scope))
        scope++;
    CHECK(*scope != NULL ||
          (!row->scope && row->flags & WEFT_ROW_OPEN)); /* who may call it before anybody knows who it is */
    if (dialect_has_scope(row, WEFT_READ))
        CHECK(!(row->flags & (WEFT_ROW_CHANGES | WEFT_FOR_PEOPLE)));
    if (dialect_has_scope(row, WEFT_WORK))
        CHECK(row->flags & WEFT_ROW_CHANGES);
    if (dialect_has_scope(row, WEFT_ADMIN))
        CHECK(row->flags & WEFT_FOR_PEOPLE);
}

static void dialect_check_row(const weft_method *row) {
    bool optional = false;
    CHECK(row->handler && row->help && *row->help && row->help[strlen(row->help) - 1] != '.');
    if (CHECK(row->result != NULL))
        dialect_check_json(row->result, strlen(row->result));
    if (CHECK(row->errors != NULL))
        for (const weft_error_row *error = row->errors; error->code; error++)
            CHECK(error->message && *error->message && error->reason && *error->reason);
    for (const weft_param *param = row->params; param && param->name; param++) {
        bool alias = param->flags & WEFT_ALIAS;
        CHECK(alias ? param > row->params && !(param->flags & WEFT_REQUIRED) : param->help && *param->help);
        if (alias) /* no place of its own in the list */
            continue;
        CHECK(!optional || !(param->flags & WEFT_REQUIRED)); /* OpenRPC wants required params first */
        optional |= !(param->flags & WEFT_REQUIRED);
    }
    dialect_check_scope(row);
    CHECK(row->params || strcmp(row->name, "ping") == 0); /* what ping is sent is nobody's business */
}

static void dialect_rows(const weft_dialect *dialect) {
    CHECK(dialect->name && *dialect->name);
    for (const weft_method *row = dialect->methods; row && row->name; row++) {
        test_row(row->name);
        dialect_check_row(row);
    }
}

/* rpc.discover shows each row. */
static void dialect_discovered(const weft_dialect *dialect) {
    dialect_world w;
    char *text = NULL;
    size_t len = 0;
    dialect_open(&w, dialect, 0);
    if (CHECK(weft_service_discover(w.hub.service, &text, &len) >= 0))
        dialect_check_json(text, len);
    for (const weft_method *row = dialect->methods; text && row && row->name; row++) {
        char name[96];
        test_row(row->name);
        snprintf(name, sizeof name, "{\"name\":\"%s\",\"summary\":", row->name);
        CHECK(memmem(text, len, name, strlen(name)) != NULL);
    }
    weft_text_free(text, &w.memory.alloc);
    dialect_close(&w);
}

/* Called by somebody who has every scope but the one it needs, a row is refused and nothing happens. */
static void dialect_needs_scope(const weft_dialect *dialect) {
    static const char *const others[][2] = {{WEFT_READ, "work admin metrics"},
                                            {WEFT_WORK, "read admin metrics"},
                                            {WEFT_ADMIN, "read work metrics"},
                                            {"metrics", "read work admin"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        dialect_world w;
        dialect_open(&w, dialect, 0);
        dialect_connect(&w, 0, dialect->name);
        weft_identity who = *weft_peer_identity(w.clients[0].peer);
        who.scopes = others[i][1];
        CHECK_INT(weft_peer_set_identity(w.clients[0].peer, &who), 0);
        for (const weft_method *row = dialect->methods; row && row->name; row++) {
            char request[200];
            if (!dialect_has_scope(row, others[i][0]))
                continue;
            test_row(row->name);
            snprintf(request, sizeof request, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\"}", row->name);
            hub_say(&w.clients[0], request);
            const char *answer = hub_take(&w.clients[0]);
            CHECK(answer && strstr(answer, "\"code\":403") && strstr(answer, "\"reason\":\"forbidden\""));
        }
        CHECK(w.hub.stops == 0 && w.hub.run_count == 0);
        dialect_close(&w);
    }
}

/* Something of the right type for each param that must be there. */
static void dialect_request(const weft_method *row, char *text, size_t size) {
    static const char *const values[] = {
        [WEFT_PARAM_any] = "1",     [WEFT_PARAM_str] = "\"x\"", [WEFT_PARAM_int] = "1", [WEFT_PARAM_num] = "1.5",
        [WEFT_PARAM_bool] = "true", [WEFT_PARAM_obj] = "{}",    [WEFT_PARAM_arr] = "[]"};
    size_t n = (size_t) snprintf(text, size, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"%s\",\"params\":{", row->name);
    for (const weft_param *param = row->params; param && param->name; param++)
        if (param->flags & WEFT_REQUIRED)
            n += (size_t) snprintf(text + n, size - n, "%s\"%s\":%s", text[n - 1] == '{' ? "" : ",", param->name,
                                   values[param->type]);
    snprintf(text + n, size - n, "}}");
}

static bool dialect_may_answer(const weft_method *row, const weft_json *message) {
    weft_json code = weft_pointer(message, "/error/code");
    if (weft_get(message, "result").text || weft_int_of(&code, 0) == WEFT_INVALID_PARAMS)
        return true;
    for (const weft_error_row *error = row->errors; error && error->code; error++)
        if (error->code == weft_int_of(&code, 0))
            return true;
    return false;
}

/* Every agent that is started has a process at once, and is done when nothing was answered then: a row may wait for either.
 */
static const char *dialect_answer(dialect_world *w) {
    const char *line = NULL;
    int64_t until = hub_ms() + HUB_PATIENCE_MS;
    bool ran = false;
    while (hub_ms() < until && w->clients[0].peer) {
        while ((line = hub_take(&w->clients[0])))
            if (strstr(line, "\"id\":7"))
                return line;
        if (!ran && w->hub.run_count) {
            w->hub.runs[0]->host->on_process(w->hub.runs[0]->ctx, 4321);
            ran = true;
            hub_settle(&w->hub);
        } else if (ran && w->hub.run_count)
            hub_end(w->hub.runs[0], &(weft_run_end){.ok = true});
        hub_turn(&w->hub, 1);
    }
    return "";
}

/* A row answers what its table promises: a result, or an error that it lists. */
static void dialect_callable(const weft_dialect *dialect) {
    for (const weft_method *row = dialect->methods; row && row->name; row++) {
        dialect_world w;
        char request[1024];
        weft_doc *doc = NULL;
        test_row(row->name);
        dialect_open(&w, dialect, 0);
        dialect_connect(&w, 0, dialect->name);
        dialect_request(row, request, sizeof request);
        hub_say(&w.clients[0], request);
        const char *answer = dialect_answer(&w);
        if (CHECK(weft_doc_parse(answer, strlen(answer), NULL, &doc) >= 0) && !dialect_may_answer(row, weft_doc_root(doc)))
            CHECK_STR(answer, "a result, or an error of its table");
        weft_doc_free(doc);
        dialect_close(&w);
    }
}

/* ---- words ---- */

/* Its clients hear its words and no others', and the others none of its. */
static void dialect_stays_at_home(const weft_dialect *dialect) {
    static const char theirs[] = "{\"jsonrpc\":\"2.0\",\"method\":\"bystander\"";
    dialect_world w;
    test_row("tells its own clients only");
    dialect_open(&w, dialect, 0);
    dialect_connect(&w, 0, dialect->name);
    dialect_connect(&w, 1, "bystander");
    dialect_connect(&w, 2, "of no dialect");
    dialect_story(&w);
    for (size_t i = 0; i < 3; i++)
        dialect_read(&w, i);
    CHECK(!w.words[0] || !strstr(w.words[0], "\"method\":\"bystander\""));
    CHECK(!dialect->render == !w.words[0]); /* the story has something for everybody who says anything */
    if (CHECK(w.words[1] != NULL))
        for (const char *line = w.words[1]; *line; line = strchr(line, '\n') + 1)
            CHECK(strncmp(line, theirs, strlen(theirs)) == 0);
    CHECK(!w.words[2]);
    dialect_close(&w);
}

/* Who reads late is told what the others were told. */
static void dialect_replays(const weft_dialect *dialect) {
    dialect_world w;
    test_row("replay is what was live");
    dialect_open(&w, dialect, 0);
    dialect_connect(&w, 0, dialect->name);
    dialect_connect(&w, 1, dialect->name);
    dialect_fill(&w, 1);
    dialect_read(&w, 0);
    dialect_story(&w);
    dialect_read(&w, 0);
    dialect_read(&w, 1);
    CHECK_STR(w.words[1] ? w.words[1] : "", w.words[0] ? w.words[0] : "");
    dialect_close(&w);
}

/* What it does not know, and what lacks everything it would look for, does not disturb it. */
static void dialect_ignores(const weft_dialect *dialect) {
    static const char *const odd[] = {"session.output", "session.update", "task.queued",    "task.process",
                                      "task.completed", "task.failed",    "question.asked", "question.answered"};
    dialect_world w;
    test_row("ignores what it does not know");
    dialect_open(&w, dialect, 0);
    dialect_connect(&w, 0, dialect->name);
    hub_happen(&w.hub, "no.such.event", "x");
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        CHECK_INT(weft__engine_append(w.hub.engine, "odd", odd[i], weft_obj(NULL, 0), NULL, NULL), 0);
    hub_settle(&w.hub);
    CHECK(w.clients[0].peer != NULL);
    dialect_read(&w, 0);
    CHECK(!w.words[0] || !strstr(w.words[0], "no.such.event"));
    dialect_close(&w);
}

static void dialect_count(dialect_world *w, size_t index, int *ret_live, int *ret_again) {
    hub_settle(&w->hub);
    for (const char *line; (line = hub_take(&w->clients[index])); hub_turn(&w->hub, 0)) {
        bool event = strstr(line, "\"method\":\"event\",") != NULL;
        CHECK(!event || strstr(line, "\"type\":\"task.") != NULL);
        *ret_live += event && strstr(line, "\"subscription\":\"live\"");
        *ret_again += event && strstr(line, "\"subscription\":\"again\"");
    }
}

/* A client of this dialect can subscribe as any other, and its filter holds, live and in replay. */
static void dialect_filters(const weft_dialect *dialect) {
    static const char *const types[] = {"task."};
    weft_subscription_spec spec = {.id = "live", .live = true, .types = types, .type_count = 1};
    dialect_world w;
    int live = 0, again = 0;
    test_row("a filter holds");
    dialect_open(&w, dialect, 0);
    dialect_connect(&w, 0, dialect->name);
    CHECK_INT(weft__hub_client_subscribe(dialect_client(&w, 0), &spec, NULL, NULL), 0);
    hub_settle(&w.hub);
    dialect_story(&w);
    dialect_count(&w, 0, &live, &again);
    spec.id = "again";
    spec.live = false;
    CHECK_INT(weft__hub_client_subscribe(dialect_client(&w, 0), &spec, NULL, NULL), 0);
    dialect_count(&w, 0, &live, &again);
    CHECK(live >= 9); /* three tasks: queued, started, a process, an end */
    CHECK_INT(again, live);
    dialect_close(&w);
}

/* ---- trouble ---- */

/* One leaves in the midst of the story, one while it catches up, one is never read from, one stays. */
static long dialect_trouble(const weft_dialect *dialect, long fail_at) {
    dialect_world w;
    dialect_open(&w, dialect, fail_at);
    for (size_t i = 0; i < 4; i++)
        dialect_connect(&w, i, dialect->name);
    dialect_fill(&w, 1);
    if (w.hub.hub.clients) {
        dialect_first_task(&w);
        hub_disconnect(&w.clients[0]);
        hub_take(&w.clients[1]);
        hub_disconnect(&w.clients[1]);
        dialect_read(&w, 3);
    }
    dialect_close(&w);
    return w.memory.count;
}

/* Events as the engine writes them, with something to decode in each text. */
static const struct {
    const char *type, *data;
} dialect_events[] = {
    {"task.queued", "{\"taskId\":\"task-1\",\"sessionId\":\"s\",\"prompt\":\"a \\u00e9\",\"agent\":\"a\",\"priority\":1}"},
    {"task.started", "{\"taskId\":\"task-1\",\"sessionId\":\"s\"}"},
    {"task.process", "{\"taskId\":\"task-1\",\"sessionId\":\"s\",\"pid\":77}"},
    {"task.retrying", "{\"taskId\":\"task-1\",\"attempt\":2,\"delayMs\":5,\"error\":\"it broke\"}"},
    {"task.completed", "{\"taskId\":\"task-1\",\"output\":\"o\\n\",\"outputBytes\":2,\"stopReason\":\"max_tokens\"}"},
    {"task.failed", "{\"taskId\":\"task-1\",\"error\":\"e\\n\",\"reason\":\"exited\",\"stopReason\":\"refusal\"}"},
    {"task.cancelled", "{\"taskId\":\"task-1\"}"},
    {"session.output",
     "{\"sessionId\":\"s\",\"taskId\":\"task-1\",\"stream\":\"stderr\",\"text\":\"one\\n{\\\"two\\\":2}\\n\"}"},
    {"session.update", "{\"sessionId\":\"s\",\"taskId\":\"task-1\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\","
                       "\"content\":{\"type\":\"text\",\"text\":\"three\\nfour\"}}}"},
    {"session.update", "{\"sessionId\":\"s\",\"taskId\":\"task-1\",\"update\":{\"sessionUpdate\":\"tool_call\"}}"},
};

/* Say one event to a client that has just come, with the n-th allocation of it failing. The outcome, and all that was said
 * in *ret (owned). *ret_done: there were fewer allocations. */
static int dialect_say_alone(dialect_world *w, const char *name, size_t which, long n, char **ret, bool *ret_done) {
    weft_event event = {.gseq = 1000000, .seq = 1, .stream = "x", .type = dialect_events[which].type};
    event.data = (weft_bytes){dialect_events[which].data, strlen(dialect_events[which].data)};
    weft_doc *doc = NULL;
    dialect_connect(w, 0, name);
    weft_hub_client *client = dialect_client(w, 0);
    CHECK_INT(weft__hub_client_started(client, "s"), 0);
    CHECK_INT(weft_doc_parse(event.data.data, event.data.len, &w->memory.alloc, &doc), 0);
    long before = w->memory.count;
    w->memory.fail_at = n ? before + n : 0;
    int r = weft__rendering_alone(client->words, &event, weft_doc_root(doc));
    w->memory.fail_at = 0;
    *ret_done = w->memory.count < before + n;
    weft_doc_free(doc);
    weft_bytes out = w->clients[0].peer ? weft_peer_output(w->clients[0].peer) : (weft_bytes){"", 0};
    *ret = weft__strndup(NULL, out.data ? out.data : "", out.len); /* it does not look behind */
    hub_disconnect(&w->clients[0]);
    return r;
}

/* Where memory is short, an event is said whole or the failure is known: nobody misses a word silently. */
static void dialect_says_all_or_fails(const weft_dialect *dialect) {
    dialect_world w;
    if (!dialect->render)
        return;
    dialect_open(&w, dialect, 0);
    for (size_t i = 0; i < sizeof dialect_events / sizeof dialect_events[0]; i++) {
        char *whole, *said;
        bool done;
        test_row(dialect_events[i].data);
        CHECK_INT(dialect_say_alone(&w, dialect->name, i, 0, &whole, &done), 0);
        for (long n = 1;; n++) {
            int r = dialect_say_alone(&w, dialect->name, i, n, &said, &done);
            if (r >= 0)
                CHECK_TEXT(said, strlen(said), whole);
            free(said);
            if (done)
                break;
        }
        free(whole);
    }
    dialect_close(&w);
}

static void dialect_survives(const weft_dialect *dialect) {
    char row[64];
    test_row("clients leave in the middle");
    long allocations = dialect_trouble(dialect, 0);
    for (long n = 1; n <= allocations; n++) {
        snprintf(row, sizeof row, "failing allocation %ld", n);
        test_row(row);
        dialect_trouble(dialect, n);
    }
}

static inline void dialect_suite(const weft_dialect *dialect) {
    dialect_rows(dialect);
    dialect_discovered(dialect);
    dialect_needs_scope(dialect);
    dialect_callable(dialect);
    dialect_stays_at_home(dialect);
    dialect_replays(dialect);
    dialect_ignores(dialect);
    dialect_filters(dialect);
    dialect_says_all_or_fails(dialect);
    dialect_survives(dialect);
    test_row(NULL);
}

#endif

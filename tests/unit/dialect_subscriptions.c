/* Subscriptions of one connection: several side by side, each at its own position and pace; and calls through them. With the
 * store in memory and with SQLite, whose pages come from another thread. */
#include "hub_client.h"
#include "hub_clients_private.h"

#define SUBSCRIBE(id, params) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"event.subscribe\",\"params\":{" params "}}"
#define UNSUBSCRIBE(id, params)                                                                                             \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"event.unsubscribe\",\"params\":{" params "}}"

static char folder[64];

/* A hub whose connections are full soon. */
static void open_hub(hub_world *w, const weft_store_kind *kind, const weft_dialect *const *dialects) {
    char path[96];
    snprintf(folder, sizeof folder, "/tmp/weft-subscriptions-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/weft.db", folder);
    CHECK_INT(hub_init(w, &(hub_opts){.kind = kind, .path = path, .service.out_soft = 65536, .dialects = dialects}), 0);
}

static void close_hub(hub_world *w) {
    hub_done(w);
    test_remove(folder);
}

static const weft_store_kind *const kinds[] = {&weft__memory, &weft__sqlite};
#define EACH_KIND(kind) for (size_t kind = 0; kind < 2; kind++)

/* ---- side by side ---- */

TEST(two_filters_on_one_connection) {
    hub_world w;
    hub_client c;
    open_hub(&w, &weft__memory, NULL);
    hub_connect(&w, "weft", &c);
    hub_say(&c, SUBSCRIBE(1, "\"id\":\"notices\",\"types\":[\"notice\"]"));
    HUB_TOLD(&c, "\"id\":1,\"result\":{\"resumed\":true");
    hub_say(&c, SUBSCRIBE(2, "\"id\":\"alarms\",\"types\":[\"alarm\"]"));
    HUB_TOLD(&c, "\"id\":2,\"result\":{\"resumed\":true");
    hub_say(&c, SUBSCRIBE(3, "\"types\":[\"al\",\"no\"]"));
    HUB_TOLD(&c, "\"id\":3,\"result\":{\"resumed\":true");
    hub_happen(&w, "notice", "a");
    HUB_TOLD(&c, "\"type\":\"notice\",\"time\":\"2026-01-01T00:00:00.000Z\",\"data\":{\"message\":\"a\"},\"subscription\":"
                 "\"notices\"}}");
    HUB_TOLD(&c, "\"data\":{\"message\":\"a\"}}}"); /* the one without a name says nothing of it */
    hub_happen(&w, "alarm", "b");
    HUB_TOLD(&c, "\"data\":{\"message\":\"b\"},\"subscription\":\"alarms\"}}");
    HUB_TOLD(&c, "\"data\":{\"message\":\"b\"}}}");
    hub_say(&c, UNSUBSCRIBE(4, "\"id\":\"alarms\""));
    HUB_TOLD(&c, "\"id\":4,\"result\":{}");
    hub_say(&c, UNSUBSCRIBE(5, "\"id\":\"alarms\""));
    HUB_TOLD(&c, "\"reason\":\"subscriptionNotFound\"");
    hub_say(&c, UNSUBSCRIBE(6, ""));
    HUB_TOLD(&c, "\"id\":6,\"result\":{}");
    hub_say(&c, UNSUBSCRIBE(7, ""));
    HUB_TOLD(&c, "\"id\":7,\"result\":{}"); /* as ever: without a name that is no mistake */
    hub_happen(&w, "alarm", "c");
    hub_happen(&w, "notice", "d");
    HUB_TOLD(&c, "\"message\":\"d\"},\"subscription\":\"notices\"");
    HUB_SILENT(&c);
    hub_disconnect(&c);
    close_hub(&w);
}

/* More names than are encoded once for all. */
TEST(many_names_for_one_event) {
    hub_world w;
    hub_client c;
    char text[200];
    open_hub(&w, &weft__memory, NULL);
    hub_connect(&w, "weft", &c);
    for (int i = 0; i < 40; i++) {
        snprintf(text, sizeof text, SUBSCRIBE(1, "\"id\":\"s%d\",\"types\":[\"notice\"]"), i);
        hub_say(&c, text);
        HUB_TOLD(&c, "\"resumed\":true");
    }
    hub_happen(&w, "notice", "a");
    for (int i = 0; i < 40; i++) {
        snprintf(text, sizeof text, "\"subscription\":\"s%d\"}}", i);
        HUB_TOLD(&c, text);
    }
    HUB_SILENT(&c);
    hub_disconnect(&c);
    close_hub(&w);
}

TEST(so_many_and_no_more) {
    hub_world w;
    hub_client c, d;
    char text[200];
    open_hub(&w, &weft__memory, NULL);
    hub_connect(&w, "aiwg", &c); /* its dialect's subscription does not count */
    hub_connect(&w, "aiwg", &d);
    for (int i = 0; i < WEFT_CLIENT_SUBSCRIPTIONS; i++) {
        snprintf(text, sizeof text, SUBSCRIBE(1, "\"id\":\"s%d\",\"types\":[\"notice\"]"), i);
        hub_say(&c, text);
        HUB_TOLD(&c, "\"resumed\":true");
    }
    hub_say(&c, SUBSCRIBE(2, "\"types\":[\"notice\"]"));
    HUB_TOLD(&c, "\"code\":429");
    hub_say(&c, SUBSCRIBE(3, "\"id\":\"more\",\"types\":[\"notice\"]"));
    HUB_TOLD(&c, "\"reason\":\"tooManySubscriptions\"");
    hub_say(&c, SUBSCRIBE(4, "\"id\":\"s7\",\"types\":[\"none\"]")); /* instead of one there is */
    HUB_TOLD(&c, "\"id\":4,\"result\":{\"resumed\":true");
    /* What could not be resumed does not count. */
    hub_say(&c, UNSUBSCRIBE(5, "\"id\":\"s8\""));
    HUB_TOLD(&c, "\"id\":5,\"result\":{}");
    for (int i = 0; i < 3; i++) {
        hub_say(&c, SUBSCRIBE(6, "\"id\":\"late\",\"after\":1000000"));
        HUB_TOLD(&c, "\"reason\":\"futureSeq\"");
    }
    hub_say(&c, SUBSCRIBE(7, "\"id\":\"more\",\"types\":[\"none\"]"));
    HUB_TOLD(&c, "\"id\":7,\"result\":{\"resumed\":true");
    hub_say(&d, SUBSCRIBE(8, "")); /* others have their own */
    HUB_TOLD(&d, "\"id\":8,\"result\":{\"resumed\":true");
    hub_disconnect(&c);
    hub_disconnect(&d);
    close_hub(&w);
}

TEST(the_same_id_twice) {
    hub_world w;
    hub_client c;
    open_hub(&w, &weft__memory, NULL);
    hub_happen(&w, "notice", "a");
    hub_happen(&w, "notice", "b");
    hub_connect(&w, "weft", &c);
    hub_say(&c, SUBSCRIBE(1, "\"id\":\"x\",\"after\":0,\"types\":[\"notice\"]"));
    hub_say(&c, SUBSCRIBE(2, "\"id\":\"x\",\"after\":0,\"types\":[\"notice\"]"));
    HUB_TOLD(&c, "\"reason\":\"superseded\"");
    HUB_TOLD(&c, "\"id\":2,\"result\":{\"resumed\":true");
    HUB_TOLD(&c, "\"message\":\"a\"");
    HUB_TOLD(&c, "\"message\":\"b\"");
    HUB_SILENT(&c);
    /* Also when the first has begun. */
    hub_say(&c, SUBSCRIBE(3, "\"id\":\"x\",\"types\":[\"alarm\"]"));
    HUB_TOLD(&c, "\"id\":3,\"result\":{\"resumed\":true");
    hub_happen(&w, "notice", "c");
    hub_happen(&w, "alarm", "d");
    HUB_TOLD(&c, "\"message\":\"d\"");
    HUB_SILENT(&c);
    hub_disconnect(&c);
    close_hub(&w);
}

TEST(one_stream_by_its_own_numbers) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client c;
        char text[200], seq[32];
        open_hub(&w, kinds[kind], NULL);
        hub_connect(&w, "weft", &c);
        hub_say(&c, SUBSCRIBE(1, "\"id\":\"hub\",\"stream\":\"hub\",\"types\":[\"notice\"]"));
        HUB_TOLD(&c, "\"id\":1,\"result\":{\"resumed\":true");
        CHECK_INT(weft__engine_append(w.engine, "aside", "notice", WEFT_OBJ({"message", weft_str("other")}), NULL, NULL), 0);
        hub_happen(&w, "notice", "a");
        const char *line = hub_wait(&c), *at = strstr(line, "\"seq\":");
        CHECK(strstr(line, "\"stream\":\"hub\"") && strstr(line, "\"message\":\"a\"") && at);
        snprintf(seq, sizeof seq, "%d", at ? atoi(at + 6) : 0);
        CHECK(!strstr(line, "\"gseq\":0"));
        hub_happen(&w, "notice", "b");
        HUB_TOLD(&c, "\"message\":\"b\"");
        hub_say(&c, UNSUBSCRIBE(2, "\"id\":\"hub\""));
        HUB_TOLD(&c, "\"id\":2");
        /* The first of another stream is its number 1, whatever happened elsewhere. */
        hub_say(&c, SUBSCRIBE(3, "\"id\":\"aside\",\"stream\":\"aside\",\"after\":0"));
        HUB_TOLD(&c, "\"id\":3,\"result\":{\"resumed\":true");
        HUB_TOLD(&c, "\"seq\":1,\"stream\":\"aside\"");
        snprintf(text, sizeof text, SUBSCRIBE(4, "\"id\":\"hub\",\"stream\":\"hub\",\"after\":%s"), seq);
        hub_say(&c, text);
        HUB_TOLD(&c, "\"id\":4,\"result\":{\"resumed\":true");
        HUB_TOLD(&c, "\"message\":\"b\"");
        hub_happen(&w, "notice", "c");
        HUB_TOLD(&c, "\"message\":\"c\"");
        hub_say(&c, SUBSCRIBE(5, "\"id\":\"hub\",\"stream\":\"hub\",\"after\":999"));
        HUB_TOLD(&c, "\"reason\":\"futureSeq\"");
        HUB_SILENT(&c);
        hub_disconnect(&c);
        close_hub(&w);
    }
}

/* ---- pace ---- */

/* "seq" of a notice, of which the message is a number; -1: something else. */
static int number_of(const char *line, const char *subscription) {
    const char *at = strstr(line, "\"message\":\"");
    return at && strstr(line, subscription) ? atoi(at + strlen("\"message\":\"")) : -1;
}

/* The log has every number once and in order; the state has some, in order, and the last. */
TEST(a_log_pauses_and_a_state_skips) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client c;
        int log = 0, state = -1, states = 0, count;
        open_hub(&w, kinds[kind], NULL);
        hub_connect(&w, "weft", &c);
        hub_say(&c, SUBSCRIBE(1, "\"id\":\"log\",\"types\":[\"notice\"]"));
        HUB_TOLD(&c, "\"id\":1");
        hub_say(&c, SUBSCRIBE(2, "\"id\":\"state\",\"types\":[\"notice\"],\"class\":\"state\""));
        HUB_TOLD(&c, "\"id\":2");
        count = hub_fill_connection(&c, 0);
        for (int more = 0; more < 400; more++)
            hub_make_notice(&w, count++);
        hub_settle(&w);
        CHECK(weft_peer_output(c.peer).len < 2 * 65536); /* what it does not read is not kept for it in memory */
        while (c.peer && (log < count || state < count - 1)) {
            const char *line = hub_wait(&c);
            int number = number_of(line, "\"subscription\":\"log\"");
            if (number >= 0)
                CHECK_INT(number, log++);
            else if (CHECK((number = number_of(line, "\"subscription\":\"state\"")) > state)) {
                state = number;
                states++;
            } else
                break;
        }
        CHECK_INT(log, count);
        CHECK_INT(state, count - 1);
        CHECK(states < count - 300);
        /* Both are live again. */
        hub_make_notice(&w, count);
        CHECK_INT(number_of(hub_wait(&c), "notice"), count);
        CHECK_INT(number_of(hub_wait(&c), "notice"), count);
        HUB_SILENT(&c);
        hub_disconnect(&c);
        close_hub(&w);
    }
}

/* A state that begins in the past is told where things stand. */
TEST(a_state_begins_with_the_latest) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client c;
        open_hub(&w, kinds[kind], NULL);
        for (int i = 0; i < 1000; i++)
            hub_make_notice(&w, i);
        hub_happen(&w, "alarm", "no notice");
        HUB_UNTIL(&w, hub_pending == 0);
        hub_connect(&w, "weft", &c);
        hub_say(&c, SUBSCRIBE(1, "\"class\":\"state\",\"after\":0,\"types\":[\"notice\"]"));
        HUB_TOLD(&c, "\"id\":1,\"result\":{\"resumed\":true");
        CHECK_INT(number_of(hub_wait(&c), "notice"), 999);
        HUB_SILENT(&c);
        hub_say(&c, SUBSCRIBE(2, "\"class\":\"state\",\"after\":0,\"types\":[\"none\"]"));
        HUB_TOLD(&c, "\"id\":2,\"result\":{\"resumed\":true");
        HUB_SILENT(&c);
        hub_say(&c, SUBSCRIBE(3, "\"class\":\"newest\""));
        HUB_TOLD(&c, "\"path\":\"/class\"");
        hub_disconnect(&c);
        close_hub(&w);
    }
}

TEST(unsubscribed_during_replay) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client c;
        open_hub(&w, kinds[kind], NULL);
        for (int i = 0; i < 500; i++)
            hub_make_notice(&w, i);
        hub_connect(&w, "weft", &c);
        hub_say(&c, SUBSCRIBE(1, "\"id\":\"old\",\"after\":0"));
        HUB_UNTIL(&w, weft_peer_full(c.peer));
        hub_say(&c, UNSUBSCRIBE(2, "\"id\":\"old\"")); /* it is not read before something has drained */
        const char *line;
        int events = 0;
        while (*(line = hub_wait(&c)) && !strstr(line, "\"id\":2"))
            events += strstr(line, "\"method\":\"event\"") != NULL;
        CHECK(strstr(line, "\"id\":2,\"result\":{}") != NULL);
        CHECK(events > 0 && events < 500);
        HUB_SILENT(&c);
        hub_disconnect(&c);
        close_hub(&w);
    }
}

static void on_trimmed(void *ctx, int r, uint64_t removed) {
    (void) removed;
    CHECK_INT(r, 0);
    *(bool *) ctx = true;
}

static void trim(hub_world *w, const char *stream, uint64_t rows) {
    bool trimmed = false;
    CHECK_INT(weft__store_trim(w->store, &(weft_trim){.stream = stream, .rows = rows}, on_trimmed, &trimmed), 0);
    HUB_UNTIL(w, trimmed);
}

/* What it should have heard is gone: it must come back. Whoever needs nothing of it stays. */
TEST(trimmed_during_replay) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client all, some;
        open_hub(&w, kinds[kind], NULL);
        hub_connect(&w, "weft", &all);
        hub_connect(&w, "weft", &some);
        for (int i = 0; i < 500; i++) {
            hub_make_notice(&w, i);
            CHECK_INT(weft__engine_append(w.engine, WEFT_STREAM_SESSION "x", "session.output",
                                          WEFT_OBJ({"sessionId", weft_str("x")}, {"text", weft_str("y")}), NULL, NULL),
                      0);
        }
        hub_settle(&w);
        hub_say(&all, SUBSCRIBE(1, "\"after\":0"));
        hub_say(&some, SUBSCRIBE(1, "\"after\":0,\"types\":[\"notice\"]"));
        HUB_UNTIL(&w, weft_peer_full(all.peer) && weft_peer_full(some.peer));
        trim(&w, WEFT_STREAM_SESSION "x", 1);
        while (*hub_wait(&all))
            ;
        CHECK(all.peer == NULL);
        HUB_TOLD(&some, "\"id\":1,\"result\":{\"resumed\":true");
        for (int i = 0; i < 500; i++)
            CHECK_INT(number_of(hub_wait(&some), "notice"), i);
        HUB_SILENT(&some);
        hub_disconnect(&all);
        hub_disconnect(&some);
        close_hub(&w);
    }
}

/* ---- forms ---- */

TEST(a_dialect_in_two_spellings) {
    hub_world w;
    hub_client plain, event;
    open_hub(&w, &weft__memory, NULL);
    hub_connect(&w, "cdev", &plain);
    hub_connect(&w, "cdev", &event);
    weft_hub_client *client = weft__hub_client_of(w.hub.clients, event.peer);
    CHECK_INT(weft__hub_client_speak(client, "cdev", "none"), -EINVAL);
    CHECK_INT(weft__hub_client_speak(client, "cdev", "event"), 0);
    hub_say(&plain, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.submit\",\"params\":{\"prompt\":\"x\"}}");
    HUB_TOLD(&plain, "\"method\":\"session_start\"");
    HUB_TOLD(&plain, "\"method\":\"claude_status\"");
    HUB_TOLD(&plain, "\"id\":1");
    HUB_TOLD(&event, "\"method\":\"event/session_start\"");
    HUB_TOLD(&event, "\"method\":\"event/claude_status\"");
    HUB_SILENT(&event);
    hub_disconnect(&plain);
    hub_disconnect(&event);
    close_hub(&w);
}

/* ---- calls ---- */

static int replies, withdrawn;

static void on_answered(void *ctx, int r, const weft_question *question) {
    (void) ctx, (void) question;
    CHECK(r == 0 || r == -EALREADY);
}

static void on_reply(const weft_hub *hub, weft_hub_client *client, const char *question, int r, const weft_answer *answer) {
    replies++;
    CHECK(weft__hub_client_peer(client) != NULL);
    if (r < 0 || !answer->result) {
        withdrawn += r == -ECANCELED;
        return;
    }
    r = weft__question_answer(hub->engine, question, weft_get_str(answer->result, "option", ""), "tester", NULL, on_answered,
                              NULL);
    CHECK(r == 0 || r == -EALREADY);
}

static void render_questions(const weft_hub *hub, weft_rendering *rendering, const weft_event *event,
                             const weft_json *data) {
    (void) hub;
    if (strcmp(event->type, "question.asked") == 0)
        weft__render_call(rendering, NULL, weft_get_str(data, "questionId", ""), "mayI",
                          WEFT_OBJ({"title", weft_str(weft_get_str(data, "title", ""))}), on_reply);
    else if (strncmp(event->type, "question.", 9) == 0)
        weft__render_notify(rendering, NULL, "settled", WEFT_OBJ({"how", weft_str(event->type)}));
}

static const weft_dialect asker = {.name = "asker", .render = render_questions};
/* Another that asks, and cancels as ACP does. A connection becomes its own with initialize. */
static int hear_initialize(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_null());
}

static bool claims_all(const weft_json *params) {
    (void) params;
    return true;
}

static const weft_method acp_asker_methods[] = {
    {.name = "initialize", .handler = hear_initialize, .help = "", .flags = WEFT_DECIDES}, {0}};
static const weft_dialect acp_asker = {.name = "acp asker",
                                       .methods = acp_asker_methods,
                                       .claims = claims_all,
                                       .render = render_questions,
                                       .style = WEFT_STYLE_ACP};
static const weft_dialect *const two_askers[] = {&asker, &acp_asker, &weft__aiwg, &weft__hub_methods, NULL};
static const weft_dialect *const with_asker[] = {&asker, &weft__aiwg, &weft__hub_methods, NULL};
#define OPTIONS "\"options\":[{\"id\":\"yes\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]"

static void ask(hub_world *w, const char *key) {
    static const char question[] = "{\"kind\":\"permission\",\"title\":\"rm\"," OPTIONS ",\"detail\":{}}";
    weft_run *run = hub_run(w, "task-0000");
    REQUIRE(run != NULL);
    run->host->on_ask(run->ctx, key, weft_raw(question, strlen(question)));
}

static void submit(hub_world *w, hub_client *c) {
    hub_say(c, "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"task.submit\",\"params\":{\"prompt\":\"x\"}}");
    HUB_TOLD(c, "\"taskId\":\"task-0000\"");
    HUB_UNTIL(w, hub_run(w, "task-0000"));
}

TEST(a_call_is_withdrawn_when_somebody_else_answers) {
    EACH_KIND(kind) {
        hub_world w;
        hub_client a, b, weft;
        replies = withdrawn = 0;
        open_hub(&w, kinds[kind], with_asker);
        hub_connect(&w, "asker", &a);
        hub_connect(&w, "asker", &b);
        hub_connect(&w, "weft", &weft);
        submit(&w, &weft);
        ask(&w, "k1");
        HUB_TOLD(&a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"mayI\",\"params\":{\"title\":\"rm\"}}");
        HUB_TOLD(&b, "\"method\":\"mayI\"");
        hub_say(&a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"option\":\"yes\"}}");
        HUB_TOLD(&b, "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":1}}");
        HUB_TOLD(&b, "\"how\":\"question.answered\"");
        HUB_TOLD(&a, "\"how\":\"question.answered\"");
        hub_say(&b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"option\":\"yes\"}}"); /* too late */
        HUB_UNTIL(&w, w.heard_count == 1);
        CHECK_STR(w.heard[0], "task-0000 answer k1 yes");
        CHECK(replies == 2 && withdrawn == 1);
        /* By a method instead of an answer: everybody's call is withdrawn. */
        ask(&w, "k2");
        HUB_TOLD(&a, "\"id\":2,\"method\":\"mayI\"");
        HUB_TOLD(&b, "\"id\":2,\"method\":\"mayI\"");
        hub_say(&weft,
                "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"question.answer\",\"params\":[\"question-0001\",\"yes\"]}");
        HUB_TOLD(&weft, "\"answered\":true");
        HUB_TOLD(&a, "\"$/cancelRequest\",\"params\":{\"id\":2}");
        HUB_TOLD(&b, "\"$/cancelRequest\",\"params\":{\"id\":2}");
        CHECK(replies == 4 && withdrawn == 3);
        /* Who speaks another dialect, or goes, is not asked any more; the question stays. */
        ask(&w, "k3");
        HUB_TOLD(&a, "\"how\"");
        HUB_TOLD(&b, "\"how\"");
        HUB_TOLD(&a, "\"id\":3,\"method\":\"mayI\"");
        HUB_TOLD(&b, "\"id\":3,\"method\":\"mayI\"");
        CHECK_INT(weft__hub_client_speak(weft__hub_client_of(w.hub.clients, a.peer), "weft", NULL), 0);
        HUB_TOLD(&a, "\"$/cancelRequest\",\"params\":{\"id\":3}");
        hub_disconnect(&b);
        CHECK(replies == 6);
        CHECK_INT(weft__question_find(w.engine, "question-0002")->state, WEFT_QUESTION_OPEN);
        hub_disconnect(&a);
        hub_disconnect(&weft);
        close_hub(&w);
    }
}

/* In the style of the dialect that asked, also when another is spoken since. */
TEST(a_call_is_withdrawn_in_the_style_of_its_dialect) {
    hub_world w;
    hub_client a, b, weft;
    replies = withdrawn = 0;
    open_hub(&w, &weft__memory, two_askers);
    hub_connect(&w, "", &a);
    hub_connect(&w, "asker", &b);
    hub_connect(&w, "weft", &weft);
    hub_say(&a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}");
    HUB_TOLD(&a, "\"id\":1,\"result\":null");
    submit(&w, &weft);
    ask(&w, "k1");
    HUB_TOLD(&a, "\"id\":1,\"method\":\"mayI\"");
    HUB_TOLD(&b, "\"id\":1,\"method\":\"mayI\"");
    hub_say(&weft, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"question.answer\",\"params\":[\"question-0000\",\"yes\"]}");
    HUB_TOLD(&a, "\"method\":\"$/cancel_request\",\"params\":{\"requestId\":1}");
    HUB_TOLD(&b, "\"method\":\"$/cancelRequest\",\"params\":{\"id\":1}");
    HUB_TOLD(&a, "\"how\":\"question.answered\"");
    ask(&w, "k2");
    HUB_TOLD(&a, "\"id\":2,\"method\":\"mayI\"");
    CHECK_INT(weft__hub_client_speak(weft__hub_client_of(w.hub.clients, a.peer), "asker", NULL), 0);
    HUB_TOLD(&a, "\"method\":\"$/cancel_request\",\"params\":{\"requestId\":2}");
    ask(&w, "k3");
    HUB_TOLD(&a, "\"id\":3,\"method\":\"mayI\"");
    hub_say(&weft, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"question.answer\",\"params\":[\"question-0002\",\"yes\"]}");
    HUB_TOLD(&a, "\"method\":\"$/cancelRequest\",\"params\":{\"id\":3}");
    hub_disconnect(&a);
    hub_disconnect(&b);
    hub_disconnect(&weft);
    close_hub(&w);
}

/* Who was slow is asked what is still open, and not what is settled. */
TEST(only_open_questions_are_asked_late) {
    hub_world w;
    hub_client a, weft;
    replies = withdrawn = 0;
    open_hub(&w, &weft__memory, with_asker);
    hub_connect(&w, "asker", &a);
    hub_connect(&w, "weft", &weft);
    submit(&w, &weft);
    hub_say(&a, SUBSCRIBE(1, "\"types\":[\"notice\"]"));
    HUB_TOLD(&a, "\"id\":1");
    int count = hub_fill_connection(&a, 0);
    ask(&w, "k1");
    ask(&w, "k2");
    hub_settle(&w);
    hub_say(&weft, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"question.answer\",\"params\":[\"question-0000\",\"yes\"]}");
    HUB_TOLD(&weft, "\"answered\":true");
    int notices = 0, calls = 0;
    for (const char *line; notices < count || !calls;) {
        if (!*(line = hub_wait(&a)))
            break;
        notices += strstr(line, "\"type\":\"notice\"") != NULL;
        calls += strstr(line, "\"method\":\"mayI\"") != NULL;
    }
    hub_settle(&w);
    CHECK_INT(notices, count);
    CHECK_INT(calls, 1);
    CHECK_INT(replies, 0);
    hub_disconnect(&a);
    hub_disconnect(&weft);
    close_hub(&w);
}

TEST(calls_have_a_limit) {
    hub_world w;
    hub_client a;
    replies = withdrawn = 0;
    open_hub(&w, &weft__memory, with_asker);
    hub_connect(&w, "asker", &a);
    weft_subscription *words = weft__hub_client_of(w.hub.clients, a.peer)->words;
    REQUIRE(words != NULL);
    for (int i = 0; i < WEFT_CLIENT_CALLS; i++) {
        CHECK_INT(weft__subscription_call(words, "question-9999", "m", weft_none(), on_reply), 0);
        while (hub_take(&a))
            ;
    }
    CHECK_INT(weft__subscription_call(words, "question-9999", "m", weft_none(), on_reply), -ENOBUFS);
    hub_say(&a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"no\"}}");
    CHECK_INT(replies, 1);
    CHECK_INT(weft__subscription_call(words, "question-9999", "m", weft_none(), on_reply), 0);
    hub_disconnect(&a);
    CHECK_INT(replies, WEFT_CLIENT_CALLS + 1);
    close_hub(&w);
}

TEST_MAIN(CASE(two_filters_on_one_connection) CASE(many_names_for_one_event) CASE(so_many_and_no_more)
              CASE(the_same_id_twice) CASE(one_stream_by_its_own_numbers) CASE(a_log_pauses_and_a_state_skips)
                  CASE(a_state_begins_with_the_latest) CASE(unsubscribed_during_replay) CASE(trimmed_during_replay)
                      CASE(a_dialect_in_two_spellings) CASE(a_call_is_withdrawn_when_somebody_else_answers)
                          CASE(a_call_is_withdrawn_in_the_style_of_its_dialect) CASE(only_open_questions_are_asked_late)
                              CASE(calls_have_a_limit))

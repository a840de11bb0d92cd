/* Every row of every dialect says what it is; and the few things about rows that no conversation shows. */
#include "hub_world.h"

static const weft_dialect *const dialects[] = {&weft__aiwg, &weft__cdev, &weft__acp, &weft__hub_methods, NULL};

static void check_json(const char *text) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    CHECK_INT(doc ? weft_typeof(weft_doc_root(doc)) : 0, WEFT_OBJECT);
    weft_doc_free(doc);
}

static void check_errors(const weft_error_row *errors) {
    REQUIRE(errors != NULL);
    for (; errors->code; errors++)
        CHECK(errors->message && *errors->message && errors->reason && *errors->reason);
}

/* OpenRPC wants required params first. */
static void check_params(const weft_param *params) {
    bool optional = false;
    for (; params && params->name; params++) {
        CHECK(params->help && *params->help);
        CHECK(!optional || !(params->flags & WEFT_REQUIRED));
        optional |= !(params->flags & WEFT_REQUIRED);
    }
}

static bool is_one_of(const char *word, const char *const *words) {
    while (word && *words && strcmp(word, *words) != 0)
        words++;
    return word && *words;
}

/* Who may only look changes nothing; what changes the daemon itself is for administrators, and not for agents. */
static void check_scope(const weft_method *row) {
    static const char *const scopes[] = {"read", "work", "admin", "metrics", NULL};
    CHECK(is_one_of(row->scope, scopes));
    if (row->scope && strcmp(row->scope, "read") == 0)
        CHECK(!(row->flags & (WEFT_CHANGES | WEFT_FOR_PEOPLE)));
    if (row->scope && strcmp(row->scope, "work") == 0)
        CHECK(row->flags & WEFT_CHANGES);
    if (row->scope && strcmp(row->scope, "admin") == 0)
        CHECK(row->flags & WEFT_FOR_PEOPLE);
}

TEST(every_row_is_described) {
    for (size_t i = 0; dialects[i]; i++)
        for (const weft_method *row = dialects[i]->methods; row->name; row++) {
            test_row(row->name);
            CHECK(row->help && *row->help && row->help[strlen(row->help) - 1] != '.');
            CHECK(row->result != NULL);
            if (row->result)
                check_json(row->result);
            check_errors(row->errors);
            check_params(row->params);
            check_scope(row);
            /* What ping is sent is nobody's business. */
            CHECK(row->params || strcmp(row->name, "ping") == 0);
        }
    test_row(NULL);
}

TEST(discovery_shows_all_of_them) {
    hub_world w;
    char *text = NULL;
    size_t len, count = 0;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    CHECK_INT(weft_service_discover(w.service, &text, &len), 0);
    check_json(text);
    for (size_t i = 0; dialects[i]; i++)
        for (const weft_method *row = dialects[i]->methods; row->name; row++, count++) {
            char name[64];
            snprintf(name, sizeof name, "{\"name\":\"%s\",\"summary\":", row->name);
            CHECK(strstr(text, name) != NULL);
        }
    CHECK_INT(count, 45);
    weft_text_free(text, NULL);
    hub_done(&w);
}

static weft_peer *peer_with(hub_world *w, const char *scopes) {
    weft_identity who = {
        .transport = "mem", .dialect = "weft", .name = "", .scopes = scopes, .address = "", .authenticated = true};
    weft_peer *peer = NULL;
    CHECK_INT(weft_peer_new(w->service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &peer), 0);
    return peer;
}

static weft_peer *peer_of(hub_world *w) {
    return peer_with(w, "*");
}

static void say(weft_peer *peer, const char *text) {
    CHECK_INT(weft_peer_feed(peer, text, strlen(text), 1), 0);
}

/* An HTTP POST has a peer that is never opened as a client. */
/* The output does not end with a NUL. */
static bool says(weft_peer *peer, const char *part) {
    weft_bytes out = weft_peer_output(peer);
    return memmem(out.data, out.len, part, strlen(part)) != NULL;
}

/* Every method, called by somebody who has every scope but the one it needs. */
TEST(no_method_without_its_scope) {
    static const struct {
        const char *scope, *others;
    } rows[] = {{"read", "work admin metrics"}, {"work", "read admin metrics"}, {"admin", "read work metrics"}};
    hub_world w;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        weft_peer *peer = peer_with(&w, rows[k].others);
        for (size_t i = 0; dialects[i]; i++)
            for (const weft_method *row = dialects[i]->methods; row->name; row++) {
                char text[200];
                if (strcmp(row->scope, rows[k].scope) != 0)
                    continue;
                test_row(row->name);
                snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"}\n", row->name);
                say(peer, text);
                CHECK(says(peer, "\"code\":403") && says(peer, "\"reason\":\"forbidden\""));
                weft_peer_sent(peer, weft_peer_output(peer).len);
            }
        weft_peer_free(peer);
    }
    test_row(NULL);
    CHECK_INT(w.stops, 0);
    hub_done(&w);
}

TEST(who_cannot_listen_cannot_subscribe) {
    hub_world w;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    weft_peer *post = peer_of(&w), *socket = peer_of(&w);
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\"}\n";
    say(post, request);
    CHECK(says(post, "\"reason\":\"cannotListen\""));
    weft_peer_sent(post, weft_peer_output(post).len);
    weft__hub_clients_open(w.hub.clients, socket);
    say(post, request);
    CHECK(says(post, "\"reason\":\"cannotListen\""));
    say(post, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"agent/run\",\"params\":{\"prompt\":\"x\"}}\n");
    HUB_UNTIL(&w, hub_run(&w, "task-0000"));
    hub_run(&w, "task-0000")->host->on_process(hub_run(&w, "task-0000")->ctx, 77);
    HUB_UNTIL(&w, memmem(weft_peer_output(post).data, weft_peer_output(post).len, "\"pid\":77", 8));
    weft__hub_clients_close(w.hub.clients, post);
    weft_peer_free(post);
    weft__hub_clients_close(w.hub.clients, socket);
    weft_peer_free(socket);
    hub_done(&w);
}

/* Requests that wait for the store when their connection, or the hub, goes. */
TEST(requests_that_are_still_open_at_the_end) {
    static const char requests[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\",\"params\":{\"after\":0}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"agent/run\",\"params\":{\"prompt\":\"x\"}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"agent.use\",\"params\":{\"agent\":\"double\"}}\n"
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"task.submit\",\"params\":{\"prompt\":\"x\"}}\n";
    hub_world w;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    weft_peer *a = peer_of(&w), *b = peer_of(&w), *c = peer_of(&w);
    weft__hub_clients_open(w.hub.clients, a);
    weft__hub_clients_open(w.hub.clients, b);
    say(a, requests);
    weft__hub_clients_close(w.hub.clients, a);
    weft_peer_free(a);
    hub_settle(&w);
    static char much[64 * 1024];
    memset(much, 'x', sizeof much);
    weft_run *run = hub_run(&w, "task-0000");
    REQUIRE(run != NULL);
    run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){much, sizeof much});
    hub_settle(&w);
    say(c, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"task.get\",\"params\":{\"taskId\":\"task-0000\"}}\n");
    say(b, requests);
    CHECK_INT(weft_peer_open_requests(b), 3); /* agent/run is refused at once, the other one runs */
    CHECK_INT(weft_peer_open_requests(c), 1);
    hub_done(&w);
    weft_peer_free(b);
    weft_peer_free(c);
}

/* Who may work may not name what is run, nor where. */
TEST(programs_and_folders_need_their_scope) {
    static const char servers[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session.create\",\"params\":{\"mcpServers\":[{\"name\":\"x\"}]}}\n";
    static const char folder[] =
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session.create\",\"params\":{\"folder\":\"x\"}}\n";
    hub_world w;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    weft_peer *peer = peer_with(&w, "read work admin metrics");
    say(peer, servers);
    hub_settle(&w);
    CHECK(says(peer, "\"id\":1,\"error\":{\"code\":403") && says(peer, "forbidden"));
    say(peer, folder);
    hub_settle(&w);
    CHECK(says(peer, "\"id\":2,\"error\":{\"code\":403"));
    weft_peer_free(peer);
    peer = peer_with(&w, "work exec");
    say(peer, servers);
    say(peer, folder);
    hub_settle(&w);
    CHECK(says(peer, "agentCannot") && says(peer, "there is no such folder") && !says(peer, "forbidden"));
    weft_peer_free(peer);
    hub_done(&w);
}

TEST_MAIN(CASE(programs_and_folders_need_their_scope) CASE(every_row_is_described) CASE(discovery_shows_all_of_them)
              CASE(no_method_without_its_scope) CASE(who_cannot_listen_cannot_subscribe)
                  CASE(requests_that_are_still_open_at_the_end))

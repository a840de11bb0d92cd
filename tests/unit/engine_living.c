/* Agents' processes that live: which one serves a turn, how long one is kept, who hears what when one ends, what an agent
 * asks of its client, and what a turn cost. The driver is played by the test. */
#include "engine/living_world.h"

TEST(the_next_turn_of_a_session_is_in_its_process) {
    engine_world w;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "first", &a);
    CHECK_STR(stage.processes[0].task, "");
    stage.processes[0].host->on_process(stage.processes[0].ctx, 77);
    complete(&w, "first", a.id);
    CHECK_INT(weft__task_find(w.engine, a.id)->exit_code, -1);
    run(&w, NULL, a.session, "second", &b);
    CHECK_INT(stage.opened, 1);
    CHECK_INT(stage.begun, 1);
    CHECK_INT(stage.sessions[0].prompts, 2);
    ENGINE_UNTIL(&w, weft__task_find(w.engine, b.id)->pid == 77);
    complete(&w, "second", b.id);
    CHECK_INT(stage.processes[0].stops, 0);
    finish(&w);
}

TEST(another_session_uses_an_idle_process) {
    engine_world w;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "first", &a);
    complete(&w, "first", a.id);
    run(&w, NULL, NULL, "second", &b);
    CHECK_INT(stage.opened, 1);
    CHECK_INT(stage.begun, 2);
    complete(&w, "second", b.id);
    finish(&w);
}

TEST(a_turn_at_a_time_unless_it_is_shared) {
    engine_world w;
    task_outcome a, b, c, d, e;
    begin(&w, (weft_engine_limits){.max_running = 8});
    run(&w, NULL, NULL, "a", &a);
    run(&w, NULL, NULL, "b", &b);
    CHECK_INT(stage.opened, 2);
    run(&w, "shared", NULL, "c", &c);
    run(&w, "shared", NULL, "d", &d);
    CHECK_INT(stage.opened, 3);
    CHECK_INT(stage.processes[2].sessions, 2);
    run(&w, "shared", NULL, "e", &e);
    CHECK_INT(stage.opened, 4);
    finish(&w);
}

TEST(a_crash_fails_all_turns_in_it) {
    engine_world w;
    task_outcome a, b, c;
    begin(&w, (weft_engine_limits){0});
    run(&w, "shared", NULL, "a", &a);
    run(&w, "shared", NULL, "b", &b);
    for (int i = 0; i < 2; i++)
        stage.sessions[i].host->on_turn_end(
            stage.sessions[i].ctx,
            &(weft_turn_end){.reason = "exited", .error = "it crashed", .gone = true, .exit_code = 3});
    end_process(&stage.processes[0], 3);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_FAILED && state_of(&w, b.id) == WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, b.id)->reason, "exited");
    CHECK_INT(weft__task_find(w.engine, b.id)->exit_code, 3);
    run(&w, "shared", a.session, "c", &c);
    CHECK_INT(stage.opened, 2);
    CHECK(stage.processes[0].freed);
    complete(&w, "c", c.id);
    finish(&w);
}

TEST(who_has_no_turn_for_long_is_ended) {
    engine_world w;
    task_outcome a;
    begin(&w, (weft_engine_limits){.idle_ms = 1});
    run(&w, NULL, NULL, "a", &a);
    complete(&w, "a", a.id);
    ENGINE_UNTIL(&w, stage.processes[0].stops == 1);
    end_process(&stage.processes[0], 0);
    ENGINE_UNTIL(&w, stage.processes[0].freed);
    finish(&w);
}

TEST(so_many_are_kept) {
    engine_world w;
    task_outcome a, b, c;
    begin(&w, (weft_engine_limits){.max_idle = 2});
    run(&w, NULL, NULL, "a", &a);
    run(&w, NULL, NULL, "b", &b);
    run(&w, NULL, NULL, "c", &c);
    complete(&w, "b", b.id);
    complete(&w, "a", a.id);
    CHECK_INT(stage.processes[0].stops + stage.processes[1].stops, 0);
    complete(&w, "c", c.id);
    CHECK_INT(stage.processes[0].stops, 1); /* the one that was used first */
    CHECK_INT(stage.processes[1].stops + stage.processes[2].stops, 0);
    finish(&w);
}

TEST(a_failed_turn_ends_its_process_and_waits_for_it) {
    engine_world w;
    task_outcome a;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    end_turn(turn_of("a"), "agentError");
    engine_settle(&w);
    CHECK_INT(state_of(&w, a.id), WEFT_TASK_RUNNING);
    CHECK_INT(stage.processes[0].stops, 1);
    end_process(&stage.processes[0], 4);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_FAILED);
    CHECK_INT(weft__task_find(w.engine, a.id)->exit_code, 4);
    finish(&w);
}

TEST(one_that_is_not_kept_ends_with_its_turn) {
    engine_world w;
    task_outcome a;
    begin(&w, (weft_engine_limits){0});
    run(&w, "brief", NULL, "a", &a);
    CHECK_STR(stage.processes[0].task, a.id);
    end_turn(turn_of("a"), NULL);
    CHECK_INT(stage.processes[0].stops, 1);
    end_process(&stage.processes[0], 0);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_COMPLETED);
    CHECK_INT(weft__task_find(w.engine, a.id)->exit_code, 0);
    finish(&w);
}

static void cancelled(void *ctx, int r, const weft_task *task) {
    (void) task;
    CHECK_INT(r, 0);
    ++*(int *) ctx;
}

/* Only a conversation is gone on with: what a task on its own starts ends with it. */
TEST(a_process_is_kept_for_a_conversation) {
    engine_world w;
    task_outcome a, b, c, d;
    begin(&w, (weft_engine_limits){.idle_ms = -1, .talk_idle_ms = 3600000});
    run(&w, NULL, NULL, "task", &a);
    CHECK_STR(stage.processes[0].task, a.id);
    end_turn(turn_of("task"), NULL);
    CHECK_INT(stage.processes[0].stops, 1);
    end_process(&stage.processes[0], 0);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_COMPLETED);
    run(&w, NULL, a.session, "talk", &b);
    CHECK_INT(stage.opened, 2);
    CHECK_STR(stage.processes[1].task, "");
    complete(&w, "talk", b.id);
    CHECK_INT(stage.processes[1].stops, 0);
    run(&w, NULL, NULL, "alone", &c); /* not in the one that is kept */
    CHECK_INT(stage.opened, 3);
    run(&w, NULL, a.session, "more", &d);
    CHECK_INT(stage.opened, 3);
    CHECK_INT(weft__task_cancel(w.engine, d.id, "test", NULL, NULL), 0);
    engine_settle(&w);
    end_turn(turn_of("more"), "cancelled");
    CHECK_INT(stage.processes[1].stops, 1); /* with all that it started */
    end_process(&stage.processes[1], 0);
    ENGINE_UNTIL(&w, state_of(&w, d.id) == WEFT_TASK_CANCELLED);
    finish(&w);
}

TEST(a_cancelled_turn_leaves_the_process) {
    engine_world w;
    task_outcome a, b;
    int done = 0;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    CHECK_INT(weft__task_cancel(w.engine, a.id, "ann", cancelled, &done), 0);
    CHECK_INT(stage.sessions[0].stops, 1);
    CHECK_INT(stage.processes[0].stops, 0);
    end_turn(turn_of("a"), "cancelled");
    CHECK(engine_wait(&w, &done, 1));
    run(&w, NULL, a.session, "b", &b);
    CHECK_INT(stage.opened, 1);
    complete(&w, "b", b.id);
    finish(&w);
}

TEST(a_changed_agent_gets_a_new_process) {
    weft_agent changed[3], same[3];
    engine_world w;
    task_outcome a, b, c;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    run(&w, "shared", NULL, "b", &b);
    complete(&w, "a", a.id);
    memcpy(same, agents_list, sizeof same);
    weft__engine_set(w.engine, &(weft_agents){same, 3, "one"}, &w.opts.limits);
    CHECK_INT(stage.processes[0].stops, 0); /* other memory, the same agent */
    memcpy(changed, agents_list, sizeof changed);
    changed[0].argv = changed[1].argv = argv_new;
    const weft_agents now = {changed, 3, "one"};
    weft__engine_set(w.engine, &now, &w.opts.limits);
    CHECK_INT(stage.processes[0].stops, 1);
    CHECK_INT(stage.processes[1].stops, 0); /* it has a turn */
    run(&w, NULL, a.session, "c", &c);
    CHECK_INT(stage.opened, 3);
    end_turn(turn_of("b"), NULL);
    CHECK_INT(stage.processes[1].stops, 1);
    end_process(&stage.processes[0], 0);
    end_process(&stage.processes[1], 0);
    ENGINE_UNTIL(&w, state_of(&w, b.id) == WEFT_TASK_COMPLETED);
    complete(&w, "c", c.id);
    finish(&w);
}

TEST(one_that_is_about_to_go_takes_no_turn) {
    engine_world w;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    stage.sessions[0].host->on_session(stage.sessions[0].ctx, &(weft_session_info){.agent_session = "own"});
    complete(&w, "a", a.id);
    stage.refuse = -EPIPE;
    run(&w, NULL, a.session, "b", &b);
    CHECK_INT(stage.opened, 2);
    CHECK_STR(stage.sessions[1].again, "own"); /* it goes on in the new one */
    CHECK(stage.sessions[0].closed);
    CHECK_INT(stage.processes[0].stops, 1);
    complete(&w, "b", b.id);
    finish(&w);
}

TEST(the_stop_waits_for_those_without_a_turn) {
    engine_world w;
    task_outcome a;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    complete(&w, "a", a.id);
    weft__engine_stop(w.engine, false, world_stopped, &w);
    engine_settle(&w);
    CHECK_INT(stage.processes[0].stops, 1);
    CHECK_INT(w.stopped, 0);
    weft__engine_stop(w.engine, true, world_stopped, &w);
    CHECK_INT(stage.processes[0].forced, 1);
    end_process(&stage.processes[0], 0);
    CHECK(engine_wait(&w, &w.stopped, 1));
    finish(&w);
}

TEST(what_a_turn_cost_is_stored) {
    static const char text[] = "{\"totalTokens\":5}";
    engine_world w;
    task_outcome a;
    weft_doc *doc;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    CHECK_INT(weft_doc_parse(text, sizeof text - 1, NULL, &doc), 0);
    stage.sessions[0].host->on_usage(stage.sessions[0].ctx, weft_doc_root(doc));
    weft_doc_free(doc);
    complete(&w, "a", a.id);
    CHECK(strstr(w.heard, "session.usage task.completed ") != NULL);
    finish(&w);
}

/* One pipe for all: it rests while any of them has too much. */
TEST(it_is_paused_as_long_as_one_of_its_turns_is) {
    static char much[8 << 20];
    engine_world w;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, "shared", NULL, "a", &a);
    run(&w, "shared", NULL, "b", &b);
    memset(much, 'x', sizeof much);
    for (int i = 0; i < 2; i++)
        stage.sessions[i].host->on_output(stage.sessions[i].ctx, WEFT_RUN_STDOUT, (weft_bytes){much, sizeof much});
    CHECK(stage.processes[0].paused);
    ENGINE_UNTIL(&w, !stage.processes[0].paused);
    complete(&w, "a", a.id);
    complete(&w, "b", b.id);
    finish(&w);
}

/* ---- what agents ask of their client ---- */

static int passage_calls;
static char passage_heard[128];

static int read_file(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params) {
    passage_calls++;
    snprintf(passage_heard, sizeof passage_heard, "%s %s %s", call->session, call->task, weft_get_str(params, "path", ""));
    CHECK(ctx == &passage_calls);
    return weft_reply(req, WEFT_OBJ({"content", weft_str("text")}));
}

static const weft_passage passages[] = {{"fs/read_text_file", read_file}, {0}};

/* A request of an agent's comes through a peer: this one has nobody on its other side but the test. */
static int hand_on(weft_req *req, const weft_json *params, void *ctx) {
    weft_driver_session *session = ctx;
    return session->host->on_request(session->ctx, &passages[0], req, params);
}

static void ask_client(weft_driver_session *session, char *ret, size_t size) {
    static const char line[] =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"fs/read_text_file\",\"params\":{\"path\":\"/x\"}}\n";
    const weft_method methods[] = {{.name = "fs/read_text_file", .handler = hand_on, .help = ""}, {0}};
    weft_service *service;
    weft_peer *peer;
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = methods, .ctx = session}, &service), 0);
    CHECK_INT(weft_peer_new(service, &(weft_peer_opts){.framing = &weft_ndjson}, &peer), 0);
    CHECK(weft_peer_feed(peer, line, sizeof line - 1, 0) >= 0);
    weft_bytes out = weft_peer_output(peer);
    snprintf(ret, size, "%.*s", (int) out.len, out.data);
    weft_peer_free(peer);
    weft_service_unref(service);
}

TEST(what_an_agent_asks_of_its_client_comes_to_one_place) {
    engine_world w;
    task_outcome a;
    char answered[512], expected[128];
    memset(&stage, 0, sizeof stage);
    passage_calls = 0;
    engine_open(&w, play_store());
    w.opts.drivers = drivers;
    w.opts.agents = &agents;
    w.opts.passages = passages;
    w.opts.passage_ctx = &passage_calls;
    CHECK_INT(world_start(&w), 0);
    run(&w, NULL, NULL, "a", &a);
    ask_client(turn_of("a"), answered, sizeof answered);
    CHECK(strstr(answered, "\"content\":\"text\"") != NULL);
    snprintf(expected, sizeof expected, "%s %s /x", a.session, a.id);
    CHECK_STR(&passage_heard[0], expected);
    weft_driver_session *session = turn_of("a");
    complete(&w, "a", a.id);
    ask_client(session, answered, sizeof answered); /* outside of a turn there is nobody to ask for */
    CHECK(strstr(answered, "-32601") != NULL);
    CHECK_INT(passage_calls, 1);
    finish(&w);
}

/* ---- what it cost ---- */

static void say_json(weft_driver_session *session, bool usage, const char *text) {
    weft_doc *doc;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    if (usage)
        session->host->on_usage(session->ctx, weft_doc_root(doc));
    else
        session->host->on_update(session->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
}

/* The last of each counts; what was not said is not there, also after a start, and what is no number never was. */
TEST(what_a_turn_cost_is_kept_with_its_task) {
    static const char whole[] =
        "{\"tokens\":{\"totalTokens\":7},\"context\":{\"used\":5,\"size\":9},"
        "\"sessionCost\":{\"amount\":0.25,\"currency\":\"USD\"},\"cost\":{\"amount\":0.25,\"currency\":\"USD\"}}";
    engine_world w;
    task_outcome a, b, c;
    memset(&stage, 0, sizeof stage);
    engine_open(&w, &weft__sqlite);
    w.opts.drivers = drivers;
    w.opts.agents = &agents;
    CHECK_INT(world_start(&w), 0);
    run(&w, NULL, NULL, "a", &a);
    say_json(turn_of("a"), false, "{\"sessionUpdate\":\"usage_update\",\"used\":1,\"size\":9}");
    say_json(turn_of("a"), false,
             "{\"sessionUpdate\":\"usage_update\",\"used\":5,\"size\":9,\"cost\":{\"amount\":0.25,\"currency\":\"USD\"}}");
    say_json(turn_of("a"), false, "{\"sessionUpdate\":\"usage_update\",\"used\":\"x\",\"cost\":{\"amount\":\"y\"}}");
    say_json(turn_of("a"), true, "{\"totalTokens\":7}");
    complete(&w, "a", a.id);
    CHECK_STR(weft__task_find(w.engine, a.id)->usage, whole);
    run(&w, NULL, a.session, "b", &b);
    complete(&w, "b", b.id);
    CHECK(!weft__task_find(w.engine, b.id)->usage);
    run(&w, NULL, NULL, "c", &c);
    say_json(turn_of("c"), true, "{\"totalTokens\":1}");
    end_turn(turn_of("c"), "refused");
    ENGINE_UNTIL(&w, state_of(&w, c.id) == WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, c.id)->usage, "{\"tokens\":{\"totalTokens\":1}}");
    engine_restart(&w);
    CHECK_STR(weft__task_find(w.engine, a.id)->usage, whole);
    CHECK(!weft__task_find(w.engine, b.id)->usage);
    finish(&w);
}

/* clang-format off */
TEST_MAIN(
    CASE(the_next_turn_of_a_session_is_in_its_process)
    CASE(another_session_uses_an_idle_process)
    CASE(a_turn_at_a_time_unless_it_is_shared)
    CASE(a_crash_fails_all_turns_in_it)
    CASE(who_has_no_turn_for_long_is_ended)
    CASE(so_many_are_kept)
    CASE(a_failed_turn_ends_its_process_and_waits_for_it)
    CASE(one_that_is_not_kept_ends_with_its_turn)
    CASE(a_process_is_kept_for_a_conversation)
    CASE(a_cancelled_turn_leaves_the_process)
    CASE(a_changed_agent_gets_a_new_process)
    CASE(one_that_is_about_to_go_takes_no_turn)
    CASE(the_stop_waits_for_those_without_a_turn)
    CASE(what_a_turn_cost_is_stored)
    CASE(it_is_paused_as_long_as_one_of_its_turns_is)
    CASE(what_an_agent_asks_of_its_client_comes_to_one_place)
    CASE(what_a_turn_cost_is_kept_with_its_task)
)

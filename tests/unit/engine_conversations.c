/* Sessions on their own, beside the processes that serve them: settings, servers, facts, opening, going on, closing,
 * deleting, and what the agent knows of. The driver is played by the test. */
#include "engine/living_world.h"

typedef struct session_outcome {
    int times, r;
    char id[32], why[256], result[256];
} session_outcome;

static void session_done(void *ctx, int r, const weft_session *session, const char *error) {
    session_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    if (session)
        snprintf(outcome->id, sizeof outcome->id, "%s", session->id);
    snprintf(outcome->why, sizeof outcome->why, "%s", error ? error : "");
}

static void listed(void *ctx, int r, const weft_json *result, const char *error) {
    session_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    snprintf(outcome->result, sizeof outcome->result, "%.*s", result ? (int) result->len : 0, result ? result->text : "");
    snprintf(outcome->why, sizeof outcome->why, "%s", error ? error : "");
}

static weft_doc *parsed(const char *text) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    return doc;
}

/* The n-th request is answered. */
static void answer(int n, int r, const char *json, const char *error) {
    weft_doc *doc = json ? parsed(json) : NULL;
    stage.requests[n].done(stage.requests[n].ctx, r, doc ? weft_doc_root(doc) : NULL, error);
    weft_doc_free(doc);
}

static void create(engine_world *w, const weft_session_order *order, session_outcome *ret) {
    *ret = (session_outcome){0};
    CHECK_INT(weft__session_create(w->engine, order, session_done, ret), 0);
    CHECK(engine_wait(w, &ret->times, 1));
    CHECK_INT(ret->r, 0);
}

static int set(engine_world *w, const char *id, const char *mode, session_outcome *ret) {
    char text[64];
    snprintf(text, sizeof text, "\"%s\"", mode);
    weft_doc *doc = parsed(text);
    *ret = (session_outcome){0};
    int r = weft__session_set(w->engine, id, &(weft_session_setting){"mode", NULL, *weft_doc_root(doc)}, "ann", session_done,
                              ret);
    weft_doc_free(doc);
    return r;
}

static void tell_state(weft_driver_session *session, const char *name, const char *json) {
    weft_doc *doc = parsed(json);
    session->host->on_state(session->ctx, name, weft_doc_root(doc));
    weft_doc_free(doc);
}

#define SECRET "[{\"name\":\"db\",\"command\":\"/bin/db\",\"env\":[{\"name\":\"KEY\",\"value\":\"hunter2\"}]}]"

TEST(a_session_has_its_settings_and_servers) {
    engine_world w;
    session_outcome s;
    task_outcome a;
    store_outcome page = {0};
    begin(&w, (weft_engine_limits){0});
    create(&w, &(weft_session_order){.settings = "{\"mode\":\"plan\"}", .servers = SECRET}, &s);
    run(&w, NULL, s.id, "a", &a);
    CHECK_STR(stage.sessions[0].settings, "{\"mode\":\"plan\"}");
    CHECK_STR(stage.sessions[0].servers, SECRET);
    complete(&w, "a", a.id);
    /* Everybody may read events: the secret is in none of them. */
    CHECK_INT(world_read(&w.store, &(weft_query){.stream = "hub", .oldest = true}, &page), 0);
    CHECK(strstr(page.text, "\"servers\":[\"db\"]") != NULL);
    CHECK(strstr(page.text, "hunter2") == NULL);
    finish(&w);
}

#define OTHER "[{\"name\":\"new\",\"command\":\"/bin/new\",\"env\":[{\"name\":\"KEY\",\"value\":\"swordfish\"}]}]"

/* Whoever loads it may bring others: its next turn is opened with them. */
TEST(it_is_given_other_servers) {
    engine_world w;
    session_outcome s;
    task_outcome a, b;
    store_outcome page = {0};
    begin(&w, (weft_engine_limits){0});
    create(&w, &(weft_session_order){.servers = SECRET}, &s);
    run(&w, NULL, s.id, "a", &a);
    CHECK_INT(weft__session_give_servers(w.engine, "session-9999", OTHER), -ESRCH);
    CHECK_INT(weft__session_give_servers(w.engine, s.id, "[{}]"), -EINVAL);
    CHECK_INT(weft__session_give_servers(w.engine, s.id, SECRET), 0);
    CHECK_INT(weft__session_give_servers(w.engine, s.id, OTHER), 0);
    complete(&w, "a", a.id);
    run(&w, NULL, s.id, "b", &b);
    CHECK_STR(stage.sessions[1].servers, OTHER);
    complete(&w, "b", b.id);
    CHECK_INT(world_read(&w.store, &(weft_query){.stream = "hub", .oldest = true}, &page), 0);
    CHECK(strstr(page.text, "swordfish") == NULL);
    finish(&w);
}

TEST(it_is_set_where_it_is_open) {
    engine_world w;
    session_outcome s, o, p;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    create(&w, &(weft_session_order){0}, &s);
    CHECK_INT(set(&w, s.id, "early", &o), 0); /* it is open nowhere */
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(stage.asked, 0);
    run(&w, NULL, s.id, "a", &a);
    CHECK_STR(stage.sessions[0].settings, "{\"mode\":\"early\"}");
    CHECK_INT(set(&w, s.id, "live", &o), 0);
    CHECK_STR(stage.requests[0].what, "mode live");
    engine_settle(&w);
    CHECK_INT(o.times, 0); /* not before the agent has taken it */
    answer(0, 0, "{}", NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    CHECK_STR(weft__session_find(w.engine, s.id)->settings, "{\"mode\":\"live\"}");
    CHECK_STR(weft__session_find(w.engine, s.id)->facts[WEFT_SESSION_MODE], "\"live\"");
    CHECK_INT(set(&w, s.id, "never", &p), 0);
    answer(1, -EREMOTEIO, NULL, "No such mode");
    CHECK(engine_wait(&w, &p.times, 1));
    CHECK_INT(p.r, -EREMOTEIO);
    CHECK_STR(p.why, "No such mode");
    CHECK_STR(weft__session_find(w.engine, s.id)->settings, "{\"mode\":\"live\"}");
    complete(&w, "a", a.id);
    run(&w, NULL, s.id, "b", &b); /* in the same place */
    CHECK_INT(stage.begun, 1);
    complete(&w, "b", b.id);
    finish(&w);
}

/* A new process is told again. One that goes while it is being told leaves the setting for the next. */
TEST(it_is_set_again_in_another_process) {
    engine_world w;
    session_outcome o;
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    CHECK_INT(set(&w, a.session, "plan", &o), 0);
    end_turn(turn_of("a"), "agentError");
    end_process(&stage.processes[0], 1);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    ENGINE_UNTIL(&w, state_of(&w, a.id) == WEFT_TASK_FAILED);
    run(&w, NULL, a.session, "b", &b);
    CHECK_STR(turn_of("b")->settings, "{\"mode\":\"plan\"}");
    complete(&w, "b", b.id);
    finish(&w);
}

TEST(what_is_set_while_it_opens_waits) {
    engine_world w;
    session_outcome o, p;
    task_outcome a;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    stage.set_r = -EAGAIN;
    CHECK_INT(set(&w, a.session, "plan", &o), 0);
    stage.set_r = 0;
    engine_settle(&w);
    CHECK_INT(o.times + stage.asked, 0);
    stage.sessions[0].host->on_session(stage.sessions[0].ctx, &(weft_session_info){.agent_session = "own"});
    CHECK_STR(stage.requests[0].what, "mode plan");
    answer(0, 0, "{}", NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    stage.set_r = -EAGAIN;
    CHECK_INT(set(&w, a.session, "ask", &p), 0);
    complete(&w, "a", a.id); /* it was not opened after all */
    CHECK(engine_wait(&w, &p.times, 1));
    CHECK_INT(p.r, 0);
    CHECK_STR(weft__session_find(w.engine, a.session)->settings, "{\"mode\":\"ask\"}");
    CHECK(stage.sessions[0].closed); /* and has a new place the next time */
    finish(&w);
}

TEST(what_the_agent_says_holds_is_kept) {
    engine_world w;
    task_outcome a;
    session_outcome o;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    weft_driver_session *s = turn_of("a");
    tell_state(s, "modes", "{\"currentModeId\":\"x\",\"availableModes\":[{\"id\":\"x\"},{\"id\":\"y\"}]}");
    tell_state(s, "commands", "[1]");
    tell_state(s, "commands", "[2]");
    tell_state(s, "unknown", "[2]");
    complete(&w, "a", a.id);
    tell_state(s, "commands", "[3]"); /* outside of a turn */
    const weft_session *known = weft__session_find(w.engine, a.session);
    ENGINE_UNTIL(&w, known->facts[WEFT_SESSION_COMMANDS] && strcmp(known->facts[WEFT_SESSION_COMMANDS], "[3]") == 0);
    CHECK_STR(known->facts[WEFT_SESSION_MODE], "\"x\"");
    world_forget(&w);
    tell_state(s, "commands", "[3]"); /* no news */
    engine_settle(&w);
    CHECK_STR(w.heard, "");
    stage.set_r = -ENOTCONN; /* it is not open, and modes are known */
    CHECK_INT(set(&w, a.session, "z", &o), -EINVAL);
    CHECK_INT(set(&w, a.session, "y", &o), 0);
    CHECK(engine_wait(&w, &o.times, 1));
    finish(&w);
}

#define OPTIONS(model)                                                                                                      \
    "[{\"id\":\"model\",\"options\":[],\"currentValue\":\"" model "\"},{\"id\":\"fast\",\"currentValue\":false}]"

static int set_option(engine_world *w, const char *id, const char *option, const char *json, session_outcome *ret) {
    weft_doc *doc = parsed(json);
    *ret = (session_outcome){0};
    int r = weft__session_set(w->engine, id, &(weft_session_setting){"option", option, *weft_doc_root(doc)}, "ann",
                              session_done, ret);
    weft_doc_free(doc);
    return r;
}

/* Who did not set it hears of it as of what the agent says itself, whether a process has the session open or not. */
TEST(what_a_person_sets_is_told) {
    engine_world w;
    task_outcome a;
    session_outcome o;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    tell_state(turn_of("a"), "modes", "{\"currentModeId\":\"x\",\"availableModes\":[{\"id\":\"x\"},{\"id\":\"y\"}]}");
    tell_state(turn_of("a"), "options", OPTIONS("small"));
    const weft_session *known = weft__session_find(w.engine, a.session);
    ENGINE_UNTIL(&w, known->facts[WEFT_SESSION_OPTIONS]);
    world_forget(&w);
    CHECK_INT(set(&w, a.session, "y", &o), 0);
    answer(0, 0, "{}", NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    ENGINE_UNTIL(&w, strstr(w.heard, "session.state"));
    CHECK_STR(known->facts[WEFT_SESSION_MODE], "\"y\"");
    /* An agent that answers with its options has said it; one that answers nothing has done what it was told. */
    CHECK_INT(set_option(&w, a.session, "model", "\"big\"", &o), 0);
    tell_state(turn_of("a"), "options", OPTIONS("medium"));
    answer(1, 0, "{\"configOptions\":" OPTIONS("medium") "}", NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_STR(weft__session_fact(w.engine, a.session, WEFT_SESSION_OPTIONS), OPTIONS("medium"));
    CHECK_INT(set_option(&w, a.session, "model", "\"big\"", &o), 0);
    answer(2, 0, "{}", NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_STR(weft__session_fact(w.engine, a.session, WEFT_SESSION_OPTIONS), OPTIONS("big"));
    complete(&w, "a", a.id);
    stage.set_r = -ENOTCONN;
    CHECK_INT(set_option(&w, a.session, "model", "\"small\"", &o), 0);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_STR(weft__session_fact(w.engine, a.session, WEFT_SESSION_OPTIONS), OPTIONS("small"));
    ENGINE_UNTIL(&w, strcmp(known->facts[WEFT_SESSION_OPTIONS], OPTIONS("small")) == 0);
    finish(&w);
}

/* The last of each is stored, however often it is said while storing fails. */
TEST(facts_are_stored_when_that_works_again) {
    engine_world w;
    task_outcome a;
    char text[32];
    begin(&w, (weft_engine_limits){.again_ms = 1});
    run(&w, NULL, NULL, "a", &a);
    play_store_fails = -ENOSPC;
    for (int i = 0; i < 50; i++) {
        snprintf(text, sizeof text, "[%d]", i);
        tell_state(turn_of("a"), "commands", text);
        engine_settle(&w);
    }
    play_store_fails = 0;
    const weft_session *known = weft__session_find(w.engine, a.session);
    ENGINE_UNTIL(&w, known->facts[WEFT_SESSION_COMMANDS] && strcmp(known->facts[WEFT_SESSION_COMMANDS], "[49]") == 0);
    char *large = malloc(70000);
    memset(large, ' ', 70000);
    large[0] = '[';
    large[65535] = ']';
    large[65536] = '\0';
    tell_state(turn_of("a"), "options", large);
    ENGINE_UNTIL(&w, known->facts[WEFT_SESSION_OPTIONS] != NULL);
    large[65535] = ' ';
    large[65536] = ']';
    large[65537] = '\0';
    tell_state(turn_of("a"), "models", large); /* one byte too many */
    engine_settle(&w);
    CHECK(!known->facts[WEFT_SESSION_MODELS]);
    free(large);
    complete(&w, "a", a.id);
    finish(&w);
}

TEST(it_is_opened_without_a_task) {
    engine_world w;
    session_outcome s, o = {0};
    task_outcome a = {0};
    begin(&w, (weft_engine_limits){0});
    create(&w, &(weft_session_order){0}, &s);
    CHECK_INT(weft__session_open(w.engine, s.id, session_done, &o), 0);
    CHECK_INT(weft__session_open(w.engine, s.id, session_done, &o), -EBUSY);
    CHECK_INT(stage.sessions[0].opens, 1);
    /* A task waits until it is open, and is then in the same place. */
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "a", .session = s.id}, &a), 0);
    CHECK_INT(a.state, WEFT_TASK_QUEUED);
    stage.sessions[0].host->on_session(stage.sessions[0].ctx, &(weft_session_info){.agent_session = "own"});
    tell_state(&stage.sessions[0], "commands", "[]");
    end_turn(&stage.sessions[0], NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    CHECK(weft__session_find(w.engine, s.id)->facts[WEFT_SESSION_COMMANDS] != NULL);
    CHECK(weft__session_find(w.engine, s.id)->agent_session != NULL);
    ENGINE_UNTIL(&w, turn_of("a") != NULL);
    CHECK_INT(stage.begun, 1);
    CHECK_STR(weft__session_find(w.engine, s.id)->agent_session, "own");
    complete(&w, "a", a.id);
    finish(&w);
}

static const char *const go_on_errors[] = {"cannotResume", "sessionNotFound", "agentError"};

TEST(a_conversation_of_the_agents_own) {
    static const int results[] = {-EOPNOTSUPP, -ENOENT, -EREMOTEIO};
    engine_world w;
    session_outcome o = {0};
    task_outcome a;
    begin(&w, (weft_engine_limits){0});
    for (int i = 0; i < 3; i++) {
        o = (session_outcome){0};
        CHECK_INT(weft__session_create(w.engine, &(weft_session_order){.agent_session = "theirs"}, session_done, &o), 0);
        CHECK(stage.sessions[i].must_exist);
        CHECK_STR(stage.sessions[i].again, "theirs");
        end_turn(&stage.sessions[i], go_on_errors[i]);
        CHECK(engine_wait(&w, &o.times, 1));
        CHECK_INT(o.r, results[i]);
        CHECK_STR(o.why, go_on_errors[i]);
        CHECK(stage.sessions[i].closed);
    }
    CHECK(!weft__session_newest(w.engine)); /* nothing was stored */
    CHECK_INT(stage.processes[0].stops, 1); /* the last may have left it in any state */
    o = (session_outcome){0};
    CHECK_INT(weft__session_create(w.engine, &(weft_session_order){.agent_session = "theirs"}, session_done, &o), 0);
    stage.sessions[3].host->on_session(stage.sessions[3].ctx, &(weft_session_info){.agent_session = "theirs"});
    tell_state(&stage.sessions[3], "commands", "[]");
    end_turn(&stage.sessions[3], NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    CHECK_STR(weft__session_find(w.engine, o.id)->agent_session, "theirs");
    CHECK(weft__session_find(w.engine, o.id)->facts[WEFT_SESSION_COMMANDS] != NULL); /* whoever is answered finds it */
    CHECK_INT(weft__session_create(w.engine, &(weft_session_order){.agent_session = "theirs"}, session_done, &o), -EEXIST);
    run(&w, NULL, o.id, "a", &a);
    CHECK_INT(stage.begun, 4); /* where it was opened */
    complete(&w, "a", a.id);
    finish(&w);
}

TEST(what_an_agent_knows_of_is_listed) {
    engine_world w;
    session_outcome o = {0};
    begin(&w, (weft_engine_limits){0});
    CHECK_INT(weft__agent_sessions(w.engine, "nobody", NULL, NULL, listed, &o), -ENOENT);
    CHECK_INT(weft__agent_sessions(w.engine, NULL, "/etc", NULL, listed, &o), -EXDEV);
    CHECK_INT(weft__agent_sessions(w.engine, NULL, ".", "c", listed, &o), 0);
    CHECK_STR(stage.requests[0].what, "list /tmp");
    CHECK_INT(weft__agent_sessions(w.engine, NULL, NULL, NULL, listed, &o), 0);
    CHECK_INT(stage.opened, 1); /* one process for both */
    answer(0, 0, "{\"sessions\":[]}", NULL);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_STR(o.result, "{\"sessions\":[]}");
    CHECK_INT(stage.processes[0].stops, 0);
    answer(1, -EREMOTEIO, NULL, "no");
    CHECK(engine_wait(&w, &o.times, 2));
    CHECK(o.r == -EREMOTEIO && strcmp(o.why, "no") == 0);
    /* One that is not kept ends when it has answered. */
    CHECK_INT(weft__agent_sessions(w.engine, "brief", NULL, NULL, listed, &o), 0);
    answer(2, 0, "{}", NULL);
    CHECK_INT(stage.processes[1].stops, 1);
    end_process(&stage.processes[1], 0);
    CHECK(engine_wait(&w, &o.times, 3));
    /* One that dies first. */
    CHECK_INT(weft__agent_sessions(w.engine, "brief", NULL, NULL, listed, &o), 0);
    end_process(&stage.processes[2], 1);
    CHECK(engine_wait(&w, &o.times, 4));
    CHECK_INT(o.r, -EPIPE);
    CHECK_INT(weft__agent_sessions(w.engine, NULL, NULL, NULL, listed, &o), 0);
    finish(&w); /* and one that is never answered */
    CHECK_INT(o.times, 5);
    CHECK_INT(o.r, -ECANCELED);
}

TEST(so_much_is_asked_of_agents_at_a_time) {
    engine_world w;
    session_outcome o = {0};
    begin(&w, (weft_engine_limits){0});
    for (int i = 0; i < 8; i++)
        CHECK_INT(weft__agent_sessions(w.engine, NULL, NULL, NULL, listed, &o), 0);
    CHECK_INT(weft__agent_sessions(w.engine, NULL, NULL, NULL, listed, &o), -EUSERS);
    CHECK_INT(weft__session_create(w.engine, &(weft_session_order){.agent_session = "x"}, session_done, &o), -EUSERS);
    answer(0, 0, "{}", NULL);
    CHECK_INT(weft__agent_sessions(w.engine, NULL, NULL, NULL, listed, &o), 0);
    finish(&w);
    CHECK_INT(o.times, 9);
}

TEST(a_closed_session_gives_up_its_place) {
    engine_world w;
    session_outcome o = {0};
    task_outcome a, b;
    begin(&w, (weft_engine_limits){0});
    run(&w, NULL, NULL, "a", &a);
    stage.sessions[0].host->on_session(stage.sessions[0].ctx, &(weft_session_info){.agent_session = "own"});
    complete(&w, "a", a.id);
    CHECK_INT(weft__session_close(w.engine, a.session, NULL, session_done, &o), 0);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK(stage.sessions[0].closed);
    CHECK_INT(stage.processes[0].stops, 0);
    CHECK_INT(weft__session_resume(w.engine, a.session, NULL, session_done, &o), 0);
    CHECK(engine_wait(&w, &o.times, 2));
    run(&w, NULL, a.session, "b", &b);
    CHECK_STR(turn_of("b")->again, "own");
    complete(&w, "b", b.id);
    finish(&w);
}

TEST(a_deleted_session_is_deleted_at_the_agent) {
    static const struct {
        int r;
        const char *error;
    } rows[] = {{0, NULL}, {-EREMOTEIO, "It is locked"}, {-EOPNOTSUPP, "it does not offer this"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        engine_world w;
        session_outcome o = {0};
        task_outcome a;
        begin(&w, (weft_engine_limits){0});
        run(&w, NULL, NULL, "a", &a);
        stage.sessions[0].host->on_session(stage.sessions[0].ctx, &(weft_session_info){.agent_session = "own"});
        complete(&w, "a", a.id);
        CHECK_INT(weft__session_remove(w.engine, a.session, NULL, session_done, &o), 0);
        ENGINE_UNTIL(&w, stage.asked == 1);
        CHECK_STR(stage.requests[0].what, "remove own");
        CHECK(stage.sessions[0].closed); /* before that */
        CHECK(weft__session_find(w.engine, a.session) != NULL);
        answer(0, rows[i].r, rows[i].r ? NULL : "{}", rows[i].error);
        CHECK(engine_wait(&w, &o.times, 1));
        CHECK_INT(o.r, 0); /* ours is gone in any case, and what is left is said */
        CHECK_STR(o.why, rows[i].error ? rows[i].error : "");
        CHECK(!weft__session_find(w.engine, a.session));
        finish(&w);
    }
}

/* clang-format off */
TEST_MAIN(
    CASE(a_session_has_its_settings_and_servers)
    CASE(it_is_given_other_servers)
    CASE(it_is_set_where_it_is_open)
    CASE(it_is_set_again_in_another_process)
    CASE(what_is_set_while_it_opens_waits)
    CASE(what_the_agent_says_holds_is_kept) CASE(what_a_person_sets_is_told)
    CASE(facts_are_stored_when_that_works_again)
    CASE(it_is_opened_without_a_task)
    CASE(a_conversation_of_the_agents_own)
    CASE(what_an_agent_knows_of_is_listed)
    CASE(so_much_is_asked_of_agents_at_a_time)
    CASE(a_closed_session_gives_up_its_place)
    CASE(a_deleted_session_is_deleted_at_the_agent)
)

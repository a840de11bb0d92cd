/* Questions: asked by agents and by rules, answered once, expired, withdrawn. */
#include "engine/world.h"
#include "form.h"

#define OPTIONS                                                                                                             \
    "[{\"id\":\"yes\",\"name\":\"Allow\",\"kind\":\"allow_once\"},{\"id\":\"no\",\"name\":\"Reject\",\"kind\":\"reject_"    \
    "once\"}]"

typedef struct question_outcome {
    int times, r;
    char id[32], option[32], by[32], text[32];
    weft_question_state state;
} question_outcome;

static void question_done(void *ctx, int r, const weft_question *question) {
    question_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    if (!question)
        return;
    outcome->state = question->state;
    snprintf(outcome->id, sizeof outcome->id, "%s", question->id);
    snprintf(outcome->option, sizeof outcome->option, "%s", question->option ? question->option : "(none)");
    snprintf(outcome->by, sizeof outcome->by, "%s", question->by ? question->by : "(none)");
    snprintf(outcome->text, sizeof outcome->text, "%s", question->text ? question->text : "(none)");
}

static void ask_with(weft_run *run, const char *key, const char *options, const char *call) {
    run->host->on_ask(run->ctx, key,
                      WEFT_OBJ({"kind", weft_str("permission")}, {"title", weft_str("rm -r /")},
                               {"options", weft_raw(options, strlen(options))},
                               {"detail", WEFT_OBJ({"toolCallId", weft_str(call)}, {"command", weft_str("rm")})}));
}

static void ask(weft_run *run, const char *key) {
    ask_with(run, key, OPTIONS, "call-1");
}

TEST(a_person_answers) {
    engine_world w;
    task_outcome t;
    question_outcome a = {0}, b = {0};
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    ask(run, "k1");
    CHECK(!weft__question_first(w.engine, true)); /* not before it is stored */
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    const weft_question *q = weft__question_first(w.engine, false);
    CHECK_STR(q->id, "question-0000");
    CHECK_STR(q->task, t.id);
    CHECK_STR(q->session, t.session);
    CHECK_STR(q->kind, "permission");
    CHECK_STR(q->title, "rm -r /");
    CHECK_STR(q->options, OPTIONS);
    CHECK_STR(q->detail, "{\"toolCallId\":\"call-1\",\"command\":\"rm\"}");
    CHECK(q->created_ms > 0 && !q->expires_ms && !q->orphaned);
    CHECK_INT(weft__question_answer(w.engine, q->id, "maybe", "ann", NULL, question_done, &a), -EINVAL);
    CHECK_INT(weft__question_answer(w.engine, q->id, NULL, "ann", NULL, question_done, &a), -EINVAL);
    CHECK_INT(weft__question_answer(w.engine, "question-0001", "yes", "ann", NULL, question_done, &a), -ENOENT);
    /* Two in one turn: one wins. */
    CHECK_INT(weft__question_answer(w.engine, q->id, "no", "ann", "not today", question_done, &a), 0);
    CHECK_INT(weft__question_answer(w.engine, q->id, "yes", "bob", NULL, question_done, &b), 0);
    CHECK(engine_wait(&w, &b.times, 1));
    CHECK_INT(a.r, 0);
    CHECK_STR(a.option, "no");
    CHECK_STR(a.by, "ann");
    CHECK_STR(a.text, "not today");
    CHECK_INT(b.r, -EALREADY);
    CHECK_INT(run->answers, 1);
    CHECK_STR(run->answer, "no");
    CHECK_STR(run->answer_key, "k1");
    CHECK_INT(weft__question_answer(w.engine, q->id, "yes", "bob", NULL, question_done, &b), -EALREADY);
    CHECK(!weft__question_first(w.engine, false));
    CHECK(weft__question_first(w.engine, true) == q && !weft__question_next(w.engine, q, true));
    play_end(run, true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    CHECK_INT(q->state, WEFT_QUESTION_ANSWERED);
    engine_end(&w);
}

/* What came before a question is stored before it. */
TEST(questions_keep_their_place) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    world_forget(&w);
    weft_run *run = play_of(t.id);
    play_say(run, "may I?");
    ask(run, "k1");
    play_say(run, "well?");
    ENGINE_UNTIL(&w, w.heard_len > 40);
    CHECK_STR(w.heard, "session.output question.asked session.output ");
    engine_end(&w);
}

TEST(the_configuration_answers) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "allow"}, &t), 0);
    ask(play_of(t.id), "k1");
    ENGINE_UNTIL(&w, play_of(t.id)->answers == 1);
    CHECK_STR(play_of(t.id)->answer, "yes");
    CHECK_STR(weft__question_find(w.engine, "question-0000")->by, "configuration");
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "deny"}, &t), 0);
    ask(play_of(t.id), "k1");
    ENGINE_UNTIL(&w, play_of(t.id)->answers == 1);
    CHECK_STR(play_of(t.id)->answer, "no");
    CHECK(strstr(w.heard, "question.asked question.answered "));
    engine_end(&w);
}

/* The run ends while its question and the configuration's answer are on their way: one end is stored, the answer. */
TEST(the_configuration_answers_a_run_that_ends) {
    engine_world w;
    task_outcome t;
    question_outcome a = {0};
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "allow"}, &t), 0);
    world_forget(&w);
    ask(play_of(t.id), "k1");
    play_end(play_of(t.id), true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    engine_settle(&w);
    CHECK_STR(w.heard, "question.asked question.answered task.completed ");
    CHECK_INT(weft__question_answer(w.engine, "question-0000", "no", "ann", NULL, question_done, &a), -EALREADY);
    engine_end(&w);
}

TEST(nobody_answers_in_time) {
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__memory);
    w.opts.limits.question_ms = 5;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    ask(run, "k1");
    ENGINE_UNTIL(&w, run->answers == 1);
    CHECK_STR(run->answer, "(none)");
    const weft_question *q = weft__question_find(w.engine, "question-0000");
    CHECK_INT(q->state, WEFT_QUESTION_EXPIRED);
    CHECK_INT(q->expires_ms, q->created_ms + 5);
    CHECK(strstr(w.heard, "question.expired "));
    engine_end(&w);
}

TEST(the_agent_no_longer_asks) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    ask(run, "k1");
    run->host->on_unask(run->ctx, "k1"); /* before it is stored */
    ask(run, "k2");
    ENGINE_UNTIL(&w, weft__question_find(w.engine, "question-0001") != NULL);
    run->host->on_unask(run->ctx, "k2");
    ENGINE_UNTIL(&w, !weft__question_first(w.engine, false));
    CHECK_INT(weft__question_find(w.engine, "question-0000")->state, WEFT_QUESTION_WITHDRAWN);
    CHECK_INT(weft__question_find(w.engine, "question-0001")->state, WEFT_QUESTION_WITHDRAWN);
    engine_end(&w);
}

TEST(a_run_that_ends_takes_its_questions_with_it) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    ask(run, "k1");
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    ask_with(run, "k2", OPTIONS, "call-2");
    play_end(run, true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    ENGINE_UNTIL(&w, !weft__question_first(w.engine, false));
    const weft_question *q = weft__question_first(w.engine, true);
    CHECK_INT(q->state, WEFT_QUESTION_WITHDRAWN);
    q = weft__question_next(w.engine, q, true);
    REQUIRE(q);
    CHECK_INT(q->state, WEFT_QUESTION_WITHDRAWN);
    engine_end(&w);
}

TEST(what_cannot_be_asked) {
    engine_world w;
    task_outcome t;
    static const char *const wrong[] = {"[]", "{}", "[1]", "[{\"name\":\"x\"}]", "[{\"id\":\"\"}]", "null"};
    engine_open(&w, &weft__memory);
    w.opts.limits.max_questions = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    for (int i = 0; i < 6; i++) {
        ask_with(run, "k", wrong[i], "call");
        CHECK_INT(run->answers, i); /* not from within its own call */
        ENGINE_UNTIL(&w, run->answers == i + 1);
        CHECK_STR(run->answer, "(none)");
    }
    ask(run, "k1");
    ask(run, "k2"); /* one too many */
    ENGINE_UNTIL(&w, run->answers == 7);
    CHECK_STR(run->answer_key, "k2");
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    question_outcome q = {0};
    weft_question_spec spec = {.kind = "approval", .title = "x", .options = weft_raw(OPTIONS, strlen(OPTIONS))};
    CHECK_INT(weft__question_ask(w.engine, &spec, question_done, question_done, &q), -ENOBUFS);
    engine_end(&w);
}

/* A few large ones reach the limit in bytes long before the one in number; when one is over, there is room again. */
TEST(open_questions_have_a_limit_in_bytes) {
    engine_world w;
    task_outcome t;
    question_outcome a = {0};
    char detail[2100];
    engine_open(&w, &weft__memory);
    w.opts.limits.max_question_bytes = 5000;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    snprintf(detail, sizeof detail, "{\"x\":\"%02000d\"}", 0);
    weft_question_spec spec = {.kind = "approval",
                               .title = "?",
                               .options = weft_raw(OPTIONS, strlen(OPTIONS)),
                               .detail = weft_raw(detail, strlen(detail))};
    CHECK_INT(weft__question_ask(w.engine, &spec, question_done, NULL, &a), 0);
    CHECK_INT(weft__question_ask(w.engine, &spec, question_done, NULL, &a), 0);
    CHECK(engine_wait(&w, &a.times, 2));
    CHECK_INT(weft__question_ask(w.engine, &spec, question_done, NULL, &a), -ENOBUFS);
    run->host->on_ask(run->ctx, "k",
                      WEFT_OBJ({"kind", weft_str("permission")}, {"title", weft_str("?")},
                               {"options", weft_raw(OPTIONS, strlen(OPTIONS))},
                               {"detail", weft_raw(detail, strlen(detail))}));
    ENGINE_UNTIL(&w, run->answers == 1);
    CHECK_STR(run->answer, "(none)");
    CHECK_INT(weft__question_answer(w.engine, "question-0000", "yes", "ann", NULL, question_done, &a), 0);
    CHECK(engine_wait(&w, &a.times, 3));
    CHECK_INT(weft__question_ask(w.engine, &spec, question_done, NULL, &a), 0);
    CHECK(engine_wait(&w, &a.times, 4));
    engine_end(&w);
}

#define FORM                                                                                                                \
    "{\"kind\":\"elicitation\",\"title\":\"Which?\",\"options\":[{\"id\":\"accept\",\"name\":\"Send\",\"kind\":\"allow_"    \
    "once\"},"                                                                                                              \
    "{\"id\":\"decline\",\"name\":\"Decline\",\"kind\":\"reject_once\"}],\"detail\":{\"mode\":\"form\","                    \
    "\"requestedSchema\":{"                                                                                                 \
    "\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"type\":\"integer\",\"default\":7}},\"required\":[\"a\"]}}}"

/* What is filled in is checked where it is stored, and is there after a start, from the journal and from what was saved. The
 * configuration fills in nothing. */
TEST(a_form_is_filled_in) {
    engine_world w;
    task_outcome t;
    question_outcome a = {0};
    char why[WEFT_FORM_WHY] = "";
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse("{\"a\":\"x\"}", 9, NULL, &doc), 0);
    engine_begin(&w, &weft__sqlite);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "allow"}, &t), 0);
    weft_run *run = play_of(t.id);
    run->host->on_ask(run->ctx, "k", weft_raw(FORM, strlen(FORM)));
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    weft_question_answer with = {.option = "accept", .by = "ann", .why = why};
    CHECK_INT(weft__question_answer_with(w.engine, "question-0000", &with, question_done, &a), -EDOM);
    CHECK_STR(&why[0], "a is missing");
    CHECK_INT(weft__question_answer(w.engine, "question-0000", "accept", "ann", NULL, question_done, &a), -EDOM);
    with.content = weft_doc_root(doc);
    with.option = "decline";
    CHECK_INT(weft__question_answer_with(w.engine, "question-0000", &with, question_done, &a), -EDOM);
    with.option = "accept";
    CHECK_INT(weft__question_answer_with(w.engine, "question-0000", &with, question_done, &a), 0);
    CHECK(engine_wait(&w, &a.times, 1));
    ENGINE_UNTIL(&w, run->answers == 1);
    CHECK_STR(run->answer, "accept");
    for (int i = 0; i < 3; i++) {
        const weft_question *q = weft__question_find(w.engine, "question-0000");
        REQUIRE(q != NULL);
        CHECK_INT(q->state, WEFT_QUESTION_ANSWERED);
        CHECK_STR(q->content, "{\"a\":\"x\",\"b\":7}");
        engine_restart(&w);
    }
    weft_doc_free(doc);
    engine_end(&w);
}

TEST(a_rule_asks) {
    engine_world w;
    question_outcome asked = {0}, over = {0};
    weft_question_spec spec = {.rule = "deploy", .kind = "approval", .title = "Deploy?"};
    engine_begin(&w, &weft__memory);
    CHECK_INT(weft__question_ask(w.engine, &spec, question_done, NULL, &asked), -EINVAL);
    spec.options = weft_raw(OPTIONS, strlen(OPTIONS));
    CHECK_INT(weft__question_ask(w.engine, &spec, question_done, question_done, &asked), 0);
    CHECK_INT(asked.times, 0);
    CHECK(engine_wait(&w, &asked.times, 1));
    CHECK_INT(asked.r, 0);
    CHECK_INT(asked.state, WEFT_QUESTION_OPEN);
    const weft_question *q = weft__question_find(w.engine, asked.id);
    CHECK_STR(q->rule, "deploy");
    CHECK_STR(q->detail, "{}");
    CHECK(!q->task && !q->session);
    CHECK_INT(weft__question_answer(w.engine, asked.id, "yes", "ann", NULL, question_done, &over), 0);
    CHECK(engine_wait(&w, &asked.times, 2));
    CHECK_STR(asked.option, "yes");
    CHECK_STR(asked.by, "ann");
    engine_end(&w);
}

TEST(a_question_waits_for_the_store) {
    engine_world w;
    task_outcome t;
    question_outcome a = {0};
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    play_store_fails = -EIO;
    ask(run, "k1");
    ENGINE_UNTIL(&w, weft__engine_trouble(w.engine) == -EIO);
    CHECK(!weft__question_first(w.engine, true));
    play_store_fails = 0;
    ENGINE_UNTIL(&w, weft__question_first(w.engine, true) != NULL);
    play_store_fails = -EIO;
    CHECK_INT(weft__question_answer(w.engine, "question-0000", "yes", "ann", NULL, question_done, &a), 0);
    CHECK(engine_wait(&w, &a.times, 1));
    CHECK_INT(a.r, -EIO);
    CHECK_INT(run->answers, 0);
    run->host->on_unask(run->ctx, "k1");
    engine_settle(&w);
    CHECK_INT(weft__question_first(w.engine, true)->state, WEFT_QUESTION_OPEN);
    play_store_fails = 0;
    ENGINE_UNTIL(&w, weft__question_first(w.engine, true)->state == WEFT_QUESTION_WITHDRAWN);
    engine_end(&w);
}

/* A thousand that are over are remembered. */
TEST(old_questions_are_forgotten) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .agent = "allow"}, &t), 0);
    weft_run *run = play_of(t.id);
    for (int i = 0; i < 1010; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        ask(run, key);
        if (i % 100 == 0)
            ENGINE_UNTIL(&w, run->answers == i + 1);
    }
    ENGINE_UNTIL(&w, run->answers == 1010);
    engine_settle(&w);
    int count = 0;
    for (const weft_question *q = weft__question_first(w.engine, true); q; q = weft__question_next(w.engine, q, true))
        count++;
    CHECK_INT(count, 1000);
    CHECK(!weft__question_find(w.engine, "question-0009") && weft__question_find(w.engine, "question-0010"));
    engine_end(&w);
}

/* ---- over a restart ---- */

static void restart_asked(engine_world *w, task_outcome *t, bool requeue) {
    engine_open(w, &weft__sqlite);
    w->opts.requeue = requeue;
    CHECK_INT(world_start(w), 0);
    CHECK_INT(submit(w, "x", t), 0);
    ask(play_of(t->id), "k1");
    ENGINE_UNTIL(w, weft__question_first(w->engine, false) != NULL);
    engine_restart(w);
}

/* Its task has failed: nobody would hear the answer. */
TEST(a_question_ends_with_its_task) {
    engine_world w;
    task_outcome t;
    question_outcome a = {0};
    restart_asked(&w, &t, false);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_FAILED);
    CHECK(!weft__question_first(w.engine, false));
    CHECK_INT(weft__question_find(w.engine, "question-0000")->state, WEFT_QUESTION_WITHDRAWN);
    CHECK(strstr(w.heard, "task.failed question.withdrawn hub.started ") != NULL); /* and those who follow are told */
    CHECK_INT(weft__question_answer(w.engine, "question-0000", "yes", "ann", NULL, question_done, &a), -EALREADY);
    engine_end(&w);
}

/* At a stop as at a crash: the task waits for the next start, and its question with it. */
TEST(a_question_outlives_a_stop) {
    engine_world w;
    task_outcome t;
    question_outcome a = {0};
    engine_open(&w, &weft__sqlite);
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    ask(play_of(t.id), "k1");
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    weft__engine_stop(w.engine, true, world_stopped, &w);
    ENGINE_UNTIL(&w, play_of(t.id)->cancels > 0);
    play_end(play_of(t.id), false);
    CHECK(engine_wait(&w, &w.stopped, 1));
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_QUEUED);
    engine_restart(&w);
    const weft_question *q = weft__question_first(w.engine, false);
    REQUIRE(q);
    CHECK(q->orphaned);
    CHECK_INT(weft__question_answer(w.engine, q->id, "yes", "ann", NULL, question_done, &a), 0);
    CHECK(engine_wait(&w, &a.times, 1));
    ENGINE_UNTIL(&w, plays.count == 1);
    ask_with(play_of(t.id), "k2", OPTIONS, "another call");
    ENGINE_UNTIL(&w, play_of(t.id)->answers == 1);
    CHECK_STR(play_of(t.id)->answer, "yes");
    engine_end(&w);
}

/* Without on_restart=requeue a stop fails the task, and its question ends with it. */
TEST(a_stop_withdraws_it) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    ask(play_of(t.id), "k1");
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    weft__engine_stop(w.engine, true, world_stopped, &w);
    play_end(play_of(t.id), false);
    CHECK(engine_wait(&w, &w.stopped, 1));
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_FAILED);
    CHECK(!weft__question_first(w.engine, false));
    engine_end(&w);
}

/* One that was left by an earlier run ends with its task, also when that is cancelled before it runs again. */
TEST(an_orphan_ends_with_its_task) {
    engine_world w;
    task_outcome t, gone = {0};
    engine_open(&w, &weft__sqlite);
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    ask(play_of(t.id), "k1");
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    w.opts.limits.max_running = SIZE_MAX;
    engine_restart(&w);
    REQUIRE(weft__question_first(w.engine, false));
    CHECK_INT(weft__task_cancel(w.engine, t.id, "ann", task_done, &gone), 0);
    CHECK(engine_wait(&w, &gone.times, 1));
    ENGINE_UNTIL(&w, !weft__question_first(w.engine, false));
    CHECK_INT(weft__question_find(w.engine, "question-0000")->state, WEFT_QUESTION_WITHDRAWN);
    engine_end(&w);
}

TEST(an_open_question_survives) {
    engine_world w;
    task_outcome t;
    question_outcome a = {0}, b = {0};
    restart_asked(&w, &t, true);
    const weft_question *q = weft__question_first(w.engine, false);
    REQUIRE(q);
    CHECK_STR(q->id, "question-0000");
    CHECK(q->orphaned);
    CHECK_STR(q->options, OPTIONS);
    CHECK_INT(weft__question_answer(w.engine, q->id, "yes", "ann", NULL, question_done, &a), 0);
    CHECK(engine_wait(&w, &a.times, 1));
    CHECK_INT(a.r, 0);
    engine_restart(&w);
    CHECK_INT(weft__question_answer(w.engine, "question-0000", "no", "bob", NULL, question_done, &b), -EALREADY);
    CHECK_STR(weft__question_find(w.engine, "question-0000")->option, "yes");
    engine_end(&w);
}

TEST(the_same_question_is_asked_again) {
    engine_world w;
    task_outcome t;
    question_outcome a = {0};
    restart_asked(&w, &t, true);
    ENGINE_UNTIL(&w, plays.count == 1);
    weft_run *run = play_of(t.id);
    ask_with(run, "other name", OPTIONS, "another call");
    ENGINE_UNTIL(&w, strstr(w.heard, "question.adopted ") != NULL);
    const weft_question *q = weft__question_first(w.engine, true);
    CHECK(!q->orphaned && !weft__question_next(w.engine, q, true));
    CHECK_INT(weft__question_answer(w.engine, q->id, "yes", "ann", NULL, question_done, &a), 0);
    ENGINE_UNTIL(&w, run->answers == 1);
    CHECK_STR(run->answer_key, "other name");
    CHECK_STR(run->answer, "yes");
    /* Once more is another question. */
    ask_with(run, "k3", OPTIONS, "another call");
    ENGINE_UNTIL(&w, weft__question_find(w.engine, "question-0001") != NULL);
    engine_end(&w);
}

TEST(the_answer_came_before_the_agent_did) {
    engine_world w;
    task_outcome t;
    question_outcome a = {0};
    restart_asked(&w, &t, true);
    CHECK_INT(weft__question_answer(w.engine, "question-0000", "no", "ann", NULL, question_done, &a), 0);
    CHECK(engine_wait(&w, &a.times, 1));
    weft_run *run = play_of(t.id);
    ask_with(run, "k9", OPTIONS, "call-7");
    CHECK_INT(run->answers, 0);
    ENGINE_UNTIL(&w, run->answers == 1);
    CHECK_STR(run->answer, "no");
    CHECK_STR(run->answer_key, "k9");
    engine_restart(&w);
    ENGINE_UNTIL(&w, plays.count == 1);
    /* It has been used: not twice. */
    ask_with(play_of(t.id), "k9", OPTIONS, "call-7");
    ENGINE_UNTIL(&w, weft__question_find(w.engine, "question-0001") != NULL);
    CHECK_INT(play_of(t.id)->answers, 0);
    engine_end(&w);
}

TEST(time_goes_on_while_the_daemon_is_away) {
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__sqlite);
    w.wall = 1000000;
    w.opts.limits.question_ms = 60000;
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    ask(play_of(t.id), "k1");
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    w.wall += 60001;
    engine_restart(&w);
    ENGINE_UNTIL(&w, !weft__question_first(w.engine, false));
    CHECK_INT(weft__question_first(w.engine, true)->state, WEFT_QUESTION_EXPIRED);
    engine_end(&w);
}

/* Another writer asks something under a number that one of ours was to have. */
static void ask_elsewhere(store_world *other, int number) {
    char text[300];
    int n = snprintf(text, sizeof text,
                     "{\"questionId\":\"question-%04d\",\"number\":%d,\"ruleId\":\"theirs\",\"kind\":\"approval\","
                     "\"title\":\"theirs\",\"options\":[{\"id\":\"a\"}],\"detail\":{},\"digest\":\"abc\"}",
                     number, number);
    weft_event event = {.stream = "hub", .type = "question.asked", .data = {text, (size_t) n}, .time_ms = 5};
    weft_append append = {.events = &event, .count = 1, .counter = "question", .number = (uint64_t) number};
    CHECK_INT(weft__store_append(other->store, &append, NULL, NULL), 0);
}

TEST(another_writer_takes_the_number_of_a_run) {
    engine_world w;
    task_outcome t, allowed;
    engine_begin(&w, &weft__memory);
    store_world other = w.store;
    other.opts.beside = w.store.store;
    REQUIRE(world_open(&other));
    CHECK_INT(submit(&w, "x", &t), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "y", .agent = "allow"}, &allowed), 0);
    ask_elsewhere(&other, 0);
    ask_elsewhere(&other, 1);
    world_forget(&w);
    play_say(play_of(t.id), "may I?");
    ask(play_of(t.id), "k1");
    ask_with(play_of(t.id), "k2", OPTIONS, "call-2");
    play_say(play_of(t.id), "well?");
    ENGINE_UNTIL(&w, weft__question_find(w.engine, "question-0003") != NULL && w.heard_len >= 90);
    CHECK_STR(w.heard, "question.asked question.asked session.output question.asked question.asked session.output ");
    CHECK_STR(weft__question_find(w.engine, "question-0000")->title, "theirs");
    CHECK_STR(weft__question_find(w.engine, "question-0001")->title, "theirs");
    CHECK_STR(weft__question_find(w.engine, "question-0002")->task, t.id);
    CHECK_STR(weft__question_find(w.engine, "question-0003")->task, t.id);
    question_outcome a = {0};
    CHECK_INT(weft__question_answer(w.engine, "question-0003", "no", "ann", NULL, question_done, &a), 0);
    CHECK(engine_wait(&w, &a.times, 1));
    CHECK_STR(play_of(t.id)->answer_key, "k2");
    /* The configuration's answer is about the number that it got. */
    ask_elsewhere(&other, 4);
    ask(play_of(allowed.id), "k3");
    ENGINE_UNTIL(&w, play_of(allowed.id)->answers == 1);
    CHECK_STR(play_of(allowed.id)->answer, "yes");
    CHECK_STR(weft__question_find(w.engine, "question-0005")->by, "configuration");
    CHECK_INT(weft__question_find(w.engine, "question-0004")->state, WEFT_QUESTION_OPEN);
    other.store = weft__store_close(other.store);
    engine_end(&w);
}

TEST(another_writer_takes_the_number_of_a_rule) {
    engine_world w;
    question_outcome asked = {0}, answered = {0};
    engine_begin(&w, &weft__memory);
    store_world other = w.store;
    other.opts.beside = w.store.store;
    REQUIRE(world_open(&other));
    ask_elsewhere(&other, 0);
    weft_question_spec spec = {
        .rule = "ours", .kind = "approval", .title = "?", .options = weft_raw(OPTIONS, strlen(OPTIONS))};
    CHECK_INT(weft__question_ask(w.engine, &spec, question_done, NULL, &asked), 0);
    CHECK(engine_wait(&w, &asked.times, 1));
    CHECK_INT(asked.r, 0);
    CHECK_STR(asked.id, "question-0001");
    CHECK_STR(weft__question_find(w.engine, "question-0000")->rule, "theirs");
    CHECK_STR(weft__question_find(w.engine, "question-0001")->rule, "ours");
    CHECK_INT(weft__question_answer(w.engine, "question-0001", "yes", "ann", NULL, question_done, &answered), 0);
    CHECK(engine_wait(&w, &answered.times, 1));
    CHECK_INT(weft__question_find(w.engine, "question-0000")->state, WEFT_QUESTION_OPEN);
    /* Somebody who takes them faster than we ask: it has an end, and leaves nothing. */
    weft_event event = {.stream = "other", .type = "note", .data = {"{}", 2}, .time_ms = 5};
    weft_append append = {.events = &event, .count = 1, .counter = "question", .number = 50};
    CHECK_INT(weft__store_append(other.store, &append, NULL, NULL), 0);
    asked = (question_outcome){0};
    CHECK_INT(weft__question_ask(w.engine, &spec, question_done, NULL, &asked), 0);
    CHECK(engine_wait(&w, &asked.times, 1));
    CHECK_INT(asked.r, -EAGAIN);
    CHECK(!weft__question_find(w.engine, "question-0002") && !weft__question_find(w.engine, "question-0017"));
    other.store = weft__store_close(other.store);
    engine_end(&w);
}

/* clang-format off */
TEST_MAIN(
    CASE(another_writer_takes_the_number_of_a_run)
    CASE(another_writer_takes_the_number_of_a_rule)
    CASE(a_person_answers)
    CASE(questions_keep_their_place)
    CASE(the_configuration_answers)
    CASE(the_configuration_answers_a_run_that_ends)
    CASE(nobody_answers_in_time)
    CASE(the_agent_no_longer_asks)
    CASE(a_run_that_ends_takes_its_questions_with_it)
    CASE(what_cannot_be_asked)
    CASE(open_questions_have_a_limit_in_bytes)
    CASE(a_form_is_filled_in) CASE(a_rule_asks)
    CASE(a_question_waits_for_the_store)
    CASE(old_questions_are_forgotten)
    CASE(a_question_ends_with_its_task)
    CASE(a_question_outlives_a_stop)
    CASE(a_stop_withdraws_it)
    CASE(an_orphan_ends_with_its_task)
    CASE(an_open_question_survives)
    CASE(the_same_question_is_asked_again)
    CASE(the_answer_came_before_the_agent_did)
    CASE(time_goes_on_while_the_daemon_is_away)
)

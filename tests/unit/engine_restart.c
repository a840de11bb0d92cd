/* The daemon dies or stops, and starts again: everything is as it was, and what ran is told the truth about. */
#include "engine/world.h"
#include "engine_private.h"

TEST(everything_is_as_it_was) {
    engine_world w;
    task_outcome t, u, v, gone = {0};
    weft_task_counts counts;
    engine_open(&w, &weft__sqlite);
    w.opts.limits.max_running = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit_spec(&w,
                          &(weft_task_spec){.prompt = "f\xc3\xbcr \"dich\"\n",
                                            .agent = "writer",
                                            .priority = -3,
                                            .metadata = "{\"source\":\"test\"}",
                                            .key = "k",
                                            .depth = 2,
                                            .retries = 1},
                          &t),
              0);
    weft_run *run = play_of(t.id);
    run->host->on_session(run->ctx, "conversation");
    play_say(run, "output\n");
    play_end(run, true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    CHECK_INT(submit(&w, "fails", &u), 0);
    play_end(play_of(u.id), false);
    ENGINE_UNTIL(&w, state_of(&w, u.id) == WEFT_TASK_FAILED);
    CHECK_INT(submit(&w, "cancelled", &v), 0);
    CHECK_INT(weft__task_cancel(w.engine, v.id, "ann", task_done, &gone), 0);
    play_end(play_of(v.id), false);
    CHECK(engine_wait(&w, &gone.times, 1));
    CHECK_INT(weft__agent_choose(w.engine, "two", NULL, NULL), 0);
    engine_settle(&w);
    uint64_t first = weft__session_find(w.engine, v.session)->first;
    CHECK(first > weft__session_find(w.engine, t.session)->first);

    engine_restart(&w);
    CHECK_INT(weft__session_find(w.engine, "session-0002")->first, first);
    const weft_task *is = weft__task_find(w.engine, "task-0000");
    REQUIRE(is);
    CHECK_INT(is->state, WEFT_TASK_COMPLETED);
    CHECK_STR(is->prompt, "f\xc3\xbcr \"dich\"\n");
    CHECK_STR(is->agent, "writer");
    CHECK_STR(is->runs_on, "one");
    CHECK_STR(is->session, "session-0000");
    CHECK_STR(is->metadata, "{\"source\":\"test\"}");
    CHECK_STR(is->key, "k");
    CHECK(is->priority == -3 && is->depth == 2 && is->retries == 1 && is->attempt == 1 && is->exit_code == 0);
    CHECK_TEXT(is->tail.data, is->tail.len, "output\n");
    CHECK_INT(is->output_bytes, 7);
    CHECK(is->created_ms > 0 && is->started_ms > 0 && is->completed_ms >= is->started_ms);
    CHECK_INT(state_of(&w, u.id), WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, u.id)->error, "it went wrong");
    CHECK_INT(state_of(&w, v.id), WEFT_TASK_CANCELLED);
    CHECK_STR(weft__agent_default(w.engine)->name, "two");
    CHECK_STR(weft__session_find(w.engine, "session-0000")->agent_session, "conversation");
    CHECK(!weft__session_find(w.engine, "session-0000")->busy);
    counts = weft__task_counts(w.engine);
    CHECK(counts.of[WEFT_TASK_COMPLETED] == 1 && counts.of[WEFT_TASK_FAILED] == 1 && counts.of[WEFT_TASK_CANCELLED] == 1 &&
          counts.of[WEFT_TASK_RUNNING] == 0 && counts.of[WEFT_TASK_QUEUED] == 0);
    CHECK_STR(weft__task_newest(w.engine)->id, "task-0002");
    /* The key still stands for it, and the counter goes on. */
    weft_task_spec again = {.prompt = "f\xc3\xbcr \"dich\"\n",
                            .agent = "writer",
                            .priority = -3,
                            .metadata = "{\"source\":\"test\"}",
                            .key = "k",
                            .retries = 1};
    CHECK_INT(submit_spec(&w, &again, &t), 0);
    CHECK_STR(t.id, "task-0000");
    again.prompt = "something else";
    CHECK_INT(submit_spec(&w, &again, &t), -ENOTUNIQ);
    CHECK_INT(submit(&w, "x", &t), 0);
    CHECK_STR(t.id, "task-0003");
    CHECK_STR(play_of(t.id)->agent, "two");
    engine_end(&w);
}

TEST(what_ran_has_failed) {
    engine_world w;
    task_outcome t, u;
    engine_open(&w, &weft__sqlite);
    w.opts.limits.max_running = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "ran", &t), 0);
    CHECK_INT(submit(&w, "waits", &u), 0);
    play_say(play_of(t.id), "last words");
    ENGINE_UNTIL(&w, weft__task_find(w.engine, t.id)->tail.len == 10);
    engine_crash(&w);
    world_forget(&w);
    CHECK_INT(world_start(&w), 0);
    /* Durable before anybody is told that the engine is ready. */
    CHECK(strstr(w.heard, "task.failed hub.started ") == w.heard);
    const weft_task *task = weft__task_find(w.engine, t.id);
    CHECK_INT(task->state, WEFT_TASK_FAILED);
    CHECK_STR(task->reason, "daemonRestarted");
    CHECK_STR(task->error, "The daemon stopped while it ran.");
    CHECK_TEXT(task->tail.data, task->tail.len, "last words");
    /* What waited runs now. */
    ENGINE_UNTIL(&w, plays.count == 1);
    CHECK_STR(plays.runs[0]->task, u.id);
    engine_end(&w);
}

static void forge(engine_world *w, const char *type, const char *data) {
    store_outcome done = {0};
    weft_event event = {.stream = WEFT_STREAM_HUB, .type = type, .data = {data, strlen(data)}, .time_ms = 1};
    REQUIRE(weft__store_append(w->store.store, &(weft_append){&event, 1, NULL}, world_appended, &done) == 0);
    CHECK(world_wait(&w->store, &done.times, 1));
}

static int notes;
static void count_note(void *ctx, const char *line) {
    (void) ctx;
    notes += strstr(line, "cannot be read and is passed over") != NULL;
}

/* What the fuzz target fold looks for at random. */
TEST(what_cannot_be_read_is_passed_over) {
    static const struct {
        const char *type, *data;
    } bad[] = {
        {"task.queued", "no JSON"},
        {"task.queued", "[]"},
        {"task.queued", "{\"taskId\":\"task-0001\",\"number\":0,\"sessionId\":\"s\"}"},
        {"task.queued", "{\"taskId\":\"task-9223372036854775807\",\"number\":9223372036854775807,\"sessionId\":\"s\"}"},
        {"task.queued", "{\"taskId\":\"task-0001\",\"number\":1,\"sessionId\":\"\"}"},
        {"task.queued", "{\"taskId\":\"task-0001\",\"number\":1}"},
        {"question.asked", "{\"questionId\":\"question-0000\",\"number\":1,\"options\":[]}"},
        {"question.asked", "{\"questionId\":\"question-0000\",\"number\":0,\"options\":7}"},
        {"hub.counted", "{\"tasks\":9223372036854775807,\"questions\":0}"},
    };
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__memory);
    w.opts.on_note = count_note;
    notes = 0;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        forge(&w, bad[i].type, bad[i].data);
    forge(&w, "hub.from.tomorrow", "no JSON, and none of our business");
    forge(&w, "task.queued",
          "{\"taskId\":\"task-0000\",\"number\":0,\"prompt\":\"good\",\"runsOn\":\"one\","
          "\"sessionId\":\"session-0001\",\"timeoutMs\":9223372036854775807}");
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(weft__engine_skipped(w.engine), sizeof bad / sizeof bad[0]);
    CHECK_INT(notes, sizeof bad / sizeof bad[0]);
    ENGINE_UNTIL(&w, plays.count == 1);
    CHECK_STR(plays.runs[0]->prompt, "good");
    /* Its session has the name that the next task would give to its own. */
    CHECK_INT(submit(&w, "next", &t), 0);
    CHECK_STR(t.id, "task-0002");
    CHECK_STR(t.session, "session-0002");
    engine_end(&w);
}

TEST(what_ran_is_queued_again) {
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__sqlite);
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "again", &t), 0);
    engine_restart(&w);
    ENGINE_UNTIL(&w, plays.count == 1);
    CHECK_STR(plays.runs[0]->prompt, "again");
    CHECK_INT(weft__task_find(w.engine, t.id)->attempt, 2);
    play_end(plays.runs[0], true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    engine_end(&w);
}

TEST(what_waited_still_waits_in_order) {
    engine_world w;
    task_outcome t;
    engine_open(&w, &weft__sqlite);
    w.opts.limits.max_running = SIZE_MAX;
    CHECK_INT(world_start(&w), 0);
    for (int i = 0; i < 5; i++)
        CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .priority = i % 2}, &t), 0);
    weft__engine_stop(w.engine, false, world_stopped, &w);
    CHECK(engine_wait(&w, &w.stopped, 1));
    engine_restart(&w);
    static const char *const order[] = {"task-0001", "task-0003", "task-0000", "task-0002", "task-0004"};
    for (size_t i = 0; i < 5; i++)
        CHECK_STR(weft__task_waiting(w.engine, i)->id, order[i]);
    CHECK(weft__session_find(w.engine, "session-0000")->busy);
    engine_end(&w);
}

/* More tasks than one page of the journal has, and a limit on what is remembered. */
TEST(a_long_journal) {
    engine_world w;
    task_outcome t = {0};
    int done = 0;
    engine_open(&w, &weft__sqlite);
    w.opts.limits.max_running = 50;
    CHECK_INT(world_start(&w), 0);
    while (done < 1000) {
        for (int i = 0; i < 50; i++)
            CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x"}, task_done, &t), 0);
        CHECK(engine_wait(&w, &t.times, done + 50));
        for (size_t i = 0; i < plays.count; i++)
            play_end(plays.runs[i], true);
        ENGINE_UNTIL(&w, weft__task_counts(w.engine).of[WEFT_TASK_COMPLETED] == (uint64_t) done + 50);
        engine_settle(&w);
        play_reset();
        done += 50;
    }
    w.opts.limits.max_tasks = 10;
    engine_restart(&w);
    int count = 0;
    for (const weft_task *task = weft__task_newest(w.engine); task; task = weft__task_older(w.engine, task))
        count++;
    CHECK_INT(count, 10);
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_COMPLETED], 1000);
    CHECK_INT(submit(&w, "x", &t), 0);
    CHECK_STR(t.id, "task-1000");
    engine_end(&w);
}

/* The engine goes while it reads, or while its first events are under way. */
TEST(freed_while_it_starts) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__sqlite);
    CHECK_INT(submit(&w, "x", &t), 0);
    for (int turns = 0; turns < 12; turns++) {
        engine_crash(&w);
        w.opts.store = w.store.store;
        REQUIRE(weft__engine_new(&w.opts, &w.engine) == 0);
        CHECK_INT(weft__engine_start(w.engine, world_ready, &w), 0);
        for (int i = 0; i < turns; i++)
            weft_loop_once(w.loop, false);
    }
    engine_end(&w);
}

TEST(stopped_while_it_starts) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__sqlite);
    CHECK_INT(submit(&w, "x", &t), 0);
    for (int turns = 0; turns < 12; turns++) {
        engine_crash(&w);
        w.opts.store = w.store.store;
        REQUIRE(weft__engine_new(&w.opts, &w.engine) == 0);
        w.ready = w.stopped = 0;
        CHECK_INT(weft__engine_start(w.engine, world_ready, &w), 0);
        for (int i = 0; i < turns; i++)
            weft_loop_once(w.loop, false);
        weft__engine_stop(w.engine, false, world_stopped, &w);
        CHECK(engine_wait(&w, &w.stopped, 1));
        CHECK_INT(w.ready, 1);
    }
    engine_end(&w);
}

/* ---- what is saved ---- */

static const weft_task *check_ended(engine_world *w, const char *id) {
    const weft_task *task = weft__task_find(w->engine, id);
    if (!CHECK(task != NULL))
        return NULL;
    CHECK_INT(task->state, WEFT_TASK_FAILED);
    CHECK_STR(task->error, "it went wrong");
    CHECK_STR(task->reason, "exited");
    CHECK_INT(task->exit_code, 1);
    CHECK_INT(task->output_bytes, 5);
    CHECK(task->tail.len == 5 && memcmp(task->tail.data, "said\n", 5) == 0);
    return task;
}

/* However long the journal is, a start reads what was saved and the few events behind it; and knows the same. */
TEST(a_start_reads_what_was_saved) {
    engine_world w;
    task_outcome t, waits;
    engine_open(&w, &weft__sqlite);
    w.opts.limits.max_running = 1;
    CHECK_INT(world_start(&w), 0);
    for (int i = 0; i < 300; i++) {
        CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .key = i ? NULL : "first"}, &t), 0);
        play_say(play_of(t.id), "said\n");
        play_end(play_of(t.id), false);
        ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED);
        play_reset();
    }
    CHECK(w.engine->saved_gseq > 0); /* without anybody asking for it */
    CHECK_INT(submit(&w, "runs", &t), 0);
    CHECK_INT(submit(&w, "waits", &waits), 0);
    CHECK_INT(weft__agent_choose(w.engine, "two", NULL, NULL), 0);
    engine_settle(&w);
    engine_restart(&w);
    CHECK(w.engine->unsaved_events < 2100);
    ENGINE_UNTIL(&w, plays.count == 1);
    play_end(play_of(waits.id), true);
    ENGINE_UNTIL(&w, state_of(&w, waits.id) == WEFT_TASK_COMPLETED);
    w.stopped = 0;
    weft__engine_stop(w.engine, true, world_stopped, &w);
    CHECK(engine_wait(&w, &w.stopped, 1));
    engine_restart(&w);
    CHECK(w.engine->unsaved_events < 10);
    const weft_task *task = check_ended(&w, "task-0000");
    CHECK(task && task->key && strcmp(task->key, "first") == 0);
    check_ended(&w, "task-0299");
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_FAILED], 301);
    CHECK_INT(state_of(&w, waits.id), WEFT_TASK_COMPLETED);
    CHECK_STR(weft__agent_default(w.engine)->name, "two");
    const weft_session *session = weft__session_find(w.engine, "session-0000");
    CHECK(session && session->tasks == 1 && session->first > 0 && !session->busy);
    CHECK_INT(submit(&w, "x", &t), 0);
    CHECK_STR(t.id, "task-0302");
    engine_end(&w);
}

/* ---- retention ---- */

#define DAY ((int64_t) 24 * 3600 * 1000)

static void count_switch(void *ctx, const char *rule, bool enabled, int64_t time_ms) {
    CHECK_STR(rule, "r");
    CHECK(!enabled && time_ms == 100 * DAY);
    ++*(int *) ctx;
}

/* Who has a conversation to go on with is told to; who has not has failed. */
static void go_on_after(bool clean) {
    engine_world w;
    task_outcome can, cannot;
    engine_open(&w, &weft__sqlite);
    w.opts.resume = true;
    w.opts.limits.drain_ms = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "build it", &can), 0);
    CHECK_INT(submit(&w, "print it", &cannot), 0);
    play_of(can.id)->host->on_session(play_of(can.id)->ctx, "conversation");
    ENGINE_UNTIL(&w, weft__session_find(w.engine, can.session)->agent_session != NULL);
    for (int i = 0; i < 2; i++) { /* twice, because it may die again */
        if (clean) {
            int before = w.stopped;
            weft__engine_stop(w.engine, true, world_stopped, &w);
            if (!play_of(can.id)->ended)
                play_end(play_of(can.id), false);
            if (i == 0)
                play_end(play_of(cannot.id), false);
            CHECK(engine_wait(&w, &w.stopped, before + 1));
        }
        engine_restart(&w);
        CHECK_INT(state_of(&w, cannot.id), WEFT_TASK_FAILED);
        ENGINE_UNTIL(&w, play_of(can.id) != NULL);
        CHECK_STR(play_of(can.id)->agent_session, "conversation");
        CHECK(strncmp(play_of(can.id)->prompt, "build it\n\n(The hub was restarted while you worked", 48) == 0);
        CHECK_STR(weft__task_find(w.engine, can.id)->prompt, "build it");
    }
    play_end(play_of(can.id), true);
    ENGINE_UNTIL(&w, state_of(&w, can.id) == WEFT_TASK_COMPLETED);
    engine_end(&w);
}
TEST(a_turn_goes_on_after_a_kill) {
    go_on_after(false);
}
TEST(a_turn_goes_on_after_a_stop) {
    go_on_after(true);
}

TEST(old_events_go_and_what_matters_stays) {
    engine_world w;
    task_outcome t, waits, ran;
    uint64_t before;
    store_outcome page = {0};
    engine_open(&w, &weft__sqlite);
    w.wall = 100 * DAY;
    w.opts.limits.max_running = 1;
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_INT(submit(&w, "old", &t), 0);
        play_say(play_of(t.id), "old\n");
        play_end(play_of(t.id), true);
        ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    }
    CHECK_INT(weft__agent_choose(w.engine, "two", NULL, NULL), 0);
    CHECK_INT(weft__engine_append(w.engine, "hub", "automation.switched",
                                  WEFT_OBJ({"enabled", weft_bool(false)}, {"ruleId", weft_str("r")}), NULL, NULL),
              0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "runs for weeks", .key = "weeks"}, &ran), 0);
    CHECK_INT(submit(&w, "waits for weeks", &waits), 0);
    engine_settle(&w);
    weft__retention_start(w.engine);
    ENGINE_UNTIL(&w, !w.engine->retaining);
    before = weft__store_head(w.store.store);

    /* The clock says that it is forty days later, and that is not believed. */
    w.wall += 40 * DAY;
    world_forget(&w);
    engine_restart(&w);
    ENGINE_UNTIL(&w, !w.engine->retaining);
    engine_settle(&w);
    CHECK_INT(world_read(&w.store, &(weft_query){.oldest = true, .max_events = 1}, &page), 0);
    CHECK_INT(page.trimmed, 0);
    /* Now forty days have gone by: all of that is too old. Something has come since, or there would be nothing to do. */
    w.steady += 40 * DAY;
    world_forget(&w);
    CHECK_INT(weft__engine_append(w.engine, "hub", "notice", WEFT_OBJ({"message", weft_str("m")}), NULL, NULL), 0);
    ENGINE_UNTIL(&w, w.engine->bytes_since);
    weft__retention_start(w.engine);
    ENGINE_UNTIL(&w, !w.engine->retaining);
    ENGINE_UNTIL(&w, world_read(&w.store, &(weft_query){.oldest = true, .max_events = 1}, &page) == 0 && page.trimmed);
    CHECK_INT(page.trimmed, before);

    /* And again, from what is left. */
    engine_restart(&w);
    CHECK(!weft__task_find(w.engine, "task-0000"));
    const weft_task *task = weft__task_find(w.engine, ran.id);
    REQUIRE(task);
    CHECK_STR(task->prompt, "runs for weeks");
    CHECK_STR(task->key, "weeks");
    CHECK_INT(task->created_ms, 100 * DAY);
    task = weft__task_find(w.engine, waits.id);
    REQUIRE(task);
    CHECK_STR(task->prompt, "waits for weeks");
    CHECK_STR(weft__agent_default(w.engine)->name, "two");
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_COMPLETED], 20);
    int switches = 0;
    weft__engine_each_switch(w.engine, count_switch, &switches);
    CHECK_INT(switches, 1);
    ENGINE_UNTIL(&w, plays.count == 1);
    CHECK_STR(plays.runs[0]->task, ran.id);
    w.opts.limits.max_running = 4;
    weft__engine_set(w.engine, &world_all, &w.opts.limits);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "new", .agent = "one"}, &t), 0);
    CHECK_STR(t.id, "task-0022");
    engine_end(&w);
}

/* By size, while agents go on talking. */
TEST(the_journal_stays_within_its_size) {
    engine_world w;
    task_outcome t;
    store_outcome page;
    static char text[10001];
    memset(text, 'x', sizeof text - 1);
    engine_open(&w, &weft__sqlite);
    w.opts.limits.keep_bytes = 1000000;
    w.opts.limits.keep_output = 400000;
    CHECK_INT(world_start(&w), 0);
    uint64_t said = 0;
    for (int i = 0; i < 10; i++) {
        CHECK_INT(submit(&w, "x", &t), 0);
        for (int n = 0; n < 30; n++) {
            play_say(play_of(t.id), text);
            said += 10000;
            ENGINE_UNTIL(&w, weft__task_find(w.engine, t.id)->output_bytes == (uint64_t) (n + 1) * 10000);
        }
        play_end(play_of(t.id), true);
        ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    }
    CHECK_INT(said, 3000000);
    CHECK(w.engine->saved_gseq > 0);
    /* The first are gone; the last are there. */
    ENGINE_UNTIL(&w, world_read(&w.store, &(weft_query){.stream = "session/session-0000", .oldest = true}, &page) == 0 &&
                         page.trimmed == page.head);
    CHECK_INT(world_read(&w.store, &(weft_query){.stream = "session/session-0009", .oldest = true}, &page), 0);
    CHECK_INT(page.trimmed, 0);
    engine_restart(&w);
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_COMPLETED], 10);
    CHECK_INT(submit(&w, "x", &t), 0);
    CHECK_STR(t.id, "task-0010");
    engine_end(&w);
}

/* What still matters is more than may be kept: it is kept all the same. */
TEST(more_matters_than_is_kept) {
    engine_world w;
    task_outcome t;
    static char prompt[3001];
    memset(prompt, 'x', sizeof prompt - 1);
    engine_open(&w, play_store()); /* whose journal outlives the engine */
    w.opts.limits.keep_bytes = 20000;
    w.opts.limits.max_running = SIZE_MAX;
    CHECK_INT(world_start(&w), 0);
    for (int i = 0; i < 10; i++)
        CHECK_INT(submit(&w, prompt, &t), 0);
    for (int i = 0; i < 10; i++) {
        weft__engine_append(w.engine, "files", "file.modify", WEFT_OBJ({"path", weft_str(prompt)}), NULL, NULL);
        engine_settle(&w);
    }
    engine_settle(&w);
    size_t heard = w.heard_len;
    engine_settle(&w);
    CHECK_INT(w.heard_len, heard);
    w.engine = weft__engine_free(w.engine);
    CHECK_INT(world_start(&w), 0);
    for (int i = 0; i < 10; i++) {
        char id[32];
        snprintf(id, sizeof id, "task-%04d", i);
        CHECK(weft__task_find(w.engine, id) != NULL);
    }
    engine_end(&w);
}

/* A task that waits for its next attempt has had those before, also when only its document is left. */
TEST(attempts_are_kept) {
    engine_world w;
    task_outcome t;
    static char text[3001];
    memset(text, 'x', sizeof text - 1);
    engine_open(&w, play_store());
    w.opts.limits.keep_bytes = 20000;
    w.opts.limits.retry_ms = 60000;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .retries = 1}, &t), 0);
    play_end(play_of(t.id), false);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_QUEUED);
    for (int i = 0; i < 10; i++) {
        weft__engine_append(w.engine, "files", "file.modify", WEFT_OBJ({"path", weft_str(text)}), NULL, NULL);
        engine_settle(&w);
    }
    ENGINE_UNTIL(&w, w.engine->saved_gseq > 0 && !w.engine->retaining);
    w.engine = weft__engine_free(w.engine);
    w.opts.limits.max_running = SIZE_MAX;
    CHECK_INT(world_start(&w), 0);
    const weft_task *task = weft__task_find(w.engine, t.id);
    REQUIRE(task);
    CHECK_INT(task->attempt, 1);
    CHECK_INT(task->state, WEFT_TASK_QUEUED);
    engine_end(&w);
}

/* ---- retention under load ---- */

#define CHAINS 4
#define CHAIN_LENGTH 3000

typedef struct chain {
    engine_world *w;
    int sent, done;
} chain;

static void send_next(void *ctx, int r) {
    chain *c = ctx;
    CHECK_INT(r, 0);
    c->done++;
    if (c->sent < CHAIN_LENGTH) {
        c->sent++;
        CHECK_INT(weft__engine_append(c->w->engine, "hub", "notice", WEFT_OBJ({"message", weft_str("x")}), send_next, c), 0);
    }
}

/* There is always something under way; retention comes all the same, and so does what an agent says. */
TEST(retention_needs_no_silence) {
    engine_world w;
    task_outcome t;
    chain chains[CHAINS];
    engine_open(&w, &weft__sqlite);
    w.opts.limits.max_running = 1;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    for (int i = 0; i < CHAINS; i++) {
        chains[i] = (chain){.w = &w};
        send_next(&chains[i], 0);
    }
    world_forget(&w);
    weft__retention_start(w.engine);
    play_say(play_of(t.id), "some text\n");
    ENGINE_UNTIL(&w, !w.engine->retaining && strstr(w.heard, "session.output ") != NULL);
    for (int i = 0; i < CHAINS; i++)
        CHECK(chains[i].sent < 50); /* one or two for each sync */
    for (int i = 0; i < CHAINS; i++)
        ENGINE_UNTIL(&w, chains[i].done == CHAIN_LENGTH + 1);
    CHECK(!w.engine->retaining);
    engine_end(&w);
}

/* Nothing goes before everything is saved, also when that takes several attempts. */
TEST(retention_with_a_broken_store) {
    engine_world w;
    task_outcome t;
    static char text[3001];
    memset(text, 'x', sizeof text - 1);
    engine_open(&w, play_store());
    w.opts.limits.keep_bytes = 20000;
    w.opts.limits.max_running = SIZE_MAX;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "still waits", &t), 0);
    for (int i = 0; i < 12; i++) {
        if (i == 3) {
            play_store_fails = -EIO;
            w.engine->bytes_since = 1;
            weft__retention_start(w.engine);
            ENGINE_UNTIL(&w, w.engine->save_failed);
            CHECK(!w.engine->retaining);
            play_store_fails = 0;
        }
        weft__engine_append(w.engine, "files", "file.modify", WEFT_OBJ({"path", weft_str(text)}), NULL, NULL);
        engine_settle(&w);
    }
    store_outcome page;
    CHECK_INT(world_read(&w.store, &(weft_query){.stream = "hub", .oldest = true}, &page), 0);
    CHECK(page.trimmed > 0);
    w.engine = weft__engine_free(w.engine);
    CHECK_INT(world_start(&w), 0);
    const weft_task *task = weft__task_find(w.engine, t.id);
    REQUIRE(task);
    CHECK_STR(task->prompt, "still waits");
    CHECK_INT(task->state, WEFT_TASK_QUEUED);
    engine_end(&w);
}

/* clang-format off */
TEST_MAIN(
    CASE(everything_is_as_it_was)
    CASE(what_ran_has_failed)
    CASE(what_cannot_be_read_is_passed_over)
    CASE(what_ran_is_queued_again)
    CASE(what_waited_still_waits_in_order)
    CASE(a_long_journal)
    CASE(freed_while_it_starts)
    CASE(stopped_while_it_starts)
    CASE(a_start_reads_what_was_saved)
    CASE(a_turn_goes_on_after_a_kill)
    CASE(a_turn_goes_on_after_a_stop)
    CASE(old_events_go_and_what_matters_stays)
    CASE(the_journal_stays_within_its_size)
    CASE(more_matters_than_is_kept)
    CASE(attempts_are_kept)
    CASE(retention_needs_no_silence)
    CASE(retention_with_a_broken_store)
)

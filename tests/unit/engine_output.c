/* What a run says: batched, held back, cut, kept through a failing store, read back. */
#include "engine/world.h"

typedef struct output_outcome {
    int times, r;
    size_t len;
    char start[16], end[16];
} output_outcome;

static void output_done(void *ctx, int r, weft_bytes output) {
    output_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    outcome->len = output.len;
    size_t n = output.len < 15 ? output.len : 15;
    snprintf(outcome->start, sizeof outcome->start, "%.*s", (int) n, output.data);
    snprintf(outcome->end, sizeof outcome->end, "%.*s", (int) n, output.data + output.len - n);
}

static int read_output(engine_world *w, const char *id, size_t max, output_outcome *ret) {
    *ret = (output_outcome){0};
    int r = weft__task_output(w->engine, id, max, output_done, ret);
    CHECK_INT(ret->times, 0);
    return r < 0 ? r : engine_wait(w, &ret->times, 1) ? ret->r : -ETIMEDOUT;
}

static void say_lines(weft_run *run, int count) {
    for (int i = 0; i < count; i++) {
        char line[32];
        snprintf(line, sizeof line, "line %06d\n", i);
        play_say(run, line);
    }
}

TEST(all_of_it_is_read_back) {
    engine_world w;
    task_outcome t;
    output_outcome o;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    run->host->on_output(run->ctx, WEFT_RUN_STDERR, (weft_bytes){"not this", 8});
    say_lines(run, 10000); /* 120,000 bytes */
    ENGINE_UNTIL(&w, weft__task_find(w.engine, t.id)->output_bytes == 120000);
    CHECK_INT(read_output(&w, t.id, SIZE_MAX, &o), 0);
    CHECK_INT(o.len, 120000);
    CHECK_STR(o.start, "line 000000\nlin");
    CHECK_STR(o.end, "98\nline 009999\n");
    CHECK_INT(read_output(&w, t.id, 24, &o), 0);
    CHECK_TEXT(o.start, 12, "line 009998\n");
    CHECK_INT(read_output(&w, t.id, 50000, &o), 0);
    CHECK_INT(o.len, 50000);
    CHECK_STR(o.end, "98\nline 009999\n");
    play_end(run, true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    const weft_task *task = weft__task_find(w.engine, t.id);
    CHECK(task->tail.len <= WEFT_TASK_TAIL && task->tail.len > WEFT_TASK_TAIL - 4);
    CHECK_TEXT(task->tail.data + task->tail.len - 12, 12, "line 009999\n");
    CHECK_INT(read_output(&w, t.id, SIZE_MAX, &o), 0);
    CHECK_INT(o.len, 120000);
    CHECK_INT(read_output(&w, "task-0001", SIZE_MAX, &o), -ENOENT);
    engine_end(&w);
}

/* The engine goes while a page is under way. */
TEST(reading_ends_with_the_engine) {
    engine_world w;
    task_outcome t;
    output_outcome o = {0};
    engine_begin(&w, &weft__sqlite);
    CHECK_INT(submit(&w, "x", &t), 0);
    say_lines(play_of(t.id), 10000);
    ENGINE_UNTIL(&w, weft__task_find(w.engine, t.id)->output_bytes == 120000);
    CHECK_INT(weft__task_output(w.engine, t.id, SIZE_MAX, output_done, &o), 0);
    weft_loop_once(w.loop, false);
    w.engine = weft__engine_free(w.engine);
    CHECK_INT(o.times, 1);
    engine_end(&w);
}

TEST(updates_and_their_text) {
    engine_world w;
    task_outcome t;
    weft_doc *doc;
    static const char *const updates[] = {
        "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"h\\u00e9\"}}",
        "{\"sessionUpdate\":\"agent_thought_chunk\",\"content\":{\"type\":\"text\",\"text\":\"no\"}}",
        "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"image\",\"data\":\"no\"}}",
        "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"llo\"}}",
        "{\"sessionUpdate\":\"plan\",\"entries\":[]}",
    };
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
        REQUIRE(weft_doc_parse(updates[i], strlen(updates[i]), NULL, &doc) == 0);
        run->host->on_update(run->ctx, weft_doc_root(doc));
        weft_doc_free(doc);
    }
    play_end(run, true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    const weft_task *task = weft__task_find(w.engine, t.id);
    CHECK_TEXT(task->tail.data, task->tail.len, "h\xc3\xa9llo");
    engine_end(&w);
}

/* Three-byte characters that never fall on the border of the tail or of an event. */
TEST(nothing_is_cut_within_a_character) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    size_t len = 3 * 70000;
    char *text = malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = "\xe2\x82\xac"[i % 3];
    text[len] = '\0';
    play_say(play_of(t.id), text);
    free(text);
    ENGINE_UNTIL(&w, weft__task_find(w.engine, t.id)->output_bytes == len);
    const weft_task *task = weft__task_find(w.engine, t.id);
    CHECK_INT(task->tail.len, WEFT_TASK_TAIL / 3 * 3);
    CHECK_TEXT(task->tail.data, 3, "\xe2\x82\xac");
    engine_end(&w);
}

TEST(an_agent_that_says_too_much_waits) {
    engine_world w;
    task_outcome t;
    static char text[100 * 1024 + 1];
    memset(text, 'x', sizeof text - 1);
    engine_begin(&w, &weft__memory);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    play_say(run, text);
    play_say(run, text);
    CHECK(!run->paused);
    play_say(run, text);
    CHECK(run->paused);
    ENGINE_UNTIL(&w, !run->paused);
    ENGINE_UNTIL(&w, weft__task_find(w.engine, t.id)->output_bytes == 300 * 1024);
    engine_end(&w);
}

TEST(the_store_fails_and_nothing_is_lost) {
    engine_world w;
    task_outcome t, u = {0};
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    world_forget(&w);
    play_store_fails = -ENOSPC;
    play_say(run, "one ");
    ENGINE_UNTIL(&w, weft__engine_trouble(w.engine) == -ENOSPC);
    CHECK(run->paused);
    CHECK_INT(submit(&w, "y", &u), -ENOSPC);
    CHECK(!weft__task_find(w.engine, "task-0001"));
    CHECK_INT(weft__task_cancel(w.engine, "task-0001", NULL, NULL, NULL), -ENOENT);
    play_say(run, "two");
    play_end(run, true);
    engine_settle(&w);
    CHECK_STR(w.heard, "");
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_RUNNING);
    play_store_fails = 0;
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    CHECK_INT(weft__engine_trouble(w.engine), 0);
    const weft_task *task = weft__task_find(w.engine, t.id);
    CHECK_TEXT(task->tail.data, task->tail.len, "one two");
    /* The number of what was not stored is not used again. */
    CHECK_INT(submit(&w, "z", &u), 0);
    CHECK_STR(u.id, "task-0002");
    engine_end(&w);
}

TEST(the_end_is_stored_when_the_store_works_again) {
    engine_world w;
    task_outcome t, cancelled = {0};
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "x", &t), 0);
    CHECK_INT(weft__task_cancel(w.engine, t.id, "ann", task_done, &cancelled), 0);
    play_store_fails = -EIO;
    play_end(play_of(t.id), false);
    ENGINE_UNTIL(&w, weft__engine_trouble(w.engine) == -EIO);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_RUNNING);
    CHECK_INT(cancelled.times, 0);
    play_store_fails = 0;
    CHECK(engine_wait(&w, &cancelled.times, 1));
    CHECK_INT(cancelled.r, 0);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_CANCELLED);
    engine_end(&w);
}

/* A task whose start could not be stored is not running, and starts when it can be. */
TEST(a_start_is_stored_when_the_store_works_again) {
    engine_world w;
    task_outcome t;
    engine_open(&w, play_store());
    w.opts.limits.max_running = SIZE_MAX;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    play_store_fails = -EIO;
    weft__engine_set(w.engine, &world_all, &(weft_engine_limits){.max_running = 1});
    ENGINE_UNTIL(&w, weft__engine_trouble(w.engine) == -EIO);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_QUEUED);
    CHECK_INT(plays.count, 0);
    play_store_fails = 0;
    ENGINE_UNTIL(&w, plays.count == 1);
    engine_end(&w);
}

static uint64_t appends_of(engine_world *w) {
    weft_store_stats stats;
    weft__store_stats(weft__engine_store(w->engine), &stats);
    return stats.appends;
}

static void say_and_end(engine_world *w, const char *task, int lines) {
    ENGINE_UNTIL(w, play_of(task) != NULL);
    uint64_t before = appends_of(w);
    say_lines(play_of(task), lines);
    play_end(play_of(task), true);
    ENGINE_UNTIL(w, state_of(w, task) == WEFT_TASK_COMPLETED);
    CHECK_INT(appends_of(w) - before, 1);
}

/* The end says where the output is before that has its place: more than the tail is read back from there. */
TEST(the_last_words_and_the_end_are_one_append) {
    engine_world w;
    task_outcome a, b;
    output_outcome o;
    engine_begin(&w, &weft__sqlite);
    CHECK_INT(submit(&w, "a", &a), 0);
    world_forget(&w);
    say_and_end(&w, a.id, 2000);
    CHECK_STR(w.heard, "session.output task.completed ");
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "b", .session = a.session}, &b), 0);
    say_and_end(&w, b.id, 3000);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(weft__task_find(w.engine, b.id)->output_bytes, 36000);
        CHECK_INT(read_output(&w, a.id, SIZE_MAX, &o), 0);
        CHECK_INT(o.len, 24000);
        CHECK_STR(o.end, "98\nline 001999\n");
        CHECK_INT(read_output(&w, b.id, SIZE_MAX, &o), 0);
        CHECK_INT(o.len, 36000);
        CHECK_STR(o.start, "line 000000\nlin");
        if (i == 0)
            engine_restart(&w);
    }
    engine_end(&w);
}

/* Both could not be stored together, so each is stored alone, in the same order. */
TEST(the_last_words_are_stored_before_the_end) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "x", &t), 0);
    world_forget(&w);
    play_store_fails = -EIO;
    play_say(play_of(t.id), "last words");
    play_end(play_of(t.id), true);
    ENGINE_UNTIL(&w, weft__engine_trouble(w.engine) == -EIO);
    CHECK_STR(w.heard, "");
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_RUNNING);
    play_store_fails = 0;
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    CHECK(strstr(w.heard, "session.output task.completed ") != NULL);
    const weft_task *task = weft__task_find(w.engine, t.id);
    CHECK_TEXT(task->tail.data, task->tail.len, "last words");
    CHECK_INT(task->output_bytes, 10);
    engine_end(&w);
}

/* With a store that stays broken the engine stops all the same, and the next start tells the truth. */
TEST(stop_with_a_broken_store) {
    engine_world w;
    task_outcome t;
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    play_store_fails = -EIO;
    weft__engine_stop(w.engine, true, world_stopped, &w);
    CHECK_INT(run->forced, 1);
    play_say(run, "last words");
    play_end(run, false);
    CHECK(engine_wait(&w, &w.stopped, 1));
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_RUNNING);
    play_store_fails = 0;
    engine_end(&w);
}

/* What is noted first is that storing failed. */
static void mend_store(void *ctx, const char *line) {
    (void) ctx, (void) line;
    play_store_fails = 0;
}

/* What it said last could not be stored, and then the store works again: an end would say that nothing is missing. */
TEST(stop_with_a_store_that_fails_once) {
    engine_world w;
    task_outcome t;
    engine_open(&w, play_store());
    w.opts.on_note = mend_store;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    weft_run *run = play_of(t.id);
    weft__engine_stop(w.engine, false, world_stopped, &w);
    world_forget(&w);
    play_store_fails = -ENOSPC;
    play_say(run, "last words");
    play_end(run, true);
    CHECK(engine_wait(&w, &w.stopped, 1));
    CHECK_STR(w.heard, "hub.stopped ");
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_RUNNING);
    engine_end(&w);
}

TEST(a_session_keeps_its_share) {
    engine_world w;
    task_outcome t;
    output_outcome o;
    static char text[1001];
    memset(text, 'x', sizeof text - 1);
    text[999] = '\n';
    engine_open(&w, &weft__memory);
    w.opts.limits.keep_output = 20000;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(submit(&w, "x", &t), 0);
    for (uint64_t i = 1; i <= 100; i++) {
        play_say(play_of(t.id), text);
        ENGINE_UNTIL(&w, weft__task_find(w.engine, t.id)->output_bytes == i * 1000);
    }
    engine_settle(&w);
    CHECK_INT(read_output(&w, t.id, SIZE_MAX, &o), 0);
    CHECK(o.len >= 15000 && o.len <= 23000);
    CHECK_INT(weft__task_find(w.engine, t.id)->output_bytes, 100000);
    engine_end(&w);
}

/* clang-format off */
TEST_MAIN(
    CASE(all_of_it_is_read_back)
    CASE(reading_ends_with_the_engine)
    CASE(updates_and_their_text)
    CASE(nothing_is_cut_within_a_character)
    CASE(an_agent_that_says_too_much_waits)
    CASE(the_store_fails_and_nothing_is_lost)
    CASE(the_end_is_stored_when_the_store_works_again)
    CASE(a_start_is_stored_when_the_store_works_again)
    CASE(the_last_words_and_the_end_are_one_append)
    CASE(the_last_words_are_stored_before_the_end)
    CASE(stop_with_a_broken_store)
    CASE(stop_with_a_store_that_fails_once)
    CASE(a_session_keeps_its_share)
)

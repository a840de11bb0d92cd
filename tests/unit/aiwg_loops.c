/* AIWG's supervisor of loops, and the tasks that it takes over from AIWG's own daemon. */
#include "aiwg_loops.h"

#include <stdlib.h>

#include "aiwg_tasks_file.h"
#include "buf.h"
#include "engine/world.h"

static const weft_aiwg_loop_limits usual = {
    .max_running = 1, .max_queue = 2, .max_restarts = 2, .window_ms = 60000, .threshold = 3, .cooldown_ms = 60000};

static char heard[64][32];
static size_t heard_count;

static void on_event(void *ctx, const char *name, const char *data, size_t len) {
    (void) ctx, (void) data, (void) len;
    if (heard_count < 64)
        snprintf(heard[heard_count++], sizeof heard[0], "%s", name);
}

static bool has_heard(const char *name) {
    for (size_t i = 0; i < heard_count; i++)
        if (strcmp(heard[i], name) == 0)
            return true;
    return false;
}

static weft_aiwg_loops *make_loops(const weft_hub *hub, const weft_aiwg_loop_limits *limits) {
    weft_aiwg_loops *loops = NULL;
    heard_count = 0;
    CHECK_INT(weft__aiwg_loops_new(&(weft_aiwg_loops_opts){.hub = hub, .limits = *limits, .on_event = on_event}, &loops), 0);
    return loops;
}

static int submit_loop(weft_aiwg_loops *loops, const char *id, int64_t priority, int64_t *position, char *why) {
    weft_aiwg_loop_place place = {.position = -1};
    int r =
        weft__aiwg_loops_submit(loops, &(weft_aiwg_loop_spec){.id = id, .prompt = "p", .priority = priority}, &place, why);
    *position = place.position;
    return r;
}

static void texts_are(weft_aiwg_loops *loops, unsigned kinds, const char *names) {
    weft_buf text = {0};
    weft_doc *doc = NULL;
    char room[256] = "", *found = room;
    REQUIRE(weft__aiwg_loops_write(loops, &text, kinds, true) == 0);
    REQUIRE(weft_doc_parse(weft__buf_head(&text), weft__buf_len(&text), NULL, &doc) == 0);
    for (weft_iter it = weft_iterate(weft_doc_root(doc)); weft_next(&it);) {
        size_t used = strlen(found);
        snprintf(found + used, sizeof room - used, "%s%s", used ? " " : "", weft_get_str(&it.value, "loopId", "?"));
    }
    CHECK_STR(found, names);
    weft_doc_free(doc);
    weft__buf_done(&text, NULL);
}

static size_t running(weft_aiwg_loops *loops) {
    weft_aiwg_loops_state state;
    weft__aiwg_loops_state(loops, &state);
    return state.running;
}

TEST(a_queue) {
    engine_world w;
    char room[WEFT_AIWG_LOOP_WHY] = "", *why = room;
    int64_t position;
    engine_begin(&w, &weft__memory);
    weft_hub hub = {.engine = w.engine};
    weft_aiwg_loops *loops = make_loops(&hub, &usual);
    CHECK_INT(submit_loop(loops, "a", 0, &position, why), 0);
    CHECK_INT(position, 0);
    CHECK_INT(submit_loop(loops, "b", 0, &position, why), 0);
    CHECK_INT(position, 1);
    CHECK_INT(submit_loop(loops, "c", 5, &position, why), 0);
    CHECK_INT(position, 1);
    texts_are(loops, WEFT_AIWG_RUNNING, "a");
    texts_are(loops, WEFT_AIWG_QUEUED, "c b");
    CHECK_INT(submit_loop(loops, "d", 0, &position, why), -EPERM);
    CHECK_STR(why, "Queue full: 2/2. Cannot enqueue loop d");
    CHECK_INT(submit_loop(loops, "a", 0, &position, why), -EPERM);
    CHECK_STR(why, "Loop a is running already");
    CHECK(weft__aiwg_loops_cancel(loops, "b", "test"));
    CHECK(!weft__aiwg_loops_cancel(loops, "b", "test"));
    ENGINE_UNTIL(&w, play_of("task-0000"));
    CHECK(!weft__aiwg_loops_kill(loops, "a", 0)); /* it has no process */
    play_end(play_of("task-0000"), true);
    ENGINE_UNTIL(&w, play_of("task-0001"));
    texts_are(loops, WEFT_AIWG_RUNNING | WEFT_AIWG_QUEUED | WEFT_AIWG_FAILED, "c");
    CHECK(has_heard("loop:started") && has_heard("loop:queued") && has_heard("loop:completed"));
    weft__aiwg_loops_stop(loops);
    CHECK_INT(submit_loop(loops, "e", 0, &position, why), -EPERM);
    CHECK_STR(why, "DaemonSupervisor is shutting down");
    weft__aiwg_loops_free(loops);
    engine_end(&w);
}

TEST(failures) {
    engine_world w;
    char room[WEFT_AIWG_LOOP_WHY] = "", *why = room, id[32];
    int64_t position;
    engine_begin(&w, &weft__memory);
    weft_hub hub = {.engine = w.engine};
    weft_aiwg_loops *loops = make_loops(&hub, &usual);
    for (size_t n = 0; n < 4; n++) { /* two loops, each tried twice */
        if (n % 2 == 0)
            CHECK_INT(submit_loop(loops, n ? "y" : "x", 0, &position, why), 0);
        snprintf(id, sizeof id, "task-%04zu", n);
        ENGINE_UNTIL(&w, play_of(id));
        play_end(play_of(id), false);
        ENGINE_UNTIL(&w, state_of(&w, id) == WEFT_TASK_FAILED);
    }
    ENGINE_UNTIL(&w, running(loops) == 0);
    texts_are(loops, WEFT_AIWG_FAILED, "x y");
    CHECK(has_heard("loop:failed") && has_heard("circuit:trip"));
    CHECK_INT(submit_loop(loops, "x", 0, &position, why), -EPERM);
    CHECK_STR(why, "Loop x is permanently failed (restart intensity exceeded)");
    CHECK_INT(submit_loop(loops, "z", 0, &position, why), -EPERM);
    CHECK(strncmp(why, "Circuit breaker is open: 4 consecutive failures. Cooldown remaining: ", 69) == 0);
    weft__aiwg_loops_free(loops);
    engine_end(&w);
}

/* The supervisor goes before what it submitted is stored. */
TEST(freed_too_early) {
    engine_world w;
    char room[WEFT_AIWG_LOOP_WHY] = "", *why = room;
    int64_t position;
    engine_begin(&w, &weft__memory);
    weft_hub hub = {.engine = w.engine};
    weft_aiwg_loops *loops = make_loops(&hub, &usual);
    CHECK_INT(submit_loop(loops, NULL, 0, &position, why), 0);
    weft__aiwg_loops_free(loops);
    ENGINE_UNTIL(&w, play_of("task-0000"));
    engine_end(&w);
}

/* ---- tasks.json ---- */

static int imported_r = 1;

static void on_imported(void *ctx, int r) {
    (void) ctx;
    imported_r = r;
}

static int import_text(const weft_hub *hub, const char *text) {
    weft_doc *doc = NULL;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    imported_r = 1;
    int r = weft__aiwg_tasks_import(hub, weft_doc_root(doc), on_imported, NULL);
    weft_doc_free(doc);
    return r;
}

TEST(takes_over) {
    static const char text[] =
        "{\"tasks\":[{\"id\":\"task-0003\",\"prompt\":\"c\",\"state\":\"running\",\"createdAt\":\"2026-11-15T02:50:21."
        "613Z\"},"
        "{\"id\":\"task-0001\",\"prompt\":5,\"state\":\"completed\",\"output\":\"out\",\"metadata\":{\"a\":1},\"agent\":"
        "\"rev\","
        "\"priority\":-2},{\"id\":\"task-0001\",\"prompt\":\"twice\"},{\"id\":\"task-1\"},{\"id\":\"task-00002\"},7,null,"
        "{\"id\":\"task-99999999999999999999\"},{\"id\":\"x\"},{\"id\":\"task-0002\",\"state\":\"failed\",\"error\":{\"e\":"
        "1}}]}";
    engine_world w;
    task_outcome outcome;
    engine_begin(&w, &weft__memory);
    weft_hub hub = {.engine = w.engine};
    CHECK_INT(import_text(&hub, text), 1);
    ENGINE_UNTIL(&w, imported_r <= 0);
    CHECK_INT(imported_r, 0);
    const weft_task *first = weft__task_find(w.engine, "task-0001"), *last = weft__task_find(w.engine, "task-0003");
    REQUIRE(first && last);
    CHECK_STR(first->prompt, "5");
    CHECK_STR(first->agent, "rev");
    CHECK_STR(first->metadata, "{\"a\":1}");
    CHECK_INT(first->priority, -2);
    CHECK_INT(first->state, WEFT_TASK_COMPLETED);
    CHECK_TEXT(first->tail.data, first->tail.len, "out");
    CHECK_INT(last->state, WEFT_TASK_FAILED);
    CHECK_STR(last->reason, "daemonRestarted");
    CHECK_INT(last->created_ms, 1794711021613);
    CHECK_STR(weft__task_find(w.engine, "task-0002")->error, "{\"e\":1}");
    CHECK_INT((int64_t) weft__task_counts(w.engine).of[WEFT_TASK_FAILED], 2);
    CHECK(weft__task_newest(w.engine) == last);
    CHECK_INT((int64_t) plays.count, 0);   /* nothing of it runs */
    CHECK_INT(import_text(&hub, text), 0); /* and nothing is taken over twice */
    CHECK_INT(submit(&w, "run", &outcome), 0);
    CHECK_STR(outcome.id, "task-0004");
    CHECK_INT(import_text(&hub, "{\"tasks\":5}"), 0);
    CHECK_INT(import_text(&hub, "[]"), 0);
    engine_end(&w);
}

TEST_MAIN(CASE(a_queue) CASE(failures) CASE(freed_too_early) CASE(takes_over))

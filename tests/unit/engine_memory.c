/* Every allocation of the engine fails once (F4): no crash, no leak, nothing stored is lost, and what was asked for either
 * happens or is refused. */
#include "engine/world.h"

#define LAST 3000 /* more allocations than a scene has */

static test_memory memory;

/* The store and the loop have memory; the engine's is ours. */
static bool begin(engine_world *w, store_world *store, long fail_at) {
    memset(w, 0, sizeof *w);
    test_memory_init(&memory, 0);
    w->store = *store;
    CHECK(weft_loop_new(NULL, &w->loop) == 0);
    w->opts.alloc = &memory.alloc;
    w->opts.limits.retry_ms = 1;
    memory.fail_at = fail_at;
    return world_start(w) == 0;
}

/* After this, what is under way can end. */
static void memory_is_back(void) {
    memory.fail_at = 0;
}

static void end(engine_world *w) {
    w->engine = weft__engine_free(w->engine);
    CHECK_INT(plays.live, 0);
    weft__store_dispatch(w->store.store);
    CHECK_INT(memory.live, 0);
    weft_loop_free(w->loop);
    play_reset();
}

static void nothing(void *ctx, int r, const weft_question *question) {
    (void) ctx;
    (void) r;
    (void) question;
}

static void no_output(void *ctx, int r, weft_bytes output) {
    int *times = ctx;
    CHECK(r == 0 || r == -ENOMEM);
    CHECK(r < 0 || output.len == 40000);
    ++*times;
}

static void ask(weft_run *run) {
    static const char options[] = "[{\"id\":\"y\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]";
    run->host->on_ask(run->ctx, "k",
                      WEFT_OBJ({"title", weft_str("may I?")}, {"options", weft_raw(options, strlen(options))}));
}

/* One task, with output, a question, and an end. */
static void scene(engine_world *w) {
    task_outcome t = {0}, c = {0};
    static char text[20001];
    memset(text, 'x', sizeof text - 1);
    int r = weft__task_submit(
        w->engine,
        &(weft_task_spec){.prompt = "x", .agent = "writer", .metadata = "{\"a\":\"\\u00e9\"}", .key = "k", .retries = 1},
        task_done, &t);
    CHECK(r == 0 || r == -ENOMEM);
    if (r < 0 || !engine_wait(w, &t.times, 1) || t.r < 0) {
        CHECK(r == -ENOMEM || t.r == -ENOMEM);
        return;
    }
    ENGINE_UNTIL(w, play_of(t.id) != NULL);
    weft_run *run = play_of(t.id);
    run->host->on_process(run->ctx, 12);
    run->host->on_session(run->ctx, "name");
    play_say(run, text);
    ask(run);
    engine_settle(w);
    const weft_question *q = weft__question_first(w->engine, false);
    if (q)
        weft__question_answer(w->engine, q->id, "y", "ann", "because", nothing, NULL);
    play_say(run, text);
    engine_settle(w);
    play_end(run, false);
    ENGINE_UNTIL(w, state_of(w, t.id) != WEFT_TASK_RUNNING);
    if (state_of(w, t.id) == WEFT_TASK_QUEUED) {
        ENGINE_UNTIL(w, plays.count == 2);
        run = play_of(t.id);
        play_say(run, text);
        play_say(run, text);
        engine_settle(w);
        int read = 0;
        if (weft__task_find(w->engine, t.id)->output_bytes == 40000 &&
            weft__task_output(w->engine, t.id, SIZE_MAX, no_output, &read) == 0)
            CHECK(engine_wait(w, &read, 1));
        r = weft__task_cancel(w->engine, t.id, "ann", task_done, &c);
        CHECK(r == 0 || r == -ENOMEM);
        play_end(run, true);
        ENGINE_UNTIL(w, state_of(w, t.id) != WEFT_TASK_RUNNING);
        if (r == 0) {
            CHECK(engine_wait(w, &c.times, 1));
            /* Memory may have been short for what it said before that. */
            CHECK(c.r == 0 || (c.r == -EALREADY && state_of(w, t.id) == WEFT_TASK_FAILED));
        }
    }
    CHECK(weft__task_find(w->engine, t.id)->state >= WEFT_TASK_COMPLETED);
}

static bool run_at(long n) {
    engine_world w;
    store_world store;
    world_init(&store, play_store());
    CHECK(world_open(&store));
    if (begin(&w, &store, n)) {
        scene(&w);
        bool reached = memory.count >= n;
        memory_is_back();
        /* Whatever happened, it works now. */
        task_outcome t;
        CHECK_INT(submit(&w, "after", &t), 0);
        ENGINE_UNTIL(&w, play_of(t.id) != NULL);
        play_end(play_of(t.id), true);
        ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
        w.stopped = 0;
        weft__engine_stop(w.engine, true, world_stopped, &w);
        CHECK(engine_wait(&w, &w.stopped, 1));
        end(&w);
        world_done(&store);
        return reached;
    }
    memory_is_back();
    end(&w);
    world_done(&store);
    return true;
}

TEST(every_allocation_fails_once) {
    long n = 1;
    while (n < LAST && run_at(n))
        n++;
    CHECK(n > 60 && n < LAST);
}

/* A journal with everything in it is read. */
static bool restart_at(store_world *store, long n) {
    engine_world w;
    bool ready = begin(&w, store, n);
    bool reached = memory.count >= n;
    memory_is_back();
    if (ready) {
        CHECK(weft__task_find(w.engine, "task-0000") != NULL);
        ENGINE_UNTIL(&w, weft__task_counts(w.engine).of[WEFT_TASK_QUEUED] == 0);
    }
    end(&w);
    return reached;
}

TEST(every_allocation_of_a_start_fails_once) {
    engine_world w;
    store_world store;
    world_init(&store, play_store());
    CHECK(world_open(&store));
    CHECK(begin(&w, &store, 0));
    scene(&w);
    task_outcome t;
    CHECK_INT(submit(&w, "was running", &t), 0);
    play_say(play_of(t.id), "said");
    ask(play_of(t.id));
    engine_settle(&w);
    CHECK_INT(weft__agent_choose(w.engine, "two", NULL, NULL), 0);
    CHECK_INT(
        weft__engine_append(w.engine, "hub", "automation.switched", WEFT_OBJ({"enabled", weft_bool(true)}), NULL, NULL), 0);
    engine_settle(&w);
    end(&w);
    /* The first starts read the journal, later ones what was saved and what came after it. */
    long n = 1;
    while (n < LAST && restart_at(&store, n))
        n++;
    CHECK(n > 40 && n < LAST);
    world_done(&store);
}

TEST_MAIN(CASE(every_allocation_fails_once) CASE(every_allocation_of_a_start_fails_once))

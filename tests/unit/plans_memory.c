/* Every allocation of a plan's life fails once: no crash, no leak, and the plan either ends or was refused. */
#include "engine/world.h"
#include "plans.h"

#define LAST 3000 /* more allocations than the scene has */
#define STEP(id, needs) "{\"id\":\"" id "\",\"type\":\"testing\",\"description\":\"do " id "\",\"dependencies\":[" needs "]}"

static test_memory memory;
static weft_plans *plans;
static int ready, ready_r, times, last_r;
static weft_plan_state ended;

static void on_ready(void *ctx, int r) {
    (void) ctx;
    ready++;
    ready_r = r;
}

static void on_done(void *ctx, int r, const weft_planned *planned) {
    (void) ctx;
    times++;
    last_r = r;
    if (planned)
        ended = planned->state;
}

static bool open_plans(engine_world *w) {
    ready = 0;
    plans = NULL;
    if (weft__plans_new(&(weft_plans_opts){.engine = w->engine}, on_ready, NULL, &plans) < 0)
        return false;
    return engine_wait(w, &ready, 1) && ready_r == 0;
}

static int make_plan(engine_world *w) {
    static const char text[] =
        "{\"user_request\":\"w\\u00fcnsch\",\"tasks\":[" STEP("a", "") "," STEP("b", "\"a\"") "," STEP("c", "\"b\"") "]}";
    char why[WEFT_PLAN_WHY];
    weft_doc *doc = NULL;
    weft_plan *plan = NULL;
    int r = weft_doc_parse(text, strlen(text), &memory.alloc, &doc);
    if (r >= 0)
        r = weft__plan_read(weft_doc_root(doc), NULL, &memory.alloc, &plan, why);
    weft_doc_free(doc);
    times = 0;
    if (r >= 0)
        r = weft__plans_create(plans, plan, "ann", on_done, NULL);
    if (r < 0)
        weft__plan_free(plan);
    return r < 0 ? r : engine_wait(w, &times, 1) ? last_r : -ETIMEDOUT;
}

static void play_all(void) {
    for (size_t i = 0; i < plays.count; i++)
        if (!plays.runs[i]->ended && !plays.runs[i]->freed)
            play_end(plays.runs[i], true);
}

/* One step runs, the daemon is asked to end the plan in the middle of the second. */
static void scene(engine_world *w) {
    int r = make_plan(w);
    CHECK(r == 0 || r == -ENOMEM);
    if (r < 0)
        return;
    const weft_planned *is = weft__plans_newest(plans);
    times = 0;
    r = weft__plans_run(plans, is->id, 0, "ann", on_done, NULL);
    CHECK(r == 0 || r == -ENOMEM);
    if (r < 0 || !engine_wait(w, &times, 1) || last_r < 0)
        return;
    for (int turns = 0; turns < 1000 && is->steps[0].state < WEFT_STEP_COMPLETED; turns++) {
        world_turn(w);
        play_all();
    }
    CHECK(is->steps[0].state >= WEFT_STEP_COMPLETED);
    times = 0;
    r = weft__plans_cancel(plans, is->id, "bob", on_done, NULL);
    CHECK(r == 0 || r == -ENOMEM || r == -EALREADY);
    if (r == -ENOMEM)
        r = weft__plans_cancel(plans, is->id, "bob", on_done, NULL);
    for (int turns = 0; r == 0 && turns < 1000 && !times; turns++) {
        world_turn(w);
        play_all();
    }
    CHECK(r < 0 || (times == 1 && ended >= WEFT_PLAN_COMPLETED));
}

static bool run_at(long n) {
    engine_world w;
    memset(&w, 0, sizeof w);
    test_memory_init(&memory, 0);
    world_init(&w.store, &weft__memory);
    CHECK(world_open(&w.store));
    CHECK(weft_loop_new(NULL, &w.loop) == 0);
    w.opts.alloc = &memory.alloc;
    CHECK_INT(world_start(&w), 0);
    memory.count = 0;
    memory.fail_at = n;
    if (open_plans(&w))
        scene(&w);
    bool reached = memory.count >= n;
    memory.fail_at = 0;
    plans = weft__plans_free(plans);
    w.engine = weft__engine_free(w.engine);
    weft__store_dispatch(w.store.store);
    if (!CHECK_INT(memory.live, 0))
        fprintf(stderr, "  with allocation %ld failing\n", n);
    world_done(&w.store);
    weft_loop_free(w.loop);
    play_reset();
    return reached;
}

TEST(every_allocation_fails_once) {
    long n = 1;
    while (n < LAST && run_at(n))
        n++;
    CHECK(n > 60 && n < LAST);
}

/* Plans that are there are read, in the end: it is said when that does not work at once. */
static bool restart_at(store_world *store, long n) {
    engine_world w;
    memset(&w, 0, sizeof w);
    test_memory_init(&memory, 0);
    w.store = *store;
    CHECK(weft_loop_new(NULL, &w.loop) == 0);
    w.opts.alloc = &memory.alloc;
    w.opts.requeue = true;
    CHECK_INT(world_start(&w), 0);
    memory.count = 0;
    memory.fail_at = n;
    bool opened = open_plans(&w);
    engine_settle(&w);
    bool reached = memory.count >= n;
    memory.fail_at = 0;
    /* What could not be read is read again. */
    ENGINE_UNTIL(&w, !plans || weft__plans_newest(plans) != NULL);
    if (plans) {
        const weft_planned *is = weft__plans_newest(plans);
        CHECK(is->state == WEFT_PLAN_RUNNING && is->steps[0].state >= WEFT_STEP_QUEUED);
    }
    CHECK(opened || reached);
    plans = weft__plans_free(plans);
    w.engine = weft__engine_free(w.engine);
    weft__store_dispatch(w.store.store);
    CHECK_INT(memory.live, 0);
    weft_loop_free(w.loop);
    play_reset();
    return reached;
}

TEST(every_allocation_of_a_start_fails_once) {
    engine_world w;
    memset(&w, 0, sizeof w);
    test_memory_init(&memory, 0);
    world_init(&w.store, &weft__memory);
    CHECK(world_open(&w.store));
    CHECK(weft_loop_new(NULL, &w.loop) == 0);
    w.opts.alloc = &memory.alloc;
    CHECK_INT(world_start(&w), 0);
    CHECK(open_plans(&w));
    CHECK_INT(make_plan(&w), 0);
    times = 0;
    CHECK_INT(weft__plans_run(plans, "plan_00000001", 0, NULL, on_done, NULL), 0);
    CHECK(engine_wait(&w, &times, 1));
    ENGINE_UNTIL(&w, weft__plans_newest(plans)->steps[0].state == WEFT_STEP_RUNNING);
    plans = weft__plans_free(plans);
    w.engine = weft__engine_free(w.engine);
    weft__store_dispatch(w.store.store);
    CHECK_INT(memory.live, 0);
    weft_loop_free(w.loop);
    play_reset();
    long n = 1;
    while (n < LAST && restart_at(&w.store, n))
        n++;
    CHECK(n > 5 && n < LAST);
    world_done(&w.store);
}

TEST_MAIN(CASE(every_allocation_fails_once) CASE(every_allocation_of_a_start_fails_once))

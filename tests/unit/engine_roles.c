/* Tasks for a role: who has them, who has them next when one fails, and what a start finds of them. */
#include "engine/world.h"
#include "roles.h"

static const char *const executors[] = {"one", "two", NULL};
static const weft_agent_role roles_row[] = {{"executor", executors}, {0}};
static const weft_agents role_agents = {world_agents, sizeof world_agents / sizeof world_agents[0], "one", roles_row};

static const weft_task_spec executor_task = {.prompt = "x", .role = "executor", .task_type = "testing", .retries = 3};

static const char *runs_on(const engine_world *w, const task_outcome *t) {
    const weft_task *task = weft__task_find(w->engine, t->id);
    return task ? task->runs_on : "";
}

static const char *agent_of_session(const engine_world *w, const task_outcome *t) {
    const weft_session *session = weft__session_find(w->engine, t->session);
    return session ? session->agent : "";
}

static void open_with_roles(engine_world *w, const weft_store_kind *kind) {
    engine_open(w, kind);
    w->opts.agents = &role_agents;
    w->opts.requeue = true;
    w->opts.limits.retry_ms = 1;
    CHECK_INT(world_start(w), 0);
}

/* "two" takes one task at a time, "one" as many as the engine. */
TEST(least_busy_holder) {
    engine_world w;
    task_outcome t[5];
    open_with_roles(&w, &weft__memory);
    for (int i = 0; i < 4; i++)
        CHECK_INT(submit_spec(&w, &executor_task, &t[i]), 0);
    CHECK_STR(runs_on(&w, &t[0]), "one");
    CHECK_STR(runs_on(&w, &t[1]), "two");
    CHECK_STR(runs_on(&w, &t[2]), "one");
    CHECK_STR(agent_of_session(&w, &t[1]), "two");
    weft_holder holder;
    CHECK(weft__role_holder(w.engine, "executor", 1, &holder) && holder.busy == 1 && holder.concurrency == 1);
    CHECK(!weft__role_holder(w.engine, "executor", 2, &holder));
    CHECK(weft__role_holder(w.engine, "planner", 0, &holder) && strcmp(holder.agent->name, "one") == 0);
    CHECK_INT(submit_spec(&w, &executor_task, &t[4]), 0); /* max_running is 4 */
    CHECK_INT(state_of(&w, t[4].id), WEFT_TASK_QUEUED);
    play_end(play_of(t[1].id), true);
    ENGINE_UNTIL(&w, play_of(t[4].id) != NULL);
    CHECK_STR(runs_on(&w, &t[4]), "two"); /* whichever was free */
    CHECK_STR(agent_of_session(&w, &t[4]), "two");
    engine_end(&w);
}

TEST(another_holder_after_a_failure) {
    engine_world w;
    task_outcome t;
    open_with_roles(&w, &weft__memory);
    CHECK_INT(submit_spec(&w, &executor_task, &t), 0);
    const char *expected[] = {"one", "two", "one", "two"};
    for (int i = 0; i < 4; i++) {
        ENGINE_UNTIL(&w, plays.count == (size_t) i + 1);
        CHECK_STR(runs_on(&w, &t), expected[i]);
        play_end(play_of(t.id), false);
    }
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED); /* three more, and no further */
    CHECK_INT(weft__task_find(w.engine, t.id)->attempt, 4);
    engine_end(&w);
}

/* What is stored says all that is needed to go on, also on another holder. */
TEST(after_a_restart) {
    engine_world w;
    task_outcome t;
    weft_task_spec spec = executor_task;
    spec.quiet_ms = 54321;
    open_with_roles(&w, &weft__sqlite);
    CHECK_INT(submit_spec(&w, &spec, &t), 0);
    CHECK_STR(runs_on(&w, &t), "one");
    engine_restart(&w);
    ENGINE_UNTIL(&w, play_of(t.id) != NULL);
    const weft_task *task = weft__task_find(w.engine, t.id);
    CHECK_STR(task->role, "executor");
    CHECK_STR(task->task_type, "testing");
    CHECK_INT(task->quiet_ms, 54321);
    CHECK_STR(task->runs_on, "two");
    CHECK_STR(agent_of_session(&w, &t), "two");
    play_end(play_of(t.id), true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    engine_restart(&w);
    CHECK_STR(runs_on(&w, &t), "two");
    engine_end(&w);
}

TEST(what_is_refused) {
    engine_world w;
    task_outcome t;
    open_with_roles(&w, &weft__memory);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .role = "executor", .agent = "two"}, &t), -EINVAL);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .role = "executor", .session = "session-0000"}, &t), -EINVAL);
    CHECK(!weft__role_exists("king") && weft__role_exists("planner"));
    engine_end(&w);
}

/* ---- guests ---- */

static struct weft_planner_wire *const no_wire = NULL;

TEST(guests_have_a_limit) {
    engine_world w;
    static weft_guest *guests[WEFT_GUESTS];
    weft_guest *more;
    weft_guest_spec spec = {.role = "planner", .wire = no_wire};
    const char *types[WEFT_TASK_TYPES + 2] = {0};
    char long_type[WEFT_TASK_TYPE + 2];
    open_with_roles(&w, &weft__memory);
    for (size_t i = 0; i < WEFT_GUESTS; i++)
        CHECK_INT(weft__role_join(w.engine, &spec, &guests[i]), 0);
    CHECK_INT(weft__role_join(w.engine, &spec, &more), -ENOSPC);
    CHECK_STR(weft__guest_name(guests[0]), "planner@1");
    guests[0] = weft__role_leave(guests[0]);
    CHECK_INT(weft__role_join(w.engine, &spec, &guests[0]), 0);
    CHECK_STR(weft__guest_name(guests[0]), "planner@257"); /* no name is used twice */
    guests[1] = weft__role_leave(guests[1]);
    CHECK_INT(weft__role_join(w.engine, &(weft_guest_spec){.role = "king"}, &more), -EINVAL);
    for (size_t i = 0; i < WEFT_TASK_TYPES; i++)
        types[i] = "t";
    spec.task_types = types;
    CHECK_INT(weft__role_join(w.engine, &spec, &guests[1]), 0);
    guests[1] = weft__role_leave(guests[1]);
    types[WEFT_TASK_TYPES] = "t";
    CHECK_INT(weft__role_join(w.engine, &spec, &more), -E2BIG);
    memset(long_type, 'x', sizeof long_type - 1);
    long_type[sizeof long_type - 1] = '\0';
    types[0] = long_type;
    types[1] = NULL;
    CHECK_INT(weft__role_join(w.engine, &spec, &more), -E2BIG);
    long_type[WEFT_TASK_TYPE] = '\0';
    CHECK_INT(weft__role_join(w.engine, &spec, &guests[1]), 0);
    engine_end(&w);
}

/* How somebody connected is spoken to, played. */
static weft_driver as_planner;
static const weft_driver *const with_planner[] = {&play_driver, &as_planner, NULL};

/* Who had registered before a start is waited for, for a while: the default agent is somebody else. */
TEST(guests_come_back) {
    static const weft_task_spec planner_task = {.prompt = "x", .role = "planner", .retries = 3};
    for (int back = 0; back < 2; back++) {
        engine_world w;
        task_outcome t, other;
        weft_guest *guest;
        test_row(back ? "they do" : "they do not");
        as_planner = play_driver;
        as_planner.name = "planner";
        engine_open(&w, &weft__sqlite);
        w.opts.agents = &role_agents;
        w.opts.drivers = with_planner;
        w.opts.requeue = true;
        CHECK_INT(world_start(&w), 0);
        CHECK_INT(weft__role_join(w.engine, &(weft_guest_spec){.role = "planner"}, &guest), 0);
        CHECK_INT(submit_spec(&w, &planner_task, &t), 0);
        CHECK_STR(runs_on(&w, &t), "planner@1");
        w.opts.limits.guests_ms = back ? 600000 : 100;
        engine_restart(&w);
        CHECK_INT(submit_spec(&w, &executor_task, &other), 0); /* the other role is configured */
        ENGINE_UNTIL(&w, play_of(other.id) != NULL);
        if (back) {
            CHECK_INT(state_of(&w, t.id), WEFT_TASK_QUEUED);
            CHECK_INT(weft__role_join(w.engine, &(weft_guest_spec){.role = "planner"}, &guest), 0);
            ENGINE_UNTIL(&w, weft__task_find(w.engine, t.id)->attempt == 2);
            CHECK_STR(runs_on(&w, &t), "planner@1");
        } else {
            ENGINE_UNTIL(&w, play_of(t.id) != NULL);
            CHECK_STR(runs_on(&w, &t), "one");
        }
        engine_end(&w);
    }
    test_row(NULL);
}

/* ---- memory ---- */

static test_memory memory;

/* A task of a role, and another attempt of it elsewhere, with each allocation of the engine failing once. */
static bool play_at(long n) {
    engine_world w;
    task_outcome t = {0};
    weft_guest *guest = NULL;
    engine_open(&w, &weft__memory);
    test_memory_init(&memory, n);
    w.opts.agents = &role_agents;
    w.opts.alloc = &memory.alloc;
    w.opts.limits.retry_ms = w.opts.limits.again_ms = 1;
    if (world_start(&w) == 0) {
        int r = weft__role_join(w.engine, &(weft_guest_spec){.role = "planner"}, &guest);
        CHECK(r == 0 || r == -ENOMEM);
        r = submit_spec(&w, &executor_task, &t);
        CHECK(r == 0 || r == -ENOMEM);
        for (size_t attempt = 1; r == 0 && attempt < 3 && state_of(&w, t.id) < WEFT_TASK_COMPLETED; attempt++) {
            ENGINE_UNTIL(&w, plays.count == attempt || state_of(&w, t.id) >= WEFT_TASK_COMPLETED);
            if (plays.count == attempt)
                play_end(play_of(t.id), attempt > 1);
        }
        if (r == 0)
            ENGINE_UNTIL(&w, state_of(&w, t.id) >= WEFT_TASK_COMPLETED);
        if (guest)
            weft__role_leave(guest);
    }
    bool reached = memory.count >= n;
    memory.fail_at = 0;
    engine_end(&w);
    CHECK_INT(memory.live, 0);
    return reached;
}

TEST(every_allocation_fails_once) {
    long n = 1;
    while (n < 2000 && play_at(n))
        n++;
    CHECK(n > 40 && n < 2000);
}

TEST_MAIN(CASE(least_busy_holder) CASE(another_holder_after_a_failure) CASE(after_a_restart) CASE(what_is_refused)
              CASE(guests_have_a_limit) CASE(guests_come_back) CASE(every_allocation_fails_once))

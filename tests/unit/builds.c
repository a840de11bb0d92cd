/* Builds: what came of one, who joins, limits, and what a later start knows. Real programs in the folder /tmp. */
#include "builds.h"
#include "agents/kit.h"
#include "engine/world.h"
#include "guards.h"

static weft_commands *commands;
static weft_builds *builds;

typedef struct built {
    int times, r;
    weft_build_state state;
    uint64_t number;
    char why[128], diagnostics[512], output[512];
} built;

static void on_built(void *ctx, int r, const weft_build *build) {
    built *to = ctx;
    to->times++;
    to->r = r;
    if (!build)
        return;
    to->state = build->state;
    to->number = build->number;
    snprintf(to->why, sizeof to->why, "%s", build->why);
    snprintf(to->diagnostics, sizeof to->diagnostics, "%s", build->diagnostics);
    snprintf(to->output, sizeof to->output, "%s", build->output);
}

static void open_builds(engine_world *w) {
    CHECK_INT(weft__commands_new(&(weft_commands_opts){.loop = w->loop, .guard = kit_weft()}, &commands), 0);
    CHECK_INT(weft__builds_new(&(weft_builds_opts){.engine = w->engine, .commands = commands}, &builds), 0);
    ENGINE_UNTIL(w, weft__builds_read(builds));
}

static void close_builds(void) {
    commands = weft__commands_free(commands);
    builds = weft__builds_free(builds);
    weft__guards_finish(PATIENCE_MS);
}

static void set_line(const char *script, int64_t within_ms) {
    const char *const line[] = {"sh", "-c", script, NULL}, *const none[] = {NULL};
    const char *const *const lines[WEFT_BUILD_KINDS] = {line, none};
    CHECK_INT(weft__builds_set(builds, lines, within_ms), 0);
}

static void build(engine_world *w, built *ret) {
    *ret = (built){0};
    CHECK_INT(weft__builds_start(builds, WEFT_BUILD_FRONTEND, "ann", on_built, ret), 0);
    CHECK_INT(ret->times, 0);
    ENGINE_UNTIL(w, ret->times == 1);
}

TEST(what_came_of_it) {
    engine_world w;
    built is;
    engine_begin(&w, &weft__sqlite);
    open_builds(&w);
    CHECK(!weft__builds_last(builds, WEFT_BUILD_FRONTEND));
    CHECK_INT(weft__builds_start(builds, WEFT_BUILD_FRONTEND, NULL, on_built, &is), -ENOENT);
    set_line("echo fine", 0);
    build(&w, &is);
    CHECK_INT(is.state, WEFT_BUILD_OK);
    CHECK_TEXT(is.output, strlen(is.output), "fine\n");
    set_line("echo 'a.c:1:2: warning: hm [-Wx]'; echo 'a.c:3:4: error: no'; exit 2", 0);
    build(&w, &is);
    CHECK_INT(is.state, WEFT_BUILD_FAILED);
    CHECK_INT(is.number, 2);
    CHECK(strstr(is.diagnostics, "\"line\":3,\"column\":4,\"severity\":\"error\"") != NULL);
    CHECK(strstr(w.heard, "build.started build.progress build.warning build.finished ") != NULL);
    close_builds();
    engine_restart(&w);
    open_builds(&w);
    const weft_build *last = weft__builds_last(builds, WEFT_BUILD_FRONTEND);
    REQUIRE(last != NULL);
    CHECK_INT(last->state, WEFT_BUILD_FAILED);
    CHECK_INT(last->exit_code, 2);
    CHECK_INT(last->errors, 1);
    CHECK_STR(last->by, "ann");
    CHECK(strstr(last->diagnostics, "\"line\":3") != NULL);
    CHECK(!weft__builds_configured(builds, WEFT_BUILD_FRONTEND));
    set_line("true", 0);
    build(&w, &is);
    CHECK_INT(is.number, 3);
    close_builds();
    engine_end(&w);
}

TEST(who_asks_meanwhile_joins) {
    static built all[WEFT_BUILD_WAITERS];
    engine_world w;
    built more = {0};
    engine_begin(&w, &weft__memory);
    open_builds(&w);
    set_line("sleep 0.1", 0);
    memset(all, 0, sizeof all);
    for (size_t i = 0; i < WEFT_BUILD_WAITERS; i++)
        CHECK_INT(weft__builds_start(builds, WEFT_BUILD_FRONTEND, NULL, on_built, &all[i]), 0);
    CHECK_INT(weft__builds_start(builds, WEFT_BUILD_FRONTEND, NULL, on_built, &more), -EUSERS);
    ENGINE_UNTIL(&w, all[WEFT_BUILD_WAITERS - 1].times == 1);
    for (size_t i = 0; i < WEFT_BUILD_WAITERS; i++)
        CHECK(all[i].times == 1 && all[i].number == 1 && all[i].state == WEFT_BUILD_OK);
    close_builds();
    engine_end(&w);
}

TEST(it_takes_too_long) {
    engine_world w;
    built is;
    engine_begin(&w, &weft__memory);
    open_builds(&w);
    set_line("sleep 1000", 200);
    build(&w, &is);
    CHECK_INT(is.state, WEFT_BUILD_FAILED);
    CHECK(strstr(is.why, "too long") != NULL);
    close_builds();
    engine_end(&w);
}

TEST(it_dies_in_the_middle) {
    engine_world w;
    built is = {0};
    engine_begin(&w, &weft__sqlite);
    open_builds(&w);
    set_line("sleep 1000", 0);
    CHECK_INT(weft__builds_start(builds, WEFT_BUILD_FRONTEND, NULL, on_built, &is), 0);
    CHECK(!weft__builds_last(builds, WEFT_BUILD_FRONTEND)); /* nobody is told what is not stored */
    ENGINE_UNTIL(&w, weft__builds_last(builds, WEFT_BUILD_FRONTEND) != NULL);
    CHECK_INT(weft__builds_last(builds, WEFT_BUILD_FRONTEND)->state, WEFT_BUILD_RUNNING);
    close_builds();
    CHECK_INT(is.r, -ECANCELED);
    engine_restart(&w);
    open_builds(&w);
    REQUIRE(weft__builds_last(builds, WEFT_BUILD_FRONTEND) != NULL);
    CHECK_INT(weft__builds_last(builds, WEFT_BUILD_FRONTEND)->state, WEFT_BUILD_FAILED);
    CHECK(strstr(weft__builds_last(builds, WEFT_BUILD_FRONTEND)->why, "daemon") != NULL);
    close_builds();
    engine_end(&w);
}

TEST(a_store_that_fails) {
    engine_world w;
    built is = {0};
    engine_begin(&w, play_store());
    open_builds(&w);
    set_line("true", 0);
    play_store_fails = -ENOSPC;
    CHECK_INT(weft__builds_start(builds, WEFT_BUILD_FRONTEND, NULL, on_built, &is), 0);
    ENGINE_UNTIL(&w, is.times == 1);
    CHECK_INT(is.r, -ENOSPC);
    play_store_fails = 0;
    build(&w, &is);
    CHECK_INT(is.state, WEFT_BUILD_OK);
    close_builds();
    engine_end(&w);
}

TEST_MAIN(CASE(what_came_of_it) CASE(who_asks_meanwhile_joins) CASE(it_takes_too_long) CASE(it_dies_in_the_middle)
              CASE(a_store_that_fails))

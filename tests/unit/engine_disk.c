/* The engine on a disk that fails (F2, F3): the n-th operation, for every n, while tasks are submitted, run, ask, are
 * answered, end and are cancelled. What was acknowledged or told is there afterwards; what was not told may be, or not; and
 * when the disk works again so does the engine, without a restart, and its journal says the same as it does. */
#include "engine/world.h"
#include "engine_private.h"
#include "store/shim.h"

#define LAST 2000 /* more operations than the scene has */
#define MAX_TOLD 200
#define DUMP 8192

/* What somebody was told: events heard, and commands that were acknowledged. */
typedef struct told {
    weft_event_listener listener;
    uint64_t gseq[MAX_TOLD];
    char type[MAX_TOLD][32];
    size_t count;
    task_outcome submitted[3], cancelled;
    int answered, answered_r;
    char question[32];
} told;

typedef struct scene {
    engine_world w;
    told told;
} scene;

static void hear(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    told *t = WEFT_CONTAINER(listener, told, listener);
    (void) data;
    REQUIRE(t->count < MAX_TOLD);
    t->gseq[t->count] = event->gseq;
    snprintf(t->type[t->count++], sizeof t->type[0], "%s", event->type);
}

static void on_answered(void *ctx, int r, const weft_question *question) {
    told *t = ctx;
    (void) question;
    t->answered++;
    t->answered_r = r;
}

/* Nothing is under way any more, as long as nobody does anything. */
static void quiet(engine_world *w) {
    for (int i = 0; i < 3; i++) {
        engine_settle(w);
        ENGINE_UNTIL(w, weft__list_empty(&w->engine->sent));
    }
}

static int start(scene *s) {
    s->w.opts.limits.max_running = 1;
    s->w.opts.limits.retry_ms = s->w.opts.limits.again_ms = 1;
    return world_start(&s->w);
}

static void open_scene(scene *s) {
    memset(s, 0, sizeof *s);
    shim_reset();
    world_init(&s->w.store, &weft__sqlite);
    s->w.store.opts.vfs = "shim";
    REQUIRE(world_open(&s->w.store));
    REQUIRE(weft_loop_new(NULL, &s->w.loop) == 0);
}

static void submit_one(scene *s, int i, const char *prompt) {
    weft_task_spec spec = {.prompt = prompt, .key = i == 0 ? "key" : NULL};
    int r = submit_spec(&s->w, &spec, &s->told.submitted[i]);
    CHECK(r == 0 || r == -EIO || r == -ENOSPC || r == -EROFS);
    if (r < 0)
        s->told.submitted[i].r = r;
    quiet(&s->w);
}

static bool acknowledged(const scene *s, int i) {
    return s->told.submitted[i].r == 0 && s->told.submitted[i].times == 1;
}

static weft_run *live_run(void) {
    for (size_t i = plays.count; i-- > 0;)
        if (!plays.runs[i]->ended && !plays.runs[i]->freed)
            return plays.runs[i];
    return NULL;
}

static void ask_and_answer(scene *s, weft_run *run) {
    static const char options[] = "[{\"id\":\"y\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]";
    run->host->on_ask(run->ctx, "k",
                      WEFT_OBJ({"title", weft_str("may I?")}, {"options", weft_raw(options, strlen(options))}));
    quiet(&s->w);
    const weft_question *question = weft__question_first(s->w.engine, false);
    if (!question)
        return;
    snprintf(s->told.question, sizeof s->told.question, "%s", question->id);
    int r = weft__question_answer(s->w.engine, question->id, "y", "ann", NULL, on_answered, &s->told);
    CHECK(r == 0);
    CHECK(engine_wait(&s->w, &s->told.answered, 1));
    r = s->told.answered_r;
    CHECK(r == 0 || r == -EIO || r == -ENOSPC || r == -EROFS);
}

static void play(scene *s) {
    weft_run *run;
    s->told.listener = (weft_event_listener){.on_event = hear};
    weft__engine_listen(s->w.engine, &s->told.listener);
    submit_one(s, 0, "one");
    submit_one(s, 1, "two");
    if ((run = live_run())) {
        run->host->on_process(run->ctx, 12);
        play_say(run, "some text\n");
        quiet(&s->w);
        ask_and_answer(s, run);
        play_end(run, true);
        quiet(&s->w);
    }
    submit_one(s, 2, "three");
    if (acknowledged(s, 1) &&
        weft__task_cancel(s->w.engine, s->told.submitted[1].id, "ann", task_done, &s->told.cancelled) == 0) {
        if ((run = play_of(s->told.submitted[1].id)) && !run->freed && !run->ended)
            play_end(run, true);
        quiet(&s->w);
    }
    if ((run = live_run()))
        play_say(run, "more\n");
    quiet(&s->w);
}

/* ---- afterwards ---- */

/* The journal begins with exactly what was told. */
typedef struct reading {
    const told *told;
    uint64_t after;
    int times;
    bool more;
} reading;

static void read_page(void *ctx, int r, const weft_page *page) {
    reading *is = ctx;
    is->times++;
    is->more = false;
    if (!CHECK_INT(r, 0))
        return;
    for (size_t i = 0; i < page->count; i++)
        for (size_t n = 0; n < is->told->count; n++)
            if (is->told->gseq[n] == page->events[i].gseq)
                CHECK_STR(page->events[i].type, is->told->type[n]);
    CHECK(page->head >= (is->told->count ? is->told->gseq[is->told->count - 1] : 0));
    CHECK_INT(page->trimmed, 0);
    is->after = page->last;
    is->more = page->more;
}

static void check_journal(scene *s) {
    reading is = {.told = &s->told, .more = true};
    for (int n = 1; is.more; n++) {
        REQUIRE(weft__store_read(s->w.store.store, &(weft_query){.after = is.after}, read_page, &is) == 0);
        REQUIRE(world_wait(&s->w.store, &is.times, n));
    }
}

static bool was_told(const told *t, const char *type) {
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->type[i], type) == 0)
            return true;
    return false;
}

static void check_acknowledged(scene *s) {
    for (int i = 0; i < 3; i++)
        if (acknowledged(s, i))
            CHECK(weft__task_find(s->w.engine, s->told.submitted[i].id) != NULL);
    if (s->told.cancelled.times && s->told.cancelled.r == 0)
        CHECK_INT(state_of(&s->w, s->told.submitted[1].id), WEFT_TASK_CANCELLED);
    if (was_told(&s->told, "task.completed"))
        CHECK_INT(weft__task_counts(s->w.engine).of[WEFT_TASK_COMPLETED], 1);
    if (s->told.answered && s->told.answered_r == 0) {
        const weft_question *question = weft__question_find(s->w.engine, s->told.question);
        REQUIRE(question);
        CHECK_INT(question->state, WEFT_QUESTION_ANSWERED);
        CHECK_STR(question->option, "y");
        CHECK_STR(question->by, "ann");
    }
}

static void dump(const engine_world *w, char *ret) {
    size_t n = 0;
    ret[0] = '\0';
    for (const weft_task *t = weft__task_newest(w->engine); t && n < DUMP; t = weft__task_older(w->engine, t))
        n += (size_t) snprintf(ret + n, DUMP - n, "%s %s %s %s %lld %lld %lld %d %.*s\n", t->id, t->prompt, t->session,
                               weft__task_states[t->state], (long long) t->created_ms, (long long) t->started_ms,
                               (long long) t->completed_ms, t->exit_code, (int) t->tail.len, t->tail.data);
    for (const weft_question *q = weft__question_first(w->engine, true); q && n < DUMP;
         q = weft__question_next(w->engine, q, true))
        n += (size_t) snprintf(ret + n, DUMP - n, "%s %s %s %s %s\n", q->id, q->title, weft__question_states[q->state],
                               q->option ? q->option : "-", q->by ? q->by : "-");
}

static void close_scene(scene *s) {
    s->w.engine = weft__engine_free(s->w.engine);
    CHECK_INT(plays.live, 0);
    world_done(&s->w.store);
    weft_loop_free(s->w.loop);
    play_reset();
}

/* ---- the machine dies at operation n, and with it what was not synced ---- */

static bool crash_at(long n, bool torn) {
    scene s;
    open_scene(&s);
    shim_set(n, 0, SQLITE_IOERR_WRITE);
    if (start(&s) == 0)
        play(&s);
    bool reached = shim_operations() >= n;
    s.w.engine = weft__engine_free(s.w.engine);
    s.w.store.store = weft__store_close(s.w.store.store);
    shim_crash(torn);
    play_reset();
    s.w.store.opts.vfs = NULL;
    if (!CHECK(world_open(&s.w.store)))
        abort();
    check_journal(&s);
    CHECK_INT(start(&s), 0);
    check_acknowledged(&s);
    close_scene(&s);
    return reached;
}

static void crash_everywhere(bool torn) {
    long n = 1;
    while (n < LAST && crash_at(n, torn))
        n++;
    CHECK(n > 20 && n < LAST);
}

TEST(what_was_told_survives_a_crash) {
    crash_everywhere(false);
}

TEST(what_was_told_survives_torn_writes) {
    crash_everywhere(true);
}

/* ---- operation n fails, and some after it ---- */

static bool all_over(const engine_world *w) {
    weft_task_counts counts = weft__task_counts(w->engine);
    return !counts.of[WEFT_TASK_QUEUED] && !counts.of[WEFT_TASK_RUNNING];
}

/* Everything that still runs or waits ends. */
static void finish(scene *s) {
    for (int i = 0; i < 10 && !all_over(&s->w); i++) {
        ENGINE_UNTIL(&s->w, live_run() || all_over(&s->w));
        if (live_run())
            play_end(live_run(), true);
    }
    quiet(&s->w);
    CHECK(all_over(&s->w));
}

static bool fail_at(long n, long how_many, int with) {
    static char before[DUMP], after[DUMP];
    scene s;
    open_scene(&s);
    CHECK_INT(start(&s), 0);
    shim_set(n, how_many, with);
    play(&s);
    bool reached = shim_operations() >= n;
    shim_set(0, 0, 0);
    /* A repeat of the first is the same task, if it was stored, and else a new one; either way it works now. */
    task_outcome again;
    CHECK_INT(submit_spec(&s.w, &(weft_task_spec){.prompt = "one", .key = "key"}, &again), 0);
    if (acknowledged(&s, 0))
        CHECK_STR(again.id, s.told.submitted[0].id);
    finish(&s);
    CHECK_INT(weft__engine_trouble(s.w.engine), 0);
    if (s.told.cancelled.times && s.told.cancelled.r == 0)
        CHECK_INT(state_of(&s.w, s.told.submitted[1].id), WEFT_TASK_CANCELLED);
    dump(&s.w, before);
    s.w.engine = weft__engine_free(s.w.engine);
    s.w.store.store = weft__store_close(s.w.store.store);
    s.w.store.opts.vfs = NULL;
    if (!CHECK(world_open(&s.w.store)))
        abort();
    check_journal(&s);
    CHECK_INT(start(&s), 0);
    dump(&s.w, after);
    if (!CHECK_TEXT(after, strlen(after), before))
        printf("  operation %ld\n", n);
    close_scene(&s);
    return reached;
}

static void fail_everywhere(long how_many, int with) {
    long n = 1;
    while (n < LAST && fail_at(n, how_many, with))
        n++;
    CHECK(n > 20 && n < LAST);
}

TEST(one_operation_fails) {
    fail_everywhere(1, SQLITE_IOERR_WRITE);
}

TEST(the_disk_is_full_for_a_while) {
    fail_everywhere(9, SQLITE_FULL);
}

/* As after an error of the disk, when the system mounts it read-only, until somebody mounts it again. */
TEST(the_disk_is_read_only_for_a_while) {
    fail_everywhere(9, SQLITE_READONLY);
}

TEST(the_disk_is_broken_until_it_is_not) {
    fail_everywhere(0, SQLITE_IOERR_WRITE);
}

/* clang-format off */
TEST_MAIN(
    CASE(what_was_told_survives_a_crash)
    CASE(what_was_told_survives_torn_writes)
    CASE(one_operation_fails)
    CASE(the_disk_is_full_for_a_while)
    CASE(the_disk_is_read_only_for_a_while)
    CASE(the_disk_is_broken_until_it_is_not)
)

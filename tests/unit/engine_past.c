/* After a clean stop the engine is ready before it has read what is old (past.c). Nobody may see less because of that. */
#include "engine/world.h"
#include "engine_private.h"

#define MANY 150 /* tasks: their documents are several pages */

static void stop_engine(engine_world *w) {
    w->stopped = 0;
    weft__engine_stop(w->engine, false, world_stopped, w);
    CHECK(engine_wait(w, &w->stopped, 1));
    engine_crash(w);
}

static void end_well(engine_world *w, const char *id) {
    play_end(play_of(id), true);
    ENGINE_UNTIL(w, weft__task_find(w->engine, id)->state == WEFT_TASK_COMPLETED);
}

/* So many that have ended. With waits: half of them, and then two that wait, of which the second is the more urgent one. */
static void have_a_past(engine_world *w, char waits[2][32]) {
    task_outcome t;
    engine_open(w, &weft__sqlite);
    w->opts.early = true;
    CHECK_INT(world_start(w), 0);
    CHECK_INT(weft__engine_past(w->engine), 0);
    CHECK_INT(submit_spec(w, &(weft_task_spec){.prompt = "first", .key = "key"}, &t), 0);
    end_well(w, t.id);
    for (int i = 1; i < MANY; i++) {
        CHECK_INT(submit(w, "x", &t), 0);
        end_well(w, t.id);
        if (i != MANY / 2 || !waits)
            continue;
        w->opts.limits.max_running = SIZE_MAX;
        weft__engine_set(w->engine, &world_all, &w->opts.limits);
        CHECK_INT(submit_spec(w, &(weft_task_spec){.prompt = "waits", .session = "session-0007"}, &t), 0);
        snprintf(waits[0], sizeof waits[0], "%s", t.id);
        CHECK_INT(submit_spec(w, &(weft_task_spec){.prompt = "urgent", .priority = 9}, &t), 0);
        snprintf(waits[1], sizeof waits[1], "%s", t.id);
        return;
    }
}

/* Every number once, the newest first, and each has a session that is listed in the same order. */
static void check_lists(const engine_world *w, int want) {
    int tasks = 0, sessions = 0;
    uint64_t last = UINT64_MAX;
    for (const weft_task *task = weft__task_newest(w->engine); task; task = weft__task_older(w->engine, task)) {
        CHECK(task->number < last);
        CHECK(weft__session_find(w->engine, task->session));
        last = task->number;
        tasks++;
    }
    const char *before = NULL;
    for (const weft_session *s = weft__session_newest(w->engine); s; s = weft__session_older(w->engine, s)) {
        CHECK(!before || strcmp(s->id, before) < 0);
        before = s->id;
        sessions++;
    }
    CHECK_INT(tasks, want);
    CHECK(sessions >= want - 1);
}

static struct {
    weft_past_waiter waiter;
    int times, r;
} told;

static void past_told(weft_past_waiter *who, int r) {
    (void) who;
    told.times++;
    told.r = r;
}

static void await_past(engine_world *w) {
    told.times = 0;
    told.waiter.on_past = past_told;
    weft__engine_await_past(w->engine, &told.waiter);
    CHECK(engine_wait(w, &told.times, 1));
}

TEST(ready_before_the_past_is_read) {
    engine_world w;
    char waits[2][32] = {"", ""};
    task_outcome t = {0}, gone = {0};
    have_a_past(&w, waits);
    weft_task_counts before = weft__task_counts(w.engine);
    w.opts.limits.max_running = SIZE_MAX;
    stop_engine(&w);
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(weft__engine_past(w.engine), -EAGAIN);
    /* What waits is there, in its order, with its session. */
    CHECK_STR(weft__task_waiting(w.engine, 0)->id, waits[1]);
    CHECK_STR(weft__task_waiting(w.engine, 1)->id, waits[0]);
    CHECK_INT(weft__session_find(w.engine, weft__task_find(w.engine, waits[0])->session)->turns, 1);
    weft_task_counts now = weft__task_counts(w.engine);
    CHECK(memcmp(&before, &now, sizeof now) == 0);
    /* What may be old is not looked for. */
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "first", .key = "key"}, task_done, &t), -EAGAIN);
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x", .session = "session-0000"}, task_done, &t),
              -EAGAIN);
    CHECK_INT(weft__task_cancel(w.engine, "task-0000", "ann", task_done, &gone), -EAGAIN);
    CHECK_INT(weft__session_close(w.engine, "session-0000", "ann", NULL, NULL), -EAGAIN);
    /* What is new is taken, and what waits can be cancelled. */
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "new"}, task_done, &t), 0);
    CHECK_INT(weft__task_cancel(w.engine, waits[1], "ann", task_done, &gone), 0);
    await_past(&w);
    CHECK_INT(told.r, 0);
    CHECK_INT(weft__engine_past(w.engine), 0);
    CHECK(engine_wait(&w, &gone.times, 1) && engine_wait(&w, &t.times, 1));
    check_lists(&w, MANY / 2 + 4);
    /* What was read says nothing of what has happened since. */
    now = weft__task_counts(w.engine);
    CHECK_INT(now.of[WEFT_TASK_QUEUED], 2);
    CHECK_INT(now.of[WEFT_TASK_CANCELLED], 1);
    CHECK_INT(now.of[WEFT_TASK_COMPLETED], before.of[WEFT_TASK_COMPLETED]);
    CHECK_INT(weft__engine_skipped(w.engine), 0);
    CHECK_INT(state_of(&w, "task-0000"), WEFT_TASK_COMPLETED);
    CHECK_INT(weft__task_cancel(w.engine, "task-0000", "ann", task_done, &gone), -EALREADY);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "first", .key = "key"}, &t), 0);
    CHECK_STR(t.id, "task-0000");
    /* And again, from documents of which some were written meanwhile. */
    stop_engine(&w);
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(weft__engine_past(w.engine), -EAGAIN);
    await_past(&w);
    check_lists(&w, MANY / 2 + 4);
    engine_end(&w);
}

/* Stopped, or killed, after any number of turns: the next start knows as much. */
TEST(ended_while_the_past_is_read) {
    engine_world w;
    for (int how = 0; how < 2; how++) {
        have_a_past(&w, NULL);
        stop_engine(&w);
        for (int turns = 0; turns < 8; turns++) {
            task_outcome t = {0};
            CHECK_INT(world_start(&w), 0);
            CHECK_INT(weft__engine_past(w.engine), how == 0 || turns == 0 ? -EAGAIN : 0);
            CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "more"}, task_done, &t), 0);
            for (int i = 0; i < turns; i++)
                world_turn(&w);
            CHECK(engine_wait(&w, &t.times, 1));
            end_well(&w, t.id);
            if (how == 0)
                stop_engine(&w);
            else
                engine_crash(&w);
        }
        CHECK_INT(world_start(&w), 0);
        if (how == 0)
            await_past(&w);
        check_lists(&w, MANY + 8);
        engine_end(&w);
    }
}

/* A clean stop is not the last thing that happened: everything is read first. */
TEST(anything_behind_the_stop_is_read_with_the_past) {
    static const char deleted[] = "{\"sessionId\":\"session-0003\"}";
    engine_world w;
    store_outcome done = {0};
    weft_document hub = {0};
    have_a_past(&w, NULL);
    /* The last event of a stop is left out, as if the daemon had been killed before it; another is in its place. */
    w.stopped = 0;
    weft__engine_stop(w.engine, false, world_stopped, &w);
    ENGINE_UNTIL(&w, w.engine->open_saved);
    CHECK(engine_wait(&w, &w.stopped, 1));
    CHECK_INT(world_read(&w.store, &(weft_query){.documents = true, .stream = "hub"}, &done), 0);
    weft_doc *doc;
    const char *text = strchr(done.text, ':') + 1;
    CHECK_INT(weft_doc_parse(text, strlen(text), NULL, &doc), 0);
    uint64_t gseq = (uint64_t) weft_get_int(weft_doc_root(doc), "gseq", 0),
             seq = (uint64_t) weft_get_int(weft_doc_root(doc), "seq", 0);
    char moved[sizeof done.text], was[64], is[64];
    snprintf(moved, sizeof moved, "%s", text);
    weft_doc_free(doc);
    /* The document now says that it knows of hub.stopped, so that session.deleted is the one event behind it. */
    snprintf(was, sizeof was, "{\"gseq\":%llu,\"seq\":%llu", (unsigned long long) gseq, (unsigned long long) seq);
    snprintf(is, sizeof is, "{\"gseq\":%llu,\"seq\":%llu", (unsigned long long) gseq + 1, (unsigned long long) seq + 1);
    REQUIRE(strncmp(moved, was, strlen(was)) == 0 && strlen(was) == strlen(is));
    memcpy(moved, is, strlen(is));
    hub = (weft_document){"hub", {moved, strlen(moved)}};
    weft_event event = {
        .stream = WEFT_STREAM_HUB, .type = "session.deleted", .data = {deleted, sizeof deleted - 1}, .time_ms = 1};
    done = (store_outcome){0};
    REQUIRE(weft__store_append(w.store.store,
                               &(weft_append){.events = &event, .count = 1, .documents = &hub, .document_count = 1},
                               world_appended, &done) == 0);
    CHECK(world_wait(&w.store, &done.times, 1));
    engine_crash(&w);
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(weft__engine_past(w.engine), 0);
    CHECK(!weft__session_find(w.engine, "session-0003"));
    CHECK(!weft__task_find(w.engine, "task-0003"));
    CHECK(weft__task_find(w.engine, "task-0004"));
    check_lists(&w, MANY - 1);
    engine_end(&w);
}

static void session_removed(void *ctx, int r, const weft_session *session, const char *error) {
    task_outcome *t = ctx;
    (void) session, (void) error;
    t->times++;
    t->r = r;
}

static void copy_document(engine_world *w, const char *key, char ret[4096]) {
    store_outcome done = {0};
    CHECK_INT(world_read(&w->store, &(weft_query){.documents = true, .stream = key}, &done), 0);
    CHECK(strchr(done.text, ':') && !strstr(done.text, " \n"));
    snprintf(ret, 4096, "%s", strchr(done.text, ':') ? strchr(done.text, ':') + 1 : "");
}

/* Its document goes with the event, those of its tasks with the next save: a daemon that is killed in between leaves them.
 */
TEST(killed_right_behind_a_deletion) {
    engine_world w;
    char task[4096], hub[4096];
    task_outcome gone = {0};
    store_outcome put = {0};
    have_a_past(&w, NULL);
    stop_engine(&w);
    CHECK_INT(world_start(&w), 0);
    await_past(&w);
    copy_document(&w, "task/task-0003", task);
    copy_document(&w, "hub", hub);
    CHECK_INT(weft__session_remove(w.engine, "session-0003", "ann", session_removed, &gone), 0);
    CHECK(engine_wait(&w, &gone.times, 1));
    CHECK_INT(gone.r, 0);
    CHECK(!weft__task_find(w.engine, "task-0003"));
    engine_crash(&w);
    /* As if that save had not come. */
    weft_document before[] = {{"task/task-0003", {task, strlen(task)}}, {"hub", {hub, strlen(hub)}}};
    REQUIRE(weft__store_append(w.store.store, &(weft_append){.documents = before, .document_count = 2}, world_appended,
                               &put) == 0);
    CHECK(world_wait(&w.store, &put.times, 1));
    engine_crash(&w);
    CHECK_INT(world_start(&w), 0);
    CHECK(!weft__session_find(w.engine, "session-0003"));
    CHECK(!weft__task_find(w.engine, "task-0003"));
    check_lists(&w, MANY - 1);
    engine_end(&w);
}

/* What would need the past at once keeps the next start from leaving it for later. */
TEST(a_stop_that_leaves_something_to_decide) {
    static const char options[] = "[{\"id\":\"y\",\"name\":\"Yes\",\"kind\":\"allow_once\"}]";
    engine_world w;
    task_outcome t;
    have_a_past(&w, NULL);
    w.opts.limits.max_running = SIZE_MAX;
    weft__engine_set(w.engine, &world_all, &w.opts.limits);
    w.opts.limits.max_queue = 1000;
    weft__engine_set(w.engine, &world_all, &w.opts.limits);
    for (int i = 0; i < 201; i++)
        CHECK_INT(submit(&w, "waits", &t), 0);
    stop_engine(&w);
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(weft__engine_past(w.engine), 0);
    check_lists(&w, MANY + 201);
    /* One less is few enough. */
    task_outcome gone = {0};
    CHECK_INT(weft__task_cancel(w.engine, t.id, "ann", task_done, &gone), 0);
    CHECK(engine_wait(&w, &gone.times, 1));
    stop_engine(&w);
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(weft__engine_past(w.engine), -EAGAIN);
    await_past(&w);
    check_lists(&w, MANY + 201);
    /* A question that nobody has answered. */
    CHECK_INT(weft__question_ask(
                  w.engine,
                  &(weft_question_spec){
                      .kind = "approval", .title = "may it?", .rule = "r", .options = weft_raw(options, sizeof options - 1)},
                  NULL, NULL, NULL),
              0);
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false));
    stop_engine(&w);
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(weft__engine_past(w.engine), 0);
    CHECK(weft__question_first(w.engine, false));
    engine_end(&w);
}

/* ---- it cannot be read ---- */

static int past_fails; /* reads of all documents end so; 0: they work */

static void read_or_fail(weft_store *store, weft_read_job *job) {
    weft_link jobs;
    if (!past_fails || !job->query.documents || job->query.stream) {
        weft__sqlite.read(store, job);
        return;
    }
    weft__list_init(&jobs);
    job->job.r = past_fails;
    weft__list_push(&jobs, &job->job.link);
    weft__completions_put(&store->completions, &jobs);
}

TEST(a_past_that_cannot_be_read) {
    engine_world w;
    task_outcome t;
    weft_store_kind kind = weft__sqlite;
    kind.read = read_or_fail;
    have_a_past(&w, NULL);
    stop_engine(&w);
    w.store.kind = &kind;
    world_reopen(&w.store);
    w.opts.limits.again_ms = 1;
    past_fails = -EIO;
    CHECK_INT(world_start(&w), 0);
    /* Each who waits hears of one attempt; then it works again. */
    await_past(&w);
    CHECK_INT(told.r, -EIO);
    CHECK_INT(weft__engine_past(w.engine), -EAGAIN);
    await_past(&w);
    CHECK_INT(told.r, -EIO);
    past_fails = 0;
    await_past(&w);
    CHECK_INT(told.r, 0);
    check_lists(&w, MANY);
    stop_engine(&w);
    /* Damage stays. What is new works, and is there at the next start that can read. */
    past_fails = -EUCLEAN;
    CHECK_INT(world_start(&w), 0);
    await_past(&w);
    CHECK_INT(told.r, -EUCLEAN);
    CHECK_INT(weft__engine_past(w.engine), -EUCLEAN);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .key = "key"}, &t), -EAGAIN);
    CHECK_INT(submit(&w, "new", &t), 0);
    end_well(&w, t.id);
    CHECK_INT(weft__engine_past(w.engine), -EUCLEAN);
    stop_engine(&w);
    past_fails = 0;
    CHECK_INT(world_start(&w), 0);
    await_past(&w);
    CHECK_INT(told.r, 0);
    check_lists(&w, MANY + 1);
    engine_end(&w);
}

/* Every allocation fails once, from the start until the past is read: it is read all the same, or the start fails. */
TEST(memory_is_short_while_the_past_is_read) {
    engine_world w;
    test_memory memory;
    have_a_past(&w, NULL);
    stop_engine(&w);
    for (long fail_at = 1; fail_at < 2000; fail_at += 1 + fail_at / 4) {
        test_memory_init(&memory, 0);
        w.opts.alloc = &memory.alloc;
        memory.fail_at = fail_at;
        bool started = world_start(&w) == 0;
        if (started) {
            ENGINE_UNTIL(&w, weft__engine_past(w.engine) == 0);
            check_lists(&w, MANY);
        }
        w.stopped = 0;
        if (w.engine) {
            weft__engine_stop(w.engine, true, world_stopped, &w);
            CHECK(engine_wait(&w, &w.stopped, 1));
        }
        engine_crash(&w);
        CHECK_INT(memory.live, 0);
    }
    w.opts.alloc = NULL;
    CHECK_INT(world_start(&w), 0);
    engine_end(&w);
}

/* clang-format off */
TEST_MAIN(
    CASE(ready_before_the_past_is_read)
    CASE(ended_while_the_past_is_read)
    CASE(anything_behind_the_stop_is_read_with_the_past)
    CASE(killed_right_behind_a_deletion)
    CASE(a_stop_that_leaves_something_to_decide)
    CASE(a_past_that_cannot_be_read)
    CASE(memory_is_short_while_the_past_is_read)
)

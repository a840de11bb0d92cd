/* Sessions on their own: created, closed, resumed, deleted; what is stored of them and read back; where they work. */
#include "engine_private.h"

#include <sys/stat.h>

#include "beneath.h"
#include "engine/world.h"

typedef struct session_outcome {
    int times, r;
    char id[32], why[256];
} session_outcome;

static void session_done(void *ctx, int r, const weft_session *session, const char *error) {
    session_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    if (session)
        snprintf(outcome->id, sizeof outcome->id, "%s", session->id);
    snprintf(outcome->why, sizeof outcome->why, "%s", error ? error : "");
}

static int wait_for(engine_world *w, int r, session_outcome *o) {
    return r < 0 ? r : engine_wait(w, &o->times, 1) ? o->r : -ETIMEDOUT;
}

static int create(engine_world *w, const weft_session_order *order, session_outcome *ret) {
    *ret = (session_outcome){0};
    return wait_for(w, weft__session_create(w->engine, order, session_done, ret), ret);
}

static int close_it(engine_world *w, const char *id, session_outcome *ret) {
    *ret = (session_outcome){0};
    return wait_for(w, weft__session_close(w->engine, id, "ann", session_done, ret), ret);
}

static int resume_it(engine_world *w, const char *id, session_outcome *ret) {
    *ret = (session_outcome){0};
    return wait_for(w, weft__session_resume(w->engine, id, "ann", session_done, ret), ret);
}

static int delete_it(engine_world *w, const char *id, session_outcome *ret) {
    *ret = (session_outcome){0};
    return wait_for(w, weft__session_remove(w->engine, id, "ann", session_done, ret), ret);
}

static int rename_it(engine_world *w, const char *id, const char *json, session_outcome *ret) {
    weft_doc *doc = NULL;
    *ret = (session_outcome){0};
    CHECK_INT(weft_doc_parse(json, strlen(json), NULL, &doc), 0);
    int r = weft__session_set(w->engine, id, &(weft_session_setting){"title", NULL, *weft_doc_root(doc)}, "ann",
                              session_done, ret);
    weft_doc_free(doc);
    return wait_for(w, r, ret);
}

static void end_well(engine_world *w, const char *task) {
    ENGINE_UNTIL(w, play_of(task) != NULL);
    play_end(play_of(task), true);
    ENGINE_UNTIL(w, state_of(w, task) == WEFT_TASK_COMPLETED);
}

TEST(one_is_created_and_takes_tasks) {
    engine_world w;
    session_outcome s, second;
    task_outcome t;
    engine_begin(&w, play_store());
    CHECK_INT(create(&w, &(weft_session_order){.agent = "two", .title = "Mine"}, &s), 0);
    CHECK_STR(s.id, "session-0000");
    CHECK_STR(w.heard, "hub.started session.created ");
    const weft_session *session = weft__session_find(w.engine, s.id);
    CHECK(!session->busy && !session->task && !session->closed);
    CHECK_STR(session->title, "Mine");
    CHECK_STR(session->folder, "");
    CHECK_INT(create(&w, &(weft_session_order){0}, &second), 0);
    CHECK_STR(weft__session_find(w.engine, second.id)->agent, "one");
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .session = s.id}, &t), 0);
    CHECK_STR(t.session, s.id);
    CHECK_STR(t.id, "task-0002"); /* tasks and sessions have their numbers from one row */
    CHECK_STR(play_of(t.id)->agent, "two");
    end_well(&w, t.id);
    CHECK_INT(submit(&w, "x", &t), 0);
    CHECK_STR(t.session, "session-0003");
    engine_end(&w);
}

TEST(what_cannot_be_created) {
    engine_world w;
    session_outcome s;
    char *long_title = calloc(1, 1026), *servers = calloc(1, 70000);
    engine_begin(&w, play_store());
    memset(long_title, 'x', 1025);
    CHECK_INT(create(&w, &(weft_session_order){.agent = "nobody"}, &s), -ENOENT);
    CHECK_INT(create(&w, &(weft_session_order){.title = ""}, &s), -EINVAL);
    CHECK_INT(create(&w, &(weft_session_order){.title = long_title}, &s), -EINVAL);
    long_title[1024] = '\0';
    CHECK_INT(create(&w, &(weft_session_order){.title = long_title}, &s), 0);
    CHECK_INT(create(&w, &(weft_session_order){.settings = "[]"}, &s), -EINVAL);
    CHECK_INT(create(&w, &(weft_session_order){.settings = "{\"mode\":7}"}, &s), -EINVAL);
    CHECK_INT(create(&w, &(weft_session_order){.settings = "{\"mode\":\"x\"}"}, &s), -EOPNOTSUPP); /* the driver has none */
    CHECK_INT(create(&w, &(weft_session_order){.servers = "{}"}, &s), -EINVAL);
    CHECK_INT(create(&w, &(weft_session_order){.servers = "[{}]"}, &s), -EINVAL);
    CHECK_INT(create(&w, &(weft_session_order){.servers = "[{\"name\":\"x\"}]"}, &s), -EOPNOTSUPP);
    strcpy(servers, "[");
    for (int i = 0; i < 33; i++)
        strcat(servers, i ? ",{\"name\":\"x\"}" : "{\"name\":\"x\"}");
    strcat(servers, "]");
    CHECK_INT(create(&w, &(weft_session_order){.servers = servers}, &s), -EMSGSIZE);
    memset(servers, ' ', 65537);
    CHECK_INT(create(&w, &(weft_session_order){.servers = servers}, &s), -EMSGSIZE);
    servers[WEFT_SETTINGS_BYTES + 1] = '\0';
    CHECK_INT(create(&w, &(weft_session_order){.settings = servers}, &s), -EMSGSIZE);
    memcpy(servers + WEFT_SETTINGS_BYTES - 2, "{}", 3);
    CHECK_INT(create(&w, &(weft_session_order){.settings = servers}, &s), -EOPNOTSUPP); /* so long it may be */
    memset(servers, 'x', 1025);
    servers[1025] = '\0';
    CHECK_INT(create(&w, &(weft_session_order){.agent_session = servers}, &s), -EINVAL);
    CHECK_INT(create(&w, &(weft_session_order){.agent_session = "x"}, &s), -EOPNOTSUPP);
    CHECK_INT(create(&w, &(weft_session_order){.folder = "/etc"}, &s), -EXDEV);
    CHECK_INT(create(&w, &(weft_session_order){.folder = "no such folder anywhere"}, &s), -ENOTDIR);
    play_store_fails = -ENOSPC;
    CHECK_INT(create(&w, &(weft_session_order){0}, &s), -ENOSPC);
    play_store_fails = -ESTALE; /* of a command it would mean that the session is closed */
    CHECK_INT(create(&w, &(weft_session_order){0}, &s), -ENOTRECOVERABLE);
    play_store_fails = 0;
    CHECK(!weft__session_find(w.engine, "session-0001"));
    engine_end(&w);
    free(long_title);
    free(servers);
}

TEST(a_closed_one_takes_no_tasks_until_it_is_resumed) {
    engine_world w;
    session_outcome s, o;
    task_outcome t;
    engine_begin(&w, play_store());
    CHECK_INT(create(&w, &(weft_session_order){0}, &s), 0);
    CHECK_INT(close_it(&w, "session-0009", &o), -ESRCH);
    CHECK_INT(resume_it(&w, s.id, &o), -EALREADY);
    CHECK_INT(close_it(&w, s.id, &o), 0);
    CHECK_INT(close_it(&w, s.id, &o), -EALREADY);
    CHECK(weft__session_find(w.engine, s.id)->closed);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .session = s.id}, &t), -ESTALE);
    CHECK_INT(resume_it(&w, s.id, &o), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .session = s.id}, &t), 0);
    end_well(&w, t.id);
    CHECK(strstr(w.heard, "session.created session.closed session.resumed task.queued") != NULL);
    engine_end(&w);
}

/* The one that runs, those behind it, and one that is on its way to the store. */
TEST(closing_ends_its_tasks_first) {
    engine_world w;
    session_outcome o = {0};
    task_outcome a, b, late = {0};
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "a", &a), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "b", .session = a.session}, &b), 0);
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "late", .session = a.session}, task_done, &late), 0);
    CHECK_INT(weft__session_close(w.engine, a.session, "ann", session_done, &o), 0);
    CHECK_INT(weft__session_close(w.engine, a.session, "ann", session_done, &o), -ESTALE);
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x", .session = a.session}, NULL, NULL), -ESTALE);
    ENGINE_UNTIL(&w, play_of(a.id)->cancels == 1);
    engine_settle(&w);
    CHECK_INT(o.times, 0); /* the agent has not ended yet */
    play_end(play_of(a.id), false);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    CHECK_INT(late.r, 0);
    CHECK_INT(state_of(&w, a.id), WEFT_TASK_CANCELLED);
    CHECK_INT(state_of(&w, b.id), WEFT_TASK_CANCELLED);
    CHECK_INT(state_of(&w, late.id), WEFT_TASK_CANCELLED);
    CHECK(!play_of(b.id) && !play_of(late.id));
    CHECK_STR(w.heard + strlen(w.heard) - strlen("session.closed "), "session.closed ");
    engine_end(&w);
}

/* Its questions are withdrawn with its tasks; nothing of it is found any more, but by who reads the journal. */
TEST(a_deleted_one_is_gone) {
    engine_world w;
    session_outcome o = {0};
    task_outcome a, other;
    store_outcome page = {0};
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "other", &other), 0);
    CHECK_INT(submit(&w, "a", &a), 0);
    weft_run *run = play_of(a.id);
    play_say(run, "something\n");
    run->host->on_ask(run->ctx, "k",
                      WEFT_OBJ({"kind", weft_str("permission")}, {"title", weft_str("May I?")},
                               {"options", WEFT_ARR(WEFT_OBJ({"id", weft_str("yes")}))}));
    ENGINE_UNTIL(&w, weft__question_first(w.engine, false) != NULL);
    CHECK_INT(weft__session_remove(w.engine, a.session, "ann", session_done, &o), 0);
    ENGINE_UNTIL(&w, run->cancels == 1);
    play_end(run, false);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, 0);
    CHECK_STR(o.why, "");
    CHECK(strstr(w.heard, "question.withdrawn") != NULL);
    CHECK(!weft__session_find(w.engine, a.session));
    CHECK(!weft__task_find(w.engine, a.id));
    CHECK(!weft__question_first(w.engine, true));
    CHECK(weft__session_find(w.engine, other.session) && weft__task_find(w.engine, other.id));
    CHECK_INT(delete_it(&w, a.session, &o), -ESRCH);
    CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_CANCELLED], 1);
    char stream[64];
    snprintf(stream, sizeof stream, "session/%s", a.session);
    CHECK_INT(world_read(&w.store, &(weft_query){.stream = stream, .oldest = true}, &page), 0);
    CHECK_INT(page.count, 0);
    engine_end(&w);
}

/* Everything over a kill and over a good stop. */
static void all_is_read_back(bool well) {
    engine_world w;
    session_outcome a, b, c, o;
    task_outcome t;
    char folder[] = "/tmp/weft-session-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    engine_open(&w, &weft__sqlite);
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(create(&w, &(weft_session_order){.agent = "two", .title = "A", .folder = folder}, &a), 0);
    CHECK_INT(create(&w, &(weft_session_order){0}, &b), 0);
    CHECK_INT(create(&w, &(weft_session_order){0}, &c), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .session = c.id}, &t), 0);
    end_well(&w, t.id);
    CHECK_INT(close_it(&w, b.id, &o), 0);
    CHECK_INT(rename_it(&w, b.id, "\"B\"", &o), 0);
    CHECK_INT(rename_it(&w, b.id, "7", &o), -EINVAL);
    CHECK_INT(delete_it(&w, c.id, &o), 0);
    for (int i = 0; i < 2; i++) {
        if (well) {
            w.stopped = 0;
            weft__engine_stop(w.engine, false, world_stopped, &w);
            CHECK(engine_wait(&w, &w.stopped, 1));
        }
        engine_restart(&w);
        const weft_session *session = weft__session_find(w.engine, a.id);
        REQUIRE(session);
        CHECK_STR(session->agent, "two");
        CHECK_STR(session->title, "A");
        CHECK_STR(session->folder, folder + 5);
        CHECK(!session->closed);
        session = weft__session_find(w.engine, b.id);
        REQUIRE(session);
        CHECK(session->closed);
        CHECK_STR(session->title, "B");
        CHECK(!weft__session_find(w.engine, c.id));
        CHECK(!weft__task_find(w.engine, t.id));
    }
    CHECK_INT(rename_it(&w, b.id, "null", &o), 0);
    CHECK(!weft__session_find(w.engine, b.id)->title);
    CHECK_INT(create(&w, &(weft_session_order){0}, &o), 0);
    CHECK_STR(o.id, "session-0004");
    engine_end(&w);
    CHECK_INT(rmdir(folder), 0);
}

TEST(it_survives_a_restart) {
    all_is_read_back(false);
    all_is_read_back(true);
}

/* A save that fails has deleted no document; the next one does. */
static bool saves_fail;

static void append_unless_save(weft_store *store, weft_append_job *job) {
    weft_link jobs;
    if (!saves_fail || job->count) {
        weft__sqlite.append(store, job);
        return;
    }
    weft__list_init(&jobs);
    job->job.r = -ENOSPC;
    weft__list_push(&jobs, &job->job.link);
    weft__completions_put(&store->completions, &jobs);
}

static void save_now(engine_world *w, bool fails) {
    saves_fail = fails;
    weft__save(w->engine);
    ENGINE_UNTIL(w, !w->engine->saving);
    CHECK(w->engine->save_failed == fails);
    saves_fail = false;
}

TEST(what_was_deleted_stays_so_although_a_save_failed) {
    static weft_store_kind kind;
    engine_world w;
    session_outcome o;
    task_outcome t;
    kind = weft__sqlite;
    kind.append = append_unless_save;
    engine_begin(&w, &kind);
    CHECK_INT(submit(&w, "work", &t), 0);
    play_end(play_of(t.id), true);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    save_now(&w, false);
    CHECK_INT(delete_it(&w, t.session, &o), 0);
    save_now(&w, true);
    save_now(&w, false);
    engine_restart(&w);
    CHECK(!weft__session_find(w.engine, t.session));
    CHECK(!weft__task_find(w.engine, t.id));
    engine_end(&w);
}

TEST(it_works_in_its_folder) {
    engine_world w;
    session_outcome s;
    task_outcome t;
    char folder[] = "/tmp/weft-session-XXXXXX", inner[64], link[64], out[64], found[WEFT_BENEATH_PATH];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(inner, sizeof inner, "%s/inner", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    snprintf(out, sizeof out, "%s/out", folder);
    CHECK_INT(mkdir(inner, 0700), 0);
    CHECK_INT(symlink("inner", link), 0);
    CHECK_INT(symlink("/etc", out), 0);
    CHECK_INT(weft__beneath_folder(folder, "link", true, found), 0);
    CHECK_STR(&found[0], "inner"); /* what is kept has no link in it */
    CHECK_INT(weft__beneath_folder(folder, "link", false, found), -ENOTDIR);
    CHECK_INT(weft__beneath_folder(folder, "out", true, found), -EXDEV);
    CHECK_INT(weft__beneath_folder(folder, "inner/..", true, found), 0);
    CHECK_STR(&found[0], "");
    CHECK_INT(weft__beneath_folder(folder, "..", true, found), -EXDEV);
    CHECK_INT(weft__beneath_folder(folder, "inner/../../", true, found), -EXDEV);
    CHECK_INT(weft__beneath_folder(folder, inner, true, found), 0);
    CHECK_STR(&found[0], "inner");
    CHECK_INT(weft__beneath_folder(inner, "/tmp", true, found), -EXDEV);
    CHECK_INT(weft__beneath_folder(folder, "none", true, found), -ENOENT);
    engine_begin(&w, play_store()); /* in /tmp */
    CHECK_INT(create(&w, &(weft_session_order){.folder = link}, &s), 0);
    CHECK_STR(weft__session_find(w.engine, s.id)->folder, inner + 5);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .session = s.id}, &t), 0);
    end_well(&w, t.id);
    CHECK_STR(play_of(t.id)->folder, inner);
    /* Somebody puts a link in its place: it does not lead the next turn elsewhere. */
    CHECK_INT(rmdir(inner), 0);
    CHECK_INT(symlink("/etc", inner), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .session = s.id}, &t), 0);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED);
    CHECK(!play_of(t.id));
    engine_end(&w);
    unlink(inner);
    unlink(link);
    unlink(out);
    CHECK_INT(rmdir(folder), 0);
}

/* The oldest without a task goes. */
TEST(so_many_are_remembered) {
    engine_world w;
    session_outcome s;
    engine_open(&w, play_store());
    w.opts.limits.max_sessions = 3;
    CHECK_INT(world_start(&w), 0);
    for (int i = 0; i < 5; i++)
        CHECK_INT(create(&w, &(weft_session_order){0}, &s), 0);
    engine_settle(&w);
    CHECK(!weft__session_find(w.engine, "session-0001") && weft__session_find(w.engine, "session-0002"));
    engine_end(&w);
}

/* What agents say of all sessions has its limit: the oldest goes, and is said again when its session is opened. */
TEST(so_much_is_remembered_of_what_agents_say) {
    static char text[65536 + 1];
    engine_world w;
    session_outcome s;
    char first[32] = "";
    memset(text, ' ', 65536);
    text[0] = '[';
    text[65535] = ']';
    engine_begin(&w, play_store());
    for (int i = 0; i < 1024 + 2; i++) {
        CHECK_INT(create(&w, &(weft_session_order){0}, &s), 0);
        if (!i)
            memcpy(first, s.id, sizeof first);
        CHECK_INT(weft__engine_append(w.engine, "hub", "session.state",
                                      WEFT_OBJ({"sessionId", weft_str(s.id)}, {"name", weft_str("commands")},
                                               {"value", weft_raw(text, 65536)}),
                                      NULL, NULL),
                  0);
    }
    ENGINE_UNTIL(&w, weft__session_find(w.engine, s.id)->facts[WEFT_SESSION_COMMANDS] != NULL);
    engine_settle(&w);
    CHECK(!weft__session_find(w.engine, first)->facts[WEFT_SESSION_COMMANDS]);
    CHECK(w.engine->fact_bytes <= (size_t) 64 << 20);
    CHECK(w.engine->fact_bytes > (size_t) 63 << 20);
    engine_end(&w);
}

/* A command under way when the engine stops, is freed, or cannot store. */
TEST(closing_that_does_not_come_to_its_end) {
    engine_world w;
    session_outcome o = {0};
    task_outcome a;
    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "a", &a), 0);
    CHECK_INT(weft__session_close(w.engine, a.session, NULL, session_done, &o), 0);
    ENGINE_UNTIL(&w, play_of(a.id)->cancels == 1);
    weft__engine_stop(w.engine, false, world_stopped, &w);
    play_end(play_of(a.id), false);
    CHECK(engine_wait(&w, &o.times, 1));
    CHECK_INT(o.r, -ESHUTDOWN);
    CHECK(engine_wait(&w, &w.stopped, 1));
    engine_end(&w);

    engine_begin(&w, play_store());
    CHECK_INT(submit(&w, "a", &a), 0);
    o = (session_outcome){0};
    CHECK_INT(weft__session_remove(w.engine, a.session, NULL, session_done, &o), 0);
    ENGINE_UNTIL(&w, play_of(a.id)->cancels == 1);
    engine_end(&w);
    CHECK_INT(o.times, 1);
    CHECK_INT(o.r, -ECANCELED);

    engine_begin(&w, play_store());
    CHECK_INT(create(&w, &(weft_session_order){0}, &o), 0);
    char id[32];
    memcpy(id, o.id, sizeof id);
    play_store_fails = -ENOSPC;
    CHECK_INT(close_it(&w, id, &o), -ENOSPC);
    play_store_fails = 0;
    CHECK(!weft__session_find(w.engine, id)->closed);
    CHECK_INT(close_it(&w, id, &o), 0);
    engine_end(&w);
}

/* Each allocation fails in turn: an error, or it is done. */
TEST(memory_is_short) {
    bool failed = true;
    for (long n = 1; failed; n++) {
        engine_world w;
        session_outcome s = {0}, o = {0};
        test_memory memory;
        engine_open(&w, play_store());
        test_memory_init(&memory, 0);
        w.opts.alloc = &memory.alloc;
        CHECK_INT(world_start(&w), 0);
        memory.fail_at = memory.count + n;
        int r = create(&w, &(weft_session_order){.title = "T", .folder = "."}, &s);
        if (r == 0)
            r = close_it(&w, s.id, &o);
        if (r == 0)
            r = rename_it(&w, s.id, "\"U\"", &o);
        if (r == 0)
            r = delete_it(&w, s.id, &o);
        CHECK(r == 0 || r == -ENOMEM);
        failed = memory.count >= memory.fail_at;
        memory.fail_at = 0;
        CHECK(!failed || r == 0 || r == -ENOMEM);
        engine_end(&w);
        CHECK_INT(memory.live, 0);
    }
}

/* clang-format off */
TEST_MAIN(
    CASE(one_is_created_and_takes_tasks)
    CASE(what_cannot_be_created)
    CASE(a_closed_one_takes_no_tasks_until_it_is_resumed)
    CASE(closing_ends_its_tasks_first)
    CASE(a_deleted_one_is_gone)
    CASE(it_survives_a_restart) CASE(what_was_deleted_stays_so_although_a_save_failed)
    CASE(it_works_in_its_folder)
    CASE(so_many_are_remembered)
    CASE(so_much_is_remembered_of_what_agents_say)
    CASE(closing_that_does_not_come_to_its_end)
    CASE(memory_is_short)
)

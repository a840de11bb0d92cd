/* Every allocation of automation, and of the engine under it, fails once (F4): no crash, no leak, nothing stands still. What
 * could not be done is lost or told as failed; the next change is looked at like any other. */
#include "automation.h"

#include "engine/world.h"

#define LAST 4000 /* more allocations than the scene has */

static const char rules[] =
    "[{\"id\":\"lint\",\"cooldownMs\":0,\"trigger\":{\"type\":\"file.modify\",\"pattern\":\"**/*.{c,h}\"},\"conditions\":"
    "[{\"field\":\"payload.path\",\"operator\":\"matches\",\"value\":\"^[a-z]+\\\\.c$\"}],\"action\":{\"type\":\"agent\","
    "\"prompt\":\"lint {{payload.path}} \\u00e9\",\"priority\":7}},"
    "{\"id\":\"ask\",\"cooldownMs\":0,\"requiresApproval\":true,\"trigger\":{\"type\":\"task.completed\"},\"action\":"
    "{\"type\":\"notify\",\"message\":\"{{payload.taskId}} is done\"}},"
    "{\"id\":\"tell\",\"cooldownMs\":0,\"trigger\":{\"type\":\"task.*\"},\"action\":{\"type\":\"webhook\",\"url\":"
    "\"http://127.0.0.1:1/{{payload.taskId}}\",\"message\":\"x\"}},"
    "{\"id\":\"wrong\",\"trigger\":{\"type\":\"file.modify\",\"pattern\":\"{\"},\"action\":{\"type\":\"notify\"}},"
    "{\"id\":\"nightly\",\"trigger\":{\"type\":\"cron.fired\",\"schedule\":\"0 3 * * *\"},\"action\":{\"type\":\"notify\","
    "\"message\":\"x\"}}]";
static const char jobs[] = "[{\"id\":\"weekly\",\"schedule\":\"@weekly\"}]";

static test_memory memory;

typedef struct scene {
    engine_world w;
    weft_doc *rules, *jobs;
    weft_automation *automation;
    int switched;
} scene;

static void ignore(void *ctx, const char *line) {
    (void) ctx;
    (void) line;
}

static int automate(scene *s) {
    const char *ignored[] = {"*.o", NULL};
    weft_automation_opts opts = {.enabled = true,
                                 .rules = weft_doc_root(s->rules),
                                 .jobs = weft_doc_root(s->jobs),
                                 .ignore = ignored,
                                 .on_note = ignore};
    return weft__automation_new(s->w.engine, &opts, &s->automation);
}

static void changed(scene *s, const char *path) {
    weft__engine_append(s->w.engine, WEFT_STREAM_FILES, "file.modify",
                        WEFT_OBJ({"path", weft_str(path)}, {"size", weft_int(3)}), NULL, NULL);
    engine_settle(&s->w);
}

static void on_switched(void *ctx, int r) {
    (void) r;
    ++*(int *) ctx;
}

static void end_all(scene *s) {
    for (size_t i = 0; i < plays.count; i++)
        if (!plays.runs[i]->ended && !plays.runs[i]->freed)
            play_end(plays.runs[i], true);
    engine_settle(&s->w);
}

static void nothing(void *ctx, int r, const weft_question *question) {
    (void) ctx;
    (void) r;
    (void) question;
}

static void look(scene *s) {
    char *text = NULL;
    size_t len;
    int r = weft__automation_status(s->automation, &text, &len);
    CHECK(r == 0 || r == -ENOMEM);
    weft_text_free(text, &memory.alloc);
    weft__automation_health(s->automation);
}

static void play(scene *s) {
    changed(s, "a.c");
    changed(s, "b.txt");
    end_all(s);
    look(s);
    const weft_question *question = weft__question_first(s->w.engine, false);
    if (question)
        weft__question_answer(s->w.engine, question->id, "allow", "ann", NULL, nothing, NULL);
    engine_settle(&s->w);
    if (weft__automation_switch(s->automation, "lint", false, on_switched, &s->switched) == 0)
        CHECK(engine_wait(&s->w, &s->switched, 1));
    s->switched = 0;
    if (weft__automation_switch(s->automation, "lint", true, on_switched, &s->switched) == 0)
        CHECK(engine_wait(&s->w, &s->switched, 1));
    s->w.wall += (int64_t) 8 * 24 * 3600 * 1000; /* the jobs are due; the scheduler will look within a minute */
    changed(s, "c.c");
    end_all(s);
    /* A configuration is read again. */
    s->automation = weft__automation_free(s->automation);
    if (automate(s) == 0)
        engine_settle(&s->w);
}

static size_t tasks(const scene *s) {
    size_t count = 0;
    for (const weft_task *t = weft__task_newest(s->w.engine); t; t = weft__task_older(s->w.engine, t))
        count++;
    return count;
}

/* Memory is back: a change starts a task. */
static void check_works(scene *s) {
    if (!s->automation)
        CHECK_INT(automate(s), 0);
    engine_settle(&s->w);
    s->switched = 0;
    CHECK_INT(weft__automation_switch(s->automation, "lint", true, on_switched, &s->switched), 0);
    CHECK(engine_wait(&s->w, &s->switched, 1));
    end_all(s);
    size_t before = tasks(s);
    changed(s, "again.c");
    ENGINE_UNTIL(&s->w, tasks(s) > before);
}

static bool run_at(long n) {
    scene s = {0};
    engine_open(&s.w, &weft__memory);
    test_memory_init(&memory, 0);
    s.w.opts.alloc = &memory.alloc;
    s.w.wall = 1767234600000;
    CHECK_INT(world_start(&s.w), 0);
    CHECK_INT(weft_doc_parse(rules, strlen(rules), NULL, &s.rules), 0);
    CHECK_INT(weft_doc_parse(jobs, strlen(jobs), NULL, &s.jobs), 0);
    long before = memory.count;
    memory.fail_at = n ? before + n : 0;
    int r = automate(&s);
    CHECK(r == 0 || r == -ENOMEM);
    if (r == 0)
        play(&s);
    bool reached = memory.count >= before + n;
    memory.fail_at = 0;
    check_works(&s);
    s.automation = weft__automation_free(s.automation);
    s.w.engine = weft__engine_free(s.w.engine);
    weft__store_dispatch(s.w.store.store);
    for (int i = 0; i < 4; i++) /* connections of webhooks are closed by the loop */
        weft_loop_once(s.w.loop, false);
    world_done(&s.w.store);
    weft_loop_free(s.w.loop);
    CHECK_INT(memory.live, 0);
    CHECK_INT(plays.live, 0);
    play_reset();
    weft_doc_free(s.rules);
    weft_doc_free(s.jobs);
    return reached;
}

TEST(every_allocation_fails_once) {
    long n = 1;
    while (n < LAST && run_at(n))
        n++;
    CHECK(n > 100 && n < LAST);
}

TEST_MAIN(CASE(every_allocation_fails_once))

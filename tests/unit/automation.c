/* Automation on a real engine with a real store: events in, tasks, notices, POSTs and questions out. */
#include "automation.h"

#include "engine/world.h"

typedef struct scene {
    engine_world w;
    weft_automation *automation;
    weft_doc *rules, *jobs;
    weft_automation_opts opts;
    char note[512];
    int notes;
    int switched, switched_r;
    weft_event_listener listener;
    char fired[4096];  /* "rule/status/error " */
    char notices[512]; /* messages */
    char *status;
} scene;

static void on_note(void *ctx, const char *line) {
    scene *s = ctx;
    s->notes++;
    snprintf(s->note, sizeof s->note, "%s", line);
}

static void hear(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    scene *s = WEFT_CONTAINER(listener, scene, listener);
    size_t at = strlen(s->fired);
    if (strcmp(event->type, "rule.fired") == 0)
        snprintf(s->fired + at, sizeof s->fired - at, "%s/%s%s%s ", weft_get_str(data, "ruleId", "?"),
                 weft_get_str(data, "status", "?"), weft_get(data, "error").text ? "/" : "",
                 weft_get_str(data, "error", ""));
    at = strlen(s->notices);
    if (strcmp(event->type, "notice") == 0)
        snprintf(s->notices + at, sizeof s->notices - at, "%s|", weft_get_str(data, "message", "?"));
}

static void automate(scene *s) {
    s->opts.on_note = on_note;
    s->opts.ctx = s;
    s->opts.rules = s->rules ? weft_doc_root(s->rules) : NULL;
    s->opts.jobs = s->jobs ? weft_doc_root(s->jobs) : NULL;
    s->listener = (weft_event_listener){.on_event = hear};
    weft__engine_listen(s->w.engine, &s->listener);
    CHECK_INT(weft__automation_new(s->w.engine, &s->opts, &s->automation), 0);
}

static void begin(scene *s, const weft_store_kind *kind, const char *rules) {
    memset(s, 0, sizeof *s);
    engine_begin(&s->w, kind);
    s->opts.enabled = true;
    if (rules)
        CHECK_INT(weft_doc_parse(rules, strlen(rules), NULL, &s->rules), 0);
    automate(s);
}

static void restart(scene *s) {
    s->automation = weft__automation_free(s->automation);
    engine_restart(&s->w);
    s->fired[0] = s->notices[0] = '\0';
    automate(s);
}

static void end(scene *s) {
    s->automation = weft__automation_free(s->automation);
    engine_end(&s->w);
    weft_doc_free(s->rules);
    weft_doc_free(s->jobs);
    free(s->status);
}

static void changed_at(scene *s, const char *path, int64_t depth) {
    CHECK_INT(weft__engine_append(s->w.engine, WEFT_STREAM_FILES, "file.modify",
                                  WEFT_OBJ({"path", weft_str(path)}, {"size", weft_int(3)},
                                           {"depth", depth ? weft_int(depth) : weft_none()}),
                                  NULL, NULL),
              0);
}

static void changed(scene *s, const char *path) {
    changed_at(s, path, 0);
}

static const char *status(scene *s) {
    size_t len;
    free(s->status);
    s->status = NULL;
    CHECK_INT(weft__automation_status(s->automation, &s->status, &len), 0);
    CHECK_INT(strlen(s->status), len);
    return s->status;
}

static bool has(const char *text, const char *part) {
    return strstr(text, part) != NULL;
}

static size_t task_count(const scene *s) {
    size_t count = 0;
    for (const weft_task *t = weft__task_newest(s->w.engine); t; t = weft__task_older(s->w.engine, t))
        count++;
    return count;
}

static void on_switched(void *ctx, int r) {
    scene *s = ctx;
    s->switched++;
    s->switched_r = r;
}

static void switch_it(scene *s, const char *rule, bool enabled) {
    s->switched = 0;
    CHECK_INT(weft__automation_switch(s->automation, rule, enabled, on_switched, s), 0);
    engine_wait(&s->w, &s->switched, 1);
    CHECK_INT(s->switched_r, 0);
}

static void mark(scene *s) {
    size_t before = strlen(s->notices);
    CHECK_INT(weft__engine_append(s->w.engine, WEFT_STREAM_HUB, "notice",
                                  WEFT_OBJ({"message", weft_str("mark")}, {"level", weft_str("info")}), NULL, NULL),
              0);
    ENGINE_UNTIL(&s->w, strlen(s->notices) > before);
    s->notices[before] = '\0';
}

/* Whatever comes of what is stored already has come: a rule stores a task, and when that is stored what it did. */
static void after_all(scene *s) {
    for (int i = 0; i < 4; i++)
        mark(s);
}

#define LINT                                                                                                                \
    "{\"id\":\"lint\",\"trigger\":{\"type\":\"file.modify\",\"pattern\":\"*.c\"},\"action\":{\"type\":\"agent\","           \
    "\"prompt\":\"lint {{payload.path}}\",\"priority\":7}"

TEST(a_change_starts_a_task) {
    scene s;
    begin(&s, &weft__memory, "[" LINT "}]");
    status(&s);
    CHECK_STR(s.status,
              "{\"enabled\":true,\"ruleCount\":1,\"rules\":[{\"id\":\"lint\",\"trigger\":{\"type\":\"file.modify\","
              "\"pattern\":\"*.c\"},\"action\":{\"type\":\"agent\",\"prompt\":\"lint {{payload.path}}\",\"priority\":7},"
              "\"enabled\":true,\"cooldownMs\":5000,\"requiresApproval\":false}],\"recentExecutions\":[]}");
    changed(&s, "src/a.h");
    changed(&s, "src/a.c");
    ENGINE_UNTIL(&s.w, *s.fired);
    CHECK_STR(s.fired, "lint/triggered ");
    const weft_task *task = weft__task_newest(s.w.engine);
    REQUIRE(task);
    CHECK_STR(task->prompt, "lint src/a.c");
    CHECK_STR(task->metadata, "{\"source\":\"automation\",\"ruleId\":\"lint\",\"eventType\":\"file.modify\"}");
    CHECK_INT(task->priority, 7);
    CHECK_INT(task->depth, 1);
    CHECK(has(status(&s),
              "\"recentExecutions\":[{\"ruleId\":\"lint\",\"eventType\":\"file.modify\",\"status\":\"triggered\","
              "\"timestamp\":\""));
    CHECK(has(s.status, "Z\",\"taskId\":\"task-0000\"}]"));
    /* It rests now. */
    changed(&s, "src/b.c");
    after_all(&s);
    CHECK_INT(task_count(&s), 1);
    end(&s);
}

TEST(no_rest) {
    scene s;
    begin(&s, &weft__memory, "[" LINT ",\"cooldownMs\":0}]");
    CHECK(has(status(&s), "\"cooldownMs\":0"));
    for (int i = 0; i < 5; i++)
        changed(&s, "a.c");
    ENGINE_UNTIL(&s.w, task_count(&s) == 5);
    end(&s);
}

TEST(notices_and_conditions) {
    scene s;
    begin(&s, &weft__memory,
          "[{\"id\":\"n\",\"cooldownMs\":0,\"trigger\":{\"type\":\"file.*\"},\"conditions\":[{\"field\":\"payload.size\","
          "\"operator\":\"lt\",\"value\":10},{\"field\":\"path\",\"operator\":\"matches\",\"value\":\"^doc\"}],"
          "\"action\":{\"type\":\"notify\",\"message\":\"{{payload.path}} is {{payload.size}}\"}}]");
    changed(&s, "x");
    changed(&s, "doc/1");
    ENGINE_UNTIL(&s.w, *s.fired);
    CHECK_STR(s.notices, "doc/1 is 3|");
    CHECK_STR(s.fired, "n/triggered ");
    end(&s);
}

/* Events of tasks bring the task with them. */
TEST(tasks_that_fail) {
    scene s;
    task_outcome t;
    begin(&s, &weft__memory,
          "[{\"id\":\"f\",\"trigger\":{\"type\":\"task.failed\",\"source\":\"queue\",\"pattern\":\"build *\"},"
          "\"action\":{\"type\":\"notify\",\"message\":\"{{payload.taskId}} ({{payload.prompt}}): {{payload.error}}\"}}]");
    CHECK_INT(submit(&s.w, "test all", &t), 0);
    play_end(play_of(t.id), false);
    CHECK_INT(submit(&s.w, "build all", &t), 0);
    play_end(play_of(t.id), false);
    ENGINE_UNTIL(&s.w, *s.fired);
    CHECK_STR(s.notices, "task-0001 (build all): it went wrong|");
    end(&s);
}

TEST(wrong_rules_are_shown) {
    scene s;
    begin(&s, &weft__memory,
          "[" LINT "}," LINT "},{\"trigger\":{\"type\":\"x\"}},{\"id\":\"odd\",\"trigger\":{\"type\":\"file.modify\"},"
          "\"action\":{\"type\":\"dance\"}}]");
    CHECK_INT(s.notes, 3);
    CHECK(has(s.note, "rule odd is not valid: there is no action \"dance\""));
    CHECK(has(status(&s), "\"ruleCount\":4"));
    CHECK(
        has(s.status, "\"enabled\":false,\"cooldownMs\":5000,\"requiresApproval\":false,\"error\":\"there is another rule"));
    CHECK(has(s.status, "\"error\":\"it has no id\""));
    CHECK(has(s.status, "\"action\":{\"type\":\"dance\"},\"enabled\":false"));
    CHECK_INT(weft__automation_switch(s.automation, "odd", true, NULL, NULL), -EINVAL);
    CHECK_INT(weft__automation_switch(s.automation, "nobody", true, NULL, NULL), -ENOENT);
    changed(&s, "a.c");
    ENGINE_UNTIL(&s.w, *s.fired);
    after_all(&s);
    CHECK_STR(s.fired, "lint/triggered ");
    end(&s);
}

TEST(switches_last) {
    scene s;
    begin(&s, &weft__sqlite,
          "[" LINT ",\"cooldownMs\":0},{\"id\":\"n\",\"enabled\":false,\"cooldownMs\":0,\"trigger\":"
          "{\"type\":\"file.modify\"},\"action\":{\"type\":\"notify\",\"message\":\"m\"}}]");
    switch_it(&s, "lint", false);
    switch_it(&s, "n", true);
    CHECK(has(status(&s), "\"enabled\":true,\"ruleCount\":2"));
    changed(&s, "a.c");
    ENGINE_UNTIL(&s.w, has(s.fired, "n/triggered "));
    CHECK_INT(task_count(&s), 0);
    switch_it(&s, NULL, false);
    CHECK(has(status(&s), "{\"enabled\":false,"));
    CHECK(!weft__automation_health(s.automation).enabled);
    changed(&s, "a.c");
    after_all(&s);
    CHECK_STR(s.fired, "n/triggered ");
    restart(&s);
    /* What comes before the journal was read is looked at afterwards. */
    changed(&s, "a.c");
    CHECK(has(status(&s), "{\"enabled\":false,"));
    ENGINE_UNTIL(&s.w, has(status(&s), "\"recentExecutions\":[{\"ruleId\":\"n\""));
    after_all(&s);
    CHECK_STR(s.fired, "");
    switch_it(&s, NULL, true);
    changed(&s, "a.c");
    ENGINE_UNTIL(&s.w, has(s.fired, "n/triggered "));
    CHECK_INT(task_count(&s), 0);
    end(&s);
}

TEST(the_last_ten) {
    scene s;
    begin(&s, &weft__sqlite,
          "[{\"id\":\"n\",\"cooldownMs\":0,\"trigger\":{\"type\":\"file.modify\"},"
          "\"action\":{\"type\":\"notify\",\"message\":\"m\"}}]");
    for (int i = 0; i < 14; i++)
        changed(&s, "a");
    ENGINE_UNTIL(&s.w, strlen(s.fired) == 14 * strlen("n/triggered "));
    weft_doc *doc = NULL;
    for (int i = 0; i < 2; i++) {
        ENGINE_UNTIL(&s.w, has(status(&s), "triggered"));
        CHECK_INT(weft_doc_parse(s.status, strlen(s.status), NULL, &doc), 0);
        weft_json recent = weft_get(weft_doc_root(doc), "recentExecutions");
        CHECK_INT(weft_count(&recent), 10);
        doc = weft_doc_free(doc);
        if (i == 0)
            restart(&s);
    }
    end(&s);
}

/* A rule that fires on what it causes stops by itself. */
TEST(loops_end) {
    scene s;
    task_outcome t;
    begin(&s, &weft__memory,
          "[{\"id\":\"again\",\"cooldownMs\":0,\"trigger\":{\"type\":\"task.completed\"},"
          "\"action\":{\"type\":\"agent\",\"prompt\":\"after {{payload.taskId}}\"}}]");
    CHECK_INT(submit(&s.w, "begin", &t), 0);
    for (size_t i = 0; i < 4; i++) {
        ENGINE_UNTIL(&s.w, plays.count == i + 1);
        CHECK_INT(weft__task_newest(s.w.engine)->depth, i);
        play_end(plays.runs[i], true);
    }
    ENGINE_UNTIL(&s.w, has(s.fired, "skipped"));
    CHECK_STR(s.fired, "again/triggered again/triggered again/triggered again/skipped/depth ");
    CHECK_INT(task_count(&s), 4);
    end(&s);
}

/* Said once, not for each of them. */
TEST(depth_is_said_once) {
    scene s;
    begin(&s, &weft__memory, "[" LINT ",\"cooldownMs\":0}]");
    for (int i = 0; i < 20; i++)
        changed_at(&s, "a.c", 3);
    after_all(&s);
    CHECK_STR(s.fired, "lint/skipped/depth ");
    changed_at(&s, "a.c", 2);
    ENGINE_UNTIL(&s.w, has(s.fired, "triggered"));
    CHECK_INT(weft__task_newest(s.w.engine)->depth, 3);
    end(&s);
}

#define ASK                                                                                                                 \
    "{\"id\":\"ask\",\"cooldownMs\":0,\"requiresApproval\":true,\"trigger\":{\"type\":\"file.modify\"},\"action\":"         \
    "{\"type\":\"agent\",\"prompt\":\"fix {{payload.path}}\"}}"

static void answer(scene *s, const char *question, const char *option) {
    CHECK_INT(weft__question_answer(s->w.engine, question, option, "ann", NULL, NULL, NULL), 0);
}

TEST(approval) {
    scene s;
    begin(&s, &weft__memory, "[" ASK "]");
    changed(&s, "a \\\"b\\\".c");
    ENGINE_UNTIL(&s.w, *s.fired);
    CHECK_STR(s.fired, "ask/pendingApproval ");
    const weft_question *q = weft__question_first(s.w.engine, false);
    REQUIRE(q);
    CHECK_STR(q->kind, "approval");
    CHECK_STR(q->rule, "ask");
    CHECK_STR(q->title, "rule ask: start a task: fix a \\\"b\\\".c");
    CHECK(has(q->detail, "\"action\":{\"type\":\"agent\",\"prompt\":\"fix a \\\\\\\"b\\\\\\\".c\",\"priority\":0}"));
    CHECK_INT(task_count(&s), 0);
    /* The same again is not asked again. */
    changed(&s, "a \\\"b\\\".c");
    after_all(&s);
    CHECK_STR(s.fired, "ask/pendingApproval ");
    answer(&s, q->id, "allow");
    ENGINE_UNTIL(&s.w, has(s.fired, "ask/approved "));
    const weft_task *task = weft__task_newest(s.w.engine);
    REQUIRE(task);
    CHECK_STR(task->prompt, "fix a \\\"b\\\".c");
    CHECK_INT(task->depth, 1);
    changed(&s, "other");
    ENGINE_UNTIL(&s.w, weft__question_first(s.w.engine, false) != NULL);
    answer(&s, "question-0001", "deny");
    ENGINE_UNTIL(&s.w, has(s.fired, "ask/denied "));
    after_all(&s);
    CHECK_INT(task_count(&s), 1);
    end(&s);
}

TEST(only_so_many_questions) {
    scene s;
    begin(&s, &weft__memory, "[" ASK "]");
    for (int i = 0; i < 12; i++) {
        char path[16];
        snprintf(path, sizeof path, "f%d", i);
        changed(&s, path);
    }
    ENGINE_UNTIL(&s.w, has(s.fired, "skipped"));
    after_all(&s);
    size_t open = 0;
    for (const weft_question *q = weft__question_first(s.w.engine, false); q; q = weft__question_next(s.w.engine, q, false))
        open++;
    CHECK_INT(open, 10);
    end(&s);
}

/* Asked by one daemon, approved under the next: what is done is what was asked, whatever the rule says now. */
TEST(approved_after_a_restart) {
    scene s;
    begin(&s, &weft__sqlite, "[" ASK "]");
    changed(&s, "a.c");
    ENGINE_UNTIL(&s.w, has(s.fired, "pendingApproval"));
    const char *later =
        "[{\"id\":\"ask\",\"trigger\":{\"type\":\"file.create\"},\"action\":{\"type\":\"agent\",\"prompt\":\"rm\"}}]";
    s.rules = weft_doc_free(s.rules);
    CHECK_INT(weft_doc_parse(later, strlen(later), NULL, &s.rules), 0);
    restart(&s);
    answer(&s, "question-0000", "allow");
    ENGINE_UNTIL(&s.w, has(s.fired, "ask/approved "));
    CHECK_STR(weft__task_newest(s.w.engine)->prompt, "fix a.c");
    /* And not again at the next start. */
    restart(&s);
    ENGINE_UNTIL(&s.w, has(status(&s), "approved"));
    after_all(&s);
    CHECK_STR(s.fired, "");
    CHECK_INT(task_count(&s), 1);
    end(&s);
}

/* The answer was stored and the daemon died before it acted. */
TEST(approved_and_died) {
    scene s;
    begin(&s, &weft__sqlite, "[" ASK "]");
    changed(&s, "a.c");
    ENGINE_UNTIL(&s.w, has(s.fired, "pendingApproval"));
    s.automation = weft__automation_free(s.automation);
    answer(&s, "question-0000", "allow");
    ENGINE_UNTIL(&s.w, weft__question_find(s.w.engine, "question-0000")->state == WEFT_QUESTION_ANSWERED);
    restart(&s);
    ENGINE_UNTIL(&s.w, has(s.fired, "ask/approved "));
    CHECK_STR(weft__task_newest(s.w.engine)->prompt, "fix a.c");
    CHECK_INT(task_count(&s), 1);
    end(&s);
}

TEST(approved_but_gone) {
    scene s;
    begin(&s, &weft__sqlite, "[" ASK "]");
    changed(&s, "a.c");
    ENGINE_UNTIL(&s.w, has(s.fired, "pendingApproval"));
    s.rules = weft_doc_free(s.rules);
    restart(&s);
    answer(&s, "question-0000", "allow");
    ENGINE_UNTIL(&s.w, has(s.fired, "ask/failed/there is no such rule any more "));
    CHECK_INT(task_count(&s), 0);
    end(&s);
}

TEST(failures_are_told) {
    scene s;
    begin(
        &s, &weft__memory,
        "[{\"id\":\"odd\",\"cooldownMs\":0,\"trigger\":{\"type\":\"file.modify\"},\"action\":{\"type\":\"agent\",\"prompt\":"
        "\"{{payload.nothing}}\"}},{\"id\":\"slow\",\"trigger\":{\"type\":\"file.modify\"},\"conditions\":[{\"field\":"
        "\"path\","
        "\"operator\":\"matches\",\"value\":\"^(a+)+$\"}],\"action\":{\"type\":\"notify\",\"message\":\"m\"}}]");
    changed(&s, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!");
    ENGINE_UNTIL(&s.w, has(s.fired, "odd/failed/") && has(s.fired, "slow/failed/the regular expression takes too long "));
    end(&s);
}

/* ---- the sources ---- */

/* Minutes before the clock is moved on by the test. */
TEST(schedules) {
    static const char jobs[] =
        "[{\"id\":\"nightly\",\"schedule\":\"30 2 * * *\",\"action\":\"tidy\"},{\"id\":\"bad\",\"schedule\":\"x\"}]";
    scene s;
    setenv("TZ", "UTC", 1);
    tzset();
    memset(&s, 0, sizeof s);
    engine_begin(&s.w, &weft__memory);
    s.w.wall = 1767234599900; /* 2026-01-01 02:29:59.9 */
    s.opts.enabled = true;
    const char *rules =
        "[{\"id\":\"five\",\"cooldownMs\":0,\"trigger\":{\"type\":\"cron.fired\",\"schedule\":\"*/5 * * * *\"},"
        "\"action\":{\"type\":\"notify\",\"message\":\"five\"}},{\"id\":\"all\",\"cooldownMs\":0,\"trigger\":"
        "{\"source\":\"scheduler\",\"pattern\":\"night*\"},\"action\":{\"type\":\"notify\",\"message\":"
        "\"{{payload.job}} {{payload.schedule}} {{payload.job_id}} {{payload.action}}\"}}]";
    CHECK_INT(weft_doc_parse(rules, strlen(rules), NULL, &s.rules), 0);
    CHECK_INT(weft_doc_parse(jobs, strlen(jobs), NULL, &s.jobs), 0);
    automate(&s);
    weft_automation_health health = weft__automation_health(s.automation);
    CHECK_INT(health.jobs, 2);
    CHECK(health.scheduling);
    CHECK_STR(health.last_fires, "{}");
    CHECK(has(s.note, "job bad is not valid"));
    s.w.wall += 200;
    ENGINE_UNTIL(&s.w, has(s.fired, "five/triggered ") && has(s.fired, "all/triggered "));
    CHECK(has(s.notices, "nightly 30 2 * * * nightly tidy|"));
    CHECK_STR(weft__automation_health(s.automation).last_fires,
              "{\"nightly\":\"2026-01-01T02:30:00.100Z\",\"rule:five\":\"2026-01-01T02:30:00.100Z\"}");
    after_all(&s);
    CHECK_STR(s.fired, "all/triggered five/triggered ");
    end(&s);
}

/* Real files; and while a task of ours runs, their changes are its doing. */
TEST(files) {
    scene s;
    char folder[] = "/tmp/weft-auto-XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    const char *paths[] = {folder + 5, NULL}, *ignore[] = {"*.tmp", NULL};
    memset(&s, 0, sizeof s);
    engine_begin(&s.w, &weft__memory); /* in /tmp */
    s.opts = (weft_automation_opts){.enabled = true, .watch = true, .watch_paths = paths, .ignore = ignore};
    const char *rules =
        "[{\"id\":\"w\",\"cooldownMs\":0,\"trigger\":{\"type\":\"file.create\",\"pattern\":\"*.c\"},\"action\":"
        "{\"type\":\"agent\",\"prompt\":\"see {{payload.path}} {{payload.event_type}}\"}}]";
    CHECK_INT(weft_doc_parse(rules, strlen(rules), NULL, &s.rules), 0);
    automate(&s);
    ENGINE_UNTIL(&s.w, weft__automation_health(s.automation).watch_paths == 2);
    engine_settle(&s.w);
    CHECK(weft__automation_health(s.automation).watching);
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%d.c", folder, i);
        FILE *f = fopen(path, "w");
        fclose(f);
        if (i < 3)
            ENGINE_UNTIL(&s.w, plays.count == (size_t) i + 1);
        else
            ENGINE_UNTIL(&s.w, has(s.fired, "skipped"));
    }
    CHECK_STR(s.fired, "w/triggered w/triggered w/triggered w/skipped/depth ");
    snprintf(path, sizeof path, "see %s/0.c create", folder + 5);
    CHECK_STR(plays.runs[0]->prompt, path);
    CHECK_INT(weft__task_newest(s.w.engine)->depth, 3);
    CHECK_INT(weft__automation_health(s.automation).watch_events, 4);
    end(&s);
    test_remove(folder);
}

TEST(nothing_to_do) {
    scene s;
    begin(&s, &weft__memory, NULL);
    status(&s);
    CHECK_STR(s.status, "{\"enabled\":true,\"ruleCount\":0,\"rules\":[],\"recentExecutions\":[]}");
    CHECK(!weft__automation_health(s.automation).watching);
    CHECK_INT(weft__automation_health(s.automation).watch_failed, 0);
    end(&s);
}

/* ---- webhooks ---- */

typedef struct door {
    int requests, status;
    char body[1024], path[128];
} door;

static void on_post(weft_http *http, void *ctx) {
    door *d = ctx;
    weft_bytes body = weft_http_body(http);
    d->requests++;
    snprintf(d->body, sizeof d->body, "%.*s", (int) body.len, body.data);
    snprintf(d->path, sizeof d->path, "%s", weft_http_path(http));
    weft_http_answer(http, d->status, "text/plain", (weft_bytes){"", 0});
}

TEST(webhooks) {
    scene s;
    door d = {.status = 200};
    weft_service *service = NULL;
    weft_server *server = NULL;
    char rules[512];
    memset(&s, 0, sizeof s);
    engine_begin(&s.w, &weft__memory);
    CHECK_INT(weft_service_new(&(weft_service_opts){0}, &service), 0);
    CHECK_INT(weft_server_new(s.w.loop, &(weft_server_opts){.service = service}, &server), 0);
    CHECK_INT(weft_server_listen(server, "http://127.0.0.1:0/rpc", NULL), 0);
    CHECK_INT(weft_server_route(server, "POST", "/hook/*", on_post, &d), 0);
    snprintf(
        rules, sizeof rules,
        "[{\"id\":\"h\",\"cooldownMs\":0,\"trigger\":{\"type\":\"file.modify\"},\"action\":{\"type\":\"webhook\",\"url\":"
        "\"%.*s/hook/{{payload.path}}\",\"message\":\"see {{payload.path}}\"}}]",
        (int) (strlen(weft_server_url(server, 0)) - 4), weft_server_url(server, 0));
    CHECK_INT(weft_doc_parse(rules, strlen(rules), NULL, &s.rules), 0);
    s.opts.enabled = true;
    automate(&s);
    changed(&s, "a?b");
    ENGINE_UNTIL(&s.w, *s.fired);
    CHECK_STR(s.fired, "h/triggered ");
    CHECK_INT(d.requests, 1);
    CHECK(has(d.body, "{\"ruleId\":\"h\",\"eventType\":\"file.modify\",\"timestamp\":\"20"));
    CHECK(has(d.body, "\"payload\":{\"path\":\"a?b\",\"size\":3,\"event_type\":\"modify\"},\"message\":\"see a?b\"}"));
    d.status = 404;
    changed(&s, "b");
    ENGINE_UNTIL(&s.w, has(s.fired, "h/failed/the server answered 404 "));
    /* Gone in the middle of one. */
    changed(&s, "c");
    engine_settle(&s.w);
    s.automation = weft__automation_free(s.automation);
    weft_server_free(server);
    end(&s);
    weft_service_unref(service);
}

/* ---- life ---- */

/* Freed before anything under way has completed; and the engine before it has. */
TEST(freed_in_the_middle) {
    for (int turns = 0; turns < 10; turns++) {
        scene s;
        begin(&s, &weft__sqlite, "[" LINT ",\"cooldownMs\":0}," ASK "]");
        changed(&s, "a.c");
        changed(&s, "b.c");
        for (int i = 0; i < turns; i++) {
            poll(&(struct pollfd){.fd = weft_loop_fd(s.w.loop), .events = POLLIN}, 1, 2);
            weft_loop_once(s.w.loop, false);
        }
        s.automation = weft__automation_free(s.automation);
        if (turns % 2)
            engine_settle(&s.w);
        end(&s);
    }
}

/* A configuration that is read again is another automation on the same engine. */
TEST(again_on_the_same_engine) {
    scene s;
    begin(&s, &weft__memory, "[" LINT ",\"cooldownMs\":0}]");
    switch_it(&s, "lint", false);
    s.automation = weft__automation_free(s.automation);
    CHECK_INT(weft__automation_new(s.w.engine, &s.opts, &s.automation), 0);
    ENGINE_UNTIL(&s.w, has(status(&s), "\"enabled\":false,\"cooldownMs\":0"));
    switch_it(&s, "lint", true);
    changed(&s, "a.c");
    ENGINE_UNTIL(&s.w, task_count(&s) == 1);
    end(&s);
}

/* clang-format off */
TEST_MAIN(
    CASE(a_change_starts_a_task)
    CASE(no_rest)
    CASE(notices_and_conditions)
    CASE(tasks_that_fail)
    CASE(wrong_rules_are_shown)
    CASE(switches_last)
    CASE(the_last_ten)
    CASE(loops_end)
    CASE(depth_is_said_once)
    CASE(approval)
    CASE(only_so_many_questions)
    CASE(approved_after_a_restart)
    CASE(approved_and_died)
    CASE(approved_but_gone)
    CASE(failures_are_told)
    CASE(schedules)
    CASE(files)
    CASE(nothing_to_do)
    CASE(webhooks)
    CASE(freed_in_the_middle)
    CASE(again_on_the_same_engine)
)

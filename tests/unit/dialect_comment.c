/* task.comment on a real hub with real snapshots: what the agent is told, in which session, and what is refused. The agents
 * are played; files are changed by the test. */
#include <sys/stat.h>

#include "hub_client.h"
#include "snapshots.h"

typedef struct comment_world {
    hub_world hub;
    hub_client client;
    char folder[64], project[80], state[80];
    int id;
} comment_world;

static void put_file(const comment_world *w, const char *name, const char *text) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", w->project, name);
    FILE *file = fopen(path, "w");
    if (CHECK(file != NULL)) {
        fputs(text, file);
        fclose(file);
    }
}

static void begin_comments(comment_world *w, const weft_alloc *alloc) {
    memset(w, 0, sizeof *w);
    snprintf(w->folder, sizeof w->folder, "/tmp/weft-comment-XXXXXX");
    CHECK(mkdtemp(w->folder) != NULL);
    snprintf(w->project, sizeof w->project, "%s/p", w->folder);
    snprintf(w->state, sizeof w->state, "%s/state", w->folder);
    CHECK_INT(mkdir(w->project, 0755), 0);
    CHECK_INT(mkdir(w->state, 0700), 0);
    put_file(w, "a", "1\n2\n3\n");
    CHECK_INT(hub_init(&w->hub, &(hub_opts){.folder = w->project,
                                            .state = w->state,
                                            .alloc = alloc,
                                            .unchecked = alloc != NULL,
                                            .limits = {.max_turns = 1000, .max_queue = 1000}}),
              0);
    hub_connect(&w->hub, "weft", &w->client);
}

static void end_comments(comment_world *w) {
    hub_disconnect(&w->client);
    hub_done(&w->hub);
    test_remove(w->folder);
}

static void ask(comment_world *w, const char *method, const char *params) {
    char text[4096];
    snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":%s}", ++w->id, method, params);
    hub_say(&w->client, text);
}

/* The answer; borrowed until the next call. */
static const char *receive(comment_world *w) {
    const char *line = NULL;
    HUB_UNTIL(&w->hub, line || (line = hub_take(&w->client)));
    return line ? line : "";
}

static const char *call(comment_world *w, const char *method, const char *params) {
    ask(w, method, params);
    return receive(w);
}

static bool has_ended(const comment_world *w, const char *id) {
    const weft_task *task = weft__task_find(w->hub.engine, id);
    return task && task->state >= WEFT_TASK_COMPLETED;
}

static weft_run *started(comment_world *w, const char *id) {
    HUB_UNTIL(&w->hub, hub_run(&w->hub, id));
    return hub_run(&w->hub, id);
}

static void finish(comment_world *w, const char *id, bool remembers) {
    weft_run *run = started(w, id);
    if (!run)
        return;
    if (remembers)
        run->host->on_session(run->ctx, "own-1");
    hub_end(run, &(weft_run_end){.ok = true, .exit_code = 0});
    HUB_UNTIL(&w->hub, has_ended(w, id));
}

/* task-0000 has changed a: 2 became two. */
static void change_something(comment_world *w, bool remembers) {
    CHECK(strstr(call(w, "task.submit", "{\"prompt\":\"count in words\"}"), "task-0000") != NULL);
    started(w, "task-0000");
    put_file(w, "a", "1\ntwo\n3\n");
    finish(w, "task-0000", remembers);
}

#define ONE "{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"line\":2,\"text\":\"say deux\"}]}"

TEST(it_goes_on_in_its_session) {
    comment_world w;
    begin_comments(&w, NULL);
    change_something(&w, true);
    CHECK(strstr(call(&w, "task.comment", ONE),
                 "\"result\":{\"taskId\":\"task-0001\",\"sessionId\":\"session-0000\",\"state\":\"running\"}") != NULL);
    const weft_run *run = started(&w, "task-0001");
    const char *prompt = run ? run->prompt : NULL;
    CHECK_STR(prompt, "A person has reviewed what task-0000 changed in the project's files and has 1 comment on it.\n\n"
                      "1. a, line 2:\n\n       1\n      -2\n    > +two\n       3\n\nsay deux\n\n");
    const weft_task *task = weft__task_find(w.hub.engine, "task-0001");
    const char *metadata = task ? task->metadata : NULL;
    CHECK_STR(metadata, "{\"review\":{\"taskId\":\"task-0000\",\"by\":\"tester\",\"comments\":[{\"path\":\"a\",\"line\":2,"
                        "\"side\":\"new\",\"text\":\"say deux\"}]}}");
    /* Another one waits behind it, also of a session whose agent has not said yet that it remembers. */
    CHECK(strstr(call(&w, "task.comment", "{\"taskId\":\"task-0000\",\"comments\":[],\"text\":\"all in all\"}"),
                 "\"sessionId\":\"session-0000\",\"state\":\"queued\"") != NULL);
    finish(&w, "task-0001", true);
    CHECK(strstr(started(&w, "task-0002")->prompt, "files.\n\nall in all\n") != NULL);
    end_comments(&w);
}

TEST(who_does_not_remember_is_told) {
    comment_world w;
    begin_comments(&w, NULL);
    change_something(&w, false);
    CHECK(strstr(call(&w, "task.comment", ONE), "\"sessionId\":\"session-0001\"") != NULL);
    CHECK(strstr(started(&w, "task-0001")->prompt, "What was to be done there:\n\ncount in words\n") != NULL);
    end_comments(&w);
}

TEST(a_closed_session_is_not_used) {
    comment_world w;
    begin_comments(&w, NULL);
    change_something(&w, true);
    CHECK(strstr(call(&w, "session.close", "{\"sessionId\":\"session-0000\"}"), "\"closed\":true") != NULL);
    CHECK(strstr(call(&w, "task.comment", ONE), "\"sessionId\":\"session-0001\"") != NULL);
    CHECK(strstr(started(&w, "task-0001")->prompt, "count in words") != NULL);
    end_comments(&w);
}

/* Who reads the diff of one file sees a renamed file as a new one, with all of its lines. */
TEST(a_renamed_file) {
    char from[160], to[160];
    comment_world w;
    begin_comments(&w, NULL);
    put_file(&w, "long", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n");
    call(&w, "task.submit", "{\"prompt\":\"x\"}");
    started(&w, "task-0000");
    snprintf(from, sizeof from, "%s/long", w.project);
    snprintf(to, sizeof to, "%s/moved", w.project);
    CHECK_INT(rename(from, to), 0);
    put_file(&w, "moved", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\ntwelve\n");
    finish(&w, "task-0000", true);
    CHECK(strstr(call(&w, "task.comment",
                      "{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"moved\",\"line\":12,\"text\":\"b\"},{"
                      "\"path\":\"moved\",\"line\":2,\"text\":\"a\"},{\"path\":\"long\",\"line\":12,\"side\":"
                      "\"old\",\"text\":\"c\"}]}"),
                 "\"taskId\":\"task-0001\"") != NULL);
    const char *prompt = started(&w, "task-0001")->prompt;
    CHECK(strstr(prompt, "1. moved, line 12:\n\n       10\n       11\n      -12\n    > +twelve\n") != NULL);
    CHECK(strstr(prompt, "2. moved, line 2:\n\n      +1\n    > +2\n      +3\n") != NULL);
    CHECK(strstr(prompt, "3. long, line 12 of the file as it was before:\n\n       9\n       10\n       11\n    > -12\n") !=
          NULL);
    end_comments(&w);
}

TEST(while_it_runs) {
    comment_world w;
    begin_comments(&w, NULL);
    call(&w, "task.submit", "{\"prompt\":\"x\"}");
    started(&w, "task-0000");
    put_file(&w, "a", "1\ntwo\n3\n");
    CHECK(strstr(call(&w, "task.comment", ONE), "\"sessionId\":\"session-0000\",\"state\":\"queued\"") != NULL);
    end_comments(&w);
}

TEST(the_same_key_is_the_same_task) {
    static const char keyed[] =
        "{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"line\":2,\"text\":\"t\"}],\"_meta\":{\"weft/"
        "idempotencyKey\":\"k\"}}";
    comment_world w;
    begin_comments(&w, NULL);
    call(&w, "task.submit", "{\"prompt\":\"x\"}");
    started(&w, "task-0000");
    put_file(&w, "a", "1\ntwo\n3\n");
    CHECK(strstr(call(&w, "task.comment", keyed), "task-0001") != NULL);
    put_file(&w, "a", "1\n2\n3\n"); /* now the line is not in the diff any more */
    CHECK(strstr(call(&w, "task.comment", keyed), "\"taskId\":\"task-0001\"") != NULL);
    /* The service forgets the answer at some time; the engine still knows the key. */
    char text[512];
    snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"task.comment\",\"params\":%s}\n", keyed);
    CHECK(weft_peer_feed(w.client.peer, text, strlen(text), INT64_C(1) << 40) >= 0);
    CHECK(strstr(receive(&w), "\"id\":8,\"result\":{\"taskId\":\"task-0001\"") != NULL);
    CHECK(!weft__task_find(w.hub.engine, "task-0002"));
    end_comments(&w);
}

TEST(what_is_refused) {
    static const struct {
        const char *params, *says;
    } rows[] = {
        {"{\"taskId\":\"task-0009\",\"comments\":[{\"path\":\"a\",\"line\":2,\"text\":\"t\"}]}", "taskNotFound"},
        {"{\"taskId\":\"task-0000\",\"comments\":[]}", "there is no comment"},
        {"{\"taskId\":\"task-0000\",\"comments\":[7]}", "\"path\":\"/comments/0\""},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"text\":\"t\"},{\"path\":\"a\",\"lines\":2,\"text\":"
         "\"t\"}]"
         "}",
         "\"path\":\"/comments/1\""},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"\",\"line\":2,\"text\":\"t\"}]}", "/comments/0/path"},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\\u0000\",\"line\":2,\"text\":\"t\"}]}", "/comments/0/path"},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"line\":0,\"text\":\"t\"}]}", "/comments/0/line"},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"line\":2.5,\"text\":\"t\"}]}", "/comments/0/line"},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"line\":2,\"side\":\"left\",\"text\":\"t\"}]}",
         "/comments/0/side"},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"line\":2,\"text\":\"\"}]}", "/comments/0/text"},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"line\":2,\"text\":\"t\"}],\"context\":5000}",
         "/context"},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"line\":2,\"text\":\"t\"}],\"permission\":\"x\"}",
         "/permission"},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"line\":2,\"text\":\"t\"},{\"path\":\"a\",\"line\":4,"
         "\"text\":\"t\"}]}",
         "comment 1: line 4 (new) of a is not in the "
         "diff\",\"data\":{\"reason\":\"invalidParams\",\"path\":\"/comments/1\""},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"/etc/passwd\",\"line\":1,\"text\":\"t\"}]}",
         "is not in the diff"},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"../p/a\",\"text\":\"t\"}]}", "is not in the diff"},
        {"{\"taskId\":\"task-0000\",\"comments\":[{\"path\":\"a\",\"line\":1,\"text\":\"t\"}],\"context\":0}",
         "is not in the diff"},
    };
    comment_world w;
    begin_comments(&w, NULL);
    change_something(&w, true);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].params);
        CHECK(strstr(call(&w, "task.comment", rows[i].params), rows[i].says) != NULL);
    }
    test_row("not one of them became a task");
    CHECK(!weft__task_find(w.hub.engine, "task-0001"));
    test_row(NULL);
    end_comments(&w);
}

TEST(there_is_a_limit) {
    comment_world w;
    static char params[64 * 1024], text[80 * 1024];
    begin_comments(&w, NULL);
    change_something(&w, true);
    size_t n = (size_t) snprintf(params, sizeof params, "{\"taskId\":\"task-0000\",\"comments\":[");
    for (int i = 0; i <= 200; i++)
        n += (size_t) snprintf(params + n, sizeof params - n, "%s{\"path\":\"a\",\"text\":\"t\"}", i ? "," : "");
    snprintf(params + n, sizeof params - n, "]}");
    snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"task.comment\",\"params\":%s}", params);
    hub_say(&w.client, text);
    CHECK(strstr(receive(&w), "more than 200 comments") != NULL);
    end_comments(&w);
}

/* Requests that are open when their connection, or the hub, goes. */
TEST(still_open_at_the_end) {
    comment_world w;
    begin_comments(&w, NULL);
    change_something(&w, true);
    ask(&w, "task.comment", ONE);
    hub_disconnect(&w.client);
    hub_connect(&w.hub, "weft", &w.client);
    HUB_UNTIL(&w.hub, weft__task_find(w.hub.engine, "task-0001"));
    ask(&w, "task.comment", ONE);
    end_comments(&w);
}

/* Each allocation of the hub's fails once, from the moment of the request on. */
TEST(without_memory) {
    comment_world w;
    test_memory memory;
    bool answered = false;
    int failures = 0;
    test_memory_init(&memory, 0);
    begin_comments(&w, &memory.alloc);
    change_something(&w, true);
    for (long n = 1; !answered && n < 500; n++) {
        static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"task.comment\",\"params\":" ONE "}\n";
        memory.fail_at = memory.count + n;
        if (weft_peer_feed(w.client.peer, request, sizeof request - 1, 1) < 0) { /* a server ends such a connection */
            memory.fail_at = 0;
            hub_disconnect(&w.client);
            hub_connect(&w.hub, "weft", &w.client);
            continue;
        }
        const char *line = receive(&w);
        answered = strstr(line, "\"taskId\":\"task-") && memory.count < memory.fail_at;
        CHECK(strstr(line, "\"result\"") || strstr(line, "\"error\""));
        failures += !answered;
    }
    memory.fail_at = 0;
    CHECK(answered && failures > 5);
    end_comments(&w);
    CHECK_INT(memory.live, 0);
}

TEST_MAIN(CASE(it_goes_on_in_its_session) CASE(who_does_not_remember_is_told) CASE(a_closed_session_is_not_used)
              CASE(a_renamed_file) CASE(while_it_runs) CASE(the_same_key_is_the_same_task) CASE(what_is_refused)
                  CASE(there_is_a_limit) CASE(still_open_at_the_end) CASE(without_memory))

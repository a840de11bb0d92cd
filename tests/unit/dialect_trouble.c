/* Dialects when things go wrong below them, or are very large: a disk that is full, a daemon that is stopping, output that
 * does not fit into an answer. */
#include <unistd.h>

#include "hub_world.h"
#include "store/shim.h"

static char folder[64];

static void open_world(hub_world *w, const weft_limits *limits) {
    char path[96];
    snprintf(folder, sizeof folder, "/tmp/weft-trouble-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/weft.db", folder);
    shim_reset();
    hub_opts opts = {.kind = &weft__sqlite, .path = path, .vfs = "shim"};
    if (limits)
        opts.service = *limits;
    CHECK_INT(hub_init(w, &opts), 0);
}

static void close_world(hub_world *w) {
    shim_set(0, 0, 0);
    hub_done(w);
    test_remove(folder);
}

static weft_peer *connect_to(hub_world *w, const char *dialect) {
    weft_identity who = {
        .transport = "mem", .dialect = dialect, .name = "n", .scopes = "*", .address = "", .authenticated = true};
    weft_peer *peer = NULL;
    CHECK_INT(weft_peer_new(w->service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &peer), 0);
    weft__hub_clients_open(w->hub.clients, peer);
    return peer;
}

static void hang_up(hub_world *w, weft_peer *peer) {
    weft__hub_clients_close(w->hub.clients, peer);
    weft_peer_free(peer);
}

/* Say it and wait for a line. Owned. */
static char *ask(hub_world *w, weft_peer *peer, const char *method, const char *params) {
    char *line, *answer;
    int n = asprintf(&line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}\n", method, params);
    CHECK_INT(weft_peer_feed(peer, line, (size_t) n, 1), 0);
    free(line);
    HUB_UNTIL(w, memchr(weft_peer_output(peer).data, '\n', weft_peer_output(peer).len) != NULL);
    weft_bytes out = weft_peer_output(peer);
    answer = weft__strndup(NULL, out.data, out.len); /* what is behind the output is not ours to look at */
    weft_peer_sent(peer, out.len);
    weft_peer_tick(peer, 1);
    return answer;
}

#define ANSWERS(w, peer, method, params, part)                                                                              \
    do {                                                                                                                    \
        char *is_ = ask((w), (peer), (method), (params));                                                                   \
        if (!strstr(is_, part))                                                                                             \
            test_check_text(is_, strlen(is_), part, strlen(part), __FILE__, __LINE__, method);                              \
        free(is_);                                                                                                          \
    } while (0)

#define FULL "\"error\":{\"code\":507,\"message\":\"It could not be stored: "

#define BUSY                                                                                                                \
    "\"error\":{\"code\":503,\"message\":\"Too much is waiting to be stored: try again in a moment\",\"data\":{"            \
    "\"reason\":\"storeBusy\",\"retryAfterMs\":1000}"

/* It is not the queue of tasks that is full, and is not said to be. */
TEST(a_full_queue_of_the_store_is_called_so) {
    static const char *const methods[][2] = {{"task.submit", "prompt"}, {"chat.send", "message"}, {"agent/run", "prompt"}};
    hub_world w;
    char params[12000];
    CHECK_INT(hub_init(&w, &(hub_opts){.store_queue = 8000}), 0);
    weft_peer *a = connect_to(&w, "weft");
    for (size_t i = 0; i < 3; i++) {
        snprintf(params, sizeof params, "{\"%s\":\"%010000d\"}", methods[i][1], 0);
        ANSWERS(&w, a, methods[i][0], params, BUSY);
    }
    ANSWERS(&w, a, "task.submit", "{\"prompt\":\"x\"}", "\"state\":\"running\"");
    ANSWERS(&w, a, "daemon.status", "{}", "\"health\":\"healthy\"");
    hang_up(&w, a);
    hub_done(&w);
}

TEST(a_full_disk_is_said_and_gets_over) {
    hub_world w;
    open_world(&w, NULL);
    weft_peer *a = connect_to(&w, "weft");
    ANSWERS(&w, a, "daemon.status", "{}", "\"health\":\"healthy\"");
    shim_set(1, 0, SQLITE_FULL);
    ANSWERS(&w, a, "task.submit", "{\"prompt\":\"x\"}", FULL);
    ANSWERS(&w, a, "chat.send", "{\"message\":\"x\"}", FULL);
    ANSWERS(&w, a, "agent/run", "{\"prompt\":\"x\"}", FULL);
    ANSWERS(&w, a, "agent.use", "{\"agent\":\"double\"}", FULL);
    ANSWERS(&w, a, "daemon.status", "{}", "\"health\":\"degraded\"");
    ANSWERS(&w, a, "task.stats", "{}", "\"total\":0");
    shim_set(0, 0, 0);
    ANSWERS(&w, a, "task.submit", "{\"prompt\":\"x\"}", "\"state\":\"running\"");
    ANSWERS(&w, a, "daemon.status", "{}", "\"health\":\"healthy\"");
    ANSWERS(&w, a, "agent.list", "{}", "{\"default\":\"actor\"");
    hang_up(&w, a);
    close_world(&w);
}

TEST(automation_that_could_not_start) {
    hub_world w;
    open_world(&w, NULL);
    weft_peer *a = connect_to(&w, "weft");
    w.hub.automation_failed = -ENOMEM;
    ANSWERS(&w, a, "daemon.status", "{}", "\"health\":\"degraded\"");
    ANSWERS(&w, a, "automation.status", "{}", "\"code\":-32003,\"message\":\"Automation is not available: ");
    w.hub.automation_failed = 0;
    ANSWERS(&w, a, "daemon.status", "{}", "\"health\":\"healthy\"");
    hang_up(&w, a);
    close_world(&w);
}

static void on_stopped(void *ctx) {
    *(bool *) ctx = true;
}

TEST(a_stopping_engine_takes_nothing_new) {
    hub_world w;
    bool stopped = false;
    open_world(&w, NULL);
    weft_peer *a = connect_to(&w, "weft");
    ANSWERS(&w, a, "task.submit", "{\"prompt\":\"x\"}", "\"state\":\"running\"");
    weft__engine_stop(w.engine, false, on_stopped, &stopped);
    static const char refusal[] =
        "\"error\":{\"code\":503,\"message\":\"The daemon is stopping\",\"data\":{\"reason\":\"shuttingDown\"}}";
    ANSWERS(&w, a, "task.submit", "{\"prompt\":\"x\"}", refusal);
    ANSWERS(&w, a, "chat.send", "{\"message\":\"x\"}", refusal);
    ANSWERS(&w, a, "agent/run", "{\"prompt\":\"x\"}", refusal);
    ANSWERS(&w, a, "task.get", "{\"taskId\":\"task-0000\"}", "\"state\":\"running\"");
    hub_settle(&w);
    hub_end(hub_run(&w, "task-0000"), &(weft_run_end){.ok = true});
    HUB_UNTIL(&w, stopped);
    hang_up(&w, a);
    close_world(&w);
}

/* ---- much output ---- */

static void say_much(hub_world *w, size_t bytes, char with) {
    char text[4096];
    memset(text, with, sizeof text);
    text[sizeof text - 1] = '\n';
    weft_run *run = hub_run(w, "task-0000");
    REQUIRE(run != NULL);
    for (size_t said = 0; said < bytes; said += sizeof text) {
        HUB_UNTIL(w, !run->paused);
        run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){text, sizeof text});
    }
}

static void talk(hub_world *w, size_t bytes, char with) {
    say_much(w, bytes, with);
    hub_end(hub_run(w, "task-0000"), &(weft_run_end){.ok = true});
    HUB_UNTIL(w, weft__task_find(w->engine, "task-0000")->state == WEFT_TASK_COMPLETED);
}

/* How long a member's string is as it is written; -1: there is none. */
static long length_of(const char *answer, const char *member) {
    char name[32];
    snprintf(name, sizeof name, "\"%s\":\"", member);
    const char *at = strstr(answer, name);
    return at ? (long) strcspn(at + strlen(name), "\"") : -1;
}

TEST(all_of_the_output_is_shown_and_its_end_in_a_list) {
    hub_world w;
    open_world(&w, NULL);
    weft_peer *a = connect_to(&w, "weft");
    ANSWERS(&w, a, "task.submit", "{\"prompt\":\"talk\"}", "\"state\":\"running\"");
    talk(&w, 1 << 20, 'x');
    char *answer = ask(&w, a, "task.get", "{\"taskId\":\"task-0000\"}");
    CHECK_INT(length_of(answer, "output"), (1 << 20) + 256); /* a line's end is two characters */
    CHECK_INT(length_of(answer, "result"), (1 << 20) + 256);
    CHECK(!strstr(answer, "outputTruncated"));
    free(answer);
    answer = ask(&w, a, "task.list", "{}");
    CHECK_INT(length_of(answer, "output"), WEFT_TASK_TAIL + 4);
    CHECK(strstr(answer, "\"outputTruncated\":true}") != NULL);
    free(answer);
    answer = ask(&w, a, "task.list", "{\"limit\":1000}");
    CHECK(length_of(answer, "output") > 1000 && length_of(answer, "output") < 2000);
    free(answer);
    hang_up(&w, a);
    close_world(&w);
}

/* It is said twice, as output and as result: what does not fit is cut at its beginning. */
TEST(output_is_cut_to_what_an_answer_may_hold) {
    hub_world w;
    open_world(&w, &(weft_limits){.max_answer = 1 << 18});
    weft_peer *a = connect_to(&w, "weft");
    ANSWERS(&w, a, "task.submit", "{\"prompt\":\"talk\"}", "\"state\":\"running\"");
    talk(&w, 1 << 18, '\x01'); /* six characters each in JSON */
    char *answer = ask(&w, a, "task.get", "{\"taskId\":\"task-0000\"}");
    CHECK(length_of(answer, "output") > 75000);
    CHECK_INT(length_of(answer, "output"), length_of(answer, "result"));
    CHECK(strlen(answer) < 1 << 18);
    CHECK(strstr(answer, "\"outputTruncated\":true}") != NULL);
    free(answer);
    hang_up(&w, a);
    close_world(&w);
}

/* The task ends while its output is being read: the answer is of one moment. */
TEST(state_and_output_are_of_one_moment) {
    static const char get[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.get\",\"params\":[\"task-0000\"]}\n";
    hub_world w;
    open_world(&w, NULL);
    weft_peer *a = connect_to(&w, "weft");
    ANSWERS(&w, a, "task.submit", "{\"prompt\":\"talk\"}", "\"state\":\"running\"");
    say_much(&w, 1 << 20, 'x');
    HUB_UNTIL(&w, weft__task_find(w.engine, "task-0000")->output_bytes == 1 << 20);
    CHECK_INT(weft_peer_feed(a, get, sizeof get - 1, 1), 0);
    weft_run *run = hub_run(&w, "task-0000");
    run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){"last words", 10});
    hub_end(run, &(weft_run_end){.ok = true});
    HUB_UNTIL(&w, memchr(weft_peer_output(a).data, '\n', weft_peer_output(a).len) != NULL);
    weft_bytes out = weft_peer_output(a);
    char *answer = weft__strndup(NULL, out.data, out.len);
    weft_peer_sent(a, out.len);
    weft_peer_tick(a, 1);
    bool completed = strstr(answer, "\"state\":\"completed\"") != NULL;
    CHECK((strstr(answer, "last words") != NULL) == completed);
    CHECK(!strstr(answer, "outputTruncated") || !completed);
    free(answer);
    hang_up(&w, a);
    close_world(&w);
}

/* A line that was cut by the driver is missing in what is kept: that is said, also after a restart and in the notification.
 */
TEST(a_cut_line_is_flagged) {
    hub_world w;
    open_world(&w, NULL);
    weft_peer *a = connect_to(&w, "weft"), *b = connect_to(&w, "aiwg");
    ANSWERS(&w, a, "task.submit", "{\"prompt\":\"talk\"}", "\"state\":\"running\"");
    weft_run *run = hub_run(&w, "task-0000");
    run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){"short\n", 6});
    hub_end(run, &(weft_run_end){.ok = true, .cut = true});
    HUB_UNTIL(&w, weft__task_find(w.engine, "task-0000")->state == WEFT_TASK_COMPLETED);
    ANSWERS(&w, a, "task.get", "{\"taskId\":\"task-0000\"}", "\"outputTruncated\":true}");
    ANSWERS(&w, a, "task.list", "{}", "\"outputTruncated\":true}");
    hub_settle(&w);
    weft_bytes out = weft_peer_output(b);
    CHECK(memmem(out.data, out.len, "\"resultTruncated\":true", 22) != NULL);
    hang_up(&w, a);
    hang_up(&w, b);
    close_world(&w);
}

TEST(a_result_that_is_longer_than_its_notification_is_flagged) {
    hub_world w;
    open_world(&w, NULL);
    weft_peer *a = connect_to(&w, "weft"), *b = connect_to(&w, "aiwg");
    ANSWERS(&w, a, "task.submit", "{\"prompt\":\"talk\"}", "\"state\":\"running\"");
    talk(&w, 1 << 15, 'x');
    hub_settle(&w);
    weft_bytes out = weft_peer_output(b);
    CHECK(memmem(out.data, out.len, "\"resultTruncated\":true", 22) != NULL);
    ANSWERS(&w, a, "task.get", "{\"taskId\":\"task-0000\"}", "\"metadata\":{}}");
    hang_up(&w, a);
    hang_up(&w, b);
    close_world(&w);
}

/* Line after line in one event: more than a connection's queue would hold if each were told on its own. */
TEST(many_short_lines_do_not_end_a_connection) {
    hub_world w;
    static char text[60000];
    size_t lines = 0;
    open_world(&w, &(weft_limits){.out_soft = 16 << 20, .out_hard = 1 << 20});
    weft_peer *a = connect_to(&w, "cdev");
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent/run\",\"params\":{\"prompt\":\"x\"}}\n";
    CHECK_INT(weft_peer_feed(a, request, strlen(request), 1), 0);
    HUB_UNTIL(&w, hub_run(&w, "task-0000"));
    weft_run *run = hub_run(&w, "task-0000");
    run->host->on_process(run->ctx, 1);
    HUB_UNTIL(&w, memmem(weft_peer_output(a).data, weft_peer_output(a).len, "\"running\"", 9));
    weft_peer_sent(a, weft_peer_output(a).len);
    weft_peer_tick(a, 1);
    memset(text, '\n', sizeof text);
    run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){text, sizeof text});
    hub_end(run, &(weft_run_end){.ok = true});
    HUB_UNTIL(&w, memmem(weft_peer_output(a).data, weft_peer_output(a).len, "\"idle\"", 6));
    weft_bytes out = weft_peer_output(a);
    for (const char *at = out.data; (at = memmem(at, (size_t) (out.data + out.len - at), "claude_log", 10)); at++)
        lines++;
    for (const char *at = out.data; (at = memmem(at, (size_t) (out.data + out.len - at), "\\n", 2)); at++)
        lines++;
    CHECK_INT(lines, sizeof text);
    hang_up(&w, a);
    close_world(&w);
}

TEST_MAIN(CASE(a_full_disk_is_said_and_gets_over) CASE(a_full_queue_of_the_store_is_called_so)
              CASE(automation_that_could_not_start) CASE(a_stopping_engine_takes_nothing_new)
                  CASE(all_of_the_output_is_shown_and_its_end_in_a_list) CASE(output_is_cut_to_what_an_answer_may_hold)
                      CASE(state_and_output_are_of_one_moment) CASE(a_cut_line_is_flagged)
                          CASE(a_result_that_is_longer_than_its_notification_is_flagged)
                              CASE(many_short_lines_do_not_end_a_connection))

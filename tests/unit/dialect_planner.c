/* Streams of execute_task to a caller that does not read: nothing is kept for it beyond the limit of its connection, and
 * what it reads later is whole. The rest of the dialect is in tests/scenes/hub/planner.scene. */
#include "hub_client.h"

#define SOFT ((size_t) 64 * 1024)
/* What may be queued: up to the limit, and the chunk that went over it, escaped. */
#define MOST (SOFT + 40 * 1024)
#define LINES 40000

typedef struct planner_world {
    hub_world hub;
    hub_client caller;
    char *told; /* the chunks, one behind the other */
    size_t told_len;
    int64_t sequence;
    char *answer;
} planner_world;

static const char request[] =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"execute_task\",\"params\":{\"task_type\":\"testing\",\"prompt\":\"x\","
    "\"options\":{\"stream\":true},\"_meta\":{\"weft/idempotencyKey\":\"k\"}}}";

static void planner_open(planner_world *w) {
    *w = (planner_world){0};
    hub_opts opts = {.service.out_soft = SOFT, .limits.retry_ms = 1};
    CHECK_INT(hub_init(&w->hub, &opts), 0);
    hub_connect(&w->hub, "planner", &w->caller);
}

static void planner_close(planner_world *w) {
    hub_disconnect(&w->caller);
    hub_done(&w->hub);
    free(w->told);
    free(w->answer);
}

static size_t queued(const planner_world *w) {
    return weft_peer_output(w->caller.peer).len;
}

static weft_run *planner_run(planner_world *w) {
    HUB_UNTIL(&w->hub, hub_run(&w->hub, "task-0000"));
    return hub_run(&w->hub, "task-0000");
}

/* "line 0\n", "line 1\n", ... */
static void say_lines(planner_world *w, weft_run *run, int from, int to) {
    char line[32];
    for (int i = from; i < to; i++) {
        int n = snprintf(line, sizeof line, "line %d\n", i);
        run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){line, (size_t) n});
        if (i % 500 == 0)
            hub_turn(&w->hub, 0);
    }
    hub_settle(&w->hub);
}

static char *expected_lines(int to) {
    char *text = malloc((size_t) to * 16 + 1), *at = text;
    *at = '\0';
    for (int i = 0; i < to; i++)
        at += snprintf(at, 16, "line %d\n", i);
    return text;
}

/* Read until the answer is there. */
static void read_all(planner_world *w) {
    while (!w->answer && w->caller.peer) {
        const char *line = hub_wait(&w->caller);
        weft_doc *doc = NULL;
        if (!CHECK(weft_doc_parse(line, strlen(line), NULL, &doc) >= 0))
            return;
        const weft_json *message = weft_doc_root(doc);
        weft_json chunk = weft_pointer(message, "/params/chunk"), sequence = weft_pointer(message, "/params/sequence"),
                  total = weft_pointer(message, "/params/total_chunks");
        if (chunk.text) {
            const char *text = weft_str_of(&chunk, "");
            CHECK_INT(weft_int_of(&sequence, -1), ++w->sequence);
            w->told = realloc(w->told, w->told_len + strlen(text) + 1);
            memcpy(w->told + w->told_len, text, strlen(text) + 1);
            w->told_len += strlen(text);
        } else if (total.text)
            CHECK_INT(weft_int_of(&total, -1), w->sequence);
        else if (!weft_get(message, "method").text)
            w->answer = weft__strndup(NULL, line, strlen(line));
        weft_doc_free(doc);
    }
}

static void check_whole(planner_world *w, int to) {
    char *want = expected_lines(to);
    weft_doc *doc = NULL;
    CHECK(w->told && strcmp(w->told, want) == 0);
    if (CHECK(w->answer && weft_doc_parse(w->answer, strlen(w->answer), NULL, &doc) >= 0)) {
        weft_json code = weft_pointer(weft_doc_root(doc), "/result/output/code");
        CHECK(strcmp(weft_str_of(&code, ""), want) == 0);
    }
    weft_doc_free(doc);
    free(want);
}

static const weft_run_end fails = {.retryable = true, .reason = "exited", .error = "it died", .exit_code = 1};
static const weft_run_end ends = {.ok = true};

TEST(slow_caller) {
    planner_world w;
    planner_open(&w);
    hub_say(&w.caller, request);
    weft_run *run = planner_run(&w);
    for (int i = 0; i < LINES; i += LINES / 10) {
        say_lines(&w, run, i, i + LINES / 10);
        CHECK(queued(&w) <= MOST);
    }
    CHECK(weft_peer_full(w.caller.peer));
    hub_end(run, &ends);
    hub_settle(&w.hub);
    CHECK(queued(&w) <= MOST);
    read_all(&w);
    check_whole(&w, LINES);
    planner_close(&w);
}

/* It has read some of the first attempt, and is behind when the second one begins. */
TEST(slow_caller_and_failover) {
    planner_world w;
    planner_open(&w);
    hub_say(&w.caller, request);
    weft_run *run = planner_run(&w);
    say_lines(&w, run, 0, LINES / 2);
    CHECK(weft_peer_full(w.caller.peer));
    hub_end(run, &fails);
    run = planner_run(&w);
    say_lines(&w, run, 0, LINES);
    CHECK(queued(&w) <= MOST);
    hub_end(run, &ends);
    read_all(&w);
    check_whole(&w, LINES);
    planner_close(&w);
}

/* All of the first attempt was told when the second one begins, which says it in other pieces. */
TEST(caller_keeps_up_and_failover) {
    planner_world w;
    planner_open(&w);
    hub_say(&w.caller, request);
    weft_run *run = planner_run(&w);
    for (int i = 0; i < 3; i++)
        say_lines(&w, run, i * 7, i * 7 + 7);
    hub_end(run, &fails);
    run = planner_run(&w);
    for (int i = 0; i < 10; i++)
        say_lines(&w, run, i * 5, i * 5 + 5);
    hub_end(run, &ends);
    read_all(&w);
    check_whole(&w, 50);
    planner_close(&w);
}

/* With its key, a caller that was cut off comes back for the same answer; it has no stream then. */
TEST(caller_comes_back) {
    planner_world w;
    planner_open(&w);
    hub_say(&w.caller, request);
    weft_run *run = planner_run(&w);
    say_lines(&w, run, 0, 1000);
    hub_disconnect(&w.caller);
    say_lines(&w, run, 1000, 2000);
    hub_connect(&w.hub, "planner", &w.caller);
    hub_say(&w.caller, request);
    hub_settle(&w.hub);
    say_lines(&w, run, 2000, 3000);
    hub_end(run, &ends);
    read_all(&w);
    CHECK(!w.told);
    w.told = expected_lines(3000); /* what was told does not matter */
    check_whole(&w, 3000);
    CHECK_INT(w.hub.heard_count, 0); /* it was not cancelled */
    planner_close(&w);
}

/* A caller that goes while it is behind. */
TEST(slow_caller_goes) {
    planner_world w;
    planner_open(&w);
    hub_say(&w.caller, request);
    weft_run *run = planner_run(&w);
    say_lines(&w, run, 0, LINES);
    hub_take(&w.caller);
    hub_disconnect(&w.caller);
    hub_end(run, &ends);
    hub_settle(&w.hub);
    planner_close(&w);
}

TEST_MAIN(CASE(slow_caller) CASE(slow_caller_and_failover) CASE(caller_keeps_up_and_failover) CASE(caller_comes_back)
              CASE(slow_caller_goes))

/* What runners say to the hub, above the codec: two machines that say hello and deliver anything at any moment, also of
 * leases that they do not have.
 *
 * Steps end with a line end: "h" or "H" and the params of a hello of the one or the other machine, "d" or "D" and those of a
 * delivery, "x" or "X" and any line, "s" a task for the runner "box", "l" one for the label "gpu", "c" the last task is
 * cancelled, "g" or "G" the machine goes and comes again. What must hold: nothing crashes, all that the hub says is lines of
 * JSON, a task has one end, and nothing is left allocated. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_memory.h"
#include "hub_client.h"

#define MAX_STEPS 60

/* The checks of the hub in a box. */
bool test_check(bool ok, const char *file, int line, const char *what) {
    (void) file, (void) line, (void) what;
    require(ok);
    return ok;
}

bool test_check_int(int64_t is, int64_t want, const char *file, int line, const char *what) {
    return test_check(is == want, file, line, what);
}

bool test_check_text(const char *is, size_t is_len, const char *want, size_t want_len, const char *file, int line,
                     const char *what) {
    return test_check(is && is_len == want_len && memcmp(is, want, want_len) == 0, file, line, what);
}

/* ---- the machines ---- */

static void read_machine(hub_client *m) {
    for (const char *line; (line = hub_take(m));) {
        weft_doc *doc = NULL;
        require(weft_doc_parse(line, strlen(line), NULL, &doc) == 0);
        weft_doc_free(doc);
    }
}

static void say(hub_client *m, const char *text, size_t len) {
    if (m->peer && weft_peer_feed(m->peer, text, len, 1) < 0)
        hub_disconnect(m);
}

static void call(hub_client *m, const char *method, const char *params, size_t len) {
    char begin[96];
    int n = snprintf(begin, sizeof begin, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":", method);
    say(m, begin, (size_t) n);
    say(m, params, len);
    say(m, "}\n", 2);
}

/* ---- tasks ---- */

/* How each task ended, as the events say. */
static struct {
    weft_event_listener listener;
    unsigned ends[MAX_STEPS + 1];
} ends;

static void on_event(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    static const char *const types[] = {"task.completed", "task.failed", "task.cancelled"};
    const char *digits = strrchr(weft_get_str(data, "taskId", ""), '-');
    unsigned long number = digits ? strtoul(digits + 1, NULL, 10) : 0;
    (void) listener;
    for (size_t i = 0; i < 3; i++)
        if (strcmp(event->type, types[i]) == 0)
            require(number <= MAX_STEPS && ++ends.ends[number] == 1);
}

static void ignore_task(void *ctx, int r, const weft_task *task) {
    (void) ctx, (void) r, (void) task;
}

static void submit(hub_world *w, bool label) {
    weft_task_spec spec = {.prompt = "x", .retries = 1};
    spec.runner = label ? NULL : "box";
    spec.label = label ? "gpu" : NULL;
    (void) weft__task_submit(w->engine, &spec, ignore_task, NULL);
}

static void cancel_last(const hub_world *w) {
    const weft_task *last = weft__task_newest(w->engine);
    if (last)
        (void) weft__task_cancel(w->engine, last->id, "fuzz", NULL, NULL);
}

/* ---- steps ---- */

static void take_step(hub_world *w, hub_client machines[2], const char *text, size_t len) {
    char what = len ? *text++ : ' ';
    hub_client *m = &machines[what >= 'A' && what <= 'Z'];
    len -= len > 0;
    switch (what | 0x20) {
    case 'h':
        call(m, "runner.hello", text, len);
        break;
    case 'd':
        call(m, "runner.deliver", text, len);
        break;
    case 'x':
        say(m, text, len);
        say(m, "\n", 1);
        break;
    case 's':
    case 'l':
        submit(w, what == 'l');
        break;
    case 'c':
        cancel_last(w);
        break;
    case 'g':
        hub_disconnect(m);
        hub_connect(w, "weft", m);
        break;
    default:
        break;
    }
    hub_settle(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hub_world w;
    hub_client machines[2];
    const char *at = (const char *) data, *end = at + size;
    live = 0;
    memset(&ends, 0, sizeof ends);
    require(hub_init(&w, &(hub_opts){.alloc = &counting}) == 0);
    ends.listener.on_event = on_event;
    weft__engine_listen(w.engine, &ends.listener);
    hub_connect(&w, "weft", &machines[0]);
    hub_connect(&w, "weft", &machines[1]);
    for (int steps = 0; at < end && steps < MAX_STEPS; steps++) {
        const char *stop = memchr(at, '\n', (size_t) (end - at));
        size_t len = (size_t) ((stop ? stop : end) - at);
        take_step(&w, machines, at, len);
        read_machine(&machines[0]);
        read_machine(&machines[1]);
        at += len + 1;
    }
    hub_disconnect(&machines[0]);
    hub_disconnect(&machines[1]);
    weft__engine_unlisten(&ends.listener);
    hub_done(&w);
    require(live == 0);
    return 0;
}

/* Tasks on other machines: leases and their fence, what is told twice, late, or by the wrong one, and what a start finds of
 * them. The runner is a peer whose messages the test reads and writes itself. */
#include "engine/world.h"
#include "engine_private.h"
#include "runners.h"

static const char *const writer[] = {"writer", NULL}, *const any[] = {"*", NULL}, *const labels[] = {"gpu", "linux", NULL};
static const char *const other_folder[] = {"elsewhere", NULL};
static const weft_runner_spec box_spec = {
    .name = "box", .instance = "i1", .agents = writer, .labels = labels, .folders = any, .slots = 2};

static const weft_task_spec on_box = {.prompt = "x", .runner = "box", .agent = "writer"};

typedef struct machine {
    weft_runner *runner;
    weft_peer *peer;
} machine;

static int come(engine_world *w, const weft_runner_spec *spec, const char *known, machine *ret) {
    weft_doc *doc = NULL;
    *ret = (machine){0};
    int r = weft__runner_join(w->engine, spec, &ret->runner);
    if (r < 0)
        return r;
    CHECK_INT(weft_peer_new(NULL, &(weft_peer_opts){.framing = &weft_ndjson}, &ret->peer), 0);
    CHECK_INT(weft_doc_parse(known, strlen(known), NULL, &doc), 0);
    weft__runner_up(ret->runner, ret->peer, weft_doc_root(doc));
    weft_doc_free(doc);
    return 0;
}

static void go_away(machine *m) {
    weft__runner_left(m->runner, m->peer);
    m->peer = weft_peer_free(m->peer);
}

/* Was this sent since it was asked last? */
static bool was_sent(machine *m, const char *text) {
    weft_bytes out = weft_peer_output(m->peer);
    bool found = memmem(out.data, out.len, text, strlen(text)) != NULL;
    weft_peer_sent(m->peer, out.len);
    return found;
}

static weft_lease_state tell(machine *m, uint64_t lease, const char *task, const char *events) {
    weft_doc *doc = NULL;
    int r = 0;
    CHECK_INT(weft_doc_parse(events, strlen(events), NULL, &doc), 0);
    weft_lease_state state = weft__runner_hear(m->runner, lease, task, weft_doc_root(doc), NULL, NULL, &r);
    weft_doc_free(doc);
    return state;
}

#define SAYS(seq, text)                                                                                                     \
    "{\"seq\":" #seq ",\"type\":\"session.output\",\"data\":{\"stream\":\"stdout\",\"text\":\"" text "\"}}"
#define ENDS(seq) "{\"seq\":" #seq ",\"type\":\"task.completed\",\"data\":{\"exitCode\":0}}"

static uint64_t started_at; /* the gseq of the last task.started, which is the lease */
static void note_start(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    (void) listener, (void) data;
    if (strcmp(event->type, "task.started") == 0)
        started_at = event->gseq;
}

static bool says(const engine_world *w, const task_outcome *t, const char *text) {
    const weft_task *task = weft__task_find(w->engine, t->id);
    return task && task->tail.len == strlen(text) && memcmp(task->tail.data, text, task->tail.len) == 0;
}

static weft_event_listener starts = {.on_event = note_start};
static void open_with_runners(engine_world *w, const weft_store_kind *kind, int64_t lease_ms) {
    engine_open(w, kind);
    w->opts.limits.lease_ms = lease_ms;
    w->opts.limits.retry_ms = 1;
    CHECK_INT(world_start(w), 0);
    weft__list_init(&starts.link);
    weft__engine_listen(w->engine, &starts);
}

TEST(each_event_counts_once) {
    engine_world w;
    task_outcome t;
    machine box;
    open_with_runners(&w, &weft__memory, 60000);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK_INT(submit_spec(&w, &on_box, &t), 0);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_RUNNING);
    CHECK_STR(weft__task_find(w.engine, t.id)->runs_on, "writer@box");
    CHECK(was_sent(&box, "\"runner.start\""));
    CHECK_INT(tell(&box, started_at, t.id, "[" SAYS(5, "a") "," SAYS(6, "b") "]"), WEFT_LEASE_HELD);
    CHECK_INT(tell(&box, started_at, t.id, "[" SAYS(6, "B") "," SAYS(5, "A") "," SAYS(7, "c") "]"), WEFT_LEASE_HELD);
    ENGINE_UNTIL(&w, says(&w, &t, "abc"));
    ENGINE_UNTIL(&w, strstr(w.heard, "runner.kept") != NULL);
    engine_settle(&w);
    CHECK(was_sent(&box, "\"at\":7"));
    CHECK_INT(tell(&box, started_at, t.id, "[" SAYS(8, "d") "," ENDS(9) "," SAYS(10, "e") "]"), WEFT_LEASE_HELD);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    CHECK(says(&w, &t, "abcd"));
    CHECK(was_sent(&box, "\"runner.released\""));
    CHECK_INT(tell(&box, started_at, t.id, "[" ENDS(9) "]"), WEFT_LEASE_DONE);
    go_away(&box);
    engine_end(&w);
}

TEST(the_fence) {
    engine_world w;
    task_outcome t;
    machine box, rig;
    weft_runner_spec spec = box_spec;
    open_with_runners(&w, &weft__memory, 60000);
    spec.name = "rig";
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK_INT(come(&w, &spec, "[]", &rig), 0);
    CHECK_INT(submit_spec(&w, &on_box, &t), 0);
    CHECK_INT(tell(&rig, started_at, t.id, "[" ENDS(9) "]"), WEFT_LEASE_GONE);
    CHECK_INT(tell(&box, started_at + 1, t.id, "[" ENDS(9) "]"), WEFT_LEASE_GONE);
    CHECK_INT(tell(&box, started_at - 1, t.id, "[" ENDS(9) "]"), WEFT_LEASE_GONE);
    CHECK_INT(tell(&box, started_at, "task-0099", "[" ENDS(9) "]"), WEFT_LEASE_GONE);
    engine_settle(&w);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_RUNNING);
    CHECK(strstr(w.heard, "runner.late") == NULL);
    go_away(&box);
    go_away(&rig);
    engine_end(&w);
}

TEST(what_is_late_changes_nothing) {
    engine_world w;
    task_outcome t;
    machine box;
    weft_task_spec spec = on_box;
    spec.retries = 1;
    open_with_runners(&w, &weft__memory, 1);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK_INT(submit_spec(&w, &spec, &t), 0);
    uint64_t first = started_at;
    CHECK_INT(tell(&box, first, t.id, "[" SAYS(5, "a") "]"), WEFT_LEASE_HELD);
    go_away(&box);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_QUEUED);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    weft__runner_up(box.runner, box.peer, &(weft_json){0}); /* said twice is no news */
    ENGINE_UNTIL(&w, started_at > first);
    engine_settle(&w);
    CHECK(strstr(strstr(w.heard, "runner.left"), "runner.joined runner.joined") == NULL);
    CHECK_INT(tell(&box, first, t.id, "[" SAYS(6, "late") "," ENDS(7) "]"), WEFT_LEASE_OVER);
    ENGINE_UNTIL(&w, strstr(w.heard, "runner.late runner.late") != NULL);
    world_forget(&w);
    CHECK_INT(tell(&box, first, t.id, "[" SAYS(6, "late") "," ENDS(7) "]"), WEFT_LEASE_OVER);
    engine_settle(&w);
    CHECK(strstr(w.heard, "runner.late") == NULL);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_RUNNING);
    CHECK_INT(tell(&box, started_at, t.id, "[" SAYS(8, "b") "," ENDS(9) "]"), WEFT_LEASE_HELD);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    CHECK(says(&w, &t, "b"));
    go_away(&box);
    engine_end(&w);
}

TEST(late_events_have_a_limit) {
    engine_world w;
    task_outcome t;
    machine box;
    char event[200];
    open_with_runners(&w, &weft__memory, 1);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK_INT(submit_spec(&w, &on_box, &t), 0);
    go_away(&box);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, t.id)->reason, "leaseOver");
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    engine_settle(&w);
    uint64_t before = weft__store_head(w.store.store);
    for (unsigned i = 1; i <= WEFT_RUNNER_LATE + 50; i++) {
        snprintf(event, sizeof event, "[{\"seq\":%u,\"type\":\"session.output\",\"data\":{}}]", i);
        CHECK_INT(tell(&box, started_at, t.id, event), WEFT_LEASE_OVER);
        if (i % 100 == 0)
            engine_settle(&w);
    }
    engine_settle(&w);
    CHECK_INT(weft__store_head(w.store.store) - before, WEFT_RUNNER_LATE);
    go_away(&box);
    engine_end(&w);
}

/* What could not be stored is told again, and is kept then. */
TEST(late_on_a_full_disk) {
    engine_world w;
    task_outcome t;
    machine box;
    open_with_runners(&w, play_store(), 1);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK_INT(submit_spec(&w, &on_box, &t), 0);
    go_away(&box);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    engine_settle(&w);
    world_forget(&w);
    play_store_fails = -ENOSPC;
    tell(&box, started_at, t.id, "[" SAYS(5, "a") "," SAYS(6, "b") "]");
    engine_settle(&w);
    play_store_fails = 0;
    engine_settle(&w);
    CHECK(strstr(w.heard, "runner.late") == NULL);
    CHECK_INT(tell(&box, started_at, t.id, "[" SAYS(5, "a") "," SAYS(6, "b") "]"), WEFT_LEASE_OVER);
    ENGINE_UNTIL(&w, strstr(w.heard, "runner.late runner.late") != NULL);
    go_away(&box);
    engine_end(&w);
}

/* The hub dies; it has what was acknowledged, and what was not is told again. */
TEST(taken_up_after_a_restart) {
    engine_world w;
    task_outcome t;
    machine box;
    char known[200];
    open_with_runners(&w, &weft__sqlite, 60000);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK_INT(submit_spec(&w, &on_box, &t), 0);
    uint64_t lease = started_at, at = 0;
    CHECK_INT(tell(&box, lease, t.id, "[" SAYS(5, "a") "," SAYS(6, "b") "]"), WEFT_LEASE_HELD);
    ENGINE_UNTIL(&w, says(&w, &t, "ab") && strstr(w.heard, "runner.kept"));
    go_away(&box);
    engine_restart(&w);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_RUNNING);
    CHECK(weft__task_find(w.engine, t.id)->runner != NULL);
    snprintf(known, sizeof known, "[{\"lease\":%llu,\"taskId\":\"%s\",\"questions\":[]}]", (unsigned long long) lease, t.id);
    CHECK_INT(weft__runner_join(w.engine, &box_spec, &box.runner), 0);
    CHECK_INT(weft__runner_lease(box.runner, lease, t.id, &at), WEFT_LEASE_HELD);
    CHECK_INT(at, 6);
    CHECK_INT(come(&w, &box_spec, known, &box), 0);
    CHECK(!was_sent(&box, "runner.start"));
    CHECK_INT(tell(&box, lease, t.id, "[" SAYS(6, "b") "," SAYS(7, "c") "," ENDS(8) "]"), WEFT_LEASE_HELD);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_COMPLETED);
    CHECK(says(&w, &t, "abc"));
    CHECK_INT(weft__task_find(w.engine, t.id)->attempt, 1);
    go_away(&box);
    engine_end(&w);
}

/* Who was here may come back: tasks wait for it, and say so. */
static void known_after_a_restart(const weft_store_kind *kind, bool saved) {
    engine_world w;
    task_outcome t, u;
    machine box;
    char why[WEFT_RUNNER_WAITS];
    open_with_runners(&w, kind, 60000);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    ENGINE_UNTIL(&w, strstr(w.heard, "runner.known") && strstr(w.heard, "runner.joined"));
    go_away(&box);
    ENGINE_UNTIL(&w, strstr(w.heard, "runner.left") != NULL);
    if (saved) { /* what it knows, and a start does not read what came before that */
        weft__save(w.engine);
        ENGINE_UNTIL(&w, w.engine->saved_gseq > 1);
    }
    engine_restart(&w);
    CHECK_INT(submit_spec(&w, &on_box, &t), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .label = "gpu"}, &u), 0);
    CHECK_INT(state_of(&w, t.id), WEFT_TASK_QUEUED);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .label = "none"}, &u), -ENODEV);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .runner = "rig"}, &u), -ENODEV);
    CHECK_STR(weft__runner_waits(w.engine, t.id, why), "box was not here since the hub was started");
    world_forget(&w);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_RUNNING);
    CHECK(weft__runner_waits(w.engine, t.id, why) == NULL);
    CHECK(strstr(w.heard, "runner.joined") && !strstr(w.heard, "runner.known")); /* it offers what it did */
    go_away(&box);
    engine_end(&w);
}

TEST(known_runners_are_waited_for) {
    known_after_a_restart(&weft__sqlite, true);
    known_after_a_restart(&weft__sqlite, false);
}

static int late_events(const engine_world *w) {
    int n = 0;
    for (const char *at = w->heard; (at = strstr(at, "runner.late")); at++)
        n++;
    return n;
}

/* An attempt before the last one, of which only the journal knows. */
TEST(late_after_a_restart) {
    engine_world w;
    task_outcome t;
    machine box, rig;
    weft_task_spec spec = on_box;
    weft_runner_spec other = box_spec;
    spec.retries = 2;
    other.name = "rig";
    open_with_runners(&w, &weft__sqlite, 1);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK_INT(submit_spec(&w, &spec, &t), 0);
    uint64_t first = started_at;
    CHECK_INT(tell(&box, first, t.id, "[" SAYS(5, "a") "]"), WEFT_LEASE_HELD);
    go_away(&box);
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_QUEUED);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    ENGINE_UNTIL(&w, started_at > first);
    go_away(&box);
    w.opts.limits.lease_ms = 60000;
    engine_restart(&w);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK_INT(come(&w, &other, "[]", &rig), 0);
    CHECK_INT(tell(&rig, first, t.id, "[" SAYS(6, "another's") "]"), WEFT_LEASE_OVER); /* it is looked up */
    CHECK_INT(tell(&box, first - 1, t.id, "[" SAYS(6, "no lease") "]"),
              first - 1 > weft__task_find(w.engine, t.id)->gseq ? WEFT_LEASE_OVER : WEFT_LEASE_GONE);
    CHECK_INT(tell(&box, first, t.id, "[" SAYS(6, "late") "," ENDS(7) "]"), WEFT_LEASE_OVER);
    ENGINE_UNTIL(&w, strstr(w.heard, "runner.late runner.late") != NULL);
    CHECK_INT(late_events(&w), 2); /* nothing of another's, nor of what was no lease */
    CHECK_INT(tell(&box, first, t.id, "[" ENDS(7) "]"), WEFT_LEASE_OVER);
    CHECK(state_of(&w, t.id) < WEFT_TASK_COMPLETED || state_of(&w, t.id) == WEFT_TASK_FAILED);
    go_away(&box);
    go_away(&rig);
    engine_end(&w);
}

/* It was never offered, or the offer was lost: it is offered again. One that said something of it and knows nothing of it
 * now has lost its journal. */
TEST(what_the_runner_does_not_know) {
    engine_world w;
    task_outcome t;
    machine box;
    open_with_runners(&w, &weft__memory, 60000);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK_INT(submit_spec(&w, &on_box, &t), 0);
    CHECK(was_sent(&box, "runner.start"));
    go_away(&box);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK(was_sent(&box, "runner.start"));
    CHECK_INT(tell(&box, started_at, t.id, "[" SAYS(5, "a") "]"), WEFT_LEASE_HELD);
    go_away(&box);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    CHECK(!was_sent(&box, "runner.start"));
    ENGINE_UNTIL(&w, state_of(&w, t.id) == WEFT_TASK_FAILED);
    CHECK_STR(weft__task_find(w.engine, t.id)->reason, "runnerLost");
    go_away(&box);
    engine_end(&w);
}

TEST(slots_labels_and_folders) {
    engine_world w;
    task_outcome t[4];
    machine box, rig;
    weft_runner_spec spec = box_spec;
    open_with_runners(&w, &weft__memory, 60000);
    CHECK_INT(submit_spec(&w, &on_box, &t[0]), -ENODEV);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    spec.name = "rig";
    spec.folders = other_folder;
    CHECK_INT(come(&w, &spec, "[]", &rig), 0);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .label = "none"}, &t[0]), -ENODEV);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .runner = "rig"}, &t[0]), -ENODEV);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .runner = "box", .agent = "one"}, &t[0]), -ENODEV);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .runner = "box", .role = "executor"}, &t[0]), -EINVAL);
    CHECK_INT(
        submit_spec(&w, &(weft_task_spec){.prompt = "x", .runner = "box", .isolation = WEFT_ISOLATION_WORKTREE}, &t[0]),
        -EINVAL);
    for (int i = 0; i < 3; i++)
        CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "x", .label = "gpu"}, &t[i]), 0);
    CHECK_INT(state_of(&w, t[1].id), WEFT_TASK_RUNNING);
    CHECK_INT(state_of(&w, t[2].id), WEFT_TASK_QUEUED); /* it has two slots */
    CHECK_INT(submit(&w, "here", &t[3]), 0);
    CHECK_INT(state_of(&w, t[3].id), WEFT_TASK_RUNNING); /* that does not concern our own */
    play_end(play_of(t[3].id), true);
    go_away(&box);
    CHECK_INT(submit_spec(&w, &on_box, &t[3]), 0);
    CHECK_INT(state_of(&w, t[3].id), WEFT_TASK_QUEUED); /* it may come back */
    go_away(&rig);
    engine_end(&w);
}

TEST(limits_of_runners) {
    engine_world w;
    machine box;
    weft_runner *more;
    weft_runner_spec spec = box_spec;
    const char *many[WEFT_RUNNER_LIST + 2] = {0};
    char long_name[WEFT_RUNNER_NAME + 2], name[32];
    open_with_runners(&w, &weft__memory, 60000);
    CHECK_INT(come(&w, &box_spec, "[]", &box), 0);
    spec.instance = "i2";
    CHECK_INT(weft__runner_join(w.engine, &spec, &more), -EBUSY);
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const char *const wrong[] = {"", "a@b", "a b", "a\nb", "a\x1b[2Jb", "a\x7f", long_name};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        spec.name = wrong[i];
        CHECK(weft__runner_join(w.engine, &spec, &more) < 0);
    }
    spec.name = "rig";
    for (size_t i = 0; i <= WEFT_RUNNER_LIST; i++)
        many[i] = "x";
    spec.labels = many;
    CHECK_INT(weft__runner_join(w.engine, &spec, &more), -E2BIG);
    spec.labels = labels;
    spec.slots = WEFT_RUNNER_SLOTS + 1;
    CHECK_INT(weft__runner_join(w.engine, &spec, &more), -EINVAL);
    spec.slots = 1;
    for (int i = 1; i < WEFT_RUNNERS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        spec.name = name;
        CHECK_INT(weft__runner_join(w.engine, &spec, &more), 0);
    }
    spec.name = "one-more";
    CHECK_INT(weft__runner_join(w.engine, &spec, &more), -ENOSPC);
    go_away(&box);
    engine_end(&w);
}

/* ---- memory ---- */

static test_memory memory;

static bool play_with_failure_at(long n) {
    engine_world w;
    task_outcome t = {0};
    machine box = {0};
    engine_open(&w, &weft__memory);
    test_memory_init(&memory, n);
    w.opts.alloc = &memory.alloc;
    w.opts.limits.retry_ms = w.opts.limits.again_ms = 1;
    if (world_start(&w) == 0) {
        weft__list_init(&starts.link);
        weft__engine_listen(w.engine, &starts);
        int r = come(&w, &box_spec, "[]", &box);
        CHECK(r == 0 || r == -ENOMEM);
        r = r < 0 ? r : submit_spec(&w, &on_box, &t);
        CHECK(r == 0 || r == -ENOMEM);
        if (r == 0) {
            ENGINE_UNTIL(&w, state_of(&w, t.id) != WEFT_TASK_QUEUED);
            for (int i = 0; i < 1000 && state_of(&w, t.id) == WEFT_TASK_RUNNING; i++) {
                tell(&box, started_at, t.id, "[" SAYS(5, "a") "," ENDS(6) "]");
                world_turn(&w);
            }
            CHECK(state_of(&w, t.id) >= WEFT_TASK_COMPLETED);
        }
        if (box.peer)
            go_away(&box);
    }
    bool reached = memory.count >= n;
    memory.fail_at = 0;
    engine_end(&w);
    CHECK_INT(memory.live, 0);
    return reached;
}

TEST(every_allocation_fails_once) {
    long n = 1;
    while (n < 2000 && play_with_failure_at(n))
        n++;
    CHECK(n > 20 && n < 2000);
}

TEST_MAIN(CASE(each_event_counts_once) CASE(the_fence) CASE(what_is_late_changes_nothing) CASE(late_events_have_a_limit)
              CASE(late_on_a_full_disk) CASE(taken_up_after_a_restart) CASE(known_runners_are_waited_for)
                  CASE(late_after_a_restart) CASE(what_the_runner_does_not_know) CASE(slots_labels_and_folders)
                      CASE(limits_of_runners) CASE(every_allocation_fails_once))

/* Snapshots around turns: what the engine knows of what tasks changed, who worked at the same time, undo in the journal, and
 * what becomes of a turn that waits for its snapshot. The driver is played; files are changed by the test. */
#include <stdlib.h>
#include <sys/stat.h>

#include "engine/world.h"
#include "snapshots.h"

typedef struct changes_world {
    engine_world e;
    char folder[64];
    int compared, undone, r;
    char text[4096], message[256];
    size_t conflicts;
} changes_world;

static const char *in_folder(const changes_world *w, const char *path) {
    static char full[4][256];
    static int next;
    next = (next + 1) % 4;
    snprintf(full[next], sizeof full[next], "%s/%s", w->folder, path);
    return full[next];
}

static void put_text(const changes_world *w, const char *path, const char *text) {
    FILE *file = fopen(in_folder(w, path), "w");
    if (!CHECK(file != NULL))
        return;
    fputs(text, file);
    fclose(file);
}

static const char *text_of(const changes_world *w, const char *path) {
    static char text[256];
    FILE *file = fopen(in_folder(w, path), "r");
    size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    return text;
}

static void tell_undone(void *ctx, const weft_undone *undone) {
    changes_world *w = ctx;
    weft__task_undone(w->e.engine, undone);
}

static weft_snapshots *open_changes(changes_world *w, const char *program) {
    weft_snapshots *snapshots = NULL;
    char project[256], state[256];
    snprintf(project, sizeof project, "%s/p", w->folder);
    snprintf(state, sizeof state, "%s/state", w->folder);
    CHECK_INT(weft__snapshots_new(&(weft_snapshots_opts){.loop = w->e.loop,
                                                         .folder = project,
                                                         .state = state,
                                                         .program = program,
                                                         .on_undone = tell_undone,
                                                         .ctx = w},
                                  &snapshots),
              0);
    return snapshots;
}

static void begin_changes(changes_world *w, const char *program) {
    memset(w, 0, sizeof *w);
    snprintf(w->folder, sizeof w->folder, "/tmp/weft-changes-XXXXXX");
    CHECK(mkdtemp(w->folder) != NULL);
    CHECK_INT(mkdir(in_folder(w, "p"), 0755), 0);
    CHECK_INT(mkdir(in_folder(w, "state"), 0700), 0);
    put_text(w, "p/a", "1\n");
    engine_open(&w->e, &weft__memory);
    w->e.opts.snapshots = open_changes(w, program);
    CHECK_INT(world_start(&w->e), 0);
}

static void end_changes(changes_world *w) {
    weft__snapshots_free(w->e.opts.snapshots);
    engine_end(&w->e);
    test_remove(w->folder);
}

static void start_task(changes_world *w, const char *prompt, task_outcome *ret) {
    CHECK_INT(submit_spec(&w->e, &(weft_task_spec){.prompt = prompt}, ret), 0);
    ENGINE_UNTIL(&w->e, play_of(ret->id) != NULL);
}

static const weft_task_changes *changes_of(const changes_world *w, const task_outcome *task) {
    const weft_task *found = weft__task_find(w->e.engine, task->id);
    return found ? found->changes : NULL;
}

static bool has_ended(const changes_world *w, const task_outcome *task) {
    const weft_task *found = weft__task_find(w->e.engine, task->id);
    return found && found->state >= WEFT_TASK_COMPLETED;
}

static void end_task(changes_world *w, const task_outcome *task) {
    play_end(play_of(task->id), true);
    ENGINE_UNTIL(&w->e, has_ended(w, task));
}

static void on_compared(void *ctx, const weft_compared *compared) {
    changes_world *w = ctx;
    w->r = compared->r;
    w->text[0] = '\0';
    for (size_t i = 0; compared->list && i < compared->list->count; i++) {
        const weft_changed_file *file = &compared->list->files[i];
        size_t len = strlen(w->text);
        snprintf(w->text + len, sizeof w->text - len, "%s%s%s", len ? "|" : "", file->path, file->shared ? "*" : "");
    }
    w->compared++;
}

static int compare(changes_world *w, const char *id, bool session) {
    int before = w->compared;
    int r = weft__task_compare(w->e.engine, id, session, &(weft_comparison){0}, on_compared, w);
    return r < 0 ? r : engine_wait(&w->e, &w->compared, before + 1) ? w->r : -ETIMEDOUT;
}

#define CHECK_FILES(w, want) CHECK_TEXT((w)->text, strlen((w)->text), want)

static void on_undo(void *ctx, const weft_undo_result *result) {
    changes_world *w = ctx;
    w->r = result->r;
    w->conflicts = result->conflict_count;
    w->undone++;
}

static int undo(changes_world *w, const task_outcome *task, weft_undo_order order) {
    int before = w->undone;
    int r = weft__task_undo(w->e.engine, task->id, &order, on_undo, w);
    return r < 0 ? r : engine_wait(&w->e, &w->undone, before + 1) ? w->r : -ETIMEDOUT;
}

TEST(before_and_after) {
    changes_world w;
    task_outcome task;
    begin_changes(&w, NULL);
    start_task(&w, "first", &task);
    put_text(&w, "p/a", "2\n");
    CHECK_INT(compare(&w, task.id, false), 0);
    CHECK_FILES(&w, "a");
    ENGINE_UNTIL(&w.e, changes_of(&w, &task) != NULL);
    CHECK(*changes_of(&w, &task)->before && !*changes_of(&w, &task)->after);
    CHECK_INT(undo(&w, &task, (weft_undo_order){0}), -EBUSY);
    put_text(&w, "p/b", "b\n");
    end_task(&w, &task);
    const weft_task_changes *changes = changes_of(&w, &task);
    CHECK(changes && *changes->after && !changes->spans);
    CHECK_INT(changes->files, 2);
    CHECK_INT(changes->added, 1);
    CHECK_INT(changes->additions, 2);
    CHECK(strstr(w.e.heard, "task.started task.snapshot task.changed task.completed") != NULL);
    CHECK_INT(compare(&w, task.id, false), 0);
    CHECK_FILES(&w, "a|b");
    CHECK_INT(compare(&w, "task-9999", false), -ENOENT);
    end_changes(&w);
}

TEST(undo_is_in_the_journal) {
    changes_world w;
    task_outcome task;
    begin_changes(&w, NULL);
    start_task(&w, "first", &task);
    put_text(&w, "p/a", "2\n");
    end_task(&w, &task);
    CHECK_INT(undo(&w, &task, (weft_undo_order){.redo = true}), -EALREADY);
    CHECK_INT(undo(&w, &task, (weft_undo_order){.by = "somebody"}), 0);
    CHECK_INT(w.conflicts, 0);
    CHECK(changes_of(&w, &task)->undone);
    CHECK_STR(text_of(&w, "p/a"), "1\n");
    CHECK_INT(undo(&w, &task, (weft_undo_order){0}), -EALREADY);
    CHECK_INT(undo(&w, &task, (weft_undo_order){.redo = true}), 0);
    CHECK(!changes_of(&w, &task)->undone);
    CHECK_STR(text_of(&w, "p/a"), "2\n");
    put_text(&w, "p/a", "3\n");
    world_forget(&w.e);
    CHECK_INT(undo(&w, &task, (weft_undo_order){0}), 0);
    CHECK_INT(w.conflicts, 1);
    CHECK(!changes_of(&w, &task)->undone);
    CHECK_STR(w.e.heard, "");
    end_changes(&w);
}

/* The second begins while the first works and ends before it: what changed in between may be of both. */
TEST(two_at_once) {
    changes_world w;
    task_outcome one, two;
    begin_changes(&w, NULL);
    start_task(&w, "one", &one);
    put_text(&w, "p/one", "alone\n");
    start_task(&w, "two", &two);
    put_text(&w, "p/both", "who\n");
    end_task(&w, &two);
    put_text(&w, "p/late", "alone again\n");
    end_task(&w, &one);
    CHECK_INT(compare(&w, one.id, false), 0);
    CHECK_FILES(&w, "both*|late|one");
    CHECK_INT(compare(&w, two.id, false), 0);
    CHECK_FILES(&w, "both*");
    CHECK(strstr(changes_of(&w, &one)->others, two.id) && strstr(changes_of(&w, &two)->others, one.id));
    CHECK_INT(undo(&w, &one, (weft_undo_order){0}), 0);
    CHECK_INT(w.conflicts, 1);
    CHECK_INT(undo(&w, &two, (weft_undo_order){.shared = true}), 0);
    CHECK_INT(undo(&w, &one, (weft_undo_order){0}), 0);
    CHECK_INT(w.conflicts, 0);
    CHECK_STR(text_of(&w, "p/one"), "");
    end_changes(&w);
}

/* What a person did between two turns is not the session's. */
TEST(of_a_session) {
    changes_world w;
    task_outcome one, two;
    begin_changes(&w, NULL);
    start_task(&w, "one", &one);
    put_text(&w, "p/one", "1\n");
    end_task(&w, &one);
    put_text(&w, "p/person", "x\n");
    CHECK_INT(submit_spec(&w.e, &(weft_task_spec){.prompt = "two", .session = one.session}, &two), 0);
    ENGINE_UNTIL(&w.e, play_of(two.id) != NULL);
    put_text(&w, "p/two", "2\n");
    CHECK_INT(compare(&w, one.session, true), 0);
    CHECK_FILES(&w, "one|person*|two");
    end_task(&w, &two);
    CHECK_INT(compare(&w, one.session, true), 0);
    CHECK_FILES(&w, "one|person*|two");
    CHECK_INT(compare(&w, "session-9999", true), -ENOENT);
    end_changes(&w);
}

static const char *slow_git(changes_world *w) {
    static char path[256];
    snprintf(path, sizeof path, "/tmp/weft-slow-git-%d", (int) getpid());
    FILE *file = fopen(path, "w");
    fputs("#!/bin/sh\nexec sleep 1000\n", file);
    fclose(file);
    CHECK_INT(chmod(path, 0755), 0);
    (void) w;
    return path;
}

/* A turn that waits for its snapshot has not started, and can be cancelled. */
TEST(cancelled_while_it_waits) {
    changes_world w;
    task_outcome task, cancelled = {0};
    const char *git = slow_git(&w);
    begin_changes(&w, git);
    CHECK_INT(submit_spec(&w.e, &(weft_task_spec){.prompt = "never"}, &task), 0);
    engine_settle(&w.e);
    CHECK(play_of(task.id) == NULL);
    CHECK_INT(weft__task_cancel(w.e.engine, task.id, "me", task_done, &cancelled), 0);
    engine_wait(&w.e, &cancelled.times, 1);
    CHECK_INT(cancelled.r, 0);
    CHECK_INT(cancelled.state, WEFT_TASK_CANCELLED);
    CHECK(play_of(task.id) == NULL);
    unlink(git);
    end_changes(&w);
}

/* The same of one that waits for its worktree. */
TEST(cancelled_while_its_worktree_is_made) {
    changes_world w;
    task_outcome task, cancelled = {0};
    const char *git = slow_git(&w);
    begin_changes(&w, git);
    CHECK_INT(submit_spec(&w.e, &(weft_task_spec){.prompt = "never", .isolation = WEFT_ISOLATION_WORKTREE}, &task), 0);
    engine_settle(&w.e);
    CHECK(play_of(task.id) == NULL);
    CHECK_INT(weft__task_cancel(w.e.engine, task.id, "me", task_done, &cancelled), 0);
    engine_wait(&w.e, &cancelled.times, 1);
    CHECK_INT(cancelled.r, 0);
    CHECK_INT(cancelled.state, WEFT_TASK_CANCELLED);
    CHECK(play_of(task.id) == NULL);
    unlink(git);
    end_changes(&w);
}

/* Its agent does not work in the project's folder instead. */
TEST(a_worktree_that_is_refused) {
    changes_world w;
    task_outcome task;
    begin_changes(&w, NULL);
    CHECK_INT(submit_spec(&w.e, &(weft_task_spec){.prompt = "never", .isolation = WEFT_ISOLATION_WORKTREE}, &task), 0);
    ENGINE_UNTIL(&w.e, has_ended(&w, &task));
    CHECK(play_of(task.id) == NULL);
    const weft_task *found = weft__task_find(w.e.engine, task.id);
    CHECK_STR(found->reason, "worktreeRefused");
    CHECK(strstr(found->error, "not in a git repository") != NULL);
    weft_task_spec other = {.prompt = "x", .session = found->session, .isolation = WEFT_ISOLATION_OFF};
    CHECK_INT(weft__task_submit(w.e.engine, &other, NULL, NULL), -EINVAL);
    end_changes(&w);
}

/* Without git the task runs, and says why nobody knows what it changed. */
TEST(not_possible) {
    changes_world w;
    task_outcome task;
    begin_changes(&w, "/nonexistent/git");
    start_task(&w, "first", &task);
    end_task(&w, &task);
    CHECK_STR(changes_of(&w, &task)->why, "git is not installed");
    CHECK_INT(compare(&w, task.id, false), -ENODATA);
    CHECK_INT(undo(&w, &task, (weft_undo_order){0}), -ENODATA);
    end_changes(&w);
}

/* The daemon died while it ran: the second snapshot is taken by the next start. */
TEST(after_a_crash) {
    changes_world w;
    task_outcome task;
    memset(&w, 0, sizeof w);
    snprintf(w.folder, sizeof w.folder, "/tmp/weft-changes-XXXXXX");
    CHECK(mkdtemp(w.folder) != NULL);
    CHECK_INT(mkdir(in_folder(&w, "p"), 0755), 0);
    CHECK_INT(mkdir(in_folder(&w, "state"), 0700), 0);
    engine_open(&w.e, &weft__sqlite);
    w.e.opts.snapshots = open_changes(&w, NULL);
    CHECK_INT(world_start(&w.e), 0);
    start_task(&w, "first", &task);
    put_text(&w, "p/b", "b\n");
    weft__snapshots_free(w.e.opts.snapshots);
    engine_crash(&w.e);
    w.e.opts.snapshots = open_changes(&w, NULL);
    CHECK_INT(world_start(&w.e), 0);
    ENGINE_UNTIL(&w.e, changes_of(&w, &task) && *changes_of(&w, &task)->after);
    CHECK(changes_of(&w, &task)->late);
    CHECK_INT(changes_of(&w, &task)->files, 1);
    CHECK_INT(undo(&w, &task, (weft_undo_order){0}), 0);
    CHECK_STR(text_of(&w, "p/b"), "");
    /* And again, from the document. */
    weft__snapshots_free(w.e.opts.snapshots);
    engine_crash(&w.e);
    w.e.opts.snapshots = open_changes(&w, NULL);
    CHECK_INT(world_start(&w.e), 0);
    ENGINE_UNTIL(&w.e, changes_of(&w, &task) != NULL);
    CHECK(changes_of(&w, &task)->undone && *changes_of(&w, &task)->to);
    end_changes(&w);
}

/* One task from its first snapshot to its undo, with whatever fails on the way. */
static void play_through(changes_world *w) {
    task_outcome task;
    if (submit_spec(&w->e, &(weft_task_spec){.prompt = "first"}, &task) < 0)
        return;
    for (int64_t until = world_wall(&w->e) + WORLD_PATIENCE_MS; !has_ended(w, &task) && world_wall(&w->e) < until;) {
        weft_run *run = play_of(task.id);
        if (run && !run->ended && !run->freed) {
            put_text(w, "p/a", "2\n");
            play_end(run, true);
        }
        world_turn(&w->e);
    }
    CHECK(has_ended(w, &task));
    int r = compare(w, task.id, false);
    CHECK(r == 0 || r == -ENODATA || r == -ENOMEM);
    r = undo(w, &task, (weft_undo_order){0});
    CHECK(r == 0 || r == -ENODATA || r == -ENOMEM);
    const weft_task_changes *changes = changes_of(w, &task);
    CHECK(strcmp(text_of(w, "p/a"), changes && changes->undone ? "1\n" : "2\n") == 0);
}

static long memory_scene(long fail_at) {
    changes_world w;
    test_memory memory;
    test_memory_init(&memory, fail_at);
    memset(&w, 0, sizeof w);
    snprintf(w.folder, sizeof w.folder, "/tmp/weft-changes-XXXXXX");
    CHECK(mkdtemp(w.folder) != NULL);
    CHECK_INT(mkdir(in_folder(&w, "p"), 0755), 0);
    CHECK_INT(mkdir(in_folder(&w, "state"), 0700), 0);
    put_text(&w, "p/a", "1\n");
    engine_open(&w.e, &weft__memory);
    w.e.opts.snapshots = open_changes(&w, NULL);
    w.e.opts.alloc = &memory.alloc;
    w.e.opts.limits.again_ms = 1;
    if (world_start(&w.e) == 0)
        play_through(&w);
    end_changes(&w);
    CHECK_INT(memory.live, 0);
    return memory.count;
}

TEST(memory_that_is_short) {
    long count = memory_scene(0);
    for (long n = 1; n <= count; n += count / 40 + 1)
        memory_scene(n);
}

TEST_MAIN(CASE(before_and_after) CASE(undo_is_in_the_journal) CASE(two_at_once) CASE(of_a_session)
              CASE(cancelled_while_it_waits) CASE(cancelled_while_its_worktree_is_made) CASE(a_worktree_that_is_refused)
                  CASE(not_possible) CASE(after_a_crash) CASE(memory_that_is_short))

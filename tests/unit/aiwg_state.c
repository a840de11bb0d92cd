/* The files that AIWG's programs read when they cannot ask its daemon. */
#include "aiwg_state.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon_folder.h"
#include "engine/world.h"

static int64_t uptime_s(void *ctx) {
    (void) ctx;
    return 42;
}

static const weft_hub_host host = {.version = "1", .started_at = "2026-01-31T12:00:00.000Z", .uptime_s = uptime_s};

/* A folder like a project's. */
static char folder[] = "/tmp/weft-state-XXXXXX";

static void enter(void) {
    REQUIRE(mkdtemp(folder) && chdir(folder) == 0 && mkdir(".aiwg", 0700) == 0 && mkdir(".aiwg/daemon", 0700) == 0);
}

static void leave(void) {
    unlink(".aiwg/daemon/state.json");
    unlink(".aiwg/daemon/heartbeat");
    unlink(".aiwg/daemon/tasks.json");
    rmdir(".aiwg/daemon");
    rmdir(".aiwg");
    rmdir(folder);
}

static weft_doc *read_doc(const char *path) {
    static char text[64 * 1024];
    weft_doc *doc = NULL;
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        fclose(file);
    CHECK_INT(weft_doc_parse(text, len, NULL, &doc), 0);
    return doc;
}

static void is_at(weft_doc *doc, const char *pointer, const char *want) {
    weft_json found = weft_pointer(weft_doc_root(doc), pointer);
    test_row(pointer);
    CHECK_TEXT(found.text ? found.text : "", found.len, want);
}

/* Each member that the original's file has must be in ours, all the way down; lists are compared by their first item. */
static void has_all(const weft_json *ours, const weft_json *theirs, const char *path) {
    for (weft_iter it = weft_iterate(theirs); weft_next(&it);) {
        char deeper[256];
        if (!it.name.text)
            break;
        snprintf(deeper, sizeof deeper, "%s/%s", path, weft_str_of(&it.name, ""));
        weft_json value = weft_get(ours, weft_str_of(&it.name, ""));
        test_row(deeper);
        CHECK(value.text != NULL);
        weft_json item = weft_at(&it.value, 0), mine = weft_at(&value, 0);
        if (weft_typeof(&it.value) == WEFT_OBJECT && weft_count(&value))
            has_all(&value, &it.value, deeper);
        else if (item.text && mine.text)
            has_all(&mine, &item, deeper);
    }
}

static void compare_with_original(weft_doc *doc) {
    size_t len;
    weft_doc *theirs = NULL;
    char *text = test_file("../shared/data/aiwg/state.json.sample", &len);
    if (!text) {
        test_skip("needs ../shared/data/aiwg");
        return;
    }
    CHECK_INT(weft_doc_parse(text, len, NULL, &theirs), 0);
    /* Ours has no jobs here, so these are not there, as in the original without jobs. */
    weft_json ours = *weft_doc_root(doc), sample = *weft_doc_root(theirs);
    for (weft_iter it = weft_iterate(&sample); weft_next(&it);) {
        const char *name = weft_str_of(&it.name, "");
        weft_json value = weft_get(&ours, name);
        test_row(name);
        CHECK(value.text != NULL);
        if (strcmp(name, "monitors") != 0)
            has_all(&value, &it.value, name);
    }
    weft_doc_free(theirs);
    free(text);
}

TEST(the_files) {
    engine_world w;
    task_outcome first, second;
    weft_aiwg_state *state = NULL;
    char *sample_at = realpath(".", NULL);
    engine_begin(&w, &weft__memory);
    weft__engine_set(w.engine, weft__engine_agents(w.engine), &(weft_engine_limits){.max_running = 1});
    CHECK_INT(submit(&w, "run", &first), 0);
    play_of(first.id)->host->on_process(play_of(first.id)->ctx, 4711);
    ENGINE_UNTIL(&w, weft__task_find(w.engine, first.id)->pid == 4711);
    CHECK_INT(submit(&w, "\xc3\xa4 long prompt: 0123456789 0123456789 0123456789 0123456789 0123456789 01234567\xc3\xa4 end",
                     &second),
              0);
    weft_hub hub = {.engine = w.engine, .host = &host};
    enter();
    weft_aiwg_state_opts opts = {
        .hub = &hub, .folder = ".aiwg/daemon", .socket = ".aiwg/daemon/daemon.sock", .put = weft__daemon_folder_put};
    REQUIRE(weft__aiwg_state_new(&opts, &state) == 0);
    CHECK_INT(weft__aiwg_state_trouble(state), 0);
    weft_doc *doc = read_doc(".aiwg/daemon/state.json"), *beat = read_doc(".aiwg/daemon/heartbeat");
    is_at(doc, "/started_at", "\"2026-01-31T12:00:00.000Z\"");
    is_at(doc, "/uptime_seconds", "42");
    is_at(doc, "/ipc", "{\"socket\":\".aiwg/daemon/daemon.sock\",\"clients\":0}");
    is_at(doc, "/agents/running", "1");
    is_at(doc, "/agents/max_concurrency", "1");
    is_at(doc, "/agents/tasks/running/0/id", "\"task-0000\"");
    is_at(doc, "/agents/tasks/running/0/pid", "4711");
    is_at(doc, "/agents/tasks/queued/0/prompt",
          "\"\xc3\xa4 long prompt: 0123456789 0123456789 0123456789 0123456789 0123456789 01234567\"");
    is_at(doc, "/task_stats", "{\"total\":2,\"queued\":1,\"running\":1,\"completed\":0,\"failed\":0,\"cancelled\":0}");
    is_at(doc, "/monitors/scheduler", "{\"enabled\":false}");
    is_at(doc, "/automation", "{\"enabled\":false,\"rule_count\":0}");
    is_at(doc, "/health/status", "\"healthy\"");
    is_at(beat, "/uptime_seconds", "42");
    CHECK_INT(chdir(sample_at), 0);
    compare_with_original(doc);
    CHECK_INT(chdir(folder), 0);
    weft_doc_free(doc);
    weft_doc_free(beat);
    play_end(play_of(first.id), true);
    ENGINE_UNTIL(&w, state_of(&w, first.id) == WEFT_TASK_COMPLETED);
    weft__aiwg_state_free(state);
    doc = read_doc(".aiwg/daemon/state.json"); /* written once more */
    is_at(doc, "/task_stats/completed", "1");
    weft_doc_free(doc);
    doc = read_doc(".aiwg/daemon/tasks.json"); /* for AIWG's own daemon */
    is_at(doc, "/version", "1");
    is_at(doc, "/tasks/0/id", "\"task-0000\"");
    is_at(doc, "/tasks/0/state", "\"completed\"");
    is_at(doc, "/tasks/1/id", "\"task-0001\"");
    weft_doc_free(doc);
    leave();
    CHECK_INT(chdir(sample_at), 0);
    free(sample_at);
    engine_end(&w);
}

TEST(a_folder_that_cannot_be_written_to) {
    engine_world w;
    weft_aiwg_state *state = NULL;
    engine_begin(&w, &weft__memory);
    weft_hub hub = {.engine = w.engine, .host = &host};
    weft_aiwg_state_opts opts = {.hub = &hub, .folder = "/nowhere/at/all", .socket = "s", .put = weft__daemon_folder_put};
    REQUIRE(weft__aiwg_state_new(&opts, &state) == 0);
    CHECK_INT(weft__aiwg_state_trouble(state), -ENOENT);
    weft__aiwg_state_free(state);
    engine_end(&w);
}

TEST_MAIN(CASE(the_files) CASE(a_folder_that_cannot_be_written_to))

/* The context: versions, what a change may and may not do, restarts, failures of the store, every allocation, the limits. */
#include "context.h"

#include <sys/stat.h>

#include "engine/world.h"
#include "engine_private.h"

typedef struct changed {
    int times, r;
    uint64_t version;
} changed;

static void on_changed(void *ctx, int r, uint64_t version) {
    changed *c = ctx;
    c->times++;
    c->r = r;
    c->version = version;
}

static int ask(engine_world *w, weft_context_action action, weft_context_type type, const char *key, const char *data,
               changed *ret) {
    weft_doc *doc = NULL;
    *ret = (changed){0};
    if (data && !CHECK_INT(weft_doc_parse(data, strlen(data), NULL, &doc), 0))
        return -EBADMSG;
    weft_context_part part = {.key = key};
    if (doc)
        part.data = *weft_doc_root(doc);
    int r = weft__context_change(
        w->engine, &(weft_context_change){.action = action, .type = type, .parts = &part, .count = 1}, on_changed, ret);
    weft_doc_free(doc);
    CHECK_INT(ret->times, 0); /* never inside of the call */
    return r;
}

static int change(engine_world *w, weft_context_action action, weft_context_type type, const char *key, const char *data,
                  changed *ret) {
    int r = ask(w, action, type, key, data, ret);
    return r < 0 ? r : engine_wait(w, &ret->times, 1) ? ret->r : -ETIMEDOUT;
}

static const char *shown(const engine_world *w) {
    static char text[4096];
    weft_context_entry entry;
    size_t len = (size_t) snprintf(text, sizeof text, "%d:", (int) weft__context_version(w->engine));
    for (size_t n = 0; weft__context_nth(w->engine, n, &entry) && len < sizeof text - 200; n++)
        len += (size_t) snprintf(text + len, sizeof text - len, " %s %s=%.*s@%d", weft__context_types[entry.type], entry.key,
                                 (int) (entry.data.len < 60 ? entry.data.len : 60), entry.data.data, (int) entry.version);
    return text;
}

TEST(each_change_is_a_version) {
    engine_world w;
    changed c;
    engine_begin(&w, play_store());
    CHECK_STR(shown(&w), "0:");
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "phase", "2", &c), 0);
    CHECK_INT(c.version, 1);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_FILE, "src/b.c", "{\"why\":\"x\"}", &c), 0);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_FILE, "src/a.c", NULL, &c), 0);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_DEPENDENCY, "react", "{\"version\":\"18\"}", &c), 0);
    CHECK_STR(shown(&w),
              "4: file src/a.c=null@3 file src/b.c={\"why\":\"x\"}@2 dependency react={\"version\":\"18\"}@4 state "
              "phase=2@1");
    /* Added again it is replaced; modified it must be there; removed it need not be. */
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "phase", "3", &c), 0);
    CHECK_INT(change(&w, WEFT_CONTEXT_MODIFY, WEFT_CONTEXT_FILE, "src/b.c", "1", &c), 0);
    CHECK_INT(change(&w, WEFT_CONTEXT_MODIFY, WEFT_CONTEXT_FILE, "src/c.c", "1", &c), -ENOENT);
    CHECK_INT(change(&w, WEFT_CONTEXT_REMOVE, WEFT_CONTEXT_STATE, "react", NULL, &c), 0);
    CHECK_INT(c.version, 6); /* there was nothing to do */
    CHECK_INT(change(&w, WEFT_CONTEXT_REMOVE, WEFT_CONTEXT_DEPENDENCY, "react", NULL, &c), 0);
    CHECK_INT(c.version, 7);
    CHECK_STR(shown(&w), "7: file src/a.c=null@3 file src/b.c=1@6 state phase=3@5");
    engine_end(&w);
}

TEST(a_change_is_done_whole_or_not_at_all) {
    engine_world w;
    changed c = {0};
    engine_begin(&w, play_store());
    const weft_context_part parts[] = {{.key = "a"}, {.key = "b"}}, twice[] = {{.key = "a"}, {.key = "a"}};
    weft_context_change both = {.action = WEFT_CONTEXT_ADD, .type = WEFT_CONTEXT_STATE, .parts = parts, .count = 2};
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "a", "1", &c), 0);
    both.action = WEFT_CONTEXT_MODIFY;
    c.times = 0;
    CHECK_INT(weft__context_change(w.engine, &both, on_changed, &c), 0);
    engine_wait(&w, &c.times, 1);
    CHECK_INT(c.r, -ENOENT);
    CHECK_STR(shown(&w), "1: state a=1@1");
    both.action = WEFT_CONTEXT_ADD;
    c.times = 0;
    CHECK_INT(weft__context_change(w.engine, &both, on_changed, &c), 0);
    engine_wait(&w, &c.times, 1);
    CHECK_STR(shown(&w), "2: state a=null@2 state b=null@2");
    both.parts = twice;
    CHECK_INT(weft__context_change(w.engine, &both, on_changed, &c), -EINVAL);
    both.count = 0;
    CHECK_INT(weft__context_change(w.engine, &both, on_changed, &c), -EINVAL);
    engine_end(&w);
}

TEST(changes_take_effect_in_their_order) {
    engine_world w;
    changed c[4];
    engine_begin(&w, play_store());
    CHECK_INT(ask(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "a", "1", &c[0]), 0);
    CHECK_INT(ask(&w, WEFT_CONTEXT_MODIFY, WEFT_CONTEXT_STATE, "a", "2", &c[1]), 0);
    CHECK_INT(ask(&w, WEFT_CONTEXT_REMOVE, WEFT_CONTEXT_STATE, "a", NULL, &c[2]), 0);
    CHECK_INT(ask(&w, WEFT_CONTEXT_MODIFY, WEFT_CONTEXT_STATE, "a", "3", &c[3]), 0);
    engine_wait(&w, &c[3].times, 1);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(c[i].r, 0);
        CHECK_INT(c[i].version, i + 1);
    }
    CHECK_INT(c[3].r, -ENOENT);
    CHECK_STR(shown(&w), "3:");
    engine_end(&w);
}

TEST(it_is_there_after_a_restart) {
    engine_world w;
    changed c;
    engine_begin(&w, &weft__sqlite);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_FILE, "a.c", "{\"x\":1}", &c), 0);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "b", "\"\\u0001\"", &c), 0);
    CHECK_INT(change(&w, WEFT_CONTEXT_REMOVE, WEFT_CONTEXT_FILE, "a.c", NULL, &c), 0);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_FILE, "z.c", NULL, &c), 0);
    for (int i = 0; i < 3; i++) {
        engine_restart(&w);
        CHECK_STR(shown(&w), "4: file z.c=null@4 state b=\"\\u0001\"@2");
    }
    CHECK_INT(change(&w, WEFT_CONTEXT_REMOVE, WEFT_CONTEXT_FILE, "z.c", NULL, &c), 0);
    CHECK_INT(c.version, 5);
    /* A clean stop, after which the past is read late: until then nothing can be changed. */
    w.opts.early = true;
    weft__engine_stop(w.engine, false, world_stopped, &w);
    engine_wait(&w, &w.stopped, 1);
    engine_restart(&w);
    CHECK_STR(shown(&w), "5: state b=\"\\u0001\"@2"); /* what waited may run at once, and is told of it */
    if (weft__engine_past(w.engine) == -EAGAIN)
        CHECK_INT(ask(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "c", "1", &c), -EAGAIN);
    ENGINE_UNTIL(&w, weft__engine_past(w.engine) == 0);
    CHECK_STR(shown(&w), "5: state b=\"\\u0001\"@2");
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "c", "1", &c), 0);
    CHECK_INT(c.version, 6);
    engine_end(&w);
}

TEST(what_is_not_stored_did_not_happen) {
    engine_world w;
    changed c, d;
    engine_begin(&w, play_store());
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "a", "1", &c), 0);
    play_store_fails = -ENOSPC;
    CHECK_INT(ask(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "a", "2", &c), 0);
    CHECK_INT(ask(&w, WEFT_CONTEXT_REMOVE, WEFT_CONTEXT_STATE, "a", NULL, &d), 0);
    engine_wait(&w, &d.times, 1);
    CHECK_INT(c.r, -ENOSPC);
    CHECK_INT(d.r, -ENOSPC);
    CHECK_STR(shown(&w), "1: state a=1@1");
    play_store_fails = 0;
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "a", "3", &c), 0);
    CHECK_INT(c.version, 2);
    engine_end(&w);
}

TEST(files_lie_in_the_folder) {
    static const struct {
        const char *path, *is;
        int r;
    } rows[] = {
        {"a.c", "a.c", 0},
        {"./src//a.c", "src/a.c", 0},
        {"/tmp/x/a.c", "x/a.c", 0},
        {"../a", NULL, -EXDEV},
        {"a/../b", NULL, -EXDEV},
        {"/etc/passwd", NULL, -EXDEV},
        {"/tmpx/a", NULL, -EXDEV},
        {"", NULL, -EINVAL},
        {"/tmp", NULL, -EXDEV},
        {"a\nb", NULL, -EINVAL},
        {".git/config", NULL, -EACCES},
        {"x/.weft/token", NULL, -EACCES},
    };
    engine_world w;
    char path[WEFT_CONTEXT_KEY + 1];
    changed c;
    engine_begin(&w, play_store());
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].path);
        CHECK_INT(weft__context_path(w.engine, rows[i].path, path), rows[i].r);
        if (rows[i].is)
            CHECK_TEXT(path, strlen(path), rows[i].is);
    }
    test_row(NULL);
    /* A link that leads out, in the engine's folder, which is /tmp. */
    char name[64], full[80];
    snprintf(name, sizeof name, "weft-context-%d", (int) getpid());
    snprintf(full, sizeof full, "/tmp/%s", name);
    REQUIRE(symlink("/etc", full) == 0);
    CHECK_INT(ask(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_FILE, name, NULL, &c), -EXDEV);
    unlink(full);
    CHECK_INT(ask(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_FILE, "a//b", NULL, &c), -EINVAL); /* not the key it would have */
    CHECK_INT(ask(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_FILE, "../b", NULL, &c), -EXDEV);
    engine_end(&w);
}

TEST(a_prompt_for_a_role_carries_it) {
    engine_world w;
    changed c;
    task_outcome t;
    char *text, name[64], data[1100];
    engine_begin(&w, play_store());
    CHECK_INT(weft__context_prompt(w.engine, "do it", &text), 0);
    CHECK(text == NULL);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_FILE, "a%s.c", NULL, &c), 0);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "phase", "{\"n\":\"%n\"}", &c), 0);
    CHECK_INT(weft__context_prompt(w.engine, "do it", &text), 0);
    CHECK_STR(text, "do it\n\nContext of the project:\n- file a%s.c\n- state phase: {\"n\":\"%n\"}");
    weft__free(NULL, text);
    /* Only those for a role: the prompt that is stored stays as it was said. */
    CHECK_INT(submit(&w, "plain", &t), 0);
    ENGINE_UNTIL(&w, play_of(t.id) != NULL);
    CHECK_STR(play_of(t.id)->prompt, "plain");
    play_end(play_of(t.id), true);
    CHECK_INT(submit_spec(&w, &(weft_task_spec){.prompt = "do it", .role = "executor"}, &t), 0);
    ENGINE_UNTIL(&w, play_of(t.id) != NULL);
    CHECK(strncmp(play_of(t.id)->prompt, "do it\n\nContext of the project:\n- file a", 39) == 0);
    CHECK_STR(weft__task_find(w.engine, t.id)->prompt, "do it");
    play_end(play_of(t.id), true);
    /* It is limited, and says so. */
    snprintf(data, sizeof data, "\"%01000d\"", 0);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "k%02d", i);
        CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_DEPENDENCY, name, data, &c), 0);
    }
    CHECK_INT(weft__context_prompt(w.engine, "", &text), 0);
    CHECK(strlen(text) <= WEFT_CONTEXT_PROMPT);
    CHECK(strlen(text) > WEFT_CONTEXT_PROMPT - 1200);
    CHECK(strstr(text, "- state phase: ") != NULL); /* what is short has room behind what is long */
    CHECK(strstr(text, "more, which are left out here") != NULL);
    weft__free(NULL, text);
    engine_end(&w);
}

static char *quoted_text(size_t len) {
    char *text = malloc(len + 1);
    memset(text, 'x', len);
    text[0] = text[len - 1] = '"';
    text[len] = '\0';
    return text;
}

TEST(it_has_limits) {
    engine_world w;
    changed c, many[WEFT_CONTEXT_CHANGES];
    char key[WEFT_CONTEXT_KEY + 2], name[32];
    engine_begin(&w, play_store());
    memset(key, 'k', sizeof key);
    key[WEFT_CONTEXT_KEY] = '\0';
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, key, "1", &c), 0);
    key[WEFT_CONTEXT_KEY] = 'k';
    key[WEFT_CONTEXT_KEY + 1] = '\0';
    CHECK_INT(ask(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, key, "1", &c), -EINVAL);
    char *data = quoted_text(WEFT_CONTEXT_DATA), *more = quoted_text(WEFT_CONTEXT_DATA + 1);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "0", data, &c), 0);
    CHECK_INT(ask(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "0", more, &c), -EMSGSIZE);
    free(more);
    /* Bytes: as many as fit, and not one more. */
    for (int i = 1; i < 7; i++) {
        snprintf(name, sizeof name, "%d", i);
        CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, name, data, &c), 0);
    }
    free(data);
    size_t left = WEFT_CONTEXT_BYTES - w.engine->context_bytes - 1;
    data = quoted_text(left + 1);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "l", data, &c), -EDQUOT);
    free(data);
    data = quoted_text(left);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_STATE, "l", data, &c), 0);
    CHECK_INT(w.engine->context_bytes, WEFT_CONTEXT_BYTES);
    CHECK_INT(change(&w, WEFT_CONTEXT_MODIFY, WEFT_CONTEXT_STATE, "l", data, &c), 0); /* its own place counts */
    free(data);
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "%d", i);
        CHECK_INT(change(&w, WEFT_CONTEXT_REMOVE, WEFT_CONTEXT_STATE, name, NULL, &c), 0);
    }
    /* Entries, and changes under way. */
    while (w.engine->context_count < WEFT_CONTEXT_ENTRIES) {
        snprintf(name, sizeof name, "e%zu", w.engine->context_count);
        if (!CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_DEPENDENCY, name, NULL, &c), 0))
            break;
    }
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_DEPENDENCY, "more", NULL, &c), -EDQUOT);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_DEPENDENCY, "e100", "1", &c), 0);
    for (int i = 0; i < WEFT_CONTEXT_CHANGES; i++)
        CHECK_INT(ask(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_DEPENDENCY, "e100", "1", &many[i]), 0);
    CHECK_INT(ask(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_DEPENDENCY, "e100", "1", &c), -EUSERS);
    engine_wait(&w, &many[WEFT_CONTEXT_CHANGES - 1].times, 1);
    CHECK_INT(change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_DEPENDENCY, "e100", "1", &c), 0);
    weft_context_part parts[WEFT_CONTEXT_PARTS + 1];
    char keys[WEFT_CONTEXT_PARTS + 1][8];
    for (int i = 0; i <= WEFT_CONTEXT_PARTS; i++) {
        snprintf(keys[i], sizeof keys[i], "e%d", i + 100);
        parts[i] = (weft_context_part){.key = keys[i]};
    }
    weft_context_change all = {.type = WEFT_CONTEXT_DEPENDENCY, .parts = parts, .count = WEFT_CONTEXT_PARTS + 1};
    CHECK_INT(weft__context_change(w.engine, &all, NULL, NULL), -E2BIG);
    all.count--;
    CHECK_INT(weft__context_change(w.engine, &all, NULL, NULL), 0);
    engine_end(&w); /* which is under way: nobody waits for it */
}

/* A journal that somebody wrote who is not us. */
TEST(strange_events_change_nothing) {
    static const char *const bad[] = {
        "{}",
        "{\"version\":1,\"action\":\"add\",\"contextType\":\"file\"}",
        "{\"version\":1,\"action\":\"burn\",\"contextType\":\"file\",\"changes\":[]}",
        "{\"version\":1,\"action\":\"add\",\"contextType\":\"file\",\"changes\":[{\"key\":7}]}",
        "{\"version\":1,\"action\":\"add\",\"contextType\":\"file\",\"changes\":[{\"key\":\"a\"},{\"key\":\"\\u0001\"}]}",
        "{\"version\":-1,\"action\":\"add\",\"contextType\":\"file\",\"changes\":[{\"key\":\"a\"}]}",
    };
    engine_world w;
    engine_begin(&w, play_store());
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        weft_doc *doc;
        test_row(bad[i]);
        REQUIRE(weft_doc_parse(bad[i], strlen(bad[i]), NULL, &doc) == 0);
        CHECK_INT(weft__context_apply(w.engine, &(weft_event){.type = "context.changed"}, weft_doc_root(doc)), -EBADMSG);
        CHECK_INT(weft__context_restore(w.engine, weft_doc_root(doc)), -EBADMSG);
        CHECK_TEXT(shown(&w), strlen(shown(&w)), "0:");
        weft_doc_free(doc);
    }
    test_row(NULL);
    engine_end(&w);
}

TEST(every_allocation_fails_once) {
    engine_world w;
    test_memory memory;
    changed c;
    test_memory_init(&memory, 0);
    engine_open(&w, play_store());
    w.opts.alloc = &memory.alloc;
    CHECK_INT(world_start(&w), 0);
    bool done = false;
    int stored = 0;
    for (long at = 1; !done && at < 200; at++) {
        long before = memory.count;
        memory.fail_at = memory.count + at;
        int r = change(&w, WEFT_CONTEXT_ADD, WEFT_CONTEXT_FILE, "a.c", "{\"n\":1}", &c);
        done = memory.count - before < at;
        memory.fail_at = 0;
        CHECK(r == 0 || r == -ENOMEM);
        stored += r == 0;
        engine_settle(&w);
        CHECK_INT(weft__context_version(w.engine), stored);
    }
    CHECK(done);
    CHECK(stored > 0);
    w.engine = weft__engine_free(w.engine);
    CHECK_INT(memory.live, 0);
    engine_end(&w);
}

TEST_MAIN(CASE(each_change_is_a_version) CASE(a_change_is_done_whole_or_not_at_all) CASE(changes_take_effect_in_their_order)
              CASE(it_is_there_after_a_restart) CASE(what_is_not_stored_did_not_happen) CASE(files_lie_in_the_folder)
                  CASE(a_prompt_for_a_role_carries_it) CASE(it_has_limits) CASE(strange_events_change_nothing)
                      CASE(every_allocation_fails_once))

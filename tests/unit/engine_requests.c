/* Requests that are done once, and the collections that most of them change: repeats, restarts, failures of the store, every
 * allocation, and the limits. */
#include "once.h"

#include "collections.h"
#include "engine/world.h"
#include "engine_private.h"

typedef struct answered {
    int times, r;
    bool repeat;
    char text[512]; /* the result, or the error */
} answered;

static void on_answered(void *ctx, const weft_request_outcome *outcome) {
    answered *a = ctx;
    const weft_json *said = outcome->r == 1 ? &outcome->error : &outcome->result;
    a->times++;
    a->r = outcome->r;
    a->repeat = outcome->repeat;
    snprintf(a->text, sizeof a->text, "%.*s", (int) said->len, said->text ? said->text : "");
}

/* ---- one change of a collection, as a dialect makes it ---- */

static void on_changed(void *ctx, int r, uint64_t version) {
    (void) version;
    weft__request_settle(ctx, r);
}

static void change_for(engine_world *w, weft_request *request, const char *collection, const char *key, const char *value,
                       int64_t expect) {
    weft_doc *doc = NULL;
    weft_item_change change = {.collection = collection, .key = key, .expect = expect, .request = request};
    if (value && CHECK_INT(weft_doc_parse(value, strlen(value), NULL, &doc), 0))
        change.value = *weft_doc_root(doc);
    int r = weft__item_change(w->engine, &change, on_changed, request);
    if (r < 0)
        weft__request_refuse(request, weft_int(r));
    weft_doc_free(doc);
}

/* What a request says that it wants: this is what its repeats are compared by. */
static int begin_change(engine_world *w, const char *by, const char *id, const char *collection, const char *key,
                        const char *value, int64_t expect, answered *ret) {
    char args[1024];
    weft_doc *doc;
    weft_request *request = NULL;
    *ret = (answered){0};
    snprintf(args, sizeof args, "{\"collection\":\"%s\",\"key\":\"%s\",\"value\":%s,\"expect\":%d}", collection, key,
             value ? value : "null", (int) expect);
    if (!CHECK_INT(weft_doc_parse(args, strlen(args), NULL, &doc), 0))
        return -EBADMSG;
    int r = weft__request_begin(
        w->engine, &(weft_request_spec){.by = by, .id = id, .name = value ? "put" : "delete", .args = *weft_doc_root(doc)},
        on_answered, ret, &request);
    weft_doc_free(doc);
    if (r == 0)
        change_for(w, request, collection, key, value, expect);
    return r;
}

static int change_if(engine_world *w, const char *id, const char *key, const char *value, int64_t expect, answered *ret) {
    int r = begin_change(w, "ann", id, "notes", key, value, expect, ret);
    return r < 0 ? r : engine_wait(w, &ret->times, 1) ? ret->r : -ETIMEDOUT;
}

static int put(engine_world *w, const char *id, const char *key, const char *value, answered *ret) {
    return change_if(w, id, key, value, -1, ret);
}

static const char *shown(const engine_world *w, const char *collection) {
    static char text[1024];
    size_t len = 0;
    text[0] = '\0';
    for (const weft_item *item = weft__item_first(w->engine, collection); item; item = weft__item_next(w->engine, item))
        len += (size_t) snprintf(text + len, sizeof text - len, "%s=%.*s@%d ", item->key, (int) item->value.len,
                                 item->value.data, (int) item->version);
    return text;
}

/* ---- collections ---- */

TEST(values_are_kept_in_the_order_of_their_keys) {
    engine_world w;
    answered a;
    engine_begin(&w, play_store());
    CHECK_INT(put(&w, "1", "b", "{\"x\": 1.50}", &a), 0);
    CHECK_STR(a.text, "{\"collection\":\"notes\",\"key\":\"b\",\"version\":1}");
    CHECK_INT(put(&w, "2", "a", "[12345678901234567890]", &a), 0);
    CHECK_INT(put(&w, "3", "c/d \xc3\xa9", "null", &a), 0);
    CHECK_STR(shown(&w, "notes"), "a=[12345678901234567890]@2 b={\"x\": 1.50}@1 c/d \xc3\xa9=null@3 ");
    CHECK_INT(put(&w, "4", "b", "2", &a), 0);
    CHECK_INT(put(&w, "5", "a", NULL, &a), 0);
    CHECK_STR(a.text, "{\"collection\":\"notes\",\"key\":\"a\",\"version\":5,\"deleted\":true}");
    CHECK_INT(put(&w, "6", "a", NULL, &a), 0);
    CHECK_STR(a.text, "{\"collection\":\"notes\",\"key\":\"a\",\"deleted\":false}");
    CHECK_STR(shown(&w, "notes"), "b=2@4 c/d \xc3\xa9=null@3 ");
    CHECK_STR(w.heard, "hub.started doc.put doc.put doc.put doc.put doc.deleted request.done ");
    CHECK_INT(weft__collection_count(w.engine, "notes"), 2);
    CHECK_STR(weft__collection_after(w.engine, NULL), "notes");
    CHECK(!weft__collection_after(w.engine, "notes"));
    CHECK(!weft__item_find(w.engine, "notes", "a"));
    CHECK(!weft__item_find(w.engine, "other", "b"));
    engine_end(&w);
}

TEST(a_change_may_expect_a_version) {
    engine_world w;
    answered a, b, c;
    engine_begin(&w, play_store());
    CHECK_INT(change_if(&w, "1", "k", "1", 1, &a), 1); /* there is none */
    CHECK_INT(change_if(&w, "2", "k", "1", 0, &a), 0);
    CHECK_INT(change_if(&w, "3", "k", "2", 0, &a), 1);
    CHECK_STR(a.text, "-116"); /* -ESTALE */
    CHECK_INT(change_if(&w, "4", "k", "2", 1, &a), 0);
    CHECK_INT(change_if(&w, "5", "k", NULL, 1, &a), 1);
    CHECK_INT(change_if(&w, "6", "k", NULL, 2, &a), 0);
    CHECK_INT(change_if(&w, "7", "k", "3", 0, &a), 0);
    CHECK_STR(shown(&w, "notes"), "k=3@4 "); /* the number was not used again */
    /* Those that expect something wait for those before them; what comes behind them waits too. */
    CHECK_INT(begin_change(&w, "ann", "8", "notes", "k", "4", -1, &a), 0);
    CHECK_INT(begin_change(&w, "ann", "9", "notes", "k", "5", 5, &b), 0);
    CHECK_INT(begin_change(&w, "ann", "10", "notes", "k", NULL, -1, &c), 0);
    CHECK(engine_wait(&w, &c.times, 1));
    CHECK(a.r == 0 && b.r == 0 && c.r == 0);
    CHECK_STR(b.text, "{\"collection\":\"notes\",\"key\":\"k\",\"version\":6}");
    CHECK_STR(shown(&w, "notes"), "");
    /* Two that expect the same: one of them is too late. */
    CHECK_INT(begin_change(&w, "ann", "11", "notes", "k", "6", 0, &a), 0);
    CHECK_INT(begin_change(&w, "ben", "11", "notes", "k", "7", 0, &b), 0);
    CHECK(engine_wait(&w, &b.times, 1));
    CHECK_INT(a.r, 0);
    CHECK_INT(b.r, -ESTALE);
    CHECK_STR(shown(&w, "notes"), "k=6@8 ");
    engine_end(&w);
}

TEST(names_and_sizes_have_limits) {
    static char key[WEFT_ITEM_KEY + 2], name[WEFT_COLLECTION_NAME + 2];
    engine_world w;
    answered a;
    memset(key, 'k', sizeof key - 1);
    memset(name, 'n', sizeof name - 1);
    engine_begin(&w, play_store());
    static const char *const bad[] = {"", "1a", "a b", "a/b", "-a", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK(!weft__collection_is_name(bad[i]));
    CHECK(weft__collection_is_name("A.b-c_9"));
    CHECK(!weft__collection_is_name(name));
    CHECK(!weft__item_is_key(key));
    CHECK(!weft__item_is_key("") && !weft__item_is_key("a\nb") && !weft__item_is_key("a\x7f"));
    key[WEFT_ITEM_KEY] = name[WEFT_COLLECTION_NAME] = '\0';
    begin_change(&w, "ann", "1", name, key, "1", -1, &a);
    CHECK(engine_wait(&w, &a.times, 1) && a.r == 0);
    CHECK_INT(weft__item_find(w.engine, name, key)->version, 1);
    char *large = malloc(WEFT_ITEM_BYTES + 8);
    memset(large, ' ', WEFT_ITEM_BYTES + 1);
    weft_item_change change = {.collection = "notes", .key = "x", .value = {large, WEFT_ITEM_BYTES + 1, NULL}, .expect = -1};
    CHECK_INT(weft__item_change(w.engine, &change, NULL, NULL), -EMSGSIZE);
    change.key = "";
    change.value.len = 1;
    CHECK_INT(weft__item_change(w.engine, &change, NULL, NULL), -EINVAL);
    change.value.text = NULL;
    change.value.len = 0;
    change.key = "x";
    CHECK_INT(weft__item_change(w.engine, &change, NULL, NULL), 1); /* nothing to delete, and nobody to tell */
    free(large);
    engine_end(&w);
}

static void count_change(void *ctx, int r, uint64_t version) {
    int *counts = ctx;
    (void) version;
    counts[r == 0 ? 0 : r == -EDQUOT ? 1 : 2]++;
}

/* Several at a time, of which only the first finds something to delete: each is stored once, and none is started again by
 * the end of the one before it. */
TEST(nothing_is_deleted_several_times) {
    engine_world w;
    answered a[4];
    char id[8];
    engine_begin(&w, play_store());
    CHECK_INT(put(&w, "first", "k", "0", &a[0]), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(id, sizeof id, "%d", i);
        CHECK_INT(begin_change(&w, "ann", id, "notes", "k", NULL, -1, &a[i]), 0);
    }
    CHECK_INT(begin_change(&w, "ann", "put", "notes", "k", "1", 0, &a[3]), 0);
    CHECK(engine_wait(&w, &a[3].times, 1));
    for (int i = 0; i < 4; i++)
        CHECK(a[i].times == 1 && a[i].r == 0);
    CHECK_STR(shown(&w, "notes"), "k=1@3 ");
    CHECK_STR(w.heard, "hub.started doc.put doc.deleted request.done request.done doc.put ");
    engine_end(&w);
}

/* 1,000 collections, and no more. */
TEST(there_are_only_so_many_collections) {
    engine_world w;
    char name[32];
    int counts[3] = {0};
    engine_begin(&w, play_store());
    for (int i = 0; i < WEFT_COLLECTIONS; i++) {
        snprintf(name, sizeof name, "c%d", i);
        weft_item_change change = {.collection = name, .key = "x", .value = {"1", 1, NULL}, .expect = -1};
        CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), 0);
    }
    weft_item_change more = {.collection = "more", .key = "x", .value = {"1", 1, NULL}, .expect = -1};
    CHECK_INT(weft__item_change(w.engine, &more, count_change, counts), -EDQUOT);
    CHECK(engine_wait(&w, &counts[0], WEFT_COLLECTIONS));
    more.collection = "c7";
    more.key = "y";
    CHECK_INT(weft__item_change(w.engine, &more, count_change, counts), 0);
    CHECK(engine_wait(&w, &counts[0], WEFT_COLLECTIONS + 1));
    /* One goes when its last value does. */
    weft_item_change gone = {.collection = "c8", .key = "x", .expect = -1};
    CHECK_INT(weft__item_change(w.engine, &gone, count_change, counts), 0);
    CHECK(engine_wait(&w, &counts[0], WEFT_COLLECTIONS + 2));
    more.collection = "more";
    CHECK_INT(weft__item_change(w.engine, &more, count_change, counts), 0);
    CHECK(engine_wait(&w, &counts[0], WEFT_COLLECTIONS + 3));
    engine_end(&w);
}

/* All values together: 128 MiB. */
TEST(there_are_only_so_many_bytes) {
    engine_world w;
    char key[32];
    int counts[3] = {0}, sent = 0, refused = 0;
    char *large = malloc(WEFT_ITEM_BYTES);
    memset(large, '1', WEFT_ITEM_BYTES);
    engine_begin(&w, play_store());
    weft_item_change change = {.collection = "c", .key = key, .value = {large, WEFT_ITEM_BYTES, NULL}, .expect = -1};
    for (; sent < 600 && !refused; sent++) {
        snprintf(key, sizeof key, "%d", sent);
        int r = weft__item_change(w.engine, &change, count_change, counts);
        refused += r == -EDQUOT;
        CHECK(r == 0 || r == -EDQUOT);
        if (r == 0)
            CHECK(engine_wait(&w, &counts[0], sent + 1));
    }
    CHECK_INT(sent, (int) (WEFT_ITEMS_BYTES / WEFT_ITEM_BYTES) + 1);
    snprintf(key, sizeof key, "0"); /* to delete is always possible, and makes room */
    weft_item_change gone = {.collection = "c", .key = key, .expect = -1};
    CHECK_INT(weft__item_change(w.engine, &gone, count_change, counts), 0);
    CHECK(engine_wait(&w, &counts[0], sent));
    CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), 0);
    CHECK(engine_wait(&w, &counts[0], sent + 1));
    free(large);
    engine_end(&w);
}

/* The last that fits, and the first that does not; a value that is there may always be replaced. */
TEST(there_are_only_so_many_values) {
    engine_world w;
    char key[32];
    int counts[3] = {0};
    engine_open(&w, play_store());
    w.opts.limits.max_items = 5;
    CHECK_INT(world_start(&w), 0);
    weft_item_change change = {.collection = "c", .key = key, .value = {"1", 1, NULL}, .expect = -1};
    for (int i = 0; i < 5; i++) {
        snprintf(key, sizeof key, "%d", i);
        CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), 0);
        CHECK(engine_wait(&w, &counts[0], i + 1));
    }
    snprintf(key, sizeof key, "more");
    CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), -EDQUOT);
    change.collection = "another"; /* all collections count together */
    CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), -EDQUOT);
    change.collection = "c";
    snprintf(key, sizeof key, "0");
    CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), 0);
    CHECK(engine_wait(&w, &counts[0], 6));
    weft_item_change gone = {.collection = "c", .key = "4", .expect = -1};
    CHECK_INT(weft__item_change(w.engine, &gone, count_change, counts), 0);
    CHECK(engine_wait(&w, &counts[0], 7));
    snprintf(key, sizeof key, "more");
    CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), 0);
    CHECK(engine_wait(&w, &counts[0], 8));
    CHECK_INT(w.engine->item_count, 5);
    /* Those that are under way count too: two for one place. */
    gone.key = "more";
    CHECK_INT(weft__item_change(w.engine, &gone, count_change, counts), 0);
    CHECK(engine_wait(&w, &counts[0], 9));
    snprintf(key, sizeof key, "one");
    CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), 0);
    snprintf(key, sizeof key, "two");
    CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), -EDQUOT);
    engine_end(&w);
    weft_engine_limits usual = *weft__engine_limits((engine_begin(&w, play_store()), w.engine));
    CHECK_INT(usual.max_items, 100000);
    CHECK_INT(usual.max_item_changes, 4096);
    CHECK_INT(usual.max_request_bytes, 32 << 20);
    engine_end(&w);
}

TEST(only_so_many_changes_are_under_way) {
    engine_world w;
    char key[32];
    int counts[3] = {0};
    engine_open(&w, play_store());
    w.opts.limits.max_item_changes = 3;
    CHECK_INT(world_start(&w), 0);
    weft_item_change change = {.collection = "c", .key = key, .value = {"1", 1, NULL}, .expect = -1};
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 3; i++) {
            snprintf(key, sizeof key, "%d", i);
            CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), 0);
        }
        CHECK_INT(weft__item_change(w.engine, &change, count_change, counts), -EUSERS);
        CHECK(engine_wait(&w, &counts[0], 3 * (turn + 1))); /* and then there is room again */
    }
    engine_end(&w);
}

static size_t segments(const engine_world *w) {
    size_t count = 0;
    for (weft_link *link = w->engine->request_segments.next; link != &w->engine->request_segments; link = link->next)
        count++;
    return count;
}

/* Until there is a second segment. */
static void fill_segment(engine_world *w) {
    answered a;
    char id[16];
    snprintf(id, sizeof id, "first");
    for (int i = 0; segments(w) < 2 && i < 2000; i++) {
        if (!CHECK_INT(put(w, id, "k", "1", &a), 0))
            return;
        engine_settle(w);
        snprintf(id, sizeof id, "%d", i);
    }
}

/* Answers are remembered up to so many bytes. One byte more, and the oldest go, a segment at a time; the last one stays. */
TEST(only_so_many_bytes_of_answers_are_remembered) {
    engine_world w;
    answered a;
    engine_begin(&w, play_store());
    fill_segment(&w);
    CHECK_INT(segments(&w), 2);
    size_t bytes = w.engine->request_bytes;
    engine_end(&w);
    for (size_t less = 0; less < 2; less++) {
        engine_open(&w, play_store());
        w.opts.limits.max_request_bytes = bytes - less;
        CHECK_INT(world_start(&w), 0);
        uint64_t before = w.engine->next_segment;
        for (int i = 0; w.engine->next_segment < before + 2 && i < 2000; i++) {
            char id[16];
            snprintf(id, sizeof id, i ? "%d" : "first", i - 1);
            CHECK_INT(put(&w, id, "k", "1", &a), 0);
            engine_settle(&w);
        }
        CHECK(w.engine->request_bytes <= bytes - less);
        CHECK_INT(segments(&w), 2 - less);
        CHECK_INT(put(&w, "first", "k", "1", &a), less ? -EEXIST : 0); /* refused, and not done again */
        CHECK(less || a.repeat);
        engine_end(&w);
    }
}

/* ---- repeats ---- */

TEST(a_repeat_gets_the_first_answer) {
    engine_world w;
    answered a, b, c;
    engine_begin(&w, play_store());
    CHECK_INT(put(&w, "1", "k", "{\"a\":1,\"b\":2}", &a), 0);
    CHECK_INT(put(&w, "2", "k", "2", &b), 0);
    CHECK_INT(put(&w, "1", "k", "{ \"b\": 2.0, \"a\":1}", &b), 0); /* the same in other words */
    CHECK_STR(b.text, a.text);
    CHECK(b.repeat && !a.repeat);
    CHECK_STR(shown(&w, "notes"), "k=2@2 ");
    CHECK_INT(put(&w, "1", "k", "{\"a\":1}", &b), -ENOTUNIQ);
    CHECK_INT(put(&w, "1", "k", NULL, &b), -ENOTUNIQ);
    /* Another caller has ids of its own. */
    CHECK_INT(begin_change(&w, "ben", "1", "notes", "k", "3", -1, &b), 0);
    CHECK(engine_wait(&w, &b.times, 1) && b.r == 0);
    CHECK_STR(shown(&w, "notes"), "k=3@3 ");
    /* In the same turn: one is done, both are told. */
    CHECK_INT(begin_change(&w, "ann", "x", "notes", "k", "4", -1, &a), 0);
    CHECK_INT(begin_change(&w, "ann", "x", "notes", "k", "4", -1, &b), 1);
    CHECK_INT(begin_change(&w, "ann", "x", "notes", "k", "5", -1, &c), -ENOTUNIQ);
    CHECK(engine_wait(&w, &b.times, 1) && a.r == 0 && b.r == 0);
    CHECK_STR(a.text, b.text);
    CHECK(!a.repeat && b.repeat);
    CHECK_STR(shown(&w, "notes"), "k=4@4 ");
    /* What is no id. */
    static char long_id[WEFT_REQUEST_ID + 2];
    memset(long_id, 'i', sizeof long_id - 1);
    CHECK_INT(put(&w, long_id, "k", "1", &a), -EINVAL);
    CHECK_INT(put(&w, "", "k", "1", &a), -EINVAL);
    long_id[WEFT_REQUEST_ID] = '\0';
    CHECK_INT(put(&w, long_id, "k", "1", &a), 0);
    engine_end(&w);
}

TEST(a_refusal_is_not_remembered) {
    engine_world w;
    answered a;
    engine_begin(&w, play_store());
    CHECK_INT(change_if(&w, "1", "k", "2", 1, &a), 1);
    CHECK_INT(put(&w, "0", "k", "1", &a), 0);
    CHECK_INT(change_if(&w, "1", "k", "2", 1, &a), 0);
    play_store_fails = -ENOSPC;
    CHECK_INT(put(&w, "2", "k", "3", &a), -ENOSPC);
    CHECK_STR(shown(&w, "notes"), "k=2@2 ");
    play_store_fails = 0;
    CHECK_INT(put(&w, "2", "k", "3", &a), 0);
    CHECK(!a.repeat);
    CHECK_STR(shown(&w, "notes"), "k=3@4 ");
    /* One with an expectation, behind one that fails. */
    answered b;
    play_store_fails = -EIO;
    CHECK_INT(begin_change(&w, "ann", "3", "notes", "k", "4", -1, &a), 0);
    CHECK_INT(begin_change(&w, "ann", "4", "notes", "k", "5", 5, &b), 0);
    CHECK(engine_wait(&w, &a.times, 1));
    play_store_fails = 0;
    CHECK(engine_wait(&w, &b.times, 1));
    CHECK_INT(a.r, -EIO);
    CHECK_INT(b.r, -ESTALE);
    engine_end(&w);
}

TEST(everything_is_there_after_a_restart) {
    engine_world w;
    answered a, b;
    char id[16], key[16];
    engine_begin(&w, &weft__sqlite);
    CHECK_INT(put(&w, "first", "k", "1", &a), 0);
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "id%d", i);
        snprintf(key, sizeof key, "key%d", i % 10);
        CHECK_INT(put(&w, id, key, i % 3 ? "[1]" : NULL, &b), 0);
    }
    char before[1024];
    snprintf(before, sizeof before, "%s", shown(&w, "notes"));
    for (int turn = 0; turn < 4; turn++) {
        if (turn == 2) { /* saved, and then killed; saved and stopped */
            weft__save(w.engine);
            ENGINE_UNTIL(&w, !w.engine->saving);
        }
        if (turn == 3) {
            weft__engine_stop(w.engine, false, world_stopped, &w);
            CHECK(engine_wait(&w, &w.stopped, 1));
        }
        engine_restart(&w);
        CHECK_STR(shown(&w, "notes"), before);
        CHECK_INT(put(&w, "first", "k", "1", &b), 0);
        CHECK(b.repeat);
        CHECK_STR(b.text, a.text);
        CHECK_INT(put(&w, "id199", "key9", "[2]", &b), -ENOTUNIQ);
        CHECK_INT(put(&w, "id199", "key9", "[1]", &b), 0);
        CHECK(b.repeat);
        CHECK_INT(w.engine->request_count, 201 + (size_t) turn);
        snprintf(id, sizeof id, "turn%d", turn); /* and another one, which the next start must know */
        CHECK_INT(put(&w, id, "k", "1", &b), 0);
        CHECK(!b.repeat);
        snprintf(before, sizeof before, "%s", shown(&w, "notes"));
    }
    /* The version goes on, although the value with the highest was deleted and that was saved. */
    CHECK_INT(put(&w, "gone", "k", NULL, &b), 0);
    uint64_t next = w.engine->next_version;
    weft__save(w.engine);
    ENGINE_UNTIL(&w, !w.engine->saving);
    engine_restart(&w);
    CHECK_INT(w.engine->next_version, next);
    engine_end(&w);
}

/* More than are remembered: the oldest is refused, because the store knows its id, and is not done again. */
/* After a clean stop the engine is ready before it has read them: meanwhile nothing may be done that was done before. */
TEST(nothing_is_done_before_the_past_is_known) {
    engine_world w;
    answered a, b;
    char id[16];
    engine_open(&w, &weft__sqlite);
    w.opts.early = true;
    CHECK_INT(world_start(&w), 0);
    for (int i = 0; i < 200; i++) {
        snprintf(id, sizeof id, "id%d", i);
        CHECK_INT(put(&w, id, id, "1", &a), 0);
    }
    weft__engine_stop(w.engine, false, world_stopped, &w);
    CHECK(engine_wait(&w, &w.stopped, 1));
    engine_crash(&w);
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(weft__engine_past(w.engine), -EAGAIN);
    CHECK_INT(put(&w, "id7", "id7", "1", &b), -EAGAIN);
    CHECK_INT(
        weft__item_change(w.engine, &(weft_item_change){.collection = "notes", .key = "id7", .expect = -1}, NULL, NULL),
        -EAGAIN);
    ENGINE_UNTIL(&w, weft__engine_past(w.engine) == 0);
    CHECK_INT(w.engine->request_count, 200);
    CHECK_INT(put(&w, "id199", "id199", "1", &b), 0);
    CHECK(b.repeat);
    CHECK_STR(b.text, a.text);
    CHECK_INT(put(&w, "id7", "id7", "2", &b), -ENOTUNIQ);
    CHECK_INT(put(&w, "new", "id7", "2", &b), 0);
    CHECK(!b.repeat);
    engine_end(&w);
}

TEST(what_is_forgotten_is_not_done_again) {
    engine_world w;
    answered a, last;
    char id[16];
    engine_open(&w, play_store());
    w.opts.limits.max_requests = 300;
    CHECK_INT(world_start(&w), 0);
    CHECK_INT(put(&w, "first", "k", "1", &a), 0);
    for (int i = 0; i < 1000; i++) {
        snprintf(id, sizeof id, "%d", i);
        CHECK_INT(put(&w, id, "other", "1", &last), 0);
        engine_settle(&w);
        CHECK(w.engine->request_count <= 300);
    }
    CHECK(w.engine->request_count > 200);
    CHECK_INT(put(&w, "first", "k", "1", &a), -EEXIST);
    CHECK_INT(weft__item_find(w.engine, "notes", "k")->version, 1);
    CHECK_INT(put(&w, id, "other", "1", &last), 0);
    CHECK(last.repeat);
    engine_end(&w);
}

/* Time that a daemon was there for. */
static void let_days_pass(engine_world *w, int days) {
    w->steady += (int64_t) days * 24 * 3600 * 1000;
    world_forget(w);
    CHECK_INT(weft__engine_append(w->engine, "hub", "notice", WEFT_OBJ({"message", weft_str("x")}), NULL, NULL), 0);
    ENGINE_UNTIL(w, strstr(w->heard, "notice ") != NULL);
    weft__retention_start(w->engine);
    ENGINE_UNTIL(w, !w->engine->retaining);
    engine_settle(w);
}

/* None is remembered longer than its event, and then nobody knows its id any more: it is a new one. A segment goes when all
 * of it is old. */
TEST(old_ones_are_forgotten_with_their_events) {
    static const weft_store_kind *const kinds[] = {&weft__memory, &weft__sqlite};
    for (size_t i = 0; i < 2; i++) {
        engine_world w;
        answered a;
        engine_begin(&w, kinds[i]);
        fill_segment(&w);
        size_t count = w.engine->request_count;
        let_days_pass(&w, 0);
        let_days_pass(&w, 29);
        CHECK_INT(put(&w, "first", "k", "1", &a), 0);
        CHECK(a.repeat);
        if (i) /* what is in memory does not last */
            engine_restart(&w);
        CHECK_INT(w.engine->request_count, count);
        let_days_pass(&w, 2);
        CHECK_INT(w.engine->request_count, 1); /* of the segment that is not full */
        CHECK_INT(segments(&w), 1);
        if (i) /* what is in memory does not last */
            engine_restart(&w);
        CHECK_INT(w.engine->request_count, 1);
        CHECK_INT(put(&w, "first", "k", "2", &a), 0);
        CHECK(!a.repeat);
        CHECK_INT(put(&w, "first", "k", "2", &a), 0);
        CHECK(a.repeat);
        engine_end(&w);
    }
}

TEST(so_many_may_be_under_way) {
    engine_world w;
    char id[16];
    weft_request *open[WEFT_REQUESTS_AT_ONCE], *more;
    answered a = {0};
    engine_begin(&w, play_store());
    weft_request_spec spec = {.by = "ann", .id = id, .name = "x"};
    for (int i = 0; i < WEFT_REQUESTS_AT_ONCE; i++) {
        snprintf(id, sizeof id, "%d", i);
        CHECK_INT(weft__request_begin(w.engine, &spec, on_answered, &a, &open[i]), 0);
    }
    spec.id = "more";
    CHECK_INT(weft__request_begin(w.engine, &spec, on_answered, &a, &more), -EUSERS);
    spec.id = "7";
    for (int i = 0; i < WEFT_REQUESTS_AT_ONCE; i++)
        CHECK_INT(weft__request_begin(w.engine, &spec, on_answered, &a, &more), 1);
    CHECK_INT(weft__request_begin(w.engine, &spec, on_answered, &a, &more), -EUSERS);
    weft__request_refuse(open[7], weft_str("no"));
    CHECK_INT(a.times, 1 + WEFT_REQUESTS_AT_ONCE);
    CHECK_STR(a.text, "\"no\"");
    spec.id = "more";
    CHECK_INT(weft__request_begin(w.engine, &spec, on_answered, &a, &more), 0);
    /* The rest end with the engine. */
    engine_end(&w);
    CHECK_INT(a.times, 2 * WEFT_REQUESTS_AT_ONCE + 1);
    CHECK_INT(a.r, -ECANCELED);
}

/* ---- sessions and tasks ---- */

static void on_session(void *ctx, int r, const weft_session *session, const char *error) {
    (void) session, (void) error;
    weft__request_settle(ctx, r);
}

static void on_task(void *ctx, int r, const weft_task *task) {
    (void) task;
    weft__request_settle(ctx, r);
}

static int begin_named(engine_world *w, const char *id, const char *name, answered *ret, weft_request **ret_request) {
    *ret = (answered){0};
    return weft__request_begin(w->engine, &(weft_request_spec){.by = "ann", .id = id, .name = name}, on_answered, ret,
                               ret_request);
}

TEST(sessions_and_tasks_are_requests_too) {
    engine_world w;
    answered a;
    weft_request *request;
    weft_doc *title;
    engine_begin(&w, &weft__sqlite);
    REQUIRE(weft_doc_parse("\"New\"", 5, NULL, &title) == 0);
    for (int round = 0; round < 2; round++) {
        if (begin_named(&w, "1", "create", &a, &request) == 0)
            CHECK_INT(weft__session_create(w.engine, &(weft_session_order){.request = request}, on_session, request), 0);
        CHECK(engine_wait(&w, &a.times, 1));
        CHECK_STR(a.text, "{\"sessionId\":\"session-0000\"}");
        if (begin_named(&w, "2", "rename", &a, &request) == 0)
            CHECK_INT(weft__session_set_for(w.engine, request, "session-0000",
                                            &(weft_session_setting){"title", NULL, *weft_doc_root(title)}, "ann", on_session,
                                            request),
                      0);
        CHECK(engine_wait(&w, &a.times, 1));
        CHECK_STR(a.text, "{\"sessionId\":\"session-0000\"}");
        if (begin_named(&w, "3", "post", &a, &request) == 0)
            CHECK_INT(weft__task_submit(w.engine,
                                        &(weft_task_spec){.prompt = "x", .session = "session-0000", .request = request},
                                        on_task, request),
                      0);
        CHECK(engine_wait(&w, &a.times, 1));
        CHECK_STR(a.text, "{\"sessionId\":\"session-0000\",\"taskId\":\"task-0001\"}");
        if (begin_named(&w, "4", "close", &a, &request) == 0) {
            CHECK_INT(weft__session_close_for(w.engine, request, "session-0000", "ann", on_session, request), 0);
            ENGINE_UNTIL(&w, play_of("task-0001") && play_of("task-0001")->cancels);
            play_end(play_of("task-0001"), false);
        }
        CHECK(engine_wait(&w, &a.times, 1));
        CHECK_STR(a.text, "{\"sessionId\":\"session-0000\"}");
        CHECK_INT(a.repeat, round);
        CHECK_INT(weft__task_counts(w.engine).of[WEFT_TASK_CANCELLED], 1);
        CHECK(weft__session_find(w.engine, "session-0000")->closed);
        if (round == 0)
            engine_restart(&w);
    }
    if (begin_named(&w, "5", "delete", &a, &request) == 0)
        CHECK_INT(weft__session_remove_for(w.engine, request, "session-0000", "ann", on_session, request), 0);
    CHECK(engine_wait(&w, &a.times, 1) && a.r == 0);
    CHECK(!weft__session_find(w.engine, "session-0000"));
    CHECK_INT(begin_named(&w, "5", "delete", &a, &request), 1);
    CHECK(engine_wait(&w, &a.times, 1) && a.r == 0);
    CHECK_INT(weft__task_submit(w.engine, &(weft_task_spec){.prompt = "x", .key = "k", .request = request}, NULL, NULL),
              -EINVAL);
    weft_doc_free(title);
    engine_end(&w);
}

/* ---- actions ---- */

typedef struct act {
    int begun, r;
} act;

static void on_begun(void *ctx, int r) {
    act *it = ctx;
    it->begun++;
    it->r = r;
}

TEST(an_action_is_done_at_most_once) {
    engine_world w;
    answered a, b;
    act it = {0};
    weft_request *request;
    engine_begin(&w, &weft__sqlite);
    /* It begins, is done, and its end is remembered, a refusal too. */
    CHECK_INT(begin_named(&w, "1", "commit", &a, &request), 0);
    CHECK_INT(weft__request_act(request, on_begun, &it), 0);
    CHECK(engine_wait(&w, &it.begun, 1) && it.r == 0);
    CHECK_INT(begin_named(&w, "1", "commit", &b, &request), 1); /* meanwhile: it waits */
    CHECK_INT(a.times + b.times, 0);
    weft__request_acted(request, weft_str("abc"), weft_none());
    CHECK(engine_wait(&w, &b.times, 1));
    CHECK_STR(a.text, "\"abc\"");
    CHECK_STR(b.text, "\"abc\"");
    CHECK_INT(begin_named(&w, "2", "commit", &a, &request), 0);
    CHECK_INT(weft__request_act(request, on_begun, &it), 0);
    CHECK(engine_wait(&w, &it.begun, 2));
    weft__request_acted(request, weft_none(), weft_str("nothing to commit"));
    CHECK(engine_wait(&w, &a.times, 1));
    CHECK_INT(a.r, 1);
    /* It begins, and the daemon dies. */
    CHECK_INT(begin_named(&w, "3", "commit", &a, &request), 0);
    CHECK_INT(weft__request_act(request, on_begun, &it), 0);
    CHECK(engine_wait(&w, &it.begun, 3));
    for (int round = 0; round < 3; round++) {
        if (round == 1) {
            weft__save(w.engine);
            ENGINE_UNTIL(&w, !w.engine->saving);
        }
        engine_restart(&w);
        CHECK_INT(begin_named(&w, "3", "commit", &a, &request), 1);
        CHECK(engine_wait(&w, &a.times, 1));
        CHECK_INT(a.r, -EOWNERDEAD);
        CHECK_INT(begin_named(&w, "2", "commit", &a, &request), 1);
        CHECK(engine_wait(&w, &a.times, 1));
        CHECK_INT(a.r, 1);
        CHECK_STR(a.text, "\"nothing to commit\"");
        CHECK_INT(begin_named(&w, "1", "commit", &a, &request), 1);
        CHECK(engine_wait(&w, &a.times, 1));
        CHECK_STR(a.text, "\"abc\"");
    }
    engine_end(&w);
}

TEST(an_action_whose_beginning_is_not_stored_is_not_done) {
    engine_world w;
    answered a;
    act it = {0};
    weft_request *request;
    engine_begin(&w, play_store());
    play_store_fails = -ENOSPC;
    CHECK_INT(begin_named(&w, "1", "commit", &a, &request), 0);
    CHECK_INT(weft__request_act(request, on_begun, &it), 0);
    CHECK(engine_wait(&w, &it.begun, 1));
    CHECK_INT(it.r, -ENOSPC);
    weft__request_settle(request, it.r);
    CHECK_INT(a.r, -ENOSPC);
    play_store_fails = 0;
    CHECK_INT(begin_named(&w, "1", "commit", &a, &request), 0); /* it may be tried again */
    CHECK_INT(weft__request_act(request, on_begun, &it), 0);
    CHECK(engine_wait(&w, &it.begun, 2) && it.r == 0);
    /* Its end cannot be stored: nobody is told that it was done, and it is not done again. */
    play_store_fails = -ENOSPC;
    weft__request_acted(request, weft_str("abc"), weft_none());
    CHECK(engine_wait(&w, &a.times, 1));
    CHECK_INT(a.r, -ENOSPC);
    play_store_fails = 0;
    CHECK_INT(begin_named(&w, "1", "commit", &a, &request), 1);
    CHECK(engine_wait(&w, &a.times, 1));
    CHECK_INT(a.r, -EOWNERDEAD);
    engine_end(&w);
}

/* ---- every allocation ---- */

static void memory_scene(engine_world *w) {
    answered a[4] = {{0}};
    act it = {0};
    weft_request *request;
    static const char *const values[] = {"1", "{\"a\":[2]}", NULL, "3"};
    for (int i = 0; i < 4; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        int r = begin_change(w, "ann", id, "notes", i == 3 ? "other" : "k", values[i], i == 1 ? 1 : -1, &a[i]);
        CHECK(r == 0 || r == -ENOMEM);
        if (r == 0)
            CHECK(engine_wait(w, &a[i].times, 1));
        CHECK(a[i].r <= 1);
    }
    if (begin_named(w, "act", "commit", &a[0], &request) == 0) {
        int r = weft__request_act(request, on_begun, &it);
        if (r < 0)
            weft__request_settle(request, r);
        else if (CHECK(engine_wait(w, &it.begun, 1)) && it.r == 0)
            weft__request_acted(request, weft_str("done"), weft_none());
        else
            weft__request_settle(request, it.r);
        CHECK(engine_wait(w, &a[0].times, 1));
    }
    weft__save(w->engine);
    engine_settle(w);
}

/* What was acknowledged is there afterwards; the engine starts from it with memory. */
TEST(every_allocation_fails_once) {
    for (long at = 1; at < 2000; at++) {
        engine_world w;
        test_memory memory;
        store_world store;
        world_init(&store, play_store());
        REQUIRE(world_open(&store));
        memset(&w, 0, sizeof w);
        w.store = store;
        REQUIRE(weft_loop_new(NULL, &w.loop) == 0);
        test_memory_init(&memory, 0);
        w.opts.alloc = &memory.alloc;
        memory.fail_at = at;
        if (world_start(&w) == 0)
            memory_scene(&w);
        bool over = memory.count < at;
        memory.fail_at = 0;
        if (w.engine && w.ready_r == 0 && w.ready) {
            answered a;
            engine_settle(&w);
            CHECK_INT(put(&w, "last", "k", "9", &a), 0);
        }
        w.engine = weft__engine_free(w.engine);
        weft__store_dispatch(store.store);
        CHECK_INT(memory.live, 0);
        weft_loop_free(w.loop);
        world_done(&store);
        play_reset();
        if (over)
            return;
    }
    CHECK(false);
}

TEST_MAIN(CASE(values_are_kept_in_the_order_of_their_keys) CASE(a_change_may_expect_a_version)
              CASE(names_and_sizes_have_limits) CASE(nothing_is_deleted_several_times)
                  CASE(there_are_only_so_many_collections) CASE(there_are_only_so_many_bytes)
                      CASE(there_are_only_so_many_values) CASE(only_so_many_changes_are_under_way)
                          CASE(only_so_many_bytes_of_answers_are_remembered) CASE(a_repeat_gets_the_first_answer)
                              CASE(a_refusal_is_not_remembered) CASE(everything_is_there_after_a_restart)
                                  CASE(nothing_is_done_before_the_past_is_known) CASE(what_is_forgotten_is_not_done_again)
                                      CASE(old_ones_are_forgotten_with_their_events) CASE(so_many_may_be_under_way)
                                          CASE(sessions_and_tasks_are_requests_too) CASE(an_action_is_done_at_most_once)
                                              CASE(an_action_whose_beginning_is_not_stored_is_not_done)
                                                  CASE(every_allocation_fails_once))

/* What every store must do. Joining it is one line, and its name in the list of cases:
 *
 *     STORE_SUITE(memory)
 *     STORE_SUITE(sqlite, .lasting = true, .one_writer = true)
 *     TEST_MAIN(CASE(store_memory) CASE(store_sqlite))
 */
#ifndef SUITES_STORE_H
#define SUITES_STORE_H

#include "store/world.h"
#include "store_kind.h"

typedef struct store_case {
    const weft_store_kind *kind;
    bool one_writer;                     /* a second store does not open the journal */
    void (*prepare)(store_world *world); /* NULL: a path is all it needs */
} store_case;

#define STORE_SUITE(suite, ...)                                                                                             \
    TEST(store_##suite) {                                                                                                   \
        static const store_case which = {.kind = &weft__##suite, __VA_ARGS__};                                              \
        store_suite(&which);                                                                                                \
    }

static void store_world_init(const store_case *which, store_world *world) {
    world_init(world, which->kind);
    if (which->prepare)
        which->prepare(world);
}

/* Order and content */

static void store_orders(store_world *world) {
    store_outcome outcome;
    weft_event events[] = {world_event("a", "1"), world_event("b", "2"), world_event("a", "3")};
    events[1].data = (weft_bytes){"\0x\xff", 3};
    CHECK_INT(world_append(world, "a", "0"), 0);
    outcome = (store_outcome){0};
    CHECK_INT(weft__store_append(world->store, &(weft_append){events, 3, NULL}, world_appended, &outcome), 0);
    CHECK_INT(outcome.times, 0); /* never inside the call */
    world_wait(world, &outcome.times, 1);
    CHECK_INT(outcome.r, 0);
    CHECK_INT(outcome.seq, 2);
    CHECK_INT(outcome.gseq, 2);
    CHECK_INT(weft__store_head(world->store), 4);
    CHECK_INT(world_read(world, &(weft_query){.stream = "a"}, &outcome), 0);
    CHECK_STR(outcome.text, "1:0 2:1 3:3");
    CHECK_INT(outcome.head, 3);
    CHECK_INT(world_read(world, &(weft_query){0}, &outcome), 0);
    CHECK_INT(outcome.count, 4);
    CHECK_INT(outcome.last, 4);
    CHECK_INT(world_append(world, "b", ""), 0);
    CHECK_INT(world_read(world, &(weft_query){.stream = "b", .after = 1}, &outcome), 0);
    CHECK_STR(outcome.text, "2:");
    CHECK_INT(world_read(world, &(weft_query){.stream = "never"}, &outcome), 0);
    CHECK_INT(outcome.count, 0);
}

static void store_keep_bytes_done(void *ctx, int r, const weft_page *page) {
    int *times = ctx;
    ++*times;
    REQUIRE(r == 0 && page->count == 1);
    CHECK(page->events[0].data.len == 4 && memcmp(page->events[0].data.data, "\0\r\xfe\"", 4) == 0);
    CHECK_STR(page->events[0].stream, "bytes");
    CHECK_STR(page->events[0].type, "raw");
    CHECK_INT(page->events[0].time_ms, -5);
}

static void store_keeps_bytes(store_world *world) {
    int times = 0;
    store_outcome outcome = {0};
    weft_event event = {.stream = "bytes", .type = "raw", .data = {"\0\r\xfe\"", 4}, .time_ms = -5};
    CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, NULL}, world_appended, &outcome), 0);
    world_wait(world, &outcome.times, 1);
    CHECK_INT(weft__store_read(world->store, &(weft_query){0}, store_keep_bytes_done, &times), 0);
    world_wait(world, &times, 1);
}

/* Keys */

static void store_repeats(store_world *world) {
    store_outcome first, again, both[2] = {{0}};
    CHECK_INT(world_append_key(world, "a", "1", "k1", &first), 0);
    CHECK_INT(world_append(world, "a", "2"), 0);
    CHECK_INT(world_append_key(world, "a", "1", "k1", &again), 0);
    CHECK(again.repeat && !first.repeat);
    CHECK_INT(again.seq, first.seq);
    CHECK_INT(again.gseq, first.gseq);
    CHECK_INT(world_append_key(world, "b", "1", "k1", &again), -EEXIST);
    /* Twice before either is durable. */
    weft_event event = world_event("a", "3");
    for (int i = 0; i < 2; i++)
        CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, "k2"}, world_appended, &both[i]), 0);
    world_wait(world, &both[1].times, 1);
    CHECK(both[0].times == 1 && !both[0].repeat && both[1].repeat);
    CHECK_INT(both[1].seq, both[0].seq);
    CHECK_INT(world_read(world, &(weft_query){0}, &again), 0);
    CHECK_STR(again.text, "1:1 2:2 3:3");
}

static void store_repeats_several(store_world *world) {
    store_outcome outcome[2] = {{0}};
    weft_event events[] = {world_event("a", "1"), world_event("b", "2"), world_event("a", "3")};
    for (int i = 0; i < 2; i++) {
        CHECK_INT(weft__store_append(world->store, &(weft_append){events, 3, "key"}, world_appended, &outcome[i]), 0);
        world_wait(world, &outcome[i].times, 1);
    }
    CHECK(outcome[1].repeat && outcome[1].gseq == outcome[0].gseq && outcome[1].count == 3);
    CHECK_INT(weft__store_head(world->store), 3);
}

static void store_forgets_keys(store_world *world) {
    store_outcome outcome;
    CHECK_INT(world_append_key(world, "a", "1", "key", &outcome), 0);
    CHECK_INT(world_append(world, "a", "2"), 0);
    CHECK_INT(world_trim(world, &(weft_trim){.rows = 1}, &outcome), 0);
    CHECK_INT(world_append_key(world, "a", "1", "key", &outcome), 0);
    CHECK(!outcome.repeat);
    CHECK_INT(outcome.seq, 3);
}

/* Pages */

static void store_pages(store_world *world) {
    store_outcome outcome;
    world_fill(world, "a", 100);
    world_fill(world, "b", 3);
    uint64_t after = 0, pages = 0;
    do {
        CHECK_INT(world_read(world, &(weft_query){.stream = "a", .after = after, .max_events = 7}, &outcome), 0);
        CHECK_INT(outcome.last, after + outcome.count);
        after = outcome.last;
        pages++;
    } while (outcome.more && pages < 1000);
    CHECK_INT(after, 100);
    CHECK_INT(pages, 15);
    CHECK_INT(world_read(world, &(weft_query){.after = 98, .until = 101}, &outcome), 0);
    CHECK_STR(outcome.text, "99:99 100:100 1:1");
    CHECK_INT(world_read(world, &(weft_query){.stream = "b", .until = 102}, &outcome), 0);
    CHECK_STR(outcome.text, "1:1 2:2");
    CHECK(!outcome.more);
    /* Two bytes are "1" and "2"; a first event is given however large. */
    CHECK_INT(world_read(world, &(weft_query){.stream = "b", .max_bytes = 2}, &outcome), 0);
    CHECK_STR(outcome.text, "1:1 2:2");
    CHECK(outcome.more);
    CHECK_INT(world_read(world, &(weft_query){.stream = "a", .after = 98, .max_bytes = 1}, &outcome), 0);
    CHECK_STR(outcome.text, "99:99");
}

/* Edges */

static void store_edges(store_world *world) {
    store_outcome outcome;
    world_fill(world, "a", 10);
    CHECK_INT(world_trim(world, &(weft_trim){.rows = 6}, &outcome), 0);
    const char *epoch = weft__store_epoch(world->store);
    CHECK_INT(strlen(epoch), WEFT_EPOCH);
    const struct {
        weft_query query;
        int want;
        size_t count;
    } rows[] = {
        {{.stream = "a", .after = 10}, 0, 0},
        {{.stream = "a", .after = 11}, WEFT_GAP_FUTURE, 0},
        {{.stream = "a", .after = UINT64_MAX}, WEFT_GAP_FUTURE, 0},
        {{.stream = "a", .after = 4}, 0, 6},
        {{.stream = "a", .after = 3}, WEFT_GAP_TRIMMED, 0},
        {{.stream = "a"}, WEFT_GAP_TRIMMED, 0},
        {{.stream = "a", .oldest = true}, 0, 6},
        {{.stream = "a", .after = 7, .oldest = true}, 0, 3},
        {{.stream = "a", .after = 7, .epoch = epoch}, 0, 3},
        {{.stream = "a", .after = 7, .epoch = "another"}, WEFT_GAP_EPOCH, 0},
        {{.stream = "a", .after = 11, .epoch = "another"}, WEFT_GAP_EPOCH, 0},
        {{.stream = "new", .after = 0}, 0, 0},
        {{.stream = "new", .after = 1}, WEFT_GAP_FUTURE, 0},
        {{.after = 10}, 0, 0},
        {{.after = 11}, WEFT_GAP_FUTURE, 0},
        {{.after = 4}, 0, 6},
        {{.after = 3}, WEFT_GAP_TRIMMED, 0},
        {{.oldest = true}, 0, 6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_INT(world_read(world, &rows[i].query, &outcome), rows[i].want);
        CHECK_INT(outcome.count, rows[i].count);
    }
    CHECK_INT(outcome.trimmed, 4);
    CHECK_STR(weft__gap_name(WEFT_GAP_EPOCH), "epochChanged");
    CHECK_STR(weft__gap_name(WEFT_GAP_TRIMMED), "trimmed");
    CHECK_STR(weft__gap_name(WEFT_GAP_FUTURE), "futureSeq");
    CHECK(!weft__gap_name(0) && !weft__gap_name(-EIO));
}

/* Following */

typedef struct store_watch {
    store_world *world;
    weft_follow *follow;
    uint64_t last; /* the position of the last event */
    bool all, broken;
    int started, events, live, ended, why;
    int over;        /* live or ended */
    int append_more; /* appended from the callback, one at a time */
    int appended;
    int free_at;
    const weft_trim *trim_at; /* asked for when the first events have come */
} store_watch;

static void store_watch_appended(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    store_watch *watch = ctx;
    (void) count;
    (void) repeat;
    watch->appended++;
    watch->broken |= r < 0;
    /* What is live has been told before the writer is. */
    if (watch->live && watch->follow)
        watch->broken |= watch->last < (watch->all ? events[0].gseq : events[0].seq);
}

static void store_watch_start(void *ctx, const weft_page *page) {
    store_watch *watch = ctx;
    (void) page;
    watch->started++;
    watch->broken |= watch->events > 0;
}

static void store_watch_events(void *ctx, const weft_event *events, size_t count) {
    store_watch *watch = ctx;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = watch->all ? events[i].gseq : events[i].seq;
        watch->broken |= at != watch->last + 1 || watch->started != 1 || watch->ended;
        watch->last = at;
        watch->events++;
    }
    if (watch->append_more > 0) {
        weft_event more[] = {world_event("a", "more"), world_event("b", "more")};
        watch->append_more--;
        weft__store_append(watch->world->store, &(weft_append){more, 2, NULL}, store_watch_appended, watch);
    }
    if (watch->free_at && watch->events >= watch->free_at)
        watch->follow = weft__follow_free(watch->follow);
    if (watch->trim_at)
        weft__store_trim(watch->world->store, watch->trim_at, NULL, NULL);
    watch->trim_at = NULL;
}

static void store_watch_live(void *ctx) {
    store_watch *watch = ctx;
    watch->live++;
    watch->over++;
}

static void store_watch_end(void *ctx, int why) {
    store_watch *watch = ctx;
    watch->ended++;
    watch->over++;
    watch->why = why;
    watch->follow = NULL;
}

static const weft_follower store_watcher = {store_watch_start, store_watch_events, store_watch_live, store_watch_end};

static int store_watch_begin(store_watch *watch, store_world *world, const weft_query *query) {
    *watch = (store_watch){.world = world, .all = !query->stream, .last = query->after};
    return weft__store_follow(world->store, query, &store_watcher, watch, &watch->follow);
}

static void store_joins(store_world *world) {
    store_watch all, a, b, late;
    world_fill(world, "a", 300);
    CHECK_INT(store_watch_begin(&all, world, &(weft_query){.max_events = 16}), 0);
    CHECK_INT(store_watch_begin(&a, world, &(weft_query){.stream = "a", .after = 100, .max_events = 3}), 0);
    CHECK_INT(store_watch_begin(&b, world, &(weft_query){.stream = "b"}), 0);
    all.append_more = a.append_more = 200;
    /* 800 more events, written while the three replay and after. */
    world_wait(world, &all.events, 1100);
    world_wait(world, &a.events, 600);
    world_wait(world, &b.events, 400);
    CHECK(!all.broken && !a.broken && !b.broken);
    CHECK_INT(a.last, 700);
    CHECK(all.live == 1 && a.live == 1 && b.live == 1);
    CHECK_INT(store_watch_begin(&late, world, &(weft_query){.stream = "a", .after = 700}), 0);
    world_wait(world, &late.live, 1);
    CHECK_INT(world_append(world, "a", "x"), 0);
    CHECK(late.events == 1 && !late.broken && a.last == 701);
    weft__follow_free(all.follow);
    weft__follow_free(a.follow);
    CHECK_INT(world_append(world, "a", "y"), 0);
    CHECK(late.events == 2 && a.last == 701);
    world->store = weft__store_close(world->store);
    CHECK(late.ended == 1 && b.ended == 1 && !a.ended);
}

static void store_follow_frees(store_world *world) {
    store_watch replaying, live, reading;
    world_fill(world, "a", 20);
    CHECK_INT(store_watch_begin(&replaying, world, &(weft_query){.max_events = 4}), 0);
    CHECK_INT(store_watch_begin(&live, world, &(weft_query){.after = 20}), 0);
    CHECK_INT(store_watch_begin(&reading, world, &(weft_query){.stream = "a"}), 0);
    weft__follow_free(reading.follow);
    replaying.free_at = 8;
    live.free_at = 1;
    world_wait(world, &replaying.events, 8);
    world_wait(world, &live.live, 1);
    world_fill(world, "a", 3);
    CHECK(replaying.events == 8 && live.events == 1 && reading.started == 0);
    CHECK(!replaying.ended && !live.ended && !reading.ended);
}

static void store_follow_gaps(store_world *world) {
    store_watch watch;
    store_outcome outcome;
    world_fill(world, "a", 50);
    CHECK_INT(store_watch_begin(&watch, world, &(weft_query){.stream = "a", .after = 51}), 0);
    world_wait(world, &watch.ended, 1);
    CHECK(watch.why == WEFT_GAP_FUTURE && !watch.started && !watch.events);
    CHECK_INT(store_watch_begin(&watch, world, &(weft_query){.stream = "a", .after = 5, .epoch = "x"}), 0);
    world_wait(world, &watch.ended, 1);
    CHECK_INT(watch.why, WEFT_GAP_EPOCH);
    /* Trimmed in the midst of the replay. */
    CHECK_INT(store_watch_begin(&watch, world, &(weft_query){.stream = "a", .max_events = 10}), 0);
    watch.trim_at = &(weft_trim){.rows = 5};
    world_wait(world, &watch.over, 1);
    /* Every page before the trim, and nothing behind it; a kind with a reader of its own may have read all of them. */
    CHECK(watch.ended ? watch.why == WEFT_GAP_TRIMMED && watch.events % 10 == 0 : watch.events == 50);
    CHECK(!watch.broken);
    weft__follow_free(watch.follow);
    CHECK_INT(world_trim(world, &(weft_trim){.rows = 5}, &outcome), 0);
    /* Trimmed behind a live one: nothing of what it wants. */
    CHECK_INT(store_watch_begin(&watch, world, &(weft_query){.stream = "a", .after = 50}), 0);
    world_wait(world, &watch.live, 1);
    CHECK_INT(world_trim(world, &(weft_trim){.rows = 1}, &outcome), 0);
    CHECK_INT(world_append(world, "a", "x"), 0);
    CHECK(watch.events == 1 && !watch.ended && !watch.broken);
    weft__follow_free(watch.follow);
}

static int store_put(store_world *world, const weft_append *append) {
    store_outcome outcome = {0};
    int r = weft__store_append(world->store, append, world_appended, &outcome);
    return r < 0 ? r : world_wait(world, &outcome.times, 1) ? outcome.r : -ETIMEDOUT;
}

/* Several writers */

static void store_follow_two(store_world *one, store_world *two, store_watch *ret_one, store_watch *ret_two) {
    CHECK_INT(store_watch_begin(ret_one, one, &(weft_query){0}), 0);
    CHECK_INT(store_watch_begin(ret_two, two, &(weft_query){0}), 0);
    world_wait(one, &ret_one->live, 1);
    world_wait(two, &ret_two->live, 1);
}

/* Each is told of what both wrote, once and in one order; and of its own before its append completes. */
static void store_two_writers(store_world *one) {
    store_world two = *one;
    store_watch mine, theirs;
    two.opts.beside = one->store;
    REQUIRE(world_open(&two));
    CHECK_STR(weft__store_epoch(two.store), weft__store_epoch(one->store));
    store_follow_two(one, &two, &mine, &theirs);
    for (int i = 0; i < 50; i++) {
        world_fill(i % 3 ? one : &two, "a", 2);
        world_fill(i % 2 ? one : &two, "b", 1);
    }
    world_wait(one, &mine.events, 150);
    world_wait(&two, &theirs.events, 150);
    CHECK(!mine.broken && !theirs.broken && mine.last == 150 && theirs.last == 150);
    CHECK(mine.live == 1 && theirs.live == 1);
    CHECK_INT(weft__store_head(one->store), 150);
    CHECK_INT(weft__store_head(two.store), 150);
    two.store = weft__store_close(two.store);
    CHECK_INT(theirs.ended, 1);
    world_fill(one, "a", 1);
    CHECK_INT(mine.events, 151);
    weft__follow_free(mine.follow);
}

/* Each counts for itself and goes on behind what it was refused or told of: no number is stored twice. */
static void store_two_writers_count(store_world *one) {
    store_world two = *one, *writers[] = {one, &two};
    uint64_t next[2] = {0}, stored = 0;
    bool taken[100] = {false};
    int refused = 0;
    two.opts.beside = one->store;
    REQUIRE(world_open(&two));
    for (int i = 0; i < 100; i++) {
        int who = i % 3 == 0;
        store_outcome outcome = {0};
        weft_event event = world_event("a", "x");
        weft_append append = {.events = &event, .count = 1, .counter = "task", .number = next[who]};
        CHECK_INT(weft__store_append(writers[who]->store, &append, world_appended, &outcome), 0);
        world_wait(writers[who], &outcome.times, 1);
        refused += outcome.r == -EAGAIN;
        if (outcome.r == 0) {
            CHECK(!taken[next[who]]);
            taken[next[who]] = true;
            stored++;
        }
        next[who]++;
    }
    CHECK(refused > 0 && stored > 50);
    CHECK_INT(weft__store_head(one->store), stored);
    two.store = weft__store_close(two.store);
}

/* What there is no memory to bring is read instead. */
static void store_two_writers_without_memory(const store_case *which) {
    store_world one, two;
    store_watch mine, theirs;
    world_memory memory;
    test_row("two writers without memory");
    store_world_init(which, &one);
    REQUIRE(world_open(&one));
    world_memory_init(&memory, 0);
    two = one;
    two.opts.beside = one.store;
    two.opts.alloc = &memory.alloc;
    REQUIRE(world_open(&two));
    store_follow_two(&one, &two, &mine, &theirs);
    memory.memory.fail_at = memory.memory.count + 1;
    world_fill(&one, "a", 3); /* the first of them cannot be brought to the other */
    world_wait(&two, &theirs.events, 3);
    CHECK(!theirs.broken && theirs.last == 3 && theirs.live == 2);
    two.store = weft__store_close(two.store);
    world_done(&one);
    CHECK_INT(memory.memory.live, 0);
}

static void store_numbers(store_world *world) {
    weft_event event = world_event("a", "x");
    const struct {
        const char *counter;
        uint64_t number;
        int r;
    } rows[] = {{"task", 0, 0},       {"task", 0, -EAGAIN}, {"task", 5, 0},
                {"task", 4, -EAGAIN}, {"other", 4, 0},      {"", 1, -EINVAL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_INT(
            store_put(world,
                      &(weft_append){.events = &event, .count = 1, .counter = rows[i].counter, .number = rows[i].number}),
            rows[i].r);
    CHECK_INT(weft__store_head(world->store), 3);
}

/* A journal that has one writer is refused to a second. */
static void store_one_writer(store_world *one) {
    store_world two = *one;
    CHECK_INT(weft__store_open(two.kind, &two.opts, &two.store, two.why), -EBUSY);
    CHECK(*two.why);
    CHECK_INT(world_append(one, "a", "x"), 0);
}

/* Trimming */

static void store_trims(store_world *world) {
    store_outcome outcome;
    weft_event event = world_event("a", "12345");
    for (int i = 0; i < 10; i++) {
        event.stream = i % 2 ? "b" : "a";
        outcome = (store_outcome){0};
        CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, NULL}, world_appended, &outcome), 0);
        world_wait(world, &outcome.times, 1);
    }
    const struct {
        const char *name;
        weft_trim trim;
        uint64_t removed, a, b, all; /* a, b, all: what is trimmed afterwards */
    } rows[] = {
        {"nothing asked", {.rows = 0}, 0, 0, 0, 0},
        {"rows enough", {.rows = 10}, 0, 0, 0, 0},
        {"nothing before the border", {.rows = 1, .before = 1}, 0, 0, 0, 0},
        {"bytes enough", {.bytes = 50}, 0, 0, 0, 0},
        {"up to the first", {.upto = 1}, 1, 1, 0, 1},
        {"rows", {.rows = 7}, 2, 2, 1, 3},
        {"bytes, rounded to whole events", {.bytes = 29}, 2, 3, 2, 5},
        {"up to another, before a border", {.upto = 9, .before = 7}, 1, 3, 3, 6},
        {"one stream leaves the other", {.stream = "b", .rows = 1}, 1, 3, 4, 8},
        {"one stream by bytes", {.stream = "a", .bytes = 5}, 1, 4, 4, 8},
        {"an unknown stream", {.stream = "c", .rows = 1}, 0, 4, 4, 8},
        {"everything", {.upto = UINT64_MAX}, 2, 5, 5, 10},
        {"nothing left", {.rows = 1}, 0, 5, 5, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_INT(world_trim(world, &rows[i].trim, &outcome), 0);
        bool as_wanted = CHECK_INT(outcome.removed, rows[i].removed);
        world_read(world, &(weft_query){.stream = "a", .oldest = true}, &outcome);
        as_wanted &= CHECK_INT(outcome.trimmed, rows[i].a) && CHECK_INT(outcome.count, 5 - rows[i].a);
        world_read(world, &(weft_query){.stream = "b", .oldest = true}, &outcome);
        as_wanted &= CHECK_INT(outcome.trimmed, rows[i].b) && CHECK_INT(outcome.count, 5 - rows[i].b);
        world_read(world, &(weft_query){.oldest = true}, &outcome);
        as_wanted &= CHECK_INT(outcome.trimmed, rows[i].all);
        as_wanted &= CHECK_INT(outcome.count, 10 - rows[i].a - rows[i].b);
        if (!as_wanted)
            printf("  after: %s\n", rows[i].name);
    }
}

/* One stream that is trimmed on its own is a gap only for who wants it. */
static void store_sets_streams_aside(store_world *world) {
    store_outcome outcome;
    world_fill(world, "hub", 5);       /* gseq 1 to 5 */
    world_fill(world, "session/a", 5); /* 6 to 10 */
    world_fill(world, "session/b", 5);
    world_fill(world, "hub", 5); /* 16 to 20 */
    CHECK_INT(world_trim(world, &(weft_trim){.stream = "session/a", .rows = 2}, &outcome), 0);
    CHECK_INT(world_read(world, &(weft_query){.after = 5}, &outcome), WEFT_GAP_TRIMMED);
    CHECK_INT(world_read(world, &(weft_query){.after = 5, .aside = "session/"}, &outcome), 0);
    CHECK_INT(outcome.count, 12);
    CHECK_INT(world_read(world, &(weft_query){.after = 5, .aside = "session/", .but = "session/b"}, &outcome), 0);
    CHECK_INT(world_read(world, &(weft_query){.after = 5, .aside = "session/", .but = "session/c"}, &outcome), 0);
    CHECK_INT(world_read(world, &(weft_query){.after = 5, .aside = "session/", .but = "session/a"}, &outcome),
              WEFT_GAP_TRIMMED);
    CHECK_INT(world_read(world, &(weft_query){.after = 8, .aside = "session/", .but = "session/a"}, &outcome), 0);
    CHECK_INT(world_trim(world, &(weft_trim){.rows = 15}, &outcome), 0); /* 1 and 2 */
    CHECK_INT(world_read(world, &(weft_query){.after = 1, .aside = "session/"}, &outcome), WEFT_GAP_TRIMMED);
    CHECK_INT(world_read(world, &(weft_query){.after = 2, .aside = "session/"}, &outcome), 0);
    CHECK_INT(world_trim(world, &(weft_trim){.upto = UINT64_MAX}, &outcome), 0);
    CHECK_INT(world_read(world, &(weft_query){.after = 19, .aside = "session/"}, &outcome), WEFT_GAP_TRIMMED);
    CHECK_INT(world_read(world, &(weft_query){.after = 20, .aside = "session/", .but = "session/a"}, &outcome), 0);
}

static void store_trims_in_pieces(store_world *world) {
    store_outcome trimmed = {0}, outcome = {0};
    world_fill(world, "a", 2500);
    CHECK_INT(weft__store_trim(world->store, &(weft_trim){.rows = 10}, world_trimmed, &trimmed), 0);
    CHECK_INT(world_append(world, "a", "x"), 0);
    world_wait(world, &trimmed.times, 1);
    CHECK_INT(trimmed.r, 0);
    world_read(world, &(weft_query){.stream = "a", .oldest = true}, &outcome);
    CHECK_INT(outcome.head, 2501);
    CHECK_INT(outcome.count + trimmed.removed, 2501);
    CHECK(outcome.count == 10 || outcome.count == 11);
}

/* Documents */

static void store_documents(store_world *world, bool lasting) {
    store_outcome outcome;
    weft_event event = world_event("a", "1");
    const weft_document two[] = {{"x", {"one", 3}}, {"y", {"two", 3}}}, replaced = {"x", {"new", 3}}, empty = {"z", {"", 0}},
                        deleted = {"y", {NULL, 0}}, unnamed = {"", {"x", 1}};
    const weft_query all = {.documents = true};
    CHECK_INT(store_put(world, &(weft_append){.events = &event, .count = 1, .documents = two, .document_count = 2}), 0);
    CHECK_INT(world_read(world, &all, &outcome), 0);
    CHECK_STR(outcome.text, "1:one 2:two");
    /* Alone, and in the old place. */
    CHECK_INT(store_put(world, &(weft_append){.documents = &replaced, .document_count = 1}), 0);
    CHECK_INT(store_put(world, &(weft_append){.documents = &empty, .document_count = 1}), 0);
    CHECK_INT(world_read(world, &all, &outcome), 0);
    CHECK_STR(outcome.text, "1:new 2:two 3:");
    CHECK_INT(weft__store_head(world->store), 1);
    /* One of them, by its key. */
    CHECK_INT(world_read(world, &(weft_query){.documents = true, .stream = "y"}, &outcome), 0);
    CHECK_STR(outcome.text, "2:two");
    CHECK(!outcome.more);
    CHECK_INT(world_read(world, &(weft_query){.documents = true, .stream = "y", .after = 2}, &outcome), 0);
    CHECK_STR(outcome.text, "");
    CHECK_INT(world_read(world, &(weft_query){.documents = true, .stream = "a"}, &outcome), 0);
    CHECK_STR(outcome.text, "");
    /* A repeat stores nothing. */
    CHECK_INT(store_put(world, &(weft_append){.events = &event, .count = 1, .key = "k"}), 0);
    CHECK_INT(store_put(world, &(weft_append){&event, 1, "k", &deleted, 1}), 0);
    CHECK_INT(store_put(world, &(weft_append){.documents = &deleted, .document_count = 1}), 0);
    CHECK_INT(store_put(world, &(weft_append){.documents = &deleted, .document_count = 1}), 0);
    CHECK_INT(store_put(world, &(weft_append){.documents = &unnamed, .document_count = 1}), -EINVAL);
    CHECK_INT(store_put(world, &(weft_append){.count = 0}), -EINVAL);
    CHECK_INT(world_trim(world, &(weft_trim){.upto = UINT64_MAX}, &outcome), 0);
    if (lasting)
        world_reopen(world);
    CHECK_INT(world_read(world, &(weft_query){.documents = true, .max_events = 1}, &outcome), 0);
    CHECK_STR(outcome.text, "1:new");
    CHECK(outcome.more);
    CHECK_INT(world_read(world, &(weft_query){.documents = true, .after = outcome.last}, &outcome), 0);
    CHECK_STR(outcome.text, "3:");
}

static void store_note_held(void *ctx) {
    ++*(int *) ctx;
}

/* Whichever of them become durable together, and whatever is between them: the second with a key is a repeat of the first.
 */
static void store_groups_keys(store_world *world) {
    enum { KEYS = 30, APPENDS = 2 * KEYS + 3 };
    weft_event event = world_event("a", "1");
    const weft_document gone = {"x", {NULL, 0}};
    store_outcome outcomes[APPENDS] = {{0}};
    int held = 0, n = 0;
    weft__store_hold(world->store, store_note_held, &held);
    for (int i = 0; i < 2 * KEYS; i++) {
        char key[16];
        snprintf(key, sizeof key, "key-%d", i % KEYS);
        CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, key}, world_appended, &outcomes[n++]), 0);
    }
    /* Deleting a document stores what came before it, but not itself. */
    for (int i = 0; i < 3; i++) {
        weft_append one = {&event, 1, i ? "last" : NULL, .documents = &gone, .document_count = i == 1};
        CHECK_INT(weft__store_append(world->store, &one, world_appended, &outcomes[n++]), 0);
    }
    weft__store_hold(world->store, NULL, NULL);
    world_wait(world, &outcomes[n - 1].times, 1);
    for (int i = 0; i < n; i++) {
        bool repeat = (i >= KEYS && i < 2 * KEYS) || i == n - 1;
        CHECK(outcomes[i].times == 1 && outcomes[i].r == 0 && outcomes[i].repeat == repeat);
        CHECK_INT(outcomes[i].seq, i < 2 * KEYS ? i % KEYS + 1 : i == n - 3 ? KEYS + 1 : KEYS + 2);
    }
    CHECK_INT(weft__store_head(world->store), KEYS + 2);
}

/* Appends of every sort that become durable together do not notice it. */
static void store_groups(store_world *world, bool lasting) {
    weft_event events[] = {world_event("a", "1"), world_event("b", "2")};
    const weft_document x = {"x", {"one", 3}}, gone = {"x", {NULL, 0}}, y = {"y", {"two", 3}};
    const weft_document again[] = {{"x", {"old", 3}}, {"x", {NULL, 0}}, {"x", {"new", 3}}, {"z", {"last", 4}}};
    const weft_append appends[] = {
        {.events = events, .count = 2, .documents = &x, .document_count = 1},
        {.events = events, .count = 1, .key = "k", .counter = "n", .number = 5},
        {.events = events, .count = 1, .key = "k"},
        {.events = events, .count = 2, .documents = &gone, .document_count = 1},
        {.events = events + 1, .count = 1, .key = "k"},
        {.events = events, .count = 1, .counter = "n", .number = 5},
        {.documents = &y, .document_count = 1},
        {.events = events, .count = 2, .documents = again, .document_count = 4},
        {.events = events, .count = 1, .key = "l"},
    };
    enum { APPENDS = sizeof appends / sizeof appends[0] };
    store_outcome outcomes[APPENDS] = {{0}}, trim = {0}, outcome;
    int held = 0;
    weft__store_hold(world->store, store_note_held, &held);
    for (int i = 0; i < APPENDS; i++)
        CHECK_INT(weft__store_append(world->store, &appends[i], world_appended, &outcomes[i]), 0);
    CHECK_INT(weft__store_trim(world->store, &(weft_trim){.stream = "a", .rows = 2}, world_trimmed, &trim), 0);
    weft__store_hold(world->store, NULL, NULL);
    world_wait(world, &trim.times, 1);
    CHECK(outcomes[0].seq == 1 && outcomes[1].seq == 2 && outcomes[3].seq == 3 && outcomes[8].seq == 5);
    CHECK(outcomes[2].repeat && outcomes[2].seq == 2 && outcomes[2].r == 0);
    CHECK_INT(outcomes[4].r, -EEXIST);
    CHECK_INT(outcomes[5].r, -EAGAIN);
    CHECK_INT(trim.removed, 3);
    for (int turn = 0; turn < (lasting ? 2 : 1); turn++) {
        CHECK_INT(weft__store_head(world->store), 8);
        CHECK_INT(world_read(world, &(weft_query){.documents = true}, &outcome), 0);
        const char *two = strstr(outcome.text, ":two "), *new = strstr(outcome.text, ":new "),
                   *last = strstr(outcome.text, ":last");
        CHECK(outcome.count == 3 && two && new &&last &&two < new &&new < last);
        CHECK_INT(world_read(world, &(weft_query){.stream = "a", .oldest = true}, &outcome), 0);
        CHECK_STR(outcome.text, "4:1 5:1");
        CHECK_INT(world_read(world, &(weft_query){.stream = "b", .oldest = true}, &outcome), 0);
        CHECK_STR(outcome.text, "1:2 2:2 3:2");
        if (lasting)
            world_reopen(world);
    }
}

/* Removals */

static void store_removes(store_world *world, bool lasting) {
    store_outcome outcome;
    weft_event event = world_event("a", "said");
    const uint64_t some[] = {2, 3, 3, 99, 0}, last = 5, trimmed = 1;
    world_fill(world, "a", 3);
    CHECK_INT(store_put(world, &(weft_append){.events = &event, .count = 1, .key = "k"}), 0);
    CHECK_INT(store_put(world, &(weft_append){.events = &event, .count = 1, .removals = some, .removal_count = 5}), 0);
    CHECK_INT(world_read(world, &(weft_query){.stream = "a"}, &outcome), 0);
    CHECK_STR(outcome.text, "1:1 2:{} 3:{} 4:said 5:said");
    /* Its key is known as before, and a repeat removes nothing. */
    const uint64_t fourth = 4;
    CHECK_INT(store_put(world, &(weft_append){.removals = &fourth, .removal_count = 1}), 0);
    CHECK_INT(
        store_put(world, &(weft_append){.events = &event, .count = 1, .key = "k", .removals = &last, .removal_count = 1}),
        -EEXIST);
    CHECK_INT(weft__store_head(world->store), 5);
    if (lasting)
        world_reopen(world);
    CHECK_INT(world_read(world, &(weft_query){0}, &outcome), 0);
    CHECK_STR(outcome.text, "1:1 2:{} 3:{} 4:{} 5:said");
    CHECK_INT(world_trim(world, &(weft_trim){.bytes = 7, .stream = "a"}, &outcome), 0); /* {} {} said are eight */
    CHECK_INT(world_read(world, &(weft_query){.oldest = true}, &outcome), 0);
    CHECK_STR(outcome.text, "4:{} 5:said");
    CHECK_INT(store_put(world, &(weft_append){.removals = &trimmed, .removal_count = 1}), 0);
}

static void store_never_reuses(store_world *world, bool lasting) {
    store_outcome outcome;
    world_fill(world, "a", 5);
    CHECK_INT(world_trim(world, &(weft_trim){.upto = UINT64_MAX}, &outcome), 0);
    if (lasting)
        world_reopen(world);
    CHECK_INT(world_append_key(world, "a", "x", NULL, &outcome), 0);
    CHECK_INT(outcome.seq, 6);
    CHECK_INT(outcome.gseq, 6);
}

/* Closing */

static void store_closes(store_world *world, bool lasting) {
    store_outcome appends[100] = {{0}}, reads[10] = {{0}}, trim = {0};
    store_watch watch;
    CHECK_INT(store_watch_begin(&watch, world, &(weft_query){0}), 0);
    weft_event event = world_event("a", "x");
    for (int i = 0; i < 100; i++)
        CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, NULL}, world_appended, &appends[i]), 0);
    for (int i = 0; i < 10; i++)
        CHECK_INT(weft__store_read(world->store, &(weft_query){0}, world_read_done, &reads[i]), 0);
    CHECK_INT(weft__store_trim(world->store, &(weft_trim){.rows = 1000}, world_trimmed, &trim), 0);
    world->store = weft__store_close(world->store);
    for (int i = 0; i < 100; i++)
        CHECK(appends[i].times == 1 && appends[i].r == 0 && appends[i].seq == (uint64_t) i + 1);
    for (int i = 0; i < 10; i++)
        CHECK(reads[i].times == 1 && (reads[i].r == 0 || reads[i].r == -ECANCELED));
    CHECK_INT(trim.times, 1);
    CHECK(watch.ended == 1 && watch.why == -ECANCELED && !watch.broken);
    REQUIRE(world_open(world));
    CHECK_INT(weft__store_head(world->store), lasting ? 100 : 0);
}

/* Held appends go on together, in their order, when the owner says so, when there are many, and before anything that comes
 * behind them. */

static void store_hold_some(store_world *world, int count, store_outcome *outcomes) {
    weft_event event = world_event("a", "x");
    for (int i = 0; i < count; i++)
        CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, NULL}, world_appended, &outcomes[i]), 0);
}

static void store_holds(store_world *world) {
    static store_outcome outcomes[WEFT_STORE_HELD + 10];
    store_outcome trim = {0}, page = {0};
    int held = 0;
    memset(outcomes, 0, sizeof outcomes);
    weft__store_hold(world->store, store_note_held, &held);
    store_hold_some(world, 3, outcomes);
    CHECK_INT(held, 1);
    /* A read does not wait for them, and so shows that they are not there. */
    CHECK_INT(weft__store_read(world->store, &(weft_query){.stream = "a", .oldest = true}, world_read_done, &page), 0);
    while (!page.times) {
        struct pollfd ready = {.fd = weft__store_fd(world->store), .events = POLLIN};
        REQUIRE(poll(&ready, 1, WORLD_PATIENCE_MS) == 1);
        weft__store_dispatch(world->store);
    }
    CHECK_INT(page.count, 0);
    CHECK_INT(outcomes[0].times, 0);
    weft__store_release(world->store);
    world_wait(world, &outcomes[2].times, 1);
    CHECK(outcomes[0].times == 1 && outcomes[0].seq == 1 && outcomes[2].seq == 3);
    /* Too many to wait. */
    store_hold_some(world, WEFT_STORE_HELD + 1, outcomes + 3);
    CHECK_INT(held, 3);
    CHECK_INT(world->store->held_count, 1);
    CHECK_INT(weft__store_trim(world->store, &(weft_trim){.rows = 1}, world_trimmed, &trim), 0);
    CHECK_INT(world->store->held_count, 0);
    world_wait(world, &trim.times, 1);
    CHECK_INT(trim.removed, WEFT_STORE_HELD + 3);
    store_hold_some(world, 1, outcomes + WEFT_STORE_HELD + 4);
    CHECK_INT(world->store->held_count, 1);
    weft__store_hold(world->store, NULL, NULL);
    store_hold_some(world, 1, outcomes + WEFT_STORE_HELD + 5);
    CHECK_INT(world->store->held_count, 0);
    world_wait(world, &outcomes[WEFT_STORE_HELD + 5].times, 1);
    /* Closing does not forget them. */
    weft__store_hold(world->store, store_note_held, &held);
    store_hold_some(world, 1, outcomes + WEFT_STORE_HELD + 6);
    CHECK_INT(world->store->held_count, 1);
    world->store = weft__store_close(world->store);
    CHECK(outcomes[WEFT_STORE_HELD + 6].times == 1 && outcomes[WEFT_STORE_HELD + 6].r == 0);
    for (int i = 0; i < WEFT_STORE_HELD + 7; i++)
        CHECK(outcomes[i].times == 1 && outcomes[i].r == 0 && outcomes[i].seq == (uint64_t) i + 1);
    REQUIRE(world_open(world));
}

static void store_refuse_late(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    store_world *world = ctx;
    weft_follow *follow;
    weft_event event = world_event("a", "x");
    (void) r, (void) events, (void) count, (void) repeat;
    CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, NULL}, NULL, NULL), -ECANCELED);
    CHECK_INT(weft__store_follow(world->store, &(weft_query){0}, &store_watcher, NULL, &follow), -ECANCELED);
    CHECK_INT(weft__store_trim(world->store, &(weft_trim){0}, NULL, NULL), -ECANCELED);
}

static void store_refuses_when_closing(store_world *world) {
    weft_event event = world_event("a", "x");
    CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, NULL}, store_refuse_late, world), 0);
    world->store = weft__store_close(world->store);
}

/* Limits */

static void store_limits(store_world *world) {
    char name[WEFT_STORE_NAME + 2];
    memset(name, 'n', sizeof name);
    name[WEFT_STORE_NAME + 1] = '\0';
    store_outcome outcome;
    static weft_event many[WEFT_STORE_EVENTS + 1];
    world->store = weft__store_close(world->store);
    world->opts.max_event = 100;
    world->opts.max_queue = 1 << 20;
    REQUIRE(world_open(world));
    char data[102];
    memset(data, 'd', sizeof data);
    data[101] = '\0';
    CHECK_INT(world_append(world, "a", data), -EMSGSIZE);
    data[100] = '\0';
    CHECK_INT(world_append(world, "a", data), 0);
    CHECK_INT(world_append(world, name, "x"), -EINVAL);
    CHECK_INT(world_append_key(world, "a", "x", name, &outcome), -EINVAL);
    CHECK_INT(world_append(world, "", "x"), -EINVAL);
    name[WEFT_STORE_NAME] = '\0';
    CHECK_INT(world_append_key(world, name, "x", name, &outcome), 0);
    CHECK_INT(world_read(world, &(weft_query){.max_events = WEFT_STORE_PAGE + 1}, &outcome), -EINVAL);
    for (int i = 0; i <= WEFT_STORE_EVENTS; i++)
        many[i] = world_event("a", "x");
    CHECK_INT(weft__store_append(world->store, &(weft_append){many, 0, NULL}, NULL, NULL), -EINVAL);
    CHECK_INT(weft__store_append(world->store, &(weft_append){many, WEFT_STORE_EVENTS + 1, NULL}, NULL, NULL), -EINVAL);
    outcome = (store_outcome){0};
    CHECK_INT(weft__store_append(world->store, &(weft_append){many, WEFT_STORE_EVENTS, NULL}, world_appended, &outcome), 0);
    world_wait(world, &outcome.times, 1);
    CHECK_INT(outcome.r, 0);
    int taken = 0, r = 0;
    outcome = (store_outcome){0};
    while (taken < 10000 &&
           (r = weft__store_append(world->store, &(weft_append){many, 100, NULL}, world_appended, &outcome)) == 0)
        taken++;
    CHECK_INT(r, -EXFULL);
    CHECK(taken > 10);
    world_wait(world, &outcome.times, taken);
    CHECK_INT(world_append(world, "a", "room again"), 0);
}

/* Lasting */

static void store_lasts(store_world *world) {
    char epoch[WEFT_EPOCH + 1];
    store_outcome outcome, first;
    memcpy(epoch, weft__store_epoch(world->store), sizeof epoch);
    CHECK_INT(world_append_key(world, "a", "1", "key", &first), 0);
    world_fill(world, "b", 20);
    CHECK_INT(world_trim(world, &(weft_trim){.stream = "b", .rows = 5}, &outcome), 0);
    world_reopen(world);
    CHECK_STR(weft__store_epoch(world->store), epoch);
    CHECK_STR(world->why, "");
    CHECK_INT(weft__store_head(world->store), 21);
    CHECK_INT(world_append_key(world, "a", "1", "key", &outcome), 0);
    CHECK(outcome.repeat && outcome.gseq == first.gseq);
    CHECK_INT(world_read(world, &(weft_query){.stream = "b", .after = 15, .epoch = epoch}, &outcome), 0);
    CHECK_STR(outcome.text, "16:16 17:17 18:18 19:19 20:20");
    CHECK_INT(world_trim(world, &(weft_trim){.rows = 4}, &outcome), 0);
    CHECK_INT(outcome.removed, 2); /* the counts were kept too */
}

/* Memory */

static void store_memory_scene(store_world *world) {
    store_outcome outcome = {0};
    store_watch watch;
    weft_event events[] = {world_event("a", "1"), world_event("b", "2")};
    const weft_document document = {"d", {"x", 1}};
    const uint64_t removal = 1;
    int calls = 0;
    bool follows = store_watch_begin(&watch, world, &(weft_query){0}) == 0;
    for (int i = 0; i < 3; i++)
        calls += weft__store_append(world->store,
                                    &(weft_append){.events = events,
                                                   .count = 2,
                                                   .key = i ? NULL : "k",
                                                   .documents = &document,
                                                   .document_count = 1,
                                                   .removals = &removal,
                                                   .removal_count = i == 2},
                                    world_appended, &outcome) == 0;
    calls += weft__store_read(world->store, &(weft_query){0}, world_read_done, &outcome) == 0;
    world_wait(world, &outcome.times, calls);
    calls += weft__store_trim(world->store, &(weft_trim){.rows = 1}, world_trimmed, &outcome) == 0;
    world_wait(world, &outcome.times, calls);
    CHECK(outcome.times == calls && !watch.broken);
    /* All or nothing, also now. */
    CHECK_INT(weft__store_head(world->store) % 2, 0);
    world->store = weft__store_close(world->store);
    CHECK(!follows || watch.ended == 1);
}

static void store_fails_allocations(const store_case *which) {
    for (long n = 1; n < 1000; n++) {
        store_world world;
        world_memory memory;
        world_memory_init(&memory, n);
        store_world_init(which, &world);
        world.opts.alloc = &memory.alloc;
        int r = weft__store_open(world.kind, &world.opts, &world.store, world.why);
        CHECK(r == 0 || r == -ENOMEM);
        if (r == 0)
            store_memory_scene(&world);
        world_done(&world);
        CHECK_INT(memory.memory.live, 0);
        if (memory.memory.count < n)
            return;
    }
    test_check(false, __FILE__, __LINE__, "it never ran through");
}

/* The suite */

static void store_row(const store_case *which, const char *name, void (*run)(store_world *world),
                      void (*run_lasting)(store_world *world, bool lasting)) {
    store_world world;
    test_row(name);
    store_world_init(which, &world);
    if (!CHECK(world_open(&world)))
        return;
    if (run)
        run(&world);
    else
        run_lasting(&world, weft__store_lasts(which->kind));
    world_done(&world);
}

static inline void store_suite(const store_case *which) {
    store_row(which, "orders", store_orders, NULL);
    store_row(which, "keeps bytes", store_keeps_bytes, NULL);
    store_row(which, "repeats", store_repeats, NULL);
    store_row(which, "repeats several", store_repeats_several, NULL);
    store_row(which, "forgets keys", store_forgets_keys, NULL);
    store_row(which, "pages", store_pages, NULL);
    store_row(which, "edges", store_edges, NULL);
    store_row(which, "replay and live join", store_joins, NULL);
    store_row(which, "follows are freed", store_follow_frees, NULL);
    store_row(which, "follows meet gaps", store_follow_gaps, NULL);
    store_row(which, "trims", store_trims, NULL);
    store_row(which, "sets streams aside", store_sets_streams_aside, NULL);
    store_row(which, "trims in pieces", store_trims_in_pieces, NULL);
    store_row(which, "documents", NULL, store_documents);
    store_row(which, "groups keys", store_groups_keys, NULL);
    store_row(which, "groups", NULL, store_groups);
    store_row(which, "removes contents", NULL, store_removes);
    store_row(which, "never reuses a position", NULL, store_never_reuses);
    store_row(which, "closes", NULL, store_closes);
    store_row(which, "holds", store_holds, NULL);
    store_row(which, "refuses when closing", store_refuses_when_closing, NULL);
    store_row(which, "limits", store_limits, NULL);
    store_row(which, "writers", which->one_writer ? store_one_writer : store_two_writers, NULL);
    store_row(which, "numbers", store_numbers, NULL);
    if (!which->one_writer) {
        store_row(which, "two writers count", store_two_writers_count, NULL);
        store_two_writers_without_memory(which);
    }
    if (weft__store_lasts(which->kind))
        store_row(which, "lasts", store_lasts, NULL);
    test_row("allocations fail");
    store_fails_allocations(which);
}

#endif

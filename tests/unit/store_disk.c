/* The disk's faults: what was not synced is lost at every write and sync (F2), the n-th operation fails (F3). */
#include "store/shim.h"
#include "store/world.h"

#define LAST 2000 /* more operations than any scene has: one that never runs through is broken */
#define EVENTS 12

typedef struct scene {
    store_world world;
    uint64_t acknowledged[2]; /* the last seq of stream a, of stream b */
    int times, failed, last_r;
} scene;

static void appended(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    scene *s = ctx;
    (void) repeat;
    s->times++;
    s->failed += r < 0;
    s->last_r = r;
    for (size_t i = 0; r >= 0 && i < count; i++)
        s->acknowledged[events[i].stream[0] == 'b'] = events[i].seq;
}

/* The data says where it belongs, so that a reader can tell. */
static int append_one(scene *s, int i) {
    char data[600];
    /* Some over a page, so that there are overflow pages. */
    int n = snprintf(data, sizeof data, "%d:%0*d", i, i % 3 == 0 ? 500 : 5, i);
    weft_event events[] = {{.stream = "a", .type = "t", .data = {data, (size_t) n}, .time_ms = i},
                           {.stream = "b", .type = "t", .data = {data, (size_t) n}, .time_ms = i}};
    int before = s->times;
    int r = weft__store_append(s->world.store, &(weft_append){events, i % 2 ? 2 : 1, NULL}, appended, s);
    if (r == 0)
        world_wait(&s->world, &s->times, before + 1);
    return r;
}

static void run_scene(scene *s) {
    for (int i = 0; i < EVENTS; i++) {
        append_one(s, i);
        if (i == EVENTS / 2) {
            store_outcome outcome;
            world_trim(&s->world, &(weft_trim){.stream = "a", .rows = 3}, &outcome);
        }
    }
}

static void check_acknowledged(scene *s) {
    static const char *const names[] = {"a", "b"};
    for (int i = 0; i < 2; i++) {
        store_outcome outcome;
        CHECK_INT(world_read(&s->world, &(weft_query){.stream = names[i], .oldest = true}, &outcome), 0);
        CHECK(outcome.head >= s->acknowledged[i] && outcome.last == outcome.head);
        CHECK_INT(outcome.count, outcome.head - outcome.trimmed);
    }
}

/* One crash at operation n of the shim. False when the scene has fewer. */
static bool crash_at(long n, bool torn, bool reopened) {
    scene s = {0};
    char epoch[WEFT_EPOCH + 1] = "";
    shim_reset();
    world_init(&s.world, &weft__sqlite);
    s.world.opts.vfs = "shim";
    s.world.opts.max_log = reopened ? 8 * 4096 : 0; /* copied back between two appends, not only at the end */
    if (reopened) {
        if (!CHECK(world_open(&s.world)))
            return false;
        run_scene(&s);
        s.world.store = weft__store_close(s.world.store);
    }
    shim_set(n, 0, SQLITE_IOERR_WRITE);
    if (world_open(&s.world)) {
        memcpy(epoch, weft__store_epoch(s.world.store), sizeof epoch);
        run_scene(&s);
        s.world.store = weft__store_close(s.world.store);
    }
    bool reached = shim_operations() >= n;
    shim_crash(torn);
    s.world.opts.vfs = NULL;
    if (CHECK(world_open(&s.world))) {
        check_acknowledged(&s);
        CHECK(!s.acknowledged[0] || !*epoch || strcmp(epoch, weft__store_epoch(s.world.store)) == 0);
        uint64_t head = weft__store_head(s.world.store);
        CHECK_INT(world_append(&s.world, "a", "after"), 0);
        CHECK_INT(weft__store_head(s.world.store), head + 1);
    } else {
        printf("  crash at %ld: %s\n", n, s.world.why);
    }
    world_done(&s.world);
    return reached;
}

static void crash_everywhere(bool torn, bool reopened) {
    long n = 1;
    while (n < LAST && crash_at(n, torn, reopened))
        n++;
    CHECK(n > 20 && n < LAST);
}

TEST(unsynced_writes_are_lost) {
    crash_everywhere(false, false);
}

TEST(unsynced_writes_are_torn) {
    crash_everywhere(true, false);
}

TEST(unsynced_writes_are_lost_in_a_second_run) {
    crash_everywhere(false, true);
}

/* The n-th operation fails, and so do some after it; then the disk works again and so does the store, without a restart. */
static bool fail_at(long n, long how_many, int with, bool reads) {
    scene s = {0};
    shim_reset();
    world_init(&s.world, &weft__sqlite);
    s.world.opts.vfs = "shim";
    if (!CHECK(world_open(&s.world)))
        return false;
    append_one(&s, 0);
    append_one(&s, 1);
    shim_one.with_reads = reads;
    shim_set(n, how_many, with);
    int before = s.failed;
    for (int i = 2; i < EVENTS; i++) {
        append_one(&s, i);
        CHECK(s.last_r == 0 || s.last_r == -EIO || s.last_r == -ENOSPC);
        store_outcome outcome;
        int r = world_read(&s.world, &(weft_query){.stream = "a"}, &outcome);
        if (!reads) /* reading goes on */
            CHECK(r == 0 && outcome.head >= s.acknowledged[0] && outcome.count == outcome.head);
    }
    bool reached = shim_operations() >= n;
    CHECK(!reached || reads || s.failed > before || how_many);
    shim_set(0, 0, 0);
    append_one(&s, EVENTS);
    CHECK_INT(s.last_r, 0);
    check_acknowledged(&s);
    s.world.store = weft__store_close(s.world.store);
    s.world.opts.vfs = NULL;
    if (CHECK(world_open(&s.world)))
        check_acknowledged(&s);
    world_done(&s.world);
    return reached;
}

static void fail_everywhere(long how_many, int with, bool reads) {
    long n = 1;
    while (n < LAST && fail_at(n, how_many, with, reads))
        n++;
    CHECK(n > 10 && n < LAST);
}

TEST(one_operation_fails) {
    fail_everywhere(1, SQLITE_IOERR_WRITE, false);
}

TEST(the_disk_is_full_for_a_while) {
    fail_everywhere(5, SQLITE_FULL, false);
}

TEST(the_disk_is_broken_until_it_is_not) {
    fail_everywhere(0, SQLITE_IOERR_WRITE, false);
}

TEST(a_read_fails) {
    fail_everywhere(1, SQLITE_IOERR_WRITE, true);
}

/* A follower that is live hears nothing of what failed, and everything of what did not. */
typedef struct watch {
    uint64_t last;
    int live;
} watch;

static void follow_events(void *ctx, const weft_event *events, size_t count) {
    watch *w = ctx;
    for (size_t i = 0; i < count; i++) {
        CHECK_INT(events[i].gseq, w->last + 1);
        w->last = events[i].gseq;
    }
}

static void follow_live(void *ctx) {
    watch *w = ctx;
    w->live++;
}

static void follow_end(void *ctx, int why) {
    (void) ctx;
    CHECK_INT(why, -ECANCELED);
}

TEST(live_streams_go_on) {
    static const weft_follower follower = {.on_events = follow_events, .on_live = follow_live, .on_end = follow_end};
    scene s = {0};
    watch w = {0};
    weft_follow *follow;
    shim_reset();
    world_init(&s.world, &weft__sqlite);
    s.world.opts.vfs = "shim";
    REQUIRE(world_open(&s.world));
    CHECK_INT(weft__store_follow(s.world.store, &(weft_query){0}, &follower, &w, &follow), 0);
    world_wait(&s.world, &w.live, 1);
    append_one(&s, 1);
    shim_set(1, 0, SQLITE_FULL);
    append_one(&s, 3);
    CHECK_INT(s.last_r, -ENOSPC);
    CHECK_INT(w.last, 2);
    shim_set(0, 0, 0);
    append_one(&s, 5);
    CHECK_INT(s.last_r, 0);
    CHECK_INT(w.last, 4);
    world_done(&s.world);
}

/* What SQLite writes in pieces reaches the disk as one, and is there when the sync has returned. */
TEST(a_small_commit_is_one_write_and_one_sync) {
    scene s = {0};
    shim_reset();
    world_init(&s.world, &weft__sqlite);
    s.world.opts.vfs = "shim";
    REQUIRE(world_open(&s.world));
    /* The log has been made longer by then. */
    for (int i = 0; i < 12; i++)
        append_one(&s, i);
    for (int i = 12; i < 20; i++) {
        shim_set(0, 0, 0);
        append_one(&s, i);
        CHECK_INT(shim_operations(), 2);
    }
    shim_disk *log = &shim_one.disks[0];
    while (log < shim_one.disks + SHIM_FILES && !strstr(log->path, "-wal"))
        log++;
    REQUIRE(log < shim_one.disks + SHIM_FILES);
    CHECK_INT(log->now.len, log->synced.len);
    CHECK(memcmp(log->now.data, log->synced.data, log->now.len) == 0);
    world_done(&s.world);
}

/* One that does not fit into what is gathered, nor into SQLite's own memory: it is written, read back, and written on. */
TEST(a_commit_may_be_of_any_size) {
    static const size_t sizes[] = {100000, 127000, 140000, 1 << 20, 8 << 20, 10};
    static char data[8 << 20];
    scene s = {0};
    shim_reset();
    world_init(&s.world, &weft__sqlite);
    s.world.opts.vfs = "shim";
    REQUIRE(world_open(&s.world));
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char) ('a' + i % 7 + i / 4096 % 11);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        weft_event event = {.stream = "a", .type = "t", .data = {data, sizes[i]}, .time_ms = 1};
        int before = s.times;
        CHECK_INT(weft__store_append(s.world.store, &(weft_append){&event, 1, NULL}, appended, &s), 0);
        world_wait(&s.world, &s.times, before + 1);
        CHECK_INT(s.last_r, 0);
    }
    s.world.store = weft__store_close(s.world.store);
    s.world.opts.check = WEFT_CHECK_ALWAYS;
    REQUIRE(world_open(&s.world)); /* with every sum */
    CHECK_INT(weft__store_head(s.world.store), sizeof sizes / sizeof sizes[0]);
    world_done(&s.world);
}

TEST_MAIN(CASE(unsynced_writes_are_lost) CASE(unsynced_writes_are_torn) CASE(unsynced_writes_are_lost_in_a_second_run)
              CASE(one_operation_fails) CASE(the_disk_is_full_for_a_while) CASE(the_disk_is_broken_until_it_is_not)
                  CASE(a_read_fails) CASE(live_streams_go_on) CASE(a_small_commit_is_one_write_and_one_sync)
                      CASE(a_commit_may_be_of_any_size))

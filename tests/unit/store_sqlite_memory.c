/* SQLite's own allocations fail, the n-th and every one after it until the end of the scene (F4). It has one allocator for
 * the whole process, so this is a program of its own. */
#include <sqlite3.h>

#include "store/world.h"

#define LAST 5000 /* more allocations than the scene has */

static sqlite3_mem_methods real;
static struct {
    pthread_mutex_t lock;
    long count, fail_at;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool fails(void) {
    pthread_mutex_lock(&memory.lock);
    bool yes = ++memory.count >= memory.fail_at && memory.fail_at;
    pthread_mutex_unlock(&memory.lock);
    return yes;
}

static void *take(int size) {
    return fails() ? NULL : real.xMalloc(size);
}

static void *change(void *ptr, int size) {
    return fails() ? NULL : real.xRealloc(ptr, size);
}

static void set(long fail_at) {
    pthread_mutex_lock(&memory.lock);
    memory.count = 0;
    memory.fail_at = fail_at;
    pthread_mutex_unlock(&memory.lock);
}

static bool reached(long n) {
    pthread_mutex_lock(&memory.lock);
    bool yes = memory.count >= n;
    pthread_mutex_unlock(&memory.lock);
    return yes;
}

/* An error that says what it is, or none. */
static bool fair(int r) {
    return r >= 0 || r == -ENOMEM || r == -EIO || r == -ENOSPC;
}

static bool run_at(long n) {
    store_world world;
    store_outcome outcome;
    uint64_t acknowledged = 0;
    world_init(&world, &weft__sqlite);
    CHECK(world_open(&world));
    CHECK_INT(world_append(&world, "a", "first"), 0);
    set(n);
    for (int i = 0; i < 3; i++) {
        int r = world_append_key(&world, "a", "x", i ? "key" : NULL, &outcome);
        acknowledged = r == 0 ? outcome.seq : acknowledged;
        CHECK(fair(r));
        CHECK(fair(world_append(&world, "new", "x")));
        CHECK(fair(world_read(&world, &(weft_query){.stream = "a"}, &outcome)));
        CHECK(fair(world_trim(&world, &(weft_trim){.stream = "new", .rows = 1}, &outcome)));
    }
    bool more = reached(n);
    world.store = weft__store_close(world.store);
    int r = weft__store_open(world.kind, &world.opts, &world.store, world.why);
    CHECK(fair(r));
    world.store = weft__store_close(r < 0 ? NULL : world.store);
    set(0);
    if (CHECK(world_open(&world))) {
        CHECK_INT(world_read(&world, &(weft_query){.stream = "a"}, &outcome), 0);
        CHECK(outcome.head >= acknowledged && outcome.count == outcome.head && outcome.head >= 1);
        CHECK_INT(world_append(&world, "a", "last"), 0);
    } else {
        printf("  allocation %ld: %s\n", n, world.why);
    }
    world_done(&world);
    return more;
}

TEST(allocations_of_sqlite_fail) {
    sqlite3_mem_methods ours;
    REQUIRE(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real) == SQLITE_OK);
    ours = real;
    ours.xMalloc = take;
    ours.xRealloc = change;
    REQUIRE(sqlite3_config(SQLITE_CONFIG_MALLOC, &ours) == SQLITE_OK);
    long n = 1;
    while (n < LAST && run_at(n))
        n++;
    CHECK(n > 50 && n < LAST);
}

TEST_MAIN(CASE(allocations_of_sqlite_fail))

/* Keys of the SQLite store: those in memory, those on their way to their table, and those in it are known alike; after a
 * clean stop, after a kill, and when there is no memory. */
#include <sqlite3.h>

#include "sqlite_store.h"
#include "store/world.h"

enum { MANY = 16384, BATCH = 64 };

static void name_key(char ret[32], int n) {
    /* Spread over the table, as digests are. */
    snprintf(ret, 32, "%08x/%d", (unsigned) n * 2654435761u, n);
}

static void on_held(void *ctx) {
    (void) ctx;
}

/* Keys from first on, in groups. How many did not get their place, and how many were known before. */
static int append_keys(store_world *world, int first, int count, int *ret_repeats) {
    static store_outcome outcomes[BATCH];
    int wrong = 0;
    *ret_repeats = 0;
    weft__store_hold(world->store, on_held, NULL);
    for (int done = 0; done < count; done += BATCH) {
        int n = count - done < BATCH ? count - done : BATCH;
        for (int i = 0; i < n; i++) {
            char key[32];
            weft_event event = world_event("a", "x");
            outcomes[i] = (store_outcome){0};
            name_key(key, first + done + i);
            CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, key}, world_appended, &outcomes[i]), 0);
        }
        world_wait(world, &outcomes[n - 1].times, 1);
        for (int i = 0; i < n; i++) {
            wrong += outcomes[i].r != 0 || outcomes[i].seq != (uint64_t) (first + done + i);
            *ret_repeats += outcomes[i].repeat;
        }
    }
    weft__store_hold(world->store, NULL, NULL);
    return wrong;
}

static int64_t ask(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    int64_t n = -1;
    CHECK_INT(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    CHECK_INT(weft__sq_know_hash(db), 0);
    CHECK_INT(weft__sq_get_int(db, sql, &n), 0);
    sqlite3_close(db);
    return n;
}

static void copy_file(const char *from, const char *to, const char *suffix) {
    char name[128];
    size_t len;
    snprintf(name, sizeof name, "%s%s", from, suffix);
    char *data = test_file(name, &len);
    snprintf(name, sizeof name, "%s%s", to, suffix);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, len) != (ssize_t) len)
        abort();
    close(fd);
    free(data);
}

/* What would be there if the process were killed now. */
static void open_killed(const store_world *from, store_world *ret) {
    world_init(ret, &weft__sqlite);
    copy_file(from->path, ret->path, "");
    copy_file(from->path, ret->path, "-wal");
    copy_file(from->path, ret->path, "-mark");
    if (!CHECK(world_open(ret)))
        printf("  %s\n", ret->why);
}

TEST(keys_move_to_their_table) {
    /* Nothing has moved; some are moving; all of the first have moved; and again. */
    static const int counts[] = {16 * BATCH, MANY + 3 * BATCH, MANY + MANY / 2, 2 * MANY + 3 * BATCH};
    store_world world, killed;
    int there = 0, repeats;
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        CHECK_INT(append_keys(&world, there + 1, counts[i] - there, &repeats), 0);
        CHECK_INT(repeats, 0);
        there = counts[i];
        int64_t moved = ask(world.path, "SELECT count(*) FROM keyed");
        CHECK(i == 0 ? moved == 0 : i == 2 ? moved == MANY : moved > 0 && moved < there && moved % MANY != 0);
        CHECK_INT(append_keys(&world, 1, there, &repeats), 0);
        CHECK_INT(repeats, there);
        open_killed(&world, &killed);
        CHECK_INT(append_keys(&killed, 1, there, &repeats), 0);
        CHECK_INT(repeats, there);
        CHECK_INT(append_keys(&killed, there + 1, 100, &repeats), 0);
        CHECK_INT(repeats, 0);
        world_done(&killed);
    }
    world.store = weft__store_close(world.store);
    CHECK_INT(ask(world.path, "SELECT count(*) FROM keyed"), there);
    CHECK_INT(ask(world.path, "SELECT keyed FROM state"), there);
    REQUIRE(world_open(&world));
    CHECK_INT(append_keys(&world, 1, there + 1, &repeats), 0);
    CHECK_INT(repeats, there);
    world_done(&world);
}

/* Events without a key come by the thousand: what a start must read again stays little. */
TEST(old_keys_move_too) {
    store_world world;
    store_outcome outcome = {0};
    weft_event events[256];
    int repeats;
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    CHECK_INT(append_keys(&world, 1, 10, &repeats), 0);
    for (int i = 0; i < 256; i++)
        events[i] = world_event("b", "x");
    for (int i = 0; i < 65536 / 256 + 1; i++)
        CHECK_INT(weft__store_append(world.store, &(weft_append){events, 256, NULL}, world_appended, &outcome), 0);
    world_wait(&world, &outcome.times, 65536 / 256 + 1);
    CHECK_INT(world_append(&world, "b", "last"), 0);
    CHECK_INT(ask(world.path, "SELECT count(*) FROM keyed"), 10);
    CHECK_INT(append_keys(&world, 1, 10, &repeats), 0);
    CHECK_INT(repeats, 10);
    world_done(&world);
}

TEST(trimmed_keys_are_forgotten) {
    enum { KEYS = MANY + 3 * BATCH, GONE = KEYS - 20 };
    store_world world, killed;
    store_outcome outcome;
    int repeats;
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    /* In the table, moving and recent: all three. */
    CHECK_INT(append_keys(&world, 1, KEYS, &repeats), 0);
    CHECK_INT(world_trim(&world, &(weft_trim){.stream = "a", .rows = KEYS - GONE}, &outcome), 0);
    CHECK_INT(outcome.removed, GONE);
    open_killed(&world, &killed);
    for (int i = 0; i < 2; i++) {
        store_world *one = i ? &killed : &world;
        CHECK_INT(append_keys(one, GONE + 1, 20, &repeats), 0);
        CHECK_INT(repeats, 20);
        append_keys(one, 1, 500, &repeats);
        CHECK_INT(repeats, 0);
        append_keys(one, GONE - 500, 500, &repeats);
        CHECK_INT(repeats, 0);
        one->store = weft__store_close(one->store);
        CHECK_INT(ask(one->path, "SELECT count(*) FROM keyed"), 1020);
        CHECK(world_open(one));
        world_done(one);
    }
}

/* Two keys may have one hash: the event says which it is. */
TEST(a_hash_is_not_believed) {
    store_world world;
    store_outcome outcome;
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    CHECK_INT(world_append_key(&world, "a", "1", "one", &outcome), 0);
    CHECK_INT(world_append(&world, "a", "2"), 0);
    world.store = weft__store_close(world.store);
    ask(world.path,
        "INSERT INTO keyed VALUES (weft_key_hash('two'), 1), (weft_key_hash('two'), 2), (weft_key_hash('two'), 9)"
        " RETURNING 1");
    REQUIRE(world_open(&world));
    CHECK_INT(world_append_key(&world, "a", "3", "two", &outcome), 0);
    CHECK(!outcome.repeat && outcome.seq == 3);
    CHECK_INT(world_append_key(&world, "a", "3", "two", &outcome), 0);
    CHECK(outcome.repeat && outcome.seq == 3);
    CHECK_INT(world_append_key(&world, "a", "1", "one", &outcome), 0);
    CHECK(outcome.repeat && outcome.seq == 1);
    world_done(&world);
}

TEST(a_missing_key_is_damage) {
    store_world world;
    store_outcome outcome;
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    CHECK_INT(world_append_key(&world, "a", "1", "one", &outcome), 0);
    world.store = weft__store_close(world.store);
    ask(world.path, "DELETE FROM keyed RETURNING 1");
    CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), -EUCLEAN);
    CHECK(strstr(world.why, "key"));
    world_done(&world);
}

/* Each allocation in turn: what was acknowledged is known, and nothing is done twice. */
static bool fail_memory(long n) {
    store_world world;
    store_outcome outcome;
    world_memory memory;
    bool stored[3] = {false};
    world_init(&world, &weft__sqlite);
    world_memory_init(&memory, 0);
    world.opts.alloc = &memory.alloc;
    if (!CHECK(world_open(&world)))
        return false;
    CHECK_INT(world_append_key(&world, "a", "0", "first", &outcome), 0);
    world.store = weft__store_close(world.store);
    if (!CHECK(world_open(&world)))
        return false;
    pthread_mutex_lock(&memory.lock);
    memory.memory.fail_at = memory.memory.count + n;
    pthread_mutex_unlock(&memory.lock);
    for (int i = 0; i < 3; i++) {
        static const char *const keys[] = {"one", "two", "one"};
        int r = world_append_key(&world, "a", "x", keys[i], &outcome);
        CHECK(r == 0 || r == -ENOMEM);
        stored[i] = r == 0;
        CHECK(r < 0 || outcome.repeat == (i == 2 && stored[0]));
    }
    pthread_mutex_lock(&memory.lock);
    bool reached = memory.memory.count >= memory.memory.fail_at;
    memory.memory.fail_at = 0;
    pthread_mutex_unlock(&memory.lock);
    CHECK_INT(world_append_key(&world, "a", "0", "first", &outcome), 0);
    CHECK(outcome.repeat);
    CHECK_INT(world_append_key(&world, "a", "x", "two", &outcome), 0);
    CHECK(outcome.repeat == stored[1]);
    world_done(&world);
    return reached;
}

TEST(memory_fails) {
    long n = 1;
    while (n < 200 && fail_memory(n))
        n++;
    CHECK(n > 3 && n < 200);
}

TEST_MAIN(CASE(keys_move_to_their_table) CASE(old_keys_move_too) CASE(trimmed_keys_are_forgotten)
              CASE(a_hash_is_not_believed) CASE(a_missing_key_is_damage) CASE(memory_fails))

/* Opening a journal that is not as it should be: damaged (F5), of another version (F15), somebody else's, in use, restored.
 */
#include <poll.h>
#include <sys/wait.h>
#include <zlib.h>

#include "sqlite_store.h"
#include "store/world.h"

#define EVENTS 60
#define STEP 97 /* bytes between two places that are damaged: prime, so that it meets every kind of place in a page */

typedef struct image {
    char *data;
    size_t len;
} image;

static image load(const char *path, const char *suffix) {
    char name[128];
    image file = {0};
    snprintf(name, sizeof name, "%s%s", path, suffix);
    file.data = test_file(name, &file.len);
    return file;
}

static void save(const char *path, const char *suffix, const image *file) {
    char name[128];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    if (!file->data) {
        unlink(name);
        return;
    }
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, file->data, file->len) != (ssize_t) file->len)
        abort();
    close(fd);
}

static bool there(const store_world *world, const char *suffix) {
    char name[128];
    snprintf(name, sizeof name, "%s%s", world->path, suffix);
    return access(name, F_OK) == 0;
}

/* A journal of EVENTS events in a and b, some large, each saying what it is. */
static void write_journal(store_world *world) {
    store_outcome outcome = {0};
    for (int i = 1; i <= EVENTS; i++) {
        char data[6000], key[16];
        snprintf(data, sizeof data, "%d:%0*d", i, i % 20 == 0 ? 5000 : 20, i);
        snprintf(key, sizeof key, "key-%d", i);
        weft_event event = world_event(i % 2 ? "a" : "b", data);
        CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, key}, world_appended, &outcome), 0);
    }
    world_wait(world, &outcome.times, EVENTS);
    CHECK_INT(outcome.r, 0);
}

typedef struct scan {
    store_world *world;
    int times, events;
    bool wrong, failed;
    uint64_t last;
} scan;

static void scanned(void *ctx, int r, const weft_page *page) {
    scan *s = ctx;
    s->times++;
    s->failed |= r != 0;
    for (size_t i = 0; r == 0 && i < page->count; i++) {
        const weft_event *event = &page->events[i];
        uint64_t n = strtoull(event->data.data, NULL, 10);
        s->wrong |= n != event->gseq || event->seq != (n + 1) / 2 || strcmp(event->stream, n % 2 ? "a" : "b") != 0 ||
                    event->data.len < 20;
        s->events++;
    }
    if (page)
        s->last = page->last;
}

/* Everything there is, by both ways of reading: right, or an error. */
static void check_reading(store_world *world, bool *ret_failed) {
    static const char *const streams[] = {NULL, "a", "b"};
    for (int i = 0; i < 3; i++) {
        scan s = {.world = world};
        int want = i ? EVENTS / 2 : EVENTS;
        CHECK_INT(weft__store_read(world->store, &(weft_query){.stream = streams[i], .max_bytes = 1 << 20}, scanned, &s), 0);
        world_wait(world, &s.times, 1);
        CHECK(!s.wrong);
        CHECK(s.failed || s.events == want);
        *ret_failed |= s.failed;
    }
    /* The next positions and the keys, or an error. */
    store_outcome outcome;
    int r = world_append_key(world, "a", "x", "key-1", &outcome);
    bool repeated = r == 0 && outcome.repeat && outcome.seq == 1;
    /* An index that has lost a key is found by the check that runs beside. */
    weft__sq_checker_join((weft_sq *) (void *) world->store);
    if (r != 0 || weft__store_look(world->store) == -EUCLEAN)
        *ret_failed = true;
    else
        CHECK(repeated);
    if (!repeated)
        return;
    r = world_append_key(world, "a", "x", NULL, &outcome);
    if (r != 0)
        *ret_failed = true;
    else
        CHECK(outcome.seq == EVENTS / 2 + 1 && outcome.gseq == EVENTS + 1);
}

/* What has become of it: refused, or a new epoch, or an error when read; otherwise all must be right. Whether it was
 * noticed. */
static bool notice(store_world *world, const char *epoch) {
    int r = weft__store_open(world->kind, &world->opts, &world->store, world->why);
    bool failed = r < 0;
    if (r < 0)
        CHECK((r == -EUCLEAN || r == -EINVAL || r == -ENOTSUP) && *world->why);
    else if (strcmp(weft__store_epoch(world->store), epoch) != 0)
        failed = true;
    else
        check_reading(world, &failed);
    world->store = weft__store_close(world->store);
    return failed;
}

/* Damage the file at many places, one after the other. */
static void damage_everywhere(weft_check check, const char *suffix, bool clean) {
    static const char *const suffixes[] = {"", "-wal", "-mark"};
    store_world world;
    char epoch[WEFT_EPOCH + 1];
    image files[3], *target = NULL;
    int noticed = 0, tried = 0;
    world_init(&world, &weft__sqlite);
    world.opts.check = check;
    REQUIRE(world_open(&world));
    memcpy(epoch, weft__store_epoch(world.store), sizeof epoch);
    write_journal(&world);
    if (clean)
        world.store = weft__store_close(world.store);
    /* Not closed: as a killed process leaves it. */
    for (int i = 0; i < 3; i++) {
        files[i] = load(world.path, suffixes[i]);
        if (strcmp(suffixes[i], suffix) == 0)
            target = &files[i];
    }
    world.store = weft__store_close(world.store);
    REQUIRE(target && target->data);
    /* What lies behind the frames of a log is room, and means nothing. */
    size_t used = target == &files[1] ? world_log_end(target->data, target->len) : target->len;
    for (size_t at = 0; at < 2 * used; at += STEP) {
        bool flip = at < used; /* then cut it off there */
        size_t place = at % used;
        image damaged = {malloc(target->len + 1), flip ? target->len : place};
        memcpy(damaged.data, target->data, target->len);
        if (flip)
            damaged.data[place] = (char) (damaged.data[place] ^ 1 << at % 8);
        world_empty(world.folder);
        for (int i = 0; i < 3; i++)
            save(world.path, suffixes[i], target == &files[i] ? &damaged : &files[i]);
        noticed += notice(&world, epoch);
        tried++;
        free(damaged.data);
    }
    /* Most of a file matters. */
    CHECK(noticed > tried / 3 && tried > 0);
    for (int i = 0; i < 3; i++)
        free(files[i].data);
    world_done(&world);
}

TEST(damage_to_the_database) {
    damage_everywhere(WEFT_CHECK_AUTO, "", true);
}

TEST(damage_to_the_database_found_when_read) {
    damage_everywhere(WEFT_CHECK_LAZY, "", true);
}

TEST(damage_to_the_log) {
    damage_everywhere(WEFT_CHECK_AUTO, "-wal", false);
}

TEST(damage_to_the_mark) {
    damage_everywhere(WEFT_CHECK_AUTO, "-mark", true);
}

static void spoil(const char *path) {
    int fd = open(path, O_RDWR);
    char zeros[3000] = {0};
    if (pwrite(fd, zeros, sizeof zeros, 8192) != (ssize_t) sizeof zeros)
        abort();
    close(fd);
}

TEST(refusing_changes_nothing) {
    store_world world;
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    write_journal(&world);
    world.store = weft__store_close(world.store);
    spoil(world.path);
    image before = load(world.path, "");
    CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), -EUCLEAN);
    CHECK(strstr(world.why, "damaged"));
    image after = load(world.path, "");
    CHECK(before.len == after.len && memcmp(before.data, after.data, before.len) == 0);
    free(after.data);
    world.opts.on_damage = WEFT_DAMAGE_QUARANTINE;
    REQUIRE(world_open(&world));
    CHECK(strstr(world.why, "damaged") && strstr(world.why, "kept as"));
    CHECK_INT(weft__store_head(world.store), 0);
    after = load(world.path, ".damaged-1");
    REQUIRE(after.data);
    CHECK(before.len == after.len && memcmp(before.data, after.data, before.len) == 0);
    free(before.data);
    free(after.data);
    /* And once more: the first is not overwritten. */
    write_journal(&world);
    world.store = weft__store_close(world.store);
    spoil(world.path);
    REQUIRE(world_open(&world));
    CHECK(there(&world, ".damaged-1") && there(&world, ".damaged-2"));
    CHECK_INT(world_append(&world, "a", "x"), 0);
    world_reopen(&world);
    CHECK_STR(world.why, "");
    world_done(&world);
}

TEST(what_was_acknowledged_is_missed) {
    store_world world;
    char epoch[WEFT_EPOCH + 1];
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    memcpy(epoch, weft__store_epoch(world.store), sizeof epoch);
    CHECK_INT(world_append(&world, "a", "1"), 0);
    world.store = weft__store_close(world.store);
    image backup = load(world.path, "");
    REQUIRE(world_open(&world));
    CHECK_INT(world_append(&world, "a", "2"), 0);
    world.store = weft__store_close(world.store);
    save(world.path, "", &backup);
    free(backup.data);
    CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), -EUCLEAN);
    CHECK(strstr(world.why, "event 2 was acknowledged") && strstr(world.why, "-mark"));
    /* As the sentence says. */
    save(world.path, "-mark", &(image){0});
    REQUIRE(world_open(&world));
    CHECK(strstr(world.why, "new epoch") && strcmp(weft__store_epoch(world.store), epoch) != 0);
    store_outcome outcome;
    CHECK_INT(world_read(&world, &(weft_query){.stream = "a", .after = 1, .epoch = epoch}, &outcome), WEFT_GAP_EPOCH);
    CHECK_INT(world_read(&world, &(weft_query){.stream = "a"}, &outcome), 0);
    CHECK_STR(outcome.text, "1:1");
    memcpy(epoch, weft__store_epoch(world.store), sizeof epoch);
    world_reopen(&world);
    CHECK_STR(weft__store_epoch(world.store), epoch);
    world_done(&world);
}

TEST(files_are_private) {
    static const char *const suffixes[] = {"", "-wal", "-shm", "-mark"};
    store_world world;
    world_init(&world, &weft__sqlite);
    mode_t before = umask(0);
    REQUIRE(world_open(&world));
    umask(before);
    CHECK_INT(world_append(&world, "a", "1"), 0);
    for (int i = 0; i < 4; i++) {
        char name[128];
        struct stat info = {0};
        snprintf(name, sizeof name, "%s%s", world.path, suffixes[i]);
        CHECK(stat(name, &info) == 0);
        CHECK_INT(info.st_mode & 0777, 0600);
    }
    world_done(&world);
}

TEST(only_one_at_a_time) {
    store_world world, second;
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    second = world;
    second.opts.path = world.path;
    CHECK_INT(weft__store_open(second.kind, &second.opts, &second.store, second.why), -EBUSY);
    CHECK(strstr(second.why, "in use"));
    world_done(&world);
}

/* What a daemon that was killed was about to start holds the journal for a moment: it is no program yet. */
TEST(a_child_holds_it_for_a_moment) {
    store_world world;
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    pid_t child = fork();
    if (child == 0) {
        (void) poll(NULL, 0, 100);
        _exit(0);
    }
    REQUIRE(child > 0);
    world.store = weft__store_close(world.store);
    CHECK(world_open(&world));
    CHECK(waitpid(child, NULL, 0) == child);
    world_done(&world);
}

/* Run SQL on the closed database. */
static void edit(const store_world *world, const char *sql) {
    sqlite3 *db = NULL;
    CHECK_INT(sqlite3_open(world->path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

TEST(a_newer_version_is_refused) {
    store_world world;
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    CHECK_INT(world_append(&world, "a", "1"), 0);
    world.store = weft__store_close(world.store);
    edit(&world, "PRAGMA user_version = 99; ALTER TABLE event ADD COLUMN novelty");
    image before = load(world.path, "");
    for (int i = 0; i < 2; i++) {
        /* Not damage: it is not moved aside either. */
        world.opts.on_damage = i ? WEFT_DAMAGE_QUARANTINE : WEFT_DAMAGE_REFUSE;
        CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), -ENOTSUP);
        CHECK(strstr(world.why, "newer version") && strstr(world.why, "99"));
    }
    image after = load(world.path, "");
    CHECK(before.len == after.len && memcmp(before.data, after.data, before.len) == 0);
    CHECK(!there(&world, ".damaged-1"));
    free(before.data);
    free(after.data);
    world_done(&world);
}

/* As version 2 computed it: without the number up to which is counted. */
static void old_sum(sqlite3_context *ctx, int count, sqlite3_value **values) {
    const char *epoch = (const char *) sqlite3_value_text(values[0]);
    uLong sum = crc32_z(crc32(0, NULL, 0), (const Bytef *) epoch, strlen(epoch) + 1);
    for (int i = 1; i < count; i++) {
        int64_t n = sqlite3_value_int64(values[i]);
        sum = crc32(sum, (const Bytef *) &n, sizeof n);
    }
    sqlite3_result_int64(ctx, (int64_t) sum);
}

/* What is in every one of them: an index of keys, and none of our tables for them. */
static const char version_3[] = "DROP TABLE keyed; ALTER TABLE state DROP COLUMN keyed;"
                                "CREATE UNIQUE INDEX event_key ON event (key) WHERE key IS NOT NULL";

static void make_old(store_world *world, const char *sql) {
    sqlite3 *db = NULL;
    CHECK_INT(sqlite3_open(world->path, &db), SQLITE_OK);
    CHECK_INT(sqlite3_create_function(db, "old_sum", -1, SQLITE_UTF8, NULL, old_sum, NULL, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, version_3, NULL, NULL, NULL), SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

TEST(an_older_version_is_migrated) {
#define VERSION_2                                                                                                           \
    "DROP TABLE document; UPDATE state SET sum = old_sum(epoch, clean, trimmed, rows, bytes, fence);"                       \
    "ALTER TABLE state DROP COLUMN counted;"
    static const char *const versions[] = {
        "UPDATE state SET sum = old_sum(epoch, clean, trimmed, rows, bytes, fence, counted); PRAGMA user_version = 3",
        VERSION_2 "PRAGMA user_version = 1",
        VERSION_2
        "CREATE TABLE claim (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until INTEGER NOT NULL, fence INTEGER NOT NULL)"
        " WITHOUT ROWID; INSERT INTO claim VALUES ('k', 'o', 0, 1); PRAGMA user_version = 2",
    };
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        store_world world;
        store_outcome outcome;
        char epoch[WEFT_EPOCH + 1];
        world_init(&world, &weft__sqlite);
        REQUIRE(world_open(&world));
        memcpy(epoch, weft__store_epoch(world.store), sizeof epoch);
        world_fill(&world, "a", 2);
        CHECK_INT(world_append_key(&world, "a", "3", "key", &outcome), 0);
        world.store = weft__store_close(world.store);
        make_old(&world, versions[i]);
        if (!CHECK(world_open(&world)))
            return;
        CHECK_STR(world.why, "");
        CHECK_STR(weft__store_epoch(world.store), epoch);
        CHECK_INT(world_read(&world, &(weft_query){.stream = "a"}, &outcome), 0);
        CHECK_STR(outcome.text, "1:1 2:2 3:3");
        CHECK_INT(world_read(&world, &(weft_query){.documents = true}, &outcome), 0);
        CHECK_INT(outcome.count, 0);
        CHECK_INT(world_append_key(&world, "a", "3", "key", &outcome), 0);
        CHECK(outcome.repeat && outcome.seq == 3);
        world_reopen(&world);
        world_done(&world);
    }
}

TEST(every_version_is_reached_from_nothing) {
    store_world world;
    char why[WEFT_STORE_WHY] = "";
    sqlite3 *db = NULL;
    int64_t version = 0;
    world_init(&world, &weft__sqlite);
    CHECK_INT(sqlite3_open(world.path, &db), SQLITE_OK);
    CHECK_INT(weft__sq_migrate(db, 1, why), 1);
    CHECK_INT(weft__sq_get_int(db, "PRAGMA user_version", &version), 0);
    CHECK_INT(version, 1);
    sqlite3_close(db);
    REQUIRE(world_open(&world));
    CHECK_INT(world_append(&world, "a", "1"), 0);
    world_done(&world);
}

TEST(what_is_not_ours_is_left_alone) {
    store_world world;
    world_init(&world, &weft__sqlite);
    edit(&world, "CREATE TABLE recipes (name); INSERT INTO recipes VALUES ('soup')");
    world.opts.on_damage = WEFT_DAMAGE_QUARANTINE;
    CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), -EINVAL);
    CHECK(strstr(world.why, "another program"));
    CHECK(!there(&world, ".damaged-1"));
    world.opts.on_damage = WEFT_DAMAGE_REFUSE;
    save(world.path, "", &(image){"this is a letter to my aunt, and it is longer than a header", 59});
    CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), -EUCLEAN);
    CHECK(*world.why);
    world.opts.path = "/nowhere/at/all.db";
    CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), -ENOENT);
    CHECK(*world.why);
    world_done(&world);
}

/* The log does not grow without end, though nothing is ever idle. */
TEST(the_log_is_copied_back) {
    store_world world;
    store_outcome outcome = {0};
    size_t size = (size_t) 1 << 20;
    char *data = calloc(1, size);
    weft_event event = {.stream = "a", .type = "t", .data = {data, size}};
    char name[128];
    struct stat info = {0};
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    for (int i = 0; i < 200; i++) {
        CHECK_INT(weft__store_append(world.store, &(weft_append){&event, 1, NULL}, world_appended, &outcome), 0);
        world_wait(&world, &outcome.times, i + 1);
        CHECK_INT(world_trim(&world, &(weft_trim){.rows = 2}, &(store_outcome){0}), 0);
    }
    snprintf(name, sizeof name, "%s-wal", world.path);
    CHECK(stat(name, &info) == 0);
    CHECK(info.st_size > (60 << 20) && info.st_size < (80 << 20));
    free(data);
    world_done(&world);
}

/* Room is written ahead when the log is in use, a step at a time, and what a kill leaves of it means nothing. */
TEST(the_log_has_room) {
    store_world world;
    image files[3];
    static const char *const suffixes[] = {"", "-wal", "-mark"};
    struct stat info = {0};
    char name[128];
    world_init(&world, &weft__sqlite);
    REQUIRE(world_open(&world));
    snprintf(name, sizeof name, "%s-wal", world.path);
    CHECK_INT(world_append(&world, "a", "1"), 0);
    CHECK(stat(name, &info) == 0 && info.st_size < (128 << 10));
    for (int i = 2; i <= 40; i++)
        CHECK_INT(world_append(&world, "a", "x"), 0);
    for (int i = 0; i < 3; i++)
        files[i] = load(world.path, suffixes[i]);
    size_t used = world_log_end(files[1].data, files[1].len);
    CHECK(used < files[1].len && files[1].len - used <= (512 << 10));
    world.store = weft__store_close(world.store);
    world_empty(world.folder);
    for (int i = 0; i < 3; i++)
        save(world.path, suffixes[i], &files[i]);
    REQUIRE(world_open(&world));
    CHECK_STR(world.why, "");
    CHECK_INT(weft__store_head(world.store), 40);
    CHECK_INT(world_append(&world, "a", "41"), 0);
    CHECK_INT(weft__store_head(world.store), 41);
    for (int i = 0; i < 3; i++)
        free(files[i].data);
    world_done(&world);
}

TEST_MAIN(CASE(damage_to_the_database) CASE(damage_to_the_database_found_when_read) CASE(damage_to_the_log)
              CASE(damage_to_the_mark) CASE(refusing_changes_nothing) CASE(what_was_acknowledged_is_missed)
                  CASE(files_are_private) CASE(only_one_at_a_time) CASE(a_child_holds_it_for_a_moment)
                      CASE(a_newer_version_is_refused) CASE(an_older_version_is_migrated)
                          CASE(every_version_is_reached_from_nothing) CASE(what_is_not_ours_is_left_alone)
                              CASE(the_log_is_copied_back) CASE(the_log_has_room))

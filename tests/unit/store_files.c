/* The files of a journal are deleted, replaced or changed while it is open (F16): nothing more is acknowledged, it is told,
 * and the next start has every acknowledged event or says what is missing. */
#include <sched.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "clock.h"
#include "store/shim.h"
#include "store/world.h"

#define EVENTS 30
#define ALL (12 * EVENTS)

typedef struct scene {
    store_world world;
    char older[128]; /* a copy of the database, as it was after a few events */
} scene;

static void name_of(const scene *s, const char *suffix, char ret[160]) {
    snprintf(ret, 160, "%s%s", s->world.path, suffix);
}

static void write_all(const char *path, const char *data, size_t len, int flags) {
    int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);
    if (fd < 0 || pwrite(fd, data, len, 0) != (ssize_t) len)
        abort();
    close(fd);
}

static void copy_file(const char *from, const char *to, int flags) {
    size_t len;
    char *data = test_file(from, &len);
    write_all(to, data, len, flags);
    free(data);
}

/* A journal of three runs; the third is going on, and its events are in the log. The copy is of the first. */
static bool open_scene_on(scene *s, const char *vfs) {
    world_init(&s->world, &weft__sqlite);
    s->world.opts.vfs = vfs;
    snprintf(s->older, sizeof s->older, "%s/older", s->world.folder);
    if (!world_open(&s->world))
        return false;
    world_fill(&s->world, "a", EVENTS);
    s->world.store = weft__store_close(s->world.store);
    copy_file(s->world.path, s->older, 0);
    if (!world_open(&s->world))
        return false;
    world_fill(&s->world, "a", 10 * EVENTS);
    s->world.store = weft__store_close(s->world.store);
    if (!world_open(&s->world))
        return false;
    world_fill(&s->world, "a", EVENTS);
    return true;
}

static bool open_scene(scene *s) {
    return open_scene_on(s, NULL);
}

/* ---- what somebody does ---- */

static void delete_one(const scene *s, const char *suffix) {
    char name[160];
    name_of(s, suffix, name);
    unlink(name);
}

static void empty_one(const scene *s, const char *suffix) {
    char name[160];
    name_of(s, suffix, name);
    if (truncate(name, 0) < 0)
        abort();
}

static void replace_one(const scene *s, const char *suffix) {
    char name[160], beside[180];
    name_of(s, suffix, name);
    snprintf(beside, sizeof beside, "%s.new", name);
    copy_file(name, beside, 0);
    if (rename(beside, name) < 0)
        abort();
}

/* As cp does: the file stays, what is in it is another. */
static void overwrite_one(const scene *s, const char *suffix) {
    char name[160];
    struct stat info;
    name_of(s, suffix, name);
    if (stat(name, &info) < 0)
        abort();
    copy_file(s->older, name, O_TRUNC);
    if (truncate(name, info.st_size) < 0)
        abort();
}

static const struct {
    const char *name;
    void (*act)(const scene *s, const char *suffix);
    const char *suffix;
} acts[] = {
    {"the database is deleted", delete_one, ""},         {"the log is deleted", delete_one, "-wal"},
    {"the mark is deleted", delete_one, "-mark"},        {"the database is emptied", empty_one, ""},
    {"the log is emptied", empty_one, "-wal"},           {"the database is replaced", replace_one, ""},
    {"the log is replaced", replace_one, "-wal"},        {"the mark is replaced", replace_one, "-mark"},
    {"an older copy is put over it", overwrite_one, ""}, {"something is put over the log", overwrite_one, "-wal"},
};

/* The coarse clock of file systems: a change in the same tick as our last one has the same time. Wait until a change of ours
 * would have another, and for as long as the store believes that ticks are. */
static void pass_a_tick(const scene *s) {
    int64_t until = weft__clock_ns() + 20 * 1000 * 1000;
    struct stat before = {0}, after = {0};
    char name[160];
    name_of(s, "-wal", name);
    stat(name, &before);
    do {
        write_all(s->older, "x", 0, 0);
        utimensat(AT_FDCWD, s->older, NULL, 0);
        stat(s->older, &after);
    } while (weft__clock_ns() < until ||
             (after.st_mtim.tv_sec == before.st_mtim.tv_sec && after.st_mtim.tv_nsec == before.st_mtim.tv_nsec));
}

static uint64_t events_there(scene *s) {
    store_outcome page;
    CHECK_INT(world_read(&s->world, &(weft_query){.max_events = 4096}, &page), 0);
    return page.count;
}

/* When it is opened again: everything, or why not. */
static bool next_start_is_right(scene *s) {
    s->world.store = weft__store_close(s->world.store);
    int r = weft__store_open(s->world.kind, &s->world.opts, &s->world.store, s->world.why);
    return r < 0 ? CHECK_INT(r, -EUCLEAN) && CHECK(*s->world.why) : CHECK(events_there(s) >= ALL);
}

TEST(nothing_is_acknowledged_that_nobody_would_find) {
    for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
        scene s;
        REQUIRE(open_scene(&s));
        CHECK_INT(weft__store_look(s.world.store), 0);
        pass_a_tick(&s);
        acts[i].act(&s, acts[i].suffix);
        /* What is put over a file with the same size is seen when something is to be written. */
        bool right = acts[i].act == overwrite_one || CHECK_INT(weft__store_look(s.world.store), -ESTALE);
        right &= CHECK_INT(world_append(&s.world, "a", "x"), -ESTALE);
        right &= CHECK_INT(world_append(&s.world, "b", "x"), -ESTALE);
        right &= next_start_is_right(&s);
        world_done(&s.world);
        if (!right)
            printf("  %s\n", acts[i].name);
    }
}

TEST(what_is_put_back_goes_on) {
    static const char *const suffixes[] = {"", "-wal", "-mark"};
    for (size_t i = 0; i < 3; i++) {
        scene s;
        char name[160], away[180];
        REQUIRE(open_scene(&s));
        name_of(&s, suffixes[i], name);
        snprintf(away, sizeof away, "%s.away", name);
        CHECK_INT(rename(name, away), 0);
        CHECK_INT(world_append(&s.world, "a", "x"), -ESTALE);
        CHECK_INT(rename(away, name), 0);
        CHECK_INT(weft__store_look(s.world.store), 0);
        CHECK_INT(world_append(&s.world, "a", "x"), 0);
        world_reopen(&s.world);
        CHECK_STR(s.world.why, "");
        CHECK_INT(events_there(&s), ALL + 1);
        world_done(&s.world);
    }
}

/* Only the time changed: everything is read once more, and it goes on. */
TEST(a_touch_does_no_harm) {
    scene s;
    char name[160];
    REQUIRE(open_scene(&s));
    for (int i = 0; i < 6; i++) {
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000 + i}};
        name_of(&s, i % 2 ? "-wal" : "", name);
        CHECK_INT(utimensat(AT_FDCWD, name, times, 0), 0);
        CHECK_INT(world_append(&s.world, "a", "x"), 0);
    }
    world_reopen(&s.world);
    CHECK_STR(s.world.why, "");
    world_done(&s.world);
}

/* A transaction of another program's, which leaves alone what is ours. */
static void write_as_stranger(const char *path) {
    sqlite3 *db = NULL;
    bool done = sqlite3_open(path, &db) == SQLITE_OK &&
                sqlite3_exec(db, "CREATE TABLE IF NOT EXISTS stranger (x); INSERT INTO stranger VALUES (1)", NULL, NULL,
                             NULL) == SQLITE_OK;
    /* Without copying the log back. */
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *) NULL);
    if (sqlite3_close(db) != SQLITE_OK || !done)
        abort();
}

/* It goes on behind it, whether it notices by the time of change or only when it is about to write. */
TEST(a_transaction_of_a_strangers_does_no_harm) {
    scene s;
    char name[160];
    REQUIRE(open_scene(&s));
    name_of(&s, "-wal", name);
    for (int i = 0; i < 6; i++) {
        struct stat before = {0};
        CHECK_INT(stat(name, &before), 0);
        write_as_stranger(s.world.path);
        const struct timespec seen[2] = {before.st_atim, before.st_mtim},
                              other[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        CHECK_INT(utimensat(AT_FDCWD, name, i % 2 ? other : seen, 0), 0);
        CHECK_INT(world_append(&s.world, "a", "x"), 0);
        CHECK_INT(world_append(&s.world, "a", "x"), 0);
    }
    CHECK_INT(events_there(&s), ALL + 12);
    world_reopen(&s.world);
    CHECK_STR(s.world.why, "");
    CHECK_INT(events_there(&s), ALL + 12);
    world_done(&s.world);
}

/* As sqlite3's .restore does: what is in the database is a journal of ours, and an older one. */
static void restore_older(const scene *s) {
    sqlite3 *from = NULL, *to = NULL;
    bool open = sqlite3_open(s->older, &from) == SQLITE_OK && sqlite3_open(s->world.path, &to) == SQLITE_OK;
    sqlite3_backup *copy = open ? sqlite3_backup_init(to, "main", from, "main") : NULL;
    bool done = copy && sqlite3_backup_step(copy, -1) == SQLITE_DONE && sqlite3_backup_finish(copy) == SQLITE_OK;
    sqlite3_db_config(to, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *) NULL);
    if (sqlite3_close(from) != SQLITE_OK || sqlite3_close(to) != SQLITE_OK || !done)
        abort();
}

TEST(an_older_journal_that_is_restored_takes_nothing_more) {
    for (int hidden = 0; hidden < 2; hidden++) {
        scene s;
        struct stat before = {0};
        char name[160];
        REQUIRE(open_scene(&s));
        pass_a_tick(&s);
        CHECK_INT(world_append(&s.world, "a", "x"), 0);
        name_of(&s, "-wal", name);
        CHECK_INT(stat(name, &before), 0);
        restore_older(&s);
        const struct timespec seen[2] = {before.st_atim, before.st_mtim};
        if (hidden) /* as if it had happened in the tick of our own write */
            CHECK_INT(utimensat(AT_FDCWD, name, seen, 0), 0);
        CHECK_INT(world_append(&s.world, "a", "x"), -ESTALE);
        CHECK_INT(world_append(&s.world, "a", "x"), -ESTALE);
        s.world.store = weft__store_close(s.world.store);
        CHECK_INT(weft__store_open(s.world.kind, &s.world.opts, &s.world.store, s.world.why), -EUCLEAN);
        CHECK(strstr(s.world.why, "lost its end"));
        world_done(&s.world);
    }
}

/* ---- a log that was copied back and emptied ---- */

static sqlite3 *open_as_stranger(const scene *s) {
    sqlite3 *db = NULL;
    if (sqlite3_open(s->world.path, &db) != SQLITE_OK)
        abort();
    while (sqlite3_exec(db, "SELECT count(*) FROM state", NULL, NULL, NULL) != SQLITE_OK)
        sched_yield(); /* before it has read, it does not know of the log */
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *) NULL);
    return db;
}

/* What a backup tool does, or a person with sqlite3 and PRAGMA wal_checkpoint(TRUNCATE). */
static void empty_as_sqlite_does(const scene *s) {
    sqlite3 *db = open_as_stranger(s);
    struct stat info = {0};
    char name[160];
    int rc;
    while ((rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL)) == SQLITE_BUSY)
        sched_yield(); /* the store is still at it */
    name_of(s, "-wal", name);
    if (rc != SQLITE_OK || sqlite3_close(db) != SQLITE_OK || stat(name, &info) < 0 || info.st_size != 0)
        abort();
}

/* Nothing in the log is needed any more, and SQLite still counts on it. */
static void wait_until_copied_back(const scene *s) {
    sqlite3 *db = open_as_stranger(s);
    int pages = 0, copied = -1;
    while (pages != copied) {
        int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
        if (rc != SQLITE_OK && rc != SQLITE_BUSY)
            abort();
    }
    if (sqlite3_close(db) != SQLITE_OK)
        abort();
}

/* Are these files, as they lie there, enough? The mark says how far they must reach. */
static bool can_be_found_after_a_kill(const scene *s, uint64_t events) {
    static const char *const suffixes[] = {"", "-wal", "-mark"};
    scene found;
    world_init(&found.world, &weft__sqlite);
    for (size_t i = 0; i < 3; i++) {
        char from[160], to[160];
        name_of(s, suffixes[i], from);
        name_of(&found, suffixes[i], to);
        copy_file(from, to, 0);
    }
    bool right = CHECK(world_open(&found.world)) && CHECK_STR(found.world.why, "");
    right = right && CHECK_INT(events_there(&found), events);
    world_done(&found.world);
    return right;
}

TEST(a_log_that_was_copied_back_and_emptied_does_no_harm) {
    scene s;
    REQUIRE(open_scene(&s));
    for (uint64_t i = 0; i < 5; i++) {
        empty_as_sqlite_does(&s);
        CHECK_INT(world_append(&s.world, "a", "x"), 0);
        CHECK_INT(weft__store_look(s.world.store), 0);
        CHECK_INT(world_append(&s.world, "b", "x"), 0);
        CHECK(can_be_found_after_a_kill(&s, ALL + 2 * (i + 1)));
    }
    empty_as_sqlite_does(&s);
    world_reopen(&s.world);
    CHECK_STR(s.world.why, "");
    CHECK_INT(events_there(&s), ALL + 10);
    world_done(&s.world);
}

/* Nobody sends work to a hub that is not ready, so the store finds out by being looked at. */
TEST(a_log_that_was_emptied_is_looked_into_without_an_append) {
    scene s;
    REQUIRE(open_scene(&s));
    empty_as_sqlite_does(&s);
    int64_t until = weft__clock_ns() + (int64_t) WORLD_PATIENCE_MS * 1000000;
    while (weft__store_look(s.world.store) < 0 && weft__clock_ns() < until)
        sched_yield();
    CHECK_INT(weft__store_look(s.world.store), 0);
    world_done(&s.world);
}

/* Whoever empties it by hand leaves SQLite's index as it was: what is written next would lie behind a hole, where no start
 * looks for it. Also if nothing is missing, and whatever SQLite did before. */
TEST(a_log_that_was_emptied_by_hand_takes_nothing) {
    for (int round = 0; round < 8; round++) {
        scene s;
        REQUIRE(open_scene(&s));
        bool emptied_before = round & 1, copied = round & 2, another = round & 4;
        if (emptied_before) {
            empty_as_sqlite_does(&s);
            CHECK_INT(world_append(&s.world, "a", "x"), 0);
        }
        if (copied)
            wait_until_copied_back(&s);
        if (another)
            replace_one(&s, "");
        empty_one(&s, "-wal");
        CHECK_INT(weft__store_look(s.world.store), -ESTALE);
        bool right = CHECK_INT(world_append(&s.world, "a", "x"), -ESTALE);
        right &= CHECK_INT(world_append(&s.world, "b", "x"), -ESTALE);
        right &= CHECK_INT(weft__store_look(s.world.store), -ESTALE);
        right &= next_start_is_right(&s);
        world_done(&s.world);
        if (!right)
            printf("  round %d\n", round);
    }
}

/* By hand and in the midst of the first transaction after SQLite had emptied it: after the new log's header was written, and
 * after all of it was. */
TEST(a_new_log_that_is_cut_off_at_once_is_missed) {
    for (int sync = 1; sync <= 2; sync++) {
        scene s;
        shim_reset();
        REQUIRE(open_scene_on(&s, "shim"));
        empty_as_sqlite_does(&s);
        shim_one.cut_at = sync;
        bool right = CHECK(world_append(&s.world, "a", "x") < 0) && CHECK_INT(shim_one.cut_at, 0);
        right &= CHECK_INT(world_append(&s.world, "b", "x"), -ESTALE);
        right &= next_start_is_right(&s);
        world_done(&s.world);
        if (!right)
            printf("  at sync %d\n", sync);
    }
    shim_reset();
}

/* As SQLite empties it, and something else happened as well. */
TEST(a_log_that_was_emptied_hides_nothing_else) {
    static const struct {
        const char *name;
        void (*act)(const scene *s, const char *suffix);
        const char *suffix;
    } also[] = {
        {"the database is deleted", delete_one, ""},
        {"the database is replaced", replace_one, ""},
        {"the mark is deleted", delete_one, "-mark"},
        {"an older copy is put over it", overwrite_one, ""},
    };
    for (size_t i = 0; i < sizeof also / sizeof also[0]; i++) {
        scene s;
        REQUIRE(open_scene(&s));
        empty_as_sqlite_does(&s);
        also[i].act(&s, also[i].suffix);
        bool right = CHECK_INT(world_append(&s.world, "a", "x"), -ESTALE);
        right &= CHECK_INT(world_append(&s.world, "b", "x"), -ESTALE);
        right &= CHECK_INT(weft__store_look(s.world.store), -ESTALE);
        right &= next_start_is_right(&s);
        world_done(&s.world);
        if (!right)
            printf("  %s\n", also[i].name);
    }
}

TEST(an_older_journal_that_is_restored_and_emptied_takes_nothing_more) {
    scene s;
    REQUIRE(open_scene(&s));
    restore_older(&s);
    empty_as_sqlite_does(&s);
    CHECK_INT(world_append(&s.world, "a", "x"), -ESTALE);
    CHECK_INT(world_append(&s.world, "a", "x"), -ESTALE);
    s.world.store = weft__store_close(s.world.store);
    CHECK_INT(weft__store_open(s.world.kind, &s.world.opts, &s.world.store, s.world.why), -EUCLEAN);
    CHECK(strstr(s.world.why, "lost its end"));
    world_done(&s.world);
}

/* The log's time is what our own last write made it, however long ago that was: otherwise it would count as somebody else's,
 * and after a few of these times are not believed any more. */
TEST(our_own_writes_are_known_as_ours) {
    scene s;
    REQUIRE(open_scene(&s));
    for (int i = 0; i < 8; i++) {
        pass_a_tick(&s);
        CHECK_INT(world_append(&s.world, "a", "x"), 0);
        CHECK_INT(world_append(&s.world, "b", "x"), 0);
    }
    pass_a_tick(&s);
    overwrite_one(&s, "-wal");
    CHECK_INT(world_append(&s.world, "a", "x"), -ESTALE);
    world_done(&s.world);
}

/* Likewise where the file system's clock is another one than ours. */
TEST(our_own_writes_are_known_by_another_clock) {
    scene s;
    shim_reset();
    shim_one.clock_off_s = -3600;
    REQUIRE(open_scene_on(&s, "shim"));
    for (int i = 0; i < 8; i++) {
        pass_a_tick(&s);
        CHECK_INT(world_append(&s.world, "a", "x"), 0);
    }
    pass_a_tick(&s);
    overwrite_one(&s, "-wal");
    CHECK_INT(world_append(&s.world, "a", "x"), -ESTALE);
    world_done(&s.world);
    shim_reset();
}

TEST_MAIN(CASE(nothing_is_acknowledged_that_nobody_would_find) CASE(what_is_put_back_goes_on) CASE(a_touch_does_no_harm)
              CASE(a_transaction_of_a_strangers_does_no_harm) CASE(an_older_journal_that_is_restored_takes_nothing_more)
                  CASE(a_log_that_was_copied_back_and_emptied_does_no_harm)
                      CASE(a_log_that_was_emptied_is_looked_into_without_an_append)
                          CASE(a_log_that_was_emptied_by_hand_takes_nothing)
                              CASE(a_new_log_that_is_cut_off_at_once_is_missed)
                                  CASE(a_log_that_was_emptied_hides_nothing_else)
                                      CASE(an_older_journal_that_is_restored_and_emptied_takes_nothing_more)
                                          CASE(our_own_writes_are_known_as_ours)
                                              CASE(our_own_writes_are_known_by_another_clock))

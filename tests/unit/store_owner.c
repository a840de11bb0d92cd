/* The files of a journal that somebody else prepared: links, hard links, pipes, folders, another user's. None of them is
 * opened, and what they lead to stays as it is. */
#include "store/world.h"

static const char *const parts[] = {"", "-wal", "-shm", "-journal", "-mark"};
#define PARTS (sizeof parts / sizeof parts[0])

/* The foreign file that must stay as it is. */
static void make_victim(const store_world *world, char path[128]) {
    snprintf(path, 128, "%s.victim", world->path); /* hard links stay within a file system */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    REQUIRE(fd >= 0 && write(fd, "precious", 8) == 8 && fchmod(fd, 0644) == 0);
    close(fd);
}

static void check_victim(const char *path, const struct stat *before) {
    struct stat now;
    CHECK(stat(path, &now) == 0);
    CHECK_INT(now.st_size, 8);
    CHECK_INT(now.st_mode & 0777, 0644);
    CHECK(now.st_mtim.tv_sec == before->st_mtim.tv_sec && now.st_mtim.tv_nsec == before->st_mtim.tv_nsec);
}

static int plant_link(const char *victim, const char *name) {
    return symlink(victim, name);
}

static int plant_dangling(const char *victim, const char *name) {
    char nowhere[160];
    snprintf(nowhere, sizeof nowhere, "%s-nowhere", victim);
    return symlink(nowhere, name);
}

static int plant_hard_link(const char *victim, const char *name) {
    return link(victim, name);
}

static int plant_pipe(const char *victim, const char *name) {
    (void) victim;
    return mkfifo(name, 0600);
}

static int plant_folder(const char *victim, const char *name) {
    (void) victim;
    return mkdir(name, 0700);
}

static int plant_strangers(const char *victim, const char *name) {
    (void) victim;
    int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
    int r = fd < 0 ? -1 : fchown(fd, 12345, (gid_t) -1);
    close(fd);
    return r;
}

static const struct {
    const char *name;
    int (*plant)(const char *victim, const char *name);
    int r;
    const char *why;
} rows[] = {
    {"a link", plant_link, -ELOOP, "is a link"},
    {"a link to nothing", plant_dangling, -ELOOP, "is a link"},
    {"a hard link", plant_hard_link, -EMLINK, "has a second name"},
    {"a pipe", plant_pipe, -EISDIR, "is not a regular file"},
    {"a folder", plant_folder, -EISDIR, "is not a regular file"},
    {"another user's", plant_strangers, -EPERM, "belongs to another user"},
};

static void try_part(size_t row, const char *part) {
    store_world world;
    char victim[128], name[160], nowhere[160];
    struct stat before;
    world_init(&world, &weft__sqlite);
    make_victim(&world, victim);
    REQUIRE(stat(victim, &before) == 0);
    snprintf(name, sizeof name, "%s%s", world.path, part);
    snprintf(nowhere, sizeof nowhere, "%s-nowhere", victim);
    REQUIRE(rows[row].plant(victim, name) == 0);
    world.opts.path = world.path;
    CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), rows[row].r);
    CHECK(strstr(world.why, rows[row].why));
    CHECK(access(nowhere, F_OK) < 0);
    check_victim(victim, &before);
    unlink(name);
    rmdir(name);
    unlink(victim);
    world.store = NULL;
    world_done(&world);
}

TEST(what_somebody_prepared_is_not_opened) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].r == -EPERM && geteuid() != 0) {
            test_skip("only root can give a file away");
            continue;
        }
        for (size_t k = 0; k < PARTS; k++) {
            char label[64];
            snprintf(label, sizeof label, "%s for *%s", rows[i].name, parts[k]);
            test_row(label);
            try_part(i, parts[k]);
        }
    }
}

/* A file that stays where it is can still be filled with another journal. */
TEST(another_journal_than_expected) {
    store_world world;
    char epoch[WEFT_EPOCH + 1];
    world_init(&world, &weft__sqlite);
    world.opts.expect = "00000000000000000000000000000000"; /* of a journal that does not exist yet: any is right */
    REQUIRE(world_open(&world));
    snprintf(epoch, sizeof epoch, "%s", weft__store_epoch(world.store));
    CHECK_INT(world_append(&world, "a", "1"), 0);
    weft__store_close(world.store);
    world.store = NULL;
    CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), -EKEYREJECTED);
    CHECK(strstr(world.why, "another journal"));
    world.opts.expect = epoch;
    CHECK_INT(weft__store_open(world.kind, &world.opts, &world.store, world.why), 0);
    world_done(&world);
}

TEST_MAIN(CASE(what_somebody_prepared_is_not_opened) CASE(another_journal_than_expected))

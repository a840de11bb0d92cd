/* The record of trust: finding, replacing and forgetting entries, what is refused as a record, which files are strange, and
 * looking into a journal that nobody has vouched for. */
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon_folder.h"
#include "harness.h"
#include "peek.h"

#define MAX_ENTRIES 4096 /* as in trust_file.c */

static char folder[64], state[96], record[128];
static char why[WEFT_TRUST_WHY];

static void enter(void) {
    snprintf(folder, sizeof folder, "/tmp/weft-trust-XXXXXX");
    REQUIRE(mkdtemp(folder) && chdir(folder) == 0);
    snprintf(state, sizeof state, "%s/state", folder);
    snprintf(record, sizeof record, "%s/weft/trust.json", state);
    setenv("XDG_STATE_HOME", state, 1);
    *why = '\0';
}

static void leave(void) {
    static const char *const names[] = {".weft/weft.db",
                                        ".weft/weft.db-wal",
                                        ".weft/weft.db-journal",
                                        ".weft/token",
                                        ".weft/.gitignore",
                                        ".weft",
                                        "state/weft/trust.json",
                                        "state/weft/trust.json.lock",
                                        "state/weft/trust.json.new",
                                        "state/weft/other",
                                        "state/weft",
                                        "state/elsewhere",
                                        "state",
                                        "made.db",
                                        "other"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (unlink(names[i]) < 0)
            rmdir(names[i]);
    REQUIRE(chdir("/") == 0);
    CHECK_INT(rmdir(folder), 0);
}

static void write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
    close(fd);
}

static int put(const char *path, const char *id, bool remove) {
    weft_trust_entry entry = {0};
    snprintf(entry.path, sizeof entry.path, "%s", path);
    snprintf(entry.folder, sizeof entry.folder, "%s", id);
    int lock = weft__trust_lock(why);
    if (lock < 0)
        return lock;
    int r = weft__trust_put(&entry, remove, why);
    weft__trust_unlock(lock);
    return r;
}

static int find(const char *path, const char *id, char *moved) {
    weft_trust_entry entry;
    return weft__trust_find(path, false, id, &entry, moved, why);
}

TEST(entries) {
    char moved[PATH_MAX];
    struct stat info;
    enter();
    CHECK_INT(find("/a", "1", moved), 0);
    CHECK_INT(put("/a", "1", false), 0);
    CHECK_INT(put("/b\"\\\n", "2", false), 0);
    CHECK_INT(find("/a", "1", moved), 1);
    CHECK_INT(find("/b\"\\\n", "2", moved), 1);
    char *said = moved;
    CHECK_STR(said, "");
    CHECK_INT(find("/c", "1", moved), 0);
    CHECK_STR(said, "/a");
    CHECK_INT(put("/a", "3", false), 0);
    CHECK_INT(find("/c", "1", moved), 0);
    CHECK_STR(said, "");
    CHECK_INT(put("/a", "", true), 1);
    CHECK_INT(put("/a", "", true), 0);
    CHECK_INT(find("/a", "3", moved), 0);
    CHECK_INT(find("/b\"\\\n", "2", moved), 1);
    REQUIRE(stat(record, &info) == 0);
    CHECK_INT(info.st_mode & 0777, 0600);
    REQUIRE(stat("state/weft", &info) == 0);
    CHECK_INT(info.st_mode & 0777, 0700);
    leave();
}

static int count_entry(void *ctx, const weft_trust_entry *entry) {
    (void) entry;
    ++*(int *) ctx;
    return 0;
}

TEST(the_oldest_are_forgotten) {
    int count = 0;
    enter();
    CHECK_INT(put("/first", "1", false), 0);
    FILE *file = fopen(record, "w");
    fputs("{\"version\":1,\"projects\":[", file);
    for (int i = 0; i < MAX_ENTRIES; i++)
        fprintf(file, "%s{\"path\":\"/p%d\",\"aiwg\":false,\"folder\":\"%d\"}", i ? "," : "", i, i);
    fputs("]}", file);
    fclose(file);
    CHECK_INT(put("/new", "1", false), 0);
    CHECK_INT(find("/p0", "", NULL), 0);
    CHECK_INT(find("/p1", "", NULL), 1);
    CHECK_INT(find("/new", "", NULL), 1);
    CHECK_INT(weft__trust_each(count_entry, &count, why), 0);
    CHECK_INT(count, MAX_ENTRIES);
    leave();
}

/* Whatever cannot be believed is an error that names the file, and stays as it is. */
static void is_no_record(const char *name, int r) {
    test_row(name);
    CHECK_INT(find("/a", "1", NULL), r);
    CHECK(strstr(why, "trust.json"));
    CHECK(put("/b", "1", false) < 0);
}

TEST(what_is_no_record) {
    static const char *const texts[] = {"", "{", "[]", "{}", "{\"version\":2,\"projects\":[]}"};
    enter();
    CHECK_INT(put("/a", "1", false), 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_text(record, texts[i]);
        is_no_record(texts[i], -EBADMSG);
        size_t len;
        char *now = test_file(record, &len);
        CHECK_STR(now, texts[i]);
        free(now);
    }
    write_text(record, "{\"version\":1,\"projects\":[]}");
    chmod(record, 0660);
    is_no_record("others may write", -EPERM);
    REQUIRE(rename(record, "state/weft/other") == 0 && symlink("other", record) == 0);
    is_no_record("a link", -ELOOP);
    REQUIRE(unlink(record) == 0 && link("state/weft/other", record) == 0);
    is_no_record("a hard link", -EPERM);
    REQUIRE(unlink(record) == 0 && mkfifo(record, 0600) == 0);
    is_no_record("a pipe", -EPERM);
    REQUIRE(unlink(record) == 0 && unlink("state/weft/other") == 0);
    unlink("state/weft/trust.json.lock");
    REQUIRE(rename("state/weft", "state/elsewhere") == 0 && symlink("elsewhere", "state/weft") == 0);
    test_row("its folder is a link");
    CHECK(put("/a", "1", false) < 0);
    leave();
}

TEST(where_it_is) {
    char path[PATH_MAX], *at = path;
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    setenv("XDG_STATE_HOME", "/s", 1);
    CHECK_INT(weft__trust_path(path), 0);
    CHECK_STR(at, "/s/weft/trust.json");
    setenv("XDG_STATE_HOME", "relative", 1);
    setenv("HOME", "/h", 1);
    CHECK_INT(weft__trust_path(path), 0);
    CHECK_STR(at, "/h/.local/state/weft/trust.json");
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME"); /* then the system says where this user lives */
    CHECK(weft__trust_path(path) == -ENOENT || strstr(path, "/.local/state/weft/trust.json"));
    if (home)
        setenv("HOME", home, 1);
    free(home);
}

/* ---- a project ---- */

static weft_trust_folder look(void) {
    weft_trust trust;
    weft__trust_look(&weft__layout_weft, &trust);
    return trust.folder;
}

static int begin(void) {
    return weft__trust_enter(&weft__layout_weft, weft__daemon_folder_fill, why);
}

static bool journal_is_strange(void) {
    weft_trust trust;
    weft__trust_look(&weft__layout_weft, &trust);
    return weft__trust_has_strange_journal(&trust, weft__layout_weft.store);
}

TEST(a_folder) {
    enter();
    CHECK_INT(look(), WEFT_FOLDER_ABSENT);
    CHECK_INT(begin(), 0);
    CHECK_INT(look(), WEFT_FOLDER_KNOWN);
    CHECK_INT(begin(), 0);
    REQUIRE(unlink(".weft/.gitignore") == 0 && rmdir(".weft") == 0 && mkdir(".weft", 0755) == 0);
    CHECK_INT(look(), WEFT_FOLDER_REPLACED);
    write_text(".weft/token", "known to others");
    CHECK_INT(begin(), -EKEYREJECTED);
    struct stat info;
    REQUIRE(stat(".weft", &info) == 0);
    CHECK_INT(info.st_mode & 0777, 0755); /* and nothing was changed */
    REQUIRE(unlink(".weft/token") == 0);
    write_text(".weft/weft.db", "tasks");
    CHECK_INT(begin(), -EKEYREJECTED);
    REQUIRE(unlink(".weft/weft.db") == 0);
    CHECK_INT(begin(), 0); /* it brings nothing to act on */
    CHECK_INT(look(), WEFT_FOLDER_KNOWN);
    leave();
}

TEST(a_journal) {
    char expected[WEFT_EPOCH + 1], *epoch = expected;
    const char *path = weft__layout_weft.store;
    enter();
    CHECK_INT(begin(), 0);
    CHECK_INT(weft__trust_open_begin(&weft__layout_weft, path, expected, why), 0);
    CHECK_STR(epoch, "");
    write_text(".weft/weft.db", "ours");
    write_text(".weft/weft.db-wal", "ours");
    CHECK(!journal_is_strange()); /* killed here: it is what opening left */
    CHECK_INT(weft__trust_open_begin(&weft__layout_weft, path, expected, why), 0);
    CHECK_INT(weft__trust_open_end(&weft__layout_weft, path, "0123456789abcdef0123456789abcdef", why), 0);
    CHECK(!journal_is_strange());
    CHECK_INT(weft__trust_open_begin(&weft__layout_weft, path, expected, why), 0);
    CHECK_STR(epoch, "0123456789abcdef0123456789abcdef");
    CHECK_INT(weft__trust_open_end(&weft__layout_weft, path, NULL, why), 0); /* it could not be opened; it is the same */
    CHECK(!journal_is_strange());
    REQUIRE(rename(".weft/weft.db-wal", "other") == 0);
    CHECK(!journal_is_strange()); /* a clean stop takes the log away */
    write_text(".weft/weft.db-wal", "theirs");
    CHECK(journal_is_strange());
    CHECK_INT(weft__trust_open_begin(&weft__layout_weft, path, expected, why), -EKEYREJECTED);
    REQUIRE(rename("other", ".weft/weft.db-wal") == 0);
    CHECK(!journal_is_strange());
    write_text(".weft/weft.db-journal", "theirs");
    CHECK(journal_is_strange());
    REQUIRE(unlink(".weft/weft.db-journal") == 0 && rename(".weft/weft.db", "other") == 0);
    write_text(".weft/weft.db", "theirs");
    CHECK(journal_is_strange());
    leave();
}

/* ---- a look inside ---- */

static void make_database(const char *sql) {
    sqlite3 *db;
    unlink("made.db");
    REQUIRE(sqlite3_open("made.db", &db) == SQLITE_OK);
    CHECK_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

#define TABLES                                                                                                              \
    "CREATE TABLE state (id INTEGER PRIMARY KEY, epoch TEXT); INSERT INTO state VALUES (1, 'e1');"                          \
    "CREATE TABLE event (gseq INTEGER PRIMARY KEY, type TEXT, data BLOB);"

TEST(what_waits_in_a_journal) {
    weft_peek peek;
    enter();
    make_database(
        TABLES
        "INSERT INTO event (type, data) VALUES ('task.queued', '{\"taskId\":\"t1\",\"prompt\":\"one\",\"agent\":\"a\"}'),"
        "('task.started', '{\"taskId\":\"t1\"}'), ('task.completed', '{\"taskId\":\"t1\"}'),"
        "('task.queued', '{\"taskId\":\"t2\",\"prompt\":\"two\",\"agent\":null}'), ('task.process', '{\"taskId\":\"t2\"}'),"
        "('hub.kept', '{\"type\":\"task.queued\",\"data\":{\"taskId\":\"t3\",\"prompt\":\"three\",\"agent\":\"b\"}}'),"
        "('task.started', '{\"taskId\":\"t3\"}'), ('task.queued', 'no JSON'), ('session.output', '{}')");
    CHECK_INT(weft__peek("made.db", folder, &peek), 0);
    CHECK_INT(peek.events, 9);
    CHECK_INT(peek.tasks, 2);
    CHECK_INT(peek.shown, 2);
    const char *epoch = peek.epoch, *second = peek.first[0].prompt, *third = peek.first[1].prompt,
               *agent = peek.first[1].agent;
    CHECK_STR(epoch, "e1");
    CHECK_STR(second, "two");
    CHECK_STR(third, "three");
    CHECK_STR(agent, "b");
    leave();
}

TEST(a_journal_that_is_none) {
    weft_peek peek;
    enter();
    CHECK_INT(mkdir(".weft", 0700), 0);
    write_text("made.db",
               "this is some other file, which is long enough to be read as the header of a database by somebody");
    CHECK_INT(weft__peek("made.db", folder, &peek), -EINVAL);
    make_database("CREATE TABLE other (a)");
    CHECK_INT(weft__peek("made.db", folder, &peek), -EINVAL);
    test_row("one that never ends");
    make_database(
        "CREATE TABLE state (id INTEGER PRIMARY KEY, epoch TEXT); CREATE VIEW event AS WITH RECURSIVE n(gseq, type, data)"
        " AS (SELECT 1, 'task.queued', '{}' UNION ALL SELECT gseq + 1, type, data FROM n) SELECT * FROM n");
    CHECK(weft__peek("made.db", folder, &peek) < 0);
    test_row("a link");
    REQUIRE(rename("made.db", "other") == 0 && symlink("other", "made.db") == 0);
    CHECK_INT(weft__peek("made.db", folder, &peek), -ELOOP);
    leave();
}

TEST_MAIN(CASE(entries) CASE(the_oldest_are_forgotten) CASE(what_is_no_record) CASE(where_it_is) CASE(a_folder)
              CASE(a_journal) CASE(what_waits_in_a_journal) CASE(a_journal_that_is_none))

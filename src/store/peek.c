/* Copying a journal and asking the copy. */
#include "peek.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sqlite_store.h"

#define MAX_COPY ((off_t) 256 << 20) /* a journal that takes longer than a moment to copy is described by its size */
#define STEPS 1000                   /* of SQLite's machine between two looks at */
#define MAX_LOOKS 200000             /* the work done so far: some seconds */

/* ---- the copy ---- */

static int copy_content(int from, int to) {
    char block[65536];
    off_t done = 0;
    for (ssize_t n; (n = read(from, block, sizeof block)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || write(to, block, (size_t) n) != n)
            return n < 0 ? -errno : -EIO;
        done += n;
        if (done > MAX_COPY)
            return -EFBIG;
    }
    return 0;
}

/* 0 also when there is none. */
static int copy_file_of(const char *path, const char *suffix, const char *to) {
    char from[PATH_MAX], copy[PATH_MAX];
    if (snprintf(from, sizeof from, "%s%s", path, suffix) >= (int) sizeof from ||
        snprintf(copy, sizeof copy, "%s%s", to, suffix) >= (int) sizeof copy)
        return -ENAMETOOLONG;
    struct stat info;
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (in < 0)
        return errno == ENOENT ? 0 : -errno;
    int r = fstat(in, &info) < 0 ? -errno : !S_ISREG(info.st_mode) ? -EINVAL : info.st_size > MAX_COPY ? -EFBIG : 0;
    int out = r < 0 ? -1 : open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (r == 0)
        r = out < 0 ? -errno : copy_content(in, out);
    close(in);
    if (out >= 0)
        close(out);
    return r;
}

static void remove_copy(const char *copy) {
    static const char *const parts[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char name[PATH_MAX + 16];
        snprintf(name, sizeof name, "%s%s", copy, parts[i]);
        unlink(name);
    }
}

/* ---- asking ---- */

/* The tables may be views that never end. */
static int count_looks(void *ctx) {
    return ++*(int *) ctx > MAX_LOOKS;
}

static void take_column(sqlite3_stmt *row, int column, char *ret, size_t size) {
    const char *text = (const char *) sqlite3_column_text(row, column);
    snprintf(ret, size, "%s", text ? text : "");
}

static int ask_state(sqlite3 *db, weft_peek *ret) {
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT (SELECT epoch FROM state WHERE id = 1), (SELECT count(*) FROM event)", -1, &row,
                                NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        take_column(row, 0, ret->epoch, sizeof ret->epoch);
        ret->events = sqlite3_column_int64(row, 1);
    }
    sqlite3_finalize(row);
    return rc == SQLITE_ROW ? 0 : weft__sq_error(db, rc);
}

/* A task is what the last event about it says; an event that was said again is inside a hub.kept. A task whose events are
 * trimmed is what its document says: as if that had been said before all events. */
static const char waiting[] =
    "WITH said AS (SELECT gseq, type, CAST(data AS TEXT) AS text FROM event WHERE (type LIKE 'task.%' OR type = 'hub.kept')"
    " AND json_valid(CAST(data AS TEXT))),"
    " told AS (SELECT 0 AS gseq, 'task.' || json_extract(text, '$.state') AS type, json_extract(text, '$.task') AS text FROM"
    " (SELECT CAST(data AS TEXT) AS text FROM document WHERE key LIKE 'task/%' AND json_valid(CAST(data AS TEXT)))"
    " UNION ALL SELECT gseq, iif(type = 'hub.kept', json_extract(text, '$.type'), type) AS type,"
    " iif(type = 'hub.kept', json_extract(text, '$.data'), text) AS text FROM said),"
    " last AS (SELECT json_extract(text, '$.taskId') AS task, type, max(gseq) FROM told WHERE type LIKE 'task.%' AND"
    " type <> 'task.process' GROUP BY task)"
    " SELECT last.task, json_extract(q.text, '$.prompt'), ifnull(json_extract(q.text, '$.agent'), '') FROM last"
    " LEFT JOIN told q ON json_extract(q.text, '$.prompt') IS NOT NULL AND json_extract(q.text, '$.taskId') = last.task"
    " WHERE last.type IN ('task.queued', 'task.retrying', 'task.started', 'task.running') GROUP BY last.task";

static int ask_tasks(sqlite3 *db, weft_peek *ret) {
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db, waiting, -1, &row, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(row);
        if (rc != SQLITE_ROW)
            break;
        if (ret->shown < WEFT_PEEK_PROMPTS) {
            take_column(row, 1, ret->first[ret->shown].prompt, WEFT_PEEK_PROMPT);
            take_column(row, 2, ret->first[ret->shown].agent, sizeof ret->first[0].agent);
            ret->shown++;
        }
        ret->tasks++;
    }
    sqlite3_finalize(row);
    return rc == SQLITE_DONE ? 0 : weft__sq_error(db, rc);
}

static int ask_copy(const char *copy, weft_peek *ret) {
    sqlite3 *db = NULL;
    int looks = 0, rc = sqlite3_open_v2(copy, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_EXRESCODE, NULL);
    int r = weft__sq_error(db, rc);
    if (r >= 0) {
        sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *) NULL);
        sqlite3_progress_handler(db, STEPS, count_looks, &looks);
        r = weft__sq_exec(db, "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;"
                              "CREATE TABLE IF NOT EXISTS document (key, data)"); /* earlier versions have none */
    }
    if (r >= 0)
        r = ask_state(db, ret);
    if (r >= 0)
        r = ask_tasks(db, ret);
    sqlite3_close(db);
    return r == -EUCLEAN ? -EINVAL : r;
}

int weft__peek(const char *path, const char *folder, weft_peek *ret) {
    char copy[PATH_MAX];
    weft_peek peek = {0};
    if (snprintf(copy, sizeof copy, "%s/look-%ld", folder, (long) getpid()) >= (int) sizeof copy - 16)
        return -ENAMETOOLONG;
    remove_copy(copy); /* of a process that was killed and had our number */
    int r = copy_file_of(path, "", copy);
    if (r >= 0)
        r = copy_file_of(path, "-wal", copy);
    if (r >= 0)
        r = ask_copy(copy, &peek);
    remove_copy(copy);
    if (r >= 0)
        *ret = peek;
    return r;
}

/* The tables, their versions, and the statements used on them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "crc32.h"
#include "sqlite_store.h"

#define APPLICATION_ID 0x57656674 /* "Weft", in the file's header: what says that a database is ours */

/* Step n leads from version n to n + 1. A step that was released is never changed.
 *
 * gseq is the rowid, so that appends go to the end of one tree: three times faster than clustering by stream. data is a
 * BLOB, because the length of one is known without reading it. Streams and the state carry checksums like events do. */
static const char *const steps[] = {
    "CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), epoch TEXT NOT NULL, clean INTEGER NOT NULL,"
    " trimmed INTEGER NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL, fence INTEGER NOT NULL, sum INTEGER NOT "
    "NULL);"
    "CREATE TABLE stream (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, head INTEGER NOT NULL,"
    " trimmed INTEGER NOT NULL, sum INTEGER NOT NULL);"
    "CREATE TABLE event (gseq INTEGER PRIMARY KEY, stream INTEGER NOT NULL, seq INTEGER NOT NULL, time INTEGER NOT NULL,"
    " type TEXT NOT NULL, key TEXT, data BLOB NOT NULL, sum INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX event_seq ON event (stream, seq);"
    "CREATE UNIQUE INDEX event_key ON event (key) WHERE key IS NOT NULL;",

    "CREATE TABLE claim (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until INTEGER NOT NULL, fence INTEGER NOT NULL)"
    " WITHOUT ROWID;",

    /* The place of a document is its id: they are read in the order in which they were first written. */
    "DROP TABLE claim; ALTER TABLE state ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE document (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, data BLOB NOT NULL, sum INTEGER NOT NULL);",

    /* keyed in the table state is -1 until a run begins: then all keys are in the table. */
    "ALTER TABLE state ADD COLUMN keyed INTEGER NOT NULL DEFAULT -1;"
    "CREATE TABLE keyed (hash INTEGER NOT NULL, gseq INTEGER NOT NULL, PRIMARY KEY (hash, gseq)) WITHOUT ROWID;"
    "INSERT INTO keyed SELECT weft_key_hash(key), gseq FROM event WHERE key IS NOT NULL ORDER BY 1, 2;"
    "DROP INDEX event_key;",
};
#define VERSION ((int) (sizeof steps / sizeof steps[0]))

#define EVENT "gseq, stream, seq, time, type, key, data, sum"

static const char *const texts[WEFT_SQ_STATEMENTS] = {
    [WEFT_SQ_BEGIN] = "BEGIN",
    [WEFT_SQ_BEGIN_GROUP] = "BEGIN IMMEDIATE",
    [WEFT_SQ_STAY] = "SELECT 1 FROM state",
    [WEFT_SQ_COMMIT] = "COMMIT",
    [WEFT_SQ_ROLLBACK] = "ROLLBACK",
    /* After a failure everything is rolled back, so the statement itself need not be. */
    [WEFT_SQ_INSERT_ROWS] = "INSERT OR FAIL INTO event (" EVENT ") SELECT " EVENT " FROM event_rows",
    [WEFT_SQ_KEY] = "SELECT gseq FROM keyed WHERE hash = ?",
    [WEFT_SQ_HAS_KEY] = "SELECT 1 FROM keyed WHERE hash = ? AND gseq = ?",
    [WEFT_SQ_KEY_AT] = "SELECT key FROM event WHERE gseq = ?",
    [WEFT_SQ_KEYS_AFTER] = "SELECT gseq, key FROM event WHERE gseq > ? AND key IS NOT NULL ORDER BY gseq",
    [WEFT_SQ_MOVE_KEYS] = "INSERT OR IGNORE INTO keyed (hash, gseq) SELECT hash, gseq FROM key_rows",
    [WEFT_SQ_DROP_KEY] = "DELETE FROM keyed WHERE hash = ? AND gseq = ?",
    [WEFT_SQ_AT] = "SELECT e.seq, e.type, s.name FROM event e JOIN stream s ON s.id = e.stream WHERE e.gseq = ?",
    [WEFT_SQ_WHOLE] = "SELECT " EVENT ", (SELECT name FROM stream WHERE id = event.stream) FROM event WHERE gseq = ?",
    [WEFT_SQ_REMOVE] = "UPDATE event SET type = ?2, data = ?3, sum = ?4 WHERE gseq = ?1",
    [WEFT_SQ_STREAM] = "SELECT id, head, trimmed, sum FROM stream WHERE name = ?",
    [WEFT_SQ_HEAD] = "SELECT max(seq) FROM event WHERE stream = ?",
    [WEFT_SQ_ALL_HEAD] = "SELECT max(gseq) FROM event",
    [WEFT_SQ_FIRST] = "SELECT gseq FROM event WHERE stream = ? ORDER BY seq LIMIT 1",
    [WEFT_SQ_ALL_FIRST] = "SELECT gseq FROM event ORDER BY gseq LIMIT 1",
    [WEFT_SQ_NEW_STREAM] = "INSERT INTO stream (id, name, head, trimmed, sum) VALUES"
                           " ((SELECT ifnull(max(id), 0) + 1 FROM stream), ?, 0, 0, 0)",
    [WEFT_SQ_SET_STREAM] = "UPDATE stream SET head = ?2, trimmed = ?3, sum = ?4 WHERE id = ?1",
    [WEFT_SQ_STATE] = "SELECT epoch, clean, trimmed, rows, bytes, fence, sum, counted, keyed FROM state WHERE id = 1",
    [WEFT_SQ_SET_STATE] = "INSERT OR REPLACE INTO state (id, epoch, clean, trimmed, rows, bytes, fence, sum, counted,"
                          " keyed) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    [WEFT_SQ_PAGE] = "SELECT " EVENT " FROM event WHERE stream = ?1 AND seq > ?2 ORDER BY seq",
    [WEFT_SQ_ALL_PAGE] = "SELECT " EVENT ", (SELECT name FROM stream WHERE id = event.stream) FROM event WHERE gseq > ?1"
                         " ORDER BY gseq",
    [WEFT_SQ_STREAM_BYTES] = "SELECT sum(length(data)) FROM event WHERE stream = ?",
    [WEFT_SQ_OLDEST] = "SELECT gseq, stream, seq, time, length(data), key FROM event WHERE stream = ?1 ORDER BY seq"
                       " LIMIT ?2",
    [WEFT_SQ_ALL_OLDEST] =
        "SELECT gseq, stream, seq, time, length(data), key, (SELECT name FROM stream WHERE id = event.stream)"
        " FROM event WHERE ?1 IS NULL ORDER BY gseq LIMIT ?2",
    [WEFT_SQ_CUT] = "DELETE FROM event WHERE stream = ?1 AND seq <= ?2",
    [WEFT_SQ_ALL_CUT] = "DELETE FROM event WHERE ?1 IS NULL AND gseq <= ?2",
    [WEFT_SQ_PUT] = "INSERT INTO document (key, data, sum) VALUES (?1, ?2, ?3)"
                    " ON CONFLICT (key) DO UPDATE SET data = ?2, sum = ?3",
    [WEFT_SQ_PUT_ROWS] = "INSERT INTO document (key, data, sum) SELECT key, data, sum FROM document_rows WHERE true"
                         " ON CONFLICT (key) DO UPDATE SET data = excluded.data, sum = excluded.sum",
    [WEFT_SQ_DROP] = "DELETE FROM document WHERE key = ?",
    [WEFT_SQ_DOCUMENTS] = "SELECT id, key, data, sum FROM document WHERE id > ? ORDER BY id",
    [WEFT_SQ_DOCUMENT] = "SELECT id, key, data, sum FROM document WHERE id > ? AND key = ?",
    [WEFT_SQ_TRIMMED] = "SELECT id, name, head, trimmed, sum FROM stream WHERE id > ? AND trimmed > 0 ORDER BY id",
    [WEFT_SQ_REMOVED] = "SELECT gseq FROM event WHERE gseq > ? AND gseq <= ? AND type = '" WEFT_REMOVED "' ORDER BY gseq",
};

/* Statements */

int weft__sq_error(sqlite3 *db, int rc) {
    switch (rc & 0xFF) {
    case SQLITE_OK:
    case SQLITE_DONE:
    case SQLITE_ROW:
        return 0;
    case SQLITE_NOMEM:
        return -ENOMEM;
    case SQLITE_FULL:
        return -ENOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return -EBUSY;
    case SQLITE_READONLY:
        return -EROFS;
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return -EACCES;
    /* A constraint is only ever broken by rows that should not be there. */
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:
    case SQLITE_ERROR:
        return -EUCLEAN;
    default:
        break;
    }
    int system = db ? sqlite3_system_errno(db) : 0;
    if ((rc & 0xFF) == SQLITE_IOERR && (system == EROFS || system == ENOSPC || system == EDQUOT))
        return -system; /* which a person can do something about */
    return rc == SQLITE_IOERR_NOMEM ? -ENOMEM : (rc & 0xFF) == SQLITE_CANTOPEN && system > 0 ? -system : -EIO;
}

int weft__sq_exec(sqlite3 *db, const char *sql) {
    return weft__sq_error(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int weft__sq_get_int(sqlite3 *db, const char *sql, int64_t *ret) {
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return weft__sq_error(db, rc);
}

sqlite3_stmt *weft__sq_prepare(weft_sq_conn *conn, enum weft_sq_statement which, int *ret_r) {
    sqlite3_stmt **statement = &conn->statements[which];
    int rc = SQLITE_OK;
    if (!*statement)
        rc = sqlite3_prepare_v3(conn->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    *ret_r = weft__sq_error(conn->db, rc);
    return *statement;
}

int weft__sq_step(sqlite3_stmt *statement) {
    int rc = sqlite3_step(statement);
    return rc == SQLITE_ROW ? 1 : weft__sq_error(sqlite3_db_handle(statement), rc);
}

int weft__sq_run(sqlite3_stmt *statement) {
    int r = weft__sq_step(statement);
    sqlite3_reset(statement);
    return r;
}

int weft__sq_do(weft_sq_conn *conn, enum weft_sq_statement which) {
    int r;
    sqlite3_stmt *statement = weft__sq_prepare(conn, which, &r);
    return statement ? weft__sq_run(statement) : r;
}

void weft__sq_conn_done(weft_sq_conn *conn) {
    for (int i = 0; i < WEFT_SQ_STATEMENTS; i++)
        sqlite3_finalize(conn->statements[i]);
    sqlite3_close(conn->db);
    memset(conn, 0, sizeof *conn);
}

/* Versions */

static void show_key_hash(sqlite3_context *to, int argc, sqlite3_value **argv) {
    const char *key = argc == 1 ? (const char *) sqlite3_value_text(argv[0]) : NULL;
    if (key)
        sqlite3_result_int64(to, weft__sq_key_hash(key));
    else
        sqlite3_result_error_nomem(to);
}

int weft__sq_know_hash(sqlite3 *db) {
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY;
    return weft__sq_error(db, sqlite3_create_function(db, "weft_key_hash", 1, flags, NULL, show_key_hash, NULL, NULL));
}

static int migrate_step(sqlite3 *db, int version) {
    char pragma[80];
    snprintf(pragma, sizeof pragma, "PRAGMA application_id = %d; PRAGMA user_version = %d", APPLICATION_ID, version + 1);
    int r = weft__sq_exec(db, "BEGIN IMMEDIATE");
    if (r >= 0)
        r = weft__sq_exec(db, steps[version]);
    if (r >= 0)
        r = weft__sq_exec(db, pragma);
    if (r >= 0)
        r = weft__sq_exec(db, "COMMIT");
    if (r < 0 && !sqlite3_get_autocommit(db))
        weft__sq_exec(db, "ROLLBACK");
    return r;
}

static int identify_schema(sqlite3 *db, int64_t *ret_version, char *ret_why) {
    int64_t application, tables;
    int r = weft__sq_get_int(db, "PRAGMA application_id", &application);
    if (r >= 0)
        r = weft__sq_get_int(db, "PRAGMA user_version", ret_version);
    if (r >= 0)
        r = weft__sq_get_int(db, "SELECT count(*) FROM sqlite_master", &tables);
    if (r < 0)
        return r;
    if (application == APPLICATION_ID && *ret_version > VERSION) {
        snprintf(ret_why, WEFT_STORE_WHY,
                 "the journal was written by a newer version of Weft (its format is %lld, this version knows %d); "
                 "use that version, or another folder",
                 (long long) *ret_version, VERSION);
        return -ENOTSUP;
    }
    if (application == 0 && *ret_version == 0 && tables == 0)
        return 1;
    if (application == APPLICATION_ID && *ret_version > 0)
        return 0;
    snprintf(ret_why, WEFT_STORE_WHY, "this is a database of another program, not a journal of Weft");
    return -EINVAL;
}

int weft__sq_migrate(sqlite3 *db, int up_to, char *ret_why) {
    int64_t version;
    int fresh = identify_schema(db, &version, ret_why);
    int r = fresh;
    if (r >= 0)
        r = weft__sq_know_hash(db);
    if (r >= 0)
        r = weft__sq_exec(db, "PRAGMA journal_mode = WAL");
    /* Tables are not rebuilt on a database that may be broken. */
    if (r >= 0 && !fresh && version < VERSION)
        r = weft__sq_check_pages(db, ret_why);
    for (; r >= 0 && version < (up_to ? up_to : VERSION); version++)
        r = migrate_step(db, (int) version);
    return r < 0 ? r : fresh;
}

/* Checksums */

static uint32_t add_int(uint32_t sum, int64_t n) {
    return weft__crc32(sum, &n, sizeof n);
}

/* With its NUL, so that no byte can move from one text to the next. */
static uint32_t add_text_to_sum(uint32_t sum, const char *text) {
    return weft__crc32(sum, text, strlen(text) + 1);
}

/* What is before the data is gathered first: a sum of many small pieces takes longer than copying them. */
uint32_t weft__sq_sum_event(int64_t stream, const weft_event *event, const char *key) {
    char head[4 * sizeof(int64_t) + 2 * (WEFT_STORE_NAME + 1)], *at = head + 4 * sizeof(int64_t);
    const int64_t numbers[] = {stream, (int64_t) event->gseq, (int64_t) event->seq, event->time_ms};
    size_t type = strlen(event->type) + 1, key_len = key ? strlen(key) + 1 : 1;
    /* A row that was read says anything. */
    if (type > WEFT_STORE_NAME + 1 || key_len > WEFT_STORE_NAME + 1)
        return 0;
    memcpy(head, numbers, sizeof numbers);
    memcpy(at, event->type, type);
    memcpy(at + type, key ? key : "", key_len);
    uint32_t sum = weft__crc32(0, head, (size_t) (at - head) + type + key_len);
    return weft__crc32(sum, event->data.data, event->data.len);
}

uint32_t weft__sq_sum_document(const char *key, weft_bytes data) {
    return weft__crc32(add_text_to_sum(0, key), data.data, data.len);
}

uint32_t weft__sq_sum_stream(int64_t id, const char *name, int64_t head, int64_t trimmed) {
    return add_int(add_int(add_text_to_sum(add_int(0, id), name), head), trimmed);
}

/* State */

static uint32_t sum_state(const weft_sq_state *state) {
    uint32_t sum = add_text_to_sum(0, state->epoch);
    sum = add_int(add_int(sum, state->clean), state->trimmed);
    sum = add_int(add_int(add_int(sum, state->rows), state->bytes), state->fence);
    /* Version 2 had no such number, and version 3 not the other. */
    if (state->counted)
        sum = add_int(sum, state->counted);
    return state->keyed >= 0 ? add_int(sum, state->keyed) : sum;
}

static int read_state_row(sqlite3_stmt *row, weft_sq_state *ret) {
    const char *epoch = (const char *) sqlite3_column_text(row, 0);
    if (!epoch || strlen(epoch) != WEFT_EPOCH)
        return -EUCLEAN;
    memcpy(ret->epoch, epoch, WEFT_EPOCH + 1);
    ret->clean = sqlite3_column_int(row, 1) != 0;
    ret->trimmed = sqlite3_column_int64(row, 2);
    ret->rows = sqlite3_column_int64(row, 3);
    ret->bytes = sqlite3_column_int64(row, 4);
    ret->fence = sqlite3_column_int64(row, 5);
    ret->counted = sqlite3_column_int64(row, 7);
    ret->keyed = sqlite3_column_int64(row, 8);
    return sqlite3_column_int64(row, 6) == sum_state(ret) ? 0 : -EUCLEAN;
}

/* The highest gseq there is, 0 when there is none. */
static int find_head(weft_sq_conn *conn, int64_t *ret) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(conn, WEFT_SQ_ALL_HEAD, &r);
    if (!row)
        return r;
    r = weft__sq_step(row);
    if (r > 0)
        *ret = sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    return r < 0 ? r : 0;
}

int weft__sq_load_state(weft_sq_conn *conn, weft_sq_state *ret) {
    weft_sq_state state = {0};
    int r;
    sqlite3_stmt *row = weft__sq_prepare(conn, WEFT_SQ_STATE, &r);
    if (!row)
        return r;
    int found = weft__sq_step(row);
    r = found > 0 ? read_state_row(row, &state) : found;
    sqlite3_reset(row);
    if (r >= 0)
        r = find_head(conn, &state.head);
    if (r < 0)
        return r;
    if (!found)
        return state.head ? -EUCLEAN : 0;
    if (state.head < state.trimmed)
        state.head = state.trimmed;
    if (state.keyed < 0)
        state.keyed = state.head;
    *ret = state;
    return 1;
}

int weft__sq_save_state(weft_sq_conn *conn, weft_sq_state *state) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(conn, WEFT_SQ_SET_STATE, &r);
    if (!row)
        return r;
    state->counted = state->head;
    sqlite3_bind_text(row, 1, state->epoch, -1, SQLITE_STATIC);
    sqlite3_bind_int(row, 2, state->clean);
    sqlite3_bind_int64(row, 3, state->trimmed);
    sqlite3_bind_int64(row, 4, state->rows);
    sqlite3_bind_int64(row, 5, state->bytes);
    sqlite3_bind_int64(row, 6, state->fence);
    sqlite3_bind_int64(row, 7, sum_state(state));
    sqlite3_bind_int64(row, 8, state->counted);
    sqlite3_bind_int64(row, 9, state->keyed);
    return weft__sq_run(row);
}

int weft__sq_save(weft_sq *sq) {
    weft__sq_keys_note(sq);
    return weft__sq_save_state(&sq->write, &sq->state);
}

/* Whether a database is whole. Nothing here repairs or deletes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sqlite_store.h"

static int report_damage(char *ret_why, const char *what) {
    snprintf(ret_why, WEFT_STORE_WHY, "the journal is damaged: %.300s", what);
    return -EUCLEAN;
}

int weft__sq_check_pages(sqlite3 *db, char *ret_why) {
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "PRAGMA integrity_check(1)", -1, &statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(statement);
    int r = weft__sq_error(db, rc);
    const char *verdict = rc == SQLITE_ROW ? (const char *) sqlite3_column_text(statement, 0) : NULL;
    if (r >= 0 && (!verdict || strcmp(verdict, "ok") != 0))
        r = report_damage(ret_why, verdict ? verdict : "no verdict");
    else if (r == -EUCLEAN)
        r = report_damage(ret_why, sqlite3_errmsg(db));
    sqlite3_finalize(statement);
    return r;
}

/* Call each for every row of the query. */
static int each_row(sqlite3 *db, const char *sql, int (*each)(sqlite3_stmt *row, void *ctx), void *ctx) {
    sqlite3_stmt *row = NULL;
    int r = weft__sq_error(db, sqlite3_prepare_v2(db, sql, -1, &row, NULL));
    while (r >= 0 && (r = weft__sq_step(row)) > 0)
        r = each(row, ctx);
    sqlite3_finalize(row);
    return r;
}

struct count {
    weft_sq_conn *conn;
    int64_t trimmed, keyed, at, rows, bytes;
};

/* A key that is not found would be used again. An entry too many is never believed. */
static int check_key(struct count *count, const char *key, int64_t gseq) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(count->conn, WEFT_SQ_HAS_KEY, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, weft__sq_key_hash(key));
    sqlite3_bind_int64(row, 2, gseq);
    r = weft__sq_step(row);
    sqlite3_reset(row);
    return r == 0 ? -EUCLEAN : r;
}

static int check_event(sqlite3_stmt *row, void *ctx) {
    struct count *count = ctx;
    weft_event event = {
        .gseq = (uint64_t) sqlite3_column_int64(row, 0),
        .seq = (uint64_t) sqlite3_column_int64(row, 2),
        .time_ms = sqlite3_column_int64(row, 3),
        .type = (const char *) sqlite3_column_text(row, 4),
    };
    const char *key = (const char *) sqlite3_column_text(row, 5);
    const void *data = sqlite3_column_blob(row, 6);
    event.data = (weft_bytes){data ? data : "", (size_t) sqlite3_column_bytes(row, 6)};
    int64_t gseq = (int64_t) event.gseq;
    if (!event.type || sqlite3_column_int64(row, 7) != weft__sq_sum_event(sqlite3_column_int64(row, 1), &event, key) ||
        (gseq != count->at + 1 && gseq - 1 > count->trimmed))
        return -EUCLEAN;
    count->at = gseq;
    count->rows++;
    count->bytes += (int64_t) event.data.len;
    return key && gseq <= count->keyed ? check_key(count, key, gseq) : 0;
}

static int check_stream(sqlite3_stmt *row, void *ctx) {
    (void) ctx;
    const char *name = (const char *) sqlite3_column_text(row, 1);
    int64_t id = sqlite3_column_int64(row, 0), head = sqlite3_column_int64(row, 2), trimmed = sqlite3_column_int64(row, 3);
    int64_t low = sqlite3_column_int64(row, 5), high = sqlite3_column_int64(row, 6), n = sqlite3_column_int64(row, 7);
    if (!name || sqlite3_column_int64(row, 4) != weft__sq_sum_stream(id, name, head, trimmed))
        return -EUCLEAN;
    if (n == 0)
        return head <= trimmed ? 0 : -EUCLEAN;
    return low == trimmed + 1 && high - low + 1 == n && high >= head ? 0 : -EUCLEAN;
}

static int check_document(sqlite3_stmt *row, void *ctx) {
    const char *key = (const char *) sqlite3_column_text(row, 0);
    const void *data = sqlite3_column_blob(row, 1);
    (void) ctx;
    weft_bytes bytes = {data ? data : "", (size_t) sqlite3_column_bytes(row, 1)};
    return key && sqlite3_column_int64(row, 2) == weft__sq_sum_document(key, bytes) ? 0 : -EUCLEAN;
}

static int add_count(sqlite3_stmt *row, void *ctx) {
    weft_sq_state *state = ctx;
    state->rows += sqlite3_column_int64(row, 0);
    state->bytes += sqlite3_column_int64(row, 1);
    return 0;
}

int weft__sq_count_on(weft_sq_conn *conn, weft_sq_state *state) {
    char sql[120];
    snprintf(sql, sizeof sql, "SELECT count(*), total(length(data)) FROM event WHERE gseq > %lld",
             (long long) state->counted);
    return each_row(conn->db, sql, add_count, state);
}

static int must_not_be(sqlite3_stmt *row, void *ctx) {
    (void) row;
    (void) ctx;
    return -EUCLEAN;
}

int weft__sq_check_events(weft_sq_conn *conn, weft_sq_state *state, char *ret_why) {
    struct count count = {.conn = conn, .trimmed = state->trimmed, .keyed = state->keyed};
    int r = each_row(conn->db, "SELECT gseq, stream, seq, time, type, key, data, sum FROM event ORDER BY gseq", check_event,
                     &count);
    if (r == -EUCLEAN)
        return report_damage(ret_why, "an event or its key is missing or not as it was written");
    if (r >= 0)
        r = each_row(conn->db,
                     "SELECT s.id, s.name, s.head, s.trimmed, s.sum, c.low, c.high, c.n FROM stream s LEFT JOIN"
                     " (SELECT stream, min(seq) AS low, max(seq) AS high, count(*) AS n FROM event GROUP BY stream) c"
                     " ON c.stream = s.id",
                     check_stream, NULL);
    if (r >= 0)
        r = each_row(conn->db, "SELECT 1 FROM event WHERE stream NOT IN (SELECT id FROM stream) LIMIT 1", must_not_be, NULL);
    if (r == -EUCLEAN)
        return report_damage(ret_why, "a stream has lost events");
    if (r >= 0)
        r = each_row(conn->db, "SELECT key, data, sum FROM document", check_document, NULL);
    if (r == -EUCLEAN)
        return report_damage(ret_why, "a document is not as it was written");
    if (r < 0)
        return r;
    state->rows = count.rows;
    state->bytes = count.bytes;
    return 0;
}

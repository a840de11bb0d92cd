/* From a file into a database, row by row, in one transaction of it. Each row is checked against its checksum. */
#include "copy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "postgres_store.h"
#include "sqlite_store.h"

#define BATCH_ROWS 1000
#define BATCH_BYTES ((size_t) 4 << 20)

typedef struct copying {
    const weft_alloc *alloc;
    weft_sq *sq;
    weft_sq_conn from;
    weft_pg *pg;
    size_t columns; /* of the rows under way: arrays of pg */
    unsigned of_bytes;
    const char *sql;
    size_t rows, bytes; /* in the arrays */
    int64_t place;      /* the highest of a document */
    weft_copy_progress progress;
    int64_t of; /* rows in all */
    weft_copied done;
} copying;

/* Batches */

static int begin_rows(copying *c) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < c->columns; i++)
        r = weft__pg_array_begin(&c->pg->arrays[i], c->alloc, c->of_bytes >> i & 1);
    c->rows = c->bytes = 0;
    return r;
}

static int send_rows(copying *c) {
    weft_pg_params params = {0};
    if (!c->rows)
        return 0;
    for (size_t i = 0; i < c->columns; i++)
        weft__pg_array(&params, &c->pg->arrays[i]);
    weft__pg_send(&c->pg->write, c->sql, &params);
    int r = weft__pg_do(&c->pg->write);
    if (r >= 0 && c->progress.on_rows)
        c->progress.on_rows(c->progress.ctx, c->done.events + c->done.documents, (uint64_t) c->of);
    return r < 0 ? r : begin_rows(c);
}

static int add_row(copying *c, const int64_t *ints, const weft_bytes *texts) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < c->columns; i++)
        if (c->of_bytes >> i & 1) {
            c->bytes += texts->len;
            r = weft__pg_array_bytes(&c->pg->arrays[i], c->alloc, texts->data, texts->len);
            texts++;
        } else
            r = weft__pg_array_int(&c->pg->arrays[i], c->alloc, *ints++);
    c->rows += r >= 0;
    return r < 0 ? r : c->rows >= BATCH_ROWS || c->bytes >= BATCH_BYTES ? send_rows(c) : 0;
}

/* Every row of a query of the file, as rows of the columns of a statement. */
static int copy_rows(copying *c, const char *query, int (*copy_row)(copying *c, sqlite3_stmt *row)) {
    sqlite3_stmt *row = NULL;
    int r = weft__sq_error(c->from.db, sqlite3_prepare_v2(c->from.db, query, -1, &row, NULL));
    if (r >= 0)
        r = begin_rows(c);
    while (r >= 0 && (r = weft__sq_step(row)) > 0)
        r = copy_row(c, row);
    sqlite3_finalize(row);
    return r < 0 ? r : send_rows(c);
}

static weft_bytes text_at(sqlite3_stmt *row, int column) {
    const char *text = (const char *) sqlite3_column_text(row, column);
    return (weft_bytes){text, text ? strlen(text) : 0};
}

static weft_bytes bytes_at(sqlite3_stmt *row, int column) {
    const char *data = sqlite3_column_blob(row, column);
    return (weft_bytes){data ? data : "", (size_t) sqlite3_column_bytes(row, column)};
}

/* Rows */

static int copy_stream(copying *c, sqlite3_stmt *row) {
    int64_t ints[] = {sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 5), sqlite3_column_int64(row, 3),
                      sqlite3_column_int64(row, 6)};
    weft_bytes name = text_at(row, 1);
    if (!name.data ||
        sqlite3_column_int64(row, 4) != weft__sq_sum_stream(ints[0], name.data, sqlite3_column_int64(row, 2), ints[2]))
        return -EUCLEAN;
    return add_row(c, ints, &name);
}

static int copy_event(copying *c, sqlite3_stmt *row) {
    int64_t ints[] = {sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 1), sqlite3_column_int64(row, 2),
                      sqlite3_column_int64(row, 3)};
    weft_bytes texts[] = {text_at(row, 4), text_at(row, 5), bytes_at(row, 6)};
    weft_event event = {
        .gseq = (uint64_t) ints[0], .seq = (uint64_t) ints[2], .time_ms = ints[3], .type = texts[0].data, .data = texts[2]};
    if (!event.type || sqlite3_column_int64(row, 7) != weft__sq_sum_event(ints[1], &event, texts[1].data))
        return -EUCLEAN;
    c->done.events++;
    return add_row(c, ints, texts);
}

static int copy_document(copying *c, sqlite3_stmt *row) {
    c->place = sqlite3_column_int64(row, 0);
    weft_bytes texts[] = {text_at(row, 1), bytes_at(row, 2)};
    if (!texts[0].data || sqlite3_column_int64(row, 3) != weft__sq_sum_document(texts[0].data, texts[1]))
        return -EUCLEAN;
    c->done.documents++;
    return add_row(c, &c->place, texts);
}

static int copy_streams(copying *c) {
    c->columns = 5;
    c->of_bytes = 1u << 4;
    c->sql = "INSERT INTO weft_stream (id, head, trimmed, bytes, name) SELECT * FROM"
             " unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::bytea[])";
    /* The head of a stream is written later than its events. */
    return copy_rows(c,
                     "SELECT s.id, s.name, s.head, s.trimmed, s.sum, max(s.head, ifnull(e.head, 0)), ifnull(e.bytes, 0)"
                     " FROM stream s LEFT JOIN (SELECT stream, max(seq) AS head, sum(length(data)) AS bytes FROM event"
                     " GROUP BY stream) e ON e.stream = s.id ORDER BY s.id",
                     copy_stream);
}

static int copy_events(copying *c) {
    c->columns = 7;
    c->of_bytes = 1u << 4 | 1u << 5 | 1u << 6;
    c->sql = "INSERT INTO weft_event (gseq, stream, seq, time, type, key, data) SELECT * FROM"
             " unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::bytea[], $6::bytea[], $7::bytea[])";
    return copy_rows(c, "SELECT gseq, stream, seq, time, type, key, data, sum FROM event ORDER BY gseq", copy_event);
}

static int copy_documents(copying *c) {
    c->columns = 3;
    c->of_bytes = 1u << 1 | 1u << 2;
    c->sql = "INSERT INTO weft_document (place, key, data) SELECT * FROM unnest($1::int8[], $2::bytea[], $3::bytea[])";
    return copy_rows(c, "SELECT id, key, data, sum FROM document ORDER BY id", copy_document);
}

/* The whole */

static int check_empty(copying *c, char *ret_why) {
    weft_pg_conn *conn = &c->pg->write;
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_state state;
    weft__pg_begin(conn);
    weft__pg_send(conn, "SELECT count(*) FROM weft_document", NULL);
    int r = weft__pg_run(conn, results);
    if (r < 0)
        return r;
    r = weft__pg_take_state(conn, results[1], &state);
    if (r == 0 && (state.head || state.streams || weft__pg_get_int(conn, results[2], 0, 0))) {
        snprintf(ret_why, WEFT_STORE_WHY, "the database has a journal with %lld events already", (long long) state.head);
        r = -EEXIST;
    }
    weft__pg_clear(conn, results);
    return r;
}

/* The numbers are those of the rows that arrived. */
static int set_state(copying *c) {
    weft_pg_conn *conn = &c->pg->write;
    weft_pg_params params = {0};
    weft__pg_text(&params, c->sq->state.epoch);
    weft__pg_int(&params, c->sq->state.head);
    weft__pg_int(&params, c->sq->state.trimmed);
    weft__pg_int(&params, c->place);
    weft__pg_send(conn,
                  "UPDATE weft_state SET epoch = convert_from($1::bytea, 'UTF8'), head = $2::int8, trimmed = $3::int8,"
                  " place = $4::int8, rows = (SELECT count(*) FROM weft_event), bytes = (SELECT"
                  " coalesce(sum(length(data)), 0) FROM weft_event), streams = (SELECT coalesce(max(id), 0) FROM"
                  " weft_stream), writes = writes + 1",
                  &params);
    conn->warned = false;
    weft__pg_send_named(conn, "commit", NULL);
    int r = weft__pg_do(conn);
    return r == 0 && conn->warned ? -EIO : r;
}

static int copy_all(copying *c, char *ret_why) {
    int r = check_empty(c, ret_why);
    if (r >= 0)
        r = weft__sq_get_int(c->from.db, "SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM document)", &c->of);
    if (r >= 0)
        r = copy_streams(c);
    if (r >= 0)
        r = copy_events(c);
    if (r >= 0)
        r = copy_documents(c);
    if (r >= 0)
        r = set_state(c);
    return r;
}

static void explain_copy(const copying *c, int r, char *ret_why) {
    if (*ret_why)
        return;
    if (r == -EUCLEAN)
        snprintf(ret_why, WEFT_STORE_WHY, "a row of the journal is not as it was written");
    else
        snprintf(ret_why, WEFT_STORE_WHY, "%s%.200s", *c->pg->write.why ? "the database says: " : "",
                 *c->pg->write.why ? c->pg->write.why : weft_strerror(r));
}

static int copy_opened(copying *c, weft_store *to, char *ret_why) {
    c->pg = (weft_pg *) (void *) to;
    int r = weft__sq_connect_reader(c->sq, &c->from);
    if (r >= 0)
        r = copy_all(c, ret_why);
    if (r < 0)
        explain_copy(c, r, ret_why);
    weft__sq_conn_done(&c->from);
    return r;
}

/* Both are open as they would be for a hub, so nobody else has them; their threads have nothing to do. What is not committed
 * goes with the connection. */
int weft__store_copy(const weft_store_opts *from, const weft_store_opts *to, weft_copy_progress progress, weft_copied *ret,
                     char *ret_why) {
    weft_store *source, *target;
    ret_why[0] = '\0';
    if (!weft__store_was_here(&weft__sqlite, from->path)) {
        snprintf(ret_why, WEFT_STORE_WHY, "there is no journal");
        return -ENOENT;
    }
    int r = weft__store_open(&weft__sqlite, from, &source, ret_why);
    if (r < 0)
        return r;
    copying c = {.alloc = from->alloc, .sq = (weft_sq *) (void *) source, .progress = progress};
    memcpy(c.done.epoch, weft__store_epoch(source), sizeof c.done.epoch);
    r = weft__store_open(&weft__postgres, to, &target, ret_why);
    if (r >= 0) {
        r = copy_opened(&c, target, ret_why);
        weft__store_close(target);
    }
    weft__store_close(source);
    if (r >= 0)
        *ret = c.done;
    return r < 0 ? r : 0;
}

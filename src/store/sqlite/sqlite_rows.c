/* The rows of a group, as tables that SQLite reads from, so that one statement stores all of them.
 *
 * A statement for each row opens the cursors of the table and its indices, seeks from the root of each tree and closes them
 * again, which costs as much as the row itself. "INSERT ... SELECT" from here does that once. The tables are seen by the
 * writer's connection alone and are not in the database. What they show is the jobs between sq->rows_from and
 * sq->rows_until, and keys on their way to their table; nothing is copied. */
#include "sqlite_store.h"

typedef struct row_cursor {
    sqlite3_vtab_cursor base;
    weft_sq *sq;
    enum weft_sq_shown what;
    weft_link *link;        /* the job */
    size_t at;              /* the row in it */
    weft_sq_stream *stream; /* of the event */
} row_cursor;

typedef struct row_table {
    sqlite3_vtab base;
    row_cursor cursor; /* one is open at a time */
} row_table;

static const weft_append_job *job_at(const row_cursor *cursor) {
    return (const weft_append_job *) (void *) WEFT_CONTAINER(cursor->link, weft_job, link);
}

static size_t rows_of(const row_cursor *cursor) {
    const weft_append_job *job = job_at(cursor);
    if (job->job.type != WEFT_JOB_APPEND || job->job.r < 0 || job->repeat)
        return 0;
    return cursor->what == WEFT_SQ_DOCUMENTS_PUT ? job->document_count : job->count;
}

static int connect_rows(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret, char **ret_why) {
    const weft_sq_rows *rows = aux;
    (void) argc, (void) argv, (void) ret_why;
    static const char *const columns[WEFT_SQ_SHOWN] = {
        "CREATE TABLE rows (gseq, stream, seq, time, type, key, data, sum)",
        "CREATE TABLE rows (key, data, sum)",
        "CREATE TABLE rows (hash, gseq)",
    };
    int rc = sqlite3_declare_vtab(db, columns[rows->what]);
    row_table *table = rc == SQLITE_OK ? sqlite3_malloc(sizeof *table) : NULL;
    if (!table)
        return rc == SQLITE_OK ? SQLITE_NOMEM : rc;
    *table = (row_table){.cursor = {.sq = rows->sq, .what = rows->what}};
    *ret = &table->base;
    return SQLITE_OK;
}

static int disconnect_rows(sqlite3_vtab *table) {
    sqlite3_free(table);
    return SQLITE_OK;
}

/* There is one way to read it: from the first to the last. */
static int plan_rows(sqlite3_vtab *table, sqlite3_index_info *info) {
    (void) table;
    info->estimatedCost = 1;
    return SQLITE_OK;
}

static int open_rows(sqlite3_vtab *table, sqlite3_vtab_cursor **ret) {
    *ret = &((row_table *) table)->cursor.base;
    return SQLITE_OK;
}

static int close_rows(sqlite3_vtab_cursor *cursor) {
    (void) cursor;
    return SQLITE_OK;
}

static void go_to_job(row_cursor *cursor, weft_link *link) {
    cursor->link = link;
    cursor->at = 0;
    if (cursor->what == WEFT_SQ_DOCUMENTS_PUT && link != cursor->sq->rows_until &&
        job_at(cursor)->job.type == WEFT_JOB_APPEND)
        cursor->at = job_at(cursor)->documents_put;
}

static int settle_on_key(row_cursor *cursor) {
    const weft_sq_keys *keys = &cursor->sq->keys;
    while (cursor->at < keys->row_count && keys->rows[cursor->at].gseq < 0)
        cursor->at++;
    return SQLITE_OK;
}

/* The first row that is there, from this one on. Its stream is known to the writer: the event got its place there. */
static int settle_on_row(row_cursor *cursor) {
    if (cursor->what == WEFT_SQ_KEYS_MOVED)
        return settle_on_key(cursor);
    while (cursor->link != cursor->sq->rows_until && cursor->at >= rows_of(cursor))
        go_to_job(cursor, cursor->link->next);
    if (cursor->what == WEFT_SQ_DOCUMENTS_PUT || cursor->link == cursor->sq->rows_until)
        return SQLITE_OK;
    int r;
    cursor->stream = weft__sq_stream(cursor->sq, job_at(cursor)->events[cursor->at].stream, false, &r);
    return cursor->stream ? SQLITE_OK : SQLITE_CORRUPT;
}

static int first_row(sqlite3_vtab_cursor *at, int plan, const char *name, int argc, sqlite3_value **argv) {
    row_cursor *cursor = (row_cursor *) at;
    (void) plan, (void) name, (void) argc, (void) argv;
    if (cursor->what == WEFT_SQ_KEYS_MOVED)
        cursor->at = 0;
    else
        go_to_job(cursor, cursor->sq->rows_from);
    return settle_on_row(cursor);
}

static int next_row(sqlite3_vtab_cursor *at) {
    row_cursor *cursor = (row_cursor *) at;
    cursor->at++;
    return settle_on_row(cursor);
}

static int rows_are_over(sqlite3_vtab_cursor *at) {
    const row_cursor *cursor = (const row_cursor *) at;
    return cursor->what == WEFT_SQ_KEYS_MOVED ? cursor->at >= cursor->sq->keys.row_count
                                              : cursor->link == cursor->sq->rows_until;
}

static void show_text(sqlite3_context *to, const char *text) {
    if (text)
        sqlite3_result_text(to, text, -1, SQLITE_STATIC);
}

static void show_bytes(sqlite3_context *to, weft_bytes data) {
    sqlite3_result_blob64(to, data.data, data.len, SQLITE_STATIC);
}

static void show_event(const row_cursor *cursor, sqlite3_context *to, int column) {
    const weft_append_job *job = job_at(cursor);
    const weft_event *event = &job->events[cursor->at];
    const char *key = cursor->at == 0 ? job->key : NULL;
    switch (column) {
    case 0:
        sqlite3_result_int64(to, (int64_t) event->gseq);
        break;
    case 1:
        sqlite3_result_int64(to, cursor->stream->id);
        break;
    case 2:
        sqlite3_result_int64(to, (int64_t) event->seq);
        break;
    case 3:
        sqlite3_result_int64(to, event->time_ms);
        break;
    case 4:
        show_text(to, event->type);
        break;
    case 5:
        show_text(to, key);
        break;
    case 6:
        show_bytes(to, event->data);
        break;
    default:
        sqlite3_result_int64(to, weft__sq_sum_event(cursor->stream->id, event, key));
        break;
    }
}

static void show_document(const row_cursor *cursor, sqlite3_context *to, int column) {
    const weft_document *document = &job_at(cursor)->documents[cursor->at];
    if (column == 0)
        show_text(to, document->key);
    else if (column == 1)
        show_bytes(to, document->data);
    else
        sqlite3_result_int64(to, weft__sq_sum_document(document->key, document->data));
}

static void show_key(const row_cursor *cursor, sqlite3_context *to, int column) {
    const weft_sq_key *key = &cursor->sq->keys.rows[cursor->at];
    sqlite3_result_int64(to, column == 0 ? key->hash : key->gseq);
}

static int show_column(sqlite3_vtab_cursor *at, sqlite3_context *to, int column) {
    const row_cursor *cursor = (const row_cursor *) at;
    static void (*const shows[WEFT_SQ_SHOWN])(const row_cursor *, sqlite3_context *, int) = {show_event, show_document,
                                                                                             show_key};
    shows[cursor->what](cursor, to, column);
    return SQLITE_OK;
}

/* Nobody asks. */
static int show_rowid(sqlite3_vtab_cursor *at, sqlite3_int64 *ret) {
    *ret = (sqlite3_int64) ((const row_cursor *) at)->at;
    return SQLITE_OK;
}

/* Without xCreate they cannot be made part of a database. */
static const sqlite3_module module = {
    .xConnect = connect_rows,
    .xBestIndex = plan_rows,
    .xDisconnect = disconnect_rows,
    .xOpen = open_rows,
    .xClose = close_rows,
    .xFilter = first_row,
    .xNext = next_row,
    .xEof = rows_are_over,
    .xColumn = show_column,
    .xRowid = show_rowid,
};

int weft__sq_rows_init(weft_sq *sq) {
    static const char *const names[] = {"event_rows", "document_rows", "key_rows"};
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < WEFT_SQ_SHOWN; i++) {
        sq->rows[i] = (weft_sq_rows){.sq = sq, .what = (enum weft_sq_shown) i};
        rc = sqlite3_create_module(sq->write.db, names[i], &module, &sq->rows[i]);
    }
    return weft__sq_error(sq->write.db, rc);
}

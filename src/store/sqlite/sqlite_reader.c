/* The reader's thread: one page at a time, each from one snapshot, each event checked against its checksum and its
 * neighbour. */
#include <errno.h>
#include <string.h>

#include "sqlite_store.h"

/* The columns of EVENT in sqlite_schema.c, and the name behind them. Borrowed until the next step. */
static int take_event_row(sqlite3_stmt *row, const char *stream, weft_event *ret) {
    weft_event event = {
        .stream = stream ? stream : (const char *) sqlite3_column_text(row, 8),
        .type = (const char *) sqlite3_column_text(row, 4),
        .gseq = (uint64_t) sqlite3_column_int64(row, 0),
        .seq = (uint64_t) sqlite3_column_int64(row, 2),
        .time_ms = sqlite3_column_int64(row, 3),
        .key = (const char *) sqlite3_column_text(row, 5),
    };
    const void *data = sqlite3_column_blob(row, 6); /* NULL when empty */
    event.data = (weft_bytes){data ? data : "", (size_t) sqlite3_column_bytes(row, 6)};
    if (sqlite3_errcode(sqlite3_db_handle(row)) == SQLITE_NOMEM)
        return -ENOMEM;
    if (!event.stream || !event.type)
        return -EUCLEAN;
    if (sqlite3_column_int64(row, 7) != weft__sq_sum_event(sqlite3_column_int64(row, 1), &event, event.key))
        return -EUCLEAN;
    *ret = event;
    return 0;
}

/* Whether an event may follow the position at. In a stream it is the next; over all, streams that were trimmed leave holes,
 * but none behind the last event that was ever removed. */
static bool may_follow(const weft_read_job *job, uint64_t at, const weft_event *event) {
    if (job->query.stream)
        return event->seq == at + 1;
    return event->gseq == at + 1 || (event->gseq > at && event->gseq - 1 <= job->page.trimmed);
}

static int fill_page_from(weft_read_job *job, sqlite3_stmt *row, uint64_t at) {
    int r;
    while ((r = weft__sq_step(row)) > 0) {
        weft_event event;
        r = take_event_row(row, job->query.stream, &event);
        if (r < 0)
            return r;
        if (!may_follow(job, at, &event))
            return -EUCLEAN;
        if (job->query.until && event.gseq > job->query.until)
            return 0;
        r = weft__page_add(job, &event);
        if (r <= 0)
            return r;
        at = job->page.last;
    }
    /* It must not end before the last event; but everything up to the head may have been trimmed. */
    return r < 0 || at == job->page.head || job->page.trimmed == job->page.head ? r : -EUCLEAN;
}

/* The first event there is, of one stream or over all; 0: none. */
static int first_gseq(weft_sq *sq, enum weft_sq_statement which, int64_t stream, uint64_t *ret) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->read, which, &r);
    if (!row)
        return r;
    if (which == WEFT_SQ_FIRST)
        sqlite3_bind_int64(row, 1, stream);
    r = weft__sq_step(row);
    *ret = r > 0 ? (uint64_t) sqlite3_column_int64(row, 0) : 0;
    sqlite3_reset(row);
    return r < 0 ? r : 0;
}

/* Up to here something is gone from this stream; which of its events went last is not known, so it is up to its first. */
static int gone_from(weft_sq *sq, const char *name, uint64_t all_head, uint64_t *ret) {
    int64_t id = 0, head = 0, trimmed = 0;
    uint64_t first = 0;
    int r = weft__sq_find_stream(&sq->read, name, &id, &head, &trimmed);
    *ret = 0;
    if (r <= 0 || !trimmed)
        return r < 0 ? r : 0;
    r = first_gseq(sq, WEFT_SQ_FIRST, id, &first);
    *ret = first ? first - 1 : all_head;
    return r;
}

/* A position before this one has missed something it asked for. */
static int gone_over_all(weft_sq *sq, const weft_query *query, const weft_sq_state *state, uint64_t *ret) {
    uint64_t first = 0, one = 0, all_head = (uint64_t) state->head;
    *ret = (uint64_t) state->trimmed;
    if (!query->aside || !state->trimmed)
        return 0;
    int r = first_gseq(sq, WEFT_SQ_ALL_FIRST, 0, &first);
    if (r >= 0 && query->but)
        r = gone_from(sq, query->but, all_head, &one);
    first = first ? first - 1 : all_head;
    *ret = one > first ? one : first;
    /* Nothing after the last event that is gone from any stream is gone. */
    if (*ret > (uint64_t) state->trimmed)
        *ret = (uint64_t) state->trimmed;
    return r;
}

static int read_all_streams(weft_sq *sq, weft_read_job *job) {
    weft_sq_state state;
    int r = weft__sq_load_state(&sq->read, &state);
    if (r <= 0)
        return r < 0 ? r : -EUCLEAN;
    uint64_t gone;
    r = gone_over_all(sq, &job->query, &state, &gone);
    if (r < 0)
        return r;
    r = weft__page_begin(job, sq->base.epoch, (uint64_t) state.head, (uint64_t) state.trimmed, gone);
    sqlite3_stmt *row = r == 0 ? weft__sq_prepare(&sq->read, WEFT_SQ_ALL_PAGE, &r) : NULL;
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, (int64_t) job->query.after);
    r = fill_page_from(job, row, job->query.after);
    sqlite3_reset(row);
    return r;
}

static int read_stream(weft_sq *sq, weft_read_job *job) {
    int64_t id = 0, head = 0, trimmed = 0;
    int r = weft__sq_find_stream(&sq->read, job->query.stream, &id, &head, &trimmed);
    if (r < 0)
        return r;
    r = weft__page_begin(job, sq->base.epoch, (uint64_t) head, (uint64_t) trimmed, (uint64_t) trimmed);
    sqlite3_stmt *row = r == 0 ? weft__sq_prepare(&sq->read, WEFT_SQ_PAGE, &r) : NULL;
    if (!row)
        return r;
    uint64_t after = job->query.after > (uint64_t) trimmed ? job->query.after : (uint64_t) trimmed;
    sqlite3_bind_int64(row, 1, id);
    sqlite3_bind_int64(row, 2, (int64_t) after);
    r = fill_page_from(job, row, after);
    sqlite3_reset(row);
    return r;
}

static int take_document(sqlite3_stmt *row, weft_event *ret) {
    weft_event event = {
        .stream = (const char *) sqlite3_column_text(row, 1),
        .type = "document",
        .seq = (uint64_t) sqlite3_column_int64(row, 0),
    };
    const void *data = sqlite3_column_blob(row, 2);
    event.data = (weft_bytes){data ? data : "", (size_t) sqlite3_column_bytes(row, 2)};
    if (sqlite3_errcode(sqlite3_db_handle(row)) == SQLITE_NOMEM)
        return -ENOMEM;
    if (!event.stream || sqlite3_column_int64(row, 3) != weft__sq_sum_document(event.stream, event.data))
        return -EUCLEAN;
    *ret = event;
    return 0;
}

static int read_documents(weft_sq *sq, weft_read_job *job) {
    weft_event event;
    int r = weft__page_begin(job, sq->base.epoch, INT64_MAX, 0, 0);
    const char *key = job->query.stream;
    sqlite3_stmt *row = r == 0 ? weft__sq_prepare(&sq->read, key ? WEFT_SQ_DOCUMENT : WEFT_SQ_DOCUMENTS, &r) : NULL;
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, (int64_t) job->query.after);
    if (key)
        sqlite3_bind_text(row, 2, key, -1, SQLITE_STATIC);
    while ((r = weft__sq_step(row)) > 0)
        if ((r = take_document(row, &event)) < 0 || (r = weft__page_add(job, &event)) <= 0)
            break;
    sqlite3_reset(row);
    return r < 0 ? r : 0;
}

/* ---- for copies of the journal ---- */

#define REMOVED_AT_ONCE 50000 /* rows that are looked at for one page: some 10 ms */

static int take_trimmed_stream(sqlite3_stmt *row, weft_event *ret) {
    weft_event event = {
        .stream = (const char *) sqlite3_column_text(row, 1),
        .type = "stream",
        .data = {"", 0},
        .seq = (uint64_t) sqlite3_column_int64(row, 0),
        .gseq = (uint64_t) sqlite3_column_int64(row, 3),
    };
    if (sqlite3_errcode(sqlite3_db_handle(row)) == SQLITE_NOMEM)
        return -ENOMEM;
    if (!event.stream ||
        sqlite3_column_int64(row, 4) !=
            weft__sq_sum_stream((int64_t) event.seq, event.stream, sqlite3_column_int64(row, 2), (int64_t) event.gseq))
        return -EUCLEAN;
    *ret = event;
    return 0;
}

static int read_trimmed_streams(weft_sq *sq, weft_read_job *job) {
    weft_event event;
    int r = weft__page_begin(job, sq->base.epoch, INT64_MAX, 0, 0);
    sqlite3_stmt *row = r == 0 ? weft__sq_prepare(&sq->read, WEFT_SQ_TRIMMED, &r) : NULL;
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, (int64_t) job->query.after);
    while ((r = weft__sq_step(row)) > 0)
        if ((r = take_trimmed_stream(row, &event)) < 0 || (r = weft__page_add(job, &event)) <= 0)
            break;
    sqlite3_reset(row);
    return r < 0 ? r : 0;
}

static int read_removed(weft_sq *sq, weft_read_job *job) {
    weft_sq_state state;
    int r = weft__sq_load_state(&sq->read, &state);
    if (r <= 0)
        return r < 0 ? r : -EUCLEAN;
    r = weft__page_begin(job, sq->base.epoch, (uint64_t) state.head, 0, 0);
    sqlite3_stmt *row = r == 0 ? weft__sq_prepare(&sq->read, WEFT_SQ_REMOVED, &r) : NULL;
    if (!row)
        return r;
    uint64_t after = job->query.after, upto = (uint64_t) state.head;
    if (upto - after > REMOVED_AT_ONCE)
        upto = after + REMOVED_AT_ONCE;
    sqlite3_bind_int64(row, 1, (int64_t) after);
    sqlite3_bind_int64(row, 2, (int64_t) upto);
    while ((r = weft__sq_step(row)) > 0) {
        weft_event event = {
            .stream = "", .type = WEFT_REMOVED, .data = {"", 0}, .gseq = (uint64_t) sqlite3_column_int64(row, 0)};
        if ((r = weft__page_add(job, &event)) <= 0)
            break;
    }
    sqlite3_reset(row);
    if (r == 0 && !job->page.more) {
        job->page.last = upto;
        job->page.more = upto < (uint64_t) state.head;
    }
    return r < 0 ? r : 0;
}

static int read_page(weft_sq *sq, weft_read_job *job) {
    /* A position no event can have; SQLite's numbers end at 2^63. */
    if (job->query.after > INT64_MAX)
        job->query.after = INT64_MAX;
    int r = weft__sq_do(&sq->read, WEFT_SQ_BEGIN);
    if (r < 0)
        return r;
    r = job->query.raw == WEFT_RAW_STREAMS   ? read_trimmed_streams(sq, job)
        : job->query.raw == WEFT_RAW_REMOVED ? read_removed(sq, job)
        : job->query.documents               ? read_documents(sq, job)
        : job->query.stream                  ? read_stream(sq, job)
                                             : read_all_streams(sq, job);
    int ended = weft__sq_do(&sq->read, WEFT_SQ_COMMIT);
    if (ended < 0 && !sqlite3_get_autocommit(sq->read.db))
        weft__sq_do(&sq->read, WEFT_SQ_ROLLBACK);
    return r;
}

void *weft__sq_reader_main(void *ctx) {
    weft_sq *sq = ctx;
    weft_link jobs;
    /* One at a time, so that the first page is shown before the second is read. */
    while (weft__store_worker_take(&sq->reader, -1, 1, &jobs) > 0) {
        weft_job *job = WEFT_CONTAINER(jobs.next, weft_job, link);
        job->r = weft__store_worker_stopping(&sq->reader) ? -ECANCELED : read_page(sq, (weft_read_job *) (void *) job);
        weft__completions_put(&sq->base.completions, &jobs);
    }
    return NULL;
}

/* An append inside the writer's transaction. */
#include <errno.h>
#include <string.h>

#include "sqlite_store.h"

/* Its row is stored with those of the whole group. */
static int place_event(weft_sq *sq, weft_event *event) {
    int r;
    weft_sq_stream *stream = weft__sq_stream(sq, event->stream, true, &r);
    if (!stream)
        return r;
    event->seq = (uint64_t) ++stream->head;
    event->gseq = (uint64_t) ++sq->state.head;
    stream->changed = true;
    if (stream->bytes >= 0)
        stream->bytes += (int64_t) event->data.len;
    sq->state.rows++;
    sq->state.bytes += (int64_t) event->data.len;
    sq->event_rows++;
    return 0;
}

/* Fill in where this event was stored the first time; nowhere if it was trimmed. 1 but it was another. */
static int recall_place(sqlite3_stmt *row, int64_t gseq, weft_event *event) {
    sqlite3_bind_int64(row, 1, gseq);
    int r = weft__sq_step(row);
    event->seq = r > 0 ? (uint64_t) sqlite3_column_int64(row, 0) : 0;
    event->gseq = r > 0 ? (uint64_t) gseq : 0;
    if (r > 0) {
        const char *type = (const char *) sqlite3_column_text(row, 1), *name = (const char *) sqlite3_column_text(row, 2);
        r = !type || !name ? -ENOMEM : strcmp(type, event->type) != 0 || strcmp(name, event->stream) != 0;
    }
    sqlite3_reset(row);
    return r;
}

static int recall_append(weft_sq *sq, weft_append_job *job, int64_t gseq) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_AT, &r);
    if (!row)
        return r;
    for (size_t i = 0; i < job->count; i++) {
        r = recall_place(row, gseq + (int64_t) i, &job->events[i]);
        if (r < 0)
            return r;
        if (r > 0) {
            job->job.r = -EEXIST;
            return 0;
        }
    }
    job->repeat = true;
    return 0;
}

static int put_document(weft_sq *sq, const weft_document *document) {
    int r;
    bool put = document->data.data != NULL;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, put ? WEFT_SQ_PUT : WEFT_SQ_DROP, &r);
    if (!row)
        return r;
    sqlite3_bind_text(row, 1, document->key, -1, SQLITE_STATIC);
    if (put) {
        sqlite3_bind_blob64(row, 2, document->data.data, document->data.len, SQLITE_STATIC);
        sqlite3_bind_int64(row, 3, weft__sq_sum_document(document->key, document->data));
    }
    return weft__sq_run(row);
}

/* How many documents go one by one, in their order: those up to the last that is deleted. */
static size_t count_alone(const weft_append_job *job) {
    size_t upto = job->document_count;
    while (upto > 0 && job->documents[upto - 1].data.data)
        upto--;
    return upto;
}

/* The rest is stored with the group. */
static int begin_documents(weft_sq *sq, weft_append_job *job, size_t alone) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < alone; i++)
        r = put_document(sq, &job->documents[i]);
    job->documents_put = alone;
    sq->document_rows += job->document_count - alone;
    sq->count_saved &= !job->document_count;
    return r;
}

/* Its bytes are no longer there, in its stream and over all. */
static int count_removed(weft_sq *sq, const char *name, int64_t bytes) {
    int r;
    weft_sq_stream *stream = weft__sq_stream(sq, name, false, &r);
    if (!stream)
        return r < 0 ? r : -EUCLEAN;
    if (stream->bytes >= 0)
        stream->bytes += bytes;
    sq->state.bytes += bytes;
    return 0;
}

static int write_removed(weft_sq *sq, int64_t gseq, uint32_t sum) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_REMOVE, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, gseq);
    sqlite3_bind_text(row, 2, WEFT_REMOVED, -1, SQLITE_STATIC);
    sqlite3_bind_blob64(row, 3, WEFT_REMOVED_DATA, sizeof WEFT_REMOVED_DATA - 1, SQLITE_STATIC);
    sqlite3_bind_int64(row, 4, sum);
    return weft__sq_run(row);
}

/* The row of an event that may have its content taken out: what it will be, and how many bytes it had. */
static int remove_row(weft_sq *sq, sqlite3_stmt *row) {
    const char *key = (const char *) sqlite3_column_text(row, 5), *name = (const char *) sqlite3_column_text(row, 8);
    int64_t had = sqlite3_column_bytes(row, 6);
    weft_event event = {
        .gseq = (uint64_t) sqlite3_column_int64(row, 0),
        .seq = (uint64_t) sqlite3_column_int64(row, 2),
        .time_ms = sqlite3_column_int64(row, 3),
        .type = WEFT_REMOVED,
        .data = {WEFT_REMOVED_DATA, sizeof WEFT_REMOVED_DATA - 1},
    };
    if (sqlite3_errcode(sqlite3_db_handle(row)) == SQLITE_NOMEM)
        return -ENOMEM;
    if (!name)
        return -EUCLEAN;
    uint32_t sum = weft__sq_sum_event(sqlite3_column_int64(row, 1), &event, key);
    int r = count_removed(sq, name, (int64_t) event.data.len - had);
    return r < 0 ? r : write_removed(sq, (int64_t) event.gseq, sum);
}

static int remove_content(weft_sq *sq, uint64_t gseq) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_WHOLE, &r);
    if (!row || gseq > INT64_MAX)
        return r;
    sqlite3_bind_int64(row, 1, (int64_t) gseq);
    r = weft__sq_step(row);
    if (r > 0)
        r = remove_row(sq, row);
    sqlite3_reset(row);
    return r;
}

static int remove_contents(weft_sq *sq, const weft_append_job *job) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < job->removal_count; i++)
        r = remove_content(sq, job->removals[i]);
    sq->count_saved &= !job->removal_count;
    return r;
}

int weft__sq_append(weft_sq *sq, weft_append_job *job) {
    int64_t gseq = 0;
    size_t alone = count_alone(job);
    /* A document that is deleted here or an event whose content goes may be among those before it. */
    int r = alone || job->removal_count ? weft__sq_put_rows(sq, &job->job.link) : 0;
    if (r >= 0 && job->key)
        r = weft__sq_key_find(sq, job, &gseq);
    if (r > 0)
        return recall_append(sq, job, gseq);
    /* That concerns only this one. */
    if (r >= 0 && (job->job.r = weft__counters_take(&sq->state.counters, job)) < 0)
        return 0;
    for (size_t i = 0; r >= 0 && i < job->count; i++)
        r = place_event(sq, &job->events[i]);
    if (r >= 0 && job->key)
        r = weft__sq_key_add(sq, job->key, (int64_t) job->events[0].gseq);
    if (r >= 0)
        r = begin_documents(sq, job, alone);
    return r < 0 ? r : remove_contents(sq, job);
}

void weft__sq_rows_begin(weft_sq *sq, weft_link *jobs) {
    sq->rows_from = sq->rows_until = jobs->next;
    sq->event_rows = sq->document_rows = 0;
    sq->count_saved = true;
}

/* The counts go with documents: so they are known up to here after an unclean stop, too. */
int weft__sq_put_rows(weft_sq *sq, weft_link *until) {
    int r = 0;
    sq->rows_until = until;
    if (sq->event_rows)
        r = weft__sq_do(&sq->write, WEFT_SQ_INSERT_ROWS);
    if (r >= 0 && sq->document_rows)
        r = weft__sq_do(&sq->write, WEFT_SQ_PUT_ROWS);
    if (r >= 0 && !sq->count_saved)
        r = weft__sq_save(sq);
    sq->rows_from = until;
    sq->event_rows = sq->document_rows = 0;
    sq->count_saved = true;
    return r;
}

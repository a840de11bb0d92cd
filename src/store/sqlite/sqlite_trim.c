/* Trimming inside the writer's transaction, a piece at a time: other jobs are committed between the pieces. */
#include <errno.h>

#include "sqlite_store.h"

#define PIECE 1000 /* events removed in one transaction: some 10 ms */

/* What is being trimmed, and how much there would be left. */
struct cut {
    weft_sq_stream *stream; /* NULL: over all */
    int64_t rows, bytes;
    int64_t count, gone; /* events and bytes to go */
    int64_t gseq, seq;   /* of the last to go */
};

static int count_bytes(weft_sq *sq, weft_sq_stream *stream) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_STREAM_BYTES, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, stream->id);
    r = weft__sq_step(row);
    if (r > 0)
        stream->bytes = sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    return r;
}

static bool too_many(const weft_trim *trim, const struct cut *cut, int64_t gseq) {
    if (trim->before && (uint64_t) gseq >= trim->before)
        return false;
    return (trim->rows && (uint64_t) cut->rows > trim->rows) || (trim->bytes && (uint64_t) cut->bytes > trim->bytes) ||
           (uint64_t) gseq <= trim->upto;
}

/* The event at row goes; its stream begins behind it. */
static int count_out(weft_sq *sq, struct cut *cut, sqlite3_stmt *row) {
    int r = 0;
    const char *name = cut->stream ? NULL : (const char *) sqlite3_column_text(row, 6);
    bool has_key = sqlite3_column_type(row, 5) != SQLITE_NULL;
    const char *key = has_key ? (const char *) sqlite3_column_text(row, 5) : NULL;
    weft_sq_stream *stream = cut->stream;
    int64_t bytes = sqlite3_column_int64(row, 4);
    if (!stream && !name)
        return -EUCLEAN;
    if (has_key && !key)
        return -ENOMEM;
    if (!stream && !(stream = weft__sq_stream(sq, name, false, &r)))
        return r < 0 ? r : -EUCLEAN;
    cut->gseq = sqlite3_column_int64(row, 0);
    cut->seq = sqlite3_column_int64(row, 2);
    cut->rows--;
    cut->bytes -= bytes;
    cut->count++;
    cut->gone += bytes;
    if (stream->bytes >= 0)
        stream->bytes -= bytes;
    stream->trimmed = cut->seq;
    stream->changed = true;
    return key ? weft__sq_key_remove(sq, key, cut->gseq) : 0;
}

static int find_cut(weft_sq *sq, const weft_trim *trim, struct cut *cut) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, cut->stream ? WEFT_SQ_OLDEST : WEFT_SQ_ALL_OLDEST, &r);
    if (!row)
        return r;
    if (cut->stream)
        sqlite3_bind_int64(row, 1, cut->stream->id);
    sqlite3_bind_int64(row, 2, PIECE);
    while ((r = weft__sq_step(row)) > 0 && too_many(trim, cut, sqlite3_column_int64(row, 0)))
        if ((r = count_out(sq, cut, row)) < 0)
            break;
    sqlite3_reset(row);
    return r < 0 ? r : 0;
}

static int remove_events(weft_sq *sq, const struct cut *cut) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, cut->stream ? WEFT_SQ_CUT : WEFT_SQ_ALL_CUT, &r);
    if (!row)
        return r;
    if (cut->stream)
        sqlite3_bind_int64(row, 1, cut->stream->id);
    sqlite3_bind_int64(row, 2, cut->stream ? cut->seq : cut->gseq);
    r = weft__sq_run(row);
    /* More or fewer than were counted: the index and the table do not agree. */
    return r >= 0 && sqlite3_changes64(sq->write.db) != cut->count ? -EUCLEAN : r;
}

static int remove_cut(weft_sq *sq, const struct cut *cut) {
    int r = remove_events(sq, cut);
    if (r < 0)
        return r;
    if (cut->gseq > sq->state.trimmed)
        sq->state.trimmed = cut->gseq;
    sq->state.rows -= cut->count;
    sq->state.bytes -= cut->gone;
    r = weft__sq_streams_save(sq);
    return r < 0 ? r : weft__sq_save(sq);
}

int weft__sq_trim(weft_sq *sq, weft_trim_job *job) {
    struct cut cut = {.rows = sq->state.rows, .bytes = sq->state.bytes};
    int r = 0;
    if (job->trim.stream) {
        cut.stream = weft__sq_stream(sq, job->trim.stream, false, &r);
        if (!cut.stream)
            return r;
        if (cut.stream->bytes < 0 && (r = count_bytes(sq, cut.stream)) < 0)
            return r;
        cut.rows = cut.stream->head - cut.stream->trimmed;
        cut.bytes = cut.stream->bytes;
    }
    r = find_cut(sq, &job->trim, &cut);
    if (r >= 0 && cut.count)
        r = remove_cut(sq, &cut);
    if (r >= 0 && cut.count)
        job->piece = (uint64_t) cut.gseq;
    job->step = (uint64_t) cut.count;
    return r < 0 ? r : cut.count == PIECE;
}

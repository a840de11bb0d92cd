/* The writer's table of streams: names to numbers and heads, loaded when a stream is first used. */
#include <errno.h>
#include <string.h>

#include "hash.h"
#include "sqlite_store.h"

static weft_sq_stream *add_stream_entry(weft_sq *sq, const char *name, uint32_t hash) {
    size_t len = strlen(name);
    weft_sq_stream *stream = weft__zalloc(sq->base.alloc, sizeof *stream + len + 1);
    if (!stream)
        return NULL;
    memcpy(stream->name, name, len);
    stream->hash = hash;
    stream->bytes = -1;
    stream->next = sq->streams[hash % WEFT_SQ_ROWS];
    sq->streams[hash % WEFT_SQ_ROWS] = stream;
    sq->stream_count++;
    return stream;
}

/* The newest entry, which turned out not to be. */
static void take_back_entry(weft_sq *sq, weft_sq_stream *stream) {
    sq->streams[stream->hash % WEFT_SQ_ROWS] = stream->next;
    sq->stream_count--;
    weft__free(sq->base.alloc, stream);
}

int weft__sq_find_stream(weft_sq_conn *conn, const char *name, int64_t *ret_id, int64_t *ret_head, int64_t *ret_trimmed) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(conn, WEFT_SQ_STREAM, &r);
    sqlite3_stmt *last = row ? weft__sq_prepare(conn, WEFT_SQ_HEAD, &r) : NULL;
    if (!last)
        return r;
    sqlite3_bind_text(row, 1, name, -1, SQLITE_STATIC);
    r = weft__sq_step(row);
    int64_t id = sqlite3_column_int64(row, 0), head = sqlite3_column_int64(row, 1), trimmed = sqlite3_column_int64(row, 2);
    if (r > 0 && sqlite3_column_int64(row, 3) != weft__sq_sum_stream(id, name, head, trimmed))
        r = -EUCLEAN;
    sqlite3_reset(row);
    sqlite3_clear_bindings(row);
    if (r <= 0)
        return r;
    sqlite3_bind_int64(last, 1, id);
    r = weft__sq_step(last);
    int64_t seq = r > 0 ? sqlite3_column_int64(last, 0) : 0;
    sqlite3_reset(last);
    if (r < 0)
        return r;
    if (seq < trimmed)
        seq = trimmed;
    /* Fewer events than there have been. */
    if (seq < head)
        return -EUCLEAN;
    *ret_id = id;
    *ret_head = seq;
    *ret_trimmed = trimmed;
    return 1;
}

static int save_stream(weft_sq *sq, weft_sq_stream *stream) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_SET_STREAM, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, stream->id);
    sqlite3_bind_int64(row, 2, stream->head);
    sqlite3_bind_int64(row, 3, stream->trimmed);
    sqlite3_bind_int64(row, 4, weft__sq_sum_stream(stream->id, stream->name, stream->head, stream->trimmed));
    r = weft__sq_run(row);
    if (r >= 0)
        stream->changed = false;
    return r;
}

static int create_stream(weft_sq *sq, weft_sq_stream *stream) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_NEW_STREAM, &r);
    if (!row)
        return r;
    sqlite3_bind_text(row, 1, stream->name, -1, SQLITE_STATIC);
    r = weft__sq_run(row);
    sqlite3_clear_bindings(row);
    if (r < 0)
        return r;
    stream->id = sqlite3_last_insert_rowid(sq->write.db);
    stream->bytes = 0;
    return save_stream(sq, stream);
}

weft_sq_stream *weft__sq_stream(weft_sq *sq, const char *name, bool make, int *ret_r) {
    uint32_t hash = weft__hash(name);
    *ret_r = 0;
    for (weft_sq_stream *known = sq->streams[hash % WEFT_SQ_ROWS]; known; known = known->next)
        if (known->hash == hash && strcmp(known->name, name) == 0)
            return known;
    weft_sq_stream *stream = add_stream_entry(sq, name, hash);
    if (!stream) {
        *ret_r = -ENOMEM;
        return NULL;
    }
    int r = weft__sq_find_stream(&sq->write, name, &stream->id, &stream->head, &stream->trimmed);
    bool found = r > 0;
    if (r == 0 && make)
        r = create_stream(sq, stream);
    if (r < 0 || (!found && !make)) {
        take_back_entry(sq, stream);
        *ret_r = r;
        return NULL;
    }
    return stream;
}

int weft__sq_streams_save(weft_sq *sq) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < WEFT_SQ_ROWS; i++)
        for (weft_sq_stream *stream = sq->streams[i]; r >= 0 && stream; stream = stream->next)
            if (stream->changed)
                r = save_stream(sq, stream);
    return r;
}

void weft__sq_streams_drop(weft_sq *sq) {
    for (size_t i = 0; i < WEFT_SQ_ROWS; i++) {
        while (sq->streams[i]) {
            weft_sq_stream *stream = sq->streams[i];
            sq->streams[i] = stream->next;
            weft__free(sq->base.alloc, stream);
        }
    }
    sq->stream_count = 0;
}

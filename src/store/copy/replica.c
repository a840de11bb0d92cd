/* Rows as sqlite_append.c writes them, with positions that somebody else gave. */
#include "replica.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc.h"
#include "sqlite_store.h"

/* Streams whose numbers are in memory, by their names. */
#define STREAMS 256

enum statement {
    INSERT_EVENT,
    INSERT_KEY,
    DROP_KEY,
    DROP_EVENT,
    OLD_EVENTS,
    OLD_EVENTS_AT,
    ALL_OLD_EVENTS,
    PUT_PLACE,
    DROP_BETWEEN,
    DROP_BEHIND,
    DROP_OTHER,
    SAVE,
    STATEMENTS,
};

static const char *const texts[STATEMENTS] = {
    [INSERT_EVENT] = "INSERT INTO event (gseq, stream, seq, time, type, key, data, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    [INSERT_KEY] = "INSERT OR IGNORE INTO keyed (hash, gseq) VALUES (?, ?)",
    [DROP_KEY] = "DELETE FROM keyed WHERE hash = ? AND gseq = ?",
    [DROP_EVENT] = "DELETE FROM event WHERE gseq = ?",
    [OLD_EVENTS] = "SELECT e.gseq, e.seq, e.key, length(e.data), s.name FROM event e JOIN stream s ON s.id = e.stream"
                   " WHERE e.stream = ?1 AND e.seq <= ?2 ORDER BY e.seq LIMIT 1",
    [OLD_EVENTS_AT] = "SELECT e.gseq, e.seq, e.key, length(e.data), s.name FROM event e JOIN stream s ON s.id = e.stream"
                      " WHERE e.stream = ?1 AND e.gseq <= ?2 ORDER BY e.seq LIMIT 1",
    [ALL_OLD_EVENTS] = "SELECT e.gseq, e.seq, e.key, length(e.data), s.name FROM event e JOIN stream s ON s.id = e.stream"
                       " WHERE ?1 = 0 AND e.gseq <= ?2 ORDER BY e.gseq LIMIT 1",
    [PUT_PLACE] = "INSERT INTO document (id, key, data, sum) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
                  " key = excluded.key, data = excluded.data, sum = excluded.sum",
    [DROP_BETWEEN] = "DELETE FROM document WHERE id > ? AND id < ?",
    [DROP_BEHIND] = "DELETE FROM document WHERE id > ?",
    [DROP_OTHER] = "DELETE FROM document WHERE key = ? AND id <> ?",
    [SAVE] = "INSERT OR REPLACE INTO standby (id, epoch, log, change, said_head, heard_ms, source, whole, promoted, head)"
             " VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
};

typedef struct stream {
    int64_t id; /* 0: the place is free */
    int64_t head, trimmed;
    char name[WEFT_STORE_NAME + 1];
} stream;

struct weft_replica {
    const weft_alloc *alloc;
    char *path;
    int mark;
    weft_sq_conn conn;
    sqlite3_stmt *statements[STATEMENTS];
    weft_sq_state rows; /* the journal's own row */
    weft_replica_state state, committed;
    stream *streams;
    char why[WEFT_STORE_WHY];
};

/* ---- statements ---- */

static sqlite3_stmt *prepare(weft_replica *self, enum statement which, int *ret_r) {
    sqlite3_stmt **statement = &self->statements[which];
    int rc = SQLITE_OK;
    if (!*statement)
        rc = sqlite3_prepare_v3(self->conn.db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, statement, NULL);
    *ret_r = weft__sq_error(self->conn.db, rc);
    return *statement;
}

static int run(sqlite3_stmt *statement) {
    int r = weft__sq_run(statement);
    sqlite3_clear_bindings(statement);
    return r < 0 ? r : 0;
}

static int run_with(weft_replica *self, enum statement which, int64_t a, int64_t b) {
    int r;
    sqlite3_stmt *statement = prepare(self, which, &r);
    if (!statement)
        return r;
    sqlite3_bind_int64(statement, 1, a);
    if (sqlite3_bind_parameter_count(statement) > 1)
        sqlite3_bind_int64(statement, 2, b);
    return run(statement);
}

int weft__replica_refuse(weft_replica *self, const char *why, uint64_t at) {
    snprintf(self->why, sizeof self->why, "%s %llu", why, (unsigned long long) at);
    return -EPROTO;
}

/* Numbers end at 2^63 in the file. */
static bool fits(uint64_t n) {
    return n > 0 && n < INT64_MAX;
}

static bool is_name(const char *text) {
    size_t len = text ? strlen(text) : 0;
    return len > 0 && len <= WEFT_STORE_NAME;
}

/* ---- streams ---- */

static void forget_streams(weft_replica *self) {
    for (size_t i = 0; i < STREAMS; i++)
        self->streams[i].id = 0;
}

static int write_stream(weft_replica *self, const stream *at) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&self->conn, WEFT_SQ_SET_STREAM, &r);
    if (!row)
        return r;
    /* Events say where the head is; where there are none, what was trimmed does. */
    sqlite3_bind_int64(row, 1, at->id);
    sqlite3_bind_int64(row, 2, at->trimmed);
    sqlite3_bind_int64(row, 3, at->trimmed);
    sqlite3_bind_int64(row, 4, weft__sq_sum_stream(at->id, at->name, at->trimmed, at->trimmed));
    return run(row);
}

static int make_stream(weft_replica *self, stream *at) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&self->conn, WEFT_SQ_NEW_STREAM, &r);
    if (!row)
        return r;
    sqlite3_bind_text(row, 1, at->name, -1, SQLITE_STATIC);
    r = run(row);
    if (r < 0)
        return r;
    at->id = sqlite3_last_insert_rowid(self->conn.db);
    return write_stream(self, at);
}

/* NULL with *ret_r 0: there is none, and it was not to be made. */
static stream *find_stream(weft_replica *self, const char *name, bool make, int *ret_r) {
    stream *at = &self->streams[(uint64_t) weft__sq_key_hash(name) % STREAMS];
    *ret_r = 0;
    if (at->id && strcmp(at->name, name) == 0)
        return at;
    *at = (stream){0};
    snprintf(at->name, sizeof at->name, "%s", name);
    int r = weft__sq_find_stream(&self->conn, name, &at->id, &at->head, &at->trimmed);
    if (r == 0 && make)
        r = make_stream(self, at);
    else if (r == 0)
        return NULL;
    if (r < 0)
        at->id = 0;
    *ret_r = r < 0 ? r : 0;
    return r < 0 ? NULL : at;
}

/* ---- what goes ---- */

static int drop_event(weft_replica *self, int64_t gseq, int64_t seq, int64_t bytes, const char *name) {
    int r;
    stream *at = find_stream(self, name, false, &r);
    if (!at)
        return r < 0 ? r : -EUCLEAN;
    self->rows.rows--;
    self->rows.bytes -= bytes;
    if (gseq > self->rows.trimmed)
        self->rows.trimmed = gseq;
    if (seq > at->trimmed)
        at->trimmed = seq;
    r = write_stream(self, at);
    return r < 0 ? r : run_with(self, DROP_EVENT, gseq, 0);
}

/* One by one: what a statement shows while its table changes is not said. 1: there may be more. */
static int drop_oldest(weft_replica *self, enum statement which, int64_t id, int64_t upto) {
    int r;
    char name[WEFT_STORE_NAME + 1];
    sqlite3_stmt *row = prepare(self, which, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, id);
    sqlite3_bind_int64(row, 2, upto);
    r = weft__sq_step(row);
    int64_t gseq = sqlite3_column_int64(row, 0), seq = sqlite3_column_int64(row, 1), bytes = sqlite3_column_int64(row, 3);
    const char *key = r > 0 ? (const char *) sqlite3_column_text(row, 2) : NULL;
    const char *text = r > 0 ? (const char *) sqlite3_column_text(row, 4) : NULL;
    int64_t hash = key ? weft__sq_key_hash(key) : 0;
    snprintf(name, sizeof name, "%s", text ? text : "");
    bool keyed = key != NULL;
    sqlite3_reset(row);
    if (r <= 0)
        return r;
    r = keyed ? run_with(self, DROP_KEY, hash, gseq) : 0;
    if (r >= 0)
        r = drop_event(self, gseq, seq, bytes, name);
    return r < 0 ? r : 1;
}

static int drop_upto(weft_replica *self, enum statement which, int64_t id, int64_t upto) {
    int r;
    do
        r = drop_oldest(self, which, id, upto);
    while (r > 0);
    return r;
}

/* Also where there never was an event of it here: the next one has this seq behind it. */
static int trim_stream(weft_replica *self, const char *name, int64_t seq) {
    int r;
    stream *at = find_stream(self, name, true, &r);
    if (!at || seq <= at->trimmed)
        return r;
    r = drop_upto(self, OLD_EVENTS, at->id, seq);
    at = r < 0 ? NULL : find_stream(self, name, true, &r);
    if (!at)
        return r;
    at->trimmed = seq;
    if (at->head < seq)
        at->head = seq;
    return write_stream(self, at);
}

int weft__replica_trimmed(weft_replica *self, const char *name, uint64_t seq) {
    if (!is_name(name) || !fits(seq))
        return weft__replica_refuse(self, "a stream is trimmed up to", seq);
    return trim_stream(self, name, (int64_t) seq);
}

/* ---- events ---- */

static int insert_event(weft_replica *self, const weft_event *event, int64_t id) {
    int r;
    sqlite3_stmt *row = prepare(self, INSERT_EVENT, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, (int64_t) event->gseq);
    sqlite3_bind_int64(row, 2, id);
    sqlite3_bind_int64(row, 3, (int64_t) event->seq);
    sqlite3_bind_int64(row, 4, event->time_ms);
    sqlite3_bind_text(row, 5, event->type, -1, SQLITE_STATIC);
    if (event->key)
        sqlite3_bind_text(row, 6, event->key, -1, SQLITE_STATIC);
    sqlite3_bind_blob64(row, 7, event->data.data ? event->data.data : "", event->data.len, SQLITE_STATIC);
    sqlite3_bind_int64(row, 8, weft__sq_sum_event(id, event, event->key));
    r = run(row);
    if (r >= 0 && event->key)
        r = run_with(self, INSERT_KEY, weft__sq_key_hash(event->key), (int64_t) event->gseq);
    self->rows.rows++;
    self->rows.bytes += (int64_t) event->data.len;
    return r;
}

/* An event that is the next over all. holes: in its stream some may be missing, which were trimmed. */
static int add_event(weft_replica *self, const weft_event *event, bool holes) {
    int r;
    if (!is_name(event->stream) || !is_name(event->type) || (event->key && !is_name(event->key)) || !fits(event->seq))
        return weft__replica_refuse(self, "there is no such event as", event->gseq);
    stream *at = find_stream(self, event->stream, true, &r);
    if (!at)
        return r;
    int64_t seq = (int64_t) event->seq;
    /* It was trimmed there before we heard of it. */
    bool gone = seq <= at->trimmed;
    if (!gone && (seq <= at->head || (seq != at->head + 1 && !holes)))
        return weft__replica_refuse(self, "the stream of this event does not go on with it:", event->gseq);
    if (!gone && seq != at->head + 1) {
        r = trim_stream(self, event->stream, seq - 1);
        at = r < 0 ? NULL : find_stream(self, event->stream, true, &r);
    }
    if (at && !gone)
        r = insert_event(self, event, at->id);
    if (r < 0 || !at)
        return r;
    if (!gone)
        at->head = seq;
    else if ((int64_t) event->gseq > self->rows.trimmed)
        self->rows.trimmed = (int64_t) event->gseq;
    self->rows.head = (int64_t) event->gseq;
    self->state.head = event->gseq;
    return 0;
}

int weft__replica_event(weft_replica *self, const weft_event *event, uint64_t trimmed) {
    if (!fits(event->gseq) || event->gseq <= self->state.head || trimmed >= INT64_MAX)
        return weft__replica_refuse(self, "this event is not after the last one:", event->gseq);
    if (event->gseq != self->state.head + 1) {
        if (event->gseq - 1 > trimmed)
            return weft__replica_refuse(self, "events are missing before", event->gseq);
        if ((int64_t) event->gseq - 1 > self->rows.trimmed)
            self->rows.trimmed = (int64_t) event->gseq - 1;
    }
    return add_event(self, event, true);
}

int weft__replica_events_end(weft_replica *self, uint64_t trimmed) {
    if (trimmed >= INT64_MAX)
        return weft__replica_refuse(self, "events are trimmed up to", trimmed);
    if (trimmed > self->state.head) {
        self->state.head = trimmed;
        self->rows.head = self->rows.trimmed = (int64_t) trimmed;
    }
    return 0;
}

static int write_removed(weft_replica *self, const weft_event *event, uint32_t sum) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&self->conn, WEFT_SQ_REMOVE, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, (int64_t) event->gseq);
    sqlite3_bind_text(row, 2, event->type, -1, SQLITE_STATIC);
    sqlite3_bind_blob64(row, 3, event->data.data, event->data.len, SQLITE_STATIC);
    sqlite3_bind_int64(row, 4, sum);
    return run(row);
}

int weft__replica_removed(weft_replica *self, uint64_t gseq) {
    int r;
    if (gseq > self->state.head)
        return 0; /* it comes as it is now */
    sqlite3_stmt *row = weft__sq_prepare(&self->conn, WEFT_SQ_WHOLE, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, (int64_t) gseq);
    r = weft__sq_step(row);
    uint32_t sum = 0;
    weft_event event = {.gseq = gseq, .type = WEFT_REMOVED, .data = {WEFT_REMOVED_DATA, sizeof WEFT_REMOVED_DATA - 1}};
    if (r > 0) {
        int64_t had = sqlite3_column_bytes(row, 6);
        event.seq = (uint64_t) sqlite3_column_int64(row, 2);
        event.time_ms = sqlite3_column_int64(row, 3);
        sum = weft__sq_sum_event(sqlite3_column_int64(row, 1), &event, (const char *) sqlite3_column_text(row, 5));
        self->rows.bytes += (int64_t) event.data.len - had;
    }
    sqlite3_reset(row);
    return r > 0 ? write_removed(self, &event, sum) : r;
}

/* ---- documents ---- */

int weft__replica_document(weft_replica *self, uint64_t after, uint64_t place, const char *key, weft_bytes data) {
    int r;
    if (!is_name(key) || !data.data || !fits(place) || place <= after)
        return weft__replica_refuse(self, "there is no such document as at place", place);
    r = run_with(self, DROP_BETWEEN, (int64_t) after, (int64_t) place);
    sqlite3_stmt *other = r < 0 ? NULL : prepare(self, DROP_OTHER, &r);
    if (!other)
        return r;
    sqlite3_bind_text(other, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(other, 2, (int64_t) place);
    r = run(other);
    sqlite3_stmt *row = r < 0 ? NULL : prepare(self, PUT_PLACE, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, (int64_t) place);
    sqlite3_bind_text(row, 2, key, -1, SQLITE_STATIC);
    sqlite3_bind_blob64(row, 3, data.data, data.len, SQLITE_STATIC);
    sqlite3_bind_int64(row, 4, weft__sq_sum_document(key, data));
    return run(row);
}

int weft__replica_documents_end(weft_replica *self, uint64_t after) {
    return after >= INT64_MAX ? 0 : run_with(self, DROP_BEHIND, (int64_t) after, 0);
}

static int put_document(weft_replica *self, const weft_document *document) {
    int r;
    bool put = document->data.data != NULL;
    if (!is_name(document->key))
        return weft__replica_refuse(self, "a document has no name, after event", self->state.head);
    sqlite3_stmt *row = weft__sq_prepare(&self->conn, put ? WEFT_SQ_PUT : WEFT_SQ_DROP, &r);
    if (!row)
        return r;
    sqlite3_bind_text(row, 1, document->key, -1, SQLITE_STATIC);
    if (put) {
        sqlite3_bind_blob64(row, 2, document->data.data, document->data.len, SQLITE_STATIC);
        sqlite3_bind_int64(row, 3, weft__sq_sum_document(document->key, document->data));
    }
    return run(row);
}

/* ---- changes ---- */

static int apply_trim(weft_replica *self, const weft_store_change *change) {
    int r;
    if (!fits(change->trimmed) || change->trimmed > self->state.head || (change->stream && !is_name(change->stream)))
        return weft__replica_refuse(self, "events are trimmed up to", change->trimmed);
    if (!change->stream)
        return drop_upto(self, ALL_OLD_EVENTS, 0, (int64_t) change->trimmed);
    const stream *at = find_stream(self, change->stream, false, &r);
    return at ? drop_upto(self, OLD_EVENTS_AT, at->id, (int64_t) change->trimmed) : r;
}

int weft__replica_apply(weft_replica *self, const weft_store_change *change) {
    int r = 0;
    if (change->trimmed)
        return apply_trim(self, change);
    for (size_t i = 0; r >= 0 && i < change->count; i++) {
        weft_event event = change->events[i];
        event.key = i ? NULL : change->key;
        if (event.gseq <= self->state.head)
            continue;
        r = event.gseq == self->state.head + 1 ? add_event(self, &event, false)
                                               : weft__replica_refuse(self, "events are missing before", event.gseq);
    }
    for (size_t i = 0; r >= 0 && i < change->document_count; i++)
        r = put_document(self, &change->documents[i]);
    for (size_t i = 0; r >= 0 && i < change->removal_count; i++)
        r = weft__replica_removed(self, change->removals[i]);
    return r;
}

/* ---- transactions ---- */

int weft__replica_begin(weft_replica *self) {
    *self->why = '\0';
    return weft__sq_do(&self->conn, WEFT_SQ_BEGIN);
}

void weft__replica_rollback(weft_replica *self) {
    weft_sq_state rows;
    if (!sqlite3_get_autocommit(self->conn.db))
        weft__sq_do(&self->conn, WEFT_SQ_ROLLBACK);
    self->state = self->committed;
    forget_streams(self);
    if (weft__sq_load_state(&self->conn, &rows) > 0)
        self->rows = rows;
}

static int save(weft_replica *self) {
    int r;
    const weft_replica_state *state = &self->state;
    sqlite3_stmt *row = prepare(self, SAVE, &r);
    if (!row)
        return r;
    sqlite3_bind_text(row, 1, state->epoch, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 2, state->log, -1, SQLITE_STATIC);
    sqlite3_bind_int64(row, 3, (int64_t) state->change);
    sqlite3_bind_int64(row, 4, (int64_t) state->said_head);
    sqlite3_bind_int64(row, 5, state->heard_ms);
    sqlite3_bind_text(row, 6, state->source, -1, SQLITE_STATIC);
    sqlite3_bind_int(row, 7, state->whole);
    sqlite3_bind_int(row, 8, state->promoted);
    sqlite3_bind_int64(row, 9, (int64_t) state->head);
    r = run(row);
    if (r < 0)
        return r;
    memcpy(self->rows.epoch, state->epoch, sizeof self->rows.epoch);
    self->rows.keyed = self->rows.head = (int64_t) state->head;
    self->rows.clean = false;
    return *state->epoch ? weft__sq_save_state(&self->conn, &self->rows) : 0;
}

int weft__replica_commit(weft_replica *self) {
    int r = save(self);
    if (r >= 0)
        r = weft__sq_do(&self->conn, WEFT_SQ_COMMIT);
    if (r < 0) {
        if (!*self->why)
            snprintf(self->why, sizeof self->why, "%s", weft_strerror(r));
        weft__replica_rollback(self);
        return r;
    }
    self->committed = self->state;
    return 0;
}

/* ---- life ---- */

static int load_copy(weft_replica *self) {
    sqlite3_stmt *row = NULL;
    weft_replica_state *state = &self->state;
    int r = weft__sq_error(self->conn.db,
                           sqlite3_prepare_v2(self->conn.db,
                                              "SELECT epoch, log, change, said_head, heard_ms, source, whole, promoted,"
                                              " head FROM standby WHERE id = 1",
                                              -1, &row, NULL));
    if (r >= 0)
        r = weft__sq_step(row);
    if (r > 0) {
        const char *epoch = (const char *) sqlite3_column_text(row, 0), *log = (const char *) sqlite3_column_text(row, 1);
        const char *source = (const char *) sqlite3_column_text(row, 5);
        snprintf(state->epoch, sizeof state->epoch, "%s", epoch ? epoch : "");
        snprintf(state->log, sizeof state->log, "%s", log ? log : "");
        state->change = (uint64_t) sqlite3_column_int64(row, 2);
        state->said_head = (uint64_t) sqlite3_column_int64(row, 3);
        state->heard_ms = sqlite3_column_int64(row, 4);
        snprintf(state->source, sizeof state->source, "%s", source ? source : "");
        state->whole = sqlite3_column_int(row, 6) != 0;
        state->promoted = sqlite3_column_int(row, 7) != 0;
        state->head = (uint64_t) sqlite3_column_int64(row, 8);
    }
    sqlite3_finalize(row);
    return r;
}

/* A hub that opened it has given it another epoch, and has gone on with it. */
static int check_own(const weft_replica *self, bool copy, char *ret_why) {
    char epoch[WEFT_EPOCH + 1];
    uint64_t gseq;
    bool marked = weft__sq_mark_read(self->mark, epoch, &gseq) > 0;
    if (copy && !self->state.promoted && !marked &&
        (!*self->state.epoch || strcmp(self->state.epoch, self->rows.epoch) == 0))
        return 0;
    snprintf(ret_why, WEFT_STORE_WHY, "the journal here is a hub's own, with %lld events, and no copy",
             (long long) self->rows.head);
    return -EEXIST;
}

static const char make_table[] =
    "CREATE TABLE IF NOT EXISTS standby (id INTEGER PRIMARY KEY CHECK (id = 1), epoch TEXT NOT NULL, log TEXT NOT NULL,"
    " change INTEGER NOT NULL, said_head INTEGER NOT NULL, heard_ms INTEGER NOT NULL, source TEXT NOT NULL,"
    " whole INTEGER NOT NULL, promoted INTEGER NOT NULL, head INTEGER NOT NULL)";

static int load_rows(weft_replica *self, char *ret_why) {
    int64_t tables = 0;
    int r = weft__sq_migrate(self->conn.db, 0, ret_why);
    if (r >= 0)
        r = weft__sq_get_int(self->conn.db, "SELECT count(*) FROM sqlite_master WHERE name = 'standby'", &tables);
    int found = r < 0 ? r : weft__sq_load_state(&self->conn, &self->rows);
    if (found < 0)
        return found;
    r = tables ? load_copy(self) : 0;
    if (r >= 0 && (found || self->state.promoted))
        r = check_own(self, r > 0, ret_why);
    if (r < 0)
        return r;
    if (found && self->state.head != (uint64_t) self->rows.head) {
        snprintf(ret_why, WEFT_STORE_WHY,
                 "the copy of the journal is damaged: it ends with event %lld, and should with %llu",
                 (long long) self->rows.head, (unsigned long long) self->state.head);
        return -EUCLEAN;
    }
    return tables ? 0 : weft__sq_exec(self->conn.db, make_table);
}

static int open_copy(weft_replica *self, const char *vfs, char *ret_why) {
    struct stat info;
    int r = weft__sq_check_files(self->path, ret_why);
    if (r >= 0)
        r = weft__sq_mark_open(self->path, &self->mark);
    if (r < 0)
        return r;
    int fd = open(self->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    r = fstat(fd, &info) < 0 || fchmod(fd, 0600) < 0 ? -errno : 0;
    close(fd);
    if (r < 0)
        return r;
    int rc = sqlite3_open_v2(self->path, &self->conn.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                             vfs);
    if (rc != SQLITE_OK)
        return weft__sq_error(self->conn.db, rc);
    sqlite3_db_config(self->conn.db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *) NULL);
    r = weft__sq_exec(self->conn.db, "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
                                     "PRAGMA temp_store = MEMORY");
    return r < 0 ? r : load_rows(self, ret_why);
}

int weft__replica_open(const weft_alloc *alloc, const char *path, const char *vfs, weft_replica **ret, char *ret_why) {
    weft_replica *self = weft__zalloc(alloc, sizeof *self);
    ret_why[0] = '\0';
    if (!self)
        return -ENOMEM;
    self->alloc = alloc;
    self->mark = -1;
    self->path = weft__strndup(alloc, path, strlen(path));
    self->streams = weft__zalloc(alloc, STREAMS * sizeof *self->streams);
    int r = self->path && self->streams ? open_copy(self, vfs, ret_why) : -ENOMEM;
    if (r < 0) {
        if (!*ret_why)
            snprintf(ret_why, WEFT_STORE_WHY, "%s",
                     r == -EBUSY ? "the journal is in use by another process" : weft_strerror(r));
        weft__replica_close(self);
        return r;
    }
    self->committed = self->state;
    *ret = self;
    return 0;
}

static void close_file(weft_replica *self) {
    for (size_t i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(self->statements[i]);
        self->statements[i] = NULL;
    }
    if (self->conn.db && !sqlite3_get_autocommit(self->conn.db))
        weft__sq_do(&self->conn, WEFT_SQ_ROLLBACK);
    weft__sq_conn_done(&self->conn);
}

weft_replica *weft__replica_close(weft_replica *self) {
    if (!self)
        return NULL;
    close_file(self);
    if (self->mark >= 0)
        close(self->mark);
    weft__free(self->alloc, self->streams);
    weft__free(self->alloc, self->path);
    return weft__free(self->alloc, self);
}

weft_replica_state *weft__replica_state(weft_replica *self) {
    return &self->state;
}

const weft_alloc *weft__replica_alloc(const weft_replica *self) {
    return self->alloc;
}

const char *weft__replica_why(const weft_replica *self) {
    return self->why;
}

/* ---- becoming a journal ---- */

static int remove_beside(const char *path, const char *suffix) {
    char name[4096];
    if (snprintf(name, sizeof name, "%s%s", path, suffix) >= (int) sizeof name)
        return -ENAMETOOLONG;
    return unlink(name) < 0 && errno != ENOENT ? -errno : 0;
}

static int sync_folder_of(const char *path) {
    char folder[4096];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int) (slash - path) + 1 : 1, slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
    close(fd);
    return r;
}

/* A log that is still there would be applied to whatever file has its name. */
static int fold_log(weft_replica *self) {
    int left = 0, copied = 0;
    int rc = sqlite3_wal_checkpoint_v2(self->conn.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, &left, &copied);
    return rc == SQLITE_OK && left == 0 ? 0 : rc == SQLITE_OK ? -EBUSY : weft__sq_error(self->conn.db, rc);
}

int weft__replica_install(weft_replica *self, const char *path, char *ret_why) {
    weft_replica *old = NULL;
    struct stat info;
    int r = fold_log(self);
    if (r >= 0 && stat(path, &info) == 0) {
        r = weft__replica_open(self->alloc, path, NULL, &old, ret_why);
        if (r >= 0)
            r = fold_log(old);
    }
    if (r >= 0) {
        close_file(self);
        if (old)
            close_file(old);
        r = remove_beside(path, "-wal");
    }
    if (r >= 0)
        r = remove_beside(path, "-shm");
    if (r >= 0 && rename(self->path, path) < 0)
        r = -errno;
    if (r >= 0)
        r = remove_beside(self->path, "-mark");
    if (r >= 0)
        r = sync_folder_of(path);
    if (r < 0 && !*ret_why)
        snprintf(ret_why, WEFT_STORE_WHY, "%s", weft_strerror(r));
    weft__replica_close(old);
    weft__replica_close(self);
    return r;
}

static int rename_beside(const char *from, const char *to, const char *suffix) {
    char old[4096], new[4096];
    if (snprintf(old, sizeof old, "%s%s", from, suffix) >= (int) sizeof old ||
        snprintf(new, sizeof new, "%s%s", to, suffix) >= (int) sizeof new)
        return -ENAMETOOLONG;
    return rename(old, new) < 0 ? -errno : 0;
}

/* The mark comes last: without it the epoch would be a new one, which is safe. */
int weft__replica_keep(weft_replica *self, const char *path, char *ret_why) {
    int r = weft__sq_exec(self->conn.db, "DROP TABLE standby");
    if (r >= 0)
        r = fold_log(self);
    if (r >= 0)
        r = weft__sq_mark_write(self->mark, self->state.epoch, self->state.head);
    if (r >= 0 && fdatasync(self->mark) < 0)
        r = -errno;
    if (r >= 0) {
        close_file(self);
        r = rename_beside(self->path, path, "");
    }
    if (r >= 0)
        r = rename_beside(self->path, path, "-mark");
    if (r >= 0)
        r = sync_folder_of(path);
    if (r < 0 && !*ret_why)
        snprintf(ret_why, WEFT_STORE_WHY, "%s", weft_strerror(r));
    weft__replica_close(self);
    return r;
}

int weft__replica_promote(weft_replica *self) {
    int r = weft__replica_begin(self);
    if (r < 0)
        return r;
    self->state.promoted = true;
    return weft__replica_commit(self);
}

/* Without its lock: a look at what a start would find. */
bool weft__replica_was_promoted(const char *path, weft_replica_state *ret) {
    weft_replica self = {0};
    int64_t tables = 0;
    bool was = false;
    if (sqlite3_open_v2(path, &self.conn.db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK &&
        weft__sq_get_int(self.conn.db, "SELECT count(*) FROM sqlite_master WHERE name = 'standby'", &tables) >= 0 && tables)
        was = load_copy(&self) > 0 && self.state.promoted;
    weft__sq_conn_done(&self.conn);
    if (was && ret)
        *ret = self.state;
    return was;
}

int weft__replica_discard(const char *path, char *ret_why) {
    int mark = -1;
    ret_why[0] = '\0';
    int r = weft__sq_check_files(path, ret_why);
    if (r >= 0)
        r = weft__sq_mark_open(path, &mark);
    if (r >= 0) {
        snprintf(ret_why, WEFT_STORE_WHY, "the journal that was here is discarded");
        r = weft__sq_quarantine(path, mark, ret_why);
    }
    if (r < 0)
        snprintf(ret_why, WEFT_STORE_WHY, "%s", r == -EBUSY ? "the journal is in use by another process" : weft_strerror(r));
    if (mark >= 0)
        close(mark);
    return r;
}

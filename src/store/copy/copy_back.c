/* From a database into a file: it is written beside its place, as a copy of a hub's journal is (replica.c), and gets its
 * name and its mark when it is whole. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "copy.h"
#include "postgres_store.h"
#include "replica.h"

typedef struct copying_back {
    weft_pg *pg;
    weft_replica *to;
    weft_copy_progress progress;
    uint64_t of;
    weft_copied done;
} copying_back;

/* The rows behind a position, in its order: each is handed to take, which says where it was. 1: there were some. */
static int copy_some(copying_back *c, const char *sql, int64_t *at,
                     int (*take)(copying_back *c, const PGresult *rows, int row, int64_t *at)) {
    weft_pg_conn *conn = &c->pg->write;
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params params = {0};
    weft__pg_int(&params, *at);
    weft__pg_send(conn, sql, &params);
    int r = weft__pg_run(conn, results);
    if (r < 0)
        return r;
    int count = weft__pg_rows(conn, results[0]);
    for (int row = 0; r >= 0 && row < count; row++)
        r = take(c, results[0], row, at);
    weft__pg_clear(conn, results);
    if (r >= 0 && c->progress.on_rows)
        c->progress.on_rows(c->progress.ctx, c->done.events + c->done.documents, c->of);
    return r < 0 ? r : count > 0;
}

static int copy_all_of(copying_back *c, const char *sql,
                       int (*take)(copying_back *c, const PGresult *rows, int row, int64_t *at)) {
    int64_t at = 0;
    int r;
    do
        r = copy_some(c, sql, &at, take);
    while (r > 0);
    return r;
}

static int take_event(copying_back *c, const PGresult *rows, int row, int64_t *at) {
    const weft_pg_conn *conn = &c->pg->write;
    weft_event event = weft__pg_take_event(conn, rows, row);
    event.key = weft__pg_is_null(conn, rows, row, 6) ? NULL : weft__pg_get_bytes(conn, rows, row, 6).data;
    *at = (int64_t) event.gseq;
    c->done.events++;
    return weft__replica_event(c->to, &event, (uint64_t) c->pg->state.trimmed);
}

static int take_stream(copying_back *c, const PGresult *rows, int row, int64_t *at) {
    const weft_pg_conn *conn = &c->pg->write;
    *at = weft__pg_get_int(conn, rows, row, 0);
    return weft__replica_trimmed(c->to, weft__pg_get_bytes(conn, rows, row, 1).data,
                                 (uint64_t) weft__pg_get_int(conn, rows, row, 2));
}

static int take_document(copying_back *c, const PGresult *rows, int row, int64_t *at) {
    const weft_pg_conn *conn = &c->pg->write;
    weft_bytes data = weft__pg_get_bytes(conn, rows, row, 2);
    int64_t place = weft__pg_get_int(conn, rows, row, 0);
    int r = weft__replica_document(c->to, (uint64_t) *at, (uint64_t) place, weft__pg_get_bytes(conn, rows, row, 1).data,
                                   (weft_bytes){data.data ? data.data : "", data.len});
    *at = place;
    c->done.documents++;
    return r;
}

/* As many as fit into some MiB, and one in any case. */
static const char events_sql[] =
    "SELECT e.gseq, e.seq, e.time, e.type, e.data, s.name, e.key FROM (SELECT p.*, sum(length(p.data)) OVER (ORDER BY "
    "p.gseq)"
    " - length(p.data) AS before FROM (SELECT * FROM weft_event WHERE gseq > $1::int8 ORDER BY gseq LIMIT 1000) p) e"
    " JOIN weft_stream s ON s.id = e.stream WHERE e.before <= 4194304 ORDER BY e.gseq";
static const char streams_sql[] =
    "SELECT id, name, trimmed FROM weft_stream WHERE id > $1::int8 AND trimmed > 0 ORDER BY id LIMIT 1000";
static const char documents_sql[] =
    "SELECT d.place, d.key, d.data FROM (SELECT p.*, sum(length(p.data)) OVER (ORDER BY p.place) - length(p.data) AS before"
    " FROM (SELECT * FROM weft_document WHERE place > $1::int8 ORDER BY place LIMIT 1000) p) d WHERE d.before <= 4194304"
    " ORDER BY d.place";

static int count_rows(copying_back *c) {
    weft_pg_conn *conn = &c->pg->write;
    PGresult *results[WEFT_PG_AHEAD];
    weft__pg_begin(conn);
    weft__pg_send(conn, "SELECT (SELECT count(*) FROM weft_event) + (SELECT count(*) FROM weft_document)", NULL);
    int r = weft__pg_run(conn, results);
    if (r < 0)
        return r;
    r = weft__pg_take_state(conn, results[1], &c->pg->state);
    c->of = (uint64_t) weft__pg_get_int(conn, results[2], 0, 0);
    weft__pg_clear(conn, results);
    return r;
}

static int copy_rows_back(copying_back *c) {
    weft_replica_state *state = weft__replica_state(c->to);
    int r = count_rows(c);
    if (r >= 0)
        r = weft__replica_begin(c->to);
    if (r < 0)
        return r;
    memcpy(state->epoch, c->pg->state.epoch, sizeof state->epoch);
    r = copy_all_of(c, events_sql, take_event);
    if (r >= 0)
        r = weft__replica_events_end(c->to, (uint64_t) c->pg->state.trimmed);
    if (r >= 0 && state->head != (uint64_t) c->pg->state.head)
        r = -EUCLEAN;
    if (r >= 0)
        r = copy_all_of(c, streams_sql, take_stream);
    if (r >= 0)
        r = copy_all_of(c, documents_sql, take_document);
    state->whole = true;
    memcpy(c->done.epoch, state->epoch, sizeof c->done.epoch);
    return r < 0 ? r : weft__replica_commit(c->to);
}

static void explain_back(const copying_back *c, int r, char *ret_why) {
    const char *why = c->to ? weft__replica_why(c->to) : "", *said = c->pg->write.why;
    if (!*ret_why)
        snprintf(ret_why, WEFT_STORE_WHY, "%s%.300s",
                 *why    ? "the journal in the database is not whole: "
                 : *said ? "the database says: "
                         : "",
                 *why    ? why
                 : *said ? said
                         : weft_strerror(r));
}

static void remove_beside(const char *path) {
    static const char *const ends[] = {"", "-wal", "-shm", "-mark"};
    char name[PATH_MAX];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (snprintf(name, sizeof name, "%s%s", path, ends[i]) < (int) sizeof name)
            unlink(name);
}

static int copy_to_file(copying_back *c, const weft_store_opts *to, char *ret_why) {
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof beside, "%s-copy", to->path) >= (int) sizeof beside)
        return -ENAMETOOLONG;
    remove_beside(beside);
    int r = weft__replica_open(to->alloc, beside, to->vfs, &c->to, ret_why);
    if (r < 0)
        return r;
    r = copy_rows_back(c);
    if (r < 0)
        explain_back(c, r, ret_why);
    if (r >= 0)
        r = weft__replica_keep(c->to, to->path, ret_why);
    else
        weft__replica_close(c->to);
    c->to = NULL;
    if (r < 0)
        remove_beside(beside);
    return r;
}

int weft__store_copy_back(const weft_store_opts *from, const weft_store_opts *to, weft_copy_progress progress,
                          weft_copied *ret, char *ret_why) {
    weft_store *source;
    ret_why[0] = '\0';
    if (weft__store_was_here(&weft__sqlite, to->path)) {
        snprintf(ret_why, WEFT_STORE_WHY, "there is a journal already at %.300s", to->path);
        return -EEXIST;
    }
    int r = weft__store_open(&weft__postgres, from, &source, ret_why);
    if (r < 0)
        return r;
    copying_back c = {.pg = (weft_pg *) (void *) source, .progress = progress};
    r = copy_to_file(&c, to, ret_why);
    if (r < 0)
        explain_back(&c, r, ret_why);
    weft__store_close(source);
    if (r >= 0)
        *ret = c.done;
    return r < 0 ? r : 0;
}

/* The reader's thread: one page at a time, each from one snapshot of the primary. It is handed over when all that the
 * snapshot can have seen is durable: a commit that still waits for its standbys may already be seen after the database was
 * restarted or somebody cancelled the wait, and would be gone after a failover. */
#include <errno.h>
#include <string.h>

#include "postgres_store.h"

#define MORE 1 /* rows of a page beyond its limit: there are more */

/* What a snapshot shows of the writer. */
typedef struct snapshot {
    weft_pg_state state;
    int64_t boot;
} snapshot;

static int fetch_snapshot(weft_pg *pg, const PGresult *result, snapshot *ret) {
    int r = weft__pg_take_state(&pg->read, result, &ret->state);
    if (r < 0)
        return r;
    ret->boot = weft__pg_get_int(&pg->read, result, 0, 10);
    /* A primary of another time, which does not know our writer's row, or another journal. */
    return ret->boot && strcmp(ret->state.epoch, pg->base.epoch) == 0 ? 0 : -ENOTCONN;
}

static void queue_snapshot(weft_pg *pg) {
    weft_pg_params id = {0};
    weft__pg_text(&id, pg->id);
    weft__pg_send_named(&pg->read, "begin", NULL);
    weft__pg_send_named(&pg->read, "state", &id);
}

/* Pages */

/* Whether an event may follow the position at. In a stream it is the next; over all, streams that were trimmed leave holes,
 * but none behind the last event that was ever removed. */
static bool may_follow(const weft_read_job *job, uint64_t at, const weft_event *event) {
    if (job->query.stream)
        return event->seq == at + 1;
    return event->gseq == at + 1 || (event->gseq > at && event->gseq - 1 <= job->page.trimmed);
}

static int add_rows(weft_pg *pg, weft_read_job *job, const PGresult *result, uint64_t at) {
    const weft_pg_conn *conn = &pg->read;
    for (int i = 0; i < weft__pg_rows(conn, result); i++) {
        weft_event event = weft__pg_take_event(conn, result, i);
        if (!may_follow(job, at, &event))
            return -EUCLEAN;
        int r = weft__page_add(job, &event);
        if (r <= 0)
            return r;
        at = job->page.last;
    }
    return 0;
}

static int64_t clamp(uint64_t position) {
    return position > INT64_MAX ? INT64_MAX : (int64_t) position;
}

static void queue_page(weft_pg *pg, const weft_query *query, uint64_t after, const char *stream) {
    weft_pg_params params = {0};
    weft__pg_int(&params, clamp(after));
    weft__pg_int(&params, (int64_t) query->max_events + MORE);
    weft__pg_int(&params, clamp(query->max_bytes));
    weft__pg_int(&params, query->until ? clamp(query->until) : INT64_MAX);
    if (stream)
        weft__pg_text(&params, stream);
    weft__pg_send_named(&pg->read, stream ? "page_of" : "page", &params);
}

/* A stream: where it ends, up to where it is trimmed, and the gseq of its first event; 0 where there is none. */
static void take_stream(const weft_pg_conn *conn, const PGresult *result, uint64_t *ret_head, uint64_t *ret_trimmed,
                        uint64_t *ret_first) {
    bool found = weft__pg_rows(conn, result) == 1;
    *ret_head = found ? (uint64_t) weft__pg_get_int(conn, result, 0, 1) : 0;
    *ret_trimmed = found ? (uint64_t) weft__pg_get_int(conn, result, 0, 2) : 0;
    *ret_first = found ? (uint64_t) weft__pg_get_int(conn, result, 0, 3) : 0;
}

static void queue_named(weft_pg *pg, const char *statement, const char *name) {
    weft_pg_params params = {0};
    weft__pg_text(&params, name);
    weft__pg_send_named(&pg->read, statement, &params);
}

static int run_snapshot(weft_pg *pg, PGresult *results[WEFT_PG_AHEAD], snapshot *ret) {
    weft__pg_send_named(&pg->read, "commit", NULL);
    int r = weft__pg_run(&pg->read, results);
    return r < 0 ? r : fetch_snapshot(pg, results[1], ret);
}

static int read_stream(weft_pg *pg, weft_read_job *job, snapshot *ret) {
    PGresult *results[WEFT_PG_AHEAD];
    const weft_query *query = &job->query;
    uint64_t head, trimmed, first;
    queue_snapshot(pg);
    queue_named(pg, "stream", query->stream);
    queue_page(pg, query, query->after, query->stream);
    int r = run_snapshot(pg, results, ret);
    if (r == 0) {
        take_stream(&pg->read, results[2], &head, &trimmed, &first);
        r = weft__page_begin(job, pg->base.epoch, head, trimmed, trimmed);
    }
    if (r == 0)
        r = add_rows(pg, job, results[3], query->after > trimmed ? query->after : trimmed);
    weft__pg_clear(&pg->read, results);
    return r;
}

/* A position before this one has missed something it asked for. Up to its first event something is gone from the stream that
 * is not set aside; which of its events went last is not known. */
static uint64_t gone_over_all(const weft_pg_conn *conn, const weft_query *query, const snapshot *seen, PGresult **results) {
    uint64_t trimmed = (uint64_t) seen->state.trimmed, all_head = (uint64_t) seen->state.head;
    if (!query->aside || !trimmed)
        return trimmed;
    uint64_t first = (uint64_t) weft__pg_get_int(conn, results[3], 0, 0), gone = first ? first - 1 : all_head, one = 0;
    if (query->but) {
        uint64_t head, cut, begins;
        take_stream(conn, results[4], &head, &cut, &begins);
        one = !cut ? 0 : begins ? begins - 1 : all_head;
    }
    gone = one > gone ? one : gone;
    /* Nothing after the last event that is gone from any stream is gone. */
    return gone < trimmed ? gone : trimmed;
}

static int read_all_streams(weft_pg *pg, weft_read_job *job, snapshot *ret) {
    PGresult *results[WEFT_PG_AHEAD];
    const weft_query *query = &job->query;
    queue_snapshot(pg);
    queue_page(pg, query, query->after, NULL);
    weft__pg_send_named(&pg->read, "first", NULL);
    if (query->but)
        queue_named(pg, "stream", query->but);
    int r = run_snapshot(pg, results, ret);
    if (r == 0)
        r = weft__page_begin(job, pg->base.epoch, (uint64_t) ret->state.head, (uint64_t) ret->state.trimmed,
                             gone_over_all(&pg->read, query, ret, results));
    if (r == 0)
        r = add_rows(pg, job, results[2], query->after);
    weft__pg_clear(&pg->read, results);
    return r;
}

static int add_documents(weft_pg *pg, weft_read_job *job, const PGresult *result) {
    const weft_pg_conn *conn = &pg->read;
    int r = 1;
    for (int i = 0; r > 0 && i < weft__pg_rows(conn, result); i++) {
        weft_event event = {
            .seq = (uint64_t) weft__pg_get_int(conn, result, i, 0),
            .stream = weft__pg_get_bytes(conn, result, i, 1).data,
            .type = "document",
            .data = weft__pg_get_bytes(conn, result, i, 2),
        };
        r = weft__page_add(job, &event);
    }
    return r < 0 ? r : 0;
}

static int read_documents(weft_pg *pg, weft_read_job *job, snapshot *ret) {
    PGresult *results[WEFT_PG_AHEAD];
    const weft_query *query = &job->query;
    weft_pg_params params = {0};
    queue_snapshot(pg);
    weft__pg_int(&params, clamp(query->after));
    if (query->stream) {
        weft__pg_text(&params, query->stream);
    } else {
        weft__pg_int(&params, (int64_t) query->max_events + MORE);
        weft__pg_int(&params, clamp(query->max_bytes));
    }
    weft__pg_send_named(&pg->read, query->stream ? "document" : "documents", &params);
    int r = run_snapshot(pg, results, ret);
    if (r == 0)
        r = weft__page_begin(job, pg->base.epoch, INT64_MAX, 0, 0);
    if (r == 0)
        r = add_documents(pg, job, results[2]);
    weft__pg_clear(&pg->read, results);
    return r;
}

/* What was read is durable */

/* Several writers: a commit on this connection waits for all before it. */
static int prove_snapshot(weft_pg *pg) {
    weft_pg_conn *conn = &pg->read;
    conn->warned = false;
    weft__pg_send_named(conn, "barrier", NULL);
    int r = weft__pg_do(conn);
    return r == 0 && conn->warned ? -ENOTCONN : r;
}

/* One writer: it says how far its commits have come. -ENOTCONN: the snapshot is of a connection of the writer that is over;
 * what it saw may not be there any more. */
static int await_settled(weft_pg *pg, const snapshot *seen) {
    weft_pg_settled settled;
    pthread_mutex_lock(&pg->lock);
    while (!pg->stopping && (pg->settled.boot < seen->boot ||
                             (!pg->shared && pg->settled.boot == seen->boot && pg->settled.writes < seen->state.writes)))
        pthread_cond_wait(&pg->changed, &pg->lock);
    settled = pg->settled;
    bool stopping = pg->stopping;
    pthread_mutex_unlock(&pg->lock);
    if (settled.boot != seen->boot)
        return stopping && settled.boot < seen->boot ? -ECANCELED : -ENOTCONN;
    if (settled.writes >= seen->state.writes)
        return 0;
    return !pg->shared ? -ECANCELED : pg->standbys ? prove_snapshot(pg) : 0;
}

static void empty_page(weft_read_job *job) {
    weft__arena_done(&job->arena);
    job->arena = (weft_arena){.alloc = job->arena.alloc};
    job->page = (weft_page){0};
    job->events = NULL;
    job->data_bytes = 0;
}

static int connect_reader(weft_pg *pg) {
    if (pg->read.pg)
        return 0;
    int r = weft__pg_session(pg, &pg->read, WEFT_PG_READS);
    if (r == 0)
        r = weft__pg_statements(&pg->read, WEFT_PG_READS);
    /* What a new connection is refused with says nothing about the page. */
    return r < 0 && r != -ECANCELED && r != -ENOMEM ? -ENOTCONN : r;
}

static int read_once(weft_pg *pg, weft_read_job *job) {
    snapshot seen = {0};
    int r = connect_reader(pg);
    if (r < 0)
        return r;
    empty_page(job);
    r = job->query.documents ? read_documents(pg, job, &seen)
        : job->query.stream  ? read_stream(pg, job, &seen)
                             : read_all_streams(pg, job, &seen);
    int proven = r >= 0 ? await_settled(pg, &seen) : 0;
    return proven < 0 ? proven : r;
}

static bool is_worth_trying(int r) {
    return r == -ENOTCONN || r == -EAGAIN || r == -EBUSY;
}

/* Until it is read: the database may be away for a while. */
static int read_surely(weft_pg *pg, weft_read_job *job) {
    int wait_ms = 0;
    for (;;) {
        int r = read_once(pg, job);
        if (r >= 0 || r == -EUCLEAN || r == -ENOMEM)
            return r;
        weft__pg_disconnect(&pg->read);
        if (!is_worth_trying(r))
            return r;
        if (weft__pg_pause(&pg->read, &wait_ms) < 0)
            return -ECANCELED;
    }
}

void *weft__pg_reader_main(void *ctx) {
    weft_pg *pg = ctx;
    weft_link jobs;
    while (weft__store_worker_take(&pg->reader, -1, 1, &jobs) > 0) {
        weft_job *job = WEFT_CONTAINER(jobs.next, weft_job, link);
        job->r = weft__store_worker_stopping(&pg->reader) ? -ECANCELED : read_surely(pg, (weft_read_job *) (void *) job);
        weft__completions_put(&pg->base.completions, &jobs);
    }
    weft__pg_disconnect(&pg->read);
    return NULL;
}

/* Trimming in the writer's transaction, a piece at a time: other jobs are committed between the pieces. */
#include <errno.h>
#include <string.h>

#include "postgres_store.h"

#define PIECE 1000 /* events removed in one transaction */

/* What is being trimmed, and how much there would be left. */
struct cut {
    int64_t rows, bytes;
    int64_t count, gone; /* events and bytes to go */
    int64_t gseq, seq;   /* of the last to go */
};

static bool is_too_much(const weft_trim *trim, const struct cut *cut, int64_t gseq) {
    if (trim->before && (uint64_t) gseq >= trim->before)
        return false;
    return (trim->rows && (uint64_t) cut->rows > trim->rows) || (trim->bytes && (uint64_t) cut->bytes > trim->bytes) ||
           (uint64_t) gseq <= trim->upto;
}

static void find_cut(const weft_pg_conn *conn, const weft_trim *trim, const PGresult *result, struct cut *cut) {
    for (int i = 0; i < weft__pg_rows(conn, result); i++) {
        int64_t gseq = weft__pg_get_int(conn, result, i, 0), bytes = weft__pg_get_int(conn, result, i, 2);
        if (!is_too_much(trim, cut, gseq))
            return;
        cut->gseq = gseq;
        cut->seq = weft__pg_get_int(conn, result, i, 1);
        cut->rows--;
        cut->bytes -= bytes;
        cut->gone += bytes;
        cut->count++;
    }
}

static void queue_cut(weft_pg *pg, bool of_stream, int64_t stream, const struct cut *cut) {
    weft_pg_params params = {0}, state = {0};
    if (of_stream)
        weft__pg_int(&params, stream);
    weft__pg_int(&params, of_stream ? cut->seq : cut->gseq);
    weft__pg_send_named(&pg->write, of_stream ? "cut_of" : "cut", &params);
    if (cut->gseq > pg->state.trimmed)
        pg->state.trimmed = cut->gseq;
    weft__pg_int(&state, pg->state.head);
    weft__pg_int(&state, -cut->count);
    weft__pg_int(&state, -cut->gone);
    weft__pg_int(&state, pg->state.streams);
    weft__pg_int(&state, pg->state.trimmed);
    weft__pg_send_named(&pg->write, "put_state", &state);
}

static int take_trim(weft_pg *pg, weft_trim_job *job, PGresult **results, bool *ret_more) {
    const weft_pg_conn *conn = &pg->write;
    char why[WEFT_STORE_WHY];
    const char *name = job->trim.stream;
    int r = weft__pg_take_state(conn, results[1], &pg->state);
    if (r == 0)
        r = weft__pg_check_state(pg, &pg->state, why);
    if (r == 0)
        r = weft__pg_gather_missed(pg);
    if (r < 0)
        return r;
    struct cut cut = {.rows = pg->state.rows, .bytes = pg->state.bytes};
    const PGresult *stream = results[2], *oldest = results[name ? 3 : 2];
    int64_t id = 0;
    if (name && weft__pg_rows(conn, stream) == 1) {
        id = weft__pg_get_int(conn, stream, 0, 0);
        cut.rows = weft__pg_get_int(conn, stream, 0, 1) - weft__pg_get_int(conn, stream, 0, 2);
        cut.bytes = weft__pg_get_int(conn, stream, 0, 3);
    }
    find_cut(conn, &job->trim, oldest, &cut);
    job->step = (uint64_t) cut.count;
    *ret_more = cut.count == PIECE;
    if (cut.count)
        queue_cut(pg, name, id, &cut);
    return 0;
}

int weft__pg_trim(weft_pg *pg, weft_trim_job *job, bool *ret_more) {
    weft_pg_conn *conn = &pg->write;
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params named = {0}, piece = {0};
    const char *name = job->trim.stream;
    job->step = 0;
    weft__pg_begin(conn);
    weft__pg_int(&piece, PIECE);
    if (name) {
        weft__pg_text(&named, name);
        weft__pg_send_named(conn, "stream", &named);
        weft__pg_text(&piece, name);
    }
    weft__pg_send_named(conn, name ? "oldest_of" : "oldest", &piece);
    int r = weft__pg_run(conn, results);
    if (r == 0)
        r = take_trim(pg, job, results, ret_more);
    weft__pg_clear(conn, results);
    return r;
}

/* The full check of a large database, on a thread of its own while the store already works: nobody waits for it. What is
 * read meanwhile is checked when it is read; this finds what nobody reads, and what an index hides. */
#include <errno.h>
#include <sched.h>

#include "sqlite_store.h"

#define STEPS_BETWEEN_LOOKS 100000 /* of SQLite's machine: some ms */

static int should_stop(void *ctx) {
    return atomic_load(&((weft_sq *) ctx)->check_stop);
}

/* From one snapshot, so that what is written meanwhile does not count. */
static int check_snapshot(weft_sq *sq, weft_sq_conn *conn) {
    char why[WEFT_STORE_WHY];
    weft_sq_state state;
    int r = weft__sq_connect_reader(sq, conn);
    if (r < 0)
        return r;
    sqlite3_progress_handler(conn->db, STEPS_BETWEEN_LOOKS, should_stop, sq);
    r = weft__sq_do(conn, WEFT_SQ_BEGIN);
    if (r >= 0)
        r = weft__sq_load_state(conn, &state);
    if (r > 0)
        r = weft__sq_check_pages(conn->db, why);
    return r < 0 ? r : weft__sq_check_events(conn, &state, why);
}

static void *checker_main(void *ctx) {
    weft_sq *sq = ctx;
    weft_sq_conn conn = {0};
    /* Only when nothing else wants the processor. Where that is not possible, it is not. */
    (void) pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){0});
    if (check_snapshot(sq, &conn) == -EUCLEAN && !atomic_load(&sq->check_stop))
        atomic_store(&sq->base.damaged, true);
    weft__sq_conn_done(&conn);
    return NULL;
}

void weft__sq_checker_start(weft_sq *sq) {
    sq->checking = pthread_create(&sq->checker, NULL, checker_main, sq) == 0;
}

void weft__sq_checker_join(weft_sq *sq) {
    if (sq->checking)
        pthread_join(sq->checker, NULL);
    sq->checking = false;
}

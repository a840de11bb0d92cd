/* The full check of a large database, on a thread of its own while the store already works: nobody waits for it. What is
 * read meanwhile is checked when it is read; this finds what nobody reads, and what an index hides. */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "sqlite_store.h"

#define STEPS_BETWEEN_LOOKS 100000             /* of SQLite's machine: some ms */
#define INTERRUPT_NS ((long) 10 * 1000 * 1000) /* between two attempts to interrupt it */

static int should_stop(void *ctx) {
    return atomic_load(&((weft_sq *) ctx)->check_stop);
}

static void show_connection(weft_sq *sq, sqlite3 *db) {
    pthread_mutex_lock(&sq->check_lock);
    sq->check_db = db;
    pthread_mutex_unlock(&sq->check_lock);
}

/* From one snapshot, so that what is written meanwhile does not count. */
static int check_snapshot(weft_sq *sq, weft_sq_conn *conn) {
    char why[WEFT_STORE_WHY];
    weft_sq_state state;
    int r = weft__sq_connect_reader(sq, conn);
    if (r < 0)
        return r;
    sqlite3_progress_handler(conn->db, STEPS_BETWEEN_LOOKS, should_stop, sq);
    show_connection(sq, conn->db);
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
    show_connection(sq, NULL);
    weft__sq_conn_done(&conn);
    return NULL;
}

void weft__sq_checker_start(weft_sq *sq) {
    if (pthread_mutex_init(&sq->check_lock, NULL) != 0)
        return;
    sq->checking = pthread_create(&sq->checker, NULL, checker_main, sq) == 0;
    if (!sq->checking)
        pthread_mutex_destroy(&sq->check_lock);
}

/* The check of all pages is one step of SQLite's machine, and takes seconds. An interruption that comes between two steps is
 * lost. */
static void interrupt_check(weft_sq *sq) {
    pthread_mutex_lock(&sq->check_lock);
    if (sq->check_db)
        sqlite3_interrupt(sq->check_db);
    pthread_mutex_unlock(&sq->check_lock);
}

static bool has_ended_soon(pthread_t thread) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += INTERRUPT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_timedjoin_np(thread, NULL, &until) != ETIMEDOUT;
}

/* Somebody waits for it now: where others keep the processor busy, an idle thread would not see for minutes that it should
 * stop. */
void weft__sq_checker_join(weft_sq *sq) {
    if (!sq->checking)
        return;
    (void) pthread_setschedparam(sq->checker, SCHED_OTHER, &(struct sched_param){0});
    do
        interrupt_check(sq);
    while (!has_ended_soon(sq->checker));
    pthread_mutex_destroy(&sq->check_lock);
    sq->checking = false;
}

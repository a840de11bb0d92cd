/* What other writers of the same journal wrote, for our followers. The listener's thread hears that there is something, the
 * writer's thread fetches it: so one place knows what followers were told of, and in which order. A notification is only a
 * hint; the writer also looks now and then. */
#include <errno.h>
#include <string.h>

#include "postgres_store.h"

#define PAGE_EVENTS WEFT_STORE_EVENTS /* as a delivery may have */
#define PAGE_BYTES (4 << 20)
#define MAX_PAGES 16 /* gathered at a time; followers read the rest themselves */

/* Without events: followers read up to upto. */
static int add_hole(weft_pg *pg, uint64_t upto) {
    weft_delivery *made = weft__zalloc(pg->base.alloc, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->job.type = WEFT_JOB_DELIVERY;
    made->upto = upto;
    weft__list_push(&pg->missed, &made->job.link);
    pg->seen = upto;
    return 0;
}

/* 1 there may be more, 0 that was all. */
static int add_page(weft_pg *pg, const PGresult *result) {
    const weft_pg_conn *conn = &pg->write;
    int rows = weft__pg_rows(conn, result);
    if (!rows)
        return 0;
    weft_event *events = weft__alloc(pg->base.alloc, (size_t) rows * sizeof *events);
    for (int i = 0; events && i < rows; i++)
        events[i] = weft__pg_take_event(conn, result, i);
    weft_delivery *made = events ? weft__delivery_new(pg->base.alloc, events, (size_t) rows) : NULL;
    weft__free(pg->base.alloc, events);
    if (!made)
        return add_hole(pg, (uint64_t) weft__pg_get_int(conn, result, rows - 1, 0)) < 0 ? -ENOMEM : 1;
    weft__list_push(&pg->missed, &made->job.link);
    pg->seen = made->upto;
    return 1;
}

static int gather_page(weft_pg *pg) {
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params params = {0};
    weft__pg_int(&params, (int64_t) pg->seen);
    weft__pg_int(&params, PAGE_EVENTS);
    weft__pg_int(&params, PAGE_BYTES);
    weft__pg_send_named(&pg->write, "missed", &params);
    int r = weft__pg_run(&pg->write, results);
    if (r == 0)
        r = add_page(pg, results[0]);
    weft__pg_clear(&pg->write, results);
    return r;
}

int weft__pg_gather_missed(weft_pg *pg) {
    uint64_t head = (uint64_t) pg->state.head;
    int r = 1;
    for (int pages = 0; r > 0 && pages < MAX_PAGES && pg->seen < head; pages++)
        r = gather_page(pg);
    /* There are many, or the last of them are trimmed already. */
    return r < 0 ? r : pg->seen < head ? add_hole(pg, head) : 0;
}

/* A page may have been committed without waiting for the standbys; this commit waits. */
static int prove_durable(weft_pg *pg) {
    weft_pg_conn *conn = &pg->write;
    conn->warned = false;
    weft__pg_send_named(conn, "barrier", NULL);
    int r = weft__pg_do(conn);
    return r == 0 && conn->warned ? -EAGAIN : r;
}

int weft__pg_look_for_missed(weft_pg *pg) {
    int r = 1;
    for (int pages = 0; r > 0 && pages < MAX_PAGES; pages++)
        r = gather_page(pg);
    return r >= 0 && pg->standbys && !weft__list_empty(&pg->missed) ? prove_durable(pg) : r;
}

void weft__pg_drop_missed(weft_pg *pg) {
    while (!weft__list_empty(&pg->missed)) {
        weft_delivery *old = WEFT_CONTAINER(pg->missed.next, weft_delivery, job.link);
        weft__list_remove(&old->job.link);
        weft__free(pg->base.alloc, old);
    }
}

/* The listener */

static int listen_to(weft_pg *pg) {
    char channel[32], sql[64];
    weft_pg_conn *conn = &pg->listen;
    int r = weft__pg_session(pg, conn, WEFT_PG_LISTENS);
    if (r < 0)
        return r;
    weft__pg_channel(pg, channel);
    memcpy(sql, "LISTEN ", sizeof "LISTEN ");
    memcpy(sql + strlen(sql), channel, strlen(channel) + 1);
    weft__pg_send(conn, sql, NULL);
    return weft__pg_do(conn);
}

void *weft__pg_listener_main(void *ctx) {
    weft_pg *pg = ctx;
    int wait_ms = 0;
    for (;;) {
        int r = pg->listen.pg ? weft__pg_listen(&pg->listen, -1) : listen_to(pg);
        if (r == -ECANCELED)
            break;
        if (r >= 0) {
            wait_ms = 0;
            weft__store_worker_poke(&pg->writer);
            continue;
        }
        weft__pg_disconnect(&pg->listen);
        if (weft__pg_pause(&pg->listen, &wait_ms) < 0)
            break;
    }
    weft__pg_disconnect(&pg->listen);
    return NULL;
}

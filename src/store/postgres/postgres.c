/* The PostgreSQL store: opening, closing, and handing jobs to the threads. See postgres_store.h for the parts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "lead.h"
#include "postgres_store.h"

#define GRACE_MS 10000 /* how long closing waits for a database that does not answer */
#define OPEN_MS 15000  /* and how long opening does; also for a standby */
#define BUSY_MS 5000   /* how long it waits for a session that had the journal and whose end the database has not noticed */

static void init_conn(weft_pg *pg, weft_pg_conn *conn, int64_t grace_ms) {
    *conn = (weft_pg_conn){.lib = &pg->lib, .stop = pg->stop, .grace_ms = grace_ms};
}

static int init_hub(weft_pg *pg, const weft_store_hub *hub) {
    if (!hub)
        return 0;
    pg->base.lease_ms = hub->lease_ms;
    pg->hub = hub;
    pg->place = weft__strndup(pg->base.alloc, hub->place, strlen(hub->place));
    pg->name = weft__strndup(pg->base.alloc, hub->name, strlen(hub->name));
    pg->reach = weft__strndup(pg->base.alloc, hub->reach, strlen(hub->reach));
    return pg->place && pg->name && pg->reach ? 0 : -ENOMEM;
}

static int init_base(weft_pg *pg, const weft_store_opts *opts) {
    pg->base.alloc = pg->streams.alloc = opts->alloc;
    pg->shared = opts->shared;
    pg->standbys = opts->standbys;
    pg->streams_at = -1;
    snprintf(pg->expect, sizeof pg->expect, "%s", opts->expect ? opts->expect : "");
    weft__list_init(&pg->missed);
    int r = init_hub(pg, opts->hub);
    if (r < 0)
        return r;
    pg->url = weft__strndup(opts->alloc, opts->url, strlen(opts->url));
    return pg->url ? weft__epoch_new(pg->id) : -ENOMEM;
}

static int init_sync(weft_pg *pg, const weft_store_hub *hub) {
    pg->stop = hub ? fcntl(hub->stop, F_DUPFD_CLOEXEC, 0) : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pg->stop < 0)
        return -errno;
    pthread_mutex_init(&pg->lock, NULL);
    pthread_cond_init(&pg->changed, NULL);
    int r = weft__completions_init(&pg->base.completions);
    if (r == 0)
        return 0;
    pthread_cond_destroy(&pg->changed);
    pthread_mutex_destroy(&pg->lock);
    close(pg->stop);
    return r;
}

static void done_sync(weft_pg *pg) {
    weft__completions_done(&pg->base.completions);
    pthread_cond_destroy(&pg->changed);
    pthread_mutex_destroy(&pg->lock);
    close(pg->stop);
}

static void done_base(weft_pg *pg) {
    weft__pg_forget_streams(pg);
    weft__map_done(&pg->streams);
    for (int i = 0; i < WEFT_PG_ARRAYS; i++)
        weft__buf_done(&pg->arrays[i].bytes, pg->base.alloc);
    weft__pg_lib_done(&pg->lib);
    weft__free(pg->base.alloc, pg->place);
    weft__free(pg->base.alloc, pg->name);
    weft__free(pg->base.alloc, pg->reach);
    weft__free(pg->base.alloc, pg->url);
}

/* A hub that was killed leaves a session, which the database ends when it notices. One of several hubs has other things to
 * do meanwhile. */
static int claim_first(weft_pg *pg, char *ret_why) {
    int64_t busy_ns = weft__clock_ns() + (pg->place ? 0 : (int64_t) BUSY_MS * 1000000);
    int r, wait_ms = 0;
    bool stored;
    do
        r = weft__pg_claim(pg, true, &stored, ret_why);
    while (r == -EBUSY && weft__clock_ns() < busy_ns && weft__pg_pause(&pg->write, &wait_ms) == 0);
    return r;
}

/* Whatever the database said has no password in it; the URL may, and is not shown. */
static void explain_open(const weft_pg *pg, int r, char *ret_why) {
    if (*ret_why)
        return;
    const char *said = pg->write.why;
    if (r == -ENOPKG)
        snprintf(ret_why, WEFT_STORE_WHY, "the library libpq.so.5 is not installed (on Debian: apt install libpq5)");
    else if (r == -EBUSY)
        snprintf(ret_why, WEFT_STORE_WHY, "the journal is in use by another hub");
    else if (r == -ETIMEDOUT)
        snprintf(ret_why, WEFT_STORE_WHY,
                 "the database did not answer in %d seconds. If it waits for a standby, start that first", OPEN_MS / 1000);
    else if (r == -ENOENT)
        snprintf(ret_why, WEFT_STORE_WHY, "the database has no schema for the journal: see search_path");
    else if (*said)
        snprintf(ret_why, WEFT_STORE_WHY, "the database says: %s", said);
    else
        snprintf(ret_why, WEFT_STORE_WHY, "%s", weft_strerror(r));
}

static int start_listener(weft_pg *pg) {
    if (!pg->shared)
        return 0;
    int r = pthread_create(&pg->listener, NULL, weft__pg_listener_main, pg);
    pg->listening = r == 0;
    return -r;
}

static void tell_to_stop(weft_pg *pg) {
    (void) eventfd_write(pg->stop, 1);
}

static void stop_waiting(weft_pg *pg) {
    pthread_mutex_lock(&pg->lock);
    pg->stopping = true;
    pthread_mutex_unlock(&pg->lock);
    pthread_cond_broadcast(&pg->changed);
}

/* The reader last: a page it holds may wait for the writer. */
static void stop_threads(weft_pg *pg) {
    tell_to_stop(pg);
    if (pg->listening)
        pthread_join(pg->listener, NULL);
    weft__store_worker_stop(&pg->writer);
    stop_waiting(pg);
    weft__store_worker_stop(&pg->reader);
}

static int start_threads(weft_pg *pg) {
    int r = weft__store_worker_start(&pg->reader, weft__pg_reader_main, pg);
    if (r < 0)
        return r;
    r = weft__store_worker_start(&pg->writer, weft__pg_writer_main, pg);
    if (r < 0) {
        weft__store_worker_stop(&pg->reader);
        return r;
    }
    r = start_listener(pg);
    if (r < 0)
        stop_threads(pg);
    return r;
}

static int open_claimed(weft_pg *pg, char *ret_why) {
    init_conn(pg, &pg->write, GRACE_MS);
    init_conn(pg, &pg->read, 0);
    init_conn(pg, &pg->listen, 0);
    pg->write.deadline_ns = weft__clock_ns() + (int64_t) OPEN_MS * 1000000;
    int r = claim_first(pg, ret_why);
    pg->write.deadline_ns = 0;
    if (r == 0)
        r = weft__pg_wait_out(pg, ret_why);
    if (r < 0)
        return r;
    pg->base.told = pg->seen;
    r = start_threads(pg);
    if (r < 0)
        weft__pg_disconnect(&pg->write);
    return r;
}

static int open_loaded(weft_pg *pg, const weft_store_hub *hub, char *ret_why) {
    int r = init_sync(pg, hub);
    if (r < 0)
        return r;
    r = open_claimed(pg, ret_why);
    if (r < 0)
        done_sync(pg);
    return r;
}

static int open_postgres(const weft_store_opts *opts, weft_store **ret, char *ret_why) {
    if (!opts->url || !*opts->url) {
        snprintf(ret_why, WEFT_STORE_WHY, "store.url says where the database is, and there is none");
        return -EINVAL;
    }
    weft_pg *pg = weft__zalloc(opts->alloc, sizeof *pg);
    if (!pg)
        return -ENOMEM;
    int r = init_base(pg, opts);
    if (r >= 0)
        r = weft__pg_lib_load(&pg->lib);
    if (r >= 0)
        r = open_loaded(pg, opts->hub, ret_why);
    if (r < 0) {
        explain_open(pg, r, ret_why);
        done_base(pg);
        weft__free(opts->alloc, pg);
        return r;
    }
    pg->hub = NULL;
    *ret = &pg->base;
    return 0;
}

static void give_append(weft_store *store, weft_append_job *job) {
    weft__store_worker_give(&((weft_pg *) (void *) store)->writer, &job->job, store->more);
}

static void give_read(weft_store *store, weft_read_job *job) {
    weft__store_worker_give(&((weft_pg *) (void *) store)->reader, &job->job, false);
}

static void give_trim(weft_store *store, weft_trim_job *job) {
    weft__store_worker_give(&((weft_pg *) (void *) store)->writer, &job->job, false);
}

static void close_postgres(weft_store *store) {
    weft_pg *pg = (weft_pg *) (void *) store;
    stop_threads(pg);
    if (pg->write.pg && !pg->shared && (!pg->place || store->resigned))
        weft__pg_sign_off(pg);
    weft__pg_disconnect(&pg->write);
}

static int set_reach(weft_store *store, const char *reach) {
    weft_pg *pg = (weft_pg *) (void *) store;
    char *copy = weft__strndup(store->alloc, reach, strlen(reach));
    if (!copy)
        return -ENOMEM;
    pthread_mutex_lock(&pg->lock);
    weft__free(store->alloc, pg->reach);
    pg->reach = copy;
    pthread_mutex_unlock(&pg->lock);
    atomic_store(&pg->told_anew, true);
    weft__store_worker_poke(&pg->writer);
    return 0;
}

static void free_postgres(weft_store *store) {
    weft_pg *pg = (weft_pg *) (void *) store;
    done_sync(pg);
    done_base(pg);
    weft__free(store->alloc, pg);
}

#define TESTED 15 /* the version that the tests run on, and older ones may lack something */

/* The writer's connection is there, and its thread has nothing to do yet. */
static int tell_about(const weft_store *store, char *ret, size_t size) {
    weft_pg *pg = (weft_pg *) (void *) (uintptr_t) store;
    PGresult *results[WEFT_PG_AHEAD];
    weft__pg_send(&pg->write,
                  "SELECT current_setting('server_version_num')::int8, current_setting('synchronous_standby_names'),"
                  " (SELECT count(*) FROM pg_stat_replication)",
                  NULL);
    int r = weft__pg_run(&pg->write, results);
    if (r < 0)
        return r;
    int64_t version = weft__pg_get_int(&pg->write, results[0], 0, 0), there = weft__pg_get_int(&pg->write, results[0], 0, 2);
    int waits = weft__pg_count_standbys(weft__pg_get_bytes(&pg->write, results[0], 0, 1).data);
    int n = snprintf(ret, size, "version %lld.%lld, ", (long long) version / 10000, (long long) version % 10000);
    if (n > 0 && (size_t) n < size)
        snprintf(ret + n, size - (size_t) n,
                 waits ? "commits wait for %d standby%s (%lld connected)" : "commits wait for no standby", waits,
                 waits == 1 ? "" : "s", (long long) there);
    weft__pg_clear(&pg->write, results);
    return version / 10000 < TESTED;
}

static const char *const no_files[] = {NULL};

const weft_store_kind weft__postgres = {
    .name = "postgres",
    .files = no_files,
    .open = open_postgres,
    .append = give_append,
    .read = give_read,
    .trim = give_trim,
    .close = close_postgres,
    .free = free_postgres,
    .reach = set_reach,
    .about = tell_about,
};

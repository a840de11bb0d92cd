/* The writer's thread: it takes what has come, commits it as one transaction, hands it back, and looks again. What it cannot
 * commit because the database is away, or does not wait for its standbys, it keeps and tries again; nothing of that is
 * acknowledged meanwhile, and nothing is stored twice. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "clock.h"
#include "postgres_store.h"

#define GROUP_BYTES ((size_t) 4 << 20) /* of jobs taken at a time */
#define GROUP_JOBS 1000                /* in one transaction; keys are compared with each other */
#define LOOK_MS 1000                   /* between two looks for what others wrote */
#define PAUSE_MS 10                    /* before the first of several attempts to connect, then twice as much up to */
#define MAX_PAUSE_MS 2000

int weft__pg_pause(weft_pg_conn *conn, int *wait_ms) {
    *wait_ms = *wait_ms ? *wait_ms * 2 : PAUSE_MS;
    if (*wait_ms > MAX_PAUSE_MS)
        *wait_ms = MAX_PAUSE_MS;
    struct pollfd stop = {.fd = conn->stop, .events = POLLIN};
    int64_t now_ns = weft__clock_ns();
    if (conn->deadline_ns && conn->deadline_ns <= now_ns)
        return -ECANCELED;
    if (poll(&stop, 1, *wait_ms) != 1)
        return 0;
    if (!conn->grace_ms)
        return -ECANCELED;
    conn->deadline_ns = now_ns + conn->grace_ms * 1000000;
    conn->stop = -1;
    return 0;
}

/* What passes by itself, or with somebody's help, and what does not. */
static bool may_pass(int r) {
    return r == -ENOTCONN || r == -EAGAIN || r == -ENOLINK || r == -EBUSY;
}

/* What a new connection is refused with says nothing about the jobs: a server that is just being promoted says many things.
 */
int weft__pg_claim_again(weft_pg *pg, bool *ret_stored) {
    char why[WEFT_STORE_WHY];
    int r = weft__pg_claim(pg, false, ret_stored, why);
    bool passes = r < 0 && r != -ESTALE && r != -ECANCELED && r != -ETIMEDOUT && r != -ENOMEM;
    return passes && !may_pass(r) ? -ENOTCONN : r;
}

void weft__pg_say_trouble(weft_pg *pg, int r) {
    int trouble = r == 0 ? 0 : may_pass(r) ? -ENOTCONN : r;
    if (atomic_load(&pg->base.trouble) != -ESTALE)
        atomic_store(&pg->base.trouble, trouble);
}

/* One transaction */

/* Everything that is queued, and the end of it. Once it is sent, only the database knows. */
static int commit_turn(weft_pg *pg) {
    weft_pg_conn *conn = &pg->write;
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params turn = {0}, note = {0};
    char channel[32];
    pg->turn_ms = weft__lease_now();
    weft__pg_text(&turn, pg->id);
    weft__pg_int(&turn, pg->boot);
    weft__pg_int(&turn, pg->turn + 1);
    weft__pg_send_named(conn, "put_turn", &turn);
    weft__pg_channel(pg, channel);
    weft__pg_text(&note, channel);
    if (pg->shared)
        weft__pg_send_named(conn, "notify", &note);
    weft__pg_send_named(conn, "commit", NULL);
    weft__pg_send_named(conn, "standbys", NULL);
    conn->warned = false;
    pg->doubt = true;
    int last = conn->queued - 1, r = weft__pg_run(conn, results);
    if (r < 0) {
        /* The connection lives and says no: then it was not committed. */
        pg->doubt = r == -ENOTCONN || r == -ETIMEDOUT || r == -ECANCELED;
        return r;
    }
    int standbys = weft__pg_count_standbys(weft__pg_get_bytes(conn, results[last], 0, 0).data);
    weft__pg_clear(conn, results);
    return conn->warned ? -ENOTCONN : standbys < pg->standbys ? -ENOLINK : 0;
}

static bool is_trim(const weft_link *jobs) {
    return WEFT_CONTAINER(jobs->next, weft_job, link)->type == WEFT_JOB_TRIM;
}

static weft_trim_job *trim_of(const weft_link *jobs) {
    return (weft_trim_job *) (void *) WEFT_CONTAINER(jobs->next, weft_job, link);
}

static int store_batch(weft_pg *pg, weft_link *jobs, bool *ret_more) {
    int64_t writes = 0;
    int r;
    if (is_trim(jobs)) {
        r = weft__pg_trim(pg, trim_of(jobs), ret_more);
        writes = trim_of(jobs)->step ? 1 : 0;
    } else {
        r = weft__pg_look(pg, jobs);
        if (r >= 0)
            r = weft__pg_put(pg, jobs);
        writes = 1;
    }
    if (r >= 0)
        r = commit_turn(pg);
    pg->state.writes += writes;
    return r < 0 ? r : 0;
}

/* It is durable, and everybody may see it. */
static void batch_is_stored(weft_pg *pg) {
    atomic_store(&pg->base.confirmed_ms, pg->turn_ms);
    pg->turn++;
    pg->doubt = false;
    pg->streams_at = pg->state.writes;
    pg->seen = (uint64_t) pg->state.head;
}

/* After a failure nothing is known any more of what the transaction was about to change. */
void weft__pg_lost(weft_pg *pg, int r, uint64_t seen) {
    weft__pg_forget_streams(pg);
    weft__pg_drop_missed(pg);
    pg->seen = seen;
    if (may_pass(r) || pg->doubt || r == -ECANCELED || r == -ETIMEDOUT) {
        weft__pg_disconnect(&pg->write);
        return;
    }
    /* What was queued behind the failure goes first. */
    weft__pg_send_named(&pg->write, "rollback", NULL);
    if (weft__pg_do(&pg->write) < 0)
        weft__pg_disconnect(&pg->write);
}

/* The last place of what these jobs stored. */
static uint64_t last_of(const weft_link *jobs, uint64_t last) {
    for (const weft_link *link = jobs->next; !is_trim(jobs) && link != jobs; link = link->next) {
        const weft_append_job *job = (const weft_append_job *) (void *) WEFT_CONTAINER(link, weft_job, link);
        if (job->job.r >= 0 && !job->repeat && job->count)
            last = job->events[job->count - 1].gseq;
    }
    return last;
}

/* While it may be stored, there is no saying that it is not. */
static bool try_again(const weft_pg *pg, int r) {
    bool over = r == -ESTALE || r == -ECANCELED || r == -ETIMEDOUT;
    return may_pass(r) || (pg->doubt && !over);
}

/* Until it is stored or cannot be. A batch that was in doubt and turns out to be stored has its places already. */
static int store_surely(weft_pg *pg, weft_link *jobs, bool *ret_more) {
    int wait_ms = 0;
    for (;;) {
        uint64_t seen = pg->seen;
        bool stored = false;
        int r = atomic_load(&pg->base.trouble) == -ESTALE ? -ESTALE : 0;
        if (r == 0 && !pg->write.pg)
            r = weft__pg_claim_again(pg, &stored);
        if (r == 0 && !stored) {
            r = store_batch(pg, jobs, ret_more);
            if (r == 0)
                batch_is_stored(pg);
        }
        if (r == 0 && stored)
            pg->seen = last_of(jobs, pg->seen);
        weft__pg_say_trouble(pg, r == -ESTALE || may_pass(r) ? r : 0);
        if (r == 0)
            return 0;
        if (pg->write.pg)
            weft__pg_lost(pg, r, seen);
        if (!try_again(pg, r))
            return r;
        if (weft__pg_pause(&pg->write, &wait_ms) < 0)
            return -ECANCELED;
    }
}

/* Batches */

static bool have_same_key(const weft_link *jobs, const char *key) {
    for (const weft_link *link = jobs->next; key && link != jobs; link = link->next) {
        const weft_append_job *job = (const weft_append_job *) (void *) WEFT_CONTAINER(link, weft_job, link);
        if (job->key && strcmp(job->key, key) == 0)
            return true;
    }
    return false;
}

/* May it be stored together with those before it? A repeat of one of them must find that one; a trim, and an append that
 * takes content out, look at what is stored. */
static bool may_join(const weft_link *batch, const weft_job *job, int count) {
    const weft_append_job *append = (const weft_append_job *) (const void *) job;
    if (weft__list_empty(batch))
        return true;
    if (job->type != WEFT_JOB_APPEND || is_trim(batch) || count >= GROUP_JOBS)
        return false;
    const weft_append_job *first = (const weft_append_job *) (void *) WEFT_CONTAINER(batch->next, weft_job, link);
    return !append->removal_count && !first->removal_count && !have_same_key(batch, append->key);
}

static int take_batch(weft_link *jobs, weft_link *batch) {
    int count = 0;
    weft__list_init(batch);
    while (!weft__list_empty(jobs) && may_join(batch, WEFT_CONTAINER(jobs->next, weft_job, link), count)) {
        weft_link *link = jobs->next;
        weft__list_remove(link);
        weft__list_push(batch, link);
        count++;
    }
    return count;
}

static void hand_in_missed(weft_pg *pg, weft_link *done) {
    while (!weft__list_empty(&pg->missed)) {
        weft_link *link = pg->missed.next;
        weft__list_remove(link);
        weft__list_push(done, link);
    }
}

static void hand_in_batch(weft_pg *pg, weft_link *batch, int r) {
    weft_link done;
    weft__list_init(&done);
    hand_in_missed(pg, &done);
    while (!weft__list_empty(batch)) {
        weft_job *job = WEFT_CONTAINER(batch->next, weft_job, link);
        weft__list_remove(&job->link);
        if (r < 0)
            job->r = r;
        if (job->type == WEFT_JOB_APPEND)
            weft__append_done((weft_append_job *) (void *) job, &done);
        else
            weft__list_push(&done, &job->link);
    }
    weft__completions_put(&pg->base.completions, &done);
}

/* A trim that has more to do goes behind what has come meanwhile. */
static bool goes_on(weft_pg *pg, weft_link *batch, int r, bool more) {
    weft_trim_job *job = trim_of(batch);
    if (r < 0)
        return false;
    job->removed += job->step;
    if (!more)
        return false;
    if (weft__store_worker_stopping(&pg->writer)) {
        job->job.r = -ECANCELED;
        return false;
    }
    weft__list_remove(&job->job.link);
    weft__store_worker_give(&pg->writer, &job->job, false);
    return true;
}

static void run_batch(weft_pg *pg, weft_link *batch, int count) {
    int64_t began_ns = weft__clock_ns();
    bool more = false, trim = is_trim(batch);
    int r = pg->given_up ? -ECANCELED : store_surely(pg, batch, &more);
    pg->given_up |= r == -ECANCELED || r == -ETIMEDOUT;
    if (r == 0)
        weft__completions_note(&pg->base.completions, (uint64_t) (weft__clock_ns() - began_ns) / 1000,
                               trim ? 0 : (uint64_t) count);
    if (trim)
        (void) goes_on(pg, batch, r, more);
    hand_in_batch(pg, batch, r);
    /* After the completions: a page that waits for this comes behind them. */
    if (r == 0)
        weft__pg_settle(pg);
}

/* Looking at what others wrote */

static void catch_up(weft_pg *pg) {
    weft_link done;
    bool stored;
    uint64_t seen = pg->seen;
    int r = pg->write.pg ? 0 : weft__pg_claim_again(pg, &stored);
    if (r == 0)
        r = weft__pg_look_for_missed(pg);
    weft__pg_say_trouble(pg, r == -ESTALE || may_pass(r) ? r : 0);
    if (r < 0) {
        if (pg->write.pg)
            weft__pg_lost(pg, r, seen);
        return;
    }
    weft__list_init(&done);
    hand_in_missed(pg, &done);
    weft__completions_put(&pg->base.completions, &done);
}

void *weft__pg_writer_main(void *ctx) {
    weft_pg *pg = ctx;
    weft_link jobs, batch;
    int r;
    while ((r = weft__store_worker_take(&pg->writer, pg->shared ? LOOK_MS : weft__pg_confirm_wait(pg), GROUP_BYTES,
                                        &jobs)) >= 0) {
        weft__pg_confirm(pg);
        if (r == 0 && pg->shared)
            catch_up(pg);
        while (!weft__list_empty(&jobs)) {
            int count = take_batch(&jobs, &batch);
            run_batch(pg, &batch, count);
        }
    }
    return NULL;
}

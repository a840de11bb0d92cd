/* The writer's thread: it takes what has come, commits it as one transaction, hands it back, and looks again. It never waits
 * for company: what arrives during the sync of one group is the next. It also copies the log back into the database, when
 * there is nothing else to do and when the log has grown. */
#include <errno.h>
#include <unistd.h>

#include "clock.h"
#include "sqlite_store.h"

#define GROUP_BYTES ((size_t) 4 << 20) /* of jobs in one transaction: bounds the wait of those behind */
#define IDLE_MS 500                    /* without work before it is copied back anyway */
#define MAX_STREAMS 65536              /* remembered by the writer; some 10 MiB */

static int apply_trim(weft_sq *sq, weft_trim_job *job) {
    int r = weft__sq_put_rows(sq, &job->job.link);
    return job->job.r = r < 0 ? r : weft__sq_trim(sq, job);
}

static int apply_job(weft_sq *sq, weft_job *job) {
    void *whole = job; /* every job begins with this */
    switch (job->type) {
    case WEFT_JOB_APPEND:
        return weft__sq_append(sq, whole);
    case WEFT_JOB_TRIM:
        return apply_trim(sq, whole);
    case WEFT_JOB_READ:
    case WEFT_JOB_DELIVERY:
        break;
    }
    return job->r = -EINVAL;
}

static int forget_streams(weft_sq *sq) {
    if (sq->stream_count <= MAX_STREAMS)
        return 0;
    int r = weft__sq_streams_save(sq);
    if (r >= 0)
        weft__sq_streams_drop(sq);
    return r;
}

static uint64_t count_appends(const weft_link *jobs) {
    uint64_t count = 0;
    for (const weft_link *link = jobs->next; link != jobs; link = link->next)
        count += WEFT_CONTAINER(link, weft_job, link)->type == WEFT_JOB_APPEND;
    return count;
}

/* It waits for the disk, and that is worth knowing. */
static int commit_measured(weft_sq *sq, const weft_link *jobs) {
    int64_t began_ns = weft__clock_ns();
    int r = weft__sq_do(&sq->write, WEFT_SQ_COMMIT);
    if (r >= 0)
        weft__completions_note(&sq->base.completions, (uint64_t) (weft__clock_ns() - began_ns) / 1000, count_appends(jobs));
    return r;
}

/* A statement that has not come to its end keeps SQLite in a reading transaction, and with it the lock of a reader, which
 * takes four system calls to take and to leave. It only saves time: where it fails it is done without. */
static void stay(weft_sq *sq) {
    int r;
    sqlite3_stmt *row = sq->stays ? NULL : weft__sq_prepare(&sq->write, WEFT_SQ_STAY, &r);
    if (!row)
        return;
    sq->stays = weft__sq_step(row) > 0;
    if (!sq->stays)
        sqlite3_reset(row);
}

void weft__sq_leave(weft_sq *sq) {
    if (sq->stays)
        sqlite3_reset(sq->write.statements[WEFT_SQ_STAY]);
    sq->stays = false;
}

/* Whoever has seen an older state than that of somebody else's transaction may not write. So soon after our own the time of
 * change has not told us of it. Who looks anew sees it without a word. */
static int begin_group(weft_sq *sq) {
    int r = weft__sq_do(&sq->write, WEFT_SQ_BEGIN_GROUP);
    if (r == -EBUSY && sq->stays && sqlite3_extended_errcode(sq->write.db) == SQLITE_BUSY_SNAPSHOT) {
        r = weft__sq_files_check(sq);
        if (r >= 0)
            r = weft__sq_do(&sq->write, WEFT_SQ_BEGIN_GROUP);
    }
    if (r >= 0 && !sq->stays)
        r = weft__sq_files_head(sq);
    if (r >= 0)
        stay(sq);
    else if (r != -EBUSY)
        weft__sq_leave(sq);
    return r;
}

static void roll_back(weft_sq *sq) {
    if (!sqlite3_get_autocommit(sq->write.db))
        weft__sq_do(&sq->write, WEFT_SQ_ROLLBACK);
}

static int apply_all(weft_sq *sq, weft_link *jobs) {
    int r = forget_streams(sq);
    weft__sq_rows_begin(sq, jobs);
    for (weft_link *link = jobs->next; r >= 0 && link != jobs; link = link->next)
        r = apply_job(sq, WEFT_CONTAINER(link, weft_job, link));
    if (r >= 0)
        r = weft__sq_put_rows(sq, jobs);
    if (r >= 0)
        r = weft__sq_keys_move(sq, false);
    return r < 0 ? r : commit_measured(sq, jobs);
}

/* One transaction. After a failure everything is as before it, in the database and in memory. */
static int commit_group(weft_sq *sq, weft_link *jobs) {
    weft_sq_state before = sq->state;
    int r = weft__sq_files_before(sq);
    if (r < 0)
        return r;
    weft__sq_log_room(sq);
    r = begin_group(sq);
    if (r < 0) {
        roll_back(sq);
        return r;
    }
    r = apply_all(sq, jobs);
    if (r < 0) {
        weft__sq_leave(sq);
        roll_back(sq);
        weft__sq_streams_drop(sq);
        weft__sq_keys_drop(sq);
        sq->state = before;
        return r;
    }
    r = weft__sq_files_after(sq, true);
    if (r < 0)
        return r;
    /* A mark that cannot be written is an older one, which proves less; the events are durable all the same. */
    if (sq->state.head != before.head)
        (void) weft__sq_mark_write(sq->mark, sq->base.epoch, (uint64_t) sq->state.head);
    return 0;
}

/* The outcome of a group, job by job. Trims that have more to do go back into the queue. */
static void settle_group(weft_sq *sq, weft_link *jobs, int r) {
    for (weft_link *link = jobs->next; link != jobs;) {
        weft_job *job = WEFT_CONTAINER(link, weft_job, link);
        link = link->next;
        if (r < 0)
            job->r = r;
        if (job->type != WEFT_JOB_TRIM || r < 0)
            continue;
        weft_trim_job *trim = (weft_trim_job *) (void *) job;
        trim->removed += trim->step;
        trim->cut = trim->piece;
        if (job->r > 0 && weft__store_worker_stopping(&sq->writer))
            job->r = -ECANCELED;
        if (job->r > 0) {
            weft__list_remove(&job->link);
            weft__store_worker_give(&sq->writer, job, false);
        }
    }
}

static void copy_log(weft_sq *sq) {
    int pages = sq->log_pages, copied = 0;
    sq->log_pages_copied = sq->log_pages;
    weft__sq_leave(sq); /* what is read is not written over, nor is the log begun anew */
    if (weft__sq_files_before(sq) < 0)
        return; /* nothing is copied into somebody else's file */
    int rc = sqlite3_wal_checkpoint_v2(sq->write.db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
    /* What could not be copied, because of a reader or the disk, is left to the next time. */
    if (rc == SQLITE_OK && copied > 0)
        sq->log_pages_copied = copied;
    (void) weft__sq_files_after(sq, false);
    /* Now and then, so that a crash of the machine leaves a mark that is not much older. */
    (void) fdatasync(sq->mark);
}

/* Each append behind the delivery of what it stored. */
static void hand_in_group(weft_sq *sq, weft_link *jobs) {
    weft_link done;
    weft__list_init(&done);
    while (!weft__list_empty(jobs)) {
        weft_job *job = WEFT_CONTAINER(jobs->next, weft_job, link);
        weft__list_remove(&job->link);
        if (job->type == WEFT_JOB_APPEND)
            weft__append_done((weft_append_job *) (void *) job, &done);
        else
            weft__list_push(&done, &job->link);
    }
    weft__completions_put(&sq->base.completions, &done);
}

static void run_group(weft_sq *sq, weft_link *jobs) {
    settle_group(sq, jobs, commit_group(sq, jobs));
    hand_in_group(sq, jobs);
    if (sq->log_pages < sq->log_pages_copied)
        sq->log_pages_copied = 0; /* the log began anew */
    if (sq->log_pages - sq->log_pages_copied >= sq->max_log_pages)
        copy_log(sq);
}

void *weft__sq_writer_main(void *ctx) {
    weft_sq *sq = ctx;
    weft_link jobs;
    int r, wait_ms = IDLE_MS;
    while ((r = weft__store_worker_take(&sq->writer, wait_ms, GROUP_BYTES, &jobs)) >= 0) {
        if (r > 0)
            run_group(sq, &jobs);
        else
            copy_log(sq);
        wait_ms = sq->log_pages > sq->log_pages_copied ? IDLE_MS : -1;
    }
    weft__sq_leave(sq);
    return NULL;
}

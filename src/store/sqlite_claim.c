/* A claim inside the writer's transaction. */
#include <errno.h>
#include <string.h>

#include "sqlite_store.h"

/* Who holds the key now, into the job. 1 somebody, 0 nobody. */
static int find_holder(weft_sq *sq, weft_claim_job *job) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_CLAIM, &r);
    if (!row)
        return r;
    sqlite3_bind_text(row, 1, job->claim.key, -1, SQLITE_STATIC);
    r = weft__sq_step(row);
    if (r > 0) {
        const char *owner = (const char *) sqlite3_column_text(row, 0);
        size_t len = owner ? strlen(owner) : 0;
        if (len && len <= WEFT_STORE_NAME)
            memcpy(job->holder, owner, len + 1);
        else
            r = -EUCLEAN;
        job->until_ms = sqlite3_column_int64(row, 1);
        job->fence = (uint64_t) sqlite3_column_int64(row, 2);
    }
    sqlite3_reset(row);
    return r;
}

static int release(weft_sq *sq, weft_claim_job *job) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_DROP_CLAIM, &r);
    if (!row)
        return r;
    sqlite3_bind_text(row, 1, job->claim.key, -1, SQLITE_STATIC);
    r = weft__sq_run(row);
    job->holder[0] = '\0';
    job->until_ms = 0;
    job->fence = 0;
    return r;
}

static int grant(weft_sq *sq, weft_claim_job *job, bool change) {
    int r = 0;
    if (change) {
        job->fence = (uint64_t) ++sq->state.fence;
        r = weft__sq_save_state(&sq->write, &sq->state);
    }
    sqlite3_stmt *row = r >= 0 ? weft__sq_prepare(&sq->write, WEFT_SQ_SET_CLAIM, &r) : NULL;
    if (!row)
        return r;
    memcpy(job->holder, job->claim.owner, strlen(job->claim.owner) + 1);
    job->until_ms = job->claim.until_ms;
    sqlite3_bind_text(row, 1, job->claim.key, -1, SQLITE_STATIC);
    sqlite3_bind_text(row, 2, job->claim.owner, -1, SQLITE_STATIC);
    sqlite3_bind_int64(row, 3, job->until_ms);
    sqlite3_bind_int64(row, 4, (int64_t) job->fence);
    return weft__sq_run(row);
}

int weft__sq_claim(weft_sq *sq, weft_claim_job *job) {
    const weft_claim *claim = &job->claim;
    int held = find_holder(sq, job);
    if (held < 0)
        return held;
    bool mine = held && strcmp(job->holder, claim->owner) == 0;
    bool expired = held && job->until_ms && job->until_ms <= claim->now_ms;
    int r = 0;
    job->job.r = claim->release ? !held || mine : !held || mine || expired;
    if (claim->release && mine)
        r = release(sq, job);
    else if (!claim->release && job->job.r)
        r = grant(sq, job, !mine);
    return r;
}

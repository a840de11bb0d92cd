/* Whether the database, its log and the mark are still the ones that were opened, asked around each transaction by the
 * writer's thread. It costs a few microseconds for each group, and a group costs a sync. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "sqlite_store.h"

/* So often everything was right although a time of change was not ours: times of this file system say nothing. */
#define MAX_RECHECKS 3

/* The file system's clock may be another one than ours: from now on times are noted after each group, as they are. */
static bool stop_trusting_clocks(weft_sq *sq) {
    bool trusted = false;
    for (size_t i = 0; i < sq->base.file_count; i++) {
        trusted |= sq->base.files[i].often;
        sq->base.files[i].often = false;
    }
    return trusted;
}

int weft__sq_files_head(weft_sq *sq) {
    weft_sq_state stored;
    int r = weft__sq_load_state(&sq->write, &stored);
    if (r < 0 && r != -EUCLEAN)
        return r;
    bool ours = r > 0 && stored.head == sq->state.head && strcmp(stored.epoch, sq->state.epoch) == 0;
    sq->lost |= !ours;
    return ours ? 0 : -ESTALE;
}

/* Somebody else wrote to the database or its log, or only touched it. What is in memory is forgotten and everything read. */
int weft__sq_files_check(weft_sq *sq) {
    char why[WEFT_STORE_WHY] = "";
    weft_sq_state state = sq->state;
    weft__sq_leave(sq);
    sqlite3_db_release_memory(sq->write.db);
    int r = weft__sq_log_check(sq->path, true);
    if (r >= 0)
        r = weft__sq_check_pages(sq->write.db, why);
    if (r >= 0)
        r = weft__sq_check_events(&sq->write, &state, why);
    sq->lost |= r == -EUCLEAN;
    if (sq->lost)
        return -ESTALE;
    if (r >= 0)
        r = weft__sq_files_head(sq);
    return r < 0 ? r : weft__files_note(&sq->base, NULL);
}

int weft__sq_files_before(weft_sq *sq) {
    if (sq->lost)
        return -ESTALE;
    /* Deleted or replaced: if it is put back, it goes on. Nothing was written meanwhile. */
    int r = weft__files_compare(&sq->base);
    clock_gettime(CLOCK_REALTIME_COARSE, &sq->began);
    if (r <= 0)
        return r;
    r = weft__sq_files_check(sq);
    if (r >= 0 && !stop_trusting_clocks(sq) && ++sq->rechecks == MAX_RECHECKS)
        for (size_t i = 0; i < sq->base.file_count; i++)
            sq->base.files[i].ours_alone = false;
    return r;
}

/* What was just written may be in a file that nobody will find, and the events of this group were told to nobody: there is
 * no way on but a new start. */
int weft__sq_files_after(weft_sq *sq, bool group) {
    int r = weft__files_note(&sq->base, group ? &sq->began : NULL);
    sq->lost |= r < 0;
    return r;
}

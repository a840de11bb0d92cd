/* Whether the database, its log and the mark are still the ones that were opened, asked around each transaction by the
 * writer's thread. It costs a few microseconds for each group, and a group costs a sync. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "sqlite_store.h"

/* So often everything was right although a time of change was not ours: times of this file system say nothing. */
#define MAX_RECHECKS 3
#define LOG_HEADER 32
#define FRAME_HEADER 24

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

static bool is_log_emptied(const weft_sq *sq) {
    const weft_store_file *log = &sq->base.files[WEFT_SQ_LOG];
    struct stat info = {0};
    return weft__file_look(log, &info) == -ESTALE && info.st_dev == log->device && info.st_ino == log->inode &&
           info.st_size == 0;
}

/* SQLite's index of the log, which all who have the database open share, says whether SQLite emptied it: then it counts no
 * page there, all of them are in the database, and the next transaction begins a new log. Whoever cut the file off left the
 * count as it was, and the next transaction would lie behind a hole. Asked by copying back, which does nothing in the first
 * case and cannot read anything in the second. */
static bool is_log_empty_to_sqlite(weft_sq *sq) {
    int pages = -1, copied = -1;
    int rc = sqlite3_wal_checkpoint_v2(sq->write.db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &copied);
    return rc == SQLITE_OK && pages == 0;
}

int weft__sq_files_emptied(weft_sq *sq) {
    weft_store_file *log = &sq->base.files[WEFT_SQ_LOG];
    int64_t size = atomic_load(&log->size);
    if (sq->lost || !is_log_emptied(sq))
        return -ESTALE;
    weft__sq_leave(sq);
    if (!is_log_empty_to_sqlite(sq))
        return -ESTALE;
    atomic_store(&log->size, 0);
    int r = weft__sq_files_check(sq);
    if (r < 0)
        atomic_store(&log->size, size);
    else
        sq->log_size = sq->log_pages = sq->log_pages_copied = 0;
    sq->log_anew |= r >= 0;
    return r;
}

int weft__sq_files_before(weft_sq *sq) {
    if (sq->lost)
        return -ESTALE;
    /* Deleted or replaced: if it is put back, it goes on. Nothing was written meanwhile. */
    int r = weft__files_compare(&sq->base);
    if (r == -ESTALE)
        r = weft__sq_files_emptied(sq);
    clock_gettime(CLOCK_REALTIME_COARSE, &sq->began);
    if (r <= 0)
        return r;
    r = weft__sq_files_check(sq);
    if (r >= 0 && !stop_trusting_clocks(sq) && ++sq->rechecks == MAX_RECHECKS)
        for (size_t i = 0; i < sq->base.file_count; i++)
            sq->base.files[i].ours_alone = false;
    return r;
}

/* Of a log that begins anew it is not known yet how long it was. It is at least so long as SQLite says that it wrote, and
 * begins as a log does, or somebody cut off what was just written. */
static int examine_new_log(weft_sq *sq) {
    if (!sq->log_anew || !sq->log_pages)
        return 0;
    sq->log_anew = false;
    atomic_store(&sq->base.files[WEFT_SQ_LOG].size, LOG_HEADER + sq->log_pages * (FRAME_HEADER + sq->page_bytes));
    return weft__sq_log_check(sq->path, true);
}

/* What was just written may be in a file that nobody will find, and the events of this group were told to nobody: there is
 * no way on but a new start. */
int weft__sq_files_after(weft_sq *sq, bool group) {
    int r = group ? examine_new_log(sq) : 0;
    if (r >= 0)
        r = weft__files_note(&sq->base, group ? &sq->began : NULL);
    sq->lost |= r < 0;
    return r;
}

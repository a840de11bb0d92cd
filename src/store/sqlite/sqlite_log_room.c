/* Room in SQLite's log, written before it is needed.
 *
 * A sync after a file has grown also waits for the file system's own journal; a sync after bytes were replaced does not, and
 * takes half the time. So the file is made longer in large steps, with zeros, ahead of what SQLite writes. SQLite ends its
 * reading of a log at the first frame that does not have the header's salts, and so does sqlite_log.c: zeros are no frames.
 * Space that was only allocated would not do, because writing to it for the first time is a change of the file, too. */
#include "sqlite_store.h"

#define LOG_HEADER 32
#define FRAME (24 + WEFT_SQ_PAGE_BYTES)
#define BLOCK (64 * 1024)
#define STEP (8 * BLOCK)     /* written at a time: some 60 small commits, and a sync of well under a millisecond */
#define MIN_PAGES 24         /* in the log before it is worth it: a hub that hardly stores anything is left alone */
#define MIN_ROOM (8 * FRAME) /* a small commit fits */

sqlite3_file *weft__sq_log_file(weft_sq *sq) {
    sqlite3_file *file = NULL;
    int rc = sqlite3_file_control(sq->write.db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);
    return rc == SQLITE_OK && file && file->pMethods ? file : NULL;
}

/* Where a write fails, the commit finds out by itself whether it has the room it needs. */
static void add_room(weft_sq *sq, sqlite3_file *file, sqlite3_int64 size) {
    static const char zeros[BLOCK];
    for (sqlite3_int64 end = size + STEP; size < end; size += BLOCK)
        if (file->pMethods->xWrite(file, zeros, BLOCK, size) != SQLITE_OK)
            return;
    sq->log_size = size;
}

void weft__sq_log_room(weft_sq *sq) {
    sqlite3_int64 end = LOG_HEADER + (sqlite3_int64) sq->log_pages * FRAME, size = 0;
    /* One that was copied back whole begins anew, where it is long already. */
    if (sq->log_pages < MIN_PAGES || sq->log_pages >= sq->max_log_pages || sq->log_pages == sq->log_pages_copied ||
        end + MIN_ROOM <= sq->log_size)
        return;
    sqlite3_file *file = weft__sq_log_file(sq);
    if (!file || file->pMethods->xFileSize(file, &size) != SQLITE_OK)
        return;
    sq->log_size = size;
    if (end + MIN_ROOM > size && size >= end)
        add_room(sq, file, size);
}

/* Writes to SQLite's log, gathered until it is synced.
 *
 * SQLite writes each frame in two pieces, 24 bytes and a page, neither of which lies on a page of the file: seven system
 * calls for a small commit, and three pages of the cache touched for each frame. Here what follows on what came before is
 * kept and written in one piece: when the log is synced, which is before a commit counts, when it is read or looked at in
 * any other way, and when there is no more room. Nothing is kept longer than SQLite's own order of things allows: it shows a
 * commit to others only after the sync.
 *
 * It stands between SQLite and its file: the file's table of functions is replaced by one of ours, and what we need to know
 * lies behind that. */
#include <errno.h>
#include <string.h>

#include "sqlite_store.h"

/* So many frames as SQLite's files for Unix take in one write, which is less than 128 KiB. */
#define ROOM (31 * (24 + WEFT_SQ_PAGE_BYTES))
#define LARGE (4 * WEFT_SQ_PAGE_BYTES) /* a piece that gains nothing by being copied */

struct weft_sq_log_writes {
    sqlite3_io_methods methods; /* first: a file knows us by it */
    const sqlite3_io_methods *real;
    const weft_alloc *alloc;
    sqlite3_int64 at; /* where in the file what is kept belongs */
    int len;
    char kept[ROOM];
};

static weft_sq_log_writes *writes_of(sqlite3_file *file) {
    return (weft_sq_log_writes *) (void *) file->pMethods;
}

/* After a failure it is forgotten: SQLite gives up the transaction, and would write all of it again. */
static int write_kept(sqlite3_file *file) {
    weft_sq_log_writes *writes = writes_of(file);
    int len = writes->len;
    writes->len = 0;
    return len ? writes->real->xWrite(file, writes->kept, len, writes->at) : SQLITE_OK;
}

static int log_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at) {
    weft_sq_log_writes *writes = writes_of(file);
    int rc = SQLITE_OK;
    if (len > LARGE || writes->len + len > ROOM || at != writes->at + writes->len)
        rc = write_kept(file);
    if (rc != SQLITE_OK || len > LARGE)
        return rc != SQLITE_OK ? rc : writes->real->xWrite(file, data, len, at);
    if (!writes->len)
        writes->at = at;
    memcpy(writes->kept + writes->len, data, (size_t) len);
    writes->len += len;
    return SQLITE_OK;
}

static int log_sync(sqlite3_file *file, int flags) {
    int rc = write_kept(file);
    return rc == SQLITE_OK ? writes_of(file)->real->xSync(file, flags) : rc;
}

static int log_read(sqlite3_file *file, void *data, int len, sqlite3_int64 at) {
    int rc = write_kept(file);
    return rc == SQLITE_OK ? writes_of(file)->real->xRead(file, data, len, at) : rc;
}

static int log_truncate(sqlite3_file *file, sqlite3_int64 len) {
    int rc = write_kept(file);
    return rc == SQLITE_OK ? writes_of(file)->real->xTruncate(file, len) : rc;
}

static int log_size(sqlite3_file *file, sqlite3_int64 *ret) {
    int rc = write_kept(file);
    return rc == SQLITE_OK ? writes_of(file)->real->xFileSize(file, ret) : rc;
}

/* What was not synced is not missed. */
static int log_close(sqlite3_file *file) {
    weft_sq_log_writes *writes = writes_of(file);
    (void) write_kept(file);
    file->pMethods = writes->real;
    weft__free(writes->alloc, writes);
    return file->pMethods->xClose(file);
}

int weft__sq_log_gather(weft_sq *sq) {
    sqlite3_file *file = weft__sq_log_file(sq);
    weft_sq_log_writes *writes = file ? weft__alloc(sq->base.alloc, sizeof *writes) : NULL;
    if (!writes)
        return file ? -ENOMEM : 0;
    writes->methods = *file->pMethods;
    writes->methods.xClose = log_close;
    writes->methods.xRead = log_read;
    writes->methods.xWrite = log_write;
    writes->methods.xTruncate = log_truncate;
    writes->methods.xSync = log_sync;
    writes->methods.xFileSize = log_size;
    writes->real = file->pMethods;
    writes->alloc = sq->base.alloc;
    writes->at = writes->len = 0;
    file->pMethods = &writes->methods;
    return 0;
}

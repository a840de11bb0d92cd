/* The SQLite store: opening, closing, and handing jobs to the threads. See sqlite_store.h for the parts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peek.h"
#include "sqlite_store.h"

#define MAX_LOG ((size_t) 64 << 20)
#define QUICK_PAGES 8192 /* 32 MiB: a full check of so much takes a moment, so it is done at every start */

/* synchronous=FULL syncs the log at every commit. Trimmed pages need not be overwritten with zeros, which Debian's build
 * does unless told otherwise. The log is copied back by the writer when it likes, and not by closing after a failure. */
static const char writer_setup[] = "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA secure_delete = OFF;"
                                   "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY";
static const char reader_setup[] = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA query_only = ON";

static int log_grew(void *ctx, sqlite3 *db, const char *name, int pages) {
    weft_sq *sq = ctx;
    (void) db;
    (void) name;
    sq->log_pages = pages;
    return SQLITE_OK;
}

/* So that the names of new files outlive a crash of the machine, like what is in them. */
static int sync_folder(const char *path) {
    char folder[4096];
    const char *slash = strrchr(path, '/');
    int n = snprintf(folder, sizeof folder, "%.*s", slash ? (int) (slash - path) + 1 : 1, slash ? path : ".");
    int fd = n < (int) sizeof folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0)
        return n < (int) sizeof folder ? -errno : -ENAMETOOLONG;
    int r = fsync(fd) < 0 && errno != EINVAL ? -errno : 0; /* EINVAL: this file system cannot */
    close(fd);
    return r;
}

/* The database is created by us, because SQLite would make it readable for everybody; its neighbours get its mode. */
static int make_private(const char *path) {
    struct stat info;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int r = fchmod(fd, 0600) < 0 || fstat(fd, &info) < 0 ? -errno : 0;
    close(fd);
    return r >= 0 && info.st_size == 0 ? sync_folder(path) : r;
}

static int connect_db(weft_sq *sq, weft_sq_conn *conn, int flags, const char *setup) {
    int rc = sqlite3_open_v2(sq->path, &conn->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, sq->vfs);
    if (rc == SQLITE_ERROR)
        return -EINVAL; /* no such VFS; nothing has been read that could be damaged */
    if (rc != SQLITE_OK)
        return weft__sq_error(conn->db, rc);
    sqlite3_db_config(conn->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *) NULL);
    sqlite3_db_config(conn->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *) NULL);
    return weft__sq_exec(conn->db, setup);
}

int weft__sq_connect_reader(weft_sq *sq, weft_sq_conn *conn) {
    return connect_db(sq, conn, SQLITE_OPEN_READONLY, reader_setup);
}

/* What must be known before anybody is served. A large database is checked in full while it is already used, because every
 * event and document is checked when it is read. A clean stop leaves no log: where there is one, something was put back that
 * belongs to another time. */
static bool check_first(const weft_sq *sq, weft_check how, bool log, int64_t pages) {
    bool clean = sq->state.clean, counted = clean || sq->state.counted;
    return how == WEFT_CHECK_ALWAYS || (clean && log) || !counted ||
           (pages <= QUICK_PAGES && (how == WEFT_CHECK_AUTO || !clean));
}

static int check_journal(weft_sq *sq, weft_check how, const weft_sq_proof *proof, char *ret_why) {
    int64_t pages = 0;
    int r = weft__sq_get_int(sq->write.db, "PRAGMA page_count", &pages);
    if (r < 0)
        return r;
    sq->checked = check_first(sq, how, proof->log, pages);
    if (!sq->checked)
        return sq->state.clean ? 0 : weft__sq_count_on(&sq->write, &sq->state);
    r = weft__sq_check_pages(sq->write.db, ret_why);
    return r < 0 ? r : weft__sq_check_events(&sq->write, &sq->state, ret_why);
}

/* Is this the continuation of what the mark speaks of? Without a mark that can be read it is a copy, and the epoch is a new
 * one. */
static int prove_continuity(weft_sq *sq, const weft_sq_proof *proof, char *ret_why) {
    static const char on_purpose[] = "If that is on purpose, remove the file whose name ends in -mark";
    if (!proof->known) {
        snprintf(ret_why, WEFT_STORE_WHY, "%s: its positions begin a new epoch",
                 proof->unreadable ? "the mark beside the journal is damaged" : "the journal was copied or restored");
        return weft__epoch_new(sq->state.epoch);
    }
    if (proof->gseq && strcmp(proof->epoch, sq->state.epoch) != 0) {
        snprintf(ret_why, WEFT_STORE_WHY, "this is another journal than the one that was here and had %llu events. %s",
                 (unsigned long long) proof->gseq, on_purpose);
        return -EUCLEAN;
    }
    if (strcmp(proof->epoch, sq->state.epoch) != 0)
        return weft__epoch_new(sq->state.epoch); /* nothing was stored in the one before */
    if (proof->gseq <= (uint64_t) sq->state.head)
        return 0;
    snprintf(ret_why, WEFT_STORE_WHY,
             "the journal has lost its end: event %llu was acknowledged, and the last one there is %lld. Put back what is "
             "missing; or, if this is an older copy on purpose, remove the file whose name ends in -mark",
             (unsigned long long) proof->gseq, (long long) sq->state.head);
    return -EUCLEAN;
}

/* The file may be the one that is expected, and what is in it another journal. */
static int check_expected(const weft_sq *sq, const char *epoch, char *ret_why) {
    if (!epoch || !*epoch || strcmp(epoch, sq->state.epoch) == 0)
        return 0;
    snprintf(ret_why, WEFT_STORE_WHY, "this is another journal than before: its epoch is %s and was %s", sq->state.epoch,
             epoch);
    return -EKEYREJECTED;
}

static int begin_journal(weft_sq *sq, const weft_sq_proof *proof, char *ret_why) {
    int r = weft__sq_examine_fresh(proof, ret_why);
    return r < 0 ? r : weft__epoch_new(sq->state.epoch);
}

/* A database without tables, or without its one row of state, is a new one or has lost everything. To be asked before
 * anything is made in it. */
static int examine_tables(weft_sq *sq, const weft_sq_proof *proof, char *ret_why) {
    int64_t tables = 0, states = 0;
    int r = weft__sq_get_int(sq->write.db, "SELECT count(*) FROM sqlite_master", &tables);
    if (r >= 0 && tables)
        r = weft__sq_get_int(sq->write.db, "SELECT count(*) FROM sqlite_master WHERE name = 'state'", &states);
    if (r < 0 || (tables && !states))
        return r; /* another program's */
    if (states)
        r = weft__sq_get_int(sq->write.db, "SELECT count(*) FROM state", &states);
    return r < 0 || states ? r : weft__sq_examine_fresh(proof, ret_why);
}

static int load_journal(weft_sq *sq, const weft_store_opts *opts, const weft_sq_proof *proof, char *ret_why) {
    sq->state = (weft_sq_state){0}; /* of a journal that was moved aside */
    int fresh = examine_tables(sq, proof, ret_why);
    if (fresh >= 0)
        fresh = weft__sq_migrate(sq->write.db, 0, ret_why);
    if (fresh < 0)
        return fresh;
    sq->checked = fresh;
    if (fresh)
        return begin_journal(sq, proof, ret_why);
    int r = weft__sq_load_state(&sq->write, &sq->state);
    if (r == 0 && (r = weft__sq_check_pages(sq->write.db, ret_why)) >= 0)
        return begin_journal(sq, proof, ret_why); /* the first start ended before it had begun */
    if (r >= 0)
        r = check_expected(sq, opts->expect, ret_why);
    if (r >= 0)
        r = check_journal(sq, opts->check, proof, ret_why);
    return r < 0 ? r : prove_continuity(sq, proof, ret_why);
}

/* From here on a stop without close is an unclean one. */
static int begin_run(weft_sq *sq) {
    sq->state.clean = false;
    int r = weft__sq_save_state(&sq->write, &sq->state);
    if (r >= 0)
        r = weft__sq_mark_write(sq->mark, sq->state.epoch, (uint64_t) sq->state.head);
    if (r >= 0 && fdatasync(sq->mark) < 0)
        r = -errno;
    return r;
}

static int open_database(weft_sq *sq, const weft_store_opts *opts, char *ret_why) {
    weft_sq_proof proof;
    int r = weft__sq_examine(sq->path, sq->mark, &proof, ret_why);
    if (r >= 0)
        r = make_private(sq->path);
    if (r >= 0)
        r = connect_db(sq, &sq->write, SQLITE_OPEN_READWRITE, writer_setup);
    if (r >= 0)
        r = weft__sq_rows_init(sq);
    if (r >= 0)
        r = load_journal(sq, opts, &proof, ret_why);
    if (r == -EUCLEAN && !*ret_why)
        snprintf(ret_why, WEFT_STORE_WHY, "the journal is damaged: %.300s",
                 sq->write.db ? sqlite3_errmsg(sq->write.db) : "it cannot be read");
    if (r < 0)
        weft__sq_conn_done(&sq->write);
    return r;
}

static int watch_files(weft_sq *sq) {
    int r = weft__files_watch(&sq->base, sq->path, "", true);
    if (r >= 0)
        r = weft__files_watch(&sq->base, sq->path, "-wal", true);
    if (r >= 0)
        sq->base.files[WEFT_SQ_LOG].often = true;
    return r < 0 ? r : weft__files_watch(&sq->base, sq->path, "-mark", false);
}

static int open_or_quarantine(weft_sq *sq, const weft_store_opts *opts, char *ret_why) {
    int r = open_database(sq, opts, ret_why);
    if (r == -EUCLEAN && opts->on_damage == WEFT_DAMAGE_QUARANTINE) {
        char why[WEFT_STORE_WHY];
        r = weft__sq_quarantine(sq->path, sq->mark, ret_why);
        memcpy(why, ret_why, sizeof why);
        if (r >= 0)
            r = open_database(sq, opts, ret_why);
        if (r >= 0)
            memcpy(ret_why, why, sizeof why);
    }
    if (r < 0)
        return r;
    sqlite3_wal_hook(sq->write.db, log_grew, sq);
    r = weft__sq_get_int(sq->write.db, "PRAGMA page_size", &sq->page_bytes);
    if (r >= 0)
        r = begin_run(sq);
    if (r >= 0)
        r = weft__sq_log_gather(sq);
    if (r >= 0)
        r = weft__sq_connect_reader(sq, &sq->read);
    return r < 0 ? r : watch_files(sq);
}

static int start_threads(weft_sq *sq) {
    int r = weft__store_worker_start(&sq->reader, weft__sq_reader_main, sq);
    if (r < 0)
        return r;
    r = weft__store_worker_start(&sq->writer, weft__sq_writer_main, sq);
    if (r < 0)
        weft__store_worker_stop(&sq->reader);
    return r;
}

static void close_connections(weft_sq *sq) {
    /* The reader first: the last to close is the one that may tidy up. */
    weft__sq_conn_done(&sq->read);
    weft__sq_conn_done(&sq->write);
    if (sq->mark >= 0)
        close(sq->mark);
    sq->mark = -1;
}

/* It was a copy once: replica.c. What cannot be read is not known, and harms nobody. */
static void find_before(weft_sq *sq) {
    sqlite3_stmt *row = NULL;
    static const char ask[] = "SELECT epoch, head FROM standby WHERE promoted";
    if (sqlite3_prepare_v2(sq->write.db, ask, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW) {
        const char *epoch = (const char *) sqlite3_column_text(row, 0);
        snprintf(sq->base.before, sizeof sq->base.before, "%s", epoch ? epoch : "");
        sq->base.before_head = (uint64_t) sqlite3_column_int64(row, 1);
    }
    sqlite3_finalize(row);
}

static int open_journal_files(weft_sq *sq, const weft_store_opts *opts, char *ret_why) {
    int r = weft__sq_check_files(sq->path, ret_why);
    if (r >= 0)
        r = weft__sq_mark_open(sq->path, &sq->mark);
    if (r >= 0)
        r = open_or_quarantine(sq, opts, ret_why);
    if (r >= 0)
        r = weft__completions_init(&sq->base.completions);
    if (r < 0)
        return r;
    memcpy(sq->base.epoch, sq->state.epoch, sizeof sq->base.epoch);
    sq->base.told = (uint64_t) sq->state.head;
    find_before(sq);
    r = start_threads(sq);
    if (r < 0)
        weft__completions_done(&sq->base.completions);
    else if (!sq->checked)
        weft__sq_checker_start(sq);
    return r;
}

static void explain_failure(int r, char *ret_why) {
    if (*ret_why && r != -EBUSY)
        return;
    snprintf(ret_why, WEFT_STORE_WHY, "%s", r == -EBUSY ? "the journal is in use by another process" : weft_strerror(r));
}

static int open_sqlite(const weft_store_opts *opts, weft_store **ret, char *ret_why) {
    if (!opts->path || !*opts->path)
        return -EINVAL;
    weft_sq *sq = weft__zalloc(opts->alloc, sizeof *sq);
    if (!sq)
        return -ENOMEM;
    /* Nobody asks how much memory SQLite has, and counting takes a lock for each piece. Refused once SQLite is in use. */
    (void) sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sq->base.alloc = opts->alloc;
    sq->mark = -1;
    sq->vfs = opts->vfs;
    sq->max_log_pages = (int) ((opts->max_log ? opts->max_log : MAX_LOG) / WEFT_SQ_PAGE_BYTES);
    sq->path = weft__strndup(opts->alloc, opts->path, strlen(opts->path));
    int r = sq->path ? open_journal_files(sq, opts, ret_why) : -ENOMEM;
    if (r < 0) {
        close_connections(sq);
        weft__files_done(&sq->base);
        explain_failure(r, ret_why);
        weft__free(opts->alloc, sq->path);
        weft__free(opts->alloc, sq);
        return r;
    }
    *ret = &sq->base;
    return 0;
}

static void give_append(weft_store *store, weft_append_job *job) {
    weft__store_worker_give(&((weft_sq *) (void *) store)->writer, &job->job, store->more);
}

static void give_read(weft_store *store, weft_read_job *job) {
    weft__store_worker_give(&((weft_sq *) (void *) store)->reader, &job->job, false);
}

static void give_trim(weft_store *store, weft_trim_job *job) {
    weft__store_worker_give(&((weft_sq *) (void *) store)->writer, &job->job, false);
}

/* A log that was deleted is copied back all the same, while we still have it open; but only into our database, and only if
 * nobody changed what is in the files. */
static bool may_end_run(weft_sq *sq) {
    struct stat info = {0};
    const weft_store_file *log = &sq->base.files[WEFT_SQ_LOG];
    if (weft__file_look(&sq->base.files[0], &info) < 0)
        return false;
    memset(&info, 0, sizeof info);
    bool log_changed = weft__file_look(log, &info) < 0 && info.st_ino == log->inode && weft__sq_files_emptied(sq) < 0;
    return !log_changed && (!sq->lost || weft__files_look(&sq->base) < 0);
}

/* Say that this stop is a clean one, and what the counts are. Where that fails the next start checks everything. */
static void end_run(weft_sq *sq) {
    weft_sq_conn *conn = &sq->write;
    if (!may_end_run(sq))
        return;
    sq->state.clean = true;
    int r = weft__sq_do(conn, WEFT_SQ_BEGIN);
    if (r >= 0)
        r = weft__sq_streams_save(sq);
    if (r >= 0)
        r = weft__sq_keys_move(sq, true);
    if (r >= 0)
        r = weft__sq_save(sq);
    if (r >= 0)
        r = weft__sq_do(conn, WEFT_SQ_COMMIT);
    if (r < 0 && !sqlite3_get_autocommit(conn->db))
        weft__sq_do(conn, WEFT_SQ_ROLLBACK);
    if (r >= 0)
        sqlite3_db_config(conn->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, (int *) NULL);
    (void) weft__sq_mark_write(sq->mark, sq->base.epoch, (uint64_t) sq->state.head);
    (void) fdatasync(sq->mark);
}

/* What another program did to the log may be right, which only the writer can tell; and without work it would not look. */
static void look_sqlite(weft_store *store) {
    weft__store_worker_poke(&((weft_sq *) (void *) store)->writer);
}

static void close_sqlite(weft_store *store) {
    weft_sq *sq = (weft_sq *) (void *) store;
    atomic_store(&sq->check_stop, true);
    weft__sq_checker_join(sq);
    weft__store_worker_stop(&sq->reader);
    weft__store_worker_stop(&sq->writer);
    end_run(sq);
    close_connections(sq);
}

static void free_sqlite(weft_store *store) {
    weft_sq *sq = (weft_sq *) (void *) store;
    weft__sq_streams_drop(sq);
    weft__sq_keys_drop(sq);
    weft__files_done(store);
    weft__completions_done(&store->completions);
    weft__free(store->alloc, sq->path);
    weft__free(store->alloc, sq);
}

/* A database that is gone leaves its log or its mark behind. */
static const char *const files[] = {"", "-wal", "-mark", NULL};

const weft_store_kind weft__sqlite = {
    .name = "sqlite",
    .files = files,
    .peek = weft__peek,
    .open = open_sqlite,
    .append = give_append,
    .read = give_read,
    .trim = give_trim,
    .look = look_sqlite,
    .close = close_sqlite,
    .free = free_sqlite,
    .raw = true,
};

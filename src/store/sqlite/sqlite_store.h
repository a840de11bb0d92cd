/* The SQLite store, in parts: sqlite.c opens and closes, sqlite_schema.c knows the tables and their versions, sqlite_check.c
 * says whether they are whole, sqlite_checker.c asks it in the background, sqlite_mark.c remembers the last acknowledged
 * event beside them, sqlite_owner.c asks whose the files are, sqlite_evidence.c and sqlite_log.c look at the files before
 * SQLite does, sqlite_files.c while they are in use, sqlite_quarantine.c moves them aside, sqlite_writer.c commits,
 * sqlite_append.c and sqlite_trim.c are what it commits, sqlite_keys.c knows which event has a key, sqlite_rows.c shows the
 * rows of all appends to one statement, sqlite_log_room.c keeps room for it, sqlite_log_writes.c writes it, sqlite_reader.c
 * reads.
 *
 * One connection writes and checkpoints, on the writer's thread; the other only reads, on the reader's. SQLite 3.40 can
 * damage a database whose log is reset by two connections at once, and with one writer nobody ever waits for a lock. */
#ifndef WEFT_SQLITE_STORE_H
#define WEFT_SQLITE_STORE_H

#include <sqlite3.h>

#include "store_kind.h"
#include "store_worker.h"

/* What the one row of the table state holds. Numbers are SQLite's, 63 bits. */
typedef struct weft_sq_state {
    char epoch[WEFT_EPOCH + 1];
    bool clean;      /* the last run ended with close; the numbers below are then true */
    int64_t trimmed; /* highest gseq that was removed */
    int64_t rows, bytes;
    int64_t fence;          /* of version 2; not used any more */
    int64_t counted;        /* rows and bytes are true up to this gseq; 0: only after a clean stop */
    int64_t keyed;          /* events up to this gseq that have a key are in the table of keys */
    int64_t head;           /* not stored: the highest gseq ever given */
    weft_counters counters; /* likewise: there is no other writer */
} weft_sq_state;

/* What the writer knows of a stream it has used. */
typedef struct weft_sq_stream {
    struct weft_sq_stream *next; /* in its row of the table */
    int64_t id;
    int64_t head, trimmed;
    int64_t bytes; /* -1: not counted yet */
    bool changed;  /* the row in the database has an older head */
    uint32_t hash;
    char name[];
} weft_sq_stream;

#define WEFT_SQ_PAGE_BYTES 4096 /* bytes of a page of the database */
#define WEFT_SQ_ROWS 1024       /* of the writer's table of streams */
#define WEFT_SQ_LOG 1           /* in the store's files; the database is the first */

enum weft_sq_statement {
    WEFT_SQ_BEGIN,
    WEFT_SQ_BEGIN_GROUP,
    WEFT_SQ_STAY,
    WEFT_SQ_COMMIT,
    WEFT_SQ_ROLLBACK,
    WEFT_SQ_INSERT_ROWS,
    WEFT_SQ_KEY,
    WEFT_SQ_KEY_AT,
    WEFT_SQ_HAS_KEY,
    WEFT_SQ_KEYS_AFTER,
    WEFT_SQ_MOVE_KEYS,
    WEFT_SQ_DROP_KEY,
    WEFT_SQ_AT,
    WEFT_SQ_WHOLE,
    WEFT_SQ_REMOVE,
    WEFT_SQ_STREAM,
    WEFT_SQ_HEAD,
    WEFT_SQ_ALL_HEAD,
    WEFT_SQ_FIRST,
    WEFT_SQ_ALL_FIRST,
    WEFT_SQ_NEW_STREAM,
    WEFT_SQ_SET_STREAM,
    WEFT_SQ_STATE,
    WEFT_SQ_SET_STATE,
    WEFT_SQ_PAGE,
    WEFT_SQ_ALL_PAGE,
    WEFT_SQ_STREAM_BYTES,
    WEFT_SQ_OLDEST,
    WEFT_SQ_ALL_OLDEST,
    WEFT_SQ_CUT,
    WEFT_SQ_ALL_CUT,
    WEFT_SQ_PUT,
    WEFT_SQ_PUT_ROWS,
    WEFT_SQ_DROP,
    WEFT_SQ_DOCUMENTS,
    WEFT_SQ_DOCUMENT,
    WEFT_SQ_TRIMMED,
    WEFT_SQ_REMOVED,
    WEFT_SQ_STATEMENTS,
};

/* A connection and its statements, each prepared when it is first used. */
typedef struct weft_sq_conn {
    sqlite3 *db;
    sqlite3_stmt *statements[WEFT_SQ_STATEMENTS];
} weft_sq_conn;

struct weft_sq;

/* What one of the tables of sqlite_rows.c shows. */
enum weft_sq_shown { WEFT_SQ_EVENTS, WEFT_SQ_DOCUMENTS_PUT, WEFT_SQ_KEYS_MOVED, WEFT_SQ_SHOWN };
typedef struct weft_sq_rows {
    struct weft_sq *sq;
    enum weft_sq_shown what;
} weft_sq_rows;

/* An event that has a key with this hash. */
typedef struct weft_sq_key {
    int64_t hash;
    int64_t gseq; /* 0: none; below 0: it was trimmed */
} weft_sq_key;

/* Keys that are not in the table yet: see sqlite_keys.c. */
typedef struct weft_sq_keys {
    bool loaded;         /* all of them are here */
    weft_sq_key *recent; /* in places by their hashes */
    size_t count, cap;
    weft_sq_key *moving; /* in the order of the table; NULL: none */
    size_t moving_count, moved;
    int64_t recent_from, moving_from; /* no event before it is among them */
    size_t added;                     /* in the transaction under way */
    const weft_sq_key *rows;          /* what sqlite_rows.c shows */
    size_t row_count;
} weft_sq_keys;

typedef struct weft_sq {
    weft_store base;
    char *path;
    const char *vfs;
    int mark; /* descriptor of the mark file, locked as long as the store is open */
    weft_sq_conn write, read;
    weft_store_worker writer, reader;
    pthread_t checker;
    bool checked, checking; /* in full before it was opened; the checker's thread is there */
    _Atomic bool check_stop;
    pthread_mutex_t check_lock; /* of check_db; there while checking */
    sqlite3 *check_db;          /* the checker's own, while it can be interrupted */
    /* The writer's thread only, once it runs. */
    weft_sq_state state;
    weft_sq_stream *streams[WEFT_SQ_ROWS];
    size_t stream_count;
    int log_pages, log_pages_copied, max_log_pages;
    weft_sq_keys keys;
    weft_sq_rows rows[WEFT_SQ_SHOWN];
    weft_link *rows_from, *rows_until; /* the jobs of the group whose rows are not stored yet, and where these end */
    size_t event_rows, document_rows;  /* how many these are */
    bool count_saved;                  /* no document among them, or was stored before them, without the counts */
    struct timespec began;             /* the transaction, by the wall clock's ticks */
    bool stays;                        /* SQLite's lock of a reader is kept between the groups */
    int64_t page_bytes;                /* of the database */
    int64_t log_size;                  /* bytes of the log that were written at some time; at least so many */
    bool log_anew;                     /* somebody emptied it, and nothing was written to it since */
    bool lost;                         /* what was written last may be gone: nothing more is stored */
    int rechecks;                      /* how often somebody else seemed to have written, and everything was right */
} weft_sq;

/* A negative errno for SQLite's code. */
int weft__sq_error(sqlite3 *db, int rc);
/* sqlite_schema.c */
/* Run SQL that returns nothing. */
int weft__sq_exec(sqlite3 *db, const char *sql);
int weft__sq_get_int(sqlite3 *db, const char *sql, int64_t *ret);
/* A statement, ready to be bound; NULL with *ret_r set. */
sqlite3_stmt *weft__sq_prepare(weft_sq_conn *conn, enum weft_sq_statement which, int *ret_r);
/* Step it: 1 a row, 0 no more, <0. */
int weft__sq_step(sqlite3_stmt *statement);
/* Run a bound statement that returns no row, and reset it. */
int weft__sq_run(sqlite3_stmt *statement);
/* Run one that has nothing to bind. */
int weft__sq_do(weft_sq_conn *conn, enum weft_sq_statement which);
void weft__sq_conn_done(weft_sq_conn *conn);
/* Bring the tables to this version's shape. 1 it was empty, 0 it was ours; -ENOTSUP newer, -EINVAL somebody else's, each
 * with a sentence. up_to: 0 for this version, a lower one in tests. */
int weft__sq_migrate(sqlite3 *db, int up_to, char *ret_why);
/* 1, or 0 when there is none yet and no event either. */
int weft__sq_load_state(weft_sq_conn *conn, weft_sq_state *ret);
/* Its rows and bytes are true for all of its events. */
int weft__sq_save_state(weft_sq_conn *conn, weft_sq_state *state);

/* Likewise the writer's, with the keys as they are. */
int weft__sq_save(struct weft_sq *sq);
/* Statements on this connection may use weft_key_hash(key). */
int weft__sq_know_hash(sqlite3 *db);

/* The checksum stored with each event, with everything that identifies it: SQLite's own check does not notice a changed byte
 * in a payload. */
uint32_t weft__sq_sum_event(int64_t stream, const weft_event *event, const char *key);
uint32_t weft__sq_sum_document(const char *key, weft_bytes data);
uint32_t weft__sq_sum_stream(int64_t id, const char *name, int64_t head, int64_t trimmed);

/* sqlite_check.c */
/* SQLite's full check. -EUCLEAN with a sentence. */
int weft__sq_check_pages(sqlite3 *db, char *ret_why);
/* Every checksum, every stream without holes; counts rows and bytes anew. */
int weft__sq_check_events(weft_sq_conn *conn, weft_sq_state *state, char *ret_why);

/* The rows and bytes that came after state->counted. */
int weft__sq_count_on(weft_sq_conn *conn, weft_sq_state *state);

/* sqlite_checker.c */
void weft__sq_checker_start(weft_sq *sq);
/* Wait for its end. */
void weft__sq_checker_join(weft_sq *sq);

/* sqlite.c */
int weft__sq_connect_reader(weft_sq *sq, weft_sq_conn *conn);

/* sqlite_quarantine.c */
/* Move the database and its log aside, and a copy of the mark, under names that are free. The mark is empty afterwards. */
int weft__sq_quarantine(const char *path, int mark, char *ret_why);

/* sqlite_evidence.c */
/* What the mark says must be there. */
typedef struct weft_sq_proof {
    bool known;      /* epoch and gseq are true */
    bool unreadable; /* there is a mark, and it is damaged */
    bool log;        /* there is a log */
    char epoch[WEFT_EPOCH + 1];
    uint64_t gseq;
} weft_sq_proof;
/* Look at the files before SQLite does. -EUCLEAN with a sentence. */
int weft__sq_examine(const char *path, int mark, weft_sq_proof *ret, char *ret_why);
/* A database without tables: -EUCLEAN with a sentence if events must be in it. */
int weft__sq_examine_fresh(const weft_sq_proof *proof, char *ret_why);

/* sqlite_files.c */
/* Before a transaction: 0 if the files are the ones that were opened and hold what we wrote. */
int weft__sq_files_before(weft_sq *sq);
/* Somebody else wrote to them: read everything. 0 all of it is there, as we wrote it; -ESTALE it is not, for good. */
int weft__sq_files_check(weft_sq *sq);
/* Is the last event that is stored ours? -ESTALE for good: an older copy that was restored is whole, too. */
int weft__sq_files_head(weft_sq *sq);
/* Is it only that another program copied the log back and emptied it, as SQLite does? 0 yes, nothing is missing, and the log
 * begins anew; -ESTALE. */
int weft__sq_files_emptied(weft_sq *sq);
/* After it, before anybody is told; or after the log was copied back. */
int weft__sq_files_after(weft_sq *sq, bool group);

/* sqlite_log.c */
/* -EUCLEAN: the log's header, or with frames something in its midst, is not as SQLite wrote it. */
int weft__sq_log_check(const char *path, bool frames);

/* sqlite_log_room.c */
/* Make the log longer if the next commit might reach its end. Before a transaction, on the writer's thread. */
void weft__sq_log_room(weft_sq *sq);
/* The log, as the writer's connection has it open; NULL: it is not. */
sqlite3_file *weft__sq_log_file(weft_sq *sq);

/* sqlite_log_writes.c */
typedef struct weft_sq_log_writes weft_sq_log_writes;
/* From now on gather what is written to the log until it is synced. Before the writer's thread runs. */
int weft__sq_log_gather(weft_sq *sq);

/* sqlite_owner.c */
/* Are the database and its neighbours, as far as they are there, regular files of ours with one name? Nothing is opened.
 * -ELOOP a link, -EISDIR not a regular file, -EPERM another user's, -EMLINK a second name; each with a sentence. */
int weft__sq_check_files(const char *path, char *ret_why);

/* sqlite_mark.c */
/* Open and lock. -EBUSY. */
int weft__sq_mark_open(const char *path, int *ret_fd);
/* 1 there is one, 0 there is none that can be read. */
int weft__sq_mark_read(int fd, char ret_epoch[WEFT_EPOCH + 1], uint64_t *ret_gseq);
int weft__sq_mark_write(int fd, const char *epoch, uint64_t gseq);

/* sqlite_rows.c */
/* Make the tables that show rows of a group known to the writer's connection. */
int weft__sq_rows_init(weft_sq *sq);

/* sqlite_append.c */
/* A transaction begins: the rows of these jobs are to be stored. */
void weft__sq_rows_begin(weft_sq *sq, weft_link *jobs);
/* Store those of the jobs before this one. */
int weft__sq_put_rows(weft_sq *sq, weft_link *until);

/* What a job does inside the writer's transaction. <0: the transaction must be rolled back; what concerns only this job is
 * in job->r. append: its rows are stored by weft__sq_put_rows(). trim: 1 when there is more to do. */
int weft__sq_append(weft_sq *sq, weft_append_job *job);
int weft__sq_trim(weft_sq *sq, weft_trim_job *job);

/* sqlite_keys.c */
int64_t weft__sq_key_hash(const char *key);
/* The event that has the job's key: 1 and its gseq, 0 there is none. It may store the rows of the jobs before it. */
int weft__sq_key_find(weft_sq *sq, const weft_append_job *job, int64_t *ret_gseq);
/* An event that is stored in this transaction has this key; one that had it is trimmed. */
int weft__sq_key_add(weft_sq *sq, const char *key, int64_t gseq);
int weft__sq_key_remove(weft_sq *sq, const char *key, int64_t gseq);
/* Before a transaction ends, when its rows are stored: move some keys to the table, or all. */
int weft__sq_keys_move(weft_sq *sq, bool all);
/* Before the state is saved: say in it which keys are in the table. */
void weft__sq_keys_note(weft_sq *sq);
/* Forget those in memory: they are read again. */
void weft__sq_keys_drop(weft_sq *sq);

/* sqlite_streams.c */
/* A stream as the database has it. 1 found, 0 there is none. */
int weft__sq_find_stream(weft_sq_conn *conn, const char *name, int64_t *ret_id, int64_t *ret_head, int64_t *ret_trimmed);
/* A stream as the writer has it; NULL with *ret_r set, which is 0 when there is none and it was not to be made. */
weft_sq_stream *weft__sq_stream(weft_sq *sq, const char *name, bool make, int *ret_r);
/* Write the heads that changed. */
int weft__sq_streams_save(weft_sq *sq);
void weft__sq_streams_drop(weft_sq *sq);

/* sqlite_writer.c */
/* The writer's connection lets go of the state of the database that it has seen, and looks anew. */
void weft__sq_leave(weft_sq *sq);

/* The threads. */
void *weft__sq_writer_main(void *ctx);
void *weft__sq_reader_main(void *ctx);

#endif

/* A connection to PostgreSQL as the store uses it: pipelined, with binary values, on a thread of its own that may wait.
 * Every wait ends when the store is told to stop or at the connection's deadline. */
#ifndef WEFT_POSTGRES_CONN_H
#define WEFT_POSTGRES_CONN_H

#include <weft/base.h>

#include "buf.h"
#include "postgres_lib.h"

#define WEFT_PG_WHY 256  /* room for what the database said */
#define WEFT_PG_PARAMS 8 /* of one statement */
#define WEFT_PG_AHEAD 16 /* statements of one pipeline */

typedef struct weft_pg_conn {
    const weft_pg_lib *lib;
    PGconn *pg;          /* NULL: not connected */
    int stop;            /* descriptor, readable when the store stops; borrowed */
    int64_t grace_ms;    /* how long a wait may go on then */
    int64_t deadline_ns; /* 0: none */
    int queued;          /* statements since the last sync */
    int failed;          /* the first that could not be sent */
    bool warned;         /* the database has warned since this was cleared */
    char why[WEFT_PG_WHY];
} weft_pg_conn;

/* What a statement is given. Values are borrowed until it is sent. */
typedef struct weft_pg_params {
    int count;
    const char *values[WEFT_PG_PARAMS];
    int lengths[WEFT_PG_PARAMS];
    unsigned char ints[WEFT_PG_PARAMS][8];
} weft_pg_params;

void weft__pg_int(weft_pg_params *params, int64_t value);
/* data NULL: null. */
void weft__pg_bytes(weft_pg_params *params, const char *data, size_t len);
void weft__pg_text(weft_pg_params *params, const char *text);

/* A one-dimensional array of int8 or bytea, in PostgreSQL's binary form. */
typedef struct weft_pg_array {
    weft_buf bytes;
    int32_t count;
} weft_pg_array;
/* Each -ENOMEM. Begin empties it. */
int weft__pg_array_begin(weft_pg_array *array, const weft_alloc *alloc, bool of_bytes);
int weft__pg_array_int(weft_pg_array *array, const weft_alloc *alloc, int64_t value);
/* data NULL: null. */
int weft__pg_array_bytes(weft_pg_array *array, const weft_alloc *alloc, const char *data, size_t len);
void weft__pg_array(weft_pg_params *params, weft_pg_array *array);

/* Connect. -ENOTCONN with what went wrong in why, which never has a password. */
int weft__pg_connect(weft_pg_conn *conn, const char *url);
void weft__pg_disconnect(weft_pg_conn *conn);

/* Queue a statement: SQL, one that is prepared under a name, or preparing it. Failures come from weft__pg_run(). */
void weft__pg_send(weft_pg_conn *conn, const char *sql, const weft_pg_params *params);
void weft__pg_send_named(weft_pg_conn *conn, const char *name, const weft_pg_params *params);
void weft__pg_prepare(weft_pg_conn *conn, const char *name, const char *sql);
/* Send what is queued and wait for all answers, which go to ret in order; NULL behind one that failed. 0; -ENOTCONN the
 * connection is gone, and with it what was queued may have happened or not; -EAGAIN the database asks to try again; or what
 * the first failure means. After a failure nothing is in ret. */
int weft__pg_run(weft_pg_conn *conn, PGresult *ret[WEFT_PG_AHEAD]);
/* Likewise without looking at the answers. */
int weft__pg_do(weft_pg_conn *conn);
void weft__pg_clear(const weft_pg_conn *conn, PGresult *results[WEFT_PG_AHEAD]);

/* A value of an answer. */
int64_t weft__pg_get_int(const weft_pg_conn *conn, const PGresult *result, int row, int column);
weft_bytes weft__pg_get_bytes(const weft_pg_conn *conn, const PGresult *result, int row, int column);
bool weft__pg_is_null(const weft_pg_conn *conn, const PGresult *result, int row, int column);
int weft__pg_rows(const weft_pg_conn *conn, const PGresult *result);

/* Wait until the database says something by itself: 1, 0 at the end of wait_ms (-1: never), -ECANCELED, -ENOTCONN. */
int weft__pg_listen(weft_pg_conn *conn, int wait_ms);

#endif

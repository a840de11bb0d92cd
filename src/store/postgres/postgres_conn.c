/* Connecting, sending and waiting. See postgres_conn.h. */
#include "postgres_conn.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"

#define INT8 20 /* PostgreSQL's numbers of its types */
#define BYTEA 17
#define ARRAY_HEAD 20
#define MS_NS 1000000

/* Params */

static void add_param(weft_pg_params *params, const char *value, size_t len) {
    params->values[params->count] = value;
    params->lengths[params->count++] = (int) len;
}

void weft__pg_int(weft_pg_params *params, int64_t value) {
    uint64_t big = htobe64((uint64_t) value);
    memcpy(params->ints[params->count], &big, sizeof big);
    add_param(params, (const char *) params->ints[params->count], sizeof big);
}

void weft__pg_bytes(weft_pg_params *params, const char *data, size_t len) {
    add_param(params, data, len);
}

void weft__pg_text(weft_pg_params *params, const char *text) {
    add_param(params, text, strlen(text));
}

/* Arrays */

static void set_u32(char *at, uint32_t value) {
    uint32_t big = htobe32(value);
    memcpy(at, &big, sizeof big);
}

int weft__pg_array_begin(weft_pg_array *array, const weft_alloc *alloc, bool of_bytes) {
    char head[ARRAY_HEAD];
    set_u32(head, 1);                           /* dimensions */
    set_u32(head + 4, of_bytes);                /* there may be nulls */
    set_u32(head + 8, of_bytes ? BYTEA : INT8); /* of these */
    set_u32(head + 12, 0);                      /* how many: filled in at the end */
    set_u32(head + 16, 1);                      /* the first is number 1 */
    array->bytes.start = array->bytes.end = 0;
    array->count = 0;
    return weft__buf_put(&array->bytes, alloc, head, sizeof head);
}

int weft__pg_array_int(weft_pg_array *array, const weft_alloc *alloc, int64_t value) {
    char item[12];
    uint64_t big = htobe64((uint64_t) value);
    set_u32(item, 8);
    memcpy(item + 4, &big, sizeof big);
    int r = weft__buf_put(&array->bytes, alloc, item, sizeof item);
    array->count += r >= 0;
    return r;
}

int weft__pg_array_bytes(weft_pg_array *array, const weft_alloc *alloc, const char *data, size_t len) {
    char size[4];
    set_u32(size, data ? (uint32_t) len : UINT32_MAX);
    int r = weft__buf_reserve(&array->bytes, alloc, sizeof size + len);
    if (r < 0)
        return r;
    weft__buf_put(&array->bytes, alloc, size, sizeof size);
    if (data)
        weft__buf_put(&array->bytes, alloc, data, len);
    array->count++;
    return 0;
}

void weft__pg_array(weft_pg_params *params, weft_pg_array *array) {
    set_u32(array->bytes.data + 12, (uint32_t) array->count);
    add_param(params, array->bytes.data, array->bytes.end);
}

/* Connecting */

/* What the database said, in one line. libpq puts no passwords into its messages. */
static void keep_message(weft_pg_conn *conn, const char *message) {
    size_t n = 0;
    while (*message == ' ' || *message == '\n')
        message++;
    for (; *message && n < sizeof conn->why - 1; message++)
        if (*message != '\n' && *message != '\t')
            conn->why[n++] = *message;
        else if (n && conn->why[n - 1] != ' ' && message[1])
            conn->why[n++] = ' ';
    conn->why[n] = '\0';
}

static void on_pg_notice(void *ctx, const PGresult *result) {
    weft_pg_conn *conn = ctx;
    const char *severity = conn->lib->PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (severity && strcmp(severity, "WARNING") == 0)
        conn->warned = true;
}

/* The URL's own settings are stronger than those before it. A host that does not answer is given up soon, so that the next
 * of the list has its turn: after a failover that is the new primary. */
int weft__pg_connect(weft_pg_conn *conn, const char *url) {
    static const char *const names[] = {"target_session_attrs",      "connect_timeout",  "keepalives_idle",
                                        "keepalives_interval",       "keepalives_count", "tcp_user_timeout",
                                        "fallback_application_name", "dbname",           NULL};
    const char *const values[] = {"read-write", "5", "5", "2", "3", "15000", "weft", url, NULL};
    weft__pg_disconnect(conn);
    conn->pg = conn->lib->PQconnectdbParams(names, values, 1);
    if (!conn->pg)
        return -ENOMEM;
    if (conn->lib->PQstatus(conn->pg) != CONNECTION_OK) {
        keep_message(conn, conn->lib->PQerrorMessage(conn->pg));
        weft__pg_disconnect(conn);
        return -ENOTCONN;
    }
    conn->lib->PQsetNoticeReceiver(conn->pg, on_pg_notice, conn);
    if (conn->lib->PQsetnonblocking(conn->pg, 1) == 0 && conn->lib->PQenterPipelineMode(conn->pg) == 1)
        return 0;
    weft__pg_disconnect(conn);
    return -ENOTCONN;
}

void weft__pg_disconnect(weft_pg_conn *conn) {
    if (conn->pg)
        conn->lib->PQfinish(conn->pg);
    conn->pg = NULL;
    conn->queued = conn->failed = 0;
    conn->warned = false;
}

/* Waiting */

static int ms_until(int64_t at_ns) {
    int64_t left = at_ns - weft__clock_ns();
    return left <= 0 ? 0 : (int) (left / MS_NS) + 1;
}

/* The store stops: the wait may go on for the grace time and no longer. */
static int begin_grace(weft_pg_conn *conn) {
    if (!conn->grace_ms)
        return -ECANCELED;
    int64_t end_ns = weft__clock_ns() + conn->grace_ms * MS_NS;
    if (!conn->deadline_ns || conn->deadline_ns > end_ns)
        conn->deadline_ns = end_ns;
    conn->stop = -1;
    return 0;
}

/* 1 ready, 0 at_ns has come; -ECANCELED, -ETIMEDOUT. */
static int await_socket(weft_pg_conn *conn, short events, int64_t at_ns) {
    for (;;) {
        struct pollfd fds[] = {{.fd = conn->lib->PQsocket(conn->pg), .events = events},
                               {.fd = conn->stop, .events = POLLIN}};
        int64_t until_ns = at_ns && (!conn->deadline_ns || at_ns < conn->deadline_ns) ? at_ns : conn->deadline_ns;
        int n = poll(fds, 2, until_ns ? ms_until(until_ns) : -1);
        if (n > 0 && fds[0].revents)
            return 1;
        if (n > 0 && begin_grace(conn) < 0)
            return -ECANCELED;
        if (conn->deadline_ns && ms_until(conn->deadline_ns) == 0)
            return -ETIMEDOUT;
        if (at_ns && ms_until(at_ns) == 0)
            return 0;
    }
}

static int flush_queries(weft_pg_conn *conn) {
    int n;
    while ((n = conn->lib->PQflush(conn->pg)) == 1) {
        int r = await_socket(conn, POLLIN | POLLOUT, 0);
        if (r < 0)
            return r;
        if (!conn->lib->PQconsumeInput(conn->pg))
            return -ENOTCONN;
    }
    return n < 0 ? -ENOTCONN : 0;
}

static int next_result(weft_pg_conn *conn, PGresult **ret) {
    while (conn->lib->PQisBusy(conn->pg)) {
        int r = await_socket(conn, POLLIN, 0);
        if (r < 0)
            return r;
        if (!conn->lib->PQconsumeInput(conn->pg))
            return -ENOTCONN;
    }
    *ret = conn->lib->PQgetResult(conn->pg);
    return 0;
}

/* Sending */

static const int all_binary[WEFT_PG_PARAMS] = {1, 1, 1, 1, 1, 1, 1, 1};

static void note_sent(weft_pg_conn *conn, int sent) {
    if (!sent && !conn->failed)
        conn->failed = -ENOTCONN;
    conn->queued += sent;
}

void weft__pg_send(weft_pg_conn *conn, const char *sql, const weft_pg_params *params) {
    static const weft_pg_params none = {0};
    const weft_pg_params *p = params ? params : &none;
    note_sent(conn, conn->lib->PQsendQueryParams(conn->pg, sql, p->count, NULL, p->values, p->lengths, all_binary, 1));
}

void weft__pg_send_named(weft_pg_conn *conn, const char *name, const weft_pg_params *params) {
    static const weft_pg_params none = {0};
    const weft_pg_params *p = params ? params : &none;
    note_sent(conn, conn->lib->PQsendQueryPrepared(conn->pg, name, p->count, p->values, p->lengths, all_binary, 1));
}

void weft__pg_prepare(weft_pg_conn *conn, const char *name, const char *sql) {
    note_sent(conn, conn->lib->PQsendPrepare(conn->pg, name, sql, 0, NULL));
}

/* What an error of the database means to the store. By its class: the first two characters. */
static int errno_of_state(const char *state) {
    static const struct {
        const char *begins;
        int r;
    } rows[] = {
        {"53100", -ENOSPC},  {"53200", -ENOMEM},   {"53", -EAGAIN},    {"40", -EAGAIN},      {"57P05", -EAGAIN},
        {"57", -ENOTCONN},   {"25006", -ENOTCONN}, {"08", -ENOTCONN},  {"25P03", -ENOTCONN}, {"55P03", -EAGAIN},
        {"XX001", -EUCLEAN}, {"XX002", -EUCLEAN},  {"42501", -EACCES},
    };
    for (size_t i = 0; state && i < sizeof rows / sizeof rows[0]; i++)
        if (strncmp(state, rows[i].begins, strlen(rows[i].begins)) == 0)
            return rows[i].r;
    return state ? -EIO : -ENOTCONN;
}

static int take_result(weft_pg_conn *conn, PGresult *result, int r, PGresult **ret) {
    ExecStatusType status = conn->lib->PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        *ret = result;
        return r;
    }
    if (status == PGRES_FATAL_ERROR && r == 0) {
        const char *message = conn->lib->PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        keep_message(conn, message ? message : conn->lib->PQerrorMessage(conn->pg));
        r = errno_of_state(conn->lib->PQresultErrorField(result, PG_DIAG_SQLSTATE));
    }
    conn->lib->PQclear(result);
    return r;
}

/* Everything up to the end of the pipeline; each answer is followed by a NULL. */
static int collect_results(weft_pg_conn *conn, PGresult *ret[WEFT_PG_AHEAD]) {
    int failure = 0;
    for (int at = 0;;) {
        PGresult *result = NULL;
        int r = next_result(conn, &result);
        if (r < 0)
            return r;
        if (!result) {
            if (conn->lib->PQstatus(conn->pg) != CONNECTION_OK)
                return -ENOTCONN;
            at++;
            continue;
        }
        if (conn->lib->PQresultStatus(result) == PGRES_PIPELINE_SYNC) {
            conn->lib->PQclear(result);
            return failure;
        }
        PGresult *kept = NULL;
        failure = take_result(conn, result, failure, &kept);
        if (conn->lib->PQstatus(conn->pg) != CONNECTION_OK || at >= WEFT_PG_AHEAD || ret[at]) {
            conn->lib->PQclear(kept);
            return -ENOTCONN;
        }
        ret[at] = kept;
    }
}

int weft__pg_run(weft_pg_conn *conn, PGresult *ret[WEFT_PG_AHEAD]) {
    for (int i = 0; i < WEFT_PG_AHEAD; i++)
        ret[i] = NULL;
    if (!conn->pg)
        return -ENOTCONN;
    int r = conn->failed;
    if (r == 0 && !conn->lib->PQpipelineSync(conn->pg))
        r = -ENOTCONN;
    if (r == 0)
        r = flush_queries(conn);
    if (r == 0)
        r = collect_results(conn, ret);
    conn->queued = conn->failed = 0;
    if (r < 0)
        weft__pg_clear(conn, ret);
    if (conn->lib->PQstatus(conn->pg) != CONNECTION_OK)
        keep_message(conn, conn->lib->PQerrorMessage(conn->pg));
    return r;
}

int weft__pg_do(weft_pg_conn *conn) {
    PGresult *results[WEFT_PG_AHEAD];
    int r = weft__pg_run(conn, results);
    weft__pg_clear(conn, results);
    return r;
}

void weft__pg_clear(const weft_pg_conn *conn, PGresult *results[WEFT_PG_AHEAD]) {
    for (int i = 0; i < WEFT_PG_AHEAD; i++) {
        conn->lib->PQclear(results[i]);
        results[i] = NULL;
    }
}

/* Answers */

int64_t weft__pg_get_int(const weft_pg_conn *conn, const PGresult *result, int row, int column) {
    uint64_t big = 0;
    if (conn->lib->PQgetlength(result, row, column) != (int) sizeof big)
        return 0;
    memcpy(&big, conn->lib->PQgetvalue(result, row, column), sizeof big);
    return (int64_t) be64toh(big);
}

weft_bytes weft__pg_get_bytes(const weft_pg_conn *conn, const PGresult *result, int row, int column) {
    /* libpq puts a NUL behind each value, so a name can be used as a text. */
    return (weft_bytes){conn->lib->PQgetvalue(result, row, column), (size_t) conn->lib->PQgetlength(result, row, column)};
}

bool weft__pg_is_null(const weft_pg_conn *conn, const PGresult *result, int row, int column) {
    return conn->lib->PQgetisnull(result, row, column);
}

int weft__pg_rows(const weft_pg_conn *conn, const PGresult *result) {
    return conn->lib->PQntuples(result);
}

/* Notifications */

static bool take_notifications(weft_pg_conn *conn) {
    bool any = false;
    for (PGnotify *note; (note = conn->lib->PQnotifies(conn->pg)); any = true)
        conn->lib->PQfreemem(note);
    return any;
}

int weft__pg_listen(weft_pg_conn *conn, int wait_ms) {
    int64_t at_ns = wait_ms < 0 ? 0 : weft__clock_ns() + (int64_t) wait_ms * MS_NS;
    while (!take_notifications(conn)) {
        int r = await_socket(conn, POLLIN, at_ns);
        if (r <= 0)
            return r;
        if (!conn->lib->PQconsumeInput(conn->pg))
            return -ENOTCONN;
    }
    return 1;
}

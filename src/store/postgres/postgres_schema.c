/* The tables, and the statements that are used on them. Names, types and keys are bytes to the store, so they are bytes
 * here: no encoding and no order of a language has a say in them. For people: convert_from(type, 'UTF8'). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "postgres_store.h"

#define VERSION 1

static const char *const tables[] = {
    "CREATE TABLE weft_state (one boolean PRIMARY KEY DEFAULT true CHECK (one), version bigint NOT NULL, epoch text NOT "
    "NULL,"
    " owner text NOT NULL, head bigint NOT NULL DEFAULT 0, trimmed bigint NOT NULL DEFAULT 0,"
    " rows bigint NOT NULL DEFAULT 0, bytes bigint NOT NULL DEFAULT 0, streams bigint NOT NULL DEFAULT 0,"
    " place bigint NOT NULL DEFAULT 0, writes bigint NOT NULL DEFAULT 0) WITH (fillfactor = 10)",
    "CREATE TABLE weft_writer (id text PRIMARY KEY, boot bigint NOT NULL, turn bigint NOT NULL,"
    " seen timestamptz NOT NULL DEFAULT now()) WITH (fillfactor = 10)",
    "CREATE TABLE weft_stream (id bigint PRIMARY KEY, name bytea NOT NULL UNIQUE, head bigint NOT NULL,"
    " trimmed bigint NOT NULL DEFAULT 0, bytes bigint NOT NULL DEFAULT 0) WITH (fillfactor = 70)",
    "CREATE TABLE weft_event (gseq bigint PRIMARY KEY, stream bigint NOT NULL, seq bigint NOT NULL, time bigint NOT NULL,"
    " type bytea NOT NULL, key bytea, data bytea NOT NULL)",
    "CREATE UNIQUE INDEX weft_event_place ON weft_event (stream, seq)",
    "CREATE UNIQUE INDEX weft_event_key ON weft_event (key) WHERE key IS NOT NULL",
    "CREATE TABLE weft_document (key bytea PRIMARY KEY, place bigint NOT NULL UNIQUE, data bytea NOT NULL)"
    " WITH (fillfactor = 70)",
    "CREATE TABLE weft_counter (name text PRIMARY KEY, next bigint NOT NULL)",
};

#define STATE                                                                                                               \
    "version, epoch, owner, head, trimmed, rows, bytes, streams, writes, current_setting('synchronous_standby_names')"
#define EVENT "e.gseq, e.seq, e.time, e.type, e.data, s.name"
/* So many rows, and none behind one that reaches so many bytes: the last may be too many, which says that there are more.
 * The length of a value that is stored apart is known without fetching it. */
#define PAGE(where)                                                                                                         \
    "SELECT " EVENT " FROM (SELECT p.*, sum(length(p.data)) OVER (ORDER BY p.gseq) - length(p.data) AS before FROM"         \
    " (SELECT * FROM weft_event WHERE " where " LIMIT $2) p) e JOIN weft_stream s ON s.id = e.stream"                       \
    " WHERE e.before <= $3 ORDER BY e.gseq"

typedef struct statement {
    enum weft_pg_role role;
    const char *name, *sql;
} statement;

static const statement statements[] = {
    {WEFT_PG_WRITES, "begin", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"},
    {WEFT_PG_WRITES, "lock", "SELECT " STATE " FROM weft_state FOR UPDATE"},
    {WEFT_PG_WRITES, "writer", "SELECT boot, turn FROM weft_writer WHERE id = convert_from($1::bytea, 'UTF8')"},
    {WEFT_PG_WRITES, "streams", "SELECT name, id, head FROM weft_stream WHERE name = ANY ($1::bytea[])"},
    {WEFT_PG_WRITES, "keys",
     "SELECT k.key, k.gseq, e.gseq, e.seq, e.type, s.name FROM unnest($1::bytea[], $2::int8[]) AS a (key, count)"
     " JOIN weft_event k ON k.key = a.key AND k.key IS NOT NULL"
     " JOIN weft_event e ON e.gseq >= k.gseq AND e.gseq < k.gseq + a.count JOIN weft_stream s ON s.id = e.stream"},
    {WEFT_PG_WRITES, "counters", "SELECT name, next FROM weft_counter"},
    {WEFT_PG_WRITES, "missed", PAGE("gseq > $1::int8 ORDER BY gseq")},
    {WEFT_PG_WRITES, "put_events",
     "INSERT INTO weft_event (gseq, stream, seq, time, type, key, data) SELECT * FROM"
     " unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::bytea[], $6::bytea[], $7::bytea[])"},
    {WEFT_PG_WRITES, "put_streams",
     "INSERT INTO weft_stream AS s (id, name, head, bytes) SELECT * FROM"
     " unnest($1::int8[], $2::bytea[], $3::int8[], $4::int8[])"
     " ON CONFLICT (id) DO UPDATE SET head = excluded.head, bytes = s.bytes + excluded.bytes"},
    {WEFT_PG_WRITES, "drop_documents", "DELETE FROM weft_document WHERE key = ANY ($1::bytea[])"},
    {WEFT_PG_WRITES, "set_documents",
     "UPDATE weft_document d SET data = u.data FROM unnest($1::bytea[], $2::bytea[]) AS u (key, data) WHERE d.key = u.key"},
    {WEFT_PG_WRITES, "new_documents",
     "WITH made AS (INSERT INTO weft_document (key, place, data)"
     " SELECT u.key, s.place + row_number() OVER (ORDER BY u.n), u.data FROM"
     " unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS u (key, data, n), weft_state s"
     " WHERE NOT EXISTS (SELECT 1 FROM weft_document d WHERE d.key = u.key) RETURNING 1)"
     " UPDATE weft_state SET place = place + m.n FROM (SELECT count(*) AS n FROM made) m WHERE m.n > 0"},
    {WEFT_PG_WRITES, "put_counters",
     "INSERT INTO weft_counter (name, next) SELECT convert_from(name, 'UTF8'), next FROM"
     " unnest($1::bytea[], $2::int8[]) AS u (name, next) ON CONFLICT (name) DO UPDATE SET next = excluded.next"},
    {WEFT_PG_WRITES, "remove",
     "WITH old AS (SELECT gseq, stream, length($2::bytea) - length(data) AS more FROM weft_event WHERE gseq = ANY "
     "($1::int8[])"
     " AND type <> $3::bytea), cut AS (UPDATE weft_event e SET type = $3, data = $2 FROM old WHERE e.gseq = old.gseq),"
     " of AS (UPDATE weft_stream s SET bytes = s.bytes + o.more FROM (SELECT stream, sum(more) AS more FROM old"
     " GROUP BY stream) o WHERE s.id = o.stream)"
     " UPDATE weft_state SET bytes = bytes + (SELECT coalesce(sum(more), 0) FROM old)"},
    {WEFT_PG_WRITES, "put_state",
     "UPDATE weft_state SET head = $1::int8, rows = rows + $2::int8, bytes = bytes + $3::int8, streams = $4::int8,"
     " trimmed = $5::int8, writes = writes + 1"},
    {WEFT_PG_WRITES, "put_turn",
     "UPDATE weft_writer SET boot = $2::int8, turn = $3::int8, seen = now() WHERE id = convert_from($1::bytea, 'UTF8')"},
    {WEFT_PG_WRITES, "notify", "SELECT pg_notify(convert_from($1::bytea, 'UTF8'), '')"},
    {WEFT_PG_WRITES, "commit", "COMMIT"},
    {WEFT_PG_WRITES, "rollback", "ROLLBACK"},
    {WEFT_PG_WRITES, "standbys", "SELECT current_setting('synchronous_standby_names')"},
    /* Writes a word to the log and nothing else; its commit waits for all before it. */
    {WEFT_PG_WRITES, "barrier", "SELECT pg_logical_emit_message(true, 'weft', '')"},
    {WEFT_PG_WRITES, "stream", "SELECT id, head, trimmed, bytes FROM weft_stream WHERE name = $1::bytea"},
    {WEFT_PG_WRITES, "oldest", "SELECT gseq, seq, length(data)::int8 FROM weft_event ORDER BY gseq LIMIT $1::int8"},
    {WEFT_PG_WRITES, "oldest_of",
     "SELECT gseq, seq, length(data)::int8 FROM weft_event WHERE stream ="
     " (SELECT id FROM weft_stream WHERE name = $2::bytea) ORDER BY seq LIMIT $1::int8"},
    {WEFT_PG_WRITES, "cut",
     "WITH gone AS (DELETE FROM weft_event WHERE gseq <= $1::int8 RETURNING stream, seq, length(data) AS n)"
     " UPDATE weft_stream s SET trimmed = g.seq, bytes = s.bytes - g.n FROM"
     " (SELECT stream, max(seq) AS seq, sum(n) AS n FROM gone GROUP BY stream) g WHERE s.id = g.stream"},
    {WEFT_PG_WRITES, "cut_of",
     "WITH gone AS (DELETE FROM weft_event WHERE stream = $1::int8 AND seq <= $2::int8 RETURNING length(data) AS n)"
     " UPDATE weft_stream SET trimmed = $2, bytes = bytes - (SELECT coalesce(sum(n), 0) FROM gone) WHERE id = $1"},

    {WEFT_PG_READS, "begin", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
    {WEFT_PG_READS, "state",
     "SELECT " STATE ", (SELECT boot FROM weft_writer WHERE id = convert_from($1::bytea, 'UTF8')) FROM weft_state"},
    {WEFT_PG_READS, "page", PAGE("gseq > $1::int8 AND gseq <= $4::int8 ORDER BY gseq")},
    {WEFT_PG_READS, "page_of",
     PAGE("stream = (SELECT id FROM weft_stream WHERE name = $5::bytea) AND seq > $1::int8 AND gseq <= $4::int8 ORDER BY"
          " stream, seq")},
    {WEFT_PG_READS, "stream",
     "SELECT id, head, trimmed, (SELECT e.gseq FROM weft_event e WHERE e.stream = s.id ORDER BY e.seq LIMIT 1)"
     " FROM weft_stream s WHERE name = $1::bytea"},
    {WEFT_PG_READS, "first", "SELECT min(gseq) FROM weft_event"},
    {WEFT_PG_READS, "documents",
     "SELECT place, key, data FROM (SELECT p.*, sum(length(p.data)) OVER (ORDER BY p.place) - length(p.data) AS before FROM"
     " (SELECT * FROM weft_document WHERE place > $1::int8 ORDER BY place LIMIT $2::int8) p) d"
     " WHERE d.before <= $3::int8 ORDER BY place"},
    {WEFT_PG_READS, "document", "SELECT place, key, data FROM weft_document WHERE place > $1::int8 AND key = $2::bytea"},
    {WEFT_PG_READS, "commit", "COMMIT"},
    {WEFT_PG_READS, "rollback", "ROLLBACK"},
    {WEFT_PG_READS, "barrier", "SELECT pg_logical_emit_message(true, 'weft', '')"},
};
#define STATEMENTS (sizeof statements / sizeof statements[0])

/* Synchronous whatever the role or the database have set. An old session of ours whose machine is gone must not hold the
 * lock for hours, which is the usual time for keepalives. */
static const char *const settings[] = {
    "SET synchronous_commit = on",
    "SET idle_in_transaction_session_timeout = '10s'",
    "SET statement_timeout = 0",
    "SET lock_timeout = 0",
    "SET client_min_messages = warning",
    "SET tcp_keepalives_idle = 5",
    "SET tcp_keepalives_interval = 2",
    "SET tcp_keepalives_count = 3",
    "SET bytea_output = hex",
};
#define SETTINGS (sizeof settings / sizeof settings[0])

void weft__pg_channel(const weft_pg *pg, char ret[32]) {
    snprintf(ret, 32, "weft_%lld", (long long) atomic_load(&pg->schema));
}

/* With the lock that says who uses the journal, as long as the session lasts. */
static int lock_journal(weft_pg *pg, weft_pg_conn *conn) {
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params params = {0};
    weft__pg_int(&params, atomic_load(&pg->schema));
    weft__pg_send(conn,
                  pg->shared ? "SELECT pg_try_advisory_lock_shared(22912, $1::int8::int4)::int::int8"
                             : "SELECT pg_try_advisory_lock(22912, $1::int8::int4)::int::int8",
                  &params);
    int r = weft__pg_run(conn, results);
    if (r == 0 && weft__pg_get_int(conn, results[0], 0, 0) == 0)
        r = -EBUSY;
    weft__pg_clear(conn, results);
    return r;
}

static int find_schema(weft_pg *pg, weft_pg_conn *conn) {
    PGresult *results[WEFT_PG_AHEAD];
    weft__pg_send(conn, "SELECT oid::int8 FROM pg_namespace WHERE nspname = current_schema()", NULL);
    int r = weft__pg_run(conn, results);
    if (r == 0 && weft__pg_rows(conn, results[0]) == 1)
        atomic_store(&pg->schema, weft__pg_get_int(conn, results[0], 0, 0) & INT32_MAX);
    else if (r == 0)
        r = -ENOENT;
    weft__pg_clear(conn, results);
    return r;
}

int weft__pg_session(weft_pg *pg, weft_pg_conn *conn, enum weft_pg_role role) {
    int r = weft__pg_connect(conn, pg->url);
    for (size_t i = 0; r == 0 && i < SETTINGS; i++)
        weft__pg_send(conn, settings[i], NULL);
    if (r == 0)
        r = weft__pg_do(conn);
    if (r == 0)
        r = find_schema(pg, conn);
    if (r == 0 && role == WEFT_PG_WRITES)
        r = lock_journal(pg, conn);
    if (r < 0)
        weft__pg_disconnect(conn);
    return r;
}

int weft__pg_statements(weft_pg_conn *conn, enum weft_pg_role role) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < STATEMENTS; i++) {
        if (statements[i].role != role)
            continue;
        weft__pg_prepare(conn, statements[i].name, statements[i].sql);
        if (conn->queued == WEFT_PG_AHEAD - 1)
            r = weft__pg_do(conn);
    }
    return r == 0 ? weft__pg_do(conn) : r;
}

/* Making */

static int look_for_tables(weft_pg_conn *conn, int64_t *ret) {
    PGresult *results[WEFT_PG_AHEAD];
    weft__pg_send(conn,
                  "SELECT count(*) FROM pg_class WHERE relname = 'weft_state' AND relnamespace = "
                  "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())",
                  NULL);
    int r = weft__pg_run(conn, results);
    if (r == 0)
        *ret = weft__pg_get_int(conn, results[0], 0, 0);
    weft__pg_clear(conn, results);
    return r;
}

/* All or nothing; where two begin at once the second finds them. */
static int make_tables(weft_pg *pg, weft_pg_conn *conn) {
    char epoch[WEFT_EPOCH + 1];
    int64_t found = 0;
    weft_pg_params schema = {0}, first = {0};
    int r = weft__epoch_new(epoch);
    if (r < 0)
        return r;
    weft__pg_int(&schema, atomic_load(&pg->schema));
    weft__pg_send(conn, "BEGIN", NULL);
    weft__pg_send(conn, "SELECT pg_advisory_xact_lock(22913, $1::int8::int4)", &schema);
    r = weft__pg_do(conn);
    if (r == 0)
        r = look_for_tables(conn, &found);
    for (size_t i = 0; r == 0 && !found && i < sizeof tables / sizeof tables[0]; i++)
        weft__pg_send(conn, tables[i], NULL);
    weft__pg_text(&first, epoch);
    weft__pg_int(&first, VERSION);
    if (r == 0 && !found)
        weft__pg_send(
            conn, "INSERT INTO weft_state (version, epoch, owner) VALUES ($2::int8, convert_from($1::bytea, 'UTF8'), '')",
            &first);
    if (r == 0)
        weft__pg_send(conn, "COMMIT", NULL);
    return r == 0 ? weft__pg_do(conn) : r;
}

static int check_version(weft_pg_conn *conn, char *ret_why) {
    PGresult *results[WEFT_PG_AHEAD];
    weft__pg_send(conn, "SELECT version FROM weft_state", NULL);
    int r = weft__pg_run(conn, results);
    int64_t version = r == 0 && weft__pg_rows(conn, results[0]) == 1 ? weft__pg_get_int(conn, results[0], 0, 0) : 0;
    if (r == 0)
        weft__pg_clear(conn, results);
    if (r == 0 && version != VERSION) {
        r = version > VERSION ? -ENOTSUP : -EINVAL;
        snprintf(ret_why, WEFT_STORE_WHY, "%s",
                 version > VERSION ? "the journal was written by a newer version of Weft" : "it is not a journal of Weft");
    }
    return r;
}

int weft__pg_migrate(weft_pg *pg, weft_pg_conn *conn, char *ret_why) {
    int64_t found = 0;
    int r = look_for_tables(conn, &found);
    if (r == 0 && !found)
        r = make_tables(pg, conn);
    return r == 0 ? check_version(conn, ret_why) : r;
}

/* The state */

void weft__pg_begin(weft_pg_conn *conn) {
    weft__pg_send_named(conn, "begin", NULL);
    weft__pg_send_named(conn, "lock", NULL);
}

/* "FIRST 2 (a, b, c)", "ANY 2 (a, b, c)", "2 (a, b, c)", "a, b", "*"; "" is none. */
int weft__pg_count_standbys(const char *names) {
    while (*names == ' ')
        names++;
    if (!*names)
        return 0;
    if (!strchr(names, '('))
        return 1;
    while (*names != '(' && (*names < '0' || *names > '9'))
        names++;
    int count = atoi(names);
    return count > 0 ? count : 1;
}

static void take_word(const weft_pg_conn *conn, const PGresult *result, int column, char ret[WEFT_EPOCH + 1]) {
    weft_bytes word = weft__pg_get_bytes(conn, result, 0, column);
    snprintf(ret, WEFT_EPOCH + 1, "%.*s", (int) word.len, word.data);
}

int weft__pg_take_state(const weft_pg_conn *conn, const PGresult *result, weft_pg_state *ret) {
    if (weft__pg_rows(conn, result) != 1)
        return -EUCLEAN;
    int64_t *const numbers[] = {&ret->head, &ret->trimmed, &ret->rows, &ret->bytes, &ret->streams, &ret->writes};
    ret->version = weft__pg_get_int(conn, result, 0, 0);
    take_word(conn, result, 1, ret->epoch);
    take_word(conn, result, 2, ret->owner);
    for (int i = 0; i < 6; i++)
        *numbers[i] = weft__pg_get_int(conn, result, 0, 3 + i);
    ret->standbys = weft__pg_count_standbys(weft__pg_get_bytes(conn, result, 0, 9).data);
    return 0;
}

weft_event weft__pg_take_event(const weft_pg_conn *conn, const PGresult *result, int row) {
    return (weft_event){
        .gseq = (uint64_t) weft__pg_get_int(conn, result, row, 0),
        .seq = (uint64_t) weft__pg_get_int(conn, result, row, 1),
        .time_ms = weft__pg_get_int(conn, result, row, 2),
        .type = weft__pg_get_bytes(conn, result, row, 3).data,
        .data = weft__pg_get_bytes(conn, result, row, 4),
        .stream = weft__pg_get_bytes(conn, result, row, 5).data,
    };
}

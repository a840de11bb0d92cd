/* Durable appends on PostgreSQL beside a bare program that sends the same SQL over libpq, in the same run, to the same
 * database: so many clients, each with one append of 200 bytes under way, against one transaction for so many events.
 *
 *     append_postgres URL [SECONDS]     2
 *
 * The database must be one for this alone; the journals stay in it, in the schemas bare and ours. Rounds alternate, and each
 * figure is the median of its rounds. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/median.h"
#include "postgres_store.h"

#define ROUNDS 7
#define PAYLOAD 200
#define MAX_CLIENTS 256

static char payload[PAYLOAD + 1];

static double now_s(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

static void give_up(const char *what, const char *why) {
    fprintf(stderr, "append_postgres: %s: %s\n", what, why);
    exit(1);
}

static weft_store *open_ours(const char *url, const char *schema) {
    char whole[512], why[WEFT_STORE_WHY];
    weft_store *store;
    snprintf(whole, sizeof whole, "%s&options=-csearch_path%%3D%s", url, schema);
    if (weft__store_open(&weft__postgres, &(weft_store_opts){.url = whole, .max_queue = (size_t) 1 << 30}, &store, why) < 0)
        give_up(schema, why);
    return store;
}

/* ---- bare ---- */

typedef struct bare {
    weft_pg_lib lib;
    weft_pg_conn conn;
    weft_pg_array arrays[WEFT_PG_ARRAYS];
    char id[WEFT_EPOCH + 1];
    int64_t head, heads[MAX_CLIENTS], turn;
} bare;

static void must(bare *b, int r, const char *what) {
    if (r < 0)
        give_up(what, *b->conn.why ? b->conn.why : weft_strerror(r));
}

/* A journal as the store makes it, and a writer's row in it. */
static void open_bare(bare *b, const char *url) {
    char whole[512];
    weft_pg_params writer = {0};
    weft__store_close(open_ours(url, "bare"));
    snprintf(whole, sizeof whole, "%s&options=-csearch_path%%3Dbare", url);
    must(b, weft__pg_lib_load(&b->lib), "libpq");
    b->conn = (weft_pg_conn){.lib = &b->lib, .stop = -1};
    must(b, weft__pg_connect(&b->conn, whole), "connect");
    must(b, weft__pg_statements(&b->conn, WEFT_PG_WRITES), "prepare");
    must(b, weft__epoch_new(b->id), "random");
    weft__pg_text(&writer, b->id);
    weft__pg_send(&b->conn, "INSERT INTO weft_writer VALUES (convert_from($1::bytea, 'UTF8'), 0, 0)", &writer);
    for (int i = 0; i < MAX_CLIENTS; i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "INSERT INTO weft_stream (id, name, head) VALUES (%d, 'client%d', 0)", i + 1, i);
        weft__pg_send(&b->conn, sql, NULL);
        if (b->conn.queued == WEFT_PG_AHEAD - 1)
            must(b, weft__pg_do(&b->conn), "streams");
    }
    must(b, weft__pg_do(&b->conn), "streams");
}

static void add_bare(bare *b, int client) {
    char name[32];
    int n = snprintf(name, sizeof name, "client%d", client);
    weft__pg_array_int(&b->arrays[0], NULL, ++b->head);
    weft__pg_array_int(&b->arrays[1], NULL, client + 1);
    weft__pg_array_int(&b->arrays[2], NULL, ++b->heads[client]);
    weft__pg_array_int(&b->arrays[3], NULL, 1);
    weft__pg_array_bytes(&b->arrays[4], NULL, "task.submitted", 14);
    weft__pg_array_bytes(&b->arrays[5], NULL, NULL, 0);
    weft__pg_array_bytes(&b->arrays[6], NULL, payload, PAYLOAD);
    weft__pg_array_bytes(&b->arrays[7], NULL, name, (size_t) n);
}

static void append_bare(bare *b, int batch) {
    weft_pg_params events = {0}, streams = {0}, state = {0}, turn = {0};
    weft_pg_array bytes = {0};
    weft__pg_begin(&b->conn);
    must(b, weft__pg_do(&b->conn), "begin");
    for (int i = 0; i < WEFT_PG_ARRAYS; i++)
        weft__pg_array_begin(&b->arrays[i], NULL, i >= 4);
    weft__pg_array_begin(&bytes, NULL, false);
    for (int i = 0; i < batch; i++) {
        add_bare(b, i);
        weft__pg_array_int(&bytes, NULL, PAYLOAD);
    }
    for (int i = 0; i < 7; i++)
        weft__pg_array(&events, &b->arrays[i]);
    weft__pg_send_named(&b->conn, "put_events", &events);
    weft__pg_array(&streams, &b->arrays[1]);
    weft__pg_array(&streams, &b->arrays[7]);
    weft__pg_array(&streams, &b->arrays[2]);
    weft__pg_array(&streams, &bytes);
    weft__pg_send_named(&b->conn, "put_streams", &streams);
    weft__pg_int(&state, b->head);
    weft__pg_int(&state, batch);
    weft__pg_int(&state, (int64_t) batch * PAYLOAD);
    weft__pg_int(&state, MAX_CLIENTS);
    weft__pg_int(&state, 0);
    weft__pg_send_named(&b->conn, "put_state", &state);
    weft__pg_text(&turn, b->id);
    weft__pg_int(&turn, 1);
    weft__pg_int(&turn, ++b->turn);
    weft__pg_send_named(&b->conn, "put_turn", &turn);
    weft__pg_send_named(&b->conn, "commit", NULL);
    weft__pg_send_named(&b->conn, "standbys", NULL);
    must(b, weft__pg_do(&b->conn), "append");
    weft__buf_done(&bytes.bytes, NULL);
}

static double bare_rate(bare *b, int batch, double seconds) {
    double start = now_s(), end = start;
    long done = 0;
    for (; end < start + seconds; end = now_s(), done += batch)
        append_bare(b, batch);
    return (double) done / (end - start);
}

/* ---- ours ---- */

typedef struct load {
    weft_store *store;
    double until;
    long done, under_way;
} load;

static void append_next(load *l, int client);

static void appended(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    load *l = ctx;
    (void) count;
    (void) repeat;
    if (r < 0)
        give_up("append", weft_strerror(r));
    l->done++;
    l->under_way--;
    if (now_s() < l->until)
        append_next(l, atoi(events[0].stream + 6));
}

static void append_next(load *l, int client) {
    char stream[32];
    snprintf(stream, sizeof stream, "client%d", client);
    weft_event event = {.stream = stream, .type = "task.submitted", .data = {payload, PAYLOAD}, .time_ms = 1};
    if (weft__store_append(l->store, &(weft_append){&event, 1, NULL}, appended, l) < 0)
        give_up("append", "refused");
    l->under_way++;
}

/* As the hub does it: what one turn of the loop appends goes on together. */
static void on_held(void *ctx) {
    (void) ctx;
}

static double our_rate(weft_store *store, int clients, double seconds) {
    double start = now_s();
    load l = {.store = store, .until = start + seconds};
    weft__store_hold(store, on_held, NULL);
    for (int i = 0; i < clients; i++)
        append_next(&l, i);
    while (l.under_way) {
        struct pollfd ready = {.fd = weft__store_fd(store), .events = POLLIN};
        weft__store_release(store);
        poll(&ready, 1, -1);
        weft__store_dispatch(store);
    }
    return (double) l.done / (now_s() - start);
}

static void compare(bare *b, weft_store *store, int clients, double seconds) {
    double raw[ROUNDS], ours[ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        raw[i] = bare_rate(b, clients, seconds / ROUNDS);
        ours[i] = our_rate(store, clients, seconds / ROUNDS);
        ratio[i] = ours[i] / raw[i];
    }
    printf("%7d  %12.0f  %12.0f  %8.2f\n", clients, median(raw, ROUNDS), median(ours, ROUNDS), median(ratio, ROUNDS));
}

static void make_schemas(const char *url) {
    static weft_pg_lib lib;
    weft_pg_conn conn = {.lib = &lib, .stop = -1};
    if (weft__pg_lib_load(&lib) < 0 || weft__pg_connect(&conn, url) < 0)
        give_up("connect", *conn.why ? conn.why : "libpq.so.5 is not installed");
    weft__pg_send(&conn, "CREATE SCHEMA bare", NULL);
    weft__pg_send(&conn, "CREATE SCHEMA ours", NULL);
    if (weft__pg_do(&conn) < 0)
        give_up("schemas", conn.why);
    weft__pg_disconnect(&conn);
}

int main(int argc, char **argv) {
    static bare b;
    static const int clients[] = {1, 16, 64, MAX_CLIENTS};
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    if (argc < 2 || !strchr(argv[1], '?'))
        give_up("usage", "append_postgres 'postgresql:///NAME?host=FOLDER' [SECONDS]");
    memset(payload, 'x', PAYLOAD);
    make_schemas(argv[1]);
    open_bare(&b, argv[1]);
    weft_store *store = open_ours(argv[1], "ours");
    printf("clients  libpq, /s     store, /s     ratio   (200-byte events, durable)\n");
    for (size_t i = 0; i < sizeof clients / sizeof clients[0]; i++)
        compare(&b, store, clients[i], seconds);
    weft__store_close(store);
    weft__pg_disconnect(&b.conn);
    for (int i = 0; i < WEFT_PG_ARRAYS; i++)
        weft__buf_done(&b.arrays[i].bytes, NULL);
    return 0;
}

/* Durable appends beside the bare disk: so many clients, each with one append under way, acknowledged after the sync; and,
 * in the same run and folder, the same bytes appended to a file with fdatasync, one by one and a client's worth at a time.
 * Then the replay of 10,000 events out of a journal of a million, as a follower gets it and in pages of other sizes.
 *
 *     append [SECONDS [FOLDER]]     2 and the current folder, where the disk is the one that matters
 *
 * It prints and asserts nothing. Rounds alternate between the disk and the store, because other work on the disk comes and
 * goes within a second; each figure is the median of its rounds. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/median.h"
#include "store.h"

#define ROUNDS 7
#define PAYLOAD 200
#define MAX_CLIENTS 64
#define JOURNAL 1000000
#define REPLAY 10000
#define STREAMS 100

typedef struct load {
    weft_store *store;
    double until;
    long done, under_way;
} load;

static char payload[PAYLOAD + 1];

static double now_s(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

static void give_up(const char *what, const char *why) {
    fprintf(stderr, "append: %s: %s\n", what, why);
    exit(1);
}

/* The disk: appends a second, a batch for each sync. */
static double raw_rate(const char *folder, int batch, double seconds) {
    char path[512], block[MAX_CLIENTS * PAYLOAD];
    snprintf(path, sizeof path, "%s/raw", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        give_up(path, strerror(errno));
    for (int i = 0; i < batch; i++)
        memcpy(block + i * PAYLOAD, payload, PAYLOAD);
    double start = now_s(), end = start;
    long done = 0;
    for (; end < start + seconds; end = now_s(), done += batch)
        if (write(fd, block, (size_t) batch * PAYLOAD) < 0 || fdatasync(fd) < 0)
            give_up(path, strerror(errno));
    close(fd);
    return (double) done / (end - start);
}

static void dispatch_once(weft_store *store) {
    struct pollfd ready = {.fd = weft__store_fd(store), .events = POLLIN};
    poll(&ready, 1, -1);
    weft__store_dispatch(store);
}

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

static double store_rate(weft_store *store, int clients, double seconds) {
    double start = now_s();
    load l = {.store = store, .until = start + seconds};
    for (int i = 0; i < clients; i++)
        append_next(&l, i);
    while (l.under_way)
        dispatch_once(store);
    return (double) l.done / (now_s() - start);
}

static weft_store *open_store(const char *folder, const char *name, weft_check check) {
    char path[512], why[WEFT_STORE_WHY];
    weft_store *store;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (weft__store_open(&weft__sqlite, &(weft_store_opts){.path = path, .check = check, .max_queue = (size_t) 1 << 30},
                         &store, why) < 0)
        give_up(path, why);
    return store;
}

static void compare(const char *folder, weft_store *store, int clients, double seconds) {
    double raw[ROUNDS], ours[ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        raw[i] = raw_rate(folder, clients, seconds / ROUNDS);
        ours[i] = store_rate(store, clients, seconds / ROUNDS);
        ratio[i] = ours[i] / raw[i];
    }
    printf("%7d  %12.0f  %12.0f  %8.2f\n", clients, median(raw, ROUNDS), median(ours, ROUNDS), median(ratio, ROUNDS));
}

/* Replay */

static void fill_journal(const char *folder) {
    weft_store *store = open_store(folder, "million.db", WEFT_CHECK_AUTO);
    static weft_event events[1000];
    static char names[STREAMS][16];
    for (int i = 0; i < STREAMS; i++)
        snprintf(names[i], sizeof names[i], "stream%d", i);
    for (int i = 0; i < JOURNAL / 1000; i++) {
        for (int j = 0; j < 1000; j++)
            events[j] = (weft_event){.stream = names[(i * 7 + j) % STREAMS], .type = "output", .data = {payload, PAYLOAD}};
        if (weft__store_append(store, &(weft_append){events, 1000, NULL}, NULL, NULL) < 0)
            dispatch_once(store), i--;
    }
    weft__store_close(store);
}

typedef struct replay {
    long events, pages;
    bool live;
    double longest; /* of one dispatch */
} replay;

static void replay_events(void *ctx, const weft_event *events, size_t count) {
    replay *r = ctx;
    (void) events;
    r->events += (long) count;
    r->pages++;
}

static void replay_live(void *ctx) {
    ((replay *) ctx)->live = true;
}

static void replay_end(void *ctx, int why) {
    (void) ctx;
    if (why != -ECANCELED)
        give_up("replay", "ended");
}

static void replay_once(weft_store *store, const weft_query *query, const char *what) {
    static const weft_follower follower = {.on_events = replay_events, .on_live = replay_live, .on_end = replay_end};
    replay r = {0};
    weft_follow *follow;
    double start = now_s();
    if (weft__store_follow(store, query, &follower, &r, &follow) < 0)
        give_up("follow", "refused");
    while (!r.live) {
        struct pollfd ready = {.fd = weft__store_fd(store), .events = POLLIN};
        poll(&ready, 1, -1);
        double before = now_s();
        weft__store_dispatch(store);
        double took = now_s() - before;
        r.longest = took > r.longest ? took : r.longest;
    }
    double took = now_s() - start;
    weft__follow_free(follow);
    printf("%-28s  %6ld events  %4ld pages  %7.2f ms  a page is read in %6.0f us, handed over in at most %5.0f us\n", what,
           r.events, r.pages, took * 1e3, took / (double) r.pages * 1e6, r.longest * 1e6);
}

static void measure_replay(const char *folder) {
    double start = now_s();
    fill_journal(folder);
    double filled = now_s();
    weft_store *store = open_store(folder, "million.db", WEFT_CHECK_AUTO);
    double opened = now_s();
    printf("\na journal of %d events: written in large appends in %.1f s, opened after a clean stop in %.1f ms\n", JOURNAL,
           filled - start, (opened - filled) * 1e3);
    for (int i = 0; i < 2; i++) {
        replay_once(store, &(weft_query){.after = JOURNAL / 2}, i ? "half of all, again" : "half of all");
        replay_once(store, &(weft_query){.after = JOURNAL - REPLAY}, "the last 10,000 of all");
        replay_once(store, &(weft_query){.stream = "stream7"}, "one stream of 10,000");
        replay_once(store, &(weft_query){.stream = "stream7", .max_events = 4096, .max_bytes = 4 << 20},
                    "in pages of 4,096");
        replay_once(store, &(weft_query){.stream = "stream7", .max_events = 32}, "in pages of 32");
    }
    weft__store_close(store);
    start = now_s();
    store = open_store(folder, "million.db", WEFT_CHECK_ALWAYS);
    printf("opened with the full check of an unclean stop in %.1f s\n", now_s() - start);
    weft__store_close(store);
}

static void remove_folder(const char *folder) {
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    char folder[256];
    snprintf(folder, sizeof folder, "%s/weft-append-XXXXXX", argc > 2 ? argv[2] : ".");
    if (!mkdtemp(folder))
        give_up(folder, strerror(errno));
    memset(payload, 'x', PAYLOAD);
    weft_store *store = open_store(folder, "weft.db", WEFT_CHECK_AUTO);
    store_rate(store, MAX_CLIENTS, seconds / 4);
    printf("clients   raw write/s  durable app/s     ratio   (%d bytes; raw: one fdatasync per append, or per batch of that "
           "many)\n",
           PAYLOAD);
    compare(folder, store, 1, seconds);
    compare(folder, store, MAX_CLIENTS, seconds);
    weft__store_close(store);
    measure_replay(folder);
    remove_folder(folder);
    return 0;
}

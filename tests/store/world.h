/* A store in a folder of its own, and calls that wait for their completion. Nothing sleeps: the test waits in poll() for the
 * store's descriptor, as a loop would. Everything is static and inline, so that each test program takes only this header. */
#ifndef STORE_WORLD_H
#define STORE_WORLD_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "store.h"

/* Nothing here takes a tenth of it, also under a sanitizer on a busy machine. */
#define WORLD_PATIENCE_MS 60000

typedef struct store_world {
    const weft_store_kind *kind;
    weft_store *store;
    weft_store_opts opts;
    char folder[64];
    char path[96];
    char url[256]; /* for kinds that have their journal elsewhere */
    char why[WEFT_STORE_WHY];
} store_world;

/* The outcome of one call, and how often it completed. */
typedef struct store_outcome {
    int times, r;
    bool repeat;
    uint64_t seq, gseq, last, head, trimmed, removed; /* seq, gseq: of the first event */
    size_t count;
    bool more;
    char text[4096]; /* a page, as "seq:data seq:data " */
} store_outcome;

static inline bool world_open(store_world *world) {
    return weft__store_open(world->kind, &world->opts, &world->store, world->why) == 0;
}

static inline void world_init(store_world *world, const weft_store_kind *kind) {
    /* In memory where that is possible: what these tests ask of a disk they simulate, and the real one is slow and shared.
     */
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    *world = (store_world){.kind = kind};
    snprintf(world->folder, sizeof world->folder, "%s/weft-store-XXXXXX", where);
    if (!mkdtemp(world->folder))
        abort();
    snprintf(world->path, sizeof world->path, "%s/weft.db", world->folder);
    world->opts.path = world->path;
}

static inline void world_empty(const char *folder) {
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[sizeof entry->d_name + 80];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (dir)
        closedir(dir);
}

/* Where the frames of SQLite's log end: room that was written ahead lies behind. */
static inline size_t world_log_end(const char *log, size_t len) {
    size_t end = 32, page = 4096, frame = 24 + page;
    for (size_t at = end; at + frame <= len; at += frame)
        if (memcmp(log + at + 8, log + 16, 8) == 0)
            end = at + frame;
    return end < len ? end : len;
}

static inline void world_done(store_world *world) {
    world->store = weft__store_close(world->store);
    world_empty(world->folder);
    rmdir(world->folder);
}

static inline void world_reopen(store_world *world) {
    world->store = weft__store_close(world->store);
    if (!CHECK(world_open(world)))
        printf("  %s\n", world->why);
}

/* Dispatch until *times is as high as this; false when nothing happens any more. */
static inline bool world_wait(store_world *world, const int *times, int want) {
    weft__store_release(world->store); /* an engine on the same store may have it hold appends */
    while (*times < want) {
        struct pollfd ready = {.fd = weft__store_fd(world->store), .events = POLLIN};
        if (poll(&ready, 1, WORLD_PATIENCE_MS) != 1)
            return test_check(false, __FILE__, __LINE__, "the store said nothing");
        weft__store_dispatch(world->store);
    }
    return true;
}

static inline void world_appended(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    store_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    outcome->repeat = repeat;
    outcome->count = count;
    outcome->seq = count ? events[0].seq : 0;
    outcome->gseq = count ? events[0].gseq : 0;
}

static inline void world_read_done(void *ctx, int r, const weft_page *page) {
    store_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    if (!page)
        return;
    outcome->count = page->count;
    outcome->last = page->last;
    outcome->head = page->head;
    outcome->trimmed = page->trimmed;
    outcome->more = page->more;
    size_t n = 0;
    for (size_t i = 0; i < page->count && n < sizeof outcome->text; i++)
        n += (size_t) snprintf(outcome->text + n, sizeof outcome->text - n, "%s%llu:%.*s", i ? " " : "",
                               (unsigned long long) page->events[i].seq, (int) page->events[i].data.len,
                               page->events[i].data.data);
}

static inline void world_trimmed(void *ctx, int r, uint64_t removed) {
    store_outcome *outcome = ctx;
    outcome->times++;
    outcome->r = r;
    outcome->removed = removed;
}

static inline weft_event world_event(const char *stream, const char *data) {
    return (weft_event){.stream = stream, .type = "note", .data = {data, strlen(data)}, .time_ms = 1000};
}

/* r of the call, or else of the completion. */
static inline int world_append_key(store_world *world, const char *stream, const char *data, const char *key,
                                   store_outcome *ret) {
    weft_event event = world_event(stream, data);
    *ret = (store_outcome){0};
    int r = weft__store_append(world->store, &(weft_append){&event, 1, key}, world_appended, ret);
    return r < 0 ? r : world_wait(world, &ret->times, 1) ? ret->r : -ETIMEDOUT;
}

static inline int world_append(store_world *world, const char *stream, const char *data) {
    store_outcome outcome;
    return world_append_key(world, stream, data, NULL, &outcome);
}

static inline void world_fill(store_world *world, const char *stream, int count) {
    store_outcome outcome = {0};
    for (int i = 0; i < count; i++) {
        char data[32];
        snprintf(data, sizeof data, "%d", i + 1);
        weft_event event = world_event(stream, data);
        CHECK_INT(weft__store_append(world->store, &(weft_append){&event, 1, NULL}, world_appended, &outcome), 0);
    }
    world_wait(world, &outcome.times, count);
    CHECK_INT(outcome.r, 0);
}

static inline int world_read(store_world *world, const weft_query *query, store_outcome *ret) {
    *ret = (store_outcome){0};
    int r = weft__store_read(world->store, query, world_read_done, ret);
    return r < 0 ? r : world_wait(world, &ret->times, 1) ? ret->r : -ETIMEDOUT;
}

static inline int world_trim(store_world *world, const weft_trim *trim, store_outcome *ret) {
    *ret = (store_outcome){0};
    int r = weft__store_trim(world->store, trim, world_trimmed, ret);
    return r < 0 ? r : world_wait(world, &ret->times, 1) ? ret->r : -ETIMEDOUT;
}

/* The allocator of the harness, for several threads. */
typedef struct world_memory {
    test_memory memory;
    pthread_mutex_t lock;
    weft_alloc alloc;
} world_memory;

static inline void *world_resize(void *ctx, void *ptr, size_t size) {
    world_memory *memory = ctx;
    pthread_mutex_lock(&memory->lock);
    void *result = memory->memory.alloc.resize(memory->memory.alloc.ctx, ptr, size);
    pthread_mutex_unlock(&memory->lock);
    return result;
}

static inline void world_memory_init(world_memory *memory, long fail_at) {
    test_memory_init(&memory->memory, fail_at);
    pthread_mutex_init(&memory->lock, NULL);
    memory->alloc = (weft_alloc){world_resize, memory};
}

#endif

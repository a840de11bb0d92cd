/* What a journal has said is durable, and whether it still is: each acknowledged event is there once, under the seq it was
 * given, and no seq is used twice. */
#ifndef STORE_HISTORY_H
#define STORE_HISTORY_H

#include "store/world.h"

#define HISTORY_STREAMS 100
#define CONTENT 24 /* characters of data that identify an event */

/* What was acknowledged: by stream and seq, the content; "" where nothing is known. */
typedef struct known {
    char (*content)[CONTENT + 1];
    size_t cap;
    uint64_t head;  /* the highest acknowledged */
    uint64_t floor; /* the highest found in the journal: written, heard of or not, and not to be given again */
} known;

static known history_streams[HISTORY_STREAMS];
static char history_epoch[WEFT_EPOCH + 1];
static long history_acknowledged;

static inline known *history_stream(const char *name) {
    unsigned n = name[0] == 'w' ? (unsigned) atoi(name + 1) : HISTORY_STREAMS;
    return n < HISTORY_STREAMS ? &history_streams[n] : NULL;
}

/* "epoch EPOCH", or "STREAM SEQ CONTENT". */
static inline void history_note(const char *line) {
    char name[32], content[CONTENT + 1];
    unsigned long long seq;
    if (strncmp(line, "epoch ", 6) == 0 && strlen(line) > WEFT_EPOCH + 6) {
        CHECK(!*history_epoch || strncmp(history_epoch, line + 6, WEFT_EPOCH) == 0);
        memcpy(history_epoch, line + 6, WEFT_EPOCH);
        return;
    }
    known *stream = sscanf(line, "%31s %llu %24s", name, &seq, content) == 3 ? history_stream(name) : NULL;
    REQUIRE(stream && seq > 0);
    if (seq >= stream->cap) {
        size_t cap = (size_t) seq * 2;
        stream->content = realloc(stream->content, cap * sizeof *stream->content);
        memset(stream->content + stream->cap, 0, (cap - stream->cap) * sizeof *stream->content);
        stream->cap = cap;
    }
    /* Acknowledged once, and never again. */
    CHECK(!stream->content[seq][0] && seq > stream->floor);
    memcpy(stream->content[seq], content, sizeof content);
    stream->head = seq > stream->head ? seq : stream->head;
    history_acknowledged++;
}

typedef struct history_look {
    known *stream;
    int times, r;
    uint64_t last, head;
    bool more;
} history_look;

static inline void history_page(void *ctx, int r, const weft_page *page) {
    history_look *a = ctx;
    a->times++;
    a->r = r;
    a->more = page && page->more;
    for (size_t i = 0; page && i < page->count; i++) {
        const weft_event *event = &page->events[i];
        const char *was = event->seq < a->stream->cap ? a->stream->content[event->seq] : "";
        if (*was)
            CHECK(strncmp(was, event->data.data, CONTENT) == 0);
    }
    if (page) {
        a->last = page->last;
        a->head = page->head;
    }
}

/* Pages are without holes, which the store's own suite shows; so the head and the content of each are enough. */
static inline void history_audit(const weft_store_kind *kind, const weft_store_opts *opts) {
    store_world world = {.kind = kind, .opts = *opts};
    if (!CHECK(world_open(&world))) {
        printf("  %s\n", world.why);
        return;
    }
    CHECK_STR(world.why, "");
    CHECK_STR(weft__store_epoch(world.store), history_epoch);
    for (int i = 0; i < HISTORY_STREAMS; i++) {
        char name[16];
        history_look a = {.stream = &history_streams[i], .more = true};
        snprintf(name, sizeof name, "w%d", i);
        while (a.more && a.r == 0) {
            weft_query query = {.stream = name, .after = a.last, .oldest = true, .max_events = 1000, .max_bytes = 1 << 22};
            int before = a.times;
            CHECK_INT(weft__store_read(world.store, &query, history_page, &a), 0);
            world_wait(&world, &a.times, before + 1);
        }
        CHECK_INT(a.r, 0);
        CHECK(a.head >= history_streams[i].head);
        history_streams[i].floor = a.head;
    }
    weft__store_close(world.store);
}

static inline void history_forget(void) {
    for (int i = 0; i < HISTORY_STREAMS; i++) {
        free(history_streams[i].content);
        history_streams[i] = (known){0};
    }
    *history_epoch = '\0';
    history_acknowledged = 0;
}

#endif

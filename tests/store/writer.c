/* store_writer PATH|URL SEED: open the journal, let 64 writers append to it as fast as they can, and print a line for each
 * acknowledged event: its stream, its seq and what its data begins with. It is there to be killed; it never ends by itself,
 * unless its reader goes.
 *
 * Writers append one to three events at a time, some with a key, some large; now and then the journal is trimmed. */
#include <stdio.h>
#include <stdlib.h>

#include "store/world.h"

#define WRITERS 64
#define KEEP 3000 /* events kept of a stream when it is trimmed */

typedef struct program {
    store_world world;
    unsigned seed;
    char lines[1 << 16];
    size_t len;
} program;

typedef struct writer {
    program *program;
    int number;
    unsigned turn;
} writer;

static unsigned next_random(program *p) {
    p->seed = p->seed * 1664525u + 1013904223u;
    return p->seed >> 8;
}

/* To the pipe in whole lines, because what was printed is what was acknowledged. */
static void flush(program *p) {
    for (size_t done = 0; done < p->len;) {
        ssize_t n = write(STDOUT_FILENO, p->lines + done, p->len - done);
        if (n <= 0)
            _exit(0);
        done += (size_t) n;
    }
    p->len = 0;
}

static void append_next(writer *w);

static void acknowledged(void *ctx, int r, const weft_event *events, size_t count, bool repeat) {
    writer *w = ctx;
    program *p = w->program;
    if (r < 0 || repeat) {
        fprintf(stderr, "writer %d: %s\n", w->number, repeat ? "a repeat" : weft_strerror(r));
        _exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        if (sizeof p->lines - p->len < 128)
            flush(p);
        p->len += (size_t) snprintf(p->lines + p->len, sizeof p->lines - p->len, "%s %llu %.24s\n", events[i].stream,
                                    (unsigned long long) events[i].seq, events[i].data.data);
    }
    append_next(w);
}

static void append_next(writer *w) {
    program *p = w->program;
    static char data[3][4000];
    char stream[3][16], key[64];
    weft_event events[3];
    size_t count = 1 + next_random(p) % 3;
    w->turn++;
    for (size_t i = 0; i < count; i++) {
        /* Its own stream, and one that all share. */
        snprintf(stream[i], sizeof stream[i], "w%d", i == 2 ? 99 : w->number);
        int n = snprintf(data[i], sizeof data[i], "%08x%08x%08x %0*d", next_random(p), (unsigned) getpid(), next_random(p),
                         next_random(p) % 20 == 0 ? 3000 : 40, 0);
        events[i] = (weft_event){.stream = stream[i], .type = "t", .data = {data[i], (size_t) n}, .time_ms = 1};
    }
    snprintf(key, sizeof key, "%d-%d-%u", getpid(), w->number, w->turn);
    if (weft__store_append(p->world.store, &(weft_append){events, count, w->turn % 4 ? NULL : key}, acknowledged, w) < 0)
        _exit(1);
    if (next_random(p) % 500 == 0)
        weft__store_trim(p->world.store, &(weft_trim){.stream = stream[0], .rows = KEEP}, NULL, NULL);
}

int main(int argc, char **argv) {
    static program p;
    static writer writers[WRITERS];
    if (argc != 3)
        return 2;
    p.world.kind = strncmp(argv[1], "postgresql:", 11) == 0 ? &weft__postgres : &weft__sqlite;
    p.world.opts.path = p.world.opts.url = argv[1];
    p.world.opts.max_log = 1 << 20;
    p.seed = (unsigned) strtoul(argv[2], NULL, 10);
    if (!world_open(&p.world)) {
        fprintf(stderr, "store_writer: %s\n", p.world.why);
        return 1;
    }
    p.len = (size_t) snprintf(p.lines, sizeof p.lines, "epoch %s\n", weft__store_epoch(p.world.store));
    flush(&p);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (writer){.program = &p, .number = i};
        append_next(&writers[i]);
    }
    for (;;) {
        struct pollfd ready = {.fd = weft__store_fd(p.world.store), .events = POLLIN};
        poll(&ready, 1, -1);
        weft__store_dispatch(p.world.store);
        flush(&p);
    }
}

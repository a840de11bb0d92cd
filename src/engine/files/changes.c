/* A bucket of tokens for the rate, a list for what waits. */
#include "changes.h"

#include <string.h>

typedef struct waiting {
    weft_link link;
    weft_change change;
    char path[];
} waiting;

static void forget_waiting(weft_changes *changes) {
    while (!weft__list_empty(&changes->waiting)) {
        waiting *first = WEFT_CONTAINER(changes->waiting.next, waiting, link);
        weft__list_remove(&first->link);
        weft__free(changes->alloc, first);
    }
    changes->count = 0;
}

static void refill_tokens(weft_changes *changes) {
    int64_t now = weft_loop_now(changes->loop), more = (now - changes->filled_at) * WEFT_CHANGES_RATE / 1000;
    if (more <= 0)
        return;
    changes->tokens = changes->tokens + more < WEFT_CHANGES_RATE ? changes->tokens + more : WEFT_CHANGES_RATE;
    changes->filled_at = now;
}

static void tell_waiting(weft_changes *changes) {
    refill_tokens(changes);
    while (changes->count && changes->tokens > 0) {
        waiting *first = WEFT_CONTAINER(changes->waiting.next, waiting, link);
        weft__list_remove(&first->link);
        changes->count--;
        changes->tokens--;
        changes->on_change(changes->ctx, &first->change);
        weft__free(changes->alloc, first);
    }
    if (changes->count)
        weft__timer_set(changes->loop, &changes->timer, weft_loop_now(changes->loop) + 50);
}

static void on_changes_due(weft_timer *timer) {
    weft_changes *changes = WEFT_CONTAINER(timer, weft_changes, timer);
    if (!changes->burst) {
        tell_waiting(changes);
        return;
    }
    uint64_t count = changes->burst;
    changes->burst = 0;
    changes->on_burst(changes->ctx, count);
}

static void count_in_burst(weft_changes *changes) {
    changes->burst++;
    weft__timer_set(changes->loop, &changes->timer, weft_loop_now(changes->loop) + WEFT_CHANGES_CALM_MS);
}

static void begin_burst(weft_changes *changes) {
    changes->burst = changes->count;
    forget_waiting(changes);
    count_in_burst(changes);
}

void weft__changes_init(weft_changes *changes) {
    weft__list_init(&changes->waiting);
    weft__timer_init(&changes->timer, on_changes_due);
    changes->tokens = WEFT_CHANGES_RATE;
    changes->filled_at = weft_loop_now(changes->loop);
}

void weft__changes_done(weft_changes *changes) {
    weft__timer_stop(changes->loop, &changes->timer);
    forget_waiting(changes);
}

void weft__changes_put(weft_changes *changes, const weft_change *change) {
    size_t len = strlen(change->path);
    if (changes->burst) {
        count_in_burst(changes);
        return;
    }
    /* Without memory for it, at least that something has changed is told. */
    waiting *entry = changes->count < WEFT_CHANGES_MAX ? weft__alloc(changes->alloc, sizeof *entry + len + 1) : NULL;
    if (!entry) {
        begin_burst(changes);
        return;
    }
    entry->change = *change;
    entry->change.path = memcpy(entry->path, change->path, len + 1);
    weft__list_push(&changes->waiting, &entry->link);
    if (changes->count++ == 0)
        weft__timer_set(changes->loop, &changes->timer, weft_loop_now(changes->loop) + 1);
}

/* Latencies. */
#include "latency.h"

#include <stdio.h>
#include <string.h>

/* From 1 us to 50 s in steps of 1, 2, 5; what is above joins the last. */
#define ROWS 24
#define BAR_WIDTH 50

static size_t bucket_of(uint64_t ns) {
    if (ns < 2 * WEFT_LATENCY_STEPS)
        return (size_t) ns;
    int shift = 63 - __builtin_clzll(ns) - 5; /* 2^5 steps */
    size_t bucket = (size_t) shift * WEFT_LATENCY_STEPS + (size_t) (ns >> shift);
    return bucket < WEFT_LATENCY_BUCKETS ? bucket : WEFT_LATENCY_BUCKETS - 1;
}

/* The middle of a bucket. */
static double value_of(size_t bucket) {
    if (bucket < 2 * WEFT_LATENCY_STEPS)
        return (double) bucket;
    size_t shift = bucket / WEFT_LATENCY_STEPS - 1;
    uint64_t least = (uint64_t) (bucket - shift * WEFT_LATENCY_STEPS) << shift;
    return (double) least + (double) (1ULL << shift) / 2;
}

void weft__latency_add(weft_latency *all, uint64_t ns) {
    all->counts[bucket_of(ns)]++;
    all->count++;
    all->most = ns > all->most ? ns : all->most;
}

double weft__latency_at(const weft_latency *all, double share) {
    uint64_t wanted = (uint64_t) (share * (double) all->count + 0.5), seen = 0;
    for (size_t i = 0; i < WEFT_LATENCY_BUCKETS; i++) {
        seen += all->counts[i];
        if (seen > 0 && seen >= wanted)
            return value_of(i) < (double) all->most ? value_of(i) : (double) all->most;
    }
    return 0;
}

void weft__latency_text(double ns, char ret[32]) {
    if (ns < 1e6)
        snprintf(ret, 32, "%.1f us", ns / 1e3);
    else if (ns < 1e9)
        snprintf(ret, 32, "%.2f ms", ns / 1e6);
    else
        snprintf(ret, 32, "%.2f s", ns / 1e9);
}

/* The upper border of a row. */
static double border_of(size_t row) {
    static const double steps[] = {1e3, 2e3, 5e3};
    double border = steps[row % 3];
    for (size_t i = 0; i < row / 3; i++)
        border *= 10;
    return border;
}

static void count_rows(const weft_latency *all, uint64_t rows[ROWS]) {
    size_t row = 0;
    memset(rows, 0, ROWS * sizeof *rows);
    for (size_t i = 0; i < WEFT_LATENCY_BUCKETS; i++) {
        while (row < ROWS - 1 && value_of(i) > border_of(row))
            row++;
        rows[row] += all->counts[i];
    }
}

void weft__latency_draw(const weft_latency *all, const weft_screen *screen) {
    static const char bar[] = "##################################################";
    uint64_t rows[ROWS], most = 1;
    size_t first = ROWS, last = 0;
    count_rows(all, rows);
    for (size_t i = 0; i < ROWS; i++) {
        most = rows[i] > most ? rows[i] : most;
        first = rows[i] && first == ROWS ? i : first;
        last = rows[i] ? i : last;
    }
    for (size_t i = first; i <= last && i < ROWS; i++) {
        char label[32];
        int width = (int) ((double) rows[i] / (double) most * BAR_WIDTH + 0.5);
        weft__latency_text(border_of(i), label);
        fprintf(screen->file, "  %s %9s |", i == ROWS - 1 ? ">" : "<", label);
        weft__ink(screen, WEFT_INK_STRING);
        fprintf(screen->file, "%.*s", width > 0 || !rows[i] ? width : 1, bar);
        weft__plain(screen);
        fprintf(screen->file, " %.2f %%\n", 100.0 * (double) rows[i] / (double) all->count);
    }
}

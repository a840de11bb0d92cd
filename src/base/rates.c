/* A table of lists by hash. Time that goes back is no time. */
#include "rates.h"

#include <errno.h>
#include <string.h>

#include "hash.h"

#define ROWS 256
/* Names that are counted one by one: as for the rate of network clients (rate.c). */
#define MAX_NAMES 16384
#define MINUTE_MS 60000
#define WITHOUT_MEMORY_MS 1000

typedef struct rate_bucket {
    struct rate_bucket *next;
    int64_t filled_at;
    int64_t per_minute;
    int64_t tokens; /* in 1/60000: the rate per minute is then the gain per millisecond */
    char name[];
} rate_bucket;

struct weft_rates {
    const weft_alloc *alloc;
    size_t count;
    rate_bucket *rows[ROWS];
};

int weft__rates_new(const weft_alloc *alloc, weft_rates **ret) {
    weft_rates *rates = weft__zalloc(alloc, sizeof *rates);
    if (!rates)
        return -ENOMEM;
    rates->alloc = alloc;
    *ret = rates;
    return 0;
}

weft_rates *weft__rates_free(weft_rates *rates) {
    if (!rates)
        return NULL;
    for (size_t i = 0; i < ROWS; i++)
        while (rates->rows[i]) {
            rate_bucket *next = rates->rows[i]->next;
            weft__free(rates->alloc, rates->rows[i]);
            rates->rows[i] = next;
        }
    return weft__free(rates->alloc, rates);
}

static void fill_bucket(rate_bucket *bucket, int64_t now) {
    int64_t passed = now - bucket->filled_at, capacity = bucket->per_minute * MINUTE_MS;
    if (passed <= 0)
        return;
    bucket->tokens += (passed < MINUTE_MS ? passed : MINUTE_MS) * bucket->per_minute;
    if (bucket->tokens > capacity)
        bucket->tokens = capacity;
    bucket->filled_at = now;
}

/* Its bucket, if there is one; others of its row that are full again go. */
static rate_bucket *look_through_row(weft_rates *rates, rate_bucket **row, const char *name, int64_t now) {
    rate_bucket *found = NULL;
    while (*row) {
        rate_bucket *bucket = *row;
        fill_bucket(bucket, now);
        if (strcmp(bucket->name, name) == 0)
            found = bucket;
        else if (bucket->tokens == bucket->per_minute * MINUTE_MS) {
            *row = bucket->next;
            weft__free(rates->alloc, bucket);
            rates->count--;
            continue;
        }
        row = &bucket->next;
    }
    return found;
}

static rate_bucket *add_bucket(weft_rates *rates, rate_bucket **row, const char *name, int64_t per_minute, int64_t now) {
    size_t len = strlen(name) + 1;
    rate_bucket *bucket = weft__zalloc(rates->alloc, sizeof *bucket + len);
    if (!bucket)
        return NULL;
    memcpy(bucket->name, name, len);
    bucket->per_minute = per_minute;
    bucket->tokens = per_minute * MINUTE_MS;
    bucket->filled_at = now;
    bucket->next = *row;
    *row = bucket;
    rates->count++;
    return bucket;
}

static rate_bucket *bucket_of(weft_rates *rates, const char *name, int64_t per_minute, int64_t now) {
    rate_bucket **row = &rates->rows[weft__hash(name) % ROWS];
    rate_bucket *bucket = look_through_row(rates, row, name, now);
    if (bucket)
        return bucket;
    if (rates->count >= MAX_NAMES && *name)
        return bucket_of(rates, "", per_minute, now);
    return add_bucket(rates, row, name, per_minute, now);
}

int64_t weft__rates_take(weft_rates *rates, const char *name, int64_t per_minute, int64_t now_ms) {
    rate_bucket *bucket = bucket_of(rates, name, per_minute, now_ms);
    if (!bucket)
        return WITHOUT_MEMORY_MS;
    if (bucket->tokens >= MINUTE_MS) {
        bucket->tokens -= MINUTE_MS;
        return 0;
    }
    return (MINUTE_MS - bucket->tokens + bucket->per_minute - 1) / bucket->per_minute;
}

size_t weft__rates_count(const weft_rates *rates) {
    return rates->count;
}

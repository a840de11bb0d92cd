/* Counting connections by a short text. */
#include "tally.h"

#include <errno.h>
#include <string.h>

#include "hash.h"

void weft__tally_init(weft_tally *tally, const weft_alloc *alloc) {
    tally->alloc = alloc;
    for (size_t i = 0; i < WEFT_TALLY_BUCKETS; i++)
        weft__list_init(&tally->buckets[i]);
}

static weft_link *bucket_of(weft_tally *tally, const char *key) {
    return &tally->buckets[weft__hash(key) % WEFT_TALLY_BUCKETS];
}

static weft_tallied *find(weft_link *bucket, const char *key) {
    for (weft_link *at = bucket->next; at != bucket; at = at->next) {
        weft_tallied *count = WEFT_CONTAINER(at, weft_tallied, link);
        if (strcmp(count->key, key) == 0)
            return count;
    }
    return NULL;
}

int weft__tally_add(weft_tally *tally, const char *key, size_t max, weft_tallied **ret) {
    weft_link *bucket = bucket_of(tally, key);
    weft_tallied *count = find(bucket, key);
    if (count ? count->n >= max : max == 0)
        return -EUSERS;
    if (!count) {
        count = weft__zalloc(tally->alloc, sizeof *count + strlen(key) + 1);
        if (!count)
            return -ENOMEM;
        memcpy(count->key, key, strlen(key) + 1);
        weft__list_push(bucket, &count->link);
    }
    count->n++;
    *ret = count;
    return 0;
}

void weft__tally_drop(weft_tally *tally, weft_tallied *count) {
    if (!count || --count->n)
        return;
    weft__list_remove(&count->link);
    weft__free(tally->alloc, count);
}

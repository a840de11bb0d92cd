/* Requests per minute of one network client: a bucket that fills steadily and is emptied by requests.
 *
 * A client is the name of its token or certificate, wherever it comes from; without one it is its address. Its bucket is
 * shared by its connections and outlives them until it is full again, so that connecting anew gains nothing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "gate.h"
#include "hash.h"

#define ROWS 256
/* Clients that are counted one by one. Strangers with more addresses than this share the bucket of those that came too late,
 * so that they cannot fill the memory. */
#define MAX_BUCKETS 16384
/* Longer names share a bucket with those that begin like them. */
#define CLIENT_SIZE 256
/* A bucket without connections is looked at for disposal when another client joins its row. */

#define MINUTE_MS 60000

typedef struct weft_bucket {
    struct weft_bucket *next;
    size_t peers;
    int64_t filled_at;
    int64_t tokens; /* in 1/60000 of a request: the rate per minute is then the gain per millisecond */
    char client[];
} weft_bucket;

struct weft_buckets {
    weft_bucket *rows[ROWS];
    size_t count;
};

static size_t row_of_client(const char *client) {
    return weft__hash(client) % ROWS;
}

static int64_t bucket_capacity(const weft_service *service) {
    return service->limits.rate_per_minute * MINUTE_MS;
}

/* A peer that was made a moment ago does not know the time yet: time never goes back here, or the next look would fill the
 * bucket as if a minute had passed. */
static void refill_bucket(weft_bucket *bucket, const weft_service *service, int64_t now) {
    int64_t passed = now - bucket->filled_at;
    if (passed <= 0)
        return;
    bucket->tokens += (passed < MINUTE_MS ? passed : MINUTE_MS) * service->limits.rate_per_minute;
    if (bucket->tokens > bucket_capacity(service))
        bucket->tokens = bucket_capacity(service);
    bucket->filled_at = now;
}

/* Find the client's bucket in a row and throw away those that nobody uses and that are full. */
static weft_bucket *look_up_bucket(weft_bucket **row, const char *client, weft_service *service, int64_t now) {
    weft_bucket *found = NULL;
    while (*row) {
        weft_bucket *bucket = *row;
        refill_bucket(bucket, service, now);
        if (strcmp(bucket->client, client) == 0)
            found = bucket;
        else if (!bucket->peers && bucket->tokens == bucket_capacity(service)) {
            *row = bucket->next;
            weft__free(service->alloc, bucket);
            service->buckets->count--;
            continue;
        }
        row = &bucket->next;
    }
    return found;
}

/* A name in front of "@", an address behind it: neither can be taken for the other. */
static void name_client(const weft_identity *who, char *ret, size_t size) {
    char group[WEFT_ADDRESS];
    weft__address_group(who->address, group, sizeof group);
    if (who->authenticated && *who->name)
        snprintf(ret, size, "%s@", who->name);
    else
        snprintf(ret, size, "@%s", group);
}

static weft_bucket *make_bucket(weft_bucket **row, const char *client, weft_service *service, int64_t now) {
    size_t len = strlen(client) + 1;
    weft_bucket *bucket = weft__zalloc(service->alloc, sizeof *bucket + len);
    if (!bucket)
        return NULL;
    memcpy(bucket->client, client, len);
    bucket->tokens = bucket_capacity(service);
    bucket->filled_at = now;
    bucket->next = *row;
    *row = bucket;
    service->buckets->count++;
    return bucket;
}

static weft_bucket *bucket_of_client(weft_service *service, const char *client, int64_t now) {
    weft_bucket **row = &service->buckets->rows[row_of_client(client)];
    weft_bucket *bucket = look_up_bucket(row, client, service, now);
    if (bucket || service->buckets->count < MAX_BUCKETS)
        return bucket ? bucket : make_bucket(row, client, service, now);
    row = &service->buckets->rows[row_of_client("")];
    bucket = look_up_bucket(row, "", service, now);
    return bucket ? bucket : make_bucket(row, "", service, now);
}

int weft__rate_join(weft_peer *peer) {
    weft_service *service = peer->service;
    char client[CLIENT_SIZE];
    weft__rate_leave(peer);
    if (service->limits.rate_per_minute <= 0 || peer->identity->local)
        return 0;
    if (!service->buckets && !(service->buckets = weft__zalloc(service->alloc, sizeof *service->buckets)))
        return -ENOMEM;
    name_client(peer->identity, client, sizeof client);
    weft_bucket *bucket = bucket_of_client(service, client, peer->now);
    if (!bucket)
        return -ENOMEM;
    bucket->peers++;
    peer->bucket = bucket;
    return 0;
}

void weft__rate_leave(weft_peer *peer) {
    if (peer->bucket)
        peer->bucket->peers--;
    peer->bucket = NULL;
}

int64_t weft__rate_take(weft_peer *peer) {
    weft_bucket *bucket = peer->bucket;
    int64_t rate = peer->service->limits.rate_per_minute;
    if (rate <= 0) /* there is no limit any more */
        return 0;
    if (peer->now != bucket->filled_at)
        refill_bucket(bucket, peer->service, peer->now);
    if (bucket->tokens >= MINUTE_MS) {
        bucket->tokens -= MINUTE_MS;
        return 0;
    }
    return (MINUTE_MS - bucket->tokens + rate - 1) / rate;
}

void weft__rate_done(weft_service *service) {
    if (!service->buckets)
        return;
    for (size_t i = 0; i < ROWS; i++)
        while (service->buckets->rows[i]) {
            weft_bucket *next = service->buckets->rows[i]->next;
            weft__free(service->alloc, service->buckets->rows[i]);
            service->buckets->rows[i] = next;
        }
    service->buckets = weft__free(service->alloc, service->buckets);
}

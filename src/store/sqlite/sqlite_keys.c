/* The keys of appends: which event has one.
 *
 * Keys are digests. An index of them has no order that follows time: each of 64 appends in a group touched a page of its own
 * there, and every page that is touched is written to the log whole. So a new key is kept in memory first, and goes into the
 * table "keyed" later, with many others and in the order of the table, a piece with each transaction:
 *
 *     recent ──there are many, or they are old──▶ moving ──a piece with each transaction──▶ the table
 *
 * Every event up to state.keyed that has a key is in the table. Newer ones are read from the events again when the first key
 * is asked for after a start, and after a failure.
 *
 * The table has hashes. The event itself says whether it has the key that was asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"
#include "sqlite_store.h"

#define MANY 16384            /* recent keys that are moved together: some 512 KiB */
#define FAR ((int64_t) 65536) /* events since the oldest of them: what is read again after a kill */
#define FEW 256               /* slots to begin with */
#define PIECE 256             /* keys moved with one transaction, and twice as many as it brings */
#define REMOVED (-1)          /* the gseq of one that was trimmed */

int64_t weft__sq_key_hash(const char *key) {
    return (int64_t) weft__hash64_more(WEFT_HASH64, key, strlen(key));
}

/* ---- in memory ---- */

static weft_sq_key *find_slot(weft_sq_key *table, size_t cap, int64_t hash) {
    size_t at = (size_t) ((uint64_t) hash ^ (uint64_t) hash >> 32) & (cap - 1);
    while (table[at].gseq)
        at = (at + 1) & (cap - 1);
    return &table[at];
}

static int grow_recent(weft_sq *sq) {
    weft_sq_keys *keys = &sq->keys;
    size_t cap = keys->cap ? 2 * keys->cap : FEW;
    weft_sq_key *table = weft__zalloc(sq->base.alloc, cap * sizeof *table);
    if (!table)
        return -ENOMEM;
    for (size_t i = 0; i < keys->cap; i++)
        if (keys->recent[i].gseq)
            *find_slot(table, cap, keys->recent[i].hash) = keys->recent[i];
    weft__free(sq->base.alloc, keys->recent);
    keys->recent = table;
    keys->cap = cap;
    return 0;
}

static int add_recent(weft_sq *sq, int64_t hash, int64_t gseq) {
    weft_sq_keys *keys = &sq->keys;
    int r = 2 * (keys->count + 1) > keys->cap ? grow_recent(sq) : 0;
    if (r < 0)
        return r;
    *find_slot(keys->recent, keys->cap, hash) = (weft_sq_key){hash, gseq};
    if (!keys->count++)
        keys->recent_from = gseq;
    return 0;
}

static void drop_recent(weft_sq *sq) {
    sq->keys.recent = weft__free(sq->base.alloc, sq->keys.recent);
    sq->keys.count = sq->keys.cap = 0;
}

static void drop_moving(weft_sq *sq) {
    sq->keys.moving = weft__free(sq->base.alloc, sq->keys.moving);
    sq->keys.moving_count = sq->keys.moved = 0;
}

void weft__sq_keys_drop(weft_sq *sq) {
    drop_recent(sq);
    drop_moving(sq);
    sq->keys.loaded = false;
}

/* The first of those that are moving with this hash or a higher one. */
static size_t find_moving(const weft_sq_keys *keys, int64_t hash) {
    size_t low = 0, high = keys->moving_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (keys->moving[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- moving them to the table ---- */

static int compare_keys(const void *a, const void *b) {
    const weft_sq_key *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->gseq > y->gseq) - (x->gseq < y->gseq);
}

/* What is recent is moving from now on. */
static int begin_moving(weft_sq *sq) {
    weft_sq_keys *keys = &sq->keys;
    weft_sq_key *list = weft__alloc(sq->base.alloc, keys->count * sizeof *list);
    size_t count = 0;
    if (!list)
        return -ENOMEM;
    for (size_t i = 0; i < keys->cap; i++)
        if (keys->recent[i].gseq)
            list[count++] = keys->recent[i];
    qsort(list, count, sizeof *list, compare_keys);
    drop_recent(sq);
    keys->moving = list;
    keys->moving_count = count;
    keys->moving_from = keys->recent_from;
    return 0;
}

static int move_piece(weft_sq *sq, size_t count) {
    weft_sq_keys *keys = &sq->keys;
    size_t left = keys->moving_count - keys->moved;
    keys->rows = keys->moving + keys->moved;
    keys->row_count = count < left ? count : left;
    int r = weft__sq_do(&sq->write, WEFT_SQ_MOVE_KEYS);
    if (r < 0)
        return r;
    keys->moved += keys->row_count;
    if (keys->moved == keys->moving_count)
        drop_moving(sq);
    return 0;
}

static int move_all(weft_sq *sq) {
    int r = sq->keys.moving ? move_piece(sq, SIZE_MAX) : 0;
    if (r >= 0 && sq->keys.count)
        r = begin_moving(sq);
    return r >= 0 && sq->keys.moving ? move_piece(sq, SIZE_MAX) : r;
}

/* ---- reading them again ---- */

static int load_row(weft_sq *sq, sqlite3_stmt *row) {
    const char *key = (const char *) sqlite3_column_text(row, 1);
    int r = key ? add_recent(sq, weft__sq_key_hash(key), sqlite3_column_int64(row, 0)) : -ENOMEM;
    return r >= 0 && sq->keys.count >= MANY ? move_all(sq) : r;
}

/* Those that are not in the table, or perhaps not. Inside a transaction. */
static int load_keys(weft_sq *sq) {
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_KEYS_AFTER, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, sq->state.keyed);
    while ((r = weft__sq_step(row)) > 0)
        if ((r = load_row(sq, row)) < 0)
            break;
    sqlite3_reset(row);
    sq->keys.loaded = r >= 0;
    if (r < 0)
        weft__sq_keys_drop(sq);
    return r;
}

/* ---- asking ---- */

/* 1: the event there has this key. Its row may be one of those that wait to be stored. */
static int check_key(weft_sq *sq, const weft_append_job *job, int64_t gseq) {
    int r = gseq > sq->state.head - (int64_t) sq->event_rows ? weft__sq_put_rows(sq, (weft_link *) &job->job.link) : 0;
    sqlite3_stmt *row = r < 0 ? NULL : weft__sq_prepare(&sq->write, WEFT_SQ_KEY_AT, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, gseq);
    r = weft__sq_step(row);
    if (r > 0 && sqlite3_column_type(row, 0) == SQLITE_NULL)
        r = 0;
    const char *key = r > 0 ? (const char *) sqlite3_column_text(row, 0) : NULL;
    if (r > 0)
        r = key ? strcmp(key, job->key) == 0 : -ENOMEM;
    sqlite3_reset(row);
    return r;
}

static int find_in_memory(weft_sq *sq, const weft_append_job *job, int64_t hash, int64_t *ret_gseq) {
    const weft_sq_keys *keys = &sq->keys;
    size_t mask = keys->cap - 1, at = (size_t) ((uint64_t) hash ^ (uint64_t) hash >> 32) & mask;
    int r = 0;
    for (; keys->cap && r == 0 && (*ret_gseq = keys->recent[at].gseq); at = (at + 1) & mask)
        if (keys->recent[at].hash == hash && *ret_gseq > 0)
            r = check_key(sq, job, *ret_gseq);
    for (at = find_moving(keys, hash); r == 0 && at < keys->moving_count && keys->moving[at].hash == hash; at++)
        if ((*ret_gseq = keys->moving[at].gseq) > 0)
            r = check_key(sq, job, *ret_gseq);
    return r;
}

static int find_in_table(weft_sq *sq, const weft_append_job *job, int64_t hash, int64_t *ret_gseq) {
    int r, found = 0;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_KEY, &r);
    if (!row)
        return r;
    sqlite3_bind_int64(row, 1, hash);
    while (found == 0 && (r = weft__sq_step(row)) > 0) {
        *ret_gseq = sqlite3_column_int64(row, 0);
        found = check_key(sq, job, *ret_gseq);
    }
    sqlite3_reset(row);
    return r < 0 ? r : found;
}

int weft__sq_key_find(weft_sq *sq, const weft_append_job *job, int64_t *ret_gseq) {
    int64_t hash = weft__sq_key_hash(job->key);
    int r = sq->keys.loaded ? 0 : load_keys(sq);
    if (r >= 0)
        r = find_in_memory(sq, job, hash, ret_gseq);
    return r ? r : find_in_table(sq, job, hash, ret_gseq);
}

/* ---- as the journal changes ---- */

int weft__sq_key_add(weft_sq *sq, const char *key, int64_t gseq) {
    sq->keys.added++;
    return add_recent(sq, weft__sq_key_hash(key), gseq);
}

static void remove_from_memory(weft_sq_keys *keys, int64_t hash, int64_t gseq) {
    size_t mask = keys->cap - 1, at = (size_t) ((uint64_t) hash ^ (uint64_t) hash >> 32) & mask;
    for (; keys->cap && keys->recent[at].gseq; at = (at + 1) & mask)
        if (keys->recent[at].hash == hash && keys->recent[at].gseq == gseq)
            keys->recent[at].gseq = REMOVED;
    for (at = find_moving(keys, hash); at < keys->moving_count && keys->moving[at].hash == hash; at++)
        if (keys->moving[at].gseq == gseq)
            keys->moving[at].gseq = REMOVED;
}

int weft__sq_key_remove(weft_sq *sq, const char *key, int64_t gseq) {
    int64_t hash = weft__sq_key_hash(key);
    int r;
    sqlite3_stmt *row = weft__sq_prepare(&sq->write, WEFT_SQ_DROP_KEY, &r);
    if (!row)
        return r;
    remove_from_memory(&sq->keys, hash, gseq);
    sqlite3_bind_int64(row, 1, hash);
    sqlite3_bind_int64(row, 2, gseq);
    return weft__sq_run(row);
}

int weft__sq_keys_move(weft_sq *sq, bool all) {
    weft_sq_keys *keys = &sq->keys;
    size_t piece = 2 * keys->added > PIECE ? 2 * keys->added : PIECE;
    int r = 0;
    keys->added = 0;
    if (!keys->loaded && !all && sq->state.head - sq->state.keyed >= FAR)
        r = load_keys(sq);
    if (r < 0 || !keys->loaded)
        return r;
    if (all)
        return move_all(sq);
    bool due = keys->count >= MANY || (keys->count && sq->state.head - keys->recent_from >= FAR);
    /* Twice as many move as come: before the last has moved there are no more than half as many new ones, and a group's. */
    if (due && !keys->moving)
        r = begin_moving(sq);
    return r >= 0 && keys->moving ? move_piece(sq, piece) : r;
}

void weft__sq_keys_note(weft_sq *sq) {
    const weft_sq_keys *keys = &sq->keys;
    if (!keys->loaded)
        return;
    int64_t from = keys->moving ? keys->moving_from : keys->count ? keys->recent_from : sq->state.head + 1;
    sq->state.keyed = from - 1;
}

/* Appends in the writer's transaction. First everything is found out: which streams and keys there are, which numbers were
 * taken. Then every append has its outcome and every event its place, and what stores them is sent with the commit. */
#include <errno.h>
#include <string.h>

#include "postgres_store.h"

#define MAX_STREAMS 65536 /* remembered by the writer; some 10 MiB */

static weft_append_job *append_at(const weft_link *link) {
    return (weft_append_job *) (void *) WEFT_CONTAINER(link, weft_job, link);
}

/* Is it stored in this transaction? */
static bool is_stored(const weft_append_job *job) {
    return job->job.r >= 0 && !job->repeat;
}

/* Streams */

void weft__pg_forget_streams(weft_pg *pg) {
    weft_map *map = &pg->streams;
    weft_node **rows = map->rows ? map->rows : map->few;
    size_t cap = map->rows ? map->cap : WEFT_MAP_FEW;
    for (size_t i = 0; i < cap; i++)
        while (rows[i]) {
            weft_pg_stream *old = WEFT_CONTAINER(rows[i], weft_pg_stream, node);
            weft__map_remove(map, &old->node);
            weft__free(pg->base.alloc, old);
        }
    pg->stream_count = 0;
    pg->streams_at = -1;
}

static weft_pg_stream *find_stream(weft_pg *pg, const char *name) {
    weft_node *found = weft__map_find(&pg->streams, name);
    return found ? WEFT_CONTAINER(found, weft_pg_stream, node) : NULL;
}

static weft_pg_stream *need_stream(weft_pg *pg, const char *name) {
    weft_pg_stream *found = find_stream(pg, name);
    if (found)
        return found;
    size_t len = strlen(name);
    weft_pg_stream *made = weft__zalloc(pg->base.alloc, sizeof *made + len + 1);
    if (made) {
        memcpy(made->name, name, len);
        weft__map_put(&pg->streams, &made->node, made->name);
        pg->stream_count++;
    }
    return made;
}

/* Those of the jobs that are not known, as an array of their names. */
static int list_unknown_streams(weft_pg *pg, const weft_link *jobs, weft_pg_array *names) {
    const weft_alloc *alloc = pg->base.alloc;
    int r = weft__pg_array_begin(names, alloc, true);
    for (const weft_link *link = jobs->next; r >= 0 && link != jobs; link = link->next) {
        const weft_append_job *job = append_at(link);
        for (size_t i = 0; r >= 0 && i < job->count; i++) {
            weft_pg_stream *stream = need_stream(pg, job->events[i].stream);
            if (!stream)
                return -ENOMEM;
            if (stream->id || stream->changed)
                continue;
            stream->changed = true; /* it is in the list */
            r = weft__pg_array_bytes(names, alloc, stream->name, strlen(stream->name));
        }
    }
    return r;
}

static int take_streams(weft_pg *pg, const PGresult *result) {
    const weft_pg_conn *conn = &pg->write;
    for (int i = 0; i < weft__pg_rows(conn, result); i++) {
        weft_pg_stream *stream = find_stream(pg, weft__pg_get_bytes(conn, result, i, 0).data);
        if (!stream)
            return -EUCLEAN;
        stream->id = weft__pg_get_int(conn, result, i, 1);
        stream->head = weft__pg_get_int(conn, result, i, 2);
    }
    return 0;
}

/* Keys */

static int list_keys(weft_pg *pg, const weft_link *jobs, weft_pg_array *keys, weft_pg_array *counts) {
    const weft_alloc *alloc = pg->base.alloc;
    int r = weft__pg_array_begin(keys, alloc, true);
    if (r >= 0)
        r = weft__pg_array_begin(counts, alloc, false);
    for (const weft_link *link = jobs->next; r >= 0 && link != jobs; link = link->next) {
        const weft_append_job *job = append_at(link);
        if (!job->key)
            continue;
        r = weft__pg_array_bytes(keys, alloc, job->key, strlen(job->key));
        if (r >= 0)
            r = weft__pg_array_int(counts, alloc, (int64_t) job->count);
    }
    return r;
}

static weft_append_job *job_with_key(const weft_link *jobs, const char *key) {
    for (const weft_link *link = jobs->next; link != jobs; link = link->next)
        if (append_at(link)->key && strcmp(append_at(link)->key, key) == 0)
            return append_at(link);
    return NULL;
}

/* A row for each event that is still there of an append whose key is known: it goes where it was the first time. */
static int take_keys(weft_pg *pg, const weft_link *jobs, const PGresult *result) {
    const weft_pg_conn *conn = &pg->write;
    for (int i = 0; i < weft__pg_rows(conn, result); i++) {
        weft_append_job *job = job_with_key(jobs, weft__pg_get_bytes(conn, result, i, 0).data);
        int64_t gseq = weft__pg_get_int(conn, result, i, 2), at = gseq - weft__pg_get_int(conn, result, i, 1);
        if (!job || at < 0 || (size_t) at >= job->count)
            return -EUCLEAN;
        weft_event *event = &job->events[at];
        job->repeat = true;
        if (strcmp(event->type, weft__pg_get_bytes(conn, result, i, 4).data) != 0 ||
            strcmp(event->stream, weft__pg_get_bytes(conn, result, i, 5).data) != 0)
            job->job.r = -EEXIST;
        event->gseq = (uint64_t) gseq;
        event->seq = (uint64_t) weft__pg_get_int(conn, result, i, 3);
    }
    return 0;
}

/* Numbers */

static int take_counters(weft_pg *pg, const PGresult *result, weft_counters *ret) {
    const weft_pg_conn *conn = &pg->write;
    int rows = weft__pg_rows(conn, result);
    *ret = (weft_counters){0};
    for (int i = 0; i < rows && i < WEFT_STORE_COUNTERS; i++) {
        weft_bytes name = weft__pg_get_bytes(conn, result, i, 0);
        if (name.len >= sizeof ret->of[i].name)
            return -EUCLEAN;
        memcpy(ret->of[i].name, name.data, name.len);
        ret->of[i].next = (uint64_t) weft__pg_get_int(conn, result, i, 1);
    }
    return 0;
}

/* Places */

static int place_append(weft_pg *pg, weft_append_job *job, weft_counters *counters) {
    if (job->job.r < 0)
        job->repeat = false; /* the key is another's */
    if (job->repeat || job->job.r < 0)
        return 0;
    job->job.r = weft__counters_take(counters, job);
    for (size_t i = 0; job->job.r >= 0 && i < job->count; i++) {
        weft_event *event = &job->events[i];
        weft_pg_stream *stream = find_stream(pg, event->stream);
        if (!stream)
            return -EUCLEAN;
        if (!stream->id)
            stream->id = ++pg->state.streams;
        stream->changed = true;
        stream->bytes += (int64_t) event->data.len;
        event->seq = (uint64_t) ++stream->head;
        event->gseq = (uint64_t) ++pg->state.head;
    }
    return 0;
}

/* Outcomes of an attempt before this one. */
static void reset_jobs(const weft_link *jobs) {
    for (const weft_link *link = jobs->next; link != jobs; link = link->next) {
        weft_append_job *job = append_at(link);
        job->job.r = 0;
        job->repeat = false;
        for (size_t i = 0; i < job->count; i++)
            job->events[i].seq = job->events[i].gseq = 0;
    }
}

struct wants {
    bool streams, keys, counters;
};

static struct wants wants_of(const weft_link *jobs) {
    struct wants wants = {0};
    for (const weft_link *link = jobs->next; link != jobs; link = link->next) {
        wants.keys |= append_at(link)->key != NULL;
        wants.counters |= append_at(link)->counter != NULL;
    }
    return wants;
}

static void settle_marks(weft_pg *pg, const weft_link *jobs) {
    for (const weft_link *link = jobs->next; link != jobs; link = link->next)
        for (size_t i = 0; i < append_at(link)->count; i++) {
            weft_pg_stream *stream = find_stream(pg, append_at(link)->events[i].stream);
            if (stream) {
                stream->changed = false;
                stream->bytes = 0;
            }
        }
}

/* Somebody else has written since the streams were read. */
static int ask_streams_again(weft_pg *pg, const weft_link *jobs) {
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params params = {0};
    weft__pg_forget_streams(pg);
    int r = list_unknown_streams(pg, jobs, &pg->arrays[0]);
    if (r < 0)
        return r;
    weft__pg_array(&params, &pg->arrays[0]);
    weft__pg_send_named(&pg->write, "streams", &params);
    r = weft__pg_run(&pg->write, results);
    if (r == 0)
        r = take_streams(pg, results[0]);
    weft__pg_clear(&pg->write, results);
    return r;
}

static int take_look(weft_pg *pg, const weft_link *jobs, struct wants wants, PGresult **results) {
    weft_counters counters = {0};
    char why[WEFT_STORE_WHY];
    int at = 2, r = weft__pg_take_state(&pg->write, results[1], &pg->state);
    if (r == 0)
        r = weft__pg_check_state(pg, &pg->state, why);
    if (r == 0 && wants.streams)
        r = take_streams(pg, results[at++]);
    if (r == 0 && wants.keys)
        r = take_keys(pg, jobs, results[at++]);
    if (r == 0 && wants.counters)
        r = take_counters(pg, results[at++], &counters);
    if (r == 0 && pg->state.writes != pg->streams_at)
        r = ask_streams_again(pg, jobs);
    if (r == 0)
        r = weft__pg_gather_missed(pg);
    if (r == 0)
        settle_marks(pg, jobs);
    for (const weft_link *link = jobs->next; r == 0 && link != jobs; link = link->next)
        r = place_append(pg, append_at(link), &counters);
    return r;
}

int weft__pg_look(weft_pg *pg, weft_link *jobs) {
    weft_pg_conn *conn = &pg->write;
    PGresult *results[WEFT_PG_AHEAD];
    weft_pg_params streams = {0}, keys = {0};
    struct wants wants = wants_of(jobs);
    reset_jobs(jobs);
    if (pg->stream_count > MAX_STREAMS)
        weft__pg_forget_streams(pg);
    int r = list_unknown_streams(pg, jobs, &pg->arrays[0]);
    if (r >= 0 && wants.keys)
        r = list_keys(pg, jobs, &pg->arrays[1], &pg->arrays[2]);
    if (r < 0)
        return r;
    weft__pg_begin(conn);
    wants.streams = pg->arrays[0].count > 0;
    weft__pg_array(&streams, &pg->arrays[0]);
    if (wants.streams)
        weft__pg_send_named(conn, "streams", &streams);
    if (wants.keys) {
        weft__pg_array(&keys, &pg->arrays[1]);
        weft__pg_array(&keys, &pg->arrays[2]);
        weft__pg_send_named(conn, "keys", &keys);
    }
    if (wants.counters)
        weft__pg_send_named(conn, "counters", NULL);
    r = weft__pg_run(conn, results);
    if (r == 0)
        r = take_look(pg, jobs, wants, results);
    weft__pg_clear(conn, results);
    return r;
}

/* Storing */

enum { GSEQS, STREAMS, SEQS, TIMES, TYPES, KEYS, DATA, EVENT_ARRAYS };

static int begin_arrays(weft_pg *pg, size_t count, unsigned of_bytes) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < count; i++)
        r = weft__pg_array_begin(&pg->arrays[i], pg->base.alloc, of_bytes >> i & 1);
    return r;
}

static void send_arrays(weft_pg *pg, const char *name, size_t count) {
    weft_pg_params params = {0};
    for (size_t i = 0; i < count; i++)
        weft__pg_array(&params, &pg->arrays[i]);
    weft__pg_send_named(&pg->write, name, &params);
}

static int add_event(weft_pg *pg, const weft_event *event, const char *key) {
    const weft_alloc *alloc = pg->base.alloc;
    weft_pg_array *arrays = pg->arrays;
    const weft_pg_stream *stream = find_stream(pg, event->stream);
    int r = stream ? weft__pg_array_int(&arrays[GSEQS], alloc, (int64_t) event->gseq) : -EUCLEAN;
    if (r >= 0)
        r = weft__pg_array_int(&arrays[STREAMS], alloc, stream->id);
    if (r >= 0)
        r = weft__pg_array_int(&arrays[SEQS], alloc, (int64_t) event->seq);
    if (r >= 0)
        r = weft__pg_array_int(&arrays[TIMES], alloc, event->time_ms);
    if (r >= 0)
        r = weft__pg_array_bytes(&arrays[TYPES], alloc, event->type, strlen(event->type));
    if (r >= 0)
        r = weft__pg_array_bytes(&arrays[KEYS], alloc, key, key ? strlen(key) : 0);
    if (r >= 0)
        r = weft__pg_array_bytes(&arrays[DATA], alloc, event->data.data, event->data.len);
    return r;
}

static int put_events(weft_pg *pg, const weft_link *jobs, int64_t *ret_rows, int64_t *ret_bytes) {
    int r = begin_arrays(pg, EVENT_ARRAYS, 1u << TYPES | 1u << KEYS | 1u << DATA);
    for (const weft_link *link = jobs->next; r >= 0 && link != jobs; link = link->next) {
        const weft_append_job *job = append_at(link);
        for (size_t i = 0; r >= 0 && is_stored(job) && i < job->count; i++)
            r = add_event(pg, &job->events[i], i == 0 ? job->key : NULL);
        *ret_rows += is_stored(job) ? (int64_t) job->count : 0;
        *ret_bytes += is_stored(job) ? (int64_t) job->data_bytes : 0;
    }
    if (r >= 0 && *ret_rows)
        send_arrays(pg, "put_events", EVENT_ARRAYS);
    return r;
}

static int add_stream(weft_pg *pg, weft_pg_stream *stream) {
    const weft_alloc *alloc = pg->base.alloc;
    weft_pg_array *arrays = pg->arrays;
    stream->changed = false;
    int r = weft__pg_array_int(&arrays[0], alloc, stream->id);
    if (r >= 0)
        r = weft__pg_array_bytes(&arrays[1], alloc, stream->name, strlen(stream->name));
    if (r >= 0)
        r = weft__pg_array_int(&arrays[2], alloc, stream->head);
    return r < 0 ? r : weft__pg_array_int(&arrays[3], alloc, stream->bytes);
}

static int put_streams(weft_pg *pg, const weft_link *jobs) {
    int r = begin_arrays(pg, 4, 1u << 1);
    for (const weft_link *link = jobs->next; r >= 0 && link != jobs; link = link->next) {
        const weft_append_job *job = append_at(link);
        for (size_t i = 0; r >= 0 && i < job->count; i++) {
            weft_pg_stream *stream = find_stream(pg, job->events[i].stream);
            if (stream && stream->changed)
                r = add_stream(pg, stream);
        }
    }
    if (r >= 0 && pg->arrays[0].count)
        send_arrays(pg, "put_streams", 4);
    return r;
}

/* The last number of each counter that these appends took. */
static int put_counters(weft_pg *pg, const weft_link *jobs) {
    const weft_alloc *alloc = pg->base.alloc;
    weft_counters last = {0};
    size_t count = 0;
    int r = begin_arrays(pg, 2, 1u << 0);
    for (const weft_link *link = jobs->next; link != jobs; link = link->next)
        if (append_at(link)->counter && is_stored(append_at(link)))
            (void) weft__counters_take(&last, append_at(link));
    while (r >= 0 && count < WEFT_STORE_COUNTERS && *last.of[count].name) {
        r = weft__pg_array_bytes(&pg->arrays[0], alloc, last.of[count].name, strlen(last.of[count].name));
        if (r >= 0)
            r = weft__pg_array_int(&pg->arrays[1], alloc, (int64_t) last.of[count++].next);
    }
    if (r >= 0 && count)
        send_arrays(pg, "put_counters", 2);
    return r;
}

/* An append that takes content out goes alone. */
static int put_removals(weft_pg *pg, const weft_link *jobs) {
    const weft_append_job *job = append_at(jobs->next);
    weft_pg_params params = {0};
    if (!job->removal_count || !is_stored(job))
        return 0;
    int r = begin_arrays(pg, 1, 0);
    for (size_t i = 0; r >= 0 && i < job->removal_count; i++)
        if (job->removals[i] <= INT64_MAX)
            r = weft__pg_array_int(&pg->arrays[0], pg->base.alloc, (int64_t) job->removals[i]);
    if (r < 0)
        return r;
    weft__pg_array(&params, &pg->arrays[0]);
    weft__pg_bytes(&params, WEFT_REMOVED_DATA, sizeof WEFT_REMOVED_DATA - 1);
    weft__pg_bytes(&params, WEFT_REMOVED, sizeof WEFT_REMOVED - 1);
    weft__pg_send_named(&pg->write, "remove", &params);
    return 0;
}

int weft__pg_put(weft_pg *pg, weft_link *jobs) {
    int64_t rows = 0, bytes = 0;
    weft_pg_params params = {0};
    int r = put_events(pg, jobs, &rows, &bytes);
    if (r >= 0)
        r = put_streams(pg, jobs);
    if (r >= 0)
        r = weft__pg_put_documents(pg, jobs);
    if (r >= 0)
        r = put_counters(pg, jobs);
    if (r >= 0)
        r = put_removals(pg, jobs);
    if (r < 0)
        return r;
    weft__pg_int(&params, pg->state.head);
    weft__pg_int(&params, rows);
    weft__pg_int(&params, bytes);
    weft__pg_int(&params, pg->state.streams);
    weft__pg_int(&params, pg->state.trimmed);
    weft__pg_send_named(&pg->write, "put_state", &params);
    return 0;
}

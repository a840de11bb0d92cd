/* What all kinds of store share: arguments are checked and copied into jobs here, limits kept, completions run. No kind sees
 * the caller's memory, and no caller sees a job. */
#include "store.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "pack.h"
#include "store_kind.h"

#define MAX_EVENT ((size_t) 32 << 20)
#define MAX_QUEUE ((size_t) 64 << 20)
#define PAGE_EVENTS 256                  /* with PAGE_BYTES: what a reader thread fetches in well under 5 ms and */
#define PAGE_BYTES ((size_t) 256 * 1024) /* a dispatch hands over without holding up the loop */

const char *weft__gap_name(int gap) {
    switch (gap) {
    case WEFT_GAP_EPOCH:
        return "epochChanged";
    case WEFT_GAP_TRIMMED:
        return "trimmed";
    case WEFT_GAP_FUTURE:
        return "futureSeq";
    default:
        return NULL;
    }
}

int weft__epoch_new(char ret[WEFT_EPOCH + 1]) {
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[WEFT_EPOCH / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++) {
        ret[2 * i] = digits[bytes[i] >> 4];
        ret[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret[WEFT_EPOCH] = '\0';
    return 0;
}

/* Jobs */

static bool name_fits(const char *name) {
    size_t len = name ? strnlen(name, WEFT_STORE_NAME + 1) : 0;
    return len > 0 && len <= WEFT_STORE_NAME;
}

/* Zeroed, apart from what is set here. */
static void *new_job(weft_store *store, weft_job_type type, size_t size, void *ctx) {
    weft_job *job = weft__zalloc(store->alloc, size);
    if (job) {
        job->type = type;
        job->bytes = size;
        job->ctx = ctx;
        weft__list_init(&job->link);
    }
    return job;
}

static void free_job(weft_store *store, weft_job *job) {
    if (job->type == WEFT_JOB_READ)
        weft__arena_done(&((weft_read_job *) (void *) job)->arena);
    if (job->type == WEFT_JOB_DELIVERY && ((weft_delivery *) (void *) job)->borrowed)
        return;
    weft__free(store->alloc, job);
}

int weft__counters_take(weft_counters *counters, const weft_append_job *job) {
    for (size_t i = 0; job->counter && i < WEFT_STORE_COUNTERS; i++) {
        char *name = counters->of[i].name;
        if (!*name)
            memcpy(name, job->counter, strlen(job->counter) + 1);
        if (strcmp(name, job->counter) != 0)
            continue;
        if (job->number < counters->of[i].next)
            return -EAGAIN;
        counters->of[i].next = job->number + 1;
        return 0;
    }
    return job->counter ? -ENOBUFS : 0;
}

/* Append */

static int check_append(const weft_store *store, const weft_append *append) {
    if (append->count + append->document_count + append->removal_count == 0 || append->count > WEFT_STORE_EVENTS ||
        append->document_count > WEFT_STORE_EVENTS || append->removal_count > WEFT_STORE_EVENTS ||
        (append->key && (!append->count || !name_fits(append->key))))
        return -EINVAL;
    if (append->counter && (!*append->counter || strlen(append->counter) >= sizeof((weft_counters *) 0)->of[0].name))
        return -EINVAL;
    for (size_t i = 0; i < append->document_count; i++)
        if (!name_fits(append->documents[i].key))
            return -EINVAL;
        else if (append->documents[i].data.len > store->max_event)
            return -EMSGSIZE;
    for (size_t i = 0; i < append->count; i++) {
        const weft_event *event = &append->events[i];
        if (!name_fits(event->stream) || !name_fits(event->type) || (event->data.len && !event->data.data))
            return -EINVAL;
        if (event->data.len > store->max_event)
            return -EMSGSIZE;
    }
    return 0;
}

static size_t append_size(const weft_append *append) {
    size_t size = sizeof(weft_append_job) + append->count * sizeof(weft_event) + weft__pack_size(append->key) +
                  weft__pack_size(append->counter) + append->removal_count * sizeof(uint64_t);
    for (size_t i = 0; i < append->count; i++)
        size += weft__pack_size(append->events[i].stream) + weft__pack_size(append->events[i].type) +
                append->events[i].data.len + 1;
    for (size_t i = 0; i < append->document_count; i++)
        size += sizeof(weft_document) + weft__pack_size(append->documents[i].key) + append->documents[i].data.len + 1;
    return size;
}

static void copy_append(weft_append_job *job, const weft_append *append) {
    job->documents = (weft_document *) (void *) (job->events + append->count);
    job->removals = (uint64_t *) (void *) (job->documents + append->document_count);
    job->removal_count = append->removal_count;
    if (append->removal_count)
        memcpy(job->removals, append->removals, append->removal_count * sizeof *job->removals);
    char *at = (char *) (job->removals + append->removal_count);
    job->count = append->count;
    job->document_count = append->document_count;
    job->key = weft__pack(&at, append->key);
    job->counter = weft__pack(&at, append->counter);
    job->number = append->number;
    for (size_t i = 0; i < append->document_count; i++) {
        const weft_document *from = &append->documents[i];
        job->documents[i].key = weft__pack(&at, from->key);
        job->documents[i].data = (weft_bytes){weft__pack_bytes(&at, from->data.data, from->data.len), from->data.len};
    }
    for (size_t i = 0; i < append->count; i++) {
        const weft_event *from = &append->events[i];
        weft_event *event = &job->events[i];
        event->time_ms = from->time_ms;
        event->stream = weft__pack(&at, from->stream);
        event->type = weft__pack(&at, from->type);
        event->data.len = from->data.len;
        event->data.data = weft__pack_bytes(&at, from->data.data ? from->data.data : "", from->data.len);
        job->data_bytes += from->data.len;
    }
}

void weft__store_release(weft_store *store) {
    while (!weft__list_empty(&store->held)) {
        weft_append_job *job = WEFT_CONTAINER(store->held.next, weft_append_job, job.link);
        weft__list_remove(&job->job.link);
        store->more = --store->held_count > 0;
        store->kind->append(store, job);
    }
}

void weft__store_hold(weft_store *store, void (*on_held)(void *ctx), void *ctx) {
    store->on_held = on_held;
    store->held_ctx = ctx;
    if (!on_held)
        weft__store_release(store);
}

static void hold_append(weft_store *store, weft_append_job *job) {
    weft__list_push(&store->held, &job->job.link);
    store->held_count++;
    if (!store->on_held || store->held_count >= WEFT_STORE_HELD)
        weft__store_release(store);
    else if (store->held_count == 1)
        store->on_held(store->held_ctx);
}

int weft__store_append(weft_store *store, const weft_append *append, weft_append_done *done, void *ctx) {
    int r = store->closing ? -ECANCELED : check_append(store, append);
    if (r < 0)
        return r;
    size_t size = append_size(append);
    if (size > store->max_queue - store->queued)
        return -EXFULL;
    weft_append_job *job = new_job(store, WEFT_JOB_APPEND, size, ctx);
    if (!job)
        return -ENOMEM;
    job->done = done;
    copy_append(job, append);
    store->queued += size;
    store->appends++;
    store->events += job->count;
    store->bytes += job->data_bytes;
    hold_append(store, job);
    return 0;
}

/* The delivery came before it: when the caller is answered, whatever follows the journal has already seen what it wrote. */
static void finish_append(weft_store *store, weft_append_job *job) {
    store->queued -= job->job.bytes;
    store->failures += job->job.r < 0;
    if (store->tap && job->job.r >= 0 && !job->repeat)
        store->tap(store->tap_ctx, &(weft_store_change){.events = job->events,
                                                        .count = job->count,
                                                        .key = job->key,
                                                        .documents = job->documents,
                                                        .document_count = job->document_count,
                                                        .removals = job->removals,
                                                        .removal_count = job->removal_count});
    if (job->done)
        job->done(job->job.ctx, job->job.r, job->events, job->count, job->repeat);
}

/* Read */

static int check_query(const weft_query *query) {
    const char *names[] = {query->stream, query->aside, query->but};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i] && !name_fits(names[i]))
            return -EINVAL;
    if ((query->epoch && strlen(query->epoch) > WEFT_STORE_NAME) || query->max_events > WEFT_STORE_PAGE ||
        (query->raw && (query->stream || query->documents || query->until || query->aside)))
        return -EINVAL;
    return 0;
}

int weft__store_read(weft_store *store, const weft_query *query, weft_page_done *done, void *ctx) {
    int r = store->closing ? -ECANCELED : check_query(query);
    if (r == 0 && query->raw && !store->kind->raw)
        r = -ENOTSUP;
    if (r < 0)
        return r;
    weft_read_job *job = new_job(store, WEFT_JOB_READ,
                                 sizeof *job + weft__pack_size(query->stream) + weft__pack_size(query->epoch) +
                                     weft__pack_size(query->aside) + weft__pack_size(query->but),
                                 ctx);
    if (!job)
        return -ENOMEM;
    char *at = job->strings;
    job->done = done;
    job->arena.alloc = store->alloc;
    job->query = *query;
    job->query.stream = weft__pack(&at, query->stream);
    job->query.epoch = weft__pack(&at, query->epoch);
    job->query.aside = weft__pack(&at, query->aside);
    job->query.but = weft__pack(&at, query->but);
    if (!query->max_events)
        job->query.max_events = PAGE_EVENTS;
    if (!query->max_bytes)
        job->query.max_bytes = PAGE_BYTES;
    store->kind->read(store, job);
    return 0;
}

/* Trim */

int weft__store_trim(weft_store *store, const weft_trim *trim, weft_trim_done *done, void *ctx) {
    if (store->closing)
        return -ECANCELED;
    if (trim->stream && !name_fits(trim->stream))
        return -EINVAL;
    weft_trim_job *job = new_job(store, WEFT_JOB_TRIM, sizeof *job + weft__pack_size(trim->stream), ctx);
    if (!job)
        return -ENOMEM;
    char *at = job->strings;
    job->done = done;
    job->trim = *trim;
    job->trim.stream = weft__pack(&at, trim->stream);
    weft__store_release(store); /* what was appended before it */
    store->kind->trim(store, job);
    return 0;
}

/* Completion */

static void finish_read(weft_read_job *job) {
    int r = job->job.r;
    /* What was gathered before the failure is not shown: it would be a partial answer. */
    job->done(job->job.ctx, r, r < 0 ? NULL : &job->page);
}

/* What went before it broke off stays gone. */
static void finish_trim(weft_store *store, weft_trim_job *job) {
    if (store->tap && job->cut)
        store->tap(store->tap_ctx, &(weft_store_change){.trimmed = job->cut, .stream = job->trim.stream});
    if (job->done)
        job->done(job->job.ctx, job->job.r, job->removed);
}

static void finish_store_job(weft_store *store, weft_job *job) {
    void *whole = job; /* every job begins with this */
    if (job->r == -EUCLEAN)
        atomic_store(&store->damaged, true);
    switch (job->type) {
    case WEFT_JOB_APPEND:
        finish_append(store, whole);
        break;
    case WEFT_JOB_READ:
        finish_read(whole);
        break;
    case WEFT_JOB_TRIM:
        finish_trim(store, whole);
        break;
    case WEFT_JOB_DELIVERY:
        weft__follow_tell(store, whole);
        break;
    }
    free_job(store, job);
}

void weft__store_dispatch(weft_store *store) {
    assert(!store->dispatching);
    weft_link jobs;
    weft__completions_take(&store->completions, &jobs);
    if (store->mark >= 0)
        weft__store_mark_note(store, &jobs);
    store->dispatching = true;
    while (!weft__list_empty(&jobs)) {
        weft_job *job = WEFT_CONTAINER(jobs.next, weft_job, link);
        weft__list_remove(&job->link);
        finish_store_job(store, job);
    }
    weft__follow_sweep(store);
    store->dispatching = false;
}

/* Life */

int weft__store_open(const weft_store_kind *kind, const weft_store_opts *opts, weft_store **ret, char *ret_why) {
    weft_store *store;
    ret_why[0] = '\0';
    int r = kind->open(opts, &store, ret_why);
    if (r < 0)
        return r;
    store->kind = kind;
    store->max_event = opts->max_event ? opts->max_event : MAX_EVENT;
    store->max_queue = opts->max_queue ? opts->max_queue : MAX_QUEUE;
    weft__list_init(&store->follows);
    weft__list_init(&store->held);
    store->held_count = 0;
    store->on_held = NULL;
    store->mark = -1;
    if (opts->mark)
        r = weft__store_mark_open(store, opts->mark, ret_why);
    if (r < 0) {
        weft__store_close(store);
        return r;
    }
    *ret = store;
    return 0;
}

weft_store *weft__store_close(weft_store *store) {
    if (!store)
        return NULL;
    assert(!store->dispatching);
    store->closing = true;
    weft__store_release(store);
    store->kind->close(store);
    weft__store_dispatch(store);
    weft__follow_end_all(store);
    assert(store->queued == 0);
    weft__store_mark_close(store);
    store->kind->free(store);
    return NULL;
}

int weft__store_tap(weft_store *store, weft_store_tap *tap, void *ctx) {
    if (tap && !store->kind->raw)
        return -ENOTSUP;
    store->tap = tap;
    store->tap_ctx = ctx;
    return 0;
}

int weft__store_fd(const weft_store *store) {
    return store->completions.fd;
}

const char *weft__store_epoch(const weft_store *store) {
    return store->epoch;
}

int weft__store_about(const weft_store *store, char *ret, size_t size) {
    return store->kind->about ? store->kind->about(store, ret, size) : -ENOTSUP;
}

const char *weft__store_before(const weft_store *store, uint64_t *ret_head) {
    *ret_head = store->before_head;
    return *store->before ? store->before : NULL;
}

uint64_t weft__store_head(const weft_store *store) {
    return store->told;
}

void weft__store_stats(weft_store *store, weft_store_stats *ret) {
    weft_completions *completions = &store->completions;
    pthread_mutex_lock(&completions->lock);
    *ret = (weft_store_stats){.appends = store->appends,
                              .events = store->events,
                              .bytes = store->bytes,
                              .failures = store->failures,
                              .queued_bytes = store->queued,
                              .sync_us = completions->sync_us,
                              .group = completions->group};
    pthread_mutex_unlock(&completions->lock);
}

int weft__store_look(weft_store *store) {
    int r = weft__files_look(store);
    if (r == -ESTALE && store->kind->look)
        store->kind->look(store);
    if (r >= 0)
        r = atomic_load(&store->trouble);
    return r < 0 ? r : atomic_load(&store->damaged) ? -EUCLEAN : 0;
}

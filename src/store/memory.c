/* The in-memory store: the reference for what the others must do, and what tests of everything above use. It works on the
 * owner's thread, at once, and is as simple as it can be: lists that are searched from the front.
 *
 * Nothing survives the process, so every open is a new epoch. */
#include <errno.h>
#include <string.h>

#include "store_kind.h"

typedef struct entry {
    struct stream *stream;
    weft_event event;
    const char *key; /* NULL: none */
    char text[];
} entry;

/* The events that are kept, oldest first. In a row of all streams an entry may be missing (NULL) once its stream was
 * trimmed. */
struct row {
    entry **entries;
    size_t count, cap;
    uint64_t trimmed; /* position of the last one no longer kept; entries[0] is the next */
};

typedef struct stream {
    weft_link link;
    struct row row;
    char name[];
} stream;

typedef struct claimed {
    weft_link link;
    int64_t until_ms;
    uint64_t fence;
    char *owner;
    char key[];
} claimed;

typedef struct memory {
    weft_store base;
    weft_link streams, claims;
    struct row all;
    uint64_t hole; /* highest gseq removed by the trimming of a stream */
    uint64_t fence;
} memory;

static void hand_back(weft_store *store, weft_job *job, int r) {
    weft_link jobs;
    weft__list_init(&jobs);
    job->r = r;
    weft__list_push(&jobs, &job->link);
    weft__tray_put(&store->tray, &jobs);
}

/* Rows */

static int reserve(memory *m, struct row *row, size_t more) {
    if (row->cap - row->count >= more)
        return 0;
    size_t cap = 2 * row->cap + more;
    entry **entries = weft__resize(m->base.alloc, row->entries, cap * sizeof *entries);
    if (!entries)
        return -ENOMEM;
    row->entries = entries;
    row->cap = cap;
    return 0;
}

static uint64_t head(const struct row *row) {
    return row->trimmed + row->count;
}

static void drop_front(struct row *row, size_t n) {
    if (!n)
        return;
    memmove(row->entries, row->entries + n, (row->count - n) * sizeof *row->entries);
    row->count -= n;
    row->trimmed += n;
}

static stream *find_stream(const memory *m, const char *name) {
    for (weft_link *link = m->streams.next; link != &m->streams; link = link->next) {
        stream *found = WEFT_CONTAINER(link, stream, link);
        if (strcmp(found->name, name) == 0)
            return found;
    }
    return NULL;
}

static stream *need_stream(memory *m, const char *name) {
    stream *found = find_stream(m, name);
    if (found)
        return found;
    size_t len = strlen(name);
    stream *made = weft__zalloc(m->base.alloc, sizeof *made + len + 1);
    if (made) {
        memcpy(made->name, name, len);
        weft__list_push(&m->streams, &made->link);
    }
    return made;
}

/* Append */

static entry *new_entry(memory *m, const weft_event *event, const char *key) {
    size_t type = strlen(event->type) + 1, key_len = key ? strlen(key) + 1 : 0;
    entry *made = weft__zalloc(m->base.alloc, sizeof *made + type + key_len + event->data.len + 1);
    if (!made)
        return NULL;
    made->event = *event;
    made->event.type = memcpy(made->text, event->type, type);
    made->key = key ? memcpy(made->text + type, key, key_len) : NULL;
    made->event.data.data = memcpy(made->text + type + key_len, event->data.data, event->data.len);
    return made;
}

/* Everything that can fail: memory for each event behind the end of the row, which shows none of them yet. */
static int prepare(memory *m, const weft_append_job *job, size_t *ret_made) {
    int r = reserve(m, &m->all, job->count);
    for (size_t i = 0; r >= 0 && i < job->count; i++) {
        stream *into = need_stream(m, job->events[i].stream);
        if (!into || (r = reserve(m, &into->row, job->count)) < 0)
            return -ENOMEM;
        entry *made = new_entry(m, &job->events[i], i == 0 ? job->key : NULL);
        if (!made)
            return -ENOMEM;
        made->stream = into;
        made->event.stream = into->name;
        m->all.entries[m->all.count + i] = made;
        ++*ret_made;
    }
    return r;
}

static void commit(memory *m, weft_append_job *job) {
    for (size_t i = 0; i < job->count; i++) {
        entry *made = m->all.entries[m->all.count];
        struct row *row = &made->stream->row;
        row->entries[row->count++] = made;
        m->all.count++;
        job->events[i].seq = made->event.seq = head(row);
        job->events[i].gseq = made->event.gseq = head(&m->all);
    }
}

static const entry *find_key(const memory *m, const char *key) {
    for (size_t i = m->all.count; key && i-- > 0;) {
        const entry *found = m->all.entries[i];
        if (found && found->key && strcmp(found->key, key) == 0)
            return found;
    }
    return NULL;
}

static const entry *at_gseq(const memory *m, uint64_t gseq) {
    return gseq > m->all.trimmed && gseq <= head(&m->all) ? m->all.entries[gseq - m->all.trimmed - 1] : NULL;
}

static int repeat(const memory *m, weft_append_job *job, uint64_t gseq) {
    for (size_t i = 0; i < job->count; i++) {
        const entry *was = at_gseq(m, gseq + i);
        if (was &&
            (strcmp(was->event.stream, job->events[i].stream) != 0 || strcmp(was->event.type, job->events[i].type) != 0))
            return -EEXIST;
        job->events[i].seq = was ? was->event.seq : 0;
        job->events[i].gseq = was ? was->event.gseq : 0;
    }
    job->repeat = true;
    return 0;
}

static void append(weft_store *store, weft_append_job *job) {
    memory *m = (memory *) (void *) store;
    const entry *known = find_key(m, job->key);
    size_t made = 0;
    int r = known ? repeat(m, job, known->event.gseq) : prepare(m, job, &made);
    if (r >= 0 && !known)
        commit(m, job);
    else
        while (made-- > 0)
            weft__free(store->alloc, m->all.entries[m->all.count + made]);
    hand_back(store, &job->job, r);
}

/* Read */

static uint64_t trimmed_over_all(const memory *m) {
    return m->hole > m->all.trimmed ? m->hole : m->all.trimmed;
}

/* Up to here something is gone from this stream. Which of its events went last is not known: it was before its first, and
 * not after the last that is gone from any. */
static uint64_t gone_from(const memory *m, const char *name) {
    const stream *found = find_stream(m, name);
    uint64_t last = trimmed_over_all(m);
    if (!found || !found->row.trimmed)
        return 0;
    uint64_t before = found->row.count ? found->row.entries[0]->event.gseq - 1 : last;
    return before < last ? before : last;
}

/* A position before this one has missed something it asked for. */
static uint64_t gone_over_all(const memory *m, const weft_query *query) {
    if (!query->aside)
        return trimmed_over_all(m);
    uint64_t one = query->but ? gone_from(m, query->but) : 0;
    return one > m->all.trimmed ? one : m->all.trimmed;
}

static int fill(const struct row *row, weft_read_job *job) {
    uint64_t from = job->query.after > row->trimmed ? job->query.after - row->trimmed : 0;
    int r = 1;
    for (size_t i = (size_t) from; r > 0 && i < row->count; i++) {
        const entry *found = row->entries[i];
        if (found && job->query.until && found->event.gseq > job->query.until)
            break;
        if (found)
            r = weft__page_add(job, &found->event);
    }
    return r < 0 ? r : 0;
}

static void read_page(weft_store *store, weft_read_job *job) {
    static const struct row nothing;
    memory *m = (memory *) (void *) store;
    const struct row *from = &m->all;
    if (job->query.stream) {
        stream *found = find_stream(m, job->query.stream);
        from = found ? &found->row : &nothing;
    }
    bool all = from == &m->all;
    int r = weft__page_begin(job, store->epoch, head(from), all ? trimmed_over_all(m) : from->trimmed,
                             all ? gone_over_all(m, &job->query) : from->trimmed);
    hand_back(store, &job->job, r == 0 ? fill(from, job) : r);
}

/* Claim */

static claimed *find_claim(const memory *m, const char *key) {
    for (weft_link *link = m->claims.next; link != &m->claims; link = link->next) {
        claimed *found = WEFT_CONTAINER(link, claimed, link);
        if (strcmp(found->key, key) == 0)
            return found;
    }
    return NULL;
}

static void drop_claim(memory *m, claimed *held) {
    weft__list_remove(&held->link);
    weft__free(m->base.alloc, held->owner);
    weft__free(m->base.alloc, held);
}

static int set_holder(memory *m, claimed *held, const weft_claim *claim) {
    if (!held->owner || strcmp(held->owner, claim->owner) != 0) {
        char *owner = weft__strndup(m->base.alloc, claim->owner, strlen(claim->owner));
        if (!owner)
            return -ENOMEM;
        weft__free(m->base.alloc, held->owner);
        held->owner = owner;
        held->fence = ++m->fence;
    }
    held->until_ms = claim->until_ms;
    return 1;
}

static claimed *new_claim(memory *m, const char *key) {
    size_t len = strlen(key);
    claimed *made = weft__zalloc(m->base.alloc, sizeof *made + len + 1);
    if (made) {
        memcpy(made->key, key, len);
        weft__list_push(&m->claims, &made->link);
    }
    return made;
}

static int try_claim(memory *m, weft_claim_job *job) {
    const weft_claim *claim = &job->claim;
    claimed *held = find_claim(m, claim->key);
    bool mine = held && strcmp(held->owner, claim->owner) == 0;
    bool expired = held && held->until_ms && held->until_ms <= claim->now_ms;
    if (claim->release) {
        if (mine)
            drop_claim(m, held);
        return !held || mine;
    }
    if (held && !mine && !expired)
        return 0;
    bool fresh = !held;
    if (fresh && !(held = new_claim(m, claim->key)))
        return -ENOMEM;
    int r = set_holder(m, held, claim);
    if (r < 0 && fresh)
        drop_claim(m, held);
    return r;
}

static void claim_key(weft_store *store, weft_claim_job *job) {
    memory *m = (memory *) (void *) store;
    int r = try_claim(m, job);
    const claimed *held = find_claim(m, job->claim.key);
    if (held && r >= 0) {
        memcpy(job->holder, held->owner, strlen(held->owner) + 1);
        job->until_ms = held->until_ms;
        job->fence = held->fence;
    }
    hand_back(store, &job->job, r);
}

/* Trim */

static uint64_t bytes_of(const struct row *row) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < row->count; i++)
        bytes += row->entries[i] ? row->entries[i]->event.data.len : 0;
    return bytes;
}

static size_t rows_of(const struct row *row) {
    size_t rows = 0;
    for (size_t i = 0; i < row->count; i++)
        rows += row->entries[i] != NULL;
    return rows;
}

static bool too_many(const weft_trim *trim, const entry *oldest, uint64_t rows, uint64_t bytes) {
    return (trim->rows && rows > trim->rows) || (trim->bytes && bytes > trim->bytes) || oldest->event.gseq <= trim->upto;
}

/* Remove an entry from the other row it is in. Over all it leaves a hole, in its stream it is the first. */
static void remove_entry(memory *m, entry *old, bool over_all) {
    if (over_all) {
        drop_front(&old->stream->row, 1);
    } else {
        m->all.entries[old->event.gseq - m->all.trimmed - 1] = NULL;
        m->hole = old->event.gseq > m->hole ? old->event.gseq : m->hole;
    }
    weft__free(m->base.alloc, old);
}

static void trim(weft_store *store, weft_trim_job *job) {
    memory *m = (memory *) (void *) store;
    stream *only = job->trim.stream ? find_stream(m, job->trim.stream) : NULL;
    struct row *row = only ? &only->row : &m->all;
    if (job->trim.stream && !only) {
        hand_back(store, &job->job, 0);
        return;
    }
    uint64_t rows = rows_of(row), bytes = bytes_of(row);
    size_t n = 0;
    for (; n < row->count; n++) {
        entry *old = row->entries[n];
        if (!old)
            continue;
        if (!too_many(&job->trim, old, rows, bytes))
            break;
        rows--;
        bytes -= old->event.data.len;
        job->removed++;
        remove_entry(m, old, !only);
    }
    /* Holes in front of the first that is kept go with the rest, but holes alone are no reason to move the edge. */
    drop_front(row, job->removed ? n : 0);
    hand_back(store, &job->job, 0);
}

/* Life */

static int open_memory(const weft_store_opts *opts, weft_store **ret, char *ret_why) {
    (void) ret_why;
    memory *m = weft__zalloc(opts->alloc, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->base.alloc = opts->alloc;
    weft__list_init(&m->streams);
    weft__list_init(&m->claims);
    int r = weft__epoch_new(m->base.epoch);
    if (r >= 0)
        r = weft__tray_init(&m->base.tray);
    if (r < 0) {
        weft__free(opts->alloc, m);
        return r;
    }
    *ret = &m->base;
    return 0;
}

static void close_memory(weft_store *store) {
    (void) store; /* everything was handed back when it came */
}

static void free_memory(weft_store *store) {
    memory *m = (memory *) (void *) store;
    for (size_t i = 0; i < m->all.count; i++)
        weft__free(store->alloc, m->all.entries[i]);
    weft__free(store->alloc, m->all.entries);
    while (!weft__list_empty(&m->streams)) {
        stream *old = WEFT_CONTAINER(m->streams.next, stream, link);
        weft__list_remove(&old->link);
        weft__free(store->alloc, old->row.entries);
        weft__free(store->alloc, old);
    }
    while (!weft__list_empty(&m->claims))
        drop_claim(m, WEFT_CONTAINER(m->claims.next, claimed, link));
    weft__tray_done(&store->tray);
    weft__free(store->alloc, m);
}

const weft_store_kind weft__memory = {
    .name = "memory",
    .open = open_memory,
    .append = append,
    .read = read_page,
    .claim = claim_key,
    .trim = trim,
    .close = close_memory,
    .free = free_memory,
};

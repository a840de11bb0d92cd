/* The in-memory store: the reference for what the others must do, and what tests of everything above use. It works on the
 * owner's thread, at once, and is as simple as it can be. Streams and documents are found by name, because a hub makes one
 * or two of them for every task.
 *
 * Several stores may share a journal (opts.beside), as several writers share a database: each is told of what the others
 * wrote. Nothing survives the process, so every journal is a new epoch. */
#include <errno.h>
#include <string.h>

#include "map.h"
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

typedef struct document {
    weft_link link; /* in the order of place */
    weft_node node; /* once it is stored */
    uint64_t place;
    char *data;
    size_t len;
    char key[];
} document;

typedef struct stream {
    weft_link link;
    weft_node node;
    struct row row;
    char name[];
} stream;

/* What the stores that share it have in common. */
typedef struct journal {
    const weft_alloc *alloc;
    size_t users;
    weft_link stores; /* that are told of what comes */
    weft_link streams, documents;
    weft_map stream_names, document_keys;
    uint64_t place; /* of the last document */
    weft_counters counters;
    struct row all;
    uint64_t hole; /* highest gseq removed by the trimming of a stream */
} journal;

typedef struct memory {
    weft_store base;
    weft_link link; /* in the journal's stores */
    journal *journal;
    weft_delivery missed; /* for events of others there was no memory to copy */
} memory;

static journal *journal_of(weft_store *store) {
    return ((memory *) (void *) store)->journal;
}

static void hand_back(weft_store *store, weft_job *job, int r) {
    weft_link jobs;
    weft__list_init(&jobs);
    job->r = r;
    weft__list_push(&jobs, &job->link);
    weft__completions_put(&store->completions, &jobs);
}

/* Rows */

static int reserve_row(journal *m, struct row *row, size_t more) {
    if (row->cap - row->count >= more)
        return 0;
    size_t cap = 2 * row->cap + more;
    entry **entries = weft__resize(m->alloc, row->entries, cap * sizeof *entries);
    if (!entries)
        return -ENOMEM;
    row->entries = entries;
    row->cap = cap;
    return 0;
}

static uint64_t row_head(const struct row *row) {
    return row->trimmed + row->count;
}

static void drop_front(struct row *row, size_t n) {
    if (!n)
        return;
    memmove(row->entries, row->entries + n, (row->count - n) * sizeof *row->entries);
    row->count -= n;
    row->trimmed += n;
}

static stream *find_stream(const journal *m, const char *name) {
    weft_node *found = weft__map_find(&m->stream_names, name);
    return found ? WEFT_CONTAINER(found, stream, node) : NULL;
}

static stream *need_stream(journal *m, const char *name) {
    stream *found = find_stream(m, name);
    if (found)
        return found;
    size_t len = strlen(name);
    stream *made = weft__zalloc(m->alloc, sizeof *made + len + 1);
    if (made) {
        memcpy(made->name, name, len);
        weft__list_push(&m->streams, &made->link);
        weft__map_put(&m->stream_names, &made->node, made->name);
    }
    return made;
}

/* Append */

static entry *new_entry(journal *m, const weft_event *event, const char *key) {
    size_t type = strlen(event->type) + 1, key_len = key ? strlen(key) + 1 : 0;
    entry *made = weft__zalloc(m->alloc, sizeof *made + type + key_len + event->data.len + 1);
    if (!made)
        return NULL;
    made->event = *event;
    made->event.type = memcpy(made->text, event->type, type);
    made->key = key ? memcpy(made->text + type, key, key_len) : NULL;
    made->event.data.data = memcpy(made->text + type + key_len, event->data.data, event->data.len);
    return made;
}

/* Everything that can fail: memory for each event behind the end of the row, which shows none of them yet. */
static int prepare_entries(journal *m, const weft_append_job *job, size_t *ret_made) {
    int r = reserve_row(m, &m->all, job->count);
    for (size_t i = 0; r >= 0 && i < job->count; i++) {
        stream *into = need_stream(m, job->events[i].stream);
        if (!into || (r = reserve_row(m, &into->row, job->count)) < 0)
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

static void commit_entries(journal *m, weft_append_job *job) {
    for (size_t i = 0; i < job->count; i++) {
        entry *made = m->all.entries[m->all.count];
        struct row *row = &made->stream->row;
        row->entries[row->count++] = made;
        m->all.count++;
        job->events[i].seq = made->event.seq = row_head(row);
        job->events[i].gseq = made->event.gseq = row_head(&m->all);
    }
}

static const entry *find_key(const journal *m, const char *key) {
    for (size_t i = m->all.count; key && i-- > 0;) {
        const entry *found = m->all.entries[i];
        if (found && found->key && strcmp(found->key, key) == 0)
            return found;
    }
    return NULL;
}

static const entry *at_gseq(const journal *m, uint64_t gseq) {
    return gseq > m->all.trimmed && gseq <= row_head(&m->all) ? m->all.entries[gseq - m->all.trimmed - 1] : NULL;
}

static int repeat_append(const journal *m, weft_append_job *job, uint64_t gseq) {
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

/* Documents */

static document *find_document(const journal *m, const char *key) {
    weft_node *found = weft__map_find(&m->document_keys, key);
    return found ? WEFT_CONTAINER(found, document, node) : NULL;
}

static void drop_document(journal *m, document *old) {
    weft__list_remove(&old->link);
    weft__map_remove(&m->document_keys, &old->node);
    weft__free(m->alloc, old->data);
    weft__free(m->alloc, old);
}

static document *new_document(journal *m, const weft_document *from) {
    size_t len = strlen(from->key);
    document *made = weft__zalloc(m->alloc, sizeof *made + len + 1);
    if (!made)
        return NULL;
    memcpy(made->key, from->key, len);
    made->data = weft__strndup(m->alloc, from->data.data, from->data.len);
    made->len = from->data.len;
    weft__list_init(&made->link);
    return made->data ? made : weft__free(m->alloc, made);
}

/* Everything that can fail: new copies of all of them, on a list of their own. */
static int prepare_documents(journal *m, const weft_append_job *job, weft_link *ret) {
    for (size_t i = 0; i < job->document_count; i++) {
        if (!job->documents[i].data.data)
            continue;
        document *made = new_document(m, &job->documents[i]);
        if (!made)
            return -ENOMEM;
        weft__list_push(ret, &made->link);
    }
    return 0;
}

static void put_document(journal *m, document *made) {
    document *old = find_document(m, made->key);
    weft__list_remove(&made->link);
    made->place = old ? old->place : ++m->place;
    /* Where the old one was. */
    weft__list_push(old ? &old->link : &m->documents, &made->link);
    if (old)
        drop_document(m, old);
    weft__map_put(&m->document_keys, &made->node, made->key);
}

static void commit_documents(journal *m, const weft_append_job *job, weft_link *made) {
    for (size_t i = 0; i < job->document_count; i++) {
        document *old = job->documents[i].data.data ? NULL : find_document(m, job->documents[i].key);
        if (job->documents[i].data.data)
            put_document(m, WEFT_CONTAINER(made->next, document, link));
        else if (old)
            drop_document(m, old);
    }
}

static void drop_documents(journal *m, weft_link *list) {
    while (!weft__list_empty(list))
        drop_document(m, WEFT_CONTAINER(list->next, document, link));
}

/* Removals */

static void remove_contents(journal *m, const weft_append_job *job) {
    for (size_t i = 0; i < job->removal_count; i++) {
        uint64_t gseq = job->removals[i];
        entry *old = gseq > m->all.trimmed && gseq <= row_head(&m->all) ? m->all.entries[gseq - m->all.trimmed - 1] : NULL;
        if (!old || strcmp(old->event.type, WEFT_REMOVED) == 0)
            continue;
        memset(old->text + (old->event.data.data - old->text), 0, old->event.data.len);
        old->event.type = WEFT_REMOVED;
        old->event.data = (weft_bytes){WEFT_REMOVED_DATA, sizeof WEFT_REMOVED_DATA - 1};
    }
}

static void deliver_to(memory *m, const weft_append_job *job) {
    weft_link jobs;
    weft_delivery *made = weft__delivery_new(m->base.alloc, job->events, job->count);
    uint64_t upto = job->events[job->count - 1].gseq;
    weft__list_init(&jobs);
    if (!made) {
        made = &m->missed;
        made->upto = upto;
        if (!weft__list_empty(&made->job.link))
            return; /* still on the completions: it now speaks of more */
    }
    weft__list_push(&jobs, &made->job.link);
    weft__completions_put(&m->base.completions, &jobs);
}

static void append_done(weft_store *store, weft_append_job *job, int r) {
    weft_link jobs;
    weft__list_init(&jobs);
    job->job.r = r;
    bool stored = r >= 0 && !job->repeat && job->count;
    journal *m = journal_of(store);
    for (weft_link *link = m->stores.next; stored && link != &m->stores; link = link->next) {
        memory *other = WEFT_CONTAINER(link, memory, link);
        if (&other->base != store)
            deliver_to(other, job);
    }
    weft__append_done(job, &jobs);
    weft__completions_put(&store->completions, &jobs);
}

static void memory_append(weft_store *store, weft_append_job *job) {
    journal *m = journal_of(store);
    const entry *known = find_key(m, job->key);
    size_t made = 0;
    weft_link documents;
    weft__list_init(&documents);
    int r = known ? repeat_append(m, job, known->event.gseq) : prepare_entries(m, job, &made);
    if (r >= 0 && !known)
        r = prepare_documents(m, job, &documents);
    if (r >= 0 && !known)
        r = weft__counters_take(&m->counters, job); /* last: nothing fails behind it */
    if (r >= 0 && !known) {
        commit_entries(m, job);
        commit_documents(m, job, &documents);
        remove_contents(m, job);
    } else
        while (made-- > 0)
            weft__free(m->alloc, m->all.entries[m->all.count + made]);
    drop_documents(m, &documents);
    append_done(store, job, r);
}

/* Read */

static uint64_t trimmed_over_all(const journal *m) {
    return m->hole > m->all.trimmed ? m->hole : m->all.trimmed;
}

/* Up to here something is gone from this stream. Which of its events went last is not known: it was before its first, and
 * not after the last that is gone from any. */
static uint64_t gone_from(const journal *m, const char *name) {
    const stream *found = find_stream(m, name);
    uint64_t last = trimmed_over_all(m);
    if (!found || !found->row.trimmed)
        return 0;
    uint64_t before = found->row.count ? found->row.entries[0]->event.gseq - 1 : last;
    return before < last ? before : last;
}

/* A position before this one has missed something it asked for. */
static uint64_t gone_over_all(const journal *m, const weft_query *query) {
    if (!query->aside)
        return trimmed_over_all(m);
    uint64_t one = query->but ? gone_from(m, query->but) : 0;
    return one > m->all.trimmed ? one : m->all.trimmed;
}

static int fill_page(const struct row *row, weft_read_job *job) {
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

static int fill_documents(const journal *m, const char *epoch, weft_read_job *job) {
    int r = weft__page_begin(job, epoch, m->place, 0, 0);
    for (weft_link *link = m->documents.next; r >= 0 && link != &m->documents; link = link->next) {
        const document *found = WEFT_CONTAINER(link, document, link);
        weft_event event = {
            .stream = found->key, .type = "document", .data = {found->data, found->len}, .seq = found->place};
        if (job->query.stream && strcmp(found->key, job->query.stream) != 0)
            continue;
        if (found->place > job->query.after && (r = weft__page_add(job, &event)) == 0)
            break;
    }
    return r < 0 ? r : 0;
}

static void read_page(weft_store *store, weft_read_job *job) {
    static const struct row nothing;
    journal *m = journal_of(store);
    const struct row *from = &m->all;
    if (job->query.documents) {
        hand_back(store, &job->job, fill_documents(m, store->epoch, job));
        return;
    }
    if (job->query.stream) {
        stream *found = find_stream(m, job->query.stream);
        from = found ? &found->row : &nothing;
    }
    bool all = from == &m->all;
    int r = weft__page_begin(job, store->epoch, row_head(from), all ? trimmed_over_all(m) : from->trimmed,
                             all ? gone_over_all(m, &job->query) : from->trimmed);
    hand_back(store, &job->job, r == 0 ? fill_page(from, job) : r);
}

/* Trim */

static uint64_t row_bytes(const struct row *row) {
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
    if (trim->before && oldest->event.gseq >= trim->before)
        return false;
    return (trim->rows && rows > trim->rows) || (trim->bytes && bytes > trim->bytes) || oldest->event.gseq <= trim->upto;
}

/* Remove an entry from the other row it is in. Over all it leaves a hole, in its stream it is the first. */
static void remove_entry(journal *m, entry *old, bool over_all) {
    if (over_all) {
        drop_front(&old->stream->row, 1);
    } else {
        m->all.entries[old->event.gseq - m->all.trimmed - 1] = NULL;
        m->hole = old->event.gseq > m->hole ? old->event.gseq : m->hole;
    }
    weft__free(m->alloc, old);
}

static void memory_trim(weft_store *store, weft_trim_job *job) {
    journal *m = journal_of(store);
    stream *only = job->trim.stream ? find_stream(m, job->trim.stream) : NULL;
    struct row *row = only ? &only->row : &m->all;
    if (job->trim.stream && !only) {
        hand_back(store, &job->job, 0);
        return;
    }
    uint64_t rows = rows_of(row), bytes = row_bytes(row);
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

static journal *new_journal(const weft_alloc *alloc) {
    journal *made = weft__zalloc(alloc, sizeof *made);
    if (!made)
        return NULL;
    made->alloc = alloc;
    made->stream_names.alloc = made->document_keys.alloc = alloc;
    weft__list_init(&made->streams);
    weft__list_init(&made->stores);
    weft__list_init(&made->documents);
    return made;
}

static journal *free_journal(journal *m) {
    for (size_t i = 0; i < m->all.count; i++)
        weft__free(m->alloc, m->all.entries[i]);
    weft__free(m->alloc, m->all.entries);
    drop_documents(m, &m->documents);
    while (!weft__list_empty(&m->streams)) {
        stream *old = WEFT_CONTAINER(m->streams.next, stream, link);
        weft__list_remove(&old->link);
        weft__free(m->alloc, old->row.entries);
        weft__free(m->alloc, old);
    }
    weft__map_done(&m->stream_names);
    weft__map_done(&m->document_keys);
    return weft__free(m->alloc, m);
}

static int join_journal(memory *m, weft_store *beside) {
    m->journal = beside ? journal_of(beside) : new_journal(m->base.alloc);
    if (!m->journal)
        return -ENOMEM;
    m->missed.job.type = WEFT_JOB_DELIVERY;
    m->missed.borrowed = true;
    weft__list_init(&m->missed.job.link);
    m->base.told = row_head(&m->journal->all);
    m->journal->users++;
    weft__list_push(&m->journal->stores, &m->link);
    if (!beside)
        return weft__epoch_new(m->base.epoch);
    memcpy(m->base.epoch, beside->epoch, sizeof m->base.epoch);
    return 0;
}

/* The last one frees it. */
static void leave_journal(memory *m) {
    weft__list_remove(&m->link);
    if (m->journal && --m->journal->users == 0)
        free_journal(m->journal);
}

static int open_memory(const weft_store_opts *opts, weft_store **ret, char *ret_why) {
    (void) ret_why;
    memory *m = weft__zalloc(opts->alloc, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->base.alloc = opts->alloc;
    weft__list_init(&m->link);
    int r = join_journal(m, opts->beside);
    if (r >= 0)
        r = weft__completions_init(&m->base.completions);
    if (r < 0) {
        leave_journal(m);
        weft__free(opts->alloc, m);
        return r;
    }
    *ret = &m->base;
    return 0;
}

/* Everything was handed back when it came. Nothing is delivered to it any more. */
static void close_memory(weft_store *store) {
    weft__list_remove(&((memory *) (void *) store)->link);
}

static void free_memory(weft_store *store) {
    memory *m = (memory *) (void *) store;
    leave_journal(m);
    weft__completions_done(&store->completions);
    weft__free(store->alloc, m);
}

const weft_store_kind weft__memory = {
    .name = "memory",
    .open = open_memory,
    .append = memory_append,
    .read = read_page,
    .trim = memory_trim,
    .close = close_memory,
    .free = free_memory,
};

/* Changes are written down as they come, because what they point to is gone afterwards. */
#include "change_log.h"

#include <errno.h>
#include <stdio.h>

#include "alloc.h"
#include "list.h"
#include "store_kind.h"
#include "write.h"

#define MAX_BYTES ((size_t) 32 << 20)
#define PAGE_BYTES ((size_t) 512 << 10) /* of data in a page, which grow when they are quoted */

typedef struct entry {
    weft_link link;
    uint64_t number;
    size_t len;
    char text[];
} entry;

struct weft_change_log {
    weft_change_log_opts opts;
    weft_link entries;
    uint64_t first, last; /* first: of those that are there; last + 1 when there is none */
    size_t bytes;
    char name[WEFT_EPOCH + 1];
};

static int write_event(weft_buf *out, const weft_alloc *alloc, const weft_event *event, const char *key) {
    weft_val value =
        WEFT_OBJ({"gseq", weft_uint(event->gseq)}, {"seq", weft_uint(event->seq)}, {"stream", weft_str(event->stream)},
                 {"type", weft_str(event->type)}, {"time", weft_int(event->time_ms)},
                 {"data", weft_strn(event->data.data, event->data.len)}, {"key", weft_str_or_none(key)});
    return weft__write_val(out, alloc, &value);
}

/* ---- writing ---- */

static int write_events(weft_buf *out, const weft_alloc *alloc, const weft_store_change *change) {
    int r = weft__buf_put_text(out, alloc, ",\"events\":[");
    for (size_t i = 0; r >= 0 && i < change->count; i++) {
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_event(out, alloc, &change->events[i], i ? NULL : change->key);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static int write_documents(weft_buf *out, const weft_alloc *alloc, const weft_store_change *change) {
    int r = weft__buf_put_text(out, alloc, ",\"documents\":[");
    for (size_t i = 0; r >= 0 && i < change->document_count; i++) {
        const weft_document *document = &change->documents[i];
        weft_val value =
            WEFT_OBJ({"key", weft_str(document->key)}, {"data", weft_strn(document->data.data, document->data.len)});
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static int write_removals(weft_buf *out, const weft_alloc *alloc, const weft_store_change *change) {
    int r = weft__buf_put_text(out, alloc, ",\"removed\":[");
    for (size_t i = 0; r >= 0 && i < change->removal_count; i++) {
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_int(out, alloc, (int64_t) change->removals[i]);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static int write_change(weft_buf *out, const weft_alloc *alloc, uint64_t number, const weft_store_change *change) {
    int r = weft__buf_put_text(out, alloc, "{\"number\":");
    if (r >= 0)
        r = weft__write_int(out, alloc, (int64_t) number);
    if (r >= 0 && change->count)
        r = write_events(out, alloc, change);
    if (r >= 0 && change->document_count)
        r = write_documents(out, alloc, change);
    if (r >= 0 && change->removal_count)
        r = write_removals(out, alloc, change);
    if (r >= 0 && change->trimmed) {
        weft_val value = WEFT_OBJ({"upto", weft_uint(change->trimmed)}, {"stream", weft_str_or_none(change->stream)});
        r = weft__buf_put_text(out, alloc, ",\"trimmed\":");
        if (r >= 0)
            r = weft__write_val(out, alloc, &value);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 1);
}

/* ---- pages ---- */

const char *const weft__copy_parts[WEFT_COPY_PARTS + 1] = {"events", "streams", "removed", "documents", NULL};

weft_query weft__copy_query(weft_copy_part part, uint64_t after) {
    static const weft_raw_page raw[WEFT_COPY_PARTS] = {[WEFT_COPY_EVENTS] = WEFT_RAW_EVENTS,
                                                       [WEFT_COPY_STREAMS] = WEFT_RAW_STREAMS,
                                                       [WEFT_COPY_REMOVED] = WEFT_RAW_REMOVED};
    return (weft_query){.raw = raw[part],
                        .documents = part == WEFT_COPY_DOCUMENTS,
                        .after = after,
                        .oldest = true,
                        .max_events = WEFT_STORE_PAGE,
                        .max_bytes = PAGE_BYTES};
}

static int write_row(weft_buf *out, const weft_alloc *alloc, weft_copy_part part, const weft_event *row) {
    weft_val data = weft_strn(row->data.data, row->data.len), value;
    switch (part) {
    case WEFT_COPY_EVENTS:
        return write_event(out, alloc, row, row->key);
    case WEFT_COPY_STREAMS:
        value =
            WEFT_OBJ({"place", weft_uint(row->seq)}, {"stream", weft_str(row->stream)}, {"trimmed", weft_uint(row->gseq)});
        return weft__write_val(out, alloc, &value);
    case WEFT_COPY_REMOVED:
        return weft__write_int(out, alloc, (int64_t) row->gseq);
    default:
        value = WEFT_OBJ({"place", weft_uint(row->seq)}, {"key", weft_str(row->stream)}, {"data", data});
        return weft__write_val(out, alloc, &value);
    }
}

int weft__copy_write_page(weft_buf *out, const weft_alloc *alloc, weft_copy_part part, const weft_page *page) {
    char end[160];
    int r = weft__buf_put_text(out, alloc, "{\"rows\":[");
    for (size_t i = 0; r >= 0 && i < page->count; i++) {
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_row(out, alloc, part, &page->events[i]);
    }
    snprintf(end, sizeof end, "],\"last\":%llu,\"more\":%s,\"head\":%llu,\"trimmed\":%llu}", (unsigned long long) page->last,
             page->more ? "true" : "false", (unsigned long long) (part == WEFT_COPY_EVENTS ? page->head : 0),
             (unsigned long long) page->trimmed);
    return r < 0 ? r : weft__buf_put_text(out, alloc, end);
}

/* ---- keeping ---- */

static void drop_oldest(weft_change_log *log) {
    entry *oldest = WEFT_CONTAINER(log->entries.next, entry, link);
    weft__list_remove(&oldest->link);
    log->bytes -= oldest->len;
    log->first = oldest->number + 1;
    weft__free(log->opts.alloc, oldest);
}

static void drop_all(weft_change_log *log) {
    while (!weft__list_empty(&log->entries))
        drop_oldest(log);
    log->first = log->last + 1;
}

static int keep_change(weft_change_log *log, const weft_store_change *change) {
    const weft_alloc *alloc = log->opts.alloc;
    weft_buf text = {0};
    int r = write_change(&text, alloc, log->last, change);
    size_t len = weft__buf_len(&text);
    entry *made = r < 0 ? NULL : weft__alloc(alloc, sizeof *made + len);
    if (made) {
        weft__list_init(&made->link);
        made->number = log->last;
        made->len = len;
        memcpy(made->text, weft__buf_head(&text), len);
        weft__list_push(&log->entries, &made->link);
        log->bytes += len;
    }
    weft__buf_done(&text, alloc);
    return made ? 0 : r < 0 ? r : -ENOMEM;
}

/* One that cannot be kept is a hole, and nobody can go on across it. */
static void on_tap(void *ctx, const weft_store_change *change) {
    weft_change_log *log = ctx;
    log->last++;
    if (keep_change(log, change) < 0)
        drop_all(log);
    while (log->bytes > log->opts.max_bytes && log->entries.next != log->entries.prev)
        drop_oldest(log);
    if (log->opts.on_change)
        log->opts.on_change(log->opts.ctx);
}

/* ---- life ---- */

int weft__change_log_new(const weft_change_log_opts *opts, weft_change_log **ret) {
    weft_change_log *log = weft__zalloc(opts->alloc, sizeof *log);
    if (!log)
        return -ENOMEM;
    log->opts = *opts;
    log->first = 1;
    weft__list_init(&log->entries);
    if (!log->opts.max_bytes)
        log->opts.max_bytes = MAX_BYTES;
    int r = weft__epoch_new(log->name);
    if (r >= 0)
        r = weft__store_tap(opts->store, on_tap, log);
    if (r < 0) {
        weft__free(opts->alloc, log);
        return r;
    }
    *ret = log;
    return 0;
}

weft_change_log *weft__change_log_free(weft_change_log *log) {
    if (!log)
        return NULL;
    weft__store_tap(log->opts.store, NULL, NULL);
    drop_all(log);
    return weft__free(log->opts.alloc, log);
}

const char *weft__change_log_name(const weft_change_log *log) {
    return log->name;
}

uint64_t weft__change_log_last(const weft_change_log *log) {
    return log->last;
}

bool weft__change_log_has(const weft_change_log *log, uint64_t after) {
    return after <= log->last && after + 1 >= log->first;
}

int weft__change_log_read(const weft_change_log *log, uint64_t after, size_t max_bytes, weft_buf *out, uint64_t *ret_last) {
    const weft_alloc *alloc = log->opts.alloc;
    size_t before = weft__buf_len(out);
    uint64_t last = after;
    if (!weft__change_log_has(log, after))
        return -ERANGE;
    int r = weft__buf_put(out, alloc, "[", 1);
    const weft_link *link = &log->entries; /* those who read are near the end */
    while (link->prev != &log->entries && WEFT_CONTAINER(link->prev, entry, link)->number > after)
        link = link->prev;
    for (; r >= 0 && link != &log->entries; link = link->next) {
        const entry *at = WEFT_CONTAINER(link, entry, link);
        if (last != after && weft__buf_len(out) - before + at->len > max_bytes)
            break;
        r = last != after ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__buf_put(out, alloc, at->text, at->len);
        last = at->number;
    }
    if (r >= 0)
        r = weft__buf_put(out, alloc, "]", 1);
    if (r >= 0)
        *ret_last = last;
    return r < 0 ? r : 0;
}

/* Filling a page: where it may begin, and when it is full. */
#include <errno.h>
#include <string.h>

#include "store_kind.h"

int weft__page_begin(weft_read_job *job, const char *epoch, uint64_t head, uint64_t trimmed, uint64_t gone) {
    weft_query *query = &job->query;
    job->page.head = head;
    job->page.trimmed = trimmed;
    job->page.last = query->after;
    if (query->epoch && strcmp(query->epoch, epoch) != 0)
        return WEFT_GAP_EPOCH;
    if (query->after > head)
        return WEFT_GAP_FUTURE;
    if (query->after < gone && !query->oldest)
        return WEFT_GAP_TRIMMED;
    return 0;
}

static char *keep_in_arena(weft_read_job *job, const char *text, size_t len) {
    char *copy = weft__arena_alloc(&job->arena, len + 1);
    if (copy) {
        if (len)
            memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

static bool is_page_full(const weft_read_job *job, const weft_event *event) {
    const weft_query *query = &job->query;
    if (job->page.count == 0)
        return query->max_events == 0;
    return job->page.count == query->max_events || event->data.len > query->max_bytes - job->data_bytes;
}

int weft__page_add(weft_read_job *job, const weft_event *event) {
    if (is_page_full(job, event)) {
        job->page.more = true;
        return 0;
    }
    if (!job->events)
        job->events = weft__arena_alloc(&job->arena, job->query.max_events * sizeof *job->events);
    if (!job->events)
        return -ENOMEM;
    weft_event copy = *event;
    /* Most pages are of one stream, whose name the query has. */
    copy.stream = job->query.stream && !job->query.documents ? job->query.stream
                                                             : keep_in_arena(job, event->stream, strlen(event->stream));
    copy.type = keep_in_arena(job, event->type, strlen(event->type));
    copy.data.data = keep_in_arena(job, event->data.data, event->data.len);
    copy.key = job->query.raw && event->key ? keep_in_arena(job, event->key, strlen(event->key)) : NULL;
    if (!copy.stream || !copy.type || !copy.data.data || (job->query.raw && event->key && !copy.key))
        return -ENOMEM;
    job->events[job->page.count++] = copy;
    job->page.events = job->events;
    bool by_seq = job->query.stream || job->query.documents || job->query.raw == WEFT_RAW_STREAMS;
    job->page.last = by_seq ? event->seq : event->gseq;
    /* A first event above the limit makes the page full, not the difference negative. */
    job->data_bytes +=
        event->data.len < job->query.max_bytes - job->data_bytes ? event->data.len : job->query.max_bytes - job->data_bytes;
    return 1;
}

/* What has become durable, on its way to the followers. */
#include <string.h>

#include "pack.h"
#include "store_kind.h"

void weft__append_done(weft_append_job *job, weft_link *jobs) {
    if (job->job.r >= 0 && !job->repeat && job->count) {
        job->delivery = (weft_delivery){
            .job = {.type = WEFT_JOB_DELIVERY},
            .events = job->events,
            .count = job->count,
            .upto = job->events[job->count - 1].gseq,
            .borrowed = true,
        };
        weft__list_init(&job->delivery.job.link);
        weft__list_push(jobs, &job->delivery.job.link);
    }
    weft__list_push(jobs, &job->job.link);
}

static size_t copy_size(const weft_event *events, size_t count) {
    size_t size = sizeof(weft_delivery) + count * sizeof *events;
    for (size_t i = 0; i < count; i++)
        size += weft__pack_size(events[i].stream) + weft__pack_size(events[i].type) + events[i].data.len + 1;
    return size;
}

weft_delivery *weft__delivery_new(const weft_alloc *alloc, const weft_event *events, size_t count) {
    weft_delivery *made = weft__zalloc(alloc, copy_size(events, count));
    if (!made)
        return NULL;
    weft_event *copies = (weft_event *) (made + 1);
    char *at = (char *) (copies + count);
    for (size_t i = 0; i < count; i++) {
        copies[i] = events[i];
        copies[i].stream = weft__pack(&at, events[i].stream);
        copies[i].type = weft__pack(&at, events[i].type);
        copies[i].data.data = weft__pack_bytes(&at, events[i].data.data, events[i].data.len);
    }
    made->job.type = WEFT_JOB_DELIVERY;
    weft__list_init(&made->job.link);
    made->events = copies;
    made->count = count;
    made->upto = events[count - 1].gseq;
    return made;
}

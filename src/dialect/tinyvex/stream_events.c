/* The stream "events": everything that happens, or what has one of the types, or is about one task. */
#include "reply.h"
#include "tinyvex_stream.h"

static const weft_param params[] = {
    {"types", WEFT_PARAM_arr, 0, 0, "only those whose types begin with one of these"},
    {"taskId", WEFT_PARAM_str, 0, 0, "only events about this task"},
    {0},
};

/* No event has a type with a NUL in it, nor this one. */
#define NO_TYPE "\n"

static weft_event_source *events_source(const weft_json *of, const weft_alloc *alloc) {
    weft_json types = weft_get(of, "types"), about = weft_get(of, "taskId");
    const char *task = NULL;
    size_t count = weft_count(&types), n = 0;
    const char **list = weft__alloc(alloc, (count + 1) * sizeof *list);
    int r = !list ? -ENOMEM : about.text ? weft__stream_param(of, "taskId", &task) : 0;
    for (weft_iter it = weft_iterate(&types); r >= 0 && n < count && weft_next(&it); n++) {
        r = weft__field_text(&it.value, &list[n]);
        list[n] = r >= 0 && list[n] ? list[n] : NO_TYPE;
    }
    weft_event_source *source =
        r < 0 ? NULL : weft__source_new(&(weft_subscription_spec){.types = list, .type_count = n, .task = task}, alloc);
    weft__free(alloc, (void *) list);
    return source;
}

static int show_event(const weft_hub *hub, const weft_json *of, const weft_event *event, const weft_json *data,
                      weft_buf *out) {
    char time[WEFT_STAMP];
    (void) of, (void) data;
    weft_val value =
        WEFT_OBJ({"gseq", weft_uint(event->gseq)}, {"seq", weft_uint(event->seq)}, {"stream", weft_str(event->stream)},
                 {"type", weft_str(event->type)}, {"time", weft_str(weft__stamp(event->time_ms, time))},
                 {"data", weft_raw(event->data.data, event->data.len)});
    int r = weft__write_val(out, hub->alloc, &value);
    return r < 0 ? r : 1;
}

const weft_stream_kind weft__stream_events = {.name = "events",
                                              .help = "what happens, as it is stored, from now on",
                                              .params = params,
                                              .class = WEFT_CLASS_LOG,
                                              .raw = true,
                                              .source = events_source,
                                              .show = show_event};

/* The stream "documents": the values of a collection, in the order of their keys. They are made by doc.put. */
#include "collections.h"
#include "reply.h"
#include "tinyvex_stream.h"

static const weft_param params[] = {
    {"collection", WEFT_PARAM_str, 0, WEFT_REQUIRED, "which collection; one that has no values is an empty list"},
    {0},
};

static weft_event_source *documents_source(const weft_json *of, const weft_alloc *alloc) {
    static const char *const types[] = {"doc."};
    const char *collection;
    if (weft__stream_param(of, "collection", &collection) < 0)
        return NULL;
    return weft__source_new(&(weft_subscription_spec){.types = types, .type_count = 1, .collection = collection}, alloc);
}

static int write_item(weft_buf *out, const weft_alloc *alloc, const weft_item *item, bool *first) {
    char updated[WEFT_STAMP];
    return weft__stream_item(out, alloc, first,
                             WEFT_OBJ({"key", weft_str(item->key)}, {"version", weft_uint(item->version)},
                                      {"updatedAt", weft__stamp_val(item->updated_ms, updated)},
                                      {"value", weft_raw(item->value.data, item->value.len)}));
}

static void compute_documents(const weft_hub *hub, const weft_json *of, weft_computing *computing) {
    weft_buf *out = weft__computing_out(computing);
    const char *collection;
    bool first = true;
    int r = weft__stream_param(of, "collection", &collection);
    if (r >= 0)
        r = weft__buf_put(out, hub->alloc, "[", 1);
    for (const weft_item *item = r < 0 ? NULL : weft__item_first(hub->engine, collection); r >= 0 && item;
         item = weft__item_next(hub->engine, item))
        r = write_item(out, hub->alloc, item, &first);
    weft__computing_done(computing, r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1));
}

const weft_stream_kind weft__stream_documents = {.name = "documents",
                                                 .help = "the values of a collection, in the order of their keys",
                                                 .params = params,
                                                 .class = WEFT_CLASS_STATE,
                                                 .source = documents_source,
                                                 .compute = compute_documents};

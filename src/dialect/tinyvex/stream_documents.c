/* The stream "documents": the values of a collection, in the order of their keys. A collection that nobody has put anything
 * into is empty. */
#include "collections.h"
#include "reply.h"
#include "tinyvex_stream.h"

static const weft_param params[] = {
    {"collection", WEFT_PARAM_str, 0, WEFT_REQUIRED, "which collection"},
    {0},
};

static weft_event_source *documents_source(const weft_json *of, const weft_alloc *alloc) {
    static const char *const types[] = {"doc."};
    const char *collection;
    if (weft__stream_param(of, "collection", &collection) < 0)
        return NULL;
    return weft__source_new(&(weft_subscription_spec){.types = types, .type_count = 1, .collection = collection}, alloc);
}

static int write_document(weft_buf *out, const weft_alloc *alloc, const weft_item *item, bool *first) {
    char updated[WEFT_STAMP];
    return weft__stream_item(out, alloc, first,
                             WEFT_OBJ({"key", weft_str(item->key)}, {"value", weft_raw(item->value.data, item->value.len)},
                                      {"version", weft_uint(item->version)},
                                      {"updatedAt", weft__stamp_val(item->updated_ms, updated)}));
}

static int write_documents(const weft_hub *hub, const weft_json *of, weft_buf *out) {
    const char *collection;
    bool first = true;
    int r = weft__stream_param(of, "collection", &collection);
    if (r >= 0)
        r = weft__buf_put(out, hub->alloc, "[", 1);
    for (const weft_item *item = r < 0 ? NULL : weft__item_first(hub->engine, collection); r >= 0 && item;
         item = weft__item_next(hub->engine, item))
        r = write_document(out, hub->alloc, item, &first);
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

static void compute_documents(const weft_hub *hub, const weft_json *of, weft_computing *computing) {
    weft__computing_done(computing, write_documents(hub, of, weft__computing_out(computing)));
}

const weft_stream_kind weft__stream_documents = {.name = "documents",
                                                 .help = "the values of a collection, in the order of their keys",
                                                 .params = params,
                                                 .class = WEFT_CLASS_STATE,
                                                 .source = documents_source,
                                                 .compute = compute_documents};

/* doc.put and doc.delete: values of a collection, by key. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tinyvex_change.h"

struct doc_params {
    const char *collection, *key;
    weft_json value;
    int64_t expectedVersion;
};
#define COLLECTION                                                                                                          \
    {                                                                                                                       \
        "collection", WEFT_PARAM_str, offsetof(struct doc_params, collection), WEFT_REQUIRED | WEFT_NONEMPTY,               \
            "its name: a letter, then letters, digits, _ - and .; at most 64 bytes"                                         \
    }
#define KEY                                                                                                                 \
    {                                                                                                                       \
        "key", WEFT_PARAM_str, offsetof(struct doc_params, key), WEFT_REQUIRED | WEFT_NONEMPTY,                             \
            "at most 180 bytes, without control characters"                                                                 \
    }
#define EXPECTED                                                                                                            \
    {                                                                                                                       \
        "expectedVersion", WEFT_PARAM_int, offsetof(struct doc_params, expectedVersion), WEFT_NULLABLE,                     \
            "do it only if the value has this version; 0: only if there is none"                                            \
    }
/* clang-format off */
const weft_param weft__tinyvex_put_params[] = {
    COLLECTION,
    KEY,
    {"value", WEFT_PARAM_any, offsetof(struct doc_params, value), WEFT_REQUIRED, "any JSON, at most 256 KiB; it is kept as it came"},
    EXPECTED,
    WEFT_END(struct doc_params),
};
const weft_param weft__tinyvex_doc_params[] = {
    COLLECTION,
    KEY,
    EXPECTED,
    WEFT_END(struct doc_params),
};
/* clang-format on */

static void on_doc_changed(void *ctx, int r, uint64_t version) {
    weft_request *request = ctx;
    if (r == -ESTALE && version)
        weft__tinyvex_not_done(request, 0, "versionConflict", NULL, "The value has another version: %" PRIu64, version);
    else if (r == -ESTALE)
        weft__tinyvex_not_done(request, 0, "versionConflict", NULL, "There is no such value");
    else if (r == -EDQUOT)
        weft__tinyvex_not_done(request, 413, "tooLarge", NULL, "All collections together hold no more than this");
    else if (r == -EUSERS)
        weft__tinyvex_not_done(request, 503, "storeBusy", NULL, "Too many changes are under way: try again in a moment");
    else
        weft__request_settle(request, r);
}

/* <0: it was refused. */
static int check_doc(weft_req *req, const tinyvex_change *change, const struct doc_params *in, bool has_expectation) {
    if (!weft__collection_is_name(in->collection))
        return weft__tinyvex_refuse_args(req, change, "/args/collection",
                                         "collection must be a letter, then letters, digits, _ - and .; at most %d bytes",
                                         WEFT_COLLECTION_NAME);
    if (!weft__item_is_key(in->key))
        return weft__tinyvex_refuse_args(req, change, "/args/key", "key must have 1 to %d bytes and no control characters",
                                         WEFT_ITEM_KEY);
    if (in->value.len > WEFT_ITEM_BYTES)
        return weft__tinyvex_refuse_args(req, change, "/args/value", "value must have at most %zu bytes", WEFT_ITEM_BYTES);
    if (has_expectation && in->expectedVersion < 0)
        return weft__tinyvex_refuse_args(req, change, "/args/expectedVersion", "expectedVersion must not be negative");
    return 0;
}

static int change_doc(weft_req *req, const tinyvex_change *change) {
    struct doc_params *in = weft_req_params(req);
    weft_json expected = weft_get(&change->args, "expectedVersion");
    bool has_expectation = weft_typeof(&expected) == WEFT_NUMBER;
    weft_request *request;
    int r = check_doc(req, change, in, has_expectation);
    if (r >= 0)
        r = weft__tinyvex_begin(req, change, &request);
    if (r < 0 || !request)
        return r;
    weft_item_change wanted = {.collection = in->collection,
                               .key = in->key,
                               .value = in->value,
                               .expect = has_expectation ? in->expectedVersion : -1,
                               .request = request};
    r = weft__item_change(change->hub->engine, &wanted, on_doc_changed, request);
    if (r < 0) {
        const weft_item *item = weft__item_find(change->hub->engine, in->collection, in->key);
        on_doc_changed(request, r, item ? item->version : 0);
    }
    return 0;
}

int weft__tinyvex_doc_put(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return change_doc(req, ctx);
}

int weft__tinyvex_doc_delete(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    return change_doc(req, ctx);
}

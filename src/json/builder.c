/* Values that grow: written as they are added, so that a long list needs no second copy. The first thing that goes wrong is
 * kept, and everything after it does nothing. */
#include <errno.h>
#include <string.h>

#include "buf.h"
#include "scan.h"
#include "write.h"

/* No message is longer, and what nobody can send need not be built. */
#define MAX_BUILT ((size_t) 64 << 20)

struct weft_builder {
    const weft_alloc *alloc;
    weft_alloc alloc_copy;
    weft_buf out;
    int r;     /* the first failure */
    int depth; /* of containers that are open */
    bool done; /* the one value is whole */
    struct {
        bool object, empty;
    } open[WEFT_MAX_DEPTH];
};

int weft_builder_new(const weft_alloc *alloc, weft_builder **ret) {
    weft_builder *builder = weft__zalloc(alloc, sizeof *builder);
    if (!builder)
        return -ENOMEM;
    if (alloc) {
        builder->alloc_copy = *alloc;
        builder->alloc = &builder->alloc_copy;
    }
    *ret = builder;
    return 0;
}

weft_builder *weft_builder_free(weft_builder *builder) {
    if (!builder)
        return NULL;
    weft_alloc copy = builder->alloc_copy; /* it lies in what is freed */
    weft__buf_done(&builder->out, builder->alloc);
    return weft__free(builder->alloc ? &copy : NULL, builder);
}

void weft_builder_freep(weft_builder **builder) {
    *builder = weft_builder_free(*builder);
}

void weft_builder_reset(weft_builder *builder) {
    builder->out.end = builder->out.start;
    builder->r = builder->depth = 0;
    builder->done = false;
}

static void build_fail(weft_builder *builder, int r) {
    if (builder->r >= 0)
        builder->r = r;
}

static void build_text(weft_builder *builder, const char *text) {
    if (builder->r >= 0)
        build_fail(builder, weft__buf_put(&builder->out, builder->alloc, text, strlen(text)));
}

/* What stands before a value: a comma, a name. */
static void build_place(weft_builder *builder, const char *name) {
    bool in_object = builder->depth && builder->open[builder->depth - 1].object;
    if (builder->done || in_object != (name != NULL))
        build_fail(builder, -EINVAL);
    if (weft__buf_len(&builder->out) > MAX_BUILT)
        build_fail(builder, -EMSGSIZE);
    if (builder->r < 0 || !builder->depth)
        return;
    if (!builder->open[builder->depth - 1].empty)
        build_text(builder, ",");
    builder->open[builder->depth - 1].empty = false;
    if (!in_object)
        return;
    if (builder->r >= 0)
        build_fail(builder, weft__write_str(&builder->out, builder->alloc, name, strlen(name)));
    build_text(builder, ":");
}

static void build_open(weft_builder *builder, const char *name, bool object) {
    build_place(builder, name);
    if (builder->depth == WEFT_MAX_DEPTH)
        build_fail(builder, -EINVAL);
    build_text(builder, object ? "{" : "[");
    if (builder->r < 0)
        return;
    builder->open[builder->depth].object = object;
    builder->open[builder->depth++].empty = true;
}

void weft_builder_object(weft_builder *builder, const char *name) {
    build_open(builder, name, true);
}

void weft_builder_array(weft_builder *builder, const char *name) {
    build_open(builder, name, false);
}

void weft_builder_end(weft_builder *builder) {
    if (!builder->depth)
        build_fail(builder, -EINVAL);
    if (builder->r < 0)
        return;
    builder->depth--;
    build_text(builder, builder->open[builder->depth].object ? "}" : "]");
    builder->done = !builder->depth;
}

void weft_builder_add(weft_builder *builder, const char *name, weft_val value) {
    if (value.kind == WEFT_VAL_NONE)
        return;
    build_place(builder, name);
    if (builder->r >= 0)
        build_fail(builder, weft__write_val(&builder->out, builder->alloc, &value));
    builder->done = !builder->depth;
}

int weft_builder_val(weft_builder *builder, weft_val *ret) {
    size_t len = weft__buf_len(&builder->out);
    if (len > MAX_BUILT)
        build_fail(builder, -EMSGSIZE);
    if (builder->r < 0 || !builder->done)
        return builder->r < 0 ? builder->r : -EINVAL;
    *ret = weft_raw(weft__buf_head(&builder->out), len);
    return 0;
}

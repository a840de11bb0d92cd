/* gzip by zlib, a body at a time. docs/decisions/0007-permessage-deflate.md says why zlib. */
#include "gzip.h"

#include <errno.h>
#include <limits.h>

#include "zlib_stream.h"

/* As for WebSocket messages: zip.c. */
#define LEVEL 3
#define MEMORY 8
#define GZIP_WINDOW (15 + 16) /* 32 KiB, with gzip's head and checksum */
/* The room a body begins with; then it doubles. */
#define FIRST_ROOM 4096

struct weft_gzip {
    const weft_alloc *alloc;
    z_stream deflater, inflater;
    bool deflating, inflating; /* there is one */
};

int weft__gzip_new(const weft_alloc *alloc, weft_gzip **ret) {
    weft_gzip *gzip = weft__zalloc(alloc, sizeof *gzip);
    if (!gzip)
        return -ENOMEM;
    gzip->alloc = alloc;
    *ret = gzip;
    return 0;
}

weft_gzip *weft__gzip_free(weft_gzip *gzip) {
    if (!gzip)
        return NULL;
    if (gzip->deflating)
        deflateEnd(&gzip->deflater);
    if (gzip->inflating)
        inflateEnd(&gzip->inflater);
    return weft__free(gzip->alloc, gzip);
}

/* ---- out ---- */

static int ready_packer(weft_gzip *gzip) {
    if (gzip->deflating)
        return deflateReset(&gzip->deflater) == Z_OK ? 0 : -EINVAL;
    gzip->deflater = weft__zlib_stream(gzip->alloc);
    int z = deflateInit2(&gzip->deflater, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY);
    if (z != Z_OK)
        return z == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
    gzip->deflating = true;
    return 0;
}

int weft__gzip_pack(weft_gzip *gzip, const char *data, size_t len, weft_buf *out) {
    z_stream *z = &gzip->deflater;
    if (len > UINT_MAX / 2)
        return -EMSGSIZE;
    int r = ready_packer(gzip);
    size_t bound = r < 0 ? 0 : deflateBound(z, (uLong) len);
    if (r >= 0)
        r = weft__buf_reserve(out, gzip->alloc, bound);
    if (r < 0)
        return r;
    z->next_in = (Bytef *) (uintptr_t) data;
    z->avail_in = (unsigned) len;
    z->next_out = (Bytef *) weft__buf_tail(out);
    z->avail_out = (unsigned) bound;
    if (deflate(z, Z_FINISH) != Z_STREAM_END)
        return -EINVAL;
    out->end += bound - z->avail_out;
    return 0;
}

/* ---- in ---- */

static int ready_unpacker(weft_gzip *gzip) {
    if (gzip->inflating)
        return inflateReset(&gzip->inflater) == Z_OK ? 0 : -EINVAL;
    gzip->inflater = weft__zlib_stream(gzip->alloc);
    int z = inflateInit2(&gzip->inflater, GZIP_WINDOW);
    if (z != Z_OK)
        return z == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
    gzip->inflating = true;
    return 0;
}

/* Fill the room there is, or some more of it, but never more than one byte over the limit: that one shows that there is
 * more. 1 the member is whole, 0 go on. */
static int unpack_some(weft_gzip *gzip, size_t limit, weft_buf *out) {
    z_stream *z = &gzip->inflater;
    size_t len = weft__buf_len(out), left = limit - len, more = len > FIRST_ROOM ? len : FIRST_ROOM;
    int r = weft__buf_reserve(out, gzip->alloc, more < left ? more : left);
    if (r < 0)
        return r;
    size_t room = out->cap - out->end < left ? out->cap - out->end : left;
    unsigned give = room < UINT_MAX / 2 ? (unsigned) room : UINT_MAX / 2;
    z->next_out = (Bytef *) weft__buf_tail(out);
    z->avail_out = give;
    int status = inflate(z, Z_NO_FLUSH);
    out->end += give - z->avail_out;
    if (weft__buf_len(out) == limit)
        return -EMSGSIZE;
    if (status == Z_STREAM_END)
        return z->avail_in ? -EBADMSG : 1;
    if (status == Z_MEM_ERROR)
        return -ENOMEM;
    return status == Z_OK && z->avail_out == 0 ? 0 : -EBADMSG; /* or it wants more than there is */
}

int weft__gzip_unpack(weft_gzip *gzip, const char *data, size_t len, size_t max, weft_buf *out) {
    size_t before = weft__buf_len(out);
    if (len > UINT_MAX / 2)
        return -EMSGSIZE;
    int r = ready_unpacker(gzip);
    gzip->inflater.next_in = (Bytef *) (uintptr_t) data;
    gzip->inflater.avail_in = (unsigned) len;
    while (r == 0)
        r = unpack_some(gzip, before + max + 1, out);
    if (r > 0)
        return 0;
    out->end = out->start + before;
    return r;
}

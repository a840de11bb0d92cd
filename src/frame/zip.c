/* Raw deflate by zlib, one message at a time and nothing carried over (RFC 7692 section 7.2). */
#include "zip.h"

#include <errno.h>
#include <limits.h>

#include "zlib_stream.h"

/* On JSON level 3 is as fast as level 1 and a tenth smaller; level 6 would save another tenth and take two to five times as
 * long. */
#define LEVEL 3
#define MEMORY 8
#define INFLATE_WINDOW 15 /* reads what any smaller window wrote, so the other side's need not be known */

/* What a sender cuts off the end of each message: the length fields of an empty stored block. */
static const char trailer[4] = {0, 0, (char) 0xff, (char) 0xff};

struct weft_zip {
    const weft_alloc *alloc;
    z_stream deflater;
    unsigned window; /* of the deflater; 0: there is none yet */
    z_stream inflater;
    bool inflating; /* there is an inflater */
};

int weft__zip_new(const weft_alloc *alloc, weft_zip **ret) {
    weft_zip *zip = weft__zalloc(alloc, sizeof *zip);
    if (!zip)
        return -ENOMEM;
    zip->alloc = alloc;
    *ret = zip;
    return 0;
}

weft_zip *weft__zip_free(weft_zip *zip) {
    if (!zip)
        return NULL;
    if (zip->window)
        deflateEnd(&zip->deflater);
    if (zip->inflating)
        inflateEnd(&zip->inflater);
    return weft__free(zip->alloc, zip);
}

/* zlib counts in unsigned int: how much of n goes into one call. */
static unsigned clamp_to_uint(size_t n) {
    return n < UINT_MAX ? (unsigned) n : UINT_MAX;
}

/* ---- out ---- */

static int ready_deflater(weft_zip *zip, unsigned window) {
    if (zip->window == window)
        return deflateReset(&zip->deflater) == Z_OK ? 0 : -EINVAL;
    if (zip->window)
        deflateEnd(&zip->deflater);
    zip->window = 0;
    zip->deflater = weft__zlib_stream(zip->alloc);
    int z = deflateInit2(&zip->deflater, LEVEL, Z_DEFLATED, -(int) window, MEMORY, Z_DEFAULT_STRATEGY);
    if (z != Z_OK)
        return z == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
    zip->window = window;
    return 0;
}

/* Run the deflater until it has taken its input and, with a flush, given everything out. */
static int drain_deflater(weft_zip *zip, int flush, weft_buf *out) {
    z_stream *z = &zip->deflater;
    do {
        int r = weft__buf_reserve(out, zip->alloc, z->avail_in / 4 + sizeof trailer + 64);
        if (r < 0)
            return r;
        z->next_out = (Bytef *) weft__buf_tail(out);
        z->avail_out = clamp_to_uint(out->cap - out->end);
        deflate(z, flush); /* can only say that there was nothing to do */
        out->end = (size_t) ((char *) z->next_out - out->data);
    } while (z->avail_out == 0);
    return 0;
}

int weft__zip_deflate(weft_zip *zip, unsigned window, const char *data, size_t len, weft_buf *out) {
    size_t before = weft__buf_len(out);
    int r = ready_deflater(zip, window);
    while (r >= 0) {
        unsigned n = clamp_to_uint(len);
        zip->deflater.next_in = (Bytef *) (uintptr_t) data;
        zip->deflater.avail_in = n;
        data += n;
        len -= n;
        r = drain_deflater(zip, len ? Z_NO_FLUSH : Z_SYNC_FLUSH, out);
        if (!len)
            break;
    }
    if (r < 0) {
        out->end = out->start + before;
        return r;
    }
    out->end -= sizeof trailer;
    return 0;
}

/* ---- in ---- */

static int ready_inflater(weft_zip *zip) {
    if (zip->inflating)
        return inflateReset(&zip->inflater) == Z_OK ? 0 : -EINVAL;
    zip->inflater = weft__zlib_stream(zip->alloc);
    int z = inflateInit2(&zip->inflater, -INFLATE_WINDOW);
    if (z != Z_OK)
        return z == Z_MEM_ERROR ? -ENOMEM : -EINVAL;
    zip->inflating = true;
    return 0;
}

/* Room for more output, but never beyond one byte over the limit: that one shows that there is more. */
static int inflate_room(weft_zip *zip, size_t limit, weft_buf *out) {
    size_t left = limit - weft__buf_len(out);
    if (out->cap == out->end) {
        size_t more = weft__buf_len(out) + 4 * (size_t) zip->inflater.avail_in + 64;
        int r = weft__buf_reserve(out, zip->alloc, more < left ? more : left);
        if (r < 0)
            return r;
    }
    zip->inflater.next_out = (Bytef *) weft__buf_tail(out);
    zip->inflater.avail_out = clamp_to_uint(out->cap - out->end < left ? out->cap - out->end : left);
    return 0;
}

/* Inflate what the inflater has been given. Only inflate_room() and this know the limit, which counts from out->start. */
static int drain_inflater(weft_zip *zip, size_t limit, weft_buf *out, bool *ended) {
    z_stream *z = &zip->inflater;
    for (;;) {
        int r = inflate_room(zip, limit, out);
        if (r < 0)
            return r;
        int status = inflate(z, Z_SYNC_FLUSH);
        out->end = (size_t) ((char *) z->next_out - out->data);
        if (weft__buf_len(out) >= limit)
            return -EMSGSIZE;
        if (status == Z_MEM_ERROR)
            return -ENOMEM;
        if (status != Z_OK && status != Z_BUF_ERROR && status != Z_STREAM_END)
            return -EBADMSG;
        *ended = status == Z_STREAM_END;
        if (z->avail_in == 0 && (*ended || z->avail_out))
            return 0;
        /* A final block may be followed by others (section 7.2.1), which may still refer to what came before it: start
         * again but keep the window, which is what this undocumented part of inflateReset() does. */
        if (*ended)
            inflateResetKeep(z);
    }
}

static int feed_inflater(weft_zip *zip, const char *data, size_t len, size_t limit, weft_buf *out, bool *ended) {
    int r = 0;
    while (len && r >= 0) {
        unsigned n = clamp_to_uint(len);
        if (*ended)
            inflateResetKeep(&zip->inflater);
        zip->inflater.next_in = (Bytef *) (uintptr_t) data;
        zip->inflater.avail_in = n;
        data += n;
        len -= n;
        r = drain_inflater(zip, limit, out, ended);
    }
    return r;
}

/* Add the trailer. It must complete the empty block that the message ends with: in a message that was cut off it would be
 * read as text, or leave inflate() in the middle of a block (which data_type tells, see zlib.h). */
static int close_block(weft_zip *zip, size_t limit, weft_buf *out) {
    size_t before = weft__buf_len(out);
    bool ended = false;
    int r = feed_inflater(zip, trailer, sizeof trailer, limit, out, &ended);
    if (r < 0)
        return r;
    bool between_blocks = zip->inflater.data_type & 128 && (zip->inflater.data_type & 7) == 0;
    return between_blocks && !ended && weft__buf_len(out) == before ? 0 : -EBADMSG;
}

int weft__zip_inflate(weft_zip *zip, const char *data, size_t len, size_t max, weft_buf *out) {
    size_t before = weft__buf_len(out), limit = max < SIZE_MAX - before ? before + max + 1 : SIZE_MAX;
    bool ended = false;
    int r = ready_inflater(zip);
    if (r >= 0)
        r = feed_inflater(zip, data, len, limit, out, &ended);
    /* Some end a message with a final block and do not add the empty one that the trailer belongs to. */
    if (r >= 0 && !ended)
        r = close_block(zip, limit, out);
    if (r < 0)
        out->end = out->start + before;
    return r;
}

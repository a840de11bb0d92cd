/* The words every other header uses: bytes, the allocator hook, errors.
 *
 * Three words describe who frees what, here and everywhere in Weft:
 *   borrowed  valid until the callback or the next call on the object returns
 *   owned     you free it
 *   taken     we free it, once we have returned success
 *
 * Functions return an int r: below zero a negative errno (our failure), 0 done or nothing to do, 1 progress or found.
 * Outputs come last, are named ret..., and are untouched on failure; they are never inside options.
 *
 * NULL in place of a name, a text or a URL is -EINVAL or finds nothing. In place of options it means the defaults, and is
 * -EINVAL where something in them is required. In place of an object it is a mistake that ends the program, except for
 * ..._free() and ..._done(), which then do nothing.
 *
 * How structs grow. What a program fills in, options and rows, ends with room_: begin with {0}, or name the members, so that
 * it is zero. A later library may give a part of it a meaning, of which zero is the default; size and places do not change.
 * What the library fills in and lends one by one (const pointers in callbacks, weft_stats) grows at its end; do not copy
 * such a struct by its size. What it lends in arrays or returns has room_, too. weft_bytes, weft_alloc, weft_json, weft_val,
 * weft_member, weft_iter and weft_header stay as they are. */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION "0.1.0"

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#define WEFT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* A pointer that is freed at the end of its scope: WEFT_AUTO(weft_peer) peer = NULL; */
#define WEFT_AUTO(type) __attribute__((cleanup(type##_freep))) type *
#else
#define WEFT_API
#define WEFT_PRINTF(fmt, args)
#endif

/* Room for later members, at the end of a struct. */
#define WEFT_ROOM(words) uint64_t room_[words]

/* Text or bytes that somebody else owns; data need not end in NUL. */
typedef struct weft_bytes {
    const char *data;
    size_t len;
} weft_bytes;

/* One allocator, given at construction and used for everything below it. resize works like realloc; size 0 frees and
 * returns NULL. A NULL weft_alloc pointer means the C library's. */
typedef struct weft_alloc {
    void *(*resize)(void *ctx, void *ptr, size_t size);
    void *ctx;
} weft_alloc;

/* A sentence for a negative errno returned by this library. Never NULL, never freed. */
WEFT_API const char *weft_strerror(int r);

/* The version of the library that is running, as in WEFT_VERSION. */
WEFT_API const char *weft_version(void);

#ifdef __cplusplus
}
#endif
#endif

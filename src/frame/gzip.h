/* Whole bodies as gzip (RFC 1952), for HTTP. One for all connections of a server, like weft_zip. */
#ifndef WEFT_GZIP_H
#define WEFT_GZIP_H

#include "buf.h"

typedef struct weft_gzip weft_gzip;

int weft__gzip_new(const weft_alloc *alloc, weft_gzip **ret); /* cheap: zlib states are made when first used */
weft_gzip *weft__gzip_free(weft_gzip *gzip);
/* Append the compressed form to out. -EMSGSIZE: zlib cannot take so much at once; -ENOMEM. */
int weft__gzip_pack(weft_gzip *gzip, const char *data, size_t len, weft_buf *out);
/* Append the body to out. -EMSGSIZE as soon as it is over max; -EBADMSG not one whole gzip member and nothing behind it. */
int weft__gzip_unpack(weft_gzip *gzip, const char *data, size_t len, size_t max, weft_buf *out);

#endif

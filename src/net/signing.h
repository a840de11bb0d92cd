/* Signing what a client sends: a key with its clock and its random numbers, as weft_peer_opts.sign wants it. */
#ifndef WEFT_SIGNING_H
#define WEFT_SIGNING_H

#include <weft/sign.h>

#include "alloc.h"

typedef struct weft_signing weft_signing;

/* -EINVAL: a key that cannot be; -ENOMEM. */
int weft__signing_new(const weft_sign_key *key, const weft_alloc *alloc, weft_signing **ret);
weft_signing *weft__signing_free(weft_signing *signing, const weft_alloc *alloc);
/* weft_peer_opts.sign; ctx is a weft_signing. */
int weft__signing_sign(void *ctx, weft_bytes method, weft_bytes id, weft_bytes params, char *ret, size_t size);

#endif

/* Tokens: kept only as digests, compared in constant time; and a brake for those who guess. */
#ifndef WEFT_AUTH_H
#define WEFT_AUTH_H

#include <weft/net.h>

#include "alloc.h"

#define WEFT_DIGEST 32 /* SHA-256 */

typedef struct weft_auth {
    unsigned char digest[WEFT_DIGEST];
    char *name;
    char *scopes;
    int64_t expires_at; /* seconds since 1970; 0: never */
    int64_t seen_at;    /* seconds since 1970, when it was shown last; 0: not yet */
    uint64_t id;        /* the same digest, name and scopes: the same id, on all endpoints of a server. Not 0 */
} weft_auth;

typedef struct weft_auths {
    weft_auth *rows;
    size_t count;
    bool asked; /* somebody must show one; false: there was no list */
} weft_auths;

/* Copy a list that ends with a NULL token; NULL: none is asked for. The ids are 0. -ENOMEM. */
int weft__auths_copy(weft_auths *auths, const weft_token *list, const weft_alloc *alloc);
void weft__auths_done(weft_auths *auths, const weft_alloc *alloc);
/* Whose token is this? NULL: nobody's, or it has expired. Takes as long whoever it is. now: seconds since 1970. */
const weft_auth *weft__auths_find(const weft_auths *auths, weft_bytes token, int64_t now);
/* The same of its digest. */
const weft_auth *weft__auths_with_digest(const weft_auths *auths, const unsigned char digest[WEFT_DIGEST], int64_t now);
/* The row with this id that has not expired. */
const weft_auth *weft__auths_with_id(const weft_auths *auths, uint64_t id, int64_t now);
/* It was shown. */
void weft__auth_seen(weft_auths *auths, const weft_auth *auth, int64_t now);
bool weft__auth_same(const weft_auth *a, const weft_auth *b);

/* Wrong tokens per address in the current window. It is asked only about tokens that are wrong: a right one is never braked.
 * An address that shares its slot with another shares its count, which only ever makes the brake tighter. */
#define WEFT_BRAKE_SLOTS 256
#define WEFT_BRAKE_WRONG 10 /* a person who mistypes, or a client with an old token that retries a few times */
#define WEFT_BRAKE_MS                                                                                                       \
    (10 * 1000) /* short, because an honest client with an old token should soon read why it is refused                     \
                 */

typedef struct weft_brake {
    struct {
        int64_t until;
        unsigned wrong;
    } slots[WEFT_BRAKE_SLOTS];
} weft_brake;

/* Is this address to wait? Milliseconds, 0: no. */
int64_t weft__brake_wait(const weft_brake *brake, const char *address, int64_t now);
void weft__brake_wrong(weft_brake *brake, const char *address, int64_t now);

#endif

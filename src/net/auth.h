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
} weft_auth;

typedef struct weft_auths {
    weft_auth *rows;
    size_t count;
} weft_auths;

/* Copy a list that ends with a NULL token; NULL: an empty one. -ENOMEM. */
int weft__auths_copy(weft_auths *auths, const weft_token *list, const weft_alloc *alloc);
void weft__auths_done(weft_auths *auths, const weft_alloc *alloc);
/* Whose token is this? NULL: nobody's. Takes as long whoever it is. */
const weft_auth *weft__auths_find(const weft_auths *auths, weft_bytes token);

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

/* Signed requests: HMAC-SHA256 with a key that both sides have, so that a request proves who sent it and that nobody has
 * changed it on the way.
 *
 * A signed request has one more member beside the usual ones:
 *
 *     "auth": {"timestamp": 1634567890, "nonce": "f3a1", "key_id": "ci", "signature": "base64"}
 *
 * The signature is over these bytes, as they stand in the message: timestamp "\n" nonce "\n" method "\n" id "\n" params. An
 * id that is a string has its quotes. What is absent is empty: the nonce, the id of a notification, params.
 *
 * A signature counts once, within 30 seconds of its timestamp, and not if it was stamped before the signatures were made
 * (weft_signatures_new()), so that nothing has to be kept over a restart. It does not say which server it is for: give each
 * its own keys. Nothing is encrypted. */
#ifndef WEFT_SIGN_H
#define WEFT_SIGN_H

#include <weft/gate.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Shorter secrets can be guessed; longer ones add nothing. Bytes. */
#define WEFT_SECRET_MIN 16
#define WEFT_SECRET_MAX 1024
/* Of a key's id and of a nonce: printable ASCII without quotes, backslashes and blanks. */
#define WEFT_KEY_ID_MAX 64
#define WEFT_NONCE_MAX 128

typedef struct weft_sign_key {
    const char *id;     /* auth.key_id; "" or NULL: only of requests that name none */
    const void *secret; /* NULL ends a list */
    size_t len;         /* of the secret */
    const char *name;   /* checking: for identity.name; NULL: the id */
    const char *scopes; /* checking: for identity.scopes; NULL: "*" */
    bool unnamed;       /* checking: it is also the key of requests that name none */
    WEFT_ROOM(4);
} weft_sign_key;

/* ---- checking ---- */

/* Keys, and the memory of which signatures were used. */
typedef struct weft_signatures weft_signatures;

typedef struct weft_signatures_opts {
    const weft_sign_key *keys; /* copied */
    const weft_alloc *alloc;   /* copied */
    int64_t window_ms;         /* how far a timestamp may be from now, either way: 30 s */
    size_t max_seen; /* signatures remembered for each key: 65,536. When there are more, the oldest are forgotten and
                        nothing stamped like them is accepted any more */
    /* Must this request, which has no auth member, have one? NULL: it need not. */
    bool (*required)(void *ctx, const weft_gate_request *request);
    /* The wall clock and one that only goes on, in milliseconds. NULL: the system's. */
    int64_t (*wall_ms)(void *ctx);
    int64_t (*steady_ms)(void *ctx);
    void *ctx; /* of these three */
    WEFT_ROOM(4);
} weft_signatures_opts;

/* -EINVAL: a key whose id or secret cannot be; -EEXIST: two keys have one id, or one secret, with which a signature would
 * count twice; -ENOMEM. */
WEFT_API int weft_signatures_new(const weft_signatures_opts *opts, weft_signatures **ret);
/* The service that has its gate must be gone. */
WEFT_API weft_signatures *weft_signatures_free(weft_signatures *signatures);
WEFT_API void weft_signatures_freep(weft_signatures **signatures);
/* For weft_service_opts.gates; borrowed. A request with a good signature is its key's: identity.name and, where its
 * connection may do everything, identity.scopes; where the connection may do less, it may do what both allow. One with a
 * bad signature is answered -32003 with data.reason, and a notification is dropped:
 *
 *     signatureMissing  signatureMalformed  keyUnknown  signatureWrong  signatureReplayed
 *     signatureExpired (data.serverTime is our clock's time)
 *     signatureTooOld  (stamped before the start, before the clock was set back, or like those that were forgotten;
 *                       data.retryAfterMs)
 *
 * Where the method's row has an error with the reason "authenticationFailed", its code is answered instead of -32003. */
WEFT_API const weft_gate *weft_signatures_gate(weft_signatures *signatures);

typedef struct weft_signature_stats {
    uint64_t accepted, refused;     /* requests and notifications */
    uint64_t dropped_notifications; /* of those refused: nobody was told */
    WEFT_ROOM(4);
} weft_signature_stats;
WEFT_API weft_signature_stats weft_signatures_stats(const weft_signatures *signatures);

/* ---- signing ---- */

/* weft_connect_opts.sign_key signs what a client sends. For programs that write messages themselves: the auth member's value
 * as text, for a message with these parts. now_s is the time in seconds since 1970; nonce may be NULL. The length of the
 * text, NUL-terminated; -EINVAL: a key, a nonce or a part that cannot be; -EMSGSIZE: over size. */
WEFT_API int weft_sign(const weft_sign_key *key, int64_t now_s, const char *nonce, weft_bytes method, weft_bytes id,
                       weft_bytes params, char *ret, size_t size);
#define WEFT_AUTH_MAX 512 /* always enough for it */

#ifdef __cplusplus
}
#endif
#endif

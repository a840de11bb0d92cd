/* HMAC-SHA256 over the parts of a request, and what both sides of a signature agree on. */
#ifndef WEFT_HMAC_H
#define WEFT_HMAC_H

#include <weft/sign.h>

#define WEFT_MAC 32

typedef struct weft_hmac weft_hmac;

/* For one key; the secret is not needed any more. -EINVAL: a secret that is too short or too long; -ENOMEM. */
int weft__hmac_new(const void *secret, size_t len, weft_hmac **ret);
weft_hmac *weft__hmac_free(weft_hmac *hmac);

typedef struct weft_signed_parts {
    weft_bytes timestamp, nonce, method, id, params; /* empty: absent */
} weft_signed_parts;
/* -ENOMEM. */
int weft__hmac_parts(weft_hmac *hmac, const weft_signed_parts *parts, unsigned char ret[WEFT_MAC]);

/* Standard or URL-safe base64 of 32 bytes, padded or not. What is in the last bits does not matter, so several texts stand
 * for the same bytes. */
bool weft__mac_decode(const char *text, size_t len, unsigned char ret[WEFT_MAC]);
#define WEFT_MAC_TEXT 45
void weft__mac_encode(const unsigned char mac[WEFT_MAC], char ret[WEFT_MAC_TEXT]);

/* Printable ASCII without quotes, backslashes and blanks: it is the same in JSON and in what is signed. */
bool weft__is_sign_word(const char *text, size_t len, size_t max);

#endif

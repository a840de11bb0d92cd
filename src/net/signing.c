/* The auth member of a message. */
#include "signing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "hmac.h"

/* Two messages with the same text and the same second are told apart by it. */
#define NONCE_BYTES 12

struct weft_signing {
    weft_hmac *hmac;
    char id[WEFT_KEY_ID_MAX + 1];
};

static int check_key_id(const weft_sign_key *key, const char **ret) {
    const char *id = key->id ? key->id : "";
    if (!weft__is_sign_word(id, strlen(id), WEFT_KEY_ID_MAX))
        return -EINVAL;
    *ret = id;
    return 0;
}

/* None of these can hold anything that JSON would write otherwise. */
static int write_auth(const char *timestamp, const char *nonce, const char *id, const unsigned char mac[WEFT_MAC], char *ret,
                      size_t size) {
    char signature[WEFT_MAC_TEXT];
    weft__mac_encode(mac, signature);
    int n =
        snprintf(ret, size, "{\"timestamp\":%s%s%s%s%s%s%s,\"signature\":\"%s\"}", timestamp, *nonce ? ",\"nonce\":\"" : "",
                 nonce, *nonce ? "\"" : "", *id ? ",\"key_id\":\"" : "", id, *id ? "\"" : "", signature);
    return (size_t) n < size ? n : -EMSGSIZE;
}

static int sign_parts(weft_hmac *hmac, const char *id, int64_t now_s, const char *nonce, weft_signed_parts *parts, char *ret,
                      size_t size) {
    char timestamp[24];
    unsigned char mac[WEFT_MAC];
    if (now_s < 0)
        return -EINVAL;
    snprintf(timestamp, sizeof timestamp, "%lld", (long long) now_s);
    parts->timestamp = (weft_bytes){timestamp, strlen(timestamp)};
    parts->nonce = (weft_bytes){nonce, strlen(nonce)};
    int r = weft__hmac_parts(hmac, parts, mac);
    return r < 0 ? r : write_auth(timestamp, nonce, id, mac, ret, size);
}

int weft_sign(const weft_sign_key *key, int64_t now_s, const char *nonce, weft_bytes method, weft_bytes id,
              weft_bytes params, char *ret, size_t size) {
    weft_signed_parts parts = {.method = method, .id = id, .params = params};
    weft_hmac *hmac = NULL;
    const char *key_id = "";
    if (!key || !ret)
        return -EINVAL;
    nonce = nonce ? nonce : "";
    int r = weft__is_sign_word(nonce, strlen(nonce), WEFT_NONCE_MAX) ? check_key_id(key, &key_id) : -EINVAL;
    if (r >= 0)
        r = weft__hmac_new(key->secret, key->len, &hmac);
    if (r >= 0)
        r = sign_parts(hmac, key_id, now_s, nonce, &parts, ret, size);
    weft__hmac_free(hmac);
    return r;
}

int weft__signing_new(const weft_sign_key *key, const weft_alloc *alloc, weft_signing **ret) {
    const char *id = "";
    int r = check_key_id(key, &id);
    weft_signing *signing = r < 0 ? NULL : weft__zalloc(alloc, sizeof *signing);
    if (!signing)
        return r < 0 ? r : -ENOMEM;
    memcpy(signing->id, id, strlen(id) + 1);
    r = weft__hmac_new(key->secret, key->len, &signing->hmac);
    if (r < 0) {
        weft__free(alloc, signing);
        return r;
    }
    *ret = signing;
    return 0;
}

weft_signing *weft__signing_free(weft_signing *signing, const weft_alloc *alloc) {
    if (signing)
        weft__hmac_free(signing->hmac);
    return weft__free(alloc, signing);
}

int weft__signing_sign(void *ctx, weft_bytes method, weft_bytes id, weft_bytes params, char *ret, size_t size) {
    weft_signing *signing = ctx;
    weft_signed_parts parts = {.method = method, .id = id, .params = params};
    unsigned char bytes[NONCE_BYTES];
    char nonce[2 * NONCE_BYTES + 1];
    struct timespec now;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(nonce + 2 * i, 3, "%02x", bytes[i]);
    clock_gettime(CLOCK_REALTIME, &now); /* time() may still be in the second before */
    return sign_parts(signing->hmac, signing->id, (int64_t) now.tv_sec, nonce, &parts, ret, size);
}

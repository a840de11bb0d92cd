/* HMAC-SHA256 by OpenSSL. The key is worked in once; each signature begins from there. */
#include "hmac.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <string.h>

#define GATHER 1024

/* OpenSSL's memory is its own: it does not take our allocator. */
static EVP_MAC_CTX *as_ctx(weft_hmac *hmac) {
    return (EVP_MAC_CTX *) hmac;
}

int weft__hmac_new(const void *secret, size_t len, weft_hmac **ret) {
    static char digest[] = "SHA256";
    OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_construct_end()};
    if (len < WEFT_SECRET_MIN || len > WEFT_SECRET_MAX)
        return -EINVAL;
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
    EVP_MAC_free(mac);
    if (!ctx || !EVP_MAC_init(ctx, secret, len, params)) {
        EVP_MAC_CTX_free(ctx);
        return -ENOMEM;
    }
    *ret = (weft_hmac *) ctx;
    return 0;
}

weft_hmac *weft__hmac_free(weft_hmac *hmac) {
    EVP_MAC_CTX_free(as_ctx(hmac));
    return NULL;
}

static bool update_mac(EVP_MAC_CTX *ctx, const char *data, size_t len) {
    return !len || EVP_MAC_update(ctx, (const unsigned char *) data, len);
}

/* Each call of OpenSSL costs as much as hashing a hundred bytes: what is short is put together first. */
static bool update_parts(EVP_MAC_CTX *ctx, const weft_signed_parts *parts) {
    const weft_bytes *const all[] = {&parts->timestamp, &parts->nonce, &parts->method, &parts->id, &parts->params};
    char gathered[GATHER];
    size_t n = 0;
    bool good = true;
    for (size_t i = 0; good && i < sizeof all / sizeof all[0]; i++) {
        if (i)
            gathered[n++] = '\n';
        bool fits = all[i]->len < sizeof gathered - n - 1; /* with the newline behind it */
        if (fits && all[i]->len)
            memcpy(gathered + n, all[i]->data, all[i]->len);
        if (fits) {
            n += all[i]->len;
            continue;
        }
        good = update_mac(ctx, gathered, n) && update_mac(ctx, all[i]->data, all[i]->len);
        n = 0;
    }
    return good && update_mac(ctx, gathered, n);
}

int weft__hmac_parts(weft_hmac *hmac, const weft_signed_parts *parts, unsigned char ret[WEFT_MAC]) {
    EVP_MAC_CTX *ctx = as_ctx(hmac);
    size_t len = 0;
    bool good = EVP_MAC_init(ctx, NULL, 0, NULL) && update_parts(ctx, parts);
    return good && EVP_MAC_final(ctx, ret, &len, WEFT_MAC) && len == WEFT_MAC ? 0 : -ENOMEM;
}

/* ---- base64 ---- */

static int base64_value(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

bool weft__mac_decode(const char *text, size_t len, unsigned char ret[WEFT_MAC]) {
    unsigned bits = 0, have = 0;
    size_t put = 0;
    if (len == 44 && text[43] == '=')
        len = 43;
    if (len != 43)
        return false;
    for (size_t i = 0; i < len; i++) {
        int value = base64_value(text[i]);
        if (value < 0)
            return false;
        bits = bits << 6 | (unsigned) value;
        have += 6;
        if (have >= 8) {
            have -= 8;
            ret[put++] = (unsigned char) (bits >> have);
        }
    }
    return put == WEFT_MAC;
}

void weft__mac_encode(const unsigned char mac[WEFT_MAC], char ret[WEFT_MAC_TEXT]) {
    EVP_EncodeBlock((unsigned char *) ret, mac, WEFT_MAC);
}

bool weft__is_sign_word(const char *text, size_t len, size_t max) {
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
            return false;
    return len <= max;
}

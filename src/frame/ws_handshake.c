/* What the two heads of a WebSocket handshake must say: the key and its answer, and what is agreed on about compression.
 *
 * Every connection shares one compressor and one decompressor (zip.h), so neither side may carry context from one message to
 * the next; an agreement that would need it is not made. */
#include "ws_handshake.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#define KEY_LEN 24 /* 16 bytes in base64 */
#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define SHA1_LEN 20

#define MIN_BITS 8
#define MIN_OUR_BITS 9 /* zlib cannot compress with a window of 8 bits */
#define MAX_BITS 15

/* ---- the key ---- */

static bool is_alnum(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool weft__ws_key_valid(weft_bytes key) {
    if (key.len != KEY_LEN || memcmp(key.data + KEY_LEN - 2, "==", 2) != 0)
        return false;
    for (size_t i = 0; i < KEY_LEN - 2; i++)
        if (!is_alnum(key.data[i]) && key.data[i] != '+' && key.data[i] != '/')
            return false;
    return true;
}

void weft__ws_accept(weft_bytes key, char ret[29]) {
    unsigned char text[KEY_LEN + sizeof GUID], digest[SHA1_LEN] = {0};
    size_t len = key.len < KEY_LEN ? key.len : KEY_LEN;

    if (len)
        memcpy(text, key.data, len);
    memcpy(text + len, GUID, sizeof GUID - 1);
    /* If SHA-1 is switched off on this machine, the answer is wrong and the other side says so. */
    EVP_Digest(text, len + sizeof GUID - 1, digest, NULL, EVP_sha1(), NULL);
    EVP_EncodeBlock((unsigned char *) ret, digest, SHA1_LEN);
}

/* ---- lists of extensions (RFC 6455 section 9.1) ---- */

typedef struct cursor {
    const char *at, *end;
} cursor;

typedef struct param {
    weft_bytes name;
    bool has_value;
    char value[8]; /* cut: nothing that we understand is as long */
} param;

static void skip_blanks(cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
        c->at++;
}

/* Step over this character and the blanks around it. Was it there? */
static bool take_char(cursor *c, char wanted) {
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    skip_blanks(c);
    return true;
}

static bool is_token_char(char c) {
    return is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool take_token(cursor *c, weft_bytes *ret) {
    const char *start = c->at;
    while (c->at < c->end && is_token_char(*c->at))
        c->at++;
    *ret = (weft_bytes){start, (size_t) (c->at - start)};
    return c->at > start;
}

static void append_value_char(param *p, size_t i, char c) {
    if (i < sizeof p->value - 1) {
        p->value[i] = c;
        p->value[i + 1] = '\0';
    }
}

/* A quoted string whose content must be a token all the same. */
static bool take_quoted(cursor *c, param *ret) {
    size_t len = 0;
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
        if (*c->at == '\\' && ++c->at == c->end)
            return false;
        if (!is_token_char(*c->at))
            return false;
        append_value_char(ret, len++, *c->at);
    }
    if (c->at == c->end)
        return false;
    c->at++;
    return len > 0;
}

static bool take_param_value(cursor *c, param *ret) {
    weft_bytes token;
    if (c->at < c->end && *c->at == '"')
        return take_quoted(c, ret);
    if (!take_token(c, &token))
        return false;
    for (size_t i = 0; i < token.len; i++)
        append_value_char(ret, i, token.data[i]);
    return true;
}

static bool take_param(cursor *c, param *ret) {
    *ret = (param){0};
    if (!take_token(c, &ret->name))
        return false;
    ret->has_value = take_char(c, '=');
    return !ret->has_value || take_param_value(c, ret);
}

static bool bytes_are(weft_bytes text, const char *word) {
    return text.len == strlen(word) && memcmp(text.data, word, text.len) == 0;
}

/* ---- permessage-deflate (RFC 7692 section 7) ---- */

enum { SERVER_NO_CONTEXT, CLIENT_NO_CONTEXT, SERVER_BITS, CLIENT_BITS, PARAMS };

static const char *const names[PARAMS] = {
    [SERVER_NO_CONTEXT] = "server_no_context_takeover",
    [CLIENT_NO_CONTEXT] = "client_no_context_takeover",
    [SERVER_BITS] = "server_max_window_bits",
    [CLIENT_BITS] = "client_max_window_bits",
};

typedef struct extension {
    bool deflate; /* it is permessage-deflate */
    bool odd;     /* a parameter is unknown, or there twice, or lacks a value, or has one that it must not have */
    bool has[PARAMS];
    unsigned bits[PARAMS]; /* 0: no value was given */
} extension;

/* "8" to "15" without leading zeros; 0: something else. */
static unsigned read_bits(const char *text) {
    for (unsigned bits = MIN_BITS; bits <= MAX_BITS; bits++) {
        char number[4];
        snprintf(number, sizeof number, "%u", bits);
        if (strcmp(text, number) == 0)
            return bits;
    }
    return 0;
}

static void note_param(extension *ext, const param *p) {
    int i = 0;
    while (i < PARAMS && !bytes_are(p->name, names[i]))
        i++;
    if (i == PARAMS || ext->has[i]) {
        ext->odd = true;
        return;
    }
    ext->has[i] = true;
    if (p->has_value) {
        ext->bits[i] = i == SERVER_BITS || i == CLIENT_BITS ? read_bits(p->value) : 0;
        ext->odd |= ext->bits[i] == 0;
    } else {
        ext->odd |= i == SERVER_BITS;
    }
}

/* The next one of a list. 1 it is in *ret, 0 that was all, -EPROTO this is no list of extensions. */
static int next_extension(cursor *c, extension *ret) {
    weft_bytes name;
    param p;

    while (take_char(c, ','))
        ;
    if (c->at == c->end)
        return 0;
    if (!take_token(c, &name))
        return -EPROTO;
    *ret = (extension){.deflate = bytes_are(name, "permessage-deflate")};
    while (take_char(c, ';')) {
        if (!take_param(c, &p))
            return -EPROTO;
        note_param(ret, &p);
    }
    return c->at == c->end || *c->at == ',' ? 1 : -EPROTO;
}

static bool offer_fits(const extension *ext) {
    if (!ext->deflate || ext->odd)
        return false;
    return !ext->has[SERVER_BITS] || ext->bits[SERVER_BITS] >= MIN_OUR_BITS;
}

unsigned weft__ws_deflate_offer(weft_bytes offers, char *ret_answer, size_t size) {
    cursor c = {offers.data, offers.data + offers.len};
    extension ext, chosen = {0};
    int r;

    /* To the end of the list: one that is malformed further on is not to be trusted before that either. */
    while ((r = next_extension(&c, &ext)) > 0)
        if (!chosen.deflate && offer_fits(&ext))
            chosen = ext;
    if (r < 0 || !chosen.deflate)
        return 0;
    unsigned bits = chosen.has[SERVER_BITS] ? chosen.bits[SERVER_BITS] : MAX_BITS;
    int len = snprintf(ret_answer, size, "permessage-deflate; %s; %s", names[SERVER_NO_CONTEXT], names[CLIENT_NO_CONTEXT]);
    if (chosen.has[SERVER_BITS] && (size_t) len < size)
        len += snprintf(ret_answer + len, size - (size_t) len, "; %s=%u", names[SERVER_BITS], bits);
    return (size_t) len < size ? bits : 0;
}

int weft__ws_deflate_answer(weft_bytes answer) {
    cursor c = {answer.data, answer.data + answer.len};
    extension ext, more;

    int r = next_extension(&c, &ext);
    if (r <= 0)
        return r;
    if (next_extension(&c, &more) != 0 || !ext.deflate || ext.odd)
        return -EPROTO;
    /* In an answer the client's window has a value too (section 7.1.2.2), and it must be one that zlib can do. */
    if (!ext.has[SERVER_NO_CONTEXT] || (ext.has[CLIENT_BITS] && ext.bits[CLIENT_BITS] < MIN_OUR_BITS))
        return -EPROTO;
    return ext.has[CLIENT_BITS] ? (int) ext.bits[CLIENT_BITS] : MAX_BITS;
}

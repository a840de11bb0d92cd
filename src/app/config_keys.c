/* What may be set. The names of the limits are those of the library's structs, so that its headers explain them too. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "config.h"

#define MIB ((int64_t) 1024 * 1024)
/* A day is longer than anything should wait, and fits wherever milliseconds are added up. */
#define DAY_MS ((int64_t) 24 * 3600 * 1000)
/* More than any machine serves; what is multiplied with it still fits. */
#define MANY 1000000000

#define KEY(kind_, path_, field, fallback_, help_)                                                                          \
    .path = (path_), .kind = WEFT_KEY_##kind_, .offset = offsetof(weft_serve_settings, field), .fallback = (fallback_),     \
    .help = (help_)
#define LIMIT(field, low, high, fallback_, help_)                                                                           \
    { KEY(size, "limits." #field, limits.field, fallback_, help_), .min = (low), .max = (high), .live = true }
#define LIMIT_MS(field, high, fallback_, help_)                                                                             \
    { KEY(number, "limits." #field, limits.field, fallback_, help_), .min = 1, .max = (high), .live = true }
#define SERVER(kind_, field, high, fallback_, help_)                                                                        \
    { KEY(kind_, "limits." #field, server.field, fallback_, help_), .min = 1, .max = (high) }

const weft_key weft__keys[] = {
    {KEY(urls, "listen", listen, NULL, "where to serve, instead of the usual places"), .option = "listen", .door = true},
    {KEY(text, "auth", auth, "\"token\"", "what network clients must show"), .option = "auth", .choices = "token none",
     .door = true},
    {KEY(text, "token_file", token_file, NULL, "the file with the token, instead of .weft/token"), .option = "token-file",
     .door = true},
    {KEY(text, "tls.cert", tls_cert, NULL, "certificate for tls://, wss:// and https:// (PEM)"), .option = "tls-cert",
     .door = true},
    {KEY(text, "tls.key", tls_key, NULL, "the file with the key that belongs to it"), .option = "tls-key", .door = true},
    {KEY(text, "tls.ca", tls_ca, NULL, "clients must have a certificate signed by this"), .option = "tls-ca", .door = true},
    {KEY(texts, "allowed_hosts", hosts, "[]", "Host headers to accept besides loopback's"), .option = "allow-host",
     .live = true, .door = true},
    {KEY(texts, "allowed_origins", origins, "[]", "origins of web pages to accept besides our own"),
     .option = "allow-origin", .live = true, .door = true},
    {KEY(flag, "insecure_listen", insecure_listen, "false", "listen beyond this machine without TLS"),
     .option = "insecure-listen", .door = true},
    {KEY(number, "rate_per_minute", rate, "6000", "requests a minute for a network client; 0: no limit"), .option = "rate",
     .min = 0, .max = MANY, .live = true},
    LIMIT(max_body, 1, 64 * MIB, "33554432", "bytes of a message"),
    LIMIT(max_body_stranger, 1, 64 * MIB, "1048576", "the same before authentication"),
    LIMIT(max_batch, 1, MANY, "1000", "items of a batch"),
    LIMIT(max_answer, 1, 1024 * MIB, "26214400", "bytes of an answer, or of the answers of a batch"),
    LIMIT(out_soft, 1, 1024 * MIB, "1048576", "queued bytes at which streams pause and reading stops"),
    LIMIT(out_hard, 1, 1024 * MIB, "8388608", "queued bytes at which the connection is closed"),
    LIMIT(max_requests, 1, MANY, "65536", "requests of one client that are not answered yet"),
    LIMIT(max_idempotent, 1, MANY, "4096", "answers kept for a retry"),
    LIMIT_MS(idempotent_ms, DAY_MS, "600000", "how long they are kept"),
    LIMIT_MS(ping_ms, DAY_MS, "25000", "silence after which a WebSocket client is asked whether it is there"),
    LIMIT_MS(pong_ms, DAY_MS, "10000", "how long it may take to say so"),
    SERVER(size, max_connections, MANY, "10000", "connections"),
    SERVER(size, max_connections_per_uid, MANY, "4096", "of one user on Unix sockets"),
    SERVER(size, max_strangers_per_address, MANY, "64", "of one address before authentication"),
    SERVER(number, auth_ms, DAY_MS, "5000", "time to show a token"),
    SERVER(number, head_ms, DAY_MS, "10000", "time for the head of an HTTP request"),
    SERVER(number, grace_ms, DAY_MS, "10000", "how long open requests may take when the daemon stops"),
    {0},
};
_Static_assert(sizeof weft__keys / sizeof weft__keys[0] <= WEFT_MAX_KEYS, "more keys than a config has room for");

/* "a" or "b" */
static void list_choices(const char *choices, char ret[WEFT_KEY_TEXT]) {
    size_t used = 0;
    for (const char *at = choices; *at && used < WEFT_KEY_TEXT; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        used += (size_t) snprintf(ret + used, WEFT_KEY_TEXT - used, "%s\"%.*s\"", used ? " or " : "", (int) len, at);
        at += len;
    }
}

void weft__key_wants(const weft_key *key, char ret[WEFT_KEY_TEXT]) {
    static const char *const wants[] = {
        [WEFT_KEY_text] = "a string",
        [WEFT_KEY_flag] = "true or false",
        [WEFT_KEY_texts] = "an array of strings",
        [WEFT_KEY_urls] = "an array of URLs",
    };
    if (key->choices)
        list_choices(key->choices, ret);
    else if (key->kind == WEFT_KEY_number || key->kind == WEFT_KEY_size)
        snprintf(ret, WEFT_KEY_TEXT, "a whole number from %lld to %lld", (long long) key->min, (long long) key->max);
    else
        snprintf(ret, WEFT_KEY_TEXT, "%s", wants[key->kind]);
}

void weft__key_variable(const weft_key *key, char ret[WEFT_KEY_TEXT]) {
    snprintf(ret, WEFT_KEY_TEXT, "WEFT_%s", key->path);
    for (char *p = ret; *p; p++)
        *p = *p == '.' ? '_' : (char) toupper((unsigned char) *p);
}

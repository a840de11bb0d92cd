/* The client's half of a WebSocket handshake (RFC 6455 section 4.1): one request, and a strict look at the answer. */
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "client_http.h"
#include "ws_handshake.h"

/* Sixteen random bytes, in base64. */
static int make_key(char ret[25]) {
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return -EIO;
    EVP_EncodeBlock((unsigned char *) ret, bytes, sizeof bytes);
    return 0;
}

static int put(weft_wire *wire, const char *text) {
    return weft__buf_put(&wire->out, wire->client->loop->alloc, text, strlen(text));
}

/* All of them or -ENOMEM. */
static int put_all(weft_wire *wire, const char *const *texts, size_t count) {
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = put(wire, texts[i]);
    return r;
}

static int say_ws_hello(weft_wire *wire) {
    const weft_client *client = wire->client;
    int r = make_key(wire->key);
    if (r < 0)
        return r;
    const char *const texts[] = {
        "GET ",
        client->url.path,
        *client->url.query ? "?" : "",
        client->url.query,
        " HTTP/1.1\r\nHost: ",
        client->authority,
        "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ",
        wire->key,
        client->opts.no_deflate ? "" : "\r\nSec-WebSocket-Extensions: " WEFT_WS_DEFLATE_OFFER,
        client->opts.token ? "\r\nAuthorization: Bearer " : "",
        client->opts.token ? client->opts.token : "",
        "\r\n",
        client->more ? client->more : "",
        "\r\n",
    };
    return put_all(wire, texts, sizeof texts / sizeof texts[0]);
}

/* ---- the answer ---- */

static int refuse(weft_wire *wire, const char *why) {
    weft__client_trouble(wire->client, "the server's WebSocket handshake is wrong: %s", why);
    return -EPROTO;
}

static bool is_one(const weft_http_head *head, const char *name, const char *value) {
    size_t count;
    weft_bytes found = weft__http_find(head, name, &count);
    return count == 1 && found.len == strlen(value) && strncasecmp(found.data, value, found.len) == 0;
}

static int check_extensions(weft_wire *wire, const weft_http_head *head) {
    size_t count;
    weft_bytes answer = weft__http_find(head, "sec-websocket-extensions", &count);
    if (count == 0)
        return 0;
    int window = count == 1 && !wire->client->opts.no_deflate ? weft__ws_deflate_answer(answer) : -EPROTO;
    if (window < 0)
        return refuse(wire, "it uses an extension that was not offered");
    wire->deflate = (unsigned) window;
    return 0;
}

static int check_head(weft_wire *wire, const weft_http_head *head) {
    char accept[29];
    size_t protocols;
    if (head->status != 101)
        return weft__http_refused(wire->client, head->status, " instead of switching to WebSocket");
    weft__ws_accept((weft_bytes){wire->key, strlen(wire->key)}, accept);
    if (!head->upgrade || !is_one(head, "upgrade", "websocket"))
        return refuse(wire, "it does not upgrade the connection to websocket");
    size_t count;
    weft_bytes shown = weft__http_find(head, "sec-websocket-accept", &count);
    if (count != 1 || shown.len != strlen(accept) || memcmp(shown.data, accept, shown.len) != 0)
        return refuse(wire, "Sec-WebSocket-Accept does not belong to our key");
    weft__http_find(head, "sec-websocket-protocol", &protocols);
    if (protocols > 0)
        return refuse(wire, "it chose a subprotocol that was not offered");
    return check_extensions(wire, head);
}

static int hear_ws_answer(weft_wire *wire, const char *data, size_t n) {
    weft_http_head head;
    int len = weft__http_response(data, n, &head);
    if (len < 0)
        return refuse(wire, "it is not HTTP");
    if (len == 0)
        return 0;
    int r = check_head(wire, &head);
    return r < 0 ? r : len;
}

const weft_handshake weft__ws_handshake = {.hello = say_ws_hello, .hear = hear_ws_answer};

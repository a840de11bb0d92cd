/* From HTTP to WebSocket: the server's side of RFC 6455 section 4.2. */
#include <stdio.h>
#include <sys/random.h>

#include "frame.h"
#include "http_server.h"
#include "ws_handshake.h"

/* Our head, the extension's answer, the connection's id and a subprotocol, which is as long as the client made it. */
#define MAX_HEAD 640
#define MAX_PROTOCOL 512

static int refuse_upgrade(weft_asked *asked, int status, const char *reason, const char *extra) {
    snprintf(asked->extra, sizeof asked->extra, "%s", extra);
    asked->reason = reason;
    return status;
}

static int check_upgrade(weft_asked *asked, weft_bytes *ret_key) {
    const weft_http_head *head = asked->head;
    size_t keys;
    weft_bytes version = weft__http_find(head, "sec-websocket-version", NULL);
    *ret_key = weft__http_find(head, "sec-websocket-key", &keys);
    if (!weft__bytes_are(head->method, "GET"))
        return refuse_upgrade(asked, 405, "methodNotAllowed", "Allow: GET\r\n");
    if (!head->upgrade || !weft__http_has_token(weft__http_find(head, "upgrade", NULL), "websocket"))
        return refuse_upgrade(asked, 426, "upgradeRequired", "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    if (head->minor != 1 || head->chunked || head->content_length > 0)
        return refuse_upgrade(asked, 400, "badUpgrade", "");
    if (!weft__bytes_are(version, "13"))
        return refuse_upgrade(asked, 426, "webSocketVersion",
                              "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
    if (keys != 1 || !weft__ws_key_valid(*ret_key) || asked->protocol.len > MAX_PROTOCOL)
        return refuse_upgrade(asked, 400, "badUpgrade", "");
    return 0;
}

/* "NAME: 32 digits", or nothing. Without randomness there is no id, which is only a name. */
#define ID_LINE (64 + 2 + 32 + 3)
static void write_id(const weft_asked *asked, char ret[ID_LINE]) {
    const char *name = asked->endpoint->id_header;
    unsigned char bytes[16];
    *ret = '\0';
    if (!name || getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return;
    int n = snprintf(ret, ID_LINE, "%s: ", name);
    for (size_t i = 0; i < sizeof bytes; i++)
        n += snprintf(ret + n, ID_LINE - (size_t) n, "%02x", bytes[i]);
    snprintf(ret + n, ID_LINE - (size_t) n, "\r\n");
}

static int write_upgrade_head(const weft_asked *asked, weft_bytes key, unsigned *ret_deflate, char *head, size_t size) {
    char accept[29], extension[200] = "", id[ID_LINE];
    weft_bytes offers = weft__http_find(asked->head, "sec-websocket-extensions", NULL);
    weft__ws_accept(key, accept);
    write_id(asked, id);
    *ret_deflate = offers.len ? weft__ws_deflate_offer(offers, extension, sizeof extension) : 0;
    return snprintf(head, size,
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    "Sec-WebSocket-Accept: %s\r\n%s%s%s%s%s%.*s%s\r\n",
                    accept, id, *ret_deflate ? "Sec-WebSocket-Extensions: " : "", *ret_deflate ? extension : "",
                    *ret_deflate ? "\r\n" : "", asked->protocol.len ? "Sec-WebSocket-Protocol: " : "",
                    (int) asked->protocol.len, asked->protocol.len ? asked->protocol.data : "",
                    asked->protocol.len ? "\r\n" : "");
}

int weft__web_upgrade(weft_conn *conn, weft_asked *asked) {
    char head[MAX_HEAD + MAX_PROTOCOL], name[WEFT_CONN_NAME];
    weft_bytes key;
    weft_origin origin;
    weft_identity who;
    weft_conn_peer how = {.framing = &weft_websocket, .identity = &who};
    int status = check_upgrade(asked, &key);
    if (status)
        return status;
    int n = write_upgrade_head(asked, key, &how.deflate, head, sizeof head);
    weft__web_identity(conn, asked, &origin, name, &who);
    how.locked = !who.authenticated;
    if (how.locked)
        conn->auth_until = weft__after(weft_loop_now(conn->stream.loop), weft__conn_server(conn)->opts.auth_ms);
    return weft__web_become(conn, &how, (weft_bytes){head, (size_t) n}) < 0 ? refuse_upgrade(asked, 503, "outOfMemory", "")
                                                                            : 0;
}

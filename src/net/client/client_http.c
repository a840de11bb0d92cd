/* HTTP as a client's transport: connections come and go between messages, and a status may say no to all of them. */
#include "client_http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http1.h"
#include "http1_bytes.h"

/* Servers refuse heads over 8 KiB or so. */
#define MAX_HEADERS 8192

struct weft_http_reply {
    const weft_http_head *head;
};

int weft_http_reply_status(const weft_http_reply *reply) {
    return reply->head->status;
}

weft_bytes weft_http_reply_header(const weft_http_reply *reply, const char *name) {
    const weft_http_head *head = reply->head;
    size_t len = name ? strlen(name) : 0;
    for (size_t i = 0; len && i < head->header_count; i++)
        if (head->headers[i].name.len == len && strncasecmp(head->headers[i].name.data, name, len) == 0)
            return head->headers[i].value;
    return (weft_bytes){0};
}

void weft__http_tell_reply(void *ctx, const weft_http_head *head) {
    weft_client *client = ctx;
    if (client->opts.on_reply && client->peer)
        client->opts.on_reply(client->peer, &(weft_http_reply){head}, weft_peer_data(client->peer));
}

/* ---- the user's headers ---- */

/* These say what the protocol does, or where one message ends. */
static bool is_protocols_own(const char *name) {
    static const char *const names[] = {"host",   "content-length", "content-type", "transfer-encoding",
                                        "accept", "connection",     "upgrade",      "expect",
                                        "te",     "trailer"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return strncasecmp(name, "sec-websocket-", 14) == 0;
}

static int put_own_header(weft_buf *out, const weft_alloc *alloc, const weft_header *header) {
    const char *const texts[] = {header->name, ": ", header->value, "\r\n"};
    int r = 0;
    if (!*header->name || !header->value || !weft__http_is(header->name, HTTP_TOKEN) ||
        !weft__http_is(header->value, HTTP_VALUE) || is_protocols_own(header->name))
        return -EINVAL;
    for (size_t i = 0; r >= 0 && i < 4; i++)
        r = weft__buf_put(out, alloc, texts[i], strlen(texts[i]));
    return r;
}

int weft__headers_text(const weft_header *headers, const weft_alloc *alloc, char **ret) {
    weft_buf text = {0};
    int r = 0;
    for (const weft_header *at = headers; r >= 0 && at && at->name; at++)
        r = put_own_header(&text, alloc, at);
    if (r >= 0 && weft__buf_len(&text) > MAX_HEADERS)
        r = -EINVAL;
    if (r >= 0 && weft__buf_len(&text))
        r = weft__buf_put(&text, alloc, "", 1);
    if (r >= 0 && weft__buf_len(&text))
        *ret = weft__strndup(alloc, weft__buf_head(&text), weft__buf_len(&text) - 1);
    if (r >= 0 && weft__buf_len(&text) && !*ret)
        r = -ENOMEM;
    weft__buf_done(&text, alloc);
    return r;
}

int weft_peer_set_headers(weft_peer *peer, const weft_header *headers) {
    weft_client *client = weft__client_of(peer);
    char *more = NULL;
    if (!client || !(client->transport->scheme.flags & WEFT_LAZY))
        return -ENOTSUP;
    int r = weft__headers_text(headers, client->loop->alloc, &more);
    weft_http_client_opts opts = client->http;
    opts.more = more;
    if (r >= 0)
        r = weft__http_client_change(weft__peer_framing_state(peer), &opts);
    if (r < 0) {
        weft__free(client->loop->alloc, more);
        return r;
    }
    weft__free(client->loop->alloc, client->more);
    client->more = more;
    client->http = opts;
    return 0;
}

int weft__http_prepare(weft_client *client) {
    const weft_url *url = &client->url;
    size_t size = strlen(url->path) + strlen(url->query) + sizeof "?";
    client->target = weft__alloc(client->loop->alloc, size);
    if (!client->target)
        return -ENOMEM;
    snprintf(client->target, size, "%s%s%s", url->path, *url->query ? "?" : "", url->query);
    client->http = (weft_http_client_opts){.host = client->authority,
                                           .path = client->target,
                                           .token = client->token,
                                           .more = client->more,
                                           .gzip = client->opts.gzip,
                                           .on_head = weft__http_tell_reply,
                                           .ctx = client};
    weft__peer_set_extra(client->peer, &client->http);
    return weft__peer_reset(client->peer, -ECONNRESET, &weft__http_client, true);
}

int weft__http_refused(weft_client *client, int status, const char *instead) {
    if (status == 401 || status == 403) {
        weft__client_trouble(client, "%s (%d %s)",
                             client->token ? "the server refused the token" : "the server wants a token", status,
                             weft__http_reason(status));
        return -EACCES;
    }
    weft__client_trouble(client, "the server answered %d %s%s", status, weft__http_reason(status), instead);
    if (status == 404 || status == 410)
        return -ENOENT;
    return status == 429 || status == 503 ? -EBUSY : -EPROTO;
}

int weft__http_describe(weft_client *client, int r) {
    int status = weft__http_client_status(weft__peer_framing_state(client->peer));
    return status >= 300 ? weft__http_refused(client, status, "") : r;
}

/* Whole requests in the peer's output; SIZE_MAX when the first of them has left in part. The heads are our own. */
static size_t count_unsent(weft_peer *peer) {
    weft_bytes out = weft_peer_output(peer);
    size_t count = 0;
    for (size_t at = 0; at < out.len; count++) {
        weft_http_head head;
        int len = weft__http_request(out.data + at, out.len - at, &head);
        if (len <= 0)
            return SIZE_MAX;
        at += (size_t) len + (size_t) head.content_length;
    }
    return count;
}

bool weft__http_harmless_end(weft_client *client, bool clean) {
    weft_peer *peer = client->peer;
    void *framing = weft__peer_framing_state(peer);
    size_t pending = weft__http_client_pending(framing);
    if (pending == count_unsent(peer))
        return true;
    if (pending != 1 || !clean)
        return false;
    weft__peer_last(peer);
    if (client->peer != peer || weft__http_client_pending(framing) != 0)
        return false;
    return weft__peer_reset(peer, -ECONNRESET, NULL, true) == 0;
}

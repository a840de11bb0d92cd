/* HTTP as a client's transport: connections come and go between messages, and a status may say no to all of them. */
#include "client_http.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "http1.h"

int weft__http_prepare(weft_client *client) {
    const weft_url *url = &client->url;
    size_t size = strlen(url->path) + strlen(url->query) + sizeof "?";
    client->target = weft__alloc(client->loop->alloc, size);
    if (!client->target)
        return -ENOMEM;
    snprintf(client->target, size, "%s%s%s", url->path, *url->query ? "?" : "", url->query);
    client->http = (weft_http_client_opts){.host = client->authority, .path = client->target, .token = client->token};
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

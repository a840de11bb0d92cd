/* connection.list: who is connected now. */
#include <string.h>

#include "dashboard_methods.h"
#include "reply.h"
#include "write.h"

/* Of ten thousand connections nobody reads more; the rest is counted. */
#define CONNECTIONS_MOST 1000

static int write_connection(weft_buf *out, const weft_hub *hub, weft_hub_client *client, const weft_peer *caller) {
    weft_peer *peer = weft__hub_client_peer(client);
    const weft_identity *who = weft_peer_identity(peer);
    char name[WEFT_WHO], since[WEFT_STAMP];
    weft_val value =
        WEFT_OBJ({"id", weft_uint(weft__hub_client_number(client))}, {"name", weft_str(weft__who(who, name))},
                 {"transport", weft_str(who->transport)}, {"address", *who->address ? weft_str(who->address) : weft_none()},
                 {"dialect", *who->dialect ? weft_str(who->dialect) : weft_none()}, {"scopes", weft_str(who->scopes)},
                 {"since", weft__stamp_val(weft__hub_client_since(client), since)},
                 {"subscriptions", weft_uint(weft__hub_client_subscriptions(client))},
                 {"current", peer == caller ? weft_bool(true) : weft_none()});
    return weft__write_val(out, hub->alloc, &value);
}

int weft__dashboard_connections(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const weft_peer *caller = weft_req_peer(req);
    weft_buf out = {0};
    uint64_t total = 0;
    (void) params;
    int r = weft__buf_put(&out, hub->alloc, "[", 1);
    for (weft_hub_client *at = NULL; r >= 0 && (at = weft__hub_clients_next(hub->clients, at));) {
        if (total++ >= CONNECTIONS_MOST)
            continue;
        r = total > 1 ? weft__buf_put(&out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_connection(&out, hub, at, caller);
    }
    if (r >= 0)
        r = weft__buf_put(&out, hub->alloc, "]", 1);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"connections", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                     {"total", weft_uint(total)}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

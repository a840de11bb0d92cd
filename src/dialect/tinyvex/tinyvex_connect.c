/* tinyvex/connect, ping and auth.setToken: what a connection and the hub tell each other about themselves. */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "reply.h"
#include "server.h"
#include "tinyvex.h"
#include "tinyvex_change.h"

/* ---- connect ---- */

struct connect_params {
    weft_json client, clockSkewHint;
};
const weft_param weft__tinyvex_connect_params[] = {
    {"client", WEFT_PARAM_obj, offsetof(struct connect_params, client), WEFT_NULLABLE, "the client's name and version"},
    {"clockSkewHint", WEFT_PARAM_any, offsetof(struct connect_params, clockSkewHint), WEFT_NULLABLE,
     "how far the client believes its clock to be off; the answer has the hub's time"},
    WEFT_END(struct connect_params),
};

/* A name for logs, not a secret. Without randomness the number will do. */
#define CONNECTION_ID 40
static const char *name_connection(const weft_hub_client *client, char text[CONNECTION_ID]) {
    uint64_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t) sizeof random)
        random = 0;
    snprintf(text, CONNECTION_ID, "%llu-%016llx", client ? (unsigned long long) weft__hub_client_number(client) : 0ULL,
             (unsigned long long) random);
    return text;
}

int weft__tinyvex_on_connect(weft_req *req, const weft_json *params, void *ctx) {
    weft_hub *hub = ctx;
    weft_hub_client *client = weft__hub_client_of(hub->clients, weft_req_peer(req));
    char id[CONNECTION_ID];
    (void) params;
    weft_val features = WEFT_OBJ({"chunks", weft_bool(true)},
                                 {"maxChunkBytes", weft_uint(hub->chunk_bytes ? hub->chunk_bytes : TINYVEX_CHUNK)});
    int r = weft_reply(req, WEFT_OBJ({"serverVersion", weft_str(hub->host->version)},
                                     {"nowTs", weft_int(weft__engine_now(hub->engine))}, {"features", features},
                                     {"sessionId", weft_str(name_connection(client, id))}));
    weft__tinyvex_came(hub, client);
    return r;
}

/* ---- ping ---- */

struct ping_params {
    weft_json t;
};
const weft_param weft__tinyvex_ping_params[] = {
    {"t", WEFT_PARAM_num, offsetof(struct ping_params, t), WEFT_NULLABLE, "any number; it comes back"},
    {0},
};

static int say_pong(weft_peer *peer, weft_val t) {
    int r = peer ? weft_notify(peer, "tinyvex/pong", WEFT_OBJ({"t", t})) : 0;
    return r == -ENOTSUP || r == -EPIPE ? 0 : r;
}

/* As it was written: a number may have more digits than a double has. */
int weft__tinyvex_on_ping(weft_req *req, const weft_json *params, void *ctx) {
    weft_json t = weft_get(params, "t");
    weft_val back = weft_typeof(&t) == WEFT_NUMBER ? weft_copy(&t) : weft_none();
    (void) ctx;
    if (weft_req_is_notification(req))
        return say_pong(weft_req_peer(req), back);
    return weft_reply(req, WEFT_OBJ({"t", back}));
}

/* ---- auth.setToken ---- */

struct set_token_params {
    weft_json token;
};
const weft_param weft__tinyvex_set_token_params[] = {
    WEFT_MUST(struct set_token_params, token, any, "the token; null: forget who this connection is"),
    WEFT_END(struct set_token_params),
};

static int refuse_token(weft_req *req, int r) {
    if (r == -EBUSY)
        return weft__tinyvex_refuse(weft__req_keep(req), 429, TVX_UNAUTHORIZED, "tooManyWrongTokens", NULL,
                                    "Too many wrong tokens");
    if (r == -EACCES)
        return weft__tinyvex_refuse(weft__req_keep(req), 401, TVX_UNAUTHORIZED, "unauthorized", NULL, "Not authenticated");
    return r;
}

/* What the client was told under its former token stays told. With another one it is another client: its subscriptions end
 * with the old one, and it subscribes again. */
int weft__tinyvex_on_set_token(weft_req *req, const weft_json *params, void *ctx) {
    const struct set_token_params *in = weft_req_params(req);
    weft_peer *peer = weft_req_peer(req);
    weft_bytes token;
    int r = 0;
    (void) params, (void) ctx;
    if (weft_typeof(&in->token) == WEFT_NULL) {
        r = peer ? weft__conn_forget_token(peer) : 0;
        return r < 0 ? r : weft_reply(req, WEFT_OBJ({"ok", weft_bool(true)}));
    }
    if (weft_typeof(&in->token) != WEFT_STRING)
        return weft__reply_invalid(weft__req_keep(req), "/token", "token must be a string or null");
    r = weft_bytes_of(&in->token, &token);
    if (r >= 0 && peer)
        r = weft__conn_show_token(peer, token);
    return r < 0 ? refuse_token(req, r) : weft_reply(req, WEFT_OBJ({"ok", weft_bool(true)}));
}

/* Byte streams have no headers to show a token in: it comes as the first call,
 * {"method":"weft.auth","params":{"token":...}}. Until then every other method is answered 401, and after auth_ms the
 * connection is closed. */
#include <errno.h>

#include "server.h"

static int accept_token(weft_req *req, weft_conn *conn, const weft_auth *auth) {
    weft_identity who = *weft_req_identity(req);
    who.name = auth->name;
    who.scopes = auth->scopes;
    who.authenticated = true;
    int r = weft_peer_set_identity(weft_req_peer(req), &who);
    if (r < 0)
        return r;
    conn->auth = auth->id;
    weft__conn_known(conn);
    weft__conn_tell_open(conn);
    return weft_reply(req, WEFT_OBJ({"name", weft_str(auth->name)}, {"scopes", weft_str(auth->scopes)}));
}

/* Only wrong tokens are braked: somebody else's must not keep the owner of a right one out. */
static int refuse_token(weft_req *req, weft_conn *conn) {
    weft_server *server = weft__conn_server(conn);
    weft_origin origin;
    int64_t now = weft_loop_now(server->loop);
    weft__origin_of(conn->stream.fd, &origin);
    if (weft__brake_wait(&server->brake, origin.group, now))
        return weft_refuse(req, 429, "Too many wrong tokens", "tooManyWrongTokens");
    weft__brake_wrong(&server->brake, origin.group, now);
    return weft_refuse(req, 401, "Not authenticated", "unauthorized");
}

static int authenticate(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    weft_conn *conn = weft__conn_of(weft_req_peer(req));
    const weft_identity *who = weft_req_identity(req);
    if (who->authenticated || !conn)
        return weft_reply(req, WEFT_OBJ({"name", weft_str(who->name)}, {"scopes", weft_str(who->scopes)}));

    const char *token = weft_get_str(params, "token", NULL);
    weft_bytes shown = {token, token ? strlen(token) : 0};
    const weft_auth *auth = token ? weft__auths_find(&conn->endpoint->tokens, shown, weft__wall_now()) : NULL;
    return auth ? accept_token(req, conn, auth) : refuse_token(req, conn);
}

const weft_method weft__auth_method = {
    .name = "weft.auth",
    .handler = authenticate,
    .help = "show a token; needed first on byte streams that ask for one",
    .flags = WEFT_OPEN | WEFT_HIDDEN,
};

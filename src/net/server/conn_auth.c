/* Showing a token after the connection was made. Byte streams have no headers to show one in: it comes as the first call,
 * {"method":"weft.auth","params":{"token":...}}. Until then every other method is answered 401, and after auth_ms the
 * connection is closed. */
#include <errno.h>
#include <string.h>

#include "link.h"
#include "server.h"

/* Who shows another token is somebody else: whoever was told of the connection is told that it has ended, and that it has
 * begun. */
static int accept_token(weft_peer *peer, weft_conn *conn, const weft_auth *auth) {
    weft_identity who = *weft_peer_identity(peer);
    who.name = auth->name;
    who.scopes = auth->scopes;
    who.authenticated = true;
    int r = weft_peer_set_identity(peer, &who);
    if (r < 0)
        return r;
    weft__conn_tell_close(conn, -EACCES);
    conn->auth = auth->id;
    conn->session = 0;
    weft__conn_known(conn);
    weft__conn_tell_open(conn);
    return 0;
}

/* Only wrong tokens are braked: somebody else's must not keep the owner of a right one out. */
static int count_wrong_token(weft_conn *conn) {
    weft_server *server = weft__conn_server(conn);
    weft_origin origin;
    int64_t now = weft_loop_now(server->loop);
    weft__origin_of(conn->stream.fd, &origin);
    if (weft__brake_wait(&server->brake, origin.group, now))
        return -EBUSY;
    weft__brake_wrong(&server->brake, origin.group, now);
    return -EACCES;
}

/* The same token again changes nothing. */
static int change_token(weft_peer *peer, weft_conn *conn, const weft_auth *auth) {
    bool same = conn->auth == auth->id && weft_peer_identity(peer)->authenticated;
    return same ? 0 : accept_token(peer, conn, auth);
}

int weft__conn_show_token(weft_peer *peer, weft_bytes token) {
    weft_conn *conn = weft__conn_of(peer);
    bool known = weft_peer_identity(peer)->authenticated;
    /* Where nobody is asked for a token, whoever is known is known without one. */
    if (known && (!conn || !conn->endpoint->tokens.asked))
        return 0;
    if (!conn)
        return -EACCES;
    const weft_auth *auth = weft__auths_find(&conn->endpoint->tokens, token, weft__wall_now());
    if (!auth)
        return count_wrong_token(conn);
    weft__auth_seen(&conn->endpoint->tokens, auth, weft__wall_now());
    return change_token(peer, conn, auth);
}

int weft__conn_forget_token(weft_peer *peer) {
    weft_conn *conn = weft__conn_of(peer);
    weft_identity who = *weft_peer_identity(peer);
    if (!conn)
        return 0;
    who.name = "";
    who.scopes = "";
    who.authenticated = false;
    int r = weft_peer_set_identity(peer, &who);
    if (r < 0)
        return r;
    weft__peer_lock(peer);
    conn->auth = conn->session = 0;
    conn->auth_until = weft__after(weft_loop_now(conn->stream.loop), weft__conn_server(conn)->opts.auth_ms);
    weft__conn_tell_close(conn, -EACCES);
    return 0;
}

static int answer_who(weft_req *req) {
    const weft_identity *who = weft_req_identity(req);
    return weft_reply(req, WEFT_OBJ({"name", weft_str(who->name)}, {"scopes", weft_str(who->scopes)}));
}

static int auth_by_token(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    const weft_identity *who = weft_req_identity(req);
    if (who->authenticated || !weft__conn_of(weft_req_peer(req)))
        return answer_who(req);
    const char *token = weft_get_str(params, "token", "");
    int r = weft__conn_show_token(weft_req_peer(req), (weft_bytes){token, strlen(token)});
    if (r == -EBUSY)
        return weft_refuse(req, 429, "Too many wrong tokens", "tooManyWrongTokens");
    if (r == -EACCES)
        return weft_refuse(req, 401, "Not authenticated", "unauthorized");
    return r < 0 ? r : answer_who(req);
}

const weft_method weft__auth_method = {
    .name = "weft.auth",
    .handler = auth_by_token,
    .help = "show a token; needed first on byte streams that ask for one",
    .flags = WEFT_ROW_OPEN | WEFT_ROW_HIDDEN,
};

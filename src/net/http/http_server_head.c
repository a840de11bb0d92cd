/* May this request be made, and what does it ask for? The order matters: host and origin first, because a browser that was
 * tricked into asking must learn nothing; then the token; only then what is there and what is not. */
#include "http_server.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "login.h"

#define TOKEN_PROTOCOL "weft.token."

static weft_bytes text_as_bytes(const char *text) {
    return (weft_bytes){text, strlen(text)};
}

static bool same_bytes_nocase(weft_bytes a, weft_bytes b) {
    return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

static bool begins_with(weft_bytes bytes, const char *with) {
    size_t len = strlen(with);
    return bytes.len >= len && strncasecmp(bytes.data, with, len) == 0;
}

static int refuse_head(weft_asked *asked, int status, const char *reason) {
    asked->reason = reason;
    return status;
}

/* ---- the target ---- */

static void split_query(weft_asked *asked, weft_bytes target) {
    const char *mark = memchr(target.data, '?', target.len);
    asked->path = (weft_bytes){target.data, mark ? (size_t) (mark - target.data) : target.len};
    asked->query = mark ? (weft_bytes){mark + 1, target.len - asked->path.len - 1} : text_as_bytes("");
}

/* The parser has turned the absolute form into the origin form; its host is the same as Host's. */
static int split_target(weft_asked *asked) {
    weft_bytes target = asked->head->target;
    if (weft__bytes_are(target, "*") && weft__bytes_are(asked->head->method, "OPTIONS"))
        target = text_as_bytes("/");
    if (!target.len || target.data[0] != '/')
        return refuse_head(asked, 400, "badTarget");
    split_query(asked, target);
    return 0;
}

/* ---- host and origin ---- */

/* ":" and digits, or nothing at all. */
static bool is_port(const char *at, const char *end) {
    bool port = at == end || *at == ':';
    for (at++; port && at < end; at++)
        port = *at >= '0' && *at <= '9';
    return port;
}

/* "name", "name:port", "[v6]:port" without its port and brackets; empty when it is none of these. */
static weft_bytes host_name(weft_bytes host) {
    bool v6 = host.len && host.data[0] == '[';
    const char *start = host.data + v6, *end = host.data + host.len;
    const char *stop = memchr(host.data, v6 ? ']' : ':', host.len);
    if (!stop && v6)
        return (weft_bytes){0};
    if (!stop)
        stop = end;
    return is_port(stop + v6, end) ? (weft_bytes){start, (size_t) (stop - start)} : (weft_bytes){0};
}

static bool is_loopback_name(weft_bytes name) {
    return same_bytes_nocase(name, text_as_bytes("localhost")) || weft__bytes_are(name, "127.0.0.1") ||
           weft__bytes_are(name, "::1");
}

/* A list entry may name the host alone or with its port. */
static bool is_host_listed(char *const *list, weft_bytes whole, weft_bytes name) {
    for (; list && *list; list++)
        if (strcmp(*list, "*") == 0 || same_bytes_nocase(text_as_bytes(*list), whole) ||
            same_bytes_nocase(text_as_bytes(*list), name))
            return true;
    return false;
}

static bool is_bound(const weft_listener *listener, weft_bytes name) {
    for (size_t i = 0; i < listener->count; i++)
        if (same_bytes_nocase(name, text_as_bytes(listener->sockets[i].bound)))
            return true;
    for (const weft_endpoint *at = listener->endpoints; at; at = at->next)
        if (same_bytes_nocase(name, text_as_bytes(at->url.host)))
            return true;
    return false;
}

/* A page whose name was made to point here (DNS rebinding) cannot fake this header. */
static int check_host(const weft_listener *listener, weft_asked *asked) {
    size_t count;
    asked->host = weft__http_find(asked->head, "host", &count);
    if (count != 1)
        return refuse_head(asked, 400, "badHost");
    weft_bytes name = host_name(asked->host);
    if (!name.len)
        return refuse_head(asked, 400, "badHost");
    if (is_loopback_name(name) || is_bound(listener, name) || is_host_listed(asked->endpoint->hosts, asked->host, name))
        return 0;
    return refuse_head(asked, 421, "hostNotServed");
}

static int check_origin(const weft_listener *listener, weft_asked *asked) {
    size_t count;
    weft_bytes origin = weft__http_find(asked->head, "origin", &count);
    if (!count)
        return 0;
    weft_bytes rest = origin;
    size_t scheme = listener->tls ? 8 : 7;
    bool own = count == 1 && begins_with(origin, listener->tls ? "https://" : "http://");
    if (own) {
        rest = (weft_bytes){origin.data + scheme, origin.len - scheme};
        own = same_bytes_nocase(rest, asked->host);
    }
    if (count != 1 || (!own && !is_host_listed(asked->endpoint->origins, origin, origin)))
        return refuse_head(asked, 403, "originNotAllowed");
    asked->origin = origin;
    asked->own_origin = own;
    return 0;
}

/* ---- the token ---- */

static weft_bytes trim_blanks(const char *data, size_t len) {
    while (len && (*data == ' ' || *data == '\t'))
        data++, len--;
    while (len && (data[len - 1] == ' ' || data[len - 1] == '\t'))
        len--;
    return (weft_bytes){data, len};
}

/* Browsers cannot set headers on a WebSocket, but they can name protocols. Another protocol, if one was named, is the one to
 * answer, so that the token does not come back; if there is only the token, it has to, or the browser hangs up. */
static weft_bytes token_of_protocols(weft_asked *asked) {
    weft_bytes token = {0};
    weft_bytes list = weft__http_find(asked->head, "sec-websocket-protocol", NULL);
    size_t prefix = strlen(TOKEN_PROTOCOL);
    if (!list.len)
        return token;
    for (const char *at = list.data, *end = at + list.len; at < end;) {
        const char *comma = memchr(at, ',', (size_t) (end - at));
        weft_bytes item = trim_blanks(at, (size_t) ((comma ? comma : end) - at));
        bool is_token = item.len > prefix && strncmp(item.data, TOKEN_PROTOCOL, prefix) == 0;
        if (is_token && !token.data)
            token = (weft_bytes){item.data + prefix, item.len - prefix};
        bool better = !asked->protocol.len || (begins_with(asked->protocol, TOKEN_PROTOCOL) && !is_token);
        if (item.len && better)
            asked->protocol = item;
        at = comma ? comma + 1 : end;
    }
    return token;
}

static weft_bytes token_of_query(weft_bytes query) {
    const char *at = query.data, *end = at + query.len;
    while (at < end) {
        const char *amp = memchr(at, '&', (size_t) (end - at));
        size_t len = (size_t) ((amp ? amp : end) - at);
        if (len > 6 && memcmp(at, "token=", 6) == 0)
            return (weft_bytes){at + 6, len - 6};
        at += len + 1;
    }
    return (weft_bytes){0};
}

static weft_bytes token_of(weft_asked *asked) {
    weft_bytes protocol = token_of_protocols(asked);
    weft_bytes header = weft__http_find(asked->head, "authorization", NULL);
    if (begins_with(header, "bearer "))
        return trim_blanks(header.data + 7, header.len - 7);
    return protocol.data ? protocol : token_of_query(asked->query);
}

/* Where a token may be shown later, one that is wrong is refused all the same. */
static bool needs_token(const weft_conn *conn, const weft_asked *asked, weft_bytes token) {
    bool later = asked->kind == WEFT_WEB_SOCKET && asked->endpoint->token_later && !token.data;
    bool open = later || asked->kind == WEFT_WEB_HEALTH || asked->kind == WEFT_WEB_OPTIONS;
    return asked->endpoint->tokens.asked && !open && !weft__route_public(weft__conn_server(conn), asked->path);
}

static int wrong_token(weft_asked *asked, weft_bytes token) {
    snprintf(asked->extra, sizeof asked->extra, "WWW-Authenticate: Bearer realm=\"weft\"%s\r\n",
             token.data ? ", error=\"invalid_token\"" : "");
    return refuse_head(asked, 401, "unauthorized");
}

/* A page of another site can make the browser ask here (an image, a link), with any token it likes in the URL. Browsers say
 * so in a header that pages cannot set. */
static bool is_from_another_site(const weft_asked *asked) {
    weft_bytes site = weft__http_find(asked->head, "sec-fetch-site", NULL);
    return site.data && (weft__bytes_are(site, "cross-site") || weft__bytes_are(site, "same-site"));
}

/* Wrong tokens that pages made the browser show are counted by themselves: they must not brake the user's own. */
static void brake_key(const weft_asked *asked, const char *group, char *ret, size_t size) {
    snprintf(ret, size, "%s%s", group, is_from_another_site(asked) ? " page" : "");
}

/* Nobody's wrong tokens brake a right one, so this is asked only about a wrong one. Where no token is needed a wrong one
 * counts all the same: a public page may tell whether it was right. */
static int judge_wrong_token(weft_conn *conn, weft_asked *asked, weft_bytes token, bool must) {
    weft_server *server = weft__conn_server(conn);
    int64_t now = weft_loop_now(server->loop), wait = 0;
    weft_origin origin;
    char key[WEFT_ADDRESS + 8];
    if (token.data) {
        weft__origin_of(conn->stream.fd, &origin);
        brake_key(asked, origin.group, key, sizeof key);
        wait = weft__brake_wait(&server->brake, key, now);
        if (!wait)
            weft__brake_wrong(&server->brake, key, now);
    }
    if (!must)
        return 0;
    if (!wait)
        return wrong_token(asked, token);
    snprintf(asked->extra, sizeof asked->extra, "Retry-After: %lld\r\n", (long long) (wait / 1000 + 1));
    return refuse_head(asked, 429, "tooManyWrongTokens");
}

/* A cookie goes with whatever a browser sends here, whoever made it do so. Another port of this host is another origin but
 * the same site, so SameSite alone does not keep its pages out. */
static bool may_use_cookie(const weft_asked *asked) {
    const weft_http_head *head = asked->head;
    weft_bytes site = weft__http_find(head, "sec-fetch-site", NULL);
    bool same = site.data && weft__bytes_are(site, "same-origin");
    if ((site.data && !same && !weft__bytes_are(site, "none")) || (asked->origin.data && !asked->own_origin))
        return false;
    bool reads = weft__bytes_are(head->method, "GET") || weft__bytes_are(head->method, "HEAD");
    return same || asked->own_origin || (reads && asked->kind != WEFT_WEB_SOCKET);
}

static const weft_auth *by_login(const weft_conn *conn, weft_asked *asked) {
    const weft_session_row *session = may_use_cookie(asked) ? weft__login_of(conn, asked->head) : NULL;
    if (!session)
        return NULL;
    asked->session = session->id;
    return weft__login_auth(conn, session, &asked->endpoint->tokens);
}

static int check_request_token(weft_conn *conn, weft_asked *asked) {
    char name[WEFT_CONN_NAME];
    weft_bytes token = token_of(asked);
    asked->authenticated =
        !asked->endpoint->tokens.asked || (conn->stream.tls && weft__tls_subject(conn->stream.tls, name, sizeof name) > 0);
    if (asked->authenticated)
        return 0;
    asked->auth = token.data ? weft__auths_find(&asked->endpoint->tokens, token, weft__wall_now()) : by_login(conn, asked);
    asked->authenticated = asked->auth != NULL;
    if (asked->auth)
        weft__auth_seen(&asked->endpoint->tokens, asked->auth, weft__wall_now());
    return asked->auth ? 0 : judge_wrong_token(conn, asked, token, needs_token(conn, asked, token));
}

/* ---- what is there ---- */

static weft_endpoint *endpoint_at(const weft_listener *listener, weft_bytes path, bool socket) {
    for (weft_endpoint *at = listener->endpoints; at; at = at->next) {
        bool is_socket = at->transport->scheme.flags & WEFT_UPGRADES;
        if (is_socket == socket && weft__bytes_are(path, at->url.path))
            return at;
    }
    return NULL;
}

/* What the path is, and by whose rules; what may be done there is looked at after the token. */
static void find_kind(const weft_conn *conn, const weft_listener *listener, weft_asked *asked) {
    const weft_http_head *head = asked->head;
    char allow[64];
    bool upgrade = head->upgrade || weft__http_find(head, "upgrade", NULL).data;
    weft_endpoint *socket = endpoint_at(listener, asked->path, true), *plain = endpoint_at(listener, asked->path, false);
    asked->route = weft__route_find(weft__conn_server(conn), head->method, asked->path, allow, sizeof allow);
    asked->endpoint = listener->endpoints;
    if (weft__bytes_are(head->method, "OPTIONS") && !asked->route)
        asked->kind = WEFT_WEB_OPTIONS;
    else if (socket && (upgrade || !(plain || asked->route)))
        asked->kind = WEFT_WEB_SOCKET;
    else if (asked->route)
        asked->kind = WEFT_WEB_ROUTE;
    else if (plain)
        asked->kind = weft__bytes_are(head->method, "POST") ? WEFT_WEB_RPC : WEFT_WEB_EVENTS;
    else if (weft__bytes_are(asked->path, "/health"))
        asked->kind = WEFT_WEB_HEALTH;
    if (asked->kind == WEFT_WEB_SOCKET || (asked->kind == WEFT_WEB_OPTIONS && socket && !plain))
        asked->endpoint = socket;
    else if (plain)
        asked->endpoint = plain;
}

static int not_allowed(weft_asked *asked, const char *methods) {
    snprintf(asked->extra, sizeof asked->extra, "Allow: %s\r\n", methods);
    return refuse_head(asked, 405, "methodNotAllowed");
}

static bool is_json_type(weft_bytes type) {
    static const char *const types[] = {"application/json", "application/json-rpc", "application/jsonrequest"};
    const char *parameters = type.len ? memchr(type.data, ';', type.len) : NULL;
    weft_bytes bare = trim_blanks(type.data, parameters ? (size_t) (parameters - type.data) : type.len);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (bare.len && same_bytes_nocase(bare, text_as_bytes(types[i])))
            return true;
    return false;
}

/* "text/event-stream" anywhere in Accept, whatever its parameters. */
static bool wants_events(const weft_http_head *head) {
    weft_bytes accept = weft__http_find(head, "accept", NULL);
    return accept.len && memmem(accept.data, accept.len, "text/event-stream", 17);
}

static int judge_missing(weft_conn *conn, weft_asked *asked) {
    char allow[100];
    weft__route_find(weft__conn_server(conn), asked->head->method, asked->path, allow, sizeof allow);
    return *allow ? not_allowed(asked, allow) : refuse_head(asked, 404, "notFound");
}

/* The browser asks before it lets a page ask: yes, for origins that check_origin() accepted. Routes have headers of their
 * own (Last-Event-ID, those of ACP), so any may be sent; the wildcard is for all but authorization. */
static int answer_options(weft_asked *asked) {
    bool preflight = asked->origin.data && weft__http_find(asked->head, "access-control-request-method", NULL).data;
    snprintf(asked->extra, sizeof asked->extra, "Allow: GET, POST, OPTIONS\r\n%s",
             preflight ? "Access-Control-Allow-Methods: GET, POST, DELETE\r\n"
                         "Access-Control-Allow-Headers: authorization, *\r\n"
                         "Access-Control-Max-Age: 600\r\n"
                       : "");
    return 204;
}

static int judge_kind(weft_conn *conn, weft_asked *asked) {
    const weft_http_head *head = asked->head;
    bool get = weft__bytes_are(head->method, "GET");
    switch (asked->kind) {
    case WEFT_WEB_NOTHING:
        return judge_missing(conn, asked);
    case WEFT_WEB_HEALTH:
        return get || weft__bytes_are(head->method, "HEAD") ? 0 : not_allowed(asked, "GET, HEAD");
    case WEFT_WEB_RPC:
        return is_json_type(weft__http_find(head, "content-type", NULL)) ? 0 : refuse_head(asked, 415, "notJson");
    case WEFT_WEB_EVENTS:
        if (!get)
            return not_allowed(asked, "GET, POST, OPTIONS");
        if (head->chunked || head->content_length > 0)
            return refuse_head(asked, 400, "bodyNotAllowed");
        return wants_events(head) ? 0 : refuse_head(asked, 406, "onlyEventStream");
    case WEFT_WEB_OPTIONS:
        return answer_options(asked);
    case WEFT_WEB_SOCKET:
    case WEFT_WEB_ROUTE:
        return 0;
    }
    return 0;
}

int weft__web_judge(weft_conn *conn, const weft_http_head *head, weft_asked *ret) {
    weft_listener *listener = conn->endpoint->listener;
    *ret = (weft_asked){.head = head, .endpoint = listener->endpoints};
    int status = split_target(ret);
    if (!status) {
        find_kind(conn, listener, ret);
        status = check_host(listener, ret);
    }
    if (!status)
        status = check_origin(listener, ret);
    if (!status)
        status = check_request_token(conn, ret);
    return status ? status : judge_kind(conn, ret);
}

void weft__web_identity(weft_conn *conn, const weft_asked *asked, weft_origin *origin, char *name, weft_identity *ret) {
    weft__conn_identity(conn, origin, name, ret);
    ret->transport = asked->endpoint->url.scheme->name;
    ret->local = !(asked->endpoint->url.scheme->flags & WEFT_NETWORK);
    ret->dialect = asked->endpoint->dialect;
    ret->authenticated = asked->authenticated;
    ret->scopes = asked->authenticated ? "*" : "";
    if (asked->auth) {
        ret->name = asked->auth->name;
        ret->scopes = asked->auth->scopes;
    }
}

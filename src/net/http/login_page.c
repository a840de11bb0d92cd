/* GET and POST /login, POST /logout: plain HTML without a script, so that nothing has to be allowed for it. */
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>

#include "http_request.h"
#include "login.h"
#include "write.h"

#define SESSION_S ((int64_t) 7 * 24 * 3600)
#define MAX_SESSIONS 256
/* A session is compared with all others on every request. */
#define MOST_SESSIONS 4096

static const char style[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:24rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}"
    "input,button{font:inherit;box-sizing:border-box;width:100%;padding:.5rem;margin:.25rem 0 1rem}";

static const char page[] =
    "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
    "<meta name=\"viewport\" content=\"width=device-width\"><title>Weft</title><style>%s</style></head>\n"
    "<body>\n<h1>Weft</h1>\n%s</body>\n</html>\n";

static const char form[] =
    "%s<form method=\"post\" action=\"/login\">\n<label>Token <input type=\"password\" name=\"token\" required autofocus "
    "autocomplete=\"current-password\"></label>\n<button>Log in</button>\n</form>\n"
    "<p>The token is in <code>.weft/token</code>; <code>weft token add NAME</code> makes another.</p>\n";

/* ---- answers ---- */

void weft__login_page(weft_http *http, int status, const char *content, const char *cookie) {
    char text[2048];
    const struct weft_logins *logins = weft__conn_server(http->conn)->logins;
    const weft_header headers[] = {{"Content-Security-Policy", logins->csp},
                                   {"X-Content-Type-Options", "nosniff"},
                                   {"X-Frame-Options", "DENY"},
                                   {"Referrer-Policy", "same-origin"}, /* with less, a form's Origin would be "null" */
                                   {"Cross-Origin-Opener-Policy", "same-origin"},
                                   {"Cross-Origin-Resource-Policy", "same-origin"},
                                   {cookie ? "Set-Cookie" : NULL, cookie},
                                   {0}};
    int n = snprintf(text, sizeof text, page, style, content);
    weft_http_answer_with(http, &(weft_http_answer_opts){.status = status,
                                                         .type = "text/html; charset=utf-8",
                                                         .headers = headers,
                                                         .cache = "no-store",
                                                         .body = {text, (size_t) n < sizeof text ? (size_t) n : 0}});
}

static void answer_form(weft_http *http, int status, const char *remark) {
    char content[800];
    snprintf(content, sizeof content, form, remark);
    weft__login_page(http, status, content, NULL);
}

#define COOKIE_SIZE 256
/* The value of Set-Cookie. session "": forget it. */
static void write_cookie(const weft_http *http, const char *session, int64_t seconds, char ret[COOKIE_SIZE]) {
    const weft_listener *listener = http->conn->endpoint->listener;
    snprintf(ret, COOKIE_SIZE, "weft_session_%d=%s; HttpOnly; SameSite=Strict; Path=/; Max-Age=%lld%s", listener->port,
             session, *session ? (long long) seconds : 0, listener->tls ? "; Secure" : "");
}

/* Go there with a GET. session: the new cookie's value, "" to forget it, NULL: there is none. */
static void send_elsewhere(weft_http *http, const char *where, const char *session) {
    char cookie[COOKIE_SIZE];
    write_cookie(http, session ? session : "", weft__conn_server(http->conn)->logins->session_s, cookie);
    weft_header headers[] = {{"Location", where}, {"Set-Cookie", cookie}, {0}};
    if (!session)
        headers[1] = (weft_header){0};
    weft_http_answer_with(http, &(weft_http_answer_opts){.status = 303, .headers = headers, .cache = "no-store"});
}

/* ---- the form's body ---- */

static int form_hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Without the blanks that come along when it is pasted. */
size_t weft__form_value(weft_bytes body, const char *name, char *ret, size_t size) {
    size_t len = strlen(name), used = 0;
    if (!body.len)
        return 0;
    const char *at = body.data, *end = at + body.len, *stop = end;
    for (; at < end; at = stop + 1) {
        const char *amp = memchr(at, '&', (size_t) (end - at));
        stop = amp ? amp : end;
        if ((size_t) (stop - at) > len && memcmp(at, name, len) == 0 && at[len] == '=')
            break;
    }
    for (at = at < end ? at + len + 1 : stop; at < stop && used + 1 < size; at++) {
        bool escape = *at == '%' && stop - at > 2 && form_hex_digit(at[1]) >= 0 && form_hex_digit(at[2]) >= 0;
        char c = escape ? (char) (form_hex_digit(at[1]) * 16 + form_hex_digit(at[2])) : *at == '+' ? ' ' : *at;
        at += escape ? 2 : 0;
        if (c != ' ' && c != '\r' && c != '\n' && c != '\t')
            ret[used++] = c;
    }
    ret[used] = '\0';
    return used;
}

/* ---- the routes ---- */

/* The name is one of a token: whoever gave it out chose it, but a program may have let somebody else choose. */
static void put_escaped(const char *text, char *ret, size_t size) {
    size_t used = 0;
    for (; *text && used + 8 < size; text++) {
        unsigned char c = (unsigned char) *text;
        bool plain = c >= ' ' && c != '<' && c != '>' && c != '&' && c != '"' && c != '\'' && c != 0x7f;
        used += (size_t) snprintf(ret + used, size - used, plain ? "%c" : "&#%u;", c);
    }
    ret[used] = '\0';
}

int weft__login_wrong(const weft_http *http) {
    weft_server *server = weft__conn_server(http->conn);
    int64_t now = weft_loop_now(server->loop);
    if (weft__brake_wait(&server->brake, http->origin.group, now))
        return 429;
    weft__brake_wrong(&server->brake, http->origin.group, now);
    return 401;
}

/* A token or a code was wrong: the same brake holds for both. */
static void refuse_secret(weft_http *http, const char *remark) {
    char text[200];
    if (weft__login_wrong(http) == 429) {
        answer_form(http, 429, "<p>There were too many wrong tokens. Wait some seconds.</p>\n");
        return;
    }
    snprintf(text, sizeof text, "<p>%s.</p>\n", remark);
    answer_form(http, 401, text);
}

/* Whoever looks before the user does must not use the code up: a HEAD, a browser that loads in advance, an image or a frame
 * of some page. */
static bool is_opened_by_user(const weft_http *http) {
    const char *destination = weft_http_header(http, "sec-fetch-dest");
    return strcmp(http->method, "GET") == 0 && !weft_http_header(http, "sec-purpose") &&
           (!destination || strcmp(destination, "document") == 0);
}

/* The page leads on by itself and not by a redirect: when the link was in a page of another site, the browser would not send
 * the cookie along with a redirect (SameSite=Strict). */
void weft__login_answer(weft_http *http, const weft_auth *auth, int64_t session_s) {
    weft_server *server = weft__conn_server(http->conn);
    char session[WEFT_SESSION_TEXT], cookie[COOKIE_SIZE], content[400];
    int64_t seconds = session_s > 0 ? session_s : server->logins->session_s;
    weft__login_end(server, http->conn->session);
    http->conn->session = 0; /* this connection still has an answer to bring */
    int r = weft__login_begin(server, auth, seconds, session);
    if (r < 0) {
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
        return;
    }
    write_cookie(http, session, seconds, cookie);
    snprintf(content, sizeof content,
             "<meta http-equiv=\"refresh\" content=\"0;url=%s\">\n<p>You are logged in. <a href=\"%s\">Go on</a></p>\n",
             server->logins->home, server->logins->home);
    weft__login_page(http, 200, content, cookie);
}

static bool take_code(weft_http *http) {
    char code[64];
    weft_bytes query = {http->query, strlen(http->query)};
    weft_server *server = weft__conn_server(http->conn);
    const weft_auths *tokens = &http->conn->endpoint->tokens;
    size_t len = tokens->asked && is_opened_by_user(http) ? weft__form_value(query, "code", code, sizeof code) : 0;
    if (!len)
        return false;
    const struct weft_logins *logins = server->logins;
    bool may = !logins->may_use_code || logins->may_use_code(logins->ctx, &http->identity);
    const weft_auth *auth = may ? weft__login_code_take(server, tokens, (weft_bytes){code, len}) : NULL;
    if (auth)
        weft__login_answer(http, auth, 0);
    else if (http->identity.authenticated) /* it is the same link once more, and has done its work */
        send_elsewhere(http, server->logins->home, NULL);
    else
        refuse_secret(http, "This link has been used or is too old. <code>weft open</code> makes another");
    return true;
}

static void show_login(weft_http *http, void *ctx) {
    (void) ctx;
    char content[800], name[300];
    if (take_code(http))
        return;
    if (!http->identity.authenticated) {
        answer_form(http, 200, "");
        return;
    }
    put_escaped(http->identity.name, name, sizeof name);
    snprintf(content, sizeof content, "<p>You are logged in%s%s.</p>\n%s", *name ? " as " : "", name,
             http->conn->session ? "<form method=\"post\" action=\"/logout\"><button>Log out</button></form>\n" : "");
    weft__login_page(http, 200, content, NULL);
}

static void take_login(weft_http *http, void *ctx) {
    (void) ctx;
    char token[256], session[WEFT_SESSION_TEXT];
    weft_server *server = weft__conn_server(http->conn);
    const weft_auths *tokens = &http->conn->endpoint->tokens;
    size_t len = weft__form_value(weft_http_body(http), "token", token, sizeof token);
    const weft_auth *auth = len ? weft__auths_find(tokens, (weft_bytes){token, len}, weft__wall_now()) : NULL;
    if (!tokens->asked) {
        send_elsewhere(http, server->logins->home, NULL);
        return;
    }
    if (!auth) {
        refuse_secret(http, "This token is not right");
        return;
    }
    weft__login_end(server, http->conn->session);
    http->conn->session = 0; /* this connection still has an answer to bring */
    int r = weft__login_begin(server, auth, 0, session);
    if (r < 0)
        weft_http_answer(http, 503, NULL, (weft_bytes){0});
    else
        send_elsewhere(http, server->logins->home, session);
}

static void take_logout(weft_http *http, void *ctx) {
    (void) ctx;
    weft_conn *conn = http->conn;
    weft__login_end(weft__conn_server(conn), conn->session);
    conn->session = 0; /* as above */
    conn->web->keep_alive = false;
    send_elsewhere(http, "/login", "");
}

/* For a page whose WebSocket was refused: browsers do not tell it why. Always 200, because a refusal would stand in the
 * browser's console. */
static void show_login_state(weft_http *http, void *ctx) {
    (void) ctx;
    const weft_identity *who = &http->identity;
    const weft_alloc *alloc = http->alloc;
    weft_buf text = {0};
    weft_val state = WEFT_OBJ({"authenticated", weft_bool(who->authenticated)},
                              {"name", who->authenticated ? weft_str(who->name) : weft_none()},
                              {"scopes", who->authenticated ? weft_str(who->scopes) : weft_none()});
    int r = weft__write_val(&text, alloc, &state);
    static const weft_header headers[] = {{"X-Content-Type-Options", "nosniff"}, {0}};
    weft_http_answer_with(http, &(weft_http_answer_opts){.status = r < 0 ? 503 : 200,
                                                         .type = "application/json",
                                                         .headers = headers,
                                                         .cache = "no-store",
                                                         .body = {weft__buf_head(&text), weft__buf_len(&text)}});
    weft__buf_done(&text, alloc);
}

/* ---- switching it on ---- */

/* Nothing but the style above and the form's own target. */
static void write_csp(char *ret, size_t size) {
    unsigned char digest[32];
    char text[48];
    SHA256((const unsigned char *) style, sizeof style - 1, digest);
    EVP_EncodeBlock((unsigned char *) text, digest, sizeof digest);
    snprintf(ret, size,
             "default-src 'none'; style-src 'sha256-%s'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'", text);
}

static int add_login_routes(weft_server *server) {
    int r = weft_server_route(server, "GET", "/login", show_login, NULL);
    if (r >= 0)
        r = weft_server_route(server, "POST", "/login", take_login, NULL);
    if (r >= 0)
        r = weft_server_route(server, "POST", "/logout", take_logout, NULL);
    if (r >= 0)
        r = weft_server_route(server, "GET", "/login/state", show_login_state, NULL);
    if (r >= 0)
        r = weft_server_public(server, "/login/state");
    if (r >= 0)
        r = weft_server_public(server, "/login");
    return r < 0 ? r : weft_server_public(server, "/logout");
}

int weft_server_login(weft_server *server, const weft_login_opts *opts) {
    static const weft_login_opts none = {0};
    if (server->logins)
        return -EALREADY;
    if (!opts)
        opts = &none;
    size_t max = opts->max_sessions ? opts->max_sessions : MAX_SESSIONS;
    max = max < MOST_SESSIONS ? max : MOST_SESSIONS;
    const char *home = opts->home ? opts->home : "/login";
    struct weft_logins *logins = weft__zalloc(server->alloc, sizeof *logins + max * sizeof logins->rows[0]);
    if (!logins)
        return -ENOMEM;
    server->logins = logins;
    logins->max = max;
    logins->session_s = opts->session_s > 0 ? opts->session_s : SESSION_S;
    logins->home = weft__strndup(server->alloc, home, strlen(home));
    write_csp(logins->csp, sizeof logins->csp);
    if (!logins->home) {
        weft__logins_free(server);
        return -ENOMEM;
    }
    logins->on_keep = opts->on_keep;
    logins->may_use_code = opts->may_use_code;
    logins->ctx = opts->ctx;
    if (opts->kept)
        weft__logins_restore(server, opts->kept);
    return add_login_routes(server); /* those that were added before one failed need what is there */
}

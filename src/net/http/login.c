/* The table of sessions. */
#include "login.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <sys/random.h>

static bool is_live(const weft_session_row *row, int64_t now) {
    return row->id && now < row->until;
}

int64_t weft__logins_due(const weft_server *server) {
    const struct weft_logins *logins = server->logins;
    int64_t due = INT64_MAX, now = weft_loop_now(server->loop);
    for (size_t i = 0; logins && i < logins->max; i++)
        if (is_live(&logins->rows[i], now) && logins->rows[i].until < due)
            due = logins->rows[i].until;
    return due;
}

bool weft__login_lives(const weft_server *server, uint64_t session) {
    const struct weft_logins *logins = server->logins;
    for (size_t i = 0; logins && i < logins->max; i++)
        if (logins->rows[i].id == session)
            return is_live(&logins->rows[i], weft_loop_now(server->loop));
    return false;
}

/* ---- the cookie ---- */

/* The value of a cookie by name, from "a=1; b=2" (RFC 6265 section 4.2). */
static weft_bytes cookie_value(weft_bytes cookies, const char *name) {
    size_t len = strlen(name);
    if (!cookies.len)
        return cookies;
    for (const char *at = cookies.data, *end = at + cookies.len; at < end;) {
        const char *semicolon = memchr(at, ';', (size_t) (end - at)), *stop = semicolon ? semicolon : end;
        while (at < stop && *at == ' ')
            at++;
        if ((size_t) (stop - at) > len && memcmp(at, name, len) == 0 && at[len] == '=')
            return (weft_bytes){at + len + 1, (size_t) (stop - at) - len - 1};
        at = stop + 1;
    }
    return (weft_bytes){0};
}

/* All rows are compared, in constant time each. */
static const weft_session_row *find_login(const struct weft_logins *logins, weft_bytes text, int64_t now) {
    unsigned char digest[WEFT_DIGEST];
    const weft_session_row *found = NULL;
    SHA256((const unsigned char *) text.data, text.len, digest);
    for (size_t i = 0; i < logins->max; i++)
        if (CRYPTO_memcmp(logins->rows[i].digest, digest, sizeof digest) == 0 && is_live(&logins->rows[i], now))
            found = &logins->rows[i];
    return found;
}

const weft_session_row *weft__login_of(const weft_conn *conn, const weft_http_head *head) {
    const weft_server *server = weft__conn_server(conn);
    char name[32];
    if (!server->logins)
        return NULL;
    snprintf(name, sizeof name, "weft_session_%d", conn->endpoint->listener->port);
    weft_bytes text = cookie_value(weft__http_find(head, "cookie", NULL), name);
    return text.len ? find_login(server->logins, text, weft_loop_now(server->loop)) : NULL;
}

/* A token with other scopes than when the session began is another one (weft_server_tokens()). Only when an earlier server
 * began it, its digest has to do, once. */
const weft_auth *weft__login_auth(const weft_conn *conn, const weft_session_row *row, const weft_auths *tokens) {
    struct weft_logins *logins = weft__conn_server(conn)->logins;
    int64_t now = weft__wall_now();
    const weft_auth *auth =
        row->auth ? weft__auths_with_id(tokens, row->auth, now) : weft__auths_with_digest(tokens, row->token, now);
    if (auth)
        logins->rows[row - logins->rows].auth = auth->id;
    return auth;
}

/* ---- beginning and end ---- */

/* A place that is free or whose session has ended; else the oldest's. */
static weft_session_row *place_for_session(struct weft_logins *logins, int64_t now) {
    weft_session_row *oldest = &logins->rows[0];
    for (size_t i = 0; i < logins->max; i++) {
        if (!is_live(&logins->rows[i], now))
            return &logins->rows[i];
        if (logins->rows[i].id < oldest->id)
            oldest = &logins->rows[i];
    }
    return oldest;
}

/* size / 2 random bytes as hexadecimal digits, and their digest. */
static int make_random_text(char *ret, size_t size, unsigned char ret_digest[WEFT_DIGEST]) {
    unsigned char bytes[WEFT_SESSION_TEXT / 2];
    size_t count = size / 2;
    if (getrandom(bytes, count, 0) != (ssize_t) count)
        return -EIO;
    for (size_t i = 0; i < count; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    OPENSSL_cleanse(bytes, sizeof bytes);
    SHA256((const unsigned char *) ret, size - 1, ret_digest);
    return 0;
}

int weft__login_begin(weft_server *server, const weft_auth *auth, int64_t session_s, char ret[WEFT_SESSION_TEXT]) {
    struct weft_logins *logins = server->logins;
    int64_t now = weft_loop_now(server->loop), seconds = session_s > 0 ? session_s : logins->session_s;
    weft_session_row fresh = {.auth = auth->id, .until = weft__after(now, seconds * 1000)};
    int r = make_random_text(ret, WEFT_SESSION_TEXT, fresh.digest);
    if (r < 0)
        return r;
    memcpy(fresh.token, auth->digest, sizeof fresh.token);
    fresh.id = ++logins->last_id;
    *place_for_session(logins, now) = fresh;
    weft__later(server->loop, &server->revoke); /* connections of a session that had to make room */
    weft__tokens_watch(server);
    weft__logins_keep(server);
    return 0;
}

void weft__login_end(weft_server *server, uint64_t session) {
    struct weft_logins *logins = server->logins;
    for (size_t i = 0; session && i < logins->max; i++)
        if (logins->rows[i].id == session)
            logins->rows[i] = (weft_session_row){0};
    weft__later(server->loop, &server->revoke);
    weft__logins_keep(server);
}

/* ---- codes ---- */

static const weft_auth *auth_named(const weft_server *server, const char *name) {
    for (size_t i = 0; i < server->endpoint_count; i++) {
        const weft_auths *tokens = &server->endpoints[i]->tokens;
        for (size_t j = 0; j < tokens->count; j++)
            if (strcmp(tokens->rows[j].name, name) == 0)
                return &tokens->rows[j];
    }
    return NULL;
}

/* One that is free or too old; else the oldest. */
static weft_code_row *place_for_code(struct weft_logins *logins, int64_t now) {
    weft_code_row *oldest = &logins->codes[0];
    for (size_t i = 0; i < WEFT_LOGIN_CODES; i++) {
        if (logins->codes[i].until <= now)
            return &logins->codes[i];
        if (logins->codes[i].until < oldest->until)
            oldest = &logins->codes[i];
    }
    return oldest;
}

int weft_server_login_code(weft_server *server, const char *token_name, int64_t for_ms, char ret[WEFT_LOGIN_CODE]) {
    int64_t now = weft_loop_now(server->loop);
    const weft_auth *auth = auth_named(server, token_name);
    if (!server->logins)
        return -ENOTCONN;
    if (!auth)
        return -ENOENT;
    weft_code_row fresh = {.until = weft__after(now, for_ms)};
    int r = make_random_text(ret, WEFT_LOGIN_CODE, fresh.digest);
    if (r < 0)
        return r;
    memcpy(fresh.token, auth->digest, sizeof fresh.token);
    *place_for_code(server->logins, now) = fresh;
    return 0;
}

/* All rows are compared, in constant time each. It is gone before anything is done with it: of two who show it at the same
 * time, one is late. */
const weft_auth *weft__login_code_take(weft_server *server, const weft_auths *tokens, weft_bytes code) {
    unsigned char digest[WEFT_DIGEST];
    weft_code_row found = {0};
    SHA256((const unsigned char *) code.data, code.len, digest);
    for (size_t i = 0; i < WEFT_LOGIN_CODES; i++) {
        weft_code_row *row = &server->logins->codes[i];
        if (CRYPTO_memcmp(row->digest, digest, sizeof digest) != 0)
            continue;
        found = *row;
        *row = (weft_code_row){0};
    }
    bool counts = found.until > weft_loop_now(server->loop);
    return counts ? weft__auths_with_digest(tokens, found.token, weft__wall_now()) : NULL;
}

void weft__logins_free(weft_server *server) {
    if (server->logins)
        weft__free(server->alloc, server->logins->home);
    server->logins = weft__free(server->alloc, server->logins);
}

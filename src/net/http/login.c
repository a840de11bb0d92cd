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
static const weft_session_row *find_session(const struct weft_logins *logins, weft_bytes text, int64_t now) {
    unsigned char digest[WEFT_DIGEST];
    const weft_session_row *found = NULL;
    SHA256((const unsigned char *) text.data, text.len, digest);
    for (size_t i = 0; i < logins->max; i++)
        if (CRYPTO_memcmp(logins->rows[i].digest, digest, sizeof digest) == 0 && is_live(&logins->rows[i], now))
            found = &logins->rows[i];
    return found;
}

uint64_t weft__login_of(const weft_conn *conn, const weft_http_head *head, uint64_t *ret_auth) {
    const weft_server *server = weft__conn_server(conn);
    char name[32];
    if (!server->logins)
        return 0;
    snprintf(name, sizeof name, "weft_session_%d", conn->endpoint->listener->port);
    weft_bytes text = cookie_value(weft__http_find(head, "cookie", NULL), name);
    const weft_session_row *row = text.len ? find_session(server->logins, text, weft_loop_now(server->loop)) : NULL;
    if (!row)
        return 0;
    *ret_auth = row->auth;
    return row->id;
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

int weft__login_begin(weft_server *server, uint64_t auth, char ret[WEFT_SESSION_TEXT]) {
    struct weft_logins *logins = server->logins;
    unsigned char bytes[32];
    int64_t now = weft_loop_now(server->loop);
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    weft_session_row *row = place_for_session(logins, now);
    *row = (weft_session_row){.id = ++logins->last_id, .auth = auth, .until = weft__after(now, logins->session_s * 1000)};
    SHA256((const unsigned char *) ret, WEFT_SESSION_TEXT - 1, row->digest);
    weft__later(server->loop, &server->revoke); /* connections of a session that had to make room */
    weft__tokens_watch(server);
    return 0;
}

void weft__login_end(weft_server *server, uint64_t session) {
    struct weft_logins *logins = server->logins;
    for (size_t i = 0; session && i < logins->max; i++)
        if (logins->rows[i].id == session)
            logins->rows[i] = (weft_session_row){0};
    weft__later(server->loop, &server->revoke);
}

void weft__logins_free(weft_server *server) {
    if (server->logins)
        weft__free(server->alloc, server->logins->home);
    server->logins = weft__free(server->alloc, server->logins);
}

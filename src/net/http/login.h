/* Logins of pages: a session is a random name that a browser keeps as a cookie, and stands for the token that was shown for
 * it. Only digests are kept, the session's and the token's. A program may keep them over a restart (login_kept.c).
 *
 * A code is the same for one use: who shows it begins a session.
 *
 * The cookie's name has the port in it, because browsers do not tell ports apart: two servers of one machine would otherwise
 * overwrite each other's. */
#ifndef WEFT_LOGIN_H
#define WEFT_LOGIN_H

#include "http1.h"
#include "server.h"

#define WEFT_SESSION_TEXT 65 /* 32 random bytes as hexadecimal digits */
/* A phone's may last for months; nobody's lasts longer than this. */
#define WEFT_SESSION_MOST_S ((int64_t) 400 * 24 * 3600)
/* Codes that nobody has used yet. A person makes one when it is needed. */
#define WEFT_LOGIN_CODES 16

typedef struct weft_session_row {
    unsigned char digest[WEFT_DIGEST];
    unsigned char token[WEFT_DIGEST]; /* of the token it stands for */
    uint64_t id;                      /* 0: none here */
    uint64_t auth;                    /* the token's id; 0: an earlier server's session, which has not been shown yet */
    int64_t until;                    /* the loop's milliseconds */
} weft_session_row;

typedef struct weft_code_row {
    unsigned char digest[WEFT_DIGEST];
    unsigned char token[WEFT_DIGEST];
    int64_t until; /* the loop's milliseconds; 0: none here */
} weft_code_row;

struct weft_logins {
    char *home;
    int64_t session_s;
    uint64_t last_id;
    char csp[300]; /* Content-Security-Policy of the page */
    void (*on_keep)(void *ctx, const char *text);
    bool (*may_use_code)(void *ctx, const weft_identity *who);
    void *ctx;
    weft_code_row codes[WEFT_LOGIN_CODES];
    size_t max;
    weft_session_row rows[];
};

/* Harmless when there are none. */
void weft__logins_free(weft_server *server);
/* When the next session ends; INT64_MAX: none does. */
int64_t weft__logins_due(const weft_server *server);
/* The session whose cookie this is; NULL: none. Borrowed until one begins or ends. */
const weft_session_row *weft__login_of(const weft_conn *conn, const weft_http_head *head);
/* The token that it stands for; NULL: that counts no more. */
const weft_auth *weft__login_auth(const weft_conn *conn, const weft_session_row *row, const weft_auths *tokens);
bool weft__login_lives(const weft_server *server, uint64_t session);
/* Begin one for this token; the oldest goes if there is no room. session_s 0: as long as all. -EIO: no
 * random bytes. */
int weft__login_begin(weft_server *server, const weft_auth *auth, int64_t session_s, char ret[WEFT_SESSION_TEXT]);
/* End it, and the connections that stand on it. */
void weft__login_end(weft_server *server, uint64_t session);
/* Use a code up: the token it was made for. NULL: there is no such code any more. */
const weft_auth *weft__login_code_take(weft_server *server, const weft_auths *tokens, weft_bytes code);
/* Begin a session of this token in the browser that asks, and lead it to the first page; http is taken. */
void weft__login_answer(weft_http *http, const weft_auth *auth, int64_t session_s);
/* A page in the form of the login page: content is HTML; cookie is the value of Set-Cookie, NULL: none. http is taken. */
void weft__login_page(weft_http *http, int status, const char *content, const char *cookie);
/* A secret was wrong: count it and wait a while with too many (weft_brake). 401, or 429. */
int weft__login_wrong(const weft_http *http);
/* A value of "a=b&c=d" (URL Standard section 5.1) without its blanks. Its length; 0: it is empty or not there. */
size_t weft__form_value(weft_bytes body, const char *name, char *ret, size_t size);

/* ---- login_kept.c ---- */

/* Tell on_keep which sessions there are. */
void weft__logins_keep(weft_server *server);
/* Take those of an earlier server from what it told. */
void weft__logins_restore(weft_server *server, const char *kept);

#endif

/* Logins of pages: a session is a random name that a browser keeps as a cookie, and stands for the token that was shown for
 * it. Only its digest is kept, in memory: a restart ends all of them.
 *
 * The cookie's name has the port in it, because browsers do not tell ports apart: two servers of one machine would otherwise
 * overwrite each other's. */
#ifndef WEFT_LOGIN_H
#define WEFT_LOGIN_H

#include "http1.h"
#include "server.h"

#define WEFT_SESSION_TEXT 65 /* 32 random bytes as hexadecimal digits */

typedef struct weft_session_row {
    unsigned char digest[WEFT_DIGEST];
    uint64_t id;   /* 0: none here */
    uint64_t auth; /* the token's */
    int64_t until; /* the loop's milliseconds */
} weft_session_row;

struct weft_logins {
    char *home;
    int64_t session_s;
    uint64_t last_id;
    char csp[300]; /* Content-Security-Policy of the page */
    size_t max;
    weft_session_row rows[];
};

/* Harmless when there are none. */
void weft__logins_free(weft_server *server);
/* When the next session ends; INT64_MAX: none does. */
int64_t weft__logins_due(const weft_server *server);
/* The session whose cookie this is, and the id of its token; 0: none. */
uint64_t weft__login_of(const weft_conn *conn, const weft_http_head *head, uint64_t *ret_auth);
bool weft__login_lives(const weft_server *server, uint64_t session);
/* Begin one; the oldest goes if there is no room. -EIO: no random bytes. */
int weft__login_begin(weft_server *server, uint64_t auth, char ret[WEFT_SESSION_TEXT]);
/* End it, and the connections that stand on it. */
void weft__login_end(weft_server *server, uint64_t session);

#endif

/* A connection for verbs that ask and wait: found, connected, shown a token, and called with the time that is left. */
#ifndef WEFT_CONNECTION_H
#define WEFT_CONNECTION_H

#include "app.h"
#include "endpoint.h"

typedef struct weft_connection {
    const weft_app *app;
    weft_target target;
    weft_service *service; /* only logs; NULL mostly */
    weft_peer *peer;
    int why;          /* the connection ended; 0: it has not */
    int64_t until_ns; /* when --timeout is over; INT64_MAX: it was not given */
} weft_connection;

/* Take the URL off the arguments and connect. A failure is explained. End with weft__connection_done(), also after a
 * failure. */
weft_exit weft__connection_open(weft_app *app, weft_connection *ret);
/* The same where the app and the target are set already. */
weft_exit weft__connection_open_target(weft_connection *connection);
void weft__connection_done(weft_connection *connection);

/* Call and wait. r and *ret as weft_call() has them; nothing is explained. */
int weft__connection_try(weft_connection *connection, const char *method, weft_val params, weft_answer *ret);
/* The same, and a failure or a refusal is explained. */
weft_exit weft__connection_call(weft_connection *connection, const char *method, weft_val params, weft_answer *ret);
/* Explain why a call or a notification came to nothing. */
weft_exit weft__connection_fail(const weft_connection *connection, const char *method, int r);

#endif

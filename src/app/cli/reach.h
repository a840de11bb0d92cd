/* A connection for verbs that ask and wait: found, connected, shown a token, and called with the time that is left. */
#ifndef WEFT_REACH_H
#define WEFT_REACH_H

#include "app.h"
#include "endpoint.h"

typedef struct weft_line {
    const weft_app *app;
    weft_target target;
    weft_service *service; /* only logs; NULL mostly */
    weft_peer *peer;
    int why;          /* the connection ended; 0: it has not */
    int64_t until_ns; /* when --timeout is over; INT64_MAX: it was not given */
} weft_line;

/* Take the URL off the arguments and connect. A failure is explained. End with weft__line_done(), also after a failure. */
weft_exit weft__line_open(weft_app *app, weft_line *ret);
void weft__line_done(weft_line *line);

/* Call and wait. r and *ret as weft_call() has them; nothing is explained. */
int weft__line_try(weft_line *line, const char *method, weft_val params, weft_answer *ret);
/* The same, and a failure or a refusal is explained. */
weft_exit weft__line_call(weft_line *line, const char *method, weft_val params, weft_answer *ret);
/* Explain why a call or a notification came to nothing. */
weft_exit weft__line_fail(const weft_line *line, const char *method, int r);

#endif

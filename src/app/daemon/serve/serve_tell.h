/* What a daemon tells the world when it is ready: a file for programs, and for people what to type next. */
#ifndef WEFT_SERVE_TELL_H
#define WEFT_SERVE_TELL_H

#include "serve.h"
#include "serve_web.h"

typedef struct weft_serve_facts {
    weft_app *app;
    const weft_server *server;
    const weft_serve_settings *how;
    const char *agent, *driver; /* does what names none, and how */
    bool token;                 /* one is needed */
    bool held;                  /* it is the daemon of its folder */
    bool on_stdio;              /* standard output is a connection */
    bool relays;                /* tasks run at other hubs, with their agents */
    const char *waits_for;      /* the hub that has our journal, "" not known; NULL: we have it */
    const weft_serve_web *web;
} weft_serve_facts;

/* endpoint.json, and with --json a line on standard output. True: the file must be taken back at the end. */
bool weft__serve_publish(const weft_serve_facts *facts);
void weft__serve_say_what_next(const weft_serve_facts *facts);
/* The first commands of somebody new, and no more said of them than the default agent does. driver is its driver. */
void weft__serve_say_verbs(FILE *to, const char *agent, const char *driver);

#endif

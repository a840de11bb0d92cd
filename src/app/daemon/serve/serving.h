/* What the files of "weft serve" share while it runs. serving_server.c opens what clients meet, serving_machines.c what
 * other machines have to do with it, and serving.c puts them together, runs the loop and ends everything in order. */
#ifndef WEFT_SERVING_H
#define WEFT_SERVING_H

#include "app.h"
#include "daemon.h"
#include "relay.h"
#include "serve.h"
#include "serve_gates.h"
#include "serve_hub.h"
#include "serve_lead.h"
#include "serve_pair.h"
#include "serve_reload.h"
#include "serve_tell.h"
#include "serve_tokens.h"
#include "serve_web.h"
#include "signals.h"
#include "told_methods.h"
#include "uplink.h"

typedef struct weft_serving {
    weft_app *app;
    weft_serve_config *config;
    const weft_serve_settings *how;
    weft_loop *loop;
    weft_serve_hub *hub;
    weft_service *service;
    weft_told_methods *told; /* for rpc.discover */
    weft_server *server;
    weft_signals signals;
    weft_daemon daemon;
    weft_daemon_keep *keep; /* of the daemon's files */
    weft_serve_facts facts;
    weft_timer end;         /* a stop has taken its time */
    weft_later parent_gone; /* a child's only connection has ended */
    char *token;            /* NULL: none is needed */
    weft_serve_tokens *tokens;
    weft_serve_web *web;
    weft_serve_pair *pair;
    weft_serve_gates *gates;
    weft_uplink *uplink; /* to the hub that we are a runner of; NULL: we are none */
    weft_relay *relay;   /* what follows other hubs; NULL: we are none */
    weft_relay_hello hello;
    weft_method reload_row, hello_row, known_row;
    int signals_seen;
    bool stopping;
    bool anew; /* the relay's copy is to be made again, from nothing */
    bool published;
    bool on_stdio;
    bool failed; /* the hub that we are a runner of refuses us */
    /* One of several hubs with one journal. */
    weft_store *store;     /* open, and the hub's as soon as there is one */
    weft_forward *forward; /* while it waits, with a server that only hands on */
    weft_service *door_service;
    weft_server *door;
    int port; /* taken once, where none is configured; 0: not yet */
    weft_serve_lease lease;
    char name[WEFT_LEAD_NAME], led[WEFT_LEAD_NAME];
    bool entered, lost;
    bool reload; /* was asked for while it waited */
} weft_serving;

/* ---- serving.c ---- */
void weft__serving_stop(void *ctx, bool force);
/* The configuration and the tokens, as far as they can change now. report: may be NULL. */
void weft__serving_reload(weft_serving *self, weft_reload *report);
/* Somebody's child, which speaks to its parent alone. */
bool weft__serving_is_child(const weft_serving *self);
const weft_store_kind *weft__serving_store_kind(const weft_serving *self);

/* ---- serving_server.c ---- */
int weft__serving_open_server(weft_serving *self);
/* Everywhere. Explained if not. */
weft_exit weft__serving_listen(weft_serving *self);
int weft__serving_listen_for_devices(void *ctx, const char *url, const weft_tls_opts *tls);
/* The server says something; connections of others are the more interesting part. */
void weft__serving_note(weft_server *server, const char *line, void *data);
/* All the URLs are looked at before anything is opened or made. *ret_network: one of them is on the network. */
weft_exit weft__serving_check_urls(const weft_serving *self, bool *ret_network);
/* The first token, and those that were given out by name. */
weft_exit weft__serving_get_token(weft_serving *self, bool network);
weft_exit weft__serving_get_tokens(weft_serving *self);
void weft__serving_reload_tokens(weft_serving *self);

/* ---- serving_machines.c ---- */
weft_exit weft__serving_open_uplink(weft_serving *self);
weft_exit weft__serving_open_relay(weft_serving *self);
/* What is only a copy is made again. */
void weft__serving_remove_copy(const weft_serving *self);
/* Be a standby as long as nobody promotes it. *ret_ended: it was stopped before. */
weft_exit weft__serving_stand_by(weft_serving *self, bool *ret_ended);
int weft__serving_keep_lease(weft_serving *self);
/* Hand clients on while another hub has the journal. *ret_go: it is ours. */
weft_exit weft__serving_wait(weft_serving *self, bool *ret_go);
void weft__serving_close_doors(weft_serving *self);

#endif

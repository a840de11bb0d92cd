/* The inside of a standby: standby.c puts it together, standby_copy.c copies, standby_serve.c answers. */
#ifndef WEFT_STANDBY_PRIVATE_H
#define WEFT_STANDBY_PRIVATE_H

#include <limits.h>

#include "buf.h"
#include "change_log.h"
#include "loop.h"
#include "replica.h"
#include "signals.h"
#include "standby.h"

/* away ──connected──▶ greeting ──journal.follow──▶ pages ──all parts──▶ changes
 *                              ╰──────────resumed──────────────────────▶
 * Whatever goes wrong leads back to away or greeting; what was not committed is forgotten. */
typedef enum weft_standby_phase {
    WEFT_STANDBY_AWAY,
    WEFT_STANDBY_GREETING,
    WEFT_STANDBY_PAGES,
    WEFT_STANDBY_CHANGES,
} weft_standby_phase;

typedef struct weft_standby {
    weft_standby_opts opts;
    weft_app dialling; /* the app as weft__target_of() is to see it */
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    weft_signals signals;
    weft_gate others; /* refuses what a standby does not do */
    const weft_gate *gates[2];
    weft_target target;
    weft_peer *peer;
    char copy_path[PATH_MAX];

    weft_replica *journal; /* the whole copy; NULL: there is none */
    weft_replica *copy;    /* one that is not whole yet; NULL: none */
    weft_replica *at;      /* one of both, while it is written */
    weft_standby_phase phase;
    bool open; /* a transaction is */
    bool anew; /* what is here does not go on: everything is copied again */
    weft_copy_part part;
    uint64_t after; /* of the page that was asked for */
    uint64_t goal;  /* the copy is one whole when it has this change; 0: not known yet */
    char log[WEFT_EPOCH + 1];
    uint64_t log_last;

    struct {
        bool here; /* a journal that is no copy */
        char epoch[WEFT_EPOCH + 1];
        uint64_t head, counts; /* the last event, and the last that is about more than the hub's own process */
    } own;

    /* An answer in pieces. */
    weft_buf text;
    size_t size;
    int64_t asked_at;
    bool asked; /* a call is under way */

    uint64_t said_head; /* by the hub */
    int64_t heard_ms;   /* when it was last heard; 0: never, in this run */
    int64_t level_ms;   /* when the copy last had everything */
    int64_t saved_ms;   /* when heard_ms was last stored */
    char trouble[256];  /* why it does not go on; "": it does */
    weft_timer timer;
    weft_timer patience; /* of whoever starts it: until it is settled whether it follows */
    bool settled, ended;
    bool followed; /* the hub has let us, in this run: whoever turns us away later may be another one */
    bool redial;   /* when the timer is due */
    bool told, refused, stopping, promoted;
} weft_standby;

/* ---- standby_copy.c ---- */

int64_t weft__standby_now(void);
/* Open what is there. Explained. */
weft_exit weft__standby_open(weft_standby *self);
void weft__standby_dial(weft_standby *self);
void weft__standby_hang_up(weft_standby *self);
void weft__standby_on_timer(weft_timer *timer);
/* It cannot begin: end it for good. */
void weft__standby_refuse(weft_standby *self, const char *why, const char *next);

/* ---- standby_serve.c ---- */

weft_exit weft__standby_serve(weft_standby *self);

#endif

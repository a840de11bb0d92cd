/* What the two halves of weft acp share: acp_relay.c passes messages on and remembers what matters of them, acp_relay_join.c
 * finds the hub, brings the next one to where the last one stopped, and notices when it has gone. */
#ifndef WEFT_ACP_RELAY_PRIVATE_H
#define WEFT_ACP_RELAY_PRIVATE_H

#include "acp_relay.h"
#include "endpoint.h"
#include "list.h"
#include "loop.h"
#include "message.h"
#include "signals.h"

/* Of the 128-bit name in hexadecimal digits. */
#define RELAY_NAME 33

typedef enum relay_phase { RELAY_AWAY, RELAY_JOINING, RELAY_JOINED } relay_phase;

/* A session that the editor follows. */
struct followed {
    weft_link link;
    char *id, *folder;
    char *position; /* of what was passed on last; NULL: not known */
};

/* A message of the editor's: a request that is not answered, or anything that waits for a hub. */
struct said {
    weft_link link;
    char *body, *id, *method, *session, *folder; /* id NULL: it is owed no answer */
    size_t len;
    bool sent;
};

/* A request of the hub's that the editor has not answered. */
struct asked {
    weft_link link;
    char id[WEFT_MAX_ID + 1];
};

struct relay {
    weft_app *app;
    const weft_acp_relay_opts *opts;
    weft_target from, to;
    weft_loop *loop;
    weft_service *service;
    weft_signals signals;
    weft_peer *editor, *hub; /* NULL: not there */
    relay_phase phase;
    bool editor_ready, editor_ended;
    bool plain; /* the editor speaks something else: what it says is passed on, and ends with the hub */
    unsigned generation;
    int starts;
    char name[RELAY_NAME];
    uint64_t prompts;
    char *initialize; /* its params, once they were answered */
    weft_link said, asked, sessions, *resuming;
    size_t said_count, asked_count, session_count;
    weft_timer retry;
    int64_t retry_ms;
    weft_later joining;
    bool debug;
    bool over;
    weft_exit status;
};

/* ---- acp_relay.c ---- */

void weft__relay_end(struct relay *self, weft_exit status);
void weft__relay_fail(struct relay *self, int r);
/* Nothing more is said, and nothing is owed. */
bool weft__relay_is_done(const struct relay *self);

/* Between what the editor was told of a session and what it will be told, something is missing. */
void weft__relay_tell_gap(struct relay *self, const char *session, const char *reason);
/* Remember how far the editor was told of a session; a NULL folder or position is left as it was. */
int weft__relay_follow(struct relay *self, const char *id, const char *folder, const char *position);
void weft__relay_unfollow(struct relay *self, struct followed *old);
/* The hub that asked has gone: the editor is told that its answer is not needed. */
void weft__relay_withdraw(struct relay *self, struct asked *old);

void weft__relay_send_said(struct relay *self);
/* The editor is read from while there is somebody to tell, and room to remember it. */
void weft__relay_pace(struct relay *self);
void weft__relay_reach_editor(struct relay *self);
bool weft__relay_hub_raw(weft_peer *peer, weft_bytes body, bool binary, void *data);

/* ---- acp_relay_join.c ---- */

void weft__relay_join_init(struct relay *self);
/* Somebody waits for it: one is started if none runs. */
void weft__relay_join(struct relay *self);
/* Not from within what a connection tells: this may take a while. */
void weft__relay_join_soon(struct relay *self);

#endif

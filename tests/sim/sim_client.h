/* What the files of the clients share: a client, what it asked for and waits for, what it follows, and the steps between
 * them. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include <weft/json.h>

#include "sim.h"

#define MAX_CLIENTS 6
#define MAX_PENDING 12
#define SUBSCRIPTIONS 3        /* side by side: the one without a name, one with, and the stream "events" of tinyvex */
#define STREAM 2               /* which of them that is */
enum { TASKS, THREAD, VIEWS }; /* the states: the tasks, and what was said in a session */
#define MAX_PIECE 400          /* bytes that move at a time, mostly */

typedef enum want {
    WANT_SUBMIT,
    WANT_CANCEL,
    WANT_ANSWER,
    WANT_SUBSCRIBE,
    WANT_UNSUBSCRIBE,
    WANT_VIEW,
    WANT_LIST,
    WANT_CHANGE,
    WANT_CREATE,
    WANT_SET,
    WANT_CLOSE,
    WANT_DELETE,
    WANT_SESSION, /* something else of a session */
} want;

/* What a subscription lets through, and where it stands. */
typedef struct subscription {
    bool on;
    char prefix[16], task[SIM_NAME], session[SIM_NAME]; /* "": any */
    bool oldest;                                        /* it began with everything that was kept */
    uint64_t last;                                      /* the event heard last */
    uint64_t floor;                                     /* nothing up to this one must be heard */
    char epoch[WEFT_EPOCH + 1];
} subscription;

/* One of a client's subscriptions, over its connections. */
typedef struct followed {
    subscription sub;
    bool wanted;
    bool refused; /* it could not resume */
} followed;

/* A stream of tinyvex that is a state: the value that the client has, over its connections. */
typedef struct view {
    bool wanted, on;
    char *value; /* NULL: none yet */
    uint64_t seq;
    char journal[128];
    char session[SIM_NAME]; /* of messagesByThread */
} view;

/* A value that comes in pieces, of one stream at a time. */
typedef struct pieces {
    char sub[16], transition[24];
    uint64_t seq;
    int64_t part, total;
    char *text; /* NULL: none comes */
    size_t len;
} pieces;

typedef struct request {
    want want;
    uint64_t id;
    char subject[64], option[8]; /* task or question; key of a submission */
    size_t which;                /* of the subscriptions */
    subscription next;
    bool live;
    bool repeats; /* a submission that may have arrived before */
    bool busy;    /* the session had tasks when this was asked */
} request;

typedef struct client {
    char name[SIM_NAME];
    hub_conn *conn;
    bool aiwg, slow;
    bool fair;      /* it is to come to rest */
    char *out, *in; /* not yet sent; the beginning of a line */
    size_t out_len, in_len;
    request pending[MAX_PENDING];
    size_t pending_count;
    uint64_t next_id;
    unsigned keys;
    unsigned changes; /* mutations that it has made up */
    char unsure[64];  /* the key of a submission of which nothing was heard; "": none */
    followed follows[SUBSCRIPTIONS];
    view views[VIEWS];
    pieces pieces;
    uint64_t doubtful; /* the last it was told was perhaps not this event, which is trimmed, but a later one like it */
    uint64_t words;    /* of its dialect: all up to this gseq were told, or were before its time */
} client;

/* sim_client.c */
void client_append(char **buffer, size_t *len, const char *data, size_t more);

/* sim_client_asks.c */
extern const char *const client_views[VIEWS]; /* the names of the states' subscriptions */
void client_act(client *c);
void client_connect(client *c);
void client_resume(client *c, size_t which);
void client_send_view(client *c, size_t which);

/* sim_client_events.c: what it is told, against the disk; check: what it should have been told by now. */
void client_hear_event(client *c, size_t which, const weft_json *params);
void client_hear_data(client *c, const weft_json *params);
void client_hear_piece(client *c, const weft_json *params);
void client_hear_word(client *c, const char *method, const weft_json *params);
void client_check_missed(const client *c, const subscription *sub, uint64_t until);
void client_check_view(const client *c);
void client_check_thread(const client *c);
void client_check_words(client *c);
void client_forget_pieces(client *c);

/* sim_client_answers.c */
void client_hear_answer(client *c, const weft_json *message);

#endif

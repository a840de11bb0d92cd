/* The inside of clients and subscriptions, for their files. */
#ifndef WEFT_HUB_CLIENTS_PRIVATE_H
#define WEFT_HUB_CLIENTS_PRIVATE_H

#include "buf.h"
#include "hub_clients.h"
#include "loop.h"
#include "map.h"

/* Room for WEFT_STREAM_SESSION and the id of a session. */
#define WEFT_STREAM_NAME 64
/* Forms of one event, by the ids that its subscriptions have, that are encoded once for all. What has still other ids is
 * encoded for itself. */
#define WEFT_EVENT_FORMS 16

/* ---- subscriptions ---- */

typedef enum weft_subscription_state {
    WEFT_SUBSCRIPTION_OFF,
    WEFT_SUBSCRIPTION_LIVE,      /* told with all the others */
    WEFT_SUBSCRIPTION_PAUSED,    /* its connection is full: it waits until that has drained */
    WEFT_SUBSCRIPTION_REPLAYING, /* told from the store */
} weft_subscription_state;

/* Which events it wants. One block of memory with its strings behind it. */
struct weft_event_source {
    const char *stream, *task, *session, *collection; /* NULL: any */
    size_t type_count;                                /* 0: all */
    const char *types[];
};

typedef struct weft_computation weft_computation;

/* A value of a stream as it is sent. Shared by those who are in the midst of sending it. */
typedef struct weft_value {
    size_t refs;
    uint64_t seq;
    size_t len;
    char digest[WEFT_DIGEST + 1]; /* "" of a log */
    char text[];
} weft_value;

struct weft_subscription {
    weft_link link; /* in client->subscriptions */
    weft_link live; /* in its rendering's list while it is live, or in that of the clients where it has none */
    weft_link calls;
    weft_link catch_ups; /* who waits until it has caught up */
    weft_hub_client *client;
    char *id;                  /* NULL: the default one, or the dialect's */
    weft_rendering *rendering; /* in whose words; NULL: the events themselves */
    weft_event_source *source; /* NULL: everything, and what is kept of it is enough; with a rendering, what is said of the
                                  source's session */
    weft_subscription_class class;
    bool marks;
    weft_subscription_state state;
    uint64_t at;          /* all up to this position has been said, or is none of its business; not kept up while live */
    uint64_t since;       /* what happened after this, whoever caused it need not be told of */
    bool seeks;           /* the follow only finds out where the stream ends */
    char *awaited;        /* the dialect's: what it says next of this stream, a session's, */
    uint64_t awaited_seq; /* is here; a later place means that something is not kept any more. NULL: not known */
    weft_follow *follow;
    weft_shared *latest; /* class state, while it replays: the last event that it wants */
    uint64_t latest_at, latest_gseq;
    weft_subscribed *done; /* waits to hear how subscribing went; NULL: nobody does */
    void *done_ctx;
    /* Of a stream: */
    weft_computation *computation; /* NULL: of none; owns the source */
    int gap;                       /* a weft_gap: why it does not go on from the client's position */
    int anew;                      /* how often it was begun anew */
    bool has_position;             /* state: the client has the value of the position at */
    bool replaces;                 /* another with its id, which may have told the client something since it asked */
    bool owes_first;               /* state: whatever the position of the value is, it is not told yet */
    bool superseded;               /* the last transfer was given up for a newer value: the next one is not */
    uint64_t known;                /* state: the client has the value as of this position */
    uint64_t skipped;              /* values that it was not told, for want of room */
    int64_t skips_told_ms;         /* when it was last told so; 0: never */
    char *has_digest;              /* while it waits: of the value that the client has; NULL: unknown */
    weft_value *sending;           /* in pieces; NULL: none is under way */
    size_t sent_bytes, sent_parts, parts;
    uint64_t transition;
};

/* ---- clients ---- */

typedef struct weft_watched {
    uint32_t hash;
    uint64_t since; /* what happened up to this gseq is not logged to it */
    char *session;
} weft_watched;

struct weft_hub_client {
    weft_link link; /* in clients->list, or clients->lost */
    weft_hub_clients *clients;
    uint64_t number;
    int64_t since_ms; /* wall clock */
    weft_peer *peer;
    weft_link subscriptions;
    weft_link unstored;
    weft_link parts;
    weft_link left;            /* who waited until a client was told everything that is lost now */
    size_t subscription_count; /* without the dialect's */
    size_t call_count;
    const weft_dialect *decided; /* NULL: it speaks what its endpoint does */
    weft_subscription *words;    /* of its dialect; one of the subscriptions */
    size_t variant;              /* of its dialect */
    size_t form;                 /* the variant of the dialect that its own has as well */
    weft_watched *watches;
    size_t watch_count, watch_cap;
    char *session;               /* that it started last */
    char *agent;                 /* that it wants; NULL: it did not say */
    char *name;                  /* NULL: it has none */
    unsigned flags;              /* of its dialect */
    weft_subscription *transfer; /* that is in the midst of sending a value in pieces; NULL: none */
    uint64_t transitions;
    bool speaks_tinyvex; /* beside its dialect, perhaps: it said tinyvex/connect */
    bool failing;        /* it could not be told something: lost as soon as the others have been told */
    bool lost;           /* will be closed before the loop waits again */
};

/* ---- renderings ---- */

/* One notification or call that is ready to be sent. */
typedef struct weft_rendered {
    weft_shared *shared; /* a notification; NULL: a call */
    char *session;       /* NULL: for everybody */
    uint64_t but;        /* not for the client with this number; 0: for all */
    unsigned have, lack; /* for clients with these flags, and without those; see weft__render_for() */
    char *question, *method, *params;
    size_t params_len;
    weft_on_reply *on_reply;
} weft_rendered;

/* What one dialect, in one variant, has to say about one event. */
struct weft_rendering {
    weft_hub_clients *clients;
    weft_subscription *only; /* for this one alone; NULL: for all that are live */
    const weft_dialect *dialect;
    size_t index; /* of the dialect */
    size_t variant;
    weft_link live; /* the subscriptions that are live and hear these words */
    uint64_t gseq;
    uint64_t beat;
    unsigned have, lack; /* of what is said now */
    int r;               /* the first failure */
    bool done;           /* it was rendered already */
    weft_rendered *items;
    size_t count, cap;
    char *asked; /* the last session somebody was looked for, and whether there was one */
    bool answer;
};

struct weft_hub_clients {
    weft_hub *hub;
    const weft_dialects *dialects;
    const weft_alloc *alloc;
    weft_event_listener listener;
    uint64_t told; /* the last event heard */
    uint64_t last_number;
    weft_link list, live, lost, awaits, waits, calls;
    weft_link computations; /* of the streams that somebody follows */
    weft_map by_stream;     /* the same by name and params */
    size_t value_bytes;     /* of their values */
    weft_later bury;
    void *peer_data; /* what peers have as theirs before they are opened */
    bool opened;
    bool failing;                                            /* some client is */
    bool rendered;                                           /* some rendering is done */
    uint32_t heard;                                          /* a bit for each dialect of which somebody may be live */
    weft_rendering renderings[WEFT_DIALECTS][WEFT_VARIANTS]; /* of the event of the moment */
    struct weft_beat {
        weft_hub_clients *clients;
        weft_timer timer;
        uint64_t count;
    } beats[WEFT_DIALECTS];
    struct {
        const char *id; /* borrowed from the subscription that needed it first */
        weft_shared *shared;
    } forms[WEFT_EVENT_FORMS]; /* the event of the moment itself */
    size_t form_count;
};

/* ---- hub_clients.c ---- */

/* Lose those that could not be told something, after a walk over the subscriptions. */
void weft__hub_clients_lose_failing(weft_hub_clients *clients);

/* ---- hub_client.c ---- */

/* Does it watch that, and since before this? gseq 0: at all. */
bool weft__hub_client_hears(const weft_hub_client *client, const char *session, uint64_t gseq);
/* Forget it. Its peer stays. */
void weft__hub_client_free(weft_hub_client *client);

/* ---- source.c ---- */

weft_event_source *weft__source_new(const weft_subscription_spec *spec, const weft_alloc *alloc);
/* Whether it must look into an event's data to know what it wants. */
bool weft__source_reads(const weft_event_source *source);
/* Before its data is read, which costs more than all the rest: could it want this? */
bool weft__source_may_want(const weft_event_source *source, const weft_event *event);
/* 1 or 0; -ENOMEM: it could not be read. data may be NULL if it does not read it. */
int weft__source_wants(const weft_event_source *source, const weft_engine *engine, const weft_event *event,
                       const weft_json *data);
/* From where its events are read, and what would be a gap: only what it would have seen. Fills in stream, aside, but and
 * oldest. name has WEFT_STREAM_NAME bytes. */
void weft__source_query(const weft_event_source *source, const weft_engine *engine, weft_query *query, char *name);

/* ---- subscription.c ---- */

/* Takes the source, also on failure. -ENOMEM. */
int weft__subscription_new(weft_hub_client *client, const char *id, weft_event_source *source, weft_subscription **ret);
/* Whoever waits for it is told -ECANCELED, and its calls are withdrawn. Returns NULL. */
weft_subscription *weft__subscription_free(weft_subscription *subscription);
/* From this position on, from the store until it is where the others are. */
int weft__subscription_start(weft_subscription *subscription, const weft_query *query);
void weft__subscription_stop(weft_subscription *subscription);
/* Who waits for weft__subscription_catch_up(): told, and freed; or another list has them. */
void weft__catch_ups_tell(const weft_alloc *alloc, weft_link *list, int r);
void weft__catch_ups_move(weft_link *from, weft_link *to);
/* Its connection is full: this event and all after it come later. */
void weft__subscription_pause(weft_subscription *subscription, const weft_event *event);
/* There is room again. */
void weft__subscription_resume(weft_subscription *subscription);
/* With the others, from this gseq on. */
void weft__subscription_begin(weft_subscription *subscription, uint64_t at);
/* A live one: is this for it? 1 or 0; -ENOMEM. */
int weft__subscription_wants(const weft_subscription *subscription, const weft_event *event, const weft_json *data);
int weft__subscription_send(weft_subscription *subscription, const weft_event *event);
/* Is what is said about this session, or (NULL) to everybody, said to it? */
bool weft__subscription_hears(const weft_subscription *subscription, const char *session, uint64_t gseq);

/* All up to here has been said; the rest when the connection has room. */
void weft__subscription_pause_at(weft_subscription *subscription, uint64_t at);
/* Whoever waits to hear how subscribing went is told. */
void weft__subscription_finish(weft_subscription *subscription, int r, uint64_t head);
/* It failed, and is gone unless its client is lost. */
void weft__subscription_fail(weft_subscription *subscription, int r);

/* ---- computation.c ---- */

/* Make the subscription a part of the computation of its stream. -ENOMEM, -ENOBUFS. */
int weft__computation_join(weft_subscription *subscription, const weft_stream_kind *kind, const char *params);
/* It goes; the last one ends the computation. */
void weft__computation_leave(weft_subscription *subscription);
const weft_stream_kind *weft__computation_kind(const weft_computation *computation);
const weft_json *weft__computation_params(const weft_computation *computation);
/* Where those that are live are listed. */
weft_link *weft__computation_live(weft_computation *computation);
/* A state: it waits for the value, and is told it unless the client has it. -ENOMEM. */
int weft__computation_await(weft_subscription *subscription, const weft_subscription_spec *spec);
/* Something happened: tell the logs it touches, and compute the states again soon. */
void weft__computations_event(weft_hub_clients *clients, const weft_event *event, const weft_json *data);
/* Every value is that of the last event. */
bool weft__computations_idle(const weft_hub_clients *clients);
/* There is room again: tell a state what it was not told. */
void weft__computation_catch_up(weft_subscription *subscription);
/* A log: the value of this event from the store. 1 all of it was sent or there is none, 0 it is being sent in pieces and the
 * subscription is paused. */
int weft__computation_say(weft_subscription *subscription, const weft_event *event, const weft_json *data);

/* ---- value.c ---- */

int weft__value_new(const weft_alloc *alloc, uint64_t seq, weft_bytes text, bool state, weft_value **ret);
weft_value *weft__value_unref(const weft_alloc *alloc, weft_value *value);
/* Can this client be sent a value of this length now, or must it wait for room, or for another value in pieces? */
bool weft__value_fits(const weft_subscription *subscription, size_t len);
/* Encoded once for all who have the same id. */
typedef struct weft_value_forms {
    struct {
        const char *id;
        weft_shared *shared;
    } of[WEFT_EVENT_FORMS];
    size_t count;
} weft_value_forms;
void weft__value_forms_done(weft_value_forms *forms);
/* Send it whole. forms may be NULL. */
int weft__value_send(weft_subscription *subscription, uint64_t seq, weft_bytes text, const char *digest,
                     weft_value_forms *forms);
/* Is it sent in pieces? */
bool weft__value_is_long(const weft_subscription *subscription, size_t len);
/* Send it in pieces as far as there is room; the reference is taken. 1 all of it, 0 the rest follows when the connection has
 * drained, <0. */
int weft__transfer_begin(weft_subscription *subscription, weft_value *value);
int weft__transfer_go_on(weft_subscription *subscription);
void weft__transfer_end(weft_subscription *subscription);
/* Say that values were skipped, unless that was said a moment ago. */
int weft__value_tell_skipped(weft_subscription *subscription);
/* Something is wrong with the stream, in tinyvex's words. */
int weft__value_tell_error(weft_subscription *subscription, const char *code, const char *message, weft_val data);

/* ---- client_call.c ---- */

/* The question was settled. */
void weft__calls_withdraw(weft_hub_clients *clients, const char *question);
void weft__calls_end(weft_subscription *subscription);

/* ---- rendering.c ---- */

/* Render it for all who are live, unless that is done. False: the dialect has nothing to say about it. */
bool weft__rendering_render(weft_rendering *rendering, const weft_event *event, const weft_json *data);
/* Send what was rendered to one of them. */
int weft__rendering_send(const weft_rendering *rendering, weft_subscription *subscription);
/* Render it for one alone. */
int weft__rendering_alone(weft_subscription *subscription, const weft_event *event, const weft_json *data);
/* Nothing has been said yet. */
void weft__rendering_reset(weft_rendering *rendering);
void weft__rendering_beat(weft_hub_clients *clients, size_t dialect);
/* The notification of an event for subscriptions with this id (NULL: the default one). Owned. */
int weft__event_share(weft_hub_clients *clients, const weft_event *event, const char *id, weft_shared **ret);
/* The same of the event of the moment, made once. Borrowed; NULL where there are too many forms. */
int weft__event_form(weft_hub_clients *clients, const weft_event *event, const char *id, weft_shared **ret);
void weft__event_forms_reset(weft_hub_clients *clients);
int weft__event_tell(weft_subscription *subscription, const weft_event *event);
/* Who cannot be told anything, and who has gone, has missed nothing. */
int weft__forgive(int r);

#endif

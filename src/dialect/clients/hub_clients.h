/* The connections of the hub, and what each of them is told. A client is one connection. It has any number of subscriptions:
 * the one of its dialect, which renders events in the dialect's words, and those it asked for, which are told the events
 * themselves.
 *
 * Nobody is told anything that is not durable. Subscriptions that keep up are told together, and what they hear in the same
 * form is encoded once. One that does not keep up is told from the store, from where it stopped, until it has caught up. A
 * client that cannot be told everything is closed with a code that means "come back and resume". */
#ifndef WEFT_HUB_CLIENTS_H
#define WEFT_HUB_CLIENTS_H

#include "buf.h"
#include "hub.h"

/* Sessions a client may watch, and types a subscription may name. */
#define WEFT_CLIENT_WATCHES 1024
/* Subscriptions a client may ask for; the one of its dialect does not count. */
#define WEFT_CLIENT_SUBSCRIPTIONS 1024
/* Bytes of a subscription's id: it comes back with every event. */
#define WEFT_SUBSCRIPTION_ID 256
/* Calls that a client has not answered yet: more open questions than that are of no use to a person. */
#define WEFT_CLIENT_CALLS 1024
/* WebSocket's "try again later" (the registry of RFC 6455): what was missed is in the store. */
#define WEFT_CLIENT_CLOSE 1013

/* It is weft_peer_data() of its peer from weft__hub_clients_open() on. */
typedef struct weft_hub_client weft_hub_client;
typedef struct weft_subscription weft_subscription;
typedef struct weft_event_source weft_event_source;

/* After the engine is ready. */
int weft__hub_clients_new(weft_hub *hub, const weft_dialects *dialects, weft_hub_clients **ret);
/* Before the engine goes. Connections stay, and are told nothing any more. Returns NULL. */
weft_hub_clients *weft__hub_clients_free(weft_hub_clients *clients);

/* For weft_server_opts: on_open, on_close and on_drain. Peers whose transport cannot be told anything (an HTTP POST) are
 * fine. All peers have the same weft_peer_data() when they are opened. */
void weft__hub_clients_open(weft_hub_clients *clients, weft_peer *peer);
void weft__hub_clients_close(weft_hub_clients *clients, weft_peer *peer);
void weft__hub_clients_drain(weft_hub_clients *clients, weft_peer *peer);

/* How many there are now. */
#define WEFT_CLIENT_TRANSPORTS 16 /* more than libweft has */
typedef struct weft_clients_figures {
    struct {
        const char *name; /* borrowed from one of these clients */
        size_t count;
    } transports[WEFT_CLIENT_TRANSPORTS];
    size_t transport_count;
    size_t live, replaying; /* subscriptions: that keep up; that are told from the store, or wait until they can be */
    uint64_t opened;        /* clients that ever came */
} weft_clients_figures;
void weft__hub_clients_figures(const weft_hub_clients *clients, weft_clients_figures *ret);

/* Hear of everything that happens to a task, before clients do, until on_event returns false. Called with NULLs when the
 * clients go. -ENOMEM. */
typedef bool weft_on_task(void *ctx, const weft_event *event, const weft_json *data);
int weft__hub_clients_await(weft_hub_clients *clients, const char *task, weft_on_task *on_event, void *ctx);

/* The gseq of the last event that those who keep up have been told. */
uint64_t weft__hub_clients_told(const weft_hub_clients *clients);

/* Tell all live connections of a dialect something that is no event: who does not listen now, or reads too slowly, is not
 * told later either. tell is called once for each variant that somebody hears. */
typedef void weft_hub_tell(const weft_hub *hub, weft_rendering *rendering, void *ctx);
void weft__hub_clients_tell(weft_hub_clients *clients, const weft_dialect *dialect, weft_hub_tell *tell, void *ctx);
/* Is there one? */
bool weft__hub_clients_listen(const weft_hub_clients *clients, const weft_dialect *dialect);

/* Something that waits for a completion which does not come any more when its owner goes first: of files, of git. Embedded
 * in what waits. on_end frees it when the clients go; otherwise weft__hub_wait_over() comes first. */
typedef struct weft_hub_wait {
    weft_link link;
    void (*on_end)(struct weft_hub_wait *wait);
} weft_hub_wait;
void weft__hub_wait(weft_hub_clients *clients, weft_hub_wait *wait);
void weft__hub_wait_over(weft_hub_wait *wait);

/* ---- one client ---- */

/* NULL for a peer that was not opened. */
weft_hub_client *weft__hub_client_of(const weft_hub_clients *clients, weft_peer *peer);
weft_peer *weft__hub_client_peer(const weft_hub_client *client);
/* A number that no other client has or had, for who answers later: by then the client may have gone. */
uint64_t weft__hub_client_number(const weft_hub_client *client);
/* When it came, by the wall clock; and how many subscriptions it asked for. */
int64_t weft__hub_client_since(const weft_hub_client *client);
size_t weft__hub_client_subscriptions(const weft_hub_client *client);
/* NULL: it has gone. */
weft_hub_client *weft__hub_clients_find(const weft_hub_clients *clients, uint64_t number);
/* One after the other, in the order in which they came; NULL: the first, and past the last. */
weft_hub_client *weft__hub_clients_next(const weft_hub_clients *clients, const weft_hub_client *before);
/* What its dialect remembers of it; 0 at first. */
unsigned weft__hub_client_flags(const weft_hub_client *client);
void weft__hub_client_set_flags(weft_hub_client *client, unsigned flags);
/* It cannot be told everything: close it soon, so that it comes back. Nothing is said to it any more. */
void weft__hub_client_lose(weft_hub_client *client);
/* From now on it speaks this dialect, in this variant of it (NULL: the first). A name that no dialect has: it is told
 * nothing but what it subscribes to. -EINVAL: the dialect has no such variant; -ENOMEM. */
int weft__hub_client_speak(weft_hub_client *client, const char *dialect, const char *variant);
/* In which variant it hears a dialect that it speaks, or that its own has as well (hub.h); 0: neither. */
size_t weft__hub_client_form(const weft_hub_client *client, const char *dialect);
/* It wants such a dialect in this variant. Of one that it does not have it is not told anything: 0. -EINVAL: there is no
 * such variant; -ENOMEM. */
int weft__hub_client_use_form(weft_hub_client *client, const char *dialect, const char *variant);
/* Something said which it is (initialize): the same for good, but one that has the other as well takes its place. -EBUSY:
 * another was decided before. */
int weft__hub_client_decide(weft_hub_client *client, const weft_dialect *dialect);
/* Logs of a session go to those who watch it, from now on. -ENOSPC: too many. 0 also when it does already. */
int weft__hub_client_watch(weft_hub_client *client, const char *session);
void weft__hub_client_unwatch(weft_hub_client *client, const char *session);
void weft__hub_client_unwatch_all(weft_hub_client *client);
bool weft__hub_client_watches(const weft_hub_client *client, const char *session);
/* It hears of what happens in a session it watches after this gseq. */
uint64_t weft__hub_client_watches_since(const weft_hub_client *client, const char *session);
/* The session it watches longest; NULL: none. */
const char *weft__hub_client_watched(const weft_hub_client *client);
/* Which variant of its dialect it is told. */
size_t weft__hub_client_variant(const weft_hub_client *client);
/* It started this session: it watches it, instead of the one it watches longest if those are too many. -ENOMEM. */
int weft__hub_client_started(weft_hub_client *client, const char *session);
/* Which agent it wants for what it starts without naming one; NULL: it did not say. -ENOMEM. */
int weft__hub_client_use_agent(weft_hub_client *client, const char *agent);
const char *weft__hub_client_agent(const weft_hub_client *client);
/* The name that it says it has, over connections; NULL: it said none. -ENOMEM. */
int weft__hub_client_set_name(weft_hub_client *client, const char *name);
const char *weft__hub_client_name(const weft_hub_client *client);
/* The last that came with this name; NULL: none. */
weft_hub_client *weft__hub_clients_named(const weft_hub_clients *clients, const char *name);
/* What it asked for and is being stored, a list of its dialect's. When the client goes, they are taken out of it. */
weft_link *weft__hub_client_unstored(weft_hub_client *client);
/* Something that is there as long as a client is: who registered with it, what is streamed to it. Embedded in its owner,
 * which is out of the list when on_gone runs, and may take it out before by removing the link. on_drain: its connection has
 * room again; may be NULL. */
typedef struct weft_client_part {
    weft_link link;
    void (*on_gone)(struct weft_client_part *part);
    void (*on_drain)(struct weft_client_part *part);
} weft_client_part;
void weft__hub_client_add(weft_hub_client *client, weft_client_part *part);
/* The part that has this on_gone; NULL: none. */
weft_client_part *weft__hub_client_part(const weft_hub_client *client, void (*on_gone)(weft_client_part *part));
/* What memory for it comes from. */
const weft_alloc *weft__hub_client_alloc(const weft_hub_client *client);
/* The session this client started last; NULL: none. */
const char *weft__hub_client_session(const weft_hub_client *client);

/* ---- subscriptions ---- */

typedef enum weft_subscription_class {
    WEFT_CLASS_LOG,   /* every event; while its connection is full it pauses, and goes on from the store */
    WEFT_CLASS_STATE, /* a later event replaces an earlier one; what piled up is told as the latest of it */
} weft_subscription_class;

typedef struct weft_stream_kind weft_stream_kind;

/* The events themselves, as notifications "event" {gseq, seq, stream, type, time, data, subscription?}; or, with a kind, the
 * values of a stream. */
typedef struct weft_subscription_spec {
    const char *id;           /* NULL: the client's default one */
    const char *epoch;        /* NULL: this one */
    uint64_t after;           /* gseq, or seq where a stream is named; 0: everything that is kept */
    bool live;                /* from now on, not from a position */
    bool oldest;              /* what is gone after the position is no gap: it begins with what is kept */
    const char *stream;       /* only this stream; positions are its seq. NULL: all */
    const char *task;         /* only events about this task; NULL: any */
    const char *session;      /* only about this session or its tasks; NULL: any */
    const char *collection;   /* only about values of this collection; NULL: any */
    const char *const *types; /* that begin with one of these; NULL: all */
    size_t type_count;
    weft_subscription_class class;
    bool marks; /* server-sent events: each is told with its position as its id */
    bool words; /* in the words of the client's dialect, about the session that is named: as if it were watched, but from a
                   position of its own. -ENOTSUP: its dialect says nothing */
    const char *of;               /* with words: in those of this dialect, if the client's has them as well. NULL: its own */
    const weft_stream_kind *kind; /* the values of this stream. Then class and the filters above are the kind's */
    const char *params;           /* its params in canonical form */
    const char *digest;           /* class state: of the value that the client has from the position; NULL: unknown */
} weft_subscription_spec;
/* r 0 resumed from the position (or live from head); a weft_gap: it cannot be, and nothing is subscribed; <0, -ECANCELED
 * when something else was subscribed or the connection ended meanwhile. No event is delivered before done has returned.
 * With a kind a gap begins it anew, and head is the position after which values follow. */
typedef void weft_subscribed(void *ctx, int r, uint64_t head);
/* Replaces the subscription that has this id; those with a kind have ids of their own. Everything is copied. -EMFILE: the
 * client has too many; -ENOSPC too many types; -EINVAL the id or the stream's name is too long; -ENOBUFS: too many streams
 * are followed. */
int weft__hub_client_subscribe(weft_hub_client *client, const weft_subscription_spec *spec, weft_subscribed *done,
                               void *ctx);
/* false: it has none with this id. */
bool weft__hub_client_unsubscribe(weft_hub_client *client, const char *id);
bool weft__hub_client_unsubscribe_stream(weft_hub_client *client, const char *id);
/* NULL: none. */
weft_subscription *weft__hub_client_subscription(const weft_hub_client *client, const char *id);
/* The same source from now on, after a gap: only from its weft_subscribed. */
int weft__subscription_go_live(weft_subscription *subscription, weft_subscribed *done, void *ctx);
/* Hear once that everything that has happened by now was told: at once, when it keeps up, otherwise when it has caught up. r
 * -ECANCELED: it ended before. For answers that must come behind what is told. -ENOMEM. */
typedef void weft_caught_up(void *ctx, int r);
int weft__subscription_catch_up(weft_subscription *subscription, weft_caught_up *done, void *ctx);
/* Say the position of what is told next, where it is told with positions. */
int weft__subscription_mark(weft_subscription *subscription, uint64_t gseq);

/* ---- calling a client ---- */

/* What came back, once: r 0 with the answer; -ECANCELED when the call was withdrawn, because the question was settled by
 * somebody else or the subscription ended; otherwise why there is no answer. question is what the call was about. */
typedef void weft_on_reply(const weft_hub *hub, weft_hub_client *client, const char *question, int r,
                           const weft_answer *answer);
/* Ask a client something, on behalf of a question of the engine's (engine.h). When the question is settled the call is
 * withdrawn and the client is told so in the way of its protocol; who answers first is for the engine to say. -ENOBUFS: the
 * client has too many open; -ENOTSUP: it cannot be called; -ENOMEM. */
int weft__subscription_call(weft_subscription *subscription, const char *question, const char *method, weft_val params,
                            weft_on_reply *on_reply);
/* Ask it what is open in a session, for who follows from now on and has not heard those events: as its dialect renders an
 * event of this type with the data of question.asked. What it is asked already is left out. Without memory it is closed. */
void weft__subscription_call_open(weft_subscription *subscription, const char *session, const char *type);

/* ---- streams ---- */

/* A value that is being computed. */
typedef struct weft_computing weft_computing;

/* One kind of stream that clients follow by its name: a row in its own file. Whoever follows the same name with the same
 * params shares one computation of it (computation.c). */
struct weft_stream_kind {
    const char *name;
    const char *help;
    const weft_param *params; /* strings and lists of strings */
    weft_subscription_class class;
    bool whole; /* log: without a position it begins with all that is kept; otherwise from now on */
    bool raw;   /* log: show() does not read data, which may be NULL */
    bool acp; /* its values are ACP's. Params of a subscriber that began with the older form have "form":"old" in addition */
    /* Which events touch it. Owned; NULL: no memory. */
    weft_event_source *(*source)(const weft_json *params, const weft_alloc *alloc);
    /* log: write the value that an event is. 1 written, 0 it is none; -ENOMEM. */
    int (*show)(const weft_hub *hub, const weft_json *params, const weft_event *event, const weft_json *data, weft_buf *out);
    /* state: write its value to weft__computing_out(), then weft__computing_done(), now or later. It follows from the events
     * that touch the stream alone. */
    void (*compute)(const weft_hub *hub, const weft_json *params, weft_computing *computing);
};

weft_buf *weft__computing_out(weft_computing *computing);
/* Frees it. r -EBUSY: try again soon; other <0: it failed. */
void weft__computing_done(weft_computing *computing, int r);

/* "EPOCH", or "EPOCH.SEQ.DIGEST" of the value that a state has at a position. text has WEFT_JOURNAL bytes. */
#define WEFT_DIGEST 32
#define WEFT_JOURNAL (WEFT_EPOCH + WEFT_DIGEST + 24)
const char *weft__journal_text(const weft_hub *hub, uint64_t seq, const char *digest, char *text);
/* The digest of the value that the client has; NULL: it is about to be told another one, or it is a log. */
const char *weft__subscription_digest(const weft_subscription *subscription);
weft_subscription *weft__hub_client_stream(const weft_hub_client *client, const char *id);

/* ---- for renderers ---- */

/* The type of what a renderer is told instead of an event, before the next one of a session to a client that read so slowly
 * that what was said in between is not kept any more. The data are those of that next one. */
#define WEFT_MISSED "session.missed"

/* A notification to every client of this dialect, or, with a session, to those that watch it. */
void weft__render_notify(weft_rendering *rendering, const char *session, const char *method, weft_val params);
/* The same, but not to the client with this number: it knows. Unless it asked for the past, and this is part of it. */
void weft__render_notify_others(weft_rendering *rendering, const char *session, uint64_t but, const char *method,
                                weft_val params);
/* The same with any message in place of a notification, where the dialect has clients that do not speak JSON-RPC. */
void weft__render_message(weft_rendering *rendering, const char *session, weft_val message);
/* A call to them instead, about a question that is still open; otherwise nothing. */
void weft__render_call(weft_rendering *rendering, const char *session, const char *question, const char *method,
                       weft_val params, weft_on_reply *on_reply);
/* What is said from here on is for clients that have all of the first flags (weft__hub_client_flags()), and not all of the
 * second where these are not 0. At the beginning of an event it is for all. */
void weft__render_for(weft_rendering *rendering, unsigned have, unsigned lack);
/* A text of the event: the fallback where it is absent, no string, or has a NUL in it. Without memory to decode it the
 * rendering fails, so that nobody is told something else. Borrowed from the object's document. */
const char *weft__render_text(weft_rendering *rendering, const weft_json *object, const char *name, const char *fallback);
/* It cannot be said (-ENOMEM): whoever should have heard it is told of a loss, not of a part. */
void weft__render_fail(weft_rendering *rendering, int r);
/* Would anybody hear that? For renderers that have much to do before they can say it. */
bool weft__render_wanted(weft_rendering *rendering, const char *session);
/* Which of the dialect's variants this is for: an index. */
size_t weft__render_variant(const weft_rendering *rendering);
/* In a beat: how many there were, this one included. */
uint64_t weft__render_beat(const weft_rendering *rendering);

#endif

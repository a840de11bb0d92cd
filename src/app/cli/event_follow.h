/* What happens in the hub, as it happens: one connection with one subscription. When the connection is lost, because the
 * daemon was restarted for instance, it is made again and the subscription goes on behind the last event that came; when
 * that cannot be, the gap is told in words, never passed over.
 *
 * It has a loop of its own, on which its user may start calls; it is over when its user says so, when a signal comes, or
 * when the hub cannot be reached. It prints nothing but what is wrong with the connection. */
#ifndef WEFT_EVENT_FOLLOW_H
#define WEFT_EVENT_FOLLOW_H

#include "hub_call.h"
#include "loop.h"
#include "signals.h"
#include "terminal_status.h"

/* Where to begin, and what to hear of. Texts are borrowed as long as it is live. */
typedef struct weft_event_follow_from {
    bool now;                /* with what comes next; otherwise behind this position, 0: all that is kept */
    uint64_t after;          /* gseq */
    const char *epoch;       /* the position's; NULL: whatever it is */
    const char *task;        /* only events about this task; NULL: any */
    const weft_texts *types; /* whose names begin with one of these; NULL: all */
} weft_event_follow_from;

typedef struct weft_event_follow weft_event_follow;

typedef struct weft_event_follow_opts {
    const char *url; /* NULL: the daemon of this folder */
    weft_event_follow_from from;
    bool by_stream;          /* follow the stream "events" with a subscription of libweft: on_ready has no head (0), and
                                weft__event_follow_turn() is not for it */
    int64_t patience_ms;     /* how long to try to connect again; <=0: for ever */
    int64_t limit_ms;        /* how long it may last in all; <=0: no limit */
    weft_terminal *terminal; /* who else writes on the terminal; may be NULL */
    void *ctx;
    /* The subscription holds; head is the position of the last event there is. Again after a connection was lost. */
    void (*on_ready)(void *ctx, uint64_t head);
    /* event is borrowed: {gseq, seq, stream, type, time, data}. */
    void (*on_event)(void *ctx, const weft_json *event);
    /* Something is missing in between, and why; nothing has been missed in silence. May be NULL. */
    void (*on_gap)(void *ctx, const char *reason);
    /* SIGINT and SIGTERM, two at once as one; NULL: the end, with WEFT_DONE. SIGHUP always is the end. */
    void (*on_signal)(void *ctx);
    /* The limit is reached; NULL: the end, with WEFT_DONE. Before there was an answer, and while the connection is lost, it
     * is a failure that has been explained instead. */
    void (*on_limit)(void *ctx);
    /* It is over: put away what is on the loop. May be NULL. */
    void (*on_close)(void *ctx);
} weft_event_follow_opts;

struct weft_event_follow {
    weft_app *app;
    weft_event_follow_opts opts;
    weft_target target;
    weft_loop *loop;
    weft_service *service;
    weft_peer *peer;
    weft_sub *sub; /* by_stream */
    weft_signals signals;
    weft_timer patience, limit;
    char epoch[64];
    int64_t signalled_ns; /* the last signal */
    uint64_t gseq;        /* of the last event that came */
    uint64_t round;       /* which subscription: answers to an earlier one say nothing any more */
    bool positioned;      /* epoch and gseq are from the hub */
    bool ready;           /* the subscription holds */
    bool was_connected, lost;
    bool resuming;  /* the connection was lost, and nobody was told yet how it goes on */
    bool was_ready; /* before this time */
    bool over;
    weft_exit status;
};

/* Connect and subscribe, run until weft__event_follow_end(), and clean up. live is zero before; ret's fields are valid
 * inside the callbacks. */
weft_exit weft__event_follow_run(weft_event_follow *events, weft_app *app, const weft_event_follow_opts *opts);
/* From a callback: it is over, with this status. What was started may not be answered any more. */
void weft__event_follow_end(weft_event_follow *events, weft_exit status);
/* From a callback: go to another subscription. on_ready comes again. */
void weft__event_follow_turn(weft_event_follow *events, const weft_event_follow_from *from);
/* Start a call. on_answer gets live->opts.ctx. A failure is explained and ends it. */
void weft__event_follow_call(weft_event_follow *events, const char *method, weft_val params, weft_on_answer *on_answer);
/* A gap in words, and what happens then. */
const char *weft__gap_words(const char *reason);

#endif

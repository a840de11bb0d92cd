/* Subscriptions: follow a stream of a hub for as long as you like, over lost connections, restarts of the hub and, with a
 * file, of your own program.
 *
 *     weft_sub_opts opts = {.on_value = show};
 *     weft_subscribe(peer, "tasks", weft_none(), &opts, &sub);
 *
 * A stream is a log, of which every value matters, or a state, of which a later value replaces an earlier one. Each value
 * has a position: a number that rises (seq), and the journal in which it counts. When the connection was lost and is there
 * again (weft_connect_opts.reconnect), the subscription asks for what came after its position. Either it gets exactly that,
 * or it begins anew and says why: a value is never lost in silence and never told twice.
 *
 * It speaks tinyvex/subscribe (wire names as in the hub), on any transport that carries notifications. Not thread-safe, like
 * the peer. */
#ifndef WEFT_SUBSCRIBE_H
#define WEFT_SUBSCRIBE_H

#include <weft/net.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_SUB_NAME 256          /* bytes of a stream's name */
#define WEFT_SUB_PARAMS (64 << 10) /* bytes of its params */
#define WEFT_SUB_JOURNAL 255       /* bytes of a journal's name */

typedef struct weft_sub weft_sub;

/*  waiting ──answer──▶ LIVE, RESUMED or SNAPSHOT ──connection lost──▶ LOST ──connected──▶ CATCHING_UP ──answer──▶ ...
 *  any of them ──refused, or no connection will come──▶ ENDED */
typedef enum weft_sub_state {
    WEFT_SUB_LIVE,        /* it has begun: at the start, or where there was no position yet */
    WEFT_SUB_CATCHING_UP, /* it asks to go on behind its position */
    WEFT_SUB_RESUMED,     /* all that was missed comes now, in order, and then what is new */
    WEFT_SUB_SNAPSHOT,    /* it could not be resumed and begins anew: reason says why. Of a log something may be missing; a
                             state's value comes now */
    WEFT_SUB_LOST,        /* nothing comes at the moment; it goes on by itself. why, and reason if the other side gave one */
    WEFT_SUB_UNSAVED,     /* its position cannot be written to the file: why. Said once until it can be again */
    WEFT_SUB_ENDED,       /* for good: error is the other side's refusal; otherwise why. Only weft_sub_free() is left */
    WEFT_SUB_NOTICE,      /* it goes on, and the other side says something about it: error, and its code in reason. TVX002,
                             TVX004, TVX007: there is a newer value that cannot be had, and the last one is old. TVX005:
                             values of a state were skipped, because this side reads slowly */
} weft_sub_state;

/* Borrowed, like all that is in it. */
typedef struct weft_sub_news {
    weft_sub_state state;
    const char *reason; /* "" if there is none. NOTICE: TVX005 and the like. SNAPSHOT: epochChanged, trimmed, futureSeq, or
                           positionDamaged: what was in the file cannot be read and is ignored */
    int why; /* a negative errno, or 0. ENDED: -EPROTO the other side breaks the rules of chunks; -EBADMSG it sends
                what is no answer or no JSON; -EMSGSIZE a value is over max_value */
    const weft_error *error; /* or NULL */
} weft_sub_news;

/* One value, whole, also when it came in chunks. Borrowed. */
typedef struct weft_sub_value {
    const weft_json *value;
    uint64_t seq;
    const char *journal;
} weft_sub_value;

/* Zero means the default. */
typedef struct weft_sub_opts {
    /* A value has come; required. Any callback may free the subscription or the peer. None runs inside weft_subscribe(). */
    void (*on_value)(weft_sub *sub, const weft_sub_value *value, void *ctx);
    void (*on_state)(weft_sub *sub, const weft_sub_news *news, void *ctx); /* may be NULL */
    void *ctx;
    /* Begin behind this position; NULL: as the stream begins. journal may be "". Copied. */
    const char *journal;
    uint64_t last_seq;
    /* Keep the position in this file, and begin behind the one that is there. It is replaced as a whole (a new file with
     * mode 0600, synced, then renamed), so a crash leaves the old one or the new one. What was handed to on_value after the
     * last save comes again after a crash of this program. A state that has not changed does not come again after a restart:
     * keep its value too, or use no file. Copied. */
    const char *file;
    int64_t save_ms;  /* saved so long after a value: 1 s; <0: after each value. Also when the connection is lost, and by
                         weft_sub_free() and weft_peer_free() */
    size_t max_value; /* bytes of a value that comes in chunks: 32 MiB */
    WEFT_ROOM(8);
} weft_sub_opts;

/* Follow a stream. peer is one of weft_connect_on() or, driven by weft_wait(), of weft_connect(); calls that its on_state
 * makes come before the subscription, so it may show a token there. params is an object; weft_none() and null are left out.
 * -EINVAL no client's peer, no name, or other params; -EMSGSIZE name, params or journal are too long; -ENOTCONN it is
 * closed; -EEXIST the file belongs to another stream; other <0 the file cannot be opened (-EACCES; -ELOOP a link; -EISDIR no
 * regular file; -EPERM another user's). */
WEFT_API int weft_subscribe(weft_peer *peer, const char *name, weft_val params, const weft_sub_opts *opts, weft_sub **ret);
/* Unsubscribe: the other side is told, the position is saved, nothing comes any more. Also after the peer was freed. */
WEFT_API weft_sub *weft_sub_free(weft_sub *sub);
WEFT_API void weft_sub_freep(weft_sub **sub);
/* Save the position now. 0 also when there is nothing new to save, or no file. */
WEFT_API int weft_sub_save(weft_sub *sub);
/* Where it is: the seq of the last value, and its journal, "" if there is no position yet. Borrowed. */
WEFT_API uint64_t weft_sub_seq(const weft_sub *sub);
WEFT_API const char *weft_sub_journal(const weft_sub *sub);
/* Is it a state? Known from the first LIVE, RESUMED or SNAPSHOT on. */
WEFT_API bool weft_sub_is_state(const weft_sub *sub);

#ifdef __cplusplus
}
#endif
#endif

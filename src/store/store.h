/* The store: where events are kept before anybody is told of them. One journal, many streams; each event has a place in its
 * stream (seq) and a place over all (gseq), and once acknowledged it has both for good.
 *
 * What is promised:
 *   - An append is acknowledged, and its events are shown to followers, only when they are durable. An append is all or
 *     nothing. Followers are shown what others wrote to the same journal as well, each event once, in the order of gseq.
 *   - seq begins at 1 in each stream, rises by one and is never used twice; so does gseq over all streams. Both belong to an
 *     epoch, a random name for this journal that changes whenever it cannot be proved to be the continuation of what it was.
 *   - A reader gets every event after its position, in order, once, or is told why it cannot: a gap, never a partial answer.
 *   - The owner's thread never waits for the disk. Every function below returns at once and completes later, exactly once,
 * in weft__store_dispatch(); only open and close take the time they need.
 *
 * What it refuses to do: it has no loop and no clock (times are arguments), does not look into payloads, and does not decide
 * what is kept how long. Everything here is for one thread, the owner's; the allocator is also used by the store's threads
 * and must allow that. Streams are never forgotten, because their last seq is not; they are meant to be thousands, not
 * millions. */
#ifndef WEFT_STORE_H
#define WEFT_STORE_H

#include <weft/base.h>
#include <weft/stats.h>

#define WEFT_EPOCH 32          /* characters of an epoch */
#define WEFT_STORE_WHY 512     /* room for a sentence on why a store did not open */
#define WEFT_STORE_NAME 255    /* bytes of a stream's name, a type, a key, an owner: they go into indexes and log lines */
#define WEFT_STORE_EVENTS 1000 /* events, and documents, of one append: as many as a batch of calls may hold */
#define WEFT_STORE_PAGE 4096   /* events of one page, at most: what a reader may hold at a time */

typedef struct weft_store weft_store;
typedef struct weft_follow weft_follow;

typedef struct weft_event {
    const char *stream;
    const char *type;
    weft_bytes data; /* JSON text, kept byte for byte */
    int64_t time_ms; /* wall clock, the writer's */
    uint64_t seq;    /* both 0 in an append: the store gives them */
    uint64_t gseq;
    const char *key; /* of a page with WEFT_RAW_EVENTS: the key of the append that it was the first of; otherwise NULL */
} weft_event;

/* Why a position cannot be read on from. A positive value, where an errno would be negative. */
typedef enum weft_gap {
    WEFT_GAP_EPOCH = 1, /* the position belongs to another epoch */
    WEFT_GAP_TRIMMED,   /* events behind the position are no longer kept */
    WEFT_GAP_FUTURE,    /* the position lies beyond the last event */
} weft_gap;
/* "epochChanged", "trimmed", "futureSeq"; NULL for anything else. */
const char *weft__gap_name(int gap);

/* A document: what is kept by key, beside the events. The latest is there until it is replaced or deleted; trimming does not
 * touch it. It is written with an append: both are durable, or neither is. */
typedef struct weft_document {
    const char *key;
    weft_bytes data; /* data NULL: it is deleted */
} weft_document;

#define WEFT_REMOVED "removed"
#define WEFT_REMOVED_DATA "{}"

/* Append. Everything is copied. With a key, a repeat stores nothing and gives the positions of the first time; a key is
 * remembered as long as the first event it came with. */
typedef struct weft_append {
    const weft_event *events;
    size_t count;
    const char *key;                /* NULL: none */
    const weft_document *documents; /* not written in a repeat; without events there may be documents alone */
    size_t document_count;
    const char *counter;      /* NULL: none. Else the append takes a number of it, */
    uint64_t number;          /* and is refused if this one or a higher one was taken: two writers never take the same */
    const uint64_t *removals; /* gseqs of events whose content is taken out. They keep their places, and their keys; */
    size_t removal_count;     /* their type is WEFT_REMOVED then, and their data {}. What is not kept is passed over. Not in
                                 a repeat; without events there may be removals alone */
} weft_append;
/* The events with their positions (borrowed). r < 0: nothing was stored, or, after a storage error and a crash, it may turn
 * out that it was; a key makes the repeat safe. repeat: this key was there before; a position is 0 where that event is no
 * longer kept. */
typedef void weft_append_done(void *ctx, int r, const weft_event *events, size_t count, bool repeat);

/* What a copy of the journal needs besides what readers are shown; -ENOTSUP: this kind cannot say. Documents are read as
 * they are. */
typedef enum weft_raw_page {
    WEFT_RAW_NONE,
    WEFT_RAW_EVENTS,  /* over all, with their keys */
    WEFT_RAW_STREAMS, /* those that were trimmed, each as an event: stream is its name, seq its place, which is the position,
                         gseq the seq of the last of its events that is gone */
    WEFT_RAW_REMOVED, /* events whose content was taken out, without it; a page may be empty although there is more */
} weft_raw_page;

/* Read one page. Strings and data are borrowed. */
typedef struct weft_query {
    const char *stream; /* NULL: all streams, and positions are gseq */
    const char *epoch;  /* of the position; NULL: this one */
    uint64_t after;     /* the last position already known; 0: none */
    uint64_t until;     /* no event with a gseq above this; 0: all */
    bool documents;     /* instead of events: each as an event whose stream is its key and whose seq its place, which it has
                           from its first writing on; the position is a place. With stream, only the one that has this key.
                           Besides these only after, epoch and the maxima count */
    bool oldest;        /* begin with the oldest event kept instead of asking that nothing after the position be trimmed */
    const char *aside;  /* over all: streams whose names begin so are trimmed on their own, and what is gone from them is no
                           gap; NULL: what is gone from any stream is */
    const char *but;    /* with aside: one of those streams, from which nothing may be gone; NULL: none */
    weft_raw_page raw;  /* with it, only after, epoch, oldest and the maxima count */
    size_t max_events;  /* 0: 256. A page has at least one event if there is one, */
    size_t max_bytes;   /* 0: 256 KiB. however large that is. */
} weft_query;
typedef struct weft_page {
    const weft_event *events;
    size_t count;
    uint64_t last;    /* the position behind this page: where to read on */
    uint64_t head;    /* the position of the last event there is */
    uint64_t trimmed; /* the position of the last event that is no longer kept */
    bool more;        /* there was more than the limits allowed */
} weft_page;
/* r 0: the page. A weft_gap: no events, but head and trimmed. < 0: page is NULL. */
typedef void weft_page_done(void *ctx, int r, const weft_page *page);

/* Remove the oldest events until what is left satisfies every limit that is not 0. Only ever from the old end. How
 * old an event is, is for others to say: the clock that its time came from may have been wrong. */
typedef struct weft_trim {
    const char *stream; /* NULL: over all */
    uint64_t rows;      /* keep at most so many events */
    uint64_t bytes;     /* and at most so many bytes of data */
    uint64_t upto;      /* and none up to this gseq; */
    uint64_t before;    /* but whatever the limits say, none from this gseq on; 0: any */
} weft_trim;
/* How many events went, also when it broke off (r < 0) halfway. */
typedef void weft_trim_done(void *ctx, int r, uint64_t removed);

/* A change of the journal that took effect: an append, or what was trimmed. Borrowed. */
typedef struct weft_store_change {
    const weft_event *events; /* with their positions */
    size_t count;
    const char *key;                /* NULL: none */
    const weft_document *documents; /* after the events */
    size_t document_count;
    const uint64_t *removals; /* and after these */
    size_t removal_count;
    uint64_t trimmed;   /* not 0: nothing of the above, but events up to this gseq are gone, */
    const char *stream; /* from this stream; NULL: from all */
} weft_store_change;
/* Hear of every change from now on, in the order in which they took effect, each before its completion. Whoever applies
 * them to a copy of what was there when it began has the journal. tap NULL: no more. One at a time; not from tap itself.
 * -ENOTSUP: others write to this journal as well, or its kind has no raw pages. */
typedef void weft_store_tap(void *ctx, const weft_store_change *change);
int weft__store_tap(weft_store *store, weft_store_tap *tap, void *ctx);

/* Being told. on_start: the position holds, everything after it follows. on_live: the replay has caught up. on_end: a
 * weft_gap, a negative errno, or -ECANCELED when the store closes; the follow is over and freed. on_start and on_live may be
 * NULL. */
typedef struct weft_follower {
    void (*on_start)(void *ctx, const weft_page *page);
    void (*on_events)(void *ctx, const weft_event *events, size_t count);
    void (*on_live)(void *ctx);
    void (*on_end)(void *ctx, int why);
} weft_follower;

typedef enum weft_damage {
    WEFT_DAMAGE_REFUSE,     /* do not open, say what is wrong, change nothing */
    WEFT_DAMAGE_QUARANTINE, /* move the files aside and begin a new journal with a new epoch */
} weft_damage;

typedef enum weft_check {
    WEFT_CHECK_AUTO,   /* in full after an unclean stop and where that is quick, otherwise what is read when it is read */
    WEFT_CHECK_ALWAYS, /* in full */
    WEFT_CHECK_LAZY,   /* in full after an unclean stop only */
} weft_check;

typedef struct weft_store_kind weft_store_kind;
typedef struct weft_store_opts {
    const weft_alloc *alloc; /* called from several threads */
    const char *path;        /* sqlite: the database; its neighbours begin with the same name */
    const char *vfs;         /* sqlite: NULL for the system's files */
    weft_store *beside;      /* memory: an open store of this thread whose journal this one shares; NULL: its own */
    const char *expect;      /* sqlite: the epoch the journal must have, if there is one; NULL or "": any */
    weft_damage on_damage;
    weft_check check;
    size_t max_event; /* bytes of one event's data; 0: 32 MiB, as an inbound message */
    size_t max_queue; /* bytes of appends not yet durable; 0: 64 MiB */
    size_t max_log;   /* sqlite: bytes of log before it is copied back in the midst of work; 0: 64 MiB */
    const char *url;  /* postgres: where the database is, as libpq reads it */
    int standbys;     /* postgres: so many standbys must have a commit before it counts; 0: as the database is set up */
    const char *mark; /* kinds without files here: a path; the file beside it that ends in -mark says how far the journal had
                         come, and one that has lost something since is not opened. NULL: nothing is known */
    bool shared;      /* postgres: other stores may write to the journal at the same time; all of them must say so */
    const struct weft_store_hub
        *hub; /* postgres: we are one of several hubs, of which one has it (lead.h); NULL: we are not */
} weft_store_opts;

/* -EUCLEAN damaged, -EKEYREJECTED another journal than was expected, -ENOTSUP from a newer version, -EBUSY in use by
 * somebody else, -EINVAL not a journal, or the system's error; with a sentence in ret_why (WEFT_STORE_WHY bytes). It may
 * take seconds: after an unclean stop everything is checked. A journal that was opened in spite of something (quarantined,
 * another epoch) also has a sentence; otherwise it is empty. */
int weft__store_open(const weft_store_kind *kind, const weft_store_opts *opts, weft_store **ret, char *ret_why);
/* Finish the appends under way, complete everything, end every follow, free it. Not from a callback. Returns NULL. */
weft_store *weft__store_close(weft_store *store);

/* Readable when weft__store_dispatch() has something to do. Borrowed. */
int weft__store_fd(const weft_store *store);
/* Run the completions that are due, in the order in which the store did the work. Not from a callback. */
void weft__store_dispatch(weft_store *store);
const char *weft__store_epoch(const weft_store *store);
/* For people: what it stands on, which version of that, and who must have an event before it is acknowledged. 1: an older
 * version than is known to work; 0; -ENOTSUP there is nothing to say. Only before anything else was asked of it. */
int weft__store_about(const weft_store *store, char *ret, size_t size);
/* The journal that this one was a copy of until it was promoted, and the last event that it had of that; NULL: none. */
const char *weft__store_before(const weft_store *store, uint64_t *ret_head);
/* The gseq of the last event followers were told of. */
uint64_t weft__store_head(const weft_store *store);

/* Whether the store can still be relied on: 0; -ESTALE its files were deleted, replaced or changed by somebody else, or its
 * database belongs to another or has lost something, and nothing more is stored; -EUCLEAN damage was found when something
 * was read; -ENOTCONN the database is away or does not wait for its standbys, and appends wait. It asks the file system. A
 * log that another program's SQLite emptied is -ESTALE until that was looked into, for which somebody must ask or append. */
int weft__store_look(weft_store *store);

/* Each returns 0 and completes later, or fails now and does not: -EINVAL a name or a count out of bounds, -EMSGSIZE an event
 * over its limit, -EXFULL too much in the queue, -ECANCELED closing, -ENOMEM. done may be NULL except for reads.
 * Completions may call everything but dispatch and close. Errors at completion: -ENOSPC, -EIO and others of the disk (try
 * again when it works), -ESTALE its files are no longer the ones that were opened, -EUCLEAN damage was found, -EEXIST the
 * key was used for something else, -EAGAIN the number is taken. */
int weft__store_append(weft_store *store, const weft_append *append, weft_append_done *done, void *ctx);
int weft__store_read(weft_store *store, const weft_query *query, weft_page_done *done, void *ctx);
int weft__store_trim(weft_store *store, const weft_trim *trim, weft_trim_done *done, void *ctx);

/* From now on appends are held until weft__store_release(), so that what an owner appends in one turn becomes durable
 * together. on_held is called when the first is held; the owner then sees to the release before it waits for anything. When
 * WEFT_STORE_HELD are held, they go on by themselves. on_held NULL: those that are held go on, and none is held any more. */
#define WEFT_STORE_HELD 64
void weft__store_hold(weft_store *store, void (*on_held)(void *ctx), void *ctx);
void weft__store_release(weft_store *store);

/* Replay from the query's position (until is ignored, the maxima are those of its pages), then live, with neither gap nor
 * double where they meet. The callbacks of an event run before the completion of its append. */
int weft__store_follow(weft_store *store, const weft_query *query, const weft_follower *follower, void *ctx,
                       weft_follow **ret);
/* No callback runs afterwards; also from its own callbacks. NULL is fine. Returns NULL. */
weft_follow *weft__follow_free(weft_follow *follow);

/* What it has done since it was opened. */
typedef struct weft_store_stats {
    uint64_t appends, events, bytes; /* that were taken; bytes of events' data */
    uint64_t failures;               /* appends that were not stored */
    size_t queued_bytes;             /* of appends that are not durable yet */
    weft_histogram sync_us;          /* sqlite: how long a commit took, which waits for the disk */
    weft_histogram group;            /* sqlite: appends that became durable together */
} weft_store_stats;
void weft__store_stats(weft_store *store, weft_store_stats *ret);

/* Does what it stores outlive the process? */
bool weft__store_lasts(const weft_store_kind *kind);
/* Is that in files at a path, rather than elsewhere? */
bool weft__store_has_files(const weft_store_kind *kind);
/* Was there a journal of this kind at path? */
bool weft__store_was_here(const weft_store_kind *kind, const char *path);

/* The in-memory reference, SQLite, and PostgreSQL. */
extern const weft_store_kind weft__memory;
extern const weft_store_kind weft__sqlite;
extern const weft_store_kind weft__postgres;

#endif

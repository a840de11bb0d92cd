/* What a kind of store implements: one table. Checking arguments, copying, limits, completions and followers are done once,
 * in store.c, completions.c, delivery.c and follow.c, for all kinds.
 *
 * A kind is given jobs that own copies of everything. It works on them on whatever thread it likes, leaves the outcome in
 * the job and hands each back once, with weft__completions_put(), from any thread. Jobs come back in the order in which the
 * work took effect; appends in the order of their gseq.
 *
 * A kind also delivers what has become durable, whoever wrote it: its own appends and those of other writers of the same
 * journal. Followers hear from deliveries alone; an append that comes back only completes. */
#ifndef WEFT_STORE_KIND_H
#define WEFT_STORE_KIND_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "arena.h"
#include "list.h"
#include "store.h"

typedef enum weft_job_type { WEFT_JOB_APPEND, WEFT_JOB_READ, WEFT_JOB_TRIM, WEFT_JOB_DELIVERY } weft_job_type;

/* What all jobs begin with. */
typedef struct weft_job {
    weft_link link;
    weft_job_type type;
    int r;        /* the outcome */
    size_t bytes; /* of memory, for the limit of the queue */
    void *ctx;
} weft_job;

/* Newly durable events, on their way to the followers; in the order of gseq, and every event in one of them. What was
 * delivered already is passed over. Without events, or with a hole before the first: followers read up to upto themselves.
 */
typedef struct weft_delivery {
    weft_job job;
    const weft_event *events; /* NULL: none */
    size_t count;
    uint64_t upto;
    bool borrowed; /* it is part of something else, which frees it */
} weft_delivery;

typedef struct weft_append_job {
    weft_job job;
    weft_delivery delivery; /* of its own events: handed in right before it, with weft__append_done() */
    weft_append_done *done;
    const char *key; /* NULL: none */
    const char *counter;
    uint64_t number;
    bool repeat;
    size_t count, document_count;
    size_t data_bytes;
    size_t documents_put; /* for kinds that store them in two steps */
    weft_document *documents;
    uint64_t *removals;
    size_t removal_count;
    weft_event events[]; /* the documents, the removals and all strings lie behind them */
} weft_append_job;

typedef struct weft_read_job {
    weft_job job;
    weft_page_done *done;
    weft_query query; /* limits filled in */
    weft_page page;
    weft_event *events; /* room for query.max_events when the first comes */
    size_t data_bytes;
    weft_arena arena; /* everything the page points to */
    char strings[];
} weft_read_job;

typedef struct weft_trim_job {
    weft_job job;
    weft_trim_done *done;
    weft_trim trim;
    uint64_t removed;
    uint64_t cut;   /* the gseq of the last that went; */
    uint64_t piece; /* and of the last that goes in the transaction under way */
    uint64_t step;  /* in the transaction under way, for kinds that work in pieces */
    char strings[];
} weft_trim_job;

/* Where finished jobs wait for the owner's thread. */
typedef struct weft_completions {
    pthread_mutex_t lock;
    weft_link jobs;
    int fd;
    weft_histogram sync_us, group; /* weft_store_stats */
} weft_completions;

int weft__completions_init(weft_completions *completions);
void weft__completions_done(weft_completions *completions);
/* Hand in a list of finished jobs, which is empty afterwards. From any thread. */
void weft__completions_put(weft_completions *completions, weft_link *jobs);
/* So many appends were made durable together, and that took so long. From any thread. */
void weft__completions_note(weft_completions *completions, uint64_t sync_us, uint64_t appends);
/* Put an append and, if it stored something, the delivery of its events before it, onto a list for the completions. */
void weft__append_done(weft_append_job *job, weft_link *jobs);
/* A delivery with copies of the events, which another handle's writer made durable; NULL: no memory. */
weft_delivery *weft__delivery_new(const weft_alloc *alloc, const weft_event *events, size_t count);
/* Take all that is there. */
void weft__completions_take(weft_completions *completions, weft_link *ret_jobs);

struct weft_peek;

struct weft_store_kind {
    const char *name;
    /* NULL: it ends with the process. Otherwise it lasts, in a file at opts.path and others whose names go on with these; ""
     * is the first, NULL ends the list. Any of them shows that a journal was there. An empty list: it lasts elsewhere. */
    const char *const *files;
    /* Look at a journal that lasts without opening it (peek.h). NULL: nobody can. */
    int (*peek)(const char *path, const char *folder, struct weft_peek *ret);
    /* Make the store, its base filled in: epoch and told (the last gseq there is). May block. On failure nothing is left
     * behind but what a quarantine moved, and ret_why has a sentence. */
    int (*open)(const weft_store_opts *opts, weft_store **ret, char *ret_why);
    /* Take the job. Cannot fail and does not block: failure is an outcome of the job. Give seq and gseq to every event, make
     * all durable or none, then hand it back. With a key that is known: give the positions stored for it, set repeat;
     * -EEXIST when stream or type of an event differ. -EAGAIN when its number is taken.
     * Documents are replaced or deleted with it, and the content of its removals is taken out. Several appends may become
     * durable together. An append does not wait for others to come. */
    void (*append)(weft_store *store, weft_append_job *job);
    /* Likewise. Fill the page with weft__page_begin() and weft__page_add(); only durable events, in order, without holes. */
    void (*read)(weft_store *store, weft_read_job *job);
    /* Likewise. Must not hold up appends for long: work in pieces. The positions stay used. */
    void (*trim)(weft_store *store, weft_trim_job *job);
    /* The files are not as they were: find out on another thread whether that is right after all. NULL: it never is. */
    void (*look)(weft_store *store);
    /* Finish or fail every job that was taken, hand all of them back, end the threads. May block for as long as the work
     * taken takes. No job comes afterwards. */
    void (*close)(weft_store *store);
    /* Free it, once the completions of close have run. */
    void (*free)(weft_store *store);
    /* weft__store_about(); NULL: there is nothing to say. */
    int (*about)(const weft_store *store, char *ret, size_t size);
    bool raw; /* it reads with weft_query.raw, and says in a trim's job how far that went */
    /* Other hubs reach us so (lead.h). NULL: it knows of no others. */
    int (*reach)(weft_store *store, const char *reach);
};

/* A file the store stands on. What identifies it is fixed once the store is open. */
#define WEFT_STORE_FILES 3
typedef struct weft_store_file {
    char *path;
    dev_t device;
    ino_t inode;
    _Atomic int64_t size;    /* it had once: nobody but SQLite, when it empties its log, makes it shorter while it is open */
    struct timespec changed; /* when we last wrote to it; of the thread that writes */
    bool ours_alone;         /* nobody else writes to it, so its time of change is ours */
    bool often;              /* with each group: its time is not asked for after each */
    bool written;            /* since its time was last asked for: it changed between these two, at wrote_ns */
    struct timespec from, until;
    int64_t wrote_ns;
} weft_store_file;

/* What every kind's store begins with. The owner's thread only, apart from what is fixed after open: alloc, epoch,
 * completions, files. */
struct weft_store {
    const weft_store_kind *kind;
    const weft_alloc *alloc;
    char epoch[WEFT_EPOCH + 1], before[WEFT_EPOCH + 1];
    uint64_t before_head; /* before "": this was never a copy */
    weft_completions completions;
    size_t max_event, max_queue;
    size_t queued;                             /* bytes of appends that have not come back */
    uint64_t told;                             /* the last gseq followers have heard of */
    uint64_t appends, events, bytes, failures; /* weft_store_stats */
    weft_link held;                            /* appends that wait for weft__store_release() */
    size_t held_count;
    void (*on_held)(void *ctx); /* NULL: none is held */
    void *held_ctx;
    int mark; /* descriptor of the mark; -1: the kind has its own, or none */
    uint64_t marked;
    weft_store_tap *tap; /* NULL: nobody listens */
    void *tap_ctx;
    bool more; /* while the kind takes an append: another one follows at once, so nobody needs to be woken for this one */
    weft_link follows;
    bool dispatching, closing;
    _Atomic bool damaged;         /* found when something was read or written, or by a thread that checks */
    _Atomic int trouble;          /* 0, or why nothing is acknowledged at present, for kinds without files */
    int64_t lease_ms;             /* 0: none (lead.h) */
    _Atomic int64_t confirmed_ms; /* when it was asked for what said last that the journal is ours; weft__lease_now() */
    bool resigned;
    weft_store_file files[WEFT_STORE_FILES];
    size_t file_count;
};

/* store_files.c */
/* Watch path with suffix, which must be there. For open. */
int weft__files_watch(weft_store *store, const char *path, const char *suffix, bool ours_alone);
void weft__files_done(weft_store *store);
/* -ESTALE: deleted, replaced, or shorter than it was. From any thread. */
int weft__file_look(const weft_store_file *file, struct stat *ret);
int weft__files_look(const weft_store *store);
/* Likewise, and 1 when somebody else wrote to one of them since weft__files_note(). Both on the thread that writes. */
int weft__files_compare(const weft_store *store);
/* We have written: they are as they should be, or -ESTALE. began: when, by the wall clock's ticks; NULL: nothing was written
 * to those that are written often, or it is not known when. */
int weft__files_note(weft_store *store, const struct timespec *began);

/* store_mark.c */
/* The journal is open: is it what it was? -EUCLEAN, -EBUSY or the system's error, with a sentence. */
int weft__store_mark_open(weft_store *store, const char *path, char *ret_why);
/* These have come back, and are about to be told. */
void weft__store_mark_note(weft_store *store, const weft_link *jobs);
void weft__store_mark_close(weft_store *store);

/* A new epoch. -EIO when the system has no random bytes. */
int weft__epoch_new(char ret[WEFT_EPOCH + 1]);

/* Numbers that were taken: the next one of each counter. One writer keeps them in memory, because a start tells it what was
 * taken; a kind with several keeps them with the journal. */
#define WEFT_STORE_COUNTERS 8 /* tasks, and whatever else is counted: a few words */
typedef struct weft_counters {
    struct {
        char name[32];
        uint64_t next;
    } of[WEFT_STORE_COUNTERS];
} weft_counters;
/* Take the append's number: 0, or -EAGAIN; -ENOBUFS too many counters. */
int weft__counters_take(weft_counters *counters, const weft_append_job *job);

/* Say whether the position holds, given what there is: 0, or the gap. Sets what every page has. */
int weft__page_begin(weft_read_job *job, const char *epoch, uint64_t head, uint64_t trimmed, uint64_t gone);
/* Add a copy of an event. 1 it is in, 0 the page is full and there is more, -ENOMEM. */
int weft__page_add(weft_read_job *job, const weft_event *event);

/* Milliseconds that go on while the machine sleeps. From any thread. */
int64_t weft__lease_now(void);

/* Tell the followers of durable events, in order. On the owner's thread. */
void weft__follow_tell(weft_store *store, const weft_delivery *delivery);
/* End every follow; free what was ended earlier. */
void weft__follow_end_all(weft_store *store);
void weft__follow_sweep(weft_store *store);

#endif

/* Several hubs, one journal: one of them has it and leads, the others wait for their turn.
 *
 * Who leads is the database's to say: a lock of its session, and the owner's name in the row that every transaction locks. A
 * lock ends with its session, and a hub that was cut off does not hear of that. So the one that leads also keeps a lease: it
 * asks the database again and again whether the journal is still its own, and ends its agents when it has not been told so
 * for most of the lease. Whoever takes over waits as long before it begins, unless the one before has said that it is done.
 * No clock is compared with another machine's.
 *
 * Only kinds that live in a database know of this. */
#ifndef WEFT_LEAD_H
#define WEFT_LEAD_H

#include "store.h"

#define WEFT_LEAD_NAME 128
#define WEFT_LEAD_REACH 2048
#define WEFT_LEAD_HUBS 16 /* told of */

/* weft_store_opts.hub. Borrowed until the store is open; while a lead waits, until that is freed. */
typedef struct weft_store_hub {
    const char *place; /* the same for whatever runs in this hub's folder on this machine, and nowhere else: a start there
                          means that nothing of the one before runs any more */
    const char *name;  /* for people */
    const char *reach; /* how other hubs reach this one; their business */
    int64_t lease_ms;
    /* The lead's own: */
    int stop;               /* an eventfd, which becomes the store's too: opening is called off when it is readable */
    const char *free_owner; /* who had the journal and did not say that it is done, and has not come back since */
    int64_t free_boot, free_since;
} weft_store_hub;

/* Make a name one that can be shown: what is no UTF-8 or no character for a terminal becomes "?". */
void weft__lead_clean(char *name);
/* How long the journal is surely still ours, in milliseconds; 0: it may be another's. INT64_MAX: nobody waits for it. */
int64_t weft__store_lease_left(const weft_store *store);
/* Whatever worked for the journal has ended: who waits for it may begin as soon as it is closed. */
void weft__store_resign(weft_store *store);
/* Other hubs reach us so from now on. -ENOMEM. */
int weft__store_reach(weft_store *store, const char *reach);

typedef struct weft_lead weft_lead;

typedef struct weft_lead_hub {
    char name[WEFT_LEAD_NAME];
    bool leads;
    int64_t seen_ms; /* ago */
} weft_lead_hub;

typedef enum weft_lead_state {
    WEFT_LEAD_LOOKING, /* nothing is known yet */
    WEFT_LEAD_WAITING, /* somebody else has it, or the database is away */
    WEFT_LEAD_OURS,    /* the store is open */
    WEFT_LEAD_FAILED,  /* it cannot be opened, and waiting does not help */
} weft_lead_state;

typedef struct weft_lead_view {
    weft_lead_state state;
    int r;                       /* why it failed */
    char why[WEFT_STORE_WHY];    /* a sentence: why it failed, or why it is not taken; "": there is nothing to say */
    char name[WEFT_LEAD_NAME];   /* of the one that has it, or had it and did not say that it is done; "": there is none */
    char reach[WEFT_LEAD_REACH]; /* how it is reached; "": it has not said */
} weft_lead_view;

/* Open the store on a thread of its own, when it is our turn. opts and what it points to are borrowed; opts->hub must be
 * there. -ENOTSUP: this kind knows nothing of hubs. */
int weft__lead_new(const weft_store_kind *kind, const weft_store_opts *opts, weft_lead **ret);
/* Readable when there is something new to look at. */
int weft__lead_fd(const weft_lead *lead);
void weft__lead_look(weft_lead *lead, weft_lead_view *ret);
/* The open store, which is the caller's from then on; once. */
weft_store *weft__lead_take(weft_lead *lead);
/* Stop waiting; a store that was not taken is closed. Returns NULL. */
weft_lead *weft__lead_free(weft_lead *lead);

/* The hubs that a database knows, for people: the latest first. How many, or a negative errno with a sentence. */
int weft__lead_list(const char *url, weft_lead_hub ret[WEFT_LEAD_HUBS], char *ret_why);

#endif

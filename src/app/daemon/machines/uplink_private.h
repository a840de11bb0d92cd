/* The inside of the way to a hub: uplink.c, uplink_deliver.c, uplink_take.c. */
#ifndef WEFT_UPLINK_PRIVATE_H
#define WEFT_UPLINK_PRIVATE_H

#include "alloc.h"
#include "buf.h"
#include "endpoint.h"
#include "list.h"
#include "loop.h"
#include "uplink.h"

#define WEFT_STREAM_UPLINK "uplink" /* lease.released {hub, lease, taskId} */
#define WEFT_LEASE_MEMBER "weft/lease"
#define WEFT_UPLINK_ID 64

/* A task of the hub's, which is a task of ours. */
typedef struct weft_uplink_lease {
    weft_link link;
    uint64_t number;
    uint64_t kept;  /* the hub has everything of it up to here, by our gseq */
    uint64_t heard; /* and has answered, on this connection, what was sent of it up to here */
    uint64_t ended; /* the gseq of its end, when that was sent; 0: not yet */
    bool over;      /* the hub does not wait for it any more: what is sent is late */
    weft_buf open;  /* of the page that is read now: what goes out next of it */
    size_t count;
    uint64_t last;
    char hub_task[WEFT_UPLINK_ID], task[WEFT_UPLINK_ID], session[WEFT_UPLINK_ID];
} weft_uplink_lease;

/* A page that is being read. uplink NULL: it is gone. */
struct uplink_read {
    weft_uplink *uplink;
};

/* A start that the hub waits for. uplink NULL: it is gone. */
struct uplink_start {
    weft_link link;
    weft_uplink *uplink;
    weft_req *req;
    uint64_t number;
    char hub_task[WEFT_UPLINK_ID], agent[WEFT_UPLINK_ID + 1];
    char *prompt;
};

struct weft_uplink {
    weft_uplink_opts opts;
    char host[WEFT_UPLINK_ID + 1], epoch[WEFT_EPOCH + 1];
    const char *shown;
    char called[WEFT_UPLINK_ID + 1]; /* as the hub calls us; "": it did not say yet */
    char why[256];                   /* it is not connected; "": not known */
    weft_target target;
    weft_service *service;
    weft_peer *peer;
    char told[256]; /* the trouble that was said last; "": none since it was connected */
    bool connected, up, refused;
    bool greeted;     /* the hub has taken us, in this run: whoever turns us away later may be another one */
    bool redial;      /* when the timer is due */
    weft_timer again; /* say hello again, deliver again, or connect again */
    weft_link leases, starts;
    weft_past_waiter past;
    struct uplink_read *read;
    /* uplink_deliver.c */
    weft_event_listener listener;
    weft_later later;
    weft_timer pace;
    int64_t next_at; /* the next page is not read before this */
    uint64_t cursor; /* the journal was read up to here */
    uint64_t back;   /* while a page is being read: it is not what was needed, read again from here; UINT64_MAX: it is */
    unsigned in_flight;
    size_t largest; /* message that the hub takes */
};

weft_uplink_lease *weft__uplink_lease(weft_uplink *self, uint64_t number, const char *task);
weft_uplink_lease *weft__uplink_lease_of(weft_uplink *self, const char *task);
weft_uplink_lease *weft__uplink_lease_add(weft_uplink *self, uint64_t number, const char *hub_task, const weft_task *task);
void weft__uplink_release(weft_uplink *self, weft_uplink_lease *lease);
void weft__uplink_lease_over(weft_uplink *self, weft_uplink_lease *lease);
/* It has ended, and the hub has heard that: nothing more will be said of it. */
bool weft__uplink_lease_told(const weft_uplink_lease *lease);

/* Which lease a task is: in its metadata. */
bool weft__uplink_read_lease(const weft_task *task, uint64_t *ret_number, char hub[WEFT_EPOCH + 1],
                             char hub_task[WEFT_UPLINK_ID]);
/* The key by which a lease is submitted: the same one twice is one task. */
#define WEFT_UPLINK_KEY 96
void weft__uplink_key(const weft_uplink *self, uint64_t lease, char ret[WEFT_UPLINK_KEY]);

/* Deliver from what the hub has: of all leases, or of this one too. */
void weft__uplink_rewind(weft_uplink *self);
void weft__uplink_deliver(weft_uplink *self, const weft_uplink_lease *lease);
void weft__uplink_deliver_init(weft_uplink *self);
void weft__uplink_deliver_done(weft_uplink *self);

/* uplink_ask.c */
extern const weft_param weft__uplink_ask_params[];
int weft__uplink_ask(weft_req *req, const weft_json *params, void *ctx);

/* The methods that the hub calls. */
int weft__uplink_service(weft_uplink *self);

#endif

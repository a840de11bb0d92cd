/* The inside of a relay: relay.c (life, whose copy it is), relay_follow.c (one hub: dialling, following, storing),
 * relay_forward.c (asking a hub), relay_ids.c (names before ids). */
#ifndef WEFT_RELAY_PRIVATE_H
#define WEFT_RELAY_PRIVATE_H

#include "buf.h"
#include "endpoint.h"
#include "list.h"
#include "loop.h"
#include "relay.h"
#include "stamp.h"

#define RELAY_DOCUMENT "relay"      /* whose copy this is: {"hubs": [names]} */
#define RELAY_HUB_DOCUMENT "relay/" /* and a hub's name: {"epoch", "after", "chain"} */
#define RELAY_CHAIN 64              /* journals that a hub's is a copy of, at most */
#define RELAY_BATCH 500             /* events of one append */
#define RELAY_TROUBLE 200

/* An event that waits to be stored. Offsets into the text: that may move. */
typedef struct relay_event {
    size_t stream, type, data, len;
    int64_t time_ms;
} relay_event;

typedef struct relay_hub {
    weft_relay *relay;
    char name[WEFT_RELAY_NAME + 1];
    char prefix[WEFT_RELAY_NAME + 2]; /* before its ids: "" where it is the only one */
    char *url, *token_file, *cacert;  /* owned; the files NULL: none */
    weft_target target;
    weft_peer *peer;
    bool connected;
    bool following;
    bool failed_for_now;        /* it refuses us: dialled again later */
    char epoch[WEFT_EPOCH + 1]; /* of its journal; "": it was never reached */
    uint64_t after;             /* everything up to here has been taken in */
    uint64_t stored;            /* and is stored */
    int64_t
        known_next; /* of relay.known: the next page, once this one is stored; 0: it was the last; -1: none is asked for */
    int64_t known_after;                     /* of relay.known: what was asked for last */
    uint64_t head;                           /* of its journal, as far as known */
    char chain[RELAY_CHAIN][WEFT_EPOCH + 1]; /* its own journal, and those that it is a copy of */
    size_t chain_count;
    char trouble[RELAY_TROUBLE]; /* why it is away; "": it is not */
    char since[WEFT_STAMP];      /* in this state */
    weft_timer again;
    /* storing: one append at a time, so that none is stored behind one that failed */
    weft_later flush;
    weft_buf text;
    relay_event events[RELAY_BATCH];
    size_t count;
    uint64_t filling, sending; /* the numbers of the batch that is being filled, and of the append under way; 0: none */
    bool paused;
    struct relay_append *append;
    weft_link held;  /* answers that wait until what came before them is stored */
    weft_link calls; /* forwarded requests under way */
} relay_hub;

struct weft_relay {
    weft_relay_opts opts;
    weft_engine *engine; /* NULL: not started */
    weft_gate gate;
    bool anew;
    size_t count;
    relay_hub hubs[WEFT_RELAY_HUBS];
};

/* ---- relay_follow.c ---- */
int weft__relay_dial(relay_hub *hub);
void weft__relay_hub_init(relay_hub *hub);
void weft__relay_hub_done(relay_hub *hub);
/* The text of its document. */
int weft__relay_write_position(const relay_hub *hub, weft_buf *out);
void weft__relay_read_position(relay_hub *hub, const weft_json *data);
bool weft__relay_in_chain(const relay_hub *hub, const char *epoch);

/* ---- relay_forward.c ---- */
int weft__relay_before(void *ctx, const weft_gate_request *request);
/* What came before these answers is stored (or will not be): send them. number: up to this batch. */
void weft__relay_release(relay_hub *hub, uint64_t number);

/* ---- relay_ids.c ---- */

/* The value, with the hub's name before each id in it. deep: at any depth, otherwise only its own members. <0. */
int weft__relay_put_ids(weft_buf *out, const weft_json *value, const char *prefix, bool deep);
/* The reverse, for params: without the name before the ids. */
int weft__relay_put_bare(weft_buf *out, const weft_json *value, const char *prefix);
/* The first member among these params that is an id with a name before it: the name. 0: there is none. */
size_t weft__relay_named(const weft_json *params, char ret[WEFT_RELAY_NAME + 1]);

#endif

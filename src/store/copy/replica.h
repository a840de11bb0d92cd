/* The journal of a hub on another machine, as a file here: written by copying what that hub says, never by appending. Events
 * have the positions that they have there, documents their order (but for one that was deleted and written again while it
 * was copied), and the epoch is that hub's.
 *
 * Everything between begin and commit becomes durable together, or not at all. Nothing that is said is believed: what does
 * not follow from what is there is refused with -EPROTO, and the file stays as the last commit left it.
 *
 * A whole copy can be opened as a journal. It has no mark beside it, so whoever opens it gives it a new epoch: a replica
 * never passes for the journal that it was copied from. One that is not whole lies under another name until it is. Calls
 * block on the disk. One thread. */
#ifndef WEFT_REPLICA_H
#define WEFT_REPLICA_H

#include <weft/json.h>

#include "store.h"

#define WEFT_REPLICA_SOURCE 512

typedef struct weft_replica weft_replica;

/* What is stored with the copy. */
typedef struct weft_replica_state {
    char epoch[WEFT_EPOCH + 1];       /* of the journal that is copied; "": nothing has been copied yet */
    char log[WEFT_EPOCH + 1];         /* the change log of that hub, and the last change that is in the copy; "": none: */
    uint64_t change;                  /* it must be copied anew from head on */
    uint64_t head;                    /* the last event */
    uint64_t said_head;               /* the last event that the hub had when it was last heard of */
    int64_t heard_ms;                 /* and when that was, by our clock */
    char source[WEFT_REPLICA_SOURCE]; /* whose it is, for people */
    bool whole;
    bool promoted; /* this is a hub's own journal since then */
} weft_replica_state;

/* Open the file, or make it. -EBUSY somebody has it; -EEXIST there is a journal that is a hub's own; -EUCLEAN it is damaged;
 * each with a sentence in ret_why (WEFT_STORE_WHY bytes). vfs: sqlite's; NULL: the system's files. */
int weft__replica_open(const weft_alloc *alloc, const char *path, const char *vfs, weft_replica **ret, char *ret_why);
/* What is not committed is forgotten. NULL is fine. Returns NULL. */
weft_replica *weft__replica_close(weft_replica *replica);
/* Changed by the functions below, and stored with the next commit. Borrowed. */
weft_replica_state *weft__replica_state(weft_replica *replica);
/* Where its memory comes from. */
const weft_alloc *weft__replica_alloc(const weft_replica *replica);
/* What went wrong last, for people. */
const char *weft__replica_why(const weft_replica *replica);

int weft__replica_begin(weft_replica *replica);
int weft__replica_commit(weft_replica *replica);
void weft__replica_rollback(weft_replica *replica);

/* An event of a page that goes on from where the copy ends. trimmed: up to there something may be missing, which is trimmed
 * there. 0; -EPROTO it does not follow. */
int weft__replica_event(weft_replica *replica, const weft_event *event, uint64_t trimmed);
/* There were no more: up to the higher of both everything is here that is kept there. */
int weft__replica_events_end(weft_replica *replica, uint64_t trimmed);
/* Events of this stream up to this seq are gone there. */
int weft__replica_trimmed(weft_replica *replica, const char *stream, uint64_t seq);
/* The content of this event was taken out there. */
int weft__replica_removed(weft_replica *replica, uint64_t gseq);
/* The next document in the order of places: those that lie between after and it here are gone there. */
int weft__replica_document(weft_replica *replica, uint64_t after, uint64_t place, const char *key, weft_bytes data);
/* There were no more behind this place. */
int weft__replica_documents_end(weft_replica *replica, uint64_t after);
/* A change as the log of that hub has it. What is here already is passed over. */
int weft__replica_apply(weft_replica *replica, const weft_store_change *change);

/* ---- replica_take.c: the same from what a hub says ---- */

/* An answer of journal.page (change_log.h), to the question what comes after this position. part: a weft_copy_part. */
int weft__replica_take_page(weft_replica *replica, int part, uint64_t after, const weft_json *page, uint64_t *ret_last,
                            bool *ret_more);
/* The changes of an answer of journal.changes; they go on where the copy's state says. */
int weft__replica_take_changes(weft_replica *replica, const weft_json *changes);
/* Say why something is refused. -EPROTO. */
int weft__replica_refuse(weft_replica *replica, const char *why, uint64_t at);

/* Everything is here: put the file in the place of the one at path, which is replaced if there is one and nobody has it
 * open. The replica is closed in any case. */
int weft__replica_install(weft_replica *replica, const char *path, char *ret_why);
/* Everything is here, and it is the journal from now on, with its epoch: put it at path, where there is none. The replica is
 * closed in any case. */
int weft__replica_keep(weft_replica *replica, const char *path, char *ret_why);
/* From now on this is a hub's own journal. To be closed, and opened as a store. */
int weft__replica_promote(weft_replica *replica);
/* Is there a copy at path that was promoted, and whose? ret may be NULL. */
bool weft__replica_was_promoted(const char *path, weft_replica_state *ret);
/* Move the journal at path, a hub's own, aside. ret_why says where to. */
int weft__replica_discard(const char *path, char *ret_why);

#endif

/* Trust: what this user's Weft has made, and what the user has confirmed, recorded outside of every project.
 *
 * A clone, an archive or another user can bring a daemon's folder with a journal (tasks that would run), a configuration
 * (programs, doors) and a token (known to whoever sent it). Modes and names prove nothing about them. So each project is on
 * record by its path and by the identity of its folder, its journal by the identity of its files and its epoch, its token by
 * the identity of the file, its configuration by a digest. What is not on record is not acted on before "weft trust".
 *
 * The record is one file per user, trust.json in weft below XDG_STATE_HOME. It is replaced as a whole and only ever changed
 * under a lock. Identities are the inode and the time of birth, which no clone can choose; where a file system has no time
 * of birth, the device and the inode. */
#ifndef WEFT_TRUST_H
#define WEFT_TRUST_H

#include <limits.h>

#include "app.h"
#include "serve.h"
#include "store.h"

#define WEFT_TRUST_ID 64     /* room for the identity of a file, as a text; "": there is none */
#define WEFT_TRUST_DIGEST 65 /* for a SHA-256 as hexadecimal digits */
#define WEFT_TRUST_WHY 512

/* What to do next, for people. */
#define WEFT_TRUST_NEXT                                                                                                     \
    "\"weft trust\" shows what it would allow, and asks. If you do not know where it came from, remove it."
#define WEFT_TRUST_PLACE                                                                                                    \
    "Set XDG_STATE_HOME to a folder that only you can write to (in a service: Environment=XDG_STATE_HOME=...)."

/* What is on record about a project. Empty texts: nothing. */
typedef struct weft_trust_entry {
    char path[PATH_MAX]; /* of the project's folder */
    bool aiwg;           /* its daemon's folder is .aiwg/daemon */
    char folder[WEFT_TRUST_ID];
    char journal[WEFT_TRUST_ID], log[WEFT_TRUST_ID]; /* the database, and the log beside it that a crash leaves */
    char epoch[WEFT_EPOCH + 1];
    bool opening; /* a Weft was about to open the journal: what it left there is its own */
    char token[WEFT_TRUST_ID];
    char config[WEFT_TRUST_DIGEST];
    bool confirmed; /* by the user; else it is as Weft made it */
    char at[32];
} weft_trust_entry;

/* ---- trust_file.c: the record ---- */

/* Where it is, or -ENOENT without a home. */
int weft__trust_path(char ret[PATH_MAX]);
/* The entry of a project. 1 found, 0 there is none; < 0 with a sentence in ret_why. moved_from: the path of another entry
 * with this folder's identity, "" when there is none; may be NULL. */
int weft__trust_find(const char *path, bool aiwg, const char *folder_id, weft_trust_entry *ret, char moved_from[PATH_MAX],
                     char ret_why[WEFT_TRUST_WHY]);
/* Every entry; the first negative result of each ends the walk. */
int weft__trust_each(int (*each)(void *ctx, const weft_trust_entry *entry), void *ctx, char ret_why[WEFT_TRUST_WHY]);
/* Lock the record against other writers, until weft__trust_unlock(). A descriptor; < 0 with a sentence. */
int weft__trust_lock(char ret_why[WEFT_TRUST_WHY]);
void weft__trust_unlock(int lock);
/* Put an entry in place of the one with its path and layout; the lock must be held. remove: only take that one away; 1 there
 * was one. */
int weft__trust_put(const weft_trust_entry *entry, bool remove, char ret_why[WEFT_TRUST_WHY]);

/* ---- trust_identity.c ---- */

/* Of a file or folder, not of what a link leads to. -ENOENT. */
int weft__trust_id(const char *path, char ret[WEFT_TRUST_ID]);
void weft__trust_digest(const char *text, size_t len, char ret[WEFT_TRUST_DIGEST]);

/* ---- trust.c: judging the project we stand in ---- */

typedef enum weft_trust_folder {
    WEFT_FOLDER_ABSENT,
    WEFT_FOLDER_KNOWN,
    WEFT_FOLDER_NEW,      /* nothing is on record about this path, nor this folder */
    WEFT_FOLDER_MOVED,    /* it is on record under another path */
    WEFT_FOLDER_REPLACED, /* another folder is on record under this path */
} weft_trust_folder;

typedef struct weft_trust {
    const weft_layout *layout;
    weft_trust_folder folder;
    weft_trust_entry entry; /* as on record; of another folder unless it is KNOWN */
    char moved_from[PATH_MAX];
    char folder_id[WEFT_TRUST_ID];
    int failed; /* the record could not be read: < 0, and nothing is known */
    char why[WEFT_TRUST_WHY];
} weft_trust;

/* Look the project up. Never fails: what cannot be read is not known. */
void weft__trust_look(const weft_layout *layout, weft_trust *ret);
/* Is this text of the project's configuration on record? */
bool weft__trust_has_config(const weft_trust *trust, const char *text, size_t len);
/* Does the folder bring a journal, or a token, that is not on record? path: of the journal. */
bool weft__trust_has_strange_journal(const weft_trust *trust, const char *path);
bool weft__trust_has_strange_token(const weft_trust *trust);

/* ---- trust_made.c: recording what Weft itself makes ---- */

/* Make the daemon's folder, with make(), if there is none, and put it on record; a folder that brings nothing to act on is
 * put on record too. -EKEYREJECTED: it is not on record and brings something. All under the lock, so that of many that start
 * at once none finds a folder that another has just made. < 0 with a sentence. */
int weft__trust_enter(const weft_layout *layout, int (*make)(const weft_layout *layout), char ret_why[WEFT_TRUST_WHY]);
/* A token file of ours, before it gets its name. The lock must be held. */
int weft__trust_token(const weft_layout *layout, const char *id, char ret_why[WEFT_TRUST_WHY]);
/* The user has just changed the project's configuration through Weft, from old (NULL: there was none) to now. 1 the new text
 * is on record; 0 the old one was not, so the new one waits for "weft trust" as well. < 0 with a sentence. */
int weft__trust_config(const weft_layout *layout, const weft_bytes *old, weft_bytes now, char ret_why[WEFT_TRUST_WHY]);
/* Around opening the journal. begin: 0, and the epoch that is expected; -EKEYREJECTED: this journal is not on record. end:
 * what is there now is ours, epoch: NULL: it could not be opened. < 0 with a sentence. */
int weft__trust_open_begin(const weft_layout *layout, const char *path, char ret_epoch[WEFT_EPOCH + 1],
                           char ret_why[WEFT_TRUST_WHY]);
int weft__trust_open_end(const weft_layout *layout, const char *path, const char *epoch, char ret_why[WEFT_TRUST_WHY]);

#endif

/* The context of the project: files, dependencies and facts that planner and executor are to know of. Clients change it, and
 * every prompt for a role carries it. It has a version, which each change raises by one; the events "context.changed" are
 * its history.
 *
 * All of it is one document of the store, written with the event of the change. It is in memory, and limited, because a
 * prompt is. */
#ifndef WEFT_CONTEXT_H
#define WEFT_CONTEXT_H

#include "engine.h"

#define WEFT_CONTEXT_ENTRIES 256                /* in all */
#define WEFT_CONTEXT_KEY 1023                   /* bytes of a path or a name */
#define WEFT_CONTEXT_DATA ((size_t) 32 << 10)   /* bytes of what is said of one entry */
#define WEFT_CONTEXT_BYTES ((size_t) 256 << 10) /* of keys and data of all */
#define WEFT_CONTEXT_PARTS 64                   /* entries that one change may name */
#define WEFT_CONTEXT_PROMPT ((size_t) 16 << 10) /* bytes of it that a prompt carries; what is left out is counted there */
#define WEFT_CONTEXT_CHANGES 64                 /* under way */

typedef enum weft_context_type {
    WEFT_CONTEXT_FILE,
    WEFT_CONTEXT_DEPENDENCY,
    WEFT_CONTEXT_STATE,
    WEFT_CONTEXT_TYPES,
} weft_context_type;
extern const char *const weft__context_types[WEFT_CONTEXT_TYPES]; /* "file", ... */

typedef enum weft_context_action {
    WEFT_CONTEXT_ADD,
    WEFT_CONTEXT_MODIFY,
    WEFT_CONTEXT_REMOVE,
    WEFT_CONTEXT_ACTIONS
} weft_context_action;
extern const char *const weft__context_actions[WEFT_CONTEXT_ACTIONS]; /* "add", ... */

/* Borrowed until the next turn of the loop. */
typedef struct weft_context_entry {
    weft_context_type type;
    const char *key;  /* a path beneath the project's folder, the name of a dependency or of a fact */
    weft_bytes data;  /* JSON, as it was given */
    uint64_t version; /* of the change that it is from */
} weft_context_entry;

/* 0: it never changed. */
uint64_t weft__context_version(const weft_engine *engine);
/* By type, then in the order of the bytes of their keys. false: there are fewer. */
bool weft__context_nth(const weft_engine *engine, size_t n, weft_context_entry *ret);

/* ---- changing it ---- */

typedef struct weft_context_part {
    const char *key;
    weft_json data; /* absent: null */
} weft_context_part;

typedef struct weft_context_change {
    weft_context_action action; /* add: also in the place of what is there. modify: only of what is there. remove: what is
                                   not there is passed over */
    weft_context_type type;
    const weft_context_part *parts;
    size_t count;
} weft_context_change;

/* version: of the context with this change; as it was, where nothing had to be removed. r: -ENOENT what was to be modified
 * is not there; -EDQUOT there would be too much; or the store's error. */
typedef void weft_context_done(void *ctx, int r, uint64_t version);
/* Everything is copied. All of a change is done, or nothing; in the order in which they came. done runs later, when it is
 * durable. -EINVAL a key that is none, none at all, or one twice; -E2BIG too many parts; -EMSGSIZE data of one is too long;
 * -EXDEV, -EACCES, -ELOOP: a path that leads out of the folder, or to what is closed there; -EUSERS too many changes are
 * under way; -EAGAIN, -ESHUTDOWN, -ENOMEM. */
int weft__context_change(weft_engine *engine, const weft_context_change *change, weft_context_done *done, void *ctx);

/* A prompt with the context behind it, as every turn for a role is given it. Owned; NULL: there is no context, the prompt is
 * enough. -ENOMEM. */
int weft__context_prompt(const weft_engine *engine, const char *prompt, char **ret);

/* The key of a file: relative, without "." and empty names. An absolute path in the project's folder becomes one. -EXDEV,
 * -EACCES, -EINVAL, -ENAMETOOLONG. */
int weft__context_path(weft_engine *engine, const char *path, char ret[WEFT_CONTEXT_KEY + 1]);

#endif

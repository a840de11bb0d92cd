/* The tokens that were given out by name, beside the one of the first start. Kept as SHA-256 digests, with a name, scopes
 * and an expiry, in one file per project below the user's own state folder: a clone or an archive cannot bring one along, as
 * it could bring a file in the project. A project is known by the identity of its daemon's folder (trust.h).
 *
 * Everything here works on the folder we stand in, and blocks until the disk has it. */
#ifndef WEFT_TOKEN_FILE_H
#define WEFT_TOKEN_FILE_H

#include "layout.h"
#include "trust.h"

/* More than one hub has clients. The file stays small, and every request compares with all of them. */
#define WEFT_TOKENS_MAX 256
#define WEFT_TOKEN_NAME 64
#define WEFT_TOKEN_SCOPES 64
#define WEFT_TOKEN_SECRET 65 /* 32 random bytes as hexadecimal digits */

typedef struct weft_token_row {
    char name[WEFT_TOKEN_NAME + 1];
    char scopes[WEFT_TOKEN_SCOPES]; /* separated by blanks */
    unsigned char digest[32];
    int64_t created_at, expires_at; /* seconds since 1970; expires_at 0: never */
    bool device;                    /* it was paired ("weft pair") */
} weft_token_row;

typedef struct weft_token_list {
    size_t count;
    weft_token_row rows[WEFT_TOKENS_MAX];
} weft_token_list;

/* "read,work" or "read work" as "read work". -EINVAL: one of them is no scope, or there is none. */
int weft__token_scopes(const char *text, char ret[WEFT_TOKEN_SCOPES]);
#define WEFT_TOKEN_SCOPE_NAMES "read, work, admin, metrics, exec, runner, standby"
/* 1 to 64 letters, digits, dots, dashes and underscores; not "token", which is the first start's. */
bool weft__token_is_name(const char *name);

/* Where something of this project is kept in the user's state folder, beside the trust record: KIND-DIGEST.EXT, with a name
 * that the project's identity gives. -ENOENT: there is no daemon's folder here; <0 with a sentence. */
int weft__state_path(const weft_layout *layout, const char *kind, const char *ext, char ret[PATH_MAX],
                     char ret_why[WEFT_TRUST_WHY]);

/* All of them; none when there is no file. <0 with a sentence: it cannot be read, or is not what Weft wrote. */
int weft__tokens_load(const weft_layout *layout, weft_token_list *ret, char ret_why[WEFT_TRUST_WHY]);
/* Make one; row has name, scopes and expires_at, the rest is filled in. The secret is not kept. -EEXIST, -ENOSPC there are
 * WEFT_TOKENS_MAX, or another failure; all with a sentence. */
int weft__tokens_add(const weft_layout *layout, weft_token_row *row, char ret_secret[WEFT_TOKEN_SECRET],
                     char ret_why[WEFT_TRUST_WHY]);
/* 1 it is gone, 0 there is none of this name; <0 with a sentence. */
int weft__tokens_remove(const weft_layout *layout, const char *name, char ret_why[WEFT_TRUST_WHY]);

#endif

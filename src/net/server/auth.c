/* Tokens as digests, and the brake for those who guess. */
#include "auth.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>

#include "hash.h"

static int copy_row(weft_auth *row, const weft_token *token, const weft_alloc *alloc) {
    const char *name = token->name ? token->name : "", *scopes = token->scopes ? token->scopes : "*";
    if (token->digest)
        memcpy(row->digest, token->digest, sizeof row->digest);
    else
        SHA256((const unsigned char *) token->token, strlen(token->token), row->digest);
    row->expires_at = token->expires_at;
    row->name = weft__strndup(alloc, name, strlen(name));
    row->scopes = weft__strndup(alloc, scopes, strlen(scopes));
    return row->name && row->scopes ? 0 : -ENOMEM;
}

int weft__auths_copy(weft_auths *auths, const weft_token *list, const weft_alloc *alloc) {
    size_t count = 0;
    *auths = (weft_auths){.asked = list != NULL};
    while (list && (list[count].token || list[count].digest))
        count++;
    if (!count)
        return 0;
    auths->rows = weft__zalloc(alloc, count * sizeof *auths->rows);
    if (!auths->rows)
        return -ENOMEM;
    auths->count = count;
    for (size_t i = 0; i < count; i++)
        if (copy_row(&auths->rows[i], &list[i], alloc) < 0) {
            weft__auths_done(auths, alloc);
            return -ENOMEM;
        }
    return 0;
}

void weft__auths_done(weft_auths *auths, const weft_alloc *alloc) {
    for (size_t i = 0; i < auths->count; i++) {
        weft__free(alloc, auths->rows[i].name);
        weft__free(alloc, auths->rows[i].scopes);
    }
    weft__free(alloc, auths->rows);
    *auths = (weft_auths){0};
}

static bool has_expired(const weft_auth *row, int64_t now) {
    return row->expires_at && now >= row->expires_at;
}

const weft_auth *weft__auths_with_digest(const weft_auths *auths, const unsigned char digest[WEFT_DIGEST], int64_t now) {
    const weft_auth *found = NULL;
    for (size_t i = 0; i < auths->count; i++)
        if (CRYPTO_memcmp(auths->rows[i].digest, digest, WEFT_DIGEST) == 0 && !has_expired(&auths->rows[i], now))
            found = &auths->rows[i];
    return found;
}

const weft_auth *weft__auths_find(const weft_auths *auths, weft_bytes token, int64_t now) {
    unsigned char digest[WEFT_DIGEST];
    SHA256((const unsigned char *) token.data, token.len, digest);
    return weft__auths_with_digest(auths, digest, now);
}

const weft_auth *weft__auths_with_id(const weft_auths *auths, uint64_t id, int64_t now) {
    for (size_t i = 0; i < auths->count; i++)
        if (auths->rows[i].id == id && !has_expired(&auths->rows[i], now))
            return &auths->rows[i];
    return NULL;
}

void weft__auth_seen(weft_auths *auths, const weft_auth *auth, int64_t now) {
    auths->rows[auth - auths->rows].seen_at = now;
}

bool weft__auth_same(const weft_auth *a, const weft_auth *b) {
    return CRYPTO_memcmp(a->digest, b->digest, sizeof a->digest) == 0 && strcmp(a->name, b->name) == 0 &&
           strcmp(a->scopes, b->scopes) == 0;
}

static size_t brake_slot(const char *address) {
    return weft__hash(address) % WEFT_BRAKE_SLOTS;
}

int64_t weft__brake_wait(const weft_brake *brake, const char *address, int64_t now) {
    size_t at = brake_slot(address);
    bool over = brake->slots[at].wrong >= WEFT_BRAKE_WRONG && now < brake->slots[at].until;
    return over ? brake->slots[at].until - now : 0;
}

void weft__brake_wrong(weft_brake *brake, const char *address, int64_t now) {
    size_t at = brake_slot(address);
    if (now >= brake->slots[at].until) {
        brake->slots[at].until = now + WEFT_BRAKE_MS;
        brake->slots[at].wrong = 0;
    }
    brake->slots[at].wrong++;
}

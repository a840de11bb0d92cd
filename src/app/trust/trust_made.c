/* Recording what Weft itself makes. Each step is recorded before it can be seen, so that a crash in between never leaves
 * something of ours that the next start would refuse. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trust.h"

/* An entry for the folder as it is now, with nothing but the folder in it. */
static int new_entry(const weft_layout *layout, weft_trust_entry *ret) {
    *ret = (weft_trust_entry){.aiwg = layout->aiwg};
    if (!getcwd(ret->path, sizeof ret->path))
        return -errno;
    return weft__trust_id(layout->home, ret->folder);
}

static int explain_step(int r, const char *path, char ret_why[WEFT_TRUST_WHY]) {
    snprintf(ret_why, WEFT_TRUST_WHY, "%.300s: %s", path, weft_strerror(r));
    return r;
}

static int put_new_entry(const weft_layout *layout, char ret_why[WEFT_TRUST_WHY]) {
    weft_trust_entry entry;
    int r = new_entry(layout, &entry);
    return r < 0 ? explain_step(r, layout->home, ret_why) : weft__trust_put(&entry, false, ret_why);
}

static int enter_locked(const weft_layout *layout, int (*make)(const weft_layout *layout), char ret_why[WEFT_TRUST_WHY]) {
    weft_trust trust;
    weft__trust_look(layout, &trust);
    if (trust.failed < 0) {
        memcpy(ret_why, trust.why, sizeof trust.why);
        return trust.failed;
    }
    bool known = trust.folder == WEFT_FOLDER_KNOWN;
    if (!known && (weft__trust_has_strange_journal(&trust, layout->store) || weft__trust_has_strange_token(&trust))) {
        snprintf(ret_why, WEFT_TRUST_WHY, "%s was not made by your Weft", layout->home);
        return -EKEYREJECTED;
    }
    int r = make(layout);
    if (r < 0)
        return explain_step(r, layout->home, ret_why);
    return known ? 0 : put_new_entry(layout, ret_why);
}

int weft__trust_enter(const weft_layout *layout, int (*make)(const weft_layout *layout), char ret_why[WEFT_TRUST_WHY]) {
    int lock = weft__trust_lock(ret_why);
    if (lock < 0)
        return lock;
    int r = enter_locked(layout, make, ret_why);
    weft__trust_unlock(lock);
    return r < 0 ? r : 0;
}

/* Change the entry of a project that is on record. The lock is held. */
static int change_locked(const weft_layout *layout, int (*change)(weft_trust_entry *entry, const void *ctx), const void *ctx,
                         char ret_why[WEFT_TRUST_WHY]) {
    weft_trust trust;
    weft__trust_look(layout, &trust);
    int r = trust.failed;
    if (r < 0)
        memcpy(ret_why, trust.why, sizeof trust.why);
    else if (trust.folder != WEFT_FOLDER_KNOWN) {
        snprintf(ret_why, WEFT_TRUST_WHY, "%s is not trusted", layout->home);
        r = -EKEYREJECTED;
    } else if ((r = change(&trust.entry, ctx)) >= 0)
        r = weft__trust_put(&trust.entry, false, ret_why);
    return r < 0 ? r : 0;
}

static int change_entry(const weft_layout *layout, int (*change)(weft_trust_entry *entry, const void *ctx), const void *ctx,
                        char ret_why[WEFT_TRUST_WHY]) {
    int lock = weft__trust_lock(ret_why);
    if (lock < 0)
        return lock;
    int r = change_locked(layout, change, ctx, ret_why);
    weft__trust_unlock(lock);
    return r;
}

static int set_token(weft_trust_entry *entry, const void *ctx) {
    snprintf(entry->token, sizeof entry->token, "%s", (const char *) ctx);
    return 0;
}

int weft__trust_token(const weft_layout *layout, const char *id, char ret_why[WEFT_TRUST_WHY]) {
    return change_locked(layout, set_token, id, ret_why);
}

/* ---- the configuration ---- */

typedef struct config_change {
    const weft_bytes *old; /* NULL: there was no file */
    weft_bytes now;
} config_change;

/* Whoever could write to the old file could have written anything into it: only what was on record is built upon. */
static int set_config(weft_trust_entry *entry, const void *ctx) {
    const config_change *change = ctx;
    char before[WEFT_TRUST_DIGEST];
    if (change->old) {
        weft__trust_digest(change->old->data, change->old->len, before);
        if (strcmp(before, entry->config) != 0)
            return -EKEYREJECTED;
    }
    weft__trust_digest(change->now.data, change->now.len, entry->config);
    return 0;
}

int weft__trust_config(const weft_layout *layout, const weft_bytes *old, weft_bytes now, char ret_why[WEFT_TRUST_WHY]) {
    int r = change_entry(layout, set_config, &(config_change){old, now}, ret_why);
    return r == -EKEYREJECTED ? 0 : r < 0 ? r : 1;
}

/* ---- the journal ---- */

static int set_opening(weft_trust_entry *entry, const void *ctx) {
    (void) ctx;
    entry->opening = true;
    return 0;
}

int weft__trust_open_begin(const weft_layout *layout, const char *path, char ret_epoch[WEFT_EPOCH + 1],
                           char ret_why[WEFT_TRUST_WHY]) {
    weft_trust trust;
    weft__trust_look(layout, &trust);
    if (trust.failed < 0) {
        memcpy(ret_why, trust.why, sizeof trust.why);
        return trust.failed;
    }
    if (weft__trust_has_strange_journal(&trust, path)) {
        snprintf(ret_why, WEFT_TRUST_WHY, "%.300s is not the journal that was trusted", path);
        return -EKEYREJECTED;
    }
    char id[WEFT_TRUST_ID];
    bool same = !trust.entry.opening && weft__trust_id(path, id) == 0 && strcmp(id, trust.entry.journal) == 0;
    snprintf(ret_epoch, WEFT_EPOCH + 1, "%s", same ? trust.entry.epoch : "");
    return change_entry(layout, set_opening, NULL, ret_why);
}

typedef struct opened {
    const char *path, *epoch;
} opened;

static int set_opened(weft_trust_entry *entry, const void *ctx) {
    const opened *is = ctx;
    char log[PATH_MAX + 16];
    snprintf(log, sizeof log, "%s-wal", is->path);
    entry->opening = false;
    if (weft__trust_id(is->path, entry->journal) < 0)
        *entry->journal = '\0';
    if (weft__trust_id(log, entry->log) < 0)
        *entry->log = '\0';
    if (is->epoch)
        snprintf(entry->epoch, sizeof entry->epoch, "%s", is->epoch);
    return 0;
}

int weft__trust_open_end(const weft_layout *layout, const char *path, const char *epoch, char ret_why[WEFT_TRUST_WHY]) {
    return change_entry(layout, set_opened, &(opened){path, epoch}, ret_why);
}

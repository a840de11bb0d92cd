/* Worktrees of a snapshot world's project, and calls that bring their work into it and wait for the answer. Everything is
 * static and inline. */
#ifndef MERGE_WORLD_H
#define MERGE_WORLD_H

#include "snapshot_world.h"
#include "worktrees.h"

typedef struct merge_world {
    snapshot_world s;
    char said[1000]; /* "path reason|path reason" */
    char to[WEFT_SNAPSHOT_HEX], tip[WEFT_SNAPSHOT_HEX];
    char before[WEFT_SNAPSHOT_HEX], after[WEFT_SNAPSHOT_HEX];
    size_t files;
    bool in_worktree, committed;
    size_t count; /* of a list */
    weft_worktree_info info;
} merge_world;

static inline void merge_world_made(void *ctx, const weft_worktree *made) {
    merge_world *m = ctx;
    m->s.answers++;
    m->s.r = made->r;
    snprintf(m->s.message, sizeof m->s.message, "%s", made->message);
}

static inline void merge_world_make(merge_world *m, const char *owner, bool changes) {
    weft_worktree_order order = {.owner = owner, .asker = "x", .changes = changes};
    int before = m->s.answers;
    CHECK_INT(weft__worktree_make(m->s.snapshots, &order, merge_world_made, m), 0);
    GIT_UNTIL(&m->s.w, m->s.answers > before);
    CHECK_INT(m->s.r, 0);
}

static inline void merge_world_merged(void *ctx, const weft_merge_result *result) {
    merge_world *m = ctx;
    size_t used = 0;
    m->s.answers++;
    m->s.r = result->r;
    snprintf(m->s.message, sizeof m->s.message, "%s", result->message);
    *m->said = '\0';
    for (size_t i = 0; i < result->listed && used < sizeof m->said; i++)
        used += (size_t) snprintf(m->said + used, sizeof m->said - used, "%s%s %s", i ? "|" : "", result->conflicts[i].path,
                                  result->conflicts[i].reason);
    snprintf(m->to, sizeof m->to, "%s", result->merged.to ? result->merged.to : "");
    snprintf(m->tip, sizeof m->tip, "%s", result->merged.tip ? result->merged.tip : "");
    snprintf(m->before, sizeof m->before, "%s", result->merged.before ? result->merged.before : "");
    snprintf(m->after, sizeof m->after, "%s", result->merged.after ? result->merged.after : "");
    m->files = result->merged.files;
    m->in_worktree = result->in_worktree;
    m->committed = result->committed;
}

/* Merge the worktree of this owner; that it is on record is said at once, as a hub would. */
static inline int merge_world_merge(merge_world *m, const char *owner, weft_merge_how how) {
    char branch[96];
    weft_merge what = {.owner = owner, .name = owner, .branch = branch, .how = how, .message = "by the agent\n"};
    snprintf(branch, sizeof branch, "weft/%s", owner);
    int before = m->s.answers;
    int r = weft__worktree_merge(m->s.snapshots, &what, merge_world_merged, m);
    if (r < 0)
        return r;
    GIT_UNTIL(&m->s.w, m->s.answers > before);
    if (m->s.r == 0 && !*m->said)
        weft__worktree_merge_recorded(m->s.snapshots);
    return m->s.r;
}

#endif

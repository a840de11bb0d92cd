/* Snapshots of a git world's folder, and calls that wait for their answers. Everything is static and inline. */
#ifndef SNAPSHOT_WORLD_H
#define SNAPSHOT_WORLD_H

#include "git_world.h"
#include "snapshots.h"

typedef struct snapshot_world {
    git_world w;
    weft_snapshots *snapshots;
    /* Of the last answer. */
    int answers, r;
    char message[512], tree[WEFT_SNAPSHOT_HEX];
    char text[1 << 16]; /* a list in one line, a diff itself, conflicts */
    weft_changed_list list;
    bool truncated;
    char from[WEFT_SNAPSHOT_HEX], to[WEFT_SNAPSHOT_HEX];
    size_t files, conflicts, left;
} snapshot_world;

static inline void snapshot_world_say(snapshot_world *s, const char *form, ...) __attribute__((format(printf, 2, 3)));
static inline void snapshot_world_say(snapshot_world *s, const char *form, ...) {
    size_t len = strlen(s->text);
    va_list list;
    va_start(list, form);
    vsnprintf(s->text + len, sizeof s->text - len, form, list);
    va_end(list);
}

static inline void snapshot_world_undone(void *ctx, const weft_undone *undone) {
    snapshot_world *s = ctx;
    s->answers++;
    s->files = undone->files;
    s->left = undone->left;
    snprintf(s->from, sizeof s->from, "%s", undone->from);
    snprintf(s->to, sizeof s->to, "%s", undone->to);
}

static inline int snapshot_world_open(snapshot_world *s, const char *folder, weft_snapshots_opts opts) {
    char path[PATH_MAX], state[PATH_MAX];
    snprintf(path, sizeof path, "%s", at(&s->w, folder));
    snprintf(state, sizeof state, "%s/state", s->w.folder);
    mkdir(state, 0700);
    opts.loop = s->w.loop;
    opts.folder = path;
    opts.state = state;
    opts.on_undone = snapshot_world_undone;
    opts.ctx = s;
    return weft__snapshots_new(&opts, &s->snapshots);
}

static inline void snapshot_world_begin(snapshot_world *s) {
    memset(s, 0, sizeof *s);
    git_world_begin(&s->w);
    put(&s->w, "repo/a", "1\n2\n3\n");
    dir(&s->w, "repo/sub");
    put(&s->w, "repo/sub/b", "b\n");
    GIT(&s->w, "add", ".");
    GIT(&s->w, "commit", "-qm", "first");
    CHECK_INT(snapshot_world_open(s, "repo", (weft_snapshots_opts){0}), 0);
}

static inline void snapshot_world_end(snapshot_world *s) {
    s->snapshots = weft__snapshots_free(s->snapshots);
    git_world_end(&s->w);
}

typedef struct snapshot_asked {
    weft_snapshot_wait wait;
    snapshot_world *s;
} snapshot_asked;

static inline void snapshot_world_taken(weft_snapshot_wait *wait, const weft_snapshot *snapshot) {
    snapshot_world *s = WEFT_CONTAINER(wait, snapshot_asked, wait)->s;
    s->answers++;
    s->r = snapshot->r;
    snprintf(s->message, sizeof s->message, "%s", snapshot->message);
    snprintf(s->tree, sizeof s->tree, "%s", snapshot->tree);
}

/* Take one; its tree into ret. */
static inline int snapshot_world_take(snapshot_world *s, const char *name, char ret[WEFT_SNAPSHOT_HEX]) {
    snapshot_asked asked = {.wait.on_taken = snapshot_world_taken, .s = s};
    int before = s->answers;
    int r = weft__snapshots_take(s->snapshots, name, 60000, &asked.wait);
    if (r < 0)
        return r;
    CHECK_INT(s->answers, before);
    GIT_UNTIL(&s->w, s->answers > before);
    if (ret)
        memcpy(ret, s->tree, WEFT_SNAPSHOT_HEX);
    return s->r;
}

static inline void snapshot_world_say_file(snapshot_world *s, const weft_changed_file *file) {
    snapshot_world_say(s, "%s%c %s", *s->text ? "|" : "", weft__changed_names[file->change][0] - 'a' + 'A', file->path);
    if (file->from)
        snapshot_world_say(s, "<%s", file->from);
    if (file->old_mode && file->new_mode && file->old_mode != file->new_mode)
        snapshot_world_say(s, " %o>%o", file->old_mode, file->new_mode);
    if (file->additions || file->deletions)
        snapshot_world_say(s, " +%d-%d", (int) file->additions, (int) file->deletions);
    snapshot_world_say(s, "%s%s%s", file->binary ? " binary" : "", file->submodule ? " submodule" : "",
                       file->too_large ? " large" : "");
}

static inline void snapshot_world_compared(void *ctx, const weft_compared *compared) {
    snapshot_world *s = ctx;
    s->answers++;
    s->r = compared->r;
    snprintf(s->message, sizeof s->message, "%s", compared->message);
    snprintf(s->tree, sizeof s->tree, "%s", compared->to);
    s->truncated = compared->truncated;
    s->text[0] = '\0';
    if (compared->list)
        s->list = *compared->list;
    for (size_t i = 0; compared->list && i < compared->list->count; i++)
        snapshot_world_say_file(s, &compared->list->files[i]);
    snapshot_world_say(s, "%.*s", (int) compared->text.len, compared->text.data);
}

static inline int snapshot_world_compare(snapshot_world *s, weft_comparison what) {
    int before = s->answers;
    int r = weft__snapshots_compare(s->snapshots, &what, snapshot_world_compared, s);
    if (r < 0)
        return r;
    GIT_UNTIL(&s->w, s->answers > before);
    return s->r;
}

#define COMPARE(s, ...) snapshot_world_compare(s, (weft_comparison){__VA_ARGS__})

static inline void snapshot_world_undid(void *ctx, const weft_undo_result *result) {
    snapshot_world *s = ctx;
    s->r = result->r;
    snprintf(s->message, sizeof s->message, "%s", result->message);
    s->text[0] = '\0';
    for (size_t i = 0; i < result->listed; i++)
        snapshot_world_say(s, "%s%s: %s", i ? "|" : "", result->conflicts[i].path, result->conflicts[i].reason);
    s->conflicts = result->conflict_count;
    snapshot_world_undone(s, &result->undone);
}

/* Put back; what it did is on record then, as a hub would have it. */
static inline int snapshot_world_undo(snapshot_world *s, weft_undo what) {
    int before = s->answers;
    what.owner = what.owner ? what.owner : "task-0001";
    int r = weft__snapshots_undo(s->snapshots, &what, snapshot_world_undid, s);
    if (r < 0)
        return r;
    GIT_UNTIL(&s->w, s->answers > before);
    if (s->r == 0 && !s->conflicts)
        weft__snapshots_undo_recorded(s->snapshots);
    return s->r;
}

#define UNDO(s, ...) snapshot_world_undo(s, (weft_undo){__VA_ARGS__})
#define CHECK_SNAP_SAID(s, want) CHECK_TEXT((s)->text, strlen((s)->text), want)

#endif

/* Which snapshots are kept, on the thread: one ref of ours leads to a tree that has them as its branches, so that git does
 * not throw away what they need, and throws away the rest. It is changed in one step and never deleted: deleting a ref may
 * mean to write the repository's packed-refs anew, which is not ours.
 *
 *     refs/weft/FOLDER ──▶ latest                       what our index knows
 *                          b0000 ──▶ task-0001.before   64 tasks each, so that little is written for one
 *                                    task-0001.rules
 *                                    task-0001.after  */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshots_private.h"

#define TASKS_IN_ONE 64
#define LISTING (16u << 20)

/* By the folder's path: two hubs in one repository have one each. */
void weft__snap_ref_of(const char *folder, char ret[48]) {
    uint64_t hash = 14695981039346656037u;
    for (const char *at = folder; *at; at++)
        hash = (hash ^ (unsigned char) *at) * 1099511628211u;
    snprintf(ret, 48, "refs/weft/%016llx", (unsigned long long) hash);
}

static void name_ref(const snap *s, char ret[48]) {
    weft__snap_ref_of(s->own->folder, ret);
}

static size_t owner_len(const char *name) {
    return strcspn(name, ".");
}

static void name_branch(const char *name, char ret[16]) {
    const char *digits = name + strcspn(name, "0123456789");
    snprintf(ret, 16, "b%04llu", strtoull(digits, NULL, 10) / TASKS_IN_ONE % 1000000);
}

/* ---- trees that have only trees ---- */

typedef struct branch {
    char name[80], tree[WEFT_SNAPSHOT_HEX];
} branch;
typedef struct branches {
    branch *list;
    size_t count, cap;
} branches;

static bool is_keep_name(const char *name) {
    size_t len = strlen(name);
    return len && len < sizeof((branch *) 0)->name &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == len;
}

static branch *find_branch(const branches *b, const char *name) {
    for (size_t i = 0; i < b->count; i++)
        if (strcmp(b->list[i].name, name) == 0)
            return &b->list[i];
    return NULL;
}

static bool set_branch(snap *s, branches *b, const char *name, const char *tree) {
    branch *found = find_branch(b, name);
    if (!found && b->count == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 64;
        branch *more = weft__resize(s->own->alloc, b->list, cap * sizeof *more);
        if (!more)
            return weft__snap_fail(s, -ENOMEM);
        b->list = more;
        b->cap = cap;
    }
    if (!found)
        found = &b->list[b->count++];
    snprintf(found->name, sizeof found->name, "%s", name);
    snprintf(found->tree, sizeof found->tree, "%s", tree);
    return true;
}

static void drop_branch(branches *b, const char *name) {
    size_t owner = owner_len(name);
    for (size_t i = 0; i < b->count;) {
        const char *is = b->list[i].name;
        bool gone = name[owner] ? strcmp(is, name) == 0 : owner_len(is) == owner && memcmp(is, name, owner) == 0;
        if (gone)
            b->list[i] = b->list[--b->count];
        else
            i++;
    }
}

/* "040000 tree <name>\tname". What does not look like ours is not kept. */
static bool read_branches(snap *s, const char *tree, branches *ret) {
    const char *const argv[] = {"ls-tree", "-z", "--full-tree", tree, NULL};
    ret->count = 0;
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .max_output = LISTING, .may_fail = true}))
        return false;
    weft_bytes said = s->end.exit_code == 0 ? weft__snap_output(s) : (weft_bytes){"", 0};
    bool good = true;
    for (const char *at = said.data, *end = at + said.len; good && at < end; at += strlen(at) + 1) {
        char hex[WEFT_SNAPSHOT_HEX];
        const char *tab = strchr(at, '\t');
        if (!tab || sscanf(at, "040000 tree %64[0-9a-f]", hex) != 1 || !weft__snap_is_hex(hex) || !is_keep_name(tab + 1))
            continue;
        good = set_branch(s, ret, tab + 1, hex);
    }
    return good;
}

static bool write_branches(snap *s, const branches *b, char ret[WEFT_SNAPSHOT_HEX]) {
    static const char *const argv[] = {"mktree", "-z", "--missing", NULL};
    weft_buf lines = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < b->count; i++) {
        char line[192];
        int n = snprintf(line, sizeof line, "040000 tree %s\t%s", b->list[i].tree, b->list[i].name);
        r = weft__buf_put(&lines, s->own->alloc, line, (size_t) n + 1);
    }
    weft_bytes input = {weft__buf_len(&lines) ? weft__buf_head(&lines) : "", weft__buf_len(&lines)};
    bool good = r == 0 ? weft__snap_git(s, &(snap_run){.argv = argv, .input = input}) && weft__snap_take_hex(s, ret)
                       : weft__snap_fail(s, r);
    weft__buf_done(&lines, s->own->alloc);
    return good;
}

/* ---- the ref ---- */

/* A lock that is there before our first change is of a program that was killed: nobody else writes this ref. */
static void remove_ref_lock(const snap *s, const char *ref) {
    const snap_place *place = &s->own->place;
    char path[PATH_MAX + 80];
    snprintf(path, sizeof path, "%s/%s.lock", place->git ? place->repository.common : place->own, ref);
    unlink(path);
}

static bool read_kept(snap *s) {
    char ref[48];
    const char *const argv[] = {"rev-parse", "--verify", "--quiet", "--end-of-options", ref, NULL};
    if (s->own->kept_known)
        return true;
    name_ref(s, ref);
    remove_ref_lock(s, ref);
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = s->own->place.git, .may_fail = true}))
        return false;
    *s->own->kept = '\0';
    s->own->kept_known = s->end.exit_code != 0 || weft__snap_take_hex(s, s->own->kept);
    return s->own->kept_known;
}

/* A power cut may leave a ref's file empty: git does not sync it everywhere. */
static bool remove_broken_ref(snap *s, const char *ref) {
    const snap_place *place = &s->own->place;
    char path[PATH_MAX + 80];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", place->git ? place->repository.common : place->own, ref);
    return strstr(s->end.errors, "unable to resolve reference") && lstat(path, &st) == 0 && !S_ISDIR(st.st_mode) &&
           unlink(path) == 0;
}

static bool write_kept(snap *s, const char *tree) {
    char ref[48];
    const char *const argv[] = {"update-ref", "--no-deref", ref, tree, NULL};
    snap_run run = {.argv = argv, .theirs = s->own->place.git, .may_fail = true};
    name_ref(s, ref);
    if (strcmp(tree, s->own->kept) == 0)
        return true;
    if ((s->own->place.git && !weft__snap_logs_are_plain(s, ref)) || !weft__snap_git(s, &run))
        return false;
    if (s->end.exit_code != 0 && remove_broken_ref(s, ref) && !weft__snap_git(s, &run))
        return false;
    if (s->end.exit_code != 0)
        return weft__snap_refuse(s, -EREMOTEIO, "git update-ref: %s", s->end.errors);
    snprintf(s->own->kept, sizeof s->own->kept, "%s", tree);
    return true;
}

/* In a repository of ours nobody else tidies up. */
static void tidy_own(snap *s) {
    static const char *const argv[] = {
        "-c",     "gc.auto=2000", "-c", "gc.autoDetach=false", "-c", "gc.pruneExpire=1.hour.ago", "gc",
        "--auto", "--quiet",      NULL};
    if (!s->own->place.git)
        weft__snap_git(s, &(snap_run){.argv = argv, .may_fail = true});
}

/* ---- keeping ---- */

static bool is_before(const snap_keep *keep) {
    return keep->tree && strcmp(keep->name + owner_len(keep->name), ".before") == 0;
}

static bool set_rules(snap *s, branches *in, const char *before, const char *rules) {
    char name[96];
    snprintf(name, sizeof name, "%.*s.rules", (int) owner_len(before), before);
    if (*rules)
        return set_branch(s, in, name, rules);
    drop_branch(in, name);
    return true;
}

/* rules: of what lies before. */
static bool keep_in_branch(snap *s, branches *root, const char *name, const snap_keep *keeps, size_t count,
                           const char *rules) {
    branches in = {0};
    branch *found = find_branch(root, name);
    char tree[WEFT_SNAPSHOT_HEX], of[16];
    bool good = !found || read_branches(s, found->tree, &in);
    for (size_t i = 0; good && i < count; i++) {
        name_branch(keeps[i].name, of);
        if (strcmp(of, name) != 0)
            continue;
        if (keeps[i].tree)
            good = set_branch(s, &in, keeps[i].name, keeps[i].tree) &&
                   (!is_before(&keeps[i]) || set_rules(s, &in, keeps[i].name, rules));
        else
            drop_branch(&in, keeps[i].name);
    }
    if (good && in.count)
        good = write_branches(s, &in, tree) && set_branch(s, root, name, tree);
    else if (good)
        drop_branch(root, name);
    weft__free(s->own->alloc, in.list);
    return good;
}

static bool is_first_of_branch(const snap_keep *keeps, size_t i) {
    char name[16], other[16];
    name_branch(keeps[i].name, name);
    for (size_t k = 0; k < i; k++) {
        name_branch(keeps[k].name, other);
        if (strcmp(name, other) == 0)
            return false;
    }
    return true;
}

bool weft__snap_keep(snap *s, const snap_keep *keeps, size_t count) {
    branches root = {0};
    char name[16], tree[WEFT_SNAPSHOT_HEX], rules[WEFT_SNAPSHOT_HEX] = "";
    bool good = read_kept(s) && (!*s->own->kept || read_branches(s, s->own->kept, &root)), before = false;
    for (size_t i = 0; i < count; i++)
        before |= is_before(&keeps[i]);
    if (good && before)
        good = weft__snap_rules(s, rules);
    for (size_t i = 0; good && i < count; i++) {
        name_branch(keeps[i].name, name);
        if (is_first_of_branch(keeps, i))
            good = keep_in_branch(s, &root, name, keeps, count, rules);
    }
    if (good && *s->own->latest)
        good = set_branch(s, &root, "latest", s->own->latest);
    good = good && (root.count == 0 || (write_branches(s, &root, tree) && write_kept(s, tree)));
    weft__free(s->own->alloc, root.list);
    return good;
}

bool weft__snap_kept(snap *s, const char *name, char ret[WEFT_SNAPSHOT_HEX]) {
    branches root = {0}, in = {0};
    char of[16];
    name_branch(name, of);
    bool good = read_kept(s) && (!*s->own->kept || read_branches(s, s->own->kept, &root));
    const branch *found = good ? find_branch(&root, of) : NULL;
    if (found)
        good = read_branches(s, found->tree, &in);
    found = good ? find_branch(&in, name) : NULL;
    snprintf(ret, WEFT_SNAPSHOT_HEX, "%s", found ? found->tree : "");
    weft__free(s->own->alloc, root.list);
    weft__free(s->own->alloc, in.list);
    return good;
}

static bool add_owners(snap *s, const branches *in, weft_buf *ret) {
    for (size_t i = 0; i < in->count; i++) {
        const char *name = in->list[i].name;
        if (weft__buf_put(ret, s->own->alloc, name, owner_len(name)) < 0 || weft__buf_put(ret, s->own->alloc, "", 1) < 0)
            return weft__snap_fail(s, -ENOMEM);
    }
    return true;
}

bool weft__snap_owners(snap *s, weft_buf *ret) {
    branches root = {0}, in = {0};
    bool good = read_kept(s) && (!*s->own->kept || read_branches(s, s->own->kept, &root));
    for (size_t i = 0; good && i < root.count; i++)
        if (strcmp(root.list[i].name, "latest") != 0)
            good = read_branches(s, root.list[i].tree, &in) && add_owners(s, &in, ret);
    weft__free(s->own->alloc, root.list);
    weft__free(s->own->alloc, in.list);
    if (good)
        tidy_own(s);
    return good;
}

/* Which worktrees there are, what each holds that is nowhere else, and removing those that hold nothing.
 *
 * Work that is nowhere else: files that differ from the last commit or that git does not know, and commits that no other
 * branch, tag or remote has. It is looked for with an index of our own, so that what an agent wrote into the worktree's
 * hides nothing. Ignored files do not count. A removal is written down first and goes on where it was interrupted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worktrees_private.h"

#define LISTING (64u << 20)
#define LOOKS_MAX 1000

/* ---- its size ---- */

typedef struct tree_size {
    uint64_t bytes, files;
} tree_size;

/* Links are not followed, and other file systems not entered. */
static void add_size(int folder, dev_t dev, int depth, tree_size *ret) {
    DIR *dir = fdopendir(folder);
    struct stat st;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != dev)
            continue;
        ret->bytes += (uint64_t) st.st_blocks * 512;
        ret->files += !S_ISDIR(st.st_mode);
        int inner = S_ISDIR(st.st_mode) && depth < 256
                        ? openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                        : -1;
        if (inner >= 0)
            add_size(inner, dev, depth + 1, ret);
    }
    if (dir)
        closedir(dir);
    else
        close(folder);
}

static void measure(tree_look *look) {
    struct stat st;
    tree_size size = {0};
    int folder = open(look->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 && fstat(folder, &st) == 0)
        add_size(folder, st.st_dev, 0, &size);
    else if (folder >= 0)
        close(folder);
    look->info.bytes = size.bytes;
    look->info.files = size.files;
}

/* ---- what it holds ---- */

static size_t count_texts(weft_bytes texts) {
    size_t count = 0;
    for (size_t i = 0; i < texts.len; i++)
        count += texts.data[i] == '\0';
    return count;
}

/* Against the commit that is checked out there. */
static bool count_files(snap *s, tree_look *look, const char *head) {
    char index[PATH_MAX + 32];
    const char *const read[] = {"read-tree", head, NULL};
    static const char *const refresh[] = {"update-index", "-q", "--refresh", NULL};
    static const char *const changed[] = {"diff-files", "-z", "--name-only", "--ignore-submodules=none", NULL};
    static const char *const unknown[] = {"ls-files", "-z", "--others", "--exclude-standard", "--directory", NULL};
    snprintf(index, sizeof index, "%s/look.index", s->own->place.own);
    unlink(index);
    int folder = open(look->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return weft__snap_fail(s, -errno);
    snap_run run = {.argv = read, .index = index, .work_tree = look->path, .folder = folder, .max_output = LISTING};
    bool good = weft__snap_git(s, &run);
    run.argv = refresh;
    run.may_fail = true;
    good = good && weft__snap_git(s, &run);
    run.argv = changed;
    run.may_fail = false;
    good = good && weft__snap_git(s, &run);
    look->info.changed = good ? count_texts(weft__snap_output(s)) : 0;
    run.argv = unknown;
    good = good && weft__snap_git(s, &run);
    look->info.unknown = good ? count_texts(weft__snap_output(s)) : 0;
    close(folder);
    unlink(index);
    return good;
}

/* Commits that lead to what, but to no branch of somebody else's, tag or remote, nor to but; NULL: that alone. Branches of
 * other worktrees do not count: two that have the same commits would each hold nothing, and both would go. */
static bool count_only_here(snap *s, const char *what, const char *but, uint64_t *ret) {
    char text[32];
    const char *const argv[] = {"rev-list",   "--count",   what,     "--not", "--exclude=weft/*",
                                "--branches", "--remotes", "--tags", but,     NULL};
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .theirs = true}))
        return false;
    weft_bytes said = weft__snap_output(s);
    snprintf(text, sizeof text, "%.*s", said.len < 31 ? (int) said.len : 31, said.data);
    *ret = strtoull(text, NULL, 10);
    return true;
}

/* What was merged as another commit is elsewhere too, as long as that one is. */
static bool find_merged(snap *s, const tree_look *look, char ret[WEFT_SNAPSHOT_HEX]) {
    char tip[WEFT_SNAPSHOT_HEX], now[WEFT_SNAPSHOT_HEX], what[WEFT_SNAPSHOT_HEX + 16], is[2][WEFT_SNAPSHOT_HEX];
    uint64_t only_here = 1;
    *ret = '\0';
    weft__snap_tree_merged_read(s, s->own->state, look->name, tip, now);
    if (!*tip)
        return true;
    snprintf(what, sizeof what, "%s^{commit}", tip);
    if (!weft__snap_tree_rev(s, what, is[0]))
        return false;
    snprintf(what, sizeof what, "%s^{commit}", now);
    if (!weft__snap_tree_rev(s, what, is[1]))
        return false;
    if (!*is[0] || !*is[1])
        return true;
    if (!count_only_here(s, now, NULL, &only_here))
        return false;
    snprintf(ret, WEFT_SNAPSHOT_HEX, "%s", only_here ? "" : tip);
    return true;
}

static bool count_commits(snap *s, const tree_look *look, const char *what, uint64_t *ret) {
    char merged[WEFT_SNAPSHOT_HEX];
    return find_merged(s, look, merged) && count_only_here(s, what, *merged ? merged : NULL, ret);
}

/* HEAD of the worktree as it is written there; a branch's name is followed by git. */
static bool find_heads(snap *s, tree_look *look, char head[WEFT_SNAPSHOT_HEX]) {
    weft_repository found;
    char ref[160], path[PATH_MAX + 16], text[300] = "";
    snprintf(ref, sizeof ref, "refs/heads/%s", look->branch);
    if (!weft__snap_tree_rev(s, ref, look->tip))
        return false;
    *head = '\0';
    if (weft__repository_find(look->path, &found) < 0 || strcmp(found.common, s->own->place.repository.common) != 0)
        return true;
    snprintf(path, sizeof path, "%s/HEAD", found.dir);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    snprintf(path, sizeof path, "%s/MERGE_HEAD", found.dir);
    look->info.merging = access(path, F_OK) == 0;
    snprintf(path, sizeof path, "%s/locked", found.dir);
    look->info.locked = access(path, F_OK) == 0;
    const char *what = strncmp(text, "ref: refs/heads/", 16) == 0 ? text + 5 : weft__snap_is_hex(text) ? text : NULL;
    return !what || weft__snap_tree_rev(s, what, head);
}

/* What cannot be looked at holds something, as far as anybody knows. */
bool weft__snap_tree_look_inside(snap *s, tree_look *look) {
    char head[WEFT_SNAPSHOT_HEX];
    struct stat st;
    uint64_t more = 0;
    look->info.changed = look->info.unknown = look->info.commits = 0;
    look->info.merging = look->info.locked = false;
    look->info.there = lstat(look->path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
    if (!find_heads(s, look, head))
        return false;
    if (*look->tip && !count_commits(s, look, look->tip, &look->info.commits))
        return false;
    if (look->info.there && *head && strcmp(head, look->tip) != 0 && !count_commits(s, look, head, &more))
        return false;
    look->info.commits += more;
    look->info.unclear = look->info.there && !*head;
    if (!look->info.there || !*head)
        return true;
    return count_files(s, look, head);
}

/* ---- all of them ---- */

static bool push_look(snap *s, tree_looks *to, const tree_look *look) {
    if (to->count == to->cap) {
        size_t cap = to->cap ? 2 * to->cap : 16;
        tree_look *more = weft__resize(s->own->alloc, to->list, cap * sizeof *more);
        if (!more)
            return weft__snap_fail(s, -ENOMEM);
        to->list = more;
        to->cap = cap;
    }
    to->list[to->count++] = *look;
    return true;
}

void weft__snap_tree_looks_done(snap *s, tree_looks *looks) {
    looks->list = weft__free(s->own->alloc, looks->list);
    looks->count = looks->cap = 0;
}

static bool look_at(snap *s, const char *name, bool sizes, tree_looks *ret) {
    tree_look look = {0};
    snap_worktree tree = {0};
    char step[16];
    if (!weft__snap_tree_record_read(s, name, &tree, step))
        return true; /* of another journal, or nobody's: left alone */
    snprintf(look.name, sizeof look.name, "%s", name);
    snprintf(look.owner, sizeof look.owner, "%s", tree.owner);
    snprintf(look.branch, sizeof look.branch, "%s", tree.branch);
    if (snprintf(look.path, sizeof look.path, "%s/worktrees/%s", s->own->state, name) >= (int) sizeof look.path)
        return true;
    look.removing = strcmp(step, "removing") == 0;
    look.info.making = strcmp(step, "making") == 0;
    if (sizes)
        measure(&look);
    return (look.removing || look.info.making || weft__snap_tree_look_inside(s, &look)) && push_look(s, ret, &look);
}

static int compare_looks(const void *a, const void *b) {
    return strcmp(((const tree_look *) a)->name, ((const tree_look *) b)->name);
}

static void show_looks(tree_looks *looks) {
    if (looks->count)
        qsort(looks->list, looks->count, sizeof *looks->list, compare_looks);
    for (size_t i = 0; i < looks->count; i++) {
        tree_look *look = &looks->list[i];
        look->info.name = look->name;
        look->info.owner = look->owner;
        look->info.branch = look->branch;
        look->info.path = look->path;
        look->info.tip = look->tip;
    }
}

bool weft__snap_tree_looks(snap *s, const char *name, bool sizes, tree_looks *ret) {
    char path[PATH_MAX + 16];
    bool good = weft__snap_find(s);
    if (good && !s->own->place.git)
        return true;
    snprintf(path, sizeof path, "%s/worktrees", s->own->state);
    DIR *dir = good && !name ? opendir(path) : NULL;
    for (struct dirent *entry; good && dir && ret->count < LOOKS_MAX && (entry = readdir(dir));) {
        char is[64];
        size_t len = strlen(entry->d_name);
        if (len <= 6 || len - 6 >= sizeof is || strcmp(entry->d_name + len - 6, ".state") != 0 || *entry->d_name == '.')
            continue;
        snprintf(is, sizeof is, "%.*s", (int) (len - 6), entry->d_name);
        good = look_at(s, is, sizes, ret);
    }
    if (dir)
        closedir(dir);
    if (good && name)
        good = look_at(s, name, sizes, ret);
    show_looks(ret);
    return good;
}

/* ---- removing ---- */

static bool move_away(snap *s, const char *path, const char *gone) {
    if (rename(path, gone) == 0 || errno == ENOENT)
        return true;
    return errno == ENOTEMPTY || errno == EEXIST ? weft__snap_remove_whole(s, path) : weft__snap_fail(s, -errno);
}

/* First the folder is put out of the way in one step, so that nobody works in half of it. The branch goes only if it is at
 * the commit that was looked at, which is written down for a removal that is interrupted. What we know of it stays until
 * its end is in the journal: weft__worktree_forget(). */
bool weft__snap_tree_remove(snap *s, const tree_look *look) {
    snap_worktree tree = {0};
    char step[16], ref[160], gone[PATH_MAX + 32], real[PATH_MAX], folder[PATH_MAX + 80], kept[48] = "refs/weft/none";
    const char *const forget[] = {"worktree", "remove", "--force", "--force", look->path, NULL};
    const char *const unbranch[] = {"update-ref", "-d", ref, tree.base, NULL};
    const char *const unkeep[] = {"update-ref", "-d", kept, NULL};
    if (!weft__snap_tree_record_read(s, look->name, &tree, step))
        return weft__snap_refuse(s, -EREMOTEIO, "nothing is known of a worktree %s", look->name);
    if (strcmp(step, "removing") != 0 && *look->tip)
        snprintf(tree.base, sizeof tree.base, "%s", look->tip);
    if (!weft__snap_tree_record_write(s, &tree, "removing"))
        return false;
    snprintf(ref, sizeof ref, "refs/heads/%s", tree.branch);
    snprintf(gone, sizeof gone, "%s/worktrees/%s.state/gone", s->own->state, look->name);
    /* Its snapshots are kept with the project's as long as their tasks are. */
    if (realpath(s->own->state, real)) {
        snprintf(folder, sizeof folder, "%s/worktrees/%s", real, look->name);
        weft__snap_ref_of(folder, kept);
    }
    return move_away(s, look->path, gone) &&
           weft__snap_git(s, &(snap_run){.argv = unkeep, .theirs = true, .may_fail = true}) &&
           weft__snap_git(s, &(snap_run){.argv = forget, .theirs = true, .may_fail = true}) &&
           weft__snap_remove_whole(s, gone) &&
           weft__snap_git(s, &(snap_run){.argv = unbranch, .theirs = true, .may_fail = true});
}

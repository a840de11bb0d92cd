/* Which paths git ignores, on the thread: by the rules that a tree has, or by those of the checkout as it is. A snapshot has
 * no files that are ignored; so a file that is new in one may have been there all the time. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshots_private.h"

#define RULES ".gitignore"

static bool is_rules(const char *path) {
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, RULES) == 0;
}

/* Another repository is told apart by itself. */
static bool is_new_file(const snap_entry *entry) {
    return !entry->old_mode && entry->new_mode != SNAP_GITLINK;
}

static bool has_new_file(const snap_entries *entries) {
    for (size_t i = 0; i < entries->count; i++)
        if (is_new_file(&entries->list[i]))
            return true;
    return false;
}

/* With "./" in front a name is a path, whatever it begins with. */
static int put_new_files(const snap *s, const snap_entries *entries, weft_buf *ret) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < entries->count; i++) {
        const char *path = entries->list[i].path;
        if (is_new_file(&entries->list[i]) && (r = weft__buf_put(ret, s->own->alloc, "./", 2)) == 0)
            r = weft__buf_put(ret, s->own->alloc, path, strlen(path) + 1);
    }
    return r;
}

/* What is in the run's index is not ignored. Where git cannot say it, nothing is. */
static bool ask_git(snap *s, snap_run run, const snap_entries *entries, bool *ret) {
    static const char *const argv[] = {"check-ignore", "-z", "--stdin", NULL};
    weft_buf paths = {0};
    int r = put_new_files(s, entries, &paths);
    run.argv = argv;
    run.input = (weft_bytes){weft__buf_head(&paths), weft__buf_len(&paths)};
    run.max_output = 2 * WEFT_SNAPSHOT_LIST;
    run.may_fail = run.magic = true;
    bool good = r == 0 ? weft__snap_git(s, &run) : weft__snap_fail(s, r);
    weft__buf_done(&paths, s->own->alloc);
    if (!good)
        return false;
    weft_bytes said = s->end.exit_code == 0 ? weft__snap_output(s) : (weft_bytes){"", 0};
    for (const char *at = said.data, *end = at + said.len; at < end; at += strlen(at) + 1) {
        const snap_entry *found = strncmp(at, "./", 2) == 0 ? weft__snap_entry(entries, at + 2) : NULL;
        if (found)
            ret[found - entries->list] = true;
    }
    return true;
}

bool weft__snap_ignored_now(snap *s, const snap_entries *entries, bool *ret) {
    char index[PATH_MAX + 16];
    snprintf(index, sizeof index, "%s/index", s->own->place.repository.dir);
    return !has_new_file(entries) || ask_git(s, (snap_run){.index = index}, entries, ret);
}

/* ---- by the rules of a tree ---- */

static bool changes_rules(const snap_entries *entries) {
    for (size_t i = 0; i < entries->count; i++)
        if (is_rules(entries->list[i].path))
            return true;
    return false;
}

/* An index of the tree, in which git looks for the rules because they are marked as not checked out. */
static bool read_rules(snap *s, const char *tree, const char *index) {
    const char *const read[] = {"read-tree", tree, NULL};
    static const char *const list[] = {"ls-files", "-z", NULL};
    static const char *const mark[] = {"update-index", "-z", "--skip-worktree", "--stdin", NULL};
    if (!weft__snap_git(s, &(snap_run){.argv = read, .index = index}) ||
        !weft__snap_git(s, &(snap_run){.argv = list, .index = index, .max_output = WEFT_SNAPSHOT_LIST}))
        return false;
    weft_bytes said = weft__snap_output(s);
    weft_buf rules = {0};
    int r = 0;
    for (const char *at = said.data, *end = at + said.len; r == 0 && at < end; at += strlen(at) + 1)
        if (is_rules(at))
            r = weft__buf_put(&rules, s->own->alloc, at, strlen(at) + 1);
    weft_bytes input = {weft__buf_len(&rules) ? weft__buf_head(&rules) : "", weft__buf_len(&rules)};
    bool good = r == 0 ? !input.len || weft__snap_git(s, &(snap_run){.argv = mark, .index = index, .input = input})
                       : weft__snap_fail(s, r);
    weft__buf_done(&rules, s->own->alloc);
    return good;
}

bool weft__snap_ignored_by(snap *s, const char *tree, const snap_entries *entries, bool *ret) {
    char index[PATH_MAX + 32], empty[PATH_MAX + 32];
    if (!changes_rules(entries) || !has_new_file(entries))
        return true;
    snprintf(index, sizeof index, "%s/ignored.index", s->own->place.own);
    snprintf(empty, sizeof empty, "%s/changes/empty", s->own->state);
    unlink(index);
    if (!weft__snap_make_folder(s, empty))
        return false;
    int folder = open(empty, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return weft__snap_fail(s, -errno);
    bool good = read_rules(s, tree, index) &&
                ask_git(s, (snap_run){.index = index, .work_tree = empty, .folder = folder}, entries, ret);
    close(folder);
    unlink(index);
    return good;
}

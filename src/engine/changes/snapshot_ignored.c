/* Which paths git ignores, on the thread: by the rules that a tree has, or by those of the checkout as it is. A snapshot has
 * no files that are ignored; so a file that is new in one may have been there all the time. Rules are also in the
 * repository's info/exclude, which is in no tree: what it said is kept beside the snapshot before a task. */
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

static bool ask_by_tree(snap *s, const char *tree, const snap_entries *entries, bool *ret) {
    char index[PATH_MAX + 32], empty[PATH_MAX + 32];
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

/* ---- rules that are in no tree ---- */

#define KEPT_RULES "rules"

static bool has_rule(weft_bytes text) {
    for (const char *at = text.data, *end = at + text.len; at < end;) {
        size_t len = strcspn(at, "\n");
        if (len && *at != '#' && *at != '\r')
            return true;
        at += len + 1;
    }
    return false;
}

static bool store_rules(snap *s, weft_bytes text, char ret[WEFT_SNAPSHOT_HEX]) {
    static const char *const hash[] = {"hash-object", "-w", "--stdin", NULL};
    static const char *const make[] = {"mktree", "-z", NULL};
    char line[128];
    if (!weft__snap_git(s, &(snap_run){.argv = hash, .input = text}) || !weft__snap_take_hex(s, ret))
        return false;
    int n = snprintf(line, sizeof line, "100644 blob %s\t" KEPT_RULES, ret);
    return weft__snap_git(s, &(snap_run){.argv = make, .input = {line, (size_t) n + 1}}) && weft__snap_take_hex(s, ret);
}

/* The text ends in a NUL. */
bool weft__snap_rules(snap *s, char ret[WEFT_SNAPSHOT_HEX]) {
    weft_buf text = {0};
    bool good = weft__snap_excludes(s, &text);
    int r = good ? weft__buf_put(&text, s->own->alloc, "", 1) : 0;
    weft_bytes rules =
        r == 0 && weft__buf_len(&text) ? (weft_bytes){weft__buf_head(&text), weft__buf_len(&text) - 1} : (weft_bytes){"", 0};
    *ret = '\0';
    if (good)
        good = r == 0 ? !has_rule(rules) || store_rules(s, rules, ret) : weft__snap_fail(s, r);
    weft__buf_done(&text, s->own->alloc);
    return good;
}

/* false in *ret_known: there were none, or nobody knows. */
static bool read_old_rules(snap *s, const char *owner, weft_buf *ret, bool *ret_known) {
    char name[96], kept[WEFT_SNAPSHOT_HEX], what[WEFT_SNAPSHOT_HEX + 16];
    const char *const argv[] = {"cat-file", "blob", what, NULL};
    snprintf(name, sizeof name, "%s.rules", owner);
    *ret_known = false;
    if (!weft__snap_kept(s, name, kept))
        return false;
    if (!*kept)
        return true;
    snprintf(what, sizeof what, "%s:" KEPT_RULES, kept);
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .max_output = WEFT_SNAPSHOT_RULES, .may_fail = true}))
        return false;
    *ret_known = s->end.exit_code == 0;
    *ret = s->end.output;
    s->end.output = (weft_buf){0};
    return true;
}

static bool is_same_text(const weft_buf *a, const weft_buf *b) {
    size_t len = weft__buf_len(a);
    return len == weft__buf_len(b) && (len == 0 || memcmp(weft__buf_head(a), weft__buf_head(b), len) == 0);
}

bool weft__snap_ignored_by(snap *s, const char *owner, const char *tree, const snap_entries *entries, bool *ret) {
    weft_buf then = {0}, now = {0};
    bool known, good = true;
    if (!has_new_file(entries))
        return true;
    good = read_old_rules(s, owner, &then, &known) && weft__snap_excludes(s, &now);
    bool other = good && known && !is_same_text(&then, &now);
    if (other)
        good = weft__snap_use_excludes(s, &then);
    if (good && (other || changes_rules(entries)))
        good = ask_by_tree(s, tree, entries, ret);
    if (other)
        good = weft__snap_use_excludes(s, &now) && good;
    weft__buf_done(&then, s->own->alloc);
    weft__buf_done(&now, s->own->alloc);
    return good;
}

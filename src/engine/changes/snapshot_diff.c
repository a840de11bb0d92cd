/* What differs between two trees, on the thread: as git prints it, or taken apart. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshots_private.h"

const char *const weft__changed_names[] = {
    [WEFT_CHANGED_ADDED] = "added",     [WEFT_CHANGED_MODIFIED] = "modified", [WEFT_CHANGED_DELETED] = "deleted",
    [WEFT_CHANGED_RENAMED] = "renamed", [WEFT_CHANGED_TYPE] = "type",
};

#define RENAMES "-l1000" /* files that are compared with each other at most */

static bool run_diff(snap *s, const char *const *argv, size_t max, bool may_cut) {
    if (!weft__snap_git(s, &(snap_run){.argv = argv, .max_output = max, .may_fail = true, .may_cut = may_cut}))
        return false;
    if (s->end.exit_code == 0 || s->end.truncated)
        return true;
    bool gone = strstr(s->end.errors, "bad object") || strstr(s->end.errors, "unable to read") ||
                strstr(s->end.errors, "not a tree");
    return gone ? weft__snap_refuse(s, -ESTALE, "the snapshot is not there any more")
                : weft__snap_refuse(s, -EREMOTEIO, "git diff-tree: %s", s->end.errors);
}

/* ---- raw lines ---- */

/* ":100644 100755 <name> <name> M\0path\0", of a rename two paths. Moves at. */
static bool read_entry(snap *s, char **at, const char *end, snap_entry *ret) {
    int used = 0;
    size_t len = strnlen(*at, (size_t) (end - *at));
    bool good = *at + len < end && sscanf(*at, ":%6o %6o %64[0-9a-f] %64[0-9a-f] %c%n", &ret->old_mode, &ret->new_mode,
                                          ret->old_hex, ret->new_hex, &ret->status, &used) == 5;
    char **paths[] = {&ret->from, &ret->path};
    ret->from = NULL;
    *at += len + 1;
    for (size_t i = good && ret->status == 'R' ? 0 : 1; good && i < 2; i++) {
        len = strnlen(*at, (size_t) (end - *at));
        good = len && *at + len < end;
        *paths[i] = *at;
        *at += len + 1;
    }
    return good || weft__snap_refuse(s, -EBADMSG, "git's list of changes was not understood");
}

static bool push_entry(snap *s, snap_entries *to, const snap_entry *entry) {
    if (to->count == to->cap) {
        size_t cap = to->cap ? 2 * to->cap : 64;
        snap_entry *more = weft__resize(s->own->alloc, to->list, cap * sizeof *more);
        if (!more)
            return weft__snap_fail(s, -ENOMEM);
        to->list = more;
        to->cap = cap;
    }
    to->list[to->count++] = *entry;
    return true;
}

static bool read_entries(snap *s, snap_entries *ret, char **at) {
    char *end = weft__buf_tail(&ret->text);
    bool good = true;
    while (good && *at < end && **at == ':') {
        snap_entry entry = {0};
        good = read_entry(s, at, end, &entry) && push_entry(s, ret, &entry);
    }
    return good;
}

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const snap_entry *) a)->path, ((const snap_entry *) b)->path);
}

/* The raw lines that git has printed. */
static bool take_entries(snap *s, snap_entries *ret) {
    ret->text = s->end.output;
    s->end.output = (weft_buf){0};
    char *at = weft__buf_head(&ret->text);
    if (!at || read_entries(s, ret, &at)) {
        if (ret->count)
            qsort(ret->list, ret->count, sizeof *ret->list, compare_entries);
        return true;
    }
    weft__snap_entries_done(s, ret);
    return false;
}

bool weft__snap_entries(snap *s, const char *from, const char *to, snap_entries *ret) {
    const char *const argv[] = {"diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to, "--", NULL};
    *ret = (snap_entries){0};
    return run_diff(s, argv, WEFT_SNAPSHOT_LIST, false) && take_entries(s, ret);
}

bool weft__snap_staged(snap *s, const char *from, const char *index, snap_entries *ret) {
    const char *const argv[] = {
        "diff-index", "--cached", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none",
        from,         "--",       NULL};
    *ret = (snap_entries){0};
    return weft__snap_git(s, &(snap_run){.argv = argv, .index = index, .max_output = WEFT_SNAPSHOT_LIST}) &&
           take_entries(s, ret);
}

void weft__snap_entries_done(snap *s, snap_entries *entries) {
    weft__buf_done(&entries->text, s->own->alloc);
    entries->list = weft__free(s->own->alloc, entries->list);
    entries->count = entries->cap = 0;
}

const snap_entry *weft__snap_entry(const snap_entries *entries, const char *path) {
    snap_entry key = {.path = (char *) (uintptr_t) path};
    return entries->count ? bsearch(&key, entries->list, entries->count, sizeof *entries->list, compare_entries) : NULL;
}

bool weft__snap_is_too_large(unsigned mode, const char *hex) {
    return mode == SNAP_GITLINK && strncmp(hex, SNAP_TOO_LARGE, sizeof SNAP_TOO_LARGE - 1) == 0;
}

/* ---- the list for people ---- */

/* A file that became too large, or was, is a file all the same. */
static weft_changed kind_of(const snap_entry *entry) {
    switch (entry->status) {
    case 'A':
        return WEFT_CHANGED_ADDED;
    case 'D':
        return WEFT_CHANGED_DELETED;
    case 'R':
        return WEFT_CHANGED_RENAMED;
    case 'T':
        return weft__snap_is_too_large(entry->old_mode, entry->old_hex) ||
                       weft__snap_is_too_large(entry->new_mode, entry->new_hex)
                   ? WEFT_CHANGED_MODIFIED
                   : WEFT_CHANGED_TYPE;
    default:
        return WEFT_CHANGED_MODIFIED;
    }
}

static void describe_file(const snap_entry *entry, weft_changed_file *ret) {
    bool was = weft__snap_is_too_large(entry->old_mode, entry->old_hex);
    bool is = weft__snap_is_too_large(entry->new_mode, entry->new_hex);
    char size[17] = "";
    if (is)
        memcpy(size, entry->new_hex + sizeof SNAP_TOO_LARGE - 1, 16);
    *ret = (weft_changed_file){
        .path = entry->path,
        .from = entry->from,
        .change = kind_of(entry),
        .old_mode = was ? SNAP_REGULAR | 0644 : entry->old_mode,
        .new_mode = is ? SNAP_REGULAR | 0644 : entry->new_mode,
        .submodule = (entry->old_mode == SNAP_GITLINK && !was) || (entry->new_mode == SNAP_GITLINK && !is),
        .too_large = was || is,
        .size = strtoull(size, NULL, 16),
    };
}

/* "3\t1\tpath\0", of a binary file "-\t-\t", of a rename "3\t1\t\0from\0path\0". Moves at. */
static bool read_counts(snap *s, char **at, const char *end, weft_changed_file *file) {
    char *line = *at, *tab, *second = NULL;
    size_t len = strnlen(line, (size_t) (end - line));
    tab = memchr(line, '\t', len);
    if (tab)
        second = memchr(tab + 1, '\t', (size_t) (line + len - tab - 1));
    if (line + len >= end || !second)
        return weft__snap_refuse(s, -EBADMSG, "git's counts were not understood");
    file->binary = *line == '-' && !file->submodule;
    if (!file->binary && !file->submodule && !file->too_large) {
        file->additions = strtoull(line, NULL, 10);
        file->deletions = strtoull(tab + 1, NULL, 10);
    }
    *at += len + 1;
    for (int i = 0; !second[1] && i < 2 && *at < end; i++)
        *at += strnlen(*at, (size_t) (end - *at)) + 1;
    return true;
}

static bool fill_files(snap *s, snap_files *ret, snap_entries *entries, char *at) {
    const char *end = weft__buf_tail(&ret->text);
    ret->list = weft__zalloc(s->own->alloc, (entries->count + 1) * sizeof *ret->list);
    if (!ret->list)
        return weft__snap_fail(s, -ENOMEM);
    for (size_t i = 0; i < entries->count; i++) {
        weft_changed_file *file = &ret->list[i];
        describe_file(&entries->list[i], file);
        if (!read_counts(s, &at, end, file))
            return false;
        file->binary &= !file->too_large;
        ret->pub.of[file->change]++;
        ret->pub.additions += file->additions;
        ret->pub.deletions += file->deletions;
    }
    ret->pub.files = ret->list;
    ret->pub.count = entries->count;
    return true;
}

bool weft__snap_files(snap *s, const weft_comparison *what, const char *to, snap_files *ret) {
    const char *const argv[] = {"diff-tree", "-r",    "-z",          "--raw",         "--numstat",
                                "-M",        RENAMES, "--no-abbrev", "--no-ext-diff", "--no-textconv",
                                what->from,  to,      "--",          what->path,      NULL};
    snap_entries entries = {0};
    *ret = (snap_files){0};
    if (!run_diff(s, argv, WEFT_SNAPSHOT_LIST, false))
        return false;
    entries.text = s->end.output;
    s->end.output = (weft_buf){0};
    char *at = weft__buf_head(&entries.text);
    bool good = !at || read_entries(s, &entries, &at);
    ret->text = entries.text;
    entries.text = (weft_buf){0};
    good = good && fill_files(s, ret, &entries, at);
    weft__snap_entries_done(s, &entries);
    if (!good)
        weft__snap_files_done(s, ret);
    return good;
}

/* A snapshot of others that is gone cannot say anything: then everything may be theirs. */
bool weft__snap_mark_shared(snap *s, const char *const *pairs, snap_files *files) {
    for (; pairs && pairs[0] && pairs[1]; pairs += 2) {
        snap_entries entries;
        bool read = weft__snap_entries(s, pairs[0], pairs[1], &entries);
        if (!read && s->r != -ESTALE)
            return false;
        for (size_t i = 0; i < files->pub.count; i++) {
            weft_changed_file *file = &files->list[i];
            file->shared |=
                !read || weft__snap_entry(&entries, file->path) || (file->from && weft__snap_entry(&entries, file->from));
        }
        if (read)
            weft__snap_entries_done(s, &entries);
        else
            s->r = 0, *s->message = '\0';
    }
    return true;
}

void weft__snap_files_done(snap *s, snap_files *files) {
    weft__buf_done(&files->text, s->own->alloc);
    files->list = weft__free(s->own->alloc, files->list);
    files->pub = (weft_changed_list){0};
}

/* ---- the diff ---- */

bool weft__snap_text(snap *s, const weft_comparison *what, const char *to, bool *ret_truncated) {
    char unified[32];
    const char *const argv[] = {"diff-tree",
                                "-r",
                                "-p",
                                "-M",
                                RENAMES,
                                unified,
                                "--no-ext-diff",
                                "--no-textconv",
                                "--no-color",
                                "--src-prefix=a/",
                                "--dst-prefix=b/",
                                "--submodule=short",
                                "--no-relative",
                                what->from,
                                to,
                                "--",
                                what->path,
                                NULL};
    size_t max = what->max ? what->max : WEFT_SNAPSHOT_DIFF;
    snprintf(unified, sizeof unified, "--unified=%u", what->context);
    if (!run_diff(s, argv, what->skip + (max < WEFT_SNAPSHOT_DIFF_MAX ? max : WEFT_SNAPSHOT_DIFF_MAX), true))
        return false;
    *ret_truncated = s->end.truncated;
    return true;
}

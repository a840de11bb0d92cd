/* What git prints, taken apart. Texts stay where they lie: results point into the output, which is changed a little (a NUL
 * where a text ends). Nothing is believed: what does not look as git's documentation says is -EBADMSG. */
#ifndef WEFT_GIT_PARSE_H
#define WEFT_GIT_PARSE_H

#include "alloc.h"
#include "git.h"

/* Bytes of output, with room for one more behind the end. cut: it is not whole, and its last record is left out. */
typedef struct weft_git_text {
    char *data;
    size_t len;
    bool cut;
} weft_git_text;

/* git status --porcelain=v2 -z --branch. Paths begin with prefix, which is taken off. At most max files. files is owned. */
int weft__git_parse_status(weft_git_text text, const char *prefix, size_t max, const weft_alloc *alloc,
                           weft_git_status *ret);
/* git log -z --format=WEFT_GIT_LOG. commits is owned. */
#define WEFT_GIT_LOG "%H%x00%P%x00%an%x00%ae%x00%at%x00%ct%x00%D%x00%s%x00%b"
int weft__git_parse_log(weft_git_text text, size_t max, const weft_alloc *alloc, weft_git_log *ret);
/* git for-each-ref --format=WEFT_GIT_REFS. branches is owned. */
#define WEFT_GIT_REFS                                                                                                       \
    "%(HEAD)%00%(refname)%00%(objectname)%00%(upstream)%00%(committerdate:unix)%00%(symref)%00%(contents:subject)%00"
int weft__git_parse_branches(weft_git_text text, size_t max, const weft_alloc *alloc, weft_git_branches *ret);
/* git diff: what can be said about it without reading it as a person does. */
void weft__git_scan_diff(weft_bytes text, weft_git_diff *ret);

/* git config --list -z --name-only: the names X of all filter.X.*, each once, and whether core.worktree is there. The names
 * point into the text; the list is owned. -E2BIG: more than max. */
typedef struct weft_git_settings {
    const char **filters;
    size_t filter_count;
    bool worktree;
} weft_git_settings;
int weft__git_parse_settings(weft_git_text text, size_t max, const weft_alloc *alloc, weft_git_settings *ret);

/* A name that git takes for a revision and for nothing else: HEAD, a branch, a tag, a hash. */
bool weft__git_is_ref(const char *name);
/* A path that may follow "--": relative, without ".." in it. */
bool weft__git_is_path(const char *path);

#endif

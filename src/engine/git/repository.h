/* Where the repository of a folder is. Looked for as git does it, from the folder upwards; git itself looks again when it
 * runs, in the same place, and checks whose the repository is (safe.directory), which it would not if it were told.
 *
 * What a repository may not do is borrow another one: a .git that is a file or a link leads to a folder that must know about
 * this one, as the folders of worktrees and submodules do. A clone cannot bring such a file, but an archive can, and then
 * clients of this project would see the history of another one of the user's. */
#ifndef WEFT_REPOSITORY_H
#define WEFT_REPOSITORY_H

#include <limits.h>

#include "command.h"

typedef struct weft_repository {
    char top[PATH_MAX];    /* the folder with the .git in it */
    char prefix[PATH_MAX]; /* from there to the folder that was asked for: "" or "sub/folder/" */
    char dir[PATH_MAX];    /* HEAD and index */
    char common[PATH_MAX]; /* refs and configuration; the same, but for a worktree */
    bool knows_us;         /* dir need not be asked about this folder */
} weft_repository;

/* folder: absolute, without links in it. -ENOENT: there is none; -EXDEV: .git leads to one that does not know this folder;
 * -ENAMETOOLONG. With *ret->knows_us false, it has to be asked: its core.worktree must be the top
 * (weft__repository_is_worktree). */
int weft__repository_find(const char *folder, weft_repository *ret);
/* Is this core.worktree, relative to dir, the top? */
bool weft__repository_is_worktree(const weft_repository *repository, const char *worktree);

#endif

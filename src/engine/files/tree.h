/* What a folder and everything in it looked like when it was last looked at: the watcher's memory. Events of the system are
 * only hints where to look; what has changed is what differs from this.
 *
 * It does no I/O. Nodes live until they are removed; a folder's children go with it. */
#ifndef WEFT_TREE_H
#define WEFT_TREE_H

#include <limits.h>
#include <sys/stat.h>

#include "alloc.h"
#include "ignore.h"
#include "list.h"

typedef struct weft_entry weft_entry;

/* What only folders have. */
typedef struct weft_folder {
    weft_entry *node;
    weft_link children;          /* weft_entry.link */
    weft_link queue;             /* the watcher's: to be scanned */
    weft_link unwatched;         /* the watcher's: to be polled */
    struct weft_folder *next_wd; /* in its bucket */
    int wd;                      /* -1: not watched */
    weft_ignore *ignore;         /* its .gitignore; NULL: none */
    uint32_t scan;               /* the number of its last scan */
    bool known;                  /* it has been scanned to its end */
    bool quiet;                  /* what the next scan finds is not told */
    bool deep;                   /* the next scan goes on with the folders in it */
    bool closed;                 /* we may not read it */
} weft_folder;

struct weft_entry {
    weft_entry *next; /* in its bucket */
    weft_entry *parent;
    weft_link link;
    weft_folder *folder; /* NULL: a file */
    uint32_t hash;
    uint32_t scan; /* the parent's scan that saw it */
    int64_t mtime_ns;
    uint64_t size, inode;
    char name[];
};

typedef struct weft_tree {
    const weft_alloc *alloc;
    weft_entry *root;
    weft_entry **buckets;
    weft_folder **wds;
    size_t bucket_count, wd_buckets; /* powers of two */
    size_t count, folders, watched;
    size_t max; /* nodes */
} weft_tree;

int weft__tree_init(weft_tree *tree, size_t max, const weft_alloc *alloc);
void weft__tree_done(weft_tree *tree);

/* NULL: it is not known. */
weft_entry *weft__tree_find(const weft_tree *tree, const weft_entry *parent, const char *name);
/* The parent of a path relative to the root, and where its last name begins. NULL: that folder is not known. */
weft_entry *weft__tree_parent(const weft_tree *tree, const char *path, const char **ret_name);
/* -ENOSPC: there are max already; -ENOMEM. */
int weft__tree_add(weft_tree *tree, weft_entry *parent, const char *name, bool folder, weft_entry **ret);
/* Remove one that has no children. */
void weft__tree_remove(weft_tree *tree, weft_entry *node);
/* The path relative to the root; -ENAMETOOLONG. The root's is "". */
int weft__tree_path(const weft_entry *node, char ret[PATH_MAX]);
/* Is it what it was? If not, remember what it is. */
bool weft__tree_same(weft_entry *node, const struct stat *st);

weft_folder *weft__tree_by_wd(const weft_tree *tree, int wd);
/* The folder that had this descriptor before has none any more. wd -1: none. */
void weft__tree_set_wd(weft_tree *tree, weft_folder *folder, int wd);

#endif

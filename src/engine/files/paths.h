/* The paths somebody wants to be watched: files, folders and everything in them, or patterns (glob.h). No paths: all of
 * them. */
#ifndef WEFT_PATHS_H
#define WEFT_PATHS_H

#include <weft/base.h>

typedef struct weft_paths {
    const weft_alloc *alloc;
    char **list; /* ends with NULL; NULL: all */
} weft_paths;

/* As people write them, "./src/" for "src"; relative to the folder that is watched. Copied. -ENOMEM: call done(). */
int weft__paths_init(weft_paths *paths, const char *const *list, const weft_alloc *alloc);
void weft__paths_done(weft_paths *paths);
/* A folder is to be looked into when it is, lies in, or leads to one of the paths; of a path with wildcards, its fixed
 * beginning. */
bool weft__paths_want(const weft_paths *paths, const char *path, bool folder);
/* Is it, or something in it, among the paths by name? */
bool weft__paths_name(const weft_paths *paths, const char *path);

#endif

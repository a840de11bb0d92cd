/* Where the files of a daemon are, in the folder of its project. There are two ways to lay them out: Weft's own, and the one
 * that the programs of AIWG look for. All paths are relative to the project's folder. */
#ifndef WEFT_LAYOUT_H
#define WEFT_LAYOUT_H

#include <stdbool.h>

typedef struct weft_layout {
    const char *outer; /* the folder around home, which is not the daemon's alone; NULL: the project's */
    const char *home;  /* private, ignored by git */
    const char *socket;
    const char *lock;
    const char *pid, *pid_folder;
    const char *foreign_lock; /* of AIWG's own daemon, which means something by being there; NULL: none */
    const char *log, *log_old;
    const char *endpoint; /* where it listens, for other programs */
    const char *token;
    const char *store;
    const char *config;
    bool aiwg; /* be what AIWG's programs expect, beyond the paths */
} weft_layout;

extern const weft_layout weft__layout_weft, weft__layout_aiwg;
/* Both, the usual one first; NULL-terminated. */
extern const weft_layout *const weft__layouts[];

/* Does this folder (absolute, or ".") have the daemon's folder, as one of ours? What a link leads to is not: it may have
 * come with the project. Nor is somebody else's, which may be in a folder that everybody can write to. or_root: root's is as
 * good as ours, to talk to. */
bool weft__layout_is_in(const weft_layout *layout, const char *folder, bool or_root);
/* The daemon's socket in this folder: ours, or root's. Somebody else's is not that of the daemon that is meant; nor is what
 * a link leads to. false: there is none, and ret is what it would be called. */
#define WEFT_FOLDER_PATH 4096 /* PATH_MAX; limits.h would bring other names with it */
#define WEFT_SOCKET_PATH (WEFT_FOLDER_PATH + 64)
bool weft__layout_socket(const weft_layout *layout, const char *folder, char ret[WEFT_SOCKET_PATH]);
/* Cut the last name off an absolute path; false: there is none. */
bool weft__layout_up(char *folder);

#endif

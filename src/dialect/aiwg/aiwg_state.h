/* The files by which AIWG's programs see how its daemon is when they cannot ask it: state.json and heartbeat, written whole,
 * now, as often as the configuration says, and once more at the end; and tasks.json (aiwg_tasks_file.h), a moment after a
 * task has changed. */
#ifndef WEFT_AIWG_STATE_H
#define WEFT_AIWG_STATE_H

#include "hub.h"

typedef struct weft_aiwg_state weft_aiwg_state;

/* Replaces a file whole. 0 or a negative errno. */
typedef int weft_aiwg_put(const char *path, const char *text, size_t len);

typedef struct weft_aiwg_state_opts {
    const weft_hub *hub; /* borrowed, with all it has */
    const char *folder;  /* where the files go */
    const char *socket;  /* borrowed */
    const char *web;     /* the URL of the web interface; NULL: there is none. Borrowed */
    int64_t beat_ms;     /* 0: half a minute */
    weft_aiwg_put *put;
} weft_aiwg_state_opts;

/* The first files are written now. -ENOMEM; that one cannot be written is told by weft__aiwg_state_trouble(). */
int weft__aiwg_state_new(const weft_aiwg_state_opts *opts, weft_aiwg_state **ret);
/* Writes them for the last time. Returns NULL. */
weft_aiwg_state *weft__aiwg_state_free(weft_aiwg_state *state);
/* How the last writing went. */
int weft__aiwg_state_trouble(const weft_aiwg_state *state);

#endif

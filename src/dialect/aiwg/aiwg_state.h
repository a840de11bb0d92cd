/* The two files by which AIWG's programs see how its daemon is when they cannot ask it: state.json and heartbeat. Written
 * whole, now, every half minute, and once more at the end; nobody reads them here. */
#ifndef WEFT_AIWG_STATE_H
#define WEFT_AIWG_STATE_H

#include "hub.h"

typedef struct weft_aiwg_state weft_aiwg_state;

/* Replaces a file whole. 0 or a negative errno. */
typedef int weft_aiwg_put(const char *path, const char *text, size_t len);

/* The files go into folder, by put. hub, with all it has, and socket are borrowed until this is freed. The first files are
 * written now. -ENOMEM; that one cannot be written is told by weft__aiwg_state_trouble(). */
int weft__aiwg_state_new(const weft_hub *hub, const char *folder, const char *socket, weft_aiwg_put *put,
                         weft_aiwg_state **ret);
/* Writes them for the last time. Returns NULL. */
weft_aiwg_state *weft__aiwg_state_free(weft_aiwg_state *state);
/* How the last writing went. */
int weft__aiwg_state_trouble(const weft_aiwg_state *state);

#endif

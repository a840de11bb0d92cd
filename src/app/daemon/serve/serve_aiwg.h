/* AIWG's part of a hub: its supervisor of loops, which every hub has because its methods ask for it; and what a hub has only
 * as an AIWG daemon ("weft serve --aiwg"): its web interface, its files and the lines that its users look for in its log. */
#ifndef WEFT_SERVE_AIWG_H
#define WEFT_SERVE_AIWG_H

#include "daemon.h"
#include "hub.h"
#include "serve.h"

typedef struct weft_serve_aiwg weft_serve_aiwg;

/* The engine is ready: start the supervisor and, in AIWG's layout, take over the tasks of its own daemon (runs the loop
 * until that is stored) and open the web interface if there is one. hub gets its loops. What cannot be is said, and the hub
 * works without. */
int weft__serve_aiwg_new(weft_hub *hub, weft_daemon *daemon, const weft_serve_settings *how, weft_serve_aiwg **ret);
/* The endpoints are open, so that the folder is surely ours: write the state files. */
void weft__serve_aiwg_ready(weft_serve_aiwg *self);
/* Nothing new is started, nobody is let in. */
void weft__serve_aiwg_stop(weft_serve_aiwg *self);
/* Writes the files for the last time. Before the engine goes. Returns NULL. */
weft_serve_aiwg *weft__serve_aiwg_free(weft_serve_aiwg *self);

#endif

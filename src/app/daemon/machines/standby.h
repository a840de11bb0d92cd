/* A standby (docs/machines.md): it dials a hub and copies its journal as that grows, runs nothing, and says on its own
 * socket how far it is, until somebody promotes it. From then on the folder is an ordinary hub's. */
#ifndef WEFT_STANDBY_H
#define WEFT_STANDBY_H

#include "daemon.h"

typedef struct weft_standby_opts {
    weft_app *app;
    weft_daemon *daemon;               /* which has the folder */
    const char *path;                  /* of the journal */
    const char *url, *token_file, *ca; /* of the hub, and how to get in */
    bool discard;                      /* a journal that is here and is no copy is moved aside */
} weft_standby_opts;

/* Run until stopped or promoted. Failures are explained. *ret_hub: the folder is a hub's, because it was promoted now or
 * earlier. */
weft_exit weft__standby_run(const weft_standby_opts *opts, bool *ret_hub);

#endif

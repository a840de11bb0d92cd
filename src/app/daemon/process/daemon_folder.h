/* The folder of a daemon, .weft in its project unless another layout is wanted: private, ignored by git, with its socket,
 * its token and where it listens. */
#ifndef WEFT_DAEMON_FOLDER_H
#define WEFT_DAEMON_FOLDER_H

#include "app.h"
#include "endpoint.h"

/* Make the folder (0700, with a .gitignore) if it is not there, and put it on record (trust.h). One that is there, not on
 * record and brings something to act on is refused. Failures are explained. */
weft_exit weft__daemon_folder_make(const weft_app *app);
/* The folder and its .gitignore alone. */
int weft__daemon_folder_fill(const weft_layout *layout);
/* Is the daemon's folder here somebody else's? That is explained, and nothing was made or read. */
weft_exit weft__daemon_folder_check(const weft_app *app);
/* AIWG's configuration, where there is none: what AIWG itself would write. 1 it was written, 0 there is one. */
int weft__daemon_folder_default_config(const weft_layout *layout);
/* The daemon's token, made on the first start. Owned. Failures are explained. */
weft_exit weft__daemon_folder_token(const weft_app *app, char **ret);
/* Put a file there, in place of what was; whole or not at all. Only whoever has the folder to itself may. */
int weft__daemon_folder_put(const char *path, const char *text, size_t len);
/* Say where the daemon listens, for other programs; whole or not at all. And take it back. */
int weft__daemon_folder_publish(const weft_layout *layout, weft_val endpoint);
void weft__daemon_folder_withdraw(const weft_layout *layout);

#endif

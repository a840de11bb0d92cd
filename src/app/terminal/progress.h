/* Signs of life on standard error while somebody waits at a terminal. They do not exist elsewhere, and leave nothing behind.
 */
#ifndef WEFT_PROGRESS_H
#define WEFT_PROGRESS_H

#include "app.h"

/* A spinner, for work of unknown length; it appears after 100 ms. what must stay valid until weft__spinner_stop(). One at a
 * time. */
void weft__spinner_start(const weft_app *app, const char *what);
void weft__spinner_stop(void);

/* A bar: how much of the work is done, and how long the rest will take. done is from 0 to 1; note stands behind it. */
void weft__progress_draw(const weft_app *app, double done, int64_t elapsed_ms, const char *note);
void weft__progress_clear(const weft_app *app);

#endif

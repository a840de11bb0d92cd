/* A bar on standard error for work that takes a while: how much of it is done, and how long the rest will take. Only on a
 * terminal, and gone when it is finished. */
#ifndef WEFT_PROGRESS_H
#define WEFT_PROGRESS_H

#include "app.h"

/* done is from 0 to 1; note stands behind it. */
void weft__progress_draw(const weft_app *app, double done, int64_t elapsed_ms, const char *note);
void weft__progress_clear(const weft_app *app);

#endif

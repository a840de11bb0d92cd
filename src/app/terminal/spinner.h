/* A sign of life while somebody waits at a terminal: begins after 100 ms, leaves nothing behind, does not exist elsewhere.
 */
#ifndef WEFT_SPINNER_H
#define WEFT_SPINNER_H

#include "app.h"

/* what must stay valid until weft__spinner_stop(). One at a time. */
void weft__spinner_start(const weft_app *app, const char *what);
void weft__spinner_stop(void);

#endif

/* Installing an agent that npm has: the version that this Weft was tried with, into a folder of the user's own, after the
 * user said yes. */
#ifndef WEFT_AGENTS_INSTALL_H
#define WEFT_AGENTS_INSTALL_H

#include "app.h"

/* yes: do not ask. Failures are explained. */
weft_exit weft__agents_install(weft_app *app, const char *name, bool yes);

#endif

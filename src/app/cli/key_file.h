/* Files with the secret of a key for signatures: one line, for nobody's eyes but the user's. */
#ifndef WEFT_KEY_FILE_H
#define WEFT_KEY_FILE_H

#include "app.h"

/* The secret, NUL-terminated; owned. Failures are explained: one that others can read is refused. */
weft_exit weft__key_read(const weft_app *app, const char *path, char **ret);
/* Nothing of it stays in memory. Returns NULL. */
char *weft__key_free(char *secret);

#endif

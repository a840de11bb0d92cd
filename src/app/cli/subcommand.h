/* Verbs that do several things: "weft task list". The rows are described in app.h. */
#ifndef WEFT_SUBCOMMAND_H
#define WEFT_SUBCOMMAND_H

#include "app.h"

/* Run the subcommand of app->verb that is the first argument; app->args begins behind it then. Mistakes are explained. */
weft_exit weft__subcommand_run(weft_app *app);
/* NULL: the verb has none of this name. */
const weft_subcommand *weft__subcommand_find(const weft_verb *verb, const char *name);
/* Does it understand this option of its verb? */
bool weft__subcommand_takes(const weft_subcommand *subcommand, const char *option);
/* There is no such subcommand. Explained. */
weft_exit weft__subcommand_unknown(const weft_app *app, const weft_verb *verb, const char *name);

#endif

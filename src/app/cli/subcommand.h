/* Verbs that do several things: "weft task list". Each word is a row; dispatch, "did you mean", how many arguments there are
 * and which of the verb's options mean something here all come from it. */
#ifndef WEFT_SUBCOMMAND_H
#define WEFT_SUBCOMMAND_H

#include "app.h"

typedef struct weft_subcommand {
    const char *name;
    const char *takes;   /* the verb's own options that it understands, a blank around each; NULL: none */
    const char *missing; /* what to ask when there are too few arguments */
    size_t least, most;  /* arguments behind the word */
    weft_exit (*run)(weft_app *app);
} weft_subcommand;

/* Run the word that is the first argument; app->args begins behind it then. usual is meant when there is none; NULL: one
 * must be named. The table ends with a NULL name. Mistakes are explained. */
weft_exit weft__subcommand_run(weft_app *app, const weft_subcommand *words, const char *usual);

#endif

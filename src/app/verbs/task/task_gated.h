/* Gated tasks on the command line: "weft task" with --gate, and with ids such as "gated-0001". */
#ifndef WEFT_TASK_GATED_H
#define WEFT_TASK_GATED_H

#include "task.h"

bool weft__gated_is_id(const char *text);
/* Send it, and with --wait stay until it has ended. */
weft_exit weft__gated_submit_word(weft_app *app, const char *prompt);
weft_exit weft__gated_get_word(weft_app *app);
weft_exit weft__gated_cancel_word(weft_app *app);
weft_exit weft__gated_watch_word(weft_app *app);

#endif

/* What the files of "weft task" share. */
#ifndef WEFT_TASK_H
#define WEFT_TASK_H

#include "app.h"

typedef struct weft_task_settings {
    const char *url;
    /* submit */
    const char *agent, *priority, *session, *once, *permission;
    int64_t timeout_ms, retries;
    bool wait;
    /* list */
    const char *state;
    int64_t limit;
    /* get */
    bool output;
} weft_task_settings;

/* task_submit.c */
weft_exit weft__task_submit_word(weft_app *app);
/* What stands on the command line as a prompt: words, "-" for standard input, "@FILE". Owned: weft__free(). A mistake is
 * explained. */
weft_exit weft__prompt_read(const weft_app *app, char **ret);

/* task_watch.c */
weft_exit weft__task_watch_word(weft_app *app);

#endif

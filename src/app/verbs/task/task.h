/* What the files of "weft task" share. */
#ifndef WEFT_TASK_H
#define WEFT_TASK_H

#include "app.h"
#include "connection.h"

typedef struct weft_task_settings {
    const char *url;
    /* submit */
    const char *agent, *priority, *session, *once, *permission, *runner, *label, *hub;
    int64_t timeout_ms, retries;
    bool wait, worktree, with_changes;
    const char *on_question; /* NULL: "ask" */
    weft_texts gates;
    int64_t max_iterations;
    /* list */
    const char *state, *search;
    int64_t limit;
    /* get */
    bool output;
    /* diff, undo, review */
    bool stat, redo, shared;
    int64_t context;
    const char *file;
    /* merge, discard, open */
    const char *strategy, *message;
    bool force, editor;
} weft_task_settings;

/* task_submit.c */
weft_exit weft__task_submit_word(weft_app *app);
weft_exit weft__task_retry_word(weft_app *app);
/* Who works in the same files; nothing if that is nobody. */
void weft__task_put_beside(const weft_app *app, const weft_json *beside);
/* What stands on the command line as a prompt: words, "-" for standard input, "@FILE". Owned: weft__free(). A mistake is
 * explained. */
weft_exit weft__prompt_read(const weft_app *app, char **ret);

/* task_watch.c */
weft_exit weft__task_watch_word(weft_app *app);

/* task_review.c */
weft_exit weft__task_review_word(weft_app *app);

/* task_changes.c */
/* The id that was named on the command line, else the newest task's; "" after an explanation. */
weft_exit weft__task_find_id(weft_app *app, weft_connection *connection, char ret[64]);
/* Run with a connection and that id. */
weft_exit weft__task_on_connection(weft_app *app,
                                   weft_exit (*run)(weft_app *app, weft_connection *connection, const char *id));
weft_exit weft__task_diff_word(weft_app *app);
weft_exit weft__task_undo_word(weft_app *app);
/* What task.about, or task.changed, says of what a task changed, in a few words. true: it changed something. */
bool weft__task_changes_text(const weft_json *changes, char *ret, size_t size);

/* task_worktree.c */
weft_exit weft__task_merge_word(weft_app *app);
weft_exit weft__task_discard_word(weft_app *app);
weft_exit weft__task_open_word(weft_app *app);

#endif

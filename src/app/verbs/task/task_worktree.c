/* weft task merge, discard and open: what becomes of the work that a task did in its worktree. */
#include <errno.h>
#include <string.h>

#include "editor.h"
#include "failure.h"
#include "hub_call.h"
#include "task.h"
#include "terminal_status.h"

/* ---- merge ---- */

static const char *why_not_merged(const char *reason) {
    static const char *const texts[][2] = {
        {"changed", "you have changed it here; commit that, or put it away"},
        {"exists", "it is here already, and git does not know it"},
        {"deleted", "you have deleted it here"},
        {"staged", "you have staged changes of it"},
        {"inTheWay", "something else is in its place"},
        {"submodule", "it is another repository"},
        {"closed", "Weft leaves .weft, .git and .aiwg/daemon alone; merge it with git"},
        {"conflict", "both sides have changed it"},
        {"marked", "it still has conflict marks in it"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i][0], reason) == 0)
            return texts[i][1];
    return reason;
}

static weft_exit put_merge_conflicts(weft_app *app, const weft_json *result, const char *id) {
    weft_json conflicts = weft_get(result, "conflicts");
    long long count = (long long) weft_get_int(result, "conflictCount", 0);
    bool in_worktree = strcmp(weft_get_str(result, "where", ""), "worktree") == 0;
    char hint[300];
    for (weft_iter it = weft_iterate(&conflicts); weft_next(&it);) {
        const char *path = weft_get_str(&it.value, "path", "");
        weft__put_path(&app->err, path);
        fprintf(app->err.file, ": %s\n", why_not_merged(weft_get_str(&it.value, "reason", "")));
    }
    snprintf(hint, sizeof hint,
             "Finish it there (weft task open %.60s, or another prompt for its session), then merge again.", id);
    if (in_worktree)
        return weft__fail(app, WEFT_REFUSED, hint, "%s is not merged: %lld file%s to be finished in its worktree", id, count,
                          count == 1 ? " is" : "s are");
    return weft__fail(app, WEFT_REFUSED, NULL, "%s: nothing was done, because of %lld file%s", id, count,
                      count == 1 ? "" : "s");
}

static void put_merged(const weft_app *app, const weft_json *result, const char *id) {
    long long files = (long long) weft_get_int(result, "files", 0);
    weft__say(app, "%s is merged into %s (%.12s): %lld file%s", id, weft_get_str(result, "into", ""),
              weft_get_str(result, "commit", ""), files, files == 1 ? "" : "s");
    weft__say(app, "  Take that back: weft task undo %s", id);
}

static weft_exit merge_on(weft_app *app, weft_connection *connection, const char *id) {
    const weft_task_settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call(connection, "task.merge",
                                      WEFT_OBJ({"taskId", weft_str(id)}, {"strategy", weft_str_or_none(how->strategy)},
                                               {"message", weft_str_or_none(how->message)}),
                                      &answer);
    if (status)
        return status;
    bool ok = weft_get_bool(answer.result, "ok", false);
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else if (ok)
        put_merged(app, answer.result, id);
    else
        return put_merge_conflicts(app, answer.result, id);
    return ok ? WEFT_DONE : WEFT_REFUSED;
}

weft_exit weft__task_merge_word(weft_app *app) {
    return weft__task_on_connection(app, merge_on);
}

/* ---- discard ---- */

static weft_exit discard_on(weft_app *app, weft_connection *connection, const char *id) {
    const weft_task_settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status =
        weft__hub_call(connection, "task.discard",
                       WEFT_OBJ({"taskId", weft_str(id)}, {"force", how->force ? weft_bool(true) : weft_none()}), &answer);
    if (status)
        return status;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(answer.result));
        return WEFT_DONE;
    }
    const char *commit = weft_get_str(answer.result, "commit", "");
    fprintf(app->err.file, "the worktree of %s is gone, with its branch %s\n", id,
            weft_get_str(answer.result, "branch", ""));
    if (*commit)
        weft__say(app, "  Get it back, while git keeps it: git branch NAME %.12s", commit);
    return WEFT_DONE;
}

weft_exit weft__task_discard_word(weft_app *app) {
    return weft__task_on_connection(app, discard_on);
}

/* ---- open ---- */

static weft_exit edit_worktree(weft_app *app, const char *path) {
    char editor[256];
    int ended = weft__editor_run(path, editor, sizeof editor);
    if (ended < 0)
        return weft__fail(app, WEFT_FAILED, "Name an editor: export EDITOR=nano", "%.200s: %s", editor,
                          ended == -EINVAL ? "it must be a program with arguments; no shell runs it" : weft_strerror(ended));
    return ended ? weft__fail(app, WEFT_FAILED, NULL, "%.200s ended with status %d", editor, ended) : WEFT_DONE;
}

/* Its path, for "cd $(weft task open ID)"; with --editor, the editor in it. */
static weft_exit open_on(weft_app *app, weft_connection *connection, const char *id) {
    const weft_task_settings *how = app->settings;
    const weft_val ids[] = {weft_str(id)};
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call(connection, "task.about", WEFT_OBJ({"taskIds", weft_arr(ids, 1)}), &answer);
    if (status)
        return status;
    weft_json tasks = weft_get(answer.result, "tasks"), task = weft_at(&tasks, 0);
    const char *path = weft_get_str(&task, "worktree", NULL);
    if (!weft_count(&tasks))
        return weft__fail(app, WEFT_NOT_FOUND, NULL, "there is no task %s", id);
    if (!path)
        return weft__fail(app, WEFT_REFUSED, NULL, "%s has no worktree", id);
    if (how->editor)
        return edit_worktree(app, path);
    if (app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"taskId", weft_str(id)}, {"worktree", weft_str(path)},
                                           {"branch", weft_str(weft_get_str(&task, "branch", ""))}));
    else
        fprintf(app->out.file, "%s\n", path);
    return WEFT_DONE;
}

weft_exit weft__task_open_word(weft_app *app) {
    return weft__task_on_connection(app, open_on);
}

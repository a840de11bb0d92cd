/* weft task diff and weft task undo: what a task changed, and putting it back. */
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "pager.h"
#include "task.h"
#include "terminal_status.h"

/* ---- which task ---- */

weft_exit weft__task_find_id(weft_app *app, weft_connection *connection, char ret[64]) {
    WEFT_ANSWER answer = {0};
    *ret = '\0';
    if (app->arg_count) {
        snprintf(ret, 64, "%s", app->args[0]);
        return WEFT_DONE;
    }
    weft_exit status = weft__hub_call(connection, "task.list", WEFT_OBJ({"limit", weft_int(1)}), &answer);
    if (status)
        return status;
    weft_json tasks = weft_get(answer.result, "tasks");
    if (weft_typeof(&tasks) != WEFT_ARRAY)
        tasks = *answer.result;
    weft_json newest = weft_at(&tasks, 0);
    snprintf(ret, 64, "%s", weft_get_str(&newest, "id", ""));
    return *ret ? WEFT_DONE : weft__fail(app, WEFT_NOT_FOUND, "\"weft task submit PROMPT\" makes one.", "there is no task");
}

weft_exit weft__task_on_connection(weft_app *app,
                                   weft_exit (*run)(weft_app *app, weft_connection *connection, const char *id)) {
    const weft_task_settings *how = app->settings;
    weft_connection connection;
    char id[64];
    app->reach.timeout_ms = how->timeout_ms;
    weft_exit status = weft__hub_call_open(app, how->url, &connection);
    if (status == WEFT_DONE)
        status = weft__task_find_id(app, &connection, id);
    if (status == WEFT_DONE)
        status = run(app, &connection, id);
    weft__connection_done(&connection);
    return status;
}

/* ---- diff --stat ---- */

static char letter_of(const char *change) {
    return strcmp(change, "type") == 0 ? 'T' : (char) (*change ? *change - 'a' + 'A' : '?');
}

static void put_changed_file(const weft_screen *screen, const weft_json *file) {
    const char *path = weft_get_str(file, "path", ""), *from = weft_get_str(file, "from", NULL);
    const char *change = weft_get_str(file, "change", "");
    weft__ink(screen, *change == 'a' ? WEFT_INK_STRING : *change == 'd' ? WEFT_INK_BAD : WEFT_INK_WARN);
    fprintf(screen->file, "%c ", letter_of(change));
    weft__plain(screen);
    if (from) {
        weft__put_path(screen, from);
        fputs(" -> ", screen->file);
    }
    weft__put_path(screen, path);
    if (weft_get_int(file, "additions", 0) + weft_get_int(file, "deletions", 0))
        fprintf(screen->file, "  +%lld -%lld", (long long) weft_get_int(file, "additions", 0),
                (long long) weft_get_int(file, "deletions", 0));
    if (weft_get_str(file, "newMode", NULL))
        fprintf(screen->file, "  %s -> %s", weft_get_str(file, "oldMode", ""), weft_get_str(file, "newMode", ""));
    static const char *const marks[][2] = {{"binary", "binary"},
                                           {"submodule", "another repository, not entered"},
                                           {"tooLarge", "too large to keep"},
                                           {"shared", "maybe by others"}};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (weft_get_bool(file, marks[i][0], false))
            fprintf(screen->file, "  (%s)", marks[i][1]);
    fputc('\n', screen->file);
}

static void put_sum(const weft_screen *screen, const weft_json *changes) {
    long long total = (long long) weft_get_int(changes, "total", 0);
    fprintf(screen->file, "%lld file%s, +%lld -%lld%s%s\n", total, total == 1 ? "" : "s",
            (long long) weft_get_int(changes, "additions", 0), (long long) weft_get_int(changes, "deletions", 0),
            weft_get_bool(changes, "running", false) ? ", up to now" : "",
            weft_get_bool(changes, "undone", false) ? ", undone" : "");
    weft_json others = weft_get(changes, "others");
    if (weft_get_int(changes, "shared", 0)) {
        fputs("others worked in this folder at the same time:", screen->file);
        for (weft_iter it = weft_iterate(&others); weft_next(&it);)
            fprintf(screen->file, " %.60s", weft_str_of(&it.value, ""));
        fputs(weft_count(&others) ? "\n" : " somebody between its tasks\n", screen->file);
    }
}

static weft_exit put_stat(weft_app *app, weft_connection *connection, const char *id) {
    weft_pager pager;
    int64_t skip = 0;
    bool more = true;
    weft_exit status = WEFT_DONE;
    weft__pager_open(&pager, &app->out);
    while (more && status == WEFT_DONE) {
        WEFT_ANSWER answer = {0};
        status = weft__hub_call(connection, "task.changes", WEFT_OBJ({"taskId", weft_str(id)}, {"skip", weft_int(skip)}),
                                &answer);
        if (status)
            break;
        weft_json files = weft_get(answer.result, "files");
        for (weft_iter it = weft_iterate(&files); weft_next(&it);)
            put_changed_file(&pager.screen, &it.value);
        skip += (int64_t) weft_count(&files);
        more = weft_get_bool(answer.result, "truncated", false) && weft_count(&files) && !ferror(pager.screen.file);
        if (!more)
            put_sum(&pager.screen, answer.result);
    }
    weft__pager_close(&pager);
    return status;
}

/* ---- diff ---- */

static const char *ink_of_line(const char *line, size_t len) {
    static const char *const heads[] = {"diff ",        "index ",  "--- ",       "+++ ",     "new file",
                                        "deleted file", "rename ", "similarity", "old mode", "new mode"};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (len >= strlen(heads[i]) && memcmp(line, heads[i], strlen(heads[i])) == 0)
            return WEFT_INK_BOLD;
    return !len           ? NULL
           : *line == '+' ? WEFT_INK_STRING
           : *line == '-' ? WEFT_INK_BAD
           : *line == '@' ? WEFT_INK_NUMBER
                          : NULL;
}

static void put_diff_lines(const weft_screen *screen, weft_bytes text) {
    for (const char *at = text.data, *end = at + text.len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t) (end - at));
        size_t len = (size_t) ((stop ? stop : end) - at);
        const char *ink = ink_of_line(at, len);
        if (ink)
            weft__ink(screen, ink);
        weft__put_prose(screen, at, len);
        if (ink)
            weft__plain(screen);
        if (stop)
            fputc('\n', screen->file);
        at += len + (stop != NULL);
    }
}

static weft_exit put_diff(weft_app *app, weft_connection *connection, const char *id) {
    const weft_task_settings *how = app->settings;
    weft_pager pager;
    int64_t offset = 0;
    weft_exit status = WEFT_DONE;
    bool opened = false;
    while (offset >= 0 && status == WEFT_DONE) {
        WEFT_ANSWER answer = {0};
        weft_bytes text = {"", 0};
        status = weft__hub_call(connection, "task.diff",
                                WEFT_OBJ({"taskId", weft_str(id)}, {"offset", weft_int(offset)},
                                         {"path", weft_str_or_none(app->arg_count > 1 ? app->args[1] : NULL)},
                                         {"context", how->context ? weft_int(how->context) : weft_none()}),
                                &answer);
        if (status)
            break;
        weft_json diff = weft_get(answer.result, "diff");
        if (!opened)
            weft__pager_open(&pager, &app->out);
        opened = true;
        if (weft_bytes_of(&diff, &text) >= 0)
            put_diff_lines(&pager.screen, text);
        offset = ferror(pager.screen.file) ? -1 : weft_get_int(answer.result, "next", -1);
    }
    if (opened)
        weft__pager_close(&pager);
    return status;
}

static weft_exit put_changes_json(weft_app *app, weft_connection *connection, const char *id) {
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call(connection, "task.changes", WEFT_OBJ({"taskId", weft_str(id)}), &answer);
    if (status == WEFT_DONE)
        weft__put_line(&app->out, weft_copy(answer.result));
    return status;
}

static weft_exit diff_on(weft_app *app, weft_connection *connection, const char *id) {
    const weft_task_settings *how = app->settings;
    if (!app->arg_count && app->err.terminal)
        fprintf(app->err.file, "%s:\n", id);
    return app->common.json ? put_changes_json(app, connection, id)
           : how->stat      ? put_stat(app, connection, id)
                            : put_diff(app, connection, id);
}

weft_exit weft__task_diff_word(weft_app *app) {
    return weft__task_on_connection(app, diff_on);
}

/* ---- undo ---- */

static const char *reason_text(const char *reason) {
    static const char *const texts[][2] = {
        {"changed", "somebody has changed it since"},
        {"exists", "somebody has created it again"},
        {"deleted", "somebody has deleted it since"},
        {"submodule", "it is another repository"},
        {"tooLarge", "it was too large to keep"},
        {"shared", "others worked at the same time and may have changed it; --shared puts it back all the same"},
        {"inTheWay", "something else is in its place"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i][0], reason) == 0)
            return texts[i][1];
    return reason;
}

static weft_exit put_conflicts(weft_app *app, const weft_json *result, const char *id) {
    weft_json conflicts = weft_get(result, "conflicts");
    for (weft_iter it = weft_iterate(&conflicts); weft_next(&it);) {
        const char *path = weft_get_str(&it.value, "path", "");
        weft__put_path(&app->err, path);
        fprintf(app->err.file, ": %s\n", reason_text(weft_get_str(&it.value, "reason", "")));
    }
    return weft__fail(app, WEFT_REFUSED, NULL, "%s: nothing was done, because of %lld file%s", id,
                      (long long) weft_get_int(result, "conflictCount", 0),
                      weft_get_int(result, "conflictCount", 0) == 1 ? "" : "s");
}

static weft_exit undo_on(weft_app *app, weft_connection *connection, const char *id) {
    const weft_task_settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call(connection, "task.undo",
                                      WEFT_OBJ({"taskId", weft_str(id)}, {"redo", how->redo ? weft_bool(true) : weft_none()},
                                               {"shared", how->shared ? weft_bool(true) : weft_none()}),
                                      &answer);
    if (status)
        return status;
    bool ok = weft_get_bool(answer.result, "ok", false);
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(answer.result));
        return ok ? WEFT_DONE : WEFT_REFUSED;
    }
    if (!ok)
        return put_conflicts(app, answer.result, id);
    long long files = (long long) weft_get_int(answer.result, "files", 0);
    bool there = strcmp(weft_get_str(answer.result, "where", ""), "worktree") == 0;
    weft__say(app, "%s is %s: %lld file%s %s", id, how->redo ? "there again" : "undone", files, files == 1 ? "" : "s",
              there ? "in its worktree" : "in the project's folder");
    if (!how->redo)
        weft__say(app, "  Take that back: weft task undo --redo %s", id);
    return WEFT_DONE;
}

weft_exit weft__task_undo_word(weft_app *app) {
    return weft__task_on_connection(app, undo_on);
}

/* ---- for others ---- */

bool weft__task_changes_text(const weft_json *changes, char *ret, size_t size) {
    long long files = (long long) weft_get_int(changes, "files", -1);
    const char *why = weft_get_str(changes, "why", "");
    *ret = '\0';
    if (*why)
        snprintf(ret, size, "not known: %.150s", why);
    else if (files > 0)
        snprintf(ret, size, "%lld file%s, +%lld -%lld%s", files, files == 1 ? "" : "s",
                 (long long) weft_get_int(changes, "additions", 0), (long long) weft_get_int(changes, "deletions", 0),
                 weft_get_bool(changes, "undone", false) ? " (undone)"
                 : *weft_get_str(changes, "merged", "")  ? " (merged)"
                                                         : "");
    else if (files == 0)
        snprintf(ret, size, "nothing");
    return files > 0;
}

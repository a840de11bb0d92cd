/* weft worktree: where tasks work beside the project's files, how large that is, and cleaning it up. */
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "subcommand.h"
#include "table.h"

typedef struct settings {
    const char *url;
    bool dry_run;
} settings;

/* "1 changed, 2 new, 3 commits"; "" for nothing. */
static const char *held_words(const weft_json *tree, char *ret, size_t size) {
    static const char *const names[][3] = {
        {"changed", "changed", "changed"}, {"unknown", "new", "new"}, {"commits", "commit", "commits"}};
    size_t used = 0;
    *ret = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0] && used < size; i++) {
        long long count = (long long) weft_get_int(tree, names[i][0], 0);
        if (count)
            used += (size_t) snprintf(ret + used, size - used, "%s%lld %s", used ? ", " : "", count,
                                      names[i][count == 1 ? 1 : 2]);
    }
    return ret;
}

static const char *size_text(char *ret, size_t size, int64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double) bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    snprintf(ret, size, unit && value < 10 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return ret;
}

static int add_worktree_row(weft_table *table, const weft_json *tree) {
    char held[160], size[32];
    const char *cells[] = {weft_get_str(tree, "name", ""),      weft_get_str(tree, "state", ""),
                           held_words(tree, held, sizeof held), size_text(size, sizeof size, weft_get_int(tree, "bytes", 0)),
                           weft_get_str(tree, "taskId", ""),    weft_get_str(tree, "sessionId", "deleted"),
                           weft_get_str(tree, "branch", "")};
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
        r = weft__table_add(table, cells[i]);
    return r;
}

static weft_exit list_worktrees(weft_app *app) {
    static const char *const heads[] = {"WORKTREE", "STATE", "HOLDS", "SIZE", "TASK", "SESSION", "BRANCH", NULL};
    const settings *how = app->settings;
    weft_table table = {.heads = heads};
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(app, how->url, "worktree.list", weft_none(), &answer);
    if (status)
        return status;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(answer.result));
        return WEFT_DONE;
    }
    weft_json trees = weft_get(answer.result, "worktrees");
    int r = 0;
    for (weft_iter it = weft_iterate(&trees); r >= 0 && weft_next(&it);)
        r = add_worktree_row(&table, &it.value);
    if (r >= 0 && weft_count(&trees))
        weft__table_put(&table, &app->out);
    else if (r >= 0)
        fputs("no task has a worktree\n", app->err.file);
    weft__table_done(&table);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

static void put_pruned(const weft_app *app, const weft_json *tree, bool dry) {
    const char *name = weft_get_str(tree, "name", ""), *why = weft_get_str(tree, "why", "");
    char size[32];
    if (*why)
        fprintf(app->err.file, "%s stays: %s\n", name, why);
    else
        fprintf(app->out.file, "%s%s, %s\n", name, dry ? " would be removed" : " is removed",
                size_text(size, sizeof size, weft_get_int(tree, "bytes", 0)));
}

static weft_exit prune_worktrees(weft_app *app) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(app, how->url, "worktree.prune",
                                           WEFT_OBJ({"name", app->arg_count ? weft_str(app->args[0]) : weft_none()},
                                                    {"dryRun", how->dry_run ? weft_bool(true) : weft_none()}),
                                           &answer);
    if (status)
        return status;
    weft_json trees = weft_get(answer.result, "worktrees");
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    for (weft_iter it = weft_iterate(&trees); !app->common.json && weft_next(&it);)
        put_pruned(app, &it.value, how->dry_run);
    if (!weft_count(&trees) && app->arg_count)
        return weft__fail(app, WEFT_NOT_FOUND, NULL, "there is no worktree %s", app->args[0]);
    if (!weft_count(&trees) && !app->common.json)
        fputs("no task has a worktree\n", app->err.file);
    return WEFT_DONE;
}

static const weft_subcommand subcommands[] = {
    {"list", " url ", NULL, 0, 0, list_worktrees, .help = "the worktrees of tasks, and what is in them"},
    {"prune", " dry-run url ", NULL, 0, 1, prune_worktrees, .usage = "[NAME]",
     .help = "remove worktrees that hold nothing you could lose"},
    {0},
};

static weft_exit run_worktree(weft_app *app) {
    return weft__subcommand_run(app);
}

static const weft_option options[] = {
    WEFT_OPTION(settings, dry_run, flag, "dry-run", 'n', NULL, "say which, and remove nothing"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft worktree",
    "which there are, how large, and what they hold that is nowhere else",
    "weft worktree prune",
    "remove those that hold nothing, and that no task uses",
    NULL,
};

const weft_verb weft__worktree_verb = {
    .name = "worktree",
    .help = "list the worktrees of tasks, and clean them up",
    .subcommands = subcommands,
    .usual = "list",
    .examples = examples,
    .about = "A worktree that holds files that are not committed, files that git does not know, or commits that only\n"
             "branches of worktrees have is never removed; \"weft task discard\" does that. Ignored files do not count.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_worktree,
};

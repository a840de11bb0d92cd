/* weft trust: say that what is in this project's .weft is yours, after seeing what it would allow. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "daemon.h"
#include "daemon_folder.h"
#include "descent.h"
#include "failure.h"
#include "stdin_lines.h"
#include "trust_view.h"

typedef struct settings {
    bool yes, list, revoke, aiwg;
} settings;

/* ---- list ---- */

static int put_trust_entry(void *ctx, const weft_trust_entry *entry) {
    const weft_app *app = ctx;
    if (app->common.json) {
        weft__put_line(&app->out, WEFT_OBJ({"path", weft_str(entry->path)}, {"aiwg", weft_bool(entry->aiwg)},
                                           {"confirmed", weft_bool(entry->confirmed)}, {"at", weft_str(entry->at)},
                                           {"config", *entry->config ? weft_str(entry->config) : weft_none()},
                                           {"epoch", *entry->epoch ? weft_str(entry->epoch) : weft_none()}));
        return 0;
    }
    fprintf(app->out.file, "%-10.10s  %-9s  ", entry->at, entry->confirmed ? "confirmed" : "made here");
    weft__put_text(&app->out, entry->path, strlen(entry->path));
    fprintf(app->out.file, "%s\n", entry->aiwg ? " (AIWG's files)" : "");
    return 0;
}

static weft_exit list_entries(weft_app *app) {
    char why[WEFT_TRUST_WHY] = "";
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    int r = weft__trust_each(put_trust_entry, app, why);
    return r < 0 ? weft__fail(app, WEFT_FAILED, WEFT_TRUST_PLACE, "%s", why) : WEFT_DONE;
}

/* ---- revoke ---- */

/* The folder that was named, also when it is there no more; or the project we stand in. */
static int find_revoked(weft_app *app, char ret[PATH_MAX]) {
    const char *named = app->arg_count ? app->args[0] : NULL;
    if (named && (realpath(named, ret) || *named == '/')) {
        if (access(named, F_OK) < 0)
            snprintf(ret, PATH_MAX, "%s", named);
        return 0;
    }
    if (named)
        return -ENOENT;
    weft__daemon_project(app->layout);
    return getcwd(ret, PATH_MAX) ? 0 : -errno;
}

static weft_exit revoke_entry(weft_app *app) {
    weft_trust_entry entry = {.aiwg = app->layout->aiwg};
    char why[WEFT_TRUST_WHY] = "";
    if (app->arg_count > 1)
        return weft__misused(app, "one folder at a time");
    int r = find_revoked(app, entry.path);
    if (r < 0)
        return weft__fail(app, WEFT_NOT_FOUND, NULL, "%s: %s", app->args[0], weft_strerror(r));
    int lock = weft__trust_lock(why);
    r = lock < 0 ? lock : weft__trust_put(&entry, true, why);
    if (lock >= 0)
        weft__trust_unlock(lock);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, WEFT_TRUST_PLACE, "%s", why);
    if (r == 0)
        return weft__fail(app, WEFT_NOT_FOUND, "\"weft trust --list\" shows which are.", "%s is not trusted", entry.path);
    if (app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"folder", weft_str(entry.path)}, {"state", weft_str("revoked")}));
    else {
        weft__put_text(&app->err, entry.path, strlen(entry.path));
        fputs(" is not trusted any more.\nA hub that runs there is not stopped by this.\n", app->err.file);
    }
    return WEFT_DONE;
}

/* ---- trust ---- */

static weft_exit tell_trusted(const weft_trust_view *view, const char *state) {
    const weft_app *app = view->app;
    char folder[PATH_MAX];
    if (app->common.json) {
        weft_trust_view now = *view;
        now.strange_config = now.strange_journal = now.strange_token = false;
        weft__trust_view_put_json(&now, state);
        return WEFT_DONE;
    }
    const char *here = getcwd(folder, sizeof folder) ? folder : ".";
    weft__put_text(&app->err, here, strlen(here));
    fprintf(app->err.file, ": %s\n", state);
    return WEFT_DONE;
}

/* Without a person and without --yes nothing is recorded, and nobody waits. */
static weft_exit refuse_to_guess(const weft_trust_view *view) {
    char why[WEFT_TRUST_WHY];
    weft__trust_view_reason(view, why);
    if (view->app->common.json) {
        weft__trust_view_put_json(view, "not trusted");
        return WEFT_UNAUTHORISED;
    }
    return weft__fail(view->app, WEFT_UNAUTHORISED, "--yes trusts it without asking.", "%s", why);
}

static weft_exit decide_trust(weft_trust_view *view, bool yes) {
    const weft_app *app = view->app;
    char why[WEFT_TRUST_WHY];
    if (view->config_r < 0)
        return weft__fail(app, WEFT_FAILED, "\"weft config check\" says where.",
                          "the configuration has a mistake, so what it would allow cannot be shown");
    if (weft__trust_view_is_fine(view) && !yes)
        return tell_trusted(view, "trusted");
    if (!yes && (app->common.json || !weft__stdin_is_person()))
        return refuse_to_guess(view);
    if (!yes) {
        weft__trust_view_reason(view, why);
        weft__put_text(&app->err, why, strlen(why));
        fputs(".\n", app->err.file);
        if (!weft__trust_view_ask(app))
            return weft__fail(app, WEFT_UNAUTHORISED, NULL, "nothing was recorded");
    }
    /* One that reads "weft trust" in a message would do as it says. */
    if (weft__descends_from_guard(getppid()) == 1)
        return weft__fail(app, WEFT_UNAUTHORISED, "A person types it in a terminal.",
                          "an agent may not say what is trusted; nothing was recorded");
    weft_exit status = weft__trust_view_record(view);
    return status ? status : tell_trusted(view, "trusted");
}

static weft_exit trust_project(weft_app *app, bool yes) {
    static const weft_serve_settings none;
    weft_trust_view *view;
    pid_t holder;
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    int r = weft__daemon_project(app->layout);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    weft_exit status = weft__daemon_folder_check(app);
    if (status)
        return status;
    if (r == 0 && access(app->layout->config, F_OK) < 0)
        return weft__fail(app, WEFT_NOT_FOUND, "\"weft start\" makes one, and that is trusted from its beginning.",
                          "there is no %s in this folder or above it", app->layout->home);
    view = weft__zalloc(NULL, sizeof *view);
    if (!view)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    weft__trust_view(app, &none, view);
    /* A daemon that runs has opened its journal, so that one is known; and it is writing to it. */
    if (view->strange_journal || weft__daemon_holder(app->layout, &holder) != 1)
        weft__trust_view_peek(view);
    if (!app->common.json && view->config_r >= 0)
        weft__trust_view_put(view, &app->out, false);
    fflush(app->out.file);
    status = decide_trust(view, yes);
    weft__trust_view_done(view);
    weft__free(NULL, view);
    return status;
}

static weft_exit run_trust(weft_app *app) {
    const settings *how = app->settings;
    if (how->list + how->revoke + how->yes > 1)
        return weft__misused(app, "one of --yes, --list and --revoke");
    if (how->aiwg)
        app->layout = &weft__layout_aiwg;
    return how->list ? list_entries(app) : how->revoke ? revoke_entry(app) : trust_project(app, how->yes);
}

static const weft_option options[] = {
    WEFT_OPTION(settings, yes, flag, "yes", 'y', NULL, "trust it without asking"),
    WEFT_OPTION(settings, list, flag, "list", 0, NULL, "list every trusted project"),
    WEFT_OPTION(settings, revoke, flag, "revoke", 0, NULL, "stop trusting this project, or FOLDER"),
    WEFT_OPTION_AIWG(settings),
    {0},
};

static const char *const examples[] = {
    "weft trust",
    "show what this project's .weft would allow, and ask",
    "weft trust --yes",
    "the same without asking, for scripts",
    "weft trust --list",
    "every project that is trusted",
    "weft trust --revoke ~/old-project",
    "not that one any more",
    NULL,
};

const weft_verb weft__trust_verb = {
    .name = "trust",
    .help = "show what this project would run and open, and allow it",
    .usage = "[--revoke [FOLDER]]",
    .examples = examples,
    .about =
        "A clone or an archive can bring a .weft: a journal with tasks that would run, a configuration that starts\n"
        "programs or opens doors, a token that others know. Nothing of it counts before it is trusted. What your own\n"
        "\"weft start\" makes in a folder without one is trusted from its beginning; a configuration that you change needs\n"
        "it again. What you trust is recorded in weft/trust.json below $XDG_STATE_HOME (~/.local/state), not in the "
        "project.\n"
        "Exit status 4: it is not trusted.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .run = run_trust,
};

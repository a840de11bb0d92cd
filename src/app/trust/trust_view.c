/* Looking at a project before it is trusted. Nothing of it is acted on here: the configuration is read, and the journal is
 * looked at in a copy. */
#include "trust_view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon_folder.h"
#include "endpoint.h"
#include "failure.h"
#include "stdin_lines.h"
#include "wiring.h"

static void say_nothing(void *ctx, const weft_remark *remark) {
    (void) ctx;
    (void) remark;
}

/* Twice: as it would count now, for what is held back, and as it would count once it is trusted. */
static void load_configs(weft_trust_view *view, const weft_serve_settings *flags) {
    char user[WEFT_PATH_SIZE];
    weft_config judged;
    const weft_layout *layout = view->app->layout;
    const weft_remarks silent = {say_nothing, NULL};
    weft__config_user_path(user);
    weft_config_from from = {user, layout->config, getenv, layout->aiwg, flags, &view->trust};
    weft__config_load(&judged, &from, &silent, NULL);
    view->strange_config = judged.held > 0;
    weft__config_done(&judged);
    from.trust = NULL;
    view->config_r = weft__config_load(&view->config, &from, &silent, NULL);
    if (view->config_r >= 0)
        view->config_r = weft__config_fill(&view->config, &view->settings);
}

void weft__trust_view(weft_app *app, const weft_serve_settings *flags, weft_trust_view *ret) {
    *ret = (weft_trust_view){.app = app, .store = app->layout->store};
    weft__trust_look(app->layout, &ret->trust);
    load_configs(ret, flags);
    if (ret->config_r >= 0 && ret->settings.store_path)
        ret->store = ret->settings.store_path;
    ret->kind = ret->config_r < 0 ? weft__store_first(true) : weft__store_named(ret->settings.store_kind);
    ret->keeps = weft__store_lasts(ret->kind);
    ret->strange_journal = weft__store_has_files(ret->kind) && weft__trust_has_strange_journal(&ret->trust, ret->store);
    ret->strange_token = weft__trust_has_strange_token(&ret->trust);
}

void weft__trust_view_done(weft_trust_view *view) {
    weft__config_done(&view->config);
}

bool weft__trust_view_is_fine(const weft_trust_view *view) {
    return !view->strange_journal && !view->strange_token && !view->strange_config;
}

void weft__trust_view_reason(const weft_trust_view *view, char ret[WEFT_TRUST_WHY]) {
    const weft_layout *layout = view->app->layout;
    const char *home = layout->home;
    switch (view->trust.folder) {
    case WEFT_FOLDER_MOVED:
        snprintf(ret, WEFT_TRUST_WHY, "the %s here was trusted in another place: %.300s. It was moved or copied here", home,
                 view->trust.moved_from);
        return;
    case WEFT_FOLDER_REPLACED:
        snprintf(ret, WEFT_TRUST_WHY,
                 "the %s here is not the one that was trusted: it was restored, unpacked or cloned again", home);
        return;
    case WEFT_FOLDER_KNOWN:
        snprintf(ret, WEFT_TRUST_WHY, "%s is not the one that was trusted: it is new, or was changed or replaced",
                 view->strange_journal ? view->store
                 : view->strange_token ? layout->token
                                       : layout->config);
        return;
    default:
        if (view->trust.failed < 0)
            snprintf(ret, WEFT_TRUST_WHY, "%s", view->trust.why);
        else if (view->trust.folder == WEFT_FOLDER_ABSENT)
            snprintf(ret, WEFT_TRUST_WHY, "%s is not trusted", layout->config);
        else
            snprintf(ret, WEFT_TRUST_WHY,
                     "the %s here was not made by your Weft: it may have come with a clone or an archive", home);
    }
}

/* ---- the journal ---- */

void weft__trust_view_peek(weft_trust_view *view) {
    char folder[PATH_MAX], why[WEFT_TRUST_WHY];
    struct stat info;
    if (!weft__store_has_files(view->kind) || lstat(view->store, &info) < 0)
        return;
    view->peeked = true;
    int lock = weft__trust_lock(why); /* which also makes the folder; no two look at once */
    view->peek_r = lock < 0 ? lock : weft__trust_path(folder);
    if (view->peek_r >= 0) {
        *strrchr(folder, '/') = '\0';
        view->peek_r = view->kind->peek ? view->kind->peek(view->store, folder, &view->peek) : -ENOTSUP;
    }
    if (lock >= 0)
        weft__trust_unlock(lock);
}

/* ---- recording ---- */

static int fill_entry(const weft_trust_view *view, weft_trust_entry *ret) {
    const weft_layout *layout = view->app->layout;
    char log[PATH_MAX + 16];
    *ret = (weft_trust_entry){.aiwg = layout->aiwg, .confirmed = true};
    snprintf(log, sizeof log, "%s-wal", view->store);
    if (!getcwd(ret->path, sizeof ret->path))
        return -errno;
    int r = weft__trust_id(layout->home, ret->folder);
    if (r < 0)
        return r;
    weft__trust_id(view->store, ret->journal);
    weft__trust_id(log, ret->log);
    weft__trust_id(layout->token, ret->token);
    if (view->peeked && view->peek_r >= 0)
        snprintf(ret->epoch, sizeof ret->epoch, "%s", view->peek.epoch);
    else if (!view->peeked && view->trust.folder == WEFT_FOLDER_KNOWN) {
        memcpy(ret->epoch, view->trust.entry.epoch, sizeof ret->epoch);
        ret->opening = view->trust.entry.opening;
    }
    if (view->config.project.text)
        weft__trust_digest(view->config.project.text, view->config.project.len, ret->config);
    return 0;
}

/* AIWG's configuration can be there before the daemon's folder is. */
weft_exit weft__trust_view_record(const weft_trust_view *view) {
    weft_trust_entry entry;
    char why[WEFT_TRUST_WHY] = "";
    int lock = weft__trust_lock(why);
    int r = lock < 0 ? lock : view->trust.folder == WEFT_FOLDER_ABSENT ? weft__daemon_folder_fill(view->app->layout) : 0;
    if (r >= 0)
        r = fill_entry(view, &entry);
    if (r >= 0)
        r = weft__trust_put(&entry, false, why);
    if (lock >= 0)
        weft__trust_unlock(lock);
    if (r >= 0)
        return WEFT_DONE;
    return weft__fail(view->app, WEFT_FAILED, *why ? WEFT_TRUST_PLACE : NULL, "%s", *why ? why : weft_strerror(r));
}

/* ---- asking ---- */

bool weft__trust_view_ask(const weft_app *app) {
    char line[64] = "";
    fputs("Trust it? [y/N] ", app->err.file);
    fflush(app->err.file);
    if (!fgets(line, sizeof line, stdin))
        fputc('\n', app->err.file);
    return strcasecmp(line, "y\n") == 0 || strcasecmp(line, "yes\n") == 0;
}

static weft_exit refuse_strange(const weft_trust_view *view) {
    char why[WEFT_TRUST_WHY];
    weft__trust_view_reason(view, why);
    return weft__fail(view->app, WEFT_UNAUTHORISED, view->trust.failed < 0 ? WEFT_TRUST_PLACE : WEFT_TRUST_NEXT, "%s", why);
}

static weft_exit ask_or_refuse(weft_trust_view *view) {
    weft_app *app = view->app;
    char why[WEFT_TRUST_WHY];
    weft__trust_view_peek(view);
    weft__trust_view_reason(view, why);
    if (!weft__stdin_is_person() || app->common.json || view->trust.failed < 0) {
        weft__trust_view_put(view, &app->err, true);
        return refuse_strange(view);
    }
    weft__put_text(&app->err, why, strlen(why));
    fputs(".\n", app->err.file);
    weft__trust_view_put(view, &app->err, true);
    if (weft__trust_view_ask(app))
        return weft__trust_view_record(view);
    return weft__fail(app, WEFT_UNAUTHORISED, WEFT_TRUST_NEXT, "nothing was started");
}

/* Does it use what is in the daemon's folder? Not somebody's child on stdio, nor one that keeps nothing and was given places
 * of its own to listen at. Should it need the token there, that is looked at when it is read. */
static bool uses_folder(const weft_trust_view *view, const weft_serve_settings *flags) {
    bool child = flags->listen.count == 1 && weft__is_stdio(flags->listen.items[0]);
    return flags->listen.count == 0 || (view->keeps && !child);
}

/* A look without the lock may see half of what another start is just making, so what it finds strange is looked at again. */
static void view_settled(weft_app *app, const weft_serve_settings *flags, weft_trust_view *ret) {
    char why[WEFT_TRUST_WHY];
    weft__trust_view(app, flags, ret);
    if (weft__trust_view_is_fine(ret))
        return;
    int lock = weft__trust_lock(why);
    if (lock < 0)
        return;
    weft__trust_view_done(ret);
    weft__trust_view(app, flags, ret);
    weft__trust_unlock(lock);
}

weft_exit weft__trust_gate(weft_app *app, const weft_serve_settings *flags, bool projects) {
    weft_trust_view view;
    view_settled(app, flags, &view);
    weft_exit status = WEFT_DONE;
    if (!projects && !uses_folder(&view, flags))
        view.strange_journal = view.strange_token = false;
    if (view.config_r >= 0 && !weft__trust_view_is_fine(&view)) /* a mistake is explained by whoever reads it next */
        status = ask_or_refuse(&view);
    weft__trust_view_done(&view);
    return status;
}

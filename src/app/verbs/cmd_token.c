/* weft token: give out tokens by name, see them, take them back. Through the daemon when one runs, so that it holds at once;
 * otherwise in the file that the next one reads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "daemon.h"
#include "daemon_folder.h"
#include "failure.h"
#include "hub_call.h"
#include "stamp.h"
#include "subcommand.h"
#include "table.h"
#include "time_text.h"
#include "token_file.h"
#include "token_life.h"

typedef struct settings {
    const char *url, *scope, *expires;
} settings;

#define SHOWN_ONCE "This is the only time that it is shown."

/* ---- where ---- */

/* The layout of the nearest hub, from here upward; NULL: there is none. */
static const weft_layout *nearest_layout(void) {
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder))
        return NULL;
    do
        for (const weft_layout *const *at = weft__layouts; *at; at++)
            if (weft__layout_is_in(*at, folder, false))
                return *at;
    while (weft__layout_up(folder));
    return NULL;
}

/* Is there a daemon to ask? Then, or when one was named, it is asked. Otherwise we stand in the project's folder afterwards.
 */
static weft_exit find_hub(weft_app *app, bool *ret_ask) {
    const settings *how = app->settings;
    pid_t holder;
    *ret_ask = how->url != NULL;
    if (how->url)
        return WEFT_DONE;
    const weft_layout *layout = nearest_layout();
    int r = layout ? weft__daemon_project(layout) : 0;
    if (layout)
        app->layout = layout;
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    if (r == 0)
        return weft__fail(app, WEFT_NOT_FOUND, "\"weft start\" makes one.", "there is no hub in this folder or above it");
    weft_exit status = weft__daemon_folder_check(app);
    *ret_ask = status == WEFT_DONE && weft__daemon_holder(app->layout, &holder) == 1;
    return status;
}

/* ---- add ---- */

static void put_added(const weft_app *app, const char *name, const char *scopes, const char *expires, const char *secret) {
    if (app->common.json) {
        weft__put_line(&app->out,
                       WEFT_OBJ({"name", weft_str(name)}, {"scopes", weft_str(scopes)},
                                {"expiresAt", expires ? weft_str(expires) : weft_none()}, {"token", weft_str(secret)}));
        return;
    }
    char time[WEFT_TIME_TEXT];
    weft__say(app, "token %s: %s; expires %s. " SHOWN_ONCE, name, scopes, weft__time_shown(time, expires, "never"));
    fflush(app->err.file);
    fprintf(app->out.file, "%s\n", secret);
}

static weft_exit add_by_daemon(weft_app *app, const char *scopes, int64_t life) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit failed = weft__hub_call_once(
        app, how->url, "token.add",
        WEFT_OBJ({"name", weft_str(app->args[0])}, {"scopes", weft_str(scopes)}, {"expiresIn", weft_int(life)}), &answer);
    if (failed)
        return failed;
    put_added(app, weft_get_str(answer.result, "name", ""), weft_get_str(answer.result, "scopes", ""),
              weft_get_str(answer.result, "expiresAt", NULL), weft_get_str(answer.result, "token", ""));
    return WEFT_DONE;
}

static weft_exit explain_file(const weft_app *app, int r, const char *why) {
    return weft__fail(app, r == -EEXIST ? WEFT_REFUSED : WEFT_FAILED,
                      r == -EEXIST ? "\"weft token revoke NAME\" takes it back." : NULL, "%s", why);
}

static weft_exit add_to_file(weft_app *app, const char *scopes, int64_t life) {
    weft_token_row row = {.expires_at = life ? (int64_t) time(NULL) + life : 0};
    char secret[WEFT_TOKEN_SECRET], why[WEFT_TRUST_WHY] = "", expires[WEFT_STAMP];
    snprintf(row.name, sizeof row.name, "%s", app->args[0]);
    snprintf(row.scopes, sizeof row.scopes, "%s", scopes);
    int r = weft__tokens_add(app->layout, &row, secret, why);
    if (r < 0)
        return explain_file(app, r, why);
    put_added(app, row.name, row.scopes, row.expires_at ? weft__stamp(row.expires_at * 1000, expires) : NULL, secret);
    return WEFT_DONE;
}

static weft_exit give_token(weft_app *app) {
    const settings *how = app->settings;
    char scopes[WEFT_TOKEN_SCOPES];
    int64_t life = weft__token_life(how->expires);
    bool ask;
    if (!weft__token_is_name(app->args[0]))
        return weft__misused(app,
                             "\"%s\" cannot be a name: 1 to 64 letters, digits, dots, dashes and underscores, and not "
                             "\"token\"",
                             app->args[0]);
    if (weft__token_scopes(how->scope ? how->scope : "read work", scopes) < 0)
        return weft__misused(app, "--scope: some of " WEFT_TOKEN_SCOPE_NAMES ", separated by commas");
    if (life < 0)
        return weft__misused(app, "--expires: a time such as 12h, 30d or 8w, or \"never\"");
    weft_exit status = find_hub(app, &ask);
    if (status)
        return status;
    return ask ? add_by_daemon(app, scopes, life) : add_to_file(app, scopes, life);
}

/* ---- list ---- */

typedef struct listing {
    weft_app *app;
    weft_table table;
    size_t count;
} listing;

static int put_token_row(listing *self, const char *name, const char *scopes, const char *created, const char *expires) {
    int r = 0;
    self->count++;
    if (self->app->common.json) {
        weft__put_line(&self->app->out,
                       WEFT_OBJ({"name", weft_str(name)}, {"scopes", weft_str(scopes)}, {"createdAt", weft_str(created)},
                                {"expiresAt", expires ? weft_str(expires) : weft_none()}));
        return 0;
    }
    char times[2][WEFT_TIME_TEXT];
    const char *const cells[] = {name, scopes, weft__time_shown(times[0], created, ""),
                                 weft__time_shown(times[1], expires, "never")};
    for (size_t i = 0; r >= 0 && i < 4; i++)
        r = weft__table_add(&self->table, cells[i]);
    return r;
}

static weft_exit list_by_daemon(listing *self) {
    const settings *how = self->app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit failed = weft__hub_call_once(self->app, how->url, "token.list", weft_none(), &answer);
    if (failed)
        return failed;
    weft_json tokens = weft_get(answer.result, "tokens");
    for (weft_iter it = weft_iterate(&tokens); weft_next(&it);)
        put_token_row(self, weft_get_str(&it.value, "name", ""), weft_get_str(&it.value, "scopes", ""),
                      weft_get_str(&it.value, "createdAt", ""), weft_get_str(&it.value, "expiresAt", NULL));
    return WEFT_DONE;
}

static weft_exit list_of_file(listing *self) {
    char why[WEFT_TRUST_WHY] = "", created[WEFT_STAMP], expires[WEFT_STAMP];
    weft_token_list *list = weft__zalloc(NULL, sizeof *list);
    int r = list ? weft__tokens_load(self->app->layout, list, why) : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < list->count; i++) {
        const weft_token_row *row = &list->rows[i];
        put_token_row(self, row->name, row->scopes, weft__stamp(row->created_at * 1000, created),
                      row->expires_at ? weft__stamp(row->expires_at * 1000, expires) : NULL);
    }
    weft__free(NULL, list);
    return r < 0 ? explain_file(self->app, r, *why ? why : weft_strerror(r)) : WEFT_DONE;
}

static weft_exit show_tokens(weft_app *app) {
    static const char *const heads[] = {"NAME", "SCOPES", "CREATED", "EXPIRES", NULL};
    listing self = {.app = app, .table.heads = heads};
    bool ask;
    weft_exit status = find_hub(app, &ask);
    if (status == WEFT_DONE)
        status = ask ? list_by_daemon(&self) : list_of_file(&self);
    if (status == WEFT_DONE && !app->common.json && self.count)
        weft__table_put(&self.table, &app->out);
    else if (status == WEFT_DONE && !self.count)
        fprintf(app->err.file, "no tokens but the one in %s\n", app->layout->token);
    weft__table_done(&self.table);
    return status;
}

/* ---- revoke ---- */

static weft_exit revoke_by_daemon(weft_app *app) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    return weft__hub_call_once(app, how->url, "token.revoke", WEFT_OBJ({"name", weft_str(app->args[0])}), &answer);
}

static weft_exit revoke_in_file(weft_app *app) {
    char why[WEFT_TRUST_WHY] = "";
    int r = weft__tokens_remove(app->layout, app->args[0], why);
    if (r < 0)
        return explain_file(app, r, why);
    return r ? WEFT_DONE
             : weft__fail(app, WEFT_NOT_FOUND, "\"weft token list\" shows which there are.", "there is no token %s",
                          app->args[0]);
}

static weft_exit revoke_one(weft_app *app) {
    bool ask;
    weft_exit status = find_hub(app, &ask);
    if (status == WEFT_DONE)
        status = ask ? revoke_by_daemon(app) : revoke_in_file(app);
    if (status == WEFT_DONE && app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"revoked", weft_str(app->args[0])}));
    else if (status == WEFT_DONE)
        fprintf(app->err.file, "token %s is revoked%s\n", app->args[0], ask ? ", and its connections are closed" : "");
    return status;
}

/* ---- the verb ---- */

static const weft_subcommand subcommands[] = {
    {"add", " url scope expires ", "which name should the token have?", 1, 1, give_token, .usage = "NAME",
     .help = "make a token, and print it once"},
    {"list", " url ", NULL, 0, 0, show_tokens, .help = "the tokens with a name, what each allows, and when it ends"},
    {"revoke", " url ", "which token? Give its name", 1, 1, revoke_one, .usage = "NAME",
     .help = "make a token worthless; who uses it is disconnected"},
    {0},
};

static weft_exit run_token(weft_app *app) {
    return weft__subcommand_run(app);
}

static const weft_option options[] = {
    WEFT_URL_OPTION(settings),
    WEFT_OPTION(settings, scope, text, "scope", 0, "SCOPES",
                "what it allows, separated by commas: " WEFT_TOKEN_SCOPE_NAMES " (default read,work)"),
    WEFT_OPTION(settings, expires, text, "expires", 0, "TIME", "when it expires: 12h, 30d, 8w (default never)"),
    {0},
};

static const char *const examples[] = {
    "weft token add phone --expires 30d",
    "a token for a phone, which may read and work; it is shown once",
    "weft token add dashboard --scope read",
    "one that may only look",
    "weft token list",
    "which there are",
    "weft token revoke phone",
    "not any more; its connections are closed",
    NULL,
};

const weft_verb weft__token_verb = {
    .name = "token",
    .help = "give out tokens by name, list them, take them back",
    .subcommands = subcommands,
    .usual = "list",
    .examples = examples,
    .about = "Clients that come over the network show a token. The one in .weft/token, made on the first start, allows\n"
             "everything. Tokens with a name can allow less, expire, and be taken back one by one. Only their SHA-256\n"
             "digests are kept, below $XDG_STATE_HOME/weft (~/.local/state/weft), not in the project.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_token,
};

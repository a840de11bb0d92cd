/* Targets: telling URLs from methods, finding the daemon, reading tokens. Nothing is connected here. */
#include "endpoint.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon.h"
#include "daemon_folder.h"
#include "failure.h"
#include "hmac.h"
#include "key_file.h"

/* Longer than any token there is; a file that is not one is noticed before it is sent anywhere. */
#define MAX_TOKEN 4096

/* ---- URLs ---- */

/* "localhost:4000" is not a URL, but it is clear what is meant. */
static bool is_host_and_port(const char *arg) {
    const char *colon = strrchr(arg, ':');
    bool one_host = !strchr(arg, '/') && (*arg == '[' || strchr(arg, ':') == colon);
    return colon && colon > arg && one_host && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0';
}

bool weft__is_url(const char *arg) {
    return weft__transport_of(NULL, arg) || strncmp(arg, "../", 3) == 0 || strstr(arg, "://") || is_host_and_port(arg);
}

weft_exit weft__only_url_check(const weft_app *app) {
    if (app->arg_count && !weft__is_url(app->args[0]))
        return weft__misused(app, "\"%s\" is not a URL", app->args[0]);
    if (app->arg_count > 1)
        return weft__misused(app, "unexpected argument \"%s\"; one URL is enough", app->args[1]);
    return WEFT_DONE;
}

bool weft__is_stdio(const char *url) {
    const weft_transport *transport = weft__transport_of(NULL, url);
    return transport && transport->scheme.flags & WEFT_OUR_STDIO;
}

weft_exit weft__url_check(const weft_app *app, const char *text, weft_url *ret) {
    const char *why;
    if (weft__transport_parse(NULL, text, NULL, ret, &why) == 0)
        return WEFT_DONE;
    if (is_host_and_port(text))
        return weft__misused(app, "\"%s\" is not a URL; did you mean tcp://%s?", text, text);
    return weft__misused(app, "%s: %s", text, why);
}

/* ---- the daemon of this folder ---- */

static weft_exit fail_absent(const weft_app *app, const char *folder) {
    static const char next[] = "\"weft start\" starts one here. To use another hub, give its URL.";
    weft_exit foreign = folder ? WEFT_DONE : weft__daemon_folder_check(app);
    if (foreign)
        return foreign;
    if (!folder)
        return weft__fail(app, WEFT_UNREACHABLE, next, "no hub runs here: there is no %s in this folder or above it",
                          weft__layout_weft.home);
    return weft__fail(app, WEFT_UNREACHABLE, next, "the hub of %s does not run: there is no %s", folder,
                      app->layout->socket);
}

/* The socket of the daemon that all verbs mean here. */
static weft_exit find_daemon(weft_app *app, char ret[WEFT_SOCKET_PATH]) {
    char folder[WEFT_FOLDER_PATH];
    int r = weft__daemon_look(app, folder);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "this folder: %s", weft_strerror(r));
    return r == 1 && weft__layout_socket(app->layout, folder, ret) ? WEFT_DONE : fail_absent(app, r == 1 ? folder : NULL);
}

/* ---- tokens ---- */

static bool is_clean(const char *token) {
    for (; *token; token++)
        if (*token <= ' ' || *token == 0x7f)
            return false;
    return true;
}

static weft_exit keep_token(const weft_app *app, const char *where, char *text, char **ret) {
    text[strcspn(text, "\r\n")] = '\0';
    if (!*text || !is_clean(text))
        return weft__fail(app, WEFT_USAGE, NULL, "%s: this is not a token: one line without blanks", where);
    *ret = weft__strndup(NULL, text, strlen(text));
    return *ret ? WEFT_DONE : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
}

weft_exit weft__token_read(const weft_app *app, const char *path, char **ret) {
    char text[MAX_TOKEN] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return weft__fail(app, WEFT_USAGE, NULL, "%s: %s", path, weft_strerror(-errno));
    bool some = fgets(text, sizeof text, file);
    fclose(file);
    return keep_token(app, path, some ? text : (char[]){""}, ret);
}

static weft_exit find_own_token(const weft_app *app, char **ret) {
    const char *from_environment = getenv("WEFT_TOKEN");
    char text[MAX_TOKEN];
    *ret = NULL;
    if (app->reach.token_file)
        return weft__token_read(app, app->reach.token_file, ret);
    if (!from_environment || !*from_environment)
        return WEFT_DONE;
    snprintf(text, sizeof text, "%s", from_environment);
    return keep_token(app, "WEFT_TOKEN", text, ret);
}

static weft_exit find_own_key(const weft_app *app, weft_target *ret) {
    const weft_reach *reach = &app->reach;
    if (!reach->key_file && reach->key_id)
        return weft__misused(app, "--key-id names the key of --key-file, which is missing");
    if (!reach->key_file)
        return WEFT_DONE;
    if (reach->key_id && !weft__is_sign_word(reach->key_id, strlen(reach->key_id), WEFT_KEY_ID_MAX))
        return weft__misused(app, "--key-id: at most %d plain characters without blanks", WEFT_KEY_ID_MAX);
    weft_exit status = weft__key_read(app, reach->key_file, &ret->secret);
    if (status == WEFT_DONE)
        ret->key = (weft_sign_key){.id = reach->key_id, .secret = ret->secret, .len = strlen(ret->secret)};
    return status;
}

/* ---- targets ---- */

weft_exit weft__target_of(const weft_app *app, const char *text, weft_target *ret) {
    char with_scheme[PATH_MAX + 8];
    weft_url url;
    if (strncmp(text, "../", 3) == 0) {
        snprintf(with_scheme, sizeof with_scheme, "unix:%s", text);
        text = with_scheme;
    }
    weft_exit status = weft__url_check(app, text, &url);
    if (status)
        return status;
    ret->scheme = url.scheme;
    ret->own_socket = url.scheme->flags & WEFT_KNOWS_USER && strcmp(url.path, app->layout->socket) == 0;
    weft__url_done(&url, NULL);
    status = find_own_token(app, &ret->token);
    if (status == WEFT_DONE)
        status = find_own_key(app, ret);
    if (status)
        return status;
    ret->url = weft__strndup(NULL, text, strlen(text));
    ret->shown = weft__strndup(NULL, text, weft__url_shown(text, ret->scheme));
    int r = weft__copy_or_null(NULL, app->reach.cacert, &ret->cacert);
    return ret->url && ret->shown && r >= 0 ? WEFT_DONE : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
}

weft_exit weft__target_take(weft_app *app, weft_target *ret) {
    if (app->arg_count && weft__is_url(app->args[0])) {
        app->arg_count--;
        return weft__target_of(app, *app->args++, ret);
    }
    char path[WEFT_SOCKET_PATH], url[WEFT_SOCKET_PATH + 8];
    weft_exit status = find_daemon(app, path);
    if (status)
        return status;
    snprintf(url, sizeof url, "unix:%s", path);
    status = weft__target_of(app, url, ret);
    ret->here = true;
    return status;
}

weft_exit weft__target_fail(const weft_app *app, const weft_target *target, int r, const char *trouble) {
    if (target->here && r == -EACCES && target->scheme->flags & WEFT_KNOWS_USER)
        return weft__fail(app, WEFT_UNREACHABLE,
                          "A hub works only for the user who owns its folder; this socket is another user's.",
                          "%s: another user's process listens there", target->shown);
    if (target->here && r == -ECONNREFUSED)
        return weft__fail(app, WEFT_UNREACHABLE, "\"weft start\" starts it again; \"weft logs\" may say why it ended.",
                          "the hub does not run any more: nobody is listening at %s", target->shown);
    return weft__fail_at(app, target->shown, r, trouble);
}

void weft__target_done(weft_target *target) {
    target->url = weft__free(NULL, target->url);
    target->shown = weft__free(NULL, target->shown);
    target->token = weft__free(NULL, target->token);
    target->cacert = weft__free(NULL, target->cacert);
    target->secret = weft__key_free(target->secret);
}

bool weft__target_shows_by_call(const weft_target *target) {
    return target->token && (target->scheme->flags & (WEFT_NETWORK | WEFT_OVER_HTTP)) == WEFT_NETWORK;
}

int weft__target_show(weft_peer *peer, const weft_target *target, weft_on_answer *on_answer, void *ctx) {
    return weft_call_start(peer, "weft.auth", WEFT_OBJ({"token", weft_str(target->token)}),
                           &(weft_call_opts){.on_answer = on_answer, .ctx = ctx}, NULL);
}

weft_connect_opts weft__target_opts(const weft_app *app, weft_target *target, weft_service *service) {
    const weft_reach *reach = &app->reach;
    return (weft_connect_opts){
        .service = service,
        .framing = reach->content_length ? &weft_content_length : NULL,
        .tls = {.cert = reach->cert, .key = reach->key, .ca = target->cacert, .insecure = reach->insecure},
        .token = target->token,
        .gzip = reach->compress,
        .sign_key = target->secret ? &target->key : NULL,
        .same_user = target->here || target->own_socket,
        .timeout_ms = reach->timeout_ms,
    };
}

/* The configuration of a running daemon: put together at the start, and again whenever SIGHUP asks for it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc.h"
#include "config.h"
#include "say.h"

struct weft_serve_config {
    weft_app *app;
    weft_serve_settings typed;
    weft_serve_settings settings; /* strings are borrowed from started */
    weft_config started;          /* what cannot change is compared with this, */
    weft_config current;          /* and what can with this, once there is one */
    bool reloaded;
    char user[WEFT_PATH_SIZE];
    bool ends_with_terminal;
};

static void say(void *ctx, const weft_remark *remark) {
    weft__warn_about(ctx, remark);
}

static int load(weft_serve_config *self, weft_config *ret) {
    weft_config_from from = {self->user, WEFT_CONFIG_PROJECT, getenv, &self->typed};
    return weft__config_load(ret, &from, &(weft_remarks){say, self->app}, NULL);
}

/* Somebody closed the window: that is an end, unless we were told to outlive it (nohup) or never had one. */
static bool has_terminal(void) {
    int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static bool ignores_hangup(void) {
    struct sigaction action;
    return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

weft_exit weft__serve_config_new(weft_app *app, weft_serve_config **ret) {
    weft_serve_config *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    self->app = app;
    self->typed = *(const weft_serve_settings *) app->settings;
    if (self->typed.no_rate)
        self->typed.rate = -1;
    self->ends_with_terminal = has_terminal() && !ignores_hangup();
    weft__config_user_path(self->user);
    int r = load(self, &self->started);
    if (r >= 0)
        r = weft__config_fill(&self->started, &self->settings);
    if (r >= 0) {
        *ret = self;
        return WEFT_DONE;
    }
    weft__serve_config_free(self);
    if (r == -EBADMSG)
        return weft__fail(app, WEFT_FAILED, "\"weft config check\" looks at it without starting anything.",
                          "the configuration has a mistake");
    return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
}

weft_serve_config *weft__serve_config_free(weft_serve_config *self) {
    if (!self)
        return NULL;
    weft__config_done(&self->started);
    weft__config_done(&self->current);
    return weft__free(NULL, self);
}

const weft_serve_settings *weft__serve_config_settings(const weft_serve_config *self) {
    return &self->settings;
}

/* ---- again ---- */

static void tell_change(const weft_serve_config *self, const weft_key *key, const weft_setting *now) {
    if (!key->live)
        weft__warn(self->app, "weft serve: %s has changed; that needs a restart", key->path);
    else if (now->value.len < 200)
        weft__warn(self->app, "weft serve: %s is %.*s now", key->path, (int) now->value.len, now->value.text);
    else
        weft__warn(self->app, "weft serve: %s has changed", key->path);
}

static void tell_changes(const weft_serve_config *self, const weft_config *next) {
    for (size_t i = 0; weft__keys[i].path; i++) {
        const weft_config *before = weft__keys[i].live && self->reloaded ? &self->current : &self->started;
        if (!weft__config_same(&before->settings[i], &next->settings[i]))
            tell_change(self, &weft__keys[i], &next->settings[i]);
    }
}

static int apply(const weft_serve_settings *settings, weft_server *server) {
    int r = weft_server_allow(server, settings->hosts.items, settings->origins.items);
    if (r >= 0)
        weft_service_set_limits(weft_server_service(server), &settings->limits);
    return r;
}

/* next is taken on success. */
static int change(weft_serve_config *self, weft_config *next, weft_server *server) {
    weft_serve_settings settings;
    int r = weft__config_fill(next, &settings);
    if (r >= 0)
        r = apply(&settings, server);
    if (r < 0)
        return r;
    tell_changes(self, next);
    weft__config_done(&self->current);
    self->current = *next;
    self->reloaded = true;
    return 0;
}

bool weft__serve_config_reload(weft_serve_config *self, weft_server *server) {
    weft_config next;
    if (self->ends_with_terminal && !has_terminal())
        return false;
    int r = load(self, &next);
    if (r >= 0)
        r = change(self, &next, server);
    if (r < 0)
        weft__config_done(&next);
    if (r == -EBADMSG)
        weft__warn(self->app, "weft serve: the configuration has a mistake; the old one stays in force");
    else if (r < 0)
        weft__warn(self->app, "weft serve: %s; the old configuration stays in force", weft_strerror(r));
    else
        weft__warn(self->app, "weft serve: configuration reloaded");
    return true;
}

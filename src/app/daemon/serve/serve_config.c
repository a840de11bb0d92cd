/* The configuration of a running daemon: put together at the start, and again whenever SIGHUP asks for it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents.h"
#include "alloc.h"
#include "config.h"
#include "failure.h"
#include "mcp_config.h"
#include "serve_reload.h"
#include "trust.h"

struct weft_serve_config {
    weft_app *app;
    weft_serve_settings typed;
    weft_serve_settings settings; /* strings are borrowed from started */
    weft_config started;          /* what cannot change is compared with this, */
    weft_config current;          /* and what can with this, once there is one */
    bool reloaded;
    weft_arena memory;  /* of all agents there ever were: a task may still run on one of an earlier file */
    weft_agents agents; /* of now */
    weft_serve_changed *changed;
    void *ctx;
    char user[WEFT_PATH_SIZE];
    bool ends_with_terminal;
    weft_reload *report; /* of the reload that is going on; NULL: nobody wants one */
};

static void say_remark(void *ctx, const weft_remark *remark) {
    const weft_serve_config *self = ctx;
    weft__warn_about(self->app, remark);
    if (self->report)
        weft__reload_problem(self->report, remark);
}

static int load_config(weft_serve_config *self, weft_config *ret) {
    weft_trust trust;
    weft__trust_look(self->app->layout, &trust);
    weft_config_from from = {self->user, self->app->layout->config, getenv, self->app->layout->aiwg, &self->typed, &trust};
    return weft__config_load(ret, &from, &(weft_remarks){say_remark, self}, NULL);
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

/* The settings of a config, agents included. */
static int fill_serve_settings(weft_serve_config *self, const weft_config *from, weft_serve_settings *ret) {
    int r = weft__config_fill(from, ret);
    if (r >= 0)
        r = weft__agents_make(&ret->agent_rows, ret->default_agent, &self->memory, &ret->agents);
    if (r >= 0)
        r = weft__agents_roles(&ret->planners, &ret->executors, &self->memory, &ret->agents);
    if (r >= 0)
        r = weft__mcp_config_make(&ret->mcp_rows, &self->memory, &ret->mcp);
    return r;
}

weft_automation_opts weft__serve_automation(const weft_serve_settings *settings) {
    return (weft_automation_opts){
        .enabled = settings->automation,
        .rules = settings->rules.text ? &settings->rules : NULL,
        .jobs = settings->jobs.text ? &settings->jobs : NULL,
        .watch = settings->watch,
        .watch_paths = settings->watch_paths.count ? settings->watch_paths.items : NULL,
        .ignore = settings->ignore.count ? settings->ignore.items : NULL,
        .watches = settings->watches.text ? &settings->watches : NULL,
        .settle_ms = settings->settle_ms,
        .all_files = !settings->gitignore,
    };
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
    int r = load_config(self, &self->started);
    if (r >= 0)
        r = fill_serve_settings(self, &self->started, &self->settings);
    if (r >= 0) {
        self->agents = self->settings.agents;
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
    weft__arena_done(&self->memory);
    return weft__free(NULL, self);
}

bool weft__serve_config_is_strange(const weft_serve_config *self) {
    return self->started.held > 0;
}

const weft_serve_settings *weft__serve_config_settings(const weft_serve_config *self) {
    return &self->settings;
}

void weft__serve_config_hear(weft_serve_config *self, weft_serve_changed *changed, void *ctx) {
    self->changed = changed;
    self->ctx = ctx;
}

/* ---- again ---- */

static void tell_change(const weft_serve_config *self, const weft_key *key, const weft_setting *now) {
    if (self->report)
        weft__reload_changed(self->report, key);
    if (!key->live)
        weft__warn(self->app, "weft serve: %s has changed; that needs a restart", key->path);
    else if (now->value.len < 200 && !key->shape) /* an agent's variables may hold secrets */
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

static int apply_settings(const weft_serve_settings *settings, weft_server *server) {
    int r = weft_server_allow(server, settings->hosts.items, settings->origins.items);
    if (r >= 0)
        weft_service_set_limits(weft_server_service(server), &settings->limits);
    return r;
}

/* Are the values of all keys that begin so the same as before? */
static bool is_same_config(const weft_serve_config *self, const weft_config *next, const char *begin) {
    const weft_config *before = self->reloaded ? &self->current : &self->started;
    for (size_t i = 0; weft__keys[i].path; i++)
        if (strncmp(weft__keys[i].path, begin, strlen(begin)) == 0 &&
            !weft__config_same(&before->settings[i], &next->settings[i]))
            return false;
    return true;
}

/* next is taken on success. */
static int change_config(weft_serve_config *self, weft_config *next, weft_server *server) {
    weft_serve_settings settings;
    /* The agents stay if nothing about them has changed, so that reading a file often takes no memory. */
    bool same = is_same_config(self, next, "agents") && is_same_config(self, next, "default_agent") &&
                is_same_config(self, next, "roles.");
    int r = same ? weft__config_fill(next, &settings) : fill_serve_settings(self, next, &settings);
    if (r >= 0)
        r = apply_settings(&settings, server);
    if (r < 0)
        return r;
    if (same)
        settings.agents = self->agents;
    self->agents = settings.agents;
    settings.automation_changed = !is_same_config(self, next, "automation.");
    tell_changes(self, next);
    weft__config_done(&self->current);
    self->current = *next;
    self->reloaded = true;
    if (self->changed)
        self->changed(self->ctx, &settings);
    return 0;
}

bool weft__serve_config_hung_up(const weft_serve_config *self) {
    return self->ends_with_terminal && !has_terminal();
}

/* Why the old one stays. */
static const char *why_kept(int r) {
    return r == -EKEYREJECTED ? "the configuration is not trusted (\"weft trust\" shows it and asks)"
           : r == -EBADMSG    ? "the configuration has a mistake"
                              : weft_strerror(r);
}

void weft__serve_config_reload(weft_serve_config *self, weft_server *server, weft_reload *report) {
    weft_config next;
    self->report = report;
    int r = load_config(self, &next);
    if (r >= 0 && next.held)
        r = -EKEYREJECTED;
    if (r >= 0)
        r = change_config(self, &next, server);
    if (r < 0)
        weft__config_done(&next);
    self->report = NULL;
    if (r < 0)
        weft__warn(self->app, "weft serve: %s; the old one stays in use", why_kept(r));
    else
        weft__warn(self->app, "weft serve: configuration reloaded");
    if (report) {
        report->done = r >= 0;
        report->why = r < 0 ? why_kept(r) : NULL;
        report->untrusted = r == -EKEYREJECTED;
    }
}

/* ---- what is in force ---- */

#define FILES 2

static size_t file_digests(const weft_config *config, char digests[FILES][WEFT_TRUST_DIGEST], weft_member members[FILES][2],
                           weft_val ret[FILES]) {
    const weft_config_file *files[FILES] = {&config->project, &config->user};
    size_t count = 0;
    for (size_t i = 0; i < FILES; i++) {
        if (!files[i]->path)
            continue;
        if (files[i]->text)
            weft__trust_digest(files[i]->text, files[i]->len, digests[count]);
        members[count][0] = (weft_member){"file", weft_str(files[i]->path)};
        members[count][1] = (weft_member){"digest", files[i]->text ? weft_str(digests[count]) : weft_none()};
        ret[count] = weft_obj(members[count], 2);
        count++;
    }
    return count;
}

int weft__serve_config_about(const weft_serve_config *self, char **ret, size_t *ret_len) {
    const weft_config *now = self->reloaded ? &self->current : &self->started;
    char digests[FILES][WEFT_TRUST_DIGEST];
    weft_member members[FILES][2];
    weft_val files[FILES], restart[WEFT_MAX_KEYS];
    size_t waiting = 0;
    for (size_t i = 0; weft__keys[i].path; i++)
        if (!weft__keys[i].live && !weft__config_same(&self->started.settings[i], &now->settings[i]))
            restart[waiting++] = weft_str(weft__keys[i].path);
    weft_val list = weft_arr(files, file_digests(now, digests, members, files));
    return weft_to_text(WEFT_OBJ({"files", list}, {"restart", weft_arr(restart, waiting)}), NULL, ret, ret_len);
}

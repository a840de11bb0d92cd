/* Waiting for the journal, and noticing that it is lost. See serve_lead.h. */
#include "serve_lead.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"
#include "loop.h"
#include "signals.h"
#include "watch.h"

/* The rest of a lease is there to end what works for the journal: agents are killed in milliseconds, on a machine that is
 * not too busy. */
#define END_PART 3
#define LEASE_LOOKS 20 /* in the time of a lease */

typedef struct waiting {
    const weft_serve_lead_opts *opts;
    weft_lead *lead;
    weft_watch *watch;
    weft_signals signals;
    weft_lead_view view;
    char said[WEFT_STORE_WHY]; /* so that nothing is said twice */
    char led[WEFT_LEAD_NAME];
    bool open, over;
    weft_exit status;
} waiting;

/* ---- who we are ---- */

void weft__serve_lead_name(const weft_serve_settings *how, char ret[WEFT_LEAD_NAME]) {
    char host[65] = "", folder[PATH_MAX] = "";
    (void) gethostname(host, sizeof host - 1);
    const char *path = getcwd(folder, sizeof folder), *last = path ? strrchr(path, '/') : NULL;
    int room = WEFT_LEAD_NAME - 2 - (int) strlen(host);
    if (how->store_hub)
        snprintf(ret, WEFT_LEAD_NAME, "%s", how->store_hub);
    else
        snprintf(ret, WEFT_LEAD_NAME, "%s:%.*s", host, room, last && last[1] ? last + 1 : "");
    weft__lead_clean(ret);
}

/* The lock is one file on one running kernel, and one daemon at a time has it. */
static int name_place(const weft_daemon *daemon, char *ret, size_t size) {
    char boot[48] = "";
    struct stat info;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file || !fgets(boot, sizeof boot, file) || !daemon->held || fstat(daemon->lock, &info) < 0) {
        if (file)
            fclose(file);
        return -ENOTSUP;
    }
    fclose(file);
    boot[strcspn(boot, "\n")] = '\0';
    snprintf(ret, size, "%s-%llx-%llx", boot, (unsigned long long) info.st_dev, (unsigned long long) info.st_ino);
    return 0;
}

/* ---- waiting ---- */

static void end_waiting(waiting *self, weft_exit status) {
    self->status = status;
    self->over = true;
    weft_loop_stop(self->opts->loop);
}

static void say_once(waiting *self, const char *why) {
    if (strcmp(self->said, why) == 0)
        return;
    snprintf(self->said, sizeof self->said, "%s", why);
    if (*why)
        weft__warn(self->opts->app, "weft serve: %s", why);
}

static void look_at_lead(waiting *self) {
    const weft_serve_lead_opts *opts = self->opts;
    weft_lead_view *view = &self->view;
    weft__lead_look(self->lead, view);
    if (self->over || view->state == WEFT_LEAD_LOOKING)
        return;
    if (view->state != WEFT_LEAD_WAITING) {
        end_waiting(self, WEFT_DONE);
        return;
    }
    say_once(self, view->why);
    weft__forward_to(opts->forward, view->reach);
    if (!self->open) {
        self->open = true;
        snprintf(self->led, sizeof self->led, "%s", view->name);
        weft_exit status = opts->open(opts->ctx, view->name);
        if (status)
            end_waiting(self, status);
    } else if (*view->name && strcmp(view->name, self->led) != 0) {
        snprintf(self->led, sizeof self->led, "%s", view->name);
        opts->led(opts->ctx, view->name);
    }
}

static void on_lead(void *ctx, unsigned what) {
    (void) what;
    look_at_lead(ctx);
}

static void on_signal(void *ctx) {
    waiting *self = ctx;
    self->view.state = WEFT_LEAD_WAITING;
    end_waiting(self, WEFT_DONE);
}

static void on_hangup(void *ctx) {
    waiting *self = ctx;
    if (self->opts->hung_up(self->opts->ctx))
        on_signal(self);
}

static int begin_waiting(waiting *self, const weft_store_opts *store) {
    weft_loop *loop = self->opts->loop;
    self->signals.on_hangup = on_hangup;
    int r = weft__signals_open(&self->signals, loop, on_signal, self);
    if (r >= 0)
        r = weft__lead_new(self->opts->kind, store, &self->lead);
    if (r >= 0)
        r = weft__watch_new(loop, weft__lead_fd(self->lead), on_lead, self, &self->watch);
    return r < 0 ? r : weft__watch_set(self->watch, WEFT_WATCH_READ);
}

/* The signals' handles lie here: they are closed when the loop has turned. */
static void done_waiting(waiting *self) {
    weft__watch_free(self->watch);
    weft__lead_free(self->lead);
    weft__signals_close(&self->signals);
    weft_loop_once(self->opts->loop, false);
    weft__forward_to(self->opts->forward, "");
}

static weft_exit explain_failed(const waiting *self) {
    const weft_lead_view *view = &self->view;
    return weft__fail(self->opts->app, WEFT_FAILED, NULL, "the journal on PostgreSQL: %s",
                      *view->why ? view->why : weft_strerror(view->r));
}

weft_exit weft__serve_lead_wait(const weft_serve_lead_opts *opts, weft_store **ret) {
    const weft_serve_settings *how = opts->how;
    char place[128], name[WEFT_LEAD_NAME];
    int r = name_place(opts->daemon, place, sizeof place);
    if (r < 0)
        return weft__fail(opts->app, WEFT_FAILED, NULL, "store.wait: this hub has no folder of its own");
    weft__serve_lead_name(how, name);
    const weft_store_hub hub = {.place = place, .name = name, .reach = "", .lease_ms = how->store_lease_ms};
    const weft_store_opts store = {.url = how->store_url, .standbys = (int) how->store_standbys, .hub = &hub};
    waiting self = {.opts = opts};
    r = begin_waiting(&self, &store);
    if (r >= 0)
        weft_loop_run(opts->loop);
    else if (r == -ENOTSUP)
        self.status = weft__fail(opts->app, WEFT_USAGE, "Set store.kind to postgres: docs/postgres.md",
                                 "store.wait: only a journal on PostgreSQL can be waited for");
    else
        self.status = weft__fail(opts->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    if (self.status == WEFT_DONE && self.view.state == WEFT_LEAD_OURS)
        *ret = weft__lead_take(self.lead);
    else if (self.status == WEFT_DONE && self.view.state == WEFT_LEAD_FAILED)
        self.status = explain_failed(&self);
    done_waiting(&self);
    return self.status;
}

/* ---- the lease ---- */

static void on_lease_due(weft_timer *timer) {
    weft_serve_lease *self = WEFT_CONTAINER(timer, weft_serve_lease, timer);
    int64_t every_ms = self->lease_ms / LEASE_LOOKS;
    if (weft__store_lease_left(self->store) <= self->lease_ms / END_PART) {
        self->on_lost(self->ctx);
        return;
    }
    weft__timer_set(self->loop, timer, weft__loop_fresh_now(self->loop) + (every_ms ? every_ms : 1));
}

void weft__serve_lease_begin(weft_serve_lease *self) {
    weft__timer_init(&self->timer, on_lease_due);
    on_lease_due(&self->timer);
}

void weft__serve_lease_end(weft_serve_lease *self) {
    if (self->loop)
        weft__timer_stop(self->loop, &self->timer);
    self->loop = NULL;
}

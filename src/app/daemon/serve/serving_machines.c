/* What "weft serve" is beside other machines: a runner of a hub, a relay, a standby, or one of several hubs that take turns
 * with one journal. See serving.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon_folder.h"
#include "failure.h"
#include "forward.h"
#include "serving.h"
#include "standby.h"
#include "wiring.h"

/* ---- a runner ---- */

static void on_uplink_refused(void *ctx) {
    weft_serving *self = ctx;
    self->failed = true;
    if (!self->stopping)
        weft__serving_stop(self, false);
}

weft_exit weft__serving_open_uplink(weft_serving *self) {
    const weft_serve_settings *typed = self->app->settings;
    size_t most = self->how->engine.max_running;
    if (!typed->hub_url)
        return WEFT_DONE;
    weft_uplink_opts opts = {.app = self->app,
                             .loop = self->loop,
                             .engine = weft__serve_hub_engine(self->hub),
                             .service = self->service,
                             .url = typed->hub_url,
                             .name = typed->runner_name,
                             .labels = typed->runner_labels,
                             .agents = typed->runner_agents,
                             .folders = typed->runner_folders,
                             .slots = typed->runner_slots   ? (size_t) typed->runner_slots
                                      : most && most < 1024 ? most
                                                            : 4,
                             .on_refused = on_uplink_refused,
                             .ctx = self};
    weft_exit status = weft__uplink_new(&opts, &self->uplink);
    self->daemon.uplink = self->uplink;
    return status;
}

/* ---- a relay ---- */

static void on_relay_anew(void *ctx) {
    weft_serving *self = ctx;
    self->anew = true;
    if (!self->stopping)
        weft__serving_stop(self, true);
}

weft_exit weft__serving_open_relay(weft_serving *self) {
    const weft_serve_settings *typed = self->app->settings;
    const weft_store_kind *kind = weft__serving_store_kind(self);
    if (!typed->relay.count)
        return typed->relay_token_file || typed->relay_ca
                   ? weft__misused(self->app, "--relay-token-file and --relay-ca belong to --relay")
                   : WEFT_DONE;
    if (weft__store_lasts(kind) && !weft__store_has_files(kind)) /* it may have to begin anew */
        return weft__fail(self->app, WEFT_USAGE, "Leave out store.kind in the folder of the relay.",
                          "a relay keeps its copy in a file, not in a database of others");
    weft_relay_opts opts = {.app = self->app,
                            .loop = self->loop,
                            .hubs = typed->relay,
                            .token_file = typed->relay_token_file,
                            .ca = typed->relay_ca,
                            .on_anew = on_relay_anew,
                            .ctx = self};
    weft_exit status = weft__relay_new(&opts, &self->relay);
    self->daemon.relay = self->relay;
    return status;
}

void weft__serving_remove_copy(const weft_serving *self) {
    static const char *const ends[] = {"", "-wal", "-shm", "-mark"};
    const char *store = self->how->store_path ? self->how->store_path : self->app->layout->store;
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(path, sizeof path, "%s%s", store, ends[i]);
        if (unlink(path) < 0 && errno != ENOENT)
            weft__warn(self->app, "weft serve: %s: %s", path, weft_strerror(-errno));
    }
}

/* ---- a standby ---- */

weft_exit weft__serving_stand_by(weft_serving *self, bool *ret_ended) {
    const weft_serve_settings *typed = self->app->settings;
    const char *path = self->how->store_path ? self->how->store_path : self->app->layout->store;
    weft_standby_opts opts = {.app = self->app,
                              .daemon = &self->daemon,
                              .path = path,
                              .url = typed->standby_of,
                              .token_file = typed->standby_token,
                              .ca = typed->standby_ca,
                              .discard = typed->discard};
    bool hub = true;
    *ret_ended = false;
    if (!typed->standby_of)
        return typed->discard || typed->standby_token || typed->standby_ca
                   ? weft__misused(self->app, "--discard, --standby-token and --standby-ca belong to --standby-of")
                   : WEFT_DONE;
    if (typed->relay.count)
        return weft__misused(self->app, "--standby-of and --relay do not go together: a standby serves nobody");
    if (!self->daemon.held || !weft__store_has_files(weft__serving_store_kind(self)) ||
        !weft__store_lasts(weft__serving_store_kind(self)))
        return weft__misused(self->app, "a standby keeps its copy in a file: store.kind must be sqlite");
    weft_exit status = weft__standby_run(&opts, &hub);
    *ret_ended = !hub;
    return status;
}

/* ---- several hubs, one journal ---- */

/* The lease has nearly run out: another may take the journal when it is over. What works for it ends now; that it ended,
 * whoever has the journal next finds out. */
static void on_lease_lost(void *ctx) {
    weft_serving *self = ctx;
    weft__warn(self->app,
               "weft serve: the journal cannot be reached, and may be another hub's soon: what runs here is ended");
    self->lost = !self->stopping;
    weft_loop_stop(self->loop);
}

/* A child keeps nothing, and so has no journal that others could have. */
static bool takes_turns(const weft_serving *self) {
    return self->how->store_wait && !weft__serving_is_child(self);
}

int weft__serving_keep_lease(weft_serving *self) {
    char folder[PATH_MAX], *reach;
    if (!takes_turns(self))
        return 0;
    int r = getcwd(folder, sizeof folder) ? 0 : -errno;
    if (r == 0)
        r = weft__forward_reach(self->server, folder, self->token != NULL, &reach);
    if (r < 0)
        return r;
    r = weft__store_reach(weft__serve_hub_store(self->hub), reach);
    weft_text_free(reach, NULL);
    self->lease = (weft_serve_lease){.loop = self->loop,
                                     .store = weft__serve_hub_store(self->hub),
                                     .lease_ms = self->how->store_lease_ms,
                                     .on_lost = on_lease_lost,
                                     .ctx = self};
    weft__serve_lease_begin(&self->lease);
    return r;
}

static void publish_waiting(weft_serving *self) {
    self->facts = (weft_serve_facts){.app = self->app,
                                     .server = self->server,
                                     .how = self->how,
                                     .agent = "",
                                     .driver = "",
                                     .token = self->token != NULL,
                                     .held = self->daemon.held,
                                     .on_stdio = true, /* what is written there is for those who start a hub that serves */
                                     .waits_for = self->led};
    self->published = weft__serve_publish(&self->facts);
}

static void on_led(void *ctx, const char *name) {
    weft_serving *self = ctx;
    snprintf(self->led, sizeof self->led, "%s", name);
    if (*name)
        weft__warn(self->app, "weft serve: %s has the journal; waiting for it, and handing clients on", name);
    else
        weft__warn(self->app, "weft serve: waiting for the journal, and handing clients on to the hub that has it");
    publish_waiting(self);
}

static weft_exit open_doors(void *ctx, const char *name) {
    weft_serving *self = ctx;
    weft_service_opts opts = {.title = "weft", .version = weft_version(), .limits = self->how->limits};
    weft_server_opts server_opts = self->how->server;
    int r = weft_service_new(&opts, &self->door_service);
    server_opts.service = self->door_service;
    server_opts.on_note = weft__serving_note;
    server_opts.data = self;
    if (r >= 0)
        r = weft_server_new(self->loop, &server_opts, &self->door);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    weft__server_take(self->door, weft__forward_take, self->forward);
    self->server = self->door;
    weft__daemon_offer(&self->daemon, self->server);
    weft_exit status = weft__serving_listen(self);
    if (status)
        return status;
    on_led(self, name);
    return weft__daemon_ready(&self->daemon);
}

/* Its endpoints are free then, or are opened by our own server in the same moment. */
void weft__serving_close_doors(weft_serving *self) {
    if (self->server == self->door)
        self->server = NULL;
    self->door = weft_server_free(self->door);
    self->door_service = weft_service_unref(self->door_service);
}

static bool on_hung_up(void *ctx) {
    weft_serving *self = ctx;
    bool ends = weft__serve_config_hung_up(self->config);
    self->reload |= !ends;
    return ends;
}

weft_exit weft__serving_wait(weft_serving *self, bool *ret_go) {
    *ret_go = true;
    if (!takes_turns(self))
        return WEFT_DONE;
    int r = weft__forward_new(self->loop, &self->forward);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    const weft_serve_lead_opts opts = {.app = self->app,
                                       .daemon = &self->daemon,
                                       .how = self->how,
                                       .kind = weft__serving_store_kind(self),
                                       .loop = self->loop,
                                       .forward = self->forward,
                                       .open = open_doors,
                                       .led = on_led,
                                       .hung_up = on_hung_up,
                                       .ctx = self};
    weft__serve_lead_name(self->how, self->name);
    weft_exit status = weft__serve_lead_wait(&opts, &self->store);
    *ret_go = self->store != NULL;
    self->server = NULL;
    return status;
}

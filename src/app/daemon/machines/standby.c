/* Putting a standby together, and taking it apart. */
#include "standby.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "failure.h"
#include "standby_private.h"
#include "trust.h"

/* It was promoted in an earlier run, and whoever starts it has not changed the command line since. */
static bool was_promoted(const weft_standby *self) {
    weft_replica_state before;
    return weft__replica_was_promoted(self->opts.path, &before) && strcmp(before.source, self->target.shown) == 0;
}

static void close_standby(weft_standby *self) {
    char why[WEFT_TRUST_WHY] = "";
    self->stopping = true;
    weft__signals_close(&self->signals);
    self->peer = weft_peer_free(self->peer);
    if (self->loop)
        weft__timer_stop(self->loop, &self->timer);
    weft_server_free(self->server);
    self->opts.daemon->server = NULL;
    weft_service_unref(self->service);
    weft_loop_free(self->loop);
    if (self->journal && !self->promoted && self->heard_ms > weft__replica_state(self->journal)->heard_ms &&
        weft__replica_begin(self->journal) >= 0) { /* what would be missing now, for whoever promotes it later */
        weft__replica_state(self->journal)->heard_ms = self->heard_ms;
        weft__replica_state(self->journal)->said_head = self->said_head;
        weft__replica_commit(self->journal);
    }
    bool opened = self->loop != NULL;
    weft__replica_close(self->copy);
    weft__replica_close(self->journal);
    if (opened)
        weft__trust_open_end(self->opts.app->layout, self->opts.path, NULL, why);
    weft__buf_done(&self->text, NULL);
    weft__target_done(&self->target);
}

weft_exit weft__standby_run(const weft_standby_opts *opts, bool *ret_hub) {
    weft_standby *self = weft__zalloc(NULL, sizeof *self);
    *ret_hub = false;
    if (!self)
        return weft__fail(opts->app, WEFT_FAILED, NULL, "out of memory");
    self->opts = *opts;
    self->dialling = *opts->app;
    self->dialling.reach = (weft_reach){.token_file = opts->token_file, .cacert = opts->ca};
    weft__timer_init(&self->timer, weft__standby_on_timer);
    weft_exit status = weft__target_of(&self->dialling, opts->url, &self->target);
    if (status == WEFT_DONE && !opts->discard && was_promoted(self)) {
        weft__warn(opts->app,
                   "weft serve: this was a standby of %s and was promoted: it is a hub, and --standby-of is ignored",
                   self->target.shown);
        *ret_hub = true;
    } else if (status == WEFT_DONE) {
        int r = weft_loop_new(NULL, &self->loop);
        status = r < 0 ? weft__fail(opts->app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : weft__standby_open(self);
        if (status == WEFT_DONE)
            status = weft__standby_serve(self);
        *ret_hub = self->promoted;
    }
    close_standby(self);
    weft__free(NULL, self);
    return status;
}

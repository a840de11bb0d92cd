/* The shortest server: methods at an endpoint until SIGINT or SIGTERM. They are handled
 * while it runs, and only then. */
#include <errno.h>
#include <signal.h>

#include "loop.h"
#include "server.h"

typedef struct server_run {
    weft_server *server;
    weft_signal *signals[2];
    int stops;
} server_run;

/* The first asks for an orderly end, the second for any end. */
static void on_stop_signal(weft_signal *signal, int number, void *ctx) {
    server_run *self = ctx;
    (void) signal, (void) number;
    if (self->stops++ == 0)
        weft_server_stop(self->server, NULL, NULL); /* which ends the run */
    else
        weft_loop_stop(weft_server_loop(self->server));
}

/* They do not keep the loop alive: a server on stdio ends with its input. */
int weft_server_run(weft_server *server) {
    server_run self = {.server = server};
    weft_loop *loop = weft_server_loop(server);
    if (loop->turning)
        return -EDEADLK;
    if (server->has_stopped)
        return 0;             /* nothing would end it */
    weft__server_ref(server); /* a callback may free it */
    int r = weft_signal_new(loop, SIGINT, on_stop_signal, &self, &self.signals[0]);
    if (r >= 0)
        r = weft_signal_new(loop, SIGTERM, on_stop_signal, &self, &self.signals[1]);
    server->running = r >= 0;
    if (r >= 0)
        r = weft_loop_run(loop);
    server->running = false;
    weft_signal_free(self.signals[0]);
    weft_signal_free(self.signals[1]);
    weft__server_unref(server);
    return r;
}

typedef struct simple_server {
    weft_service *service;
    weft_loop *loop;
    weft_server *server;
} simple_server;

static int open_serving(simple_server *self, const char *url, const weft_service_opts *opts) {
    int r = weft_service_new(opts, &self->service);
    if (r >= 0)
        r = weft_loop_new(opts->alloc, &self->loop);
    if (r >= 0)
        r = weft_server_new(self->loop, &(weft_server_opts){.service = self->service}, &self->server);
    return r < 0 ? r : weft_server_listen(self->server, url, NULL);
}

int weft_serve(const char *url, const weft_method *methods, const weft_service_opts *opts) {
    simple_server self = {0};
    weft_service_opts all = opts ? *opts : (weft_service_opts){0};
    if (methods)
        all.methods = methods;
    int r = open_serving(&self, url, &all);
    if (r >= 0)
        r = weft_server_run(self.server);
    weft_server_free(self.server);
    weft_loop_free(self.loop);
    weft_service_unref(self.service);
    return r;
}

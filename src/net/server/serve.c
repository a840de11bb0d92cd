/* The shortest server: methods at an endpoint until SIGINT or SIGTERM. The only place in the library that handles signals.
 */
#include <errno.h>
#include <signal.h>

#include "loop.h"

typedef struct serving {
    weft_service *service;
    weft_loop *loop;
    weft_server *server;
    uv_signal_t signals[2];
    int stops;
} serving;

static void on_stopped(weft_server *server, void *ctx) {
    (void) server;
    weft_loop_stop(((serving *) ctx)->loop);
}

/* The first asks for an orderly end, the second for any end. */
static void on_signal(uv_signal_t *handle, int number) {
    serving *self = handle->data;
    (void) number;
    if (self->stops++ == 0)
        weft_server_stop(self->server, on_stopped, self);
    else
        weft_loop_stop(self->loop);
}

/* They do not keep the loop alive: a server on stdio ends with its input. */
static void watch_signals(serving *self) {
    static const int numbers[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        uv_signal_init(&self->loop->uv, &self->signals[i]);
        self->signals[i].data = self;
        uv_signal_start(&self->signals[i], on_signal, numbers[i]);
        uv_unref((uv_handle_t *) &self->signals[i]);
    }
}

static int open_all(serving *self, const char *url, const weft_service_opts *opts) {
    int r = weft_service_new(opts, &self->service);
    if (r >= 0)
        r = weft_loop_new(opts->alloc, &self->loop);
    if (r >= 0)
        r = weft_server_new(self->loop, &(weft_server_opts){.service = self->service}, &self->server);
    return r < 0 ? r : weft_server_listen(self->server, url, NULL);
}

int weft_serve(const char *url, const weft_method *methods, const weft_service_opts *opts) {
    serving self = {0};
    weft_service_opts all = opts ? *opts : (weft_service_opts){0};
    if (methods)
        all.methods = methods;
    int r = open_all(&self, url, &all);
    if (r >= 0) {
        watch_signals(&self);
        weft_loop_run(self.loop);
        for (int i = 0; i < 2; i++)
            uv_close((uv_handle_t *) &self.signals[i], NULL);
    }
    weft_server_free(self.server);
    weft_loop_free(self.loop);
    weft_service_unref(self.service);
    return r;
}

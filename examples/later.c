/* A server whose handlers answer later, and that says in its rows what it takes: timers, limits, errors with a format,
 * results of any size.
 *
 *     later unix:./later.sock &
 *     weft call unix:./later.sock countdown seconds=2 step=fast */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

/* What the params are read into. A field of another type than its row says does not compile. */
struct countdown {
    int64_t seconds;
    const char *step;
};
static const char *const steps[] = {"slow", "fast", NULL};
static const weft_param countdown_params[] = {
    WEFT_MUST_IN(struct countdown, seconds, int, 1, 60, "How long"),
    WEFT_MAY_BE(struct countdown, step, steps, "How often to tell of it"),
    WEFT_END(struct countdown),
};

/* One that is running. */
typedef struct running {
    weft_req *req;
    weft_timer *timer;
    int64_t left;
} running;

static void end_running(running *self) {
    weft_timer_free(self->timer);
    free(self);
}

static void on_second(weft_timer *timer, void *ctx) {
    running *self = ctx;
    (void) timer;
    weft_part(self->req, weft_int(--self->left)); /* to who asked for parts */
    if (self->left)
        return;
    weft_reply(self->req, WEFT_OBJ({"done", weft_bool(true)}));
    end_running(self);
}

/* Nobody waits for it any more; it must be answered all the same. */
static void on_cancel(weft_req *req, int why, void *ctx) {
    weft_failf(req, WEFT_CANCELLED, weft_none(), "stopped: %s", weft_strerror(why));
    end_running(ctx);
}

static int countdown(weft_req *req, const weft_json *params, void *ctx) {
    const struct countdown *want = weft_req_params(req);
    running *self = calloc(1, sizeof *self);
    (void) params;
    if (!self)
        return -ENOMEM;
    self->req = req;
    self->left = want->seconds;
    int r = weft_timer_new(*(weft_loop **) ctx, on_second, self, &self->timer);
    if (r < 0)
        return free(self), r;
    int64_t ms = want->step && *want->step == 'f' ? 100 : 1000;
    weft_timer_start(self->timer, ms, ms);
    weft_req_on_cancel(req, on_cancel, self);
    return 0; /* answered later */
}

/* How long the list is, is known only here; not longer than anybody needs. */
struct squares {
    int64_t to;
};
static const weft_param squares_params[] = {
    WEFT_MUST_IN(struct squares, to, int, 0, 1000, "How many"),
    WEFT_END(struct squares),
};

static int squares(weft_req *req, const weft_json *params, void *ctx) {
    const struct squares *want = weft_req_params(req);
    WEFT_AUTO(weft_builder) b = NULL;
    weft_val list;
    (void) params, (void) ctx;
    int r = weft_builder_new(NULL, &b);
    if (r < 0)
        return r;
    weft_builder_array(b, NULL);
    for (int64_t i = 1; i <= want->to; i++)
        weft_builder_add(b, NULL, weft_int(i * i));
    weft_builder_end(b);
    r = weft_builder_val(b, &list);
    return r < 0 ? r : weft_reply(req, list);
}

int main(int argc, char **argv) {
    static const weft_method methods[] = {
        {.name = "countdown", .handler = countdown, .params = countdown_params, .help = "Count down, then answer"},
        {.name = "squares", .handler = squares, .params = squares_params, .help = "The first squares"},
        {0},
    };
    WEFT_AUTO(weft_loop) loop = NULL; /* freed last: it was declared first */
    WEFT_AUTO(weft_server) server = NULL;
    weft_service *service = NULL;

    int r = weft_loop_new(NULL, &loop);
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.methods = methods, .ctx = &loop}, &service);
    if (r >= 0)
        r = weft_server_new(loop, &(weft_server_opts){.service = service}, &server);
    weft_service_unref(service); /* the server has its own reference */
    if (r >= 0 && (r = weft_server_listen(server, argc > 1 ? argv[1] : "unix:./later.sock", NULL)) < 0)
        fprintf(stderr, "later: %s\n", weft_server_trouble(server));
    if (r >= 0)
        r = weft_server_run(server); /* until SIGINT or SIGTERM; what is open is answered first */
    return r < 0;
}

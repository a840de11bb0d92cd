/* A stream without an end that obeys its reader: it waits while the output is full, and ends when it is cancelled.
 *
 *     pour          serves and reads itself: takes 100,000 parts, then cancels */
#include <stdio.h>
#include <weft/weft.h>

#define ENOUGH 100000

typedef struct stream {
    weft_req *req; /* NULL: it is over */
    int64_t sent;
} stream;

/* As much as there is room for. 1 sent; 0 nobody asked for parts; <0: full, or the connection has gone. */
static void pour(stream *self) {
    while (self->req && weft_part(self->req, weft_int(self->sent)) > 0)
        self->sent++;
}

/* There is room again. What the client has said meanwhile was heard before this. */
static void on_drain(weft_server *server, weft_peer *peer, void *data) {
    (void) server, (void) peer;
    pour(data);
}

static void on_cancel(weft_req *req, int why, void *ctx) {
    stream *self = ctx;
    (void) why;
    self->req = NULL;
    weft_reply(req, WEFT_OBJ({"sent", weft_int(self->sent)}));
}

static int start(weft_req *req, const weft_json *params, void *ctx) {
    stream *self = ctx;
    (void) params;
    self->req = req;
    weft_req_on_cancel(req, on_cancel, self);
    pour(self);
    return 0;
}

typedef struct reader {
    weft_loop *loop;
    int64_t id, taken;
} reader;

static void on_part(weft_peer *peer, const weft_json *part, void *ctx) {
    reader *self = ctx;
    (void) part;
    if (++self->taken == ENOUGH)
        weft_cancel(peer, self->id);
}

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    reader *self = ctx;
    (void) peer, (void) answer;
    printf("took %lld parts, then: %s\n", (long long) self->taken, weft_strerror(r));
    weft_loop_stop(self->loop);
}

int main(void) {
    static const weft_method methods[] = {{.name = "pour", .handler = start, .help = "Numbers, until cancelled"}, {0}};
    stream all = {0}; /* before the server: freeing that cancels what is still open */
    reader self = {0};
    WEFT_AUTO(weft_loop) loop = NULL;
    WEFT_AUTO(weft_server) server = NULL;
    WEFT_AUTO(weft_peer) peer = NULL;
    weft_service *service = NULL;

    int r = weft_loop_new(NULL, &loop);
    self.loop = loop;
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.methods = methods, .ctx = &all}, &service);
    if (r >= 0)
        r = weft_server_new(loop, &(weft_server_opts){.service = service, .on_drain = on_drain, .data = &all}, &server);
    weft_service_unref(service);
    if (r >= 0)
        r = weft_server_listen(server, "mem:pour", NULL);
    if (r >= 0)
        r = weft_connect_on(loop, "mem:pour", NULL, &peer, NULL);
    if (r >= 0) /* a deadline: each part that comes starts it again */
        r = weft_call_start(peer, "pour", weft_none(),
                            &(weft_call_opts){.on_answer = on_answer, .on_part = on_part, .ctx = &self, .timeout_ms = 10000},
                            &self.id);
    if (r >= 0)
        weft_loop_run(loop);
    return r < 0;
}

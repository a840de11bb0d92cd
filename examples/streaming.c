/* A server that answers in parts and a client that takes them as they come, in one program. */
#include <stdio.h>
#include <weft/weft.h>

static int count(weft_req *req, const weft_json *params, void *ctx) {
    int64_t to = weft_get_int(params, "to", 3);
    (void) ctx;
    for (int64_t i = 1; i <= to; i++) {
        int r = weft_part(req, weft_int(i)); /* -EAGAIN: the caller reads too slowly; a real server waits for on_drain */
        if (r < 0)
            return r;
    }
    return weft_reply(req, WEFT_OBJ({"counted", weft_int(to)}));
}

static void on_part(weft_peer *peer, const weft_json *part, void *ctx) {
    (void) peer;
    (void) ctx;
    printf("part %lld\n", (long long) weft_int_of(part, 0));
}

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer;
    if (r < 0)
        printf("failed: %s\n", weft_strerror(r));
    else if (answer->result)
        printf("counted %lld\n", (long long) weft_get_int(answer->result, "counted", 0));
    weft_loop_stop(ctx);
}

int main(void) {
    static const weft_method methods[] = {{"count", count, .help = "count up to a number, in parts"}, {0}};
    WEFT_AUTO(weft_loop) loop = NULL;
    weft_service *service = NULL;
    weft_server *server = NULL;
    weft_peer *peer = NULL;

    int r = weft_loop_new(NULL, &loop);
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.methods = methods}, &service);
    if (r >= 0)
        r = weft_server_new(loop, &(weft_server_opts){.service = service}, &server);
    if (r >= 0)
        r = weft_server_listen(server, "mem:count", NULL);
    if (r >= 0)
        r = weft_connect_on(loop, "mem:count", NULL, &peer, NULL);
    if (r >= 0)
        r = weft_call_start(peer, "count", WEFT_OBJ({"to", weft_int(3)}),
                            &(weft_call_opts){.on_answer = on_answer, .on_part = on_part, .ctx = loop}, NULL);
    if (r >= 0)
        weft_loop_run(loop);

    weft_peer_free(peer);
    weft_server_free(server);
    weft_service_unref(service);
    return r < 0;
}

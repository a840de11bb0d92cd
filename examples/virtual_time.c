/* A test of a program that waits: server and client in one loop (mem:), and time that passes when the test says so. It takes
 * no time at all, and the same happens on every run. */
#include <stdio.h>
#include <weft/weft.h>

/* Whoever keeps a request answers it in the end, also when nobody waits for that any more. */
static void give_up(weft_req *req, int why, void *ctx) {
    (void) why, (void) ctx;
    weft_reply(req, weft_null());
}

static int never(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    weft_req_on_cancel(req, give_up, NULL);
    return 0; /* and is not answered */
}

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer, (void) answer;
    *(int *) ctx = r;
}

/* Do all there is to do at this time, then move to the next time at which something is due. */
static void pass_time(weft_loop *loop, const int *waiting_for, int64_t until) {
    while (*waiting_for == 1 && weft_loop_now(loop) < until) {
        for (int turn = 0; turn < 20; turn++)
            weft_loop_once(loop, false);
        int64_t next = weft_loop_deadline(loop);
        if (*waiting_for == 1)
            weft_loop_set_now(loop, next < until ? next : until);
    }
}

int main(void) {
    static const weft_method methods[] = {{.name = "never", .handler = never}, {0}};
    WEFT_AUTO(weft_loop) loop = NULL;
    WEFT_AUTO(weft_server) server = NULL;
    WEFT_AUTO(weft_peer) peer = NULL;
    weft_service *service = NULL;
    int came = 1;

    int r = weft_loop_new(NULL, &loop);
    if (r >= 0)
        weft_loop_set_now(loop, 1000);
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.methods = methods}, &service);
    if (r >= 0)
        r = weft_server_new(loop, &(weft_server_opts){.service = service}, &server);
    weft_service_unref(service);
    if (r >= 0)
        r = weft_server_listen(server, "mem:test", NULL);
    if (r >= 0)
        r = weft_connect_on(loop, "mem:test", NULL, &peer, NULL);
    if (r >= 0)
        r = weft_call_start(peer, "never", weft_none(),
                            &(weft_call_opts){.on_answer = on_answer, .ctx = &came, .timeout_ms = 3600 * 1000}, NULL);
    if (r >= 0)
        pass_time(loop, &came, 2 * 3600 * 1000);
    printf("after %lld virtual seconds: %s\n", (long long) (weft_loop_now(loop) / 1000), weft_strerror(came));
    return r < 0;
}

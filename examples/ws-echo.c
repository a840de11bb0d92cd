/* WebSocket messages echoed as they come, text as text and binary as binary: not JSON, for checking the framing with other
 * people's suites.
 *
 *     ws-echo ws://127.0.0.1:9001/           a server
 *     ws-echo --client ws://127.0.0.1:9001/  a client that echoes until the server closes */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

static bool echo(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    (void) data;
    weft_peer_send_raw(peer, body, binary);
    return true;
}

static int serve(weft_loop *loop, weft_service *service, const char *url) {
    WEFT_AUTO(weft_server) server = NULL;
    int r = weft_server_new(loop, &(weft_server_opts){.service = service, .on_raw = echo}, &server);
    if (r >= 0)
        r = weft_server_listen(server, url, &(weft_listen_opts){.hosts = (const char *const[]){"*", NULL}});
    if (r < 0)
        return r;
    fprintf(stderr, "listening on %s\n", weft_server_url(server, 0));
    return weft_server_run(server);
}

static void on_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    int *ret = data;
    if (state != WEFT_PEER_CLOSED)
        return;
    *ret = why;
    weft_peer_free(peer);
}

static int be_client(weft_loop *loop, weft_service *service, const char *url) {
    int why = 0;
    weft_peer *peer;
    int r = weft_connect_on(loop, url,
                            &(weft_connect_opts){.service = service, .on_raw = echo, .on_state = on_state, .data = &why},
                            &peer, NULL);
    if (r >= 0)
        r = weft_loop_run(loop); /* until the server closes */
    return r < 0 ? r : 0;
}

int main(int argc, char **argv) {
    bool client = argc == 3 && strcmp(argv[1], "--client") == 0;
    if (argc != 2 && !client)
        return fprintf(stderr, "usage: ws-echo [--client] URL\n"), 2;

    WEFT_AUTO(weft_loop) loop = NULL;
    weft_service *service = NULL;
    int r = weft_loop_new(NULL, &loop);
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.limits.max_body_stranger = 32 << 20}, &service);
    if (r >= 0)
        r = client ? be_client(loop, service, argv[2]) : serve(loop, service, argv[1]);
    weft_service_unref(service);
    if (r < 0)
        fprintf(stderr, "ws-echo: %s\n", weft_strerror(r));
    return r < 0;
}

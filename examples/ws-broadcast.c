/* Everybody hears what anybody publishes. ws-broadcast [URL...]
 *
 * The method publish takes any params and tells them to every client as the notification "message", as they came. */
#include <stdio.h>
#include <weft/weft.h>

typedef struct hub {
    weft_server *server;
} hub;

static int publish(weft_req *req, const weft_json *params, void *ctx) {
    const hub *all = ctx;
    int told = weft_server_broadcast(all->server, "message", weft_copy(params), NULL, NULL);
    return told < 0 ? told : weft_reply(req, WEFT_OBJ({"told", weft_int(told)}));
}

static int listen_at(hub *all, const char *url) {
    int r = weft_server_listen(all->server, url, NULL);
    if (r < 0)
        fprintf(stderr, "ws-broadcast: %s\n", weft_server_trouble(all->server));
    return r;
}

static int run(hub *all, int argc, char **argv) {
    int r = argc > 1 ? 0 : listen_at(all, "ws://127.0.0.1:8080/");
    for (int i = 1; i < argc && r >= 0; i++)
        r = listen_at(all, argv[i]);
    for (size_t i = 0; r >= 0 && weft_server_url(all->server, i); i++)
        fprintf(stderr, "listening on %s\n", weft_server_url(all->server, i));
    return r < 0 ? r : weft_server_run(all->server);
}

int main(int argc, char **argv) {
    hub all = {0};
    const weft_method methods[] = {{"publish", publish, .help = "tell everybody", .ctx = &all}, {0}};
    WEFT_AUTO(weft_loop) loop = NULL;
    weft_service *service = NULL;

    int r = weft_loop_new(NULL, &loop);
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.methods = methods}, &service);
    if (r >= 0)
        r = weft_server_new(loop, &(weft_server_opts){.service = service}, &all.server);
    if (r >= 0)
        r = run(&all, argc, argv);
    weft_server_free(all.server);
    weft_service_unref(service);
    return r < 0;
}

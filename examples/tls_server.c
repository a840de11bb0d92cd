/* A TLS server that lets in who shows a certificate of the given authority, and knows its subject.
 *
 *     tls_server tls://127.0.0.1:7443 server.pem server.key clients-ca.pem
 *     weft call --cacert ca.pem --cert ann.pem --key ann.key tls://127.0.0.1:7443 whoami */
#include <stdio.h>
#include <weft/weft.h>

static int whoami(weft_req *req, const weft_json *params, void *ctx) {
    const weft_identity *who = weft_req_identity(req);
    (void) params, (void) ctx;
    return weft_reply(req, WEFT_OBJ({"name", weft_str(who->name)}, {"transport", weft_str(who->transport)}));
}

/* Why somebody was not let in. */
static void on_note(weft_server *server, const char *line, void *data) {
    (void) server, (void) data;
    fprintf(stderr, "tls_server: %s\n", line);
}

int main(int argc, char **argv) {
    static const weft_method methods[] = {{.name = "whoami", .handler = whoami, .help = "Who the certificate says you are"},
                                          {0}};
    WEFT_AUTO(weft_loop) loop = NULL;
    WEFT_AUTO(weft_server) server = NULL;
    weft_service *service = NULL;
    if (argc != 5)
        return fprintf(stderr, "usage: tls_server URL CERT KEY CLIENTS-CA\n"), 2;

    int r = weft_loop_new(NULL, &loop);
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.methods = methods}, &service);
    if (r >= 0)
        r = weft_server_new(loop, &(weft_server_opts){.service = service, .on_note = on_note}, &server);
    weft_service_unref(service);
    weft_listen_opts opts = {
        .tls = {.cert = argv[2], .key = argv[3], .ca = argv[4]}}; /* with ca: a certificate is demanded */
    if (r >= 0 && (r = weft_server_listen(server, argv[1], &opts)) < 0)
        fprintf(stderr, "tls_server: %s\n", weft_server_trouble(server));
    if (r >= 0) {
        fprintf(stderr, "listening on %s\n", weft_server_url(server, 0));
        r = weft_server_run(server);
    }
    return r < 0;
}

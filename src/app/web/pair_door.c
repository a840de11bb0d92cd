/* The listener for paired devices: opened, closed, and remembered for the next start. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "failure.h"
#include "pair_private.h"
#include "private_file.h"
#include "transport.h"

#define PAIR_PORT 16443
#define PAIR_PORTS 20

/* What devices may do: messages over HTTP and WebSocket, in the dialects that the hub's own port has. */
static const struct {
    const char *scheme, *path;
} doors[] = {{"https", "rpc"}, {"wss", "ws"}, {"wss", "acp"}, {"wss", "tinyvex"}};

static void write_url(const char *scheme, const char *address, int port, const char *path, char ret[WEFT_PAIR_BASE]) {
    snprintf(ret, WEFT_PAIR_BASE, strchr(address, ':') ? "%s://[%s]:%d/%s" : "%s://%s:%d/%s", scheme, address, port, path);
}

/* The first endpoint opens the socket, the others join it. */
static int listen_at(const weft_serve_pair *self, const char *address, int port, const char *cert) {
    weft_tls_opts tls = {.cert = cert, .key = cert};
    char url[WEFT_PAIR_BASE], first[WEFT_PAIR_BASE];
    int r = 0;
    write_url(doors[0].scheme, address, port, doors[0].path, first);
    for (size_t i = 0; r >= 0 && i < sizeof doors / sizeof doors[0]; i++) {
        write_url(doors[i].scheme, address, port, doors[i].path, url);
        r = self->opts.listen(self->opts.ctx, url, &tls);
        if (r < 0 && i)
            weft_server_unlisten(self->opts.server, first);
    }
    return r;
}

int weft__pair_open(weft_serve_pair *self, const char *address, int port) {
    char cert[PATH_MAX], why[WEFT_TRUST_WHY];
    int last = port ? port : PAIR_PORT + PAIR_PORTS;
    if (self->open)
        return strcmp(self->address, address) == 0 && (!port || port == self->port) ? 0 : -EBUSY;
    int r = weft__state_path(self->opts.app->layout, "pair", "pem", cert, why);
    if (r >= 0)
        r = weft__pair_cert(cert, address, self->fingerprint);
    if (r < 0)
        return r;
    r = -EADDRINUSE;
    for (port = port ? port : PAIR_PORT; port <= last && r == -EADDRINUSE; port++)
        r = listen_at(self, address, port, cert);
    if (r < 0)
        return r;
    self->open = true;
    self->paired = 0;
    self->port = port - 1;
    snprintf(self->address, sizeof self->address, "%s", address);
    write_url("https", address, self->port, "", self->base);
    weft__warn(self->opts.app, "weft serve: paired devices can come in at %s", self->base);
    return 0;
}

void weft__pair_close(weft_serve_pair *self) {
    char url[WEFT_PAIR_BASE];
    weft__pair_forget_code(self);
    if (!self->open)
        return;
    self->open = false;
    write_url(doors[0].scheme, self->address, self->port, doors[0].path, url);
    weft_server_unlisten(self->opts.server, url);
    weft__warn(self->opts.app, "weft serve: %s is closed", self->base);
}

/* ---- over a restart ---- */

void weft__pair_remember(const weft_serve_pair *self, bool forget) {
    char path[PATH_MAX], why[WEFT_TRUST_WHY] = "", text[128];
    int n = snprintf(text, sizeof text, "%s %d\n", self->address, self->port);
    int r = weft__state_path(self->opts.app->layout, "pair", "txt", path, why);
    if (r >= 0 && forget)
        unlink(path);
    else if (r >= 0 && (r = weft__private_replace(path, text, (size_t) n)) < 0)
        snprintf(why, sizeof why, "%.300s: %s", path, weft__private_why(r));
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: pairing: %s", why);
}

int weft__pair_recall(const weft_serve_pair *self, char ret_address[WEFT_LAN_ADDRESS], int *ret_port) {
    char path[PATH_MAX], why[WEFT_TRUST_WHY] = "", text[128];
    int r = weft__state_path(self->opts.app->layout, "pair", "txt", path, why);
    if (r >= 0)
        r = weft__private_read(path, text, sizeof text);
    if (r < 0)
        return r;
    return sscanf(text, "%63s %d", ret_address, ret_port) == 2 && *ret_port > 0 && *ret_port < 65536 ? 0 : -ENOENT;
}

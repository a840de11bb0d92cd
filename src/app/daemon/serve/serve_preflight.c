/* Would "weft serve" start with these arguments? Asked before a daemon that works is stopped for it. Everything that can be
 * known while that one still runs is looked at: the command line, the configuration, what is on record, certificates and
 * keys, the token file, and the ports that the running one does not have. Nothing is changed. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "alloc.h"
#include "daemon.h"
#include "failure.h"
#include "serve.h"
#include "serve_gates.h"
#include "tls.h"
#include "transport.h"
#include "trust_view.h"

/* ---- places to listen at ---- */

/* Does the daemon that runs here say that this port is its own? Then it is free once that one has ended. */
static bool is_its_port(const weft_doc *endpoint, int port) {
    if (!endpoint)
        return false;
    weft_json urls = weft_get(weft_doc_root(endpoint), "urls");
    for (weft_iter it = weft_iterate(&urls); weft_next(&it);) {
        weft_url url;
        if (weft__transport_parse(NULL, weft_str_of(&it.value, ""), NULL, &url, NULL) < 0)
            continue;
        bool same = weft__serve_is_network(&url) && url.port == port;
        weft__url_done(&url, NULL);
        if (same)
            return true;
    }
    return false;
}

/* Bound for a moment, and never listened on. */
static int try_to_bind(const struct addrinfo *address) {
    int one = 1, fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    int r = bind(fd, address->ai_addr, address->ai_addrlen) < 0 ? -errno : 0;
    if (r == 0 && listen(fd, 1) < 0) /* with SO_REUSEADDR, only this tells of somebody who listens there */
        r = -errno;
    close(fd);
    return r;
}

static int try_to_listen(const weft_url *url) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    char port[16];
    snprintf(port, sizeof port, "%d", url->port);
    if (getaddrinfo(*url->host ? url->host : NULL, port, &hints, &found) != 0)
        return -EADDRNOTAVAIL;
    int r = try_to_bind(found);
    freeaddrinfo(found);
    return r;
}

static weft_exit check_port(const weft_app *app, const char *text, const weft_url *url, const weft_doc *endpoint) {
    if (!weft__serve_is_network(url) || url->port <= 0 || is_its_port(endpoint, url->port))
        return WEFT_DONE;
    int r = try_to_listen(url);
    return r == 0 ? WEFT_DONE
                  : weft__fail(app, r == -EADDRINUSE ? WEFT_BUSY : WEFT_FAILED, NULL, "%s: %s", text, weft_strerror(r));
}

static weft_exit check_listen_url(const weft_app *app, const weft_serve_settings *how, const char *text,
                                  const weft_doc *endpoint) {
    weft_url url;
    weft_exit status = weft__url_check(app, text, &url);
    if (status)
        return status;
    status = weft__serve_check(app, how, &url);
    if (status == WEFT_DONE)
        status = check_port(app, text, &url, endpoint);
    weft__url_done(&url, NULL);
    return status;
}

/* ---- files that it reads ---- */

static weft_exit check_tls(const weft_app *app, const weft_serve_settings *how) {
    char why[WEFT_TLS_WHY] = "";
    weft_tls_ctx *tls = NULL;
    weft_tls_opts opts = {.cert = how->tls_cert, .key = how->tls_key, .ca = how->tls_ca};
    if (!opts.cert || !opts.key)
        return WEFT_DONE;
    int r = weft__tls_server(&opts, true, NULL, &tls, why);
    if (r >= 0)
        weft__tls_ctx_unref(tls);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", *why ? why : weft_strerror(r)) : WEFT_DONE;
}

static weft_exit check_token_file(const weft_app *app, const weft_serve_settings *how) {
    char *token = NULL;
    if (!how->token_file)
        return WEFT_DONE;
    weft_exit status = weft__token_read(app, how->token_file, &token);
    weft__free(NULL, token);
    return status;
}

static weft_exit check_gates(const weft_app *app, const weft_serve_settings *how) {
    weft_serve_gates *gates = NULL;
    weft_exit status = weft__serve_gates_open(app, how, &gates);
    weft__serve_gates_free(gates);
    return status;
}

static weft_exit check_settings(const weft_app *app, const weft_serve_settings *how) {
    WEFT_AUTO(weft_doc) endpoint = weft__daemon_endpoint(app->layout);
    weft_exit status = check_tls(app, how);
    if (status == WEFT_DONE)
        status = check_token_file(app, how);
    if (status == WEFT_DONE)
        status = check_gates(app, how);
    for (size_t i = 0; status == WEFT_DONE && i < how->listen.count; i++)
        status = check_listen_url(app, how, how->listen.items[i], endpoint);
    return status;
}

/* ---- all of it ---- */

static weft_exit check_typed(weft_app *serve) {
    weft_serve_config *config = NULL;
    weft_exit status = weft__trust_gate(serve, serve->settings, true);
    if (status == WEFT_DONE)
        status = weft__serve_config_new(serve, &config);
    if (status == WEFT_DONE)
        status = check_settings(serve, weft__serve_config_settings(config));
    weft__serve_config_free(config);
    return status;
}

weft_exit weft__serve_preflight(const weft_app *app, char *const *args) {
    weft_serve_settings typed = {0};
    weft_app serve = *app;
    size_t count = 0;
    while (args[count])
        count++;
    char **copy = weft__zalloc(NULL, (count + 1) * sizeof *copy); /* reading options changes their order */
    if (!copy)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    memcpy(copy, args, count * sizeof *copy);
    serve.settings = &typed;
    serve.args = NULL;
    serve.arg_count = 0;
    weft_exit status = weft__options_read(&serve, copy);
    serve.common = app->common; /* a daemon in the background was started with --json */
    if (status == WEFT_DONE)
        status = check_typed(&serve);
    weft__free(NULL, copy);
    return status;
}

/* What "weft serve" refuses to open: endpoints that strangers could use. */
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "failure.h"
#include "serve.h"
#include "transport.h"

bool weft__serve_is_network(const weft_url *url) {
    return url->scheme->flags & WEFT_NETWORK;
}

static bool is_loopback_host(const char *host) {
    struct in_addr v4;
    struct in6_addr v6;
    if (strcasecmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static bool is_encrypted(const weft_url *url) {
    return url->scheme->flags & WEFT_OVER_TLS;
}

/* By somebody who is not in this program. */
static bool can_be_reached(const weft_url *url) {
    return weft__transport(url)->listen && !(url->scheme->flags & WEFT_IN_LOOP);
}

weft_exit weft__serve_check(const weft_app *app, const weft_serve_settings *how, const weft_url *url) {
    bool open = how->auth && strcmp(how->auth, "none") == 0;
    if (!can_be_reached(url))
        return weft__misused(app, "%s: cannot be listened on", url->scheme->name);
    if (!weft__serve_is_network(url))
        return WEFT_DONE;
    if (is_encrypted(url) && (!how->tls_cert || !how->tls_key))
        return weft__misused(app, "%s:// needs --tls-cert and --tls-key, or tls.cert and tls.key in the configuration",
                             url->scheme->name);
    if (is_loopback_host(url->host))
        return WEFT_DONE;
    if (open)
        return weft__fail(app, WEFT_USAGE, "Leave it out: a token is made on the first start.",
                          "--auth none is for 127.0.0.1, ::1 and localhost only, not for %s", url->host);
    if (!is_encrypted(url) && !how->insecure_listen)
        return weft__fail(
            app, WEFT_USAGE,
            "Use tls://, wss:// or https:// with --tls-cert and --tls-key, or, behind a proxy that encrypts or in a "
            "container,\n--insecure-listen.",
            "%s can be reached from elsewhere, and %s:// is not encrypted", url->host, url->scheme->name);
    return WEFT_DONE;
}

/* The table of transports. It is libweft's, because its users have no wiring of their own; Weft's program has the same. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "list.h"
#include "transport.h"

/* One line for each: its row, weft__NAME_transport, and how its URLs begin. */
/* clang-format off */
#define TRANSPORTS(ROW)       \
    ROW(unix,  "unix:")       \
    ROW(tcp,   "tcp://")      \
    ROW(tls,   "tls://")      \
    ROW(ws,    "ws://")       \
    ROW(wss,   "wss://")      \
    ROW(http,  "http://")     \
    ROW(https, "https://")    \
    ROW(exec,  "exec:")       \
    ROW(stdio, "stdio:")      \
    ROW(mem,   "mem:")
/* clang-format on */

#define DECLARED(name, begins) extern const weft_transport weft__##name##_transport;
#define LISTED(name, begins) &weft__##name##_transport,
#define SAID(name, begins) " " begins

TRANSPORTS(DECLARED)

const weft_transport *const weft__transports[] = {TRANSPORTS(LISTED) NULL};

/* Schemes are compared without regard to case (RFC 3986 section 3.1). */
static const weft_transport *find_scheme(const weft_transport *const *list, const char *name, size_t len) {
    for (; list && *list; list++)
        if (strlen((*list)->scheme.name) == len && strncasecmp((*list)->scheme.name, name, len) == 0)
            return *list;
    return NULL;
}

static const weft_transport *find_in_both(const weft_transport *const *more, const char *name, size_t len) {
    const weft_transport *found = find_scheme(more, name, len);
    return found ? found : find_scheme(weft__transports, name, len);
}

static const weft_transport *find_of_paths(void) {
    for (const weft_transport *const *at = weft__transports; *at; at++)
        if ((*at)->scheme.flags & WEFT_BARE_PATH)
            return *at;
    return NULL;
}

const weft_transport *weft__transport_named(const weft_transport *const *more, const char *name) {
    return find_in_both(more, name, strlen(name));
}

const weft_transport *weft__transport_of(const weft_transport *const *more, const char *url) {
    const char *colon = strchr(url, ':');
    if (weft__url_is_path(url))
        return find_of_paths();
    return colon ? find_in_both(more, url, (size_t) (colon - url)) : NULL;
}

int weft__transport_parse(const weft_transport *const *more, const char *text, const weft_alloc *alloc, weft_url *ret,
                          const char **ret_why) {
    const weft_transport *transport = weft__transport_of(more, text);
    if (transport)
        return weft__url_parse(&transport->scheme, text, alloc, ret, ret_why);
    if (ret_why)
        *ret_why = "a URL begins with one of" TRANSPORTS(SAID);
    return -EINVAL;
}

const weft_transport *weft__transport(const weft_url *url) {
    return WEFT_CONTAINER(url->scheme, const weft_transport, scheme);
}

bool weft__is_http(const weft_scheme *scheme) {
    return (scheme->flags & (WEFT_OVER_HTTP | WEFT_UPGRADES)) == WEFT_OVER_HTTP;
}

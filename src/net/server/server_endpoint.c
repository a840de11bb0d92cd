/* What the user asked to be served: a URL and its rules, copied. */
#include <errno.h>
#include <stdio.h>

#include "server.h"
#include "texts.h"

static char **copy_list(const weft_alloc *alloc, const char *const *list, int *r) {
    size_t count = weft__texts_count(list);
    if (!count)
        return NULL;
    char **copy = weft__zalloc(alloc, (count + 1) * sizeof *copy);
    size_t copied = 0;
    while (copy && copied < count && (copy[copied] = weft__strndup(alloc, list[copied], strlen(list[copied]))))
        copied++;
    if (copied < count)
        *r = -ENOMEM;
    return copy;
}

static void free_list(const weft_alloc *alloc, char **list) {
    for (char **at = list; at && *at; at++)
        weft__free(alloc, *at);
    weft__free(alloc, list);
}

/* A name of a header that fits into the answer. */
static int copy_id_header(weft_endpoint *endpoint, const char *name) {
    if (!name)
        return 0;
    if (!*name || strlen(name) > 64 || name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")])
        return weft__server_note(endpoint->server, "%s cannot be the name of a header", name), -EINVAL;
    endpoint->id_header = weft__strndup(endpoint->server->alloc, name, strlen(name));
    return endpoint->id_header ? 0 : -ENOMEM;
}

static int copy_rules(weft_endpoint *endpoint, const weft_listen_opts *opts) {
    const weft_alloc *alloc = endpoint->server->alloc;
    const char *dialect = opts->dialect ? opts->dialect : "";
    int r = 0;
    endpoint->hosts = copy_list(alloc, opts->hosts, &r);
    endpoint->origins = copy_list(alloc, opts->origins, &r);
    endpoint->dialect = weft__strndup(alloc, dialect, strlen(dialect));
    endpoint->style = opts->style;
    endpoint->max_body = opts->max_body;
    endpoint->dialect_max_body = opts->dialect_max_body;
    endpoint->any_uid = opts->any_uid;
    endpoint->token_later = opts->token_later;
    endpoint->no_batch = opts->no_batch;
    endpoint->lenient = opts->lenient;
    if (r >= 0)
        r = copy_id_header(endpoint, opts->id_header);
    if (r >= 0 && endpoint->dialect)
        r = weft__auths_copy(&endpoint->tokens, opts->tokens, alloc);
    return endpoint->dialect ? r : -ENOMEM;
}

weft_endpoint *weft__endpoint_free(weft_endpoint *endpoint) {
    const weft_alloc *alloc = endpoint->server->alloc;
    weft__url_done(&endpoint->url, alloc);
    weft__auths_done(&endpoint->tokens, alloc);
    free_list(alloc, endpoint->hosts);
    free_list(alloc, endpoint->origins);
    weft__free(alloc, endpoint->dialect);
    weft__free(alloc, endpoint->id_header);
    weft__free(alloc, endpoint->text);
    return weft__free(alloc, endpoint);
}

int weft__endpoint_new(weft_server *server, const char *url, const weft_listen_opts *opts, weft_endpoint **ret) {
    const char *why;
    weft_endpoint *endpoint = weft__zalloc(server->alloc, sizeof *endpoint);
    if (!endpoint)
        return -ENOMEM;
    endpoint->server = server;
    int r = weft__transport_parse(server->loop->transports, url, server->alloc, &endpoint->url, &why);
    if (r < 0)
        weft__server_note(server, "%s: %s", url, why);
    else {
        endpoint->transport = weft__transport(&endpoint->url);
        r = endpoint->transport->listen ? copy_rules(endpoint, opts) : -EINVAL;
        if (!endpoint->transport->listen)
            weft__server_note(server, "%s: nobody can listen there; it is for clients", url);
    }
    if (r < 0) {
        weft__endpoint_free(endpoint);
        return r;
    }
    *ret = endpoint;
    return 0;
}

/* All copies are made before the first is put in place. */
int weft_server_allow(weft_server *server, const char *const *hosts, const char *const *origins) {
    const weft_alloc *alloc = server->alloc;
    size_t count = server->endpoint_count;
    int r = 0;
    char ***lists = weft__zalloc(alloc, (2 * count + 1) * sizeof *lists);
    if (!lists)
        return -ENOMEM;
    for (size_t i = 0; i < 2 * count && r >= 0; i++)
        lists[i] = copy_list(alloc, i < count ? hosts : origins, &r);
    for (size_t i = 0; i < count && r >= 0; i++) {
        weft_endpoint *endpoint = server->endpoints[i];
        char **old_hosts = endpoint->hosts, **old_origins = endpoint->origins;
        endpoint->hosts = lists[i];
        endpoint->origins = lists[count + i];
        lists[i] = old_hosts;
        lists[count + i] = old_origins;
    }
    for (size_t i = 0; i < 2 * count; i++)
        free_list(alloc, lists[i]);
    weft__free(alloc, lists);
    return r;
}

int weft__endpoint_name(weft_endpoint *endpoint, int port) {
    const weft_url *url = &endpoint->url;
    unsigned flags = endpoint->transport->scheme.flags;
    bool network = flags & WEFT_NETWORK, has_path = flags & WEFT_OVER_HTTP;
    bool v6 = strchr(url->host, ':') != NULL;
    size_t size = strlen(url->host) + strlen(url->path) + 40;
    char *text = weft__alloc(endpoint->server->alloc, size);
    if (!text)
        return -ENOMEM;
    if (network)
        snprintf(text, size, "%s://%s%s%s:%d%s", url->scheme->name, v6 ? "[" : "", url->host, v6 ? "]" : "", port,
                 has_path ? url->path : "");
    else
        snprintf(text, size, "%s:%s", url->scheme->name, url->scheme->form == WEFT_URL_NOTHING ? "" : url->path);
    endpoint->text = text;
    return 0;
}

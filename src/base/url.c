/* Endpoint URLs. Parsing cuts a copy of the text into pieces in place. */
#include "url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    weft_scheme scheme;
    int port;
} schemes[] = {
    {"unix", WEFT_UNIX, -1}, {"tcp", WEFT_TCP, -1},   {"tls", WEFT_TLS, -1},      {"ws", WEFT_WS, 80},
    {"wss", WEFT_WSS, 443},  {"http", WEFT_HTTP, 80}, {"https", WEFT_HTTPS, 443}, {"stdio", WEFT_STDIO, -1},
    {"exec", WEFT_EXEC, -1}, {"mem", WEFT_MEM, -1},
};

static int refuse_url(const char **ret_why, const char *why) {
    *ret_why = why;
    return -EINVAL;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Take one word off *text, removing quotes and backslashes where it lies. 1 a word, 0 no more, <0 an open quote. */
static int next_word(char **text, char **ret) {
    char *in = *text;
    while (is_blank(*in))
        in++;
    if (!*in)
        return 0;
    char *out = *ret = in;
    char quote = 0;
    for (; *in && (quote || !is_blank(*in)); in++) {
        if (*in == '\\' && quote != '\'' && in[1])
            *out++ = *++in;
        else if (!quote && (*in == '"' || *in == '\''))
            quote = *in;
        else if (*in == quote)
            quote = 0;
        else
            *out++ = *in;
    }
    if (quote)
        return -EINVAL;
    *text = *in ? in + 1 : in;
    *out = '\0';
    return 1;
}

static int parse_exec(weft_url *url, char *rest, const char **ret_why) {
    size_t count = 0;
    char *word;
    int r;
    while ((r = next_word(&rest, &word)) > 0) {
        if (count == WEFT_URL_ARGS)
            return refuse_url(ret_why, "exec: has too many arguments");
        url->argv[count++] = word;
    }
    if (r < 0)
        return refuse_url(ret_why, "exec: has a quote that is not closed");
    return count ? 0 : refuse_url(ret_why, "exec: needs a program, for example exec:cat");
}

static int parse_port(const char *text, int *ret) {
    char *end;
    if (*text < '0' || *text > '9')
        return -EINVAL;
    long port = strtol(text, &end, 10);
    if (*end || port > 65535)
        return -EINVAL;
    *ret = (int) port;
    return 0;
}

/* What may stand in brackets: an IPv6 address, and a zone behind a percent sign. Close enough to catch a typo. */
static bool is_ipv6(const char *text) {
    char end = text[strspn(text, "0123456789abcdefABCDEF:.")];
    return strchr(text, ':') && (end == '\0' || end == '%');
}

/* authority is "host", "host:port" or "[v6]:port", cut in place. */
static int parse_authority(weft_url *url, char *authority, const char **ret_why) {
    char *port = NULL;
    if (strchr(authority, '@'))
        return refuse_url(ret_why, "a URL here has no user name or password");
    if (*authority == '[') {
        char *close = strchr(authority, ']');
        if (!close || (close[1] && close[1] != ':'))
            return refuse_url(ret_why, "an IPv6 address is written [::1]:port");
        *close = '\0';
        url->host = authority + 1;
        if (!is_ipv6(url->host))
            return refuse_url(ret_why, "an IPv6 address is written [::1]:port");
        port = close[1] ? close + 2 : NULL;
    } else {
        url->host = authority;
        if ((port = strchr(authority, ':')))
            *port++ = '\0';
    }
    if (!*url->host)
        return refuse_url(ret_why, "the URL has no host");
    if (port && parse_port(port, &url->port) < 0)
        return refuse_url(ret_why, "the port is not a number from 0 to 65535");
    return url->port < 0 ? refuse_url(ret_why, "the URL needs a port, for example tcp://127.0.0.1:4000") : 0;
}

/* A URL is put into heads and looked up by name: nothing may be in it that ends a line or a word there. */
static bool is_visible_ascii(const char *text) {
    for (; *text; text++)
        if (*text <= ' ' || *text >= 0x7f)
            return false;
    return true;
}

/* rest is what follows "scheme:". */
static int parse_network(weft_url *url, char *rest, const char **ret_why) {
    if (strncmp(rest, "//", 2) != 0)
        return refuse_url(ret_why, "the scheme is followed by //host:port");
    if (!is_visible_ascii(rest))
        return refuse_url(ret_why, "a URL has no blanks and nothing but ASCII in it; write %20 for a blank");
    char *authority = rest + 2;
    char *hash = strchr(authority, '#');
    if (hash)
        *hash = '\0';
    char *query = strchr(authority, '?');
    if (query) {
        *query = '\0';
        url->query = query + 1;
    }
    char *path = strchr(authority, '/');
    if (path) {
        /* The NUL that ends the authority has no place of its own before the path's slash, so the authority moves to the
         * left, over the "//". */
        size_t host_len = (size_t) (path - authority);
        memmove(rest, authority, host_len);
        rest[host_len] = '\0';
        authority = rest;
        url->path = path;
    }
    bool has_path = url->scheme != WEFT_TCP && url->scheme != WEFT_TLS;
    if (!has_path && (url->path[1] || query))
        return refuse_url(ret_why, "a tcp or tls URL has no path and no query");
    return parse_authority(url, authority, ret_why);
}

static int parse_local(weft_url *url, char *rest, const char **ret_why) {
    if (strncmp(rest, "//", 2) == 0)
        rest += 2;
    if (!*rest)
        return refuse_url(ret_why, url->scheme == WEFT_UNIX ? "unix: needs the path of a socket" : "mem: needs a name");
    url->path = rest;
    return 0;
}

static int parse_rest(weft_url *url, char *rest, const char **ret_why) {
    switch (url->scheme) {
    case WEFT_UNIX:
    case WEFT_MEM:
        return parse_local(url, rest, ret_why);
    case WEFT_STDIO:
        return *rest && strcmp(rest, "//") != 0 ? refuse_url(ret_why, "stdio: takes nothing behind it") : 0;
    case WEFT_EXEC:
        return parse_exec(url, rest, ret_why);
    case WEFT_TCP:
    case WEFT_TLS:
    case WEFT_WS:
    case WEFT_WSS:
    case WEFT_HTTP:
    case WEFT_HTTPS:
        break;
    }
    return parse_network(url, rest, ret_why);
}

static int find_scheme(weft_url *url, const char *text, size_t len) {
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strlen(schemes[i].name) == len && strncasecmp(schemes[i].name, text, len) == 0) {
            url->scheme = schemes[i].scheme;
            url->name = schemes[i].name;
            url->port = schemes[i].port;
            return 0;
        }
    return -EINVAL;
}

int weft__url_parse(const char *text, const weft_alloc *alloc, weft_url *ret, const char **ret_why) {
    weft_url url = {.host = "", .path = "/", .query = "", .port = -1};
    const char *why = "";
    if (!ret_why)
        ret_why = &why;
    url.text_ = weft__strndup(alloc, text, strlen(text));
    if (!url.text_) {
        *ret_why = "out of memory";
        return -ENOMEM;
    }

    int r;
    char *colon = strchr(url.text_, ':');
    if (url.text_[0] == '/' || strncmp(url.text_, "./", 2) == 0) {
        find_scheme(&url, "unix", 4);
        r = parse_local(&url, url.text_, ret_why);
    } else if (!colon || find_scheme(&url, url.text_, (size_t) (colon - url.text_)) < 0)
        r = refuse_url(ret_why, "a URL begins with unix: tcp:// tls:// ws:// wss:// http:// https:// exec: stdio: or mem:");
    else
        r = parse_rest(&url, colon + 1, ret_why);
    if (r < 0) {
        weft__free(alloc, url.text_);
        return r;
    }
    *ret = url;
    return 0;
}

void weft__url_done(weft_url *url, const weft_alloc *alloc) {
    url->text_ = weft__free(alloc, url->text_);
}

size_t weft__url_shown(const char *text, weft_scheme scheme) {
    return scheme >= WEFT_WS && scheme <= WEFT_HTTPS ? strcspn(text, "?") : strlen(text);
}

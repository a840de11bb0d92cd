/* Endpoint URLs. Parsing cuts a copy of the text into pieces in place. */
#include "url.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int parse_program(weft_url *url, char *rest, const char **ret_why) {
    size_t count = 0;
    char *word;
    int r;
    while ((r = next_word(&rest, &word)) > 0) {
        if (count == WEFT_URL_ARGS)
            return refuse_url(ret_why, "the program has too many arguments");
        url->argv[count++] = word;
    }
    if (r < 0)
        return refuse_url(ret_why, "a quote is not closed");
    return count ? 0 : refuse_url(ret_why, url->scheme->wrong);
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
    if (url->scheme->form == WEFT_URL_HOST && (url->path[1] || query))
        return refuse_url(ret_why, "a URL of this scheme has no path and no query");
    return parse_authority(url, authority, ret_why);
}

static int parse_name(weft_url *url, char *rest, const char **ret_why) {
    if (strncmp(rest, "//", 2) == 0)
        rest += 2;
    if (!*rest)
        return refuse_url(ret_why, url->scheme->wrong);
    url->path = rest;
    return 0;
}

static int parse_rest(weft_url *url, char *rest, const char **ret_why) {
    switch (url->scheme->form) {
    case WEFT_URL_NAME:
        return parse_name(url, rest, ret_why);
    case WEFT_URL_NOTHING:
        return *rest && strcmp(rest, "//") != 0 ? refuse_url(ret_why, url->scheme->wrong) : 0;
    case WEFT_URL_PROGRAM:
        return parse_program(url, rest, ret_why);
    case WEFT_URL_HOST:
    case WEFT_URL_WEB:
        break;
    }
    return parse_network(url, rest, ret_why);
}

bool weft__url_is_path(const char *text) {
    return *text == '/' || strncmp(text, "./", 2) == 0;
}

int weft__url_parse(const weft_scheme *scheme, const char *text, const weft_alloc *alloc, weft_url *ret,
                    const char **ret_why) {
    weft_url url = {.scheme = scheme, .host = "", .path = "/", .query = "", .port = scheme->port ? scheme->port : -1};
    const char *why = "";
    if (!ret_why)
        ret_why = &why;
    url.text_ = weft__strndup(alloc, text, strlen(text));
    if (!url.text_) {
        *ret_why = "out of memory";
        return -ENOMEM;
    }
    int r = parse_rest(&url, url.text_ + (weft__url_is_path(text) ? 0 : strlen(scheme->name) + 1), ret_why);
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

size_t weft__url_shown(const char *text, const weft_scheme *scheme) {
    return scheme->form == WEFT_URL_WEB ? strcspn(text, "?") : strlen(text);
}

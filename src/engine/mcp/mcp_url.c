/* Where a server of the older HTTP wants messages to be sent: somewhere at its own origin, or nowhere. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "mcp_private.h"
#include "transport.h"

#define LONGEST 8192

static bool has_same_origin(const weft_alloc *alloc, const char *a, const char *b) {
    weft_url one, other;
    if (weft__transport_parse(NULL, a, alloc, &one, NULL) < 0)
        return false;
    bool same = weft__transport_parse(NULL, b, alloc, &other, NULL) >= 0;
    if (same) {
        same = one.scheme == other.scheme && strcasecmp(one.host, other.host) == 0 && one.port == other.port;
        weft__url_done(&other, alloc);
    }
    weft__url_done(&one, alloc);
    return same;
}

/* A URL, a path, or a path beside ours. */
static int join_url(const char *base, const char *text, char *ret, size_t size) {
    const char *host = strstr(base, "://"), *path = host ? host + 3 + strcspn(host + 3, "/?#") : NULL;
    int n;
    if (!host || strncmp(text, "//", 2) == 0)
        return -EINVAL;
    const char *end = path + strcspn(path, "?#"), *slash = end;
    while (slash > path && slash[-1] != '/')
        slash--;
    if (strstr(text, "://") && strcspn(text, ":/?#") == strcspn(text, ":"))
        n = snprintf(ret, size, "%s", text);
    else if (*text == '/')
        n = snprintf(ret, size, "%.*s%s", (int) (path - base), base, text);
    else
        n = snprintf(ret, size, "%.*s%s%s", (int) (slash - base), base, slash > path ? "" : "/", text);
    return n < 0 || (size_t) n >= size ? -ENAMETOOLONG : 0;
}

int weft__mcp_resolve(const char *base, weft_bytes text, const weft_alloc *alloc, char **ret) {
    char said[LONGEST], whole[2 * LONGEST];
    if (text.len >= sizeof said || memchr(text.data, '\0', text.len))
        return -EINVAL;
    memcpy(said, text.data, text.len);
    said[text.len] = '\0';
    int r = join_url(base, said, whole, sizeof whole);
    if (r < 0 || !has_same_origin(alloc, base, whole))
        return -EINVAL;
    char *copy = weft__strndup(alloc, whole, strlen(whole));
    if (!copy)
        return -ENOMEM;
    *ret = copy;
    return 0;
}

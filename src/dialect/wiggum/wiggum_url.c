/* URLs of the preview. Only a path is one: whatever names a scheme or a host is of another origin, because the hub does not
 * know under which origin a page shows the preview. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "utf8_stream.h"
#include "wiggum.h"

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : isxdigit((unsigned char) c) ? (c | 0x20) - 'a' + 10 : -1;
}

/* "https:", "javascript:", "data:" at the beginning. */
static bool has_scheme(const char *url) {
    size_t n = 0;
    while (isalnum((unsigned char) url[n]) || (url[n] && strchr("+-.", url[n])))
        n++;
    return n && isalpha((unsigned char) *url) && url[n] == ':';
}

static bool is_strange(const char *url) {
    for (const char *at = url; *at; at++)
        if ((unsigned char) *at <= ' ' || *at == 0x7f || *at == '\\')
            return true;
    return strlen(url) >= WIGGUM_URL || !weft__utf8_valid(url, strlen(url));
}

/* One segment, decoded. The number of bytes; <0: it is none. A slash that was written as %2F is part of no name here. */
static int decode_segment(const char *from, size_t len, char *ret) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = from[i];
        if (c == '%') {
            int high = i + 2 < len ? hex_digit(from[i + 1]) : -1, low = i + 2 < len ? hex_digit(from[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -EINVAL;
            c = (char) (high * 16 + low);
            i += 2;
        }
        if (c == '\0' || c == '/' || c == '\\')
            return -EINVAL;
        ret[n++] = c;
    }
    return (int) n;
}

static void drop_last(char *path, size_t *len) {
    while (*len && path[*len - 1] == '/')
        (*len)--;
    while (*len && path[*len - 1] != '/')
        (*len)--;
}

/* RFC 3986, 5.2.4: dot segments never lead above the root. */
static int add_segment(char *path, size_t *len, const char *from, size_t n, bool last) {
    int r = decode_segment(from, n, path + *len);
    if (r < 0)
        return r;
    const char *made = path + *len;
    if (r == 2 && memcmp(made, "..", 2) == 0)
        drop_last(path, len);
    else if (r != 0 && !(r == 1 && *made == '.')) {
        *len += (size_t) r;
        if (!last)
            path[(*len)++] = '/';
    }
    return 0;
}

int weft__wiggum_path(const char *url, char ret[WIGGUM_URL]) {
    if (is_strange(url))
        return -EINVAL;
    if (has_scheme(url) || strncmp(url, "//", 2) == 0)
        return -EXDEV;
    size_t end = strcspn(url, "?#"), len = 0;
    char path[WIGGUM_URL];
    for (size_t i = *url == '/'; i < end;) {
        size_t n = strcspn(url + i, "/?#");
        bool last = i + n >= end;
        int r = add_segment(path, &len, url + i, n, last);
        if (r < 0)
            return r;
        i += n + 1;
    }
    path[len] = '\0';
    if (!weft__utf8_valid(path, len))
        return -EINVAL;
    memcpy(ret, path, len + 1);
    return 0;
}

static const char *extension_of(const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return dot && dot > name ? dot + 1 : "";
}

bool weft__wiggum_has_extension(const char *path) {
    return *extension_of(path) != '\0';
}

const char *weft__wiggum_mime(const char *path) {
    static const struct {
        const char *extension, *type;
    } types[] = {
        {"html", "text/html; charset=utf-8"},
        {"htm", "text/html; charset=utf-8"},
        {"js", "text/javascript; charset=utf-8"},
        {"mjs", "text/javascript; charset=utf-8"},
        {"css", "text/css; charset=utf-8"},
        {"json", "application/json"},
        {"map", "application/json"},
        {"webmanifest", "application/manifest+json"},
        {"svg", "image/svg+xml"},
        {"png", "image/png"},
        {"jpg", "image/jpeg"},
        {"jpeg", "image/jpeg"},
        {"gif", "image/gif"},
        {"webp", "image/webp"},
        {"avif", "image/avif"},
        {"ico", "image/x-icon"},
        {"woff", "font/woff"},
        {"woff2", "font/woff2"},
        {"ttf", "font/ttf"},
        {"otf", "font/otf"},
        {"wasm", "application/wasm"},
        {"txt", "text/plain; charset=utf-8"},
        {"md", "text/markdown; charset=utf-8"},
        {"xml", "application/xml"},
        {"pdf", "application/pdf"},
        {"mp3", "audio/mpeg"},
        {"mp4", "video/mp4"},
        {"webm", "video/webm"},
    };
    const char *extension = extension_of(path);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcasecmp(types[i].extension, extension) == 0)
            return types[i].type;
    return "application/octet-stream";
}

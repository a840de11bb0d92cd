/* RFC 3986: a reference is taken apart (appendix B), its missing parts come from the base (section 5.2.2), dots are removed
 * from its path (section 5.2.4), and it is put together again (section 5.3). Nothing is checked: what is no URI is a name
 * like any other. */
#include "uri.h"

#include <string.h>

/* Parts; data is NULL where one is absent, which is not the same as empty. */
struct uri {
    weft_bytes scheme, authority, path, query, fragment;
};

static bool is_scheme(const char *p, const char *end) {
    if (p == end || (unsigned char) ((*p | 0x20) - 'a') >= 26)
        return false;
    for (; p < end; p++)
        if (!((unsigned char) ((*p | 0x20) - 'a') < 26 || (*p >= '0' && *p <= '9') || *p == '+' || *p == '-' || *p == '.'))
            return false;
    return true;
}

static const char *find_any(const char *p, const char *end, const char *stops) {
    while (p < end && !(*p && strchr(stops, *p)))
        p++;
    return p;
}

static struct uri split_uri(const char *p, size_t len) {
    struct uri uri = {0};
    const char *end = p + len, *q = find_any(p, end, ":/?#");
    if (q < end && *q == ':' && is_scheme(p, q)) {
        uri.scheme = (weft_bytes){p, (size_t) (q - p)};
        p = q + 1;
    }
    if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
        q = find_any(p + 2, end, "/?#");
        uri.authority = (weft_bytes){p + 2, (size_t) (q - p) - 2};
        p = q;
    }
    q = find_any(p, end, "?#");
    uri.path = (weft_bytes){p, (size_t) (q - p)};
    p = q;
    if (p < end && *p == '?') {
        q = find_any(p, end, "#");
        uri.query = (weft_bytes){p + 1, (size_t) (q - p) - 1};
        p = q;
    }
    if (p < end)
        uri.fragment = (weft_bytes){p + 1, (size_t) (end - p) - 1};
    return uri;
}

static char *put_bytes(char *out, const char *before, weft_bytes bytes, const char *after) {
    if (!bytes.data)
        return out;
    out = stpcpy(out, before);
    memcpy(out, bytes.data, bytes.len);
    return stpcpy(out + bytes.len, after);
}

/* Section 5.2.4, in place; the new end. The path begins at start, which is where ".." stops. */
static char *remove_dots(char *start, char *end) {
    char *in = start, *out = start;
    while (in < end) {
        size_t left = (size_t) (end - in);
        if (left >= 3 && memcmp(in, "/./", 3) == 0) {
            in += 2;
        } else if (left == 2 && memcmp(in, "/.", 2) == 0) {
            *out++ = '/';
            in += 2;
        } else if ((left >= 4 && memcmp(in, "/../", 4) == 0) || (left == 3 && memcmp(in, "/..", 3) == 0)) {
            while (out > start && *--out != '/')
                ;
            in += 3;
            if (left == 3)
                *out++ = '/';
        } else {
            do
                *out++ = *in++;
            while (in < end && *in != '/');
        }
    }
    return out;
}

/* Section 5.2.3. */
static char *put_merged(char *out, const struct uri *base, weft_bytes path) {
    size_t keep = base->path.len;
    while (keep && base->path.data[keep - 1] != '/')
        keep--;
    if (base->authority.data && !base->path.len)
        *out++ = '/';
    memcpy(out, base->path.data, keep);
    memcpy(out + keep, path.data, path.len);
    return out + keep + path.len;
}

static char *put_path(char *out, const struct uri *base, const struct uri *ref, bool own) {
    char *start = out;
    if (own || (ref->path.len && ref->path.data[0] == '/')) {
        memcpy(out, ref->path.data, ref->path.len);
        out += ref->path.len;
    } else if (ref->path.len) {
        out = put_merged(out, base, ref->path);
    } else {
        memcpy(out, base->path.data, base->path.len);
        return out + base->path.len;
    }
    return start < out && *start == '/' ? remove_dots(start, out) : out;
}

char *weft__uri_resolve(weft_arena *arena, const char *base_text, weft_bytes reference) {
    struct uri base = split_uri(base_text, strlen(base_text)), ref = split_uri(reference.data, reference.len);
    char *text = weft__arena_alloc(arena, strlen(base_text) + reference.len + 8), *out = text;
    bool absolute = ref.scheme.data, own = absolute || ref.authority.data;
    if (!text)
        return NULL;
    out = put_bytes(out, "", absolute ? ref.scheme : base.scheme, ":");
    out = put_bytes(out, "//", own ? ref.authority : base.authority, "");
    out = put_path(out, &base, &ref, own);
    out = put_bytes(out, "?", own || ref.path.len || ref.query.data ? ref.query : base.query, "");
    out = put_bytes(out, "#", ref.fragment, "");
    *out = '\0';
    return text;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool decode_percents(char *text) {
    char *out = text;
    for (const char *p = text; *p; p++) {
        if (*p != '%') {
            *out++ = *p;
            continue;
        }
        int high = hex_digit(p[1]), low = high < 0 ? -1 : hex_digit(p[2]);
        if (low < 0 || high * 16 + low == 0)
            return false;
        *out++ = (char) (high * 16 + low);
        p += 2;
    }
    *out = '\0';
    return true;
}

char *weft__uri_cut_fragment(char *uri) {
    char *mark = strchr(uri, '#');
    if (!mark)
        return uri + strlen(uri);
    *mark = '\0';
    return decode_percents(mark + 1) ? mark + 1 : NULL;
}

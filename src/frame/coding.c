/* Reading two headers, and deciding. */
#include "coding.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* ---- Accept-Encoding ---- */

static weft_bytes trimmed_bytes(const char *data, const char *end) {
    while (data < end && (*data == ' ' || *data == '\t'))
        data++;
    while (end > data && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (weft_bytes){data, (size_t) (end - data)};
}

static bool same_name(weft_bytes bytes, const char *name) {
    return bytes.len == strlen(name) && strncasecmp(bytes.data, name, bytes.len) == 0;
}

/* "q=0", "q=0.0" and "q=0.000" say no; anything else says how much. */
static bool is_refused(const char *data, const char *end) {
    weft_bytes weight = trimmed_bytes(data, end);
    if (weight.len < 3 || strncasecmp(weight.data, "q=", 2) != 0)
        return false;
    for (size_t i = 2; i < weight.len; i++)
        if (weight.data[i] != '0' && weight.data[i] != '.')
            return false;
    return true;
}

bool weft__accepts_gzip(weft_bytes list) {
    int named = -1, any = 0; /* -1: not named */
    if (!list.len)
        return false;
    for (const char *at = list.data, *end = at + list.len; at < end;) {
        const char *comma = memchr(at, ',', (size_t) (end - at)), *stop = comma ? comma : end;
        const char *semicolon = memchr(at, ';', (size_t) (stop - at));
        weft_bytes name = trimmed_bytes(at, semicolon ? semicolon : stop);
        bool yes = !(semicolon && is_refused(semicolon + 1, stop));
        if (same_name(name, "gzip") || same_name(name, "x-gzip"))
            named = yes;
        else if (same_name(name, "*"))
            any = yes;
        at = stop + 1;
    }
    return named >= 0 ? named : any;
}

/* ---- Content-Encoding ---- */

int weft__coding_of(weft_bytes value) {
    if (same_name(value, "identity"))
        return 0;
    return same_name(value, "gzip") || same_name(value, "x-gzip") ? 1 : -ENOTSUP;
}

int weft__pack_if_worth(weft_gzip *gzip, const char *body, size_t len, weft_buf *out) {
    size_t before = weft__buf_len(out);
    if (len < WEFT_MIN_PACKED || weft__gzip_pack(gzip, body, len, out) < 0)
        return 0;
    if (weft__buf_len(out) - before < len)
        return 1;
    out->end = out->start + before;
    return 0;
}

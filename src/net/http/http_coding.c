/* Negotiating and applying gzip. Only whole bodies: answers in parts go out as they are. */
#include "http_coding.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "gzip.h"

/* Less fits into one packet anyway. */
#define MIN_PACKED 1024

/* ---- Accept-Encoding ---- */

static weft_bytes trimmed(const char *data, const char *end) {
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
    weft_bytes weight = trimmed(data, end);
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
        weft_bytes name = trimmed(at, semicolon ? semicolon : stop);
        bool yes = !(semicolon && is_refused(semicolon + 1, stop));
        if (same_name(name, "gzip") || same_name(name, "x-gzip"))
            named = yes;
        else if (same_name(name, "*"))
            any = yes;
        at = stop + 1;
    }
    return named >= 0 ? named : any;
}

int weft__body_coding(const weft_http_head *head) {
    size_t count;
    weft_bytes coding = weft__http_find(head, "content-encoding", &count);
    if (!count || (count == 1 && same_name(coding, "identity")))
        return 0;
    return count == 1 && (same_name(coding, "gzip") || same_name(coding, "x-gzip")) ? 1 : -ENOTSUP;
}

/* ---- what is worth it ---- */

/* Text in one of its many forms. Images and archives are packed already; events must not wait for a full block. */
static bool is_text(const char *type) {
    size_t len = strcspn(type, "; ");
    if (len == 17 && strncasecmp(type, "text/event-stream", len) == 0)
        return false;
    if (strncasecmp(type, "text/", 5) == 0)
        return true;
    static const char *const ends[] = {"json", "xml", "javascript", "wasm"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        size_t n = strlen(ends[i]);
        if (len > n && strncasecmp(type + len - n, ends[i], n) == 0)
            return true;
    }
    return false;
}

bool weft__worth_gzip(const char *type, const char *extra, size_t len) {
    return len >= MIN_PACKED && type && is_text(type) && !(extra && strcasestr(extra, "content-encoding:"));
}

/* ---- packing ---- */

static int ready_gzip(weft_server *server) {
    return server->gzip ? 0 : weft__gzip_new(server->alloc, &server->gzip);
}

int weft__pack_body(weft_server *server, weft_bytes body, weft_buf *out) {
    int r = ready_gzip(server);
    if (r >= 0)
        r = weft__gzip_pack(server->gzip, body.data, body.len, out);
    return r < 0 ? r : weft__buf_len(out) < body.len ? 0 : -E2BIG;
}

int weft__unpack_body(weft_server *server, weft_bytes body, size_t max, weft_buf *out) {
    int r = ready_gzip(server);
    return r < 0 ? r : weft__gzip_unpack(server->gzip, body.data, body.len, max, out);
}

/* Negotiating and applying gzip. Only whole bodies: answers in parts go out as they are. */
#include "http_coding.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

int weft__body_coding(const weft_http_head *head) {
    size_t count;
    weft_bytes coding = weft__http_find(head, "content-encoding", &count);
    return !count ? 0 : count > 1 ? -ENOTSUP : weft__coding_of(coding);
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
    return len >= WEFT_MIN_PACKED && type && is_text(type) && !(extra && strcasestr(extra, "content-encoding:"));
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

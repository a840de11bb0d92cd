/* HTTP/1.1 heads and bodies, strictly: what another server might read differently is refused (RFC 9112; request smuggling).
 * One-shot over bytes that lie in memory; no I/O, no allocation. */
#ifndef WEFT_HTTP1_H
#define WEFT_HTTP1_H

#include <weft/base.h>

#include "buf.h"

#define WEFT_HTTP_MAX_HEADERS 100
#define WEFT_HTTP_MAX_HEAD (16 * 1024)

typedef struct weft_http_header_row {
    weft_bytes name;
    weft_bytes value; /* without white space around it */
} weft_http_header_row;

/* Everything points into the bytes that were parsed. */
typedef struct weft_http_head {
    weft_bytes method; /* of a request */
    weft_bytes target; /* "/path?query" or "*"; of "http://host/path" only the path, the host being the same as Host's */
    int status;        /* of a response */
    int minor;         /* HTTP/1.minor: 0 or 1 */
    bool keep_alive;   /* after this message; false for a response whose body only the end of the connection ends */
    bool chunked;
    bool upgrade;           /* Connection: upgrade is there */
    int64_t content_length; /* -1: none said */
    size_t header_count;
    weft_http_header_row headers[WEFT_HTTP_MAX_HEADERS];
} weft_http_head;

/* >0: the head's length in bytes, head is filled. 0: incomplete. <0: -EBADMSG malformed (400), -EMSGSIZE over 16 KiB or 100
 * headers (431), -ENOTSUP a version we do not speak (505), -ENOSYS a transfer coding we do not know (501).
 * Unless a length is returned, what is in *ret means nothing: copying 3 KiB on success would cost as much as the parsing. */
int weft__http_request(const char *data, size_t len, weft_http_head *ret);
int weft__http_response(const char *data, size_t len, weft_http_head *ret);
/* The value of a header by name (lower case), or {NULL, 0}. *ret_count may be NULL and says how often it is there. */
weft_bytes weft__http_find(const weft_http_head *head, const char *name, size_t *ret_count);
/* Is this token in a comma-separated list? Case does not matter. */
bool weft__http_has_token(weft_bytes list, const char *token);

/* Chunked bodies, a piece at a time. Zero it first. */
typedef struct weft_chunked {
    int state;
    uint64_t left;
    size_t line; /* bytes of the current size or trailer line, which is limited */
} weft_chunked;
/* Decode in place from in[0..n): the body bytes found are moved to the front, *ret_body of them; *ret_used input bytes are
 * finished with. 1 the body is complete, 0 more is needed, -EBADMSG malformed, or a size line over 256 bytes or trailers
 * over 8 KiB. */
int weft__chunked(weft_chunked *state, char *in, size_t n, size_t *ret_used, size_t *ret_body);

/* The reason phrase of a status, "" when unknown. */
const char *weft__http_reason(int status);

#endif

/* Which bytes may stand where in HTTP/1.1 (RFC 9110 section 5.6.2, RFC 9112 section 3.2, RFC 3986). Private to the HTTP
 * files. */
#ifndef WEFT_HTTP1_BYTES_H
#define WEFT_HTTP1_BYTES_H

#include <stdbool.h>

enum {
    HTTP_TOKEN = 1 << 0,  /* methods and names */
    HTTP_TARGET = 1 << 1, /* visible ASCII; a fragment has no place in a request */
    HTTP_VALUE = 1 << 2,  /* header values: no controls, HTAB excepted */
    HTTP_HOST = 1 << 3,   /* host and port; no comma, which would be two of them, and no user */
};

extern const unsigned char weft__http_bytes[256];

/* Is every byte of the class? An empty text is. */
bool weft__http_is(const char *text, unsigned char class);

#endif

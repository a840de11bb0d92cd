/* What the two heads of a WebSocket handshake must say (RFC 6455 section 4, RFC 7692), without I/O. */
#ifndef WEFT_WS_HANDSHAKE_H
#define WEFT_WS_HANDSHAKE_H

#include "http1.h"

/* Sec-WebSocket-Key: base64 of exactly 16 bytes? */
bool weft__ws_key_valid(weft_bytes key);
/* Sec-WebSocket-Accept for a key (SHA-1 by OpenSSL, base64): 28 characters and a NUL. */
void weft__ws_accept(weft_bytes key, char ret[29]);

/* Server: go through the offers of one or more joined Sec-WebSocket-Extensions headers, take the first that fits, write the
 * answer's value. The window for what we send (9..15), or 0: none fits, answer no extension. */
unsigned weft__ws_deflate_offer(weft_bytes offers, char *ret_answer, size_t size);
/* Enough for any answer that it writes. */
#define WEFT_WS_DEFLATE_ANSWER_SIZE 128
/* What our client offers. */
#define WEFT_WS_DEFLATE_OFFER                                                                                               \
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover; client_max_window_bits"
/* Client: does the server's answer fit what we offered? The window for what we send (9..15), 0 none was answered, -EPROTO it
 * does not fit. */
int weft__ws_deflate_answer(weft_bytes answer);

#endif

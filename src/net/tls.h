/* TLS 1.2 and 1.3 by OpenSSL, as bytes in and bytes out: no descriptor in here. Streams use it; others only make contexts.
 *
 * Certificates are always verified where they are asked for, renegotiation and compression are off, and why something failed
 * is kept as a sentence. */
#ifndef WEFT_TLS_H
#define WEFT_TLS_H

#include <weft/net.h>

#include "alloc.h"

/* Certificates and rules, shared by any number of connections. */
typedef struct weft_tls_ctx weft_tls_ctx;
/* One connection. */
typedef struct weft_tls weft_tls;

#define WEFT_TLS_WHY 200 /* room for a sentence */

/* A server's context needs cert and key; with ca it demands a client certificate. http: agree on "http/1.1" by ALPN.
 * -EINVAL, -ENOENT, -EACCES or -ENOMEM, and a sentence in why (WEFT_TLS_WHY bytes; may be NULL). */
int weft__tls_server(const weft_tls_opts *opts, bool http, const weft_alloc *alloc, weft_tls_ctx **ret, char *why);
int weft__tls_client(const weft_tls_opts *opts, bool http, const weft_alloc *alloc, weft_tls_ctx **ret, char *why);
weft_tls_ctx *weft__tls_ctx_ref(weft_tls_ctx *ctx);
weft_tls_ctx *weft__tls_ctx_unref(weft_tls_ctx *ctx);

/* A connection. host (client) is what the URL says: a name is sent as SNI, and the certificate must be for it, or for
 * opts.server_name when that was given. */
int weft__tls_new(weft_tls_ctx *ctx, const char *host, weft_tls **ret);
weft_tls *weft__tls_free(weft_tls *tls);

/* Ciphertext from the network. -ENOMEM. */
int weft__tls_put(weft_tls *tls, const char *data, size_t len);
/* Go on with the handshake. 1 done, 0 wait for bytes (there may be output), -EPROTO failed (there may be an alert to send).
 */
int weft__tls_handshake(weft_tls *tls);
/* Plain bytes: >0 that many, 0 wait for more, -ECONNRESET the other side closed properly, -EPROTO broken. */
int weft__tls_read(weft_tls *tls, char *data, size_t size);
/* Encrypt: >0 that many bytes were taken, -EPROTO broken. */
int weft__tls_write(weft_tls *tls, const char *data, size_t len);
/* Say good-bye (close_notify). Once; output follows. */
void weft__tls_close(weft_tls *tls);
/* Ciphertext for the network, borrowed until the next call; and how much of it has left. */
weft_bytes weft__tls_output(weft_tls *tls);
void weft__tls_sent(weft_tls *tls, size_t n);

/* Why it failed, as a sentence; "" when it did not. */
const char *weft__tls_why(const weft_tls *tls);
/* The common name of the other side's verified certificate, or its whole subject when it has none. 1; 0 it showed none. */
int weft__tls_subject(const weft_tls *tls, char *ret, size_t size);

#endif

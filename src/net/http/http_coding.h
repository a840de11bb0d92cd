/* gzip for HTTP bodies, both ways: what a client accepts, what is worth it, and what it sent. */
#ifndef WEFT_HTTP_CODING_H
#define WEFT_HTTP_CODING_H

#include "coding.h"
#include "http_server.h"

/* The coding of a request's body: 0 none, 1 gzip, -ENOTSUP another. */
int weft__body_coding(const weft_http_head *head);
/* Is it worth compressing an answer of this type and length? Then caches must know that there are two forms of it. */
bool weft__worth_gzip(const char *type, const char *extra, size_t len);
/* Append the packed body to out. <0: send it as it is. */
int weft__pack_body(weft_server *server, weft_bytes body, weft_buf *out);
/* Unpack what a client sent, at most max bytes. -EMSGSIZE, -EBADMSG, -ENOMEM. */
int weft__unpack_body(weft_server *server, weft_bytes body, size_t max, weft_buf *out);

#endif

/* What a client must know about HTTP beyond its framing: what a status means, and when a connection's end is no loss. */
#ifndef WEFT_CLIENT_HTTP_H
#define WEFT_CLIENT_HTTP_H

#include "client.h"

/* The headers as text, each with its CRLF; *ret is owned and NULL when there are none. -EINVAL, -ENOMEM. */
int weft__headers_text(const weft_header *headers, const weft_alloc *alloc, char **ret);

/* Give the peer its framing: host, path, token and headers. -EINVAL, -ENOMEM. */
int weft__http_prepare(weft_client *client);

/* The server answered with a status that is none of success: -EACCES for 401 and 403, -ENOENT for 404 and 410, -EBUSY for
 * 429 and 503, else -EPROTO, and a sentence. instead ends the sentence. */
int weft__http_refused(weft_client *client, int status, const char *instead);
/* Tell the user of an answer's head; ctx is the client. */
void weft__http_tell_reply(void *ctx, const weft_http_head *head);
/* The same for the last answer, when it was a refusal; otherwise r. */
int weft__http_describe(weft_client *client, int r);

/* The server has closed the connection: was nothing lost by it? What has not been sent yet goes over the next. An answer
 * that only the end of the connection completes is completed by a clean one. May free the peer. */
bool weft__http_harmless_end(weft_client *client, bool clean);

#endif

/* The inside of a request that a route answers, for the files that answer it. */
#ifndef WEFT_HTTP_REQUEST_H
#define WEFT_HTTP_REQUEST_H

#include "http_server.h"

/* One block: this, the header table, the head's text cut into strings, the certificate's name. */
struct weft_http {
    weft_conn *conn; /* NULL: gone */
    const weft_alloc *alloc;
    const weft_route *route;
    weft_buf body;
    weft_identity identity;
    weft_origin origin;
    char name[WEFT_CONN_NAME];
    const char *method, *path, *query;
    weft_http_stream stream; /* while it is answered in parts */
    bool streams, events, full;
    bool chunked; /* the client knows chunks */
    bool called;  /* the handler owns it */
    size_t header_count;
    struct {
        const char *name, *value;
    } headers[];
};

void weft__http_free(weft_http *http);
/* The status of an answer, and its headers as text, each with its CRLF, in ret (owned by the caller, also on failure;
 * without a NUL at its end when it is empty). -EINVAL, -ENOMEM. */
int weft__http_judge_answer(const weft_http *http, const weft_http_answer_opts *opts, weft_buf *ret);

#endif

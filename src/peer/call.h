/* Opening calls one by one or in a batch; private to peer/. */
#ifndef WEFT_CALL_H
#define WEFT_CALL_H

#include "encode.h"
#include "peer_private.h"

/* Enter a call in the books; nothing is written yet. */
int weft__call_open(weft_peer *peer, const weft_call_opts *opts, int64_t *ret_id);
/* Take it out again without completing it; false: it has completed already. */
bool weft__call_undo(weft_peer *peer, int64_t id);
/* Write its request. */
int weft__call_write(weft_peer *peer, weft_buf *out, int64_t id, const char *method, const weft_val *params,
                     const weft_call_opts *opts);
/* A request (id > 0) or notification (id 0) of this peer's, signed if it signs. As weft__write_request(). request_out.c. */
int weft__request_write(weft_peer *peer, weft_buf *out, int64_t id, const char *method, const weft_val *params,
                        const weft_extras *extras);
/* What a message that is an answer says. -EBADMSG. */
int weft__answer_of(const weft_msg *msg, weft_doc *doc, weft_answer *ret);

#endif

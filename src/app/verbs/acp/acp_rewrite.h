/* What weft acp changes in its editor's messages before the hub gets them: they are written again, with the rest as it was.
 * All of these append to out; -ENOMEM. */
#ifndef WEFT_ACP_REWRITE_H
#define WEFT_ACP_REWRITE_H

#include <weft/json.h>

#include "buf.h"
#include "message.h"

/* An object, with this member in its "_meta". Without an object, one that has nothing else. */
int weft__acp_put_with_meta(weft_buf *out, const weft_json *object, const char *name, weft_val value);
/* The params of initialize, asking for positions as well. */
int weft__acp_put_initialize(weft_buf *out, const weft_json *params);
/* A request with other params. */
int weft__acp_put_request(weft_buf *out, const weft_msg *msg, const weft_buf *params);

#endif

/* A message as somebody else than its sender and its receiver may see it: members that hold secrets are there by name only,
 * wherever they are, and so are links that log in. For logs and for the messages that an administrator watches. */
#ifndef WEFT_REDACT_H
#define WEFT_REDACT_H

#include "buf.h"

#include <weft/json.h>

/* Append it. -ENOMEM. */
int weft__redact(weft_buf *out, const weft_alloc *alloc, const weft_json *message);

#endif

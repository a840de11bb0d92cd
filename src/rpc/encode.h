/* Writing messages onto a buffer. Each leaves the buffer as it was when it fails (-ENOMEM). No framing here. */
#ifndef WEFT_ENCODE_H
#define WEFT_ENCODE_H

#include <errno.h>
#include <string.h>

#include <weft/json.h>

#include "buf.h"
#include "flat.h"
#include "hint.h"
#include "write.h"

#define WEFT_OPEN_ID "{\"jsonrpc\":\"2.0\",\"id\":"
#define WEFT_OPEN_RESULT ",\"result\":"

/* A success: {"jsonrpc":"2.0","id":ID,"result":VALUE}. id is raw text. */
int weft__write_any_result(weft_buf *out, const weft_alloc *alloc, weft_bytes id, const weft_val *result);
/* Almost every answer is small or a copy: for a copy, room is made once and then written without asking. */
static WEFT_ALWAYS_INLINE int weft__write_result(weft_buf *out, const weft_alloc *alloc, weft_bytes id,
                                                 const weft_val *result) {
    if (WEFT_RARELY(result->kind != WEFT_VAL_RAW || !id.len || !result->len))
        return weft__write_any_result(out, alloc, id, result);
    size_t size = sizeof WEFT_OPEN_ID + sizeof WEFT_OPEN_RESULT + id.len + result->len;
    if (WEFT_RARELY(weft__buf_reserve(out, alloc, size) < 0))
        return -ENOMEM;
    char *start = weft__buf_tail(out), *at = start;
    at = (char *) mempcpy(at, WEFT_OPEN_ID, sizeof WEFT_OPEN_ID - 1);
    if (WEFT_LIKELY(id.len <= 16))
        weft__copy_few(at, id.data, id.len);
    else
        memcpy(at, id.data, id.len);
    at += id.len;
    at = (char *) mempcpy(at, WEFT_OPEN_RESULT, sizeof WEFT_OPEN_RESULT - 1);
    at = weft__copy_flat(at, result->as.s, result->len);
    *at++ = '}';
    out->end += (size_t) (at - start);
    return 0;
}
/* A refusal. data that is NULL or of kind NONE is left out; an empty id is written as null. */
int weft__write_error(weft_buf *out, const weft_alloc *alloc, weft_bytes id, int code, const char *message,
                      const weft_val *data);
/* What a request carries besides what the caller gave as params. */
typedef struct weft_extras {
    int64_t progress_token;      /* 0: none */
    bool token_in_params;        /* LSP's partialResultToken instead of _meta.progressToken */
    int64_t deadline_ms;         /* 0: none */
    const char *idempotency_key; /* NULL: none */
} weft_extras;

/* Would we take it ourselves? -EINVAL: no method, or params that are neither an object nor an array nor absent. */
int weft__request_fits(const char *method, const weft_val *params);
/* A request (id > 0) or a notification (id 0). params of kind NONE are left out. Extras join a _meta that params have
 * already. -EINVAL: extras need named params. */
int weft__write_request(weft_buf *out, const weft_alloc *alloc, int64_t id, const char *method, const weft_val *params,
                        const weft_extras *extras);

/* About how long it will be, for the framing's header. */
static inline size_t weft__result_hint(weft_bytes id, const weft_val *result) {
    size_t value = result->kind == WEFT_VAL_RAW ? result->len : weft__val_hint(result);
    return sizeof WEFT_OPEN_ID + sizeof WEFT_OPEN_RESULT + id.len + value;
}

#endif

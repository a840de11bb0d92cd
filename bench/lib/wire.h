/* Echo requests and their answers on every framing the benchmark loads: built once, stamped with an id each time.
 *
 * A request is {"jsonrpc":"2.0","id":N,"method":"echo","params":["..."]} of an exact size with an id of fixed width, so
 * that every answer of one server has one length and differs from the first only in its id. That is how each answer is
 * checked in full for the price of a memcmp, whatever the order of its members, and the bare echo's "answer" with it.
 * This is no JSON parser: the payload holds nothing that could be taken for a member. */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define ID_DIGITS 8
#define ID_FIRST 10000000u /* no leading zeros: ids run from here to 99999999 */
#define ID_SPAN 90000000u

enum framing { FRAMING_NDJSON, FRAMING_LENGTH, FRAMING_HTTP, FRAMING_WS };

/* "ndjson", "length", "http" or "ws"; -EINVAL otherwise. */
int framing_parse(const char *name, enum framing *ret);

struct request {
    uint8_t *frame; /* with head, delimiter and mask as the framing wants them */
    size_t len;
    size_t id_at;
    uint8_t id_xor[ID_DIGITS]; /* the mask over the id's place, zero where there is none */
    char *text;                /* params[0] */
    size_t text_len;
};

/* Build a request whose JSON text has `size` bytes. host and path are for HTTP. -EINVAL when size is too small. */
int request_init(struct request *req, enum framing framing, size_t size, const char *host, const char *path);
void request_done(struct request *req);

/* Copy the frame to out (req->len bytes) with this id. */
void request_write(const struct request *req, uint32_t id, uint8_t *out);

struct body {
    const uint8_t *p;
    size_t n;
    size_t used; /* with framing */
};

/* 1 and the first whole answer, 0 when more bytes are needed, -EPROTO when this is not the framing. Blank lines and
 * WebSocket control frames come out as bodies of length 0. */
int answer_next(enum framing framing, const uint8_t *p, size_t n, struct body *ret);

struct expected {
    uint8_t *body; /* the first answer, or NULL */
    size_t len;
    size_t id_at;
};

/* The id of an answer that is right in every byte. -EBADMSG when it is an error, lacks the payload or differs from the
 * first one in more than its id. */
int answer_match(struct expected *expected, const struct request *req, const struct body *body, uint32_t *ret_id);

#endif

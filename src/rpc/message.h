/* One JSON-RPC 2.0 message taken apart: what it is, and where its members lie. Nothing is copied or decoded; ids keep their
 * text, because 1 and 1.0 are one number but the client that sent 1.0 is waiting for 1.0. */
#ifndef WEFT_MESSAGE_H
#define WEFT_MESSAGE_H

#include <weft/base.h>

/* Longer ids are refused: an id is kept for as long as its request is open. */
#define WEFT_MAX_ID 256

typedef enum weft_msg_kind {
    WEFT_MSG_REQUEST,
    WEFT_MSG_NOTIFICATION,
    WEFT_MSG_ANSWER,  /* has result or error and no method; whether it is a proper one is for whoever waits to say */
    WEFT_MSG_INVALID, /* valid JSON, but none of these: -32600 */
    WEFT_MSG_BATCH,   /* an array; weft__batch_next() walks it */
} weft_msg_kind;

/* Spans into the text; data is NULL when the member is not there. */
typedef struct weft_msg {
    weft_msg_kind kind;
    weft_bytes text;   /* the whole object; not of a batch */
    weft_bytes id;     /* as it came; also of an invalid message, if it had a usable one */
    weft_bytes method; /* between the quotes */
    weft_bytes params;
    weft_bytes meta; /* params._meta */
    weft_bytes result;
    weft_bytes error;
    bool method_escaped; /* method has backslashes in it */
    bool proper;         /* an answer that says "jsonrpc":"2.0" and has one of result and error */
    bool no_method;      /* an invalid message with the id of a call and no method is an answer without an outcome */
    const char *why;     /* of an invalid message: what is wrong with it, for error.data */
} weft_msg;

/* Take apart the value that text begins with, white space allowed. The text ends in a NUL as scan.h wants it.
 * *ret_rest is the first byte behind the value and the white space that follows it; a caller that allows one value only
 * compares it with the text's end. lenient: "jsonrpc" may be missing. depth: how deep it may nest.
 * 0, or -EBADMSG: not JSON; then *ret means nothing. */
int weft__msg_parse(const char *text, int depth, bool lenient, weft_msg *ret, const char **ret_rest);

/* Of a message that was too large to be taken, the beginning: does it begin like an answer? Its id, empty where that comes
 * later. The text ends in a NUL, as above. */
bool weft__msg_begins_answer(const char *text, weft_bytes *ret_id);

/* The items of a batch, which has been validated: *at begins at its text ('['), and moves. 1 an item in *ret, 0 no more. */
int weft__batch_next(const char **at, bool lenient, weft_msg *ret);

#endif

/* What is answered for its own sake: the method that says nothing new. */
#include "serve.h"

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

const weft_method weft__serve_echo = {.name = "echo", .handler = echo, .help = "answer the params as they came"};

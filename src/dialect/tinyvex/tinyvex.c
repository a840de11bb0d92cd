/* tinyvex: its methods, their errors and what they answer. A method is a row here and a handler in the file that is named
 * for what it is about. */
#include "tinyvex.h"

#include "acp.h"
#include "reply.h"
#include "schemas.h"

/* clang-format off */
#define S_NUMBER "{\"type\":\"number\"}"
#define S_OK S_OF(S_IS("ok", S_TRUE), "\"ok\"")

#define S_CONNECTED S_OF( \
    S_IS("serverVersion", S_STRING) "," \
    S_IS("nowTs", S_COUNT) "," \
    S_IS("features", S_OF(S_IS("chunks", S_BOOL) "," S_IS("maxChunkBytes", S_COUNT), "\"chunks\",\"maxChunkBytes\"")) "," \
    S_IS("sessionId", S_STRING), \
    "\"serverVersion\",\"nowTs\",\"features\",\"sessionId\"")
/* clang-format on */

static const weft_error_row params_errors[] = {WEFT_ERROR_PARAMS, {0}};
static const weft_error_row token_errors[] = {WEFT_ERROR_PARAMS,
                                              {401, "Not authenticated", "unauthorized"},
                                              {429, "Too many wrong tokens", "tooManyWrongTokens"},
                                              {0}};

static const weft_method methods[] = {
    {.name = "tinyvex/connect",
     .handler = weft__tinyvex_on_connect,
     .params = weft__tinyvex_connect_params,
     .help = "begin: the hub's version and time, and how long values are cut",
     .scope = WEFT_READ,
     .result = S_CONNECTED,
     .errors = params_errors,
     .flags = WEFT_DECIDES},
    {.name = "tinyvex/ping",
     .handler = weft__tinyvex_on_ping,
     .params = weft__tinyvex_ping_params,
     .help = "is the hub there; sent as a notification, tinyvex/pong answers it",
     .scope = WEFT_READ,
     .result = S_OF(S_IS("t", S_NUMBER), ""),
     .errors = params_errors},
    {.name = "tinyvex/auth.setToken",
     .handler = weft__tinyvex_on_set_token,
     .params = weft__tinyvex_set_token_params,
     .help = "show a token on a connection that began without one; null: forget who this is",
     .result = S_OK,
     .errors = token_errors,
     .flags = WEFT_OPEN},
    {0},
};

static bool claims_connect(const weft_json *params) {
    (void) params;
    return true;
}

/* What happens in sessions is said in ACP's words. */
const weft_dialect weft__tinyvex = {
    .name = "tinyvex", .methods = methods, .claims = claims_connect, .render = weft__acp_render, .joins = true};

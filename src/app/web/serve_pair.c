/* pair.start, pair.status and pair.stop. */
#include "serve_pair.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "failure.h"
#include "hub.h"
#include "pair_private.h"
#include "reply.h"

#define DAY_S ((int64_t) 24 * 3600)
#define DEVICE_S (90 * DAY_S)

/* ---- starting ---- */

struct start {
    const char *address, *name, *scopes;
    int64_t port, expiresIn;
};
static const weft_param start_params[] = {
    {"address", WEFT_PARAM_str, offsetof(struct start, address), WEFT_NULLABLE,
     "of this machine, by which the device reaches it; the one that leads to the network when absent"},
    {"port", WEFT_PARAM_int, offsetof(struct start, port), WEFT_NULLABLE,
     "16443, or one behind it that is free, when absent or 0"},
    {"name", WEFT_PARAM_str, offsetof(struct start, name), WEFT_NULLABLE,
     "of the device's token; as the device says when absent"},
    {"scopes", WEFT_PARAM_str, offsetof(struct start, scopes), WEFT_NULLABLE,
     "what it allows: " WEFT_TOKEN_SCOPE_NAMES "; \"read work\" when absent"},
    {"expiresIn", WEFT_PARAM_int, offsetof(struct start, expiresIn), WEFT_NULLABLE, "seconds; 90 days when absent or 0"},
    WEFT_END(struct start),
};

static int judge_start(weft_req *req, weft_serve_pair *self, const struct start *in) {
    weft_token_row wanted = {.expires_at = in->expiresIn ? in->expiresIn : DEVICE_S};
    if (in->name && !weft__token_is_name(in->name))
        return weft__reply_invalid(req, "/name",
                                   "name must be 1 to 64 letters, digits, dots, dashes and underscores, and not \"token\"");
    if (weft__token_scopes(in->scopes ? in->scopes : "read work", wanted.scopes) < 0)
        return weft__reply_invalid(req, "/scopes", "scopes must be some of " WEFT_TOKEN_SCOPE_NAMES);
    if (in->expiresIn < 0 || in->expiresIn > 3660 * DAY_S)
        return weft__reply_invalid(req, "/expiresIn", "expiresIn must be 0 or a number of seconds, at most ten years");
    if (in->port < 0 || in->port > 65535)
        return weft__reply_invalid(req, "/port", "port must be 0 to 65535");
    snprintf(wanted.name, sizeof wanted.name, "%s", in->name ? in->name : "");
    self->wanted = wanted;
    return 1;
}

/* A token that was stolen must not open doors: only who is on this machine, and is the user, may. */
static int refuse_stranger(weft_req *req) {
    return weft__reply_error(req, 403, "notHere", "pairing is begun and ended on the machine that the hub runs on");
}

static int refuse_open(weft_req *req, const weft_serve_pair *self, const char *address, int r) {
    if (r == -EBUSY)
        return weft__reply_error(req, 409, "pairingElsewhere",
                                 "devices come in at %s already; \"weft pair --off\" closes it", self->base);
    if (r == -EINVAL)
        return weft__reply_invalid(req, "/address", "address must be an IP address of this machine");
    if (r == -EADDRINUSE)
        return weft__reply_error(req, 409, "portInUse", "there is no free port at %s; name another", address);
    if (r == -EADDRNOTAVAIL)
        return weft__reply_error(req, 409, "notOurAddress", "%s is not an address of this machine", address);
    return weft__reply_error(req, 503, "notNow", "%s: %s", address, weft_strerror(r));
}

static int answer_start(weft_req *req, const weft_serve_pair *self, const char *code) {
    char url[WEFT_PAIR_BASE + WEFT_PAIR_CODE + WEFT_FINGERPRINT + 32], expires[WEFT_STAMP];
    snprintf(url, sizeof url, "%spair?code=%s#sha256=%s", self->base, code, self->fingerprint);
    return weft_reply(req, WEFT_OBJ({"url", weft_str(url)}, {"address", weft_str(self->base)},
                                    {"fingerprint", weft_str(self->fingerprint)},
                                    {"expiresAt", weft__stamp_val(self->until_s * 1000, expires)},
                                    {"scopes", weft_str(self->wanted.scopes)}));
}

static int start_pairing(weft_req *req, const weft_json *params, void *ctx) {
    weft_serve_pair *self = ctx;
    const struct start *in = weft_req_params(req);
    char address[WEFT_LAN_ADDRESS], code[WEFT_PAIR_CODE];
    (void) params;
    if (!weft_req_identity(req)->local)
        return refuse_stranger(req);
    if (!self->opts.token || !self->opts.held)
        return weft__reply_error(req, 409, "noTokens",
                                 "devices need tokens, and this hub has none: it was started with --auth none, "
                                 "or without a folder of its own");
    int r = judge_start(req, self, in);
    if (r <= 0)
        return r;
    if (in->address)
        snprintf(address, sizeof address, "%s", in->address);
    else if (weft__lan_address(address) < 0)
        return weft__reply_error(req, 409, "noNetwork", "this machine is in no network; name an address of it");
    r = weft__pair_open(self, address, (int) in->port);
    if (r < 0)
        return refuse_open(req, self, address, r);
    r = weft__pair_code(self, code);
    r = r < 0 ? refuse_open(req, self, address, r) : answer_start(req, self, code);
    return r;
}

/* ---- looking and stopping ---- */

static int show_pairing(weft_req *req, const weft_json *params, void *ctx) {
    const weft_serve_pair *self = ctx;
    char expires[WEFT_STAMP], at[WEFT_STAMP];
    (void) params;
    weft_val paired = WEFT_OBJ({"name", weft_str(self->device)}, {"address", weft_str(self->device_address)},
                               {"at", weft__stamp_val(self->device_at * 1000, at)});
    return weft_reply(req,
                      WEFT_OBJ({"open", weft_bool(self->open)}, {"waiting", weft_bool(self->waiting)},
                               {"address", self->open ? weft_str(self->base) : weft_none()},
                               {"fingerprint", self->open ? weft_str(self->fingerprint) : weft_none()},
                               {"expiresAt", self->waiting ? weft__stamp_val(self->until_s * 1000, expires) : weft_none()},
                               {"paired", *self->device ? paired : weft_none()}));
}

struct stop {
    bool code;
};
static const weft_param stop_params[] = {
    {"code", WEFT_PARAM_bool, offsetof(struct stop, code), WEFT_NULLABLE,
     "only withdraw the code: devices that are paired can still come in"},
    WEFT_END(struct stop),
};

/* A door that nobody came in by is of no use to anybody. */
static void end_code(weft_serve_pair *self) {
    weft__pair_forget_code(self);
    if (!self->paired)
        weft__pair_close(self);
}

static int stop_pairing(weft_req *req, const weft_json *params, void *ctx) {
    weft_serve_pair *self = ctx;
    const struct stop *in = weft_req_params(req);
    (void) params;
    if (!weft_req_identity(req)->local)
        return refuse_stranger(req);
    if (in->code)
        end_code(self);
    else {
        weft__pair_close(self);
        weft__pair_remember(self, true);
    }
    return weft_reply(req, WEFT_OBJ({"open", weft_bool(self->open)}));
}

static void code_due(weft_timer *timer) {
    end_code(WEFT_CONTAINER(timer, weft_serve_pair, timer));
}

/* ---- the rows ---- */

#define TEXT "{\"type\":\"string\"}"
#define FLAG "{\"type\":\"boolean\"}"

static const weft_error_row start_errors[] = {WEFT_ERROR_PARAMS,
                                              WEFT_ERROR_AGENT,
                                              {403, "The caller is on another machine, or came by the network", "notHere"},
                                              {409, "The hub asks for no tokens", "noTokens"},
                                              {409, "This machine is in no network", "noNetwork"},
                                              {409, "Devices come in at another address already", "pairingElsewhere"},
                                              {409, "There is no free port", "portInUse"},
                                              {409, "It is not an address of this machine", "notOurAddress"},
                                              {503, "The system refused", "notNow"},
                                              {0}};
static const weft_error_row stop_errors[] = {
    WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, {403, "The caller is on another machine, or came by the network", "notHere"}, {0}};
static const weft_error_row status_errors[] = {WEFT_ERROR_PARAMS, WEFT_ERROR_AGENT, {0}};

const weft_method weft__pair_rows[] = {
    {.name = "pair.start",
     .handler = start_pairing,
     .params = start_params,
     .help = "let one device on the network in, within five minutes: a link with a code and a certificate's fingerprint",
     .scope = WEFT_ADMIN,
     .result = "{\"type\":\"object\",\"properties\":{\"url\":" TEXT ",\"address\":" TEXT ",\"fingerprint\":" TEXT
               ",\"expiresAt\":" TEXT ",\"scopes\":" TEXT "}}",
     .errors = start_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "pair.status",
     .handler = show_pairing,
     .params = weft__no_params,
     .help = "whether devices can come in, where, and which was paired last",
     .scope = WEFT_ADMIN,
     .result = "{\"type\":\"object\",\"properties\":{\"open\":" FLAG ",\"waiting\":" FLAG ",\"address\":" TEXT
               ",\"fingerprint\":" TEXT ",\"expiresAt\":" TEXT ",\"paired\":{\"type\":\"object\"}}}",
     .errors = status_errors,
     .flags = WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "pair.stop",
     .handler = stop_pairing,
     .params = stop_params,
     .help = "let no paired device connect; their tokens stay",
     .scope = WEFT_ADMIN,
     .result = "{\"type\":\"object\",\"properties\":{\"open\":" FLAG "}}",
     .errors = stop_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {0},
};

static int add_pair_methods(weft_serve_pair *self) {
    int r = 0;
    memcpy(self->methods, weft__pair_rows, sizeof self->methods);
    for (size_t i = 0; r >= 0 && weft__pair_rows[i].name; i++) {
        self->methods[i].ctx = self;
        r = weft_service_add(weft_server_service(self->opts.server), &self->methods[i]);
    }
    return r;
}

/* ---- beginning and end ---- */

int weft__serve_pair_new(const weft_serve_pair_opts *opts, weft_serve_pair **ret) {
    weft_serve_pair *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return -ENOMEM;
    self->opts = *opts;
    weft__timer_init(&self->timer, code_due);
    *ret = self; /* routes and rows that were added before one failed need what is there */
    int r = weft__pair_routes(self);
    return r < 0 ? r : add_pair_methods(self);
}

static size_t count_devices(const weft_serve_tokens *tokens) {
    size_t count = 0;
    for (size_t i = 0; i < tokens->list.count; i++)
        count += tokens->list.rows[i].device;
    return count;
}

void weft__serve_pair_resume(weft_serve_pair *self) {
    char address[WEFT_LAN_ADDRESS];
    int port;
    size_t devices = count_devices(self->opts.tokens);
    if (!devices || !self->opts.held || !self->opts.token || weft__pair_recall(self, address, &port) < 0)
        return;
    int r = weft__pair_open(self, address, port);
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: pairing: %s port %d: %s; paired devices cannot come in", address, port,
                   weft_strerror(r));
    self->paired = r < 0 ? 0 : devices;
}

weft_serve_pair *weft__serve_pair_free(weft_serve_pair *self) {
    if (!self)
        return NULL;
    weft__timer_stop(self->opts.loop, &self->timer);
    return weft__free(NULL, self);
}

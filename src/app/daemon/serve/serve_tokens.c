/* token.add, token.list, token.revoke. The file is written before anybody is answered, and the server has the new list by
 * then: a client that is told "revoked" can rely on it. */
#include "serve_tokens.h"

#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <time.h>

#include "buf.h"
#include "hub.h"
#include "reply.h"
#include "server.h"
#include "write.h"

/* A hundred years is as good as for ever, and cannot overflow. */
#define MAX_LIFE_S ((int64_t) 100 * 366 * 24 * 3600)

/* ---- the list in force ---- */

static void fill_tokens(weft_serve_tokens *self) {
    size_t count = 0;
    if (self->first)
        self->tokens[count++] = (weft_token){.token = self->first, .name = "token"};
    for (size_t i = 0; i < self->list.count; i++) {
        const weft_token_row *row = &self->list.rows[i];
        self->tokens[count++] =
            (weft_token){.name = row->name, .scopes = row->scopes, .digest = row->digest, .expires_at = row->expires_at};
    }
    self->tokens[count] = (weft_token){0};
}

int weft__serve_tokens_load(weft_serve_tokens *self, char ret_why[WEFT_TRUST_WHY]) {
    int r = weft__tokens_load(self->layout, &self->list, ret_why);
    fill_tokens(self);
    return r;
}

int weft__serve_tokens_apply(weft_serve_tokens *self, char ret_why[WEFT_TRUST_WHY]) {
    int r = weft__serve_tokens_load(self, ret_why);
    int applied = weft_server_tokens(self->server, self->tokens);
    if (applied < 0)
        snprintf(ret_why, WEFT_TRUST_WHY, "tokens: %s", weft_strerror(applied));
    return r < 0 ? r : applied;
}

/* ---- the methods ---- */

static weft_val seconds_stamp(int64_t seconds, char text[WEFT_STAMP]) {
    return seconds ? weft__stamp_val(seconds * 1000, text) : weft_none();
}

static int refuse_change(weft_req *req, int r, const char *why) {
    if (r == -EEXIST)
        return weft__reply_error(req, 409, "tokenExists", "%s", why);
    if (r == -ENOSPC)
        return weft__reply_error(req, 409, "tooManyTokens", "%s", why);
    return weft__reply_error(req, 507, "storageFailed", "%s", why);
}

struct add {
    const char *name, *scopes;
    int64_t expiresIn;
};
static const weft_param add_params[] = {
    WEFT_MUST(struct add, name, str, "1 to 64 letters, digits, dots, dashes and underscores"),
    WEFT_MAY(struct add, scopes, str, "what it allows: " WEFT_TOKEN_SCOPE_NAMES "; \"read work\" when absent"),
    WEFT_MAY(struct add, expiresIn, int, "seconds; never when absent or 0"),
    WEFT_END(struct add),
};

static int judge_add(weft_req *req, const struct add *in, weft_token_row *ret) {
    if (!weft__token_is_name(in->name))
        return weft__reply_invalid(req, "/name",
                                   "name must be 1 to 64 letters, digits, dots, dashes and underscores, and not \"token\"");
    if (weft__token_scopes(in->scopes ? in->scopes : "read work", ret->scopes) < 0)
        return weft__reply_invalid(req, "/scopes", "scopes must be some of " WEFT_TOKEN_SCOPE_NAMES);
    if (in->expiresIn < 0 || in->expiresIn > MAX_LIFE_S)
        return weft__reply_invalid(req, "/expiresIn", "expiresIn must be 0 or a number of seconds, at most a hundred years");
    snprintf(ret->name, sizeof ret->name, "%s", in->name);
    ret->expires_at = in->expiresIn ? (int64_t) time(NULL) + in->expiresIn : 0;
    return 1;
}

static int add_token(weft_req *req, const weft_json *params, void *ctx) {
    weft_serve_tokens *self = ctx;
    const struct add *in = weft_req_params(req);
    weft_token_row row = {0};
    char secret[WEFT_TOKEN_SECRET], why[WEFT_TRUST_WHY] = "", created[WEFT_STAMP], expires[WEFT_STAMP];
    (void) params;
    int r = judge_add(req, in, &row);
    if (r <= 0)
        return r;
    r = weft__tokens_add(self->layout, &row, secret, why);
    if (r >= 0)
        r = weft__serve_tokens_apply(self, why);
    if (r < 0)
        return refuse_change(req, r, why);
    r = weft_reply(req, WEFT_OBJ({"name", weft_str(row.name)}, {"scopes", weft_str(row.scopes)},
                                 {"createdAt", seconds_stamp(row.created_at, created)},
                                 {"expiresAt", seconds_stamp(row.expires_at, expires)}, {"token", weft_str(secret)}));
    OPENSSL_cleanse(secret, sizeof secret);
    return r;
}

static int write_listed(weft_buf *out, const weft_serve_tokens *self, const weft_token_row *row, const char *caller) {
    char created[WEFT_STAMP], expires[WEFT_STAMP], seen[WEFT_STAMP];
    weft_val value = WEFT_OBJ({"name", weft_str(row->name)}, {"scopes", weft_str(row->scopes)},
                              {"createdAt", seconds_stamp(row->created_at, created)},
                              {"expiresAt", seconds_stamp(row->expires_at, expires)},
                              {"lastSeenAt", seconds_stamp(weft__server_token_seen(self->server, row->name), seen)},
                              {"device", row->device ? weft_bool(true) : weft_none()},
                              {"current", strcmp(row->name, caller) == 0 ? weft_bool(true) : weft_none()});
    return weft__write_val(out, NULL, &value);
}

static int list_tokens(weft_req *req, const weft_json *params, void *ctx) {
    const weft_serve_tokens *self = ctx;
    const char *caller = weft_req_identity(req)->name;
    weft_buf out = {0};
    (void) params;
    int r = weft__buf_put(&out, NULL, "[", 1);
    for (size_t i = 0; r >= 0 && i < self->list.count; i++) {
        r = i ? weft__buf_put(&out, NULL, ",", 1) : 0;
        if (r >= 0)
            r = write_listed(&out, self, &self->list.rows[i], caller);
    }
    if (r >= 0)
        r = weft__buf_put(&out, NULL, "]", 1);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"tokens", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, NULL);
    return r;
}

struct revoke {
    const char *name;
};
static const weft_param revoke_params[] = {
    WEFT_MUST(struct revoke, name, str, "the token's name"),
    WEFT_END(struct revoke),
};

static int revoke_token(weft_req *req, const weft_json *params, void *ctx) {
    weft_serve_tokens *self = ctx;
    const struct revoke *in = weft_req_params(req);
    char why[WEFT_TRUST_WHY] = "";
    (void) params;
    int r = weft__tokens_remove(self->layout, in->name, why);
    if (r == 0)
        return weft__reply_error(req, 404, "tokenNotFound", "there is no token %.64s", in->name);
    if (r > 0)
        r = weft__serve_tokens_apply(self, why);
    return r < 0 ? refuse_change(req, r, why) : weft_reply(req, WEFT_OBJ({"revoked", weft_str(in->name)}));
}

#define TOKEN_ROW                                                                                                           \
    "\"name\":{\"type\":\"string\"},\"scopes\":{\"type\":\"string\"},"                                                      \
    "\"createdAt\":{\"type\":\"string\"},\"expiresAt\":{\"type\":\"string\"}"

static const weft_error_row add_errors[] = {
    WEFT_ERROR_AGENT,   {409, "There is a token of this name already", "tokenExists"},
    WEFT_ERROR_PARAMS,  {409, "There are as many tokens as there can be", "tooManyTokens"},
    WEFT_ERROR_STORAGE, {0}};
static const weft_error_row list_errors[] = {WEFT_ERROR_AGENT, {0}};
static const weft_error_row revoke_errors[] = {
    WEFT_ERROR_AGENT, {404, "There is no token of this name", "tokenNotFound"}, WEFT_ERROR_STORAGE, {0}};

const weft_method weft__token_rows[] = {
    {.name = "token.add",
     .handler = add_token,
     .params = add_params,
     .help = "make a token with a name; its secret is in the answer and kept nowhere",
     .scope = WEFT_ADMIN,
     .result = "{\"type\":\"object\",\"properties\":{" TOKEN_ROW ",\"token\":{\"type\":\"string\"}}}",
     .errors = add_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "token.list",
     .handler = list_tokens,
     .params = weft__no_params,
     .help = "the tokens that have a name",
     .scope = WEFT_ADMIN,
     .result = "{\"type\":\"object\",\"properties\":{\"tokens\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
               "\"properties\":{" TOKEN_ROW ",\"lastSeenAt\":{\"type\":\"string\"},\"device\":{\"type\":\"boolean\"},"
               "\"current\":{\"type\":\"boolean\"}}}}}}",
     .errors = list_errors,
     .flags = WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {.name = "token.revoke",
     .handler = revoke_token,
     .params = revoke_params,
     .help = "take a token back; its connections are closed",
     .scope = WEFT_ADMIN,
     .result = "{\"type\":\"object\",\"properties\":{\"revoked\":{\"type\":\"string\"}}}",
     .errors = revoke_errors,
     .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT | WEFT_FOR_PEOPLE},
    {0},
};

int weft__serve_tokens_offer(weft_serve_tokens *self, weft_server *server) {
    static_assert(sizeof weft__token_rows - sizeof weft__token_rows[0] == sizeof self->methods, "a place for each");
    int r = 0;
    self->server = server;
    memcpy(self->methods, weft__token_rows, sizeof self->methods);
    for (size_t i = 0; r >= 0 && weft__token_rows[i].name; i++) {
        self->methods[i].ctx = self;
        r = weft_service_add(weft_server_service(server), &self->methods[i]);
    }
    return r;
}

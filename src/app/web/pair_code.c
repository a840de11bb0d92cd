/* The code of a pairing, and the page on which a device shows it. Looking at the page uses nothing up and tells nothing; the
 * button does. A device that is no browser posts JSON, and gets its token instead of a cookie. */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "failure.h"
#include "http_request.h"
#include "login.h"
#include "pair_private.h"
#include "reply.h"
#include "write.h"

/* Devices of one name get numbers behind it. */
#define SAME_NAME 99

/* ---- the code ---- */

int weft__pair_code(weft_serve_pair *self, char ret[WEFT_PAIR_CODE]) {
    unsigned char bytes[WEFT_PAIR_CODE / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    OPENSSL_cleanse(bytes, sizeof bytes);
    SHA256((const unsigned char *) ret, WEFT_PAIR_CODE - 1, self->digest);
    self->waiting = true;
    *self->device = '\0';
    self->until_s = (int64_t) time(NULL) + WEFT_PAIR_MS / 1000;
    weft__timer_set(self->opts.loop, &self->timer, weft__loop_fresh_now(self->opts.loop) + WEFT_PAIR_MS);
    return 0;
}

void weft__pair_forget_code(weft_serve_pair *self) {
    self->waiting = false;
    OPENSSL_cleanse(self->digest, sizeof self->digest);
    weft__timer_stop(self->opts.loop, &self->timer);
}

/* Right, and used up. */
static bool take_pair_code(weft_serve_pair *self, const char *code) {
    unsigned char digest[32];
    SHA256((const unsigned char *) code, strlen(code), digest);
    if (!self->waiting || CRYPTO_memcmp(digest, self->digest, sizeof digest) != 0)
        return false;
    weft__pair_forget_code(self);
    return true;
}

/* ---- the device's token ---- */

static int add_device(weft_serve_pair *self, const char *name, weft_token_row *row, char secret[WEFT_TOKEN_SECRET],
                      char *why) {
    int r = -EEXIST;
    for (int i = 1; i <= SAME_NAME && r == -EEXIST; i++) {
        *row = self->wanted;
        row->device = true;
        row->expires_at = self->wanted.expires_at ? (int64_t) time(NULL) + self->wanted.expires_at : 0;
        snprintf(row->name, sizeof row->name, i > 1 ? "%.60s-%d" : "%.60s", name, i);
        r = weft__tokens_add(self->opts.tokens->layout, row, secret, why);
    }
    return r < 0 ? r : weft__serve_tokens_apply(self->opts.tokens, why);
}

static int make_device(weft_serve_pair *self, const weft_http *http, const char *asked, weft_token_row *row,
                       char secret[WEFT_TOKEN_SECRET]) {
    char why[WEFT_TRUST_WHY] = "";
    const char *name = *self->wanted.name ? self->wanted.name : weft__token_is_name(asked) ? asked : "phone";
    int r = add_device(self, name, row, secret, why);
    if (r < 0) {
        weft__warn(self->opts.app, "weft serve: pairing: %s", why);
        return r;
    }
    self->paired++;
    snprintf(self->device, sizeof self->device, "%s", row->name);
    snprintf(self->device_address, sizeof self->device_address, "%s", weft_http_identity(http)->address);
    self->device_at = row->created_at;
    weft__pair_remember(self, false);
    weft__warn(self->opts.app, "weft serve: paired %s, at %s, for %s; \"weft token revoke %s\" takes it back", row->name,
               self->device_address, row->scopes, row->name);
    return 0;
}

/* ---- the page ---- */

static bool is_pair_code(const char *text) {
    return strlen(text) == WEFT_PAIR_CODE - 1 && strspn(text, "0123456789abcdef") == WEFT_PAIR_CODE - 1;
}

/* Only who came in at the door for devices, and while somebody waits for one. */
static bool is_pairing_here(const weft_serve_pair *self, const weft_http *http) {
    const char *endpoint = weft_http_identity(http)->endpoint;
    return self->open && self->waiting && strncmp(endpoint, self->base, strlen(self->base)) == 0;
}

static void answer_pair_json(weft_http *http, int status, weft_val value) {
    weft_buf text = {0};
    static const weft_header headers[] = {{"X-Content-Type-Options", "nosniff"}, {0}};
    int r = weft__write_val(&text, NULL, &value);
    weft_http_answer_with(http, &(weft_http_answer_opts){.status = r < 0 ? 503 : status,
                                                         .type = "application/json",
                                                         .headers = headers,
                                                         .cache = "no-store",
                                                         .body = {weft__buf_head(&text), weft__buf_len(&text)}});
    OPENSSL_cleanse(weft__buf_head(&text), weft__buf_len(&text));
    weft__buf_done(&text, NULL);
}

static void refuse_device(weft_http *http, bool json, int status, const char *reason, const char *words) {
    char content[300];
    if (json) {
        answer_pair_json(http, status,
                         WEFT_OBJ({"status", weft_int(status)}, {"reason", weft_str(reason)}, {"message", weft_str(words)}));
        return;
    }
    snprintf(content, sizeof content, "<p>%s.</p>\n", words);
    weft__login_page(http, status, content, NULL);
}

#define NO_PAIRING "No pairing is under way. On the computer, <code>weft pair</code> begins one"

/* The code is not looked at: whoever scans links in advance learns nothing, and spoils nothing. */
static void show_pair(weft_http *http, void *ctx) {
    const weft_serve_pair *self = ctx;
    char code[64], content[900], host[65] = "";
    const char *query = weft_http_query(http);
    size_t len = weft__form_value((weft_bytes){query, strlen(query)}, "code", code, sizeof code);
    if (!is_pairing_here(self, http) || !len || !is_pair_code(code)) {
        refuse_device(http, false, 410, "noPairing", NO_PAIRING);
        return;
    }
    gethostname(host, sizeof host - 1);
    if (strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") != strlen(host))
        *host = '\0';
    snprintf(content, sizeof content,
             "<p>This device will be able to use the hub on %s, with a token of its own, until that is taken back.</p>\n"
             "<form method=\"post\" action=\"/pair\">\n<input type=\"hidden\" name=\"code\" value=\"%s\">\n"
             "<label>Name <input name=\"name\" value=\"phone\" maxlength=\"60\" required></label>\n"
             "<button>Pair this device</button>\n</form>\n",
             *host ? host : "your computer", code);
    weft__login_page(http, 200, content, NULL);
}

/* ---- showing the code ---- */

struct shown {
    char code[64], name[128];
    bool json;
};

static void read_shown(const weft_http *http, struct shown *ret) {
    const char *type = weft_http_header(http, "content-type");
    weft_bytes body = weft_http_body(http);
    weft_doc *doc;
    *ret = (struct shown){.json = type && strncasecmp(type, "application/json", 16) == 0};
    if (!ret->json) {
        weft__form_value(body, "code", ret->code, sizeof ret->code);
        weft__form_value(body, "name", ret->name, sizeof ret->name);
        return;
    }
    if (weft_doc_parse(body.data, body.len, NULL, &doc) < 0)
        return;
    snprintf(ret->code, sizeof ret->code, "%s", weft_get_str(weft_doc_root(doc), "code", ""));
    snprintf(ret->name, sizeof ret->name, "%s", weft_get_str(weft_doc_root(doc), "name", ""));
    weft_doc_free(doc);
}

static void welcome_device(weft_serve_pair *self, weft_http *http, bool json, const weft_token_row *row,
                           const char *secret) {
    char expires[WEFT_STAMP];
    if (json) {
        answer_pair_json(
            http, 200,
            WEFT_OBJ({"name", weft_str(row->name)}, {"scopes", weft_str(row->scopes)},
                     {"expiresAt", row->expires_at ? weft__stamp_val(row->expires_at * 1000, expires) : weft_none()},
                     {"token", weft_str(secret)}));
        return;
    }
    const weft_auth *auth = weft__auths_with_digest(&http->conn->endpoint->tokens, row->digest, (int64_t) time(NULL));
    if (auth)
        weft__login_answer(http, auth, self->wanted.expires_at ? self->wanted.expires_at : WEFT_SESSION_MOST_S);
    else
        refuse_device(http, false, 503, "notNow", "The token could not be stored. Try again");
}

static void take_pair(weft_http *http, void *ctx) {
    weft_serve_pair *self = ctx;
    weft_token_row row;
    char secret[WEFT_TOKEN_SECRET];
    struct shown shown;
    read_shown(http, &shown);
    if (!is_pairing_here(self, http)) {
        refuse_device(http, shown.json, weft__login_wrong(http) == 429 ? 429 : 410, "noPairing", NO_PAIRING);
        return;
    }
    if (!is_pair_code(shown.code) || !take_pair_code(self, shown.code)) {
        int status = weft__login_wrong(http);
        refuse_device(http, shown.json, status, status == 429 ? "tooManyWrongCodes" : "wrongCode",
                      status == 429 ? "There were too many wrong codes. Wait some seconds" : "This code is not right");
        return;
    }
    if (make_device(self, http, shown.name, &row, secret) < 0)
        refuse_device(http, shown.json, 507, "storageFailed", "The token could not be stored. The computer says why");
    else
        welcome_device(self, http, shown.json, &row, secret);
    OPENSSL_cleanse(secret, sizeof secret);
}

int weft__pair_routes(weft_serve_pair *self) {
    weft_server *server = self->opts.server;
    int r = weft_server_route(server, "GET", "/pair", show_pair, self);
    if (r >= 0)
        r = weft_server_route(server, "POST", "/pair", take_pair, self);
    return r < 0 ? r : weft_server_public(server, "/pair");
}

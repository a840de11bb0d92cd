/* The gate that checks signatures. In this order: the form, the key, the signature, the time, whether it was used before.
 * So nobody without a key learns anything but that, and only signatures that are right take up memory.
 *
 * Time: a window by the wall clock, because that is what both sides share. When it is set back, what was stamped before that
 * could come into the window a second time; so everything that anybody may have stamped until then is refused, as after a
 * start (a floor). When it is set forward, what was stamped before is simply too old. */
#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "error_row.h"
#include "hmac.h"
#include "seen.h"

#define WINDOW_MS 30000
#define MAX_SEEN 65536
#define LEAST_SEEN 16
/* More than anybody configures; they are looked through one by one. */
#define MAX_KEYS 256
/* How much the wall clock may lag behind the steady one between two looks: clocks are slewed, not only set. */
#define SLEW_MS 1000
/* Digits of a timestamp: until the year 33658. */
#define MAX_STAMP_DIGITS 12

typedef struct signing_key {
    char *id, *name, *scopes;
    bool unnamed;
    unsigned char mark[WEFT_MAC]; /* of a fixed text: the same for the same secret */
    weft_hmac *hmac;
    weft_seen seen;
} signing_key;

struct weft_signatures {
    weft_signatures_opts opts; /* of its pointers only functions and ctx are used */
    weft_alloc alloc_copy;
    const weft_alloc *alloc;
    weft_gate gate;
    signing_key *keys;
    size_t count;
    int64_t floor_ms;               /* what was stamped until then is refused: the start, or a clock that was set back */
    int64_t wall_seen, steady_seen; /* at the last look */
    weft_signature_stats stats;
};

/* What the auth member says. */
typedef struct auth_member {
    weft_bytes timestamp, nonce, key_id;
    int64_t stamp; /* seconds */
    unsigned char mac[WEFT_MAC];
} auth_member;

/* ---- time ---- */

static int64_t system_wall_ms(void *ctx) {
    struct timespec now;
    (void) ctx;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Counts while the machine sleeps, as the wall clock does. */
static int64_t system_steady_ms(void *ctx) {
    struct timespec now;
    (void) ctx;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t look_at_clock(weft_signatures *self) {
    int64_t wall = self->opts.wall_ms(self->opts.ctx), steady = self->opts.steady_ms(self->opts.ctx);
    int64_t expected = self->wall_seen + (steady - self->steady_seen);
    if (wall < expected - SLEW_MS && expected + self->opts.window_ms > self->floor_ms)
        self->floor_ms = expected + self->opts.window_ms;
    self->wall_seen = wall;
    self->steady_seen = steady;
    return wall;
}

/* ---- refusing ---- */

static int failure_code(const weft_method *row) {
    return weft__row_code(row, "authenticationFailed", -32003);
}

static int refuse_signature(weft_signatures *self, const weft_gate_request *request, const char *reason, const char *message,
                            weft_member more) {
    self->stats.refused++;
    self->stats.dropped_notifications += weft_req_is_notification(request->req);
    if (more.name)
        weft_fail(request->req, failure_code(request->method), message, WEFT_OBJ({"reason", weft_str(reason)}, more));
    else
        weft_refuse(request->req, failure_code(request->method), message, reason);
    return -EACCES;
}
#define REFUSE(self, request, reason, message) refuse_signature(self, request, reason, message, (weft_member){0})

/* ---- the form ---- */

/* Plain digits: what is signed is their text, and one number should have one text. */
static bool read_timestamp(const weft_json *value, auth_member *ret) {
    if (!value->text || value->len > MAX_STAMP_DIGITS || *value->text == '0')
        return false;
    ret->stamp = 0;
    for (size_t i = 0; i < value->len; i++) {
        if (value->text[i] < '0' || value->text[i] > '9')
            return false;
        ret->stamp = ret->stamp * 10 + (value->text[i] - '0');
    }
    ret->timestamp = (weft_bytes){value->text, value->len};
    return true;
}

/* The text between the quotes, which stands for itself. */
static bool read_word(const weft_json *value, size_t max, weft_bytes *ret) {
    *ret = (weft_bytes){"", 0};
    if (!value->text || weft_typeof(value) == WEFT_NULL)
        return true;
    if (weft_typeof(value) != WEFT_STRING || !weft__is_sign_word(value->text + 1, value->len - 2, max))
        return false;
    *ret = (weft_bytes){value->text + 1, value->len - 2};
    return true;
}

/* base64 may be written with "\/". */
static bool read_signature(const weft_json *value, auth_member *ret) {
    weft_bytes text;
    return weft_typeof(value) == WEFT_STRING && weft_bytes_of(value, &text) >= 0 &&
           weft__mac_decode(text.data, text.len, ret->mac);
}

static bool read_auth(const weft_json *auth, auth_member *ret) {
    if (weft_typeof(auth) != WEFT_OBJECT)
        return false;
    weft_json timestamp = weft_get(auth, "timestamp"), nonce = weft_get(auth, "nonce"), key_id = weft_get(auth, "key_id"),
              signature = weft_get(auth, "signature");
    return read_timestamp(&timestamp, ret) && read_word(&nonce, WEFT_NONCE_MAX, &ret->nonce) &&
           read_word(&key_id, WEFT_KEY_ID_MAX, &ret->key_id) && read_signature(&signature, ret);
}

/* ---- checking ---- */

static signing_key *find_signing_key(weft_signatures *self, weft_bytes id) {
    for (size_t i = 0; i < self->count; i++)
        if ((strlen(self->keys[i].id) == id.len && memcmp(self->keys[i].id, id.data, id.len) == 0) ||
            (!id.len && self->keys[i].unnamed))
            return &self->keys[i];
    return NULL;
}

static int compare_mac(signing_key *key, const weft_gate_request *request, const auth_member *auth) {
    unsigned char right[WEFT_MAC];
    weft_signed_parts parts = {
        auth->timestamp, auth->nonce, request->name, request->id, {request->params.text, request->params.len}};
    int r = weft__hmac_parts(key->hmac, &parts, right);
    return r < 0 ? r : CRYPTO_memcmp(right, auth->mac, sizeof right) == 0 ? 0 : -EACCES;
}

static int refuse_too_old(weft_signatures *self, const weft_gate_request *request, int64_t floor_ms, int64_t now) {
    int64_t wait = floor_ms - now + 1;
    return refuse_signature(self, request, "signatureTooOld",
                            "The signature may have been used before the server started, forgot, or set its clock",
                            (weft_member){"retryAfterMs", weft_int(wait > 0 ? wait : 0)});
}

/* A stamp is a whole second: what was stamped in the second of the floor may be from before it. */
static int check_time_and_use(weft_signatures *self, const weft_gate_request *request, signing_key *key,
                              const auth_member *auth) {
    int64_t now = look_at_clock(self), window_s = self->opts.window_ms / 1000, now_s = now / 1000;
    if (auth->stamp < now_s - window_s || auth->stamp > now_s + window_s)
        return refuse_signature(self, request, "signatureExpired",
                                "The signature's timestamp is too far from the server's time",
                                (weft_member){"serverTime", weft_int(now_s)});
    if (auth->stamp <= self->floor_ms / 1000)
        return refuse_too_old(self, request, (self->floor_ms / 1000 + 1) * 1000, now);
    int r = weft__seen_add(&key->seen, self->alloc, auth->stamp, auth->mac, now_s - window_s);
    if (r == 0)
        return REFUSE(self, request, "signatureReplayed", "The signature has been used already");
    if (r == -ESTALE)
        return refuse_too_old(self, request, (key->seen.floor + 1) * 1000, now);
    return r < 0 ? r : 0;
}

/* Where the connection may do everything, the key says what the request may do. Where it may do less, both must allow it:
 * who is kept from something, an agent for instance, does not get around it with a key. */
static int become_signer(weft_signatures *self, const weft_gate_request *request, const signing_key *key) {
    weft_identity who = *request->identity;
    bool limited = who.authenticated && strcmp(who.scopes, "*") != 0;
    weft_identity signer = {.scopes = key->scopes, .authenticated = true};
    if (limited && request->method && !weft_has_scope(&signer, request->method->scope)) {
        self->stats.refused++;
        return -EACCES;
    }
    who.name = key->name;
    who.scopes = limited ? who.scopes : key->scopes;
    who.authenticated = true;
    return weft_req_set_identity(request->req, &who);
}

static int check_signature(weft_signatures *self, const weft_gate_request *request, const weft_json *member) {
    auth_member auth;
    if (!read_auth(member, &auth))
        return REFUSE(self, request, "signatureMalformed",
                      "auth needs a timestamp in whole seconds and a signature: 32 bytes in base64");
    signing_key *key = find_signing_key(self, auth.key_id);
    if (!key)
        return REFUSE(self, request, "keyUnknown", "There is no key with this key_id");
    int r = compare_mac(key, request, &auth);
    if (r == -EACCES)
        return REFUSE(self, request, "signatureWrong", "The signature does not fit the message");
    if (r >= 0)
        r = check_time_and_use(self, request, key, &auth);
    if (r >= 0)
        r = become_signer(self, request, key);
    self->stats.accepted += r >= 0;
    return r;
}

static int ask_signature(void *ctx, const weft_gate_request *request) {
    weft_signatures *self = ctx;
    weft_json auth = weft_get(&request->message, "auth");
    if (auth.text)
        return check_signature(self, request, &auth);
    if (self->opts.required && self->opts.required(self->opts.ctx, request))
        return REFUSE(self, request, "signatureMissing", "This method must be called with a signature");
    return 0;
}

/* ---- life ---- */

/* A signature does not say for which key it is: the same secret under two ids would let it count for each. */
static int mark_secret(const weft_signatures *self, signing_key *key) {
    int r = weft__hmac_parts(key->hmac, &(weft_signed_parts){.method = {"mark", 4}}, key->mark);
    for (const signing_key *other = self->keys; r >= 0 && other < key; other++)
        if (CRYPTO_memcmp(other->mark, key->mark, sizeof key->mark) == 0)
            r = -EEXIST;
    return r;
}

static int copy_signing_key(weft_signatures *self, const weft_sign_key *from) {
    const char *id = from->id ? from->id : "", *name = from->name ? from->name : id;
    const char *scopes = from->scopes ? from->scopes : "*";
    if (self->count == MAX_KEYS || !weft__is_sign_word(id, strlen(id), WEFT_KEY_ID_MAX))
        return -EINVAL;
    if (find_signing_key(self, (weft_bytes){id, strlen(id)}) ||
        (from->unnamed && find_signing_key(self, (weft_bytes){"", 0})))
        return -EEXIST;
    signing_key *key = &self->keys[self->count++];
    key->id = weft__strndup(self->alloc, id, strlen(id));
    key->name = weft__strndup(self->alloc, name, strlen(name));
    key->scopes = weft__strndup(self->alloc, scopes, strlen(scopes));
    key->unnamed = from->unnamed;
    key->seen.max = self->opts.max_seen;
    if (!key->id || !key->name || !key->scopes)
        return -ENOMEM;
    int r = weft__hmac_new(from->secret, from->len, &key->hmac);
    return r < 0 ? r : mark_secret(self, key);
}

static int copy_signing_keys(weft_signatures *self, const weft_sign_key *keys) {
    size_t count = 0;
    int r = 0;
    while (keys && keys[count].secret)
        count++;
    self->keys = weft__zalloc(self->alloc, (count + 1) * sizeof *self->keys);
    if (!self->keys)
        return -ENOMEM;
    for (size_t i = 0; i < count && r >= 0; i++)
        r = copy_signing_key(self, &keys[i]);
    return r;
}

static void take_signature_opts(weft_signatures *self, const weft_signatures_opts *opts) {
    self->opts = *opts;
    if (!opts->window_ms)
        self->opts.window_ms = WINDOW_MS;
    if (!opts->max_seen)
        self->opts.max_seen = MAX_SEEN;
    if (self->opts.max_seen < LEAST_SEEN)
        self->opts.max_seen = LEAST_SEEN;
    if (!opts->wall_ms)
        self->opts.wall_ms = system_wall_ms;
    if (!opts->steady_ms)
        self->opts.steady_ms = system_steady_ms;
    self->wall_seen = self->floor_ms = self->opts.wall_ms(opts->ctx);
    self->steady_seen = self->opts.steady_ms(opts->ctx);
}

int weft_signatures_new(const weft_signatures_opts *opts, weft_signatures **ret) {
    static const weft_signatures_opts none;
    opts = opts ? opts : &none;
    weft_signatures *self = weft__zalloc(opts->alloc, sizeof *self);
    if (!self)
        return -ENOMEM;
    if (opts->alloc) {
        self->alloc_copy = *opts->alloc;
        self->alloc = &self->alloc_copy;
    }
    take_signature_opts(self, opts);
    self->gate = (weft_gate){.name = "signature", .before = ask_signature, .ctx = self};
    int r = copy_signing_keys(self, opts->keys);
    if (r < 0) {
        weft_signatures_free(self);
        return r;
    }
    *ret = self;
    return 0;
}

weft_signatures *weft_signatures_free(weft_signatures *self) {
    if (!self)
        return NULL;
    weft_alloc alloc = self->alloc_copy;
    const weft_alloc *with = self->alloc ? &alloc : NULL;
    for (size_t i = 0; i < self->count; i++) {
        signing_key *key = &self->keys[i];
        weft__hmac_free(key->hmac);
        weft__seen_done(&key->seen, with);
        weft__free(with, key->id);
        weft__free(with, key->name);
        weft__free(with, key->scopes);
    }
    weft__free(with, self->keys);
    return weft__free(with, self);
}

void weft_signatures_freep(weft_signatures **signatures) {
    *signatures = weft_signatures_free(*signatures);
}

const weft_gate *weft_signatures_gate(weft_signatures *self) {
    return &self->gate;
}

weft_signature_stats weft_signatures_stats(const weft_signatures *self) {
    return self->stats;
}

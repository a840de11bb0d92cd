/* Signed requests: what is accepted, what is not, and that nothing counts twice. Time is two numbers. The vectors at the end
 * were made with another program. */
#include "peer_kit.h"

#include <time.h>

#include "hmac.h"
#include "seen.h"

#define START_MS ((int64_t) 1700000000500)
#define NOW_S 1700000100 /* what most tests stamp: a hundred seconds after the start */

static const char secret[] = "0123456789abcdef0123456789abcdef";
static const weft_sign_key ci = {"ci", secret, sizeof secret - 1, "builds", "read work"};

typedef struct world {
    test_memory memory;
    weft_signatures *signatures;
    weft_service *service;
    weft_peer *peer;
    int64_t wall, steady;
    int ran;
    char who[128]; /* as the last handler saw it */
    const char *required;
    const weft_gate *gates[2];
} world;

static int64_t wall_ms(void *ctx) {
    return ((world *) ctx)->wall;
}

static int64_t steady_ms(void *ctx) {
    return ((world *) ctx)->steady;
}

static bool is_required(void *ctx, const weft_gate_request *request) {
    const world *w = ctx;
    return w->required && request->name.len == strlen(w->required) &&
           memcmp(request->name.data, w->required, request->name.len) == 0;
}

static int answer_echo(weft_req *req, const weft_json *params, void *ctx) {
    world *w = ctx;
    const weft_identity *who = weft_req_identity(req);
    w->ran++;
    snprintf(w->who, sizeof w->who, "%s/%s", who->name, who->scopes);
    return weft_reply(req, weft_copy(params));
}

static weft_req *kept;
static int answer_later(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    kept = req;
    return 0;
}

static const weft_error_row own_code[] = {{-32099, "Not authentic", "authenticationFailed"}, {0}};
static const weft_method methods[] = {
    {"echo", answer_echo},
    {"admin", answer_echo, .scope = "admin"},
    {"work", answer_echo, .scope = "work", .flags = WEFT_ROW_CHANGES},
    {"later", answer_later},
    {"own", answer_echo, .errors = own_code},
    {0},
};

static int open_peer(world *w, const char *scopes) {
    weft_identity who = {.transport = "unix", .name = "ann", .scopes = scopes, .authenticated = true};
    weft_peer_free(w->peer);
    w->peer = NULL;
    return weft_peer_new(w->service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &w->peer);
}

static int open_world_with(world *w, const weft_sign_key *keys, size_t max_seen, long fail_at) {
    *w = (world){.wall = START_MS, .steady = 5000};
    test_memory_init(&w->memory, fail_at);
    weft_signatures_opts opts = {.keys = keys,
                                 .alloc = &w->memory.alloc,
                                 .max_seen = max_seen,
                                 .required = is_required,
                                 .wall_ms = wall_ms,
                                 .steady_ms = steady_ms,
                                 .ctx = w};
    int r = weft_signatures_new(&opts, &w->signatures);
    if (r < 0)
        return r;
    w->gates[0] = weft_signatures_gate(w->signatures);
    r = weft_service_new(&(weft_service_opts){.methods = methods, .gates = w->gates, .ctx = w, .alloc = &w->memory.alloc},
                         &w->service);
    if (r >= 0)
        r = open_peer(w, "*");
    w->wall += (int64_t) NOW_S * 1000 + 200 - START_MS;
    w->steady += (int64_t) NOW_S * 1000 + 200 - START_MS;
    return r;
}

static int open_world(world *w) {
    const weft_sign_key keys[] = {ci, {"", "the key of who names none", 25, "plain", NULL}, {0}};
    return open_world_with(w, keys, 0, 0);
}

static void close_world(world *w) {
    weft_peer_free(w->peer);
    weft_service_unref(w->service);
    weft_signatures_free(w->signatures);
    CHECK_INT(w->memory.live, 0);
}

static weft_bytes bytes(const char *text) {
    return (weft_bytes){text, strlen(text)};
}

/* A message with its signature; id and params may be "": absent. */
static void make_message(const weft_sign_key *key, int64_t stamp, const char *nonce, const char *method, const char *id,
                         const char *params, char *ret, size_t size) {
    char auth[WEFT_AUTH_MAX];
    if (weft_sign(key, stamp, nonce, bytes(method), bytes(id), bytes(params), auth, sizeof auth) < 0)
        snprintf(auth, sizeof auth, "{}");
    snprintf(ret, size, "{\"jsonrpc\":\"2.0\"%s%s,\"method\":\"%s\"%s%s,\"auth\":%s}", *id ? ",\"id\":" : "", id, method,
             *params ? ",\"params\":" : "", params, auth);
}

/* What is answered: "ok", the reason, or "" for nothing. Borrowed. */
static const char *ask(world *w, const char *message) {
    static char reason[64];
    weft_doc *doc = NULL;
    weft_peer_feed(w->peer, message, strlen(message), w->steady);
    weft_peer_feed(w->peer, "\n", 1, w->steady);
    size_t len;
    char *said = kit_take(w->peer, &len);
    if (!len)
        snprintf(reason, sizeof reason, "%s", "");
    else if (weft_doc_parse(said, len, NULL, &doc) < 0)
        snprintf(reason, sizeof reason, "not JSON");
    else {
        weft_json error = weft_get(weft_doc_root(doc), "error"), data = weft_get(&error, "data");
        bool right = weft_get_int(&error, "code", 0) == -32003;
        snprintf(reason, sizeof reason, "%s%s", error.text && !right ? "!" : "",
                 error.text ? weft_get_str(&data, "reason", "none") : "ok");
    }
    weft_doc_free(doc);
    free(said);
    return reason;
}

static const char *ask_signed(world *w, int64_t stamp, const char *nonce, const char *method, const char *id,
                              const char *params) {
    char message[4096];
    make_message(&ci, stamp, nonce, method, id, params, message, sizeof message);
    return ask(w, message);
}

/* CHECK_STR would ask several times. */
#define CHECK_SAID(asked, want)                                                                                             \
    do {                                                                                                                    \
        const char *said_ = asked;                                                                                          \
        CHECK_STR(said_, want);                                                                                             \
    } while (0)

/* ---- what is accepted ---- */

TEST(good_ones) {
    static const struct {
        const char *name, *nonce, *id, *params;
    } rows[] = {
        {"a number", "n1", "1", "{\"a\":1}"},
        {"no nonce, as in the document", NULL, "2", "{\"a\":1}"},
        {"a fraction as id", "n3", "1.0", "[1]"},
        {"a large id", "n4", "12345678901234567890", "[]"},
        {"a string as id", "n5", "\"task_001\"", "[]"},
        {"null as id", "n6", "null", "[]"},
        {"white space in params", "n7", "7", "{ \"a\" :\t[1 , 2 ] }"},
        {"unicode", "n8", "\"\xc3\xa9\"", "{\"t\":\"\xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80 \\u00e9\"}"},
        {"no params", "n9", "9", ""},
        {"escapes in params", "n10", "10", "{\"a\\n\":\"\\\"\\\\\"}"},
    };
    world w;
    REQUIRE(open_world(&w) >= 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        CHECK_SAID(ask_signed(&w, NOW_S, rows[i].nonce, "echo", rows[i].id, rows[i].params), "ok");
    }
    test_row(NULL);
    CHECK_INT(w.ran, 10);
    CHECK_STR(w.who, "builds/read work");
    CHECK_INT(weft_signatures_stats(w.signatures).accepted, 10);
    /* Who does not sign is who the connection is. */
    CHECK_SAID(ask(&w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[]}"), "ok");
    CHECK_STR(w.who, "ann/*");
    close_world(&w);
}

TEST(the_key_of_who_names_none) {
    const weft_sign_key plain = {NULL, "the key of who names none", 25, NULL, NULL};
    char message[1024];
    world w;
    REQUIRE(open_world(&w) >= 0);
    make_message(&plain, NOW_S, NULL, "echo", "1", "[]", message, sizeof message);
    CHECK(!strstr(message, "key_id"));
    CHECK_SAID(ask(&w, message), "ok");
    CHECK_STR(w.who, "plain/*");
    close_world(&w);
    /* One that has a name too is one key under both: a signature does not say for which it is. */
    const weft_sign_key keys[] = {{"ci", secret, sizeof secret - 1, "builds", "read", .unnamed = true}, {0}};
    const weft_sign_key unnamed = {"", secret, sizeof secret - 1, NULL, NULL};
    REQUIRE(open_world_with(&w, keys, 0, 0) >= 0);
    CHECK_SAID(ask_signed(&w, NOW_S, "n", "echo", "1", "[]"), "ok");
    make_message(&unnamed, NOW_S, "n", "echo", "1", "[]", message, sizeof message);
    CHECK_SAID(ask(&w, message), "signatureReplayed");
    make_message(&unnamed, NOW_S, "m", "echo", "1", "[]", message, sizeof message);
    CHECK_SAID(ask(&w, message), "ok");
    close_world(&w);
}

/* ---- tampering ---- */

/* Each byte of a message that is signed, changed: never the same request with another content. The signature's text is left
 * out here, and so are bytes with which the message is no signed request any more. */
TEST(each_byte_tampered) {
    char message[1024], changed[1024];
    world w;
    REQUIRE(open_world(&w) >= 0);
    make_message(&ci, NOW_S, "n1", "echo", "\"x1\"", "{\"a\":[1,true]}", message, sizeof message);
    const char *signature = strstr(message, "\"signature\":\"");
    size_t end = (size_t) (signature - message);
    for (size_t i = 0; i < end; i++) {
        memcpy(changed, message, sizeof changed);
        changed[i] ^= 1;
        bool auth = strstr(changed, ",\"auth\":{\"timestamp\":") && strstr(changed, ",\"key_id\":\"");
        int before = w.ran;
        const char *said = ask(&w, changed);
        if (!auth || strcmp(said, "!parseError") == 0 || strcmp(said, "!invalidRequest") == 0) {
            open_peer(&w, "*");
            w.ran = before;
            continue;
        }
        bool refused = strncmp(said, "signature", 9) == 0 || strcmp(said, "keyUnknown") == 0 || !*said;
        if (!CHECK(refused))
            printf("byte %zu: %s said %s\n", i, changed, said);
        CHECK_INT(w.ran, before);
    }
    /* Of the signature: any of its bits. */
    for (size_t i = 0; i < 42; i++) {
        memcpy(changed, message, sizeof changed);
        char *c = &changed[end + 13 + i];
        *c = *c == 'A' ? 'B' : 'A';
        CHECK_SAID(ask(&w, changed), "signatureWrong");
    }
    CHECK_SAID(ask(&w, message), "ok");
    close_world(&w);
}

/* What can be moved between two parts of what is signed. */
TEST(parts_keep_apart) {
    char message[1024], auth[WEFT_AUTH_MAX];
    world w;
    REQUIRE(open_world(&w) >= 0);
    REQUIRE(weft_sign(&ci, NOW_S, "a", bytes("echo"), bytes("1"), bytes("[]"), auth, sizeof auth) > 0);
    snprintf(message, sizeof message, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[ ],\"auth\":%s}", auth);
    CHECK_SAID(ask(&w, message), "signatureWrong");
    snprintf(message, sizeof message, "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"echo\",\"params\":[],\"auth\":%s}",
             auth);
    CHECK_SAID(ask(&w, message), "signatureWrong");
    snprintf(message, sizeof message, "{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":[],\"auth\":%s}", auth);
    CHECK_SAID(ask(&w, message), "");
    CHECK_INT(w.ran, 0);
    /* The last of duplicate members is the one that is called, and so the one that is checked. */
    snprintf(message, sizeof message,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[],\"auth\":%s,\"params\":[1]}", auth);
    CHECK_SAID(ask(&w, message), "signatureWrong");
    snprintf(message, sizeof message, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ech\\u006f\",\"params\":[],\"auth\":%s}",
             auth);
    CHECK_SAID(ask(&w, message), "signatureWrong");
    CHECK_SAID(ask_signed(&w, NOW_S, "b", "ech\\u006f", "1", "[]"), "ok"); /* raw bytes are what is signed */
    close_world(&w);
}

TEST(malformed_ones) {
    static const char *const auths[] = {
        "null",
        "1",
        "\"x\"",
        "[]",
        "{}",
        "{\"timestamp\":1700000100}",
        "{\"timestamp\":1700000100,\"signature\":1}",
        "{\"timestamp\":1700000100,\"signature\":\"\"}",
        "{\"timestamp\":\"1700000100\",\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}",
        "{\"timestamp\":1700000100.0,\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}",
        "{\"timestamp\":17e8,\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}",
        "{\"timestamp\":-1700000100,\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}",
        "{\"timestamp\":0,\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}",
        "{\"timestamp\":99999999999999999999,\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}",
        "{\"timestamp\":1700000100,\"nonce\":1,\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}",
        "{\"timestamp\":1700000100,\"nonce\":\"a\\nb\",\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}",
        "{\"timestamp\":1700000100,\"key_id\":[],\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"}",
        "{\"timestamp\":1700000100,\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==\"}",
        "{\"timestamp\":1700000100,\"signature\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA*=\"}",
    };
    char message[512];
    world w;
    REQUIRE(open_world(&w) >= 0);
    for (size_t i = 0; i < sizeof auths / sizeof auths[0]; i++) {
        test_row(auths[i]);
        snprintf(message, sizeof message, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"auth\":%s}", auths[i]);
        CHECK_SAID(ask(&w, message), "signatureMalformed");
    }
    test_row(NULL);
    const weft_sign_key other = {"other", secret, sizeof secret - 1, NULL, NULL};
    make_message(&other, NOW_S, NULL, "echo", "1", "[]", message, sizeof message);
    CHECK_SAID(ask(&w, message), "keyUnknown");
    CHECK_INT(w.ran, 0);
    close_world(&w);
}

/* ---- once ---- */

TEST(a_replay) {
    char message[1024];
    world w;
    REQUIRE(open_world(&w) >= 0);
    make_message(&ci, NOW_S, "n", "echo", "1", "[]", message, sizeof message);
    CHECK_SAID(ask(&w, message), "ok");
    CHECK_SAID(ask(&w, message), "signatureReplayed");
    open_peer(&w, "*"); /* another connection */
    CHECK_SAID(ask(&w, message), "signatureReplayed");
    CHECK_SAID(ask_signed(&w, NOW_S, "m", "echo", "1", "[]"), "ok");
    CHECK_INT(w.ran, 2);
    close_world(&w);
}

/* The same bytes written otherwise. */
TEST(a_replay_encoded_again) {
    static const char *const ways[] = {"url", "unpadded", "bits", "escapes"};
    world w;
    REQUIRE(open_world(&w) >= 0);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char message[1024], again[1100] = "", nonce[8];
        test_row(ways[i]);
        snprintf(nonce, sizeof nonce, "n%zu", i);
        make_message(&ci, NOW_S, nonce, "echo", "1", "[]", message, sizeof message);
        char *at = strstr(message, "\"signature\":\"") + 13;
        if (i == 3) /* \u00XX for the first character */
            snprintf(again, sizeof again, "%.*s\\u%04x%s", (int) (at - message), message, (unsigned) *at, at + 1);
        else
            snprintf(again, sizeof again, "%s", message);
        char *sig = strstr(again, "\"signature\":\"") + 13;
        if (i == 0)
            for (char *c = sig; *c != '"'; c++)
                *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
        if (i == 1)
            memmove(sig + 43, sig + 44, strlen(sig + 44) + 1);
        if (i == 2) /* the last digit stands for four bits and two that nobody reads */
            sig[42]++;
        CHECK_SAID(ask(&w, again), "ok");
        CHECK_SAID(ask(&w, message), "signatureReplayed");
        CHECK_SAID(ask(&w, again), "signatureReplayed");
    }
    test_row(NULL);
    close_world(&w);
}

TEST(a_skewed_clock) {
    world w;
    REQUIRE(open_world(&w) >= 0);
    CHECK_SAID(ask_signed(&w, NOW_S - 30, "a", "echo", "1", "[]"), "ok");
    CHECK_SAID(ask_signed(&w, NOW_S - 31, "b", "echo", "1", "[]"), "signatureExpired");
    CHECK_SAID(ask_signed(&w, NOW_S + 30, "c", "echo", "1", "[]"), "ok");
    CHECK_SAID(ask_signed(&w, NOW_S + 31, "d", "echo", "1", "[]"), "signatureExpired");
    CHECK_SAID(ask_signed(&w, 1, "e", "echo", "1", "[]"), "signatureExpired");
    CHECK_INT(w.ran, 2);
    close_world(&w);
}

TEST(after_a_restart) {
    char message[1024];
    world w;
    REQUIRE(open_world(&w) >= 0);
    make_message(&ci, NOW_S, "n", "echo", "1", "[]", message, sizeof message);
    CHECK_SAID(ask(&w, message), "ok");
    close_world(&w);
    /* Started 300 ms later, in the same second. */
    const weft_sign_key keys[] = {ci, {0}};
    REQUIRE(open_world_with(&w, keys, 0, 0) >= 0);
    weft_signatures *first = w.signatures;
    w.wall = (int64_t) NOW_S * 1000 + 500;
    weft_signatures_opts opts = {
        .keys = keys, .alloc = &w.memory.alloc, .wall_ms = wall_ms, .steady_ms = steady_ms, .ctx = &w};
    weft_service_unref(w.service);
    w.peer = weft_peer_free(w.peer);
    weft_signatures_free(first);
    REQUIRE(weft_signatures_new(&opts, &w.signatures) >= 0);
    w.gates[0] = weft_signatures_gate(w.signatures);
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods, .gates = w.gates, .ctx = &w, .alloc = &w.memory.alloc},
                             &w.service) >= 0);
    REQUIRE(open_peer(&w, "*") >= 0);
    CHECK_SAID(ask(&w, message), "signatureTooOld");
    CHECK_SAID(ask_signed(&w, NOW_S - 1, "m", "echo", "1", "[]"), "signatureTooOld");
    w.wall += 500;
    w.steady += 500;
    CHECK_SAID(ask_signed(&w, NOW_S + 1, "m", "echo", "1", "[]"), "ok");
    close_world(&w);
}

/* Set back by an hour: what was stamped before that, seen or not, is refused until the hour has passed again. */
TEST(a_clock_that_is_set_back) {
    char used[1024], withheld[1024];
    world w;
    REQUIRE(open_world(&w) >= 0);
    make_message(&ci, NOW_S, "u", "echo", "1", "[]", used, sizeof used);
    make_message(&ci, NOW_S + 20, "w", "echo", "1", "[]", withheld, sizeof withheld);
    CHECK_SAID(ask(&w, used), "ok");
    w.wall -= 3600 * 1000;
    w.steady += 1000;
    CHECK_SAID(ask_signed(&w, NOW_S - 3600, "a", "echo", "1", "[]"), "signatureTooOld");
    w.wall += 3600 * 1000; /* an hour later the clock shows the same time again */
    w.steady += 3600 * 1000;
    CHECK_SAID(ask(&w, used), "signatureTooOld");
    CHECK_SAID(ask(&w, withheld), "signatureTooOld");
    w.wall += 60 * 1000;
    w.steady += 60 * 1000;
    CHECK_SAID(ask_signed(&w, NOW_S + 60, "b", "echo", "1", "[]"), "ok");
    close_world(&w);
}

TEST(a_clock_that_is_set_forward) {
    world w;
    REQUIRE(open_world(&w) >= 0);
    w.wall += 3600 * 1000;
    CHECK_SAID(ask_signed(&w, NOW_S, "a", "echo", "1", "[]"), "signatureExpired");
    CHECK_SAID(ask_signed(&w, NOW_S + 3600, "b", "echo", "1", "[]"), "ok");
    /* A little slower than the other clock is no jump. */
    w.wall += 10000;
    w.steady += 10400;
    CHECK_SAID(ask_signed(&w, NOW_S + 3600, "c", "echo", "1", "[]"), "ok");
    close_world(&w);
}

/* ---- who ---- */

TEST(who_signs) {
    world w;
    REQUIRE(open_world(&w) >= 0);
    CHECK_SAID(ask_signed(&w, NOW_S, "a", "work", "1", "{}"), "ok");
    CHECK_SAID(ask_signed(&w, NOW_S, "b", "admin", "1", "{}"),
               "!forbidden"); /* the key may not, though the connection may */
    /* A connection that may do less gains nothing by a signature, and is still who it is. */
    open_peer(&w, "read admin agent");
    CHECK_SAID(ask_signed(&w, NOW_S, "c", "work", "1", "{}"), "!forbidden");
    CHECK_SAID(ask_signed(&w, NOW_S, "d", "admin", "1", "{}"), "!forbidden");
    CHECK_SAID(ask_signed(&w, NOW_S, "e", "echo", "1", "{}"), "ok");
    CHECK_STR(w.who, "builds/read admin agent");
    close_world(&w);
}

TEST(required_and_missing) {
    world w;
    REQUIRE(open_world(&w) >= 0);
    w.required = "echo";
    CHECK_SAID(ask(&w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}"), "signatureMissing");
    CHECK_SAID(ask(&w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"work\",\"params\":{}}"), "ok");
    CHECK_SAID(ask(&w, "{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}"), "");
    CHECK_INT(w.ran, 1);
    CHECK_INT(weft_signatures_stats(w.signatures).dropped_notifications, 1);
    CHECK_SAID(ask_signed(&w, NOW_S, "n", "echo", "", "[]"), "");
    CHECK_INT(w.ran, 2);
    w.required = "own";
    CHECK_SAID(ask(&w, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"own\"}"), "!signatureMissing"); /* its row's code */
    close_world(&w);
}

/* Each item of a batch is signed by itself. */
TEST(a_batch) {
    char one[512], two[512], batch[2048];
    world w;
    REQUIRE(open_world(&w) >= 0);
    w.required = "echo";
    make_message(&ci, NOW_S, "a", "echo", "1", "[1]", one, sizeof one);
    make_message(&ci, NOW_S, "b", "echo", "", "[2]", two, sizeof two);
    snprintf(batch, sizeof batch, "[%s,%s,%s,{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"echo\"}]\n", one, two, one);
    kit_say(w.peer, batch, 1);
    char *said = kit_take(w.peer, NULL);
    CHECK(strstr(said, "\"id\":1,\"result\":[1]"));
    CHECK(strstr(said, "\"id\":1,\"error\":{\"code\":-32003"));
    CHECK(strstr(said, "signatureReplayed"));
    CHECK(strstr(said, "\"id\":3,\"error\":{\"code\":-32003"));
    free(said);
    CHECK_INT(w.ran, 2);
    close_world(&w);
}

/* A request that is answered later still is who signed it, also when its connection has gone. */
TEST(answered_later) {
    world w;
    REQUIRE(open_world(&w) >= 0);
    CHECK_SAID(ask_signed(&w, NOW_S, "n", "later", "1", "[]"), "");
    CHECK_STR(weft_req_identity(kept)->name, "builds");
    w.peer = weft_peer_free(w.peer);
    CHECK_STR(weft_req_identity(kept)->name, "builds");
    weft_reply(kept, weft_null());
    close_world(&w);
}

/* ---- memory of what was used ---- */

static void number_id(uint64_t n, unsigned char ret[WEFT_SEEN_ID]) {
    uint64_t mixed = n * 0x9E3779B97F4A7C15u;
    memset(ret, 0, WEFT_SEEN_ID);
    memcpy(ret, &mixed, sizeof mixed);
    memcpy(ret + 8, &n, sizeof n);
}

/* As many as it likes, over an hour: what is remembered stays bounded, nothing counts twice. */
TEST(seen_stays_bounded) {
    weft_seen seen = {.max = 1000};
    unsigned char id[WEFT_SEEN_ID];
    size_t accepted = 0;
    uint64_t n = 0;
    for (int64_t second = 1000; second < 1600; second++)
        for (int i = 0; i < 90; i++, n++) {
            number_id(n, id);
            int r = weft__seen_add(&seen, NULL, second, id, second - 30);
            CHECK(r == 1);
            accepted += r == 1;
            CHECK_INT(weft__seen_add(&seen, NULL, second, id, second - 30), 0);
            if (n >= 50) { /* whatever was accepted before is used, or too old */
                number_id(n - 50, id);
                CHECK(weft__seen_add(&seen, NULL, second - (i < 50), id, second - 30) <= 0);
            }
        }
    CHECK(seen.count <= 1000 && seen.cap <= 4096);
    CHECK_INT(accepted, 600 * 90);
    CHECK_INT(weft__seen_add(&seen, NULL, seen.floor, id, 0), -ESTALE);
    weft__seen_done(&seen, NULL);
}

/* More in one second than can be remembered: the rest of that second is refused. */
TEST(seen_too_many_at_once) {
    weft_seen seen = {.max = 100};
    unsigned char id[WEFT_SEEN_ID];
    int accepted = 0;
    for (uint64_t n = 0; n < 1000; n++) {
        number_id(n, id);
        int r = weft__seen_add(&seen, NULL, 5000, id, 4970);
        CHECK(r == 1 || r == -ESTALE);
        accepted += r == 1;
    }
    CHECK_INT(accepted, 100);
    number_id(5000, id);
    CHECK_INT(weft__seen_add(&seen, NULL, 5001, id, 4970), 1);
    weft__seen_done(&seen, NULL);
}

TEST(forgotten_ones_are_refused) {
    char first[512], nonce[16];
    const weft_sign_key keys[] = {ci, {0}};
    world w;
    REQUIRE(open_world_with(&w, keys, 16, 0) >= 0);
    make_message(&ci, NOW_S - 5, "first", "echo", "1", "[]", first, sizeof first);
    CHECK_SAID(ask(&w, first), "ok");
    for (int i = 0; i < 40; i++) {
        snprintf(nonce, sizeof nonce, "n%d", i);
        CHECK_SAID(ask_signed(&w, NOW_S - 4 + i / 10, nonce, "echo", "1", "[]"), "ok");
    }
    CHECK_SAID(ask(&w, first), "signatureTooOld");
    close_world(&w);
}

TEST(without_memory) {
    const weft_sign_key keys[] = {ci, {0}};
    long at = 0;
    for (bool failed = true; failed;) {
        world w;
        at++;
        int r = open_world_with(&w, keys, 0, at);
        if (r >= 0) {
            const char *said = ask_signed(&w, NOW_S, "n", "echo", "1", "[]");
            bool fine = strcmp(said, "ok") == 0, told = said[0] == '!' || !*said;
            CHECK(fine || told);
            failed = !fine;
        } else
            CHECK_INT(r, -ENOMEM);
        close_world(&w);
    }
    CHECK(at > 5);
}

TEST(keys_that_cannot_be) {
    weft_signatures *made = NULL;
    static const weft_sign_key rows[][3] = {
        {{"a", "short", 5, NULL, NULL}},
        {{"a b", secret, 32, NULL, NULL}},
        {{"a\"", secret, 32, NULL, NULL}},
        {{"a", secret, 32, NULL, NULL}, {"a", "another secret of it", 20, NULL, NULL}},
        {{"a", secret, 32, NULL, NULL}, {"b", secret, 32, NULL, NULL}},
        {{"a", secret, 32, .unnamed = true}, {"b", "another secret of it", 20, .unnamed = true}},
        {{"a", secret, 32, .unnamed = true}, {"", "another secret of it", 20}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_INT(weft_signatures_new(&(weft_signatures_opts){.keys = rows[i]}, &made), i < 3 ? -EINVAL : -EEXIST);
    char auth[WEFT_AUTH_MAX];
    CHECK_INT(weft_sign(&ci, NOW_S, "a b", bytes("m"), bytes("1"), bytes(""), auth, sizeof auth), -EINVAL);
    CHECK_INT(weft_sign(&ci, NOW_S, NULL, bytes("m"), bytes("1"), bytes(""), auth, 20), -EMSGSIZE);
}

/* ---- both sides ---- */

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer;
    snprintf(ctx, 64, "%s", r < 0 ? weft_strerror(r) : answer->error ? answer->error->message : "ok");
}

/* A client on a loop signs all that it sends: calls, notifications, batches; over every framing. */
TEST(a_client_signs) {
    static const char *const urls[] = {"mem:signed", "unix:build/tests/signed.sock", "tcp://127.0.0.1:0",
                                       "http://127.0.0.1:0/rpc", "ws://127.0.0.1:0/ws"};
    const weft_sign_key keys[] = {ci, {0}};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        world w;
        char one[64] = "", two[64] = "", three[64] = "";
        weft_loop *loop = NULL;
        weft_server *server = NULL;
        weft_peer *client = NULL;
        weft_batch *batch = NULL;
        test_row(urls[i]);
        REQUIRE(open_world_with(&w, keys, 0, 0) >= 0);
        w.required = "echo";
        w.wall = (int64_t) time(NULL) * 1000; /* the client has no other clock */
        REQUIRE(weft_loop_new(NULL, &loop) >= 0);
        REQUIRE(weft_server_new(loop, &(weft_server_opts){.service = w.service}, &server) >= 0);
        REQUIRE(weft_server_listen(server, urls[i], NULL) >= 0);
        weft_connect_opts opts = {.sign_key = &ci};
        REQUIRE(weft_connect_on(loop, weft_server_url(server, 0), &opts, &client, NULL) >= 0);
        weft_call_opts first = {.on_answer = on_answer, .ctx = one}, second = {.on_answer = on_answer, .ctx = two},
                       third = {.on_answer = on_answer, .ctx = three};
        REQUIRE(weft_call_start(client, "echo", WEFT_OBJ({"text", weft_str("\xc3\xa9\n")}), &first, NULL) >= 0);
        REQUIRE(weft_call_start(client, "echo", weft_none(), &second, NULL) >= 0);
        REQUIRE(weft_batch_new(client, &batch) >= 0);
        REQUIRE(weft_batch_call(batch, "echo", weft_none(), &third, NULL) >= 0);
        REQUIRE(weft_batch_notify(batch, "echo", weft_none()) >= 0);
        REQUIRE(weft_batch_send(batch) >= 0);
        while (!*one || !*two || !*three)
            weft_loop_once(loop, true);
        CHECK_STR(&one[0], "ok");
        CHECK_STR(&two[0], "ok");
        CHECK_STR(&three[0], "ok");
        CHECK_INT(w.ran, 4);
        CHECK_STR(w.who, "builds/read work");
        weft_peer_free(client);
        weft_server_free(server);
        while (weft_loop_once(loop, false) > 0)
            continue;
        weft_loop_free(loop);
        close_world(&w);
    }
    test_row(NULL);
}

/* ---- made elsewhere ---- */

/* openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef -binary | base64 */
TEST(vectors) {
    static const struct {
        const char *name, *stamp, *nonce, *method, *id, *params, *signature;
    } rows[] = {
        {"a request", "1634567890", "", "execute_task", "1", "{\"task_id\":\"task_001\"}",
         "KCH2/W/9eDuALSqHD972INrP1GaOc0vsT6FDFuMPQO8="},
        {"with a nonce", "1700000100", "f3a1", "create_plan", "\"p1\"", "{ \"request\" : \"x\" }",
         "Fep47AMIYNyJoqkUV7uY+3yYogx/PciY0xq4k0ta3K0="},
        {"a notification without params", "1700000100", "n", "update_context", "", "",
         "QsV5Mq1RQ/IDZDq9h0GmFr2GOgffDgPN3oAwlPx4UVc="},
        {"unicode", "1700000100", "n", "echo", "1.0", "{\"t\":\"日本 é\"}", "B0bzGy/iifMKUmkFI1i72A2m8ExYoa2Wtv6NtpslU0I="},
    };
    weft_hmac *hmac = NULL;
    REQUIRE(weft__hmac_new(secret, sizeof secret - 1, &hmac) >= 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned char mac[WEFT_MAC];
        char text[WEFT_MAC_TEXT];
        weft_signed_parts parts = {bytes(rows[i].stamp), bytes(rows[i].nonce), bytes(rows[i].method), bytes(rows[i].id),
                                   bytes(rows[i].params)};
        test_row(rows[i].name);
        CHECK_INT(weft__hmac_parts(hmac, &parts, mac), 0);
        weft__mac_encode(mac, text);
        CHECK_STR(&text[0], rows[i].signature);
    }
    test_row(NULL);
    /* Where what is gathered is full. */
    static const struct {
        size_t method, params;
        const char *signature;
    } long_rows[] = {
        {4, 1000, "IwW1WtRiAgGG43LUDcU13xdJxVeUSgE6VYIMUWiIIeM="},
        {4, 1001, "1PEK4AZ2gMy5vRVjbZJ+En3HtnqeDy/aFIncVsGYYUo="},
        {4, 1002, "1ux93nyqiT3LoJjf1C5imfTPC2azJaun7mnA6yYyE4o="},
        {4, 1003, "ax7XMWe/ibWGVVH+y2adzhNr0D77nRn0f8TKOLGFmmw="},
        {4, 1004, "D7BGG8BhraT5JK4aG9RwJd7lDr/vzJfkRnvo52gQKY4="},
        {1100, 5, "q52J1h2IPUVH3fx/8j0yuUd67Lx3+L6WSsfY9gQkF2U="},
        {1100, 3000, "hPlZgWjBQJ9L4LhHrTB00SugyAU8Oak7Vk2hx6hO9yU="},
        {985, 20, "m4umkKHSVyTc6b3ZFQUY/g7KnbjkDvWJWpaAKhVbfZ0="},
    };
    static char method[1200], params[3200];
    memset(method, 'm', sizeof method);
    memset(params, 'p', sizeof params);
    for (size_t i = 0; i < sizeof long_rows / sizeof long_rows[0]; i++) {
        unsigned char mac[WEFT_MAC];
        char text[WEFT_MAC_TEXT];
        weft_signed_parts parts = {
            bytes("1700000100"), bytes("n"), {method, long_rows[i].method}, bytes("1"), {params, long_rows[i].params}};
        CHECK_INT(weft__hmac_parts(hmac, &parts, mac), 0);
        weft__mac_encode(mac, text);
        CHECK_STR(&text[0], long_rows[i].signature);
    }
    weft__hmac_free(hmac);
}

TEST_MAIN(CASE(good_ones) CASE(the_key_of_who_names_none) CASE(each_byte_tampered) CASE(parts_keep_apart)
              CASE(malformed_ones) CASE(a_replay) CASE(a_replay_encoded_again) CASE(a_skewed_clock) CASE(after_a_restart)
                  CASE(a_clock_that_is_set_back) CASE(a_clock_that_is_set_forward) CASE(who_signs) CASE(required_and_missing)
                      CASE(a_batch) CASE(answered_later) CASE(seen_stays_bounded) CASE(seen_too_many_at_once)
                          CASE(forgotten_ones_are_refused) CASE(without_memory) CASE(keys_that_cannot_be)
                              CASE(a_client_signs) CASE(vectors))

/* Pages that log in: the cookie, what it is good for, and what ends it. */
#include "net_world.h"

#define HOST "Host: localhost\r\n"
#define OWN "Origin: http://localhost\r\n"
#define FORM "Content-Type: application/x-www-form-urlencoded\r\n"
#define WHO "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"who\"}"
#define POST_WHO "POST /rpc HTTP/1.1\r\n" HOST "Content-Type: application/json\r\nContent-Length: 39\r\n%s%s\r\n" WHO

static const weft_token tokens[] = {{"s3cret", "ann <b>", "admin"}, {"other", "bob", "read"}, {0}};
static const char *const origins[] = {"https://app.example", NULL};

static world *login_world(const weft_login_opts *opts) {
    world *w = world_new(NULL, NULL);
    char url[64];
    const weft_listen_opts how = {.tokens = tokens, .origins = origins};
    CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", &how), 0);
    snprintf(url, sizeof url, "ws://127.0.0.1:%d/ws", world_port(w, 0));
    CHECK_INT(weft_server_listen(w->server, url, &how), 0);
    CHECK_INT(weft_server_login(w->server, opts), 0);
    CHECK_INT(weft_server_login(w->server, opts), -EALREADY);
    return w;
}

static int post_login(world *w, const char *headers, const char *form) {
    const char *body;
    return world_http(w, 0, &body, "POST /login HTTP/1.1\r\n" HOST FORM "%sContent-Length: %zu\r\n\r\n%s", headers,
                      strlen(form), form);
}

/* The Cookie header of a browser that has logged in. */
static void log_in(world *w, const char *form, char ret[120]) {
    CHECK_INT(post_login(w, OWN, form), 303);
    const char *cookie = strstr(w->text, "Set-Cookie: "), *end = cookie ? strchr(cookie, ';') : NULL;
    CHECK(end != NULL);
    snprintf(ret, 120, "Cookie: a=b; %.*s; c=d\r\n", end ? (int) (end - cookie - 12) : 0, end ? cookie + 12 : "");
}

static int who(world *w, const char *cookie, const char *headers) {
    const char *body;
    return world_http(w, 0, &body, POST_WHO, cookie, headers);
}

TEST(the_form) {
    const char *body;
    world *w = login_world(NULL);
    CHECK_INT(world_http(w, 0, &body, "GET /login HTTP/1.1\r\n" HOST "\r\n"), 200);
    HAS(w, "Content-Security-Policy: default-src 'none'; style-src 'sha256-");
    HAS(w, "frame-ancestors 'none'");
    HAS(w, "Cache-Control: no-store\r\n");
    HAS(w, "<form method=\"post\" action=\"/login\">");
    CHECK(strstr(w->text, "<script") == NULL);
    CHECK_INT(world_http(w, 0, &body, "GET /logout HTTP/1.1\r\n" HOST "\r\n"), 405);
    CHECK_INT(world_http(w, 0, &body, "GET /login?token=s3cret HTTP/1.1\r\n" HOST "\r\n"), 200);
    HAS(w, "logged in as ann &#60;b&#62;");
    world_free(w);
}

TEST(logging_in) {
    static const struct {
        const char *name, *headers, *form;
        int status;
    } rows[] = {
        {"right", OWN, "token=s3cret", 303},
        {"right, without an origin", "", "token=s3cret", 303},
        {"among others", OWN, "x=y&token=s3cret&z", 303},
        {"escaped", OWN, "token=%733cret", 303},
        {"pasted with blanks", OWN, "token=+s3cret%0D%0A", 303},
        {"wrong", OWN, "token=s3cre", 401},
        {"empty", OWN, "token=", 401},
        {"none", OWN, "tokens=s3cret", 401},
        {"a broken escape", OWN, "token=%7", 401},
        {"from another page", "Origin: http://evil.example\r\n", "token=s3cret", 403},
        {"from a page on another port", "Origin: http://localhost:81\r\n", "token=s3cret", 403},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world *w = login_world(NULL);
        test_row(rows[i].name);
        CHECK_INT(post_login(w, rows[i].headers, rows[i].form), rows[i].status);
        CHECK((strstr(w->text, "Set-Cookie: weft_session_") != NULL) == (rows[i].status == 303));
        if (rows[i].status == 303)
            HAS(w, "; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800\r\n");
        CHECK(strstr(w->text, "s3cret") == NULL);
        world_free(w);
    }
    test_row(NULL);
}

TEST(guesses_are_braked) {
    world *w = login_world(NULL);
    for (int i = 0; i < 10; i++)
        CHECK_INT(post_login(w, OWN, "token=x"), 401);
    CHECK_INT(post_login(w, OWN, "token=x"), 429);
    CHECK_INT(post_login(w, OWN, "token=s3cret"), 303);
    world_free(w);
}

TEST(where_to_after) {
    world *w = login_world(&(weft_login_opts){.home = "/board", .session_s = 60});
    CHECK_INT(post_login(w, OWN, "token=other"), 303);
    HAS(w, "Location: /board\r\n");
    HAS(w, "Max-Age=60\r\n");
    world_free(w);
}

/* What changes something, and a WebSocket, must come from our own page; a browser says so in headers that no page can set.
 */
TEST(whose_requests_count) {
    static const struct {
        const char *name, *headers;
        int post, get;
    } rows[] = {
        {"no word about it", "", 401, 406},
        {"own origin", OWN, 200, 406},
        {"same origin", "Sec-Fetch-Site: same-origin\r\n", 200, 406},
        {"both", OWN "Sec-Fetch-Site: same-origin\r\n", 200, 406},
        {"typed by the user", "Sec-Fetch-Site: none\r\n", 401, 406},
        {"another site", "Sec-Fetch-Site: cross-site\r\n", 401, 401},
        {"another port", "Sec-Fetch-Site: same-site\r\n", 401, 401},
        {"another port that says our origin", OWN "Sec-Fetch-Site: same-site\r\n", 401, 401},
        {"an origin that may come with a token", "Origin: https://app.example\r\n", 401, 401},
        {"another origin", "Origin: http://evil.example\r\n", 403, 403},
        {"no origin worth its name", "Origin: null\r\n", 403, 403},
    };
    char cookie[120];
    const char *body;
    world *w = login_world(NULL);
    log_in(w, "token=other", cookie);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        CHECK_INT(who(w, cookie, rows[i].headers), rows[i].post);
        if (rows[i].post == 200)
            HAS(w, "\"name\":\"bob\",\"scopes\":\"read\"");
        CHECK_INT(world_http(w, 0, &body, "GET /rpc HTTP/1.1\r\n" HOST "%s%s\r\n", cookie, rows[i].headers), rows[i].get);
        CHECK_INT(world_http(w, 1, &body,
                             "GET /ws HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                             "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s%s\r\n",
                             cookie, rows[i].headers),
                  rows[i].post == 200 ? 101 : rows[i].post);
    }
    test_row(NULL);
    world_free(w);
}

TEST(cookies_that_are_none) {
    char cookie[120], other[200];
    world *w = login_world(NULL);
    log_in(w, "token=other", cookie);
    CHECK_INT(who(w, "Cookie: weft_session_1=x\r\n", OWN), 401);
    CHECK_INT(who(w, "Cookie: \r\n", OWN), 401);
    CHECK_INT(who(w, "Cookie: ;;;=;\r\n", OWN), 401);
    snprintf(other, sizeof other, "Cookie: x%s", cookie + 13);
    CHECK_INT(who(w, other, OWN), 401);
    CHECK_INT(who(w, cookie, OWN), 200);
    /* A token counts more than a cookie. */
    CHECK_INT(who(w, cookie, OWN "Authorization: Bearer s3cret\r\n"), 200);
    HAS(w, "\"scopes\":\"admin\"");
    CHECK_INT(who(w, cookie, OWN "Authorization: Bearer wrong\r\n"), 401);
    world_free(w);
}

static int open_stream(world *w, const char *cookie) {
    char request[400];
    int fd = world_connect_tcp(w, 0);
    snprintf(request, sizeof request, "GET /rpc HTTP/1.1\r\n" HOST "%sAccept: text/event-stream\r\n\r\n", cookie);
    world_say(w, fd, request);
    CHECK(world_read_until(w, fd, "\r\n\r\n"));
    CHECK_INT(atoi(w->text + 9), 200);
    return fd;
}

TEST(logging_out) {
    char first[120], second[120];
    const char *body;
    world *w = login_world(NULL);
    log_in(w, "token=other", first);
    log_in(w, "token=other", second);
    CHECK(strcmp(first, second) != 0);
    int fd = open_stream(w, first), kept = open_stream(w, second);
    CHECK_INT(world_http(w, 0, &body, "POST /logout HTTP/1.1\r\n" HOST "%sContent-Length: 0\r\n\r\n", first), 303);
    for (int i = 0; i < 3; i++)
        world_wait(w, -1, 0);
    CHECK_INT(w->closed, 0); /* nobody's page asked for it */
    CHECK_INT(world_http(w, 0, &body, "POST /logout HTTP/1.1\r\n" HOST OWN "%sContent-Length: 0\r\n\r\n", first), 303);
    HAS(w, "Location: /login\r\n");
    HAS(w, "Max-Age=0\r\n");
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_INT(who(w, first, OWN), 401);
    CHECK_INT(who(w, second, OWN), 200);
    CHECK_INT(w->closed, 1);
    close(fd);
    close(kept);
    world_free(w);
}

TEST(a_session_ends_with_its_token) {
    char cookie[120], ann[120];
    world *w = login_world(NULL);
    log_in(w, "token=other", cookie);
    log_in(w, "token=s3cret", ann);
    int fd = open_stream(w, cookie);
    CHECK_INT(weft_server_tokens(w->server, (weft_token[]){tokens[0], {0}}), 0);
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_INT(who(w, cookie, OWN), 401);
    CHECK_INT(who(w, ann, OWN), 200);
    /* Given out again it is the same token, but nobody has logged in with it. */
    CHECK_INT(weft_server_tokens(w->server, tokens), 0);
    CHECK_INT(who(w, cookie, OWN), 401);
    close(fd);
    world_free(w);
}

TEST(a_session_ends_by_itself) {
    char cookie[120];
    world *w = login_world(&(weft_login_opts){.session_s = 1});
    log_in(w, "token=other", cookie);
    int fd = open_stream(w, cookie);
    CHECK_INT(world_read_all(w, fd), 0);
    CHECK_INT(who(w, cookie, OWN), 401);
    close(fd);
    world_free(w);
}

TEST(the_oldest_session_makes_room) {
    char cookies[4][120];
    world *w = login_world(&(weft_login_opts){.max_sessions = 3});
    for (int i = 0; i < 3; i++)
        log_in(w, "token=other", cookies[i]);
    int fd = open_stream(w, cookies[0]);
    log_in(w, "token=other", cookies[3]);
    CHECK_INT(world_read_all(w, fd), 0);
    for (int i = 0; i < 4; i++)
        CHECK_INT(who(w, cookies[i], OWN), i ? 200 : 401);
    close(fd);
    world_free(w);
}

/* ---- codes ---- */

static int show_code(world *w, const char *method, const char *code, const char *headers) {
    const char *body;
    return world_http(w, 0, &body, "%s /login?code=%s HTTP/1.1\r\n" HOST "%s\r\n", method, code, headers);
}

TEST(a_code_logs_in_once) {
    char code[WEFT_LOGIN_CODE], cookie[160];
    world *w = login_world(&(weft_login_opts){.home = "/home"});
    CHECK_INT(weft_server_login_code(w->server, "bob", 60000, code), 0);
    CHECK_INT((int) strlen(code), 32);
    CHECK_INT(show_code(w, "GET", code, ""), 200);
    HAS(w, "; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800\r\n");
    HAS(w, "content=\"0;url=/home\"");
    const char *set = strstr(w->text, "Set-Cookie: "), *end = set ? strchr(set, ';') : NULL;
    snprintf(cookie, sizeof cookie, "Cookie: %.*s\r\n", end ? (int) (end - set - 12) : 0, end ? set + 12 : "");
    CHECK_INT(who(w, cookie, OWN), 200);
    HAS(w, "bob");
    CHECK_INT(show_code(w, "GET", code, ""), 401);
    HAS(w, "used or is too old");
    CHECK(strstr(w->text, "Set-Cookie") == NULL);
    CHECK_INT(show_code(w, "GET", code, cookie), 303); /* the user goes back, and is logged in */
    world_free(w);
}

TEST(codes_that_do_not_count) {
    char code[WEFT_LOGIN_CODE], later[WEFT_LOGIN_CODE];
    world *w = login_world(NULL);
    CHECK_INT(weft_server_login_code(w->server, "nobody", 60000, code), -ENOENT);
    CHECK_INT(weft_server_login_code(w->server, "bob", 0, code), 0);
    CHECK_INT(show_code(w, "GET", code, ""), 401); /* too old */
    CHECK_INT(show_code(w, "GET", "", ""), 200);   /* none: the form */
    HAS(w, "<form");
    CHECK_INT(show_code(w, "GET", "00000000000000000000000000000000", ""), 401);
    CHECK_INT(weft_server_login_code(w->server, "bob", 60000, code), 0);
    CHECK_INT(weft_server_tokens(w->server, (weft_token[]){tokens[0], {0}}), 0);
    CHECK_INT(show_code(w, "GET", code, ""), 401); /* its token has gone */
    for (int i = 0; i < 17; i++)
        CHECK_INT(weft_server_login_code(w->server, "ann <b>", 60000 + i, i ? later : code), 0);
    CHECK_INT(show_code(w, "GET", code, ""), 401); /* the oldest made room */
    CHECK_INT(show_code(w, "GET", later, ""), 200);
    world_free(w);
}

/* A link is looked at by others than the user: none of them uses it up. */
TEST(only_a_page_that_is_opened_uses_a_code) {
    static const char *const headers[] = {"Sec-Purpose: prefetch\r\n", "Sec-Fetch-Dest: image\r\n",
                                          "Sec-Fetch-Dest: iframe\r\n"};
    char code[WEFT_LOGIN_CODE];
    world *w = login_world(NULL);
    CHECK_INT(weft_server_login_code(w->server, "bob", 60000, code), 0);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        CHECK_INT(show_code(w, "GET", code, headers[i]), 200);
        CHECK(strstr(w->text, "Set-Cookie") == NULL);
    }
    CHECK_INT(show_code(w, "GET", code, "Sec-Fetch-Dest: document\r\nSec-Fetch-Site: cross-site\r\n"), 200);
    HAS(w, "Set-Cookie");
    world_free(w);
}

TEST(guessed_codes_are_braked) {
    char code[WEFT_LOGIN_CODE];
    int status = 0;
    world *w = login_world(NULL);
    CHECK_INT(weft_server_login_code(w->server, "bob", 60000, code), 0);
    for (int i = 0; i < 30 && status != 429; i++)
        status = show_code(w, "GET", "ffffffffffffffffffffffffffffffff", "");
    CHECK_INT(status, 429);
    CHECK_INT(show_code(w, "GET", code, ""), 200); /* a right one never is */
    world_free(w);
}

TEST(a_page_can_ask_whether_it_is_logged_in) {
    char cookie[120];
    const char *body;
    world *w = login_world(NULL);
    CHECK_INT(world_http(w, 0, &body, "GET /login/state HTTP/1.1\r\n" HOST "\r\n"), 200);
    CHECK_STR(body, "{\"authenticated\":false}");
    log_in(w, "token=other", cookie);
    CHECK_INT(world_http(w, 0, &body, "GET /login/state HTTP/1.1\r\n" HOST "%s\r\n", cookie), 200);
    CHECK_STR(body, "{\"authenticated\":true,\"name\":\"bob\",\"scopes\":\"read\"}");
    world_free(w);
}

/* ---- over a restart ---- */

static char kept[4096];

static void keep_text(void *ctx, const char *text) {
    (void) ctx;
    snprintf(kept, sizeof kept, "%s", text);
}

/* The cookie's name has the port in it, and the second server has another. */
static void rename_cookie(const world *w, const char *cookie, char ret[160]) {
    const char *value = strstr(cookie, "weft_session_");
    value = value ? strchr(value, '=') : NULL;
    snprintf(ret, 160, "Cookie: weft_session_%d=%.64s\r\n", world_port(w, 0), value ? value + 1 : "");
}

TEST(sessions_outlive_the_server) {
    char bob[120], ann[120], gone[120], again[160], text[8192];
    const weft_login_opts keeping = {.on_keep = keep_text};
    world *w = login_world(&keeping);
    log_in(w, "token=other", bob);
    log_in(w, "token=s3cret", ann);
    log_in(w, "token=s3cret", gone);
    CHECK(strstr(kept, "s3cret") == NULL && strstr(kept, strchr(strstr(bob, "weft_session_"), '=') + 1) == NULL);
    const char *body;
    CHECK_INT(world_http(w, 0, &body, "POST /logout HTTP/1.1\r\n" HOST OWN "%s\r\n", gone), 303);
    world_free(w);
    snprintf(text, sizeof text, "nonsense\n%.63s\n%s0 0 0\n", kept, kept);
    w = login_world(&(weft_login_opts){.on_keep = keep_text, .kept = text});
    rename_cookie(w, bob, again);
    CHECK_INT(who(w, again, OWN), 200);
    HAS(w, "bob");
    rename_cookie(w, gone, again);
    CHECK_INT(who(w, again, OWN), 401);
    CHECK_INT(weft_server_tokens(w->server, (weft_token[]){tokens[0], {0}}), 0);
    rename_cookie(w, bob, again);
    CHECK_INT(who(w, again, OWN), 401);
    rename_cookie(w, ann, again);
    CHECK_INT(who(w, again, OWN), 200);
    world_free(w);
}

/* A clock that was wrong makes no session longer, and one that has ended stays so. */
TEST(kept_sessions_end) {
    char cookie[120], again[160], text[4096];
    world *w = login_world(&(weft_login_opts){.on_keep = keep_text});
    log_in(w, "token=other", cookie);
    world_free(w);
    char *until = strrchr(kept, ' ');
    snprintf(text, sizeof text, "%.*s 1000\n", until ? (int) (until - kept) : 0, kept);
    w = login_world(&(weft_login_opts){.kept = text});
    rename_cookie(w, cookie, again);
    CHECK_INT(who(w, again, OWN), 401);
    world_free(w);
}

/* clang-format off */
TEST_MAIN(
    CASE(the_form)
    CASE(logging_in)
    CASE(guesses_are_braked)
    CASE(where_to_after)
    CASE(whose_requests_count)
    CASE(cookies_that_are_none)
    CASE(logging_out)
    CASE(a_session_ends_with_its_token)
    CASE(a_session_ends_by_itself)
    CASE(the_oldest_session_makes_room)
    CASE(a_code_logs_in_once)
    CASE(codes_that_do_not_count)
    CASE(only_a_page_that_is_opened_uses_a_code)
    CASE(guessed_codes_are_braked)
    CASE(a_page_can_ask_whether_it_is_logged_in)
    CASE(sessions_outlive_the_server)
    CASE(kept_sessions_end)
)

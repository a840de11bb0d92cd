/* Webhooks, over real connections to a server of our own and to sockets that misbehave. */
#include "webhook.h"

#include <errno.h>

#include "net_world.h"
#include "post.h"

typedef struct outcome {
    int times, r;
    char why[256];
} outcome;

static void on_sent(void *ctx, int r, const char *why) {
    outcome *o = ctx;
    o->times++;
    o->r = r;
    snprintf(o->why, sizeof o->why, "%s", why);
}

/* What the server was asked, and what it shall answer. */
typedef struct door {
    int requests, failures; /* so many times 503 first */
    int status;
    char path[256], query[256], type[64], length[32], body[1024], host[64];
} door;

static void on_post(weft_http *http, void *ctx) {
    door *d = ctx;
    weft_bytes body = weft_http_body(http);
    d->requests++;
    snprintf(d->path, sizeof d->path, "%s", weft_http_path(http));
    snprintf(d->query, sizeof d->query, "%s", weft_http_query(http) ? weft_http_query(http) : "");
    snprintf(d->type, sizeof d->type, "%s", weft_http_header(http, "content-type"));
    snprintf(d->host, sizeof d->host, "%s", weft_http_header(http, "host"));
    snprintf(d->body, sizeof d->body, "%.*s", (int) body.len, body.data);
    weft_http_answer(http, d->requests <= d->failures ? 503 : d->status, "text/plain", (weft_bytes){"ignored", 7});
}

typedef struct scene {
    world *w;
    door door;
    weft_webhooks *hooks;
    char base[64];
} scene;

static void begin(scene *s) {
    *s = (scene){.door = {.status = 200}};
    s->w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(s->w->server, "http://127.0.0.1:0/rpc", NULL), 0);
    CHECK_INT(weft_server_route(s->w->server, "POST", "/hook*", on_post, &s->door), 0);
    snprintf(s->base, sizeof s->base, "http://127.0.0.1:%d", world_port(s->w, 0));
    CHECK_INT(weft__webhooks_new(&(weft_webhook_opts){.loop = s->w->loop, .retry_ms = 5, .timeout_ms = 2000}, &s->hooks), 0);
}

static void end(scene *s) {
    s->hooks = weft__webhooks_free(s->hooks);
    world_free(s->w);
}

static int hook(scene *s, const char *path, outcome *o) {
    static const char body[] = "{\"ruleId\":\"r\"}";
    char url[512];
    *o = (outcome){0};
    snprintf(url, sizeof url, "%s%s", s->base, path);
    weft_webhook what = {.url = url, .type = "application/json", .body = {body, sizeof body - 1}};
    int r = weft__webhook_send(s->hooks, &what, on_sent, o);
    CHECK_INT(o->times, 0); /* never inside the call */
    return r;
}

static int send_to(scene *s, const char *url, outcome *o) {
    return weft__webhook_send(s->hooks, &(weft_webhook){.url = url, .type = "text/plain"}, on_sent, o);
}

TEST(arrives) {
    scene s;
    outcome o;
    begin(&s);
    CHECK_INT(hook(&s, "/hook/a%20b?x=1", &o), 0);
    WORLD_UNTIL(s.w, o.times);
    CHECK_INT(o.r, 0);
    CHECK_STR(s.door.body, "{\"ruleId\":\"r\"}");
    CHECK_STR(s.door.type, "application/json");
    CHECK(strncmp(s.door.path, "/hook/a", 7) == 0);
    CHECK_STR(s.door.query, "x=1");
    CHECK(strstr(s.base, s.door.host) != NULL);
    CHECK_INT(s.door.requests, 1);
    end(&s);
}

TEST(tries_again) {
    static const struct {
        int failures, status, want_requests, want_r;
        const char *why;
    } rows[] = {
        {1, 200, 2, 0, ""},
        {2, 204, 3, 0, ""},
        {3, 200, 3, -EPROTO, "answered 503"},
        {0, 400, 1, -EPROTO, "answered 400"},
        {0, 404, 1, -EPROTO, "answered 404"},
        {0, 429, 3, -EPROTO, "answered 429"},
        {0, 302, 1, -EPROTO, "answered 302"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene s;
        outcome o;
        test_row(rows[i].why);
        begin(&s);
        s.door.failures = rows[i].failures;
        s.door.status = rows[i].status;
        CHECK_INT(hook(&s, "/hook", &o), 0);
        WORLD_UNTIL(s.w, o.times);
        CHECK_INT(o.r, rows[i].want_r);
        CHECK_INT(s.door.requests, rows[i].want_requests);
        CHECK(strstr(o.why, rows[i].why) != NULL);
        end(&s);
    }
    test_row(NULL);
}

/* A name with several addresses: localhost may have ::1 first, where nobody listens. */
TEST(names) {
    scene s;
    outcome o;
    if (!test_needs_localhost())
        return;
    begin(&s);
    snprintf(s.base, sizeof s.base, "http://localhost:%d", world_port(s.w, 0));
    CHECK_INT(hook(&s, "/hook", &o), 0);
    WORLD_UNTIL(s.w, o.times);
    CHECK_INT(o.r, 0);
    end(&s);
}

TEST(nobody_there) {
    scene s;
    outcome o;
    begin(&s);
    int closed;
    snprintf(s.base, sizeof s.base, "http://127.0.0.1:%d", test_closed_port(&closed));
    CHECK_INT(hook(&s, "/", &o), 0);
    WORLD_UNTIL(s.w, o.times);
    CHECK_INT(o.r, -ECONNREFUSED);
    CHECK(*o.why != '\0');
    close(closed);
    end(&s);
}

/* A server that takes the connection and then says nothing, nonsense, too much, or good-bye. */
static void misbehaves(const char *answer, size_t repeat, bool close_it, int want) {
    scene s;
    outcome o;
    begin(&s);
    s.hooks = weft__webhooks_free(s.hooks);
    CHECK_INT(weft__webhooks_new(&(weft_webhook_opts){.loop = s.w->loop, .attempts = 1, .timeout_ms = 300}, &s.hooks), 0);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    CHECK_INT(bind(listener, (struct sockaddr *) &address, sizeof address), 0);
    CHECK_INT(listen(listener, 1), 0);
    getsockname(listener, (struct sockaddr *) &address, &size);
    snprintf(s.base, sizeof s.base, "http://127.0.0.1:%d", ntohs(address.sin_port));
    CHECK_INT(hook(&s, "/", &o), 0);
    CHECK(world_wait(s.w, listener, POLLIN) & POLLIN);
    client = accept(listener, NULL, NULL);
    CHECK(world_read_until(s.w, client, "\"r\"}"));
    while (repeat--)
        CHECK(send(client, answer, strlen(answer), MSG_NOSIGNAL) > 0);
    if (close_it)
        close(client);
    WORLD_UNTIL(s.w, o.times);
    CHECK_INT(o.r, want);
    CHECK(*o.why || want == 0);
    if (!close_it)
        close(client);
    close(listener);
    end(&s);
}

TEST(servers_that_misbehave) {
    misbehaves("", 0, false, -ETIMEDOUT);
    misbehaves("", 0, true, -ECONNRESET);
    misbehaves("HTTP/1.1 200 OK\r\n", 1, true, -ECONNRESET);
    misbehaves("SSH-2.0-OpenSSH\r\n\r\n", 1, false, -EBADMSG);
    misbehaves("HTTP/1.1 100 Continue\r\n\r\n", 1, false, -ETIMEDOUT);
    misbehaves("HTTP/1.1 100 Continue\r\n\r\n", 9, false, -EPROTO);
    /* The body does not matter. */
    misbehaves("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nhalf", 1, false, 0);
}

TEST(refuses) {
    scene s;
    outcome o = {0};
    char *large = calloc(1, WEFT_WEBHOOK_BODY + 1);
    begin(&s);
    CHECK_INT(send_to(&s, "tcp://127.0.0.1:1", &o), -EINVAL);
    CHECK_INT(send_to(&s, "nonsense", &o), -EINVAL);
    CHECK_INT(send_to(&s, "http://h/a b", &o), -EINVAL);
    CHECK_INT(send_to(&s, "http://h/\r\nX: y", &o), -EINVAL);
    CHECK_INT(weft__webhook_send(
                  s.hooks, &(weft_webhook){.url = s.base, .type = "text/plain", .body = {large, WEFT_WEBHOOK_BODY + 1}},
                  on_sent, &o),
              -EMSGSIZE);
    for (int i = 0; i < WEFT_WEBHOOKS_MAX; i++)
        CHECK_INT(send_to(&s, s.base, &o), 0);
    CHECK_INT(send_to(&s, s.base, &o), -ENOBUFS);
    CHECK_INT(o.times, 0);
    end(&s); /* in the middle of all that */
    free(large);
}

/* Freed at every moment of one request. */
TEST(freed_in_the_middle) {
    for (int turns = 0; turns < 12; turns++) {
        scene s;
        outcome o;
        begin(&s);
        snprintf(s.base, sizeof s.base, "http://%s:%d", test_localhost(), world_port(s.w, 0));
        CHECK_INT(hook(&s, "/hook", &o), 0);
        for (int i = 0; i < turns; i++)
            world_wait(s.w, -1, 0);
        end(&s);
    }
}

/* Certificates made by the openssl program; the server's is signed by itself. */
TEST(https) {
    scene s;
    outcome o;
    char command[512], cert[96], key[96];
    begin(&s);
    snprintf(cert, sizeof cert, "%s/cert.pem", s.w->folder);
    snprintf(key, sizeof key, "%s/key.pem", s.w->folder);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
             "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout %s -out %s 2>/dev/null",
             key, cert);
    if (system(command) != 0) {
        test_skip("there is no openssl program");
        end(&s);
        return;
    }
    weft_listen_opts listen = {.tls = {.cert = cert, .key = key}};
    CHECK_INT(weft_server_listen(s.w->server, "https://127.0.0.1:0/rpc", &listen), 0);
    snprintf(s.base, sizeof s.base, "https://%s:%d", test_localhost(), world_port(s.w, 1));
    /* Nobody we trust has signed it. */
    s.hooks = weft__webhooks_free(s.hooks);
    CHECK_INT(weft__webhooks_new(&(weft_webhook_opts){.loop = s.w->loop, .attempts = 1}, &s.hooks), 0);
    CHECK_INT(hook(&s, "/hook", &o), 0);
    WORLD_UNTIL(s.w, o.times);
    CHECK(o.r < 0 && strstr(o.why, "certificate") != NULL);
    CHECK_INT(s.door.requests, 0);
    /* A scheme is the same in capitals. */
    memcpy(s.base, "HTTPS", 5);
    s.hooks = weft__webhooks_free(s.hooks);
    CHECK_INT(weft__webhooks_new(&(weft_webhook_opts){.loop = s.w->loop, .tls = {.ca = cert}}, &s.hooks), 0);
    CHECK_INT(hook(&s, "/hook", &o), 0);
    WORLD_UNTIL(s.w, o.times);
    CHECK_INT(o.r, 0);
    CHECK_INT(s.door.requests, 1);
    end(&s);
}

TEST_MAIN(CASE(arrives) CASE(tries_again) CASE(names) CASE(nobody_there) CASE(servers_that_misbehave) CASE(refuses)
              CASE(freed_in_the_middle) CASE(https))

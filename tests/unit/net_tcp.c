/* TCP and TLS byte streams: addresses, tokens by the first call, descriptors running out, a matrix of certificates. */
#include <openssl/ssl.h>
#include <sys/resource.h>

#include "net_world.h"
#include "server.h"

#define CALL(id, method) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"" method "\"}\n"
#define AUTH(id, token)                                                                                                     \
    "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"weft.auth\",\"params\":{\"token\":\"" token "\"}}\n"

static const weft_token tokens[] = {{"s3cret", "ann", "admin"}, {0}};

TEST(addresses) {
    static const struct {
        const char *url;
        int r;
    } rows[] = {
        {"tcp://127.0.0.1:0", 0},     {"tcp://[::1]:0", 0},  {"tcp://0.0.0.0:0", 0}, {"tcp://203.0.113.1:0", -EADDRNOTAVAIL},
        {"tcp://127.0.0.1", -EINVAL}, {"exec:cat", -EINVAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world *w = world_new(NULL, NULL);
        test_row(rows[i].url);
        int r = weft_server_listen(w->server, rows[i].url, NULL);
        if (strchr(rows[i].url, '[') && r == -EADDRNOTAVAIL)
            r = 0; /* a machine without IPv6 */
        else if (r == 0) {
            CHECK(world_port(w, 0) > 0);
            CHECK(strncmp(weft_server_url(w->server, 0), rows[i].url, strlen(rows[i].url) - 1) == 0);
        }
        CHECK_INT(r, rows[i].r);
        world_free(w);
    }
    test_row(NULL);
}

TEST(a_name) {
    if (!test_needs_localhost())
        return;
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "tcp://localhost:0", NULL), 0);
    CHECK(world_port(w, 0) > 0);
    CHECK(strncmp(weft_server_url(w->server, 0), "tcp://localhost:", 16) == 0);
    world_free(w);
}

TEST(many_listeners) {
    world *w = world_new(NULL, NULL);
    for (size_t i = 0; i < 20; i++) {
        CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", NULL), 0);
        int fd = world_connect_tcp(w, i);
        world_say(w, fd, CALL(1, "who"));
        world_read_lines(w, fd, 1);
        HAS(w, "\"transport\":\"tcp\"");
        HAS(w, "\"address\":\"127.0.0.1\"");
        HAS(w, "\"authenticated\":true");
        close(fd);
    }
    world_free(w);
}

TEST(tokens_come_first) {
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", &(weft_listen_opts){.tokens = tokens}), 0);
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, CALL(1, "echo"));
    world_read_lines(w, fd, 1);
    HAS(w, "\"code\":401");
    CHECK_INT(w->opened, 0);
    CHECK_INT(weft_server_broadcast(w->server, "news", weft_none(), NULL, NULL), 0); /* strangers are told nothing */
    world_say(w, fd, AUTH(2, "wrong"));
    world_read_lines(w, fd, 1);
    HAS(w, "\"code\":401");
    world_say(w, fd, AUTH(3, "s3cret") CALL(4, "who"));
    world_read_lines(w, fd, 2);
    HAS(w, "\"id\":3,\"result\":{\"name\":\"ann\"");
    HAS(w, "\"scopes\":\"admin\"");
    HAS(w, "\"authenticated\":true");
    CHECK_INT(w->opened, 1);
    close(fd);
    world_free(w);
}

/* Somebody's wrong tokens do not keep out who has the right one. */
TEST(only_wrong_tokens_are_braked) {
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", &(weft_listen_opts){.tokens = tokens}), 0);
    int guesser = world_connect_tcp(w, 0), owner = world_connect_tcp(w, 0);
    for (int i = 0; i < 11; i++) {
        world_say(w, guesser, AUTH(1, "wrong"));
        world_read_lines(w, guesser, 1);
        HAS(w, i < 10 ? "\"code\":401" : "\"code\":429");
    }
    world_say(w, owner, AUTH(1, "s3cret"));
    world_read_lines(w, owner, 1);
    HAS(w, "\"result\"");
    close(guesser);
    close(owner);
    world_free(w);
}

TEST(strangers_do_not_stay) {
    world *w = world_new(&(weft_server_opts){.auth_ms = 30, .max_strangers_per_address = 1}, NULL);
    CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", &(weft_listen_opts){.tokens = tokens}), 0);
    int first = world_connect_tcp(w, 0), second = world_connect_tcp(w, 0);
    CHECK_INT(world_read_all(w, second), 0); /* time is up */
    CHECK_INT(world_read_all(w, first), 0);
    close(first);
    close(second);
    first = world_connect_tcp(w, 0);
    world_say(w, first, AUTH(1, "s3cret"));
    world_read_lines(w, first, 1);
    second = world_connect_tcp(w, 0); /* the first is known now */
    world_say(w, second, AUTH(1, "s3cret"));
    world_read_lines(w, second, 1);
    HAS(w, "\"result\"");
    close(first);
    close(second);
    world_free(w);
}

/* Not even one to refuse with: the loop does not spin, and whoever waits is served when there are some again. */
TEST(the_spare_descriptor_is_lost_and_found) {
    struct rlimit before, tight;
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", NULL), 0);
    weft_listener *listener = WEFT_CONTAINER(w->server->listeners.next, weft_listener, link);
    int fd = world_connect_tcp(w, 0);
    close(w->server->spare_fd);
    w->server->spare_fd = -1;
    int last = dup(fd);
    getrlimit(RLIMIT_NOFILE, &before);
    tight = before;
    tight.rlim_cur = (rlim_t) last + 1;
    setrlimit(RLIMIT_NOFILE, &tight);
    for (int i = 0; i < 1000 && uv_is_active((uv_handle_t *) &listener->sockets[0].poll); i++)
        weft_loop_once(w->loop, false);
    CHECK(!uv_is_active((uv_handle_t *) &listener->sockets[0].poll));
    setrlimit(RLIMIT_NOFILE, &before);
    world_say(w, fd, CALL(1, "echo"));
    world_read_lines(w, fd, 1);
    HAS(w, "\"result\"");
    CHECK(w->server->spare_fd >= 0); /* and it is kept again */
    close(fd);
    close(last);
    world_free(w);
}

/* It ends while nobody is accepted. */
TEST(a_server_that_rests_may_go) {
    struct rlimit before, tight;
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", NULL), 0);
    int fd = world_connect_tcp(w, 0);
    close(w->server->spare_fd);
    w->server->spare_fd = -1;
    int last = dup(fd);
    getrlimit(RLIMIT_NOFILE, &before);
    tight = before;
    tight.rlim_cur = (rlim_t) last + 1;
    setrlimit(RLIMIT_NOFILE, &tight);
    for (int i = 0; i < 10; i++)
        weft_loop_once(w->loop, false);
    setrlimit(RLIMIT_NOFILE, &before);
    world_free(w);
    close(fd);
    close(last);
}

/* Without descriptors nobody can be accepted, but they can be told, and the loop does not spin. */
TEST(no_descriptors_left) {
    struct rlimit before, tight;
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", NULL), 0);
    int fd = world_connect_tcp(w, 0), last = dup(fd);
    getrlimit(RLIMIT_NOFILE, &before);
    tight = before;
    tight.rlim_cur = (rlim_t) last + 1;
    close(last);
    last = dup(fd); /* the very last one */
    setrlimit(RLIMIT_NOFILE, &tight);
    CHECK_INT(world_read_all(w, fd), 0);
    setrlimit(RLIMIT_NOFILE, &before);
    HAS(w, "Out of file descriptors");
    CHECK_INT(w->notes, 1);
    close(fd);
    close(last);
    fd = world_connect_tcp(w, 0);
    world_say(w, fd, CALL(1, "echo"));
    world_read_lines(w, fd, 1);
    HAS(w, "\"result\"");
    close(fd);
    world_free(w);
}

/* A reset in the middle of everything. */
TEST(resets_are_harmless) {
    struct linger hard = {.l_onoff = 1};
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", NULL), 0);
    for (int i = 0; i < 3; i++) {
        int fd = world_connect_tcp(w, 0);
        world_say(w, fd,
                  i == 0   ? ""
                  : i == 1 ? CALL(1, "keep")
                           : "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"blob\",\"params\":[900000]}\n");
        WORLD_UNTIL(w, w->opened == i + 1);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
        WORLD_UNTIL(w, w->closed == i + 1);
    }
    world_free(w);
}

/* ---- TLS ---- */

/* Two authorities; a server's certificate for a name and an address, one that is over, clients of each authority. */
static bool make_certificates(const char *folder) {
    static const char script[] = "cd %s && exec >/dev/null 2>&1\n"
                                 "ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "
                                 "-keyout $1.key -out $1.pem -subj /CN=$1; }\n"
                                 "leaf() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $1.key "
                                 "-out $1.csr -subj \"$3\" &&\n"
                                 "  printf \"$4\" > ext && openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key "
                                 "-CAcreateserial -days 2 -extfile ext -out $1.pem; }\n"
                                 "ca ca && ca evil &&\n"
                                 "leaf server ca /CN=weft.example 'subjectAltName=DNS:weft.example,IP:127.0.0.1' &&\n"
                                 "leaf client ca /CN=ann 'basicConstraints=CA:FALSE' &&\n"
                                 "leaf noname ca /O=Weavers 'basicConstraints=CA:FALSE' &&\n"
                                 "leaf stranger evil /CN=ann 'basicConstraints=CA:FALSE'\n";
    char command[4096];
    snprintf(command, sizeof command, script, folder);
    return system(command) == 0;
}

typedef struct tls_client {
    SSL_CTX *ctx;
    SSL *ssl;
    int fd;
} tls_client;

static void in_folder(const world *w, const char *name, char *ret, size_t size) {
    snprintf(ret, size, "%s/%s", w->folder, name);
}

static tls_client tls_open(world *w, const char *cert, int max_version) {
    char pem[128], key[128], name[40];
    tls_client client = {.ctx = SSL_CTX_new(TLS_client_method()), .fd = world_connect_tcp(w, 0)};
    if (max_version)
        SSL_CTX_set_max_proto_version(client.ctx, max_version);
    if (max_version && max_version < TLS1_2_VERSION) {
        SSL_CTX_set_min_proto_version(client.ctx, max_version);
        SSL_CTX_set_security_level(client.ctx, 0);
    }
    if (cert) {
        snprintf(name, sizeof name, "%s.pem", cert);
        in_folder(w, name, pem, sizeof pem);
        snprintf(name, sizeof name, "%s.key", cert);
        in_folder(w, name, key, sizeof key);
        CHECK_INT(SSL_CTX_use_certificate_chain_file(client.ctx, pem), 1);
        CHECK_INT(SSL_CTX_use_PrivateKey_file(client.ctx, key, SSL_FILETYPE_PEM), 1);
    }
    client.ssl = SSL_new(client.ctx);
    SSL_set_fd(client.ssl, client.fd);
    SSL_set_connect_state(client.ssl);
    return client;
}

static void tls_close(tls_client *client) {
    SSL_free(client->ssl);
    SSL_CTX_free(client->ctx);
    close(client->fd);
}

/* Write everything, read one line. false: refused. */
static bool tls_ask(world *w, tls_client *client, const char *text) {
    size_t left = strlen(text);
    w->len = 0;
    w->text[0] = '\0';
    for (;;) {
        int n = left ? SSL_write(client->ssl, text, (int) left) : SSL_read(client->ssl, w->text + w->len, 1000);
        if (n > 0 && left)
            left -= (size_t) n;
        else if (n > 0) {
            w->len += (size_t) n;
            w->text[w->len] = '\0';
            if (strchr(w->text, '\n'))
                return true;
        } else {
            int error = SSL_get_error(client->ssl, n);
            if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
                return false;
            if (!world_wait(w, client->fd, error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT))
                return false;
        }
    }
}

static int listen_tls(world *w, bool mutual, const weft_token *list) {
    char cert[128], key[128], ca[128];
    in_folder(w, "server.pem", cert, sizeof cert);
    in_folder(w, "server.key", key, sizeof key);
    in_folder(w, "ca.pem", ca, sizeof ca);
    return weft_server_listen(
        w->server, "tls://127.0.0.1:0",
        &(weft_listen_opts){.tls = {.cert = cert, .key = key, .ca = mutual ? ca : NULL}, .tokens = list});
}

TEST(certificates) {
    static const struct {
        const char *name, *cert;
        bool mutual;
        int max_version;
        const char *has; /* NULL: refused */
    } rows[] = {
        {"no certificate asked", NULL, false, 0, "\"name\":\"\""},
        {"one that nobody asked for", "client", false, 0, "\"name\":\"\""},
        {"mutual", "client", true, 0, "\"name\":\"ann\",\"scopes\":\"*\""},
        {"mutual, without a common name", "noname", true, 0, "Weavers"},
        {"mutual, without a certificate", NULL, true, 0, NULL},
        {"mutual, of another authority", "stranger", true, 0, NULL},
        {"TLS 1.2", "client", true, TLS1_2_VERSION, "\"name\":\"ann\""},
        {"TLS 1.2, of another authority", "stranger", true, TLS1_2_VERSION, NULL},
        {"TLS 1.1", NULL, false, TLS1_1_VERSION, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world *w = world_new(NULL, NULL);
        if (!make_certificates(w->folder)) {
            test_skip("the openssl program is not there");
            world_free(w);
            return;
        }
        test_row(rows[i].name);
        CHECK_INT(listen_tls(w, rows[i].mutual, NULL), 0);
        tls_client client = tls_open(w, rows[i].cert, rows[i].max_version);
        bool ok = tls_ask(w, &client, CALL(1, "who"));
        CHECK_INT(ok, rows[i].has != NULL);
        if (rows[i].has)
            HAS(w, rows[i].has);
        CHECK_INT(w->opened, rows[i].has != NULL);
        CHECK_INT(w->notes, rows[i].has == NULL); /* and somebody is told why */
        tls_close(&client);
        world_free(w);
    }
    test_row(NULL);
}

TEST(tls_streams) {
    world *w = world_new(NULL, NULL);
    if (!make_certificates(w->folder)) {
        test_skip("the openssl program is not there");
        world_free(w);
        return;
    }
    CHECK_INT(listen_tls(w, false, NULL), 0);
    tls_client client = tls_open(w, NULL, 0);
    CHECK(tls_ask(w, &client, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"blob\",\"params\":[900000]}\n"));
    CHECK(w->len > 900000);
    CHECK(tls_ask(w, &client, CALL(2, "echo")));
    SSL_shutdown(client.ssl); /* close_notify; theirs comes back */
    CHECK(!tls_ask(w, &client, ""));
    CHECK(SSL_get_shutdown(client.ssl) & SSL_RECEIVED_SHUTDOWN);
    WORLD_UNTIL(w, w->closed == 1);
    CHECK_INT(w->why, 0);
    tls_close(&client);
    /* Cut off without a good-bye is not a clean end. */
    client = tls_open(w, NULL, 0);
    CHECK(tls_ask(w, &client, CALL(2, "echo")));
    SSL_set_quiet_shutdown(client.ssl, 1);
    tls_close(&client);
    WORLD_UNTIL(w, w->closed == 2);
    CHECK_INT(w->why, -ECONNRESET);
    world_free(w);
}

TEST(tls_handshakes_do_not_take_for_ever) {
    world *w = world_new(&(weft_server_opts){.auth_ms = 30}, NULL);
    if (!make_certificates(w->folder)) {
        test_skip("the openssl program is not there");
        world_free(w);
        return;
    }
    CHECK_INT(listen_tls(w, false, NULL), 0);
    int fd = world_connect_tcp(w, 0);
    world_read_all(w, fd);
    CHECK_INT(w->len, 0);
    close(fd);
    fd = world_connect_tcp(w, 0);
    world_say(w, fd, "GET / HTTP/1.1\r\n\r\n"); /* not TLS at all */
    world_read_all(w, fd);
    close(fd);
    CHECK_INT(w->opened, 0);
    world_free(w);
}

TEST(tls_needs_its_files) {
    char cert[128], key[128];
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "tls://127.0.0.1:0", NULL), -EINVAL);
    CHECK(strstr(w->note, "certificate") != NULL);
    in_folder(w, "none.pem", cert, sizeof cert);
    CHECK_INT(weft_server_listen(w->server, "tls://127.0.0.1:0", &(weft_listen_opts){.tls = {.cert = cert}}), -ENOENT);
    CHECK(strstr(w->note, "none.pem") != NULL);
    if (make_certificates(w->folder)) {
        in_folder(w, "server.pem", cert, sizeof cert);
        in_folder(w, "client.key", key, sizeof key);
        CHECK_INT(weft_server_listen(w->server, "tls://127.0.0.1:0", &(weft_listen_opts){.tls = {.cert = cert, .key = key}}),
                  -EINVAL);
    }
    world_free(w);
}

/* clang-format off */
TEST_MAIN(
    CASE(addresses) CASE(a_name)
    CASE(many_listeners)
    CASE(tokens_come_first)
    CASE(only_wrong_tokens_are_braked)
    CASE(strangers_do_not_stay)
    CASE(no_descriptors_left)
    CASE(the_spare_descriptor_is_lost_and_found)
    CASE(a_server_that_rests_may_go)
    CASE(resets_are_harmless)
    CASE(certificates)
    CASE(tls_streams)
    CASE(tls_handshakes_do_not_take_for_ever)
    CASE(tls_needs_its_files)
)

/* Every transport in the suite of all links. */
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "suites/link.h"

#define CERT "build/tests/links-cert.pem"
#define KEY "build/tests/links-key.pem"

/* ---- a certificate for 127.0.0.1 that signs itself ---- */

static bool add_name(X509 *cert, int nid, const char *value) {
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = extension && X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
    return ok;
}

static bool write_files(X509 *cert, EVP_PKEY *key) {
    FILE *cert_file = fopen(CERT, "w"), *key_file = fopen(KEY, "w");
    bool ok = cert_file && key_file && PEM_write_X509(cert_file, cert) &&
              PEM_write_PrivateKey(key_file, key, NULL, NULL, 0, NULL, NULL);
    if (cert_file)
        fclose(cert_file);
    if (key_file)
        fclose(key_file);
    return ok;
}

static bool make_certificate(void) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *) "links", -1, -1, 0);
    X509_set_issuer_name(cert, name);
    bool ok = add_name(cert, NID_subject_alt_name, "IP:127.0.0.1") && add_name(cert, NID_basic_constraints, "CA:TRUE") &&
              X509_sign(cert, key, EVP_sha256()) && write_files(cert, key);
    X509_free(cert);
    EVP_PKEY_free(key);
    return ok;
}

#define WITH_TLS .server_tls = {.cert = CERT, .key = KEY}, .client_tls = {.ca = CERT}

/* ---- stdin and stdout, connected to the server for a while ---- */

static int saved_in = -1, saved_out = -1;

static void plug_in_stdio(const weft_server *server) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", weft_server_url(server, 0) + strlen("unix:"));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(fd, (struct sockaddr *) &address, sizeof address), 0);
    fflush(stdout);
    saved_in = fcntl(0, F_DUPFD_CLOEXEC, 10);
    saved_out = fcntl(1, F_DUPFD_CLOEXEC, 10);
    dup2(fd, 0);
    dup2(fd, 1);
    close(fd);
}

static void unplug_stdio(void) {
    CHECK_INT(fcntl(0, F_GETFL) & O_NONBLOCK, 0); /* as we found it */
    dup2(saved_in, 0);
    dup2(saved_out, 1);
    close(saved_in);
    close(saved_out);
}

/* ---- pipes of a child that somebody else started ---- */

static pid_t piped = -1;

static void open_pipes(int ret_fds[2]) {
    int to[2], from[2];
    CHECK_INT(pipe2(to, O_CLOEXEC), 0);
    CHECK_INT(pipe2(from, O_CLOEXEC), 0);
    piped = fork();
    if (piped == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        execl("/proc/self/exe", "links", "--child", NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    fcntl(from[0], F_SETFL, O_NONBLOCK);
    fcntl(to[1], F_SETFL, O_NONBLOCK);
    ret_fds[0] = from[0];
    ret_fds[1] = to[1];
}

/* It ends because we closed what it reads. */
static void reap_piped(void) {
    CHECK_INT(waitpid(piped, NULL, 0), piped);
}

LINK_SUITE(mem, .listen = "mem:links")
LINK_SUITE(unix, .listen = "unix:build/tests/links.sock")
LINK_SUITE(content_length, .listen = "unix:build/tests/links.sock", .framing = &weft_content_length)
LINK_SUITE(tcp, .listen = "tcp://127.0.0.1:0")
LINK_SUITE(tls, .listen = "tls://127.0.0.1:0", WITH_TLS)
LINK_SUITE(ws, .listen = "ws://127.0.0.1:0/")
LINK_SUITE(wss, .listen = "wss://127.0.0.1:0/", WITH_TLS)
LINK_SUITE(http, .listen = "http://127.0.0.1:0/", .no_push = true, .lazy = true)
LINK_SUITE(https, .listen = "https://127.0.0.1:0/", .no_push = true, .lazy = true, WITH_TLS)
LINK_SUITE(exec, .connect = "exec:/proc/self/exe --child")
LINK_SUITE(fds, .open = open_pipes, .after = reap_piped)
LINK_SUITE(stdio, .listen = "unix:build/tests/links-stdio.sock", .connect = "stdio:", .once = true, .stays_open = true,
           .before = plug_in_stdio, .after = unplug_stdio)

/* ---- server-sent events ---- */

static void hear_events(const link_kind *kind) {
    link_scene s;
    link_begin(&s, kind);
    weft_connect_opts opts = {.events = true,
                              .data = &s,
                              .tls = kind->client_tls,
                              .on_state = link_on_state,
                              .on_notification = link_on_notification};
    CHECK_INT(weft_connect_on(s.loop, weft_server_url(s.server, 0), &opts, &s.peer, NULL), 0);
    /* Nobody is told before the client listens. */
    int told = 0;
    LINK_UNTIL(&s, told || (told = weft_server_broadcast(s.server, "news", WEFT_ARR(weft_int(11)), NULL, NULL)));
    LINK_UNTIL(&s, s.news == 1);
    CHECK_INT(s.news_value, 11);
    char *text = calloc(1, 100000);
    memset(text, 'e', 99999);
    weft_server_broadcast(s.server, "news", WEFT_ARR(weft_int(12), weft_str(text)), NULL, NULL);
    LINK_UNTIL(&s, s.news == 2);
    CHECK_INT(s.news_value, 12);
    free(text);
    link_end(&s);
}

TEST(events) {
    hear_events(&(link_kind){.name = "http", .listen = "http://127.0.0.1:0/"});
    hear_events(&(link_kind){.name = "https", .listen = "https://127.0.0.1:0/", WITH_TLS});
}

/* ---- what only some of them have ---- */

/* A certificate that nobody vouches for, or for another host. */
TEST(untrusted) {
    static const struct {
        const char *what;
        weft_tls_opts tls;
    } rows[] = {{"not signed by anybody known", {0}}, {"for another name", {.ca = CERT, .server_name = "example.org"}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        link_scene s;
        link_call call;
        link_kind kind = {.name = "tls", .listen = "tls://127.0.0.1:0", WITH_TLS};
        kind.client_tls = rows[i].tls;
        test_row(rows[i].what);
        link_begin(&s, &kind);
        CHECK_INT(link_connect(&s, false), 0);
        link_start(&s, "echo", weft_none(), &call, NULL);
        LINK_UNTIL(&s, s.closed);
        CHECK_INT(s.why, -EPROTO);
        CHECK(strstr(weft_peer_trouble(s.peer), "certificate"));
        CHECK_INT(call.times, 1);
        CHECK_INT(call.r, -ENOTCONN);
        CHECK_INT(s.connected, 0);
        link_end(&s);
    }
}

TEST(a_certificate_without_its_key) {
    weft_loop *loop;
    weft_peer *peer = NULL;
    weft_trouble trouble = {""};
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    weft_connect_opts opts = {.tls = {.ca = CERT, .cert = CERT}};
    CHECK_INT(weft_connect_on(loop, "tls://127.0.0.1:1", &opts, &peer, &trouble), -EINVAL);
    CHECK_STR(trouble.text, CERT ": there is no private key in it");
    weft_loop_free(loop);
}

/* Longer than the 107 bytes that a socket's address has room for. */
TEST(long_path) {
    char url[300];
    int n = snprintf(url, sizeof url, "unix:build/tests/");
    memset(url + n, 'l', 200);
    url[n + 200] = '\0';
    mkdir(url + strlen("unix:"), 0700);
    snprintf(url + n + 200, sizeof url - (size_t) n - 200, "/sock");
    link_kind kind = {.name = "unix", .listen = url};
    link_scene s;
    link_begin(&s, &kind);
    CHECK_INT(link_connect(&s, false), 0);
    link_calls(&s);
    link_end(&s);
}

/* A name with several addresses, of which only one answers. */
TEST(every_address) {
    link_scene s;
    char url[64];
    link_kind kind = {.name = "tcp", .listen = "tcp://127.0.0.1:0"};
    if (!test_needs_localhost())
        return;
    link_begin(&s, &kind);
    snprintf(url, sizeof url, "tcp://localhost%s", strrchr(weft_server_url(s.server, 0), ':'));
    kind.connect = url;
    CHECK_INT(link_connect(&s, false), 0);
    link_calls(&s);
    link_end(&s);
}

TEST(certificate) {
    CHECK(make_certificate());
}

LINK_MAIN(CASE(certificate) CASE(link_mem) CASE(link_unix) CASE(link_content_length) CASE(link_tcp) CASE(link_tls)
              CASE(link_ws) CASE(link_wss) CASE(link_http) CASE(link_https) CASE(link_exec) CASE(link_fds) CASE(link_stdio)
                  CASE(events) CASE(untrusted) CASE(a_certificate_without_its_key) CASE(long_path) CASE(every_address))

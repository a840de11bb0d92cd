/* Pairing: the end of a code by itself, the certificate, and the drawing of codes. */
#include <openssl/pem.h>
#include <qrencode.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "pair_private.h"
#include "qr_code.h"

static char folder[] = "/tmp/weft-pair-XXXXXX";

typedef struct door_world {
    weft_app app;
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    weft_serve_tokens tokens;
    weft_serve_pair *pair;
} door_world;

static int listen_plainly(void *ctx, const char *url, const weft_tls_opts *tls) {
    door_world *w = ctx;
    return weft_server_listen(w->server, url, &(weft_listen_opts){.tls = *tls, .tokens = w->tokens.tokens});
}

static void open_world(door_world *w) {
    *w = (door_world){.app = {.layout = &weft__layout_weft, .err = weft__screen(stderr), .out = weft__screen(stdout)}};
    w->app.err.file = fopen("/dev/null", "w");
    CHECK_INT(weft_loop_new(NULL, &w->loop), 0);
    weft_loop_set_now(w->loop, 1000000);
    CHECK_INT(weft_service_new(NULL, &w->service), 0);
    CHECK_INT(weft_server_new(w->loop, &(weft_server_opts){.service = w->service}, &w->server), 0);
    CHECK_INT(weft_server_login(w->server, NULL), 0);
    w->tokens.layout = w->app.layout;
    w->tokens.server = w->server;
    weft_serve_pair_opts opts = {.app = &w->app,
                                 .loop = w->loop,
                                 .server = w->server,
                                 .tokens = &w->tokens,
                                 .held = true,
                                 .token = true,
                                 .listen = listen_plainly,
                                 .ctx = w};
    CHECK_INT(weft__serve_pair_new(&opts, &w->pair), 0);
}

static void close_world(door_world *w) {
    weft_server_free(w->server);
    weft_service_unref(w->service);
    weft__serve_pair_free(w->pair);
    for (int i = 0; i < 4; i++)
        weft_loop_once(w->loop, false);
    weft_loop_free(w->loop);
    fclose(w->app.err.file);
}

static void pass_ms(const door_world *w, int64_t ms) {
    weft_loop_set_now(w->loop, weft_loop_now(w->loop) + ms);
    weft_loop_once(w->loop, false);
}

TEST(a_code_ends_by_itself) {
    door_world w;
    char code[WEFT_PAIR_CODE];
    open_world(&w);
    CHECK_INT(weft__pair_open(w.pair, "127.0.0.1", 0), 0);
    CHECK_INT(weft__pair_code(w.pair, code), 0);
    CHECK_INT((int) strlen(code), 32);
    pass_ms(&w, WEFT_PAIR_MS - 1);
    CHECK(w.pair->waiting && w.pair->open);
    pass_ms(&w, 1);
    CHECK(!w.pair->waiting && !w.pair->open); /* nobody came, so the door is closed too */
    /* With a device that was paired it stays. */
    CHECK_INT(weft__pair_open(w.pair, "127.0.0.1", 0), 0);
    CHECK_INT(weft__pair_code(w.pair, code), 0);
    w.pair->paired = 1;
    pass_ms(&w, WEFT_PAIR_MS);
    CHECK(!w.pair->waiting && w.pair->open);
    CHECK_INT(weft__pair_open(w.pair, "127.0.0.1", 0), 0);
    CHECK_INT(weft__pair_open(w.pair, "127.0.0.2", 0), -EBUSY);
    weft__pair_close(w.pair);
    CHECK(weft_server_url(w.server, 0) == NULL);
    close_world(&w);
}

TEST(where_it_was_open_is_remembered) {
    door_world w;
    char address[WEFT_LAN_ADDRESS];
    int port;
    open_world(&w);
    CHECK_INT(weft__pair_recall(w.pair, address, &port), -ENOENT);
    CHECK_INT(weft__pair_open(w.pair, "127.0.0.1", 0), 0);
    weft__pair_remember(w.pair, false);
    CHECK_INT(weft__pair_recall(w.pair, address, &port), 0);
    CHECK(strcmp(address, "127.0.0.1") == 0);
    CHECK_INT(port, w.pair->port);
    weft__pair_remember(w.pair, true);
    CHECK_INT(weft__pair_recall(w.pair, address, &port), -ENOENT);
    close_world(&w);
}

TEST(the_certificate) {
    char first[WEFT_FINGERPRINT], again[WEFT_FINGERPRINT], other[WEFT_FINGERPRINT];
    struct stat info;
    CHECK_INT(weft__pair_cert("cert.pem", "192.0.2.7", first), 0);
    CHECK_INT((int) strlen(first), 64);
    CHECK(stat("cert.pem", &info) == 0 && (info.st_mode & 0777) == 0600);
    CHECK_INT(weft__pair_cert("cert.pem", "192.0.2.7", again), 0);
    CHECK(strcmp(again, first) == 0);
    CHECK_INT(weft__pair_cert("cert.pem", "2001:db8::7", other), 0); /* another address, another certificate */
    CHECK(strcmp(other, first) != 0);
    CHECK_INT(weft__pair_cert("cert.pem", "example.org", other), -EINVAL);
    CHECK_INT(weft__pair_cert("missing/cert.pem", "192.0.2.7", other), -ENOENT);
    /* What is no certificate is replaced. */
    FILE *file = fopen("cert.pem", "w");
    fputs("nonsense", file);
    fclose(file);
    CHECK_INT(weft__pair_cert("cert.pem", "192.0.2.7", again), 0);
    CHECK(strcmp(again, first) != 0);
}

/* Read the half blocks back, and compare with what the library made. */
static bool drawn_dark(const weft_buf *drawn, int width, int x, int y) {
    const char *at = weft__buf_head(drawn);
    for (int i = 0; i < y / 2 * (width + 1) + x; i++)
        at += *at == ' ' || *at == '\n' ? 1 : 3;
    bool light = *at != ' ' && (at[2] == (char) 0x88 || (y % 2 == 0) == (at[2] == (char) 0x80));
    return !light;
}

TEST(a_drawn_code_is_the_code) {
    static const char text[] = "https://192.168.178.20:16443/pair?code=0123456789abcdef0123456789abcdef#sha256="
                               "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    weft_buf drawn = {0}, coloured = {0};
    QRcode *code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_L);
    int width = weft__qr_draw(text, false, &drawn), wrong = 0;
    CHECK_INT(width, code->width + 4);
    CHECK(width <= 76); /* it fits into 80 columns */
    for (int y = 0; y < width; y++)
        for (int x = 0; x < width; x++) {
            bool inside = x >= 2 && y >= 2 && x < width - 2 && y < width - 2;
            bool dark = inside && (code->data[(y - 2) * code->width + x - 2] & 1);
            wrong += drawn_dark(&drawn, width, x, y) != dark;
        }
    CHECK_INT(wrong, 0);
    CHECK_INT(weft__qr_draw(text, true, &coloured), width);
    CHECK(memmem(weft__buf_head(&coloured), weft__buf_len(&coloured), "\033[30;107m", 9) != NULL);
    char *long_text = calloc(1, 5001);
    memset(long_text, 'x', 5000);
    weft_buf none = {0};
    CHECK_INT(weft__qr_draw(long_text, false, &none), -E2BIG);
    free(long_text);
    QRcode_free(code);
    weft__buf_done(&drawn, NULL);
    weft__buf_done(&coloured, NULL);
    weft__buf_done(&none, NULL);
}

static void enter_folder(void) {
    static bool there;
    if (there)
        return;
    there = mkdtemp(folder) && chdir(folder) == 0 && mkdir(".weft", 0700) == 0 && mkdir("state", 0700) == 0 &&
            mkdir("state/weft", 0700) == 0;
    char state[128];
    snprintf(state, sizeof state, "%s/state", folder);
    setenv("XDG_STATE_HOME", state, 1);
}

TEST(in_a_folder_of_its_own) {
    enter_folder();
    CHECK(access(".weft", F_OK) == 0);
}

/* clang-format off */
TEST_MAIN(
    CASE(in_a_folder_of_its_own)
    CASE(a_code_ends_by_itself)
    CASE(where_it_was_open_is_remembered)
    CASE(the_certificate)
    CASE(a_drawn_code_is_the_code)
)

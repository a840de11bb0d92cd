/* gzip over HTTP, both ways: who gets it, what is refused, and bodies that unpack to far more than they are. */
#include <zlib.h>

#include "gzip.h"
#include "http_coding.h"
#include "net_world.h"

#define HOST "Host: localhost\r\n"
#define JSON "Content-Type: application/json\r\n"
#define CALL "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[1]}"

/* ---- the coder ---- */

static size_t pack(const char *data, size_t len, char *ret, size_t size) {
    z_stream z = {0};
    CHECK_INT(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *) (uintptr_t) data;
    z.avail_in = (unsigned) len;
    z.next_out = (Bytef *) ret;
    z.avail_out = (unsigned) size;
    CHECK_INT(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return size - z.avail_out;
}

TEST(there_and_back) {
    static char text[300000];
    weft_gzip *gzip;
    CHECK_INT(weft__gzip_new(NULL, &gzip), 0);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char) (i % 251 ^ i / 997);
    static const size_t sizes[] = {0, 1, 1000, 4095, 4096, 4097, 65536, sizeof text};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        weft_buf packed = {0}, back = {0};
        CHECK_INT(weft__gzip_pack(gzip, text, sizes[i], &packed), 0);
        CHECK_INT(weft__gzip_unpack(gzip, weft__buf_head(&packed), weft__buf_len(&packed), sizes[i], &back), 0);
        CHECK_INT(weft__buf_len(&back), sizes[i]);
        CHECK(sizes[i] == 0 || memcmp(weft__buf_head(&back), text, sizes[i]) == 0);
        /* One byte over the limit, and one byte less than whole. */
        if (sizes[i])
            CHECK_INT(weft__gzip_unpack(gzip, weft__buf_head(&packed), weft__buf_len(&packed), sizes[i] - 1, &back),
                      -EMSGSIZE);
        CHECK_INT(weft__gzip_unpack(gzip, weft__buf_head(&packed), weft__buf_len(&packed) - 1, sizes[i], &back), -EBADMSG);
        CHECK_INT(weft__buf_len(&back), sizes[i]); /* what was there stays */
        weft__buf_done(&packed, NULL);
        weft__buf_done(&back, NULL);
    }
    weft__gzip_free(gzip);
}

TEST(what_is_no_gzip) {
    static const char text[] = "some text, some text, some text";
    char packed[200], broken[201];
    weft_gzip *gzip;
    weft_buf out = {0};
    size_t len = pack(text, sizeof text, packed, sizeof packed);
    CHECK_INT(weft__gzip_new(NULL, &gzip), 0);
    for (size_t cut = 0; cut < len; cut++)
        CHECK_INT(weft__gzip_unpack(gzip, packed, cut, 1000, &out), -EBADMSG);
    for (size_t bit = 0; bit < len * 8; bit++) {
        memcpy(broken, packed, len);
        broken[bit / 8] ^= (char) (1 << bit % 8);
        int r = weft__gzip_unpack(gzip, broken, len, 1000, &out);
        CHECK(r == -EBADMSG || r == -EMSGSIZE || r == 0); /* gzip's head has bits that mean nothing */
        CHECK(r < 0 || (weft__buf_len(&out) == sizeof text && memcmp(weft__buf_head(&out), text, sizeof text) == 0));
        weft__buf_take(&out, NULL, weft__buf_len(&out));
    }
    memcpy(broken, packed, len);
    broken[len] = 'x';
    CHECK_INT(weft__gzip_unpack(gzip, broken, len + 1, 1000, &out), -EBADMSG);
    weft__buf_done(&out, NULL);
    weft__gzip_free(gzip);
}

TEST(without_memory) {
    for (long fail_at = 1;; fail_at++) {
        test_memory memory;
        weft_gzip *gzip = NULL;
        weft_buf packed = {0}, back = {0};
        static char text[20000];
        test_memory_init(&memory, fail_at);
        int r = weft__gzip_new(&memory.alloc, &gzip);
        if (r >= 0)
            r = weft__gzip_pack(gzip, text, sizeof text, &packed);
        if (r >= 0)
            r = weft__gzip_unpack(gzip, weft__buf_head(&packed), weft__buf_len(&packed), sizeof text, &back);
        CHECK(r == 0 || r == -ENOMEM);
        CHECK((r == 0) == (memory.count < fail_at));
        weft__buf_done(&packed, &memory.alloc);
        weft__buf_done(&back, &memory.alloc);
        weft__gzip_free(gzip);
        CHECK_INT(memory.live, 0);
        if (r == 0)
            break;
    }
}

/* ---- negotiating ---- */

TEST(who_accepts_it) {
    static const struct {
        const char *list;
        bool yes;
    } rows[] = {
        {"gzip", true},
        {"GZip", true},
        {"x-gzip", true},
        {"deflate, gzip, br", true},
        {"gzip;q=0.5", true},
        {"gzip; q=1.000", true},
        {"gzip;q=0", false},
        {"gzip ; Q=0.000", false},
        {"*", true},
        {"*;q=0", false},
        {"gzip;q=0, *", false},
        {"gzip, *;q=0", true},
        {"deflate", false},
        {"", false},
        {"identity", false},
        {"gzipped", false},
        {",,,gzip", true},
        {";q=0", false},
        {"br;q=1.0,gzip;q=0.001", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].list);
        CHECK_INT(weft__accepts_gzip((weft_bytes){rows[i].list, strlen(rows[i].list)}), rows[i].yes);
    }
    test_row(NULL);
    CHECK(!weft__accepts_gzip((weft_bytes){0}));
}

TEST(what_is_worth_it) {
    static const struct {
        const char *type, *extra;
        size_t len;
        bool yes;
    } rows[] = {
        {"application/json", NULL, 1024, true},
        {"application/json", NULL, 1023, false},
        {"text/html; charset=utf-8", NULL, 5000, true},
        {"image/svg+xml", NULL, 5000, true},
        {"text/javascript", NULL, 5000, true},
        {"text/event-stream", NULL, 5000, false},
        {"text/event-stream; charset=utf-8", NULL, 5000, false},
        {"image/png", NULL, 5000, false},
        {"application/octet-stream", NULL, 5000, false},
        {"application/json", "X: y\r\nContent-encoding: br\r\n", 5000, false},
        {NULL, NULL, 5000, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].type);
        CHECK_INT(weft__worth_gzip(rows[i].type, rows[i].extra, rows[i].len), rows[i].yes);
    }
    test_row(NULL);
}

/* ---- over the wire ---- */

static char content[4000];

static void send_content(weft_http *http, void *ctx) {
    (void) ctx;
    weft_http_answer_with(http,
                          &(weft_http_answer_opts){.type = "text/plain", .etag = "v", .body = {content, sizeof content}});
}

static void send_body_back(weft_http *http, void *ctx) {
    (void) ctx;
    weft_http_answer(http, 200, "text/plain", weft_http_body(http));
}

static world *gzip_world(void) {
    world *w = world_new(NULL, &(weft_limits){.max_body = 100000});
    CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", NULL), 0);
    CHECK_INT(weft_server_route(w->server, "GET", "/text", send_content, NULL), 0);
    CHECK_INT(weft_server_route(w->server, "POST", "/back", send_body_back, NULL), 0);
    memset(content, 'w', sizeof content);
    return w;
}

TEST(answers) {
    const char *body;
    weft_gzip *gzip;
    weft_buf out = {0};
    world *w = gzip_world();
    CHECK_INT(weft__gzip_new(NULL, &gzip), 0);
    CHECK_INT(world_http(w, 0, &body, "GET /text HTTP/1.1\r\n" HOST "\r\n"), 200);
    HAS(w, "Content-Length: 4000\r\n");
    HAS(w, "Vary: Accept-Encoding\r\n");
    CHECK(strstr(w->text, "Content-Encoding") == NULL);
    CHECK_INT(world_http(w, 0, &body, "GET /text HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n"), 200);
    HAS(w, "Content-Encoding: gzip\r\n");
    HAS(w, "ETag: W/\"v\"\r\n");
    size_t len = (size_t) (w->text + w->len - body);
    CHECK(len < 100);
    CHECK_INT(weft__gzip_unpack(gzip, body, len, sizeof content, &out), 0);
    CHECK(weft__buf_len(&out) == sizeof content && memcmp(weft__buf_head(&out), content, sizeof content) == 0);
    /* A short one, and HEAD. */
    CHECK_INT(world_http(w, 0, &body, "GET /health HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\n\r\n"), 200);
    CHECK_STR(body, "{\"status\":\"ok\"}");
    int fd = world_connect_tcp(w, 0);
    world_say(w, fd, "HEAD /text HTTP/1.1\r\n" HOST "Accept-Encoding: gzip\r\nConnection: close\r\n\r\n");
    CHECK_INT(world_read_all(w, fd), 0);
    HAS(w, "Content-Encoding: gzip\r\n");
    CHECK(strcmp(strstr(w->text, "\r\n\r\n"), "\r\n\r\n") == 0);
    close(fd);
    weft__buf_done(&out, NULL);
    weft__gzip_free(gzip);
    world_free(w);
}

static int post_packed(world *w, const char *path, const char *coding, const char *data, size_t len, bool chunked) {
    char head[300], tail[] = "\r\n0\r\n\r\n";
    const char *body;
    int fd = world_connect_tcp(w, 0);
    int n = chunked
                ? snprintf(head, sizeof head, "POST %s HTTP/1.1\r\n" HOST JSON "%sTransfer-Encoding: chunked\r\n\r\n%zx\r\n",
                           path, coding, len)
                : snprintf(head, sizeof head, "POST %s HTTP/1.1\r\n" HOST JSON "%sContent-Length: %zu\r\n\r\n", path, coding,
                           len);
    world_send(w, fd, head, (size_t) n);
    world_send(w, fd, data, len);
    if (chunked)
        world_send(w, fd, tail, sizeof tail - 1);
    int status = world_read_http(w, fd, &body);
    close(fd);
    return status;
}

TEST(requests) {
    static const char gzip[] = "Content-Encoding: gzip\r\n";
    char packed[500];
    world *w = gzip_world();
    size_t len = pack(CALL, sizeof CALL - 1, packed, sizeof packed);
    for (int chunked = 0; chunked < 2; chunked++) {
        CHECK_INT(post_packed(w, "/rpc", gzip, packed, len, chunked), 200);
        HAS(w, "\"result\":[1]");
        CHECK_INT(post_packed(w, "/back", "Content-Encoding: X-GZIP\r\n", packed, len, chunked), 200);
        HAS(w, CALL);
        CHECK_INT(post_packed(w, "/back", "Content-Encoding: identity\r\n", "plain", 5, chunked), 200);
        CHECK_INT(post_packed(w, "/rpc", gzip, packed, len - 1, chunked), 400);
        HAS(w, "badGzip");
        CHECK_INT(post_packed(w, "/back", gzip, "plain", 5, chunked), 400);
        CHECK_INT(post_packed(w, "/rpc", "Content-Encoding: br\r\n", packed, len, chunked), 415);
        HAS(w, "Accept-Encoding: gzip\r\n");
        CHECK_INT(post_packed(w, "/rpc", "Content-Encoding: gzip, gzip\r\n", packed, len, chunked), 415);
        CHECK_INT(post_packed(w, "/rpc", "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n", packed, len, chunked), 415);
    }
    CHECK_INT(post_packed(w, "/back", gzip, "", 0, false), 200); /* there is no body to unpack */
    world_free(w);
}

/* 100 MB of zeros in 100 kB, and exactly the limit. */
TEST(bombs) {
    static const char gzip[] = "Content-Encoding: gzip\r\n";
    size_t size = 100 * 1000 * 1000, room = 200000;
    char *zeros = calloc(1, size), *packed = malloc(room);
    world *w = gzip_world();
    size_t len = pack(zeros, size, packed, room);
    CHECK(len < 100000);
    CHECK_INT(post_packed(w, "/back", gzip, packed, len, false), 413);
    CHECK_INT(post_packed(w, "/rpc", gzip, packed, len, true), 413);
    len = pack(zeros, 100000, packed, room);
    CHECK_INT(post_packed(w, "/back", gzip, packed, len, false), 200);
    len = pack(zeros, 100001, packed, room);
    CHECK_INT(post_packed(w, "/back", gzip, packed, len, false), 413);
    free(zeros);
    free(packed);
    world_free(w);
}

/* clang-format off */
TEST_MAIN(
    CASE(there_and_back)
    CASE(what_is_no_gzip)
    CASE(without_memory)
    CASE(who_accepts_it)
    CASE(what_is_worth_it)
    CASE(answers)
    CASE(requests)
    CASE(bombs)
)

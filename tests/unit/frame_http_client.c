/* JSON-RPC by POST, the client's half: the bytes of a request, and every kind of answer. */
#include "http_client.h"

#include "lines.h"
#include "suites/framing.h"

static const weft_http_client_opts nobody = {.host = "h", .path = "/"};

/* ---- in the suite: somebody must write answers ---- */

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: "

typedef struct answerer {
    const weft_alloc *alloc;
    unsigned digits;
} answerer;

static int answerer_init(void *state, const weft_framing_opts *opts) {
    ((answerer *) state)->alloc = opts->alloc;
    return 0;
}

static int sized_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    answerer *self = state;
    return weft__sized_begin(out, self->alloc, (weft_bytes){ANSWER, sizeof ANSWER - 1}, hint, &self->digits, ret_mark);
}

static int sized_end(void *state, weft_buf *out, size_t mark) {
    answerer *self = state;
    return weft__sized_end(out, self->alloc, sizeof ANSWER - 1, self->digits, mark);
}

static const weft_framing sized_answers = {
    .name = "answers", .state_size = sizeof(answerer), .init = answerer_init, .begin = sized_begin, .end = sized_end};

static int chunks_begin(void *state, weft_buf *out, size_t hint, size_t *ret_mark) {
    (void) state, (void) hint;
    *ret_mark = weft__buf_len(out);
    return 0;
}

/* In chunks of 1, 2, 4 ... 65536 bytes, some with an extension. */
static int chunks_end(void *state, weft_buf *out, size_t mark) {
    answerer *self = state;
    size_t len = weft__buf_len(out) - mark;
    weft_buf framed = {0};
    char line[80];
    int r = weft__buf_put(&framed, self->alloc, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 47);
    for (size_t pos = 0, size = 1, chunk; r >= 0 && pos < len; pos += chunk, size = size < 65536 ? size * 2 : 1) {
        chunk = size < len - pos ? size : len - pos;
        int n = snprintf(line, sizeof line, "%zx%s\r\n", chunk, size & 0x55 ? ";a=b" : "");
        r = weft__buf_put(&framed, self->alloc, line, (size_t) n);
        if (r >= 0)
            r = weft__buf_put(&framed, self->alloc, weft__buf_head(out) + mark + pos, chunk);
        if (r >= 0)
            r = weft__buf_put(&framed, self->alloc, "\r\n", 2);
    }
    if (r >= 0)
        r = weft__buf_put(&framed, self->alloc, "0\r\nTrailer: x\r\n\r\n", 17);
    out->end = out->start + mark;
    if (r >= 0)
        r = weft__buf_put(out, self->alloc, weft__buf_head(&framed), weft__buf_len(&framed));
    weft__buf_done(&framed, self->alloc);
    return r;
}

static const weft_framing chunked_answers = {
    .name = "chunks", .state_size = sizeof(answerer), .init = answerer_init, .begin = chunks_begin, .end = chunks_end};

FRAMING_SUITE(sized, .out = &sized_answers, .in = &weft__http_client, .in_opts = {.extra = &nobody})
FRAMING_SUITE(chunked, .out = &chunked_answers, .in = &weft__http_client, .in_opts = {.extra = &nobody})

/* ---- requests ---- */

TEST(requests) {
    static const struct {
        const char *name;
        weft_http_client_opts opts;
        const char *want;
    } rows[] = {
        {"plain",
         {"127.0.0.1:8080", "/rpc?a=b", NULL},
         "POST /rpc?a=b HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n"
         "Accept: application/json, text/event-stream\r\nContent-Length: 2\r\n\r\n{}"},
        {"with a token",
         {"[::1]:80", "/", "s3cret"},
         "POST / HTTP/1.1\r\nHost: [::1]:80\r\nContent-Type: application/json\r\nAccept: application/json, "
         "text/event-stream\r\n"
         "Authorization: Bearer s3cret\r\nContent-Length: 2\r\n\r\n{}"},
        {"with headers",
         {"h", "/", "t", .more = "X-A: 1\r\nX-B: 2\r\n"},
         "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
         "Authorization: Bearer t\r\nX-A: 1\r\nX-B: 2\r\nContent-Length: 2\r\n\r\n{}"},
        {"with an empty token",
         {"h", "/", ""},
         "POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
         "Content-Length: 2\r\n\r\n{}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        framing_writer writer;
        test_row(rows[i].name);
        framing_pair pair = {.out = &weft__http_client, .out_opts = {.extra = &rows[i].opts}};
        CHECK_INT(framing_writer_init(&writer, &pair, NULL), 0);
        CHECK_INT(framing_write(&writer, "{}", 2, 200), 0);
        CHECK_TEXT(weft__buf_head(&writer.out), weft__buf_len(&writer.out), rows[i].want);
        framing_writer_done(&writer);
    }
}

TEST(nothing_is_smuggled_into_a_head) {
    static const struct {
        const char *name;
        weft_http_client_opts opts;
    } rows[] = {
        {"a line break in the path", {"h", "/\r\nX: y", NULL}},
        {"a blank in the path", {"h", "/a b", NULL}},
        {"a path without a slash", {"h", "rpc", NULL}},
        {"no path", {"h", NULL, NULL}},
        {"a line break in the host", {"h\r\nX: y", "/", NULL}},
        {"a path in the host", {"h/x", "/", NULL}},
        {"no host", {NULL, "/", NULL}},
        {"an empty host", {"", "/", NULL}},
        {"a line break in the token", {"h", "/", "a\r\nX: y"}},
        {"a bare LF in the token", {"h", "/", "a\nX: y"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        framing_writer writer;
        test_row(rows[i].name);
        framing_pair pair = {.out = &weft__http_client, .out_opts = {.extra = &rows[i].opts}};
        CHECK_INT(framing_writer_init(&writer, &pair, NULL), -EINVAL);
        framing_writer_done(&writer);
    }
    test_row("nothing at all");
    framing_writer writer;
    CHECK_INT(framing_writer_init(&writer, &(framing_pair){.out = &weft__http_client}, NULL), -EINVAL);
    framing_writer_done(&writer);
}

TEST(requests_without_memory) {
    framing_pair pair = {.out = &weft__http_client, .out_opts = {.extra = &nobody}};
    int r = -ENOMEM;
    long fail_at;
    for (fail_at = 1; r == -ENOMEM && fail_at < 100; fail_at++) {
        test_memory memory;
        framing_writer writer;
        test_memory_init(&memory, fail_at);
        r = framing_writer_init(&writer, &pair, &memory.alloc);
        if (r >= 0)
            r = framing_write(&writer, "{}", 2, 10000);
        framing_writer_done(&writer);
        CHECK_INT(memory.live, 0);
    }
    CHECK_INT(r, 0);
    CHECK(fail_at > 2);
}

/* ---- answers ---- */

#define LEN(n) "Content-Length: " #n "\r\n\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n\r\n"
#define EVENTS "Content-Type: text/event-stream; charset=utf-8\r\n"
#define RPC "{\"jsonrpc\":\"2.0\",\"error\":1}"

typedef struct scene {
    const char *name;
    const char *in;
    const char *want; /* bodies in angle brackets; then an error, decode()'s or finish()'s */
    int status;
    size_t max_body; /* 0: 1000 */
} scene;

static const char *error_name(int r) {
    return r == -EPROTO ? "!EPROTO" : r == -EACCES ? "!EACCES" : r < 0 ? "!other" : "";
}

static void describe(char *text, size_t size, const framing_reader *reader, int r) {
    size_t at = 0;
    text[0] = '\0';
    for (size_t pos = 0, len; pos < weft__buf_len(&reader->log); pos += 1 + sizeof len + len) {
        const char *entry = weft__buf_head(&reader->log) + pos;
        memcpy(&len, entry + 1, sizeof len);
        bool large = entry[0] == WEFT_FRAME_TOO_LARGE;
        at += (size_t) snprintf(text + at, size - at, "<%.*s>", large ? 9 : (int) len,
                                large ? "too large" : entry + 1 + sizeof len);
    }
    snprintf(text + at, size - at, "%s", error_name(r));
}

static void run(const scene *row, size_t split, size_t step) {
    framing_pair pair = {.in = &weft__http_client, .in_opts = {.extra = &nobody}};
    framing_reader reader;
    size_t len = strlen(row->in);
    CHECK_INT(framing_reader_init(&reader, &pair, NULL, row->max_body ? row->max_body : 1000), 0);
    reader.moving = true;
    for (size_t pos = 0, n; pos < len && reader.r >= 0; pos += n) {
        n = pos == 0 && split ? split : step;
        if (n > len - pos)
            n = len - pos;
        framing_feed(&reader, row->in + pos, n);
    }
    size_t used = 0;
    weft_frame frame = {0};
    int r = reader.r;
    if (r >= 0) {
        r = pair.in->finish(reader.state, reader.left, reader.left_len, reader.max_body, &used, &frame);
        if (r > 0)
            framing_keep(&reader, &frame);
    }
    char text[512];
    describe(text, sizeof text, &reader, r);
    CHECK_TEXT(text, strlen(text), row->want);
    CHECK_INT(weft__http_client_status(reader.state), row->status);
    framing_reader_done(&reader);
}

TEST(answers) {
    static const scene rows[] = {
        {"nothing", "", "", 0, 0},
        {"with a length", "HTTP/1.1 200 OK\r\n" LEN(2) "{}", "<{}>", 200, 0},
        {"two", "HTTP/1.1 200 OK\r\n" LEN(2) "{}HTTP/1.1 200 OK\r\n" LEN(1) "1", "<{}><1>", 200, 0},
        {"chunked", "HTTP/1.1 200 OK\r\n" CHUNKED "1\r\n{\r\n1;x\r\n}\r\n0\r\nA: b\r\n\r\n", "<{}>", 200, 0},
        {"chunked, then with a length", "HTTP/1.1 200 OK\r\n" CHUNKED "2\r\n{}\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n" LEN(1) "1",
         "<{}><1>", 200, 0},
        {"until the end", "HTTP/1.1 200 OK\r\n\r\n{\"a\":1}", "<{\"a\":1}>", 200, 0},
        {"until the end, HTTP/1.0", "HTTP/1.0 200 OK\r\nServer: x\r\n\r\n[]", "<[]>", 200, 0},
        {"until the end, empty", "HTTP/1.1 200 OK\r\n\r\n", "", 200, 0},
        {"HTTP/1.0 that stays", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" LEN(2) "{}HTTP/1.0 200 OK\r\n" LEN(1) "1",
         "<{}><1>", 200, 0},
        {"201 is fine too", "HTTP/1.1 201 Created\r\n" LEN(2) "{}", "<{}>", 201, 0},
        {"204", "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\n" LEN(2) "{}", "<{}>", 200, 0},
        {"204 that names a length", "HTTP/1.1 204 No Content\r\n" LEN(5) "HTTP/1.1 200 OK\r\n" LEN(2) "{}", "<{}>", 200, 0},
        {"204 at the end", "HTTP/1.1 204 No Content\r\n\r\n", "", 204, 0},
        {"202", "HTTP/1.1 202 Accepted\r\n" LEN(0) "HTTP/1.1 202 Accepted\r\n" LEN(8) "Accepted", "", 202, 0},
        {"200 without a body", "HTTP/1.1 200 OK\r\n" LEN(0) "HTTP/1.1 200 OK\r\n" LEN(2) "{}", "<{}>", 200, 0},
        {"200 with blanks", "HTTP/1.1 200 OK\r\n" LEN(2) "\r\n", "", 200, 0},
        {"an empty chunked body", "HTTP/1.1 200 OK\r\n" CHUNKED "0\r\n\r\n", "", 200, 0},
        {"100 before", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n" LEN(2) "{}", "<{}>",
         200, 0},
        {"400 in JSON-RPC", "HTTP/1.1 400 Bad Request\r\n" LEN(27) RPC, "<" RPC ">", 400, 0},
        {"500 in a batch", "HTTP/1.1 500 x\r\n" LEN(30) " [" RPC "]", "< [" RPC "]>", 500, 0},
        {"401 in JSON-RPC", "HTTP/1.1 401 x\r\n" LEN(27) RPC, "<" RPC ">", 401, 0},
        {"500 until the end", "HTTP/1.1 500 x\r\n\r\n" RPC, "<" RPC ">", 500, 0},
        {"500 in HTML", "HTTP/1.1 500 x\r\n" LEN(6) "<html>", "!EPROTO", 500, 0},
        {"500 in other JSON", "HTTP/1.1 500 x\r\n" LEN(11) "{\"error\":1}", "!EPROTO", 500, 0},
        {"404 without a body", "HTTP/1.1 404 x\r\n" LEN(0), "!EPROTO", 404, 0},
        {"404 until the end", "HTTP/1.1 404 x\r\n\r\nnot here", "!EPROTO", 404, 0},
        {"404 in chunks", "HTTP/1.1 404 x\r\n" CHUNKED "2\r\nno\r\n0\r\n\r\n", "!EPROTO", 404, 0},
        {"302", "HTTP/1.1 302 x\r\nLocation: /\r\n" LEN(0), "!EPROTO", 302, 0},
        {"304", "HTTP/1.1 304 x\r\n\r\n", "!EPROTO", 304, 0},
        {"401", "HTTP/1.1 401 x\r\n" LEN(2) "no", "!EACCES", 401, 0},
        {"403 in other JSON", "HTTP/1.1 403 x\r\n" LEN(2) "{}", "!EACCES", 403, 0},
        {"101", "HTTP/1.1 101 x\r\n\r\n", "!EPROTO", 101, 0},
        {"closes", "HTTP/1.1 200 OK\r\nConnection: close\r\n" LEN(2) "{}", "<{}>", 200, 0},
        {"closes and goes on", "HTTP/1.1 200 OK\r\nConnection: close\r\n" LEN(2) "{}HTTP/1.1", "<{}>!EPROTO", 200, 0},
        {"malformed", "HTTP/1.1 200 OK\n\n", "!EPROTO", 0, 0},
        {"not HTTP", "{\"jsonrpc\":\"2.0\"}\n", "!EPROTO", 0, 0},
        {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n" LEN(2) "{}", "!EPROTO", 0, 0},
        {"an unknown coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "!EPROTO", 0, 0},
        {"a broken chunk", "HTTP/1.1 200 OK\r\n" CHUNKED "x\r\n", "!EPROTO", 200, 0},
        {"ends in a head", "HTTP/1.1 200", "!EPROTO", 0, 0},
        {"ends in a body", "HTTP/1.1 200 OK\r\n" LEN(3) "{}", "!EPROTO", 200, 0},
        {"ends in a chunk", "HTTP/1.1 200 OK\r\n" CHUNKED "3\r\n{}", "!EPROTO", 200, 0},
        {"just as long as allowed", "HTTP/1.1 200 OK\r\n" LEN(4) "1234", "<1234>", 200, 4},
        {"too large", "HTTP/1.1 200 OK\r\n" LEN(5) "12345HTTP/1.1 200 OK\r\n" LEN(1) "1", "<too large><1>", 200, 4},
        {"chunks just as long as allowed", "HTTP/1.1 200 OK\r\n" CHUNKED "2\r\n12\r\n2\r\n34\r\n0\r\n\r\n", "<1234>", 200,
         4},
        {"chunks too large",
         "HTTP/1.1 200 OK\r\n" CHUNKED "2\r\n12\r\n3\r\n345\r\n1\r\n6\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n" LEN(1) "1",
         "<too large><1>", 200, 4},
        {"too large until the end", "HTTP/1.1 200 OK\r\n\r\n12345678", "<too large>", 200, 4},
        {"a page too large", "HTTP/1.1 500 x\r\n" LEN(5) "12345", "<too large>", 500, 4},
        {"events", "HTTP/1.1 200 OK\r\n" EVENTS CHUNKED "9\r\ndata: {}\n\r\n1\r\n\n\r\n0\r\n\r\n", "<{}>", 200, 0},
        {"two events in one chunk, an answer behind",
         "HTTP/1.1 200 OK\r\n" EVENTS CHUNKED "16\r\ndata: [1]\n\ndata:[2]\n\n\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n" LEN(1) "3",
         "<[1]><[2]><3>", 200, 0},
        {"one event over many chunks",
         "HTTP/1.1 200 OK\r\n" EVENTS CHUNKED "3\r\ndat\r\n4\r\na: [\r\n2\r\n1]\r\n1\r\n\r\r\n3\r\n\n\r\n\r\n0\r\n\r\n",
         "<[1]>", 200, 0},
        {"events with a length",
         "HTTP/1.1 200 OK\r\n" EVENTS LEN(22) "data: [1]\n\ndata: [2]\n\nHTTP/1.1 200 OK\r\n" LEN(1) "3", "<[1]><[2]><3>",
         200, 0},
        {"events until the end", "HTTP/1.1 200 OK\r\n" EVENTS "\r\ndata: [1]\n\nid: 7\ndata: [2]\n\ndata: [3]\n",
         "<[1]><[2]>", 200, 0},
        {"events with CR, fields and comments",
         "HTTP/1.1 200 OK\r\n" EVENTS LEN(52) ": hi\r\revent: x\rid: 1\rdata: [1,\rdata: 2]\r\rdata:\r\r:\r\r\r",
         "<[1,\n2]>", 200, 0},
        {"no events", "HTTP/1.1 200 OK\r\n" EVENTS CHUNKED "0\r\n\r\nHTTP/1.1 200 OK\r\n" LEN(1) "3", "<3>", 200, 0},
        {"events of none", "HTTP/1.1 204 x\r\n" EVENTS "\r\nHTTP/1.1 200 OK\r\n" LEN(1) "3", "<3>", 200, 0},
        {"events as a refusal", "HTTP/1.1 500 x\r\n" EVENTS LEN(9) "data: 1\n\n", "!EPROTO", 500, 0},
        {"an event just as long as allowed", "HTTP/1.1 200 OK\r\n" EVENTS LEN(12) "data: 1234\n\n", "<1234>", 200, 4},
        {"an event too large, and what follows it",
         "HTTP/1.1 200 OK\r\n" EVENTS CHUNKED "16\r\ndata: 12345\n\ndata: 1\n\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n" LEN(1) "3",
         "<too large><3>", 200, 4},
        {"events cut off", "HTTP/1.1 200 OK\r\n" EVENTS CHUNKED "b\r\ndata: [1]\n\n\r\n5\r\nda", "<[1]>!EPROTO", 200, 0},
        {"events in a broken chunk", "HTTP/1.1 200 OK\r\n" EVENTS CHUNKED "x\r\n", "!EPROTO", 200, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].in);
        test_row(rows[i].name);
        run(&rows[i], 0, len);
        run(&rows[i], 0, 1);
        for (size_t split = 1; split < len; split++)
            run(&rows[i], split, len);
    }
}

/* What the head says is told to whoever provides the memory. */
TEST(says_what_it_needs) {
    char in[128 + WEFT_SLACK] = "HTTP/1.1 200 OK\r\n" LEN(300) "{";
    framing_reader reader;
    weft_frame frame = {0};
    size_t used, head = strlen(in) - 1;
    CHECK_INT(
        framing_reader_init(&reader, &(framing_pair){.in = &weft__http_client, .in_opts = {.extra = &nobody}}, NULL, 1), 0);
    CHECK_INT(weft__http_client.decode(reader.state, in, head + 1, 1000, &used, &frame), 0);
    CHECK_INT(used, head);
    CHECK_INT(frame.len, 300);
    framing_reader_done(&reader);
}

/* A body in tiny chunks with long extensions keeps twice its size, not two hundred times. */
TEST(chunks_do_not_pile_up) {
    framing_pair pair = {.in = &weft__http_client, .in_opts = {.extra = &nobody}, .overhead = 4096 + 512};
    framing_reader reader;
    char chunk[256], body[1000];
    weft_buf want = {0};
    CHECK_INT(framing_reader_init(&reader, &pair, NULL, sizeof body), 0);
    framing_feed(&reader, "HTTP/1.1 200 OK\r\n" CHUNKED, strlen("HTTP/1.1 200 OK\r\n" CHUNKED));
    for (size_t i = 0; i < sizeof body; i++) {
        body[i] = (char) ('a' + i * 7 % 26);
        framing_feed(&reader, chunk, (size_t) snprintf(chunk, sizeof chunk, "1;%0200d\r\n%c\r\n", 0, body[i]));
    }
    framing_feed(&reader, "0\r\n\r\n", 5);
    framing_log(&want, WEFT_FRAME_BODY, body, sizeof body);
    framing_check_log(&reader, &want);
    weft__buf_done(&want, NULL);
    framing_reader_done(&reader);
}

TEST_MAIN(CASE(framing_sized) CASE(framing_chunked) CASE(requests) CASE(nothing_is_smuggled_into_a_head)
              CASE(requests_without_memory) CASE(answers) CASE(says_what_it_needs) CASE(chunks_do_not_pile_up))

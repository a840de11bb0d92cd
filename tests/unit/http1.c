/* HTTP/1.1 heads: what is read, and what is refused because somebody else might read it differently. */
#include "http1.h"

#include <errno.h>
#include <stdlib.h>

#include "harness.h"

#define GET "GET / HTTP/1.1\r\nHost: h\r\n"
#define POST "POST / HTTP/1.1\r\nHost: h\r\n"
#define OK "HTTP/1.1 200 OK\r\n"
#define END "\r\n"

typedef int parser(const char *data, size_t len, weft_http_head *ret);

typedef struct scene {
    const char *name;
    const char *in;
    int want; /* 0: the whole of in is one head; otherwise the error */
} scene;

/* In memory of exactly this size, so that a sanitizer sees every byte read too many. */
static int parse(parser *run, const char *in, size_t len, weft_http_head *head) {
    char *copy = malloc(len ? len : 1);
    memcpy(copy, in, len);
    int r = run(copy, len, head);
    free(copy);
    return r;
}

/* Whole, with more behind it, and each beginning of it: incomplete, or refused already and for the same reason. */
static void run_rows(parser *run, const scene *rows, size_t count) {
    weft_http_head head;
    for (size_t i = 0; i < count; i++) {
        char more[1024];
        size_t len = strlen(rows[i].in);
        int want = rows[i].want ? rows[i].want : (int) len;
        test_row(rows[i].name);
        CHECK_INT(parse(run, rows[i].in, len, &head), want);
        int n = snprintf(more, sizeof more, "%s%s", rows[i].in, "GET / HTTP/1.1\r\n\r\n");
        CHECK_INT(parse(run, more, (size_t) n, &head), want);
        for (size_t part = 0; part < len; part++) {
            int r = parse(run, rows[i].in, part, &head);
            CHECK(r == 0 || r == rows[i].want);
        }
    }
}
#define RUN(run, rows) run_rows(run, rows, sizeof(rows) / sizeof(rows)[0])

TEST(requests) {
    static const scene rows[] = {
        {"the least", GET END, 0},
        {"HTTP/1.0 needs no Host", "GET / HTTP/1.0\r\n\r\n", 0},
        {"a target with a query", "GET /a/b?c=d&e HTTP/1.1\r\nHost: h\r\n\r\n", 0},
        {"an absolute target", "GET http://h:80/a HTTP/1.1\r\nHost: H:80\r\n\r\n", 0},
        {"an absolute target without a path", "GET HTTPS://h HTTP/1.1\r\nHost: h\r\n\r\n", 0},
        {"the whole server", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", 0},
        {"any method", "M-SEARCH!#$%&'*+.^_`|~09 / HTTP/1.1\r\nHost: h\r\n\r\n", 0},
        {"an empty line before", "\r\n" GET END, 0},
        {"an empty value", GET "A:\r\n" END, 0},
        {"a value of blanks", GET "A: \t \r\n" END, 0},
        {"blanks around a value", GET "A: \t b \t \r\n" END, 0},
        {"a value with tabs and UTF-8", GET "A: b\tc \xc3\xa4\r\n" END, 0},
        {"a long value with tabs", GET "A: 0123456789abcdef\t0123456789abcdef\tx\r\n" END, 0},
        {"a colon in a value", GET "A::b\r\n" END, 0},
        {"an empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 0},
        {"a Host of IPv6", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 0},
        {"a length", POST "Content-Length: 5\r\n" END, 0},
        {"a length of nothing", POST "Content-Length: 0\r\n" END, 0},
        {"leading zeros", POST "Content-Length: 0000000000000000000000000000000005\r\n" END, 0},
        {"the largest length", POST "Content-Length: 9223372036854775807\r\n" END, 0},
        {"chunked", POST "Transfer-Encoding: chunked\r\n" END, 0},
        {"chunked in capitals", POST "TRANSFER-ENCODING: Chunked\r\n" END, 0},

        {"bare LF everywhere", "GET / HTTP/1.1\nHost: h\n\n", -EBADMSG},
        {"bare LF behind the first line", "GET / HTTP/1.1\nHost: h\r\n\r\n", -EBADMSG},
        {"bare LF behind a header", "GET / HTTP/1.1\r\nHost: h\n\r\n", -EBADMSG},
        {"bare LF at the end", GET "\n", -EBADMSG},
        {"bare CR in the first line", "GET /\r HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"bare CR in a value", GET "A: b\rc\r\n" END, -EBADMSG},
        {"bare CR before CRLF", GET "A: b\r\r\n" END, -EBADMSG},
        {"bare CR for a line", GET "A: b\rB: c\r\n" END, -EBADMSG},
        {"bare CR at the end", GET "\rX", -EBADMSG},
        {"two empty lines before", "\r\n\r\n" GET END, -EBADMSG},
        {"a bare LF before", "\n" GET END, -EBADMSG},
        {"a folded line", GET "A: b\r\n c\r\n" END, -EBADMSG},
        {"a folded line with a tab", GET "A: b\r\n\tc\r\n" END, -EBADMSG},
        {"a folded first header", "GET / HTTP/1.1\r\n Host: h\r\n\r\n", -EBADMSG},
        {"a blank before the colon", GET "A : b\r\n" END, -EBADMSG},
        {"a tab before the colon", GET "A\t: b\r\n" END, -EBADMSG},
        {"no name", GET ": b\r\n" END, -EBADMSG},
        {"no colon", GET "A\r\n" END, -EBADMSG},
        {"a name that is no token", GET "A(b: c\r\n" END, -EBADMSG},
        {"a name with a NUL's neighbour", GET "A\x01: c\r\n" END, -EBADMSG},
        {"a name with UTF-8", GET "\xc3\xa4: c\r\n" END, -EBADMSG},
        {"a control in a value", GET "A: b\x01\r\n" END, -EBADMSG},
        {"a control in a long value",
         GET "A: 0123456789abcdef0123\x1f"
             "456789abcdef\r\n" END,
         -EBADMSG},
        {"DEL in a value", GET "A: b\x7f\r\n" END, -EBADMSG},
        {"DEL in a long value",
         GET "A: 0123456789abcdef\x7f"
             "0123456789abcdef\r\n" END,
         -EBADMSG},

        {"no target", "GET HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"two blanks", "GET  / HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"two blanks before the version", "GET /  HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"a tab for a blank", "GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"a blank in the target", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"a blank behind the version", "GET / HTTP/1.1 \r\nHost: h\r\n\r\n", -EBADMSG},
        {"a blank before the method", " GET / HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"a method that is no token", "GE(T / HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"a control in the target", "GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"UTF-8 in the target", "GET /\xc3\xa4 HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"a fragment", "GET /#a HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"a target without a slash", "GET a HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"a star with another method", "GET * HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"a star in lower case", "options * HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"an authority", "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", -EBADMSG},
        {"another scheme", "GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"an absolute target of nobody", "GET http:///a HTTP/1.1\r\nHost:\r\n\r\n", -EBADMSG},
        {"an absolute target of another host", "GET http://g/ HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"an absolute target of a longer host", "GET http://h.g/ HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"an absolute target with a user", "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"HTTP/0.9", "GET /\r\nHost: h\r\n\r\n", -EBADMSG},
        {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: h\r\n\r\n", -ENOTSUP},
        {"HTTP/2.0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", -ENOTSUP},
        {"HTTP/0.9 spelled out", "GET / HTTP/0.9\r\n\r\n", -ENOTSUP},
        {"HTTP/1.10", "GET / HTTP/1.10\r\nHost: h\r\n\r\n", -EBADMSG},
        {"HTTP/1", "GET / HTTP/1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"http in lower case", "GET / http/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"another protocol", "GET / HTTQ/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"TLS on the wrong port", "\x16\x03\x01", -EBADMSG},

        {"no Host", "GET / HTTP/1.1\r\n\r\n", -EBADMSG},
        {"two Hosts", GET "Host: h\r\n" END, -EBADMSG},
        {"two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: h\r\nhost: h\r\n\r\n", -EBADMSG},
        {"a list of Hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", -EBADMSG},
        {"a Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", -EBADMSG},
        {"a Host with a user", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", -EBADMSG},
        {"a Host with a blank", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", -EBADMSG},
        {"a Host that is not ASCII", "GET / HTTP/1.1\r\nHost: \xc3\xa4\r\n\r\n", -EBADMSG},
    };
    RUN(weft__http_request, rows);
}

/* What is known to have carried one request inside another. */
TEST(smuggling) {
    static const scene rows[] = {
        {"CL.TE", POST "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n" END, -EBADMSG},
        {"TE.CL", POST "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n" END, -EBADMSG},
        {"CL.TE with an unknown coding", POST "Content-Length: 6\r\nTransfer-Encoding: x\r\n" END, -EBADMSG},
        {"TE.TE, the second unknown", POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n" END, -ENOSYS},
        {"TE.TE, the first unknown", POST "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n" END, -ENOSYS},
        {"TE.TE, twice", POST "Transfer-Encoding: chunked\r\nTransfer-encoding: chunked\r\n" END, -EBADMSG},
        {"xchunked", POST "Transfer-Encoding: xchunked\r\n" END, -ENOSYS},
        {"chunked in quotes", POST "Transfer-Encoding: \"chunked\"\r\n" END, -ENOSYS},
        {"chunked with a parameter", POST "Transfer-Encoding: chunked;a=b\r\n" END, -ENOSYS},
        {"chunked behind another", POST "Transfer-Encoding: gzip, chunked\r\n" END, -ENOSYS},
        {"chunked before another", POST "Transfer-Encoding: chunked, gzip\r\n" END, -ENOSYS},
        {"chunked twice in a list", POST "Transfer-Encoding: chunked, chunked\r\n" END, -ENOSYS},
        {"chunked and nothing", POST "Transfer-Encoding: chunked,\r\n" END, -ENOSYS},
        {"identity", POST "Transfer-Encoding: identity\r\n" END, -ENOSYS},
        {"no coding", POST "Transfer-Encoding:\r\n" END, -EBADMSG},
        {"a vertical tab before chunked",
         POST "Transfer-Encoding: \x0b"
              "chunked\r\n" END,
         -EBADMSG},
        {"a blank before the colon", POST "Transfer-Encoding : chunked\r\n" END, -EBADMSG},
        {"a blank before the name", POST " Transfer-Encoding: chunked\r\n" END, -EBADMSG},
        {"the value on the next line", POST "Transfer-Encoding:\r\n chunked\r\n" END, -EBADMSG},
        {"behind a bare LF", POST "X: x\nTransfer-Encoding: chunked\r\n" END, -EBADMSG},
        {"behind a bare CR", POST "X: x\rTransfer-Encoding: chunked\r\n" END, -EBADMSG},
        {"a name that continues", POST "Transfer-Encoding\x01: chunked\r\n" END, -EBADMSG},
        {"in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", -EBADMSG},

        {"two lengths", POST "Content-Length: 5\r\nContent-Length: 6\r\n" END, -EBADMSG},
        {"the same length twice", POST "Content-Length: 5\r\nContent-Length: 5\r\n" END, -EBADMSG},
        {"a list of lengths", POST "Content-Length: 5, 5\r\n" END, -EBADMSG},
        {"a list of lengths without blanks", POST "Content-Length: 5,5\r\n" END, -EBADMSG},
        {"a length with a plus", POST "Content-Length: +5\r\n" END, -EBADMSG},
        {"a length with a minus", POST "Content-Length: -5\r\n" END, -EBADMSG},
        {"a length with a blank", POST "Content-Length: 5 5\r\n" END, -EBADMSG},
        {"a length in hexadecimal", POST "Content-Length: 0x5\r\n" END, -EBADMSG},
        {"a length with an underscore", POST "Content-Length: 1_0\r\n" END, -EBADMSG},
        {"a length with an exponent", POST "Content-Length: 1e1\r\n" END, -EBADMSG},
        {"a length in other digits", POST "Content-Length: \xd9\xa5\r\n" END, -EBADMSG},
        {"no length", POST "Content-Length:\r\n" END, -EBADMSG},
        {"2^63", POST "Content-Length: 9223372036854775808\r\n" END, -EBADMSG},
        {"2^64 + 5", POST "Content-Length: 18446744073709551621\r\n" END, -EBADMSG},
        {"a length on the next line", POST "Content-Length:\r\n 5\r\n" END, -EBADMSG},
        {"a blank before the length's colon", POST "Content-Length : 5\r\n" END, -EBADMSG},

        {"CRLF in the target", "GET /\r\nX: y HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"LF in the target", "GET /\nX HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"CRLF in the method", "GET\r\n / HTTP/1.1\r\nHost: h\r\n\r\n", -EBADMSG},
        {"a request in a value", GET "A: b\n\nGET /x HTTP/1.1\r\n" END, -EBADMSG},
    };
    RUN(weft__http_request, rows);
}

/* A NUL ends no string here, and is no byte of a head. */
TEST(nul) {
    static const char rows[][40] = {"GET / HTTP/1.1\r\nHost: h\0\r\n\r\n", "GET / HTTP/1.1\r\nHost: h\r\nA\0: b\r\n\r\n",
                                    "GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n", "G\0T / HTTP/1.1\r\nHost: h\r\n\r\n"};
    weft_http_head head;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK_INT(weft__http_request(rows[i], sizeof rows[i], &head), -EBADMSG);
}

TEST(responses) {
    static const scene rows[] = {
        {"the least", OK END, 0},
        {"HTTP/1.0", "HTTP/1.0 404 Not Found\r\n\r\n", 0},
        {"no reason", "HTTP/1.1 200 \r\n\r\n", 0},
        {"no reason and no blank", "HTTP/1.1 200\r\n\r\n", 0},
        {"a reason in UTF-8", "HTTP/1.1 200 \xc3\xa4\r\n\r\n", 0},
        {"a header", OK "Content-Length: 5\r\n" END, 0},
        {"no Host is needed", OK "Transfer-Encoding: chunked\r\n" END, 0},
        {"status 100", "HTTP/1.1 100 Continue\r\n\r\n", 0},
        {"status 599", "HTTP/1.1 599 x\r\n\r\n", 0},
        {"status 99", "HTTP/1.1 099 x\r\n\r\n", -EBADMSG},
        {"status 600", "HTTP/1.1 600 x\r\n\r\n", -EBADMSG},
        {"four digits", "HTTP/1.1 2000 x\r\n\r\n", -EBADMSG},
        {"two digits", "HTTP/1.1 20 x\r\n\r\n", -EBADMSG},
        {"a sign", "HTTP/1.1 -20 x\r\n\r\n", -EBADMSG},
        {"two blanks", "HTTP/1.1  200 x\r\n\r\n", -EBADMSG},
        {"an empty line before", "\r\n" OK END, -EBADMSG},
        {"a control in the reason", "HTTP/1.1 200 \x01\r\n\r\n", -EBADMSG},
        {"bare LF", "HTTP/1.1 200 OK\n\n", -EBADMSG},
        {"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", -ENOTSUP},
        {"HTTP/3 as curl prints it", "HTTP/3 200 OK\r\n\r\n", -EBADMSG},
        {"another protocol", "ICY 200 OK\r\n\r\n", -EBADMSG},
        {"both kinds of length", OK "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" END, -EBADMSG},
        {"an unknown coding", OK "Transfer-Encoding: gzip\r\n" END, -ENOSYS},
        {"chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", -EBADMSG},
    };
    RUN(weft__http_response, rows);
}

TEST(fields_of_a_request) {
    static const char in[] = "POST /rpc?a=1 HTTP/1.1\r\nHost: example.org:80\r\nContent-Length: 12\r\n"
                             "X-Empty:\r\nAccept: \t text/html, */* \t\r\naccept: b\r\n\r\n";
    weft_http_head head;
    CHECK_INT(weft__http_request(in, sizeof in - 1, &head), sizeof in - 1);
    CHECK_TEXT(head.method.data, head.method.len, "POST");
    CHECK_TEXT(head.target.data, head.target.len, "/rpc?a=1");
    CHECK_INT(head.minor, 1);
    CHECK_INT(head.status, 0);
    CHECK_INT(head.content_length, 12);
    CHECK(head.keep_alive && !head.chunked && !head.upgrade);
    REQUIRE(head.header_count == 5);
    CHECK_TEXT(head.headers[0].name.data, head.headers[0].name.len, "Host");
    CHECK_TEXT(head.headers[0].value.data, head.headers[0].value.len, "example.org:80");
    CHECK_TEXT(head.headers[2].value.data, head.headers[2].value.len, "");
    size_t count;
    weft_bytes accept = weft__http_find(&head, "accept", &count);
    CHECK_TEXT(accept.data, accept.len, "text/html, */*");
    CHECK_INT(count, 2);
    CHECK(weft__http_find(&head, "x-none", &count).data == NULL);
    CHECK_INT(count, 0);
    CHECK(weft__http_find(&head, "x-empty", NULL).data != NULL);
}

TEST(absolute_targets_become_paths) {
    static const struct {
        const char *in, *want;
    } rows[] = {
        {"GET http://h/a?b HTTP/1.1\r\nHost: h\r\n\r\n", "/a?b"},
        {"GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", "/"},
        {"GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", "/"},
        {"GET https://h:1//x HTTP/1.1\r\nHost: h:1\r\n\r\n", "//x"},
    };
    weft_http_head head;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].in);
        CHECK_INT(weft__http_request(rows[i].in, strlen(rows[i].in), &head), strlen(rows[i].in));
        CHECK_TEXT(head.target.data, head.target.len, rows[i].want);
    }
}

TEST(keep_alive) {
    static const struct {
        const char *name;
        parser *run;
        const char *in;
        bool keep_alive, upgrade;
    } rows[] = {
        {"1.1", weft__http_request, GET END, true, false},
        {"1.1 close", weft__http_request, GET "Connection: close\r\n" END, false, false},
        {"1.1 Close", weft__http_request, GET "connection: Close\r\n" END, false, false},
        {"1.1 keep-alive", weft__http_request, GET "Connection: keep-alive\r\n" END, true, false},
        {"1.1 both", weft__http_request, GET "Connection: keep-alive, close\r\n" END, false, false},
        {"1.1 in two headers", weft__http_request, GET "Connection: x\r\nConnection: close\r\n" END, false, false},
        {"1.1 part of a word", weft__http_request, GET "Connection: closed\r\n" END, true, false},
        {"1.1 upgrade", weft__http_request, GET "Connection: keep-alive, Upgrade\r\n" END, true, true},
        {"1.1 an empty list", weft__http_request, GET "Connection: , ,\r\n" END, true, false},
        {"1.0", weft__http_request, "GET / HTTP/1.0\r\n\r\n", false, false},
        {"1.0 keep-alive", weft__http_request, "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true, false},
        {"1.0 both", weft__http_request, "GET / HTTP/1.0\r\nConnection: close,keep-alive\r\n\r\n", false, false},
        {"a response with a length", weft__http_response, OK "Content-Length: 0\r\n" END, true, false},
        {"a chunked response", weft__http_response, OK "Transfer-Encoding: chunked\r\n" END, true, false},
        {"a response until the end", weft__http_response, OK END, false, false},
        {"a response that closes", weft__http_response, OK "Content-Length: 0\r\nConnection: close\r\n" END, false, false},
        {"204 has no body", weft__http_response, "HTTP/1.1 204 No Content\r\n\r\n", true, false},
        {"304 has no body", weft__http_response, "HTTP/1.1 304 Not Modified\r\n\r\n", true, false},
        {"101", weft__http_response, "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\n\r\n", true, true},
        {"a 1.0 response", weft__http_response, "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false, false},
    };
    weft_http_head head;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].name);
        CHECK_INT(rows[i].run(rows[i].in, strlen(rows[i].in), &head), strlen(rows[i].in));
        CHECK_INT(head.keep_alive, rows[i].keep_alive);
        CHECK_INT(head.upgrade, rows[i].upgrade);
    }
}

/* Which of the ways to delimit a body a head chose; what is in the struct before does not matter. */
TEST(bodies) {
    weft_http_head head;
    memset(&head, 0x55, sizeof head);
    CHECK(weft__http_request(GET END, sizeof GET END - 1, &head) > 0);
    CHECK(!head.chunked && head.content_length == -1 && !head.upgrade && head.status == 0);
    CHECK(weft__http_request(POST "Content-Length: 007\r\n" END, sizeof POST "Content-Length: 007\r\n" END - 1, &head) > 0);
    CHECK(!head.chunked && head.content_length == 7);
    CHECK(weft__http_request(POST "Transfer-Encoding: chunked\r\n" END, sizeof POST "Transfer-Encoding: chunked\r\n" END - 1,
                             &head) > 0);
    CHECK(head.chunked && head.content_length == -1);
}

TEST(hundred_headers) {
    for (size_t count = 99; count <= 102; count++) {
        char in[2048] = "HTTP/1.1 200 OK\r\n";
        for (size_t i = 0; i < count; i++)
            strcat(in, "A: b\r\n");
        strcat(in, "\r\n");
        weft_http_head head;
        int r = weft__http_response(in, strlen(in), &head);
        CHECK_INT(r, count <= 100 ? (int) strlen(in) : -EMSGSIZE);
        if (r > 0)
            CHECK_INT(head.header_count, count);
    }
}

/* A head of exactly 16 KiB is read; one byte more is refused as soon as that is certain, and not before. */
TEST(sixteen_kibibytes) {
    enum { MAX = WEFT_HTTP_MAX_HEAD };
    static char in[MAX + 2];
    weft_http_head head;
    for (size_t len = MAX - 1; len <= MAX + 1; len++) {
        int start = snprintf(in, sizeof in, GET "A: ");
        memset(in + start, 'x', len - (size_t) start);
        memcpy(in + len - 4, "\r\n\r\n", 4);
        CHECK_INT(weft__http_request(in, len, &head), len <= MAX ? (int) len : -EMSGSIZE);
        CHECK_INT(weft__http_request(in, len - 1, &head), len - 1 < MAX ? 0 : -EMSGSIZE);
    }
    memset(in, 'x', sizeof in);
    CHECK_INT(weft__http_request(in, MAX - 1, &head), 0);
    CHECK_INT(weft__http_request(in, MAX, &head), -EMSGSIZE);
}

/* A value is scanned in vectors with a tail: a bad byte is found at every place of values of every length. */
TEST(bad_byte_anywhere) {
    weft_http_head head;
    for (size_t len = 1; len <= 40; len++)
        for (size_t at = 0; at < len; at++) {
            char in[128];
            int start = snprintf(in, sizeof in, GET "A:");
            memset(in + start, 'x', len);
            memcpy(in + (size_t) start + len, "\r\n\r\n", 4);
            size_t total = (size_t) start + len + 4;
            CHECK_INT(parse(weft__http_request, in, total, &head), (int) total);
            in[(size_t) start + at] = 0x1f;
            CHECK_INT(parse(weft__http_request, in, total, &head), -EBADMSG);
            in[(size_t) start + at] = (char) 0x80;
            CHECK_INT(parse(weft__http_request, in, total, &head), (int) total);
        }
}

/* Every byte in a name, a value and a target, against what the RFC's grammar says. */
TEST(every_byte) {
    static const char name_too[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    weft_http_head head;
    for (int c = 1; c < 256; c++) {
        char in[64];
        char row[32];
        snprintf(row, sizeof row, "byte 0x%02x", c);
        test_row(row);
        int n = snprintf(in, sizeof in, GET "A%cb: c\r\n\r\n", c);
        bool colon = c == ':';
        CHECK_INT(weft__http_request(in, (size_t) n, &head) > 0, strchr(name_too, c) != NULL || colon);
        n = snprintf(in, sizeof in, GET "A: b%cc\r\n\r\n", c);
        CHECK_INT(weft__http_request(in, (size_t) n, &head) > 0, c == '\t' || (c >= ' ' && c != 0x7f));
        n = snprintf(in, sizeof in, "GET /%cc HTTP/1.0\r\n\r\n", c);
        CHECK_INT(weft__http_request(in, (size_t) n, &head) > 0, c > ' ' && c < 0x7f && c != '#');
    }
}

TEST(tokens) {
    static const struct {
        const char *list, *token;
        bool want;
    } rows[] = {
        {"close", "close", true},
        {"Close", "close", true},
        {"keep-alive, close", "close", true},
        {" close ,x", "close", true},
        {"closer", "close", false},
        {"clos", "close", false},
        {"", "close", false},
        {",,", "close", false},
        {"x,,close", "close", true},
        {"close;q=1", "close", false},
        {"a b", "b", false},
        {"\tupgrade\t", "upgrade", true},
        {"keep-alive\t,\tx", "keep-alive", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].list);
        CHECK_INT(weft__http_has_token((weft_bytes){rows[i].list, strlen(rows[i].list)}, rows[i].token), rows[i].want);
    }
    test_row(NULL);
    CHECK(!weft__http_has_token((weft_bytes){0}, "close"));
    CHECK(!weft__http_has_token((weft_bytes){"close\0", 6}, "close"));
}

TEST(reasons) {
    CHECK_STR(weft__http_reason(200), "OK");
    CHECK_STR(weft__http_reason(431), "Request Header Fields Too Large");
    CHECK_STR(weft__http_reason(299), "");
}

TEST_MAIN(CASE(requests) CASE(smuggling) CASE(nul) CASE(responses) CASE(fields_of_a_request)
              CASE(absolute_targets_become_paths) CASE(keep_alive) CASE(bodies) CASE(hundred_headers) CASE(sixteen_kibibytes)
                  CASE(bad_byte_anywhere) CASE(every_byte) CASE(tokens) CASE(reasons))

/* HTTP/1.1: heads, chunked bodies, and the client's framing on top of them. However the bytes are cut, the same comes out;
 * what a head is made of lies inside it. The first byte chooses what is read, the second the size of the pieces. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_memory.h"
#include "http1.h"
#include "http_client.h"

static void require_inside(weft_bytes part, const char *data, size_t len) {
    require(part.len == 0 || (part.data >= data && part.data + part.len <= data + len));
    for (size_t i = 0; i < part.len; i++)
        require(part.data[i] != '\r' && part.data[i] != '\n' && part.data[i] != '\0');
}

static void check_head(const weft_http_head *head, const char *data, size_t len) {
    require(len <= WEFT_HTTP_MAX_HEAD && head->header_count <= WEFT_HTTP_MAX_HEADERS);
    require(memcmp(data + len - 2, "\r\n", 2) == 0);
    require(!(head->chunked && head->content_length >= 0));
    require_inside(head->method, data, len);
    require_inside(head->target, data, len);
    for (size_t i = 0; i < head->header_count; i++) {
        require(head->headers[i].name.len > 0);
        require_inside(head->headers[i].name, data, len);
        require_inside(head->headers[i].value, data, len);
    }
}

/* Each beginning is incomplete until one is a head or is refused, and then all longer ones say the same. */
static void fuzz_head(int (*parse)(const char *, size_t, weft_http_head *), const char *data, size_t size, size_t piece) {
    weft_http_head head;
    char *exact = malloc(size + 1);
    memcpy(exact, data, size);
    int whole = parse(exact, size, &head);
    if (whole > 0)
        check_head(&head, exact, (size_t) whole);
    for (size_t n = 0; n < size; n += piece) {
        char *part = malloc(n + 1);
        memcpy(part, data, n);
        int r = parse(part, n, &head);
        require(r == 0 || r == whole);
        require(!(whole > 0 && r == 0 && n >= (size_t) whole));
        free(part);
    }
    free(exact);
}

/* ---- chunked ---- */

typedef struct chunks {
    int r;
    size_t used;
    weft_buf body;
} chunks;

static chunks read_chunks(const char *data, size_t size, size_t piece) {
    chunks out = {0};
    weft_chunked state = {0};
    for (size_t pos = 0; pos < size && out.r == 0; pos += piece) {
        size_t n = piece < size - pos ? piece : size - pos, used = 0, body = 0;
        char *copy = malloc(n);
        memcpy(copy, data + pos, n);
        out.r = weft__chunked(&state, copy, n, &used, &body);
        if (out.r >= 0) {
            require(body <= used && used <= n && (used == n || out.r == 1));
            out.used += used;
            require(weft__buf_put(&out.body, NULL, copy, body) == 0);
        }
        free(copy);
    }
    return out;
}

static void fuzz_chunks(const char *data, size_t size, size_t piece) {
    chunks whole = read_chunks(data, size, SIZE_MAX / 2), pieces = read_chunks(data, size, piece);
    require(whole.r == pieces.r);
    if (whole.r >= 0) {
        size_t len = weft__buf_len(&whole.body);
        require(whole.used == pieces.used && len == weft__buf_len(&pieces.body));
        require(len == 0 || memcmp(weft__buf_head(&whole.body), weft__buf_head(&pieces.body), len) == 0);
    }
    weft__buf_done(&whole.body, NULL);
    weft__buf_done(&pieces.body, NULL);
}

/* ---- the client ---- */

typedef struct answers {
    int r, status;
    weft_buf log;
} answers;

static void note(answers *out, const weft_frame *frame) {
    char kind = (char) frame->kind;
    require(weft__buf_put(&out->log, NULL, &kind, 1) == 0);
    if (frame->kind == WEFT_FRAME_BODY)
        require(weft__buf_put(&out->log, NULL, frame->body, frame->len) == 0);
}

static answers read_answers(const char *data, size_t size, size_t max, size_t piece) {
    static const weft_http_client_opts who = {.host = "h", .path = "/"};
    const weft_framing *framing = &weft__http_client;
    answers out = {0};
    void *state = calloc(1, framing->state_size);
    char *left = malloc(size + WEFT_SLACK);
    size_t n = 0;
    weft_frame frame = {0};
    require(framing->init(state, &(weft_framing_opts){.extra = &who}) == 0);
    for (size_t pos = 0; pos < size && out.r >= 0; pos += piece) {
        size_t add = piece < size - pos ? piece : size - pos, used = 0;
        memcpy(left + n, data + pos, add);
        n += add;
        while ((out.r = framing->decode(state, left, n, max, &used, &frame)) >= 0) {
            require(used <= n);
            if (out.r == 1)
                note(&out, &frame);
            n -= used;
            memmove(left, left + used, n);
            if (out.r == 0)
                break;
        }
    }
    size_t used;
    if (out.r >= 0 && (out.r = framing->finish(state, left, n, max, &used, &frame)) == 1)
        note(&out, &frame);
    out.status = weft__http_client_status(state);
    framing->done(state);
    free(state);
    free(left);
    return out;
}

static void fuzz_answers(const char *data, size_t size, size_t max, size_t piece) {
    answers whole = read_answers(data, size, max, SIZE_MAX / 2), pieces = read_answers(data, size, max, piece);
    size_t len = weft__buf_len(&whole.log);
    require(whole.r == pieces.r && whole.status == pieces.status && len == weft__buf_len(&pieces.log));
    require(len == 0 || memcmp(weft__buf_head(&whole.log), weft__buf_head(&pieces.log), len) == 0);
    weft__buf_done(&whole.log, NULL);
    weft__buf_done(&pieces.log, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    size_t piece = 1 + data[1] % 40;
    const char *bytes = (const char *) data + 2;
    size -= 2;
    switch (data[0] % 4) {
    case 0:
        fuzz_head(weft__http_request, bytes, size, piece);
        break;
    case 1:
        fuzz_head(weft__http_response, bytes, size, piece);
        break;
    case 2:
        fuzz_chunks(bytes, size, piece);
        break;
    default:
        fuzz_answers(bytes, size, data[0], piece);
        break;
    }
    return 0;
}

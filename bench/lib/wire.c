/* Requests and answers of wire.h. Everything that runs once per message is at most a memcpy or memcmp plus eight digits. */
#include "wire.h"

#include "ws.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_MAX 512 /* of one HTTP or Content-Length head, ours or theirs */

static const char *const framing_names[] = {"ndjson", "length", "http", "ws"};

int framing_parse(const char *name, enum framing *ret) {
    for (unsigned i = 0; i < sizeof framing_names / sizeof *framing_names; i++)
        if (!strcmp(name, framing_names[i])) {
            *ret = (enum framing) i;
            return 0;
        }
    return -EINVAL;
}

static const char prefix[] = "{\"jsonrpc\":\"2.0\",\"id\":10000000,\"method\":\"echo\",\"params\":[\"";
static const char suffix[] = "\"]}";
#define JSON_ID_AT (sizeof "{\"jsonrpc\":\"2.0\",\"id\":" - 1)

static size_t write_head(char *out, enum framing framing, size_t size, const char *host, const char *path, uint8_t mask[4]) {
    switch (framing) {
    case FRAMING_LENGTH:
        return (size_t) snprintf(out, HEAD_MAX, "Content-Length: %zu\r\n\r\n", size);
    case FRAMING_HTTP:
        return (size_t) snprintf(out, HEAD_MAX,
                                 "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"
                                 "Accept: application/json\r\nContent-Length: %zu\r\n\r\n",
                                 path, host, size);
    case FRAMING_WS:
        for (int i = 0; i < 4; i++)
            mask[i] = (uint8_t) (rand() % 255 + 1);
        return ws_head_write((uint8_t *) out, WS_TEXT, size, mask);
    default:
        return 0;
    }
}

int request_init(struct request *req, enum framing framing, size_t size, const char *host, const char *path) {
    const size_t fixed = sizeof prefix - 1 + sizeof suffix - 1;
    uint8_t mask[4] = {0};
    char head[HEAD_MAX];
    size_t head_len;
    uint8_t *json;

    if (size < fixed + 1)
        return -EINVAL;
    head_len = write_head(head, framing, size, host, path, mask);
    *req = (struct request){.text_len = size - fixed, .id_at = head_len + JSON_ID_AT};
    req->len = head_len + size + (framing == FRAMING_NDJSON);
    req->frame = malloc(req->len);
    req->text = malloc(req->text_len);
    if (!req->frame || !req->text)
        return request_done(req), -ENOMEM;
    for (size_t i = 0; i < req->text_len; i++)
        req->text[i] = "the weft crosses the warp "[i % 26];
    memcpy(req->frame, head, head_len);
    json = req->frame + head_len;
    memcpy(json, prefix, sizeof prefix - 1);
    memcpy(json + sizeof prefix - 1, req->text, req->text_len);
    memcpy(json + size - (sizeof suffix - 1), suffix, sizeof suffix - 1);
    ws_mask(json, json, size, mask);
    for (size_t i = 0; i < ID_DIGITS; i++)
        req->id_xor[i] = mask[(JSON_ID_AT + i) & 3];
    if (framing == FRAMING_NDJSON)
        json[size] = '\n';
    return 0;
}

void request_done(struct request *req) {
    free(req->frame);
    free(req->text);
    *req = (struct request){0};
}

void request_write(const struct request *req, uint32_t id, uint8_t *out) {
    memcpy(out, req->frame, req->len);
    out += req->id_at;
    for (int i = ID_DIGITS - 1; i >= 0; i--) {
        out[i] = (uint8_t) ('0' + id % 10) ^ req->id_xor[i];
        id /= 10;
    }
}

static int next_line(const uint8_t *p, size_t n, struct body *ret) {
    const uint8_t *end = memchr(p, '\n', n);

    if (!end)
        return 0;
    *ret = (struct body){.p = p, .n = (size_t) (end - p), .used = (size_t) (end - p) + 1};
    if (ret->n && p[ret->n - 1] == '\r')
        ret->n--;
    return 1;
}

/* HTTP answers and Content-Length frames are the same to us: a head, an empty line, as many bytes as the head says. */
static int next_counted(const uint8_t *p, size_t n, struct body *ret) {
    size_t head_len, length;
    char head[HEAD_MAX + 1], *field;
    const uint8_t *end = memmem(p, n, "\r\n\r\n", 4);

    if (!end)
        return n > HEAD_MAX ? -EPROTO : 0;
    head_len = (size_t) (end - p) + 4;
    if (head_len > HEAD_MAX)
        return -EPROTO;
    memcpy(head, p, head_len);
    head[head_len] = 0;
    field = strcasestr(head, "content-length:");
    if (!field)
        return -EPROTO;
    length = strtoul(field + sizeof "content-length:" - 1, NULL, 10);
    if (n < head_len + length)
        return 0;
    *ret = (struct body){.p = p + head_len, .n = length, .used = head_len + length};
    return 1;
}

static int next_frame(const uint8_t *p, size_t n, struct body *ret) {
    struct ws_head head;

    if (!ws_head_read(p, n, &head) || n - head.size < head.payload)
        return 0;
    if (head.masked || head.opcode == WS_CLOSE || !(p[0] & 0x80))
        return -EPROTO;
    *ret = (struct body){.p = p + head.size, .n = head.payload, .used = head.size + head.payload};
    if (head.opcode >= WS_CLOSE)
        ret->n = 0;
    return 1;
}

int answer_next(enum framing framing, const uint8_t *p, size_t n, struct body *ret) {
    switch (framing) {
    case FRAMING_NDJSON:
        return next_line(p, n, ret);
    case FRAMING_WS:
        return next_frame(p, n, ret);
    default:
        return next_counted(p, n, ret);
    }
}

static int learn(struct expected *expected, const struct request *req, const struct body *body) {
    const uint8_t *end = body->p + body->n, *id = memmem(body->p, body->n, "\"id\"", 4);

    if (!id || memmem(body->p, body->n, "\"error\"", 7) || !memmem(body->p, body->n, req->text, req->text_len))
        return -EBADMSG;
    for (id += 4; id < end && (*id == ':' || *id == ' '); id++)
        ;
    if (end - id < ID_DIGITS)
        return -EBADMSG;
    expected->body = malloc(body->n);
    if (!expected->body)
        return -ENOMEM;
    memcpy(expected->body, body->p, body->n);
    expected->len = body->n;
    expected->id_at = (size_t) (id - body->p);
    return 0;
}

int answer_match(struct expected *expected, const struct request *req, const struct body *body, uint32_t *ret_id) {
    const uint8_t *id;
    uint32_t value = 0;
    size_t after;

    if (!expected->body) {
        int r = learn(expected, req, body);
        if (r < 0)
            return r;
    }
    after = expected->id_at + ID_DIGITS;
    if (body->n != expected->len || memcmp(body->p, expected->body, expected->id_at) ||
        memcmp(body->p + after, expected->body + after, expected->len - after))
        return -EBADMSG;
    id = body->p + expected->id_at;
    for (int i = 0; i < ID_DIGITS; i++) {
        if (id[i] < '0' || id[i] > '9')
            return -EBADMSG;
        value = value * 10 + (uint32_t) (id[i] - '0');
    }
    *ret_id = value;
    return 0;
}

#include "lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net.h"
#include "ws.h"

#define ROOM (128 * 1024)
#define LINE_MAX_OUT 4096

void lines_open(struct lines *l, const char *url) {
    struct endpoint ep;

    *l = (struct lines){0};
    if (endpoint_parse(url, &ep) < 0)
        die("not a URL for this program: %s", url);
    l->fd = endpoint_connect(&ep);
    if (l->fd < 0)
        die("%s: %s", url, strerror(-l->fd));
    l->frames = ep.scheme == SCHEME_WS;
    int r = l->frames ? ws_client_handshake(l->fd, &ep) : 0;
    if (r < 0)
        die("%s: WebSocket handshake: %s", url, strerror(-r));
}

void lines_close(struct lines *l) {
    close(l->fd);
    free(l->in);
}

static void send_all(const struct lines *l, const void *data, size_t len) {
    for (const char *text = data; len;) {
        ssize_t n = send(l->fd, text, len, MSG_NOSIGNAL);
        if (n < 0)
            die("send: %m");
        text += n;
        len -= (size_t) n;
    }
}

static void send_frame(struct lines *l, uint8_t opcode, const char *data, size_t len) {
    static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};
    uint8_t frame[LINE_MAX_OUT + WS_HEAD_MAX];

    if (len > LINE_MAX_OUT)
        die("a request that is too long");
    size_t head = ws_head_write(frame, opcode, len, mask);
    ws_mask(frame + head, (const uint8_t *) data, len, mask);
    send_all(l, frame, head + len);
}

void lines_send(struct lines *l, const char *text, size_t len) {
    if (l->frames)
        send_frame(l, WS_TEXT, text, len - 1);
    else
        send_all(l, text, len);
}

void lines_sendf(struct lines *l, const char *format, ...) {
    char text[LINE_MAX_OUT];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n < 0 || (size_t) n >= sizeof text)
        die("a request that is too long");
    lines_send(l, text, (size_t) n);
}

/* Moved one byte to the left, over its head, so that there is room for an end. */
static char *frame_here(struct lines *l, size_t *ret_len) {
    struct ws_head head;

    while (ws_head_read((uint8_t *) l->in + l->at, l->len - l->at, &head) > 0) {
        if (l->len - l->at < head.size + head.payload)
            return NULL;
        char *text = l->in + l->at + head.size - 1;
        l->at += head.size + head.payload;
        if (head.opcode == WS_CLOSE)
            die("the hub closed the WebSocket");
        if (head.opcode == WS_PING) /* or it takes us for dead */
            send_frame(l, WS_PONG, text + 1, head.payload);
        if (head.opcode != WS_TEXT)
            continue;
        memmove(text, text + 1, head.payload);
        text[head.payload] = '\0';
        *ret_len = head.payload;
        return text;
    }
    return NULL;
}

char *lines_here(struct lines *l, size_t *ret_len) {
    if (l->frames)
        return l->in ? frame_here(l, ret_len) : NULL;
    char *line = l->in ? l->in + l->at : NULL;
    char *end = line ? memchr(line, '\n', l->len - l->at) : NULL;

    if (!end)
        return NULL;
    *end = '\0';
    *ret_len = (size_t) (end - line);
    l->at += *ret_len + 1;
    return line;
}

static void make_room(struct lines *l) {
    if (l->at) {
        memmove(l->in, l->in + l->at, l->len - l->at);
        l->len -= l->at;
        l->at = 0;
    }
    if (l->cap - l->len >= ROOM / 2)
        return;
    l->cap = l->cap ? l->cap * 2 : ROOM;
    l->in = realloc(l->in, l->cap);
    if (!l->in)
        die("out of memory");
}

void lines_read(struct lines *l) {
    make_room(l);
    ssize_t n = recv(l->fd, l->in + l->len, l->cap - l->len, 0);
    if (n <= 0)
        die("%s", n < 0 ? strerror(errno) : "the hub closed the connection");
    l->len += (size_t) n;
    l->received += (uint64_t) n;
}

char *lines_next(struct lines *l, size_t *ret_len) {
    char *line;

    while (!(line = lines_here(l, ret_len)))
        lines_read(l);
    return line;
}

int lines_is_answer(const char *line) {
    static const char head[] = "{\"jsonrpc\":\"2.0\",\"id\":";

    if (strncmp(line, head, sizeof head - 1) != 0)
        return 0;
    if (!strstr(line, "\"result\":"))
        die("refused: %.300s", line);
    return 1;
}

char *lines_answer(struct lines *l, size_t *ret_len) {
    char *line;

    do
        line = lines_next(l, ret_len);
    while (!lines_is_answer(line));
    return line;
}

uint64_t lines_number(const char *line, const char *name) {
    char key[64];

    snprintf(key, sizeof key, "\"%s\":", name);
    const char *found = strstr(line, key);
    if (!found)
        die("no %s in %.300s", name, line);
    return strtoull(found + strlen(key), NULL, 10);
}

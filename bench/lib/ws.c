/* The handshake, heads and masks of ws.h. */
#include "ws.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define HANDSHAKE_MAX 4096 /* no server of this benchmark answers an upgrade with more */

int ws_head_read(const uint8_t *p, size_t n, struct ws_head *ret) {
    uint64_t payload;
    size_t size = 2;

    if (n < 2)
        return 0;
    payload = p[1] & 0x7f;
    if (payload >= 126)
        size += payload == 126 ? 2 : 8;
    if (p[1] & 0x80)
        size += 4;
    if (n < size)
        return 0;
    if (payload >= 126) {
        unsigned wide = payload == 126 ? 2 : 8;

        payload = 0;
        for (unsigned i = 0; i < wide; i++)
            payload = payload << 8 | p[2 + i];
    }
    ret->payload = payload;
    ret->size = (uint8_t) size;
    ret->opcode = p[0] & 0x0f;
    ret->masked = p[1] >> 7;
    if (ret->masked)
        memcpy(ret->mask, p + size - 4, 4);
    return 1;
}

size_t ws_head_write(uint8_t *out, uint8_t opcode, uint64_t payload, const uint8_t *mask) {
    unsigned wide = payload < 126 ? 0 : payload <= 0xffff ? 2 : 8;
    size_t size = 2;

    out[0] = 0x80 | opcode;
    out[1] = (uint8_t) (wide == 0 ? payload : wide == 2 ? 126 : 127);
    while (wide--)
        out[size++] = (uint8_t) (payload >> 8 * wide);
    if (mask) {
        out[1] |= 0x80;
        memcpy(out + size, mask, 4);
        size += 4;
    }
    return size;
}

void ws_mask(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t mask[4]) {
    uint32_t word;
    size_t i = 0;

    memcpy(&word, mask, 4);
#ifdef __SSE2__
    __m128i wide = _mm_set1_epi32((int) word);
    for (; i + 16 <= n; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *) (const void *) (src + i));
        _mm_storeu_si128((__m128i *) (void *) (dst + i), _mm_xor_si128(bytes, wide));
    }
#endif
    for (; i + 4 <= n; i += 4) {
        uint32_t bytes;

        memcpy(&bytes, src + i, 4);
        bytes ^= word;
        memcpy(dst + i, &bytes, 4);
    }
    for (; i < n; i++)
        dst[i] = src[i] ^ mask[i & 3];
}

/* Peek until the head is whole, then take exactly the head: a server may push its first frame right behind it. */
static int read_head(int fd, char *head, size_t size) {
    for (;;) {
        ssize_t n = recv(fd, head, size - 1, MSG_PEEK);
        char *end;

        if (n <= 0)
            return n ? -errno : -ECONNRESET;
        head[n] = 0;
        end = strstr(head, "\r\n\r\n");
        if (end) {
            end[4] = 0;
            return recv(fd, head, (size_t) (end + 4 - head), MSG_WAITALL) < 0 ? -errno : 0;
        }
        if ((size_t) n == size - 1)
            return -EMSGSIZE;
        /* Peeking again would return at once with the same bytes; let the socket wait for one more instead. */
        int more = (int) n + 1;
        (void) setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &more, sizeof more);
    }
}

int ws_client_ask(int fd, const struct endpoint *ep) {
    char text[HANDSHAKE_MAX];
    int n = snprintf(text, sizeof text,
                     "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     "Sec-WebSocket-Key: d2VmdCBiZW5jaG1hcmsuIQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                     ep->path, ep->host);

    return send(fd, text, (size_t) n, MSG_NOSIGNAL) == n ? 0 : -errno;
}

int ws_client_upgraded(int fd) {
    char text[HANDSHAKE_MAX];
    int one = 1, r = read_head(fd, text, sizeof text);

    (void) setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof one);
    if (r < 0)
        return r;
    return strncmp(text, "HTTP/1.1 101", 12) ? -EPROTO : 0;
}

int ws_client_handshake(int fd, const struct endpoint *ep) {
    int r = ws_client_ask(fd, ep);

    return r < 0 ? r : ws_client_upgraded(fd);
}

int ws_server_answer(const char *p, size_t n, char *out, size_t size) {
    static const char name[] = "sec-websocket-key:", guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    unsigned char digest[SHA_DIGEST_LENGTH], base64[4 * (SHA_DIGEST_LENGTH + 2) / 3 + 1];
    char head[HANDSHAKE_MAX], joined[128];
    const char *key;
    int len;

    if (n >= sizeof head)
        return -EPROTO;
    memcpy(head, p, n);
    head[n] = 0;
    key = strcasestr(head, name);
    if (!key)
        return -EPROTO;
    key += sizeof name - 1;
    key += strspn(key, " \t");
    len = snprintf(joined, sizeof joined, "%.*s%s", (int) strcspn(key, " \t\r\n"), key, guid);
    if (len < 0 || (size_t) len >= sizeof joined)
        return -EPROTO;
    SHA1((unsigned char *) joined, (size_t) len, digest);
    EVP_EncodeBlock(base64, digest, sizeof digest);
    len = snprintf(out, size,
                   "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   "Sec-WebSocket-Accept: %s\r\n\r\n",
                   base64);
    return len < 0 || (size_t) len >= size ? -EPROTO : len;
}

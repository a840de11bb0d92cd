/* As much of RFC 6455 as a load generator and a bare echo need: the handshake, frame heads, the mask.
 *
 * No fragmentation, no extensions, no UTF-8 check: the anchor shows what a frame costs before any of that. */
#ifndef BENCH_WS_H
#define BENCH_WS_H

#include "net.h"

#include <stddef.h>
#include <stdint.h>

#define WS_HEAD_MAX 14 /* two bytes, a 64-bit length and a mask */

enum { WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

struct ws_head {
    uint64_t payload;
    uint8_t size; /* bytes the head itself takes */
    uint8_t opcode;
    uint8_t masked;
    uint8_t mask[4];
};

/* 1 and the head, or 0 when more bytes are needed. */
int ws_head_read(const uint8_t *p, size_t n, struct ws_head *ret);

/* Write the head of a final frame, masked when mask is not NULL; returns its size. */
size_t ws_head_write(uint8_t *out, uint8_t opcode, uint64_t payload, const uint8_t *mask);

/* XOR n bytes from src to dst (dst <= src may overlap) with a mask whose next byte is mask[0]. */
void ws_mask(uint8_t *dst, const uint8_t *src, size_t n, const uint8_t mask[4]);

/* Upgrade a blocking socket. Reads nothing beyond the answer's head. 0 or a negative errno. */
int ws_client_handshake(int fd, const struct endpoint *ep);

/* The same in two halves, for whoever upgrades many at once. */
int ws_client_ask(int fd, const struct endpoint *ep);
int ws_client_upgraded(int fd);

/* Write the 101 answer to the request head at p, which ends in an empty line; its length, or -EPROTO. */
int ws_server_answer(const char *p, size_t n, char *out, size_t size);

#endif

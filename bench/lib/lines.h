/* A blocking client of the hub, without libweft: lines of JSON out, lines of JSON in, over a Unix socket; over a WebSocket
 * each is a frame. It looks into a line only to tell an answer from a notification, and relies on the hub writing "jsonrpc"
 * and "id" first. */
#ifndef BENCH_LINES_H
#define BENCH_LINES_H

#include <stddef.h>
#include <stdint.h>

struct lines {
    int fd;
    int frames; /* it is a WebSocket */
    char *in;
    size_t at, len, cap;
    uint64_t received; /* bytes, over all */
};

/* Connect, or die. */
void lines_open(struct lines *l, const char *url);
void lines_close(struct lines *l);

/* Send everything, or die. One line at a time, with its end. */
void lines_send(struct lines *l, const char *text, size_t len);
void lines_sendf(struct lines *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The next whole line that is here already, without its end and terminated; NULL when there is none. Valid until the next
 * call. */
char *lines_here(struct lines *l, size_t *ret_len);
/* Read once, waiting for something to come; dies at the end of the connection. */
void lines_read(struct lines *l);
/* The next line, or the next answer, whatever it takes. */
char *lines_next(struct lines *l, size_t *ret_len);
char *lines_answer(struct lines *l, size_t *ret_len);

/* It is the answer to a request; dies when that was refused. */
int lines_is_answer(const char *line);

/* The number behind the first "NAME": in a line; dies when there is none. */
uint64_t lines_number(const char *line, const char *name);

#endif

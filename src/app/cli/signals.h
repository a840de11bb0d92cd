/* SIGINT, SIGTERM and SIGHUP as events of a loop. They do not keep it alive. */
#ifndef WEFT_SIGNALS_H
#define WEFT_SIGNALS_H

#include <uv.h>

#include <weft/net.h>

#define WEFT_SIGNALS 3

typedef struct weft_signals {
    uv_signal_t handles[WEFT_SIGNALS];
    void (*on_signal)(void *ctx);
    void (*on_hangup)(void *ctx); /* SIGHUP, if it is to be told apart; set before opening */
    void *ctx;
    bool open;
} weft_signals;

int weft__signals_open(weft_signals *signals, weft_loop *loop, void (*on_signal)(void *ctx), void *ctx);
/* The loop must turn once more before the memory goes; weft_loop_free() does. */
void weft__signals_close(weft_signals *signals);

#endif

/* Being asked to end. */
#include "signals.h"

#include <signal.h>

#include "loop.h"

static void on_uv_signal(uv_signal_t *handle, int number) {
    weft_signals *signals = handle->data;
    if (number == SIGHUP && signals->on_hangup)
        signals->on_hangup(signals->ctx);
    else
        signals->on_signal(signals->ctx);
}

int weft__signals_open(weft_signals *signals, weft_loop *loop, void (*on_signal)(void *ctx), void *ctx) {
    static const int numbers[WEFT_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
    signals->on_signal = on_signal;
    signals->ctx = ctx;
    for (int i = 0; i < WEFT_SIGNALS; i++) {
        uv_signal_init(&loop->uv, &signals->handles[i]);
        signals->handles[i].data = signals;
    }
    signals->open = true;
    for (int i = 0; i < WEFT_SIGNALS; i++) {
        int r = uv_signal_start(&signals->handles[i], on_uv_signal, numbers[i]);
        if (r < 0)
            return r;
        uv_unref((uv_handle_t *) &signals->handles[i]);
    }
    return 0;
}

void weft__signals_close(weft_signals *signals) {
    for (int i = 0; signals->open && i < WEFT_SIGNALS; i++)
        uv_close((uv_handle_t *) &signals->handles[i], NULL);
    signals->open = false;
}

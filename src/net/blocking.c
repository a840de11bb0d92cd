/* Clients for programs without a loop: each brings a private one, and these functions drive it until what they wait for has
 * happened. They never run inside one of its callbacks. */
#include <errno.h>
#include <stdio.h>

#include "client.h"

/* What a blocking function waits for: it goes on while this says true. */
typedef bool waiting_fn(weft_client *client, void *ctx);

typedef struct alarm {
    weft_timer timer;
    bool rang;
} alarm_clock;

static void on_alarm(weft_timer *timer) {
    WEFT_CONTAINER(timer, alarm_clock, timer)->rang = true;
}

static int64_t fresh_now(weft_loop *loop) {
    uv_update_time(&loop->uv);
    return weft_loop_now(loop);
}

void weft__client_end_loop(weft_client *client) {
    while (weft_loop_once(client->loop, true) > 0)
        ;
    client->ended_loop = true;
}

/* The client's last reference of ours; its loop goes with it when the peer has been freed. */
static void drop(weft_client *client) {
    weft_loop *loop = client->loop;
    bool over = client->own_loop && !client->peer && client->refs == 1;
    weft__client_unref(client);
    if (over)
        weft_loop_free(loop);
}

/* Run the loop while there is something to wait for. 1 it happened, 0 time is up. */
static int drive(weft_client *client, waiting_fn *waiting, void *ctx, int64_t timeout_ms) {
    weft_loop *loop = client->loop;
    alarm_clock alarm = {.rang = timeout_ms == 0};
    weft__timer_init(&alarm.timer, on_alarm);
    if (timeout_ms > 0)
        weft__timer_set(loop, &alarm.timer, fresh_now(loop) + timeout_ms);
    client->driven = true;
    weft__loop_hold(loop);
    do
        weft_loop_once(loop, !alarm.rang);
    while (client->peer && waiting(client, ctx) && !alarm.rang);
    weft__loop_release(loop);
    client->driven = false;
    weft__timer_stop(loop, &alarm.timer);
    return client->peer && waiting(client, ctx) ? 0 : 1;
}

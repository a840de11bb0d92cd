/* Follow the tasks of a hub, until SIGINT or SIGTERM. The connection may be lost and the hub restarted; with a file the
 * program may be, too.
 *
 *     subscribe URL [FILE] */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <weft/weft.h>

static void on_value(weft_sub *sub, const weft_sub_value *value, void *ctx) {
    (void) sub;
    (void) ctx;
    printf("%" PRIu64 ": %zu tasks\n", value->seq, weft_count(value->value));
}

static void on_state(weft_sub *sub, const weft_sub_news *news, void *ctx) {
    if (news->state == WEFT_SUB_RESUMED)
        printf("resumed behind %" PRIu64 "\n", weft_sub_seq(sub));
    else if (news->state == WEFT_SUB_SNAPSHOT)
        printf("begun anew: %s\n", news->reason);
    else if (news->state == WEFT_SUB_LOST)
        printf("lost; trying again\n");
    else if (news->state == WEFT_SUB_ENDED) {
        printf("ended: %s\n", news->error ? news->error->message : weft_strerror(news->why));
        weft_loop_stop((weft_loop *) ctx);
    }
}

/* The position of the last value goes to the file when the subscription is freed, so end in an orderly way. */
static void on_end(weft_signal *self, int number, void *ctx) {
    (void) self, (void) number;
    weft_loop_stop(ctx);
}

int main(int argc, char **argv) {
    WEFT_AUTO(weft_loop) loop = NULL; /* declared first, freed last */
    WEFT_AUTO(weft_signal) interrupt = NULL;
    WEFT_AUTO(weft_signal) terminate = NULL;
    WEFT_AUTO(weft_peer) peer = NULL;
    WEFT_AUTO(weft_sub) sub = NULL;
    weft_trouble trouble = {""};
    weft_sub_opts opts = {.on_value = on_value, .on_state = on_state, .file = argc > 2 ? argv[2] : NULL};

    if (argc < 2)
        return fputs("usage: subscribe URL [FILE]\n", stderr), 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    int r = weft_loop_new(NULL, &loop);
    opts.ctx = loop;
    if (r >= 0)
        r = weft_signal_new(loop, SIGINT, on_end, loop, &interrupt);
    if (r >= 0)
        r = weft_signal_new(loop, SIGTERM, on_end, loop, &terminate);
    if (r >= 0)
        r = weft_connect_on(loop, argv[1], &(weft_connect_opts){.reconnect = true}, &peer, &trouble);
    if (r >= 0)
        r = weft_subscribe(peer, "tasks", weft_none(), &opts, &sub);
    if (r >= 0)
        weft_loop_run(loop);
    if (r < 0)
        fprintf(stderr, "subscribe: %s\n", *trouble.text ? trouble.text : weft_strerror(r));
    return r < 0;
}

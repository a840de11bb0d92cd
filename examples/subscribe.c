/* Follow the tasks of a hub: subscribe URL [FILE]. The connection may be lost and the hub restarted; with a file the program
 * may be, too. */
#include <inttypes.h>
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

int main(int argc, char **argv) {
    WEFT_AUTO(weft_loop) loop = NULL;
    weft_peer *peer = NULL;
    weft_sub *sub = NULL;
    weft_connect_opts connect = {.reconnect = true};
    weft_sub_opts opts = {.on_value = on_value, .on_state = on_state, .file = argc > 2 ? argv[2] : NULL};

    if (argc < 2)
        return fputs("usage: subscribe URL [FILE]\n", stderr), 2;
    int r = weft_loop_new(NULL, &loop);
    opts.ctx = loop;
    if (r >= 0)
        r = weft_connect_on(loop, argv[1], &connect, &peer);
    if (r >= 0)
        r = weft_subscribe(peer, "tasks", weft_none(), &opts, &sub);
    if (r >= 0)
        weft_loop_run(loop);
    if (r < 0)
        fprintf(stderr, "subscribe: %s\n", weft_strerror(r));

    weft_sub_free(sub);
    weft_peer_free(peer);
    if (loop)
        weft_loop_run(loop); /* until everything is closed */
    return r < 0;
}

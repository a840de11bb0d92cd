/* Several calls in one message; each completes on its own. batch [URL], by default of a spec-server it starts itself */
#include <stdio.h>
#include <weft/weft.h>

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    const char *what = ctx;
    (void) peer;
    if (r < 0)
        printf("%s failed: %s\n", what, weft_strerror(r));
    else if (answer->error)
        printf("%s was refused: %s (%d)\n", what, answer->error->message, answer->error->code);
    else
        printf("%s = %.*s\n", what, (int) answer->result->len, answer->result->text);
}

static int add(weft_batch *batch, char *what, const char *method, weft_val params) {
    return weft_batch_call(batch, method, params, &(weft_call_opts){.on_answer = on_answer, .ctx = what}, NULL);
}

int main(int argc, char **argv) {
    WEFT_AUTO(weft_peer) peer = NULL;
    weft_batch *batch;

    int r = weft_connect(argc > 1 ? argv[1] : "exec:build/examples/spec-server stdio:", &peer);
    if (r >= 0)
        r = weft_batch_new(peer, &batch);
    if (r < 0)
        return fprintf(stderr, "batch: %s\n", weft_strerror(r)), 1;

    add(batch, "42 - 23", "subtract", WEFT_ARR(weft_int(42), weft_int(23)));
    add(batch, "1 + 2 + 4", "sum", WEFT_ARR(weft_int(1), weft_int(2), weft_int(4)));
    add(batch, "foobar", "foobar", weft_none());
    weft_batch_notify(batch, "notify_hello", WEFT_ARR(weft_int(7)));
    r = weft_batch_send(batch);
    while (r >= 0 && weft_peer_open_calls(peer) > 0)
        r = weft_wait(peer, -1);
    return r < 0;
}

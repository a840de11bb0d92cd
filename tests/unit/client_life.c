/* Clients over real sockets in the situations that programs get into: busy for a while, retrying from the callback that told
 * of the loss, stopping with everything open. Every call completes once, and no descriptor stays behind. */
#include <dirent.h>

#include "loop.h"
#include "net_world.h"

typedef struct life {
    world *w;
    weft_peer *peer;
    int states[4]; /* how often each was told */
    int answers, losses, retried, refused;
    int last;
    int64_t lost_at, again_at;
} life;

static void on_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    life *l = data;
    (void) peer, (void) why;
    l->states[state]++;
    if (state == WEFT_PEER_DISCONNECTED)
        l->lost_at = world_ms();
    if (state == WEFT_PEER_CONNECTING && l->lost_at && !l->again_at)
        l->again_at = world_ms();
}

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    life *l = ctx;
    (void) peer, (void) answer;
    l->answers++;
    l->last = r;
}

static life *life_new(const char *url, bool reconnect) {
    life *l = calloc(1, sizeof *l);
    l->w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(l->w->server, url, NULL), 0);
    weft_connect_opts opts = {.reconnect = reconnect, .on_state = on_state, .data = l};
    CHECK_INT(weft_connect_on(l->w->loop, weft_server_url(l->w->server, 0), &opts, &l->peer, NULL), 0);
    WORLD_UNTIL(l->w, l->states[WEFT_PEER_CONNECTED] == 1);
    return l;
}

static void life_free(life *l) {
    weft_peer_free(l->peer);
    world_free(l->w);
    free(l);
}

/* ---- time ---- */

/* The loop's clock stands still while the program is busy. A call's time begins when it is made. */
TEST(a_busy_program_loses_no_time) {
    life *l = life_new("tcp://127.0.0.1:0", false);
    l->w->loop->uv.time -= 600; /* as it is when 600 ms have gone by since the loop looked at the clock */
    weft_call_opts opts = {.on_answer = on_answer, .ctx = l, .timeout_ms = 500};
    CHECK_INT(weft_call_start(l->peer, "echo", weft_none(), &opts, NULL), 0);
    WORLD_UNTIL(l->w, l->answers == 1);
    CHECK_INT(l->last, 0);
    life_free(l);
}

/* ---- losing the connection ---- */

static void retry(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    life *l = ctx;
    (void) answer;
    CHECK_INT(r, -ECONNRESET);
    l->losses++;
    weft_call_opts opts = {.on_answer = on_answer, .ctx = l};
    if (weft_call_start(peer, "echo", weft_none(), &opts, NULL) == 0)
        l->retried++;
    else
        l->refused++;
}

#define OPEN_CALLS 20

/* What is asked again from the callback that told of the loss waits for the next connection, like any call made while there
 * is none, and does not make it come sooner. */
TEST(calls_are_retried_where_their_loss_is_told) {
    static const char *const urls[] = {"tcp://127.0.0.1:0", "ws://127.0.0.1:0/ws", "http://127.0.0.1:0/rpc"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        test_row(urls[i]);
        life *l = life_new(urls[i], true);
        int open = strncmp(urls[i], "http", 4) == 0 ? 1 : OPEN_CALLS; /* one request at a time */
        weft_call_opts opts = {.on_answer = retry, .ctx = l};
        for (int n = 0; n < open; n++)
            CHECK_INT(weft_call_start(l->peer, "keep", weft_none(), &opts, NULL), 0);
        WORLD_UNTIL(l->w, weft_service_stats(l->w->service)->requests == (uint64_t) open);
        CHECK(l->w->kept != NULL);
        if (l->w->kept)
            weft_peer_free(weft_req_peer(l->w->kept)); /* the server hangs up */
        WORLD_UNTIL(l->w, l->answers == open);
        CHECK_INT(l->losses, open);
        CHECK_INT(l->retried, open);
        CHECK_INT(l->refused, 0);
        CHECK_INT(l->last, 0);
        CHECK_INT(l->states[WEFT_PEER_CONNECTED], 2);
        CHECK(l->again_at - l->lost_at >= 45); /* 100 ms, half of it jitter */
        CHECK_INT((int64_t) weft_peer_open_calls(l->peer), 0);
        life_free(l);
    }
    test_row(NULL);
}

/* Without another connection to come they are told so, once. */
TEST(retries_end_with_the_last_connection) {
    life *l = life_new("tcp://127.0.0.1:0", false);
    weft_call_opts opts = {.on_answer = retry, .ctx = l};
    for (int n = 0; n < OPEN_CALLS; n++)
        CHECK_INT(weft_call_start(l->peer, "keep", weft_none(), &opts, NULL), 0);
    WORLD_UNTIL(l->w, weft_service_stats(l->w->service)->requests == OPEN_CALLS);
    weft_peer_free(weft_req_peer(l->w->kept));
    WORLD_UNTIL(l->w, l->states[WEFT_PEER_CLOSED] == 1);
    CHECK_INT(l->losses, OPEN_CALLS);
    CHECK_INT(l->answers, l->retried);
    CHECK_INT(l->retried + l->refused, OPEN_CALLS);
    CHECK_INT((int64_t) weft_peer_open_calls(l->peer), 0);
    life_free(l);
}

/* ---- stopping ---- */

static void on_stopped(weft_server *server, void *ctx) {
    (void) server;
    ++*(int *) ctx;
}

/* One of each, all open: what was asked is answered, then everybody is told good-bye. */
TEST(stop_with_everything_open) {
    int stopped = 0;
    char url[100];
    world *w = world_new(NULL, NULL);
    CHECK_INT(weft_server_listen(w->server, "http://127.0.0.1:0/rpc", NULL), 0);
    snprintf(url, sizeof url, "ws://127.0.0.1:%d/ws", world_port(w, 0));
    CHECK_INT(weft_server_listen(w->server, url, NULL), 0);
    CHECK_INT(weft_server_listen(w->server, "tcp://127.0.0.1:0", NULL), 0);
    int events = world_connect_tcp(w, 0), batch = world_connect_tcp(w, 2), half = world_connect_tcp(w, 0),
        silent = world_connect_tcp(w, 2);
    world_say(w, events, "GET /rpc HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
    world_say(w, half,
              "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{");
    world_say(w, batch,
              "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"keep\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"echo\"}]\n");
    WORLD_UNTIL(w, w->kept != NULL && w->opened == 3);
    weft_server_stop(w->server, on_stopped, &stopped);
    CHECK_INT(world_read_all(w, events), 0);
    CHECK_INT(world_read_all(w, silent), 0);
    CHECK_INT(world_read_all(w, half), 0);
    CHECK_INT(stopped, 0);
    weft_reply(w->kept, weft_str("late"));
    w->kept = NULL;
    CHECK_INT(world_read_all(w, batch), 0);
    HAS(w, "\"late\"");
    HAS(w, "\"id\":2");
    int fds[] = {events, batch, half, silent};
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    WORLD_UNTIL(w, stopped == 1);
    world_free(w);
}

/* ---- descriptors ---- */

static int count_descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

TEST(no_descriptor_stays_behind) {
    static const char *const urls[] = {"tcp://127.0.0.1:0", "ws://127.0.0.1:0/ws", "http://127.0.0.1:0/rpc", "mem:here"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        test_row(urls[i]);
        life_free(life_new(urls[i], true)); /* whatever is opened once and for all */
        int before = count_descriptors();
        for (int n = 0; n < 5; n++) {
            life *l = life_new(urls[i], true);
            weft_call_opts opts = {.on_answer = on_answer, .ctx = l};
            weft_call_start(l->peer, "keep", weft_none(), &opts, NULL);
            WORLD_UNTIL(l->w, l->w->kept != NULL);
            l->w->server = weft_server_free(l->w->server);
            WORLD_UNTIL(l->w, l->states[WEFT_PEER_DISCONNECTED] >= 1);
            life_free(l);
        }
        CHECK_INT(count_descriptors(), before);
    }
    test_row(NULL);
}

/* clang-format off */
TEST_MAIN(
    CASE(a_busy_program_loses_no_time)
    CASE(calls_are_retried_where_their_loss_is_told)
    CASE(retries_end_with_the_last_connection)
    CASE(stop_with_everything_open)
    CASE(no_descriptor_stays_behind)
)

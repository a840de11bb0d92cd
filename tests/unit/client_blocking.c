/* Clients without a loop of the program's, and clients that cannot connect. The server is this program as a child. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/weft.h>

#include "client.h"
#include "harness.h"

#define CHILD "exec:/proc/self/exe --child"

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static int fail(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_fail(req, 12, "a \"quoted\" no", WEFT_OBJ({"why", weft_int(3)}));
}

static void give_up(weft_req *req, int why, void *ctx) {
    (void) ctx;
    weft_fail(req, 1, weft_strerror(why), weft_none());
}

static int never(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    weft_req_on_cancel(req, give_up, NULL);
    return 0;
}

static int tell(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    weft_notify(weft_req_peer(req), "news", weft_none());
    return weft_reply(req, weft_null());
}

static int count(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    for (int i = 1; i <= 5; i++)
        weft_part(req, weft_int(i));
    return weft_reply(req, weft_int(5));
}

static int quit(weft_req *req, const weft_json *params, void *ctx) {
    (void) req, (void) params, (void) ctx;
    _exit(9);
}

static const weft_method methods[] = {
    {"echo", echo, .help = ""},
    {"fail", fail, .help = ""},
    {"never", never, .help = ""},
    {"tell", tell, .help = ""},
    {"quit", quit, .help = ""},
    {"count", count, .help = ""},
    {0},
};

/* ---- calling ---- */

TEST(a_call) {
    WEFT_AUTO(weft_peer) peer = NULL;
    REQUIRE(weft_connect(CHILD, &peer) == 0);
    for (int i = 0; i < 100; i++) {
        WEFT_ANSWER a = {0};
        CHECK_INT(weft_call(peer, "echo", WEFT_OBJ({"n", weft_int(i)}), &a), 0);
        CHECK(a.result && !a.error);
        CHECK_INT(weft_get_int(a.result, "n", -1), i);
    }
}

/* One answer for all calls: each forgets the one before (under a sanitizer or memcheck a leak shows), a call that fails
 * leaves it as it is. */
TEST(an_answer_is_used_again) {
    WEFT_AUTO(weft_peer) peer = NULL;
    WEFT_ANSWER a = {0};
    REQUIRE(weft_connect(CHILD, &peer) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(weft_call(peer, "fail", weft_none(), &a), 0);
        CHECK(a.error && !a.result && *a.error->message);
        CHECK_INT(weft_call(peer, "echo", WEFT_OBJ({"n", weft_int(i)}), &a), 0);
        CHECK(a.result && !a.error);
        CHECK_INT(weft_call(peer, "echo", WEFT_OBJ({"again", weft_copy(a.result)}), &a), 0);
        weft_json n = weft_pointer(a.result, "/again/n");
        CHECK_INT(weft_int_of(&n, -1), i);
    }
    CHECK_INT(weft_call(peer, "echo", weft_int(1), &a), -EINVAL);
    CHECK(a.result != NULL);
    CHECK_INT(weft_call(peer, "echo", weft_none(), NULL), 0);
}

/* Times so long that they mean for ever are not over at once. */
TEST(times_beyond_all_time) {
    static const int64_t times[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        WEFT_AUTO(weft_peer) peer = NULL;
        WEFT_ANSWER a = {0};
        weft_connect_opts opts = {.timeout_ms = times[i], .reconnect = i == 1, .extras = true};
        weft_call_opts call = {.timeout_ms = times[i], .send_deadline = true};
        REQUIRE(weft_connect_with(CHILD, &opts, &peer, NULL) == 0);
        CHECK_INT(weft_call_with(peer, "echo", WEFT_OBJ({"n", weft_int(1)}), &call, &a), 0);
        CHECK(a.result != NULL);
        CHECK_INT(weft_flush(peer, times[i]), 0);
        CHECK_INT(weft_notify(peer, "tell", weft_none()), 0);
        CHECK_INT(weft_wait(peer, times[i]), 1);
    }
}

TEST(a_refusal_is_kept) {
    WEFT_AUTO(weft_peer) peer = NULL;
    WEFT_ANSWER a = {0};
    REQUIRE(weft_connect(CHILD, &peer) == 0);
    CHECK_INT(weft_call(peer, "fail", weft_none(), &a), 0);
    peer = weft_peer_free(peer); /* the answer is ours and stays */
    REQUIRE(a.error && !a.result);
    CHECK_INT(a.error->code, 12);
    CHECK_STR(a.error->message, "a \"quoted\" no");
    CHECK_INT(weft_get_int(&a.error->data, "why", 0), 3);
}

TEST(a_call_nobody_answers) {
    WEFT_AUTO(weft_peer) peer = NULL;
    WEFT_ANSWER a = {0};
    REQUIRE(weft_connect(CHILD, &peer) == 0);
    CHECK_INT(weft_call_with(peer, "never", weft_none(), &(weft_call_opts){.timeout_ms = 1}, &a), -ETIMEDOUT);
    CHECK(!a.result && !a.error);
    CHECK_INT(weft_call(peer, "echo", weft_none(), &a), 0);
}

static void on_part(weft_peer *peer, const weft_json *part, void *ctx) {
    (void) peer;
    *(int64_t *) ctx += weft_int_of(part, 0);
}

TEST(a_call_in_parts) {
    WEFT_AUTO(weft_peer) peer = NULL;
    WEFT_ANSWER a = {0};
    int64_t total = 0;
    REQUIRE(weft_connect(CHILD, &peer) == 0);
    weft_call_opts opts = {.on_part = on_part, .ctx = &total};
    CHECK_INT(weft_call_with(peer, "count", weft_none(), &opts, &a), 0);
    CHECK_INT(total, 15);
}

TEST(the_server_dies) {
    WEFT_AUTO(weft_peer) peer = NULL;
    WEFT_ANSWER a = {0};
    REQUIRE(weft_connect(CHILD, &peer) == 0);
    CHECK_INT(weft_call(peer, "quit", weft_none(), &a), -ECONNRESET);
    CHECK_STR(weft_peer_trouble(peer), "/proc/self/exe exited with status 9");
    CHECK_INT(weft_call(peer, "echo", weft_none(), &a), -ENOTCONN);
    CHECK_INT(weft_wait(peer, -1), -ENOTCONN);
    CHECK_INT(weft_flush(peer, -1), -ENOTCONN);
    CHECK_INT(weft_notify(peer, "echo", weft_none()), -ENOTCONN);
}

/* ---- waiting ---- */

typedef struct heard {
    int times, r;
    bool leave;
} heard;

static void on_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    heard *all = data;
    weft_answer a = {0};
    (void) method, (void) params;
    all->times++;
    all->r = weft_call(peer, "echo", weft_none(), &a); /* must not run the loop that is running this */
    if (all->leave)
        weft_peer_free(peer);
}

static void on_any_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer, (void) answer;
    *(int *) ctx = r;
}

TEST(waiting_delivers) {
    WEFT_AUTO(weft_peer) peer = NULL;
    heard all = {0};
    int r = 1;
    REQUIRE(weft_connect_with(CHILD, &(weft_connect_opts){.on_notification = on_notification, .data = &all}, &peer, NULL) ==
            0);
    CHECK_INT(weft_wait(peer, 0), 0);
    CHECK_INT(weft_call_start(peer, "tell", weft_none(), &(weft_call_opts){.on_answer = on_any_answer, .ctx = &r}, NULL), 0);
    while (r == 1 || !all.times)
        if (!CHECK_INT(weft_wait(peer, 30000), 1))
            break;
    CHECK_INT(r, 0);
    CHECK_INT(all.times, 1);
    CHECK_INT(all.r, -EDEADLK);
}

TEST(freed_while_it_waits) {
    weft_peer *peer;
    WEFT_ANSWER a = {0};
    heard all = {.leave = true};
    REQUIRE(weft_connect_with(CHILD, &(weft_connect_opts){.on_notification = on_notification, .data = &all}, &peer, NULL) ==
            0);
    CHECK_INT(weft_call(peer, "tell", weft_none(), &a), -ECONNRESET);
    CHECK_INT(all.times, 1);
}

TEST(flushing) {
    WEFT_AUTO(weft_peer) peer = NULL;
    char *text = malloc(700000);
    memset(text, 'x', 700000);
    REQUIRE(weft_connect(CHILD, &peer) == 0);
    CHECK_INT(weft_flush(peer, -1), 0);
    CHECK_INT(weft_notify(peer, "echo", WEFT_ARR(weft_strn(text, 700000))), 0);
    CHECK(weft_peer_output(peer).len > 700000);
    CHECK_INT(weft_flush(peer, 30000), 0);
    CHECK_INT(weft_peer_output(peer).len, 0);
    free(text);
}

/* ---- not connecting ---- */

static int connect_to(const char *url, int64_t timeout_ms, bool reconnect, weft_trouble *trouble) {
    weft_peer *peer = NULL;
    weft_connect_opts opts = {.timeout_ms = timeout_ms, .reconnect = reconnect};
    int r = weft_connect_with(url, &opts, &peer, trouble);
    CHECK(r < 0 ? !peer : peer != NULL);
    weft_peer_free(peer);
    return r;
}

/* Accepts, in the kernel, and never says a word. */
static int silent_listener(char *url, size_t size) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(fd, (struct sockaddr *) &address, len), 0);
    CHECK_INT(listen(fd, 16), 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *) &address, &len), 0);
    snprintf(url, size, "ws://127.0.0.1:%d/", ntohs(address.sin_port));
    return fd;
}

TEST(a_silent_server) {
    char url[64];
    weft_trouble trouble = {""};
    int fd = silent_listener(url, sizeof url);
    CHECK_INT(connect_to(url, 1, false, &trouble), -ETIMEDOUT);
    close(fd);
    snprintf(url, sizeof url, "ws://127.0.0.1:%d/", test_closed_port(&fd));
    /* Nobody there; with reconnect it is tried until the time is over, and the last reason is told. */
    int r = connect_to(url, 1, true, &trouble);
    CHECK(r == -ECONNREFUSED || r == -ETIMEDOUT);
    CHECK_INT(connect_to(url, 1000, false, &trouble), -ECONNREFUSED);
    CHECK(strstr(trouble.text, "nobody is listening there"));
    close(fd);
}

TEST(a_trouble_without_a_peer) {
    weft_trouble trouble = {"1234567"};
    CHECK_INT(connect_to("exec:there-is-no-such-program", 0, false, &trouble), -ENOENT);
    CHECK(strstr(trouble.text, "there-is-no-such-program"));
    CHECK_INT(connect_to("mem:nobody", 0, false, NULL), -ECONNREFUSED);
    CHECK_INT(connect_to("unix:/nowhere/at/all", 0, false, NULL), -ENOENT);
}

/* ---- on a loop ---- */

typedef struct states {
    weft_peer_state last;
    int seen[4];
    int why;
    bool leave;
} states;

static void on_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    states *all = data;
    all->seen[state]++;
    all->last = state;
    all->why = why;
    if (all->leave)
        weft_peer_free(peer);
}

/* In each state in turn, freeing it there is the end of it. */
TEST(freed_in_any_state) {
    static const char *const urls[] = {"mem:nobody", "mem:nobody", CHILD, "unix:/nowhere"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        states all = {.leave = i != 1};
        weft_loop *loop;
        weft_peer *peer;
        test_row(urls[i]);
        CHECK_INT(weft_loop_new(NULL, &loop), 0);
        weft_connect_opts opts = {.on_state = on_state, .data = &all, .reconnect = i == 0};
        CHECK_INT(weft_connect_on(loop, urls[i], &opts, &peer, NULL), 0);
        while (all.seen[WEFT_PEER_CONNECTING] == 0)
            weft_loop_once(loop, true);
        weft_loop_run(loop);
        CHECK_INT(all.seen[WEFT_PEER_CONNECTING], 1);
        if (!all.leave) {
            CHECK_INT(all.seen[WEFT_PEER_CLOSED], 1);
            weft_peer_free(peer);
        }
        weft_loop_free(loop);
    }
}

static int64_t noted;
static int note(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    noted++;
    return weft_reply(req, weft_null());
}

/* What is said while there is no connection waits for one, up to the hard limit; what was queued by then is not lost. */
TEST(a_queue_without_a_server) {
    static const weft_method taking[] = {{"note", note, .help = ""}, {0}};
    states all = {0};
    char text[65536];
    int r, answered = 1;
    int64_t queued = 0;
    weft_loop *loop;
    weft_peer *peer;
    weft_service *service;
    weft_server *server;
    memset(text, 'x', sizeof text);
    CHECK_INT(weft_loop_new(NULL, &loop), 0);
    weft_connect_opts opts = {.on_state = on_state, .data = &all, .reconnect = true};
    CHECK_INT(weft_connect_on(loop, "mem:later", &opts, &peer, NULL), 0);
    while (all.last != WEFT_PEER_DISCONNECTED)
        weft_loop_once(loop, true);
    CHECK_INT(
        weft_call_start(peer, "note", weft_none(), &(weft_call_opts){.on_answer = on_any_answer, .ctx = &answered}, NULL),
        0);
    while ((r = weft_notify(peer, "note", WEFT_ARR(weft_strn(text, sizeof text)))) == 0)
        queued++;
    CHECK_INT(r, -ENOBUFS);
    CHECK(queued > 100);
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = taking}, &service), 0);
    CHECK_INT(weft_server_new(loop, &(weft_server_opts){.service = service}, &server), 0);
    CHECK_INT(weft_server_listen(server, "mem:later", NULL), 0);
    while (noted <= queued && all.seen[WEFT_PEER_CONNECTED] < 2)
        weft_loop_once(loop, true);
    CHECK_INT(noted, queued + 1);
    CHECK_INT(answered, 0);
    weft_peer_free(peer);
    weft_server_free(server);
    weft_service_unref(service);
    weft_loop_run(loop);
    weft_loop_free(loop);
}

/* The n-th allocation fails: no crash, no leak, an error or a clean end. */
static void try_with_memory(test_memory *memory) {
    states all = {0};
    int r = 1;
    weft_loop *loop;
    weft_peer *peer = NULL;
    if (weft_loop_new(&memory->alloc, &loop) < 0)
        return;
    if (weft_connect_on(loop, "exec:/proc/self/exe --child", &(weft_connect_opts){.on_state = on_state, .data = &all}, &peer,
                        NULL) == 0 &&
        weft_call_start(peer, "echo", weft_none(), &(weft_call_opts){.on_answer = on_any_answer, .ctx = &r}, NULL) == 0) {
        while (r == 1)
            weft_loop_once(loop, true);
        CHECK(r == 0 || r == -ECONNRESET || r == -ENOTCONN || r == -ENOMEM);
        CHECK(r == 0 || all.last == WEFT_PEER_CLOSED || all.last == WEFT_PEER_CONNECTED || all.last == WEFT_PEER_CONNECTING);
    }
    weft_peer_free(peer);
    weft_loop_run(loop);
    weft_loop_free(loop);
}

TEST(failing_memory) {
    bool failed = true;
    for (long n = 1; failed; n++) {
        test_memory memory;
        test_memory_init(&memory, n);
        try_with_memory(&memory);
        CHECK_INT(memory.live, 0);
        failed = memory.count >= n;
        CHECK(n < 1000);
    }
}

static int be_child(void) {
    return weft_serve("stdio:", methods, NULL) < 0;
}

int main(int argc, char **argv) {
    static const test_case cases[] = {
        CASE(a_call) CASE(an_answer_is_used_again) CASE(times_beyond_all_time) CASE(a_refusal_is_kept)
            CASE(a_call_nobody_answers) CASE(a_call_in_parts) CASE(the_server_dies) CASE(waiting_delivers)
                CASE(freed_while_it_waits) CASE(flushing) CASE(a_silent_server) CASE(a_trouble_without_a_peer)
                    CASE(freed_in_any_state) CASE(a_queue_without_a_server) CASE(failing_memory)};
    if (argc == 2 && strcmp(argv[1], "--child") == 0)
        return be_child();
    return test_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}

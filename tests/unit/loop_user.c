/* What a program that builds on the library does with a loop: timers, signals, work from threads, and freeing things in the
 * wrong order. Only public headers. */
#include <weft/weft.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"

/* ---- work from threads ---- */

#define THREADS 4
#define EACH 2000

typedef struct job {
    weft_errand errand;
    int thread, number;
} job;

static weft_loop *post_loop;
static int last_number[THREADS], disorder, ran;

static void on_job(weft_loop *loop, void *ctx) {
    job *self = ctx;
    disorder += self->number != last_number[self->thread] + 1;
    last_number[self->thread] = self->number;
    free(self); /* it is off the queue */
    if (++ran == THREADS * EACH)
        weft_loop_release(loop);
}

static void *post_jobs(void *ctx) {
    for (int i = 1; i <= EACH; i++) {
        job *one = calloc(1, sizeof *one);
        one->thread = *(int *) ctx;
        one->number = i;
        one->errand = (weft_errand){.run = on_job, .ctx = one};
        weft_loop_post(post_loop, &one->errand);
    }
    return NULL;
}

TEST(threads_post_in_order) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    REQUIRE(weft_loop_new(NULL, &post_loop) == 0);
    weft_loop_hold(post_loop);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, post_jobs, &numbers[i]);
    }
    weft_loop_run(post_loop);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(ran, THREADS * EACH);
    CHECK_INT(disorder, 0);
    post_loop = weft_loop_free(post_loop);
}

static int times;

static void count_time(weft_loop *loop, void *ctx) {
    (void) loop;
    weft_errand *again = ctx;
    if (++times == 1 && again)
        CHECK_INT(weft_loop_post(loop, again), 1); /* itself: for the next time */
}

TEST(an_errand_that_waits_runs_once) {
    weft_loop *loop;
    weft_errand errand = {.run = count_time};
    times = 0;
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    CHECK_INT(weft_loop_post(loop, &errand), 1);
    CHECK_INT(weft_loop_post(loop, &errand), 0);
    weft_loop_once(loop, false);
    CHECK_INT(times, 1);
    weft_loop_once(loop, false);
    CHECK_INT(times, 1);
    times = 0;
    errand.ctx = &errand;
    CHECK_INT(weft_loop_post(loop, &errand), 1);
    for (int i = 0; i < 10 && times < 2; i++)
        weft_loop_once(loop, false);
    CHECK_INT(times, 2);
    weft_loop_free(loop);
}

/* Nothing else is on the loop, and it is never turned. */
TEST(an_errand_that_waits_when_the_loop_is_freed) {
    weft_loop *loop;
    weft_errand errand = {.run = count_time};
    times = 0;
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    CHECK_INT(weft_loop_post(loop, &errand), 1);
    weft_loop_free(loop);
    CHECK_INT(times, 1);
    errand.ctx = &errand;
    times = 0;
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    CHECK_INT(weft_loop_post(loop, &errand), 1); /* posts itself again: freeing ends all the same */
    weft_loop_free(loop);
    CHECK(times >= 1);
}

static weft_loop *signalled_loop;
static weft_errand signal_errand;

static void post_from_handler(int number) {
    (void) number;
    weft_loop_post(signalled_loop, &signal_errand);
}

static void stop_loop(weft_loop *loop, void *ctx) {
    ++*(int *) ctx;
    weft_loop_release(loop);
}

TEST(a_signal_handler_posts) {
    int stopped = 0;
    REQUIRE(weft_loop_new(NULL, &signalled_loop) == 0);
    signal_errand = (weft_errand){.run = stop_loop, .ctx = &stopped};
    struct sigaction old, action = {.sa_handler = post_from_handler};
    sigaction(SIGUSR1, &action, &old);
    weft_loop_hold(signalled_loop);
    raise(SIGUSR1);
    raise(SIGUSR1);
    weft_loop_run(signalled_loop);
    CHECK_INT(stopped, 1);
    sigaction(SIGUSR1, &old, NULL);
    signalled_loop = weft_loop_free(signalled_loop);
}

/* ---- timers ---- */

typedef struct beat {
    int count, stop_after;
    bool free_it;
} beat;

static void on_beat(weft_timer *timer, void *ctx) {
    beat *self = ctx;
    if (++self->count < self->stop_after)
        return;
    if (self->free_it)
        weft_timer_free(timer);
    else
        weft_timer_stop(timer);
}

TEST(a_timer_keeps_the_loop_until_it_is_over) {
    weft_loop *loop;
    WEFT_AUTO(weft_timer) once = NULL;
    weft_timer *often;
    beat one = {.stop_after = 100}, many = {.stop_after = 3, .free_it = true};
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    REQUIRE(weft_timer_new(loop, on_beat, &one, &once) == 0);
    REQUIRE(weft_timer_new(loop, on_beat, &many, &often) == 0);
    CHECK_INT(weft_timer_new(loop, NULL, NULL, &often), -EINVAL);
    weft_loop_run(loop); /* both are off */
    CHECK_INT(one.count, 0);
    weft_timer_start(once, 1, 0);
    weft_timer_start(often, 1, 1);
    weft_loop_run(loop);
    CHECK_INT(one.count, 1);
    CHECK_INT(many.count, 3);
    once = weft_timer_free(once);
    weft_loop_free(loop);
}

TEST(a_timer_in_virtual_time) {
    weft_loop *loop;
    weft_timer *timer;
    beat self = {.stop_after = 2};
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    weft_loop_set_now(loop, 1000);
    REQUIRE(weft_timer_new(loop, on_beat, &self, &timer) == 0);
    weft_timer_start(timer, 5000, 60000);
    CHECK_INT(weft_loop_deadline(loop), 6000);
    weft_loop_once(loop, true);
    CHECK_INT(self.count, 0);
    weft_loop_set_now(loop, 6000);
    weft_loop_once(loop, true);
    CHECK_INT(self.count, 1);
    weft_loop_set_now(loop, weft_loop_deadline(loop));
    CHECK_INT(weft_loop_now(loop), 66000);
    weft_loop_once(loop, true);
    CHECK_INT(self.count, 2);
    weft_timer_free(timer);
    weft_loop_free(loop);
}

/* ---- signals ---- */

static void on_number(weft_signal *one, int number, void *ctx) {
    *(int *) ctx = number;
    weft_signal_free(one);
}

TEST(a_signal_is_a_callback) {
    weft_loop *loop;
    weft_signal *one;
    int heard = 0;
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    CHECK_INT(weft_signal_new(loop, SIGKILL, on_number, &heard, &one), -EINVAL);
    REQUIRE(weft_signal_new(loop, SIGUSR2, on_number, &heard, &one) == 0);
    weft_loop_run(loop); /* it alone does not keep the loop */
    CHECK_INT(heard, 0);
    weft_loop_hold(loop); /* so that it waits for the signal */
    raise(SIGUSR2);
    while (!heard)
        weft_loop_once(loop, true);
    weft_loop_release(loop);
    CHECK_INT(heard, SIGUSR2);
    weft_loop_free(loop);
}

/* ---- in another loop ---- */

static void on_due_once(weft_timer *timer, void *ctx) {
    ++*(int *) ctx;
    weft_timer_stop(timer);
}

/* Where nothing keeps the loop, another one still has something to wait for: it must not turn and turn meanwhile. */
TEST(an_idle_loop_lets_another_wait) {
    weft_loop *loop;
    weft_signal *one;
    weft_timer *timer;
    int heard = 0, due = 0;
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    weft_loop_once(loop, false);
    CHECK_INT(weft_loop_timeout_ms(loop), -1);
    REQUIRE(weft_signal_new(loop, SIGUSR2, on_number, &heard, &one) == 0);
    weft_loop_once(loop, false);
    CHECK_INT(weft_loop_timeout_ms(loop), -1);
    raise(SIGUSR2);
    struct pollfd ready = {.fd = weft_loop_fd(loop), .events = POLLIN};
    CHECK_INT(poll(&ready, 1, 10000), 1);
    weft_loop_once(loop, false);
    CHECK_INT(heard, SIGUSR2);
    weft_loop_once(loop, false);
    CHECK_INT(weft_loop_timeout_ms(loop), -1);

    REQUIRE(weft_timer_new(loop, on_due_once, &due, &timer) == 0);
    weft_timer_start(timer, 3600 * 1000, 0);
    weft_loop_once(loop, false);
    CHECK(weft_loop_timeout_ms(loop) > 3000 * 1000);
    weft_timer_stop(timer);
    weft_loop_once(loop, false);
    CHECK_INT(due, 0);
    weft_timer_free(timer);
    weft_loop_free(loop);
}

/* ---- the shortest stop ---- */

static int answer_late(weft_req *req, const weft_json *params, void *ctx);
static const weft_method late_methods[] = {{.name = "late", .handler = answer_late}, {0}};

typedef struct late_answer {
    weft_req *req;
    weft_timer *timer;
} late_answer;

static void on_late(weft_timer *timer, void *ctx) {
    late_answer *self = ctx;
    weft_reply(self->req, weft_str("after a while"));
    weft_timer_free(timer);
    free(self);
}

static int answer_late(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    late_answer *self = calloc(1, sizeof *self);
    self->req = req;
    int r = weft_timer_new(*(weft_loop **) ctx, on_late, self, &self->timer);
    if (r >= 0)
        weft_timer_start(self->timer, 50, 0);
    return r;
}

static void on_late_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    (void) peer;
    *(bool *) ctx = r == 0 && strcmp(weft_str_of(answer->result, ""), "after a while") == 0;
}

static void raise_term(weft_timer *timer, void *ctx) {
    (void) timer, (void) ctx;
    raise(SIGTERM);
}

/* The request is open when the signal comes: it is answered, then the server ends. */
TEST(answers_later_and_stops_at_sigterm) {
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    weft_peer *peer;
    weft_timer *timer;
    bool answered = false;
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    REQUIRE(weft_service_new(&(weft_service_opts){.methods = late_methods, .ctx = &loop}, &service) == 0);
    REQUIRE(weft_server_new(loop, &(weft_server_opts){.service = service}, &server) == 0);
    REQUIRE(weft_server_listen(server, "mem:late", NULL) == 0);
    REQUIRE(weft_connect_on(loop, "mem:late", NULL, &peer, NULL) == 0);
    CHECK_INT(
        weft_call_start(peer, "late", weft_none(), &(weft_call_opts){.on_answer = on_late_answer, .ctx = &answered}, NULL),
        0);
    REQUIRE(weft_timer_new(loop, raise_term, NULL, &timer) == 0);
    weft_timer_start(timer, 10, 0);
    CHECK_INT(weft_server_run(server), 0);
    CHECK(answered);
    weft_timer_free(timer);
    weft_peer_free(peer);
    weft_server_free(server);
    weft_service_unref(service);
    weft_loop_free(loop);
}

/* ---- a server that ends itself ---- */

static int end_server(weft_req *req, const weft_json *params, void *ctx) {
    weft_server *server = *(weft_server **) ctx;
    weft_reply(req, weft_null());
    if (weft_typeof(params) == WEFT_ARRAY)
        weft_server_free(server);
    else
        weft_server_stop(server, NULL, NULL);
    return 0;
}

static void on_too_long(weft_timer *timer, void *ctx) {
    *(bool *) ctx = true;
    raise(SIGTERM);
    raise(SIGTERM);
    weft_timer_stop(timer);
}

/* Something else keeps the loop: the run ends all the same, by stopping and by freeing. */
TEST(a_run_ends_with_its_server) {
    static const weft_method methods[] = {{.name = "end", .handler = end_server}, {0}};
    for (int freed = 0; freed < 2; freed++) {
        weft_loop *loop;
        weft_service *service;
        weft_server *server;
        weft_peer *peer;
        weft_timer *timer;
        bool too_long = false;
        test_row(freed ? "freed" : "stopped");
        REQUIRE(weft_loop_new(NULL, &loop) == 0);
        REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods, .ctx = &server}, &service) == 0);
        REQUIRE(weft_server_new(loop, &(weft_server_opts){.service = service}, &server) == 0);
        REQUIRE(weft_server_listen(server, "mem:end", NULL) == 0);
        REQUIRE(weft_connect_on(loop, "mem:end", NULL, &peer, NULL) == 0);
        REQUIRE(weft_timer_new(loop, on_too_long, &too_long, &timer) == 0);
        weft_timer_start(timer, 20000, 20000);
        CHECK_INT(weft_call_start(peer, "end", freed ? WEFT_ARR(weft_int(1)) : weft_none(), NULL, NULL), 0);
        CHECK_INT(weft_server_run(server), 0);
        CHECK(!too_long);
        weft_timer_free(timer);
        weft_peer_free(peer);
        if (!freed)
            weft_server_free(server);
        weft_service_unref(service);
        weft_loop_free(loop);
    }
    test_row(NULL);
}

/* ---- freeing in the wrong order ---- */

TEST(a_loop_goes_with_the_last_thing_on_it) {
    test_memory memory;
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    weft_peer *peer;
    weft_timer *timer;
    weft_signal *one;
    int heard;
    beat self = {.stop_after = 1};
    test_memory_init(&memory, 0);
    REQUIRE(weft_loop_new(&memory.alloc, &loop) == 0);
    REQUIRE(weft_service_new(&(weft_service_opts){.alloc = &memory.alloc}, &service) == 0);
    REQUIRE(weft_server_new(loop, &(weft_server_opts){.service = service}, &server) == 0);
    REQUIRE(weft_server_listen(server, "mem:order", NULL) == 0);
    REQUIRE(weft_server_listen(server, "tcp://127.0.0.1:0", NULL) == 0);
    REQUIRE(weft_connect_on(loop, "mem:order", &(weft_connect_opts){.service = service}, &peer, NULL) == 0);
    REQUIRE(weft_timer_new(loop, on_beat, &self, &timer) == 0);
    REQUIRE(weft_signal_new(loop, SIGUSR2, on_number, &heard, &one) == 0);
    weft_timer_start(timer, 1000, 0);
    weft_loop_once(loop, false);
    CHECK(weft_loop_free(loop) == NULL);
    CHECK(memory.live > 0);
    weft_signal_free(one);
    weft_peer_free(peer);
    weft_timer_free(timer);
    weft_server_free(server);
    weft_service_unref(service);
    CHECK_INT(memory.live, 0);
}

/* ---- a client and its loop, freed one after the other ---- */

typedef struct far_side {
    char url[64];
    weft_loop *loop;
    weft_server *server;
    bool heard;
} far_side;

static int hear_last(weft_req *req, const weft_json *params, void *ctx) {
    (void) req, (void) params;
    ((far_side *) ctx)->heard = true;
    return 0;
}

static void on_far_close(weft_server *server, weft_peer *peer, int why, void *data) {
    (void) server, (void) peer, (void) why;
    weft_loop_stop(((far_side *) data)->loop);
}

static void *run_far_side(void *ctx) {
    far_side *self = ctx;
    weft_loop_run(self->loop);
    return NULL;
}

static void stop_when_connected(weft_peer *peer, weft_peer_state state, int why, void *data) {
    (void) why, (void) data;
    if (state == WEFT_PEER_CONNECTED)
        weft_loop_stop(weft_peer_loop(peer));
}

/* The other side is a loop of its own, in a thread, so its end does not come while this one is freed at once: its last words
 * arrive, and nothing is left behind. */
TEST(a_loop_waits_for_a_client_that_was_freed) {
    static const weft_method methods[] = {{.name = "last", .handler = hear_last}, {0}};
    static const char *const urls[] = {"unix:", "tcp://127.0.0.1:0", "ws://127.0.0.1:0/"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        far_side far = {.heard = false};
        test_memory memory;
        pthread_t thread;
        weft_service *service;
        weft_loop *loop;
        weft_peer *peer;
        test_row(urls[i]);
        if (i)
            snprintf(far.url, sizeof far.url, "%s", urls[i]);
        else
            snprintf(far.url, sizeof far.url, "unix:/tmp/weft-loop-user-%ld.sock", (long) getpid());
        REQUIRE(weft_loop_new(NULL, &far.loop) == 0);
        REQUIRE(weft_service_new(&(weft_service_opts){.methods = methods, .ctx = &far}, &service) == 0);
        weft_server_opts opts = {.service = service, .on_close = on_far_close, .data = &far};
        REQUIRE(weft_server_new(far.loop, &opts, &far.server) == 0);
        REQUIRE(weft_server_listen(far.server, far.url, NULL) == 0);
        pthread_create(&thread, NULL, run_far_side, &far);

        test_memory_init(&memory, 0);
        REQUIRE(weft_loop_new(&memory.alloc, &loop) == 0);
        weft_connect_opts how = {.on_state = stop_when_connected, .reconnect = true};
        REQUIRE(weft_connect_on(loop, weft_server_url(far.server, 0), &how, &peer, NULL) == 0);
        weft_loop_run(loop);
        CHECK_INT(weft_notify(peer, "last", weft_none()), 0);
        weft_peer_free(peer);
        weft_loop_free(loop);
        CHECK_INT(memory.live, 0);

        pthread_join(thread, NULL);
        CHECK(far.heard);
        weft_server_free(far.server);
        weft_service_unref(service);
        weft_loop_free(far.loop);
    }
    test_row(NULL);
}

static void free_the_loop(weft_timer *timer, void *ctx) {
    weft_timer_free(timer);
    weft_loop_free(ctx);
}

TEST(a_loop_freed_in_a_callback) {
    test_memory memory;
    weft_loop *loop;
    weft_timer *timer;
    test_memory_init(&memory, 0);
    REQUIRE(weft_loop_new(&memory.alloc, &loop) == 0);
    REQUIRE(weft_timer_new(loop, free_the_loop, loop, &timer) == 0);
    weft_timer_start(timer, 0, 0);
    weft_loop_run(loop);
    CHECK_INT(memory.live, 0);
}

static void stop_the_loop(weft_loop *loop, void *ctx) {
    (void) ctx;
    weft_loop_stop(loop);
}

/* Nobody turns the loop any more who could obey: it is freed all the same. */
TEST(a_loop_is_freed_although_it_was_stopped) {
    test_memory memory;
    for (int posted = 0; posted < 2; posted++) {
        weft_loop *loop;
        weft_errand errand = {.run = stop_the_loop};
        test_memory_init(&memory, 0);
        REQUIRE(weft_loop_new(&memory.alloc, &loop) == 0);
        if (posted)
            weft_loop_post(loop, &errand);
        else
            weft_loop_stop(loop);
        weft_loop_free(loop);
        CHECK_INT(memory.live, 0);
    }
}

TEST(releasing_what_is_not_held) {
    weft_loop *loop;
    weft_errand errand = {.run = stop_the_loop};
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    weft_loop_release(loop);
    weft_loop_hold(loop); /* holds, whatever was released before */
    weft_loop_post(loop, &errand);
    CHECK_INT(weft_loop_once(loop, true), 1);
    weft_loop_release(loop);
    CHECK_INT(weft_loop_once(loop, false), 0);
    weft_loop_free(loop);
}

typedef struct nested {
    weft_loop *loop;
    weft_server *server;
    int run, once, served;
} nested;

static void run_once_more(weft_timer *timer, void *ctx) {
    nested *self = ctx;
    (void) timer;
    self->run = weft_loop_run(self->loop);
    self->once = weft_loop_once(self->loop, false);
    self->served = weft_server_run(self->server);
    weft_loop_stop(self->loop);
}

static void stop_the_server(weft_timer *timer, void *ctx) {
    (void) timer;
    weft_server_stop(ctx, NULL, NULL);
}

/* Nothing could end it a second time, neither a signal nor weft_server_stop(). */
TEST(a_server_that_was_stopped_stays_so) {
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    weft_timer *timer;
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    REQUIRE(weft_service_new(NULL, &service) == 0);
    REQUIRE(weft_server_new(loop, &(weft_server_opts){.service = service}, &server) == 0);
    REQUIRE(weft_timer_new(loop, stop_the_server, server, &timer) == 0);
    CHECK_INT(weft_server_listen(server, "mem:stopped", NULL), 0);
    weft_timer_start(timer, 0, 0);
    CHECK_INT(weft_server_run(server), 0);
    CHECK_INT(weft_server_listen(server, "mem:again", NULL), -ESHUTDOWN);
    CHECK_STR(weft_server_trouble(server), "mem:again: the server was stopped");
    weft_timer_start(timer, 3600 * 1000, 0); /* something else keeps the loop */
    CHECK_INT(weft_server_run(server), 0);
    weft_timer_free(timer);
    weft_server_free(server);
    weft_service_unref(service);
    weft_loop_free(loop);
}

/* It would never end: what ends it waits for it. */
TEST(a_callback_cannot_run_its_loop) {
    nested self = {0};
    weft_service *service;
    weft_timer *timer;
    REQUIRE(weft_loop_new(NULL, &self.loop) == 0);
    REQUIRE(weft_service_new(NULL, &service) == 0);
    REQUIRE(weft_server_new(self.loop, &(weft_server_opts){.service = service}, &self.server) == 0);
    REQUIRE(weft_server_listen(self.server, "mem:nested", NULL) == 0);
    REQUIRE(weft_timer_new(self.loop, run_once_more, &self, &timer) == 0);
    weft_timer_start(timer, 0, 0);
    CHECK_INT(weft_loop_run(self.loop), 0);
    CHECK_INT(self.run, -EDEADLK);
    CHECK_INT(self.once, -EDEADLK);
    CHECK_INT(self.served, -EDEADLK);
    weft_timer_free(timer);
    weft_server_free(self.server);
    weft_service_unref(service);
    weft_loop_free(self.loop);
}

/* ---- listening explains itself ---- */

TEST(why_nobody_can_listen) {
    static const struct {
        const char *url, *why;
        int r;
    } rows[] = {
        {"nonsense", "nonsense: a URL begins with one of", -EINVAL},
        {"exec:cat", "exec:cat: nobody can listen there; it is for clients", -EINVAL},
        {"unix:/nowhere/at/all.sock", "unix:/nowhere/at/all.sock: No such file or directory", -ENOENT},
        {"tcp://192.0.2.1:1", "tcp://192.0.2.1:1: this machine does not have that address", -EADDRNOTAVAIL},
        {"mem:twice", "mem:twice: somebody answers there already", -EADDRINUSE},
        {NULL, "no URL: ", -EINVAL},
    };
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    REQUIRE(weft_service_new(NULL, &service) == 0);
    REQUIRE(weft_server_new(loop, &(weft_server_opts){.service = service}, &server) == 0);
    CHECK_INT(weft_server_listen(server, "mem:twice", NULL), 0);
    CHECK_STR(weft_server_trouble(server), "");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        test_row(rows[i].url);
        CHECK_INT(weft_server_listen(server, rows[i].url, NULL), rows[i].r);
        if (!CHECK(strstr(weft_server_trouble(server), rows[i].why)))
            fprintf(stderr, "said: %s\n", weft_server_trouble(server));
    }
    test_row(NULL);
    weft_listen_opts opts = {.tls = {.cert = "/nowhere/server.pem", .key = "/nowhere/server.key"}};
    CHECK_INT(weft_server_listen(server, "tls://127.0.0.1:0", &opts), -ENOENT);
    CHECK_STR(weft_server_trouble(server), "TLS: /nowhere/server.pem: No such file or directory");
    weft_server_free(server);
    weft_service_unref(service);
    weft_loop_free(loop);
}

TEST_MAIN(CASE(threads_post_in_order) CASE(an_errand_that_waits_runs_once) CASE(an_errand_that_waits_when_the_loop_is_freed)
              CASE(a_signal_handler_posts) CASE(a_timer_keeps_the_loop_until_it_is_over) CASE(a_timer_in_virtual_time)
                  CASE(a_signal_is_a_callback) CASE(an_idle_loop_lets_another_wait) CASE(answers_later_and_stops_at_sigterm)
                      CASE(a_run_ends_with_its_server) CASE(a_loop_goes_with_the_last_thing_on_it)
                          CASE(a_loop_freed_in_a_callback) CASE(a_callback_cannot_run_its_loop)
                              CASE(a_server_that_was_stopped_stays_so) CASE(a_loop_is_freed_although_it_was_stopped)
                                  CASE(releasing_what_is_not_held) CASE(a_loop_waits_for_a_client_that_was_freed)
                                      CASE(why_nobody_can_listen))

/* A resolver that does not answer: whoever asked can be closed and the loop freed, at once and in any order. */
#include <netdb.h>
#include <semaphore.h>

#include "loop.h"
#include "net_world.h"
#include "post.h"

/* What is left to a resolver that answers too late is not a leak. Only there in a sanitizer's build. */
__attribute__((weak)) void __lsan_disable(void);
__attribute__((weak)) void __lsan_enable(void);

static sem_t asked, may_answer, answered;

/* Instead of the C library's, for libuv too. A number needs nobody's answer. */
__attribute__((visibility("default"))) int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                                                       struct addrinfo **ret) {
    (void) host;
    (void) port;
    *ret = NULL;
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    sem_post(&asked);
    while (sem_wait(&may_answer) < 0)
        ;
    sem_post(&answered);
    return EAI_AGAIN;
}

static void turn_until_asked(weft_loop *loop) {
    while (sem_trywait(&asked) < 0) {
        poll(NULL, 0, 1);
        weft_loop_once(loop, false);
    }
}

static void on_done(void *ctx, int r, int status, const char *why) {
    (void) r;
    (void) status;
    (void) why;
    ++*(int *) ctx;
}

static weft_post *start_post(weft_loop *loop, int *times) {
    weft_post *post;
    weft_post_opts opts = {.url = "http://slow.example/", .type = "text/plain", .on_done = on_done, .ctx = times};
    return CHECK_INT(weft__post_new(loop, &opts, &post), 0) ? post : NULL;
}

static void expect_leak(bool expect) {
    if (__lsan_disable && __lsan_enable)
        (expect ? __lsan_disable : __lsan_enable)();
}

TEST(it_answers_too_late) {
    weft_loop *loop;
    int times = 0;
    expect_leak(true);
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    weft_post *post = start_post(loop, &times);
    turn_until_asked(loop);
    weft__post_free(post);
    weft_loop_free(loop);
    CHECK_INT(times, 0);
    sem_post(&may_answer); /* into a loop that nobody turns any more */
    sem_wait(&answered);   /* and not into that of the next test */
    expect_leak(false);
}

TEST(it_answers_just_in_time) {
    weft_loop *loop;
    int times = 0;
    REQUIRE(weft_loop_new(NULL, &loop) == 0);
    weft_post *post = start_post(loop, &times);
    turn_until_asked(loop);
    weft__post_free(post);
    sem_post(&may_answer);
    weft_loop_free(loop);
    sem_wait(&answered);
    CHECK_INT(times, 0);
}

/* It brings a loop of its own. */
TEST(a_client_does_not_wait_for_it) {
    weft_peer *peer = NULL;
    expect_leak(true);
    CHECK_INT(weft_connect_with("tcp://slow.example:1", &(weft_connect_opts){.timeout_ms = 20}, &peer, NULL), -ETIMEDOUT);
    CHECK(!peer);
    sem_post(&may_answer);
    sem_wait(&answered);
    expect_leak(false);
}

int main(int argc, char **argv) {
    static const test_case cases[] = {CASE(it_answers_too_late) CASE(it_answers_just_in_time)
                                          CASE(a_client_does_not_wait_for_it)};
    sem_init(&asked, 0, 0);
    sem_init(&may_answer, 0, 0);
    sem_init(&answered, 0, 0);
    return test_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}

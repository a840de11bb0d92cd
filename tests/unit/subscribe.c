/* Subscriptions of a client against a server that follows a script, on virtual time: what its owner hears is written down
 * line by line. The last part has a server with a journal that hangs up wherever it can. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/weft.h>

#include "chunks.h"
#include "harness.h"
#include "loop.h"
#include "position_file.h"

#define TURNS 5000
#define TURN_MS 10

typedef struct script {
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    weft_peer *their, *peer; /* the server's side and the client's */
    weft_sub *sub;
    weft_req *req; /* tinyvex/subscribe that waits */
    char asked[1024];
    int asks, unsubscribed, others;
    char heard[8192];
    size_t len;
    int64_t now, turn_ms;
    bool free_in_value, free_peer_in_state;
    char folder[64], file[96];
} script;

static void hear(script *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(s->heard + s->len, sizeof s->heard - s->len, format, args);
    va_end(args);
    s->len += (size_t) n < sizeof s->heard - s->len ? (size_t) n : 0;
}

/* Its client has given up, or is gone. */
static void on_cancel(weft_req *req, int why, void *ctx) {
    script *s = ctx;
    (void) why;
    if (s->req == req)
        s->req = NULL;
    weft_fail(req, -1, "gone", weft_none());
}

static int on_subscribe(weft_req *req, const weft_json *params, void *ctx) {
    script *s = ctx;
    s->asks++;
    s->req = req;
    weft_req_on_cancel(req, on_cancel, s);
    snprintf(s->asked, sizeof s->asked, "%.*s", (int) params->len, params->text);
    return 0;
}

static int on_unsubscribe(weft_req *req, const weft_json *params, void *ctx) {
    script *s = ctx;
    (void) req, (void) params;
    s->unsubscribed++;
    return weft_reply(req, weft_bool(true));
}

static const weft_method script_methods[] = {
    {.name = "tinyvex/subscribe", .handler = on_subscribe},
    {.name = "tinyvex/unsubscribe", .handler = on_unsubscribe},
    {0},
};

static void on_open(weft_server *server, weft_peer *peer, void *data) {
    (void) server;
    ((script *) data)->their = peer;
}

static void on_close(weft_server *server, weft_peer *peer, int why, void *data) {
    script *s = data;
    (void) server, (void) why;
    if (s->their == peer)
        s->their = NULL;
}

static void on_value(weft_sub *sub, const weft_sub_value *value, void *ctx) {
    script *s = ctx;
    hear(s, "%llu %.*s\n", (unsigned long long) value->seq, (int) (value->value->len < 40 ? value->value->len : 40),
         value->value->text);
    CHECK_INT((int64_t) weft_sub_seq(sub), (int64_t) value->seq);
    CHECK_STR(weft_sub_journal(sub), value->journal);
    if (s->free_in_value)
        s->sub = weft_sub_free(s->sub);
}

static void on_news(weft_sub *sub, const weft_sub_news *news, void *ctx) {
    static const char *const names[] = {"live", "catching up", "resumed", "snapshot", "lost", "unsaved", "ended", "notice"};
    script *s = ctx;
    (void) sub;
    hear(s, "%s", names[news->state]);
    if (*news->reason)
        hear(s, " %s", news->reason);
    if (news->state == WEFT_SUB_ENDED && news->why)
        hear(s, " %d", news->why);
    if (news->error)
        hear(s, ": %s", news->error->message);
    hear(s, "\n");
    if (s->free_peer_in_state)
        s->peer = weft_peer_free(s->peer);
}

static void on_other(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    (void) peer, (void) method, (void) params;
    ((script *) data)->others++;
}

static void turn(script *s) {
    s->now += s->turn_ms ? s->turn_ms : TURN_MS;
    weft_loop_set_now(s->loop, s->now);
    weft_loop_once(s->loop, false);
}

#define UNTIL(s, condition)                                                                                                 \
    do {                                                                                                                    \
        for (int turns_ = 0; turns_ < TURNS && !(condition); turns_++)                                                      \
            turn(s);                                                                                                        \
        CHECK(condition);                                                                                                   \
    } while (0)

/* What is under way arrives within a few turns, each of which reads everything there is. */
static void settle(script *s) {
    for (int i = 0; i < 8; i++)
        turn(s);
}

static int script_open(script *s, bool reconnect) {
    weft_connect_opts opts = {.reconnect = reconnect, .data = s, .on_notification = on_other};
    int r = weft_server_new(s->loop,
                            &(weft_server_opts){.service = s->service, .data = s, .on_open = on_open, .on_close = on_close},
                            &s->server);
    if (r >= 0)
        r = weft_server_listen(s->server, "mem:hub", NULL);
    if (r >= 0)
        r = weft_connect_on(s->loop, "mem:hub", &opts, &s->peer, NULL);
    return r;
}

static script *script_new(bool reconnect) {
    script *s = calloc(1, sizeof *s);
    s->now = 1000;
    CHECK_INT(weft_loop_new(NULL, &s->loop), 0);
    weft_loop_set_now(s->loop, s->now);
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = script_methods, .ctx = s}, &s->service), 0);
    CHECK_INT(script_open(s, reconnect), 0);
    snprintf(s->folder, sizeof s->folder, "/tmp/weft-test-XXXXXX");
    CHECK(mkdtemp(s->folder) != NULL);
    snprintf(s->file, sizeof s->file, "%s/position", s->folder);
    return s;
}

static void script_free(script *s) {
    s->sub = weft_sub_free(s->sub);
    s->peer = weft_peer_free(s->peer);
    s->server = weft_server_free(s->server);
    settle(s);
    s->loop = weft_loop_free(s->loop);
    weft_service_unref(s->service);
    test_remove(s->folder);
    free(s);
}

static weft_sub_opts script_opts(script *s) {
    return (weft_sub_opts){.on_value = on_value, .on_state = on_news, .ctx = s};
}

static void subscribe(script *s, const weft_sub_opts *opts) {
    CHECK_INT(weft_subscribe(s->peer, "items", WEFT_OBJ({"of", weft_str("x")}), opts, &s->sub), 0);
}

static void answer(script *s, const char *result) {
    UNTIL(s, s->req != NULL);
    if (s->req)
        weft_reply(s->req, weft_raw(result, strlen(result)));
    s->req = NULL;
    settle(s);
}

static void notify(script *s, const char *method, const char *params) {
    CHECK(s->their != NULL);
    if (s->their)
        CHECK_INT(weft_notify(s->their, method, weft_raw(params, strlen(params))), 0);
    settle(s);
}

static void data(script *s, int seq) {
    char text[200];
    snprintf(text, sizeof text, "{\"subId\":\"weft-sub-1\",\"seq\":%d,\"value\":{\"n\":%d},\"journal\":\"J\"}", seq, seq);
    notify(s, "tinyvex/data", text);
}

static void chunk(script *s, int seq, const char *transition, int part, int total, const char *piece) {
    char text[400];
    snprintf(text, sizeof text,
             "{\"subId\":\"weft-sub-1\",\"seq\":%d,\"transitionId\":\"%s\",\"part\":%d,\"total\":%d,\"chunk\":\"%s\"%s}",
             seq, transition, part, total, piece, part == total ? ",\"journal\":\"J\"" : "");
    notify(s, "tinyvex/transitionChunk", text);
}

static void hang_up(script *s) {
    weft_peer_free(s->their);
    s->their = NULL;
    settle(s);
}

#define LOG_LIVE "{\"accepted\":true,\"resumed\":false,\"startSeq\":4,\"journal\":\"J\",\"mode\":\"log\"}"
#define LOG_RESUMED "{\"accepted\":true,\"resumed\":true,\"startSeq\":6,\"journal\":\"J\",\"mode\":\"log\"}"
#define STATE_LIVE "{\"accepted\":true,\"resumed\":false,\"startSeq\":0,\"journal\":\"J\",\"mode\":\"state\"}"

static script *following(const char *result, bool reconnect) {
    script *s = script_new(reconnect);
    weft_sub_opts opts = script_opts(s);
    subscribe(s, &opts);
    answer(s, result);
    return s;
}

/* ---- a connection that comes back ---- */

TEST(it_asks_for_what_it_missed) {
    script *s = following(LOG_LIVE, true);
    CHECK_STR(s->asked, "{\"subId\":\"weft-sub-1\",\"name\":\"items\",\"params\":{\"of\":\"x\"}}");
    data(s, 5);
    data(s, 6);
    data(s, 6);
    data(s, 3);
    hang_up(s);
    UNTIL(s, s->asks == 2);
    CHECK_STR(s->asked,
              "{\"subId\":\"weft-sub-1\",\"name\":\"items\",\"params\":{\"of\":\"x\"},\"lastSeq\":6,\"journal\":\"J\"}");
    answer(s, LOG_RESUMED);
    data(s, 6);
    data(s, 9);
    CHECK_STR(s->heard, "live\n5 {\"n\":5}\n6 {\"n\":6}\nlost\ncatching up\nresumed\n9 {\"n\":9}\n");
    s->sub = weft_sub_free(s->sub);
    UNTIL(s, s->unsubscribed == 1);
    data(s, 10);
    CHECK_INT(s->others, 1); /* nobody's any more: the peer's owner hears of it */
    script_free(s);
}

/* It goes on; what is said of another subscription, or before the answer, is not for it. */
TEST(what_is_said_about_it_is_told) {
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s);
    subscribe(s, &opts);
    UNTIL(s, s->req != NULL);
    notify(s, "tinyvex/error", "{\"subId\":\"weft-sub-1\",\"code\":\"TVX002\",\"message\":\"too early\"}");
    answer(s, STATE_LIVE);
    data(s, 5);
    notify(s, "tinyvex/error", "{\"subId\":\"weft-sub-2\",\"code\":\"TVX002\",\"message\":\"another\"}");
    notify(s, "tinyvex/error", "{\"subId\":\"weft-sub-1\",\"code\":\"TVX002\",\"message\":\"it is old\",\"data\":{}}");
    notify(s, "tinyvex/error", "{\"subId\":\"weft-sub-1\"}");
    data(s, 6);
    CHECK_STR(s->heard, "live\n5 {\"n\":5}\nnotice TVX002: it is old\nnotice: \n6 {\"n\":6}\n");
    CHECK_INT(s->others, 1);
    script_free(s);
}

TEST(no_params_are_left_out) {
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s);
    CHECK_INT(weft_subscribe(s->peer, "items", weft_none(), &opts, &s->sub), 0);
    UNTIL(s, s->req != NULL);
    CHECK_STR(s->asked, "{\"subId\":\"weft-sub-1\",\"name\":\"items\"}");
    script_free(s);
}

/* Nothing came before the loss: where it began is a position as well. */
TEST(a_log_without_values_resumes) {
    script *s = following(LOG_LIVE, true);
    hang_up(s);
    UNTIL(s, s->asks == 2);
    CHECK(strstr(s->asked, "\"lastSeq\":4,\"journal\":\"J\"") != NULL);
    answer(s, LOG_RESUMED);
    data(s, 4);
    data(s, 5);
    CHECK_STR(s->heard, "live\nlost\ncatching up\nresumed\n5 {\"n\":5}\n");
    script_free(s);
}

/* But of a state it is none: the value would never come. */
TEST(a_state_without_a_value_begins_again) {
    script *s = following(STATE_LIVE, true);
    CHECK(weft_sub_is_state(s->sub));
    hang_up(s);
    UNTIL(s, s->asks == 2);
    CHECK(strstr(s->asked, "lastSeq") == NULL);
    answer(s, STATE_LIVE);
    data(s, 0);
    data(s, 0);
    CHECK_STR(s->heard, "live\nlost\nlive\n0 {\"n\":0}\n");
    script_free(s);
}

TEST(gaps_are_told) {
    static const char *const reasons[] = {"epochChanged", "trimmed", "futureSeq"};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        char result[200], expected[200];
        script *s = following(LOG_LIVE, true);
        test_row(reasons[i]);
        data(s, 50);
        hang_up(s);
        snprintf(result, sizeof result,
                 "{\"resumed\":false,\"startSeq\":1,\"journal\":\"K\",\"mode\":\"log\",\"reason\":\"%s\"}", reasons[i]);
        answer(s, result);
        CHECK_STR(weft_sub_journal(s->sub), "K");
        data(s, 2); /* a lower seq than before counts now */
        snprintf(expected, sizeof expected, "live\n50 {\"n\":50}\nlost\ncatching up\nsnapshot %s\n2 {\"n\":2}\n",
                 reasons[i]);
        CHECK_STR(s->heard, expected);
        script_free(s);
    }
    test_row(NULL);
}

TEST(values_before_the_answer_are_of_another_subscription) {
    script *s = following(LOG_LIVE, true);
    hang_up(s);
    UNTIL(s, s->req != NULL);
    data(s, 7);
    chunk(s, 8, "a", 1, 1, "8");
    answer(s, LOG_RESUMED);
    data(s, 5);
    CHECK_STR(s->heard, "live\nlost\ncatching up\nresumed\n5 {\"n\":5}\n");
    script_free(s);
}

TEST(without_reconnecting_it_ends) {
    script *s = following(LOG_LIVE, false);
    hang_up(s);
    char expected[64];
    snprintf(expected, sizeof expected, "live\nended %d\n", -ECONNRESET);
    CHECK_STR(s->heard, expected);
    weft_sub *other;
    weft_sub_opts opts = script_opts(s);
    CHECK_INT(weft_subscribe(s->peer, "items", weft_none(), &opts, &other), -ENOTCONN);
    script_free(s);
}

/* ---- chunks ---- */

TEST(chunks_are_joined) {
    script *s = following(STATE_LIVE, true);
    chunk(s, 5, "a", 1, 3, "[1,");
    chunk(s, 5, "a", 2, 3, "2,");
    chunk(s, 5, "a", 3, 3, "3]");
    chunk(s, 5, "a", 1, 1, "[9]"); /* a double */
    chunk(s, 6, "b", 1, 2, "[4,");
    chunk(s, 7, "c", 1, 2, "[5,"); /* a newer value takes its place */
    chunk(s, 7, "c", 2, 2, "6]");
    chunk(s, 8, "d", 1, 2, "[4,");
    data(s, 9); /* likewise, whole */
    CHECK_STR(s->heard, "live\n5 [1,2,3]\n7 [5,6]\n9 {\"n\":9}\n");
    script_free(s);
}

TEST(a_loss_between_chunks) {
    script *s = following(LOG_LIVE, true);
    chunk(s, 5, "a", 1, 2, "[1,");
    hang_up(s);
    UNTIL(s, s->asks == 2);
    CHECK(strstr(s->asked, "\"lastSeq\":4,") != NULL);
    answer(s, LOG_RESUMED);
    chunk(s, 5, "a", 1, 2, "[1,");
    chunk(s, 5, "a", 2, 2, "2]");
    CHECK_STR(s->heard, "live\nlost\ncatching up\nresumed\n5 [1,2]\n");
    script_free(s);
}

typedef struct bad_chunk {
    const char *name, *transition;
    int seq, part, total;
    const char *piece;
    int why;
} bad_chunk;

/* After {seq 5, "a", part 1 of 3}. */
TEST(broken_chunks_end_it) {
    static const bad_chunk rows[] = {
        {"a part is missing", "a", 5, 3, 3, "x", -EPROTO},   {"another value's part", "b", 5, 2, 3, "x", -EPROTO},
        {"another seq", "a", 6, 2, 3, "x", -EPROTO},         {"another total", "a", 5, 2, 4, "x", -EPROTO},
        {"behind the end", "a", 5, 4, 3, "x", -EPROTO},      {"no part", "a", 5, 0, 3, "x", -EPROTO},
        {"no JSON in the end", "c", 6, 1, 1, "{", -EBADMSG}, {"nothing in the end", "c", 6, 1, 1, "", -EBADMSG},
        {"too long", "a", 5, 2, 3, "0123456789", -EMSGSIZE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[64];
        script *s = script_new(true);
        weft_sub_opts opts = script_opts(s);
        opts.max_value = 12;
        test_row(rows[i].name);
        subscribe(s, &opts);
        answer(s, LOG_LIVE);
        chunk(s, 5, "a", 1, 3, "[1,");
        chunk(s, rows[i].seq, rows[i].transition, rows[i].part, rows[i].total, rows[i].piece);
        snprintf(expected, sizeof expected, "live\nended %d\n", rows[i].why);
        CHECK_STR(s->heard, expected);
        CHECK_INT(s->unsubscribed, 1);
        script_free(s);
    }
    test_row(NULL);
}

/* ---- refusals ---- */

TEST(a_refusal_ends_it) {
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s);
    subscribe(s, &opts);
    UNTIL(s, s->req != NULL);
    weft_fail(s->req, -32602, "There is no stream", WEFT_OBJ({"reason", weft_str("streamNotFound")}));
    s->req = NULL;
    settle(s);
    CHECK_STR(s->heard, "ended streamNotFound: There is no stream\n");
    hang_up(s);
    for (int i = 0; i < 200; i++)
        turn(s);
    CHECK_INT(s->asks, 1);
    script_free(s);
}

TEST(a_refusal_for_the_moment_is_asked_again) {
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s);
    subscribe(s, &opts);
    for (int i = 1; i <= 3; i++) {
        UNTIL(s, s->req != NULL);
        weft_fail(s->req, -32603, "Later", WEFT_OBJ({"reason", weft_str("timeout")}));
        s->req = NULL;
        UNTIL(s, s->asks == i + 1);
    }
    answer(s, LOG_LIVE);
    data(s, 5);
    CHECK_STR(s->heard, "lost timeout\nlive\n5 {\"n\":5}\n");
    script_free(s);
}

TEST(no_answer_is_asked_again) {
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s);
    subscribe(s, &opts);
    UNTIL(s, s->asks == 2); /* after 30 s */
    answer(s, LOG_LIVE);
    CHECK_STR(s->heard, "lost\nlive\n");
    script_free(s);
}

TEST(answers_that_are_none) {
    static const char *const rows[] = {"{}", "[]", "{\"startSeq\":-1,\"journal\":\"J\"}", "{\"startSeq\":1,\"journal\":5}",
                                       "{\"startSeq\":1,\"journal\":\"a\\u0000b\"}"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[64];
        test_row(rows[i]);
        script *s = following(rows[i], true);
        snprintf(expected, sizeof expected, "ended %d\n", -EBADMSG);
        CHECK_STR(s->heard, expected);
        script_free(s);
    }
    test_row(NULL);
}

/* ---- its owner ---- */

TEST(freed_inside_its_callbacks) {
    script *s = following(LOG_LIVE, true);
    s->free_in_value = true;
    data(s, 5);
    data(s, 6);
    CHECK_STR(s->heard, "live\n5 {\"n\":5}\n");
    CHECK_INT(s->unsubscribed, 1);
    script_free(s);

    s = following(LOG_LIVE, true);
    s->free_peer_in_state = true;
    hang_up(s);
    CHECK(s->peer == NULL);
    CHECK_STR(s->heard, "live\nlost\n");
    CHECK_INT(weft_sub_save(s->sub), 0);
    script_free(s);
}

TEST(freed_while_it_asks) {
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s);
    subscribe(s, &opts);
    UNTIL(s, s->req != NULL);
    s->sub = weft_sub_free(s->sub);
    answer(s, LOG_LIVE);
    CHECK_STR(s->heard, "");
    CHECK_INT(s->unsubscribed, 1);
    script_free(s);
}

TEST(what_cannot_be_subscribed) {
    char name[WEFT_SUB_NAME + 2], *large = malloc(WEFT_SUB_PARAMS + 1);
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s), none = {.ctx = s};
    weft_sub *sub = NULL;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    memset(large, 'x', WEFT_SUB_PARAMS + 1);
    CHECK_INT(weft_subscribe(s->peer, name, weft_none(), &opts, &sub), -EMSGSIZE);
    CHECK_INT(weft_subscribe(s->peer, "a", WEFT_OBJ({"x", weft_strn(large, WEFT_SUB_PARAMS)}), &opts, &sub), -EMSGSIZE);
    CHECK_INT(weft_subscribe(s->peer, "", weft_none(), &opts, &sub), -EINVAL);
    CHECK_INT(weft_subscribe(s->peer, "a", weft_none(), &none, &sub), -EINVAL);
    CHECK_INT(weft_subscribe(s->peer, "a", weft_int(1), &opts, &sub), -EINVAL);
    CHECK_INT(weft_subscribe(s->peer, "a", WEFT_ARR(weft_int(1)), &opts, &sub), -EINVAL);
    CHECK(sub == NULL);
    free(large);
    script_free(s);
}

/* ---- the file ---- */

TEST(the_position_outlives_the_program) {
    struct stat info;
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s);
    opts.file = s->file;
    opts.save_ms = -1;
    subscribe(s, &opts);
    answer(s, LOG_LIVE);
    data(s, 7);
    CHECK_INT(stat(s->file, &info), 0);
    CHECK_INT(info.st_mode & 0777, 0600);
    s->sub = weft_sub_free(s->sub);
    CHECK_INT(weft_subscribe(s->peer, "items", WEFT_OBJ({"of", weft_str("x")}), &opts, &s->sub), 0);
    UNTIL(s, s->asks == 2);
    CHECK(strstr(s->asked, "\"lastSeq\":7,\"journal\":\"J\"") != NULL);
    answer(s, LOG_RESUMED);
    CHECK_STR(s->heard, "live\n7 {\"n\":7}\nresumed\n");
    weft_sub *other = NULL;
    CHECK_INT(weft_subscribe(s->peer, "others", weft_none(), &opts, &other), -EEXIST);
    CHECK_INT(weft_subscribe(s->peer, "items", WEFT_OBJ({"of", weft_str("y")}), &opts, &other), -EEXIST);
    script_free(s);
}

/* Not after each value, but soon; and when it is freed. */
TEST(the_position_is_saved_in_time) {
    script *s = script_new(true);
    weft_position position = {0};
    weft_sub_opts opts = script_opts(s);
    const char *params = "{\"of\":\"x\"}";
    opts.file = s->file;
    opts.save_ms = 5000;
    subscribe(s, &opts);
    answer(s, LOG_LIVE);
    data(s, 7);
    CHECK_INT(weft__position_load(s->file, "items", params, NULL, &position), -ENOENT);
    UNTIL(s, access(s->file, F_OK) == 0);
    CHECK_INT(weft__position_load(s->file, "items", params, NULL, &position), 0);
    CHECK_INT((int64_t) position.seq, 7);
    data(s, 8);
    UNTIL(s, weft__position_load(s->file, "items", params, NULL, &position) == 0 && position.seq == 8);
    data(s, 9);
    s->sub = weft_sub_free(s->sub);
    CHECK_INT(weft__position_load(s->file, "items", params, NULL, &position), 0);
    CHECK_INT((int64_t) position.seq, 9);
    script_free(s);
}

static void write_file(const char *path, const char *text, size_t len) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0 && write(fd, text, len) == (ssize_t) len);
    close(fd);
}

TEST(a_damaged_file_is_told_and_ignored) {
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s);
    opts.file = s->file;
    write_file(s->file, "{\"name\":\"ite", 12);
    subscribe(s, &opts);
    answer(s, LOG_LIVE);
    CHECK(strstr(s->asked, "lastSeq") == NULL);
    CHECK_STR(s->heard, "snapshot positionDamaged\n");
    script_free(s);
}

/* Each byte of a file that is changed or cut off is noticed. */
TEST(every_damage_is_noticed) {
    weft_position position = {.seq = 1234, .journal = "0123.7.abc"}, got;
    char *text;
    size_t len;
    CHECK_INT(weft__position_write("items", "{}", &position, NULL, &text, &len), 0);
    CHECK_INT(weft__position_parse(text, len, "items", "{}", NULL, &got), 0);
    CHECK_STR(got.journal, position.journal);
    CHECK_INT((int64_t) got.seq, 1234);
    for (size_t i = 0; i < len; i++) {
        CHECK_INT(weft__position_parse(text, i, "items", "{}", NULL, &got), -EBADMSG);
        text[i] ^= 1;
        CHECK_INT(weft__position_parse(text, len, "items", "{}", NULL, &got), -EBADMSG);
        text[i] ^= 1;
    }
    weft_text_free(text, NULL);
}

TEST(files_that_are_none) {
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s);
    weft_sub *sub = NULL;
    opts.file = s->folder;
    CHECK_INT(weft_subscribe(s->peer, "items", weft_none(), &opts, &sub), -EISDIR);
    opts.file = s->file;
    CHECK_INT(symlink("/etc/passwd", s->file), 0);
    CHECK_INT(weft_subscribe(s->peer, "items", weft_none(), &opts, &sub), -ELOOP);
    CHECK_INT(unlink(s->file), 0);
    CHECK_INT(mkfifo(s->file, 0600), 0);
    CHECK_INT(weft_subscribe(s->peer, "items", weft_none(), &opts, &sub), -EISDIR);
    CHECK(sub == NULL);
    script_free(s);
}

TEST(a_file_that_cannot_be_written_is_told_once) {
    script *s = script_new(true);
    weft_sub_opts opts = script_opts(s);
    snprintf(s->file, sizeof s->file, "%s/none/position", s->folder);
    opts.file = s->file;
    opts.save_ms = -1;
    subscribe(s, &opts);
    answer(s, LOG_LIVE);
    data(s, 5);
    data(s, 6);
    CHECK_STR(s->heard, "live\nunsaved\n5 {\"n\":5}\n6 {\"n\":6}\n");
    script_free(s);
}

/* A file that could not be read for want of memory is not a damaged one, and what could not be written has left the old. */
TEST(memory_may_be_short_for_the_file) {
    script *s = script_new(true);
    weft_position old = {.seq = 1, .journal = "a\"b"}, next = {.seq = 2, .journal = "a\"b"}, got;
    int r = -ENOMEM;
    CHECK_INT(weft__position_save(s->file, "items", "{}", &old, NULL), 0);
    for (long n = 1; r == -ENOMEM && n < 100; n++) {
        test_memory memory;
        test_memory_init(&memory, n);
        r = weft__position_load(s->file, "items", "{}", &memory.alloc, &got);
        CHECK(r == 0 || r == -ENOMEM);
        CHECK_INT(memory.live, 0);
    }
    CHECK_INT(r, 0);
    CHECK_STR(got.journal, old.journal);
    r = -ENOMEM;
    for (long n = 1; r == -ENOMEM && n < 100; n++) {
        test_memory memory;
        test_memory_init(&memory, n);
        CHECK_INT(weft__position_load(s->file, "items", "{}", NULL, &got), 0);
        CHECK_INT((int64_t) got.seq, 1);
        r = weft__position_save(s->file, "items", "{}", &next, &memory.alloc);
        CHECK(r == 0 || r == -ENOMEM);
        CHECK_INT(memory.live, 0);
    }
    CHECK_INT(weft__position_load(s->file, "items", "{}", NULL, &got), 0);
    CHECK_INT((int64_t) got.seq, 2);
    script_free(s);
}

/* ---- without a loop of one's own ---- */

/* The other side is a program that knows its lines. */
TEST(a_blocking_client_waits_for_values) {
    static const char lines[] = "#!/bin/sh\nread -r line\n"
                                "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" LOG_LIVE "}'\n"
                                "echo '{\"jsonrpc\":\"2.0\",\"method\":\"tinyvex/data\",\"params\":"
                                "{\"subId\":\"weft-sub-1\",\"seq\":5,\"value\":true,\"journal\":\"J\"}}'\n"
                                "read -r line\n";
    script *s = script_new(true);
    char url[128];
    weft_peer *peer = NULL;
    weft_sub *sub = NULL;
    weft_sub_opts opts = script_opts(s);
    write_file(s->file, lines, sizeof lines - 1);
    snprintf(url, sizeof url, "exec:/bin/sh %s", s->file);
    CHECK_INT(weft_connect(url, &peer), 0);
    CHECK_INT(weft_subscribe(peer, "items", weft_none(), &opts, &sub), 0);
    int r = 1;
    while (r > 0 && !strstr(s->heard, "5 true"))
        r = weft_wait(peer, 10000);
    CHECK_STR(s->heard, "live\n5 true\n");
    peer = weft_peer_free(peer);
    CHECK_INT((int64_t) weft_sub_seq(sub), 5); /* it is the owner's still */
    weft_sub_free(sub);
    script_free(s);
}

/* ---- a server with a journal, which hangs up ---- */

#define VALUES 12

typedef struct journal_world {
    script s;
    uint32_t random;
    int hang_ups, middles; /* subscriptions behind a value that is not the last */
    uint64_t next;         /* the value that is expected */
    bool chaos;
} journal_world;

static uint32_t any(journal_world *w) {
    w->random = w->random * 1664525u + 1013904223u;
    return w->random >> 8;
}

static bool breaks_off(journal_world *w) {
    bool now = w->chaos && w->hang_ups < 40 && any(w) % 5 == 0;
    w->hang_ups += now;
    return now;
}

/* Even ones in three pieces. false: it hung up. */
static bool send_from_journal(journal_world *w, weft_peer *peer, const char *id, int seq) {
    for (int part = 1; part <= (seq % 2 ? 1 : 3); part++) {
        char piece[32];
        if (breaks_off(w))
            return weft_peer_free(peer), false;
        snprintf(piece, sizeof piece, part == 1 ? "[%d" : part == 2 ? ",%d" : ",%d]", seq);
        int r = seq % 2
                    ? weft_notify(peer, "tinyvex/data",
                                  WEFT_OBJ({"subId", weft_str(id)}, {"seq", weft_int(seq)}, {"value", weft_int(seq)},
                                           {"journal", weft_str("J")}))
                    : weft_notify(peer, "tinyvex/transitionChunk",
                                  WEFT_OBJ({"subId", weft_str(id)}, {"seq", weft_int(seq)}, {"chunk", weft_str(piece)},
                                           {"part", weft_int(part)}, {"total", weft_int(3)}, {"transitionId", weft_int(seq)},
                                           {"journal", part == 3 ? weft_str("J") : weft_none()}));
        if (r < 0)
            return weft_peer_free(peer), false;
    }
    return true;
}

static int on_journal_subscribe(weft_req *req, const weft_json *params, void *ctx) {
    journal_world *w = ctx;
    weft_peer *peer = weft_req_peer(req);
    char id[64];
    int64_t last = weft_get_int(params, "lastSeq", -1);
    snprintf(id, sizeof id, "%s", weft_get_str(params, "subId", ""));
    w->middles += last > 0 && last < VALUES;
    int r = weft_reply(req, WEFT_OBJ({"resumed", weft_bool(last >= 0)}, {"startSeq", weft_int(last < 0 ? 0 : last)},
                                     {"journal", weft_str("J")}, {"mode", weft_str("log")}));
    for (int seq = (int) (last < 0 ? 1 : last + 1); r >= 0 && seq <= VALUES; seq++)
        if (!send_from_journal(w, peer, id, seq))
            return 0;
    return r;
}

static const weft_method journal_methods[] = {
    {.name = "tinyvex/subscribe", .handler = on_journal_subscribe},
    {.name = "tinyvex/unsubscribe", .handler = on_unsubscribe},
    {0},
};

static void on_journal_value(weft_sub *sub, const weft_sub_value *value, void *ctx) {
    journal_world *w = ctx;
    (void) sub;
    CHECK_INT((int64_t) value->seq, (int64_t) w->next);
    CHECK_INT((int64_t) weft_count(value->value), value->seq % 2 ? 0 : 3);
    w->next++;
}

static void on_journal_news(weft_sub *sub, const weft_sub_news *news, void *ctx) {
    (void) sub, (void) ctx;
    CHECK(news->state != WEFT_SUB_SNAPSHOT && news->state != WEFT_SUB_ENDED);
}

/* 0 all came; <0 it could not be begun. */
static int run_journal(journal_world *w, const weft_alloc *alloc) {
    script *s = &w->s;
    w->next = 1;
    s->now = 1000;
    s->turn_ms = 500; /* it waits 16 s at times */
    int r = weft_loop_new(alloc, &s->loop);
    if (r < 0)
        return r;
    weft_loop_set_now(s->loop, s->now);
    CHECK_INT(weft_service_new(&(weft_service_opts){.methods = journal_methods, .ctx = w}, &s->service), 0);
    r = script_open(s, true);
    weft_sub_opts opts = {.on_value = on_journal_value, .on_state = on_journal_news, .ctx = w};
    if (r >= 0)
        r = weft_subscribe(s->peer, "items", weft_none(), &opts, &s->sub);
    if (r >= 0)
        UNTIL(s, w->next == VALUES + 1);
    s->sub = weft_sub_free(s->sub);
    s->peer = weft_peer_free(s->peer);
    s->server = weft_server_free(s->server);
    settle(s);
    weft_loop_free(s->loop);
    weft_service_unref(s->service);
    return r;
}

TEST(nothing_is_lost_or_doubled) {
    int middles = 0;
    for (uint32_t seed = 1; seed <= 100; seed++) {
        journal_world *w = calloc(1, sizeof *w);
        char name[32];
        snprintf(name, sizeof name, "seed %u", seed);
        test_row(name);
        w->random = seed;
        w->chaos = true;
        CHECK_INT(run_journal(w, NULL), 0);
        middles += w->middles;
        free(w);
    }
    test_row(NULL);
    CHECK(middles > 100);
}

TEST(memory_may_be_short) {
    bool failed = true;
    for (long n = 1; failed && n < 2000; n++) {
        journal_world *w = calloc(1, sizeof *w);
        test_memory memory;
        test_memory_init(&memory, n);
        run_journal(w, &memory.alloc);
        failed = memory.count >= n;
        CHECK_INT(memory.live, 0);
        free(w);
    }
    CHECK(!failed);
}

TEST_MAIN(CASE(it_asks_for_what_it_missed) CASE(what_is_said_about_it_is_told) CASE(no_params_are_left_out)
              CASE(a_log_without_values_resumes) CASE(a_state_without_a_value_begins_again) CASE(gaps_are_told)
                  CASE(values_before_the_answer_are_of_another_subscription) CASE(without_reconnecting_it_ends)
                      CASE(chunks_are_joined) CASE(a_loss_between_chunks) CASE(broken_chunks_end_it) CASE(a_refusal_ends_it)
                          CASE(a_refusal_for_the_moment_is_asked_again) CASE(no_answer_is_asked_again)
                              CASE(answers_that_are_none) CASE(freed_inside_its_callbacks) CASE(freed_while_it_asks)
                                  CASE(what_cannot_be_subscribed) CASE(the_position_outlives_the_program)
                                      CASE(the_position_is_saved_in_time) CASE(a_damaged_file_is_told_and_ignored)
                                          CASE(every_damage_is_noticed) CASE(files_that_are_none)
                                              CASE(a_file_that_cannot_be_written_is_told_once)
                                                  CASE(memory_may_be_short_for_the_file)
                                                      CASE(a_blocking_client_waits_for_values)
                                                          CASE(nothing_is_lost_or_doubled) CASE(memory_may_be_short))

/* Clients over real sockets: who reads slowly misses nothing, gets nothing twice, and costs the others nothing; who has
 * missed something is closed. With the store in memory and with SQLite, whose pages come from another thread. */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hub_client.h"
#include "link.h"

/* Over the hard limit of a connection's queue, under what is kept of a session's output. */
#define LINES ((size_t) 6000)
#define LINE ((size_t) 2000)

typedef struct client_world {
    hub_world hub;
    weft_server *server;
    char folder[64], path[80], url[96];
    int opened, closed;
} client_world;

static void on_open(weft_server *server, weft_peer *peer, void *data) {
    client_world *w = data;
    (void) server;
    w->opened++;
    weft__hub_clients_open(w->hub.hub.clients, peer);
}

static void on_close(weft_server *server, weft_peer *peer, int why, void *data) {
    client_world *w = data;
    (void) server, (void) why;
    w->closed++;
    if (w->hub.hub.clients)
        weft__hub_clients_close(w->hub.hub.clients, peer);
}

static void on_drain(weft_server *server, weft_peer *peer, void *data) {
    (void) server, (void) data;
    weft__hub_clients_drain(((client_world *) (void *) hub_stage)->hub.hub.clients, peer);
}

static client_world *world_new(const weft_store_kind *kind) {
    client_world *w = calloc(1, sizeof *w);
    char database[128];
    snprintf(w->folder, sizeof w->folder, "/tmp/weft-clients-XXXXXX");
    CHECK(mkdtemp(w->folder) != NULL);
    snprintf(database, sizeof database, "%s/weft.db", w->folder);
    CHECK_INT(hub_init(&w->hub, &(hub_opts){.kind = kind, .path = database}), 0);
    weft_server_opts opts = {.service = w->hub.service,
                             .data = w,
                             .grace_ms = 100,
                             .on_open = on_open,
                             .on_close = on_close,
                             .on_drain = on_drain};
    CHECK_INT(weft_server_new(w->hub.loop, &opts, &w->server), 0);
    w->hub.hub.server = w->server;
    snprintf(w->path, sizeof w->path, "%s/s", w->folder);
    snprintf(w->url, sizeof w->url, "unix:%s", w->path);
    CHECK_INT(weft_server_listen(w->server, w->url, &(weft_listen_opts){.dialect = "aiwg"}), 0);
    return w;
}

static void world_free(client_world *w) {
    w->server = weft_server_free(w->server);
    hub_done(&w->hub);
    test_remove(w->folder);
    free(w);
}

/* ---- a client that reads when it is told to ---- */

typedef struct client {
    int fd;
    char *text;
    size_t len, cap, at; /* at: the first line not yet looked at */
    bool ended;
} client;

static client client_new(client_world *w) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    client c = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    int opened = w->opened;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", w->path);
    CHECK_INT(connect(c.fd, (struct sockaddr *) &address, sizeof address), 0);
    fcntl(c.fd, F_SETFL, O_NONBLOCK);
    HUB_UNTIL(&w->hub, w->opened > opened);
    return c;
}

static void client_done(client *c) {
    close(c->fd);
    free(c->text);
}

static void client_say(client *c, const char *text) {
    CHECK_INT(send(c->fd, text, strlen(text), MSG_NOSIGNAL), (int) strlen(text));
}

/* What is there now, at most so much. */
static void client_read(client *c, size_t most) {
    if (c->cap - c->len < most + 1) {
        c->cap = 2 * c->cap + most + 1;
        c->text = realloc(c->text, c->cap);
    }
    ssize_t n = recv(c->fd, c->text + c->len, most, MSG_DONTWAIT);
    if (n > 0)
        c->len += (size_t) n;
    else if (n == 0 || errno != EAGAIN)
        c->ended = true;
    c->text[c->len] = '\0';
}

/* The next line; NULL: not yet. Borrowed until the next call. */
static char *client_line(client *c) {
    char *line = c->text ? c->text + c->at : NULL, *end = line ? strchr(line, '\n') : NULL;
    if (!end)
        return NULL;
    *end = '\0';
    c->at = (size_t) (end + 1 - c->text);
    return line;
}

/* Read until there is a line; "" when there is none. */
static const char *client_wait(client_world *w, client *c) {
    char *line;
    int64_t until = hub_ms() + HUB_PATIENCE_MS;
    while (!(line = client_line(c)) && !c->ended && hub_ms() < until) {
        hub_turn(&w->hub, 1);
        client_read(c, 1 << 16);
    }
    return line ? line : "";
}

/* ---- much output ---- */

static void submit(client_world *w, client *c) {
    client_say(c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"task.submit\",\"params\":{\"prompt\":\"talk\"}}\n");
    CHECK(strstr(client_wait(w, c), "event.taskQueued") != NULL);
    CHECK(strstr(client_wait(w, c), "event.taskStarted") != NULL);
    CHECK(strstr(client_wait(w, c), "\"taskId\":\"task-0000\",\"state\":\"running\"") != NULL);
}

/* Byte n of all that the agent says: lines "number xxx...". */
static char byte_of(size_t n) {
    char number[16];
    size_t in_line = n % LINE;
    if (in_line == LINE - 1)
        return '\n';
    if (in_line > 8)
        return 'x';
    snprintf(number, sizeof number, "%08zu ", n / LINE % 100000000);
    return number[in_line];
}

/* The agent says one more line; it waits while it is told to. */
static void talk(client_world *w, size_t number) {
    char line[LINE];
    for (size_t i = 0; i < LINE; i++)
        line[i] = byte_of(number * LINE + i);
    weft_run *run = hub_run(&w->hub, "task-0000");
    REQUIRE(run != NULL);
    HUB_UNTIL(&w->hub, !run->paused);
    run->host->on_output(run->ctx, WEFT_RUN_STDOUT, (weft_bytes){line, LINE});
    if (number % 16 == 0)
        hub_turn(&w->hub, 0);
}

/* What a client has heard must be the bytes after those it knows. False: it is not, or was something else. */
static bool take_output(const char *line, size_t *heard) {
    static const char before[] = "\"output\":\"";
    const char *at = strstr(line, "\"event.taskOutput\"") ? strstr(line, before) : NULL;
    if (!at)
        return false;
    for (at += strlen(before); *at != '"'; at++) {
        char is = *at;
        if (is == '\\')
            is = *++at == 'n' ? '\n' : '?';
        if (is != byte_of(*heard))
            return false;
        (*heard)++;
    }
    return true;
}

static void take_all(client *c, size_t *heard) {
    for (char *line; (line = client_line(c));)
        CHECK(take_output(line, heard));
}

static void slow_reader(const weft_store_kind *kind) {
    client_world *w = world_new(kind);
    client quick = client_new(w), slow = client_new(w);
    size_t quick_heard = 0, slow_heard = 0, said = 0;
    submit(w, &quick);
    CHECK(strstr(client_wait(w, &slow), "event.taskQueued") != NULL);
    CHECK(strstr(client_wait(w, &slow), "event.taskStarted") != NULL);
    while (said < LINES) {
        talk(w, said++);
        client_read(&quick, 1 << 16);
        take_all(&quick, &quick_heard);
    }
    while (quick_heard < said * LINE && !quick.ended) {
        hub_turn(&w->hub, 1);
        client_read(&quick, 1 << 16);
        take_all(&quick, &quick_heard);
    }
    CHECK_INT(quick_heard, LINES * LINE);
    /* All that while nobody read here. Now somebody does, a little at a time, and the agent goes on. */
    int64_t until = hub_ms() + 6 * HUB_PATIENCE_MS;
    for (int turn = 0; slow_heard < (LINES + 200) * LINE && !slow.ended && hub_ms() < until; turn++) {
        if (turn % 8 == 0 && said < LINES + 200)
            talk(w, said++);
        hub_turn(&w->hub, 0);
        client_read(&slow, 30000);
        take_all(&slow, &slow_heard);
        client_read(&quick, 1 << 16);
    }
    CHECK_INT(slow_heard, (LINES + 200) * LINE);
    /* It is one of the others again. */
    hub_end(hub_run(&w->hub, "task-0000"), &(weft_run_end){.ok = true});
    CHECK(strstr(client_wait(w, &slow), "event.taskCompleted") != NULL);
    CHECK(slow.text[slow.at] == '\0');
    client_done(&quick);
    client_done(&slow);
    HUB_UNTIL(&w->hub, w->closed == 2);
    world_free(w);
}

TEST(a_slow_reader_misses_nothing) {
    slow_reader(&weft__memory);
}

TEST(a_slow_reader_misses_nothing_of_sqlite) {
    slow_reader(&weft__sqlite);
}

/* ---- subscriptions ---- */

#define NOTICES 3000

static void notice(client_world *w, int number) {
    static char padding[1500];
    memset(padding, 'y', sizeof padding - 1);
    CHECK_INT(
        weft__engine_append(w->hub.engine, "hub", "notice",
                            WEFT_OBJ({"n", weft_int(number)}, {"message", weft_str(padding)}, {"level", weft_str("info")}),
                            NULL, NULL),
        0);
}

/* The number in an event of ours; -1: it is something else. gseq rises by one from event to event. */
static int take_event(const char *line, uint64_t *gseq) {
    const char *at = strstr(line, "\"gseq\":"), *n = strstr(line, "\"data\":{\"n\":");
    if (!at)
        return -1;
    uint64_t here = strtoull(at + 7, NULL, 10);
    if (*gseq)
        CHECK_INT(here, *gseq + 1);
    *gseq = here;
    return n ? atoi(n + 12) : -1;
}

/* A subscription to everything from the beginning, read slowly while more is said. */
static void slow_subscriber(const weft_store_kind *kind) {
    client_world *w = world_new(kind);
    client c = client_new(w);
    int said = 0, heard = 0;
    uint64_t gseq = 0;
    while (said < NOTICES) {
        notice(w, said++);
        hub_turn(&w->hub, 0);
    }
    client_say(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\",\"params\":{\"after\":0}}\n");
    CHECK(strstr(client_wait(w, &c), "\"resumed\":true") != NULL);
    int64_t until = hub_ms() + 6 * HUB_PATIENCE_MS;
    for (int turn = 0; heard < NOTICES + 500 && !c.ended && hub_ms() < until; turn++) {
        if (said < NOTICES + 500 && turn % 2 == 0)
            notice(w, said++);
        hub_turn(&w->hub, 0);
        if (turn % 3 == 0)
            client_read(&c, 20000);
        for (char *line; (line = client_line(&c));) {
            int n = take_event(line, &gseq);
            if (n >= 0 && n != heard)
                CHECK_INT(n, heard);
            heard += n >= 0;
        }
    }
    CHECK_INT(heard, NOTICES + 500);
    notice(w, 7777);
    CHECK(strstr(client_wait(w, &c), "\"n\":7777") != NULL);
    client_done(&c);
    HUB_UNTIL(&w->hub, w->closed == 1);
    world_free(w);
}

TEST(a_slow_subscriber_misses_nothing) {
    slow_subscriber(&weft__memory);
}

TEST(a_slow_subscriber_misses_nothing_of_sqlite) {
    slow_subscriber(&weft__sqlite);
}

static void on_trimmed(void *ctx, int r, uint64_t removed) {
    CHECK_INT(r, 0);
    CHECK(removed > 0);
    *(bool *) ctx = true;
}

/* What it should have heard is no longer there: it is closed, not told the rest. */
TEST(who_missed_something_is_closed) {
    client_world *w = world_new(&weft__memory);
    client c = client_new(w);
    bool trimmed = false;
    uint64_t gseq = 0;
    client_say(&c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\"}\n");
    CHECK(strstr(client_wait(w, &c), "\"resumed\":true") != NULL);
    for (int i = 0; i < NOTICES; i++) {
        notice(w, i);
        hub_turn(&w->hub, 0);
    }
    CHECK_INT(weft__store_trim(w->hub.store, &(weft_trim){.rows = 10}, on_trimmed, &trimmed), 0);
    HUB_UNTIL(&w->hub, trimmed);
    int last = -1, heard = 0;
    for (const char *line; *(line = client_wait(w, &c)); heard++) {
        int n = take_event(line, &gseq);
        CHECK(n == last + 1);
        last = n;
    }
    CHECK(c.ended);
    CHECK(heard > 100 && heard < NOTICES - 10);
    client_done(&c);
    HUB_UNTIL(&w->hub, w->closed == 1);
    world_free(w);
}

/* A session says so much that its stream is trimmed: who did not ask for that session is neither closed nor told of a gap.
 */
static void noisy_session(const weft_store_kind *kind) {
    client_world *w = world_new(kind);
    client quick = client_new(w), slow = client_new(w);
    size_t heard = 0;
    bool trimmed = false;
    uint64_t gseq = 0;
    submit(w, &quick);
    client_say(&quick, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"event.subscribe\",\"params\":{\"types\":[\"task.\"]}}\n");
    CHECK(strstr(client_wait(w, &quick), "\"resumed\":true") != NULL);
    gseq = weft__store_head(w->hub.store);
    for (size_t said = 0; said < LINES; said++) {
        talk(w, said);
        client_read(&quick, 1 << 16);
        take_all(&quick, &heard);
    }
    while (heard < LINES * LINE && !quick.ended) {
        hub_turn(&w->hub, 1);
        client_read(&quick, 1 << 16);
        take_all(&quick, &heard);
    }
    const char *stream = "session/session-0000";
    CHECK_INT(weft__store_trim(w->hub.store, &(weft_trim){.stream = stream, .rows = 10}, on_trimmed, &trimmed), 0);
    HUB_UNTIL(&w->hub, trimmed);
    /* It never subscribed and did not read all that while: it calls, and is answered; and again when it has caught up. Where
     * something is missing it is told so. */
    int missing = 0;
    for (int i = 0; i < 2; i++) {
        client_say(&slow, "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}\n");
        const char *line;
        while (*(line = client_wait(w, &slow)) && !strstr(line, "\"id\":8"))
            missing +=
                strstr(line, "\"taskId\":\"task-0000\",\"stream\":\"stdout\",\"output\":\"\",\"missing\":true") != NULL;
        CHECK(strstr(line, "\"pong\":true") != NULL && !slow.ended);
        hub_settle(&w->hub);
    }
    CHECK_INT(missing, 1);
    /* From a position before what was trimmed. */
    char text[200];
    snprintf(
        text, sizeof text,
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"event.subscribe\",\"params\":{\"after\":%llu,\"types\":[\"task.\"]}}\n",
        (unsigned long long) gseq);
    client_say(&quick, text);
    CHECK(strstr(client_wait(w, &quick), "\"id\":9,\"result\":{\"resumed\":true") != NULL);
    snprintf(text, sizeof text,
             "{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"event.subscribe\",\"params\":{\"after\":%llu,"
             "\"taskId\":\"task-0000\"}}\n",
             (unsigned long long) gseq);
    client_say(&quick, text);
    CHECK(strstr(client_wait(w, &quick), "\"reason\":\"trimmed\"") != NULL); /* that is its own session */
    client_done(&quick);
    client_done(&slow);
    HUB_UNTIL(&w->hub, w->closed == 2);
    world_free(w);
}

TEST(a_noisy_session_hurts_nobody_else) {
    noisy_session(&weft__memory);
}

TEST(a_noisy_session_hurts_nobody_else_with_sqlite) {
    noisy_session(&weft__sqlite);
}

/* The last bytes that a peer had to say. */
static unsigned char last_words[32];
static bool freed;

static void on_free(weft_peer *peer, void *carrier) {
    weft_bytes out = weft_peer_output(peer);
    size_t n = out.len < sizeof last_words ? out.len : sizeof last_words;
    (void) carrier;
    memcpy(last_words, out.data + out.len - n, n);
    freed = true;
}

static void on_peer_drain(weft_peer *peer, void *data) {
    (void) data;
    weft__hub_clients_drain(hub_stage->hub.clients, peer);
}

/* On a WebSocket that is a close frame whose code means "come back". */
TEST(closing_says_come_back) {
    static const weft_carrier carrier = {.free = on_free};
    static const char frame[] = "\x88\x16\x03\xF5reconnect and resume";
    weft_identity who = {
        .transport = "ws", .dialect = "aiwg", .name = "", .scopes = "*", .address = "", .authenticated = true};
    weft_peer_opts opts = {.framing = &weft_websocket, .identity = &who, .on_drain = on_peer_drain};
    client_world *w = world_new(&weft__memory);
    bool trimmed = false;
    weft_peer *peer = NULL;
    CHECK_INT(weft_peer_new(w->hub.service, &opts, &peer), 0);
    weft__peer_set_carrier(peer, &carrier, NULL);
    weft__hub_clients_open(w->hub.hub.clients, peer);
    CHECK_INT(weft__hub_client_subscribe(weft__hub_client_of(w->hub.hub.clients, peer),
                                         &(weft_subscription_spec){.live = true}, NULL, NULL),
              0);
    hub_settle(&w->hub);
    for (int i = 0; i < NOTICES && !weft_peer_full(peer); i++) {
        notice(w, i);
        hub_turn(&w->hub, 0);
    }
    notice(w, 1);
    notice(w, 2);
    hub_settle(&w->hub);
    CHECK(weft_peer_full(peer));
    CHECK_INT(weft__store_trim(w->hub.store, &(weft_trim){.rows = 1}, on_trimmed, &trimmed), 0);
    HUB_UNTIL(&w->hub, trimmed);
    freed = false;
    weft_peer_sent(peer, weft_peer_output(peer).len);
    weft_peer_tick(peer, 1);
    HUB_UNTIL(&w->hub, freed);
    CHECK(memcmp(last_words, frame, sizeof frame - 1) == 0);
    world_free(w);
}

/* Replaced and ended in the middle, by the client and by its going. */
TEST(a_subscription_ends_at_any_time) {
    client_world *w = world_new(&weft__memory);
    client c = client_new(w), d = client_new(w);
    for (int i = 0; i < NOTICES; i++) {
        notice(w, i);
        hub_turn(&w->hub, 0);
    }
    client_say(
        &c, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\",\"params\":{\"after\":0}}\n"
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"event.subscribe\",\"params\":{\"after\":0,\"types\":[\"none\"]}}\n"
            "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"event.subscribe\",\"params\":{\"after\":0}}\n"
            "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"event.unsubscribe\"}\n"
            "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"event.subscribe\",\"params\":{\"types\":[\"none\"]}}\n");
    for (int i = 1; i <= 3; i++)
        CHECK(strstr(client_wait(w, &c), "\"code\":-32800") != NULL);
    CHECK(strstr(client_wait(w, &c), "\"id\":4,\"result\":{}") != NULL);
    CHECK(strstr(client_wait(w, &c), "\"id\":5,\"result\":{\"resumed\":true") != NULL);
    client_say(&d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\",\"params\":{\"after\":0}}\n");
    CHECK(strstr(client_wait(w, &d), "\"resumed\":true") != NULL);
    client_done(&d); /* with most of it unread */
    HUB_UNTIL(&w->hub, w->closed == 1);
    notice(w, 1);
    hub_settle(&w->hub);
    client_say(&c, "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\"}\n");
    CHECK(strstr(client_wait(w, &c), "\"id\":6") != NULL);
    client_done(&c);
    world_free(w); /* and with one still there */
}

/* ---- what a connection watches and speaks ---- */

static int renderings;

static void count_rendering(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    (void) hub, (void) data;
    renderings++;
    weft__render_notify(rendering, NULL, "heard", WEFT_OBJ({"type", weft_str(event->type)}));
    weft__render_notify(rendering, "watched", "logged", WEFT_OBJ({"type", weft_str(event->type)}));
}

static void beat(const weft_hub *hub, weft_rendering *rendering) {
    (void) hub;
    weft__render_notify(rendering, NULL, "beat", weft_none());
}

static int answer_one(weft_req *req, const weft_json *params, void *ctx) {
    (void) params;
    CHECK(ctx == &hub_stage->hub);
    return weft_reply(req, weft_int(1));
}

static int answer_two(weft_req *req, const weft_json *params, void *ctx) {
    int64_t n = 0;
    static const weft_param table[] = {{"n", WEFT_PARAM_int, 0, WEFT_REQUIRED, "a number"}, {0}};
    CHECK(ctx == &hub_stage->hub);
    int r = weft_bind(req, table, params, &n);
    return r < 0 ? r : weft_reply(req, weft_int(n + 2));
}

static const weft_error_row one_errors[] = {{-1, "one", "one"}, {0}}, two_errors[] = {{-2, "two", "two"}, {0}};
static const weft_param two_params[] = {{"n", WEFT_PARAM_int, 0, WEFT_REQUIRED, "a number"}, {0}};
static const weft_method one_methods[] = {
    {.name = "shared", .handler = answer_one, .help = "one", .errors = one_errors},
    {.name = "only", .handler = answer_one},
    {0},
};
static const weft_method two_methods[] = {
    {.name = "own", .handler = answer_two, .params = two_params},
    {.name = "shared", .handler = answer_two, .params = two_params, .errors = two_errors, .flags = WEFT_ROW_CHANGES},
    {0},
};
static const weft_method scoped_methods[] = {{.name = "shared", .handler = answer_one, .scope = "admin"}, {0}};
static const weft_dialect one = {.name = "one", .methods = one_methods, .render = count_rendering};
static const weft_dialect two = {.name = "two", .methods = two_methods, .beat_ms = 10, .beat = beat};
static const weft_dialect scoped = {.name = "scoped", .methods = scoped_methods};
static const weft_dialect *const pair[] = {&one, &two, NULL};

static weft_peer *peer_of(hub_world *w, const char *dialect) {
    weft_identity who = {
        .transport = "mem", .dialect = dialect, .name = "n", .scopes = "*", .address = "", .authenticated = true};
    weft_peer *peer = NULL;
    CHECK_INT(weft_peer_new(w->service, &(weft_peer_opts){.framing = &weft_ndjson, .identity = &who}, &peer), 0);
    return peer;
}

static void peer_said(weft_peer *peer, const char *want) {
    weft_bytes out = weft_peer_output(peer);
    CHECK_TEXT(out.data, out.len, want);
    weft_peer_sent(peer, out.len);
    weft_peer_tick(peer, 1);
}

static void ask(weft_peer *peer, const char *request, const char *answer) {
    CHECK_INT(weft_peer_feed(peer, request, strlen(request), 1), 0);
    peer_said(peer, answer);
}

TEST(a_name_that_several_have_is_the_speakers) {
    hub_world w;
    CHECK_INT(hub_init(&w, &(hub_opts){.dialects = pair}), 0);
    weft_peer *a = peer_of(&w, "one"), *b = peer_of(&w, "two"), *c = peer_of(&w, "three");
    static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shared\",\"params\":{\"n\":5}}\n";
    ask(a, request, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n");
    ask(b, request, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}\n");
    ask(c, request, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n");
    ask(b, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"shared\"}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602,\"message\":\"Invalid params: n is missing\",\"data\":{"
        "\"reason\":\"invalidParams\",\"path\":\"/n\"}}}\n");
    ask(a, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"own\",\"params\":[1]}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":3}\n");
    const weft_method *row = weft_service_find(w.service, "shared");
    REQUIRE(row != NULL);
    CHECK(row->params == NULL && row->flags == WEFT_ROW_CHANGES);
    CHECK_STR(row->help, "one");
    CHECK_INT(row->errors[0].code, -1);
    CHECK_INT(row->errors[1].code, -2);
    CHECK_INT(row->errors[2].code, 0);
    CHECK(weft__dialects_at(w.dialects, 1) == &two && !weft__dialects_at(w.dialects, 2));
    weft_peer_free(a);
    weft_peer_free(b);
    weft_peer_free(c);
    hub_done(&w);
    weft_dialects *none;
    CHECK_INT(weft__dialects_new((const weft_dialect *const[]){&one, &scoped, NULL}, NULL, NULL, &none), -EINVAL);
}

static void happen(hub_world *w, const char *type) {
    CHECK_INT(weft__engine_append(w->engine, "hub", type, WEFT_OBJ({"message", weft_str("m")}), NULL, NULL), 0);
    hub_settle(w);
}

/* Rendered for those who hear it, once for all of them, and in the words they speak at the moment. */
TEST(only_what_somebody_hears_is_rendered) {
    hub_world w;
    CHECK_INT(hub_init(&w, &(hub_opts){.dialects = pair}), 0);
    weft_peer *a = peer_of(&w, "two"), *b = peer_of(&w, "one");
    renderings = 0;
    weft__hub_clients_open(w.hub.clients, a);
    happen(&w, "notice");
    CHECK_INT(renderings, 0);
    CHECK(weft__hub_client_of(w.hub.clients, b) == NULL);
    weft__hub_clients_open(w.hub.clients, b);
    happen(&w, "notice");
    CHECK_INT(renderings, 1);
    peer_said(b, "{\"jsonrpc\":\"2.0\",\"method\":\"heard\",\"params\":{\"type\":\"notice\"}}\n");
    weft_peer_sent(a, weft_peer_output(a).len);
    weft_peer_tick(a, 1);
    CHECK_INT(weft__hub_client_speak(weft__hub_client_of(w.hub.clients, a), "one", NULL), 0);
    CHECK_STR(weft_peer_identity(a)->dialect, "one");
    CHECK_INT(weft__hub_client_watch(weft__hub_client_of(w.hub.clients, a), "watched"), 0);
    happen(&w, "notice");
    CHECK_INT(renderings, 2);
    peer_said(a, "{\"jsonrpc\":\"2.0\",\"method\":\"heard\",\"params\":{\"type\":\"notice\"}}\n"
                 "{\"jsonrpc\":\"2.0\",\"method\":\"logged\",\"params\":{\"type\":\"notice\"}}\n");
    peer_said(b, "{\"jsonrpc\":\"2.0\",\"method\":\"heard\",\"params\":{\"type\":\"notice\"}}\n");
    weft__hub_clients_close(w.hub.clients, a);
    CHECK(weft__hub_client_of(w.hub.clients, a) == NULL);
    weft__hub_clients_close(w.hub.clients, a);
    weft_peer_free(a);
    weft__hub_clients_close(w.hub.clients, b);
    weft_peer_free(b);
    hub_done(&w);
}

TEST(a_dialect_that_beats) {
    hub_world w;
    CHECK_INT(hub_init(&w, &(hub_opts){.dialects = pair}), 0);
    weft_peer *a = peer_of(&w, "one"), *b = peer_of(&w, "two");
    weft__hub_clients_open(w.hub.clients, a);
    weft__hub_clients_open(w.hub.clients, b);
    HUB_UNTIL(&w, weft_peer_output(b).len >= 2 * strlen("{\"jsonrpc\":\"2.0\",\"method\":\"beat\"}\n"));
    CHECK_TEXT(weft_peer_output(b).data, 34, "{\"jsonrpc\":\"2.0\",\"method\":\"beat\"}\n");
    peer_said(a, "");
    hub_done(&w); /* with guests still there */
    weft_peer_free(a);
    weft_peer_free(b);
}

/* cdev's, in both of its forms, in less than its 30 seconds. */
TEST(cdev_has_a_heartbeat) {
    static weft_dialect quick;
    static const weft_dialect *const only[] = {&quick, NULL};
    hub_world w;
    hub_client plain, old;
    quick = weft__cdev;
    CHECK_INT(quick.beat_ms, 30000);
    quick.beat_ms = 10;
    CHECK_INT(hub_init(&w, &(hub_opts){.dialects = only}), 0);
    hub_connect(&w, "cdev", &plain);
    hub_connect(&w, "cdev", &old);
    CHECK_INT(weft__hub_client_speak(weft__hub_client_of(w.hub.clients, old.peer), "cdev", "old"), 0);
    HUB_TOLD(&plain,
             "{\"jsonrpc\":\"2.0\",\"method\":\"heartbeat\",\"params\":{\"server_time\":\"2026-01-01T00:00:00.000Z\","
             "\"sequence\":1,\"claude_status\":\"idle\",\"uptime_seconds\":17,\"workspace_id\":\"ws-");
    HUB_TOLD(&plain, "\"sequence\":2,");
    HUB_TOLD(&old, "{\"event\":\"heartbeat\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"payload\":{\"server_time\":"
                   "\"2026-01-01T00:00:00.000Z\",\"sequence\":1,\"claude_status\":\"idle\",\"uptime_seconds\":17,");
    hub_disconnect(&plain);
    hub_disconnect(&old);
    hub_done(&w);
}

static void count_answer(void *ctx, int r, const weft_answer *answer) {
    CHECK_INT(r, 0);
    CHECK(answer && answer->result);
    ++*(int *) ctx;
}

/* REST has no connection: what such a call starts belongs to no client, and nothing of it is taken for one. */
TEST(a_call_without_a_connection_is_no_client) {
    hub_world w;
    hub_client phone;
    int answers = 0;
    weft_identity who = {
        .transport = "http", .dialect = "", .name = "rest", .scopes = "*", .address = "", .authenticated = true};
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    hub_connect(&w, "cdev", &phone);
    CHECK_INT(
        weft_service_call(w.service, &who, "agent/run", WEFT_OBJ({"prompt", weft_str("x")}), count_answer, &answers, NULL),
        0);
    HUB_UNTIL(&w, hub_run(&w, "task-0000"));
    hub_run(&w, "task-0000")->host->on_process(hub_run(&w, "task-0000")->ctx, 77);
    CHECK_INT(weft_service_call(w.service, &who, "status/get", weft_none(), count_answer, &answers, NULL), 0);
    CHECK_INT(weft_service_call(w.service, &who, "session/unwatch", weft_none(), count_answer, &answers, NULL), 0);
    hub_settle(&w);
    CHECK_INT(answers, 3);
    hub_disconnect(&phone);
    hub_done(&w);
}

/* What a dialect tells is for those who may read: a token for figures hears of nothing. */
TEST(who_may_not_read_is_told_nothing) {
    static const char *const scopes[] = {"work admin metrics", "read", "*"};
    for (size_t i = 0; i < 3; i++) {
        hub_world w;
        hub_client phone;
        CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
        hub_connect_with(&w, "cdev", scopes[i], &phone);
        hub_happen(&w, "session.agent", "x");
        if (i)
            HUB_TOLD(&phone, "\"method\":\"claude_session_info\"");
        HUB_SILENT(&phone);
        hub_disconnect(&phone);
        hub_done(&w);
    }
}

/* A number finds its client as long as that is there, and nobody else afterwards. */
TEST(clients_have_numbers) {
    hub_world w;
    hub_client a, b;
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    hub_connect(&w, "cdev", &a);
    weft_hub_client *first = weft__hub_client_of(w.hub.clients, a.peer);
    uint64_t number = weft__hub_client_number(first);
    CHECK(weft__hub_clients_find(w.hub.clients, number) == first);
    CHECK(weft__hub_clients_find(w.hub.clients, number + 1) == NULL);
    hub_disconnect(&a);
    hub_connect(&w, "cdev", &b);
    CHECK(weft__hub_clients_find(w.hub.clients, number) == NULL);
    hub_disconnect(&b);
    hub_done(&w);
}

TEST(watching_has_a_limit) {
    hub_world w;
    char name[16];
    CHECK_INT(hub_init(&w, &(hub_opts){0}), 0);
    weft_peer *a = peer_of(&w, "cdev");
    weft__hub_clients_open(w.hub.clients, a);
    weft_hub_client *client_of_a = weft__hub_client_of(w.hub.clients, a);
    REQUIRE(client_of_a != NULL);
    CHECK(weft__hub_client_session(client_of_a) == NULL);
    for (int i = 0; i < WEFT_CLIENT_WATCHES; i++) {
        snprintf(name, sizeof name, "s%d", i);
        CHECK_INT(weft__hub_client_watch(client_of_a, name), 0);
    }
    CHECK_INT(weft__hub_client_watch(client_of_a, "s5"), 0);
    CHECK_INT(weft__hub_client_watch(client_of_a, "more"), -ENOSPC);
    CHECK(!weft__hub_client_watches(client_of_a, "more"));
    CHECK_INT(weft__hub_client_started(client_of_a, "mine"), 0);
    CHECK(weft__hub_client_watches(client_of_a, "mine") && !weft__hub_client_watches(client_of_a, "s0") &&
          weft__hub_client_watches(client_of_a, "s1"));
    CHECK_STR(weft__hub_client_session(client_of_a), "mine");
    const char *types[1] = {"x"};
    weft_subscription_spec spec = {.live = true, .types = types, .type_count = WEFT_CLIENT_WATCHES + 1};
    CHECK_INT(weft__hub_client_subscribe(client_of_a, &spec, NULL, NULL), -ENOSPC);
    weft__hub_clients_close(w.hub.clients, a);
    weft_peer_free(a);
    hub_done(&w);
}

TEST_MAIN(CASE(a_slow_reader_misses_nothing) CASE(a_slow_reader_misses_nothing_of_sqlite)
              CASE(a_slow_subscriber_misses_nothing) CASE(a_slow_subscriber_misses_nothing_of_sqlite)
                  CASE(a_noisy_session_hurts_nobody_else) CASE(a_noisy_session_hurts_nobody_else_with_sqlite)
                      CASE(who_missed_something_is_closed) CASE(closing_says_come_back) CASE(a_subscription_ends_at_any_time)
                          CASE(a_name_that_several_have_is_the_speakers) CASE(only_what_somebody_hears_is_rendered)
                              CASE(a_dialect_that_beats) CASE(cdev_has_a_heartbeat)
                                  CASE(a_call_without_a_connection_is_no_client) CASE(who_may_not_read_is_told_nothing)
                                      CASE(clients_have_numbers) CASE(watching_has_a_limit))

/* Plays every file in tests/scenes against a peer: conversations in the notation of the JSON-RPC specification.
 *
 *     # title                          begins a scene; further # lines are comments
 *     with no_batch lenient locked eager acp mcp extras rate=2     how the peer is made
 *     ==> TEXT                         the other side says this and does not end the line
 *     --> TEXT                         the other side says this line
 *     <-- TEXT                         the peer must say exactly this next
 *     call METHOD PARAMS [within 5s] [parts] [key K] [deadline]    the peer calls; PARAMS is JSON without blanks, or -
 *     notify METHOD PARAMS
 *     batch METHOD PARAMS; METHOD PARAMS; !METHOD PARAMS        calls and (!) notifications in one message
 *     cancel METHOD                    give up our call
 *     @5s                              that much later; may be followed by one of the next three
 *     METHOD answers RESULT            our call ended so; asked in the order in which calls end
 *     METHOD refused CODE
 *     METHOD fails ERRNO
 *     METHOD part VALUE                a part came
 *     reply RESULT                     the oldest request kept by `later` or `watch` is answered
 *     told WHY                         `watch` heard that its answer is not wanted
 *     heard METHOD PARAMS              a notification that no method takes arrived
 *     eof                              the other side closes its writing end
 *     silence                          nothing more was said
 *
 * Every scene is played whole, byte by byte, glued (all that can be said without waiting is said at once), and once for each
 * allocation with that allocation failing: then only survival, tidiness and "every call completes exactly once" are checked.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include <weft/weft.h>

#include "scene_file.h"

#define MAX_CALLS 32
#define MAX_KEPT 16
#define MAX_LOG 64

enum mode { WHOLE, BYTES, GLUED, FAILING };

typedef struct call {
    struct play *play;
    char method[64];
    int64_t id;
    int completed; /* how often */
} call;

typedef struct play {
    weft_service *service;
    weft_peer *peer;
    enum mode mode;
    int64_t now;
    call calls[MAX_CALLS];
    size_t call_count;
    char *log[MAX_LOG]; /* what happened, in the notation of the steps */
    size_t log_in, log_out;
    weft_req *kept[MAX_KEPT];
    size_t kept_count;
    int closed;
    bool broken; /* in FAILING mode: stop looking at what comes out */
} play;

/* ---- what happens is written down ---- */

static void note(play *p, const char *format, ...) WEFT_PRINTF(2, 3);
static void note(play *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (p->log_in < MAX_LOG && vasprintf(&p->log[p->log_in], format, args) >= 0)
        p->log_in++;
    va_end(args);
}

static const char *why_name(int r) {
    const char *name = strerrorname_np(-r);
    return name ? name : "?";
}

/* ---- the methods that scenes may call ---- */

static int subtract(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    struct {
        double minuend, subtrahend;
    } in;
    static const weft_param table[] = {
        {"minuend", WEFT_PARAM_num, 0, WEFT_REQUIRED, "from which"},
        {"subtrahend", WEFT_PARAM_num, sizeof(double), WEFT_REQUIRED, "what is taken"},
        {0},
    };
    int r = weft_bind(req, table, params, &in);
    return r < 0 ? r : weft_reply(req, weft_num(in.minuend - in.subtrahend));
}

static int sum(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    double total = 0;
    for (weft_iter it = weft_iterate(params); weft_next(&it);)
        total += weft_num_of(&it.value, 0);
    return weft_reply(req, weft_num(total));
}

static int get_data(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, WEFT_ARR(weft_str("hello"), weft_int(5)));
}

static int sink(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_null());
}

static int echo(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    return weft_reply(req, weft_copy(params));
}

static int broken(weft_req *req, const weft_json *params, void *ctx) {
    (void) req, (void) params, (void) ctx;
    return -EIO;
}

static int refuse(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_refuse(req, -32001, "No", "becauseISaidSo");
}

static play *stage; /* the play that is on; handlers reach it here, since a row's ctx cannot be per scene */

static int later(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    if (!weft_req_is_notification(req) && stage->kept_count < MAX_KEPT)
        stage->kept[stage->kept_count++] = req;
    return 0;
}

static void unwanted(weft_req *req, int why, void *ctx) {
    (void) req, (void) ctx;
    note(stage, "told %s", why_name(why));
}

static int watch(weft_req *req, const weft_json *params, void *ctx) {
    weft_req_on_cancel(req, unwanted, NULL);
    return later(req, params, ctx);
}

static int count_up(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    for (int i = 1; i <= 2; i++) {
        int r = weft_part(req, weft_int(i));
        if (r < 0)
            return r;
    }
    return weft_reply(req, weft_str("done"));
}

static int whoami(weft_req *req, const weft_json *params, void *ctx) {
    (void) params, (void) ctx;
    return weft_reply(req, weft_str(weft_req_identity(req)->transport));
}

static const weft_param greet_params[] = {
    {"name", WEFT_PARAM_str, 0, WEFT_REQUIRED | WEFT_NONEMPTY, "whom"},
    {"times", WEFT_PARAM_int, sizeof(char *), WEFT_NULLABLE, "how often"},
    {0},
};
static int greet(weft_req *req, const weft_json *params, void *ctx) {
    (void) ctx;
    struct {
        const char *name;
        int64_t times;
    } in = {.times = 1};
    int r = weft_bind(req, greet_params, params, &in);
    return r < 0 ? r : weft_reply(req, WEFT_OBJ({"hello", weft_str(in.name)}, {"times", weft_int(in.times)}));
}

static const weft_method methods[] = {
    {"subtract", subtract},
    {"sum", sum},
    {"get_data", get_data},
    {"update", sink},
    {"notify_hello", sink},
    {"notify_sum", sink},
    {"echo", echo},
    {"broken", broken},
    {"refuse", refuse, .flags = WEFT_ROW_CHANGES},
    {"later", later, .flags = WEFT_ROW_CHANGES},
    {"soon", later, .flags = WEFT_ROW_SOON | WEFT_ROW_CHANGES},
    {"look", later, .flags = WEFT_ROW_SOON},
    {"watch", watch},
    {"limited", later, .timeout_ms = 1000},
    {"count", count_up},
    {"whoami", whoami, .flags = WEFT_ROW_OPEN},
    {"admin", echo, .scope = "admin"},
    {"greet", greet, .params = greet_params, .flags = WEFT_ROW_CHANGES},
    {"greet_strictly", greet, .params = greet_params, .flags = WEFT_ROW_CHANGES | WEFT_ROW_STRICT},
    {0},
};

/* ---- what the scene's own peer does ---- */

static void on_answer(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    call *c = ctx;
    (void) peer;
    c->completed++;
    if (r < 0)
        note(c->play, "%s fails %s", c->method, why_name(r));
    else if (answer->error)
        note(c->play, "%s refused %d", c->method, answer->error->code);
    else
        note(c->play, "%s answers %.*s", c->method, (int) answer->result->len, answer->result->text);
}

static void on_part(weft_peer *peer, const weft_json *part, void *ctx) {
    call *c = ctx;
    (void) peer;
    note(c->play, "%s part %.*s", c->method, (int) part->len, part->text);
}

static void on_notification(weft_peer *peer, const char *method, const weft_json *params, void *data) {
    (void) peer;
    note(data, "heard %s %.*s", method, (int) (params->text ? params->len : 1), params->text ? params->text : "-");
}

static bool say(play *p, const char *text, size_t len) {
    size_t piece = p->mode == BYTES ? 1 : len;
    for (size_t at = 0; at < len && p->closed == 0; at += piece)
        p->closed = weft_peer_feed(p->peer, text + at, piece, p->now);
    return p->closed == 0;
}

static void fail_step(const char *step, const char *is) {
    char line[4096];
    snprintf(line, sizeof line, "%s   [instead: %s]", step, is);
    test_check(false, "scene", 0, line);
}

/* The next line that the peer has said must be this one. */
static void expect_line(play *p, const char *step) {
    const char *want = step + 4;
    size_t len = strlen(want);
    weft_bytes out = weft_peer_output(p->peer);
    if (out.len >= len + 1 && memcmp(out.data, want, len) == 0 && out.data[len] == '\n') {
        weft_peer_sent(p->peer, len + 1);
        return;
    }
    char is[2048];
    snprintf(is, sizeof is, "%.*s", (int) (out.len < sizeof is ? out.len : sizeof is - 1), out.data);
    fail_step(step, is);
}

static void expect_event(play *p, const char *step) {
    const char *is = p->log_out < p->log_in ? p->log[p->log_out++] : "nothing happened";
    if (strcmp(is, step) != 0)
        fail_step(step, is);
}

static void expect_silence(play *p) {
    weft_bytes out = weft_peer_output(p->peer);
    char is[512];
    if (out.len) {
        snprintf(is, sizeof is, "%.*s", (int) (out.len < 400 ? out.len : 400), out.data);
        fail_step("silence", is);
    }
    if (p->log_out < p->log_in)
        fail_step("silence", p->log[p->log_out]);
}

/* ---- steps ---- */

/* Cut the next word off *text; "" at the end. */
static char *word(char **text) {
    while (**text == ' ')
        (*text)++;
    char *start = *text;
    while (**text && **text != ' ')
        (*text)++;
    if (**text)
        *(*text)++ = '\0';
    return start;
}

static weft_val json_arg(const char *text) {
    return strcmp(text, "-") == 0 || !*text ? weft_none() : weft_raw(text, strlen(text));
}

static int64_t milliseconds(const char *text) {
    char *unit;
    long n = strtol(text, &unit, 10);
    return strcmp(unit, "ms") == 0 ? n : n * 1000;
}

static call *new_call(play *p, const char *method) {
    call *c = &p->calls[p->call_count++];
    *c = (call){.play = p};
    snprintf(c->method, sizeof c->method, "%s", method);
    return c;
}

static void do_call(play *p, char *args) {
    char *method = word(&args), *params = word(&args), *option;
    call *c = new_call(p, method);
    weft_call_opts opts = {.on_answer = on_answer, .ctx = c};
    while (*(option = word(&args))) {
        if (strcmp(option, "within") == 0)
            opts.timeout_ms = milliseconds(word(&args));
        else if (strcmp(option, "parts") == 0)
            opts.on_part = on_part;
        else if (strcmp(option, "key") == 0)
            opts.idempotency_key = word(&args);
        else if (strcmp(option, "deadline") == 0)
            opts.send_deadline = true;
    }
    int r = weft_call_start(p->peer, method, json_arg(params), &opts, &c->id);
    if (r < 0) {
        note(p, "%s not started %s", method, why_name(r));
        p->call_count--;
    }
}

static void do_batch(play *p, char *args) {
    weft_batch *batch;
    if (weft_batch_new(p->peer, &batch) < 0)
        return;
    for (char *item = strtok(args, ";"); item; item = strtok(NULL, ";")) {
        char *method = word(&item), *params = word(&item);
        if (*method == '!') {
            (void) weft_batch_notify(batch, method + 1, json_arg(params));
            continue;
        }
        call *c = new_call(p, method);
        if (weft_batch_call(batch, method, json_arg(params), &(weft_call_opts){.on_answer = on_answer, .ctx = c}, &c->id) <
            0)
            p->call_count--;
    }
    (void) weft_batch_send(batch);
}

static void do_cancel(play *p, const char *method) {
    for (size_t i = 0; i < p->call_count; i++)
        if (strcmp(p->calls[i].method, method) == 0 && !p->calls[i].completed) {
            (void) weft_cancel(p->peer, p->calls[i].id);
            return;
        }
}

static void do_reply(play *p, const char *result) {
    if (!p->kept_count)
        return;
    weft_req *req = p->kept[0];
    memmove(p->kept, p->kept + 1, --p->kept_count * sizeof p->kept[0]);
    (void) weft_reply(req, weft_raw(result, strlen(result)));
    /* What waited for this answer goes on when it is fed, as after a pause. */
    if (p->peer && !p->closed)
        p->closed = weft_peer_feed(p->peer, "", 0, p->now);
}

static void do_later(play *p, int64_t ms) {
    /* Time moves to each deadline on the way, as it would on a loop. */
    int64_t until = p->now + ms;
    while (!p->closed && weft_peer_deadline(p->peer) <= until) {
        if (weft_peer_deadline(p->peer) > p->now)
            p->now = weft_peer_deadline(p->peer);
        p->closed = weft_peer_tick(p->peer, p->now);
    }
    p->now = until;
    if (!p->closed)
        p->closed = weft_peer_tick(p->peer, p->now);
}

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static void step(play *p, const char *text) {
    char copy[8192];
    snprintf(copy, sizeof copy, "%s", text);
    if (starts(text, "call "))
        do_call(p, copy + 5);
    else if (starts(text, "notify ")) {
        char *args = copy + 7, *method = word(&args), *params = word(&args);
        (void) weft_notify(p->peer, method, json_arg(params));
    } else if (starts(text, "batch "))
        do_batch(p, copy + 6);
    else if (starts(text, "cancel "))
        do_cancel(p, copy + 7);
    else if (starts(text, "reply "))
        do_reply(p, copy + 6);
    else if (strcmp(text, "eof") == 0)
        (void) weft_peer_eof(p->peer);
    else if (*text == '@') {
        char *rest = copy + 1;
        do_later(p, milliseconds(word(&rest)));
        while (*rest == ' ')
            rest++;
        if (*rest && p->mode != FAILING)
            expect_event(p, rest);
    } else if (p->mode == FAILING)
        return;
    else if (strcmp(text, "silence") == 0)
        expect_silence(p);
    else
        expect_event(p, text);
}

/* Everything that the other side can say without waiting for more than our lines, said in one piece. Where it ended. */
static size_t say_glued(play *p, const scene *s, size_t from) {
    char *all = calloc(1, 1 << 20);
    size_t len = 0, i;
    for (i = from; i < s->count && (starts(s->steps[i], "-->") || starts(s->steps[i], "<--")); i++)
        if (s->steps[i][0] == '-')
            len += (size_t) snprintf(all + len, (1 << 20) - len, "%s\n", s->steps[i] + 4);
    say(p, all, len);
    free(all);
    for (size_t k = from; k < i; k++)
        if (s->steps[k][0] == '<')
            expect_line(p, s->steps[k]);
    return i;
}

static void say_line(play *p, const char *text) {
    char *line;
    int n = asprintf(&line, *text == '=' ? "%s" : "%s\n", text + 4);
    if (n < 0)
        return;
    say(p, line, (size_t) n);
    free(line);
}

static void play_steps(play *p, const scene *s) {
    for (size_t i = 0; i < s->count;) {
        const char *text = s->steps[i];
        if (starts(text, "with "))
            i++;
        else if (p->mode == GLUED && starts(text, "-->"))
            i = say_glued(p, s, i);
        else if (starts(text, "-->") || starts(text, "==>"))
            say_line(p, text), i++;
        else if (starts(text, "<--")) {
            if (p->mode == FAILING)
                weft_peer_sent(p->peer, weft_peer_output(p->peer).len);
            else
                expect_line(p, text);
            i++;
        } else
            step(p, text), i++;
    }
}

/* ---- making the peer ---- */

static void read_options(const scene *s, weft_service_opts *service, weft_peer_opts *peer, weft_identity *who) {
    if (!s->count || !starts(s->steps[0], "with "))
        return;
    peer->no_batch = strstr(s->steps[0], "no_batch");
    peer->lenient = strstr(s->steps[0], "lenient");
    peer->locked = strstr(s->steps[0], "locked");
    peer->extras = strstr(s->steps[0], "extras");
    peer->eager = strstr(s->steps[0], "eager");
    peer->style = strstr(s->steps[0], "acp") ? WEFT_STYLE_ACP : strstr(s->steps[0], "mcp") ? WEFT_STYLE_MCP : WEFT_STYLE_LSP;
    const char *rate = strstr(s->steps[0], "rate=");
    if (rate)
        service->limits.rate_per_minute = atol(rate + 5);
    const char *batch = strstr(s->steps[0], "max_batch=");
    if (batch)
        service->limits.max_batch = (size_t) atol(batch + 10);
    const char *calls = strstr(s->steps[0], "max_calls=");
    if (calls)
        service->limits.max_calls = (size_t) atol(calls + 10);
    const char *answer = strstr(s->steps[0], "max_answer=");
    if (answer)
        service->limits.max_answer = (size_t) atol(answer + 11);
    const char *body = strstr(s->steps[0], "max_body=");
    if (body)
        service->limits.max_body = service->limits.max_body_stranger = (size_t) atol(body + 9);
    if (strstr(s->steps[0], "admin"))
        who->scopes = "read admin", who->authenticated = true;
    if (strstr(s->steps[0], "user"))
        who->scopes = "read", who->authenticated = true;
}

static int open_play(play *p, const scene *s, test_memory *memory) {
    weft_identity who = {.transport = "tcp", .address = "127.0.0.1", .uid = -1, .pid = -1};
    weft_service_opts service = {.methods = methods, .title = "Scenes", .alloc = &memory->alloc, .measure = true};
    weft_peer_opts peer = {.framing = &weft_ndjson, .identity = &who, .data = p, .on_notification = on_notification};
    read_options(s, &service, &peer, &who);
    int r = weft_service_new(&service, &p->service);
    if (r >= 0)
        r = weft_peer_new(p->service, &peer, &p->peer);
    return r < 0 ? r : weft_peer_tick(p->peer, p->now);
}

static void close_play(play *p) {
    p->peer = weft_peer_free(p->peer);
    while (p->kept_count)
        do_reply(p, "null"); /* a handler answers what it has kept, also after the connection has gone */
    p->service = weft_service_unref(p->service);
    for (size_t i = 0; i < p->call_count; i++)
        CHECK_INT(p->calls[i].completed, 1);
    for (size_t i = 0; i < p->log_in; i++)
        free(p->log[i]);
}

/* How many allocations it made. */
static long perform(const scene *s, enum mode mode, long fail_at) {
    static const char *const mode_names[] = {"whole", "byte by byte", "glued", "failing allocation"};
    char row[256];
    if (mode == FAILING)
        snprintf(row, sizeof row, "%s (%s %ld)", s->title, mode_names[mode], fail_at);
    else
        snprintf(row, sizeof row, "%s (%s)", s->title, mode_names[mode]);
    test_row(row);
    test_memory memory;
    test_memory_init(&memory, fail_at);
    play p = {.mode = mode, .now = 1000000};
    stage = &p;
    if (open_play(&p, s, &memory) >= 0) {
        play_steps(&p, s);
        if (mode != FAILING)
            expect_silence(&p);
    } else
        CHECK(mode == FAILING);
    close_play(&p);
    CHECK_INT(memory.live, 0);
    return memory.count;
}

/* ---- files ---- */

static void play_scene(const scene *s) {
    long allocations = perform(s, WHOLE, 0);
    perform(s, BYTES, 0);
    perform(s, GLUED, 0);
    for (long n = 1; n <= allocations; n++)
        perform(s, FAILING, n);
}

TEST(scenes) {
    scene_files("tests/scenes", play_scene);
}

TEST_MAIN(CASE(scenes))

/* What agents say to the hub, above the codec: the driver's whole conversation over a socket pair, with an agent that sends
 * anything, in pieces, and a host with two sessions that answers, cancels, prompts again, closes, pauses and frees at any
 * moment.
 *
 * The first byte says how much of a proper beginning the agent makes (initialize, a session), the second what the host does,
 * the third seeds when; the rest is what the agent sends. What must hold: a turn ends once, the process at most
 * once, and nothing comes afterwards; what we send is lines of JSON; what a person would be asked has a title and names
 * without a character that cannot be seen, of limited length, and options that can be told apart; nothing is left allocated.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "acp_private.h"
#include "fuzz_memory.h"
#include "visible.h"

#define MOST_KEYS 64

#define SESSIONS 2

typedef struct slot {
    struct world *world;
    weft_driver_session *session; /* NULL: closed */
    bool turn;
} slot;

typedef struct world {
    weft_loop *loop;
    weft_driver_process *process;
    slot slots[SESSIONS];
    int agent; /* the agent's end */
    uint32_t random;
    uint8_t does; /* what the host does, as bits */
    int ends;
    bool freed;
    weft_buf heard; /* what the agent got */
    char keys[MOST_KEYS][24];
    slot *askers[MOST_KEYS];
    size_t key_count;
} world;

static unsigned pick(world *w, unsigned below) {
    w->random = w->random * 1664525 + 1013904223;
    return (w->random >> 16) % below;
}

/* ---- the host ---- */

static void free_all(world *w) {
    w->freed = true;
    w->process = weft__acp_free(w->process);
}

/* What is asked in a session that is closed is nobody's any more. */
static void close_slot(slot *s) {
    world *w = s->world;
    size_t kept = 0;
    s->session = weft__acp_close(s->session);
    s->turn = false;
    for (size_t i = 0; i < w->key_count; i++)
        if (w->askers[i] != s) {
            memmove(w->keys[kept], w->keys[i], sizeof w->keys[0]);
            w->askers[kept++] = w->askers[i];
        }
    w->key_count = kept;
}

static void act(slot *s) {
    world *w = s->world;
    require(!w->ends && !w->freed && s->session);
    if (w->does & 1 && pick(w, 8) == 0)
        free_all(w);
    else if (w->does & 2 && pick(w, 4) == 0)
        weft__acp_stop(w->process, pick(w, 4) ? s->session : NULL, pick(w, 2));
    else if (w->does & 4 && pick(w, 4) == 0)
        weft__acp_pause(w->process, true);
    else if (w->does & 32 && pick(w, 8) == 0)
        close_slot(s);
}

static void on_process(void *ctx, pid_t pid) {
    (void) ctx, (void) pid;
}

static void on_session(void *ctx, const weft_session_info *info) {
    (void) info;
    act(ctx);
}

static void on_output(void *ctx, weft_run_stream stream, weft_bytes text) {
    (void) stream;
    require(text.len > 0);
    act(ctx);
}

static void on_update(void *ctx, const weft_json *update) {
    require(weft_get_str(update, "sessionUpdate", NULL) != NULL);
    act(ctx);
}

static void on_done(void *ctx, int r, const weft_json *result, const char *error) {
    world *w = ctx;
    require(!w->freed && !w->ends && (r == 0) == (result != NULL) && (r == 0 || error || r == -ENOMEM));
    if (w->does & 1 && pick(w, 4) == 0)
        free_all(w);
}

static void on_state(void *ctx, const char *name, const weft_json *value) {
    slot *s = ctx;
    world *w = s->world;
    weft_doc *doc = NULL;
    require(*name && value->text);
    require(weft_doc_parse("\"m\"", 3, NULL, &doc) == 0);
    w->process->gone = false; /* as in prompt() */
    if (pick(w, 3) == 0)
        (void) weft__acp_set(s->session, &(weft_session_setting){pick(w, 2) ? "mode" : "model", NULL, *weft_doc_root(doc)},
                             on_done, w);
    w->process->gone = true;
    weft_doc_free(doc);
    act(s);
}

static void check_seen(const weft_json *value, size_t most) {
    weft_bytes text;
    unsigned code;
    require(weft_bytes_of(value, &text) == 0 && text.len > 0 && text.len <= most + 64);
    for (size_t at = 0; at < text.len;) {
        at += weft__code_point(text.data + at, text.len - at, &code);
        require(!weft__is_unseen(code));
    }
}

static void check_options(const weft_json *options) {
    size_t i = 0, count = weft_count(options);
    require(count > 0 && count <= 32);
    for (weft_iter it = weft_iterate(options); weft_next(&it); i++) {
        weft_json name = weft_get(&it.value, "name");
        const char *id = weft_get_str(&it.value, "id", "");
        require(*id);
        check_seen(&name, 256);
        size_t j = 0;
        for (weft_iter other = weft_iterate(options); j < i && weft_next(&other); j++)
            require(strcmp(weft_get_str(&other.value, "id", ""), id) != 0);
    }
}

/* Whatever was asked. */
static void fill_in(slot *s, const char *key) {
    weft_doc *doc = NULL;
    require(weft_doc_parse("{\"a\":1}", 7, NULL, &doc) == 0);
    require(weft__acp_accept(s->session, key, weft_doc_root(doc)) == 0);
    weft_doc_free(doc);
}

static void on_elicited(void *ctx, const char *elicitation) {
    require(*elicitation && strlen(elicitation) <= 1024);
    act(ctx);
}

static void on_ask(void *ctx, const char *key, weft_val question) {
    slot *s = ctx;
    world *w = s->world;
    char *text;
    size_t len;
    weft_doc *doc = NULL;
    require(weft_to_text(question, NULL, &text, &len) == 0 && weft_doc_parse(text, len, NULL, &doc) == 0);
    weft_json title = weft_get(weft_doc_root(doc), "title"), options = weft_get(weft_doc_root(doc), "options");
    check_seen(&title, 4096);
    check_options(&options);
    weft_doc_free(doc);
    weft_text_free(text, NULL);
    if (w->does & 8 && pick(w, 3) == 0)
        fill_in(s, key);
    else if (w->does & 8)
        require(weft__acp_answer(s->session, key, pick(w, 2) ? pick(w, 2) ? "x" : "weft:retry" : NULL) == 0);
    else if (w->key_count < MOST_KEYS) {
        w->askers[w->key_count] = s;
        snprintf(w->keys[w->key_count++], sizeof w->keys[0], "%s", key);
    }
    act(s);
}

static void on_unask(void *ctx, const char *key) {
    (void) key;
    act(ctx);
}

/* There is no process: it is "gone", but for those who would not begin anything in one that is. */
static void prompt(slot *s) {
    weft_driver_process *process = s->world->process;
    process->gone = false;
    s->turn = weft__acp_prompt(s->session, &(weft_turn_spec){.prompt = "do it"}) == 0;
    process->gone = true;
}

static void on_turn_end(void *ctx, const weft_turn_end *end) {
    slot *s = ctx;
    world *w = s->world;
    require(!w->freed && !w->ends && s->turn && s->session);
    require(end->ok == !end->reason && end->ok == !end->error);
    require(!end->stop_reason || strlen(end->stop_reason) <= 64);
    s->turn = false;
    if (w->does & 16)
        free_all(w);
    else if (w->does & 64)
        prompt(s);
}

static void on_end(void *ctx, int exit_code, int signal) {
    world *w = ctx;
    (void) exit_code, (void) signal;
    require(!w->freed && w->ends++ == 0);
    for (int i = 0; i < SESSIONS; i++)
        require(!w->slots[i].turn);
    if (w->does & 128)
        free_all(w);
}

static const weft_process_host process_host = {on_process, on_end};
static const weft_session_host session_host = {
    .on_session = on_session,
    .on_output = on_output,
    .on_update = on_update,
    .on_state = on_state,
    .on_ask = on_ask,
    .on_unask = on_unask,
    .on_elicited = on_elicited,
    .on_turn_end = on_turn_end,
};

/* ---- the agent ---- */

static void hear(world *w) {
    char bytes[4096];
    ssize_t n;
    while ((n = recv(w->agent, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        require(weft__buf_put(&w->heard, NULL, bytes, (size_t) n) == 0);
}

/* Turns of the loop until nothing is left to do at once. */
static void turn(world *w) {
    for (int i = 0; i < 4; i++) {
        weft_loop_once(w->loop, false);
        hear(w);
    }
}

static void say(world *w, const char *bytes, size_t len) {
    for (size_t at = 0; at < len && !w->freed;) {
        size_t n = 1 + pick(w, 4000);
        n = n < len - at ? n : len - at;
        if (send(w->agent, bytes + at, n, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t) n)
            return; /* nobody reads: it is paused, or over */
        at += n;
        turn(w);
        if (!w->freed && w->key_count && pick(w, 3) == 0) {
            w->key_count--;
            weft__acp_answer(w->askers[w->key_count]->session, w->keys[w->key_count], pick(w, 2) ? "yes" : NULL);
        }
        if (!w->freed && !w->ends && pick(w, 3) == 0)
            weft__acp_pause(w->process, false);
    }
}

static void begin_properly(world *w, unsigned steps) {
    static const char *const lines[] = {
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true}}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"sessionId\":\"s\"}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"sessionId\":\"t\"}}\n",
    };
    for (unsigned i = 0; i < steps && i < 3; i++)
        say(w, lines[i], strlen(lines[i]));
}

/* ---- one run ---- */

static void check_heard(const world *w) {
    const char *at = weft__buf_head(&w->heard), *end = at ? at + weft__buf_len(&w->heard) : NULL, *line;
    for (; at && (line = memchr(at, '\n', (size_t) (end - at))); at = line + 1) {
        weft_doc *doc;
        require(weft_doc_parse(at, (size_t) (line - at), NULL, &doc) == 0);
        weft_doc_free(doc);
    }
}

static void open_run(world *w, bool goes_on, bool sets, bool must_exist) {
    static const char settings[] = "{\"mode\":\"m\",\"options\":{\"o\":true}}";
    weft_doc *doc = NULL;
    static const char *const argv[] = {"agent", NULL};
    static const weft_agent agent = {.name = "it", .driver = "acp", .argv = argv};
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    w->agent = ends[1];
    require(weft__acp_new(&(weft_process_spec){.loop = w->loop, .alloc = &counting, .agent = &agent, .folder = "/"},
                          &process_host, w, &w->process) == 0);
    w->process->started = true;
    require(weft__acp_talk(w->process, ends[0], dup(ends[0])) >= 0);
    require(weft_doc_parse(settings, sizeof settings - 1, NULL, &doc) == 0);
    for (int i = 0; i < SESSIONS; i++) {
        slot *s = &w->slots[i];
        s->world = w;
        w->process->gone = false;
        require(weft__acp_session(w->process,
                                  &(weft_session_spec){.agent_session = goes_on && !i ? "s" : NULL,
                                                       .must_exist = must_exist,
                                                       .settings = sets && i ? weft_doc_root(doc) : NULL},
                                  &session_host, s, &s->session) == 0);
        prompt(s);
    }
    w->process->gone = false;
    if (sets)
        require(weft__acp_list(w->process, NULL, NULL, on_done, w) == 0 &&
                weft__acp_remove(w->process, "x", on_done, w) == 0);
    w->process->gone = true;
    weft_doc_free(doc);
    weft__acp_pause(w->process, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3)
        return 0;
    world w = {.random = data[2], .does = data[1]};
    require(weft_loop_new(NULL, &w.loop) == 0);
    open_run(&w, data[0] & 4, data[0] & 8, data[0] & 16);
    turn(&w);
    begin_properly(&w, data[0] & 3);
    say(&w, (const char *) data + 3, size - 3);
    close(w.agent);
    if (!w.freed && !w.ends)
        weft__acp_pause(w.process, false);
    w.agent = -1;
    for (int i = 0; i < 4; i++)
        weft_loop_once(w.loop, false);
    require(w.freed || w.ends || w.process->paused || w.process->state >= WEFT_ACP_LEAVING);
    w.process = weft__acp_free(w.process);
    weft_loop_run(w.loop);
    weft_loop_free(w.loop);
    check_heard(&w);
    weft__buf_done(&w.heard, NULL);
    require(live == 0);
    return 0;
}

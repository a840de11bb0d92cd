/* Plays every file in tests/scenes/hub against a whole hub: conversations with its dialects, and agents that do what the
 * scene says.
 *
 *     # title                            begins a scene; further # lines are comments
 *     with max_running=1 max_queue=2 parallel automation ...     how the hub is made
 *     as NAME [DIALECT]                  from here on this connection speaks; with a dialect it connects first
 *     --> TEXT                           it says this line
 *     <-- TEXT                           it must be told exactly this next
 *     silence                            it is told nothing more
 *     bye                                it goes
 *     agent TASK runs                    the agent of this task has a process (4000, 4001, ...)
 *     agent TASK session ID              and this is what it calls the conversation
 *     agent TASK says|errs TEXT          a line of output; \n stands for a line's end
 *     agent TASK updates JSON
 *     agent TASK asks KEY JSON           with a question for a person
 *     agent TASK unasks KEY
 *     agent TASK ends                    well
 *     agent TASK stops                   because it was told to
 *     agent TASK fails REASON TEXT
 *     agent heard WHAT                   an agent was told: "task-0000 cancel", "task-0000 answer KEY OPTION"
 *     gate NAME passes                   the gate that runs is this one, and ends so
 *     gate NAME fails TEXT               with this output
 *     agents fail ERRNO                  from now on none can be started
 *     daemon stops [force]               the daemon was asked to stop
 *     +5s                                the wall clock moves on
 *
 * In <-- an ellipsis stands for any text, and <name> for a text without quotes that is the same wherever the name is written
 * again, also in -->. Every scene is played once whole and then once for each allocation above the engine with that
 * allocation failing: then only survival and tidiness are checked. */
#include <ctype.h>

#include "cdev_old.h"
#include "hub_world.h"
#include "link.h"
#include "scene_file.h"

#define MAX_CONNECTIONS 8
#define MAX_NAMES 32
#define MAX_TEXT 65536

typedef struct connection {
    char name[32];
    struct play *play;
    weft_peer *peer;
} connection;

typedef struct play {
    hub_world world;
    connection connections[MAX_CONNECTIONS];
    size_t connection_count;
    connection *speaker;
    struct {
        char name[32], value[256];
    } names[MAX_NAMES];
    size_t name_count;
    bool failing; /* what is said does not matter */
} play;

static bool starts(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* ---- texts with holes ---- */

static const char *value_of(const play *p, const char *name, size_t len) {
    for (size_t i = 0; i < p->name_count; i++)
        if (strlen(p->names[i].name) == len && memcmp(p->names[i].name, name, len) == 0)
            return p->names[i].value;
    return NULL;
}

/* "<name>": its length without the brackets, 0: it is none. */
static size_t name_at(const char *text) {
    size_t n = 0;
    if (*text != '<')
        return 0;
    while (isalnum((unsigned char) text[n + 1]))
        n++;
    return text[n + 1] == '>' ? n : 0;
}

static void fill_in(const play *p, const char *text, char *ret, size_t size) {
    size_t n = 0;
    while (*text && n + 1 < size) {
        size_t len = name_at(text);
        const char *value = len ? value_of(p, text + 1, len) : NULL;
        if (value) {
            n += (size_t) snprintf(ret + n, size - n, "%s", value);
            text += len + 2;
        } else
            ret[n++] = *text++;
    }
    ret[n < size ? n : size - 1] = '\0';
}

#define ELLIPSIS "\xE2\x80\xA6"

/* want has no known names any more. */
static bool matches(play *p, const char *is, const char *want) {
    for (; *want; is++, want++) {
        if (starts(want, ELLIPSIS)) {
            for (const char *rest = is;; rest++) {
                if (matches(p, rest, want + strlen(ELLIPSIS)))
                    return true;
                if (!*rest)
                    return false;
            }
        }
        size_t len = name_at(want);
        if (len) {
            char filled[MAX_TEXT];
            size_t n = strcspn(is, "\"");
            if (p->name_count == MAX_NAMES || n == 0)
                return false;
            snprintf(p->names[p->name_count].name, 32, "%.*s", (int) len, want + 1);
            snprintf(p->names[p->name_count].value, 256, "%.*s", (int) n, is);
            p->name_count++;
            fill_in(p, want + len + 2, filled, sizeof filled);
            if (matches(p, is + n, filled))
                return true;
            p->name_count--;
            return false;
        }
        if (*is != *want)
            return false;
    }
    return !*is;
}

/* ---- connections ---- */

static void on_drain(weft_peer *peer, void *data) {
    (void) data;
    weft__hub_clients_drain(hub_stage->hub.clients, peer);
}

/* The hub may end a connection. */
static void on_free(weft_peer *peer, void *carrier) {
    connection *c = carrier;
    (void) peer;
    c->peer = NULL;
}

static const weft_carrier carrier = {.free = on_free};

static bool on_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    (void) binary, (void) data;
    return weft__cdev_old_take(&hub_stage->hub, peer, body);
}

static void connect_as(play *p, const char *name, const char *dialect) {
    weft_identity who = {
        .transport = "unix", .dialect = dialect, .name = "", .scopes = "*", .address = "", .uid = 1000, .pid = 1};
    connection *c = &p->connections[p->connection_count];
    weft_peer_opts opts = {.framing = &weft_ndjson, .identity = &who, .on_drain = on_drain, .on_raw = on_raw};
    who.authenticated = true;
    if (p->connection_count == MAX_CONNECTIONS || weft_peer_new(p->world.service, &opts, &c->peer) < 0)
        return;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->play = p;
    p->connection_count++;
    p->speaker = c;
    weft__peer_set_carrier(c->peer, &carrier, c);
    weft__hub_clients_open(p->world.hub.clients, c->peer);
}

static void speak_as(play *p, const char *args) {
    char name[32] = "", dialect[32] = "";
    sscanf(args, "%31s %31s", name, dialect);
    for (size_t i = 0; i < p->connection_count && !*dialect; i++)
        if (strcmp(p->connections[i].name, name) == 0)
            p->speaker = &p->connections[i];
    if (*dialect)
        connect_as(p, name, dialect);
}

static weft_peer *speaker(play *p) {
    if (!p->speaker && !p->failing)
        connect_as(p, "somebody", "aiwg");
    return p->speaker ? p->speaker->peer : NULL;
}

static void hang_up(play *p) {
    weft_peer *peer = speaker(p);
    if (!peer)
        return;
    weft__hub_clients_close(p->world.hub.clients, peer);
    weft_peer_free(peer);
}

static void say(play *p, const char *text) {
    char line[MAX_TEXT];
    weft_peer *peer = speaker(p);
    if (!peer)
        return;
    fill_in(p, text, line, sizeof line - 1);
    strcat(line, "\n");
    int r = weft_peer_feed(peer, line, strlen(line), 1000);
    CHECK(r >= 0 || p->failing);
    hub_settle(&p->world);
}

/* The next line it was told. false: there is none. */
static bool next_line(play *p, char *ret, size_t size) {
    weft_peer *peer = speaker(p);
    int64_t until = hub_ms() + (p->failing ? 0 : HUB_PATIENCE_MS);
    for (; peer; hub_turn(&p->world, 10)) {
        weft_bytes out = weft_peer_output(peer);
        const char *end = memchr(out.data, '\n', out.len);
        if (end) {
            size_t n = (size_t) (end - out.data);
            snprintf(ret, size, "%.*s", (int) n, out.data);
            weft_peer_sent(peer, n + 1);
            if (weft_peer_deadline(peer) <= 1000)
                weft_peer_tick(peer, 1000);
            return true;
        }
        if (hub_ms() >= until)
            break;
    }
    return false;
}

static void expect(play *p, const char *text) {
    static char line[MAX_TEXT], want[MAX_TEXT];
    size_t names = p->name_count;
    bool said = next_line(p, line, sizeof line);
    fill_in(p, text, want, sizeof want);
    if (p->failing || (said && matches(p, line, want)))
        return;
    p->name_count = names;
    const char *is = said ? line : "(nothing)";
    CHECK_STR(is, want);
}

static void expect_silence(play *p) {
    hub_settle(&p->world);
    weft_bytes out = p->speaker && p->speaker->peer ? weft_peer_output(p->speaker->peer) : (weft_bytes){"", 0};
    if (!p->failing)
        CHECK_TEXT(out.data, out.len, "");
}

/* ---- agents ---- */

static void unescape(char *text) {
    char *to = text;
    for (; *text; text++)
        if (text[0] == '\\' && text[1] == 'n')
            *to++ = '\n', text++;
        else
            *to++ = *text;
    *to = '\0';
}

static void agent_speaks(weft_run *run, weft_run_stream stream, char *text) {
    unescape(text);
    strcat(text, "\n");
    run->host->on_output(run->ctx, stream, (weft_bytes){text, strlen(text)});
}

static void agent_updates(weft_run *run, const char *json) {
    weft_doc *doc;
    if (weft_doc_parse(json, strlen(json), NULL, &doc) < 0) {
        test_check(false, __FILE__, __LINE__, "the update is JSON");
        return;
    }
    run->host->on_update(run->ctx, weft_doc_root(doc));
    weft_doc_free(doc);
}

static void agent_asks(weft_run *run, char *args) {
    char *json = strchr(args, ' ');
    *json++ = '\0';
    run->host->on_ask(run->ctx, args, weft_raw(json, strlen(json)));
}

static void agent_fails(weft_run *run, char *args) {
    char *text = strchr(args, ' ');
    if (text)
        *text++ = '\0';
    weft_run_end end = {.reason = args, .error = text ? text : "", .exit_code = 1};
    hub_end(run, &end);
}

static void expect_heard(play *p, const char *what) {
    hub_world *world = &p->world;
    hub_settle(world);
    if (!p->failing)
        HUB_UNTIL(world, world->heard_count);
    if (!p->failing)
        CHECK_STR(world->heard_count ? world->heard[0] : "(nothing)", what);
    if (world->heard_count)
        memmove(world->heard[0], world->heard[1], --world->heard_count * sizeof world->heard[0]);
}

static void agent_step(play *p, const char *args) {
    char text[MAX_TEXT], task[64] = "", verb[32] = "";
    int at = 0;
    if (starts(args, "heard "))
        return expect_heard(p, args + 6);
    sscanf(args, "%63s %31s %n", task, verb, &at);
    snprintf(text, sizeof text - 2, "%s", args + at);
    weft_run *run = hub_run(&p->world, task);
    if (!run)
        return (void) CHECK(p->failing);
    if (strcmp(verb, "runs") == 0)
        run->host->on_process(run->ctx, p->world.next_pid++);
    else if (strcmp(verb, "session") == 0)
        run->host->on_session(run->ctx, text);
    else if (strcmp(verb, "says") == 0 || strcmp(verb, "errs") == 0)
        agent_speaks(run, *verb == 's' ? WEFT_RUN_STDOUT : WEFT_RUN_STDERR, text);
    else if (strcmp(verb, "updates") == 0)
        agent_updates(run, text);
    else if (strcmp(verb, "asks") == 0)
        agent_asks(run, text);
    else if (strcmp(verb, "unasks") == 0)
        run->host->on_unask(run->ctx, text);
    else if (strcmp(verb, "ends") == 0)
        hub_end(run, &(weft_run_end){.ok = true, .exit_code = 0});
    else if (strcmp(verb, "stops") == 0)
        hub_end(run, &(weft_run_end){.reason = "signalled", .error = "", .exit_code = -1, .signal = 15});
    else if (strcmp(verb, "fails") == 0)
        agent_fails(run, text);
    else
        test_check_text(verb, strlen(verb), "a verb", 6, __FILE__, __LINE__, "verb");
    hub_settle(&p->world);
}

/* ---- gates ---- */

static void gate_step(play *p, const char *args) {
    hub_world *world = &p->world;
    char name[64] = "", verb[32] = "";
    int at = 0;
    sscanf(args, "%63s %31s %n", name, verb, &at);
    if (!p->failing)
        HUB_UNTIL(world, world->gate_runs && world->gate_runs->done);
    if (!world->gate_runs || !world->gate_runs->done)
        return (void) CHECK(p->failing);
    if (!p->failing)
        CHECK_TEXT(world->gate_runs->gate, strlen(world->gate_runs->gate), name);
    hub_gate_ends(world, 0, strcmp(verb, "passes") == 0, args + at);
    hub_settle(world);
}

/* ---- steps ---- */

static int errno_of(const char *name) {
    for (int i = 1; i < 134; i++)
        if (strerrorname_np(i) && strcmp(strerrorname_np(i), name) == 0)
            return -i;
    return test_check(false, __FILE__, __LINE__, name), -EINVAL;
}

static void expect_stop(play *p, const char *args) {
    if (p->failing)
        return;
    CHECK_INT(p->world.stops, 1);
    CHECK_INT(p->world.stop_force, strcmp(args, " force") == 0);
    p->world.stops = 0;
}

static void step(play *p, const char *text) {
    if (starts(text, "--> "))
        say(p, text + 4);
    else if (starts(text, "<-- "))
        expect(p, text + 4);
    else if (starts(text, "as "))
        speak_as(p, text + 3);
    else if (starts(text, "agent "))
        agent_step(p, text + 6);
    else if (starts(text, "gate "))
        gate_step(p, text + 5);
    else if (starts(text, "agents fail "))
        p->world.start_fails = errno_of(text + 12);
    else if (starts(text, "daemon stops"))
        expect_stop(p, text + 12);
    else if (*text == '+')
        p->world.now += atol(text + 1) * 1000;
    else if (strcmp(text, "silence") == 0)
        expect_silence(p);
    else if (strcmp(text, "bye") == 0)
        hang_up(p);
    else if (!starts(text, "with "))
        CHECK_STR(text, "a step");
}

static size_t number(const scene *s, const char *name) {
    const char *at = s->count && starts(s->steps[0], "with ") ? strstr(s->steps[0], name) : NULL;
    return at ? (size_t) atol(at + strlen(name)) : 0;
}

/* Two rules, of which one is wrong. */
static const char rules[] =
    "[{\"id\":\"r1\",\"trigger\":{\"type\":\"file.modify\"},\"action\":{\"type\":\"agent\",\"prompt\":\"check "
    "{{payload.path}}\"},\"cooldownMs\":0},{\"id\":\"wrong\",\"trigger\":{\"type\":\"file.modify\"}}]";

static bool has(const scene *s, const char *word) {
    return s->count && starts(s->steps[0], "with ") && strstr(s->steps[0], word);
}

#define CHECKED (-1) /* instead of the allocation that fails: none does, and all results are checked */

static long perform(const scene *s, long fail_at) {
    static play p;
    char row[256];
    test_memory memory;
    test_memory_init(&memory, fail_at == CHECKED ? 0 : fail_at);
    if (fail_at > 0)
        snprintf(row, sizeof row, "%s (failing allocation %ld)", s->title, fail_at);
    else
        snprintf(row, sizeof row, "%s", s->title);
    test_row(row);
    p = (play){.failing = fail_at > 0};
    hub_opts opts = {
        .alloc = &memory.alloc,
        .limits = {.max_running = number(s, "max_running="),
                   .max_queue = number(s, "max_queue="),
                   .retry_ms = (int64_t) number(s, "retry_ms="),
                   .max_turns = number(s, "max_turns="),
                   .max_prompt = number(s, "max_prompt=")},
        .service = {.max_answer = number(s, "max_answer="), .rate_per_minute = (int64_t) number(s, "rate_per_minute=")},
        .rules = has(s, " automation") ? rules : NULL,
        .unchecked = fail_at != CHECKED};
    int r = hub_init(&p.world, &opts);
    p.world.parallel = has(s, " parallel");
    CHECK(r >= 0 || p.failing);
    for (size_t i = 0; r >= 0 && i < s->count; i++)
        step(&p, s->steps[i]);
    for (size_t i = 0; i < p.connection_count; i++) {
        p.speaker = &p.connections[i];
        expect_silence(&p);
        hang_up(&p);
    }
    hub_done(&p.world);
    CHECK_INT(memory.live, 0);
    return memory.count;
}

/* ---- files ---- */

static void play_scene(const scene *s) {
    perform(s, CHECKED);
    long allocations = perform(s, 0);
    for (long n = 1; n <= allocations; n++)
        perform(s, n);
}

TEST(scenes) {
    scene_files("tests/scenes/hub", play_scene);
}

TEST_MAIN(CASE(scenes))

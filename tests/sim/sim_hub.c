/* The hub as the daemon builds it, without sockets: loop on virtual time, store, engine, dialects, clients, and connections
 * that are peers whose bytes the clients move. The only file that knows the interface of the subscribers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub_clients_private.h"
#include "link.h"
#include "loop.h"
#include "sim.h"

#define MAX_CONNS 16
/* 2026-01-01T00:00:00Z: what the wall clock shows at the beginning. */
#define WALL_MS INT64_C(1767225600000)
#define BEGIN_MS 1000
#define SOLO_RUNNING 1 /* of the agent that may run once at a time */

struct hub_conn {
    weft_peer *peer; /* NULL: it has ended */
    void *ctx;
    bool used;
};

typedef enum life { DOWN, STARTING, READY, STOPPING, STOPPED, FAILED } life;

static struct {
    weft_loop *loop;
    int64_t now;
    life life;
    weft_store *store;
    weft_engine *engine;
    weft_service *service;
    weft_dialects *dialects;
    weft_hub hub;
    weft_hub_host host;
    hub_conn conns[MAX_CONNS];
    weft_event_listener listener;
    uint64_t told;        /* the last event that connections were told of */
    bool early;           /* it was ready before it had read the past */
    char asked[SIM_NAME]; /* a task of the past that somebody asked about meanwhile; "": none */
} box;

/* ---- time ---- */

int64_t hub_now(void) {
    return box.now;
}

static int64_t wall_ms(void *ctx) {
    (void) ctx;
    return WALL_MS + box.now;
}

static int64_t steady_ms(void *ctx) {
    (void) ctx;
    return box.now;
}

void hub_move_time(int64_t ms) {
    box.now += ms;
    weft_loop_set_now(box.loop, box.now);
    for (size_t i = 0; i < MAX_CONNS; i++)
        if (box.conns[i].peer && weft_peer_deadline(box.conns[i].peer) <= box.now)
            (void) weft_peer_tick(box.conns[i].peer, box.now);
}

int64_t hub_deadline(void) {
    return weft_loop_deadline(box.loop);
}

static void look_at_the_past(void);

void hub_turn(void) {
    weft_loop_once(box.loop, false);
    look_at_the_past();
}

/* ---- connections ---- */

static void on_drain(weft_peer *peer, void *data) {
    (void) data;
    if (box.hub.clients)
        weft__hub_clients_drain(box.hub.clients, peer);
}

/* The hub ended it. A part of what it had to say may still arrive. */
static void on_free(weft_peer *peer, void *carrier) {
    hub_conn *conn = carrier;
    weft_bytes out = weft_peer_output(peer);
    conn->peer = NULL;
    if (!conn->ctx)
        return;
    sim_saw(SAW_CLOSED);
    client_hear(conn->ctx, out.data, sim_chance(50) ? out.len : sim_below((uint32_t) out.len + 1));
    client_lost(conn->ctx);
    conn->used = false;
}

static int64_t carrier_now(void *carrier) {
    (void) carrier;
    return box.now;
}

static const weft_carrier carrier = {.free = on_free, .now = carrier_now};

static hub_conn *unused_conn(void) {
    for (size_t i = 0; i < MAX_CONNS; i++)
        if (!box.conns[i].used)
            return &box.conns[i];
    return NULL;
}

hub_conn *hub_connect(const char *name, const char *dialect, void *ctx) {
    weft_identity who = {.transport = "mem",
                         .dialect = dialect,
                         .name = name,
                         .scopes = "*",
                         .address = "",
                         .uid = 1000,
                         .pid = 1,
                         .authenticated = true};
    weft_peer_opts opts = {.framing = &weft_ndjson, .identity = &who, .on_drain = on_drain};
    hub_conn *conn = box.life == READY || box.life == STOPPING ? unused_conn() : NULL;
    weft_peer *peer;
    if (!conn || !box.hub.clients || weft_peer_new(box.service, &opts, &peer) < 0)
        return NULL;
    *conn = (hub_conn){.peer = peer, .ctx = ctx, .used = true};
    weft__peer_now(peer, box.now);
    weft__peer_set_carrier(peer, &carrier, conn);
    weft__hub_clients_open(box.hub.clients, peer);
    /* It may have been refused at once. */
    return conn->peer ? conn : NULL;
}

void hub_disconnect(hub_conn *conn) {
    weft_peer *peer = conn->peer;
    conn->ctx = NULL; /* it need not be told */
    if (peer && box.hub.clients)
        weft__hub_clients_close(box.hub.clients, peer);
    weft_peer_free(peer);
    *conn = (hub_conn){0};
}

static bool close_broken(hub_conn *conn, int r) {
    if (r >= 0)
        return true;
    void *ctx = conn->ctx;
    hub_disconnect(conn);
    client_lost(ctx);
    return false;
}

bool hub_feed(hub_conn *conn, const char *data, size_t len) {
    return close_broken(conn, weft_peer_feed(conn->peer, data, len, box.now));
}

/* What was kept unread while the output was full, or behind a request that was open, goes on when that is over. */
static void feed_stalled(hub_conn *conn) {
    if (conn->peer && weft__peer_stalled(conn->peer))
        hub_feed(conn, NULL, 0);
}

size_t hub_take(hub_conn *conn, char *into, size_t max) {
    weft_peer *peer = conn->peer;
    feed_stalled(conn);
    if (conn->peer != peer)
        return 0;
    weft_bytes out = weft_peer_output(peer);
    size_t n = out.len < max ? out.len : max;
    if (!n)
        return 0;
    memcpy(into, out.data, n);
    if (weft_peer_full(peer))
        sim_saw(SAW_FULL);
    weft_peer_sent(peer, n);
    if (conn->peer == peer && weft_peer_deadline(peer) <= box.now)
        close_broken(conn, weft_peer_tick(peer, box.now));
    if (conn->peer != peer)
        return n;
    feed_stalled(conn);
    return n;
}

uint64_t hub_told(void) {
    return box.told;
}

/* ---- starting ---- */

static const weft_agent agent_list[] = {
    {.name = "any", .driver = "sim"},
    {.name = "solo", .driver = "sim", .max_running = SOLO_RUNNING},
    {.name = "free", .driver = "sim", .permission = WEFT_PERMISSION_ALLOW},
    {.name = "odd", .driver = "none"},
    {.name = "live", .driver = "living", .max_turns = 2},
};
static const weft_agents agents = {agent_list, sizeof agent_list / sizeof agent_list[0], "any"};

bool hub_is_open(const char *id) {
    const weft_question *question = weft__question_find(box.engine, id);
    return question && question->state == WEFT_QUESTION_OPEN;
}

const char *hub_session_mode(const char *id) {
    static char mode[16];
    const weft_session *session = box.engine ? weft__session_find(box.engine, id) : NULL;
    weft_doc *doc = NULL;
    if (!session)
        return NULL;
    if (session->settings && weft_doc_parse(session->settings, strlen(session->settings), NULL, &doc) < 0)
        abort();
    snprintf(mode, sizeof mode, "%s", doc ? weft_get_str(weft_doc_root(doc), "mode", "") : "");
    weft_doc_free(doc);
    return mode;
}

bool hub_session_closed(const char *id) {
    const weft_session *session = weft__session_find(box.engine, id);
    return session && session->closed;
}

size_t hub_max_running(const char *agent) {
    return agent && strcmp(agent, "solo") == 0 ? SOLO_RUNNING : sim_now_plan()->max_running;
}

static int64_t uptime(void *ctx) {
    (void) ctx;
    return box.now / 1000;
}

static void stop_asked(void *ctx, bool force) {
    (void) ctx, (void) force;
}

static void on_note(void *ctx, const char *line) {
    (void) ctx;
    sim_say("note    %s", line);
}

static weft_engine_limits limits_of(const sim_plan *plan) {
    return (weft_engine_limits){.max_running = plan->max_running,
                                .max_queue = plan->max_queue,
                                .timeout_ms = plan->timeout_ms,
                                .grace_ms = 500,
                                .idle_ms = plan->idle_ms,
                                .max_idle = 2,
                                .max_turns = 4,
                                .drain_ms = 2000,
                                .question_ms = plan->question_ms,
                                .retry_ms = 100,
                                .again_ms = 200,
                                .lease_ms = 300,
                                .keep_bytes = plan->keep_bytes,
                                .keep_output = plan->keep_output,
                                .past_page = 2};
}

static void on_ready(void *ctx, int r) {
    (void) ctx;
    sim_say("hub     ready: %d", r);
    if (box.life != STARTING)
        return;
    box.life = r < 0 ? FAILED : READY;
    box.early = r >= 0 && weft__engine_past(box.engine) == -EAGAIN;
    if (r >= 0)
        truth_check_engine(false);
    if (box.early)
        sim_saw(SAW_EARLY);
}

/* Whatever has been read by then, what is on the disk is found. */
static void on_asked(void *ctx, int r, const weft_answer *answer) {
    (void) ctx;
    if (r >= 0 && answer->error && answer->error->code != 503 && truth_is_kept(box.asked) && !sim_memory_failed())
        sim_broken("lost task: %s is on the disk, and who asked for it was told: %s", box.asked, answer->error->message);
    if (r >= 0 && !answer->error)
        sim_saw(SAW_EARLY_ASKED);
    *box.asked = '\0';
}

static void ask_for_the_past(void) {
    const weft_identity who = {.transport = "mem", .dialect = "aiwg", .name = "", .scopes = "*", .address = "", .uid = 1000};
    size_t from = truth_tasks() ? sim_below((uint32_t) truth_tasks()) : 0;
    const char *id = truth_tasks() ? truth_task_at(from)->id : "";
    if (weft__engine_past(box.engine) == 0 || !truth_is_kept(id))
        return;
    snprintf(box.asked, sizeof box.asked, "%s", id);
    if (weft_service_call(box.service, &who, "task.get", WEFT_OBJ({"taskId", weft_str(id)}), on_asked, NULL, NULL) < 0)
        *box.asked = '\0';
}

/* All of it has been read. */
static void look_at_the_past(void) {
    if (*box.asked)
        weft_service_deliver(box.service);
    if (!box.early || !box.engine || weft__engine_past(box.engine) != 0)
        return;
    box.early = false;
    truth_check_past();
}

static void start_engine(void) {
    static const weft_driver *const drivers[] = {&sim_driver, &sim_living, NULL};
    char why[WEFT_STORE_WHY];
    const sim_plan *plan = sim_now_plan();
    if (weft__store_open(store_kind(), &(weft_store_opts){.alloc = sim_alloc()}, &box.store, why) < 0)
        abort();
    weft_engine_opts opts = {.loop = box.loop,
                             .store = box.store,
                             .alloc = sim_alloc(),
                             .agents = &agents,
                             .drivers = drivers,
                             .folder = "/srv/project",
                             .early = true,
                             .requeue = plan->requeue,
                             .limits = limits_of(plan),
                             .wall_ms = wall_ms,
                             .steady_ms = steady_ms,
                             .on_note = on_note};
    if (weft__engine_new(&opts, &box.engine) < 0 || weft__engine_start(box.engine, on_ready, NULL) < 0)
        abort();
    box.life = STARTING;
}

static void on_event(weft_event_listener *listener, const weft_event *event, const weft_json *data) {
    (void) listener, (void) data;
    box.told = event->gseq;
}

static void start_clients(void) {
    static const weft_dialect *const dialects[] = {&weft__aiwg, &weft__tinyvex, &weft__hub_methods, NULL};
    box.host = (weft_hub_host){
        .version = "0.0.0", .started_at = "2026-01-01T00:00:00.000Z", .uptime_s = uptime, .stop = stop_asked};
    box.hub =
        (weft_hub){.engine = box.engine, .host = &box.host, .alloc = sim_alloc(), .chunk_bytes = sim_now_plan()->chunk};
    if (weft__dialects_new(dialects, &box.hub, sim_alloc(), &box.dialects) < 0)
        abort();
    weft_service_opts opts = {.methods = weft__dialects_methods(box.dialects),
                              .gates = weft__dialects_gates(box.dialects),
                              .alloc = sim_alloc(),
                              .check_results = true,
                              .limits = {.out_soft = sim_now_plan()->out_soft, .call_timeout_ms = -1}};
    if (weft_service_new(&opts, &box.service) < 0)
        abort();
    box.hub.service = box.service;
    box.listener.on_event = on_event;
    box.told = weft__store_head(box.store);
    weft__engine_listen(box.engine, &box.listener);
    if (weft__hub_clients_new(&box.hub, box.dialects, &box.hub.clients) < 0)
        abort();
    plans_start(box.engine);
    gated_start(box.engine);
    runners_start(box.engine);
    ask_for_the_past();
}

/* ---- ending ---- */

static void drop_conns(void) {
    for (size_t i = 0; i < MAX_CONNS; i++)
        if (box.conns[i].used)
            hub_disconnect(&box.conns[i]);
    clients_cut();
}

static void tear_down(void) {
    drop_conns();
    if (box.hub.clients)
        box.hub.clients = weft__hub_clients_free(box.hub.clients);
    plans_stop();
    gated_stop();
    runners_stop();
    box.engine = weft__engine_free(box.engine);
    driver_killed();
    box.store = weft__store_close(box.store);
    box.service = weft_service_unref(box.service);
    box.early = false;
    box.dialects = weft__dialects_free(box.dialects);
    for (int i = 0; i < 3; i++) /* what is closed is finished by the loop */
        hub_turn();
    box.life = DOWN;
}

void hub_kill(void) {
    if (box.life == DOWN)
        return;
    sim_say("hub     killed");
    if (store_writes())
        sim_saw(SAW_KILL);
    if (box.early)
        sim_saw(SAW_EARLY_KILL);
    store_set_killed(true);
    tear_down();
}

static void on_stopped(void *ctx) {
    (void) ctx;
    sim_say("hub     stopped");
    box.life = STOPPED;
}

void hub_stop(bool force) {
    if (box.life != READY && box.life != STOPPING)
        return;
    sim_say("hub     stops%s", force ? " now" : "");
    box.life = STOPPING;
    if (driver_runs())
        sim_saw(SAW_STOP);
    weft__engine_stop(box.engine, force, on_stopped, NULL);
}

bool hub_tend(void) {
    switch (box.life) {
    case DOWN:
        sim_say("hub     starts");
        start_engine();
        return true;
    case FAILED: /* the daemon would exit and say why; somebody starts it again */
        store_set_killed(true);
        tear_down();
        return true;
    case READY:
        if (box.hub.clients)
            return false;
        start_clients();
        return true;
    case STOPPED:
        tear_down();
        return true;
    default:
        return false;
    }
}

bool hub_is_ready(void) {
    return box.life == READY && box.hub.clients;
}

bool hub_knows_past(void) {
    return weft__engine_past(box.engine) == 0;
}

bool hub_has_heard(uint64_t gseq) {
    return box.hub.clients && box.hub.clients->told >= gseq;
}

bool hub_is_stopping(void) {
    return box.life == STOPPING;
}

bool hub_is_idle(void) {
    return !box.hub.clients || weft__computations_idle(box.hub.clients);
}

/* ---- what is asked of it ---- */

/* Only what agents said: the rest is the engine's, which says again what still matters before it trims. */
void hub_trim(const char *session, uint64_t rows) {
    char stream[sizeof WEFT_STREAM_SESSION + SIM_NAME];
    snprintf(stream, sizeof stream, WEFT_STREAM_SESSION "%s", session);
    if (box.store && box.life == READY)
        (void) weft__store_trim(box.store, &(weft_trim){.stream = stream, .rows = rows}, NULL, NULL);
}

const char *hub_task_state(const char *id) {
    const weft_task *task = box.engine ? weft__task_find(box.engine, id) : NULL;
    return task ? weft__task_states[task->state] : NULL;
}

const char *hub_open_question(size_t n) {
    const weft_question *question = box.engine ? weft__question_first(box.engine, false) : NULL;
    while (question && n-- > 0)
        question = weft__question_next(box.engine, question, false);
    return question ? question->id : NULL;
}

void hub_open(void) {
    memset(&box, 0, sizeof box);
    if (weft_loop_new(sim_alloc(), &box.loop) < 0)
        abort();
    hub_move_time(BEGIN_MS);
}

void hub_close(void) {
    if (box.life != DOWN)
        tear_down();
    box.loop = weft_loop_free(box.loop);
}

/* An agent driver that a test plays: what the engine asks of it is noted on a stage, and the test ends its turns and
 * processes. Everything is static and inline. */
#ifndef LIVING_WORLD_H
#define LIVING_WORLD_H

#include "agent_pool.h"
#include "engine/world.h"

#define MOST 16

struct weft_driver_process {
    const weft_process_host *host;
    void *ctx;
    char task[32]; /* "": it may serve several */
    int sessions, stops, forced;
    bool freed, paused;
};

struct weft_driver_session {
    weft_driver_process *process;
    const weft_session_host *host;
    void *ctx;
    char prompt[32], again[32]; /* the conversation to go on with */
    char settings[128], servers[256], folder[128];
    int prompts, opens, stops, answers;
    bool closed, must_exist;
};

/* Something that was asked of an agent, and waits for the test to answer. */
typedef struct living_request {
    char what[128];
    weft_driver_done *done;
    void *ctx;
} living_request;

static struct {
    weft_driver_process processes[MOST];
    weft_driver_session sessions[MOST];
    int opened, begun, live;
    int refuse; /* prompt() of a session that has had a turn fails so */
    int set_r;  /* set() returns this */
    living_request requests[MOST];
    int asked;
} stage;

static inline int living_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx,
                              weft_driver_process **ret) {
    if (stage.opened == MOST)
        return -ENOSPC;
    weft_driver_process *process = &stage.processes[stage.opened++];
    *process = (weft_driver_process){.host = host, .ctx = ctx};
    snprintf(process->task, sizeof process->task, "%s", spec->task ? spec->task : "");
    stage.live++;
    *ret = process;
    return 0;
}

static inline int living_session(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host,
                                 void *ctx, weft_driver_session **ret) {
    if (stage.begun == MOST)
        return -ENOSPC;
    weft_driver_session *session = &stage.sessions[stage.begun++];
    *session = (weft_driver_session){.process = process, .host = host, .ctx = ctx};
    snprintf(session->again, sizeof session->again, "%s", spec->agent_session ? spec->agent_session : "");
    snprintf(session->folder, sizeof session->folder, "%s", spec->folder);
    if (spec->settings)
        snprintf(session->settings, sizeof session->settings, "%.*s", (int) spec->settings->len, spec->settings->text);
    if (spec->mcp_servers)
        snprintf(session->servers, sizeof session->servers, "%.*s", (int) spec->mcp_servers->len, spec->mcp_servers->text);
    session->must_exist = spec->must_exist;
    process->sessions++;
    *ret = session;
    return 0;
}

static inline int living_prompt(weft_driver_session *session, const weft_turn_spec *spec) {
    if (stage.refuse && session->prompts)
        return stage.refuse;
    if (!spec->prompt) {
        session->opens++;
        return 0;
    }
    session->prompts++;
    snprintf(session->prompt, sizeof session->prompt, "%s", spec->prompt);
    return 0;
}

static inline int living_ask(const char *verb, const char *what, weft_driver_done *done, void *ctx) {
    if (stage.asked == MOST)
        return -EBUSY;
    living_request *made = &stage.requests[stage.asked++];
    *made = (living_request){.done = done, .ctx = ctx};
    snprintf(made->what, sizeof made->what, "%s %s", verb, what);
    return 0;
}

static inline int living_set(weft_driver_session *session, const weft_session_setting *setting, weft_driver_done *done,
                             void *ctx) {
    CHECK(!session->closed);
    if (stage.set_r)
        return stage.set_r;
    return living_ask(setting->name, weft_str_of(&setting->value, ""), done, ctx);
}

static inline int living_list(weft_driver_process *process, const char *folder, const char *cursor, weft_driver_done *done,
                              void *ctx) {
    (void) process, (void) cursor;
    return living_ask("list", folder ? folder : "", done, ctx);
}

static inline int living_remove(weft_driver_process *process, const char *agent_session, weft_driver_done *done, void *ctx) {
    (void) process;
    return living_ask("remove", agent_session, done, ctx);
}

static inline int living_answer(weft_driver_session *session, const char *key, const char *option) {
    (void) key, (void) option;
    session->answers++;
    return 0;
}

static inline void living_stop(weft_driver_process *process, weft_driver_session *session, bool force) {
    (session ? &session->stops : &process->stops)[0]++;
    process->forced += force;
}

static inline void living_pause(weft_driver_process *process, bool paused) {
    process->paused = paused;
}

static inline weft_driver_session *living_close(weft_driver_session *session) {
    CHECK(!session->closed);
    session->closed = true;
    return NULL;
}

static inline weft_driver_process *living_free(weft_driver_process *process) {
    CHECK(!process->freed);
    process->freed = true;
    stage.live--;
    return NULL;
}

static const weft_driver living = {
    .name = "living",
    .open = living_open,
    .session = living_session,
    .prompt = living_prompt,
    .answer = living_answer,
    .stop = living_stop,
    .set = living_set,
    .list = living_list,
    .remove = living_remove,
    .pause = living_pause,
    .close = living_close,
    .free = living_free,
};
static const weft_driver *const drivers[] = {&living, NULL};

static const char *const argv_old[] = {"agent", "old", NULL}, *const argv_new[] = {"agent", "new", NULL};
static const weft_agent agents_list[] = {
    {.name = "one", .driver = "living", .argv = argv_old},
    {.name = "shared", .driver = "living", .argv = argv_old, .max_turns = 2},
    {.name = "brief", .driver = "living", .argv = argv_old, .idle_ms = -1},
};
static const weft_agents agents = {agents_list, 3, "one"};

/* ---- playing it ---- */

static inline void begin(engine_world *w, weft_engine_limits limits) {
    memset(&stage, 0, sizeof stage);
    engine_open(w, play_store());
    w->opts.drivers = drivers;
    w->opts.agents = &agents;
    w->opts.limits = limits;
    CHECK_INT(world_start(w), 0);
}

static inline void finish(engine_world *w) {
    engine_end(w);
    CHECK_INT(stage.live, 0);
}

/* The session that has this prompt. */
static inline weft_driver_session *turn_of(const char *prompt) {
    for (int i = stage.begun; i-- > 0;)
        if (strcmp(stage.sessions[i].prompt, prompt) == 0)
            return &stage.sessions[i];
    return NULL;
}

static inline void run(engine_world *w, const char *agent, const char *session, const char *prompt, task_outcome *ret) {
    *ret = (task_outcome){0};
    CHECK_INT(submit_spec(w, &(weft_task_spec){.prompt = prompt, .agent = agent, .session = session}, ret), 0);
    ENGINE_UNTIL(w, turn_of(prompt) != NULL);
}

static inline void end_turn(weft_driver_session *session, const char *reason) {
    session->host->on_turn_end(
        session->ctx,
        &(weft_turn_end){
            .ok = !reason, .reason = reason, .error = reason, .exit_code = -1, .stop_reason = reason ? NULL : "end_turn"});
}

static inline void end_process(weft_driver_process *process, int exit_code) {
    process->host->on_end(process->ctx, exit_code, 0);
}

static inline void complete(engine_world *w, const char *prompt, const char *id) {
    end_turn(turn_of(prompt), NULL);
    ENGINE_UNTIL(w, state_of(w, id) == WEFT_TASK_COMPLETED);
}

#endif

/* weft __demo: the demo agent, an ACP v1 agent on stdin and stdout. This file has its sessions and its methods; what a turn
 * does is in demo_turn.c. It is started by the driver "demo", and by anything else that can start an ACP agent. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "app.h"
#include "demo.h"

/* The only version we speak; another is never promised. */
#define PROTOCOL 1
/* One conversation is usual. Sessions have no end in ACP, so that there is a limit. */
#define MOST_SESSIONS 256
/* ACP: a session, or a file, that is not there. */
#define NOT_FOUND (-32002)

typedef struct agent {
    weft_loop *loop;
    weft_service *service;
    weft_server *server;
    weft_demo_session *sessions;
    size_t session_count;
} agent;

/* ---- modes ---- */

static const struct {
    const char *id, *name, *description;
} modes[] = {
    {"ask", "Ask", "Asks before it changes a file"},
    {"allow", "Allow", "Changes its own file without asking"},
    {"plan", "Plan", "Changes nothing"},
};
#define MODES (sizeof modes / sizeof modes[0])

/* What a session that was opened is answered with. */
static int reply_open(weft_req *req, const weft_demo_session *session, bool named) {
    weft_member members[MODES][3];
    weft_val all[MODES];
    for (size_t i = 0; i < MODES; i++) {
        members[i][0] = (weft_member){"id", weft_str(modes[i].id)};
        members[i][1] = (weft_member){"name", weft_str(modes[i].name)};
        members[i][2] = (weft_member){"description", weft_str(modes[i].description)};
        all[i] = weft_obj(members[i], 3);
    }
    return weft_reply(req, WEFT_OBJ({"sessionId", named ? weft_str(session->id) : weft_none()},
                                    {"modes", WEFT_OBJ({"currentModeId", weft_str(session->mode)},
                                                       {"availableModes", weft_arr(all, MODES)})}));
}

/* ---- sessions ---- */

static weft_demo_session *find_demo_session(const agent *self, const char *id) {
    for (weft_demo_session *session = self->sessions; session; session = session->next)
        if (strcmp(session->id, id) == 0)
            return session;
    return NULL;
}

static weft_demo_session *free_session(weft_demo_session *session) {
    if (session)
        free(session->folder);
    free(session);
    return NULL;
}

static weft_demo_session *make_session(const char *folder) {
    weft_demo_session *session = calloc(1, sizeof *session);
    if (session) {
        session->folder = strdup(folder);
        session->mode = modes[0].id;
    }
    return session && session->folder ? session : free_session(session);
}

static void keep_session(agent *self, weft_demo_session *session) {
    session->next = self->sessions;
    self->sessions = session;
    self->session_count++;
}

static int name_session(weft_demo_session *session) {
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t) sizeof number)
        return -EIO;
    snprintf(session->id, sizeof session->id, "demo-%016llx", (unsigned long long) number);
    return 0;
}

static int refuse_session(weft_req *req, const char *id) {
    return weft_fail(req, NOT_FOUND, "Session not found", WEFT_OBJ({"sessionId", weft_str(id)}));
}

/* ---- initialize ---- */

struct initialize {
    int64_t protocolVersion;
};
static const weft_param initialize_params[] = {
    WEFT_MUST(struct initialize, protocolVersion, int, "the newest version that the client speaks"),
    {0},
};

static int demo_initialize(weft_req *req, const weft_json *params, void *ctx) {
    struct initialize asked = {0};
    (void) ctx;
    int r = weft_bind(req, initialize_params, params, &asked);
    if (r < 0)
        return r;
    bool keeps = weft__demo_history_works();
    weft_val prompt =
        WEFT_OBJ({"image", weft_bool(false)}, {"audio", weft_bool(false)}, {"embeddedContext", weft_bool(true)});
    weft_val mcp = WEFT_OBJ({"http", weft_bool(false)}, {"sse", weft_bool(false)});
    weft_val kept = keeps ? weft_obj(NULL, 0) : weft_none();
    weft_val session = WEFT_OBJ({"resume", kept}, {"list", kept}, {"delete", kept}, {"close", weft_obj(NULL, 0)});
    return weft_reply(
        req, WEFT_OBJ({"protocolVersion", weft_int(PROTOCOL)},
                      {"agentCapabilities", WEFT_OBJ({"loadSession", weft_bool(keeps)}, {"promptCapabilities", prompt},
                                                     {"mcpCapabilities", mcp}, {"sessionCapabilities", session})},
                      {"agentInfo", WEFT_OBJ({"name", weft_str("weft-demo")}, {"title", weft_str("Weft's demo agent")},
                                             {"version", weft_str(WEFT_VERSION)})},
                      {"authMethods", weft_arr(NULL, 0)}));
}

/* ---- session/new, session/load, session/resume ---- */

struct open {
    const char *sessionId;
    const char *cwd;
    weft_json mcpServers;
};
static const weft_param new_params[] = {
    WEFT_MUST(struct open, cwd, str, "where to work; absolute"),
    WEFT_MUST(struct open, mcpServers, arr, "accepted, and not used"),
    {0},
};
static const weft_param load_params[] = {
    WEFT_MUST(struct open, sessionId, str, "as session/new named it"),
    WEFT_MUST(struct open, cwd, str, "where to work; absolute"),
    WEFT_MUST(struct open, mcpServers, arr, "accepted, and not used"),
    {0},
};
static const weft_param resume_params[] = {
    WEFT_MUST(struct open, sessionId, str, "as session/new named it"),
    WEFT_MUST(struct open, cwd, str, "where to work; absolute"),
    WEFT_MAY(struct open, mcpServers, arr, "accepted, and not used"),
    {0},
};

/* 1 go on; otherwise it was answered, and this is what the handler returns. */
static int bind_open(agent *self, weft_req *req, const weft_param *table, const weft_json *params, struct open *ret) {
    int r = weft_bind(req, table, params, ret);
    if (r < 0)
        return r;
    if (ret->cwd[0] != '/')
        return weft_refuse(req, WEFT_INVALID_PARAMS, "cwd must be an absolute path", "invalidParams");
    if (self->session_count >= MOST_SESSIONS)
        return weft_fail(req, WEFT_INTERNAL_ERROR, "Too many sessions", weft_none());
    return 1;
}

static int session_new(weft_req *req, const weft_json *params, void *ctx) {
    agent *self = ctx;
    struct open asked = {0};
    int r = bind_open(self, req, new_params, params, &asked);
    if (r <= 0)
        return r;
    weft_demo_session *session = make_session(asked.cwd);
    if (!session)
        return -ENOMEM;
    r = name_session(session);
    if (r < 0) {
        free_session(session);
        return r;
    }
    keep_session(self, session);
    weft__demo_history_begin(session);
    return reply_open(req, session, true);
}

typedef struct replay {
    weft_peer *peer;
    const char *session;
} replay;

static void on_history(void *ctx, const weft_json *update) {
    const replay *to = ctx;
    weft__demo_update(to->peer, to->session, weft_copy(update));
}

/* Replays what there was, for load, before the answer (ACP); for resume nothing. */
static int reopen_demo_session(agent *self, weft_req *req, const struct open *asked, bool replays) {
    replay to = {weft_req_peer(req), asked->sessionId};
    weft_demo_session *session = make_session(asked->cwd);
    if (!session)
        return -ENOMEM;
    snprintf(session->id, sizeof session->id, "%s", asked->sessionId);
    int r = find_demo_session(self, asked->sessionId) ? -EBUSY
                                                      : weft__demo_history_read(session, replays ? on_history : NULL, &to);
    if (r == 0) {
        keep_session(self, session);
        return reply_open(req, session, false);
    }
    free_session(session);
    if (r == -EBUSY)
        return weft_fail(req, WEFT_INVALID_REQUEST, "This session is open already", weft_none());
    return refuse_session(req, asked->sessionId);
}

static int session_load(weft_req *req, const weft_json *params, void *ctx) {
    struct open asked = {0};
    int r = bind_open(ctx, req, load_params, params, &asked);
    return r <= 0 ? r : reopen_demo_session(ctx, req, &asked, true);
}

static int session_resume(weft_req *req, const weft_json *params, void *ctx) {
    struct open asked = {0};
    int r = bind_open(ctx, req, resume_params, params, &asked);
    return r <= 0 ? r : reopen_demo_session(ctx, req, &asked, false);
}

/* ---- session/prompt, session/cancel ---- */

struct prompt {
    const char *sessionId;
    weft_json prompt;
};
static const weft_param prompt_params[] = {
    WEFT_MUST(struct prompt, sessionId, str, "as session/new named it"),
    WEFT_MUST(struct prompt, prompt, arr, "content blocks; only text counts"),
    {0},
};

/* The text of all blocks that have some, one below the other. Owned; NULL: out of memory. */
static char *join_text(const weft_json *blocks) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        return NULL;
    for (weft_iter it = weft_iterate(blocks); weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "type", ""), "text") == 0)
            fprintf(out, "%s%s", ftell(out) > 0 ? "\n" : "", weft_get_str(&it.value, "text", ""));
    return fclose(out) == 0 ? text : (free(text), NULL);
}

static int session_prompt(weft_req *req, const weft_json *params, void *ctx) {
    agent *self = ctx;
    struct prompt asked = {0};
    int r = weft_bind(req, prompt_params, params, &asked);
    if (r < 0)
        return r;
    weft_demo_session *session = find_demo_session(self, asked.sessionId);
    if (!session)
        return refuse_session(req, asked.sessionId);
    if (session->turn)
        return weft_fail(req, WEFT_INVALID_REQUEST, "The session's last turn has not ended yet", weft_none());
    if (weft_req_is_notification(req))
        return 0;
    char *text = join_text(&asked.prompt);
    return text ? weft__demo_turn_start(self->loop, session, text, req) : -ENOMEM;
}

static int session_cancel(weft_req *req, const weft_json *params, void *ctx) {
    weft_demo_session *session = find_demo_session(ctx, weft_get_str(params, "sessionId", ""));
    if (session && session->turn)
        weft__demo_turn_cancel(session->turn);
    return weft_reply(req, weft_null());
}

/* ---- session/set_mode ---- */

static int session_set_mode(weft_req *req, const weft_json *params, void *ctx) {
    const char *id = weft_get_str(params, "sessionId", ""), *mode = weft_get_str(params, "modeId", "");
    weft_demo_session *session = find_demo_session(ctx, id);
    if (!session)
        return refuse_session(req, id);
    for (size_t i = 0; i < MODES; i++)
        if (strcmp(modes[i].id, mode) == 0) {
            session->mode = modes[i].id;
            return weft_reply(req, weft_obj(NULL, 0));
        }
    return weft_refuse(req, WEFT_INVALID_PARAMS, "There is no such mode", "invalidParams");
}

/* ---- session/list, session/delete ---- */

struct listing {
    const char *cwd; /* NULL: in any folder */
    FILE *out;
    size_t count;
};

static void list_one(void *ctx, const char *id, const char *folder, const char *title, int64_t changed_s) {
    struct listing *listing = ctx;
    char when[32], *text;
    size_t len;
    time_t at = (time_t) changed_s;
    struct tm parts;
    if (!*folder || (listing->cwd && strcmp(listing->cwd, folder) != 0) || !gmtime_r(&at, &parts))
        return;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (weft_to_text(WEFT_OBJ({"sessionId", weft_str(id)}, {"cwd", weft_str(folder)},
                              {"title", *title ? weft_str(title) : weft_none()}, {"updatedAt", weft_str(when)}),
                     NULL, &text, &len) < 0)
        return;
    fprintf(listing->out, "%s%.*s", listing->count++ ? "," : "", (int) len, text);
    weft_text_free(text, NULL);
}

static int session_list(weft_req *req, const weft_json *params, void *ctx) {
    char *text = NULL;
    size_t len = 0;
    struct listing listing = {.cwd = weft_get_str(params, "cwd", NULL), .out = open_memstream(&text, &len)};
    (void) ctx;
    if (!listing.out)
        return -ENOMEM;
    weft__demo_history_each(list_one, &listing);
    if (fclose(listing.out) != 0) {
        free(text);
        return -ENOMEM;
    }
    char *all;
    int n = asprintf(&all, "[%s]", text);
    free(text);
    if (n < 0)
        return -ENOMEM;
    int r = weft_reply(req, WEFT_OBJ({"sessions", weft_raw(all, (size_t) n)}));
    free(all);
    return r;
}

static int session_delete(weft_req *req, const weft_json *params, void *ctx) {
    const char *id = weft_get_str(params, "sessionId", "");
    if (find_demo_session(ctx, id))
        return weft_fail(req, WEFT_INVALID_REQUEST, "This session is open", weft_none());
    return weft__demo_history_delete(id) < 0 ? refuse_session(req, id) : weft_reply(req, weft_obj(NULL, 0));
}

/* ---- session/close ---- */

/* A turn that runs is cancelled. */
static int session_close(weft_req *req, const weft_json *params, void *ctx) {
    agent *self = ctx;
    const char *id = weft_get_str(params, "sessionId", "");
    weft_demo_session **at = &self->sessions;
    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    weft_demo_session *session = *at;
    if (!session)
        return refuse_session(req, id);
    if (session->turn)
        weft__demo_turn_cancel(session->turn);
    *at = session->next;
    self->session_count--;
    free_session(session);
    return weft_reply(req, weft_obj(NULL, 0));
}

/* ---- the connection ---- */

/* Nobody is left to hear the rest. */
static bool on_demo_eof(weft_peer *peer, void *data) {
    (void) peer;
    for (weft_demo_session *session = ((agent *) data)->sessions; session; session = session->next)
        if (session->turn)
            weft__demo_turn_cancel(session->turn);
    return false;
}

static void on_demo_drain(weft_server *server, weft_peer *peer, void *data) {
    (void) server, (void) peer;
    for (weft_demo_session *session = ((agent *) data)->sessions; session; session = session->next)
        if (session->turn)
            weft__demo_turn_resume(session->turn);
}

static const weft_method methods[] = {
    {.name = "initialize", .handler = demo_initialize, .params = initialize_params},
    {.name = "session/new", .handler = session_new, .params = new_params},
    {.name = "session/load", .handler = session_load, .params = load_params},
    {.name = "session/resume", .handler = session_resume, .params = resume_params},
    {.name = "session/prompt", .handler = session_prompt, .params = prompt_params},
    {.name = "session/cancel", .handler = session_cancel},
    {.name = "session/set_mode", .handler = session_set_mode},
    {.name = "session/list", .handler = session_list},
    {.name = "session/delete", .handler = session_delete},
    {.name = "session/close", .handler = session_close},
    {0},
};

static int open_agent(agent *self) {
    int r = weft_loop_new(NULL, &self->loop);
    if (r >= 0)
        r = weft_service_new(&(weft_service_opts){.methods = methods, .ctx = self, .title = "Weft's demo agent"},
                             &self->service);
    weft_server_opts opts = {.service = self->service, .data = self, .on_eof = on_demo_eof, .on_drain = on_demo_drain};
    if (r >= 0)
        r = weft_server_new(self->loop, &opts, &self->server);
    if (r >= 0)
        r = weft_server_listen(self->server, "stdio:", &(weft_listen_opts){.style = WEFT_STYLE_ACP, .no_batch = true});
    return r;
}

static void close_agent(agent *self) {
    weft_server_free(self->server);
    weft_service_unref(self->service);
    weft_loop_free(self->loop);
    for (weft_demo_session *session = self->sessions, *next; session; session = next) {
        next = session->next;
        free_session(session);
    }
}

static int put_demo_help(void) {
    printf("weft __demo: Weft's demo agent. It speaks ACP v1 on standard input and output, with no model behind it.\n"
           "The first words of a prompt say what it does:\n\n%s",
           weft__demo_words);
    return WEFT_DONE;
}

int weft__demo_main(int argc, char **argv) {
    agent self = {0};
    if (argc > 1)
        return strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0 ? put_demo_help() : WEFT_USAGE;
    int r = open_agent(&self);
    if (r >= 0)
        r = weft_loop_run(self.loop);
    else
        fprintf(stderr, "weft __demo: %s\n", weft_strerror(r));
    close_agent(&self);
    return r < 0 ? WEFT_FAILED : WEFT_DONE;
}

/* The life of sessions in ACP's words: new, load, resume, list, close, delete, and what is set in them.
 *
 * A session belongs to the hub, not to a connection: it survives both. session/new makes one and opens it at its agent, so
 * that its modes and options are known; load tells all that was said in it, resume only what was missed, and both go on with
 * what happens. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acp.h"
#include "alloc.h"
#include "reply.h"
#include "utf8.h"
#include "write.h"

/* Sessions of one page of session/list. */
#define PAGE 100
/* Bytes of a prompt that stand for a title. */
#define TITLE 80
/* Longer than any id of a session. */
#define SESSION_ID 64

int weft__acp_no_session(weft_req *req, const char *id) {
    return weft__reply_error(req, ACP_NOT_FOUND, "sessionNotFound", "Session not found: %.200s", id);
}

weft_hub_client *weft__acp_client_of(const weft_hub *hub, weft_req *req) {
    weft_peer *peer = req ? weft_req_peer(req) : NULL;
    return peer ? weft__hub_client_of(hub->clients, peer) : NULL;
}

/* ---- what is known of one ---- */

static weft_val raw_text_or_none(const char *json) {
    return json ? weft_raw(json, strlen(json)) : weft_none();
}

/* {currentModeId, availableModes}: which modes there are was said when it was opened, which one it is may have been said
 * later. As it was said, or without what no client could show. */
struct modes {
    weft_doc *doc;
    weft_buf fitted;
    weft_member members[2];
};

static weft_val session_modes(const weft_hub *hub, const weft_session *session, struct modes *ret) {
    const char *all = session->facts[WEFT_SESSION_MODES], *current = session->facts[WEFT_SESSION_MODE];
    *ret = (struct modes){0};
    if (!all || weft_doc_parse(all, strlen(all), hub->alloc, &ret->doc) < 0)
        return weft_none();
    weft_json id = weft_get(weft_doc_root(ret->doc), "currentModeId");
    weft_json list = weft_get(weft_doc_root(ret->doc), "availableModes");
    int r = list.text ? weft__acp_fit_value(ACP_FIT_MODES, &list, hub->alloc, &ret->fitted) : -EBADMSG;
    ret->members[0] = (weft_member){"currentModeId", current ? raw_text_or_none(current) : weft_copy(&id)};
    ret->members[1] = (weft_member){
        "availableModes", r > 0 ? weft_raw(weft__buf_head(&ret->fitted), weft__buf_len(&ret->fitted)) : weft_copy(&list)};
    return weft_typeof(&id) == WEFT_STRING && r >= 0 ? weft_obj(ret->members, 2) : weft_none();
}

static void free_modes(const weft_hub *hub, struct modes *modes) {
    weft_doc_free(modes->doc);
    weft__buf_done(&modes->fitted, hub->alloc);
}

/* Which of its options this client can show. r < 0: there is nothing to say of them. */
struct options {
    weft_doc *doc;
    weft_buf fitted;
};

static weft_val session_options(const weft_hub *hub, weft_req *req, const char *known, struct options *ret) {
    weft_hub_client *client = weft__acp_client_of(hub, req);
    bool flags = client && (weft__hub_client_flags(client) & ACP_EDITOR_FLAGS);
    *ret = (struct options){0};
    if (!known || weft_doc_parse(known, strlen(known), hub->alloc, &ret->doc) < 0)
        return weft_none();
    int r = weft__acp_fit_value(flags ? "config_option_update" : ACP_FIT_SELECTS, weft_doc_root(ret->doc), hub->alloc,
                                &ret->fitted);
    return r < 0   ? weft_none()
           : r > 0 ? weft_raw(weft__buf_head(&ret->fitted), weft__buf_len(&ret->fitted))
                   : weft_raw(known, strlen(known));
}

static void free_options(const weft_hub *hub, struct options *options) {
    weft_doc_free(options->doc);
    weft__buf_done(&options->fitted, hub->alloc);
}

/* For who is told positions: everything up to here has been. */
static weft_val position_now(const weft_hub *hub, const weft_hub_client *client, char text[ACP_POSITION]) {
    weft_store *store = weft__engine_store(hub->engine);
    if (!client || weft__hub_client_form(client, "acp") != ACP_POSITIONS)
        return weft_none();
    snprintf(text, ACP_POSITION, "%s:%" PRIu64, weft__store_epoch(store), weft__hub_clients_told(hub->clients));
    return weft_str(text);
}

/* with_id: the caller does not know it yet. gap: why what it missed cannot be told; NULL: it was. */
static int reply_session(weft_req *req, const weft_hub *hub, const weft_session *session, bool with_id, const char *gap) {
    struct modes modes;
    struct options options;
    char position[ACP_POSITION];
    weft_hub_client *client = weft__acp_client_of(hub, req);
    weft_val at = position_now(hub, client, position);
    weft_val about = WEFT_OBJ({"weft/resumed", gap ? weft_bool(false) : weft_none()}, {"weft/reason", weft_str_or_none(gap)},
                              {ACP_META_POSITION, at});
    weft_val meta = gap || at.kind ? about : weft_none();
    weft_val found = session_modes(hub, session, &modes),
             offered = session_options(hub, req, session->facts[WEFT_SESSION_OPTIONS], &options);
    int r = weft__acp_reply(hub, req,
                            WEFT_OBJ({"sessionId", with_id ? weft_str(session->id) : weft_none()}, {"modes", found},
                                     {"configOptions", offered}, {"_meta", meta}));
    free_modes(hub, &modes);
    free_options(hub, &options);
    if (r >= 0 && client)
        weft__acp_tell_commands(hub, client, session);
    return r;
}

/* ---- where it may be, and what it may start ---- */

static int refuse_exec(weft_req *req, const char *what) {
    return weft__reply_error(req, 403, "forbidden", "To name %s the scope exec is needed", what);
}

static bool is_given(const weft_json *list) {
    return weft_typeof(list) == WEFT_ARRAY && weft_count(list) > 0;
}

/* The current form must say it, the older one may: <0 after an answer. */
static int check_given(weft_req *req, const weft_hub *hub, bool given, const char *path) {
    if (given || weft__acp_is_old(hub, req))
        return 0;
    return weft__reply_invalid(req, path, "%s is missing", path + 1), -EINVAL;
}

/* <0 after an answer. What the folder is, is for the engine to check. */
static int check_place(weft_req *req, const weft_hub *hub, const char *cwd, const weft_json *servers,
                       const weft_json *more) {
    bool may_choose = weft_has_scope(weft_req_identity(req), "exec"); /* a person at the Unix socket has every scope */
    if (cwd && *cwd != '/')
        return weft__reply_invalid(req, "/cwd", "cwd must be an absolute path"), -EINVAL;
    if (is_given(more))
        return weft__reply_invalid(req, "/additionalDirectories", "a session has one folder"), -EINVAL;
    if (!may_choose && cwd && strcmp(cwd, weft__engine_folder(hub->engine)) != 0)
        return refuse_exec(req, "another folder"), -EACCES;
    if (!may_choose && is_given(servers))
        return refuse_exec(req, "MCP servers"), -EACCES;
    const char *wrong = is_given(servers) && !weft__acp_is_old(hub, req) ? weft__acp_wrong_servers(servers) : NULL;
    return wrong ? weft__reply_invalid(req, "/mcpServers", "%s", wrong), -EINVAL : 0;
}

/* ---- session/new ---- */

struct new_params {
    const char *cwd;
    weft_json mcpServers, additionalDirectories;
    const char *mode_id;
};
const weft_param weft__acp_new_params[] = {
    WEFT_MUST(struct new_params, cwd, str, "the folder to work in: the hub's, or one beneath it"),
    WEFT_MAY(struct new_params, mcpServers, arr, "MCP servers for the agent; may be empty, must be there"),
    WEFT_ALSO(struct new_params, mcpServers, arr, "mcp_servers"),
    WEFT_MAY(struct new_params, additionalDirectories, arr, "not supported: must be empty"),
    WEFT_ALSO(struct new_params, additionalDirectories, arr, "additional_directories"),
    {"mode_id", WEFT_PARAM_str, offsetof(struct new_params, mode_id), WEFT_NULLABLE, "in the older form: which agent"},
    WEFT_END(struct new_params),
};

/* Where a client begins to hear of a session. */
struct place {
    bool live;
    bool whole;                 /* everything that was said in it */
    char epoch[WEFT_EPOCH + 1]; /* "": this one */
    uint64_t after;
};

/* A request about a session that is being seen to. */
struct opening {
    const weft_hub *hub;
    weft_req *req;
    struct place place;
    bool knew; /* it followed the session before */
    char session[SESSION_ID];
};

static struct opening *new_opening(const weft_hub *hub, weft_req *req, const char *session) {
    struct opening *opening = weft__zalloc(hub->alloc, sizeof *opening);
    if (!opening)
        return NULL;
    *opening = (struct opening){.hub = hub, .req = weft__req_keep(req)};
    snprintf(opening->session, sizeof opening->session, "%s", session);
    return opening;
}

static void free_opening(struct opening *opening) {
    weft__free(opening->hub->alloc, opening);
}

static void answer_new(struct opening *opening) {
    const weft_session *session = weft__session_find(opening->hub->engine, opening->session);
    weft_hub_client *client = weft__acp_client_of(opening->hub, opening->req);
    int r = session && client ? weft__acp_follow(client, session->id) : 0;
    if (!session)
        weft__acp_no_session(opening->req, opening->session);
    else if (r < 0)
        weft__reply_failure(opening->req, r);
    else
        reply_session(opening->req, opening->hub, session, true, NULL);
    free_opening(opening);
}

/* An agent that cannot be opened now is no reason to refuse the session: its first prompt says what is wrong. */
static void on_agent_open(void *ctx, int r, const weft_session *session, const char *error) {
    (void) r, (void) session, (void) error;
    answer_new(ctx);
}

static int refuse_order(weft_req *req, const weft_hub *hub, const char *agent, int r, const char *error) {
    switch (r) {
    case -ENOENT:
        return weft__reply_no_agent(req, hub, WEFT_INVALID_PARAMS, "agentNotConfigured", "/_meta/weft~1agent", agent);
    case -EXDEV:
    case -ELOOP:
        return weft__reply_invalid(req, "/cwd", "the folder must lie in %s", weft__engine_folder(hub->engine));
    case -ENOTDIR:
    case -EACCES:
    case -ENAMETOOLONG:
        return weft__reply_invalid(req, "/cwd", "there is no such folder");
    case -EINVAL:
    case -EMSGSIZE:
        return weft__reply_invalid(req, "/mcpServers", "these are no MCP servers, or too many");
    case -EOPNOTSUPP:
        return weft__reply_invalid(req, "/mcpServers", "%s", error ? error : "this agent takes no MCP servers");
    default:
        return weft__reply_failure(req, r);
    }
}

static void on_created(void *ctx, int r, const weft_session *session, const char *error) {
    struct opening *opening = ctx;
    if (r < 0) {
        refuse_order(opening->req, opening->hub, "", r, error);
        free_opening(opening);
        return;
    }
    snprintf(opening->session, sizeof opening->session, "%s", session->id);
    if (weft__session_open(opening->hub->engine, session->id, on_agent_open, opening) < 0)
        answer_new(opening);
}

static int create_session(weft_req *req, const weft_hub *hub, const weft_session_order *order) {
    struct opening *opening = new_opening(hub, req, "");
    if (!opening)
        return -ENOMEM;
    int r = weft__session_create(hub->engine, order, on_created, opening);
    if (r >= 0)
        return 0;
    free_opening(opening);
    return refuse_order(weft__req_keep(req), hub, order->agent ? order->agent : "", r, NULL);
}

/* What tinyvex's clients call a mode of a new session is an agent; one of them has another name here. */
static const char *agent_of_mode(const weft_hub *hub, const char *mode) {
    bool known = weft__agent_find(weft__engine_agents(hub->engine), mode);
    return !known && strcmp(mode, "claude-code") == 0 ? "claude" : mode;
}

int weft__acp_on_new(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct new_params *in = weft_req_params(req);
    weft_hub_client *client = weft__acp_client_of(hub, req);
    weft_json named = weft_req_meta(req, ACP_META_AGENT);
    const char *usual = client ? weft__hub_client_agent(client) : NULL;
    const char *agent =
        weft_str_of(&named, weft__acp_is_old(hub, req) && in->mode_id ? agent_of_mode(hub, in->mode_id) : usual);
    (void) params;
    if (check_given(req, hub, in->mcpServers.text, "/mcpServers") < 0 ||
        check_place(req, hub, in->cwd, &in->mcpServers, &in->additionalDirectories) < 0)
        return 0;
    char *servers = is_given(&in->mcpServers) ? weft__strndup(hub->alloc, in->mcpServers.text, in->mcpServers.len) : NULL;
    if (is_given(&in->mcpServers) && !servers)
        return -ENOMEM;
    bool at_root = strcmp(in->cwd, weft__engine_folder(hub->engine)) == 0;
    weft_session_order order = {.agent = agent, .folder = at_root ? NULL : in->cwd, .servers = servers};
    int r = create_session(req, hub, &order);
    weft__free(hub->alloc, servers);
    return r;
}

/* ---- session/load, session/resume ---- */

struct load_params {
    const char *sessionId, *cwd;
    weft_json mcpServers, additionalDirectories;
};
const weft_param weft__acp_load_params[] = {
    WEFT_MUST(struct load_params, sessionId, str, "the session"),
    WEFT_ALSO(struct load_params, sessionId, str, "session_id"),
    WEFT_MAY(struct load_params, cwd, str, "the folder it is in; must be there"),
    WEFT_MAY(struct load_params, mcpServers, arr, "MCP servers for the agent; empty: those that it has; must be there"),
    WEFT_ALSO(struct load_params, mcpServers, arr, "mcp_servers"),
    WEFT_MAY(struct load_params, additionalDirectories, arr, "not supported: must be empty"),
    WEFT_ALSO(struct load_params, additionalDirectories, arr, "additional_directories"),
    WEFT_END(struct load_params),
};
const weft_param weft__acp_resume_params[] = {
    WEFT_MUST(struct load_params, sessionId, str, "the session"),
    WEFT_ALSO(struct load_params, sessionId, str, "session_id"),
    WEFT_MAY(struct load_params, cwd, str, "the folder it is in; must be there"),
    WEFT_MAY(struct load_params, mcpServers, arr, "MCP servers for the agent; empty or absent: those that it has"),
    WEFT_ALSO(struct load_params, mcpServers, arr, "mcp_servers"),
    WEFT_MAY(struct load_params, additionalDirectories, arr, "not supported: must be empty"),
    WEFT_ALSO(struct load_params, additionalDirectories, arr, "additional_directories"),
    WEFT_END(struct load_params),
};

static const char *gap_reason(int gap) {
    return gap == WEFT_GAP_EPOCH ? "epochChanged" : gap == WEFT_GAP_TRIMMED ? "trimmed" : "futureSeq";
}

/* Everything was told. Without a position there is nothing to say about it. What was asked before it follows is asked now.
 */
static void answer_opened(void *ctx, int r) {
    struct opening *opening = ctx;
    weft_hub_client *client = weft__acp_client_of(opening->hub, opening->req);
    const weft_session *session = weft__session_find(opening->hub->engine, opening->session);
    if (r < 0)
        weft__reply_failure(opening->req, r);
    else if (!session)
        weft__acp_no_session(opening->req, opening->session);
    else
        reply_session(opening->req, opening->hub, session, false, r > 0 ? gap_reason(r) : NULL);
    if (r >= 0 && session && client)
        weft__acp_ask_open(client, opening->session, opening->knew || (r == 0 && !opening->place.live));
    free_opening(opening);
}

static void refuse_follow(weft_req *req, int r) {
    if (r == -EMFILE)
        weft__reply_error(req, 429, "tooManySubscriptions", "This connection follows too many sessions");
    else
        weft__reply_failure(req, r);
}

/* Tell what is to be told, then answer. */
static void follow_opened(struct opening *opening) {
    weft_hub_client *client = weft__acp_client_of(opening->hub, opening->req);
    const struct place *place = &opening->place;
    opening->knew = client && weft__acp_follows(client, opening->session);
    int r = !client       ? 0
            : place->live ? weft__acp_follow(client, opening->session)
                          : weft__acp_follow_from(client, opening->session, *place->epoch ? place->epoch : NULL,
                                                  place->after, place->whole, answer_opened, opening);
    if (r < 0) {
        refuse_follow(opening->req, r);
        free_opening(opening);
    } else if (!client || place->live)
        answer_opened(opening, 0);
}

/* Somebody may have been quicker, which is as good. */
static void on_resumed(void *ctx, int r, const weft_session *session, const char *error) {
    struct opening *opening = ctx;
    (void) session, (void) error;
    if (r >= 0 || r == -EALREADY) {
        follow_opened(opening);
        return;
    }
    weft__reply_failure(opening->req, r);
    free_opening(opening);
}

/* A session that was closed takes prompts again, unless who asks may only look at it. */
static int reopen_session(weft_req *req, const weft_hub *hub, const char *id, const struct place *place) {
    const weft_identity *identity = weft_req_identity(req);
    const weft_session *session = weft__session_find(hub->engine, id);
    char who[WEFT_WHO];
    if (!session)
        return weft__acp_no_session(req, id);
    struct opening *opening = new_opening(hub, req, id);
    if (!opening)
        return -ENOMEM;
    opening->place = *place;
    if (!session->closed || !weft_has_scope(identity, WEFT_WORK)) {
        follow_opened(opening);
        return 0;
    }
    int r = weft__session_resume(hub->engine, id, weft__who(identity, who), on_resumed, opening);
    if (r < 0)
        on_resumed(opening, r, NULL, NULL);
    return 0;
}

/* <0 after an answer. That there is no such session is said later. */
static int give_servers(weft_req *req, const weft_hub *hub, const struct load_params *in) {
    if (!is_given(&in->mcpServers))
        return 0;
    char *servers = weft__strndup(hub->alloc, in->mcpServers.text, in->mcpServers.len);
    int r = servers ? weft__session_give_servers(hub->engine, in->sessionId, servers) : -ENOMEM;
    weft__free(hub->alloc, servers);
    if (r >= 0 || r == -ESRCH)
        return 0;
    refuse_order(req, hub, NULL, r, NULL);
    return r;
}

int weft__acp_on_load(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct load_params *in = weft_req_params(req);
    (void) params;
    if (check_given(req, hub, in->cwd, "/cwd") < 0 || check_given(req, hub, in->mcpServers.text, "/mcpServers") < 0 ||
        check_place(req, hub, in->cwd, &in->mcpServers, &in->additionalDirectories) < 0 || give_servers(req, hub, in) < 0)
        return 0;
    /* What was said in it is not before the event that made it. */
    const weft_session *session = weft__session_find(hub->engine, in->sessionId);
    uint64_t first = session && session->first ? session->first - 1 : 0;
    return reopen_session(req, hub, in->sessionId, &(struct place){.whole = true, .after = first});
}

/* "EPOCH:GSEQ" */
static bool read_position(const char *text, struct place *ret) {
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    if (!colon || colon == text || (size_t) (colon - text) > WEFT_EPOCH)
        return false;
    memcpy(ret->epoch, text, (size_t) (colon - text));
    ret->epoch[colon - text] = '\0';
    errno = 0;
    ret->after = strtoull(colon + 1, &end, 10);
    return errno == 0 && colon[1] >= '0' && colon[1] <= '9' && *end == '\0';
}

int weft__acp_on_resume(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct load_params *in = weft_req_params(req);
    weft_json position = weft_req_meta(req, ACP_META_POSITION);
    struct place place = {.live = !position.text};
    (void) params;
    if (check_given(req, hub, in->cwd, "/cwd") < 0 ||
        check_place(req, hub, in->cwd, &in->mcpServers, &in->additionalDirectories) < 0)
        return 0;
    if (position.text && !read_position(weft_str_of(&position, ""), &place))
        return weft__reply_invalid(req, "/_meta/weft~1position", "the position must be one that session/update had");
    if (give_servers(req, hub, in) < 0)
        return 0;
    return reopen_session(req, hub, in->sessionId, &place);
}

/* ---- session/list ---- */

struct list_params {
    const char *cwd, *cursor;
};
const weft_param weft__acp_list_params[] = {
    {"cwd", WEFT_PARAM_str, offsetof(struct list_params, cwd), WEFT_NULLABLE, "only those in this folder"},
    {"cursor", WEFT_PARAM_str, offsetof(struct list_params, cursor), WEFT_NULLABLE, "where the page before this one ended"},
    WEFT_END(struct list_params),
};

/* Absolute. */
static void folder_of(const weft_hub *hub, const weft_session *session, char ret[PATH_MAX]) {
    const char *folder = session->folder ? session->folder : "";
    snprintf(ret, PATH_MAX, "%s%s%s", weft__engine_folder(hub->engine), *folder ? "/" : "", folder);
}

/* What somebody called it, or its agent did, or what was said in it last: people find it again by that. */
static weft_val title_of(const weft_hub *hub, const weft_session *session) {
    const char *said = session->facts[WEFT_SESSION_TITLE];
    const weft_task *task = session->task ? weft__task_find(hub->engine, session->task) : NULL;
    if (session->title || said)
        return session->title ? weft_str(session->title) : raw_text_or_none(said);
    return task ? weft_strn(task->prompt, weft__utf8_fit(task->prompt, strcspn(task->prompt, "\r\n"), TITLE)) : weft_none();
}

static int write_session(weft_buf *out, const weft_hub *hub, const weft_session *session, const char *folder) {
    char updated[WEFT_STAMP];
    weft_val value =
        WEFT_OBJ({"sessionId", weft_str(session->id)}, {"cwd", weft_str(folder)}, {"title", title_of(hub, session)},
                 {"updatedAt", weft_str(weft__stamp(session->updated_ms, updated))},
                 {"_meta", WEFT_OBJ({ACP_META_AGENT, weft_str(session->agent)}, {"weft/busy", weft_bool(session->busy)})});
    return weft__write_val(out, hub->alloc, &value);
}

/* The newest first; *ret_last is the last of the page if there are more. */
static int write_page(weft_buf *out, const weft_hub *hub, const char *cwd, const weft_session *from,
                      const weft_session **ret_last) {
    const weft_session *last = NULL;
    char folder[PATH_MAX];
    size_t count = 0;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (; r >= 0 && from; from = weft__session_older(hub->engine, from)) {
        folder_of(hub, from, folder);
        if (cwd && strcmp(cwd, folder) != 0)
            continue;
        if (count == PAGE) {
            *ret_last = last;
            break;
        }
        r = count++ ? weft__buf_put(out, hub->alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_session(out, hub, from, folder);
        last = from;
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

/* A cursor is the id of the last session of the page before. One that is gone meanwhile cannot be gone on from. */
int weft__acp_on_list(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct list_params *in = weft_req_params(req);
    const weft_session *before = in->cursor ? weft__session_find(hub->engine, in->cursor) : NULL, *last = NULL;
    weft_buf out = {0};
    (void) params;
    if (in->cursor && !before)
        return weft__reply_invalid(req, "/cursor", "the cursor is not valid any more; begin again without one");
    int r = write_page(&out, hub, in->cwd,
                       before ? weft__session_older(hub->engine, before) : weft__session_newest(hub->engine), &last);
    if (r >= 0)
        r = weft__acp_reply(hub, req,
                            WEFT_OBJ({"sessions", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                     {"nextCursor", last ? weft_str(last->id) : weft_none()}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* ---- session/close, session/delete ---- */

struct session_params {
    const char *sessionId;
};
const weft_param weft__acp_session_params[] = {
    WEFT_MUST(struct session_params, sessionId, str, "the session"),
    WEFT_ALSO(struct session_params, sessionId, str, "session_id"),
    WEFT_END(struct session_params),
};

/* That it is closed, or gone, is what was wanted. */
static void on_ended(void *ctx, int r, const weft_session *session, const char *error) {
    struct opening *opening = ctx;
    weft_hub_client *client = weft__acp_client_of(opening->hub, opening->req);
    (void) session, (void) error;
    if (r >= 0 && client)
        weft__acp_unfollow(client, opening->session);
    if (r >= 0 || r == -EALREADY || r == -ESRCH)
        weft__acp_reply(opening->hub, opening->req, weft_obj(NULL, 0));
    else if (r == -ESTALE)
        weft__reply_error(opening->req, 409, "sessionClosing", "The session is being closed or deleted");
    else
        weft__reply_failure(opening->req, r);
    free_opening(opening);
}

typedef int session_end(weft_engine *engine, const char *id, const char *by, weft_session_done *done, void *ctx);

static int give_session_end(weft_req *req, const weft_hub *hub, const char *id, session_end *end) {
    char who[WEFT_WHO];
    struct opening *opening = new_opening(hub, req, id);
    if (!opening)
        return -ENOMEM;
    int r = end(hub->engine, id, weft__who(weft_req_identity(req), who), on_ended, opening);
    if (r < 0)
        on_ended(opening, r, NULL, NULL);
    return 0;
}

int weft__acp_on_close(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct session_params *in = weft_req_params(req);
    (void) params;
    if (!weft__session_find(hub->engine, in->sessionId))
        return weft__acp_no_session(req, in->sessionId);
    return give_session_end(req, hub, in->sessionId, weft__session_close);
}

/* One that is not there is deleted already. */
int weft__acp_on_delete(weft_req *req, const weft_json *params, void *ctx) {
    const struct session_params *in = weft_req_params(req);
    (void) params;
    return give_session_end(req, ctx, in->sessionId, weft__session_remove);
}

/* ---- session/set_mode, session/set_config_option ---- */

struct set_params {
    const char *sessionId, *name;
    weft_json value;
};
const weft_param weft__acp_set_mode_params[] = {
    WEFT_MUST(struct set_params, sessionId, str, "the session"),
    WEFT_ALSO(struct set_params, sessionId, str, "session_id"),
    {"modeId", WEFT_PARAM_str, offsetof(struct set_params, name), WEFT_REQUIRED, "one of its modes"},
    WEFT_ALSO(struct set_params, name, str, "mode_id"),
    WEFT_END(struct set_params),
};
const weft_param weft__acp_set_option_params[] = {
    WEFT_MUST(struct set_params, sessionId, str, "the session"),
    WEFT_ALSO(struct set_params, sessionId, str, "session_id"),
    {"configId", WEFT_PARAM_str, offsetof(struct set_params, name), WEFT_REQUIRED, "one of its options"},
    WEFT_ALSO(struct set_params, name, str, "config_id"),
    {"value", WEFT_PARAM_any, offsetof(struct set_params, value), WEFT_REQUIRED, "the id of a value, or a boolean"},
    WEFT_END(struct set_params),
};

static int refuse_setting(weft_req *req, const char *session, int r, const char *error) {
    switch (r) {
    case -ESRCH:
    case -ESTALE:
        return weft__acp_no_session(req, session);
    case -EINVAL:
    case -EOPNOTSUPP:
    case -EREMOTEIO:
        return weft__reply_error(req, WEFT_INVALID_PARAMS, "settingRefused", "%s",
                                 error ? error : "The agent has no such setting");
    case -EPIPE:
    case -ETIMEDOUT:
        return weft__reply_error(req, WEFT_INTERNAL_ERROR, "agentFailed", "%s", error ? error : "The agent did not answer");
    default:
        return weft__reply_failure(req, r);
    }
}

static void on_mode_set(void *ctx, int r, const weft_session *session, const char *error) {
    struct opening *opening = ctx;
    (void) session;
    if (r < 0)
        refuse_setting(opening->req, opening->session, r, error);
    else
        weft__acp_reply(opening->hub, opening->req, weft_obj(NULL, 0));
    free_opening(opening);
}

/* All options come back, because one may change others. */
static void on_option_set(void *ctx, int r, const weft_session *session, const char *error) {
    struct opening *opening = ctx;
    const char *known =
        r >= 0 && session ? weft__session_fact(opening->hub->engine, session->id, WEFT_SESSION_OPTIONS) : NULL;
    struct options options;
    if (r < 0) {
        refuse_setting(opening->req, opening->session, r, error);
        free_opening(opening);
        return;
    }
    weft_val offered = session_options(opening->hub, opening->req, known, &options);
    weft__acp_reply(opening->hub, opening->req, WEFT_OBJ({"configOptions", offered.kind ? offered : weft_arr(NULL, 0)}));
    free_options(opening->hub, &options);
    free_opening(opening);
}

static int set_in_session(weft_req *req, const weft_hub *hub, const char *session, const weft_session_setting *setting,
                          weft_session_done *done) {
    char who[WEFT_WHO];
    struct opening *opening = new_opening(hub, req, session);
    if (!opening)
        return -ENOMEM;
    int r = weft__session_set(hub->engine, session, setting, weft__who(weft_req_identity(req), who), done, opening);
    if (r < 0)
        done(opening, r, NULL, NULL);
    return 0;
}

/* Only what the agent offers: it would refuse anything else, and if it is not running now, it would do so in the next turn.
 * -ENOENT: there is no such thing; -EDOM: there is, and this is none of its values; -ENOMEM. */
static int check_offered(const weft_hub *hub, const char *list, const char *member, const char *id, const weft_json *value) {
    weft_doc *doc = NULL;
    int r = list ? weft_doc_parse(list, strlen(list), hub->alloc, &doc) : -ENOENT;
    if (r < 0)
        return r == -ENOMEM ? r : -ENOENT;
    weft_json items = member ? weft_get(weft_doc_root(doc), member) : *weft_doc_root(doc);
    r = -ENOENT;
    for (weft_iter it = weft_iterate(&items); r == -ENOENT && weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "id", ""), id) == 0)
            r = !value || weft__acp_may_choose(&it.value, value) ? 0 : -EDOM;
    weft_doc_free(doc);
    return r;
}

struct offer {
    weft_session_fact fact;
    const char *member; /* where in the fact the list is; NULL: it is the fact */
    const char *path;   /* of the name in the params */
    const weft_json *value;
};

static int set_offered(weft_req *req, const weft_hub *hub, const struct set_params *in, const struct offer *offer,
                       const weft_session_setting *setting, weft_session_done *done) {
    const weft_session *session = weft__session_find(hub->engine, in->sessionId);
    if (!session)
        return weft__acp_no_session(req, in->sessionId);
    int r = check_offered(hub, session->facts[offer->fact], offer->member, in->name, offer->value);
    if (r == -ENOENT)
        return weft__reply_invalid(req, offer->path, "the agent of this session offers no \"%.200s\"", in->name);
    if (r == -EDOM)
        return weft__reply_invalid(req, "/value", "that is none of the values of \"%.200s\"", in->name);
    return r < 0 ? r : set_in_session(req, hub, in->sessionId, setting, done);
}

int weft__acp_on_set_mode(weft_req *req, const weft_json *params, void *ctx) {
    const struct set_params *in = weft_req_params(req);
    weft_json mode = weft_get(params, "modeId"), old = weft_get(params, "mode_id");
    weft_session_setting setting = {.name = "mode", .value = mode.text ? mode : old};
    struct offer offer = {WEFT_SESSION_MODES, "availableModes", "/modeId", NULL};
    return set_offered(req, ctx, in, &offer, &setting, on_mode_set);
}

int weft__acp_on_set_option(weft_req *req, const weft_json *params, void *ctx) {
    const struct set_params *in = weft_req_params(req);
    (void) params;
    weft_session_setting setting = {.name = "option", .option = in->name, .value = in->value};
    struct offer offer = {WEFT_SESSION_OPTIONS, NULL, "/configId", &in->value};
    return set_offered(req, ctx, in, &offer, &setting, on_option_set);
}

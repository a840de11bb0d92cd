/* weft acp between its editor and the hub, see acp_relay.h.
 *
 *     away ──somebody wants something, or a hub is there──▶ joining ──greeted, initialized, resumed──▶ joined ──lost──▶ away
 *
 * A request that was not answered is said again to the next hub. A prompt has a key of ours, so that it is the same prompt
 * there: its end is told, or it goes on, and it is never run twice. Sessions are resumed from the position of the last
 * update that was passed on. Questions of a hub that has gone are withdrawn; ids of the next one's are marked with its
 * number, because it counts anew. */
#include "acp_relay_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "acp_rewrite.h"
#include "alloc.h"
#include "buf.h"
#include "debug.h"
#include "failure.h"
#include "link.h"

/* As the bridge: the largest message that anybody takes. */
#define MAX_BODY (64 * 1024 * 1024)
#define MAX_QUEUED (2 * (size_t) MAX_BODY)
#define MAX_DEPTH 128
/* Requests of either side that are not answered, and sessions that are followed: as many as the hub allows. An editor that
 * has more is not read from until some are answered; further sessions are not resumed. */
#define MAX_OPEN 1024
#define MAX_SESSIONS 1024

/* ---- the end ---- */

void weft__relay_end(struct relay *self, weft_exit status) {
    weft_peer *editor = self->editor, *hub = self->hub;
    if (self->over)
        return;
    self->over = true;
    self->status = status;
    self->editor = self->hub = NULL;
    weft__timer_stop(self->loop, &self->retry);
    weft__later_cancel(&self->joining);
    weft_peer_free(editor);
    weft_peer_free(hub);
    weft__signals_close(&self->signals);
}

void weft__relay_fail(struct relay *self, int r) {
    weft__relay_end(self, weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r)));
}

/* ---- what is remembered ---- */

static void free_said(struct relay *self, struct said *old) {
    weft__list_remove(&old->link);
    self->said_count--;
    weft__free(NULL, old->body);
    weft__free(NULL, old->id);
    weft__free(NULL, old->method);
    weft__free(NULL, old->session);
    weft__free(NULL, old->folder);
    weft__free(NULL, old);
}

void weft__relay_unfollow(struct relay *self, struct followed *old) {
    weft__list_remove(&old->link);
    self->session_count--;
    weft__free(NULL, old->id);
    weft__free(NULL, old->folder);
    weft__free(NULL, old->position);
    weft__free(NULL, old);
}

static struct followed *find_followed(const struct relay *self, const char *id) {
    for (weft_link *at = self->sessions.next; at != &self->sessions; at = at->next) {
        struct followed *one = WEFT_CONTAINER(at, struct followed, link);
        if (strcmp(one->id, id) == 0)
            return one;
    }
    return NULL;
}

static int set_text(char **text, const char *value) {
    char *copy = value ? weft__strndup(NULL, value, strlen(value)) : NULL;
    if (value && !copy)
        return -ENOMEM;
    weft__free(NULL, *text);
    *text = copy;
    return 0;
}

/* position NULL: it is not known. */
int weft__relay_follow(struct relay *self, const char *id, const char *folder, const char *position) {
    struct followed *one = find_followed(self, id);
    if (!one) {
        one = self->session_count < MAX_SESSIONS ? weft__zalloc(NULL, sizeof *one) : NULL;
        if (!one)
            return self->session_count < MAX_SESSIONS ? -ENOMEM : 0;
        weft__list_push(&self->sessions, &one->link);
        self->session_count++;
    }
    int r = one->id ? 0 : set_text(&one->id, id);
    if (r >= 0 && folder)
        r = set_text(&one->folder, folder);
    if (r >= 0 && position)
        r = set_text(&one->position, position);
    if (r < 0)
        weft__relay_unfollow(self, one);
    return r;
}

static struct said *find_said(const struct relay *self, weft_bytes id) {
    for (weft_link *at = self->said.next; at != &self->said; at = at->next) {
        struct said *one = WEFT_CONTAINER(at, struct said, link);
        if (one->id && one->sent && strlen(one->id) == id.len && memcmp(one->id, id.data, id.len) == 0)
            return one;
    }
    return NULL;
}

static struct asked *find_asked(const struct relay *self, const char *id, size_t len) {
    for (weft_link *at = self->asked.next; at != &self->asked; at = at->next) {
        struct asked *one = WEFT_CONTAINER(at, struct asked, link);
        if (strlen(one->id) == len && memcmp(one->id, id, len) == 0)
            return one;
    }
    return NULL;
}

static void free_asked(struct relay *self, struct asked *old) {
    weft__list_remove(&old->link);
    self->asked_count--;
    weft__free(NULL, old);
}

/* ---- sending ---- */

/* Lines have no line ends in them; between the tokens of a JSON text a blank is as good. */
static int send_line(weft_peer *to, const char *text, size_t len) {
    weft_buf copy = {0};
    int r = weft__buf_put(&copy, NULL, text, len);
    char *line = weft__buf_head(&copy);
    for (size_t i = 0; r >= 0 && i < len; i++)
        if (line[i] == '\n' || line[i] == '\r')
            line[i] = ' ';
    if (r >= 0)
        r = weft_peer_send_raw(to, (weft_bytes){line, len}, false);
    weft__buf_done(&copy, NULL);
    return r;
}

static void send_to_editor(struct relay *self, const char *text, size_t len) {
    int r = self->editor ? send_line(self->editor, text, len) : 0;
    if (r < 0 && r != -EPIPE)
        weft__relay_fail(self, r);
    else if (self->editor && self->hub && weft_peer_full(self->editor))
        weft_peer_pause(self->hub, true);
}

static void send_val_to_editor(struct relay *self, weft_val message) {
    char *text;
    size_t len;
    int r = weft_to_text(message, NULL, &text, &len);
    if (r < 0) {
        weft__relay_fail(self, r);
        return;
    }
    send_to_editor(self, text, len);
    weft_text_free(text, NULL);
}

/* The editor is read from while there is somebody to tell, and room to remember it. One message wakes a hub up. */
void weft__relay_pace(struct relay *self) {
    bool full = self->said_count >= MAX_OPEN || (self->hub && weft_peer_full(self->hub));
    bool waits = self->phase != RELAY_JOINED && !weft__list_empty(&self->said);
    if (self->editor && self->editor_ready)
        weft_peer_pause(self->editor, full || waits || self->phase == RELAY_JOINING);
}

static void send_said(struct relay *self, struct said *one) {
    int r = send_line(self->hub, one->body, one->len);
    one->sent = true;
    if (r < 0 && r != -EPIPE && r != -ENOTCONN) {
        weft__relay_fail(self, r);
        return;
    }
    if (!one->id && r >= 0)
        free_said(self, one);
}

void weft__relay_send_said(struct relay *self) {
    for (weft_link *at = self->said.next, *next; !self->over && at != &self->said; at = next) {
        next = at->next;
        send_said(self, WEFT_CONTAINER(at, struct said, link));
    }
}

/* So that it is one prompt, however often it is said. A key of the editor's own is as good. */
static int put_prompt_params(struct relay *self, const weft_json *params, weft_buf *ret) {
    char key[RELAY_NAME + 24];
    weft_json own = weft_pointer(params, "/_meta/weft~1idempotencyKey");
    snprintf(key, sizeof key, "%s-%llu", self->name, (unsigned long long) ++self->prompts);
    return weft__acp_put_with_meta(ret, params, "weft/idempotencyKey", own.text ? weft_copy(&own) : weft_str(key));
}

/* ---- from the editor ---- */

static bool is_method(const weft_msg *msg, const char *name) {
    return !msg->method_escaped && msg->method.len == strlen(name) && memcmp(msg->method.data, name, msg->method.len) == 0;
}

/* What the hub is told in place of it; nothing: the same. */
static int rewrite_request(struct relay *self, const weft_msg *msg, const weft_json *params, weft_buf *ret) {
    weft_json version = weft_get(params, "protocolVersion");
    weft_buf written = {0};
    int r = 0;
    if (is_method(msg, "initialize") && weft_typeof(&version) == WEFT_NUMBER)
        r = weft__acp_put_initialize(&written, params);
    else if (is_method(msg, "session/prompt") && weft_typeof(params) == WEFT_OBJECT)
        r = put_prompt_params(self, params, &written);
    else if (is_method(msg, "initialize"))
        self->plain = true;
    if (r >= 0 && weft__buf_len(&written))
        r = weft__acp_put_request(ret, msg, &written);
    weft__buf_done(&written, NULL);
    return r;
}

static char *copy_bytes(weft_bytes bytes) {
    return weft__strndup(NULL, bytes.data, bytes.len);
}

static int describe_said(const weft_msg *msg, const weft_json *params, struct said *made) {
    const char *session = weft_get_str(params, "sessionId", NULL), *folder = weft_get_str(params, "cwd", NULL);
    int r = set_text(&made->session, session);
    if (r >= 0)
        r = set_text(&made->folder, folder);
    if (r < 0 || msg->kind != WEFT_MSG_REQUEST)
        return r;
    made->id = copy_bytes(msg->id);
    made->method = copy_bytes(msg->method);
    return made->id && made->method ? 0 : -ENOMEM;
}

static int keep_said(struct relay *self, const weft_msg *msg, weft_bytes body, struct said **ret) {
    weft_doc *params = NULL;
    weft_buf other = {0};
    struct said *made = weft__zalloc(NULL, sizeof *made);
    int r = made ? 0 : -ENOMEM;
    if (r >= 0 && msg && msg->params.data)
        r = weft_doc_parse(msg->params.data, msg->params.len, NULL, &params);
    weft_json none = {0};
    const weft_json *in = params ? weft_doc_root(params) : &none;
    if (r >= 0 && msg && msg->kind == WEFT_MSG_REQUEST)
        r = rewrite_request(self, msg, in, &other);
    if (r >= 0 && msg)
        r = describe_said(msg, in, made);
    weft_bytes text = weft__buf_len(&other) ? (weft_bytes){weft__buf_head(&other), weft__buf_len(&other)} : body;
    if (r >= 0 && !(made->body = weft__strndup(NULL, text.data, text.len)))
        r = -ENOMEM;
    if (made) {
        made->len = text.len;
        weft__list_push(&self->said, &made->link);
        self->said_count++;
    }
    weft__buf_done(&other, NULL);
    weft_doc_free(params);
    if (r < 0 && made)
        free_said(self, made);
    else
        *ret = made;
    return r;
}

/* Its id without the mark of the generation; NULL: it answers a hub that has gone, or nothing. */
static struct asked *take_mark(struct relay *self, weft_bytes id) {
    char mark[24];
    int n = snprintf(mark, sizeof mark, "\"%u.", self->generation);
    if (!self->generation)
        return find_asked(self, id.data, id.len);
    bool ours = id.len > (size_t) n + 1 && memcmp(id.data, mark, (size_t) n) == 0;
    return ours ? find_asked(self, id.data + n, id.len - (size_t) n - 1) : NULL;
}

static int pass_answer(struct relay *self, const weft_msg *msg) {
    struct asked *asked = self->phase == RELAY_JOINED ? take_mark(self, msg->id) : NULL;
    char *text;
    size_t len;
    if (!asked)
        return 0;
    weft_val whole = WEFT_OBJ({"jsonrpc", weft_str("2.0")}, {"id", weft_raw(asked->id, strlen(asked->id))},
                              {"result", msg->result.data ? weft_raw(msg->result.data, msg->result.len) : weft_none()},
                              {"error", msg->error.data ? weft_raw(msg->error.data, msg->error.len) : weft_none()});
    int r = weft_to_text(whole, NULL, &text, &len);
    if (r >= 0) {
        r = send_line(self->hub, text, len);
        weft_text_free(text, NULL);
    }
    free_asked(self, asked);
    return r == -EPIPE || r == -ENOTCONN ? 0 : r;
}

/* What is not one message is the hub's to refuse. */
static int take_from_editor(struct relay *self, const char *text, weft_bytes body) {
    weft_msg msg;
    const char *rest;
    struct said *made;
    bool one = weft__msg_parse(text, MAX_DEPTH, true, &msg, &rest) >= 0 && rest == text + body.len;
    if (one && msg.kind == WEFT_MSG_ANSWER)
        return pass_answer(self, &msg);
    int r = keep_said(self, one ? &msg : NULL, body, &made);
    if (r >= 0 && self->phase == RELAY_JOINED)
        send_said(self, made);
    else if (r >= 0)
        weft__relay_join_soon(self);
    return r;
}

static int copy_text(weft_bytes body, weft_buf *ret) {
    int r = weft__buf_reserve(ret, NULL, body.len + 1);
    if (r < 0)
        return r;
    weft__buf_put(ret, NULL, body.data, body.len);
    weft__buf_head(ret)[body.len] = '\0';
    return 0;
}

static bool on_editor_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    struct relay *self = data;
    weft_buf copy = {0};
    (void) binary;
    if (self->debug)
        weft__debug_message(NULL, peer, false, body);
    int r = copy_text(body, &copy);
    if (r >= 0)
        r = take_from_editor(self, weft__buf_head(&copy), (weft_bytes){weft__buf_head(&copy), body.len});
    weft__buf_done(&copy, NULL);
    if (r < 0)
        weft__relay_fail(self, r);
    else if (!self->over)
        weft__relay_pace(self);
    return true;
}

/* ---- from the hub ---- */

static void write_mark(const struct relay *self, const char *id, char ret[WEFT_MAX_ID + 32]) {
    if (self->generation)
        snprintf(ret, WEFT_MAX_ID + 32, "\"%u.%s\"", self->generation, id);
    else
        snprintf(ret, WEFT_MAX_ID + 32, "%s", id);
}

/* The hub's ids are numbers. One that it should not have, or one too many, is answered by nobody. */
static int pass_question(struct relay *self, const weft_msg *msg, weft_bytes body) {
    char id[WEFT_MAX_ID + 32];
    bool usable = msg->id.len <= WEFT_MAX_ID && *msg->id.data != '"' && self->asked_count < MAX_OPEN;
    struct asked *made = usable ? weft__zalloc(NULL, sizeof *made) : NULL;
    if (!made)
        return usable ? -ENOMEM : 0;
    memcpy(made->id, msg->id.data, msg->id.len);
    weft__list_push(&self->asked, &made->link);
    self->asked_count++;
    write_mark(self, made->id, id);
    if (!self->generation)
        send_to_editor(self, body.data, body.len);
    else
        send_val_to_editor(self, WEFT_OBJ({"jsonrpc", weft_str("2.0")}, {"id", weft_raw(id, strlen(id))},
                                          {"method", weft_strn(msg->method.data, msg->method.len)},
                                          {"params", weft_raw(msg->params.data, msg->params.len)}));
    return 0;
}

void weft__relay_withdraw(struct relay *self, struct asked *old) {
    char id[WEFT_MAX_ID + 32];
    write_mark(self, old->id, id);
    free_asked(self, old);
    send_val_to_editor(self, WEFT_OBJ({"jsonrpc", weft_str("2.0")}, {"method", weft_str("$/cancel_request")},
                                      {"params", WEFT_OBJ({"requestId", weft_raw(id, strlen(id))})}));
}

/* A hole that nobody is told of looks like all that was said. */
void weft__relay_tell_gap(struct relay *self, const char *session, const char *reason) {
    bool trimmed = strcmp(reason, "trimmed") == 0;
    const char *text = trimmed
                           ? "weft: part of what was said is missing here. It was said faster than this editor reads, and "
                             "the hub keeps no more of it.\n"
                           : "weft: part of what was said is missing here. The hub has begun a new journal.\n";
    weft_val content = WEFT_OBJ({"type", weft_str("text")}, {"text", weft_str(text)});
    send_val_to_editor(self,
                       WEFT_OBJ({"jsonrpc", weft_str("2.0")}, {"method", weft_str("session/update")},
                                {"params", WEFT_OBJ({"sessionId", weft_str(session)},
                                                    {"update", WEFT_OBJ({"sessionUpdate", weft_str("agent_thought_chunk")},
                                                                        {"content", content})})}));
}

static int pass_told(struct relay *self, const weft_msg *msg, weft_bytes body) {
    weft_doc *params = NULL;
    int r = msg->params.data ? weft_doc_parse(msg->params.data, msg->params.len, NULL, &params) : 0;
    if (r < 0)
        return r;
    weft_json about = params ? *weft_doc_root(params) : (weft_json){0};
    weft_json request = weft_get(&about, "requestId"), position = weft_pointer(&about, "/_meta/weft~1position");
    const char *session = weft_get_str(&about, "sessionId", NULL), *at = weft_str_of(&position, NULL);
    if (is_method(msg, "$/cancel_request") && request.text) {
        struct asked *asked = find_asked(self, request.text, request.len);
        if (asked)
            weft__relay_withdraw(self, asked);
    } else {
        if (is_method(msg, "session/update") && session && at && find_followed(self, session))
            r = weft__relay_follow(self, session, NULL, at);
        send_to_editor(self, body.data, body.len);
    }
    weft_doc_free(params);
    return r;
}

/* What an answer says about what is to be resumed. */
static int learn_from_answer(struct relay *self, const struct said *said, const weft_json *result) {
    weft_json position = weft_pointer(result, "/_meta/weft~1position");
    const char *made = weft_get_str(result, "sessionId", said->session), *method = said->method;
    bool opens =
        strcmp(method, "session/new") == 0 || strcmp(method, "session/load") == 0 || strcmp(method, "session/resume") == 0;
    bool ends = strcmp(method, "session/close") == 0 || strcmp(method, "session/delete") == 0;
    struct followed *followed = made && ends ? find_followed(self, made) : NULL;
    if (followed)
        weft__relay_unfollow(self, followed);
    return made && opens ? weft__relay_follow(self, made, said->folder, weft_str_of(&position, NULL)) : 0;
}

static int learn_initialize(struct relay *self, const struct said *said) {
    weft_doc *doc = NULL;
    weft_buf text = {0};
    int r = weft_doc_parse(said->body, said->len, NULL, &doc);
    weft_json params = r < 0 ? (weft_json){0} : weft_get(weft_doc_root(doc), "params");
    if (r >= 0)
        r = weft__buf_put(&text, NULL, params.text, params.len);
    if (r >= 0)
        r = weft__buf_put(&text, NULL, "", 1);
    if (r >= 0)
        r = set_text(&self->initialize, weft__buf_head(&text));
    weft__buf_done(&text, NULL);
    weft_doc_free(doc);
    return r;
}

/* The hub is about to go, and did not do it: the next one is asked. */
static bool is_put_off(const weft_msg *msg) {
    weft_doc *doc = NULL;
    if (!msg->error.data || weft_doc_parse(msg->error.data, msg->error.len, NULL, &doc) < 0)
        return false;
    weft_json reason = weft_pointer(weft_doc_root(doc), "/data/reason");
    bool yes = strcmp(weft_str_of(&reason, ""), "shuttingDown") == 0;
    weft_doc_free(doc);
    return yes;
}

static int pass_result(struct relay *self, const weft_msg *msg, weft_bytes body) {
    struct said *said = find_said(self, msg->id);
    weft_doc *result = NULL;
    int r = said && msg->result.data ? weft_doc_parse(msg->result.data, msg->result.len, NULL, &result) : 0;
    if (said && !self->plain && is_put_off(msg))
        return 0;
    self->starts = 0;
    if (r >= 0 && result && strcmp(said->method, "initialize") == 0)
        r = learn_initialize(self, said);
    else if (r >= 0 && result)
        r = learn_from_answer(self, said, weft_doc_root(result));
    if (said)
        free_said(self, said);
    weft_doc_free(result);
    send_to_editor(self, body.data, body.len);
    return r;
}

static int take_from_hub(struct relay *self, const weft_msg *msg, weft_bytes body) {
    switch (msg->kind) {
    case WEFT_MSG_REQUEST:
        return pass_question(self, msg, body);
    case WEFT_MSG_NOTIFICATION:
        return pass_told(self, msg, body);
    case WEFT_MSG_ANSWER:
        return pass_result(self, msg, body);
    default:
        send_to_editor(self, body.data, body.len);
        return 0;
    }
}

bool weft__relay_is_done(const struct relay *self) {
    return self->editor_ended && weft__list_empty(&self->said);
}

/* While we join, answers are to calls of ours; the rest is for the editor already. */
bool weft__relay_hub_raw(weft_peer *peer, weft_bytes body, bool binary, void *data) {
    struct relay *self = data;
    weft_buf copy = {0};
    weft_msg msg;
    const char *rest;
    (void) binary;
    int r = copy_text(body, &copy);
    bool read = r >= 0 && weft__msg_parse(weft__buf_head(&copy), MAX_DEPTH, true, &msg, &rest) >= 0;
    bool own = read && self->phase == RELAY_JOINING && msg.kind == WEFT_MSG_ANSWER;
    if (read && !own) {
        if (self->debug)
            weft__debug_message(NULL, peer, false, body);
        r = take_from_hub(self, &msg, body);
    }
    weft__buf_done(&copy, NULL);
    if (r < 0)
        weft__relay_fail(self, r);
    else if (!own && !self->over && weft__relay_is_done(self))
        weft__relay_end(self, WEFT_DONE);
    else if (!own && !self->over)
        weft__relay_pace(self);
    return !own;
}

/* ---- the editor ---- */

static void on_editor_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    struct relay *self = data;
    (void) why;
    if (self->over)
        return;
    self->editor = peer;
    if (state == WEFT_PEER_CONNECTED) {
        self->editor_ready = true;
        weft__relay_pace(self);
    } else if (state == WEFT_PEER_CLOSED || state == WEFT_PEER_DISCONNECTED)
        weft__relay_end(self, WEFT_DONE);
}

static void on_editor_drain(weft_peer *peer, void *data) {
    struct relay *self = data;
    (void) peer;
    if (self->hub)
        weft_peer_pause(self->hub, false);
}

static bool on_editor_eof(weft_peer *peer, void *data) {
    struct relay *self = data;
    (void) peer;
    self->editor_ended = true;
    if (!weft__relay_is_done(self))
        return true;
    weft__relay_end(self, WEFT_DONE);
    return false;
}

void weft__relay_reach_editor(struct relay *self) {
    weft_connect_opts opts = weft__target_opts(self->app, &self->from, self->service);
    opts.framing = &weft_detect;
    opts.data = self;
    opts.on_state = on_editor_state;
    opts.on_raw = on_editor_raw;
    opts.on_eof = on_editor_eof;
    opts.on_drain = on_editor_drain;
    int r = weft_connect_on(self->loop, self->from.url, &opts, &self->editor, &self->from.trouble);
    if (r < 0)
        weft__relay_end(self, weft__fail_at(self->app, self->from.shown, r, self->from.trouble.text));
}

/* ---- running ---- */

static void on_relay_signal(void *ctx) {
    weft__relay_end(ctx, WEFT_DONE);
}

static int choose_name(char ret[RELAY_NAME]) {
    unsigned char bytes[(RELAY_NAME - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t) sizeof bytes)
        return -EIO;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

static int open_relay(struct relay *self) {
    weft_service_opts opts = {
        .limits = {.max_body = MAX_BODY, .max_body_stranger = MAX_BODY, .out_hard = MAX_QUEUED, .max_answer = MAX_BODY},
    };
    self->debug = weft__debug_wanted();
    weft__list_init(&self->said);
    weft__list_init(&self->asked);
    weft__list_init(&self->sessions);
    weft__relay_join_init(self);
    int r = choose_name(self->name);
    if (r >= 0)
        r = weft_loop_new(NULL, &self->loop);
    if (r >= 0)
        r = weft_service_new(&opts, &self->service);
    if (r >= 0)
        r = weft__signals_open(&self->signals, self->loop, on_relay_signal, self);
    return r;
}

static void close_relay(struct relay *self) {
    while (!weft__list_empty(&self->said))
        free_said(self, WEFT_CONTAINER(self->said.next, struct said, link));
    while (!weft__list_empty(&self->asked))
        free_asked(self, WEFT_CONTAINER(self->asked.next, struct asked, link));
    while (!weft__list_empty(&self->sessions))
        weft__relay_unfollow(self, WEFT_CONTAINER(self->sessions.next, struct followed, link));
    weft__free(NULL, self->initialize);
    weft__signals_close(&self->signals);
    if (self->loop)
        weft_loop_run(self->loop); /* what is still being sent */
    weft_loop_free(self->loop);
    weft_service_unref(self->service);
    weft__target_done(&self->from);
    weft__target_done(&self->to);
}

weft_exit weft__acp_relay(weft_app *app, const weft_acp_relay_opts *opts) {
    struct relay self = {.app = app, .opts = opts};
    signal(SIGPIPE, SIG_IGN); /* standard output may leave */
    weft_exit status = weft__target_of(app, "stdio:", &self.from);
    int r = status == WEFT_DONE ? open_relay(&self) : 0;
    if (r < 0)
        status = weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    if (status == WEFT_DONE) {
        weft__relay_join(&self);
        weft_loop_run(self.loop);
        status = self.status;
    }
    close_relay(&self);
    return status;
}

/* weft acp and its hub: joining one, and losing it. See acp_relay.h. Nothing of what is said passes through here. */
#include "acp_relay_private.h"

#include <errno.h>
#include <string.h>

#include "failure.h"

/* Hubs that were started in a row and went again before anything was answered: then something is wrong with it. */
#define MAX_STARTS 5
/* Between two looks for a hub that nobody needs at the moment: as clients come back. */
#define FIRST_RETRY_MS 100
#define LAST_RETRY_MS 16000

static void lose_hub(struct relay *self);

/* ---- joining ---- */

static void resume_next(struct relay *self);

/* Everything that the editor knows is known here: it notices nothing but the time. */
static void finish_joining(struct relay *self) {
    self->phase = RELAY_JOINED;
    self->retry_ms = FIRST_RETRY_MS;
    weft__relay_send_said(self);
    if (!self->over && weft__relay_is_done(self))
        weft__relay_end(self, WEFT_DONE);
    else if (!self->over)
        weft__relay_pace(self);
}

/* One that cannot be resumed any more is gone for the editor, too; its next request there says so. */
static void on_resumed(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    struct relay *self = ctx;
    (void) peer;
    if (r < 0 || self->over || self->phase != RELAY_JOINING)
        return; /* on_hub_state() has it */
    struct followed *one = WEFT_CONTAINER(self->resuming, struct followed, link);
    weft_json position = answer->result ? weft_pointer(answer->result, "/_meta/weft~1position") : (weft_json){0};
    weft_json resumed = answer->result ? weft_pointer(answer->result, "/_meta/weft~1resumed") : (weft_json){0};
    weft_json reason = answer->result ? weft_pointer(answer->result, "/_meta/weft~1reason") : (weft_json){0};
    self->resuming = self->resuming->next;
    if (!weft_bool_of(&resumed, true))
        weft__relay_tell_gap(self, one->id, weft_str_of(&reason, ""));
    if (answer->error)
        weft__relay_unfollow(self, one);
    else if (weft_str_of(&position, NULL) && weft__relay_follow(self, one->id, NULL, weft_str_of(&position, NULL)) < 0) {
        weft__relay_fail(self, -ENOMEM);
        return;
    }
    resume_next(self);
}

static void resume_next(struct relay *self) {
    weft_call_opts opts = {.on_answer = on_resumed, .ctx = self};
    if (self->resuming == &self->sessions) {
        finish_joining(self);
        return;
    }
    const struct followed *one = WEFT_CONTAINER(self->resuming, struct followed, link);
    weft_val meta = one->position ? WEFT_OBJ({"weft/position", weft_str(one->position)}) : weft_none();
    int r = weft_call_start(self->hub, "session/resume",
                            WEFT_OBJ({"sessionId", weft_str(one->id)}, {"cwd", weft_str(one->folder ? one->folder : "/")},
                                     {"mcpServers", weft_arr(NULL, 0)}, {"_meta", meta}),
                            &opts, NULL);
    if (r < 0)
        weft__relay_fail(self, r);
}

static void resume_sessions(struct relay *self) {
    self->resuming = self->sessions.next;
    resume_next(self);
}

static void on_initialized(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    struct relay *self = ctx;
    (void) peer, (void) answer;
    if (r >= 0 && !self->over && self->phase == RELAY_JOINING)
        resume_sessions(self);
}

static void initialize_again(struct relay *self) {
    weft_call_opts opts = {.on_answer = on_initialized, .ctx = self};
    if (!self->initialize) {
        resume_sessions(self);
        return;
    }
    int r = weft_call_start(self->hub, "initialize", weft_raw(self->initialize, strlen(self->initialize)), &opts, NULL);
    if (r < 0)
        weft__relay_fail(self, r);
}

static void on_greeted(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    struct relay *self = ctx;
    (void) peer;
    if (r < 0 || self->over || self->phase != RELAY_JOINING)
        return;
    if (answer->error) {
        weft__relay_end(self, weft__fail_plainly(self->app, "_weft/hello", answer->error, self->opts->if_refused));
        return;
    }
    if (!self->editor)
        weft__relay_reach_editor(self);
    if (!self->over)
        initialize_again(self);
}

static void greet_hub(struct relay *self) {
    weft_call_opts opts = {.on_answer = on_greeted, .ctx = self};
    int r = weft_call_start(self->hub, "_weft/hello",
                            WEFT_OBJ({"agent", weft_str_or_none(self->opts->agent)}, {"client", weft_str(self->name)}),
                            &opts, NULL);
    if (r < 0)
        weft__relay_fail(self, r);
}

static void on_token_shown(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    struct relay *self = ctx;
    (void) peer;
    if (r < 0 || self->over || self->phase != RELAY_JOINING)
        return;
    if (answer->error && answer->error->code != WEFT_METHOD_NOT_FOUND)
        weft__relay_end(self, weft__fail_refused(self->app, "weft.auth", answer->error, "The server refused the token."));
    else
        greet_hub(self);
}

static void on_hub_connected(struct relay *self) {
    weft__remark(self->app, "connected to %s", self->to.url);
    if (!weft__target_shows_by_call(&self->to))
        greet_hub(self);
    else if (weft__target_show(self->hub, &self->to, on_token_shown, self) < 0)
        weft__relay_fail(self, -ENOMEM);
}

static void on_hub_state(weft_peer *peer, weft_peer_state state, int why, void *data) {
    struct relay *self = data;
    (void) why;
    if (self->over)
        return;
    self->hub = peer;
    if (state == WEFT_PEER_CONNECTED)
        on_hub_connected(self);
    else if (state == WEFT_PEER_CLOSED || state == WEFT_PEER_DISCONNECTED)
        lose_hub(self);
}

static void on_hub_drain(weft_peer *peer, void *data) {
    struct relay *self = data;
    (void) peer;
    if (!self->over)
        weft__relay_pace(self);
}

static int connect_hub(struct relay *self) {
    weft_connect_opts opts = weft__target_opts(self->app, &self->to, self->service);
    opts.framing = &weft_ndjson;
    opts.data = self;
    opts.on_state = on_hub_state;
    opts.on_raw = weft__relay_hub_raw;
    opts.on_drain = on_hub_drain;
    self->phase = RELAY_JOINING;
    weft__relay_pace(self);
    int r = weft_connect_on(self->loop, self->to.url, &opts, &self->hub, &self->to.trouble);
    if (r < 0)
        self->phase = RELAY_AWAY;
    return r;
}

/* ---- when it has gone ---- */

static void look_later(struct relay *self) {
    weft__timer_set(self->loop, &self->retry, weft__add_ms(weft__loop_fresh_now(self->loop), self->retry_ms));
    self->retry_ms = self->retry_ms * 2 < LAST_RETRY_MS ? self->retry_ms * 2 : LAST_RETRY_MS;
}

void weft__relay_join(struct relay *self) {
    weft_target to = {0};
    if (++self->starts > MAX_STARTS) {
        weft__relay_end(self,
                        weft__fail(self->app, WEFT_FAILED, "\"weft logs\" may say why.", "the hub ends again and again"));
        return;
    }
    weft_exit status = self->opts->find(self->app);
    if (status == WEFT_DONE)
        status = weft__target_take(self->app, &to);
    if (status != WEFT_DONE) {
        weft__relay_end(self, status);
        return;
    }
    weft__target_done(&self->to);
    self->to = to;
    int r = connect_hub(self);
    if (r < 0)
        weft__relay_end(self, weft__fail_at(self->app, self->to.shown, r, self->to.trouble.text));
}

static void on_join_due(weft_later *later) {
    struct relay *self = WEFT_CONTAINER(later, struct relay, joining);
    if (!self->over && self->phase == RELAY_AWAY)
        weft__relay_join(self);
}

void weft__relay_join_soon(struct relay *self) {
    weft__timer_stop(self->loop, &self->retry);
    if (self->phase == RELAY_AWAY)
        weft__later(self->loop, &self->joining);
}

/* Nobody waits for one. If it is there again, what happens in the sessions is told. */
static void on_retry_due(weft_timer *timer) {
    struct relay *self = WEFT_CONTAINER(timer, struct relay, retry);
    if (!self->over && self->phase == RELAY_AWAY && connect_hub(self) < 0)
        look_later(self);
}

static void lose_hub(struct relay *self) {
    weft_peer *hub = self->hub;
    bool joined = self->phase == RELAY_JOINED;
    self->hub = NULL;
    self->phase = RELAY_AWAY;
    weft_peer_free(hub);
    if (self->plain || !self->editor) {
        weft__relay_end(self, self->editor ? WEFT_DONE : weft__fail(self->app, WEFT_FAILED, NULL, "the hub has ended"));
        return;
    }
    while (!self->over && !weft__list_empty(&self->asked))
        weft__relay_withdraw(self, WEFT_CONTAINER(self->asked.next, struct asked, link));
    if (self->over)
        return;
    self->generation += joined;
    for (weft_link *at = self->said.next; at != &self->said; at = at->next)
        WEFT_CONTAINER(at, struct said, link)->sent = false;
    if (weft__list_empty(&self->said) && self->editor_ended)
        weft__relay_end(self, WEFT_DONE);
    else if (weft__list_empty(&self->said))
        look_later(self);
    else
        weft__relay_join_soon(self);
    if (!self->over)
        weft__relay_pace(self);
}

void weft__relay_join_init(struct relay *self) {
    self->retry_ms = FIRST_RETRY_MS;
    weft__timer_init(&self->retry, on_retry_due);
    weft__later_init(&self->joining, on_join_due);
}

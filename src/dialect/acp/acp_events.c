/* What happens, in ACP's words. A session's updates are stored in the form of ACP, so most of this is passing on; text of an
 * agent that does not speak ACP becomes its messages. What a person says is told to the other clients of the session. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "acp.h"
#include "form.h"
#include "option.h"
#include "reply.h"
#include "write.h"

const char *const weft__acp_variants[] = {[ACP_PLAIN] = "plain", [ACP_POSITIONS] = "positions", [ACP_OLD] = "old", NULL};

/* ---- updates ---- */

struct update {
    const weft_hub *hub;
    weft_rendering *rendering;
    const weft_event *event;
    const char *session;
    uint64_t but; /* the client that is not told; 0: none */
};

static void tell_old_update(const struct update *about, weft_val update) {
    const weft_alloc *alloc = about->hub->alloc;
    weft_buf out = {0};
    int r = weft__acp_put_old(alloc, weft__acp_old_update, update, &out);
    if (r < 0)
        weft__render_fail(about->rendering, r);
    else
        weft__render_notify_others(about->rendering, about->session, about->but, "session/update",
                                   WEFT_OBJ({"session_id", weft_str(about->session)},
                                            {"update", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, alloc);
}

static void tell_update(const struct update *about, weft_val update) {
    char position[ACP_POSITION];
    weft_val meta = weft_none();
    if (weft__render_variant(about->rendering) == ACP_OLD) {
        tell_old_update(about, update);
        return;
    }
    if (weft__render_variant(about->rendering) == ACP_POSITIONS) {
        snprintf(position, sizeof position, "%s:%" PRIu64, weft__store_epoch(weft__engine_store(about->hub->engine)),
                 about->event->gseq);
        meta = weft_str(position);
    }
    weft__render_notify_others(about->rendering, about->session, about->but, "session/update",
                               WEFT_OBJ({"sessionId", weft_str(about->session)}, {"update", update},
                                        {"_meta", meta.kind ? WEFT_OBJ({ACP_META_POSITION, meta}) : weft_none()}));
}

static void tell_text(const struct update *about, const char *kind, weft_val text) {
    tell_update(about, WEFT_OBJ({"sessionUpdate", weft_str(kind)},
                                {"content", WEFT_OBJ({"type", weft_str("text")}, {"text", text})}));
}

/* What every client of version 1 takes. The person's words are told by the hub, so the agent's copy of them is not. Modes,
 * options, commands and titles are told as state, also outside of a turn. Notices and
 * compactions are for who announced them, and the hub does not. */
static bool is_told(const char *kind) {
    static const char *const told[] = {"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
                                       "usage_update"};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        if (strcmp(told[i], kind) == 0)
            return true;
    return false;
}

static void tell_shown(const struct update *about, const weft_json *update) {
    weft_buf shown = {0};
    int r = weft__acp_hide_terminals(update, about->hub->alloc, &shown);
    if (r < 0)
        weft__render_fail(about->rendering, r);
    else
        tell_update(about, r ? weft_raw(weft__buf_head(&shown), weft__buf_len(&shown)) : weft_copy(update));
    weft__buf_done(&shown, about->hub->alloc);
}

static void tell_fitted(const struct update *about, const char *kind, const weft_json *update) {
    const weft_alloc *alloc = about->hub->alloc;
    weft_buf fitted = {0};
    weft_doc *doc = NULL;
    int r = weft__acp_fit(kind, update, alloc, &fitted);
    if (r > 0)
        r = weft_doc_parse(weft__buf_head(&fitted), weft__buf_len(&fitted), alloc, &doc);
    if (r >= 0)
        tell_shown(about, doc ? weft_doc_root(doc) : update);
    else if (r != -EBADMSG)
        weft__render_fail(about->rendering, r);
    weft_doc_free(doc);
    weft__buf_done(&fitted, alloc);
}

static void tell_current(const struct update *about, const weft_json *update) {
    const char *kind = weft__render_text(about->rendering, update, "sessionUpdate", "");
    if (is_told(kind))
        tell_fitted(about, kind, update);
}

/* An agent of the older form is heard as it speaks by those who speak so too. */
static void tell_older(const struct update *about, const weft_json *update) {
    const weft_alloc *alloc = about->hub->alloc;
    weft_buf text = {0};
    weft_doc *doc = NULL;
    if (weft__render_variant(about->rendering) == ACP_OLD) {
        weft__render_notify_others(about->rendering, about->session, about->but, "session/update",
                                   WEFT_OBJ({"session_id", weft_str(about->session)}, {"update", weft_copy(update)}));
        return;
    }
    int r = weft__acp_current_update(&text, alloc, update);
    if (r >= 0)
        r = weft_doc_parse(weft__buf_head(&text), weft__buf_len(&text), alloc, &doc);
    if (r >= 0)
        tell_current(about, weft_doc_root(doc));
    else
        weft__render_fail(about->rendering, r);
    weft_doc_free(doc);
    weft__buf_done(&text, alloc);
}

static void tell_agent(const struct update *about, const weft_json *data) {
    weft_json update = weft_get(data, "update");
    if (weft__acp_is_old_update(&update))
        tell_older(about, &update);
    else
        tell_current(about, &update);
}

/* What an agent writes to its standard error is no answer; it is shown as what it thinks. */
static void tell_output(const struct update *about, const weft_json *data) {
    weft_json text = weft_get(data, "text");
    bool aside = strcmp(weft__render_text(about->rendering, data, "stream", ""), "stderr") == 0;
    if (weft_typeof(&text) == WEFT_STRING)
        tell_text(about, aside ? "agent_thought_chunk" : "agent_message_chunk", weft_copy(&text));
}

/* ---- state ---- */

static const acp_state states[] = {
    {"mode", "current_mode_update", "currentModeId"},
    {"options", "config_option_update", "configOptions"},
    {"commands", "available_commands_update", "availableCommands"},
    {"title", "session_info_update", "title"},
};

const acp_state *weft__acp_state(const char *name) {
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (strcmp(states[i].name, name) == 0)
            return &states[i];
    return NULL;
}

static void tell_fact(const struct update *about, const acp_state *state, const char *kind, const weft_json *value) {
    weft_buf fitted = {0};
    int r = weft__acp_fit_value(kind, value, about->hub->alloc, &fitted);
    if (r >= 0)
        tell_update(about, WEFT_OBJ({"sessionUpdate", weft_str(state->kind)},
                                    {state->member,
                                     r ? weft_raw(weft__buf_head(&fitted), weft__buf_len(&fitted)) : weft_copy(value)}));
    else if (r != -EBADMSG)
        weft__render_fail(about->rendering, r);
    weft__buf_done(&fitted, about->hub->alloc);
}

static void tell_options(const struct update *about, const acp_state *state, const weft_json *value) {
    weft__render_for(about->rendering, ACP_EDITOR_FLAGS, 0);
    tell_fact(about, state, state->kind, value);
    weft__render_for(about->rendering, 0, ACP_EDITOR_FLAGS);
    tell_fact(about, state, ACP_FIT_SELECTS, value);
    weft__render_for(about->rendering, 0, 0);
}

static void tell_state(const struct update *about, const weft_json *data) {
    const acp_state *state = weft__acp_state(weft__render_text(about->rendering, data, "name", ""));
    weft_json value = weft_get(data, "value");
    if (state && strcmp(state->name, "options") == 0)
        tell_options(about, state, &value);
    else if (state)
        tell_fact(about, state, state->kind, &value);
}

/* Who cannot be told for want of memory finds them out with the next turn. */
void weft__acp_tell_commands(const weft_hub *hub, weft_hub_client *client, const weft_session *session) {
    static const char kind[] = "available_commands_update";
    const char *commands = session->facts[WEFT_SESSION_COMMANDS];
    bool old = weft__hub_client_form(client, "acp") == ACP_OLD;
    weft_buf out = {0}, fitted = {0};
    weft_doc *doc = NULL;
    if (!commands || weft_doc_parse(commands, strlen(commands), hub->alloc, &doc) < 0)
        return;
    int r = weft__acp_fit_value(kind, weft_doc_root(doc), hub->alloc, &fitted);
    weft_val update = WEFT_OBJ({"sessionUpdate", weft_str(kind)},
                               {"availableCommands", r > 0 ? weft_raw(weft__buf_head(&fitted), weft__buf_len(&fitted))
                                                           : weft_raw(commands, strlen(commands))});
    if (r >= 0 && old)
        r = weft__acp_put_old(hub->alloc, weft__acp_old_update, update, &out);
    if (r >= 0)
        weft_notify(weft__hub_client_peer(client), "session/update",
                    WEFT_OBJ({old ? "session_id" : "sessionId", weft_str(session->id)},
                             {"update", old ? weft_raw(weft__buf_head(&out), weft__buf_len(&out)) : update}));
    weft_doc_free(doc);
    weft__buf_done(&fitted, hub->alloc);
    weft__buf_done(&out, hub->alloc);
}

/* ---- what people say ---- */

/* A prompt stands where its turn begins, not where it was queued. */
static void tell_prompt(struct update *about, const weft_json *data) {
    const weft_task *task = weft__task_find(about->hub->engine, weft__render_text(about->rendering, data, "taskId", ""));
    if (!task || weft_get_int(data, "attempt", 1) != 1)
        return;
    int r = weft__acp_origin(about->hub, task->metadata, &about->but);
    if (r < 0)
        weft__render_fail(about->rendering, r);
    tell_text(about, "user_message_chunk", weft_str(task->prompt));
}

/* A task that is not remembered any more has its words only here. */
static void tell_forgotten_prompt(const struct update *about, const weft_json *data) {
    weft_json prompt = weft_get(data, "prompt");
    if (!weft__task_find(about->hub->engine, weft__render_text(about->rendering, data, "taskId", "")) &&
        weft_typeof(&prompt) == WEFT_STRING)
        tell_text(about, "user_message_chunk", weft_copy(&prompt));
}

/* ---- questions ---- */

static bool is_ending(const weft_hub *hub, const char *id) {
    const weft_question *question = weft__question_find(hub->engine, id);
    const weft_task *task = question && question->task ? weft__task_find(hub->engine, question->task) : NULL;
    return task && task->stopping;
}

/* The question stays open, and its editor does not ask again: its person is told where it can be answered. */
static void tell_unanswered(const weft_hub *hub, weft_hub_client *client, const char *id) {
    const weft_question *question = weft__question_find(hub->engine, id);
    char text[200];
    snprintf(text, sizeof text, "weft: this editor gave no answer that counts. It can be answered with: weft answer %s\n",
             id);
    if (question && question->session && question->state == WEFT_QUESTION_OPEN &&
        weft__hub_client_form(client, "acp") != ACP_OLD)
        weft_notify(
            weft__hub_client_peer(client), "session/update",
            WEFT_OBJ({"sessionId", weft_str(question->session)},
                     {"update", WEFT_OBJ({"sessionUpdate", weft_str("agent_thought_chunk")},
                                         {"content", WEFT_OBJ({"type", weft_str("text")}, {"text", weft_str(text)})})}));
}

/* Who cannot answer, or goes, leaves the question to the others. "cancelled" is what a client says of a turn that it ended;
 * otherwise a person closed the question, and the agent is told so. */
static void on_permission(const weft_hub *hub, weft_hub_client *client, const char *question, int r,
                          const weft_answer *answer) {
    const weft_identity *identity = weft_peer_identity(weft__hub_client_peer(client));
    char who[WEFT_WHO];
    if (r < 0 || !weft__acp_may_answer(hub, identity))
        return;
    weft_json outcome = answer->result ? weft_get(answer->result, "outcome") : (weft_json){0};
    const char *how = weft_get_str(&outcome, "outcome", "");
    const char *option = weft_get_str(&outcome, "optionId", weft_get_str(&outcome, "option_id", ""));
    bool closed = strcmp(how, "cancelled") == 0, chosen = strcmp(how, "selected") == 0 && *option;
    if (is_ending(hub, question) && !chosen)
        return;
    r = closed || chosen ? weft__question_answer(hub->engine, question, closed ? WEFT_OPTION_DENIED : option,
                                                 weft__who(identity, who), NULL, NULL, NULL)
                         : -EINVAL;
    if (r == -EINVAL)
        tell_unanswered(hub, client, question);
}

static bool is_option_kind(const char *kind) {
    static const char *const known[] = {"allow_once", "allow_always", "reject_once", "reject_always"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i], kind) == 0)
            return true;
    return false;
}

/* In ACP's words. One of a kind that ACP does not have cannot be shown there. */
static int write_options(weft_buf *out, const weft_alloc *alloc, const weft_json *options) {
    int r = weft__buf_put(out, alloc, "[", 1), count = 0;
    for (weft_iter it = weft_iterate(options); r >= 0 && weft_next(&it);) {
        weft_json id = weft_get(&it.value, "id"), name = weft_get(&it.value, "name"), kind = weft_get(&it.value, "kind");
        if (!is_option_kind(weft_str_of(&kind, "")))
            continue;
        weft_val option = WEFT_OBJ({"optionId", weft_copy(&id)}, {"name", weft_copy(&name)}, {"kind", weft_copy(&kind)});
        r = count++ ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__write_val(out, alloc, &option);
    }
    if (r >= 0)
        r = weft__buf_put(out, alloc, "]", 1);
    return r < 0 ? r : count;
}

/* The call in its own wrapping, and the rest as it is spelled there. */
static void ask_in_old(const struct update *about, const char *question, weft_val tool, const weft_buf *options) {
    const weft_alloc *alloc = about->hub->alloc;
    weft_buf call = {0}, choices = {0};
    int r = weft__acp_put_old(alloc, weft__acp_old_tool_call, tool, &call);
    if (r >= 0)
        r = weft__acp_put_old(alloc, weft__acp_old_value, weft_raw(weft__buf_head(options), weft__buf_len(options)),
                              &choices);
    if (r >= 0)
        weft__render_call(about->rendering, about->session, question, "session/request_permission",
                          WEFT_OBJ({"session_id", weft_str(about->session)},
                                   {"tool_call", weft_raw(weft__buf_head(&call), weft__buf_len(&call))},
                                   {"options", weft_raw(weft__buf_head(&choices), weft__buf_len(&choices))}),
                          on_permission);
    else
        weft__render_fail(about->rendering, r);
    weft__buf_done(&call, alloc);
    weft__buf_done(&choices, alloc);
}

/* The tool call that is asked about, as a client can show it. A call without a name of its own, or none at all, has the
 * question's. >0: ret has it; 0: it is well as it is; -EBADMSG: there is none; -ENOMEM. */
static int fit_call(const weft_alloc *alloc, const weft_json *call, weft_buf *ret) {
    weft_buf fitted = {0};
    weft_doc *doc = NULL;
    int r = weft__acp_fit("tool_call_update", call, alloc, &fitted);
    if (r > 0)
        r = weft_doc_parse(weft__buf_head(&fitted), weft__buf_len(&fitted), alloc, &doc);
    int hidden = r < 0 ? r : weft__acp_hide_terminals(doc ? weft_doc_root(doc) : call, alloc, ret);
    weft_doc_free(doc);
    if (hidden != 0 || !weft__buf_len(&fitted)) {
        weft__buf_done(&fitted, alloc);
        return hidden;
    }
    *ret = fitted;
    return 1;
}

static void ask_permission(const struct update *about, const weft_json *data) {
    const weft_alloc *alloc = about->hub->alloc;
    weft_json options = weft_get(data, "options"), call = weft_get(data, "detail"), title = weft_get(data, "title");
    const char *question = weft__render_text(about->rendering, data, "questionId", "");
    weft_buf written = {0}, shown = {0};
    int r = weft__render_wanted(about->rendering, about->session) ? write_options(&written, alloc, &options) : 0;
    int fitted = r > 0 ? fit_call(alloc, &call, &shown) : 0;
    r = fitted < 0 && fitted != -EBADMSG ? fitted : r;
    weft_val tool = fitted < 0   ? WEFT_OBJ({"toolCallId", weft_str(question)}, {"title", weft_copy(&title)})
                    : fitted > 0 ? weft_raw(weft__buf_head(&shown), weft__buf_len(&shown))
                                 : weft_copy(&call);
    if (r > 0 && weft__render_variant(about->rendering) == ACP_OLD)
        ask_in_old(about, question, tool, &written);
    else if (r > 0)
        weft__render_call(about->rendering, about->session, question, "session/request_permission",
                          WEFT_OBJ({"sessionId", weft_str(about->session)}, {"toolCall", tool},
                                   {"options", weft_raw(weft__buf_head(&written), weft__buf_len(&written))}),
                          on_permission);
    else if (r < 0)
        weft__render_fail(about->rendering, r);
    weft__buf_done(&written, alloc);
    weft__buf_done(&shown, alloc);
}

/* ---- what is to be filled in ---- */

/* It has answered, and does not ask its person again: who filled that in is told where it can still be answered. */
static void tell_refused(const weft_hub *hub, weft_hub_client *client, const char *id, const char *why) {
    const weft_question *question = weft__question_find(hub->engine, id);
    char text[WEFT_FORM_WHY + 200];
    snprintf(text, sizeof text, "What was filled in was not taken: %s. It can be answered with: weft answer %s\n", why, id);
    if (question && question->session)
        weft_notify(
            weft__hub_client_peer(client), "session/update",
            WEFT_OBJ({"sessionId", weft_str(question->session)},
                     {"update", WEFT_OBJ({"sessionUpdate", weft_str("agent_thought_chunk")},
                                         {"content", WEFT_OBJ({"type", weft_str("text")}, {"text", weft_str(text)})})}));
}

/* Some editors say of a page, too, what was filled in. */
static bool is_page(const weft_hub *hub, const char *id) {
    const weft_question *question = weft__question_find(hub->engine, id);
    weft_doc *doc = NULL;
    if (!question || !question->detail || weft_doc_parse(question->detail, strlen(question->detail), hub->alloc, &doc) < 0)
        return false;
    bool page = strcmp(weft_get_str(weft_doc_root(doc), "mode", ""), "url") == 0;
    weft_doc_free(doc);
    return page;
}

/* As with a permission: "cancel" of a turn that is being ended says nothing. */
static void on_filled_in(const weft_hub *hub, weft_hub_client *client, const char *question, int r,
                         const weft_answer *answer) {
    const weft_identity *identity = weft_peer_identity(weft__hub_client_peer(client));
    char who[WEFT_WHO];
    if (r < 0 || !answer->result || !weft__acp_may_answer(hub, identity))
        return;
    const char *action = weft_get_str(answer->result, "action", "");
    weft_json content = weft_get(answer->result, "content");
    bool accepted = strcmp(action, "accept") == 0, cancelled = strcmp(action, "cancel") == 0;
    if (cancelled ? is_ending(hub, question) : !accepted && strcmp(action, "decline") != 0)
        return;
    char why[WEFT_FORM_WHY];
    weft_question_answer given = {.option = cancelled ? WEFT_OPTION_DENIED : action,
                                  .by = weft__who(identity, who),
                                  .content = accepted && content.text && !is_page(hub, question) ? &content : NULL,
                                  .why = why};
    if (weft__question_answer_with(hub->engine, question, &given, NULL, NULL) == -EDOM)
        tell_refused(hub, client, question, why);
}

static int put_elsewhere(weft_buf *out, const weft_alloc *alloc, weft_bytes title, const char *question) {
    static const char before[] = "The agent asks: ", behind[] = "\nThis editor cannot show it. Answer it with: weft answer ";
    int r = weft__buf_put(out, alloc, before, sizeof before - 1);
    if (r >= 0)
        r = weft__buf_put(out, alloc, title.data, title.len);
    if (r >= 0)
        r = weft__buf_put(out, alloc, behind, sizeof behind - 1);
    if (r >= 0)
        r = weft__buf_put(out, alloc, question, strlen(question));
    return r < 0 ? r : weft__buf_put(out, alloc, "\n", 1);
}

/* Who cannot be asked is told that somebody is. */
static void tell_elsewhere(const struct update *about, const weft_json *data, const char *question) {
    const weft_question *known = weft__question_find(about->hub->engine, question);
    weft_json title = weft_get(data, "title");
    weft_bytes text = {"", 0};
    weft_buf words = {0};
    if (!known || known->state != WEFT_QUESTION_OPEN)
        return;
    (void) weft_bytes_of(&title, &text);
    int r = put_elsewhere(&words, about->hub->alloc, text, question);
    if (r < 0)
        weft__render_fail(about->rendering, r);
    else
        tell_text(about, "agent_thought_chunk", weft_strn(weft__buf_head(&words), weft__buf_len(&words)));
    weft__buf_done(&words, about->hub->alloc);
}

static void ask_to_fill_in(const struct update *about, const weft_json *data) {
    static const char *const members[] = {"mode", "message", "requestedSchema", "url", "elicitationId", "toolCallId"};
    enum { COUNT = sizeof members / sizeof members[0] };
    const char *question = weft__render_text(about->rendering, data, "questionId", "");
    weft_json detail = weft_get(data, "detail");
    unsigned needs =
        strcmp(weft__render_text(about->rendering, &detail, "mode", ""), "url") == 0 ? ACP_EDITOR_URLS : ACP_EDITOR_FORMS;
    weft_member params[COUNT + 1] = {{"sessionId", weft_str(about->session)}};
    size_t count = 1;
    for (size_t i = 0; i < COUNT; i++) {
        weft_json value = weft_get(&detail, members[i]);
        if (value.text)
            params[count++] = (weft_member){members[i], weft_copy(&value)};
    }
    weft__render_for(about->rendering, needs, 0);
    weft__render_call(about->rendering, about->session, question, "elicitation/create", weft_obj(params, count),
                      on_filled_in);
    weft__render_for(about->rendering, 0, needs);
    if (strcmp(about->event->type, ACP_OPEN_QUESTION) != 0)
        tell_elsewhere(about, data, question);
    weft__render_for(about->rendering, 0, 0);
}

static void tell_elicited(const struct update *about, const weft_json *data) {
    weft_json id = weft_get(data, "elicitationId");
    weft__render_for(about->rendering, ACP_EDITOR_URLS, 0);
    weft__render_notify(about->rendering, about->session, "elicitation/complete",
                        WEFT_OBJ({"elicitationId", weft_copy(&id)}));
    weft__render_for(about->rendering, 0, 0);
}

/* How an agent is logged in is a choice, as a permission is. */
static void tell_question(const struct update *about, const weft_json *data) {
    const char *kind = weft__render_text(about->rendering, data, "kind", "");
    if (strcmp(kind, "permission") == 0 || strcmp(kind, "login") == 0)
        ask_permission(about, data);
    else if (strcmp(kind, "elicitation") == 0)
        ask_to_fill_in(about, data);
}

/* ---- the end of a turn ---- */

/* In the older form a prompt is answered when it was accepted; this says the rest, as the answer to a prompt of today would.
 */
static void tell_end(const struct update *about, const weft_json *data) {
    const char *id = weft__render_text(about->rendering, data, "taskId", "");
    const weft_task *task = weft__task_find(about->hub->engine, id);
    const char *stop = task ? weft__acp_stop_reason(task) : "end_turn";
    if (weft__render_variant(about->rendering) != ACP_OLD)
        return;
    weft_val error = stop ? weft_none()
                          : WEFT_OBJ({"code", weft_int(weft__acp_failure_code(task))},
                                     {"message", weft_str(task->error ? task->error : "The agent failed")},
                                     {"data", WEFT_OBJ({"reason", weft_str(task->reason ? task->reason : "agentFailed")})});
    weft__render_notify(about->rendering, about->session, ACP_OLD_TURN_ENDED,
                        WEFT_OBJ({"session_id", weft_str(about->session)}, {"task_id", weft_str(id)},
                                 {"stop_reason", weft_str_or_none(stop)}, {"error", error}));
}

static bool is_end_of_task(const char *type) {
    return strcmp(type, "task.completed") == 0 || strcmp(type, "task.failed") == 0 || strcmp(type, "task.cancelled") == 0;
}

void weft__acp_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    struct update about = {hub, rendering, event, weft__render_text(rendering, data, "sessionId", NULL), 0};
    if (!about.session || !weft__render_wanted(rendering, about.session))
        return;
    if (strcmp(event->type, "session.update") == 0)
        tell_agent(&about, data);
    else if (strcmp(event->type, "session.output") == 0)
        tell_output(&about, data);
    else if (strcmp(event->type, "session.state") == 0)
        tell_state(&about, data);
    else if (strcmp(event->type, "task.started") == 0)
        tell_prompt(&about, data);
    else if (strcmp(event->type, "task.queued") == 0)
        tell_forgotten_prompt(&about, data);
    else if (strcmp(event->type, "question.asked") == 0 || strcmp(event->type, ACP_OPEN_QUESTION) == 0)
        tell_question(&about, data);
    else if (is_end_of_task(event->type))
        tell_end(&about, data);
    else if (strcmp(event->type, "session.elicited") == 0)
        tell_elicited(&about, data);
}

/* What happens, in Wiggum's words: to every connection that speaks it. What agents of gated tasks ask is put to all of them
 * as a call; the first that answers counts, and the others are told that it is over. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "option.h"
#include "reply.h"
#include "wiggum.h"

static weft_val copy_member(const weft_json *data, const char *name) {
    weft_json value = weft_get(data, name);
    return value.text ? weft_copy(&value) : weft_none();
}

typedef struct telling {
    const weft_hub *hub;
    weft_rendering *rendering;
    const weft_json *data;
} telling;

/* The gated task whose session this is; NULL: it is somebody else's. */
static const weft_gated *gated_of(const telling *about) {
    const char *session = weft__render_text(about->rendering, about->data, "sessionId", "");
    return about->hub->gated && *session ? weft__gated_of_session(about->hub->gated, session) : NULL;
}

/* ---- gated tasks ---- */

static void tell_iteration(const telling *about) {
    const weft_json *data = about->data;
    weft__render_notify(about->rendering, NULL, "iterationStart",
                        WEFT_OBJ({"taskId", copy_member(data, "gatedId")}, {"iteration", copy_member(data, "iteration")},
                                 {"maxIterations", copy_member(data, "maxIterations")},
                                 {"sessionId", copy_member(data, "sessionId")}, {"turn", copy_member(data, "taskId")}));
}

static void tell_gate(const telling *about) {
    const weft_json *data = about->data;
    weft_json found = weft_get(data, "diagnostics"), passed = weft_get(data, "passed");
    weft_buf findings = {0};
    bool good = weft_get_bool(data, "passed", false);
    const weft_gate_result result = {.diagnostics = weft_count(&found) ? NULL : "[]",
                                     .why = weft__render_text(about->rendering, data, "why", ""),
                                     .output = weft__render_text(about->rendering, data, "output", "")};
    int r = good || result.diagnostics == NULL ? 0 : weft__wiggum_findings(&result, about->hub->alloc, &findings);
    if (r < 0)
        weft__render_fail(about->rendering, r);
    else
        weft__render_notify(
            about->rendering, NULL, "gateResult",
            WEFT_OBJ({"taskId", copy_member(data, "gatedId")}, {"iteration", copy_member(data, "iteration")},
                     {"gate", copy_member(data, "gate")}, {"passed", weft_copy(&passed)},
                     {"exitCode", copy_member(data, "exitCode")}, {"durationMs", copy_member(data, "durationMs")},
                     {"findings", good                       ? weft_arr(NULL, 0)
                                  : weft__buf_len(&findings) ? weft_raw(weft__buf_head(&findings), weft__buf_len(&findings))
                                                             : weft_copy(&found)},
                     {"output", copy_member(data, "output")}));
    weft__buf_done(&findings, about->hub->alloc);
}

static void tell_end(const telling *about) {
    const weft_json *data = about->data;
    const char *state = weft__render_text(about->rendering, data, "state", "");
    const char *reason = weft__render_text(about->rendering, data, "reason", "");
    bool good = strcmp(state, "completed") == 0, cancelled = strcmp(state, "cancelled") == 0;
    weft_val error =
        good ? weft_none()
             : WEFT_OBJ({"code", weft_int(weft__wiggum_code(reason))},
                        {"message", cancelled
                                        ? weft_str("The task was cancelled")
                                        : weft_str(weft__render_text(about->rendering, data, "error", "The task failed"))},
                        {"data", WEFT_OBJ({"reason", weft_str(cancelled ? "taskCancelled" : reason)},
                                          {"gate", copy_member(data, "gate")})});
    weft__render_notify(about->rendering, NULL, "complete",
                        WEFT_OBJ({"taskId", copy_member(data, "gatedId")}, {"state", weft_str(state)},
                                 {"iterations", copy_member(data, "iterations")},
                                 {"sessionId", copy_member(data, "sessionId")}, {"error", error}));
}

static void tell_progress(const telling *about, weft_val text, const char *stream) {
    const weft_gated *gated = gated_of(about);
    if (gated)
        weft__render_notify(about->rendering, NULL, "progress",
                            WEFT_OBJ({"taskId", weft_str(gated->id)}, {"turn", copy_member(about->data, "taskId")},
                                     {"stream", weft_str(stream)}, {"text", text}));
}

static void tell_output(const telling *about) {
    weft_json text = weft_get(about->data, "text");
    const char *stream = weft__render_text(about->rendering, about->data, "stream", "stdout");
    if (weft_typeof(&text) == WEFT_STRING)
        tell_progress(about, weft_copy(&text), stream);
}

static void tell_update(const telling *about) {
    weft_json update = weft_get(about->data, "update"), text = weft_pointer(&update, "/content/text");
    const char *kind = weft__render_text(about->rendering, &update, "sessionUpdate", "");
    weft_json title = weft_get(&update, "title");
    if (strcmp(kind, "agent_message_chunk") == 0 && weft_typeof(&text) == WEFT_STRING)
        tell_progress(about, weft_copy(&text), "message");
    else if (strcmp(kind, "tool_call") == 0 && weft_typeof(&title) == WEFT_STRING)
        tell_progress(about, weft_copy(&title), "tool");
}

/* ---- questions ---- */

static bool may_answer(const weft_hub *hub, const weft_identity *who) {
    const weft_hub_host *host = hub->host;
    bool agent = host && host->is_agent && host->is_agent(host->ctx, who);
    return !agent && weft_has_scope(who, WEFT_WORK);
}

/* The option that a client meant: {"option": id or "allow" or "deny"}, {"allow": true}, or true and false alone. "": it said
 * nothing that can be understood. */
static const char *option_said(const weft_json *result) {
    if (weft_typeof(result) == WEFT_BOOL)
        return weft_bool_of(result, false) ? "allow" : "deny";
    weft_json allow = weft_get(result, "allow");
    if (weft_typeof(&allow) == WEFT_BOOL)
        return weft_bool_of(&allow, false) ? "allow" : "deny";
    return weft_get_str(result, "option", "");
}

static void answer_option(const weft_hub *hub, const weft_question *question, const char *said, const char *by,
                          const char *text) {
    weft_doc *options = NULL;
    const char *option = NULL;
    if (weft_doc_parse(question->options, strlen(question->options), hub->alloc, &options) < 0)
        return;
    if (weft__option_meant(weft_doc_root(options), said, strlen(said), &option) == 1)
        weft__question_answer(hub->engine, question->id, option, by, text, NULL, NULL);
    weft_doc_free(options);
}

/* Who cannot answer, or says what is no answer, leaves the question to the others. */
static void on_permission(const weft_hub *hub, weft_hub_client *client, const char *id, int r, const weft_answer *answer) {
    const weft_identity *identity = weft_peer_identity(weft__hub_client_peer(client));
    const weft_question *question = weft__question_find(hub->engine, id);
    char who[WEFT_WHO];
    if (r < 0 || !question || !answer->result || !may_answer(hub, identity))
        return;
    const char *said = option_said(answer->result);
    if (*said)
        answer_option(hub, question, said, weft__who(identity, who),
                      weft_typeof(answer->result) == WEFT_OBJECT ? weft_get_str(answer->result, "text", NULL) : NULL);
}

static void on_user_answered(const weft_hub *hub, weft_hub_client *client, const char *id, int r,
                             const weft_answer *answer) {
    const weft_identity *identity = weft_peer_identity(weft__hub_client_peer(client));
    char who[WEFT_WHO];
    if (r < 0 || !answer->result || !may_answer(hub, identity) || weft_typeof(answer->result) != WEFT_OBJECT)
        return;
    weft_json content = weft_get(answer->result, "content");
    const char *action = weft_get_str(answer->result, "action", weft_get_str(answer->result, "option", ""));
    bool given = weft_typeof(&content) == WEFT_OBJECT;
    if (!*action && given)
        action = "accept";
    if (!*action)
        return;
    weft_question_answer said = {.option = strcmp(action, "cancel") == 0 ? WEFT_OPTION_DENIED : action,
                                 .by = weft__who(identity, who),
                                 .text = weft_get_str(answer->result, "text", NULL),
                                 .content = given && strcmp(action, "accept") == 0 ? &content : NULL};
    weft__question_answer_with(hub->engine, id, &said, NULL, NULL);
}

static void tell_question(const telling *about) {
    const weft_json *data = about->data;
    const weft_gated *gated = gated_of(about);
    weft_json detail = weft_get(data, "detail"), schema = weft_get(&detail, "requestedSchema"),
              url = weft_get(&detail, "url");
    const char *kind = weft__render_text(about->rendering, data, "kind", "");
    const char *question = weft__render_text(about->rendering, data, "questionId", "");
    bool permission = strcmp(kind, "permission") == 0;
    if (!gated)
        return;
    weft__render_call(about->rendering, NULL, question, permission ? "requestPermission" : "askUser",
                      WEFT_OBJ({"taskId", weft_str(gated->id)}, {"questionId", weft_str(question)}, {"kind", weft_str(kind)},
                               {"title", copy_member(data, "title")}, {"options", copy_member(data, "options")},
                               {"detail", permission ? weft_copy(&detail) : weft_none()},
                               {"schema", schema.text ? weft_copy(&schema) : weft_none()},
                               {"url", url.text ? weft_copy(&url) : weft_none()}),
                      permission ? on_permission : on_user_answered);
}

/* ---- builds ---- */

static void tell_build(const telling *about, const char *state) {
    const weft_json *data = about->data;
    weft__render_notify(about->rendering, NULL, "buildProgress",
                        WEFT_OBJ({"buildId", copy_member(data, "buildId")}, {"kind", copy_member(data, "kind")},
                                 {"state", weft_str(state)}, {"lines", copy_member(data, "lines")},
                                 {"line", copy_member(data, "line")}, {"ok", copy_member(data, "ok")},
                                 {"durationMs", copy_member(data, "durationMs")}, {"errors", copy_member(data, "errors")},
                                 {"warnings", copy_member(data, "warnings")}));
}

static void tell_build_started(const telling *about) {
    tell_build(about, "started");
}

static void tell_build_progress(const telling *about) {
    tell_build(about, "running");
}

static void tell_build_finished(const telling *about) {
    tell_build(about, "finished");
}

static void tell_warning(const telling *about) {
    weft_json one = weft_get(about->data, "diagnostic");
    weft__render_notify(about->rendering, NULL, "buildWarning",
                        WEFT_OBJ({"buildId", copy_member(about->data, "buildId")},
                                 {"kind", copy_member(about->data, "kind")}, {"file", copy_member(&one, "file")},
                                 {"line", copy_member(&one, "line")}, {"column", copy_member(&one, "column")},
                                 {"severity", copy_member(&one, "severity")}, {"message", copy_member(&one, "message")},
                                 {"code", copy_member(&one, "code")}));
}

/* ---- the preview ---- */

/* As it came, without the number of the client that said it, which knows. */
static void tell_page(const telling *about, const char *method) {
    weft_member members[16];
    size_t count = 0;
    static const char *const names[] = {"level",  "message", "args",      "url",          "line",
                                        "column", "stack",   "canGoBack", "canGoForward", "dropped"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        weft_val value = copy_member(about->data, names[i]);
        if (value.kind)
            members[count++] = (weft_member){names[i], value};
    }
    weft__render_notify_others(about->rendering, NULL, (uint64_t) weft_get_int(about->data, "client", 0), method,
                               weft_obj(members, count));
}

static void tell_console(const telling *about) {
    tell_page(about, "console");
}

static void tell_page_error(const telling *about) {
    tell_page(about, "error");
}

static void tell_page_state(const telling *about) {
    tell_page(about, "updateNavigationState");
}

static void tell_navigate(const telling *about) {
    tell_page(about, "navigate");
}

static void tell_refresh(const telling *about) {
    tell_page(about, "refresh");
}

static const struct {
    const char *type;
    void (*tell)(const telling *about);
} tellers[] = {
    {"session.output", tell_output},       {"session.update", tell_update},
    {"gated.iteration", tell_iteration},   {"gated.gate", tell_gate},
    {"gated.finished", tell_end},          {"question.asked", tell_question},
    {"build.started", tell_build_started}, {"build.progress", tell_build_progress},
    {"build.warning", tell_warning},       {"build.finished", tell_build_finished},
    {"preview.console", tell_console},     {"preview.error", tell_page_error},
    {"preview.state", tell_page_state},    {"preview.navigate", tell_navigate},
    {"preview.refresh", tell_refresh},
};

void weft__wiggum_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data) {
    for (size_t i = 0; i < sizeof tellers / sizeof tellers[0]; i++)
        if (strcmp(tellers[i].type, event->type) == 0) {
            tellers[i].tell(&(telling){hub, rendering, data});
            return;
        }
}

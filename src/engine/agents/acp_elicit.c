/* elicitation/create: an agent asks a person to fill in a form, or to go to a URL. Handed to the host as a question; what is
 * filled in comes back by accept(). elicitation/complete says that what the URL was for is done. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "acp_private.h"
#include "form.h"

/* A URL and an id go back and forth whole, so that they cannot be cut. */
#define LONGEST_URL 8192
#define LONGEST_ID 1024

weft_val weft__acp_elicit_answer(const char *option, const weft_json *content, weft_member members[2]) {
    bool accepted = option && strcmp(option, "accept") == 0;
    members[0] = (weft_member){"action", weft_str(accepted ? "accept" : option ? "decline" : "cancel")};
    members[1] = (weft_member){"content", accepted && content ? weft_copy(content) : weft_none()};
    return weft_obj(members, 2);
}

static int reply_cancel(weft_req *req) {
    weft_member members[2];
    return weft_reply(req, weft__acp_elicit_answer(NULL, NULL, members));
}

/* It may be about a session, or about a request of ours that opens one or logs in: then it is whoever has a turn. */
static weft_driver_session *who_is_asked(const weft_driver_process *process, const weft_json *params) {
    weft_driver_session *named = weft__acp_session_of(process, params);
    for (weft_link *link = process->sessions.next; !named && link != &process->sessions; link = link->next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        if (session->turn != WEFT_ACP_IDLE && !weft_get(params, "sessionId").text)
            named = session;
    }
    return named;
}

/* People are shown it, and programs may open it: pages only. */
static bool is_page(const char *url) {
    return strlen(url) <= LONGEST_URL && (strncasecmp(url, "https://", 8) == 0 || strncasecmp(url, "http://", 7) == 0);
}

static const char *why_not(const weft_json *params, bool form, char why[WEFT_FORM_WHY]) {
    weft_json schema = weft_get(params, "requestedSchema");
    const char *id = weft_get_str(params, "elicitationId", "");
    if (form)
        return weft__form_check(&schema, why) < 0 ? why : NULL;
    if (strcmp(weft_get_str(params, "mode", ""), "url") != 0)
        return "there is no such mode of elicitation here";
    if (!is_page(weft_get_str(params, "url", "")))
        return "a person can be sent to http and https only";
    return !*id || strlen(id) > LONGEST_ID ? "it needs an elicitationId of at most 1024 bytes" : NULL;
}

static weft_val copy_or_none(const weft_json *object, const char *name) {
    weft_json value = weft_get(object, name);
    return value.text && weft_typeof(&value) != WEFT_NULL ? weft_copy(&value) : weft_none();
}

static int ask_to_fill_in(weft_driver_session *session, weft_req *req, const weft_json *params, bool form) {
    weft_val accept = WEFT_OBJ({"id", weft_str("accept")}, {"name", weft_str(form ? "Send" : "Go there")},
                               {"kind", weft_str("allow_once")});
    weft_val decline =
        WEFT_OBJ({"id", weft_str("decline")}, {"name", weft_str("Decline")}, {"kind", weft_str("reject_once")});
    weft_val options[] = {accept, decline};
    weft_json message = weft_get(params, "message");
    weft_acp_asking asking = {
        .kind = form ? WEFT_ACP_FORM : WEFT_ACP_URL,
        .req = req,
        .elicitation = form ? NULL : weft_get_str(params, "elicitationId", ""),
        .name = "elicitation",
        .title = {"", 0},
        .fallback = "The agent asks for input",
        .options = weft_arr(options, 2),
        .detail = WEFT_OBJ({"mode", weft_str(form ? "form" : "url")}, {"message", copy_or_none(params, "message")},
                           {"requestedSchema", form ? copy_or_none(params, "requestedSchema") : weft_none()},
                           {"url", form ? weft_none() : copy_or_none(params, "url")},
                           {"elicitationId", form ? weft_none() : copy_or_none(params, "elicitationId")},
                           {"toolCallId", copy_or_none(params, "toolCallId")}),
    };
    (void) weft_bytes_of(&message, &asking.title); /* without one it has the fallback */
    if (!form) {
        const weft_alloc *alloc = session->process->alloc;
        weft__free(alloc, session->elicitation);
        session->elicitation = weft__strndup(alloc, asking.elicitation, strlen(asking.elicitation));
    }
    return weft__acp_ask_host(session, &asking);
}

int weft__acp_elicit(weft_req *req, const weft_json *params, void *ctx) {
    weft_driver_session *session = who_is_asked(ctx, params);
    bool form = strcmp(weft_get_str(params, "mode", "form"), "form") == 0;
    char room[WEFT_FORM_WHY];
    if (weft_req_is_notification(req))
        return 0;
    if (!session || session->turn == WEFT_ACP_IDLE || session->only_open || session->cancelling || session->decided)
        return reply_cancel(req);
    const char *why = why_not(params, form, room);
    weft__acp_session_hold(session);
    int r = why ? weft__acp_refuse_ask(session, req, WEFT_INVALID_PARAMS, why, "invalidParams")
            : weft__acp_asks_full(session)
                ? weft__acp_refuse_ask(session, req, WEFT_INTERNAL_ERROR, "Too many questions are open", "tooManyQuestions")
                : ask_to_fill_in(session, req, params, form);
    weft__acp_session_release(session);
    return r;
}

static weft_driver_session *who_went_there(const weft_driver_process *process, const char *id) {
    for (weft_link *link = process->sessions.next; link != &process->sessions; link = link->next) {
        weft_driver_session *session = WEFT_CONTAINER(link, weft_driver_session, link);
        if (session->elicitation && strcmp(session->elicitation, id) == 0)
            return session;
    }
    return NULL;
}

int weft__acp_on_elicited(weft_req *req, const weft_json *params, void *ctx) {
    const char *id = weft_get_str(params, "elicitationId", "");
    weft_driver_session *session = who_went_there(ctx, id);
    if (session)
        weft__acp_asks_elicited(session, id);
    return weft_reply(req, weft_null());
}

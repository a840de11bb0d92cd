/* agent/respond: an answer to what claude_permission or claude_waiting asked. Whoever answers first is the one; who comes
 * later is told what the answer was. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "alloc.h"
#include "cdev.h"
#include "form.h"
#include "option.h"
#include "reply.h"
#include "write.h"

struct respond_params {
    const char *tool_use_id, *response, *toolUseId;
    bool is_error, isError;
};
const weft_param weft__cdev_respond_params[] = {
    {"tool_use_id", WEFT_PARAM_str, offsetof(struct respond_params, tool_use_id), WEFT_NULLABLE,
     "as claude_permission or claude_waiting said it"},
    {"response", WEFT_PARAM_str, offsetof(struct respond_params, response), WEFT_NULLABLE,
     "allow or deny, or the id or kind of one of the options; of a form what is filled in, as JSON, or its only value"},
    {"is_error", WEFT_PARAM_bool, offsetof(struct respond_params, is_error), WEFT_NULLABLE, "true: it is denied"},
    {"toolUseId", WEFT_PARAM_str, offsetof(struct respond_params, toolUseId), WEFT_NULLABLE, "the same as tool_use_id"},
    {"isError", WEFT_PARAM_bool, offsetof(struct respond_params, isError), WEFT_NULLABLE, "the same as is_error"},
    WEFT_END(struct respond_params),
};

/* ---- which question ---- */

static bool is_call(const weft_hub *hub, const weft_question *question, const char *id) {
    weft_doc *doc;
    if (!question->detail || weft_doc_parse(question->detail, strlen(question->detail), hub->alloc, &doc) < 0)
        return false;
    bool same = strcmp(weft_get_str(weft_doc_root(doc), "toolCallId", ""), id) == 0;
    weft_doc_free(doc);
    return same;
}

/* By its own id, or by the agent's id of the tool call if only one that is open has that. */
static const weft_question *find_question(const weft_hub *hub, const char *id) {
    const weft_question *named = weft__question_find(hub->engine, id), *found = NULL;
    for (const weft_question *each = weft__question_first(hub->engine, false); each && !named;
         each = weft__question_next(hub->engine, each, false))
        if (is_call(hub, each, id)) {
            if (found)
                return NULL;
            found = each;
        }
    return named ? named : found;
}

/* ---- what is meant ---- */

/* Words of the original's app, besides those that all answers may have. */
static const struct {
    const char *said, *means;
} words[] = {
    {"approve", "allow"}, {"approved", "allow"}, {"allowed", "allow"}, {"accept", "allow"},
    {"ok", "allow"},      {"true", "allow"},     {"denied", "deny"},   {"rejected", "deny"},
    {"cancel", "deny"},   {"cancelled", "deny"}, {"false", "deny"},
};

/* 1 meant, 0 none of them, <0 why none can be. An option's own id comes first. */
static int find_option(const weft_json *options, const char *said, const char **ret) {
    int r = weft__option_meant(options, said, strlen(said), ret);
    for (size_t i = 0; r == 0 && i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(words[i].said, said) == 0)
            return weft__option_meant(options, words[i].means, strlen(words[i].means), ret);
    return r;
}

/* ---- answering ---- */

struct responding {
    const weft_hub *hub;
    weft_req *req;
    char id[];
};

static void refuse_resolved(weft_req *req, const weft_question *question) {
    if (req)
        weft_fail(req, 409, "The question is answered already, or over",
                  WEFT_OBJ({"reason", weft_str("questionResolved")},
                           {"state", question ? weft_str(weft__question_states[question->state]) : weft_none()},
                           {"response", weft_str_or_none(question ? question->option : NULL)},
                           {"answered_by", weft_str_or_none(question ? question->by : NULL)}));
}

static void on_responded(void *ctx, int r, const weft_question *question) {
    struct responding *responding = ctx;
    const weft_hub *hub = responding->hub;
    if (r == -EALREADY)
        refuse_resolved(responding->req, weft__question_find(hub->engine, responding->id));
    else if (r < 0)
        weft__reply_failure(responding->req, r);
    else
        weft__reply_val(responding->req, WEFT_OBJ({"status", weft_str("sent")}, {"tool_use_id", weft_str(question->id)}));
    weft__free(hub->alloc, responding);
}

static int send_response(weft_req *req, const weft_hub *hub, const weft_question *question,
                         const weft_question_answer *answer) {
    char who[WEFT_WHO];
    size_t size = strlen(question->id) + 1;
    struct responding *responding = weft__alloc(hub->alloc, sizeof *responding + size);
    if (!responding)
        return -ENOMEM;
    responding->hub = hub;
    responding->req = weft__req_keep(req);
    memcpy(responding->id, question->id, size);
    weft_question_answer given = *answer;
    given.by = weft__who(weft_req_identity(req), who);
    int r = weft__question_answer_with(hub->engine, question->id, &given, on_responded, responding);
    if (r < 0)
        weft__free(hub->alloc, responding);
    return r;
}

static int refuse_unknown(weft_req *req, const char *id) {
    return weft__reply_error(req, CDEV_IDLE, "agentIdle", "No agent waits for an answer to \"%.200s\"", id);
}

static int refuse_response(weft_req *req, const weft_question *question, int meant) {
    if (weft_req_is_notification(req))
        return 0;
    return weft_fail(req, WEFT_INVALID_PARAMS,
                     meant < 0 ? "Invalid params: response must name one of the options"
                               : "Invalid params: response is not one of the options",
                     WEFT_OBJ({"reason", weft_str("invalidParams")}, {"path", weft_str("/response")},
                              {"options", weft_raw(question->options, strlen(question->options))}));
}

/* ---- forms ---- */

/* An object is what was filled in. Anything else is the value of the only field, if there is only one. */
static int content_of(const weft_hub *hub, const weft_question *question, const char *said, weft_buf *out) {
    weft_doc *doc = NULL, *detail = NULL;
    int r = weft_doc_parse(question->detail, strlen(question->detail), hub->alloc, &detail);
    if (r < 0)
        return r;
    bool json = weft_doc_parse(said, strlen(said), hub->alloc, &doc) >= 0;
    weft_json fields = weft_pointer(weft_doc_root(detail), "/requestedSchema/properties");
    weft_iter it = weft_iterate(&fields);
    if (json && weft_typeof(weft_doc_root(doc)) == WEFT_OBJECT)
        r = weft__buf_put(out, hub->alloc, said, strlen(said));
    else if (weft_typeof(&fields) == WEFT_OBJECT && weft_count(&fields) == 1 && weft_next(&it)) {
        weft_form_type type = weft__form_type(&it.value);
        weft_val name = weft_copy(&it.name), value = json && type != WEFT_FORM_TEXT && type != WEFT_FORM_CHOICE
                                                         ? weft_copy(weft_doc_root(doc))
                                                         : weft_str(said);
        r = weft__buf_put(out, hub->alloc, "{", 1);
        if (r >= 0)
            r = weft__write_val(out, hub->alloc, &name);
        if (r >= 0)
            r = weft__buf_put(out, hub->alloc, ":", 1);
        if (r >= 0)
            r = weft__write_val(out, hub->alloc, &value);
        if (r >= 0)
            r = weft__buf_put(out, hub->alloc, "}", 1);
    } else
        r = -EINVAL;
    weft_doc_free(doc);
    weft_doc_free(detail);
    return r;
}

/* -EINVAL: it has no form, or it is not meant for it. */
static int respond_with_form(weft_req *req, const weft_hub *hub, const weft_question *question, const char *said,
                             char why[WEFT_FORM_WHY]) {
    weft_buf out = {0};
    weft_doc *doc = NULL;
    int r = strcmp(question->kind, "elicitation") == 0 ? content_of(hub, question, said, &out) : -EINVAL;
    if (r >= 0)
        r = weft_doc_parse(weft__buf_head(&out), weft__buf_len(&out), hub->alloc, &doc);
    if (r >= 0)
        r = send_response(req, hub, question,
                          &(weft_question_answer){.option = "accept", .content = weft_doc_root(doc), .why = why});
    weft_doc_free(doc);
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* What was said goes with the answer, as the person's own words. */
static int respond_to_question(weft_req *req, const weft_hub *hub, const weft_question *question, const char *said,
                               bool denied) {
    weft_doc *doc;
    const char *option = NULL;
    char why[WEFT_FORM_WHY] = "";
    int r = weft_doc_parse(question->options, strlen(question->options), hub->alloc, &doc);
    if (r < 0)
        return r;
    bool value = !denied && strcmp(question->kind, "elicitation") == 0 &&
                 (strcmp(said, "true") == 0 || strcmp(said, "false") == 0); /* a word for an option, and a value */
    int meant = value ? 0 : find_option(weft_doc_root(doc), denied ? "deny" : said, &option);
    r = meant > 0 ? send_response(req, hub, question,
                                  &(weft_question_answer){.option = option, .text = *said ? said : NULL, .why = why})
                  : respond_with_form(req, hub, question, said, why);
    if (r == -EDOM)
        r = weft__reply_invalid(req, "/response", "%s", why);
    else if (r == -EINVAL)
        r = refuse_response(req, question, meant);
    else if (r == -EALREADY)
        refuse_resolved(weft__req_keep(req), question), r = 0;
    else if (r < 0 && r != -ENOMEM)
        r = r == -ENOENT ? refuse_unknown(req, question->id) : weft__reply_failure(weft__req_keep(req), r);
    weft_doc_free(doc);
    return r;
}

int weft__cdev_respond(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct respond_params *in = weft_req_params(req);
    const char *id = in->tool_use_id ? in->tool_use_id : in->toolUseId;
    (void) params;
    if (!id || !*id)
        return weft__reply_invalid(req, "/tool_use_id", "tool_use_id is missing");
    bool denied = in->is_error || in->isError;
    if (!denied && (!in->response || !*in->response))
        return weft__reply_invalid(req, "/response", "response is missing");
    const weft_question *question = find_question(hub, id);
    if (!question)
        return refuse_unknown(req, id);
    if (question->state != WEFT_QUESTION_OPEN)
        return refuse_resolved(weft__req_keep(req), question), 0;
    return respond_to_question(req, hub, question, in->response ? in->response : "", denied);
}

/* ---- what is open ---- */

static int write_question(const weft_hub *hub, const weft_question *question, weft_buf *out) {
    weft_doc *doc = NULL;
    char created[WEFT_STAMP];
    const char *detail = question->detail ? question->detail : "{}";
    int r = weft_doc_parse(detail, strlen(detail), hub->alloc, &doc);
    if (r < 0)
        return r;
    weft_json input = weft_get(weft_doc_root(doc), "rawInput"), kind = weft_get(weft_doc_root(doc), "kind");
    input = input.text ? input : *weft_doc_root(doc);
    weft_val value = WEFT_OBJ({"tool_use_id", weft_str(question->id)},
                              {"tool_name", kind.text ? weft_copy(&kind) : weft_str(question->kind)},
                              {"input", weft_strn(input.text, input.len)}, {"description", weft_str(question->title)},
                              {"options", weft_raw(question->options, strlen(question->options))},
                              {"session_id", weft_str_or_none(question->session)},
                              {"timestamp", weft_str(weft__stamp(question->created_ms, created))});
    r = weft__write_val(out, hub->alloc, &value);
    weft_doc_free(doc);
    return r;
}

int weft__cdev_write_pending(const weft_hub *hub, const char *session, weft_buf *out) {
    bool first = true;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (const weft_question *question = weft__question_first(hub->engine, false); r >= 0 && question;
         question = weft__question_next(hub->engine, question, false)) {
        if (session && (!question->session || strcmp(session, question->session) != 0))
            continue;
        r = first ? 0 : weft__buf_put(out, hub->alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = write_question(hub, question, out);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

/* Questions to people: which are open, and answering one. Anybody may answer; the first valid answer wins, and who comes
 * later is told what it was. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "form.h"
#include "hub_methods.h"
#include "option.h"
#include "reply.h"
#include "write.h"

/* ---- showing ---- */

/* null: it was denied without choosing one. */
static weft_val option_of(const weft_question *question) {
    return weft_str(strcmp(question->option, WEFT_OPTION_DENIED) == 0 ? NULL : question->option);
}

static weft_val answer_of(const weft_question *question, weft_member room[5]) {
    if (!question->option)
        return weft_none();
    room[0] = (weft_member){"option", option_of(question)};
    room[1] = (weft_member){"by", weft_str(question->by)};
    room[2] = (weft_member){"text", weft_str_or_none(question->text)};
    room[3] =
        (weft_member){"content", question->content ? weft_raw(question->content, strlen(question->content)) : weft_none()};
    room[4] = (weft_member){"approvalId", weft_str_or_none(question->approval)};
    return weft_obj(room, 5);
}

static weft_val raw_or_null(const char *json) {
    return json ? weft_raw(json, strlen(json)) : weft_null();
}

static int write_question(weft_buf *out, const weft_alloc *alloc, const weft_question *question) {
    char created[WEFT_STAMP], expires[WEFT_STAMP];
    weft_member answer[5];
    weft_val value = WEFT_OBJ(
        {"id", weft_str(question->id)}, {"taskId", weft_str(question->task)}, {"sessionId", weft_str(question->session)},
        {"ruleId", weft_str(question->rule)}, {"kind", weft_str(question->kind)}, {"title", weft_str(question->title)},
        {"options", raw_or_null(question->options)}, {"detail", raw_or_null(question->detail)},
        {"state", weft_str(weft__question_states[question->state])}, {"orphaned", weft_bool(question->orphaned)},
        {"createdAt", weft__stamp_val(question->created_ms, created)},
        {"expiresAt", weft__stamp_val(question->expires_ms, expires)}, {"answer", answer_of(question, answer)});
    return weft__write_val(out, alloc, &value);
}

struct questions {
    bool all;
};
const weft_param weft__hub_questions_params[] = {
    {"all", WEFT_PARAM_bool, offsetof(struct questions, all), WEFT_NULLABLE,
     "also those that are over and still remembered"},
    WEFT_END(struct questions),
};

int weft__hub_write_questions(weft_buf *out, const weft_hub *hub, bool all) {
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    bool first = true;
    for (const weft_question *question = weft__question_first(hub->engine, all); r >= 0 && question;
         question = weft__question_next(hub->engine, question, all)) {
        r = first ? 0 : weft__buf_put(out, hub->alloc, ",", 1);
        first = false;
        if (r >= 0)
            r = write_question(out, hub->alloc, question);
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

int weft__hub_questions(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct questions *in = weft_req_params(req);
    weft_buf out = {0};
    (void) params;
    int r = weft__hub_write_questions(&out, hub, in->all);
    if (r >= 0)
        r = weft_reply(req, WEFT_OBJ({"questions", weft_raw(weft__buf_head(&out), weft__buf_len(&out))}));
    weft__buf_done(&out, hub->alloc);
    return r;
}

/* ---- answering ---- */

struct answer {
    const char *questionId, *option, *text;
    weft_json content, always;
};
const weft_param weft__hub_answer_params[] = {
    {"questionId", WEFT_PARAM_str, offsetof(struct answer, questionId), WEFT_REQUIRED | WEFT_NONEMPTY, "which question"},
    {"option", WEFT_PARAM_str, offsetof(struct answer, option), WEFT_REQUIRED | WEFT_NONEMPTY,
     "the id of one of its options, its kind (allow_once, ...), or allow (once) or deny"},
    {"text", WEFT_PARAM_str, offsetof(struct answer, text), WEFT_NULLABLE, "what to add: a reason, for instance"},
    {"content", WEFT_PARAM_obj, offsetof(struct answer, content), WEFT_NULLABLE,
     "what is filled in, by the requestedSchema of its detail; what is left out has its default"},
    {"always", WEFT_PARAM_obj, offsetof(struct answer, always), WEFT_NULLABLE,
     "answer the same so from now on: {scope: \"session\" or \"project\", command?: its first words, path?: beneath which}"},
    WEFT_END(struct answer),
};

/* why: of weft__option_meant(); 0: it is none of them. */
static int refuse_option(weft_req *req, const weft_question *question, const char *said, int why) {
    char message[512];
    if (why)
        snprintf(message, sizeof message, "Invalid params: %s %s", question->id, weft__option_why(why));
    else
        snprintf(message, sizeof message, "Invalid params: \"%.200s\" is none of the options of %s", said, question->id);
    if (weft_req_is_notification(req))
        return 0;
    return weft_fail(req, WEFT_INVALID_PARAMS, message,
                     WEFT_OBJ({"reason", weft_str("invalidParams")}, {"path", weft_str("/option")},
                              {"options", raw_or_null(question->options)}));
}

static int refuse_unknown_question(weft_req *req, const char *id) {
    return weft__reply_error(req, 404, "questionNotFound", "Question not found: %s", id);
}

/* It is over: say how it ended, so that whoever asked can show it. */
static int refuse_resolved(weft_req *req, const weft_question *question) {
    weft_member answer[5];
    if (!req)
        return 0;
    return weft_fail(req, 409, "The question is answered already, or over",
                     WEFT_OBJ({"reason", weft_str("questionResolved")},
                              {"state", question ? weft_str(weft__question_states[question->state]) : weft_none()},
                              {"answer", question ? answer_of(question, answer) : weft_none()}));
}

/* An answer on its way to the store. */
struct answering {
    const weft_hub *hub;
    weft_req *req;
    char id[];
};

/* Somebody else's may have been stored first, also when nobody knew of it yet when this one came. */
static void on_question_answered(void *ctx, int r, const weft_question *question) {
    struct answering *answering = ctx;
    const weft_hub *hub = answering->hub;
    weft_req *req = answering->req;
    if (r == -EALREADY)
        refuse_resolved(req, weft__question_find(hub->engine, answering->id));
    else if (r < 0)
        weft__reply_failure(req, r);
    else
        weft__reply_val(req,
                        WEFT_OBJ({"answered", weft_bool(true)}, {"questionId", weft_str(question->id)},
                                 {"option", option_of(question)}, {"approvalId", weft_str_or_none(question->approval)}));
    weft__free(hub->alloc, answering);
}

/* why: WEFT_FORM_WHY bytes, for -EDOM. */
static int send_question_answer(weft_req *req, const weft_hub *hub, const struct answer *in, const char *option, char *why) {
    char who[WEFT_WHO];
    size_t size = strlen(in->questionId) + 1;
    struct answering *answering = weft__alloc(hub->alloc, sizeof *answering + size);
    if (!answering)
        return -ENOMEM;
    answering->hub = hub;
    answering->req = weft__req_keep(req);
    memcpy(answering->id, in->questionId, size);
    weft_question_answer answer = {.option = option,
                                   .by = weft__who(weft_req_identity(req), who),
                                   .text = in->text,
                                   .content = in->content.text ? &in->content : NULL,
                                   .always = in->always.text ? &in->always : NULL,
                                   .why = why};
    int r = weft__question_answer_with(hub->engine, in->questionId, &answer, on_question_answered, answering);
    if (r < 0)
        weft__free(hub->alloc, answering);
    return r;
}

/* *ret_why: 0, or why no option is meant. */
static int answer_with_option(weft_req *req, const weft_hub *hub, const weft_question *question, const struct answer *in,
                              int *ret_why, char *why) {
    weft_doc *doc;
    const char *option;
    int r = weft_doc_parse(question->options, strlen(question->options), hub->alloc, &doc);
    if (r < 0)
        return r;
    int meant = weft__option_meant(weft_doc_root(doc), in->option, strlen(in->option), &option);
    r = meant > 0 ? send_question_answer(req, hub, in, option, why) : -EINVAL;
    *ret_why = meant < 0 ? meant : 0;
    weft_doc_free(doc);
    return r;
}

int weft__hub_answer(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct answer *in = weft_req_params(req);
    char filled[WEFT_FORM_WHY];
    int why = 0;
    (void) params;
    const weft_question *question = weft__question_find(hub->engine, in->questionId);
    if (!question)
        return refuse_unknown_question(req, in->questionId);
    if (question->state != WEFT_QUESTION_OPEN)
        return refuse_resolved(weft__req_keep(req), question);
    int r = answer_with_option(req, hub, question, in, &why, filled);
    if (r >= 0 || r == -ENOMEM)
        return r;
    if (r == -EINVAL)
        return refuse_option(req, question, in->option, why);
    if (r == -EDOM)
        return weft__reply_invalid(req, in->always.text ? "/always" : "/content", "%s", filled);
    if (r == -EALREADY)
        return refuse_resolved(weft__req_keep(req), question);
    return r == -ENOENT ? refuse_unknown_question(req, in->questionId) : weft__reply_failure(req, r);
}

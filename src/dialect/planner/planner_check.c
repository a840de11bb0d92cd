/* validate_code: checkers that are installed here look at a piece of code. A language that has none here is given to an
 * executor that speaks this protocol, if there is one. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "answer_shape.h"
#include "plain_name.h"
#include "planner.h"
#include "reply.h"
#include "write.h"

#define LANGUAGE 64 /* bytes of its name */

struct validate {
    const char *code, *language;
    weft_json rules;
};
const weft_param weft__planner_validate_params[] = {
    {"code", WEFT_PARAM_str, offsetof(struct validate, code), WEFT_REQUIRED, "the text of one file, at most 1 MiB"},
    {"language", WEFT_PARAM_str, offsetof(struct validate, language), WEFT_REQUIRED | WEFT_NONEMPTY,
     "c, c++, python, javascript, typescript, shell, json, yaml, or one that is configured"},
    {"rules", WEFT_PARAM_arr, offsetof(struct validate, rules), WEFT_NULLABLE,
     "names of the checkers' rules; absent: their usual ones"},
    WEFT_END(struct validate),
};

/* A request that waits for its checkers. */
struct validation {
    weft_hub_wait wait;
    const weft_hub *hub;
    weft_req *req; /* NULL: nobody waits for the answer */
    uint64_t id;
};

static weft_req *take_validation(struct validation *self) {
    weft_req *req = self->req;
    self->req = NULL;
    if (req)
        weft_req_on_cancel(req, NULL, NULL);
    return req;
}

static void end_validation(weft_hub_wait *wait) {
    struct validation *self = WEFT_CONTAINER(wait, struct validation, wait);
    weft__reply_failure(take_validation(self), -ESHUTDOWN);
    weft__free(self->hub->alloc, self);
}

/* ---- the answer ---- */

static int write_issue(weft_buf *out, const weft_alloc *alloc, const weft_issue *issue) {
    weft_val value = WEFT_OBJ({"rule", weft_str(issue->rule)}, {"severity", weft_str(weft__severities[issue->severity])},
                              {"line", weft_int(issue->line)}, {"column", weft_int(issue->column)},
                              {"message", weft_str(issue->message)});
    return weft__write_val(out, alloc, &value);
}

static int write_issues(weft_buf *out, const weft_alloc *alloc, const weft_check_result *result) {
    int r = weft__buf_put(out, alloc, "[", 1);
    for (size_t i = 0; r >= 0 && i < result->issue_count; i++) {
        r = i ? weft__buf_put(out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = write_issue(out, alloc, &result->issues[i]);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static void answer_checked(weft_req *req, const weft_hub *hub, const weft_check_result *result) {
    weft_val names[4], unsupported[WEFT_CHECK_RULES];
    weft_buf issues = {0};
    size_t count = 0;
    int r = write_issues(&issues, hub->alloc, result);
    for (; count < result->checker_count && count < 4; count++)
        names[count] = weft_str(result->checkers[count]);
    for (size_t i = 0; i < result->unsupported_count; i++)
        unsupported[i] = weft_str(result->unsupported[i]);
    if (r < 0)
        weft__reply_failure(req, r);
    else
        weft__reply_val(req, WEFT_OBJ({"valid", weft_bool(result->valid)},
                                      {"issues", weft_raw(weft__buf_head(&issues), weft__buf_len(&issues))},
                                      {"checkers", weft_arr(names, count)},
                                      {"unsupported_rules", weft_arr(unsupported, result->unsupported_count)},
                                      {"truncated", result->truncated ? weft_bool(true) : weft_none()}));
    weft__buf_done(&issues, hub->alloc);
}

static void answer_unchecked(weft_req *req, const weft_check_result *result) {
    bool late = result->r == -ETIMEDOUT;
    weft__planner_fail_with(
        req, &(weft_planner_error){.code = PLANNER_FAILED,
                                   .type = late ? PLANNER_TIMEOUT : PLANNER_EXECUTION,
                                   .details = *result->why ? result->why : weft_strerror(result->r),
                                   .suggestions = {late ? "Send a smaller piece of code"
                                                        : "Run the checker by hand on this machine, to see what it lacks"}});
}

static void on_validated(void *ctx, const weft_check_result *result) {
    struct validation *self = ctx;
    weft_req *req = take_validation(self);
    if (result->r == 0)
        answer_checked(req, self->hub, result);
    else if (result->r == -ECANCELED && req)
        weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
    else if (result->r == -ENOMEM)
        weft__reply_failure(req, result->r);
    else if (req)
        answer_unchecked(req, result);
    weft__hub_wait_over(&self->wait);
    weft__free(self->hub->alloc, self);
}

/* Nobody wants to know any more: the program ends, and that is the answer. */
static void on_validation_over(weft_req *req, int why, void *ctx) {
    struct validation *self = ctx;
    (void) req, (void) why;
    weft__check_cancel(self->hub->checkers, self->id);
}

/* ---- asking ---- */

static int refuse_language(weft_req *req, const weft_hub *hub, const char *language) {
    char details[LANGUAGE + 80], suggestion[WEFT_CHECK_SENTENCE] = "";
    snprintf(details, sizeof details, "No checker for the language %.*s is installed here", LANGUAGE, language);
    if (hub->checkers)
        weft__checkers_tell(hub->checkers, language, suggestion);
    return weft__planner_fail_with(
        req, &(weft_planner_error){.code = PLANNER_UNAVAILABLE,
                                   .type = PLANNER_EXECUTION,
                                   .reason = "noChecker",
                                   .details = details,
                                   .suggestions = {*suggestion ? suggestion : "Name one in the configuration (checkers)",
                                                   *suggestion ? "Or name one in the configuration (checkers)" : NULL}});
}

static int refuse_validation(weft_req *req, const weft_hub *hub, const struct validate *in, int r) {
    switch (r) {
    case -ENOENT:
        return refuse_language(req, hub, in->language);
    case -EMSGSIZE:
        return weft__reply_error(req, 413, "tooLarge", "code is longer than %zu bytes", WEFT_CHECK_CODE);
    case -E2BIG:
        return weft__reply_invalid(req, "/rules", "at most %d rules", WEFT_CHECK_RULES);
    case -EINVAL:
        return weft__reply_invalid(
            req, "/rules",
            "a rule is a name: words of letters, digits and . _ - + #, with / and : between them, and perhaps "
            "an @ in front");
    case -EAGAIN:
        return weft__planner_fail_with(req,
                                       &(weft_planner_error){.code = PLANNER_UNAVAILABLE,
                                                             .type = PLANNER_EXECUTION,
                                                             .details = "Too many checks are waiting",
                                                             .suggestions = {"Wait until some have ended, and ask again"},
                                                             .retryable = true});
    default:
        return weft__reply_failure(req, r);
    }
}

static int read_rules(const weft_json *list, const char *ret[WEFT_CHECK_RULES + 1]) {
    size_t count = 0;
    if (weft_count(list) > WEFT_CHECK_RULES)
        return -E2BIG;
    for (weft_iter it = weft_iterate(list); weft_next(&it); count++)
        if (!(ret[count] = weft_str_of(&it.value, NULL)))
            return -EINVAL;
    ret[count] = NULL;
    return 0;
}

static int ask_checkers(weft_req *req, const weft_hub *hub, const weft_check_spec *spec) {
    struct validation *self = hub->checkers ? weft__zalloc(hub->alloc, sizeof *self) : NULL;
    if (!self)
        return hub->checkers ? -ENOMEM : -ENOENT;
    *self = (struct validation){.wait.on_end = end_validation, .hub = hub};
    int r = weft__check(hub->checkers, spec, on_validated, self, &self->id);
    if (r < 0) {
        weft__free(hub->alloc, self);
        return r;
    }
    self->req = weft__req_keep(req);
    if (self->req)
        weft_req_on_cancel(self->req, on_validation_over, self);
    weft__hub_wait(hub->clients, &self->wait);
    return 0;
}

/* ---- asking an executor ---- */

#define ASKED 16   /* executors that are asked, one after the other */
#define HOLDER 128 /* bytes of a name that are kept */

/* A request that executors are asked for, until one of them knows the language. */
struct passing {
    const weft_hub *hub;
    weft_req *req;
    weft_doc *params;
    char language[LANGUAGE + 1];
    char names[ASKED][HOLDER];
    size_t count, at;
};

static void free_passing(struct passing *self) {
    weft_doc_free(self->params);
    weft__free(self->hub->alloc, self);
}

/* The schema is compiled each time: programs that check take longer. */
static int check_verdict(const weft_hub *hub, const weft_json *result, char why[WEFT_SHAPE_WHY]) {
    weft_schema *shape;
    int r = weft__shape_new(weft__validated_shape, hub->alloc, &shape);
    if (r < 0)
        return r;
    r = weft__shape_check(shape, result, why);
    weft_schema_free(shape);
    return r;
}

static int write_passed_issue(weft_buf *out, const weft_alloc *alloc, const weft_json *issue, bool first) {
    const char *said = weft_get_str(issue, "severity", "");
    weft_severity severity = WEFT_SEVERITY_ERROR;
    while (severity < WEFT_SEVERITY_INFO && strcmp(weft__severities[severity], said) != 0)
        severity++;
    if (strcmp(weft__severities[severity], said) != 0)
        severity = WEFT_SEVERITY_ERROR;
    int64_t line = weft_get_int(issue, "line", 0), column = weft_get_int(issue, "column", 0);
    int r = first ? 0 : weft__buf_put(out, alloc, ",", 1);
    return r < 0 ? r
                 : write_issue(out, alloc,
                               &(weft_issue){.rule = weft_get_str(issue, "rule", "syntax"),
                                             .message = weft_get_str(issue, "message", ""),
                                             .severity = severity,
                                             .line = line > 0 ? line : 0,
                                             .column = column > 0 ? column : 0});
}

static void answer_passed(const struct passing *self, const weft_json *result) {
    const weft_alloc *alloc = self->hub->alloc;
    weft_json issues = weft_get(result, "issues"), valid = weft_get(result, "valid"), rules;
    weft_buf out = {0};
    size_t count = 0;
    int r = weft__buf_put(&out, alloc, "[", 1);
    for (weft_iter it = weft_iterate(&issues); r >= 0 && issues.text && count < WEFT_CHECK_ISSUES && weft_next(&it); count++)
        r = write_passed_issue(&out, alloc, &it.value, count == 0);
    if (r >= 0)
        r = weft__buf_put(&out, alloc, "]", 1);
    rules = weft_get(result, "unsupported_rules");
    bool listed = weft_typeof(&rules) == WEFT_ARRAY;
    for (weft_iter it = weft_iterate(&rules); listed && weft_next(&it);)
        listed = weft_typeof(&it.value) == WEFT_STRING;
    weft_val name = weft_str(self->names[self->at]);
    if (r < 0)
        weft__reply_failure(self->req, r);
    else
        weft__reply_val(self->req, WEFT_OBJ({"valid", weft_bool(weft_bool_of(&valid, false))},
                                            {"issues", weft_raw(weft__buf_head(&out), weft__buf_len(&out))},
                                            {"checkers", weft_arr(&name, 1)},
                                            {"unsupported_rules", listed ? weft_copy(&rules) : weft_arr(NULL, 0)}));
    weft__buf_done(&out, alloc);
}

static void ask_next_executor(struct passing *self);

static void on_executor_answered(void *ctx, int r, const weft_json *result, const char *error) {
    struct passing *self = ctx;
    char why[WEFT_SHAPE_WHY] = "";
    (void) error;
    if (r < 0 && r != -ECANCELED) {
        self->at++;
        ask_next_executor(self);
        return;
    }
    if (r < 0)
        weft__reply_failure(self->req, -ESHUTDOWN);
    else if ((r = check_verdict(self->hub, result, why)) == 0)
        answer_passed(self, result);
    else if (r == -ENOMEM)
        weft__reply_failure(self->req, r);
    else
        weft__planner_fail(self->req, PLANNER_FAILED, PLANNER_PARSE, why, NULL);
    free_passing(self);
}

/* Who does not speak this protocol, is busy or has left is passed over; where nobody is left, nobody knows the language. */
static void ask_next_executor(struct passing *self) {
    for (; self->at < self->count; self->at++)
        if (weft__role_ask(self->hub->engine, self->names[self->at], "validate_code", weft_doc_root(self->params),
                           on_executor_answered, self) >= 0)
            return;
    refuse_language(self->req, self->hub, self->language);
    free_passing(self);
}

static int keep_validation(const weft_hub *hub, const struct validate *in, weft_doc **ret) {
    char *text;
    size_t len;
    int r = weft_to_text(WEFT_OBJ({"code", weft_str(in->code)}, {"language", weft_str(in->language)},
                                  {"rules", in->rules.text ? weft_copy(&in->rules) : weft_arr(NULL, 0)}),
                         hub->alloc, &text, &len);
    if (r < 0)
        return r;
    r = weft_doc_parse(text, len, hub->alloc, ret);
    weft_text_free(text, hub->alloc);
    return r;
}

static int pass_on(weft_req *req, const weft_hub *hub, const struct validate *in) {
    struct passing *self = weft__zalloc(hub->alloc, sizeof *self);
    weft_holder holder;
    if (!self)
        return -ENOMEM;
    self->hub = hub;
    int r = keep_validation(hub, in, &self->params);
    if (r < 0) {
        free_passing(self);
        return r;
    }
    snprintf(self->language, sizeof self->language, "%s", in->language);
    for (size_t n = 0; self->count < ASKED && weft__role_holder(hub->engine, WEFT_ROLE_EXECUTOR, n, &holder); n++)
        snprintf(self->names[self->count++], HOLDER, "%s", holder.agent->name);
    self->req = weft__req_keep(req);
    ask_next_executor(self);
    return 0;
}

int weft__planner_on_validate(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct validate *in = weft_req_params(req);
    const char *rules[WEFT_CHECK_RULES + 1] = {NULL};
    int r = 0;
    (void) params;
    if (strnlen(in->language, LANGUAGE + 1) > LANGUAGE)
        return weft__reply_invalid(weft__req_keep(req), "/language", "language must be at most %d bytes", LANGUAGE);
    const char *wrong = weft__name_wrong((weft_bytes){in->language, strlen(in->language)}, WEFT_NAME_LINE);
    if (wrong)
        return weft__reply_invalid(weft__req_keep(req), "/language", "language %s", wrong);
    if (weft_typeof(&in->rules) == WEFT_ARRAY)
        r = read_rules(&in->rules, rules);
    if (r >= 0)
        r = ask_checkers(req, hub,
                         &(weft_check_spec){.code = {in->code, strlen(in->code)},
                                            .language = in->language,
                                            .rules = rules[0] ? rules : NULL});
    if (r == -ENOENT)
        r = pass_on(req, hub, in);
    return r < 0 ? refuse_validation(weft__req_keep(req), hub, in, r) : 0;
}

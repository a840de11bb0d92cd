/* What comes of a task, in the planner's words: the result of execute_task, or its error. A holder that speaks this protocol
 * has said it itself, and is passed on; of any other agent it is made of what the engine knows. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doc.h"
#include "planner.h"
#include "reply.h"
#include "write.h"

/* ---- what a holder said itself ---- */

/* One of the words of the form. */
static const char *type_of(const weft_json *data) {
    const char *said = weft_get_str(data, "type", PLANNER_EXECUTION);
    return strcmp(said, PLANNER_TIMEOUT) == 0 || strcmp(said, PLANNER_PARSE) == 0 ? said : PLANNER_EXECUTION;
}

static bool is_list_of_strings(const weft_json *list) {
    bool is = weft_typeof(list) == WEFT_ARRAY;
    for (weft_iter it = weft_iterate(list); is && weft_next(&it);)
        is = weft_typeof(&it.value) == WEFT_STRING;
    return is;
}

/* Its error in the form that callers rely on: what it did not say, or said in another form, is as it usually is. */
static int pass_on_error(weft_req *req, const weft_json *error, const weft_task *task) {
    weft_json data = weft_get(error, "data");
    const char *type = type_of(&data);
    weft_json suggestions = weft_get(&data, "recovery_suggestions"), retryable = weft_get(&data, "retryable");
    int64_t after = weft_get_int(&data, "retryAfterMs", -1);
    int64_t code = weft_get_int(error, "code", PLANNER_FAILED);
    bool known = code <= PLANNER_FAILED && code >= PLANNER_UNAUTHENTICATED;
    const char *message = weft_get_str(error, "message", "Execution failed");
    bool list = is_list_of_strings(&suggestions), says_retry = weft_typeof(&retryable) == WEFT_BOOL;
    return weft_fail(req, known ? (int) code : PLANNER_FAILED, message,
                     WEFT_OBJ({"type", weft_str(type)}, {"details", weft_str(weft_get_str(&data, "details", message))},
                              {"stack_trace", weft_str(weft_get_str(&data, "stack_trace", ""))},
                              {"recovery_suggestions", list ? weft_copy(&suggestions) : weft_arr(NULL, 0)},
                              {"reason", weft_str("executionFailed")},
                              {"retryable", says_retry ? weft_copy(&retryable) : weft_none()},
                              {"retryAfterMs", after < 0 ? weft_none() : weft_int(after)},
                              {"code", known ? weft_none() : weft_int(code)}, {"taskId", weft_str(task->id)}));
}

/* ---- what the engine knows ---- */

static int64_t tokens_of(const weft_task *task, const weft_alloc *alloc) {
    static const char *const names[] = {"totalTokens", "total_tokens", "total"};
    weft_doc *doc = NULL;
    int64_t tokens = -1;
    if (!task->usage || weft_doc_parse(task->usage, strlen(task->usage), alloc, &doc) < 0)
        return -1;
    weft_json said = weft_get(weft_doc_root(doc), "tokens");
    for (size_t i = 0; tokens < 0 && i < sizeof names / sizeof names[0]; i++)
        tokens = weft_get_int(&said, names[i], -1);
    weft_doc_free(doc);
    return tokens;
}

/* The model that the agent says it uses, else the agent's name. */
static const char *model_of(const weft_hub *hub, const weft_task *task, weft_doc **ret_doc) {
    const weft_session *session = weft__session_find(hub->engine, task->session);
    const char *models = session ? session->facts[WEFT_SESSION_MODELS] : NULL;
    *ret_doc = NULL;
    if (!models || weft_doc_parse(models, strlen(models), hub->alloc, ret_doc) < 0)
        return task->runs_on;
    return weft_get_str(weft_doc_root(*ret_doc), "currentModelId", task->runs_on);
}

/* What a holder has said, member by member; absent where it has not, or there is none. */
enum { SAID_STATUS, SAID_OUTPUT, SAID_METADATA, SAID_METRICS, SAID_ERROR, SAID };
enum { OUTPUT_CODE, OUTPUT_EXPLANATION, OUTPUT_MODIFIED, OUTPUT_CREATED, OUTPUT_MEMBERS };
enum { ABOUT_TIME, ABOUT_TOKENS, ABOUT_MODEL, ABOUT_MEMBERS };
struct said {
    weft_json top[SAID], output[OUTPUT_MEMBERS], metadata[ABOUT_MEMBERS], metrics[ABOUT_MEMBERS];
};

static void read_said(const weft_json *result, struct said *ret) {
    static const char *const top[SAID] = {"status", "output", "metadata", "metrics", "error"};
    static const char *const output[OUTPUT_MEMBERS] = {"code", "explanation", "files_modified", "files_created"};
    static const char *const about[ABOUT_MEMBERS] = {"execution_time_ms", "tokens_used", "model"};
    *ret = (struct said){0};
    if (!result)
        return;
    weft__get_all(result, top, SAID, ret->top);
    weft__get_all(&ret->top[SAID_OUTPUT], output, OUTPUT_MEMBERS, ret->output);
    weft__get_all(&ret->top[SAID_METADATA], about, ABOUT_MEMBERS, ret->metadata);
    weft__get_all(&ret->top[SAID_METRICS], about, ABOUT_MEMBERS, ret->metrics);
}

struct parts {
    weft_buf code, modified, created;
};

static int write_parts(const weft_planner_outcome *of, const struct said *said, struct parts *to) {
    const weft_json code = said->output[OUTPUT_CODE], modified = said->output[OUTPUT_MODIFIED],
                    created = said->output[OUTPUT_CREATED];
    const weft_alloc *alloc = of->hub->alloc;
    int r = code.text ? weft__buf_put(&to->code, alloc, code.text, code.len)
                      : weft__write_str(&to->code, alloc, of->output.data ? of->output.data : "", of->output.len);
    if (r >= 0)
        r = modified.text ? weft__planner_files_said(of->hub, &modified, &to->modified)
                          : weft__planner_files_write(of->files, of->hub, false, &to->modified);
    if (r >= 0)
        r = created.text ? weft__planner_files_said(of->hub, &created, &to->created)
                         : weft__planner_files_write(of->files, of->hub, true, &to->created);
    return r;
}

static weft_val raw(const weft_buf *of) {
    return weft_raw(weft__buf_head(of), weft__buf_len(of));
}

/* A count that a holder gives of itself; the stricter form has them in "metrics". What is none is left out: a result that
 * is good otherwise is not refused for it. */
static int64_t count_of(const struct said *said, int which, int64_t usual) {
    const weft_json *usually = &said->metadata[which];
    int64_t count = weft_int_of(usually->text ? usually : &said->metrics[which], -1);
    return count < 0 ? usual : count;
}

static int say_done(weft_req *req, const weft_planner_outcome *of, const weft_task *task, const struct said *said,
                    const struct parts *parts) {
    weft_doc *models = NULL;
    const weft_json explanation = said->output[OUTPUT_EXPLANATION], status = said->top[SAID_STATUS],
                    error = said->top[SAID_ERROR];
    int64_t took = task->started_ms ? task->completed_ms - task->started_ms : 0;
    int64_t time = count_of(said, ABOUT_TIME, took > 0 ? took : 0);
    int64_t tokens = count_of(said, ABOUT_TOKENS, -1);
    if (tokens < 0)
        tokens = tokens_of(task, of->hub->alloc);
    const char *usual = model_of(of->hub, task, &models);
    usual = weft_str_of(&said->metadata[ABOUT_MODEL], weft_str_of(&said->metrics[ABOUT_MODEL], usual));
    weft_val metadata =
        WEFT_OBJ({"execution_time_ms", weft_int(time)}, {"tokens_used", tokens < 0 ? weft_none() : weft_int(tokens)},
                 {"model", weft_str(usual)}, {"task_id", weft_str(task->id)});
    int r = weft_reply(
        req,
        WEFT_OBJ({"task_id", weft_str_or_none(of->task_id)},
                 {"status", status.text ? weft_copy(&status) : weft_str("success")},
                 {"output", WEFT_OBJ({"code", raw(&parts->code)},
                                     {"explanation", explanation.text ? weft_copy(&explanation) : weft_str("")},
                                     {"files_modified", raw(&parts->modified)}, {"files_created", raw(&parts->created)})},
                 {"metadata", metadata}, {"metrics", of->task_id ? metadata : weft_none()},
                 {"error", error.text ? weft_copy(&error) : weft_none()}));
    weft_doc_free(models);
    return r;
}

static int answer_done(weft_req *req, const weft_planner_outcome *of, const weft_task *task) {
    struct parts parts = {0};
    struct said said;
    const weft_alloc *alloc = of->hub->alloc;
    read_said(of->result, &said);
    int r = write_parts(of, &said, &parts);
    if (r >= 0)
        say_done(req, of, task, &said, &parts);
    else
        weft__reply_error(req, WEFT_INTERNAL_ERROR, "outOfMemory", "Memory is short");
    weft__buf_done(&parts.code, alloc);
    weft__buf_done(&parts.modified, alloc);
    weft__buf_done(&parts.created, alloc);
    return 0;
}

/* ---- failures ---- */

/* Which type of error a reason of the engine's is, and what to do about it. */
static const struct {
    const char *reason;
    int code;
    const char *type, *suggestion;
} failures[] = {
    {"timedOut", PLANNER_FAILED, PLANNER_TIMEOUT, "Give it more time with options.timeout_ms"},
    {"protocolError", PLANNER_FAILED, PLANNER_PARSE,
     "Look at what the holder answers: it must have the form of the protocol"},
    {"spawnFailed", PLANNER_UNAVAILABLE, PLANNER_EXECUTION, "Look at the agent with \"weft doctor\""},
    {"authRequired", PLANNER_UNAUTHENTICATED, PLANNER_EXECUTION, "Log the agent in"},
    {NULL, PLANNER_FAILED, PLANNER_EXECUTION, "Look at what it said with \"weft task get\" and the task's id"},
};

static int answer_failed(weft_req *req, const weft_task *task) {
    size_t i = 0;
    while (failures[i].reason && (!task->reason || strcmp(failures[i].reason, task->reason) != 0))
        i++;
    return weft__planner_fail_with(req, &(weft_planner_error){.code = failures[i].code,
                                                              .type = failures[i].type,
                                                              .details = task->error,
                                                              .suggestions = {failures[i].suggestion},
                                                              .task = task->id});
}

int weft__planner_answer(weft_req *req, const weft_planner_outcome *of, const weft_task *task) {
    weft_json error = of->result ? weft_get(of->result, "error") : (weft_json){0};
    bool said = of->result && weft_get(of->result, "output").text;
    if (!req)
        return 0;
    if (task->state == WEFT_TASK_CANCELLED)
        return weft__planner_fail_with(req, &(weft_planner_error){.code = WEFT_CANCELLED,
                                                                  .type = PLANNER_EXECUTION,
                                                                  .details = "The task was cancelled",
                                                                  .task = task->id});
    if (task->state == WEFT_TASK_COMPLETED || said)
        return answer_done(req, of, task);
    return error.text ? pass_on_error(req, &error, task) : answer_failed(req, task);
}

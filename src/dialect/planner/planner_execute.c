/* execute_task: a task for whoever holds the role of the executor. It is answered when the task has ended.
 *
 *     submitted ──stored──▶ awaited ──the task's end──▶ ended ──its stream was told, its files were compared,──▶ answered
 *                                                               its output was read
 *
 * A caller that goes away gives up the task as well, unless it gave an idempotency key: with that it can come back and ask
 * for the same. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc.h"
#include "doc.h"
#include "planner.h"
#include "reply.h"
#include "write.h"

/* Longer than any id of a task. */
#define TASK_ID 64
/* Bytes of the id that a caller gives its task. */
#define CALLER_ID 256
/* Of the output that is answered: more does not fit into a message, when each byte becomes two. */
#define MAX_OUTPUT ((size_t) 8 << 20)

struct execution {
    weft_hub_wait wait; /* for the comparison of its files */
    const weft_hub *hub;
    weft_req *req;  /* NULL: nobody waits for the answer any more */
    bool withdrawn; /* it was cancelled before there was a task */
    bool keyed;
    bool strict; /* it came in the form of the stricter schema, and is answered so */
    bool streams;
    bool awaits;  /* events of the task come */
    bool leaving; /* it is to be freed, behind the event that is being delivered */
    int stream_r; /* why the stream failed */
    weft_planner_stream *stream;
    weft_planner_files files;
    weft_doc *result;   /* that the holder answered, in this attempt; NULL: it did not */
    char task[TASK_ID]; /* "": not stored yet */
    char id[CALLER_ID + 1];
};

struct execute {
    const char *task_type, *prompt, *id;
    weft_json context, options, constraints;
    int64_t priority;
};
const weft_param weft__planner_execute_params[] = {
    {"task_type", WEFT_PARAM_str, offsetof(struct execute, task_type), WEFT_REQUIRED,
     "code_generation, refactoring, analysis, testing; or code_refactoring, code_analysis, bug_fix, documentation"},
    WEFT_ALSO(struct execute, task_type, str, "type"),
    {"prompt", WEFT_PARAM_str, offsetof(struct execute, prompt), WEFT_REQUIRED | WEFT_NONEMPTY, "what is to be done"},
    WEFT_MAY(struct execute, context, obj, "files, current_directory, dependencies, constraints"),
    WEFT_MAY(struct execute, options, obj,
             "language, framework, style_guide; timeout_ms: how long it may say nothing, 30000 when absent; max_retries: 0 "
             "to 3; stream: what it says is told as it comes"),
    WEFT_MAY(struct execute, id, str, "the caller's own name for the task"),
    WEFT_MAY(struct execute, priority, int, "higher runs first"),
    WEFT_MAY(struct execute, constraints, obj, "timeout: seconds that it may say nothing; style; maxTokens"),
    WEFT_END(struct execute),
};

static void ignore_end(void *ctx, int r, const weft_task *task) {
    (void) ctx, (void) r, (void) task;
}

/* ---- answering ---- */

static void free_execution(struct execution *execution) {
    const weft_alloc *alloc = execution->hub->alloc;
    weft__planner_stream_free(execution->stream);
    weft__planner_files_done(&execution->files, alloc);
    weft_doc_free(execution->result);
    weft__free(alloc, execution);
}

static weft_req *take_request(struct execution *execution) {
    weft_req *req = execution->req;
    execution->req = NULL;
    if (req)
        weft_req_on_cancel(req, NULL, NULL);
    return req;
}

static void answer_with(struct execution *execution, const weft_task *task, weft_bytes output) {
    weft_planner_outcome outcome = {.hub = execution->hub,
                                    .result = execution->result ? weft_doc_root(execution->result) : NULL,
                                    .output = output,
                                    .files = &execution->files,
                                    .task_id = execution->strict ? execution->id : NULL};
    weft__planner_answer(take_request(execution), &outcome, task);
}

static void on_executed_output(void *ctx, int r, weft_bytes output) {
    struct execution *execution = ctx;
    const weft_task *task = weft__task_find(execution->hub->engine, execution->task);
    if (r >= 0 && task)
        answer_with(execution, task, output);
    else
        weft__reply_failure(take_request(execution), r == -ECANCELED ? -ESHUTDOWN : r < 0 ? r : -ESRCH);
    free_execution(execution);
}

static void refuse_large(struct execution *execution, const weft_task *task) {
    char details[160];
    snprintf(details, sizeof details, "The output has %llu bytes, and an answer holds %zu",
             (unsigned long long) task->output_bytes, MAX_OUTPUT);
    weft__planner_fail_with(take_request(execution),
                            &(weft_planner_error){.code = PLANNER_FAILED,
                                                  .type = PLANNER_EXECUTION,
                                                  .reason = "outputTooLarge",
                                                  .details = details,
                                                  .suggestions = {"Read it with event.subscribe or \"weft task get\""},
                                                  .task = task->id});
}

static bool has_code(const weft_doc *result) {
    return result && weft_pointer(weft_doc_root(result), "/output/code").text;
}

/* All that it said is read back, unless its holder has answered it. */
static void answer_compared(struct execution *execution) {
    const weft_task *task = weft__task_find(execution->hub->engine, execution->task);
    bool reads = task && execution->req && task->state == WEFT_TASK_COMPLETED && !has_code(execution->result);
    if (reads && task->output_bytes > MAX_OUTPUT)
        refuse_large(execution, task);
    else if (reads) {
        int r = weft__task_output(execution->hub->engine, execution->task, MAX_OUTPUT, on_executed_output, execution);
        if (r >= 0)
            return;
        weft__reply_failure(take_request(execution), r);
    } else if (task)
        answer_with(execution, task, (weft_bytes){"", 0});
    else
        weft__reply_failure(take_request(execution), -ESRCH);
    free_execution(execution);
}

/* The hub stops meanwhile. */
static void end_comparison(weft_hub_wait *wait) {
    struct execution *execution = WEFT_CONTAINER(wait, struct execution, wait);
    weft__reply_failure(take_request(execution), -ESHUTDOWN);
    free_execution(execution);
}

/* What cannot be compared is as its agent says. */
static void on_files_compared(void *ctx, const weft_compared *compared) {
    struct execution *execution = ctx;
    weft__hub_wait_over(&execution->wait);
    if (compared->r >= 0 && compared->list)
        weft__planner_files_compared(&execution->files, execution->hub, compared->list);
    answer_compared(execution);
}

static bool says_files(const struct execution *execution) {
    return execution->result && weft_pointer(weft_doc_root(execution->result), "/output/files_modified").text;
}

static void answer_execution(struct execution *execution) {
    weft_engine *engine = execution->hub->engine;
    const weft_task *task = weft__task_find(engine, execution->task);
    bool compares = task && task->changes && task->state == WEFT_TASK_COMPLETED && execution->req && !says_files(execution);
    execution->wait.on_end = end_comparison;
    if (compares &&
        weft__task_compare(engine, execution->task, false, &(weft_comparison){0}, on_files_compared, execution) >= 0)
        weft__hub_wait(execution->hub->clients, &execution->wait);
    else
        answer_compared(execution);
}

/* ---- its stream ---- */

static void answer_unstreamed(struct execution *execution) {
    static const char *const again[] = {"Ask again without options.stream", "Ask again"};
    int r = execution->stream_r;
    weft__planner_fail_with(
        take_request(execution),
        &(weft_planner_error){
            .code = PLANNER_FAILED,
            .type = PLANNER_EXECUTION,
            .reason = r == -ESTALE ? "streamDiverged" : "streamFailed",
            .details = r == -ESTALE
                           ? "The holder failed in the middle of the stream, and another attempt said something else than "
                             "was streamed already"
                       : r == -EOVERFLOW ? "The stream was read so slowly that what comes next is not kept any more"
                                         : weft_strerror(r),
            .suggestions = {again[r != -ESTALE]},
            .task = execution->task});
}

/* All was told, or cannot be. */
static void on_streamed(void *ctx, int r) {
    struct execution *execution = ctx;
    const weft_task *task = weft__task_find(execution->hub->engine, execution->task);
    bool over = !task || task->state > WEFT_TASK_RUNNING;
    bool completed = !over || (task && task->state == WEFT_TASK_COMPLETED);
    execution->stream_r = r;
    /* Who has gone is seen to by on_request_over(); why the task failed says more than that its stream did. */
    bool failed = r < 0 && r != -EPIPE && completed;
    if (failed && execution->req)
        answer_unstreamed(execution);
    if (!over) {
        if (failed) /* nobody wants more of it */
            weft__task_cancel(execution->hub->engine, execution->task, "hub", ignore_end, NULL);
        return;
    }
    if (execution->awaits) /* its last event is being delivered */
        execution->leaving = true;
    else
        answer_execution(execution);
}

static void begin_stream(struct execution *execution, const weft_task *task) {
    const weft_hub *hub = execution->hub;
    weft_peer *peer = execution->req ? weft_req_peer(execution->req) : NULL; /* NULL too if it could not be kept */
    weft_hub_client *client = peer ? weft__hub_client_of(hub->clients, peer) : NULL;
    if (!execution->streams || !client)
        return;
    int r = weft__planner_stream_new(&(weft_planner_stream_spec){.hub = hub,
                                                                 .client = client,
                                                                 .task = task->id,
                                                                 .session = task->session,
                                                                 .task_id = execution->id,
                                                                 .late = task->output_bytes || task->attempt > 1,
                                                                 .done = on_streamed,
                                                                 .ctx = execution},
                                     &execution->stream);
    if (r < 0)
        on_streamed(execution, r);
}

/* ---- its events ---- */

static void keep_result(struct execution *execution, const weft_event *event, const weft_json *data) {
    weft_json result = weft_get(data, "result");
    if (strcmp(event->type, "task.started") == 0)
        execution->result = weft_doc_free(execution->result); /* of an attempt that failed */
    if (strcmp(event->type, "session.result") != 0 || !result.text)
        return;
    execution->result = weft_doc_free(execution->result);
    if (weft_doc_keep(&result, execution->hub->alloc, &execution->result) < 0)
        execution->result = NULL; /* what it said is in the journal all the same */
}

static void end_execution(struct execution *execution, const weft_task *task) {
    bool streams = execution->stream && task && execution->stream_r >= 0;
    if (streams)
        weft__planner_stream_end(execution->stream, task->attempt, task->state != WEFT_TASK_COMPLETED);
    execution->awaits = false;
    if (!streams || execution->leaving)
        answer_execution(execution);
}

static bool on_executing(void *ctx, const weft_event *event, const weft_json *data) {
    struct execution *execution = ctx;
    const weft_task *task = event ? weft__task_find(execution->hub->engine, execution->task) : NULL;
    if (!event) {
        execution->stream = weft__planner_stream_free(execution->stream);
        weft__reply_failure(take_request(execution), -ESHUTDOWN);
        free_execution(execution);
        return false;
    }
    keep_result(execution, event, data);
    weft__planner_files_event(&execution->files, execution->hub, event, data);
    if (execution->stream && execution->stream_r >= 0)
        weft__planner_stream_event(execution->stream, event, data);
    if (task && task->state <= WEFT_TASK_RUNNING)
        return true;
    end_execution(execution, task);
    return false;
}

/* Cancelled: the task ends, and that is the answer. The connection has gone: nobody would read what it does, unless it gave
 * a key: then the library keeps the answer for who asks again. */
static void on_request_over(weft_req *req, int why, void *ctx) {
    struct execution *execution = ctx;
    char who[WEFT_WHO];
    bool gone = why != -ECANCELED && why != -ETIMEDOUT;
    weft__who(weft_req_identity(req), who);
    if (gone && execution->keyed)
        return;
    if (gone) {
        execution->req = NULL;
        weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
    }
    execution->withdrawn = true;
    if (*execution->task)
        weft__task_cancel(execution->hub->engine, execution->task, who, ignore_end, NULL);
}

/* Its id, as the caller knows it: its own, else that of its request. */
static void name_execution(struct execution *execution) {
    weft_bytes id = execution->req ? weft_req_id(execution->req) : (weft_bytes){"", 0};
    if (*execution->id || !id.len)
        return;
    bool quoted = id.len >= 2 && *id.data == '"';
    snprintf(execution->id, sizeof execution->id, "%.*s", (int) (quoted ? id.len - 2 : id.len),
             quoted ? id.data + 1 : id.data);
}

static void on_execution_stored(void *ctx, int r, const weft_task *task) {
    struct execution *execution = ctx;
    const weft_hub *hub = execution->hub;
    if (r >= 0)
        snprintf(execution->task, sizeof execution->task, "%s", task->id);
    /* The same again, by its key: it may have ended already. */
    if (r >= 0 && task->state > WEFT_TASK_RUNNING) {
        answer_execution(execution);
        return;
    }
    if (r >= 0)
        r = weft__hub_clients_await(hub->clients, task->id, on_executing, execution);
    if (r < 0) {
        weft__reply_failure(take_request(execution), r);
        free_execution(execution);
        return;
    }
    execution->awaits = true;
    name_execution(execution);
    begin_stream(execution, task);
    if (execution->withdrawn)
        weft__task_cancel(hub->engine, execution->task, "client", ignore_end, NULL);
}

/* ---- asking ---- */

/* What a holder that speaks this protocol is sent, with the task: {"source":"planner","method":...,"params":{...}}. */
static int write_metadata(weft_buf *out, const weft_alloc *alloc, const struct execute *in) {
    weft_val params = WEFT_OBJ({"task_type", weft_str(in->task_type)}, {"prompt", weft_str(in->prompt)},
                               {"context", in->context.text ? weft_copy(&in->context) : weft_obj(NULL, 0)},
                               {"options", in->options.text ? weft_copy(&in->options) : weft_obj(NULL, 0)});
    weft_val value = WEFT_OBJ({"source", weft_str("planner")}, {"method", weft_str("execute_task")}, {"params", params});
    int r = weft__write_val(out, alloc, &value);
    return r < 0 ? r : weft__buf_put(out, alloc, "", 1);
}

static int submit_execution(weft_req *req, const weft_hub *hub, const struct execute *in, const weft_task_spec *spec) {
    struct execution *execution = weft__zalloc(hub->alloc, sizeof *execution);
    if (!execution)
        return -ENOMEM;
    weft_json stream = weft_get(&in->options, "stream");
    *execution = (struct execution){.hub = hub,
                                    .req = weft__req_keep(req),
                                    .keyed = spec->key || weft_req_is_notification(req),
                                    .strict = in->id != NULL,
                                    .streams = weft_bool_of(&stream, false)};
    snprintf(execution->id, sizeof execution->id, "%s", in->id ? in->id : "");
    int r = weft__task_submit(hub->engine, spec, on_execution_stored, execution);
    if (r < 0) {
        free_execution(execution);
        return weft__planner_not_submitted(weft__req_keep(req), hub, WEFT_ROLE_EXECUTOR, "/prompt", r);
    }
    if (execution->req)
        weft_req_on_cancel(execution->req, on_request_over, execution);
    return 0;
}

/* options.timeout_ms, or the stricter form's constraints.timeout, in seconds. <0: it is none. */
static int64_t quiet_of(const struct execute *in) {
    weft_json ms = weft_get(&in->options, "timeout_ms"), s = weft_get(&in->constraints, "timeout");
    int64_t most = (int64_t) 24 * 3600 * 1000;
    int64_t quiet = ms.text ? weft_int_of(&ms, -1) : s.text ? weft_int_of(&s, -1) : PLANNER_QUIET_MS / 1000;
    if (!ms.text && quiet > 0)
        quiet = quiet < most / 1000 ? quiet * 1000 : most;
    return quiet <= 0 ? -1 : quiet < most ? quiet : most;
}

static int refuse_type(weft_req *req, const char *task_type) {
    return weft__reply_invalid(req, "/task_type",
                               "%.64s is not a type of task; there is code_generation, refactoring, analysis, testing, "
                               "code_refactoring, code_analysis, bug_fix, documentation",
                               task_type);
}

/* Files that lead out of the project are none of it. 0, or the answer was given. */
static int check_files(weft_req *req, const weft_hub *hub, const weft_json *context) {
    char path[40];
    size_t i = 0;
    const char *wrong = weft__planner_files_wrong(hub, context, &i);
    if (!wrong)
        return 0;
    snprintf(path, sizeof path, "/context/files/%zu", i);
    return weft__reply_invalid(req, path, "a file of the context: %s", wrong) < 0 ? -ENOMEM : 1;
}

int weft__planner_on_execute(weft_req *req, const weft_json *params, void *ctx) {
    const weft_hub *hub = ctx;
    const struct execute *in = weft_req_params(req);
    int64_t quiet_ms = quiet_of(in), retries = weft_get_int(&in->options, "max_retries", PLANNER_RETRIES);
    char key[WEFT_KEY];
    weft_buf text = {0}, metadata = {0};
    (void) params;
    if (!weft__planner_knows_type(hub, WEFT_ROLE_EXECUTOR, in->task_type))
        return refuse_type(req, in->task_type);
    if (quiet_ms < 0)
        return weft__reply_invalid(req, "/options/timeout_ms", "the timeout must be a positive number of milliseconds");
    if (in->id && strnlen(in->id, CALLER_ID + 1) > CALLER_ID)
        return weft__reply_invalid(req, "/id", "id must be at most %d bytes", CALLER_ID);
    int r = check_files(req, hub, &in->context);
    if (r != 0)
        return r < 0 ? r : 0;
    r = weft__idempotency_key(req, key);
    if (r < 0)
        return r;
    r = weft__planner_prompt(&text, hub, in->prompt, in->task_type, &in->context, &in->options);
    if (r >= 0)
        r = write_metadata(&metadata, hub->alloc, in);
    if (r >= 0)
        r = submit_execution(req, hub, in,
                             &(weft_task_spec){.prompt = weft__buf_head(&text),
                                               .metadata = weft__buf_head(&metadata),
                                               .role = WEFT_ROLE_EXECUTOR,
                                               .task_type = in->task_type,
                                               .quiet_ms = quiet_ms,
                                               .priority = in->priority,
                                               .retries = retries < 0                 ? 0
                                                          : retries > PLANNER_RETRIES ? PLANNER_RETRIES
                                                                                      : retries,
                                               .key = *key ? key : NULL});
    weft__buf_done(&text, hub->alloc);
    weft__buf_done(&metadata, hub->alloc);
    return r;
}

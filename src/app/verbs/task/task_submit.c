/* weft task submit: give the hub something to do, and, with --wait, stay until it is done. */
#include "task.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "failure.h"
#include "hub_call.h"
#include "read_all.h"
#include "task_follow.h"
#include "task_gated.h"
#include "utf8_stream.h"

/* The hub takes less; this is what is read before it can say so. */
#define MAX_PROMPT (32 * 1024 * 1024)

/* ---- the prompt ---- */

static int read_file(const char *path, weft_buf *ret) {
    bool own = strcmp(path, "-") != 0;
    int fd = own ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
    if (fd < 0)
        return -errno;
    int r = weft__read_text(fd, MAX_PROMPT, NULL, ret);
    if (own)
        close(fd);
    return r;
}

static int join_words(char **args, weft_buf *ret) {
    int r = 0;
    for (char **arg = args; *arg && r >= 0; arg++) {
        r = arg > args ? weft__buf_put(ret, NULL, " ", 1) : 0;
        if (r >= 0)
            r = weft__buf_put(ret, NULL, *arg, strlen(*arg));
    }
    return r;
}

/* Why it is none; NULL: it is. */
static const char *not_text(const char *text, size_t len) {
    if (memchr(text, '\0', len))
        return "there is a NUL in it";
    return weft__utf8_valid(text, len) ? NULL : "it is not UTF-8";
}

weft_exit weft__prompt_read(const weft_app *app, char **ret) {
    const char *first = app->args[0];
    bool from_stdin = app->arg_count == 1 && strcmp(first, "-") == 0;
    bool from_file = app->arg_count == 1 && first[0] == '@' && first[1];
    const char *where = from_stdin ? "standard input" : from_file ? first + 1 : "the prompt";
    weft_buf text = {0};
    int r = from_stdin ? read_file("-", &text) : from_file ? read_file(first + 1, &text) : join_words(app->args, &text);
    size_t len = weft__buf_len(&text);
    while (from_stdin + from_file && len && weft__buf_head(&text)[len - 1] == '\n')
        len--;
    const char *odd = r >= 0 && len ? not_text(weft__buf_head(&text), len) : NULL;
    char *prompt = r >= 0 && len && !odd ? weft__strndup(NULL, weft__buf_head(&text), len) : NULL;
    weft__buf_done(&text, NULL);
    if (odd)
        return weft__fail(app, WEFT_USAGE, NULL, "%s: this is not text: %s", where, odd);
    if (r < 0)
        return weft__fail(app, r == -ENOENT ? WEFT_USAGE : WEFT_FAILED, NULL, "%s: %s", where, weft_strerror(r));
    if (len == 0)
        return weft__misused(app, "%s is empty", where);
    *ret = prompt;
    return prompt ? WEFT_DONE : weft__fail(app, WEFT_FAILED, NULL, "out of memory");
}

/* ---- without waiting ---- */

static weft_exit put_submitted(weft_app *app, const weft_json *result) {
    const char *id = weft_get_str(result, "taskId", "");
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(result));
        return WEFT_DONE;
    }
    weft__put_text(&app->out, id, strlen(id));
    fputc('\n', app->out.file);
    if (app->err.terminal)
        fprintf(app->err.file, "  %s. Watch it: weft task watch %s\n", weft_get_str(result, "state", "queued"), id);
    return WEFT_DONE;
}

/* Only our own hub knows; it is fine if this one does not. */
static void tell_beside(weft_app *app, weft_connection *connection, const weft_json *result) {
    const weft_val ids[] = {weft_str(weft_get_str(result, "taskId", ""))};
    WEFT_ANSWER about = {0};
    if (app->common.json ||
        weft__connection_try(connection, "task.about", WEFT_OBJ({"taskIds", weft_arr(ids, 1)}), &about) < 0)
        return;
    weft_json tasks = weft_get(about.result, "tasks"), task = weft_at(&tasks, 0), beside = weft_get(&task, "beside");
    weft__task_put_beside(app, &beside);
}

void weft__task_put_beside(const weft_app *app, const weft_json *beside) {
    size_t count = weft_count(beside), i = 0;
    for (weft_iter it = weft_iterate(beside); weft_next(&it); i++)
        fprintf(app->err.file, "%s%.64s", !i ? "note: " : i + 1 < count ? ", " : " and ", weft_str_of(&it.value, ""));
    if (count)
        fprintf(app->err.file, " work%s in the same files now; --worktree keeps tasks apart\n", count == 1 ? "s" : "");
}

static weft_exit submit_task(weft_app *app, const char *method, weft_val params) {
    const weft_task_settings *how = app->settings;
    weft_connection connection;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_open(app, how->url, &connection);
    if (status == WEFT_DONE)
        status = weft__hub_call(&connection, method, params, &answer);
    if (status == WEFT_DONE)
        status = put_submitted(app, answer.result);
    if (status == WEFT_DONE)
        tell_beside(app, &connection, answer.result);
    weft__connection_done(&connection);
    return status;
}

/* ---- with ---- */

typedef struct submission {
    const char *method;
    weft_val params;
} submission;

static void on_submit_begin(weft_task_follow *follow) {
    const submission *what = follow->opts->ctx;
    weft__task_follow_submit(follow, what->method, what->params);
}

static void on_submit_done(weft_task_follow *follow, weft_exit how) {
    weft__task_follow_end(follow, how);
}

static weft_exit submit_and_wait(weft_app *app, const char *method, weft_val params) {
    const weft_task_settings *how = app->settings;
    submission what = {method, params};
    weft_task_follow *follow = weft__zalloc(NULL, sizeof *follow);
    if (!follow)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    weft_task_follow_opts opts = {.url = how->url,
                                  .ctx = &what,
                                  .on_question = weft__task_on_question(how->on_question),
                                  .on_begin = on_submit_begin,
                                  .on_done = on_submit_done};
    weft_exit status = weft__task_follow_run(follow, app, &opts);
    weft__free(NULL, follow);
    return status;
}

/* ---- the word ---- */

static weft_exit read_priority(const weft_app *app, const char *text, int64_t *ret) {
    char *end;
    errno = 0;
    *ret = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        return weft__misused(app, "--priority wants a whole number, not \"%s\"", text);
    return WEFT_DONE;
}

static weft_exit submit_in_some_way(weft_app *app, const char *method, weft_val params) {
    const weft_task_settings *how = app->settings;
    return how->wait ? submit_and_wait(app, method, params) : submit_task(app, method, params);
}

/* Without --wait nobody is there to answer. */
static weft_exit check_on_question(const weft_app *app) {
    const weft_task_settings *how = app->settings;
    return how->on_question && !how->wait ? weft__misused(app, "--on-question goes with --wait") : WEFT_DONE;
}

static weft_exit check_relay(weft_app *app, const char *url) {
    weft_connection connection;
    weft_exit status = weft__hub_call_open(app, url, &connection);
    if (status == WEFT_DONE)
        status = weft__hub_call_check_relay(&connection, "--hub");
    weft__connection_done(&connection);
    return status;
}

weft_exit weft__task_submit_word(weft_app *app) {
    const weft_task_settings *how = app->settings;
    int64_t priority = 0;
    char *prompt = NULL, key[WEFT_KEY_LEN];
    weft_exit status = check_on_question(app);
    if (status == WEFT_DONE && how->max_iterations && !how->gates.count)
        status = weft__misused(app, "--max-iterations is for tasks with gates: --gate NAME");
    if (status == WEFT_DONE && how->priority)
        status = read_priority(app, how->priority, &priority);
    if (status == WEFT_DONE && how->hub)
        status = check_relay(app, how->url);
    if (status == WEFT_DONE)
        status = weft__prompt_read(app, &prompt);
    if (status)
        return status;
    if (how->gates.count) {
        status = weft__gated_submit_word(app, prompt);
        weft__free(NULL, prompt);
        return status;
    }
    /* Whoever waits may have to send it twice, over two connections: once is meant. */
    weft__task_follow_key(key);
    const char *once = how->once ? how->once : how->wait ? key : NULL;
    weft_val params = WEFT_OBJ(
        {"prompt", weft_str(prompt)}, {"agent", weft_str_or_none(how->agent)},
        {"priority", how->priority ? weft_int(priority) : weft_none()},
        {"timeoutMs", how->timeout_ms ? weft_int(how->timeout_ms) : weft_none()},
        {"retries", how->retries ? weft_int(how->retries) : weft_none()}, {"sessionId", weft_str_or_none(how->session)},
        {"permission", weft_str_or_none(how->permission)},
        {"isolation", how->worktree || how->with_changes ? weft_str("worktree") : weft_none()},
        {"withChanges", how->with_changes ? weft_bool(true) : weft_none()}, {"runner", weft_str_or_none(how->runner)},
        {"label", weft_str_or_none(how->label)}, {"hub", weft_str_or_none(how->hub)},
        {"_meta", once ? WEFT_OBJ({"weft/idempotencyKey", weft_str(once)}) : weft_none()});
    status = submit_in_some_way(app, "task.submit", params);
    weft__free(NULL, prompt);
    return status;
}

weft_exit weft__task_retry_word(weft_app *app) {
    char key[WEFT_KEY_LEN];
    weft_exit status = check_on_question(app);
    weft__task_follow_key(key);
    return status ? status
                  : submit_in_some_way(app, "task.retry",
                                       WEFT_OBJ({"taskId", weft_str(app->args[0])},
                                                {"_meta", WEFT_OBJ({"weft/idempotencyKey", weft_str(key)})}));
}

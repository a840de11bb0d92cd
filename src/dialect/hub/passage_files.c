/* Files that agents read and write through the hub. The folder of the session is the root: nothing outside of it is reached,
 * and names that are closed (beneath.h) stay closed, whoever does it in the end.
 *
 *     asked ──no editor──▶ disk ──▶ answered
 *           ──an editor──▶ looked up ──beneath the folder──▶ editor ──answered──▶ answered
 *                                                                   ──gone, or (reading) no good──▶ disk ──▶ answered
 *
 * A file that an editor has open may have changes that are not saved: the agent reads these, and what it writes becomes
 * visible there. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "acp.h"
#include "alloc.h"
#include "option.h"
#include "passages.h"
#include "reply.h"

/* A path in a message for people. */
#define SHOWN 300
/* The hub's folder, the session's beneath it, and what is beneath that. */
#define WHOLE_PATH (3 * PATH_MAX)

typedef struct file_request {
    weft_hub_wait wait;
    weft_hub *hub;
    weft_req *req;
    bool writes, checking; /* checking: the disk is asked where the path leads, before an editor is asked */
    bool absent;           /* it is not on the disk */
    bool has_line, has_limit;
    uint64_t line, limit;
    uint64_t editor;      /* the number of its client; 0: none */
    weft_peer *peer;      /* that is being asked; NULL: none is */
    int64_t call;         /* its number there */
    char *session, *task; /* all of these in room: */
    weft_bytes path;      /* as it came */
    weft_bytes beneath;   /* beneath the session's folder */
    weft_bytes folder;    /* of the session, beneath the hub's; empty: that */
    weft_bytes content;
    char room[];
} file_request;

/* However the agent wrote it. */
static const char *whole_path(const weft_hub *hub, const file_request *request, char ret[WHOLE_PATH]) {
    bool own = request->folder.len && *request->folder.data == '/'; /* a worktree */
    snprintf(ret, WHOLE_PATH, "%s%s%.*s%s%.*s", own ? "" : weft__engine_folder(hub->engine), own ? "" : "/",
             (int) request->folder.len, request->folder.data, request->folder.len ? "/" : "", (int) request->beneath.len,
             request->beneath.data);
    return ret;
}

/* ---- saying no ---- */

static const struct {
    int r, code;
    const char *reason, *why;
} refusals[] = {
    {-ENOENT, ACP_NOT_FOUND, "fileNotFound", "there is no such file"},
    {-ENOTDIR, WEFT_INVALID_PARAMS, "notAFolder", "a part of the path is not a folder"},
    {-EISDIR, WEFT_INVALID_PARAMS, "notAFile", "it is a folder"},
    {-EINVAL, WEFT_INVALID_PARAMS, "notAFile", "it is not a regular file"},
    {-ENAMETOOLONG, WEFT_INVALID_PARAMS, "invalidParams", "the path is too long"},
    {-EXDEV, WEFT_INVALID_PARAMS, "outsideFolder", "it is not in the folder of the session"},
    {-ELOOP, WEFT_INVALID_PARAMS, "isLink", "a link is in the way"},
    {-EACCES, WEFT_INVALID_PARAMS, "notPermitted", "it may not be opened"},
    {-EPERM, WEFT_INVALID_PARAMS, "notPermitted", "it may not be opened"},
    {-EFBIG, WEFT_INVALID_PARAMS, "tooLarge", "it is larger than 16 MiB"},
    {-EAGAIN, WEFT_INTERNAL_ERROR, "rateLimited", "too many files are being read and written; try again"},
    {-ESHUTDOWN, WEFT_INTERNAL_ERROR, "shuttingDown", "the daemon is stopping"},
};

static int refuse_path(weft_req *req, weft_bytes path, int r) {
    int shown = (int) (path.len < SHOWN ? path.len : SHOWN);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].r == r)
            return weft__reply_error(req, refusals[i].code, refusals[i].reason, "%.*s: %s", shown, path.data,
                                     refusals[i].why);
    return weft__reply_error(req, WEFT_INTERNAL_ERROR, "internalError", "%.*s: %s", shown, path.data, weft_strerror(r));
}

/* ---- may it write? ---- */

/* The next name of a path that says something. */
static weft_bytes next_name(weft_bytes *rest) {
    weft_bytes name;
    do {
        const char *slash = rest->len ? memchr(rest->data, '/', rest->len) : NULL;
        size_t len = slash ? (size_t) (slash - rest->data) : rest->len;
        name = (weft_bytes){rest->data, len};
        *rest = (weft_bytes){rest->data + len + (slash != NULL), rest->len - len - (slash != NULL)};
    } while (rest->len && (!name.len || (name.len == 1 && *name.data == '.')));
    return name;
}

/* The same, however many slashes and dots are in it. */
static bool is_same_path(weft_bytes a, weft_bytes b) {
    while (a.len || b.len) {
        weft_bytes x = next_name(&a), y = next_name(&b);
        if (x.len != y.len || (x.len && memcmp(x.data, y.data, x.len) != 0))
            return false;
    }
    return true;
}

static bool names_path(const weft_json *list, weft_bytes path) {
    for (weft_iter it = weft_iterate(list); weft_typeof(list) == WEFT_ARRAY && weft_next(&it);) {
        weft_json named = weft_get(&it.value, "path");
        weft_bytes text;
        if (weft_bytes_of(&named, &text) >= 0 && is_same_path(text, path))
            return true;
    }
    return false;
}

/* Is this question about a change of the file? Where that is not known, it is not. */
static bool is_about(const weft_hub *hub, const weft_question *question, weft_bytes path) {
    weft_doc *doc = NULL;
    if (weft_doc_parse(question->detail, strlen(question->detail), hub->alloc, &doc) < 0)
        return false;
    weft_json places = weft_get(weft_doc_root(doc), "locations"), content = weft_get(weft_doc_root(doc), "content");
    const char *kind = weft_get_str(weft_doc_root(doc), "kind", "edit");
    bool changes = strcmp(kind, "edit") == 0 || strcmp(kind, "move") == 0 || strcmp(kind, "other") == 0;
    bool about = (changes && names_path(&places, path)) || names_path(&content, path);
    weft_doc_free(doc);
    return about;
}

static bool was_denied(const weft_hub *hub, const weft_question *question) {
    weft_doc *doc = NULL;
    if (!question->option || strcmp(question->option, WEFT_OPTION_DENIED) == 0)
        return true;
    if (weft_doc_parse(question->options, strlen(question->options), hub->alloc, &doc) < 0)
        return true;
    bool denied = weft__option_rejects(weft_doc_root(doc), question->option);
    weft_doc_free(doc);
    return denied;
}

/* What a person said last of a change of this file in this task. */
static bool is_denied(const weft_hub *hub, const char *task, weft_bytes path) {
    const weft_question *question = weft__question_first(hub->engine, true);
    bool denied = false;
    for (; question; question = weft__question_next(hub->engine, question, true))
        if (question->task && strcmp(question->task, task) == 0 && question->state != WEFT_QUESTION_OPEN &&
            strcmp(question->kind, "permission") == 0 && is_about(hub, question, path))
            denied = was_denied(hub, question);
    return denied;
}

/* NULL: it may. */
static const char *why_not_write(const weft_hub *hub, const weft_passage_call *call, const file_request *request) {
    char path[WHOLE_PATH];
    const weft_task *task = weft__task_find(hub->engine, call->task);
    const weft_agent *agent = task ? weft__agent_find(weft__engine_agents(hub->engine), task->runs_on) : NULL;
    if (!task || task->stopping)
        return "the turn is being ended";
    if (!agent || agent->permission == WEFT_PERMISSION_DENY)
        return "this agent may only read (\"permission\": \"deny\")";
    if (weft__session_only_reads(hub->engine, call->session))
        return "the session is in a mode that changes no files";
    whole_path(hub, request, path);
    return is_denied(hub, call->task, (weft_bytes){path, strlen(path)}) ? "a person has not allowed this change" : NULL;
}

/* ---- life ---- */

static void free_request(file_request *request) {
    weft_hub *hub = request->hub;
    hub->passage_files--;
    hub->passage_bytes -= request->content.len;
    weft__hub_wait_over(&request->wait);
    weft__free(hub->alloc, request);
}

static void refuse_request(file_request *request, int r) {
    refuse_path(request->req, request->path, r);
    free_request(request);
}

/* The clients go, and with them whoever could still answer. The call of an editor completes inside of this. */
static void on_request_lost(weft_hub_wait *wait) {
    file_request *request = WEFT_CONTAINER(wait, file_request, wait);
    if (!request->peer || weft_cancel(request->peer, request->call) < 0)
        refuse_request(request, -ESHUTDOWN);
}

static char *put_text(char **at, const char *data, size_t len) {
    char *text = *at;
    if (len)
        memcpy(text, data, len);
    text[len] = '\0';
    *at += len + 1;
    return text;
}

static int new_request(weft_hub *hub, const weft_passage_call *call, const file_request *from, file_request **ret) {
    size_t session = strlen(call->session), task = strlen(call->task);
    if (hub->passage_files >= WEFT_PASSAGE_FILES || from->content.len > WEFT_PASSAGE_BYTES - hub->passage_bytes)
        return -EAGAIN;
    file_request *request = weft__zalloc(hub->alloc, sizeof *request + session + task + from->path.len + from->beneath.len +
                                                         from->folder.len + from->content.len + 6);
    if (!request)
        return -ENOMEM;
    char *at = request->room;
    *request = *from;
    request->hub = hub;
    request->wait.on_end = on_request_lost;
    request->session = put_text(&at, call->session, session);
    request->task = put_text(&at, call->task, task);
    request->path.data = put_text(&at, from->path.data, from->path.len);
    request->beneath.data = put_text(&at, from->beneath.data, from->beneath.len);
    request->folder.data = put_text(&at, from->folder.data, from->folder.len);
    request->content.data = put_text(&at, from->content.data, from->content.len);
    hub->passage_files++;
    hub->passage_bytes += request->content.len;
    weft__hub_wait(hub->clients, &request->wait);
    *ret = request;
    return 0;
}

/* ---- by the hub's own files ---- */

/* Some agents read a file before they write it, and take any error for a reason not to. So a file that is not there is
 * empty, unless some lines of it are asked for: then nobody is about to write it. */
static void answer_read(const file_request *request, const weft_file_result *result) {
    const weft_file_content *content = result->content;
    bool absent = result->r == -ENOENT && !request->has_line && !request->has_limit;
    if (absent)
        weft__reply_val(request->req, WEFT_OBJ({"content", weft_str("")}));
    else if (result->r < 0)
        refuse_path(request->req, request->path, result->r);
    else if (content->truncated) /* a part that looked like the whole would be written back as the whole */
        refuse_path(request->req, request->path, -EFBIG);
    else if (!content->text)
        weft__reply_error(request->req, WEFT_INVALID_PARAMS, "notText", "%.*s: it is not text (UTF-8)",
                          (int) (request->path.len < SHOWN ? request->path.len : SHOWN), request->path.data);
    else
        weft__reply_val(request->req,
                        WEFT_OBJ({"content", weft__buf_len(&content->content) ? weft_strn(weft__buf_head(&content->content),
                                                                                          weft__buf_len(&content->content))
                                                                              : weft_str("")}));
}

static int ask_editor(file_request *request);

static void on_disk(void *ctx, const weft_file_result *result) {
    file_request *request = ctx;
    if (!request->req) { /* the agent has given it up */
        free_request(request);
        return;
    }
    if (request->checking && (result->r >= 0 || result->r == -ENOENT)) {
        request->checking = false;
        request->absent = result->r == -ENOENT;
        int r = ask_editor(request);
        if (r < 0)
            refuse_request(request, r);
        return;
    }
    if (request->checking)
        refuse_path(request->req, request->path, result->r);
    else if (!request->writes)
        answer_read(request, result);
    else if (result->r < 0)
        refuse_path(request->req, request->path, result->r);
    else
        weft__reply_val(request->req, weft_obj(NULL, 0));
    free_request(request);
}

/* limit 0 means no lines to the agent, and all of them to the files. */
static int ask_disk(file_request *request) {
    const weft_hub *hub = request->hub;
    weft_file_read read = {.path = request->beneath,
                           .folder = request->folder,
                           .max = request->checking ? 1 : WEFT_FILE_READ_MAX,
                           .line = request->line,
                           .limit = request->limit};
    weft_file_write write = {
        .path = request->beneath, .folder = request->folder, .content = request->content, .folders = true};
    if (!hub->files)
        return -EACCES;
    return request->writes && !request->checking ? weft__files_write(hub->files, &write, on_disk, request)
                                                 : weft__files_read(hub->files, &read, on_disk, request);
}

/* ---- by an editor ---- */

/* A file that is nowhere needs no note: agents read what they are about to make. */
static void go_to_disk(file_request *request, const char *note) {
    if (request->writes || !request->absent)
        weft__task_note(request->hub->engine, request->task, note);
    int r = ask_disk(request);
    if (r < 0)
        refuse_request(request, r);
}

/* What the editor did not do. A write that it refused, or may still be about to do, is not done behind its back. */
static void do_without_editor(file_request *request, int r, const weft_answer *answer) {
    bool refused = r >= 0 && answer->error, gone = r == -ECONNRESET || r == -ENOTCONN || r == -EPIPE;
    if (!request->writes && refused)
        go_to_disk(request, "weft: the editor did not give a file that the agent reads; it was read from the disk\n");
    else if (!request->writes)
        go_to_disk(request, gone ? "weft: the editor has gone; a file that the agent reads was read from the disk\n"
                                 : "weft: the editor did not answer in time; a file that the agent reads was read from the "
                                   "disk, without changes that are not saved\n");
    else if (gone)
        go_to_disk(request, "weft: the editor has gone; what the agent writes was written to the disk\n");
    else if (refused) {
        weft__reply_error(request->req, answer->error->code, "editorRefused", "The editor did not write the file: %.300s",
                          answer->error->message);
        free_request(request);
    } else {
        weft__reply_error(request->req, WEFT_INTERNAL_ERROR, "editorSilent",
                          "The editor has not said within %d s that the file is written", WEFT_EDITOR_MS / 1000);
        free_request(request);
    }
}

static void on_editor(weft_peer *peer, int r, const weft_answer *answer, void *ctx) {
    file_request *request = ctx;
    weft_json content = r >= 0 && answer->result ? weft_get(answer->result, "content") : (weft_json){0};
    (void) peer;
    request->peer = NULL;
    if (r == -ECANCELED) { /* the agent has given it up, or the hub goes */
        refuse_request(request, -ESHUTDOWN);
    } else if (r >= 0 && answer->result && (request->writes || weft_typeof(&content) == WEFT_STRING)) {
        weft__reply_val(request->req, request->writes ? weft_obj(NULL, 0) : WEFT_OBJ({"content", weft_copy(&content)}));
        free_request(request);
    } else
        do_without_editor(request, r >= 0 && answer->result ? -EBADMSG : r, answer);
}

/* The agent cancelled its request, or has gone: the editor need not go on. */
static void on_request_cancelled(weft_req *req, int why, void *ctx) {
    file_request *request = ctx;
    (void) why;
    request->req = NULL;
    if (request->peer)
        weft_cancel(request->peer, request->call);
    weft_fail(req, WEFT_CANCELLED, "Request cancelled", weft_none());
}

/* 0: on_editor() will come, or the disk is asked. */
static int ask_editor(file_request *request) {
    char path[WHOLE_PATH];
    const weft_hub_client *client = weft__hub_clients_find(request->hub->clients, request->editor);
    weft_call_opts opts = {.on_answer = on_editor, .ctx = request, .timeout_ms = WEFT_EDITOR_MS};
    weft_val params =
        WEFT_OBJ({"sessionId", weft_str(request->session)}, {"path", weft_str(whole_path(request->hub, request, path))},
                 {"line", request->has_line ? weft_uint(request->line) : weft_none()},
                 {"limit", request->has_limit ? weft_uint(request->limit) : weft_none()},
                 {"content", request->writes ? weft_strn(request->content.data, request->content.len) : weft_none()});
    weft_peer *peer = client ? weft__hub_client_peer(client) : NULL;
    int r = peer ? weft_call_start(peer, request->writes ? "fs/write_text_file" : "fs/read_text_file", params, &opts,
                                   &request->call)
                 : -ENOTCONN;
    if (r < 0)
        return ask_disk(request);
    request->peer = peer;
    return 0;
}

/* ---- the requests ---- */

/* Where the agent means. What leads back upwards is refused here, where only the names are known: an editor would follow it.
 */
static bool goes_up(weft_bytes path) {
    for (size_t i = 0; i + 1 < path.len; i++)
        if (path.data[i] == '.' && path.data[i + 1] == '.' && (i == 0 || path.data[i - 1] == '/') &&
            (i + 2 == path.len || path.data[i + 2] == '/'))
            return true;
    return false;
}

/* What follows the worktree's own path. */
static int find_in_worktree(const char *worktree, file_request *ret) {
    size_t len = strlen(worktree);
    weft_bytes path = ret->path;
    ret->folder = (weft_bytes){worktree, len};
    ret->beneath = path;
    if (!path.len || *path.data != '/')
        return goes_up(path) ? -EXDEV : 0;
    if (path.len < len || memcmp(path.data, worktree, len) != 0 || (path.len > len && path.data[len] != '/'))
        return -EXDEV;
    while (len < path.len && path.data[len] == '/')
        len++;
    ret->beneath = len == path.len ? (weft_bytes){".", 1} : (weft_bytes){path.data + len, path.len - len};
    return goes_up(ret->beneath) ? -EXDEV : 0;
}

static int find_place(const weft_hub *hub, const char *session, file_request *ret) {
    const weft_session *known = weft__session_find(hub->engine, session);
    if (!known || !hub->files)
        return -EACCES;
    if (known->isolation)
        return known->path ? find_in_worktree(known->path, ret) : -EACCES;
    int r = weft__files_relative(hub->files, ret->path, &ret->beneath);
    size_t len = strlen(known->folder);
    if (r < 0)
        return r;
    ret->folder = (weft_bytes){known->folder, len};
    bool relative = ret->beneath.data == ret->path.data;
    if (!len || relative)
        return goes_up(ret->beneath) ? -EXDEV : 0;
    if (ret->beneath.len < len || memcmp(ret->beneath.data, known->folder, len) != 0 ||
        (ret->beneath.len > len && ret->beneath.data[len] != '/'))
        return -EXDEV;
    while (len < ret->beneath.len && ret->beneath.data[len] == '/')
        len++;
    ret->beneath =
        len == ret->beneath.len ? (weft_bytes){".", 1} : (weft_bytes){ret->beneath.data + len, ret->beneath.len - len};
    return goes_up(ret->beneath) ? -EXDEV : 0;
}

static int begin_request(weft_hub *hub, const weft_passage_call *call, file_request *request) {
    const weft_hub_client *editor =
        weft__acp_editor(hub, call->session, call->task, request->writes ? ACP_EDITOR_WRITES : ACP_EDITOR_READS);
    file_request *made;
    request->editor = editor ? weft__hub_client_number(editor) : 0;
    request->checking = editor != NULL;
    int r = new_request(hub, call, request, &made);
    if (r < 0)
        return r;
    weft_req *req = made->req;
    weft_req_on_cancel(req, on_request_cancelled, made);
    r = ask_disk(made);
    if (r < 0) {
        weft_req_on_cancel(req, NULL, NULL);
        free_request(made);
    }
    return r;
}

static int take_path(weft_hub *hub, const weft_passage_call *call, weft_req *req, const weft_json *params,
                     file_request *ret) {
    weft_json path = weft_get(params, "path");
    if (weft_bytes_of(&path, &ret->path) < 0 || !ret->path.len)
        return weft__reply_invalid(req, "/path", "path must be the absolute path of a file"), -EINVAL;
    ret->req = req;
    int r = find_place(hub, call->session, ret);
    if (r < 0)
        refuse_path(req, ret->path, r);
    return r;
}

static int end_of_begin(const file_request *request, int r) {
    return r >= 0 || r == -ENOMEM ? r : refuse_path(request->req, request->path, r);
}

/* Lines are counted from 1, and some agents begin with 0. */
static int take_count(weft_req *req, const weft_json *params, const char *name, bool *ret_has, uint64_t *ret) {
    weft_json value = weft_get(params, name);
    int64_t number = weft_get_int(params, name, -1);
    if (!value.text || weft_typeof(&value) == WEFT_NULL)
        return 0;
    if (number < 0 || number > UINT32_MAX)
        return weft__reply_invalid(req, "", "%s must be a whole number, not below 0", name), -EINVAL;
    *ret_has = true;
    *ret = (uint64_t) number;
    return 0;
}

int weft__passage_read_file(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params) {
    file_request request = {0};
    if (weft_req_is_notification(req))
        return 0;
    if (take_path(ctx, call, req, params, &request) < 0 ||
        take_count(req, params, "line", &request.has_line, &request.line) < 0 ||
        take_count(req, params, "limit", &request.has_limit, &request.limit) < 0)
        return 0;
    if (request.has_limit && !request.limit)
        return weft_reply(req, WEFT_OBJ({"content", weft_str("")}));
    return end_of_begin(&request, begin_request(ctx, call, &request));
}

int weft__passage_write_file(void *ctx, const weft_passage_call *call, weft_req *req, const weft_json *params) {
    file_request request = {.writes = true};
    weft_json content = weft_get(params, "content");
    if (weft_req_is_notification(req) || take_path(ctx, call, req, params, &request) < 0)
        return 0;
    if (weft_bytes_of(&content, &request.content) < 0)
        return weft__reply_invalid(req, "/content", "content must be a string");
    const char *why = why_not_write(ctx, call, &request);
    if (why)
        return weft__reply_error(req, WEFT_INVALID_PARAMS, "notPermitted", "%.*s was not written: %s",
                                 (int) (request.path.len < SHOWN ? request.path.len : SHOWN), request.path.data, why);
    return end_of_begin(&request, begin_request(ctx, call, &request));
}

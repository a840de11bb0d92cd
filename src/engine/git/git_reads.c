/* status, diff, log and branches. Each names every option on which a configuration could change what is printed. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "beneath.h"
#include "files.h"
#include "git_private.h"

/* Arguments being put together. */
typedef struct args {
    const char *list[WEFT_GIT_ARGS];
    size_t count;
} args;

static void add_arg(args *a, const char *text) {
    assert(a->count < WEFT_GIT_ARGS - 1);
    a->list[a->count++] = text;
}

static void add_args(args *a, const char *const *list) {
    for (; *list; list++)
        add_arg(a, *list);
}

static int check_nothing(const weft_git_request *request) {
    (void) request;
    return 0;
}

static int check_path(const weft_git_request *request) {
    return request->path && !weft__git_is_path(request->path) ? -EINVAL : 0;
}

/* ---- status ---- */

static void run_status(weft_git_call *call) {
    static const char *const always[] = {"status",         "--porcelain=v2", "-z", "--branch", "--ignore-submodules=dirty",
                                         "--find-renames", "--ahead-behind", NULL};
    const weft_repository *repository = &call->repository;
    args a = {0};
    add_args(&a, always);
    add_arg(&a, call->request.untracked ? "--untracked-files=all" : "--untracked-files=normal");
    add_arg(&a, "--");
    if (*repository->prefix)
        add_arg(&a, repository->prefix);
    if (!weft__git_run_well(call, &(weft_git_run){.argv = a.list, .max_output = WEFT_GIT_OUTPUT}))
        return;
    int r =
        weft__git_parse_status(weft__git_output(call), repository->prefix, WEFT_GIT_FILES, call->git->alloc, &call->status);
    if (r < 0) {
        weft__git_fail(call, r);
        return;
    }
    const char *slash = strrchr(repository->top, '/');
    call->status.root = repository->top;
    call->status.name = slash[1] ? slash + 1 : slash;
    call->result.status = &call->status;
}

const weft_git_op weft__git_status = {false, check_nothing, run_status};

/* ---- diff ---- */

static int check_diff(const weft_git_request *request) {
    bool bad = request->side > WEFT_GIT_NEW || (request->side == WEFT_GIT_NEW && !request->path);
    return bad ? -EINVAL : check_path(request);
}

static size_t diff_max(const weft_git_call *call) {
    size_t max = call->request.max ? call->request.max : WEFT_GIT_DIFF;
    return max < WEFT_GIT_DIFF_MAX ? max : WEFT_GIT_DIFF_MAX;
}

static void take_diff(weft_git_call *call) {
    weft_git_text text = weft__git_output(call);
    call->diff.text = (weft_bytes){text.len ? text.data : "", text.len};
    call->diff.truncated = text.cut;
    weft__git_scan_diff(call->diff.text, &call->diff);
    call->result.diff = &call->diff;
}

static bool run_diff_of(weft_git_call *call, const char *against) {
    static const char *const always[] = {"diff",
                                         "--no-ext-diff",
                                         "--no-textconv",
                                         "--no-color",
                                         "--src-prefix=a/",
                                         "--dst-prefix=b/",
                                         "--ignore-submodules=dirty",
                                         "--submodule=short",
                                         "--unified=3",
                                         "--find-renames",
                                         NULL};
    char path[2 * PATH_MAX], literal[2 * PATH_MAX + 16], relative[PATH_MAX + 16];
    args a = {0};
    add_args(&a, always);
    snprintf(relative, sizeof relative, "--relative=%s", call->repository.prefix);
    add_arg(&a, *call->repository.prefix ? relative : "--no-relative");
    if (against)
        add_arg(&a, against);
    add_arg(&a, "--");
    if (call->request.path) {
        snprintf(literal, sizeof literal, ":(literal)%s", weft__git_in_top(call, call->request.path, path));
        add_arg(&a, literal);
    }
    add_args(&a, weft__git_closed);
    return weft__git_run(call, &(weft_git_run){.argv = a.list, .max_output = diff_max(call), .magic = true});
}

/* ---- the diff of a file that git does not know ---- */

/* As git quotes it: what people could not see, and what ends a name. */
static int put_name(weft_buf *to, const weft_alloc *alloc, const char *before, const char *path) {
    bool plain = true;
    for (const char *at = path; *at; at++)
        plain &= (unsigned char) *at >= ' ' && *at != '"' && *at != '\\' && *at != 0x7f;
    int r = plain ? 0 : weft__buf_put(to, alloc, "\"", 1);
    if (r == 0)
        r = weft__buf_put(to, alloc, before, strlen(before));
    for (const char *at = path; r == 0 && *at; at++) {
        char room[8];
        unsigned char c = (unsigned char) *at;
        const char *form = c < ' ' || c == 0x7f ? "\\%03o" : c == '"' || c == '\\' ? "\\%c" : "%c";
        r = weft__buf_put(to, alloc, room, (size_t) snprintf(room, sizeof room, form, c));
    }
    return r < 0 || plain ? r : weft__buf_put(to, alloc, "\"", 1);
}

static int put_diff_text(weft_buf *to, const weft_alloc *alloc, const char *text) {
    return weft__buf_put(to, alloc, text, strlen(text));
}

static int put_new_head(weft_buf *to, const weft_alloc *alloc, const char *path, const weft_file_content *content) {
    bool binary = !content->text, empty = !weft__buf_len(&content->content);
    int r = put_diff_text(to, alloc, "diff --git ");
    if (r == 0)
        r = put_name(to, alloc, "a/", path);
    if (r == 0)
        r = put_diff_text(to, alloc, " ");
    if (r == 0)
        r = put_name(to, alloc, "b/", path);
    if (r == 0)
        r = put_diff_text(to, alloc, content->mode & 0100 ? "\nnew file mode 100755\n" : "\nnew file mode 100644\n");
    if (r < 0 || (empty && !binary))
        return r;
    r = put_diff_text(to, alloc, binary ? "Binary files /dev/null and " : "--- /dev/null\n+++ ");
    if (r == 0)
        r = put_name(to, alloc, "b/", path);
    return r < 0 ? r : put_diff_text(to, alloc, binary ? " differ\n" : "\n");
}

static int put_new_lines(weft_buf *to, const weft_alloc *alloc, weft_bytes text) {
    char head[64];
    size_t lines = 0;
    for (const char *at = text.data; at && at < text.data + text.len; lines++) {
        at = memchr(at, '\n', (size_t) (text.data + text.len - at));
        at = at ? at + 1 : NULL;
    }
    int n = lines == 1 ? snprintf(head, sizeof head, "@@ -0,0 +1 @@\n")
                       : snprintf(head, sizeof head, "@@ -0,0 +1,%zu @@\n", lines);
    int r = weft__buf_put(to, alloc, head, (size_t) n);
    for (size_t at = 0; r == 0 && at < text.len;) {
        const char *stop = memchr(text.data + at, '\n', text.len - at);
        size_t len = stop ? (size_t) (stop - text.data) + 1 - at : text.len - at;
        r = weft__buf_put(to, alloc, "+", 1);
        if (r == 0)
            r = weft__buf_put(to, alloc, text.data + at, len);
        at += len;
    }
    if (r == 0 && text.data[text.len - 1] != '\n')
        r = put_diff_text(to, alloc, "\n\\ No newline at end of file\n");
    return r;
}

/* Not by git: it would follow links on the way to the file. */
static void run_new_diff(weft_git_call *call) {
    const weft_alloc *alloc = call->git->alloc;
    const char *path = call->request.path;
    weft_file_content content;
    weft_file_read what = {.path = {path, strlen(path)}, .max = diff_max(call)};
    int r = weft__file_read(call->git->root, &what, 0, alloc, &content);
    if (r == -ENOMEM) {
        weft__git_fail(call, r);
        return;
    }
    if (r < 0) {
        weft__git_refuse(call, WEFT_GIT_REFUSED, "the file cannot be read, or is not a regular file in this folder");
        return;
    }
    weft_bytes text = {weft__buf_head(&content.content), weft__buf_len(&content.content)};
    weft__command_end_done(&call->end, alloc);
    call->end.output = (weft_buf){0};
    r = put_new_head(&call->end.output, alloc, path, &content);
    if (r == 0 && content.text && text.len)
        r = put_new_lines(&call->end.output, alloc, text);
    call->end.truncated = content.truncated;
    weft__file_content_done(&content, alloc);
    if (r < 0)
        weft__git_fail(call, r);
    else
        take_diff(call);
}

/* Before the first commit there is no HEAD: everything in the index is new. */
static void run_diff(weft_git_call *call) {
    static const char *const against[] = {[WEFT_GIT_STAGED] = "--cached", [WEFT_GIT_BOTH] = "HEAD"};
    if (call->request.side == WEFT_GIT_NEW) {
        run_new_diff(call);
        return;
    }
    const char *other = call->request.side == WEFT_GIT_UNSTAGED ? NULL : against[call->request.side];
    bool ran = run_diff_of(call, other);
    if (ran && call->end.exit_code == 128 && other && strstr(call->end.errors, "bad revision 'HEAD'"))
        ran = run_diff_of(call, "--cached");
    if (!ran)
        return;
    if (call->end.exit_code == 0 || call->end.truncated)
        take_diff(call);
    else
        weft__git_refuse(call, WEFT_GIT_REFUSED, NULL);
}

const weft_git_op weft__git_diff = {false, check_diff, run_diff};

/* ---- log ---- */

static int check_log(const weft_git_request *request) {
    return request->ref && !weft__git_is_ref(request->ref) ? -EINVAL : check_path(request);
}

static size_t limit_of(size_t asked, size_t most) {
    return asked && asked < most ? asked : most;
}

/* One more than is given, in order to know whether there are more. */
static void run_log(weft_git_call *call) {
    static const char *const always[] = {"log",
                                         "-z",
                                         "--no-show-signature",
                                         "--no-notes",
                                         "--no-color",
                                         "--no-patch",
                                         "--no-follow",
                                         "--encoding=UTF-8",
                                         "--format=" WEFT_GIT_LOG,
                                         NULL};
    char path[2 * PATH_MAX], count[48], skip[48];
    size_t max = limit_of(call->request.max, WEFT_GIT_COMMITS);
    args a = {0};
    snprintf(count, sizeof count, "--max-count=%zu", max + 1);
    snprintf(skip, sizeof skip, "--skip=%zu", call->request.skip < INT32_MAX ? call->request.skip : INT32_MAX);
    add_args(&a, always);
    add_arg(&a, count);
    add_arg(&a, skip);
    if (call->request.follow && call->request.path)
        add_arg(&a, "--follow");
    add_arg(&a, "--end-of-options");
    add_arg(&a, call->request.ref ? call->request.ref : "HEAD");
    add_arg(&a, "--");
    if (call->request.path || *call->repository.prefix)
        add_arg(&a, weft__git_in_top(call, call->request.path ? call->request.path : "", path));
    if (!weft__git_run(call, &(weft_git_run){.argv = a.list, .max_output = WEFT_GIT_OUTPUT}))
        return;
    /* Before the first commit. */
    bool none = !call->request.ref && call->end.exit_code == 128 &&
                (strstr(call->end.errors, "does not have any commits") || strstr(call->end.errors, "bad revision 'HEAD'"));
    if (call->end.exit_code != 0 && !call->end.truncated && !none) {
        weft__git_refuse(call, WEFT_GIT_REFUSED, NULL);
        return;
    }
    int r = weft__git_parse_log(weft__git_output(call), max, call->git->alloc, &call->log);
    if (r < 0)
        weft__git_fail(call, r);
    else
        call->result.log = &call->log;
}

const weft_git_op weft__git_log = {false, check_log, run_log};

/* ---- branches ---- */

static void run_branches(weft_git_call *call) {
    char count[48];
    size_t max = limit_of(call->request.max, WEFT_GIT_BRANCHES);
    args a = {0};
    snprintf(count, sizeof count, "--count=%zu", max + 1);
    add_arg(&a, "for-each-ref");
    add_arg(&a, "--sort=-committerdate");
    add_arg(&a, count);
    add_arg(&a, "--format=" WEFT_GIT_REFS);
    add_arg(&a, "refs/heads");
    if (call->request.remotes)
        add_arg(&a, "refs/remotes");
    if (!weft__git_run_well(call, &(weft_git_run){.argv = a.list, .max_output = WEFT_GIT_OUTPUT}))
        return;
    int r = weft__git_parse_branches(weft__git_output(call), max, call->git->alloc, &call->branches);
    if (r < 0)
        weft__git_fail(call, r);
    else
        call->result.branches = &call->branches;
}

const weft_git_op weft__git_branches = {false, check_nothing, run_branches};

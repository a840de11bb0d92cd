/* stage, unstage, discard and commit: with the user's own configuration and hooks. Paths go through standard input where git
 * takes them there, each ended by NUL, so that none can be an option and there may be many. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "git_private.h"

#define SAID (64u << 10) /* bytes of what a hook or git prints that are kept */

/* ---- paths ---- */

static int check_list(const char *const *paths) {
    size_t bytes = 0;
    if (!paths || !paths[0])
        return -EINVAL;
    for (; *paths; paths++) {
        if (!weft__git_is_path(*paths))
            return -EINVAL;
        bytes += strlen(*paths) + 1;
        if (bytes > WEFT_GIT_PATHS)
            return -E2BIG;
    }
    return 0;
}

static int check_paths(const weft_git_request *request) {
    return request->all ? 0 : check_list(request->paths);
}

/* The request's paths as pathspecs, one after the other, and then what is left alone. */
static int join_paths(const weft_git_call *call, weft_buf *ret) {
    static const char literal[] = ":(literal)";
    const weft_alloc *alloc = call->git->alloc;
    const char *prefix = call->repository.prefix;
    int r = 0;
    for (const char *const *path = call->request.paths; r == 0 && *path; path++) {
        r = weft__buf_put(ret, alloc, literal, sizeof literal - 1);
        if (r == 0)
            r = weft__buf_put(ret, alloc, prefix, strlen(prefix));
        if (r == 0)
            r = weft__buf_put(ret, alloc, *path, strlen(*path) + 1);
    }
    for (const char *const *closed = weft__git_closed; r == 0 && *closed; closed++)
        r = weft__buf_put(ret, alloc, *closed, strlen(*closed) + 1);
    return r;
}

static void run_write(weft_git_call *call, const char *const *argv, weft_bytes input) {
    weft__git_run_well(
        call,
        &(weft_git_run){.argv = argv, .input = input, .max_output = SAID, .write = true, .read_on = true, .magic = true});
}

static void run_on_paths(weft_git_call *call, const char *const *argv) {
    weft_buf paths = {0};
    int r = join_paths(call, &paths);
    if (r < 0)
        weft__git_fail(call, r);
    else
        run_write(call, argv, (weft_bytes){weft__buf_head(&paths), weft__buf_len(&paths)});
    weft__buf_done(&paths, call->git->alloc);
}

static void run_on_all(weft_git_call *call, const char *verb, const char *option) {
    char folder[PATH_MAX + 16];
    const char *argv[5 + WEFT_GIT_CLOSED] = {verb, option, "--", folder};
    memcpy(argv + 4, weft__git_closed, WEFT_GIT_CLOSED * sizeof *argv);
    snprintf(folder, sizeof folder, ":(literal)%s", *call->repository.prefix ? call->repository.prefix : ".");
    run_write(call, argv, (weft_bytes){0});
}

/* ---- the rows ---- */

static void run_stage(weft_git_call *call) {
    static const char *const argv[] = {"add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", NULL};
    if (call->request.all)
        run_on_all(call, "add", "--all");
    else
        run_on_paths(call, argv);
}

/* "reset" and not "restore --staged", which needs a commit. */
static void run_unstage(weft_git_call *call) {
    static const char *const argv[] = {"reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul", NULL};
    if (call->request.all)
        run_on_all(call, "reset", "--quiet");
    else
        run_on_paths(call, argv);
}

static int check_discard(const weft_git_request *request) {
    return check_list(request->paths);
}

/* "clean" takes its paths as arguments. They are in one piece with their ends already. */
static void run_clean(weft_git_call *call) {
    static const char *const first[] = {"clean", "--force", "-d", "--quiet", "--"};
    const weft_alloc *alloc = call->git->alloc;
    weft_buf paths = {0};
    size_t count = WEFT_GIT_CLOSED;
    for (const char *const *path = call->request.paths; *path; path++)
        count++;
    const char **argv = weft__zalloc(alloc, (count + 6) * sizeof *argv);
    int r = argv ? join_paths(call, &paths) : -ENOMEM;
    if (r == 0) {
        const char *at = weft__buf_head(&paths);
        memcpy(argv, first, sizeof first);
        for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
            argv[5 + i] = at;
        run_write(call, argv, (weft_bytes){0});
    } else
        weft__git_fail(call, r);
    weft__buf_done(&paths, alloc);
    weft__free(alloc, argv);
}

static void run_discard(weft_git_call *call) {
    static const char *const argv[] = {"restore", "--worktree", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul",
                                       NULL};
    if (call->request.untracked)
        run_clean(call);
    else
        run_on_paths(call, argv);
}

/* ---- commit ---- */

static int check_commit(const weft_git_request *request) {
    weft_bytes message = request->message;
    if (message.len > WEFT_GIT_MESSAGE)
        return -E2BIG;
    if (message.len && memchr(message.data, '\0', message.len))
        return -EINVAL;
    for (size_t i = 0; i < message.len; i++)
        if (!strchr(" \t\r\n", message.data[i]))
            return 0;
    return -EINVAL;
}

/* git says on standard output why there is nothing to do, and hooks say there why not. */
static void refuse_commit(weft_git_call *call) {
    weft_git_text said = weft__git_output(call);
    char text[WEFT_COMMAND_ERRORS + 1];
    size_t len = said.len < sizeof text - 1 ? said.len : sizeof text - 1;
    if (len)
        memcpy(text, said.data, len);
    text[len] = '\0';
    bool nothing =
        call->end.exit_code == 1 && (strstr(text, "nothing to commit") || strstr(text, "nothing added to commit") ||
                                     strstr(text, "no changes added to commit"));
    weft__git_refuse(call, nothing ? WEFT_GIT_NOTHING : WEFT_GIT_REFUSED, *call->end.errors ? NULL : text);
}

static void run_commit(weft_git_call *call) {
    static const char *const head[] = {"rev-parse", "--verify", "HEAD", NULL};
    const char *argv[] = {"commit", "--file=-", call->request.amend ? "--amend" : NULL, NULL};
    if (!weft__git_run(
            call, &(weft_git_run){
                      .argv = argv, .input = call->request.message, .max_output = SAID, .write = true, .read_on = true}))
        return;
    if (call->end.exit_code != 0) {
        refuse_commit(call);
        return;
    }
    if (!weft__git_run_well(call, &(weft_git_run){.argv = head, .max_output = sizeof call->commit - 1}))
        return;
    weft_git_text said = weft__git_output(call);
    size_t len = said.len && said.data[said.len - 1] == '\n' ? said.len - 1 : said.len;
    memcpy(call->commit, said.data, len);
    call->commit[len] = '\0';
    call->result.commit = call->commit;
}

const weft_git_op weft__git_stage = {true, check_paths, run_stage};
const weft_git_op weft__git_unstage = {true, check_paths, run_unstage};
const weft_git_op weft__git_discard = {true, check_discard, run_discard};
const weft_git_op weft__git_commit = {true, check_commit, run_commit};

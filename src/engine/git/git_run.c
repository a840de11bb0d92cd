/* Running git for one call, on a thread: where, with which environment, and what its end means. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "git_private.h"
#include "utf8.h"

#define SETTINGS_MAX (1u << 20) /* bytes of names in a configuration */

const char *const weft__git_closed[WEFT_GIT_CLOSED + 1] = {":(exclude,glob,icase)**/.weft/**",
                                                           ":(exclude,glob,icase)**/.aiwg/daemon/**", NULL};

void weft__git_fail(weft_git_call *call, int r) {
    call->result.r = r;
}

/* ---- refusals ---- */

/* What a repository's file names and hooks print is shown to people: valid UTF-8 and no control characters. */
static void tidy_message(char *text) {
    size_t len = strlen(text), to = 0;
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char) text[i];
        size_t n = c < 0x80 ? 1 : weft__utf8_len(text + i, len - i);
        bool control = (c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
        if (!n || control)
            text[to++] = '?';
        else
            for (size_t k = 0; k < n; k++)
                text[to++] = text[i + k];
        i += n ? n : 1;
    }
    while (to && text[to - 1] == '\n')
        to--;
    text[to] = '\0';
}

bool weft__git_refuse(weft_git_call *call, weft_git_refusal refusal, const char *text) {
    call->result.refusal = refusal;
    snprintf(call->message, sizeof call->message, "%s", text ? text : call->end.errors);
    tidy_message(call->message);
    return false;
}

static weft_git_refusal refusal_of(const char *errors) {
    if (strstr(errors, "dubious ownership"))
        return WEFT_GIT_DUBIOUS;
    return strstr(errors, "not a git repository") ? WEFT_GIT_NO_REPOSITORY : WEFT_GIT_REFUSED;
}

/* ---- running ---- */

static int run_with_env(weft_git_call *call, const weft_git_run *run, const char *const *env) {
    const weft_git *git = call->git;
    size_t count = 0, first = 0;
    while (run->argv[count])
        count++;
    const char **argv = weft__alloc(git->alloc, (count + 4) * sizeof *argv);
    if (!argv)
        return -ENOMEM;
    argv[first++] = "git";
    argv[first++] = "--no-pager";
    if (!run->magic)
        argv[first++] = "--literal-pathspecs";
    memcpy(argv + first, run->argv, (count + 1) * sizeof *argv);
    weft__command_end_done(&call->end, git->alloc);
    int r = weft__command_run(
        &(weft_command){
            .alloc = git->alloc,
            .program = git->program,
            .argv = argv,
            .env = env,
            .folder = call->top,
            .input = run->input,
            .max_output = run->max_output,
            .read_on = run->read_on,
            .timeout_ms = run->write ? git->write_ms : git->read_ms,
            .cancel = call->cancel,
        },
        &call->end);
    weft__free(git->alloc, argv);
    return r;
}

bool weft__git_run(weft_git_call *call, const weft_git_run *run) {
    const weft_git *git = call->git;
    char **env = weft__git_env_make(&git->env, &call->repository, &call->settings, run->write);
    int r = env ? run_with_env(call, run, (const char *const *) env) : -ENOMEM;
    weft__git_env_free(&git->env, env);
    if (r == 0 && call->end.cancelled)
        r = -ECANCELED;
    else if (r == 0 && call->end.timed_out)
        r = -ETIMEDOUT;
    else if (r == 0 && call->end.exit_code < 0 && !call->end.truncated)
        r = -EIO; /* somebody else killed it */
    if (r < 0)
        weft__git_fail(call, r);
    return r == 0;
}

bool weft__git_run_well(weft_git_call *call, const weft_git_run *run) {
    if (!weft__git_run(call, run))
        return false;
    bool ended = call->end.truncated && !run->read_on;
    return call->end.exit_code == 0 || ended || weft__git_refuse(call, refusal_of(call->end.errors), NULL);
}

weft_git_text weft__git_output(weft_git_call *call) {
    return (weft_git_text){weft__buf_head(&call->end.output), weft__buf_len(&call->end.output), call->end.truncated};
}

const char *weft__git_in_top(const weft_git_call *call, const char *path, char room[2 * PATH_MAX]) {
    snprintf(room, 2 * PATH_MAX, "%s%s", call->repository.prefix, path);
    return room;
}

/* ---- before the first ---- */

static bool is_found(weft_git_call *call) {
    int r = weft__repository_find(call->git->folder, &call->repository);
    if (r == -ENOENT)
        return weft__git_refuse(call, WEFT_GIT_NO_REPOSITORY, "this folder is not in a git repository");
    if (r == -EXDEV)
        return weft__git_refuse(call, WEFT_GIT_ELSEWHERE,
                                "the .git of this folder leads to a repository that does not know this folder");
    if (r == 0)
        call->top = open(call->repository.top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r == 0 && call->top < 0)
        r = -errno;
    if (r < 0)
        weft__git_fail(call, r);
    return r == 0;
}

/* A submodule's repository, and one that was made with --separate-git-dir and told so, has core.worktree. */
static bool knows_us(weft_git_call *call) {
    char path[PATH_MAX + 16];
    const char *const argv[] = {"config", "--file", path, "--no-includes", "-z", "--get", "core.worktree", NULL};
    if (call->repository.knows_us)
        return true;
    snprintf(path, sizeof path, "%s/config", call->repository.common);
    if (!weft__git_run(call, &(weft_git_run){.argv = argv, .max_output = PATH_MAX}))
        return false;
    weft_git_text said = weft__git_output(call);
    bool good = call->end.exit_code == 0 && said.len && !said.data[said.len - 1] &&
                weft__repository_is_worktree(&call->repository, said.data);
    return good || weft__git_refuse(call, WEFT_GIT_ELSEWHERE,
                                    "the .git of this folder leads to a repository that does not know this folder; if "
                                    "it is meant, set its core.worktree to this folder");
}

/* The names of all settings, of every file that git reads for this repository. */
static bool read_settings(weft_git_call *call) {
    static const char *const argv[] = {"config", "--list", "--name-only", "-z", NULL};
    if (!weft__git_run_well(call, &(weft_git_run){.argv = argv, .max_output = SETTINGS_MAX}))
        return false;
    if (call->end.truncated)
        return weft__git_refuse(call, WEFT_GIT_REFUSED, "the configuration of git is too large");
    call->settings_text = call->end.output;
    call->end.output = (weft_buf){0};
    weft_git_text text = {weft__buf_head(&call->settings_text), weft__buf_len(&call->settings_text), false};
    int r = weft__git_parse_settings(text, WEFT_GIT_FILTERS, call->git->alloc, &call->settings);
    if (r == -E2BIG)
        return weft__git_refuse(call, WEFT_GIT_REFUSED, "the configuration of git has too many filters");
    if (r < 0)
        weft__git_fail(call, r);
    return r == 0;
}

bool weft__git_prepare(weft_git_call *call) {
    if (!call->git->program) {
        weft__git_fail(call, call->git->no_program);
        return false;
    }
    return is_found(call) && knows_us(call) && read_settings(call);
}

/* The calls on the loop's side: checked, copied, queued, handed to a thread, answered. See git.h.
 *
 *   asked ──▶ waiting ──start_waiting_calls()──▶ running ──the thread is done──▶ answered     call_done()
 *                └─────────────cancel──────────────┴──▶ answered with -ECANCELED              weft__git_cancel() */
#include "git.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent_program.h"
#include "git_private.h"

static const weft_git_op *const ops[] = {
    [WEFT_GIT_STATUS] = &weft__git_status,   [WEFT_GIT_DIFF_OF] = &weft__git_diff,
    [WEFT_GIT_LOG_OF] = &weft__git_log,      [WEFT_GIT_LIST_BRANCHES] = &weft__git_branches,
    [WEFT_GIT_STAGE] = &weft__git_stage,     [WEFT_GIT_UNSTAGE] = &weft__git_unstage,
    [WEFT_GIT_DISCARD] = &weft__git_discard, [WEFT_GIT_COMMIT] = &weft__git_commit,
};

/* ---- the thread ---- */

static void run_git_call(weft_work *work) {
    weft_git_call *call = WEFT_CONTAINER(work, weft_git_call, work);
    if (weft__git_prepare(call))
        call->op->run(call);
}

/* ---- answering ---- */

static void free_git_call(weft_git_call *call) {
    const weft_alloc *alloc = call->git->alloc;
    weft__list_remove(&call->link);
    if (call->cancel >= 0)
        close(call->cancel);
    if (call->top >= 0)
        close(call->top);
    weft__free(alloc, call->settings.filters);
    weft__buf_done(&call->settings_text, alloc);
    weft__command_end_done(&call->end, alloc);
    weft__free(alloc, call->status.files);
    weft__free(alloc, call->log.commits);
    weft__free(alloc, call->branches.branches);
    weft__free(alloc, call);
}

static void answer_git_call(weft_git_call *call) {
    call->result.message = call->message;
    call->done(call->ctx, &call->result);
    free_git_call(call);
}

/* A call that was cancelled may have succeeded in the same moment; the caller has been told that it will not. */
static void call_done(weft_work *work, bool lost) {
    weft_git_call *call = WEFT_CONTAINER(work, weft_git_call, work);
    weft_git *git = call->git;
    git->running_count--;
    git->writing &= !call->op->write;
    if (lost) {
        free_git_call(call);
        return;
    }
    if (call->cancelled) {
        call->result = (weft_git_result){.r = -ECANCELED};
        *call->message = '\0';
    }
    weft__later(git->loop, &git->pump);
    answer_git_call(call);
}

/* ---- the queue ---- */

static void fail_call(weft_git_call *call, int r) {
    call->result = (weft_git_result){.r = r};
    answer_git_call(call);
}

static void start_git_call(weft_git *git, weft_git_call *call) {
    weft__list_remove(&call->link);
    git->waiting_count--;
    call->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int r = call->cancel < 0 ? -errno : weft__workers_give(git->workers, &call->work);
    if (r < 0) {
        fail_call(call, r);
        return;
    }
    weft__list_push(&git->running, &call->link);
    git->running_count++;
    git->writing |= call->op->write;
}

/* The next that may run: a write waits for the one before it, a read for nobody. NULL: none. */
static weft_git_call *next_call(const weft_git *git) {
    for (weft_link *at = git->waiting.next; at != &git->waiting; at = at->next) {
        weft_git_call *call = WEFT_CONTAINER(at, weft_git_call, link);
        if (call->cancelled || !git->writing || !call->op->write)
            return call;
    }
    return NULL;
}

static void refuse_write(weft_git_call *call) {
    call->result.refusal = WEFT_GIT_UNTRUSTED;
    snprintf(call->message, sizeof call->message, "this repository is not trusted for writing");
    answer_git_call(call);
}

static void start_waiting_calls(weft_later *later) {
    weft_git *git = WEFT_CONTAINER(later, weft_git, pump);
    for (weft_git_call *call; git->running_count < WEFT_GIT_AT_ONCE && (call = next_call(git));) {
        bool refused = call->op->write && !git->may_write;
        if (!call->cancelled && !refused) {
            start_git_call(git, call);
            continue;
        }
        git->waiting_count--;
        if (call->cancelled)
            fail_call(call, -ECANCELED);
        else
            refuse_write(call);
    }
}

/* ---- asking ---- */

static size_t text_size(const char *text) {
    return text ? strlen(text) + 1 : 0;
}

static const char *copy_into_room(char **room, const char *text) {
    if (!text)
        return NULL;
    const char *copy = *room;
    *room = stpcpy(*room, text) + 1;
    return copy;
}

/* The list of paths first: it is made of pointers. */
static int copy_request(weft_git *git, const weft_git_request *request, weft_git_call **ret) {
    size_t count = 0, size = text_size(request->path) + text_size(request->ref) + request->message.len;
    for (; request->paths && request->paths[count]; count++)
        size += text_size(request->paths[count]);
    size_t list = request->paths ? (count + 1) * sizeof(char *) : 0;
    weft_git_call *call = weft__zalloc(git->alloc, sizeof *call + list + size + sizeof(char *));
    if (!call)
        return -ENOMEM;
    uintptr_t at = ((uintptr_t) call->room + sizeof(char *) - 1) / sizeof(char *) * sizeof(char *);
    const char **paths = (const char **) at;
    char *room = (char *) at + list;
    call->request = *request;
    for (size_t i = 0; i < count; i++)
        paths[i] = copy_into_room(&room, request->paths[i]);
    call->request.paths = request->paths ? paths : NULL;
    call->request.path = copy_into_room(&room, request->path);
    call->request.ref = copy_into_room(&room, request->ref);
    if (request->message.len)
        memcpy(room, request->message.data, request->message.len);
    call->request.message = (weft_bytes){room, request->message.len};
    *ret = call;
    return 0;
}

int weft__git_ask(weft_git *git, const weft_git_request *request, weft_git_done *done, void *ctx, uint64_t *ret_id) {
    weft_git_call *call = NULL;
    if ((size_t) request->what >= sizeof ops / sizeof ops[0])
        return -EINVAL;
    const weft_git_op *op = ops[request->what];
    int r = op->check(request);
    if (r == 0 && git->waiting_count >= WEFT_GIT_WAITING)
        r = -EAGAIN;
    if (r == 0)
        r = copy_request(git, request, &call);
    if (r < 0)
        return r;
    call->work = (weft_work){.run = run_git_call, .done = call_done};
    call->git = git;
    call->op = op;
    call->id = ++git->last_id;
    call->done = done;
    call->ctx = ctx;
    call->cancel = call->top = -1;
    weft__list_push(&git->waiting, &call->link);
    git->waiting_count++;
    weft__later(git->loop, &git->pump);
    if (ret_id)
        *ret_id = call->id;
    return 0;
}

static weft_git_call *find_call(weft_link *list, uint64_t id) {
    for (weft_link *at = list->next; at != list; at = at->next)
        if (WEFT_CONTAINER(at, weft_git_call, link)->id == id)
            return WEFT_CONTAINER(at, weft_git_call, link);
    return NULL;
}

void weft__git_cancel(weft_git *git, uint64_t id) {
    weft_git_call *call = find_call(&git->running, id);
    if (call)
        (void) eventfd_write(call->cancel, 1);
    else if ((call = find_call(&git->waiting, id)))
        weft__later(git->loop, &git->pump);
    if (call)
        call->cancelled = true;
}

void weft__git_set_may_write(weft_git *git, bool may_write) {
    git->may_write = may_write;
}

/* ---- life ---- */

int weft__git_find(const char *program, const char *folder, const weft_alloc *alloc, char **ret, int *ret_why) {
    char path[PATH_MAX];
    *ret_why = program ? 0 : weft__find_outside("git", folder, path, sizeof path);
    if (*ret_why < 0)
        return 0;
    *ret = weft__strndup(alloc, program ? program : path, strlen(program ? program : path));
    return *ret ? 0 : -ENOMEM;
}

static int open_git(weft_git *git, const weft_git_opts *opts) {
    char real[PATH_MAX];
    struct stat st;
    if (!realpath(opts->folder, real) || stat(real, &st) < 0)
        return -errno;
    if (!S_ISDIR(st.st_mode))
        return -ENOTDIR;
    git->root = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (git->root < 0)
        return -errno;
    git->folder = weft__strndup(git->alloc, real, strlen(real));
    int r = git->folder ? weft__git_find(opts->program, git->folder, git->alloc, &git->program, &git->no_program) : -ENOMEM;
    if (r == 0)
        r = weft__git_env_init(&git->env, git->folder, git->alloc);
    if (r == 0)
        r = weft__workers_new(&(weft_workers_opts){.loop = opts->loop,
                                                   .alloc = opts->alloc,
                                                   .threads = WEFT_GIT_AT_ONCE,
                                                   .set_umask = opts->set_umask,
                                                   .umask = opts->umask},
                              &git->workers);
    return r;
}

int weft__git_new(const weft_git_opts *opts, weft_git **ret) {
    weft_git *git = weft__zalloc(opts->alloc, sizeof *git);
    if (!git)
        return -ENOMEM;
    git->loop = opts->loop;
    git->alloc = opts->alloc;
    git->root = -1;
    git->may_write = opts->may_write;
    git->read_ms = opts->read_ms ? opts->read_ms : WEFT_GIT_READ_MS;
    git->write_ms = opts->write_ms ? opts->write_ms : WEFT_GIT_WRITE_MS;
    weft__list_init(&git->waiting);
    weft__list_init(&git->running);
    weft__later_init(&git->pump, start_waiting_calls);
    git->env.alloc = opts->alloc;
    int r = open_git(git, opts);
    if (r < 0) {
        weft__git_free(git);
        return r;
    }
    *ret = git;
    return 0;
}

weft_git *weft__git_free(weft_git *git) {
    if (!git)
        return NULL;
    weft__later_cancel(&git->pump);
    for (weft_link *at = git->running.next; at != &git->running; at = at->next)
        (void) eventfd_write(WEFT_CONTAINER(at, weft_git_call, link)->cancel, 1);
    git->workers = weft__workers_free(git->workers);
    while (!weft__list_empty(&git->waiting))
        free_git_call(WEFT_CONTAINER(git->waiting.next, weft_git_call, link));
    weft__git_env_done(&git->env);
    if (git->root >= 0)
        close(git->root);
    weft__free(git->alloc, git->program);
    weft__free(git->alloc, git->folder);
    return weft__free(git->alloc, git);
}

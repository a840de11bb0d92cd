/* The terminals of a run: made with the first that its agent asks for, stopped when the turn is cancelled, gone when it is
 * over. What they printed is stored with the tool calls that show them, so that whoever comes later sees it.
 *
 * No person is asked: an agent runs commands by itself anyway, and asks for permission where it has to. One that may only
 * read gets no terminal. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "beneath.h"
#include "run.h"
#include "terminals.h"
#include "worktrees.h"

/* A cancelled turn waits for its agent a third of the grace time (driver_acp.c). The agent may wait for its terminals, so
 * these are killed after half of that. */
#define GRACE_PART 6

static void on_shown(void *ctx, int r, weft_val update) {
    struct run *run = ctx;
    weft__run_kept(run, r < 0 ? r : weft__run_put_update(run, update));
}

/* Where the session works, looked for again: it must still be beneath our folder, without a link on the way. */
static int find_run_folder(const struct run *run, char ret[PATH_MAX]) {
    const known_session *session = run->task->session;
    char found[WEFT_BENEATH_PATH] = "";
    if (session && session->pub.isolation)
        return session->pub.worktree && run->engine->opts.snapshots
                   ? weft__worktree_path(run->engine->opts.snapshots, session->pub.worktree, ret)
                   : -ENOENT;
    int r =
        session && *session->pub.folder ? weft__beneath_folder(run->engine->folder, session->pub.folder, false, found) : 0;
    if (r < 0)
        return r;
    int n = snprintf(ret, PATH_MAX, "%s%s%s", run->engine->folder, *found ? "/" : "", found);
    return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int make_terminals(struct run *run) {
    weft_engine *engine = run->engine;
    char folder[PATH_MAX];
    int r = find_run_folder(run, folder);
    if (r < 0)
        return r;
    return weft__terminals_new(
        &(weft_terminals_opts){
            .loop = engine->loop,
            .alloc = engine->alloc,
            .guard = engine->program,
            .root = folder,
            .env = run->agent->env,
            .grace_ms = engine->limits.grace_ms / GRACE_PART + 1,
            .ctx = run,
            .on_update = on_shown,
        },
        &run->terminals);
}

/* NULL: it may. */
static const char *why_no_terminal(const struct run *run) {
    if (run->stop != GOES_ON || run->ended)
        return "The turn is being ended";
    if (!run->agent || run->agent->permission == WEFT_PERMISSION_DENY)
        return "This agent may only read (\"permission\": \"deny\"): it gets no terminal";
    if (weft__session_only_reads(run->engine, run->task->pub.session))
        return "The session is in a mode that changes nothing: there is no terminal in it";
    return NULL;
}

int weft__task_terminal(weft_engine *engine, const char *id, weft_terminals_call call, weft_req *req,
                        const weft_json *params) {
    const known_task *task = weft__task_known(engine, id);
    struct run *run = task ? task->run : NULL;
    if (!run)
        return weft_refuse(req, WEFT_INTERNAL_ERROR, "The turn is over", "turnEnded");
    const char *why = call == WEFT_TERMINALS_CREATE ? why_no_terminal(run) : NULL;
    if (why)
        return weft_refuse(req, WEFT_INTERNAL_ERROR, why, "notPermitted");
    int r = run->terminals ? 0 : make_terminals(run);
    if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EXDEV || r == -EACCES)
        return weft_refuse(req, WEFT_INTERNAL_ERROR, "The folder of its session is not there any more, or leads elsewhere",
                           "folderNotFound");
    return r < 0 ? r : weft__terminals_take(run->terminals, call, req, params);
}

bool weft__terminal_nth(const weft_engine *engine, size_t n, weft_open_terminal *ret) {
    for (weft_link *link = engine->slots.next; link != &engine->slots; link = link->next) {
        const known_task *task = WEFT_CONTAINER(link, known_task, slot);
        const weft_terminals *of = task->run ? task->run->terminals : NULL;
        for (size_t i = 0; of && weft__terminals_nth(of, i, ret); i++) {
            if (n-- > 0)
                continue;
            ret->task = task->pub.id;
            ret->session = task->pub.session;
            return true;
        }
    }
    return false;
}

bool weft__terminal_find(const weft_engine *engine, const char *id, weft_open_terminal *ret) {
    weft_open_terminal one;
    for (size_t n = 0; weft__terminal_nth(engine, n, &one); n++)
        if (strcmp(one.id, id) == 0) {
            *ret = one;
            return true;
        }
    return false;
}

int weft__run_show_terminals(struct run *run, const weft_json *update, weft_buf *ret) {
    return run->terminals ? weft__terminals_show(run->terminals, update, ret) : 0;
}

void weft__run_stop_terminals(struct run *run) {
    if (run->terminals)
        weft__terminals_stop(run->terminals);
}

void weft__run_end_terminals(struct run *run) {
    if (run->terminals)
        weft__terminals_finish(run->terminals);
    run->terminals = weft__terminals_free(run->terminals);
}

void weft__run_drop_terminals(struct run *run) {
    run->terminals = weft__terminals_free(run->terminals);
}

/* A worktree for a session: made before its first turn, looked for again before each other. A turn whose worktree cannot be
 * made does not start: its agent must not work in the project's files instead. */
#include "worktrees.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run.h"

static void refuse_turn(struct run *run, int r, const char *why) {
    bool passing = r == -ENOMEM || r == -EAGAIN || r == -EMFILE || r == -ENFILE || r == -ETIMEDOUT;
    weft__run_ended(run, &(weft_turn_end){.retryable = passing, .reason = "worktreeRefused", .error = why, .exit_code = -1});
}

static int tell_made(struct run *run, known_session *session, const weft_worktree *made) {
    bool news = !session->pub.worktree || strcmp(session->pub.worktree, made->name) != 0;
    int r = weft__session_set_worktree(run->engine, session, made->name, made->branch);
    if (r < 0 || !news)
        return r;
    return weft__outbox_event(run, true, "worktree.made",
                              WEFT_OBJ({"taskId", weft_str(run->task->id)}, {"sessionId", weft_str(run->task->pub.session)},
                                       {"worktree", weft_str(made->name)}, {"branch", weft_str(made->branch)},
                                       {"base", weft_str(made->base)}, {"path", weft_str_or_none(session->pub.path)}));
}

static void on_set_up(struct run *run, const char *why) {
    if (why)
        weft__run_ended(run, &(weft_turn_end){.reason = "worktreeSetupFailed", .error = why, .exit_code = -1});
    else
        weft__run_begin(run);
}

static void on_worktree(void *ctx, const weft_worktree *made) {
    const known_task *task = weft__task_known(ctx, made->asker);
    struct run *run = task ? task->run : NULL;
    if (!run || !run->awaits_worktree)
        return;
    run->awaits_worktree = false;
    if (made->r < 0) {
        refuse_turn(run, made->r, made->message);
        return;
    }
    int r = task->session ? tell_made(run, task->session, made) : -ENOTDIR;
    bool due = r >= 0 && weft__setup_is_due(run->engine, made->name);
    if (due)
        r = weft__setup_begin(run, on_set_up);
    if (r < 0)
        refuse_turn(run, r, weft_strerror(r));
    else if (!due)
        weft__run_begin(run);
}

/* The same for all of a session's tasks: the one that it was made for, or the session itself. */
static const char *name_owner(const weft_engine *engine, const known_session *session, char ret[ENGINE_ID]) {
    const char *number = strchr(session->pub.id, '-');
    snprintf(ret, ENGINE_ID, "task%s", number ? number : "");
    const known_task *task = weft__task_known(engine, ret);
    if (!task || strcmp(task->pub.session, session->pub.id) != 0)
        snprintf(ret, ENGINE_ID, "%s", session->pub.id);
    return ret;
}

bool weft__run_worktree_begin(struct run *run) {
    const weft_engine *engine = run->engine;
    const known_session *session = run->task->session;
    if (!session || !session->pub.isolation)
        return false;
    if (!engine->opts.snapshots) {
        refuse_turn(run, -EOPNOTSUPP, "A worktree needs snapshots, which are switched off here (changes.enabled).");
        return true;
    }
    char path[PATH_MAX], owner[ENGINE_ID];
    bool there = session->pub.worktree && weft__worktree_path(engine->opts.snapshots, session->pub.worktree, path) == 0;
    if (there && !engine->pruning && !weft__setup_is_due(engine, session->pub.worktree))
        return false;
    if (session->pub.worktree && !there) {
        refuse_turn(run, -ENOTDIR, "The worktree of its session is not there any more.");
        return true;
    }
    weft_worktree_order order = {.owner = name_owner(engine, session, owner),
                                 .asker = run->task->id,
                                 .changes = session->pub.isolation == WEFT_ISOLATION_WITH_CHANGES};
    int r = weft__worktree_make(engine->opts.snapshots, &order, on_worktree, run->engine);
    if (r < 0)
        refuse_turn(run, r, weft_strerror(r));
    else
        run->awaits_worktree = true;
    return true;
}

bool weft__run_worktree_stop(struct run *run) {
    bool waited = run->awaits_worktree || run->setup;
    run->awaits_worktree = false;
    weft__setup_drop(run);
    return waited;
}

weft_snapshots *weft__task_snapshots(const weft_engine *engine, const known_task *task) {
    const known_session *session = weft__session_known(engine, task->pub.session);
    weft_snapshots *of = NULL;
    if (!engine->opts.snapshots || !session || !session->pub.isolation)
        return engine->opts.snapshots;
    if (!session->pub.worktree || weft__worktree_snapshots(engine->opts.snapshots, session->pub.worktree, &of) < 0)
        return NULL;
    return of;
}

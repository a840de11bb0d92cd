/* weft stop: end the daemon of this project. */
#include "daemon.h"
#include "failure.h"

typedef struct settings {
    int64_t timeout_ms; /* 0: the usual */
    bool force;
    bool aiwg;
} settings;

static weft_exit tell_stop(const weft_app *app, pid_t pid, bool killed) {
    const char *state = pid == 0 ? "not running" : killed ? "killed" : "stopped";
    if (app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"state", weft_str(state)}, {"pid", pid ? weft_int(pid) : weft_none()}));
    else if (pid == 0)
        fputs("no hub is running here\n", app->err.file);
    else
        fprintf(app->err.file, "%s, pid %ld\n", state, (long) pid);
    return WEFT_DONE;
}

static weft_exit run_stop(weft_app *app) {
    const settings *how = app->settings;
    pid_t pid = 0;
    bool killed = false;
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    int r = weft__daemon_choose(app, how->aiwg);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    weft_exit status = WEFT_DONE;
    if (r == 1)
        status = weft__daemon_stop(app, how->timeout_ms ? how->timeout_ms : WEFT_STOP_MS, how->force, &pid, &killed);
    if (status == WEFT_DONE && r == 1 && pid == 0 && weft__daemon_answers(app->layout))
        return weft__fail(app, WEFT_FAILED, "Stop it where it was started, or with its own program.",
                          "a hub answers at %s, but it does not hold this folder's lock, so its process is not known",
                          app->layout->socket);
    return status ? status : tell_stop(app, pid, killed);
}

static const weft_option options[] = {
    WEFT_OPTION(settings, timeout_ms, time, "timeout", 't', "TIME", "how long it may take (default 15s)"),
    WEFT_OPTION(settings, force, flag, "force", 'f', NULL, "kill it when it takes longer"),
    WEFT_OPTION_AIWG(settings),
    {0},
};

static const char *const examples[] = {
    "weft stop",
    "let open requests finish (10 s at most), then end",
    "weft stop --force --timeout 2s",
    "two seconds for that, and not more",
    NULL,
};

const weft_verb weft__stop_verb = {
    .name = "stop",
    .help = "stop the hub of this folder",
    .usage = "",
    .examples = examples,
    .about =
        "Returns when it has ended. If none runs, it says so and ends with status 0. One that takes longer than the time "
        "given goes\n"
        "on ending, and the status is 7, unless --force kills it.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .run = run_stop,
};

/* weft restart: end the daemon of this project and start it again, with the options it had or with new ones. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon.h"
#include "failure.h"
#include "serve.h"

/* All options of "weft serve" are zero when they are not given. --aiwg says which daemon is meant. */
static bool has_options(const weft_app *app) {
    static const weft_serve_settings none;
    weft_serve_settings given;
    memcpy(&given, app->settings, sizeof given);
    given.aiwg = false;
    return memcmp(&given, &none, sizeof none) != 0;
}

/* A daemon that works is not stopped for one that cannot start. */
static weft_exit stop_and_start(weft_app *app, char **args) {
    pid_t pid = 0;
    bool killed, runs = weft__daemon_holder(app->layout, &pid) == 1;
    weft_exit status = weft__serve_preflight(app, args);
    if (status) {
        if (runs)
            weft__warn(app, "  Nothing was stopped: the hub goes on as it is.");
        return status;
    }
    status = weft__daemon_stop(app, WEFT_STOP_MS, false, &pid, &killed);
    return status ? status : weft__daemon_start(app, args);
}

static int restart_with_args(weft_app *app, bool known, weft_exit *ret) {
    pid_t holder;
    bool as_before = known && !has_options(app) && weft__daemon_holder(app->layout, &holder) == 1;
    int r = as_before ? weft__daemon_with_args(app, holder, "serve", stop_and_start, ret) : -ENOENT;
    return r < 0 ? weft__daemon_with_args(app, getpid(), app->verb->name, stop_and_start, ret) : r;
}

static weft_exit run_restart(weft_app *app) {
    const weft_serve_settings *how = app->settings;
    weft_exit status = weft__start_check(app);
    int r = status ? 0 : weft__daemon_choose(app, how->aiwg);
    if (!status && r >= 0)
        r = restart_with_args(app, r == 1, &status);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : status;
}

static const char *const examples[] = {
    "weft restart", "with the options that it was started with", "weft restart --rate 60000", "with these instead", NULL,
};

const weft_verb weft__restart_verb = {
    .name = "restart",
    .help = "stop the hub of this folder and start it again",
    .usage = "",
    .examples = examples,
    .about = "Where none runs, one is started. A hub in the foreground comes back in the background. What can be known "
             "before\n"
             "is looked at first: with a mistake in the configuration, or one that is not trusted, with a certificate that\n"
             "cannot be read or a port that somebody else has, nothing is stopped.\n",
    .options = weft__serve_options,
    .settings_size = sizeof(weft_serve_settings),
    .run = run_restart,
};

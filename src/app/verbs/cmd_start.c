/* weft start: the daemon of this project in the background. */
#include <unistd.h>

#include "daemon.h"
#include "daemon_folder.h"
#include "endpoint.h"
#include "failure.h"
#include "serve.h"
#include "trust_view.h"

weft_exit weft__start_check(const weft_app *app) {
    const weft_serve_settings *how = app->settings;
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"; to serve at a URL, write --listen URL", app->args[0]);
    if (how->stdio)
        return weft__misused(app, "stdio: cannot be served in the background");
    for (size_t i = 0; i < how->listen.count; i++)
        if (weft__is_stdio(how->listen.items[i]))
            return weft__misused(app, "stdio: cannot be served in the background");
    return WEFT_DONE;
}

/* One that runs is only told of. */
static weft_exit check_and_start(weft_app *app, char **args) {
    pid_t holder;
    weft_exit status = weft__daemon_folder_check(app);
    if (status == WEFT_DONE && weft__daemon_holder(app->layout, &holder) == 0)
        status = weft__trust_gate(app, app->settings, true);
    return status == WEFT_DONE ? weft__daemon_start(app, args) : status;
}

static weft_exit run_start(weft_app *app) {
    const weft_serve_settings *how = app->settings;
    weft_exit status = weft__start_check(app);
    if (status)
        return status;
    app->layout = how->aiwg ? &weft__layout_aiwg : &weft__layout_weft;
    int r = weft__daemon_project(app->layout);
    if (r >= 0)
        r = weft__daemon_with_args(app, getpid(), app->verb->name, check_and_start, &status);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : status;
}

static const char *const examples[] = {
    "weft start",
    "what \"weft serve\" does, in the background; back when it is ready",
    "weft start --listen tcp://127.0.0.1:4000",
    "with another endpoint beside the Unix socket",
    "weft start --json | jq -r .endpoint.http",
    "for scripts: start it if need be, and say where it is",
    NULL,
};

const weft_verb weft__start_verb = {
    .name = "start",
    .help = "start the hub of this folder in the background",
    .usage = "",
    .examples = examples,
    .about =
        "If it runs already, it says so and ends with status 0. The project is the nearest folder from here upward that has "
        "a\n"
        ".weft, else this one; file names in options are looked up there. It always listens on .weft/daemon.sock, and logs\n"
        "to .weft/daemon.log. If it cannot start, its own words and its exit status are passed on.\n",
    .options = weft__serve_options,
    .settings_size = sizeof(weft_serve_settings),
    .run = run_start,
};

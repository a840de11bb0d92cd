/* weft start: the daemon of this project in the background. */
#include <strings.h>
#include <unistd.h>

#include "alloc.h"
#include "daemon.h"
#include "daemon_folder.h"
#include "failure.h"
#include "serve.h"
#include "trust_view.h"

weft_exit weft__start_check(const weft_app *app) {
    const weft_serve_settings *how = app->settings;
    if (app->arg_count)
        return weft__misused(app, "\"%s\" has no place here; to serve at a URL, write --listen URL", app->args[0]);
    for (size_t i = 0; i < how->listen.count; i++)
        if (strncasecmp(how->listen.items[i], "stdio:", 6) == 0)
            return weft__misused(app, "stdio: cannot be served in the background");
    return WEFT_DONE;
}

static weft_exit run(weft_app *app) {
    char **args, *memory;
    pid_t holder;
    weft_exit status = weft__start_check(app);
    if (status)
        return status;
    const weft_serve_settings *how = app->settings;
    app->layout = how->aiwg ? &weft__layout_aiwg : &weft__layout_weft;
    int r = weft__daemon_project(app->layout);
    if (r >= 0)
        r = weft__daemon_args(getpid(), app->verb->name, &args, &memory);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    status = weft__daemon_folder_check(app);
    if (status == WEFT_DONE && weft__daemon_holder(app->layout, &holder) == 0) /* one that runs is only told of */
        status = weft__trust_gate(app, how, true);
    if (status == WEFT_DONE)
        status = weft__daemon_start(app, args);
    weft__free(NULL, args);
    weft__free(NULL, memory);
    return status;
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
    .help = "start the daemon of this project in the background",
    .usage = "",
    .examples = examples,
    .about =
        "Where it runs already, that is said, with status 0. The project is the nearest folder from here upward that has a\n"
        ".weft, else this one; file names in options are looked up there. It always listens on .weft/daemon.sock, and logs\n"
        "to .weft/daemon.log. If it cannot start, its own words and its exit status are passed on.\n",
    .options = weft__serve_options,
    .settings_size = sizeof(weft_serve_settings),
    .run = run,
};

/* weft acp: this folder's hub as an ACP agent on standard input and output, for editors that start their agents. It starts
 * the hub if none runs, by the rules of "weft start", and stands between the two from then on (acp_relay.c): when the hub
 * goes it finds the next one, and starts it when the editor wants something. */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acp_relay.h"
#include "daemon.h"
#include "daemon_folder.h"
#include "failure.h"
#include "serve.h"
#include "trust_view.h"

typedef struct settings {
    weft_serve_settings serve; /* none of it can be set here: as "weft start" without options. First, because it is read as
                                  the app's settings */
    const char *agent;
} settings;

/* By a process in between that does not stay. A daemon that were our child would be ended by whoever ends us and all our
 * children, as acpx does with its agents. */
static weft_exit start_apart(weft_app *app) {
    char *none[] = {NULL};
    int status = 0;
    fflush(app->err.file);
    pid_t pid = fork();
    if (pid == 0) {
        weft_exit started = weft__daemon_start(app, none);
        fflush(app->err.file);
        _exit((int) started);
    }
    if (pid < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "the hub: %s", weft_strerror(-errno));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? (weft_exit) WEXITSTATUS(status) : WEFT_FAILED;
}

static weft_exit start_hub(weft_app *app) {
    pid_t holder;
    weft_exit status = weft__daemon_folder_check(app);
    if (status == WEFT_DONE)
        status = weft__trust_gate(app, app->settings, true);
    return status != WEFT_DONE || weft__daemon_holder(app->layout, &holder) < 0 ? status : start_apart(app);
}

/* One that is about to be ready is waited for. */
static weft_exit find_hub(weft_app *app) {
    pid_t holder;
    int r = weft__daemon_find(app);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "this folder: %s", weft_strerror(r));
    if (weft__daemon_holder(app->layout, &holder) != 1)
        return weft__daemon_answers(app->layout) ? WEFT_DONE : start_hub(app);
    r = holder ? weft__daemon_wait_ready(app->layout, holder, WEFT_START_MS) : 1;
    return r == 1 ? WEFT_DONE : start_hub(app);
}

static weft_exit run_acp(weft_app *app) {
    const settings *how = app->settings;
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    app->common.json = false; /* standard output is the protocol's */
    app->layout = &weft__layout_weft;
    return weft__acp_relay(
        app,
        &(weft_acp_relay_opts){
            .agent = how->agent,
            .find = find_hub,
            .if_refused =
                "\"weft agents\" lists the agents. A hub of an older version is brought up to date by \"weft restart\".",
        });
}

static const weft_option options[] = {
    WEFT_OPTION(settings, agent, text, "agent", 'a', "NAME", "the agent of new sessions (see \"weft agents\")"),
    {0},
};

static const char *const examples[] = {
    "weft acp",
    "for an editor's settings: the hub of the folder that the editor starts it in",
    "weft acp --agent claude",
    "the same, with this agent behind it",
    NULL,
};

const weft_verb weft__acp_verb = {
    .name = "acp",
    .help = "run as an ACP agent on standard input and output, for editors",
    .begins = "editors and shells",
    .usage = "",
    .examples = examples,
    .about = "The hub of this folder is started if none runs, by the rules of \"weft start\", and stays when the editor "
             "goes: its\n"
             "sessions can be loaded again, also by another editor. Where the hub runs already, that one is used. The same\n"
             "protocol is spoken at ws://127.0.0.1:PORT/acp.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .run = run_acp,
};

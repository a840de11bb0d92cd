/* weft promote: the standby of this folder becomes a hub. */
#include "daemon.h"
#include "failure.h"
#include "hub_call.h"
#include "time_text.h"

typedef struct settings {
    bool force;
} settings;

static void tell_promoted(const weft_app *app, const weft_json *said) {
    char age[WEFT_TIME_TEXT], heard[WEFT_TIME_TEXT];
    long long missing = (long long) weft_get_int(said, "missing", 0);
    fprintf(app->err.file, "promoted: this is a hub now, with a new epoch. It has the journal of %s up to event %lld.\n",
            weft_get_str(said, "of", ""), (long long) weft_get_int(said, "head", 0));
    if (missing)
        fprintf(app->err.file, "%lld event%s that hub had %s missing.\n", missing, missing == 1 ? "" : "s",
                missing == 1 ? "is" : "are");
    fprintf(app->err.file, "What it stored after it was last heard, %s (%s ago), may be missing.\n",
            weft__time_shown(heard, weft_get_str(said, "heardAt", NULL), "never"),
            weft__duration(age, weft_get_int(said, "behindMs", 0)));
    fputs("Tokens, configuration and the project's files are not part of the journal.\n", app->err.file);
}

/* A hub does not know this method: it has nobody's place to take. */
static weft_exit ask_promote(weft_app *app, bool force, weft_answer *ret) {
    static const char method[] = "standby.promote";
    weft_connection connection = {0};
    weft_exit status = weft__hub_call_open(app, NULL, &connection);
    int r = status ? 0 : weft__connection_try(&connection, method, WEFT_OBJ({"force", weft_bool(force)}), ret);
    if (r < 0)
        status = weft__connection_fail(&connection, method, r);
    else if (status == WEFT_DONE && ret->error && ret->error->code == WEFT_METHOD_NOT_FOUND)
        status = weft__fail(app, WEFT_REFUSED, "\"weft start --standby-of URL\" starts a standby.",
                            "this is a hub already, and no standby");
    else if (status == WEFT_DONE && ret->error)
        status = weft__hub_call_refused(app, method, ret->error);
    weft__connection_done(&connection);
    return status;
}

static weft_exit run_promote(weft_app *app) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    pid_t pid = 0;
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    weft_exit status = ask_promote(app, how->force, &answer);
    if (status)
        return status;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        tell_promoted(app, answer.result);
    if (weft__daemon_holder(app->layout, &pid) == 1 && pid > 0 &&
        weft__daemon_wait_ready(app->layout, pid, WEFT_START_MS) != 1)
        return weft__fail(app, WEFT_FAILED, "\"weft logs\" may say why; \"weft start\" tries again.",
                          "it is promoted, but the hub did not start");
    return WEFT_DONE;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, force, flag, "force", 0, NULL, "although the hub that it copies still answers"),
    {0},
};

static const char *const examples[] = {
    "weft promote",
    "on the standby, when its hub is gone: take its place",
    NULL,
};

const weft_verb weft__promote_verb = {
    .name = "promote",
    .help = "make the standby of this folder a hub",
    .usage = "",
    .examples = examples,
    .about =
        "It says what may be missing: a standby has what its hub had a moment ago. Make sure that the old hub does not\n"
        "come back by itself. Tasks that ran there are treated as after a crash (tasks.on_restart).\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_promote,
};

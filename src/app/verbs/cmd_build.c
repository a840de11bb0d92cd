/* weft build: build the project by the configured command, and show what the compilers said. */
#include <string.h>

#include "diagnostics_text.h"
#include "failure.h"
#include "hub_call.h"
#include "terminal_status.h"
#include "time_text.h"

typedef struct settings {
    const char *url;
    bool backend, last;
} settings;

/* The hub ends a build after build.timeout_ms, ten minutes unless it says otherwise, and may have another to do before. */
#define BUILD_WAIT_MS (24 * 3600 * 1000)

/* Where nothing was recognised, what was printed says what went wrong. */
static void put_found(const weft_app *app, const weft_json *result, bool failed) {
    weft_json found = weft_get(result, "diagnostics"), output = weft_get(result, "output");
    weft_bytes text;
    weft__diagnostics_put(&app->out, &found, "");
    if (weft_get_bool(result, "truncated", false))
        fputs("  There is more; the first are shown.\n", app->err.file);
    if (failed && !weft_count(&found) && weft_bytes_of(&output, &text) >= 0 && text.len) {
        weft__put_prose(&app->out, text.data, text.len);
        if (text.data[text.len - 1] != '\n')
            fputc('\n', app->out.file);
    }
}

static void put_sum(const weft_app *app, const weft_json *result, const char *words) {
    char took[WEFT_TIME_TEXT];
    long long errors = (long long) weft_get_int(result, "errors", 0),
              warnings = (long long) weft_get_int(result, "warnings", 0);
    fprintf(app->err.file, "%s in %s", words, weft__duration(took, weft_get_int(result, "durationMs", 0)));
    if (errors)
        fprintf(app->err.file, ", %lld error%s", errors, errors == 1 ? "" : "s");
    if (warnings)
        fprintf(app->err.file, ", %lld warning%s", warnings, warnings == 1 ? "" : "s");
    fputc('\n', app->err.file);
}

static weft_exit put_failed(weft_app *app, const weft_error *error) {
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(&error->data));
        return WEFT_FAILED;
    }
    put_found(app, &error->data, true);
    put_sum(app, &error->data, "the build failed");
    if (!weft_get(&error->data, "exitCode").text) /* the message says why it did not run to its end */
        fprintf(app->err.file, "  %s\n", error->message);
    return WEFT_FAILED;
}

static weft_exit put_built(weft_app *app, const weft_json *result) {
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(result));
        return WEFT_DONE;
    }
    put_found(app, result, false);
    put_sum(app, result, "built");
    return WEFT_DONE;
}

static weft_exit put_last(weft_app *app, const weft_json *result) {
    const char *state = weft_get_str(result, "state", "none"), *why = weft_get_str(result, "why", "");
    bool failed = strcmp(state, "failed") == 0;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(result));
    else if (strcmp(state, "none") == 0)
        fputs(weft_get_bool(result, "configured", false) ? "never built; build it: weft build\n"
                                                         : "never built; no build is configured: see build.command\n",
              app->err.file);
    else if (strcmp(state, "running") == 0)
        fputs("it is being built; wait for it: weft build\n", app->err.file);
    else {
        put_found(app, result, failed);
        put_sum(app, result, failed ? "the build failed" : "built");
        if (*why)
            fprintf(app->err.file, "  %s\n", why);
    }
    return failed ? WEFT_FAILED : WEFT_DONE;
}

static bool is_build_failure(const weft_error *error) {
    return strcmp(weft_get_str(&error->data, "reason", ""), "buildFailed") == 0;
}

static weft_exit build_on(weft_app *app, weft_connection *connection) {
    const settings *how = app->settings;
    const char *kind = how->backend ? "backend" : "frontend", *method = how->backend ? "buildBackend" : "build";
    WEFT_ANSWER answer = {0};
    if (how->last) {
        weft_exit status = weft__hub_call(connection, "build.last", WEFT_OBJ({"kind", weft_str(kind)}), &answer);
        return status ? status : put_last(app, answer.result);
    }
    int r = weft__connection_try(connection, method, weft_none(), &answer);
    if (r < 0)
        return weft__connection_fail(connection, method, r);
    if (answer.error && is_build_failure(answer.error))
        return put_failed(app, answer.error);
    if (answer.error && strcmp(weft_get_str(&answer.error->data, "reason", ""), "buildNotConfigured") == 0)
        return weft__fail_plainly(app, method, answer.error,
                                  how->backend ? "For example: weft config set build.backend '[\"make\"]'; weft reload"
                                               : "For example: weft config set build.command '[\"make\"]'; weft reload");
    if (answer.error)
        return weft__hub_call_refused(app, method, answer.error);
    return put_built(app, answer.result);
}

static weft_exit run_build(weft_app *app) {
    const settings *how = app->settings;
    weft_connection connection;
    if (app->arg_count)
        return weft__misused(app, "unexpected argument; the setting build.command says what is built");
    if (!app->reach.timeout_ms)
        app->reach.timeout_ms = BUILD_WAIT_MS;
    weft_exit status = weft__hub_call_open(app, how->url, &connection);
    if (status == WEFT_DONE)
        status = build_on(app, &connection);
    weft__connection_done(&connection);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION(settings, backend, flag, "backend", 'b', NULL, "build the backend (build.backend)"),
    WEFT_OPTION(settings, last, flag, "last", 'l', NULL, "build nothing; show the result of the last build"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft build",
    "run build.command, and show errors and warnings with their places",
    "weft build --backend",
    "the same for build.backend",
    "weft build --last --json | jq .diagnostics",
    "what the last build found",
    NULL,
};

const weft_verb weft__build_verb = {
    .name = "build",
    .help = "build the project, and show what the compilers say",
    .usage = "",
    .examples = examples,
    .about = "The hub runs the command that the configuration names (build.command), under a guard and with a time limit\n"
             "(build.timeout_ms). One build runs at a time; who asks meanwhile gets the same result. The messages of gcc,\n"
             "clang, tsc, esbuild, cargo and go are understood; otherwise the end of the output is shown.\n\n"
             "exit status: 0 built, 1 the build failed, 5 no build is configured\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_build,
};

/* weft reload: let the hub of this project read its configuration and its tokens again. */
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "trust.h"

typedef struct reload_settings {
    const char *url;
} reload_settings;

static void put_keys(const weft_app *app, const weft_json *result, const char *member, const char *said) {
    weft_json keys = weft_get(result, member);
    const char *between = "";
    if (!weft_count(&keys))
        return;
    for (weft_iter it = weft_iterate(&keys); weft_next(&it);) {
        fprintf(app->out.file, "%s%s", between, weft_str_of(&it.value, ""));
        between = ", ";
    }
    fprintf(app->out.file, "%s\n", said);
}

static void put_problems(const weft_app *app, const weft_json *result) {
    weft_json problems = weft_get(result, "problems");
    for (weft_iter it = weft_iterate(&problems); weft_next(&it);) {
        const char *where = weft_get_str(&it.value, "where", ""), *text = weft_get_str(&it.value, "message", "");
        int64_t line = weft_get_int(&it.value, "line", 0);
        weft__put_text(&app->err, where, strlen(where));
        if (line)
            fprintf(app->err.file, ":%lld:%lld", (long long) line, (long long) weft_get_int(&it.value, "column", 0));
        fputs(strcmp(weft_get_str(&it.value, "severity", ""), "error") == 0 ? ": " : ": warning: ", app->err.file);
        weft__put_text(&app->err, text, strlen(text));
        fputc('\n', app->err.file);
    }
}

static weft_exit tell_reload(const weft_app *app, const weft_json *result) {
    bool done = weft_get_bool(result, "reloaded", false), untrusted = weft_get_bool(result, "untrusted", false);
    weft_exit status = done ? WEFT_DONE : untrusted ? WEFT_UNAUTHORISED : WEFT_FAILED;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(result));
        return status;
    }
    put_problems(app, result);
    if (!done)
        return weft__fail(app, status, untrusted ? WEFT_TRUST_NEXT : NULL, "%s; the old one stays in use",
                          weft_get_str(result, "why", ""));
    put_keys(app, result, "changed", " changed");
    put_keys(app, result, "restart", " changed in the file; \"weft restart\" applies that");
    weft_json changed = weft_get(result, "changed"), restart = weft_get(result, "restart");
    if (!weft_count(&changed) && !weft_count(&restart))
        fputs("nothing has changed\n", app->out.file);
    return status;
}

static weft_exit run_reload(weft_app *app) {
    const reload_settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    weft_exit status = weft__hub_call_once(app, how->url, "daemon.reload", weft_none(), &answer);
    return status ? status : tell_reload(app, answer.result);
}

static const weft_option options[] = {
    WEFT_URL_OPTION(reload_settings),
    {0},
};

static const char *const examples[] = {
    "weft reload",
    "read .weft/config.json and the tokens again, and say what has changed",
    NULL,
};

const weft_verb weft__reload_verb = {
    .name = "reload",
    .help = "let the hub read its configuration again",
    .usage = "",
    .examples = examples,
    .about =
        "A file with a mistake, or one that is not trusted, changes nothing: exit status 1 or 4. Keys that need a restart\n"
        "are named; \"weft config keys\" says which these are.\n",
    .options = options,
    .settings_size = sizeof(reload_settings),
    .reaches = true,
    .run = run_reload,
};

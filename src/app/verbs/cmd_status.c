/* weft status: does the daemon of this project run, and how is it? */
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "config.h"
#include "connection.h"
#include "daemon.h"
#include "failure.h"
#include "time_text.h"

/* It answers in a millisecond, or it is stuck. */
#define ANSWER_MS 5000

typedef struct settings {
    bool aiwg;
} settings;

/* ---- for people ---- */

static void put_status_label(const weft_app *app, const char *label) {
    weft__ink(&app->out, WEFT_INK_BOLD);
    fprintf(app->out.file, "%-10s", label);
    weft__plain(&app->out);
}

static void put_status_text(const weft_app *app, const char *label, const char *text) {
    put_status_label(app, label);
    weft__put_text(&app->out, text, strlen(text));
    fputc('\n', app->out.file);
}

static void put_duration(FILE *to, long long seconds) {
    if (seconds >= 24 * 3600)
        fprintf(to, "%lld d ", seconds / (24 * 3600));
    if (seconds >= 3600)
        fprintf(to, "%lld h ", seconds / 3600 % 24);
    if (seconds >= 60)
        fprintf(to, "%lld min ", seconds / 60 % 60);
    fprintf(to, "%lld s", seconds % 60);
}

static void put_running_line(const weft_app *app, const weft_json *status) {
    put_status_label(app, "running");
    fprintf(app->out.file, "pid %lld, for ", (long long) weft_get_int(status, "pid", 0));
    put_duration(app->out.file, (long long) weft_get_int(status, "uptime_seconds", 0));
    fprintf(app->out.file, ", %s\n", weft_get_str(status, "health", "healthy"));
}

/* Why it is not healthy: each part says what is the matter with it. */
static void put_troubles(const weft_app *app, const weft_json *parts) {
    for (weft_iter it = weft_iterate(parts); weft_next(&it);) {
        const char *error = weft_get_str(&it.value, "error", ""), *name = weft_str_of(&it.name, "");
        if (!*error)
            continue;
        put_status_label(app, "trouble");
        weft__put_text(&app->out, name, strlen(name));
        fputs(": ", app->out.file);
        weft__put_text(&app->out, error, strlen(error));
        fputc('\n', app->out.file);
    }
}

static void put_skipped(const weft_app *app, const weft_json *parts) {
    weft_json skipped = weft_pointer(parts, "/store/skipped_events");
    if (!skipped.text)
        return;
    put_status_label(app, "journal");
    fprintf(app->out.file, "%lld events cannot be read and were passed over\n", (long long) weft_int_of(&skipped, 0));
}

/* Which of two is in force: the configuration, or what somebody has chosen or switched since. */
static void put_choices(const weft_app *app, const weft_json *parts, const weft_json *agents) {
    weft_json automation = weft_get(parts, "automation"), configured = weft_get(&automation, "configured");
    const char *agent = agents ? weft_get_str(agents, "configured", NULL) : NULL;
    if (agents) {
        put_status_label(app, "agent");
        fprintf(app->out.file, "%s, ", weft_get_str(agents, "default", "none"));
        fprintf(app->out.file, "%s%s\n",
                agent ? "chosen with \"weft agents use\"; the configuration says " : "as configured", agent ? agent : "");
    }
    put_status_label(app, "rules");
    fprintf(app->out.file, "%s, %s\n", weft_get_bool(&automation, "enabled", false) ? "on" : "off",
            !configured.text                   ? "as configured"
            : weft_bool_of(&configured, false) ? "switched by hand; the configuration says on"
                                               : "switched by hand; the configuration says off");
}

/* Does the daemon have what the files say? */
static void put_config_age(const weft_app *app, const weft_json *config) {
    const char *file = weft__config_stale_file(config);
    weft_json restart = weft_get(config, "restart");
    if (file) {
        put_status_label(app, "config");
        weft__put_text(&app->out, file, strlen(file));
        fputs(" has changed since the hub read it: \"weft reload\"\n", app->out.file);
    }
    for (weft_iter it = weft_iterate(&restart); weft_next(&it);) {
        put_status_label(app, "config");
        fprintf(app->out.file, "%s has changed: \"weft restart\" applies it\n", weft_str_of(&it.value, ""));
    }
}

/* The hubs that a relay follows: what is served of one that is away is what was known. */
static void put_relayed_hubs(const weft_app *app, const weft_json *hubs) {
    for (weft_iter it = weft_iterate(hubs); weft_next(&it);) {
        const char *name = weft_get_str(&it.value, "name", ""), *url = weft_get_str(&it.value, "url", "");
        const char *trouble = weft_get_str(&it.value, "trouble", "");
        bool follows = strcmp(weft_get_str(&it.value, "state", ""), "following") == 0;
        long long behind = (long long) weft_get_int(&it.value, "behind", 0);
        put_status_label(app, "relay of");
        weft__put_text(&app->out, name, strlen(name));
        fputs(follows ? ", followed: " : ", away: ", app->out.file);
        weft__put_text(&app->out, follows ? url : trouble, strlen(follows ? url : trouble));
        if (behind)
            fprintf(app->out.file, ", %lld events behind", behind);
        fputc('\n', app->out.file);
    }
}

/* Whose tasks a runner runs, and how many; without the hub they go on. */
static void put_runner(const weft_app *app, const weft_json *runner) {
    const char *hub = weft_get_str(runner, "hub", ""), *name = weft_get_str(runner, "name", "?");
    const char *why = weft_get_str(runner, "why", "no answer yet");
    long long leases = (long long) weft_get_int(runner, "leases", 0);
    bool connected = weft_get_bool(runner, "connected", false);
    put_status_label(app, "runner");
    weft__put_text(&app->out, name, strlen(name));
    fputs(" of ", app->out.file);
    weft__put_text(&app->out, hub, strlen(hub));
    fputs(connected ? ", connected" : ", away: ", app->out.file);
    weft__put_text(&app->out, why, connected ? 0 : strlen(why));
    fprintf(app->out.file, "; %lld of its tasks\n", leases);
}

/* How far the copy is, and what would be missing now. */
static void put_standby(const weft_app *app, const weft_json *standby) {
    char age[WEFT_TIME_TEXT], heard[WEFT_TIME_TEXT];
    long long lacks = (long long) weft_get_int(standby, "behind", 0);
    put_status_label(app, "standby");
    fprintf(app->out.file, "of %s, %s\n", weft_get_str(standby, "of", ""), weft_get_str(standby, "state", ""));
    put_status_label(app, "copy");
    if (weft_get_bool(standby, "whole", false))
        fprintf(app->out.file, "up to event %lld, %lld behind", (long long) weft_get_int(standby, "head", 0), lacks);
    else
        fprintf(app->out.file, "not whole yet: %lld of %lld events", (long long) weft_get_int(standby, "copied", 0),
                (long long) weft_get_int(standby, "hubHead", 0));
    if (weft_get_int(standby, "behindMs", 0))
        fprintf(app->out.file, ", for %s", weft__duration(age, weft_get_int(standby, "behindMs", 0)));
    fprintf(app->out.file, "\n");
    put_status_text(app, "heard", weft__time_shown(heard, weft_get_str(standby, "heardAt", NULL), "never"));
}

static void put_status(const weft_app *app, const weft_json *status, const weft_json *agents) {
    weft_json ours = weft_get(status, "weft"), urls = weft_get(&ours, "urls");
    weft_json config = weft_get(&ours, "config"), clients = weft_pointer(status, "/subsystems/ipc/clients");
    weft_json parts = weft_get(status, "subsystems"), tasks = weft_get(&parts, "supervisor");
    weft_json standby = weft_get(&ours, "standby");
    put_running_line(app, status);
    put_troubles(app, &parts);
    put_skipped(app, &parts);
    put_status_text(app, "folder", weft_get_str(&ours, "folder", ""));
    for (weft_iter it = weft_iterate(&urls); weft_next(&it);)
        put_status_text(app, "endpoint", weft_str_of(&it.value, ""));
    if (standby.text) {
        put_standby(app, &standby);
        return;
    }
    put_status_label(app, "tasks");
    fprintf(app->out.file, "%lld running, %lld waiting\n", (long long) weft_get_int(&tasks, "running", 0),
            (long long) weft_get_int(&tasks, "queued", 0));
    weft_json relayed = weft_pointer(&ours, "/relay/hubs"), runner = weft_get(&ours, "runner");
    if (runner.text)
        put_runner(app, &runner);
    if (relayed.text)
        put_relayed_hubs(app, &relayed);
    else
        put_choices(app, &parts, agents);
    put_config_age(app, &config);
    put_status_label(app, "clients");
    fprintf(app->out.file, "%lld, this one included\n", (long long) weft_int_of(&clients, 0));
    put_status_label(app, "requests");
    fprintf(app->out.file, "%lld, %lld answered with an error\n", (long long) weft_get_int(&ours, "requests", 0),
            (long long) weft_get_int(&ours, "errors", 0));
    put_status_label(app, "memory");
    fprintf(app->out.file, "%.1f MiB\n", (double) weft_get_int(&ours, "memoryBytes", 0) / (1024 * 1024));
}

/* ---- asking ---- */

/* Not there, or not yet. */
static weft_exit put_absent(const weft_app *app, const char *state, pid_t pid, const char *next) {
    if (app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"state", weft_str(state)}, {"pid", pid ? weft_int(pid) : weft_none()}));
    else
        fprintf(app->out.file, "%s\n", state);
    if (!app->common.json)
        fprintf(app->err.file, "  %s\n", next);
    return WEFT_UNREACHABLE;
}

/* Whose answer is told here, where a hub waits for its journal. Owned; NULL: its own. */
static char *waits_for(const weft_app *app) {
    WEFT_AUTO(weft_doc) endpoint = weft__daemon_endpoint(app->layout);
    const char *name = endpoint ? weft_get_str(weft_doc_root(endpoint), "waitsFor", NULL) : NULL;
    return name ? weft__strndup(NULL, name, strlen(name)) : NULL;
}

static void put_waits(const weft_app *app, const char *name) {
    put_status_label(app, "waits");
    fputs(*name ? "for its journal, which " : "for its journal; this is about the hub that has it:\n", app->out.file);
    weft__put_text(&app->out, name, strlen(name));
    fputs(*name ? " has; this is about that one:\n" : "", app->out.file);
    fflush(app->out.file);
}

static weft_exit ask_status(weft_app *app, weft_connection *connection, pid_t pid) {
    WEFT_ANSWER answer = {0};
    WEFT_ANSWER agents = {0};
    char *other = waits_for(app);
    if (other && !app->common.json)
        put_waits(app, other);
    weft_exit status = weft__connection_open(app, connection);
    if (status == WEFT_DONE)
        status = weft__connection_call(connection, "daemon.status", weft_none(), &answer);
    if (status) {
        if (other)
            fputs("  No hub that has the journal answers; \"weft logs\" and \"weft doctor\" say more.\n", app->err.file);
        weft__free(NULL, other);
        return status;
    }
    bool listed =
        !app->common.json && weft__connection_try(connection, "agent.list", weft_none(), &agents) >= 0 && !agents.error;
    if (app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"state", weft_str("running")}, {"pid", pid ? weft_int(pid) : weft_none()},
                                           {"waitsFor", weft_str_or_none(other)}, {"status", weft_copy(answer.result)}));
    else
        put_status(app, answer.result, listed ? agents.result : NULL);
    weft__free(NULL, other);
    return WEFT_DONE;
}

static weft_exit run_status(weft_app *app) {
    const settings *how = app->settings;
    char url[128], next[PATH_MAX + 64], folder[PATH_MAX];
    char *args[] = {url, NULL};
    weft_connection connection = {0};
    pid_t pid = 0;
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    int found = weft__daemon_choose(app, how->aiwg);
    int r = found == 1 ? weft__daemon_holder(app->layout, &pid) : found;
    snprintf(url, sizeof url, "unix:%s", app->layout->socket);
    snprintf(next, sizeof next, "\"weft start\" starts the hub of %s.", getcwd(folder, sizeof folder) ? folder : "here");
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    if (found == 0 || (r == 0 && !weft__daemon_answers(app->layout)))
        return put_absent(app, "not running", 0, found ? next : "\"weft start\" starts a hub here.");
    /* Its files may have been removed; who answers is there. */
    if (pid && !weft__daemon_is_ready(app->layout, pid) && !weft__daemon_answers(app->layout))
        return put_absent(app, weft__daemon_is_stopping(app->layout, pid) ? "stopping" : "starting", pid,
                          "\"weft start\" waits until one is ready.");
    app->args = args;
    app->arg_count = 1;
    app->reach.timeout_ms = ANSWER_MS;
    weft_exit status = ask_status(app, &connection, pid);
    weft__connection_done(&connection);
    return status;
}

static const weft_option options[] = {
    WEFT_OPTION_AIWG(settings),
    {0},
};

static const char *const examples[] = {
    "weft status",
    "exit status 0: it runs; 3: it does not",
    "weft status --json | jq .status.weft.memoryBytes",
    "everything it says, as JSON",
    NULL,
};

const weft_verb weft__status_verb = {
    .name = "status",
    .help = "show how the hub of this folder is",
    .usage = "",
    .examples = examples,
    .about = "Asks it with daemon.status on its Unix socket.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .run = run_status,
};

/* weft config: what is set, where it was set, and whether a file is right. It shows what "weft serve" would use here; it
 * never opens the file a token is in. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agents.h"
#include "alloc.h"
#include "config_verb.h"
#include "daemon.h"
#include "failure.h"
#include "subcommand.h"
#include "trust.h"

/* It answers in a millisecond, or it is stuck. */
#define ANSWER_MS 5000

void weft__config_show_remark(void *ctx, const weft_remark *remark) {
    weft_config_view *self = ctx;
    bool placed = remark->place.line > 0;
    self->errors += remark->error;
    if (!self->as_data || !self->app->common.json) {
        weft__warn_about(self->app, remark);
        return;
    }
    weft__put_line(&self->app->out, WEFT_OBJ({"where", weft_str(remark->where)},
                                             {"line", placed ? weft_uint(remark->place.line) : weft_none()},
                                             {"column", placed ? weft_uint(remark->place.column) : weft_none()},
                                             {"severity", weft_str(remark->error ? "error" : "warning")},
                                             {"message", weft_str(remark->text)}));
}

weft_exit weft__config_fail(const weft_config_view *self, int r) {
    if (r == -EBADMSG && self->as_data && self->app->common.json)
        return WEFT_FAILED; /* it was all said */
    if (r == -EBADMSG)
        return weft__fail(self->app, WEFT_FAILED, NULL, "the configuration has %zu mistake%s", self->errors,
                          self->errors == 1 ? "" : "s");
    return weft__fail(self->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
}

/* What is on record about the project whose file this is: the path without the part that the layout gives. */
static void look_at_record(const char *project, const weft_layout *layout, weft_trust *ret) {
    char folder[WEFT_PATH_SIZE];
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(folder, sizeof folder, "%.*s", (int) (strlen(project) - strlen(layout->config)), project);
    if (*folder && chdir(folder) < 0)
        *folder = '\0';
    weft__trust_look(layout, ret);
    if (*folder && (here < 0 || fchdir(here) < 0))
        *ret = (weft_trust){.layout = layout, .folder = WEFT_FOLDER_NEW};
    if (here >= 0)
        close(here);
}

weft_exit weft__config_load_shown(weft_config_view *self) {
    const weft_layout *layout = self->typed.aiwg ? &weft__layout_aiwg : self->app->layout;
    weft_trust trust;
    weft_config_from from = {self->user, self->project, getenv, layout->aiwg, &self->typed, &trust};
    weft__config_user_path(self->user);
    weft__config_project_path(layout, self->project);
    look_at_record(self->project, layout, &trust);
    int r = weft__config_load(&self->config, &from, &(weft_remarks){weft__config_show_remark, self}, NULL);
    return r < 0 ? weft__config_fail(self, r) : WEFT_DONE;
}

/* ---- show ---- */

/* What "weft serve" would make of these options. */
static weft_exit read_flags(weft_config_view *self, char **args) {
    extern const weft_verb weft__serve_verb;
    weft_app serve = {.verb = &weft__serve_verb, .settings = &self->typed, .out = self->app->out, .err = self->app->err};
    weft_exit status = weft__options_read(&serve, args);
    if (status == WEFT_DONE && serve.arg_count)
        return weft__misused(self->app, "unexpected argument \"%s\"; behind -- stand options of weft serve", serve.args[0]);
    if (self->typed.no_rate)
        self->typed.rate = -1;
    return status;
}

/* What is shown of a value. */
const weft_json *weft__config_shown(const weft_config_view *self, size_t index) {
    const weft_doc *hidden = strcmp(weft__keys[index].path, "agents") == 0             ? self->agents
                             : strcmp(weft__keys[index].path, "mcp.servers") == 0      ? self->servers
                             : strcmp(weft__keys[index].path, "automation.rules") == 0 ? self->rules
                                                                                       : NULL;
    return hidden ? weft_doc_root(hidden) : &self->config.settings[index].value;
}

weft_exit weft__config_hide_secrets(weft_config_view *self) {
    for (size_t i = 0; weft__keys[i].path; i++) {
        const char *path = weft__keys[i].path;
        weft_doc **hidden = strcmp(path, "agents") == 0             ? &self->agents
                            : strcmp(path, "mcp.servers") == 0      ? &self->servers
                            : strcmp(path, "automation.rules") == 0 ? &self->rules
                                                                    : NULL;
        if (hidden && weft__agents_hide(&self->config.settings[i].value, NULL, hidden) < 0)
            return weft__config_fail(self, -ENOMEM);
    }
    return WEFT_DONE;
}

static void put_origin(const weft_config_view *self, const weft_setting *setting) {
    weft_place place = weft__config_place(&self->config, setting);
    fprintf(self->app->out.file, "  %s", weft__source_names[setting->source]);
    if (!place.line)
        return;
    fputs(" ", self->app->out.file);
    const char *path = weft__config_where(&self->config, setting);
    weft__put_text(&self->app->out, path, strlen(path));
    fprintf(self->app->out.file, ":%zu:%zu", place.line, place.column);
}

static void put_setting(const weft_config_view *self, size_t index, bool origin) {
    const weft_app *app = self->app;
    const weft_json *value = weft__config_shown(self, index);
    fprintf(app->out.file, "%-33s", weft__keys[index].path);
    if (value->text)
        weft__put_compact(&app->out, value);
    else
        fputs("-", app->out.file);
    if (origin)
        put_origin(self, &self->config.settings[index]);
    fputc('\n', app->out.file);
}

/* With --json all of it is one object. */
static void put_settings_json(const weft_config_view *self, bool origin) {
    weft_member members[WEFT_MAX_KEYS], parts[WEFT_MAX_KEYS][5];
    size_t count = 0;
    for (; weft__keys[count].path; count++) {
        const weft_setting *setting = &self->config.settings[count];
        weft_place place = weft__config_place(&self->config, setting);
        weft_val value = weft_copy(weft__config_shown(self, count));
        parts[count][0] = (weft_member){"value", value};
        parts[count][1] = (weft_member){"origin", weft_str(weft__source_names[setting->source])};
        parts[count][2] =
            (weft_member){"file", place.line ? weft_str(weft__config_where(&self->config, setting)) : weft_none()};
        parts[count][3] = (weft_member){"line", place.line ? weft_uint(place.line) : weft_none()};
        parts[count][4] = (weft_member){"column", place.line ? weft_uint(place.column) : weft_none()};
        members[count] = (weft_member){weft__keys[count].path, origin ? weft_obj(parts[count], 5) : value};
    }
    weft__put_line(&self->app->out, weft_obj(members, count));
}

/* Two keys can be overruled while a daemon runs, and that outlives it: what is in force is said besides what is set. */
static void tell_overruled(weft_app *app) {
    WEFT_ANSWER agents = {0};
    WEFT_ANSWER rules = {0};
    weft_peer *peer = NULL;
    pid_t pid = 0;
    char url[128];
    weft_connect_opts opts = {.timeout_ms = ANSWER_MS, .same_user = true};
    if (weft__daemon_find(app) != 1 || weft__daemon_holder(app->layout, &pid) != 1)
        return;
    snprintf(url, sizeof url, "unix:%s", app->layout->socket);
    if (weft_connect_with(url, &opts, &peer, NULL) < 0)
        return;
    const weft_call_opts soon = {.timeout_ms = ANSWER_MS};
    if (weft_call_with(peer, "agent.list", weft_none(), &soon, &agents) >= 0 && !agents.error &&
        weft_get(agents.result, "configured").text)
        weft__warn(app,
                   "default_agent: in force is \"%s\", chosen with \"weft agents use\"; \"weft agents use --reset\" takes "
                   "the configured one",
                   weft_get_str(agents.result, "default", ""));
    if (weft_call_with(peer, "automation.status", weft_none(), &soon, &rules) >= 0 && !rules.error &&
        weft_get(rules.result, "configured").text)
        weft__warn(app, "automation.enabled: in force is %s, switched with \"weft automation\"",
                   weft_get_bool(rules.result, "enabled", true) ? "true" : "false");
    weft_peer_free(peer);
}

static weft_exit show_settings(weft_config_view *self, char **args) {
    bool origin = ((const weft_config_settings *) self->app->settings)->origin;
    weft_exit status = read_flags(self, args);
    if (status == WEFT_DONE)
        status = weft__config_load_shown(self);
    if (status == WEFT_DONE)
        status = weft__config_hide_secrets(self);
    if (status == WEFT_DONE && self->app->common.json)
        put_settings_json(self, origin);
    for (size_t i = 0; status == WEFT_DONE && !self->app->common.json && weft__keys[i].path; i++)
        put_setting(self, i, origin);
    if (status == WEFT_DONE && origin)
        tell_overruled(self->app);
    return status;
}

/* ---- path ---- */

static void put_config_path(const weft_config_view *self, const char *name, const char *path) {
    fprintf(self->app->out.file, "%-9s", name);
    weft__put_text(&self->app->out, path, strlen(path));
    fprintf(self->app->out.file, "%s\n", access(path, F_OK) == 0 ? "" : " (not there)");
}

static weft_exit show_paths(weft_config_view *self, char **args) {
    const weft_app *app = self->app;
    weft__config_user_path(self->user);
    weft__config_project_path(self->app->layout, self->project);
    const char *one = !*args                          ? NULL
                      : strcmp(*args, "project") == 0 ? self->project
                      : strcmp(*args, "user") == 0    ? self->user
                                                      : "";
    if (one && (!*one || args[1]))
        return weft__misused(app, "the files are \"project\" and \"user\"");
    if (app->common.json)
        weft__put_line(&app->out,
                       one ? weft_str(one) : WEFT_OBJ({"project", weft_str(self->project)}, {"user", weft_str(self->user)}));
    else if (one)
        fprintf(app->out.file, "%s\n", one);
    else {
        put_config_path(self, "project", self->project);
        put_config_path(self, "user", self->user);
    }
    return WEFT_DONE;
}

/* ---- check ---- */

static weft_exit check_one_file(weft_config_view *self, const char *file) {
    if (access(file, F_OK) < 0)
        return weft__fail(self->app, WEFT_NOT_FOUND, NULL, "%s: %s", file, weft_strerror(-errno));
    int r = weft__config_load(&self->config, &(weft_config_from){.user = file},
                              &(weft_remarks){weft__config_show_remark, self}, NULL);
    return r < 0 ? weft__config_fail(self, r) : WEFT_DONE;
}

static weft_exit check_config(weft_config_view *self, char **args) {
    if (*args && args[1])
        return weft__misused(self->app, "one file at a time");
    self->as_data = true;
    weft_exit status = *args ? check_one_file(self, *args) : weft__config_load_shown(self);
    if (status)
        return status;
    int r = weft__config_rules(&self->config, &(weft_remarks){weft__config_show_remark, self});
    status = r < 0 ? weft__config_fail(self, r) : WEFT_DONE;
    if (status == WEFT_DONE && self->config.held)
        return self->app->common.json ? WEFT_UNAUTHORISED
                                      : weft__fail(self->app, WEFT_UNAUTHORISED, WEFT_TRUST_NEXT,
                                                   "the configuration is right, but not trusted: no hub starts with it");
    if (status == WEFT_DONE)
        weft__remark(self->app, "no mistakes");
    return status;
}

/* ---- schema and keys ---- */

static weft_exit put_schema(weft_config_view *self, char **args) {
    weft_buf text = {0};
    if (*args)
        return weft__misused(self->app, "unexpected argument \"%s\"", *args);
    int r = weft__config_schema(&text, NULL);
    if (r < 0)
        return weft__config_fail(self, r);
    weft_json value = {.text = weft__buf_head(&text), .len = weft__buf_len(&text)};
    if (self->app->common.json)
        weft__put_compact(&self->app->out, &value);
    else
        weft__put_pretty(&self->app->out, &value);
    fputc('\n', self->app->out.file);
    weft__buf_done(&text, NULL);
    return WEFT_DONE;
}

static void put_key_row(FILE *to, const weft_key *key) {
    char wants[WEFT_KEY_TEXT], variable[WEFT_KEY_TEXT];
    weft__key_wants(key, wants);
    weft__key_variable(key, variable);
    fprintf(to, "| `%s` | %s | %s%s%s | %s | `%s`%s%s%s | %s |\n", key->path, wants, key->fallback ? "`" : "",
            key->fallback ? key->fallback : "", key->fallback ? "`" : "", key->help, variable, key->option ? ", `--" : "",
            key->option ? key->option : "", key->option ? "`" : "", key->live ? "reload" : "restart");
}

static void put_key_json(const weft_app *app, const weft_key *key) {
    char wants[WEFT_KEY_TEXT], variable[WEFT_KEY_TEXT];
    weft__key_wants(key, wants);
    weft__key_variable(key, variable);
    weft__put_line(&app->out,
                   WEFT_OBJ({"key", weft_str(key->path)}, {"wants", weft_str(wants)},
                            {"default", key->fallback ? weft_raw(key->fallback, strlen(key->fallback)) : weft_null()},
                            {"help", weft_str(key->help)}, {"variable", weft_str(variable)},
                            {"option", weft_str_or_none(key->option)}, {"live", weft_bool(key->live)}));
}

/* The table of the documentation. */
static weft_exit put_keys(weft_config_view *self, char **args) {
    const weft_app *app = self->app;
    if (*args)
        return weft__misused(app, "unexpected argument \"%s\"", *args);
    if (!app->common.json)
        fputs("| key | value | default | meaning | also given by | changes with |\n|---|---|---|---|---|---|\n",
              app->out.file);
    for (const weft_key *key = weft__keys; key->path; key++)
        if (app->common.json)
            put_key_json(app, key);
        else
            put_key_row(app->out.file, key);
    return WEFT_DONE;
}

/* ---- the verb ---- */

static const struct {
    const char *name;
    weft_exit (*run)(weft_config_view *self, char **args);
} jobs[] = {
    {"show", show_settings},     {"get", weft__config_get},   {"set", weft__config_set}, {"unset", weft__config_unset},
    {"edit", weft__config_edit}, {"init", weft__config_init}, {"path", show_paths},      {"check", check_config},
    {"schema", put_schema},      {"keys", put_keys}};

static weft_exit run_job(weft_app *app) {
    size_t i = 0;
    while (strcmp(jobs[i].name, app->subcommand->name) != 0)
        i++;
    weft_config_view *self = weft__zalloc(NULL, sizeof *self);
    if (!self)
        return weft__fail(app, WEFT_FAILED, NULL, "out of memory");
    self->app = app;
    weft_exit status = jobs[i].run(self, app->args);
    weft__config_done(&self->config);
    weft_doc_free(self->agents);
    weft_doc_free(self->servers);
    weft_doc_free(self->rules);
    weft__free(NULL, self);
    return status;
}

#define ANY SIZE_MAX

static const weft_subcommand subcommands[] = {
    {"show", " origin ", NULL, 0, ANY, run_job, .usage = "[-- OPTION...]", .help = "every key, and its value here"},
    {"get", NULL, NULL, 0, ANY, run_job, .usage = "KEY", .help = "the value of one key"},
    {"set", " user ", NULL, 0, ANY, run_job, .usage = "KEY VALUE...", .help = "change a key in a file; comments stay"},
    {"unset", " user ", NULL, 0, ANY, run_job, .usage = "KEY", .help = "remove a key from a file"},
    {"edit", " user ", NULL, 0, ANY, run_job, .help = "open a file in $EDITOR, and check it afterwards"},
    {"init", " user ", NULL, 0, ANY, run_job, .help = "make a file with comments to begin with"},
    {"path", NULL, NULL, 0, ANY, run_job, .usage = "[project|user]", .help = "where the files are"},
    {"check", NULL, NULL, 0, ANY, run_job, .usage = "[FILE]", .help = "find mistakes; line and column of each"},
    {"schema", NULL, NULL, 0, ANY, run_job, .help = "a JSON Schema of the file, for editors"},
    {"keys", NULL, NULL, 0, ANY, run_job, .help = "everything that can be set"},
    {0},
};

static weft_exit run_config(weft_app *app) {
    /* What begins with a dash stood behind "--": options of weft serve, for show. */
    if (!app->arg_count || app->args[0][0] != '-')
        return weft__subcommand_run(app);
    app->subcommand = subcommands;
    return run_job(app);
}

static const weft_option options[] = {
    WEFT_OPTION(weft_config_settings, origin, flag, "origin", 0, NULL, "also where each value came from"),
    WEFT_OPTION(weft_config_settings, user, flag, "user", 0, NULL,
                "in your own file, for all projects, not in this project's"),
    {0},
};

static const char *const examples[] = {
    "weft config show --origin",
    "every key, its value here, and where that comes from",
    "weft config check",
    "whether the files are right; line and column if not",
    "weft config set tasks.max_running 8",
    "change one key in this project's file; comments stay",
    "weft config set --user default_agent claude",
    "the same in your own file, for all projects",
    "weft config get default_agent",
    "its value here",
    "weft config unset tasks.max_running",
    "remove it from the file, so that the next place or the default counts",
    "weft config init",
    "make this project's file, with comments that explain it",
    "weft config path",
    "where this project's file and your own are",
    "weft config edit",
    "open this project's file in $EDITOR, and check it afterwards",
    "weft config show --origin -- --rate 100",
    "what \"weft serve --rate 100\" would use",
    "weft config schema >config.schema.json",
    "for editors that complete and check JSON",
    "weft config keys",
    "everything that can be set",
    NULL,
};

const weft_verb weft__config_verb = {
    .name = "config",
    .help = "show, change and check the configuration",
    .subcommands = subcommands,
    .usual = "show",
    .examples = examples,
    .about =
        "An option counts more than an environment variable, that more than the project's .weft/config.json, that more\n"
        "than the user's weft/config.json below $XDG_CONFIG_HOME (~/.config), that more than the default. The files are\n"
        "JSON, with comments and trailing commas. \"weft reload\" lets a running hub read them again.\n\n"
        "\"set\" takes a string as it is and everything else as JSON; a list of strings may be several arguments. A file "
        "that\n"
        "it makes has mode 0600. A change that would be a mistake is refused. What you change this way is trusted if the\n"
        "file was before.\n\n"
        "\"check\" ends with status 1 after a mistake: a value that cannot be, or a rule that can never fire (an unknown "
        "type\n"
        "of event or agent, a day that never comes, conditions that cannot all hold). An unknown key and a rule that is\n"
        "switched off are warnings, and the status is 0.\n",
    .options = options,
    .settings_size = sizeof(weft_config_settings),
    .run = run_config,
};

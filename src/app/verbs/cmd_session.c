/* weft session: conversations with agents: which there are, what holds for one, begin, prompt, set, close, delete. */
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "subcommand.h"
#include "table.h"
#include "time_text.h"

typedef struct settings {
    const char *url, *agent, *folder, *title, *mode, *model, *resume;
    int64_t limit;
} settings;

#define LIMIT 20

/* ---- list ---- */

static const char *state_of(const weft_json *session) {
    return weft_get_bool(session, "closed", false) ? "closed" : weft_get_bool(session, "busy", false) ? "busy" : "";
}

static int add_session(weft_table *table, const weft_json *session) {
    char tasks[32], updated[WEFT_TIME_TEXT];
    snprintf(tasks, sizeof tasks, "%lld", (long long) weft_get_int(session, "tasks", 0));
    const char *cells[] = {weft_get_str(session, "id", ""),
                           weft_get_str(session, "agent", ""),
                           state_of(session),
                           tasks,
                           weft__time_shown(updated, weft_get_str(session, "updatedAt", NULL), ""),
                           weft_get_str(session, "title", weft_get_str(session, "prompt", ""))};
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
        r = weft__table_add(table, cells[i]);
    return r;
}

static weft_exit put_sessions(weft_app *app, const weft_json *result) {
    static const char *const heads[] = {"SESSION", "AGENT", "STATE", "TASKS", "UPDATED", "TITLE OR LAST PROMPT", NULL};
    weft_table table = {.heads = heads};
    weft_json sessions = weft_get(result, "sessions");
    int r = 0;
    for (weft_iter it = weft_iterate(&sessions); r >= 0 && weft_next(&it);)
        r = add_session(&table, &it.value);
    if (r >= 0 && weft_count(&sessions))
        weft__table_put(&table, &app->out);
    else if (r >= 0)
        fputs("there are no sessions\n", app->err.file);
    weft__table_done(&table);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

static weft_exit list_sessions(weft_app *app) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(app, how->url, "session.list",
                                           WEFT_OBJ({"limit", weft_int(how->limit ? how->limit : LIMIT)}), &answer);
    if (status)
        return status;
    if (!app->common.json)
        return put_sessions(app, answer.result);
    weft__put_line(&app->out, weft_copy(answer.result));
    return WEFT_DONE;
}

/* ---- one of them ---- */

/* A name and a value, below each other. What is not text is shown as JSON. */
static int add_fact(weft_table *table, const char *name, const weft_json *value) {
    char *text = NULL;
    size_t len = 0;
    if (!value->text || weft_typeof(value) == WEFT_NULL)
        return 0;
    const char *plain = weft_str_of(value, NULL);
    int r = plain ? 0 : weft_to_text(weft_copy(value), NULL, &text, &len);
    char *copy = text ? strndup(text, len) : NULL;
    if (r >= 0)
        r = weft__table_add(table, name);
    if (r >= 0)
        r = weft__table_add(table, plain ? plain : copy);
    free(copy);
    weft_text_free(text, NULL);
    return r;
}

static weft_exit put_session(weft_app *app, const weft_json *result) {
    static const char *const heads[] = {"", "", NULL};
    static const char *const names[] = {"id",     "title",  "agent",      "agentSessionId", "folder",
                                        "closed", "turn",   "turns",      "settings",       "mode",
                                        "modes",  "models", "mcpServers", "options",        "commands"};
    weft_table table = {.heads = heads};
    weft_json session = weft_get(result, "session");
    int r = 0;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(result));
        return WEFT_DONE;
    }
    for (size_t i = 0; r >= 0 && i < sizeof names / sizeof names[0]; i++) {
        weft_json value = weft_get(&session, names[i]);
        r = add_fact(&table, names[i], &value);
    }
    if (r >= 0)
        weft__table_put(&table, &app->out);
    weft__table_done(&table);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

static weft_exit call_for_session(weft_app *app, const char *method, weft_val params) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(app, how->url, method, params, &answer);
    return status ? status : put_session(app, answer.result);
}

static weft_exit show_session(weft_app *app) {
    return call_for_session(app, "session.get", WEFT_OBJ({"sessionId", weft_str(app->args[0])}));
}

static weft_exit open_session(weft_app *app) {
    return call_for_session(app, "session.open", WEFT_OBJ({"sessionId", weft_str(app->args[0])}));
}

static weft_exit resume_session(weft_app *app) {
    return call_for_session(app, "session.resume", WEFT_OBJ({"sessionId", weft_str(app->args[0])}));
}

static weft_exit set_session(weft_app *app) {
    const char *name = app->args[1];
    bool option = strcmp(name, "mode") != 0 && strcmp(name, "model") != 0 && strcmp(name, "title") != 0;
    const char *value = app->args[2];
    bool yes = strcmp(value, "true") == 0, no = strcmp(value, "false") == 0;
    return call_for_session(app, "session.set",
                            WEFT_OBJ({"sessionId", weft_str(app->args[0])}, {"name", weft_str(option ? "option" : name)},
                                     {"option", option ? weft_str(name) : weft_none()},
                                     {"value", option && (yes || no) ? weft_bool(yes) : weft_str(value)}));
}

/* ---- a prompt ---- */

/* The words, with a blank between them. Owned; NULL: out of memory. */
static char *join_words(char *const *args, size_t count) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    for (size_t i = 0; out && i < count; i++)
        fprintf(out, "%s%s", i ? " " : "", args[i]);
    return out && fclose(out) == 0 ? text : (free(text), NULL);
}

static weft_exit prompt_session(weft_app *app) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    char *prompt = join_words(app->args + 1, app->arg_count - 1);
    weft_exit status =
        weft__hub_call_once(app, how->url, "session.prompt",
                            WEFT_OBJ({"sessionId", weft_str(app->args[0])}, {"prompt", weft_str(prompt)}), &answer);
    free(prompt);
    if (status)
        return status;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        fprintf(app->out.file, "%s\n", weft_get_str(answer.result, "taskId", ""));
    return WEFT_DONE;
}

/* ---- beginning and ending ---- */

static weft_exit new_session(weft_app *app) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(
        app, how->url, "session.create",
        WEFT_OBJ({"agent", weft_str_or_none(how->agent)}, {"folder", weft_str_or_none(how->folder)},
                 {"title", weft_str_or_none(how->title)}, {"mode", weft_str_or_none(how->mode)},
                 {"model", weft_str_or_none(how->model)}, {"agentSessionId", weft_str_or_none(how->resume)}),
        &answer);
    if (status)
        return status;
    weft_json session = weft_get(answer.result, "session");
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        fprintf(app->out.file, "%s\n", weft_get_str(&session, "id", ""));
    return WEFT_DONE;
}

static weft_exit end_session(weft_app *app, const char *method, const char *done) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(app, how->url, method, WEFT_OBJ({"sessionId", weft_str(app->args[0])}), &answer);
    if (status)
        return status;
    const char *left = weft_get_str(answer.result, "agentError", NULL);
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        fprintf(app->err.file, "%s is %s\n", app->args[0], done);
    if (left)
        weft__warn(app, "but its agent still has its own copy: %s", left);
    return WEFT_DONE;
}

static weft_exit close_session(weft_app *app) {
    return end_session(app, "session.close", "closed; \"weft session resume\" opens it again");
}

static weft_exit delete_session(weft_app *app) {
    return end_session(app, "session.delete", "deleted");
}

/* ---- the verb ---- */

static const weft_subcommand subcommands[] = {
    {"list", " limit url ", NULL, 0, 0, list_sessions, .help = "the newest sessions"},
    {"show", " url ", "which session?", 1, 1, show_session, .usage = "ID",
     .help = "one session: its settings, tasks and commands"},
    {"new", " agent folder title mode model resume url ", NULL, 0, 0, new_session, .help = "begin a session without a task"},
    {"prompt", " url ", "which session, and what should the agent do?", 2, SIZE_MAX, prompt_session, .usage = "ID WORDS...",
     .help = "give it its next task"},
    {"open", " url ", "which session?", 1, 1, open_session, .usage = "ID",
     .help = "start its agent, so that \"show\" lists what can be set"},
    {"set", " url ", "which session, what, and to what? For example: set session-0001 mode plan", 3, 3, set_session,
     .usage = "ID NAME VALUE", .help = "set its mode, model, title, or an option of its agent"},
    {"close", " url ", "which session?", 1, 1, close_session, .usage = "ID",
     .help = "stop its agent; the session can go on later"},
    {"resume", " url ", "which session?", 1, 1, resume_session, .usage = "ID",
     .help = "open a closed session again, where it was"},
    {"delete", " url ", "which session?", 1, 1, delete_session, .usage = "ID",
     .help = "remove it, with its tasks and what was said in it"},
    {0},
};

static weft_exit run_session(weft_app *app) {
    return weft__subcommand_run(app);
}

static const weft_option options[] = {
    WEFT_OPTION(settings, agent, text, "agent", 'a', "NAME", "the agent (default: the default agent)"),
    WEFT_OPTION(settings, folder, text, "folder", 0, "PATH", "where the agent works, below the project's folder"),
    WEFT_OPTION(settings, title, text, "title", 0, "TEXT", "a title for people"),
    WEFT_OPTION(settings, mode, text, "mode", 0, "ID", "the agent's mode"),
    WEFT_OPTION(settings, model, text, "model", 0, "ID", "the agent's model"),
    WEFT_OPTION(settings, resume, text, "resume", 0, "ID", "continue a session that the agent kept, by the agent's own id"),
    WEFT_OPTION(settings, limit, number, "limit", 'n', "N", "how many to show (default 20)"),
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft session",
    "the last conversations with agents",
    "weft session new --title docs --mode plan",
    "prints its id",
    "weft session prompt session-0001 look around",
    "prints the task's id; it waits behind the others of its session",
    "weft session set session-0001 mode allow",
    "from now on, also while a task runs in it",
    "weft session show session-0001",
    "its settings, what can be set, and its tasks",
    "weft session open session-0001",
    "start its agent, for \"set\"",
    "weft session close session-0001",
    "stop its agent; nothing of the session is lost",
    "weft session resume session-0001",
    "open it again",
    "weft session delete session-0001",
    "its tasks are cancelled, and the agent deletes its own copy if it can",
    NULL,
};

const weft_verb weft__session_verb = {
    .name = "session",
    .help = "conversations with agents: show, begin, set, close, delete",
    .subcommands = subcommands,
    .usual = "list",
    .examples = examples,
    .about = "A session is a conversation with one agent. Each task without one begins a new one. NAME of \"set\" is mode, "
             "model,\n"
             "title, or the id of one of the agent's options; \"open\" starts the agent, so that \"show\" says which there "
             "are.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_session,
};

/* weft task: what the hub has to do. Submitting and watching have files of their own. */
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "number_text.h"
#include "stop_reason.h"
#include "subcommand.h"
#include "table.h"
#include "task.h"
#include "task_gated.h"
#include "terminal_status.h"
#include "time_text.h"

/* --timeout is how long a task may run when one is submitted, and how long to wait for the answer otherwise. */
static weft_exit ask_hub(weft_app *app, const char *method, weft_val params, weft_answer *ret) {
    const weft_task_settings *how = app->settings;
    app->reach.timeout_ms = how->timeout_ms;
    return weft__hub_call_once(app, how->url, method, params, ret);
}

/* For what takes more than one question. */
static weft_exit with_line(weft_app *app, weft_exit (*run)(weft_app *app, weft_connection *connection)) {
    const weft_task_settings *how = app->settings;
    weft_connection connection;
    app->reach.timeout_ms = how->timeout_ms;
    weft_exit status = weft__hub_call_open(app, how->url, &connection);
    if (status == WEFT_DONE)
        status = run(app, &connection);
    weft__connection_done(&connection);
    return status;
}

/* ---- who does it ---- */

/* What only our own hub says of tasks: their agents and sessions. Anybody else's does not know the method, and that is fine:
 * ret stays empty. */
static void ask_about(weft_connection *connection, const weft_val *ids, size_t count, weft_answer *ret) {
    if (count == 0 || weft__connection_try(connection, "task.about", WEFT_OBJ({"taskIds", weft_arr(ids, count)}), ret) < 0)
        *ret = (weft_answer){0};
}

static void ask_about_all(weft_connection *connection, const weft_json *tasks, weft_answer *ret) {
    size_t count = weft_count(tasks), i = 0;
    weft_val *ids = weft__alloc(NULL, (count + 1) * sizeof *ids);
    for (weft_iter it = weft_iterate(tasks); ids && i < count && weft_next(&it); i++)
        ids[i] = weft_str(weft_get_str(&it.value, "id", ""));
    ask_about(connection, ids, i, ret);
    weft__free(NULL, ids);
}

/* ---- list ---- */

#define LIST_DEFAULT 20 /* the hub's, when no limit is given */

static const char *time_taken(char ret[WEFT_TIME_TEXT], const weft_json *task) {
    int64_t from = weft__time_get(task, "startedAt"), to = weft__time_get(task, "completedAt");
    if (!from)
        return "";
    return weft__duration(ret, (to ? to : weft__time_now()) - from);
}

/* How it ended says more than that it ended: why an agent stopped, or why the task failed. */
static const char *state_text(char *ret, size_t size, const weft_json *task, const weft_json *about) {
    const char *state = weft_get_str(task, "state", "");
    const char *why = strcmp(state, "completed") == 0 ? weft_get_str(task, "stopReason", "")
                      : strcmp(state, "queued") == 0  ? weft_get_str(about, "waits", weft_get_str(about, "reason", ""))
                                                      : weft_get_str(about, "reason", "");
    snprintf(ret, size, "%s%s%.100s", state, *why ? ", " : "", why);
    return ret;
}

#define STATE_CELL 1

static const char *state_ink(const char *state) {
    return strcmp(state, "failed") == 0      ? WEFT_INK_BAD
           : strcmp(state, "running") == 0   ? WEFT_INK_STRING
           : strcmp(state, "queued") == 0    ? WEFT_INK_WARN
           : strcmp(state, "cancelled") == 0 ? WEFT_INK_DIM
                                             : NULL;
}

static int add_task(weft_table *table, const weft_json *task, const weft_json *about) {
    char age[WEFT_TIME_TEXT] = "", time[WEFT_TIME_TEXT];
    int64_t created = weft__time_get(task, "createdAt");
    if (created)
        weft__duration(age, weft__time_now() - created);
    char state[128];
    const char *cells[] = {weft_get_str(task, "id", ""),
                           state_text(state, sizeof state, task, about),
                           weft_get_str(about, "agent", weft_get_str(task, "agent", "default")),
                           age,
                           time_taken(time, task),
                           weft_get_str(task, "prompt", "")};
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
        r = weft__table_add_ink(table, cells[i], i == STATE_CELL ? state_ink(weft_get_str(task, "state", "")) : NULL);
    return r;
}

/* How many there are besides those that are shown; nothing where that is not known. */
static void put_how_many(const weft_app *app, const weft_task_settings *how, size_t shown, const weft_json *stats) {
    int64_t all = weft_get_int(stats, how->state ? how->state : "total", -1);
    char counts[2][WEFT_GROUPED];
    if (!app->err.terminal)
        return;
    if (how->search && (int64_t) shown == (how->limit ? how->limit : LIST_DEFAULT))
        fprintf(app->err.file, "the newest %s that have this text; -n N shows more\n",
                weft__grouped(counts[0], (int64_t) shown));
    else if (!how->search && all > (int64_t) shown)
        fprintf(app->err.file, "%s of %s; -n N shows more\n", weft__grouped(counts[0], (int64_t) shown),
                weft__grouped(counts[1], all));
}

static weft_exit put_list(weft_app *app, const weft_json *tasks, const weft_json *abouts) {
    static const char *const heads[] = {"ID", "STATE", "AGENT", "AGE", "TOOK", "PROMPT", NULL};
    const weft_task_settings *how = app->settings;
    weft_table table = {.heads = heads};
    weft_iter about = weft_iterate(abouts);
    bool more = weft_next(&about);
    int r = 0;
    for (weft_iter it = weft_iterate(tasks); r >= 0 && weft_next(&it);) {
        /* They come in the same order; one that was forgotten meanwhile is left out. */
        bool same = more && strcmp(weft_get_str(&about.value, "id", ""), weft_get_str(&it.value, "id", "")) == 0;
        r = add_task(&table, &it.value, same ? &about.value : &(weft_json){0});
        more = same ? weft_next(&about) : more;
    }
    if (r >= 0 && table.count)
        weft__table_put(&table, &app->out);
    else if (r >= 0 && app->err.terminal)
        fputs(how->search ? "no task has this text\n" : "none; submit one: weft task submit 'fix the tests'\n",
              app->err.file);
    weft__table_done(&table);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

static weft_exit list_on(weft_app *app, weft_connection *connection) {
    const weft_task_settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    WEFT_ANSWER about = {0};
    WEFT_ANSWER stats = {0};
    weft_exit status =
        weft__hub_call(connection, "task.list",
                       WEFT_OBJ({"state", weft_str_or_none(how->state)}, {"search", weft_str_or_none(how->search)},
                                {"limit", how->limit ? weft_int(how->limit) : weft_none()}),
                       &answer);
    if (status)
        return status;
    weft_json tasks = weft_get(answer.result, "tasks");
    if (weft_typeof(&tasks) != WEFT_ARRAY)
        tasks = *answer.result;
    if (app->common.json) {
        weft__put_line(&app->out, WEFT_OBJ({"tasks", weft_copy(&tasks)}));
        return WEFT_DONE;
    }
    ask_about_all(connection, &tasks, &about);
    weft_json abouts = weft_get(about.result, "tasks");
    status = put_list(app, &tasks, &abouts);
    if (status == WEFT_DONE && weft__connection_try(connection, "task.stats", weft_none(), &stats) >= 0 && !stats.error)
        put_how_many(app, how, weft_count(&tasks), stats.result);
    return status;
}

static weft_exit list_tasks(weft_app *app) {
    return with_line(app, list_on);
}

/* ---- get ---- */

static void put_task_label(const weft_app *app, const char *label) {
    weft__ink(&app->out, WEFT_INK_BOLD);
    fprintf(app->out.file, "%-10s", label);
    weft__plain(&app->out);
}

static void put_task_text(const weft_app *app, const char *label, const char *text) {
    if (!text || !*text)
        return;
    put_task_label(app, label);
    weft__put_prose(&app->out, text, strlen(text));
    fputc('\n', app->out.file);
}

static void put_stop(const weft_app *app, const char *stop_reason) {
    char text[200];
    const char *why = weft__stop_reason_text(stop_reason);
    if (!why)
        return;
    snprintf(text, sizeof text, "%.64s: %s", stop_reason, why);
    put_task_text(app, "stopped", text);
}

static void put_number(const weft_app *app, const char *label, const weft_json *task, const char *name) {
    int64_t number = weft_get_int(task, name, 0);
    if (!number)
        return;
    put_task_label(app, label);
    fprintf(app->out.file, "%lld\n", (long long) number);
}

static void put_task_time(const weft_app *app, const char *label, const weft_json *task, const char *name) {
    char text[WEFT_TIME_TEXT], ago[WEFT_TIME_TEXT];
    int64_t when = weft__time_get(task, name);
    if (!when)
        return;
    put_task_label(app, label);
    fprintf(app->out.file, "%s, %s ago\n", weft__time_of_day(text, when), weft__duration(ago, weft__time_now() - when));
}

static void put_task_output(const weft_app *app, const weft_json *task) {
    weft_json output = weft_get(task, "output");
    weft_bytes bytes;
    if (weft_bytes_of(&output, &bytes) < 0 || bytes.len == 0)
        return;
    weft__put_prose(&app->out, bytes.data, bytes.len);
    if (app->out.terminal && bytes.data[bytes.len - 1] != '\n')
        fputc('\n', app->out.file);
}

static bool money_text(const weft_json *money, char ret[80]) {
    weft_json amount = weft_get(money, "amount");
    if (weft_typeof(&amount) != WEFT_NUMBER)
        return false;
    snprintf(ret, 80, "%.*s %.30s", amount.len < 40 ? (int) amount.len : 40, amount.text,
             weft_get_str(money, "currency", ""));
    return true;
}

/* What the agent said of it; what it did not say is not shown. */
static void put_usage(const weft_app *app, const weft_json *usage) {
    weft_json tokens = weft_get(usage, "tokens"), context = weft_get(usage, "context"), cost = weft_get(usage, "cost"),
              session = weft_get(usage, "sessionCost");
    int64_t total = weft_get_int(&tokens, "totalTokens", -1), in = weft_get_int(&tokens, "inputTokens", -1),
            out = weft_get_int(&tokens, "outputTokens", -1);
    char text[200], amounts[2][80];
    if (total >= 0) {
        int n = snprintf(text, sizeof text, "%lld", (long long) total);
        if (in >= 0 && out >= 0)
            snprintf(text + n, sizeof text - (size_t) n, " (%lld in, %lld out)", (long long) in, (long long) out);
        put_task_text(app, "tokens", text);
    }
    if (weft_typeof(&context) == WEFT_OBJECT) {
        snprintf(text, sizeof text, "%lld of %lld tokens", (long long) weft_get_int(&context, "used", 0),
                 (long long) weft_get_int(&context, "size", 0));
        put_task_text(app, "context", text);
    }
    if (money_text(&cost, amounts[0]) && money_text(&session, amounts[1])) {
        snprintf(text, sizeof text, "%s (the session so far: %s)", amounts[0], amounts[1]);
        put_task_text(app, "cost", text);
    }
}

static void put_task(const weft_app *app, const weft_json *task, const weft_json *about) {
    weft_json usage = weft_get(task, "usage");
    char time[WEFT_TIME_TEXT];
    int64_t attempt = weft_get_int(about, "attempt", 0);
    put_task_text(app, "task", weft_get_str(task, "id", ""));
    put_task_text(app, "state", weft_get_str(task, "state", ""));
    put_stop(app, weft_get_str(task, "stopReason", NULL));
    put_task_text(app, "error", weft_get_str(task, "error", NULL));
    put_task_text(app, "reason", weft_get_str(about, "reason", NULL));
    put_task_text(app, "agent", weft_get_str(about, "agent", weft_get_str(task, "agent", NULL)));
    put_task_text(app, "session", weft_get_str(about, "sessionId", NULL));
    if (attempt > 1)
        put_number(app, "attempt", about, "attempt");
    put_number(app, "priority", task, "priority");
    put_number(app, "pid", task, "pid");
    put_task_time(app, "created", task, "createdAt");
    put_task_time(app, "started", task, "startedAt");
    put_task_time(app, "ended", task, "completedAt");
    put_usage(app, &usage);
    weft_json changes = weft_get(about, "changes");
    char changed[200];
    weft__task_changes_text(&changes, changed, sizeof changed);
    put_task_text(app, "changed", changed);
    put_task_text(app, "branch", weft_get_str(about, "branch", ""));
    put_task_text(app, "worktree", weft_get_str(about, "worktree", ""));
    put_task_text(app, "took", time_taken(time, task));
    put_task_text(app, "prompt", weft_get_str(task, "prompt", ""));
    if (*weft_get_str(task, "output", ""))
        fputc('\n', app->out.file);
    put_task_output(app, task);
}

static weft_exit get_on(weft_app *app, weft_connection *connection) {
    const weft_task_settings *how = app->settings;
    const weft_val id = weft_str(app->args[0]);
    WEFT_ANSWER answer = {0};
    WEFT_ANSWER about = {0};
    weft_exit status = weft__hub_call(connection, "task.get", WEFT_OBJ({"taskId", id}), &answer);
    if (status)
        return status;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(answer.result));
        return WEFT_DONE;
    }
    if (how->output) {
        put_task_output(app, answer.result);
        return WEFT_DONE;
    }
    ask_about(connection, &id, 1, &about);
    weft_json abouts = weft_get(about.result, "tasks"), only = weft_at(&abouts, 0);
    put_task(app, answer.result, &only);
    return WEFT_DONE;
}

static weft_exit get_task(weft_app *app) {
    if (weft__gated_is_id(app->args[0]))
        return weft__gated_get_word(app);
    return with_line(app, get_on);
}

/* ---- cancel, stats ---- */

static weft_exit cancel_task(weft_app *app) {
    WEFT_ANSWER answer = {0};
    if (weft__gated_is_id(app->args[0]))
        return weft__gated_cancel_word(app);
    weft_exit status = ask_hub(app, "task.cancel", WEFT_OBJ({"taskId", weft_str(app->args[0])}), &answer);
    if (status)
        return status;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        fprintf(app->err.file, "%s is cancelled\n", app->args[0]);
    return WEFT_DONE;
}

static weft_exit show_stats(weft_app *app) {
    static const char *const names[] = {"total", "queued", "running", "completed", "failed", "cancelled"};
    WEFT_ANSWER answer = {0};
    weft_exit status = ask_hub(app, "task.stats", weft_none(), &answer);
    if (status)
        return status;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    for (size_t i = 0; !app->common.json && i < sizeof names / sizeof names[0]; i++) {
        put_task_label(app, names[i]);
        fprintf(app->out.file, "%lld\n", (long long) weft_get_int(answer.result, names[i], 0));
    }
    return WEFT_DONE;
}

/* ---- the verb ---- */

#define WAITING                                                                                                             \
    "With --wait, a question of the agent is put to you if this is a terminal. Otherwise it is shown with how to answer "   \
    "it,\n"                                                                                                                 \
    "and the task waits. --on-question deny and allow answer it at once; fail cancels the task. Both decline a form. The\n" \
    "first Ctrl-C cancels the task and waits for its end; the second does not wait any longer. Ctrl-C in \"watch\" "        \
    "leaves\n"                                                                                                              \
    "the task alone. When the hub is restarted meanwhile, the connection is made again. With --json the task is "           \
    "printed\n"                                                                                                             \
    "when it has ended.\n\n"                                                                                                \
    "exit status with --wait, and of watch ID: 0 completed, 1 failed, or cancelled by somebody, 5 no such task, 6 the\n"    \
    "queue is full or the session is busy, 7 it reached its --timeout, 8 another refusal, 130 Ctrl-C. \"watch "             \
    "--timeout\"\n"                                                                                                         \
    "without an id ends with 0.\n"

static const weft_subcommand subcommands[] = {
    {"submit",
     " agent priority timeout retries session permission worktree with-changes wait on-question once gate max-iterations "
     "hub runner label url ",
     "the prompt is missing", 1, SIZE_MAX, weft__task_submit_word, .usage = "PROMPT...",
     .help = "have an agent do something; prints the id of the task", .about = WAITING},
    {"retry", " wait on-question url ", "which task?", 1, 1, weft__task_retry_word, .usage = "ID",
     .help = "submit the prompt of an ended task again", .about = WAITING},
    {"list", " state search limit timeout url ", NULL, 0, 0, list_tasks, .help = "the newest tasks, and how they are"},
    {"get", " output timeout url ", "which task?", 1, 1, get_task, .usage = "ID",
     .help = "one task in full, with what its agent said"},
    {"cancel", " timeout url ", "which task?", 1, 1, cancel_task, .usage = "ID",
     .help = "end it, with everything it started"},
    {"stats", " timeout url ", NULL, 0, 0, show_stats, .help = "how many tasks there are in each state"},
    {"diff", " stat context timeout url ", NULL, 0, 2, weft__task_diff_word, .usage = "[ID [PATH]]",
     .help = "what it changed; without an id, the newest task"},
    {"undo", " redo shared timeout url ", NULL, 0, 1, weft__task_undo_word, .usage = "[ID]",
     .help = "put back what it changed"},
    {"merge", " strategy message timeout url ", NULL, 0, 1, weft__task_merge_word, .usage = "[ID]",
     .help = "bring what it did in its worktree into your branch"},
    {"discard", " force timeout url ", "which task?", 1, 1, weft__task_discard_word, .usage = "ID",
     .help = "remove its worktree and its branch"},
    {"open", " editor timeout url ", NULL, 0, 1, weft__task_open_word, .usage = "[ID]",
     .help = "print the folder of its worktree"},
    {"review", " file context wait permission timeout url ", NULL, 0, 2, weft__task_review_word, .usage = "[ID [PATH]]",
     .help = "write comments into its diff; they become its next prompt", .about = WAITING},
    {"watch", " timeout url ", NULL, 0, 1, weft__task_watch_word, .usage = "[ID]",
     .help = "follow all tasks as they run, or one from its beginning", .about = WAITING},
    {0},
};

static weft_exit run_task(weft_app *app) {
    return weft__subcommand_run(app);
}

static const weft_option options[] = {
    WEFT_OPTION(weft_task_settings, wait, flag, "wait", 'w', NULL, "wait until it has ended, and show what the agent says"),
    {.name = "on-question",
     .kind = WEFT_OPTION_text,
     .value = "HOW",
     .offset = offsetof(weft_task_settings, on_question),
     .help = "with --wait: what to do when the agent asks (default: ask you)",
     .choices = "ask deny allow fail"},
    WEFT_OPTION(weft_task_settings, agent, text, "agent", 'a', "NAME", "the agent to use (\"weft agents\" lists them)"),
    WEFT_OPTION(weft_task_settings, priority, text, "priority", 'p', "N", "higher runs first (default 0)"),
    WEFT_OPTION(weft_task_settings, timeout_ms, time, "timeout", 't', "TIME",
                "how long to wait: 90s, 10m, 2h (\"submit\": how long the task may run)"),
    WEFT_OPTION(weft_task_settings, retries, number, "retries", 'r', "N",
                "how often to try again when it fails (default 0)"),
    WEFT_OPTION(weft_task_settings, session, text, "session", 's', "ID",
                "continue this session instead of beginning a new one"),
    WEFT_OPTION(weft_task_settings, gates, list, "gate", 'g', "NAME",
                "repeat the task until this gate of the configuration (tasks.gates) passes"),
    WEFT_OPTION(weft_task_settings, max_iterations, number, "max-iterations", 0, "N",
                "with --gate, how often the agent may try (default 10)"),
    WEFT_OPTION(weft_task_settings, once, text, "once", 0, "KEY",
                "only if no task with this key exists; otherwise print that one's id"),
    {.name = "permission",
     .kind = WEFT_OPTION_text,
     .value = "WHAT",
     .offset = offsetof(weft_task_settings, permission),
     .help = "what the agent may do without asking (default: as configured)",
     .choices = "ask read edit all"},
    WEFT_OPTION(weft_task_settings, worktree, flag, "worktree", 0, NULL, "in a git worktree and on a branch of its own"),
    WEFT_OPTION(weft_task_settings, hub, text, "hub", 0, "NAME", "at a relay: to this one of its hubs"),
    WEFT_OPTION(weft_task_settings, runner, text, "runner", 0, "NAME", "run it on this machine (\"weft runner list\")"),
    WEFT_OPTION(weft_task_settings, label, text, "label", 0, "LABEL", "run it on any machine with this label"),
    WEFT_OPTION(weft_task_settings, with_changes, flag, "with-changes", 0, NULL,
                "like --worktree, starting with your uncommitted changes"),
    {.name = "state",
     .kind = WEFT_OPTION_text,
     .value = "STATE",
     .offset = offsetof(weft_task_settings, state),
     .help = "only tasks in this state",
     .choices = "queued running completed failed cancelled"},
    WEFT_OPTION(weft_task_settings, search, text, "search", 0, "TEXT", "only tasks whose prompt, id or agent has this text"),
    WEFT_OPTION(weft_task_settings, limit, number, "limit", 'n', "N", "how many to show, newest first (default 20)"),
    WEFT_OPTION(weft_task_settings, output, flag, "output", 'o', NULL, "only what the agent said"),
    WEFT_OPTION(weft_task_settings, stat, flag, "stat", 0, NULL, "only the names of files and the number of changed lines"),
    WEFT_OPTION(weft_task_settings, context, number, "context", 'U', "N", "lines around each change (default 3)"),
    WEFT_OPTION(weft_task_settings, file, text, "file", 0, "PATH", "take the comments from this file; open no editor"),
    WEFT_OPTION(weft_task_settings, redo, flag, "redo", 0, NULL, "bring back what was undone"),
    WEFT_OPTION(weft_task_settings, shared, flag, "shared", 0, NULL, "also files that others may have changed meanwhile"),
    {.name = "strategy",
     .kind = WEFT_OPTION_text,
     .value = "HOW",
     .offset = offsetof(weft_task_settings, strategy),
     .help = "a merge commit, one new commit, or each commit on top of yours (default merge)",
     .choices = "merge squash rebase"},
    WEFT_OPTION(weft_task_settings, message, text, "message", 'm', "TEXT",
                "the message of new commits (default: the prompt's first line)"),
    WEFT_OPTION(weft_task_settings, force, flag, "force", 0, NULL,
                "even when its uncommitted files cannot be kept in a commit"),
    WEFT_OPTION(weft_task_settings, editor, flag, "editor", 'e', NULL, "open it in $EDITOR instead of printing its path"),
    WEFT_URL_OPTION(weft_task_settings),
    {0},
};

static const char *const examples[] = {
    "weft task submit --wait 'fix the failing test'",
    "do it, and show what the agent says until it is done",
    "weft task submit --agent claude --priority 5 @plan.md",
    "the prompt from a file (- for standard input); prints the task's id",
    "weft task submit --worktree 'rewrite the parser'",
    "in a git worktree, on a branch of its own; your files stay as they are",
    "weft task submit --wait --on-question deny 'look at the log'",
    "for a script: whatever its agent asks is denied",
    "weft task submit --wait --gate test --gate lint 'make the tests pass'",
    "the agent tries until the configured gates pass, and is told what they found",
    "weft task list --state running",
    "what runs now",
    "weft task retry task-0003",
    "the same prompt again, as it was submitted",
    "weft task get task-0003 --output",
    "what it said",
    "weft task cancel task-0003",
    "end it, with everything it started",
    "weft task diff task-0003",
    "what it changed; without an id, the newest task",
    "weft task review task-0003",
    "write comments into what it changed, in $EDITOR; they become its next prompt",
    "weft task undo task-0003",
    "put that back, unless somebody has changed it since",
    "weft task merge task-0003",
    "bring what it did in its worktree into your branch; --strategy squash makes one commit of it",
    "weft task discard task-0003",
    "throw its worktree away",
    "cd \"$(weft task open task-0003)\"",
    "go to its worktree",
    "weft task watch",
    "all tasks, live; with an id only that one, from its beginning",
    "weft task stats",
    "how many are queued, running, completed, failed and cancelled",
    NULL,
};

const weft_verb weft__task_verb = {
    .name = "task",
    .help = "submit, list, watch, cancel, show, undo and merge tasks",
    .begins = "work",
    .subcommands = subcommands,
    .usual = "list",
    .examples = examples,
    .about = WAITING,
    .options = options,
    .settings_size = sizeof(weft_task_settings),
    .reaches = true,
    .run = run_task,
};

/* weft approvals: what people allowed for good, and taking it back. */
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "subcommand.h"
#include "table.h"
#include "time_text.h"

typedef struct settings {
    const char *url;
} settings;

#define SENTENCE 512

/* "execute: npm test ..., beneath src". */
static const char *allowed_words(const weft_json *approval, char room[SENTENCE]) {
    weft_json command = weft_get(approval, "command");
    const char *title = weft_get_str(approval, "title", NULL), *path = weft_get_str(approval, "path", NULL);
    size_t used = (size_t) snprintf(room, SENTENCE, "%.60s", weft_get_str(approval, "toolKind", ""));
    if (title && used < SENTENCE)
        used += (size_t) snprintf(room + used, SENTENCE - used, " \"%.200s\"", title);
    for (weft_iter it = weft_iterate(&command); weft_next(&it) && used < SENTENCE;)
        used += (size_t) snprintf(room + used, SENTENCE - used, " %.100s", weft_str_of(&it.value, ""));
    if (command.text && used < SENTENCE)
        used += (size_t) snprintf(room + used, SENTENCE - used, " ...");
    if (path && used < SENTENCE)
        snprintf(room + used, SENTENCE - used, " beneath %.200s", *path ? path : "the project");
    return room;
}

static int add_approval_row(weft_table *table, const weft_json *approval) {
    char room[SENTENCE], time[WEFT_TIME_TEXT];
    int64_t when = weft__time_get(approval, "at");
    const char *where = strcmp(weft_get_str(approval, "scope", ""), "project") == 0
                            ? "the project"
                            : weft_get_str(approval, "sessionId", "");
    const char *cells[] = {
        weft_get_str(approval, "id", ""), weft_get_str(approval, "agent", ""), where,
        weft_get_str(approval, "by", ""), weft__time_of_day(time, when),       allowed_words(approval, room)};
    int r = 0;
    for (size_t i = 0; i < sizeof cells / sizeof cells[0] && r >= 0; i++)
        r = weft__table_add(table, cells[i]);
    return r;
}

static weft_exit list_approvals(weft_app *app) {
    static const char *const heads[] = {"APPROVAL", "AGENT", "IN", "BY", "SINCE", "WHAT IT ALLOWS", NULL};
    const settings *how = app->settings;
    weft_table table = {.heads = heads};
    WEFT_ANSWER answer = {0};
    weft_exit status = weft__hub_call_once(app, how->url, "approval.list", weft_none(), &answer);
    if (status)
        return status;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(answer.result));
        return WEFT_DONE;
    }
    weft_json approvals = weft_get(answer.result, "approvals");
    int r = 0;
    for (weft_iter it = weft_iterate(&approvals); r >= 0 && weft_next(&it);)
        r = add_approval_row(&table, &it.value);
    if (r >= 0 && weft_count(&approvals))
        weft__table_put(&table, &app->out);
    else if (r >= 0)
        fputs("there are no standing answers\n", app->err.file);
    weft__table_done(&table);
    return r < 0 ? weft__fail(app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

static weft_exit revoke_approval(weft_app *app) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit status =
        weft__hub_call_once(app, how->url, "approval.revoke", WEFT_OBJ({"approvalId", weft_str(app->args[0])}), &answer);
    if (status)
        return status;
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        fprintf(app->err.file, "%s is revoked; you are asked again from now on\n", app->args[0]);
    return WEFT_DONE;
}

static const weft_subcommand subcommands[] = {
    {"list", " url ", NULL, 0, 0, list_approvals, .help = "the answers that stand"},
    {"revoke", " url ", "which one?", 1, 1, revoke_approval, .usage = "ID",
     .help = "take one back, so that you are asked again"},
    {0},
};

static weft_exit run_approvals(weft_app *app) {
    return weft__subcommand_run(app);
}

static const weft_option options[] = {
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft approvals",
    "what agents may do without asking, by a standing answer",
    "weft approvals revoke approval-0003",
    "ask again from now on",
    NULL,
};

const weft_verb weft__approvals_verb = {
    .name = "approvals",
    .help = "show standing answers, and take them back",
    .subcommands = subcommands,
    .usual = "list",
    .examples = examples,
    .about = "An answer stands when it was given with \"weft answer ID allow --always session|project\": it holds for the\n"
             "same agent and the same kind of tool, and only for what it says. Every question that it answers names it.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_approvals,
};

/* weft automation: the rules of the hub, on and off. */
#include <string.h>

#include "failure.h"
#include "hub_call.h"
#include "subcommand.h"
#include "table.h"
#include "time_text.h"

typedef struct settings {
    const char *url;
} settings;

/* ---- status ---- */

static int add_cells(weft_table *table, const char *const *cells) {
    int r = 0;
    for (; *cells && r >= 0; cells++)
        r = weft__table_add(table, *cells);
    return r;
}

static int add_rule(weft_table *table, const weft_json *rule) {
    char trigger[256], action[256];
    weft_json on = weft_get(rule, "trigger"), todo = weft_get(rule, "action");
    const char *pattern = weft_get_str(&on, "pattern", ""), *schedule = weft_get_str(&on, "schedule", "");
    const char *usual = *schedule ? "at" : *pattern ? "file.*" : "any";
    snprintf(trigger, sizeof trigger, "%s%s%s%s%s", weft_get_str(&on, "type", weft_get_str(&on, "source", usual)),
             *pattern ? " " : "", pattern, *schedule ? " " : "", schedule);
    snprintf(action, sizeof action, "%s: %s", weft_get_str(&todo, "type", ""),
             weft_get_str(&todo, "prompt", weft_get_str(&todo, "message", weft_get_str(&todo, "url", ""))));
    bool switched = weft_get(rule, "configured").text;
    const char *is = weft_get(rule, "error").text ? "invalid" : weft_get_bool(rule, "enabled", true) ? "on" : "off";
    if (switched)
        is = weft_get_bool(rule, "enabled", true) ? "on, switched" : "off, switched";
    return add_cells(table, (const char *const[]){weft_get_str(rule, "id", ""), is,
                                                  weft_get_bool(rule, "requiresApproval", false) ? "yes" : "no", trigger,
                                                  action, NULL});
}

/* Why is too long for a column. */
static void put_rule_errors(const weft_app *app, const weft_json *rules) {
    bool any = false;
    for (weft_iter it = weft_iterate(rules); weft_next(&it);) {
        const char *id = weft_get_str(&it.value, "id", ""), *error = weft_get_str(&it.value, "error", NULL);
        if (!error)
            continue;
        fputs(any ? "" : "\n", app->out.file);
        any = true;
        id = *id ? id : "a rule without an id";
        weft__put_text(&app->out, id, strlen(id));
        fputs(" is not valid: ", app->out.file);
        weft__put_text(&app->out, error, strlen(error));
        fputc('\n', app->out.file);
    }
}

static int add_execution(weft_table *table, const weft_json *done) {
    char age[WEFT_TIME_TEXT] = "";
    int64_t when = weft__time_get(done, "timestamp");
    if (when)
        weft__duration(age, weft__time_now() - when);
    return add_cells(table, (const char *const[]){weft_get_str(done, "ruleId", ""), age, weft_get_str(done, "eventType", ""),
                                                  weft_get_str(done, "status", ""),
                                                  weft_get_str(done, "error", weft_get_str(done, "taskId", "")), NULL});
}

static void put_rows_table(const weft_app *app, const char *const *heads, const weft_json *list,
                           int (*add)(weft_table *table, const weft_json *row)) {
    weft_table table = {.heads = heads};
    int r = 0;
    for (weft_iter it = weft_iterate(list); r >= 0 && weft_next(&it);)
        r = add(&table, &it.value);
    if (table.count)
        fputc('\n', app->out.file);
    if (table.count)
        weft__table_put(&table, &app->out);
    weft__table_done(&table);
}

/* Of two that say something about it, a person's switch counts more than the file, until the other one is used. */
static void put_switched(const weft_app *app, const weft_json *status, const weft_json *rules) {
    weft_json configured = weft_get(status, "configured");
    bool any = false;
    if (configured.text)
        fprintf(app->out.file, "  switched by hand, also after a restart; the configuration says %s\n",
                weft_bool_of(&configured, true) ? "on" : "off");
    for (weft_iter it = weft_iterate(rules); weft_next(&it);)
        any |= weft_get(&it.value, "configured").text != NULL;
    if (any)
        fputs("  \"switched\": by hand, also after a restart, whatever the configuration says\n", app->out.file);
}

static weft_exit show_automation(weft_app *app) {
    static const char *const rule_heads[] = {"RULE", "IS", "ASKS FIRST", "ON", "DOES", NULL};
    static const char *const done_heads[] = {"LATELY", "AGO", "EVENT", "STATUS", "", NULL};
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit failed = weft__hub_call_once(app, how->url, "automation.status", weft_none(), &answer);
    if (failed)
        return failed;
    if (app->common.json) {
        weft__put_line(&app->out, weft_copy(answer.result));
        return WEFT_DONE;
    }
    weft_json rules = weft_get(answer.result, "rules"), recent = weft_get(answer.result, "recentExecutions");
    long long count = (long long) weft_get_int(answer.result, "ruleCount", (int64_t) weft_count(&rules));
    fprintf(app->out.file, "automation is %s, %lld rule%s\n", weft_get_bool(answer.result, "enabled", false) ? "on" : "off",
            count, count == 1 ? "" : "s");
    put_switched(app, answer.result, &rules);
    put_rows_table(app, rule_heads, &rules, add_rule);
    put_rule_errors(app, &rules);
    put_rows_table(app, done_heads, &recent, add_execution);
    return WEFT_DONE;
}

/* ---- on and off ---- */

static weft_exit turn_rules(weft_app *app, const char *method, const char *word) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    weft_exit failed = weft__hub_call_once(
        app, how->url, method, WEFT_OBJ({"ruleId", app->arg_count ? weft_str(app->args[0]) : weft_none()}), &answer);
    if (failed)
        return failed;
    /* AIWG's way to say that there is none. */
    if (app->arg_count && !weft_get_bool(answer.result, "success", true))
        return weft__fail(app, WEFT_NOT_FOUND, "\"weft automation\" shows which there are.", "there is no rule %s",
                          app->args[0]);
    if (app->common.json)
        weft__put_line(&app->out, weft_copy(answer.result));
    else
        fprintf(app->err.file, "%s is %s\n", app->arg_count ? app->args[0] : "automation", word);
    return WEFT_DONE;
}

static weft_exit enable_rules(weft_app *app) {
    return turn_rules(app, "automation.enable", "on");
}

static weft_exit disable_rules(weft_app *app) {
    return turn_rules(app, "automation.disable", "off");
}

/* ---- the verb ---- */

static const weft_subcommand subcommands[] = {
    {"status", " url ", NULL, 0, 0, show_automation, .help = "which rules there are, and how often they fired"},
    {"enable", " url ", NULL, 0, 1, enable_rules, .usage = "[RULE]", .help = "let all rules, or one, fire again"},
    {"disable", " url ", NULL, 0, 1, disable_rules, .usage = "[RULE]",
     .help = "let no rule, or not this one, fire until it is enabled"},
    {0},
};

static weft_exit run_automation(weft_app *app) {
    return weft__subcommand_run(app);
}

static const weft_option options[] = {
    WEFT_URL_OPTION(settings),
    {0},
};

static const char *const examples[] = {
    "weft automation",
    "the rules, and what they did lately",
    "weft automation disable",
    "all of them; they stay off when the hub is restarted",
    "weft automation enable run-tests",
    "one rule",
    NULL,
};

const weft_verb weft__automation_verb = {
    .name = "automation",
    .help = "show the rules, switch them on and off",
    .subcommands = subcommands,
    .usual = "status",
    .examples = examples,
    .about = "Rules are in the configuration, under automation.rules.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_automation,
};

/* weft help: all verbs, or one. */
#include <string.h>

#include "app.h"
#include "failure.h"
#include "subcommand.h"
#include "text_output.h"

#define MAX_VERBS 64
#define MAX_SUBCOMMANDS 24

static weft_val subcommand_names(const weft_verb *verb, weft_val names[MAX_SUBCOMMANDS]) {
    size_t count = 0;
    for (const weft_subcommand *each = verb->subcommands; each && each->name && count < MAX_SUBCOMMANDS; each++)
        names[count++] = weft_str(each->name);
    return weft_arr(names, count);
}

static void put_verbs_json(const weft_app *app) {
    weft_val items[MAX_VERBS], names[MAX_VERBS][MAX_SUBCOMMANDS];
    weft_member rows[MAX_VERBS][4];
    char usages[MAX_VERBS][WEFT_USAGE_TEXT];
    size_t count = 0;
    for (const weft_verb *const *verb = weft__verbs; *verb && count < MAX_VERBS; verb++, count++) {
        rows[count][0] = (weft_member){"name", weft_str((*verb)->name)};
        rows[count][1] = (weft_member){"help", weft_str((*verb)->help)};
        weft__usage_text(*verb, NULL, usages[count]);
        rows[count][2] = (weft_member){"usage", weft_str(usages[count])};
        rows[count][3] = (weft_member){"subcommands", subcommand_names(*verb, names[count])};
        items[count] = weft_obj(rows[count], 4);
    }
    weft__put_line(&app->out, WEFT_OBJ({"verbs", weft_arr(items, count)}));
}

static weft_exit print_subcommand(const weft_app *app, const weft_verb *verb) {
    const weft_subcommand *subcommand = weft__subcommand_find(verb, app->args[1]);
    if (!subcommand)
        return weft__subcommand_unknown(app, verb, app->args[1]);
    if (app->arg_count > 2)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[2]);
    weft__help_subcommand(app->out.file, verb, subcommand);
    return WEFT_DONE;
}

static weft_exit print_help(weft_app *app) {
    weft_suggestion suggestion = {.typed = app->arg_count ? app->args[0] : ""};
    const weft_verb *verb = app->arg_count ? weft__verb_find(app->args[0]) : NULL;
    if (app->arg_count && strcmp(app->args[0], "connection") == 0) {
        weft__help_connection(app->out.file);
        return WEFT_DONE;
    }
    if (verb && app->arg_count > 1)
        return print_subcommand(app, verb);
    if (verb)
        weft__help_verb(app->out.file, verb);
    else if (!app->arg_count && app->common.json)
        put_verbs_json(app);
    else if (!app->arg_count)
        weft__help_all(app->out.file);
    if (verb || !app->arg_count)
        return WEFT_DONE;
    for (const weft_verb *const *each = weft__verbs; *each; each++)
        weft__suggest(&suggestion, (*each)->name);
    if (suggestion.best)
        return weft__misused(app, "there is no verb \"%s\"; did you mean \"%s\"?", app->args[0], suggestion.best);
    return weft__misused(app, "there is no verb \"%s\"", app->args[0]);
}

static weft_exit run_help(weft_app *app) {
    weft_text_output output;
    if (!app->arg_count)
        return print_help(app); /* has JSON of its own */
    weft__text_output_begin(app, &output);
    return weft__text_output_end(app, &output, print_help(app));
}

static const char *const examples[] = {"weft help",
                                       "all verbs",
                                       "weft help call",
                                       "one of them",
                                       "weft help task submit",
                                       "one of the things that it does",
                                       "weft help connection",
                                       "the options of all verbs that connect",
                                       NULL};

const weft_verb weft__help_verb_row = {
    .name = "help",
    .help = "explain the program, or one verb",
    .usage = "[VERB [SUBCOMMAND] | connection]",
    .examples = examples,
    .run = run_help,
};

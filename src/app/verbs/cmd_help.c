/* weft help: all verbs, or one. */
#include <string.h>

#include "app.h"
#include "failure.h"
#include "text_output.h"

static void put_verbs_json(const weft_app *app) {
    weft_val items[64];
    weft_member rows[64][3];
    size_t count = 0;
    for (const weft_verb *const *verb = weft__verbs; *verb && count < 64; verb++, count++) {
        rows[count][0] = (weft_member){"name", weft_str((*verb)->name)};
        rows[count][1] = (weft_member){"help", weft_str((*verb)->help)};
        rows[count][2] = (weft_member){"usage", weft_str((*verb)->usage)};
        items[count] = weft_obj(rows[count], 3);
    }
    weft__put_line(&app->out, WEFT_OBJ({"verbs", weft_arr(items, count)}));
}

static weft_exit print_help(weft_app *app) {
    weft_suggestion suggestion = {.typed = app->arg_count ? app->args[0] : ""};
    const weft_verb *verb = app->arg_count ? weft__verb_find(app->args[0]) : NULL;
    if (app->arg_count && strcmp(app->args[0], "connection") == 0) {
        weft__help_connection(app->out.file);
        return WEFT_DONE;
    }
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
                                       "weft help connection",
                                       "the options of all verbs that connect",
                                       NULL};

const weft_verb weft__help_verb_row = {
    .name = "help",
    .help = "explain the program, or one verb",
    .usage = "[VERB | connection]",
    .examples = examples,
    .run = run_help,
};

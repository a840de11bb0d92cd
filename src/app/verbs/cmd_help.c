/* weft help: all verbs, or one. */
#include "app.h"
#include "failure.h"

static void put_json(const weft_app *app) {
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

static weft_exit run(weft_app *app) {
    weft_suggestion suggestion = {.typed = app->arg_count ? app->args[0] : ""};
    const weft_verb *verb = app->arg_count ? weft__verb_find(app->args[0]) : NULL;
    if (verb)
        weft__help_verb(app->out.file, verb);
    else if (!app->arg_count && app->common.json)
        put_json(app);
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

static const char *const examples[] = {"weft help", "all verbs", "weft help call", "one of them", NULL};

const weft_verb weft__help_verb_row = {
    .name = "help",
    .help = "explain the program, or one verb",
    .usage = "[VERB]",
    .examples = examples,
    .run = run,
};

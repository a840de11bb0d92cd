/* weft man: manual pages, made from the rows of the verbs and of the methods, as roff for man(1). */
#include "app.h"
#include "failure.h"
#include "man.h"
#include "text_output.h"

typedef struct settings {
    bool methods, protocol, list;
} settings;

/* What a package installs: each with its section. */
static weft_exit put_names(FILE *to) {
    fputs("weft.1\n", to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++)
        fprintf(to, "weft-%s.1\n", (*verb)->name);
    fputs("weft-methods.7\n", to);
    return WEFT_DONE;
}

static weft_exit no_such_page(const weft_app *app) {
    weft_suggestion suggestion = {.typed = app->args[0]};
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++)
        weft__suggest(&suggestion, (*verb)->name);
    if (suggestion.best)
        return weft__misused(app, "there is no verb \"%s\"; did you mean \"%s\"?", app->args[0], suggestion.best);
    return weft__misused(app, "there is no verb \"%s\"", app->args[0]);
}

static weft_exit print_page(weft_app *app) {
    const settings *how = app->settings;
    const weft_verb *verb = app->arg_count ? weft__verb_find(app->args[0]) : NULL;
    if (app->arg_count > 1 || (app->arg_count && (how->methods || how->protocol)))
        return weft__misused(app, "one page at a time");
    if (how->list)
        return put_names(app->out.file);
    if (how->methods)
        return weft__man_methods(app);
    if (how->protocol)
        return weft__man_protocol(app);
    if (app->arg_count && !verb)
        return no_such_page(app);
    if (verb)
        weft__man_verb_page(app->out.file, verb);
    else
        weft__man_page(app->out.file);
    return WEFT_DONE;
}

static weft_exit run_man(weft_app *app) {
    weft_text_output output;
    weft__text_output_begin(app, &output);
    return weft__text_output_end(app, &output, print_page(app));
}

static const weft_option options[] = {
    WEFT_OPTION(settings, methods, flag, "methods", 0, NULL, "weft-methods(7): what a hub answers"),
    WEFT_OPTION(settings, protocol, flag, "protocol", 0, NULL, "methods, events and errors as Markdown"),
    WEFT_OPTION(settings, list, flag, "list", 0, NULL, "the names of all pages"),
    {0},
};

static const char *const examples[] = {
    "weft man | man -l -",
    "read weft(1)",
    "weft man task > weft-task.1",
    "the page of one verb",
    "weft man --methods | man -l -",
    "read weft-methods(7)",
    NULL,
};

const weft_verb weft__man_verb = {
    .name = "man",
    .help = "print manual pages",
    .usage = "[VERB]",
    .examples = examples,
    .about = "\"make install\" puts all of them where man(1) looks.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .run = run_man,
};

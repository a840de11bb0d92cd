/* The subcommands of a verb. */
#include "subcommand.h"

#include <string.h>

#include "failure.h"

#define MAX_LIST 256

const weft_subcommand *weft__subcommand_find(const weft_verb *verb, const char *name) {
    for (const weft_subcommand *each = verb->subcommands; each && each->name; each++)
        if (strcmp(each->name, name) == 0)
            return each;
    return NULL;
}

static void list_subcommands(const weft_subcommand *first, char ret[MAX_LIST]) {
    size_t used = 0;
    for (const weft_subcommand *each = first; each->name && used < MAX_LIST; each++) {
        const char *between = each == first ? "" : each[1].name ? ", " : " and ";
        used += (size_t) snprintf(ret + used, MAX_LIST - used, "%s%s", between, each->name);
    }
}

weft_exit weft__subcommand_unknown(const weft_app *app, const weft_verb *verb, const char *name) {
    char all[MAX_LIST] = "";
    weft_suggestion suggestion = {.typed = name};
    for (const weft_subcommand *each = verb->subcommands; each && each->name; each++)
        weft__suggest(&suggestion, each->name);
    if (suggestion.best)
        return weft__misused(app, "unknown subcommand \"%s\"; did you mean \"%s\"?", name, suggestion.best);
    if (!verb->subcommands)
        return weft__misused(app, "\"%s\" has no subcommands", verb->name);
    list_subcommands(verb->subcommands, all);
    return weft__misused(app, "unknown subcommand \"%s\"; the subcommand%s %s", name,
                         verb->subcommands[1].name ? "s are" : " is", all);
}

/* ---- options that belong to another subcommand ---- */

static bool is_given(const weft_app *app, const weft_option *option) {
    const void *field = (const char *) app->settings + option->offset;
    switch (option->kind) {
    case WEFT_OPTION_flag:
        return *(const bool *) field;
    case WEFT_OPTION_text:
        return *(const char *const *) field;
    case WEFT_OPTION_list:
        return ((const weft_texts *) field)->count;
    default:
        return *(const int64_t *) field;
    }
}

bool weft__subcommand_takes(const weft_subcommand *subcommand, const char *option) {
    char name[64];
    snprintf(name, sizeof name, " %s ", option);
    return subcommand->takes && strstr(subcommand->takes, name);
}

static weft_exit check_options(const weft_app *app) {
    for (const weft_option *option = app->verb->options; option && option->name; option++) {
        if (weft__subcommand_takes(app->subcommand, option->name) || !is_given(app, option))
            continue;
        for (const weft_subcommand *each = app->verb->subcommands; each->name; each++)
            if (weft__subcommand_takes(each, option->name))
                return weft__misused(app, "--%s belongs to \"%s\", not to \"%s\"", option->name, each->name,
                                     app->subcommand->name);
    }
    return WEFT_DONE;
}

weft_exit weft__subcommand_run(weft_app *app) {
    char all[MAX_LIST] = "";
    const char *name = app->arg_count ? app->args[0] : app->verb->usual;
    list_subcommands(app->verb->subcommands, all);
    if (!name)
        return weft__misused(app, "a subcommand is missing: %s", all);
    const weft_subcommand *found = weft__subcommand_find(app->verb, name);
    if (!found)
        return weft__subcommand_unknown(app, app->verb, name);
    app->subcommand = found;
    if (app->arg_count) {
        app->args++;
        app->arg_count--;
    }
    if (app->arg_count < found->least)
        return weft__misused(app, "%s", found->missing);
    if (app->arg_count > found->most)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[found->most]);
    weft_exit status = check_options(app);
    return status ? status : found->run(app);
}

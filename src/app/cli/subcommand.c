/* The words of a verb. */
#include "subcommand.h"

#include <string.h>

#include "failure.h"

#define MAX_LIST 256

static const weft_subcommand *find_verb_word(const weft_subcommand *words, const char *name) {
    for (; words->name; words++)
        if (strcmp(words->name, name) == 0)
            return words;
    return NULL;
}

static void list_words(const weft_subcommand *words, char ret[MAX_LIST]) {
    size_t used = 0;
    for (const weft_subcommand *word = words; word->name && used < MAX_LIST; word++) {
        const char *between = word == words ? "" : word[1].name ? ", " : " and ";
        used += (size_t) snprintf(ret + used, MAX_LIST - used, "%s%s", between, word->name);
    }
}

static weft_exit misused_word(const weft_app *app, const weft_subcommand *words, const char *name) {
    char all[MAX_LIST] = "";
    weft_suggestion suggestion = {.typed = name};
    for (const weft_subcommand *word = words; word->name; word++)
        weft__suggest(&suggestion, word->name);
    if (suggestion.best)
        return weft__misused(app, "unknown subcommand \"%s\"; did you mean \"%s\"?", name, suggestion.best);
    list_words(words, all);
    return weft__misused(app, "unknown subcommand \"%s\"; the subcommands are %s", name, all);
}

/* ---- options that belong to another word ---- */

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

static bool word_takes(const weft_subcommand *word, const char *option) {
    char name[64];
    snprintf(name, sizeof name, " %s ", option);
    return word->takes && strstr(word->takes, name);
}

static weft_exit check_options(const weft_app *app, const weft_subcommand *words, const weft_subcommand *word) {
    for (const weft_option *option = app->verb->options; option && option->name; option++) {
        if (word_takes(word, option->name) || !is_given(app, option))
            continue;
        for (; words->name; words++)
            if (word_takes(words, option->name))
                return weft__misused(app, "--%s belongs to \"%s\", not to \"%s\"", option->name, words->name, word->name);
    }
    return WEFT_DONE;
}

weft_exit weft__subcommand_run(weft_app *app, const weft_subcommand *words, const char *usual) {
    char all[MAX_LIST] = "";
    const char *name = app->arg_count ? app->args[0] : usual;
    list_words(words, all);
    if (!name)
        return weft__misused(app, "a subcommand is missing: %s", all);
    const weft_subcommand *word = find_verb_word(words, name);
    if (!word)
        return misused_word(app, words, name);
    if (app->arg_count) {
        app->args++;
        app->arg_count--;
    }
    if (app->arg_count < word->least)
        return weft__misused(app, "%s", word->missing);
    if (app->arg_count > word->most)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[word->most]);
    weft_exit status = check_options(app, words, word);
    return status ? status : word->run(app);
}

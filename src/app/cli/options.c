/* Reading options by their tables: "--name value", "--name=value", "-n value", "-nvalue", "-abc" for flags. They may stand
 * anywhere; "--" ends them, "-" alone is not one. Every mistake is explained. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"
#include "config.h"
#include "failure.h"

/* An option and the settings its value goes to. */
typedef struct place {
    const weft_option *option;
    char *settings;
} place;

typedef struct reader {
    weft_app *app;
    char **at; /* the argument being read */
} reader;

const weft_option weft__common_options[] = {
    WEFT_OPTION(weft_common, json, flag, "json", 0, NULL, "data as JSON: one object, or one per line"),
    WEFT_OPTION(weft_common, verbose, flag, "verbose", 'v', NULL, "say more on standard error"),
    WEFT_OPTION(weft_common, help, flag, "help", 'h', NULL, "show examples and options"),
    {0},
};

const weft_option weft__connection_options[] = {
    WEFT_OPTION(weft_reach, timeout_ms, time, "timeout", 't', "TIME",
                "how long to wait in all: 500ms, 5s, 2m (default 30s)"),
    WEFT_OPTION(weft_reach, token_file, text, "token-file", 0, "FILE", "the token to show; else the variable WEFT_TOKEN"),
    WEFT_OPTION(weft_reach, key_file, text, "key-file", 0, "FILE", "sign what is sent with the secret in it (mode 0600)"),
    WEFT_OPTION(weft_reach, key_id, text, "key-id", 0, "NAME", "the name that the server knows this key by"),
    WEFT_OPTION(weft_reach, content_length, flag, "content-length", 0, NULL, "frame with Content-Length headers, not lines"),
    WEFT_OPTION(weft_reach, compress, flag, "compress", 0, NULL,
                "gzip for large messages, where the other side can (HTTP, Content-Length)"),
    WEFT_OPTION(weft_reach, cacert, text, "cacert", 0, "FILE", "trust these certificates instead of the system's"),
    WEFT_OPTION(weft_reach, cert, text, "cert", 0, "FILE", "our certificate, for servers that ask for one"),
    WEFT_OPTION(weft_reach, key, text, "key", 0, "FILE", "the key that belongs to it"),
    WEFT_OPTION(weft_reach, insecure, flag, "insecure", 'k', NULL, "do not check the server's certificate"),
    {0},
};

/* ---- finding ---- */

/* The three tables and where their values go. Returns how many. */
static size_t places_of(weft_app *app, place ret[3]) {
    size_t count = 0;
    if (app->verb->options)
        ret[count++] = (place){app->verb->options, app->settings};
    if (app->verb->reaches)
        ret[count++] = (place){weft__connection_options, (char *) &app->reach};
    ret[count++] = (place){weft__common_options, (char *) &app->common};
    return count;
}

static bool is_option_named(const weft_option *option, const char *name, size_t len) {
    return strlen(option->name) == len && strncmp(option->name, name, len) == 0;
}

/* By name, or by letter when the name is NULL. */
static bool find_option(weft_app *app, const char *name, size_t len, char letter, place *ret) {
    place tables[3];
    size_t count = places_of(app, tables);
    for (size_t i = 0; i < count; i++)
        for (const weft_option *option = tables[i].option; option->name; option++)
            if (name ? is_option_named(option, name, len) : option->letter == letter) {
                *ret = (place){option, tables[i].settings};
                return true;
            }
    return false;
}

static weft_exit unknown_name(weft_app *app, const char *name, size_t len) {
    char typed[64];
    place tables[3];
    snprintf(typed, sizeof typed, "%.*s", (int) len, name);
    weft_suggestion suggestion = {.typed = typed};
    size_t count = places_of(app, tables);
    for (size_t i = 0; i < count; i++)
        for (const weft_option *option = tables[i].option; option->name; option++)
            weft__suggest(&suggestion, option->name);
    if (suggestion.best)
        return weft__misused(app, "there is no option --%s; did you mean --%s?", typed, suggestion.best);
    return weft__misused(app, "there is no option --%s", typed);
}

/* ---- values ---- */

static bool read_number_option(const char *text, int64_t *ret) {
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    int64_t factor = *end == 'k' ? 1000 : *end == 'M' ? 1000 * 1000 : 1;
    end += factor > 1;
    /* Zero is how the settings say that nothing was given. */
    if (errno || *text < '0' || *text > '9' || *end || number == 0 || number > INT64_MAX / factor)
        return false;
    *ret = number * factor;
    return true;
}

/* A year is for ever here, and fits wherever milliseconds are added up. */
#define MAX_MS (366.0 * 24 * 3600 * 1000)

static bool read_time(const char *text, int64_t *ret) {
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"min", 60 * 1000}, {"h", 3600 * 1000}};
    char *end;
    if ((*text < '0' || *text > '9') && *text != '.')
        return false;
    double number = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].unit) == 0) {
            double ms = number * units[i].ms;
            if (!(ms > 0 && ms <= MAX_MS))
                return false;
            *ret = ms < 1 ? 1 : (int64_t) ms;
            return true;
        }
    return false;
}

static weft_exit set_value(weft_app *app, const place *where, const char *text) {
    const weft_option *option = where->option;
    void *field = where->settings + option->offset;
    if (option->choices && !weft__is_choice(&(weft_choices){option->choices}, text))
        return weft__misused(app, "--%s is one of: %s", option->name, option->choices);
    if (option->kind == WEFT_OPTION_text)
        *(const char **) field = text;
    else if (option->kind == WEFT_OPTION_number && !read_number_option(text, field))
        return weft__misused(app, "--%s wants a number from 1 up, not \"%s\"", option->name, text);
    else if (option->kind == WEFT_OPTION_time && !read_time(text, field))
        return weft__misused(app, "--%s wants a time such as 500ms, 5s or 2m, not \"%s\"", option->name, text);
    else if (option->kind == WEFT_OPTION_list) {
        weft_texts *list = field;
        if (list->count == WEFT_MAX_TEXTS)
            return weft__misused(app, "--%s can be given %d times at most", option->name, WEFT_MAX_TEXTS);
        list->items[list->count++] = text;
    }
    return WEFT_DONE;
}

static weft_exit apply_option(reader *reading, const place *where, const char *value) {
    const weft_option *option = where->option;
    if (option->kind == WEFT_OPTION_flag) {
        *(bool *) (where->settings + option->offset) = true;
        return WEFT_DONE;
    }
    if (!value && !(value = *++reading->at)) {
        reading->at--;
        return weft__misused(reading->app, "--%s needs its %s", option->name, option->value);
    }
    return set_value(reading->app, where, value);
}

/* ---- arguments ---- */

static weft_exit read_long(reader *reading) {
    const char *name = *reading->at + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals ? (size_t) (equals - name) : strlen(name);
    place where;
    if (!find_option(reading->app, name, len, 0, &where))
        return unknown_name(reading->app, name, len);
    if (equals && where.option->kind == WEFT_OPTION_flag)
        return weft__misused(reading->app, "--%s takes no value", where.option->name);
    return apply_option(reading, &where, equals ? equals + 1 : NULL);
}

static weft_exit read_letters(reader *reading) {
    for (const char *letter = *reading->at + 1; *letter; letter++) {
        place where;
        if (!find_option(reading->app, NULL, 0, *letter, &where))
            return weft__misused(reading->app, "there is no option -%c", *letter);
        bool flag = where.option->kind == WEFT_OPTION_flag;
        weft_exit status = apply_option(reading, &where, !flag && letter[1] ? letter + 1 : NULL);
        if (status || !flag)
            return status;
    }
    return WEFT_DONE;
}

/* A mistake is explained in JSON wherever --json stands, also behind the mistake. */
static bool has_json_option(char **argv) {
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        if (strcmp(*argv, "--json") == 0)
            return true;
    return false;
}

weft_exit weft__options_read(weft_app *app, char **argv) {
    reader reading = {.app = app, .at = argv};
    app->common.json = has_json_option(argv);
    char **kept = argv;
    bool ended = false;
    for (; *reading.at; reading.at++) {
        char *arg = *reading.at;
        if (!ended && strcmp(arg, "--") == 0) {
            ended = true;
            continue;
        }
        if (ended || arg[0] != '-' || !arg[1]) {
            *kept++ = arg;
            continue;
        }
        weft_exit status = arg[1] == '-' ? read_long(&reading) : read_letters(&reading);
        if (status)
            return status;
    }
    *kept = NULL;
    app->args = argv;
    app->arg_count = (size_t) (kept - argv);
    return WEFT_DONE;
}

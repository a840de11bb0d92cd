/* Finding the row of a verb, and help, which is made from the rows: examples first, because that is what people read. */
#include <string.h>

#include "app.h"
#include "transport.h"
#include "wrap.h"

#define NAME_WIDTH 11
#define OPTION_WIDTH 26
#define OPTION_COLUMN (4 + OPTION_WIDTH + 1)

static void put_urls(FILE *to) {
    static const char *const behind[] = {[WEFT_URL_NAME] = "PATH",
                                         [WEFT_URL_NOTHING] = "",
                                         [WEFT_URL_PROGRAM] = "COMMAND",
                                         [WEFT_URL_HOST] = "//H:P",
                                         [WEFT_URL_WEB] = "//H:P/PATH"};
    char text[512];
    size_t n = 0;
    for (const weft_transport *const *at = weft__transports; *at && n < sizeof text; at++)
        if (!((*at)->scheme.flags & WEFT_IN_LOOP))
            n += (size_t) snprintf(text + n, sizeof text - n, "%s:%s ", (*at)->scheme.name, behind[(*at)->scheme.form]);
    fputs("    ", to);
    weft__put_wrapped(to, text, 4, 4);
    fputc('\n', to);
}

const weft_verb *weft__verb_find(const char *name) {
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++)
        if (strcmp((*verb)->name, name) == 0)
            return *verb;
    return NULL;
}

void weft__help_all(FILE *to) {
    fputs("weft: a hub for coding agents, and JSON-RPC 2.0 with anybody\n\n"
          "    weft start                                a hub for this folder\n"
          "    weft task submit --wait 'fix the test'    have an agent do it, and watch\n"
          "    weft agents                               which agents there are\n"
          "    weft call ws://127.0.0.1:8080/ m '[1,2]'  call any JSON-RPC server\n",
          to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++) {
        if ((*verb)->begins)
            fprintf(to, "\n%s:\n", (*verb)->begins);
        fprintf(to, "    %-*s %s\n", NAME_WIDTH, (*verb)->name, (*verb)->help);
    }
    fputs("\n\"weft VERB -h\" shows examples and options. Endpoints are URLs:\n", to);
    put_urls(to);
    fputs("Without one, the daemon of this folder is meant. \"weft help connection\" has the\n"
          "options for connections.\n\n"
          "exit status: 0 ok, 1 failure, 2 usage, 3 unreachable, 4 not authorised,\n"
          "5 not found, 6 busy, 7 timeout, 8 the other side answered with an error\n",
          to);
}

static void put_option_help(FILE *to, const weft_option *option) {
    char left[80], right[512];
    char letter[8] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name, option->value ? " " : "",
             option->value ? option->value : "");
    snprintf(right, sizeof right, "%s%s%s%s", option->help, option->choices ? ": " : "",
             option->choices ? option->choices : "", option->kind == WEFT_OPTION_list ? "; may be repeated" : "");
    fprintf(to, "    %-*s ", OPTION_WIDTH, left);
    weft__put_wrapped(to, right, OPTION_COLUMN, OPTION_COLUMN);
    fputc('\n', to);
}

/* Where to connect is the same for every verb that does: explained once. */
static void put_connection_names(FILE *to, const weft_verb *verb) {
    char text[512] = "For connections (\"weft help connection\"):";
    for (const weft_option *option = weft__connection_options; option->name; option++)
        if (!weft__option_hidden(verb, weft__connection_options, option)) {
            size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, " --%s", option->name);
        }
    fputc('\n', to);
    weft__put_wrapped(to, text, 0, 4);
    fputc('\n', to);
}

void weft__help_connection(FILE *to) {
    fputs("Options of every verb that connects somewhere.\n\noptions:\n", to);
    for (const weft_option *option = weft__connection_options; option->name; option++)
        put_option_help(to, option);
    fputs("\nEndpoints are URLs:\n", to);
    put_urls(to);
}

void weft__option_tables(const weft_verb *verb, const weft_option *ret[WEFT_OPTION_TABLES]) {
    size_t count = 0;
    if (verb->options)
        ret[count++] = verb->options;
    if (verb->reaches)
        ret[count++] = weft__connection_options;
    ret[count++] = weft__common_options;
    ret[count] = NULL;
}

bool weft__option_hidden(const weft_verb *verb, const weft_option *table, const weft_option *option) {
    for (const weft_option *own = verb->options; own && own->name; own++)
        if (table != verb->options && strcmp(own->name, option->name) == 0)
            return true;
    return false;
}

static void put_example(FILE *to, const char *command, const char *about) {
    fprintf(to, "    %s\n        ", command); /* a command is one line, whatever its length, so that it can be pasted */
    weft__put_wrapped(to, about, 8, 8);
    fputc('\n', to);
}

static void put_usage_line(FILE *to, const weft_verb *verb) {
    int n = fprintf(to, "\nusage: weft %s", verb->name);
    fputc(' ', to);
    char text[1024];
    snprintf(text, sizeof text, "[options] %s", verb->usage);
    weft__put_wrapped(to, text, (size_t) n, 12);
    fputc('\n', to);
}

void weft__help_verb(FILE *to, const weft_verb *verb) {
    const weft_option *tables[WEFT_OPTION_TABLES];
    fprintf(to, "weft %s: %s\n\n", verb->name, verb->help);
    for (const char *const *example = verb->examples; example && *example; example += 2)
        put_example(to, example[0], example[1]);
    put_usage_line(to, verb);
    if (verb->about) {
        fputc('\n', to);
        weft__put_paragraphs(to, verb->about);
    }
    fputs("\noptions:\n", to);
    weft__option_tables(verb, tables);
    for (size_t i = 0; tables[i]; i++)
        for (const weft_option *option = tables[i]; tables[i] != weft__connection_options && option->name; option++)
            if (!weft__option_hidden(verb, tables[i], option))
                put_option_help(to, option);
    if (verb->reaches)
        put_connection_names(to, verb);
}

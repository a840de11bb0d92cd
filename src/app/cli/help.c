/* Help, made from the rows of the verbs: examples first, because that is what people read. */
#include <string.h>

#include "app.h"

#define NAME_WIDTH 11
#define OPTION_WIDTH 26

void weft__help_all(FILE *to) {
    fputs("weft: a hub for coding agents, and JSON-RPC 2.0 with anybody\n\n"
          "    weft start                                          a hub for this folder, in the background\n"
          "    weft task submit --wait 'fix the failing test'      have an agent do something, and watch it\n"
          "    weft agents                                         which agents there are\n"
          "    weft call ws://127.0.0.1:8080/ subtract '[42,23]'   call a method of any JSON-RPC server\n",
          to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++) {
        if ((*verb)->begins)
            fprintf(to, "\n%s:\n", (*verb)->begins);
        fprintf(to, "    %-*s %s\n", NAME_WIDTH, (*verb)->name, (*verb)->help);
    }
    fputs("\n\"weft VERB -h\" shows examples and options. Endpoints are URLs: unix:PATH tcp://H:P tls://H:P ws://H:P/PATH\n"
          "wss://... http://... https://... exec:COMMAND stdio: Without one, the daemon of this folder is meant.\n\n"
          "exit status: 0 ok, 1 failure, 2 usage, 3 unreachable, 4 not authorised, 5 not found, 6 busy, 7 timeout,\n"
          "8 the other side answered with an error\n",
          to);
}

static void put_option(FILE *to, const weft_option *option) {
    char left[80];
    char letter[8] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name, option->value ? " " : "",
             option->value ? option->value : "");
    fprintf(to, "    %-*s %s%s%s%s\n", OPTION_WIDTH, left, option->help, option->choices ? ": " : "",
            option->choices ? option->choices : "", option->kind == WEFT_OPTION_list ? "; may be repeated" : "");
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

void weft__help_verb(FILE *to, const weft_verb *verb) {
    const weft_option *tables[WEFT_OPTION_TABLES];
    fprintf(to, "weft %s: %s\n\n", verb->name, verb->help);
    for (const char *const *example = verb->examples; example && *example; example += 2)
        fprintf(to, "    %s\n        %s\n", example[0], example[1]);
    fprintf(to, "\nusage: weft %s [options]%s%s\n", verb->name, *verb->usage ? " " : "", verb->usage);
    if (verb->about)
        fprintf(to, "\n%s", verb->about);
    fputs("\noptions:\n", to);
    weft__option_tables(verb, tables);
    for (size_t i = 0; tables[i]; i++)
        for (const weft_option *option = tables[i]; option->name; option++)
            if (!weft__option_hidden(verb, tables[i], option))
                put_option(to, option);
}

/* Finding the row of a verb, and help, which is made from the rows: examples first, because that is what people read. */
#include <string.h>

#include "app.h"
#include "subcommand.h"
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

/* What fits a terminal of 24 lines. */
void weft__help_first(FILE *to) {
    fputs("weft: a hub for coding agents\n\n"
          "A hub belongs to one project folder. You give it tasks, and agents do them. You\n"
          "see what they do, answer what they ask, and keep or undo what they changed.\n\n"
          "    weft start                       start the hub of this folder\n"
          "    weft task submit --wait 'hello'  give it a task; the demo agent is free\n"
          "    weft open                        open its dashboard in your browser\n"
          "    weft answer                      see what agents ask, and answer\n"
          "    weft task list                   see all tasks\n"
          "    weft task diff                   see what the newest task changed\n"
          "    weft agents                      see which agents there are; install one\n"
          "    weft stop                        stop the hub\n\n"
          "    weft help                        all verbs\n"
          "    weft VERB -h                     one verb, with examples\n"
          "    weft doctor                      what is wrong here, and what to do\n",
          to);
}

void weft__help_all(FILE *to) {
    fputs("weft: a hub for coding agents, and a client for any JSON-RPC 2.0 server\n\n"
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
    fputs("Without one, the hub of this folder is meant. \"weft help connection\" has the\n"
          "options for connections.\n\n"
          "exit status: 0 ok, 1 failure, 2 usage, 3 unreachable, 4 not authorised,\n"
          "5 not found, 6 busy, 7 timeout, 8 the other side answered with an error\n",
          to);
}

/* ---- what options do, and how verbs are called ---- */

/* Options that more subcommands take are explained without their names. */
#define FEW_SUBCOMMANDS 4

/* "submit, review: ", where an option means something to few subcommands only. What else a verb with a usage of its own does
 * is not in the rows. */
static size_t put_takers(const weft_verb *verb, const weft_option *option, char *ret, size_t size) {
    size_t takers = 0, all = 0, n = 0;
    for (const weft_subcommand *each = verb->usage ? NULL : verb->subcommands; each && each->name; each++, all++)
        takers += weft__subcommand_takes(each, option->name);
    *ret = 0;
    if (takers == 0 || takers == all || takers > FEW_SUBCOMMANDS)
        return 0;
    for (const weft_subcommand *each = verb->subcommands; each->name; each++)
        if (weft__subcommand_takes(each, option->name) && n < size)
            n += (size_t) snprintf(ret + n, size - n, "%s%s", each->name, --takers ? ", " : ": ");
    return n;
}

/* "ask deny allow" as ": ask, deny or allow". */
static void put_choices(const char *choices, char *ret, size_t size) {
    const char *separator = ": ";
    for (size_t n = 0, len; *choices && n < size; choices += len + (choices[len] == ' ')) {
        len = strcspn(choices, " ");
        if (n && !choices[len])
            separator = " or ";
        n += (size_t) snprintf(ret + n, size - n, "%s%.*s", separator, (int) len, choices);
        separator = ", ";
    }
}

static void text_of_option(const weft_option *option, char *ret, size_t size) {
    char choices[256] = "";
    if (option->choices)
        put_choices(option->choices, choices, sizeof choices);
    snprintf(ret, size, "%s%s%s", option->help, choices,
             option->kind == WEFT_OPTION_list ? "; may be given several times" : "");
}

void weft__option_text(const weft_verb *verb, const weft_option *option, char ret[WEFT_OPTION_TEXT]) {
    size_t n = put_takers(verb, option, ret, WEFT_OPTION_TEXT);
    if (n < WEFT_OPTION_TEXT)
        text_of_option(option, ret + n, WEFT_OPTION_TEXT - n);
}

void weft__usage_text(const weft_verb *verb, const weft_subcommand *subcommand, char ret[WEFT_USAGE_TEXT]) {
    bool optional = verb->usual && !verb->usage;
    size_t n = 0;
    if (subcommand || !verb->subcommands) {
        const char *usage = subcommand ? subcommand->usage : verb->usage;
        snprintf(ret, WEFT_USAGE_TEXT, "%s", usage ? usage : "");
        return;
    }
    n += (size_t) snprintf(ret, WEFT_USAGE_TEXT, "%s%s", optional ? "[" : "", verb->usage ? verb->usage : "");
    for (const weft_subcommand *each = verb->subcommands; each->name && n < WEFT_USAGE_TEXT; each++)
        n += (size_t) snprintf(ret + n, WEFT_USAGE_TEXT - n, "%s%s%s%s",
                               each == verb->subcommands && !verb->usage ? "" : " | ", each->name, each->usage ? " " : "",
                               each->usage ? each->usage : "");
    if (optional && n < WEFT_USAGE_TEXT)
        snprintf(ret + n, WEFT_USAGE_TEXT - n, "]");
}

/* ---- help ---- */

/* The left column; what is too wide for it has a line of its own. */
static void put_left(FILE *to, const char *left) {
    if (strlen(left) <= OPTION_WIDTH)
        fprintf(to, "    %-*s ", OPTION_WIDTH, left);
    else
        fprintf(to, "    %s\n%*s", left, OPTION_COLUMN, "");
}

static void put_option_help(FILE *to, const weft_option *option, const char *right) {
    char left[80];
    char letter[8] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name, option->value ? " " : "",
             option->value ? option->value : "");
    put_left(to, left);
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
        put_option_help(to, option, option->help);
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

static void put_usage_line(FILE *to, const weft_verb *verb, const weft_subcommand *subcommand) {
    char usage[WEFT_USAGE_TEXT], text[WEFT_USAGE_TEXT + sizeof "[options] "];
    int n = fprintf(to, "\nusage: weft %s%s%s ", verb->name, subcommand ? " " : "", subcommand ? subcommand->name : "");
    weft__usage_text(verb, subcommand, usage);
    snprintf(text, sizeof text, "[options] %s", usage);
    weft__put_wrapped(to, text, (size_t) n - 1, 12);
    fputc('\n', to);
}

static void put_subcommands(FILE *to, const weft_verb *verb) {
    char name[WEFT_USAGE_TEXT];
    fprintf(to, "\nsubcommands (\"weft %s %s -h\" shows one alone):\n", verb->name, verb->subcommands->name);
    for (const weft_subcommand *each = verb->subcommands; each->name; each++) {
        snprintf(name, sizeof name, "%s%s%s", each->name, each->usage ? " " : "", each->usage ? each->usage : "");
        put_left(to, name);
        weft__put_wrapped(to, each->help, OPTION_COLUMN, OPTION_COLUMN);
        fputc('\n', to);
    }
}

static void put_about(FILE *to, const char *about) {
    if (!about)
        return;
    fputc('\n', to);
    weft__put_paragraphs(to, about);
}

/* subcommand NULL: the options of all. */
static void put_options(FILE *to, const weft_verb *verb, const weft_subcommand *subcommand) {
    const weft_option *tables[WEFT_OPTION_TABLES];
    char text[WEFT_OPTION_TEXT];
    fputs("\noptions:\n", to);
    weft__option_tables(verb, tables);
    for (size_t i = 0; tables[i]; i++)
        for (const weft_option *option = tables[i]; tables[i] != weft__connection_options && option->name; option++) {
            bool own = tables[i] == verb->options;
            if (weft__option_hidden(verb, tables[i], option) ||
                (own && subcommand && !weft__subcommand_takes(subcommand, option->name)))
                continue;
            if (own && !subcommand)
                weft__option_text(verb, option, text);
            else
                text_of_option(option, text, sizeof text);
            put_option_help(to, option, text);
        }
    if (verb->reaches)
        put_connection_names(to, verb);
}

void weft__help_verb(FILE *to, const weft_verb *verb) {
    fprintf(to, "weft %s: %s\n\n", verb->name, verb->help);
    for (const char *const *example = verb->examples; example && *example; example += 2)
        put_example(to, example[0], example[1]);
    put_usage_line(to, verb, NULL);
    if (verb->subcommands)
        put_subcommands(to, verb);
    put_about(to, verb->about);
    put_options(to, verb, NULL);
}

/* Does this command line run the subcommand? The usual one needs not be named. */
static bool shows_subcommand(const weft_verb *verb, const weft_subcommand *subcommand, const char *command) {
    char start[80];
    int n = snprintf(start, sizeof start, "weft %s %s", verb->name, subcommand->name);
    const char *at = strstr(command, start);
    if (at && (!at[n] || at[n] == ' '))
        return true;
    n = snprintf(start, sizeof start, "weft %s", verb->name);
    return verb->usual && strcmp(verb->usual, subcommand->name) == 0 && strncmp(command, start, (size_t) n) == 0 &&
           (!command[n] || strncmp(command + n, " -", 2) == 0);
}

void weft__help_subcommand(FILE *to, const weft_verb *verb, const weft_subcommand *subcommand) {
    fprintf(to, "weft %s %s: %s\n\n", verb->name, subcommand->name, subcommand->help);
    for (const char *const *example = verb->examples; example && *example; example += 2)
        if (shows_subcommand(verb, subcommand, example[0]))
            put_example(to, example[0], example[1]);
    put_usage_line(to, verb, subcommand);
    put_about(to, subcommand->about);
    put_options(to, verb, subcommand);
}

/* Pages of verbs. */
#include "man.h"

#include <ctype.h>
#include <string.h>

/* A dash is a minus where people copy from; a line must not begin like a request. */
void weft__man_text(FILE *to, const char *text) {
    bool begins = true;
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\''))
            fputs("\\&", to);
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else if (*text == '\'')
            fputs("\\(aq", to);
        else if (*text == '`')
            fputs("\\(ga", to);
        else if (*text == '^')
            fputs("\\(ha", to);
        else if (*text == '~')
            fputs("\\(ti", to);
        else
            fputc(*text, to);
        begins = *text == '\n';
    }
}

static void put_macro(FILE *to, const char *macro, const char *text) {
    fprintf(to, ".%s ", macro);
    for (; *text; text++)
        if (*text == '"')
            fputs("\\(dq", to);
        else if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else if (*text == '\'')
            fputs("\\(aq", to);
        else
            fputc(*text, to);
    fputc('\n', to);
}

void weft__man_title(FILE *to, const char *name, int section) {
    fprintf(to, ".TH ");
    for (; *name; name++)
        fputc(toupper((unsigned char) *name), to);
    fprintf(to, " %d \"\" \"weft %s\" \"Weft\"\n", section, weft_version());
}

static void man_put_name(FILE *to, const char *name, const char *help) {
    fputs(".SH NAME\n", to);
    weft__man_text(to, name);
    fputs(" \\- ", to);
    weft__man_text(to, help);
    fputc('\n', to);
}

/* ---- one verb ---- */

static void put_examples(FILE *to, const char *const *example) {
    fputs(".SH EXAMPLES\n", to);
    for (; example && *example; example += 2) {
        fputs(".PP\n.nf\n.RS 4\n", to);
        weft__man_text(to, example[0]);
        fputs("\n.RE\n.fi\n.RS 8\n", to);
        weft__man_text(to, example[1]);
        fputs("\n.RE\n", to);
    }
}

static void man_put_option(FILE *to, const weft_verb *verb, const weft_option *option) {
    char text[WEFT_OPTION_TEXT];
    fputs(".TP\n", to);
    if (option->letter)
        fprintf(to, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", to);
    weft__man_text(to, option->name);
    fputs("\\fR", to);
    if (option->value)
        fprintf(to, " \\fI%s\\fR", option->value);
    fputc('\n', to);
    weft__option_text(verb, option, text);
    weft__man_text(to, text);
    fputc('\n', to);
}

static void man_put_options(FILE *to, const weft_verb *verb) {
    const weft_option *tables[WEFT_OPTION_TABLES];
    fputs(".SH OPTIONS\n", to);
    weft__option_tables(verb, tables);
    for (size_t i = 0; tables[i]; i++)
        for (const weft_option *option = tables[i]; option->name; option++)
            if (!weft__option_hidden(verb, tables[i], option))
                man_put_option(to, verb, option);
}

static void man_put_subcommands(FILE *to, const weft_subcommand *each) {
    if (!each)
        return;
    fputs(".SH SUBCOMMANDS\n", to);
    for (; each->name; each++) {
        fprintf(to, ".TP\n\\fB%s\\fR ", each->name);
        weft__man_text(to, each->usage ? each->usage : "");
        fputc('\n', to);
        weft__man_text(to, each->help);
        fputc('\n', to);
    }
}

static const struct {
    int status;
    const char *means;
} statuses[] = {
    {WEFT_DONE, "done"},
    {WEFT_FAILED, "failure"},
    {WEFT_USAGE, "the command line was wrong"},
    {WEFT_UNREACHABLE, "the hub does not run, or the endpoint cannot be reached"},
    {WEFT_UNAUTHORISED, "not authorised: no token, or the wrong one"},
    {WEFT_NOT_FOUND, "not found"},
    {WEFT_BUSY, "busy, or the queue is full"},
    {WEFT_TOO_LATE, "no answer in time"},
    {WEFT_REFUSED, "the other side answered with another error"},
};

static void put_statuses(FILE *to) {
    fputs(".SH EXIT STATUS\n", to);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        fprintf(to, ".TP\n.B %d\n%s\n", statuses[i].status, statuses[i].means);
}

/* The lines of the help become paragraphs; an empty one begins another. */
static void man_put_about(FILE *to, const char *about) {
    while (*about) {
        size_t n = strcspn(about, "\n");
        char line[512];
        snprintf(line, sizeof line, "%.*s", (int) n, about);
        if (n == 0)
            fputs(".PP\n", to);
        else {
            weft__man_text(to, line);
            fputs(strstr(line, "  ") ? "\n.br\n" : "\n", to); /* columns stay columns */
        }
        about += n + (about[n] == '\n');
    }
}

void weft__man_verb_page(FILE *to, const weft_verb *verb) {
    char name[64], usage[WEFT_USAGE_TEXT];
    snprintf(name, sizeof name, "weft-%s", verb->name);
    weft__usage_text(verb, NULL, usage);
    weft__man_title(to, name, 1);
    man_put_name(to, name, verb->help);
    fputs(".SH SYNOPSIS\n", to);
    fprintf(to, "\\fBweft %s\\fR [options] ", verb->name);
    weft__man_text(to, usage);
    fputc('\n', to);
    put_examples(to, verb->examples);
    if (verb->about) {
        fputs(".SH DESCRIPTION\n", to);
        man_put_about(to, verb->about);
    }
    man_put_subcommands(to, verb->subcommands);
    man_put_options(to, verb);
    put_statuses(to);
    fputs(".SH SEE ALSO\n.BR weft (1),\n.BR weft\\-methods (7)\n", to);
}

/* ---- the program ---- */

static const char *const pieces[][2] = {
    {"WEFT_TOKEN", "the token to show, unless --token-file names one"},
    {"WEFT_DEBUG", "1: log every message on standard error, without tokens"},
    {"NO_COLOR", "anything: no colours"},
    {"XDG_CONFIG_HOME", "where the user's weft/config.json is; ~/.config otherwise"},
    {"XDG_STATE_HOME", "where weft/trust.json is, the record of what the user trusts; ~/.local/state otherwise"},
};
static const char *const files[][2] = {
    {".weft/daemon.sock", "the Unix socket of a hub; the nearest one from this folder upwards is meant"},
    {".weft/token", "what network clients must show"},
    {".weft/config.json", "the project's configuration"},
    {".weft/endpoint.json", "where the hub listens"},
    {".weft/weft.db", "the journal"},
    {".weft/daemon.log", "what a hub in the background says"},
    {"~/.local/state/weft/trust.json", "which projects are trusted: weft trust"},
};

static void put_pairs(FILE *to, const char *title, const char *const (*rows)[2], size_t count) {
    fprintf(to, ".SH %s\n", title);
    for (size_t i = 0; i < count; i++) {
        fputs(".TP\n", to);
        put_macro(to, "B", rows[i][0]);
        weft__man_text(to, rows[i][1]);
        fputc('\n', to);
    }
}

void weft__man_page(FILE *to) {
    weft__man_title(to, "weft", 1);
    man_put_name(to, "weft", "a hub for coding agents, and a client for any JSON-RPC 2.0 server");
    fputs(".SH SYNOPSIS\n\\fBweft\\fR \\fIVERB\\fR [options] [arguments]\n.SH DESCRIPTION\n"
          "\\fBweft serve\\fR turns a project folder into a hub for coding agents: command lines, browsers and programs "
          "submit\n"
          "tasks, watch them, and answer the questions of agents. The other verbs talk to it, or to any other JSON\\-RPC\n"
          "endpoint: unix:PATH tcp://H:P tls://H:P ws://H:P/PATH wss://... http://... https://... exec:COMMAND stdio:\n"
          ".PP\nResults go to standard output, everything else to standard error; \\fB\\-\\-json\\fR makes the result of "
          "every verb JSON.\n"
          ".SH VERBS\n",
          to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++) {
        fprintf(to, ".TP\n.BR weft\\-%s (1)\n", (*verb)->name);
        weft__man_text(to, (*verb)->help);
        fputc('\n', to);
    }
    put_statuses(to);
    put_pairs(to, "ENVIRONMENT", pieces, sizeof pieces / sizeof pieces[0]);
    put_pairs(to, "FILES", files, sizeof files / sizeof files[0]);
    fputs(".SH SEE ALSO\n.BR weft\\-methods (7)\n", to);
}

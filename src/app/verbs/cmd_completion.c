/* weft completion: scripts for bash, zsh and fish, made from the rows of the verbs. */
#include <string.h>

#include "app.h"
#include "failure.h"

typedef void writer(FILE *to);

/* Call each() for every option of a verb. */
static void for_options(FILE *to, const weft_verb *verb,
                        void (*each)(FILE *to, const weft_verb *verb, const weft_option *option)) {
    const weft_option *tables[WEFT_OPTION_TABLES];
    weft__option_tables(verb, tables);
    for (size_t i = 0; tables[i]; i++)
        for (const weft_option *option = tables[i]; option->name; option++)
            if (!weft__option_hidden(verb, tables[i], option))
                each(to, verb, option);
}

static bool wants_file(const weft_option *option) {
    return option->value && strcmp(option->value, "FILE") == 0;
}

/* Text between single quotes. */
static void put_quoted(FILE *to, const char *text) {
    fputc('\'', to);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", to);
        else
            fputc(*text, to);
    fputc('\'', to);
}

static void put_verbs(FILE *to) {
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++)
        fprintf(to, "%s%s", verb == weft__verbs ? "" : " ", (*verb)->name);
}

/* ---- what only the hub knows ---- */

/* Words of a verb that are followed by a name, and who knows the names. A shell asks when Tab is pressed. */
static const struct {
    const char *verb, *words;              /* NULL words: the verb itself */
    const char *command, *member, *begins; /* what the names begin with */
} names[] = {
    {"task", "get cancel watch", "task list --limit 100 --timeout 2s --json", "id", "task-"},
    {"answer", NULL, "answer --timeout 2s --json", "id", "question-"},
    {"agents", "use", "agents --timeout 2s --json", "name", ""},
};

static void bash_names(FILE *to) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fprintf(to, "    case \" ${COMP_WORDS[1]} ${COMP_WORDS[*]:2:COMP_CWORD-2} \" in\n    ");
        if (!names[i].words)
            fprintf(to, "*\" %s  \"*", names[i].verb);
        for (const char *word = names[i].words; word && *word; word += strcspn(word, " "), word += strspn(word, " "))
            fprintf(to, "%s*\" %s %.*s \"*", word == names[i].words ? "" : " | ", names[i].verb, (int) strcspn(word, " "),
                    word);
        /* The values of one member in a line of JSON, without a program that may not be there. */
        fprintf(to,
                ") words=$(\"${COMP_WORDS[0]}\" %s 2>/dev/null | tr ',{[' '\\n\\n\\n' | "
                "sed -n 's/^\"%s\":\"\\(%s[^\"]*\\)\".*/\\1/p') ;;\n    esac\n",
                names[i].command, names[i].member, names[i].begins);
    }
}

static void fish_names(FILE *to) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        fprintf(to, "complete -c weft -n '__fish_seen_subcommand_from %s", names[i].verb);
        if (names[i].words)
            fprintf(to, "; and __fish_seen_subcommand_from %s", names[i].words);
        fputs("' -f -a \"(", to);
        fprintf(to, "weft %s 2>/dev/null | string match -rag '\\\"%s\\\":\\\"(%s[^\\\"]*)\\\"'", names[i].command,
                names[i].member, names[i].begins);
        fputs(")\"\n", to);
    }
}

/* ---- bash ---- */

static void bash_option(FILE *to, const weft_verb *verb, const weft_option *option) {
    (void) verb;
    fprintf(to, "--%s ", option->name);
    if (option->letter)
        fprintf(to, "-%c ", option->letter);
}

static void bash_file_option(FILE *to, const weft_verb *verb, const weft_option *option) {
    (void) verb;
    if (wants_file(option))
        fprintf(to, "--%s ", option->name);
}

static void bash_choices(FILE *to, const weft_verb *verb, const weft_option *option) {
    (void) verb;
    if (option->choices)
        fprintf(to, "        [ \"$before\" = --%s ] && words='%s'\n", option->name, option->choices);
}

static void bash_verb(FILE *to, const weft_verb *verb) {
    fprintf(to, "    %s)\n        options='", verb->name);
    for_options(to, verb, bash_option);
    fputs("'\n        files='", to);
    for_options(to, verb, bash_file_option);
    fputs("'\n        words='", to);
    if (verb->words)
        fputs(verb->words, to);
    if (strcmp(verb->name, "help") == 0 || strcmp(verb->name, "man") == 0)
        put_verbs(to);
    fputs("'\n", to);
    for_options(to, verb, bash_choices);
    fputs("        ;;\n", to);
}

static void write_bash(FILE *to) {
    fputs("# weft completion for bash: source <(weft completion bash)\n"
          "_weft() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= options= files=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          to);
    put_verbs(to);
    fputs("' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++)
        bash_verb(to, *verb);
    fputs("    esac\n", to);
    bash_names(to);
    fputs("    case $word in -*) words=$options ;; esac\n"
          "    case \" $files \" in *\" $before \"*) COMPREPLY=($(compgen -f -- \"$word\")); return ;; esac\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "}\n"
          "complete -o default -F _weft weft\n",
          to);
}

/* ---- zsh ---- */

/* "--name[help]:VALUE:what to offer", as _arguments wants it. */
static void zsh_option(FILE *to, const weft_verb *verb, const weft_option *option) {
    char spec[256];
    (void) verb;
    int n =
        snprintf(spec, sizeof spec, "%s--%s[%s]", option->kind == WEFT_OPTION_list ? "*" : "", option->name, option->help);
    if (option->choices)
        snprintf(spec + n, sizeof spec - (size_t) n, ":%s:(%s)", option->value, option->choices);
    else if (option->value)
        snprintf(spec + n, sizeof spec - (size_t) n, ":%s:%s", option->value, wants_file(option) ? "_files" : " ");
    fputs("            ", to);
    put_quoted(to, spec);
    fputs(" \\\n", to);
}

static void write_zsh(FILE *to) {
    fputs("#compdef weft\n# weft completion for zsh: weft completion zsh > \"${fpath[1]}/_weft\"\n"
          "_weft() {\n    local -a verbs\n    verbs=(\n",
          to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++) {
        char row[256];
        snprintf(row, sizeof row, "%s:%s", (*verb)->name, (*verb)->help);
        fputs("        ", to);
        put_quoted(to, row);
        fputc('\n', to);
    }
    fputs("    )\n    if (( CURRENT == 2 )); then\n        _describe verb verbs\n        return\n    fi\n"
          "    local verb=${words[2]}\n    shift words\n    (( CURRENT-- ))\n    case $verb in\n",
          to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++) {
        fprintf(to, "    %s)\n        _arguments \\\n", (*verb)->name);
        for_options(to, *verb, zsh_option);
        if ((*verb)->words)
            fprintf(to, "            '1: :(%s)' \\\n", (*verb)->words);
        fputs("            '*: :_files' ;;\n", to);
    }
    fputs("    esac\n}\nif [ \"$funcstack[1]\" = _weft ]; then\n    _weft \"$@\"\nelse\n    compdef _weft weft\nfi\n", to);
}

/* ---- fish ---- */

static void fish_option(FILE *to, const weft_verb *verb, const weft_option *option) {
    fprintf(to, "complete -c weft -n '__fish_seen_subcommand_from %s' -l %s ", verb->name, option->name);
    if (option->letter)
        fprintf(to, "-s %c ", option->letter);
    if (option->choices)
        fprintf(to, "-x -a '%s' ", option->choices);
    else if (option->value)
        fputs(wants_file(option) ? "-r -F " : "-x ", to);
    fputs("-d ", to);
    put_quoted(to, option->help);
    fputc('\n', to);
}

static void write_fish(FILE *to) {
    fputs("# weft completion for fish: weft completion fish | source\n", to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++) {
        fprintf(to, "complete -c weft -n __fish_use_subcommand -f -a %s -d ", (*verb)->name);
        put_quoted(to, (*verb)->help);
        fputc('\n', to);
        for_options(to, *verb, fish_option);
        if ((*verb)->words)
            fprintf(to, "complete -c weft -n '__fish_seen_subcommand_from %s' -f -a '%s'\n", (*verb)->name, (*verb)->words);
    }
    fish_names(to);
}

static weft_exit run(weft_app *app) {
    static const struct {
        const char *name;
        writer *write;
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    if (app->arg_count != 1)
        return weft__misused(app, "which shell: bash, zsh or fish?");
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(shells[i].name, app->args[0]) == 0) {
            shells[i].write(app->out.file);
            return WEFT_DONE;
        }
    return weft__misused(app, "\"%s\" is none of bash, zsh and fish", app->args[0]);
}

static const char *const examples[] = {
    "source <(weft completion bash)",
    "in ~/.bashrc",
    "weft completion zsh > \"${fpath[1]}/_weft\"",
    "once",
    "weft completion fish | source",
    "in ~/.config/fish/config.fish",
    NULL,
};

const weft_verb weft__completion_verb = {
    .name = "completion",
    .help = "print the completion script of a shell",
    .begins = "this program",
    .usage = "bash|zsh|fish",
    .words = "bash zsh fish",
    .examples = examples,
    .run = run,
};

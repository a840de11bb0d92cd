/* weft completion: scripts for bash, zsh and fish, made from the rows of the verbs. */
#include <string.h>

#include "app.h"
#include "config.h"
#include "failure.h"
#include "hub_call.h"
#include "subcommand.h"
#include "text_output.h"

/* Nobody presses Tab and waits for longer. */
#define TAB_MS 2000

typedef void writer(FILE *to);

/* Call each() for every option of a verb. */
/* subcommand NULL: the options of all. */
static void for_options(FILE *to, const weft_verb *verb, const weft_subcommand *subcommand,
                        void (*each)(FILE *to, const weft_verb *verb, const weft_option *option)) {
    const weft_option *tables[WEFT_OPTION_TABLES];
    weft__option_tables(verb, tables);
    for (size_t i = 0; tables[i]; i++)
        for (const weft_option *option = tables[i]; option->name; option++) {
            bool taken = !subcommand || tables[i] != verb->options || weft__subcommand_takes(subcommand, option->name);
            if (taken && !weft__option_hidden(verb, tables[i], option))
                each(to, verb, option);
        }
}

static bool wants_file(const weft_option *option) {
    return option->value && strcmp(option->value, "FILE") == 0;
}

/* Text between single quotes. */
static void put_shell_quoted(FILE *to, const char *text) {
    fputc('\'', to);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", to);
        else
            fputc(*text, to);
    fputc('\'', to);
}

static bool has_first_words(const weft_verb *verb) {
    return verb->words || verb->subcommands;
}

/* What may follow the verb's name, separated by blanks. */
static void put_first_words(FILE *to, const weft_verb *verb) {
    if (verb->words)
        fputs(verb->words, to);
    for (const weft_subcommand *each = verb->subcommands; each && each->name; each++)
        fprintf(to, "%s%s", each == verb->subcommands ? "" : " ", each->name);
}

static void put_verbs(FILE *to) {
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++)
        fprintf(to, "%s%s", verb == weft__verbs ? "" : " ", (*verb)->name);
}

/* ---- what only the hub knows ---- */

/* Verbs and words that are followed by a name, and who knows the names. A shell asks when Tab is pressed: "weft completion
 * names WHAT" prints them, one on each line, and nothing where nobody knows. */
static const struct {
    const char *verb, *words; /* NULL words: the verb itself */
    const char *what;
} name_rows[] = {
    {"task", "get cancel watch diff undo review merge discard open retry", "tasks"},
    {"answer", NULL, "questions"},
    {"approvals", "revoke", "approvals"},
    {"session", "show prompt open set close resume delete", "sessions"},
    {"agents", "use install logout", "agents"},
    {"plan", "show run cancel", "plans"},
    {"token", "revoke", "tokens"},
    {"worktree", "prune", "worktrees"},
    {"config", "get set unset", "keys"},
    {"help", NULL, "verbs"},
    {"man", NULL, "verbs"},
    {"describe", NULL, "methods"},
    {"call", NULL, "methods"},
    {"notify", NULL, "methods"},
};

/* Options whose value is such a name. */
static const struct {
    const char *option, *what;
} named_options[] = {
    {"agent", "agents"},
    {"session", "sessions"},
    {"task", "tasks"},
};

/* Where the names come from: a method, its params, the list in its answer, the name in an item of that. */
static const struct {
    const char *what, *method, *params, *list, *member; /* NULL list: the answer is it */
} name_sources[] = {
    {"tasks", "task.list", "{\"limit\":100}", NULL, "id"},
    {"questions", "question.list", "{}", "questions", "id"},
    {"approvals", "approval.list", "{}", "approvals", "id"},
    {"sessions", "session.list", "{\"limit\":100}", "sessions", "id"},
    {"agents", "agent.list", "{}", "agents", "name"},
    {"plans", "plan.list", "{}", "plans", "id"},
    {"tokens", "token.list", "{}", "tokens", "name"},
    {"worktrees", "worktree.list", "{}", "worktrees", "name"},
    {"methods", "rpc.discover", "{}", "methods", "name"},
};

static const char *what_of_option(const weft_option *option) {
    for (size_t i = 0; i < sizeof named_options / sizeof named_options[0]; i++)
        if (option->kind == WEFT_OPTION_text && strcmp(named_options[i].option, option->name) == 0)
            return named_options[i].what;
    return NULL;
}

/* Known without a hub. */
static bool put_own_names(FILE *to, const char *what) {
    bool keys = strcmp(what, "keys") == 0, verbs = strcmp(what, "verbs") == 0;
    for (const weft_key *key = weft__keys; keys && key->path; key++)
        fprintf(to, "%s\n", key->path);
    for (const weft_verb *const *verb = weft__verbs; verbs && *verb; verb++)
        fprintf(to, "%s\n", (*verb)->name);
    return keys || verbs;
}

/* A name is one word of a shell; what is none is not offered. */
static void put_listed_names(FILE *to, const weft_json *list, const char *member) {
    for (weft_iter it = weft_iterate(list); weft_next(&it);) {
        const char *name = weft_get_str(&it.value, member, "");
        if (*name && !name[strcspn(name, " \n\t'\"\\$`")])
            fprintf(to, "%s\n", name);
    }
}

/* Somebody is pressing Tab: what goes wrong is not said, and nobody waits for long. */
static weft_exit put_known_names(const weft_app *app, const char *what) {
    FILE *nowhere = put_own_names(app->out.file, what) ? NULL : fopen("/dev/null", "we");
    weft_app quiet = *app;
    if (!nowhere)
        return WEFT_DONE;
    quiet.err = (weft_screen){.file = nowhere};
    quiet.common.json = false;
    quiet.reach.timeout_ms = TAB_MS;
    for (size_t i = 0; i < sizeof name_sources / sizeof name_sources[0]; i++) {
        WEFT_ANSWER answer = {0};
        const char *params = name_sources[i].params, *list = name_sources[i].list;
        if (strcmp(what, name_sources[i].what) != 0 ||
            weft__hub_call_once(&quiet, NULL, name_sources[i].method, weft_raw(params, strlen(params)), &answer))
            continue;
        weft_json names = list ? weft_get(answer.result, list) : *answer.result;
        put_listed_names(app->out.file, &names, name_sources[i].member);
    }
    fclose(nowhere);
    return WEFT_DONE;
}

static void bash_names(FILE *to) {
    for (size_t i = 0; i < sizeof name_rows / sizeof name_rows[0]; i++) {
        if (!name_rows[i].words) {
            fprintf(to, "    [ \"${COMP_WORDS[1]}\" = %s ] && [ \"$COMP_CWORD\" -eq 2 ] && names=%s\n", name_rows[i].verb,
                    name_rows[i].what);
            continue;
        }
        fprintf(to,
                "    if [ \"${COMP_WORDS[1]}\" = %s ] && [ \"$COMP_CWORD\" -ge 3 ]; then\n        case ${COMP_WORDS[2]} in ",
                name_rows[i].verb);
        for (const char *word = name_rows[i].words; *word; word += strspn(word, " ")) {
            size_t len = strcspn(word, " ");
            fprintf(to, "%s%.*s", word == name_rows[i].words ? "" : " | ", (int) len, word);
            word += len;
        }
        fprintf(to, ") names=%s ;; esac\n    fi\n", name_rows[i].what);
    }
}

/* The words of a verb that are followed by a name, as zsh's and fish's functions want them. */
static void zsh_names(FILE *to, const weft_verb *verb) {
    for (size_t i = 0; i < sizeof name_rows / sizeof name_rows[0]; i++) {
        if (strcmp(name_rows[i].verb, verb->name) != 0)
            continue;
        if (!name_rows[i].words) {
            fprintf(to, "            '1: :_weft_names %s' \\\n", name_rows[i].what);
            continue;
        }
        fprintf(to, "            '2: :_weft_names_behind \"%s\" %s' \\\n", name_rows[i].words, name_rows[i].what);
    }
}

static void fish_names(FILE *to) {
    for (size_t i = 0; i < sizeof name_rows / sizeof name_rows[0]; i++) {
        fprintf(to, "complete -c weft -n '__fish_seen_subcommand_from %s", name_rows[i].verb);
        if (name_rows[i].words)
            fprintf(to, "; and __fish_seen_subcommand_from %s", name_rows[i].words);
        fprintf(to, "' -f -a '(weft completion names %s 2>/dev/null)'\n", name_rows[i].what);
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
    if (what_of_option(option))
        fprintf(to, "        [ \"$before\" = --%s ] && option_names=%s\n", option->name, what_of_option(option));
}

static void bash_verb(FILE *to, const weft_verb *verb) {
    fprintf(to, "    %s)\n        options='", verb->name);
    for_options(to, verb, NULL, bash_option);
    fputs("'\n", to);
    if (verb->subcommands)
        fputs("        case ${COMP_WORDS[2]} in\n", to);
    for (const weft_subcommand *each = verb->subcommands; each && each->name; each++) {
        fprintf(to, "        %s) options='", each->name);
        for_options(to, verb, each, bash_option);
        fputs("' ;;\n", to);
    }
    fputs(verb->subcommands ? "        esac\n        files='" : "        files='", to);
    for_options(to, verb, NULL, bash_file_option);
    fputs("'\n        words='", to);
    put_first_words(to, verb);
    if (strcmp(verb->name, "help") == 0 || strcmp(verb->name, "man") == 0)
        put_verbs(to);
    fputs("'\n", to);
    for_options(to, verb, NULL, bash_choices);
    fputs("        ;;\n", to);
}

static void write_bash(FILE *to) {
    fputs("# weft completion for bash: source <(weft completion bash)\n"
          "_weft() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= options= files= names= "
          "option_names=\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W '",
          to);
    put_verbs(to);
    fputs("' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n", to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++)
        bash_verb(to, *verb);
    fputs("    esac\n", to);
    bash_names(to);
    fputs("    names=${option_names:-$names}\n"
          "    [ -n \"$names\" ] && words=$(\"${COMP_WORDS[0]}\" completion names \"$names\" 2>/dev/null)\n"
          "    case $word in -*) words=$options ;; @*) COMPREPLY=($(compgen -P @ -f -- \"${word#@}\")); return ;; esac\n"
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
    else if (what_of_option(option))
        snprintf(spec + n, sizeof spec - (size_t) n, ":%s:_weft_names %s", option->value, what_of_option(option));
    else if (option->value)
        snprintf(spec + n, sizeof spec - (size_t) n, ":%s:%s", option->value, wants_file(option) ? "_files" : " ");
    fputs("            ", to);
    put_shell_quoted(to, spec);
    fputs(" \\\n", to);
}

static void zsh_arguments(FILE *to, const weft_verb *verb, const weft_subcommand *subcommand) {
    fputs("        _arguments \\\n", to);
    for_options(to, verb, subcommand, zsh_option);
    if (has_first_words(verb)) {
        fputs("            '1: :(", to);
        put_first_words(to, verb);
        fputs(")' \\\n", to);
    }
    zsh_names(to, verb);
    fputs("            '*: :_files' ;;\n", to);
}

static void zsh_verb(FILE *to, const weft_verb *verb) {
    fprintf(to, "    %s)\n", verb->name);
    if (verb->subcommands)
        fputs("        case ${words[2]} in\n", to);
    for (const weft_subcommand *each = verb->subcommands; each && each->name; each++) {
        fprintf(to, "        %s)\n", each->name);
        zsh_arguments(to, verb, each);
    }
    if (verb->subcommands)
        fputs("        *)\n", to);
    zsh_arguments(to, verb, NULL);
    if (verb->subcommands)
        fputs("        esac ;;\n", to);
}

static void write_zsh(FILE *to) {
    fputs("#compdef weft\n# weft completion for zsh: weft completion zsh > \"${fpath[1]}/_weft\"\n"
          "_weft_names() {\n    local -a names\n    names=(${(f)\"$(weft completion names ${@[-1]} 2>/dev/null)\"})\n"
          "    compadd -a names\n}\n"
          "_weft_names_behind() {\n    [[ \" ${@[-2]} \" == *\" ${words[2]} \"* ]] && _weft_names ${@[-1]}\n}\n"
          "_weft() {\n    local -a verbs\n    verbs=(\n",
          to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++) {
        char row[256];
        snprintf(row, sizeof row, "%s:%s", (*verb)->name, (*verb)->help);
        fputs("        ", to);
        put_shell_quoted(to, row);
        fputc('\n', to);
    }
    fputs("    )\n    if (( CURRENT == 2 )); then\n        _describe verb verbs\n        return\n    fi\n"
          "    local verb=${words[2]}\n    shift words\n    (( CURRENT-- ))\n    case $verb in\n",
          to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++)
        zsh_verb(to, *verb);
    fputs("    esac\n}\nif [ \"$funcstack[1]\" = _weft ]; then\n    "
          "_weft \"$@\"\nelse\n    compdef _weft weft\nfi\n",
          to);
}

/* ---- fish ---- */

static bool is_own_option(const weft_verb *verb, const weft_option *option) {
    for (const weft_option *own = verb->options; own && own->name; own++)
        if (own == option)
            return true;
    return false;
}

/* Behind a subcommand that does not take it, it is not offered. */
static void fish_other_subcommands(FILE *to, const weft_verb *verb, const weft_option *option) {
    const char *before = "; and not __fish_seen_subcommand_from";
    for (const weft_subcommand *each = verb->subcommands; each && each->name && is_own_option(verb, option); each++)
        if (!weft__subcommand_takes(each, option->name)) {
            fprintf(to, "%s %s", before, each->name);
            before = "";
        }
}

static void fish_option(FILE *to, const weft_verb *verb, const weft_option *option) {
    fprintf(to, "complete -c weft -n '__fish_seen_subcommand_from %s", verb->name);
    fish_other_subcommands(to, verb, option);
    fprintf(to, "' -l %s ", option->name);
    if (option->letter)
        fprintf(to, "-s %c ", option->letter);
    if (option->choices)
        fprintf(to, "-x -a '%s' ", option->choices);
    else if (what_of_option(option))
        fprintf(to, "-x -a '(weft completion names %s 2>/dev/null)' ", what_of_option(option));
    else if (option->value)
        fputs(wants_file(option) ? "-r -F " : "-x ", to);
    fputs("-d ", to);
    put_shell_quoted(to, option->help);
    fputc('\n', to);
}

static void write_fish(FILE *to) {
    fputs("# weft completion for fish: weft completion fish | source\n", to);
    for (const weft_verb *const *verb = weft__verbs; *verb; verb++) {
        fprintf(to, "complete -c weft -n __fish_use_subcommand -f -a %s -d ", (*verb)->name);
        put_shell_quoted(to, (*verb)->help);
        fputc('\n', to);
        for_options(to, *verb, NULL, fish_option);
        if (!has_first_words(*verb))
            continue;
        fprintf(to,
                "complete -c weft -n '__fish_seen_subcommand_from %s; and test (count (commandline -opc)) -eq 2' -f -a '",
                (*verb)->name);
        put_first_words(to, *verb);
        fputs("'\n", to);
    }
    fish_names(to);
}

static weft_exit print_completion(weft_app *app) {
    static const struct {
        const char *name;
        writer *write;
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    if (app->arg_count == 2 && strcmp(app->args[0], "names") == 0)
        return put_known_names(app, app->args[1]);
    if (app->arg_count != 1)
        return weft__misused(app, "which shell: bash, zsh or fish?");
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(shells[i].name, app->args[0]) == 0) {
            shells[i].write(app->out.file);
            return WEFT_DONE;
        }
    return weft__misused(app, "unknown shell \"%s\"; there are scripts for bash, zsh and fish", app->args[0]);
}

static weft_exit run_completion(weft_app *app) {
    weft_text_output output;
    weft__text_output_begin(app, &output);
    return weft__text_output_end(app, &output, print_completion(app));
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
    .usage = "bash|zsh|fish",
    .words = "bash zsh fish",
    .examples = examples,
    .run = run_completion,
};

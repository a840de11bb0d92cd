/* terminal/create: which program, with what around it. Nothing is started here. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "beneath.h"
#include "terminals.h"

/* More than any command line has; the kernel says what really is too much. */
#define MOST_ARGS 4096
#define MOST_ENV 256

/* What a program finds that runs for an agent: no colours and no pager, because what it prints is read as text and nobody
 * turns pages. The agent may say otherwise. */
static const char *const defaults[] = {"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", NULL};

static int refuse_terminal_order(weft_terminal_order *order, const char *why) {
    snprintf(order->why, sizeof order->why, "%s", why);
    return -EINVAL;
}

static bool is_absent(const weft_json *value) {
    return !value->text || weft_typeof(value) == WEFT_NULL;
}

/* ---- the command ---- */

/* Agents put a line for a shell into "command" and leave "args" away. A name that only a shell understands is given to one,
 * unless there is a file that is called so. */
static bool is_shell_line(const char *command) {
    return strpbrk(command, " \t\n|&;<>()$`\\\"'*?[#~=%{") && !(*command == '/' && access(command, X_OK) == 0);
}

static int take_args(const weft_json *args, weft_terminal_order *ret, size_t at) {
    for (weft_iter it = weft_iterate(args); weft_next(&it); at++) {
        ret->argv[at] = weft_str_of(&it.value, NULL);
        if (!ret->argv[at])
            return refuse_terminal_order(ret, "\"args\" must be strings without NUL");
    }
    return 0;
}

static void show_word(weft_terminal_order *order, const char *word) {
    size_t len = strlen(order->command), room = sizeof order->command - len;
    int n = snprintf(order->command + len, room, "%s%s", len ? " " : "", word);
    if (n < (int) room)
        return;
    static const char cut[] = "\xE2\x80\xA6"; /* an ellipsis */
    len = weft__utf8_fit(order->command, sizeof order->command - 1, sizeof order->command - sizeof cut);
    memcpy(order->command + len, cut, sizeof cut);
}

/* For people: without quotes, and cut where it is long. */
static void show_command(weft_terminal_order *order, const char *command, size_t args) {
    show_word(order, command);
    for (size_t i = 1; i <= args && strlen(order->command) < sizeof order->command - WEFT_UTF8_MAX - 1; i++)
        show_word(order, order->argv[i]);
}

static int take_terminal_command(const weft_terminals_opts *set, const weft_json *params, weft_terminal_order *ret) {
    const char *command = weft_get_str(params, "command", NULL);
    weft_json args = weft_get(params, "args");
    if (!command || !*command)
        return refuse_terminal_order(ret, "\"command\" must be the name of a program");
    if (!is_absent(&args) && weft_typeof(&args) != WEFT_ARRAY)
        return refuse_terminal_order(ret, "\"args\" must be an array of strings");
    size_t count = is_absent(&args) ? 0 : weft_count(&args);
    if (count > MOST_ARGS)
        return refuse_terminal_order(ret, "There are too many \"args\"");
    ret->argv = weft__zalloc(set->alloc, (count + 4) * sizeof *ret->argv);
    if (!ret->argv)
        return -ENOMEM;
    bool shell = !count && is_shell_line(command);
    ret->argv[0] = shell ? "/bin/sh" : command;
    if (shell) {
        ret->argv[1] = "-c";
        ret->argv[2] = command;
    }
    int r = count ? take_args(&args, ret, 1) : 0;
    if (r >= 0)
        show_command(ret, command, count);
    return r;
}

/* ---- the environment ---- */

static bool same_variable(const char *a, const char *b) {
    size_t name = strcspn(a, "=") + 1;
    return strncmp(a, b, name) == 0;
}

/* Unless it is there. */
static size_t add_variable(const char **list, size_t count, const char *variable) {
    for (size_t i = 0; i < count; i++)
        if (same_variable(list[i], variable))
            return count;
    list[count] = variable;
    return count + 1;
}

static int write_variable(const weft_json *one, const weft_alloc *alloc, weft_terminal_order *ret) {
    const char *name = weft_get_str(one, "name", NULL), *value = weft_get_str(one, "value", NULL);
    if (!name || !*name || strchr(name, '=') || !value)
        return refuse_terminal_order(ret, "\"env\" must be {name, value}, without \"=\" in a name");
    int r = weft__buf_put(&ret->text, alloc, name, strlen(name));
    if (r >= 0)
        r = weft__buf_put(&ret->text, alloc, "=", 1);
    return r < 0 ? r : weft__buf_put(&ret->text, alloc, value, strlen(value) + 1);
}

static size_t list_length(const char *const *list) {
    size_t count = 0;
    while (list && list[count])
        count++;
    return count;
}

/* The agent's words come first, and of those that it says twice the last. */
static int list_env(const weft_terminals_opts *set, weft_terminal_order *ret, size_t said) {
    size_t own = list_length(set->env), count = 0;
    const char **all = weft__zalloc(set->alloc, (said + 1) * sizeof *all), *text = weft__buf_head(&ret->text);
    ret->env = weft__zalloc(set->alloc, (said + own + sizeof defaults / sizeof *defaults) * sizeof *ret->env);
    for (size_t i = 0; all && i < said; i++, text += strlen(text) + 1)
        all[i] = text;
    for (size_t i = said; all && ret->env && i-- > 0;)
        count = add_variable(ret->env, count, all[i]);
    for (size_t i = 0; ret->env && i < own; i++)
        count = add_variable(ret->env, count, set->env[i]);
    for (size_t i = 0; ret->env && defaults[i]; i++)
        count = add_variable(ret->env, count, defaults[i]);
    int r = all && ret->env ? 0 : -ENOMEM;
    weft__free(set->alloc, all);
    return r;
}

static int take_env(const weft_terminals_opts *set, const weft_json *params, weft_terminal_order *ret) {
    weft_json env = weft_get(params, "env");
    size_t said = 0;
    int r = 0;
    if (!is_absent(&env) && (weft_typeof(&env) != WEFT_ARRAY || weft_count(&env) > MOST_ENV))
        return refuse_terminal_order(ret, "\"env\" must be an array of at most 256 variables");
    if (!is_absent(&env))
        for (weft_iter it = weft_iterate(&env); r >= 0 && weft_next(&it); said++)
            r = write_variable(&it.value, set->alloc, ret);
    return r < 0 ? r : list_env(set, ret, said);
}

/* ---- the folder ---- */

static int refuse_folder(weft_terminal_order *order, int r) {
    return refuse_terminal_order(order, r == -ENOENT || r == -ENOTDIR ? "There is no such folder as \"cwd\" says"
                                        : r == -EACCES                ? "\"cwd\" is a folder that is closed"
                                                                      : "\"cwd\" must be in the folder of the session");
}

static int take_terminal_folder(const weft_terminals_opts *set, const weft_json *params, weft_terminal_order *ret) {
    weft_json cwd = weft_get(params, "cwd");
    const char *said = weft_str_of(&cwd, NULL);
    char found[WEFT_BENEATH_PATH] = "";
    if (!is_absent(&cwd) && (!said || *said != '/'))
        return refuse_terminal_order(ret, "\"cwd\" must be an absolute path");
    int r = said ? weft__beneath_folder(set->root, said, true, found) : 0;
    if (r < 0)
        return r == -ENOMEM ? r : refuse_folder(ret, r);
    int n = snprintf(ret->folder, sizeof ret->folder, "%s%s%s", set->root, *found ? "/" : "", found);
    return n < (int) sizeof ret->folder ? 0 : refuse_terminal_order(ret, "\"cwd\" is too long");
}

int weft__terminal_order(const weft_terminals_opts *set, const weft_json *params, weft_terminal_order *ret,
                         weft_terminal_opts *opts) {
    weft_json limit = weft_get(params, "outputByteLimit");
    int64_t bytes = weft_int_of(&limit, -1);
    *ret = (weft_terminal_order){.argv = NULL};
    int r = take_terminal_command(set, params, ret);
    if (r >= 0)
        r = take_env(set, params, ret);
    if (r >= 0)
        r = take_terminal_folder(set, params, ret);
    if (r < 0)
        return r;
    opts->argv = ret->argv;
    opts->env = ret->env;
    opts->folder = ret->folder;
    opts->limit = bytes < 0 || (uint64_t) bytes > WEFT_TERMINAL_OUTPUT ? WEFT_TERMINAL_OUTPUT : (size_t) bytes;
    return 0;
}

void weft__terminal_order_done(weft_terminal_order *order, const weft_alloc *alloc) {
    weft__free(alloc, order->argv);
    weft__free(alloc, order->env);
    weft__buf_done(&order->text, alloc);
}

/* The command line of one run: templates filled in. */
#include "cli_argv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "texts.h"
#include "visible.h"

#define PROMPT "{prompt}"
#define AGENT "{agent}"

static bool is_name_in_list(const char *const *list, const char *name) {
    for (; *list; list++)
        if (strstr(*list, name))
            return true;
    return false;
}

static size_t count_name(const char *text, const char *name) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, name)); at += strlen(name))
        count++;
    return count;
}

/* The template with every name in it replaced; what is put in is not looked at again. NULL: no memory. */
static const char *fill_template(weft_arena *arena, const char *template, const char *name, const char *value) {
    size_t value_len = strlen(value), count = count_name(template, name);
    if (!count)
        value_len = 0;
    char *text = weft__arena_alloc(arena, strlen(template) + count * value_len + 1), *to = text;
    const char *at;
    for (; text && (at = strstr(template, name)); template = at + strlen(name)) {
        to = mempcpy(to, template, (size_t) (at - template));
        to = mempcpy(to, value, value_len);
    }
    if (text)
        memcpy(to, template, strlen(template) + 1);
    return text;
}

/* ---- the prompt ---- */

/* A control character other than the white space of a text: arguments are shown by what lists processes, and by programs
 * that print what they were called with. */
static bool steers_terminal(unsigned code) {
    return (code < 0x20 && code != '\t' && code != '\n' && code != '\r') || (code >= 0x7f && code < 0xa0);
}

/* The prompt with U+FFFD in the place of each. Most have none, and are as they were. NULL: no memory. */
static const char *clean_prompt(weft_arena *arena, const char *prompt) {
    static const char sign[] = "\xef\xbf\xbd";
    size_t len = strlen(prompt), size = 1, found = 0, n;
    unsigned code;
    for (size_t at = 0; at < len; at += n) {
        n = weft__code_point(prompt + at, len - at, &code);
        found += steers_terminal(code);
        size += steers_terminal(code) ? sizeof sign - 1 : n;
    }
    char *text = found ? weft__arena_alloc(arena, size) : NULL, *to = text;
    if (!text)
        return found ? NULL : prompt;
    for (size_t at = 0; at < len; at += n) {
        n = weft__code_point(prompt + at, len - at, &code);
        to = steers_terminal(code) ? mempcpy(to, sign, sizeof sign - 1) : mempcpy(to, prompt + at, n);
    }
    *to = '\0';
    return text;
}

/* One that is a whole argument must not look like an option. Agents do not mind a blank before it. */
static const char *prompt_argument(weft_arena *arena, const char *prompt) {
    return *prompt == '-' ? fill_template(arena, " " PROMPT, PROMPT, prompt) : prompt;
}

static const char *prompt_arg(weft_arena *arena, const char *template, const char *prompt) {
    const char *value = *template == '{' ? prompt_argument(arena, prompt) : prompt;
    return value ? fill_template(arena, template, PROMPT, value) : NULL;
}

/* Arguments with the prompt in them. Where it goes to stdin instead, one that is nothing but the prompt is left out. */
static int put_agent_args(weft_cli_argv *self, const char **list, size_t *count, const weft_run_spec *spec,
                          const char *prompt) {
    for (const char *const *arg = spec->agent->argv; *arg; arg++) {
        if (self->on_stdin && strcmp(*arg, PROMPT) == 0)
            continue;
        list[*count] = prompt_arg(&self->arena, *arg, prompt);
        if (!list[(*count)++])
            return -ENOMEM;
    }
    return 0;
}

static int put_persona(weft_cli_argv *self, const char **list, size_t *count, const weft_run_spec *spec) {
    for (const char *const *arg = spec->agent->persona_argv; spec->persona && *arg; arg++) {
        list[*count] = fill_template(&self->arena, *arg, AGENT, spec->persona);
        if (!list[(*count)++])
            return -ENOMEM;
    }
    return 0;
}

static int make_argv(weft_cli_argv *self, const weft_run_spec *spec) {
    const weft_agent *agent = spec->agent;
    size_t most = weft__texts_count(agent->argv) + weft__texts_count(agent->persona_argv) + 2, count = 0;
    const char **list = weft__arena_alloc(&self->arena, most * sizeof *list);
    const char *prompt = clean_prompt(&self->arena, spec->prompt);
    if (!list || !prompt)
        return -ENOMEM;
    self->on_stdin = agent->prompt_on_stdin || strlen(prompt) > WEFT_CLI_PROMPT;
    if (self->on_stdin)
        prompt = "";
    int r = put_agent_args(self, list, &count, spec, prompt);
    if (r == 0)
        r = put_persona(self, list, &count, spec);
    if (r == 0 && !self->on_stdin && !is_name_in_list(agent->argv, PROMPT)) {
        list[count] = prompt_argument(&self->arena, prompt);
        r = list[count++] ? 0 : -ENOMEM;
    }
    list[count] = NULL;
    self->argv = list;
    return r;
}

static int make_env(weft_cli_argv *self, const weft_run_spec *spec) {
    size_t count = weft__texts_count(spec->agent->env);
    const struct {
        const char *template, *value;
    } ours[] = {{"WEFT_TASK_ID={}", spec->task ? spec->task : ""},
                {"TRACEPARENT={}", spec->traceparent},
                {"TRACESTATE={}", spec->tracestate}};
    const char **list = weft__arena_alloc(&self->arena, (count + 4) * sizeof *list);
    if (!list)
        return -ENOMEM;
    if (count)
        memcpy(list, spec->agent->env, count * sizeof *list);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (ours[i].value && !(list[count++] = fill_template(&self->arena, ours[i].template, "{}", ours[i].value)))
            return -ENOMEM;
    list[count] = NULL;
    self->env = list;
    return 0;
}

int weft__cli_argv_init(weft_cli_argv *ret, const weft_run_spec *spec) {
    const weft_agent *agent = spec->agent;
    if (!agent->argv || !agent->argv[0] || (spec->persona && (!agent->persona_argv || *spec->persona == '-')))
        return -EINVAL;
    weft_cli_argv self = {.arena = {.alloc = spec->alloc}};
    int r = make_argv(&self, spec);
    if (r == 0)
        r = make_env(&self, spec);
    if (r < 0) {
        weft__cli_argv_done(&self);
        return r;
    }
    *ret = self;
    return 0;
}

void weft__cli_argv_done(weft_cli_argv *argv) {
    weft__arena_done(&argv->arena);
}

/* The presets, and merging the configuration with them. The commands are those that the agents' own documentation gives for
 * the Agent Client Protocol; an agent that has none speaks it through an adapter. None is fetched when it is used: "weft
 * agents install" does that, once, and says so. */
#include "agents.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent_program.h"
#include "alloc.h"
#include "buf.h"
#include "roles.h"
#include "transport.h"
#include "wiring.h"
#include "write.h"

#define ARGV(...)                                                                                                           \
    (const char *const[]) {                                                                                                 \
        __VA_ARGS__, NULL                                                                                                   \
    }
#define PRESET(name_, about_, advice_, login_, ...)                                                                         \
    {                                                                                                                       \
        .name = (name_), .driver = "acp", .argv = ARGV(__VA_ARGS__), .about = (about_), .advice = (advice_),                \
        .login = (login_), .outside = true, .preset = true                                                                  \
    }
#define ADVICE(name_, package_) "Install it with \"weft agents install " name_ "\", which downloads " package_ " with npm."
#define CODEX "@agentclientprotocol/codex-acp@2.6.0"
/* One that npm has. The version is the one that was tried with this version of Weft. */
#define PACKAGED(name_, about_, package_, login_, ...)                                                                      \
    {                                                                                                                       \
        .name = (name_), .driver = "acp", .argv = ARGV(__VA_ARGS__), .about = (about_), .advice = ADVICE(name_, package_),  \
        .login = (login_), .package = (package_), .outside = true, .preset = true                                           \
    }

static const weft_agent presets[] = {
    {.name = "demo", .driver = "demo", .about = "built in; it costs nothing and shows what an agent does", .preset = true},
    PACKAGED("claude", "Claude Code, through its ACP adapter", "@agentclientprotocol/claude-agent-acp@0.99.1",
             "Install Claude Code, run \"claude\" once and log in, or set ANTHROPIC_API_KEY.", "claude-agent-acp"),
    PACKAGED("gemini", "Gemini CLI", "@google/gemini-cli@0.61.0",
             "Run \"{bin}gemini\" once and log in, or set GEMINI_API_KEY.", "gemini", "--acp"),
    /* Left alone, it lets a model review what it asks for, instead of a person. */
    {.name = "codex",
     .driver = "acp",
     .argv = ARGV("codex-acp"),
     .env = ARGV("INITIAL_AGENT_MODE=read-only"),
     .about = "Codex, through its ACP adapter",
     .advice = ADVICE("codex", CODEX),
     .login = "Run \"{bin}codex login\", or set OPENAI_API_KEY.",
     .package = CODEX,
     .outside = true,
     .preset = true},
    PRESET("opencode", "OpenCode", "Install it with npm install -g opencode-ai, or as its documentation says.",
           "Run \"{bin}opencode auth login\".", "opencode", "acp"),
    PRESET("goose", "Goose", "Install the goose command line as its documentation says.", "Run \"{bin}goose configure\".",
           "goose", "acp"),
    PACKAGED("copilot", "GitHub Copilot CLI", "@github/copilot@1.0.102", "Run \"{bin}copilot\" once and type /login.",
             "copilot", "--acp", "--stdio"),
    PRESET("cursor", "Cursor's command line", "Install cursor-agent as Cursor's documentation says.",
           "Run \"{bin}cursor-agent login\".", "cursor-agent", "acp"),
    PACKAGED("qwen", "Qwen Code", "@qwen-code/qwen-code@0.15.10", "Run \"{bin}qwen\" once and log in.", "qwen", "--acp"),
    PACKAGED("auggie", "Augment's command line", "@augmentcode/auggie@0.36.0", "Run \"{bin}auggie login\".", "auggie",
             "--acp"),
    PRESET("kimi", "Kimi CLI", "Install kimi as its documentation says.", "Run \"{bin}kimi\" once and log in.", "kimi",
           "acp"),
    PRESET("vibe", "Mistral Vibe", "Install mistral-vibe as its documentation says.", "Run \"{bin}vibe\" once and log in.",
           "vibe-acp"),
};
#define PRESETS (sizeof presets / sizeof presets[0])

const weft_agent *weft__agent_preset(const char *name) {
    for (size_t i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

void weft__agent_suggest(weft_suggestion *suggestion, const weft_json *configured) {
    for (size_t i = 0; i < PRESETS; i++)
        weft__suggest(suggestion, presets[i].name);
    for (weft_iter it = weft_iterate(configured); weft_next(&it);)
        weft__suggest(suggestion, weft_str_of(&it.name, ""));
}

/* ---- checking ---- */

static int refuse_agent(const weft_checking *checking, const weft_json *at, const char *path, const char *why) {
    weft__config_say(checking, at, true, "%s %s", path, why);
    return -EBADMSG;
}

/* Names are typed and printed; blanks and control characters in one are a mistake. */
static bool is_agent_name(const char *name) {
    for (const unsigned char *p = (const unsigned char *) name; *p; p++)
        if (*p <= ' ' || *p == 0x7f)
            return false;
    return *name && strlen(name) <= 64;
}

static bool is_built_in(const char *driver) {
    const weft_driver *row = weft__driver_named(driver);
    return row && row->built_in;
}

int weft__agent_check(const weft_checking *checking, const char *path, const char *name, const weft_json *at,
                      const weft_json *value) {
    const weft_agent *preset = weft__agent_preset(name);
    weft_json command = weft_get(value, "command"), given = weft_get(value, "driver");
    const char *driver = weft_str_of(&given, preset ? preset->driver : NULL);
    if (!is_agent_name(name))
        return refuse_agent(checking, at, path, "is not a valid name for an agent: at most 64 characters, and no blanks");
    if (!driver)
        return refuse_agent(checking, value, path, "has no \"driver\", and no agent of this name comes with Weft");
    bool built_in = is_built_in(driver);
    bool inherits = preset && strcmp(preset->driver, driver) == 0;
    if (built_in && command.text)
        return refuse_agent(checking, &command, path, "has a driver that brings its agent: there is no \"command\"");
    if (!built_in && !command.text && !inherits)
        return refuse_agent(checking, value, path, "has no \"command\"");
    if (command.text) {
        weft_json program = weft_at(&command, 0);
        if (!*weft_str_of(&program, ""))
            return refuse_agent(checking, &program, path, "has no program in \"command\"");
    }
    return 0;
}

/* ---- merging ---- */

static char *keep_text(weft_arena *arena, const char *text, size_t len) {
    char *copy = weft__arena_alloc(arena, len + 1);
    if (copy) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

/* A member that is a string, if it is given. */
static int take_agent_text(const weft_json *value, const char *name, weft_arena *arena, const char **ret) {
    weft_bytes text;
    weft_json member = weft_get(value, name);
    if (!member.text)
        return 0;
    int r = weft_bytes_of(&member, &text);
    if (r < 0)
        return r;
    const char *copy = keep_text(arena, text.data, text.len);
    if (!copy)
        return -ENOMEM;
    *ret = copy;
    return 0;
}

/* The text of an item; NAME=VALUE for a member. */
static const char *take_item(const weft_iter *it, weft_arena *arena) {
    weft_bytes name = {0}, text;
    if (weft_bytes_of(&it->value, &text) < 0 || (it->name.text && weft_bytes_of(&it->name, &name) < 0))
        return NULL;
    size_t head = it->name.text ? name.len + 1 : 0;
    char *item = weft__arena_alloc(arena, head + text.len + 1);
    if (!item)
        return NULL;
    if (head)
        snprintf(item, head + 1, "%.*s=", (int) name.len, name.data);
    memcpy(item + head, text.data, text.len);
    item[head + text.len] = '\0';
    return item;
}

/* An array of strings, or an object of them, if it is given. */
static int take_list(const weft_json *value, const char *name, weft_arena *arena, const char *const **ret) {
    weft_json member = weft_get(value, name);
    size_t count = weft_count(&member), i = 0;
    if (!member.text)
        return 0;
    const char **list = weft__arena_alloc(arena, (count + 1) * sizeof *list);
    if (!list)
        return -ENOMEM;
    for (weft_iter it = weft_iterate(&member); i < count && weft_next(&it); i++)
        if (!(list[i] = take_item(&it, arena)))
            return -ENOMEM;
    list[i] = NULL;
    *ret = list;
    return 0;
}

static weft_permission permission_of(const char *text, weft_permission fallback) {
    return strcmp(text, "ask") == 0     ? WEFT_PERMISSION_ASK
           : strcmp(text, "allow") == 0 ? WEFT_PERMISSION_ALLOW
           : strcmp(text, "deny") == 0  ? WEFT_PERMISSION_DENY
                                        : fallback;
}

/* Change what the entry says. */
static int merge_agent(weft_agent *agent, const weft_json *value, weft_arena *arena) {
    int r = take_agent_text(value, "driver", arena, &agent->driver);
    if (r >= 0)
        r = take_agent_text(value, "about", arena, &agent->about);
    if (r >= 0)
        r = take_list(value, "command", arena, &agent->argv);
    if (r >= 0)
        r = take_list(value, "env", arena, &agent->env);
    if (r >= 0)
        r = take_list(value, "persona", arena, &agent->persona_argv);
    if (r < 0)
        return r;
    if (is_built_in(agent->driver))
        agent->argv = NULL;
    if (weft_get(value, "command").text) /* what is known is about another program */
        agent->advice = agent->login = agent->package = NULL;
    agent->prompt_on_stdin =
        strcmp(weft_get_str(value, "prompt", agent->prompt_on_stdin ? "stdin" : "argument"), "stdin") == 0;
    agent->max_running = (size_t) weft_get_int(value, "max_running", (int64_t) agent->max_running);
    agent->timeout_ms = weft_get_int(value, "timeout_ms", agent->timeout_ms);
    agent->idle_ms = weft_get_int(value, "idle_ms", agent->idle_ms);
    if (weft_get(value, "idle_ms").text && agent->idle_ms == 0)
        agent->idle_ms = -1; /* for the engine, 0 is "not said" */
    agent->max_turns = (size_t) weft_get_int(value, "max_turns", (int64_t) agent->max_turns);
    agent->context_limit = (size_t) weft_get_int(value, "context_limit", (int64_t) agent->context_limit);
    const char *isolation = weft_get_str(value, "isolation", "");
    agent->isolation = *isolation ? strcmp(isolation, "worktree") == 0 ? 1 : -1 : agent->isolation;
    agent->permission = permission_of(weft_get_str(value, "permission", ""), agent->permission);
    agent->preset = false;
    return 0;
}

/* The one to change: a preset of this name, an earlier entry (a name may be there twice; the last one counts), or a new
 * one. */
static weft_agent *place_for(weft_agent *list, size_t *count, const char *name) {
    for (size_t i = 0; i < *count; i++)
        if (strcmp(list[i].name, name) == 0)
            return &list[i];
    list[*count] = (weft_agent){.name = name};
    return &list[(*count)++];
}

static int add_agent(weft_agent *list, size_t *count, const weft_iter *it, weft_arena *arena) {
    weft_bytes text;
    int r = weft_bytes_of(&it->name, &text);
    const char *name = r < 0 ? NULL : keep_text(arena, text.data, text.len);
    if (!name)
        return -ENOMEM;
    weft_agent *agent = place_for(list, count, name);
    const weft_agent *preset = weft__agent_preset(name);
    *agent = preset ? *preset : (weft_agent){.name = name};
    return merge_agent(agent, &it->value, arena);
}

/* ---- programs by their address ---- */

static bool is_address(const char *text) {
    return strncmp(text, "exec:", 5) == 0;
}

int weft__agent_address(const char *text, const char **ret_why) {
    weft_url url;
    if (!is_address(text))
        return 0;
    int r = weft__transport_parse(NULL, text, NULL, &url, ret_why);
    if (r >= 0)
        weft__url_done(&url, NULL);
    return r < 0 ? r : 1;
}

static const char *const *keep_argv(const weft_url *url, weft_arena *arena) {
    size_t count = 0;
    while (url->argv[count])
        count++;
    const char **argv = weft__arena_alloc(arena, (count + 1) * sizeof *argv);
    for (size_t i = 0; argv && i < count; i++)
        if (!(argv[i] = keep_text(arena, url->argv[i], strlen(url->argv[i]))))
            return NULL;
    if (argv)
        argv[count] = NULL;
    return argv;
}

/* "exec:python3", and "exec:python3#2" for another with the same program. */
static const char *name_program(const weft_agents *agents, const char *program, weft_arena *arena) {
    char name[128];
    const char *slash = strrchr(program, '/');
    program = slash && slash[1] ? slash + 1 : program;
    snprintf(name, sizeof name, "exec:%.64s", program);
    for (int n = 2; weft__agent_find(agents, name); n++)
        snprintf(name, sizeof name, "exec:%.64s#%d", program, n);
    return keep_text(arena, name, strlen(name));
}

static bool has_same_argv(const weft_agent *agent, const weft_url *url) {
    size_t i = 0;
    if (!is_address(agent->name))
        return false;
    while (agent->argv[i] && url->argv[i] && strcmp(agent->argv[i], url->argv[i]) == 0)
        i++;
    return !agent->argv[i] && !url->argv[i];
}

/* One that is named twice is one. list has room for it. */
static int add_program(weft_agents *agents, weft_agent *list, const weft_url *url, weft_arena *arena, const char **ret) {
    for (size_t i = 0; i < agents->count; i++)
        if (has_same_argv(&list[i], url)) {
            *ret = list[i].name;
            return 0;
        }
    weft_agent *agent = &list[agents->count];
    *agent = (weft_agent){.name = name_program(agents, url->argv[0], arena),
                          .driver = "planner",
                          .argv = keep_argv(url, arena),
                          .about = "a program that the configuration names for a role"};
    if (!agent->name || !agent->argv)
        return -ENOMEM;
    agents->count++;
    *ret = agent->name;
    return 0;
}

static int name_holder(weft_agents *agents, weft_agent *list, const char *text, weft_arena *arena, const char **ret) {
    weft_url url;
    if (!is_address(text)) {
        *ret = keep_text(arena, text, strlen(text));
        return *ret ? 0 : -ENOMEM;
    }
    int r = weft__transport_parse(NULL, text, NULL, &url, NULL);
    if (r < 0)
        return r;
    r = add_program(agents, list, &url, arena, ret);
    weft__url_done(&url, NULL);
    return r;
}

/* ---- roles ---- */

static int keep_holders(weft_agents *agents, weft_agent *list, const weft_texts *from, weft_arena *arena,
                        const char *const **ret) {
    const char **names = weft__arena_alloc(arena, (from->count + 1) * sizeof *names);
    int r = names ? 0 : -ENOMEM;
    for (size_t i = 0; r >= 0 && i < from->count; i++)
        r = name_holder(agents, list, from->items[i], arena, &names[i]);
    if (r < 0)
        return r;
    names[from->count] = NULL;
    *ret = names;
    return 0;
}

int weft__agents_roles(const weft_texts *planners, const weft_texts *executors, weft_arena *arena, weft_agents *to) {
    const weft_texts *lists[] = {planners, executors};
    static const char *const roles[] = {WEFT_ROLE_PLANNER, WEFT_ROLE_EXECUTOR};
    weft_agent_role *rows = weft__arena_alloc(arena, 3 * sizeof *rows);
    weft_agent *list = weft__arena_alloc(arena, (to->count + planners->count + executors->count) * sizeof *list);
    size_t count = 0;
    if (!rows || !list)
        return -ENOMEM;
    memcpy(list, to->list, to->count * sizeof *list);
    to->list = list;
    for (size_t i = 0; i < 2; i++) {
        if (!lists[i]->count)
            continue;
        rows[count] = (weft_agent_role){.role = roles[i]};
        int r = keep_holders(to, list, lists[i], arena, &rows[count++].agents);
        if (r < 0)
            return r;
    }
    rows[count] = (weft_agent_role){0};
    to->roles = rows;
    return 0;
}

int weft__agents_make(const weft_json *configured, const char *fallback, weft_arena *arena, weft_agents *ret) {
    size_t count = PRESETS;
    weft_agent *list = weft__arena_alloc(arena, (PRESETS + weft_count(configured)) * sizeof *list);
    const char *name = keep_text(arena, fallback, strlen(fallback));
    if (!list || !name)
        return -ENOMEM;
    memcpy(list, presets, sizeof presets);
    for (weft_iter it = weft_iterate(configured); weft_next(&it);) {
        int r = add_agent(list, &count, &it, arena);
        if (r < 0)
            return r;
    }
    *ret = (weft_agents){.list = list, .count = count, .fallback = name};
    return 0;
}

/* ---- agents_writer ---- */

typedef struct agents_writer {
    weft_buf out;
    const weft_alloc *alloc;
    int r; /* the first failure */
} agents_writer;

static void put_shown(agents_writer *self, const char *text, size_t len) {
    if (self->r >= 0)
        self->r = weft__write_raw(&self->out, self->alloc, text, len);
}

/* The members of an object; each value is put by somebody else. */
static void put_shown_members(agents_writer *self, const weft_json *object,
                              void (*value)(agents_writer *self, const weft_iter *member)) {
    const char *before = "{";
    for (weft_iter it = weft_iterate(object); weft_next(&it); before = ",") {
        put_shown(self, before, 1);
        put_shown(self, it.name.text, it.name.len);
        put_shown(self, ":", 1);
        value(self, &it);
    }
    put_shown(self, *before == '{' ? "{}" : "}", *before == '{' ? 2 : 1);
}

static void put_hidden(agents_writer *self, const weft_iter *member) {
    (void) member;
    put_shown(self, "\"***\"", 5);
}

static void put_agent_part(agents_writer *self, const weft_iter *member) {
    if ((weft_name_is(member, "env") || weft_name_is(member, "headers")) && weft_typeof(&member->value) == WEFT_OBJECT)
        put_shown_members(self, &member->value, put_hidden);
    else
        put_shown(self, member->value.text, member->value.len);
}

static void put_agent(agents_writer *self, const weft_iter *member) {
    put_shown_members(self, &member->value, put_agent_part);
}

static void put_rule_part(agents_writer *self, const weft_iter *member) {
    if (weft_name_is(member, "action") && weft_typeof(&member->value) == WEFT_OBJECT)
        put_shown_members(self, &member->value, put_agent_part);
    else
        put_shown(self, member->value.text, member->value.len);
}

static void put_rules(agents_writer *self, const weft_json *rules) {
    const char *before = "[";
    for (weft_iter it = weft_iterate(rules); weft_next(&it); before = ",") {
        put_shown(self, before, 1);
        if (weft_typeof(&it.value) == WEFT_OBJECT)
            put_shown_members(self, &it.value, put_rule_part);
        else
            put_shown(self, it.value.text, it.value.len);
    }
    put_shown(self, *before == '[' ? "[]" : "]", *before == '[' ? 2 : 1);
}

int weft__agents_hide(const weft_json *configured, const weft_alloc *alloc, weft_doc **ret) {
    agents_writer self = {.alloc = alloc};
    if (weft_typeof(configured) == WEFT_ARRAY)
        put_rules(&self, configured);
    else
        put_shown_members(&self, configured, put_agent);
    if (self.r >= 0)
        self.r = weft_doc_parse(weft__buf_head(&self.out), weft__buf_len(&self.out), alloc, ret);
    weft__buf_done(&self.out, alloc);
    return self.r;
}

/* ---- is it there? ---- */

bool weft__agent_found(const weft_agent *agent) {
    char path[PATH_MAX], folder[PATH_MAX];
    if (!agent->argv && !is_built_in(agent->driver))
        return false;
    return weft__agent_program(agent, getcwd(folder, sizeof folder), path, sizeof path) >= 0;
}

/* Telling what a project would allow: the tasks in its journal, the programs and rules of its configuration, the doors it
 * opens. Texts of the project go through the screen's filter, so that they cannot imitate ours. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents.h"
#include "secret.h"
#include "trust_view.h"

#define LABEL 10
/* Of one agent's command, or a rule, for people. */
#define MAX_TEXT 300

static void put_trust_label(const weft_screen *screen, const char *label) {
    fputs("  ", screen->file);
    weft__ink(screen, WEFT_INK_BOLD);
    fprintf(screen->file, "%-*s", LABEL, label);
    weft__plain(screen);
}

/* Control characters of the project are shown as escapes wherever the output goes. */
static void put_safely(const weft_screen *screen, const char *text) {
    weft_screen filtered = *screen;
    size_t len = strlen(text);
    filtered.terminal = true;
    weft__put_text(&filtered, text, len < MAX_TEXT ? len : MAX_TEXT);
    if (len > MAX_TEXT)
        fputs("...", screen->file);
}

static void put_trust_row(const weft_screen *screen, const char *label, const char *text) {
    put_trust_label(screen, label);
    put_safely(screen, text);
    fputc('\n', screen->file);
}

/* ---- the configuration ---- */

static void add_text(char *to, size_t size, const char *text) {
    size_t used = strlen(to);
    snprintf(to + used, size - used, "%s", text);
}

static void describe_agent(const weft_iter *it, char *ret, size_t size) {
    weft_json command = weft_get(&it->value, "command"), env = weft_get(&it->value, "env");
    snprintf(ret, size, "agent %s:", weft_str_of(&it->name, ""));
    for (weft_iter word = weft_iterate(&command); weft_next(&word);) {
        add_text(ret, size, " ");
        add_text(ret, size, weft_str_of(&word.value, ""));
    }
    if (!command.text)
        add_text(ret, size, " the preset's program");
    for (weft_iter set = weft_iterate(&env); weft_next(&set);) {
        add_text(ret, size, ", sets ");
        add_text(ret, size, weft_str_of(&set.name, ""));
    }
    if (strcmp(weft_get_str(&it->value, "permission", ""), "allow") == 0)
        add_text(ret, size, ", may do what it likes without asking");
}

static void describe_mcp(const weft_iter *it, char *ret, size_t size) {
    weft_json args = weft_get(&it->value, "args"), env = weft_get(&it->value, "env");
    const char *command = weft_get_str(&it->value, "command", NULL);
    snprintf(ret, size, "MCP server %s: %s", weft_str_of(&it->name, ""),
             command ? command : weft_get_str(&it->value, "url", ""));
    for (weft_iter word = weft_iterate(&args); weft_next(&word);) {
        add_text(ret, size, " ");
        add_text(ret, size, weft_str_of(&word.value, ""));
    }
    for (weft_iter set = weft_iterate(&env); weft_next(&set);) {
        add_text(ret, size, ", sets ");
        add_text(ret, size, weft_str_of(&set.name, ""));
    }
}

/* Whoever wrote the rule names what it takes from here and sends away. */
static void add_secrets(char *ret, size_t size, const weft_json *action) {
    const char *end = action->text + action->len, *at = action->text;
    for (size_t len = 0; (at = weft__secret_find(at, &len)) && at < end; at += len) {
        char name[MAX_TEXT];
        snprintf(name, sizeof name, "%.*s", (int) (len < MAX_TEXT - 1 ? len : MAX_TEXT - 1), at);
        add_text(ret, size, ", sends ");
        add_text(ret, size, name);
    }
}

static void describe_rule(const weft_json *rule, char *ret, size_t size) {
    weft_json on = weft_get(rule, "trigger"), action = weft_get(rule, "action");
    const char *type = weft_get_str(&action, "type", "");
    const char *what = weft_get_str(&on, "type", weft_get_str(&on, "schedule", weft_get_str(&on, "source", "files change")));
    snprintf(ret, size, "rule %s: on %s %s ", weft_get_str(rule, "id", ""), what, weft_get_str(&on, "pattern", ""));
    add_text(ret, size,
             strcmp(type, "webhook") == 0  ? "calls "
             : strcmp(type, "notify") == 0 ? "says "
                                           : "starts an agent: ");
    add_text(ret, size,
             weft_get_str(&action,
                          strcmp(type, "webhook") == 0  ? "url"
                          : strcmp(type, "notify") == 0 ? "message"
                                                        : "prompt",
                          ""));
    if (strcmp(type, "webhook") == 0)
        add_secrets(ret, size, &action);
}

static bool is_key(const weft_key *key, const char *path) {
    return strcmp(key->path, path) == 0;
}

static void put_plain_key(const weft_screen *screen, const weft_key *key, const weft_json *value) {
    char text[MAX_TEXT * 2];
    snprintf(text, sizeof text, "%s: %.*s", key->path, (int) (value->len < MAX_TEXT ? value->len : MAX_TEXT), value->text);
    put_trust_row(screen,
                  strcmp(key->door, "who has access") == 0 ? "opens"
                  : strcmp(key->door, "what runs") == 0    ? "runs"
                                                           : "writes",
                  text);
}

static void put_trust_key(const weft_screen *screen, const weft_key *key, const weft_json *value) {
    char text[MAX_TEXT * 4];
    bool agents = is_key(key, "agents"), rules = is_key(key, "automation.rules"), servers = is_key(key, "mcp.servers");
    for (weft_iter it = weft_iterate(value); (agents || rules || servers) && weft_next(&it);) {
        if (agents)
            describe_agent(&it, text, sizeof text);
        else if (servers)
            describe_mcp(&it, text, sizeof text);
        else
            describe_rule(&it.value, text, sizeof text);
        put_trust_row(screen, "runs", text);
    }
    if (!agents && !rules && !servers)
        put_plain_key(screen, key, value);
}

/* Of AIWG's file only the rules and the web interface are its own; the agent is Weft's idea of AIWG's. */
static bool is_shown(const weft_trust_view *view, size_t index) {
    const weft_key *key = &weft__keys[index];
    return key->door && view->config.settings[index].source == WEFT_FROM_project &&
           (!view->app->layout->aiwg || is_key(key, "automation.rules") || is_key(key, "aiwg.web"));
}

/* ---- the journal ---- */

static void put_journal_facts(const weft_trust_view *view, const weft_screen *screen) {
    const weft_peek *peek = &view->peek;
    char text[PATH_MAX + 200];
    struct stat info = {0};
    lstat(view->store, &info);
    if (view->peek_r < 0)
        snprintf(text, sizeof text, "%s, %lld KiB: cannot be looked into: %s", view->store, (long long) info.st_size / 1024,
                 view->peek_r == -EFBIG    ? "it is too large"
                 : view->peek_r == -EINVAL ? "it is not a journal of Weft, or damaged"
                                           : weft_strerror(view->peek_r));
    else
        snprintf(text, sizeof text, "%s: %lld event%s, %lld task%s that would run", view->store, (long long) peek->events,
                 peek->events == 1 ? "" : "s", (long long) peek->tasks, peek->tasks == 1 ? "" : "s");
    put_trust_row(screen, "journal", text);
    for (size_t i = 0; i < peek->shown; i++) {
        snprintf(text, sizeof text, "%s%s\"%s\"", peek->first[i].agent, *peek->first[i].agent ? ": " : "",
                 peek->first[i].prompt);
        put_trust_row(screen, i ? "" : "tasks", text);
    }
}

/* ---- all of it ---- */

void weft__trust_view_put(const weft_trust_view *view, const weft_screen *screen, bool only_strange) {
    const weft_layout *layout = view->app->layout;
    struct stat info;
    if (view->peeked && (view->strange_journal || !only_strange))
        put_journal_facts(view, screen);
    for (size_t i = 0; (view->strange_config || !only_strange) && weft__keys[i].path; i++)
        if (is_shown(view, i))
            put_trust_key(screen, &weft__keys[i], &view->config.settings[i].value);
    if (view->strange_token || (!only_strange && lstat(layout->token, &info) == 0))
        put_trust_row(screen, "token",
                      view->strange_token ? "others may know it: who has it may do everything over the network"
                                          : layout->token);
}

static weft_val journal_value(const weft_trust_view *view, weft_member members[4]) {
    if (!view->peeked)
        return weft_none();
    bool read = view->peek_r >= 0;
    members[0] = (weft_member){"path", weft_str(view->store)};
    members[1] = (weft_member){"trusted", weft_bool(!view->strange_journal)};
    members[2] = (weft_member){"events", read ? weft_int(view->peek.events) : weft_none()};
    members[3] = (weft_member){"tasks", read ? weft_int(view->peek.tasks) : weft_none()};
    return weft_obj(members, 4);
}

void weft__trust_view_put_json(const weft_trust_view *view, const char *state) {
    char folder[PATH_MAX], why[WEFT_TRUST_WHY] = "";
    weft_member journal[4], keys[WEFT_MAX_KEYS];
    size_t count = 0;
    WEFT_AUTO(weft_doc) agents = NULL;
    WEFT_AUTO(weft_doc) rules = NULL;
    WEFT_AUTO(weft_doc) servers = NULL;
    if (!weft__trust_view_is_fine(view))
        weft__trust_view_reason(view, why);
    for (size_t i = 0; weft__keys[i].path; i++) {
        const weft_json *value = &view->config.settings[i].value;
        if (!is_shown(view, i))
            continue;
        if (is_key(&weft__keys[i], "agents") && weft__agents_hide(value, NULL, &agents) >= 0 && agents)
            value = weft_doc_root(agents);
        if (is_key(&weft__keys[i], "mcp.servers") && weft__agents_hide(value, NULL, &servers) >= 0 && servers)
            value = weft_doc_root(servers);
        if (is_key(&weft__keys[i], "automation.rules") && weft__agents_hide(value, NULL, &rules) >= 0 && rules)
            value = weft_doc_root(rules);
        keys[count++] = (weft_member){weft__keys[i].path, weft_copy(value)};
    }
    weft__put_line(&view->app->out,
                   WEFT_OBJ({"folder", weft_str(getcwd(folder, sizeof folder))}, {"home", weft_str(view->app->layout->home)},
                            {"state", weft_str(state)}, {"why", *why ? weft_str(why) : weft_none()},
                            {"journal", journal_value(view, journal)},
                            {"configuration",
                             WEFT_OBJ({"file", weft_str(view->app->layout->config)},
                                      {"trusted", weft_bool(!view->strange_config)}, {"allows", weft_obj(keys, count)})},
                            {"token", WEFT_OBJ({"trusted", weft_bool(!view->strange_token)})}));
}

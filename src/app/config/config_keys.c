/* What may be set. The names of the limits are those of the library's structs, so that its headers explain them too. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "agents.h"
#include "config.h"
#include "hmac.h"
#include "mcp_config.h"
#include "token_file.h"
#include "wiring.h"

#define MIB ((int64_t) 1024 * 1024)
/* A day is longer than anything should wait, and fits wherever milliseconds are added up. */
#define DAY_MS ((int64_t) 24 * 3600 * 1000)
/* More than any machine serves; what is multiplied with it still fits. */
#define MANY 1000000000
/* The same for agents: a task may take days, and nobody runs a thousand at a time on one machine. */
#define MONTH_MS (31 * DAY_MS)
#define MAX_TASKS 1000
#define MANY_TOKENS 1000000000000

/* What a file that came with a project must not say; "NAME says ...". */
#define COMES_IN "who has access"
#define RUNS "what runs"
#define WRITES "what is written where"
#define SPENDS "what may be spent"

#define KEY(kind_, path_, field, fallback_, help_)                                                                          \
    .path = (path_), .kind = WEFT_KEY_##kind_, .offset = offsetof(weft_serve_settings, field), .fallback = (fallback_),     \
    .help = (help_)
#define LIMIT(field, low, high, fallback_, help_)                                                                           \
    { KEY(size, "limits." #field, limits.field, fallback_, help_), .min = (low), .max = (high), .live = true }
#define LIMIT_MS(field, high, fallback_, help_)                                                                             \
    { KEY(number, "limits." #field, limits.field, fallback_, help_), .min = 1, .max = (high), .live = true }
#define SERVER(kind_, field, high, fallback_, help_)                                                                        \
    { KEY(kind_, "limits." #field, server.field, fallback_, help_), .min = 1, .max = (high) }

#define TASKS(kind_, name, field, low, high, fallback_, help_)                                                              \
    { KEY(kind_, name, engine.field, fallback_, help_), .min = (low), .max = (high), .live = true }

/* ---- what structured values are made of ---- */

#define PART(kind_, name_, help_) .name = (name_), .kind = WEFT_SHAPE_##kind_, .help = (help_)

static const weft_shape agent_shape[] = {
    {PART(text, "driver",
          "how to talk to it: the Agent Client Protocol, a command line, the planner's protocol, or the built-in demo"),
     .choices = {.row = weft__driver_name}},
    {PART(texts, "command", "program and arguments; {prompt} in an argument of a cli agent stands for the prompt"),
     .min = 1},
    {PART(text, "prompt", "cli: where the prompt goes (default argument)"), .choices = {"argument stdin"}},
    {PART(env, "env", "variables to set besides the hub's own")},
    {PART(texts, "persona", "cli: arguments for a task that names an agent which is not configured; {agent} is that name"),
     .min = 1},
    {PART(number, "max_running", "tasks at a time; 0: as many as tasks.max_running allows"), .max = MAX_TASKS},
    {PART(number, "timeout_ms", "how long a task may take; 0: as tasks.timeout_ms says"), .max = MONTH_MS},
    {PART(number, "idle_ms",
          "how long its process is kept for the next task; 0: not at all (default: tasks.idle_ms, sessions.idle_ms)"),
     .max = DAY_MS},
    {PART(number, "max_turns", "tasks at a time in one of its processes (default 1: each has its own)"), .min = 1,
     .max = MAX_TASKS},
    {PART(number, "context_limit", "bytes of a prompt of a gated task that it can take; 0: no limit (default)"),
     .max = 64 * MIB},
    {PART(text, "permission", "when it asks whether it may do something (default ask: a person decides)"),
     .choices = {"ask allow deny"}},
    {PART(text, "isolation", "where its tasks work, if they do not say it (default: tasks.isolation)"),
     .choices = {"none worktree"}},
    {PART(text, "about", "what it is, in a few words")},
    {0},
};

static const weft_shape setup_shape[] = {
    {PART(texts, "command", "program and arguments; the program is not one of the project's"), .min = 1, .must = true},
    {PART(number, "timeout_ms", "how long it may take (default 600000)"), .min = 1, .max = DAY_MS},
    {0},
};

static const weft_shape mcp_shape[] = {
    {PART(text, "command", "the program of a server on standard input and output")},
    {PART(texts, "args", "its arguments")},
    {PART(env, "env", "variables to set for it besides the hub's own")},
    {PART(text, "url", "where a server is that is reached by HTTP")},
    {PART(env, "headers", "HTTP headers to send with every request: keys go here")},
    {PART(text, "transport", "how to talk to it (default: stdio for a command; for a URL auto, which finds out)"),
     .choices = {"auto stdio http sse"}},
    {PART(number, "timeout_ms", "how long a request may take without progress (default 60000)"), .min = 1, .max = DAY_MS},
    {PART(number, "idle_ms", "how long it is kept when nobody uses it; 0: not at all (default 300000)"), .max = DAY_MS},
    {PART(texts, "agents", "the agents that get it in their sessions; [] for none (default: all that can use it)")},
    {0},
};

static const weft_shape trigger_shape[] = {
    {PART(text, "type",
          "of the event: file.create, file.modify, file.delete, cron.fired, task.completed, question.asked, ...; file.* is "
          "any of "
          "a kind")},
    {PART(text, "source", "where it comes from: files, jobs, tasks or questions"),
     .choices = {"watcher scheduler queue question"}},
    {PART(text, "pattern", "for the file's path, the job's name, the question's title or the task's prompt: src/**/*.c")},
    {PART(text, "schedule", "a job of its own: minute hour day month weekday, as in cron")},
    {0},
};

static const weft_shape action_shape[] = {
    {PART(text, "type", "start an agent, tell people, or call a URL"), .choices = {"agent notify webhook"}, .must = true},
    {PART(text, "prompt", "agent: what to do; {{payload.path}} stands for a member of the event")},
    {PART(text, "agent", "agent: which one (default default_agent)")},
    {PART(number, "priority", "agent: higher runs first"), .min = -MANY, .max = MANY},
    {PART(text, "message", "notify: the message; webhook: a message to send with the event")},
    {PART(text, "channel", "notify: where to say it")},
    {PART(text, "url", "webhook: where to send it; ${env:NAME} and ${file:PATH} are secrets")},
    {PART(text, "method", "webhook: how (default POST)"), .choices = {"POST PUT PATCH GET DELETE"}},
    {PART(env, "headers", "webhook: more headers, with {{...}} and secrets")},
    {PART(any, "body", "webhook: a text, or JSON, with {{...}} and secrets (default: the event)")},
    {0},
};

static const weft_shape condition_shape[] = {
    {PART(text, "field", "of the event, with dots: payload.path"), .must = true},
    {PART(text, "operator", "how to compare"), .must = true,
     .choices = {"eq neq contains matches gt lt gte lte exists not_exists"}},
    {PART(any, "value", "what to compare with")},
    {0},
};

static const weft_shape rule_shape[] = {
    {PART(text, "id", "its name"), .must = true},
    {PART(text, "description", "for people")},
    {PART(object, "trigger", "which events"), .members = trigger_shape, .must = true},
    {PART(object, "action", "what happens then"), .members = action_shape, .must = true},
    {PART(flag, "enabled", "whether it may fire, until \"weft automation\" switches it (default true)")},
    {PART(number, "cooldownMs", "after it fired, how long it does not fire again (default 5000)"), .max = MONTH_MS},
    {PART(flag, "requiresApproval", "a person is asked first")},
    {PART(list, "conditions", "conditions that must all hold for the event"), .members = condition_shape},
    {0},
};

static const weft_shape job_shape[] = {
    {PART(text, "id", "its name, in the event cron.fired"), .must = true},
    {PART(text, "schedule", "minute hour day month weekday, as in cron"), .must = true},
    {PART(text, "action", "told in the event as payload.action")},
    {0},
};

static const weft_shape watch_shape[] = {
    {PART(text, "path", "a file or a folder that is watched"), .must = true},
    {PART(texts, "events", "which changes of it are events: create, modify, delete (default all)")},
    {PART(texts, "extensions", "only of files whose names end so")},
    {PART(texts, "ignore", "not of these: parts of a path, with * for anything")},
    {0},
};

static const weft_shape key_shape[] = {
    {PART(text, "file", "the file with the secret: one line of 16 to 1024 characters, mode 0600"), .must = true},
    {PART(text, "scopes", "what it allows, separated by blanks (default \"read work\")")},
    {PART(flag, "unnamed", "it is also the key of requests that name no key_id")},
    {0},
};

static const weft_shape gate_shape[] = {
    {PART(text, "listen", "for connections to such URLs: unix:*, ws://*/acp")},
    {PART(text, "dialect", "for connections that speak this: planner, aiwg, cdev, acp, tinyvex, wiggum")},
    {PART(text, "token", "for the token, certificate or key of this name")},
    {PART(text, "scopes", "for callers with just these scopes: read, or read work")},
    {PART(texts, "methods", "for these methods: execute_task, task.*"), .min = 1},
    {PART(text, "require", "what a request must have"), .choices = {"signature"}},
    {PART(number, "rate_per_minute", "how many of them a client may send in a minute"), .min = 1, .max = MANY},
    {PART(number, "max_message", "how many bytes each may have"), .min = 1, .max = 64 * MIB},
    {PART(texts, "allow", "which methods may be called: all others are refused"), .min = 1},
    {0},
};

/* A key is known by its name, which goes into messages as it is. */
static int check_key(const weft_checking *checking, const char *path, const char *name, const weft_json *at,
                     const weft_json *key) {
    weft_json scopes = weft_get(key, "scopes");
    char ignored[WEFT_TOKEN_SCOPES];
    if (!weft__is_sign_word(name, strlen(name), WEFT_KEY_ID_MAX)) {
        weft__config_say(checking, at, true, "%s is not a valid name for a key: at most 64 plain characters without blanks",
                         path);
        return -EBADMSG;
    }
    if (!scopes.text || weft__token_scopes(weft_str_of(&scopes, ""), ignored) >= 0)
        return 0;
    weft__config_say(checking, &scopes, true, "%s.scopes must be some of " WEFT_TOKEN_SCOPE_NAMES, path);
    return -EBADMSG;
}

static bool is_dialect(const char *name) {
    for (const weft_dialect *const *row = weft__dialect_list; *row; row++)
        if (strcmp((*row)->name, name) == 0)
            return true;
    return false;
}

/* A gate that holds for nobody was meant to hold for somebody. */
static int check_gate_holder(const weft_checking *checking, const char *path, const weft_json *gate) {
    weft_json dialect = weft_get(gate, "dialect"), scopes = weft_get(gate, "scopes");
    const char *named = weft_str_of(&scopes, "");
    char ignored[WEFT_TOKEN_SCOPES];
    if (dialect.text && !is_dialect(weft_str_of(&dialect, ""))) {
        weft__config_say(checking, &dialect, true,
                         "%s.dialect: there is no such dialect; there are planner, aiwg, cdev, acp, tinyvex and wiggum",
                         path);
        return -EBADMSG;
    }
    if (!scopes.text || strcmp(named, "*") == 0 || weft__token_scopes(named, ignored) >= 0)
        return 0;
    weft__config_say(checking, &scopes, true, "%s.scopes must be some of " WEFT_TOKEN_SCOPE_NAMES ", or *", path);
    return -EBADMSG;
}

/* A gate that asks for nothing was meant to ask for something. */
static int check_gate(const weft_checking *checking, const char *path, const char *name, const weft_json *at,
                      const weft_json *gate) {
    static const char *const asks[] = {"require", "rate_per_minute", "max_message", "allow"};
    (void) name;
    (void) at;
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++)
        if (weft_get(gate, asks[i]).text)
            return check_gate_holder(checking, path, gate);
    weft__config_say(checking, gate, true, "%s has no effect: it needs require, rate_per_minute, max_message or allow",
                     path);
    return -EBADMSG;
}

/* The member an action of each kind cannot do without. */
static int check_rule(const weft_checking *checking, const char *path, const char *name, const weft_json *at,
                      const weft_json *rule) {
    static const char *const needs[][2] = {{"agent", "prompt"}, {"notify", "message"}, {"webhook", "url"}};
    weft_json action = weft_get(rule, "action");
    const char *type = weft_get_str(&action, "type", "");
    (void) name;
    (void) at;
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        if (strcmp(type, needs[i][0]) != 0 || weft_get(&action, needs[i][1]).text)
            continue;
        weft__config_say(checking, &action, true, "%s.action has no \"%s\"", path, needs[i][1]);
        return -EBADMSG;
    }
    return 0;
}

static bool has_prefix(const char *text, const char *prefix) {
    return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

const char *weft__database_refused(const char *text) {
    const char *host = has_prefix(text, "postgresql://") ? text + 13 : has_prefix(text, "postgres://") ? text + 11 : NULL;
    if (!host)
        return "it must begin with postgresql://";
    size_t authority = strcspn(host, "/?"), user = strcspn(host, "@");
    bool in_user = user < authority && memchr(host, ':', user);
    for (const char *at = strchr(host, '?'); at && !in_user; at = strchr(at, '&'))
        in_user = has_prefix(++at, "password=") || has_prefix(at, "sslpassword=");
    return in_user ? "a password does not belong here: put it into ~/.pgpass, or into a file that ?passfile=FILE names"
                   : NULL;
}

/* ---- the keys ---- */

const weft_key weft__keys[] = {
    {KEY(urls, "listen", listen, NULL, "where to serve, instead of the usual places"), .option = "listen", .door = COMES_IN},
    {KEY(text, "auth", auth, "\"token\"", "what network clients must show"), .option = "auth", .choices = {"token none"},
     .door = COMES_IN},
    {KEY(text, "token_file", token_file, NULL, "the file with the token, instead of .weft/token"), .option = "token-file",
     .door = COMES_IN},
    {KEY(text, "tls.cert", tls_cert, NULL, "certificate for tls://, wss:// and https:// (PEM)"), .option = "tls-cert",
     .door = COMES_IN},
    {KEY(text, "tls.key", tls_key, NULL, "the file with the key that belongs to it"), .option = "tls-key", .door = COMES_IN},
    {KEY(text, "tls.ca", tls_ca, NULL, "clients must have a certificate signed by this"), .option = "tls-ca",
     .door = COMES_IN},
    {KEY(texts, "allowed_hosts", hosts, "[]", "Host headers to accept besides loopback's"), .option = "allow-host",
     .live = true, .door = COMES_IN},
    {KEY(texts, "allowed_origins", origins, "[]", "origins of web pages to accept besides our own"),
     .option = "allow-origin", .live = true, .door = COMES_IN},
    {KEY(flag, "insecure_listen", insecure_listen, "false", "listen beyond this machine without TLS"),
     .option = "insecure-listen", .door = COMES_IN},
    {KEY(flag, "pair.keep", pair_keep, "false", "let paired devices connect again when the hub starts"), .door = COMES_IN},
    {KEY(text, "web", web, NULL, "serve the dashboard from this folder, the source's web/, instead of from the program"),
     .door = COMES_IN},
    {KEY(named, "keys", key_rows, "{}", "keys for signed requests, by the name that requests give as key_id"),
     .shape = key_shape, .check = check_key, .door = COMES_IN},
    {KEY(list, "gates", gate_rows, "[]", "what is asked of requests, besides a token: signatures, rates, sizes, methods"),
     .shape = gate_shape, .check = check_gate, .door = COMES_IN},
    {KEY(number, "rate_per_minute", rate, "6000", "requests a minute for a network client; 0: no limit"), .option = "rate",
     .min = 0, .max = MANY, .live = true},
    LIMIT(max_body, 1, 64 * MIB, "33554432", "bytes of a message"),
    LIMIT(max_body_stranger, 1, 64 * MIB, "1048576", "the same before authentication"),
    {KEY(size, "limits.max_body_planner", max_body_planner, "1048576", "the same where the planner's dialect is spoken"),
     .min = 1, .max = 64 * MIB},
    LIMIT(max_batch, 1, MANY, "1000", "items of a batch"),
    LIMIT(max_answer, 1, 1024 * MIB, "26214400", "bytes of an answer, or of the answers of a batch"),
    LIMIT(out_soft, 1, 1024 * MIB, "1048576", "queued bytes at which streams pause and reading stops"),
    LIMIT(out_hard, 1, 1024 * MIB, "8388608", "queued bytes at which the connection is closed"),
    LIMIT(max_requests, 1, MANY, "65536", "requests of one client that are not answered yet"),
    LIMIT(max_idempotent, 1, MANY, "4096", "answers kept for a retry"),
    LIMIT_MS(idempotent_ms, DAY_MS, "600000", "how long they are kept"),
    LIMIT_MS(ping_ms, DAY_MS, "25000", "silence after which a WebSocket client is asked whether it is there"),
    LIMIT_MS(pong_ms, DAY_MS, "10000", "how long it may take to say so"),
    SERVER(size, max_connections, MANY, "10000", "connections from the network, and as many on Unix sockets"),
    SERVER(size, max_connections_per_uid, MANY, "4096", "of one user on Unix sockets"),
    SERVER(size, max_strangers, MANY, "1024", "from the network before authentication; then the oldest is dropped"),
    SERVER(size, max_strangers_per_address, MANY, "64", "the same from one address"),
    SERVER(size, max_memory, 1024 * 1024 * MIB, "536870912", "bytes in the buffers of all connections together"),
    SERVER(number, auth_ms, DAY_MS, "5000", "time to show a token"),
    SERVER(number, head_ms, DAY_MS, "10000", "time for the head of an HTTP request"),
    SERVER(number, body_ms, DAY_MS, "60000", "time in which the body of an HTTP request must bring 1 KiB a second"),
    SERVER(number, grace_ms, DAY_MS, "10000", "how long open requests and tasks may take when the hub stops"),
    {KEY(named, "agents", agent_rows, "{}", "agents by name; one with a preset's name changes the members it gives"),
     .shape = agent_shape, .check = weft__agent_check, .live = true, .door = RUNS},
    {KEY(texts, "roles.planner", planners, "[]",
         "the agents, or exec:PROGRAM ARG..., that make plans (default: default_agent)"),
     .live = true, .door = RUNS},
    {KEY(texts, "roles.executor", executors, "[]",
         "the agents, or exec:PROGRAM ARG..., that do the tasks of plans (default: default_agent)"),
     .live = true, .door = RUNS},
    {KEY(text, "default_agent", default_agent, "\"demo\"", "the agent of tasks that name none"), .live = true, .door = RUNS},
    {KEY(named, "mcp.servers", mcp_rows, "{}", "MCP servers by name: programs or URLs with tools, resources and prompts"),
     .shape = mcp_shape, .check = weft__mcp_config_check, .live = true, .door = RUNS},
    {KEY(text, "mcp.sampling", mcp_sampling, "\"ask\"",
         "when an MCP server wants to ask a model: ask (a person answers in its place) or refuse"),
     .choices = {"ask refuse"}, .live = true},
    TASKS(size, "tasks.max_running", max_running, 1, MAX_TASKS, "4", "tasks at a time"),
    TASKS(size, "tasks.max_queue", max_queue, 1, 1000000, "100", "tasks that wait"),
    TASKS(number, "tasks.timeout_ms", timeout_ms, 0, MONTH_MS, "7200000", "how long a task may take; 0: no limit"),
    TASKS(number, "tasks.idle_ms", idle_ms, 0, DAY_MS, "0",
          "how long an ACP agent's process is kept for the next task; 0: it ends with its task"),
    TASKS(number, "tasks.grace_ms", grace_ms, 1, DAY_MS, "5000",
          "between asking a task's processes to end and killing them"),
    {KEY(text, "tasks.on_restart", on_restart, "\"fail\"",
         "tasks that ran when the hub stopped or died: fail, requeue (begin again, with their open questions), or resume "
         "(go on, where the agent can; the others fail)"),
     .choices = {"fail requeue resume"}},
    {KEY(text, "tasks.isolation", isolation, "\"none\"",
         "where tasks work that do not say it: none (in the project's folder) or worktree (in a git worktree of their own)"),
     .choices = {"none worktree"}},
    {KEY(argvs, "tasks.gates", gate_lines, "{}",
         "commands that say whether a gated task is done, by name: program and arguments; status 0 passes"),
     .live = true, .door = RUNS},
    {KEY(number, "tasks.gate_timeout_ms", gate_ms, "600000", "how long a gate may run"), .min = 1, .max = DAY_MS,
     .live = true},
    {KEY(flag, "tasks.paused", paused, "false", "nothing is started; tasks wait"), .live = true},
    {KEY(list, "worktrees.setup", setup, "[]", "what runs in a new worktree before the first turn in it, in this order"),
     .shape = setup_shape, .door = RUNS},
    TASKS(number, "sessions.idle_ms", talk_idle_ms, 0, DAY_MS, "120000",
          "how long an ACP agent's process is kept after a prompt in a session that goes on, if longer"),
    TASKS(number, "runners.lease_ms", lease_ms, 1, DAY_MS, "300000",
          "how long a runner that is away keeps its tasks; then they may be tried elsewhere"),
    TASKS(number, "questions.timeout_ms", question_ms, 0, MONTH_MS, "0", "how long a question waits; 0: for ever"),
    {KEY(money, "cost.task", engine.cost.task, NULL, "what a task may cost, as its agent says; then it is ended"),
     .live = true, .door = SPENDS},
    {KEY(money, "cost.day", engine.cost.day, NULL,
         "what all tasks of a day may cost; then nothing is started until the next"),
     .live = true, .door = SPENDS},
    {KEY(number, "cost.task_tokens", engine.cost.task_tokens, "0",
         "tokens of a task, after which it is not tried again; 0: any"),
     .min = 0, .max = MANY_TOKENS, .live = true, .door = SPENDS},
    {KEY(number, "cost.day_tokens", engine.cost.day_tokens, "0",
         "tokens of a day, after which nothing is started until the next; 0: any"),
     .min = 0, .max = MANY_TOKENS, .live = true, .door = SPENDS},
    {KEY(number, "retention.days", retention_days, "30", "how long events are kept, in days that the hub ran"), .min = 1,
     .max = 36500, .live = true},
    TASKS(number, "retention.bytes", keep_bytes, MIB, MIB *MIB, "1073741824", "of all events that are kept"),
    TASKS(number, "retention.output_bytes", keep_output, 65536, MIB *MIB, "16777216", "of one session's that are kept"),
    {KEY(text, "store.kind", store_kind, "\"sqlite\"",
         "where events are kept: in a file, in memory until the hub ends, or in a database of PostgreSQL"),
     .choices = {.row = weft__store_name}, .door = WRITES},
    {KEY(text, "store.path", store_path, NULL, "sqlite: the file, instead of .weft/weft.db"), .door = WRITES},
    {KEY(text, "store.url", store_url, NULL, "postgres: the database, as postgresql://USER@HOST/NAME"), .door = WRITES,
     .refuse = weft__database_refused},
    {KEY(number, "store.standbys", store_standbys, "0",
         "postgres: standbys that must have an event before it is acknowledged; 0: as the database is set up"),
     .max = 100, .door = WRITES},
    {KEY(flag, "store.wait", store_wait, "false",
         "postgres: wait while another hub has the journal, hand clients on to it, and take over when it is gone"),
     .option = "wait"},
    {KEY(number, "store.lease_ms", store_lease_ms, "10000",
         "store.wait: a hub that cannot reach the journal ends its agents in this time, and another takes over after it"),
     .min = 1000, .max = DAY_MS},
    {KEY(text, "store.hub", store_hub, NULL, "store.wait: what other hubs call this one; default: its machine and folder")},
    {KEY(text, "store.on_damage", on_damage, "\"refuse\"",
         "a damaged database: do not start, or put it aside and begin a new one"),
     .choices = {"refuse quarantine"}, .door = WRITES},
    {KEY(text, "log.file", log.file, NULL, "where the hub logs, instead of .weft/daemon.log"), .door = WRITES},
    {KEY(text, "log.format", log.format, NULL,
         "of its lines: JSON objects, or words; default: json in a file, text on a terminal"),
     .choices = {"json text"}},
    {KEY(text, "log.level", log.level, "\"info\"", "nothing below this is logged"), .choices = {"debug info warn error"}},
    {KEY(flag, "log.requests", log_requests, "false", "log every request: its method, id, duration and outcome")},
    {KEY(flag, "git.write", git_write, "false", "clients may stage, discard and commit: the repository's hooks run then"),
     .live = true, .door = RUNS},
    {KEY(argvs, "checkers", checker_rows, "{}",
         "how validate_code checks a language, instead of Weft's own way: program and arguments; {file} is the code"),
     .live = true, .door = RUNS},
    {KEY(texts, "build.command", build_command, "[]", "how the project is built: program and arguments"), .live = true,
     .door = RUNS},
    {KEY(texts, "build.backend", build_backend, "[]", "the same for its backend"), .live = true, .door = RUNS},
    {KEY(number, "build.timeout_ms", build_ms, "600000", "how long a build may take"), .min = 1, .max = DAY_MS,
     .live = true},
    {KEY(text, "preview.root", preview_root, NULL,
         "the folder that the preview shows; default: the first of dist, build, out, public and the project's own that has "
         "an index.html"),
     .live = true},
    {KEY(flag, "changes.enabled", changes, "true", "keep what each task changes, so that it can be shown and undone")},
    {KEY(flag, "cdev.parallel", cdev_parallel, "false", "agent/run may run several agents side by side")},
    {KEY(flag, "automation.enabled", automation, "true", "rules fire, until somebody switches them off"), .live = true},
    {KEY(list, "automation.rules", rules, "[]", "when this happens, do that"), .shape = rule_shape, .check = check_rule,
     .live = true, .door = RUNS},
    {KEY(list, "automation.jobs", jobs, "[]", "when to send the event cron.fired"), .shape = job_shape, .live = true},
    {KEY(flag, "automation.watch", watch, NULL, "send events of files; default: when a rule wants them"), .live = true},
    {KEY(texts, "automation.watch_paths", watch_paths, "[]", "files and folders to watch, instead of the whole project"),
     .live = true},
    {KEY(texts, "automation.ignore", ignore, "[]", "names and patterns not to watch, besides what git ignores"),
     .live = true},
    {KEY(list, "automation.watches", watches, NULL, "which changes of what is watched are events; default: all"),
     .shape = watch_shape, .live = true},
    {KEY(flag, "automation.gitignore", gitignore, "true", "what git ignores is not watched"), .live = true},
    {KEY(number, "automation.settle_ms", settle_ms, "150", "changes of one file within this time are one event"), .min = 1,
     .max = 3600000, .live = true},
    {KEY(number, "aiwg.heartbeat_ms", aiwg_beat_ms, "30000", "with --aiwg: how often state.json and heartbeat are written"),
     .min = 1, .max = MONTH_MS},
    {KEY(flag, "aiwg.job_actions", aiwg_job_actions, "false",
         "with --aiwg: jobs whose action is one of AIWG's (doctor, validate-metadata, doc-sync, test-sync) start a loop")},
    {KEY(number, "aiwg.max_loops", loops.max_running, "4", "with --aiwg: loops at a time"), .min = 1, .max = 1000},
    {KEY(number, "aiwg.max_loop_queue", loops.max_queue, "20", "with --aiwg: loops that wait"), .min = 1, .max = 10000},
    {KEY(number, "aiwg.max_restarts", loops.max_restarts, "3",
         "with --aiwg: failures of a loop within the window after which it is not started again"),
     .min = 1, .max = 1000},
    {KEY(number, "aiwg.restart_window_ms", loops.window_ms, "300000", "with --aiwg: that window"), .min = 1,
     .max = MONTH_MS},
    {KEY(number, "aiwg.failure_threshold", loops.threshold, "5",
         "with --aiwg: failures in a row after which no loop is started for a while"),
     .min = 1, .max = 1000},
    {KEY(number, "aiwg.cooldown_ms", loops.cooldown_ms, "120000", "with --aiwg: that while"), .min = 1, .max = MONTH_MS},
    {KEY(text, "aiwg.web", aiwg_web, NULL, "with --aiwg: where AIWG's web interface is served: http://HOST:PORT/"),
     .door = COMES_IN},
    {KEY(text, "aiwg.web_token", aiwg_web_token, NULL, "with --aiwg: the token that it asks for"), .door = COMES_IN},
    {0},
};
_Static_assert(sizeof weft__keys / sizeof weft__keys[0] <= WEFT_MAX_KEYS, "more keys than a config has room for");

bool weft__key_flag(const weft_serve_settings *settings, const char *path) {
    for (const weft_key *key = weft__keys; key->path; key++)
        if (key->kind == WEFT_KEY_flag && strcmp(key->path, path) == 0)
            return *(const bool *) ((const char *) settings + key->offset);
    return false;
}

weft_bytes weft__choice(const weft_choices *choices, size_t index) {
    if (choices->row) {
        const char *name = choices->row(index);
        return (weft_bytes){name ? name : "", name ? strlen(name) : 0};
    }
    const char *at = choices->words ? choices->words : "";
    while (index-- && *at) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return (weft_bytes){at, strcspn(at, " ")};
}

bool weft__is_choice(const weft_choices *choices, const char *text) {
    weft_bytes word;
    for (size_t i = 0; (word = weft__choice(choices, i)).len; i++)
        if (word.len == strlen(text) && memcmp(word.data, text, word.len) == 0)
            return true;
    return false;
}

void weft__choices_text(const weft_choices *choices, char ret[WEFT_KEY_TEXT]) {
    size_t used = 0;
    weft_bytes word;
    for (size_t i = 0; (word = weft__choice(choices, i)).len && used < WEFT_KEY_TEXT; i++)
        used +=
            (size_t) snprintf(ret + used, WEFT_KEY_TEXT - used, "%s\"%.*s\"", used ? " or " : "", (int) word.len, word.data);
}

size_t weft__choices_values(const weft_choices *choices, weft_val ret[WEFT_MAX_CHOICES]) {
    size_t count = 0;
    weft_bytes word;
    while (count < WEFT_MAX_CHOICES && (word = weft__choice(choices, count)).len)
        ret[count++] = weft_strn(word.data, word.len);
    return count;
}

void weft__key_wants(const weft_key *key, char ret[WEFT_KEY_TEXT]) {
    static const char *const wants[] = {
        [WEFT_KEY_text] = "a string",
        [WEFT_KEY_flag] = "true or false",
        [WEFT_KEY_texts] = "an array of strings",
        [WEFT_KEY_urls] = "an array of URLs",
        [WEFT_KEY_named] = "an object of objects",
        [WEFT_KEY_list] = "an array of objects",
        [WEFT_KEY_money] = "an amount and a currency (\"2.50 USD\")",
        [WEFT_KEY_argvs] = "an object of arrays of strings",
    };
    if (weft__choice(&key->choices, 0).len)
        weft__choices_text(&key->choices, ret);
    else if (key->kind == WEFT_KEY_number || key->kind == WEFT_KEY_size)
        snprintf(ret, WEFT_KEY_TEXT, "a whole number from %lld to %lld", (long long) key->min, (long long) key->max);
    else
        snprintf(ret, WEFT_KEY_TEXT, "%s", wants[key->kind]);
}

void weft__key_variable(const weft_key *key, char ret[WEFT_KEY_TEXT]) {
    snprintf(ret, WEFT_KEY_TEXT, "WEFT_%s", key->path);
    for (char *p = ret; *p; p++)
        *p = *p == '.' ? '_' : (char) toupper((unsigned char) *p);
}

/* Putting the hub together. */
#include "serve_hub.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acp_http.h"
#include "alloc.h"
#include "cdev_changes.h"
#include "cdev_old.h"
#include "cdev_rest.h"
#include "config.h"
#include "daemon_folder.h"
#include "dashboard_methods.h"
#include "descent.h"
#include "event_stream.h"
#include "failure.h"
#include "hub_clients.h"
#include "hub_methods.h"
#include "lead.h"
#include "loop.h"
#include "mcp_engine.h"
#include "metrics.h"
#include "passages.h"
#include "process.h"
#include "relay.h"
#include "reply.h"
#include "request_log.h"
#include "roles.h"
#include "serve_aiwg.h"
#include "serve_harness.h"
#include "serve_memory.h"
#include "serve_news.h"
#include "transport.h"
#include "trust.h"
#include "wiring.h"

/* Those of the dialects, and the log's. */
#define MAX_GATES 16
/* What the server needs to say good-bye after the last task has ended, out of the time a stop may take. */
#define GOOD_BYE_MS 2000
/* Of a plan's step whose agent crashed, or whose holder has left: as often as a task for an executor. */
#define PLAN_RETRIES 3

struct weft_serve_hub {
    weft_serve_hub_opts opts;
    weft_store *store;
    weft_engine *engine;
    weft_automation *automation;
    weft_plans *plans;
    bool plans_ready;
    weft_serve_harness harness;
    weft_mcp_engine *mcp; /* NULL: not started */
    weft_dialects *dialects;
    weft_files *files;
    weft_git *git;
    weft_checkers *checkers;
    char checks[32];           /* the folder of this run for them; "": it is in the daemon's */
    weft_snapshots *snapshots; /* NULL: none are taken */
    weft_cdev_changes *changes;
    weft_agents agents; /* the lists stay when the configuration is read again, this does not */
    weft_hub hub;
    weft_hub_host host;
    weft_acp_http *acp;
    weft_serve_aiwg *aiwg;
    weft_serve_news news;
    weft_serve_memory memory;
    char folder[PATH_MAX];
    weft_gate request_log, caller_of_relay;
    weft_relay_hello hello;
    const weft_gate *gates[MAX_GATES + 2];
    bool ready;
    int ready_r;
    weft_later stop; /* asked for by a client, whose answer goes out first */
    bool stop_force;
};

/* ---- what only the program knows ---- */

static int64_t uptime_s(void *ctx) {
    const weft_serve_hub *self = ctx;
    return (weft__clock_ns() - self->opts.daemon->started_ns) / 1000000000;
}

static int hub_about(void *ctx, char **ret, size_t *ret_len) {
    const weft_serve_hub *self = ctx;
    return weft__daemon_about(self->opts.daemon, ret, ret_len);
}

static void stop_now(weft_later *later) {
    weft_serve_hub *self = WEFT_CONTAINER(later, weft_serve_hub, stop);
    self->opts.on_stop(self->opts.ctx, self->stop_force);
}

static void stop_soon(void *ctx, bool force) {
    weft_serve_hub *self = ctx;
    self->stop_force |= force;
    weft__later(self->opts.loop, &self->stop);
}

/* The first client that may show the project makes us watch it: nobody else needs that. */
static void start_changes(void *ctx) {
    const weft_serve_hub *self = ctx;
    if (self->changes && !self->hub.stopping)
        weft__cdev_changes_start(self->changes);
}

/* ---- agents among the callers ---- */

/* The scopes of a connection that was an agent's when it was made. */
static const char agent_scopes[] = WEFT_READ " " WEFT_WORK " agent";

static bool is_network(const weft_identity *who) {
    return who->port > 0 && *who->address;
}

/* A Unix socket was judged when it was connected: a person's process that has ended since then, and closed the socket behind
 * its request, is a person's. Who holds the other end of a network connection can only be asked while somebody does. */
static bool is_agent(void *ctx, const weft_identity *who) {
    (void) ctx;
    if (is_network(who))
        return weft__connection_of_agent(who->address, who->port) != 0;
    return strcmp(who->scopes, agent_scopes) == 0;
}

/* Whoever cannot be found any more counts as an agent: a process that connects, hands its socket on and ends has its
 * reasons. A peer whose number is 0 is beyond our namespace of processes, where no descendant of ours can be. */
static bool is_connected_by_agent(const weft_identity *who) {
    const weft_transport *transport = weft__transport_named(NULL, who->transport);
    if (!transport || !(transport->scheme.flags & WEFT_KNOWS_USER) || who->pid == 0)
        return false;
    return who->pid < 0 || weft__descends_from_guard((pid_t) who->pid) != 0;
}

/* A Unix socket's credentials are those of the process that connected. It is looked at now, while it is there, because its
 * number may be another's later. */
static int know_agent(weft_peer *peer) {
    weft_identity who = *weft_peer_identity(peer);
    if (!is_connected_by_agent(&who))
        return 0;
    who.scopes = agent_scopes;
    return weft_peer_set_identity(peer, &who);
}

static void warn_of_note(void *ctx, const char *line) {
    const weft_serve_hub *self = ctx;
    weft__warn(self->opts.app, "weft serve: %s", line);
}

/* ---- opening ---- */

static const char *served_store_path(const weft_serve_hub *self) {
    const char *told = self->opts.how->store_path;
    return told ? told : self->opts.app->layout->store;
}

/* For people. */
static const char *served_store_name(const weft_serve_hub *self) {
    return weft__store_has_files(self->opts.kind) ? served_store_path(self) : "the journal on PostgreSQL";
}

static weft_exit explain_store(const weft_serve_hub *self, int r, const char *why) {
    const char *path = served_store_name(self);
    if (r == -EKEYREJECTED)
        return weft__fail(self->opts.app, WEFT_UNAUTHORISED, WEFT_TRUST_NEXT, "%s: %s", path, why);
    if (r == -EUCLEAN && !weft__store_has_files(self->opts.kind))
        return weft__fail(self->opts.app, WEFT_FAILED, NULL, "%s: %s", path, why);
    if (r == -EUCLEAN)
        return weft__fail(self->opts.app, WEFT_FAILED,
                          "\"weft doctor\" looks at it closely. To begin anew and keep the damaged files beside it, set "
                          "store.on_damage\nto \"quarantine\".",
                          "%s is damaged: %s", path, why);
    if (r == -EBUSY)
        return weft__fail(self->opts.app, WEFT_BUSY, NULL, "%s: %s", path, why);
    return weft__fail(self->opts.app, WEFT_FAILED, NULL, "%s: %s", path, *why ? why : weft_strerror(r));
}

static weft_exit fail_untrusted(const weft_serve_hub *self, int r, const char *why) {
    bool strange = r == -EKEYREJECTED;
    return weft__fail(self->opts.app, strange ? WEFT_UNAUTHORISED : WEFT_FAILED,
                      strange ? WEFT_TRUST_NEXT : WEFT_TRUST_PLACE, "%s", why);
}

/* Only the journal on record is opened, and whatever opening makes of it is on record before anything of it runs. */
static weft_exit open_recorded(weft_serve_hub *self, weft_store_opts *opts, char *why) {
    const weft_layout *layout = self->opts.app->layout;
    char expected[WEFT_EPOCH + 1], trouble[WEFT_TRUST_WHY] = "";
    int r = weft__trust_open_begin(layout, opts->path, expected, trouble);
    if (r < 0)
        return fail_untrusted(self, r, trouble);
    opts->expect = expected;
    int opened = weft__store_open(self->opts.kind, opts, &self->store, why);
    r = weft__trust_open_end(layout, opts->path, opened < 0 ? NULL : weft__store_epoch(self->store), trouble);
    if (opened < 0)
        return explain_store(self, opened, why);
    return r < 0 ? fail_untrusted(self, r, trouble) : WEFT_DONE;
}

static weft_exit open_store(weft_serve_hub *self) {
    char why[WEFT_STORE_WHY] = "", mark[64];
    const weft_serve_settings *how = self->opts.how;
    snprintf(mark, sizeof mark, "%s/%s", self->opts.app->layout->home, self->opts.kind->name);
    weft_store_opts opts = {.path = served_store_path(self),
                            .url = how->store_url,
                            .standbys = (int) how->store_standbys,
                            .on_damage = how->quarantine ? WEFT_DAMAGE_QUARANTINE : WEFT_DAMAGE_REFUSE};
    weft_exit status = WEFT_DONE;
    self->store = self->opts.store;
    if (self->store)
        return WEFT_DONE;
    if (weft__store_has_files(self->opts.kind))
        status = open_recorded(self, &opts, why);
    else {
        opts.mark = weft__store_lasts(self->opts.kind) && self->opts.daemon->held ? mark : NULL;
        int r = weft__store_open(self->opts.kind, &opts, &self->store, why);
        status = r < 0 ? explain_store(self, r, why) : WEFT_DONE;
    }
    if (status)
        return status;
    if (*why)
        weft__warn(self->opts.app, "weft serve: %s", why);
    return WEFT_DONE;
}

/* Its tasks run elsewhere: who took them for their own would end them. */
static weft_exit refuse_copy(const weft_serve_hub *self) {
    int r = weft__relay_is_copy(self->store);
    if (r > 0)
        return weft__fail(self->opts.app, WEFT_USAGE, "Start it with --relay, or another hub in a folder of its own.",
                          "%s is a relay's copy of other hubs", served_store_name(self));
    return r < 0 ? weft__fail(self->opts.app, WEFT_FAILED, NULL, "the journal: %s", weft_strerror(r)) : WEFT_DONE;
}

/* A stop has so much time in all. The tasks get what is not needed for the good-bye: most of it to go on, and the rest,
 * but not more than their grace time, to end when they are asked to. */
static weft_engine_limits limits_of(const weft_serve_hub *self, const weft_serve_settings *how) {
    const weft_serve_settings *typed = self->opts.app->settings;
    weft_engine_limits limits = how->engine;
    if (typed->hub_url) { /* what the hub has not heard yet must be kept: all of it, not the end of each session */
        limits.max_running = typed->runner_slots ? (size_t) typed->runner_slots : limits.max_running;
        limits.keep_output = limits.keep_bytes ? limits.keep_bytes : (uint64_t) 1 << 30;
    }
    int64_t grace_ms = how->server.grace_ms ? how->server.grace_ms : WEFT_SERVE_GRACE_MS;
    int64_t tasks_ms = grace_ms > 2 * GOOD_BYE_MS ? grace_ms - GOOD_BYE_MS : grace_ms / 2 + 1;
    int64_t end_ms = tasks_ms * 3 / 8 + 1, asked_ms = limits.grace_ms ? limits.grace_ms : end_ms;
    limits.drain_kill_ms = asked_ms < end_ms ? asked_ms : end_ms;
    limits.drain_ms = tasks_ms > limits.drain_kill_ms ? tasks_ms - limits.drain_kill_ms : 1;
    return limits;
}

static void on_undone(void *ctx, const weft_undone *undone) {
    const weft_serve_hub *self = ctx;
    weft__task_undone(self->engine, undone);
}

static void on_merged(void *ctx, const weft_merged *merged) {
    const weft_serve_hub *self = ctx;
    weft__task_merged(self->engine, merged);
}

/* Without them tasks run all the same, and their methods say what is missing. */
static void make_snapshots(weft_serve_hub *self) {
    char state[2 * PATH_MAX];
    snprintf(state, sizeof state, "%s/%s", self->folder, self->opts.app->layout->home);
    weft_snapshots_opts opts = {
        .loop = self->opts.loop,
        .folder = self->folder,
        .state = state,
        .mark = weft__store_epoch(self->store),
        .set_umask = true,
        .umask = weft__process_umask(),
        .on_undone = on_undone,
        .on_merged = on_merged,
        .ctx = self,
    };
    bool wanted = self->opts.how->changes && self->opts.daemon->held;
    int r = wanted ? weft__snapshots_new(&opts, &self->snapshots) : 0;
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: changes: %s", weft_strerror(r));
}

/* Which MCP servers an agent gets with every session. */
static int list_agent_servers(void *ctx, const char *agent, weft_buf *out) {
    const weft_serve_hub *self = ctx;
    return self->hub.mcp ? weft__mcp_for_agent(self->hub.mcp, agent, out) : 0;
}

static int make_engine(weft_serve_hub *self) {
    const weft_serve_settings *how = self->opts.how;
    weft_engine_opts opts = {.loop = self->opts.loop,
                             .store = self->store,
                             .agents = &self->agents,
                             .drivers = weft__drivers,
                             .folder = getcwd(self->folder, sizeof self->folder),
                             .passages = weft__passages,
                             .passage_ctx = &self->hub,
                             .early = true,
                             .copy = self->opts.relay != NULL,
                             .name = self->opts.name,
                             .requeue = how->requeue,
                             .resume = how->resume,
                             .isolate = how->isolation && strcmp(how->isolation, "worktree") == 0,
                             .setup = how->setup.text ? &how->setup : NULL,
                             .limits = limits_of(self, how),
                             .agent_servers = list_agent_servers,
                             .on_note = warn_of_note,
                             .ctx = self};
    if (!opts.folder)
        return -errno;
    self->agents = how->agents;
    if (!self->opts.relay)
        make_snapshots(self);
    opts.snapshots = self->snapshots;
    int r = weft__engine_new(&opts, &self->engine);
    return r < 0 ? r : weft__dialects_new(weft__dialect_list, &self->hub, NULL, &self->dialects);
}

static bool read_flag(void *ctx, const char *name) {
    const weft_serve_hub *self = ctx;
    return weft__key_flag(self->opts.how, name);
}

/* The database and what lies beside it. */
static uint64_t store_size(void *ctx) {
    static const char *const ends[] = {"", "-wal", "-shm"};
    char path[PATH_MAX];
    struct stat info;
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(path, sizeof path, "%s%s", served_store_path(ctx), ends[i]);
        bytes += stat(path, &info) == 0 ? (uint64_t) info.st_size : 0;
    }
    return bytes;
}

static void count_gates(void *ctx, weft_gate_counts *ret) {
    const weft_serve_hub *self = ctx;
    weft__serve_gates_counts(self->opts.gates, ret);
}

static int ask_gates_of_path(void *ctx, const weft_identity *who, const char *method, int64_t *ret_wait_ms) {
    const weft_serve_hub *self = ctx;
    return weft__serve_gates_path(self->opts.gates, who, method, ret_wait_ms);
}

weft_exit weft__serve_hub_open(const weft_serve_hub_opts *opts, weft_serve_hub **ret) {
    weft_serve_hub *self = weft__zalloc(NULL, sizeof *self);
    if (!self) {
        if (opts->store)
            weft__store_close(opts->store);
        return weft__fail(opts->app, WEFT_FAILED, NULL, "out of memory");
    }
    self->opts = *opts;
    self->host = (weft_hub_host){.version = weft_version(),
                                 .started_at = opts->daemon->started_at,
                                 .uptime_s = uptime_s,
                                 .about = hub_about,
                                 .stop = stop_soon,
                                 .is_agent = is_agent,
                                 .show = start_changes,
                                 .flag = read_flag,
                                 .store_size = weft__store_has_files(opts->kind) ? store_size : NULL,
                                 .gates = count_gates,
                                 .path = ask_gates_of_path,
                                 .ctx = self};
    self->hub.host = &self->host;
    self->request_log = weft__request_log(&opts->daemon->log);
    weft__later_init(&self->stop, stop_now);
    weft_exit status = open_store(self);
    if (status == WEFT_DONE)
        status = opts->relay ? weft__relay_claim(opts->relay, self->store) : refuse_copy(self);
    int r = status ? 0 : make_engine(self);
    if (r < 0)
        status = weft__fail(opts->app, WEFT_FAILED, NULL, "%s", weft_strerror(r));
    self->hub.engine = self->engine;
    if (status)
        weft__serve_hub_close(self);
    else
        *ret = self;
    return status;
}

/* A relay asks in the name of its own callers. Who they were is kept beside its name, which stays in front: nobody can pass
 * for another by this. */
static int note_caller_of_relay(void *ctx, const weft_gate_request *request) {
    char who[WEFT_WHO], name[2 * WEFT_WHO];
    const char *scope = request->method ? request->method->scope : NULL;
    (void) ctx;
    if (!scope || strcmp(scope, WEFT_WORK) != 0 || weft_typeof(&request->params) != WEFT_OBJECT)
        return 0;
    weft_json meta = weft_get(&request->params, "_meta");
    const char *caller = meta.text ? weft_get_str(&meta, "weft/for", NULL) : NULL;
    if (!caller)
        return 0;
    size_t len = strnlen(caller, 64);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char) caller[i] < ' ' || caller[i] == 0x7f)
            return 0;
    weft_identity identity = *request->identity;
    snprintf(name, sizeof name, "%.60s for %.*s", weft__who(&identity, who), (int) len, caller);
    identity.name = name;
    return weft_req_set_identity(request->req, &identity);
}

/* The log's comes first, and hears of what the others refuse. A hub that logs no requests has none. */
const weft_gate *const *weft__serve_hub_gates(weft_serve_hub *self) {
    const weft_gate *const *from = weft__dialects_gates(self->dialects);
    size_t count = 0;
    if (self->opts.how->log_requests)
        self->gates[count++] = &self->request_log;
    for (; *from && count < MAX_GATES; from++)
        self->gates[count++] = *from;
    self->caller_of_relay = (weft_gate){.name = "caller", .before = note_caller_of_relay, .flags = WEFT_ROW_CHANGES};
    self->gates[count++] = self->opts.relay ? weft__relay_gate(self->opts.relay) : &self->caller_of_relay;
    self->gates[count] = NULL;
    return self->gates;
}

/* A path has a meaning only where it is a URL's. */
const char *weft__serve_hub_dialect(const weft_serve_hub *self, const char *url) {
    weft_url parsed;
    if (weft__transport_parse(NULL, url, NULL, &parsed, NULL) < 0)
        return "";
    const char *path = parsed.scheme->form == WEFT_URL_WEB ? parsed.path : "";
    const char *dialect = weft__dialects_endpoint(self->dialects, parsed.scheme, path);
    weft__url_done(&parsed, NULL);
    return dialect;
}

const weft_method *weft__serve_hub_methods(const weft_serve_hub *self) {
    return weft__dialects_methods(self->dialects);
}

/* ---- beginning ---- */

static void on_engine_ready(void *ctx, int r) {
    weft_serve_hub *self = ctx;
    self->ready = true;
    self->ready_r = r;
}

static int start_engine(weft_serve_hub *self) {
    int r = weft__hub_clients_new(&self->hub, self->dialects, &self->hub.clients);
    if (r >= 0)
        r = weft__hub_metrics_new(&self->hub);
    if (r >= 0)
        r = weft__loop_measure(self->opts.loop);
    if (r >= 0)
        r = weft__engine_start(self->engine, on_engine_ready, self);
    while (r >= 0 && !self->ready)
        if (weft_loop_once(self->opts.loop, true) < 0)
            r = -EIO;
    return r < 0 ? r : self->ready_r;
}

/* What cannot start is noted and answered for; the daemon works without. */
static void start_automation(weft_serve_hub *self, const weft_serve_settings *how) {
    weft_automation_opts opts = weft__serve_automation(how);
    opts.on_note = warn_of_note;
    opts.ctx = self;
    opts.aiwg = self->opts.app->layout->aiwg;
    self->hub.automation = NULL;
    weft__automation_free(self->automation);
    self->automation = NULL;
    int r = weft__automation_new(self->engine, &opts, &self->automation);
    self->hub.automation_failed = r;
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: automation: %s", weft_strerror(r));
    else
        self->hub.automation = self->automation;
}

static bool refuses_sampling(const weft_serve_settings *how) {
    return how->mcp_sampling && strcmp(how->mcp_sampling, "refuse") == 0;
}

static void start_mcp(weft_serve_hub *self) {
    const weft_serve_settings *how = self->opts.how;
    int r = weft__mcp_engine_new(self->engine, &how->mcp, refuses_sampling(how), &self->mcp);
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: MCP servers: %s", weft_strerror(r));
    else
        self->hub.mcp = weft__mcp_engine_mcp(self->mcp);
}

static void on_plans_ready(void *ctx, int r) {
    weft_serve_hub *self = ctx;
    self->plans_ready = true;
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: plans: %s", weft_strerror(r));
}

/* They are read before anybody can ask for them; those that ran go on. */
static void start_plans(weft_serve_hub *self) {
    weft_plans_opts opts = {
        .engine = self->engine, .role = WEFT_ROLE_EXECUTOR, .retries = PLAN_RETRIES, .on_note = warn_of_note, .ctx = self};
    int r = weft__plans_new(&opts, on_plans_ready, self, &self->plans);
    while (r >= 0 && !self->plans_ready)
        if (weft_loop_once(self->opts.loop, true) < 0)
            r = -EIO;
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: plans: %s", weft_strerror(r));
    self->hub.plans = self->plans;
}

/* Without them the hub still does its work: their methods say what is missing. */
static void serve_folder(weft_serve_hub *self) {
    weft_files_opts files = {.loop = self->opts.loop, .folder = self->folder, .umask = weft__process_umask()};
    weft_git_opts git = {
        .loop = self->opts.loop,
        .folder = self->folder,
        .may_write = read_flag(self, "git.write"),
        .set_umask = true,
        .umask = weft__process_umask(),
    };
    int r = weft__cdev_changes_new(&self->hub, warn_of_note, self, &self->changes);
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: watching: %s", weft_strerror(r));
    r = weft__files_new(&files, &self->files);
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: files: %s", weft_strerror(r));
    r = weft__git_new(&git, &self->git);
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: git: %s", weft_strerror(r));
    self->hub.files = self->files;
    self->hub.git = self->git;
}

/* What is to be checked lies in the daemon's own folder meanwhile. What an earlier daemon left there is removed. */
/* Where the copies of what is checked lie. A hub on standard input and output has no folder of its own: then it is one for
 * this run. */
static int find_checks_folder(weft_serve_hub *self, char ret[PATH_MAX]) {
    char home[PATH_MAX];
    int n = snprintf(home, sizeof home, "%s/%s", self->folder, self->opts.app->layout->home);
    if (n < 0 || (size_t) n >= sizeof home)
        return -ENAMETOOLONG;
    if (access(home, F_OK) != 0) {
        snprintf(self->checks, sizeof self->checks, "/tmp/weft-checks-XXXXXX");
        if (!mkdtemp(self->checks)) {
            *self->checks = '\0';
            return -errno;
        }
    }
    n = snprintf(ret, PATH_MAX, "%s/checks", *self->checks ? self->checks : home);
    return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static void leave_checks_folder(const weft_serve_hub *self) {
    char folder[sizeof self->checks + 8];
    if (!*self->checks)
        return;
    snprintf(folder, sizeof folder, "%s/checks", self->checks);
    rmdir(folder);
    rmdir(self->checks);
}

static void serve_checkers(weft_serve_hub *self) {
    char folder[PATH_MAX];
    weft_checkers_opts opts = {.loop = self->opts.loop, .folder = folder, .project = self->folder};
    int r = find_checks_folder(self, folder);
    if (r >= 0)
        r = weft__checkers_new(&opts, &self->checkers);
    if (r >= 0)
        r = weft__checkers_set(self->checkers, &self->opts.how->checker_rows);
    if (r < 0)
        weft__warn(self->opts.app, "weft serve: checkers: %s", weft_strerror(r));
    self->hub.checkers = self->checkers;
}

/* Whether work may be sent here: for whoever balances load or waits for a start. /health only says that somebody is there.
 */
static void on_readyz(weft_http *http, void *ctx) {
    static const char ready[] = "{\"status\":\"ready\"}", stopping[] = "{\"status\":\"stopping\"}";
    const weft_serve_hub *self = ctx;
    char unable[256];
    int r = weft__engine_trouble(self->engine);
    int n = snprintf(unable, sizeof unable, "{\"status\":\"storageFailed\",\"error\":\"%.200s\"}", weft_strerror(r));
    if (self->hub.stopping)
        weft_http_answer(http, 503, "application/json", (weft_bytes){stopping, sizeof stopping - 1});
    else if (r < 0)
        weft_http_answer(http, 503, "application/json", (weft_bytes){unable, (size_t) n});
    else
        weft_http_answer(http, 200, "application/json", (weft_bytes){ready, sizeof ready - 1});
}

static int add_routes(weft_serve_hub *self, weft_server *server) {
    int r = weft_server_route(server, "GET", "/readyz", on_readyz, self);
    if (r >= 0)
        r = weft__event_stream_route(&self->hub, server);
    if (r >= 0)
        r = weft__metrics_route(&self->hub, server);
    if (r >= 0)
        r = weft__cdev_rest_routes(&self->hub, server);
    if (r >= 0)
        r = weft__acp_http_new(&self->hub, server, &self->acp);
    return r < 0 ? r : weft_server_public(server, "/readyz");
}

static weft_exit start_aiwg(weft_serve_hub *self) {
    int r = weft__serve_aiwg_new(&self->hub, self->opts.daemon, self->opts.how, &self->aiwg);
    return r < 0 ? weft__fail(self->opts.app, WEFT_FAILED, NULL, "%s", weft_strerror(r)) : WEFT_DONE;
}

/* What a relay has none of: its hubs have it. */
static void start_work(weft_serve_hub *self) {
    serve_folder(self);
    serve_checkers(self);
    start_automation(self, self->opts.how);
    start_plans(self);
    weft__serve_harness_start(&self->harness, self->opts.how);
    start_mcp(self);
}

weft_exit weft__serve_hub_start(weft_serve_hub *self, weft_server *server) {
    self->hub.server = server;
    self->hub.service = weft_server_service(server);
    int r = add_routes(self, server);
    if (r < 0)
        return weft__fail(self->opts.app, WEFT_FAILED, NULL, "the HTTP routes: %s", weft_strerror(r));
    r = start_engine(self);
    if (r < 0)
        return weft__fail(self->opts.app, WEFT_FAILED, "\"weft doctor\" looks at the store.", "the journal: %s",
                          weft_strerror(r));
    self->harness = (weft_serve_harness){.hub = &self->hub, .on_note = warn_of_note, .ctx = self};
    if (weft__health_new(&self->hub) < 0)
        weft__warn(self->opts.app, "weft serve: health.history: %s", weft_strerror(-ENOMEM));
    if (!self->opts.relay)
        start_work(self);
    weft__serve_memory_start(&self->memory, self->opts.loop, self->engine);
    if (!self->opts.app->layout->aiwg) /* AIWG's log has lines of its own */
        weft__serve_news_start(&self->news, self->opts.daemon, self->engine);
    return start_aiwg(self);
}

const weft_agent *weft__serve_hub_agent(const weft_serve_hub *self) {
    return weft__agent_default(self->engine);
}

weft_engine *weft__serve_hub_engine(const weft_serve_hub *self) {
    return self->engine;
}

uint64_t weft__serve_hub_running(const weft_serve_hub *self) {
    return weft__task_counts(self->engine).of[WEFT_TASK_RUNNING];
}

void weft__serve_hub_ready(weft_serve_hub *self) {
    if (self->aiwg)
        weft__serve_aiwg_ready(self->aiwg);
}

void weft__serve_hub_opened(weft_serve_hub *self, weft_peer *peer) {
    if (know_agent(peer) < 0) /* memory is short, and it would pass for a person */
        weft_peer_free(peer);
    else {
        if (strcmp(weft_peer_identity(peer)->dialect, weft__cdev.name) == 0)
            start_changes(self);
        weft__hub_clients_open(self->hub.clients, peer);
    }
}

bool weft__serve_hub_raw(weft_serve_hub *self, weft_peer *peer, weft_bytes body) {
    return weft__cdev_old_take(&self->hub, peer, body);
}

void weft__serve_hub_closed(weft_serve_hub *self, weft_peer *peer) {
    weft__hub_clients_close(self->hub.clients, peer);
}

void weft__serve_hub_drained(weft_serve_hub *self, weft_peer *peer) {
    weft__hub_clients_drain(self->hub.clients, peer);
}

void weft__serve_hub_set(weft_serve_hub *self, const weft_serve_settings *how) {
    weft_engine_limits limits = limits_of(self, how);
    self->agents = how->agents;
    weft__engine_set(self->engine, &self->agents, &limits);
    if (self->git)
        weft__git_set_may_write(self->git, how->git_write);
    if (self->checkers && weft__checkers_set(self->checkers, &how->checker_rows) < 0)
        weft__warn(self->opts.app, "weft serve: checkers: %s", weft_strerror(-ENOMEM));
    if (!self->opts.relay)
        weft__serve_harness_set(&self->harness, how);
    if (self->hub.mcp && weft__mcp_set(self->hub.mcp, &how->mcp, refuses_sampling(how)) < 0)
        weft__warn(self->opts.app, "weft serve: MCP servers: %s", weft_strerror(-ENOMEM));
    if (how->automation_changed && !self->opts.relay) /* otherwise rules go on resting, and nothing is watched anew */
        start_automation(self, how);
}

/* ---- ending ---- */

void weft__serve_hub_stop(weft_serve_hub *self, bool force, void (*on_stopped)(void *ctx), void *ctx) {
    self->hub.stopping = true;
    if (self->aiwg)
        weft__serve_aiwg_stop(self->aiwg);
    self->hub.automation = NULL;
    self->automation = weft__automation_free(self->automation);
    weft__mcp_engine_stop(self->mcp);
    weft__engine_stop(self->engine, force, on_stopped, ctx);
}

void weft__serve_hub_resign(weft_serve_hub *self) {
    weft__store_resign(self->store);
}

weft_store *weft__serve_hub_store(const weft_serve_hub *self) {
    return self->store;
}

void weft__serve_hub_leave(weft_serve_hub *self) {
    if (self->acp)
        weft__acp_connections_end(self->acp);
}

weft_serve_hub *weft__serve_hub_close(weft_serve_hub *self) {
    if (!self)
        return NULL;
    weft__later_cancel(&self->stop);
    if (self->engine)
        weft__health_free(&self->hub);
    self->hub.service = NULL; /* it has gone */
    self->hub.server = NULL;
    weft__serve_news_end(&self->news);
    weft__serve_memory_end(&self->memory);
    self->aiwg = weft__serve_aiwg_free(self->aiwg);
    weft__cdev_changes_free(self->changes);
    weft__files_free(self->files); /* before the clients, who free what waits for them */
    weft__git_free(self->git);
    weft__checkers_free(self->checkers);
    leave_checks_folder(self);
    weft__serve_harness_end(&self->harness);
    weft__snapshots_free(self->snapshots);
    weft__acp_http_free(self->acp);
    self->hub.mcp = NULL;
    weft__mcp_engine_close(self->mcp);
    weft__hub_clients_free(self->hub.clients);
    weft__hub_journal_free(&self->hub);
    weft__hub_metrics_free(&self->hub);
    weft__automation_free(self->automation);
    self->hub.plans = weft__plans_free(self->plans);
    weft__engine_free(self->engine);
    weft__mcp_engine_free(self->mcp);
    weft__dialects_free(self->dialects);
    weft__store_close(self->store);
    return weft__free(NULL, self);
}

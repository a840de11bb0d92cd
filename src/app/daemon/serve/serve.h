/* What the files of "weft serve" share: its options, the rules an endpoint must keep, the methods it has. */
#ifndef WEFT_SERVE_H
#define WEFT_SERVE_H

#include "aiwg_loops.h"
#include "app.h"
#include "automation.h"
#include "daemon_log.h"
#include "endpoint.h"
#include "engine.h"
#include "mcp.h"

typedef struct weft_serve_settings {
    weft_texts listen;
    bool stdio;       /* typed: one more place to listen at, which is there already for whoever reads these */
    const char *auth; /* NULL: token */
    const char *token_file;
    const char *tls_cert, *tls_key, *tls_ca;
    weft_texts hosts, origins;
    bool insecure_listen;
    bool pair_keep;          /* paired devices can come in again after a restart */
    const char *web;         /* the dashboard's files are in this folder; NULL: in the program */
    weft_json key_rows;      /* who may sign requests: "keys" */
    weft_json gate_rows;     /* what is asked of requests: "gates" */
    size_t max_body_planner; /* bytes of a message where the planner's dialect is spoken */
    int64_t rate;            /* requests a minute; in what was typed, 0: not given */
    bool no_rate;
    weft_limits limits;      /* of the service */
    weft_server_opts server; /* its limits */
    bool aiwg;               /* be what AIWG's own programs look for */

    /* The hub. What is in engine is as the engine wants it, so that it can be handed on. */
    weft_engine_limits engine;
    weft_agents agents; /* presets and configured ones; filled by serve_config.c, stays for the config's life */
    weft_json agent_rows;
    const char *default_agent;
    weft_mcp_specs mcp; /* the MCP servers; filled by serve_config.c, stays for the config's life */
    weft_json mcp_rows;
    const char *mcp_sampling;       /* "ask" or "refuse" */
    weft_texts planners, executors; /* who holds the roles */
    bool paused;                    /* nothing is started */
    const char *on_restart;         /* "fail", "requeue" or "resume" */
    const char *isolation;          /* "none" or "worktree" */
    weft_json setup;                /* of worktrees; absent: nothing */
    bool requeue, resume;           /* the same */
    int64_t retention_days;
    const char *store_kind; /* the name of its row (wiring.h) */
    const char *store_path; /* NULL: in the daemon's folder */
    const char *store_url;  /* of a database; NULL: none */
    int64_t store_standbys; /* that must have what is acknowledged */
    bool store_wait;        /* for the journal, while another hub has it */
    int64_t store_lease_ms;
    const char *store_hub; /* what the others call this one; NULL: machine and folder */
    const char *on_damage; /* "refuse" or "quarantine" */
    bool quarantine;       /* the same */
    weft_log_opts log;
    bool log_requests;
    bool git_write;
    weft_json checker_rows; /* absent: none */
    weft_json gate_lines;   /* command lines by the names of gates: "tasks.gates" */
    int64_t gate_ms;
    weft_texts build_command, build_backend;
    int64_t build_ms;
    const char *preview_root; /* NULL: it is looked for */
    bool changes;             /* snapshots before and after each turn */
    bool cdev_parallel;
    bool automation;
    bool automation_changed; /* after a reload: something that begins with "automation." has */
    weft_json rules, jobs;   /* absent: none */
    bool watch;
    weft_texts watch_paths, ignore;
    weft_json watches; /* absent: every change is an event */
    bool gitignore;
    int64_t settle_ms;

    /* Of a runner. */
    const char *hub_url, *runner_name; /* hub_url NULL: it is none */
    const char *url;                   /* of "weft runner list" */
    weft_texts runner_labels, runner_agents, runner_folders;
    int64_t runner_slots; /* 0: as many as tasks may run */

    /* Of a relay. */
    weft_texts relay; /* none: it is none */
    const char *relay_token_file, *relay_ca;
    /* Of a standby. */
    const char *standby_of; /* NULL: it is none */
    const char *standby_token, *standby_ca;
    bool discard;

    /* Of an AIWG daemon. */
    int64_t aiwg_beat_ms;
    bool aiwg_job_actions;
    weft_aiwg_loop_limits loops;
    const char *aiwg_web, *aiwg_web_token; /* NULL: none */
} weft_serve_settings;

/* The part of them that is the automation's; borrowed from them. The caller adds on_note. */
weft_automation_opts weft__serve_automation(const weft_serve_settings *settings);

/* Also those of "weft start" and "weft restart". */
extern const weft_option weft__serve_options[];

/* Serve until stopped, with what app's settings say. */
weft_exit weft__serve_run(weft_app *app);

/* Can "weft start" and "weft restart" do with the command line? Explained if not. */
weft_exit weft__start_check(const weft_app *app);

/* Would "weft serve" start with these arguments, as far as can be known while another runs? Explained if not. The layout is
 * the app's, and we stand in the project. serve_preflight.c. */
weft_exit weft__serve_preflight(const weft_app *app, char *const *args);

/* The settings of a daemon and what they were made of. */
typedef struct weft_serve_config weft_serve_config;
/* Everything that was typed, in the environment and in the files, put together. Mistakes are explained. */
weft_exit weft__serve_config_new(weft_app *app, weft_serve_config **ret);
weft_serve_config *weft__serve_config_free(weft_serve_config *config);
/* Does the project's file say something that counts only when it is on record, and it is not? That was said, and left out.
 */
bool weft__serve_config_is_strange(const weft_serve_config *config);
/* Borrowed for the config's life; not touched by reloading. */
const weft_serve_settings *weft__serve_config_settings(const weft_serve_config *config);
/* Who is told of a reload that went well, after the server has what concerns it. Of the settings, those of rows that are
 * live hold from now on. They are borrowed until it returns, but for the agents, which stay. */
typedef void weft_serve_changed(void *ctx, const weft_serve_settings *settings);
void weft__serve_config_hear(weft_serve_config *config, weft_serve_changed *changed, void *ctx);
/* Read everything again, change what can be changed now, name what cannot. A file with a mistake changes nothing. report:
 * what came of it (serve_reload.h); may be NULL. */
struct weft_reload;
void weft__serve_config_reload(weft_serve_config *config, weft_server *server, struct weft_reload *report);
/* SIGHUP came: does it mean that our terminal is gone, and nobody asked to outlive it? */
bool weft__serve_config_hung_up(const weft_serve_config *config);
/* Which files it was read from and what they said (digests), and which keys wait for a restart. Owned text. */
int weft__serve_config_about(const weft_serve_config *config, char **ret, size_t *ret_len);

/* May this URL be served with these settings? Explained if not. */
weft_exit weft__serve_check(const weft_app *app, const weft_serve_settings *how, const weft_url *url);
bool weft__serve_is_network(const weft_url *url);

#endif

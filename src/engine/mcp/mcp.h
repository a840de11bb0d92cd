/* The hub as a client of MCP servers (Model Context Protocol): which there are, starting and ending them, and asking them
 * for tools, resources and prompts.
 *
 * A server is started when somebody asks it for something, kept while it is used and for a while behind that, and started
 * again, later and later, when it fails. What a server asks of us in return goes to a person as a question, or is answered
 * from here (roots, ping); nothing else is done for it. Servers come from the configuration alone. Both eras of the protocol
 * are spoken: that of 2026-07-28, which has no sessions, and the ones before it.
 *
 * Everything happens on the loop's thread, nothing waits. A callback never runs inside the call that caused it. */
#ifndef WEFT_MCP_H
#define WEFT_MCP_H

#include <weft/weft.h>

#include "buf.h"
#include "loop.h"

typedef struct weft_mcp weft_mcp;
typedef struct weft_mcp_server weft_mcp_server;
typedef struct weft_mcp_request weft_mcp_request;
typedef struct weft_mcp_ask weft_mcp_ask;

/* ---- the configuration ---- */

typedef enum weft_mcp_transport {
    WEFT_MCP_AUTO,  /* a URL: Streamable HTTP, or the older HTTP with server-sent events where that is all there is */
    WEFT_MCP_STDIO, /* a program: lines on its standard input and output */
    WEFT_MCP_HTTP,  /* Streamable HTTP only */
    WEFT_MCP_SSE,   /* the HTTP with server-sent events of 2024-11-05 only */
} weft_mcp_transport;
extern const char *const weft__mcp_transports[]; /* "auto", "stdio", "http", "sse", NULL */

/* Borrowed; lists end with NULL. */
typedef struct weft_mcp_spec {
    const char *name;
    weft_mcp_transport transport;
    const char *const *argv;    /* stdio */
    const char *const *env;     /* stdio: NAME=VALUE, besides ours; NULL: none */
    const char *url;            /* the others */
    const weft_header *headers; /* with every request; NULL: none */
    int64_t timeout_ms;         /* of a request without progress; 0: 60 s */
    int64_t idle_ms;            /* how long it is kept unused; 0: 5 min; <0: not at all */
    const char *const *agents;  /* which agents get it in their sessions; NULL: all; an empty list: none */
} weft_mcp_spec;

#define WEFT_MCP_SERVERS 64 /* that a configuration may have */

typedef struct weft_mcp_specs {
    const weft_mcp_spec *list;
    size_t count;
} weft_mcp_specs;

/* Is it what a server's headers may have? */
bool weft__mcp_is_header(const char *name, const char *value);

/* ---- whose it is ---- */

typedef struct weft_mcp_host {
    /* Something happened that is to be kept: "mcp.started" and so on (events.h). data is borrowed. */
    void (*on_event)(void *ctx, const char *type, weft_val data);
    /* A server asks a person. detail has the members of an elicitation (driver.h), and server, its name. 0:
     * weft__mcp_answered() will come, once, later; <0: it cannot be asked. */
    int (*ask)(void *ctx, weft_mcp_ask *ask, const char *title, weft_val detail);
    /* Nobody waits for it any more, and weft__mcp_answered() must not come. */
    void (*unask)(void *ctx, weft_mcp_ask *ask);
} weft_mcp_host;

/* The answer of a person: "accept", with what was filled in or NULL; "decline"; or NULL for none. */
void weft__mcp_answered(weft_mcp_ask *ask, const char *option, const weft_json *content);
/* Yours, between ask() and the answer. Zero at first. */
void **weft__mcp_ask_data(weft_mcp_ask *ask);

typedef struct weft_mcp_opts {
    weft_loop *loop;
    const weft_alloc *alloc;
    const char *folder;        /* absolute: programs start there, and it is the root that servers are told; borrowed */
    const char *program;       /* that guards programs; NULL: see process.h. Borrowed */
    const weft_mcp_host *host; /* borrowed */
    void *ctx;
    bool no_sampling; /* servers are not offered that a person answers in the place of a model */
    int64_t grace_ms; /* between SIGTERM and SIGKILL; 0: 5 s */
    int64_t probe_ms; /* how long a program may take to say which era it speaks; 0: 15 s */
} weft_mcp_opts;

int weft__mcp_new(const weft_mcp_opts *opts, weft_mcp **ret);
/* These servers, from now on. The specs are borrowed until the next call or the end. One that is gone, or is another now, is
 * ended; what was asked of it fails. -ENOMEM: some may be missing. */
int weft__mcp_set(weft_mcp *mcp, const weft_mcp_specs *specs, bool no_sampling);
/* Take nothing new; what is asked fails, sessions and programs are told to end. weft__mcp_free() does not wait for them. */
void weft__mcp_end(weft_mcp *mcp);
/* Forget everything; what runs is killed by its guard. Requests complete with -ECANCELED first. Returns NULL. */
weft_mcp *weft__mcp_free(weft_mcp *mcp);

weft_mcp_server *weft__mcp_first(const weft_mcp *mcp);
weft_mcp_server *weft__mcp_next(const weft_mcp *mcp, const weft_mcp_server *server);
weft_mcp_server *weft__mcp_find(const weft_mcp *mcp, const char *name); /* NULL: there is none */
const weft_mcp_spec *weft__mcp_spec(const weft_mcp_server *server);

/* All about it as JSON; with its log the last lines that it wrote. What may be secret (variables, headers, arguments, the
 * query of a URL) is not in it. Appended. -ENOMEM. */
int weft__mcp_describe(const weft_mcp_server *server, bool log, weft_buf *out);

/* ---- asking ---- */

/* What came of a request: r is 0 and there is a result; or an error of the server's; or r < 0, and why is a sentence:
 * -ETIMEDOUT, -ECANCELED, -ECONNREFUSED it could not be started, -ECONNRESET it ended or could not be reached, -EBADMSG what
 * it answered is not right, -EMSGSIZE it is too much. All are borrowed. */
typedef struct weft_mcp_answer {
    int r;
    const weft_json *result;
    const weft_error *error;
    const char *why;
} weft_mcp_answer;
typedef void weft_mcp_done(void *ctx, const weft_mcp_answer *answer);

typedef struct weft_mcp_call {
    const char *method;  /* "tools/call" */
    weft_val params;     /* an object, or none; written now */
    int64_t timeout_ms;  /* without progress; 0: the server's */
    const char *list;    /* the member of the result that is a list: all of its pages are put together; NULL: it is none */
    weft_mcp_done *done; /* exactly once */
    void *ctx;
    /* progress {progress, total?, message?}; NULL: nobody wants to know. Borrowed. */
    void (*on_progress)(void *ctx, const weft_json *progress);
} weft_mcp_call;

/* -ENOBUFS: too many are open; -EMSGSIZE, -ENOMEM; done does not run then. *ret, which may be NULL, is for
 * weft__mcp_cancel(), until done has run. */
int weft__mcp_request(weft_mcp_server *server, const weft_mcp_call *call, weft_mcp_request **ret);
/* Give it up: the server is told, done runs with -ECANCELED, later. */
void weft__mcp_cancel(weft_mcp_request *request);

/* Be told of changes of a resource, as events; for the life of the server's entry. 0: it will be asked for when the server
 * runs, and it is started. -ENOBUFS: too many; -EALREADY. */
int weft__mcp_subscribe(weft_mcp_server *server, const char *uri);
/* -ENOENT */
int weft__mcp_unsubscribe(weft_mcp_server *server, const char *uri);

/* Those that this agent gets, in the form of ACP's mcpServers. Appended as a JSON array. -ENOMEM. */
int weft__mcp_for_agent(const weft_mcp *mcp, const char *agent, weft_buf *out);

#endif

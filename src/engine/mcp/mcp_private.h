/* One MCP server and what belongs to it, for the files of this folder only: mcp_server.c has its life, mcp_talk.c the
 * conversation, mcp_request.c what we ask, mcp_inputs.c what it asks, mcp_stdio.c and mcp_http.c how messages get there. */
#ifndef WEFT_MCP_PRIVATE_H
#define WEFT_MCP_PRIVATE_H

#include "backoff.h"
#include "list.h"
#include "mcp.h"
#include "tls.h"

#define WEFT_MCP_MODERN "2026-07-28"
#define WEFT_MCP_LEGACY "2025-11-25" /* the newest with initialize */

#define WEFT_MCP_LARGEST (32u << 20) /* bytes of a message */
#define WEFT_MCP_REQUESTS 256        /* that one server has not answered */
#define WEFT_MCP_ASKS 8              /* questions of one server that are open */
#define WEFT_MCP_URIS 256            /* resources that one server is to tell changes of */
#define WEFT_MCP_PAGES 100           /* of a list */
#define WEFT_MCP_LIST (8u << 20)     /* bytes of a list, all pages */
#define WEFT_MCP_ROUNDS 8            /* in which a request may ask for input */
#define WEFT_MCP_LINES 50            /* of a server's log */
#define WEFT_MCP_LINE 500            /* bytes of each */
#define WEFT_MCP_WHY 400             /* room for a sentence */
#define WEFT_MCP_PER_MINUTE 60000    /* messages of a server */

struct weft_mcp {
    weft_mcp_opts opts;
    weft_loop *loop;
    const weft_alloc *alloc;
    weft_link servers;
    weft_link leaving; /* programs that were told to end (mcp_stdio.c) */
    weft_link ending;  /* sessions that are being ended (mcp_http.c) */
    weft_link over;    /* requests whose end is to be told */
    weft_later later;
    weft_tls_ctx *tls; /* NULL: not needed yet */
    uint64_t last_request;
    bool ended; /* nothing new is taken */
};

/*  IDLE ──somebody asks──▶ STARTING ──negotiated──▶ READY         weft__mcp_need(), weft__mcp_ready()
 *  STARTING, READY ──failed──▶ RESTING ──time──▶ IDLE or STARTING weft__mcp_failed()
 *  READY ──unused for long──▶ IDLE                                 on_server_due() */
typedef enum weft_mcp_state { WEFT_MCP_IDLE, WEFT_MCP_STARTING, WEFT_MCP_READY, WEFT_MCP_RESTING } weft_mcp_state;

typedef enum weft_mcp_era { WEFT_MCP_UNKNOWN, WEFT_MCP_IS_LEGACY, WEFT_MCP_IS_MODERN } weft_mcp_era;

/* How messages get to a server and back. */
typedef struct weft_mcp_wire {
    const char *name;
    /* Reach it: makes server->peer and server->line. What fails later is told by weft__mcp_failed(). */
    int (*open)(weft_mcp_server *server);
    /* The version is agreed on, and there is a session: listen to what the server says unasked. May be NULL. */
    void (*listen)(weft_mcp_server *server);
    /* Forget server->line; the peer has gone before. */
    void (*close)(weft_mcp_server *server);
} weft_mcp_wire;
extern const weft_mcp_wire weft__mcp_stdio, weft__mcp_http, weft__mcp_sse;

typedef struct weft_mcp_uri {
    weft_link link;
    bool asked; /* the server that runs was asked for it */
    char text[];
} weft_mcp_uri;

struct weft_mcp_server {
    weft_link link;
    weft_mcp *mcp;
    const weft_mcp_spec *spec; /* borrowed */
    weft_mcp_state state;
    weft_mcp_era era;          /* as it turned out; kept when it is started again */
    const weft_mcp_wire *wire; /* likewise */
    void *line;                /* the wire's; NULL: not connected */
    weft_peer *peer;
    weft_service *service;
    int64_t opening;  /* the call that negotiates; 0: none */
    int refused;      /* the status by which HTTP refused it; 0: it did not */
    bool lists_tools; /* they are being asked for */
    weft_doc *info;   /* what it said of itself: the result of initialize or server/discover; NULL: nothing yet */
    char version[16];
    weft_timer timer; /* to negotiate, to be idle, or to rest */
    weft_timer events;
    weft_backoff backoff;
    weft_link requests;
    size_t request_count;
    weft_link asks;
    size_t ask_count;
    weft_link uris;
    size_t uri_count;
    weft_mcp_request *listening; /* subscriptions/listen; NULL: none */
    bool listen_again;
    weft_doc *tools; /* the array of all of its tools; NULL: not known */
    char *lines[WEFT_MCP_LINES];
    size_t line_next;
    char error[WEFT_MCP_WHY]; /* of the last failure; "": none */
    int64_t pid;
    int64_t minute; /* in which so many messages came */
    size_t begun;
    unsigned changed; /* which lists have changed and were not told, a bit each (mcp_talk.c) */
    size_t updates;   /* resources whose change was told in this second */
    weft_later fail;  /* found out where nothing may be freed: end it, for this reason */
    bool flooded;
};

typedef enum weft_mcp_request_state {
    WEFT_MCP_QUEUED,
    WEFT_MCP_SENT,
    WEFT_MCP_ASKING, /* it waits for people (mcp_inputs.c) */
    WEFT_MCP_OVER,
} weft_mcp_request_state;

struct weft_mcp_request {
    weft_link link; /* in server->requests, then in mcp->over */
    weft_mcp *mcp;
    weft_mcp_server *server; /* NULL: it has gone */
    weft_mcp_request_state state;
    uint64_t number;
    char *method;
    weft_doc *params; /* an object; NULL: none */
    const char *list;
    weft_doc *cursor; /* of the next page; NULL: the first */
    weft_buf items;   /* of a list, with commas between them */
    unsigned pages;
    unsigned rounds;
    weft_doc *asked;  /* an answer that wants input */
    weft_buf inputs;  /* members of inputResponses so far */
    size_t missing;   /* inputs that people have not given yet */
    weft_buf headers; /* of the modern era, Mcp-Param-...: names and values, a NUL behind each */
    weft_timer timer;
    int64_t timeout_ms;                         /* <0: none */
    int64_t latest;                             /* when it is over, whatever progress there is */
    int64_t call;                               /* the peer's number of it; 0: none */
    unsigned open;                              /* peers will still complete so many calls of it */
    bool again;                                 /* it was sent to a session that was gone, and was sent again */
    bool needs_tools;                           /* the tools must be known before it is sent */
    bool internal;                              /* ours, */
    void (*on_over)(weft_mcp_request *request); /* and told so; may be NULL */
    bool told;
    weft_mcp_done *done;
    void (*on_progress)(void *ctx, const weft_json *progress);
    void *ctx;
    int r; /* how it ended: */
    char why[WEFT_MCP_WHY];
    weft_doc *result;
    weft_doc *error; /* of the server's: {code, message, data} */
};

struct weft_mcp_ask {
    weft_link link;
    weft_mcp_server *server;
    weft_req *req;             /* of a legacy server; NULL: */
    weft_mcp_request *request; /* it is an input of this one, */
    char *key;                 /* by this name (a JSON string) */
    bool sampling;
    void *data;
};

/* ---- mcp_server.c ---- */

/* Somebody needs it: start it, unless it runs, is being started or rests. */
void weft__mcp_need(weft_mcp_server *server);
/* The negotiation is over: send what waits. */
void weft__mcp_ready(weft_mcp_server *server);
/* It cannot go on. What was sent fails with r, what was not is sent when it has been started again. Frees peer and line. */
void weft__mcp_failed(weft_mcp_server *server, int r, const char *format, ...) WEFT_PRINTF(3, 4);
/* The session is gone, the server is not: begin another at once. */
void weft__mcp_begin_again(weft_mcp_server *server);
/* Something was asked or answered: the idle time begins anew. */
void weft__mcp_used(weft_mcp_server *server);
/* A line for its log: what it wrote, made visible. */
void weft__mcp_log(weft_mcp_server *server, const char *text, size_t len);
void weft__mcp_tell(const weft_mcp_server *server, const char *type, weft_val data);

/* ---- mcp_talk.c ---- */

extern const weft_method weft__mcp_methods[];
/* What its peer serves. */
int weft__mcp_new_service(weft_mcp_server *server);
/* Find out what it speaks. <0: it could not be sent. */
int weft__mcp_negotiate(weft_mcp_server *server);
/* The time for it is over. */
void weft__mcp_negotiate_late(weft_mcp_server *server);
/* What we can, as clientCapabilities. */
weft_val weft__mcp_capabilities(const weft_mcp_server *server, weft_member members[3], weft_member modes[2]);
weft_val weft__mcp_client_info(weft_member members[3]);
bool weft__mcp_has_capability(const weft_mcp_server *server, const char *pointer);
/* Subscriptions and list changes: tell a server that is ready what we want to hear of. */
void weft__mcp_hear(weft_mcp_server *server);
void weft__mcp_hear_no_more(weft_mcp_server *server, const char *uri);
void weft__mcp_tell_changes(weft_timer *timer);

/* ---- mcp_request.c ---- */

void weft__mcp_send_waiting(weft_mcp_server *server);
/* One of our own, without a limit in time. on_over, which may be NULL, runs when it is; request->server may be NULL then.
 * NULL: it could not be asked. */
weft_mcp_request *weft__mcp_request_own(weft_mcp_server *server, const char *method, weft_val params,
                                        void (*on_over)(weft_mcp_request *request));
void weft__mcp_progress(weft_mcp_request *request, const weft_json *params);
/* A request is over; its end is told later. result and error are copied. */
void weft__mcp_finish(weft_mcp_request *request, int r, const char *format, ...) WEFT_PRINTF(3, 4);
void weft__mcp_finish_all(weft_mcp_server *server, int r, const char *why);
/* Those that were sent, and our own. */
void weft__mcp_finish_sent(weft_mcp_server *server, int r, const char *why);
void weft__mcp_tell_over(weft_later *later);
weft_mcp_request *weft__mcp_by_call(const weft_mcp_server *server, int64_t call);
weft_mcp_request *weft__mcp_by_number(const weft_mcp_server *server, uint64_t number);
/* All inputs are there: send it again with them. */
void weft__mcp_send_again(weft_mcp_request *request);
/* Put it back into the queue: it was sent to a session that was gone. */
void weft__mcp_requeue(weft_mcp_request *request);
void weft__mcp_request_free(weft_mcp_request *request);

/* ---- mcp_tools.c ---- */

/* NULL: it is not in the list. */
bool weft__mcp_tool(const weft_mcp_server *server, const char *name, weft_json *ret);
/* The params of a call that its tool wants as headers too: names and values, a NUL behind each. -ENOMEM. */
int weft__mcp_param_headers(const weft_mcp_server *server, const weft_json *params, weft_buf *out);
/* A value as a header has it: as it is, or in base64. */
int weft__mcp_header_value(const weft_alloc *alloc, weft_bytes text, weft_buf *out);
/* Keep the tools of a list, without those whose annotations are invalid. */
int weft__mcp_keep_tools(weft_mcp_server *server, const weft_json *list);
/* Does the result of a call fit the tool's outputSchema? 0; -EBADMSG and why; -ENOMEM. */
int weft__mcp_check_result(const weft_mcp_server *server, const weft_json *params, const weft_json *result,
                           char why[WEFT_MCP_WHY]);

/* ---- mcp_inputs.c ---- */

weft_handler weft__mcp_on_sampling, weft__mcp_on_elicitation;
/* An answer with resultType "input_required": ask for it. <0: it cannot be asked; why. */
int weft__mcp_ask_inputs(weft_mcp_request *request, const weft_json *result, char why[WEFT_MCP_WHY]);
/* Nobody waits for these any more: all of the server's, or those of a request. */
void weft__mcp_unask(weft_mcp_server *server, const weft_mcp_request *request);
/* {roots: [...]} */
int weft__mcp_put_roots(const weft_mcp *mcp, weft_buf *out);

/* ---- mcp_url.c ---- */

/* A URL, a path, or a path beside base's, as a URL of the same origin. Owned. -EINVAL: it is none; -ENOMEM. */
int weft__mcp_resolve(const char *base, weft_bytes text, const weft_alloc *alloc, char **ret);

/* ---- mcp_http.c, mcp_stdio.c ---- */

/* Programs that were told to end are killed, ends of sessions are not waited for. */
void weft__mcp_stdio_kill(weft_mcp *mcp);
void weft__mcp_http_forget(weft_mcp *mcp);

#endif

/* A process of an ACP agent and the sessions in it, for the files of the driver only: driver_acp.c has the process's life,
 * acp_session.c the sessions and their turns, acp_talk.c the connection, acp_asks.c the questions, acp_elicit.c those that
 * are forms, acp_login.c the one how to log in, acp_requests.c what is asked of it besides turns, acp_shape.c what its
 * answers must be, acp_stderr.c what it says besides, acp_end.c how a turn ended.
 *
 * Every callback of the host may stop, close or free anything. Whoever calls one holds the session or the process and does
 * not go on with it when it was freed. A session holds its process. */
#ifndef WEFT_ACP_PRIVATE_H
#define WEFT_ACP_PRIVATE_H

#include "answer_shape.h"
#include "buf.h"
#include "driver.h"
#include "list.h"
#include "loop.h"
#include "output.h"
#include "process.h"
#include "watch.h"

/* Of what the agent writes to its standard error, this much of the end belongs to the error text. */
#define WEFT_ACP_TAIL 4096

/* Calls whose answers are looked at: the rows of acp_shape.c. */
#define WEFT_ACP_ANSWERS 5

typedef enum weft_acp_state {
    WEFT_ACP_INITIALIZING,
    WEFT_ACP_READY,
    WEFT_ACP_LEAVING, /* the connection is gone; the process is not yet */
    WEFT_ACP_OVER,    /* on_end has been called */
} weft_acp_state;

struct weft_driver_process {
    weft_loop *loop;
    const weft_alloc *alloc;
    const weft_agent *agent;
    const weft_process_host *host;
    void *ctx;
    char *folder;
    int64_t grace_ms; /* 0: the default */
    const weft_passage *passages;
    weft_acp_state state;
    unsigned holds; /* the owner's, one per session, one per open call, one per callback under way */
    bool freed;     /* nothing is called any more */
    bool can_load, can_resume, can_close, can_list, can_delete, can_logout;
    bool can_http, can_sse; /* use MCP servers that are reached so */
    bool ending;            /* we asked it to end, or will not wait for it any longer */
    bool stopped;           /* we asked its processes to end */
    bool deaf;              /* it closed its output and went on running */
    bool batched;           /* it sent a batch */
    bool paused;
    bool started; /* the process is known to run */
    int looks;    /* left, at a pipe that does not end */
    bool gone;    /* the process is known to have ended, like this */
    weft_process_end process_end;
    weft_process *process;
    weft_service *service;
    weft_peer *peer; /* NULL: the connection is gone */
    weft_timer timer;
    weft_later later; /* the connection cannot go on, found out where nothing may be called */
    uint64_t noise;   /* lines on its standard output that were no messages */
    weft_link sessions;
    weft_link requests;
    uint64_t last_ask;
    int err_fd;
    weft_watch *err_watch; /* NULL: its standard error has ended */
    weft_timer err_timer;
    weft_output err;
    weft_buf err_tail;
    weft_buf auth;                         /* the names of its ways to log in */
    weft_buf methods;                      /* and all of it, as JSON: authMethods */
    weft_schema *shapes[WEFT_ACP_ANSWERS]; /* NULL: not needed yet */
};

typedef enum weft_acp_turn {
    WEFT_ACP_IDLE,
    WEFT_ACP_WAITING, /* for the process or the session */
    WEFT_ACP_PROMPTING,
} weft_acp_turn;

/* What a session can be told to set: the agent has words for it, or it is one of its options. */
typedef struct weft_acp_knob {
    bool known;       /* the agent said that it has it */
    char option[128]; /* the option that stands for it; "": none */
} weft_acp_knob;

typedef void weft_acp_on_answer(weft_driver_session *session, int r, const weft_answer *answer);

struct weft_driver_session {
    weft_link link;
    weft_driver_process *process;
    const weft_session_host *host;
    void *ctx;
    unsigned holds; /* the owner's, one per open call, one per callback under way */
    bool closed;    /* nothing is called any more */
    char *folder;   /* NULL: the process's */
    char *servers;  /* mcpServers as JSON; NULL: none */
    size_t servers_len;
    char *id;     /* the agent's name for it: the one to go on with, then the one that is open; NULL: none yet */
    bool opening; /* session/new, session/load or session/resume is under way */
    bool open;
    bool replay;    /* history is wanted */
    bool replaying; /* what comes is history */
    bool renewed;   /* the one to go on with is lost */
    bool must_exist;
    char *settings; /* as they were set, for when it is opened again; NULL: none */
    weft_acp_knob mode, model;
    bool has_options;
    size_t sets; /* that are not answered yet; a prompt waits for them */
    weft_acp_turn turn;
    char *prompt;     /* until it is sent */
    weft_trace trace; /* that goes with it; empty: none */
    bool only_open;   /* there is none, and the turn ends when the session is open */
    bool cancelling;
    weft_timer timer;              /* to obey */
    weft_later later;              /* the turn is over, found out where nothing may be called */
    weft_acp_on_answer *on_answer; /* to the call that is open */
    int64_t call;                  /* its number; 0: none is */
    unsigned logins;               /* how often somebody was asked how to log in, in this turn */
    char *login;                   /* why, for people; NULL: nobody was */
    char *elicitation;             /* the id of the last URL that a person was to go to; NULL: none */
    weft_link asks;
    size_t ask_count;
    bool decided;
    weft_turn_end end; /* error and stop_reason are ours */
    char *error, *stop_reason;
};

/* ---- driver_acp.c ---- */

void weft__acp_hold(weft_driver_process *process);
void weft__acp_release(weft_driver_process *process);
/* The connection is over: close its input, and see to it that it goes. May free the process, unless it is held. */
void weft__acp_leave(weft_driver_process *process);
/* A cancelled turn that does not end, or cannot be told to, ends with its process. What the others lose is said. */
void weft__acp_stop_for(weft_driver_session *session, bool force);
/* A part of the grace time: what an agent gets to end its turn after it was cancelled. */
int64_t weft__acp_turn_grace(const weft_driver_process *process);
/* A process that does not run yet, and can be freed. -ENOMEM. */
int weft__acp_new(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret);
/* Start this program; the rest of driver.h's open(). */
int weft__acp_start(const weft_process_spec *spec, const char *const *argv, const weft_process_host *host, void *ctx,
                    weft_driver_process **ret);

/* The driver's functions, for the one that differs only in what it starts. */
int weft__acp_session(weft_driver_process *process, const weft_session_spec *spec, const weft_session_host *host, void *ctx,
                      weft_driver_session **ret);
int weft__acp_prompt(weft_driver_session *session, const weft_turn_spec *spec);
int weft__acp_answer(weft_driver_session *session, const char *key, const char *option);
int weft__acp_accept(weft_driver_session *session, const char *key, const weft_json *content);
void weft__acp_stop(weft_driver_process *process, weft_driver_session *session, bool force);
int weft__acp_set(weft_driver_session *session, const weft_session_setting *setting, weft_driver_done *done, void *ctx);
int weft__acp_list(weft_driver_process *process, const char *folder, const char *cursor, weft_driver_done *done, void *ctx);
int weft__acp_remove(weft_driver_process *process, const char *agent_session, weft_driver_done *done, void *ctx);
int weft__acp_logout(weft_driver_process *process, weft_driver_done *done, void *ctx);
void weft__acp_pause(weft_driver_process *process, bool paused);
weft_driver_session *weft__acp_close(weft_driver_session *session);
weft_driver_process *weft__acp_free(weft_driver_process *process);
#define WEFT_ACP_TABLE                                                                                                      \
    .session = weft__acp_session, .prompt = weft__acp_prompt, .answer = weft__acp_answer, .accept = weft__acp_accept,       \
    .stop = weft__acp_stop, .set = weft__acp_set, .list = weft__acp_list, .remove = weft__acp_remove,                       \
    .logout = weft__acp_logout, .pause = weft__acp_pause, .close = weft__acp_close, .free = weft__acp_free

/* ---- acp_session.c ---- */

void weft__acp_session_hold(weft_driver_session *session);
void weft__acp_session_release(weft_driver_session *session);
/* Open it, unless it is open or being opened. <0: it could not be sent. */
int weft__acp_session_open(weft_driver_session *session);
/* The process is ready: open every session. */
void weft__acp_sessions_open(weft_driver_process *process);
/* Which one a message is about; NULL: none that is open or being opened. */
weft_driver_session *weft__acp_session_of(const weft_driver_process *process, const weft_json *params);
/* A turn is cancelled; false: that is done, or under way. true: the process must end for it. */
bool weft__acp_cancel_politely(weft_driver_session *session);
/* Tell the end of a turn that was decided. */
void weft__acp_tell_end(weft_driver_session *session);
/* The process is gone: end all turns. */
void weft__acp_sessions_finish(weft_driver_process *process);
/* The session is open and everything is set: the prompt may go, if there is one. */
void weft__acp_go_on(weft_driver_session *session);
/* The owner frees the process: forget them all. */
void weft__acp_sessions_drop(weft_driver_process *process);

/* ---- acp_end.c ---- */

/* How its turn ended; the first to say so is right. reason NULL: it is ok. */
void weft__acp_decide(weft_driver_session *session, bool retryable, const char *reason, const char *format, ...)
    WEFT_PRINTF(4, 5);
void weft__acp_decide_cancelled(weft_driver_session *session);
/* The agent misbehaved or must end: so do all turns in it. */
void weft__acp_decide_all(weft_driver_process *process, bool retryable, const char *reason, const char *format, ...)
    WEFT_PRINTF(4, 5);
/* The turn ended with this, as the agent says; "" unknown. */
void weft__acp_decide_stop(weft_driver_session *session, const char *stop_reason);
/* Room for why somebody must log in, with how to. */
#define WEFT_ACP_SENTENCE 6144
void weft__acp_say_login(const weft_driver_session *session, const weft_error *error, char ret[WEFT_ACP_SENTENCE]);
/* ACP: the agent has to be logged in. */
#define WEFT_ACP_AUTH_REQUIRED (-32000)
/* The agent refused a call. */
void weft__acp_decide_error(weft_driver_session *session, const char *method, const weft_error *error);
/* Nobody decided, and the process has ended. */
void weft__acp_decide_gone(weft_driver_session *session);
/* All that there is to say of it. Borrowed until the next turn. */
const weft_turn_end *weft__acp_complete_end(weft_driver_session *session);
void weft__acp_end_clear(weft_driver_session *session);

/* ---- acp_talk.c ---- */

void weft__acp_talk_init(weft_driver_process *process);
/* Take both descriptors and begin the conversation. */
int weft__acp_talk(weft_driver_process *process, int in, int out);
/* All turns end with "protocolError", and so does the process. */
void weft__acp_fail(weft_driver_process *process, bool retryable, const char *what, const char *why);
/* false: the answer is not used, and it has failed as above. */
bool weft__acp_check(weft_driver_process *process, const char *method, const weft_json *result);
/* One call at a time of a session, which is held until it is answered. -ENOTCONN: how the process ends says more. */
int weft__acp_call(weft_driver_session *session, const char *method, weft_val params, weft_acp_on_answer *then,
                   int64_t timeout_ms);

/* ---- acp_shape.c ---- */

/* 0: it fits, or nothing of it is used. Else why says what does not: -EBADMSG, -E2BIG, -ENOMEM. */
int weft__acp_fits(weft_driver_process *process, const char *method, const weft_json *result, char why[WEFT_SHAPE_WHY]);
void weft__acp_shapes_free(weft_driver_process *process);

/* ---- acp_requests.c ---- */

/* What the agent said of a session when it was opened: what can be set is read first, so that it can be when the host hears
 * that the session is open; then all of it is told to the host. And what it says in an update. */
void weft__acp_state_read(weft_driver_session *session, const weft_json *said);
void weft__acp_state_tell(weft_driver_session *session, const weft_json *said);
void weft__acp_state_update(weft_driver_session *session, const weft_json *update);
/* The session is open: what was chosen for it is set, then what was asked for meanwhile. <0: the turn was decided. */
int weft__acp_settings_apply(weft_driver_session *session);
/* The process is ready: send what was asked for meanwhile. */
void weft__acp_requests_send(weft_driver_process *process);
/* The process is gone. */
void weft__acp_requests_finish(weft_driver_process *process);
/* The owner closes the session, or (NULL) frees the process: nobody is told. */
void weft__acp_requests_drop(weft_driver_process *process, const weft_driver_session *session);

/* ---- acp_stderr.c ---- */

void weft__acp_stderr_init(weft_driver_process *process);
/* Take the descriptor, and do not read it yet. */
int weft__acp_stderr_open(weft_driver_process *process, int fd);
/* Read it from now on, or do not. */
void weft__acp_stderr_heed(weft_driver_process *process, bool now);
/* Read what is there. */
void weft__acp_stderr_drain(weft_driver_process *process);
/* The process is gone: what is left of a line is all there will be. */
void weft__acp_stderr_end(weft_driver_process *process);
void weft__acp_stderr_close(weft_driver_process *process);
/* The end of what it wrote, without line ends behind it. Borrowed. */
weft_bytes weft__acp_stderr_tail(const weft_driver_process *process);

/* ---- acp_asks.c ---- */

typedef enum weft_acp_ask_kind { WEFT_ACP_PERMISSION, WEFT_ACP_FORM, WEFT_ACP_URL, WEFT_ACP_LOGIN } weft_acp_ask_kind;

weft_handler weft__acp_ask;
/* Keep a request until a person has answered. req NULL: nobody but us waits. elicitation: its id, of a URL; else NULL. What
 * is asked is written by the caller: kind, title, options and detail. 0: the host was told, and may have answered. */
typedef struct weft_acp_asking {
    weft_acp_ask_kind kind;
    weft_req *req;
    const char *elicitation;
    const char *name; /* of the kind, for the host */
    weft_bytes title; /* as it came; "": the fallback */
    const char *fallback;
    weft_val options, detail;
} weft_acp_asking;
int weft__acp_ask_host(weft_driver_session *session, const weft_acp_asking *asking);
/* A question cannot be asked: why, for the agent and for whoever watches. */
int weft__acp_refuse_ask(weft_driver_session *session, weft_req *req, int code, const char *why, const char *reason);
bool weft__acp_asks_full(const weft_driver_session *session);
/* What the URL with this id was for is done: the questions that wait for it are answered, and the host is told. */
void weft__acp_asks_elicited(weft_driver_session *session, const char *elicitation);
/* Answer all of them with "cancelled". */
void weft__acp_asks_cancel(weft_driver_session *session);

/* ---- acp_elicit.c ---- */

weft_handler weft__acp_elicit, weft__acp_on_elicited;
weft_val weft__acp_elicit_answer(const char *option, const weft_json *content, weft_member members[2]);

/* ---- acp_login.c ---- */

/* The session could not be opened because of this error: true: a person is asked how to log in. */
bool weft__acp_login_ask(weft_driver_session *session, const weft_error *error);
/* The person's answer; NULL: none. Nothing is called from here. */
void weft__acp_login_answer(weft_driver_session *session, const char *option);

#endif

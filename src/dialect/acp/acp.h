/* ACP's vocabulary, for its files: the hub as an agent of the Agent Client Protocol, version 1, for editors. The table is in
 * acp.c. Behind a session is whichever agent is configured; what it says is stored in the form of ACP and passed on as it
 * came. */
#ifndef WEFT_ACP_H
#define WEFT_ACP_H

#include "acp_old.h"
#include "buf.h"
#include "hub_clients.h"

/* Its errors. */
#define ACP_LOGIN_REQUIRED (-32000)
#define ACP_NOT_FOUND (-32002)

/* Where the protocol has no place for something, it is a member of "_meta" with one of these names. */
#define ACP_META_AGENT "weft/agent"       /* of session/new: which agent */
#define ACP_META_POSITION "weft/position" /* of session/update, and of session/resume: "EPOCH:GSEQ" */

/* Room for "EPOCH:GSEQ". */
#define ACP_POSITION (WEFT_EPOCH + 24)
/* Bytes of a name that a client gives itself. */
#define ACP_CLIENT_NAME 64

/* Ways to say the same: what every client understands, the same with positions for those that asked for them, and the older
 * form for those that began with it. */
typedef enum acp_variant { ACP_PLAIN, ACP_POSITIONS, ACP_OLD } acp_variant;
extern const char *const weft__acp_variants[];

/* ---- acp_initialize.c ---- */
weft_handler weft__acp_on_initialize, weft__acp_on_authenticate, weft__acp_on_hello;
extern const weft_param weft__acp_initialize_params[], weft__acp_authenticate_params[], weft__acp_hello_params[];
bool weft__acp_claims(const weft_json *params);
/* Has its connection the older form? */
bool weft__acp_is_old(const weft_hub *hub, weft_req *req);
/* Answer in the form that the caller's connection has; result is in the current one. req may be NULL. */
int weft__acp_reply(const weft_hub *hub, weft_req *req, weft_val result);

/* What a client offers to do for agents, in weft__hub_client_flags(). */
enum {
    ACP_EDITOR_READS = 1 << 0,  /* fs.readTextFile */
    ACP_EDITOR_WRITES = 1 << 1, /* fs.writeTextFile */
    ACP_EDITOR_FORMS = 1 << 2,  /* elicitation.form */
    ACP_EDITOR_URLS = 1 << 3,   /* elicitation.url */
    ACP_EDITOR_FLAGS = 1 << 4,  /* session.configOptions.boolean: shows options that are on or off */
};

/* ---- acp_editor.c ---- */

/* What these clientCapabilities offer. */
unsigned weft__acp_offers(const weft_json *capabilities);
/* The client that does this for a task of a session: the one that prompted, else one that follows the session. It must be
 * allowed to work, and no agent. NULL: none. */
weft_hub_client *weft__acp_editor(const weft_hub *hub, const char *session, const char *task, unsigned does);
/* An answer of this client counts as one by question.answer would: it is for people who may work. */
bool weft__acp_may_answer(const weft_hub *hub, const weft_identity *who);
/* The connection that a prompt with this metadata came from; 0: none of ours. -ENOMEM. */
int weft__acp_origin(const weft_hub *hub, const char *metadata, uint64_t *ret);

/* ---- acp_terminals.c ---- */

/* A tool call, or an update of one, for a client: terminals that the hub runs are not shown by their ids, which are the
 * hub's own and no client knows. What they printed is there as text when they have ended. 1: ret has it; 0: it is well as it
 * is; -ENOMEM. */
int weft__acp_hide_terminals(const weft_json *call, const weft_alloc *alloc, weft_buf *ret);

/* ---- acp_fit.c ---- */

/* Besides the kinds of updates: config_option_update for who shows no options that are on or off, and the modes that
 * session/new says there are. */
#define ACP_FIT_SELECTS "config_option_update, selects"
#define ACP_FIT_MODES "modes"
/* An update of this kind as version 1 has it. 1: ret has it; 0: it is well as it is; -EBADMSG: there is nothing in it that
 * could be shown; -ENOMEM. */
int weft__acp_fit(const char *kind, const weft_json *object, const weft_alloc *alloc, weft_buf *ret);
/* The same for the one member that such an update is about. */
int weft__acp_fit_value(const char *kind, const weft_json *value, const weft_alloc *alloc, weft_buf *ret);
/* Is this a value of an option that is offered? One of a type that is not known decides for itself. */
bool weft__acp_may_choose(const weft_json *option, const weft_json *value);
/* What is wrong with these mcpServers, which an agent would refuse; NULL: nothing. */
const char *weft__acp_wrong_servers(const weft_json *servers);

/* ---- acp_sessions.c ---- */
weft_handler weft__acp_on_new, weft__acp_on_load, weft__acp_on_resume, weft__acp_on_list, weft__acp_on_close,
    weft__acp_on_delete, weft__acp_on_set_mode, weft__acp_on_set_option;
extern const weft_param weft__acp_new_params[], weft__acp_load_params[], weft__acp_resume_params[], weft__acp_list_params[],
    weft__acp_session_params[], weft__acp_set_mode_params[], weft__acp_set_option_params[];
int weft__acp_no_session(weft_req *req, const char *id);
/* Who asks; NULL: nobody any more, or no client of the hub. */
weft_hub_client *weft__acp_client_of(const weft_hub *hub, weft_req *req);

/* ---- acp_follow.c ---- */

/* A client follows a session: it is told what happens there, and asked what its agent asks. Each session has a subscription
 * of its own, so that its past can be told without holding up the others. */
typedef void weft_acp_followed(void *ctx, int r);
/* From now on; unless it does so already. -ENOMEM, -EMFILE it follows too many. */
int weft__acp_follow(weft_hub_client *client, const char *session);
/* From a position: what came after it is told first. whole: all that is kept of it, which is not before that. done runs when
 * that has been told; r > 0: a weft_gap, the position is not in the journal any more, and it follows from now on. */
int weft__acp_follow_from(weft_hub_client *client, const char *session, const char *epoch, uint64_t after, bool whole,
                          weft_acp_followed *done, void *ctx);
/* It is asked what is open there and it was not asked yet. told: it has been told of what it cannot be asked. */
void weft__acp_ask_open(weft_hub_client *client, const char *session, bool told);
/* The type of what is asked so, for who was told. */
#define ACP_OPEN_QUESTION "open question"
void weft__acp_unfollow(weft_hub_client *client, const char *session);
bool weft__acp_follows(const weft_hub_client *client, const char *session);
/* When the client has been told everything that has happened so far in a session, or will not be told any more: done. */
void weft__acp_when_told(weft_hub_client *client, const char *session, weft_caught_up *done, void *ctx);

/* ---- acp_prompt.c ---- */
weft_handler weft__acp_on_prompt, weft__acp_on_cancel;
/* How the turn of a task that has ended ended, in ACP's words; NULL: it failed, and this is the code of that. */
const char *weft__acp_stop_reason(const weft_task *task);
int weft__acp_failure_code(const weft_task *task);
extern const weft_param weft__acp_prompt_params[], weft__acp_cancel_params[];

/* ---- acp_content.c ---- */

/* The blocks of a prompt as one text, as an agent reads it that knows nothing else. -EINVAL: *ret_bad is the block that
 * cannot be one, and *ret_why says why; -ENOMEM. */
int weft__acp_content(const weft_json *blocks, const weft_alloc *alloc, weft_buf *ret, size_t *ret_bad,
                      const char **ret_why);

/* ---- acp_events.c ---- */
/* How a fact of a session is told: an update of this kind with this member. NULL: ACP has no words for it. */
typedef struct acp_state {
    const char *name, *kind, *member;
} acp_state;
const acp_state *weft__acp_state(const char *name);
/* Which commands a session has: said to who opens it, because it was not there when the agent said so. */
void weft__acp_tell_commands(const weft_hub *hub, weft_hub_client *client, const weft_session *session);
void weft__acp_render(const weft_hub *hub, weft_rendering *rendering, const weft_event *event, const weft_json *data);

#endif

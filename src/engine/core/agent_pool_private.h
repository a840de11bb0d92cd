/* The inside of the agent pool, for its two files: agent_pool.c has the processes, their sessions and turns;
 * agent_pool_requests.c has what is asked of agents besides turns. */
#ifndef WEFT_AGENT_POOL_PRIVATE_H
#define WEFT_AGENT_POOL_PRIVATE_H

#include "agent_pool.h"

typedef struct pool_process {
    weft_link link; /* the one used last at the end */
    weft_engine *engine;
    const weft_driver *driver;
    weft_driver_process *handle;
    const weft_agent *agent;
    weft_agent *resolved; /* the agent with its program found; NULL: as it is configured. Owned */
    pid_t pid;            /* 0: it is not known to run */
    weft_link sessions;   /* the one used last at the end */
    size_t session_count, opened;
    size_t turns, pauses;
    size_t requests; /* that are not turns, and keep it */
    bool retired, ending;
    bool talks; /* it has served a conversation, and may be kept for it */
    weft_timer idle;
    weft_later freeing;
} pool_process;

struct pool_session {
    weft_link link;
    pool_process *process;
    weft_driver_session *handle;
    struct run *run;              /* NULL: it has no turn, or one that only opens it */
    struct pool_request *opening; /* that turn; NULL: none */
    bool paused;
    bool leaving;   /* its turn is over, and ends with the process */
    char *settings; /* that the agent was given for it; NULL: none */
    bool stale;     /* the session has others by now: it is opened anew for its next turn */
    char id[];
};

/* Something that is asked of an agent and is not a task's turn. It is told in a later turn of the loop, so that whoever is
 * told may ask for anything. */
typedef struct pool_request {
    weft_link link; /* in engine->pool_requests */
    weft_engine *engine;
    pool_process *process; /* NULL: it is over */
    pool_session *session; /* NULL: it is not about one that is open, or is over */
    weft_driver_done *done;
    void *ctx;
    char *name, *option; /* a setting; NULL: it is none */
    weft_doc *value;
    bool waits; /* until the session is open */
    int r;
    weft_doc *result;
    char *error;
} pool_request;

/* agent_pool.c: sessions and turns */
int weft__pool_session_open(pool_process *process, const known_session *known, const char *id, bool must_exist,
                            pool_session **ret);
void weft__pool_session_close(pool_session *session);
/* run NULL: the turn only opens the session. */
void weft__pool_turn_begin(pool_session *session, struct run *run);

/* agent_pool.c: processes */
/* task: whose turn it is started for; NULL: none. */
int weft__pool_process_open(weft_engine *engine, const weft_agent *agent, const char *task, bool talks, pool_process **ret);
void weft__pool_process_free(pool_process *process);
/* It takes no more turns, and ends when nothing is left for it to do. */
void weft__pool_process_retire(pool_process *process);
/* Nothing may be left for it to do: then it ends, or its idle time begins. */
void weft__pool_process_settle(pool_process *process);
/* Would it be started in the same way? */
bool weft__pool_same_agent(const weft_agent *a, const weft_agent *b);
/* May it take another turn of the agent? */
bool weft__pool_has_place(const pool_process *process, const weft_agent *agent);
/* The one with a place and the fewest turns; NULL: none. */
pool_process *weft__pool_process_find(const weft_engine *engine, const weft_agent *agent);

/* agent_pool_requests.c */
void weft__pool_requests_init(weft_engine *engine);
/* It is over, and will be told. The process may have no more reason to live. */
void weft__pool_request_end(pool_request *old, int r, const weft_json *result, const char *error);
/* session NULL: all of the process. */
void weft__pool_requests_end(pool_process *process, const pool_session *session, int r);
/* Tell those that are over, now. */
void weft__pool_requests_tell(weft_engine *engine);
/* The session is open: set what waited for it. */
void weft__pool_set_waiting(pool_session *session);
/* It was not opened: whoever sets something now sets it for the next opening. */
void weft__pool_end_waiting(const pool_session *session);

#endif

/* The hub's own vocabulary, for its files: what no other system has a word for. The table is in hub_methods.c. */
#ifndef WEFT_OWN_H
#define WEFT_OWN_H

#include "buf.h"
#include "hub_clients.h"

/* ---- hub_methods_agent.c ---- */
weft_handler weft__own_agents, weft__own_use, weft__own_sessions;
/* An agent as agent.list shows it, for the project in this folder. -ENOMEM. */
int weft__own_agent_write(weft_buf *out, const weft_alloc *alloc, const weft_agent *agent, const char *folder,
                          bool is_default);
extern const weft_param weft__own_use_params[], weft__own_sessions_params[];

/* ---- hub_methods_task.c ---- */
weft_handler weft__own_about;
extern const weft_param weft__own_about_params[];

/* ---- hub_methods_question.c ---- */
weft_handler weft__own_questions, weft__own_answer;
extern const weft_param weft__own_questions_params[], weft__own_answer_params[];

/* ---- hub_methods_event.c ---- */
weft_handler weft__own_subscribe, weft__own_unsubscribe;
extern const weft_param weft__own_subscribe_params[], weft__own_unsubscribe_params[];

#endif

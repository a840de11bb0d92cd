/* The hub's own vocabulary, for its files: what no other system has a word for. The table is in hub_methods.c. */
#ifndef WEFT_OWN_H
#define WEFT_OWN_H

#include "buf.h"
#include "hub_clients.h"

/* ---- hub_methods_agent.c ---- */
weft_handler weft__hub_agents, weft__hub_use;
/* An agent as agent.list shows it, for the project in this folder. -ENOMEM. */
int weft__hub_agent_write(weft_buf *out, const weft_alloc *alloc, const weft_agent *agent, const char *folder,
                          bool is_default);
extern const weft_param weft__hub_use_params[];

/* ---- hub_methods_session.c ---- */
weft_handler weft__hub_sessions, weft__hub_session_get, weft__hub_session_create, weft__hub_session_set,
    weft__hub_session_open, weft__hub_session_resume, weft__hub_session_close, weft__hub_session_delete,
    weft__hub_session_prompt, weft__hub_agent_sessions, weft__hub_agent_logout;
extern const weft_param weft__hub_sessions_params[], weft__hub_session_params[], weft__hub_create_params[],
    weft__hub_set_params[], weft__hub_prompt_params[], weft__hub_own_params[], weft__hub_logout_params[];

/* ---- hub_methods_git.c ---- */
weft_handler weft__hub_git_stage, weft__hub_git_unstage, weft__hub_git_discard, weft__hub_git_commit;
extern const weft_param weft__hub_git_paths_params[], weft__hub_git_discard_params[], weft__hub_git_commit_params[];

/* ---- hub_methods_task.c ---- */
weft_handler weft__hub_about;
extern const weft_param weft__hub_about_params[];
weft_handler weft__hub_runner_hello, weft__hub_runner_deliver, weft__hub_runners; /* hub_methods_runner.c */
extern const weft_param weft__hub_hello_params[], weft__hub_deliver_params[];
/* ---- hub_methods_journal.c ---- */
weft_handler weft__hub_journal_follow, weft__hub_journal_piece, weft__hub_journal_changes, weft__hub_journal_page;
extern const weft_param weft__hub_journal_follow_params[], weft__hub_journal_piece_params[],
    weft__hub_journal_changes_params[], weft__hub_journal_page_params[];
/* When the clients have gone, before the engine. */
void weft__hub_journal_free(weft_hub *hub);

weft_handler weft__hub_retry;
extern const weft_param weft__hub_retry_params[];

/* ---- hub_methods_approval.c ---- */
weft_handler weft__hub_approvals, weft__hub_revoke;
extern const weft_param weft__hub_revoke_params[];

/* ---- hub_methods_cost.c ---- */
weft_handler weft__hub_cost;
extern const weft_param weft__hub_cost_params[];
/* ---- hub_methods_worktree.c ---- */
weft_handler weft__hub_merge, weft__hub_discard_worktree, weft__hub_worktrees, weft__hub_prune;
extern const weft_param weft__hub_merge_params[], weft__hub_discard_worktree_params[], weft__hub_prune_params[];

/* ---- hub_methods_changes.c ---- */
weft_handler weft__hub_changes, weft__hub_diff, weft__hub_undo;
extern const weft_param weft__hub_changes_params[], weft__hub_diff_params[], weft__hub_undo_params[];
/* Say why there is no diff: what weft__task_compare() returned for this task (NULL: for a session), or what came later. */
int weft__hub_refuse_unknown(weft_req *req, const weft_hub *hub, const char *task, int r);
int weft__hub_refuse_changes(weft_req *req, int r, const char *message);

/* ---- hub_methods_comment.c ---- */
weft_handler weft__hub_comment;
extern const weft_param weft__hub_comment_params[];

/* ---- hub_methods_question.c ---- */
weft_handler weft__hub_questions, weft__hub_answer;
/* A list of those that are open, or of all that are remembered. -ENOMEM. */
int weft__hub_write_questions(weft_buf *out, const weft_hub *hub, bool all);
extern const weft_param weft__hub_questions_params[], weft__hub_answer_params[];

/* ---- hub_methods_terminal.c ---- */
weft_handler weft__hub_terminals, weft__hub_terminal_get, weft__hub_terminal_write, weft__hub_terminal_resize;
extern const weft_param weft__hub_terminals_params[], weft__hub_terminal_get_params[], weft__hub_terminal_write_params[],
    weft__hub_terminal_resize_params[];

/* ---- hub_methods_plan.c ---- */
weft_handler weft__hub_plans, weft__hub_plan_get, weft__hub_plan_cancel;
extern const weft_param weft__hub_plans_params[], weft__hub_plan_params[];

/* ---- hub_methods_event.c ---- */
weft_handler weft__hub_subscribe, weft__hub_unsubscribe;
extern const weft_param weft__hub_subscribe_params[], weft__hub_unsubscribe_params[];

#endif

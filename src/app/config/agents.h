/* Which agents there are: those that come with Weft, and what the configuration makes of them.
 *
 * A preset is a row: a name, how to start it, what it is, and what to do when it is not installed. An entry of the
 * configuration with the same name replaces the members it gives; any other is an agent of its own. Nothing is started or
 * downloaded in here. */
#ifndef WEFT_AGENTS_H
#define WEFT_AGENTS_H

#include "agent.h"
#include "app.h"
#include "arena.h"
#include "config.h"

/* NULL: none comes with Weft under this name. */
const weft_agent *weft__agent_preset(const char *name);
/* Feed the names of presets and of the configured ones. */
void weft__agent_suggest(weft_suggestion *suggestion, const weft_json *configured);

/* All of them, presets first: the object "agents" of a configuration that was checked, merged with the presets. Everything
 * lies in the arena, nothing is borrowed from the configuration. fallback is the name of the default agent. -ENOMEM. */
int weft__agents_make(const weft_json *configured, const char *fallback, weft_arena *arena, weft_agents *ret);

/* May this be in the list of a role though no agent is called so: exec:PROGRAM ARG..., a child that speaks the planner's
 * protocol? 1 yes, 0 it is no such address; -EINVAL it is one with a mistake (*ret_why, static), -ENOMEM. */
int weft__agent_address(const char *text, const char **ret_why);

/* Add who holds the roles of planner and executor; an empty list: nobody was named. A program that is given by its address
 * becomes an agent that is called after it, "exec:python3", and not with its arguments: they are not everybody's. -ENOMEM.
 */
int weft__agents_roles(const weft_texts *planners, const weft_texts *executors, weft_arena *arena, weft_agents *to);

/* The object "agents" or "mcp.servers", or the list "automation.rules", as it may be shown: what variables and headers are
 * set to is hidden, since keys of services are given that way. Owned. -ENOMEM. */
int weft__agents_hide(const weft_json *configured, const weft_alloc *alloc, weft_doc **ret);

/* The row's check: does it say all that is needed to start it? */
int weft__agent_check(const weft_checking *checking, const char *path, const char *name, const weft_json *at,
                      const weft_json *value);

/* Is it installed, for the project in whose folder we are? The demo always is. */
bool weft__agent_found(const weft_agent *agent);

#endif

/* Where the program of an agent is. A preset's comes from the user's own machine and never from the project: not from a
 * folder of PATH inside it, not from anybody's node_modules, and nothing is downloaded when it runs. What "weft agents
 * install" put into the user's data folder comes first. */
#ifndef WEFT_AGENT_PROGRAM_H
#define WEFT_AGENT_PROGRAM_H

#include "agent.h"

/* The folder for what is installed of this agent: $XDG_DATA_HOME or ~/.local/share, then weft/agents/NAME. -ENOENT: the user
 * has no home; -ENAMETOOLONG. */
int weft__agent_home(const char *name, char *ret, size_t size);

/* As an absolute path, or as it was configured; "" for an agent that the driver brings. folder is the project's. -ENOENT: it
 * is not installed; -EACCES: it may not be run. */
int weft__agent_program(const weft_agent *agent, const char *folder, char *ret, size_t size);

/* The version that "weft agents install" put there; "" for none, or one that came otherwise. program is where it is. */
void weft__agent_version(const weft_agent *agent, const char *program, char *ret, size_t size);

/* A program of this name in a folder of PATH that is none of the project's. As above. */
int weft__find_outside(const char *name, const char *folder, char *ret, size_t size);

/* "PATH=" and the folders of PATH that are none of the project's. room has WEFT_OUTSIDE_PATH bytes more than PATH. */
void weft__outside_path(char *room, const char *folder);
#define WEFT_OUTSIDE_PATH 8

/* An agent as it is to be started: with its program found, and for a preset with a PATH without the project's folders, so
 * that what it starts itself ("env node") does not come from there either. Owned, in one piece; the agent stays borrowed.
 * *ret is NULL when there is nothing to change. As weft__agent_program(), and -ENOMEM. */
int weft__agent_resolve(const weft_agent *agent, const char *folder, const weft_alloc *alloc, weft_agent **ret);

#endif

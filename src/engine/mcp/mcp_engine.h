/* MCP servers as a part of the engine: what happens to them is in its journal, what they ask is a question of its own. */
#ifndef WEFT_MCP_ENGINE_H
#define WEFT_MCP_ENGINE_H

#include "engine.h"
#include "mcp.h"

typedef struct weft_mcp_engine weft_mcp_engine;

/* The engine is ready. Questions that servers asked an earlier daemon are withdrawn: nobody waits for their answers. */
int weft__mcp_engine_new(weft_engine *engine, const weft_mcp_specs *specs, bool no_sampling, weft_mcp_engine **ret);
weft_mcp *weft__mcp_engine_mcp(const weft_mcp_engine *self);
/* End all servers; nothing new is asked of them. */
void weft__mcp_engine_stop(weft_mcp_engine *self);
/* Before the engine is freed: forget the servers. Behind it: the rest. Both take NULL. */
void weft__mcp_engine_close(weft_mcp_engine *self);
weft_mcp_engine *weft__mcp_engine_free(weft_mcp_engine *self);

#endif

/* The methods for MCP servers, for their files: mcp_rows.c has the table, mcp_ask.c what is asked of one server, mcp_lists.c
 * what several are asked for. */
#ifndef WEFT_MCP_ROWS_H
#define WEFT_MCP_ROWS_H

#include "hub.h"

/* The server of this name; NULL: there is none, and that is answered. */
weft_mcp_server *weft__mcp_named(weft_req *req, const weft_hub *hub, const char *name);
/* Say that a server refused or failed: -32007, with what it said. */
int weft__mcp_reply_failed(weft_req *req, const char *server, const weft_mcp_answer *answer);
/* A request that could not even be queued. */
int weft__mcp_reply_full(weft_req *req, const char *server, int r);

/* ---- mcp_ask.c ---- */
weft_handler weft__mcp_call_tool, weft__mcp_read, weft__mcp_prompt, weft__mcp_complete, weft__mcp_follow, weft__mcp_unfollow;
extern const weft_param weft__mcp_call_params[], weft__mcp_read_params[], weft__mcp_prompt_params[],
    weft__mcp_complete_params[], weft__mcp_follow_params[];

/* ---- mcp_lists.c ---- */
weft_handler weft__mcp_servers, weft__mcp_tools, weft__mcp_resources, weft__mcp_prompts;
extern const weft_param weft__mcp_servers_params[], weft__mcp_list_params[];

#endif

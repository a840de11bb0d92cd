/* MCP servers as the configuration has them: checked, and made into what the engine starts. */
#ifndef WEFT_MCP_CONFIG_H
#define WEFT_MCP_CONFIG_H

#include "arena.h"
#include "config.h"
#include "mcp.h"

/* The row's check: a program or a URL, and nothing that belongs to the other. */
int weft__mcp_config_check(const weft_checking *checking, const char *path, const char *name, const weft_json *at,
                           const weft_json *value);
/* The object "mcp.servers" of a configuration that was checked. Everything lies in the arena. -ENOMEM. */
int weft__mcp_config_make(const weft_json *configured, weft_arena *arena, weft_mcp_specs *ret);

#endif

/* The headers of a request to an MCP server. */
#ifndef WEFT_MCP_HEADERS_H
#define WEFT_MCP_HEADERS_H

#include "mcp_private.h"

#define WEFT_MCP_HEADERS 96

/* Names and values are borrowed. Ends with a NULL name; zero it first. */
typedef struct weft_mcp_headers {
    weft_header rows[WEFT_MCP_HEADERS + 1];
    size_t count;
} weft_mcp_headers;

/* Without a value, or when there are too many, it is left out. */
void weft__mcp_headers_add(weft_mcp_headers *list, const char *name, const char *value);
/* What the modern era wants to see without reading the message: its method, what it is about, and the params that the tool
 * wants there. room is the caller's, for as long as the list is used. -EMSGSIZE, -ENOMEM. */
int weft__mcp_headers_modern(weft_mcp_headers *list, const weft_mcp_server *server, const weft_json *message, int64_t call,
                             weft_buf *room);

#endif

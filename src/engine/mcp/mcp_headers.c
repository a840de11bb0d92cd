/* Headers of requests by HTTP. What is in them must say the same as the message: servers of the modern era compare. */
#include "mcp_headers.h"

#include <string.h>

void weft__mcp_headers_add(weft_mcp_headers *list, const char *name, const char *value) {
    if (value && *value && list->count < WEFT_MCP_HEADERS)
        list->rows[list->count++] = (weft_header){name, value};
}

int weft__mcp_headers_modern(weft_mcp_headers *list, const weft_mcp_server *server, const weft_json *message, int64_t call,
                             weft_buf *room) {
    const char *method = weft_get_str(message, "method", "");
    weft_json params = weft_get(message, "params");
    bool reads = strcmp(method, "resources/read") == 0;
    bool named = reads || strcmp(method, "tools/call") == 0 || strcmp(method, "prompts/get") == 0;
    weft_json name = named ? weft_get(&params, reads ? "uri" : "name") : (weft_json){0};
    const weft_mcp_request *request = weft__mcp_by_call(server, call);
    weft_bytes text;
    weft__mcp_headers_add(list, "Mcp-Method", method);
    if (name.text && weft_bytes_of(&name, &text) >= 0) {
        int r = weft__mcp_header_value(server->mcp->alloc, text, room);
        if (r >= 0)
            r = weft__buf_put(room, server->mcp->alloc, "", 1);
        if (r < 0)
            return r;
        weft__mcp_headers_add(list, "Mcp-Name", weft__buf_head(room));
    }
    const char *at = request ? weft__buf_head(&request->headers) : NULL;
    const char *end = at ? at + weft__buf_len(&request->headers) : NULL;
    while (at && at < end) {
        const char *value = at + strlen(at) + 1;
        if (list->count < WEFT_MCP_HEADERS) /* an empty value is one too */
            list->rows[list->count++] = (weft_header){at, value};
        at = value + strlen(value) + 1;
    }
    return 0;
}

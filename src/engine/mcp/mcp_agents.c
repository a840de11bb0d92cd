/* The configured servers in the words of ACP, for agents that use them by themselves. Their keys are in it: it is handed to
 * the agent and to nobody else. */
#include <string.h>

#include "mcp_private.h"
#include "write.h"

#define MOST_ROWS 64 /* arguments, variables or headers of one server */

static bool is_for_agent(const weft_mcp_spec *spec, const char *agent) {
    if (!spec->agents)
        return true;
    for (size_t i = 0; spec->agents[i]; i++)
        if (strcmp(spec->agents[i], agent) == 0 || strcmp(spec->agents[i], "*") == 0)
            return true;
    return false;
}

typedef struct agent_rows {
    weft_val list[MOST_ROWS];
    weft_member members[MOST_ROWS][2];
    size_t count;
} agent_rows;

static void add_pair(agent_rows *rows, weft_val name, weft_val value) {
    if (rows->count == MOST_ROWS)
        return;
    weft_member *members = rows->members[rows->count];
    members[0] = (weft_member){"name", name};
    members[1] = (weft_member){"value", value};
    rows->list[rows->count++] = weft_obj(members, 2);
}

static int put_program(weft_buf *out, const weft_alloc *alloc, const weft_mcp_spec *spec) {
    weft_val args[MOST_ROWS];
    agent_rows env = {0};
    size_t count = 0;
    while (count < MOST_ROWS && spec->argv[count + 1]) {
        args[count] = weft_str(spec->argv[count + 1]);
        count++;
    }
    for (size_t i = 0; spec->env && spec->env[i]; i++) {
        const char *text = spec->env[i], *equals = strchr(text, '=');
        if (equals)
            add_pair(&env, weft_strn(text, (size_t) (equals - text)), weft_str(equals + 1));
    }
    weft_val value = WEFT_OBJ({"name", weft_str(spec->name)}, {"command", weft_str(spec->argv[0])},
                              {"args", weft_arr(args, count)}, {"env", weft_arr(env.list, env.count)});
    return weft__write_val(out, alloc, &value);
}

/* Which of the two a URL is that we find out about ourselves is known once it was reached. */
static int put_remote(weft_buf *out, const weft_alloc *alloc, const weft_mcp_server *server) {
    const weft_mcp_spec *spec = server->spec;
    agent_rows headers = {0};
    bool sse = spec->transport == WEFT_MCP_SSE || server->wire == &weft__mcp_sse;
    for (const weft_header *row = spec->headers; row && row->name; row++)
        add_pair(&headers, weft_str(row->name), weft_str(row->value));
    weft_val value = WEFT_OBJ({"type", weft_str(sse ? "sse" : "http")}, {"name", weft_str(spec->name)},
                              {"url", weft_str(spec->url)}, {"headers", weft_arr(headers.list, headers.count)});
    return weft__write_val(out, alloc, &value);
}

int weft__mcp_for_agent(const weft_mcp *mcp, const char *agent, weft_buf *out) {
    const weft_alloc *alloc = mcp->alloc;
    bool any = false;
    int r = 0;
    for (weft_mcp_server *at = weft__mcp_first(mcp); r >= 0 && at; at = weft__mcp_next(mcp, at)) {
        if (!is_for_agent(at->spec, agent))
            continue;
        r = weft__buf_put(out, alloc, any ? "," : "[", 1);
        any = true;
        if (r >= 0)
            r = at->spec->argv ? put_program(out, alloc, at->spec) : put_remote(out, alloc, at);
    }
    return r < 0 || !any ? r : weft__buf_put(out, alloc, "]", 1);
}

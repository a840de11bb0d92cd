/* The servers of "mcp.servers". The members are those that other programs use for the same, so that an entry can be copied.
 */
#include "mcp_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport.h"

/* ---- checking ---- */

static int refuse_server(const weft_checking *checking, const weft_json *at, const char *path, const char *why) {
    weft__config_say(checking, at, true, "%s %s", path, why);
    return -EBADMSG;
}

static bool is_server_name(const char *name) {
    for (const unsigned char *p = (const unsigned char *) name; *p; p++)
        if (*p <= ' ' || *p == 0x7f)
            return false;
    return *name && strlen(name) <= 64;
}

static bool is_web_url(const char *text, const weft_alloc *alloc) {
    weft_url url;
    if ((strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) ||
        weft__transport_parse(NULL, text, alloc, &url, NULL) < 0)
        return false;
    weft__url_done(&url, alloc);
    return true;
}

static const char *why_no_headers(const weft_json *headers) {
    for (weft_iter it = weft_iterate(headers); weft_next(&it);) {
        const char *name = weft_str_of(&it.name, ""), *value = weft_str_of(&it.value, "\n");
        if (!weft__mcp_is_header(name, value))
            return "has a header that HTTP cannot send";
    }
    return weft_count(headers) > 32 ? "has more than 32 headers" : NULL;
}

static const char *why_no_server(const weft_json *value, const weft_alloc *alloc, weft_json *ret_at) {
    weft_json command = weft_get(value, "command"), url = weft_get(value, "url"), headers = weft_get(value, "headers");
    const char *transport = weft_get_str(value, "transport", command.text ? "stdio" : "auto");
    bool stdio = strcmp(transport, "stdio") == 0;
    *ret_at = *value;
    if (!command.text == !url.text)
        return "needs a \"command\" or a \"url\", and not both";
    if (command.text && (!stdio || headers.text))
        return "has a \"command\": its transport is stdio, and it has no headers";
    if (url.text && (stdio || weft_get(value, "args").text || weft_get(value, "env").text))
        return "has a \"url\": it has no args, no env, and its transport is auto, http or sse";
    *ret_at = command.text ? command : url;
    if (command.text && !*weft_str_of(&command, ""))
        return "has no program in \"command\"";
    if (url.text && !is_web_url(weft_str_of(&url, ""), alloc))
        return "has a \"url\" that is neither http nor https";
    *ret_at = headers.text ? headers : *value;
    return why_no_headers(&headers);
}

int weft__mcp_config_check(const weft_checking *checking, const char *path, const char *name, const weft_json *at,
                           const weft_json *value) {
    weft_json where;
    if (!is_server_name(name))
        return refuse_server(checking, at, path, "is not a valid name for a server: at most 64 characters, and no blanks");
    const char *why = why_no_server(value, checking->alloc, &where);
    return why ? refuse_server(checking, &where, path, why) : 0;
}

/* ---- making ---- */

static const char *keep_string(weft_arena *arena, const weft_json *value) {
    weft_bytes text;
    char *copy = weft_bytes_of(value, &text) < 0 ? NULL : weft__arena_alloc(arena, text.len + 1);
    if (copy) {
        memcpy(copy, text.data, text.len);
        copy[text.len] = '\0';
    }
    return copy;
}

/* first, if there is one, and then the items. */
static const char *const *keep_list(weft_arena *arena, const char *first, const weft_json *items) {
    size_t count = 0;
    const char **list = weft__arena_alloc(arena, (weft_count(items) + 2) * sizeof *list);
    if (!list)
        return NULL;
    if (first)
        list[count++] = first;
    for (weft_iter it = weft_iterate(items); weft_next(&it);)
        if (!(list[count++] = keep_string(arena, &it.value)))
            return NULL;
    list[count] = NULL;
    return list;
}

static const weft_header *keep_headers(weft_arena *arena, const weft_json *object) {
    size_t count = 0;
    weft_header *list = weft__arena_alloc(arena, (weft_count(object) + 1) * sizeof *list);
    if (!list)
        return NULL;
    for (weft_iter it = weft_iterate(object); weft_next(&it); count++) {
        list[count] = (weft_header){keep_string(arena, &it.name), keep_string(arena, &it.value)};
        if (!list[count].name || !list[count].value)
            return NULL;
    }
    list[count] = (weft_header){0};
    return list;
}

static const char *const *keep_env(weft_arena *arena, const weft_json *object) {
    size_t count = 0;
    const weft_header *pairs = keep_headers(arena, object);
    const char **list = weft__arena_alloc(arena, (weft_count(object) + 1) * sizeof *list);
    for (const weft_header *at = pairs; list && pairs && at->name; at++) {
        size_t size = strlen(at->name) + strlen(at->value) + 2;
        char *text = weft__arena_alloc(arena, size);
        if (!text)
            return NULL;
        snprintf(text, size, "%s=%s", at->name, at->value);
        list[count++] = text;
    }
    if (list)
        list[count] = NULL;
    return pairs ? list : NULL;
}

static weft_mcp_transport transport_of(const weft_json *value) {
    const char *said = weft_get_str(value, "transport", weft_get(value, "command").text ? "stdio" : "auto");
    for (int i = 0; weft__mcp_transports[i]; i++)
        if (strcmp(said, weft__mcp_transports[i]) == 0)
            return (weft_mcp_transport) i;
    return WEFT_MCP_AUTO;
}

static int make_server(weft_mcp_spec *spec, const weft_iter *it, weft_arena *arena) {
    const weft_json *value = &it->value;
    weft_json command = weft_get(value, "command"), url = weft_get(value, "url"), args = weft_get(value, "args"),
              env = weft_get(value, "env"), headers = weft_get(value, "headers"), agents = weft_get(value, "agents"),
              idle = weft_get(value, "idle_ms");
    *spec = (weft_mcp_spec){.name = keep_string(arena, &it->name),
                            .transport = transport_of(value),
                            .url = url.text ? keep_string(arena, &url) : NULL,
                            .timeout_ms = weft_get_int(value, "timeout_ms", 0),
                            .idle_ms = weft_int_of(&idle, 0)};
    if (idle.text && spec->idle_ms == 0)
        spec->idle_ms = -1; /* for the engine, 0 is "not said" */
    const char *program = command.text ? keep_string(arena, &command) : NULL;
    spec->argv = program ? keep_list(arena, program, &args) : NULL;
    spec->env = env.text ? keep_env(arena, &env) : NULL;
    spec->headers = headers.text ? keep_headers(arena, &headers) : NULL;
    spec->agents = agents.text ? keep_list(arena, NULL, &agents) : NULL;
    bool whole = spec->name && (!url.text || spec->url) && (!command.text || spec->argv) && (!env.text || spec->env) &&
                 (!headers.text || spec->headers) && (!agents.text || spec->agents);
    return whole ? 0 : -ENOMEM;
}

/* A name that is there twice counts as it was said last. */
static size_t place_of(const weft_mcp_spec *list, size_t count, const char *name) {
    size_t i = 0;
    while (i < count && strcmp(list[i].name, name) != 0)
        i++;
    return i;
}

int weft__mcp_config_make(const weft_json *configured, weft_arena *arena, weft_mcp_specs *ret) {
    size_t count = 0;
    weft_mcp_spec *list = weft__arena_alloc(arena, (weft_count(configured) + 1) * sizeof *list);
    if (!list)
        return -ENOMEM;
    for (weft_iter it = weft_iterate(configured); weft_next(&it);) {
        weft_mcp_spec spec;
        int r = make_server(&spec, &it, arena);
        if (r < 0)
            return r;
        size_t place = place_of(list, count, spec.name);
        list[place] = spec;
        count += place == count;
    }
    *ret = (weft_mcp_specs){list, count};
    return 0;
}

/* What the list of tools is needed for besides showing it: the schema of a tool's result, and the params that a server of
 * the modern era wants to see in headers (x-mcp-header), so that whoever stands before it need not read the message. */
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "http1_bytes.h"
#include "mcp_private.h"

#define MARK "x-mcp-header"
#define PREFIX "Mcp-Param-"
#define DEEPEST 16    /* properties within properties that are looked into for headers */
#define MOST_MARKS 32 /* headers of one tool */
#define LONGEST_MARK 64
#define LARGEST_VALUE 4096 /* bytes of one of them */

bool weft__mcp_is_header(const char *name, const char *value) {
    return *name && strlen(name) <= 256 && strlen(value) <= 4096 && weft__http_is(name, HTTP_TOKEN) &&
           weft__http_is(value, HTTP_VALUE);
}

bool weft__mcp_tool(const weft_mcp_server *server, const char *name, weft_json *ret) {
    if (!server->tools)
        return false;
    for (weft_iter it = weft_iterate(weft_doc_root(server->tools)); weft_next(&it);)
        if (strcmp(weft_get_str(&it.value, "name", ""), name) == 0) {
            *ret = it.value;
            return true;
        }
    return false;
}

/* ---- headers ---- */

/* As it is, if it is visible ASCII with single blanks inside; otherwise, and where it looks like the other form, in base64.
 */
static bool is_plain_value(weft_bytes text) {
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] < ' ' || text.data[i] > '~')
            return false;
    return !text.len ||
           (text.data[0] != ' ' && text.data[text.len - 1] != ' ' && (text.len < 2 || memcmp(text.data, "=?", 2) != 0));
}

int weft__mcp_header_value(const weft_alloc *alloc, weft_bytes text, weft_buf *out) {
    if (is_plain_value(text))
        return weft__buf_put(out, alloc, text.data, text.len);
    if (text.len > LARGEST_VALUE)
        return -EMSGSIZE;
    int r = weft__buf_put(out, alloc, "=?base64?", 9);
    if (r >= 0)
        r = weft__buf_reserve(out, alloc, 4 * ((text.len + 2) / 3) + 1);
    if (r < 0)
        return r;
    int n = EVP_EncodeBlock((unsigned char *) weft__buf_tail(out), (const unsigned char *) text.data, (int) text.len);
    out->end += (size_t) n;
    return weft__buf_put(out, alloc, "?=", 2);
}

typedef struct marks {
    char names[MOST_MARKS][LONGEST_MARK + 1];
    size_t count; /* at properties that are reached by nothing but properties */
    bool invalid;
    weft_buf *out; /* NULL: only looked for */
    const weft_alloc *alloc;
    int r;
} marks;

static void put_mark(marks *self, const char *name, const weft_json *value) {
    weft_bytes text = {value->text, value->len};
    weft_type type = weft_typeof(value);
    if (type == WEFT_STRING && weft_bytes_of(value, &text) < 0)
        self->r = -ENOMEM;
    if (type != WEFT_STRING && type != WEFT_NUMBER && type != WEFT_BOOL)
        return;
    if (self->r >= 0)
        self->r = weft__buf_put(self->out, self->alloc, PREFIX, sizeof PREFIX - 1);
    if (self->r >= 0)
        self->r = weft__buf_put(self->out, self->alloc, name, strlen(name) + 1);
    if (self->r >= 0)
        self->r = weft__mcp_header_value(self->alloc, text, self->out);
    if (self->r >= 0)
        self->r = weft__buf_put(self->out, self->alloc, "", 1);
}

static bool is_mark_type(const char *type) {
    return strcmp(type, "string") == 0 || strcmp(type, "integer") == 0 || strcmp(type, "boolean") == 0;
}

static void take_mark(marks *self, const weft_json *schema, const weft_json *mark, const weft_json *value) {
    const char *name = weft_str_of(mark, "");
    bool fits = *name && strlen(name) <= LONGEST_MARK && weft__http_is(name, HTTP_TOKEN) && self->count < MOST_MARKS &&
                is_mark_type(weft_get_str(schema, "type", ""));
    for (size_t i = 0; fits && i < self->count; i++)
        fits = strcasecmp(self->names[i], name) != 0;
    if (!fits) {
        self->invalid = true;
        return;
    }
    snprintf(self->names[self->count++], LONGEST_MARK + 1, "%s", name);
    if (self->out && value->text)
        put_mark(self, name, value);
}

/* By properties only; a value may be absent. */
static void find_marks(marks *self, const weft_json *schema, const weft_json *value, int depth) {
    weft_json properties = weft_get(schema, "properties");
    for (weft_iter it = weft_iterate(&properties); depth < DEEPEST && weft_next(&it);) {
        weft_json mark = weft_get(&it.value, MARK);
        const char *name = weft_str_of(&it.name, NULL);
        weft_json inside = name ? weft_get(value, name) : (weft_json){0};
        if (mark.text)
            take_mark(self, &it.value, &mark, &inside);
        find_marks(self, &it.value, &inside, depth + 1);
    }
}

/* How often it stands there as a member's name; a property may have that name too. */
static size_t count_marks(const weft_json *schema) {
    static const char text[] = "\"" MARK "\"";
    size_t count = 0;
    const char *at = schema->text, *end = at + schema->len;
    while (at && at < end && (at = memmem(at, (size_t) (end - at), text, sizeof text - 1)))
        count++, at += sizeof text - 1;
    return count;
}

/* A mark where it must not be makes the tool one that must not be used. */
static bool has_valid_marks(const weft_json *tool) {
    weft_json schema = weft_get(tool, "inputSchema"), nothing = {0};
    marks self = {0};
    size_t all = schema.text ? count_marks(&schema) : 0;
    if (!all)
        return true;
    find_marks(&self, &schema, &nothing, 0);
    return !self.invalid && self.count == all;
}

int weft__mcp_param_headers(const weft_mcp_server *server, const weft_json *params, weft_buf *out) {
    weft_json tool, arguments = weft_get(params, "arguments");
    marks self = {.out = out, .alloc = server->mcp->alloc};
    weft__buf_done(out, server->mcp->alloc);
    if (!weft__mcp_tool(server, weft_get_str(params, "name", ""), &tool))
        return 0;
    weft_json schema = weft_get(&tool, "inputSchema");
    if (schema.text && count_marks(&schema))
        find_marks(&self, &schema, &arguments, 0);
    return self.r;
}

/* ---- the list ---- */

int weft__mcp_keep_tools(weft_mcp_server *server, const weft_json *list) {
    const weft_alloc *alloc = server->mcp->alloc;
    weft_buf out = {0};
    weft_doc *kept = NULL;
    int r = weft__buf_put(&out, alloc, "[", 1);
    for (weft_iter it = weft_iterate(list); r >= 0 && weft_next(&it);) {
        if (server->era == WEFT_MCP_IS_MODERN && !has_valid_marks(&it.value))
            continue;
        r = weft__buf_len(&out) > 1 ? weft__buf_put(&out, alloc, ",", 1) : 0;
        if (r >= 0)
            r = weft__buf_put(&out, alloc, it.value.text, it.value.len);
    }
    if (r >= 0)
        r = weft__buf_put(&out, alloc, "]", 1);
    if (r >= 0)
        r = weft_doc_parse(weft__buf_head(&out), weft__buf_len(&out), alloc, &kept);
    weft__buf_done(&out, alloc);
    if (r < 0)
        return r;
    weft_doc_free(server->tools);
    server->tools = kept;
    return 0;
}

/* ---- results ---- */

static int check_against(const weft_mcp_server *server, const weft_json *schema, const weft_json *value,
                         char why[WEFT_MCP_WHY]) {
    WEFT_AUTO(weft_schema) compiled = NULL;
    WEFT_SCHEMA_REPORT report = {0};
    weft_schema_opts opts = {.alloc = server->mcp->alloc, .max_nodes = 5000, .max_bytes = 1u << 20, .max_steps = 1000000};
    int r = weft_schema_compile(schema->text, schema->len, &opts, &compiled, &report);
    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        const weft_schema_error *first = report.count ? report.errors : NULL;
        snprintf(why, WEFT_MCP_WHY, "the outputSchema of the tool cannot be used: %.100s %.200s",
                 first ? first->keyword : "it is", first ? first->message : weft_strerror(r));
        return -EBADMSG;
    }
    r = weft_schema_check(compiled, value, &report);
    if (r < 0 && r != -ENOMEM)
        snprintf(why, WEFT_MCP_WHY, "the result does not fit the outputSchema of the tool: %.100s %.200s",
                 report.count ? report.errors[0].instance : "", report.count ? report.errors[0].message : "");
    return r < 0 && r != -ENOMEM ? -EBADMSG : r;
}

int weft__mcp_check_result(const weft_mcp_server *server, const weft_json *params, const weft_json *result,
                           char why[WEFT_MCP_WHY]) {
    weft_json tool, content = weft_get(result, "structuredContent");
    if (weft_get_bool(result, "isError", false) || !weft__mcp_tool(server, weft_get_str(params, "name", ""), &tool))
        return 0;
    weft_json schema = weft_get(&tool, "outputSchema");
    if (!schema.text || weft_typeof(&schema) == WEFT_NULL)
        return 0;
    if (!content.text) {
        snprintf(why, WEFT_MCP_WHY, "the tool has an outputSchema, and the result has no structuredContent");
        return -EBADMSG;
    }
    return check_against(server, &schema, &content, why);
}

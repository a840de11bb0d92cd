/* What agents say, as version 1 of the protocol has it. Agents leave out what must be there, name kinds that there are not,
 * and put a text where a list belongs; an editor that reads strictly takes that for an error of ours. So what may be missing
 * and is wrong is left out, items that are wrong leave their list, and what cannot be shown at all is not told. This is how
 * the protocol's own schema wants such members to be read. Nothing is stored differently: other dialects see what was said.
 */
#include <errno.h>
#include <string.h>

#include "acp.h"

typedef bool fit_test(const weft_json *value);

/* A member that is known. Others pass: they are the agent's own. */
struct member {
    const char *name;
    fit_test *fits; /* the value, or each item where it is a list */
    bool list;      /* items that do not fit are left out */
    bool must;      /* without it there is nothing to tell */
    bool may_be_null;
};

/* ---- values ---- */

static bool is_text(const weft_json *value) {
    return weft_typeof(value) == WEFT_STRING;
}

static bool is_number(const weft_json *value) {
    return weft_typeof(value) == WEFT_NUMBER;
}

static bool is_flag(const weft_json *value) {
    return weft_typeof(value) == WEFT_BOOL;
}

static bool is_object(const weft_json *value) {
    return weft_typeof(value) == WEFT_OBJECT;
}

static bool is_count(const weft_json *value) {
    return is_number(value) && weft_int_of(value, -1) >= 0;
}

static bool is_absent(const weft_json *value) {
    return !value->text || weft_typeof(value) == WEFT_NULL;
}

static bool is_one_of(const weft_json *value, const char *const *known) {
    const char *text = is_text(value) ? weft_str_of(value, NULL) : NULL;
    while (text && *known && strcmp(*known, text) != 0)
        known++;
    return text && *known;
}

static bool has(const weft_json *object, const char *name, fit_test *test) {
    weft_json value = weft_get(object, name);
    return value.text && test(&value);
}

static bool may_have(const weft_json *object, const char *name, fit_test *test) {
    weft_json value = weft_get(object, name);
    return is_absent(&value) || test(&value);
}

static bool is_type(const weft_json *object, const char *type) {
    weft_json value = weft_get(object, "type");
    return is_text(&value) && strcmp(weft_str_of(&value, ""), type) == 0;
}

/* ---- contents ---- */

static bool is_resource(const weft_json *value) {
    return is_object(value) && has(value, "uri", is_text) && (has(value, "text", is_text) || has(value, "blob", is_text));
}

static bool is_block(const weft_json *value) {
    if (!is_object(value))
        return false;
    if (is_type(value, "text"))
        return has(value, "text", is_text);
    if (is_type(value, "image") || is_type(value, "audio"))
        return has(value, "data", is_text) && has(value, "mimeType", is_text);
    if (is_type(value, "resource_link"))
        return has(value, "name", is_text) && has(value, "uri", is_text);
    return is_type(value, "resource") && has(value, "resource", is_resource);
}

static bool is_call_content(const weft_json *value) {
    if (!is_object(value))
        return false;
    if (is_type(value, "content"))
        return has(value, "content", is_block);
    if (is_type(value, "diff"))
        return has(value, "path", is_text) && has(value, "newText", is_text) && may_have(value, "oldText", is_text);
    return is_type(value, "terminal") && has(value, "terminalId", is_text);
}

static bool is_place(const weft_json *value) {
    return is_object(value) && has(value, "path", is_text) && may_have(value, "line", is_count);
}

static bool is_tool_kind(const weft_json *value) {
    static const char *const known[] = {"read",  "edit",  "delete",      "move",  "search", "execute",
                                        "think", "fetch", "switch_mode", "other", NULL};
    return is_one_of(value, known);
}

static bool is_tool_status(const weft_json *value) {
    static const char *const known[] = {"pending", "in_progress", "completed", "failed", NULL};
    return is_one_of(value, known);
}

static bool is_priority(const weft_json *value) {
    static const char *const known[] = {"high", "medium", "low", NULL};
    return is_one_of(value, known);
}

static bool is_entry_status(const weft_json *value) {
    static const char *const known[] = {"pending", "in_progress", "completed", NULL};
    return is_one_of(value, known);
}

static bool is_entry(const weft_json *value) {
    return is_object(value) && has(value, "content", is_text) && has(value, "priority", is_priority) &&
           has(value, "status", is_entry_status);
}

static bool is_cost(const weft_json *value) {
    return is_object(value) && has(value, "amount", is_number) && has(value, "currency", is_text);
}

/* ---- what a session offers ---- */

static bool is_hint(const weft_json *value) {
    return is_object(value) && has(value, "hint", is_text);
}

static bool is_command(const weft_json *value) {
    return is_object(value) && has(value, "name", is_text) && has(value, "description", is_text) &&
           may_have(value, "input", is_hint);
}

static bool is_mode(const weft_json *value) {
    return is_object(value) && has(value, "id", is_text) && has(value, "name", is_text) &&
           may_have(value, "description", is_text);
}

static bool is_choice(const weft_json *value) {
    return is_object(value) && has(value, "value", is_text) && has(value, "name", is_text);
}

static bool is_group(const weft_json *value) {
    weft_json choices = weft_get(value, "options");
    if (!is_object(value) || !has(value, "group", is_text) || !has(value, "name", is_text) ||
        weft_typeof(&choices) != WEFT_ARRAY)
        return false;
    for (weft_iter it = weft_iterate(&choices); weft_next(&it);)
        if (!is_choice(&it.value))
            return false;
    return true;
}

/* Either all are choices, or all are groups of them. */
static bool are_choices(const weft_json *value) {
    bool grouped = false, first = true;
    if (weft_typeof(value) != WEFT_ARRAY)
        return false;
    for (weft_iter it = weft_iterate(value); weft_next(&it); first = false) {
        if (first)
            grouped = is_group(&it.value);
        if (grouped ? !is_group(&it.value) : !is_choice(&it.value))
            return false;
    }
    return true;
}

static bool is_named(const weft_json *value) {
    return is_object(value) && has(value, "id", is_text) && has(value, "name", is_text);
}

static bool is_select(const weft_json *value) {
    return is_named(value) && is_type(value, "select") && has(value, "currentValue", is_text) &&
           has(value, "options", are_choices);
}

static bool is_option(const weft_json *value) {
    return is_select(value) || (is_named(value) && is_type(value, "boolean") && has(value, "currentValue", is_flag));
}

/* ---- updates ---- */

/* clang-format off */
static const struct member chunk[] = {
    {"content", is_block, .must = true},
    {"messageId", is_text, .may_be_null = true},
    {NULL},
};
static const struct member call[] = {
    {"toolCallId", is_text, .must = true},
    {"title", is_text, .must = true},
    {"name", is_text, .may_be_null = true},
    {"kind", is_tool_kind},
    {"status", is_tool_status},
    {"content", is_call_content, .list = true},
    {"locations", is_place, .list = true},
    {NULL},
};
static const struct member call_update[] = {
    {"toolCallId", is_text, .must = true},
    {"title", is_text, .may_be_null = true},
    {"name", is_text, .may_be_null = true},
    {"kind", is_tool_kind, .may_be_null = true},
    {"status", is_tool_status, .may_be_null = true},
    {"content", is_call_content, .list = true, .may_be_null = true},
    {"locations", is_place, .list = true, .may_be_null = true},
    {NULL},
};
static const struct member plan[] = {
    {"entries", is_entry, .list = true, .must = true},
    {NULL},
};
static const struct member usage[] = {
    {"used", is_count, .must = true},
    {"size", is_count, .must = true},
    {"cost", is_cost, .may_be_null = true},
    {NULL},
};
static const struct member commands[] = {
    {"availableCommands", is_command, .list = true, .must = true},
    {NULL},
};
static const struct member options[] = {
    {"configOptions", is_option, .list = true, .must = true},
    {NULL},
};
static const struct member selects[] = {
    {"configOptions", is_select, .list = true, .must = true},
    {NULL},
};
static const struct member mode[] = {
    {"currentModeId", is_text, .must = true},
    {NULL},
};
static const struct member info[] = {
    {"title", is_text, .may_be_null = true},
    {NULL},
};
static const struct member modes[] = {
    {"availableModes", is_mode, .list = true, .must = true},
    {NULL},
};

static const struct {
    const char *kind;
    const struct member *members;
} kinds[] = {
    {"agent_message_chunk", chunk},
    {"agent_thought_chunk", chunk},
    {"tool_call", call},
    {"tool_call_update", call_update},
    {"plan", plan},
    {"usage_update", usage},
    {"available_commands_update", commands},
    {"config_option_update", options},
    {"current_mode_update", mode},
    {"session_info_update", info},
    {ACP_FIT_SELECTS, selects},
    {ACP_FIT_MODES, modes},
};
/* clang-format on */

static const struct member *members_of(const char *kind) {
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return kinds[i].members;
    return NULL;
}

static bool all_items_fit(const weft_json *list, fit_test *test) {
    for (weft_iter it = weft_iterate(list); weft_next(&it);)
        if (!test(&it.value))
            return false;
    return true;
}

/* Right as it is. */
static bool is_right(const struct member *member, const weft_json *value) {
    if (weft_typeof(value) == WEFT_NULL)
        return member->may_be_null;
    if (member->list)
        return weft_typeof(value) == WEFT_ARRAY && all_items_fit(value, member->fits);
    return member->fits(value);
}

/* A list loses its items that are wrong; anything else that is wrong is lost as a whole. */
static bool can_stay(const struct member *member, const weft_json *value) {
    return is_right(member, value) || (member->list && weft_typeof(value) == WEFT_ARRAY);
}

/* 1: something in it is wrong; 0: nothing is; -EBADMSG: it is of no use. */
static int look_at(const struct member *members, const weft_json *object) {
    int r = 0;
    for (const struct member *one = members; one->name; one++) {
        weft_json value = weft_get(object, one->name);
        if (one->must && (!value.text || !can_stay(one, &value)))
            return -EBADMSG;
        if (value.text && !is_right(one, &value))
            r = 1;
    }
    return r;
}

/* ---- writing ---- */

static int put_items(weft_buf *out, const weft_alloc *alloc, const weft_json *list, fit_test *test) {
    int r = weft__buf_put_text(out, alloc, "[");
    bool first = true;
    for (weft_iter it = weft_iterate(list); r >= 0 && weft_next(&it);) {
        if (!test(&it.value))
            continue;
        r = first ? 0 : weft__buf_put_text(out, alloc, ",");
        first = false;
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
    }
    return r < 0 ? r : weft__buf_put_text(out, alloc, "]");
}

static const struct member *find_member(const struct member *members, const weft_iter *it) {
    for (; members->name; members++)
        if (weft_name_is(it, members->name))
            return members;
    return NULL;
}

static int put_right(weft_buf *out, const weft_alloc *alloc, const struct member *members, const weft_json *object) {
    int r = weft__buf_put_text(out, alloc, "{");
    bool first = true;
    for (weft_iter it = weft_iterate(object); r >= 0 && weft_next(&it);) {
        const struct member *known = find_member(members, &it);
        if (known && !can_stay(known, &it.value))
            continue;
        r = first ? 0 : weft__buf_put_text(out, alloc, ",");
        first = false;
        if (r >= 0)
            r = weft__buf_put(out, alloc, it.name.text, it.name.len);
        if (r >= 0)
            r = weft__buf_put_text(out, alloc, ":");
        if (r >= 0 && known && !is_right(known, &it.value))
            r = put_items(out, alloc, &it.value, known->fits);
        else if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
    }
    return r < 0 ? r : weft__buf_put_text(out, alloc, "}");
}

int weft__acp_fit(const char *kind, const weft_json *object, const weft_alloc *alloc, weft_buf *ret) {
    const struct member *members = members_of(kind);
    weft_buf out = {0};
    if (!is_object(object))
        return -EBADMSG;
    int r = members ? look_at(members, object) : 0;
    if (r <= 0)
        return r;
    r = put_right(&out, alloc, members, object);
    if (r < 0)
        weft__buf_done(&out, alloc);
    else
        *ret = out;
    return r < 0 ? r : 1;
}

int weft__acp_fit_value(const char *kind, const weft_json *value, const weft_alloc *alloc, weft_buf *ret) {
    const struct member *member = members_of(kind);
    weft_buf out = {0};
    if (is_right(member, value))
        return 0;
    if (!can_stay(member, value))
        return -EBADMSG;
    int r = put_items(&out, alloc, value, member->fits);
    if (r < 0)
        weft__buf_done(&out, alloc);
    else
        *ret = out;
    return r < 0 ? r : 1;
}

/* ---- choosing ---- */

static bool is_among(const weft_json *choices, const weft_json *value) {
    for (weft_iter it = weft_iterate(choices); weft_next(&it);) {
        weft_json one = weft_get(&it.value, "value"), group = weft_get(&it.value, "options");
        if (group.text ? is_among(&group, value)
                       : is_text(&one) && strcmp(weft_str_of(&one, ""), weft_str_of(value, "\x01")) == 0)
            return true;
    }
    return false;
}

bool weft__acp_may_choose(const weft_json *option, const weft_json *value) {
    weft_json choices = weft_get(option, "options");
    if (is_type(option, "boolean"))
        return is_flag(value);
    return !is_type(option, "select") || (is_text(value) && is_among(&choices, value));
}

/* ---- MCP servers ---- */

static bool is_list_of(const weft_json *object, const char *name, fit_test *test) {
    weft_json list = weft_get(object, name);
    return weft_typeof(&list) == WEFT_ARRAY && all_items_fit(&list, test);
}

static bool is_pair(const weft_json *value) {
    return is_object(value) && has(value, "name", is_text) && has(value, "value", is_text);
}

static bool is_word(const weft_json *value) {
    return is_text(value) && value->len > 2; /* with its quotation marks */
}

static const char *what_is_wrong(const weft_json *server) {
    weft_json type = weft_get(server, "type");
    if (!is_object(server) || !has(server, "name", is_word))
        return "an MCP server has a name";
    if (is_absent(&type) || is_type(server, "stdio"))
        return has(server, "command", is_word) && is_list_of(server, "args", is_text) && is_list_of(server, "env", is_pair)
                   ? NULL
                   : "an MCP server without a type has command, args and env";
    if (!is_type(server, "http") && !is_type(server, "sse"))
        return "there are MCP servers of the types http and sse, and without one";
    return has(server, "url", is_word) && is_list_of(server, "headers", is_pair)
               ? NULL
               : "an MCP server of the type http or sse has url and headers";
}

const char *weft__acp_wrong_servers(const weft_json *servers) {
    const char *wrong = NULL;
    for (weft_iter it = weft_iterate(servers); !wrong && weft_next(&it);)
        wrong = what_is_wrong(&it.value);
    return wrong;
}

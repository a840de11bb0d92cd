/* Between the current form of ACP and the older one, in both directions: a value is copied, and the names of its members are
 * spelled the other way. */
#include "acp_old.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "write.h"

/* ---- names ---- */

/* A longer name is nobody's, and stays as it is. */
#define NAME 64

static bool is_own_name(const char *name, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char) name[i]) && name[i] != '_')
            return false;
    return len > 0 && len < NAME && *name != '_';
}

/* sessionId → session_id */
static size_t snake_name(const char *name, size_t len, char ret[2 * NAME]) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (isupper((unsigned char) name[i]) && i)
            ret[n++] = '_';
        ret[n++] = (char) tolower((unsigned char) name[i]);
    }
    return n;
}

/* session_id → sessionId */
static size_t camel_name(const char *name, size_t len, char ret[2 * NAME]) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        bool joint = name[i] == '_' && i + 1 < len && islower((unsigned char) name[i + 1]);
        ret[n++] = joint ? (char) toupper((unsigned char) name[++i]) : name[i];
    }
    return n;
}

/* ---- copying ---- */

struct other_form {
    size_t (*spell)(const char *name, size_t len, char ret[2 * NAME]);
    weft_buf *out;
    const weft_alloc *alloc;
};

static int put_piece(const struct other_form *form, const char *text) {
    return weft__write_raw(form->out, form->alloc, text, strlen(text));
}

static int put_spelled(const struct other_form *form, const weft_json *name) {
    char spelled[2 * NAME];
    weft_bytes text;
    int r = weft_bytes_of(name, &text);
    if (r < 0)
        return r;
    if (!is_own_name(text.data, text.len))
        return weft__write_raw(form->out, form->alloc, name->text, name->len);
    return weft__write_str(form->out, form->alloc, spelled, form->spell(text.data, text.len, spelled));
}

/* Of a tool, or of somebody else: what is in there has names that are not ours. */
static bool is_foreign(const weft_iter *it) {
    static const char *const names[] = {"_meta", "rawInput", "rawOutput", "arguments", "output", "raw_input", "raw_output"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (weft_name_is(it, names[i]))
            return true;
    return false;
}

static int put_value(const struct other_form *form, const weft_json *value);

static int put_member(const struct other_form *form, const weft_iter *it, bool first) {
    int r = first ? 0 : put_piece(form, ",");
    if (r >= 0)
        r = put_spelled(form, &it->name);
    if (r >= 0)
        r = put_piece(form, ":");
    if (r < 0)
        return r;
    return is_foreign(it) ? weft__write_raw(form->out, form->alloc, it->value.text, it->value.len)
                          : put_value(form, &it->value);
}

/* Not deeper than any text that was read. */
static int put_value(const struct other_form *form, const weft_json *value) {
    weft_type type = weft_typeof(value);
    bool first = true;
    if (type != WEFT_OBJECT && type != WEFT_ARRAY)
        return weft__write_raw(form->out, form->alloc, value->text, value->len);
    int r = put_piece(form, type == WEFT_OBJECT ? "{" : "[");
    for (weft_iter it = weft_iterate(value); r >= 0 && weft_next(&it); first = false) {
        if (type == WEFT_OBJECT)
            r = put_member(form, &it, first);
        else {
            r = first ? 0 : put_piece(form, ",");
            r = r < 0 ? r : put_value(form, &it.value);
        }
    }
    return r < 0 ? r : put_piece(form, type == WEFT_OBJECT ? "}" : "]");
}

int weft__acp_old_value(weft_buf *out, const weft_alloc *alloc, const weft_json *value) {
    return put_value(&(struct other_form){snake_name, out, alloc}, value);
}

/* ---- updates ---- */

struct renamed {
    const char *current, *old;
};

/* How the older form wraps an update: all of it in a member of this name, or its content once more in "content". */
static const struct wrapping {
    const char *kind;
    const char *member; /* NULL: none */
    bool content;       /* {"content": {"content": {...}}} */
    bool commands;      /* whose inputs have a type */
    struct renamed names[4];
} wrappings[] = {
    {"user_message_chunk", NULL, true, false, {{0}}},
    {"agent_message_chunk", NULL, true, false, {{0}}},
    {"agent_thought_chunk", NULL, true, false, {{0}}},
    {"available_commands_update", NULL, false, true, {{0}}},
    {"plan", "plan", false, false, {{0}}},
    {"tool_call", "tool_call", false, false, {{"toolCallId", "call_id"}, {"title", "name"}, {"rawInput", "arguments"}}},
    {"tool_call_update",
     "tool_call_update",
     false,
     false,
     {{"toolCallId", "call_id"}, {"title", "name"}, {"rawInput", "arguments"}, {"rawOutput", "output"}}},
};
static const struct wrapping *const tool_call = &wrappings[6];
static const struct wrapping none = {0};

static int find_wrapping(const weft_json *update, const struct wrapping **ret) {
    weft_json kind = weft_get(update, "sessionUpdate");
    weft_bytes text = {0};
    int r = kind.text ? weft_bytes_of(&kind, &text) : 0;
    *ret = &none;
    if (r == -ENOMEM)
        return r;
    for (size_t i = 0; i < sizeof wrappings / sizeof wrappings[0]; i++)
        if (text.len == strlen(wrappings[i].kind) && memcmp(text.data, wrappings[i].kind, text.len) == 0)
            *ret = &wrappings[i];
    return 0;
}

/* A member that the other form calls something else; NULL: it is only spelled. */
static const char *renamed_to(const struct wrapping *wrapping, const weft_iter *it, bool to_old) {
    for (size_t i = 0; i < sizeof wrapping->names / sizeof wrapping->names[0] && wrapping->names[i].old; i++)
        if (weft_name_is(it, to_old ? wrapping->names[i].current : wrapping->names[i].old))
            return to_old ? wrapping->names[i].old : wrapping->names[i].current;
    return NULL;
}

static int put_renamed(const struct other_form *form, const weft_iter *it, const char *name, bool first) {
    int r = first ? 0 : put_piece(form, ",");
    if (r >= 0)
        r = weft__write_str(form->out, form->alloc, name, strlen(name));
    if (r >= 0)
        r = put_piece(form, ":");
    return r < 0 ? r : weft__write_raw(form->out, form->alloc, it->value.text, it->value.len);
}

/* All members of an object but these two, in the other form. *ret_count: how many were written before. */
static int put_members(const struct other_form *form, const struct wrapping *wrapping, bool to_old, const weft_json *object,
                       const char *but, size_t *count) {
    int r = 0;
    for (weft_iter it = weft_iterate(object); r >= 0 && weft_next(&it);) {
        const char *name = renamed_to(wrapping, &it, to_old);
        if (weft_name_is(&it, "sessionUpdate") || (but && weft_name_is(&it, but)))
            continue;
        r = name ? put_renamed(form, &it, name, !*count) : put_member(form, &it, !*count);
        ++*count;
    }
    return r;
}

static int put_kind(const struct other_form *form, const weft_json *update) {
    weft_json kind = weft_get(update, "sessionUpdate");
    int r = put_piece(form, "{\"sessionUpdate\":");
    weft_val value = weft_copy(&kind);
    return r < 0 ? r : weft__write_val(form->out, form->alloc, &value);
}

/* ---- to the older form ---- */

static int put_old_content(const struct other_form *form, const weft_json *update) {
    weft_json content = weft_get(update, "content");
    int r = put_piece(form, ",\"content\":{\"content\":");
    if (r >= 0)
        r = content.text ? put_value(form, &content) : put_piece(form, "null");
    return r < 0 ? r : put_piece(form, "}");
}

static int put_old_wrapped(const struct other_form *form, const struct wrapping *wrapping, const weft_json *object,
                           const char *but) {
    size_t count = 0;
    int r = put_piece(form, "{");
    if (r >= 0)
        r = put_members(form, wrapping, true, object, but, &count);
    return r < 0 ? r : put_piece(form, "}");
}

static int put_old_commands(const struct other_form *form, const weft_json *update);

static int put_old_update(const struct other_form *form, const struct wrapping *wrapping, const weft_json *update) {
    weft_json meta = weft_get(update, "_meta");
    const char *but = wrapping->content ? "content" : wrapping->commands ? "availableCommands" : NULL;
    size_t count = 1;
    int r = put_kind(form, update);
    if (r >= 0 && wrapping->content)
        r = put_old_content(form, update);
    if (r < 0 || !wrapping->member)
        return r < 0 ? r : put_members(form, wrapping, true, update, but, &count);
    r = put_piece(form, ",\"");
    if (r >= 0)
        r = put_piece(form, wrapping->member);
    if (r >= 0)
        r = put_piece(form, "\":");
    if (r >= 0)
        r = put_old_wrapped(form, wrapping, update, "_meta");
    if (r >= 0 && meta.text)
        r = put_piece(form, ",\"_meta\":");
    return r < 0 || !meta.text ? r : weft__write_raw(form->out, form->alloc, meta.text, meta.len);
}

int weft__acp_old_update(weft_buf *out, const weft_alloc *alloc, const weft_json *update) {
    struct other_form form = {snake_name, out, alloc};
    const struct wrapping *wrapping;
    int r = find_wrapping(update, &wrapping);
    if (r >= 0)
        r = put_old_update(&form, wrapping, update);
    if (r >= 0 && wrapping->commands)
        r = put_old_commands(&form, update);
    return r < 0 ? r : put_piece(&form, "}");
}

int weft__acp_old_tool_call(weft_buf *out, const weft_alloc *alloc, const weft_json *call) {
    return put_old_wrapped(&(struct other_form){snake_name, out, alloc}, tool_call, call, NULL);
}

int weft__acp_put_old(const weft_alloc *alloc, weft_acp_write_old *write, weft_val value, weft_buf *ret) {
    char *text = NULL;
    size_t len;
    weft_doc *doc = NULL;
    int r = weft_to_text(value, alloc, &text, &len);
    if (r >= 0)
        r = weft_doc_parse(text, len, alloc, &doc);
    if (r >= 0)
        r = write(ret, alloc, weft_doc_root(doc));
    weft_doc_free(doc);
    weft_text_free(text, alloc);
    return r;
}

/* ---- commands ---- */

/* Their input has a type there: that of words as they were typed. */
static int put_old_input(const struct other_form *form, const weft_json *input) {
    size_t count = 1;
    if (weft_typeof(input) != WEFT_OBJECT || weft_get(input, "type").text)
        return put_value(form, input);
    int r = put_piece(form, "{\"type\":\"unstructured\"");
    if (r >= 0)
        r = put_members(form, &none, true, input, NULL, &count);
    return r < 0 ? r : put_piece(form, "}");
}

static int put_old_command(const struct other_form *form, const weft_json *command) {
    weft_json input = weft_get(command, "input");
    size_t count = 0;
    if (weft_typeof(command) != WEFT_OBJECT)
        return put_value(form, command);
    int r = put_piece(form, "{");
    if (r >= 0)
        r = put_members(form, &none, true, command, "input", &count);
    if (r >= 0 && input.text)
        r = put_piece(form, count ? ",\"input\":" : "\"input\":");
    if (r >= 0 && input.text)
        r = put_old_input(form, &input);
    return r < 0 ? r : put_piece(form, "}");
}

static int put_old_commands(const struct other_form *form, const weft_json *update) {
    weft_json commands = weft_get(update, "availableCommands");
    bool first = true;
    if (!commands.text)
        return 0;
    int r = put_piece(form, ",\"available_commands\":");
    if (r < 0 || weft_typeof(&commands) != WEFT_ARRAY)
        return r < 0 ? r : put_value(form, &commands);
    r = put_piece(form, "[");
    for (weft_iter it = weft_iterate(&commands); r >= 0 && weft_next(&it); first = false) {
        r = first ? 0 : put_piece(form, ",");
        r = r < 0 ? r : put_old_command(form, &it.value);
    }
    return r < 0 ? r : put_piece(form, "]");
}

/* ---- and back ---- */

/* The member that holds what the current form has beside the kind; absent: nothing is wrapped. */
static weft_json wrapped_part(const struct wrapping *wrapping, const weft_json *update) {
    weft_json part = wrapping->member ? weft_get(update, wrapping->member) : (weft_json){0};
    return weft_typeof(&part) == WEFT_OBJECT ? part : (weft_json){0};
}

static int put_current_content(const struct other_form *form, const weft_json *content) {
    int r = put_piece(form, ",\"content\":");
    return r < 0 ? r : put_value(form, content);
}

int weft__acp_current_update(weft_buf *out, const weft_alloc *alloc, const weft_json *update) {
    struct other_form form = {camel_name, out, alloc};
    const struct wrapping *wrapping;
    size_t count = 1;
    int r = find_wrapping(update, &wrapping);
    weft_json part = r < 0 ? (weft_json){0} : wrapped_part(wrapping, update);
    weft_json content = r >= 0 && wrapping->content ? weft_pointer(update, "/content/content") : (weft_json){0};
    const char *but = part.text ? wrapping->member : content.text ? "content" : NULL;
    if (r >= 0)
        r = put_kind(&form, update);
    if (r >= 0 && content.text)
        r = put_current_content(&form, &content);
    if (r >= 0 && part.text)
        r = put_members(&form, wrapping, false, &part, NULL, &count);
    if (r >= 0)
        r = put_members(&form, &none, false, update, but, &count);
    return r < 0 ? r : put_piece(&form, "}");
}

/* ---- which form it is ---- */

/* Where the older form has a member that the present one does not: its name, and what it must be inside of. */
static const struct {
    const char *kind, *member, *inner;
} old_forms[] = {
    {"user_message_chunk", "content", "content"},
    {"agent_message_chunk", "content", "content"},
    {"agent_thought_chunk", "content", "content"},
    {"plan", "plan", "entries"},
    {"tool_call", "tool_call", "call_id"},
    {"tool_call_update", "tool_call_update", "call_id"},
    {"available_commands_update", "available_commands", NULL},
    {"current_mode_update", "current_mode_id", NULL},
};

bool weft__acp_is_old_update(const weft_json *update) {
    weft_json kind = weft_get(update, "sessionUpdate");
    weft_iter name = {.name = kind};
    if (weft_typeof(&kind) != WEFT_STRING)
        return false;
    for (size_t i = 0; i < sizeof old_forms / sizeof old_forms[0]; i++) {
        if (!weft_name_is(&name, old_forms[i].kind))
            continue;
        weft_json member = weft_get(update, old_forms[i].member);
        return member.text && (!old_forms[i].inner || weft_get(&member, old_forms[i].inner).text);
    }
    return false;
}

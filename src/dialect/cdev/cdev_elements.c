/* Elements: a transcript's items as a phone shows them. A tool call is up to three: the call, its result and the changes it
 * made to a file. */
#include <stdio.h>
#include <string.h>

#include "cdev.h"
#include "reply.h"
#include "transcript.h"
#include "write.h"

#define SUMMARY 100 /* bytes of a result that stand for it */

struct element {
    const weft_alloc *alloc;
    const weft_transcript_item *item;
    weft_buf *out;
    size_t *count;
};

static int write_element(const struct element *e, const char *suffix, const char *type, weft_val content) {
    char id[WEFT_TRANSCRIPT_ID + 16], time[WEFT_STAMP];
    snprintf(id, sizeof id, "elem_%s%s", e->item->id, suffix);
    weft_val value = WEFT_OBJ({"id", weft_str(id)}, {"type", weft_str(type)},
                              {"timestamp", weft_str(weft__stamp(e->item->time_ms, time))}, {"content", content});
    int r = weft__buf_put(e->out, e->alloc, ",", 1);
    ++*e->count;
    return r < 0 ? r : weft__write_val(e->out, e->alloc, &value);
}

static weft_val raw_or(weft_bytes json, weft_val otherwise) {
    return json.data ? weft_raw(json.data, json.len) : otherwise;
}

static bool is_json(weft_bytes json, const char *text) {
    return json.data && json.len == strlen(text) + 2 && memcmp(json.data + 1, text, json.len - 2) == 0;
}

/* ACP's words for the states of a call, in the original's. */
static const char *tool_status(weft_bytes status) {
    if (is_json(status, "failed"))
        return "error";
    return is_json(status, "completed") ? "completed" : "running";
}

static int write_call(const struct element *e) {
    const weft_bytes *members = e->item->members;
    return write_element(e, "", "tool_call",
                         WEFT_OBJ({"tool", raw_or(members[WEFT_TOOL_KIND], weft_str("tool"))},
                                  {"tool_id", raw_or(members[WEFT_TOOL_CALL_ID], weft_none())},
                                  {"display", raw_or(members[WEFT_TOOL_TITLE], weft_str(""))},
                                  {"params", raw_or(members[WEFT_TOOL_INPUT], weft_obj(NULL, 0))},
                                  {"status", weft_str(tool_status(members[WEFT_TOOL_STATUS]))}));
}

/* ---- results ---- */

static size_t count_lines(weft_bytes text) {
    size_t count = text.len > 0;
    for (size_t i = 0; i + 1 < text.len; i++)
        count += text.data[i] == '\n';
    return count;
}

static size_t first_line(weft_bytes text) {
    const char *end = text.len ? memchr(text.data, '\n', text.len) : NULL;
    size_t len = end ? (size_t) (end - text.data) : text.len;
    if (len > SUMMARY)
        for (len = SUMMARY; len && ((unsigned char) text.data[len] & 0xC0) == 0x80;)
            len--;
    return len;
}

static int write_result(const struct element *e, weft_bytes text) {
    const weft_bytes *members = e->item->members;
    char call[WEFT_TRANSCRIPT_ID + 8];
    size_t lines = count_lines(text);
    snprintf(call, sizeof call, "elem_%s", e->item->id);
    return write_element(
        e, "_result", "tool_result",
        WEFT_OBJ({"tool_call_id", weft_str(call)}, {"tool_name", raw_or(members[WEFT_TOOL_KIND], weft_str("tool"))},
                 {"is_error", weft_bool(is_json(members[WEFT_TOOL_STATUS], "failed"))},
                 {"summary", weft_strn(text.data, first_line(text))}, {"full_content", weft_strn(text.data, text.len)},
                 {"line_count", weft_uint(lines)}, {"expandable", weft_bool(lines > 1)}));
}

/* ---- changes of a file ---- */

/* ACP has the text before and after, not the lines that differ: one hunk that replaces one by the other. */
static int write_lines(weft_buf *out, const weft_alloc *alloc, weft_bytes text, const char *type, bool *first) {
    int r = 0;
    size_t number = 1;
    for (const char *line = text.data, *end = line + text.len; r >= 0 && line < end; number++) {
        const char *stop = memchr(line, '\n', (size_t) (end - line));
        stop = stop ? stop : end;
        weft_val value =
            WEFT_OBJ({"type", weft_str(type)}, {strcmp(type, "added") == 0 ? "new_line" : "old_line", weft_uint(number)},
                     {"content", weft_strn(line, (size_t) (stop - line))});
        r = *first ? 0 : weft__buf_put(out, alloc, ",", 1);
        *first = false;
        if (r >= 0)
            r = weft__write_val(out, alloc, &value);
        line = stop + 1;
    }
    return r;
}

static int write_hunk(const struct element *e, weft_bytes path, weft_bytes before, weft_bytes after, weft_bytes lines) {
    size_t removed = count_lines(before), added = count_lines(after);
    char header[96], display[96], call[WEFT_TRANSCRIPT_ID + 8];
    snprintf(header, sizeof header, "@@ -1,%zu +1,%zu @@", removed, added);
    snprintf(display, sizeof display, "Added %zu lines, removed %zu lines", added, removed);
    snprintf(call, sizeof call, "elem_%s", e->item->id);
    weft_val hunk =
        WEFT_OBJ({"header", weft_str(header)}, {"old_start", weft_int(1)}, {"old_count", weft_uint(removed)},
                 {"new_start", weft_int(1)}, {"new_count", weft_uint(added)}, {"lines", weft_raw(lines.data, lines.len)});
    return write_element(e, "_diff", "diff",
                         WEFT_OBJ({"tool_call_id", weft_str(call)}, {"file_path", weft_strn(path.data, path.len)},
                                  {"summary", WEFT_OBJ({"added", weft_uint(added)}, {"removed", weft_uint(removed)},
                                                       {"display", weft_str(display)})},
                                  {"hunks", weft_arr(&hunk, 1)}));
}

static weft_bytes member_text_or_empty(const weft_json *object, const char *name) {
    weft_json value = weft_get(object, name);
    weft_bytes text;
    return weft_bytes_of(&value, &text) < 0 ? (weft_bytes){"", 0} : text;
}

static int write_diff(const struct element *e, const weft_json *diff) {
    weft_bytes before = member_text_or_empty(diff, "oldText"), after = member_text_or_empty(diff, "newText");
    weft_buf lines = {0};
    bool first = true;
    int r = weft__buf_put(&lines, e->alloc, "[", 1);
    if (r >= 0)
        r = write_lines(&lines, e->alloc, before, "removed", &first);
    if (r >= 0)
        r = write_lines(&lines, e->alloc, after, "added", &first);
    if (r >= 0)
        r = weft__buf_put(&lines, e->alloc, "]", 1);
    if (r >= 0)
        r = write_hunk(e, member_text_or_empty(diff, "path"), before, after,
                       (weft_bytes){weft__buf_head(&lines), weft__buf_len(&lines)});
    weft__buf_done(&lines, e->alloc);
    return r;
}

/* ---- what a call brought ---- */

/* Of several texts one result, of several diffs the first: their ids must differ. */
static int read_content(const weft_json *content, const weft_alloc *alloc, weft_buf *text, weft_json *ret_diff) {
    int r = 0;
    for (weft_iter it = weft_iterate(content); weft_typeof(content) == WEFT_ARRAY && r >= 0 && weft_next(&it);) {
        weft_json inner = weft_pointer(&it.value, "/content/text");
        weft_bytes piece;
        if (strcmp(weft_get_str(&it.value, "type", ""), "diff") == 0 && !ret_diff->text)
            *ret_diff = it.value;
        else if (weft_bytes_of(&inner, &piece) >= 0)
            r = weft__buf_put(text, alloc, piece.data, piece.len);
    }
    return r;
}

static int write_tool(const struct element *e) {
    const weft_bytes *content = &e->item->members[WEFT_TOOL_CONTENT];
    weft_doc *doc = NULL;
    weft_buf text = {0};
    weft_json diff = {0};
    int r = write_call(e);
    if (r >= 0 && content->data)
        r = weft_doc_parse(content->data, content->len, e->alloc, &doc);
    if (r >= 0 && doc)
        r = read_content(weft_doc_root(doc), e->alloc, &text, &diff);
    if (r >= 0 && weft__buf_len(&text))
        r = write_result(e, (weft_bytes){weft__buf_head(&text), weft__buf_len(&text)});
    if (r >= 0 && diff.text)
        r = write_diff(e, &diff);
    weft__buf_done(&text, e->alloc);
    weft_doc_free(doc);
    return r;
}

int weft__cdev_write_elements(const weft_alloc *alloc, const weft_transcript_item *item, weft_buf *out, size_t *count) {
    struct element e = {alloc, item, out, count};
    weft_val text = weft_strn(item->text.data, item->text.len);
    switch (item->said) {
    case WEFT_SAID_PROMPT:
        return write_element(&e, "", "user_input", WEFT_OBJ({"text", text}));
    case WEFT_SAID_THOUGHT:
        return write_element(&e, "", "thinking", WEFT_OBJ({"text", text}, {"collapsed", weft_bool(true)}));
    case WEFT_SAID_TOOL:
        return write_tool(&e);
    case WEFT_SAID_PLAN:
        return write_element(&e, "", "plan",
                             WEFT_OBJ({"entries", raw_or(item->members[WEFT_PLAN_ENTRIES], weft_arr(NULL, 0))}));
    default:
        return write_element(&e, "", "assistant_text", WEFT_OBJ({"text", text}));
    }
}

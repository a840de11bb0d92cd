/* Tool calls that show a terminal, for clients. An editor looks an id of a terminal up among those that it made itself, and
 * takes one that is not there for an error. The hub runs the terminals of agents, so the ids are the hub's. */
#include <string.h>

#include "acp.h"

/* Compared where it lies: for want of memory nothing may be shown. */
static bool is_our_terminal(const weft_json *element) {
    static const char begins[] = "\"" WEFT_TERMINAL_PREFIX;
    weft_json id = weft_get(element, "terminalId");
    return id.len > sizeof begins && memcmp(id.text, begins, sizeof begins - 1) == 0;
}

static bool shows_ours(const weft_json *content) {
    for (weft_iter it = weft_iterate(content); weft_typeof(content) == WEFT_ARRAY && weft_next(&it);)
        if (is_our_terminal(&it.value))
            return true;
    return false;
}

static int put_listed(weft_buf *out, const weft_alloc *alloc, bool first, weft_json value) {
    int r = first ? 0 : weft__buf_put(out, alloc, ",", 1);
    return r < 0 ? r : weft__buf_put(out, alloc, value.text, value.len);
}

static int write_others(const weft_json *content, const weft_alloc *alloc, weft_buf *out) {
    int r = weft__buf_put(out, alloc, "[", 1);
    bool first = true;
    for (weft_iter it = weft_iterate(content); r >= 0 && weft_next(&it);) {
        if (is_our_terminal(&it.value))
            continue;
        r = put_listed(out, alloc, first, it.value);
        first = false;
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "]", 1);
}

static int write_without_terminals(const weft_json *call, const weft_alloc *alloc, weft_buf *out) {
    int r = weft__buf_put(out, alloc, "{", 1);
    bool first = true;
    for (weft_iter it = weft_iterate(call); r >= 0 && weft_next(&it); first = false) {
        r = put_listed(out, alloc, first, it.name);
        if (r >= 0)
            r = weft__buf_put(out, alloc, ":", 1);
        if (r >= 0 && weft_name_is(&it, "content"))
            r = write_others(&it.value, alloc, out);
        else if (r >= 0)
            r = weft__buf_put(out, alloc, it.value.text, it.value.len);
    }
    return r < 0 ? r : weft__buf_put(out, alloc, "}", 1);
}

int weft__acp_hide_terminals(const weft_json *call, const weft_alloc *alloc, weft_buf *ret) {
    weft_json content = weft_get(call, "content");
    weft_buf out = {0};
    if (!shows_ours(&content))
        return 0;
    int r = write_without_terminals(call, alloc, &out);
    if (r < 0)
        weft__buf_done(&out, alloc);
    else
        *ret = out;
    return r < 0 ? r : 1;
}

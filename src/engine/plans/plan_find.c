/* Finding the JSON in what an agent says. Agents were asked for JSON and nothing else, and many say something before it and
 * after it, or put it into a fenced block. Nothing is guessed: what is found must be valid JSON as it stands. */
#include <errno.h>
#include <string.h>

#include "plan.h"

/* Places where an object could begin that are looked at: each may mean reading the text to its end. */
#define TRIES 64

static bool looks_like_plan(const weft_json *value) {
    weft_json tasks = weft_get(value, "tasks"), plan = weft_get(value, "plan");
    return weft_typeof(value) == WEFT_OBJECT && (weft_typeof(&tasks) != WEFT_ABSENT || weft_typeof(&plan) == WEFT_OBJECT);
}

/* 1: it is one. */
static int try_text(const char *text, size_t len, const weft_alloc *alloc, weft_doc **ret) {
    weft_doc *doc = NULL;
    int r = weft_doc_parse(text, len, alloc, &doc);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    if (looks_like_plan(weft_doc_root(doc))) {
        *ret = doc;
        return 1;
    }
    weft_doc_free(doc);
    return 0;
}

/* ---- fenced blocks ---- */

/* The fence at or behind this place, at the beginning of a line; NULL: there is none. */
static const char *find_fence(const char *begin, const char *at, const char *end) {
    while (at < end && (at = memmem(at, (size_t) (end - at), "```", 3))) {
        const char *line = at;
        while (line > begin && (line[-1] == ' ' || line[-1] == '\t'))
            line--;
        if (line == begin || line[-1] == '\n')
            return at;
        at += 3;
    }
    return NULL;
}

static const char *behind_line(const char *at, const char *end) {
    const char *newline = memchr(at, '\n', (size_t) (end - at));
    return newline ? newline + 1 : end;
}

static int find_fenced(weft_bytes text, const weft_alloc *alloc, weft_doc **ret) {
    const char *end = text.data + text.len, *open = find_fence(text.data, text.data, end);
    for (int tries = 0; open && tries < TRIES; tries++) {
        const char *inside = behind_line(open, end), *close = find_fence(text.data, inside, end);
        int r = close ? try_text(inside, (size_t) (close - inside), alloc, ret) : 0;
        if (r)
            return r;
        open = close ? find_fence(text.data, behind_line(close, end), end) : NULL;
    }
    return 0;
}

/* ---- balanced braces ---- */

/* Behind the brace that closes the one at this place; NULL: none does. */
static const char *find_close(const char *at, const char *end) {
    size_t depth = 0;
    bool quoted = false;
    for (; at < end; at++) {
        if (quoted && *at == '\\')
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && *at == '{')
            depth++;
        else if (!quoted && *at == '}' && --depth == 0)
            return at + 1;
    }
    return NULL;
}

static int find_balanced(weft_bytes text, const weft_alloc *alloc, weft_doc **ret) {
    const char *end = text.data + text.len, *at = memchr(text.data, '{', text.len);
    for (int tries = 0; at && tries < TRIES; tries++) {
        const char *close = find_close(at, end);
        int r = close ? try_text(at, (size_t) (close - at), alloc, ret) : 0;
        if (r)
            return r;
        at = memchr(at + 1, '{', (size_t) (end - at - 1));
    }
    return 0;
}

int weft__plan_find(weft_bytes text, const weft_alloc *alloc, weft_doc **ret) {
    if (text.len > WEFT_PLAN_SAID)
        text = (weft_bytes){text.data + text.len - WEFT_PLAN_SAID, WEFT_PLAN_SAID};
    int r = text.len ? find_fenced(text, alloc, ret) : 0;
    if (r == 0 && text.len)
        r = find_balanced(text, alloc, ret);
    return r < 0 ? r : r > 0 ? 0 : -ENOENT;
}

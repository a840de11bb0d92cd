/* The hub's name before the ids of its tasks, sessions and questions, and away again. Only members that hold ids are looked
 * at, and only values that look like ids: what an agent says, and what a person writes, stays as it is. */
#include <errno.h>
#include <string.h>

#include "relay_private.h"
#include "write.h"

#define MOST_DEPTH 16

static const char *const id_members[] = {"id",      "taskId",  "taskIds",    "sessionId", "questionId", "approvalId",
                                         "planId",  "gatedId", "terminalId", "turn",      "task",       "threadId",
                                         "gatedBy", "beside",  "others",     "group"};

static bool holds_ids(const weft_iter *it) {
    for (size_t i = 0; i < sizeof id_members / sizeof id_members[0]; i++)
        if (weft_name_is(it, id_members[i]))
            return true;
    return false;
}

/* "task-0007": one of our words, a dash and digits. */
static bool is_id(const char *text, size_t len) {
    static const char *const kinds[] = {"task-", "session-", "question-", "approval-", "plan-", "gated-", "terminal-"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        size_t n = strlen(kinds[i]);
        if (len <= n || memcmp(text, kinds[i], n) != 0)
            continue;
        while (n < len && text[n] >= '0' && text[n] <= '9')
            n++;
        return n == len;
    }
    return false;
}

/* The length of a hub's name and its colon at the beginning; 0: there is none. */
static size_t name_at(const char *text, size_t len) {
    const char *colon = memchr(text, ':', len < WEFT_RELAY_NAME + 1 ? len : WEFT_RELAY_NAME + 1);
    return colon && colon > text ? (size_t) (colon - text) + 1 : 0;
}

/* Of one that is a relay of several hubs, ids have names before them already. They get ours too: otherwise a hub could speak
 * of another one's tasks. */
static bool is_named_id(const char *text, size_t len) {
    for (size_t n; (n = name_at(text, len)) > 0;) {
        text += n;
        len -= n;
    }
    return is_id(text, len);
}

/* As it is meant: it may be written with escapes. */
static const char *id_of(const weft_json *value) {
    const char *text = weft_typeof(value) == WEFT_STRING ? weft_str_of(value, "") : "";
    return is_named_id(text, strlen(text)) ? text : NULL;
}

/* The length of a name and its colon before an id; 0: there is none. */
static size_t name_before(const weft_json *value) {
    const char *text = id_of(value);
    return text ? name_at(text, strlen(text)) : 0;
}

/* How the values are to be changed. */
typedef struct rewriting {
    weft_buf *out;
    const char *prefix;
    bool bare, deep;
} rewriting;

static int put(const rewriting *how, const char *text, size_t len) {
    return weft__buf_put(how->out, NULL, text, len);
}

static int put_one(const rewriting *how, const weft_json *value) {
    const char *id = id_of(value);
    size_t n = strlen(how->prefix);
    if (!id || (how->bare && (!n || strncmp(id, how->prefix, n) != 0)))
        return put(how, value->text, value->len);
    if (how->bare)
        return weft__write_str(how->out, NULL, id + n, strlen(id + n));
    int r = put(how, "\"", 1);
    if (r >= 0)
        r = put(how, how->prefix, n);
    return r < 0 ? r : put(how, value->text + 1, value->len - 1);
}

static int put_value(const rewriting *how, const weft_json *value, bool ids, unsigned depth);

static int put_items(const rewriting *how, const weft_json *list, bool ids, unsigned depth) {
    const char *between = "[";
    int r = 0;
    for (weft_iter it = weft_iterate(list); r >= 0 && weft_next(&it); between = ",") {
        r = put(how, between, 1);
        if (r >= 0)
            r = put_value(how, &it.value, ids, depth + 1);
    }
    if (r >= 0 && *between == '[')
        r = put(how, "[", 1);
    return r < 0 ? r : put(how, "]", 1);
}

/* The key by which a caller submitted is the hub's: another hub's may be the same. */
static int put_members(const rewriting *how, const weft_json *object, unsigned depth) {
    bool first = true;
    int r = put(how, "{", 1);
    for (weft_iter it = weft_iterate(object); r >= 0 && weft_next(&it);) {
        if ((!how->bare && !how->deep && weft_name_is(&it, "key")) || (how->bare && !depth && weft_name_is(&it, "hub")))
            continue;
        r = first ? 0 : put(how, ",", 1);
        first = false;
        if (r >= 0)
            r = put(how, it.name.text, it.name.len);
        if (r >= 0)
            r = put(how, ":", 1);
        if (r >= 0)
            r = put_value(how, &it.value, holds_ids(&it), depth + 1);
    }
    return r < 0 ? r : put(how, "}", 1);
}

static int put_value(const rewriting *how, const weft_json *value, bool ids, unsigned depth) {
    weft_type type = weft_typeof(value);
    bool enters = depth == 0 || (depth < MOST_DEPTH && (how->deep || (ids && type == WEFT_ARRAY)));
    if (type == WEFT_STRING && ids)
        return put_one(how, value);
    if (type == WEFT_OBJECT && enters)
        return put_members(how, value, depth);
    if (type == WEFT_ARRAY && enters)
        return put_items(how, value, ids, depth);
    return put(how, value->text, value->len);
}

int weft__relay_put_ids(weft_buf *out, const weft_json *value, const char *prefix, bool deep) {
    rewriting how = {.out = out, .prefix = prefix, .deep = deep};
    return *prefix ? put_value(&how, value, false, 0) : put(&how, value->text, value->len);
}

int weft__relay_put_bare(weft_buf *out, const weft_json *value, const char *prefix) {
    rewriting how = {.out = out, .prefix = prefix, .bare = true};
    return put_value(&how, value, false, 0);
}

size_t weft__relay_named(const weft_json *params, char ret[WEFT_RELAY_NAME + 1]) {
    if (weft_typeof(params) != WEFT_OBJECT)
        return 0;
    for (weft_iter it = weft_iterate(params); weft_next(&it);) {
        weft_json value = it.value;
        if (holds_ids(&it) && weft_typeof(&value) == WEFT_ARRAY)
            value = weft_at(&value, 0);
        size_t n = holds_ids(&it) ? name_before(&value) : 0;
        if (!n)
            continue;
        memcpy(ret, weft_str_of(&value, ""), n - 1);
        ret[n - 1] = '\0';
        return n - 1;
    }
    return 0;
}

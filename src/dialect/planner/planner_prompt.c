/* What an agent that reads text is told of a request: the prompt first, as it was said, then the rest by name. */
#include <stdio.h>
#include <string.h>

#include "planner.h"

/* The seed's, and those of its stricter schema. */
static const char *const task_types[] = {"code_generation",  "refactoring",   "analysis", "testing",
                                         "code_refactoring", "code_analysis", "bug_fix",  "documentation"};

bool weft__planner_knows_type(const weft_hub *hub, const char *role, const char *task_type) {
    weft_holder holder;
    for (size_t i = 0; i < sizeof task_types / sizeof task_types[0]; i++)
        if (strcmp(task_types[i], task_type) == 0)
            return true;
    for (size_t n = 0; weft__role_holder(hub->engine, role, n, &holder); n++)
        for (const char *const *type = holder.task_types; type && *type; type++)
            if (strcmp(*type, task_type) == 0)
                return true;
    return false;
}

/* A string as it is, anything else as JSON. */
static int put_prompt_value(weft_buf *out, const weft_alloc *alloc, const weft_json *value) {
    weft_bytes text;
    if (weft_typeof(value) != WEFT_STRING)
        return weft__buf_put(out, alloc, value->text, value->len);
    int r = weft_bytes_of(value, &text);
    return r < 0 ? r : weft__buf_put(out, alloc, text.data, text.len);
}

static bool is_empty(const weft_json *value) {
    weft_type type = weft_typeof(value);
    return type == WEFT_ABSENT || type == WEFT_NULL || ((type == WEFT_ARRAY || type == WEFT_OBJECT) && !weft_count(value)) ||
           (type == WEFT_STRING && value->len == 2);
}

/* "Files: a.c, b.c" */
static int put_line(weft_buf *out, const weft_alloc *alloc, const char *label, const weft_json *value) {
    bool first = true;
    if (is_empty(value))
        return 0;
    int r = weft__buf_put_text(out, alloc, "\n");
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, label);
    if (r >= 0)
        r = weft__buf_put_text(out, alloc, ": ");
    if (weft_typeof(value) != WEFT_ARRAY)
        return r < 0 ? r : put_prompt_value(out, alloc, value);
    for (weft_iter it = weft_iterate(value); r >= 0 && weft_next(&it); first = false) {
        r = first ? 0 : weft__buf_put_text(out, alloc, ", ");
        if (r >= 0)
            r = put_prompt_value(out, alloc, &it.value);
    }
    return r;
}

struct line {
    const char *member, *label;
};

static int put_lines(weft_buf *out, const weft_alloc *alloc, const weft_json *object, const struct line *lines) {
    int r = 0;
    for (; r >= 0 && lines->member; lines++) {
        weft_json value = weft_get(object, lines->member);
        r = put_line(out, alloc, lines->label, &value);
    }
    return r;
}

/* One that is elsewhere, on the caller's machine for instance, would lead an agent out of the project. */
static int put_directory(weft_buf *out, const weft_hub *hub, const weft_json *context) {
    weft_json directory = weft_get(context, "current_directory");
    const char *path = weft_str_of(&directory, NULL);
    char key[WEFT_CONTEXT_KEY + 1];
    bool inside = path && (strcmp(path, weft__engine_folder(hub->engine)) == 0 || !weft__planner_file_wrong(hub, path, key));
    return inside ? put_line(out, hub->alloc, "Directory", &directory) : 0;
}

int weft__planner_prompt(weft_buf *out, const weft_hub *hub, const char *prompt, const char *task_type,
                         const weft_json *context, const weft_json *options) {
    static const struct line of_context[] = {{"files", "Files"},
                                             {"language", "Language"},
                                             {"framework", "Framework"},
                                             {"dependencies", "Dependencies"},
                                             {"constraints", "Constraints"},
                                             {0}};
    static const struct line of_options[] = {
        {"language", "Language"}, {"framework", "Framework"}, {"style_guide", "Style guide"}, {0}};
    const weft_alloc *alloc = hub->alloc;
    int r = weft__buf_put_text(out, alloc, prompt);
    size_t before = weft__buf_len(out);
    if (r >= 0 && task_type) {
        r = weft__buf_put_text(out, alloc, "\nType of task: ");
        if (r >= 0)
            r = weft__buf_put_text(out, alloc, task_type);
    }
    if (r >= 0)
        r = put_directory(out, hub, context);
    if (r >= 0)
        r = put_lines(out, alloc, context, of_context);
    if (r >= 0)
        r = put_lines(out, alloc, options, of_options);
    /* An empty line between what was said and what is known besides. */
    if (r >= 0 && weft__buf_len(out) > before && (r = weft__buf_reserve(out, alloc, 1)) >= 0) {
        char *at = weft__buf_head(out) + before;
        memmove(at + 1, at, weft__buf_len(out) - before);
        *at = '\n';
        out->end++;
    }
    r = r < 0 ? r : weft__buf_put(out, alloc, "", 1);
    if (r >= 0)
        out->end--;
    return r;
}

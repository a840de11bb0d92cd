/* Choosing among changes of files. A pattern to ignore is AIWG's kind: it is looked for anywhere in the path below the row's
 * folder, and "*" stands for any characters, also slashes. */
#include "watch_filter.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"

struct weft_watch_filter {
    const weft_alloc *alloc;
    weft_doc *rows;
};

int weft__watch_filter_new(const weft_json *rows, const weft_alloc *alloc, weft_watch_filter **ret) {
    weft_watch_filter *filter = weft__zalloc(alloc, sizeof *filter);
    if (!filter)
        return -ENOMEM;
    filter->alloc = alloc;
    int r = weft_doc_keep(rows, alloc, &filter->rows);
    if (r < 0)
        weft__watch_filter_free(filter);
    else
        *ret = filter;
    return r;
}

weft_watch_filter *weft__watch_filter_free(weft_watch_filter *filter) {
    if (!filter)
        return NULL;
    weft_doc_free(filter->rows);
    return weft__free(filter->alloc, filter);
}

/* The part of path below the row's folder; NULL: it is not there. */
static const char *path_below(const char *path, const char *folder) {
    if (strncmp(folder, "./", 2) == 0)
        folder += 2;
    size_t len = strlen(folder);
    while (len && folder[len - 1] == '/')
        len--;
    if (len == 0 || (len == 1 && *folder == '.'))
        return path;
    if (strncmp(path, folder, len) != 0)
        return NULL;
    if (path[len] == '/')
        return path + len + 1;
    return path[len] ? NULL : path + len; /* a file that is watched by its name */
}

/* The pieces between the stars, in their order. */
static bool holds_pattern(const char *text, const char *pattern) {
    while (*pattern) {
        size_t len = strcspn(pattern, "*");
        const char *found = len ? memmem(text, strlen(text), pattern, len) : text;
        if (!found)
            return false;
        text = found + len;
        pattern += len;
        pattern += strspn(pattern, "*");
    }
    return true;
}

static bool is_left_out(const weft_json *row, const char *below) {
    weft_json patterns = weft_get(row, "ignore");
    for (weft_iter it = weft_iterate(&patterns); weft_next(&it);) {
        const char *pattern = weft_str_of(&it.value, "");
        if (*pattern && holds_pattern(below, pattern))
            return true;
    }
    return false;
}

/* Is one of these texts what says() looks for? An empty list, or none, says yes. */
static bool is_listed(const weft_json *row, const char *name, bool (*says)(const char *text, const char *of),
                      const char *of) {
    weft_json list = weft_get(row, name);
    if (weft_typeof(&list) != WEFT_ARRAY || weft_count(&list) == 0)
        return true;
    for (weft_iter it = weft_iterate(&list); weft_next(&it);)
        if (says(weft_str_of(&it.value, ""), of))
            return true;
    return false;
}

static bool is_kind(const char *text, const char *kind) {
    return strcmp(text, kind) == 0;
}

static bool is_ending(const char *ending, const char *path) {
    size_t len = strlen(ending), whole = strlen(path);
    return len <= whole && strcmp(path + whole - len, ending) == 0;
}

bool weft__watch_filter_wants(const weft_watch_filter *filter, weft_change_kind kind, const char *path) {
    static const char *const kinds[] = {"create", "modify", "delete"};
    if (!filter)
        return true;
    for (weft_iter it = weft_iterate(weft_doc_root(filter->rows)); weft_next(&it);) {
        const char *below = path_below(path, weft_get_str(&it.value, "path", "."));
        if (below && is_listed(&it.value, "events", is_kind, kinds[kind]) &&
            is_listed(&it.value, "extensions", is_ending, path) && !is_left_out(&it.value, below))
            return true;
    }
    return false;
}

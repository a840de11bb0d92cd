/* The files that a task wrote. Where snapshots are taken before and after, comparing them says it; otherwise the diffs that
 * its agent shows with its tool calls do. An agent that shows none is believed to have written nothing then: these lists are
 * what is known, not a proof.
 *
 * What an agent or a holder says is a claim, and goes on to programs and terminals: a name that is not of a file in the
 * project, or steers a terminal, is left out. What was compared is there, whatever it is called. */
#include <string.h>

#include "doc.h"
#include "planner.h"
#include "write.h"

/* Paths that are kept, and bytes of each. */
#define MOST_PATHS 1000
#define LONGEST_PATH 4096

static bool has_path(const weft_buf *paths, const char *path) {
    const char *at = weft__buf_head(paths), *end = weft__buf_tail(paths);
    for (; at && at < end; at += strlen(at) + 1)
        if (strcmp(at, path) == 0)
            return true;
    return false;
}

static void add_path(weft_planner_files *files, const weft_alloc *alloc, const char *path, bool created) {
    if (!*path || strlen(path) > LONGEST_PATH || files->count >= MOST_PATHS || has_path(&files->created, path) ||
        has_path(&files->modified, path))
        return;
    if (weft__buf_put(created ? &files->created : &files->modified, alloc, path, strlen(path) + 1) >= 0)
        files->count++;
}

void weft__planner_files_event(weft_planner_files *files, const weft_hub *hub, const weft_event *event,
                               const weft_json *data) {
    if (strcmp(event->type, "session.update") != 0)
        return;
    weft_json content = weft_pointer(data, "/update/content");
    for (weft_iter it = weft_iterate(&content); weft_typeof(&content) == WEFT_ARRAY && weft_next(&it);) {
        char file[WEFT_CONTEXT_KEY + 1];
        weft_json before = weft_get(&it.value, "oldText");
        const char *path = weft_get_str(&it.value, "path", NULL);
        if (path && strcmp(weft_get_str(&it.value, "type", ""), "diff") == 0 && !weft__planner_file_wrong(hub, path, file))
            add_path(files, hub->alloc, file, weft_typeof(&before) != WEFT_STRING);
    }
}

static int put_name(weft_buf *out, const weft_alloc *alloc, bool first, const char *path) {
    int r = first ? 0 : weft__buf_put(out, alloc, ",", 1);
    return r < 0 ? r : weft__write_str(out, alloc, path, strlen(path));
}

static int write_told(const weft_buf *paths, const weft_alloc *alloc, weft_buf *out) {
    const char *begin = weft__buf_head(paths), *end = weft__buf_tail(paths);
    int r = 0;
    for (const char *at = begin; r >= 0 && at && at < end; at += strlen(at) + 1)
        r = put_name(out, alloc, at == begin, at);
    return r;
}

/* What was renamed is there under its new name, and was not before. */
void weft__planner_files_compared(weft_planner_files *files, const weft_hub *hub, const weft_changed_list *list) {
    weft__planner_files_done(files, hub->alloc);
    for (size_t i = 0; i < list->count; i++) {
        weft_changed change = list->files[i].change;
        if (change != WEFT_CHANGED_DELETED)
            add_path(files, hub->alloc, list->files[i].path, change == WEFT_CHANGED_ADDED || change == WEFT_CHANGED_RENAMED);
    }
}

int weft__planner_files_write(const weft_planner_files *files, const weft_hub *hub, bool created, weft_buf *out) {
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    if (r >= 0)
        r = write_told(created ? &files->created : &files->modified, hub->alloc, out);
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

int weft__planner_files_said(const weft_hub *hub, const weft_json *list, weft_buf *out) {
    char file[WEFT_CONTEXT_KEY + 1];
    size_t looked_at = 0;
    bool first = true;
    int r = weft__buf_put(out, hub->alloc, "[", 1);
    for (weft_iter it = weft_iterate(list); r >= 0 && looked_at < MOST_PATHS && weft_next(&it); looked_at++) {
        const char *said = weft_str_of(&it.value, NULL);
        if (!said || weft__planner_file_wrong(hub, said, file))
            continue;
        r = put_name(out, hub->alloc, first, file);
        first = false;
    }
    return r < 0 ? r : weft__buf_put(out, hub->alloc, "]", 1);
}

void weft__planner_files_done(weft_planner_files *files, const weft_alloc *alloc) {
    weft__buf_done(&files->modified, alloc);
    weft__buf_done(&files->created, alloc);
    files->count = 0;
}

/* Translating what AIWG watches. A path is a text or an object with rules of its own; its guide writes the same rules beside
 * the paths, for all of them. Paths that are listed are watched although git ignores them. */
#include <stdio.h>
#include <string.h>

#include "aiwg_translate.h"

#define USUAL_DEBOUNCE_MS 500
#define MAX_DEBOUNCE_MS 3600000

/* Left out wherever it is, as by AIWG; the first two are the daemon's own. */
#define IGNORED "\"ignore\":[\".aiwg/daemon\",\".aiwg/daemon.pid*\",\".aiwg/working\",\"node_modules\"]"

static weft_json path_text(const weft_json *entry) {
    return weft_typeof(entry) == WEFT_STRING ? *entry : weft_get(entry, "path");
}

/* AIWG writes "src/"; the folder is meant. */
static weft_val path_of(const weft_json *entry) {
    weft_json path = path_text(entry);
    const char *text = weft_str_of(&path, "");
    size_t len = strlen(text);
    while (len > 1 && text[len - 1] == '/')
        len--;
    return len ? weft_strn(text, len) : weft_none();
}

static void put_paths(weft_translation *self, const weft_json *paths) {
    for (weft_iter it = weft_iterate(paths); weft_next(&it);) {
        weft_val path = path_of(&it.value);
        if (path.kind == WEFT_VAL_NONE)
            continue;
        weft__translate_separator(self);
        weft__translate_val(self, path);
    }
}

static bool is_watch_on(const weft_json *watch) {
    weft_json paths = weft_get(watch, "paths");
    return weft_get_bool(watch, "enabled", false) && weft_count(&paths) > 0;
}

size_t weft__aiwg_paths(const weft_json *file) {
    weft_json watch = weft_get(file, "watch"), paths = weft_get(&watch, "paths");
    size_t count = 0;
    for (weft_iter it = weft_iterate(&paths); is_watch_on(&watch) && weft_next(&it);)
        count += path_of(&it.value).kind != WEFT_VAL_NONE;
    return count;
}

/* The entry's own list, or else the one beside the paths. */
static void put_list(weft_translation *self, const char *begin, const weft_json *entry, const weft_json *watch,
                     const char *name) {
    weft_json own = weft_get(entry, name), common = weft_get(watch, name), *list = own.text ? &own : &common;
    if (weft_typeof(list) != WEFT_ARRAY)
        return;
    weft__translate_raw(self, begin);
    weft__translate_val(self, weft_copy(list));
}

/* Both count, and what AIWG leaves out wherever a name below the folder has it, so also .gitignore and .github. */
static void put_ignored(weft_translation *self, const weft_json *entry, const weft_json *watch) {
    weft_json lists[] = {weft_get(entry, "ignore"), weft_get(watch, "ignore")};
    weft__translate_raw(self, ",\"ignore\":[");
    for (size_t i = 0; i < 2; i++)
        for (weft_iter it = weft_iterate(&lists[i]); weft_next(&it);) {
            weft__translate_separator(self);
            weft__translate_val(self, weft_copy(&it.value));
        }
    weft__translate_separator(self);
    weft__translate_raw(self, "\".git\",\"node_modules\"]");
}

static void put_watch_row(weft_translation *self, const weft_json *entry, const weft_json *watch) {
    weft__translate_separator(self);
    weft__translate_raw(self, "{\"path\":");
    weft_json path = path_text(entry);
    weft__translate_val(self, weft_copy(&path));
    put_list(self, ",\"events\":", entry, watch, "events");
    put_list(self, ",\"extensions\":", entry, watch, "extensions");
    put_ignored(self, entry, watch);
    weft__translate_raw(self, "}");
}

void weft__translate_watch(weft_translation *self, const weft_json *watch) {
    weft_json paths = weft_get(watch, "paths");
    bool on = is_watch_on(watch);
    weft__translate_raw(self, on ? ",\"watch\":true" : ",\"watch\":false");
    if (!on)
        return;
    weft__translate_raw(self, ",\"watch_paths\":[");
    put_paths(self, &paths);
    weft__translate_raw(self, "],\"watches\":[");
    for (weft_iter it = weft_iterate(&paths); weft_next(&it);)
        if (path_of(&it.value).kind != WEFT_VAL_NONE)
            put_watch_row(self, &it.value, watch);
    weft__translate_raw(self, "]," IGNORED ",\"gitignore\":false,\"settle_ms\":");
    weft__translate_val(
        self, weft_int((int64_t) weft__translate_number(watch, "/debounce_ms", USUAL_DEBOUNCE_MS, MAX_DEBOUNCE_MS)));
}

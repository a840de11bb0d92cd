/* What git prints, as anything at all: the first byte says which parser and whether the text was cut, the rest is the text.
 * A parser reads nothing behind the text, gives results that lie in it, and leaves no memory behind. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "fuzz_memory.h"
#include "git_parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *low, *high;

static void within(const char *text) {
    if (text)
        require((text >= low && text + strlen(text) <= high) || strcmp(text, "./") == 0);
}

static void try_status(weft_git_text text) {
    weft_git_status status = {0};
    int r = weft__git_parse_status(text, text.len % 2 ? "" : "s/", 100, &counting, &status);
    require(r == 0 || r == -EBADMSG);
    if (r < 0)
        return;
    within(status.branch);
    within(status.head);
    within(status.upstream);
    require(status.count <= 100 && status.count >= status.untracked + status.conflicted);
    for (size_t i = 0; i < status.count; i++) {
        require(status.files[i].path && *status.files[i].path);
        within(status.files[i].path);
        within(status.files[i].orig_path);
    }
    weft__free(&counting, status.files);
}

static void try_log(weft_git_text text) {
    weft_git_log log = {0};
    int r = weft__git_parse_log(text, 10, &counting, &log);
    require(r == 0 || r == -EBADMSG);
    for (size_t i = 0; r == 0 && i < log.count; i++) {
        within(log.commits[i].hash);
        within(log.commits[i].body);
        within(log.commits[i].refs);
    }
    require(log.count <= 10);
    weft__free(&counting, log.commits);
}

static void try_branches(weft_git_text text) {
    weft_git_branches list = {0};
    int r = weft__git_parse_branches(text, 10, &counting, &list);
    require(r == 0 || r == -EBADMSG);
    for (size_t i = 0; r == 0 && i < list.count; i++) {
        within(list.branches[i].name);
        within(list.branches[i].subject);
    }
    weft__free(&counting, list.branches);
}

static void try_settings(weft_git_text text) {
    weft_git_settings settings = {0};
    int r = weft__git_parse_settings(text, 8, &counting, &settings);
    require(r == 0 || r == -EBADMSG || r == -E2BIG);
    for (size_t i = 0; r == 0 && i < settings.filter_count; i++)
        within(settings.filters[i]);
    weft__free(&counting, settings.filters);
}

static void try_diff(weft_git_text text) {
    weft_git_diff diff = {0};
    weft__git_scan_diff((weft_bytes){text.data, text.len}, &diff);
    require(diff.additions + diff.deletions + diff.files <= text.len);
}

static void try_names(const weft_git_text text) {
    text.data[text.len] = '\0';
    if (weft__git_is_ref(text.data))
        require(*text.data != '-' && !strstr(text.data, "..") && !strchr(text.data, ' '));
    if (weft__git_is_path(text.data))
        require(*text.data != '/' && strncmp(text.data, "../", 3) != 0 && !strstr(text.data, "/../"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const tries[])(weft_git_text text) = {try_status,   try_log,  try_branches,
                                                        try_settings, try_diff, try_names};
    if (!size)
        return 0;
    weft_git_text text = {malloc(size), size - 1, data[0] & 0x80};
    require(text.data != NULL);
    memcpy(text.data, data + 1, size - 1);
    text.data[size - 1] = 'x';
    low = text.data;
    high = text.data + size;
    tries[(data[0] & 0x7f) % 6](text);
    require(live == 0);
    free(text.data);
    return 0;
}

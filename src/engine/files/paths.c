/* Which paths are wanted; see paths.h. */
#include "paths.h"

#include <errno.h>
#include <string.h>

#include "alloc.h"
#include "glob.h"
#include "texts.h"

/* "./src/" is "src"; "." is all. */
static const char *tidy_path(const char *path, size_t *ret_len) {
    while (path[0] == '.' && path[1] == '/')
        for (path += 2; *path == '/'; path++)
            continue;
    size_t len = strlen(path);
    while (len && path[len - 1] == '/')
        len--;
    *ret_len = len == 1 && *path == '.' ? 0 : len;
    return path;
}

int weft__paths_init(weft_paths *paths, const char *const *list, const weft_alloc *alloc) {
    size_t count = weft__texts_count(list), len;
    paths->alloc = alloc;
    paths->list = count ? weft__zalloc(alloc, (count + 1) * sizeof *paths->list) : NULL;
    if (count && !paths->list)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const char *path = tidy_path(list[i], &len);
        paths->list[i] = weft__strndup(alloc, path, len);
        if (!paths->list[i])
            return -ENOMEM;
    }
    return 0;
}

void weft__paths_done(weft_paths *paths) {
    for (size_t i = 0; paths->list && paths->list[i]; i++)
        weft__free(paths->alloc, paths->list[i]);
    paths->list = weft__free(paths->alloc, paths->list);
}

static bool begins_with_folder(const char *path, const char *folder, size_t len) {
    return strncmp(path, folder, len) == 0 && (len == 0 || path[len] == '/' || !path[len]);
}

static bool wanted_by(const char *wanted, const char *path, bool folder) {
    size_t fixed = strcspn(wanted, "*?[{"), len = strlen(path);
    bool wild = wanted[fixed] != '\0';
    while (wild && fixed && wanted[fixed - 1] != '/')
        fixed--;
    while (fixed && wanted[fixed - 1] == '/')
        fixed--;
    if (folder && begins_with_folder(wanted, path, len))
        return true;
    if (!begins_with_folder(path, wanted, fixed))
        return false;
    return !wild || folder || weft__glob_path(wanted, path);
}

bool weft__paths_want(const weft_paths *paths, const char *path, bool folder) {
    for (size_t i = 0; paths->list && paths->list[i]; i++)
        if (wanted_by(paths->list[i], path, folder))
            return true;
    return !paths->list;
}

bool weft__paths_name(const weft_paths *paths, const char *path) {
    for (size_t i = 0; paths->list && paths->list[i]; i++)
        if (begins_with_folder(paths->list[i], path, strlen(path)))
            return true;
    return false;
}

/* Where the programs of our rows are, and what they may read.
 *
 * The system's folders come before those of PATH: what lies there was installed for everybody, and is not a script that
 * looks for the real program elsewhere. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_program.h"
#include "check_private.h"
#include "find_program.h"

#define SYSTEM_PATH "/usr/local/bin:/usr/bin:/bin"

/* What programs need to run at all, and what compilers have for everybody. Not /proc, which shows the environment of other
 * processes, and nothing below a home folder. */
static const char *const system_reads[] = {
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
    "/dev/null",
    "/dev/urandom",
    "/dev/random",
    NULL,
};

char *weft__check_text(weft_arena *arena, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    char *text = n < 0 ? NULL : weft__arena_alloc(arena, (size_t) n + 1);
    if (text)
        vsnprintf(text, (size_t) n + 1, format, again);
    va_end(again);
    va_end(args);
    return text;
}

int weft__check_find(const char *program, const char *project, char ret[PATH_MAX]) {
    int r = weft__find_program(program, SYSTEM_PATH, ret, PATH_MAX);
    return r == 0 ? 0 : weft__find_outside(program, project, ret, PATH_MAX);
}

/* ---- what it may read ---- */

static bool is_beneath(const char *path, const char *folder) {
    size_t len = strlen(folder);
    while (len > 1 && folder[len - 1] == '/')
        len--;
    return strncmp(path, folder, len) == 0 && (len == 1 || path[len] == '/' || path[len] == '\0');
}

/* Cut the last name off; "" at the top. */
static void cut_name(char *path) {
    char *slash = strrchr(path, '/');
    if (slash)
        *slash = '\0';
}

static size_t count_names(const char *path) {
    size_t count = 0;
    for (; *path; path++)
        count += *path == '/' && path[1] && path[1] != '/';
    return count;
}

static bool is_above(const char *folder, const char *other) {
    char real[PATH_MAX];
    return other && *other == '/' && is_beneath(realpath(other, real) ? real : other, folder);
}

/* May everything in this folder be read, because a program was installed there? Not a home folder, a folder directly in one
 * (~/.local has more than programs), the project, or what is above them. */
static bool is_installation(const char *folder, const char *project) {
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", folder);
    cut_name(parent);
    const char *home = getenv("HOME");
    return count_names(folder) >= 2 && !is_above(folder, home) && !is_above(folder, project) &&
           !(home && *parent && is_above(parent, home));
}

static bool add_read(weft_arena *arena, const char **list, size_t *count, const char *folder, const char *below) {
    const char *text = weft__check_text(arena, "r%s%s", folder, below);
    if (text)
        list[(*count)++] = text;
    return text != NULL;
}

/* A program of npm's has what it needs beside it, in the outermost node_modules. That of a project is never looked into:
 * programs are not taken from there. */
static bool add_modules(weft_arena *arena, const char **list, size_t *count, const char *program, const char *project) {
    static const char name[] = "/node_modules/";
    char folder[PATH_MAX];
    const char *at = strstr(program, name);
    if (!at)
        return true;
    snprintf(folder, sizeof folder, "%.*s", (int) (at + sizeof name - 2 - program), program);
    return !is_installation(folder, project) || add_read(arena, list, count, folder, "");
}

/* The folder of the program, and what was installed beside it. */
static bool add_installation(weft_arena *arena, const char **list, size_t *count, const char *program, const char *project) {
    char folder[PATH_MAX], prefix[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", program);
    cut_name(folder);
    snprintf(prefix, sizeof prefix, "%s", folder);
    cut_name(prefix);
    bool ok = count_names(folder) < 2 || add_read(arena, list, count, folder, "");
    if (is_installation(prefix, project))
        return ok && add_read(arena, list, count, prefix, "");
    return ok && (count_names(prefix) < 2 ||
                  (add_read(arena, list, count, prefix, "/lib") && add_read(arena, list, count, prefix, "/libexec")));
}

const char *const *weft__check_bounds(weft_arena *arena, const char *program, const char *folder, const char *project) {
    const char *list[sizeof system_reads / sizeof system_reads[0] + 14];
    char real[PATH_MAX];
    size_t count = 0;
    bool ok = true;
    for (size_t i = 0; ok && system_reads[i]; i++)
        ok = add_read(arena, list, &count, system_reads[i], "");
    ok = ok && add_installation(arena, list, &count, program, project);
    if (ok && realpath(program, real) && strcmp(real, program) != 0)
        ok = add_installation(arena, list, &count, real, project) && add_modules(arena, list, &count, real, project);
    const char *own = ok ? weft__check_text(arena, "w%s", folder) : NULL;
    const char **made = own ? weft__arena_alloc(arena, (count + 3) * sizeof *made) : NULL;
    if (!made)
        return NULL;
    memcpy(made, list, count * sizeof *made);
    made[count++] = own;
    made[count++] = "w/dev/null";
    made[count] = NULL;
    return made;
}

bool weft__check_is_system(const char *path) {
    static const char *const folders[] = {"/usr", "/lib", "/lib64", "/opt", "/nix/store", "/gnu/store", NULL};
    char real[PATH_MAX];
    if (!realpath(path, real))
        return false;
    for (const char *const *folder = folders; *folder; folder++)
        if (is_beneath(real, *folder))
            return true;
    return false;
}

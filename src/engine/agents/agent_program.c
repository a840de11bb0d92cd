/* Finding programs outside the project. */
#include "agent_program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/json.h>

#include "alloc.h"
#include "find_program.h"
#include "texts.h"

/* ---- inside and outside ---- */

static bool lies_in(const char *path, const char *folder) {
    size_t len = strlen(folder);
    while (len > 1 && folder[len - 1] == '/')
        len--;
    return strncmp(path, folder, len) == 0 && (len == 1 || path[len] == '/' || path[len] == '\0');
}

/* Where a path really is; what is not there is where it says. */
static const char *real_path(const char *path, char room[PATH_MAX]) {
    return realpath(path, room) ? room : path;
}

/* A hub for the whole home folder is no project that somebody else wrote: the user's own programs are in there. */
static bool is_above_home(const char *folder) {
    char room[PATH_MAX];
    const char *home = getenv("HOME");
    return home && *home == '/' && lies_in(real_path(home, room), folder);
}

static bool is_the_projects(const char *path, const char *folder) {
    char there[PATH_MAX], project[PATH_MAX];
    if (!folder)
        return false;
    const char *of = real_path(folder, project);
    return !is_above_home(of) && lies_in(real_path(path, there), of);
}

/* "npm run" puts node_modules/.bin of a project and of every folder above it into PATH. */
static bool is_of_modules(const char *path) {
    const char *at = strstr(path, "/node_modules");
    return at && (at[13] == '/' || at[13] == '\0');
}

/* The next folder of a PATH, of which *at is the rest; false: there is none. Those that may not be searched are empty. */
static bool next_folder(const char **at, const char *folder, char ret[PATH_MAX]) {
    if (!*at || !**at)
        return false;
    size_t len = strcspn(*at, ":");
    int n = snprintf(ret, PATH_MAX, "%.*s", (int) len, *at);
    *at += len + ((*at)[len] == ':');
    if (n < 0 || n >= PATH_MAX || *ret != '/' || is_of_modules(ret) || is_the_projects(ret, folder))
        *ret = '\0';
    return true;
}

/* ---- finding ---- */

int weft__find_outside(const char *name, const char *folder, char *ret, size_t size) {
    char each[PATH_MAX];
    int found = -ENOENT;
    for (const char *at = getenv("PATH"); next_folder(&at, folder, each);) {
        int r = *each ? weft__find_program(name, each, ret, size) : -ENOENT;
        if (r == 0 && is_the_projects(ret, folder)) /* by a link */
            r = -ENOENT;
        if (r == 0)
            return 0;
        if (r == -EACCES)
            found = r;
    }
    return found;
}

int weft__agent_home(const char *name, char *ret, size_t size) {
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int n;
    if (data && *data == '/')
        n = snprintf(ret, size, "%s/weft/agents/%s", data, name);
    else if (home && *home == '/')
        n = snprintf(ret, size, "%s/.local/share/weft/agents/%s", home, name);
    else
        return -ENOENT;
    return n < 0 || (size_t) n >= size ? -ENAMETOOLONG : 0;
}

/* The user's own, and nobody else may put anything into it. */
static bool is_private(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022);
}

static int find_installed(const weft_agent *agent, const char *folder, char *ret, size_t size) {
    char home[PATH_MAX];
    if (!agent->package || weft__agent_home(agent->name, home, sizeof home) < 0 || !is_private(home))
        return -ENOENT;
    int n = snprintf(ret, size, "%s/node_modules/.bin/%s", home, agent->argv[0]);
    if (n < 0 || (size_t) n >= size || is_the_projects(ret, folder))
        return -ENOENT;
    return access(ret, X_OK) == 0 ? 0 : -ENOENT;
}

/* The beginning of a small file, as a text; "" when it cannot be read. */
static void read_small(const char *path, char *ret, size_t size) {
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(ret, 1, size - 1, file) : 0;
    ret[n] = '\0';
    if (file)
        fclose(file);
}

/* npm wrote the exact version into the package.json of the folder it worked in. */
void weft__agent_version(const weft_agent *agent, const char *program, char *ret, size_t size) {
    char home[PATH_MAX], path[PATH_MAX + 16], text[4096], name[256];
    const char *at = agent->package ? strrchr(agent->package, '@') : NULL;
    weft_doc *doc = NULL;
    *ret = '\0';
    if (!at || weft__agent_home(agent->name, home, sizeof home) < 0 || !lies_in(program, home))
        return;
    snprintf(path, sizeof path, "%s/package.json", home);
    read_small(path, text, sizeof text);
    snprintf(name, sizeof name, "%.*s", (int) (at - agent->package), agent->package);
    if (weft_doc_parse(text, strlen(text), NULL, &doc) < 0)
        return;
    weft_json dependencies = weft_get(weft_doc_root(doc), "dependencies");
    snprintf(ret, size, "%s", weft_get_str(&dependencies, name, ""));
    weft_doc_free(doc);
}

int weft__agent_program(const weft_agent *agent, const char *folder, char *ret, size_t size) {
    const char *name = agent->argv ? agent->argv[0] : NULL;
    if (!name || !*name) {
        *ret = '\0';
        return 0;
    }
    if (!agent->outside || strchr(name, '/'))
        return weft__find_program(name, getenv("PATH"), ret, size);
    int r = find_installed(agent, folder, ret, size);
    return r < 0 ? weft__find_outside(name, folder, ret, size) : r;
}

/* ---- starting ---- */

static bool sets_path(const weft_agent *agent) {
    for (const char *const *env = agent->env; env && *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            return true;
    return false;
}

void weft__outside_path(char *room, const char *folder) {
    char each[PATH_MAX];
    char *at = stpcpy(room, "PATH=");
    const char *between = "";
    for (const char *rest = getenv("PATH"); next_folder(&rest, folder, each);) {
        if (!*each)
            continue;
        at = stpcpy(stpcpy(at, between), each);
        between = ":";
    }
}

int weft__agent_resolve(const weft_agent *agent, const char *folder, const weft_alloc *alloc, weft_agent **ret) {
    char program[PATH_MAX];
    const char *path = getenv("PATH");
    size_t args = weft__texts_count(agent->argv), vars = weft__texts_count(agent->env);
    *ret = NULL;
    if (!agent->outside || !args)
        return 0;
    int r = weft__agent_program(agent, folder, program, sizeof program);
    if (r < 0)
        return r;
    size_t lists = (args + 1 + vars + 2) * sizeof(char *), len = strlen(program) + 1;
    weft_agent *made = weft__zalloc(alloc, sizeof *made + lists + len + (path ? strlen(path) : 0) + WEFT_OUTSIDE_PATH);
    if (!made)
        return -ENOMEM;
    const char **argv = (const char **) (made + 1), **env = argv + args + 1;
    char *text = (char *) (env + vars + 2);
    *made = *agent;
    memcpy(argv, agent->argv, args * sizeof *argv);
    argv[0] = memcpy(text, program, len);
    if (vars)
        memcpy(env, agent->env, vars * sizeof *env);
    if (path && !sets_path(agent)) {
        weft__outside_path(text + len, folder);
        env[vars] = text + len;
    }
    made->argv = argv;
    made->env = env;
    *ret = made;
    return 0;
}

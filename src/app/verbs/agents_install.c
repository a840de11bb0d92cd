/* npm runs in a new folder of its own beside the final one, which takes its place when everything is there. The folder has a
 * package.json, so npm looks for no other one, and with it for no .npmrc, in the folders above; the project's are never
 * looked at. Scripts of packages are not run. */
#include "agents_install.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_program.h"
#include "agents.h"
#include "alloc.h"
#include "failure.h"
#include "stdin_lines.h"

extern char **environ;

#define DEEPEST 32 /* descriptors that removing a folder may use */

typedef struct installing {
    weft_app *app;
    const weft_agent *agent;
    char npm[PATH_MAX];
    char home[PATH_MAX]; /* where it will be */
    char made[PATH_MAX]; /* where it is made; "": not yet */
} installing;

static weft_exit install_failed(const installing *self, const char *what, int r) {
    return weft__fail(self->app, WEFT_FAILED, NULL, "%s: %s: %s", self->home, what, weft_strerror(r));
}

/* ---- folders ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void) info, (void) kind, (void) where;
    remove(path);
    return 0; /* what is left is found out by whoever needs the place */
}

static void remove_folder(const char *path) {
    nftw(path, remove_one, DEEPEST, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* The folders above, private where they are ours to make. */
static int make_above(const char *path) {
    char each[PATH_MAX];
    snprintf(each, sizeof each, "%s", path);
    for (char *slash = strchr(each + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(each, 0700) < 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return 0;
}

static int make_folder(installing *self) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s.new.XXXXXX", self->home);
    int r = n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : make_above(self->home);
    if (r < 0)
        return r;
    if (!mkdtemp(path))
        return -errno;
    memcpy(self->made, path, sizeof path);
    n = snprintf(path, sizeof path, "%s/package.json", self->made);
    int fd = n < 0 || n >= PATH_MAX ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return n >= PATH_MAX ? -ENAMETOOLONG : -errno;
    r = dprintf(fd, "{\"private\":true}\n") < 0 ? -errno : 0;
    close(fd);
    return r;
}

/* The new one takes the old one's place. Between the two renames there is none, which a task would be told in words. */
static int move_into_place(installing *self) {
    char old[PATH_MAX];
    int n = snprintf(old, sizeof old, "%s.old", self->made);
    if (n < 0 || n >= PATH_MAX)
        return -ENAMETOOLONG;
    bool replaces = rename(self->home, old) == 0;
    int r = rename(self->made, self->home) < 0 ? -errno : 0;
    if (r < 0 && replaces && rename(old, self->home) < 0)
        return r;
    *self->made = r < 0 ? *self->made : '\0';
    if (replaces && r == 0)
        remove_folder(old);
    return r;
}

/* ---- npm ---- */

/* What "npm run" in a project sets, from that project's .npmrc among others. What the user set elsewhere stays. */
static bool is_of_npm_run(const char *variable) {
    return strncasecmp(variable, "npm_", 4) == 0 || strncmp(variable, "INIT_CWD=", 9) == 0;
}

/* Ours, but with a PATH outside the project, where npm finds its node. Owned, with the PATH behind the list. */
static char **make_env(void) {
    size_t count = 0, kept = 0;
    char folder[PATH_MAX];
    const char *path = getenv("PATH");
    bool within = getenv("npm_lifecycle_event") || getenv("npm_execpath");
    while (environ[count])
        count++;
    char **env = weft__alloc(NULL, (count + 2) * sizeof *env + (path ? strlen(path) : 0) + WEFT_OUTSIDE_PATH);
    if (!env)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "PATH=", 5) != 0 && (!within || !is_of_npm_run(environ[i])))
            env[kept++] = environ[i];
    env[kept] = (char *) (env + count + 2);
    weft__outside_path(env[kept], getcwd(folder, sizeof folder));
    env[kept + 1] = NULL;
    return env;
}

static int prepare_files(posix_spawn_file_actions_t *files, const installing *self) {
    int r = posix_spawn_file_actions_addchdir_np(files, self->made);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    return r ? r : posix_spawn_file_actions_adddup2(files, STDERR_FILENO, STDOUT_FILENO); /* it is talk */
}

static int spawn_npm(const installing *self, char **env, pid_t *ret) {
    char *const argv[] = {(char *) (uintptr_t) self->npm,
                          "install",
                          "--prefix",
                          (char *) (uintptr_t) self->made,
                          "--global=false",
                          "--ignore-scripts",
                          "--save-exact",
                          "--no-audit",
                          "--no-fund",
                          "--no-update-notifier",
                          "--",
                          (char *) (uintptr_t) self->agent->package,
                          NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t usual;
    sigemptyset(&usual);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGTERM);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int r = prepare_files(&files, self);
    if (r == 0)
        r = posix_spawn(ret, self->npm, &files, &attributes, argv, env);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return -r;
}

/* Ctrl-C ends npm, which is in our group; we stay to tidy up. */
static weft_exit run_npm(const installing *self) {
    char **env = make_env();
    int status = 0, r = -ENOMEM;
    pid_t pid = 0;
    void (*before)(int) = signal(SIGINT, SIG_IGN);
    if (env)
        r = spawn_npm(self, env, &pid);
    while (r == 0 && waitpid(pid, &status, 0) < 0)
        r = errno == EINTR ? 0 : -errno;
    signal(SIGINT, before);
    weft__free(NULL, env);
    if (r < 0)
        return install_failed(self, "npm", r);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return weft__fail(self->app, WEFT_FAILED, "What it said is above. Nothing was changed.", "npm could not install %s",
                          self->agent->package);
    return WEFT_DONE;
}

/* ---- asking ---- */

static weft_exit confirm(const installing *self) {
    char line[64] = "";
    FILE *to = self->app->err.file;
    fprintf(to, "This downloads %s and what it needs with npm, into\n    %s\nScripts of packages are not run.\n",
            self->agent->package, self->home);
    if (!weft__stdin_is_person())
        return weft__fail(self->app, WEFT_USAGE, "Say --yes if that is wanted.", "nothing was downloaded");
    fputs("Go on? [y/N] ", to);
    fflush(to);
    if (fgets(line, sizeof line, stdin) && (strcasecmp(line, "y\n") == 0 || strcasecmp(line, "yes\n") == 0))
        return WEFT_DONE;
    return weft__fail(self->app, WEFT_FAILED, NULL, "nothing was downloaded");
}

/* ---- all of it ---- */

static weft_exit prepare(installing *self, const char *name) {
    char folder[PATH_MAX];
    self->agent = weft__agent_preset(name);
    if (!self->agent)
        return weft__fail(self->app, WEFT_NOT_FOUND, "\"weft agents\" shows which there are.",
                          "no agent of this name comes with Weft: %s", name);
    if (!self->agent->package)
        return weft__fail(self->app, WEFT_FAILED, self->agent->advice, "%s is not installed with npm", name);
    int r = weft__agent_home(name, self->home, sizeof self->home);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, "Set HOME or XDG_DATA_HOME.", "there is no folder to install %s in", name);
    r = weft__find_outside("npm", getcwd(folder, sizeof folder), self->npm, sizeof self->npm);
    if (r < 0)
        return weft__fail(self->app, WEFT_FAILED, "Install Node.js, version 20 or later, with npm.",
                          "npm is not installed, and %s needs it", name);
    return WEFT_DONE;
}

static weft_exit tell_installed(const installing *self) {
    char path[PATH_MAX], folder[PATH_MAX];
    const weft_app *app = self->app;
    int r = weft__agent_program(self->agent, getcwd(folder, sizeof folder), path, sizeof path);
    if (r < 0)
        return weft__fail(app, WEFT_FAILED, NULL, "%s has no program %s", self->agent->package, self->agent->argv[0]);
    if (app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"agent", weft_str(self->agent->name)},
                                           {"package", weft_str(self->agent->package)}, {"path", weft_str(path)}));
    else
        fprintf(app->err.file, "%s is installed: %s\nTry it: weft task submit --wait --agent %s 'hello'\n",
                self->agent->name, path, self->agent->name);
    return WEFT_DONE;
}

static weft_exit install(installing *self) {
    int r = make_folder(self);
    if (r < 0)
        return install_failed(self, "cannot be made", r);
    weft_exit status = run_npm(self);
    if (status)
        return status;
    r = move_into_place(self);
    return r < 0 ? install_failed(self, "cannot be replaced", r) : tell_installed(self);
}

weft_exit weft__agents_install(weft_app *app, const char *name, bool yes) {
    installing self = {.app = app};
    weft_exit status = prepare(&self, name);
    if (status == WEFT_DONE && !yes)
        status = confirm(&self);
    if (status == WEFT_DONE)
        status = install(&self);
    if (*self.made)
        remove_folder(self.made);
    return status;
}

/* weft open: the dashboard in the user's browser. The link logs in once, so it is made now, by the daemon.
 *
 * The program that opens it is found on PATH outside of the project and started without a shell. Where there is no screen,
 * the link is printed, as it is with --print. The link is an argument of that program, which other users can read: the hub
 * takes it only from a browser of this user. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_program.h"
#include "app.h"
#include "failure.h"
#include "hub_call.h"

extern char **environ;

typedef struct settings {
    const char *url;
    bool print;
} settings;

/* ---- the browser ---- */

/* needs: a variable without which it would open nothing; NULL: it needs none. */
static const struct opener {
    const char *program, *needs;
} openers[] = {
    {"wslview", "WSL_DISTRO_NAME"},
    {"xdg-open", "WAYLAND_DISPLAY"},
    {"xdg-open", "DISPLAY"},
    {"gio", "WAYLAND_DISPLAY"},
    {"gio", "DISPLAY"},
};

static bool is_set(const char *name) {
    const char *value = getenv(name);
    return value && *value;
}

/* -ENOENT: there is none, or no screen that it could open something on. */
static int find_opener(char path[PATH_MAX], const struct opener **ret) {
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof folder))
        return -errno;
    for (size_t i = 0; i < sizeof openers / sizeof openers[0]; i++)
        if (is_set(openers[i].needs) && weft__find_outside(openers[i].program, folder, path, PATH_MAX) >= 0) {
            *ret = &openers[i];
            return 0;
        }
    return -ENOENT;
}

/* What it says is not for our terminal: browsers write a lot there. */
static int start_quietly(const char *path, char *const *argv, pid_t *ret) {
    posix_spawn_file_actions_t files;
    if (posix_spawn_file_actions_init(&files))
        return -ENOMEM;
    int r = -posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = -posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = -posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = -posix_spawn(ret, path, &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return r;
}

/* These programs hand the link on and end. 0 it was opened. */
static int open_link(const char *path, const struct opener *opener, const char *link) {
    char program[32], copy[512], word[] = "open";
    int status;
    pid_t pid;
    snprintf(program, sizeof program, "%s", opener->program);
    snprintf(copy, sizeof copy, "%s", link);
    bool gio = strcmp(opener->program, "gio") == 0;
    char *argv[] = {program, gio ? word : copy, gio ? copy : NULL, NULL};
    int r = start_quietly(path, argv, &pid);
    while (r == 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return r < 0 ? r : WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* ---- the verb ---- */

static void put_link(const weft_app *app, const weft_json *answer, const char *opened_by) {
    const char *link = weft_get_str(answer, "url", "");
    if (app->common.json)
        weft__put_line(&app->out, WEFT_OBJ({"url", weft_str(link)}, {"opened", weft_bool(opened_by != NULL)},
                                           {"expiresAt", weft_str_or_none(weft_get_str(answer, "expiresAt", NULL))}));
    else if (!opened_by)
        fprintf(app->out.file, "%s\n", link);
}

static weft_exit run_open(weft_app *app) {
    const settings *how = app->settings;
    WEFT_ANSWER answer = {0};
    char path[PATH_MAX];
    const struct opener *opener = NULL;
    if (app->arg_count)
        return weft__misused(app, "unexpected argument \"%s\"", app->args[0]);
    weft_exit status = weft__hub_call_once(app, how->url, "login.code", weft_none(), &answer);
    if (status)
        return status;
    const char *link = weft_get_str(answer.result, "url", "");
    bool once = weft_get(answer.result, "expiresAt").text;
    int r = how->print ? -ENOENT : find_opener(path, &opener);
    if (r >= 0)
        r = open_link(path, opener, link);
    put_link(app, answer.result, r >= 0 ? opener->program : NULL);
    if (app->common.json)
        return WEFT_DONE;
    if (r >= 0)
        fprintf(app->err.file, "opened in your browser, by %s\n", opener->program);
    else if (!how->print)
        weft__say(app, "No browser could be started from here. Open the link above%s.",
                  once ? "; it logs one browser in, once" : "");
    return WEFT_DONE;
}

static const weft_option options[] = {
    WEFT_URL_OPTION(settings),
    WEFT_OPTION(settings, print, flag, "print", 'p', NULL, "print the link and open nothing"),
    {0},
};

static const char *const examples[] = {
    "weft open",
    "the dashboard of this folder's hub in your browser, logged in",
    "weft open --print",
    "the link, to open it elsewhere",
    NULL,
};

const weft_verb weft__open_verb = {
    .name = "open",
    .help = "open the dashboard in your browser, logged in",
    .usage = "",
    .examples = examples,
    .about = "The link logs one browser in, once, within 15 minutes. Without a screen the link is printed instead.\n",
    .options = options,
    .settings_size = sizeof(settings),
    .reaches = true,
    .run = run_open,
};

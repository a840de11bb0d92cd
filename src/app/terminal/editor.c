/* Starting the editor; see editor.h. Ctrl-C is the editor's while it runs. */
#include "editor.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_program.h"
#include "tool_call.h"

extern char **environ;

static const char *chosen_editor(void) {
    static const char *const names[] = {"VISUAL", "EDITOR"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value && value[strspn(value, " \t")])
            return value;
    }
    return "vi";
}

static int find_editor(const char *name, char ret[PATH_MAX]) {
    char folder[PATH_MAX];
    if (strchr(name, '/')) {
        snprintf(ret, PATH_MAX, "%s", name);
        return access(name, X_OK) == 0 ? 0 : -errno;
    }
    return getcwd(folder, sizeof folder) ? weft__find_outside(name, folder, ret, PATH_MAX) : -errno;
}

/* 0: argv runs path. Its words are in room. */
static int make_command(const char *text, char room[WEFT_TOOL_ROOM], char *file, char path[PATH_MAX],
                        char *argv[WEFT_TOOL_WORDS + 2]) {
    const char *words[WEFT_TOOL_WORDS];
    int count = weft__tool_words(text, room, WEFT_TOOL_ROOM, words);
    if (count < 0)
        return count;
    for (int i = 0; i < count; i++)
        argv[i] = room + (words[i] - room);
    argv[count] = file;
    argv[count + 1] = NULL;
    return find_editor(argv[0], path);
}

static int wait_for_editor(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int start_and_wait(const char *path, char *const *argv) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
    posix_spawnattr_t how;
    sigset_t usual;
    pid_t pid;
    if (posix_spawnattr_init(&how))
        return -ENOMEM;
    sigemptyset(&usual);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGQUIT);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_setsigdefault(&how, &usual);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF);
    sigaction(SIGINT, &ignore, &interrupt);
    sigaction(SIGQUIT, &ignore, &quit);
    int r = -posix_spawn(&pid, path, NULL, &how, argv, environ);
    if (r == 0)
        r = wait_for_editor(pid);
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGQUIT, &quit, NULL);
    posix_spawnattr_destroy(&how);
    return r;
}

int weft__editor_run(const char *file, char *name, size_t size) {
    const char *chosen = chosen_editor();
    char *argv[WEFT_TOOL_WORDS + 2], path[PATH_MAX], room[WEFT_TOOL_ROOM], copy[PATH_MAX];
    snprintf(name, size, "%s", chosen);
    if (strlen(file) >= sizeof copy)
        return -ENAMETOOLONG;
    snprintf(copy, sizeof copy, "%s", file);
    int r = make_command(chosen, room, copy, path, argv);
    return r < 0 ? r : start_and_wait(path, argv);
}

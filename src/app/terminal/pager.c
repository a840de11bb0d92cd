/* A program at the other end of a pipe; see pager.h. */
#include "pager.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent_program.h"

extern char **environ;

#define MAX_WORDS 16

/* false: none is wanted. */
static bool split_pager(char *text, char *argv[MAX_WORDS]) {
    size_t count = 0;
    for (char *rest = text, *word; count < MAX_WORDS - 1 && (word = strtok_r(rest, " \t", &rest));)
        argv[count++] = word;
    argv[count] = NULL;
    return count && strcmp(argv[0], "cat") != 0;
}

static bool find_pager(const char *name, char ret[PATH_MAX]) {
    char folder[PATH_MAX];
    if (strchr(name, '/')) {
        snprintf(ret, PATH_MAX, "%s", name);
        return *name == '/' && access(name, X_OK) == 0;
    }
    return getcwd(folder, sizeof folder) && weft__find_outside(name, folder, ret, PATH_MAX) >= 0;
}

/* Colours as they are, no page for what fits on the screen. */
static bool start_pager(const char *path, char *const *argv, int in, pid_t *ret) {
    posix_spawn_file_actions_t files;
    if (posix_spawn_file_actions_init(&files))
        return false;
    setenv("LESS", "FRX", 0);
    bool good = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO) == 0 &&
                posix_spawn_file_actions_addclosefrom_np(&files, 3) == 0 &&
                posix_spawn(ret, path, &files, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&files);
    return good;
}

void weft__pager_open(weft_pager *pager, const weft_screen *screen) {
    const char *told = getenv("PAGER");
    char text[256], path[PATH_MAX], *argv[MAX_WORDS];
    int ends[2];
    *pager = (weft_pager){.screen = *screen};
    snprintf(text, sizeof text, "%s", told ? told : "less");
    if (!screen->terminal || !split_pager(text, argv) || !find_pager(argv[0], path) || pipe2(ends, O_CLOEXEC) < 0)
        return;
    fflush(screen->file);
    FILE *file = fdopen(ends[1], "w");
    if (file && start_pager(path, argv, ends[0], &pager->pid)) {
        pager->screen.file = file;
        signal(SIGPIPE, SIG_IGN); /* somebody has seen enough */
        signal(SIGINT, SIG_IGN);  /* is the pager's */
    } else {
        pager->pid = 0;
        if (file)
            fclose(file);
        else
            close(ends[1]);
    }
    close(ends[0]);
}

void weft__pager_close(weft_pager *pager) {
    if (!pager->pid)
        return;
    fclose(pager->screen.file);
    while (waitpid(pager->pid, NULL, 0) < 0 && kill(pager->pid, 0) == 0)
        continue;
    pager->pid = 0;
}

/* start URL AGENT PROGRAM [ARGUMENT]...: how long it takes from a task's submission until it is acknowledged, until its
 * process runs, until its first output is told and until its end is; each of these is on the disk by then.
 *
 * The anchor is posix_spawn() of the same program, until its first byte and until its end. Rounds alternate, each figure is
 * the median. Prints one JSON line. */
#include "lib/lines.h"
#include "lib/median.h"
#include "lib/net.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 41

enum { ACKNOWLEDGED, RUNS, SAYS, ENDS, SPAWN_SAYS, SPAWN_ENDS, FIGURES };

extern char **environ;
static double figures[FIGURES][ROUNDS];

static double since_us(uint64_t begun) {
    return (double) (now_ns() - begun) / 1e3;
}

static void spawn(char **argv, int round) {
    posix_spawn_file_actions_t actions;
    int pipes[2], status;
    char byte;
    pid_t pid;

    if (pipe2(pipes, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, pipes[1], 1) != 0)
        die("pipe: %m");
    uint64_t begun = now_ns();
    if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
        die("%s does not start", argv[0]);
    close(pipes[1]);
    if (read(pipes[0], &byte, 1) < 0)
        die("read: %m");
    figures[SPAWN_SAYS][round] = since_us(begun);
    if (waitpid(pid, &status, 0) < 0)
        die("waitpid: %m");
    figures[SPAWN_ENDS][round] = since_us(begun);
    close(pipes[0]);
    posix_spawn_file_actions_destroy(&actions);
}

static void note(int what, int round, uint64_t begun, const char *line, const char *sign) {
    if (figures[what][round] <= 0 && strstr(line, sign))
        figures[what][round] = since_us(begun);
}

static void submit(struct lines *l, const char *agent, int round) {
    size_t len;
    uint64_t begun = now_ns();

    lines_sendf(
        l, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"task.submit\",\"params\":{\"prompt\":\"hello\",\"agent\":\"%s\"}}\n",
        agent);
    while (figures[ENDS][round] <= 0 || figures[ACKNOWLEDGED][round] <= 0) {
        const char *line = lines_next(l, &len);
        if (strstr(line, "\"type\":\"task.failed\""))
            die("it failed: %.300s", line);
        if (lines_is_answer(line))
            figures[ACKNOWLEDGED][round] = since_us(begun);
        note(RUNS, round, begun, line, "\"type\":\"task.process\"");
        note(SAYS, round, begun, line, "\"type\":\"session.output\"");
        note(ENDS, round, begun, line, "\"type\":\"task.completed\"");
    }
}

int main(int argc, char **argv) {
    struct lines l;
    size_t len;

    if (argc < 4)
        die("usage: start URL AGENT PROGRAM [ARGUMENT]...");
    lines_open(&l, argv[1]);
    lines_sendf(
        &l,
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"event.subscribe\",\"params\":{\"types\":[\"task.\",\"session.\"]}}\n");
    lines_answer(&l, &len);
    for (int i = 0; i < ROUNDS; i++) {
        spawn(argv + 3, i);
        submit(&l, argv[2], i);
    }
    printf("{\"acknowledged_us\":%.0f,\"runs_us\":%.0f,\"says_us\":%.0f,\"ends_us\":%.0f,\"spawn_says_us\":%.0f,\"spawn_"
           "ends_us\":%.0f}\n",
           median(figures[ACKNOWLEDGED], ROUNDS), median(figures[RUNS], ROUNDS), median(figures[SAYS], ROUNDS),
           median(figures[ENDS], ROUNDS), median(figures[SPAWN_SAYS], ROUNDS), median(figures[SPAWN_ENDS], ROUNDS));
    return 0;
}

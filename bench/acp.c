/* acp URL FOLDER PROGRAM [ARGUMENT]...: an ACP client's turns through the hub, beside the same agent driven directly on its
 * pipes.
 *
 * A turn is session/prompt; measured are the time until the agent's first words (session/update with an agent_message_chunk)
 * and until the answer. Rounds alternate between the two. fresh: the same with a new session for each turn, and directly
 * with a new process, as the hub starts one when none is kept. Each figure is the median. Prints one JSON line. */
#include "lib/lines.h"
#include "lib/median.h"
#include "lib/net.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 101
#define FRESH_ROUNDS 31

extern char **environ;

struct agent {
    struct lines lines;
    char session[128];
    pid_t pid; /* 0: it is the hub */
};

struct turns {
    double first[ROUNDS], end[ROUNDS];
};

static double since_us(uint64_t begun) {
    return (double) (now_ns() - begun) / 1e3;
}

static void initialize(struct agent *agent) {
    size_t len;

    lines_sendf(&agent->lines, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1,"
                               "\"clientCapabilities\":{}}}\n");
    lines_answer(&agent->lines, &len);
}

static void new_session(struct agent *agent, const char *folder) {
    size_t len;

    lines_sendf(&agent->lines,
                "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/new\",\"params\":{\"cwd\":\"%s\",\"mcpServers\":[]}}\n",
                folder);
    const char *line = lines_answer(&agent->lines, &len), *id = strstr(line, "\"sessionId\":\"");
    if (!id)
        die("no session: %.300s", line);
    snprintf(agent->session, sizeof agent->session, "%.*s", (int) strcspn(id + 13, "\""), id + 13);
}

static void open_direct(struct agent *agent, char **argv) {
    posix_spawn_file_actions_t actions;
    int pair[2];

    *agent = (struct agent){0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, pair[1], 0) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, pair[1], 1) != 0)
        die("socketpair: %m");
    if (posix_spawn(&agent->pid, argv[0], &actions, NULL, argv, environ) != 0)
        die("%s does not start", argv[0]);
    close(pair[1]);
    posix_spawn_file_actions_destroy(&actions);
    agent->lines.fd = pair[0];
    initialize(agent);
}

static void close_direct(struct agent *agent) {
    int status;

    lines_close(&agent->lines);
    if (waitpid(agent->pid, &status, 0) < 0)
        die("waitpid: %m");
}

static void take_turn(struct agent *agent, uint64_t begun, double *ret_first, double *ret_end) {
    size_t len;

    lines_sendf(&agent->lines,
                "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"%s\",\"prompt\":"
                "[{\"type\":\"text\",\"text\":\"echo hello\"}]}}\n",
                agent->session);
    *ret_first = 0;
    for (;;) {
        const char *line = lines_next(&agent->lines, &len);
        if (*ret_first <= 0 && strstr(line, "agent_message_chunk"))
            *ret_first = since_us(begun);
        if (lines_is_answer(line) && strstr(line, "stopReason"))
            break;
    }
    *ret_end = since_us(begun);
    if (*ret_first <= 0)
        die("a turn without a word");
}

int main(int argc, char **argv) {
    static struct turns hub_turns, direct_turns, hub_fresh, direct_fresh;
    struct agent hub = {0}, direct;
    char folder[4096];

    if (argc < 4)
        die("usage: acp URL FOLDER PROGRAM [ARGUMENT]...");
    snprintf(folder, sizeof folder, "%s", argv[2]);
    lines_open(&hub.lines, argv[1]);
    initialize(&hub);
    new_session(&hub, folder);
    open_direct(&direct, argv + 3);
    new_session(&direct, folder);
    for (int i = 0; i < ROUNDS; i++) {
        take_turn(&direct, now_ns(), &direct_turns.first[i], &direct_turns.end[i]);
        take_turn(&hub, now_ns(), &hub_turns.first[i], &hub_turns.end[i]);
    }
    close_direct(&direct);
    for (int i = 0; i < FRESH_ROUNDS; i++) {
        uint64_t begun = now_ns();
        open_direct(&direct, argv + 3);
        new_session(&direct, folder);
        take_turn(&direct, begun, &direct_fresh.first[i], &direct_fresh.end[i]);
        close_direct(&direct);
        begun = now_ns();
        new_session(&hub, folder);
        take_turn(&hub, begun, &hub_fresh.first[i], &hub_fresh.end[i]);
    }
    printf("{\"first_us\":%.0f,\"direct_first_us\":%.0f,\"end_us\":%.0f,\"direct_end_us\":%.0f,\"fresh_first_us\":%.0f,"
           "\"direct_fresh_first_us\":%.0f,\"fresh_end_us\":%.0f,\"direct_fresh_end_us\":%.0f}\n",
           median(hub_turns.first, ROUNDS), median(direct_turns.first, ROUNDS), median(hub_turns.end, ROUNDS),
           median(direct_turns.end, ROUNDS), median(hub_fresh.first, FRESH_ROUNDS), median(direct_fresh.first, FRESH_ROUNDS),
           median(hub_fresh.end, FRESH_ROUNDS), median(direct_fresh.end, FRESH_ROUNDS));
    return 0;
}

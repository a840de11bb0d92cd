/* planner URL PID: execute_task through the hub to an executor that registered and answers at once, beside one call of the
 * hub itself (echo) with the same params: one hop, a message in and one out. An execution is two hops, and a task that is
 * stored before the executor is asked and again before its answer is passed on. The caller and the executor are connections
 * of this program. Rounds alternate; each is so many calls, one after the other. Prints one JSON line: the hub's CPU and the
 * time of each call. */
#include "lib/lines.h"
#include "lib/median.h"
#include "lib/net.h"
#include "lib/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 9
#define CALLS 200

static const char params[] =
    "{\"task_type\":\"code_generation\",\"prompt\":\"Create a React component that shows a list\","
    "\"context\":{\"files\":[\"file1.js\",\"file2.js\"]},\"options\":{\"language\":\"javascript\"}}";

struct figures {
    double cpu[ROUNDS], wall[ROUNDS];
};

static uint64_t cpu_of(pid_t pid) {
    uint64_t ns;

    if (proc_cpu_ns(pid, &ns) < 0)
        die("the hub cannot be read");
    return ns;
}

static void call(struct lines *caller, const char *method, int id) {
    lines_sendf(caller, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\",\"params\":%s}\n", id, method, params);
}

static void wait_for(struct lines *caller, int id) {
    size_t len;

    for (;;) {
        const char *line = lines_next(caller, &len);
        if (lines_is_answer(line) && lines_number(line, "id") == (uint64_t) id)
            return;
    }
}

static void echo(struct lines *caller, struct lines *executor, int id) {
    (void) executor;
    call(caller, "echo", id);
    wait_for(caller, id);
}

static void execute(struct lines *caller, struct lines *executor, int id) {
    size_t len;
    const char *line;

    call(caller, "execute_task", id);
    do
        line = lines_next(executor, &len);
    while (!strstr(line, "\"method\":\"execute_task\""));
    lines_sendf(
        executor,
        "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"result\":{\"status\":\"success\",\"output\":{\"code\":\"export const List = "
        "() => null;\",\"explanation\":\"done\",\"files_modified\":[],\"files_created\":[]}}}\n",
        (unsigned long long) lines_number(line, "id"));
    wait_for(caller, id);
}

static void take_round(struct lines *caller, struct lines *executor, pid_t pid,
                       void (*one)(struct lines *, struct lines *, int), struct figures *to, int round) {
    uint64_t cpu = cpu_of(pid), begun = now_ns();

    for (int i = 0; i < CALLS; i++)
        one(caller, executor, 10 + i);
    to->wall[round] = (double) (now_ns() - begun) / 1e3 / CALLS;
    to->cpu[round] = (double) (cpu_of(pid) - cpu) / 1e3 / CALLS;
}

int main(int argc, char **argv) {
    static struct figures echoes, tasks;
    struct lines caller, executor;
    size_t len;

    if (argc != 3)
        die("usage: planner URL PID");
    pid_t pid = (pid_t) atoi(argv[2]);
    lines_open(&caller, argv[1]);
    lines_open(&executor, argv[1]);
    lines_sendf(&executor,
                "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"role.register\",\"params\":{\"role\":\"executor\"}}\n");
    lines_answer(&executor, &len);
    for (int i = 0; i < 20; i++)
        execute(&caller, &executor, 10 + i);
    for (int i = 0; i < ROUNDS; i++) {
        take_round(&caller, &executor, pid, echo, &echoes, i);
        take_round(&caller, &executor, pid, execute, &tasks, i);
    }
    printf("{\"cpu_us\":%.1f,\"echo_cpu_us\":%.1f,\"wall_us\":%.0f,\"echo_wall_us\":%.0f}\n", median(tasks.cpu, ROUNDS),
           median(echoes.cpu, ROUNDS), median(tasks.wall, ROUNDS), median(echoes.wall, ROUNDS));
    return 0;
}

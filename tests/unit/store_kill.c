/* F1: a program with 64 writers is killed at random points, again and again, on one journal. After each kill every event
 * that it had said was acknowledged is there once, under the seq it had said, no seq is used twice, and the journal is
 * whole.
 *
 *     test_store_kill [KILLS]     or WEFT_STORE_KILLS; 20 when neither is given */
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "store/history.h"

#define KILLS 20
#define READ_AT_LEAST 200 /* lines before it is killed, and up to */
#define READ_AT_MOST 6000 /* so many */

/* All whole lines there are until the end; kill it after so many. A torn last line was acknowledged too, but nobody heard.
 */
static void listen_and_kill(FILE *from, pid_t pid, int after) {
    char line[256];
    for (int n = 0; fgets(line, sizeof line, from); n++) {
        if (strchr(line, '\n'))
            history_note(line);
        if (n == after)
            kill(pid, SIGKILL);
    }
}

static void run_and_kill(const char *path, unsigned seed) {
    extern char **environ;
    char program[4096], number[16];
    int ends[2], status = 0;
    pid_t pid;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 32);
    REQUIRE(n > 0);
    program[n] = '\0';
    memcpy(strrchr(program, '/'), "/store_writer", sizeof "/store_writer");
    snprintf(number, sizeof number, "%u", seed);
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    char *argv[] = {program, (char *) (uintptr_t) path, number, NULL};
    int r = posix_spawn(&pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    REQUIRE(r == 0);
    FILE *from = fdopen(ends[0], "r");
    listen_and_kill(from, pid, READ_AT_LEAST + rand() % (READ_AT_MOST - READ_AT_LEAST));
    fclose(from);
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static long kills_wanted = KILLS;

TEST(nothing_acknowledged_is_lost) {
    store_world world;
    world_init(&world, &weft__sqlite);
    srand((unsigned) time(NULL));
    unsigned seed = (unsigned) rand();
    printf("seed %u\n", seed);
    srand(seed);
    for (long i = 0; i < kills_wanted; i++) {
        run_and_kill(world.path, (unsigned) rand());
        /* Not after each: the next run must recover from a kill by itself too. */
        if (i % 2 == 1 || i == kills_wanted - 1)
            history_audit(&weft__sqlite, &world.opts);
    }
    CHECK(history_acknowledged >= kills_wanted * READ_AT_LEAST / 2);
    printf("%ld kills, %ld events acknowledged\n", kills_wanted, history_acknowledged);
    history_forget();
    world_done(&world);
}

int main(int argc, char **argv) {
    static const test_case cases[] = {CASE(nothing_acknowledged_is_lost)};
    const char *wanted = argc > 1 ? argv[1] : getenv("WEFT_STORE_KILLS");
    if (wanted && strtol(wanted, NULL, 10) > 0)
        kills_wanted = strtol(wanted, NULL, 10);
    return test_main(1, argv, cases, 1);
}

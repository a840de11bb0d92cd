/* git FOLDER FILES: "git status" of a repository with so many files, through the engine's part for git and as a person would
 * run it, and a snapshot of the same files, in turns. The repository is made in the folder first; some of its files are
 * changed and some are new. Prints one JSON line: the medians of the times, the processor's time per round, and the ratios
 * of both. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "git.h"
#include "lib/median.h"
#include "lib/net.h"
#include "snapshots.h"

#define ROUNDS 15
#define PER_FOLDER 100
#define CHANGED 50

extern char **environ;

/* As the shell does it, with its output read to the end. */
static size_t plain_git(const char *folder, const char *verb, const char *argument, const char *last) {
    const char *argv[] = {"git", "-C", folder, verb, argument, last, NULL};
    posix_spawn_file_actions_t actions;
    int pipes[2], status;
    char piece[65536];
    size_t bytes = 0;
    ssize_t n;
    pid_t pid;
    if (pipe2(pipes, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, pipes[1], 1) != 0 ||
        posix_spawnp(&pid, "git", &actions, NULL, (char *const *) (uintptr_t) argv, environ) != 0)
        die("git does not start");
    close(pipes[1]);
    while ((n = read(pipes[0], piece, sizeof piece)) > 0)
        bytes += (size_t) n;
    close(pipes[0]);
    if (waitpid(pid, &status, 0) < 0 || status != 0)
        die("git %s failed", verb);
    posix_spawn_file_actions_destroy(&actions);
    return bytes;
}

static void write_file(const char *folder, int number, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%03d", folder, number / PER_FOLDER);
    if (number % PER_FOLDER == 0 && mkdir(path, 0755) < 0 && errno != EEXIST)
        die("%s: %m", path);
    snprintf(path, sizeof path, "%s/%03d/%05d.txt", folder, number / PER_FOLDER, number);
    FILE *file = fopen(path, "we");
    if (!file || fprintf(file, "%s %d\n", text, number) < 0 || fclose(file) != 0)
        die("%s: %m", path);
}

static void make_repository(const char *folder, int files) {
    plain_git(folder, "init", "-q", NULL);
    for (int i = 0; i < files; i++)
        write_file(folder, i, "file");
    plain_git(folder, "add", ".", NULL);
    setenv("GIT_AUTHOR_NAME", "bench", 1);
    setenv("GIT_AUTHOR_EMAIL", "bench", 1);
    setenv("GIT_COMMITTER_NAME", "bench", 1);
    setenv("GIT_COMMITTER_EMAIL", "bench", 1);
    plain_git(folder, "commit", "-q", "-mfiles");
}

static void take_status(void *ctx, const weft_git_result *result) {
    size_t *count = ctx;
    if (result->r < 0 || result->refusal || !result->status)
        die("status: %s %s", weft_strerror(result->r), result->message);
    *count = result->status->count;
}

static size_t our_status(weft_loop *loop, weft_git *git) {
    size_t count = SIZE_MAX;
    if (weft__git_ask(git, &(weft_git_request){WEFT_GIT_STATUS}, take_status, &count, NULL) < 0)
        die("the question was not accepted");
    while (count == SIZE_MAX)
        weft_loop_once(loop, true);
    return count;
}

typedef struct taking {
    weft_snapshot_wait wait;
    bool taken;
} taking;

static void take_tree(weft_snapshot_wait *wait, const weft_snapshot *snapshot) {
    if (snapshot->r < 0)
        die("snapshot: %s", snapshot->message);
    WEFT_CONTAINER(wait, taking, wait)->taken = true;
}

/* As before a turn: it is kept under the task's name. */
static void our_snapshot(weft_loop *loop, weft_snapshots *snapshots, int task) {
    taking one = {.wait.on_taken = take_tree};
    char name[64];
    snprintf(name, sizeof name, "task-%04d.before", task);
    if (weft__snapshots_take(snapshots, name, 600000, &one.wait) < 0)
        die("the snapshot was not accepted");
    while (!one.taken)
        weft_loop_once(loop, true);
}

static weft_snapshots *open_snapshots(weft_loop *loop, const char *folder) {
    char state[4096];
    weft_snapshots *snapshots;
    snprintf(state, sizeof state, "%s/.weft", folder);
    if (mkdir(state, 0700) < 0 && errno != EEXIST)
        die("%s: %m", state);
    weft_snapshots_opts opts = {.loop = loop, .folder = folder, .state = state};
    if (weft__snapshots_new(&opts, &snapshots) < 0)
        die("no snapshots");
    return snapshots;
}

static double ms_since(uint64_t begun) {
    return (double) (now_ns() - begun) / 1e6;
}

static double seconds(struct timeval at) {
    return (double) at.tv_sec + (double) at.tv_usec / 1e6;
}

/* Of this process, its threads and the programs that have ended. */
static double cpu_ms(void) {
    struct rusage own, programs;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &programs);
    return 1e3 * (seconds(own.ru_utime) + seconds(own.ru_stime) + seconds(programs.ru_utime) + seconds(programs.ru_stime));
}

int main(int argc, char **argv) {
    double plain[ROUNDS], ours[ROUNDS], ratio[ROUNDS], snapshot[ROUNDS], snapshot_ratio[ROUNDS];
    double plain_cpu = 0, our_cpu = 0, snapshot_cpu = 0;
    weft_loop *loop;
    weft_git *git;
    if (argc != 3)
        die("usage: git FOLDER FILES");
    int files = atoi(argv[2]);
    make_repository(argv[1], files);
    for (int i = 0; i < CHANGED; i++) {
        write_file(argv[1], i * (files / CHANGED), "changed");
        write_file(argv[1], files + i, "new");
    }
    if (weft_loop_new(NULL, &loop) < 0 || weft__git_new(&(weft_git_opts){.loop = loop, .folder = argv[1]}, &git) < 0)
        die("no memory");
    plain_git(argv[1], "status", NULL, NULL); /* its index knows the files' times from now on */
    weft_snapshots *snapshots = open_snapshots(loop, argv[1]);
    uint64_t first = now_ns();
    our_snapshot(loop, snapshots, 0);
    double first_ms = ms_since(first);
    size_t count = our_status(loop, git);
    for (int i = 0; i < ROUNDS; i++) {
        double cpu = cpu_ms();
        uint64_t begun = now_ns();
        plain_git(argv[1], "status", NULL, NULL);
        plain[i] = ms_since(begun);
        plain_cpu += cpu_ms() - cpu;
        cpu = cpu_ms();
        begun = now_ns();
        if (our_status(loop, git) != count)
            die("the answers differ");
        ours[i] = ms_since(begun);
        our_cpu += cpu_ms() - cpu;
        ratio[i] = ours[i] / plain[i];
        cpu = cpu_ms();
        begun = now_ns();
        our_snapshot(loop, snapshots, i + 1);
        snapshot[i] = ms_since(begun);
        snapshot_cpu += cpu_ms() - cpu;
        snapshot_ratio[i] = snapshot[i] / plain[i];
    }
    printf("{\"files\":%d,\"entries\":%zu,\"plain_ms\":%.1f,\"weft_ms\":%.1f,\"ratio\":%.2f,\"plain_cpu_ms\":%.1f,"
           "\"weft_cpu_ms\":%.1f,\"cpu_ratio\":%.2f,\"first_snapshot_ms\":%.1f,\"snapshot_ms\":%.1f,\"snapshot_ratio\":%.2f,"
           "\"snapshot_cpu_ms\":%.1f,\"snapshot_cpu_ratio\":%.2f}\n",
           files, count, median(plain, ROUNDS), median(ours, ROUNDS), median(ratio, ROUNDS), plain_cpu / ROUNDS,
           our_cpu / ROUNDS, our_cpu / plain_cpu, first_ms, median(snapshot, ROUNDS), median(snapshot_ratio, ROUNDS),
           snapshot_cpu / ROUNDS, snapshot_cpu / plain_cpu);
    weft__snapshots_free(snapshots);
    weft__git_free(git);
    weft_loop_free(loop);
    return 0;
}

/* CPU time and memory of another process, from /proc. */
#include "proc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first field of schedstat is the time spent running, in nanoseconds. */
static int thread_cpu_ns(pid_t pid, const char *thread, uint64_t *ret) {
    char path[64];
    FILE *file;
    int fields;

    snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int) pid, thread);
    file = fopen(path, "re");
    if (!file)
        return -errno;
    fields = fscanf(file, "%lu", ret);
    fclose(file);
    return fields == 1 ? 0 : -EIO;
}

int proc_cpu_ns(pid_t pid, uint64_t *ret) {
    char path[64];
    struct dirent *entry;
    uint64_t sum = 0;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%d/task", (int) pid);
    tasks = opendir(path);
    if (!tasks)
        return -errno;
    while ((entry = readdir(tasks))) {
        uint64_t ns;

        /* A thread that ended between readdir() and here is not an error; its time is lost, as it always was. */
        if (entry->d_name[0] != '.' && thread_cpu_ns(pid, entry->d_name, &ns) >= 0)
            sum += ns;
    }
    closedir(tasks);
    *ret = sum;
    return 0;
}

int proc_memory(pid_t pid, struct proc_memory *ret) {
    struct proc_memory memory = {0};
    char line[256];
    FILE *file;

    snprintf(line, sizeof line, "/proc/%d/smaps_rollup", (int) pid);
    file = fopen(line, "re");
    if (!file)
        return -errno;
    while (fgets(line, sizeof line, file)) {
        uint64_t kib;

        if (sscanf(line, "Rss: %lu", &kib) == 1)
            memory.rss = kib * 1024;
        else if (sscanf(line, "Pss: %lu", &kib) == 1)
            memory.pss = kib * 1024;
        else if (sscanf(line, "Private_Dirty: %lu", &kib) == 1)
            memory.private_dirty = kib * 1024;
    }
    fclose(file);
    *ret = memory;
    return memory.rss ? 0 : -EIO;
}

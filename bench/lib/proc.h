/* What a server process has used, read from /proc while it runs. */
#ifndef BENCH_PROC_H
#define BENCH_PROC_H

#include <stdint.h>
#include <sys/types.h>

/* Nanoseconds on a CPU, user and kernel, of every thread alive; the scheduler's own count, not the tick's samples.
 * A negative errno when the process cannot be read. */
int proc_cpu_ns(pid_t pid, uint64_t *ret);

struct proc_memory {
    uint64_t rss, pss, private_dirty; /* bytes */
};

int proc_memory(pid_t pid, struct proc_memory *ret);

#endif

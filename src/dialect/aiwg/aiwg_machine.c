/* Reading what the system tells in /proc. */
#include "aiwg_machine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB (1024.0 * 1024)

static double one_decimal(double value) {
    return round(value * 10) / 10;
}

/* user, nice, system, idle, iowait, irq */
static double cpu_percent(void) {
    unsigned long long of[6] = {0};
    FILE *file = fopen("/proc/stat", "re");
    int n = file ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu", &of[0], &of[1], &of[2], &of[3], &of[4], &of[5]) : 0;
    if (file)
        fclose(file);
    double all = (double) (of[0] + of[1] + of[2] + of[3] + of[5]);
    return n == 6 && all > 0 ? one_decimal((1 - (double) of[3] / all) * 100) : 0;
}

static void read_memory(weft_aiwg_machine *ret) {
    char line[256];
    long long total_kb = 0, free_kb = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file) && !(total_kb && free_kb)) {
        if (sscanf(line, "MemTotal: %lld", &total_kb) == 1)
            continue;
        if (sscanf(line, "MemAvailable: %lld", &free_kb) == 1)
            break;
    }
    if (file)
        fclose(file);
    ret->total_mb = (total_kb + 512) / 1024;
    ret->free_mb = (free_kb + 512) / 1024;
    ret->memory_percent = total_kb > 0 ? one_decimal((1 - (double) free_kb / (double) total_kb) * 100) : 0;
}

static double own_memory(void) {
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%*d %lld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return one_decimal((double) (pages * sysconf(_SC_PAGESIZE)) / MIB);
}

void weft__aiwg_machine(weft_aiwg_machine *ret) {
    *ret = (weft_aiwg_machine){.cpu_percent = cpu_percent(), .cores = sysconf(_SC_NPROCESSORS_ONLN), .own_mb = own_memory()};
    read_memory(ret);
    if (getloadavg(ret->load, 3) < 3)
        ret->load[0] = ret->load[1] = ret->load[2] = 0;
}

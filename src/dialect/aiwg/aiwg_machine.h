/* The machine under the daemon, as AIWG's clients are shown it: what its processors and its memory are used for. */
#ifndef WEFT_AIWG_MACHINE_H
#define WEFT_AIWG_MACHINE_H

#include <stdint.h>

typedef struct weft_aiwg_machine {
    double cpu_percent; /* of all processors, since the machine was started */
    int64_t cores;
    int64_t total_mb, free_mb;
    double memory_percent;
    double own_mb; /* of this process */
    double load[3];
} weft_aiwg_machine;

/* What cannot be read is 0. */
void weft__aiwg_machine(weft_aiwg_machine *ret);

#endif

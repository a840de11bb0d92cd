/* The simulated agents, for their two files: sim_driver.c has runs, one for each turn; sim_living.c has processes with many.
 */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#include "driver_single.h"
#include "loop.h"
#include "sim.h"

#define MAX_ASKS 4 /* of one run */

typedef struct ask {
    char key[SIM_NAME], title[64];
    bool open;
} ask;

struct weft_run {
    const weft_run_host *host;
    void *ctx;
    weft_loop *loop;
    int64_t grace_ms;
    char task[SIM_NAME];
    ask asks[MAX_ASKS];
    size_t ask_count;
    unsigned lines;
    bool named, ended, cancelled, paused;
    weft_timer end_timer;
    weft_later end_later;
};

/* sim_driver.c */
int sim_run_start(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret);
int sim_run_answer(weft_run *run, const char *key, const char *option);
void sim_run_cancel(weft_run *run, bool force);
weft_run *sim_run_free(weft_run *run);
/* Its process has gone, or its turn is over: what it has said is all. Freed. */
void sim_run_dropped(weft_run *run);
pid_t sim_next_pid(void);

/* sim_living.c */
void sim_living_open(void);
size_t sim_living_count(void); /* of processes */
/* Answer one of those that wait; false: there is none. */
bool sim_living_step(void);

#endif

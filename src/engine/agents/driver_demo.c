/* The demo agent is this binary again, and an ACP agent like any other. */
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "acp_private.h"

/* This program as a guard finds it, which is another one. A daemon whose file has capabilities cannot be looked at; then the
 * guard is this program too, and knows itself. */
static void own_program(char *ret, size_t size) {
    if (prctl(PR_GET_DUMPABLE) == 1)
        snprintf(ret, size, "/proc/%ld/exe", (long) getpid());
    else
        snprintf(ret, size, "/proc/self/exe");
}

static int demo_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    char own[32];
    own_program(own, sizeof own);
    const char *const argv[] = {spec->program ? spec->program : own, "__demo", NULL};
    return weft__acp_start(spec, argv, host, ctx, ret);
}

const weft_driver weft__driver_demo = {.name = "demo", .built_in = true, .open = demo_open, WEFT_ACP_TABLE};

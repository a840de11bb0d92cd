/* The demo agent is this binary again, and an ACP agent like any other. */
#include "acp_private.h"

static int demo_open(const weft_process_spec *spec, const weft_process_host *host, void *ctx, weft_driver_process **ret) {
    const char *const argv[] = {spec->program ? spec->program : "/proc/self/exe", "__demo", NULL};
    return weft__acp_start(spec, argv, host, ctx, ret);
}

const weft_driver weft__driver_demo = {.name = "demo", .open = demo_open, WEFT_ACP_TABLE};

/* The demo agent is this binary again, and an ACP agent like any other. */
#include "acp_run.h"

static int demo_start(const weft_run_spec *spec, const weft_run_host *host, void *ctx, weft_run **ret) {
    const char *const argv[] = {spec->program ? spec->program : "/proc/self/exe", "__demo", NULL};
    return weft__acp_start(spec, argv, host, ctx, ret);
}

const weft_driver weft__driver_demo = {
    .name = "demo",
    .start = demo_start,
    .answer = weft__acp_answer,
    .cancel = weft__acp_cancel,
    .pause = weft__acp_pause,
    .free = weft__acp_free,
};
